/* test_api.c: contexts and compiling: every function of xt.h from `context` on, but xt_run and xt_explain.
 * What xt.h promises, tried with what a careless or a hostile caller hands over. */
#include "support/api.h"

#include <limits.h>
#include <sys/stat.h>

#include "api/api.h"
#include "support/random_graph.h"

char now_running[2048];

static bool says(const char *word) { return strstr(xt_last_error()->message, word) != NULL; }

/* ---------------------------------------------------------------------------------------------- contexts */

START_TEST(a_context_refuses_options_out_of_their_domain)
{
    struct xt_options good = {.size = sizeof good, .cache_dir = ""}, o;
    struct xt_ctx *ctx = (void *)1;
    expect(XT_EINVAL, xt_ctx_new(&good, NULL));
    static const size_t sizes[] = {0, 1, 8, offsetof(struct xt_options, device)};
    for (int i = 0; i < 4; i++) {
        o = good, o.size = sizes[i], ctx = (void *)1;
        expect(XT_EINVAL, xt_ctx_new(&o, &ctx));
        ck_assert_ptr_null(ctx);
        ck_assert(says("size"));
    }
    static const int threads[] = {-1, INT_MIN, 1025, INT_MAX}, devices[] = {-1, INT_MIN},
                     backends[] = {-1, 4, INT_MAX};
    for (int i = 0; i < 4; i++) {
        o = good, o.threads = threads[i], ctx = (void *)1;
        expect(XT_EINVAL, xt_ctx_new(&o, &ctx));
        ck_assert(!ctx && says("threads"));
    }
    for (int i = 0; i < 2; i++) {
        o = good, o.device = devices[i];
        expect(XT_EINVAL, xt_ctx_new(&o, &ctx));
        ck_assert(says("device"));
    }
    for (int i = 0; i < 3; i++) {
        o = good, o.backend = (xt_backend)backends[i];
        expect(XT_EINVAL, xt_ctx_new(&o, &ctx));
        ck_assert(says("backend"));
    }
    struct {
        struct xt_options o;
        char more[64];
    } larger = {.o = good, .more = "fields of a later version"};
    larger.o.size = sizeof larger;
    expect(XT_OK, xt_ctx_new(&larger.o, &ctx));
    xt_ctx_free(ctx);
    o = good, o.size = offsetof(struct xt_options, mode); /* of the first version */
    o.mode = (xt_mode)77;
    expect(XT_OK, xt_ctx_new(&o, &ctx));
    xt_ctx_free(ctx);
    xt_ctx_free(NULL);
}
END_TEST

START_TEST(a_context_that_is_not_there_says_why)
{
    struct xt_options o = {.size = sizeof o, .cache_dir = "", .threads = 2000};
    struct xt_ctx *ctx;
    struct xt_kernel *k;
    expect(XT_EINVAL, xt_ctx_new(&o, &ctx));
    struct xt_graph *g = parse_line("x: u8[2]; x"); /* succeeds: xt_last_error is clear again */
    expect(XT_EINVAL, xt_compile(ctx, g, NULL, &k));
    ck_assert(says("ctx is NULL") && says("2000 is not in"));
    expect(XT_EINVAL, xt_run(k, NULL, NULL, NULL));
    ck_assert(says("kernel is NULL") && says("2000 is not in"));
    xt_graph_free(g);
}
END_TEST

