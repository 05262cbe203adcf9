/* test_sig.c: the normal form of a map, and its key: the same for maps that copy the same, and for no others.
 */
#include "graph/graph.h"
#include "map/clone.h"
#include "support/hand_map.h"

static bool same_normal_key(const struct xti_map *a, const struct xti_map *b)
{
    struct xti_map x, y;
    struct xti_origin o, q;
    ck_assert_int_eq(xti_map_normalize(a, &x, &o, NULL), XT_OK);
    ck_assert_int_eq(xti_map_normalize(b, &y, &q, NULL), XT_OK);
    bool same = same_key(&x, &y);
    free_map(&x);
    free_map(&y);
    return same;
}

START_TEST(a_normalized_map_copies_the_same_bytes_from_its_origins)
{
    for (int i = 0; i < 3000; i++) {
        struct hand h;
        struct xti_map n, again;
        struct xti_origin o, p;
        random_map(&h, 1 << pick(0, 4), INT64_C(1) << pick(0, 3));
        ck_assert_int_eq(xti_map_normalize(&h.m, &n, &o, NULL), XT_OK);
        ck_assert_int_eq(n.n_srcs, o.n_srcs);
        ck_assert(n.numel == 0 || n.dst_lo == 0);
        for (int k = 0; k < n.n_srcs; k++)
            ck_assert_int_eq(n.src_lo[k], 0);
        check_same_copy(&h.m, &n, &o);
        ck_assert_int_eq(xti_map_normalize(&n, &again, &p, NULL), XT_OK); /* a fixed point */
        ck_assert(same_key(&n, &again));
        ck_assert_int_eq(p.dst_bytes, 0);
        free_map(&n);
        free_map(&again);
    }
}
END_TEST

START_TEST(a_map_that_only_fills_has_no_sources_left)
{
    struct hand h = new_hand(4);
    struct xti_map n;
    struct xti_origin o;
    add_piece(&h, -1, 0, 5, 1, (struct xti_dim[]){{8, 0, 1}});
    ck_assert_int_eq(xti_map_normalize(&h.m, &n, &o, NULL), XT_OK);
    ck_assert_int_eq(n.n_srcs, 0);
    ck_assert_int_eq(o.n_srcs, 0);
    ck_assert_int_eq(o.dst_bytes, 20);
    ck_assert_int_eq(n.piece[0].src, -1);
    free_map(&n);
}
END_TEST

START_TEST(input_numbers_and_absolute_offsets_are_not_in_the_key_but_relative_ones_are)
{
    struct xti_dim run[] = {{8, 1, 1}};
    struct hand a = new_hand(4), b = new_hand(4), c = new_hand(4), d = new_hand(4);
    add_piece(&a, 0, 0, 0, 1, run), add_piece(&a, 1, 0, 8, 1, run), add_piece(&a, 0, 8, 16, 1, run);
    add_piece(&b, 2, 3, 100, 1, run), add_piece(&b, 0, 7, 108, 1, run), add_piece(&b, 2, 11, 116, 1, run);
    add_piece(&c, 0, 0, 0, 1, run), add_piece(&c, 1, 0, 8, 1, run), add_piece(&c, 0, 9, 16, 1, run);
    add_piece(&d, 0, 0, 0, 1, run), add_piece(&d, 1, 0, 8, 1, run), add_piece(&d, 1, 8, 16, 1, run);
    ck_assert(same_normal_key(&a.m, &b.m));
    ck_assert(!same_key(&a.m, &b.m));
    ck_assert(!same_normal_key(&a.m, &c.m));
    ck_assert(!same_normal_key(&a.m, &d.m));
}
END_TEST

START_TEST(f16_and_f32_rows_of_the_same_bytes_have_one_key_after_widening)
{
    struct hand h = new_hand(2), f = new_hand(4);
    add_piece(&h, 0, 0, 0, 3, (struct xti_dim[]){{5, 64, 448}, {7, 320, 64}, {64, 1, 1}});
    add_piece(&f, 0, 0, 0, 3, (struct xti_dim[]){{5, 32, 224}, {7, 160, 32}, {32, 1, 1}});
    struct xti_map a = widened(&h.m, xti_map_unit(&h.m)), b = widened(&f.m, xti_map_unit(&f.m));
    ck_assert(same_normal_key(&a, &b));
    ck_assert(!same_normal_key(&h.m, &f.m));
    free_map(&a);
    free_map(&b);
}
END_TEST

