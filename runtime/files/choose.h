/* choose.h: which tiles, by what their requests take. Layer 6. */
#ifndef XTI_FILES_CHOOSE_H
#define XTI_FILES_CHOOSE_H

#include "files/task.h"

/* A pass in tiles of n, at the border less. */
struct xti_tiling {
    int64_t n[XT_MAX_RANK];
    int depth; /* tiles in memory at once: 1, or 2: one is read while one is written */
    int64_t tiles, reads, writes, read_bytes, src_bytes, dst_bytes; /* of all; of a tile */
    double seconds;                                                 /* of requests, and of kernels */
};

/* The cheapest with at most `room` bytes of buffers, and `most` bytes a tile (0: no such limit). XT_ENOMEM:
 * not even one element fits. */
xt_status xti_tiles_choose(struct xti_task *t, int64_t room, int64_t most, struct xti_tiling *out,
                           struct xti_err *err);

/* Tiles of the temporary file of two passes: what a tile that reads long runs and one that writes long runs
 * have in common. */
xt_status xti_tiles_between(struct xti_task *t, int64_t room, int64_t most, int64_t *n, struct xti_err *err);

/* Numbers of a cut whose n and depth are given. */
xt_status xti_tiles_price(struct xti_task *t, struct xti_tiling *c, struct xti_err *err);

#endif
