/* test_sig.c: units, normal form, key, index width and text of maps made by hand and at random. */
#include "map/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "map/clone.h"
#include "tests/support/pick.h"
#include "tests/support/random_graph.h"
#include "tests/support/suite.h"

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))

/* ------------------------------------------------------------------------------------------- maps by hand */

enum { DIMS = 4, DIVS = 2, GUARDS = 2, SRCS = 3, PIECES = 4 };

/* A map whose arrays lie beside it. */
struct hand {
    struct xti_map m;
    struct xti_piece piece[PIECES];
    struct parts {
        struct xti_dim dim[DIMS];
        struct xti_div div[DIVS];
        struct xti_guard guard[GUARDS];
        int64_t div_x[DIVS][DIMS], div_q[DIVS][DIVS], guard_x[GUARDS][DIMS], guard_q[GUARDS][DIVS], sq[DIVS];
    } part[PIECES];
    int64_t lo[SRCS], hi[SRCS];
};

static bool count_point(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    struct xti_map *m = arg;
    bool first = m->numel++ == 0;
    m->dst_lo = first || d < m->dst_lo ? d : m->dst_lo;
    m->dst_hi = first || d > m->dst_hi ? d : m->dst_hi;
    if (p->src < 0)
        return true;
    int64_t *lo = &m->src_lo[p->src], *hi = &m->src_hi[p->src];
    bool unread = *hi < *lo;
    *lo = unread || s < *lo ? s : *lo;
    *hi = unread || s > *hi ? s : *hi;
    return true;
}

/* Points the map's arrays at its own storage and works out its bounds by visiting every point. */
static void link_map(struct hand *h)
{
    h->m.piece = h->piece;
    h->m.n_srcs = SRCS;
    h->m.src_lo = h->lo;
    h->m.src_hi = h->hi;
    for (int i = 0; i < SRCS; i++)
        h->lo[i] = 0, h->hi[i] = -1;
    for (int i = 0; i < h->m.n_pieces; i++) {
        struct parts *a = &h->part[i];
        struct xti_piece *p = &h->piece[i];
        p->dim = a->dim, p->div = a->div, p->guard = a->guard, p->sq = a->sq;
        for (int j = 0; j < DIVS; j++)
            a->div[j].x = a->div_x[j], a->div[j].q = a->div_q[j];
        for (int j = 0; j < GUARDS; j++)
            a->guard[j].x = a->guard_x[j], a->guard[j].q = a->guard_q[j];
    }
    h->m.numel = 0;
    h->m.dst_lo = 0, h->m.dst_hi = -1;
    xti_map_visit(&h->m, count_point, &h->m);
}

/* One affine piece of source src. */
static void add_piece(struct hand *h, int src, int64_t soff, int64_t doff, int n_dims,
                      const struct xti_dim *dim)
{
    int i = h->m.n_pieces++;
    h->piece[i] = (struct xti_piece){.src = src, .soff = soff, .doff = doff, .n_dims = n_dims};
    for (int k = 0; k < n_dims; k++)
        h->part[i].dim[k] = dim[k];
    link_map(h);
}

static struct hand new_hand(int esize) { return (struct hand){.m.esize = esize}; }

static void free_map(struct xti_map *m) { xti_arena_free(&m->arena); }

/* ------------------------------------------------------------------------------------------ running a map */

enum { CANARY = 64 };

struct buffers {
    unsigned char *dst, *src[SRCS];
    size_t dst_bytes;
};

/* Buffers that hold every address of m, sources full of different bytes, the destination of 0xee with
 * canaries. */
static struct buffers new_buffers(const struct xti_map *m)
{
    struct buffers b = {.dst_bytes = (size_t)(m->dst_hi + 1) * (size_t)m->esize + 2 * CANARY};
    b.dst = malloc(b.dst_bytes);
    memset(b.dst, 0xee, b.dst_bytes);
    for (int i = 0; i < SRCS; i++) {
        size_t n = i < m->n_srcs ? (size_t)(m->src_hi[i] + 1) * (size_t)m->esize : 0;
        b.src[i] = malloc(n + 1);
        for (size_t k = 0; k < n; k++)
            b.src[i][k] = (unsigned char)((k * 2654435761u >> 8) + k + 77 * (size_t)i);
    }
    return b;
}

