/* xt_shard.h: a chain over tensors that are spread over ranks: each rank's part of one redistribution.
 *
 *     mesh r[4]; x: f64[4096 r,8192]; x.T -> [8192 r,4096]       block rows of x -> block rows of x.T
 *     mesh p[32] q[32]; x: f64[131072 p(128),131072 q(128)]; x -> [131072 p q,131072]
 *     mesh r[8]@0 s[2]@8; x: f16[80,1024,16,8 r,128]; x.permute(0,1,3,2,4) -> [80,1024,8 s,16,128]
 *
 * `mesh` names the axes of a grid of ranks, the last the fastest; an axis with @N begins a grid of its own at
 * rank N. Behind an extent stand the mesh axes that cut it: in blocks of ceil(n/ranks); (128): in blocks of
 * 128 that are dealt in turn, (1): cyclic; (balanced): in runs that differ by one at most, the longer ones
 * first. Two names cut one axis together when they follow each other in the mesh. Along the mesh axes that a
 * tensor does not name all ranks of its grid have the same; a result without a destination is on every rank.
 * A local array has the extents that its rank holds (xt_shard_shape), dense, or for all ranks the strides and
 * the offset behind the shape: x: f32[64 r,8]:[16,1]+4.
 *
 * No transport is in the library: whoever has one (MPI, sockets, shared memory) fills in a table of
 * functions. Rules of xt.h hold: units, errors, ownership. A plan belongs to one thread at a time. */
#ifndef XT_XT_SHARD_H
#define XT_XT_SHARD_H

#include <xt/xt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How bytes get from rank to rank. All are called from within xt_shard_run, _start, _test, _wait by the
 * caller's thread. Between two ranks messages arrive in the order in which they are sent, and both sides post
 * them in the same order, with the same bytes, 1 MiB at most. At most 2 receives and 2 sends are under way;
 * `slot` in [0,4) names them. A status other than XT_OK ends the run with it. */
struct xt_transport {
    size_t size; /* sizeof(struct xt_transport) */
    void *self;  /* handed to each function */
    xt_status (*post_recv)(void *self, int64_t peer, void *buf, size_t bytes, int slot);
    /* buf stays as it is until the slot is done. */
    xt_status (*post_send)(void *self, int64_t peer, const void *buf, size_t bytes, int slot);
    /* A slot that is done since; -1: none so far. block: waits for one, and there is one under way. */
    xt_status (*wait_any)(void *self, int block, int *slot);

    /* All of the following 0: no rank shares memory with another. Else the ranks that do so with this one,
     * itself among them, ascending, and of each a board: memory that all of them see, of
     * xt_shard_board_bytes(n_near) bytes, all zero when the plans are made and theirs alone. The arrays
     * outlive the plan. Near ranks send each other no messages but by their boards. */
    int n_near;
    const int64_t *near;
    void *const *board;
    /* Whether near ranks see an array of this rank: a number >= 0 that tells them which; -1: they do not. And
     * where here is what rank `peer` calls so. They read it in its place, without a message. NULL: none. */
    int64_t (*name)(void *self, const void *at);
    const void *(*see)(void *self, int64_t peer, int64_t name);
};

XT_API size_t xt_shard_board_bytes(int n_near);

/* For a transport: what went wrong, as the thread's xt_last_error. Returns s. */
XT_API xt_status xt_shard_fail(xt_status s, const char *message);

struct xt_shard;

/* Plans the line for rank `rank` of its mesh, on the CPU. Without communication: the ranks that run it have
 * to plan the same line with the same version of xt. transport: copied; NULL: the plan is looked at, and run
 * only when it sends and receives nothing. Cost: of the rank's own messages, whatever the mesh: some 100 us.
 * When blocks do not fit each other and reshape lies between them, also some of every rank's. Memory: of the
 * messages, and 4 MiB of staging buffers at most in a run. Fails as xt_parse, and with XT_ERANGE: the mesh
 * has no such rank, XT_EUNSUPPORTED. */
XT_API xt_status xt_shard_new(const char *line, int64_t rank, const struct xt_transport *transport,
                              struct xt_shard **out);

