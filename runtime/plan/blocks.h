/* blocks.h: a buffered step's blocks (buffered.h) as copies into its buffer, each with a plan. Internal to
 * plan. Layer 3. */
#ifndef XTI_PLAN_BLOCKS_H
#define XTI_PLAN_BLOCKS_H

#include "plan/plan.h"

/* A part of a block as a piece; dim: those that the step's rows and columns stand for, ascending in the
 * destination; d: room for the piece's own. */
struct xti_piece xti_block_piece(const struct xti_plan *p, const struct xti_step *step, int part,
                                 const struct xti_loop *dim, struct xti_dim d[2 * XTI_MAX_DIMS]);

/* A plan of that piece alone, without steps yet; it borrows the piece. */
struct xti_plan xti_block_plan(const struct xti_plan *p, const struct xti_piece *piece);

/* Plans the blocks of a step that xti_buffered_make made: sets step->blocks. */
xt_status xti_blocks_plan(struct xti_plan *p, struct xti_step *step, struct xti_err *err);

#endif
