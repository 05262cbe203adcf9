/* test_lang.c: the problem-line language: what parses, what is refused and where, values, printing, sharing,
 * damage. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/graph.h"
#include "graph/spelling.h"
#include "graph/parse.h"
#include "graph/value.h"
#include "tests/support/comma.h"
#include "tests/support/graph_same.h"
#include "tests/support/random_graph.h"
#include "tests/support/scratch.h"
#include "tests/support/suite.h"

static char *print(const struct xt_graph *g)
{
    size_t need = 0;
    ck_assert_msg(xt_print(g, NULL, 0, &need) == XT_OK, "%s", xt_last_error()->message);
    char *s = malloc(need);
    ck_assert_int_eq(xt_print(g, s, need, NULL), XT_OK);
    ck_assert_uint_eq(strlen(s) + 1, need);
    return s;
}

static unsigned char *pack(const struct xt_graph *g, size_t *bytes)
{
    size_t bound = xti_graph_pack_bound(g);
    unsigned char *p = malloc(bound);
    memset(p, 0xa5, bound);
    *bytes = xti_graph_pack(g, p);
    ck_assert_uint_le(*bytes, bound);
    return p;
}

static void check_layout(const struct xti_layout *l, xt_dtype t, int rank, const int64_t *shape,
                         const int64_t *strides, int64_t offset)
{
    ck_assert(l->dtype == t && l->rank == rank && l->offset == offset);
    for (int i = 0; i < rank; i++)
        ck_assert(l->shape[i] == shape[i] && l->strides[i] == strides[i]);
}

/* unpack(pack(g)) is g, and packing that gives the same bytes; so are its ends. */
static void check_packing(const struct xt_graph *g)
{
    struct xti_layout l;
    struct xt_graph *h;
    size_t bytes, again;
    unsigned char *p = pack(g, &bytes), *q;
    ck_assert(!xti_graph_unpack(p, &h, NULL) && same_graph(g, h) && h->n_nodes == g->n_nodes);
    q = pack(h, &again);
    ck_assert(again == bytes && !memcmp(p, q, bytes));
    const struct xti_node *n = &g->node[g->out];
    xti_packed_output(p, &l);
    check_layout(&l, n->dtype, n->rank, n->shape, g->out_strides, g->out_offset);
    for (int i = 0; i < g->n_inputs; i++) {
        n = &g->node[g->input[i]];
        xti_packed_input(p, i, &l);
        check_layout(&l, n->dtype, n->rank, n->shape, n->strides, n->offset);
        ck_assert_str_eq(xti_packed_name(p, i), n->name);
    }
    free(p);
    free(q);
    xt_graph_free(h);
}

/* parse(print(g)) is g, and printing that gives the same text. */
static void check_round_trip(const struct xt_graph *g, const char *what)
{
    check_packing(g);
    char *text = print(g), *again;
    struct xt_graph *h = parse_line(text);
    ck_assert_msg(same_graph(g, h), "not the same\n  %s\n  %s", what, text);
    again = print(h);
    ck_assert_msg(strcmp(text, again) == 0 || strchr(text, '='), "%s\n  %s", text, again);
    free(text);
    free(again);
    xt_graph_free(h);
}

static void check_prints(const char *line, const char *want)
{
    struct xt_graph *g = parse_line(line);
    char *text = print(g);
    ck_assert_str_eq(text, want);
    free(text);
    xt_graph_free(g);
}

static void refuse(const char *line, const char *status, int column)
{
    struct xt_graph *g = (struct xt_graph *)&g;
    int64_t live = xti_live_allocations();
    char begin[32];
    xt_parse(line, 0, NULL, &g);
    const struct xt_error *e = xt_last_error();
    ck_assert_msg(!strcmp(xt_status_name(e->status), status) && e->column == column,
                  "%s\n  wanted %s at %d, got %s at %d: %s", line, status, column, xt_status_name(e->status),
                  e->column, e->message);
    snprintf(begin, sizeof begin, "column %d: ", column);
    ck_assert_msg(!strncmp(e->message, begin, strlen(begin)), "%s: %s", line, e->message);
    ck_assert_ptr_null(strchr(e->message, '\n'));
    ck_assert_ptr_null(g);
    ck_assert_int_eq(xti_live_allocations(), live);
}

/* Calls with every line of a file that is not empty or a comment; returns how many. */
static int each_line(const char *path, void (*call)(char *line))
{
    static char line[4096];
    FILE *f = fopen(path, "r");
    int n = 0;
    ck_assert_msg(f != NULL, "%s: run from the repository's root", path);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == '#' || !line[0])
            continue;
        call(line);
        n++;
    }
    fclose(f);
    return n;
}

static void check_good(char *line)
{
    struct xt_graph *g = parse_line(line);
    check_round_trip(g, line);
    xt_graph_free(g);
}

static int sentences;

static void check_bad(char *line)
{
    char status[32];
    int column, n = 0;
    if (!strncmp(line, "= ", 2)) { /* what is said of the line above */
        ck_assert_str_eq(strstr(xt_last_error()->message, ": ") + 2, line + 2);
        sentences++;
        return;
    }
    ck_assert_int_eq(sscanf(line, "%31s %d%n", status, &column, &n), 2);
    refuse(line + n + (line[n] == ' '), status, column);
}

START_TEST(every_good_line_is_the_same_graph_after_printing)
{
    ck_assert_int_gt(each_line("tests/problems/good.txt", check_good), 80);
}
END_TEST

START_TEST(every_bad_line_is_refused_with_its_status_column_and_sentence)
{
    int n = each_line("tests/problems/bad.txt", check_bad);
    ck_assert_int_ge(sentences, 150);
    ck_assert_int_eq(n, 2 * sentences);
    printf("note: %d lines are refused with their sentence\n", sentences);
}
END_TEST

