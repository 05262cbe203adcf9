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

int64_t xti_pages(int64_t stride); /* the nearest number of pages */
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

/* ---- boxes that change */

/* What of a piece changes when it becomes a box, or a part of one. */
struct xti_box_room {
    struct xti_dim dim[XTI_MAX_DIMS];
    struct xti_div div[XTI_MAX_DIVS];
    struct xti_guard guard[XTI_MAX_GUARDS];
};
struct xti_piece xti_box_copy(struct xti_box_room *room, const struct xti_piece *p);
void xti_box_move(struct xti_piece *box, int k,
                  int64_t by); /* that many points along dim k; its room is its own */
/* 1: every guard holds in all of the box, 0: in some of it perhaps, -1: one holds nowhere. ql, qh: as of
 * xti_piece_div_ranges. */
int xti_box_guards(const struct xti_piece *p, const int64_t *ql, const int64_t *qh);
/* By plain intervals, do the addresses without the pages that are in their strides lie within half a page? */
bool xti_box_in_half_pages(const struct xti_piece *p);
/* Do all numbers of the box, and what adds up to them, fit in 64 bits? */
bool xti_box_numbers_fit(const struct xti_piece *p);

#endif
