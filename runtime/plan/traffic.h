/* traffic.h: the lines that a step of a CPU plan moves between memory and each cache. Layer 3. */
#ifndef XTI_PLAN_TRAFFIC_H
#define XTI_PLAN_TRAFFIC_H

#include "plan/plan.h"

/* 64-byte lines. [i]: into cache i + 1 from what is behind it, in one run that finds every cache empty. */
struct xti_traffic {
    double fetched[XTI_N_CACHES]; /* of the source */
    double stored[XTI_N_CACHES];  /* of the destination, when they go through the caches */
    double source, destination;   /* different ones */
    double jumps; /* runs of adjacent lines on both sides, a run ends where another place goes on */
};

/* step is affine. stream: the destination's lines bypass the caches. */
void xti_traffic_of(const struct xti_step *step, const struct xti_target *t, bool stream,
                    struct xti_traffic *out);

/* Points of the kernel's rows or columns (cuts), or of a loop, in one block of it; n where nothing cuts it.
 */
int64_t xti_block_of(const struct xti_step *step, int cuts, int64_t n);

#endif
