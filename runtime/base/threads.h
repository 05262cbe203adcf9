/* threads.h: threads that take parts of a task, and are parked between tasks: a context's for its copies,
 * those of a run over files, xt_pack's for its compiles; or a program's own, behind its function. Layer 0. */
#ifndef XTI_BASE_THREADS_H
#define XTI_BASE_THREADS_H

#include <stdbool.h>

#include <xt/xt.h>

/* None are there before the first task. Whoever has a reference may hand out tasks, from any thread; a forked
 * child has the pool without its threads, and starts its own. */
struct xti_threads;

/* fn: whoever runs the tasks instead, by fn(pool, ..). NULL: out of memory. */
struct xti_threads *xti_threads_new(xt_parallel_for fn, void *pool);
struct xti_threads *xti_threads_ref(struct xti_threads *t);
void xti_threads_unref(struct xti_threads *t); /* the last one: after xti_threads_close */

/* Ends the threads and returns when they are gone, after a task that is under way; fn is not called any more.
 * From then on every task is the caller's alone. */
void xti_threads_close(struct xti_threads *t);

/* Calls task(arg, i) for every i in [0, n), on the caller's thread and up to n - 1 others, and returns when
 * all are done. Each i goes to whoever is free: none waits for a thread that does not come. False, and
 * nothing is called: the threads have another task, or are ended; t is NULL. */
bool xti_threads_run(struct xti_threads *t, int n, void (*task)(void *arg, int i), void *arg);

#endif
