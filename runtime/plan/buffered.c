/* buffered.c: strategy buffered, for streaming copies whose runs are short or begin anywhere in a line. A
 * block of the piece, a virtual tile (sides.h), is put together in a buffer as the destination has it, by the
 * plan that is best inside the cache, or as a mosaic; then what is adjacent in the destination is streamed.
 * (FFTW's buffered plans) Layer 3. */
#include "plan/buffered.h"

#include "base/num.h"
#include "plan/cpu_tile.h"
#include "plan/mosaic.h"
#include "plan/sides.h"

/* Measured on Emerald Rapids (2026-11): blocks of 8 and of 10 KiB 0.764 of the limit, of 12 KiB 0.736, over
 * the 18 u8 chains of ttc57 that come here, with calls of 2 KiB of transposes; the 9 of them that are
 * transposes with calls of 1 or 2 KiB 0.69, of 4 KiB 0.65. Calls of 4 KiB 0.73, of 2 KiB 0.71 in copies. Runs
 * of 32 to 176 bytes of u8 chains are fetched at 5 to 11 ns a line, at 4 to 5 in groups that make runs of 672
 * bytes and more of them. Copies of runs of 256 bytes lose by groups: 0.69 to 0.62; transposes of f32 that
 * read runs of 320 and 336 bytes win: 0.60 to 0.73.
 * Zen 5 (2026-11), the 17 copies of ttc57 as u8 and f16 that come here: fetched to the first cache 0.65, to
 * the second 0.60; in groups also below 512 bytes 0.67, 0.63 below 2048; in calls of 2 KiB 0.69, of 1 KiB
 * 0.66. Their 12 transposes 0.77, to the second cache 0.71. u8 1536 x 64 x 2144 to 64 x 1536 x 2144: 0.81, as
 * rows 0.42. */
enum {
    LONG_RUN_BYTES = 2048,  /* two lines in parts do not count beside so many whole ones */
    WEAVE_BYTES = 1024,     /* of rows that weaves stream by themselves */
    LONGER_RUN_BYTES = 4096, /* the same where prefetches go to the first cache */
    CUT_RUN_BYTES = 512,    /* u8 300 x 608 x 12 x 96 to 12 x 300 x 96 x 608: runs of 128 B 0.27 of the limit,
                               0.44 as a tile (Emerald Rapids, 2026-11) */
    TURN_BYTES = 512,       /* of turned runs that are streamed by themselves */
    CALL_BYTES = 4096,      /* of the kernel inside a block, see cpu/buffered.c; .. */
    NEAR_CALL_BYTES = 2048, /* .. when prefetches go to the first cache, .. */
    TRANSPOSE_BYTES = 2048, /* .. and of the one that transposes */
    NEAR_TRANSPOSE_BYTES = 2304, /* .. again: at most so many, where no part is less than a square. u8 300 x
                                    12 x 96 x 608 to 12 x 300 x 608 x 96 1.17 times as fast as in calls
                                    of 3072, f16 ttc50 1.4 times, 10 others alike (Zen 5, 2026-11) */
    SHORT_BYTES = 256,      /* runs of the source below it are fetched as parts of longer ones, .. */
    SHORT_UNITS_BYTES = 512, /* .. those that are transposed below this, .. */
    GROUP_RUN_BYTES = 4096,
    LESS_BYTES = 2048, /* of a block that is made smaller, .. */
    LESS_GROUP_BYTES = 64 << 10, /* .. and of its group, at most: u8 112 x 28 x 48 x 28 x 48 to 28 x 28 x 112
                                    x 48 x 48 1.28 times as fast as with four such blocks in one, whose groups
                                    have runs of 672 bytes; f16 0.8 times (Zen 5, 2026-11) */
    LEAST_BYTES = 1024, /* of a mosaic */
    JOINT_COL_BYTES = 256, /* of the rows of a joint plan that follow each other at least */
    GROUPS = 8, /* .. of a group of blocks. So many fit the second cache, of this size at most */
    NEAR_GROUPS = 7, /* .. when prefetches go to the first cache: u8 300 x 96 x 75 x 96 to 75 x 300 x 96 x 96,
                        15 blocks for 13, and f16 56 x 28 x 48 x 4 x 352 to 28 x 4 x 56 x 352 x 48, 16 for 8,
                        1.1 times as fast (Zen 5, 2026-11) */
    GROUP_BYTES = 1 << 20
};

