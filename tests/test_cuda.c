/* test_cuda.c: CUDA plans, sources and kernels. Kernels are compiled by NVRTC and run in the PTX interpreter;
 * without NVRTC those tests say so and the others still run. XT_TEST_FULL=1 proves every case on every
 * architecture; XT_TEST_PART=0/2 and 1/2: half of them each. */
#include "cuda/box.h"
#include "cuda/predict.h"
#include "cuda/segments.h"
#include "support/cuda_made.h"
#include "support/golden.h"
#include "support/pick.h"

#include <time.h>

static const int archs[] = {75, 90, 120};
enum { N_ARCHS = 3 };

/* As xt_compile does. */
static void fuse_for(const struct xt_graph *g, int sm, struct xti_map *m)
{
    struct xti_cuda_target t = {.sm = sm};
    struct xti_err err = {0};
    ck_assert_msg(!xti_cuda_fuse(g, &t, m, &err), "%s: %s", graph_text(g), err.e.message);
}

static void prove(const char *line, int sm, bool misaligned, struct proof *out)
{
    struct xti_map m;
    struct xt_graph *g = parse_line(line);
    fuse_for(g, sm, &m);
    xt_graph_free(g);
    bool ok = cuda_prove(&m, sm, misaligned, out);
    xti_map_free(&m);
    ck_assert_msg(ok, "sm_%d%s: %s\n    %s", sm, misaligned ? " misaligned" : "", line, out->error);
}

/* ----------------------------------------------------------------------------------------------- families */

/* clang-format off */
/* strategy expected with aligned pointers, chain; %s is the dtype */
static const struct { const char *strategy, *line; } chains[] = {
    {"contiguous", "x: %s[4099]; x"},
    {"contiguous", "x: %s[64,64]; x.reshape(4096)[64:]"},
    {"rows",       "x: %s[48,80]; x[:, 16:64]"},
    {"rows",       "x: %s[7,9,128]; x.permute(1,0,2)"},
    {"broadcast",  "x: %s[33]; x.unsqueeze(1).expand(33,96)"},
    {"reversed",   "x: %s[13,64]; x.flip(1)"},
    {"reversed",   "x: %s[5,64]; x[:, 47:15:-1]"},
    {"tile",       "x: %s[96,80]; x.permute(1,0)"},
    {"tile",       "x: %s[67,131]; x.permute(1,0)"},
    {"tile",       "x: %s[3,40,5,24]; x.permute(0,3,2,1)"},
    {"tile",       "x: %s[33,34]; x.flip(1).permute(1,0)"},
    {"tile",       "x: %s[9,200]; x.permute(1,0)"},
    {"tile",       "x: %s[200,9]; x[1:].permute(1,0) -> [9,199]:[203,1]+1"},
    {"tile",       "x: %s[31,17,3]; x.permute(2,0,1)"},
    {"generic",    "x: %s[100,99]; x[::3, ::40]"},
    {"generic",    "x: %s[50]; x -> [50]:[3]"},
    {"generic",    "x: %s[6,10]; x.permute(1,0).reshape(4,15).permute(1,0)"},
};
static const char *const dtypes[] = {"u8", "f16", "f32", "f64", "c128"};
/* clang-format on */
enum { N_CHAINS = sizeof chains / sizeof *chains, N_DTYPES = 5 };

START_TEST(every_family_copies_every_width)
{
    char line[256];
    struct proof p;
    if (cuda_skipped())
        return;
    for (int c = 0, turn = 0; c < N_CHAINS; c++)
        for (int d = 0; d < N_DTYPES; d++)
            for (int k = 0; k < 2 * N_ARCHS; k++, turn++) {
                if ((!test_full() && k != (c + d) % (2 * N_ARCHS)) || !test_part(c + d))
                    continue;
                snprintf(line, sizeof line, chains[c].line, dtypes[d]);
                prove(line, archs[k / 2], k % 2, &p);
                ck_assert_msg(!strcmp(p.strategy, chains[c].strategy), "%s: %s, want %s", line, p.strategy,
                              chains[c].strategy);
            }
}
END_TEST

/* clang-format off */
static const char *const pieces[] = {
    "x: f32[30,40]; x.pad((1,2),(3,4), value=7)",
    "x: u8[5,6]; y: u8[5,7]; concat(1, x, y, x)",
    "x: f16[40,40]; x.roll(7, 1).roll(3, 0)",
    "x: f32[20,24]; x.tril(1, value=3)",
    "x: f32[64,64]; y: f32[32,64]; concat(0, x.permute(1,0), y.flip(1)).pad((0,0),(1,1))",
    "x: i32[17]; x.pad((2,3)).unfold(0, 5, 1)",
    "x: f64[2,3]; y: f64[2,3]; stack(2, x, y)",
    "x: f16[16,16]; x.permute(1,0).tile(3,2)",
    "x: u8[1]; x.expand(300).pad((7,9), value=255)",
    "x: f32[0,4]; x",
    "x: f32[]; x",
    "x: u8[5,701]; x[:, 1:700]",
    "x: u8[21,19]; x[1:20, 3:18] -> [19,15]:[23,1]+5",
    "x: u8[3,1000]; y: u8[3,501]; concat(1, x[:, 3:], y[:, 1:])",
    "x: f16[2001]; x[1:] -> [2000]:[1]+3",
};
/* clang-format on */

START_TEST(pieces_of_every_kind_share_one_launch)
{
    struct proof p;
    if (cuda_skipped())
        return;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        for (int k = 0; k < 2 * N_ARCHS; k++)
            if (test_full() || k == (int)i % (2 * N_ARCHS))
                prove(pieces[i], archs[k / 2], k % 2, &p);
}
END_TEST

