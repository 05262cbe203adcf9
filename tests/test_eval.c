/* test_eval.c: the two slow truths. A map's evaluation against its formula, a graph's evaluation against
 * NumPy. */
#include "map/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "tests/support/pick.h"
#include "tests/support/suite.h"

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))

/* ------------------------------------------------------------------------------------------- graphs: NumPy
 */

/* A problem line over u8 inputs, the first of which holds 0, 1, 2 .., the second 100, 101 .., and the bytes
 * of its result. Made by NumPy: tests/numpy_check.py --make. */
static const struct {
    const char *line, *hex;
    int n;
} numpy[] = {
    /* clang-format off */
    {"x: u8[2,3]; x",
     "000102030405", 6},
    {"x: u8[2,3]:[1,2]+0; x",
     "000204010305", 6},
    {"x: u8[2,3]:[-1,3]+5; x",
     "05080b04070a", 6},
    {"x: u8[2,3]:[0,-2]+4; x",
     "040200040200", 6},
    {"x: u8[]; x",
     "00", 1},
    {"x: u8[0,3]; x",
     "", 0},
    {"x: u8[2,3,4]; x.permute(2,0,1)",
     "0004080c10140105090d111502060a0e121603070b0f1317", 24},
    {"x: u8[2,3,4]; x.transpose(0,2)",
     "000c04100814010d05110915020e06120a16030f07130b17", 24},
    {"x: u8[4,6]; x.T.reshape(8,3).T",
     "00120d080315100b0601130e090416110c0702140f0a0517", 24},
    {"x: u8[2,3,2]; x.reshape(3,-1)",
     "000102030405060708090a0b", 12},
    {"x: u8[1,3,1]; x.squeeze()",
     "000102", 3},
    {"x: u8[1,3,1]; x.squeeze(0)",
     "000102", 3},
    {"x: u8[2,3]; x.unsqueeze(1).unsqueeze(-1)",
     "000102030405", 6},
    {"x: u8[3,4,5]; x[1]",
     "1415161718191a1b1c1d1e1f2021222324252627", 20},
    {"x: u8[3,4,5]; x[-1, ::-2, 1:4:2]",
     "383a2e30", 4},
    {"x: u8[3,4]; x[..., None, 2]",
     "02060a", 3},
    {"x: u8[3,4]; x[None, 1:, None, ::3]",
     "0407080b", 4},
    {"x: u8[5]; x[3:1]",
     "", 0},
    {"x: u8[5]; x[10:0:-3]",
     "0401", 2},
    {"x: u8[2,3,4]; x.flip(0,2)",
     "0f0e0d0c131211101716151403020100070605040b0a0908", 24},
    {"x: u8[2,3]; x.flip()",
     "050403020100", 6},
    {"x: u8[2,1,3]; x.expand(2,2,3)",
     "000102000102030405030405", 12},
    {"x: u8[3]; x.expand(2,2,3)",
     "000102000102000102000102", 12},
    {"x: u8[1]; x.expand(0)",
     "", 0},
    {"x: u8[3]; x.tile(2)",
     "000102000102", 6},
    {"x: u8[3]; x.tile(2,2)",
     "000102000102000102000102", 12},
    {"x: u8[2,3]; x.tile(2)",
     "000102000102030405030405", 12},
    {"x: u8[2,3]; x.tile(2,1)",
     "000102030405000102030405", 12},
    {"x: u8[2,3]; x.tile(0,1)",
     "", 0},
    {"x: u8[2,3]; x.repeat(2,0)",
     "000102000102030405030405", 12},
    {"x: u8[2,3]; x.repeat(2, axis=1)",
     "000001010202030304040505", 12},
    {"x: u8[7]; x.roll(3,0)",
     "04050600010203", 7},
    {"x: u8[7]; x.roll(-3,0)",
     "03040506000102", 7},
    {"x: u8[2,5]; x.roll(12,1)",
     "03040001020809050607", 10},
    {"x: u8[2,5]; x.roll(3)",
     "07080900010203040506", 10},
    {"x: u8[2,5]; x.roll((1,2),(0,1))",
     "08090506070304000102", 10},
    {"x: u8[3,4]; x.diagonal()",
     "00050a", 3},
    {"x: u8[3,4]; x.diagonal(1)",
     "01060b", 3},
    {"x: u8[3,4]; x.diagonal(-1)",
     "0409", 2},
    {"x: u8[3,4]; x.diagonal(-1,1,0)",
     "01060b", 3},
    {"x: u8[2,3,4]; x.diagonal(1,2,0)",
     "0c1014", 3},
    {"x: u8[3,4,2]; x.diagonal(1,0,1)",
     "020c16030d17", 6},
    {"x: u8[2,2]; x.diagonal(2)",
     "", 0},
    {"x: u8[8]; x.unfold(0,3,1)",
     "000102010203020304030405040506050607", 18},
    {"x: u8[9]; x.unfold(0,3,2)",
     "000102020304040506060708", 12},
    {"x: u8[4,2]; x.unfold(0,2,1)",
     "000201030204030504060507", 12},
    {"x: u8[2,5]; x.unfold(1,5,1)",
     "00010203040506070809", 10},
    {"x: u8[3]; x.pad((1,2), value=9)",
     "090001020909", 6},
    {"x: u8[2,2]; x.pad((1,0),(0,2), value=255)",
     "ffffffff0001ffff0203ffff", 12},
    {"x: u8[0,2]; x.pad((1,1),(0,0), value=7)",
     "07070707", 4},
    {"x: u8[3,4]; x.tril(0, value=99)",
     "006363630405636308090a63", 12},
    {"x: u8[3,4]; x.tril(-1, value=99)",
     "636363630463636308096363", 12},
    {"x: u8[3,4]; x.triu(1, value=99)",
     "63010203636306076363630b", 12},
    {"x: u8[2,2,3]; x.triu(0)",
     "000102000405060708000a0b", 12},
    {"x: u8[3,2]; x.triu(-9)",
     "000102030405", 6},
    {"x: u8[2,3]; y: u8[1,3]; concat(0, x, y)",
     "000102030405646566", 9},
    {"x: u8[2,3]; y: u8[2,1]; concat(1, x, y, x)",
     "0001026400010203040565030405", 14},
    {"x: u8[2]; y: u8[0]; concat(0, y, x, y, x)",
     "00010001", 4},
    {"x: u8[2,2]; y: u8[2,2]; stack(0, x, y)",
     "0001020364656667", 8},
    {"x: u8[2,2]; y: u8[2,2]; stack(1, x, y)",
     "0001646502036667", 8},
    {"x: u8[2,2]; y: u8[2,2]; stack(-1, y, x, y)",
     "640064650165660266670367", 12},
    {"x: u8[]; y: u8[]; stack(0, x, y)",
     "0064", 2},
    {"x: u8[4]; t = x.flip(); concat(0, t, x, t)",
     "030201000001020303020100", 12},
    {"x: u8[2,5,3,4]; x.permute(0,2,1,3)[:, ::-1, 1, 1:3].reshape(2,6)",
     "151611120d0e51524d4e494a", 12},
    {"x: u8[2,3]; y: u8[1,3]; concat(0, x, y).pad((1,1),(0,2), value=7)",
     "07070707070001020707030405070764656607070707070707", 25},
    {"x: u8[2,4,4]; x.unfold(1,3,1).unfold(2,2,2).permute(1,2,0,3,4).reshape(4,12)",
     "000104050809101114151819020306070a0b121316171a1b040508090c0d141518191c1d06070a0b0e0f16171a1b1e1f", 48},
    /* clang-format on */
};

