/* test_run.c: xt_run: what it reads, writes and refuses. Buffers lie between pages that fault; overlaps are
 * compared with the sets of bytes that a map touches. */
#include "support/api.h"

#include <malloc.h>

#include "api/api.h"
#include "support/random_graph.h"

char now_running[2048];

static const char *isas[XTI_ISA_COUNT]; /* of this machine */
static int n_isas;

static void find_isas(void)
{
    for (int i = 0; i < XTI_ISA_COUNT; i++)
        if (xti_cpu_has((enum xti_isa)i))
            isas[n_isas++] = xti_isa_name[i];
}

/* Loop tests: 0 is the reference, then one an instruction set. */
static struct xt_ctx *ctx_of_loop(int i)
{
    tell_faults();
    if (i)
        setenv("XT_ISA", isas[i - 1], 1);
    return new_ctx(i ? XT_CPU : XT_REF, 1);
}

/* Every input and the destination of a kernel. */
struct buffers {
    struct guarded src[8], dst;
    const void *at[8];
    unsigned char *want;
    int n;
};

/* Fills inputs as wide as the graph declares them, evaluates the graph node by node into want, then keeps
 * only the bytes that the kernel says it needs, between guards. strict: below the lowest address read there
 * is a guard too. */
static void make_buffers(struct buffers *b, const struct xt_kernel *k, const struct xt_graph *g, bool at_end)
{
    const void *whole[8] = {NULL};
    struct xt_kernel_info info = {.size = sizeof info};
    struct xti_err err = {0};
    size_t es = (size_t)k->map->esize;
    b->n = xt_input_count(g);
    ck_assert_int_le(b->n, 8);
    for (int i = 0; i < b->n; i++) {
        const struct xti_node *in = &g->node[g->input[i]];
        int64_t lo, hi;
        ck_assert(xti_span(in->rank, in->shape, in->strides, in->offset, &lo, &hi));
        size_t all = (size_t)(hi + 1) * es, need = (size_t)xt_src_min_bytes(k, i);
        unsigned char *p = malloc(all + 1);
        fill_pattern(p, all, 17 + (uint64_t)i);
        whole[i] = p;
        ck_assert_msg(need <= all, "%s: input %d needs %zu bytes of %zu", graph_text(g), i, need, all);
        size_t skip = need && !at_end ? (size_t)k->map->src_lo[i] * es : 0;
        b->src[i] = guard(need - skip, at_end);
        memcpy(b->src[i].p, p + skip, need - skip);
        mprotect(b->src[i].map + sysconf(_SC_PAGESIZE),
                 b->src[i].map_bytes - 2 * (size_t)sysconf(_SC_PAGESIZE), PROT_READ);
        b->at[i] = need ? (const void *)((uintptr_t)b->src[i].p - skip) : NULL;
    }
    expect(XT_OK, xt_kernel_get(k, &info));
    b->dst = guard((size_t)info.dst_min_bytes, at_end);
    fill_pattern(b->dst.p, b->dst.bytes, 99);
    b->want = malloc(b->dst.bytes + 1);
    memcpy(b->want, b->dst.p, b->dst.bytes);
    ck_assert_msg(!xti_graph_eval(g, b->want, whole, &err), "%s: %s", graph_text(g), err.e.message);
    for (int i = 0; i < b->n; i++)
        free((void *)(uintptr_t)whole[i]);
}

static void free_buffers(struct buffers *b)
{
    for (int i = 0; i < b->n; i++)
        unguard(&b->src[i]);
    unguard(&b->dst);
    free(b->want);
}

static void check_run(const struct xt_kernel *k, const struct xt_graph *g, bool at_end)
{
    struct buffers b;
    make_buffers(&b, k, g, at_end);
    snprintf(now_running, sizeof now_running, "%s", graph_text(g));
    xt_status s = xt_run(k, b.dst.p, b.at, NULL);
    ck_assert_msg(s == XT_OK, "%s: %s", now_running, xt_last_error()->message);
    for (size_t i = 0; i < b.dst.bytes; i++)
        ck_assert_msg(b.dst.p[i] == b.want[i], "%s: byte %zu is %d, want %d", now_running, i, b.dst.p[i],
                      b.want[i]);
    ck_assert_msg(slack_is_whole(&b.dst), "%s: wrote beside the destination", now_running);
    free_buffers(&b);
}

