/* graph.h: the expression graph as the layers below the public API see it. Nodes are in the order in which
 * they were made, so a node's arguments come before it: every walk is a loop, never recursion. Layer 1. */
#ifndef XTI_GRAPH_GRAPH_H
#define XTI_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include <xt/xt.h>

#include "base/err.h"
#include "base/mem.h"

enum { XTI_MAX_NODES = 4096, XTI_MAX_NAME = 127 };

/* Everything is validated: axes in [0, rank), extents >= 0, slices inside, numel and spans fit in int64.
 * attr: as the table at enum xt_op in xt.h, and further: an index item of length 0 or 1 has step 1 (of length
 * 0 also start 0), XT_AT and XT_NEWAXIS have length 1 and step 1; diagonal's offset and tril's and triu's k
 * are clamped to [-rows, columns], which changes nothing. So no product of an attr and an extent overflows.
 */
struct xti_node {
    enum xt_op op;
    xt_dtype dtype;
    int rank;
    int64_t *shape;
    int n_args;
    xt_node *arg;
    int n_attrs;
    int64_t *attr;
    unsigned char value[16]; /* pad, tril, triu: one element */
    char *name;              /* input only, as the next four */
    int64_t *strides;
    int64_t offset;
    bool dense;  /* no layout was given */
    bool origin; /* the caller's pointer is that of element `offset`, not of the buffer's start */
    int input;   /* its number, else -1 */
};

struct xt_graph {
    struct xti_arena arena;
    struct xti_node *node;
    int n_nodes;
    int64_t cap;
    int n_inputs;
    xt_node *input; /* node of input i */
    xt_node out;    /* -1: none yet */
    bool out_dense, out_origin;
    int64_t *out_strides; /* rank of node[out] */
    int64_t out_offset;
    int column;         /* while parsing: where the operation being built stands, 0 otherwise */
    struct xti_err err; /* the first failure; later builders do nothing */
};

/* One row an operation: what parse, print, shapes and tests loop over. */
struct xti_op_info {
    const char *name;    /* as printed */
    const char *aliases; /* other names accepted when parsing, space-separated, or "" */
};
const struct xti_op_info *xti_op_info(enum xt_op op);

/* Row-major strides of a shape: stride of axis i is the product of max(n, 1) of the later axes. INT64_MAX
 * where that does not fit, which happens to empty tensors only. */
void xti_dense_strides(int rank, const int64_t *shape, int64_t *strides);

/* Lowest and highest element address of a strided box, inclusive; *lo = *hi = offset for one element.
 * False when it does not fit in int64. An empty box (some n is 0) gives lo = offset, hi = offset - 1. */
bool xti_span(int rank, const int64_t *shape, const int64_t *strides, int64_t offset, int64_t *lo,
              int64_t *hi);

/* An identifier of at most 2 * XTI_MAX_NAME bytes that is free to name an input (those: XTI_MAX_NAME) or a
 * let: not an operation's, not a literal's. */
bool xti_name_ok(const char *s, size_t n);

/* The graph as it is now, in at most xti_graph_pack_bound(g) bytes at `to`; gives how many. Equal bytes mean
 * equal graphs: node for node, names included. g has an output and no failure. (pack.c) */
size_t xti_graph_pack_bound(const struct xt_graph *g);
size_t xti_graph_pack(const struct xt_graph *g, unsigned char *to);
/* That graph again; xt_graph_free frees it. Fails with XT_ENOMEM alone. */
xt_status xti_graph_unpack(const unsigned char *packed, struct xt_graph **out, struct xti_err *err);

/* One end of a packed graph, and an input's name: it lies in the packed bytes. */
struct xti_layout {
    xt_dtype dtype;
    int rank;
    int64_t shape[XT_MAX_RANK], strides[XT_MAX_RANK], offset;
    bool origin;
};
void xti_packed_output(const unsigned char *packed, struct xti_layout *out);
void xti_packed_input(const unsigned char *packed, int input, struct xti_layout *out);
const char *xti_packed_name(const unsigned char *packed, int input);

#endif
