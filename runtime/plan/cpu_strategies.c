/* cpu_strategies.c: how a piece can be copied on a CPU, from the most special to the one that serves
 * everything. `applicable` has one condition a line; `make` fills the step. In: a piece of a checked map.
 * Layer 3. */
#include "base/num.h"
#include "plan/buffered.h"
#include "plan/cost.h"
#include "plan/cpu_braid.h"
#include "plan/cpu_tile.h"
#include "plan/loops.h"

enum {
    STRIDED_MAX = 8,       /* gen/kernels.py has strided for 2 .. 8 */
    SQUARE_ROWS = 8,       /* of which units of 2 bytes and more are transposed faster than deinterleaved */
    NEIGHBOURS = 8,        /* lines of a row that are streamed one soon after the other: 4 to 28 are alike */
    WEAVE_MIN_COLS = 8,    /* below it the rows of 2..8 units cost more than moving the units */
    CHUNK_BYTES = 1 << 18, /* long runs are cut so that threads can share them */
    BROADCAST_CHUNK_BYTES = 1 << 13, /* a run that is read again must still be in the first cache */
    STREAM_ROWS_BYTES = 4096,        /* of the source .. */
    STREAM_COLS_BYTES = 256,         /* .. and of the destination in a block of a streaming transpose */
    TURN_ROWS = 64,                  /* as many as turn.c.j2 has a stage for, of at most TURN_ROWS_BYTES */
    TURN_ROWS_BYTES = 384,
    SMALL_CALL_BYTES = 128, /* gathers serve when any other kernel would move less in one call */
};

static const struct xti_loop one = {.n = 1, .cuts = XTI_CUTS_NONE};

/* What every step begins with: one unit, the dims that are neither row nor col as loops. */
static void start(const struct xti_plan *p, const struct xti_nest *t, enum xti_cpu_op kernel, int unit,
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

static void finish(struct xti_step *step)
{
    xti_loops_order(step);
    xti_loops_take_row(step);
}

/* Units along one dim, of several rows or of one, in parts that threads can share. */
static void along(const struct xti_plan *p, const struct xti_nest *t, enum xti_cpu_op kernel, int row,
                  int col, bool align, struct xti_step *step)
{
    start(p, t, kernel, t->unit, row, col, step);
    xti_loops_block(step, XTI_CUTS_COL, CHUNK_BYTES / t->unit, align);
    finish(step);
}

/* Units along a contiguous dim of the destination. */
static bool one_side(const struct xti_nest *t, struct xti_why *why)
{
    return xti_nest_copies_units(t, why) &&
           (t->cd >= 0 || xti_refuse(why, "destination has no contiguous dim"));
}

/* ---- memcpy */

static bool memcpy_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!xti_nest_copies(t->piece, why))
        return false;
    if (t->n_dims)
        return xti_refuse(why, "%d dims beside the run of %lld B", t->n_dims, (long long)t->run);
    return true;
}

/* ---- rows: runs of bytes that are no unit of the other kernels */

static bool rows_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!xti_nest_copies(t->piece, why))
        return false;
    if (t->unit)
        return xti_refuse(why, "inner run of %d B is a unit", t->unit);
    return true;
}

static int smallest(const struct xti_step *step, bool source)
{
    int best = 0;
    for (int i = 1; i < step->n_loops; i++) {
        uint64_t a = xti_abs64(source ? step->loop[i].s : step->loop[i].d);
        uint64_t b = xti_abs64(source ? step->loop[best].s : step->loop[best].d);
        best = a < b ? i : best;
    }
    return best;
}

/* Runs shorter than a line: both sides' lines are used up block by block, while they are in the first cache.
 */
static void block_rows(struct xti_step *step, int64_t run)
{
    int a = smallest(step, true), b = smallest(step, false);
    int64_t block = 512 / run > 4 ? 512 / run : 4;
    if (a == b || step->loop[a].n <= block || step->loop[b].n <= block)
        return;
    xti_loops_block(step, a, block, false);
    xti_loops_block(step, b, block, false);
}

static void rows_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    bool again = false;
    start(p, t, XTI_CPU_BLOCKS, 1, -1, -1, step);
    step->col = (struct xti_loop){.n = t->run, .s = 1, .d = 1, .cuts = XTI_CUTS_NONE};
    for (int i = 0; i < t->n_dims; i++)
        again |= t->dim[i].s == 0;
    if (t->run < XTI_LINE && t->n_dims > 1 && t->bytes > p->target.l1_bytes / 2)
        block_rows(step, t->run);
    xti_loops_block(step, XTI_CUTS_COL, again ? BROADCAST_CHUNK_BYTES : CHUNK_BYTES, true);
    finish(step);
}

