/* cpu_runs.c: strategies that go along the destination: runs, or units of one dim, whose steps in the source
 * tell the kernel. In: a piece of a checked map. Layer 3. */
#include "base/num.h"
#include "plan/cost.h"
#include "plan/cpu_strategies.h"
#include "plan/loops.h"

enum {
    STRIDED_MAX = 8,                 /* gen/kernels.py has strided for 2 .. 8 */
    STRIDED_LEAST = 8,               /* columns: fewer cost more than moving the units */
    CHUNK_BYTES = 1 << 18,           /* long runs are cut so that threads can share them */
    BROADCAST_CHUNK_BYTES = 1 << 13, /* a run that is read again must still be in the first cache */
};

static const struct xti_loop one = {.n = 1, .cuts = XTI_CUTS_NONE};

void xti_step_begin(const struct xti_plan *p, const struct xti_nest *t, enum xti_cpu_op kernel, int unit,
                    int row, int col, struct xti_step *step)
{
    step->kernel = kernel;
    step->unit = unit;
    step->s_byte = t->s_byte;
    step->d_byte = t->d_byte;
    step->row = row < 0 ? one : t->dim[row];
    step->col = col < 0 ? one : t->dim[col];
    for (int i = 0; i < t->n_dims; i++)
        if (i != row && i != col)
            step->loop[step->n_loops++] = t->dim[i];
    step->store.stream = xti_cost_stream(p);
}

static void in_chunks(struct xti_step *step, int64_t columns, bool align)
{
    xti_loops_block(step, XTI_CUTS_COL, columns, align);
    xti_loops_order(step);
    xti_loops_take_row(step);
}

void xti_step_along(const struct xti_plan *p, const struct xti_nest *t, enum xti_cpu_op kernel, int row,
                    int col, bool align, struct xti_step *step)
{
    xti_step_begin(p, t, kernel, t->unit, row, col, step);
    in_chunks(step, CHUNK_BYTES / t->unit, align);
}

static bool one_side(const struct xti_nest *t, struct xti_why *why)
{
    return xti_nest_copies_units(t, why) &&
           (t->cd >= 0 || xti_refuse(why, "destination has no contiguous dim"));
}

bool xti_nest_two_sides(const struct xti_nest *t, struct xti_why *why)
{
    return one_side(t, why) && (t->cs >= 0 || xti_refuse(why, "source has no contiguous dim beside it"));
}

/* ---- runs */

bool xti_memcpy_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    return xti_nest_copies(t->piece, why) &&
           (!t->n_dims || xti_refuse(why, "%d dims beside the run of %lld B", t->n_dims, (long long)t->run));
}

bool xti_rows_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    return xti_nest_copies(t->piece, why) &&
           (!t->unit || xti_refuse(why, "inner run of %d B is a unit", t->unit));
}

void xti_rows_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    bool again = false, turns = xti_cost_turns(p, t);
    xti_step_begin(p, t, XTI_CPU_BLOCKS, 1, -1, -1, step);
    step->store.stream &= !turns;
    step->choice.order = turns ? XTI_ORDER_SOURCE : step->choice.order;
    step->col = (struct xti_loop){.n = t->run, .s = 1, .d = 1, .cuts = XTI_CUTS_NONE};
    for (int i = 0; i < t->n_dims; i++)
        again |= t->dim[i].s == 0;
    in_chunks(step, again ? BROADCAST_CHUNK_BYTES : CHUNK_BYTES, true);
}

bool xti_fill_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (t->piece->src >= 0)
        return xti_refuse(why, "reads a source");
    return xti_piece_affine(t->piece) || xti_refuse(why, "%d guards", t->piece->n_guards);
}

void xti_fill_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    xti_step_begin(p, t, XTI_CPU_FILL, t->esize, -1, -1, step);
    step->col = (struct xti_loop){.n = t->run / t->esize, .d = t->esize, .cuts = XTI_CUTS_NONE};
    in_chunks(step, CHUNK_BYTES / t->esize, true);
}

/* Groups of three elements in reverse order, as of RGB pixels. */
bool xti_mirror_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!xti_nest_copies(t->piece, why))
        return false;
    if (t->run != XTI_GROUP * t->esize || t->esize > 8)
        return xti_refuse(why, "inner run of %lld B is not %d elements", (long long)t->run, XTI_GROUP);
    const struct xti_loop *groups = t->n_dims ? &t->dim[t->n_dims - 1] : NULL;
    return (groups && groups->d == t->run && groups->s == -t->run) ||
           xti_refuse(why, "the groups do not follow each other backwards");
}

void xti_mirror_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    xti_step_begin(p, t, XTI_CPU_MIRROR, t->esize, -1, t->n_dims - 1, step);
    step->param = XTI_GROUP;
    in_chunks(step, CHUNK_BYTES / t->run, false);
}

/* ---- units along one dim */

/* Its step in the source, in units. */
static bool steps_by(const struct xti_nest *t, int least, int most, struct xti_why *why)
{
    if (!one_side(t, why))
        return false;
    int64_t s = xti_nest_cd(t)->s;
    return (s >= least * t->unit && s <= most * t->unit && s % t->unit == 0) ||
           xti_refuse(why, "source stride of that dim is %lld B", (long long)s);
}

bool xti_reverse_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    return steps_by(t, -1, -1, why);
}

void xti_reverse_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    xti_step_along(p, t, XTI_CPU_REVERSE, -1, t->cd, false, step);
}

bool xti_broadcast_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    return steps_by(t, 0, 0, why) &&
           (xti_nest_cd(t)->n * t->unit >= XTI_LINE / 2 ||
            xti_refuse(why, "rows of %lld B", (long long)xti_nest_cd(t)->n * t->unit));
}

void xti_broadcast_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    xti_step_along(p, t, XTI_CPU_BROADCAST, -1, t->cd, true, step);
}

bool xti_strided_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!steps_by(t, 2, STRIDED_MAX, why))
        return false;
    int64_t n = xti_nest_cd(t)->n;
    return n >= STRIDED_LEAST || xti_refuse(why, "extent %lld < %d", (long long)n, STRIDED_LEAST);
}

void xti_strided_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    step->param = (int)(xti_nest_cd(t)->s / t->unit);
    xti_step_along(p, t, XTI_CPU_STRIDED, -1, t->cd, false, step);
}

/* ---- what is left: in the order of the destination */

bool xti_general_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    return true;
}

/* Rows of a few units that are walked: some points of the dim along which the source goes on in smallest
 * steps take the place of the columns, which become the rows, or the innermost loop. */
static void walk_along_source(struct xti_step *step)
{
    enum { FEW = 4, MANY = 8, SOME = 32 };
    struct xti_loop col = step->col, *best = NULL, *last;
    for (int i = step->n_loops; i >= 0; i--) {
        struct xti_loop *l = i == step->n_loops ? &step->row : &step->loop[i];
        if (l->n >= MANY && l->s && xti_abs64(l->s) <= xti_abs64((best ? best : &col)->s))
            best = l;
    }
    if (step->kernel != XTI_CPU_WALK || step->general || col.n > FEW || !best)
        return;
    step->col = *best;
    *best = col;
    xti_loops_block(step, XTI_CUTS_COL, SOME, false);
    last = &step->loop[step->n_loops - 1];
    if (step->tile.cols && best != &step->row) {
        *best = *last;
        *last = col;
    }
}

void xti_general_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    xti_order_step(t, step);
    step->store.stream = step->kernel != XTI_CPU_WALK && xti_cost_stream(p);
    walk_along_source(step);
}