static void check_graph(struct xt_ctx *ctx, const struct xt_graph *g)
{
    struct xt_kernel *k;
    const char *what = graph_text(g); /* printing it later would clear the last error */
    xt_status s = xt_compile(ctx, g, NULL, &k);
    if (s == XT_EUNSUPPORTED)
        return;
    ck_assert_msg(s == XT_OK, "%s: %s", what, xt_last_error()->message);
    check_run(k, g, true);
    check_run(k, g, false);
    xt_kernel_free(k);
}

START_TEST(random_chains_touch_nothing_beside_their_buffers)
{
    struct xt_ctx *ctx = ctx_of_loop(_i);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct random_graph_options o = {.max_numel = seed % 3 ? 700 : 6000, .max_ops = 1 + (int)(seed % 7)};
        struct xt_graph *g = random_graph(seed, &o);
        check_graph(ctx, g);
        xt_graph_free(g);
    }
    xt_ctx_free(ctx);
}
END_TEST

static const char *const lines[] = {
    "x: u8[]; x",
    "x: c128[]:[]+3; x -> []:[]+2",
    "x: f32[0,4]; x",
    "x: f32[0,4]:[3,-7]+1; x.permute(1,0) -> [4,0]:[5,1]+3",
    "x: u8[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]; x",
    "x: u16[2,1,2,1,2,1,2,1,2,1,2,1,2,1,2,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,3]; "
    "x.permute(31,30,29,28,27,26,25,24,23,"
    "22,21,20,19,18,17,16,15,14,13,12,11,10,9,8,7,6,5,4,3,2,1,0)",
    "x: f32[100]; x[:2]",
    "x: f32[100]; x[98:]",
    "x: f32[9]; y: f32[3]; concat(0, x[4:4], y)",
    "x: f32[9]; y: f32[3]; concat(0, x, y)[1:3]",
    "x: f32[8]; x[:0].pad((3,2), value=1)",
    "x: u8[67,131]; x.permute(1,0)",
    "x: u8[67,3]; x.permute(1,0)",
    "x: u16[3,131]; x.permute(1,0)",
    "x: f32[33,35]; x.flip(0).permute(1,0)",
    "x: c128[9,7]; x.permute(1,0)",
    "x: u8[1000]; x.flip(0)",
    "x: u8[1001]:[3]+1; x",
    "x: u8[333]; x -> [333]:[-3]+996",
    "x: u8[77]; x.unsqueeze(1).expand(77,5)",
    "x: u8[3]; x.tile(111)",
    "x: f16[21,23]; x.tril(-2, value=1)",
    "x: f64[21,23]; x.triu(4)",
    "x: i32[21,23]; x.reshape(23,21).permute(1,0).reshape(21,23)",
};

START_TEST(chosen_chains_touch_nothing_beside_their_buffers)
{
    struct xt_ctx *ctx = ctx_of_loop(_i);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct xt_graph *g = parse_line(lines[i]);
        check_graph(ctx, g);
        xt_graph_free(g);
    }
    xt_ctx_free(ctx);
}
END_TEST

/* Rows of a tensor, each at the end or the start of a page of its own; the pages between them fault. %d:
 * stride and offset in elements of the dtype %s. */
