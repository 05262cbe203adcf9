/* shard.h: the object behind xt_shard: a plan, and the run that is under way. Layer 5. */
#ifndef XTI_SHARD_SHARD_H
#define XTI_SHARD_SHARD_H

#include <xt/xt_shard.h>

#include "base/str.h"
#include "shard/boxes.h"

/* Slots of a transport: receives, then sends. A lane has more, behind those of its own: of messages by
 * boards, whose buffers together are some second caches long, so that a line has left the reader's when it is
 * written again. */
enum { XTI_EACH_WAY = 2, XTI_SLOTS = 2 * XTI_EACH_WAY, XTI_NEAR_SLOTS = 8 };
enum { XTI_LANE_SLOTS = XTI_EACH_WAY + XTI_NEAR_SLOTS };

/* What is under way of one direction. Messages go in their order, so that two ranks always have the same ones
 * of each other at hand: the first that is not done anywhere is posted on both its sides. */
struct xti_lane {
    struct xti_traffic *traffic;
    int next, done;
    int at[XTI_LANE_SLOTS];          /* message in this slot, -1: free */
    char *buffer[XTI_EACH_WAY];      /* of messages that no board has */
    uint64_t ticket[XTI_LANE_SLOTS]; /* of those by boards (near.h) */
};

/* A copy of several ranks' parts (whole.h). */
struct xti_whole {
    bool asked, serves, done; /* done: in this run it is, or what it copies is left to its parts */
    int n;
    struct xti_map *part, map; /* [n] what the map's pieces lie in */
    struct xti_plan plan;
    const void **src; /* [n] */
};

struct xt_shard {
    struct xti_shard_plan plan;
    struct xt_transport transport;
    struct xti_lane receive, send;
    bool running, broken;
    char *dst;
    const void *const *src;
    const void **src_kept; /* [inputs] */
    int64_t message_bytes; /* of the longest */
    int me;                /* which of the near ranks */
    uint64_t run, *expected;
    unsigned char *shows; /* [near.n] enum xti_shows */
    bool *pulled;         /* [pull.n + 1] what is done of it; the last one: of what stays on this rank */
    struct xti_whole whole;
};

/* As xt_shard_new, with messages of at most so many bytes, the same on all ranks. */
xt_status xti_shard_new(const char *line, int64_t rank, const struct xt_transport *transport,
                        int64_t most_bytes, struct xt_shard **out);
xt_status xti_shard_boxes(const struct xti_boxed *x, int64_t rank, const struct xt_transport *transport,
                          int64_t most_bytes, struct xt_shard **out);
/* Memory and kernels that a run needs. (run.c) */
xt_status xti_shard_ready(struct xt_shard *p, struct xti_err *err);
void xti_shard_text(const struct xt_shard *p, struct xti_str *b);
void xti_shard_json(const struct xt_shard *p, struct xti_str *b);
void xti_shard_info(const struct xt_shard *p, struct xt_shard_info *i);

#endif
