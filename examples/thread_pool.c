/* thread_pool.c: large copies run on threads that the program has already: xt hands parallel_for a number of
 * tasks. The pool here is as small as one can be. With OpenMP it is one loop:
 *
 *     static void run_all(void *pool, int n, void (*task)(void *, int), void *arg)
 *     {
 *     #pragma omp parallel for
 *         for (int i = 0; i < n; i++)
 *             task(arg, i);
 *     }
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <xt/xt.h>

enum { WORKERS = 3, ROWS = 2048, COLUMNS = 1024 };

struct pool {
    pthread_mutex_t one_job, lock; /* the first is held as long as a job lasts */
    pthread_cond_t news;
    void (*task)(void *arg, int i);
    void *arg;
    int next, done, n; /* of the job's n tasks: taken, finished */
    int closed, jobs;
};

/* Runs tasks until none is left to take. The lock is held before and after, not while a task runs. */
static void take_tasks(struct pool *p)
{
    while (p->next < p->n) {
        int i = p->next++;
        pthread_mutex_unlock(&p->lock);
        p->task(p->arg, i);
        pthread_mutex_lock(&p->lock);
        if (++p->done == p->n)
            pthread_cond_broadcast(&p->news);
    }
}

static void *work(void *pool)
{
    struct pool *p = pool;
    pthread_mutex_lock(&p->lock);
    while (!p->closed) {
        take_tasks(p);
        pthread_cond_wait(&p->news, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* An xt_parallel_for: the caller works, too, and comes back when all tasks are done. */
static void run_all(void *pool, int n, void (*task)(void *arg, int i), void *arg)
{
    struct pool *p = pool;
    pthread_mutex_lock(&p->one_job);
    pthread_mutex_lock(&p->lock);
    p->task = task, p->arg = arg, p->next = p->done = 0, p->n = n, p->jobs++;
    pthread_cond_broadcast(&p->news);
    take_tasks(p);
    while (p->done < p->n)
        pthread_cond_wait(&p->news, &p->lock);
    pthread_mutex_unlock(&p->lock);
    pthread_mutex_unlock(&p->one_job);
}

int main(void)
{
    static float in[ROWS * COLUMNS], out[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        in[i] = (float)i;

    static struct pool pool = {.one_job = PTHREAD_MUTEX_INITIALIZER,
                               .lock = PTHREAD_MUTEX_INITIALIZER,
                               .news = PTHREAD_COND_INITIALIZER};
    pthread_t worker[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&worker[i], NULL, work, &pool))
            return 1;

    struct xt_options o = {.size = sizeof o, .threads = WORKERS + 1, .parallel_for = run_all, .pool = &pool};
    struct xt_ctx *ctx = NULL;
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    if (xt_ctx_new(&o, &ctx) || xt_parse("x: f32[2048,1024]; x.T", 0, NULL, &g) ||
        xt_compile(ctx, g, NULL, &k) || xt_run(k, out, (const void *[]){in}, NULL)) {
        fprintf(stderr, "%s\n", xt_last_error()->message);
        return 1;
    }
    printf("jobs of the pool: %d; the result starts with %g %g %g\n", pool.jobs, out[0], out[1], out[2]);

    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    pthread_mutex_lock(&pool.lock);
    pool.closed = 1;
    pthread_cond_broadcast(&pool.news);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(worker[i], NULL);
    return 0;
}
