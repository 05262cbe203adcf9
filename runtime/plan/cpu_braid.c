/* cpu_braid.c: strategy braid, for streaming copies of short runs. A few runs that follow each other in the
 * destination are the beginnings of as many strands of the source, each of which is read on and on; whole
 * lines are put together in registers from a run of each strand in turn. Layer 3. */
#include "plan/cpu_braid.h"

#include "base/num.h"
#include "plan/sides.h"

enum {
    RUN_BYTES = 32,        /* a line has three parts at most */
    LONG_RUN_BYTES = 4096, /* two lines in parts do not count beside so many whole ones */
    ROW_BYTES = 4096,      /* of a strand in a call .. */
    ROW_ENTRIES = 256      /* .. and runs */
};

static void braid_of(const struct xti_map *m, int piece, struct xti_sides *x)
{
    xti_sides_begin(m, piece, x);
    xti_sides_unit(x, x->t.run);
    if (x->t.cd < 0)
        return;
    int64_t strands = xti_cost_strands(x->t.run);
    xti_side_widen(x, &x->col, strands * x->t.run, strands);
    xti_side_widen(x, &x->row, ROW_BYTES, ROW_ENTRIES);
}

/* Rows of the destination begin on lines, all or none. */
static bool on_lines(const struct xti_nest *t)
{
    int64_t bits = t->run * t->dim[t->cd].n;
    for (int i = 0; i < t->n_dims; i++)
        bits |= i == t->cd ? 0 : t->dim[i].d;
    return bits % XTI_LINE == 0;
}

bool xti_braid_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    struct xti_sides x;
    if (!xti_cost_streams_alone(p, piece, why))
        return false;
    if (!p->target.few_strands || p->target.isa != XTI_ISA_AVX512)
        return xti_refuse(why, "not made for this processor");
    braid_of(&p->map, piece, &x);
    if (x.t.run < RUN_BYTES || x.t.run >= LONG_RUN_BYTES)
        return xti_refuse(why, "runs of %lld B", (long long)x.t.run);
    if (x.col.n_dims != 1 || !x.row.n_dims)
        return xti_refuse(why, "no two dims along which the runs follow each other");
    if (!on_lines(&x.t))
        return xti_refuse(why, "rows of the destination begin anywhere");
    return x.col.units > 1 || xti_refuse(why, "runs of %lld B are whole lines", (long long)x.t.run);
}

void xti_braid_make(const struct xti_plan *p, int piece, struct xti_step *step)
{
    struct xti_sides x;
    braid_of(&p->map, piece, &x);
    step->kernel = XTI_CPU_BRAID;
    step->unit = (int)x.t.run;
    step->stream = true;
    xti_sides_step(&x, step);
}