static void free_buffers(struct buffers *b)
{
    free(b->dst);
    for (int i = 0; i < SRCS; i++)
        free(b->src[i]);
}

static void run_map(const struct xti_map *m, unsigned char *dst, unsigned char *const *src)
{
    const void *s[SRCS] = {0};
    for (int i = 0; i < m->n_srcs; i++)
        s[i] = src[i];
    xti_map_eval(m, dst, s);
}

static void print_map(const struct xti_map *m)
{
    struct xti_str t = {0};
    xti_map_text(m, &t);
    fprintf(stderr, "esize %d\n%s", m->esize, t.s ? t.s : "");
    xti_str_free(&t);
}

/* post of widen and normalize: running b (whose sides start at the given bytes) writes what a writes. */
static void check_same_copy(const struct xti_map *a, const struct xti_map *b, const struct xti_origin *o)
{
    struct buffers x = new_buffers(a), y = new_buffers(a);
    unsigned char *src[SRCS] = {y.src[0], y.src[1], y.src[2]}, *dst = y.dst + CANARY;
    if (o) {
        dst += o->dst_bytes;
        for (int i = 0; i < o->n_srcs; i++)
            src[i] = y.src[o->src_of[i]] + o->src_bytes[i];
    }
    run_map(a, x.dst + CANARY, x.src);
    run_map(b, dst, src);
    if (memcmp(x.dst, y.dst, x.dst_bytes)) {
        print_map(a);
        print_map(b);
        ck_abort_msg("the two maps write different bytes");
    }
    free_buffers(&x);
    free_buffers(&y);
}

static struct xti_map widened(const struct xti_map *m, int unit)
{
    struct xti_map w;
    ck_assert_int_eq(xti_map_widen(m, unit, &w, NULL), XT_OK);
    return w;
}

/* --------------------------------------------------------------------------------------------------- units
 */

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

/* A multiple of step, with a chance of one off. */
static int64_t near_multiple(int64_t step, int64_t most) { return step * pick(0, most) + (pick(0, 11) == 0); }

static void random_rows(struct parts *a, struct xti_piece *p, int64_t step)
{
    p->n_divs = (int)pick(0, DIVS);
    p->n_guards = (int)pick(0, GUARDS);
    for (int j = 0; j < p->n_divs; j++) {
        a->div[j] = (struct xti_div){.den = near_multiple(step, 4) + 2,
                                     .c = pick(0, 2) ? near_multiple(step, 3) : pick(0, 9)};
        if (pick(0, 2))
            a->div[j].den = step * pick(2, 5);
        for (int k = 0; k < p->n_dims; k++)
            a->div_x[j][k] = k == p->n_dims - 1 ? pick(0, 2) / 2 : near_multiple(step, 3);
        for (int k = 0; k < j; k++)
            a->div_q[j][k] = near_multiple(step, 2);
        a->sq[j] = near_multiple(step, 2);
    }
    for (int j = 0; j < p->n_guards; j++) {
        a->guard[j].c = pick(0, 2) ? near_multiple(step, 4) : pick(-9, 19);
        for (int k = 0; k < p->n_dims; k++)
            a->guard_x[j][k] =
                k == p->n_dims - 1 ? pick(-1, 1) : (pick(0, 1) ? -1 : 1) * near_multiple(step, 2);
        for (int k = 0; k < p->n_divs; k++)
            a->guard_q[j][k] = near_multiple(step, 2) * (pick(0, 1) ? 1 : -1);
    }
}

/* A map of up to three pieces in which multiples of `step` are likely. Destinations of pieces do not overlap.
 */