static struct xt_graph *concat_of(int n, int64_t rows)
{
    struct xt_graph *g;
    xt_node *x = calloc((size_t)n, sizeof *x);
    ck_assert_int_eq(xt_graph_new(&g), XT_OK);
    for (int i = 0; i < n; i++) {
        int64_t shape[2] = {rows, 1 + i % 7};
        x[i] = xt_input(g, NULL, XT_F32, 2, shape, NULL, 0);
    }
    xt_output(g, xt_concat(g, 1, n, x), NULL, 0);
    ck_assert_int_eq(xt_graph_status(g), XT_OK);
    free(x);
    return g;
}

/* clang-format off */
/* Rows of several pieces, or whose sides share no alignment: short, long, one
 * source and several, borders, guards of both signs, a source that ends within a word. */
static const char *const segments[] = {
    "x: %s[9,4099]; x[:, 1:4098]",
    "x: %s[40000]; x[1:] -> [39999]:[1]+3",
    "x: %s[33,301]; x[:, 1:] -> [33,300]:[307,1]+2",
    "x: %s[60,97]; x[1:58, 3:96] -> [57,93]:[101,1]+5",
    "x: %s[5,3,161]; x.permute(1,0,2)[:, :, 2:]",
    "x: %s[21,255]; x.pad((0,0),(1,0))",
    "x: %s[13,254]; x.pad((1,1),(1,1), value=7)",
    "x: %s[3,4,98]; x.pad((0,0),(1,2),(2,3), value=5)",
    "x: %s[7,1021]; x.pad((0,0),(3,600))",
    "x: %s[2,97,131]; x.tril(0)",
    "x: %s[65,200]; x.triu(-3, value=3)",
    "x: %s[65,200]; x.tril(5).triu(-7)",
    "x: %s[90,70]; x.tril(0).flip(0)",
    "x: %s[30,97]; x.tril(2).pad((0,0),(1,1))",
    "x: %s[9,101]; y: %s[9,103]; concat(1, x, y)",
    "x: %s[9,67]; y: %s[9,133]; z: %s[9,70]; concat(1, x, y, z, y[:, 1:])",
    "x: %s[4,5,99]; y: %s[99]; concat(2, x, y.expand(4,5,99))",
    "x: %s[11,601]; x.roll(3, 1)",
    "x: %s[19,301]; x.flip(1)",
    "x: %s[7,131,3]; x.flip(1).flip(2)[:, 1:]",
    "x: %s[19,301]; x[1:, 290:2:-1]",
    "x: %s[401]; x[:-1].flip(0) -> [400]:[1]+3",
    "x: %s[17,130]; x.tril(3).flip(1)",
    "x: %s[70,19,95]; x[:, :, 1:]",
    "x: %s[90,37,50]; y: %s[90,37,47]; concat(2, x, y).pad((0,0),(1,0),(0,2))",
    "x: %s[5,200]; concat(1, x[:, 40:0:-1], x, x[:, -2:-45:-1])",
    "x: %s[5,7,61]; x.flip(2).pad((0,0),(0,0),(3,2)).flip(0)",
    "x: %s[50,97]; x.roll(40, 1).roll(3, 0)",
    "x: %s[2,3,10,70]; x.pad((0,0),(0,0),(1,1),(1,1)).unfold(2,3,1).unfold(3,3,1).permute(0,1,4,5,2,3)",
    "x: %s[1,2,9,65]; x.pad((0,0),(0,0),(1,1),(1,1)).unfold(2,3,1).unfold(3,3,1).permute(0,1,4,5,2,3)",
};
/* clang-format on */
enum { N_SEGMENTS = sizeof segments / sizeof *segments };

/* Each line as each of the first dtypes, all architectures and alignments (a sample of them, but for
 * XT_TEST_FULL=1), by this family. */
static void family_copies(const char *family, const char *const *lines, int n, const char *const *type,
                          int n_types)
{
    char line[256];
    struct proof p;
    for (int c = 0; c < n && !cuda_skipped(); c++)
        for (int d = 0; d < n_types; d++)
            for (int k = 0; k < 2 * N_ARCHS; k++) {
                if ((!test_full() && k != (c + d) % (2 * N_ARCHS)) || !test_part(c + d))
                    continue;
                snprintf(line, sizeof line, lines[c], type[d], type[d], type[d]);
                prove(line, archs[k / 2], k % 2, &p);
                ck_assert_msg(!strcmp(p.strategy, family), "%s: %s", line, p.strategy);
            }
}

START_TEST(rows_of_segments_copy_every_width_that_shares_no_alignment)
{
    static const char *const type[] = {"u8", "f16", "f32"};
    family_copies("segments", segments, N_SEGMENTS, type, 3);
}
END_TEST

/* clang-format off */
/* Short rows joined and padded: parts of one unit and of many, one repeated, one with gaps; rows of records
 * that are no whole blocks; sources that end, and slices that begin, anywhere. */
static const char *const records[] = {
    "a: %s[901,5]; b: %s[901,11]; concat(1, a, b)",
    "a: %s[1201,7]; b: %s[1201,6]; concat(1, a, b)",
    "a: %s[700,3]; b: %s[700,1]; c: %s[700,9]; concat(1, a, b, c)",
    "a: %s[1100,5]; a.pad((0,0),(1,1), value=7)",
    "a: %s[1100,6]; a[1:, 1:].pad((0,0),(0,2))",
    "a: %s[1100,8]; b: %s[1100,5]; concat(1, a[:, 1:7], b[:, :3]) -> [1100,9]:[9,1]+3",
    "a: %s[3,1030,4]; b: %s[3,1031,3]; concat(2, a, b[:, 1:]) -> [3,1030,7]:[7213,7,1]+1",
    "a: %s[1024,5]; b: %s[3]; concat(1, a, b.expand(1024,3))",
    "a: %s[1024,3]; b: %s[1024]; concat(1, a, b.reshape(1024,1), a)",
    "a: %s[1300]; concat(1, a.unfold(0,5,1), a.unfold(0,5,1)).pad((0,0),(1,0), value=3)",
};
/* clang-format on */

START_TEST(records_of_several_parts_copy_every_width)
{
    family_copies("packed", records, sizeof records / sizeof *records, dtypes, 3);
    family_copies("packed", records, 1, dtypes, N_DTYPES - 1);
}
END_TEST

