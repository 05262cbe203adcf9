/* sides.c: how virtual tiles grow, and what they are as a step. Layer 3. */
#include "plan/sides.h"

#include <string.h>

#include "base/num.h"
#include "plan/loops.h"

enum { GROUP_BYTES = 32 }; /* of rows or columns of a list with one stride: xtk_groups */

void xti_sides_begin(const struct xti_nest *t, struct xti_sides *x)
{
    memset(x, 0, offsetof(struct xti_sides, t));
    xti_nest_copy(t, &x->t);
    x->row.source = true;
    xti_sides_unit(x, x->t.unit);
}

void xti_sides_unit(struct xti_sides *x, int64_t bytes)
{
    x->col.bytes = x->row.bytes = bytes;
    x->col.units = x->row.units = 1;
}

void xti_sides_split_run(struct xti_sides *x, int widest)
{
    struct xti_nest *t = &x->t;
    if (t->unit || t->n_dims == XTI_MAX_DIMS)
        return;
    for (t->unit = t->esize; t->unit < widest && t->run % (2 * t->unit) == 0;)
        t->unit *= 2;
    t->dim[t->n_dims++] =
        (struct xti_loop){.n = t->run / t->unit, .s = t->unit, .d = t->unit, .cuts = XTI_CUTS_NONE};
    xti_sides_unit(x, t->unit);
}

/* The dim with which the side's run goes on; -1: none. */
static int next_dim(const struct xti_sides *x, const struct xti_side *a)
{
    for (int i = 0; i < x->t.n_dims; i++) {
        const struct xti_loop *l = &x->t.dim[i];
        if ((a->source ? l->s == a->bytes || l->s == -a->bytes : l->d == a->bytes) && !x->taken[i])
            return i;
    }
    return -1;
}

/* About `take` of n points, so that the parts are even. */
static int64_t even_part(const struct xti_side *a, int64_t n, int64_t take, int64_t room)
{
    int64_t even = xti_ceil_div(n, xti_ceil_div(n, take));
    int64_t line = xti_period(XTI_LINE, a->bytes), up = xti_ceil_div(even, line) * line;
    if (even < line || even == n)
        return even;
    return up <= room ? up : even / line * line;
}

/* Rows whose run goes on with a whole dim of the columns go on behind it. */
static void pass_columns(const struct xti_sides *x, struct xti_side *a)
{
    const struct xti_side *c = &x->col;
    for (int i = 0; i < c->n_dims && a->source && x->rows_pass; i++) {
        const struct xti_loop *l = &x->t.dim[c->dim[i]];
        bool whole = i + 1 < c->n_dims || c->take == l->n;
        if (whole && xti_abs64(l->s) == (uint64_t)a->bytes) {
            a->bytes *= l->n;
            i = -1;
        }
    }
}

static void grow(struct xti_sides *x, struct xti_side *a, int64_t want, int64_t max_units)
{
    int i = 0;
    if (!a->n_dims || a->take == x->t.dim[a->dim[a->n_dims - 1]].n)
        pass_columns(x, a);
    while (!a->ends && a->bytes < want && (!a->n_dims || a->take == x->t.dim[a->dim[a->n_dims - 1]].n) &&
           (i = next_dim(x, a)) >= 0) {
        int64_t n = x->t.dim[i].n, room = max_units / a->units, fit = xti_ceil_div(want, a->bytes);
        fit = fit < room ? fit : room;
        int64_t take = n <= 2 * fit && n <= room ? n : fit;
        if (take < 2)
            return;
        a->take = x->even ? even_part(a, n, take, room) : take;
        a->dim[a->n_dims++] = i;
        x->taken[i] = true;
        if (a->source && x->t.dim[i].s < 0)
            xti_nest_flip(&x->t, i); /* rows run upwards */
        a->bytes *= a->take;
        a->units *= a->take;
        if (a->take == n)
            pass_columns(x, a);
    }
    a->ends |= i < 0 && !x->rows_pass;
}

void xti_side_widen(struct xti_sides *x, struct xti_side *a, int64_t want, int64_t max_units)
{
    if (a->n_dims && a->take < x->t.dim[a->dim[a->n_dims - 1]].n && a->bytes < want) {
        x->taken[a->dim[--a->n_dims]] = false;
        a->bytes /= a->take;
        a->units /= a->take;
        a->take = a->n_dims ? x->t.dim[a->dim[a->n_dims - 1]].n : 0;
    }
    grow(x, a, want, max_units);
}

