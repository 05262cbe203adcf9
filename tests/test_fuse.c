/* test_fuse.c: the fuser at its limits: huge extents, hundreds of inputs, deep graphs, failing allocations;
 * and that xti_map_check sees a broken map. */
#include "map/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "map/work.h"
#include "tests/support/map_of.h"

enum { MANY = 300 };

static struct xt_graph *new_graph(void)
{
    struct xt_graph *g;
    ck_assert_int_eq(xt_graph_new(&g), XT_OK);
    return g;
}

static xt_node input(struct xt_graph *g, int rank, const int64_t *shape)
{
    return xt_input(g, NULL, XT_I32, rank, shape, NULL, 0);
}

static xt_node reshape2(struct xt_graph *g, xt_node x, int64_t a, int64_t b)
{
    return xt_reshape(g, x, 2, (int64_t[]){a, b});
}

/* Fuses x as the dense output. */
static void fuse_output(struct xt_graph *g, xt_node x, struct xti_map *m)
{
    ck_assert_msg(xt_output(g, x, NULL, 0) == XT_OK, "%s", xt_last_error()->message);
    fuse(g, m);
}

static void *filled_input(const struct xt_graph *g, int i)
{
    const struct xti_node *n = &g->node[g->input[i]];
    int64_t count = 1;
    for (int k = 0; k < n->rank; k++)
        count *= n->shape[k];
    int32_t *v = malloc((size_t)(count + 1) * sizeof *v);
    for (int64_t k = 0; k < count; k++)
        v[k] = (int32_t)(k * 1000 + i);
    return v;
}

/* Fusing g is refused at a node, of no axis, with these words. Frees it. */
static void refused(struct xt_graph *g, xt_status want, const char *words)
{
    struct xti_map m;
    struct xti_err err = {0};
    ck_assert_int_eq(xti_map_fuse(g, NULL, &m, &err), want);
    ck_assert_msg(strstr(err.e.message, words) && err.e.op >= 0 && err.e.axis == -1, "op %d, axis %d: %s",
                  err.e.op, err.e.axis, err.e.message);
    ck_assert_ptr_null(m.piece);
    xt_graph_free(g);
}

/* The map copies what the chain does step by step. Frees both. */
static void same_as_steps(struct xt_graph *g, struct xti_map *m)
{
    void **src = calloc((size_t)g->n_inputs, sizeof *src);
    struct xti_err err = {0};
    size_t bytes = (size_t)(m->dst_hi + 2) * 4;
    unsigned char *want = malloc(bytes), *got = malloc(bytes);
    for (int i = 0; i < g->n_inputs; i++)
        src[i] = filled_input(g, i);
    memset(want, 0x5a, bytes);
    memset(got, 0x5a, bytes);
    ck_assert_int_eq(xti_graph_eval(g, want, (const void *const *)src, &err), XT_OK);
    xti_map_eval(m, got, (const void *const *)src);
    ck_assert_msg(!memcmp(want, got, bytes), "%s", graph_text(g));
    for (int i = 0; i < g->n_inputs; i++)
        free(src[i]);
    free(src);
    free(want);
    free(got);
    xti_map_free(m);
    xt_graph_free(g);
}

/* ---- parts used again */

/* A part joined with itself again and again is one broadcast or tiled axis, however long the result. */
START_TEST(a_part_joined_with_itself_stays_one_piece)
{
    static const int64_t extents[] = {1, 2, 3, 5};
    struct xt_graph *g = new_graph();
    struct xti_map m;
    xt_node x = input(g, 2, (int64_t[]){3, extents[_i % 4]});
    for (int i = 0; i < 40; i++)
        x = xt_concat(g, _i / 4 % 2, 2, (xt_node[]){x, x});
    fuse_output(g, x, &m);
    ck_assert_int_eq(m.n_pieces, 1);
    ck_assert_int_eq(m.piece[0].n_divs, 0);
    xti_map_free(&m);
    xt_graph_free(g);
}
END_TEST

START_TEST(a_run_of_equal_operands_is_read_at_the_right_place)
{
    static const char *const line[] = {
        "x: i32[5]; concat(0,x,x,x)[1:]",
        "x: i32[5]; concat(0,x,x,x)[::-2]",
        "x: i32[5,3]; concat(1,x[:,0:0],x,x,x,x[:,0:0],x)[1:,2:]",
        "x: i32[2,3]; y: i32[1,3]; concat(0,y,x,x,y,y,y,x)[1:-1].T",
        "x: i32[4]; a = concat(0,x,x,x).roll(5,0); concat(0,a,a)[3:20].reshape(17,1)",
        "x: i32[2,2]; a = concat(1,x,x); b = concat(0,a,a,a).tril(); stack(0,b,b,b).pad((0,0),(1,1),(2,0))",
    };
    struct xti_map m;
    struct xt_graph *g = parse_line(line[_i]);
    fuse(g, &m);
    same_as_steps(g, &m);
}
END_TEST

