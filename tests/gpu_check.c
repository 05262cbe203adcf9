/* gpu_check.c: the parts of `make gpu-check` (tests/gpu_check.py) that talk to the device.
 *
 *     gpu_check [OPTIONS] device                       its name
 *     gpu_check [OPTIONS] equal                        golden chains, workloads, random chains: byte for byte
 *                                                      what the reference evaluator makes
 *     gpu_check [OPTIONS] prepare LIST[:DTYPE] ..      compiles what `times` runs, into the disk cache
 *     gpu_check [OPTIONS] times LIST[:DTYPE] ..        chains of lists beside a device-to-device copy
 *     gpu_check [OPTIONS] unaligned LIST[:DTYPE] ..    the same, buffers one element past multiples of 256
 *     gpu_check [OPTIONS] sweep                        a copy and a transposition of 4 KB to 8 GB
 *     gpu_check [OPTIONS] launch                       xt_run beside cuLaunchKernel, on the host's clock
 *     gpu_check [OPTIONS] compile                      cold, from disk, from memory; loading the code
 *     --seconds S      begins nothing later; what is left out is counted
 *     --samples N      of each time, at least 20 for figures
 *     --random N       random chains of `equal`
 *     --share I/N      of equal and prepare: every N-th chain, from the I-th on
 *     --tier NAME      exact (without it), structure or any: the code that runs
 *     --small          small forms of chains, small sizes: for the driver double
 *
 * Answers with lines of JSON. Exit status 0; 1: something differs or fails; 3: no GPU here. */
#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/api.h"
#include "bench/bench.h"
#include "cuda/any.h"
#include "cuda/driver.h"
#include "cuda/module.h"
#include "support/golden.h"
#include "support/random_graph.h"

enum { MAX_INPUTS = 64, MAX_SAMPLES = 101, MAX_TURNS = 64, NO_GPU = 3 };

static struct {
    double deadline; /* seconds of the clock */
    int samples, random, share, shares;
    enum xti_cuda_tier tier;
    bool small;
    const char *part;
} opt = {.deadline = INFINITY, .samples = 21, .random = 5000, .shares = 1, .tier = XTI_TIER_EXACT};

static struct xt_ctx *ctx;
static int n_failed, n_unserved, n_late;
static const struct xt_compile_options exact = {.size = sizeof exact, .backend = XT_CUDA, .mode = XT_SYNC};
static const struct xt_compile_options by_reference = {.size = sizeof by_reference, .backend = XT_REF};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool in_time(void) { return now() < opt.deadline; }

static void put_text(const char *key, const char *text)
{
    printf(", \"%s\": \"", key);
    for (; *text; text++)
        putchar(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '\'' : *text);
    putchar('"');
}

static void fail(const char *name, const char *what)
{
    printf("{\"part\": \"%s\"", opt.part);
    put_text("name", name);
    put_text("failed", what);
    printf("}\n");
    n_failed++;
}

static void leave_out(int n)
{
    if (n)
        printf("{\"part\": \"%s\", \"left_out\": %d}\n", opt.part, n);
}

/* Is the next chain one of this process's, and is there time for it? */
static bool next_is_mine(void)
{
    static int n;
    bool mine = n++ % opt.shares == opt.share, late = mine && !in_time();
    n_late += late;
    return mine && !late;
}

/* Code of XTI_TIER_ANY in place of what k runs. */
static xt_status take_any(struct xt_kernel *k)
{
    const enum xti_cuda_tier any = XTI_TIER_ANY;
    struct xti_home home;
    xt_status s = xti_any_make(&k->shared->cuda, NULL);
    if (!s && !k->code[any] && !(s = xti_home_get(0, &home, NULL)))
        s = xti_code_get(ctx, k, any, &home, &k->code[any], &k->code_origin[any], NULL);
    if (!s)
        atomic_store(&k->now, k->code[any]);
    return s;
}