/* clang-format off */
static const struct { const char *typed, *canonical; } spelling[] = {
    {"x: f32[4,6]; x.permute([1,0])",                   "x: f32[4,6]; x.permute(1,0)"},
    {"x: f32[4,6]; x.T",                                "x: f32[4,6]; x.permute(1,0)"},
    {"x: f32[2,4,6]; x.mT",                             "x: f32[2,4,6]; x.permute(0,2,1)"},
    {"x: f32[2,4,6]; x.T",                              "x: f32[2,4,6]; x.permute(2,1,0)"},
    {"x: f32[4,6]; x.transpose()",                      "x: f32[4,6]; x.permute(1,0)"},
    {"x: f32[4,6]; x.transpose(0,1)",                   "x: f32[4,6]; x.permute(1,0)"},
    {"x: f32[4,6]; x.transpose((0,1))",                 "x: f32[4,6]; x.permute(0,1)"},
    {"x: f32[2,4,6]; x.transpose(1,2,0)",               "x: f32[2,4,6]; x.permute(1,2,0)"},
    {"x: f32[2,4,6]; moveaxis(x, 0, -1)",               "x: f32[2,4,6]; x.permute(1,2,0)"},
    {"x: f32[2,4,6]; swapaxes(x, 0, -1)",               "x: f32[2,4,6]; x.permute(2,1,0)"},
    {"x: float32[4,6]; x.view((8,3))",                  "x: f32[4,6]; x.reshape(8,3)"},
    {"x: f32[4,6]; x.flatten()",                        "x: f32[4,6]; x.reshape(24)"},
    {"x: f32[4,6]; x.reshape(-1,8)",                    "x: f32[4,6]; x.reshape(3,8)"},
    {"x: f32[4,6]; reshape(x, shape=(8,3))",            "x: f32[4,6]; x.reshape(8,3)"},
    {"x: f32[1,6]; x.expand(4,-1)",                     "x: f32[1,6]; x.expand(4,6)"},
    {"x: f32[6]; np.broadcast_to(x, (4,6))",            "x: f32[6]; x.expand(4,6)"},
    {"x: f32[6]; np.expand_dims(x, -1)",                "x: f32[6]; x.unsqueeze(1)"},
    {"x: f32[1,6,1]; x.squeeze()",                      "x: f32[1,6,1]; x.squeeze(0,2)"},
    {"x: f32[4,6]; flip(x)",                            "x: f32[4,6]; x.flip(0,1)"},
    {"x: f32[4,6]; flip(x, axis=-1)",                   "x: f32[4,6]; x.flip(1)"},
    {"x: f32[4,6]; flip(x, axis=None)",                 "x: f32[4,6]; x.flip(0,1)"},
    {"x: f32[4,6]; flip(x, axis=())",                   "x: f32[4,6]; x"},
    {"x: f32[4,6]; x.tile(2)",                          "x: f32[4,6]; x.tile(1,2)"},
    {"x: f32[4,6]; x.repeat(2, axis=-1)",               "x: f32[4,6]; x.repeat(2, axis=1)"},
    {"x: f32[4,6]; np.roll(x, -1, 0)",                  "x: f32[4,6]; x.roll(3,0)"},
    {"x: f32[4,6]; np.roll(x, 7)",                      "x: f32[4,6]; x.reshape(24).roll(7,0).reshape(4,6)"},
    {"x: f32[4,6]; roll(x, (1,2), (0,1))",              "x: f32[4,6]; x.roll(1,0).roll(2,1)"},
    {"x: f32[4,6]; x.diagonal()",                       "x: f32[4,6]; x.diagonal(0,0,1)"},
    {"x: f32[4,6]; x.diagonal(axis1=1, axis2=0)",       "x: f32[4,6]; x.diagonal(0,1,0)"},
    {"x: f32[4,6]; x.diagonal(99)",                     "x: f32[4,6]; x.diagonal(6,0,1)"},
    {"x: f32[4,6]; x.tril()",                           "x: f32[4,6]; x.tril(0)"},
    {"x: f32[4,6]; x.triu(-99, value=1)",               "x: f32[4,6]; x.triu(-4, value=1)"},
    {"x: f32[4,6]; x.pad(1)",                           "x: f32[4,6]; x.pad((1,1),(1,1))"},
    {"x: f32[4,6]; np.pad(x, ((1,2),(3,4)), constant_values=5)", "x: f32[4,6]; x.pad((1,2),(3,4), value=5)"},
    {"x: f32[4,6]; x.pad((0,0),(0,0), value=0.0)",      "x: f32[4,6]; x.pad((0,0),(0,0))"},
    {"x: f32[4,6]; x.pad((0,0),(0,0), value=-0.0)",     "x: f32[4,6]; x.pad((0,0),(0,0), value=-0)"},
    {"x: f32[4]; np.concatenate([x, x])",               "x: f32[4]; concat(0, x, x)"},
    {"x: f32[4]; torch.cat((x, x), dim=-1)",            "x: f32[4]; concat(0, x, x)"},
    {"x: f32[4]; stack((x, x), 1)",                     "x: f32[4]; stack(1, x, x)"},
    {"x: f32[4]; x.concat(0, x)",                       "x: f32[4]; concat(0, x, x)"},
    {"x: f32[4]; concat(0, (x.flip(0))[1:], (x))",      "x: f32[4]; concat(0, x.flip(0)[1:], x)"},
    {"x: f32[5,6]; x[1:99, ::-2]",                      "x: f32[5,6]; x[1:, ::-2]"},
    {"x: f32[5,6]; x[..., 0]",                          "x: f32[5,6]; x[:, 0]"},
    {"x: f32[5,6]; x[-1, ...]",                         "x: f32[5,6]; x[4]"},
    {"x: f32[5,6]; x[3:1, newaxis]",                    "x: f32[5,6]; x[:0, None]"},
    {"x: f32[5,6]; x[4:0:-3, 5:0:-5]",                  "x: f32[5,6]; x[::-3, 5:]"},
    {"x: f32[6]; x[4::-3]",                             "x: f32[6]; x[4::-3]"},
    {"x: f32[6]; x[1:6:2]",                             "x: f32[6]; x[1::2]"},
    {"x: f32[6]; x[5:0:-2]",                            "x: f32[6]; x[::-2]"},
    {"x: f32[6]; x[:0:-1]",                             "x: f32[6]; x[:0:-1]"},
    {"x: f32[6]; x -> [6]",                             "x: f32[6]; x"},
    {"x: f32[6]; x -> [6]:[1]",                         "x: f32[6]; x -> [6]:[1]+0"},
    {"a: f32[4]; b = a[1:]; concat(0, b, b)",           "a: f32[4]; t1 = a[1:]; concat(0, t1, t1)"},
    {"x: u8[4]; a = x[1:]; y: u8[3]; concat(0, a, a, y)",
     "x: u8[4]; y: u8[3]; t1 = x[1:]; concat(0, t1, t1, y)"},
    {"t: f32[4]; b = t[1:]; concat(0, b, b)",           "t: f32[4]; t_1 = t[1:]; concat(0, t_1, t_1)"},
    {"x: f32[4]; y = x[1:]; y",                         "x: f32[4]; x[1:]"},
    {"x: f32[2,5,12]; x.rearrange(\"b s (h d) -> b h s d\", h=3)",
     "x: f32[2,5,12]; x.reshape(2,5,3,4).permute(0,2,1,3)"},
    {"x: f32[2,6]; einops.rearrange(x, 'b c -> c b')",
     "x: f32[2,6]; x.permute(1,0)"},
    {"x: f32[2,6]; x.rearrange(\"b c -> b c\")",
     "x: f32[2,6]; x"},
    {"x: f32[2,6]; x.rearrange(\"b c -> b 1 c ()\")",
     "x: f32[2,6]; x.reshape(2,1,6,1)"},
    {"x: f32[2,6]; x.rearrange(\"... -> (...)\")",
     "x: f32[2,6]; x.reshape(12)"},
    {"x: f32[2,6]; x.repeat(\"b c -> b (c n)\", n=2)",
     "x: f32[2,6]; x.reshape(2,6,1).expand(2,6,2).reshape(2,12)"},
    {"x: f32[2,6]; x.repeat(pattern=\"b c -> 3 b c\")",
     "x: f32[2,6]; x.reshape(1,2,6).expand(3,2,6)"},
    {"x: f32[6]; rearrange([x, x], \"n c -> c n\")",
     "x: f32[6]; stack(0, x, x).permute(1,0)"},
    {"x: f32[2,6]; x.contiguous().clone().copy()",
     "x: f32[2,6]; x"},
    {"x: f32[2,6]; x.narrow(1,2,3)",
     "x: f32[2,6]; x[:, 2:5]"},
    {"x: f32[2,6]; x.narrow(dim=-1, start=-2, length=2)",
     "x: f32[2,6]; x[:, 4:]"},
    {"x: f32[2,6]; x.select(-1,-1)",
     "x: f32[2,6]; x[:, 5]"},
    {"x: f32[2,6]; x.swapdims(0,1)",
     "x: f32[2,6]; x.permute(1,0)"},
    {"x: f32[2,6]; x.movedim(0,1)",
     "x: f32[2,6]; x.permute(1,0)"},
    {"x: f32[2,6]; x.unflatten(-1,(2,-1))",
     "x: f32[2,6]; x.reshape(2,2,3)"},
    {"x: f32[2,6]; x.unflatten(dim=0, sizes=(2,1))",
     "x: f32[2,6]; x.reshape(2,1,6)"},
    {"x: f32[2,6]; np.fliplr(x)",
     "x: f32[2,6]; x.flip(1)"},
    {"x: f32[2,6]; np.flipud(x)",
     "x: f32[2,6]; x.flip(0)"},
    {"x: f32[2,6]; np.rot90(x)",
     "x: f32[2,6]; x.flip(1).permute(1,0)"},
    {"x: f32[2,6]; x.rot90(2)",
     "x: f32[2,6]; x.flip(0,1)"},
    {"x: f32[2,6]; torch.rot90(x, -1, [0, 1])",
     "x: f32[2,6]; x.flip(0).permute(1,0)"},
    {"x: f32[2,6]; x.rot90(4)",
     "x: f32[2,6]; x"},
    {"x: f32[4]; np.hstack([x, x])",
     "x: f32[4]; concat(0, x, x)"},
    {"x: f32[2,4]; hstack((x, x))",
     "x: f32[2,4]; concat(1, x, x)"},
    {"x: f32[4]; vstack(x, x)",
     "x: f32[4]; concat(0, x.unsqueeze(0), x.unsqueeze(0))"},
    {"x: f32[4]; dstack((x,))",
     "x: f32[4]; concat(2, x.unsqueeze(0).unsqueeze(2))"},
    {"x: f32[8,2,3]; x.pixel_shuffle(2)",
     "x: f32[8,2,3]; x.reshape(2,2,2,2,3).permute(0,3,1,4,2).reshape(2,4,6)"},
    {"x: f32[2,4,6]; x.pixel_unshuffle(2)",
     "x: f32[2,4,6]; x.reshape(2,2,2,3,2).permute(0,2,4,1,3).reshape(8,2,3)"},
    {"x: f32[1,2,3,8]; tf.nn.depth_to_space(x, 2)",
     "x: f32[1,2,3,8]; x.reshape(1,2,3,2,2,2).permute(0,1,3,2,4,5).reshape(1,4,6,2)"},
    {"x: f32[8,2,3]; depth_to_space(x, 2, data_format=\"NCHW\")",
     "x: f32[8,2,3]; x.reshape(2,2,2,2,3).permute(2,3,0,4,1).reshape(2,4,6)"},
    {"x: f32[4,6,2]; space_to_depth(x, block_size=2)",
     "x: f32[4,6,2]; x.reshape(2,2,3,2,2).permute(0,2,1,3,4).reshape(2,3,8)"},
    {"x: f32[2,4]; F.pad(x, (1,2))",
     "x: f32[2,4]; x.pad((0,0),(1,2))"},
    {"x: f32[2,4]; torch.nn.functional.pad(x, (1,2,3,4), \"constant\", 7)",
     "x: f32[2,4]; x.pad((3,4),(1,2), value=7)"},
    {"x: f32[2,4]; x.pad((1,2,3,4))",
     "x: f32[2,4]; x.pad((3,4),(1,2))"},
    {"x: f32[2,4]; np.pad(x, (1,2))",
     "x: f32[2,4]; x.pad((1,2),(1,2))"},
    {"x: f32[2,4]; np.pad(x, 1, 'constant', constant_values=7)",
     "x: f32[2,4]; x.pad((1,1),(1,1), value=7)"},
    {"x: f32[2,4]; np.pad(x, ((1,2),(3,4)), mode=\"constant\")",
     "x: f32[2,4]; x.pad((1,2),(3,4))"},
    {"x: <f4[2]; x",
     "x: f32[2]; x"},
    {"x: |u1[2]; x",
     "x: u8[2]; x"},
    {"x: <i8[2]; x",
     "x: i64[2]; x"},
    {"x: i8[2]; x",
     "x: i8[2]; x"},
    {"x: c16[2]; x",
     "x: c128[2]; x"},
    {"x: int[2]; x",
     "x: i32[2]; x"},
    {"x: long[2]; x",
     "x: i64[2]; x"},
    {"x: half[2]; x",
     "x: f16[2]; x"},
    {"x: torch.bfloat16[2]; x",
     "x: bf16[2]; x"},
    {"copy: f32[2]; copy.flip(0)",
     "copy: f32[2]; copy.flip(0)"},
};
/* clang-format on */

