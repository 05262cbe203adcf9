/* buffered.h: the strategy buffered, a row of the table in cpu_strategies.c. Internal to plan. Layer 3. */
#ifndef XTI_PLAN_BUFFERED_H
#define XTI_PLAN_BUFFERED_H

#include "plan/nest.h"

bool xti_buffered_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why);
void xti_buffered_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step);

/* Bytes of the runs of the source in blocks of a joint plan; 0: they would have one row. */
int64_t xti_buffered_run(const struct xti_plan *p);

/* How many windows (mosaic.h) a line of a block may have; 0: something else is faster. */
int xti_buffered_windows(const struct xti_plan *p, const struct xti_nest *t);

#endif
