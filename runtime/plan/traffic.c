/* traffic.c: how many lines a step moves between the caches. Its nest is walked from the inside out; as long
 * as the lines that are touched fit a cache, they are fetched into it once. Layer 3. */
#include "plan/cost.h"

#include <stddef.h>
#include <string.h>

#include "base/num.h"

enum { MAX_AXES = XTI_MAX_LOOPS + 2, ROW = 0, COL = 1, LOOP = 2 };

enum side_of_copy { DESTINATION, SOURCE };

struct axis {
    int64_t n, tile; /* points, and those that the walk has come to cover */
    int64_t st[2];   /* of the destination, and of the source: bytes, upwards */
};

/* A nest from the inside out. */
struct walk {
    const struct xti_target *target;
    bool stream;
    int unit, n_axes;
    double total, covered;   /* points */
    bool over[XTI_N_CACHES]; /* the cache does not hold what is covered: `sum` has what it held last, times
                                its runs */
    struct xti_step_traffic sum;
    int n_by[2], by[2][MAX_AXES]; /* axes that are covered in part and move on a side, by stride, ascending */
    struct axis axis[MAX_AXES];
};

static void begin_axis(struct walk *w, int axis, enum side_of_copy side)
{
    int k = w->n_by[side], *by = w->by[side];
    int64_t st = w->axis[axis].st[side];
    if (!st)
        return;
    for (; k > 0 && w->axis[by[k - 1]].st[side] > st; k--)
        by[k] = by[k - 1];
    by[k] = axis;
    w->n_by[side]++;
}

struct cover {
    double lines, runs; /* runs: of adjacent lines */
};

/* Contiguous bytes begin anywhere, but for whole lines, which are taken to begin as one. */
static struct cover cover_of(const struct walk *w, enum side_of_copy side)
{
    double inside = 1 - (double)w->unit / XTI_LINE, runs = 1;
    uint64_t span = (uint64_t)w->unit; /* fits int64 */
    double lines = (double)(int64_t)span / XTI_LINE + (span % XTI_LINE ? inside : 0);
    for (int i = 0; i < w->n_by[side]; i++) {
        const struct axis *a = &w->axis[w->by[side][i]];
        uint64_t st = (uint64_t)a->st[side];
        bool adjacent = st <= span || st < XTI_LINE;
        span += (uint64_t)(a->tile - 1) * st;
        double all = (double)(int64_t)span / XTI_LINE + (span % XTI_LINE ? inside : 0),
               each = lines * (double)a->tile;
        bool apart = (runs > 1 || !adjacent) && each < all;
        lines = apart ? each : all;
        runs *= apart ? (double)a->tile : 1;
    }
    return (struct cover){lines, runs};
}

/* Lines of the cover that fall into one set, when addresses `span` bytes apart do, a power of two. */
static double crowd(const struct walk *w, enum side_of_copy side, int64_t span)
{
    double n = 1;
    for (int i = 0; i < w->n_by[side]; i++) {
        const struct axis *a = &w->axis[w->by[side][i]];
        int64_t sets = span >> __builtin_ctzll((uint64_t)(a->st[side] | span));
        n *= a->tile > sets ? (double)a->tile / (double)sets : 1;
    }
    return n;
}

static bool fits(const struct walk *w, int cache, double bytes)
{
    const int64_t size[] = {w->target->l1_bytes, w->target->l2_bytes, w->target->l3_bytes};
    const int64_t span[] = {4096, 128 << 10, 0}; /* a page; 1 or 2 MiB in 8 or 16 ways; hashed */
    if (bytes > 0.75 * (double)size[cache])
        return false;
    if (!span[cache])
        return true;
    double ways = (double)size[cache] / (double)span[cache];
    return crowd(w, SOURCE, span[cache]) + (w->stream ? 0 : crowd(w, DESTINATION, span[cache])) <= ways;
}

/* What is covered now is run total / covered times. in_registers: no cache is asked whether it holds it. */
static void account(struct walk *w, bool in_registers)
{
    if (w->over[0] && w->over[1] && w->over[2])
        return;
    struct cover s = cover_of(w, SOURCE), d = {0};
    if (!w->stream || !w->over[0])
        d = cover_of(w, DESTINATION);
    double bytes = (s.lines + (w->stream ? 0 : d.lines)) * XTI_LINE, times = w->total / w->covered;
    for (int c = 0; c < XTI_N_CACHES; c++) {
        w->over[c] = w->over[c] || (!in_registers && !fits(w, c, bytes));
        if (w->over[c])
            continue;
        w->sum.fetched[c] = times * s.lines;
        w->sum.stored[c] = times * d.lines;
        if (c == 0)
            w->sum.jumps = times * (s.runs + d.runs);
    }
}

static void set_tile(struct walk *w, int axis, int64_t tile)
{
    struct axis *a = &w->axis[axis];
    for (enum side_of_copy side = DESTINATION; side <= SOURCE && a->tile == 1 && tile > 1; side++)
        begin_axis(w, axis, side);
    w->covered *= (double)tile / (double)a->tile;
    a->tile = tile;
}

/* Covers `to` points of the axis, in steps: of a long run only the last few lines need be held. */
static void grow(struct walk *w, int axis, int64_t to)
{
    while (w->axis[axis].tile < to) {
        int64_t tile = w->axis[axis].tile;
        set_tile(w, axis, tile < to / 8 ? tile * 8 : to);
        account(w, false);
    }
}

