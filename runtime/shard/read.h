/* read.h: from a map over pages of ranks to boxes between two ranks. Layer 5. */
#ifndef XTI_SHARD_READ_H
#define XTI_SHARD_READ_H

#include "map/map.h"
#include "shard/layout.h"

/* One box: its piece has no rank digit left, and lies in local arrays from soff, doff on. */
struct xti_between {
    int64_t from, to;     /* ranks; from of a fill: -1 */
    struct xti_piece box; /* lives for the call; src: the map's source */
};
typedef xt_status (*xti_between_fn)(void *arg, const struct xti_between *b);

/* Whether the rank that a piece reads is an affine form of its dims: then xti_read_piece reads it. */
bool xti_piece_reads_off(const struct xti_piece *p);

/* Calls each for every box between two ranks; from, to: only those of that rank, -1: of any. The boxes of one
 * pair come in the same order whatever else is asked for. Cost: of the boxes that there are. */
xt_status xti_read_piece(const struct xti_piece *p, int64_t from, int64_t to, xti_between_fn each, void *arg);

/* False: the piece reads nothing of rank `from` when it writes to rank `to`. *looks: how often it may be
 * halved to see that, of which what it took is taken off. */
bool xti_piece_may_read(const struct xti_piece *p, int64_t from, int64_t to, int *looks);
/* True: the box's guards hide all of it, so that there is nothing to send. */
bool xti_box_is_hidden(const struct xti_piece *box);
/* Calls each with the address read and that written of every point that no guard hides, by falling pos of its
 * dims (stencil.c); those of which pos is 0 stay at 0. False: each was false once, or numbers are beyond 64
 * bits. */
typedef bool (*xti_point_fn)(void *arg, int64_t s, int64_t d);
bool xti_box_visible(const struct xti_piece *box, const int64_t *pos, xti_point_fn each, void *arg);

#endif
