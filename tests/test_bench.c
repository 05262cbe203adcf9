/* test_bench.c: the benchmark's own parts: the step-by-step baseline, which is also what verifies each row,
 * against the evaluation node by node; the lines that a chain must read against trying each; reading
 * workloads; the report. */
#include <check.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "bench/lines.c"
#include "bench/naive.c"
#include "bench/strided.c"
/* Every part is here as it stands: what is tested is static there, and linking does not depend on the
 * command. */
#include "bench/busy.c"
#include "bench/contest.c"
#include "bench/limit.c"
#include "bench/measure.c"
#include "bench/peers.c"
#include "bench/report.c"

#include "map/map.h"
#include "support/random_graph.h"
#include "support/suite.h"

enum { CANARY = 0x5a, PAD = 64, SEEDS = 400 };

struct arena {
    int n;
    unsigned char *src[LIMIT_SOURCES], *dst[2];
    const void *at[LIMIT_SOURCES];
    size_t src_bytes[LIMIT_SOURCES], dst_bytes;
    int width;
};

static int64_t highest(int rank, const int64_t *n, const int64_t *st, int64_t offset)
{
    for (int i = 0; i < rank; i++) {
        if (!n[i])
            return -1;
        offset += st[i] > 0 ? st[i] * (n[i] - 1) : 0;
    }
    return offset;
}

static void *bytes_of(size_t n, int c)
{
    void *p = aligned_alloc(PAD, (n + 2 * PAD) / PAD * PAD);
    ck_assert_ptr_nonnull(p);
    return memset(p, c, (n + 2 * PAD) / PAD * PAD);
}

static void make_arena(struct arena *a, const struct xt_graph *g, uint64_t seed)
{
    struct xt_node_info f = {.size = sizeof f};
    struct xt_output_info o = {.size = sizeof o};
    ck_assert(!xt_output_get(g, &o) && !xt_node_get(g, o.node, &f));
    a->width = (int)xt_dtype_bytes(f.dtype);
    a->dst_bytes = (size_t)(highest(f.rank, f.shape, o.strides, o.offset) + 1) * (size_t)a->width;
    a->n = xt_input_count(g);
    for (int i = 0; i < 2; i++)
        a->dst[i] = bytes_of(a->dst_bytes, CANARY);
    for (int i = 0; i < a->n; i++) {
        ck_assert(!xt_node_get(g, xt_input_node(g, i), &f));
        a->src_bytes[i] = (size_t)(highest(f.rank, f.shape, f.strides, f.offset) + 1) * (size_t)a->width;
        a->src[i] = bytes_of(a->src_bytes[i], 0);
        a->at[i] = a->src[i];
        random_fill(a->src[i], a->src_bytes[i], seed + (uint64_t)i);
    }
}

static void free_arena(struct arena *a)
{
    for (int i = 0; i < a->n; i++)
        free(a->src[i]);
    free(a->dst[0]);
    free(a->dst[1]);
}

static void evaluate(const struct xt_graph *g, const struct arena *a, unsigned char *dst)
{
    struct xti_err err = {0};
    ck_assert_msg(!xti_graph_eval(g, dst, a->at, &err), "%s: %s", graph_text(g), err.e.message);
}

static void check_naive(const struct xt_graph *g, uint64_t seed)
{
    struct arena a;
    make_arena(&a, g, seed);
    evaluate(g, &a, a.dst[0]);
    struct naive *v = naive_new(g);
    ck_assert_msg(v != NULL, "seed %llu: %s", (unsigned long long)seed, graph_text(g));
    for (int times = 0; times < 2; times++) {
        memset(a.dst[1], CANARY, a.dst_bytes + PAD);
        naive_run(v, a.dst[1], a.at);
        ck_assert_msg(!memcmp(a.dst[0], a.dst[1], a.dst_bytes + PAD), "seed %llu: %s",
                      (unsigned long long)seed, graph_text(g));
    }
    struct strided copy;
    int64_t from, to;
    if (naive_as_copy(v, &copy, &from, &to)) { /* what compiled peers are given */
        memset(a.dst[1], CANARY, a.dst_bytes + PAD);
        strided_copy(&copy, (char *)a.dst[1] + to * a.width, (const char *)a.src[0] + from * a.width);
        ck_assert_msg(!memcmp(a.dst[0], a.dst[1], a.dst_bytes + PAD), "seed %llu: %s",
                      (unsigned long long)seed, graph_text(g));
    }
    ck_assert_int_ge(naive_steps(v), 1);
    ck_assert_int_ge(naive_bytes(v), 0);
    naive_free(v);
    free_arena(&a);
}

