/* test_threads.c: many threads at once, forked children, allocations that fail, and hosts with odd habits:
 * what xt.h promises whoever calls from anywhere. Also meant for SAN=thread. */
#include "support/api.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/mem.h"
#include "cuda/cuda.h"
#include "support/child.h"
#include "support/random_graph.h"

char now_running[2048];

static const char *const lines[] = {
    "x: i32[6,8]; x.permute(1,0)",
    "x: i32[6,8]; x[:, ::-1]",
    "x: i32[6,8]; x.pad((1,0),(0,2), value=5)",
    "x: i32[6,8]; x.tril(1)",
    "x: i32[6,8]; x.permute(1,0).reshape(4,12).permute(1,0)",
    "x: i32[6,8]; concat(0, x, x[2:4])",
    "x: i32[6,8]; x.roll(3, 1)",
    "x: i32[6,8]; x.unsqueeze(1).expand(6,3,8) -> [6,3,8]:[30,9,1]+2",
};
enum { N_LINES = sizeof lines / sizeof *lines, N_THREADS = 8, DST = 4096 };

static void fill_ints(int32_t *a, int n)
{
    for (int i = 0; i < n; i++)
        a[i] = 1000 + i;
}

/* What every run of a line must give. */
static int32_t want[N_LINES][DST];

static void make_wanted(void)
{
    struct xt_ctx *ctx = new_ctx(XT_REF, 1);
    int32_t src[48];
    fill_ints(src, 48);
    for (int i = 0; i < N_LINES; i++) {
        struct xt_kernel *k = compile_line(ctx, lines[i]);
        expect(XT_OK, xt_run(k, want[i], (const void *[]){src}, NULL));
        xt_kernel_free(k);
    }
    xt_ctx_free(ctx);
}

/* Parse, compile, run, compare, without Check: it is called from threads and forked children. False: wrong.
 */
static bool copy_is_right(struct xt_ctx *ctx, int line, struct xt_kernel **keep)
{
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    int32_t src[48], dst[DST] = {0};
    fill_ints(src, 48);
    bool ok = !xt_parse(lines[line], 0, NULL, &g) && !xt_compile(ctx, g, NULL, &k) &&
              !xt_run(k, dst, (const void *[]){src}, NULL) && !memcmp(dst, want[line], sizeof dst);
    xt_graph_free(g);
    if (keep)
        *keep = k;
    else
        xt_kernel_free(k);
    return ok;
}

struct worker {
    pthread_t thread;
    struct xt_ctx *ctx;
    int number, rounds;
    pthread_barrier_t *start;
    struct xt_kernel *kernel[N_LINES];
    bool ok;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    w->ok = true;
    pthread_barrier_wait(w->start);
    for (int r = 0; r < w->rounds; r++)
        for (int i = 0; i < N_LINES; i++) {
            int line = (i + (r % 2 ? w->number : 0)) % N_LINES;
            xt_kernel_free(w->kernel[line]);
            w->ok = copy_is_right(w->ctx, line, &w->kernel[line]) && w->ok;
        }
    return NULL;
}

