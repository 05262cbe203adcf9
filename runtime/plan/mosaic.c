/* mosaic.c: see mosaic.h. */
#include "plan/mosaic.h"

#include <string.h>

#include "base/distinct.h"
#include "base/num.h"

/* Numbers of all lines. */
struct table {
    const struct xti_mosaic_of *of;
    int element, shift;   /* bytes, and their logarithm */
    int per_line, halves; /* elements; how many windows make it up */
    int64_t elements;     /* of a row */
    int64_t room;         /* bytes of a window beside one element of each row of a group */
};

/* Bytes at which more elements of a window may begin. */
struct window {
    int64_t from, to;
};

/* halves: 1 where elements are those of units. */
static int64_t element_at(const int32_t *col_at, int64_t i, int halves)
{
    return col_at[i >> halves] + (i & halves) * 8;
}

/* Finds windows for elements [i, end) of those that a row has, each the first that has room for one, and says
 * which in `of`. Returns how many; 0: that would be too many. */
static int cover(const struct table *t, int64_t i, int64_t end, struct window *w, unsigned char *of)
{
    const int32_t *col_at = t->of->col_at;
    int64_t room = t->room;
    int n = 0, k, most = t->of->most, halves = t->of->unit > 8;
    for (end = end < t->elements ? end : t->elements; i < end; i++) {
        int64_t at = element_at(col_at, i, halves);
        for (k = 0; k < n && (at < w[k].from) | (at > w[k].to);)
            k++;
        if (k == most)
            return 0;
        if (k == n)
            w[n++] = (struct window){at - room, at + room};
        if (at - room > w[k].from)
            w[k].from = at - room;
        if (at + room < w[k].to)
            w[k].to = at + room;
        *of++ = (unsigned char)k;
    }
    return n;
}

/* The last element at `at` or before; there is one. Of dims that overlap maybe one before it. */
static int64_t last_at(const struct xti_mosaic_of *of, int64_t at)
{
    uint32_t past = (uint32_t)(at - of->lo);
    for (int i = of->n_dims - 1; i >= 0; i--) {
        uint32_t k = past / of->dim[i].s;
        past -= (k < of->dim[i].n ? k : of->dim[i].n - 1) * of->dim[i].s;
    }
    return at - past;
}

/* Where a window is loaded: a line of the source if that has all of it, and nothing that is not read; with
 * gaps no more than a line of what is read around it, so that both ends of a load are in pages that it reads.
 */
static bool place(const struct table *t, const struct window *w, int64_t *at)
{
    const struct xti_mosaic_of *of = t->of;
    int64_t width = of->width, first = w->to - t->room, end = w->from + width, ends = of->lo + of->hi;
    int64_t in_line = (int64_t)(of->s + (uintptr_t)first) & (width - t->element);
    int64_t lo = of->gaps ? ends - last_at(of, ends - w->from) : of->lo;
    int64_t hi = (of->gaps ? last_at(of, w->to) : of->hi) + width - t->room;
    lo = first < lo ? first : lo;
    hi = end > hi ? end : hi;
    *at = first - in_line + width >= end ? first - in_line : first;
    *at = *at + width > hi ? hi - width : *at;
    *at = *at < lo ? lo : *at;
    return hi - lo >= width && *at == (int32_t)*at;
}

/* Where the windows of elements [i, end) are loaded. Returns how many there are; 0: too many, or one cannot
 * be. */
static int windows_of(const struct table *t, int64_t i, int64_t end, int64_t *at, unsigned char *of)
{
    struct window w[XTI_MOSAIC_WINDOWS];
    int n = cover(t, i, end, w, of);
    for (int k = 0; k < n; k++)
        if (!place(t, &w[k], &at[k]))
            return 0;
    return n;
}

/* Element i of a line is at `at` of window k of its half. */
static void put_element(const struct table *t, struct xti_mosaic_line *l, int64_t i, unsigned k, int64_t at)
{
    for (int b = 0; b < t->element && t->halves == 2; b++)
        l->byte[k][(i << t->shift) + b] = (unsigned char)(at + b);
    if (t->halves == 2)
        return;
    l->pair[k / 2] |= UINT64_C(1) << i;
    /* its low byte: vectors are little-endian where this is used */
    l->index[i << t->shift] = (unsigned char)((at >> t->shift) + k % 2 * (XTI_LINE >> t->shift));
}

/* The line that begins with element `first` of the row, which may be before its first one. Returns how many
 * windows it has; 0: as above. */
static int make_line(const struct table *t, int64_t first, struct xti_mosaic_line *l)
{
    unsigned char of[XTI_LINE];
    int64_t from = first > 0 ? first : 0, end = first + t->per_line, at[XTI_MOSAIC_WINDOWS];
    int most = 0;
    end = end < t->elements ? end : t->elements;
    memset(l->byte, t->halves == 2 ? 128 : 0, sizeof l->byte);
    for (int64_t h = 0, each = t->per_line / t->halves, i = from, to; h < t->halves; h++, i = to) {
        to = first + (h + 1) * each < end ? first + (h + 1) * each : end;
        int n = i < to ? windows_of(t, i, to, at, of) : 0;
        if (i < to && !n)
            return 0;
        for (int k = 0; k < XTI_MOSAIC_WINDOWS && n && !most; k++)
            l->window[k] = (int32_t)at[0];
        for (int k = 0; k < n; k++)
            l->window[t->halves * k + h] = (int32_t)at[k];
        for (const unsigned char *k = of; i < to; i++, k++)
            put_element(t, l, i - first, *k, element_at(t->of->col_at, i, t->of->unit > 8) - at[*k]);
        most = n > most ? n : most;
        to = to > i ? to : i;
    }
    l->n_pairs = t->halves == 2 ? most : (most + 1) / 2;
    l->d = (int)(first * t->element);
    l->written = ~UINT64_C(0) >> (XTI_LINE - (end - from)) << (from - first);
    l->whole = end - from == t->per_line;
    return most;
}

