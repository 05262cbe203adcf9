/* test_graph.c: shape rules, attributes, layouts and errors of the builders, against expectations written by
 * hand from NumPy's and PyTorch's rules. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "graph/graph.h"
#include "tests/support/random_graph.h"
#include "tests/support/suite.h"

#define MAX63 INT64_MAX

static struct xt_graph *g;

static void end(void)
{
    xt_graph_free(g);
    g = NULL;
}
static void begin(void)
{
    end();
    ck_assert_int_eq(xt_graph_new(&g), XT_OK);
}

#define SHAPE(...) (const int64_t[]){__VA_ARGS__}, (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t))
#define AXES(...)                                                                                            \
    (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)), (const int[]) { __VA_ARGS__ }
#define NUMS(...)                                                                                            \
    (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define NODES(...)                                                                                           \
    (int)(sizeof(xt_node[]){__VA_ARGS__} / sizeof(xt_node)), (const xt_node[]) { __VA_ARGS__ }
#define PAIRS(n, ...)                                                                                        \
    (n), (const int64_t[]) { __VA_ARGS__ }

static xt_node in(const int64_t *shape, int rank) { return xt_input(g, NULL, XT_F32, rank, shape, NULL, 0); }

static void check_node(xt_node x, const char *shape, const char *attrs)
{
    struct xt_node_info n = {.size = sizeof n};
    char text[512];
    ck_assert_msg(x >= 0, "%s", xt_last_error()->message);
    ck_assert_int_eq(xt_node_get(g, x, &n), XT_OK);
    ck_assert_str_eq(xti_shape_text(text, sizeof text, n.rank, n.shape), shape);
    ck_assert_str_eq(xti_shape_text(text, sizeof text, n.n_attrs, n.attrs), attrs);
}

/* The builder's call failed so, and the graph remembers. Starts a new graph. */
static void check_fails(xt_node x, xt_status want, const char *message)
{
    const struct xt_error *e = xt_last_error();
    ck_assert_int_eq(x, -1);
    ck_assert_str_eq(e->message, message);
    ck_assert_str_eq(xt_status_name(e->status), xt_status_name(want));
    ck_assert_int_eq(e->column, 0);
    ck_assert_int_eq(xt_graph_status(g), want);
    ck_assert_str_eq(xt_last_error()->message, message);
    end();
    begin();
}

/* ---- dtypes */

START_TEST(every_dtype_has_a_name_and_a_width)
{
    static const struct {
        xt_dtype t;
        const char *name, *alias;
        size_t bytes;
    } row[] = {{XT_BOOL, "bool", "bool", 1},
               {XT_U8, "u8", "uint8", 1},
               {XT_I8, "i8", "int8", 1},
               {XT_U16, "u16", "uint16", 2},
               {XT_I16, "i16", "int16", 2},
               {XT_U32, "u32", "uint32", 4},
               {XT_I32, "i32", "int32", 4},
               {XT_U64, "u64", "uint64", 8},
               {XT_I64, "i64", "int64", 8},
               {XT_F16, "f16", "float16", 2},
               {XT_BF16, "bf16", "bfloat16", 2},
               {XT_F32, "f32", "float32", 4},
               {XT_F64, "f64", "float64", 8},
               {XT_F8E4M3, "f8e4m3", "float8_e4m3fn", 1},
               {XT_F8E5M2, "f8e5m2", "float8_e5m2", 1},
               {XT_C64, "c64", "complex64", 8},
               {XT_C128, "c128", "complex128", 16}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        xt_dtype t;
        ck_assert_int_eq(row[i].t, (int)i + 1);
        ck_assert_str_eq(xt_dtype_name(row[i].t), row[i].name);
        ck_assert_uint_eq(xt_dtype_bytes(row[i].t), row[i].bytes);
        ck_assert_int_eq(xt_dtype_parse(row[i].name, &t), XT_OK);
        ck_assert_int_eq(t, row[i].t);
        ck_assert_int_eq(xt_dtype_parse(row[i].alias, &t), XT_OK);
        ck_assert_int_eq(t, row[i].t);
    }
}
END_TEST

START_TEST(unknown_dtypes_are_refused)
{
    static const int bad[] = {0, -1, 18, 255, INT_MAX, INT_MIN};
    xt_dtype t = XT_F32;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_uint_eq(xt_dtype_bytes((xt_dtype)bad[i]), 0);
        ck_assert_ptr_null(xt_dtype_name((xt_dtype)bad[i]));
        begin();
        ck_assert_int_eq(xt_input(g, NULL, (xt_dtype)bad[i], 0, NULL, NULL, 0), -1);
        ck_assert_int_eq(xt_graph_status(g), XT_EDTYPE);
        end();
    }
    ck_assert_int_eq(xt_dtype_parse("f3", &t), XT_EDTYPE);
    ck_assert_int_eq(t, 0);
    ck_assert_int_eq(xt_dtype_parse("", &t), XT_EDTYPE);
    ck_assert_int_eq(xt_dtype_parse("u8 uint8", &t), XT_EDTYPE);
    ck_assert_int_eq(xt_dtype_parse(NULL, &t), XT_EINVAL);
    ck_assert_int_eq(xt_dtype_parse("u8", NULL), XT_EINVAL);
}
END_TEST

/* ---- shape rules */

START_TEST(views_have_numpys_shapes_and_resolved_axes)
{
    xt_node x = in(SHAPE(2, 3, 4)), one = in(SHAPE(1, 3, 1)), s = xt_input(g, NULL, XT_F32, 0, NULL, NULL, 0);
    check_node(xt_permute(g, x, AXES(2, 0, 1)), "[4,2,3]", "[2,0,1]");
    check_node(xt_permute(g, x, AXES(-1, -3, -2)), "[4,2,3]", "[2,0,1]");
    check_node(xt_permute(g, s, 0, NULL), "[]", "[]");
    check_node(xt_transpose(g, x, 0, -1), "[4,3,2]", "[2,1,0]");
    check_node(xt_transpose(g, x, 1, 1), "[2,3,4]", "[0,1,2]");
    check_node(xt_squeeze(g, one, 0, NULL), "[3]", "[0,2]");
    check_node(xt_squeeze(g, one, AXES(-1)), "[1,3]", "[2]");
    check_node(xt_squeeze(g, one, AXES(-1, 0)), "[3]", "[0,2]");
    check_node(xt_squeeze(g, x, 0, NULL), "[2,3,4]", "[]");
    check_node(xt_unsqueeze(g, x, 0), "[1,2,3,4]", "[0]");
    check_node(xt_unsqueeze(g, x, -1), "[2,3,4,1]", "[3]");
    check_node(xt_unsqueeze(g, x, -2), "[2,3,1,4]", "[2]");
    check_node(xt_unsqueeze(g, s, -1), "[1]", "[0]");
    check_node(xt_flip(g, x, 0, NULL), "[2,3,4]", "[0,1,2]");
    check_node(xt_flip(g, x, AXES(-1, 0)), "[2,3,4]", "[0,2]");
    check_node(xt_flip(g, s, 0, NULL), "[]", "[]");
    check_node(xt_expand(g, one, NUMS(5, 3, 7)), "[5,3,7]", "[5,3,7]");
    check_node(xt_expand(g, one, NUMS(2, -1, -1, 0)), "[2,1,3,0]", "[2,1,3,0]");
    check_node(xt_expand(g, s, NUMS(2, 3)), "[2,3]", "[2,3]");
    check_node(xt_expand(g, s, 0, NULL), "[]", "[]");
    check_node(xt_reshape(g, x, NUMS(-1)), "[24]", "[24]");
    check_node(xt_reshape(g, x, NUMS(6, -1, 2)), "[6,2,2]", "[6,2,2]");
    check_node(xt_reshape(g, x, NUMS(1, 24, 1)), "[1,24,1]", "[1,24,1]");
    check_node(xt_reshape(g, s, NUMS(1, -1)), "[1,1]", "[1,1]");
    check_node(xt_reshape(g, xt_reshape(g, s, NUMS(1)), 0, NULL), "[]", "[]");
    ck_assert_int_eq(xt_graph_status(g), XT_OK);
}
END_TEST