START_TEST(other_spellings_mean_the_canonical_line)
{
    for (size_t i = 0; i < sizeof spelling / sizeof *spelling; i++)
        check_prints(spelling[i].typed, spelling[i].canonical);
}
END_TEST

START_TEST(an_error_names_column_operation_node_and_both_shapes)
{
    struct xt_graph *g;
    ck_assert_int_eq(xt_parse("x: f32[2,3,4]; y = x.flip(0); y.reshape(5,5)", 0, NULL, &g), XT_ESHAPE);
    const struct xt_error *e = xt_last_error();
    ck_assert_str_eq(e->message,
                     "column 33: reshape: [2,3,4] (24 elements) does not fit [5,5] (25 elements)");
    ck_assert_int_eq(e->column, 33);
    ck_assert_int_eq(e->op, 2);
    ck_assert_int_eq(e->axis, -1);
    xt_parse("x: f32[2,3]; x.flip(4)", 0, NULL, &g);
    ck_assert_str_eq(e->message, "column 16: flip: there is no axis 4: those of [2,3] are -2 to 1");
    ck_assert_int_eq(e->axis, 4);
    xt_graph_free(parse_line("x: f32[2]; x"));
    ck_assert_int_eq(xt_last_error()->status, XT_OK);
}
END_TEST

