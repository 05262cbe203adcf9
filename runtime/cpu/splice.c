/* splice.c: lists a window of an assembled plan by listening to its cursors: for each line the parts of
 * sources that it consists of. All windows are run from these lists by one kernel, with every source so much
 * further on: whole lines, put together in registers. In: a plan with a window (plan/window.c). Layer 4. */
#include "cpu/splice.h"

#include <string.h>

#include "base/num.h"

enum { LINE = 64 };

static const char blank[LINE];

/* The number of the step's source in the row that is listed. */
static int source_of(struct xti_splice *t, const struct xti_splice_rows *g, int64_t s)
{
    int i = g->source;
    while (i < t->n_sources && t->of[i] != t->step)
        i++;
    if (i == XTI_SPLICE_SOURCES)
        t->failed = true;
    if (i < t->n_sources || t->failed)
        return i - g->source;
    t->of[i] = (unsigned char)t->step;
    t->source[i] = (struct xtk_source){.s = s};
    t->n_sources++;
    return i - g->source;
}

/* n bytes from s on are the line's from byte `at` on. */
static void add_segment(struct xti_splice *t, int64_t at, const char *s, int64_t n)
{
    struct xti_splice_rows *g = &t->group[t->n_groups];
    if (at < 0 || at + n > LINE || t->n_segments == XTI_SPLICE_SEGMENTS || t->failed) {
        t->failed = true;
        return;
    }
    uint64_t mask = ~UINT64_C(0) >> (LINE - n) << at;
    t->listed |= mask;
    if (t->blank[t->step]) /* as are bytes without a segment */
        return;
    int64_t address = (int64_t)(uintptr_t)s - at;
    int from = source_of(t, g, address);
    int64_t off = t->failed ? 0 : address - t->source[g->source + from].s;
    struct xtk_segment x = {mask, (int32_t)off, (int16_t)from, false};
    struct xtk_segment *before = t->n_segments ? &t->segment[t->n_segments - 1] : NULL;
    t->failed |= off != x.s;
    if (before && t->n_segments > g->segment && !before->last && before->from == x.from && before->s == x.s)
        before->mask |= x.mask;
    else
        t->segment[t->n_segments++] = x;
}

/* What a cursor calls in its kernel's place, for columns of one line. */
static void listen(const struct xtk_job *j, char *d, const char *s)
{
    struct xti_splice *t = j->beside.splice;
    const struct xti_cursor *c = t->cursor + t->step;
    bool fill = c->piece->src < 0;
    int64_t unit = c->width, d_col = j->d_col, s_col = fill ? 0 : j->s_col, cols = j->cols / c->per_col;
    if ((fill && d_col == unit) || (!fill && d_col == unit && s_col == unit)) /* a run */
        unit *= cols, cols = 1;
    for (int64_t r = 0; r < j->rows; r++)
        for (int64_t i = 0; i < cols; i++) {
            int64_t at = d + r * j->d_row + i * d_col - t->line;
            add_segment(t, at, fill ? t->value[t->step] + at : s + r * j->s_row + i * s_col, unit);
        }
}

/* Whether the row is as the ones before it, further on; then it is one of them. */
static bool joins(struct xti_splice *t, struct xti_splice_rows *a, const struct xti_splice_rows *g)
{
    bool same = a->segments == g->segments && a->sources == g->sources;
    for (int i = 0; same && i < g->segments; i++) {
        const struct xtk_segment *x = &t->segment[a->segment + i], *y = &t->segment[g->segment + i];
        same = x->mask == y->mask && x->s == y->s && x->from == y->from && x->last == y->last;
    }
    for (int i = 0; same && i < g->sources; i++) {
        const struct xtk_source *x = &t->source[a->source + i], *y = &t->source[g->source + i];
        same = t->of[a->source + i] == t->of[g->source + i] && (a->n == 1 || y->s == x->s + a->n * x->row);
    }
    for (int i = 0; same && a->n == 1 && i < g->sources; i++)
        t->source[a->source + i].row = t->source[g->source + i].s - t->source[a->source + i].s;
    a->n += same;
    return same;
}

/* The largest part of a line comes first. */
static void end_line(struct xti_splice *t, int first)
{
    struct xtk_segment *g = &t->segment[first], x = *g;
    int best = 0, n = t->n_segments - first;
    for (int i = 1; i < n; i++)
        if (__builtin_popcountll(g[i].mask) > __builtin_popcountll(g[best].mask))
            best = i;
    *g = g[best];
    g[best] = x;
    g[n - 1].last = true;
}

/* A line of the destination; false when it is not whole. */
static bool list_line(struct xti_splice *t, const struct xti_copy *c, int64_t at)
{
    int first = t->n_segments;
    t->line = c->dst + at;
    t->listed = 0;
    for (t->step = 0; t->step < c->plan->n_steps; t->step++)
        if (t->cursor[t->step].next < at + LINE)
            xti_cursor_run(&t->cursor[t->step], &t->job, t->line, at, at + LINE);
    if (t->n_segments == first)
        add_segment(t, 0, blank, LINE);
    if (t->failed || ~t->listed)
        return false;
    end_line(t, first);
    return true;
}