static void change_number(struct hand *h, int v)
{
    struct parts *a = &h->part[0];
    int64_t *number[] = {&h->piece[0].soff,
                         &h->piece[0].doff,
                         &a->dim[0].n,
                         &a->dim[0].s,
                         &a->dim[0].d,
                         &a->dim[1].n,
                         &a->dim[1].s,
                         &a->dim[1].d,
                         &a->div[0].den,
                         &a->div[0].c,
                         &a->div_x[0][0],
                         &a->div_x[0][1],
                         &a->div[1].den,
                         &a->div[1].c,
                         &a->div_x[1][0],
                         &a->div_x[1][1],
                         &a->div_q[1][0],
                         &a->sq[0],
                         &a->sq[1],
                         &a->guard[0].c,
                         &a->guard_x[0][0],
                         &a->guard_x[0][1],
                         &a->guard_q[0][0],
                         &a->guard_q[0][1],
                         &h->piece[1].doff,
                         &h->part[1].dim[0].n,
                         &h->part[1].dim[0].d,
                         &h->m.numel,
                         &h->m.dst_lo,
                         &h->m.dst_hi,
                         &h->lo[1],
                         &h->hi[1],
                         &h->lo[0]};
    int *count[] = {&h->m.esize,         &h->m.n_pieces,      &h->m.n_srcs,         &h->piece[0].src,
                    &h->piece[0].n_dims, &h->piece[0].n_divs, &h->piece[0].n_guards};
    if (v < LEN(number))
        ++*number[v];
    else if (v < LEN(number) + LEN(count))
        --*count[v - LEN(number)];
    else
        h->piece[1].src = 0;
}

START_TEST(a_change_of_any_number_of_a_map_gives_another_key)
{
    enum { VARIANTS = 41 };
    struct xti_str key[VARIANTS + 1];
    for (int v = 0; v <= VARIANTS; v++) {
        struct hand h;
        rich_map(&h);
        h.piece[0].src = _i;
        if (v < VARIANTS) /* the last stays as it is */
            change_number(&h, v);
        key[v] = key_of(&h.m);
    }
    for (int v = 0; v <= VARIANTS; v++)
        for (int w = 0; w < v; w++)
            ck_assert_msg(memcmp(key[v].s, key[w].s, key[v].n < key[w].n ? key[v].n : key[w].n),
                          "variants %d and %d", v, w);
    for (int v = 0; v <= VARIANTS; v++)
        xti_str_free(&key[v]);
}
END_TEST

/* Two points; the guards of one are worded so that they would read as the other piece if they were not
 * counted. */
START_TEST(a_guard_belongs_to_one_piece)
{
    for (int n = 1; n <= 5; n++) {
        struct xti_guard guard[] = {
            {0, NULL, NULL}, {7, NULL, NULL}, {8, NULL, NULL}, {0, NULL, NULL}, {0, NULL, NULL}};
        struct xti_piece a[] = {{.doff = 1, .n_guards = n, .guard = guard}, {.soff = 7, .doff = 8}};
        struct xti_piece b[] = {{.doff = 1}, {.soff = 7, .doff = 8, .n_guards = n, .guard = guard}};
        struct xti_map x = {.esize = 1, .n_pieces = 2, .piece = a},
                       y = {.esize = 1, .n_pieces = 2, .piece = b};
        ck_assert(!same_key(&x, &y));
    }
}
END_TEST

START_TEST(a_clone_shares_no_array_with_its_map)
{
    struct hand h;
    struct xti_map c;
    rich_map(&h);
    ck_assert_int_eq(xti_map_clone(&h.m, &c, NULL), XT_OK);
    ck_assert(same_key(&h.m, &c));
    const struct xti_piece *p = &h.m.piece[0], *q = &c.piece[0];
    const void *const pair[][2] = {
        {h.m.piece, c.piece},
        {h.m.src_lo, c.src_lo},
        {h.m.src_hi, c.src_hi},
        {p->dim, q->dim},
        {p->div, q->div},
        {p->guard, q->guard},
        {p->sq, q->sq},
        {p->div[1].x, q->div[1].x},
        {p->div[1].q, q->div[1].q},
        {p->guard[0].x, q->guard[0].x},
        {p->guard[0].q, q->guard[0].q},
    };
    for (int i = 0; i < LEN(pair); i++)
        ck_assert_msg(pair[i][0] != pair[i][1], "array %d", i);
    free_map(&c);
}
END_TEST