static const struct {
    const char *line, *message;
} refusal[] = {
    {"x: f32[4,6]; x.permut(1,0)", "column 16: there is no operation 'permut': did you mean 'permute'?"},
    {"x: f32[4,6]; x.tranpsose(1,0)",
     "column 16: there is no operation 'tranpsose': did you mean 'transpose'?"},
    {"x: f32[4,6]; frobnicate(x)", "column 14: there is no operation 'frobnicate'"},
    {"x: flaot32[4,6]; x", "column 4: 'flaot32' is not an element type: did you mean 'float32'?"},
    {"x: quux[4,6]; x",
     "column 4: 'quux' is not an element type: bool u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 "
     "f64 f8e4m3 f8e5m2 c64 c128"},
    {"x: f8[4,6]; x", "column 4: 'f8' is NumPy's f64, and short for 8 bits: write f64, f8e4m3 or f8e5m2"},
    {"x: >f4[4,6]; x", "column 4: '>f4': xt does not swap the bytes of elements"},
    {"image: f32[4]; imgae.flip(0)", "column 16: 'imgae' is not declared: did you mean 'image'?"},
    {"x: f32[4,6]; x.sum(0)",
     "column 16: there is no operation 'sum': xt moves elements, it computes nothing"},
    {"x: f32[4,6]; x.astype(f16)",
     "column 16: there is no operation 'astype': xt moves elements, it does not convert them"},
    {"x: f32[4,6]; x + 1", "column 16: '+': xt moves elements, it computes nothing"},
    {"x: f32[4,6]; x +1", "column 16: '+': xt moves elements, it computes nothing"},
    {"x: f32[4,6]; concat(0, x * 2, x)", "column 26: '*': xt moves elements, it computes nothing"},
    {"x: f32[4,6]; -x", "column 14: '-': xt moves elements, it computes nothing"},
    {"x: f32[4,6]; x[[1,2]]",
     "column 16: an index is an integer or a slice: lists and tensors (fancy indexing) are "
     "not known when the chain is compiled"},
    {"x: f32[4,6]; x.split(2)",
     "column 16: there is no operation 'split': a chain has one result: slice each part, as in x[:, 0:4]"},
    {"x: f32[4,6]; x.repeat(2,1)",
     "column 16: repeat: write repeat(2, axis=1), NumPy's, or tile(2,1), which is PyTorch's repeat(2,1)"},
    {"x: f32[4,6]; x.reverse(0)", "column 16: there is no operation 'reverse': did you mean 'flip'?"},
    {"x: f32[4,6]; x.repeat(2,2)",
     "column 16: repeat: axis 2 is not from -2 to 1: repeat is NumPy's, PyTorch's is tile"},
    {"x: f32[4,6]; x.pad((1,2))", "column 16: pad: one pair for several axes: np.pad repeats it, F.pad pads "
                                  "the last one: give each its pair"},
    {"x: f32[4,6]; np.pad(x, 1, 'reflect')",
     "column 17: pad: pads with one value alone, not by mode reflect"},
    {"x: f32[4,6]; x.narrow(0,3,2)", "column 16: narrow: 2 elements from 3 on are not in an axis of 4"},
    {"x: f32[4,6]; x.unflatten(1,(4,-1))",
     "column 16: unflatten: the sizes do not make up the 6 elements of axis 1"},
    {"x: f32[4,6]; x.rearrange(\"a b -> b a)", "column 26: the string is not closed"},
    {"x: f32[4,6]; x.rearrange(\"a (b c) -> b a c\", b=4)",
     "column 16: rearrange: 'a (b c) -> b a c' of [4,6] with b=4: axis 1 of 6 elements is not a "
     "multiple of 4"},
    {"x: f32[4,6]; x.rearrange(\"a b c -> c b a\")",
     "column 16: rearrange: 'a b c -> c b a' of [4,6]: the left side has 3 axes, the tensor 2"},
    {"x: f32[4,6]; x.rearrange(\"a b -> b\")",
     "column 16: rearrange: 'a b -> b' of [4,6]: axis 'a' stands on "
     "the left alone: rearrange drops nothing"},
    {"x: f32[4,6]; x.rearrange(\"a b -> b a c\")",
     "column 16: rearrange: 'a b -> b a c' of [4,6]: give the length of the new axis: c=.."},
    {"x: f32[4,6]; x.pixel_shuffle(2)", "column 16: pixel_shuffle: '... (c i j) h w -> ... c (h i) (w "
                                        "j)' of [4,6] with i=2, j=2: the left side "
                                        "has at least 3 axes, the tensor 2"},
};

START_TEST(a_refusal_says_what_was_meant_or_what_xt_does_not_do)
{
    for (size_t i = 0; i < sizeof refusal / sizeof *refusal; i++) {
        struct xt_graph *g;
        ck_assert(xt_parse(refusal[i].line, 0, NULL, &g) != XT_OK);
        ck_assert_str_eq(xt_last_error()->message, refusal[i].message);
    }
}
END_TEST

START_TEST(words_are_as_far_apart_as_the_letters_to_change)
{
    static const struct {
        const char *a, *b;
        int distance;
    } pair[] = {{"", "", 0},          {"flip", "flip", 0}, {"flip", "flp", 1},  {"flip", "filp", 1},
                {"flip", "fliop", 1}, {"flip", "slip", 1}, {"flip", "silp", 2}, {"ab", "ba", 1},
                {"abc", "cab", 2},    {"flip", "tile", 3}, {"a", "", 1},        {"abcd", "", 3}};
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        size_t n = strlen(pair[i].a), m = strlen(pair[i].b);
        ck_assert_int_eq(xti_edit_distance(pair[i].a, n, pair[i].b, m), pair[i].distance);
        ck_assert_int_eq(xti_edit_distance(pair[i].b, m, pair[i].a, n), pair[i].distance);
    }
    struct xti_spelling best = xti_spelling_start((struct xti_token){.s = "flip", .n = 4});
    xti_spelling_look(&best, "flip", 4); /* the word itself is no help */
    ck_assert_uint_eq(best.n, 0);
    xti_spelling_look_at(&best, "tile flip Flip flp");
    ck_assert(best.n == 4 && !memcmp(best.s, "Flip", 4));
}
END_TEST

START_TEST(a_found_byte_that_does_not_print_is_escaped)
{
    struct xt_graph *g;
    xt_parse("x: f32[3]; x.flip(\x01\xff", 0, NULL, &g);
    ck_assert_str_eq(xt_last_error()->message, "column 19: expected an argument, found '\\x01'");
}
END_TEST

/* ---- given */

static void check_given(const char *line, xt_dtype t, int rank, int64_t n, xt_status want,
                        const char *printed)
{
    struct xt_shape given = {t, rank, {n, 6}};
    struct xt_graph *g;
    ck_assert_msg(xt_parse(line, 1, &given, &g) == want, "%s: %s", line, xt_last_error()->message);
    if (want == XT_OK) {
        char *text = print(g);
        ck_assert_str_eq(text, printed);
        free(text);
    }
    xt_graph_free(g);
}