/* Rows joined of random parts, as nobody would choose them: of several sources or of one, with gaps, turned,
 * every second element, one row or one element for all; strides and offsets of their own; fills. */
static void draw_source(struct xti_str *b, int i, const char *type, int rows)
{
    int len = (int)pick(2, rows < 100 ? 90 : 14), gap = (int)(pick(0, 3) ? 0 : pick(1, 5));
    bool turned = !pick(0, 9);
    xti_str_addf(b, "x%d: %s[%d,%d]:[%d,%d]+%d; ", i, type, rows, len, turned ? 1 : len + gap,
                 turned ? rows + gap : 1, (int)(pick(0, 2) ? 0 : pick(1, 9)));
}

static void draw_part(struct xti_str *b, int n_sources, int rows)
{
    static const char *const odd[] = {"[:, ::-1]", "[:, 1:]",  "[:, ::2]",  "[::-1]",
                                      "[:, :1]",   "[:, :-1]", ".roll(1,1)"};
    int which = pick(0, 1) ? -1 : (int)pick(0, 8);
    xti_str_addf(b, ", x%d", (int)pick(0, n_sources - 1));
    if (which >= 7)
        xti_str_addf(b, which == 7 ? "[:1].expand(%d,-1)" : "[:, :1].expand(%d,7)", rows);
    else if (which >= 0)
        xti_str_add(b, odd[which]);
}

static void draw_rows(struct xti_str *b)
{
    const char *type = dtypes[pick(0, 3)];
    int n = (int)pick(1, 4), rows = (int)(pick(0, 1) ? pick(600, 1300) : pick(20, 60));
    for (int i = 0; i < n; i++)
        draw_source(b, i, type, rows);
    xti_str_add(b, "concat(1");
    for (int i = 0, parts = (int)pick(2, 4); i < parts; i++)
        draw_part(b, n, rows);
    xti_str_add(b, ")");
    if (!pick(0, 2))
        xti_str_addf(b, ".pad((%d,0),(%d,%d), value=3)", (int)pick(0, 1), (int)pick(0, 3), (int)pick(0, 3));
    if (!pick(0, 4))
        xti_str_addf(b, ".tril(%d)", (int)pick(-3, 9));
}

START_TEST(rows_of_random_parts_copy_what_the_map_says)
{
    const char *more = getenv("XT_TEST_SEEDS");
    int tried = more ? atoi(more) : test_full() ? 300 : 8, packed = 0, segmented = 0, woven = 0;
    for (int i = 0; i < tried && !cuda_skipped(); i++) {
        struct xti_str line = {0};
        struct proof p;
        draw_rows(&line);
        prove(line.s, archs[i % N_ARCHS], i / N_ARCHS % 2, &p);
        packed += !strcmp(p.strategy, "packed");
        segmented += !strcmp(p.strategy, "segments");
        woven += !strcmp(p.strategy, "weave");
        xti_str_free(&line);
    }
    printf("note: %d rows of random parts: %d packed, %d segments, %d weaves\n", tried, packed, segmented,
           woven);
}
END_TEST

/* The goals are those of large rows: what the last words of a warp and the ends of rows add is in them. */
START_TEST(long_rows_ask_for_few_sectors_more_than_they_need)
{
    /* clang-format off */
    static const struct { const char *line; double instructions; } rows[] = {
        {"x: u8[600,8193]; x[:, 1:]", 60},
        {"x: f16[600,4097]; x[:, 1:]", 65},
        {"x: f32[600,2049]; x[:, 1:]", 60},
        {"x: f32[600,2047]; x.pad((0,0),(1,0))", 70},
        {"x: f32[80,126,126]; x.pad((0,0),(1,1),(1,1))", 140},
        {"x: f32[1200,1024]; x.tril(0)", 60},
        {"x: f16[1200,2048]; x.roll(3,1)", 100},
    };
    /* clang-format on */
    if (cuda_skipped())
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct proof p;
        prove(rows[i].line, archs[i % N_ARCHS], i % 2, &p);
        double instructions = 0.5 * (double)p.report.instructions / (double)p.compulsory_store,
               most = rows[i].instructions * (p.tier == XTI_TIER_EXACT ? 1 : 1.4);
        ck_assert_msg(p.load_ratio <= 1.15 && p.store_ratio <= 1.10 && instructions <= most,
                      "%s: sectors %.2f and %.2f, %.1f instructions per 16 bytes", rows[i].line, p.load_ratio,
                      p.store_ratio, instructions);
    }
}
END_TEST

/* clang-format off */
/* Channels joined, taken apart, turned round, left out, repeated; rows that are whole items, and others; both
 * sides aligned and not. */
