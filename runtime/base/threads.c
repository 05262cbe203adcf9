/* threads.c: threads that wait between tasks. A task is a count of parts; callers and threads take one part
 * after the other from it, by one atomic word, until none is left: who comes late finds nothing, and nobody
 * waits for him. Each thread sleeps on a word of its own and wakes two others before it works, so that the
 * caller pays for two however many there are. In: Linux (futex). Layer 0. */
#include "base/threads.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os.h"

enum {
    MOST = 63,       /* threads beside the caller */
    SPIN_NS = 30000, /* a task that follows at once finds its threads awake; OpenMP's wait for milliseconds */
    LOOKS = 64,      /* between two looks at the clock */
    STACK_BYTES = 512 << 10 /* what xt_run needs, and the program's thread-local variables */
};

/* What a thread's word says. */
enum { IDLE, CALLED, ASLEEP };

struct thread {
    atomic_int word;
    struct xti_threads *of;
    int number; /* in the tree */
    pthread_t id;
    pid_t tid;
    bool kept_off; /* its caller's processor, until it runs; what it may use otherwise: */
    cpu_set_t allowed;
    char apart[64]; /* words of two threads share no line */
};

struct xti_threads {
    xt_parallel_for fn; /* who has the threads; NULL: these are here */
    void *pool;
    atomic_int refs;
    atomic_int holder; /* process whose caller hands out a task or ends the threads; 0: nobody */
    int process;       /* that started the threads */
    int n;             /* threads */
    atomic_bool closed;
    void (*task)(void *, int);
    void *arg;
    /* Parts that nobody has taken. Above them the number of the task, so that no thread takes a part of a
     * task that it saw before another one began. */
    atomic_uint_fast64_t left;
    char apart[64];
    atomic_int unfinished; /* parts */
    atomic_int waiting;    /* the caller, for unfinished */
    atomic_int wanted;     /* threads */
    atomic_int processor;  /* where the caller began */
    atomic_bool crowded;   /* a thread that took a part runs there, too */
    atomic_bool quit;
    char further[64];
    struct thread thread[MOST];
};

enum { PARTS_BITS = 16 };

/* ---- waiting */

