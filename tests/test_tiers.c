/* test_tiers.c: a CUDA kernel runs at once by its structure's code and later by its own: what is compiled
 * when, what xt_kernel_wait promises, and that nothing breaks when threads, contexts and kernels come and go
 * meanwhile. On the driver double, with an NVRTC that is slow and counts; without them, or without NVRTC,
 * nothing is tested, and said so. Also meant for SAN=thread and SAN=address. */
#include <pthread.h>
#include <stdatomic.h>

#include "api/api.h"
#include "cuda/cubin.h"
#include "support/child.h"
#include "support/cuda_program.h"
#include "support/scratch.h"

char now_running[2048];

static const char line[] = "x: f32[40,60]; x.permute(1,0)";
static char dir[SCRATCH_PATH]; /* of the disk cache, a new one a test */

static void setup(void)
{
    make_scratch(dir, "tiers");
    setenv("XT_DOUBLE_NVRTC_MS", "40", 1);
}
static void teardown(void) { remove_scratch(dir); }

static struct xt_kernel *compile_in(struct xt_ctx *ctx, const char *text, xt_mode mode)
{
    struct xt_compile_options o = {.size = sizeof o, .backend = XT_CUDA, .mode = mode};
    struct xt_graph *g = parse_line(text);
    struct xt_kernel *k = NULL;
    ck_assert_msg(!xt_compile(ctx, g, &o, &k), "%s: %s", text, xt_last_error()->message);
    xt_graph_free(g);
    return k;
}

static bool is_exact(const struct xt_kernel *k) { return atomic_load(&k->now)->tier == XTI_TIER_EXACT; }

static int compiles(void) { return double_count("double_compiles"); }

START_TEST(modes_give_the_tier_that_they_promise)
{
    struct xt_ctx *ctx = cuda_context("");
    struct copy c = copy_of(line);
    static const xt_mode modes[] = {XT_GENERIC, XT_ASYNC, XT_SYNC, XT_MODE_AUTO};
    for (int i = 0; i < 4; i++) {
        struct xt_kernel *k = compile_in(ctx, line, modes[i]);
        ck_assert_int_eq(is_exact(k), i >= 2); /* the last finds the one made exact by XT_SYNC */
        ck_assert_int_eq(compiles(), i < 2 ? 1 : 2);
        expect(XT_OK, run_copy(k, &c, NULL));
        ck_assert(copied(&c));
        expect(XT_OK, xt_run_host(k, c.dst, (const void *[]){c.src}));
        ck_assert(copied(&c));
        if (modes[i] == XT_GENERIC)
            expect(XT_OK, xt_kernel_wait(k)); /* nothing better is to come */
        xt_kernel_free(k);
    }
    xt_ctx_free(ctx);
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = "", .mode = XT_SYNC};
    expect(XT_OK, xt_ctx_new(&o, &ctx));
    struct xt_kernel *k = compile_in(ctx, line, XT_MODE_AUTO);
    ck_assert(is_exact(k));
    ck_assert_int_eq(compiles(), 3); /* and no structure */
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    free_copy(&c);
}
END_TEST

START_TEST(the_environment_and_options_name_a_mode_or_are_refused)
{
    struct xt_ctx *ctx;
    struct xt_graph *g = parse_line(line);
    struct xt_kernel *k;
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .mode = (xt_mode)9};
    struct xt_compile_options co = {.size = sizeof co, .mode = (xt_mode)-1};
    expect(XT_EINVAL, xt_ctx_new(&o, &ctx));
    setenv("XT_JIT", "later", 1);
    expect(XT_EINVAL, xt_ctx_new(NULL, &ctx));
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "XT_JIT"));
    setenv("XT_JIT", "generic", 1);
    ctx = cuda_context("");
    expect(XT_EINVAL, xt_compile(ctx, g, &co, &k));
    expect(XT_OK, xt_compile(ctx, g, NULL, &k));
    ck_assert(!is_exact(k));
    for (int i = 0; i < XTI_MANY_USES + 3; i++)
        xti_better_use(k, &k->better);
    ck_assert_int_eq(compiles(), 1);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    xt_graph_free(g);
}
END_TEST