START_TEST(threads_that_compile_the_same_chains_at_once_share_their_kernels)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct worker w[N_THREADS] = {{0}};
    pthread_barrier_t start;
    struct xt_cache_stats stats = {.size = sizeof stats};
    enum { ROUNDS = 20 };
    pthread_barrier_init(&start, NULL, N_THREADS);
    for (int i = 0; i < N_THREADS; i++) {
        w[i].ctx = ctx, w[i].number = i, w[i].rounds = ROUNDS, w[i].start = &start;
        ck_assert_int_eq(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(w[i].thread, NULL);
    expect(XT_OK, xt_cache_get(ctx, &stats));
    xt_ctx_free(ctx);
    ck_assert_int_eq(stats.built, N_LINES);
    ck_assert_int_eq(stats.memory_hits, N_THREADS * ROUNDS * N_LINES - N_LINES);
    for (int i = 0; i < N_THREADS; i++) {
        ck_assert_msg(w[i].ok, "thread %d", i);
        for (int k = 0; k < N_LINES; k++) {
            ck_assert_ptr_eq(w[i].kernel[k], w[0].kernel[k]);
            if (i)
                xt_kernel_free(w[i].kernel[k]);
        }
    }
    for (int k = 0; k < N_LINES; k++)
        xt_kernel_free(w[0].kernel[k]);
    pthread_barrier_destroy(&start);
}
END_TEST

struct asker {
    pthread_t thread;
    pthread_barrier_t *start;
    const struct xt_kernel *k;
    const char *signature;
};

static void *ask(void *arg)
{
    struct asker *a = arg;
    struct xt_kernel_info info = {.size = sizeof info};
    pthread_barrier_wait(a->start);
    xt_kernel_get(a->k, &info);
    a->signature = info.signature;
    return NULL;
}

START_TEST(threads_that_ask_at_once_are_told_the_same_signature)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, N_THREADS);
    for (int line = 0; line < N_LINES; line++) {
        struct asker a[N_THREADS];
        struct xt_kernel *k = compile_line(ctx, lines[line]);
        for (int i = 0; i < N_THREADS; i++) {
            a[i] = (struct asker){.start = &start, .k = k};
            ck_assert_int_eq(pthread_create(&a[i].thread, NULL, ask, &a[i]), 0);
        }
        for (int i = 0; i < N_THREADS; i++) {
            pthread_join(a[i].thread, NULL);
            ck_assert_ptr_eq(a[i].signature, a[0].signature);
        }
        ck_assert_int_eq(strlen(a[0].signature), 32);
        xt_kernel_free(k);
    }
    pthread_barrier_destroy(&start);
    xt_ctx_free(ctx);
}
END_TEST

static void *fail_and_look(void *arg)
{
    bool *ok = arg;
    *ok = xt_last_error()->status == XT_OK && xt_run(NULL, NULL, NULL, NULL) == XT_EINVAL &&
          xt_last_error()->status == XT_EINVAL;
    return NULL;
}

START_TEST(the_last_error_is_the_threads_own)
{
    pthread_t t;
    bool ok = false;
    struct xt_graph *g;
    expect(XT_ESYNTAX, xt_parse("x: f32[3]; x.", 0, NULL, &g));
    ck_assert_int_eq(pthread_create(&t, NULL, fail_and_look, &ok), 0);
    pthread_join(t, NULL);
    ck_assert(ok);
    ck_assert_int_eq(xt_last_error()->status, XT_ESYNTAX);
    ck_assert_int_eq(xt_last_error()->column, 14);
}
END_TEST

struct one_kernel {
    const struct xt_kernel *k;
    const int32_t *src;
    size_t bytes;
    const int32_t *want;
    bool ok;
};

static void *run_one(void *arg)
{
    struct one_kernel *t = arg;
    int32_t *dst = malloc(t->bytes);
    char text[256];
    t->ok = dst != NULL;
    for (int i = 0; i < 5 && t->ok; i++) {
        memset(dst, 0, t->bytes);
        struct xt_kernel_info info = {.size = sizeof info};
        t->ok = !xt_run(t->k, dst, (const void *[]){t->src}, NULL) && !memcmp(dst, t->want, t->bytes) &&
                !xt_kernel_get(t->k, &info) && !xt_explain(t->k, i % 2, text, sizeof text, NULL);
    }
    free(dst);
    return NULL;
}