/* ---- fill */

static bool fill_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    const struct xti_piece *x = t->piece;
    if (x->src >= 0)
        return xti_refuse(why, "reads a source");
    if (!xti_piece_affine(x))
        return xti_refuse(why, "%d guards", x->n_guards);
    return true;
}

static void fill_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    start(p, t, XTI_CPU_FILL, t->esize, -1, -1, step);
    step->col = (struct xti_loop){.n = t->run / t->esize, .d = t->esize, .cuts = XTI_CUTS_NONE};
    xti_loops_block(step, XTI_CUTS_COL, CHUNK_BYTES / t->esize, true);
    finish(step);
}

/* ---- reverse */

static bool reverse_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!one_side(t, why))
        return false;
    if (t->dim[t->cd].s != -t->unit)
        return xti_refuse(why, "source stride of that dim is %lld B", (long long)t->dim[t->cd].s);
    return true;
}

static void reverse_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    along(p, t, XTI_CPU_REVERSE, -1, t->cd, false, step);
}

/* ---- mirror: groups of three elements in reverse order, as of RGB pixels */

static bool mirror_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!xti_nest_copies(t->piece, why))
        return false;
    if (t->run != XTI_GROUP * t->esize || t->esize > 8)
        return xti_refuse(why, "inner run of %lld B is not %d elements", (long long)t->run, XTI_GROUP);
    const struct xti_loop *groups = t->n_dims ? &t->dim[t->n_dims - 1] : NULL;
    if (!groups || groups->d != t->run || groups->s != -t->run)
        return xti_refuse(why, "the groups do not follow each other backwards");
    if (xti_cost_short_mirror(p, t->esize, groups->n * t->run))
        return xti_refuse(why, "%lld groups are few", (long long)groups->n);
    return true;
}

static void mirror_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    start(p, t, XTI_CPU_MIRROR, t->esize, -1, t->n_dims - 1, step);
    step->param = XTI_GROUP;
    xti_loops_block(step, XTI_CUTS_COL, CHUNK_BYTES / t->run, false);
    finish(step);
}

/* ---- turn: pictures of RGB pixels whose rows and columns change places */

static bool turn_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!xti_nest_copies(t->piece, why))
        return false;
    return xti_cost_turn(&p->target, t, why);
}

static void turn_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    struct xti_nest up = *t;
    if (t->dim[t->cs].s < 0)
        xti_nest_flip(&up, t->cs);
    start(p, &up, XTI_CPU_TURN, t->esize, t->cs, t->cd, step);
    step->param = (int)(t->run / t->esize);
    if (step->store.stream) {
        int64_t rows = TURN_ROWS_BYTES / t->run;
        xti_loops_block(step, XTI_CUTS_ROW, rows < TURN_ROWS ? rows : TURN_ROWS, false);
    } else if (t->bytes > p->target.l1_bytes / 2) {
        xti_loops_block(step, XTI_CUTS_ROW, 512 / t->run, false);
        xti_loops_block(step, XTI_CUTS_COL, 512 / t->run, false);
    }
    xti_loops_order(step);
}

/* ---- transposes: a dim contiguous in the source and another one contiguous in the destination */

static bool two_sides(const struct xti_nest *t, struct xti_why *why)
{
    return one_side(t, why) && (t->cs >= 0 || xti_refuse(why, "source has no contiguous dim beside it"));
}

static bool interleave_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!two_sides(t, why))
        return false;
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    int most = xti_cost_weave(&p->target, t->unit, cs->n * t->unit);
    if (cd->n > most)
        return xti_refuse(why, "destination's contiguous extent %lld > %d", (long long)cd->n, most);
    if (cs->d != cd->n * t->unit)
        return xti_refuse(why, "the groups of %lld do not follow each other", (long long)cd->n);
    if (cs->n < WEAVE_MIN_COLS)
        return xti_refuse(why, "source's contiguous extent %lld < %d", (long long)cs->n, WEAVE_MIN_COLS);
    return !cd->s || xti_cost_woven(p, t->unit) || xti_refuse(why, "wide units make squares");
}

static void interleave_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    step->param = (int)t->dim[t->cd].n;
    along(p, t, XTI_CPU_INTERLEAVE, t->cd, t->cs, false, step);
}

