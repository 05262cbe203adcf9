/* mosaic.c: see mosaic.h. */
#include "plan/mosaic.h"

/* Numbers of all lines. */
struct table {
    const struct xti_mosaic_of *of;
    int element, per_line;
    int64_t elements;      /* of a row */
    int64_t behind, reach; /* of a group's rows: bytes before the first one's unit; of all of their units */
    int64_t lo, hi;        /* what a group reads, from its first row's source */
    int most;
    bool counts; /* windows, of which it is enough that they can be loaded */
};

/* Bytes at which the elements of a window begin. */
struct window {
    int64_t lo, hi;
};

static int64_t element_at(const struct table *t, int64_t i)
{
    int halves = t->of->unit > t->element;
    return t->of->col_at[i >> halves] + (i & halves) * t->element;
}

/* Finds windows for elements [i, end) of a row, each the first that has room for one, and says which in `of`.
 * Returns how many; 0: that would be too many. */
static int cover(const struct table *t, int64_t i, int64_t end, struct window *w, unsigned char *of)
{
    int64_t room = XTI_LINE - t->reach;
    int n = 0, k;
    for (; i < end; i++) {
        int64_t at = element_at(t, i);
        for (k = 0; k < n && (at - w[k].lo > room || w[k].hi - at > room);)
            k++;
        if (k == t->most)
            return 0;
        if (k == n)
            w[n++] = (struct window){at, at};
        w[k].lo = at < w[k].lo ? at : w[k].lo;
        w[k].hi = at > w[k].hi ? at : w[k].hi;
        *of++ = (unsigned char)k;
    }
    return n;
}

/* Where a window is loaded: a line of the source if that has all of it, and nothing that is not read; with
 * gaps no more than a line of what is read around it, so that both ends of a load are in pages that it reads.
 * near: a column of the window's line. */
static bool place(const struct table *t, int64_t near, const struct window *w, int64_t *at)
{
    int64_t first = w->lo - t->behind, end = w->hi - t->behind + t->reach, cols = t->of->cols;
    int64_t in_line = (int64_t)((t->of->s + (uintptr_t)first) % XTI_LINE) / t->element * t->element;
    int64_t lo = t->of->gaps ? first : t->lo, hi = t->of->gaps ? end : t->hi;
    *at = first - in_line + XTI_LINE >= end ? first - in_line : first;
    for (int64_t i = 0; i < cols && t->of->gaps; i++) {
        if (t->counts ? hi - lo >= XTI_LINE : lo <= *at && *at + XTI_LINE <= hi)
            break;
        int64_t c = near + (i % 2 ? -i / 2 - 1 : i / 2);
        c += c < 0 ? cols : c >= cols ? -cols : 0;
        int64_t from = t->of->col_at[c] - t->behind, to = from + t->reach - t->element + t->of->unit;
        lo = from < lo && from >= end - XTI_LINE ? from : lo;
        hi = to > hi && to <= first + XTI_LINE ? to : hi;
    }
    *at = *at + XTI_LINE > hi ? hi - XTI_LINE : *at;
    *at = *at < lo ? lo : *at;
    return hi - lo >= XTI_LINE;
}

/* Where the windows of elements [i, end) are loaded. Returns how many there are; 0: too many, or one cannot
 * be. */
static int windows_of(const struct table *t, int64_t i, int64_t end, int64_t *at, unsigned char *of)
{
    struct window w[XTI_MOSAIC_WINDOWS];
    int n = cover(t, i, end, w, of);
    for (int k = 0; k < n; k++)
        if (!place(t, i * t->element / t->of->unit, &w[k], &at[k]))
            return 0;
    return n;
}

static int64_t end_of(const struct table *t, int64_t first)
{
    return first + t->per_line < t->elements ? first + t->per_line : t->elements;
}

/* The line that begins with element `first` of the row, which may be before its first one. */
static bool make_line(const struct table *t, int64_t first, struct xti_mosaic_line *l)
{
    unsigned char of[XTI_LINE];
    int64_t from = first > 0 ? first : 0;
    *l = (struct xti_mosaic_line){.d = (int)(first * t->element)};
    int n = windows_of(t, from, end_of(t, first), l->window, of);
    if (!n)
        return false;
    for (int k = n; k < XTI_MOSAIC_WINDOWS; k++)
        l->window[k] = l->window[n - 1];
    l->n_pairs = (n + 1) / 2;
    for (int64_t i = from; i < end_of(t, first); i++) {
        int k = of[i - from], place = (int)(element_at(t, i) - l->window[k]) / t->element;
        l->written |= UINT64_C(1) << (i - first);
        l->pair[k / 2] |= UINT64_C(1) << (i - first);
        /* its low byte: vectors are little-endian where this is used */
        l->index[(i - first) * t->element] = (unsigned char)(place + k % 2 * t->per_line);
    }
    l->whole = l->written == ~UINT64_C(0) >> (64 - t->per_line);
    return true;
}

/* Of a row: bytes from the first one of its group. */
static int64_t row_from_first(const struct xti_mosaic_of *of, int64_t r)
{
    return of->row_at[r].s - of->row_at[r - r % of->group].s;
}