static void pause_a_little(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waits awake, for a while: false where the word did not come to be `value`. */
static bool comes_soon(atomic_int *word, int value)
{
    int64_t end = 0;
    for (int i = 1; atomic_load_explicit(word, memory_order_relaxed) != value; i++) {
        pause_a_little();
        if (i % LOOKS)
            continue;
        int64_t now = xti_now_ns();
        if (end && now > end)
            return false;
        end = end ? end : now + SPIN_NS;
    }
    return true;
}

static void sleep_on(atomic_int *word, int value)
{
    syscall(SYS_futex, (int *)word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(atomic_int *word) { syscall(SYS_futex, (int *)word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

/* Linux may wake a thread where its caller runs, and leave it there: of two that wait for each other only one
 * is ever ready to run, which is no load to balance. It does so when it does not see that another processor
 * is idle: a virtual one that halts counts as preempted, and where few share a cache and half of them work it
 * does not look (available_idle_cpu, SIS_UTIL in kernel/sched/). False: there is nowhere else for it. */
static bool keep_off_caller(struct thread *t)
{
    cpu_set_t others;
    if (sched_getaffinity(t->tid, sizeof t->allowed, &t->allowed))
        return true;
    others = t->allowed;
    CPU_CLR(atomic_load(&t->of->processor), &others);
    if (!CPU_COUNT(&others))
        return false;
    t->kept_off = !sched_setaffinity(t->tid, sizeof others, &others);
    return true;
}

static void call(struct thread *t)
{
    if (atomic_exchange(&t->word, CALLED) == ASLEEP)
        wake(&t->word);
}

/* For a task. One that would only take its caller's time sleeps on. */
static void call_elsewhere(struct thread *t)
{
    if (atomic_load(&t->word) != ASLEEP || keep_off_caller(t))
        call(t);
}

/* Where it only stands in the way. */
static bool beside_caller(struct xti_threads *p) { return sched_getcpu() == atomic_load(&p->processor); }

/* Until it is called. Beside the caller it sleeps at once, to be woken elsewhere. */
static void await_call(struct thread *t)
{
    int idle = IDLE;
    if ((beside_caller(t->of) || !comes_soon(&t->word, CALLED)) &&
        atomic_compare_exchange_strong(&t->word, &idle, ASLEEP))
        while (atomic_load(&t->word) == ASLEEP)
            sleep_on(&t->word, ASLEEP);
    atomic_exchange(&t->word, IDLE); /* sees what was written before the call */
    if (t->kept_off)
        sched_setaffinity(0, sizeof t->allowed, &t->allowed);
    t->kept_off = false;
}

/* ---- tasks */

/* False: none is left. */
static bool take_part(struct xti_threads *p, int *part)
{
    uint_fast64_t left = atomic_load_explicit(&p->left, memory_order_acquire);
    do
        if (!(left & ((1 << PARTS_BITS) - 1)))
            return false;
    while (!atomic_compare_exchange_weak_explicit(&p->left, &left, left - 1, memory_order_acq_rel,
                                                  memory_order_acquire));
    *part = (int)(left & ((1 << PARTS_BITS) - 1)) - 1;
    return true;
}

static void work(struct xti_threads *p)
{
    int part;
    while (take_part(p, &part)) {
        p->task(p->arg, part); /* both stay as long as a part that was taken is unfinished */
        if (atomic_fetch_sub(&p->unfinished, 1) == 1 && atomic_exchange(&p->waiting, 0))
            wake(&p->waiting);
    }
}

/* Those below `number` in the tree whose root is the caller, 0. */
static void call_next(struct xti_threads *p, int number)
{
    int wanted = atomic_load(&p->wanted);
    for (int i = 2 * number + 1; i <= 2 * number + 2 && i <= wanted; i++)
        call_elsewhere(&p->thread[i - 1]);
}

static void *live(void *arg)
{
    struct thread *t = arg;
    t->tid = (pid_t)syscall(SYS_gettid);
    for (;;) {
        await_call(t);
        if (atomic_load(&t->of->quit))
            return NULL;
        call_next(t->of, t->number);
        if (beside_caller(t->of))
            atomic_store(&t->of->crowded, true);
        work(t->of);
    }
}

/* Brings the threads to so many, or as many as there can be. A fault on the host's memory is for the host's
 * handler. */
static void start(struct xti_threads *p, int wanted)
{
    for (; p->n < wanted; p->n++) {
        struct thread *t = &p->thread[p->n];
        atomic_store(&t->word, IDLE);
        t->of = p;
        t->number = p->n + 1;
        t->kept_off = false; /* a parent's thread may have been, when it forked */
        if (xti_thread_start(&t->id, STACK_BYTES, true, live, t))
            break;
    }
}

/* Nobody else's until it is let go. What a process that forked held in the middle of a task is free in the
 * child, where no thread of the task is. */
static bool hold(struct xti_threads *p, int process)
{
    int holder = 0;
    if (!atomic_compare_exchange_strong(&p->holder, &holder, process) &&
        (holder == process || !atomic_compare_exchange_strong(&p->holder, &holder, process)))
        return false;
    if (p->process != process) {
        p->process = process;
        p->n = 0;
    }
    return true;
}

static void let_go(struct xti_threads *p) { atomic_store(&p->holder, 0); }

static void await_all(struct xti_threads *p)
{
    if (!atomic_load(&p->crowded))
        comes_soon(&p->unfinished, 0);
    while (atomic_load(&p->unfinished)) {
        atomic_store(&p->waiting, 1);
        if (atomic_load(&p->unfinished))
            sleep_on(&p->waiting, 1);
    }
    atomic_store(&p->waiting, 0);
}

bool xti_threads_run(struct xti_threads *p, int n, void (*task)(void *, int), void *arg)
{
    if (!p || atomic_load(&p->closed))
        return false;
    if (p->fn) {
        p->fn(p->pool, n, task, arg);
        return true;
    }
    if (!hold(p, getpid()))
        return false;
    bool open = !atomic_load(&p->closed);
    if (open) {
        int wanted = n - 1 < MOST ? n - 1 : MOST;
        start(p, wanted);
        p->task = task;
        p->arg = arg;
        atomic_store(&p->processor, sched_getcpu());
        atomic_store(&p->crowded, false);
        atomic_store(&p->unfinished, n);
        atomic_store(&p->wanted, wanted < p->n ? wanted : p->n);
        uint_fast64_t before = atomic_load(&p->left) >> PARTS_BITS;
        atomic_store(&p->left, (before + 1) << PARTS_BITS | (uint_fast64_t)n);
        call_next(p, 0);
        work(p);
        await_all(p);
    }
    let_go(p);
    return open;
}

/* ---- the pool */

struct xti_threads *xti_threads_new(xt_parallel_for fn, void *pool)
{
    struct xti_threads *p = xti_alloc(sizeof *p);
    if (p) {
        atomic_init(&p->refs, 1);
        p->fn = fn;
        p->pool = pool;
    }
    return p;
}

struct xti_threads *xti_threads_ref(struct xti_threads *p)
{
    if (p)
        atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void xti_threads_unref(struct xti_threads *p)
{
    if (p && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1)
        xti_free(p);
}

void xti_threads_close(struct xti_threads *p)
{
    enum { AGAIN_US = 50 };
    if (!p)
        return;
    while (!hold(p, getpid()))
        usleep(AGAIN_US);
    atomic_store(&p->closed, true);
    atomic_store(&p->quit, true);
    for (int i = 0; i < p->n; i++)
        call(&p->thread[i]);
    for (int i = 0; i < p->n; i++)
        pthread_join(p->thread[i].id, NULL);
    p->n = 0;
    let_go(p);
}