/* Puts the dims of a side behind the loops as what a list replaces; one dim alone needs none. */
static void take_side(const struct xti_sides *x, const struct xti_side *a, struct xti_loop *kernel,
                      struct xti_loop *list, int *n_list)
{
    *n_list = a->n_dims > 1 || x->lists ? a->n_dims : 0;
    *kernel = (struct xti_loop){.n = a->units, .cuts = XTI_CUTS_NONE};
    const struct xti_loop *inner = a->n_dims && !x->lists ? &x->t.dim[a->dim[0]] : NULL;
    if (inner && (a->n_dims == 1 || inner->n * x->t.unit % GROUP_BYTES == 0)) {
        kernel->s = inner->s; /* of a list: of its groups */
        kernel->d = inner->d;
    }
    for (int i = 0; i < *n_list; i++) { /* outermost first */
        list[i] = x->t.dim[a->dim[*n_list - 1 - i]];
        list[i].n = i ? list[i].n : a->take;
    }
}

static void add_loops(const struct xti_sides *x, struct xti_step *step)
{
    for (int i = 0; i < x->t.n_dims; i++)
        if (!x->taken[i])
            step->loop[step->n_loops++] = x->t.dim[i];
    for (int k = 0; k < 2; k++) {
        const struct xti_side *a = k ? &x->row : &x->col;
        const struct xti_loop *last = a->n_dims ? &x->t.dim[a->dim[a->n_dims - 1]] : NULL;
        if (!last || a->take == last->n)
            continue;
        struct xti_loop *l = &step->loop[step->n_loops++];
        *l = *last;
        l->n = xti_ceil_div(last->n, a->take);
        l->whole = last->n;
        l->block = a->take;
        l->each = a->n_dims > 1 || x->lists ? a->units / a->take : 0;
        l->cuts = k ? XTI_CUTS_ROW : XTI_CUTS_COL;
    }
}

void xti_sides_step(const struct xti_sides *x, struct xti_step *step)
{
    step->s_byte = x->t.s_byte;
    step->d_byte = x->t.d_byte;
    add_loops(x, step);
    xti_loops_order(step);
    struct xti_loop *list = &step->loop[step->n_loops];
    take_side(x, &x->row, &step->row, list, &step->list.row_dims);
    take_side(x, &x->col, &step->col, list + step->list.row_dims, &step->list.col_dims);
    for (int i = 0; i < step->n_loops; i++) { /* without lists a block cuts what is whole */
        const struct xti_loop *l = &step->loop[i];
        if (l->cuts != XTI_CUTS_NONE && !l->each)
            *(l->cuts == XTI_CUTS_ROW ? &step->row.n : &step->col.n) = l->whole;
    }
    step->tile.rows = x->row.units;
    step->tile.cols = x->col.units;
}

bool xti_sides_ragged(const struct xti_sides *x)
{
    int64_t bits = x->col.bytes;
    for (int i = 0; i < x->t.n_dims; i++) /* the columns' dims are those with less */
        bits |= xti_abs64(x->t.dim[i].d) >= (uint64_t)x->col.bytes ? x->t.dim[i].d : 0;
    return bits % XTI_LINE;
}

void xti_sides_repeat(int32_t *at, int64_t n, int64_t end, int64_t s)
{
    typedef uint32_t some __attribute__((vector_size(4 * XTI_REPEAT), aligned(4), may_alias));
    for (; n < end; n *= 2, s *= 2) /* what is there is doubled, and what is not yet is written over */
        for (int64_t i = 0; i < n && n + i < end; i += XTI_REPEAT)
            *(some *)(at + n + i) = *(some *)(at + i) + (uint32_t)s;
}

int64_t xti_sides_reach(const struct xti_sides *x)
{
    uint64_t reach = 0;
    for (int i = 0; i < x->col.n_dims; i++) {
        const struct xti_loop *l = &x->t.dim[x->col.dim[i]];
        uint64_t n = (uint64_t)(i + 1 < x->col.n_dims ? l->n : x->col.take);
        reach += xti_abs64(l->s) < INT32_MAX ? (n - 1) * xti_abs64(l->s) : INT32_MAX;
    }
    return (int64_t)reach;
}

bool xti_sides_list_fits(const struct xti_sides *x) { return xti_sides_reach(x) < INT32_MAX; }

void xti_sides_make(const struct xti_plan *p, const struct xti_sides *x, enum xti_cpu_op op,
                    struct xti_step *step)
{
    step->kernel = op;
    step->unit = x->t.unit;
    step->store.stream = xti_cost_stream(p);
    xti_sides_step(x, step);
}