START_TEST(the_gaps_of_a_strided_layout_are_neither_read_nor_written)
{
    static const char *const chain[] = {
        "x: %s[9,7]:[%lld,1]+%lld; x",
        "x: %s[9,7]:[%lld,1]+%lld; x.permute(1,0)",
        "x: %s[80,7]:[%lld,1]+%lld; x.permute(1,0)",
        "x: %s[9,7]:[%lld,1]+%lld; x.flip(1)",
        "x: %s[9,7]:[%lld,1]+%lld; x.permute(1,0).reshape(21,3)",
        "x: %s[9,7]:[%lld,1]+%lld; x.tril(1)",
        "x: %s[9,7]:[%lld,1]+%lld; x.unsqueeze(2).expand(9,7,5)",
        "x: %s[9,7]:[%lld,1]+%lld; x[:, ::2]",
        "x: %s[9,7]; x -> [9,7]:[%lld,1]+%lld",
        "x: %s[7,9]; x.permute(1,0) -> [9,7]:[%lld,1]+%lld",
        "x: %s[9,7]; x.flip(1) -> [9,7]:[%lld,1]+%lld",
        "x: %s[9]; x.unsqueeze(1).expand(9,7) -> [9,7]:[%lld,1]+%lld",
        "x: %s[7,9]; x.permute(1,0).tril(0) -> [9,7]:[%lld,1]+%lld",
        "x: %s[9,5]; x.pad((0,0),(1,1)) -> [9,7]:[%lld,1]+%lld",
    };
    static const struct {
        const char *name;
        int64_t bytes;
    } dtype[] = {{"u8", 1}, {"u16", 2}, {"f32", 4}, {"f64", 8}, {"c128", 16}};
    enum { ROWS = 80, COLS = 7 }; /* most chains use 9 of the rows */
    struct xt_ctx *ctx = ctx_of_loop(_i);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 2 * ROWS * page;
    unsigned char *sparse = mmap(NULL, bytes + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *plain = malloc(4096), *flat = malloc(bytes), *want = malloc(65536), *got = malloc(65536);
    for (int r = 0; r < ROWS; r++)
        mprotect(sparse + (2 * (size_t)r + 1) * page, page, PROT_READ | PROT_WRITE);
    for (size_t c = 0; c < sizeof chain / sizeof *chain; c++)
        for (int d = 0; d < 5; d++)
            for (int end = 0; end < 2; end++) {
                char line[256];
                int64_t es = dtype[d].bytes, stride = 2 * (int64_t)page / es;
                int64_t off = ((int64_t)page + (end ? (int64_t)page - COLS * es : 0)) / es;
                snprintf(line, sizeof line, chain[c], dtype[d].name, (long long)stride, (long long)off);
                snprintf(now_running, sizeof now_running, "%s", line);
                struct xt_graph *g = parse_line(line);
                struct xt_kernel *k = compile_line(ctx, line);
                struct xti_err err = {0};
                bool to_sparse = strstr(line, "->") != NULL;
                fill_pattern(plain, 4096, 5);
                memset(flat, 7, bytes);
                if (to_sparse) {
                    for (int r = 0; r < ROWS; r++)
                        memset(sparse + (2 * (size_t)r + 1) * page, 7, page);
                    ck_assert(!xti_graph_eval(g, flat, (const void *[]){plain}, &err));
                    expect(XT_OK, xt_run(k, sparse, (const void *[]){plain}, NULL));
                    for (int r = 0; r < ROWS; r++)
                        ck_assert_msg(!memcmp(sparse + (2 * (size_t)r + 1) * page,
                                              flat + (2 * (size_t)r + 1) * page, page),
                                      "%s: row %d", line, r);
                } else {
                    for (int r = 0; r < ROWS; r++) {
                        fill_pattern(flat + (2 * (size_t)r + 1) * page, page, (uint64_t)r);
                        memcpy(sparse + (2 * (size_t)r + 1) * page, flat + (2 * (size_t)r + 1) * page, page);
                    }
                    memset(want, 7, 65536);
                    memset(got, 7, 65536);
                    ck_assert(!xti_graph_eval(g, want, (const void *[]){flat}, &err));
                    expect(XT_OK, xt_run(k, got, (const void *[]){sparse}, NULL));
                    ck_assert_msg(!memcmp(want, got, 65536), "%s", line);
                }
                xt_kernel_free(k);
                xt_graph_free(g);
            }
    munmap(sparse, bytes + page);
    free(plain);
    free(flat);
    free(want);
    free(got);
    xt_ctx_free(ctx);
}
END_TEST

/* ---------------------------------------------------------------------------------------------- refusals */

/* One of each family of kernels, several pieces, a general one. */
static const char *const families[] = {
    "x: f32[4,4]; x.T",
    "x: f32[64,48]; x.T",
    "x: f32[8,8,8,8]; x.permute(3,2,1,0)",
    "x: u8[30,20,3]; x.permute(1,0,2)",
    "x: u8[4,100,3]; x[:, ::-1]",
    "x: f32[2,3,2,3,2,3,2]; x.permute(6,4,2,0,5,3,1)",
    "x: f32[70,70]; x.diagonal(0,0,1)",
    "x: f32[1]; x.expand(1000)",
    "x: u8[64,600]; x[:, ::6]",
    "x: u8[3,64,64]; x.permute(1,2,0)",
    "x: f32[64,64]; x.tril(0)",
    "x: f16[12,13]; x.pad((3,4),(5,6), value=1)",
    "x: f32[900,1300]; x.T",
};

/* What the host's allocator has handed out; 0 under sanitizers, which have their own. */
static size_t bytes_in_use(void) { return mallinfo2().uordblks; }

START_TEST(a_run_allocates_nothing_whether_it_copies_or_refuses)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, families[_i]);
    struct xt_kernel_info info = {.size = sizeof info};
    expect(XT_OK, xt_kernel_get(k, &info));
    size_t n = (size_t)info.dst_min_bytes, m = (size_t)xt_src_min_bytes(k, 0);
    unsigned char *src = malloc(m), *dst = malloc(n), *want = calloc(1, n);
    fill_pattern(src, m, 5);
    memset(dst, 0, n);
    expect(XT_OK, xt_run(k, want, (const void *[]){src}, NULL));
    size_t before, after;
    int tries = 0;
    do { /* threads that end, and what libc makes once, change it, too, but not every time */
        before = bytes_in_use();
        xti_fail_alloc(1, 1);
        xt_status ran = xt_run(k, dst, (const void *[]){src}, NULL);
        xt_status null = xt_run(k, dst, (const void *[]){NULL}, NULL);
        xt_status overlap = xt_run(k, src, (const void *[]){src}, NULL);
        xti_fail_alloc(0, 0);
        after = bytes_in_use();
        ck_assert_int_eq(ran, XT_OK);
        ck_assert_int_eq(null, XT_EINVAL);
        ck_assert_msg(overlap == XT_EALIAS, "%s: %s", families[_i], xt_status_name(overlap));
    } while (after != before && ++tries < 3);
    ck_assert_uint_eq(after, before);
    ck_assert(!memcmp(dst, want, n));
    free(src);
    free(dst);
    free(want);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(null_pointers_are_refused_unless_nothing_is_read_or_written)
{
    struct xt_ctx *ctx = ctx_of_loop(_i);
    float a[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, b[9] = {0};
    struct xt_kernel *k = compile_line(ctx, "x: f32[3]; in2: f32[9]; in2[2:4]");
    expect(XT_EINVAL, xt_run(NULL, b, (const void *[]){a, a}, NULL));
    expect(XT_EINVAL, xt_run_host(NULL, b, (const void *[]){a, a}));
    expect(XT_EINVAL, xt_run(k, NULL, (const void *[]){a, a}, NULL));
    expect(XT_EINVAL, xt_run(k, b, NULL, NULL));
    expect(XT_EINVAL, xt_run(k, b, (const void *[]){a, NULL}, NULL));
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "in2"));
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "input 1"));
    expect(XT_OK, xt_run(k, b, (const void *[]){NULL, a}, NULL));
    ck_assert(b[0] == 3 && b[1] == 4 && b[2] == 0);
    expect(XT_OK, xt_run_host(k, b, (const void *[]){(char *)a + 1, a + 1}));
    ck_assert(b[0] == 4 && b[1] == 5 && b[2] == 0);
    xt_kernel_free(k);
    k = compile_line(ctx, "x: f32[3,0]; x.permute(1,0)");
    expect(XT_OK, xt_run(k, NULL, NULL, NULL));
    expect(XT_OK, xt_run_host(k, NULL, NULL));
    xt_kernel_free(k);
    k = compile_line(ctx, "x: u8[0]; x.pad((2,1), value=7)");
    unsigned char c[4] = {0};
    expect(XT_OK, xt_run(k, c, NULL, NULL));
    ck_assert(c[0] == 7 && c[2] == 7 && c[3] == 0);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(pointers_that_are_not_aligned_to_their_element_are_refused)
{
    static const char *const name[] = {"bool", "u8",  "f8e5m2", "i16", "bf16",
                                       "f32",  "i32", "f64",    "c64", "c128"};
    struct xt_ctx *ctx = ctx_of_loop(_i);
    static _Alignas(64) unsigned char a[512], b[512];
    for (int d = 0; d < 10; d++) {
        char line[64];
        xt_dtype t;
        snprintf(line, sizeof line, "x: %s[5,4]; x.permute(1,0)", name[d]);
        struct xt_kernel *k = compile_line(ctx, line);
        expect(XT_OK, xt_dtype_parse(name[d], &t));
        size_t es = xt_dtype_bytes(t), want = es < 8 ? es : 8;
        for (size_t by = 1; by <= 16; by++) {
            xt_status s = by % want ? XT_EALIGN : XT_OK;
            fill_pattern(a, sizeof a, by);
            memset(b, 0, sizeof b);
            expect(s, xt_run(k, b + by, (const void *[]){a}, NULL));
            if (s)
                for (size_t i = 0; i < sizeof b; i++)
                    ck_assert_int_eq(b[i], 0);
            expect(s, xt_run(k, b, (const void *[]){a + by}, NULL));
            for (int i = 0; i < 5 && !s; i++)
                for (int j = 0; j < 4; j++)
                    ck_assert_mem_eq(b + (size_t)(5 * j + i) * es, a + by + (size_t)(4 * i + j) * es, es);
        }
        xt_kernel_free(k);
    }
    xt_ctx_free(ctx);
}
END_TEST