START_TEST(the_environment_fills_in_what_options_leave_open)
{
    struct xt_options o = {.size = sizeof o, .cache_dir = ""};
    struct xt_kernel_info info = {.size = sizeof info};
    struct xt_ctx *ctx;
    setenv("XT_BACKEND", "tpu", 1);
    expect(XT_EINVAL, xt_ctx_new(&o, &ctx));
    ck_assert(!ctx && says("XT_BACKEND") && says("tpu"));
    setenv("XT_BACKEND", "ref", 1);
    expect(XT_OK, xt_ctx_new(&o, &ctx));
    struct xt_kernel *k = compile_line(ctx, "x: f32[3]; x");
    expect(XT_OK, xt_kernel_get(k, &info));
    ck_assert_int_eq(info.backend, XT_REF);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    o.backend = XT_CPU;
    expect(XT_OK, xt_ctx_new(&o, &ctx));
    k = compile_line(ctx, "x: f32[3]; x");
    expect(XT_OK, xt_kernel_get(k, &info));
    ck_assert_int_eq(info.backend, XT_CPU);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    unsetenv("XT_BACKEND");
    o.backend = XT_AUTO;
    static const char *const bad[] = {"-1", "99999", "4294967297"};
    for (int i = 0; i < 3; i++) {
        setenv("XT_THREADS", bad[i], 1);
        expect(XT_EINVAL, xt_ctx_new(&o, &ctx));
        ck_assert(says("XT_THREADS"));
    }
    unsetenv("XT_THREADS");
    expect(XT_OK, xt_ctx_new(&o, &ctx));
    k = compile_line(ctx, "x: f32[3]; x");
    expect(XT_OK, xt_kernel_get(k, &info));
    ck_assert_int_eq(info.backend, XT_CPU);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

static void no_entry(void *arg, const char *file, int64_t bytes, const char *what) { ++*(int *)arg; }

START_TEST(a_variable_that_nobody_understands_is_refused_by_its_name)
{
    static const char *const bad[][3] = {
        {"XT_ISA", "sse9", "'sse9' is not scalar, avx2, avx512 or neon"},
        {"XT_MACHINE", "abacus", "'abacus' is none of "},
        {"XT_JIT", "soon", "'soon' is not sync, async or generic"},
        {"XT_WITHOUT", "walls", "'walls' has a name that is no strategy or trick"},
        {"XT_THREADS", "many", "'many' is not a number"},
        {"XT_MEASURE", "yes", "'yes' is not a number"},
        {"XT_CHECK", "true", "'true' is not a number"},
        {"XT_FAIL_ALLOC", "1st", "'1st' is not a number"},
        {"XT_THREADS", "99999999999999999999", "'99999999999999999999' is not in [0,1024]"},
        {"XT_MEASURE", "-1", "'-1' is not in [0,1]"},
        {"XT_CHECK", "2", "'2' is not in [0,1]"},
        {"XT_FAIL_ALLOC", "-5", "'-5' is not in [0,"},
        {"XT_DUMP", "/nowhere/at/all", "'/nowhere/at/all' is not a directory"},
        {"XT_DUMP", "/dev/null", "'/dev/null' is not a directory"},
        {"XT_OVERRIDE", "/nowhere/at/all", "'/nowhere/at/all' is not a directory"},
        {"XT_OVERRIDE", "/dev/null", "'/dev/null' is not a directory"},
        {"XT_DEBUG", "map,caches",
         "'map,caches' has a name that is not graph, map, plan, src, ptx, cache, time"},
    };
    struct xt_options o = {.size = sizeof o, .cache_dir = ""};
    struct xt_ctx *ctx;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv(bad[i][0], bad[i][1], 1);
        expect(XT_EINVAL, xt_ctx_new(&o, &ctx));
        ck_assert_msg(!ctx && says(bad[i][0]) && says(bad[i][2]), "%s", xt_last_error()->message);
        setenv(bad[i][0], "", 1); /* as if it were not there */
        expect(XT_OK, xt_ctx_new(&o, &ctx));
        xt_ctx_free(ctx);
        unsetenv(bad[i][0]);
    }
}
END_TEST

START_TEST(a_directory_of_a_variable_that_cannot_be_used_is_told)
{
    static const char *const name[] = {"XT_DUMP", "XT_OVERRIDE"};
    char dir[] = "/tmp/xt-api-XXXXXX";
    struct xt_options o = {.size = sizeof o, .cache_dir = ""};
    struct xt_ctx *ctx;
    bool root = !getuid();
    ck_assert(mkdtemp(dir) && !chmod(dir, 0) && (!root || !setreuid(65534, 0)));
    for (int i = 0; i < 2; i++) {
        setenv(name[i], dir, 1);
        expect(XT_EINVAL, xt_ctx_new(&o, &ctx));
        ck_assert_msg(says(name[i]) && says(dir) && says("Permission denied"), "%s",
                      xt_last_error()->message);
        unsetenv(name[i]);
    }
    ck_assert((!root || !setreuid(0, 0)) && !rmdir(dir));
}
END_TEST

/* post: XT_DEBUG tells of each compile, its graph, its map, its plan, and on stderr alone. */
START_TEST(a_compile_is_told_of_when_it_is_asked_for)
{
    static const char *const want[] = {"graph: x: f32[4,6]; x.permute(1,0)\n", "map: affine ",
                                       "piece 0: ", "plan: ", "; refused:\n"};
    char said[8192] = "";
    FILE *to = tmpfile();
    int saved = dup(2);
    ck_assert(to && saved >= 0 && dup2(fileno(to), 2) == 2);
    setenv("XT_DEBUG", "graph,map,plan", 1);
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    xt_kernel_free(compile_line(ctx, "x: f32[4,6]; x.permute(1,0)"));
    xt_ctx_free(ctx);
    setenv("XT_DEBUG", "", 1);
    dup2(saved, 2);
    close(saved);
    rewind(to);
    said[fread(said, 1, sizeof said - 1, to)] = 0;
    fclose(to);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        ck_assert_msg(strstr(said, want[i]), "%s not in: %s", want[i], said);
}
END_TEST

