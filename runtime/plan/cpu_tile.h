/* cpu_tile.h: the strategies tile, mosaic and gather, rows of the table in cpu_strategies.c. Internal to
 * plan. Layer 3. */
#ifndef XTI_PLAN_CPU_TILE_H
#define XTI_PLAN_CPU_TILE_H

#include "plan/plan.h"

bool xti_tile_applies(const struct xti_plan *p, int piece, struct xti_why *why);
void xti_tile_make(const struct xti_plan *p, int piece, struct xti_step *step);
bool xti_mosaic_applies(const struct xti_plan *p, int piece, struct xti_why *why);
void xti_mosaic_make(const struct xti_plan *p, int piece, struct xti_step *step);
bool xti_gather_applies(const struct xti_plan *p, int piece, struct xti_why *why);
void xti_gather_make(const struct xti_plan *p, int piece, struct xti_step *step);

#endif
