/* parts.h: from boxes between two ranks to a plan's parts and messages. Layer 5. */
#ifndef XTI_SHARD_PARTS_H
#define XTI_SHARD_PARTS_H

#include "shard/plan.h"

/* Parts are being added to p. */
struct xti_parts {
    struct xti_shard_plan *p;
    int group;   /* of boxes: equal ones of a group share stencils */
    bool direct; /* of this group: better copied from place to place */
    bool plain;  /* of this group: its boxes are the same on both ranks, without divs and guards */
    struct xti_err *err;
    int n_dims; /* of the box that was shared last, and its shares: most boxes are as the one before */
    struct xti_dim dim[XTI_MAX_DIMS];
    int64_t share[XTI_MAX_DIMS];
    int64_t *looks[2]; /* received, sent: [ranks] what may still be looked at of each peer's boxes; NULL: all
                          of it */
};

xt_status xti_parts_begin(struct xti_parts *b); /* of an empty plan, whose near ranks are set */

/* Adds the box to a plan's own copies or fills; to what is sent to, or received of, a peer, cut so that each
 * part fits a message. pos, elements: as of xti_box_positions. */
xt_status xti_parts_add(struct xti_parts *b, struct xti_traffic *t, struct xti_shard_part part,
                        const struct xti_piece *box, const int64_t *pos, int64_t elements);
xt_status xti_parts_between(struct xti_parts *b, struct xti_shard_part part, int64_t peer, bool sending,
                            const struct xti_piece *box, enum xti_message_order order);

/* Makes messages of all that was added. */
xt_status xti_parts_finish(struct xti_parts *b);
void xti_parts_free(struct xti_parts *b); /* not the plan */

#endif