START_TEST(the_baseline_gives_what_the_definitions_give_on_random_chains)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct xt_graph *g =
            random_graph(seed + 1000 * (uint64_t)_i, &(struct random_graph_options){.dense_inputs = _i & 1,
                                                                                    .dense_output = _i & 2,
                                                                                    .max_numel = 1024});
        ck_assert_ptr_nonnull(g);
        check_naive(g, seed + 1000 * (uint64_t)_i);
        xt_graph_free(g);
    }
}
END_TEST

/* chain, moving steps, bytes that they read and write. */
static const struct {
    const char *chain;
    int steps;
    int64_t bytes;
} step_cases[] = {
    {"x: f32[4,6]; x.permute(1,0)", 1, 192},
    {"x: f32[4,6]; x", 1, 192},
    {"x: f32[4,6]; x.reshape(2,12).reshape(24)", 1, 192},
    {"x: f32[4,6]; x.permute(1,0).reshape(3,8).unsqueeze(0)", 1, 192},
    {"x: f32[4,6]; x.reshape(2,12).permute(1,0).reshape(24)", 1, 192},
    {"x: f32[4,6]:[1,4]; x.reshape(24)", 1, 192},
    {"x: f32[4,6]:[1,4]; x.reshape(24) -> [24]:[2]", 2, 384},
    {"x: f32[4,6]; x.reshape(24) -> [24]:[2]", 1, 192},
    {"x: f32[4,6]; x.permute(1,0)[:, ::-1].reshape(8,3)", 2, 384},
    {"x: f32[4,6]; x.permute(1,0).flip(0) -> [6,4]:[1,6]", 2, 384},
    {"x: u8[4]; x.pad((1,2))", 1, 11},
    {"x: u8[2,4]; y: u8[2,4]; concat(0, x, y)", 1, 32},
    {"x: u8[4]; x.roll(1,0)", 1, 8},
    {"x: u8[3]; x.unsqueeze(0).expand(5,3)", 1, 30},
    {"x: f32[4,6]; a = x.flip(0); concat(0, a, a)", 2, 192 + 384},
    {"x: f32[4,6]; a = x.flip(0); concat(0, a.reshape(24), a.reshape(24))", 2, 192 + 384},
};

START_TEST(the_baseline_makes_one_step_of_each_move_and_none_of_a_reshape)
{
    for (size_t i = 0; i < sizeof step_cases / sizeof *step_cases; i++) {
        struct xt_graph *g;
        const char *chain = step_cases[i].chain;
        ck_assert_msg(!xt_parse(chain, 0, NULL, &g), "%s: %s", chain, xt_last_error()->message);
        struct naive *v = naive_new(g);
        ck_assert_ptr_nonnull(v);
        ck_assert_msg(naive_steps(v) == step_cases[i].steps, "%s: %d steps", chain, naive_steps(v));
        ck_assert_msg(naive_bytes(v) == step_cases[i].bytes, "%s: %lld bytes", chain,
                      (long long)naive_bytes(v));
        naive_free(v);
        check_naive(g, i);
        xt_graph_free(g);
    }
}
END_TEST

/* A line is read when turning its bits over changes what the chain gives. */
static size_t lines_by_trying(const struct xt_graph *g, struct arena *a, int input)
{
    size_t lines = 0;
    evaluate(g, a, a->dst[0]);
    for (size_t at = 0; at < a->src_bytes[input]; at += LINE) {
        for (int turn = 0; turn < 2; turn++) {
            for (size_t i = at; i < at + LINE && i < a->src_bytes[input]; i++)
                a->src[input][i] ^= 0xff;
            if (!turn)
                evaluate(g, a, a->dst[1]);
        }
        lines += memcmp(a->dst[0], a->dst[1], a->dst_bytes) != 0;
    }
    return lines;
}

