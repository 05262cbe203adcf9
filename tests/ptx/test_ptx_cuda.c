/* test_ptx_cuda.c: kernels compiled by NVRTC for both of its code generators, run and checked byte by byte,
 * and kernels with one mistake each. Without NVRTC every case is skipped; test_ptx_text.c needs no CUDA. */
#include "testing.h"

/* The leak checker's tracer now and then dies on the threads that NVRTC leaves in a forked test ("Tracer
 * caught signal 11"). The same code is checked for leaks by the tests that need no CUDA. */
__attribute__((visibility("default"))) const char *__asan_default_options(void); /* the runtime looks it up */
const char *__asan_default_options(void) { return "detect_leaks=0"; }

static const char *const archs[] = {"compute_75", "compute_90", "compute_120"};
enum { N_ARCHS = sizeof archs / sizeof *archs };

static uint64_t ceil_div(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

START_TEST(contiguous_copy_with_a_tail_moves_each_byte_once)
{
    static const size_t sizes[] = {1, 15, 16, 17, 4096, 10007};
    struct ptx_module *m = load_cuda(KERNELS "copy_vector.cu", archs[_i], NULL);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t n = sizes[k];
        unsigned char *src = malloc(n), *dst = calloc(1, n);
        fill_random(src, n, n);
        struct ptx_world *w =
            ptx_world_new((struct ptx_buffer[]){{dst, n, 1, 0, NULL}, {src, n, 0, 0, NULL}}, 2);
        struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0), VALUE(n)};
        struct ptx_launch l = {
            "copy_vector", {(uint32_t)ceil_div(n / 16 + n % 16, 256), 1, 1}, {256, 1, 1}, 0, params, 3, 0};
        struct ptx_report r;
        run_fine(w, m, &l, 1, &r);
        ck_assert_mem_eq(dst, src, n);
        ck_assert_uint_eq(r.load_bytes, n);
        ck_assert_uint_eq(r.store_bytes, n);
        if (n == 4096)
            ck_assert_uint_eq(r.load_sectors, n / 32);
        ptx_world_free(w);
        free(src);
        free(dst);
    }
    ptx_free(m);
}
END_TEST

START_TEST(vector_copy_from_a_pointer_that_is_only_word_aligned_is_misaligned)
{
    unsigned char src[1024 + 4] = {0}, dst[1024];
    size_t n = 1024;
    struct ptx_module *m = load_cuda(KERNELS "copy_vector.cu", archs[_i], NULL);
    struct ptx_world *w =
        ptx_world_new((struct ptx_buffer[]){{dst, sizeof dst, 1, 0, NULL}, {src, sizeof src, 0, 0, NULL}}, 2);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 4), VALUE(n)};
    struct ptx_launch l = {"copy_vector", {1, 1, 1}, {256, 1, 1}, 0, params, 3, 0};
    struct ptx_report r;
    ck_assert_int_eq(fault_of(w, m, &l, &r), PTX_MISALIGNED);
    ck_assert_msg(strstr(r.error, "buffer 1+4 (of 1028 bytes) needs a multiple of 16") != NULL, "%s",
                  r.error);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

static struct ptx_report transpose(const char *file, const char *arch, const char *define, uint32_t rows,
                                   uint32_t cols, uint32_t tile, uint32_t bx, uint32_t by)
{
    struct ptx_module *m = load_cuda(file, arch, define);
    size_t bytes = (size_t)rows * cols * 4;
    uint32_t *src = malloc(bytes), *dst = calloc(1, bytes);
    fill_random(src, bytes, rows * 1000 + cols);
    struct ptx_world *w =
        ptx_world_new((struct ptx_buffer[]){{dst, bytes, 1, 0, NULL}, {src, bytes, 0, 0, NULL}}, 2);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0), VALUE(rows), VALUE(cols)};
    struct ptx_launch l = {"transpose",
                           {(uint32_t)ceil_div(cols, tile), (uint32_t)ceil_div(rows, tile), 1},
                           {bx, by, 1},
                           0,
                           params,
                           4,
                           0};
    struct ptx_report r;
    run_fine(w, m, &l, 1, &r);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < cols; j++)
            ck_assert_msg(dst[(size_t)j * rows + i] == src[(size_t)i * cols + j], "row %u column %u", i, j);
    ck_assert_uint_eq(r.load_bytes, bytes);
    ck_assert_uint_eq(r.store_bytes, bytes);
    ptx_world_free(w);
    ptx_free(m);
    free(src);
    free(dst);
    return r;
}