START_TEST(a_new_length_of_a_known_structure_compiles_nothing)
{
    struct xt_ctx *ctx = cuda_context("");
    char text[96];
    struct xti_str first = {0};
    int same = 0;
    for (int n = 97; n < 130; n++) {
        snprintf(text, sizeof text, "x: f16[%d,8,64]; x.permute(1,0,2)", n);
        struct copy c = copy_of(text);
        struct xt_kernel *k = compile_in(ctx, text, XT_ASYNC);
        expect(XT_OK, run_copy(k, &c, NULL));
        ck_assert_msg(copied(&c), "%s", text);
        if (n == 97)
            ck_assert(!xti_cuda_structure(k->cuda, &first, NULL));
        same += first.n == k->cuda->structure.n && !memcmp(first.s, k->cuda->structure.s, first.n);
        xt_kernel_free(k);
        free_copy(&c);
    }
    ck_assert_int_ge(same, 30);
    ck_assert_int_le(compiles(), 2);
    xti_str_free(&first);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(waiting_gives_the_exact_kernel_and_the_copy_stays_right)
{
    struct xt_ctx *ctx = cuda_context(dir);
    struct copy c = copy_of(line);
    struct xt_kernel *k = compile_in(ctx, line, XT_ASYNC);
    const void *before, *after;
    size_t n;
    expect(XT_OK, xt_kernel_artifact(k, XT_SOURCE, &before, &n));
    ck_assert(!is_exact(k));
    expect(XT_OK, xt_kernel_wait(k));
    ck_assert(is_exact(k));
    expect(XT_OK, run_copy(k, &c, NULL));
    ck_assert(copied(&c));
    expect(XT_OK, xt_kernel_artifact(k, XT_SOURCE, &after, &n));
    ck_assert_str_ne(before, after); /* both live as long as the kernel */
    expect(XT_OK, xt_kernel_artifact(k, XT_LAUNCH, &after, &n));
    ck_assert_int_eq(compiles(), 2);
    expect(XT_OK, xt_kernel_wait(k));
    ck_assert_int_eq(compiles(), 2);
    xt_ctx_free(ctx);
    expect(XT_OK, xt_kernel_wait(k)); /* the best is there */
    xt_kernel_free(k);
    ctx = cuda_context(dir); /* both tiers are on disk */
    k = compile_in(ctx, line, XT_ASYNC);
    expect(XT_OK, xt_kernel_wait(k));
    ck_assert(is_exact(k) && compiles() == 2);
    ck_assert_str_eq(xti_kernel_origin(k), "disk");
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    struct xt_ctx *cpu = new_ctx(XT_CPU, 1);
    k = compile_line(cpu, line);
    expect(XT_OK, xt_kernel_wait(k));
    expect(XT_EINVAL, xt_kernel_wait(NULL));
    xt_kernel_free(k);
    xt_ctx_free(cpu);
    free_copy(&c);
}
END_TEST

/* Runs until the exact code is there; true: it came within 20 s. */
static bool comes(struct xt_kernel *k)
{
    for (int i = 0; i < 2000 && !is_exact(k); i++)
        usleep(10000);
    return is_exact(k);
}

START_TEST(what_is_used_often_is_made_exact_in_the_background)
{
    struct xt_ctx *ctx = cuda_context("");
    struct copy c = copy_of("x: u8[6,4]; x.permute(1,0)");
    struct xt_kernel *k = compile_in(ctx, "x: u8[6,4]; x.permute(1,0)", XT_ASYNC), *again;
    for (int i = 1; i < XTI_MANY_USES; i++) {
        if (i % 2) {
            expect(XT_OK, run_copy(k, &c, NULL));
        } else {
            again = compile_in(ctx, "x: u8[6,4]; x.permute(1,0)", XT_ASYNC);
            ck_assert_ptr_eq(again, k);
            xt_kernel_free(again);
        }
    }
    usleep(300000);
    ck_assert(!is_exact(k) && compiles() == 1);
    expect(XT_OK, run_copy(k, &c, NULL)); /* the last of many: does not wait */
    ck_assert(comes(k));
    ck_assert_int_eq(compiles(), 2);
    expect(XT_OK, run_copy(k, &c, NULL));
    ck_assert(copied(&c));
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    free_copy(&c);
}
END_TEST

/* A context that the program made is not touched by a thread of xt's: its next caller loads. */
START_TEST(code_for_a_callers_context_is_loaded_by_a_caller)
{
    struct xt_ctx *ctx = cuda_context("");
    struct copy c = copy_of(line);
    void *own, *unused;
    ck_assert(!cu()->cuInit(0) && !cu()->cuCtxCreate_v2(&own, 0, 0));
    struct xt_kernel *k = compile_in(ctx, line, XT_ASYNC);
    xti_better_want(k, false);
    for (int i = 0; i < 2000 && atomic_load(&k->better.state) != XTI_MADE; i++)
        usleep(10000);
    ck_assert_int_eq(atomic_load(&k->better.state), XTI_MADE);
    ck_assert(!is_exact(k));
    expect(XT_OK, run_copy(k, &c, NULL));
    ck_assert(copied(&c));
    struct xt_kernel *again = compile_in(ctx, line, XT_ASYNC);
    ck_assert(again == k && is_exact(k) && compiles() == 2);
    expect(XT_OK, run_copy(k, &c, NULL));
    ck_assert(copied(&c));
    xt_kernel_free(again);
    xt_kernel_free(k);
    k = compile_in(ctx, "x: f32[41,60]; x.permute(1,0)", XT_ASYNC);
    ck_assert(!cu()->cuCtxPopCurrent_v2(&unused));
    expect(XT_ENODEVICE, xt_kernel_wait(k));
    ck_assert(!cu()->cuCtxPushCurrent_v2(own));
    expect(XT_OK, xt_kernel_wait(k));
    ck_assert(is_exact(k));
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    ck_assert_int_eq(double_count("double_modules"), 0);
    free_copy(&c);
}
END_TEST

START_TEST(an_exact_kernel_that_cannot_be_made_leaves_the_other_running)
{
    struct xt_ctx *ctx = cuda_context("");
    struct copy c = copy_of(line);
    struct xt_kernel *k = compile_in(ctx, line, XT_ASYNC);
    fail_driver("cuModuleLoadData");
    expect(XT_EDEVICE, xt_kernel_wait(k));
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "cuModuleLoadData"));
    fail_driver("");
    ck_assert(!is_exact(k));
    expect(XT_OK, run_copy(k, &c, NULL));
    ck_assert(copied(&c));
    expect(XT_OK, xt_kernel_wait(k)); /* asks again */
    ck_assert(is_exact(k));
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    free_copy(&c);
}
END_TEST