static void check_lines(struct xt_ctx *ctx, const struct xt_graph *g)
{
    struct arena a;
    struct xt_kernel *k;
    size_t lines[LIMIT_SOURCES], bytes[LIMIT_SOURCES];
    const struct xt_compile_options opt = {.size = sizeof opt, .backend = XT_CPU};
    make_arena(&a, g, 7);
    ck_assert_msg(!xt_compile(ctx, g, &opt, &k), "%s", graph_text(g));
    for (int i = 0; i < a.n; i++)
        bytes[i] = (size_t)xt_src_min_bytes(k, i);
    ck_assert(count_lines(k, a.n, (void *const *)a.at, bytes, (void *[]){a.dst[0], a.dst[1]}, a.dst_bytes,
                          a.width, lines));
    for (int i = 0; i < a.n; i++)
        random_fill(a.src[i], a.src_bytes[i], 7 + (uint64_t)i);
    for (int i = 0; i < a.n; i++) {
        size_t want = lines_by_trying(g, &a, i);
        ck_assert_msg(lines[i] == want, "%s: input %d: %zu lines, not %zu", graph_text(g), i, want, lines[i]);
    }
    xt_kernel_free(k);
    free_arena(&a);
}

START_TEST(the_lines_counted_are_those_whose_bytes_matter)
{
    struct xt_ctx *ctx;
    ck_assert(!xt_ctx_new(
        &(struct xt_options){.size = sizeof(struct xt_options), .cache_dir = "", .threads = 1}, &ctx));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct xt_graph *g =
            random_graph(seed, &(struct random_graph_options){.max_numel = 600, .max_ops = 4});
        ck_assert_ptr_nonnull(g);
        check_lines(ctx, g);
        xt_graph_free(g);
    }
    static const char *const wide[] = {/* line numbers past one byte; fills that look like numbers */
                                       "x: u8[40000]; x[7::4000]",
                                       "x: u8[200,96]; x[::7].pad((1,1),(3,3), value=255)",
                                       "x: u16[30000]; x[::3000].flip(0)",
                                       "x: c128[5000]; x[::900]",
                                       "x: f32[64]; x[:0]",
                                       "x: i32[64]; x[3:9].pad((2,2), value=1)"};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        struct xt_graph *g;
        ck_assert_msg(!xt_parse(wide[i], 0, NULL, &g), "%s: %s", wide[i], xt_last_error()->message);
        check_lines(ctx, g);
        xt_graph_free(g);
    }
    xt_ctx_free(ctx);
}
END_TEST

/* The limit writes every line of its destination and no other, in every proportion and by any number of
 * threads. */
START_TEST(the_limit_writes_its_lines_and_no_other)
{
    static const size_t counts[] = {0, 1, 3, 64, 65, 1000};
    enum { N = sizeof counts / sizeof *counts, MOST = 1000 };
    char *src = bytes_of(2 * MOST * LINE, 3), *dst = bytes_of((MOST + 1) * LINE, CANARY);
    for (int i = 0; i < N * N * 3 * LIMIT_WAYS; i++) {
        size_t reads = counts[i % N], writes = counts[i / N % N];
        struct limit l = {.n = 2, .threads = 1 + i / (N * N) % 3, .dst = dst, .writes = writes};
        l.src[0] = src, l.reads[0] = reads;
        l.src[1] = src + MOST * LINE, l.reads[1] = reads / 3;
        memset(dst, CANARY, (MOST + 1) * LINE);
        limit_run(&l, i / (N * N * 3));
        size_t j = 0;
        while (j < (MOST + 1) * LINE && (dst[j] == CANARY) == (j >= writes * LINE))
            j++;
        ck_assert_msg(j == (MOST + 1) * LINE, "%s: %zu reads, %zu writes, %d threads: byte %zu",
                      limit_way_name(i / (N * N * 3)), reads, writes, l.threads, j);
    }
    free(src);
    free(dst);
}
END_TEST