START_TEST(cache_calls_refuse_null_and_say_why_there_is_none)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_cache_stats stats = {.size = sizeof stats};
    int64_t removed = 7;
    int n = 0;
    memset(&stats, 1, sizeof stats);
    stats.size = sizeof stats;
    expect(XT_EINVAL, xt_cache_get(NULL, &stats));
    ck_assert_int_eq(stats.built, 0);
    expect(XT_EINVAL, xt_cache_get(ctx, NULL));
    expect(XT_EINVAL, xt_cache_list(NULL, no_entry, &n));
    expect(XT_EINVAL, xt_cache_list(ctx, NULL, &n));
    expect(XT_EINVAL, xt_cache_clear(NULL, &removed));
    ck_assert_int_eq(removed, 0);
    ck_assert_ptr_null(xt_cache_path(NULL));
    ck_assert_ptr_nonnull(xt_cache_why(NULL));
    ck_assert_ptr_null(xt_cache_path(ctx));
    ck_assert_str_ne(xt_cache_why(ctx), "");
    expect(XT_OK, xt_cache_list(ctx, no_entry, &n));
    expect(XT_OK, xt_cache_clear(ctx, NULL));
    expect(XT_OK, xt_cache_clear(ctx, &removed));
    expect(XT_OK, xt_cache_get(ctx, &stats));
    ck_assert_int_eq(n + removed + stats.entries + stats.bytes, 0);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(the_environment_table_has_names_and_ends)
{
    struct xt_env_info e = {.size = sizeof e};
    ck_assert_int_gt(xt_env_count(), 5);
    for (int i = 0; i < xt_env_count(); i++) {
        expect(XT_OK, xt_env_get(i, &e));
        ck_assert(!strncmp(e.name, "XT_", 3) && e.fallback && e.what && *e.what);
    }
    expect(XT_ERANGE, xt_env_get(-1, &e));
    ck_assert_ptr_null(e.name);
    expect(XT_ERANGE, xt_env_get(xt_env_count(), &e));
    expect(XT_EINVAL, xt_env_get(0, NULL));
}
END_TEST

/* --------------------------------------------------------------------------------------------- compiling */

START_TEST(compiling_refuses_null_bad_sizes_and_graphs_without_an_output)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_graph *g = parse_line("x: f32[2,3]; x.permute(1,0)"), *none;
    struct xt_compile_options good = {.size = sizeof good}, o;
    struct xt_kernel *k = (void *)1;
    expect(XT_EINVAL, xt_compile(NULL, g, NULL, &k));
    ck_assert(!k && says("ctx"));
    k = (void *)1;
    expect(XT_EINVAL, xt_compile(ctx, NULL, NULL, &k));
    ck_assert(!k && says("graph"));
    expect(XT_EINVAL, xt_compile(ctx, g, NULL, NULL));
    for (size_t size = 0; size < offsetof(struct xt_compile_options, measure); size += 8) {
        o = good, o.size = size, k = (void *)1;
        expect(XT_EINVAL, xt_compile(ctx, g, &o, &k));
        ck_assert(!k && says("size"));
    }
    o = good, o.size = offsetof(struct xt_compile_options, measure), o.measure = 1; /* of an older header */
    expect(XT_OK, xt_compile(ctx, g, &o, &k));
    xt_kernel_free(k);
    for (int b = -1; b <= 4; b += 5) {
        o = good, o.backend = (xt_backend)b, k = (void *)1;
        expect(XT_EINVAL, xt_compile(ctx, g, &o, &k));
        ck_assert(!k && says("backend"));
    }
    for (int measure = -2; measure <= 2; measure += 4) {
        o = good, o.measure = measure, k = (void *)1;
        expect(XT_EINVAL, xt_compile(ctx, g, &o, &k));
        ck_assert(!k && says("measure"));
    }
    expect(XT_OK, xt_graph_new(&none));
    k = (void *)1;
    expect(XT_EINVAL, xt_compile(ctx, none, NULL, &k));
    ck_assert(!k && says("output"));
    xt_graph_free(none);
    o = good, o.arch = "sm_90"; /* of no concern to the CPU */
    expect(XT_OK, xt_compile(ctx, g, &o, &k));
    xt_kernel_free(k);
    o.backend = XT_CUDA;
    static const char *const arch[] = {"", "sm_", "sm_1", "90x",
                                       "sm_90sm_90sm_90sm_90sm_90sm_90sm_90sm_90sm_90sm_90"};
    for (int i = 0; i < 5; i++) {
        o.arch = arch[i], k = (void *)1;
        expect(XT_EINVAL, xt_compile(ctx, g, &o, &k));
        ck_assert(!k && says("architecture"));
    }
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(the_first_error_of_a_graph_is_the_error_of_its_compile)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_graph *g;
    struct xt_kernel *k = (void *)1;
    expect(XT_OK, xt_graph_new(&g));
    xt_node x = xt_input(g, NULL, XT_F32, 2, (int64_t[]){2, 3}, NULL, 0);
    ck_assert_int_lt(xt_reshape(g, x, 2, (int64_t[]){5, 5}), 0);
    ck_assert_int_eq(xt_last_error()->status, XT_ESHAPE);
    xt_node y = xt_flip(g, x, 1, (int[]){7});
    ck_assert_int_lt(y, 0);
    ck_assert_int_eq(xt_output(g, y, NULL, 0), XT_ESHAPE);
    expect(XT_OK, xt_cache_clear(ctx, NULL));
    expect(XT_ESHAPE, xt_compile(ctx, g, NULL, &k));
    ck_assert_ptr_null(k);
    ck_assert(says("reshape") && says("[2,3]") && says("[5,5]"));
    expect(XT_ESHAPE, xt_graph_status(g));
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(a_destination_that_overlaps_itself_is_refused_with_its_layout)
{
    static const char *const line[] = {"x: u8[2,3]; x -> [2,3]:[1,1]+0", "x: u8[2,3]; x -> [2,3]:[2,-1]+4",
                                       "x: u8[4,3]; x -> [4,3]:[-2,4]+6"};
    static const char *const strides[] = {"[1,1]", "[2,-1]", "[-2,4]"};
    for (int i = 0; i < 3; i++) {
        struct xt_graph *g;
        expect(XT_EALIAS, xt_parse(line[i], 0, NULL, &g));
        ck_assert_msg(!g && says("destination") && says(strides[i]) && says(i < 2 ? "[2,3]" : "[4,3]"), "%s",
                      xt_last_error()->message);
    }
}
END_TEST