static int64_t at_most(int64_t n, int64_t most) { return n < most ? n : most; }

int64_t xti_block_of(const struct xti_step *step, int cuts, int64_t n)
{
    for (int i = 0; i < step->n_loops; i++) {
        const struct xti_loop *l = &step->loop[i];
        n = l->cuts == cuts ? at_most(n, l->block * (l->each ? l->each : 1)) : n;
    }
    return n;
}

/* The axes of the kernel's rows or columns: one, or those of the dims of its list, outermost first. */
struct side {
    int first, n;
};

static struct side side_of(const struct xti_step *step, int cuts)
{
    int list = LOOP + step->n_loops;
    if (cuts == XTI_CUTS_ROW)
        return step->list.row_dims ? (struct side){list, step->list.row_dims} : (struct side){ROW, 1};
    return step->list.col_dims ? (struct side){list + step->list.row_dims, step->list.col_dims}
                               : (struct side){COL, 1};
}

/* The axis that a blocked loop goes over. */
static int axis_of(const struct xti_step *step, const struct xti_loop *l)
{
    if (l->cuts >= 0 && step->loop[l->cuts].cuts != XTI_CUTS_NONE) /* a loop over blocks, in parts */
        l = &step->loop[l->cuts];
    return l->cuts >= 0 ? LOOP + l->cuts : side_of(step, l->cuts).first;
}

static void add_axis(struct walk *w, const struct xti_loop *l, int64_t n)
{
    w->axis[w->n_axes++] = (struct axis){n, 1, {(int64_t)xti_abs64(l->d), (int64_t)xti_abs64(l->s)}};
}

static void start(struct walk *w, const struct xti_step *step, const struct xti_target *t, bool stream)
{
    memset(w, 0, offsetof(struct walk, by));
    w->target = t;
    w->stream = stream;
    w->unit = step->unit;
    w->covered = 1;
    add_axis(w, &step->row, step->list.row_dims ? 1 : step->row.n);
    add_axis(w, &step->col, step->list.col_dims ? 1 : step->col.n);
    for (int i = 0; i < step->n_loops + step->list.row_dims + step->list.col_dims; i++) {
        const struct xti_loop *l = &step->loop[i];
        add_axis(w, l, i < step->n_loops && l->cuts != XTI_CUTS_NONE ? 1 : l->n);
    }
    for (int i = 0; i < step->n_loops; i++)
        if (step->loop[i].cuts != XTI_CUTS_NONE)
            w->axis[axis_of(step, &step->loop[i])].n = step->loop[i].whole;
    w->total = 1;
    for (int i = 0; i < w->n_axes; i++)
        w->total *= (double)w->axis[i].n;
}

/* Points of an axis of the kernel in one call. */
static int64_t extent_of(const struct walk *w, const struct xti_step *step, int axis)
{
    if (axis < LOOP)
        return xti_block_of(step, axis == ROW ? XTI_CUTS_ROW : XTI_CUTS_COL, w->axis[axis].n);
    return step->loop[axis - LOOP].n;
}

/* Covers so many points of the rows or columns, from the inside, for registers to hold. */
static void hold(struct walk *w, const struct xti_step *step, int cuts, int64_t points)
{
    struct side side = side_of(step, cuts);
    for (int i = side.first + side.n - 1; i >= side.first && points > 1; i--) {
        set_tile(w, i, at_most(extent_of(w, step, i), points));
        points /= w->axis[i].tile;
    }
}

static void grow_side(struct walk *w, const struct xti_step *step, int cuts)
{
    struct side side = side_of(step, cuts);
    for (int i = side.first + side.n - 1; i >= side.first; i--)
        grow(w, i, extent_of(w, step, i));
}

/* A micro-kernel's own order: first what it holds in registers, a line or a square of lines; then its rows,
 * where it goes through them line by line of the columns, or its columns. */
static void walk_kernel(struct walk *w, const struct xti_step *step)
{
    const uint32_t squares = 1u << XTI_CPU_TRANSPOSE | 1u << XTI_CPU_TILE | 1u << XTI_CPU_TURN |
                             1u << XTI_CPU_INTERLEAVE | 1u << XTI_CPU_DEINTERLEAVE;
    bool square = squares >> step->kernel & 1;
    hold(w, step, XTI_CUTS_COL, XTI_LINE / step->unit);
    if (square)
        hold(w, step, XTI_CUTS_ROW, XTI_LINE / step->unit);
    account(w, true);
    if (square)
        grow_side(w, step, XTI_CUTS_ROW);
    grow_side(w, step, XTI_CUTS_COL);
    grow_side(w, step, XTI_CUTS_ROW);
}

static void walk_loops(struct walk *w, const struct xti_step *step)
{
    for (int i = step->n_loops - 1; i >= 0; i--) {
        const struct xti_loop *l = &step->loop[i];
        bool blocks = l->cuts != XTI_CUTS_NONE;
        grow(w, blocks ? axis_of(step, l) : LOOP + i, xti_block_of(step, i, blocks ? l->whole : l->n));
    }
}

void xti_step_traffic_of(const struct xti_step *step, const struct xti_target *t, bool stream,
                         struct xti_step_traffic *out)
{
    struct walk w;
    start(&w, step, t, stream);
    walk_kernel(&w, step);
    walk_loops(&w, step);
    *out = w.sum;
    out->source = cover_of(&w, SOURCE).lines;
    out->destination = cover_of(&w, DESTINATION).lines;
}
