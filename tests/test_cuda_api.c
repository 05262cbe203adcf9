/* test_cuda_api.c: the public functions on CUDA without a GPU: NVRTC compiles, tests/libcuda_double.so loads
 * and runs the PTX in an interpreter, device memory is the host's. Without NVRTC or the double nothing is
 * tested, and said so. */
#include "support/api.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "api/api.h"
#include "cache/entry.h"
#include "support/child.h"
#include "support/cuda_made.h"
#include "support/random_graph.h"
#include "support/scratch.h"

char now_running[2048];

static char dir[SCRATCH_PATH]; /* of the disk cache, a new one a test */
static char xt[4200];          /* the command, "": not built */

/* Check runs each test in a process of its own: what is set here lasts for one test. */
static void setup(void) { make_scratch(dir, "cuda-api"); }

static void teardown(void) { remove_scratch(dir); }

static struct xt_ctx *cuda_ctx(bool disk)
{
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = disk ? dir : ""};
    struct xt_ctx *ctx;
    ck_assert_msg(xt_ctx_new(&o, &ctx) == XT_OK, "%s", xt_last_error()->message);
    return ctx;
}

static struct xt_cache_stats stats_of(struct xt_ctx *ctx)
{
    struct xt_cache_stats s = {.size = sizeof s};
    expect(XT_OK, xt_cache_get(ctx, &s));
    return s;
}

static const char *origin_of(const struct xt_kernel *k)
{
    struct xt_kernel_info info = {.size = sizeof info};
    expect(XT_OK, xt_kernel_get(k, &info));
    return info.origin;
}

enum { SOURCES = 40 };

/* Runs k as the reference does, once on "device" pointers, once on host pointers. */
static void check_copy(const struct xt_kernel *k, const struct xt_graph *g)
{
    struct xt_ctx *ref = new_ctx(XT_REF, 1);
    struct xt_kernel *r;
    struct xt_kernel_info info = {.size = sizeof info};
    expect(XT_OK, xt_compile(ref, g, NULL, &r));
    expect(XT_OK, xt_kernel_get(k, &info));
    size_t n = (size_t)info.dst_min_bytes, room = (n + 511) / 256 * 256;
    unsigned char *want = aligned_alloc(256, room), *got = aligned_alloc(256, room), *src[SOURCES] = {NULL};
    for (int i = 0; i < xt_input_count(g); i++) {
        size_t need = (size_t)xt_src_min_bytes(k, i);
        if (need)
            fill_pattern(src[i] = aligned_alloc(256, (need + 511) / 256 * 256), need, (uint64_t)i + 1);
    }
    const char *what = graph_text(g); /* printing it later would clear the last error */
    fill_pattern(want, room, 77);
    expect(XT_OK, xt_run(r, want, (const void *const *)src, NULL));
    for (int host = 0; host < 2; host++) {
        fill_pattern(got, room, 77);
        xt_status s = host ? xt_run_host(k, got, (const void *const *)src)
                           : xt_run(k, got, (const void *const *)src, NULL);
        ck_assert_msg(s == XT_OK, "%s: %s", what, xt_last_error()->message);
        ck_assert_msg(!memcmp(want, got, room), "%s%s", what, host ? ", on host buffers" : "");
    }
    for (int i = 0; i < SOURCES; i++)
        free(src[i]);
    free(want);
    free(got);
    xt_kernel_free(r);
    xt_ctx_free(ref);
}

static void check_line(struct xt_ctx *ctx, const char *line)
{
    struct xt_graph *g = parse_line(line);
    struct xt_kernel *k;
    ck_assert_msg(!xt_compile(ctx, g, NULL, &k), "%s: %s", line, xt_last_error()->message);
    check_copy(k, g);
    xt_kernel_free(k);
    xt_graph_free(g);
}