START_TEST(empty_tensors_are_ordinary)
{
    xt_node e = in(SHAPE(0, 3));
    check_node(xt_flip(g, e, AXES(0)), "[0,3]", "[0]");
    check_node(xt_permute(g, e, AXES(1, 0)), "[3,0]", "[1,0]");
    check_node(xt_reshape(g, e, NUMS(-1, 3)), "[0,3]", "[0,3]");
    check_node(xt_reshape(g, e, NUMS(7, 0, 9)), "[7,0,9]", "[7,0,9]");
    check_node(xt_roll(g, e, 5, 0), "[0,3]", "[0,0]");
    check_node(xt_tile(g, e, NUMS(4, 2)), "[0,6]", "[4,2]");
    check_node(xt_repeat(g, e, MAX63, 0), "[0,3]", "[9223372036854775807,0]");
    check_node(xt_diagonal(g, e, 0, 0, 1), "[0]", "[0,0,1]");
    check_node(xt_unfold(g, e, 0, 0, 1), "[1,3,0]", "[0,0,1]");
    check_node(xt_pad(g, e, PAIRS(2, 1, 2, 0, 0), NULL), "[3,3]", "[1,2,0,0]");
    check_node(xt_tril(g, e, 7, NULL), "[0,3]", "[3]");
    check_node(xt_concat(g, 0, NODES(e, e)), "[0,3]", "[0]");
    check_node(xt_stack(g, 0, NODES(e, e)), "[2,0,3]", "[0]");
    check_node(in(SHAPE(MAX63, 0, MAX63)), "[9223372036854775807,0,9223372036854775807]", "[]");
    check_node(in(SHAPE(0, MAX63, MAX63)), "[0,9223372036854775807,9223372036854775807]", "[]");
}
END_TEST

START_TEST(resizing_operations_have_numpys_shapes)
{
    xt_node x = in(SHAPE(2, 3, 4)), s = xt_input(g, NULL, XT_F32, 0, NULL, NULL, 0);
    check_node(xt_tile(g, x, NUMS(2)), "[2,3,8]", "[1,1,2]");
    check_node(xt_tile(g, x, NUMS(5, 1, 2, 3)), "[5,2,6,12]", "[5,1,2,3]");
    check_node(xt_tile(g, x, NUMS(0, 1, 1)), "[0,3,4]", "[0,1,1]");
    check_node(xt_tile(g, x, 0, NULL), "[2,3,4]", "[1,1,1]");
    check_node(xt_tile(g, s, NUMS(2, 3)), "[2,3]", "[2,3]");
    check_node(xt_repeat(g, x, 3, -2), "[2,9,4]", "[3,1]");
    check_node(xt_repeat(g, x, 0, 0), "[0,3,4]", "[0,0]");
    check_node(xt_roll(g, x, 1, 1), "[2,3,4]", "[1,1]");
    check_node(xt_roll(g, x, -1, -1), "[2,3,4]", "[3,2]");
    check_node(xt_roll(g, x, 300, 1), "[2,3,4]", "[0,1]");
    check_node(xt_roll(g, x, INT64_MIN, 1), "[2,3,4]", "[1,1]"); /* -2^63 mod 3 */
    check_node(xt_diagonal(g, x, 0, 0, 1), "[4,2]", "[0,0,1]");
    check_node(xt_diagonal(g, x, 1, 0, -1), "[3,2]", "[1,0,2]");
    check_node(xt_diagonal(g, x, 3, 0, 2), "[3,1]", "[3,0,2]");
    check_node(xt_diagonal(g, x, -1, 2, 0), "[3,2]", "[-1,2,0]");
    check_node(xt_diagonal(g, x, 9, 0, 2), "[3,0]", "[4,0,2]");
    check_node(xt_diagonal(g, x, INT64_MIN, 0, 2), "[3,0]", "[-2,0,2]");
    check_node(xt_diagonal(g, x, MAX63, 0, 2), "[3,0]", "[4,0,2]");
    check_node(xt_unfold(g, x, 2, 2, 1), "[2,3,3,2]", "[2,2,1]");
    check_node(xt_unfold(g, x, -1, 3, 2), "[2,3,1,3]", "[2,3,2]");
    check_node(xt_unfold(g, x, 1, 3, MAX63), "[2,1,4,3]", "[1,3,9223372036854775807]");
    check_node(xt_unfold(g, x, 0, 0, 1), "[3,3,4,0]", "[0,0,1]");
    check_node(xt_pad(g, x, PAIRS(3, 0, 1, 2, 3, 0, 0), NULL), "[3,8,4]", "[0,1,2,3,0,0]");
    check_node(xt_pad(g, s, 0, NULL, NULL), "[]", "[]");
    check_node(xt_tril(g, x, -1, NULL), "[2,3,4]", "[-1]");
    check_node(xt_triu(g, x, MAX63, NULL), "[2,3,4]", "[4]");
    check_node(xt_triu(g, x, INT64_MIN, NULL), "[2,3,4]", "[-3]");
}
END_TEST

START_TEST(joins_have_numpys_shapes)
{
    xt_node x = in(SHAPE(2, 3)), y = in(SHAPE(2, 1)), s = xt_input(g, NULL, XT_F32, 0, NULL, NULL, 0);
    check_node(xt_concat(g, 1, NODES(x, y, x)), "[2,7]", "[1]");
    check_node(xt_concat(g, -1, NODES(x)), "[2,3]", "[1]");
    check_node(xt_concat(g, 0, NODES(x, x)), "[4,3]", "[0]");
    check_node(xt_stack(g, 0, NODES(x, x, x)), "[3,2,3]", "[0]");
    check_node(xt_stack(g, -1, NODES(x, x)), "[2,3,2]", "[2]");
    check_node(xt_stack(g, 0, NODES(s, s)), "[2]", "[0]");
}
END_TEST

static xt_node index2(xt_node x, struct xt_index a, struct xt_index b)
{
    return xt_index(g, x, 2, (const struct xt_index[]){a, b});
}

static struct xt_index cut(int64_t start, int64_t stop, int64_t step)
{
    return (struct xt_index){XT_SLICE, start, stop, step};
}

