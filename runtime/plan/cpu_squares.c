/* cpu_squares.c: strategies for two dims, of which one is contiguous in the source and the other in the
 * destination: planes and pixels, transposes. In: a piece of a checked map. Layer 3. */
#include "base/num.h"
#include "plan/cost.h"
#include "plan/cpu_strategies.h"
#include "plan/loops.h"

enum {
    STREAM_COLS_BYTES = 1024, /* of the columns in a block of a streaming transpose, .. */
    PAGE_BYTES = 4096,        /* of the source's rows, below which it has by AVX2 .. */
    PAGE_PANELS = 4,          /* .. so many panels: most rows are read from end to end */
    BLOCK_BYTES = 512,        /* of both in one through the cache, .. */
    AHEAD_BLOCK_BYTES = 2048, /* .. where lines are fetched ahead of stores */
    LONG_BYTES = 4096,        /* of rows whose ends do not count */
    TURN_ROWS = 64,           /* as many as turn.c.j2 has a stage for, of at most TURN_ROWS_BYTES */
    TURN_ROWS_BYTES = 384,
};

/* ---- planes to pixels, and back */

/* Of fewer pixels than a vector has all units would be moved one by one. */
static const int vector_bytes[XTI_ISA_COUNT] = {
    [XTI_ISA_AVX2] = 32, [XTI_ISA_AVX512] = 64, [XTI_ISA_NEON] = 32};

/* So few planes are woven, whose pixels follow each other on both sides. */
static bool weaves(const struct xti_plan *p, const struct xti_nest *t, const struct xti_loop *planes,
                   const struct xti_loop *pixels, int64_t step, struct xti_why *why)
{
    enum { MANY = 8 };
    int most = xti_cost_weave(&p->target, t->unit, pixels->n * t->unit);
    if (planes->n > most)
        return xti_refuse(why, "%lld planes > %d", (long long)planes->n, most);
    if (planes->n >= MANY && planes->s && planes->n * t->unit % XTI_LANE == 0 && !xti_cost_stream(p))
        return xti_refuse(why, "%lld planes make up squares", (long long)planes->n);
    if (step != planes->n * t->unit)
        return xti_refuse(why, "the pixels of %lld do not follow each other", (long long)planes->n);
    return pixels->n * t->unit >= vector_bytes[p->target.isa] ||
           xti_refuse(why, "%lld pixels of %d B fill no vector", (long long)pixels->n, t->unit);
}

bool xti_interleave_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    return xti_nest_two_sides(t, why) && weaves(p, t, xti_nest_cd(t), xti_nest_cs(t), xti_nest_cs(t)->d, why);
}

void xti_interleave_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    step->param = (int)xti_nest_cd(t)->n;
    xti_step_along(p, t, XTI_CPU_INTERLEAVE, t->cd, t->cs, false, step);
}

bool xti_deinterleave_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    return xti_nest_two_sides(t, why) && weaves(p, t, xti_nest_cs(t), xti_nest_cd(t), xti_nest_cd(t)->s, why);
}

void xti_deinterleave_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    step->param = (int)xti_nest_cs(t)->n;
    /* Short rows go through the cache (weave.c.j2): those that share lines one after the other. */
    enum { SHORT = 4 * XTI_LINE, WIDE = 8, SEVERAL = 4, MANY = 6, SHARED = 32 };
    int64_t row = xti_nest_cd(t)->n * t->unit, planes = xti_nest_cs(t)->d;
    bool ragged = (row | xti_nest_bits(t, t->cd)) % XTI_LINE;
    if (!step->choice.order && row < SHORT && ragged)
        step->choice.order = XTI_ORDER_DESTINATION;
    xti_step_along(p, t, XTI_CPU_DEINTERLEAVE, t->cs, t->cd, false, step);
    /* By AVX2 streamed lines of several planes wait for each other where they lie pages apart, or parts of
     * many where these begin inside of lines. */
    step->store.stream &= p->target.isa != XTI_ISA_AVX2 || p->target.choice.stream || t->unit >= WIDE ||
                          step->param < SEVERAL || row < SHORT ||
                          (planes % (SHARED * XTI_LINE) && (step->param < MANY || !ragged));
}

/* ---- transposes */

/* In the cache many calls for few units take longer than gather instructions. */
static bool gathered_near(const struct xti_plan *p, const struct xti_nest *t, int64_t rows, int64_t cols)
{
    enum { SMALL = 256, SQUARE = 32, MANY = 16 * SMALL };
    int gathers = p->target.machine->habits.gathers;
    return gathers && t->unit >= gathers && t->unit < XTI_LANE && p->target.isa == XTI_ISA_AVX512 &&
           !xti_cost_stream(p) && t->bytes >= MANY && rows * cols / t->unit < SMALL &&
           (rows | cols) % SQUARE && xti_gather_applies(p, t, NULL);
}