/* post: xt_compile of a chain that doubles by more pieces than a map has fails soon, with the reason. */
START_TEST(a_chain_of_countless_pieces_is_refused)
{
    struct xt_graph *g = new_graph();
    xt_node x = input(g, 1, (int64_t[]){2});
    for (int i = 0; i < 60; i++)
        x = xt_concat(g, 0, 2, (xt_node[]){x, xt_flip(g, x, 0, NULL)});
    ck_assert_int_eq(xt_output(g, x, NULL, 0), XT_OK);
    refused(g, XT_EUNSUPPORTED, "million steps");
}
END_TEST

/* ---- sizes */

static const struct huge {
    const char *text;
    enum xti_class class;
    int n_dims;
    int64_t soff, dim[3][3];
} huge[] = {
    {"x: f32[8589934592]; x", XTI_MEMCPY, 1, 0, {{8589934592, 1, 1}}},
    {"x: f32[65536,65536]; x.permute(1,0)", XTI_AFFINE, 2, 0, {{65536, 1, 65536}, {65536, 65536, 1}}},
    {"x: f32[2147483649]; x.flip(0)", XTI_AFFINE, 1, 2147483648, {{2147483649, -1, 1}}},
    {"x: f32[1]; x.expand(1099511627776)", XTI_AFFINE, 1, 0, {{1099511627776, 0, 1}}},
    {"x: f32[3,2]:[2147483648,1]; x", XTI_AFFINE, 2, 0, {{3, 2147483648, 2}, {2, 1, 1}}},
    {"x: u8[1099511627776]; x.reshape(1048576,1048576).permute(1,0).reshape(1099511627776)"
     ".expand(1048576,1099511627776)",
     XTI_AFFINE,
     3,
     0,
     {{1048576, 0, 1099511627776}, {1048576, 1, 1048576}, {1048576, 1048576, 1}}},
    {"x: f32[65537,65537]; x.reshape(4295098369)", XTI_MEMCPY, 1, 0, {{4295098369, 1, 1}}},
};

START_TEST(huge_extents_and_strides_fuse_exactly)
{
    struct xti_map m;
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        const struct huge *h = &huge[i];
        map_of(h->text, &m);
        ck_assert_msg(xti_map_class(&m) == h->class && m.n_pieces == 1, "%s", h->text);
        ck_assert_msg(m.piece->n_dims == h->n_dims && m.piece->soff == h->soff, "%s", h->text);
        for (int k = 0; k < h->n_dims; k++)
            ck_assert_msg(m.piece->dim[k].n == h->dim[k][0] && m.piece->dim[k].s == h->dim[k][1] &&
                              m.piece->dim[k].d == h->dim[k][2],
                          "%s: dim %d", h->text, k);
        xti_map_free(&m);
    }
}
END_TEST

START_TEST(rank_32_tiles_permutes_and_reshapes)
{
    int64_t shape[XT_MAX_RANK], reps[XT_MAX_RANK];
    int axes[XT_MAX_RANK];
    struct xt_graph *g = new_graph();
    struct xti_map m;
    for (int i = 0; i < XT_MAX_RANK; i++) {
        shape[i] = i % 4 == 1 ? 2 : 1;
        reps[i] = i % 8 == 1 ? 2 : 1;
        axes[i] = (i * 5 + 3) % XT_MAX_RANK;
    }
    xt_node x = xt_tile(g, input(g, XT_MAX_RANK, shape), XT_MAX_RANK, reps);
    fuse_output(g, reshape2(g, xt_permute(g, x, XT_MAX_RANK, axes), 8, 512), &m);
    ck_assert_int_eq(m.n_pieces, 1);
    ck_assert(xti_piece_affine(m.piece));
    same_as_steps(g, &m);
}
END_TEST

START_TEST(a_number_beyond_64_bits_is_an_overflow_not_a_wrong_map)
{
    struct xti_map m;
    /* what a merged stride would be does not fit: the strides stay apart */
    map_of("x: u8[2,2]:[4611686018427387903,4611686018427387903]; x.T.reshape(4)", &m);
    ck_assert_int_eq(m.src_hi[0], INT64_MAX / 2 * 2);
    xti_map_free(&m);
    refused(parse_line("x: u8[3]:[4000000000000000000]; x.repeat(3,0).reshape(3,3).T.reshape(9).tile(2)"),
            XT_EOVERFLOW, "does not fit in 64 bits");
}
END_TEST

/* ---- many pieces */

START_TEST(a_concat_of_hundreds_of_inputs_is_that_many_pieces)
{
    static xt_node in[MANY];
    struct xt_graph *g = new_graph();
    struct xti_map m;
    for (int i = 0; i < MANY; i++)
        in[i] = input(g, 2, (int64_t[]){6, 1 + i % 5});
    fuse_output(g, xt_concat(g, 1, MANY, in), &m);
    ck_assert_int_eq(m.n_pieces, MANY);
    same_as_steps(g, &m);
}
END_TEST

START_TEST(hundreds_of_slices_put_together_again_are_a_memcpy)
{
    static xt_node in[MANY];
    struct xt_graph *g = new_graph();
    struct xti_map m;
    xt_node x = input(g, 2, (int64_t[]){7, MANY});
    for (int i = 0; i < MANY; i++)
        in[i] =
            xt_index(g, x, 2, (struct xt_index[]){{XT_SLICE, XT_NONE, XT_NONE, 1}, {XT_SLICE, i, i + 1, 1}});
    fuse_output(g, xt_concat(g, 1, MANY, in), &m);
    ck_assert_int_eq(xti_map_class(&m), XTI_MEMCPY);
    same_as_steps(g, &m);
}
END_TEST

