/* measure.c: one workload: buffers, verification, and xt, memcpy, naive and the limit timed in turn. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "limit.h"

enum {
    MAX_SAMPLES = 101,
    TRIALS = 2,   /* of every way to the limit, before the clock runs for good */
    BEST_WAYS = 3 /* that are then timed like the others */
};
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

static void run_xt(const struct setup *s, int unused)
{
    xt_run(s->k, s->dst, (const void *const *)s->src, NULL);
}

static void run_naive(const struct setup *s, int unused)
{
    naive_run(s->naive, s->dst2, (const void *const *)s->src);
}

/* The same bytes as the chain writes, from one buffer to another. */
static void run_memcpy(const struct setup *s, int unused) { memcpy(s->dst, s->dst2, s->copy_bytes); }

static void run_limit(const struct setup *s, int way) { limit_run(&s->limit, way); }

/* What is timed, and how long it took each time. */
struct contestant {
    void (*run)(const struct setup *s, int way);
    int way, repeat;
    double t[MAX_SAMPLES];
};

static double sample(struct contestant *c, const struct setup *s)
{
    for (;;) {
        double t = now();
        for (int i = 0; i < c->repeat; i++)
            c->run(s, c->way);
        t = now() - t;
        if (t >= SAMPLE_SECONDS || c->repeat >= 1 << 24)
            return t / c->repeat;
        c->repeat = t < SAMPLE_SECONDS / 64 ? c->repeat * 16 : c->repeat * 2;
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

static int by_first_sample(const void *a, const void *b)
{
    return ascending(((const struct contestant *)a)->t, ((const struct contestant *)b)->t);
}

/* The ways to the limit, the best of a few trials first. */
static void rank_ways(const struct setup *s, struct contestant ways[LIMIT_WAYS])
{
    for (int i = 0; i < LIMIT_WAYS; i++)
        ways[i] = (struct contestant){run_limit, i, 1, {0}};
    for (int trial = 0; trial < TRIALS; trial++)
        for (int i = 0; i < LIMIT_WAYS; i++) {
            double t = sample(&ways[i], s);
            ways[i].t[0] = trial && ways[i].t[0] < t ? ways[i].t[0] : t;
        }
    qsort(ways, LIMIT_WAYS, sizeof *ways, by_first_sample);
}

enum { XT, MEMCPY, NAIVE, WAYS, CONTESTANTS = WAYS + LIMIT_WAYS };

static void time_all(const struct setup *s, int samples, struct bench_row *row)
{
    static struct contestant c[CONTESTANTS]; /* one row at a time */
    double unused;
    c[XT] = (struct contestant){run_xt, 0, 1, {0}};
    c[MEMCPY] = (struct contestant){run_memcpy, 0, 1, {0}};
    c[NAIVE] = (struct contestant){run_naive, 0, 1, {0}};
    rank_ways(s, &c[WAYS]);
    for (int i = -1; i < samples; i++) /* the first round warms up */
        for (int j = 0; j < WAYS + BEST_WAYS; j++)
            c[j].t[i < 0 ? 0 : i] = sample(&c[j], s);
    row->seconds = median(c[XT].t, samples, &row->spread);
    row->memcpy_seconds = median(c[MEMCPY].t, samples, &unused);
    row->naive_seconds = median(c[NAIVE].t, samples, &unused);
    row->limit_seconds = 0;
    for (int j = WAYS; j < WAYS + BEST_WAYS; j++) {
        double t = median(c[j].t, samples, &unused);
        if (row->limit_seconds && t >= row->limit_seconds)
            continue;
        row->limit_seconds = t;
        row->limit_way = limit_way_name(c[j].way);
    }
}

static int verify(const struct setup *s, char *err, size_t err_bytes)
{
    memset(s->dst, 0xa5, s->dst_bytes);
    memset(s->dst2, 0xa5, s->dst_bytes);
    if (xt_run(s->k, s->dst, (const void *const *)s->src, NULL)) {
        snprintf(err, err_bytes, "%s", xt_last_error()->message);
        return -1;
    }
    run_naive(s, 0);
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
