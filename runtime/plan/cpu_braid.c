/* cpu_braid.c: strategy braid, for streaming copies of short runs. A few runs that follow each other in the
 * destination are the beginnings of as many strands of the source, each of which is read on and on; whole
 * lines are put together in registers from a run of each strand in turn. Layer 3. */
#include "plan/cpu_braid.h"

#include "base/num.h"
#include "plan/sides.h"

enum {
    RUN_BYTES = 17,        /* units, below it */
    LONG_RUN_BYTES = 4096, /* two lines in parts do not count beside so many whole ones */
    RAGGED_BYTES = 2048,   /* rows that share lines: below it they go through a buffer */
    FEW = 8,               /* strands that are all of a row */
    ROW_BYTES = 4096,      /* of a strand in a call .. */
    ROW_ENTRIES = 256      /* .. and runs */
};

/* Rows of the destination begin on lines, all or none. */
static bool on_lines(const struct xti_target *target, const struct xti_nest *t)
{
    return (target->d_line | t->run * t->dim[t->cd].n | xti_nest_bits(t, t->cd)) % XTI_LINE == 0;
}

static void braid_of(const struct xti_plan *p, const struct xti_nest *t, struct xti_sides *x)
{
    xti_sides_begin(t, x);
    xti_sides_unit(x, x->t.run);
    if (x->t.cd < 0 || x->t.run >= LONG_RUN_BYTES)
        return;
    int64_t n = x->t.dim[x->t.cd].n, strands = xti_cost_strands(x->t.run, !on_lines(&p->target, &x->t));
    xti_side_widen(x, &x->col, strands * x->t.run, n <= FEW ? n : strands);
    xti_side_widen(x, &x->row, ROW_BYTES, ROW_ENTRIES);
}

bool xti_braid_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    struct xti_sides x;
    if (!xti_cost_streams_alone(p, t, why))
        return false;
    if (!p->target.machine->habits.few_strands || p->target.isa != XTI_ISA_AVX512)
        return xti_refuse(why, "not made for this processor");
    braid_of(p, t, &x);
    if (x.t.run < RUN_BYTES || x.t.run >= LONG_RUN_BYTES)
        return xti_refuse(why, "runs of %lld B", (long long)x.t.run);
    bool off = p->target.d_line && x.t.run < XTI_STREAMED_RUN;
    if (x.t.run > XTI_LINE && x.t.run % XTI_LINE == 0 && !off)
        return xti_refuse(why, "runs of %lld B are whole lines", (long long)x.t.run);
    if (x.col.n_dims != 1 || !x.row.n_dims)
        return xti_refuse(why, "no two dims along which the runs follow each other");
    const struct xti_loop *cd = &x.t.dim[x.t.cd];
    if (!cd->s && XTI_LINE % x.t.run == 0) /* a pattern of lines (blocks.c.j2: repeat_run) */
        return xti_refuse(why, "the same run again and again");
    if (!on_lines(&p->target, &x.t) && cd->n * x.t.run < RAGGED_BYTES)
        return xti_refuse(why, "rows of %lld B begin anywhere", (long long)(cd->n * x.t.run));
    return x.t.run % XTI_LINE || off || xti_cost_lines_in_pairs(&p->target, &x.t, why);
}

void xti_braid_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    struct xti_sides x;
    braid_of(p, t, &x);
    step->kernel = XTI_CPU_BRAID;
    step->unit = (int)x.t.run;
    step->store.stream = true;
    xti_sides_step(&x, step);
}
