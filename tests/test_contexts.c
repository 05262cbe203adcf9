/* test_contexts.c: xt in CUDA programs with several threads, contexts, devices, streams and graphs; what of
 * the driver's side is loaded and for how long; every driver call fails in turn. On the driver double:
 * without it, or without NVRTC, nothing is tested, and said so. */
#include <pthread.h>

#include "cuda/nvrtc.h"
#include "support/cuda_program.h"
#include "support/scratch.h"

char now_running[2048];

static const char line[] = "x: f32[40,60]; x.permute(1,0)";
static char dir[SCRATCH_PATH]; /* of the disk cache, a new one a test */

static void setup(void) { make_scratch(dir, "contexts"); }
static void teardown(void) { remove_scratch(dir); }

/* A program's primary context, retained and current. */
static void enter_primary(void)
{
    void *primary;
    ck_assert_int_eq(cu()->cuDevicePrimaryCtxRetain(&primary, 0), 0);
    ck_assert_int_eq(cu()->cuCtxPushCurrent_v2(primary), 0);
}

/* -------------------------------------------------------------------------------------- versions that go
 * together
 */

START_TEST(code_of_a_newer_nvrtc_runs_where_cuda_says_so)
{
    static const struct {
        int major, minor, sm, driver;
        enum xti_nvrtc_fit fit;
    } rows[] = {
        {12, 4, 90, 0, XTI_NVRTC_FITS},
        {12, 4, 90, 12040, XTI_NVRTC_FITS},
        {12, 4, 90, 12080, XTI_NVRTC_FITS},
        {12, 4, 90, 13000, XTI_NVRTC_FITS},
        {12, 4, 90, 12000, XTI_NVRTC_FITS},  /* a cubin, of the same major version */
        {12, 4, 120, 12040, XTI_NVRTC_FITS}, /* PTX of its own version */
        {12, 4, 120, 13000, XTI_NVRTC_FITS},
        {12, 4, 120, 12020, XTI_NVRTC_NEWER_PTX},
        {12, 4, 90, 11080, XTI_NVRTC_NEWER_MAJOR},
        {12, 4, 120, 11080, XTI_NVRTC_NEWER_MAJOR},
        {12, 4, 60, 12040, XTI_NVRTC_OTHER_ARCH},
        {12, 4, 60, 0, XTI_NVRTC_OTHER_ARCH},
        {12, 4, 120, 0, XTI_NVRTC_FITS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xti_nvrtc n = {
            .major = rows[i].major, .minor = rows[i].minor, .n_archs = 3, .arch = {75, 80, 90}};
        n.api.cubin = (xti_nvrtc_result(*)(xti_nvrtc_program, char *))setup;
        n.api.cubin_size = (xti_nvrtc_result(*)(xti_nvrtc_program, size_t *))setup;
        ck_assert_msg(xti_nvrtc_fit(&n, rows[i].sm, rows[i].driver) == rows[i].fit, "row %zu", i);
    }
}
END_TEST

START_TEST(a_driver_too_old_for_every_nvrtc_is_told_in_one_sentence)
{
    struct xt_ctx *ctx = cuda_context("");
    struct xt_graph *g = parse_line(line);
    struct xt_kernel *k;
    if (!use_nvrtc_double())
        return;
    setenv("XT_DOUBLE_DRIVER", "12040", 1);
    setenv("XT_DOUBLE_NVRTC_VERSION", "13.0", 1);
    expect(XT_ECOMPILE, xt_compile(ctx, g, NULL, &k));
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "NVRTC 13.0"));
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "12.4"));
    struct xt_compile_options o = {.size = sizeof o, .backend = XT_CUDA, .arch = "sm_90"};
    expect(XT_OK, xt_compile(ctx, g, &o, &k)); /* for some other machine: no driver is asked */
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

/* ---------------------------------------------------------------------------------------------- whose
 * context
 */