static void check_line(const char *line, const char *hex, int n)
{
    enum { CANARY = 32, MOST = 512 };
    unsigned char in[2][MOST], out[MOST + 2 * CANARY], want[MOST + 2 * CANARY];
    struct xt_graph *g = parse_line(line);
    struct xti_err err = {0};
    memset(want, 0xee, sizeof want);
    memset(out, 0xee, sizeof out);
    for (int i = 0; i < MOST; i++)
        in[0][i] = (unsigned char)i, in[1][i] = (unsigned char)(100 + i);
    ck_assert_uint_eq(strlen(hex), 2 * (size_t)n);
    for (int i = 0; i < n; i++)
        sscanf(hex + 2 * i, "%2hhx", &want[CANARY + i]);
    xt_status s = xti_graph_eval(g, out + CANARY, (const void *[]){in[0], in[1]}, &err);
    ck_assert_msg(s == XT_OK, "%s: %s", line, err.e.message);
    for (size_t i = 0; i < sizeof out; i++)
        ck_assert_msg(out[i] == want[i], "%s: byte %d is %d, want %d", line, (int)i - CANARY, out[i],
                      want[i]);
    xt_graph_free(g);
}

START_TEST(every_operation_gives_the_bytes_that_numpy_gives)
{
    for (int i = 0; i < LEN(numpy); i++)
        check_line(numpy[i].line, numpy[i].hex, numpy[i].n);
    printf("%d lines as in NumPy\n", LEN(numpy));
}
END_TEST