bool xti_transpose_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    if (!xti_nest_two_sides(t, why))
        return false;
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    int64_t rows = cs->n * t->unit, cols = cd->n * t->unit;
    bool lanes = t->unit == XTI_LANE && cs->d % XTI_LINE == 0 && cols >= XTI_LINE;
    if (!lanes && (xti_gather_few(p, t, rows) || gathered_near(p, t, rows, cols)))
        return xti_refuse(why, "source's runs of %lld B are gathered", (long long)rows);
    return xti_cost_squares(t->unit, rows, cols) ||
           xti_refuse(why, "%lld x %lld units make up no squares", (long long)cs->n, (long long)cd->n);
}

/* Bytes from a call to the one that goes on behind its rows, of so many; 0: there is none. */
static int64_t until_next(const struct xti_step *step, int64_t row)
{
    int64_t until = step->row.n * row;
    int i = step->n_loops;
    while (i-- && step->loop[i].d != row)
        until *= step->loop[i].cuts == XTI_CUTS_NONE ? step->loop[i].n : 1;
    return i < 0 ? 0 : until;
}

void xti_transpose_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    xti_step_begin(p, t, XTI_CPU_TRANSPOSE, t->unit, t->cs, t->cd, step);
    /* Whole lines need rows that have one, and begin alike; other rows go through the cache. */
    int64_t rows = step->row.n * step->unit, cols = step->col.n * step->unit;
    step->store.stream =
        step->row.d % XTI_LINE == 0 && rows >= XTI_LANE && cols >= XTI_LINE &&
        xti_cost_streams_rows(p, t->unit, rows, cols, (t->d_byte | xti_nest_bits(t, t->cd)) % XTI_LINE);
    /* Past the caches what is read once is read as it lies, but for squares that are long runs of it. */
    bool run = step->col.s == rows && rows * step->col.n >= BLOCK_BYTES, avx2 = p->target.isa == XTI_ISA_AVX2;
    bool past = avx2 && !step->store.stream && xti_cost_stream(p) && !step->choice.order;
    if (past && !run &&
        p->map.src_hi[t->piece->src] - p->map.src_lo[t->piece->src] >= xti_piece_numel(t->piece) - 1)
        step->choice.order = XTI_ORDER_SOURCE;
    step->store.halves = xti_cost_halves(p, step);
    step->store.squares = !step->store.halves && xti_cost_whole_lines(p, step);
    if (step->store.stream) {
        step->kernel = XTI_CPU_TILE;
        int64_t panels = avx2 && rows <= PAGE_BYTES ? PAGE_PANELS : 1;
        xti_loops_block(step, XTI_CUTS_ROW, panels * xti_cost_panel_rows(&p->target), false);
        xti_loops_block(step, XTI_CUTS_COL, STREAM_COLS_BYTES / t->unit, true);
    } else if (t->bytes > p->target.l1_bytes / 2) {
        bool ahead = t->unit > 1 && xti_cost_prefetch_writes(p) && !step->store.squares;
        int64_t block = xti_cost_one_call(step) ? INT32_MAX : ahead ? AHEAD_BLOCK_BYTES : BLOCK_BYTES;
        xti_loops_block(step, XTI_CUTS_ROW, block / t->unit, false);
        xti_loops_block(step, XTI_CUTS_COL, block / t->unit, true);
    }
    xti_loops_order(step);
    /* Lines that rows share are whole sooner by the destination's order. */
    if (past && cols < LONG_BYTES && (cols | xti_nest_bits(t, t->cd)) % XTI_LINE &&
        until_next(step, cols) > 2 * p->target.l2_bytes) {
        step->choice.order = XTI_ORDER_DESTINATION;
        xti_loops_order(step);
    }
}

/* Pictures of RGB pixels whose rows and columns change places. */
bool xti_turn_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    return xti_nest_copies(t->piece, why) && xti_cost_turn(&p->target, t, why);
}

void xti_turn_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    struct xti_nest up;
    xti_nest_copy(t, &up);
    if (t->dim[t->cs].s < 0)
        xti_nest_flip(&up, t->cs);
    xti_step_begin(p, &up, XTI_CPU_TURN, t->esize, t->cs, t->cd, step);
    step->param = XTI_GROUP;
    if (step->store.stream) {
        int64_t rows = TURN_ROWS_BYTES / t->run;
        xti_loops_block(step, XTI_CUTS_ROW, rows < TURN_ROWS ? rows : TURN_ROWS, false);
    } else if (t->bytes > p->target.l1_bytes / 2) {
        xti_loops_block(step, XTI_CUTS_ROW, BLOCK_BYTES / t->run, false);
        xti_loops_block(step, XTI_CUTS_COL, BLOCK_BYTES / t->run, false);
    }
    xti_loops_order(step);
}
