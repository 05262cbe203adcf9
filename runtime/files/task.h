/* task.h: one pass: a chain from virtual files to a virtual file, and the tiles that it is made of. A tile is
 * a box of the axes that the canonical map gives the result; what it reads are boxes of each input's axes;
 * its kernel is that of the chain with an index behind it, of which the sources' strides are those of the
 * buffers that the boxes are read into. Layer 6. */
#ifndef XTI_FILES_TASK_H
#define XTI_FILES_TASK_H

#include "cpu/cpu.h"
#include "files/curve.h"
#include "files/io.h"
#include "map/map.h"

/* A kernel that was made, for every tile that has the same map. */
struct xti_made {
    struct xti_str key;
    struct xti_map map;
    struct xti_plan plan;
};

enum { XTI_KEPT = 256 };

struct xti_task {
    struct xt_graph *graph; /* from virtual files; its output is `lens`, an index of the result's axes */
    xt_node lens;
    int n_inputs;
    const struct xti_array *const *in;
    const struct xti_array *out;
    struct xti_axes to, *from; /* [n_inputs] */
    const struct xti_curve *curve;
    struct xti_target target;
    int n_made;
    int64_t made; /* ever */
    struct xti_made *kept[XTI_KEPT];
};

/* From n inputs by the chain, whose inputs are declared as the files are, to out; or, where tiles is given,
 * to those: out's virtual file in axes of tiles' shape. chain NULL: from such tiles, the one input, to out.
 */
xt_status xti_task_make(const struct xt_graph *chain, int n, const struct xti_array *const *in,
                        const struct xti_array *out, const struct xti_array *tiles,
                        const struct xti_curve *curve, struct xti_task *t, struct xti_err *err);
void xti_task_free(struct xti_task *t);

/* Box of an input that a tile reads. */
struct xti_box {
    int input;
    int64_t lo[XT_MAX_RANK], n[XT_MAX_RANK], stride[XT_MAX_RANK]; /* stride: in the buffer */
    int64_t elements, at;                                         /* at: bytes in the tile's buffer */
};

struct xti_file_tile {
    int64_t lo[XT_MAX_RANK], n[XT_MAX_RANK];
    struct xti_map map; /* sources are boxes, each from its own start */
    int n_boxes;
    struct xti_box *box; /* of the map's arena */
    int64_t src_bytes, dst_bytes;
};

/* The tile at lo of n. rewrite: the map becomes that of the buffers; without, boxes alone are of use. */
xt_status xti_file_tile_make(struct xti_task *t, const int64_t *lo, const int64_t *n, bool rewrite,
                             struct xti_file_tile *out, struct xti_err *err);
void xti_file_tile_free(struct xti_file_tile *t);

/* The kernel of a tile that was rewritten, made or found. */
xt_status xti_file_tile_kernel(struct xti_task *t, const struct xti_file_tile *tile,
                               const struct xti_plan **out, struct xti_err *err);

#endif