START_TEST(every_operation_is_among_those_lines)
{
    bool seen[XT_OP_STACK + 1] = {false};
    for (int i = 0; i < LEN(numpy); i++) {
        struct xt_graph *g = parse_line(numpy[i].line);
        for (xt_node k = 0; k < g->n_nodes; k++)
            seen[g->node[k].op] = true;
        xt_graph_free(g);
    }
    for (int op = 0; op <= XT_OP_STACK; op++)
        ck_assert_msg(seen[op], "no line has %s", xti_op_info((enum xt_op)op)->name);
}
END_TEST

START_TEST(elements_of_every_width_are_copied_whole)
{
    static const struct {
        const char *line;
        int width;
    } row[] = {
        {"x: bool[6]; x.flip().pad((1,0))", 1},  {"x: bf16[6]; x.flip().pad((1,0))", 2},
        {"x: f32[6]; x.flip().pad((1,0))", 4},   {"x: i64[6]; x.flip().pad((1,0))", 8},
        {"x: c128[6]; x.flip().pad((1,0))", 16},
    };
    for (int i = 0; i < LEN(row); i++) {
        unsigned char in[6 * 16], out[8 * 16];
        struct xt_graph *g = parse_line(row[i].line);
        size_t w = (size_t)row[i].width;
        for (int k = 0; k < LEN(in); k++)
            in[k] = (unsigned char)(k + 1);
        memset(out, 0xee, sizeof out);
        ck_assert_int_eq(xti_graph_eval(g, out, (const void *[]){in}, NULL), XT_OK);
        for (size_t k = 0; k < w; k++)
            ck_assert_uint_eq(out[k], 0);
        for (size_t k = 0; k < 6; k++)
            ck_assert_mem_eq(out + (k + 1) * w, in + (5 - k) * w, w);
        ck_assert_uint_eq(out[7 * w], 0xee);
        xt_graph_free(g);
    }
}
END_TEST

START_TEST(a_fill_value_has_the_bits_of_its_type)
{
    struct xt_graph *g = parse_line("x: f32[1]; x.pad((1,1), value=-1.5)");
    float in = 7, out[3];
    ck_assert_int_eq(xti_graph_eval(g, out, (const void *[]){&in}, NULL), XT_OK);
    ck_assert(out[0] == -1.5f && out[1] == 7 && out[2] == -1.5f);
    xt_graph_free(g);
}
END_TEST

START_TEST(only_the_addresses_of_the_destination_are_written)
{
    uint16_t in[6] = {1, 2, 3, 4, 5, 6}, out[16];
    struct xt_graph *g = parse_line("x: u16[2,3]; x -> [2,3]:[-7,2]+8");
    memset(out, 0xee, sizeof out);
    ck_assert_int_eq(xti_graph_eval(g, out, (const void *[]){in}, NULL), XT_OK);
    for (int a = 0; a < 16; a++) {
        int want = a == 8 ? 1 : a == 10 ? 2 : a == 12 ? 3 : a == 1 ? 4 : a == 3 ? 5 : a == 5 ? 6 : 0xeeee;
        ck_assert_int_eq(out[a], want);
    }
    xt_graph_free(g);
}
END_TEST

