/* group.h: of a buffered step (buffered.h), the runs of memory that a block or a group of blocks reads and
 * writes. A group is what is fetched at a time: the blocks of the loops from step->stage.group on. A joint
 * plan has parts, one a piece; any other is its only part. Internal to plan. Layer 3. */
#ifndef XTI_PLAN_GROUP_H
#define XTI_PLAN_GROUP_H

#include "plan/plan.h"

enum { XTI_GROUP_RUN_BYTES = 4096 }; /* of the source that a group's runs should have */

/* Sorts n dims by their strides on one side, ascending. */
void xti_runs_sort(struct xti_loop *dim, int n, bool source);

/* What n dims around `run` contiguous bytes make up on one side. Sorts the dims. */
struct xti_runs xti_runs_of(int64_t run, struct xti_loop *dim, int n, bool source);

int xti_parts_of(const struct xti_plan *p);

/* A loop or a dim of a block as it is for a part: with the stride of its source. */
struct xti_loop xti_part_loop(const struct xti_plan *p, int part, const struct xti_loop *l);

/* Runs of the source of a part, of a block and the loops from `group` on. */
struct xti_runs xti_group_source(const struct xti_plan *p, const struct xti_step *step, int part, int group);

/* Sets step->stage.group: so that short runs of the source make up longer ones. May cut a loop. */
void xti_group_blocks(const struct xti_plan *p, struct xti_step *step);

/* A part of a block as a piece; dim: those that the step's rows and columns stand for, ascending in the
 * destination; d: room for the piece's own. */
struct xti_piece xti_block_piece(const struct xti_plan *p, const struct xti_step *step, int part,
                                 const struct xti_loop *dim, struct xti_dim d[2 * XTI_MAX_DIMS]);

/* A plan of that piece alone, without steps yet; it borrows the piece. */
struct xti_plan xti_block_plan(const struct xti_plan *p, const struct xti_piece *piece);

#endif