/* The kernel is large enough to start threads of its own. */
START_TEST(one_kernel_runs_in_many_threads)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 3);
    struct xt_kernel *k = compile_line(ctx, "x: i32[1030,1050]; x.permute(1,0)");
    size_t n = 1030 * 1050, bytes = 4 * n;
    int32_t *src = malloc(bytes), *expected = malloc(bytes);
    struct one_kernel t[N_THREADS];
    pthread_t thread[N_THREADS];
    fill_ints(src, (int)n);
    for (int i = 0; i < 1030; i++)
        for (int j = 0; j < 1050; j++)
            expected[1030 * j + i] = src[1050 * i + j];
    for (int i = 0; i < N_THREADS; i++) {
        t[i] = (struct one_kernel){k, src, bytes, expected, false};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run_one, &t[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(thread[i], NULL);
        ck_assert_msg(t[i].ok, "thread %d", i);
    }
    free(src);
    free(expected);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

/* Processor seconds of 500 copies, of all threads. */
static double processor_seconds(const struct xt_kernel *k, void *dst, const void *src)
{
    struct timespec t0, t1;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
    for (int i = 0; i < 500; i++)
        expect(XT_OK, xt_run(k, dst, &src, NULL));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    return (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
}

/* A thread that waited awake there would take turns with its caller: 1.25 times the time. */
START_TEST(a_thread_on_its_callers_processor_costs_nothing)
{
    enum { BYTES = 1 << 20 };
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (SANITIZED || sched_setaffinity(0, sizeof one, &one))
        return;
    struct xt_ctx *ctx[2];
    struct xt_kernel *k[2];
    char *src = calloc(1, BYTES), *dst = calloc(1, BYTES);
    double least[2] = {1e9, 1e9};
    for (int i = 0; i < 2; i++)
        k[i] = compile_line(ctx[i] = new_ctx(XT_CPU, i + 1), "x: u16[16,512,64]; x.permute(1,0,2)");
    for (int round = 0; round < 9; round++)
        for (int i = 0; i < 2; i++) {
            double t = processor_seconds(k[i], dst, src);
            least[i] = t < least[i] ? t : least[i];
        }
    ck_assert_msg(least[1] < 1.12 * least[0], "two threads %g s, one %g s", least[1], least[0]);
    for (int i = 0; i < 2; i++) {
        xt_kernel_free(k[i]);
        xt_ctx_free(ctx[i]);
    }
    free(src);
    free(dst);
}
END_TEST

/* ---------------------------------------------------------------------------------- the context's threads */

enum { BIG_ROWS = 1030, BIG_COLS = 1050, BIG_THREADS = 3 };

/* A copy that threads share, what it must give, and one that is too small for it. */
struct big {
    struct xt_ctx *ctx;
    struct xt_kernel *k, *small;
    int32_t *src, *want;
};

static struct big big_new(void)
{
    struct big b = {.ctx = new_ctx(XT_CPU, BIG_THREADS)};
    b.k = compile_line(b.ctx, "x: i32[1030,1050]; x.permute(1,0)");
    b.small = compile_line(b.ctx, "x: i32[130,1000]; x.permute(1,0)");
    b.src = malloc(BIG_ROWS * BIG_COLS * sizeof *b.src);
    b.want = malloc(BIG_ROWS * BIG_COLS * sizeof *b.want);
    fill_ints(b.src, BIG_ROWS * BIG_COLS);
    for (int i = 0; i < BIG_ROWS; i++)
        for (int j = 0; j < BIG_COLS; j++)
            b.want[BIG_ROWS * j + i] = b.src[BIG_COLS * i + j];
    return b;
}

/* But for the context. */
static void big_free(struct big *b)
{
    xt_kernel_free(b->k);
    xt_kernel_free(b->small);
    free(b->src);
    free(b->want);
}

/* Without Check, as copy_is_right. */
static bool big_is_right(const struct big *b, const struct xt_kernel *k)
{
    int32_t *dst = calloc(BIG_ROWS * BIG_COLS, sizeof *dst);
    bool ok = dst && !xt_run(k, dst, (const void *[]){b->src}, NULL) &&
              (k != b->k || !memcmp(dst, b->want, BIG_ROWS * BIG_COLS * sizeof *dst));
    free(dst);
    return ok;
}

/* This process's threads; `blocked`: those of them in which no signal is delivered but their own faults. */
static int count_threads(int *blocked)
{
    static const int open[] = {SIGKILL, SIGSTOP, SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    unsigned all = 0x7fffffff;
    for (int i = 0; i < 6; i++)
        all &= ~(1u << (open[i] - 1));
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    *blocked = 0;
    for (const struct dirent *e; tasks && (e = readdir(tasks));) {
        char path[300], row[256];
        unsigned long long mask = 0;
        FILE *f;
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        f = fopen(path, "r");
        while (f && fgets(row, sizeof row, f))
            sscanf(row, "SigBlk: %llx", &mask);
        if (f)
            fclose(f);
        n++;
        *blocked += (mask & 0x7fffffff) == all;
    }
    if (tasks)
        closedir(tasks);
    return n;
}

/* Those that were joined leave a moment later: until no more than `most` are there, or for 10 s. */
static int count_left(int most)
{
    int blocked, n;
    for (int i = 0; (n = count_threads(&blocked)) > most && i < 1000; i++)
        usleep(10000);
    return n;
}

static void *own_id(void *id)
{
    *(long *)id = syscall(SYS_gettid);
    return NULL;
}

/* A thread that was joined, a moment later; false: it stays for 10 s. */
static bool leaves(long id)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld", id);
    for (int i = 0; !access(path, F_OK); i++, usleep(10000))
        if (i == 1000)
            return false;
    return true;
}

START_TEST(a_contexts_threads_come_with_the_first_large_copy_and_go_with_the_context)
{
    long id;
    pthread_t first; /* with it a sanitizer's own thread comes */
    struct big b = big_new();
    ck_assert(!pthread_create(&first, NULL, own_id, &id) && !pthread_join(first, NULL) && leaves(id));
    int blocked, before = count_threads(&blocked);
    ck_assert(big_is_right(&b, b.small));
    ck_assert_int_eq(count_threads(&blocked), before);
    for (int i = 0; i < 20; i++)
        ck_assert(big_is_right(&b, b.k));
    ck_assert_int_eq(count_threads(&blocked), before + BIG_THREADS - 1);
    ck_assert_int_ge(blocked, BIG_THREADS - 1);
    xt_ctx_free(b.ctx);
    ck_assert_int_eq(count_left(before), before);
    ck_assert(big_is_right(&b, b.k)); /* alone */
    ck_assert_int_eq(count_threads(&blocked), before);
    big_free(&b);
}
END_TEST

/* Threads of this process that may not run on all of these processors. */
static int count_kept_off(const cpu_set_t *all)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    for (const struct dirent *e; tasks && (e = readdir(tasks));) {
        cpu_set_t may;
        if (e->d_name[0] != '.' && !sched_getaffinity(atoi(e->d_name), sizeof may, &may))
            n += !CPU_EQUAL(&may, all);
    }
    if (tasks)
        closedir(tasks);
    return n;
}

/* A thread is kept off its caller's processor while it is woken: no longer. */
START_TEST(threads_that_were_woken_may_run_anywhere)
{
    cpu_set_t all;
    struct big b = big_new();
    ck_assert(!sched_getaffinity(0, sizeof all, &all));
    for (int i = 0; i < 50; i++) {
        ck_assert(big_is_right(&b, b.k));
        usleep(1000); /* they sleep */
    }
    for (int i = 0; i < 1000 && count_kept_off(&all); i++)
        usleep(10000); /* on a busy machine they have yet to run */
    ck_assert_int_eq(count_kept_off(&all), 0);
    xt_ctx_free(b.ctx);
    big_free(&b);
}
END_TEST

static void count_tasks(void *pool, int n, void (*task)(void *, int), void *arg)
{
    ++*(int *)pool;
    for (int i = 0; i < n; i++)
        task(arg, i);
}

START_TEST(a_programs_own_threads_are_not_asked_once_the_context_is_gone)
{
    int tasks = 0;
    struct big b = big_new();
    struct xt_options o = {
        .size = sizeof o, .threads = 3, .parallel_for = count_tasks, .pool = &tasks, .cache_dir = ""};
    struct xt_ctx *ctx;
    expect(XT_OK, xt_ctx_new(&o, &ctx));
    xt_kernel_free(b.k);
    b.k = compile_line(ctx, "x: i32[1030,1050]; x.permute(1,0)");
    ck_assert(big_is_right(&b, b.k));
    ck_assert_int_eq(tasks, 1);
    xt_ctx_free(ctx);
    ck_assert(big_is_right(&b, b.k)); /* alone */
    ck_assert_int_eq(tasks, 1);
    xt_ctx_free(b.ctx);
    big_free(&b);
}
END_TEST

static atomic_bool stop_copying;

static void *copy_for_ever(void *arg)
{
    const struct big *b = arg;
    bool ok = true;
    while (ok && !atomic_load(&stop_copying))
        ok = big_is_right(b, b->k);
    return (void *)(uintptr_t)ok;
}

START_TEST(a_context_that_is_freed_while_its_kernels_copy_harms_none)
{
    for (int i = 0; i < 10; i++) {
        struct big b = big_new();
        pthread_t t[2];
        void *ok;
        atomic_store(&stop_copying, false);
        for (int k = 0; k < 2; k++)
            ck_assert_int_eq(pthread_create(&t[k], NULL, copy_for_ever, &b), 0);
        usleep(3000 + 500 * i);
        xt_ctx_free(b.ctx);
        atomic_store(&stop_copying, true);
        for (int k = 0; k < 2; k++) {
            pthread_join(t[k], &ok);
            ck_assert(ok);
        }
        big_free(&b);
    }
}
END_TEST

/* ------------------------------------------------------------------------------------------------- fork */

/* Wait status of a child that runs f. */
static int in_child(bool (*f)(void *arg), void *arg)
{
    pid_t pid = fork_child();
    if (!pid)
        _exit(f(arg) ? 0 : 1);
    return end_of(pid);
}

static bool use_everything(void *arg)
{
    struct xt_ctx *ctx = arg, *own = NULL;
    struct xt_options o = {.size = sizeof o, .backend = XT_CPU, .threads = 1, .cache_dir = ""};
    bool ok = !xt_ctx_new(&o, &own);
    for (int i = 0; i < N_LINES && ok; i++)
        ok = copy_is_right(ctx, i, NULL) && copy_is_right(own, i, NULL);
    xt_ctx_free(own);
    return ok;
}

START_TEST(a_child_uses_its_parents_context_and_kernels)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k[N_LINES / 2];
    for (int i = 0; i < N_LINES / 2; i++)
        ck_assert(copy_is_right(ctx, i, &k[i]));
    ck_assert_int_eq(in_child(use_everything, ctx), 0);
    for (int i = 0; i < N_LINES / 2; i++)
        xt_kernel_free(k[i]);
    ck_assert(use_everything(ctx));
    xt_ctx_free(ctx);
}
END_TEST