START_TEST(a_graph_without_output_or_with_a_null_input_is_an_error)
{
    struct xt_graph *g;
    struct xti_err err = {0};
    char out[6];
    ck_assert_int_eq(xt_graph_new(&g), XT_OK);
    xt_input(g, NULL, XT_U8, 1, (int64_t[]){3}, NULL, 0);
    ck_assert_int_eq(xti_graph_eval(g, out, (const void *[]){out}, &err), XT_EINVAL);
    xt_graph_free(g);
    xti_err_clear(&err);
    g = parse_line("x: u8[3]; y: u8[3]; y.flip()");
    ck_assert_int_eq(xti_graph_eval(g, out, (const void *[]){NULL, "abc"}, &err),
                     XT_OK); /* x is not needed */
    ck_assert_mem_eq(out, "cba", 3);
    ck_assert_int_eq(xti_graph_eval(g, out, (const void *[]){"abc", NULL}, &err), XT_EINVAL);
    ck_assert_str_eq(err.e.message, "input 1 is NULL");
    xt_graph_free(g);
}
END_TEST

/* Whole, its second node would take 2^66 bytes, and that of the other 2 GB and a minute. */
START_TEST(what_the_output_does_not_hold_is_not_evaluated)
{
    static const char *const line[] = {"x: c128[1]; x.expand(4611686018427387904)[7:9]",
                                       "x: c128[3]; x[1:2].repeat(2000000000,0)[1999999998:]"};
    uint64_t in[6] = {1, 2, 3, 4, 5, 6}, out[4];
    for (int i = 0; i < 2; i++) {
        struct xt_graph *g = parse_line(line[i]);
        xti_fail_alloc(1, 1);
        ck_assert_int_eq(xti_graph_eval(g, out, (const void *[]){in}, NULL), XT_OK);
        xti_fail_alloc(0, 0);
        ck_assert_mem_eq(out, in + 2 * i, 16);
        ck_assert_mem_eq(out + 2, in + 2 * i, 16);
        xt_graph_free(g);
    }
}
END_TEST

/* --------------------------------------------------------------------------------------------------- maps */

enum { DIMS = 4, DIVS = 3, GUARDS = 2, ARENA = 8192 };

/* One random piece with everything, and room for its arrays. */
struct random_piece {
    struct xti_piece p;
    struct xti_dim dim[DIMS];
    struct xti_div div[DIVS];
    struct xti_guard guard[GUARDS];
    int64_t div_x[DIVS][DIMS], div_q[DIVS][DIVS], guard_x[GUARDS][DIMS], guard_q[GUARDS][DIVS], sq[DIVS];
};

static void random_piece(struct random_piece *r)
{
    *r = (struct random_piece){.p = {.src = (int)pick(-1, 1), .n_dims = (int)pick(0, DIMS)}};
    struct xti_piece *p = &r->p;
    p->dim = r->dim, p->div = r->div, p->guard = r->guard, p->sq = r->sq;
    p->soff = p->src < 0 ? 0 : pick(3900, 4200);
    p->doff = pick(0, 500);
    int64_t span = 1;
    for (int k = p->n_dims - 1; k >= 0; k--) {
        r->dim[k] = (struct xti_dim){pick(2, 4), p->src < 0 ? 0 : pick(-9, 9), span + pick(0, 1)};
        span += r->dim[k].d * (r->dim[k].n - 1);
    }
    for (int k = 0; k < 16; k++)
        p->value[k] = (unsigned char)pick(0, 255);
    if (pick(0, 1)) /* half of the pieces are affine: the other path of eval */
        return;
    p->n_divs = (int)pick(0, DIVS);
    p->n_guards = (int)pick(0, GUARDS);
    for (int j = 0; j < p->n_divs; j++) {
        r->div[j] = (struct xti_div){pick(2, 7), pick(-5, 9), r->div_x[j], r->div_q[j]};
        r->sq[j] = pick(-9, 9);
        for (int k = 0; k < p->n_dims; k++)
            r->div_x[j][k] = pick(-3, 5);
        for (int k = 0; k < j; k++)
            r->div_q[j][k] = pick(-2, 2);
    }
    for (int j = 0; j < p->n_guards; j++) {
        r->guard[j] = (struct xti_guard){pick(-3, 9), r->guard_x[j], r->guard_q[j]};
        for (int k = 0; k < p->n_dims; k++)
            r->guard_x[j][k] = pick(-3, 3);
        for (int k = 0; k < p->n_divs; k++)
            r->guard_q[j][k] = pick(-2, 2);
    }
}