/* ---------------------------------------------------------------------------------------------- overlaps */

/* Runs with destination and source at byte offsets of one arena; refused means that not one byte has changed.
 */
static void run_in_arena(const struct xt_kernel *k, const char *text, int64_t dst, int64_t src,
                         xt_status want)
{
    static _Alignas(64) unsigned char arena[8192], before[8192], in[8192];
    struct xt_kernel_info info = {.size = sizeof info};
    fill_pattern(arena, sizeof arena, 3);
    memcpy(before, arena, sizeof arena);
    memcpy(in, arena, sizeof arena);
    xt_status s = xt_run(k, arena + dst, (const void *[]){arena + src}, NULL);
    ck_assert_msg(s == want, "%s: dst %+lld, src %+lld: %s, want %s: %s", text, (long long)dst,
                  (long long)src, xt_status_name(s), xt_status_name(want), xt_last_error()->message);
    if (!s)
        ck_assert_msg(!xt_run(k, before + dst, (const void *[]){in + src}, NULL), "%s", text);
    ck_assert_msg(!memcmp(arena, before, sizeof arena), "%s: dst %+lld, src %+lld", text, (long long)dst,
                  (long long)src);
    expect(XT_OK, xt_kernel_get(k, &info));
}

START_TEST(overlapping_buffers_are_refused_and_interleaved_ones_are_not)
{
    /* clang-format off */
    static const struct { const char *line; int64_t dst, src; xt_status want; } cases[] = {
        {"x: f32[64]; x",                                  0,    0, XT_OK},      /* onto itself */
        {"x: f32[64]; x",                                  4,    0, XT_EALIAS},  /* forward by one */
        {"x: f32[64]; x",                                  0,    4, XT_EALIAS},  /* backward by one */
        {"x: f32[64]; x",                                256,    0, XT_OK},      /* neighbours */
        {"x: f32[64]; x",                                  0,  256, XT_OK},
        {"x: f32[64]; x",                                252,    0, XT_EALIAS},  /* one element */
        {"x: f32[64]; x",                                  0,  252, XT_EALIAS},
        {"x: f32[8,8]; x.permute(1,0)",                    0,    0, XT_EALIAS},
        {"x: f32[8,8]; x.flip(0)",                         0,    0, XT_EALIAS},
        {"x: f32[8,8]; x.permute(1,0).permute(1,0)",       0,    0, XT_OK},
        {"x: f32[8,8]; x.reshape(4,16).flip(1).flip(-1)",  0,    0, XT_OK},
        {"x: f32[8,8]; concat(0, x[:3], x[3:])",           0,    0, XT_OK},
        {"x: f32[64]:[2]+1; x -> [64]:[2]+0",              0,    0, XT_OK},      /* a[::2] = a[1::2] */
        {"x: f32[64]:[2]+0; x -> [64]:[2]+1",              0,    0, XT_OK},
        {"x: f32[64]:[2]+0; x -> [64]:[2]+0",              0,    0, XT_OK},
        {"x: f32[64]:[2]+2; x -> [64]:[2]+0",              0,    0, XT_EALIAS},
        {"x: f32[64]:[-2]+127; x -> [64]:[2]+0",           0,    0, XT_OK},
        {"x: f32[64]:[-2]+126; x -> [64]:[2]+0",           0,    0, XT_EALIAS},
        {"x: f32[8,4]:[8,1]+4; x -> [8,4]:[8,1]+0",        0,    0, XT_OK},      /* left half = right half */
        {"x: f32[8,4]:[8,1]+3; x -> [8,4]:[8,1]+0",        0,    0, XT_EALIAS},
        {"x: f32[4,4]:[8,1]+4; x.permute(1,0) -> [4,4]:[8,1]+0", 0, 0, XT_OK},
        {"x: f32[20]:[3]+0; x -> [20]:[3]+1",              0,    0, XT_OK},
        {"x: f32[20]:[3]+0; x -> [20]:[2]+1",              0,    0, XT_EALIAS},
        {"x: c128[8]:[2]+0; x -> [8]:[2]+1",               0,    0, XT_OK},
        {"x: c128[8]:[2]+0; x -> [8]:[2]+1",               8,    0, XT_EALIAS},  /* half an element */
        {"x: c128[8]:[2]+0; x -> [8]:[2]+1",               0,    8, XT_EALIAS},
        {"x: c128[8]; x",                                  8,    0, XT_EALIAS},
        {"x: f32[8,8]; x.tril(0)",                         0,    0, XT_EALIAS},
        {"x: f32[64]; x[:0].pad((64,0))",                  0,    0, XT_OK},      /* nothing is read */
        {"x: f32[64]; x[:32] -> [32]:[1]+32",              0,    0, XT_OK},      /* the other half */
        {"x: f32[64]; x[:33] -> [33]:[1]+32",              0,    0, XT_EALIAS},
        {"x: f32[32]; x.pad((0,32))",                      0,    0, XT_EALIAS},  /* fills beside what stays */
        {"x: u8[64]; x",                                   1,    0, XT_EALIAS},
        {"x: u8[1]; x.expand(64)",                         0,   64, XT_OK},
        {"x: u8[1]; x.expand(64)",                         0,   63, XT_EALIAS},
        {"x: f32[2]:[100]; x -> [2]:[50]+1",               0,    0, XT_OK},
        {"x: f32[6,10]; x.permute(1,0).reshape(4,15).permute(1,0)", 0, 240, XT_OK},
        {"x: f32[6,10]; x.permute(1,0).reshape(4,15).permute(1,0)", 0, 236, XT_EALIAS},
        {"x: f32[6,10]; x.permute(1,0).reshape(4,15).permute(1,0)", 236, 0, XT_EALIAS},
    };
    /* clang-format on */
    struct xt_ctx *ctx = ctx_of_loop(_i);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xt_kernel *k = compile_line(ctx, cases[i].line);
        run_in_arena(k, cases[i].line, 64 + cases[i].dst, 64 + cases[i].src, cases[i].want);
        xt_kernel_free(k);
    }
    xt_ctx_free(ctx);
}
END_TEST

