/* cpu_braid.c: strategy braid, for streaming copies of short runs. A few runs that follow each other in the
 * destination are the beginnings of as many strands of the source, each of which is read on and on; whole
 * lines are put together in registers from a run of each strand in turn. Layer 3. */
#include "base/num.h"
#include "plan/cpu_strategies.h"
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

/* As many as make up whole lines, so that none is read for two braids, and two lines or more; where lines are
 * read twice anyway, many. */
static int64_t strands(int64_t run, bool ragged)
{
    enum { LEAST = 128, MOST = 16 };
    int64_t whole = xti_period(XTI_LINE, run), n = whole;
    while (run < LEAST && n * run < LEAST)
        n += whole;
    return ragged || n > MOST ? MOST : n;
}

static void braid_of(const struct xti_plan *p, const struct xti_nest *t, struct xti_sides *x)
{
    xti_sides_begin(t, x);
    xti_sides_unit(x, t->run);
    if (t->cd < 0 || t->run >= LONG_RUN_BYTES)
        return;
    int64_t n = xti_nest_cd(t)->n, of = strands(t->run, !on_lines(&p->target, t));
    xti_side_widen(x, &x->col, of * t->run, n <= FEW ? n : of);
    xti_side_widen(x, &x->row, ROW_BYTES, ROW_ENTRIES);
}

bool xti_braid_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    struct xti_sides x;
    if (!xti_cost_streams_alone(p, t, why))
        return false;
    if (p->target.isa != XTI_ISA_AVX512)
        return xti_refuse(why, "not made for this processor");
    if (t->run < RUN_BYTES || t->run >= LONG_RUN_BYTES)
        return xti_refuse(why, "runs of %lld B", (long long)t->run);
    if (t->run % XTI_LINE == 0 && !(p->target.d_line && t->run < XTI_STREAMED_RUN))
        return xti_refuse(why, "runs of %lld B are whole lines", (long long)t->run);
    braid_of(p, t, &x);
    if (x.col.n_dims != 1 || !x.row.n_dims)
        return xti_refuse(why, "no two dims along which the runs follow each other");
    const struct xti_loop *cd = xti_nest_cd(t);
    if (!cd->s && XTI_LINE % t->run == 0) /* a pattern of lines (blocks.c.j2: repeat_run) */
        return xti_refuse(why, "the same run again and again");
    return on_lines(&p->target, t) || cd->n * t->run >= RAGGED_BYTES ||
           xti_refuse(why, "rows of %lld B begin anywhere", (long long)(cd->n * t->run));
}

void xti_braid_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    struct xti_sides x;
    braid_of(p, t, &x);
    step->kernel = XTI_CPU_BRAID;
    step->unit = (int)t->run;
    step->store.stream = true;
    xti_sides_step(&x, step);
}
