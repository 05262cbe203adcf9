/* test_transactions.c: the instrument behind `make transactions`: a sample of all blocks counts what the
 * proof of the whole launch counts, wrong bytes are seen, and a cubin says of known kernels what is known of
 * them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "support/block_sample.h"
#include "cuda/cubin.h"
#include "support/cuda_made.h"

static struct bench_workload *work;
static int n_work;

static void sample_fine(const struct xti_map *m, enum xti_cuda_tier tier, int n, struct block_sample *s)
{
    struct block_sample_options opt = {.target = {.sm = 90}, .tier = tier, .seed = 1, .blocks = n};
    ck_assert_msg(block_sample(m, &opt, s), "%s", s->error);
}

/* Requests for each distinct sector, of the whole launch. */
START_TEST(a_sample_of_all_blocks_counts_what_the_proof_counts)
{
    struct xti_map m;
    struct block_sample s;
    struct proof p;
    if (cuda_skipped())
        return;
    map_of(work[2 * _i].small, &m);
    struct proof_options opt = {.tier = _i % 2 ? PROOF_STRUCTURE : PROOF_EXACT};
    sample_fine(&m, _i % 2 ? XTI_TIER_STRUCTURE : XTI_TIER_EXACT, 1 << 20, &s);
    ck_assert_msg(cuda_prove_with(&m, 90, &opt, &p), "%s", p.error);
    ck_assert_int_eq(p.tier, s.tier);
    ck_assert_int_eq(s.sampled, s.blocks);
    ck_assert_double_eq_tol(s.store_ratio, p.store_ratio, 1e-9);
    /* Readers are counted of every 31st element. */
    double loads = s.load_ratio * s.rereads, tolerance = s.rereads == 1 ? 1e-9 : 0.2 * loads;
    if (p.report.load_sectors)
        ck_assert_double_eq_tol(loads, p.load_ratio, tolerance);
    ck_assert_double_eq_tol(s.instructions_per_16b,
                            (double)p.report.instructions * 16 / (double)(m.numel * m.esize), 1e-6);
    xti_map_free(&m);
}
END_TEST

/* A sample of the full chain differs little from a larger one; a copy by 16 bytes is 1 in all. */
START_TEST(figures_of_full_size_chains_are_those_counted_by_hand)
{
    static const struct {
        const char *line, *family;
        double loads, stores, rereads, banks;
    } cases[] = {
        {"x: f32[64,1024,1024]; x", "contiguous", 1, 1, 1, 1},
        {"x: f16[48,8,1024,128]; x.unsqueeze(2).expand(48,8,4,1024,128)", "rows", 1, 1, 4, 1},
        {"x: f32[20971520]; x.unfold(0,1024,256)", "rows", 1, 1, 4, 1},
        {"x: f32[8192]; x.unsqueeze(0).expand(12800,8192)", "rows", 1, 1, 12800, 1},
    };
    struct xti_map m;
    struct block_sample s;
    if (cuda_skipped())
        return;
    map_of(cases[_i].line, &m);
    sample_fine(&m, XTI_TIER_EXACT, 64, &s);
    ck_assert_str_eq(s.family, cases[_i].family);
    ck_assert_double_eq_tol(s.load_ratio, cases[_i].loads, 1e-9);
    ck_assert_double_eq_tol(s.store_ratio, cases[_i].stores, 1e-9);
    ck_assert_double_eq_tol(s.rereads, cases[_i].rereads, 0.01 * cases[_i].rereads);
    ck_assert_double_eq_tol(s.wavefront_ratio, cases[_i].banks, 1e-9);
    ck_assert_int_eq(s.spill_bytes, 0);
    ck_assert_int_gt(s.registers, 8);
    xti_map_free(&m);
}
END_TEST

/* Runs that begin anywhere end in sectors that two boxes write: the planner knows, and both estimates do. */
START_TEST(sectors_that_two_blocks_store_make_the_estimate_worse)
{
    struct xti_map m;
    struct block_sample even, odd;
    if (cuda_skipped())
        return;
    map_of("x: u8[16384,16384]; x.permute(1,0)", &m);
    sample_fine(&m, XTI_TIER_EXACT, 16, &even);
    xti_map_free(&m);
    map_of("x: u8[16383,16381]; x.permute(1,0)", &m);
    sample_fine(&m, XTI_TIER_EXACT, 16, &odd);
    xti_map_free(&m);
    ck_assert_double_eq(even.store_parts, 0);
    ck_assert_double_gt(odd.store_parts, 0.3);
    ck_assert_double_gt(even.estimate, 0.9);
    ck_assert_double_gt(even.planned, 0.9);
    ck_assert_double_lt(odd.estimate, 0.7);
    ck_assert_double_lt(odd.planned, 0.7);
}
END_TEST