/* Bit 1: a byte is read, bit 2: it is written. Both counted from the start of a buffer. */
struct touched {
    unsigned char *byte;
    int64_t at_dst, at_src;
    int es;
    bool identity;
};

static bool touch(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    struct touched *t = arg;
    for (int b = 0; b < t->es; b++)
        t->byte[t->at_dst + d * t->es + b] |= 2;
    for (int b = 0; b < t->es && s >= 0; b++)
        t->byte[t->at_src + s * t->es + b] |= 1;
    t->identity = t->identity && s >= 0 && t->at_dst + d * t->es == t->at_src + s * t->es;
    return true;
}

/* What the contract says: refused when a byte that is written is read, unless every element is copied onto
 * itself. */
static xt_status alias_by_bytes(const struct xt_kernel *k, int64_t dst, int64_t src, unsigned char *byte,
                                size_t n)
{
    struct touched t = {byte, dst, src, k->map->esize, true};
    memset(byte, 0, n);
    xti_map_visit(k->map, touch, &t);
    for (size_t i = 0; i < n && !t.identity; i++)
        if (byte[i] == 3)
            return XT_EALIAS;
    return XT_OK;
}

START_TEST(random_chains_are_refused_exactly_where_bytes_meet)
{
    struct xt_ctx *ctx = ctx_of_loop(1);
    unsigned char byte[8192];
    int refused = 0, legal_inside = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct random_graph_options o = {.max_numel = 40, .max_ops = (int)(seed % 3)};
        struct xt_graph *g = random_graph(seed, &o);
        struct xt_kernel *k;
        struct xt_kernel_info info = {.size = sizeof info};
        ck_assert(!xt_compile(ctx, g, NULL, &k) && !xt_kernel_get(k, &info));
        int64_t step = k->map->esize < 8 ? k->map->esize : 8, s_bytes = xt_src_min_bytes(k, 0);
        const char *text = graph_text(g);
        bool one_affine = xt_input_count(g) == 1 && info.dst_min_bytes + 2 * s_bytes < 4000;
        for (int i = 0; i < k->map->n_pieces; i++)
            one_affine = one_affine && xti_piece_affine(&k->map->piece[i]);
        for (int64_t src = 2048 - s_bytes - step; one_affine && src <= 2048 + info.dst_min_bytes + step;
             src += step) {
            int64_t at = src / 16 * 16 + src % 16; /* aligned as the arena is */
            xt_status want = alias_by_bytes(k, 2048, at, byte, sizeof byte);
            refused += want != XT_OK;
            legal_inside += want == XT_OK && at < 2048 + info.dst_min_bytes && at + s_bytes > 2048;
            run_in_arena(k, text, 2048, at, want);
        }
        xt_kernel_free(k);
        xt_graph_free(g);
    }
    ck_assert_int_gt(refused, 1000);
    ck_assert_int_gt(legal_inside, 100);
    xt_ctx_free(ctx);
}
END_TEST