static struct xt_cache_stats stats_of(struct xt_ctx *ctx)
{
    struct xt_cache_stats s = {.size = sizeof s};
    expect(XT_OK, xt_cache_get(ctx, &s));
    return s;
}

START_TEST(equal_requests_share_a_kernel_and_equal_maps_a_signature)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1), *other = new_ctx(XT_CPU, 1);
    struct xt_kernel *a = compile_line(ctx, "x: f32[40,60]; x.permute(1,0)");
    struct xt_kernel *b = compile_line(ctx, "x: f32[40,60]; x.permute(1,0)");
    struct xt_kernel *c =
        compile_line(ctx, "x: f32[2,20,60]; x.reshape(40,60).transpose(0,1).reshape(4,15,40)");
    struct xt_kernel *d = compile_line(other, "y: i32[40,60]:[60,1]+9; y.T");
    struct xt_kernel *e = compile_line(ctx, "x: f32[40,61]; x.permute(1,0)");
    struct xt_kernel_info ia = {.size = sizeof ia}, ic = {.size = sizeof ic}, id = {.size = sizeof id},
                          ie = {.size = sizeof ie};
    ck_assert(!xt_kernel_get(a, &ia) && !xt_kernel_get(c, &ic) && !xt_kernel_get(d, &id) &&
              !xt_kernel_get(e, &ie));
    ck_assert_ptr_eq(a, b);
    ck_assert_ptr_ne(a, c);
    ck_assert_str_eq(ia.signature, ic.signature);
    ck_assert_str_eq(ia.signature, id.signature);
    ck_assert_str_ne(ia.signature, ie.signature);
    ck_assert_int_eq(strlen(ia.signature), 32);
    ck_assert_int_eq(strspn(ia.signature, "0123456789abcdef"), 32);
    ck_assert_str_eq(ia.origin, "built in");
    struct xt_cache_stats s = stats_of(ctx);
    ck_assert_int_eq(s.memory_hits, 1);
    ck_assert_int_eq(s.built, 3);
    ck_assert_int_eq(s.disk_hits, 0);
    struct xt_kernel *k[] = {a, b, c, d, e};
    for (int i = 0; i < 5; i++)
        xt_kernel_free(k[i]);
    xt_ctx_free(ctx);
    xt_ctx_free(other);
}
END_TEST

/* One thing differs each time; the same bytes must not come out of the cache. */
START_TEST(a_repeated_request_allocates_nothing_and_plans_nothing)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    const char *line = "x: f32[8,6,4]; x.permute(2,0,1)[:, ::-1].reshape(4,48).pad((1,1),(0,2), value=7)";
    struct xt_kernel *first = compile_line(ctx, line), *again;
    struct xt_graph *g = parse_line(line);
    xti_fail_alloc(1, 1);
    xt_status s = xt_compile(ctx, g, NULL, &again);
    xti_fail_alloc(0, 0);
    ck_assert_msg(!s, "%s", xt_last_error()->message);
    ck_assert_ptr_eq(again, first);
    xt_graph_free(g);
    xt_kernel_free(first);
    xt_kernel_free(again);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(requests_that_differ_in_one_thing_are_different_kernels)
{
    static const char *const line[] = {
        "x: u8[2,3]; x",
        "x: i8[2,3]; x",
        "y: u8[2,3]; y",
        "x: u8[3,2]; x",
        "x: u8[2,3]:[3,1]+0; x",
        "x: u8[2,3]:[3,1]+1; x",
        "x: u8[2,3]; x -> [2,3]:[3,1]+0",
        "x: u8[2,3]; x -> [2,3]:[3,1]+1",
        "x: u8[2,3]; x.flip(0)",
        "x: u8[2,3]; x.flip(1)",
        "x: u8[2,3]; x.pad((1,0),(0,0), value=1)",
        "x: u8[2,3]; x.pad((1,0),(0,0), value=2)",
        "x: u8[2,3]; x.pad((0,1),(0,0), value=2)",
        "x: u8[2,3]; y: u8[2,3]; concat(0, x, y)",
        "x: u8[2,3]; y: u8[2,3]; concat(0, y, x)",
        "x: u8[2,3]; y: u8[2,3]; concat(1, x, y)",
        "x: u8[2,3]; y: u8[2,3]; x",
    };
    enum { N = sizeof line / sizeof *line };
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k[N], *ref;
    for (int i = 0; i < N; i++) {
        k[i] = compile_line(ctx, line[i]);
        for (int j = 0; j < i; j++)
            ck_assert_msg(k[j] != k[i], "%s | %s", line[j], line[i]);
    }
    struct xt_graph *g = parse_line(line[0]);
    struct xt_compile_options o = {.size = sizeof o, .backend = XT_REF};
    expect(XT_OK, xt_compile(ctx, g, &o, &ref));
    ck_assert_ptr_ne(ref, k[0]);
    xt_kernel_free(ref);
    xt_graph_free(g);
    for (int i = 0; i < N; i++)
        xt_kernel_free(k[i]);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(kernels_outlive_their_context_and_their_graph)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, "x: i32[2,3]; x.permute(1,0)"), *more = xt_kernel_ref(k);
    struct xt_kernel *ref;
    struct xt_graph *g = parse_line("x: i32[2,3]; x.permute(1,0)");
    struct xt_compile_options o = {.size = sizeof o, .backend = XT_REF};
    expect(XT_OK, xt_compile(ctx, g, &o, &ref));
    ck_assert_ptr_eq(more, k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    xt_kernel_free(k);
    int32_t a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {0}, c[6] = {0};
    expect(XT_OK, xt_run(more, b, (const void *[]){a}, NULL));
    expect(XT_OK, xt_run(ref, c, (const void *[]){a}, NULL));
    ck_assert(b[1] == 4 && b[2] == 2 && b[5] == 6);
    ck_assert_mem_eq(b, c, sizeof b);
    char text[4096];
    expect(XT_OK, xt_explain(more, 0, text, sizeof text, NULL));
    xt_kernel_free(more);
    xt_kernel_free(ref);
    xt_kernel_free(NULL);
    ck_assert_ptr_null(xt_kernel_ref(NULL));
}
END_TEST

