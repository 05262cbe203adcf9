/* plan.h: how a map is run on a CUDA device: for each piece a family of kernels, its geometry, its blocks.
 * It shares nothing with the plans of the CPU. Layer 4. */
#ifndef XTI_CUDA_PLAN_H
#define XTI_CUDA_PLAN_H

#include <stdatomic.h>

#include "base/str.h"
#include "base/why.h"
#include "map/map.h"

struct xti_cuda_target {
    int sm;    /* 90 for sm_90 */
    int n_sms; /* 0: unknown */
};

/* The rows of xti_cuda_families (family.h), in the order in which they are asked. */
enum xti_cuda_family {
    XTI_CUDA_WEAVE,
    XTI_CUDA_TILE,
    XTI_CUDA_SEGMENTS,
    XTI_CUDA_PACKED,
    XTI_CUDA_CONTIGUOUS,
    XTI_CUDA_FILL,
    XTI_CUDA_ROWS,
    XTI_CUDA_BROADCAST,
    XTI_CUDA_REVERSED,
    XTI_CUDA_GENERIC,
    XTI_CUDA_FAMILY_COUNT
};

/* How a thread gets what it writes. */
enum xti_cuda_from { XTI_FROM_COPY, XTI_FROM_REVERSE, XTI_FROM_SPLAT, XTI_FROM_FILL };

struct xti_rows;
struct xti_box;
struct xti_any;

/* One part of a launch, a piece or several that make rows together: `blocks` consecutive blocks starting at
 * first_block run the family's skeleton. Extents and tiles are in units of the plan's map. */
struct xti_cuda_step {
    enum xti_cuda_family family;
    int piece;                   /* of several: one that copies */
    const struct xti_rows *rows; /* segments: the pieces (segments.h). NULL: `piece` alone */
    const struct xti_box *box;   /* tile: what a block copies (box.h); else NULL */
    enum xti_cuda_from from;
    int vec_bytes; /* bytes of a thread's widest access; the map's unit is <= this */
    int src_bytes,
        dst_bytes;  /* the widest access that strides, offsets and base alignment allow on each side */
    int per_thread; /* independent accesses of a thread (rows, generic) */
    int dim_a;      /* generic: a short dim that each thread goes along, or -1 */
    int64_t first_block, blocks;
    int64_t shared_bytes;
    int body; /* steps with the same body share one function: see xti_cuda_plan.table */
};

enum { XTI_CUDA_THREADS = 128 };
/* Blocks that a processor has registers for, at least. */
enum { XTI_CUDA_RESIDENT = 8 };

struct xti_cuda_plan {
    struct xti_cuda_target target;
    struct xti_map map;       /* normalised and widened; owned, arrays of elem's, too */
    struct xti_origin origin; /* where the map's origin lies in the buffers; its arrays live in map's arena */
    int base_align;           /* bytes that every buffer's start is aligned to */
    int n_steps;
    struct xti_cuda_step *step; /* at most one a piece; owned */
    struct xti_cuda_plan *elem; /* the same copy for buffers aligned to the element alone; owned. Its elem is
                                   NULL */
    int n_fills;
    unsigned char (*fill)[16]; /* values of the pieces that fill, in order; in map's arena */
    int threads_per_block;
    int64_t blocks;
    int64_t grid; /* blocks launched; fewer than `blocks` when the device's limit says so */
    int n_bodies; /* functions of the kernel */
    bool table;   /* their numbers come from a table, because several pieces share one; then all sources
                     are one parameter, and all fill values are */
    bool index32;
    struct xti_str numbers;   /* parameter of the structure tier's entry: words of 4 bytes (index32) or 8 */
    struct xti_str structure; /* what decides that tier's source (structure.c); of elem, and where the tier
                                 does not serve: empty */
    struct xti_any
        *_Atomic any; /* its launches by the kernel that runs any plan (any.h); owned; NULL: not yet */
};

/* Fuses a chain as xti_map_fuse does, to the map that CUDA runs best. (fuse.c) */
xt_status xti_cuda_fuse(const struct xt_graph *g, const struct xti_cuda_target *t, struct xti_map *m,
                        struct xti_err *err);

/* Plans m for t. On failure *p is zeroed. m is not kept. XT_EUNSUPPORTED: tensors of more than 2^56 bytes.
 * post: every piece of p->map, and of p->elem->map, is covered by exactly one step, alone or with others;
 *       blocks of steps follow each other from 0 (test_cuda: a_plan_covers_every_piece_once). */
xt_status xti_cuda_plan_make(const struct xti_map *m, const struct xti_cuda_target *t,
                             struct xti_cuda_plan *p, struct xti_err *err);
void xti_cuda_plan_free(struct xti_cuda_plan *p);
/* Appends why the families before a piece's own were not taken, a line each:
 * "piece 0: rows: inner source stride 3\n". Nothing for pieces that make rows together. */
void xti_cuda_refusals(const struct xti_cuda_plan *p, struct xti_str *b);
/* Part of xti_cuda_plan_make: the functions of steps. (bodies.c) */
xt_status xti_cuda_choose_bodies(struct xti_cuda_plan *p, struct xti_err *err);
/* Part of xti_cuda_plan_make: numbers of p and p->elem, structure of p. Again after a change of either. */
xt_status xti_cuda_structure_make(struct xti_cuda_plan *p, struct xti_err *err);

/* The name of the family that writes the most units. */
const char *xti_cuda_plan_family(const struct xti_cuda_plan *p);
const char *xti_cuda_family_name(enum xti_cuda_family f);

#endif