START_TEST(a_doubled_concat_of_more_pieces_than_fit_is_merged_on_the_way)
{
    struct xt_graph *g = new_graph();
    struct xti_map m;
    xt_node x = input(g, 1, (int64_t[]){3});
    for (int i = 0; i < 13; i++)
        x = xt_concat(g, 0, 2, (xt_node[]){x, x});
    fuse_output(g, x, &m);
    ck_assert_int_eq(m.n_pieces, 1);
    ck_assert_int_eq(m.piece->n_dims, 2);
    same_as_steps(g, &m);
}
END_TEST

/* There and back: 2^13 pieces that are one. */
START_TEST(a_full_list_of_pieces_is_merged)
{
    struct xt_graph *g = new_graph();
    struct xti_map m;
    int64_t shape[13];
    for (int i = 0; i < 13; i++)
        shape[i] = 3;
    xt_node x = input(g, 13, shape);
    for (int i = 0; i < 26; i++)
        x = xt_roll(g, x, i < 13 ? 1 : -1, i % 13);
    fuse_output(g, x, &m);
    ck_assert_int_eq(m.n_pieces, 1);
    ck_assert_int_eq(xti_map_class(&m), XTI_MEMCPY);
    xti_map_free(&m);
    xt_graph_free(g);
}
END_TEST

START_TEST(more_pieces_than_the_limit_are_refused)
{
    struct xt_graph *g = new_graph();
    xt_node x = input(g, 1, (int64_t[]){3});
    for (int i = 0; i < 2500; i++)
        x = xt_pad(g, x, 1, (int64_t[]){1, 1}, &i);
    ck_assert_int_eq(xt_output(g, x, NULL, 0), XT_OK);
    refused(g, XT_EUNSUPPORTED, "4096");
}
END_TEST

START_TEST(rolls_pads_and_triangles_on_top_of_each_other_stay_right)
{
    for (int n = 1; n < 16; n++) {
        struct xt_graph *g = new_graph();
        struct xti_map m;
        xt_node x = input(g, 2, (int64_t[]){11, 9});
        for (int i = 0; i < n; i++) {
            x = xt_roll(g, x, 1 + i % 3, i % 2);
            x = i % 3 ? xt_pad(g, x, 2, (int64_t[]){i % 2, 1, 0, 1}, &i) : xt_tril(g, x, 5 - i, &i);
        }
        fuse_output(g, x, &m);
        same_as_steps(g, &m);
    }
}
END_TEST

/* ---- deep graphs */

START_TEST(thousands_of_nodes_that_cancel_are_a_memcpy)
{
    struct xt_graph *g = new_graph();
    struct xti_map m;
    xt_node x = input(g, 2, (int64_t[]){4, 6});
    for (int i = 0; i < 600; i++) {
        x = reshape2(g, xt_transpose(g, x, 0, 1), 8, 3);
        x = xt_transpose(g, xt_transpose(g, x, 0, 1), 0, 1);
        x = xt_transpose(g, reshape2(g, x, 6, 4), 0, 1);
    }
    fuse_output(g, x, &m);
    ck_assert_int_eq(xti_map_class(&m), XTI_MEMCPY);
    same_as_steps(g, &m);
}
END_TEST

START_TEST(reshapes_that_never_fit_pile_up_floors_but_stay_right)
{
    static const int64_t shape[][2] = {{36, 35}, {45, 28}, {63, 20}, {30, 42}, {70, 18}};
    for (int depth = 1; depth <= 30; depth++) {
        struct xt_graph *g = new_graph();
        struct xti_map m;
        xt_node x = input(g, 2, (int64_t[]){30, 42});
        for (int i = 0; i < depth; i++) {
            x = reshape2(g, xt_transpose(g, x, 0, 1), shape[i % 5][0], shape[i % 5][1]);
            if (i % 3 == 2)
                x = xt_flip(g, x, 1, (int[]){i & 1});
        }
        fuse_output(g, xt_transpose(g, x, 0, 1), &m);
        ck_assert_int_eq(m.n_pieces, 1);
        same_as_steps(g, &m);
    }
}
END_TEST

START_TEST(too_many_floors_are_refused)
{
    struct xt_graph *g = new_graph();
    xt_node x = input(g, 2, (int64_t[]){4, 6});
    for (int i = 0; i < 1500; i++)
        x = reshape2(g, xt_transpose(g, x, 0, 1), 4, 6);
    ck_assert_int_eq(xt_output(g, x, NULL, 0), XT_OK);
    refused(g, XT_EUNSUPPORTED, "floors");
}
END_TEST

static void line_as_steps(const char *text)
{
    struct xt_graph *g;
    struct xti_map m;
    ck_assert_msg(xt_parse(text, 0, NULL, &g) == XT_OK, "%s: %s", text, xt_last_error()->message);
    fuse_output(g, g->out, &m);
    same_as_steps(g, &m);
}