static const char *const weaves[] = {
    "x: %s[3,40,64]; x.permute(1,2,0)",
    "x: %s[5,3,130]; x.permute(0,2,1)",
    "x: %s[2,4,320]; x.permute(0,2,1)",
    "x: %s[2,3,133]; x.permute(0,2,1) -> [2,133,3]:[407,3,1]+5",
    "x: %s[40,64,3]; x.permute(2,0,1)",
    "x: %s[6,160,2]; x.permute(0,2,1)",
    "x: %s[6,163,2]; x[1:, 1:161].permute(0,2,1)",
    "x: %s[3,300,4]; x[:, 3:291, 1:4].permute(2,0,1)",
    "x: %s[7,128,3]; x.flip(1)",
    "x: %s[7,131,3]; x.flip(1)",
    "x: %s[7,131,3]; x.flip(2)",
    "x: f64[7,131,3]; x.flip(1).flip(2)[:, 1:]",
    "x: %s[5,160,4]; x[..., 1:]",
    "x: %s[5,163,4]; x[..., :3]",
    "x: %s[5,160,4]; x[..., ::3]",
    "x: %s[9,512]; x[:, ::2]",
    "x: %s[9,513]; x[:, ::-2]",
    "x: %s[9,600]; x[:, 1::3]",
    "x: %s[9,601]; x[1:, 597:3:-4] -> [8,149]:[151,1]+1",
    "x: %s[4,150]; x.unsqueeze(2).expand(4,150,2).reshape(4,300)",
    "x: %s[3,149]; x.unsqueeze(2).expand(3,149,3).reshape(3,447)",
    "x: %s[200]; x.unfold(0,3,1)",
    "x: %s[9,160,3]; x.pad((0,0),(0,0),(0,1), value=7)",
    "x: %s[9,160,2]; x.pad((0,0),(0,0),(1,1), value=7)",
    "x: %s[8,200,1]; x.pad((0,0),(0,0),(1,0), value=7)",
    "a: %s[7,160]; b: %s[7,160]; stack(2, a, b)",
    "a: %s[7,164]; b: %s[7,164]; c: %s[7,164]; stack(2, a, b, c)",
    "a: %s[7,192]; b: %s[7,192]; stack(2, a[:, ::-1], b[:, ::-1])",
    "a: %s[7,193]; b: %s[7,193]; stack(2, a[:, 1:], b[:, :-1])",
    "a: %s[7,193]; b: %s[7,193]; stack(2, a[:, 1:], b[:, :-1]).pad((0,0),(0,0),(0,1))",
};
/* clang-format on */
enum { N_WEAVES = sizeof weaves / sizeof *weaves };

START_TEST(weaves_of_every_kind_copy_every_width)
{
    family_copies("weave", weaves, N_WEAVES, dtypes, N_DTYPES - 1); /* all but c128 */
}
END_TEST

/* A function is some 20 KB of source. */
START_TEST(two_hundred_inputs_share_a_few_functions)
{
    enum { MOST_SOURCE = 400000 };
    struct proof p;
    struct xti_map m;
    struct xt_graph *g = concat_of(200, 5);
    fuse(g, &m);
    xt_graph_free(g);
    ck_assert_int_ge(m.n_pieces, 200);
    if (!cuda_skipped())
        for (int k = 0; k < N_ARCHS; k++)
            ck_assert_msg(cuda_prove(&m, archs[k], k == 1, &p) && p.source_bytes < MOST_SOURCE,
                          "sm_%d: %zu bytes: %s", archs[k], p.source_bytes, p.error);
    xti_map_free(&m);
}
END_TEST

/* Rolls of many axes, many inputs, pieces that would each have a long function: a line of them. */
struct many {
    const char *what;
    int n; /* axes, or inputs */
};

static char *many_pieces(const struct many *of)
{
    struct xti_str b = {0};
    bool rolls = !strcmp(of->what, "rolls"), turned = !strcmp(of->what, "turned");
    for (int i = 0; i < of->n; i++)
        if (rolls)
            xti_str_add(&b, i ? ",3" : "x: f32[3");
        else
            xti_str_addf(&b, turned ? "a%d: f16[%d,45]; " : "a%d: f16[45,%d]; ", i, 33 + 7 * i % 61);
    xti_str_add(&b, rolls ? "]; x" : "concat(1");
    for (int i = 0; i < of->n; i++)
        if (rolls)
            xti_str_addf(&b, ".roll(1,%d)", i);
        else
            xti_str_addf(&b, turned ? ", a%d.T" : i % 3 ? ", a%d" : ", a%d.pad((0,0),(1,0))", i);
    xti_str_add(&b, rolls ? "" : ")");
    return b.s;
}

START_TEST(hundreds_of_pieces_share_a_table)
{
    static const struct many of[] = {{"rolls", 8}, {"turned", 16}, {"inputs", 21}, {"inputs", 90}};
    if (cuda_skipped())
        return;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char *line = many_pieces(&of[i]);
        struct proof p;
        for (int k = 0; k < 2; k++)
            prove(line, archs[(i + (size_t)k) % N_ARCHS], k, &p);
        xti_free(line);
    }
}
END_TEST

/* Of the process, as other tests may run beside it. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of the emitter and NVRTC, the least of three: other programs share the caches. */
static double compile_seconds(const char *line, int *functions)
{
    const struct xti_nvrtc *nvrtc = xti_nvrtc_for(90, 0, NULL);
    double least = 0;
    for (int again = 0; again < 3; again++) {
        struct made o;
        struct xti_code code = {0};
        double start = cpu_seconds();
        make(line, &o);
        if (nvrtc)
            ck_assert(!xti_nvrtc_compile(nvrtc, o.source.s, "xt_test_00000000", 90, &code, NULL));
        double seconds = cpu_seconds() - start;
        least = again && least < seconds ? least : seconds;
        *functions = o.plan.n_bodies;
        xti_code_free(&code);
        drop(&o);
    }
    return least;
}

/* Where nothing else runs; a kernel of one piece, compiled beside them, tells of how much else does. */
START_TEST(thousands_of_pieces_compile_in_two_seconds)
{
    static const struct many of[] = {{"rolls", 12}, {"turned", 16}, {"inputs", 60}, {"inputs", 3000}};
    enum { ONES = 25 }; /* in two seconds */
    int functions;
    double one = compile_seconds("x: f32[64,64]; x.T", &functions);
    double limit = one * ONES > 2 ? one * ONES : 2;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char *line = many_pieces(&of[i]);
        double seconds = compile_seconds(line, &functions);
        ck_assert_msg(seconds < limit && functions < 20, "%d %s: %.2f s, one piece %.2f s, %d functions",
                      of[i].n, of[i].what, seconds, one, functions);
        printf("%d %s: %.2f s, one piece %.2f s\n", of[i].n, of[i].what, seconds, one);
        xti_free(line);
    }
}
END_TEST

