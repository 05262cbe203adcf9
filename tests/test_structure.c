/* test_structure.c: CUDA kernels whose numbers are a parameter: what decides their source, that one of them
 * serves every shape of a structure, division by numbers, and what all that costs in instructions. */
#include "base/hash.h"
#include "cuda/writer.h"
#include "support/cuda_made.h"

static const int archs[] = {75, 90, 120};
enum { N_ARCHS = 3 };

/* ----------------------------------------------------------------------------------------------- division */

static uint32_t umulhi(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }

static bool divides(struct xti_divisor d, int64_t n, int64_t i)
{
    if (i < 0 || i > INT32_MAX)
        return true;
    return umulhi(2 * (uint32_t)i, d.m) >> d.l == i / n &&
           (n == 1 || umulhi((uint32_t)i, d.m) >> (d.l - 1) == i / n);
}

/* Quotients rise by one at multiples of n and nowhere else: all is tested around those, around every multiple
 * where there are few, else around the first and the last ones and a thousand between. */
static void check_divisor(int64_t n)
{
    struct xti_divisor d = xti_divisor_of(n);
    int64_t most = INT32_MAX / n, step = most / 1500 + 1;
    bool right = divides(d, n, INT32_MAX);
    for (int64_t k = 0; k <= most; k += k < 500 ? 1 : step)
        for (int64_t e = -1; e <= 1; e++)
            right = right && divides(d, n, k * n + e) && divides(d, n, (most - k) * n + e);
    ck_assert_msg(right, "division by %lld", (long long)n);
}

START_TEST(multiplication_divides_every_index_by_every_number)
{
    uint64_t seed = 7;
    for (int64_t n = 1; n <= 1200; n++)
        check_divisor(n);
    for (int b = 1; b < 31; b++)
        for (int64_t e = -2; e <= 2; e++)
            if ((INT64_C(1) << b) + e > 0)
                check_divisor((INT64_C(1) << b) + e);
    for (int64_t e = 0; e < 5; e++)
        check_divisor(INT32_MAX - e);
    for (int i = 0; i < 500; i++)
        check_divisor(1 + (random_below(&seed, INT32_MAX) >> random_below(&seed, 31)));
}
END_TEST

/* ---------------------------------------------------------------------------------------------- structures
 */

/* Hashes of a map's key and of its source. */
struct kind {
    uint64_t key, source;
};

static uint64_t hash_of(const struct xti_str *b) { return xti_hash64(b->s, b->n); }

/* False: nothing to launch, or the exact tier serves. */
static bool kind_of(const struct xti_map *m, struct kind *k)
{
    struct xti_cuda_target t = {.sm = 90};
    struct xti_err err = {0};
    struct xti_cuda_plan p;
    struct xti_str key = {0}, source = {0};
    char name[XTI_CUDA_NAME_CHARS];
    ck_assert_msg(!xti_cuda_plan_make(m, &t, &p, &err), "%s", err.e.message);
    bool serves = p.n_steps && !xti_cuda_structure(&p, &key, NULL);
    if (serves) {
        xti_cuda_structure_name(&p, name);
        ck_assert_msg(!xti_cuda_emit(&p, XTI_TIER_STRUCTURE, name, &source, &err), "%s", err.e.message);
        *k = (struct kind){hash_of(&key), hash_of(&source)};
    }
    xti_str_free(&key);
    xti_str_free(&source);
    xti_cuda_plan_free(&p);
    return serves;
}

static int by_key(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key)
                            : (x->source > y->source) - (x->source < y->source);
}

static int by_source(const void *a, const void *b)
{
    const struct kind *x = a, *y = b;
    return x->source != y->source ? (x->source > y->source) - (x->source < y->source)
                                  : (x->key > y->key) - (x->key < y->key);
}

