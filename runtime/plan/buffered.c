/* buffered.c: strategies buffered and permuted, for streaming copies whose runs are short or begin anywhere
 * in a line. A block of the piece, a virtual tile (sides.h), is put together in a buffer as the destination
 * has it, by the plan that is best inside the cache, or as a mosaic; then what is adjacent in the destination
 * is streamed. (FFTW's buffered plans) Layer 3. */
#include "plan/buffered.h"

#include "base/num.h"
#include "plan/mosaic.h"
#include "plan/sides.h"

enum {
    LONG_RUN_BYTES = 2048, /* two lines in parts do not count beside so many whole ones */
    WEAVE_BYTES = 1024,    /* of rows that weaves stream by themselves */
    CUT_RUN_BYTES = 512,   /* below it cut runs are left to tiles */
    TURN_BYTES = 512,      /* of turned runs that are streamed by themselves */
    LEAST_BYTES = 1024,    /* of a mosaic, of columns beside rows below a line */
    JOINT_COL_BYTES = 256  /* of the rows of a joint plan that follow each other at least */
};

/* Bytes of a run on either side, in the order in which they are worth having. */
static const struct {
    int col, row;
} want[] = {{64, 64}, {256, 256}, {1024, 256}, {2048, 512}, {XTI_BLOCK_BYTES, 1024}};

/* through: rows of the source go on behind whole columns, as mosaics read them. False: it is one run alone.
 */
static bool block_of(const struct xti_plan *p, const struct xti_nest *t, bool through, struct xti_sides *x)
{
    xti_sides_begin(t, x);
    int64_t read = p->joint.n ? xti_nest_rows(&p->map, 0, p->joint.row, &x->t) : t->run;
    x->rows_pass = through || p->joint.n;
    xti_sides_unit(x, x->t.run);
    x->row.bytes = read;
    x->even = x->lists = true;
    int64_t most = (p->joint.n ? XTI_JOINT_BYTES : XTI_BLOCK_BYTES) / x->t.run;
    if (p->joint.n)
        xti_side_widen(x, &x->col, JOINT_COL_BYTES, most);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        xti_side_widen(x, &x->col, want[i].col, most / x->row.units);
        xti_side_widen(x, &x->row, want[i].row, most / x->col.units);
    }
    return x->col.units * x->row.units > 1;
}

/* Pixels whose rows and columns change places, in runs that are streamed by themselves. */
static bool turned_alone(const struct xti_target *target, const struct xti_nest *t)
{
    return xti_cost_turn(target, t, NULL) && t->dim[t->cd].n * t->run >= TURN_BYTES;
}

/* Small ones, one after the other on both sides, need no buffer to be written in order; by AVX2 calls for so
 * little take longer than the buffer saves. */
static bool small_matrices(const struct xti_target *target, const struct xti_nest *t)
{
    enum { SMALL = 600 };
    int64_t bytes = xti_nest_cs(t)->n * xti_nest_cd(t)->n * t->unit;
    bool follow = target->isa == XTI_ISA_AVX2;
    for (int i = 0; i < t->n_dims; i++)
        follow |= t->dim[i].d == bytes && t->dim[i].s == bytes;
    return follow && bytes < SMALL;
}

/* Transposed rows that follow each other in the destination and share its lines. */
static bool units_serve(const struct xti_target *target, const struct xti_nest *t, struct xti_why *why)
{
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    if (!cs || !cd)
        return xti_refuse(why, "no dims contiguous on either side");
    if (!cd->s)
        return xti_refuse(why, "one unit again and again");
    int64_t run = cd->n * t->unit, few = cs->n < cd->n ? cs->n : cd->n, row = cs->n * cd->n / few * t->unit;
    bool woven = row >= XTI_LINE && few <= xti_cost_weave(target, t->unit, row);
    if (woven && (row >= WEAVE_BYTES || (row | target->d_line) % XTI_LINE == 0))
        return xti_refuse(why, "%lld rows of %lld B are woven", (long long)few, (long long)row);
    if (small_matrices(target, t))
        return xti_refuse(why, "matrices of %lld rows are transposed one by one", (long long)cs->n);
    if (cs->d != run)
        return xti_refuse(why, "transposed runs of %lld B do not follow each other", (long long)run);
    if (run % XTI_LINE == 0 && !(woven && target->d_line))
        return xti_refuse(why, "runs of %lld B are whole lines", (long long)run);
    if (target->isa == XTI_ISA_AVX2 && !woven && run < XTI_LINE && row >= LEAST_BYTES)
        return xti_refuse(why, "long columns of %lld B make up lines in the first cache", (long long)run);
    if (!woven && !xti_cost_squares(t->unit, few * t->unit, row))
        return xti_refuse(why, "runs of %lld x %d B make up no squares", (long long)few, t->unit);
    return run < LONG_RUN_BYTES || xti_refuse(why, "runs of %lld B >= %d B", (long long)run, LONG_RUN_BYTES);
}

/* Are the source's runs read in the order in which they are written? */
static bool in_order(const struct xti_nest *t)
{
    bool alike = true;
    for (int i = 0; i + 1 < t->n_dims; i++)
        alike &= xti_abs64(t->dim[i].s) >= xti_abs64(t->dim[t->n_dims - 1].s);
    return alike;
}