/* The pair from the comment of NumPy's mem_overlap.c: exact answers may cost 2^60 steps, giving up must not.
 */
START_TEST(a_hard_overlap_question_is_answered_in_bounded_time)
{
    struct xt_ctx *ctx = ctx_of_loop(1);
    struct xt_graph *g;
    struct xt_kernel *k;
    static unsigned char arena[1 << 16];
    expect(XT_OK,
           xt_parse("x: u8[3,3,3,3,3,3,3]:[1093,1091,1087,1069,1063,1061,1051]+0; x -> [3,3,3,3,3,3,3]:"
                    "[729,243,81,27,9,3,1]+1",
                    0, NULL, &g));
    expect(XT_OK, xt_compile(ctx, g, NULL, &k));
    xt_status s = xt_run(k, arena, (const void *[]){arena}, NULL);
    ck_assert(s == XT_OK || s == XT_EALIAS);
    xt_kernel_free(k);
    xt_graph_free(g);
    s = xt_parse(
        "x: u8[3,3,3,3,3,3,3,3]; x -> [3,3,3,3,3,3,3,3]:[4294967311,4294967357,4294967371,4294967377,"
        "4294967387,4294967389,4294967459,4294967477]",
        0, NULL, &g);
    ck_assert(s == XT_OK || s == XT_EALIAS);
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

/* --------------------------------------------------------------------------------------- sizes, threads */

START_TEST(buffers_that_need_more_than_63_bits_of_bytes_are_refused)
{
    /* clang-format off */
    static const struct { const char *line; xt_status want; } cases[] = {
        {"x: f64[2]; x -> [2]:[1152921504606846975]", XT_EOVERFLOW}, /* 2^60 elements of 8 bytes */
        {"x: f64[2]; x -> [2]:[1152921504606846974]", XT_OK},
        {"x: f64[2]:[1152921504606846975]; x", XT_EOVERFLOW},
        {"x: f64[2]:[1152921504606846974]; x", XT_OK},
        {"x: u8[2]; x -> [2]:[9223372036854775807]", XT_EOVERFLOW},
        {"x: u8[2]; x -> [2]:[9223372036854775806]", XT_OK},
        {"x: f32[1]; x.expand(4611686018427387904)", XT_EOVERFLOW},
        {"x: f64[2]:[1152921504606846975]; x[:1]", XT_OK},           /* the far element is not read */
        {"x: f64[2]:[-1152921504606846975]+1152921504606846975; x[1:]", XT_OK},
        {"x: c128[3]:[0]+576460752303423488; x", XT_EOVERFLOW},
    };
    /* clang-format on */
    struct xt_ctx *ctx = ctx_of_loop(_i);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xt_kernel *k;
        struct xt_kernel_info info = {.size = sizeof info};
        struct xt_graph *g = parse_line(cases[i].line);
        xt_status s = xt_compile(ctx, g, NULL, &k);
        ck_assert_msg(s == cases[i].want, "%s: %s: %s", cases[i].line, xt_status_name(s),
                      xt_last_error()->message);
        ck_assert(!s == (k != NULL));
        if (k) {
            expect(XT_OK, xt_kernel_get(k, &info));
            ck_assert_int_gt(info.dst_min_bytes, 0);
            ck_assert_int_ge(xt_src_min_bytes(k, 0), 0);
            expect(XT_EINVAL, xt_run(k, NULL, NULL, NULL));
        }
        xt_kernel_free(k);
        xt_graph_free(g);
    }
    xt_ctx_free(ctx);
}
END_TEST

