/* cpu_gather.c: strategy gather, for pieces whose inner dims are small on both sides: every line is picked
 * unit by unit from source lines that stay in the first cache. Virtual tiles (sides.h). Layer 3. */
#include "base/num.h"
#include "plan/cpu_strategies.h"
#include "plan/sides.h"

enum {
    ROWS = 256,         /* whose lines are open at a time */
    COL_ENTRIES = 2048, /* of a list */
    COL_BYTES = 1024,   /* with a line's worth of rows it stays in the first cache */
    NARROW = 2,         /* units that go straight to their places, .. */
    NEAR = 4096,        /* .. where each call picks them from so few bytes */
    SPARSE = 4          /* times as far from call to call in the source as in the destination */
};

/* Columns as in a tile but fewer; rows: any dims that complete the lines of the source. */
static void gather_of(const struct xti_nest *t, struct xti_sides *x)
{
    xti_sides_begin(t, x);
    x->lists = true; /* gathers know no strides */
    xti_side_widen(x, &x->col, COL_BYTES, COL_ENTRIES);
    for (int i = 0; i < t->n_dims; i++) {
        int64_t st = (int64_t)xti_abs64(t->dim[i].s), n = t->dim[i].n;
        if (x->taken[i] || !st || st >= XTI_LINE || x->row.units * n > ROWS)
            continue;
        x->taken[i] = true;
        x->row.dim[x->row.n_dims++] = i;
        x->row.take = n;
        x->row.units *= n;
    }
}

/* Lines of the destination can be put together by a list. */
static bool lines_of(const struct xti_nest *t, struct xti_sides *x, struct xti_why *why)
{
    if (!xti_nest_copies_units(t, why))
        return false;
    gather_of(t, x);
    if (x->col.bytes < XTI_LINE)
        return xti_refuse(why, "destination's dims make up %lld B < %d B", (long long)x->col.bytes, XTI_LINE);
    return xti_sides_list_fits(x) || xti_refuse(why, "columns lie too far apart for a list");
}

bool xti_gather_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    struct xti_sides x;
    if (!lines_of(t, &x, why))
        return false;
    const struct xti_loop *cd = xti_nest_cd(t);
    return cd->n * t->unit < XTI_LINE || cd->s <= 0 || cd->s > 8 * t->unit ||
           xti_refuse(why, "one dim of stride %lld B makes up a line", (long long)cd->s);
}

/* Runs of so few wide units, between which tiles would be moved in parts. In the cache gather instructions
 * have a rule of their own (gathered_near). */
bool xti_gather_few(const struct xti_plan *p, const struct xti_nest *t, int64_t run)
{
    enum { FEW = 4 };
    struct xti_sides x;
    bool wide = xti_may(&p->target, XTI_FEW) && t->unit >= XTI_LANE / 2;
    if (wide && xti_cost_stream(p))
        return run < XTI_LINE && lines_of(t, &x, NULL);
    return wide && p->target.isa != XTI_ISA_AVX512 && run <= FEW * t->unit && xti_gather_applies(p, t, NULL);
}

/* Whether a call ends inside of a line and the next one goes on there, its source not far from this one's: by
 * AVX2 such lines had better wait in the cache than leave in two parts. */
static bool goes_on(const struct xti_sides *x, const struct xti_step *step)
{
    const struct xti_loop *l = step->n_loops ? &step->loop[step->n_loops - 1] : &step->col;
    int64_t bytes = x->col.bytes, n = l->cuts == XTI_CUTS_NONE ? 1 : l->block;
    return (xti_sides_ragged(x) || x->t.d_byte % XTI_LINE) && l->d * n == bytes &&
           (int64_t)xti_abs64(l->s) * n <= SPARSE * bytes;
}

void xti_gather_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    struct xti_sides x;
    gather_of(t, &x);
    xti_sides_make(p, &x, XTI_CPU_GATHER, step);
    /* Lines that are streamed are put together first, which takes longer than reading them where they are
     * when picking them takes long: byte by byte, or out of the first cache; by AVX2 two bytes, too. */
    bool avx2 = p->target.isa == XTI_ISA_AVX2, near = step->row.n == 1 && xti_sides_reach(&x) < NEAR;
    bool waits = t->unit == 1 || (t->unit <= NARROW && (avx2 || near)) || (avx2 && goes_on(&x, step));
    step->store.stream &= p->target.choice.stream || !waits;
}