/* A graph whose problem line would be longer than xt_parse accepts must still compile, or say so plainly. */
START_TEST(graphs_near_the_limits_compile_or_say_why_not)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    for (int big = 0; big < 2; big++) {
        struct xt_graph *g;
        struct xt_kernel *k;
        int64_t shape[XT_MAX_RANK], lo_hi[2 * XT_MAX_RANK] = {0};
        for (int i = 0; i < XT_MAX_RANK; i++)
            shape[i] = i == 0 ? 2 : 1;
        shape[31] = big ? 0 : 1;
        expect(XT_OK, xt_graph_new(&g));
        xt_node x = xt_input(g, NULL, XT_U8, XT_MAX_RANK, shape, NULL, 0);
        for (int i = 0; i < 31 && big; i++)
            lo_hi[2 * i] = lo_hi[2 * i + 1] = (int64_t)1 << 40;
        for (int i = 0; i < 4000; i++)
            x = big ? xt_pad(g, x, XT_MAX_RANK, lo_hi, NULL) : xt_flip(g, x, 1, (int[]){0});
        ck_assert_int_ge(x, 0);
        expect(XT_OK, xt_output(g, x, NULL, 0));
        xt_status s = xt_compile(ctx, g, NULL, &k);
        ck_assert_msg(s == (big ? XT_EUNSUPPORTED : XT_OK), "%s: %s", xt_status_name(s),
                      xt_last_error()->message);
        ck_assert(!big || (!k && says("1048576 bytes")));
        xt_kernel_free(k);
        xt_graph_free(g);
    }
    xt_ctx_free(ctx);
}
END_TEST

/* ---------------------------------------------------------------------------------------------- numbers */

struct counted {
    int64_t read, highest[8]; /* by input; -1: none */
};

static bool count(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    struct counted *c = arg;
    if (s < 0)
        return true;
    c->read++;
    if (s > c->highest[p->src])
        c->highest[p->src] = s;
    return true;
}

static int64_t numel_of(const struct xt_graph *g)
{
    struct xt_output_info o = {.size = sizeof o};
    struct xt_node_info n = {.size = sizeof n};
    int64_t numel = 1;
    ck_assert(!xt_output_get(g, &o) && !xt_node_get(g, o.node, &n));
    for (int i = 0; i < n.rank; i++)
        numel *= n.shape[i];
    return numel;
}

