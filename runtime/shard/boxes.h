/* boxes.h: which of many boxes meet which of others: trees of them, each node with the box around its part.
 * And a plan between layouts that are lists of boxes (xt_shard_boxes). Layer 5. */
#ifndef XTI_SHARD_BOXES_H
#define XTI_SHARD_BOXES_H

#include <xt/xt_shard.h>

#include "shard/plan.h"

/* n boxes [lo, hi) of `rank` axes, those of box i from lo + i*rank on; they stay the caller's. */
struct xti_tree {
    int rank;
    int64_t n;
    const int64_t *lo, *hi;
    int64_t *item; /* [n] numbers of boxes, those of a node one after another */
    struct xti_tree_node *node;
    int64_t *around; /* of node k: 2*rank numbers, lo then hi */
    int64_t *box;    /* the same of item i */
};
enum { XTI_TREE_LEAF = 4 };

/* item: numbers of the boxes that are in it, `n` of them; NULL: all. Cost O(n log n). XT_ENOMEM */
xt_status xti_tree_new(struct xti_tree *t, int rank, int64_t n, const int64_t *item, const int64_t *lo,
                       const int64_t *hi);
void xti_tree_free(struct xti_tree *t);
typedef xt_status (*xti_tree_fn)(void *arg, int64_t i, int64_t j);
/* Calls each for every box of a and of b that have elements in common, in no particular order; where a is b,
 * for every two boxes once, and none with itself. Cost: of the nodes that meet, about as many as boxes do
 * where those of a tree are about alike. */
xt_status xti_tree_join(const struct xti_tree *a, const struct xti_tree *b, xti_tree_fn each, void *arg);

/* A tensor as two lists of boxes. */
struct xti_boxed {
    xt_dtype dtype;
    int rank;
    const int64_t *shape;
    const struct xt_boxes *from, *to;
    int64_t ranks;
};
/* As xti_shard_plan_make. */
xt_status xti_boxes_plan_make(const struct xti_boxed *x, int64_t rank, const struct xti_target *target,
                              int64_t most_bytes, const struct xti_near *near, struct xti_shard_plan *p,
                              struct xti_err *err);

#endif