/* Every slice of a short axis, against Python's definition: range(*slice.indices(n)). */
START_TEST(slices_take_what_python_takes)
{
    static const int64_t bound[] = {XT_NONE, -MAX63, -9, -6, -5, -4, -1, 0, 1, 3, 4, 5, 6, 9, MAX63};
    static const int64_t steps[] = {1, 2, 3, 5, 7, MAX63, -1, -2, -3, -5, -7, INT64_MIN, -MAX63};
    enum { N_BOUND = sizeof bound / sizeof *bound, N_STEP = sizeof steps / sizeof *steps };
    for (int64_t n = 0; n <= 6; n++) {
        for (int i = 0; i < N_BOUND * N_BOUND * N_STEP; i++) {
            int64_t a = bound[i % N_BOUND], b = bound[i / N_BOUND % N_BOUND],
                    step = steps[i / N_BOUND / N_BOUND];
            int64_t lo = step > 0 ? 0 : -1, hi = step > 0 ? n : n - 1, want = 0, first = 0;
            int64_t start = a == XT_NONE ? (step > 0 ? lo : hi)
                            : a < -n     ? lo
                            : a < 0      ? a + n
                            : a > hi     ? hi
                                         : a;
            int64_t stop = b == XT_NONE ? (step > 0 ? hi : lo)
                           : b < -n     ? lo
                           : b < 0      ? b + n
                           : b > hi     ? hi
                                        : b;
            for (__int128 k = start; step > 0 ? k < stop : k > stop; k += step)
                first = want++ ? first : (int64_t)k;
            struct xt_index item = cut(a, b, step);
            begin();
            xt_node y = xt_index(g, in(&n, 1), 1, &item);
            ck_assert_int_ge(y, 0);
            const struct xti_node *p = &g->node[y];
            ck_assert_msg(p->shape[0] == want && p->attr[1] == first && p->attr[2] == want &&
                              p->attr[3] == (want > 1 ? step : 1),
                          "[%" PRId64 ":%" PRId64 ":%" PRId64 "] of %" PRId64 ": %" PRId64 " from %" PRId64,
                          a, b, step, n, p->attr[2], p->attr[1]);
            end();
        }
    }
}
END_TEST

START_TEST(indexing_resolves_to_one_item_an_axis)
{
    const struct xt_index at = {XT_AT, -1, 0, 0}, dots = {.kind = XT_ELLIPSIS}, fresh = {.kind = XT_NEWAXIS};
    xt_node x = in(SHAPE(5, 6, 7)), s = xt_input(g, NULL, XT_F32, 0, NULL, NULL, 0);
    check_node(index2(x, at, cut(1, XT_NONE, 2)), "[3,7]", "[0,4,1,1,1,1,3,2,1,0,7,1]");
    check_node(index2(x, dots, at), "[5,6]", "[1,0,5,1,1,0,6,1,0,6,1,1]");
    check_node(index2(x, fresh, dots), "[1,5,6,7]", "[3,0,1,1,1,0,5,1,1,0,6,1,1,0,7,1]");
    check_node(index2(x, at, fresh), "[1,6,7]", "[0,4,1,1,3,0,1,1,1,0,6,1,1,0,7,1]");
    check_node(xt_index(g, x, 0, NULL), "[5,6,7]", "[1,0,5,1,1,0,6,1,1,0,7,1]");
    check_node(xt_index(g, s, 1, &dots), "[]", "[]");
    check_node(xt_index(g, s, 1, &fresh), "[1]", "[3,0,1,1]");
    check_node(index2(x, at, cut(4, 2, 1)), "[0,7]", "[0,4,1,1,1,0,0,1,1,0,7,1]");
}
END_TEST

START_TEST(a_fill_value_is_kept_and_null_is_zero_bytes)
{
    const float v = 1.5f;
    static const unsigned char zero[16];
    struct xt_node_info n = {.size = sizeof n};
    xt_node x = in(SHAPE(2, 2));
    xt_node y[] = {xt_pad(g, x, PAIRS(2, 0, 0, 0, 0), &v), xt_tril(g, x, 0, &v), xt_triu(g, x, 0, &v)};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(xt_node_get(g, y[i], &n), XT_OK);
        ck_assert_mem_eq(n.value, &v, sizeof v);
        ck_assert_mem_eq((const char *)n.value + sizeof v, zero, 16 - sizeof v);
    }
    xt_node_get(g, xt_tril(g, x, 0, NULL), &n);
    ck_assert_mem_eq(n.value, zero, 16);
    xt_node_get(g, xt_flip(g, x, 0, NULL), &n);
    ck_assert_ptr_null(n.value);
}
END_TEST

/* ---- layouts */

START_TEST(inputs_are_numbered_and_named_in_order)
{
    static const char *const want[] = {"x", "y", "z", "x3", "x4"};
    struct xt_node_info n = {.size = sizeof n};
    for (int i = 0; i < 5; i++) {
        xt_node x = in(SHAPE(2));
        xt_flip(g, x, 0, NULL);
        xt_node_get(g, xt_input_node(g, i), &n);
        ck_assert_str_eq(n.name, want[i]);
        ck_assert_int_eq(n.input, i);
        ck_assert_int_eq(n.dense, 1);
        ck_assert_int_eq(n.strides[0], 1);
    }
    ck_assert_int_eq(xt_input_count(g), 5);
    ck_assert_int_eq(xt_node_count(g), 10);
    ck_assert_int_eq(xt_input_node(g, 5), -1);
    ck_assert_int_eq(xt_last_error()->status, XT_EINVAL);
    ck_assert_int_eq(xt_input_node(g, -1), -1);
    ck_assert_int_eq(xt_input_count(NULL), 0);
    ck_assert_int_eq(xt_node_count(NULL), 0);
    end();
    begin();
    xt_input(g, "y", XT_U8, 0, NULL, NULL, 0);
    in(SHAPE(2)); /* y is taken */
    in(SHAPE(2));
    xt_node_get(g, 1, &n);
    ck_assert_str_eq(n.name, "x1");
    xt_node_get(g, 2, &n);
    ck_assert_str_eq(n.name, "z");
}
END_TEST

START_TEST(a_layout_is_kept_as_given)
{
    struct xt_node_info n = {.size = sizeof n};
    const int64_t shape[] = {4, 6}, st[] = {-1, 4}, zero[] = {0, 0};
    xt_node_get(g, xt_input(g, "a", XT_F32, 2, shape, st, 3), &n);
    ck_assert_int_eq(n.dense, 0);
    ck_assert_int_eq(n.offset, 3);
    ck_assert_mem_eq(n.strides, st, sizeof st);
    xt_node_get(g, xt_input(g, "b", XT_F32, 2, shape, NULL, 3), &n);
    ck_assert_int_eq(n.dense, 0);
    ck_assert_int_eq(n.strides[0], 6);
    xt_node_get(g, xt_input(g, "c", XT_F32, 2, shape, zero, 0), &n);
    ck_assert_int_eq(n.dense, 0);
    ck_assert_int_eq(xt_graph_status(g), XT_OK);
}
END_TEST

