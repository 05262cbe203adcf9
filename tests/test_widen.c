/* test_widen.c: the unit of a map, and widening to it: of maps made by hand, at random, and of chains. */
#include <inttypes.h>

#include "graph/graph.h"
#include "map/clone.h"
#include "support/hand_map.h"
#include "support/random_graph.h"

START_TEST(the_unit_of_a_memcpy_is_the_largest_that_divides_its_length_and_offsets)
{
    /* clang-format off */
    static const struct { int esize; int64_t n, soff, doff; int unit; } row[] = {
        {1, 64, 0, 0, 16}, {1, 64, 8, 16, 8}, {1, 60, 0, 0, 4}, {1, 63, 0, 0, 1}, {1, 64, 1, 0, 1},
        {2, 64, 0, 6, 4},  {4, 2, 2, 4, 8},   {4, 4, 4, 4, 16}, {8, 2, 0, 0, 16}, {16, 8, 0, 0, 16},
        {2, 8, 8, 8, 16},  {8, 3, 0, 0, 8},
    };
    /* clang-format on */
    for (int i = 0; i < LEN(row); i++) {
        struct hand h = new_hand(row[i].esize);
        add_piece(&h, 0, row[i].soff, row[i].doff, 1, (struct xti_dim[]){{row[i].n, 1, 1}});
        ck_assert_int_eq(xti_map_unit(&h.m), row[i].unit);
    }
}
END_TEST

START_TEST(maps_that_cannot_be_widened_keep_their_element)
{
    struct hand none = new_hand(2), scalar = new_hand(2), reversed = new_hand(2), gather = new_hand(2),
                spread = new_hand(2), odd = new_hand(2), mixed = new_hand(2);
    ck_assert_int_eq(xti_map_unit(&none.m), 2);
    add_piece(&scalar, 0, 0, 0, 0, NULL);
    add_piece(&reversed, 0, 7, 0, 1, (struct xti_dim[]){{8, -1, 1}});
    add_piece(&gather, 0, 0, 0, 1, (struct xti_dim[]){{8, 2, 1}});
    add_piece(&spread, 0, 0, 0, 1, (struct xti_dim[]){{8, 1, 2}});
    add_piece(&odd, 0, 0, 0, 2, (struct xti_dim[]){{4, 9, 8}, {8, 1, 1}});
    add_piece(&mixed, 0, 0, 0, 1, (struct xti_dim[]){{8, 1, 1}});
    add_piece(&mixed, 1, 0, 8, 1, (struct xti_dim[]){{8, 2, 1}});
    struct hand *all[] = {&scalar, &reversed, &gather, &spread, &odd, &mixed};
    for (int i = 0; i < LEN(all); i++) {
        ck_assert_int_eq(xti_map_unit(&all[i]->m), 2);
        struct xti_map w;
        ck_assert_int_eq(xti_map_widen(&all[i]->m, 4, &w, NULL), XT_EINVAL);
        ck_assert_ptr_null(w.piece);
    }
}
END_TEST

START_TEST(widening_divides_strides_and_replicates_fill_values)
{
    struct hand h = new_hand(2);
    add_piece(&h, 1, 16, 8, 2, (struct xti_dim[]){{3, -8, 32}, {8, 1, 1}});
    add_piece(&h, -1, 0, 16, 2, (struct xti_dim[]){{3, 0, 32}, {24, 0, 1}});
    memcpy(h.piece[1].value, "\x12\x34", 2);
    ck_assert_int_eq(xti_map_unit(&h.m), 16);
    struct xti_map w = widened(&h.m, 16);
    ck_assert_int_eq(w.esize, 16);
    ck_assert_int_eq(w.piece[0].n_dims, 1); /* the run is one element now */
    ck_assert_int_eq(w.piece[0].dim[0].s, -1);
    ck_assert_int_eq(w.piece[0].dim[0].d, 4);
    ck_assert_int_eq(w.piece[0].soff, 2);
    ck_assert_int_eq(w.piece[1].dim[1].n, 3);
    ck_assert_mem_eq(w.piece[1].value, "\x12\x34\x12\x34\x12\x34\x12\x34\x12\x34\x12\x34\x12\x34\x12\x34",
                     16);
    ck_assert_int_eq(w.numel, h.m.numel / 8);
    ck_assert_int_eq(w.src_lo[1], 0);
    ck_assert_int_eq(w.src_hi[1], 2);
    ck_assert_int_gt(w.src_lo[0], w.src_hi[0]);
    ck_assert_int_eq(w.dst_lo, 1);
    ck_assert_int_eq(w.dst_hi, 12);
    check_same_copy(&h.m, &w, NULL);
    free_map(&w);
}
END_TEST