START_TEST(given_shapes_complete_and_check_declarations)
{
    check_given("x; x.permute(1,0)", XT_F32, 2, 4, XT_OK, "x: f32[4,6]; x.permute(1,0)");
    check_given("x; x", XT_F32, 0, 0, XT_OK, "x: f32[]; x");
    check_given("x: f32; x", XT_F32, 2, 4, XT_OK, "x: f32[4,6]; x");
    check_given("x: f32; x", (xt_dtype)0, 2, 4, XT_OK, "x: f32[4,6]; x");
    check_given("x: [4,6]; x", XT_U8, -1, 0, XT_OK, "x: u8[4,6]; x");
    check_given("x: f32[4,6]; x", XT_F32, 2, 4, XT_OK, "x: f32[4,6]; x");
    check_given("x: f32[4,6]; x", (xt_dtype)0, -1, 0, XT_OK, "x: f32[4,6]; x");
    check_given("x: f32[4,6]:[1,4]; x", XT_F32, 1, 24, XT_OK, "x: f32[4,6]:[1,4]+0; x");
    check_given("x: f32[4,6]; x", XT_F32, 2, 5, XT_ESHAPE, NULL);
    check_given("x: f32[4,6]; x", XT_F32, 1, 4, XT_ESHAPE, NULL);
    check_given("x: f32[4,6]; x", XT_F64, 2, 4, XT_EDTYPE, NULL);
    check_given("x: f32[4,6]:[1,4]; x", XT_F64, 2, 4, XT_EDTYPE, NULL);
    check_given("x; x", (xt_dtype)0, 2, 4, XT_ESYNTAX, NULL);
    check_given("x: f32; x", XT_F32, -1, 0, XT_ESYNTAX, NULL);
    check_given("x; y; concat(0,x,y)", XT_F32, 2, 4, XT_ESYNTAX, NULL);
    check_given("x; x", XT_F32, 33, 4, XT_ERANK, NULL);
    check_given("x; x", XT_F32, -2, 4, XT_ERANK, NULL);
    check_given("x; x", (xt_dtype)255, 2, 4, XT_EDTYPE, NULL);
    check_given("x; x", XT_F32, 2, -4, XT_EINVAL, NULL);
}
END_TEST

START_TEST(a_line_that_makes_no_result_is_refused_whoever_forgot_to_say_why)
{
    const struct xt_error *e = xt_last_error();
    for (int way = 0; way < 4; way++) {
        struct xti_parser p = {.text = ""};
        ck_assert_int_eq(xt_graph_new(&p.g), XT_OK);
        xt_node x = xt_input(p.g, "x", XT_U8, 0, NULL, NULL, 0);
        if (way % 2)
            ck_assert_int_eq(xt_output(p.g, x, NULL, 0), XT_OK);
        xti_parse_end(&p, way / 2);
        ck_assert_int_eq(xt_graph_status(p.g), way == 3 ? XT_OK : XT_ESYNTAX);
        ck_assert(way == 3 || !strcmp(e->message, "the line makes no result"));
        xt_graph_free(p.g);
    }
}
END_TEST

START_TEST(null_arguments_are_refused)
{
    struct xt_graph *g = (struct xt_graph *)&g;
    struct xt_shape given = {XT_F32, 0, {0}};
    ck_assert_int_eq(xt_parse(NULL, 0, NULL, &g), XT_EINVAL);
    ck_assert_ptr_null(g);
    ck_assert_int_eq(xt_parse("x: f32[]; x", 0, NULL, NULL), XT_EINVAL);
    ck_assert_int_eq(xt_parse("x; x", 1, NULL, &g), XT_EINVAL);
    ck_assert_int_eq(xt_parse("x; x", -1, &given, &g), XT_EINVAL);
    ck_assert_int_eq(xt_print(NULL, NULL, 0, NULL), XT_EINVAL);
    ck_assert_int_eq(xt_graph_new(&g), XT_OK);
    size_t need = 9;
    ck_assert_int_eq(xt_print(g, NULL, 0, &need), XT_EINVAL);
    ck_assert_uint_eq(need, 0);
    xt_graph_free(g);
}
END_TEST

START_TEST(printing_cuts_at_the_size_and_tells_the_need)
{
    struct xt_graph *g = parse_line("x: f32[4,6]; x.flip(0)");
    char buf[32];
    size_t need;
    for (size_t size = 0; size <= sizeof buf; size++) {
        memset(buf, 0x55, sizeof buf);
        ck_assert_int_eq(xt_print(g, buf, size, &need), XT_OK);
        ck_assert_uint_eq(need, 23);
        for (size_t i = 0; i < sizeof buf; i++) {
            char want = i + 1 < size && i < 22                     ? "x: f32[4,6]; x.flip(0)"[i]
                        : size && i == (size < 23 ? size - 1 : 22) ? 0
                                                                   : 0x55;
            ck_assert_int_eq(buf[i], want);
        }
    }
    xt_graph_free(g);
}
END_TEST

/* ---- values */

static uint64_t bits_of(xt_dtype t, const char *text)
{
    unsigned char v[16] = {0};
    uint64_t u;
    const char *why = xti_value_parse(t, text, strlen(text), v);
    ck_assert_msg(!why, "%s %s: %s", xt_dtype_name(t), text, why);
    memcpy(&u, v, sizeof u); /* the machines that run this are little-endian */
    return u;
}

/* clang-format off */
static const struct { xt_dtype t; const char *text; uint64_t bits; } literal[] = {
    {XT_BOOL, "0", 0}, {XT_BOOL, "True", 1}, {XT_BOOL, "bits(0xfe)", 0xfe},
    {XT_U8, "255", 255}, {XT_I8, "-128", 0x80}, {XT_I8, "+127", 127}, {XT_U16, "65535", 0xffff},
    {XT_I32, "-1", 0xffffffff}, {XT_U64, "18446744073709551615", UINT64_MAX},
    {XT_I64, "-9223372036854775808", UINT64_C(1) << 63}, {XT_U8, "bits(0x7f)", 0x7f},
    {XT_F16, "1", 0x3c00}, {XT_F16, "-2", 0xc000}, {XT_F16, "65504", 0x7bff}, {XT_F16, "65519.99", 0x7bff},
    {XT_F16, "65520", 0x7c00}, {XT_F16, "5.9604644775390625e-8", 1}, {XT_F16, "2.98023223876953125e-8", 0},
    {XT_F16, "2.98023223876953126e-8", 1}, {XT_F16, "nan", 0x7e00}, {XT_F16, "-inf", 0xfc00},
    {XT_F16, "1.00048828125", 0x3c00}, {XT_F16, "1.00146484375", 0x3c02},
    {XT_F16, "1.000488281250000000000000000000000000000001", 0x3c01}, /* a double would lose the last digit */
    {XT_F16, "6.097555160522461e-5", 0x03ff}, {XT_F16, "6.103515625e-5", 0x0400},
    {XT_BF16, "1", 0x3f80}, {XT_BF16, "3.3895313892515355e38", 0x7f7f}, {XT_BF16, "3.4e38", 0x7f80},
    {XT_BF16, "1.00390625", 0x3f80}, {XT_BF16, "1.01171875", 0x3f82}, {XT_BF16, "nan", 0x7fc0},
    {XT_F32, "0.1", 0x3dcccccd}, {XT_F32, "1e-45", 1},
    {XT_F32, "7e-46", 0}, {XT_F32, "3.4028235677973366164e38", 0x7f800000},
    {XT_F32, "3.4028235677973366163e38", 0x7f7fffff},
    {XT_F32, "16777217", 0x4b800000}, {XT_F32, ".5", 0x3f000000},
    {XT_F32, "1e400", 0x7f800000},
    {XT_F32, "1e999999999999", 0x7f800000}, {XT_F32, "-1e-999999999999", 0x80000000},
    {XT_F32, "0e999999999", 0}, {XT_F32, "nan", 0x7fc00000},
    {XT_F64, "0.1", 0x3fb999999999999a}, {XT_F64, "5e-324", 1}, {XT_F64, "2.4703282292062327e-324", 0},
    {XT_F64, "2.4703282292062328e-324", 1}, {XT_F64, "1.7976931348623157e308", 0x7fefffffffffffff},
    {XT_F64, "1.7976931348623159e308", 0x7ff0000000000000}, {XT_F64, "9007199254740993", 0x4340000000000000},
    {XT_F64, "9007199254740995", 0x4340000000000002}, {XT_F64, "2.2250738585072014e-308", 0x0010000000000000},
    {XT_F8E4M3, "448", 0x7e}, {XT_F8E4M3, "464", 0x7e}, {XT_F8E4M3, "-1", 0xb8}, {XT_F8E4M3, "nan", 0x7f},
    {XT_F8E4M3, "0.001953125", 1}, {XT_F8E4M3, "0.0009765625", 0}, {XT_F8E4M3, "0.0029296875", 2},
    {XT_F8E5M2, "57344", 0x7b}, {XT_F8E5M2, "61439", 0x7b},
    {XT_F8E5M2, "61440", 0x7c}, {XT_F8E5M2, "1.125", 0x3c},
    {XT_F8E5M2, "1.375", 0x3e}, {XT_F8E5M2, "nan", 0x7e},
    {XT_C64, "(1,-2)", 0xc00000003f800000}, {XT_C64, "1-2j", 0xc00000003f800000}, {XT_C64, "1", 0x3f800000},
    {XT_C64, "1e-1+1e-1j", 0x3dcccccd3dcccccd},
    {XT_C64, " ( 1 , 2 ) ", 0x400000003f800000}, {XT_C64, "2j", 0x4000000000000000},
};
/* clang-format on */