START_TEST(the_span_of_a_box_is_its_lowest_and_highest_address)
{
    int64_t lo, hi, n[] = {3, 4}, st[] = {-10, 2}, none[] = {3, 0};
    ck_assert(xti_span(2, n, st, 20, &lo, &hi) && lo == 0 && hi == 26);
    ck_assert(xti_span(0, NULL, NULL, 7, &lo, &hi) && lo == 7 && hi == 7);
    ck_assert(xti_span(2, none, st, 7, &lo, &hi) && lo == 7 && hi == 6);
    ck_assert(!xti_span(1, n, (const int64_t[]){MAX63}, 0, &lo, &hi));
    ck_assert(!xti_span(1, n, (const int64_t[]){INT64_MIN}, 0, &lo, &hi));
    ck_assert(!xti_span(2, n, (const int64_t[]){1, 1}, MAX63, &lo, &hi));
    ck_assert(xti_span(1, (const int64_t[]){1}, (const int64_t[]){INT64_MIN}, 0, &lo, &hi) && lo == 0 &&
              hi == 0);
}
END_TEST

START_TEST(the_last_output_wins_and_dense_is_filled_in)
{
    struct xt_output_info o = {.size = sizeof o};
    const int64_t st[] = {1, -5};
    xt_node x = in(SHAPE(4, 6));
    ck_assert_int_eq(xt_output_get(g, &o), XT_EINVAL);
    ck_assert_int_eq(o.node, -1);
    ck_assert_int_eq(xt_output(g, x, st, 25), XT_OK);
    ck_assert_int_eq(xt_output_get(g, &o), XT_OK);
    ck_assert(o.node == x && !o.dense && o.offset == 25 && o.strides[1] == -5);
    xt_node y = xt_permute(g, x, AXES(1, 0));
    ck_assert_int_eq(xt_output(g, y, NULL, 0), XT_OK);
    ck_assert_int_eq(xt_output_get(g, &o), XT_OK);
    ck_assert(o.node == y && o.dense && o.offset == 0 && o.strides[0] == 4 && o.strides[1] == 1);
    ck_assert_int_eq(xt_output_get(NULL, &o), XT_EINVAL);
    ck_assert_int_eq(xt_output_get(g, NULL), XT_EINVAL);
}
END_TEST

/* ---- errors */

START_TEST(inputs_that_make_no_sense_are_refused)
{
    const int64_t s33[33] = {0}, n[] = {2, 3}, st[] = {-3, 1};
    check_fails(xt_input(g, NULL, XT_F32, -1, n, NULL, 0), XT_ERANK, "input: op 0: rank -1 is not in [0,32]");
    check_fails(xt_input(g, NULL, XT_F32, 33, s33, NULL, 0), XT_ERANK,
                "input: op 0: rank 33 is not in [0,32]");
    check_fails(xt_input(g, NULL, XT_F32, 1, NULL, NULL, 0), XT_EINVAL, "input: op 0: shape is NULL");
    check_fails(in(SHAPE(2, -1)), XT_EINVAL, "input: op 0: extent -1 of axis 1 is negative");
    check_fails(in(SHAPE(MAX63, 2)), XT_EOVERFLOW,
                "input: op 0: [9223372036854775807,2] has 2^63 elements or more");
    check_fails(xt_input(g, NULL, XT_F32, 2, n, st, 0), XT_ERANGE,
                "input: op 0: element -3 of [2,3]:[-3,1]+0 lies before the buffer's start");
    check_fails(xt_input(g, NULL, XT_F32, 2, n, NULL, -1), XT_ERANGE,
                "input: op 0: element -1 of [2,3]:[3,1]-1 lies before the buffer's start");
    check_fails(xt_input(g, NULL, XT_F32, 2, n, (const int64_t[]){MAX63, 1}, 0), XT_EOVERFLOW,
                "input: op 0: addresses of [2,3]:[9223372036854775807,1]+0 do not fit in 63 bits");
    check_fails(xt_input(g, NULL, XT_F32, 2, n, (const int64_t[]){INT64_MIN, 0}, 0), XT_ERANGE,
                "input: op 0: element -9223372036854775808 of [2,3]:[-9223372036854775808,0]+0 lies before "
                "the buffer's start");
}
END_TEST

START_TEST(names_are_identifiers_that_nothing_else_has)
{
    static const char *const bad[] = {"",       "1x",   "a b",  "a\n", "*/",  "#include",
                                      "concat", "view", "None", "inf", "x-y", "\xc3\xa9"};
    char longest[129];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_fails(
            xt_input(g, bad[i], XT_F32, 0, NULL, NULL, 0), XT_EINVAL,
            "input: op 0: the name is not an identifier of up to 127 letters, or it is an operation's");
    memset(longest, 'a', sizeof longest);
    longest[127] = 0;
    ck_assert_int_eq(xt_input(g, longest, XT_F32, 0, NULL, NULL, 0), 0);
    longest[127] = 'a', longest[128] = 0;
    ck_assert_int_eq(xt_input(g, longest, XT_F32, 0, NULL, NULL, 0), -1);
    end();
    begin();
    xt_input(g, "x", XT_F32, 0, NULL, NULL, 0);
    check_fails(xt_input(g, "x", XT_F32, 0, NULL, NULL, 0), XT_EINVAL, "input: op 1: the name 'x' is taken");
}
END_TEST