START_TEST(a_thread_without_a_context_and_one_in_the_primary_one_share_kernels)
{
    struct xt_ctx *ctx = cuda_context(dir);
    struct copy c = copy_of(line);
    void *primary, *unused;
    ck_assert_int_eq(cu()->cuInit(0), 0);
    ck_assert_int_eq(cu()->cuDevicePrimaryCtxRetain(&primary, 0), 0);
    for (int first = 0; first < 2; first++) { /* compiled in the primary context, or in none */
        struct xt_ctx *fresh = cuda_context(dir);
        if (!first)
            ck_assert_int_eq(cu()->cuCtxPushCurrent_v2(primary), 0);
        struct xt_kernel *a = compile_line(fresh, line);
        expect(XT_OK, run_copy(a, &c, NULL));
        ck_assert(copied(&c));
        if (!first)
            ck_assert_int_eq(cu()->cuCtxPopCurrent_v2(&unused), 0);
        else
            ck_assert_int_eq(cu()->cuCtxPushCurrent_v2(primary), 0);
        struct xt_kernel *b = compile_line(fresh, line);
        ck_assert_ptr_eq(a, b);
        expect(XT_OK, run_copy(a, &c, NULL));
        ck_assert(copied(&c));
        if (first)
            ck_assert_int_eq(cu()->cuCtxPopCurrent_v2(&unused), 0);
        xt_kernel_free(a);
        xt_kernel_free(b);
        xt_ctx_free(fresh);
    }
    ck_assert_int_eq(cu()->cuDevicePrimaryCtxRelease_v2(0), 0);
    ck_assert(cu()->cuDevicePrimaryCtxRelease_v2(0)); /* xt holds nothing more */
    free_copy(&c);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(a_context_of_the_callers_own_is_not_the_primary_one)
{
    struct xt_ctx *ctx = cuda_context(dir);
    struct copy c = copy_of(line);
    void *own, *unused;
    int active = 1;
    unsigned flags;
    ck_assert_int_eq(cu()->cuInit(0), 0);
    ck_assert_int_eq(cu()->cuCtxCreate_v2(&own, 0, 0), 0);
    struct xt_kernel *k = compile_line(ctx, line);
    ck_assert_int_eq(cu()->cuDevicePrimaryCtxGetState(0, &flags, &active), 0);
    ck_assert_int_eq(active, 0); /* asking did not make one */
    expect(XT_OK, run_copy(k, &c, NULL));
    ck_assert(copied(&c));
    ck_assert_int_eq(cu()->cuCtxPopCurrent_v2(&unused), 0);
    expect(XT_ENODEVICE, run_copy(k, &c, NULL));
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "no current CUDA context"));
    ck_assert_int_eq(cu()->cuCtxPushCurrent_v2(own), 0);
    ck_assert_int_eq(cu()->cuCtxDestroy_v2(own), 0);
    ck_assert_int_eq(cu()->cuCtxCreate_v2(&own, 0, 0), 0);
    expect(XT_ENODEVICE, run_copy(k, &c, NULL));
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    ck_assert_int_eq(double_count("double_modules"), 0);
    free_copy(&c);
}
END_TEST

START_TEST(each_device_gets_a_kernel_of_its_own)
{
    struct copy c = copy_of(line);
    void *primary[2], *unused;
    struct xt_kernel *k[2];
    setenv("XT_DOUBLE_DEVICES", "2", 1);
    struct xt_ctx *ctx = cuda_context(dir);
    ck_assert_int_eq(cu()->cuInit(0), 0);
    for (int d = 0; d < 2; d++) {
        ck_assert_int_eq(cu()->cuDevicePrimaryCtxRetain(&primary[d], d), 0);
        ck_assert_int_eq(cu()->cuCtxPushCurrent_v2(primary[d]), 0);
        k[d] = compile_line(ctx, line);
        expect(XT_OK, run_copy(k[d], &c, NULL));
        ck_assert(copied(&c));
        if (d)
            expect(XT_ENODEVICE, run_copy(k[0], &c, NULL));
        ck_assert_int_eq(cu()->cuCtxPopCurrent_v2(&unused), 0);
    }
    ck_assert_ptr_ne(k[0], k[1]);
    for (int d = 0; d < 2; d++) {
        expect(XT_OK, run_copy(k[d], &c, NULL)); /* no context: each goes to its device's */
        ck_assert(copied(&c));
        xt_kernel_free(k[d]);
    }
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = dir, .device = 1};
    struct xt_ctx *second;
    expect(XT_OK, xt_ctx_new(&o, &second));
    k[1] = compile_line(second, line);
    expect(XT_OK, run_copy(k[1], &c, NULL));
    ck_assert(copied(&c));
    xt_kernel_free(k[1]);
    xt_ctx_free(second);
    xt_ctx_free(ctx);
    free_copy(&c);
}
END_TEST

