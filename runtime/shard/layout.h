/* layout.h: a tensor spread over ranks as an ordinary one. Its local arrays are pages of one address space,
 * rank r's from element r*XTI_PAGE on; each axis is a reshape of digits that are rank or local. Ranks whose
 * local extents differ (the full ones, the one with a rest, those behind it) are classes: at most three an
 * axis, so that a class has one local shape. Layer 5. */
#ifndef XTI_SHARD_LAYOUT_H
#define XTI_SHARD_LAYOUT_H

#include "graph/build.h"
#include "graph/mesh.h"

/* A local array lies within its page: plan.c refuses others. */
#define XTI_PAGE ((int64_t)1 << 40)

/* Ranks [first, first + n) of a cut axis, with `len` elements each: `rounds` blocks, then `tail` elements,
 * which are those from tail_at + tail*i on of what the rounds leave. */
struct xti_class_of {
    int64_t first, n, len, rounds, tail, tail_at;
};
enum { XTI_AXIS_CLASSES = 3, XTI_MAX_CLASSES = 729 };

/* Of an axis of n elements; classes that have ranks. Gives how many. */
int xti_cut_classes(const struct xti_cut *c, int64_t n, struct xti_class_of out[XTI_AXIS_CLASSES]);

/* Coordinates of a rank: on[i] that of axis i's cut, copy[j] that of copy axis j. False: not of the grid. */
struct xti_place {
    int64_t on[XT_MAX_RANK], copy[XTI_MESH_AXES];
};
bool xti_spread_place(const struct xti_spread *s, int64_t rank, struct xti_place *out);
int64_t xti_spread_copies(const struct xti_spread *s); /* product of copy[].n */

/* The local array of a rank of the grid: extents, strides in elements. */
void xti_spread_local(const struct xti_spread *s, const int64_t *shape, const struct xti_place *at,
                      int64_t *local, int64_t *strides);

/* Which element of the axis the i-th is of the rank at that coordinate of its cut. */
int64_t xti_cut_index(const struct xti_cut *c, int64_t n, int64_t on, int64_t i);

/* The whole tensor, of inputs new in g; of copies the first. -1: failed, the graph knows. */
xt_node xti_spread_gather(struct xt_graph *g, const struct xti_spread *s, xt_dtype t, const int64_t *shape);

/* Local arrays of x by class: which[i] is axis i's. The node's axes are for each axis of x a rank digit, if
 * it is cut, and the local one; before them one for each copy axis. Makes it the graph's output, on pages. */
xt_node xti_spread_scatter(struct xt_graph *g, const struct xti_spread *s, xt_node x, const int *which);

/* Calls each(arg, which) for every combination of classes that has elements. */
xt_status xti_spread_classes(const struct xti_spread *s, const int64_t *shape,
                             xt_status (*each)(void *arg, const int *which), void *arg);

#endif