/* Rows of a group are elements apart, as columns are. */
static bool span_rows(struct table *t)
{
    int64_t lo = 0, hi = 0, all = 0;
    for (int64_t r = 0; r < t->of->rows; r++) {
        int64_t s = row_from_first(t->of, r);
        lo = s < lo ? s : lo;
        hi = s > hi ? s : hi;
        all |= s;
    }
    t->behind = -lo;
    t->reach = hi - lo + t->element;
    return all % t->element == 0;
}

static bool span_cols(struct table *t)
{
    int64_t all = 0;
    t->lo = INT64_MAX;
    t->hi = INT64_MIN;
    for (int64_t i = 0; i < t->of->cols; i++) {
        int64_t at = t->of->col_at[i] - t->behind, end = at + t->reach - t->element + t->of->unit;
        t->lo = at < t->lo ? at : t->lo;
        t->hi = end > t->hi ? end : t->hi;
        all |= t->of->col_at[i];
    }
    return t->of->cols && all % t->element == 0;
}

static void sort(int32_t *x, int n)
{
    static const int gap[] = {701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gap / sizeof *gap; g++)
        for (int i = gap[g]; i < n; i++) {
            int32_t v = x[i];
            int k = i;
            for (; k >= gap[g] && x[k - gap[g]] > v; k -= gap[g])
                x[k] = x[k - gap[g]];
            x[k] = v;
        }
}

/* Sorted, each once. */
static int distinct(int32_t *x, int n)
{
    int kept = 0;
    sort(x, n);
    for (int i = 0; i < n; i++)
        if (!kept || x[kept - 1] != x[i])
            x[kept++] = x[i];
    return kept;
}

/* Adds the line with the byte at `at`. */
static void add_fetch(const struct xti_mosaic_of *of, struct xti_mosaic *m, int64_t at)
{
    int64_t line = at - (int64_t)((of->s + (uintptr_t)at) % XTI_LINE);
    if (m->n_fetches < XTI_MOSAIC_FETCHES && line == (int32_t)line)
        m->fetch[m->n_fetches++] = (int32_t)line;
}

/* The windows of all lines, then those of all groups of rows. */
void xti_mosaic_fetches(const struct xti_mosaic_of *of, struct xti_mosaic *m)
{
    int32_t window[XTI_MOSAIC_LINES * XTI_MOSAIC_WINDOWS];
    int n = 0;
    for (int l = 0; l < m->n_lines; l++)
        for (int k = 0; k < 2 * m->line[l].n_pairs; k++)
            window[n++] = (int32_t)m->line[l].window[k];
    n = distinct(window, n);
    m->n_fetches = 0;
    for (int64_t r = 0; r < of->rows; r += of->group)
        for (int i = 0; i < n; i++) {
            int64_t at = of->row_at[r].s + window[i];
            add_fetch(of, m, at);
            if ((of->s + (uintptr_t)at) % XTI_LINE)
                add_fetch(of, m, at + XTI_LINE - 1);
        }
    m->n_fetches = distinct(m->fetch, m->n_fetches);
    int64_t written = of->rows * m->n_lines;
    m->each = (int)((m->n_fetches + written - 1) / (written ? written : 1));
}

struct xti_mosaic_of xti_mosaic_of(const struct xti_step *step)
{
    static const struct xti_offset single = {0, 0};
    return (struct xti_mosaic_of){.row_at = step->list.row_at ? step->list.row_at : &single,
                                  .col_at = step->list.col_at,
                                  .rows = step->tile.rows,
                                  .cols = step->tile.cols,
                                  .unit = step->unit,
                                  .group = step->visit.together,
                                  .gaps = step->visit.gaps};
}

static bool begin(const struct xti_mosaic_of *of, int most, bool counts, struct table *t)
{
    *t = (struct table){.of = of, .element = of->unit < 8 ? of->unit : 8, .most = most, .counts = counts};
    t->per_line = XTI_LINE / t->element;
    t->elements = of->cols * (of->unit / t->element);
    return span_rows(t) && span_cols(t);
}

int xti_mosaic_windows(const struct xti_mosaic_of *of, int most)
{
    unsigned char which[XTI_LINE];
    int64_t at[XTI_MOSAIC_WINDOWS];
    struct table t;
    int all = 0;
    if (!begin(of, most, true, &t) || t.elements > (int64_t)t.per_line * XTI_MOSAIC_LINES)
        return 0;
    for (int64_t first = 0; first < t.elements; first += t.per_line) {
        int n = windows_of(&t, first, end_of(&t, first), at, which);
        if (!n)
            return 0;
        all = n > all ? n : all;
    }
    return all + all % 2;
}

bool xti_mosaic_table(const struct xti_mosaic_of *of, struct xti_mosaic *m)
{
    struct table t;
    if (!begin(of, XTI_MOSAIC_WINDOWS, false, &t))
        return false;
    m->aligned = of->aligned && of->d % (uintptr_t)t.element == 0;
    m->n_fetches = 0;
    int64_t first = m->aligned ? -(int64_t)(of->d % XTI_LINE) / t.element : 0;
    for (m->n_lines = 0; first < t.elements; first += t.per_line, m->n_lines++)
        if (m->n_lines == XTI_MOSAIC_LINES || !make_line(&t, first, &m->line[m->n_lines]))
            return false;
    for (int64_t r = 0; r < of->rows; r++)
        m->row[r] = (struct xti_mosaic_row){of->row_at[r - r % of->group].s, of->row_at[r].d,
                                            row_from_first(of, r) / t.element};
    return true;
}