/* *out: runs code of the tier that was asked for; NULL: that tier does not serve the chain. */
static xt_status compile_tier(const struct xt_graph *g, struct xt_kernel **out)
{
    const struct xt_compile_options o = {
        .size = sizeof o, .backend = XT_CUDA, .mode = opt.tier == XTI_TIER_EXACT ? XT_SYNC : XT_GENERIC};
    xt_status s = xt_compile(ctx, g, &o, out);
    const struct xti_shared_code *c = s ? NULL : atomic_load(&(*out)->now);
    if (c && opt.tier == XTI_TIER_ANY && (s = take_any(*out)) == XT_EUNSUPPORTED)
        s = XT_OK;
    if (s || (c && atomic_load(&(*out)->now)->tier != opt.tier)) {
        xt_kernel_free(*out);
        *out = NULL;
    }
    return s;
}

/* ---- equal */

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
 * True: equal, or not served. */
static bool compare(const struct xt_graph *g, uint64_t seed)
{
    struct xt_kernel *cuda = NULL, *ref = NULL;
    struct buffers b = {0};
    const char *what = NULL;
    if (compile_tier(g, &cuda) || xt_compile(ctx, g, &by_reference, &ref))
        what = xt_last_error()->message;
    else if (!cuda)
        n_unserved++;
    else if (!fill_buffers(&b, cuda, xt_input_count(g), seed))
        what = "no memory";
    else if (xt_run_host(ref, b.want, (const void *const *)b.src) ||
             xt_run_host(cuda, b.got, (const void *const *)b.src))
        what = xt_last_error()->message;
    else if (memcmp(b.want, b.got, b.bytes))
        what = "bytes differ from the reference";
    if (what) {
        char *kept = strdup(what); /* graph_text clears the last error */
        fail(graph_text(g), kept ? kept : "");
        free(kept);
    }
    free_buffers(&b);
    xt_kernel_free(cuda);
    xt_kernel_free(ref);
    return !what;
}

static int compare_golden(void)
{
    static struct golden_case c;
    int passed = 0;
    FILE *f = golden_open();
    while (f && golden_next(f, &c)) {
        if (next_is_mine())
            passed += c.n_table >= 0 && compare(c.g, 1);
        xt_graph_free(c.g);
    }
    if (f)
        fclose(f);
    return passed;
}

static int compare_workloads(void)
{
    struct bench_workload *w = NULL;
    char why[256];
    int n = bench_workloads_read(bench_workloads_text, &w, why, sizeof why), passed = 0;
    for (int i = 0; i < n; i++) {
        struct xt_graph *g = NULL;
        if (!next_is_mine())
            continue;
        if (xt_parse(w[i].small, 0, NULL, &g))
            fail(w[i].name, xt_last_error()->message);
        else
            passed += compare(g, (uint64_t)i);
        xt_graph_free(g);
    }
    bench_workloads_free(w, n);
    return passed;
}

static void check_equal(void)
{
    int passed = compare_golden() + compare_workloads(), random = 0;
    for (int i = 0; i < opt.random; i++) {
        if (!next_is_mine())
            continue;
        random++;
        struct xt_graph *g = random_graph((uint64_t)i + 1, NULL);
        passed += compare(g, (uint64_t)i);
        xt_graph_free(g);
    }
    leave_out(n_late);
    printf("{\"part\": \"equal\", \"passed\": %d, \"failed\": %d, \"random\": %d, \"unserved\": %d}\n",
           passed - n_unserved, n_failed, random, n_unserved);
}

/* ---- times: buffers on the device, events around the launches */

/* Driver calls that the library itself does not need. */
static struct {
    const struct xti_cu_api *api;
    xti_cu_result (*event_create)(void **, unsigned), (*event_record)(void *, void *), (*event_sync)(void *);
    xti_cu_result (*event_ms)(float *, void *, void *);
    xti_cu_result (*copy)(unsigned long long, unsigned long long, size_t);
    xti_cu_result (*name)(char *, int, int);
    void *start, *stop;
} cu;