static atomic_bool stop;

/* New contexts all the time, and a shared one: builds are under way at every moment. */
static void *compile_for_ever(void *arg)
{
    struct worker *w = arg;
    w->ok = true;
    for (int i = w->number; !atomic_load(&stop); i++) {
        struct xt_ctx *own = NULL;
        struct xt_options o = {.size = sizeof o, .backend = XT_CPU, .threads = 1, .cache_dir = ""};
        w->ok = w->ok && !xt_ctx_new(&o, &own) && copy_is_right(own, i % N_LINES, NULL) &&
                copy_is_right(w->ctx, i % N_LINES, NULL);
        xt_ctx_free(own);
    }
    return NULL;
}

START_TEST(a_child_forked_while_threads_compile_can_compile)
{
    if (SANITIZED) {
        printf("skipped: fork beside threads: a sanitizer's allocator does not survive it\n");
        return;
    }
    struct worker w[3] = {{0}};
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    atomic_store(&stop, false);
    for (int i = 0; i < 3; i++) {
        w[i].ctx = ctx, w[i].number = i;
        ck_assert_int_eq(pthread_create(&w[i].thread, NULL, compile_for_ever, &w[i]), 0);
    }
    for (int i = 0; i < 40; i++) {
        int status = in_child(use_everything, ctx);
        ck_assert_msg(status == 0, "child %d: status 0x%x", i, (unsigned)status);
        usleep(700);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++) {
        pthread_join(w[i].thread, NULL);
        ck_assert(w[i].ok);
    }
    xt_ctx_free(ctx);
}
END_TEST

