/* alias.h: operations of other libraries that are compositions of xt's: each as call.c's table wants it.
 * Layer 1. */
#ifndef XTI_GRAPH_ALIAS_H
#define XTI_GRAPH_ALIAS_H

#include "graph/args.h"

xt_node xti_build_nothing(struct xti_args *b);
xt_node xti_build_narrow(struct xti_args *b);
xt_node xti_build_select(struct xti_args *b);
xt_node xti_build_unflatten(struct xti_args *b);
xt_node xti_build_fliplr(struct xti_args *b);
xt_node xti_build_flipud(struct xti_args *b);
xt_node xti_build_rot90(struct xti_args *b);
xt_node xti_build_hstack(struct xti_args *b);
xt_node xti_build_vstack(struct xti_args *b);
xt_node xti_build_dstack(struct xti_args *b);
xt_node xti_build_rearrange(struct xti_args *b);
xt_node xti_build_blocks(struct xti_args *b); /* by the row's pattern, i and j the block's sides */

/* The three ways in which pads are given; pads.c. */
xt_node xti_build_pad(struct xti_args *b);
xt_node xti_build_pad_alike(struct xti_args *b); /* NumPy: one pair serves every axis */
xt_node
xti_build_pad_backwards(struct xti_args *b); /* PyTorch: before, after of the last axis, then the next */

#endif
