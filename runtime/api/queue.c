/* queue.c: one thread a context that makes better CUDA kernels. What always holds: a kernel in the queue, or
 * being made, is held by a reference; whoever changes a state but RESTING to WANTED has the lock; the thread
 * runs in the process that started it alone. Layer 6. */
#include "api/api.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os.h"
#include "cuda/driver.h"

/* Emitting and planning take 96 KiB; NVRTC has a stack of its own. */
enum { STACK_BYTES = 1 << 20, MAX_WANTED = 64 };

struct xti_queue {
    atomic_int refs; /* of the context, of kernels */
    struct xt_ctx *ctx;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a state has */
    sem_t wake;
    atomic_bool closed;
    _Atomic(struct xt_kernel *) wanted; /* last first */
    atomic_int n_wanted;
    bool started;
    pid_t process; /* that has the thread */
    pthread_t thread;
};

static void set_state(struct xti_queue *queue, struct xti_better *b, enum xti_better_state s)
{
    pthread_mutex_lock(&queue->lock);
    atomic_store(&b->state, s);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

/* ---- the list */

static struct xt_kernel *take_all(struct xti_queue *queue) { return atomic_exchange(&queue->wanted, NULL); }

/* Kernels that will not be made: the queue is closed. */
static void drop_wanted(struct xti_queue *queue)
{
    for (struct xt_kernel *k = take_all(queue), *next; k; k = next) {
        next = k->better.next;
        set_state(queue, &k->better, XTI_CLOSED);
        xt_kernel_free(k);
    }
}

static void push(struct xti_queue *queue, struct xt_kernel *k)
{
    xt_kernel_ref(k);
    atomic_fetch_add(&queue->n_wanted, 1);
    k->better.next = atomic_load(&queue->wanted);
    while (!atomic_compare_exchange_weak(&queue->wanted, &k->better.next, k)) {
    }
    sem_post(&queue->wake);
}

void xti_better_want(struct xt_kernel *k, bool again)
{
    struct xti_better *b = &k->better;
    struct xti_queue *queue = b->queue;
    if (atomic_load(&queue->closed)) {
        int state = atomic_load(&b->state);
        while (state != XTI_DONE && !atomic_compare_exchange_weak(&b->state, &state, XTI_CLOSED)) {
        }
        return;
    }
    int was = again && atomic_load(&b->state) == XTI_FAILED ? XTI_FAILED : XTI_RESTING;
    if (!again && atomic_load(&queue->n_wanted) >= MAX_WANTED) { /* later: at the next use, or after many */
        atomic_store(&b->uses, atomic_load(&b->tier) == XTI_TIER_EXACT ? 0 : XTI_MANY_USES - 1);
        return;
    }
    if (!atomic_compare_exchange_strong(&b->state, &was, XTI_WANTED))
        return;
    push(queue, k);
    if (atomic_load(&queue->closed)) /* its thread may be gone */
        drop_wanted(queue);
}

/* ---- the thread */

/* The state that follows. */
static enum xti_better_state publish(struct xt_kernel *k, struct xti_shared_code *c, const char *origin)
{
    struct xti_better *b = &k->better;
    k->code[c->tier] = c;
    k->code_origin[c->tier] = origin;
    atomic_store_explicit(&k->now, c, memory_order_release);
    if (c->tier == XTI_TIER_EXACT)
        return XTI_DONE;
    atomic_store(&b->tier, XTI_TIER_EXACT);
    atomic_store(&b->uses, 0);
    return XTI_RESTING;
}

static void make(struct xti_queue *queue, struct xt_kernel *k)
{
    struct xti_better *b = &k->better;
    struct xti_shared_code *c = NULL;
    const char *origin = NULL;
    struct xti_err err = {0};
    bool ours = !b->home.context; /* the primary context: held as long as its modules are */
    enum xti_better_state next = XTI_FAILED;
    set_state(queue, b, XTI_MAKING);
    xt_status s =
        xti_code_get(queue->ctx, k, atomic_load(&b->tier), ours ? &b->home : NULL, &c, &origin, &err);
    if (s)
        xti_logf(XTI_LOG_CACHE, "better kernel: %s", err.e.message);
    else if (ours)
        next = publish(k, c, origin);
    else
        next = XTI_MADE, b->made = c;
    xti_free(b->err);
    b->err = s ? xti_memdup(&err, sizeof err) : NULL;
    set_state(queue, b, next);
}

/* Takes one off the list: who waits for the structure's code runs a kernel that is far from the best. */
static struct xt_kernel *pick(struct xt_kernel **list)
{
    struct xt_kernel **at = list;
    while (*at && atomic_load(&(*at)->better.tier) == XTI_TIER_EXACT)
        at = &(*at)->better.next;
    at = *at ? at : list;
    struct xt_kernel *k = *at;
    *at = k->better.next;
    return k;
}

/* Puts what came meanwhile in front. */
static void add_new(struct xti_queue *queue, struct xt_kernel **list)
{
    struct xt_kernel *new = take_all(queue), **end = &new;
    while (*end)
        end = &(*end)->better.next;
    *end = *list;
    *list = new;
}

static void *work(void *arg)
{
    struct xti_queue *queue = arg;
    while (!atomic_load(&queue->closed)) {
        struct xt_kernel *list = NULL;
        while (add_new(queue, &list), list) {
            struct xt_kernel *k = pick(&list);
            atomic_fetch_sub(&queue->n_wanted, 1);
            if (atomic_load(&queue->closed))
                set_state(queue, &k->better, XTI_CLOSED);
            else
                make(queue, k);
            xt_kernel_free(k);
        }
        while (sem_wait(&queue->wake)) {
        }
    }
    return NULL;
}

/* With the lock. */
static bool start(struct xti_queue *queue)
{
    if (queue->started)
        return queue->process == getpid();
    queue->started = !xti_thread_start(&queue->thread, STACK_BYTES, false, work, queue);
    queue->process = getpid();
    return queue->started;
}

/* ---- its life */

xt_status xti_queue_new(struct xt_ctx *ctx, struct xti_queue **out, struct xti_err *err)
{
    struct xti_queue *queue = xti_alloc(sizeof *queue);
    if (!queue)
        return xti_fail(err, XT_ENOMEM, "context");
    atomic_init(&queue->refs, 1);
    queue->ctx = ctx;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    sem_init(&queue->wake, 0, 0);
    *out = queue;
    return XT_OK;
}

void xti_queue_close(struct xti_queue *queue)
{
    if (!queue)
        return;
    atomic_store(&queue->closed, true);
    bool here = queue->started && queue->process == getpid();
    if (here) {
        sem_post(&queue->wake);
        pthread_join(queue->thread, NULL);
    }
    if (here || !queue->started)
        drop_wanted(queue);
    xti_queue_unref(queue);
}

void xti_queue_unref(struct xti_queue *queue)
{
    if (!queue || atomic_fetch_sub_explicit(&queue->refs, 1, memory_order_acq_rel) != 1)
        return;
    sem_destroy(&queue->wake);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    xti_free(queue);
}

/* ---- kernels */

bool xti_better_promise(struct xt_kernel *k, struct xti_queue *queue, const struct xti_home *home,
                        enum xti_cuda_tier tier)
{
    pthread_mutex_lock(&queue->lock);
    bool there = start(queue);
    pthread_mutex_unlock(&queue->lock);
    if (!there)
        return false;
    atomic_fetch_add_explicit(&queue->refs, 1, memory_order_relaxed);
    k->better.queue = queue;
    k->better.home = *home;
    atomic_init(&k->better.tier, tier);
    return true;
}

void xti_better_free(struct xt_kernel *k)
{
    xti_free(k->better.err);
    xti_code_unref(k->better.made);
    xti_queue_unref(k->better.queue);
}

static xt_status load_made(struct xt_kernel *k, struct xti_err *err)
{
    struct xti_better *b = &k->better;
    struct xti_shared_code *loaded = NULL;
    enum xti_better_state next = XTI_MADE;
    pthread_mutex_lock(&b->queue->lock);
    bool mine = atomic_load(&b->state) == XTI_MADE;
    if (mine)
        atomic_store(&b->state, XTI_MAKING);
    pthread_mutex_unlock(&b->queue->lock);
    if (!mine)
        return XT_OK;
    struct xti_shared_code *made = b->made;
    xt_status s = xti_code_load(made, &b->home, &loaded, err);
    if (!s) {
        next = publish(k, loaded, made->origin);
        b->made = NULL;
        xti_code_unref(made);
    }
    set_state(b->queue, b, next);
    return s;
}

/* What cannot be loaded now is tried again by the next caller. */
void xti_better_load(struct xt_kernel *k) { load_made(k, NULL); }

/* The context that the kernel is at home in is current, or may be made so by anybody. */
static bool at_home(const struct xti_better *b)
{
    struct xti_home here = {0};
    return !b->home.context || (!xti_home_get((int)b->home.number, &here, NULL) &&
                                here.context == b->home.context && here.number == b->home.number);
}

xt_status xti_better_wait(struct xt_kernel *k, struct xti_err *err)
{
    struct xti_better *b = &k->better;
    if (!b->queue)
        return XT_OK;
    if (xti_driver_forked() || b->queue->process != getpid())
        return xti_fail(err, XT_EFORKED, "CUDA kernel of the parent process");
    if (!at_home(b))
        return xti_fail(err, XT_ENODEVICE,
                        "xt_kernel_wait: the kernel's CUDA context is not the current one");
    for (;;) {
        xti_better_want(k, true);
        pthread_mutex_lock(&b->queue->lock);
        int s;
        while ((s = atomic_load(&b->state)) == XTI_WANTED || s == XTI_MAKING)
            pthread_cond_wait(&b->queue->changed, &b->queue->lock);
        struct xti_err failed = {0};
        if (s == XTI_FAILED && b->err)
            failed = *b->err;
        else if (s == XTI_FAILED)
            xti_fail(&failed, XT_ENOMEM, "the words for why there is no better kernel");
        pthread_mutex_unlock(&b->queue->lock);
        if (s == XTI_DONE)
            return XT_OK;
        if (s == XTI_CLOSED)
            return xti_fail(err, XT_EINVAL, "xt_kernel_wait: the kernel's context was freed");
        if (s == XTI_FAILED)
            return xti_fail(err, failed.e.status, "%s", failed.e.message);
        if (s == XTI_MADE && load_made(k, err))
            return err ? err->e.status : XT_EDEVICE;
    }
}
