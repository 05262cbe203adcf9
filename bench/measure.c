/* measure.c: one workload: buffers, verification, and xt, memcpy, naive and the limit timed in turn. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "limit.h"

enum { MAX_SAMPLES = 101, N_RUNS = 5 };
#define HUGE_PAGE        ((size_t)2 << 20)
#define ONE_THREAD_BYTES ((size_t)4 << 20) /* below it starting a thread costs more than it gains */
#define SAMPLE_SECONDS   2e-3              /* a sample repeats its call until it lasts this long */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct setup {
    struct xt_kernel *k;
    struct naive *naive;
    int n;
    void *src[LIMIT_SOURCES], *dst, *dst2;
    size_t src_bytes[LIMIT_SOURCES], dst_bytes, copy_bytes;
    struct limit limit;
};

static bool small_pages;

void bench_refuse_huge_pages(void) { small_pages = true; }

void *bench_buffer(size_t bytes)
{
    size_t align = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : LINE, size = (bytes + align) / align * align;
    void *p = aligned_alloc(align, size);
    if (p && align > LINE)
        madvise(p, size, small_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    return p;
}

int bench_threads(void)
{
    const char *wanted = getenv("XT_THREADS");
    int n = wanted ? atoi(wanted) : 0;
    return n > 0 ? n : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static void scramble(unsigned char *p, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        p[i] = (unsigned char)(seed >> 56);
    }
}

static bool make_buffers(struct setup *s, const struct xt_kernel_info *info)
{
    s->dst_bytes = (size_t)info->dst_min_bytes;
    s->copy_bytes = (size_t)info->bytes_written;
    for (int i = 0; i < s->n; i++) {
        s->src_bytes[i] = (size_t)xt_src_min_bytes(s->k, i);
        if (!(s->src[i] = bench_buffer(s->src_bytes[i])))
            return false;
    }
    s->dst = bench_buffer(s->dst_bytes);
    s->dst2 = bench_buffer(s->dst_bytes);
    return s->dst && s->dst2;
}

/* What the chain must move at least. Overwrites the sources. */
static bool make_limit(struct setup *s, int width)
{
    struct limit *l = &s->limit;
    size_t lines = l->writes = (s->copy_bytes + LINE - 1) / LINE;
    l->n = s->n;
    l->dst = s->dst;
    if (!count_lines(s->k, s->n, s->src, s->src_bytes, s->dst_bytes, width, l->reads))
        return false;
    for (int i = 0; i < s->n; i++) {
        l->src[i] = s->src[i];
        lines += l->reads[i];
    }
    l->threads = lines * LINE >= ONE_THREAD_BYTES ? bench_threads() : 1;
    return true;
}

static void free_setup(struct setup *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->src[i]);
    free(s->dst);
    free(s->dst2);
    naive_free(s->naive);
    xt_kernel_free(s->k);
}

static void run_xt(const struct setup *s) { xt_run(s->k, s->dst, (const void *const *)s->src, NULL); }

static void run_naive(const struct setup *s) { naive_run(s->naive, s->dst2, (const void *const *)s->src); }

/* The same bytes as the chain writes, from one buffer to another. */
static void run_memcpy(const struct setup *s) { memcpy(s->dst, s->dst2, s->copy_bytes); }

static void run_stream(const struct setup *s) { limit_stream(&s->limit); }

static void run_cached(const struct setup *s) { limit_cached(&s->limit); }