static void random_map(struct hand *h, int esize, int64_t step)
{
    int64_t base = step * pick(0, 2);
    *h = new_hand(esize);
    h->m.n_pieces = (int)pick(1, 3);
    for (int i = 0; i < h->m.n_pieces; i++) {
        struct xti_piece *p = &h->piece[i];
        struct parts *a = &h->part[i];
        p->src = (int)pick(-1, SRCS - 1);
        p->n_dims = (int)pick(1, 3);
        p->soff = p->src < 0 ? 0 : 1024 + near_multiple(step, 3);
        p->doff = base;
        for (int k = 0; k < 16; k++)
            p->value[k] = (unsigned char)pick(0, 255);
        int64_t span = 1;
        for (int k = p->n_dims - 1; k >= 0; k--) {
            bool inner = k == p->n_dims - 1;
            struct xti_dim *d = &a->dim[k];
            d->n = inner ? step * pick(1, 4) : pick(2, 4);
            d->n = d->n < 2 ? 2 : d->n;
            d->d = inner ? 1 : (span + step - 1) / step * step + near_multiple(step, 1);
            d->s = p->src < 0 ? 0 : inner ? 1 : near_multiple(step, 3) * (pick(0, 1) ? 1 : -1);
            span += (d->n - 1) * d->d;
        }
        random_rows(a, p, step);
        base = (base + span + step - 1) / step * step + near_multiple(step, 1);
    }
    link_map(h);
}

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

/* --------------------------------------------------------------------------------------- normal form, key */

static struct xti_str key_of(const struct xti_map *m)
{
    struct xti_str k = {0};
    xti_map_key(m, &k);
    ck_assert(!k.failed);
    return k;
}

static bool same_key(const struct xti_map *a, const struct xti_map *b)
{
    struct xti_str x = key_of(a), y = key_of(b);
    bool same = x.n == y.n && !memcmp(x.s, y.s, x.n);
    xti_str_free(&x);
    xti_str_free(&y);
    return same;
}

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

/* A map that has one of everything. */
static void rich_map(struct hand *h)
{
    *h = new_hand(4);
    h->m.n_pieces = 2;
    h->piece[0] =
        (struct xti_piece){.src = 1, .soff = 40, .doff = 3, .n_dims = 2, .n_divs = 2, .n_guards = 1};
    h->piece[1] = (struct xti_piece){.src = -1, .doff = 90, .n_dims = 1};
    struct parts *a = &h->part[0];
    memcpy(a->dim, (struct xti_dim[]){{4, 5, 20}, {6, 2, 3}}, 2 * sizeof *a->dim);
    a->div[0] = (struct xti_div){.den = 4, .c = 1};
    a->div[1] = (struct xti_div){.den = 3, .c = 2};
    memcpy(a->div_x, (int64_t[DIVS][DIMS]){{3, 1}, {1, 2}}, sizeof a->div_x);
    a->div_q[1][0] = 1;
    a->sq[0] = 7;
    a->sq[1] = -2;
    a->guard[0].c = 5;
    memcpy(a->guard_x[0], (int64_t[]){1, -1}, 16);
    memcpy(a->guard_q[0], (int64_t[]){1, -2}, 16);
    h->part[1].dim[0] = (struct xti_dim){9, 0, 2};
    link_map(h);
}

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

/* ------------------------------------------------------------------------------------------------- chains */

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

/* ------------------------------------------------------------------------------------------- index width */

static bool index32_of(int64_t slack, int n, const struct xti_dim *dim)
{
    struct xti_dim d[DIMS];
    struct xti_piece p = {.dim = d, .n_dims = n};
    int64_t lo = 0, hi = 0;
    struct xti_map m = {
        .esize = 1, .n_pieces = 1, .piece = &p, .n_srcs = 1, .numel = 1, .src_lo = &lo, .src_hi = &hi};
    for (int i = 0; i < n; i++) {
        d[i] = dim[i];
        *(d[i].s < 0 ? &lo : &hi) += d[i].s * (d[i].n - 1);
        m.dst_hi += d[i].d * (d[i].n - 1);
    }
    return xti_map_index32(&m, slack);
}