/* q = floor((4*i0 + i1 + 2)/8): pairs of elements share their q, groups of four do not. */
START_TEST(a_div_of_the_innermost_dim_widens_as_far_as_it_is_constant_over_a_unit)
{
    struct hand h = new_hand(2);
    add_piece(&h, 0, 0, 0, 2, (struct xti_dim[]){{6, 8, 16}, {16, 1, 1}});
    h.piece[0].n_divs = 1;
    h.part[0].div[0] = (struct xti_div){.den = 8, .c = 2};
    memcpy(h.part[0].div_x[0], (int64_t[]){4, 1}, 16);
    h.part[0].div_q[0][0] = 1; /* of no div: it is the first */
    h.part[0].sq[0] = 8;
    link_map(&h);
    ck_assert_int_eq(xti_map_unit(&h.m), 4);
    struct xti_map w = widened(&h.m, 4);
    ck_assert_int_eq(w.piece[0].div[0].den, 4);
    ck_assert_int_eq(w.piece[0].div[0].c, 1);
    ck_assert_int_eq(w.piece[0].div[0].x[0], 2);
    ck_assert_int_eq(w.piece[0].div[0].x[1], 1);
    ck_assert_int_eq(w.piece[0].sq[0], 4);
    check_same_copy(&h.m, &w, NULL);
    free_map(&w);
    h.part[0].div[0].c = 4;
    link_map(&h);
    ck_assert_int_eq(xti_map_unit(&h.m), 8);
    h.part[0].div[0].c = 3; /* a boundary inside every pair */
    link_map(&h);
    ck_assert_int_eq(xti_map_unit(&h.m), 2);
    h.part[0].div[0].c = 4;
    h.part[0].sq[0] = 2;
    link_map(&h);
    ck_assert_int_eq(xti_map_unit(&h.m), 4);
}
END_TEST

START_TEST(a_random_map_widened_to_any_unit_up_to_its_own_copies_the_same_bytes)
{
    int widened_maps = 0, with_div = 0, with_guard = 0;
    for (int i = 0; i < 30000; i++) {
        struct hand h;
        int esize = 1 << pick(0, 3);
        random_map(&h, esize, INT64_C(1) << pick(1, 4));
        int unit = xti_map_unit(&h.m);
        for (int u = esize; u <= unit; u *= 2) {
            struct xti_map w = widened(&h.m, u);
            check_same_copy(&h.m, &w, NULL);
            ck_assert_int_ge(xti_map_unit(&w), unit);
            free_map(&w);
        }
        widened_maps += unit > esize;
        for (int k = 0; unit > esize && k < h.m.n_pieces; k++) {
            const struct xti_piece *p = &h.piece[k];
            with_div += p->n_divs && p->div[0].x[p->n_dims - 1];
            with_guard += p->n_guards && p->guard[0].x[p->n_dims - 1];
        }
    }
    printf("widened %d random maps, %d pieces with a div and %d with a guard of the innermost dim\n",
           widened_maps, with_div, with_guard);
    ck_assert_int_gt(widened_maps, 3000);
    ck_assert_int_gt(with_div, 300);
    ck_assert_int_gt(with_guard, 100);
}
END_TEST

struct table {
    int64_t s[1024]; /* by destination: source address, -2: not written */
    int64_t n;
};

static bool note_point(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    struct table *t = arg;
    t->s[d] = s;
    return true;
}

/* By enumeration: every aligned group of g destination elements is written whole, from an aligned group, or
 * not. */
static bool groups_are_whole(const struct xti_map *m, int64_t g)
{
    static struct table t;
    for (int64_t i = 0; i < 1024; i++)
        t.s[i] = -2;
    xti_map_visit(m, note_point, &t);
    for (int64_t i = 0; i < 1024; i++) {
        int64_t first = t.s[i - i % g], want = first < 0 ? first : first + i % g;
        if (t.s[i] != want || (first >= 0 && first % g))
            return false;
    }
    return true;
}