START_TEST(padded_transpose_has_no_bank_conflicts_and_no_wasted_sectors)
{
    struct ptx_report r =
        transpose(KERNELS "transpose_padded.cu", archs[_i], "-DPITCH=33", 96, 64, 32, 32, 8);
    ck_assert_uint_eq(r.shared_load_wavefronts, r.shared_load_ideal);
    ck_assert_uint_eq(r.shared_store_wavefronts, r.shared_store_ideal);
    ck_assert_uint_eq(r.shared_load_requests, 96 * 64 / 32);
    ck_assert_uint_eq(r.load_sectors * 32, r.load_bytes);
    ck_assert_uint_eq(r.store_sectors * 32, r.store_bytes);
    ck_assert_uint_eq(r.barriers, 6);
    transpose(KERNELS "transpose_padded.cu", archs[_i], "-DPITCH=33", 37, 71, 32, 32, 8);
}
END_TEST

START_TEST(unpadded_transpose_shows_its_32_way_bank_conflict)
{
    struct ptx_report r =
        transpose(KERNELS "transpose_padded.cu", archs[_i], "-DPITCH=32", 96, 64, 32, 32, 8);
    ck_assert_uint_eq(r.shared_load_wavefronts, 32 * r.shared_load_ideal);
    ck_assert_uint_eq(r.shared_store_wavefronts, r.shared_store_ideal);
    ck_assert_int_gt(r.worst_shared_line, 0);
}
END_TEST

START_TEST(swizzled_transpose_is_free_of_conflicts_with_vectors_on_both_sides)
{
    struct ptx_report r = transpose(KERNELS "transpose_swizzled.cu", archs[_i], NULL, 128, 192, 64, 256, 1);
    ck_assert_uint_eq(r.shared_load_wavefronts, r.shared_load_ideal);
    ck_assert_uint_eq(r.shared_store_wavefronts, r.shared_store_ideal);
    ck_assert_uint_eq(r.load_sectors * 32, r.load_bytes);
    ck_assert_uint_eq(r.store_sectors * 32, r.store_bytes);
    ck_assert_uint_eq(r.load_requests, 128 * 192 / 4 / 32);
    transpose(KERNELS "transpose_swizzled.cu", archs[_i], NULL, 100, 68, 64, 256, 1);
}
END_TEST

struct view {
    int64_t n[8], stride[8], offset;
    int rank;
};

/* A permuted, partly reversed view of a 4-d array, run through `entry`. */
static void gather(const char *entry, const char *arch, int expect_local)
{
    enum { A = 3, B = 5, C = 4, D = 7, TOTAL = A * B * C * D };
    struct ptx_module *m = load_cuda(KERNELS "gather_divide.cu", arch, NULL);
    struct view v = {{D, B, A, C}, {-1, C * D, B * C * D, D}, D - 1, 4};
    uint16_t src[TOTAL], dst[TOTAL] = {0};
    int64_t total = TOTAL;
    fill_random(src, sizeof src, 5);
    struct ptx_world *w =
        ptx_world_new((struct ptx_buffer[]){{dst, sizeof dst, 1, 0, NULL}, {src, sizeof src, 0, 0, NULL}}, 2);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0), VALUE(v), VALUE(total)};
    struct ptx_launch l = {entry, {(uint32_t)ceil_div(TOTAL, 128), 1, 1}, {128, 1, 1}, 0, params, 4, 0};
    struct ptx_report r;
    run_fine(w, m, &l, 1, &r);
    ck_assert_int_eq(r.local_requests != 0, expect_local);
    for (int i = 0; i < TOTAL; i++) {
        int c = i % C, a = i / C % A, b = i / C / A % B, d = i / C / A / B;
        ck_assert_uint_eq(dst[i], src[((a * B + b) * C + c) * D + (D - 1 - d)]);
    }
    ptx_world_free(w);
    ptx_free(m);
}