/* Each line: a call on x [2,3,4] or what it says, and the whole message. */
START_TEST(every_builder_refuses_what_does_not_fit_and_says_why)
{
#define X                            in(SHAPE(2, 3, 4))
#define FAILS(call, status, message) check_fails(call, status, message)
    FAILS(xt_permute(g, X, AXES(0, 1)), XT_ERANK, "permute: op 1: 2 axes given, [2,3,4] has 3");
    FAILS(xt_permute(g, X, AXES(0, 1, 1)), XT_EINVAL, "permute: op 1: axis 1 is given twice");
    FAILS(xt_permute(g, X, AXES(0, 1, -2)), XT_EINVAL, "permute: op 1: axis -2 is given twice");
    FAILS(xt_permute(g, X, AXES(0, 1, 3)), XT_ERANGE,
          "permute: op 1: there is no axis 3: those of [2,3,4] are -3 to 2");
    FAILS(xt_permute(g, X, AXES(0, 1, -4)), XT_ERANGE,
          "permute: op 1: there is no axis -4: those of [2,3,4] are -3 to 2");
    FAILS(xt_permute(g, X, AXES(0, 1, INT_MIN)), XT_ERANGE,
          "permute: op 1: there is no axis -2147483648: those of [2,3,4] are -3 to 2");
    FAILS(xt_permute(g, X, 3, NULL), XT_EINVAL, "permute: op 1: axes is NULL");
    FAILS(xt_permute(g, X, -1, NULL), XT_EINVAL, "permute: op 1: the number of axes is -1");
    FAILS(xt_transpose(g, X, 0, 3), XT_ERANGE,
          "transpose: op 1: there is no axis 3: those of [2,3,4] are -3 to 2");
    FAILS(xt_reshape(g, X, NUMS(5, 5)), XT_ESHAPE,
          "reshape: op 1: [2,3,4] (24 elements) does not fit [5,5] (25 elements)");
    FAILS(xt_reshape(g, X, NUMS(-1, -1)), XT_ESHAPE,
          "reshape: op 1: [2,3,4] to [-1,-1]: only one extent may be -1");
    FAILS(xt_reshape(g, X, NUMS(-1, 5)), XT_ESHAPE,
          "reshape: op 1: [2,3,4] (24 elements) does not fit [-1,5]: not a multiple of 5");
    FAILS(xt_reshape(g, X, NUMS(-1, 0)), XT_ESHAPE,
          "reshape: op 1: [2,3,4] to [-1,0]: -1 is ambiguous beside an extent of 0");
    FAILS(xt_reshape(g, X, NUMS(-2)), XT_EINVAL, "reshape: op 1: extent -2 of axis 0 is negative");
    FAILS(
        xt_reshape(g, X, NUMS(MAX63, 2)), XT_EOVERFLOW,
        "reshape: op 1: [2,3,4] (24 elements) does not fit [9223372036854775807,2] (2^63 elements or more)");
    FAILS(xt_reshape(g, X, NUMS(MAX63, 2, -1)), XT_EOVERFLOW,
          "reshape: op 1: [2,3,4] to [9223372036854775807,2,-1]: 2^63 elements or more");
    FAILS(xt_reshape(g, X, 33, (const int64_t[33]){0}), XT_ERANK, "reshape: op 1: rank 33 is not in [0,32]");
    FAILS(xt_squeeze(g, X, AXES(1)), XT_ESHAPE, "squeeze: op 1: axis 1 of [2,3,4] has 3 elements, not 1");
    FAILS(xt_unsqueeze(g, X, 4), XT_ERANGE,
          "unsqueeze: op 1: there is no axis 4: those of [2,3,4] are -4 to 3");
    FAILS(xt_unsqueeze(g, X, -5), XT_ERANGE,
          "unsqueeze: op 1: there is no axis -5: those of [2,3,4] are -4 to 3");
    FAILS(xt_unsqueeze(g, xt_reshape(g, in(SHAPE(1)), 32, (const int64_t[32]){[0 ... 31] = 1}), 0), XT_ERANK,
          "unsqueeze: op 2: rank 33 is not in [0,32]");
    FAILS(xt_flip(g, X, AXES(0, -3)), XT_EINVAL, "flip: op 1: axis -3 is given twice");
    FAILS(xt_flip(g, X, AXES(3)), XT_ERANGE, "flip: op 1: there is no axis 3: those of [2,3,4] are -3 to 2");
    FAILS(xt_flip(g, X, AXES(0, 1, 2, 0)), XT_ERANK, "flip: op 1: 4 axes given, [2,3,4] has 3");
    FAILS(xt_expand(g, X, NUMS(2, 3, 5)), XT_ESHAPE,
          "expand: op 1: [2,3,4] does not broadcast to [2,3,5]: axis 2 has 4, not 1");
    FAILS(xt_expand(g, X, NUMS(3, 4)), XT_ERANK, "expand: op 1: [2,3,4] has more axes than [3,4]");
    FAILS(xt_expand(g, X, NUMS(-1, 2, 3, 4)), XT_ESHAPE,
          "expand: op 1: [2,3,4] to [-1,2,3,4]: axis 0 is new, -1 cannot keep it");
    FAILS(xt_expand(g, in(SHAPE(1, 1)), NUMS(MAX63, 2)), XT_EOVERFLOW,
          "expand: op 1: [9223372036854775807,2] has 2^63 elements or more");
    FAILS(xt_tile(g, X, NUMS(1, -1)), XT_EINVAL, "tile: op 1: -1 repetitions of axis 2");
    FAILS(xt_tile(g, X, NUMS(MAX63)), XT_EOVERFLOW,
          "tile: op 1: [2,3,4]: 9223372036854775807 repetitions of axis 2 do not fit in 63 bits");
    FAILS(xt_repeat(g, X, -1, 0), XT_EINVAL, "repeat: op 1: -1 repetitions of axis 0");
    FAILS(xt_repeat(g, X, MAX63, 0), XT_EOVERFLOW,
          "repeat: op 1: [2,3,4]: 9223372036854775807 repetitions of axis 0 do not fit in 63 bits");
    FAILS(xt_repeat(g, X, 1, 3), XT_ERANGE, "repeat: op 1: there is no axis 3: those of [2,3,4] are -3 to 2");
    FAILS(xt_roll(g, X, 1, -4), XT_ERANGE, "roll: op 1: there is no axis -4: those of [2,3,4] are -3 to 2");
    FAILS(xt_roll(g, in(NULL, 0), 1, 0), XT_ERANGE, "roll: op 1: there is no axis 0: [] has none");
    FAILS(xt_diagonal(g, in(SHAPE(3)), 0, 0, 1), XT_ERANK, "diagonal: op 1: [3] has fewer than 2 axes");
    FAILS(xt_diagonal(g, X, 0, 1, -2), XT_EINVAL, "diagonal: op 1: axis 1 is given twice");
    FAILS(xt_diagonal(g, X, 0, 0, 3), XT_ERANGE,
          "diagonal: op 1: there is no axis 3: those of [2,3,4] are -3 to 2");
    FAILS(xt_unfold(g, X, 0, 3, 1), XT_ESHAPE,
          "unfold: op 1: axis 0 of [2,3,4] is shorter than a window of [3]");
    FAILS(xt_unfold(g, X, 0, -1, 1), XT_EINVAL, "unfold: op 1: size -1 must be 0 or more, step 1 1 or more");
    FAILS(xt_unfold(g, X, 0, 1, 0), XT_EINVAL, "unfold: op 1: size 1 must be 0 or more, step 0 1 or more");
    FAILS(xt_pad(g, X, PAIRS(2, 0, 0, 0, 0), NULL), XT_ERANK, "pad: op 1: 2 pairs given, [2,3,4] has 3 axes");
    FAILS(xt_pad(g, X, PAIRS(3, 0, 0, 0, -1, 0, 0), NULL), XT_EINVAL,
          "pad: op 1: (0,-1) on axis 1 of [2,3,4] is negative");
    FAILS(xt_pad(g, X, PAIRS(3, 0, 0, MAX63, MAX63, 0, 0), NULL), XT_EOVERFLOW,
          "pad: op 1: (9223372036854775807,9223372036854775807) on axis 1 of [2,3,4]: more than 63 bits");
    FAILS(xt_pad(g, X, PAIRS(3, 0, 0, MAX63 - 3, 0, 0, 0), NULL), XT_EOVERFLOW,
          "pad: op 1: [2,9223372036854775807,4] has 2^63 elements or more");
    FAILS(xt_pad(g, X, 3, NULL, NULL), XT_EINVAL, "pad: op 1: pairs is NULL");
    FAILS(xt_tril(g, in(SHAPE(3)), 0, NULL), XT_ERANK, "tril: op 1: [3] has fewer than 2 axes");
    FAILS(xt_triu(g, in(SHAPE(3)), 0, NULL), XT_ERANK, "triu: op 1: [3] has fewer than 2 axes");
    FAILS(xt_concat(g, 0, 0, NULL), XT_EINVAL, "concat: op 0: 0 operands");
    FAILS(xt_concat(g, 0, 2, NULL), XT_EINVAL, "concat: op 0: 2 operands, and the list is NULL");
    FAILS(xt_concat(g, 0, -1, NULL), XT_EINVAL, "concat: op 0: -1 operands");
    FAILS(xt_concat(g, 0, INT_MAX, (const xt_node[]){0}), XT_EUNSUPPORTED,
          "concat: op 0: 2147483647 operands");
    FAILS(xt_concat(g, 0, NODES(X, in(SHAPE(3, 4)))), XT_ERANK,
          "concat: op 2: y [3,4] and x [2,3,4] differ in rank");
    FAILS(xt_concat(g, 0, NODES(X, X, in(SHAPE(2, 3, 5)))), XT_ESHAPE,
          "concat: op 3: z [2,3,5] and x [2,3,4] differ on axis 2: only axis 0 may");
    FAILS(xt_concat(g, 0, NODES(X, xt_input(g, NULL, XT_I32, NUMS(2, 3, 4), NULL, 0))), XT_EDTYPE,
          "concat: op 2: y is i32 and x is f32: xt does not convert");
    FAILS(xt_concat(g, 0, NODES(xt_flip(g, X, 0, NULL), xt_input(g, NULL, XT_I32, NUMS(2, 3, 4), NULL, 0))),
          XT_EDTYPE, "concat: op 3: y is i32 and operand 0 is f32: xt does not convert");
    FAILS(xt_concat(g, 0, NODES(X, xt_flip(g, in(SHAPE(3, 4)), 0, NULL))), XT_ERANK,
          "concat: op 3: operand 1 [3,4] and x [2,3,4] differ in rank");
    FAILS(xt_concat(g, 3, NODES(X)), XT_ERANGE,
          "concat: op 1: there is no axis 3: those of [2,3,4] are -3 to 2");
    FAILS(xt_concat(g, 0, NODES(in(NULL, 0))), XT_ERANGE, "concat: op 1: there is no axis 0: [] has none");
    FAILS(xt_concat(g, 0, NODES(in(SHAPE(MAX63)), 0)), XT_EOVERFLOW,
          "concat: op 1: with operand 1 [9223372036854775807] axis 0 needs more than 63 bits");
    FAILS(xt_stack(g, 0, NODES(X, in(SHAPE(2, 3, 5)))), XT_ESHAPE,
          "stack: op 2: y [2,3,5] and x [2,3,4] differ on axis 2");
    FAILS(xt_stack(g, 4, NODES(X)), XT_ERANGE,
          "stack: op 1: there is no axis 4: those of [2,3,4] are -4 to 3");
#undef FAILS
}
END_TEST

