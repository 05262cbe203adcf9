/* mesh.h: the ranks of a problem line, `mesh p[4] q[2]@8;`, and how its tensors are spread over them. A rank
 * holds of each tensor what its coordinates say, as one local array. Layer 1. */
#ifndef XTI_GRAPH_MESH_H
#define XTI_GRAPH_MESH_H

#include "graph/graph.h"

enum { XTI_MESH_AXES = 16, XTI_MAX_RANKS = 1 << 20, XTI_MAX_SPREADS = 256 };

/* An axis of a grid of ranks: who stands at x_i of the grid's axes is rank base + sum x_i*stride_i. */
struct xti_mesh_axis {
    char name[XTI_MAX_NAME + 1];
    int64_t n, stride, base;
    int grid;
};

/* One axis of a tensor. Blocks of `block` elements are dealt to the ranks in turn; block 0: balanced, rank r
 * of n has the elements from floor or ceil of an n-th, the longer ones first. ranks 1: not cut. */
struct xti_cut {
    int64_t ranks, stride, block;
};

struct xti_spread {
    int64_t base; /* rank at coordinate 0 */
    int rank;
    struct xti_cut cut[XT_MAX_RANK];
    int n_copies; /* axes of the grid that cut nothing: each rank along them has the same */
    struct {
        int64_t n, stride;
    } copy[XTI_MESH_AXES];
    bool layout; /* local arrays have these strides, all the same; else they are dense */
    int64_t strides[XT_MAX_RANK], offset;
};

struct xti_mesh {
    int n_axes;
    struct xti_mesh_axis axis[XTI_MESH_AXES];
    int64_t ranks;
    int n_inputs;
    struct xti_spread *input; /* [n_inputs], owned */
    struct xti_spread output;
};

/* As xt_parse; the text begins with a mesh. The graph is that of the whole tensors, all dense. On success the
 * caller frees both. */
xt_status xti_parse_mesh(const char *text, struct xt_graph **g, struct xti_mesh *m, struct xti_err *err);
void xti_mesh_free(struct xti_mesh *m);

#endif