/* Runs the parts in an order of its own, and counts them. */
struct pool {
    int calls, parts, last_n;
};

static void backwards(void *pool, int n, void (*task)(void *arg, int i), void *arg)
{
    struct pool *p = pool;
    p->calls++;
    p->last_n = n;
    for (int i = n - 1; i >= 0; i--, p->parts++)
        task(arg, i);
}

static const char *const big[] = {
    "x: f32[700,900]; x.permute(1,0)",
    "x: u8[3000,1001]; x.permute(1,0)",
    "x: f32[1500,1101]; x.flip(1)",
    "x: u8[5000001]; x[1:]",
    "x: f16[1200,1300]; x.pad((3,4),(5,6), value=1)",
    "x: f32[900,1300]; x.tril(5)",
    "x: u8[1100,1000,3]; x.permute(2,0,1)",
    "x: f64[3]; x.expand(300001,3)",
    "x: f32[1000,1260]; x.permute(1,0).reshape(1200,1050).permute(1,0)",
    "x: f64[400,500]; y: f64[300,500]; concat(0, x, y, x.flip(0)) -> [1100,500]:[513,1]+7",
};

START_TEST(the_number_of_threads_and_a_callers_pool_change_no_byte)
{
    const char *line = big[_i];
    struct xt_ctx *one = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(one, line);
    struct xt_kernel_info info = {.size = sizeof info};
    expect(XT_OK, xt_kernel_get(k, &info));
    size_t n = (size_t)info.dst_min_bytes;
    unsigned char *want = calloc(1, n), *got = malloc(n), *src[2] = {NULL, NULL};
    for (int i = 0; i < 2 && xt_src_min_bytes(k, i) > 0; i++)
        fill_pattern(src[i] = malloc((size_t)xt_src_min_bytes(k, i)), (size_t)xt_src_min_bytes(k, i),
                     (uint64_t)i);
    expect(XT_OK, xt_run(k, want, (const void *const *)src, NULL));
    for (int threads = 2; threads <= 17; threads += 5)
        for (int own = 0; own < 2; own++) {
            struct pool pool = {0};
            struct xt_options o = {.size = sizeof o,
                                   .backend = XT_CPU,
                                   .threads = threads,
                                   .cache_dir = "",
                                   .parallel_for = own ? NULL : backwards,
                                   .pool = &pool};
            struct xt_ctx *ctx;
            expect(XT_OK, xt_ctx_new(&o, &ctx));
            struct xt_kernel *m = compile_line(ctx, line);
            for (int freed = 0; freed < 2; freed++) {
                memset(got, 0, n);
                pool.calls = pool.parts = 0;
                expect(XT_OK, xt_run(m, got, (const void *const *)src, NULL));
                ck_assert_msg(!memcmp(want, got, n), "%s: %d threads%s", line, threads,
                              own ? "" : " of a pool");
                if (!freed)
                    xt_ctx_free(ctx);
                if (own || freed) {
                    ck_assert_int_eq(pool.calls, 0);
                    continue;
                }
                ck_assert_msg(pool.calls >= 1, "%s: the pool was not asked", line);
                ck_assert_int_le(pool.last_n, threads);
                ck_assert_int_gt(pool.last_n, 1);
                ck_assert_int_eq(pool.parts, pool.last_n * pool.calls);
            }
            xt_kernel_free(m);
        }
    free(src[0]);
    free(src[1]);
    free(want);
    free(got);
    xt_kernel_free(k);
    xt_ctx_free(one);
}
END_TEST