/* What contexts do when they begin and end, without the rest. */
static void *come_and_go(void *arg)
{
    while (!atomic_load(&stop)) {
        xti_modules_keep();
        xti_modules_drop();
    }
    return NULL;
}

static bool make_context(void *arg)
{
    struct xt_options o = {.size = sizeof o, .backend = XT_CPU, .threads = 1, .cache_dir = ""};
    struct xt_ctx *own = NULL;
    bool ok = !xt_ctx_new(&o, &own);
    xt_ctx_free(own);
    return ok;
}

START_TEST(a_child_forked_while_contexts_come_and_go_can_make_one)
{
    pthread_t t[2];
    if (SANITIZED) {
        printf("skipped: fork beside threads: a sanitizer's allocator does not survive it\n");
        return;
    }
    atomic_store(&stop, false);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, come_and_go, NULL), 0);
    for (int i = 0; i < 200; i++) {
        int status = in_child(make_context, NULL);
        ck_assert_msg(status == 0, "child %d: status 0x%x", i, (unsigned)status);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}
END_TEST

static bool copy_in_child(void *arg)
{
    struct big *b = arg;
    int blocked;
    bool ok = count_threads(&blocked) == 1 && big_is_right(b, b->k) && big_is_right(b, b->k) &&
              count_threads(&blocked) == BIG_THREADS;
    xt_ctx_free(b->ctx);
    return ok && count_left(1) == 1 && big_is_right(b, b->k);
}