static bool runs_serve(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (in_order(t) || xti_cost_turns(p, t))
        return xti_refuse(why, "runs follow each other on both sides");
    int64_t most = p->target.isa == XTI_ISA_AVX2 ? XTI_STREAMED_RUN : LONG_RUN_BYTES;
    if (t->run >= most)
        return xti_refuse(why, "runs of %lld B >= %lld B", (long long)t->run, (long long)most);
    if (turned_alone(&p->target, t))
        return xti_refuse(why, "%lld runs are turned", (long long)t->dim[t->cd].n);
    bool begins = p->target.d_line && t->run < XTI_STREAMED_RUN;
    return begins || (t->run | xti_nest_bits(t, -1)) % XTI_LINE || xti_cost_turn(&p->target, t, NULL) ||
           xti_refuse(why, "rows of the destination are whole lines");
}

/* Without groups. False: as block_of. */
static bool make_block(const struct xti_plan *p, const struct xti_nest *t, bool through,
                       struct xti_step *step)
{
    struct xti_sides x;
    bool serves = block_of(p, t, through, &x);
    step->stage.mosaics = x.rows_pass && !p->joint.n;
    step->stage.serves = true;
    step->unit = (int)x.t.run;
    step->store.stream = true;
    xti_sides_step(&x, step);
    return serves;
}

/* Runs of a few bytes, short rows backwards and small matrices gain by mosaics. */
int xti_buffered_windows(const struct xti_plan *p, const struct xti_nest *t)
{
    enum { RUN = 9, BACK = 32, SIDE = 40, AREA = 192, SOME = 8, MANY = 16 };
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    if (!t->unit)
        return t->run <= RUN && !turned_alone(&p->target, t) ? MANY : 0;
    if (cd && cd->s == -t->unit)
        return cd->n * t->unit <= BACK ? SOME : 0;
    bool small = cs && cd && cd->s && cs->n * t->unit <= SIDE && cd->n * t->unit <= SIDE;
    return small && cs->n * cd->n * t->unit <= AREA ? SOME : 0;
}

/* A block as a piece. */
static __attribute__((noinline)) bool mosaic_block(const struct xti_plan *p, const struct xti_nest *t,
                                                   struct xti_piece *block,
                                                   struct xti_dim d[2 * XTI_MAX_DIMS])
{
    struct xti_loop room[XTI_MAX_LOOPS];
    struct xti_step step = {.loop = room};
    if (!make_block(p, t, true, &step))
        return false;
    xti_runs_sort(room + step.n_loops, step.list.row_dims + step.list.col_dims, false);
    *block = xti_block_piece(p, &step, 0, room + step.n_loops, d);
    return true;
}

/* Whether blocks are mosaics of so many windows a line. */
static __attribute__((noinline)) bool blocks_permute(const struct xti_plan *p, const struct xti_nest *t,
                                                     int most)
{
    struct xti_dim d[2 * XTI_MAX_DIMS];
    struct xti_piece block;
    struct xti_nest inner;
    if (!mosaic_block(p, t, &block, d))
        return false;
    struct xti_plan sub = xti_block_plan(p, &block);
    sub.most_windows = most;
    xti_nest_of(&sub.map, 0, &inner);
    return sub.bytes_written >= LEAST_BYTES && xti_mosaic_applies(&sub, &inner, NULL);
}

bool xti_permuted_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!xti_cost_streams_alone(p, t, why))
        return false;
    int most = xti_mosaic_serves(p, t->run & -t->run) ? xti_mosaic_most(p, t, xti_buffered_windows(p, t)) : 0;
    if (!most)
        return xti_refuse(why, "no short runs, or not for this processor");
    if (xti_mosaic_applies(p, t, NULL))
        return xti_refuse(why, "without a buffer, too");
    return blocks_permute(p, t, most) || xti_refuse(why, "lines lie in more than %d windows", most);
}

void xti_permuted_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    make_block(p, t, true, step);
    xti_group_blocks(p, step);
}

bool xti_buffered_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    struct xti_sides block;
    if (!xti_cost_streams_alone(p, t, why) ||
        !(t->unit ? units_serve(&p->target, t, why) : runs_serve(p, t, why)))
        return false;
    if (!block_of(p, t, false, &block))
        return xti_refuse(why, "no dims to go with runs of %lld B", (long long)t->run);
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    int64_t col = block.col.bytes, row = block.row.bytes, run = t->unit ? cd->n * t->unit : 0;
    bool cut = col < run && col < CUT_RUN_BYTES;
    if (p->target.isa == XTI_ISA_AVX2) /* whose tiles want neither to be long */
        cut = col < run ||
              (run >= CUT_RUN_BYTES / 2 && row < 2 * XTI_LINE && t->unit > 2 && row < cs->n * t->unit);
    return !cut || xti_refuse(why, "runs are cut into %lld x %lld B", (long long)row, (long long)col);
}

void xti_buffered_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    make_block(p, t, false, step);
    xti_group_blocks(p, step);
}

int64_t xti_buffered_run(const struct xti_plan *p)
{
    struct xti_loop room[XTI_MAX_LOOPS];
    struct xti_step step = {.loop = room};
    struct xti_nest t;
    xti_nest_of(&p->map, 0, &t);
    return make_block(p, &t, false, &step) ? xti_group_source(p, &step, 0, step.n_loops).bytes : 0;
}