/* The golden file's elements are i64: every chain at eight bytes, in turn on every architecture. */
START_TEST(golden_chains_copy_what_the_map_says)
{
    struct golden_case *c = malloc(sizeof *c);
    FILE *f = golden_open();
    if (cuda_skipped() || !f) {
        printf("%s", f ? "" : "skipped: test_cuda: no golden file\n");
        return;
    }
    for (int i = 0; golden_next(f, c); i++) {
        struct xti_map m;
        struct proof p;
        bool small = c->n_table >= 0; /* the others are huge */
        if (small && test_part(i)) {
            fuse(c->g, &m);
            for (int k = 0; k < 2 * N_ARCHS; k++)
                if (test_full() || k == i % (2 * N_ARCHS))
                    ck_assert_msg(cuda_prove(&m, archs[k / 2], k % 2, &p), "%s: sm_%d: %s\n    %s", c->name,
                                  archs[k / 2], p.error, c->text);
            xti_map_free(&m);
        }
        xt_graph_free(c->g);
    }
    fclose(f);
    free(c);
}
END_TEST

/* One part after the other: libcheck keeps a test's microseconds in an int. */
enum { RANDOM_PARTS = 10 };

START_TEST(random_chains_copy_what_the_map_says)
{
    int n = test_full() ? 5000 : 150;
    if (cuda_skipped())
        return;
    for (int i = _i * n / RANDOM_PARTS; i < (_i + 1) * n / RANDOM_PARTS; i++) {
        struct proof p;
        struct xti_map m;
        struct random_graph_options opt = {.max_numel = 2048};
        uint64_t seed = 1000 + (uint64_t)i;
        struct xt_graph *g = random_graph(seed, &opt);
        int sm = archs[i % N_ARCHS];
        if (!test_part(i)) {
            xt_graph_free(g);
            continue;
        }
        fuse_for(g, sm, &m);
        struct proof_options how = {.misaligned = i / N_ARCHS % 2, .processors = i / 2 % 2 * 8};
        bool ok = cuda_prove_with(&m, sm, &how, &p);
        ck_assert_msg(ok, "seed %llu, sm_%d, turn %d: %s\n    %s", (unsigned long long)seed, sm, i, p.error,
                      graph_text(g));
        xti_map_free(&m);
        xt_graph_free(g);
    }
    if (test_full())
        printf("note: random chains up to %d, byte-equal in both tiers\n", (_i + 1) * n / RANDOM_PARTS),
            fflush(stdout);
}
END_TEST

/* clang-format off */
static const char *const odd_shapes[] = {
    "x: %s[259,301]; x.permute(1,0)",
    "x: %s[1023,131]; x[:, 1:].permute(1,0)",
    "x: %s[3,131,173]; x.flip(1).permute(0,2,1)",
    "x: %s[97,99,7]; x.permute(2,0,1)",
    "x: %s[7,7,7,7,7,5]; x.permute(5,4,3,2,1,0)",
    "x: %s[5,5,5,5,5,5,5]; x.permute(6,5,4,3,2,1,0)",
    "x: %s[3,3,3,3,3,3,3,3,3,3,3,3]; x.permute(7,11,2,9,0,5,1,3,10,6,4,8)",
    "x: %s[9,731,9]; x.permute(2,0,1)",
    "x: %s[27,5,9,81]; x.permute(1,3,0,2)",
    "x: %s[150,401]; x.pad((1,1),(1,2))",
    "x: %s[4001,5]; y: %s[4001,6]; concat(1, x, y)",
};
/* clang-format on */

/* Eight processors have whole boxes of copies that an interpreter can run. */
START_TEST(odd_shapes_in_whole_boxes_copy_every_width)
{
    enum { N_SHAPES = sizeof odd_shapes / sizeof *odd_shapes };
    char line[256];
    if (cuda_skipped())
        return;
    for (int c = 0, turn = 0; c < N_SHAPES; c++)
        for (int d = 0; d < N_DTYPES - 1; d++)
            for (int k = 0; k < 2 * N_ARCHS; k++, turn++) {
                struct proof p;
                struct xti_map m;
                struct proof_options opt = {.misaligned = k % 2, .processors = 8};
                if ((!test_full() && k != (c + d) % (2 * N_ARCHS)) || !test_part(turn))
                    continue;
                snprintf(line, sizeof line, odd_shapes[c], dtypes[d], dtypes[d]);
                map_of(line, &m);
                bool ok = cuda_prove_with(&m, archs[k / 2], &opt, &p);
                xti_map_free(&m);
                ck_assert_msg(ok, "%s, sm_%d%s: %s", line, archs[k / 2], k % 2 ? " misaligned" : "", p.error);
            }
}
END_TEST

/* A compiler may fetch a word of shared memory whole, of which it wants every second unit: all of it must
 * have been written, where the source ends within it, too. */
START_TEST(words_that_the_source_ends_within_are_written_whole)
{
    static const char *const lines[] = {"x: f16[9,32,24]; x[:, ::2, ::2]", "x: f32[9,16,20]; x[:, ::2, ::2]",
                                        "x: f32[9,8,20]; x[:, ::2, ::2]"};
    if (cuda_skipped())
        return;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (int k = 0; k < 2 * N_ARCHS; k++) {
            struct proof p;
            struct xti_map m;
            struct proof_options opt = {.tier = k % 2 ? PROOF_EXACT : PROOF_STRUCTURE};
            map_of(lines[i], &m);
            bool ok = cuda_prove_with(&m, archs[k / 2], &opt, &p);
            xti_map_free(&m);
            ck_assert_msg(ok, "%s, sm_%d: %s", lines[i], archs[k / 2], p.error);
            ck_assert_msg(!strcmp(p.strategy, "tile"), "%s: %s", lines[i], p.strategy);
        }
}
END_TEST