START_TEST(a_child_starts_threads_of_its_own)
{
    struct big b = big_new();
    if (SANITIZED) {
        printf("skipped: fork beside threads: a sanitizer's allocator does not survive it\n");
        return;
    }
    ck_assert(big_is_right(&b, b.k));
    ck_assert_int_eq(in_child(copy_in_child, &b), 0);
    ck_assert(big_is_right(&b, b.k));
    xt_ctx_free(b.ctx);
    big_free(&b);
}
END_TEST

START_TEST(a_child_forked_in_the_middle_of_a_copy_can_copy)
{
    struct big b = big_new();
    pthread_t t;
    void *ok;
    if (SANITIZED) {
        printf("skipped: fork beside threads: a sanitizer's allocator does not survive it\n");
        return;
    }
    atomic_store(&stop_copying, false);
    ck_assert_int_eq(pthread_create(&t, NULL, copy_for_ever, &b), 0);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(in_child(copy_in_child, &b), 0);
        usleep(700);
    }
    atomic_store(&stop_copying, true);
    pthread_join(t, &ok);
    ck_assert(ok);
    xt_ctx_free(b.ctx);
    big_free(&b);
}
END_TEST

static void *copy_and_sleep(void *arg)
{
    const struct big *b = arg;
    int32_t *dst = calloc(BIG_ROWS * BIG_COLS, sizeof *dst);
    while (dst && !atomic_load(&stop_copying)) {
        xt_run(b->k, dst, (const void *[]){b->src}, NULL);
        usleep(200); /* its threads, too */
    }
    free(dst);
    return NULL;
}

static bool copy_on_one_processor(void *arg)
{
    struct big *b = arg;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    bool ok = !sched_setaffinity(0, sizeof one, &one) && big_is_right(b, b->k);
    usleep(2000); /* until they have looked */
    return ok && !count_kept_off(&one);
}

/* A thread that was being woken when its process forked had been told where it may run. */
START_TEST(a_childs_threads_run_where_the_child_may)
{
    struct big b = big_new();
    pthread_t t;
    if (SANITIZED) {
        printf("skipped: fork beside threads: a sanitizer's allocator does not survive it\n");
        return;
    }
    atomic_store(&stop_copying, false);
    ck_assert_int_eq(pthread_create(&t, NULL, copy_and_sleep, &b), 0);
    for (int i = 0; i < 60; i++) {
        usleep(100 + 137 * i % 900);
        ck_assert_msg(in_child(copy_on_one_processor, &b) == 0, "child %d", i);
    }
    atomic_store(&stop_copying, true);
    pthread_join(t, NULL);
    xt_ctx_free(b.ctx);
    big_free(&b);
}
END_TEST

/* ------------------------------------------------------------------------------------------- odd hosts */

static bool without_descriptors(void *arg)
{
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    setenv("XT_DEBUG", "all", 1); /* has nowhere to go */
    struct xt_ctx *ctx = NULL;
    bool ok = !xt_ctx_new(&(struct xt_options){.size = sizeof(struct xt_options), .cache_dir = ""}, &ctx) &&
              use_everything(ctx);
    xt_ctx_free(ctx);
    return ok && fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 && fcntl(2, F_GETFD) < 0;
}

