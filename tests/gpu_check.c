/* gpu_check.c: everything that needs a GPU, in one program: golden chains, workloads and random chains on the
 * device against the reference evaluator, byte for byte; then the workloads timed beside a device-to-device
 * copy.
 *
 *     gpu_check [--json FILE] [--random N] [--samples N] [--no-timing]
 *
 * Exit status 0: all equal. 1: something differs. 3: no GPU here, nothing was checked. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "cuda/cuda.h"
#include "cuda/driver.h"
#include "support/golden.h"
#include "support/random_graph.h"

enum { MAX_INPUTS = 64, MAX_SAMPLES = 101, NO_GPU = 3 };

static struct xt_ctx *ctx;
static int n_passed, n_failed;
static const struct xt_compile_options on_cuda = {.size = sizeof on_cuda, .backend = XT_CUDA};
static const struct xt_compile_options by_reference = {.size = sizeof by_reference, .backend = XT_REF};

struct buffers {
    int n;
    unsigned char *src[MAX_INPUTS], *want, *got;
    size_t bytes;
};

static bool fill_buffers(struct buffers *b, const struct xt_kernel *k, int n_inputs, uint64_t seed)
{
    struct xt_kernel_info info = {.size = sizeof info};
    if (xt_kernel_get(k, &info) || n_inputs > MAX_INPUTS)
        return false;
    b->n = n_inputs;
    b->bytes = (size_t)info.dst_min_bytes;
    for (int i = 0; i < b->n; i++) {
        size_t bytes = (size_t)xt_src_min_bytes(k, i);
        if (!(b->src[i] = aligned_alloc(64, bytes / 64 * 64 + 64)))
            return false;
        random_fill(b->src[i], bytes, seed + (uint64_t)i);
    }
    b->want = aligned_alloc(64, b->bytes / 64 * 64 + 64);
    b->got = aligned_alloc(64, b->bytes / 64 * 64 + 64);
    if (!b->want || !b->got)
        return false;
    memset(b->want, 0xa5, b->bytes);
    memset(b->got, 0xa5, b->bytes);
    return true;
}

static void free_buffers(struct buffers *b)
{
    for (int i = 0; i < b->n; i++)
        free(b->src[i]);
    free(b->want);
    free(b->got);
}

/* Bytes that the chain does not write must keep their value: both buffers start alike and are compared whole.
 */
static void compare(const struct xt_graph *g, uint64_t seed)
{
    struct xt_kernel *cuda = NULL, *ref = NULL;
    struct buffers b = {0};
    const char *what = NULL;
    if (xt_compile(ctx, g, &on_cuda, &cuda) || xt_compile(ctx, g, &by_reference, &ref))
        what = xt_last_error()->message;
    else if (!fill_buffers(&b, cuda, xt_input_count(g), seed))
        what = "no memory";
    else if (xt_run_host(ref, b.want, (const void *const *)b.src) ||
             xt_run_host(cuda, b.got, (const void *const *)b.src))
        what = xt_last_error()->message;
    else if (memcmp(b.want, b.got, b.bytes))
        what = "bytes differ from the reference";
    if (what) {
        printf("FAILED: %s\n", what); /* before graph_text: it clears the last error */
        printf("    %s\n", graph_text(g));
    }
    *(what ? &n_failed : &n_passed) += 1;
    free_buffers(&b);
    xt_kernel_free(cuda);
    xt_kernel_free(ref);
}

static void check_golden(void)
{
    static struct golden_case c;
    FILE *f = golden_open();
    while (f && golden_next(f, &c)) {
        if (c.n_table >= 0)
            compare(c.g, 1);
        xt_graph_free(c.g);
    }
    if (f)
        fclose(f);
}

static void check_workloads(const struct bench_workload *w, int n)
{
    for (int i = 0; i < n; i++) {
        struct xt_graph *g = NULL;
        if (xt_parse(w[i].small, 0, NULL, &g)) {
            printf("FAILED: %s: %s\n", w[i].name, xt_last_error()->message);
            n_failed++;
        } else {
            compare(g, (uint64_t)i);
        }
        xt_graph_free(g);
    }
}

static void check_random(int n)
{
    for (int i = 0; i < n; i++) {
        struct xt_graph *g = random_graph((uint64_t)i + 1, NULL);
        compare(g, (uint64_t)i);
        xt_graph_free(g);
    }
}

/* ---- timing: buffers on the device, events around the launches. */

struct extra { /* driver calls that the library itself does not need */
    xti_cu_result (*event_create)(void **, unsigned), (*event_record)(void *, void *), (*event_sync)(void *);
    xti_cu_result (*event_ms)(float *, void *, void *),
        (*copy)(unsigned long long, unsigned long long, size_t);
    void *start, *stop;
};

static bool load_extra(struct extra *x)
{
    const char *path = getenv("XT_LIBCUDA") ? getenv("XT_LIBCUDA") : "libcuda.so.1";
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return false;
    *(void **)&x->event_create = dlsym(lib, "cuEventCreate");
    *(void **)&x->event_record = dlsym(lib, "cuEventRecord");
    *(void **)&x->event_sync = dlsym(lib, "cuEventSynchronize");
    *(void **)&x->event_ms = dlsym(lib, "cuEventElapsedTime");
    *(void **)&x->copy = dlsym(lib, "cuMemcpyDtoD_v2");
    return x->event_create && x->event_record && x->event_sync && x->event_ms && x->copy &&
           !x->event_create(&x->start, 0) && !x->event_create(&x->stop, 0);
}