/* The floor that reshape(8,3) makes dies in front of the pad; the reshape behind it must not take its digits.
 */
START_TEST(digits_of_a_dead_floor_are_forgotten)
{
    line_as_steps("x: i32[3,4]; x.permute(1,0).reshape(3,4).pad((0,3),(0,0)).reshape(8,3).reshape(6,4)");
    line_as_steps(
        "x: i32[3,4]; x.permute(1,0).reshape(3,4).pad((0,3),(0,0)).reshape(8,3).reshape(6,4).permute(1,0)");
}
END_TEST

/* Lists of digits lie one behind the other: what a dead floor takes with it is its own. */
START_TEST(a_dead_floor_takes_the_digits_that_use_it)
{
    line_as_steps("x: u8[4,3,33,5]; x.reshape(990,2).triu(-4, value=28).reshape(9,11,20).flip(0,2)"
                  ".reshape(6,330).reshape(99,20).reshape(1980).expand(1980)[:713:-1].unsqueeze(1)");
}
END_TEST

/* What a worse map would have more of. */
static const struct counted {
    const char *text;
    int n_pieces;
} counted[] = {
    {"x: u8[8,5]; x.roll(6,0).triu(2)", 2}, /* a guard that always holds is none */
    /* one reshape alone: its digits are not remembered, and need no rows */
    {"x: u8[7,2]; t2 = x.triu(-2, value=5).expand(7,2); concat(1, t2, t2).reshape(2,14)", 4},
    /* the dims of a floor are taken by size */
    {"x: u8[4,4]; y: u8[3,2,5,3,2]; t9 = x.permute(1,0).unsqueeze(2).pad((2,3),(3,0),(0,0), value=153)"
     ".expand(9,7,1).unsqueeze(2).tile(1,1,2,1).repeat(2,3)[3::3, 2:, :1, 1:].expand(3,2,5,3,1); "
     "t12 = concat(4, t9, t9[:], y); stack(5, t12, t12).reshape(36,20).permute(1,0).repeat(3, "
     "axis=1).roll(3,1)",
     16},
    /* windows are cut from each other, their rows stay whole */
    {"x: u8[2,8,9]; x.pad((0,0),(1,1),(1,1)).unfold(1,3,1).unfold(2,3,1).permute(0,3,4,1,2)", 7},
};
enum { N_COUNTED = sizeof counted / sizeof *counted };

START_TEST(a_chain_has_as_many_pieces_as_counted)
{
    struct xti_map m;
    map_of(counted[_i].text, &m);
    ck_assert_int_eq(m.n_pieces, counted[_i].n_pieces);
    xti_map_free(&m);
}
END_TEST

START_TEST(the_range_of_a_row_is_that_of_all_its_dims_and_divs)
{
    int64_t lo, hi;
    struct xti_dim dim[] = {{.n = 3}, {.n = 5}};
    struct xti_piece p = {.n_dims = 2, .dim = dim};
    const int64_t x[] = {2, -7}, q[] = {1, -10, 100}, ql[] = {1, 0, -1}, qh[] = {2, 3, 4};
    ck_assert(xti_row_range(&p, 9, x, 3, q, ql, qh, &lo, &hi));
    ck_assert_int_eq(lo, 9 - 28 + 1 - 30 - 100);
    ck_assert_int_eq(hi, 9 + 4 + 2 + 400);
    ck_assert(!xti_row_range(&p, INT64_MAX, x, 0, q, ql, qh, &lo, &hi));
    ck_assert(!xti_row_range(&p, INT64_MAX - 9, x, 3, q, ql, qh, &lo, &hi));
}
END_TEST

START_TEST(a_row_that_was_dropped_is_the_next_that_is_given)
{
    struct xti_pool pool = {0};
    struct xti_work *p = xti_work_new(&pool, 3, 1);
    int a = xti_row_new(p), b = xti_row_new(p);
    ck_assert_int_eq(b, a + 1);
    xti_row_share(p, a);
    xti_row_drop(p, a); /* one reference is left */
    ck_assert_int_eq(xti_row_new(p), b + 1);
    xti_row_drop(p, a);
    ck_assert_int_eq(xti_row_new(p), a);
    xti_work_free(p);
    xti_pool_free(&pool);
}
END_TEST

START_TEST(fills_of_unlike_values_stay_apart)
{
    struct xti_map m;
    map_of("x: i32[2]; x.pad((0,3), value=1).pad((0,3), value=2)", &m);
    ck_assert_int_eq(m.n_pieces, 3);
    xti_map_free(&m);
    map_of("x: i32[2]; x.pad((0,3), value=1).pad((0,3), value=1)", &m);
    ck_assert_int_eq(m.n_pieces, 2);
    xti_map_free(&m);
}
END_TEST

/* ---- options, failures */

START_TEST(boxes_for_floors_are_made_when_asked_for)
{
    struct xt_graph *g;
    struct xti_map m;
    struct xti_err err = {0};
    ck_assert_int_eq(xt_parse("x: i32[4,6]; x.permute(1,0).reshape(8,3).permute(1,0)", 0, NULL, &g), XT_OK);
    ck_assert_int_eq(xti_map_fuse(g, &(struct xti_fuse_options){.div_boxes = 16}, &m, &err), XT_OK);
    ck_assert_int_le(m.n_pieces, 4);
    for (int i = 0; i < m.n_pieces; i++)
        ck_assert(xti_piece_affine(&m.piece[i]));
    same_as_steps(g, &m);
}
END_TEST

