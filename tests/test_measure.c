/* test_measure.c: measuring changes which plan runs and nothing else, and what was found outlives the
 * process. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/measure.h"
#include "base/mem.h"
#include "bench/bench.h"
#include "support/api.h"
#include "support/child.h"
#include "support/scratch.h"

static struct bench_workload *work;
static int n_work;
static char root[SCRATCH_PATH], dir[96];
static const char *const line = "x: f32[120,150]; x.T";
static const struct xt_compile_options asked = {.size = sizeof asked, .backend = XT_CPU, .measure = 1};

static void start(void)
{
    make_scratch(root, "measure");
    snprintf(dir, sizeof dir, "%s/xt", root);
    unsetenv("XT_MEASURE");
}

static void finish(void) { remove_scratch(root); }

static struct xt_ctx *ctx_in(const char *cache_dir)
{
    struct xt_options o = {.size = sizeof o, .backend = XT_CPU, .threads = 1, .cache_dir = cache_dir};
    struct xt_ctx *ctx;
    expect(XT_OK, xt_ctx_new(&o, &ctx));
    return ctx;
}

static struct xt_kernel *compile_with(struct xt_ctx *ctx, const char *text,
                                      const struct xt_compile_options *opt)
{
    struct xt_graph *g = parse_line(text);
    struct xt_kernel *k;
    expect(XT_OK, xt_compile(ctx, g, opt, &k));
    xt_graph_free(g);
    return k;
}

static bool is_measured(const struct xt_kernel *k)
{
    char text[8192];
    expect(XT_OK, xt_explain(k, 0, text, sizeof text, NULL));
    ck_assert_ptr_nonnull(strstr(text, "  choice    "));
    return strstr(text, "; measured: of ");
}

static bool compiles_measured(struct xt_ctx *ctx, const char *text, const struct xt_compile_options *opt)
{
    struct xt_kernel *k = compile_with(ctx, text, opt);
    bool measured = is_measured(k);
    xt_kernel_free(k);
    return measured;
}

/* ------------------------------------------------------------------------------------------------- measuring
 */

START_TEST(a_measured_kernel_copies_what_the_reference_does)
{
    struct xt_ctx *ctx = ctx_in(""), *plain = new_ctx(XT_REF, 1);
    struct xt_kernel *k = compile_with(ctx, work[_i].small, &asked),
                     *ref = compile_line(plain, work[_i].small);
    struct xt_kernel_info info = {.size = sizeof info};
    ck_assert(is_measured(k));
    expect(XT_OK, xt_kernel_get(k, &info));
    void *src[64] = {0};
    for (int i = 0; xt_src_min_bytes(k, i) >= 0; i++) {
        ck_assert_ptr_nonnull(src[i] = malloc((size_t)xt_src_min_bytes(k, i) + 1));
        fill_pattern(src[i], (size_t)xt_src_min_bytes(k, i), (uint64_t)i);
    }
    size_t bytes = (size_t)info.dst_min_bytes;
    unsigned char *a = malloc(bytes), *b = malloc(bytes);
    ck_assert(a && b);
    memset(a, 0xa5, bytes);
    memset(b, 0xa5, bytes);
    expect(XT_OK, xt_run(k, a, (const void *const *)src, NULL));
    expect(XT_OK, xt_run(ref, b, (const void *const *)src, NULL));
    ck_assert_msg(!memcmp(a, b, bytes), "%s", work[_i].small);
    for (int i = 0; i < 64; i++)
        free(src[i]);
    free(a);
    free(b);
    xt_kernel_free(k);
    xt_kernel_free(ref);
    xt_ctx_free(ctx);
    xt_ctx_free(plain);
}
END_TEST

