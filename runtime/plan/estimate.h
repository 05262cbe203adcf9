/* estimate.h: how long a CPU plan will take, from its numbers alone. Layer 3. */
#ifndef XTI_PLAN_ESTIMATE_H
#define XTI_PLAN_ESTIMATE_H

#include "plan/plan.h"

struct xti_estimate {
    double seconds;    /* of a run that follows others like it: what fits a cache is there */
    double lines_read; /* 64-byte lines of the sources, each as often as memory or the last cache must give it
                          .. */
    double lines_owned;   /* .. of the destination that are read because ordinary stores change them .. */
    double lines_written; /* .. and written */
};

/* p is a CPU plan. Cost: some microseconds a step. */
void xti_plan_estimate(const struct xti_plan *p, struct xti_estimate *e);

/* Seconds that the kernels of steps [first, end) take when no line is waited for, of blocks without plans at
 * least: no estimate is below. */
double xti_plan_kernels(const struct xti_plan *p, int first, int end);

/* Seconds that its lines take when they are read and written once, in order. */
double xti_plan_least(const struct xti_plan *p, bool stream);

#endif