static bool without_a_directory(void *arg)
{
    char dir[] = "/tmp/xt-gone-XXXXXX";
    struct xt_ctx *ctx = NULL;
    struct xt_options o = {.size = sizeof o, .backend = XT_CPU};
    if (!mkdtemp(dir) || chdir(dir) || rmdir(dir) || unsetenv("HOME") || unsetenv("XDG_CACHE_HOME") ||
        unsetenv("XT_CACHE_DIR"))
        return false;
    bool ok = !xt_ctx_new(&o, &ctx) && !xt_cache_path(ctx) && *xt_cache_why(ctx) && use_everything(ctx);
    xt_ctx_free(ctx);
    return ok;
}

static bool with_children_ignored(void *arg)
{
    signal(SIGCHLD, SIG_IGN);
    return use_everything(arg);
}

static void *use_everything_in_thread(void *arg)
{
    struct worker *w = arg;
    w->ok = use_everything(w->ctx);
    return NULL;
}

/* A host's thread with a stack of 64 KiB, of which the test itself takes 20. */
static bool on_a_small_stack(void *arg)
{
    enum { STACK = SANITIZED ? 1 << 20 : 64 << 10 };
    struct worker w = {.ctx = arg};
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    return !pthread_attr_setstacksize(&attr, STACK) &&
           !pthread_create(&w.thread, &attr, use_everything_in_thread, &w) && !pthread_join(w.thread, NULL) &&
           w.ok;
}

START_TEST(hosts_with_odd_habits_are_served)
{
    static bool (*const habit[])(void *) = {without_descriptors, without_a_directory, with_children_ignored,
                                            on_a_small_stack};
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    int status = in_child(habit[_i], ctx);
    ck_assert_msg(status == 0, "habit %d: status 0x%x", _i, (unsigned)status);
    xt_ctx_free(ctx);
}
END_TEST

/* ------------------------------------------------------------------------------------ failing allocations */

/* Everything that a program does, from the first call to the last. Returns the first failure. */
static xt_status whole_life(const char *line, xt_backend backend, const struct xt_shape *given)
{
    struct xt_options o = {.size = sizeof o, .backend = backend, .threads = 1, .cache_dir = ""};
    struct xt_ctx *ctx = (void *)1;
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL, *again = NULL;
    static int32_t src[2][4096], dst[16384];
    char text[256];
    size_t need;
    xt_status s = xt_ctx_new(&o, &ctx);
    if (!s)
        s = xt_parse(line, given ? 1 : 0, given, &g);
    else
        ck_assert_ptr_null(ctx);
    if (!s)
        s = xt_compile(ctx, g, NULL, &k);
    else
        ck_assert_ptr_null(g);
    if (!s)
        s = xt_run(k, dst, (const void *[]){src[0], src[1]}, NULL);
    else
        ck_assert_ptr_null(k);
    if (!s)
        s = xt_explain(k, XT_WHY, text, sizeof text, &need);
    if (!s)
        s = xt_explain(k, XT_SVG, text, sizeof text, &need);
    if (!s)
        s = xt_explain(k, XT_JSON, text, sizeof text, &need);
    if (!s)
        s = xt_compile(ctx, g, NULL, &again);
    if (!s)
        s = xt_print(g, text, sizeof text, &need);
    ck_assert_msg(xt_last_error()->status == s && !s == !xt_last_error()->message[0], "%s: %s", line,
                  xt_status_name(s));
    xt_kernel_free(again);
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    return s;
}

static const char *const lives[] = {
    "x; x.permute(1,0).reshape(8,3)[:, ::-1]",
    "x: f32[6,8]; y: f32[6,8]; a = x.flip(0); concat(0, a, y, a).pad((1,1),(2,2), value=7) -> "
    "[20,12]:[13,1]+4",
    "x: u8[31,17]; x.tril(2).reshape(17,31).permute(1,0).roll(5, 0).tile(2,2)",
    "x: f64[6,10]; x.permute(1,0).reshape(4,15).permute(1,0).unfold(0,3,2)",
};

