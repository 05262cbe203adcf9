/* cpu_gather.c: strategy gather, for pieces whose inner dims are small on both sides: every line is picked
 * unit by unit from source lines that stay in the first cache. Virtual tiles (sides.h). Layer 3. */
#include "plan/cpu_tile.h"

#include "base/num.h"
#include "plan/sides.h"

enum {
    ROWS = 256,         /* whose lines are open at a time */
    COL_ENTRIES = 2048, /* of a list */
    COL_BYTES = 1024    /* with a line's worth of rows it stays in the first cache */
};

/* The kernel asks for the next step's lines: of 4 bytes 128 columns, not 256, before it reads them. */
static int64_t col_bytes(const struct xti_plan *p, int unit)
{
    return p->target.machine->habits.prefetch_deep && unit == 4 ? COL_BYTES / 2 : COL_BYTES;
}

/* Columns as in a tile but fewer; rows: any dims that complete the lines of the source. */
static void gather_of(const struct xti_plan *p, const struct xti_nest *t, struct xti_sides *x)
{
    xti_sides_begin(t, x);
    if (!x->t.unit)
        return;
    x->lists = true; /* gathers know no strides */
    xti_side_widen(x, &x->col, col_bytes(p, x->t.unit), COL_ENTRIES);
    for (int i = 0; i < x->t.n_dims; i++) {
        int64_t st = (int64_t)xti_abs64(x->t.dim[i].s), n = x->t.dim[i].n;
        if (x->taken[i] || !st || st >= XTI_LINE || x->row.units * n > ROWS)
            continue;
        x->taken[i] = true;
        x->row.dim[x->row.n_dims++] = i;
        x->row.take = n;
        x->row.units *= n;
    }
}

/* Lines of the destination can be put together by a list. */
static bool lines_of(const struct xti_plan *p, const struct xti_nest *t, struct xti_sides *x,
                     struct xti_why *why)
{
    if (!xti_nest_copies_units(t, why))
        return false;
    gather_of(p, t, x);
    if (x->col.bytes < XTI_LINE)
        return xti_refuse(why, "destination's dims make up %lld B < %d B", (long long)x->col.bytes, XTI_LINE);
    return xti_sides_list_fits(x) || xti_refuse(why, "columns lie too far apart for a list");
}

bool xti_gather_few(const struct xti_plan *p, const struct xti_nest *t, int64_t run)
{
    struct xti_sides x;
    return xti_cost_few_units(p, t->unit, run) && lines_of(p, t, &x, NULL);
}

bool xti_gather_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    struct xti_sides x;
    if (!lines_of(p, t, &x, why))
        return false;
    const struct xti_loop *cd = &x.t.dim[x.col.dim[0]];
    if (cd->n * x.t.unit >= XTI_LINE && cd->s > 0 && cd->s <= 8 * x.t.unit)
        return xti_refuse(why, "one dim of stride %lld B makes up a line", (long long)cd->s);
    return true;
}

void xti_gather_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    struct xti_sides x;
    gather_of(p, t, &x);
    xti_sides_make(p, &x, XTI_CPU_GATHER, step);
}
