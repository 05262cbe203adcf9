/* buffered.c: strategy buffered, for streaming copies whose runs are short or begin anywhere in a line. A
 * block of the piece, a virtual tile (sides.h), is put together in a buffer as the destination has it, by the
 * plan that is best inside the cache, or as a mosaic; then what is adjacent in the destination is streamed.
 * (FFTW's buffered plans) Layer 3. */
#include "plan/buffered.h"

#include "base/num.h"
#include "plan/cpu_tile.h"
#include "plan/group.h"
#include "plan/mosaic.h"
#include "plan/sides.h"

enum {
    LONG_RUN_BYTES = 2048,   /* two lines in parts do not count beside so many whole ones */
    WEAVE_BYTES = 1024,      /* of rows that weaves stream by themselves */
    CUT_RUN_BYTES = 512,     /* below it cut runs are left to tiles */
    TURN_BYTES = 512,        /* of turned runs that are streamed by themselves */
    SHORT_BYTES = 256,       /* runs of the source below it are fetched as parts of longer ones, .. */
    SHORT_UNITS_BYTES = 512, /* .. those that are transposed below this */
    LEAST_BYTES = 1024,      /* of a mosaic */
    JOINT_COL_BYTES = 256    /* of the rows of a joint plan that follow each other at least */
};

/* Bytes of a run on either side, in the order in which they are worth having. */
static const struct {
    int col, row;
} want[] = {{64, 64}, {256, 256}, {1024, 256}, {2048, 512}, {XTI_BLOCK_BYTES, 1024}};

static void block_of(const struct xti_plan *p, const struct xti_nest *t, int64_t most_col, bool through,
                     struct xti_sides *x)
{
    xti_sides_begin(t, x);
    int64_t read = p->joint.n ? xti_nest_rows(&p->map, 0, p->joint.row, &x->t) : x->t.run;
    x->rows_pass = through || p->joint.n;
    xti_sides_unit(x, x->t.run);
    x->row.bytes = read;
    x->even = x->lists = true;
    int64_t most = (p->joint.n ? XTI_JOINT_BYTES : XTI_BLOCK_BYTES) / x->t.run;
    if (p->joint.n)
        xti_side_widen(x, &x->col, JOINT_COL_BYTES, most);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        int64_t col = want[i].col < most_col ? want[i].col : most_col;
        xti_side_widen(x, &x->col, col, most / x->row.units);
        xti_side_widen(x, &x->row, want[i].row, most / x->col.units);
    }
}

/* Pixels whose rows and columns change places, in runs that are streamed by themselves. */
static bool turned_alone(const struct xti_target *target, const struct xti_nest *t)
{
    return xti_cost_turn(target, t, NULL) && t->dim[t->cd].n * t->run >= TURN_BYTES;
}

/* Of longer ones blocks have columns of few lines, which tiles read better. */
static int long_transposed(int unit) { return unit == 16 ? 900 : unit == 4 ? 300 : LONG_RUN_BYTES; }

/* Small ones one after the other, which need no buffer to be written in order. */
static bool small_matrices(const struct xti_nest *t, bool together)
{
    enum { SMALL = 600, SMALL_WOVEN = 400 };
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    int64_t bytes = cs->n * cd->n * t->unit;
    bool follow = bytes == XTI_LINE; /* far from the others, too */
    for (int i = 0; i < t->n_dims; i++)
        follow |= t->dim[i].d == bytes && xti_abs64(t->dim[i].s) <= 2 * (uint64_t)bytes;
    return follow && bytes < (together ? SMALL_WOVEN : SMALL) && cd->s == cs->n * t->unit;
}