/* The library takes the file in place of the source it made. */
START_TEST(a_kernel_that_copies_another_element_is_found_out)
{
    static const char right[] = "v[j] = XT_LOAD(s[j]);", wrong[] = "v[j] = XT_LOAD(s[j]^1);";
    char dir[] = "/tmp/xt-transactions-XXXXXX", path[64];
    struct made k;
    struct block_sample s;
    if (cuda_skipped())
        return;
    make("x: f32[64,1024,1024]; x[:, 1:]", &k);
    for (char *name = k.source.s; (name = strstr(name, "xt_test_"));)
        memcpy(name, "xt_rows_", 8);
    char *at = strstr(k.source.s, right);
    ck_assert_ptr_nonnull(at);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/xt_rows_00000000.cu", dir);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%.*s%s%s", (int)(at - k.source.s), k.source.s, wrong, at + strlen(right));
    fclose(f);
    setenv("XT_OVERRIDE", dir, 1);
    struct block_sample_options opt = {.target = {.sm = 90}, .tier = XTI_TIER_EXACT, .seed = 1, .blocks = 64};
    bool ok = block_sample(&k.map, &opt, &s);
    unsetenv("XT_OVERRIDE");
    unlink(path);
    rmdir(dir);
    ck_assert(!ok);
    ck_assert_msg(strstr(s.error, "of the destination is not element") != NULL, "%s", s.error);
    drop(&k);
}
END_TEST

#define LOAD(i)                                                                                              \
    "asm volatile(\"ld.global.v4.u32 {%0,%1,%2,%3}, [%4];\" : \"=r\"(v" #i ".x), \"=r\"(v" #i                \
    ".y), \"=r\"(v" #i ".z), \"=r\"(v" #i ".w) : \"l\"(s + 256 * " #i ") : \"memory\");\n"
#define STORE(i)                                                                                             \
    "asm volatile(\"st.global.v4.u32 [%0], {%1,%2,%3,%4};\" :: \"l\"(d + 256 * " #i "), \"r\"(v" #i          \
    ".x), \"r\"(v" #i ".y), \"r\"(v" #i ".z), \"r\"(v" #i ".w) : \"memory\");\n"
#define ENTRY(body)                                                                                          \
    "struct w4 { unsigned x, y, z, w; };\nextern \"C\" __global__ void __launch_bounds__(256) k(w4 *d, "     \
    "const w4 *s)\n{\n    w4 v0, v1;\n    d += threadIdx.x; s += threadIdx.x;\n" body "}\n"

START_TEST(a_cubin_tells_order_of_accesses_shared_memory_and_stack)
{
    static const struct {
        const char *source;
        bool sunk;
        int loads, stores;
        size_t shared;
        bool local;
    } cases[] = {
        {ENTRY(LOAD(0) LOAD(1) STORE(0) STORE(1)), false, 2, 2, 0, false},
        {ENTRY(LOAD(0) STORE(0) LOAD(1) STORE(1)), true, 2, 2, 0, false},
        {ENTRY(LOAD(0) STORE(0) "__syncthreads();\n" LOAD(1) STORE(1)), false, 2, 2, 0, false},
        {ENTRY("__shared__ w4 t[512]; " LOAD(0) "t[threadIdx.x] = v0; __syncthreads(); v0 = t[threadIdx.x ^ "
                                                "99];" STORE(0)),
         false, 1, 1, 8192, false},
        {ENTRY("volatile unsigned t[64]; " LOAD(0) "for (int i = 0; i < 64; i++) t[(i + v0.x) % 64] = i;"
                                                   "v0.y = t[v0.y % 64];" STORE(0)),
         false, 1, 1, 0, true},
    };
    static const int sm[] = {75, 80, 90, 120};
    if (cuda_skipped())
        return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int j = 0; j < 4; j++) {
            struct xti_code code;
            struct xti_err err = {0};
            struct xti_cubin_entry e;
            ck_assert_msg(
                !xti_nvrtc_compile(xti_nvrtc_for(sm[j], 0, NULL), cases[i].source, "k", sm[j], &code, &err),
                "%s", err.e.message);
            ck_assert(xti_cubin_read(code.cubin, code.cubin_bytes, "k", &e));
            ck_assert(xti_cubin_read(code.cubin, code.cubin_bytes, "k", &e));
            ck_assert_msg(e.loads == cases[i].loads && e.stores == cases[i].stores, "%d, sm_%d: %d, %d",
                          (int)i, sm[j], e.loads, e.stores);
            ck_assert_msg(e.store_before_load == cases[i].sunk, "%d, sm_%d", (int)i, sm[j]);
            ck_assert_msg(e.shared_bytes - cases[i].shared <= 1024, "%d, sm_%d: %d", (int)i, sm[j],
                          (int)e.shared_bytes);
            ck_assert_msg((e.local_bytes >= 256) == cases[i].local, "%d, sm_%d: %d", (int)i, sm[j],
                          e.local_bytes);
            ck_assert(e.registers >= 8 && e.registers <= 64);
            xti_code_free(&code);
        }
}
END_TEST