START_TEST(indexing_refuses_what_does_not_fit_and_says_why)
{
    const struct xt_index dots = {.kind = XT_ELLIPSIS}, all = {XT_SLICE, XT_NONE, XT_NONE, 1};
    struct xt_index many[70];
    check_fails(index2(X, dots, dots), XT_EINVAL, "index: op 1: more than one '...'");
    check_fails(index2(X, all, (struct xt_index){XT_AT, 3, 0, 0}), XT_ERANGE,
                "index: op 1: 3 is outside axis 1 of [2,3,4]");
    check_fails(index2(X, all, (struct xt_index){XT_AT, -4, 0, 0}), XT_ERANGE,
                "index: op 1: -4 is outside axis 1 of [2,3,4]");
    check_fails(index2(X, all, (struct xt_index){XT_AT, XT_NONE, 0, 0}), XT_ERANGE,
                "index: op 1: -9223372036854775808 is outside axis 1 of [2,3,4]");
    check_fails(index2(X, all, (struct xt_index){XT_SLICE, 0, 0, 0}), XT_EINVAL,
                "index: op 1: item 1: a slice's step cannot be 0");
    check_fails(index2(X, all, (struct xt_index){(enum xt_index_kind)7, 0, 0, 0}), XT_EINVAL,
                "index: op 1: item 1: 7 is not a kind");
    check_fails(index2(in(SHAPE(3)), all, all), XT_ERANK, "index: op 1: 2 axes indexed, [3] has 1");
    check_fails(xt_index(g, X, 1, NULL), XT_EINVAL, "index: op 1: items is NULL");
    for (int i = 0; i < 70; i++)
        many[i] = (struct xt_index){.kind = XT_NEWAXIS};
    check_fails(xt_index(g, X, 65, many), XT_ERANK, "index: op 1: rank 65 is not in [0,32]");
    check_fails(xt_index(g, X, 30, many), XT_ERANK, "index: op 1: rank 33 is not in [0,32]");
#undef X
}
END_TEST

/* Of lists that are longer than any shape can want nothing is read: here there is nothing. */
START_TEST(of_items_beyond_reason_none_is_read)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    check_fails(xt_index(g, in(SHAPE(3)), INT_MAX, (const void *)p), XT_ERANK,
                "index: op 1: 2147483647 items are more than axes can have");
    check_fails(xt_index(g, in(SHAPE(3)), 66, (const void *)p), XT_ERANK,
                "index: op 1: 66 items are more than axes can have");
    check_fails(xt_rearrange(g, in(SHAPE(3)), "a -> a", 33, (const void *)p, (const void *)p), XT_ERANK,
                "rearrange: op 1: 33 lengths are more than axes can have");
    munmap(p, page);
}
END_TEST

START_TEST(outputs_that_make_no_sense_are_refused)
{
    const int64_t zero[] = {0, 1}, down[] = {3, -1};
    static const struct xt_error *e;
    e = xt_last_error();
    ck_assert_int_eq(xt_output(g, in(SHAPE(2, 3)), zero, 0), XT_EALIAS);
    ck_assert_str_eq(e->message, "output: op 1: stride 0 on axis 0: 2 elements share one address");
    end(), begin();
    ck_assert_int_eq(xt_output(g, in(SHAPE(2, 3)), down, 1), XT_ERANGE);
    ck_assert_str_eq(e->message, "output: op 1: element -1 of [2,3]:[3,-1]+1 lies before the buffer's start");
    ck_assert_int_eq(xt_graph_status(g), XT_ERANGE);
    end(), begin();
    ck_assert_int_eq(xt_output(g, in(SHAPE(2, 3)), (const int64_t[]){MAX63, 1}, 0), XT_EOVERFLOW);
    end(), begin();
    ck_assert_int_eq(xt_output(g, in(SHAPE(0, 3)), (const int64_t[]){MAX63, 0}, 0), XT_OK);
    ck_assert_int_eq(xt_output(g, in(SHAPE(1, 3)), (const int64_t[]){0, 1}, 0), XT_OK);
    ck_assert_int_eq(xt_output(g, 7, NULL, 0), XT_EINVAL);
    ck_assert_int_eq(xt_output(NULL, 0, NULL, 0), XT_EINVAL);
}
END_TEST