/* Adds the line with the byte at `at`. */
static void add_fetch(const struct xti_mosaic_of *of, struct xti_mosaic *m, int64_t at)
{
    int64_t line = at - (int64_t)((of->s + (uintptr_t)at) % XTI_LINE);
    int n = m->n_fetches;
    if (n < XTI_MOSAIC_FETCHES && line == (int32_t)line && !(n && m->fetch[n - 1] == line))
        m->fetch[m->n_fetches++] = (int32_t)line;
}

/* The windows of all lines, then those of all groups of rows. */
void xti_mosaic_fetches(const struct xti_mosaic_of *of, struct xti_mosaic *m)
{
    int32_t window[XTI_MOSAIC_LINES * XTI_MOSAIC_WINDOWS];
    int n = 0;
    for (int l = 0; l < m->n_lines; l++)
        for (int k = 0; k < 2 * m->line[l].n_pairs; k++)
            window[n++] = m->line[l].window[k];
    n = xti_distinct(window, n);
    m->n_fetches = 0;
    for (int64_t r = 0; r < of->rows; r += of->group)
        for (int i = 0; i < n; i++) {
            int64_t at = of->row_at[r].s + window[i];
            add_fetch(of, m, at);
            add_fetch(of, m, at + of->width - 1);
        }
    m->n_fetches = xti_distinct(m->fetch, m->n_fetches);
    int64_t written = of->rows * m->n_lines;
    m->each = (int)((m->n_fetches + written - 1) / (written ? written : 1));
}

void xti_mosaic_add(struct xti_mosaic_of *of, int64_t n, int64_t s)
{
    uint32_t st = (uint32_t)xti_abs64(s);
    int i = of->n_dims;
    *(s < 0 ? &of->lo : &of->hi) += (n - 1) * s;
    of->bits |= s;
    for (; st && i && of->dim[i - 1].s > st; i--)
        of->dim[i] = of->dim[i - 1];
    of->dim[i].n = (uint32_t)n;
    of->dim[i].s = st;
    of->n_dims += st > 0;
}

struct xti_mosaic_of xti_mosaic_of(const struct xti_step *step, enum xti_isa isa)
{
    static const struct xti_offset single = {0, 0};
    const struct xti_loop *col = &step->loop[step->n_loops + step->list.row_dims];
    struct xti_mosaic_of of = {.row_at = step->list.row_at ? step->list.row_at : &single,
                               .col_at = step->list.col_at,
                               .rows = step->tile.rows,
                               .cols = step->tile.cols,
                               .width = xti_mosaic_width(isa),
                               .unit = step->unit,
                               .group = step->visit.together,
                               .most = XTI_MOSAIC_WINDOWS,
                               .gaps = step->visit.gaps};
    for (int r = 0; r < of.group; r++)
        of.bits |= of.last = of.row_at[r].s;
    for (int i = 0; i < step->list.col_dims; i++)
        xti_mosaic_add(&of, col[i].n, col[i].s);
    xti_mosaic_add(&of, (of.unit + 7) / 8, 8);
    return of;
}

static bool begin(const struct xti_mosaic_of *of, struct table *t)
{
    *t = (struct table){.of = of, .element = of->unit < 8 ? of->unit : 8};
    t->shift = __builtin_ctz((unsigned)t->element);
    t->halves = of->width == XTI_LINE ? 1 : 2;
    t->per_line = t->halves * of->width >> t->shift;
    t->elements = of->cols * of->unit >> t->shift;
    t->room = of->width - t->element - of->last;
    return of->bits % t->element == 0;
}

int xti_mosaic_windows(const struct xti_mosaic_of *of, int most)
{
    enum { AHEAD = 4 }; /* lines with more than the mean before others */
    unsigned char which[XTI_LINE];
    int64_t at[XTI_MOSAIC_WINDOWS];
    struct table t;
    int all = 0, n = begin(of, &t);
    int64_t sum = 0, each = of->width >> t.shift, lines = xti_ceil_div(t.elements, each);
    for (int64_t first = 0; n && first < t.elements; first += each) {
        n = windows_of(&t, first, first + each, at, which);
        all = n > all ? n : all;
        sum += n;
        n = t.halves == 2 && sum > most * (first / each + AHEAD) ? 0 : n;
    }
    n = !n ? 0 : t.halves == 2 ? (int)xti_ceil_div(sum, lines) : all + all % 2;
    return n <= most ? n : 0;
}

int xti_mosaic_table(const struct xti_mosaic_of *of, struct xti_mosaic *m)
{
    struct table t;
    int all = 0, n = begin(of, &t);
    m->aligned = of->aligned && of->d % (uintptr_t)t.element == 0;
    m->n_fetches = m->n_lines = m->each = 0;
    int64_t first = m->aligned ? -(int64_t)(of->d % (uintptr_t)(t.per_line << t.shift)) / t.element : 0;
    for (; n && first < t.elements; first += t.per_line, m->n_lines++) {
        n = m->n_lines < XTI_MOSAIC_LINES ? make_line(&t, first, &m->line[m->n_lines]) : 0;
        all = n > all ? n : all;
    }
    for (int64_t r = 0, k = 0; r < of->rows && n; r++, k = k + 1 < of->group ? k + 1 : 0) {
        int64_t at = of->row_at[r - k].s;
        m->row[r] = (struct xti_mosaic_row){at, of->row_at[r].d, (of->row_at[r].s - at) >> t.shift};
    }
    return n ? all + (t.halves == 1 && all % 2) : 0;
}