static bool load_calls(const struct xti_cu_api *api)
{
    const char *path = getenv("XT_LIBCUDA") ? getenv("XT_LIBCUDA") : "libcuda.so.1";
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return false;
    cu.api = api;
    *(void **)&cu.event_create = dlsym(lib, "cuEventCreate");
    *(void **)&cu.event_record = dlsym(lib, "cuEventRecord");
    *(void **)&cu.event_sync = dlsym(lib, "cuEventSynchronize");
    *(void **)&cu.event_ms = dlsym(lib, "cuEventElapsedTime");
    *(void **)&cu.copy = dlsym(lib, "cuMemcpyDtoD_v2");
    *(void **)&cu.name = dlsym(lib, "cuDeviceGetName");
    return cu.event_create && cu.event_record && cu.event_sync && cu.event_ms && cu.copy && cu.name &&
           !cu.event_create(&cu.start, 0) && !cu.event_create(&cu.stop, 0);
}

/* Sets of buffers that are used in turn, so that no cache has what the next run reads. */
struct device_run {
    struct xt_kernel *k;
    struct xt_kernel_info info;
    int n, n_turns, turn;
    int64_t shift;                                        /* bytes */
    unsigned long long memory[MAX_TURNS][MAX_INPUTS + 2]; /* sources, destination, source of the plain copy */
    bool ok;
};

enum { MORE_THAN_CACHES = 256 << 20 };

static bool allocate(struct device_run *d)
{
    int64_t all = d->info.dst_min_bytes;
    for (int i = 0; i < d->n; i++)
        all += xt_src_min_bytes(d->k, i);
    int64_t turns = opt.small ? 2 : 1 + MORE_THAN_CACHES / (all + 1);
    d->n_turns = (int)(turns < MAX_TURNS ? turns : MAX_TURNS);
    for (int t = 0; t < d->n_turns; t++)
        for (int i = 0; i <= d->n + 1; i++) {
            int64_t bytes = i < d->n ? xt_src_min_bytes(d->k, i) : d->info.dst_min_bytes;
            if (cu.api->mem_alloc(&d->memory[t][i], (size_t)(bytes + 256)))
                return false;
        }
    return true;
}

static void release(struct device_run *d)
{
    for (int t = 0; t < d->n_turns; t++)
        for (int i = 0; i <= d->n + 1; i++)
            if (d->memory[t][i])
                cu.api->mem_free(d->memory[t][i]);
    xt_kernel_free(d->k);
}

static void run_kernel(struct device_run *d)
{
    const unsigned long long *m = d->memory[d->turn++ % d->n_turns];
    const void *src[MAX_INPUTS];
    for (int i = 0; i < d->n; i++)
        src[i] = (const void *)(uintptr_t)(m[i] + (uint64_t)d->shift);
    d->ok = !xt_run(d->k, (void *)(uintptr_t)(m[d->n] + (uint64_t)d->shift), src, NULL) && d->ok;
}