START_TEST(the_first_error_stays_and_later_builders_do_nothing)
{
    xt_node x = in(SHAPE(2, 3));
    xt_node bad = xt_reshape(g, x, NUMS(7));
    int count = xt_node_count(g);
    ck_assert_int_eq(xt_flip(g, x, 0, NULL), -1);
    ck_assert_int_eq(xt_last_error()->status, XT_ESHAPE);
    ck_assert_int_eq(xt_permute(g, bad, AXES(5)), -1);
    ck_assert_int_eq(in(SHAPE(1)), -1);
    ck_assert_int_eq(xt_concat(g, 0, NODES(x, bad)), -1);
    ck_assert_int_eq(xt_concat(g, 0, 0, NULL), -1);
    ck_assert_int_eq(xt_index(g, x, 0, NULL), -1);
    ck_assert_int_eq(xt_output(g, x, NULL, 0), XT_ESHAPE);
    ck_assert_int_eq(xt_node_count(g), count);
    ck_assert_int_eq(xt_graph_status(g), XT_ESHAPE);
    ck_assert_str_eq(xt_last_error()->message,
                     "reshape: op 1: [2,3] (6 elements) does not fit [7] (7 elements)");
    ck_assert_int_eq(xt_last_error()->op, 1);
}
END_TEST

START_TEST(joins_of_a_graph_that_failed_or_is_null_read_no_operand)
{
    static const int counts[] = {INT_MIN, -1, 0, 1, 2, INT_MAX};
    xt_node none = 0;
    xt_flip(g, in(SHAPE(4)), 0, NULL);
    ck_assert_int_eq(xt_flip(g, 7, 0, NULL), -1);
    for (int i = 0; i < (int)(sizeof counts / sizeof *counts); i++)
        for (int healthy = 0; healthy < 2; healthy++) {
            const xt_node *xs = healthy ? &none : NULL;
            ck_assert_int_eq(xt_concat(g, 0, counts[i], xs), -1);
            ck_assert_str_eq(xt_last_error()->message, "flip: op 2: node 7 is not one of this graph's 2");
            ck_assert_int_eq(xt_stack(NULL, 0, counts[i], xs), -1);
            ck_assert_str_eq(xt_last_error()->message, "stack: graph is NULL");
        }
}
END_TEST

START_TEST(a_status_that_is_none_has_a_name_too)
{
    static const int none[] = {1, INT_MAX, INT_MIN, -1000, XT_ESTOPPED - 1};
    for (int i = 0; i < (int)(sizeof none / sizeof *none); i++)
        ck_assert_str_eq(xt_status_name((xt_status)none[i]), "unknown status");
    ck_assert_str_eq(xt_status_name(XT_EINTERNAL), "XT_EINTERNAL");
}
END_TEST

START_TEST(rearrange_makes_the_nodes_that_change_something_and_names_its_pattern)
{
    static const char *const heads[] = {"h"}, *const none[] = {NULL};
    begin();
    xt_node x = in(SHAPE(2, 5, 12)), y = xt_rearrange(g, x, "b s (h d) -> b h s d", 1, heads, (int64_t[]){3});
    check_node(y, "[2,3,5,4]", "[0,2,1,3]");
    check_node(xt_rearrange(g, x, "b s c -> (b s) c", 0, NULL, NULL), "[10,12]", "[10,12]");
    ck_assert_int_eq(xt_rearrange(g, x, "a b c -> a b c", 0, NULL, NULL), x);
    check_node(xt_rearrange(g, x, "... -> 2 ...", 0, NULL, NULL), "[2,2,5,12]", "[2,2,5,12]");
    check_fails(
        xt_rearrange(g, x, "b s (h d) -> b h s d", 1, heads, (int64_t[]){5}), XT_ESHAPE,
        "rearrange: op 6: 'b s (h d) -> b h s d' of [2,5,12] with h=5: axis 2 of 12 elements is not a "
        "multiple of 5");
    x = in(SHAPE(6));
    check_fails(xt_rearrange(g, x, NULL, 0, NULL, NULL), XT_EINVAL, "rearrange: op 1: an argument is NULL");
    x = in(SHAPE(6));
    check_fails(xt_rearrange(g, x, "a -> a", 1, NULL, NULL), XT_EINVAL,
                "rearrange: op 1: an argument is NULL");
    x = in(SHAPE(6));
    check_fails(xt_rearrange(g, x, "a -> a", 1, none, (int64_t[]){1}), XT_EINVAL,
                "rearrange: op 1: an argument is NULL");
    x = in(SHAPE(6));
    check_fails(xt_rearrange(g, x, "a -> a", -1, heads, (int64_t[]){1}), XT_EINVAL,
                "rearrange: op 1: n is negative");
    ck_assert_int_eq(xt_rearrange(NULL, 0, "a -> a", 0, NULL, NULL), -1);
    end();
}
END_TEST

/* A pattern of many axes, as text. */
static void repeat_axes(char *to, const char *before, int n, const char *after)
{
    to += sprintf(to, "%s", before);
    for (int i = 0; i < n; i++)
        to += sprintf(to, "a%d ", i);
    sprintf(to, "%s", after);
}

START_TEST(patterns_of_more_than_32_axes_are_refused)
{
    char text[1024];
    for (int n = 31; n <= 34; n++) {
        begin();
        const char *names[40];
        static char name[40][8];
        int64_t lengths[40];
        for (int i = 0; i < n; i++) {
            sprintf(name[i], "a%d", i);
            names[i] = name[i];
            lengths[i] = 1 + i % 2;
        }
        repeat_axes(text, "1 -> ", n, "");
        xt_node x = in(SHAPE(1)), y = xt_rearrange(g, x, text, n, names, lengths);
        ck_assert_int_eq(y >= 0, n <= XT_MAX_RANK);
        if (y < 0)
            ck_assert_int_eq(xt_last_error()->status, XT_ERANK);
        end();
        begin();
        repeat_axes(text, "1 -> (", n, ")");
        y = xt_rearrange(g, in(SHAPE(1)), text, n, names, lengths);
        ck_assert_int_eq(y >= 0, n <= XT_MAX_RANK);
        end();
    }
}
END_TEST

START_TEST(null_graphs_and_foreign_nodes_are_refused)
{
    struct xt_node_info n = {.size = sizeof n};
    ck_assert_int_eq(xt_graph_new(NULL), XT_EINVAL);
    ck_assert_int_eq(xt_graph_status(NULL), XT_EINVAL);
    ck_assert_int_eq(xt_input(NULL, NULL, XT_F32, 0, NULL, NULL, 0), -1);
    ck_assert_int_eq(xt_last_error()->status, XT_EINVAL);
    ck_assert_str_eq(xt_last_error()->message, "input: graph is NULL");
    ck_assert_int_eq(xt_flip(NULL, 0, 0, NULL), -1);
    ck_assert_int_eq(xt_concat(NULL, 0, NODES(0, 1)), -1);
    ck_assert_int_eq(xt_last_error()->status, XT_EINVAL);
    ck_assert_int_eq(xt_node_get(NULL, 0, &n), XT_EINVAL);
    ck_assert_int_eq(xt_node_get(g, 0, &n), XT_EINVAL);
    ck_assert_int_eq(n.input, -1);
    ck_assert_int_eq(xt_node_get(g, 0, NULL), XT_EINVAL);
    xt_graph_free(NULL);
    in(SHAPE(2));
    check_fails(xt_flip(g, 1, 0, NULL), XT_EINVAL, "flip: op 1: node 1 is not one of this graph's 1");
    in(SHAPE(2));
    check_fails(xt_flip(g, -1, 0, NULL), XT_EINVAL, "flip: op 1: node -1 is not one of this graph's 1");
    in(SHAPE(2));
    check_fails(xt_concat(g, 0, NODES(0, 9)), XT_EINVAL, "concat: op 1: node 9 is not one of this graph's 1");
}
END_TEST