/* Transposed rows that follow each other in the destination and share its lines. */
static bool units_serve(const struct xti_target *target, const struct xti_sides *block, struct xti_why *why)
{
    const struct xti_nest *t = &block->t;
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    if (!cs || !cd)
        return xti_refuse(why, "no dims contiguous on either side");
    if (target->machine->habits.prefetch_deep && !cd->s)
        return xti_refuse(why, "one unit again and again");
    int64_t run = cd->n * t->unit, few = cs->n < cd->n ? cs->n : cd->n, row = cs->n * cd->n / few * t->unit;
    bool woven = row >= XTI_LINE && few <= xti_cost_weave(target, t->unit, row);
    if (woven && (row >= WEAVE_BYTES || (row | target->d_line) % XTI_LINE == 0) && t->unit < XTI_LANE)
        return xti_refuse(why, "%lld rows of %lld B are woven", (long long)few, (long long)row);
    if (target->machine->habits.prefetch_deep && small_matrices(t, woven && cd->n < cs->n))
        return xti_refuse(why, "%lld x %lld units are transposed one by one", (long long)cs->n,
                          (long long)cd->n);
    if (cs->d != run)
        return xti_refuse(why, "transposed runs of %lld B do not follow each other", (long long)run);
    if (run % XTI_LINE == 0 && !(woven && target->d_line))
        return xti_refuse(why, "runs of %lld B are whole lines", (long long)run);
    if (!woven && !xti_cost_squares(t->unit, few * t->unit, row))
        return xti_refuse(why, "runs of %lld x %lld B make up no squares", (long long)run,
                          (long long)(cs->n * t->unit));
    if (block->col.bytes < run && block->col.bytes < CUT_RUN_BYTES)
        return xti_refuse(why, "runs of %lld B are cut into %lld B", (long long)run,
                          (long long)block->col.bytes);
    int long_run = target->machine->habits.prefetch_deep ? long_transposed(t->unit) : LONG_RUN_BYTES;
    return run < long_run || xti_refuse(why, "runs of %lld B >= %d B", (long long)run, long_run);
}

/* Are the source's runs read in the order in which they are written? */
static bool in_order(const struct xti_nest *t)
{
    int last = t->n_dims - 1;
    for (int i = 0; i < last; i++)
        if (xti_abs64(t->dim[i].s) < xti_abs64(t->dim[last].s))
            return false;
    return true;
}

static bool runs_serve(const struct xti_target *target, const struct xti_nest *t, struct xti_why *why)
{
    bool turned = xti_cost_turn(target, t, NULL);
    if (in_order(t))
        return xti_refuse(why, "runs follow each other alike on both sides");
    if (t->run >= LONG_RUN_BYTES)
        return xti_refuse(why, "runs of %lld B >= %d B", (long long)t->run, LONG_RUN_BYTES);
    if (turned_alone(target, t))
        return xti_refuse(why, "%lld runs are turned", (long long)t->dim[t->cd].n);
    bool begins = target->d_line && t->run < XTI_STREAMED_RUN;
    return begins || (t->run | xti_nest_bits(t, -1)) % XTI_LINE || turned ||
           xti_refuse(why, "rows of the destination are whole lines");
}

static void make_of(const struct xti_plan *p, const struct xti_sides *x, struct xti_step *step)
{
    step->stage.mosaics = x->rows_pass && !p->joint.n;
    step->stage.serves = true;
    step->unit = (int)x->t.run;
    step->store.stream = true;
    xti_sides_step(x, step);
    xti_group_blocks(
        p, x->t.unit || p->target.machine->habits.prefetch_deep ? SHORT_UNITS_BYTES : SHORT_BYTES, step);
}

/* The strategy that comes next. */
static const struct xti_strategy *next_strategy(const struct xti_plan *p, const struct xti_nest *t)
{
    const struct xti_strategy *x = p->strategies;
    while (x->make != xti_buffered_make)
        x++;
    return xti_strategy_next(p, x + 1, t);
}

/* Whether it is to pick units one by one. */
static bool gathered(const struct xti_plan *p, const struct xti_nest *t)
{
    return next_strategy(p, t)->make == xti_gather_make;
}

/* How many windows a line may have where blocks are mosaics; 0: something else is faster. It is gathers,
 * short rows backwards, small matrices and runs of a few bytes that gain by them. */