START_TEST(literals_round_to_the_nearest_value_ties_to_even)
{
    for (size_t i = 0; i < sizeof literal / sizeof *literal; i++)
        ck_assert_msg(bits_of(literal[i].t, literal[i].text) == literal[i].bits,
                      "%s %s: %" PRIx64 " is not %" PRIx64, xt_dtype_name(literal[i].t), literal[i].text,
                      bits_of(literal[i].t, literal[i].text), literal[i].bits);
}
END_TEST

START_TEST(values_that_do_not_fit_are_refused)
{
    static const struct {
        xt_dtype t;
        const char *text;
    } bad[] = {{XT_U8, "256"},       {XT_U8, "-1"},
               {XT_I8, "128"},       {XT_I8, "-129"},
               {XT_U8, "1.0"},       {XT_U8, ""},
               {XT_U8, "-"},         {XT_U8, "1x"},
               {XT_BOOL, "2"},       {XT_F8E4M3, "465"},
               {XT_F32, "1e"},       {XT_F32, "."},
               {XT_F32, "1.2.3"},    {XT_F32, "0x10"},
               {XT_F32, "infinity"}, {XT_F32, ""},
               {XT_C64, "(1,2"},     {XT_C64, "(1,2,3)"},
               {XT_C64, "1+2i"},     {XT_C64, "j"},
               {XT_C64, "()"},       {XT_F16, "bits()"},
               {XT_F16, "bits(0x)"}, {XT_F16, "bits(0xg)"},
               {XT_F8E4M3, "-inf"},  {XT_U64, "bits(0x10000000000000000)"},
               {XT_F64, "bits(1)"},  {XT_F16, "bits(0x12"},
               {XT_F32, "1e+"},      {XT_F32, "--1"}};
    unsigned char v[16];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(xti_value_parse(bad[i].t, bad[i].text, strlen(bad[i].text), v) != NULL, "%s '%s'",
                      xt_dtype_name(bad[i].t), bad[i].text);
    char digits[102];
    memset(digits, '1', 101);
    ck_assert_ptr_nonnull(xti_value_parse(XT_F64, digits, 101, v));
    ck_assert_ptr_null(xti_value_parse(XT_F64, digits, 100, v));
}
END_TEST

static void check_value(xt_dtype t, const unsigned char *v)
{
    struct xti_str b = {0};
    unsigned char back[16] = {0};
    xti_value_print(t, v, &b);
    const char *why = xti_value_parse(t, b.s, b.n, back);
    ck_assert_msg(!why && !memcmp(back, v, xt_dtype_bytes(t)), "%s %s: %s", xt_dtype_name(t), b.s,
                  why ? why : "differs");
    xti_str_free(&b);
}

START_TEST(every_value_of_one_and_two_bytes_prints_to_text_that_parses_back)
{
    for (int t = XT_BOOL; t <= XT_C128; t++)
        for (uint32_t i = 0;
             xt_dtype_bytes((xt_dtype)t) <= 2 && i < UINT32_C(1) << 8 * xt_dtype_bytes((xt_dtype)t); i++)
            check_value((xt_dtype)t, (const unsigned char *)&i);
}
END_TEST

START_TEST(random_wide_values_print_to_text_that_parses_back)
{
    static const xt_dtype wide[] = {XT_U32, XT_I32, XT_U64, XT_I64, XT_F32, XT_F64, XT_C64, XT_C128};
    uint64_t state = 7, v[2];
    for (int i = 0; i < 16000; i++) {
        v[0] = random_next(&state) >> (i / 8 % 3 == 0 ? random_below(&state, 64) : 0);
        v[1] = random_next(&state);
        check_value(wide[i % 8], (const unsigned char *)v);
    }
}
END_TEST

/* Against the C library, whose strtod rounds correctly: the same answer for doubles and floats. */
START_TEST(literals_agree_with_strtod)
{
    uint64_t state = 11;
    char text[64];
    for (int i = 0; i < 20000; i++) {
        uint64_t d = random_next(&state) >> random_below(&state, 60);
        snprintf(text, sizeof text, "%" PRIu64 "e%d", d, (int)random_below(&state, 680) - 350);
        double x = strtod(text, NULL);
        float y = strtof(text, NULL);
        uint64_t want;
        uint32_t want32;
        memcpy(&want, &x, 8);
        memcpy(&want32, &y, 4);
        ck_assert_msg(bits_of(XT_F64, text) == want, "%s", text);
        ck_assert_msg(bits_of(XT_F32, text) == want32, "%s as float", text);
    }
}
END_TEST

START_TEST(the_locale_does_not_matter)
{
    char dir[SCRATCH_PATH];
    make_scratch(dir, "lang");
    use_comma(dir);
    check_prints("x: f32[1]; x.pad((1,1), value=0.5)", "x: f32[1]; x.pad((1,1), value=0.5)");
    check_prints("x: f64[1]; x.pad((1,1), value=1.25e-30)", "x: f64[1]; x.pad((1,1), value=1.25e-30)");
    setlocale(LC_ALL, "C");
    remove_scratch(dir);
}
END_TEST

/* ---- sharing and depth */

