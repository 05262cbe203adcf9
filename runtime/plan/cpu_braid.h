/* cpu_braid.h: the strategy braid, a row of the table in cpu_strategies.c. Internal to plan. Layer 3. */
#ifndef XTI_PLAN_CPU_BRAID_H
#define XTI_PLAN_CPU_BRAID_H

#include "plan/plan.h"

bool xti_braid_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why);
void xti_braid_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step);

#endif