START_TEST(a_hundred_thousand_operations_are_refused_in_bounded_memory)
{
    xt_node x = in(SHAPE(2, 3));
    for (int i = 0; i < 100000; i++)
        x = xt_flip(g, x, 0, NULL);
    ck_assert_int_eq(xt_node_count(g), XTI_MAX_NODES);
    ck_assert_int_eq(xt_graph_status(g), XT_EUNSUPPORTED);
    ck_assert_str_eq(xt_last_error()->message, "flip: op 4096: a graph has at most 4096 nodes");
}
END_TEST

/* Builds a random graph with the n-th allocation failing, for every n until none fails. */
START_TEST(every_allocation_of_a_builder_that_fails_is_reported_and_leaks_nothing)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        bool finished = false;
        for (int n = 1; !finished; n++) {
            int64_t live = xti_live_allocations();
            xti_fail_alloc(n, 0);
            struct xt_graph *r = random_graph(seed, NULL);
            xti_fail_alloc(0, 0);
            finished = r != NULL;
            ck_assert_msg(r || xt_last_error()->status == XT_ENOMEM, "seed %" PRIu64 ", allocation %d: %s",
                          seed, n, xt_last_error()->message);
            xt_graph_free(r);
            ck_assert_int_eq(xti_live_allocations(), live);
        }
    }
}
END_TEST

START_TEST(a_random_graph_depends_on_its_seed_alone)
{
    char first[8192];
    int differ = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct xt_graph *a = random_graph(seed, NULL), *b = random_graph(seed, NULL),
                        *c = random_graph(seed + 1, NULL);
        strcpy(first, graph_text(a));
        ck_assert_str_eq(first, graph_text(b));
        differ += strcmp(first, graph_text(c)) != 0;
        xt_graph_free(a);
        xt_graph_free(b);
        xt_graph_free(c);
    }
    ck_assert_int_gt(differ, 45);
}
END_TEST

START_TEST(a_random_graph_keeps_to_its_options)
{
    const struct random_graph_options opt = {.max_numel = 100,
                                             .max_ops = 20,
                                             .dtype = XT_U16,
                                             .no_ops = 1u << XT_OP_PAD,
                                             .dense_inputs = true,
                                             .dense_output = true,
                                             .no_empty = true};
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct xt_graph *r = random_graph(seed, &opt);
        ck_assert_msg(r != NULL, "seed %" PRIu64 ": %s", seed, xt_last_error()->message);
        ck_assert(r->out_dense);
        for (xt_node x = 0; x < xt_node_count(r); x++) {
            struct xt_node_info n = {.size = sizeof n};
            xt_node_get(r, x, &n);
            ck_assert_int_ne(n.op, XT_OP_PAD);
            ck_assert_int_eq(n.dtype, XT_U16);
            ck_assert(n.op != XT_OP_INPUT || n.dense);
        }
        int64_t numel = 1;
        for (int i = 0; i < r->node[r->out].rank; i++)
            numel *= r->node[r->out].shape[i];
        ck_assert_msg(numel > 0 && numel <= 100, "%s", graph_text(r));
        xt_graph_free(r);
    }
}
END_TEST

START_TEST(every_operation_has_a_row_with_a_name)
{
    for (int op = XT_OP_INPUT; op <= XT_OP_STACK; op++) {
        const struct xti_op_info *info = xti_op_info((enum xt_op)op);
        ck_assert_ptr_nonnull(info->name);
        ck_assert_ptr_nonnull(info->aliases);
        ck_assert_int_eq(xti_name_ok(info->name, strlen(info->name)), op == XT_OP_INPUT || op == XT_OP_INDEX);
    }
    ck_assert(xti_name_ok("x", 1) && xti_name_ok("_a9", 3) && !xti_name_ok("", 0) && !xti_name_ok("9", 1));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("graph");
    TCase *plain = tcase_create("without a graph"), *t = tcase_create("with a graph");
    tcase_set_timeout(plain, 60);
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(plain, every_dtype_has_a_name_and_a_width);
    tcase_add_test(plain, unknown_dtypes_are_refused);
    tcase_add_test(plain, slices_take_what_python_takes);
    tcase_add_test(plain, every_allocation_of_a_builder_that_fails_is_reported_and_leaks_nothing);
    tcase_add_test(plain, a_random_graph_depends_on_its_seed_alone);
    tcase_add_test(plain, a_random_graph_keeps_to_its_options);
    tcase_add_test(plain, every_operation_has_a_row_with_a_name);
    tcase_add_test(t, views_have_numpys_shapes_and_resolved_axes);
    tcase_add_test(t, empty_tensors_are_ordinary);
    tcase_add_test(t, resizing_operations_have_numpys_shapes);
    tcase_add_test(t, joins_have_numpys_shapes);
    tcase_add_test(t, indexing_resolves_to_one_item_an_axis);
    tcase_add_test(t, a_fill_value_is_kept_and_null_is_zero_bytes);
    tcase_add_test(t, inputs_are_numbered_and_named_in_order);
    tcase_add_test(t, a_layout_is_kept_as_given);
    tcase_add_test(t, the_span_of_a_box_is_its_lowest_and_highest_address);
    tcase_add_test(t, the_last_output_wins_and_dense_is_filled_in);
    tcase_add_test(t, inputs_that_make_no_sense_are_refused);
    tcase_add_test(t, names_are_identifiers_that_nothing_else_has);
    tcase_add_test(t, every_builder_refuses_what_does_not_fit_and_says_why);
    tcase_add_test(t, indexing_refuses_what_does_not_fit_and_says_why);
    tcase_add_test(t, of_items_beyond_reason_none_is_read);
    tcase_add_test(t, outputs_that_make_no_sense_are_refused);
    tcase_add_test(t, the_first_error_stays_and_later_builders_do_nothing);
    tcase_add_test(t, joins_of_a_graph_that_failed_or_is_null_read_no_operand);
    tcase_add_test(t, a_status_that_is_none_has_a_name_too);
    tcase_add_test(t, rearrange_makes_the_nodes_that_change_something_and_names_its_pattern);
    tcase_add_test(t, patterns_of_more_than_32_axes_are_refused);
    tcase_add_test(t, null_graphs_and_foreign_nodes_are_refused);
    tcase_add_test(t, a_hundred_thousand_operations_are_refused_in_bounded_memory);
    suite_add_tcase(s, plain);
    suite_add_tcase(s, t);
    return run_suite(s);
}