int xti_buffered_windows(const struct xti_plan *p, const struct xti_nest *t)
{
    enum { RUN = 9, BACK = 32, SIDE = 40, AREA = 192, WIDE_AREA = 128, NARROW = 2, SOME = 8, MANY = 16 };
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    if (!t->unit)
        return t->run <= RUN && !turned_alone(&p->target, t) ? MANY : 0;
    if (cd && cd->s == -t->unit)
        return cd->n * t->unit <= BACK ? SOME : 0;
    if (cs && cd && cd->s && cs->n * t->unit <= SIDE && cd->n * t->unit <= SIDE &&
        cs->n * cd->n * t->unit <= (t->unit < XTI_LANE / 2 ? AREA : WIDE_AREA))
        return SOME;
    return t->unit <= NARROW && gathered(p, t) ? MANY / t->unit : 0;
}

/* A block that is to be a mosaic: how many windows its lines may have; 0: something else is faster. */
static __attribute__((noinline)) int mosaic_block(const struct xti_plan *p, const struct xti_nest *t,
                                                  struct xti_piece *block, struct xti_dim d[2 * XTI_MAX_DIMS])
{
    struct xti_loop room[XTI_MAX_LOOPS];
    struct xti_step step = {.loop = room};
    struct xti_sides x;
    block_of(p, t, XTI_BLOCK_BYTES, true, &x);
    int most = xti_buffered_windows(p, t);
    if (!most || x.col.units * x.row.units == 1)
        return 0;
    make_of(p, &x, &step);
    xti_runs_sort(room + step.n_loops, step.list.row_dims + step.list.col_dims, false);
    *block = xti_block_piece(p, &step, 0, room + step.n_loops, d);
    return most;
}

static __attribute__((noinline)) bool windows_serve(const struct xti_plan *p, const struct xti_nest *t)
{
    struct xti_dim d[2 * XTI_MAX_DIMS];
    struct xti_piece block;
    if (!xti_may(&p->target, XTI_PERMUTED) || !xti_cost_windows(&p->target, p->bytes_written))
        return false;
    int most = mosaic_block(p, t, &block, d);
    if (!most || xti_mosaic_applies(p, t, NULL))
        return false;
    struct xti_plan sub = xti_block_plan(p, &block);
    struct xti_nest inner;
    xti_nest_of(&sub.map, 0, &inner);
    sub.most_windows = most;
    return sub.bytes_written >= LEAST_BYTES && xti_mosaic_applies(&sub, &inner, NULL);
}

bool xti_buffered_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    struct xti_sides block;
    if (!xti_cost_streams_alone(p, t, why))
        return false;
    if (windows_serve(p, t))
        return true;
    block_of(p, t, XTI_BLOCK_BYTES, false, &block);
    if (block.col.units * block.row.units == 1)
        return xti_refuse(why, "no dims to go with runs of %lld B", (long long)block.t.run);
    return block.t.unit ? units_serve(&p->target, &block, why) : runs_serve(&p->target, &block.t, why);
}

int64_t xti_buffered_run(const struct xti_plan *p)
{
    struct xti_loop room[XTI_MAX_LOOPS];
    struct xti_step step = {.loop = room};
    struct xti_sides x;
    struct xti_nest t;
    xti_nest_of(&p->map, 0, &t);
    block_of(p, &t, XTI_BLOCK_BYTES, false, &x);
    if (x.col.units * x.row.units == 1)
        return 0;
    make_of(p, &x, &step);
    return xti_group_source(p, &step, 0, step.n_loops).bytes;
}

void xti_buffered_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    struct xti_sides x;
    if (!p->joint.n && windows_serve(p, t)) {
        block_of(p, t, XTI_BLOCK_BYTES, true, &x);
        make_of(p, &x, step);
        return;
    }
    block_of(p, t, XTI_BLOCK_BYTES, false, &x);
    make_of(p, &x, step);
}