/* Kernel and context go while the thread compiles, in every order. */
START_TEST(kernels_and_contexts_may_go_during_a_compile)
{
    setenv("XT_DOUBLE_NVRTC_MS", "150", 1);
    struct copy c = copy_of(line);
    int64_t live = xti_live_allocations();
    for (int order = 0; order < 4; order++) {
        struct xt_ctx *ctx = cuda_context("");
        struct xt_kernel *k = compile_in(ctx, line, XT_ASYNC), *more[3];
        for (int i = 0; i < 3; i++) {
            char text[64];
            snprintf(text, sizeof text, "x: f32[%d,60]; x.permute(1,0)", 50 + i);
            more[i] = compile_in(ctx, text, XT_ASYNC);
            xti_better_want(more[i], false);
        }
        xti_better_want(k, false);
        if (order & 1)
            usleep(60000); /* the thread is in NVRTC */
        if (order & 2) {
            xt_kernel_free(k);
            xt_ctx_free(ctx);
        } else {
            xt_ctx_free(ctx);
            expect(XT_OK, run_copy(k, &c, NULL));
            ck_assert(copied(&c));
            xt_status s = xt_kernel_wait(k);
            ck_assert(s == XT_OK ? is_exact(k) : s == XT_EINVAL);
            for (int i = 0; i < XTI_MANY_USES + 2; i++)
                xti_better_use(k, &k->better);
            xt_kernel_free(k);
        }
        for (int i = 0; i < 3; i++)
            xt_kernel_free(more[i]);
        ck_assert_int_eq(xti_live_allocations(), live);
        ck_assert_int_eq(double_count("double_modules"), 0);
    }
    ck_assert_int_eq(double_count("double_hazards"), 0);
    free_copy(&c);
}
END_TEST