START_TEST(every_allocation_of_a_programs_life_may_fail)
{
    const struct xt_shape given = {XT_F32, 2, {4, 6}};
    const char *line = lives[_i / 2];
    xt_backend backend = _i % 2 ? XT_CPU : XT_REF;
    const struct xt_shape *shape = strstr(line, "x;") == line ? &given : NULL;
    expect(XT_OK, whole_life(line, backend, shape));
    int64_t live = xti_live_allocations();
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        int passed_in_a_row = 0, failures = 0;
        for (int64_t n = 1; passed_in_a_row < 30; n++) {
            xti_fail_alloc(n, for_ever);
            xt_status s = whole_life(line, backend, shape);
            xti_fail_alloc(0, 0);
            ck_assert_msg(s == XT_OK || s == XT_ENOMEM, "%s: allocation %lld: %s: %s", line, (long long)n,
                          xt_status_name(s), xt_last_error()->message);
            ck_assert_msg(xti_live_allocations() == live, "%s: allocation %lld: %lld more are live", line,
                          (long long)n, (long long)(xti_live_allocations() - live));
            failures += s != XT_OK;
            passed_in_a_row = s ? 0 : passed_in_a_row + 1;
        }
        ck_assert_int_gt(failures, 20);
        ck_assert_msg(whole_life(line, backend, shape) == XT_OK, "%s", xt_last_error()->message);
    }
}
END_TEST

/* A context that saw a failure is as good as before. */
START_TEST(a_context_recovers_from_a_failed_allocation)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    for (int64_t n = 1; n < 120; n++)
        for (int i = 0; i < N_LINES; i += 3) {
            struct xt_graph *g = parse_line(lines[i]);
            struct xt_kernel *k = NULL;
            xti_fail_alloc(n, 0);
            xt_status s = xt_compile(ctx, g, NULL, &k);
            xti_fail_alloc(0, 0);
            ck_assert(!s ? k != NULL : s == XT_ENOMEM && !k);
            xt_kernel_free(k);
            xt_graph_free(g);
            ck_assert(copy_is_right(ctx, i, NULL));
            if (n % 8 == 0) {
                xt_ctx_free(ctx);
                ctx = new_ctx(XT_CPU, 1);
            }
        }
    xt_ctx_free(ctx);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("threads");
    TCase *c = tcase_create("threads");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, make_wanted, NULL);
    tcase_add_test(c, threads_that_compile_the_same_chains_at_once_share_their_kernels);
    tcase_add_test(c, threads_that_ask_at_once_are_told_the_same_signature);
    tcase_add_test(c, the_last_error_is_the_threads_own);
    tcase_add_test(c, one_kernel_runs_in_many_threads);
    tcase_add_test(c, a_contexts_threads_come_with_the_first_large_copy_and_go_with_the_context);
    tcase_add_test(c, a_thread_on_its_callers_processor_costs_nothing);
    tcase_add_test(c, threads_that_were_woken_may_run_anywhere);
    tcase_add_test(c, a_programs_own_threads_are_not_asked_once_the_context_is_gone);
    tcase_add_test(c, a_context_that_is_freed_while_its_kernels_copy_harms_none);
    tcase_add_test(c, a_child_starts_threads_of_its_own);
    tcase_add_test(c, a_child_forked_in_the_middle_of_a_copy_can_copy);
    tcase_add_test(c, a_childs_threads_run_where_the_child_may);
    tcase_add_test(c, a_child_uses_its_parents_context_and_kernels);
    tcase_add_test(c, a_child_forked_while_threads_compile_can_compile);
    tcase_add_test(c, a_child_forked_while_contexts_come_and_go_can_make_one);
    tcase_add_loop_test(c, hosts_with_odd_habits_are_served, 0, 4);
    tcase_add_loop_test(c, every_allocation_of_a_programs_life_may_fail, 0, 2 * sizeof lives / sizeof *lives);
    tcase_add_test(c, a_context_recovers_from_a_failed_allocation);
    suite_add_tcase(s, c);
    return run_suite(s);
}