static double sample(void (*run)(const struct setup *), const struct setup *s, int *repeat)
{
    for (;;) {
        double t = now();
        for (int i = 0; i < *repeat; i++)
            run(s);
        t = now() - t;
        if (t >= SAMPLE_SECONDS || *repeat >= 1 << 24)
            return t / *repeat;
        *repeat = t < SAMPLE_SECONDS / 64 ? *repeat * 16 : *repeat * 2;
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *t, int n, double *spread)
{
    qsort(t, (size_t)n, sizeof *t, ascending);
    double m = n % 2 ? t[n / 2] : (t[n / 2 - 1] + t[n / 2]) / 2;
    *spread = m > 0 ? (t[n * 3 / 4] - t[n / 4]) / m : 0;
    return m;
}

static void time_all(const struct setup *s, int samples, struct bench_row *row)
{
    static void (*const run[N_RUNS])(const struct setup *) = {run_xt, run_memcpy, run_naive, run_stream,
                                                              run_cached};
    double t[N_RUNS][MAX_SAMPLES], unused;
    int repeat[N_RUNS] = {1, 1, 1, 1, 1};
    for (int i = -1; i < samples; i++) /* the first round warms up */
        for (int j = 0; j < N_RUNS; j++)
            t[j][i < 0 ? 0 : i] = sample(run[j], s, &repeat[j]);
    row->seconds = median(t[0], samples, &row->spread);
    row->memcpy_seconds = median(t[1], samples, &unused);
    row->naive_seconds = median(t[2], samples, &unused);
    double stream = median(t[3], samples, &unused), cached = median(t[4], samples, &unused);
    row->limit_seconds = stream < cached ? stream : cached;
}

static int verify(const struct setup *s, char *err, size_t err_bytes)
{
    memset(s->dst, 0xa5, s->dst_bytes);
    memset(s->dst2, 0xa5, s->dst_bytes);
    if (xt_run(s->k, s->dst, (const void *const *)s->src, NULL)) {
        snprintf(err, err_bytes, "%s", xt_last_error()->message);
        return -1;
    }
    run_naive(s);
    if (!memcmp(s->dst, s->dst2, s->dst_bytes))
        return 0;
    size_t i = 0;
    while (((char *)s->dst)[i] == ((char *)s->dst2)[i])
        i++;
    snprintf(err, err_bytes, "fused and step-by-step results differ at byte %zu", i);
    return -1;
}

static bool make_setup(struct xt_ctx *ctx, const char *chain, struct setup *s, struct xt_graph **g,
                       struct xt_kernel_info *info, char *err, size_t err_bytes)
{
    const struct xt_compile_options opt = {.size = sizeof opt, .backend = XT_CPU};
    struct xt_output_info o;
    struct xt_node_info node;
    if (xt_parse(chain, 0, NULL, g) || xt_compile(ctx, *g, &opt, &s->k) || xt_kernel_get(s->k, info) ||
        xt_output_get(*g, &o) || xt_node_get(*g, o.node, &node)) {
        snprintf(err, err_bytes, "%s", xt_last_error()->message);
        return false;
    }
    s->n = xt_input_count(*g);
    bool fits = s->n <= LIMIT_SOURCES;
    if (!fits || !make_buffers(s, info) || !make_limit(s, (int)xt_dtype_bytes(node.dtype)) ||
        !(s->naive = naive_new(*g))) {
        snprintf(err, err_bytes, fits ? "out of memory" : "more than %d inputs", LIMIT_SOURCES);
        return false;
    }
    for (int i = 0; i < s->n; i++)
        scramble(s->src[i], s->src_bytes[i], (uint64_t)i + 1);
    return true;
}

int bench_measure(struct xt_ctx *ctx, const struct bench_workload *w, int samples, struct bench_row *out,
                  char *err, size_t err_bytes)
{
    struct setup s = {0};
    struct xt_graph *g = NULL;
    struct xt_kernel_info info;
    int status = -1;
    *out = (struct bench_row){.work = w, .samples = samples < MAX_SAMPLES ? samples : MAX_SAMPLES};
    if (!make_setup(ctx, w->chain, &s, &g, &info, err, err_bytes) || verify(&s, err, err_bytes))
        goto done;
    snprintf(out->strategy, sizeof out->strategy, "%s", info.strategy);
    snprintf(out->map_class, sizeof out->map_class, "%s", info.map_class);
    out->pieces = info.n_pieces;
    out->bytes_read = info.bytes_read;
    out->bytes_written = info.bytes_written;
    out->naive_steps = naive_steps(s.naive);
    out->naive_bytes = naive_bytes(s.naive);
    for (int i = 0; i < s.n; i++)
        out->lines_read += (int64_t)s.limit.reads[i];
    time_all(&s, out->samples, out);
    status = 0;
done:
    free_setup(&s);
    xt_graph_free(g);
    return status;
}