/* Bytes of a run on either side, in the order in which they are worth having. */
static const struct {
    int col, row;
} want[] = {{64, 64}, {256, 256}, {1024, 256}, {2048, 512}, {XTI_BLOCK_BYTES, 1024}};

static void block_of(const struct xti_plan *p, int piece, int64_t most_col, bool through, struct xti_sides *x)
{
    xti_sides_begin(&p->map, piece, x);
    int64_t read = p->joint.n ? xti_nest_rows(&p->map, piece, p->joint.row, &x->t) : x->t.run;
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

/* Some rows of the destination begin inside a line. */
static bool ragged(const struct xti_nest *t)
{
    int64_t bits = t->run;
    for (int i = 0; i < t->n_dims; i++)
        bits |= t->dim[i].d;
    return bits % XTI_LINE;
}

/* Of longer ones blocks have columns of few lines, which tiles read better: c128 77 x 83601 does 2.3 times as
 * much so, 61, 101 and 125 for 77 1.6 to 1.7 times; f32 77 to 125 x 240001 1.3 to 2.4 times (105
 * 0.8), 45 0.68; f64 0.6 to 0.95. (Zen 5, 2026-11) */
static int long_transposed(int unit) { return unit == 16 ? 900 : unit == 4 ? 300 : LONG_RUN_BYTES; }

/* Transposed rows that follow each other in the destination and share its lines. */
static bool units_serve(const struct xti_target *target, const struct xti_sides *block, struct xti_why *why)
{
    const struct xti_nest *t = &block->t;
    if (t->cs < 0 || t->cd < 0)
        return xti_refuse(why, "no dims contiguous on either side");
    const struct xti_loop *cs = &t->dim[t->cs], *cd = &t->dim[t->cd];
    if (target->prefetch_deep && !cd->s)
        return xti_refuse(why, "one unit again and again");
    int64_t run = cd->n * t->unit, few = cs->n < cd->n ? cs->n : cd->n, row = cs->n * cd->n / few * t->unit;
    bool woven = row >= XTI_LINE && few <= xti_cost_weave(target, t->unit, row);
    if (woven && (row >= WEAVE_BYTES || row % XTI_LINE == 0) && t->unit < XTI_LANE)
        return xti_refuse(why, "%lld rows of %lld B are woven", (long long)few, (long long)row);
    if (cs->d != run)
        return xti_refuse(why, "transposed runs of %lld B do not follow each other", (long long)run);
    if (run % XTI_LINE == 0)
        return xti_refuse(why, "runs of %lld B are whole lines", (long long)run);
    if (!woven && !xti_cost_squares(t->unit, few * t->unit, row))
        return xti_refuse(why, "runs of %lld x %lld B make up no squares", (long long)run,
                          (long long)(cs->n * t->unit));
    if (block->col.bytes < run && block->col.bytes < CUT_RUN_BYTES)
        return xti_refuse(why, "runs of %lld B are cut into %lld B", (long long)run,
                          (long long)block->col.bytes);
    int long_run = target->prefetch_deep ? long_transposed(t->unit) : LONG_RUN_BYTES;
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
    int64_t long_run = target->prefetch_deep ? LONGER_RUN_BYTES : LONG_RUN_BYTES;
    if (in_order(t))
        return xti_refuse(why, "runs follow each other alike on both sides");
    if (t->run >= long_run)
        return xti_refuse(why, "runs of %lld B >= %lld B", (long long)t->run, (long long)long_run);
    if (turned && t->dim[t->cd].n * t->run >= TURN_BYTES)
        return xti_refuse(why, "%lld runs are turned", (long long)t->dim[t->cd].n);
    return ragged(t) || turned || xti_refuse(why, "rows of the destination are whole lines");
}

/* ---- groups of blocks */

static int64_t stride(const struct xti_loop *l, bool source) { return source ? l->s : l->d; }

/* Ascending. */
static void sort(struct xti_loop *dim, int n, bool source)
{
    for (int i = 1; i < n; i++) {
        struct xti_loop l = dim[i];
        int k = i;
        for (; k > 0 && xti_abs64(stride(&dim[k - 1], source)) > xti_abs64(stride(&l, source)); k--)
            dim[k] = dim[k - 1];
        dim[k] = l;
    }
}

static struct xti_runs runs_of(int64_t run, struct xti_loop *dim, int n, bool source)
{
    struct xti_runs r = {.bytes = run, .n_runs = 1};
    int i = 0;
    sort(dim, n, source);
    for (; i < n && stride(&dim[i], source) == r.bytes; i++)
        r.bytes *= dim[i].n;
    for (; i < n; i++) {
        r.n[r.n_dims] = dim[i].n;
        r.stride[r.n_dims++] = stride(&dim[i], source);
        r.n_runs *= dim[i].n;
    }
    return r;
}

/* What of the source is fetched: from the lowest unit on, and no line twice where runs lie near. */
static struct xti_runs fetched(int64_t run, struct xti_loop *dim, int n)
{
    struct xti_loop kept[XTI_MAX_LOOPS + XTI_MAX_DIMS];
    int64_t low = 0;
    int k = 0;
    for (int i = 0; i < n; i++) {
        low += dim[i].s < 0 ? (dim[i].n - 1) * dim[i].s : 0;
        dim[i].s = (int64_t)xti_abs64(dim[i].s);
    }
    sort(dim, n, true);
    for (int i = 0; i < n; i++)
        if (!k && dim[i].s <= run + XTI_LINE)
            run += (dim[i].n - 1) * dim[i].s;
        else
            kept[k++] = dim[i];
    struct xti_runs r = runs_of(run, kept, k, true);
    r.low = low;
    return r;
}

static int parts_of(const struct xti_plan *p) { return p->joint.n ? p->joint.n : 1; }

/* A loop or a dim of a block as it is for a part: with the stride of its source. */
static struct xti_loop of_part(const struct xti_plan *p, int part, const struct xti_loop *l)
{
    struct xti_loop out = *l;
    if (!p->joint.n)
        return out;
    const struct xti_piece *x = &p->map.piece[p->joint.piece[part]];
    for (int i = 0; i < x->n_dims; i++)
        if (x->dim[i].d * p->map.esize == (int64_t)xti_abs64(l->d))
            out.s = (l->d < 0 ? -x->dim[i].s : x->dim[i].s) * p->map.esize;
    return out;
}

/* Of the source of a group: of a part of a block, and of the loops from `group` on. */
static struct xti_runs source_of(const struct xti_plan *p, const struct xti_step *step, int part, int group)
{
    struct xti_loop dim[XTI_MAX_LOOPS + XTI_MAX_DIMS];
    int n = step->n_row_dims + step->n_col_dims;
    for (int k = 0; k < n; k++)
        dim[k] = of_part(p, part, &step->loop[step->n_loops + k]);
    for (int i = group; i < step->n_loops; i++) {
        const struct xti_loop *l = &step->loop[i];
        if (l->cuts == XTI_CUTS_NONE)
            dim[n++] = of_part(p, part, l);
        else
            dim[l->cuts == XTI_CUTS_ROW ? 0 : step->n_row_dims].n = l->whole;
    }
    const struct xti_piece *x = p->joint.n ? &p->map.piece[p->joint.piece[part]] : NULL;
    for (int i = 0; x && i < x->n_dims; i++)
        if (x->dim[i].d * p->map.esize < p->joint.row)
            dim[n++] = (struct xti_loop){.n = x->dim[i].n, .s = x->dim[i].s * p->map.esize};
    if (x)
        return fetched(p->map.esize, dim, n);
    return step->mosaics ? fetched(step->unit, dim, n) : runs_of(step->unit, dim, n, true);
}

/* Makes two loops of one: over even parts of at most so many points, and inside it over the points. */
static void part_loop(struct xti_step *step, int i, int64_t points)
{
    struct xti_loop *l = &step->loop[i];
    for (int k = step->n_loops++ + step->n_row_dims + step->n_col_dims; k > i; k--)
        step->loop[k] = step->loop[k - 1];
    l->whole = l->n;
    l->n = (l->whole + points - 1) / points;
    l->block = (l->whole + l->n - 1) / l->n;
    l->n = (l->whole + l->block - 1) / l->block;
    l->cuts = i + 1;
    l[1].n = l->block;
}

/* Of the part that reads most. */
static int64_t group_bytes(const struct xti_plan *p, const struct xti_step *step, int group)
{
    int64_t most = 0;
    for (int k = 0; k < parts_of(p); k++) {
        struct xti_runs r = source_of(p, step, k, group);
        int64_t bytes = r.bytes * r.n_runs;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Goes on with runs of the source below so many bytes, loop by loop. */
static void group_blocks(const struct xti_plan *p, int64_t below, struct xti_step *step)
{
    const struct xti_target *target = &p->target;
    int64_t share = target->l2_bytes / (target->prefetch_deep ? NEAR_GROUPS : GROUPS);
    int64_t most = (share < GROUP_BYTES ? share : GROUP_BYTES) / parts_of(p);
    struct xti_runs r = source_of(p, step, 0, step->n_loops), more;
    int64_t least = r.bytes < below ? GROUP_RUN_BYTES : 0;
    for (step->group = step->n_loops; step->group && r.bytes < least; step->group--, r = more) {
        int i = step->group - 1;
        int64_t points = most / group_bytes(p, step, step->group);
        more = source_of(p, step, 0, i);
        if (more.bytes == r.bytes)
            return;
        if (group_bytes(p, step, i) > most) {
            if (points > 1 && step->loop[i].cuts == XTI_CUTS_NONE)
                part_loop(step, i, points);
            return;
        }
    }
}

static void make_of(const struct xti_plan *p, const struct xti_sides *x, struct xti_step *step)
{
    step->mosaics = x->rows_pass && !p->joint.n;
    step->buffered = true;
    step->unit = (int)x->t.run;
    step->stream = true;
    xti_sides_step(x, step);
    group_blocks(p, x->t.unit || p->target.prefetch_deep ? SHORT_UNITS_BYTES : SHORT_BYTES, step);
}

/* Whether a group of blocks has short runs, and a block whole ones without the outermost dim of its columns.
 */
static bool may_be_less(const struct xti_plan *p, const struct xti_sides *x, const struct xti_step *step)
{
    return p->target.prefetch_deep && !p->joint.n && step->group < step->n_loops && x->col.n_dims &&
           x->col.bytes / x->col.take >= LESS_BYTES &&
           source_of(p, step, 0, step->group).bytes < GROUP_RUN_BYTES;
}

/* Makes it so; whether a group has long runs then. */
static bool make_less(const struct xti_plan *p, int piece, const struct xti_sides *x, struct xti_step *step)
{
    struct xti_sides less;
    block_of(p, piece, x->col.bytes / x->col.take, false, &less);
    make_of(p, &less, step);
    struct xti_runs r = source_of(p, step, 0, step->group);
    return r.bytes >= GROUP_RUN_BYTES && r.bytes * r.n_runs <= LESS_GROUP_BYTES;
}

/* The block as a piece: its dims, ascending in the destination, follow each other in the buffer. In elements;
 * d ends with the innermost, of which there are k. Returns how many there are. */
static int piece_of(int64_t run, int esize, const struct xti_loop *dim, int n, struct xti_dim *d, int k)
{
    int64_t bytes = run;
    for (int i = 0; i < n; bytes *= dim[i++].n) {
        struct xti_dim *in = &d[-k], out = {dim[i].n, dim[i].s / esize, bytes / esize};
        if (k && in->s * in->n == out.s && in->d * in->n == out.d)
            in->n *= out.n;
        else if (out.n > 1)
            d[-++k] = out;
    }
    return k;
}

/* Inside of a unit: a run, or what a part has there. Returns how many dims. */
static int unit_dims(const struct xti_plan *p, const struct xti_step *step, int part, struct xti_dim *d)
{
    const struct xti_piece *x = p->joint.n ? &p->map.piece[p->joint.piece[part]] : NULL;
    int k = 0;
    for (int i = x ? x->n_dims - 1 : -1; i >= 0 && x->dim[i].d * p->map.esize < p->joint.row; i--)
        d[-++k] = x->dim[i];
    if (!x && step->unit > p->map.esize)
        d[-++k] = (struct xti_dim){step->unit / p->map.esize, 1, 1};
    return k;
}

/* A block of all dims that a step's rows and columns stand for. */
static struct xti_piece block_piece(const struct xti_plan *p, const struct xti_step *step, int part,
                                    const struct xti_loop *dim, struct xti_dim d[2 * XTI_MAX_DIMS])
{
    struct xti_loop own[2 * XTI_MAX_DIMS];
    int n = step->n_row_dims + step->n_col_dims, k = unit_dims(p, step, part, d + 2 * XTI_MAX_DIMS);
    for (int i = 0; i < n; i++)
        own[i] = of_part(p, part, &dim[i]);
    k = piece_of(step->unit, p->map.esize, own, n, d + 2 * XTI_MAX_DIMS, k);
    return (struct xti_piece){.n_dims = k, .dim = d + 2 * XTI_MAX_DIMS - k};
}

static struct xti_plan plan_in_buffer(const struct xti_plan *p, const struct xti_piece *piece)
{
    struct xti_plan sub = {
        .target = p->target,
        .map = {.esize = p->map.esize, .n_pieces = 1, .piece = (struct xti_piece *)piece},
        .bytes_written = xti_piece_numel(piece) * p->map.esize};
    sub.target.threads = 1;
    sub.target.choice = (struct xti_choice){.stream = -1};
    return sub;
}

/* Whether the strategy that comes next is to pick units one by one. */
static bool gathered(const struct xti_plan *p, int piece)
{
    int i = 0;
    while (xti_cpu_strategies[i].make != xti_buffered_make)
        i++;
    for (i++; !xti_cpu_strategies[i].applicable(p, piece, NULL);)
        i++;
    return xti_cpu_strategies[i].make == xti_gather_make;
}

/* How many windows a line may have where blocks are mosaics; 0: something else is faster. What else is
 * gathered does 1.5 to 9 times as much so when units have one byte, two 2.4 to 4.6 times with 8 windows, 0.7
 * with 16; rows of up to 32 bytes backwards 1.1 to 8 times, of 40 bytes 0.75; transposed 3 x 3 to 5 x 3 f64,
 * 6 x 8 f32, 8 x 9 f16 1.7 to 18 times, 8 x 13 f32 and 15 x 15 f16 0.7; runs of 3 to 9 bytes 1.2 to 2.5
 * times, of 10 and 12 0.85 to 1.25. Of 1500 random chains 62 go so, 3.05 times as fast. (Zen 5, 2026-11) */
static int windows_worth(const struct xti_plan *p, int piece, const struct xti_nest *t)
{
    enum { RUN = 9, BACK = 32, SIDE = 40, AREA = 192, NARROW = 2, SOME = 8, MANY = 16 };
    const struct xti_loop *cs = t->cs < 0 ? NULL : &t->dim[t->cs], *cd = t->cd < 0 ? NULL : &t->dim[t->cd];
    if (!t->unit)
        return t->run <= RUN ? MANY : 0;
    if (cd && cd->s == -t->unit)
        return cd->n * t->unit <= BACK ? SOME : 0;
    if (cs && cd && cd->s && cs->n * t->unit <= SIDE && cd->n * t->unit <= SIDE)
        return cs->n * cd->n * t->unit <= AREA ? SOME : 0;
    return t->unit <= NARROW && gathered(p, piece) ? MANY / t->unit : 0;
}

static bool windows_serve(const struct xti_plan *p, int piece)
{
    struct xti_loop room[XTI_MAX_LOOPS];
    struct xti_step step = {.loop = room};
    struct xti_sides x;
    struct xti_dim d[2 * XTI_MAX_DIMS];
    if (!xti_cost_windows(&p->target, p->bytes_written))
        return false;
    block_of(p, piece, XTI_BLOCK_BYTES, true, &x);
    int most = windows_worth(p, piece, &x.t);
    if (!most || x.col.units * x.row.units == 1 || xti_mosaic_applies(p, piece, NULL))
        return false;
    make_of(p, &x, &step);
    sort(room + step.n_loops, step.n_row_dims + step.n_col_dims, false);
    struct xti_piece block = block_piece(p, &step, 0, room + step.n_loops, d);
    struct xti_plan sub = plan_in_buffer(p, &block);
    sub.most_windows = most;
    return sub.bytes_written >= LEAST_BYTES && xti_mosaic_applies(&sub, 0, NULL);
}

bool xti_buffered_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    struct xti_sides block;
    if (!xti_cost_streams_alone(p, piece, why))
        return false;
    if (windows_serve(p, piece))
        return true;
    block_of(p, piece, XTI_BLOCK_BYTES, false, &block);
    if (block.col.units * block.row.units == 1)
        return xti_refuse(why, "no dims to go with runs of %lld B", (long long)block.t.run);
    return block.t.unit ? units_serve(&p->target, &block, why) : runs_serve(&p->target, &block.t, why);
}

int64_t xti_buffered_run(const struct xti_plan *p)
{
    struct xti_loop room[XTI_MAX_LOOPS];
    struct xti_step step = {.loop = room};
    struct xti_sides x;
    block_of(p, 0, XTI_BLOCK_BYTES, false, &x);
    if (x.col.units * x.row.units == 1)
        return 0;
    make_of(p, &x, &step);
    return source_of(p, &step, 0, step.n_loops).bytes;
}

void xti_buffered_make(const struct xti_plan *p, int piece, struct xti_step *step)
{
    const struct xti_step begun = *step;
    struct xti_sides x;
    if (!p->joint.n && windows_serve(p, piece)) {
        block_of(p, piece, XTI_BLOCK_BYTES, true, &x);
        make_of(p, &x, step);
        return;
    }
    block_of(p, piece, XTI_BLOCK_BYTES, false, &x);
    make_of(p, &x, step);
    if (!may_be_less(p, &x, step))
        return;
    *step = begun;
    if (make_less(p, piece, &x, step))
        return;
    *step = begun;
    make_of(p, &x, step);
}

/* ---- blocks */

static void swap(struct xti_loop *a, struct xti_loop *b)
{
    struct xti_loop x = *a;
    *a = *b;
    *b = x;
}

static bool in_parts(const struct xti_step *step)
{
    for (int i = 0; i < step->n_loops; i++)
        if (step->loop[i].cuts != XTI_CUTS_NONE)
            return true;
    return false;
}

/* Calls of about so many bytes: of runs the longest loop is the kernel's rows; rows are cut. */
static void shape(struct xti_step *step, int64_t bytes, bool at_most)
{
    bool runs = step->kernel == XTI_CPU_BLOCKS;
    bool units = step->kernel == XTI_CPU_TRANSPOSE || step->kernel == XTI_CPU_TURN;
    int64_t lane = units ? XTI_LANE / step->unit : 1;
    int64_t rows = bytes / (step->col.n * step->unit * (step->param ? step->param : 1));
    int64_t whole = rows / lane * lane, left = whole ? step->row.n % whole : 0;
    rows = at_most && whole && (!left || left >= lane) ? whole : (rows + lane) / lane * lane;
    if (in_parts(step))
        return;
    for (int i = 0; i < step->n_loops && runs; i++)
        if (step->loop[i].n > step->row.n)
            swap(&step->row, &step->loop[i]);
    if (runs || units)
        xti_cost_block(step, XTI_CUTS_ROW, rows, false);
}

static void shape_calls(struct xti_step *step)
{
    shape(step, step->kernel == XTI_CPU_TRANSPOSE ? TRANSPOSE_BYTES : CALL_BYTES, false);
}

/* Tiles of bytes are larger than what is done beside them should wait: they take turns with it, so that calls
 * may be of whole blocks (a last part may be too small for it): 9 blocks of ttc57 as u8 do 1.02 to 1.25 times
 * as much, 5 as f16 1.0 to 1.2 times. (Zen 5, 2026-11) */
static bool takes_turns(const struct xti_step *step)
{
    enum { WIDEST = 2 };
    int64_t rows = step->row.n * step->unit, cols = step->col.n * step->unit, half = XTI_LINE / 2;
    return step->kernel == XTI_CPU_TRANSPOSE && step->unit <= WIDEST && !in_parts(step) &&
           ((rows >= half && cols >= half) || (rows >= XTI_LANE && cols >= XTI_LINE));
}

static void shape_near_calls(struct xti_step *step)
{
    bool transpose = step->kernel == XTI_CPU_TRANSPOSE;
    shape(step, transpose ? NEAR_TRANSPOSE_BYTES : NEAR_CALL_BYTES, transpose);
}

static void shape_turns(struct xti_step *step)
{
    step->turns = takes_turns(step);
    if (!step->turns)
        shape_near_calls(step);
}

static int64_t steps_of(const struct xti_step *step, int from)
{
    int64_t n = 1;
    for (int i = from; i < step->n_loops; i++)
        n *= step->loop[i].n;
    return n;
}

/* Where the buffers lie in lines is not known yet, and matters little. */
static xt_status make_table(struct xti_plan *p, struct xti_inner *out, struct xti_err *err)
{
    enum { ALIGN = _Alignof(struct xti_mosaic) }; /* more than the arena's */
    char *room = xti_arena_alloc(&p->arena, sizeof(struct xti_mosaic) + ALIGN - 1);
    struct xti_mosaic_of of = xti_mosaic_of(&out->step);
    if (!room)
        return xti_fail(err, XT_ENOMEM, "table of a mosaic");
    struct xti_mosaic *m = (struct xti_mosaic *)(room + (-(uintptr_t)room & (ALIGN - 1)));
    out->mosaic = xti_mosaic_table(&of, m) ? m : NULL;
    return XT_OK;
}

static xt_status plan_block(struct xti_plan *p, const struct xti_piece *piece, int windows,
                            struct xti_inner *out, struct xti_err *err)
{
    struct xti_plan sub = plan_in_buffer(p, piece);
    sub.most_windows = windows;
    sub.n_steps = 1;
    sub.step = &out->step;
    sub.arena = p->arena;
    bool deep = p->target.prefetch_deep, turns = deep && p->target.isa == XTI_ISA_AVX512;
    xt_status s =
        xti_plan_step(&sub, 0, turns ? shape_turns : deep ? shape_near_calls : shape_calls, err);
    if (!s && out->step.kernel == XTI_CPU_MOSAIC)
        s = make_table(&sub, out, err);
    p->arena = sub.arena;
    return s;
}

/* Of the kernels of a block. */
static int64_t calls_of(const struct xti_block *block, int parts)
{
    int64_t n = 0;
    for (int k = 0; k < parts; k++)
        n += steps_of(&block->inner[k].step, 0);
    return n;
}

/* Of a part of a block that is to be a mosaic. */
static int most_windows(const struct xti_plan *p, const struct xti_step *step, int part)
{
    struct xti_nest t;
    if (!p->joint.n)
        return step->mosaics ? XTI_MOSAIC_WINDOWS : 0;
    xti_nest_of(&p->map, p->joint.piece[part], &t);
    return windows_worth(p, p->joint.piece[part], &t);
}

static xt_status plan_inner(struct xti_plan *p, const struct xti_step *step, const struct xti_loop *dim,
                            struct xti_block *out, struct xti_err *err)
{
    int parts = parts_of(p);
    int64_t bytes = out->out.bytes * out->out.n_runs;
    xt_status s = XT_OK;
    if (!(out->inner = xti_arena_alloc(&p->arena, (size_t)parts * sizeof *out->inner)))
        return xti_fail(err, XT_ENOMEM, "%d parts", parts);
    for (int k = 0; k < parts && !s; k++) {
        struct xti_dim d[2 * XTI_MAX_DIMS];
        struct xti_piece piece = block_piece(p, step, k, dim, d);
        s = plan_block(p, &piece, most_windows(p, step, k), &out->inner[k], err);
    }
    if (s)
        return s;
    int64_t calls = calls_of(out, parts);
    out->stream_lines = (bytes / XTI_LINE + calls) / calls;
    return XT_OK;
}

/* Points of the last block that a loop cuts off, when it is a smaller one; else 0. */
static int64_t tail_of(const struct xti_step *step, int cuts)
{
    for (int i = 0; i < step->n_loops; i++)
        if (step->loop[i].cuts == cuts)
            return step->loop[i].whole % step->loop[i].block;
    return 0;
}

/* Of a piece of a joint plan: where it is in a row, and where its source begins, with dims that go the other
 * way. */
static void place_part(const struct xti_plan *p, const struct xti_step *step, const struct xti_piece *x,
                       struct xti_part *part)
{
    int e = p->map.esize;
    part->at = (x->doff - p->map.dst_lo) * e % p->joint.row;
    part->s_byte = x->soff * e;
    for (int i = 0; i < x->n_dims; i++)
        for (int k = 0; k < step->n_loops + step->n_row_dims + step->n_col_dims; k++)
            if (step->loop[k].d == -x->dim[i].d * e) {
                part->s_byte += (x->dim[i].n - 1) * x->dim[i].s * e;
                break;
            }
}

static xt_status plan_parts(struct xti_plan *p, const struct xti_step *step, struct xti_blocks *b,
                            struct xti_err *err)
{
    int64_t lines = 0;
    for (int k = 0; k < b->n_parts; k++) {
        struct xti_part *part = &b->part[k];
        const struct xti_piece *x = &p->map.piece[p->joint.n ? p->joint.piece[k] : step->piece];
        int64_t *s = xti_arena_alloc(&p->arena, (size_t)(step->n_loops + 1) * sizeof *s);
        if (!s)
            return xti_fail(err, XT_ENOMEM, "%d strides", step->n_loops);
        *part = (struct xti_part){.src = x->src, .s = s, .s_byte = step->s_byte};
        for (int i = 0; i < step->n_loops; i++)
            s[i] = of_part(p, k, &step->loop[i]).s;
        if (p->joint.n)
            place_part(p, step, x, part);
        part->in = source_of(p, step, k, step->group);
        lines += part->in.n_runs * ((part->in.bytes + (p->joint.n ? 2 * XTI_LINE - 2 : XTI_LINE)) / XTI_LINE);
    }
    int64_t calls = steps_of(step, step->group) * calls_of(&b->block[0][0], b->n_parts);
    b->fetch_lines = (lines + calls) / calls;
    return XT_OK;
}

xt_status xti_buffered_plan(struct xti_plan *p, struct xti_step *step, struct xti_err *err)
{
    int64_t row_tail = tail_of(step, XTI_CUTS_ROW), col_tail = tail_of(step, XTI_CUTS_COL);
    int n = step->n_row_dims + step->n_col_dims;
    struct xti_blocks *b = xti_arena_alloc(&p->arena, sizeof *b);
    struct xti_part *part = xti_arena_alloc(&p->arena, (size_t)parts_of(p) * sizeof *part);
    if (!b || !part)
        return xti_fail(err, XT_ENOMEM, "blocks");
    *b = (struct xti_blocks){.rows = step->row.n, .cols = step->col.n, .n_parts = parts_of(p), .part = part};
    if (p->joint.fills && !(b->value = xti_arena_dup(&p->arena, p->joint.value, sizeof p->joint.value)))
        return xti_fail(err, XT_ENOMEM, "value of a fill");
    for (int i = 0; i < 4; i++) {
        bool row = i / 2, col = i % 2;
        struct xti_block *out = &b->block[row][col];
        struct xti_loop dim[2 * XTI_MAX_DIMS];
        if ((row && !row_tail) || (col && !col_tail))
            continue;
        for (int k = 0; k < n; k++)
            dim[k] = step->loop[step->n_loops + k];
        if (row)
            dim[0].n = row_tail;
        if (col)
            dim[step->n_row_dims].n = col_tail;
        out->out = runs_of(step->unit, dim, n, false);
        xt_status s = plan_inner(p, step, dim, out, err);
        if (s)
            return s;
    }
    step->kernel = b->block[0][0].inner->step.kernel;
    step->blocks = b;
    return plan_parts(p, step, b, err);
}
