/* buffered.h: the strategy buffered, a row of the table in cpu_strategies.c. Internal to plan. Layer 3. */
#ifndef XTI_PLAN_BUFFERED_H
#define XTI_PLAN_BUFFERED_H

#include "plan/plan.h"

bool xti_buffered_applies(const struct xti_plan *p, int piece, struct xti_why *why);
void xti_buffered_make(const struct xti_plan *p, int piece, struct xti_step *step);
/* Bytes of the runs of the source in blocks of a joint plan; 0: they would have one row. */
int64_t xti_buffered_run(const struct xti_plan *p);

/* Plans the blocks of a step that xti_buffered_make made: sets step->blocks. */
xt_status xti_buffered_plan(struct xti_plan *p, struct xti_step *step, struct xti_err *err);

#endif