static const char *const lines[] = {
    "x: f32[40,60]; x.permute(1,0)",
    "x: f32[1000]; x",
    "x: f16[33,65]; x.permute(1,0) -> [65,33]:[40,1]+3",
    "x: u8[5,6]; y: u8[5,7]; concat(1, x, y, x)",
    "x: f32[12,10]; x.pad((1,2),(3,4), value=7)",
    "x: i32[9,9]; x.tril(1)",
    "x: f64[6,10]; x.permute(1,0).reshape(4,15).permute(1,0)",
    "x: c128[7,5]; x.flip(1)",
    "x: f32[]; x",
    "x: u8[0,3]; x",
    "x: f32[9]; y: f32[3]; y.tile(5)",
    "x: u8[1]; x.expand(300).pad((7,9), value=255)",
    /* so many pieces that they share a table */
    "x: u8[3,3,3,3,3]; y: u8[3,3,3,3,3]; concat(0, x, y).roll(1,0).roll(1,1).roll(1,2).roll(1,3)"
    ".roll(1,4).pad((1,0),(0,0),(0,0),(0,0),(0,1), value=5)",
};
enum { N_LINES = sizeof lines / sizeof *lines };

START_TEST(chains_run_on_device_and_host_buffers)
{
    struct xt_ctx *ctx = cuda_ctx(false);
    for (int i = 0; i < N_LINES; i++)
        check_line(ctx, lines[i]);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(random_chains_run_on_device_and_host_buffers)
{
    struct xt_ctx *ctx = cuda_ctx(false);
    for (uint64_t seed = 1; seed <= 25; seed++) {
        struct random_graph_options o = {.max_numel = 400};
        struct xt_graph *g = random_graph(seed, &o);
        struct xt_kernel *k;
        expect(XT_OK, xt_compile(ctx, g, NULL, &k));
        check_copy(k, g);
        xt_kernel_free(k);
        xt_graph_free(g);
    }
    xt_ctx_free(ctx);
}
END_TEST

/* ------------------------------------------------------------------------------------------- run's refusals
 */

START_TEST(pointers_are_checked_before_a_launch)
{
    struct xt_ctx *ctx = cuda_ctx(false);
    static _Alignas(64) unsigned char a[4096];
    struct xt_kernel *k = compile_line(ctx, "x: c128[8,2]; x.permute(1,0)");
    expect(XT_EINVAL, xt_run(k, NULL, (const void *[]){a}, NULL));
    expect(XT_EINVAL, xt_run(k, a, NULL, NULL));
    expect(XT_EINVAL, xt_run_host(k, a, (const void *[]){NULL}));
    expect(XT_EALIGN,
           xt_run(k, a + 1024 + 8, (const void *[]){a}, NULL)); /* ld.global.v4 wants all sixteen */
    expect(XT_EALIGN, xt_run(k, a + 1024, (const void *[]){a + 1}, NULL));
    expect(XT_EALIAS, xt_run(k, a, (const void *[]){a}, NULL));
    expect(XT_EALIAS, xt_run(k, a + 16, (const void *[]){a}, NULL));
    expect(XT_EALIAS, xt_run_host(k, a + 16, (const void *[]){a}));
    expect(XT_OK, xt_run(k, a + 256, (const void *[]){a}, NULL));
    expect(XT_OK, xt_run(k, a + 256 + 16, (const void *[]){a}, NULL));
    xt_kernel_free(k);
    k = compile_line(ctx, "x: f32[0,2]; x");
    expect(XT_OK, xt_run(k, NULL, NULL, NULL));
    expect(XT_OK, xt_run_host(k, NULL, NULL));
    xt_kernel_free(k);
    k = compile_line(ctx, "x: f32[8]; x");
    expect(XT_OK, xt_run(k, a, (const void *[]){a}, NULL)); /* changes nothing */
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

/* Their parameters do not fit on a small stack. */
START_TEST(a_launch_of_many_inputs_takes_memory_before_it_writes)
{
    struct xt_ctx *ctx = cuda_ctx(false);
    struct xt_graph *g;
    struct xt_kernel *k;
    xt_node x[SOURCES];
    static unsigned char a[64], b[4096];
    const void *src[SOURCES];
    int64_t shape[] = {3, 5};
    expect(XT_OK, xt_graph_new(&g));
    for (int i = 0; i < SOURCES; i++) {
        x[i] = xt_input(g, NULL, XT_U8, 2, shape, NULL, 0);
        src[i] = a;
    }
    xt_output(g, xt_concat(g, 1, SOURCES, x), NULL, 0);
    expect(XT_OK, xt_compile(ctx, g, NULL, &k));
    check_copy(k, g);
    memset(a, 1, sizeof a);
    xti_fail_alloc(1, 0);
    expect(XT_ENOMEM, xt_run(k, b, src, NULL));
    xti_fail_alloc(0, 0);
    ck_assert(!memchr(b, 1, sizeof b));
    expect(XT_OK, xt_run(k, b, src, NULL));
    ck_assert(!memchr(b, 0, 3 * 5 * SOURCES));
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(a_kernel_for_an_architecture_has_artifacts_and_wants_a_device_to_run)
{
    setenv("XT_LIBCUDA", "/nonexistent/libcuda.so", 1);
    struct xt_ctx *ctx = cuda_ctx(false);
    struct xt_graph *g = parse_line(lines[0]);
    struct xt_compile_options o = {.size = sizeof o, .backend = XT_CUDA, .arch = "sm_90"};
    struct xt_kernel *k, *none;
    const void *data;
    size_t bytes;
    float a[2400], b[2400];
    expect(XT_OK, xt_compile(ctx, g, &o, &k));
    for (int what = XT_SOURCE; what <= XT_LAUNCH; what++) {
        expect(XT_OK, xt_kernel_artifact(k, (enum xt_artifact)what, &data, &bytes));
        ck_assert(data && bytes > 0);
        ck_assert(what == XT_CUBIN ? !memcmp(data, "\177ELF", 4) : strlen(data) == bytes);
    }
    expect(XT_ENODEVICE, xt_run(k, b, (const void *[]){a}, NULL));
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "sm_90"));
    expect(XT_ENODEVICE, xt_run_host(k, b, (const void *[]){a}));
    none = (void *)1;
    expect(XT_ENODEVICE, xt_compile(ctx, g, NULL, &none));
    ck_assert_ptr_null(none);
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(a_missing_device_is_named)
{
    struct xt_ctx *ctx;
    struct xt_graph *g = parse_line(lines[0]);
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = "", .device = 3};
    struct xt_kernel *k = (void *)1;
    expect(XT_OK, xt_ctx_new(&o, &ctx));
    expect(XT_ENODEVICE, xt_compile(ctx, g, NULL, &k));
    ck_assert(!k && strstr(xt_last_error()->message, "3"));
    xt_ctx_free(ctx);
    xt_graph_free(g);
}
END_TEST

/* ---------------------------------------------------------------------------------- lifetime, fork, contexts
 */

START_TEST(kernels_outlive_their_context_and_equal_maps_share_their_code)
{
    struct xt_ctx *ctx = cuda_ctx(false);
    struct xt_graph *g = parse_line("x: f32[40,60]; x.permute(1,0)");
    struct xt_kernel *a = compile_line(ctx, "x: f32[40,60]; x.permute(1,0)");
    struct xt_kernel *b = compile_line(ctx, "y: f32[2,20,60]; y.reshape(40,60).transpose(0,1)");
    struct xt_kernel *c = compile_line(ctx, "x: f32[40,60]; x.permute(1,0)");
    ck_assert_ptr_eq(a, c);
    ck_assert_ptr_ne(a, b);
    ck_assert_str_eq(origin_of(a), "built");
    ck_assert_str_eq(origin_of(b), "memory");
    struct xt_cache_stats s = stats_of(ctx);
    ck_assert_int_eq(s.built, 1);
    ck_assert_int_eq(s.memory_hits, 2);
    ck_assert_int_eq(s.disk_hits + s.stored + s.entries, 0);
    xt_ctx_free(ctx);
    xt_kernel_free(a);
    check_copy(c, g);
    xt_kernel_free(c);
    check_copy(b, g);
    xt_kernel_free(b);
    xt_graph_free(g);
}
END_TEST

/* 0: all is as it should be; else the number of the line that is not. */
static int child_of_a_cuda_program(struct xt_ctx *ctx, struct xt_kernel *k, struct xt_kernel *cpu)
{
    static float a[2400], b[2400];
    struct xt_kernel *more = NULL;
    struct xt_graph *g = NULL;
    if (xt_run(k, b, (const void *[]){a}, NULL) != XT_EFORKED || xt_last_error()->status != XT_EFORKED)
        return 1;
    if (xt_run_host(k, b, (const void *[]){a}) != XT_EFORKED)
        return 2;
    if (xt_parse(lines[0], 0, NULL, &g) || xt_compile(ctx, g, NULL, &more) != XT_EFORKED || more)
        return 3;
    if (xt_run(cpu, b, (const void *[]){a}, NULL))
        return 4;
    struct xt_compile_options o = {.size = sizeof o, .backend = XT_CPU};
    if (xt_compile(ctx, g, &o, &more) || xt_run(more, b, (const void *[]){a}, NULL))
        return 5;
    struct xt_kernel_info info = {.size = sizeof info};
    if (xt_kernel_get(k, &info) || info.backend != XT_CUDA)
        return 6;
    xt_kernel_free(more);
    xt_graph_free(g);
    xt_kernel_free(k); /* must not call the driver */
    xt_kernel_free(cpu);
    xt_ctx_free(ctx);
    return 0;
}

START_TEST(a_forked_child_keeps_the_cpu_and_is_told_of_cuda)
{
    struct xt_ctx *ctx = cuda_ctx(true), *cpu_ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, lines[0]), *cpu = compile_line(cpu_ctx, lines[0]);
    pid_t pid = fork_child();
    if (!pid) {
        fail_driver("");
        _exit(child_of_a_cuda_program(ctx, k, cpu));
    }
    int status = end_of(pid);
    ck_assert_msg(status == 0, "step %d of the child", status >> 8);
    struct xt_graph *g = parse_line(lines[0]);
    check_copy(k, g);
    xt_graph_free(g);
    xt_kernel_free(k);
    xt_kernel_free(cpu);
    xt_ctx_free(ctx);
    xt_ctx_free(cpu_ctx);
}
END_TEST

