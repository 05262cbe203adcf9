/* buffered.h: what joint plans ask of the strategy buffered, and its blocks (blocks.c) as copies into its
 * buffer, each with a plan. Internal to plan. Layer 3. */
#ifndef XTI_PLAN_BUFFERED_H
#define XTI_PLAN_BUFFERED_H

#include "plan/cpu_strategies.h"

/* Bytes of the runs of the source in blocks of a joint plan; 0: they would have one row. */
int64_t xti_buffered_run(const struct xti_plan *p);

/* How many windows (mosaic.h) a line of a block may have; 0: something else is faster. */
int xti_buffered_windows(const struct xti_plan *p, const struct xti_nest *t);

/* Plans the blocks of a step that xti_buffered_make made, each by `plan`: sets step->stage.blocks. */
xt_status xti_blocks_plan(struct xti_plan *p, struct xti_step *step, xti_step_planner *plan,
                          struct xti_err *err);

enum { XTI_GROUP_RUN_BYTES = 4096 }; /* of the source that a group's runs should have */

/* Sorts n dims by their strides on one side, ascending. */
void xti_runs_sort(struct xti_loop *dim, int n, bool source);

/* What n dims around `run` contiguous bytes make up on one side. Sorts the dims. */
struct xti_runs xti_runs_of(int64_t run, struct xti_loop *dim, int n, bool source);

int xti_parts_of(const struct xti_plan *p);

/* A loop or a dim of a block as it is for a part: with the stride of its source. */
struct xti_loop xti_part_loop(const struct xti_plan *p, int part, const struct xti_loop *l);

/* Runs of the source of a part, of a block and the loops from `group` on. */
struct xti_runs xti_group_source(const struct xti_plan *p, const struct xti_step *step, int part, int group);

/* Sets step->stage.group: so that short runs of the source make up longer ones. May cut a loop. */
void xti_group_blocks(const struct xti_plan *p, struct xti_step *step);

/* A part of a block as a piece; dim: those that the step's rows and columns stand for, ascending in the
 * destination; d: room for the piece's own. */
struct xti_piece xti_block_piece(const struct xti_plan *p, const struct xti_step *step, int part,
                                 const struct xti_loop *dim, struct xti_dim d[2 * XTI_MAX_DIMS]);

/* A plan of that piece alone, without steps yet; it borrows the piece. */
struct xti_plan xti_block_plan(const struct xti_plan *p, const struct xti_piece *piece);

#endif