/* floor(a/b) by search, to share nothing with the library. */
static int64_t slow_floor(int64_t a, int64_t b)
{
    int64_t q = 0;
    while (q * b > a)
        q--;
    while ((q + 1) * b <= a)
        q++;
    return q;
}

/* Point number i of the piece (the innermost dim runs fastest): addresses by the formula in map.h; false:
 * hidden. */
static bool formula(const struct xti_piece *p, int64_t i, int64_t *d, int64_t *s)
{
    int64_t x[DIMS], q[DIVS];
    for (int k = p->n_dims - 1; k >= 0; k--) {
        x[k] = i % p->dim[k].n;
        i /= p->dim[k].n;
    }
    for (int j = 0; j < p->n_divs; j++) {
        int64_t num = p->div[j].c;
        for (int k = 0; k < p->n_dims; k++)
            num += p->div[j].x[k] * x[k];
        for (int k = 0; k < j; k++)
            num += p->div[j].q[k] * q[k];
        q[j] = slow_floor(num, p->div[j].den);
    }
    for (int j = 0; j < p->n_guards; j++) {
        int64_t v = p->guard[j].c;
        for (int k = 0; k < p->n_dims; k++)
            v += p->guard[j].x[k] * x[k];
        for (int k = 0; k < p->n_divs; k++)
            v += p->guard[j].q[k] * q[k];
        if (v < 0)
            return false;
    }
    *d = p->doff;
    *s = p->soff;
    for (int k = 0; k < p->n_dims; k++) {
        *d += p->dim[k].d * x[k];
        *s += p->dim[k].s * x[k];
    }
    for (int k = 0; k < p->n_divs && p->src >= 0; k++)
        *s += p->sq[k] * q[k];
    return true;
}

static int64_t points_of(const struct xti_piece *p)
{
    int64_t n = 1;
    for (int k = 0; k < p->n_dims; k++)
        n *= p->dim[k].n;
    return n;
}

static int64_t count_hidden(const struct xti_piece *p)
{
    int64_t hidden = 0, d, s;
    for (int64_t i = 0; i < points_of(p); i++)
        hidden += !formula(p, i, &d, &s);
    return hidden;
}

START_TEST(a_random_map_is_evaluated_by_its_formula)
{
    static unsigned char in[2][ARENA * 16], out[ARENA * 16], want[ARENA * 16];
    int64_t divs = 0, hidden = 0;
    for (int i = 0; i < LEN(in[0]); i++)
        in[0][i] = (unsigned char)pick(0, 255), in[1][i] = (unsigned char)pick(0, 255);
    for (int round = 0; round < 5000; round++) {
        struct random_piece r;
        random_piece(&r);
        struct xti_map m = {.esize = 1 << pick(0, 4), .n_pieces = 1, .piece = &r.p, .n_srcs = 2};
        size_t e = (size_t)m.esize;
        memset(out, 0xee, sizeof out);
        memset(want, 0xee, sizeof want);
        for (int64_t i = 0, d, s; i < points_of(&r.p); i++)
            if (formula(&r.p, i, &d, &s)) {
                ck_assert(d >= 0 && d < ARENA && s >= 0 && s < ARENA);
                memcpy(want + d * m.esize, r.p.src < 0 ? r.p.value : in[r.p.src] + s * m.esize, e);
            }
        xti_map_eval(&m, out, (const void *[]){in[0], in[1]});
        if (memcmp(out, want, sizeof out))
            ck_abort_msg("round %d: esize %d, %d dims, %d divs, %d guards", round, m.esize, r.p.n_dims,
                         r.p.n_divs, r.p.n_guards);
        divs += r.p.n_divs;
        hidden += count_hidden(&r.p);
    }
    ck_assert_int_gt(divs, 1000);
    ck_assert_int_gt(hidden, 1000);
}
END_TEST

struct visited {
    int64_t seen[ARENA]; /* by destination: source address + 2; 0: not visited */
    int64_t n, stop_at;
    const struct xti_piece *piece;
};

static bool note(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    struct visited *v = arg;
    v->seen[d] = s + 2;
    v->piece = p;
    return ++v->n != v->stop_at;
}