static int asked[3];

/* The first takes 1 second, the second 4, the third 5. */
static double pretend(void *unused, int which)
{
    asked[which]++;
    return which ? 3 + which : 1;
}

START_TEST(who_is_four_times_slower_is_timed_three_times)
{
    static struct contestant c[3];
    for (int i = 0; i < 3; i++)
        c[i] = (struct contestant){.ask = pretend, .which = i};
    contest_rounds(c, 3, 9);
    ck_assert_int_eq(c[0].samples, 9);
    ck_assert_int_eq(c[1].samples, 9);
    ck_assert_int_eq(c[2].samples, SLOW_SAMPLES);
    ck_assert(asked[0] == 10 && asked[1] == 10 && asked[2] == SLOW_SAMPLES);
    for (int i = 0; i < 3; i++)
        ck_assert(contest_median(&c[i], NULL) == pretend(NULL, i));
    contest_rounds(c, 3, 1);
    ck_assert(c[0].samples == 1 && c[2].samples == 1);
}
END_TEST

START_TEST(a_workload_line_has_three_or_four_fields)
{
    struct bench_workload *w;
    char err[256];
    ck_assert_int_eq(bench_workloads_read("# c\n a | b | x: f32[2]; x | y \r\n\nn||c", &w, err, sizeof err),
                     2);
    ck_assert_str_eq(w[0].name, "a");
    ck_assert_str_eq(w[0].chain, "x: f32[2]; x");
    ck_assert_str_eq(w[0].small, "y");
    ck_assert_str_eq(w[1].where, "");
    ck_assert_str_eq(w[1].small, "");
    bench_workloads_free(w, 2);
    static const char *const bad[] = {"a", "a | b", "a | b |", " | b | c", "a | b | c\nd"};
    static const char *const line[] = {"line 1:", "line 1:", "line 1:", "line 1:", "line 2:"};
    for (int i = 0; i < 5; i++) {
        ck_assert_msg(bench_workloads_read(bad[i], &w, err, sizeof err) == -1, "%s", bad[i]);
        ck_assert_msg(!strncmp(err, line[i], 7), "%s: %s", bad[i], err);
    }
    ck_assert_int_eq(bench_workloads_read("", &w, err, sizeof err), 0);
    bench_workloads_free(w, 0);
}
END_TEST

START_TEST(chains_drawn_at_random_are_chains_and_the_same_for_a_seed)
{
    enum { N = 400 };
    struct bench_workload *w;
    char err[256], *text = bench_random_chains(7, N), *again = bench_random_chains(7, N);
    char *other = bench_random_chains(8, N);
    bool narrow = false, wide = false;
    ck_assert(text && again && other && !strcmp(text, again) && strcmp(text, other));
    ck_assert_int_eq(bench_workloads_read(text, &w, err, sizeof err), N);
    for (int i = 0; i < N; i++) {
        struct xt_graph *g;
        struct xt_output_info o = {.size = sizeof o};
        struct xt_node_info node = {.size = sizeof node};
        int64_t bytes = 1;
        ck_assert_msg(!xt_parse(w[i].small, 0, NULL, &g), "%s", w[i].small);
        xt_graph_free(g);
        ck_assert_msg(!xt_parse(w[i].chain, 0, NULL, &g), "%s", w[i].chain);
        ck_assert(!xt_output_get(g, &o) && !xt_node_get(g, o.node, &node));
        for (int k = 0; k < node.rank; k++)
            bytes *= node.shape[k];
        bytes *= (int64_t)xt_dtype_bytes(node.dtype);
        narrow |= node.dtype == XT_U8;
        wide |= node.dtype == XT_C128;
        ck_assert_msg(bytes >= 1 << 18 && bytes <= 160 << 20, "%s: %lld", w[i].chain, (long long)bytes);
        xt_graph_free(g);
    }
    ck_assert(narrow && wide);
    bench_workloads_free(w, N);
    free(text);
    free(again);
    free(other);
}
END_TEST

