/* assemble.h: steps that write the destination together, part by part, and pieces that are put together in
 * blocks (joint.c). Internal to plan. Layer 3. */
#ifndef XTI_PLAN_ASSEMBLE_H
#define XTI_PLAN_ASSEMBLE_H

#include "plan/plan.h"

/* When rows of all steps share many lines of the destination: rewrites the steps into its order and sets
 * p->assembled. (assemble.c) */
xt_status xti_plan_assemble(struct xti_plan *p, struct xti_err *err);

/* When the pieces that read make up short rows, with or without fills: sets p->joint, and rewrites the map so
 * that its first piece is the first part, then come fills of what lies between the rows, then the other
 * parts. *rows: whether they make up rows, short or not. */
xt_status xti_plan_join(struct xti_plan *p, bool *rows, struct xti_err *err);

/* Whether all of the destination's lines are written whole, as stores of whole lines want. */
bool xti_assemble_dense(const struct xti_map *m);

#endif
