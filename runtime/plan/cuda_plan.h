/* cuda_plan.h: what the files of the CUDA planner share. Layer 3. */
#ifndef XTI_PLAN_CUDA_PLAN_H
#define XTI_PLAN_CUDA_PLAN_H

#include "base/num.h"
#include "plan/plan.h"

/* The step that serves any piece. repeat: a thread may take a whole short dim. */
void xti_plan_cuda_generic(const struct xti_plan *p, int piece, bool repeat, struct xti_cuda_step *s);

#endif
