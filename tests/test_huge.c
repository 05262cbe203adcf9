/* test_huge.c: chains whose extents come near 63 bits: the lines of tests/problems/huge.txt and random ones,
 * for every instruction set and every machine, compile or are refused in words, in bounded time; with
 * SAN=undefined also without an overflow. XT_TEST_FULL=1: 100,000 chains in place of 6,000. The seed is in
 * every message. */
#include "support/api.h"

#include <math.h>
#include <time.h>

#include "plan/plan.h"
#include "support/random_graph.h"

enum { CHAINS = 6000, ALL_CHAINS = 100000, MOST_MS = 250 };

static double thread_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Returns whether it compiled. */
static bool look_at(struct xt_ctx *ctx, const struct xt_graph *g, int seed)
{
    struct xt_kernel *k;
    struct xt_kernel_info info = {.size = sizeof info};
    size_t need;
    double from = thread_ms(), ms;
    xt_status s = xt_compile(ctx, g, NULL, &k);
    if (!s) {
        double seconds = xt_kernel_estimate(k);
        ck_assert_msg(isfinite(seconds) && seconds >= 0, "seed %d: %g s: %s", seed, seconds, graph_text(g));
        expect(XT_OK, xt_explain(k, seed % 2 ? XT_JSON : 0, NULL, 0, &need));
        expect(XT_OK, xt_kernel_get(k, &info));
        ck_assert_msg(info.bytes_read >= 0 && info.bytes_written >= 0, "seed %d: %s", seed, graph_text(g));
        xt_kernel_free(k);
    }
    ms = thread_ms() - from;
    ck_assert_msg(!s || s == XT_EOVERFLOW || s == XT_EUNSUPPORTED, "seed %d: %s: %s", seed,
                  xt_last_error()->message, graph_text(g));
    ck_assert_msg(ms <= MOST_MS, "seed %d: %.0f ms: %s", seed, ms, graph_text(g));
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

int main(void)
{
    Suite *s = suite_create("huge");
    TCase *c = tcase_create("huge");
    tcase_set_timeout(c, 600);
    tcase_add_test(c, huge_lines_compile_on_every_machine);
    tcase_add_test(c, random_chains_of_huge_extents_compile_or_are_refused);
    suite_add_tcase(s, c);
    return run_suite(s);
}