START_TEST(a_node_used_twice_stays_one_node)
{
    struct xt_graph *shared = parse_line("x: f32[4]; a = x.flip(0); concat(0, a, a)");
    struct xt_graph *twice = parse_line("x: f32[4]; concat(0, x.flip(0), x.flip(0))");
    ck_assert(!same_graph(shared, twice));
    ck_assert(!same_graph(twice, shared));
    ck_assert(same_graph(shared, shared));
    check_round_trip(shared, "shared");
    check_round_trip(twice, "twice");
    xt_graph_free(shared);
    xt_graph_free(twice);
}
END_TEST

START_TEST(graphs_that_differ_in_one_thing_are_not_the_same)
{
    static const char *const line[] = {"x: f32[4,1]; x.flip(0)",
                                       "y: f32[4,1]; y.flip(0)",
                                       "x: i32[4,1]; x.flip(0)",
                                       "x: f32[4,2]; x.flip(0)",
                                       "x: f32[4,1]:[1,1]; x.flip(0)",
                                       "x: f32[4,1]:[1,1]+1; x.flip(0)",
                                       "x: f32[4,1]; x.flip(1)",
                                       "x: f32[4,1]; x.flip(0,1)",
                                       "x: f32[4,1]; x.flip(0) -> [4,1]:[1,1]",
                                       "x: f32[4,1]; x.tril()",
                                       "x: f32[4,1]; x.flip(0) -> [4,1]:[1,1]+1",
                                       "x: f32[4,1]; x.tril(0, value=1)",
                                       "x: f32[4,1]; y: f32[1]; x.flip(0)",
                                       "x: f32[4,1]; x"};
    enum { N = sizeof line / sizeof *line };
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++) {
            struct xt_graph *a = parse_line(line[i]), *b = parse_line(line[k]);
            size_t p_bytes, q_bytes;
            unsigned char *p = pack(a, &p_bytes), *q = pack(b, &q_bytes);
            ck_assert_msg(same_graph(a, b) == (i == k), "%s\n  %s", line[i], line[k]);
            ck_assert((p_bytes == q_bytes && !memcmp(p, q, p_bytes)) == (i == k));
            free(p);
            free(q);
            xt_graph_free(a);
            xt_graph_free(b);
        }
    }
}
END_TEST

START_TEST(numbers_of_every_size_are_packed_and_come_back)
{
    static const int64_t edge[] = {0, INT8_MAX, INT8_MIN, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof edge / sizeof *edge; i++)
        for (int64_t beside = -1; beside <= 1; beside++) {
            struct xt_graph *g;
            int64_t strides[2] = {3, (int64_t)((uint64_t)edge[i] + (uint64_t)beside)};
            ck_assert(!xt_graph_new(&g));
            xt_node x = xt_input(g, "x", XT_U8, 2, (int64_t[]){2, 1}, strides, 5);
            ck_assert(!xt_output(g, x, strides, edge[i] < INT64_MAX - 3 && edge[i] > 0 ? edge[i] : 0));
            check_packing(g);
            xt_graph_free(g);
        }
}
END_TEST

START_TEST(sharing_sixty_levels_deep_prints_in_linear_length)
{
    struct xt_graph *g;
    const int64_t shape[] = {0};
    xt_graph_new(&g);
    xt_node x = xt_input(g, NULL, XT_U8, 1, shape, NULL, 0);
    for (int i = 0; i < 60; i++)
        x = xt_concat(g, 0, 2, (const xt_node[]){x, x});
    ck_assert_int_eq(xt_output(g, x, NULL, 0), XT_OK);
    char *text = print(g);
    ck_assert_uint_lt(strlen(text), 4096);
    free(text);
    check_round_trip(g, "sixty levels");
    xt_graph_free(g);
}
END_TEST

START_TEST(joins_nested_a_thousand_deep_print_and_parse)
{
    struct xt_graph *g;
    const int64_t shape[] = {1};
    xt_graph_new(&g);
    xt_node x = xt_input(g, NULL, XT_U8, 1, shape, NULL, 0), y = x;
    for (int i = 0; i < 1000; i++)
        y = xt_concat(g, 0, 2, (const xt_node[]){x, xt_flip(g, y, 0, NULL)});
    ck_assert_int_eq(xt_output(g, y, NULL, 0), XT_OK);
    check_round_trip(g, "a thousand joins");
    xt_graph_free(g);
}
END_TEST

static char *repeat_text(const char *before, const char *s, int n, const char *after)
{
    char *t = malloc(strlen(before) + strlen(s) * (size_t)n + strlen(after) + 1), *at = stpcpy(t, before);
    for (int i = 0; i < n; i++)
        at = stpcpy(at, s);
    strcpy(at, after);
    return t;
}

static xt_status parse_repeated(const char *before, const char *s, int n, const char *after)
{
    struct xt_graph *g;
    char *t = repeat_text(before, s, n, after);
    xt_status status = xt_parse(t, 0, NULL, &g);
    xt_graph_free(g);
    free(t);
    return status;
}

START_TEST(nesting_has_a_limit_and_long_chains_have_one_too)
{
    ck_assert_int_eq(parse_repeated("x: f32[3]; ", "concat(0,", 100, "x"), XT_ESYNTAX);
    ck_assert_int_eq(parse_repeated("x: f32[3]; ", "(", 100000, "x"), XT_ESYNTAX);
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "nested deeper than 256"));
    ck_assert_int_eq(parse_repeated("x: f32[3]; ", "flip(", 256, "x"), XT_ESYNTAX);
    ck_assert_int_eq(parse_repeated("x: f32[3]; flip(x, ", "[", 100000, "0"), XT_ESYNTAX);
    ck_assert_int_eq(parse_repeated("x: f32[3]; x", ".flip(0)", 4095, ""), XT_OK);
    ck_assert_int_eq(parse_repeated("x: f32[3]; x", ".flip(0)", 100000, ""), XT_EUNSUPPORTED);
    ck_assert_int_eq(parse_repeated("x: f32[3]; x # ", "long ", 300000, ""), XT_EUNSUPPORTED);
    ck_assert_int_eq(parse_repeated("x: f32[3]; x # ", "long ", 200000, ""), XT_OK);
    ck_assert_int_eq(parse_repeated("x: f32[3]; x[", "0,", 100000, "0]"), XT_ERANK);
    ck_assert_int_eq(parse_repeated("x: f32[3]; x.permute(", "0,", 100000, "0)"), XT_ERANK);
    ck_assert_int_eq(parse_repeated("", "x", 127, ": f32[3]; 7"), XT_ESYNTAX);
    ck_assert_int_eq(xt_last_error()->column, 138);
    ck_assert_int_eq(parse_repeated("", "x", 128, ": f32[3]; 7"), XT_ESYNTAX);
    ck_assert_int_eq(xt_last_error()->column, 1);
}
END_TEST

START_TEST(a_chain_of_four_thousand_operations_prints_and_parses)
{
    char *t = repeat_text("x: f32[2,3]; x", ".permute(1,0)", 4000, "");
    struct xt_graph *g = parse_line(t);
    check_round_trip(g, "4000 permutes");
    xt_graph_free(g);
    free(t);
}
END_TEST

/* ---- damage */