START_TEST(a_visit_names_every_point_once_with_both_addresses)
{
    static struct visited v;
    for (int round = 0; round < 1000; round++) {
        struct random_piece r;
        int64_t want = 0;
        random_piece(&r);
        struct xti_map m = {.esize = 1, .n_pieces = 1, .piece = &r.p, .n_srcs = 2};
        memset(&v, 0, sizeof v);
        xti_map_visit(&m, note, &v);
        for (int64_t i = 0, d, s; i < points_of(&r.p); i++)
            if (formula(&r.p, i, &d, &s)) {
                ck_assert_int_eq(v.seen[d], r.p.src < 0 ? 1 : s + 2);
                want++;
            }
        ck_assert_int_eq(v.n, want);
        ck_assert(want == 0 || v.piece == &r.p);
    }
}
END_TEST

START_TEST(a_visit_stops_when_it_is_told_to)
{
    static struct visited v;
    struct xti_dim dim[] = {{3, 4, 4}, {4, 1, 1}};
    struct xti_piece p[2] = {{.n_dims = 2, .dim = dim}, {.n_dims = 2, .dim = dim, .doff = 12}};
    struct xti_map m = {.esize = 1, .n_pieces = 2, .piece = p, .n_srcs = 1};
    for (int64_t stop = 1; stop <= 24; stop++) {
        memset(&v, 0, sizeof v);
        v.stop_at = stop;
        xti_map_visit(&m, note, &v);
        ck_assert_int_eq(v.n, stop);
    }
    memset(&v, 0, sizeof v);
    xti_map_visit(&m, note, &v);
    ck_assert_int_eq(v.n, 24);
}
END_TEST

START_TEST(a_map_without_pieces_writes_nothing_and_reads_no_pointer)
{
    struct xti_map m = {.esize = 4};
    xti_map_eval(&m, NULL, NULL);
    struct xti_dim run = {4, 0, 1};
    struct xti_piece fill = {.src = -1, .n_dims = 1, .dim = &run, .value = {7}};
    char out[4];
    m = (struct xti_map){.esize = 1, .n_pieces = 1, .piece = &fill, .n_srcs = 1};
    xti_map_eval(&m, out, (const void *[]){NULL}); /* an input that is not read may be NULL */
    ck_assert_mem_eq(out, "\7\7\7\7", 4);
}
END_TEST

/* 18*x + .. may leave int64 before a div brings it back: evaluation is modulo 2^64. */
START_TEST(partial_sums_may_leave_int64)
{
    struct xti_dim dim[] = {{4, INT64_MAX / 2, 1}};
    int64_t x[] = {2}, sq[] = {-(INT64_MAX / 2)};
    struct xti_div div = {.den = 2, .x = x};
    struct xti_piece p = {.soff = 5, .n_dims = 1, .n_divs = 1, .dim = dim, .div = &div, .sq = sq};
    struct xti_map m = {.esize = 1, .n_pieces = 1, .piece = &p, .n_srcs = 1};
    char out[4];
    xti_map_eval(&m, out, (const void *[]){"abcdefgh"});
    ck_assert_mem_eq(out, "ffff", 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("eval");
    TCase *tc = tcase_create("eval");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, every_operation_gives_the_bytes_that_numpy_gives);
    tcase_add_test(tc, every_operation_is_among_those_lines);
    tcase_add_test(tc, elements_of_every_width_are_copied_whole);
    tcase_add_test(tc, a_fill_value_has_the_bits_of_its_type);
    tcase_add_test(tc, only_the_addresses_of_the_destination_are_written);
    tcase_add_test(tc, a_graph_without_output_or_with_a_null_input_is_an_error);
    tcase_add_test(tc, what_the_output_does_not_hold_is_not_evaluated);
    tcase_add_test(tc, a_random_map_is_evaluated_by_its_formula);
    tcase_add_test(tc, a_visit_names_every_point_once_with_both_addresses);
    tcase_add_test(tc, a_visit_stops_when_it_is_told_to);
    tcase_add_test(tc, a_map_without_pieces_writes_nothing_and_reads_no_pointer);
    tcase_add_test(tc, partial_sums_may_leave_int64);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