START_TEST(gather_by_64_bit_division_reads_a_struct_of_arrays_in_parameter_space)
{
    gather("gather", archs[_i], 0);
}
END_TEST

START_TEST(gather_with_an_indexed_local_array_reports_local_traffic) { gather("gather_local", archs[_i], 1); }
END_TEST

static uint32_t reverse_bits(uint32_t v)
{
    uint32_t d = 0;
    for (int i = 0; i < 32; i++, v >>= 1)
        d = d << 1 | (v & 1);
    return d;
}

START_TEST(pieces_chosen_by_a_switch_are_each_right)
{
    enum { N = 77 };
    struct ptx_module *m = load_cuda(KERNELS "pieces_switch.cu", archs[_i], NULL);
    uint32_t src[N], dst[9 * N] = {0}, n = N;
    fill_random(src, sizeof src, 6);
    src[3] = 0;
    struct ptx_world *w =
        ptx_world_new((struct ptx_buffer[]){{dst, sizeof dst, 1, 0, NULL}, {src, sizeof src, 0, 0, NULL}}, 2);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0), VALUE(n)};
    struct ptx_launch l = {"pieces", {6, 1, 1}, {128, 1, 1}, 0, params, 3, 0};
    struct ptx_report r;
    run_fine(w, m, &l, 1, &r);
    for (uint32_t k = 0; k < N; k++) {
        uint32_t a = src[k], b = src[N - 1 - k], s = k & 31;
        uint32_t mixed = (a & 255) | (b & 255) << 8 | (a >> 8 & 255) << 16 | (b >> 8 & 255) << 24;
        uint32_t funnel = s ? b << s | a >> (32 - s) : b;
        uint32_t want[9] = {a,
                            b,
                            a + b,
                            ~a,
                            reverse_bits(a),
                            mixed,
                            funnel,
                            src[k / 3 * 3] >> s,
                            (uint32_t)(a ? __builtin_clz(a) : 32) * 100 + (uint32_t)__builtin_popcount(a)};
        for (int p = 0; p < 9; p++)
            ck_assert_msg(dst[(uint32_t)p * N + k] == want[p], "piece %d, element %u", p, k);
    }
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(initialised_constant_and_device_tables_are_read)
{
    static const uint32_t from[8] = {3, 1, 7, 5, 0, 2, 6, 4}, add[5] = {100, 200, 300, 400, 500};
    uint32_t src[128], dst[128];
    struct ptx_module *m = load_cuda(KERNELS "tables.cu", archs[_i], NULL);
    fill_random(src, sizeof src, 7);
    struct ptx_world *w =
        ptx_world_new((struct ptx_buffer[]){{dst, sizeof dst, 1, 0, NULL}, {src, sizeof src, 0, 0, NULL}}, 2);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0)};
    struct ptx_launch l = {"tables", {2, 1, 1}, {64, 1, 1}, 0, params, 2, 0};
    struct ptx_report r;
    run_fine(w, m, &l, 1, &r);
    for (uint32_t i = 0; i < 128; i++)
        ck_assert_uint_eq(dst[i], src[i / 8 * 8 + from[i % 8]] + add[i % 5]);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

/* Runs copy_async.cu over `n` source bytes; the output is padded with zeros. */
static enum ptx_fault copy_async(const char *arch, const char *wait, size_t n, struct ptx_report *r)
{
    enum { THREADS = 128, STEPS = 3, BLOCKS = 2, BYTES = THREADS * STEPS * BLOCKS * 16 };
    struct ptx_module *m = load_cuda(KERNELS "copy_async.cu", arch, wait);
    unsigned char *src = malloc(n), *dst = calloc(1, BYTES);
    int64_t bytes = (int64_t)n;
    int steps = STEPS;
    fill_random(src, n, n);
    struct ptx_world *w =
        ptx_world_new((struct ptx_buffer[]){{dst, BYTES, 1, 0, NULL}, {src, n, 0, 0, NULL}}, 2);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0), VALUE(bytes), VALUE(steps)};
    struct ptx_launch l = {"copy_async", {BLOCKS, 1, 1}, {THREADS, 1, 1}, 2 * THREADS * 16, params, 4, 0};
    enum ptx_fault fault = fault_of(w, m, &l, r);
    for (size_t i = 0; fault == PTX_FINE && i < BYTES; i++) {
        size_t at = i ^ 16; /* neighbours exchange their 16 bytes */
        ck_assert_msg(dst[i] == (at < n ? src[at] : 0), "byte %zu", i);
    }
    ptx_world_free(w);
    ptx_free(m);
    free(src);
    free(dst);
    return fault;
}

