/* joint.h: pieces that are put together in blocks. Internal to plan. Layer 3. */
#ifndef XTI_PLAN_JOINT_H
#define XTI_PLAN_JOINT_H

#include "plan/plan.h"

/* When the pieces that read make up short rows, with or without fills: sets p->joint, and rewrites the map so
 * that its first piece is the first part, then come fills of what lies between the rows, then the other
 * parts.
 */
xt_status xti_plan_join(struct xti_plan *p, struct xti_err *err);

#endif