static void run_copy(struct device_run *d)
{
    const unsigned long long *m = d->memory[d->turn++ % d->n_turns];
    d->ok = !cu.copy(m[d->n], m[d->n + 1], (size_t)d->info.bytes_written) && d->ok;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_once(void (*run)(struct device_run *), struct device_run *d, int times)
{
    float ms = 0;
    cu.event_record(cu.start, NULL);
    for (int i = 0; i < times; i++)
        run(d);
    cu.event_record(cu.stop, NULL);
    d->ok = !cu.event_sync(cu.stop) && !cu.event_ms(&ms, cu.start, cu.stop) && d->ok;
    return (double)ms * 1e3 / times;
}

/* us: the median of samples that last 100 us or more. *spread: of the middle half. */
static double median_us(void (*run)(struct device_run *), struct device_run *d, double *spread)
{
    double us[MAX_SAMPLES];
    double first = fmin(time_once(run, d, 1), time_once(run, d, 1));
    int times = first > 100 || opt.small ? 1 : (int)fmin(100, 100 / (first + 0.1));
    for (int i = 0; i < opt.samples; i++)
        us[i] = time_once(run, d, times);
    qsort(us, (size_t)opt.samples, sizeof *us, ascending);
    *spread = (us[opt.samples * 3 / 4] - us[opt.samples / 4]) / us[opt.samples / 2];
    return us[opt.samples / 2];
}

static void time_chain(const char *name, const char *chain, bool shifted)
{
    bool preparing = !strcmp(opt.part, "prepare");
    struct device_run *d = calloc(1, sizeof *d);
    struct xt_graph *g = NULL;
    double spread, unused;
    d->ok = true;
    d->info.size = sizeof d->info;
    if (xt_parse(chain, 0, NULL, &g) || (d->n = xt_input_count(g)) > MAX_INPUTS || compile_tier(g, &d->k)) {
        fail(name, xt_last_error()->message);
    } else if (!d->k || preparing) {
        leave_out(!d->k);
    } else if (xt_kernel_get(d->k, &d->info)) {
        fail(name, xt_last_error()->message);
    } else if (!allocate(d)) {
        fail(name, "not enough memory on the device");
    } else {
        d->shift = shifted ? d->k->map->esize : 0;
        double us = median_us(run_kernel, d, &spread), copy = median_us(run_copy, d, &unused);
        double moved = (double)(d->info.bytes_read + d->info.bytes_written);
        if (!d->ok)
            fail(name, xt_last_error()->message);
        else {
            printf("{\"part\": \"%s\"", opt.part);
            put_text("name", name);
            put_text("chain", chain);
            put_text("family", d->info.strategy);
            printf(", \"bytes\": %.0f, \"us\": %.3f, \"spread\": %.3f, \"copy_us\": %.3f, \"of_copy\": %.3f, "
                   "\"samples\": %d}\n",
                   moved, us, spread, copy, moved / us / (2 * (double)d->info.bytes_written / copy),
                   opt.samples);
        }
    }
    fflush(stdout);
    release(d);
    xt_graph_free(g);
    free(d);
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = f ? calloc(1, 1 << 20) : NULL;
    if (text && !fread(text, 1, (1 << 20) - 1, f))
        text[0] = 0;
    if (f)
        fclose(f);
    return text;
}

/* "bench/problems/ttc57.txt:f16" */
static void time_list(const char *list, bool shifted)
{
    char path[4096], name[256], why[256];
    snprintf(path, sizeof path, "%s", list);
    char *dtype = strrchr(path, ':');
    if (dtype)
        *dtype++ = 0;
    char *text = read_file(path);
    struct bench_workload *w = NULL;
    int n = text ? bench_workloads_read(text, &w, why, sizeof why) : -1;
    if (n < 0)
        fail(list, text ? why : "cannot be read");
    for (int i = 0; i < n; i++) {
        if (!next_is_mine())
            continue;
        const char *form = opt.small && *w[i].small ? w[i].small : w[i].chain;
        char *chain = dtype ? bench_chain_as(form, dtype) : strdup(form);
        snprintf(name, sizeof name, "%s%s%s", w[i].name, dtype ? " " : "", dtype ? dtype : "");
        time_chain(name, chain ? chain : "", shifted);
        free(chain);
    }
    leave_out(n_late);
    n_late = 0;
    if (n >= 0)
        bench_workloads_free(w, n);
    free(text);
}

static void sweep(void)
{
    char name[64], chain[128];
    int last = opt.small ? 16 : 33, log2 = 12;
    for (; log2 <= last && in_time(); log2++) {
        int64_t n = INT64_C(1) << (log2 - 2), a = INT64_C(1) << (log2 - 2) / 2;
        snprintf(name, sizeof name, "copy of 2^%d bytes", log2);
        snprintf(chain, sizeof chain, "x: f32[%" PRId64 "]; x", n);
        time_chain(name, chain, false);
        snprintf(name, sizeof name, "transpose of 2^%d bytes", log2);
        snprintf(chain, sizeof chain, "x: f32[%" PRId64 ",%" PRId64 "]; x.permute(1,0)", a, n / a);
        time_chain(name, chain, false);
    }
    leave_out(2 * (last + 1 - log2));
}

/* ---- launch, compile: on the host's clock */

static void put_time(const char *name, const double *us, int n)
{
    double *sorted = malloc((size_t)n * sizeof *sorted);
    memcpy(sorted, us, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    printf("{\"part\": \"%s\"", opt.part);
    put_text("name", name);
    printf(", \"us\": %.3f, \"p99\": %.3f, \"max\": %.3f, \"samples\": %d}\n", sorted[n / 2],
           sorted[n * 99 / 100], sorted[n - 1], n);
    free(sorted);
}

static struct xt_kernel *compile_line(struct xt_ctx *c, const char *line, const struct xt_compile_options *o)
{
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    if (xt_parse(line, 0, NULL, &g) || xt_compile(c, g, o, &k))
        fail(line, xt_last_error()->message);
    xt_graph_free(g);
    return k;
}

enum { BATCH = 100 };

/* The same launch by xt_run and by the driver, in turns. */
static void time_launches(void)
{
    int batches = opt.small ? 5 : 200;
    double *by_xt = calloc((size_t)batches, sizeof *by_xt), *bare = calloc((size_t)batches, sizeof *bare);
    unsigned long long src = 0, dst = 0;
    struct xt_kernel *k = compile_line(ctx, "x: f32[1024]; x.flip(0)", &exact);
    if (!k || cu.api->mem_alloc(&src, 4096) || cu.api->mem_alloc(&dst, 4096)) {
        fail("launch", "no kernel, or no memory");
        return;
    }
    const struct xti_shared_code *c = atomic_load(&k->now);
    void *param[] = {&dst, &src};
    const void *sources[] = {(const void *)(uintptr_t)src};
    for (int i = 0; i < batches; i++) {
        double t = now();
        for (int j = 0; j < BATCH; j++)
            xt_run(k, (void *)(uintptr_t)dst, sources, NULL);
        by_xt[i] = (now() - t) * 1e6 / BATCH;
        cu.api->ctx_wait();
        t = now();
        for (int j = 0; j < BATCH; j++)
            cu.api->launch(c->module->entry[0], (unsigned)k->cuda->grid, 1, 1, XTI_CUDA_THREADS, 1, 1, 0,
                           NULL, param, NULL);
        bare[i] = (now() - t) * 1e6 / BATCH;
        cu.api->ctx_wait();
    }
    put_time("xt_run", by_xt, batches);
    put_time("cuLaunchKernel", bare, batches);
    cu.api->mem_free(src);
    cu.api->mem_free(dst);
    xt_kernel_free(k);
    free(by_xt);
    free(bare);
}

/* A new context, so that nothing is in memory. */
static double compile_anew(const char *dir, const char *line, xt_mode mode)
{
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = dir};
    struct xt_compile_options co = {.size = sizeof co, .backend = XT_CUDA, .mode = mode};
    struct xt_ctx *c = NULL;
    if (xt_ctx_new(&o, &c)) {
        fail(line, xt_last_error()->message);
        return 0;
    }
    double t = now();
    struct xt_kernel *k = compile_line(c, line, &co);
    t = (now() - t) * 1e6;
    xt_kernel_free(k);
    xt_ctx_free(c);
    return t;
}

static void time_compiles(void)
{
    static const struct {
        const char *name;
        xt_mode mode;
        bool disk;
    } ways[] = {{"XT_SYNC, nothing kept", XT_SYNC, false},
                {"XT_GENERIC, nothing kept", XT_GENERIC, false},
                {"XT_ASYNC, nothing kept", XT_ASYNC, false},
                {"XT_SYNC, on disk", XT_SYNC, true}};
    char dir[] = "/tmp/xt-gpu-check-XXXXXX", command[64];
    double us[MAX_SAMPLES];
    const char *line = "x: f16[513,24,64]; x.permute(1,0,2)";
    int n = opt.small ? 2 : 9;
    if (!mkdtemp(dir)) {
        fail("compile", "no temporary directory");
        return;
    }
    compile_anew(dir, line, XT_SYNC);
    for (size_t i = 0; i < sizeof ways / sizeof *ways && in_time(); i++) {
        for (int j = 0; j < n; j++)
            us[j] = compile_anew(ways[i].disk ? dir : "", line, ways[i].mode);
        put_time(ways[i].name, us, n);
    }
    struct xt_kernel *k = compile_line(ctx, line, &exact);
    const struct xti_shared_code *c = k ? atomic_load(&k->now) : NULL;
    for (int j = 0; c && j < opt.samples; j++) {
        xti_cu_module m;
        double t = now();
        xti_cu_result r = c->code.cubin ? cu.api->module_load(&m, c->code.cubin) : XTI_CU_NO_BINARY_FOR_GPU;
        if (r && cu.api->module_load(&m, c->code.ptx)) {
            fail("load", "cuModuleLoadData");
            break;
        }
        us[j] = (now() - t) * 1e6;
        cu.api->module_unload(m);
        if (j + 1 == opt.samples)
            put_time("cuModuleLoadData of it", us, opt.samples);
    }
    xt_kernel_free(k);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    if (system(command))
        fail("compile", command);
}

static void name_device(void)
{
    char name[128] = "";
    struct xti_cuda_target t = {0};
    if (cu.name(name, sizeof name, 0) || xti_cuda_target(0, &t, NULL))
        fail("device", "cuDeviceGetName");
    else {
        printf("{\"part\": \"device\"");
        put_text("device", name);
        printf(", \"sm\": %d, \"processors\": %d, \"driver\": %d}\n", t.sm, t.n_sms, xti_driver_version());
    }
}

/* ---- */

static int run_part(int n, char **arg)
{
    struct xti_driver_scope scope;
    struct xti_err err = {0};
    if (xti_driver_enter(0, &scope, &err) || !load_calls(scope.api)) {
        printf("no GPU here: %s\n", err.e.message);
        return NO_GPU;
    }
    if (!strcmp(opt.part, "device"))
        name_device();
    else if (!strcmp(opt.part, "equal"))
        check_equal();
    else if (!strcmp(opt.part, "sweep"))
        sweep();
    else if (!strcmp(opt.part, "launch"))
        time_launches();
    else if (!strcmp(opt.part, "compile"))
        time_compiles();
    else if (!strcmp(opt.part, "times") || !strcmp(opt.part, "unaligned") || !strcmp(opt.part, "prepare"))
        for (int i = 0; i < n; i++)
            time_list(arg[i], !strcmp(opt.part, "unaligned"));
    else
        fail(opt.part, "no such part");
    xti_driver_leave(&scope, false);
    return n_failed != 0;
}

static bool take_option(const char *option, const char *value)
{
    static const char *const tiers[XTI_TIERS] = {"any", "structure", "exact"};
    if (!strcmp(option, "--seconds"))
        opt.deadline = now() + atof(value);
    else if (!strcmp(option, "--random"))
        opt.random = atoi(value);
    else if (!strcmp(option, "--samples"))
        opt.samples = atoi(value);
    else if (!strcmp(option, "--share"))
        return sscanf(value, "%d/%d", &opt.share, &opt.shares) == 2 && opt.shares > 0;
    else if (!strcmp(option, "--tier")) {
        for (int i = 0; i < XTI_TIERS; i++)
            if (!strcmp(value, tiers[i]))
                return opt.tier = (enum xti_cuda_tier)i, true;
        return false;
    } else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    int i = 1;
    for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
        if (!strcmp(argv[i], "--small"))
            opt.small = true;
        else if (i + 1 == argc || !take_option(argv[i], argv[i + 1]))
            return 1;
        else
            i++;
    }
    if (i == argc || opt.samples < 1 || opt.samples > MAX_SAMPLES || xt_ctx_new(NULL, &ctx))
        return 1;
    opt.part = argv[i++];
    int status = run_part(argc - i, argv + i);
    xt_ctx_free(ctx);
    return status;
}
