/* cpu_tile.h: the strategies of virtual tiles, cpu_tile.c, cpu_mosaic.c and cpu_gather.c: rows of the table
 * in cpu_strategies.c. Internal to plan. Layer 3. */
#ifndef XTI_PLAN_CPU_TILE_H
#define XTI_PLAN_CPU_TILE_H

#include "plan/nest.h"

bool xti_tile_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why);
void xti_tile_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step);
/* Of a run of its rows; 0: it does not apply. */
int64_t xti_tile_row_bytes(const struct xti_plan *p, const struct xti_nest *t);
bool xti_mosaic_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why);
void xti_mosaic_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step);
bool xti_gather_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why);
/* Whether a piece of units, of which so many bytes of the source follow each other, is rather gathered, or
 * walked along one dim, than moved in squares. */
bool xti_gather_few(const struct xti_plan *p, const struct xti_nest *t, int64_t run);
void xti_gather_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step);

#endif
