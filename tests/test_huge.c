/* test_huge.c: chains whose extents come near 63 bits: the lines of tests/problems/huge.txt and random ones,
 * for every instruction set and every machine, compile or are refused in words, in bounded time; so are their
 * plans for CUDA, and chains over ranks; with SAN=undefined also without an overflow. XT_TEST_FULL=1: 100,000
 * chains in place of 6,000. The seed is in every message. */
#include "support/api.h"

#include <math.h>
#include <time.h>

#include "cuda/cuda.h"
#include "map/map.h"
#include "plan/plan.h"
#include "shard/shard.h"
#include "support/random_graph.h"

enum { CHAINS = 6000, ALL_CHAINS = 100000, MOST_MS = 250 };

static double thread_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static bool is_refusal(xt_status s) { return s == XT_EOVERFLOW || s == XT_EUNSUPPORTED; }

/* Planned and written down for a GPU; nothing is compiled. */
static void look_at_cuda(const struct xt_graph *g, int seed)
{
    static const int sm[] = {75, 90, 120}, sms[] = {0, 8, 132};
    struct xti_cuda_target t = {.sm = sm[seed % 3], .n_sms = sms[seed / 3 % 3]};
    struct xti_cuda_plan p;
    struct xti_map m;
    struct xti_err err = {0};
    xt_status s = xti_cuda_fuse(g, &t, &m, &err);
    if (!s && !(s = xti_cuda_plan_make(&m, &t, &p, &err))) {
        for (enum xti_cuda_tier tier = 0; tier < XTI_TIERS && p.n_steps; tier++) {
            struct xti_str source = {0};
            xt_status e = xti_cuda_emit(&p, tier, "xt_huge_00000000", &source, &err);
            ck_assert_msg(!e || is_refusal(e), "seed %d: %s: %s", seed, err.e.message, graph_text(g));
            xti_str_free(&source);
        }
        xti_cuda_plan_free(&p);
    }
    ck_assert_msg(!s || is_refusal(s), "seed %d: %s: %s", seed, err.e.message, graph_text(g));
    xti_map_free(&m);
}

/* Returns whether it compiled. */
static bool look_at(struct xt_ctx *ctx, const struct xt_graph *g, int seed)
{
    static const int forms[] = {0, XT_JSON, XT_SVG, XT_WHY};
    struct xt_kernel *k;
    struct xt_kernel_info info = {.size = sizeof info};
    size_t need;
    double from = thread_ms(), ms;
    xt_status s = xt_compile(ctx, g, NULL, &k);
    if (!s) {
        double seconds = xt_kernel_estimate(k);
        ck_assert_msg(isfinite(seconds) && seconds >= 0, "seed %d: %g s: %s", seed, seconds, graph_text(g));
        expect(XT_OK, xt_explain(k, forms[seed % 4], NULL, 0, &need));
        expect(XT_OK, xt_kernel_get(k, &info));
        ck_assert_msg(info.bytes_read >= 0 && info.bytes_written >= 0, "seed %d: %s", seed, graph_text(g));
        xt_kernel_free(k);
    }
    ms = thread_ms() - from;
    ck_assert_msg(!s || is_refusal(s), "seed %d: %s: %s", seed,
                  xt_last_error()->message, graph_text(g));
    ck_assert_msg(ms <= MOST_MS, "seed %d: %.0f ms: %s", seed, ms, graph_text(g));
    look_at_cuda(g, seed);
    return !s;
}

/* Of the i-th pair of an instruction set and a machine. */
static struct xt_ctx *ctx_of(int i)
{
    const struct xti_machine *m = xti_machine_at(i / XTI_ISA_COUNT);
    static const int threads[] = {1, 3, 64};
    if (!m)
        return NULL;
    setenv("XT_ISA", xti_isa_name[i % XTI_ISA_COUNT], 1);
    setenv("XT_MACHINE", m->name, 1);
    return new_ctx(XT_CPU, threads[i % 3]);
}