/* ------------------------------------------------------------------------------------- streams, graphs,
 * lifetime
 */

START_TEST(a_module_lives_until_the_context_goes_and_the_device_is_done)
{
    struct xt_ctx *ctx = cuda_context(dir);
    struct copy c = copy_of(line);
    struct xt_kernel *k = compile_line(ctx, line);
    expect(XT_OK, run_copy(k, &c, NULL));
    xt_kernel_free(k); /* the launch may still be under way */
    ck_assert_int_eq(double_count("double_modules"), 1);
    k = compile_line(ctx, "y: f32[60,40]; y.permute(1,0)");
    expect(XT_OK, run_copy(k, &c, NULL));
    xt_ctx_free(ctx);
    ck_assert_int_ge(double_count("double_modules"), 1); /* two where one ran while the other was made */
    expect(XT_OK, run_copy(k, &c, NULL));
    xt_kernel_free(k); /* the last of it all: waits, unloads */
    ck_assert_int_eq(double_count("double_modules"), 0);
    ck_assert_int_eq(double_count("double_hazards"), 0);
    free_copy(&c);
}
END_TEST

START_TEST(a_run_is_captured_into_a_graph_that_runs_again)
{
    struct xt_ctx *ctx = cuda_context(dir);
    struct copy c = copy_of(line);
    struct xt_kernel *k = compile_line(ctx, line);
    void *stream, *graph, *exec;
    size_t n = 0;
    enter_primary();
    ck_assert_int_eq(cu()->cuStreamCreate(&stream, 1), 0);
    expect(XT_OK, run_copy(k, &c, stream));
    ck_assert(copied(&c));
    for (int mode = 0; mode < 3; mode++) {
        ck_assert_int_eq(cu()->cuStreamBeginCapture_v2(stream, mode), 0);
        int64_t live = xti_live_allocations();
        expect(XT_OK, run_copy(k, &c, stream));
        expect(XT_OK, run_copy(k, &c, stream));
        ck_assert_int_eq(xti_live_allocations(), live);
        ck_assert(!copied(&c)); /* recorded, not run */
        ck_assert_int_eq(cu()->cuStreamEndCapture(stream, &graph), 0);
        ck_assert_int_eq(cu()->cuGraphGetNodes(graph, NULL, &n), 0);
        ck_assert_uint_eq(n, 2);
        ck_assert_int_eq(cu()->cuGraphInstantiateWithFlags(&exec, graph, 0ull), 0);
        for (int i = 0; i < 2; i++) {
            ck_assert_int_eq(cu()->cuGraphLaunch(exec, stream), 0);
            ck_assert(copied(&c));
        }
        if (mode == 2) { /* what the graph launches stays loaded while the context lives */
            xt_kernel_free(k);
            ck_assert_int_eq(cu()->cuGraphLaunch(exec, stream), 0);
            ck_assert(copied(&c));
        }
        ck_assert_int_eq(cu()->cuGraphExecDestroy(exec), 0);
        ck_assert_int_eq(cu()->cuGraphDestroy(graph), 0);
    }
    ck_assert_int_eq(cu()->cuStreamDestroy_v2(stream), 0);
    xt_ctx_free(ctx);
    ck_assert_int_eq(double_count("double_modules"), 0);
    ck_assert_int_eq(double_count("double_hazards"), 0);
    free_copy(&c);
}
END_TEST