static bool deinterleave_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!two_sides(t, why))
        return false;
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    int most = xti_cost_weave(&p->target, t->unit, cd->n * t->unit);
    if (cs->n > most)
        return xti_refuse(why, "source's contiguous extent %lld > %d", (long long)cs->n, most);
    bool lines = cs->d % XTI_LINE == 0 || !xti_cost_stream(p);
    if (cs->n == SQUARE_ROWS && t->unit > 1 && lines)
        return xti_refuse(why, "%d rows make up squares", SQUARE_ROWS);
    if (cd->s != cs->n * t->unit)
        return xti_refuse(why, "the groups of %lld do not follow each other", (long long)cs->n);
    if (cd->n < WEAVE_MIN_COLS)
        return xti_refuse(why, "destination's contiguous extent %lld < %d", (long long)cd->n, WEAVE_MIN_COLS);
    return xti_cost_woven(p, t->unit) || xti_refuse(why, "wide units make squares");
}

/* The loop whose points are so many bytes of the destination apart, or -1. */
static int following(const struct xti_step *step, int64_t bytes)
{
    for (int i = 0; i < step->n_loops; i++)
        if (step->loop[i].d == bytes && step->loop[i].cuts == XTI_CUTS_NONE)
            return i;
    return -1;
}

static void deinterleave_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    start(p, t, XTI_CPU_DEINTERLEAVE, t->unit, t->cs, t->cd, step);
    step->param = (int)step->row.n;
    int next = xti_cost_single_lines(&p->target, step) ? following(step, XTI_LINE) : -1;
    if (next >= 0 && step->loop[next].n > NEIGHBOURS)
        xti_loops_block(step, next, NEIGHBOURS, false);
    else
        next = -1;
    xti_loops_block(step, XTI_CUTS_COL, CHUNK_BYTES / t->unit, false);
    xti_loops_order(step);
    if (next >= 0)
        xti_loops_innermost(step, following(step, XTI_LINE));
    xti_loops_take_row(step);
}

static int64_t longest(const struct xti_nest *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->n_dims; i++)
        n = t->dim[i].n > n ? t->dim[i].n : n;
    return n;
}

static bool transpose_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!two_sides(t, why))
        return false;
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    int64_t rows = cs->n * t->unit, cols = cd->n * t->unit;
    bool lanes = t->unit == XTI_LANE && cs->d % XTI_LINE == 0 && cols >= XTI_LINE;
    if (!lanes && xti_gather_few(p, t, rows))
        return xti_refuse(why, "source's runs of %lld B are gathered", (long long)rows);
    if (!xti_cost_squares(t->unit, rows, cols))
        return xti_refuse(why, "%lld x %lld units of %d B make up no squares", (long long)cs->n,
                          (long long)cd->n, t->unit);
    /* Left to gathers: f32 2^16 took three times as long in squares of 2 x 2. */
    if (longest(t) * t->unit < SMALL_CALL_BYTES && cs->n * cols < XTI_LINE)
        return xti_refuse(why, "%lld x %lld units of %d B are not worth a call", (long long)cs->n,
                          (long long)cd->n, t->unit);
    return true;
}

static void transpose_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    start(p, t, XTI_CPU_TRANSPOSE, t->unit, t->cs, t->cd, step);
    /* Whole lines need rows that begin alike; other rows go through the cache. */
    step->store.stream = step->store.stream && step->row.d % XTI_LINE == 0;
    step->store.squares = xti_cost_whole_lines(p, step);
    if (step->store.stream) {
        int64_t rows = p->target.machine->habits.prefetch_deep ? XTI_DEEP_ROW_BYTES : STREAM_ROWS_BYTES;
        xti_loops_block(step, XTI_CUTS_ROW, rows / t->unit, false);
        xti_loops_block(step, XTI_CUTS_COL, STREAM_COLS_BYTES / t->unit, true);
    }
    if (!step->store.stream && t->bytes > p->target.l1_bytes / 2) {
        bool ahead = t->unit > 1 && xti_cost_prefetch_writes(p);
        int64_t block = xti_cost_one_call(step) ? INT32_MAX : ahead && !step->store.squares ? 2048 : 512;
        xti_loops_block(step, XTI_CUTS_ROW, block / t->unit, false);
        xti_loops_block(step, XTI_CUTS_COL, block / t->unit, true);
    }
    xti_loops_order(step);
}

/* ---- broadcast, strided: the destination's contiguous dim with a special source stride */

static bool broadcast_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!one_side(t, why))
        return false;
    if (t->dim[t->cd].s != 0)
        return xti_refuse(why, "source stride of that dim is %lld B", (long long)t->dim[t->cd].s);
    /* Short fills of many values are a transpose whose source columns are all the same. */
    if (t->cs >= 0 && t->dim[t->cd].n * t->unit < XTI_LINE)
        return xti_refuse(why, "run of %lld B < %d B", (long long)(t->dim[t->cd].n * t->unit), XTI_LINE);
    return true;
}