struct device_run {
    const struct xti_cu_api *api;
    struct extra *x;
    struct xt_kernel *k;
    int n;
    unsigned long long memory[MAX_INPUTS + 2]; /* sources, destination, and a source for the plain copy */
    const void *src[MAX_INPUTS];
    size_t copy_bytes;
};

static void launch(const struct device_run *d)
{
    xt_run(d->k, (void *)(uintptr_t)d->memory[d->n], d->src, NULL);
}

static void plain_copy(const struct device_run *d)
{
    d->x->copy(d->memory[d->n], d->memory[d->n + 1], d->copy_bytes);
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double median_seconds(void (*run)(const struct device_run *), const struct device_run *d, int samples,
                             double *spread)
{
    float ms[MAX_SAMPLES];
    for (int i = -2; i < samples; i++) {
        d->x->event_record(d->x->start, NULL);
        run(d);
        d->x->event_record(d->x->stop, NULL);
        d->x->event_sync(d->x->stop);
        d->x->event_ms(&ms[i < 0 ? 0 : i], d->x->start, d->x->stop);
    }
    qsort(ms, (size_t)samples, sizeof *ms, ascending);
    *spread = (double)(ms[samples * 3 / 4] - ms[samples / 4]) / (double)ms[samples / 2];
    return (double)ms[samples / 2] / 1e3;
}

static bool time_one(struct device_run *d, const struct xt_graph *g, int samples, struct bench_row *row)
{
    struct xt_kernel_info info = {.size = sizeof info};
    double unused;
    if (xt_compile(ctx, g, &on_cuda, &d->k) || xt_kernel_get(d->k, &info))
        return false;
    d->n = xt_input_count(g);
    d->copy_bytes = (size_t)info.bytes_written;
    for (int i = 0; i <= d->n + 1; i++) {
        int64_t bytes = i < d->n ? xt_src_min_bytes(d->k, i) : info.dst_min_bytes;
        if (bytes && d->api->mem_alloc(&d->memory[i], (size_t)bytes))
            return false;
        if (i < d->n)
            d->src[i] = (const void *)(uintptr_t)d->memory[i];
    }
    snprintf(row->strategy, sizeof row->strategy, "%s", info.strategy);
    snprintf(row->map_class, sizeof row->map_class, "%s", info.map_class);
    row->pieces = info.n_pieces;
    row->samples = samples;
    row->bytes_read = info.bytes_read;
    row->bytes_written = info.bytes_written;
    row->seconds = median_seconds(launch, d, samples, &row->spread);
    row->memcpy_seconds = median_seconds(plain_copy, d, samples, &unused);
    return true;
}

static int time_chains(const struct bench_workload *w, int n, int samples, struct bench_row *rows)
{
    struct xti_driver_scope scope;
    struct extra x;
    int done = 0;
    if (xti_driver_enter(0, &scope, NULL))
        return 0;
    for (int i = 0; load_extra(&x) && i < n; i++) {
        struct device_run d = {.api = scope.api, .x = &x};
        struct xt_graph *g = NULL;
        rows[done] = (struct bench_row){.work = &w[i]};
        if (!xt_parse(w[i].chain, 0, NULL, &g) && time_one(&d, g, samples, &rows[done]))
            done++;
        else
            printf("FAILED: timing of %s: %s\n", w[i].name, xt_last_error()->message), n_failed++;
        for (int j = 0; j <= d.n + 1; j++)
            if (d.memory[j])
                scope.api->mem_free(d.memory[j]);
        xt_kernel_free(d.k);
        xt_graph_free(g);
    }
    xti_driver_leave(&scope, false);
    return done;
}

int main(int argc, char **argv)
{
    const char *json = NULL;
    int random = 5000, samples = 21;
    bool timing = true;
    setenv("XT_JIT", "sync", 0); /* exact kernels, unless asked for others */
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--no-timing"))
            timing = false;
        else if (i + 1 < argc && !strcmp(argv[i], "--json"))
            json = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "--random"))
            random = atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--samples"))
            samples = atoi(argv[++i]);
    }
    struct xti_err err = {0};
    if (xti_cuda_probe(&err)) {
        printf("no GPU here, nothing was checked: %s\n", err.e.message);
        return NO_GPU;
    }
    if (samples < 1 || samples > MAX_SAMPLES || xt_ctx_new(NULL, &ctx))
        return 1;
    struct bench_workload *w = NULL;
    char why[256];
    int n = bench_workloads_read(bench_workloads_text, &w, why, sizeof why);
    check_golden();
    check_workloads(w, n);
    check_random(random);
    struct bench_row *rows = calloc((size_t)n + 1, sizeof *rows);
    int timed = timing && rows ? time_chains(w, n, samples, rows) : 0;
    if (timed)
        bench_table(stdout, rows, timed);
    FILE *f = json && timed ? fopen(json, "w") : NULL;
    if (f) {
        bench_json(f, rows, timed);
        fclose(f);
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    free(rows);
    bench_workloads_free(w, n);
    xt_ctx_free(ctx);
    return n_failed != 0;
}
