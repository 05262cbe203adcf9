/* build.h: what the builders share: checking the operand, saying what is wrong, adding the node. Layer 1. */
#ifndef XTI_GRAPH_BUILD_H
#define XTI_GRAPH_BUILD_H

#include "graph/graph.h"

/* index: four numbers for each axis of the operand and for each new axis. */
enum { XTI_MAX_ATTRS = 4 * 2 * XT_MAX_RANK, XTI_SHAPE_TEXT = 176 };

/* One node in the making. A builder fills rank, shape and attrs. */
struct xti_build {
    struct xt_graph *g;
    const char *name; /* of the operation, as the caller called it */
    enum xt_op op;
    xt_node arg;
    const struct xti_node *x; /* node[arg]: valid until the node is added */
    int rank;                 /* of the result */
    int64_t shape[XT_MAX_RANK];
    int n_attrs;
    int64_t attr[XTI_MAX_ATTRS];
    const void *value; /* pad, tril, triu: one element, NULL: zero bytes */
};

/* False: the graph has failed already or x is not one of its nodes; the caller returns -1. */
bool xti_build_start(struct xti_build *b, struct xt_graph *g, enum xt_op op, const char *name, xt_node x);

static inline const char *xti_axes_word(int n) { return n == 1 ? "axis" : "axes"; } /* "2 axes" */

/* Records "name: op N: .." in the graph and as the thread's last error. Returns -1. */
xt_node xti_build_fail(struct xti_build *b, xt_status s, int axis, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Appends the node with one operand, or with several. Checks the result's element count. */
xt_node xti_build_add(struct xti_build *b);
xt_node xti_build_join(struct xti_build *b, int n_args, const xt_node *args);

/* *axis from [-rank, rank) to [0, rank); false after recording XT_ERANGE. */
bool xti_build_axis(struct xti_build *b, int *axis, int rank);
/* n different axes of the operand, resolved, as attrs in the caller's order. */
bool xti_build_axes(struct xti_build *b, int n, const int *axes);
/* n >= 0 and v not NULL unless n is 0. */
bool xti_build_list(struct xti_build *b, int n, const void *v, const char *what);
/* rank <= XT_MAX_RANK. */
bool xti_build_rank(struct xti_build *b, int rank);

/* Starts the result's shape as the operand's. */
void xti_build_same_shape(struct xti_build *b);

/* Records an error that is not an operation's: "column N: .." while parsing. Returns s. */
xt_status xti_graph_fail(struct xt_graph *g, xt_status s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
