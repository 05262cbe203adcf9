/* buffered.h: what joint plans ask of the strategy buffered. Internal to plan. Layer 3. */
#ifndef XTI_PLAN_BUFFERED_H
#define XTI_PLAN_BUFFERED_H

#include "plan/cpu_strategies.h"

/* Bytes of the runs of the source in blocks of a joint plan; 0: they would have one row. */
int64_t xti_buffered_run(const struct xti_plan *p);

/* How many windows (mosaic.h) a line of a block may have; 0: something else is faster. */
int xti_buffered_windows(const struct xti_plan *p, const struct xti_nest *t);

#endif