/* One canonical affine piece with a nested destination. False when two of its dims would merge. */
static bool random_canonical(struct hand *h, int esize)
{
    int64_t span = 0, step = INT64_C(1) << pick(0, 3);
    struct xti_dim dim[3];
    int n = (int)pick(1, 3);
    bool fill = pick(0, 3) == 0;
    for (int k = n - 1; k >= 0; k--) {
        bool inner = k == n - 1;
        dim[k].n = inner ? step * pick(1, 4) : pick(2, 4);
        if (dim[k].n == 1)
            return false;
        dim[k].d = inner ? 1 + (pick(0, 9) == 0) : (span + step) / step * step * pick(1, 2);
        dim[k].s = fill ? 0 : inner && pick(0, 9) ? 1 : near_multiple(step, 4);
        span += (dim[k].n - 1) * dim[k].d;
        if (!inner && dim[k].s == dim[k + 1].n * dim[k + 1].s && dim[k].d == dim[k + 1].n * dim[k + 1].d)
            return false;
    }
    *h = new_hand(esize);
    int64_t doff = near_multiple(step, 2);
    if (span + doff >= 1024 - 16)
        return false;
    add_piece(h, fill ? -1 : 0, fill ? 0 : near_multiple(step, 3), doff, n, dim);
    return true;
}

START_TEST(the_unit_of_a_canonical_affine_piece_is_exactly_what_enumeration_finds)
{
    int tried = 0, wide = 0;
    for (int i = 0; i < 20000; i++) {
        struct hand h;
        if (!random_canonical(&h, 1))
            continue;
        int want = 16;
        while (want > 1 && !groups_are_whole(&h.m, want))
            want /= 2;
        tried++;
        wide += want > 1;
        if (xti_map_unit(&h.m) == want)
            continue;
        print_map(&h.m);
        ck_abort_msg("unit %d, want %d", xti_map_unit(&h.m), want);
    }
    ck_assert_int_gt(tried, 5000);
    ck_assert_int_gt(wide, 2000);
}
END_TEST

/* Widens and normalizes m, and compares what it copies with the graph evaluated node by node. */
static void check_graph(uint64_t seed, const struct xt_graph *g, const struct xti_map *m, int unit)
{
    const void *src[64] = {0}, *moved[64] = {0};
    struct xti_map w = widened(m, unit), n;
    struct xti_origin o;
    struct xti_str text = {0};
    ck_assert_int_eq(xti_map_normalize(&w, &n, &o, NULL), XT_OK);
    free_map(&w); /* n owns what it needs */
    size_t bytes = (size_t)(m->dst_hi + 1) * (size_t)m->esize + 2 * CANARY;
    unsigned char *want = malloc(bytes), *got = malloc(bytes);
    memset(want, 0xee, bytes);
    memset(got, 0xee, bytes);
    ck_assert_int_le(g->n_inputs, 64);
    for (int i = 0; i < g->n_inputs; i++) {
        const struct xti_node *x = &g->node[g->input[i]];
        int64_t lo, hi;
        ck_assert(xti_span(x->rank, x->shape, x->strides, x->offset, &lo, &hi));
        size_t k = 0, size = (size_t)(hi + 1) * xt_dtype_bytes(x->dtype);
        unsigned char *p = malloc(size + 1);
        for (; k < size; k++)
            p[k] = (unsigned char)pick(0, 255);
        src[i] = p;
    }
    for (int i = 0; i < o.n_srcs; i++)
        moved[i] = (const char *)src[o.src_of[i]] + o.src_bytes[i];
    ck_assert_int_eq(xti_graph_eval(g, want + CANARY, src, NULL), XT_OK);
    xti_map_eval(&n, got + CANARY + o.dst_bytes, moved);
    if (memcmp(want, got, bytes)) {
        xti_map_text(&n, &text);
        ck_abort_msg("seed %" PRIu64 ", unit %d of %d: %s\n%s", seed, unit, m->esize, graph_text(g), text.s);
    }
    for (int i = 0; i < g->n_inputs; i++)
        free((void *)(uintptr_t)src[i]);
    free(want);
    free(got);
    free_map(&n);
}

