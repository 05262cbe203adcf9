/* test_driver.c: NVRTC and the CUDA driver from xt's side: finding them, compiling, loading, launching, and
 * every way in which they fail. The driver is tests/libcuda_double.so; without it, or without NVRTC, tests
 * say so. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "cuda/driver.h"
#include "support/child.h"
#include "support/cuda_made.h"

/* ---------------------------------------------------------------------------------------- NVRTC and driver
 */

static const struct xti_nvrtc *newest(void) { return xti_nvrtc_for(90, 0, NULL); }

START_TEST(a_missing_nvrtc_says_where_to_point)
{
    struct xti_err err = {0};
    setenv("XT_NVRTC", "/nonexistent/libnvrtc.so", 1);
    ck_assert_ptr_null(xti_nvrtc_for(90, 0, &err));
    ck_assert_int_eq(err.e.status, XT_ECOMPILE);
    ck_assert_ptr_nonnull(strstr(err.e.message, "NVRTC not found"));
    ck_assert_ptr_nonnull(strstr(err.e.message, "/nonexistent/libnvrtc.so"));
    unsetenv("XT_NVRTC");
}
END_TEST

START_TEST(a_source_that_does_not_compile_gives_the_first_error_of_the_log)
{
    struct xti_code code;
    struct xti_err err = {0};
    if (cuda_skipped())
        return;
    ck_assert_int_eq(xti_nvrtc_compile(newest(), "extern \"C\" __global__ void n() { undefined_thing; }", "n",
                                       90, &code, &err),
                     XT_ECOMPILE);
    ck_assert_msg(strstr(err.e.message, "undefined_thing") != NULL, "%s", err.e.message);
    ck_assert_ptr_null(code.ptx);
    struct xti_err old = {0};
    ck_assert_ptr_null(xti_nvrtc_for(20, 0, &old));
    ck_assert_ptr_nonnull(strstr(old.e.message, "sm_20"));
}
END_TEST

START_TEST(one_compile_gives_ptx_and_cubin_and_the_same_bytes_again)
{
    struct made a;
    struct xti_code c, d;
    struct xti_err err = {0};
    if (cuda_skipped())
        return;
    make("x: f32[30,40]; x.permute(1,0)", &a);
    ck_assert_msg(!xti_nvrtc_compile(newest(), a.source.s, "xt_test_00000000", 90, &c, &err), "%s",
                  err.e.message);
    ck_assert_msg(!xti_nvrtc_compile(newest(), a.source.s, "xt_test_00000000", 90, &d, &err), "%s",
                  err.e.message);
    ck_assert_uint_eq(strlen(c.ptx) + 1, c.ptx_bytes);
    ck_assert_uint_gt(c.cubin_bytes, 64);
    ck_assert_mem_eq(c.cubin, "\177ELF", 4);
    ck_assert_str_eq(c.ptx, d.ptx);
    ck_assert_uint_eq(c.cubin_bytes, d.cubin_bytes);
    ck_assert_mem_eq(c.cubin, d.cubin, c.cubin_bytes);
    xti_code_free(&c);
    ck_assert_msg(
        !xti_nvrtc_compile(xti_nvrtc_for(999, 0, NULL), a.source.s, "xt_test_00000000", 999, &c, &err), "%s",
        err.e.message);
    ck_assert_ptr_null(c.cubin); /* unknown to any NVRTC of today: PTX of the newest it knows */
    xti_code_free(&c);
    xti_code_free(&d);
    drop(&a);
}
END_TEST

static void *compile_for_ever(void *arg)
{
    const atomic_bool *stop = arg;
    while (!atomic_load(stop)) {
        struct xti_code c;
        struct xti_err err = {0};
        if (!xti_nvrtc_compile(newest(), "extern \"C\" __global__ void n() {}", "n", 90, &c, &err))
            xti_code_free(&c);
    }
    return NULL;
}