START_TEST(check_mode_finds_a_wrong_element)
{
    setenv("XT_CHECK", "1", 1);
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, "x: i32[5,4]; x[:4, :3].permute(1,0)");
    int32_t a[40], b[12];
    for (int i = 0; i < 40; i++)
        a[i] = 100 + i;
    expect(XT_OK, xt_run(k, b, (const void *[]){a}, NULL));
    ck_assert_int_eq(b[1], 104);
    k->plan->step[0].s_byte += 4; /* what a wrong plan would do */
    expect(XT_EINTERNAL, xt_run(k, b, (const void *[]){a}, NULL));
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "x[:4"));
    k->plan->step[0].s_byte -= 4;
    expect(XT_OK, xt_run(k, b, (const void *[]){a}, NULL));
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    unsetenv("XT_CHECK");
}
END_TEST

int main(void)
{
    find_isas();
    Suite *s = suite_create("run");
    TCase *c = tcase_create("run");
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, random_chains_touch_nothing_beside_their_buffers, 0, 1 + n_isas);
    tcase_add_loop_test(c, chosen_chains_touch_nothing_beside_their_buffers, 0, 1 + n_isas);
    tcase_add_loop_test(c, the_gaps_of_a_strided_layout_are_neither_read_nor_written, 0, 1 + n_isas);
    tcase_add_loop_test(c, a_run_allocates_nothing_whether_it_copies_or_refuses, 0,
                        sizeof families / sizeof *families);
    tcase_add_loop_test(c, null_pointers_are_refused_unless_nothing_is_read_or_written, 0, 2);
    tcase_add_loop_test(c, pointers_that_are_not_aligned_to_their_element_are_refused, 0, 1 + n_isas);
    tcase_add_loop_test(c, overlapping_buffers_are_refused_and_interleaved_ones_are_not, 0, 2);
    tcase_add_test(c, random_chains_are_refused_exactly_where_bytes_meet);
    tcase_add_test(c, a_hard_overlap_question_is_answered_in_bounded_time);
    tcase_add_loop_test(c, buffers_that_need_more_than_63_bits_of_bytes_are_refused, 0, 2);
    tcase_add_loop_test(c, the_number_of_threads_and_a_callers_pool_change_no_byte, 0,
                        sizeof big / sizeof *big);
    tcase_add_test(c, check_mode_finds_a_wrong_element);
    suite_add_tcase(s, c);
    return run_suite(s);
}