START_TEST(random_graphs_are_the_same_after_printing)
{
    uint32_t seen = 0;
    for (uint64_t seed = 0; seed < 6000; seed++) {
        struct xt_graph *g = random_graph(seed, NULL);
        ck_assert_msg(g != NULL, "seed %" PRIu64 ": %s", seed, xt_last_error()->message);
        for (xt_node x = 0; x < xt_node_count(g); x++)
            seen |= UINT32_C(1) << g->node[x].op;
        check_round_trip(g, graph_text(g));
        xt_graph_free(g);
    }
    ck_assert_uint_eq(seen, (UINT32_C(2) << XT_OP_STACK) - 1); /* every operation occurred */
}
END_TEST

static char corpus[256][400];
static int n_corpus;

static void keep_line(char *line)
{
    if (n_corpus < 256 && strlen(line) < sizeof corpus[0])
        strcpy(corpus[n_corpus++], line);
}

/* A few bytes changed, removed, doubled, or taken from another line. */
static void mutate(uint64_t *state, char *s, size_t size)
{
    static const char likely[] = "()[],:;.=-+>#0159xyT e\"\\\x01\xff";
    for (int64_t k = 1 + random_below(state, 4); k > 0; k--) {
        size_t n = strlen(s), at = (size_t)random_below(state, (int64_t)n + 1);
        const char *other = corpus[random_below(state, n_corpus)];
        switch (random_below(state, 5)) {
        case 0:
            if (n)
                s[at % n] = likely[random_below(state, sizeof likely - 1)];
            break;
        case 1:
            if (n)
                memmove(s + at % n, s + at % n + 1, n - at % n);
            break;
        case 2:
            if (n + 2 < size) {
                memmove(s + at + 1, s + at, n - at + 1);
                s[at] = likely[random_below(state, sizeof likely - 1)];
            }
            break;
        case 3:
            if (at + strlen(other) + 1 < size)
                strcpy(s + at, other + random_below(state, (int64_t)strlen(other) + 1));
            break;
        default:
            s[at] = 0;
        }
    }
}

START_TEST(a_hundred_thousand_damaged_lines_parse_or_fail_cleanly)
{
    uint64_t state = 1;
    int good = 0;
    char line[1024];
    n_corpus = 0;
    each_line("tests/problems/good.txt", keep_line);
    int64_t live = xti_live_allocations();
    for (int i = 0; i < 100000; i++) {
        struct xt_graph *g = NULL;
        strcpy(line, corpus[i % n_corpus]);
        mutate(&state, line, sizeof line);
        xt_status s = xt_parse(line, 0, NULL, &g);
        ck_assert_msg((s == XT_OK) == (g != NULL) && s == xt_last_error()->status, "%s", line);
        ck_assert_msg(s == XT_OK || xt_last_error()->column > 0, "%s: %s", line, xt_last_error()->message);
        ck_assert_msg(s != XT_EINTERNAL && s != XT_ENOMEM, "%s: %s", line, xt_last_error()->message);
        if (s == XT_OK) {
            good++;
            check_round_trip(g, line);
        }
        xt_graph_free(g);
    }
    ck_assert_int_gt(good, 1000);
    ck_assert_int_eq(xti_live_allocations(), live);
}
END_TEST

/* Every allocation of parse, print and parse again fails in turn: XT_ENOMEM, and nothing stays behind. */
START_TEST(every_allocation_that_fails_is_reported_and_leaks_nothing)
{
    static const char line[] =
        "x: f32[4,6]:[1,4]+0; y: f32[2,6]; z: f32[1,6]; q: f32[4,6]; w: f32[2,6]; a = concat(0, x, y[:, "
        "::-1], z); "
        "b = rearrange([a, a.flip(0)], \"n h w -> n h w\"); concat(0, b, b.roll((1,2),(0,1)))"
        ".pad((1,1),(0,0),(0,0), value=0.5)"
        ".reshape(-1).unsqueeze(0).squeeze(0).tile(2).repeat(2,0).rearrange(\"(a b) -> b a\", a=2).flatten()"
        ".unflatten(0,(2,-1)).rearrange(\"a b -> (a b)\") -> [1008]:[2]+5";
    bool finished = false;
    int n = 1;
    for (; !finished; n++) {
        struct xt_graph *g = NULL;
        char buf[1024];
        int64_t live = xti_live_allocations();
        xti_fail_alloc(n, 0);
        xt_status s = xt_parse(line, 0, NULL, &g);
        if (!s)
            s = xt_print(g, buf, sizeof buf, NULL);
        xti_fail_alloc(0, 0);
        ck_assert_msg(s == XT_OK || s == XT_ENOMEM, "allocation %d: %s %s", n, xt_status_name(s),
                      xt_last_error()->message);
        finished = s == XT_OK;
        xt_graph_free(g);
        ck_assert_int_eq(xti_live_allocations(), live);
    }
    ck_assert_int_gt(n, 10);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lang");
    TCase *t = tcase_create("lang");
    tcase_set_timeout(t, 600);
    tcase_add_test(t, every_good_line_is_the_same_graph_after_printing);
    tcase_add_test(t, every_bad_line_is_refused_with_its_status_column_and_sentence);
    tcase_add_test(t, other_spellings_mean_the_canonical_line);
    tcase_add_test(t, an_error_names_column_operation_node_and_both_shapes);
    tcase_add_test(t, a_refusal_says_what_was_meant_or_what_xt_does_not_do);
    tcase_add_test(t, words_are_as_far_apart_as_the_letters_to_change);
    tcase_add_test(t, a_found_byte_that_does_not_print_is_escaped);
    tcase_add_test(t, given_shapes_complete_and_check_declarations);
    tcase_add_test(t, a_line_that_makes_no_result_is_refused_whoever_forgot_to_say_why);
    tcase_add_test(t, null_arguments_are_refused);
    tcase_add_test(t, printing_cuts_at_the_size_and_tells_the_need);
    tcase_add_test(t, literals_round_to_the_nearest_value_ties_to_even);
    tcase_add_test(t, values_that_do_not_fit_are_refused);
    tcase_add_test(t, every_value_of_one_and_two_bytes_prints_to_text_that_parses_back);
    tcase_add_test(t, random_wide_values_print_to_text_that_parses_back);
    tcase_add_test(t, literals_agree_with_strtod);
    tcase_add_test(t, the_locale_does_not_matter);
    tcase_add_test(t, a_node_used_twice_stays_one_node);
    tcase_add_test(t, graphs_that_differ_in_one_thing_are_not_the_same);
    tcase_add_test(t, numbers_of_every_size_are_packed_and_come_back);
    tcase_add_test(t, sharing_sixty_levels_deep_prints_in_linear_length);
    tcase_add_test(t, joins_nested_a_thousand_deep_print_and_parse);
    tcase_add_test(t, nesting_has_a_limit_and_long_chains_have_one_too);
    tcase_add_test(t, a_chain_of_four_thousand_operations_prints_and_parses);
    tcase_add_test(t, random_graphs_are_the_same_after_printing);
    tcase_add_test(t, a_hundred_thousand_damaged_lines_parse_or_fail_cleanly);
    tcase_add_test(t, every_allocation_that_fails_is_reported_and_leaks_nothing);
    suite_add_tcase(s, t);
    return run_suite(s);
}