START_TEST(damaged_cubins_are_refused_or_read_but_never_crash)
{
    struct xti_code code;
    struct xti_err err = {0};
    struct xti_cubin_entry e;
    uint64_t seed = 7;
    if (cuda_skipped())
        return;
    ck_assert(!xti_nvrtc_compile(xti_nvrtc_for(90, 0, NULL), ENTRY(LOAD(0) STORE(0)), "k", 90, &code, &err));
    ck_assert(!xti_cubin_read(code.cubin, code.cubin_bytes, "other", &e));
    unsigned char *bytes = code.cubin, *copy = malloc(code.cubin_bytes);
    for (int i = 0; i < 20000; i++) {
        size_t n = i % 3 ? code.cubin_bytes : (size_t)random_below(&seed, (int64_t)code.cubin_bytes);
        memcpy(copy, bytes, n);
        for (int k = 0; n && k < 3; k++)
            copy[random_below(&seed, (int64_t)n)] = (unsigned char)random_next(&seed);
        xti_cubin_read(copy, n, "k", &e);
    }
    free(copy);
    xti_code_free(&code);
}
END_TEST

START_TEST(resident_blocks_are_limited_by_whatever_is_scarce)
{
    static const struct {
        int registers, sm, threads, blocks;
        size_t shared;
    } cases[] = {{32, 90, 256, 8, 0},     {33, 90, 256, 6, 0},  {64, 90, 256, 4, 0}, {32, 75, 256, 4, 0},
                 {32, 120, 256, 6, 0},    {16, 90, 32, 32, 0},  {16, 75, 32, 16, 0}, {32, 90, 256, 7, 32768},
                 {32, 86, 256, 3, 32768}, {255, 90, 256, 1, 0}, {40, 90, 128, 12, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xti_cubin_entry e = {.registers = cases[i].registers, .shared_bytes = cases[i].shared};
        ck_assert_msg(xti_cubin_resident(&e, cases[i].sm, cases[i].threads) == cases[i].blocks, "case %d: %d",
                      (int)i, xti_cubin_resident(&e, cases[i].sm, cases[i].threads));
    }
}
END_TEST

int main(void)
{
    char why[256];
    n_work = bench_workloads_read(bench_workloads_text, &work, why, sizeof why);
    Suite *s = suite_create("transactions");
    TCase *c = tcase_create("transactions");
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, a_sample_of_all_blocks_counts_what_the_proof_counts, 0, n_work / 2);
    tcase_add_loop_test(c, figures_of_full_size_chains_are_those_counted_by_hand, 0, 4);
    tcase_add_test(c, sectors_that_two_blocks_store_make_the_estimate_worse);
    tcase_add_test(c, a_kernel_that_copies_another_element_is_found_out);
    tcase_add_test(c, a_cubin_tells_order_of_accesses_shared_memory_and_stack);
    tcase_add_test(c, damaged_cubins_are_refused_or_read_but_never_crash);
    tcase_add_test(c, resident_blocks_are_limited_by_whatever_is_scarce);
    suite_add_tcase(s, c);
    int failed = run_suite(s);
    bench_workloads_free(work, n_work);
    return failed;
}