static bool list_row(struct xti_splice *t, const struct xti_copy *c, int64_t at)
{
    struct xti_splice_rows *g = &t->group[t->n_groups];
    if (t->n_groups == XTI_SPLICE_GROUPS)
        return false;
    *g = (struct xti_splice_rows){.segment = (int16_t)t->n_segments, .source = (int16_t)t->n_sources, .n = 1};
    for (int64_t end = at + c->plan->window.row; at < end; at += LINE)
        if (!list_line(t, c, at))
            return false;
    g->segments = (int16_t)(t->n_segments - g->segment);
    g->sources = (int16_t)(t->n_sources - g->source);
    if (t->n_groups && joins(t, g - 1, g)) {
        t->n_segments = g->segment;
        t->n_sources = g->source;
    } else {
        t->n_groups++;
    }
    return true;
}

/* The source's byte that a cursor comes to next. */
static int64_t place_of(const struct xti_cursor *c)
{
    const struct xti_step *step = c->step;
    return c->piece->src < 0 ? 0 : (int64_t)(uintptr_t)c->s + c->row * step->row.s + c->col * step->col.s;
}

/* next: how far on most of the next window is. Into that as long as it is near, else 4 KiB on. */
static int64_t ahead_of(int64_t next)
{
    enum { NEAR = 32 << 10, LEAST = 2048, AHEAD = 4096 };
    int64_t n = (int64_t)xti_abs64(next);
    return n > NEAR ? next / n * AHEAD : n ? (LEAST + n - 1) / n * next : 0;
}

/* The step that writes the most bytes of those that read. */
static int largest(const struct xti_plan *p)
{
    int best = 0;
    for (int i = 1; i < p->n_steps; i++) {
        bool reads = p->map.piece[p->step[i].piece].src >= 0;
        if (p->map.piece[p->step[best].piece].src < 0 || (reads && p->step[i].bytes > p->step[best].bytes))
            best = i;
    }
    return best;
}

bool xti_splice_list(struct xti_splice *t, const struct xti_copy *c, struct xti_cursor *cursor, int64_t at)
{
    const struct xti_plan *p = c->plan;
    int64_t from[XTI_ASSEMBLE_STEPS], next[XTI_ASSEMBLE_STEPS], end = at + p->window.bytes;
    t->cursor = cursor;
    t->job = (struct xtk_job){.beside.splice = t};
    t->n_segments = t->n_sources = t->n_groups = 0;
    t->failed = t->blank[p->n_steps] = false;
    for (int i = 0; i < p->n_steps; i++) {
        from[i] = place_of(&cursor[i]);
        next[i] = cursor[i].next;
        cursor[i].kernel = listen;
        for (int k = 0; k < LINE; k += (int)sizeof cursor[i].value)
            memcpy(t->value[i] + k, cursor[i].value, sizeof cursor[i].value);
        t->blank[i] = cursor[i].piece->src < 0 && !memcmp(t->value[i], blank, LINE);
    }
    for (; at < end; at += p->window.row)
        if (!list_row(t, c, at))
            return false;
    for (int i = 0; i < p->n_steps; i++)
        if (cursor[i].next - next[i] != p->window.bytes)
            return false;
    for (int i = 0; i < p->n_steps; i++)
        t->next[i] = place_of(&cursor[i]) - from[i];
    t->next[p->n_steps] = 0;
    for (int i = 0; i < t->n_sources; i++)
        t->source[i].s -= (int64_t)(uintptr_t)t->value;
    int most = largest(p);
    t->ahead = ahead_of(place_of(&cursor[most]) - from[most]);
    return true;
}

void xti_splice_run(struct xti_splice *t, const struct xti_copy *c, int64_t at, int64_t windows)
{
    const struct xti_plan *p = c->plan;
    xtk_fn kernel = xtk_find(p->target.isa, XTI_CPU_SPLICE, 1, 0)->fn;
    struct xtk_job job = {.cols = p->window.row,
                          .next.ahead = t->ahead,
                          .s_col = 1,
                          .d_col = 1,
                          .d_row = p->window.row,
                          .store.stream = true,
                          .machine.hints = p->target.machine->hints,
                          .machine.far = p->target.machine->habits.far_ahead};
    char *d = c->dst + at;
    for (; windows; windows--) {
        for (int i = 0; i < t->n_groups; i++) {
            const struct xti_splice_rows *g = &t->group[i];
            job.rows = g->n;
            job.list.segment = &t->segment[g->segment];
            job.list.source = &t->source[g->source];
            job.list.sources = g->sources;
            kernel(&job, d, t->value[0]);
            d += g->n * p->window.row;
        }
        for (int i = 0; i < t->n_sources; i++)
            t->source[i].s += t->next[t->of[i]];
    }
}