/* NVRTC itself hangs in four of ten such children. */
START_TEST(a_child_forked_during_a_compile_compiles)
{
    atomic_bool stop = false;
    pthread_t thread;
    if (cuda_skipped())
        return;
    ck_assert_int_eq(pthread_create(&thread, NULL, compile_for_ever, &stop), 0);
    for (int i = 0; i < 12; i++) {
        pid_t child = fork_child();
        if (child == 0) {
            struct xti_code c;
            struct xti_err err = {0};
            _exit(xti_nvrtc_compile(newest(), "extern \"C\" __global__ void n() {}", "n", 90, &c, &err) ? 1
                                                                                                        : 0);
        }
        ck_assert_int_eq(end_of(child), 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(a_compile_survives_every_failing_allocation)
{
    struct xti_code c;
    if (cuda_skipped())
        return;
    int64_t live = xti_live_allocations();
    xt_status s = XT_ENOMEM;
    int n = 0;
    while (s) {
        struct xti_err err = {0};
        xti_fail_alloc(++n, 0);
        s = xti_nvrtc_compile(newest(), "extern \"C\" __global__ void n() {}", "n", 90, &c, &err);
        xti_fail_alloc(0, 0);
        ck_assert_msg(s == XT_OK || s == XT_ENOMEM, "allocation %d: %s", n, err.e.message);
        if (s)
            ck_assert_int_eq(xti_live_allocations(), live);
    }
    ck_assert_int_ge(n, 3);
    xti_code_free(&c);
    ck_assert_int_eq(xti_live_allocations(), live);
}
END_TEST

START_TEST(an_override_takes_the_place_of_the_source)
{
    char dir[] = "/tmp/xt-override-XXXXXX", path[128];
    struct made a;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/xt_test_00000000.cu", dir);
    FILE *f = fopen(path, "w");
    fputs("// mine\n", f);
    fclose(f);
    setenv("XT_OVERRIDE", dir, 1);
    make("x: f32[8]; x", &a);
    unsetenv("XT_OVERRIDE");
    remove(path);
    remove(dir);
    ck_assert_str_eq(a.source.s, "// mine\n");
    drop(&a);
}
END_TEST

/* A file that is there is not passed over because it cannot be used. */
START_TEST(an_override_that_is_no_source_is_told)
{
    char dir[] = "/tmp/xt-override-XXXXXX", path[128];
    struct made a;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/xt_test_00000000.cu", dir);
    make("x: f32[8]; x", &a);
    setenv("XT_OVERRIDE", dir, 1);
    static const struct {
        const char *text, *said;
        size_t bytes;
    } row[] = {{NULL, "Is a directory", 0}, {"", "is empty", 0}, {"// a\0 b", "a NUL byte", 7}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct xti_err err = {0};
        FILE *f = row[i].text ? fopen(path, "w") : NULL;
        if (f)
            ck_assert(fwrite(row[i].text, 1, row[i].bytes, f) == row[i].bytes && !fclose(f));
        else
            ck_assert_int_eq(mkdir(path, 0700), 0);
        xti_str_free(&a.source);
        ck_assert_int_eq(xti_cuda_emit(&a.plan, XTI_TIER_EXACT, "xt_test_00000000", &a.source, &err), XT_EIO);
        ck_assert_msg(strstr(err.e.message, "XT_OVERRIDE: /tmp/") && strstr(err.e.message, row[i].said), "%s",
                      err.e.message);
        remove(path);
    }
    unsetenv("XT_OVERRIDE");
    remove(dir);
    drop(&a);
}
END_TEST

START_TEST(a_missing_driver_is_no_device)
{
    struct xti_err err = {0};
    struct xti_cuda_target t;
    const struct xti_cu_api *api;
    setenv("XT_LIBCUDA", "/nonexistent/libcuda.so", 1);
    ck_assert_int_eq(xti_driver_get(&api, &err), XT_ENODEVICE);
    ck_assert_ptr_nonnull(strstr(err.e.message, "no CUDA driver"));
    ck_assert_int_eq(xti_cuda_target(0, &t, &err), XT_ENODEVICE);
    unsetenv("XT_LIBCUDA");
}
END_TEST

START_TEST(an_architecture_is_named_in_four_ways_and_no_other)
{
    static const char *const good[] = {"90", "sm_90", "sm_90a", "sm_90f"};
    static const char *const bad[] = {"", "sm_", "sm_90x", "x90", "-90", "9", "sm_999"};
    struct xti_cuda_target t;
    for (int i = 0; i < 4; i++) {
        struct xti_err err = {0};
        ck_assert_int_eq(xti_cuda_arch(good[i], &t, &err), XT_OK);
        ck_assert_int_eq(t.sm, 90);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct xti_err err = {0};
        ck_assert_int_eq(xti_cuda_arch(bad[i], &t, &err), XT_EINVAL);
    }
}
END_TEST

/* ------------------------------------------------------------------------------------------- driver double
 */

static bool no_double(void)
{
    bool there = use_double();
    if (!there)
        printf("skipped: libcuda_double.so is not there\n");
    return !there;
}

struct device_run {
    struct made made;
    struct xti_code code;
    struct xti_module *module;
    unsigned char *dst, *src, *want;
    size_t dst_bytes, src_bytes;
};

static const char device_chain[] = "x: f16[30,41]; x.permute(1,0)[1:].pad((1,0),(2,3), value=5)";

static void prepare(struct device_run *r)
{
    struct xti_err err = {0};
    memset(r, 0, sizeof *r);
    make(device_chain, &r->made);
    ck_assert_msg(!xti_nvrtc_compile(newest(), r->made.source.s, "xt_test_00000000", 90, &r->code, &err),
                  "%s", err.e.message);
    r->dst_bytes = (size_t)(r->made.map.dst_hi + 1) * 2;
    r->src_bytes = (size_t)(r->made.map.src_hi[0] + 1) * 2;
    r->dst = aligned_alloc(256, 8192);
    r->src = aligned_alloc(256, 8192);
    r->want = malloc(r->dst_bytes);
    for (size_t i = 0; i < 8192; i++)
        r->src[i] = (unsigned char)(i * 7 + i / 251);
}

static xt_status load_and_launch(struct device_run *r, size_t shift, struct xti_err *err)
{
    const void *src = r->src + shift;
    xt_status s = xti_module_load(&r->code, "xt_test_00000000", 0, &r->module, err);
    if (!s)
        s = xti_cuda_launch(&r->made.plan, XTI_TIER_EXACT, r->module, r->dst + shift, &src, NULL, err);
    xti_module_free(r->module);
    r->module = NULL;
    return s;
}

static void release(struct device_run *r)
{
    free(r->dst);
    free(r->src);
    free(r->want);
    xti_code_free(&r->code);
    drop(&r->made);
}

START_TEST(a_kernel_loads_and_launches_through_the_driver)
{
    struct device_run r;
    struct xti_cuda_target t;
    struct xti_err err = {0};
    if (cuda_skipped() || no_double())
        return;
    ck_assert_msg(!xti_cuda_target(0, &t, &err), "%s", err.e.message);
    for (int again = 0; again < 2; again++) { /* a device is asked once */
        ck_assert_int_eq(t.sm, 90);
        ck_assert_int_eq(t.n_sms, 132);
        fail_driver("cuDeviceGetAttribute");
        ck_assert_msg(!xti_cuda_target(0, &t, &err), "%s", err.e.message);
    }
    fail_driver("");
    prepare(&r);
    for (size_t shift = 0; shift < 4; shift += 2) {
        const void *src = r.src + shift;
        memset(r.dst, 0xa5, 8192);
        ck_assert_msg(!load_and_launch(&r, shift, &err), "%s", err.e.message);
        xti_map_eval(&r.made.map, r.want, &src);
        ck_assert_mem_eq(r.dst + shift, r.want, r.dst_bytes);
        for (size_t i = 0; i < 8192; i++)
            ck_assert(r.dst[i] == 0xa5 || (i >= shift && i < shift + r.dst_bytes));
    }
    int (*get_current)(void **) = (int (*)(void **))double_symbol("cuCtxGetCurrent");
    void *ctx = &ctx;
    ck_assert_int_eq(get_current(&ctx), 0);
    ck_assert_ptr_null(ctx);
    release(&r);
}
END_TEST

START_TEST(every_failing_driver_call_is_an_error_and_leaks_nothing)
{
    /* The first two are called until they succeed once. */
    static const struct {
        const char *call;
        xt_status status;
    } calls[] = {{"cuInit", XT_ENODEVICE},
                 {"cuDeviceGetCount", XT_ENODEVICE},
                 {"cuCtxGetCurrent", XT_EDEVICE},
                 {"cuDeviceGet", XT_ENODEVICE},
                 {"cuDevicePrimaryCtxRetain", XT_EDEVICE},
                 {"cuCtxPushCurrent_v2", XT_EDEVICE},
                 {"cuModuleLoadData", XT_EDEVICE},
                 {"cuModuleGetFunction", XT_EDEVICE},
                 {"cuFuncGetAttribute", XT_EDEVICE},
                 {"cuLaunchKernel", XT_EDEVICE},
                 {"cuModuleUnload", XT_OK},
                 {"cuCtxGetId", XT_OK}};
    struct device_run r;
    if (cuda_skipped() || no_double())
        return;
    prepare(&r);
    int64_t live = xti_live_allocations();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct xti_err err = {0};
        fail_driver(calls[i].call);
        xt_status s = load_and_launch(&r, 0, &err);
        ck_assert_msg(s == calls[i].status, "%s: %s, %s", calls[i].call, xt_status_name(s), err.e.message);
        ck_assert_int_eq(err.e.status, s);
        ck_assert_int_eq(xti_live_allocations(), live);
    }
    fail_driver("");
    release(&r);
}
END_TEST

START_TEST(a_destroyed_context_is_an_error_and_no_crash)
{
    struct device_run r;
    struct xti_err err = {0};
    const struct xti_cu_api *api;
    void *ctx = NULL;
    if (cuda_skipped() || no_double())
        return;
    prepare(&r);
    ck_assert_msg(!xti_driver_get(&api, &err), "%s", err.e.message);
    int (*create)(void **, unsigned, int) = (int (*)(void **, unsigned, int))double_symbol("cuCtxCreate_v2");
    int (*destroy)(void *) = (int (*)(void *))double_symbol("cuCtxDestroy_v2");
    const void *src = r.src;
    ck_assert_int_eq(create(&ctx, 0, 0), 0);
    ck_assert_msg(!xti_module_load(&r.code, "xt_test_00000000", 0, &r.module, &err), "%s", err.e.message);
    ck_assert_msg(!xti_cuda_launch(&r.made.plan, XTI_TIER_EXACT, r.module, r.dst, &src, NULL, &err), "%s",
                  err.e.message);
    ck_assert_int_eq(destroy(ctx), 0);
    ck_assert_int_eq(xti_cuda_launch(&r.made.plan, XTI_TIER_EXACT, r.module, r.dst, &src, NULL, &err),
                     XT_ENODEVICE);
    xti_module_free(r.module);
    release(&r);
}
END_TEST

START_TEST(a_forked_child_is_told_so)
{
    struct device_run r;
    struct xti_err err = {0};
    if (cuda_skipped() || no_double())
        return;
    prepare(&r);
    ck_assert_msg(!xti_module_load(&r.code, "xt_test_00000000", 0, &r.module, &err), "%s", err.e.message);
    pid_t child = fork_child();
    if (child == 0) {
        const void *src = r.src;
        xt_status s = xti_cuda_launch(&r.made.plan, XTI_TIER_EXACT, r.module, r.dst, &src, NULL, &err);
        xti_module_free(r.module);
        const struct xti_cu_api *api;
        struct xti_err again = {0};
        _exit(s == XT_EFORKED && xti_driver_get(&api, &again) == XT_EFORKED ? 0 : 1);
    }
    ck_assert_int_eq(end_of(child), 0);
    xti_module_free(r.module);
    release(&r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("driver");
    TCase *c = tcase_create("driver");
    tcase_set_timeout(c, 1200);
    tcase_add_test(c, a_missing_nvrtc_says_where_to_point);
    tcase_add_test(c, a_source_that_does_not_compile_gives_the_first_error_of_the_log);
    tcase_add_test(c, one_compile_gives_ptx_and_cubin_and_the_same_bytes_again);
    tcase_add_test(c, a_child_forked_during_a_compile_compiles);
    tcase_add_test(c, a_compile_survives_every_failing_allocation);
    tcase_add_test(c, an_override_takes_the_place_of_the_source);
    tcase_add_test(c, an_override_that_is_no_source_is_told);
    tcase_add_test(c, a_missing_driver_is_no_device);
    tcase_add_test(c, an_architecture_is_named_in_four_ways_and_no_other);
    tcase_add_test(c, a_kernel_loads_and_launches_through_the_driver);
    tcase_add_test(c, every_failing_driver_call_is_an_error_and_leaks_nothing);
    tcase_add_test(c, a_destroyed_context_is_an_error_and_no_crash);
    tcase_add_test(c, a_forked_child_is_told_so);
    suite_add_tcase(s, c);
    return run_suite(s);
}