START_TEST(another_dtype_replaces_those_declared_and_nothing_else)
{
    static const char *const pairs[][2] = {
        {"x: f32[4,6]; y: u8[4]; x[:, ::2]", "x: f64[4,6]; y: f64[4]; x[:, ::2]"},
        {"x: bf16[8]:[1]+0; x.pad((1,1), value=3)", "x: f64[8]:[1]+0; x.pad((1,1), value=3)"},
        {"x; x[1: 3]", "x; x[1: 3]"},
        {"x: f33[4]; x", "x: f33[4]; x"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *got = bench_chain_as(pairs[i][0], "f64");
        ck_assert_str_eq(got, pairs[i][1]);
        free(got);
    }
}
END_TEST

START_TEST(a_grown_chain_has_longer_first_extents_and_nothing_else_changed)
{
    static const char *const pairs[][2] = {
        {"x: f32[4,6]; y: u8[4]; x[:, ::2]", "x: f32[12,6]; y: u8[12]; x[:, ::2]"},
        {"x: u8[]; x[1: 3]", "x: u8[]; x[1: 3]"},
        {"x; x.reshape(4,6)", "x; x.reshape(4,6)"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *got = bench_chain_grown(pairs[i][0], 3);
        ck_assert_str_eq(got, pairs[i][1]);
        free(got);
    }
}
END_TEST

/* Brackets that close each other, strings that end, and no number that JSON lacks. */
static bool looks_like_json(const char *s)
{
    char open[64];
    int depth = 0;
    for (; *s; s++) {
        if (*s == '"') {
            for (s++; *s && *s != '"'; s++)
                if ((unsigned char)*s < 32 || (*s == '\\' && !*++s))
                    return false;
            if (!*s)
                return false;
        } else if (*s == '{' || *s == '[') {
            open[depth++] = *s == '{' ? '}' : ']';
        } else if (*s == '}' || *s == ']') {
            if (!depth || open[--depth] != *s)
                return false;
        } else if (isalpha((unsigned char)*s) && *s != 'e') {
            size_t n = strspn(s, "nultrefas");
            if (strncmp(s, "null", n) && strncmp(s, "true", n) && strncmp(s, "false", n))
                return false;
            s += n - 1;
        }
    }
    return !depth;
}

START_TEST(the_report_is_json_with_ratios_or_null)
{
    struct bench_workload w = {
        .name = "a \"name\"\t", .where = "back\\slash", .chain = "x: f32[64,48]; x.permute(1,0)"};
    struct bench_row rows[2];
    struct xt_ctx *ctx;
    char err[256], *text = NULL;
    size_t size;
    ck_assert(!xt_ctx_new(&(struct xt_options){.size = sizeof(struct xt_options), .cache_dir = ""}, &ctx));
    ck_assert_msg(!bench_measure(ctx, NULL, &w, 1, &rows[0], err, sizeof err), "%s", err);
    ck_assert_int_eq(rows[0].lines_read, 192);
    ck_assert(rows[0].limit_seconds > 0 && rows[0].memcpy_seconds > 0 && rows[0].naive_seconds > 0);
    rows[0].peer_seconds[PEER_TORCH] = 2 * rows[0].seconds;
    rows[0].peer_seconds[PEER_JAX] = 3 * rows[0].seconds;
    rows[0].limit_seconds = 1.5 * rows[0].seconds;
    rows[1] = (struct bench_row){.work = &w};
    FILE *f = open_memstream(&text, &size);
    bench_json(f, rows, 2, &(struct bench_note){"xt bench 'x; x'", "other programs \"ran\"\n"});
    fclose(f);
    ck_assert_msg(looks_like_json(text), "%s", text);
    ck_assert_msg(strstr(text, "\"busy\": \"other programs \\\"ran\\\"\\u000a\""), "%s", text);
    ck_assert_msg(strstr(text, "\"command\": \"xt bench 'x; x'\""), "%s", text);
    ck_assert_msg(strstr(text, "\"way\": \"a transpose\""), "%s", text);
    ck_assert_msg(strstr(text, "\"doubted\": true") && strstr(text, "\"doubted\": false"), "%s", text);
    ck_assert_msg(strstr(text, "\"ratio_to_best_peer\": 2, \"best_peer\": \"torch\"}"), "%s", text);
    ck_assert_msg(strstr(text, "\"limit_way\": null") && strstr(text, "\"ratio_of_bytes\": 1,"), "%s", text);
    ck_assert_msg(
        strstr(text, "\"ratio_to_limit\": null, \"ratio_to_memcpy\": null, \"ratio_to_naive\": null") &&
            strstr(text, "\"ratio_to_best_peer\": null, \"best_peer\": null}"),
        "%s", text);
    free(text);
    f = open_memstream(&text, &size);
    bench_table(f, rows, 2);
    fclose(f);
    ck_assert_msg(strstr(text, "torch") && strstr(text, "worst: x memcpy") && !strstr(text, "nan"), "%s",
                  text);
    ck_assert_msg(strstr(text, " 1.50? ") && strstr(text, "\n  ?  "), "%s", text);
    free(text);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(a_busy_machine_is_told_by_spreads_and_by_other_programs)
{
    ck_assert(!is_busy(0, 2, 2, 0.08));
    ck_assert(!is_busy(0.2, 2, 2, 0.08));
    ck_assert(is_busy(0.8, 2, 2, 0.08));
    ck_assert(!is_busy(0.8, 2, 1, 0.08));
    ck_assert(is_busy(1.5, 2, 1, 0.08));
    ck_assert(is_busy(0, 64, 1, 0.2));
    struct bench_row rows[] = {{.spread = 0.5}, {.spread = 0.3}, {.spread = 0.01}};
    struct busy b;
    char text[512];
    busy_begin(&b);
    ck_assert(busy_text(&b, rows, 3, text, sizeof text) &&
              strstr(text, "busy: runs of the same row differ by 30 %."));
    struct busy later;
    for (double own = 0; own < 0.05; own = later.own - b.own) /* its own work is no other program's */
        busy_begin(&later);
    ck_assert(later.wall > b.wall && later.all >= b.all);
}
END_TEST

START_TEST(a_chain_that_cannot_be_measured_says_why)
{
    struct bench_workload w = {.name = "n", .where = "w", .chain = "x: f32[2"};
    struct bench_row row;
    struct xt_ctx *ctx;
    char err[256] = "";
    ck_assert(!xt_ctx_new(&(struct xt_options){.size = sizeof(struct xt_options), .cache_dir = ""}, &ctx));
    ck_assert_int_eq(bench_measure(ctx, NULL, &w, 1, &row, err, sizeof err), -1);
    ck_assert(*err);
    xt_ctx_free(ctx);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("bench");
    TCase *c = tcase_create("bench");
    tcase_set_timeout(c, 600);
    tcase_add_loop_test(c, the_baseline_gives_what_the_definitions_give_on_random_chains, 0, 4);
    tcase_add_test(c, the_baseline_makes_one_step_of_each_move_and_none_of_a_reshape);
    tcase_add_test(c, the_lines_counted_are_those_whose_bytes_matter);
    tcase_add_test(c, the_limit_writes_its_lines_and_no_other);
    tcase_add_test(c, who_is_four_times_slower_is_timed_three_times);
    tcase_add_test(c, a_workload_line_has_three_or_four_fields);
    tcase_add_test(c, chains_drawn_at_random_are_chains_and_the_same_for_a_seed);
    tcase_add_test(c, another_dtype_replaces_those_declared_and_nothing_else);
    tcase_add_test(c, a_grown_chain_has_longer_first_extents_and_nothing_else_changed);
    tcase_add_test(c, the_report_is_json_with_ratios_or_null);
    tcase_add_test(c, a_busy_machine_is_told_by_spreads_and_by_other_programs);
    tcase_add_test(c, a_chain_that_cannot_be_measured_says_why);
    suite_add_tcase(s, c);
    return run_suite(s);
}