START_TEST(double_buffered_cp_async_fills_with_zeros_past_the_end)
{
    struct ptx_report r;
    const char *arch = _i ? "compute_120" : "compute_90";
    ck_assert_msg(copy_async(arch, NULL, 12288, &r) == PTX_FINE, "%s", r.error);
    ck_assert_uint_eq(r.load_bytes, 12288);
    ck_assert_uint_eq(r.load_sectors, 12288 / 32);
    ck_assert_uint_eq(r.shared_store_wavefronts, r.shared_store_ideal);
    ck_assert_msg(copy_async(arch, NULL, 9001, &r) == PTX_FINE, "%s", r.error);
    ck_assert_msg(copy_async(arch, NULL, 1, &r) == PTX_FINE, "%s", r.error);
}
END_TEST

START_TEST(reading_a_stage_before_its_copy_arrived_is_a_race)
{
    struct ptx_report r;
    ck_assert_int_eq(copy_async(_i ? "compute_120" : "compute_90", "-DWAIT=2", 12288, &r), PTX_RACE);
    ck_assert_msg(strstr(r.error, "cp.async not waited for") != NULL, "%s", r.error);
}
END_TEST

START_TEST(copies_of_32_bytes_cost_half_the_requests_from_sm_100_on)
{
    uint32_t src[256], dst[256];
    struct ptx_module *m = load_cuda(KERNELS "wide.cu", archs[_i], NULL);
    fill_random(src, sizeof src, 8);
    struct ptx_world *w =
        ptx_world_new((struct ptx_buffer[]){{dst, sizeof dst, 1, 0, NULL}, {src, sizeof src, 0, 0, NULL}}, 2);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0)};
    struct ptx_launch l = {"copy_wide", {1, 1, 1}, {32, 1, 1}, 0, params, 2, 0};
    struct ptx_report r;
    run_fine(w, m, &l, 1, &r);
    ck_assert_mem_eq(dst, src, sizeof src);
    ck_assert_uint_eq(r.load_sectors, strcmp(archs[_i], "compute_120") ? 64 : 32);
    ck_assert_uint_eq(r.load_requests, strcmp(archs[_i], "compute_120") ? 2 : 1);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(shuffles_ballots_and_warp_barriers_exchange_values_inside_a_warp)
{
    uint32_t src[256], dst[3][256], v[256];
    struct ptx_module *m = load_cuda(KERNELS "warp.cu", archs[_i], NULL);
    fill_random(src, sizeof src, 9);
    struct ptx_world *w = ptx_world_new((struct ptx_buffer[]){{dst[0], sizeof dst[0], 1, 0, NULL},
                                                              {dst[1], sizeof dst[1], 1, 0, NULL},
                                                              {dst[2], sizeof dst[2], 1, 0, NULL},
                                                              {src, sizeof src, 0, 0, NULL}},
                                        4);
    struct ptx_param shuffle[] = {pointer_to(0, 0), pointer_to(3, 0)};
    struct ptx_param syncwarp[] = {pointer_to(1, 0), pointer_to(3, 0)};
    struct ptx_param ballot[] = {pointer_to(2, 0), pointer_to(3, 0)};
    struct ptx_report r;
    run_fine(w, m, &(struct ptx_launch){"shuffle", {1, 1, 1}, {256, 1, 1}, 0, shuffle, 2, 0}, 0, &r);
    run_fine(w, m, &(struct ptx_launch){"syncwarp", {1, 1, 1}, {256, 1, 1}, 0, syncwarp, 2, 0}, 0, &r);
    run_fine(w, m, &(struct ptx_launch){"ballot", {1, 1, 1}, {256, 1, 1}, 0, ballot, 2, 0}, 1, &r);
    for (uint32_t i = 0; i < 256; i++)
        v[i] = src[i ^ 5] + (i % 32 < 29 ? src[(i + 3) ^ 5] : src[i ^ 5]);
    for (uint32_t i = 0; i < 256; i++) {
        ck_assert_uint_eq(dst[0][i], v[i] + v[i / 16 * 16 + 7]);
        ck_assert_uint_eq(dst[1][i], src[i / 32 * 32 + 31 - ((i % 32) ^ 1)] * 3);
        uint32_t thirds = 0, large = 0;
        for (uint32_t l = 0; l < 32; l++) {
            thirds |= (uint32_t)(src[i / 32 * 32 + l] % 3 == 0) << l;
            large |= (uint32_t)(src[i / 32 * 32 + l] > 1u << 30) << l;
        }
        ck_assert_uint_eq(dst[2][i], thirds + 5 * large);
    }
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(parameters_of_all_sizes_arrive)
{
    struct pair {
        signed char c;
        int16_t s;
        int32_t i;
        int64_t l;
    } p = {-3, -30000, 1 << 30, -(1ll << 60)};
    struct row {
        int64_t a, b, c, s, i, l;
        double d;
        float x, f;
        double g, h;
    } dst[4];
    float c = 1.25f, f[4] = {1, -2, 3.5f, 0};
    double d = -2.5, g[4] = {4, 5, -6, 7};
    signed char a = -100;
    uint16_t b = 65000;
    struct ptx_module *m = load_cuda(KERNELS "arguments.cu", archs[_i], NULL);
    struct ptx_world *w = ptx_world_new((struct ptx_buffer[]){{dst, sizeof dst, 1, 0, NULL},
                                                              {f, sizeof f, 0, 0, NULL},
                                                              {g, sizeof g, 0, 0, NULL}},
                                        3);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0), pointer_to(2, 0), VALUE(a),
                                 VALUE(b),         VALUE(c),         VALUE(d),         VALUE(p)};
    struct ptx_launch l = {"arguments", {1, 1, 1}, {4, 1, 1}, 0, params, 8, 0};
    struct ptx_report r;
    run_fine(w, m, &l, 1, &r);
    for (int i = 0; i < 4; i++) {
        struct row want = {a, b, p.c, p.s, p.i, p.l, d, c, f[i], g[i], i ? 0.5 : g[0]};
        ck_assert_mem_eq(&dst[i], &want, sizeof want);
    }
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

