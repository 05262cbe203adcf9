/* measure.c: one workload: buffers, verification, and xt, memcpy and naive timed in turn. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MAX_SAMPLES = 101, MAX_INPUTS = 64, ALIGN = 64 };
#define SAMPLE_SECONDS 2e-3 /* a sample repeats its call until it lasts this long */

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
    void *src[MAX_INPUTS], *dst, *dst2;
    size_t dst_bytes, copy_bytes;
};

/* Large buffers ask for huge pages, as a program that cares for speed does; the three contestants share them.
 */
static void *new_buffer(size_t bytes)
{
    size_t align = bytes >= (4u << 20) ? 2u << 20 : ALIGN, size = (bytes + align) / align * align;
    void *p = aligned_alloc(align, size);
    if (p && align > ALIGN)
        madvise(p, size, MADV_HUGEPAGE);
    return p;
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
        size_t bytes = (size_t)xt_src_min_bytes(s->k, i);
        if (!(s->src[i] = new_buffer(bytes)))
            return false;
        scramble(s->src[i], bytes, (uint64_t)i + 1);
    }
    s->dst = new_buffer(s->dst_bytes);
    s->dst2 = new_buffer(s->dst_bytes);
    return s->dst && s->dst2;
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
    if (spread)
        *spread = (t[n * 3 / 4] - t[n / 4]) / m;
    return m;
}

static void time_all(const struct setup *s, int samples, struct bench_row *row)
{
    static void (*const run[3])(const struct setup *) = {run_xt, run_memcpy, run_naive};
    double t[3][MAX_SAMPLES];
    int repeat[3] = {1, 1, 1};
    for (int i = -1; i < samples; i++) /* the first round warms up */
        for (int j = 0; j < 3; j++)
            t[j][i < 0 ? 0 : i] = sample(run[j], s, &repeat[j]);
    row->seconds = median(t[0], samples, &row->spread);
    row->memcpy_seconds = median(t[1], samples, NULL);
    row->naive_seconds = median(t[2], samples, NULL);
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

int bench_measure(struct xt_ctx *ctx, const struct bench_workload *w, int samples, struct bench_row *out,
                  char *err, size_t err_bytes)
{
    struct setup s = {0};
    struct xt_graph *g = NULL;
    struct xt_kernel_info info;
    const struct xt_compile_options opt = {.size = sizeof opt, .backend = XT_CPU};
    int status = -1;
    *out = (struct bench_row){.work = w, .samples = samples < MAX_SAMPLES ? samples : MAX_SAMPLES};
    if (xt_parse(w->chain, 0, NULL, &g) || xt_compile(ctx, g, &opt, &s.k) || xt_kernel_get(s.k, &info)) {
        snprintf(err, err_bytes, "%s", xt_last_error()->message);
        goto done;
    }
    s.n = xt_input_count(g);
    if (s.n > MAX_INPUTS || !make_buffers(&s, &info) || !(s.naive = naive_new(g))) {
        snprintf(err, err_bytes, s.n > MAX_INPUTS ? "more than %d inputs" : "out of memory", MAX_INPUTS);
        goto done;
    }
    if (verify(&s, err, err_bytes))
        goto done;
    snprintf(out->strategy, sizeof out->strategy, "%s", info.strategy);
    snprintf(out->map_class, sizeof out->map_class, "%s", info.map_class);
    out->pieces = info.n_pieces;
    out->bytes_read = info.bytes_read;
    out->bytes_written = info.bytes_written;
    out->naive_steps = naive_steps(s.naive);
    time_all(&s, out->samples, out);
    status = 0;
done:
    free_setup(&s);
    xt_graph_free(g);
    return status;
}