START_TEST(huge_lines_compile_on_every_machine)
{
    char line[512];
    int n = 0;
    struct xt_ctx *ctx;
    for (int i = 0; (ctx = ctx_of(i)); i++) {
        FILE *f = fopen("tests/problems/huge.txt", "r");
        ck_assert_msg(f != NULL, "run from the repository's root");
        while (fgets(line, sizeof line, f)) {
            if (line[0] == '#')
                continue;
            struct xt_graph *g = parse_line(line);
            ck_assert_msg(look_at(ctx, g, n++), "%s", line);
            xt_graph_free(g);
        }
        fclose(f);
        xt_ctx_free(ctx);
    }
    ck_assert_int_gt(n, 100);
}
END_TEST

START_TEST(random_chains_of_huge_extents_compile_or_are_refused)
{
    int machines = 0, compiled = 0, n = test_full() ? ALL_CHAINS : CHAINS;
    while (xti_machine_at(machines))
        machines++;
    int of = machines * XTI_ISA_COUNT;
    for (int i = 0; i < of; i++) {
        struct xt_ctx *ctx = ctx_of(i);
        for (int seed = i * n / of; seed < (i + 1) * n / of; seed++) {
            struct random_graph_options o = {.huge = true,
                                             .max_ops = 3 + seed % 8,
                                             .dense_inputs = seed & 1,
                                             .dense_output = seed >> 1 & 1};
            struct xt_graph *g = random_graph((uint64_t)seed, &o);
            compiled += g && look_at(ctx, g, seed);
            xt_graph_free(g);
        }
        xt_ctx_free(ctx);
    }
    ck_assert_int_gt(compiled, n / 2);
    printf("note: %d of %d chains compiled\n", compiled, n);
}
END_TEST

/* By the first rank, one between and the last. What a plan takes goes with its messages. */
START_TEST(huge_chains_over_ranks_are_planned_or_refused)
{
    static const char *const lines[] = {
        "mesh r[64]; x: u8[9223372036854775744 r]; x.roll(5,0) -> [9223372036854775744 r]",
        "mesh r[1048576]; x: u8[1125899906842623 r]; x.flip() -> [1125899906842623 r]",
        "mesh r[1048576]; x: c128[288230376151711744 r]; x.roll(1,0) -> [288230376151711744 r]",
        "mesh r[1048576]; x: c128[1099511627776]; x -> [1099511627776 r]",
        "mesh r[1048576]; x: c128[1048576 r]; x.repeat(274877906944,0) -> [288230376151711744 r]",
        "mesh p[1024] q[1024]; x: f64[16777216 p,16777215 q]; x.T -> [16777215 p,16777216 q]",
        "mesh p[8] q[8]; x: f64[65536 p,65535 q]; x.T -> [65535 q,65536 p]",
        "mesh r[7]; x: u16[769658139443 r(1)]; x[::-1] -> [769658139443 r]",
        "mesh r[4]; x: u8[2,34359738367 r]; x.reshape(-1) -> [68719476734 r]",
        "mesh r[4]; x: c128[68719476735 r]; concat(0, x[1:], x[:1]) -> [68719476735 r]",
        "mesh r[4]; x: u8[22906492248 r]; x.pad((1,1)).unfold(0,3,1) -> [22906492248 r,3]",
        "mesh r[4]; x: u8[65536 r,65535]; x.tril(0) -> [65536,65535 r]",
    };
    int planned = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (int64_t at = 0; at < 3; at++) {
            struct xt_shard *p;
            size_t need;
            int64_t ranks = strtoll(strchr(lines[i], '[') + 1, NULL, 10) * (strstr(lines[i], "q[") ? 8 : 1);
            xt_status s = xt_shard_new(lines[i], at * (ranks - 1) / 2, NULL, &p);
            ck_assert_msg(!s || is_refusal(s), "%s: %s", lines[i], xt_last_error()->message);
            for (int flags = 0; !s && flags <= XT_JSON; flags++)
                expect(XT_OK, xt_shard_explain(p, flags, NULL, 0, &need));
            planned += !s;
            xt_shard_free(p);
        }
    printf("note: %d plans over ranks\n", planned);
    ck_assert_int_gt(planned, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("huge");
    TCase *c = tcase_create("huge");
    tcase_set_timeout(c, 600);
    tcase_add_test(c, huge_lines_compile_on_every_machine);
    tcase_add_test(c, huge_chains_over_ranks_are_planned_or_refused);
    tcase_add_test(c, random_chains_of_huge_extents_compile_or_are_refused);
    suite_add_tcase(s, c);
    return run_suite(s);
}