START_TEST(blocks_past_the_grid_limit_and_wide_indices_copy_too)
{
    static const char *const lines[] = {"x: f32[100,120]; x.permute(1,0)",
                                        "x: u8[5,6]; y: u8[5,7]; concat(1, x, y, x).flip(0)",
                                        "x: f16[300,40]; x[:, 3:39].pad((1,1),(0,1))",
                                        "x: f32[30,40]; x.tril(0)",
                                        "x: u8[7,901]; x[:, 2:900]",
                                        "x: u8[40,201,3]; x.flip(1)",
                                        "x: f16[3,1500]; x.permute(1,0)"};
    if (cuda_skipped())
        return;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (int k = 0; k < 4; k++) {
            struct proof p;
            struct xti_map m;
            struct proof_options opt = {.misaligned = k & 1, .wide_index = k & 2, .grid = 1 + k % 3};
            map_of(lines[i], &m);
            bool ok = cuda_prove_with(&m, archs[(int)(i + (size_t)k) % N_ARCHS], &opt, &p);
            xti_map_free(&m);
            ck_assert_msg(ok, "%s, way %d: %s", lines[i], k, p.error);
        }
}
END_TEST

static void wastes_nothing(const char *shape, const char *dtype, int sm)
{
    char line[128];
    struct proof p;
    snprintf(line, sizeof line, shape, dtype);
    prove(line, sm, false, &p);
    const struct ptx_report *r = &p.report;
    ck_assert_msg(p.load_ratio <= 1.03 && p.store_ratio <= 1.03, "%s: %.3f and %.3f of the sectors needed",
                  line, p.load_ratio, p.store_ratio);
    ck_assert_msg((double)r->shared_load_wavefronts <= 1.05 * (double)r->shared_load_ideal &&
                      (double)r->shared_store_wavefronts <= 1.05 * (double)r->shared_store_ideal,
                  "%s: bank conflicts", line);
}

/* What next to nothing is wasted on: whole tiles, whole rows, whole items of weaves. */
START_TEST(whole_tiles_move_whole_sectors_without_bank_conflicts)
{
    static const char *const shape[] = {"x: %s[256,256]; x.permute(1,0)",
                                        "x: %s[2,128,3,128]; x.permute(2,3,0,1)", "x: %s[65536]; x",
                                        "x: %s[64,1024]; x[:, 256:768]", "x: %s[16,1024]; x.flip(1)"};
    static const char *const woven[] = {"x: %s[3,64,128]; x.permute(1,2,0)",
                                        "x: %s[64,128,3]; x.permute(2,0,1)", "x: %s[32,256,3]; x.flip(1)",
                                        "x: %s[32,512,2]; x.permute(2,0,1)", "x: %s[4,8192]; x.permute(1,0)"};
    if (cuda_skipped())
        return;
    for (int d = 0; d < N_DTYPES; d++) {
        for (int i = 0; i < 5; i++)
            wastes_nothing(shape[i], dtypes[d], archs[(d + i) % N_ARCHS]);
        for (int i = 0; i < 5 && d + 1 < N_DTYPES; i++)
            wastes_nothing(woven[i], dtypes[d], archs[(d + i) % N_ARCHS]);
    }
}
END_TEST

START_TEST(predicted_sectors_are_those_that_are_counted)
{
    static const char *const lines[] = {
        "x: f32[256,256]; x.permute(1,0)",      "x: f16[2,128,3,128]; x.permute(2,3,0,1)",
        "x: u8[64,1024]; x[:, 256:768]",        "x: f32[2048,8,8]; x.permute(0,2,1)",
        "x: f32[511,509]; x.permute(1,0)",      "x: u8[4,64,320,3]; x.permute(0,3,1,2)",
        "x: f32[600,2047]; x.pad((0,0),(1,0))", "x: f16[4,3,64,320]; x.permute(0,2,3,1)",
        "x: u8[99,1001,3]; x.flip(1)",          "x: f32[60,4099]; x[:, ::2]"};
    if (cuda_skipped())
        return;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct made o;
        struct proof p;
        struct xti_cuda_prediction want;
        make(lines[i], &o);
        prove(lines[i], 90, false, &p);
        ck_assert(xti_cuda_predict(&o.plan, &want));
        double load = want.load.requested / (double)p.report.load_sectors,
               store = want.store.requested / (double)p.report.store_sectors;
        ck_assert_msg(load > 0.9 && load < 1.1 && store > 0.9 && store < 1.1,
                      "%s: %.2f and %.2f of those counted", lines[i], load, store);
        drop(&o);
    }
}
END_TEST

/* The layout of a box is chosen by this count. */
START_TEST(wavefronts_of_a_box_are_those_that_are_counted)
{
    static const char *const lines[] = {"x: u8[512,512]; x.permute(1,0)",
                                        "x: f16[480,336]; x.permute(1,0)",
                                        "x: f32[96,96,24]; x.permute(2,1,0)",
                                        "x: f32[512,5,5]; x.permute(0,2,1)",
                                        "x: f64[4,64,320,3]; x.flip(2)",
                                        "x: f16[16,16,16,16]; x.permute(3,1,2,0)",
                                        "x: f32[64,2048]; x[:, ::5]",
                                        "x: u8[64,24,40]; x.permute(0,2,1)",
                                        "x: f32[512,509]; x.permute(1,0)",
                                        "x: f64[256,768]; x.reshape(256,96,8).permute(2,0,1)",
                                        "x: f16[2,40,48,5]; x.permute(0,3,2,1)",
                                        "x: f32[507,507]; x.permute(1,0)",
                                        "x: f32[506,505]; x.permute(1,0)",
                                        "x: f64[255,253]; x.permute(1,0)"};
    int n = 0;
    if (cuda_skipped())
        return;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct made o;
        struct proof p;
        make(lines[i], &o);
        prove(lines[i], 90, false, &p);
        const struct ptx_report *r = &p.report;
        if (o.plan.step->box) {
            struct xti_box_waves w = xti_box_count_waves(o.plan.step->box, o.plan.map.esize);
            double counted = (double)(r->shared_load_wavefronts + r->shared_store_wavefronts) /
                             (double)(r->shared_load_ideal + r->shared_store_ideal);
            ck_assert_msg(fabs(w.taken / w.ideal - counted) < 0.08 * counted, "%s: %.3f, counted %.3f",
                          lines[i], w.taken / w.ideal, counted);
            n++;
        }
        drop(&o);
    }
    ck_assert_int_ge(n, 9);
}
END_TEST

