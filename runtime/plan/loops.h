/* loops.h: the loops around a kernel: cut into blocks, put into an order, shared by threads. Internal to
 * plan. Layer 3. */
#ifndef XTI_PLAN_LOOPS_H
#define XTI_PLAN_LOOPS_H

#include "plan/nest.h"

/* Appends a loop over blocks of `block` of the n points of the kernel's rows or columns (cuts). */
void xti_loops_block(struct xti_step *step, int cuts, int64_t block, bool align);

/* Sorts the loops, outermost first, into the order in which memory likes them. None cuts another. */
void xti_loops_order(struct xti_step *step);

/* Makes the innermost loop the kernel's rows, when the kernel has none and leaves them free. */
void xti_loops_take_row(struct xti_step *step);

/* Chooses the loop that threads share, adding a blocked one when none serves. */
void xti_loops_split(const struct xti_target *t, struct xti_step *step);

/* Rewrites a step, just made or new, into the order of the destination: outer loops outermost first, the row
 * inside them, the columns inside that, all with positive destination strides. With divs and guards the
 * columns are the piece's last dim, element by element, the loops the others, and there is no row. (order.c)
 */
void xti_order_step(const struct xti_nest *nest, struct xti_step *step);
/* Such a step writes addresses that ascend: a loop's stride is no less than what is inside it spans. */
bool xti_order_nests(const struct xti_step *step);

#endif