START_TEST(a_kernels_numbers_are_those_of_a_count_by_hand)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    int exact = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        struct random_graph_options o = {.max_numel = 500};
        struct xt_graph *g = random_graph(seed, &o);
        struct xt_kernel_info info = {.size = sizeof info};
        struct counted c = {0, {-1, -1, -1, -1, -1, -1, -1, -1}};
        struct xt_kernel *k;
        ck_assert(!xt_compile(ctx, g, NULL, &k));
        expect(XT_OK, xt_kernel_get(k, &info));
        xti_map_visit(k->map, count, &c);
        int64_t es = k->map->esize;
        ck_assert_msg(info.bytes_written == numel_of(g) * es, "%s", graph_text(g));
        bool may_be_more = false;
        for (int i = 0; i < k->map->n_pieces; i++)
            may_be_more |= k->map->piece[i].n_guards && k->map->piece[i].n_divs;
        exact += !may_be_more;
        ck_assert_msg(info.bytes_read == c.read * es || (may_be_more && info.bytes_read > c.read * es &&
                                                         info.bytes_read <= info.bytes_written),
                      "%s: %lld, want %lld", graph_text(g), (long long)info.bytes_read,
                      (long long)(c.read * es));
        for (int i = 0; i < xt_input_count(g); i++) {
            bool affine = true;
            for (int j = 0; j < k->map->n_pieces; j++)
                affine = affine && xti_piece_affine(&k->map->piece[j]);
            int64_t need = xt_src_min_bytes(k, i), want = (c.highest[i] + 1) * es;
            ck_assert_msg(affine ? need == want : need >= want, "%s: input %d: %lld, want %lld",
                          graph_text(g), i, (long long)need, (long long)want);
        }
        ck_assert_int_eq(xt_src_min_bytes(k, -1), -1);
        ck_assert_int_eq(xt_src_min_bytes(k, xt_input_count(g)), -1);
        ck_assert(info.strategy && *info.strategy && info.map_class && info.n_pieces >= 0);
        xt_kernel_free(k);
        xt_graph_free(g);
    }
    ck_assert_int_gt(exact, 500);
    ck_assert_int_eq(xt_src_min_bytes(NULL, 0), -1);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(chosen_chains_have_the_numbers_that_a_reader_expects)
{
    /* clang-format off */
    static const struct { const char *line, *map_class; int64_t read, written, dst, src; } rows[] = {
        {"x: f32[4,6]; x",                           "memcpy",  96,  96,  96,  96},
        {"x: f32[4,6]; x[1:3]",                      "memcpy",  48,  48,  48,  72},
        {"x: f32[4,6]; x.permute(1,0)",              "affine",  96,  96,  96,  96},
        {"x: f32[4,6]; x.pad((1,1),(0,0))",          "general", 96, 144, 144,  96},
        {"x: f32[4,4]; x.tril(0)",                   "general", 40,  64,  64,  64},
        {"x: f32[4,4]; x.tril(-1)",                  "general", 24,  64,  64,  64}, /* guarded: all */
        {"x: u8[4000000,3,3]; x.tril(0)",            "general", 24000000, 36000000, 36000000, 36000000},
        {"x: u8[3]; x.unsqueeze(1).expand(3,5)",     "affine",  15,  15,  15,   3},
        {"x: u8[0,3]; x",                            "empty",    0,   0,   0,   0},
        {"x: u8[0]; x.pad((2,3), value=1)",          "fill",     0,   5,   5,   0},
        {"x: c128[]; x -> []:[]+2",                  "memcpy",  16,  16,  48,  16},
        {"x: u8[2,3]; x -> [2,3]:[8,1]+1",           "affine",   6,   6,  12,   6},
        {"x: u8[9]; x[::4].flip(0)",                 "affine",   3,   3,   3,   9},
    };
    /* clang-format on */
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xt_kernel *k = compile_line(ctx, rows[i].line);
        struct xt_kernel_info n = {.size = sizeof n};
        expect(XT_OK, xt_kernel_get(k, &n));
        ck_assert_msg(!strcmp(n.map_class, rows[i].map_class), "%s: %s", rows[i].line, n.map_class);
        ck_assert_msg(n.bytes_read == rows[i].read && n.bytes_written == rows[i].written &&
                          n.dst_min_bytes == rows[i].dst && xt_src_min_bytes(k, 0) == rows[i].src,
                      "%s: %lld read, %lld written, dst %lld, src %lld", rows[i].line,
                      (long long)n.bytes_read, (long long)n.bytes_written, (long long)n.dst_min_bytes,
                      (long long)xt_src_min_bytes(k, 0));
        xt_kernel_free(k);
    }
    struct xt_kernel_info info = {.size = sizeof info, .n_pieces = 5};
    expect(XT_EINVAL, xt_kernel_get(NULL, &info));
    ck_assert_int_eq(info.n_pieces, 0);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(cpu_kernels_have_no_cuda_artifacts)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, "x: f32[3]; x");
    const void *data = "";
    size_t bytes = 7;
    for (int what = 0; what < 4; what++) {
        data = "", bytes = 7;
        expect(XT_EUNSUPPORTED, xt_kernel_artifact(k, (enum xt_artifact)what, &data, &bytes));
        ck_assert(!data && !bytes);
    }
    expect(XT_EINVAL, xt_kernel_artifact(k, (enum xt_artifact) - 1, &data, &bytes));
    expect(XT_EINVAL, xt_kernel_artifact(k, (enum xt_artifact)4, &data, &bytes));
    expect(XT_EINVAL, xt_kernel_artifact(NULL, XT_PTX, &data, &bytes));
    expect(XT_EINVAL, xt_kernel_artifact(k, XT_PTX, NULL, &bytes));
    expect(XT_EINVAL, xt_kernel_artifact(k, XT_PTX, &data, NULL));
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

