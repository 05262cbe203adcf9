/* queue.h: the queue of background compiles: better CUDA kernels are made while others run. Layer 6.
 *
 * A kernel's path: RESTING until it has been used often or xt_kernel_wait asks; WANTED, in the queue; MAKING
 * in the queue's thread; then RESTING again (its `now` is the structure's code; the exact one may be wanted),
 * DONE (it is the exact code), MADE (compiled, and loaded by the next caller whose current context is the
 * kernel's: contexts that a caller made are his to touch) or FAILED.
 * CLOSED: the context is gone, and with it the queue. */
#ifndef XTI_API_QUEUE_H
#define XTI_API_QUEUE_H

#include <stdatomic.h>

#include "base/err.h"
#include "cuda/cuda.h"

struct xti_shared_code;
struct xti_queue;

enum xti_better_state { XTI_RESTING, XTI_WANTED, XTI_MAKING, XTI_MADE, XTI_DONE, XTI_FAILED, XTI_CLOSED };

/* Uses after which an exact kernel is wanted: runs, and compiles that found the kernel. A length that a
 * server serves once is used a hundred times, by its layers; what is used more often pays for 100 ms of a
 * core. */
enum { XTI_MANY_USES = 256 };

/* Of a kernel. queue NULL: nothing better is to come. */
struct xti_better {
    struct xti_queue *queue; /* a reference */
    struct xti_home home;
    _Atomic(enum xti_cuda_tier) tier; /* the next */
    atomic_int state, uses;
    struct xt_kernel *next;       /* in the queue, which holds a reference */
    struct xti_shared_code *made; /* MADE: not loaded yet */
    struct xti_err *err;          /* of the last failure; under the queue's lock. NULL: none, or no memory */
};

/* A queue of ctx. Its thread starts when the first kernel is promised something better. */
xt_status xti_queue_new(struct xt_ctx *ctx, struct xti_queue **out, struct xti_err *err);
/* The context ends: waits for the compile under way, drops what was wanted. */
void xti_queue_close(struct xti_queue *queue);
void xti_queue_unref(struct xti_queue *queue);

/* k is promised code of a tier, and then of those above it. False: no thread can be had. */
bool xti_better_promise(struct xt_kernel *k, struct xti_queue *queue, const struct xti_home *home,
                        enum xti_cuda_tier tier);
void xti_better_free(struct xt_kernel *k);

/* Puts k in the queue if it was RESTING (or FAILED, when again). Takes no lock and allocates nothing. */
void xti_better_want(struct xt_kernel *k, bool again);
/* Loads what is MADE; the current context is k's. */
void xti_better_load(struct xt_kernel *k);
/* Wants it and waits until it runs. */
xt_status xti_better_wait(struct xt_kernel *k, struct xti_err *err);

/* One use. */
static inline void xti_better_use(struct xt_kernel *k, struct xti_better *b)
{
    if (b->queue && atomic_load_explicit(&b->state, memory_order_relaxed) == XTI_RESTING &&
        atomic_fetch_add_explicit(&b->uses, 1, memory_order_relaxed) + 1 == XTI_MANY_USES)
        xti_better_want(k, false);
}

#endif