/* Loading is forbidden while a stream is captured, unless the thread says that it knows what it does. */
START_TEST(a_compile_beside_a_capture_does_not_break_it)
{
    struct xt_ctx *ctx = cuda_context(dir);
    struct copy c = copy_of(line);
    void *stream, *graph;
    ck_assert_int_eq(cu()->cuInit(0), 0);
    enter_primary();
    ck_assert_int_eq(cu()->cuStreamCreate(&stream, 1), 0);
    ck_assert_int_eq(cu()->cuStreamBeginCapture_v2(stream, 0), 0);
    struct xt_kernel *k = compile_line(ctx, line);
    expect(XT_OK, run_copy(k, &c, stream));
    xt_kernel_free(k);
    ck_assert_int_eq(cu()->cuStreamEndCapture(stream, &graph), 0);
    ck_assert_int_eq(cu()->cuGraphLaunch(graph, stream), 0);
    ck_assert(copied(&c));
    ck_assert_int_eq(cu()->cuGraphDestroy(graph), 0);
    xt_ctx_free(ctx);
    free_copy(&c);
}
END_TEST

/* -------------------------------------------------------------------------------------------------- failures
 */

START_TEST(an_earlier_kernels_error_is_not_this_calls)
{
    struct xt_ctx *ctx = cuda_context(dir);
    struct copy c = copy_of(line);
    struct xt_kernel *k = compile_line(ctx, line);
    struct guarded small = guard(256, true);
    enter_primary();
    expect(XT_OK, xt_run(k, small.p, (const void *[]){c.src}, NULL)); /* the launch: it fails later */
    expect(XT_EDEVICE, run_copy(k, &c, NULL));
    ck_assert_msg(strstr(xt_last_error()->message, "an earlier CUDA_ERROR_ILLEGAL_ADDRESS") != NULL, "%s",
                  xt_last_error()->message);
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "not this call"));
    expect(XT_EDEVICE, xt_run_host(k, c.dst, (const void *[]){c.src}));
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "an earlier CUDA_ERROR_ILLEGAL_ADDRESS"));
    unguard(&small);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    free_copy(&c);
}
END_TEST

/* One program: everything a kernel goes through. */
static xt_status whole_program(const struct xt_graph *g, struct copy *c)
{
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = dir};
    struct xt_ctx *ctx = NULL;
    struct xt_kernel *k = NULL;
    xt_status s = xt_ctx_new(&o, &ctx);
    if (!s)
        s = xt_compile(ctx, g, NULL, &k);
    if (!s)
        s = run_copy(k, c, NULL);
    if (!s)
        s = copied(c) ? xt_run_host(k, c->dst, (const void *[]){c->src}) : XT_EINTERNAL;
    if (!s)
        s = copied(c) ? XT_OK : XT_EINTERNAL;
    ck_assert_int_eq(xt_last_error()->status, s == XT_EINTERNAL ? XT_OK : s);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    return s;
}

/* What cannot be undone when its own call fails. */
static bool may_leave_modules(const char *call)
{
    return !strcmp(call, "cuModuleUnload") || !strncmp(call, "cuDevicePrimaryCtx", 18) ||
           !strncmp(call, "cuCtx", 5);
}

/* What is not needed, and what loads a kernel from the disk, which is then built anew. */
static bool may_pass(const char *call)
{
    static const char *const calls[] = {"cuThreadExchangeStreamCaptureMode", "cuMemFree_v2", "cuDeviceGet",
                                        "cuModuleLoadData", "cuModuleGetFunction", "cuFuncGetAttribute"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(call, calls[i]))
            return true;
    return false;
}

