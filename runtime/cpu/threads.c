/* threads.c: shares a copy among threads. With a caller's parallel_for the work goes to his pool. Without
 * one, threads are started for this run alone: a pool that outlives the run would be gone in a forked child,
 * would keep the library from being unloaded, and would have to be paused, sized and torn down, all to save
 * 25 us on copies that take a millisecond (run.c asks for threads from 4 MiB on). Layer 4. */
#include <pthread.h>
#include <signal.h>

#include "cpu/run.h"

struct task {
    const struct xti_copy *copy;
    struct xti_share share;
};

static void *run_task(void *arg)
{
    const struct task *t = arg;
    xti_run_share(t->copy, t->share);
    return NULL;
}

enum { MAX_OWN_THREADS = 64 };

/* The caller does the first part, and every part for which no thread could be had. pthread_create allocates
 * the thread's stack: the one allocation of a run. */
void xti_run_threads(const struct xti_copy *c, int parts)
{
    pthread_t thread[MAX_OWN_THREADS];
    struct task task[MAX_OWN_THREADS];
    bool started[MAX_OWN_THREADS];
    sigset_t all, old;
    parts = parts < MAX_OWN_THREADS ? parts : MAX_OWN_THREADS;
    /* The host's signal handlers run on the host's threads, but for what an access raises: where that
     * is blocked, no handler is asked. A mapped file that is cut short is SIGBUS. */
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (int i = 1; i < parts; i++) {
        task[i] = (struct task){c, {i, parts}};
        started[i] = !pthread_create(&thread[i], NULL, run_task, &task[i]);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    xti_run_share(c, (struct xti_share){0, parts});
    for (int i = 1; i < parts; i++) {
        if (started[i])
            pthread_join(thread[i], NULL);
        else
            xti_run_share(c, task[i].share);
    }
}

struct pool_task {
    const struct xti_copy *copy;
    int parts;
};

static void run_part(void *arg, int i)
{
    const struct pool_task *t = arg;
    xti_run_share(t->copy, (struct xti_share){i, t->parts});
}

void xti_run_pool(const struct xti_copy *c, int parts, const struct xti_parallel *par)
{
    struct pool_task t = {c, parts};
    par->fn(par->pool, parts, run_part, &t);
}