/* Pairs of chains with one map, and pairs that look like it. */
static const struct {
    const char *a, *b;
    bool same;
} same_maps[] = {
    {"x: f32[4,6]; x.permute(1,0)", "y: i32[4,6]; y.T", true},
    {"x: f32[4,6]; x.permute(1,0)", "x: f32[2,2,6]; x.reshape(4,6).transpose(0,1).flip(0).flip(0)", true},
    {"x: f32[4,6]; x.tril(0)", "x: f32[2,12]; x.reshape(4,6).tril(0)", true},
    {"x: u8[9]; x.pad((1,1), value=3)", "x: u8[3,3]; x.reshape(9).pad((1,1), value=3)", true},
    {"x: u8[9]; x.pad((1,1), value=3)", "x: u8[9]; x.pad((1,1), value=4)", false},
    {"x: f32[4,6]; x.permute(1,0)", "x: f32[4,6]:[6,1]+1; x.permute(1,0)", false},
    {"x: f32[4,6]; x.permute(1,0)", "x: f32[4,6]; x.permute(1,0) -> [6,4]:[4,1]+1", false},
    {"x: f32[4,6]; x.permute(1,0)", "x: f64[4,6]; x.permute(1,0)", false},
    {"x: f32[4,6]; y: f32[4,6]; concat(0,x,y)", "x: f32[4,6]; y: f32[4,6]; concat(0,y,x)", false},
};

START_TEST(chains_with_one_map_share_a_plan_and_tell_their_own_story)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *a = compile_line(ctx, same_maps[_i].a), *b = compile_line(ctx, same_maps[_i].b);
    struct xt_kernel_info ia = {.size = sizeof ia}, ib = {.size = sizeof ib};
    ck_assert_ptr_ne(a, b);
    ck_assert_msg((a->shared == b->shared) == same_maps[_i].same, "%s and %s", same_maps[_i].a,
                  same_maps[_i].b);
    expect(XT_OK, xt_kernel_get(a, &ia));
    expect(XT_OK, xt_kernel_get(b, &ib));
    ck_assert(!same_maps[_i].same || ia.signature == ib.signature);
    xt_ctx_free(ctx);
    for (int i = 0; i < 2; i++) { /* the second is there when the first is gone */
        char *text = explanation_of(i ? b : a, 0);
        struct xt_graph *g = parse_line(i ? same_maps[_i].b : same_maps[_i].a);
        ck_assert_msg(strstr(text, graph_text(g)), "%s", text);
        xt_graph_free(g);
        free(text);
        xt_kernel_free(i ? b : a);
    }
}
END_TEST

/* ----------------------------------------------------------------------------------------- given, print */

START_TEST(given_shapes_agree_or_are_refused)
{
    /* clang-format off */
    static const struct { const char *line; struct xt_shape given; xt_status want; } rows[] = {
        {"x; x",                        {XT_F32, 2, {2, 3}},  XT_OK},
        {"x; x",                        {XT_F32, 0, {0}},     XT_OK},
        {"x; x",                        {XT_F32, -1, {0}},    XT_ESYNTAX},
        {"x; x",                        {0, 2, {2, 3}},       XT_ESYNTAX},
        {"x: f32; x",                   {0, 2, {2, 3}},       XT_OK},
        {"x: f32[2,3]; x",              {0, -1, {0}},         XT_OK},
        {"x: f32[2,3]; x",              {XT_F32, -1, {0}},    XT_OK},
        {"x: f32[2,3]; x",              {XT_F32, 2, {2, 3}},  XT_OK},
        {"x: f32[2,3]; x",              {XT_F32, 2, {3, 2}},  XT_ESHAPE},
        {"x: f32[2,3]; x",              {XT_F32, 1, {6}},     XT_ESHAPE},
        {"x: f32[2,3]; x",              {XT_I32, 2, {2, 3}},  XT_EDTYPE},
        {"x: f32[2,3]:[1,2]+0; x",      {XT_F32, 1, {6}},     XT_OK},
        {"x: f32[2,3]:[1,2]+0; x",      {XT_I32, 1, {6}},     XT_EDTYPE},
        {"x; x",                        {XT_F32, -2, {0}},    XT_EINVAL},
        {"x; x",                        {XT_F32, 33, {0}},    XT_ERANK},
        {"x; x",                        {XT_F32, INT_MAX, {0}}, XT_ERANK},
        {"x; x",                        {99, 1, {3}},         XT_EDTYPE},
        {"x; x",                        {-1, 1, {3}},         XT_EDTYPE},
        {"x; x",                        {XT_F32, 1, {-3}},    XT_EINVAL},
        {"x; x",                        {XT_F32, 3, {INT64_MAX, INT64_MAX, 2}}, XT_EOVERFLOW},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xt_graph *g = (void *)1;
        xt_status s = xt_parse(rows[i].line, 1, &rows[i].given, &g);
        ck_assert_msg(s == rows[i].want || (rows[i].want == XT_EINVAL && s < 0 && s != XT_EINTERNAL) ||
                          (rows[i].want == XT_ERANK && s == XT_EINVAL),
                      "%zu: %s: %s, want %s: %s", i, rows[i].line, xt_status_name(s),
                      xt_status_name(rows[i].want), xt_last_error()->message);
        ck_assert(!s == (g != NULL) && xt_last_error()->status == s);
        xt_graph_free(g);
    }
    struct xt_graph *g;
    struct xt_shape two[2] = {{XT_F32, 1, {3}}, {XT_F32, 1, {3}}};
    expect(XT_OK, xt_parse("x; x", 2, two, &g)); /* the second is for an input that is not declared */
    xt_graph_free(g);
    ck_assert(xt_parse("x; x", -1, two, &g) < 0 && !g);
    ck_assert(xt_parse("x; x", 1, NULL, &g) < 0 && !g);
    expect(XT_EINVAL, xt_parse(NULL, 0, NULL, &g));
    expect(XT_EINVAL, xt_parse("x: u8[1]; x", 0, NULL, NULL));
}
END_TEST