/* What fusing makes when nothing is asked for: boxes in place of all divs, or the divs. */
static const struct without_divs {
    const char *text;
    int n_pieces, n_divs;
} without_divs[] = {
    {"x: i32[4,6]; x.permute(1,0).reshape(8,3).permute(1,0)", 3, 0},
    {"x: u8[5,7]; x.repeat(2, axis=1).unfold(1,3,2)", 2, 0},
    {"x: u8[4,3,5,8]; x.tile(3,1,1,1)[:11]", 2, 0},
    {"x: u8[9,5,48]; x.permute(0,2,1).reshape(9,240).unfold(1,7,1)", 1, 1}, /* too many boxes */
};
enum { N_WITHOUT_DIVS = sizeof without_divs / sizeof *without_divs };

START_TEST(boxes_are_made_where_they_leave_no_floor)
{
    const struct without_divs *want = &without_divs[_i];
    struct xt_graph *g;
    struct xti_map m;
    struct xti_err err = {0};
    int divs = 0;
    ck_assert_int_eq(xt_parse(want->text, 0, NULL, &g), XT_OK);
    ck_assert_int_eq(xti_map_fuse(g, NULL, &m, &err), XT_OK);
    for (int i = 0; i < m.n_pieces; i++)
        divs += m.piece[i].n_divs;
    ck_assert_int_eq(m.n_pieces, want->n_pieces);
    ck_assert_int_eq(divs, want->n_divs);
    same_as_steps(g, &m);
}
END_TEST

START_TEST(windows_that_cross_a_border_are_guarded_or_cut)
{
    static const struct xti_fuse_options guarded = {.guard_windows = true};
    static const char *const line[] = {
        "x: i32[2,5,6]; x.pad((0,0),(1,1),(1,1)).unfold(1,3,1).unfold(2,3,1).permute(0,3,4,1,2)",
        "x: f32[9]; x.pad((2,3)).unfold(0,4,2)",
        "x: i32[4,9]; y: i32[4,2]; concat(1, x, y).unfold(1,5,1)",
        "x: i32[6,8]; x.roll(3,1).unfold(1,3,2)",
    };
    for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
        struct xti_map m;
        struct xti_err err = {0};
        map_of(line[i], &m);
        ck_assert_msg(m.cut_windows || i, "%s", line[i]);
        xti_map_free(&m);
        struct xt_graph *g = parse_line(line[i]);
        ck_assert_msg(!xti_map_fuse(g, &guarded, &m, &err), "%s: %s", line[i], err.e.message);
        ck_assert_msg(!m.cut_windows && !xti_map_check(&m, &err), "%s: %s", line[i], err.e.message);
        same_as_steps(g, &m);
    }
}
END_TEST

static const char *const chain[] = {
    "x: f32[2,5,3,4]; x.permute(0,2,1,3)[:, ::-1].reshape(6,20)",
    "x: f32[4,6]; x.permute(1,0).reshape(8,3).permute(1,0)",
    "x: f32[1,12,2,3]; x.reshape(1,3,2,2,2,3).permute(0,1,4,2,5,3).reshape(1,3,4,6)",
    "x: f32[64,64]; x.pad((1,1),(1,1))",
    "x: f32[4,9]; stack(0, x[:, 0:3], x[:, 3:6], x[:, 6:9])",
    "x: f32[8,8]; x.tril(0).roll(3,1).reshape(4,16).permute(1,0)",
    "x: f32[3,16,16]; x.pad((0,0),(1,1),(1,1)).unfold(1,3,1).unfold(2,3,1)",
};
enum { N_CHAINS = sizeof chain / sizeof *chain };

/* The n-th allocation fails, and with `forever` all after it. */
static void fails_without_memory(const struct xt_graph *g, const char *text, int forever)
{
    int64_t before = xti_live_allocations();
    xt_status s = XT_ENOMEM;
    for (int n = 1; s == XT_ENOMEM; n++) {
        struct xti_map m;
        struct xti_err err = {0};
        xti_fail_alloc(n, forever);
        s = xti_map_fuse(g, NULL, &m, &err);
        xti_fail_alloc(0, 0);
        ck_assert_msg(s == XT_ENOMEM || (s == XT_OK && n > 1), "%s: allocation %d: %s", text, n,
                      xt_status_name(s));
        ck_assert_msg(!s || (!m.piece && !m.arena.head), "%s: allocation %d: map not zeroed", text, n);
        xti_map_free(&m);
        ck_assert_msg(xti_live_allocations() == before, "%s: allocation %d leaks", text, n);
    }
}

START_TEST(every_failing_allocation_is_reported_and_nothing_leaks)
{
    for (int i = 0; i < N_CHAINS; i++) {
        struct xt_graph *g;
        ck_assert_int_eq(xt_parse(chain[i], 0, NULL, &g), XT_OK);
        for (int forever = 0; forever < 2; forever++)
            fails_without_memory(g, chain[i], forever);
        xt_graph_free(g);
    }
}
END_TEST