START_TEST(a_random_chain_widened_and_normalized_copies_what_its_graph_says)
{
    int wide = 0, wide_general = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        const struct random_graph_options opt = {
            .max_numel = 1024, .max_ops = 6, .dtype = seed % 2 ? XT_U8 : 0};
        struct xt_graph *g = random_graph(seed, &opt);
        struct xti_map m;
        struct xti_err err = {0};
        if (xti_map_fuse(g, NULL, &m, &err))
            ck_abort_msg("seed %" PRIu64 ": %s: %s", seed, graph_text(g), err.e.message);
        int unit = xti_map_unit(&m);
        for (int u = m.esize; u <= unit; u *= 2)
            check_graph(seed, g, &m, u);
        wide += unit > m.esize;
        for (int i = 0; i < m.n_pieces && unit > m.esize; i++)
            wide_general += !xti_piece_affine(&m.piece[i]);
        free_map(&m);
        xt_graph_free(g);
    }
    printf("widened %d of 4000 random chains, %d pieces with divs or guards\n", wide, wide_general);
    ck_assert_int_gt(wide, 200);
}
END_TEST

static bool inner_is_run(const struct xti_piece *p)
{
    if (!p->n_dims || p->dim[p->n_dims - 1].d != 1 || (p->src >= 0 && p->dim[p->n_dims - 1].s != 1))
        return false;
    for (int j = 0; j < p->n_divs; j++)
        if (p->div[j].x[p->n_dims - 1] & ~INT64_C(1))
            return false;
    for (int j = 0; j < p->n_guards; j++)
        if (llabs(p->guard[j].x[p->n_dims - 1]) > 1)
            return false;
    return true;
}

/* The row times g, but for the coefficient of a merged innermost dim, which counts g times as many steps. */
static int64_t *narrow_row(struct xti_arena *a, int n, const int64_t *v, int64_t g, bool merged)
{
    int64_t *out = xti_arena_alloc(a, (size_t)(n + 1) * sizeof *out);
    for (int k = 0; k < n; k++)
        out[k] = v[k] * (merged && k == n - 1 ? 1 : g);
    return out;
}

/* Every element of *m as g smaller ones, in the form that a chain over the smaller type has. */
static void narrow_piece(struct xti_arena *a, struct xti_piece *p, int g)
{
    bool run = inner_is_run(p);
    int n = p->n_dims;
    for (int j = 0; j < p->n_divs; j++) {
        struct xti_div *v = &p->div[j];
        int64_t by = run && v->x[n - 1] ? g : 1;
        *v = (struct xti_div){v->den * by, v->c * by, narrow_row(a, n, v->x, by, run),
                              narrow_row(a, j, v->q, by, 0)};
    }
    for (int j = 0; j < p->n_guards; j++) {
        struct xti_guard *v = &p->guard[j];
        int64_t by = run && v->x[n - 1] ? g : 1, rest = run && v->x[n - 1] < 0 ? g - 1 : 0;
        *v = (struct xti_guard){v->c * by + rest, narrow_row(a, n, v->x, by, run),
                                narrow_row(a, p->n_divs, v->q, by, 0)};
    }
    p->sq = narrow_row(a, p->n_divs, p->sq, g, false);
    struct xti_dim *dim = xti_arena_alloc(a, (size_t)(n + 1) * sizeof *dim);
    for (int k = 0; k < n; k++)
        dim[k] = (struct xti_dim){p->dim[k].n, p->dim[k].s * g, p->dim[k].d * g};
    dim[n] = (struct xti_dim){g, p->src >= 0, 1};
    if (run)
        dim[n - 1] = (struct xti_dim){p->dim[n - 1].n * g, p->src >= 0, 1};
    p->dim = dim;
    p->n_dims += !run;
    p->soff *= g;
    p->doff *= g;
}