static void broadcast_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    along(p, t, XTI_CPU_BROADCAST, -1, t->cd, true, step);
}

static bool strided_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!one_side(t, why))
        return false;
    int64_t s = t->dim[t->cd].s;
    if (s < 2 * t->unit || s > STRIDED_MAX * t->unit || s % t->unit)
        return xti_refuse(why, "source stride of that dim is %lld B", (long long)s);
    if (t->dim[t->cd].n < WEAVE_MIN_COLS)
        return xti_refuse(why, "extent %lld < %d", (long long)t->dim[t->cd].n, WEAVE_MIN_COLS);
    return true;
}

static void strided_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    step->param = (int)(t->dim[t->cd].s / t->unit);
    along(p, t, XTI_CPU_STRIDED, -1, t->cd, false, step);
}

/* ---- walk: any strides, unit by unit */

static bool walk_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    return xti_nest_copies_units(t, why);
}

static int longest_beside(const struct xti_nest *t, int other)
{
    int best = -1;
    for (int i = 0; i < t->n_dims; i++)
        if (i != other && (best < 0 || t->dim[i].n > t->dim[best].n))
            best = i;
    return best;
}

static void walk_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    /* Columns: the destination's contiguous dim when it is long, else the source's, else the longest. */
    int col = t->cd >= 0 && t->dim[t->cd].n >= WEAVE_MIN_COLS ? t->cd
              : t->cs >= 0                                    ? t->cs
                                                              : longest_beside(t, -1);
    int row = col == t->cd && t->cs >= 0 ? t->cs : col == t->cs && t->cd >= 0 ? t->cd : -1;
    start(p, t, XTI_CPU_WALK, t->unit, row, col, step);
    step->store.stream = false;
    if (t->bytes > p->target.l1_bytes / 2) {
        xti_loops_block(step, XTI_CUTS_COL, 64, false);
        if (row >= 0)
            xti_loops_block(step, XTI_CUTS_ROW, 64, false);
    }
    finish(step);
}

/* ---- general: divs and guards */

static bool general_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    return true;
}

static void general_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    xti_order_step(t, step);
    step->store.stream = xti_cost_stream(p);
}

/* clang-format off */
const struct xti_strategy xti_cpu_strategies[XTI_N_STRATEGIES] = {
    {"memcpy", "a plain copy", "it is copied whole",
     memcpy_applies, rows_make},
    {"fill", "a fill with one value", NULL,
     fill_applies, fill_make},
    {"mirror", "pixels in reverse order", "groups of elements are put in reverse in registers",
     mirror_applies, mirror_make},
    {"braid", "runs gathered from several places",
     "lines are put together from several streams of the source",
     xti_braid_applies, xti_braid_make},
    {"buffered", "blocks through a staging buffer",
     "blocks are put together in a buffer and leave as long runs",
     xti_buffered_applies, xti_buffered_make},
    {"turn", "a transpose of pixels", "groups of elements change places in registers",
     turn_applies, turn_make},
    {"rows", "a copy of runs", "each run is copied whole",
     rows_applies, rows_make},
    {"interleave", "planes to pixels", "the planes' lines are interleaved in registers",
     interleave_applies, interleave_make},
    {"deinterleave", "pixels to planes", "each plane's elements are picked out in registers",
     deinterleave_applies, deinterleave_make},
    {"mosaic", "a small permutation",
     "each line is put together from few lines of the source, permuted in registers",
     xti_mosaic_applies, xti_mosaic_make},
    {"reverse", "a reversed copy", "vectors are reversed in registers",
     reverse_applies, reverse_make},
    {"tile", "a transpose of several axes", "tiles as wide as lines on either side are turned in registers",
     xti_tile_applies, xti_tile_make},
    {"broadcast", "a broadcast", "each element is repeated along the lines that it fills",
     broadcast_applies, broadcast_make},
    {"transpose", "a transpose", "squares are turned in registers",
     transpose_applies, transpose_make},
    {"gather", "a gather", "each line is collected by a list of places",
     xti_gather_applies, xti_gather_make},
    {"strided", "every n-th element", "these are picked out in registers",
     strided_applies, strided_make},
    {"walk", "a strided copy", "elements move one by one",
     walk_applies, walk_make},
    {"general", "a copy with conditions", "each row goes as far as its conditions let",
     general_applies, general_make},
};
/* clang-format on */
