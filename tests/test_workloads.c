/* test_workloads.c: every workload of bench/workloads.txt: on the CPU by every instruction set, and its CUDA
 * kernel for three architectures in the PTX interpreter, at any alignment in turn; byte-equal to the
 * reference, every output byte once, no race. Small chains by default; XT_TEST_FULL=1: those that the
 * benchmark times; XT_TEST_FULL=tiers: the small ones, in both tiers. Of the lists in
 * bench/problems the small chains, each for one architecture in turn, of the 57 every third; `make
 * transactions` samples the full ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "cpu/cpu.h"
#include "support/cuda_proof.h"
#include "support/map_of.h"

static struct bench_workload *work;
static int n_work, n_own; /* the first n_own are bench/workloads.txt's */

static const char *chain_of(int i) { return test_full() && i < n_own ? work[i].chain : work[i].small; }

static void read_lists(void)
{
    static const char *const lists[] = {"bench/problems/hard.txt", "bench/problems/ttc57.txt"};
    char why[256], *all = NULL, part[4096];
    size_t size = 0, n;
    FILE *out = open_memstream(&all, &size);
    fputs(bench_workloads_text, out);
    for (int i = 0; i < 2; i++) {
        FILE *in = fopen(lists[i], "rb"); /* tests run in the repository's root */
        fputc('\n', out);
        while (in && (n = fread(part, 1, sizeof part, in)) > 0)
            fwrite(part, 1, n, out);
        if (in)
            fclose(in);
    }
    fclose(out);
    n_own = bench_workloads_read(bench_workloads_text, &work, why, sizeof why);
    bench_workloads_free(work, n_own);
    n_work = bench_workloads_read(all, &work, why, sizeof why);
    free(all);
}

START_TEST(every_line_has_a_name_a_place_and_two_chains_of_one_form)
{
    ck_assert_int_ge(n_own, 24);
    ck_assert_int_ge(n_work - n_own, 57 + 60);
    for (int i = 0; i < n_work; i++) {
        struct xt_graph *g[2] = {0};
        ck_assert(*work[i].name && *work[i].where && *work[i].small);
        ck_assert_msg(!xt_parse(work[i].chain, 0, NULL, &g[0]), "%s: %s", work[i].name,
                      xt_last_error()->message);
        ck_assert_msg(!xt_parse(work[i].small, 0, NULL, &g[1]), "%s: %s", work[i].name,
                      xt_last_error()->message);
        ck_assert_msg(xt_node_count(g[0]) == xt_node_count(g[1]), "%s", work[i].name);
        for (int j = 0; j < xt_node_count(g[0]); j++) {
            struct xt_node_info a = {.size = sizeof a}, b = {.size = sizeof b};
            ck_assert(!xt_node_get(g[0], j, &a) && !xt_node_get(g[1], j, &b));
            ck_assert_msg(a.op == b.op, "%s: node %d: %s and %s", work[i].name, j, a.op_name, b.op_name);
        }
        xt_graph_free(g[0]);
        xt_graph_free(g[1]);
    }
}
END_TEST

START_TEST(the_cpu_copies_what_the_map_says)
{
    struct xti_target t;
    struct xti_map m;
    void *src[8] = {0};
    map_of(chain_of(_i), &m);
    xti_cpu_target(1, &t);
    int64_t bytes = (m.dst_hi + 1) * m.esize;
    unsigned char *before = random_bytes(bytes, 99), *want = random_bytes(bytes, 99),
                  *got = random_bytes(bytes, 99);
    for (int j = 0; j < m.n_srcs; j++)
        src[j] = random_bytes((m.src_hi[j] + 1) * m.esize, (uint64_t)j);
    xti_map_eval(&m, want, (const void *const *)src);
    for (int isa = 0; isa < XTI_ISA_COUNT; isa++) {
        if (!xti_cpu_has((enum xti_isa)isa))
            continue;
        struct xti_err err = {0};
        struct xti_plan p;
        t.isa = (enum xti_isa)isa;
        memcpy(got, before, (size_t)bytes);
        ck_assert_msg(!xti_plan_make(&m, &t, &p, &err), "%s: %s", chain_of(_i), err.e.message);
        xti_cpu_run(&p, got, (const void *const *)src, NULL);
        ck_assert_msg(!memcmp(want, got, (size_t)bytes), "%s: %s: %s", xti_isa_name[isa],
                      xti_plan_strategy(&p), chain_of(_i));
        xti_plan_free(&p);
    }
    for (int j = 0; j < m.n_srcs; j++)
        free(src[j]);
    free(before);
    free(want);
    free(got);
    xti_map_free(&m);
}
END_TEST

static const int sm[] = {75, 90, 120};

static void prove(const struct xti_map *m, int i, int arch, bool misaligned)
{
    struct proof p;
    bool ok = cuda_prove(m, sm[arch], misaligned, &p);
    ck_assert_msg(ok, "%s, sm_%d, %s: %s", chain_of(i), sm[arch], p.strategy, p.error);
    printf("note: %-20s sm_%-3d%s %-12s sectors x ideal: loads %5.2f stores %5.2f\n", work[i].name, sm[arch],
           misaligned ? " _e" : "   ", p.strategy, p.load_ratio, p.store_ratio);
}

START_TEST(the_ptx_copies_what_the_map_says)
{
    struct xti_map m;
    if (cuda_prove_unable())
        return;
    map_of(chain_of(_i), &m);
    for (int arch = 0; arch < 3; arch++)
        prove(&m, _i, arch, (_i + arch) % 2);
    xti_map_free(&m);
}
END_TEST

START_TEST(the_ptx_of_other_lists_does_too)
{
    struct xti_map m;
    bool sampled = strncmp(work[_i].name, "ttc", 3) || _i % 3 == 0 || test_full();
    if (cuda_prove_unable() || !sampled)
        return;
    map_of(chain_of(_i), &m);
    prove(&m, _i, _i % 3, _i / 3 % 2);
    xti_map_free(&m);
}
END_TEST

int main(void)
{
    read_lists();
    Suite *s = suite_create("workloads");
    TCase *c = tcase_create("workloads");
    tcase_set_timeout(c, 1200);
    tcase_add_test(c, every_line_has_a_name_a_place_and_two_chains_of_one_form);
    tcase_add_loop_test(c, the_cpu_copies_what_the_map_says, 0, n_work);
    tcase_add_loop_test(c, the_ptx_copies_what_the_map_says, 0, n_own);
    tcase_add_loop_test(c, the_ptx_of_other_lists_does_too, n_own, n_work);
    suite_add_tcase(s, c);
    if (cuda_prove_unable())
        printf("skipped: workloads in the PTX interpreter: %s\n", cuda_prove_unable());
    int failed = run_suite(s);
    bench_workloads_free(work, n_work);
    return failed;
}