/* How many structures there are. Equal keys <=> equal sources. */
static int count_kinds(struct kind *k, int n)
{
    int keys = n > 0, sources = n > 0;
    qsort(k, (size_t)n, sizeof *k, by_key);
    for (int i = 1; i < n; i++) {
        keys += k[i].key != k[i - 1].key;
        ck_assert_msg(k[i].key != k[i - 1].key || k[i].source == k[i - 1].source, "equal keys, two sources");
    }
    qsort(k, (size_t)n, sizeof *k, by_source);
    for (int i = 1; i < n; i++) {
        sources += k[i].source != k[i - 1].source;
        ck_assert_msg(k[i].source != k[i - 1].source || k[i].key == k[i - 1].key, "equal sources, two keys");
    }
    ck_assert_int_eq(keys, sources);
    return keys;
}

/* clang-format off */
/* %d: the length. A new one may change widths, whether a tail or a coefficient is 0, and what a thread takes,
 * which doubles as a tensor grows. */
static const struct { const char *line; int kinds; } lengths[] = {
    {"x: f16[%d,768]; x.reshape(%d,12,64).permute(1,0,2)", 1},    /* head split */
    {"x: f16[12,%d,64]; x.permute(1,0,2).reshape(%d,768)", 1},    /* head merge */
    {"x: f16[8,%d,64]; x.permute(0,2,1)", 4}, /* K^T: runs that begin at sectors, at words, anywhere */
    {"x: f16[8,%d,64]; y: f16[8,1,64]; concat(1, x, y)", 1},      /* a key more */
    {"x: f16[8,%d,64]; x.pad((0,0),(3,7),(0,0))", 1},
    {"x: f32[64,%d]; x.pad((1,1),(3,5))", 4},                     /* three widths; sides that agree */
    {"x: f16[4,%d,64] ; x -> [4,%d,64]:[262144,64,1]+16384", 1},  /* into a cache */
    {"x: f32[4,%d,%d]; x.tril(0)", 2},                            /* rows of whole words, or not */
    {"x: u8[%d,96,3]; x.permute(2,0,1)", 2},
};
/* clang-format on */

START_TEST(two_hundred_lengths_share_a_few_sources)
{
    struct kind k[201];
    char line[256];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int n = 1000; n <= 1200; n++) {
            struct xti_map m;
            snprintf(line, sizeof line, lengths[i].line, n, n);
            map_of(line, &m);
            ck_assert_msg(kind_of(&m, &k[n - 1000]), "%s: the tier does not serve it", line);
            xti_map_free(&m);
        }
        int kinds = count_kinds(k, 201);
        printf("note: %d sources for 201 lengths: %s\n", kinds, lengths[i].line);
        ck_assert_msg(kinds <= lengths[i].kinds, "%d sources, not %d: %s", kinds, lengths[i].kinds,
                      lengths[i].line);
    }
}
END_TEST

