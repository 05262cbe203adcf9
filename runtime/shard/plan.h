/* plan.h: what one rank sends, receives and copies within itself. The chain is fused once, over pages of
 * ranks (layout.h); who talks to whom is read off the strides of the map, without a loop over ranks. A
 * message is a list of parts: boxes of the map without their rank digits. Parts that differ by offsets alone
 * share a stencil, and so their kernels. Layer 5. */
#ifndef XTI_SHARD_PLAN_H
#define XTI_SHARD_PLAN_H

#include "cpu/cpu.h"
#include "map/map.h"
#include "shard/layout.h"

/* At most; longer ones are cut. What was packed is still in a second cache when it is sent or unpacked. */
enum { XTI_MESSAGE_BYTES = 1 << 20 };

/* Ranks that share memory, ascending. */
struct xti_near {
    int n;
    const int64_t *rank;
};
int xti_near_find(const struct xti_near *n, int64_t rank); /* which; -1: none of them */

/* From rank, or message, to rank, or message. A message on a board is streamed: its lines were read last by
 * another processor, which an ordinary store would have to ask for each. */
enum xti_move { XTI_WITHIN, XTI_PACK, XTI_PACK_NEAR, XTI_UNPACK, XTI_MOVES };

struct xti_move_kernel {
    struct xti_map map;
    struct xti_plan plan;
};

/* Elements of a rank's array, counted from where a part begins: n of them, `step` apart. */
struct xti_list_run {
    int64_t at;
    int32_t n, step;
};

/* The elements of a part: strides within the arrays of the ranks, and where they are in a message. */
struct xti_stencil {
    int group; /* parts of one box of the map */
    struct xti_piece piece;
    int64_t *pos;     /* [n_dims] stride in the message; 0: the dim is not sent */
    int64_t elements; /* of the part in a message */
    /* A box whose guards hide most of it is sent as a list: the rank's own side of what they let pass, in the
     * order of the message. The piece has then but the dims that are not sent. n_runs 0: no list. */
    const struct xti_list_run *run;
    int64_t n_runs;
    bool direct; /* better copied from place to place, where both are seen */
    bool used[XTI_MOVES];
    struct xti_move_kernel *kernel[XTI_MOVES]; /* NULL: not made */
};

struct xti_shard_part {
    int64_t peer, soff, doff, at; /* elements: in the local arrays, in the message */
    int stencil, input;
};

struct xti_message {
    int64_t peer, elements;
    int first, n;  /* parts */
    int near;      /* the peer is this near rank; -1: none of them */
    bool in_place; /* it is one run of this rank's array: no staging buffer */
    bool direct;   /* not sent where the sender's arrays are seen: it is among what the receiver pulls */
};

struct xti_traffic {
    int n_parts, n;
    int64_t cap_parts;
    struct xti_shard_part *part;
    struct xti_message *message; /* by distance from this rank, those of one peer in its own order, too */
    int64_t elements, peers;
};

struct xti_shard_plan {
    struct xti_arena arena;
    struct xt_graph *graph; /* of the whole tensors */
    struct xti_mesh mesh;
    int64_t rank;
    int esize;
    int64_t most; /* elements of a message */
    bool streams; /* so much is written that it leaves the caches */
    bool lists;   /* no rank's array reaches half a page (visible.h) */
    struct xti_near near;
    struct xti_target target;
    int n_stencils;
    int64_t cap_stencils;
    struct xti_stencil *stencil;
    struct xti_traffic own, fill, send, receive; /* own, fill: parts alone */
    struct xti_traffic pull; /* parts by near ranks whose arrays may be read in their place */
    bool *pulled_by;         /* [near.n] who may read this rank's */
    bool boxes;              /* not a chain over a mesh, but boxes.h; then, of the input and the result: */
    int64_t here[2][2];      /* elements [from, to) of this rank's array */
};

/* Plans the line for a rank. On failure *p is zeroed. target: as of xti_cpu_target. most_bytes: of a message,
 * the same on all ranks, and an element at least. near: kept.
 * post: what rank a sends to b, message by message and part by part, is what b receives of a. */
xt_status xti_shard_plan_make(const char *line, int64_t rank, const struct xti_target *target,
                              int64_t most_bytes, const struct xti_near *near, struct xti_shard_plan *p,
                              struct xti_err *err);
void xti_shard_plan_free(struct xti_shard_plan *p);

/* Bytes of a whole tensor. XT_EOVERFLOW: they do not fit in 63 bits. */
xt_status xti_whole_bytes(const struct xti_node *n, const char *what, int64_t *bytes, struct xti_err *err);

/* Makes the kernels that the plan's messages need. */
xt_status xti_shard_kernels(struct xti_shard_plan *p, struct xti_err *err);

/* ---- share.c */

/* What of a box without divs and guards goes into one message of `most` elements: at most n[n_dims] along
 * each dim. */
void xti_box_share(const struct xti_piece *box, int esize, int64_t most, int64_t *n);

/* ---- list.c */

/* Lists what guards let pass of the box: in the source's array where the rank sends, in the destination's
 * where it receives. *n_runs -1: no list, since that is half of the elements that pos says or more, or takes
 * too many looks (xti_box_visible); 0: all is hidden. *run is the caller's to free. Runs end where a message
 * of `most` elements does. */
xt_status xti_list_make(const struct xti_piece *box, const int64_t *pos, int64_t elements, int64_t most,
                        bool sending, int64_t *looks, struct xti_list_run **run, int64_t *n_runs);
/* From the array to the message, or back; the part begins at element `off`, which may itself lie anywhere. */
void xti_list_move(const struct xti_stencil *s, enum xti_move move, int esize, char *array, int64_t off,
                   char *message);

/* ---- stencil.c */

/* In which order a message has its elements. */
enum xti_message_order { XTI_BY_DESTINATION, XTI_BY_SOURCE };
/* How a box lies in a message: pos[n_dims] as in a stencil; gives its elements. */
int64_t xti_box_positions(const struct xti_piece *box, enum xti_message_order order, int64_t *pos);
/* The outermost dim of a message, -1: it is one element. */
int xti_box_outermost(const struct xti_piece *box, const int64_t *pos);
/* The order in which packing and unpacking messages of `most` elements is cheapest, by the careful machine's
 * prices, so that every rank of whatever processor chooses alike. */
enum xti_message_order xti_box_order(const struct xti_piece *box, int esize, int64_t most);
/* Whether one copy is no dearer than packing and unpacking, by the same prices. */
bool xti_box_direct(const struct xti_piece *box, int esize, enum xti_message_order order);
/* The stencil of a box of that group: one that is there, or a new one. -1: out of memory. */
int xti_stencil_find(struct xti_shard_plan *p, int group, const struct xti_piece *box, const int64_t *pos,
                     int64_t elements);
/* The same of a list, whose runs are copied. */
int xti_stencil_list(struct xti_shard_plan *p, int group, const struct xti_piece *box, const int64_t *pos,
                     int64_t elements, const struct xti_list_run *run, int64_t n_runs);
/* Whether the move is one run: what it would copy may be sent, or received, in its place. */
bool xti_stencil_runs(const struct xti_stencil *s, enum xti_move move);
xt_status xti_stencil_kernel(struct xti_shard_plan *p, int stencil, enum xti_move move, struct xti_err *err);
void xti_stencils_free(struct xti_shard_plan *p);

#endif
