/* cpu_strategies.h: the rows of the table in cpu_strategies.c, a file a family, and what steps begin with.
 * Internal to plan. Layer 3. */
#ifndef XTI_PLAN_CPU_STRATEGIES_H
#define XTI_PLAN_CPU_STRATEGIES_H

#include "plan/nest.h"

/* Both functions of a row. */
#define XTI_STRATEGY(name)                                                                                   \
    bool xti_##name##_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why);      \
    void xti_##name##_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)

/* cpu_runs.c: along the destination, a run or units of one dim after the other */
XTI_STRATEGY(memcpy);
XTI_STRATEGY(rows);
XTI_STRATEGY(fill);
XTI_STRATEGY(mirror);
XTI_STRATEGY(reverse);
XTI_STRATEGY(broadcast);
XTI_STRATEGY(strided);
XTI_STRATEGY(general);
/* cpu_squares.c: two dims, each contiguous on one side */
XTI_STRATEGY(interleave);
XTI_STRATEGY(deinterleave);
XTI_STRATEGY(transpose);
XTI_STRATEGY(turn);
/* virtual tiles (sides.h): cpu_braid.c, cpu_tile.c, cpu_gather.c, cpu_mosaic.c, buffered.c */
XTI_STRATEGY(braid);
XTI_STRATEGY(tile);
XTI_STRATEGY(gather);
XTI_STRATEGY(mosaic);
XTI_STRATEGY(permuted);
XTI_STRATEGY(buffered);

/* What every step begins with: one unit, the dims that are neither row nor col as loops. */
void xti_step_begin(const struct xti_plan *p, const struct xti_nest *t, enum xti_cpu_op kernel, int unit,
                    int row, int col, struct xti_step *step);
/* Units along one dim, of several rows or of one, in parts that threads can share. */
void xti_step_along(const struct xti_plan *p, const struct xti_nest *t, enum xti_cpu_op kernel, int row,
                    int col, bool align, struct xti_step *step);

/* Whether a piece copies units along a dim that is contiguous in the destination, and another one that is in
 * the source. */
bool xti_nest_two_sides(const struct xti_nest *t, struct xti_why *why);

/* Bytes of a run of a tile's rows; 0: tiles do not apply. */
int64_t xti_tile_row_bytes(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why);
/* Whether a piece of units, of which so many bytes of the source follow each other, is rather gathered than
 * moved in squares, which it would fill in part. */
bool xti_gather_few(const struct xti_plan *p, const struct xti_nest *t, int64_t run);
/* Whether lines of units of so many bytes are put together by permuting windows of the source (mosaic.h)
 * rather than by gathers. */
bool xti_mosaic_serves(const struct xti_plan *p, int64_t unit);
/* Of so many windows of a line those that are worth it: where tiles' rows are longer than lines, each has to
 * serve two units. */
int xti_mosaic_most(const struct xti_plan *p, const struct xti_nest *t, int windows);

#endif