START_TEST(widening_undoes_what_narrowing_does)
{
    int general = 0, in_rows = 0;
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        const struct random_graph_options opt = {.max_numel = 1024, .dtype = XT_F64, .no_empty = true};
        struct xt_graph *graph = random_graph(seed, &opt);
        struct xti_map m, n;
        int g = 1 << pick(1, 3);
        ck_assert_int_eq(xti_map_fuse(graph, NULL, &m, NULL), XT_OK);
        ck_assert_int_eq(xti_map_clone(&m, &n, NULL), XT_OK);
        n.esize /= g;
        n.numel *= g;
        n.dst_lo *= g;
        n.dst_hi = n.dst_hi * g + g - 1;
        for (int i = 0; i < n.n_srcs; i++) {
            n.src_lo[i] *= g;
            n.src_hi[i] = n.src_hi[i] * g + g - 1;
        }
        for (int i = 0; i < n.n_pieces; i++) {
            const struct xti_piece *p = &m.piece[i];
            narrow_piece(&n.arena, &n.piece[i], g);
            general += !xti_piece_affine(p);
            in_rows += inner_is_run(p) && ((p->n_divs && p->div[0].x[p->n_dims - 1]) ||
                                           (p->n_guards && p->guard[0].x[p->n_dims - 1]));
            memset(n.piece[i].value, 5, 16);
        }
        if (xti_map_unit(&n) < m.esize) {
            print_map(&m);
            print_map(&n);
            ck_abort_msg("seed %" PRIu64 ": unit %d", seed, xti_map_unit(&n));
        }
        struct xti_map w = widened(&n, m.esize);
        ck_assert_msg(same_key(&w, &m), "seed %" PRIu64 ": %s", seed, graph_text(graph));
        free_map(&w);
        free_map(&n);
        free_map(&m);
        xt_graph_free(graph);
    }
    printf("widened %d narrowed pieces with divs or guards, %d of them in the innermost dim\n", general,
           in_rows);
    ck_assert_int_gt(general, 300);
    ck_assert_int_gt(in_rows, 50);
}
END_TEST

/* A map of n_srcs sources, all but the first few unread: their bounds fill the arena to every possible level.
 */
static void padded_map(struct hand *h, int n_srcs, int64_t *bounds)
{
    *h = new_hand(2);
    add_piece(h, 0, 0, 0, 2, (struct xti_dim[]){{6, 8, 16}, {16, 1, 1}});
    h->piece[0].n_divs = h->piece[0].n_guards = 1;
    h->part[0].div[0] = (struct xti_div){.den = 8, .c = 2};
    memcpy(h->part[0].div_x[0], (int64_t[]){4, 1}, 16);
    h->part[0].sq[0] = 8;
    memcpy(h->part[0].guard_x[0], (int64_t[]){2, 1}, 16);
    link_map(h);
    for (int i = 0; i < n_srcs; i++)
        bounds[i] = 0, bounds[n_srcs + i] = -1;
    bounds[n_srcs] = h->hi[0];
    h->m.n_srcs = n_srcs;
    h->m.src_lo = bounds;
    h->m.src_hi = bounds + n_srcs;
}

static xt_status widen_or_normalize(int what, const struct xti_map *m, struct xti_map *out,
                                    struct xti_err *err)
{
    struct xti_origin o;
    return what ? xti_map_normalize(m, out, &o, err) : xti_map_widen(m, 4, out, err);
}

START_TEST(running_out_of_memory_leaves_nothing_behind)
{
    static int64_t bounds[1024];
    int failures = 0;
    for (int round = 0; round < 2 * 256; round++)
        for (int n = 1;; n++) {
            struct hand h;
            struct xti_map out;
            struct xti_err err = {0};
            padded_map(&h, SRCS + round / 2, bounds);
            int64_t before = xti_live_allocations();
            xti_fail_alloc(n, 0);
            xt_status s = widen_or_normalize(round % 2, &h.m, &out, &err);
            xti_fail_alloc(0, 0);
            if (s == XT_OK)
                free_map(&out);
            else
                ck_assert(s == XT_ENOMEM && err.e.status == XT_ENOMEM && !out.piece && !out.n_pieces);
            ck_assert_int_eq(xti_live_allocations(), before);
            if (s == XT_OK)
                break;
            failures++;
            ck_assert_int_lt(n, 100);
        }
    ck_assert_int_gt(failures, 2 * 256);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("widen");
    TCase *tc = tcase_create("widen");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, the_unit_of_a_memcpy_is_the_largest_that_divides_its_length_and_offsets);
    tcase_add_test(tc, maps_that_cannot_be_widened_keep_their_element);
    tcase_add_test(tc, widening_divides_strides_and_replicates_fill_values);
    tcase_add_test(tc, a_div_of_the_innermost_dim_widens_as_far_as_it_is_constant_over_a_unit);
    tcase_add_test(tc, a_random_map_widened_to_any_unit_up_to_its_own_copies_the_same_bytes);
    tcase_add_test(tc, the_unit_of_a_canonical_affine_piece_is_exactly_what_enumeration_finds);
    tcase_add_test(tc, a_random_chain_widened_and_normalized_copies_what_its_graph_says);
    tcase_add_test(tc, widening_undoes_what_narrowing_does);
    tcase_add_test(tc, running_out_of_memory_leaves_nothing_behind);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