START_TEST(every_driver_call_may_fail_in_turn)
{
    struct copy c = copy_of(line);
    struct xt_graph *g = parse_line(line);
    int n = 0, failures = 0, left = 0, unwaited = 0;
    struct xt_compile_options for_sm = {.size = sizeof for_sm, .backend = XT_CUDA, .arch = "sm_90"};
    struct xt_ctx *ctx = cuda_context(dir); /* fills the disk, without a driver */
    struct xt_kernel *k;
    expect(XT_OK, xt_compile(ctx, g, &for_sm, &k));
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    int64_t live = xti_live_allocations();
    for (const char *call = "?"; *call;) {
        char spec[32];
        snprintf(spec, sizeof spec, "*:%d", ++n);
        fail_driver(spec);
        xt_status s = whole_program(g, &c);
        call = failed_call();
        fail_driver("");
        bool quiet = may_leave_modules(call) || may_pass(call);
        ck_assert_msg(!*call || quiet || s == XT_EDEVICE || s == XT_ENODEVICE, "call %d, %s: %s", n, call,
                      xt_status_name(s));
        ck_assert_msg(*call || !s, "%s", xt_last_error()->message);
        failures += s != XT_OK;
        ck_assert_msg(xti_live_allocations() == live, "call %d, %s: %lld allocations more", n, call,
                      (long long)(xti_live_allocations() - live));
        left += !strcmp(call, "cuMemFree_v2");
        unwaited += !strcmp(call, "cuCtxSynchronize");
        ck_assert_msg(double_count("double_memories") == left, "call %d, %s: device memory is left", n, call);
        if (!may_leave_modules(call))
            ck_assert_msg(!double_count("double_modules"), "call %d, %s: a module is left", n, call);
        void *unused;
        while (!cu()->cuCtxPopCurrent_v2(&unused))
            ck_assert(may_leave_modules(call));
        while (!cu()->cuDevicePrimaryCtxRelease_v2(0)) /* takes along what a failing release left */
            ck_assert(may_leave_modules(call) || !strcmp(call, "cuMemFree_v2"));
        ck_assert_msg(whole_program(g, &c) == XT_OK, "after call %d, %s: %s", n, call,
                      xt_last_error()->message);
    }
    ck_assert_int_gt(failures, 15);
    ck_assert_int_eq(double_count("double_hazards"), unwaited); /* a wait that fails is one for dead work */
    xt_graph_free(g);
    free_copy(&c);
}
END_TEST

/* -------------------------------------------------------------------------------------------- side by side
 */

struct compile {
    pthread_t thread;
    struct xt_ctx *ctx;
    char line[64];
    xt_status s;
};

static void *compile_one(void *arg)
{
    struct compile *c = arg;
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    c->s = xt_parse(c->line, 0, NULL, &g);
    if (!c->s)
        c->s = xt_compile(c->ctx, g, NULL, &k);
    xt_kernel_free(k);
    xt_graph_free(g);
    return NULL;
}

START_TEST(different_kernels_compile_side_by_side)
{
    struct compile c[4];
    if (!use_nvrtc_double())
        return;
    setenv("XT_DOUBLE_NVRTC_MS", "300", 1);
    struct xt_ctx *ctx = cuda_context("");
    for (int i = 0; i < 4; i++) {
        c[i].ctx = ctx;
        snprintf(c[i].line, sizeof c[i].line, "x: f32[%d,%d,2]; x.permute(%s)", 3 + i, 5,
                 i % 2 ? "2,1,0" : "1,0,2");
        ck_assert_int_eq(pthread_create(&c[i].thread, NULL, compile_one, &c[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(c[i].thread, NULL);
        ck_assert_int_eq(c[i].s, XT_OK);
    }
    ck_assert_int_ge(double_count("double_most_compiles"), 2);
    xt_ctx_free(ctx);
}
END_TEST

int main(void)
{
    const char *why = cuda_prove_unable();
    if (!why && !use_double())
        why = "libcuda_double.so is not there";
    if (why)
        return skip_suite("test_contexts", why);
    Suite *s = suite_create("contexts");
    TCase *c = tcase_create("contexts");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, code_of_a_newer_nvrtc_runs_where_cuda_says_so);
    tcase_add_test(c, a_driver_too_old_for_every_nvrtc_is_told_in_one_sentence);
    tcase_add_test(c, a_thread_without_a_context_and_one_in_the_primary_one_share_kernels);
    tcase_add_test(c, a_context_of_the_callers_own_is_not_the_primary_one);
    tcase_add_test(c, each_device_gets_a_kernel_of_its_own);
    tcase_add_test(c, a_module_lives_until_the_context_goes_and_the_device_is_done);
    tcase_add_test(c, a_run_is_captured_into_a_graph_that_runs_again);
    tcase_add_test(c, a_compile_beside_a_capture_does_not_break_it);
    tcase_add_test(c, an_earlier_kernels_error_is_not_this_calls);
    tcase_add_test(c, every_driver_call_may_fail_in_turn);
    tcase_add_test(c, different_kernels_compile_side_by_side);
    suite_add_tcase(s, c);
    return run_suite(s);
}