START_TEST(the_index_is_32_bits_wide_only_when_spans_and_counts_fit)
{
    const int64_t G = INT64_C(1) << 31;
    ck_assert(index32_of(0, 1, (struct xti_dim[]){{G - 1, 1, 1}}));
    ck_assert(!index32_of(0, 1, (struct xti_dim[]){{G, 1, 1}}));
    ck_assert(!index32_of(1, 1, (struct xti_dim[]){{G - 1, 1, 1}})); /* the last block overshoots */
    ck_assert(index32_of(1023, 1, (struct xti_dim[]){{G - 1024, 1, 1}}));
    ck_assert(!index32_of(1024, 1, (struct xti_dim[]){{G - 1024, 1, 1}}));
    ck_assert(!index32_of(0, 2, (struct xti_dim[]){{3, G, 2}, {2, 1, 1}}));    /* few rows, stride 2^31 */
    ck_assert(!index32_of(0, 2, (struct xti_dim[]){{2, -G, 2}, {2, 1, 1}}));   /* the same, backwards */
    ck_assert(index32_of(0, 2, (struct xti_dim[]){{2, G - 2, 2}, {2, 1, 1}})); /* highest address 2^31 - 1 */
    ck_assert(!index32_of(0, 2, (struct xti_dim[]){{2, G - 1, 2}, {2, 1, 1}}));
    ck_assert(!index32_of(0, 1, (struct xti_dim[]){{INT64_C(1) << 40, 0, 1}})); /* a scalar, expanded */
    ck_assert(!index32_of(0, 2, (struct xti_dim[]){{1 << 16, 0, 1 << 16}, {1 << 16, 0, 1}}));
    ck_assert(
        !index32_of(0, 2, (struct xti_dim[]){{4, 0, G}, {2, 0, 1}})); /* rows of the destination far apart */
    ck_assert(index32_of(0, 0, NULL));
}
END_TEST

