/* fuse.h: the state of one fusing. Private to runtime/map. Layer 2. */
#ifndef XTI_MAP_FUSE_H
#define XTI_MAP_FUSE_H

#include "map/work.h"

/* A piece whose coordinates are indices of `node`. concat and stack: arguments before `arg`, which end at
 * index `base` of the axis, are done. */
struct xti_item {
    xt_node node;
    int arg;
    int64_t base;
    struct xti_work *p;
};

struct xti_fuser {
    const struct xt_graph *g;
    struct xti_fuse_options opt;
    struct xti_map *m;
    struct xti_err *err;
    struct xti_pool pool;
    struct xti_item *stack, *lent; /* the stack begins in memory that is not its own */
    int n_stack, cap_stack;
    int cap_pieces, n_reshapes;
    unsigned char *remember; /* [node]: a reshape lies below it; NULL: below none */
    xt_node at;              /* being pulled: for error messages */
};

/* Boxes that one boundary may cost now: less once there are many pieces. */
int xti_fuser_room(const struct xti_fuser *f);
void xti_fuser_push(struct xti_fuser *f, xt_node node, int arg, int64_t base,
                    struct xti_work *p); /* takes p */
/* Finishes p (taken). src < 0: a fill of `value`. Otherwise its coordinates are indices of input node n. */
void xti_fuser_emit_fill(struct xti_fuser *f, struct xti_work *p, const unsigned char *value);
void xti_fuser_emit_load(struct xti_fuser *f, struct xti_work *p, const struct xti_node *n);

/* pull.c: rewrites the item's coordinates through its node until it has been emitted or put on the stack. */
void xti_fuser_pull(struct xti_fuser *f, struct xti_item it);

#endif