struct runner {
    pthread_t thread;
    struct xt_kernel *k;
    struct xt_ctx *ctx;
    atomic_bool *stop;
    int runs;
    bool ok;
};

static void *run_for_ever(void *arg)
{
    struct runner *r = arg;
    unsigned char src[24], dst[24];
    struct xt_graph *g = NULL;
    r->ok = !xt_parse("x: u8[6,4]; x.permute(1,0)", 0, NULL, &g);
    for (int i = 0; i < 24; i++)
        src[i] = (unsigned char)(i * 7 + 1);
    while (r->ok && !atomic_load(r->stop)) {
        struct xt_kernel *k = NULL;
        memset(dst, 0, sizeof dst);
        r->ok = !xt_run(r->k, dst, (const void *[]){src}, NULL);
        for (int i = 0; i < 24 && r->ok; i++)
            r->ok = dst[i] == src[i % 6 * 4 + i / 6];
        if (r->ok && ++r->runs % 16 == 0)
            r->ok = !xt_compile(r->ctx, g, NULL, &k) && k == r->k;
        xt_kernel_free(k);
    }
    xt_graph_free(g);
    return NULL;
}

START_TEST(runs_of_many_threads_see_one_code_or_the_other_whole)
{
    struct runner r[4];
    atomic_bool stop = false;
    struct xt_ctx *ctx = cuda_context("");
    struct xt_kernel *k = compile_in(ctx, "x: u8[6,4]; x.permute(1,0)", XT_ASYNC);
    for (int i = 0; i < 4; i++) {
        r[i] = (struct runner){.k = k, .ctx = ctx, .stop = &stop};
        ck_assert_int_eq(pthread_create(&r[i].thread, NULL, run_for_ever, &r[i]), 0);
    }
    ck_assert(comes(k));
    usleep(50000);
    expect(XT_OK, xt_kernel_wait(k));
    atomic_store(&stop, true);
    for (int i = 0; i < 4; i++) {
        pthread_join(r[i].thread, NULL);
        ck_assert(r[i].ok && r[i].runs > 0);
    }
    ck_assert_int_eq(compiles(), 2);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

static void *wait_for_kernel(void *arg)
{
    struct runner *r = arg;
    r->ok = !xt_kernel_wait(r->k) && is_exact(r->k);
    return NULL;
}

START_TEST(threads_that_wait_for_one_kernel_share_its_compile)
{
    struct runner r[4];
    struct xt_ctx *ctx = cuda_context("");
    struct xt_kernel *k = compile_in(ctx, line, XT_ASYNC);
    for (int i = 0; i < 4; i++) {
        r[i].k = k;
        ck_assert_int_eq(pthread_create(&r[i].thread, NULL, wait_for_kernel, &r[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(r[i].thread, NULL);
        ck_assert(r[i].ok);
    }
    ck_assert_int_eq(compiles(), 2);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(a_child_forked_meanwhile_frees_all_and_waits_for_nothing)
{
    struct xt_ctx *ctx = cuda_context("");
    struct xt_kernel *k = compile_in(ctx, line, XT_ASYNC);
    xti_better_want(k, false);
    usleep(10000);
    pid_t child = fork_child(); /* waits for the compile */
    if (!child) {
        xt_status s = xt_kernel_wait(k);
        xt_kernel_free(k);
        xt_ctx_free(ctx);
        _exit(s == XT_EFORKED ? 0 : 1);
    }
    ck_assert_int_eq(end_of(child), 0);
    expect(XT_OK, xt_kernel_wait(k));
    ck_assert(is_exact(k));
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

/* ---- with a pack that has the kernel that runs anything */

static char pack[SCRATCH_PATH + 32];
/* of one structure */
static const char short_line[] = "x: f16[97,8,64]; x.permute(1,0,2)",
                  long_line[] = "x: f16[98,8,64]; x.permute(1,0,2)";

static struct xt_ctx *context_with_pack(void)
{
    struct xt_ctx *ctx = cuda_context("");
    struct xt_graph *g = parse_line("x: u8[5]; x");
    const char *arch = "sm_90";
    snprintf(pack, sizeof pack, "%s/any.xtpack", dir);
    expect(XT_OK, xt_pack(ctx, 1, (const struct xt_graph *const[]){g}, 1, &arch, pack));
    xt_graph_free(g);
    xt_ctx_free(ctx);
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = "", .pack = pack};
    expect(XT_OK, xt_ctx_new(&o, &ctx));
    return ctx;
}

static enum xti_cuda_tier tier_of(const struct xt_kernel *k) { return atomic_load(&k->now)->tier; }

static bool reaches(struct xt_kernel *k, enum xti_cuda_tier tier)
{
    for (int i = 0; i < 2000 && tier_of(k) != tier; i++)
        usleep(10000);
    return tier_of(k) == tier;
}

/* Does explain name the tier that runs, and the registers that its cubin has? */
static bool explained(const struct xt_kernel *k, const char *tier)
{
    char text[16384], want[160];
    const struct xti_shared_code *c = atomic_load(&k->now);
    struct xti_cubin_entry e = {0};
    snprintf(want, sizeof want, "%s%s", c->name, c->tier == XTI_TIER_ANY ? "_16" : "");
    if (!xti_cubin_read(c->code.cubin, c->code.cubin_bytes, want, &e) || e.registers < 8)
        return false;
    snprintf(want, sizeof want, "  code      %s tier, %s: %d registers", tier, c->name, e.registers);
    expect(XT_OK, xt_explain(k, 0, text, sizeof text, NULL));
    bool ok = strstr(text, want);
    snprintf(want, sizeof want, "\"registers\": %d, ", e.registers);
    expect(XT_OK, xt_explain(k, XT_JSON, text, sizeof text, NULL));
    return ok && strstr(text, want);
}

START_TEST(an_unseen_structure_runs_at_once_and_gets_better_twice)
{
    setenv("XT_DOUBLE_NVRTC_MS", "300", 1);
    struct xt_ctx *ctx = context_with_pack();
    struct copy c = copy_of(short_line);
    int before = compiles();
    struct xt_kernel *k = compile_in(ctx, short_line, XT_ASYNC);
    ck_assert_int_eq(tier_of(k), XTI_TIER_ANY); /* its own takes 300 ms */
    ck_assert_str_eq(xti_kernel_origin(k), "pack");
    ck_assert(explained(k, "any"));
    expect(XT_OK, run_copy(k, &c, NULL));
    ck_assert(copied(&c));
    struct xt_kernel *other = compile_in(ctx, long_line, XT_ASYNC); /* does not wait */
    ck_assert_int_eq(tier_of(other), XTI_TIER_ANY);
    ck_assert(reaches(k, XTI_TIER_STRUCTURE) && reaches(other, XTI_TIER_STRUCTURE));
    ck_assert_int_eq(compiles(), before + 1);
    ck_assert(explained(k, "structure"));
    expect(XT_OK, run_copy(k, &c, NULL));
    ck_assert(copied(&c));
    for (int i = 0; i < XTI_MANY_USES; i++)
        xti_better_use(k, &k->better);
    ck_assert(reaches(k, XTI_TIER_EXACT));
    expect(XT_OK, run_copy(k, &c, NULL));
    ck_assert(copied(&c));
    ck_assert_int_eq(compiles(), before + 2);
    ck_assert(explained(k, "exact"));
    ck_assert_int_eq(tier_of(other), XTI_TIER_STRUCTURE);
    expect(XT_OK, xt_kernel_wait(other));
    ck_assert_int_eq(tier_of(other), XTI_TIER_EXACT);
    xt_kernel_free(other);
    xt_kernel_free(k);
    k = compile_in(ctx, "x: u8[9]; y: u8[7]; concat(0, x, y)", XT_ASYNC);
    expect(XT_OK, xt_kernel_wait(k)); /* from the one that runs anything to the exact one */
    ck_assert(is_exact(k));
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    ck_assert_int_eq(double_count("double_modules"), 0);
    free_copy(&c);
}
END_TEST

START_TEST(without_a_pack_the_second_unseen_structure_brings_what_runs_anything)
{
    static const char *const lines[] = {short_line, "x: u8[9,7]; x.flip(1)", "x: f32[40,30]; x.T", long_line};
    static const enum xti_cuda_tier want[] = {XTI_TIER_STRUCTURE, XTI_TIER_ANY, XTI_TIER_ANY,
                                              XTI_TIER_STRUCTURE};
    struct xt_ctx *ctx = cuda_context("");
    struct xt_kernel *k[4];
    for (int i = 0; i < 4; i++) {
        struct copy c = copy_of(lines[i]);
        k[i] = compile_in(ctx, lines[i], XT_ASYNC);
        ck_assert_int_eq(tier_of(k[i]), want[i]);
        expect(XT_OK, run_copy(k[i], &c, NULL));
        ck_assert(copied(&c));
        free_copy(&c);
        setenv("XT_DOUBLE_NVRTC_MS", "300", 1); /* so that nothing better is there at once */
    }
    for (int i = 0; i < 4; i++) {
        ck_assert(reaches(k[i], XTI_TIER_STRUCTURE));
        xt_kernel_free(k[i]);
    }
    ck_assert_int_eq(compiles(), 4); /* three structures, and what runs anything */
    xt_ctx_free(ctx);
    ck_assert_int_eq(double_count("double_modules"), 0);
}
END_TEST

START_TEST(modes_that_wait_take_nothing_less)
{
    struct xt_ctx *ctx = context_with_pack();
    for (xt_mode mode = XT_SYNC; mode <= XT_GENERIC; mode += 2) {
        struct xt_kernel *k = compile_in(ctx, line, mode);
        ck_assert_int_eq(tier_of(k), mode == XT_SYNC ? XTI_TIER_EXACT : XTI_TIER_STRUCTURE);
        xt_kernel_free(k);
    }
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(in_a_callers_context_each_step_is_loaded_by_a_caller)
{
    struct xt_ctx *ctx = context_with_pack();
    struct copy c = copy_of(short_line);
    void *own;
    ck_assert(!cu()->cuInit(0) && !cu()->cuCtxCreate_v2(&own, 0, 0));
    struct xt_kernel *k = compile_in(ctx, short_line, XT_ASYNC);
    ck_assert_int_eq(tier_of(k), XTI_TIER_ANY);
    for (int i = 0; i < 2000 && atomic_load(&k->better.state) != XTI_MADE; i++)
        usleep(10000);
    ck_assert_int_eq(tier_of(k), XTI_TIER_ANY);
    int before = compiles();
    struct xt_kernel *other = compile_in(ctx, long_line, XT_ASYNC);
    ck_assert_int_eq(tier_of(other), XTI_TIER_STRUCTURE); /* what was made is loaded */
    xt_kernel_free(compile_in(ctx, short_line, XT_ASYNC));
    ck_assert_int_eq(tier_of(k), XTI_TIER_STRUCTURE);
    ck_assert_int_eq(compiles(), before);
    expect(XT_OK, run_copy(k, &c, NULL));
    ck_assert(copied(&c));
    expect(XT_OK, xt_kernel_wait(k));
    ck_assert(is_exact(k));
    expect(XT_OK, run_copy(k, &c, NULL));
    ck_assert(copied(&c));
    xt_kernel_free(k);
    xt_kernel_free(other);
    xt_ctx_free(ctx);
    ck_assert_int_eq(double_count("double_modules"), 0);
    free_copy(&c);
}
END_TEST

/* A chain whose numbers are too many to be parameters has the exact tier alone. */
START_TEST(exact_code_made_for_a_callers_context_serves_its_next_kernel)
{
    static const char *const same[] = {
        "x: u8[3,3,3,3,3,3,3]; x.roll(1,0).roll(1,1).roll(1,2).roll(1,3).roll(1,4).roll(1,5).roll(1,6)",
        "x: u8[3,3,3,3,3,3,3]; x.roll(1,6).roll(1,5).roll(1,4).roll(1,3).roll(1,2).roll(1,1).roll(1,0)"};
    void *own;
    ck_assert(!cu()->cuInit(0) && !cu()->cuCtxCreate_v2(&own, 0, 0));
    int64_t live = xti_live_allocations();
    struct xt_ctx *ctx = context_with_pack();
    struct xt_kernel *k = compile_in(ctx, same[0], XT_ASYNC);
    ck_assert_uint_eq(k->cuda->structure.n, 0);
    ck_assert_int_eq(tier_of(k), XTI_TIER_ANY);
    for (int i = 0; i < 2000 && atomic_load(&k->better.state) != XTI_MADE; i++)
        usleep(10000);
    int before = compiles();
    struct xt_kernel *other = compile_in(ctx, same[1], XT_ASYNC);
    ck_assert(other != k && is_exact(other));
    ck_assert_int_eq(compiles(), before);
    xt_kernel_free(other);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    ck_assert_int_eq(xti_live_allocations(), live);
}
END_TEST

int main(void)
{
    const char *why = cuda_prove_unable();
    if (!why && (!use_double() || !use_nvrtc_double()))
        why = "the doubles of the driver and of NVRTC are not there";
    if (why)
        return skip_suite("test_tiers", why);
    Suite *s = suite_create("tiers");
    TCase *c = tcase_create("tiers");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, modes_give_the_tier_that_they_promise);
    tcase_add_test(c, the_environment_and_options_name_a_mode_or_are_refused);
    tcase_add_test(c, a_new_length_of_a_known_structure_compiles_nothing);
    tcase_add_test(c, waiting_gives_the_exact_kernel_and_the_copy_stays_right);
    tcase_add_test(c, what_is_used_often_is_made_exact_in_the_background);
    tcase_add_test(c, code_for_a_callers_context_is_loaded_by_a_caller);
    tcase_add_test(c, an_exact_kernel_that_cannot_be_made_leaves_the_other_running);
    tcase_add_test(c, kernels_and_contexts_may_go_during_a_compile);
    tcase_add_test(c, runs_of_many_threads_see_one_code_or_the_other_whole);
    tcase_add_test(c, threads_that_wait_for_one_kernel_share_its_compile);
    tcase_add_test(c, a_child_forked_meanwhile_frees_all_and_waits_for_nothing);
    tcase_add_test(c, an_unseen_structure_runs_at_once_and_gets_better_twice);
    tcase_add_test(c, without_a_pack_the_second_unseen_structure_brings_what_runs_anything);
    tcase_add_test(c, modes_that_wait_take_nothing_less);
    tcase_add_test(c, in_a_callers_context_each_step_is_loaded_by_a_caller);
    tcase_add_test(c, exact_code_made_for_a_callers_context_serves_its_next_kernel);
    suite_add_tcase(s, c);
    return run_suite(s);
}
