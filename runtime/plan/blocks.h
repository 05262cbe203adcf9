/* blocks.h: a buffered step's blocks (buffered.h) as copies into its buffer, each with a plan. Internal to
 * plan. Layer 3. */
#ifndef XTI_PLAN_BLOCKS_H
#define XTI_PLAN_BLOCKS_H

#include "plan/plan.h"

/* Plans the blocks of a step that xti_buffered_make made, each by `plan`: sets step->stage.blocks. */
xt_status xti_blocks_plan(struct xti_plan *p, struct xti_step *step, xti_step_planner *plan,
                          struct xti_err *err);

#endif