/* A tensor as boxes of any extents: n of them, of `rank` axes each. */
struct xt_boxes {
    size_t size; /* sizeof(struct xt_boxes) */
    int64_t n;
    const int64_t *rank;     /* [n] who has it */
    const int64_t *lo, *len; /* [n*rank] its first element in the tensor, its extents */
    const int64_t *strides;  /* [n*rank] in that rank's array, in elements; NULL: each box dense */
    const int64_t *offset;   /* [n] of its first element there; NULL: a rank's boxes follow each other */
};

/* As xt_shard_new, of a tensor that goes from boxes to boxes, on ranks [0, ranks). All ranks give the same
 * boxes. Strides in another order of the axes permute, negative ones reverse. Boxes of `from` that are the
 * same are copies, others have no elements in common; what is in no box of `from` is not written. `to`: any
 * boxes, whose places in an array are apart. Cost: O(n log n + those that meet), of the rank's own boxes. Its
 * shape (xt_shard_shape) is the row of elements of its array. XT_EINVAL, XT_ERANGE: which box, and why. */
XT_API xt_status xt_shard_boxes(xt_dtype dtype, int rank, const int64_t *shape, const struct xt_boxes *from,
                                const struct xt_boxes *to, int64_t ranks, int64_t me,
                                const struct xt_transport *transport, struct xt_shard **out);

XT_API void xt_shard_free(struct xt_shard *p); /* no run is under way */

/* The chain on whole tensors, without the mesh, as xt_parse takes it. As xt_print. */
XT_API xt_status xt_shard_whole(const struct xt_shard *p, char *buf, size_t size, size_t *need);

XT_API int64_t xt_shard_ranks(const struct xt_shard *p); /* of the mesh */
XT_API int xt_shard_inputs(const struct xt_shard *p);

/* The local array of an input, or of the result (input -1): element type, extents, strides in elements,
 * offset; [from_bytes, to_bytes) as of xt_kernel_shape. rank: any of the mesh; one that is not of the
 * tensor's grid holds nothing: all extents 0; -1: the whole tensor, dense. */
XT_API xt_status xt_shard_shape(const struct xt_shard *p, int input, int64_t rank, struct xt_end_info *out);

/* Which element of the whole axis the rank's i-th is. -1: it has none such. */
XT_API int64_t xt_shard_index(const struct xt_shard *p, int input, int64_t rank, int axis, int64_t i);

/* Carries it out: collective, each rank with its own plan. dst and srcs: host pointers to the starts of this
 * rank's arrays; one may be NULL where the rank holds nothing of it.
 * post: dst holds what the chain gives of this rank's part, bit for bit; no other byte of it is written.
 * XT_EINVAL (NULL), XT_EALIAS: dst overlaps a source. Nothing has been sent then. After a failure of the
 * transport dst is undefined and the plan can only be freed. */
XT_API xt_status xt_shard_run(struct xt_shard *p, void *dst, const void *const *srcs);

/* The same in steps. start sends and receives what is possible at once and copies what stays on the rank;
 * test goes on without waiting, *done: it is finished; wait goes on until it is. One run at a time:
 * XT_EINVAL. */
XT_API xt_status xt_shard_start(struct xt_shard *p, void *dst, const void *const *srcs);
XT_API xt_status xt_shard_test(struct xt_shard *p, int *done);
XT_API xt_status xt_shard_wait(struct xt_shard *p);

/* What one rank does, in numbers. Bytes of messages count those of elements that guards hide, which some
 * chains of unlike reshapes have. */
struct xt_shard_info {
    size_t size; /* sizeof(struct xt_shard_info) */
    int64_t ranks, rank;
    int64_t send_peers, send_messages, send_bytes, send_in_place; /* in place: messages without a buffer */
    int64_t receive_peers, receive_messages, receive_bytes, receive_in_place;
    int64_t own_bytes, fill_bytes; /* written without a message */
    int64_t kernels;               /* different copies: pack, unpack, within the rank */
    int64_t plan_bytes, staging_bytes;
    int64_t near_bytes;   /* received by boards .. */
    int64_t direct_bytes; /* .. of which these are read in their place, where the sender's arrays are seen */
};
XT_API xt_status xt_shard_get(const struct xt_shard *p, struct xt_shard_info *out);

/* The plan for people, or as JSON (XT_JSON): what the rank holds, peers, messages, bytes, lanes, memory. As
 * xt_print. */
XT_API xt_status xt_shard_explain(const struct xt_shard *p, int flags, char *buf, size_t size, size_t *need);

#ifdef __cplusplus
}
#endif
#endif