START_TEST(a_graph_without_output_is_refused)
{
    struct xt_graph *g = new_graph();
    struct xti_map m;
    struct xti_err err = {0};
    input(g, 1, (int64_t[]){3});
    ck_assert_int_eq(xti_map_fuse(g, NULL, &m, &err), XT_EINVAL);
    xt_graph_free(g);
}
END_TEST

/* Different ways to say one thing. */
static const char *const same[][2] = {
    {"x: f32[4,6]; x.permute(1,0).reshape(8,3).permute(1,0)",
     "x: f32[4,6]; x.flip(0).permute(1,0).flip(1).reshape(2,12).reshape(8,3).flip(0).flip(0).permute(1,0)"},
    {"x: f32[4,6]; x.flip(0,1)", "x: f32[24]; x.flip(0).reshape(4,6)"},
    {"x: f32[4,6]; x.roll(2,0)", "x: f32[4,6]; concat(0, x[2:], x[:2])"},
    {"x: f32[6]; x.repeat(4,0)", "x: f32[6]; x.reshape(6,1).expand(6,4)"},
    {"x: f32[3,8]; x.permute(1,0).reshape(6,4).flip(0).permute(1,0)",
     "x: f32[8,3]:[1,8]; x.reshape(2,12).reshape(6,4).permute(1,0)[:, ::-1]"},
    {"x: f32[5,5]; x.tril(1)", "x: f32[5,5]; x.permute(1,0).triu(-1).permute(1,0)"},
    /* the reshape below an operand that is not the first: its digits are remembered above */
    {"x: u8[6,3,4]; y: u8[0]; concat(0, y, x.roll(3,2).reshape(72)).reshape(12,6)",
     "x: u8[6,3,4]; y: u8[0]; x.roll(3,2).reshape(72).reshape(12,6)"},
};

START_TEST(equal_copies_have_equal_maps)
{
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct xti_str key[2] = {{0}};
        for (int k = 0; k < 2; k++) {
            struct xti_map m;
            map_of(same[i][k], &m);
            xti_map_key(&m, &key[k]);
            xti_map_free(&m);
        }
        ck_assert_msg(key[0].n == key[1].n && !memcmp(key[0].s, key[1].s, key[0].n), "%s and %s", same[i][0],
                      same[i][1]);
        xti_str_free(&key[0]);
        xti_str_free(&key[1]);
    }
}
END_TEST

/* ---- pages */

/* The map's pieces of that page of each source, as its key. */
static void key_of_page(const struct xti_map *m, const int64_t *page, struct xti_str *key)
{
    struct xti_map some = *m;
    some.piece = malloc(((size_t)m->n_pieces + 1) * sizeof *some.piece);
    some.n_pieces = 0;
    for (int i = 0; i < m->n_pieces; i++) {
        int src = m->piece[i].src;
        if (src >= 0 && src / m->n_srcs == page[src % m->n_srcs])
            some.piece[some.n_pieces++] = m->piece[i];
    }
    xti_map_key(&some, key);
    free(some.piece);
}

/* Are no addresses negative, of which pages would have no number? */
static bool all_positive(const struct xt_graph *g)
{
    struct xti_map m;
    struct xti_err err = {0};
    bool positive = !xti_map_fuse(g, NULL, &m, &err);
    for (int i = 0; positive && i < m.n_srcs; i++)
        positive = m.src_lo[i] >= 0;
    xti_map_free(&m);
    return positive;
}

START_TEST(a_page_asked_for_alone_has_the_pieces_that_it_has_among_all)
{
    enum { PAGES = 40 };
    int compared = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct xt_graph *g = random_graph(seed, &(struct random_graph_options){.max_numel = 1000});
        struct xti_fuse_options opt = {.div_boxes = 8, .guard_boxes = 64, .page = 1 + (int64_t)seed % 30};
        struct xti_map all, some;
        struct xti_err err = {0};
        int64_t only[64];
        ck_assert_int_le(g->n_inputs, 64);
        if (!all_positive(g) || xti_map_fuse(g, &opt, &all, &err)) {
            xt_graph_free(g);
            continue;
        }
        opt.only = only;
        for (int64_t page = 0; page < PAGES; page++) {
            struct xti_str want = {0}, got = {0};
            for (int i = 0; i < g->n_inputs; i++)
                only[i] = (page + i) % PAGES;
            ck_assert_int_eq(xti_map_fuse(g, &opt, &some, &err), XT_OK);
            key_of_page(&all, only, &want);
            key_of_page(&some, only, &got);
            ck_assert_int_eq(want.n, got.n);
            ck_assert_msg(!memcmp(want.s, got.s, want.n), "seed %d, page %d: %s", (int)seed, (int)page,
                          graph_text(g));
            for (int i = 0; i < some.n_pieces; i++)
                ck_assert_int_eq(some.piece[i].src / some.n_srcs, only[some.piece[i].src % some.n_srcs]);
            compared += some.n_pieces;
            xti_map_free(&some);
            xti_str_free(&want);
            xti_str_free(&got);
        }
        xti_map_free(&all);
        xt_graph_free(g);
    }
    ck_assert_int_gt(compared, 20000);
}
END_TEST