/* --------------------------------------------------------------------------------------- plans and sources
 */

START_TEST(a_source_is_deterministic_plain_and_without_includes)
{
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct made a, b;
        make(pieces[i], &a);
        make(pieces[i], &b);
        if (a.plan.n_steps) {
            ck_assert_str_eq(a.source.s, b.source.s);
            ck_assert_ptr_null(strstr(a.source.s, "#include"));
            ck_assert_ptr_nonnull(strstr(a.source.s, "xt_test_00000000("));
            ck_assert_ptr_nonnull(strstr(a.source.s, "xt_test_00000000_e("));
            for (const char *c = a.source.s; *c; c++)
                ck_assert_msg(*c == '\n' || (*c >= ' ' && *c <= '~'), "character %d", *c);
        }
        drop(&a);
        drop(&b);
    }
}
END_TEST

START_TEST(a_fill_value_is_data_and_no_part_of_the_source)
{
    struct made a, b;
    struct xti_str launch_a = {0}, launch_b = {0};
    make("x: f32[30,40]; x.pad((1,2),(3,4), value=7)", &a);
    make("x: f32[30,40]; x.pad((1,2),(3,4), value=9)", &b);
    ck_assert_str_eq(a.source.s, b.source.s);
    xti_cuda_launch_json(&a.plan, XTI_TIER_EXACT, "n", &launch_a);
    xti_cuda_launch_json(&b.plan, XTI_TIER_EXACT, "n", &launch_b);
    ck_assert_ptr_nonnull(strstr(launch_a.s, "0000e0400000e0400000e0400000e040"));
    ck_assert_ptr_nonnull(strstr(launch_b.s, "00001041000010410000104100001041"));
    xti_str_free(&launch_a);
    xti_str_free(&launch_b);
    drop(&a);
    drop(&b);
}
END_TEST

static void check_launch(const char *line, const char *want)
{
    struct made a;
    struct xti_str b = {0};
    make(line, &a);
    xti_cuda_launch_json(&a.plan, XTI_TIER_EXACT, "n", &b);
    ck_assert_str_eq(b.s, want);
    xti_str_free(&b);
    drop(&a);
}

START_TEST(a_launch_names_the_entry_for_aligned_buffers_whatever_the_offsets)
{
    check_launch("x: f32[0,4]; x", "[]");
    check_launch(
        "y: f32[9]; x: f32[1024]; x[512:]",
        "[{\"entry\": \"n\", \"grid\": [1, 1, 1], \"block\": [128, 1, 1], \"shared\": 0, \"params\": "
        "[{\"kind\": \"pointer\", \"of\": \"dst\", \"byte_offset\": 0}, "
        "{\"kind\": \"pointer\", \"of\": \"src1\", \"byte_offset\": 2048}]}]");
    check_launch(
        "x: f32[8]; x[1:]",
        "[{\"entry\": \"n\", \"grid\": [1, 1, 1], \"block\": [128, 1, 1], \"shared\": 0, \"params\": "
        "[{\"kind\": \"pointer\", \"of\": \"dst\", \"byte_offset\": 0}, "
        "{\"kind\": \"pointer\", \"of\": \"src0\", \"byte_offset\": 4}]}]");
}
END_TEST

/* Steps are laid one after another and cover the whole grid. */
static void check_blocks(const struct xti_cuda_plan *p)
{
    int64_t next = 0;
    int times[XTI_MAX_PIECES] = {0};
    for (int i = 0; i < p->n_steps; i++) {
        const struct xti_rows *rows = p->step[i].rows;
        times[p->step[i].piece] += !rows;
        for (int k = 0; rows && k < rows->n_pieces; k++)
            times[rows->piece[k]]++;
        ck_assert_int_eq(p->step[i].first_block, next);
        ck_assert_int_gt(p->step[i].blocks, 0);
        next += p->step[i].blocks;
    }
    ck_assert_int_eq(p->blocks, next);
    for (int i = 0; i < p->map.n_pieces; i++)
        ck_assert_int_eq(times[i], 1);
}

START_TEST(a_plan_covers_every_piece_once)
{
    for (int i = 0; i < 300; i++) {
        struct xti_map m;
        struct xti_cuda_plan p;
        struct xti_err err = {0};
        struct xti_cuda_target t = {.sm = 90};
        struct xt_graph *g = random_graph(5000 + (uint64_t)i, NULL);
        fuse(g, &m);
        ck_assert_msg(xti_cuda_plan_make(&m, &t, &p, &err) == XT_OK, "%s: %s", graph_text(g), err.e.message);
        check_blocks(&p);
        check_blocks(p.elem);
        xti_cuda_plan_free(&p);
        xti_map_free(&m);
        xt_graph_free(g);
    }
}
END_TEST

static int64_t blocks_for(const struct xti_map *m, int processors)
{
    struct xti_cuda_plan p;
    struct xti_err err = {0};
    struct xti_cuda_target t = {.sm = 90, .n_sms = processors};
    ck_assert_msg(xti_cuda_plan_make(m, &t, &p, &err) == XT_OK, "%s", err.e.message);
    int64_t blocks = p.blocks;
    xti_cuda_plan_free(&p);
    return blocks;
}

/* Of segments, rows, boxes and records. */
START_TEST(a_device_of_few_processors_gets_few_larger_blocks)
{
    static const char *const lines[] = {"x: f32[256,1023]; x.pad((0,0),(1,0))",
                                        "x: f32[256,1024]; x[:, 256:768]", "x: f32[259,301]; x.permute(1,0)",
                                        "x: u8[20001,5]; y: u8[20001,6]; concat(1, x, y)"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct xti_map m;
        map_of(lines[i], &m);
        int64_t few = blocks_for(&m, 8), many = blocks_for(&m, 132);
        xti_map_free(&m);
        ck_assert_msg(few >= 16 && few < many, "%s: %lld blocks for 8 processors, %lld for 132", lines[i],
                      (long long)few, (long long)many);
    }
}
END_TEST