static const struct mistake {
    const char *entry;
    enum ptx_fault fault;
} mistakes[] = {
    {"past_the_end", PTX_OUT_OF_BOUNDS},
    {"before_the_start", PTX_OUT_OF_BOUNDS},
    {"misaligned_vector", PTX_MISALIGNED},
    {"missing_barrier", PTX_RACE},
    {"missing_warp_barrier", PTX_RACE},
    {"overwrites_before_read", PTX_RACE},
    {"written_twice", PTX_WRITTEN_TWICE},
    {"one_not_written", PTX_NOT_WRITTEN},
    {"writes_gap", PTX_FORBIDDEN},
    {"writes_source", PTX_FORBIDDEN},
    {"reads_destination", PTX_FORBIDDEN},
    {"uninitialised_shared", PTX_UNINITIALISED},
    {"past_shared", PTX_OUT_OF_BOUNDS},
    {"uninitialised_local", PTX_UNINITIALISED},
    {"divergent_barrier", PTX_DIVERGED},
    {"endless", PTX_ENDLESS},
    {"traps", PTX_TRAPPED},
    {"divides_by_zero", PTX_TRAPPED},
};
enum { N_MISTAKES = sizeof mistakes / sizeof *mistakes };

START_TEST(a_broken_kernel_is_reported_as_the_fault_it_has)
{
    const struct mistake *k = &mistakes[_i / N_ARCHS];
    uint32_t src[128], dst[128] = {0}, n = 128;
    unsigned char all_but_one_word[sizeof dst];
    memset(all_but_one_word, 1, sizeof all_but_one_word);
    memset(all_but_one_word + 90 * 4, 0, 4);
    fill_random(src, sizeof src, 1);
    struct ptx_module *m = load_cuda(KERNELS "broken.cu", archs[_i % N_ARCHS], NULL);
    struct ptx_buffer buffers[] = {
        {dst, sizeof dst, 1, 0, strcmp(k->entry, "writes_gap") ? NULL : all_but_one_word},
        {src, sizeof src, 0, 0, NULL}};
    struct ptx_world *w = ptx_world_new(buffers, 2);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0), VALUE(n)};
    struct ptx_launch l = {k->entry, {2, 1, 1}, {64, 1, 1}, 0, params, 3, 20000};
    struct ptx_report r;
    enum ptx_fault fault = fault_of(w, m, &l, &r);
    ck_assert_msg(fault == k->fault, "%s on %s: expected %s, found: %s", k->entry, archs[_i % N_ARCHS],
                  ptx_fault_name(k->fault), r.error);
    if (getenv("PTX_SHOW_ERRORS"))
        printf("%s\n", r.error);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(an_instruction_that_is_not_modelled_is_refused_when_loaded)
{
    char *text = compile_file(KERNELS "unknown.cu", archs[_i], NULL), err[256];
    struct ptx_module *m;
    ck_assert_int_ne(ptx_load(text, &m, err, sizeof err), 0);
    ck_assert_ptr_null(m);
    ck_assert_msg(strstr(err, "instruction not understood: atom.global.add.u32") != NULL, "%s", err);
    free(text);
}
END_TEST