/* ---- xti_map_check: each break is one that a fuser's bug could make */

/* Sets the piece's numbers: those of a dim, or of all. */
#define BREAK(name, ...)                                                                                     \
    static void break_##name(struct xti_map *m)                                                              \
    {                                                                                                        \
        struct xti_piece *p = m->piece;                                                                      \
        (void)p;                                                                                             \
        __VA_ARGS__;                                                                                         \
    }
BREAK(extent, p->dim[0].n--)
BREAK(order, struct xti_dim t = p->dim[0]; p->dim[0] = p->dim[1]; p->dim[1] = t)
BREAK(sign, p->dim[1].d *= -1)
BREAK(one, p->dim[1].n = 1)
BREAK(fill, p->dim[0].s = 1)
BREAK(merged, p->dim[0] = (struct xti_dim){4, 6, 6}; p->dim[1] = (struct xti_dim){6, 1, 1})
BREAK(strides, p->dim[0].s = INT64_MAX; p->dim[1].s = INT64_MAX / 2)
BREAK(places, p->dim[0].d = INT64_MAX)
BREAK(dims, p->n_dims = XTI_MAX_DIMS + 1)
BREAK(no_dims, p->n_dims = -1)
BREAK(divs, p->n_divs = XTI_MAX_DIVS + 1)
BREAK(no_divs, p->n_divs = -1)
BREAK(guards, p->n_guards = XTI_MAX_GUARDS + 1)
BREAK(no_guards, p->n_guards = -1)
BREAK(source, p->src = 7)
BREAK(no_source, p->src = -2)
BREAK(read, p->soff++)
BREAK(read_before, p->soff--)
BREAK(write, p->doff++)
BREAK(write_before, p->doff--)
BREAK(disjoint, p[1].doff = p[0].doff)
BREAK(pieces_order, struct xti_piece t = p[0]; p[0] = p[1]; p[1] = t)
BREAK(den, p->div[0].den = 1)
BREAK(numerator, p->div[0].c -= 100)
BREAK(overflow, p->div[0].c = INT64_MAX)
BREAK(residue, *(int64_t *)p->div[0].x += p->div[0].den) /* the arena's memory is not const */
BREAK(count, m->n_pieces--)
BREAK(too_few, m->n_pieces = -1)
BREAK(too_many, m->n_pieces = XTI_MAX_PIECES + 1)
BREAK(more, m->numel--)
BREAK(no_bytes, m->esize = 0)
BREAK(wide, m->esize = 32)
BREAK(odd, m->esize = 12)

#define PERMUTED "x: f32[4,6]; x.permute(1,0)"
#define DIVIDED  "x: f32[4,6]; x.permute(1,0).reshape(8,3).permute(1,0)"
#define PADDED   "x: f32[4,6]; x.pad((0,1),(0,0))"
#define ROLLED   "x: f32[7]; x.roll(1,0)"
static const struct broken {
    const char *text;
    void (*how)(struct xti_map *m);
    const char *said;
} broken[] = {
    {PERMUTED, break_extent, "map: 20 elements written, 24 in the output"},
    {PERMUTED, break_order, "map: piece 0, dims 0 and 1 are not in destination order"},
    {PERMUTED, break_sign, "map: piece 0, dim 1 is (4, 6, -1)"},
    {PERMUTED, break_one, "map: piece 0, dim 1 is (1, 6, 1)"},
    {"x: f32[4]; x[0:0].pad((2,2))", break_fill, "map: piece 0, dim 0 is (4, 1, 1)"},
    {PERMUTED, break_merged, "map: piece 0, dims 0 and 1 are not merged"},
    {PERMUTED, break_strides, "map: piece 0: its addresses do not fit in 64 bits"},
    {PERMUTED, break_places, "map: piece 0: its addresses do not fit in 64 bits"},
    {PERMUTED, break_dims, "map: piece 0 has 65 dims"},
    {PERMUTED, break_no_dims, "map: piece 0 has -1 dims"},
    {PERMUTED, break_divs, "map: piece 0 has 33 divs and 0 guards"},
    {PERMUTED, break_no_divs, "map: piece 0 has -1 divs and 0 guards"},
    {PERMUTED, break_guards, "map: piece 0 has 0 divs and 65 guards"},
    {PERMUTED, break_no_guards, "map: piece 0 has 0 divs and -1 guards"},
    {PERMUTED, break_source, "map: piece 0 reads source 7 of 1"},
    {"x: f32[4]; x[0:0].pad((2,2))", break_no_source, "map: piece 0 reads source -2 of 1"},
    {PERMUTED, break_read, "map: piece 0 reads [1, 24] outside [0, 23]"},
    {PERMUTED, break_read_before, "map: piece 0 reads [-1, 22] outside [0, 23]"},
    {PERMUTED, break_write, "map: piece 0 writes [1, 24] outside [0, 23]"},
    {PERMUTED, break_write_before, "map: piece 0 writes [-1, 22] outside [0, 23]"},
    {PADDED, break_count, "map: 24 elements written, 30 in the output"},
    {PERMUTED, break_too_few, "map: -1 pieces"},
    {PERMUTED, break_too_many, "map: 4097 pieces"},
    {PERMUTED, break_more, "map: 24 elements written, 23 in the output"},
    {PERMUTED, break_no_bytes, "map: elements of 0 bytes"},
    {PERMUTED, break_wide, "map: elements of 32 bytes"},
    {PERMUTED, break_odd, "map: elements of 12 bytes"},
    {ROLLED, break_disjoint, "map: pieces 0 and 1 write one element"},
    {ROLLED, break_pieces_order, "map: pieces 0 and 1 are not in destination order"},
    {DIVIDED, break_den, "map: piece 0, div 0 has denominator 1"},
    {DIVIDED, break_numerator, "map: piece 0, div 0: its numerator goes down to -99"},
    {DIVIDED, break_overflow, "map: piece 0, div 0: its numerator does not fit in 64 bits"},
    {DIVIDED, break_residue, "map: piece 0, div 0: a coefficient is not reduced modulo 4"},
};

