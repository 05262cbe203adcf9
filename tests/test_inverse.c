/* test_inverse.c: the map asked backwards answers as the map's own enumeration does, on random chains. */
#include <string.h>

#include "support/inverse.h"
#include "support/map_of.h"

struct counts {
    struct inverse *v;
    const struct xti_map *m;
    int64_t *readers[8], written;
    bool exact; /* no divs in an address, and no guards on points that share a source element */
};

static bool visit(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    struct counts *c = arg;
    int64_t from = -1;
    const struct xti_piece *q = inverse_piece(c->v, d, &from);
    ck_assert_ptr_eq(q, p);
    if (p->src >= 0) {
        ck_assert_int_eq(from, s);
        c->readers[p->src][s]++;
    }
    c->written++;
    return true;
}

static bool is_exact(const struct xti_map *m)
{
    for (int i = 0; i < m->n_pieces; i++)
        if (m->piece[i].n_divs || m->piece[i].n_guards)
            return false;
    return true;
}

static void check_sources(struct counts *c)
{
    for (int i = 0; i < c->m->n_srcs; i++)
        for (int64_t s = 0; s <= c->m->src_hi[i]; s++) {
            int64_t want = c->readers[i][s], got = inverse_readers(c->v, i, s, INT64_MAX);
            ck_assert_msg(c->exact ? got == want : got >= (want > 0), "source %d, element %d: %d, not %d", i,
                          (int)s, (int)got, (int)want);
        }
}

/* The sum over all sectors of the bytes that matter is what the map touches, each byte once. */
static void check_sectors(struct counts *c)
{
    int64_t e = c->m->esize, bytes = 0;
    for (int64_t at = 0; at <= c->m->dst_hi * e / INVERSE_SECTOR; at++) {
        int64_t s, first = at * INVERSE_SECTOR / e, here = 0;
        for (int64_t d = first; d < first + INVERSE_SECTOR / e; d++)
            here += inverse_piece(c->v, d, &s) ? e : 0;
        ck_assert_int_eq(inverse_sector_bytes(c->v, -1, at), here ? here : e);
        bytes += here;
    }
    ck_assert_int_eq(bytes, c->written * e);
}

START_TEST(the_inverse_of_a_random_map_is_what_its_enumeration_says)
{
    struct random_graph_options opt = {.max_numel = 2000, .no_empty = true};
    struct xt_graph *g = random_graph((uint64_t)_i, &opt);
    struct xti_map m;
    fuse(g, &m);
    struct counts c = {.v = inverse_new(&m), .m = &m, .exact = is_exact(&m)};
    ck_assert(c.v && m.n_srcs <= 8);
    for (int i = 0; i < m.n_srcs; i++)
        c.readers[i] = calloc((size_t)m.src_hi[i] + 2, sizeof **c.readers);
    xti_map_visit(&m, visit, &c);
    ck_assert_int_eq(c.written, m.numel);
    check_sources(&c);
    if (m.dst_hi < 100000)
        check_sectors(&c);
    for (int i = 0; i < m.n_srcs; i++)
        free(c.readers[i]);
    inverse_free(c.v);
    xti_map_free(&m);
    xt_graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("inverse");
    TCase *c = tcase_create("inverse");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, the_inverse_of_a_random_map_is_what_its_enumeration_says, 0,
                        test_full() ? 5000 : 400);
    suite_add_tcase(s, c);
    return run_suite(s);
}