/* One xt context in a program with several CUDA contexts, as one with several GPUs has. */
START_TEST(each_cuda_context_gets_a_kernel_of_its_own)
{
    int (*create)(void **, unsigned, int), (*destroy)(void *), (*init)(unsigned), (*pop)(void **),
        (*push)(void *);
    *(void **)&create = double_symbol("cuCtxCreate_v2");
    *(void **)&destroy = double_symbol("cuCtxDestroy_v2");
    *(void **)&init = double_symbol("cuInit");
    *(void **)&push = double_symbol("cuCtxPushCurrent_v2");
    *(void **)&pop = double_symbol("cuCtxPopCurrent_v2");
    struct xt_ctx *ctx = cuda_ctx(true);
    void *first, *second, *unused;
    ck_assert(!init(0) && !create(&first, 0, 0));
    struct xt_graph *g = parse_line(lines[0]);
    struct xt_kernel *a = compile_line(ctx, lines[0]);
    check_copy(a, g);
    ck_assert(!create(&second, 0, 0));
    struct xt_kernel *b = compile_line(ctx, lines[0]);
    ck_assert_ptr_ne(a, b);
    check_copy(b, g);
    float x[2400], y[2400];
    expect(XT_ENODEVICE, xt_run(a, y, (const void *[]){x}, NULL));
    ck_assert(!pop(&unused));
    check_copy(a, g);
    xt_kernel_free(a);
    ck_assert(!destroy(first));
    ck_assert(!create(&first, 0, 0));
    a = compile_line(ctx, lines[0]);
    check_copy(a, g);
    ck_assert_int_eq(stats_of(ctx).disk_hits, 2);
    xt_kernel_free(a);
    xt_kernel_free(b);
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

struct worker {
    pthread_t thread;
    struct xt_ctx *ctx;
    struct xt_kernel *k;
    bool ok;
};

static void *compile_and_run(void *arg)
{
    struct worker *w = arg;
    struct xt_graph *g = NULL;
    int32_t src[81], dst[81] = {0};
    for (int i = 0; i < 81; i++)
        src[i] = i + 1;
    w->ok = !xt_parse("x: i32[9,9]; x.permute(1,0)", 0, NULL, &g) && !xt_compile(w->ctx, g, NULL, &w->k) &&
            !xt_run(w->k, dst, (const void *[]){src}, NULL);
    for (int i = 0; i < 81; i++)
        w->ok = w->ok && dst[i] == src[i % 9 * 9 + i / 9];
    xt_graph_free(g);
    return NULL;
}

START_TEST(threads_that_ask_at_once_get_one_compile)
{
    struct worker w[8] = {{0}};
    struct xt_ctx *ctx = cuda_ctx(true);
    for (int i = 0; i < 8; i++) {
        w[i].ctx = ctx;
        ck_assert_int_eq(pthread_create(&w[i].thread, NULL, compile_and_run, &w[i]), 0);
    }
    for (int i = 0; i < 8; i++)
        pthread_join(w[i].thread, NULL);
    struct xt_cache_stats s = stats_of(ctx);
    for (int i = 0; i < 8; i++) {
        ck_assert(w[i].ok && w[i].k == w[0].k);
        if (i)
            xt_kernel_free(w[i].k);
    }
    ck_assert_int_eq(s.built, 1);
    ck_assert_int_eq(s.stored, 1);
    ck_assert_int_eq(s.memory_hits, 7);
    xt_kernel_free(w[0].k);
    xt_ctx_free(ctx);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ the disk
 */

static void see(void *arg, const char *file, int64_t bytes, const char *what)
{
    int *n = arg;
    *n += bytes > 100 && strlen(file) >= 16 && strstr(what, "permute") != NULL;
}

/* Compiles lines[0] in a new context, runs it, and tells where it came from. */
static const char *use_once(struct xt_cache_stats *stats)
{
    struct xt_ctx *ctx = cuda_ctx(true);
    struct xt_graph *g = parse_line(lines[0]);
    struct xt_kernel *k;
    expect(XT_OK, xt_compile(ctx, g, NULL, &k));
    check_copy(k, g);
    const char *origin = origin_of(k);
    *stats = stats_of(ctx);
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    return origin;
}

START_TEST(what_one_context_compiled_another_finds_on_disk)
{
    struct xt_cache_stats s = {.size = sizeof s};
    struct xt_ctx *ctx = cuda_ctx(true);
    int n = 0;
    int64_t removed = 0;
    ck_assert_str_eq(use_once(&s), "built");
    ck_assert(s.built == 1 && s.stored == 1 && s.entries == 1 && s.bytes > 1000 && !s.disk_hits);
    ck_assert_str_eq(use_once(&s), "disk");
    ck_assert(s.built == 0 && s.stored == 0 && s.disk_hits == 1 && !s.refused);
    expect(XT_OK, xt_cache_list(ctx, see, &n));
    ck_assert_int_eq(n, 1);
    ck_assert_ptr_nonnull(xt_cache_path(ctx));
    ck_assert_str_eq(xt_cache_why(ctx), "");
    expect(XT_OK, xt_cache_clear(ctx, &removed));
    ck_assert_int_eq(removed, 1);
    ck_assert_str_eq(use_once(&s), "built");
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(flags_that_nvrtc_takes_from_the_environment_are_part_of_the_key)
{
    struct xt_cache_stats s = {.size = sizeof s};
    ck_assert_str_eq(use_once(&s), "built");
    setenv("NVRTC_APPEND_FLAGS", "-DNOTHING=1", 1);
    ck_assert_str_eq(use_once(&s), "built");
    ck_assert_str_eq(use_once(&s), "disk");
    unsetenv("NVRTC_APPEND_FLAGS");
    ck_assert_str_eq(use_once(&s), "disk");
    ck_assert_int_eq(s.entries, 2);
}
END_TEST

/* The one entry of the cache: its path, and its bytes. */
static unsigned char *read_entry(char *path, size_t room, size_t *bytes)
{
    char sub[300];
    snprintf(sub, sizeof sub, "%s/k1", dir);
    DIR *d = opendir(sub);
    ck_assert_ptr_nonnull(d);
    path[0] = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (xti_entry_is_name(e->d_name))
            snprintf(path, room, "%s/%s", sub, e->d_name);
    closedir(d);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "no entry in %s", sub);
    unsigned char *data = malloc(1 << 20);
    *bytes = fread(data, 1, 1 << 20, f);
    fclose(f);
    return data;
}

static void write_entry(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(data, 1, bytes, f) == bytes && !fclose(f));
}

enum damage { FLIPPED, CUT, EMPTIED, BAD_PTX, BAD_LENGTHS, SHORT_PAYLOAD, PTX_WITHOUT_NUL, N_DAMAGES };

/* The last four keep the checksum right: as an older or broken xt could have stored them. */
static void damage(enum damage how)
{
    char path[600];
    size_t bytes;
    struct xti_entry e;
    const char *why = NULL;
    unsigned char *data = read_entry(path, sizeof path, &bytes);
    if (how == FLIPPED) {
        data[bytes / 2] ^= 16;
        write_entry(path, data, bytes);
    } else if (how == CUT || how == EMPTIED) {
        write_entry(path, data, how == CUT ? bytes - 9 : 0);
    } else {
        ck_assert_ptr_null(xti_entry_decode(data, bytes, &e));
        unsigned char *payload = malloc(e.payload_bytes);
        memcpy(payload, e.payload, e.payload_bytes);
        uint64_t n[2];
        memcpy(n, payload, sizeof n);
        if (how == BAD_PTX)
            memcpy(strstr((char *)payload + 16, ".entry"), ".entri", 6);
        if (how == BAD_LENGTHS)
            memset(payload, 0xff, 16);
        if (how == SHORT_PAYLOAD)
            e.payload_bytes = 7;
        if (how == PTX_WITHOUT_NUL)
            payload[16 + n[0] - 1] = 'x';
        e.payload = payload;
        void *again = xti_entry_encode(&e, &bytes, &why);
        ck_assert_ptr_nonnull(again);
        write_entry(path, again, bytes);
        xti_free(again);
        free(payload);
    }
    free(data);
}

START_TEST(a_damaged_entry_is_built_again_and_heals)
{
    struct xt_cache_stats s = {.size = sizeof s};
    ck_assert_str_eq(use_once(&s), "built");
    damage((enum damage)_i);
    ck_assert_msg(!strcmp(use_once(&s), "built"), "damage %d was loaded", _i);
    ck_assert_int_eq(s.built, 1);
    ck_assert_int_eq(s.disk_hits, 0);
    ck_assert_int_eq(s.stored, 1);
    ck_assert(!s.refused ==
              (_i > EMPTIED)); /* counted at each look: before and after the key's lock was had */
    ck_assert_msg(!strcmp(use_once(&s), "disk"), "damage %d did not heal", _i);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ failures
 */

static rlim_t addresses_in_use(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    ck_assert(f && fscanf(f, "%ld", &pages) == 1 && !fclose(f));
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* NVRTC calls lack of memory an error of the source: neither the context nor the disk may keep that. */
START_TEST(a_compile_that_failed_for_want_of_memory_is_tried_again)
{
    struct xt_ctx *ctx = cuda_ctx(true);
    struct xt_graph *g = parse_line(lines[0]);
    struct xt_compile_options o = {.size = sizeof o, .arch = "sm_90"};
    struct xt_kernel *k;
    struct rlimit was, low;
    xt_status s = XT_EINTERNAL;
    int failed = 0;
    ck_assert(xti_nvrtc_for(90, 0, NULL) != NULL); /* opened while there is room */
    getrlimit(RLIMIT_AS, &was);
    for (rlim_t mb = 0; s; mb += 4) {
        low = (struct rlimit){addresses_in_use() / 4 + (mb << 20), was.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_AS, &low), 0);
        s = xt_compile(ctx, g, &o, &k);
        ck_assert_int_eq(setrlimit(RLIMIT_AS, &was), 0);
        ck_assert_msg(!s || s == XT_ECOMPILE || s == XT_ENOMEM, "%s", xt_last_error()->message);
        failed += s != XT_OK;
        ck_assert_int_lt(mb, 4000);
    }
    ck_assert_int_gt(failed, 3);
    ck_assert_str_eq(origin_of(k), "built");
    ck_assert_int_eq(stats_of(ctx).entries, 1);
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(failing_driver_calls_are_named_and_the_next_call_works)
{
    static const char *const calls[] = {"cuModuleLoadData",    "cuModuleGetFunction",
                                        "cuFuncGetAttribute",  "cuDevicePrimaryCtxRetain",
                                        "cuCtxPushCurrent_v2", "cuCtxGetCurrent"};
    struct xt_ctx *ctx = cuda_ctx(false);
    struct xt_graph *g = parse_line("x: u8[3,5]; x.permute(1,0)");
    struct xt_kernel *k;
    for (int i = 0; i < 6; i++) {
        fail_driver(calls[i]);
        k = (void *)1;
        expect(XT_EDEVICE, xt_compile(ctx, g, NULL, &k));
        ck_assert_msg(!k && strstr(xt_last_error()->message, "CUDA_ERROR_UNKNOWN"), "%s: %s", calls[i],
                      xt_last_error()->message);
        ck_assert_msg(!strncmp(xt_last_error()->message, calls[i], strcspn(calls[i], "_")), "%s: %s",
                      calls[i], xt_last_error()->message);
    }
    fail_driver("");
    expect(XT_OK, xt_compile(ctx, g, NULL, &k));
    expect(XT_OK, xt_kernel_wait(k)); /* nothing is made beside what is counted */
    static const char *const of_run[] = {"cuLaunchKernel", "cuCtxGetCurrent", "cuMemAlloc_v2",
                                         "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2"};
    unsigned char a[15], b[15];
    int64_t live = xti_live_allocations();
    for (int i = 0; i < 5; i++) {
        fail_driver(of_run[i]);
        expect(XT_EDEVICE, xt_run_host(k, b, (const void *[]){a}));
        ck_assert_int_eq(xti_live_allocations(), live);
        if (i < 2)
            expect(XT_EDEVICE, xt_run(k, b, (const void *[]){a}, NULL));
    }
    fail_driver("");
    check_copy(k, g);
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

/* As other threads make the better kernel, and by the one that asks. */
START_TEST(every_allocation_of_a_cuda_program_may_fail)
{
    struct xt_cache_stats s = {.size = sizeof s};
    struct xt_graph *g = parse_line(lines[0]);
    static float a[2400], b[2400];
    static const xt_mode modes[] = {XT_ASYNC, XT_SYNC};
    ck_assert_str_eq(use_once(&s), "built"); /* on disk from here on: no compile a round */
    int64_t live = xti_live_allocations();
    int failures = 0, passed_in_a_row = 0;
    for (int64_t n = 1; passed_in_a_row < 15; n++) {
        struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = dir, .mode = modes[_i]};
        struct xt_ctx *ctx = NULL;
        struct xt_kernel *k = NULL;
        size_t need;
        xti_fail_alloc(n, 0);
        xt_status st = xt_ctx_new(&o, &ctx);
        if (!st)
            st = xt_compile(ctx, g, NULL, &k);
        if (!st)
            st = xt_run(k, b, (const void *[]){a}, NULL);
        if (!st)
            st = xt_run_host(k, b, (const void *[]){a});
        if (!st)
            st = xt_explain(k, 0, NULL, 0, &need);
        xti_fail_alloc(0, 0);
        ck_assert_msg(st == XT_OK || st == XT_ENOMEM, "allocation %lld: %s: %s", (long long)n,
                      xt_status_name(st), xt_last_error()->message);
        xt_kernel_free(k);
        xt_ctx_free(ctx);
        ck_assert_msg(xti_live_allocations() == live, "allocation %lld: %lld more are live", (long long)n,
                      (long long)(xti_live_allocations() - live));
        failures += st != XT_OK;
        passed_in_a_row = st ? 0 : passed_in_a_row + 1;
    }
    ck_assert_int_gt(failures, 20);
    ck_assert_str_eq(use_once(&s), "disk");
    xt_graph_free(g);
}
END_TEST

/* --------------------------------------------------------------------------------------------- the command
 */

static void write_npy(const char *path)
{
    char head[128];
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    memset(head, ' ', sizeof head);
    memcpy(head, "\223NUMPY\001\000\166\000", 10);
    const char *dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 10), }";
    memcpy(head + 10, dict, strlen(dict));
    head[127] = '\n';
    float v[120];
    for (int i = 0; i < 120; i++)
        v[i] = (float)i;
    ck_assert(fwrite(head, 1, 128, f) == 128 && fwrite(v, 4, 120, f) == 120 && !fclose(f));
}

START_TEST(the_command_runs_chains_on_cuda)
{
    static const char *const chain[] = {"x; x.permute(1,0)", "x; x.pad((1,2),(3,4), value=7)[::-1]",
                                        "x: f32[12,10]; x.flip(1) -> [12,10]:[16,1]+5"};
    char in[128], command[9000], backends[2][8] = {"cpu", "cuda"};
    if (!xt[0]) {
        printf("skipped: xt is not built\n");
        return;
    }
    snprintf(in, sizeof in, "%s/in.npy", dir);
    write_npy(in);
    setenv("XT_CACHE_DIR", dir, 1);
    setenv("XT_PACK", "", 1); /* which would have some of them */
    for (int c = 0; c < 3; c++) {
        for (int b = 0; b < 2; b++) {
            snprintf(command, sizeof command, "'%s' run '%s' %s -o %s/%s%d.npy --backend %s", xt, chain[c],
                     in, dir, backends[b], c, backends[b]);
            ck_assert_msg(system(command) == 0, "%s", command);
        }
        snprintf(command, sizeof command, "cmp -s %s/cpu%d.npy %s/cuda%d.npy", dir, c, dir, c);
        ck_assert_msg(system(command) == 0, "%s: cpu and cuda differ", chain[c]);
    }
    snprintf(command, sizeof command,
             "'%s' explain 'x: f32[12,10]; x.permute(1,0)' --backend cuda | grep -q '(disk)'", xt);
    ck_assert_msg(system(command) == 0, "%s", command);
    setenv("XT_NVRTC", "/nonexistent/libnvrtc.so", 1);
    snprintf(command, sizeof command, "'%s' explain 'x: f32[12,10]; x' --backend cuda 2>&1 | grep -q 'NVRTC'",
             xt);
    ck_assert_msg(system(command) == 0, "%s", command);
}
END_TEST

/* ------------------------------------------------------------------------------------------------- main */

/* The double lies beside this program, the command a folder above. */
static const char *find_files(void)
{
    const char *why = cuda_prove_unable();
    if (why)
        return why;
    if (!find_beside("../xt", xt))
        *xt = 0;
    return use_double() ? NULL : "libcuda_double.so is not there";
}

int main(void)
{
    const char *why = find_files();
    if (why)
        return skip_suite("test_cuda_api", why);
    Suite *s = suite_create("cuda_api");
    TCase *c = tcase_create("cuda_api");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, chains_run_on_device_and_host_buffers);
    tcase_add_test(c, random_chains_run_on_device_and_host_buffers);
    tcase_add_test(c, pointers_are_checked_before_a_launch);
    tcase_add_test(c, a_launch_of_many_inputs_takes_memory_before_it_writes);
    tcase_add_test(c, a_kernel_for_an_architecture_has_artifacts_and_wants_a_device_to_run);
    tcase_add_test(c, a_missing_device_is_named);
    tcase_add_test(c, kernels_outlive_their_context_and_equal_maps_share_their_code);
    tcase_add_test(c, a_forked_child_keeps_the_cpu_and_is_told_of_cuda);
    tcase_add_test(c, each_cuda_context_gets_a_kernel_of_its_own);
    tcase_add_test(c, threads_that_ask_at_once_get_one_compile);
    tcase_add_test(c, what_one_context_compiled_another_finds_on_disk);
    tcase_add_test(c, flags_that_nvrtc_takes_from_the_environment_are_part_of_the_key);
    tcase_add_loop_test(c, a_damaged_entry_is_built_again_and_heals, 0, N_DAMAGES);
    if (!SANITIZED)
        tcase_add_test(c, a_compile_that_failed_for_want_of_memory_is_tried_again);
    tcase_add_test(c, failing_driver_calls_are_named_and_the_next_call_works);
    tcase_add_loop_test(c, every_allocation_of_a_cuda_program_may_fail, 0, 2);
    tcase_add_test(c, the_command_runs_chains_on_cuda);
    suite_add_tcase(s, c);
    return run_suite(s);
}