START_TEST(check_sees_a_broken_map)
{
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct xti_map m;
        struct xti_err err = {0};
        map_of(broken[i].text, &m);
        int n = m.n_pieces;
        broken[i].how(&m);
        ck_assert_msg(xti_map_check(&m, &err) == XT_EINTERNAL, "break %zu of %s goes unseen", i,
                      broken[i].text);
        ck_assert_str_eq(err.e.message, broken[i].said);
        m.n_pieces = n;
        xti_map_free(&m);
    }
}
END_TEST

START_TEST(time_of_typical_chains)
{
    for (int i = 0; i < N_CHAINS; i++) {
        struct xt_graph *g;
        struct xti_map m;
        struct xti_err err = {0};
        int64_t best = INT64_MAX;
        ck_assert_int_eq(xt_parse(chain[i], 0, NULL, &g), XT_OK);
        for (int k = 0; k < 200; k++) {
            int64_t t = xti_now_ns();
            ck_assert_int_eq(xti_map_fuse(g, NULL, &m, &err), XT_OK);
            xti_map_free(&m);
            t = xti_now_ns() - t;
            best = t < best ? t : best;
        }
        printf("  %6.2f us to fuse %s\n", (double)best / 1e3, chain[i]);
        xt_graph_free(g);
    }
}
END_TEST

static Suite *fuse_suite(void)
{
    Suite *s = suite_create("fuse");
    TCase *t = tcase_create("fuse");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_part_joined_with_itself_stays_one_piece, 0, 8);
    tcase_add_loop_test(t, a_run_of_equal_operands_is_read_at_the_right_place, 0, 6);
    tcase_add_test(t, a_chain_of_countless_pieces_is_refused);
    tcase_add_test(t, huge_extents_and_strides_fuse_exactly);
    tcase_add_test(t, rank_32_tiles_permutes_and_reshapes);
    tcase_add_test(t, a_number_beyond_64_bits_is_an_overflow_not_a_wrong_map);
    tcase_add_test(t, a_concat_of_hundreds_of_inputs_is_that_many_pieces);
    tcase_add_test(t, hundreds_of_slices_put_together_again_are_a_memcpy);
    tcase_add_test(t, a_doubled_concat_of_more_pieces_than_fit_is_merged_on_the_way);
    tcase_add_test(t, windows_that_cross_a_border_are_guarded_or_cut);
    tcase_add_test(t, a_full_list_of_pieces_is_merged);
    tcase_add_test(t, more_pieces_than_the_limit_are_refused);
    tcase_add_test(t, rolls_pads_and_triangles_on_top_of_each_other_stay_right);
    tcase_add_test(t, thousands_of_nodes_that_cancel_are_a_memcpy);
    tcase_add_test(t, reshapes_that_never_fit_pile_up_floors_but_stay_right);
    tcase_add_test(t, too_many_floors_are_refused);
    tcase_add_test(t, digits_of_a_dead_floor_are_forgotten);
    tcase_add_test(t, a_dead_floor_takes_the_digits_that_use_it);
    tcase_add_loop_test(t, a_chain_has_as_many_pieces_as_counted, 0, N_COUNTED);
    tcase_add_test(t, the_range_of_a_row_is_that_of_all_its_dims_and_divs);
    tcase_add_test(t, a_row_that_was_dropped_is_the_next_that_is_given);
    tcase_add_test(t, fills_of_unlike_values_stay_apart);
    tcase_add_test(t, boxes_for_floors_are_made_when_asked_for);
    tcase_add_loop_test(t, boxes_are_made_where_they_leave_no_floor, 0, N_WITHOUT_DIVS);
    tcase_add_test(t, every_failing_allocation_is_reported_and_nothing_leaks);
    tcase_add_test(t, a_graph_without_output_is_refused);
    tcase_add_test(t, equal_copies_have_equal_maps);
    tcase_add_test(t, a_page_asked_for_alone_has_the_pieces_that_it_has_among_all);
    tcase_add_test(t, check_sees_a_broken_map);
    tcase_add_test(t, time_of_typical_chains);
    suite_add_tcase(s, t);
    return s;
}

int main(void) { return run_suite(fuse_suite()); }
