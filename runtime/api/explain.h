/* explain.h: the parts of an explanation, a file each. All append; b->failed when there is no memory.
 * Layer 6. */
#ifndef XTI_API_EXPLAIN_H
#define XTI_API_EXPLAIN_H

#include "api/api.h"

/* Of more pieces and steps than these the text leaves out the rest, unless it is to say why. */
enum { XTI_EXPLAIN_MOST = 12 };

/* The plan: its steps with their loops; with `why` all of them, and what was refused. (plan_text.c) */
void xti_explain_plan(const struct xt_kernel *k, bool why, struct xti_str *b);
/* Members of an array: {"piece", "strategy", "reason"}. */
void xti_explain_refusals_json(const struct xt_kernel *k, struct xti_str *b);

/* A self-contained SVG of the copy, for light and dark pages. (svg.c) */
void xti_explain_svg(const struct xt_kernel *k, struct xti_str *b);

#endif