START_TEST(a_success_clears_the_last_error_and_a_failure_sets_it)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, "x: f32[3]; x");
    struct xt_graph *g = parse_line("x: f32[3]; x");
    struct xt_kernel_info info = {.size = sizeof info};
    struct xt_cache_stats stats = {.size = sizeof stats};
    struct xt_node_info node = {.size = sizeof node};
    struct xt_output_info output = {.size = sizeof output};
    struct xt_env_info env = {.size = sizeof env};
    struct xt_graph *h;
    struct xt_kernel *again;
    struct xt_ctx *other;
    xt_dtype t;
    float a[3] = {0}, b[3];
    char buf[64];
#define AFTER_FAILURE(call)                                                                                  \
    do {                                                                                                     \
        xt_run(NULL, NULL, NULL, NULL);                                                                      \
        ck_assert_int_eq(xt_last_error()->status, XT_EINVAL);                                                \
        expect(XT_OK, call);                                                                                 \
    } while (0)
    AFTER_FAILURE(xt_run(k, b, (const void *[]){a}, NULL));
    AFTER_FAILURE(xt_run_host(k, b, (const void *[]){a}));
    AFTER_FAILURE(xt_kernel_get(k, &info));
    AFTER_FAILURE(xt_explain(k, 0, buf, sizeof buf, NULL));
    AFTER_FAILURE(xt_cache_get(ctx, &stats));
    AFTER_FAILURE(xt_cache_clear(ctx, NULL));
    AFTER_FAILURE(xt_cache_list(ctx, no_entry, NULL));
    AFTER_FAILURE(xt_env_get(0, &env));
    AFTER_FAILURE(xt_dtype_parse("f32", &t));
    AFTER_FAILURE(xt_graph_status(g));
    AFTER_FAILURE(xt_node_get(g, 0, &node));
    AFTER_FAILURE(xt_output_get(g, &output));
    AFTER_FAILURE(xt_print(g, buf, sizeof buf, NULL));
    AFTER_FAILURE(xt_output(g, 0, NULL, 0));
    AFTER_FAILURE(xt_flip(g, 0, 0, NULL) >= 0 ? XT_OK : XT_EINVAL);
    AFTER_FAILURE(xt_graph_new(&h));
    xt_graph_free(h);
    AFTER_FAILURE(xt_parse("x: u8[1]; x", 0, NULL, &h));
    xt_graph_free(h);
    AFTER_FAILURE(xt_compile(ctx, g, NULL, &again));
    AFTER_FAILURE(xt_ctx_new(NULL, &other));
    xt_ctx_free(other);
    xt_kernel_free(again);
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("api");
    TCase *c = tcase_create("api");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, a_context_refuses_options_out_of_their_domain);
    tcase_add_test(c, a_context_that_is_not_there_says_why);
    tcase_add_test(c, the_environment_fills_in_what_options_leave_open);
    tcase_add_test(c, a_variable_that_nobody_understands_is_refused_by_its_name);
    tcase_add_test(c, a_directory_of_a_variable_that_cannot_be_used_is_told);
    tcase_add_test(c, a_compile_is_told_of_when_it_is_asked_for);
    tcase_add_test(c, cache_calls_refuse_null_and_say_why_there_is_none);
    tcase_add_test(c, the_environment_table_has_names_and_ends);
    tcase_add_test(c, compiling_refuses_null_bad_sizes_and_graphs_without_an_output);
    tcase_add_test(c, the_first_error_of_a_graph_is_the_error_of_its_compile);
    tcase_add_test(c, a_destination_that_overlaps_itself_is_refused_with_its_layout);
    tcase_add_test(c, equal_requests_share_a_kernel_and_equal_maps_a_signature);
    tcase_add_test(c, a_repeated_request_allocates_nothing_and_plans_nothing);
    tcase_add_loop_test(c, chains_with_one_map_share_a_plan_and_tell_their_own_story, 0,
                        sizeof same_maps / sizeof *same_maps);
    tcase_add_test(c, requests_that_differ_in_one_thing_are_different_kernels);
    tcase_add_test(c, kernels_outlive_their_context_and_their_graph);
    tcase_add_test(c, graphs_near_the_limits_compile_or_say_why_not);
    tcase_add_test(c, a_kernels_numbers_are_those_of_a_count_by_hand);
    tcase_add_test(c, chosen_chains_have_the_numbers_that_a_reader_expects);
    tcase_add_test(c, cpu_kernels_have_no_cuda_artifacts);
    tcase_add_test(c, given_shapes_agree_or_are_refused);
    tcase_add_test(c, a_success_clears_the_last_error_and_a_failure_sets_it);
    suite_add_tcase(s, c);
    return run_suite(s);
}