static int boxes_of(const struct xti_cuda_plan *p, const char *line)
{
    int n = 0;
    for (int i = 0; i < p->n_steps; i++) {
        const struct xti_box *b = p->step[i].box;
        ck_assert_msg(!b || (b->bytes > 0 && b->bytes <= 48 << 10 && b->store_bytes > 0), "%s: %lld bytes",
                      line, b ? (long long)b->bytes : 0);
        n += b != NULL;
    }
    return n;
}

/* Most rows are short, and begin anywhere within 16 bytes. */
START_TEST(rows_of_every_box_fit_in_shared_memory)
{
    static const char *const forms[] = {"x: %s[%d,%d]; x[:, 1:]", "x: %s[%d,%d]; x[:, :2]",
                                        "x: %s[%d,%d]; x.T", "x: %s[7,%d,%d]; x[:, :, 1:3].permute(1,0,2)"};
    int boxes = 0;
    for (int i = 0; i < 4 * N_DTYPES; i++)
        for (int k = 0; k < 3; k++) {
            static const int channels[] = {4, 5, 9};
            struct xti_cuda_target t = {.sm = 90, .n_sms = 132};
            struct xti_cuda_plan p;
            struct xti_map m;
            char line[128];
            snprintf(line, sizeof line, forms[i % 4], dtypes[i / 4], 226128, channels[k]);
            map_of(line, &m);
            ck_assert_int_eq(XT_OK, xti_cuda_plan_make(&m, &t, &p, NULL));
            boxes += boxes_of(&p, line) + boxes_of(p.elem, line);
            xti_cuda_plan_free(&p);
            xti_map_free(&m);
        }
    ck_assert_int_gt(boxes, 30);
}
END_TEST

static xt_status plan_and_emit(const struct xti_map *m, struct xti_err *err)
{
    struct xti_cuda_target t = {.sm = 90};
    struct xti_cuda_plan p = {0};
    xt_status s = xti_cuda_plan_make(m, &t, &p, err);
    for (int tier = XTI_TIER_STRUCTURE; tier <= XTI_TIER_EXACT && !s; tier++) {
        struct xti_str source = {0};
        s = xti_cuda_emit(&p, (enum xti_cuda_tier)tier, "xt_test_00000000", &source, err);
        xti_str_free(&source);
    }
    xti_cuda_plan_free(&p);
    return s;
}

START_TEST(every_failing_allocation_is_reported_and_leaks_nothing)
{
    struct xti_map m[2];
    struct xt_graph *g = concat_of(20, 3);
    map_of(pieces[4], &m[0]);
    fuse(g, &m[1]);
    xt_graph_free(g);
    for (int i = 0; i < 2; i++) {
        int64_t live = xti_live_allocations();
        xt_status s = XT_ENOMEM;
        int n = 0;
        while (s) {
            struct xti_err err = {0};
            xti_fail_alloc(++n, 0);
            s = plan_and_emit(&m[i], &err);
            xti_fail_alloc(0, 0);
            ck_assert_int_eq(xti_live_allocations(), live);
            ck_assert_msg(s == XT_OK || s == XT_ENOMEM, "allocation %d: %s", n, err.e.message);
            ck_assert_int_eq(err.e.status, s);
        }
        ck_assert_int_gt(n, 5);
        xti_map_free(&m[i]);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cuda");
    TCase *c = tcase_create("cuda"), *random = tcase_create("random"), *rows = tcase_create("rows"),
          *few = tcase_create("processors");
    tcase_set_timeout(c, test_full() ? 20000 : 1200);
    tcase_set_timeout(random, test_full() ? 20000 : 1200);
    tcase_add_loop_test(random, random_chains_copy_what_the_map_says, 0, RANDOM_PARTS);
    tcase_add_test(c, every_family_copies_every_width);
    tcase_add_test(c, pieces_of_every_kind_share_one_launch);
    tcase_add_test(c, hundreds_of_pieces_share_a_table);
    tcase_add_test(c, thousands_of_pieces_compile_in_two_seconds);
    tcase_add_test(c, rows_of_segments_copy_every_width_that_shares_no_alignment);
    tcase_add_test(c, long_rows_ask_for_few_sectors_more_than_they_need);
    tcase_add_test(c, records_of_several_parts_copy_every_width);
    tcase_add_test(c, weaves_of_every_kind_copy_every_width);
    tcase_add_test(c, two_hundred_inputs_share_a_few_functions);
    tcase_add_test(c, golden_chains_copy_what_the_map_says);
    tcase_add_test(c, words_that_the_source_ends_within_are_written_whole);
    tcase_add_test(c, blocks_past_the_grid_limit_and_wide_indices_copy_too);
    tcase_add_test(c, whole_tiles_move_whole_sectors_without_bank_conflicts);
    tcase_add_test(c, predicted_sectors_are_those_that_are_counted);
    tcase_add_test(c, wavefronts_of_a_box_are_those_that_are_counted);
    tcase_add_test(c, a_source_is_deterministic_plain_and_without_includes);
    tcase_add_test(c, a_fill_value_is_data_and_no_part_of_the_source);
    tcase_add_test(c, a_launch_names_the_entry_for_aligned_buffers_whatever_the_offsets);
    tcase_add_test(c, a_plan_covers_every_piece_once);
    tcase_add_test(c, every_failing_allocation_is_reported_and_leaks_nothing);
    suite_add_tcase(s, c);
    suite_add_tcase(s, random);
    tcase_add_test(rows, rows_of_random_parts_copy_what_the_map_says);
    tcase_set_timeout(rows, 1800);
    suite_add_tcase(s, rows);
    tcase_add_test(few, a_device_of_few_processors_gets_few_larger_blocks);
    tcase_add_test(few, rows_of_every_box_fit_in_shared_memory);
    tcase_add_test(few, odd_shapes_in_whole_boxes_copy_every_width);
    tcase_set_timeout(few, test_full() ? 20000 : 1200);
    suite_add_tcase(s, few);
    return run_suite(s);
}