START_TEST(numerators_guards_and_the_sum_of_pieces_decide_the_index_width_too)
{
    struct hand h;
    rich_map(&h);
    ck_assert(xti_map_index32(&h.m, 1024));
    h.part[0].div[0].c = INT32_MAX - 14; /* 3*3 + 1*5 = 14 more */
    ck_assert(xti_map_index32(&h.m, 0));
    h.part[0].div[0].c++;
    ck_assert(!xti_map_index32(&h.m, 0));
    rich_map(&h);
    h.part[0].div[0].den = INT64_C(1) << 31;
    ck_assert(!xti_map_index32(&h.m, 0));
    rich_map(&h);
    h.part[0].guard[0].c = -(INT64_C(1) << 31) - 1;
    ck_assert(!xti_map_index32(&h.m, 0));
    rich_map(&h);
    h.part[0].div_x[0][0] = INT64_MAX;
    h.part[0].dim[0].n = INT64_MAX;
    ck_assert(!xti_map_index32(&h.m, 0));
    struct hand two = new_hand(1);
    add_piece(&two, 0, 0, 0, 1, (struct xti_dim[]){{2, 1, 1}});
    add_piece(&two, 0, 0, 2, 1, (struct xti_dim[]){{2, 1, 1}});
    two.part[0].dim[0].n = two.part[1].dim[0].n = INT64_C(1) << 30;
    ck_assert(!xti_map_index32(&two.m, 0));
    two.part[1].dim[0].n--;
    ck_assert(xti_map_index32(&two.m, 0));
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- text
 */

START_TEST(the_text_of_a_map_shows_its_formulas)
{
    struct hand h, t = new_hand(4), e = new_hand(4);
    struct xti_str b = {0};
    add_piece(&t, 0, 0, 0, 2, (struct xti_dim[]){{6, 1, 4}, {4, 6, 1}});
    xti_map_text(&t.m, &b);
    ck_assert_str_eq(b.s, "piece 0: dst[4*i0 + i1] = src0[i0 + 6*i1]   i0<6 i1<4\n");
    xti_str_free(&b);
    b = (struct xti_str){0};
    rich_map(&h);
    memcpy(h.piece[1].value, "\x00\x00\x80\x3f", 4);
    xti_map_text(&h.m, &b);
    ck_assert_str_eq(b.s, "piece 0: dst[20*i0 + 3*i1 + 3] = src1[5*i0 + 2*i1 + 7*q0 - 2*q1 + 40]   i0<4 i1<6"
                          "   q0 = floor((3*i0 + i1 + 1)/4)   q1 = floor((i0 + 2*i1 + q0 + 2)/3)"
                          "   if i0 - i1 + q0 - 2*q1 + 5 >= 0\n"
                          "piece 1: dst[2*i0 + 90] = fill 0x3f800000   i0<9\n");
    xti_str_free(&b);
    b = (struct xti_str){0};
    xti_map_text(&e.m, &b);
    add_piece(&e, 2, 5, 0, 0, NULL);
    xti_map_text(&e.m, &b);
    add_piece(&e, 0, INT64_MIN, 1, 0, NULL);
    xti_map_text(&e.m, &b);
    ck_assert_str_eq(b.s, "nothing to copy\npiece 0: dst[0] = src2[5]\npiece 0: dst[0] = src2[5]\n"
                          "piece 1: dst[1] = src0[-9223372036854775808]\n");
    xti_str_free(&b);
}
END_TEST

START_TEST(the_json_of_a_map_has_every_key_of_every_piece)
{
    struct hand h, e = new_hand(1);
    struct xti_str b = {0};
    rich_map(&h);
    memcpy(h.piece[1].value, "\x00\x00\x80\x3f", 4);
    xti_map_json(&h.m, &b);
    ck_assert_str_eq(
        b.s, "[{\"source\":1,\"value\":null,\"soff\":40,\"doff\":3,\"dims\":[[4,5,20],[6,2,3]],"
             "\"divs\":[{\"den\":4,\"c\":1,\"x\":[3,1],\"q\":[]},{\"den\":3,\"c\":2,\"x\":[1,2],\"q\":[1]}],"
             "\"sq\":[7,-2],\"guards\":[{\"c\":5,\"x\":[1,-1],\"q\":[1,-2]}]},"
             "{\"source\":null,\"value\":\"0000803f\",\"soff\":0,\"doff\":90,\"dims\":[[9,0,2]],"
             "\"divs\":[],\"sq\":[],\"guards\":[]}]");
    xti_str_free(&b);
    b = (struct xti_str){0};
    xti_map_json(&e.m, &b);
    ck_assert_str_eq(b.s, "[]");
    xti_str_free(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sig");
    TCase *tc = tcase_create("sig");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, the_unit_of_a_memcpy_is_the_largest_that_divides_its_length_and_offsets);
    tcase_add_test(tc, maps_that_cannot_be_widened_keep_their_element);
    tcase_add_test(tc, widening_divides_strides_and_replicates_fill_values);
    tcase_add_test(tc, a_div_of_the_innermost_dim_widens_as_far_as_it_is_constant_over_a_unit);
    tcase_add_test(tc, a_random_map_widened_to_any_unit_up_to_its_own_copies_the_same_bytes);
    tcase_add_test(tc, the_unit_of_a_canonical_affine_piece_is_exactly_what_enumeration_finds);
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
    tcase_add_test(tc, a_random_chain_widened_and_normalized_copies_what_its_graph_says);
    tcase_add_test(tc, widening_undoes_what_narrowing_does);
    tcase_add_test(tc, running_out_of_memory_leaves_nothing_behind);
    tcase_add_test(tc, the_index_is_32_bits_wide_only_when_spans_and_counts_fit);
    tcase_add_test(tc, numerators_guards_and_the_sum_of_pieces_decide_the_index_width_too);
    tcase_add_test(tc, the_text_of_a_map_shows_its_formulas);
    tcase_add_test(tc, the_json_of_a_map_has_every_key_of_every_piece);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