START_TEST(nothing_is_measured_unless_asked_for)
{
    struct xt_ctx *ctx = ctx_in(dir);
    struct xt_cache_stats stats = {.size = sizeof stats};
    ck_assert(!compiles_measured(ctx, line, NULL));
    expect(XT_OK, xt_cache_get(ctx, &stats));
    ck_assert_int_eq(stats.entries, 0);
    ck_assert(access(dir, F_OK));
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(the_environment_asks_as_well)
{
    setenv("XT_MEASURE", "1", 1);
    struct xt_ctx *ctx = ctx_in("");
    unsetenv("XT_MEASURE");
    const struct xt_compile_options never = {.size = sizeof never, .backend = XT_CPU, .measure = -1};
    ck_assert(!compiles_measured(ctx, line, &never));
    ck_assert(compiles_measured(ctx, line, NULL));
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(an_earlier_compile_without_measuring_does_not_hide_the_measured_one)
{
    struct xt_ctx *ctx = ctx_in("");
    struct xt_kernel *before = compile_with(ctx, line, NULL);
    ck_assert(!is_measured(before));
    ck_assert(compiles_measured(ctx, line, &asked));
    xt_kernel_free(before);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(without_a_cache_directory_the_context_remembers)
{
    struct xt_ctx *ctx = ctx_in("");
    struct xt_cache_stats stats = {.size = sizeof stats};
    ck_assert(compiles_measured(ctx, line, &asked));
    ck_assert(compiles_measured(ctx, "x: f32[120,150]; x.flip(0).flip(0).permute(1,0)", NULL));
    expect(XT_OK, xt_cache_get(ctx, &stats));
    ck_assert_int_eq(stats.stored + stats.store_failed, 0);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(what_was_measured_is_known_in_every_way_to_write_it)
{
    static const char *const same[] = {
        "x: f32[121,150,2]; x.permute(1,0,2)", "x: f64[121,150]; x.T", "x: i64[130,150]; x[4:125].T",
        "y: f64[9]; x: f64[121,150]; x.T", "x: f64[121,150]; x.T -> [150,121]:[121,1]+7"};
    enum { N = sizeof same / sizeof *same };
    for (int i = 0; i < N; i++) {
        struct xt_ctx *ctx = ctx_in("");
        ck_assert(compiles_measured(ctx, same[i], &asked));
        for (int j = 0; j < N; j++)
            ck_assert_msg(compiles_measured(ctx, same[j], NULL), "%s, measured as %s", same[j], same[i]);
        xt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(what_does_not_fit_the_machine_is_not_measured)
{
    struct xt_ctx *ctx = ctx_in("");
    ck_assert(!compiles_measured(ctx, "x: f32[1048576,1048576]; x.T", &asked));
    ck_assert(!compiles_measured(ctx, "x: f32[2]:[1000000000000]; x", &asked));
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(a_chain_that_copies_nothing_is_not_measured)
{
    struct xt_ctx *ctx = ctx_in("");
    struct xt_kernel *k = compile_with(ctx, "x: f32[4,6]; x[2:2]", &asked);
    ck_assert_double_eq(xt_kernel_estimate(k), 0);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

/* Whichever allocation fails: a kernel, measured or not, or XT_ENOMEM from a compile that needs it anyway. */
START_TEST(no_failed_allocation_fails_a_compile_that_measures)
{
    struct xt_ctx *ctx = ctx_in("");
    int64_t skipped = 0;
    bool measured = false;
    for (int n = 1; !measured; n++) {
        char text[64];
        snprintf(text, sizeof text, "x: u8[%d,40]; x.T",
                 40 + n); /* a map of its own: nothing is remembered */
        struct xt_graph *g = parse_line(text);
        struct xt_kernel *k = NULL;
        xti_fail_alloc(n, 0);
        xt_status s = xt_compile(ctx, g, &asked, &k);
        xti_fail_alloc(0, 0);
        ck_assert_msg(s == XT_OK || s == XT_ENOMEM, "allocation %d: %s", n, xt_status_name(s));
        if (!s) {
            measured = is_measured(k) && n > 200;
            skipped += !is_measured(k);
        }
        xt_kernel_free(k);
        xt_graph_free(g);
    }
    ck_assert_int_gt(skipped, 3);
    xt_ctx_free(ctx);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- on
 * disk */

START_TEST(another_process_finds_what_was_measured)
{
    pid_t child = fork_child();
    if (!child) {
        struct xt_ctx *ctx = ctx_in(dir);
        _exit(!compiles_measured(ctx, line, &asked));
    }
    ck_assert_int_eq(end_of(child), 0);
    struct xt_ctx *ctx = ctx_in(dir);
    struct xt_cache_stats stats = {.size = sizeof stats};
    ck_assert(compiles_measured(ctx, line, NULL));
    ck_assert(!compiles_measured(ctx, "x: f32[121,150]; x.T", NULL));
    expect(XT_OK, xt_cache_get(ctx, &stats));
    ck_assert_int_eq(stats.entries, 1);
    ck_assert_int_eq(stats.stored, 0);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(contexts_add_to_each_others_choices)
{
    static const char *const other[] = {"x: f32[60,50]; x.T", "x: f32[70,50]; x.T", "x: u8[300,3]; x.T"};
    struct xt_ctx *a = ctx_in(dir), *b = ctx_in(dir);
    for (int i = 0; i < 3; i++)
        ck_assert(compiles_measured(i % 2 ? a : b, other[i], &asked));
    struct xt_ctx *c = ctx_in(dir);
    for (int i = 0; i < 3; i++)
        ck_assert(compiles_measured(c, other[i], NULL));
    xt_ctx_free(a);
    xt_ctx_free(b);
    xt_ctx_free(c);
}
END_TEST

START_TEST(a_choice_for_other_threads_is_not_used)
{
    struct xt_options o = {.size = sizeof o, .backend = XT_CPU, .threads = 3, .cache_dir = dir};
    const char *large = "x: f32[500,600]; x.T";
    struct xt_ctx *one = ctx_in(dir), *three;
    ck_assert(compiles_measured(one, large, &asked));
    expect(XT_OK, xt_ctx_new(&o, &three));
    ck_assert(!compiles_measured(three, large, NULL));
    xt_ctx_free(one);
    xt_ctx_free(three);
}
END_TEST

static void keep_path(void *arg, const char *file, int64_t bytes, const char *what)
{
    ck_assert(strstr(what, "measured choices: 1, "));
    snprintf(arg, 256, "%s/k1/%s", dir, file);
}

START_TEST(a_damaged_entry_is_refused_and_the_model_decides)
{
    char path[256] = "";
    struct xt_ctx *ctx = ctx_in(dir);
    struct xt_cache_stats stats = {.size = sizeof stats};
    struct stat st;
    ck_assert(compiles_measured(ctx, line, &asked));
    expect(XT_OK, xt_cache_list(ctx, keep_path, path));
    xt_ctx_free(ctx);
    ck_assert(!stat(path, &st));
    for (off_t at = 0; at < st.st_size; at += 7) {
        unsigned char byte;
        int fd = open(path, O_RDWR);
        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        byte ^= 0x40;
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
        ctx = ctx_in(dir);
        ck_assert(!compiles_measured(ctx, line, NULL));
        expect(XT_OK, xt_cache_get(ctx, &stats));
        ck_assert_int_eq(stats.refused, 1);
        byte ^= 0x40;
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        xt_ctx_free(ctx);
    }
    ctx = ctx_in(dir);
    ck_assert(compiles_measured(ctx, line, NULL));
    xt_ctx_free(ctx);
}
END_TEST

static const struct xti_measured good = {.choice = {.stream = 1}, .tried = 3, .model_ns = 10, .chosen_ns = 9};

/* Stored by one, looked for by the next. */
static bool survives(const struct xti_measured *m)
{
    const struct xti_map_id id = {7, "digest"};
    struct xti_disk *d;
    struct xti_wisdom *w;
    struct xti_measured found;
    ck_assert(!xti_disk_open(dir, &d, NULL) && !xti_wisdom_open(d, &w, NULL));
    xti_wisdom_add(w, &id, m);
    ck_assert(xti_wisdom_find(w, &id, &found) && found.model_ns == m->model_ns);
    xti_wisdom_close(w);
    ck_assert(!xti_wisdom_open(d, &w, NULL));
    bool is = xti_wisdom_find(w, &id, &found);
    ck_assert(!is || (found.choice.stream == m->choice.stream && found.tried == m->tried &&
                      found.model_ns == m->model_ns && found.chosen_ns == m->chosen_ns));
    ck_assert(is == xti_wisdom_may_know(w, id.outline) && !xti_wisdom_may_know(w, id.outline + 64));
    xti_wisdom_close(w);
    xti_disk_close(d);
    return is;
}

START_TEST(a_record_of_what_no_version_writes_is_passed_over)
{
    struct xti_measured m = good;
    ck_assert(survives(&m));
    m.choice.stream = 5;
    ck_assert(!survives(&m));
    m = good, m.tried = 0;
    ck_assert(!survives(&m));
    m = good, m.chosen_ns = -1;
    ck_assert(!survives(&m));
    m = good, m.model_ns = 12345;
    ck_assert(survives(&m)); /* in place of the one before */
}
END_TEST

/* -------------------------------------------------------------------------------------------------- threads
 */

static void *measure_lines(void *arg)
{
    struct xt_ctx *ctx = arg;
    for (int i = 0; i < 4; i++) {
        char text[64];
        snprintf(text, sizeof text, "x: f32[%d,50]; x.T", 20 + 10 * i);
        if (!compiles_measured(ctx, text, &asked))
            return NULL;
    }
    return ctx;
}

/* [0]: threads of one context; [1]: of two with one directory. */
START_TEST(threads_that_measure_the_same_chains_do_not_disturb_each_other)
{
    pthread_t thread[4];
    struct xt_ctx *ctx[2] = {ctx_in(dir), ctx_in(dir)};
    for (int i = 0; i < 4; i++)
        ck_assert(!pthread_create(&thread[i], NULL, measure_lines, ctx[_i * i % 2]));
    for (int i = 0; i < 4; i++) {
        void *done;
        ck_assert(!pthread_join(thread[i], &done) && done);
    }
    xt_ctx_free(ctx[0]);
    xt_ctx_free(ctx[1]);
}
END_TEST

static void add_tests(TCase *c)
{
    tcase_add_loop_test(c, a_measured_kernel_copies_what_the_reference_does, 0, n_work);
    tcase_add_test(c, nothing_is_measured_unless_asked_for);
    tcase_add_test(c, the_environment_asks_as_well);
    tcase_add_test(c, an_earlier_compile_without_measuring_does_not_hide_the_measured_one);
    tcase_add_test(c, without_a_cache_directory_the_context_remembers);
    tcase_add_test(c, what_was_measured_is_known_in_every_way_to_write_it);
    tcase_add_test(c, what_does_not_fit_the_machine_is_not_measured);
    tcase_add_test(c, a_chain_that_copies_nothing_is_not_measured);
    tcase_add_test(c, no_failed_allocation_fails_a_compile_that_measures);
    tcase_add_test(c, another_process_finds_what_was_measured);
    tcase_add_test(c, contexts_add_to_each_others_choices);
    tcase_add_test(c, a_choice_for_other_threads_is_not_used);
    tcase_add_test(c, a_damaged_entry_is_refused_and_the_model_decides);
    tcase_add_test(c, a_record_of_what_no_version_writes_is_passed_over);
    tcase_add_loop_test(c, threads_that_measure_the_same_chains_do_not_disturb_each_other, 0, 2);
}

int main(void)
{
    char why[256];
    n_work = bench_workloads_read(bench_workloads_text, &work, why, sizeof why);
    Suite *s = suite_create("measure");
    TCase *c = tcase_create("measure");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, start, finish);
    add_tests(c);
    suite_add_tcase(s, c);
    int status = run_suite(s);
    bench_workloads_free(work, n_work);
    return status;
}