START_TEST(equal_structures_are_equal_sources)
{
    int most = test_full() ? 100000 : 6000, n = 0;
    struct kind *k = calloc((size_t)most, sizeof *k);
    for (int i = 0; i < most; i++) {
        struct xti_map m;
        struct random_graph_options opt = {.max_numel = i % 3 ? 4096 : 1 << 20, .max_ops = 1 + i % 8};
        struct xt_graph *g = random_graph(30000 + (uint64_t)i, &opt);
        fuse(g, &m);
        n += kind_of(&m, &k[n]);
        xti_map_free(&m);
        xt_graph_free(g);
    }
    int kinds = count_kinds(k, n);
    printf("note: %d structures of %d random chains\n", kinds, n);
    ck_assert_int_gt(n, most / 2);
    ck_assert_int_lt(kinds, n * 9 / 10);
    free(k);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- kernels */

static void prove_tier(const struct xti_map *m, const char *line, int sm, struct proof_options opt,
                       struct proof *out)
{
    ck_assert_msg(cuda_prove_with(m, sm, &opt, out), "sm_%d%s: %s\n    %s", sm,
                  opt.misaligned ? " misaligned" : "", line, out->error);
    ck_assert_int_eq(out->tier, opt.tier == PROOF_EXACT ? XTI_TIER_EXACT : XTI_TIER_STRUCTURE);
}

/* Every family, of every width of index, with and without a loop of blocks; digits of one value, ragged and
 * whole edges, tails, coefficients of 0 and 1. */
static const char *const copied[] = {
    "x: f32[4099]; x",
    "x: f32[48,80]; x[:, 16:64]",
    "x: f16[40,257]; x[:, 1:256]",
    "x: u8[7,9,3,5]; x.permute(1,0,2,3).pad((1,0),(0,1),(0,0),(2,3))",
    "x: f32[33]; x.unsqueeze(1).expand(33,96)",
    "x: f16[13,69]; x.flip(1)",
    "x: f16[40,72]; x.permute(1,0)",
    "x: f16[33,34]; x.flip(1).permute(1,0)",
    "x: u8[3,70,5,24]; x.permute(0,3,2,1)",
    "x: f64[9,20]; y: f64[20,3]; concat(1, x.T, y).flip(0)",
    "x: f32[1000,3]; x[::3, ::2]",
    "x: u8[64,30,3]; x.permute(2,0,1)",
    "x: f32[6,10]; x.permute(1,0).reshape(4,15).permute(1,0)",
    "x: f32[30,40]; x.tril(1, value=3)",
    "x: c128[5,6]; x.T",
};

START_TEST(kernels_with_numbers_as_parameters_copy_what_the_map_says)
{
    struct proof p;
    if (cuda_skipped())
        return;
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
        for (int k = 0; k < 4 * N_ARCHS; k++) {
            struct proof_options opt = {.misaligned = k & 1, .wide_index = k & 2, .tier = PROOF_STRUCTURE};
            struct xti_map m;
            if (!test_full() && k % 4 != (int)i % 4)
                continue;
            opt.grid = (i + (size_t)k / 4) % 3 == 0 ? 1 + k % 3 : 0;
            map_of(copied[i], &m);
            prove_tier(&m, copied[i], archs[k / 4], opt, &p);
            xti_map_free(&m);
        }
}
END_TEST

static void concat_map(int n, struct xti_map *m)
{
    struct xt_graph *g;
    xt_node *x = calloc((size_t)n, sizeof *x);
    ck_assert_int_eq(xt_graph_new(&g), XT_OK);
    for (int i = 0; i < n; i++)
        x[i] = xt_input(g, NULL, XT_F32, 2, (int64_t[]){5, 1 + i % 7}, NULL, 0);
    xt_output(g, xt_concat(g, 1, n, x), NULL, 0);
    fuse(g, m);
    xt_graph_free(g);
    free(x);
}

START_TEST(dozens_of_pieces_read_their_rows_from_the_parameter)
{
    struct proof p;
    struct xti_map m;
    concat_map(40, &m);
    for (int k = 0; k < 2 * N_ARCHS && !cuda_prove_unable(); k++)
        prove_tier(&m, "concat of 40", archs[k / 2],
                   (struct proof_options){.misaligned = k % 2, .tier = PROOF_STRUCTURE}, &p);
    xti_map_free(&m);
}
END_TEST

START_TEST(more_numbers_than_fit_are_refused)
{
    struct xti_cuda_target t = {.sm = 90};
    struct xti_cuda_plan p;
    struct xti_map m;
    struct xti_err err = {0};
    struct xti_str text = {0};
    concat_map(200, &m);
    ck_assert_int_eq(xti_cuda_plan_make(&m, &t, &p, &err), XT_OK);
    ck_assert_int_eq(xti_cuda_structure(&p, &text, &err), XT_EUNSUPPORTED);
    ck_assert_msg(strstr(err.e.message, "200 pieces") && strstr(err.e.message, "4096 bytes"), "%s",
                  err.e.message);
    ck_assert_int_eq(xti_cuda_emit(&p, XTI_TIER_STRUCTURE, "n", &text, NULL), XT_EUNSUPPORTED);
    ck_assert_ptr_null(text.s);
    err = (struct xti_err){0};
    ck_assert_int_eq(xti_cuda_emit(&p, XTI_TIER_EXACT, "n", &text, &err), XT_OK);
    xti_str_free(&text);
    xti_cuda_plan_free(&p);
    xti_map_free(&m);
}
END_TEST

START_TEST(a_launch_lists_the_numbers_after_the_sources)
{
    struct made a;
    struct xti_str b = {0};
    make("x: f32[30,41]; x.pad((0,0),(0,3), value=7)", &a);
    xti_cuda_launch_json(&a.plan, XTI_TIER_STRUCTURE, "n", &b);
    const char *src = strstr(b.s, "src0"), *numbers = strstr(b.s, "\"bytes\", \"hex\": \"");
    const char *value = strstr(b.s, "0000e0400000e040");
    ck_assert(src && numbers && value && src < numbers && numbers < value);
    ck_assert_uint_eq(strcspn(numbers + 17, "\""), 2 * a.plan.numbers.n);
    ck_assert_uint_eq(a.plan.numbers.n % 4, 0);
    xti_str_free(&b);
    drop(&a);
}
END_TEST

/* ---- one kernel, many shapes, through the driver */

struct shared_kernel {
    struct xti_str key;
    struct xti_module *module;
    unsigned char *dst, *src, *want;
};
enum { ROOM = 1 << 17 };

static void load_first(struct shared_kernel *k, const struct xti_cuda_plan *p)
{
    struct xti_err err = {0};
    struct xti_str source = {0};
    struct xti_code code = {0};
    char name[XTI_CUDA_NAME_CHARS];
    xti_cuda_structure_name(p, name);
    ck_assert_int_eq(xti_cuda_emit(p, XTI_TIER_STRUCTURE, name, &source, &err), XT_OK);
    ck_assert_msg(!xti_nvrtc_compile(xti_nvrtc_for(90, 0, NULL), source.s, name, 90, &code, &err), "%s",
                  err.e.message);
    ck_assert_msg(!xti_module_load(&code, name, 0, &k->module, &err), "%s", err.e.message);
    ck_assert_int_eq(xti_cuda_structure(p, &k->key, &err), XT_OK);
    xti_str_free(&source);
    xti_code_free(&code);
}

/* True: this length is of the structure that is loaded, and was copied right. */
static bool copy_length(struct shared_kernel *k, const char *form, int length)
{
    char line[128];
    struct made a;
    struct xti_str key = {0};
    struct xti_err err = {0};
    snprintf(line, sizeof line, form, length);
    make(line, &a);
    if (!k->module)
        load_first(k, &a.plan);
    ck_assert_int_eq(xti_cuda_structure(&a.plan, &key, &err), XT_OK);
    bool same = key.n == k->key.n && !memcmp(key.s, k->key.s, key.n);
    for (size_t shift = 0; shift <= 2 && same; shift += 2) {
        const void *src = k->src + shift;
        size_t bytes = (size_t)(a.map.dst_hi + 1) * (size_t)a.map.esize;
        ck_assert(bytes + shift <= ROOM && (a.map.src_hi[0] + 1) * a.map.esize + 2 <= ROOM);
        memset(k->dst, 0xa5, ROOM);
        memset(k->want, 0xa5, ROOM);
        xti_map_eval(&a.map, k->want + shift, &src);
        ck_assert_msg(
            !xti_cuda_launch(&a.plan, XTI_TIER_STRUCTURE, k->module, k->dst + shift, &src, NULL, &err), "%s",
            err.e.message);
        ck_assert_mem_eq(k->dst, k->want, ROOM);
    }
    xti_str_free(&key);
    drop(&a);
    return same;
}

START_TEST(one_loaded_kernel_serves_every_length_of_its_structure)
{
    static const char *const form[] = {"x: f16[%d,256]; x.reshape(-1,4,64).permute(1,0,2)",
                                       "x: f16[%d,64]; x.T.pad((1,0),(2,3), value=5)"};
    if (cuda_skipped() || !use_double()) {
        printf("skipped: no NVRTC, or libcuda_double.so is not there\n");
        return;
    }
    for (int i = 0; i < 2; i++) {
        struct shared_kernel k = {.dst = aligned_alloc(256, ROOM), .src = aligned_alloc(256, ROOM)};
        int same = 0;
        k.want = malloc(ROOM);
        random_fill(k.src, ROOM, 5);
        for (int length = 101; length < 141; length++)
            same += copy_length(&k, form[i], length);
        /* of the second one the widths of the border's stores go with the length, and whether the last box
         * has a word more */
        ck_assert_int_ge(same, i ? 10 : 40);
        xti_module_free(k.module);
        xti_str_free(&k.key);
        free(k.dst);
        free(k.src);
        free(k.want);
    }
}
END_TEST

/* ------------------------------------------------------------------------------------------- instructions */

/* Thread instructions of PTX, loads of parameters among them, for 16 bytes. */
static double instructions(const struct xti_map *m, const char *line, enum proof_tier tier, bool misaligned)
{
    struct proof p;
    prove_tier(m, line, 90, (struct proof_options){.misaligned = misaligned, .tier = tier}, &p);
    return 16 * (double)p.report.instructions / (double)(m->numel * m->esize);
}

/* clang-format off */
static const char *const priced[] = {
    "x: f32[65536]; x",
    "x: f32[64,1000]; x[:, 256:767]",
    "x: f16[2,128,12,64]; x.permute(0,2,1,3)",
    "x: f16[40,257]; x[:, 1:256]",
    "x: f16[64,1024]; x.flip(1)",
    "x: f16[8,127,64]; y: f16[8,1,64]; concat(1, x, y)",
    "x: f32[256,256]; x.permute(1,0)",
    "x: f16[8,200,64]; x.permute(0,2,1)",
    "x: f16[8,201,64]; x.permute(0,2,1)",
    "x: u8[201,203]; x.T",
    "x: f16[2,14,14,96]; x.permute(0,3,1,2)",
    "x: f32[31,17,3]; x.permute(2,0,1)",
    "x: f32[1000,3]; x[::3, ::2]",
    "x: f32[60,100]; x.permute(1,0).reshape(40,150).permute(1,0)",
    "x: f32[64,64]; x.tril(1)",
};
/* clang-format on */

START_TEST(numbers_as_parameters_cost_at_most_half_as_many_instructions_again)
{
    if (cuda_skipped())
        return;
    for (size_t i = 0; i < sizeof priced / sizeof *priced; i++) {
        struct xti_map m;
        map_of(priced[i], &m);
        double exact = instructions(&m, priced[i], PROOF_EXACT, false);
        double shared = instructions(&m, priced[i], PROOF_STRUCTURE, false);
        printf("note: instructions for 16 bytes %6.1f, with numbers as parameters %6.1f, %4.2f times: %s\n",
               exact, shared, shared / exact, priced[i]);
        ck_assert_msg(shared <= 1.5 * exact, "%s", priced[i]);
        xti_map_free(&m);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("structure");
    TCase *c = tcase_create("structure");
    tcase_set_timeout(c, 1200);
    tcase_add_test(c, multiplication_divides_every_index_by_every_number);
    tcase_add_test(c, two_hundred_lengths_share_a_few_sources);
    tcase_add_test(c, equal_structures_are_equal_sources);
    tcase_add_test(c, kernels_with_numbers_as_parameters_copy_what_the_map_says);
    tcase_add_test(c, dozens_of_pieces_read_their_rows_from_the_parameter);
    tcase_add_test(c, more_numbers_than_fit_are_refused);
    tcase_add_test(c, a_launch_lists_the_numbers_after_the_sources);
    tcase_add_test(c, one_loaded_kernel_serves_every_length_of_its_structure);
    tcase_add_test(c, numbers_as_parameters_cost_at_most_half_as_many_instructions_again);
    suite_add_tcase(s, c);
    return run_suite(s);
}
