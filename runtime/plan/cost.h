/* cost.h: the measured numbers behind CPU plans and the rules built on them: when stores bypass the cache,
 * which kernels and tiles serve, what waits for what; the lines that a step moves between memory and each
 * cache (traffic.c). Internal to plan. Layer 3. */
#ifndef XTI_PLAN_COST_H
#define XTI_PLAN_COST_H

#include "plan/nest.h"

enum {
    XTI_GROUP = 3 /* units that mirror and turn move together (gen/kernels.py); 2 and 4 are a wider unit */
};

/* ---- what guards hide */

/* Of a triangle whose rows are no long runs of the source a box had better be copied, or filled, by the
 * strategy that is best for boxes, and what guards hide of it written afterwards: its piece. -1: there is
 * none. */
int xti_cost_covered(const struct xti_plan *p);

/* ---- what is streamed */

/* Whether a copy should not leave what it writes in the cache. */
bool xti_cost_stream(const struct xti_plan *p);
bool xti_cost_streams(const struct xti_target *t, int64_t bytes); /* .. so many that are written */

/* Whether a piece is a whole copy past the cache, without divs and guards. */
bool xti_cost_streams_alone(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why);

/* Whether the memory would wait for a step that is put together part by part. */
bool xti_cost_part_waits(const struct xti_plan *p, const struct xti_step *step);

/* ---- streamed lines, and what they are made of */

/* Whether runs that follow each other in the source, and go to some places of the destination in turn, each
 * behind the one before, are stored as they are read: by AVX2, where a cache holds the lines of all places
 * until these are whole, that takes less than a buffer. */
bool xti_cost_turns(const struct xti_plan *p, const struct xti_nest *t);

/* Whether a streaming tile of narrow units does without a stage. */
bool xti_cost_unstaged(const struct xti_target *t, const struct xti_step *step);

/* Whether tiles of so many bytes of the source and of the destination stream. By AVX2 lines of rows that
 * begin anywhere are put together in a stage, from whole squares (tile.c.j2): short rows, and few of them,
 * take less through the cache. */
bool xti_cost_streams_rows(const struct xti_plan *p, int unit, int64_t rows, int64_t cols, bool ragged);

/* Rows of a streaming tile of which two lines of columns take an eighth of the second cache: those in work
 * and those that are fetched meanwhile stay there. */
int64_t xti_cost_panel_rows(const struct xti_target *t);

/* ---- which kernel */

/* The step that writes most; NULL: there is none. */
const struct xti_step *xti_cost_main(const struct xti_plan *p);

/* Whether so many bytes on either side make up squares of a transpose. */
bool xti_cost_squares(int unit, int64_t rows_bytes, int64_t cols_bytes);

/* The most rows of so many bytes each that interleave and deinterleave serve; of short ones fewer than make
 * up squares. */
int xti_cost_weave(const struct xti_target *t, int unit, int64_t row_bytes);

/* Whether the turn kernel serves: runs of three elements, a row of them in the source, another in the
 * destination, and an instruction set that has it. */
bool xti_cost_turn(const struct xti_target *t, const struct xti_nest *n, struct xti_why *why);

/* ---- through the caches */

/* Whether a step that does not stream should prefetch what it will write. */
bool xti_cost_prefetch_writes(const struct xti_plan *p);

/* Whether a transpose through the cache should move squares of whole lines. */
bool xti_cost_whole_lines(const struct xti_plan *p, const struct xti_step *step);

/* Whether a transpose in the first cache is made by vectors of 256 bits where there are ones of 512. */
bool xti_cost_halves(const struct xti_plan *p, const struct xti_step *step);

/* Whether one call goes over the whole of a transpose through the cache, else over blocks. */
bool xti_cost_one_call(const struct xti_step *step);

/* 64-byte lines. [i]: into cache i + 1 from what is behind it, in one run that finds every cache empty. */
struct xti_step_traffic {
    double fetched[XTI_N_CACHES]; /* of the source */
    double stored[XTI_N_CACHES];  /* of the destination, when they go through the caches */
    double source, destination;   /* different ones */
    double jumps; /* runs of adjacent lines on both sides, a run ends where another place goes on */
};

/* step is affine. stream: the destination's lines bypass the caches. */
void xti_step_traffic_of(const struct xti_step *step, const struct xti_target *t, bool stream,
                         struct xti_step_traffic *out);

/* Points of the kernel's rows or columns (cuts), or of a loop, in one block of it; n where nothing cuts it.
 */
int64_t xti_block_of(const struct xti_step *step, int cuts, int64_t n);

#endif
