/* clang-format off */
/* program.h: a CPU plan as a tree, a node a line, as people read it and tests compare it: plans that print
 * alike run alike. Layer 3.
 *
 *     seq | merge          pieces one after the other; in the order of the destination, line by line
 *     piece 0              what is read and written is that of these pieces of the map
 *     loop L L ..          outermost first. L: 8(+512,-4) is 8 times, so many bytes further in the source
 *                          and in the destination; 70/16(+64,+8) is 70 points in blocks of 16, so many
 *                          bytes from block to block. aligned: the first block may be shorter, so that the
 *                          others begin on lines; shared: among threads
 *     stage.U ROWS x COLS  units of U bytes are put together, dense, in a buffer that then is flushed
 *     leaf KERNEL.U ROWS x COLS ..  a call of a micro-kernel, on units of U bytes; ROWS and COLS are L as
 *                          well, or several where a list stands for them; then how it stores, visits, fetches
 */
/* clang-format on */
#ifndef XTI_PLAN_PROGRAM_H
#define XTI_PLAN_PROGRAM_H

#include "plan/plan.h"

/* The whole plan. */
void xti_program_text(const struct xti_plan *p, struct xti_str *b);

/* Whether they print alike. false: or there is no memory to tell. */
bool xti_program_same(const struct xti_plan *a, const struct xti_plan *b);

/* One step of it, each line behind so many spaces. */
void xti_program_step(const struct xti_plan *p, const struct xti_step *step, int indent, struct xti_str *b);

/* "merge" or "seq"; "" where there is one piece alone. */
void xti_program_head(const struct xti_plan *p, struct xti_str *b);

#endif