int main(void)
{
    if (!ptx_nvrtc_present()) {
        printf("skipped: ptx_cuda: no NVRTC library\n");
        return EXIT_SUCCESS;
    }
    Suite *s = suite_create("ptx_cuda");
    TCase *c = tcase_create("nvrtc");
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    tcase_add_loop_test(c, contiguous_copy_with_a_tail_moves_each_byte_once, 0, N_ARCHS);
    tcase_add_loop_test(c, vector_copy_from_a_pointer_that_is_only_word_aligned_is_misaligned, 0, N_ARCHS);
    tcase_add_loop_test(c, padded_transpose_has_no_bank_conflicts_and_no_wasted_sectors, 0, N_ARCHS);
    tcase_add_loop_test(c, unpadded_transpose_shows_its_32_way_bank_conflict, 0, N_ARCHS);
    tcase_add_loop_test(c, swizzled_transpose_is_free_of_conflicts_with_vectors_on_both_sides, 0, N_ARCHS);
    tcase_add_loop_test(c, gather_by_64_bit_division_reads_a_struct_of_arrays_in_parameter_space, 0, N_ARCHS);
    tcase_add_loop_test(c, gather_with_an_indexed_local_array_reports_local_traffic, 0, N_ARCHS);
    tcase_add_loop_test(c, pieces_chosen_by_a_switch_are_each_right, 0, N_ARCHS);
    tcase_add_loop_test(c, initialised_constant_and_device_tables_are_read, 0, N_ARCHS);
    tcase_add_loop_test(c, double_buffered_cp_async_fills_with_zeros_past_the_end, 0, 2);
    tcase_add_loop_test(c, reading_a_stage_before_its_copy_arrived_is_a_race, 0, 2);
    tcase_add_loop_test(c, copies_of_32_bytes_cost_half_the_requests_from_sm_100_on, 0, N_ARCHS);
    tcase_add_loop_test(c, shuffles_ballots_and_warp_barriers_exchange_values_inside_a_warp, 0, N_ARCHS);
    tcase_add_loop_test(c, parameters_of_all_sizes_arrive, 0, N_ARCHS);
    tcase_add_loop_test(c, a_broken_kernel_is_reported_as_the_fault_it_has, 0, N_MISTAKES * N_ARCHS);
    tcase_add_loop_test(c, an_instruction_that_is_not_modelled_is_refused_when_loaded, 0, N_ARCHS);
    return run_suite(s);
}