START_TEST(no_key_is_the_beginning_of_another)
{
    enum { N = 300 };
    struct xti_str key[N];
    for (int i = 0; i < N; i++) {
        struct hand h;
        random_map(&h, 1 << pick(0, 4), 2);
        key[i] = key_of(&h.m);
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            ck_assert(key[i].n >= key[j].n || memcmp(key[i].s, key[j].s, key[i].n));
    for (int i = 0; i < N; i++)
        xti_str_free(&key[i]);
}
END_TEST

START_TEST(a_fill_value_is_not_in_the_key)
{
    struct hand a, b;
    rich_map(&a);
    rich_map(&b);
    memset(b.piece[1].value, 7, 16);
    ck_assert(same_key(&a.m, &b.m));
}
END_TEST

/* The widened normal key of a problem line. */
static struct xti_str line_key(const char *line)
{
    struct xt_graph *g;
    struct xti_map m, w, n;
    struct xti_origin o;
    struct xti_err err = {0};
    if (xt_parse(line, 0, NULL, &g) || xti_map_fuse(g, NULL, &m, &err))
        ck_abort_msg("%s: %s %s", line, xt_last_error()->message, err.e.message);
    w = widened(&m, xti_map_unit(&m));
    ck_assert_int_eq(xti_map_normalize(&w, &n, &o, NULL), XT_OK);
    struct xti_str k = key_of(&n);
    free_map(&n);
    free_map(&w);
    free_map(&m);
    xt_graph_free(g);
    return k;
}

START_TEST(chains_with_one_map_have_one_key)
{
    static const char *const same[][2] = {
        {"x: f16[8,5,64]; x.permute(1,0,2)", "x: f32[8,5,32]; x.permute(1,0,2)"},
        {"x: u8[8,5,64]; x.permute(1,0,2)", "x: c128[8,5,4]; x.permute(1,0,2)"},
        {"x: f32[4,6]; x.T", "x: i32[4,6]; x.permute(1,0)"},
        {"x: u16[4,6]; x.T", "x: bf16[4,6]; x.T"},
        {"x: f32[4,6]; x.T", "x: f32[4,6]:[6,1]+100; x.T"},
        {"x: f32[4,6]; x.T", "x: f32[9,6]; x[3:7].T"},
        {"x: f32[4,6]; x.T", "x: f32[4,6]; x.T -> [6,4]:[4,1]+24"},
        {"x: f32[4,6]; x.T", "x: f32[24]; x.reshape(1,2,2,6).reshape(4,6).T.unsqueeze(0)"},
        {"x: f32[5]; y: f32[3]; concat(0, x, y)", "x: f32[3]; y: f32[5]; concat(0, y, x)"},
        {"x: u8[5]; x.pad((1,2), value=3)", "x: i8[5]; x.pad((1,2), value=-1)"},
        {"x: f16[4,6,2]; x.permute(1,0,2).reshape(8,3,2).permute(1,0,2)", "x: f32[4,6]; x.T.reshape(8,3).T"},
        {"x: f16[4,6,2]; x.permute(1,0,2).reshape(48)[10:24]", "x: f32[4,6]; x.T.reshape(24)[5:12]"},
        {"x: f16[6,6,4]; x.permute(2,0,1).tril(1).permute(1,2,0)",
         "x: u16[6,6,4]; x.permute(2,0,1).tril(1).permute(1,2,0)"},
    };
    static const char *const other[][2] = {
        {"x: f32[4,6]; x.T", "x: f32[6,4]; x.T"},
        {"x: f32[4,6]; x.T", "x: f64[4,6]; x.T"},
        {"x: f32[4,6]; x.T", "x: f32[4,6]:[7,1]+0; x.T"},
        {"x: f32[4,6]; x.T", "x: f32[4,6]; x.T -> [6,4]:[5,1]+0"},
        {"x: f32[5]; y: f32[3]; concat(0, x, y)", "x: f32[8]; concat(0, x[:5], x[2:5])"},
        {"x: u8[5]; x.pad((1,2))", "x: u8[5]; x.pad((2,1))"},
        {"x: f16[8,5,64]; x.permute(1,0,2)", "x: f16[8,5,63]; x.permute(1,0,2)"},
        {"x: u8[6,6]; x.tril(1)", "x: u8[6,6]; x.tril(2)"},
    };
    for (int i = 0; i < LEN(same) + LEN(other); i++) {
        const char *const *row = i < LEN(same) ? same[i] : other[i - LEN(same)];
        struct xti_str a = line_key(row[0]), b = line_key(row[1]);
        bool equal = a.n == b.n && !memcmp(a.s, b.s, a.n);
        ck_assert_msg(equal == (i < LEN(same)), "%s\n%s\n%s", row[0], row[1], equal ? "one key" : "two keys");
        xti_str_free(&a);
        xti_str_free(&b);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sig");
    TCase *tc = tcase_create("sig");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_normalized_map_copies_the_same_bytes_from_its_origins);
    tcase_add_test(tc, a_map_that_only_fills_has_no_sources_left);
    tcase_add_test(tc, input_numbers_and_absolute_offsets_are_not_in_the_key_but_relative_ones_are);
    tcase_add_test(tc, f16_and_f32_rows_of_the_same_bytes_have_one_key_after_widening);
    tcase_add_loop_test(tc, a_change_of_any_number_of_a_map_gives_another_key, 0, 2);
    tcase_add_test(tc, a_guard_belongs_to_one_piece);
    tcase_add_test(tc, a_clone_shares_no_array_with_its_map);
    tcase_add_test(tc, no_key_is_the_beginning_of_another);
    tcase_add_test(tc, a_fill_value_is_not_in_the_key);
    tcase_add_test(tc, chains_with_one_map_have_one_key);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
