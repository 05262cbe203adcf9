/* test_visible.c: the points that no guard hides, against looking at each point. */
#include <string.h>

#include "base/num.h"
#include "shard/layout.h"
#include "shard/visible.h"
#include "support/pick.h"
#include "support/suite.h"

static int64_t below(int64_t n) { return pick(0, n - 1); }

/* ---- distances */

static bool inside(int64_t a, int64_t m, int64_t r, int64_t i, int64_t lo, int64_t w)
{
    int64_t v = (r + a * i) % m;
    return v >= lo && v < lo + w;
}

static int64_t next_inside(int64_t a, int64_t m, int64_t r, int64_t i, int64_t lo, int64_t w)
{
    for (int64_t end = i + m; i < end; i++)
        if (inside(a, m, r, i, lo, w))
            return i;
    return -1;
}

/* post: first is the least i; from there, up, down or both lead to the next, whichever is the least that
 * stays. */
static void check_gaps(int64_t a, int64_t m, int64_t r, int64_t lo, int64_t w)
{
    struct xti_gaps g = xti_gaps_of(a, m, w);
    int64_t i = xti_gaps_first(a, m, r, lo, w), at;
    ck_assert_int_eq(i, next_inside(a, m, r, 0, lo, w));
    for (int n = 0; i >= 0 && n < 6; n++) {
        at = (r + a * i) % m - lo;
        bool rises = at + g.rise < w, falls = at >= g.fall;
        int64_t step = rises && falls ? (g.up < g.down ? g.up : g.down)
                       : rises        ? g.up
                       : falls        ? g.down
                                      : g.up + g.down;
        ck_assert_int_eq(i + step, next_inside(a, m, r, i + 1, lo, w));
        i += step;
    }
}

START_TEST(numbers_within_an_interval_are_three_distances_apart)
{
    for (int64_t m = 2; m < 26; m++)
        for (int64_t a = 0; a < m; a++)
            for (int64_t w = 1; w <= m; w++)
                for (int64_t lo = 0; lo + w <= m; lo++)
                    check_gaps(a, m, (a * 7 + lo * 3 + w) % m, lo, w);
    for (int n = 0; n < 300; n++) {
        int64_t m = 2 + below(5000), a = below(m), w = 1 + below(m);
        check_gaps(a, m, below(m), below(m - w + 1), w);
    }
    int64_t m = INT32_MAX, a = 1234567891, i = xti_gaps_first(a, m, 5, 77, 3);
    ck_assert(inside(a, m, 5, i, 77, 3));
}
END_TEST

/* ---- boxes */

enum { DIMS = 4, DIVS = 3, GUARDS = 4 };

struct made {
    struct xti_piece p;
    struct xti_dim dim[DIMS];
    struct xti_div div[DIVS];
    struct xti_guard guard[GUARDS];
    int64_t sq[DIVS], dx[DIVS][DIMS], dq[DIVS][DIVS], gx[GUARDS][DIMS], gq[GUARDS][DIVS], pos[DIMS];
};

static void point_into(struct made *b)
{
    b->p.dim = b->dim;
    b->p.div = b->div;
    b->p.guard = b->guard;
    b->p.sq = b->sq;
    for (int j = 0; j < DIVS; j++) {
        b->div[j].x = b->dx[j];
        b->div[j].q = b->dq[j];
    }
    for (int j = 0; j < GUARDS; j++) {
        b->guard[j].x = b->gx[j];
        b->guard[j].q = b->gq[j];
    }
}

/* Dims in some order of a message, one of them perhaps not sent: then nothing depends on it. */
static void draw_dims(struct made *b)
{
    int64_t elements = 1;
    b->p.n_dims = (int)below(DIMS) + 1;
    for (int i = 0; i < b->p.n_dims; i++) {
        b->dim[i] = (struct xti_dim){1 + below(i ? 6 : 120), below(19) - 9, 1 + below(50)};
        b->pos[i] = b->dim[i].n > 1 ? elements : 0;
        elements *= b->dim[i].n;
    }
}

static void draw_any(struct made *b)
{
    draw_dims(b);
    b->p.n_divs = (int)below(DIVS + 1);
    b->p.n_guards = 1 + (int)below(GUARDS);
    b->p.soff = 1 << 20; /* no address is negative */
    for (int j = 0; j < b->p.n_divs; j++) {
        b->div[j].den = 2 + below(40);
        b->div[j].c = below(100);
        b->sq[j] = below(19) - 9;
        for (int i = 0; i < b->p.n_dims; i++)
            b->dx[j][i] = below(21) - 10;
        for (int m = 0; m < j; m++)
            b->dq[j][m] = below(3) ? 0 : below(7) - 3;
    }
    for (int j = 0; j < b->p.n_guards; j++) {
        int64_t d = b->p.n_divs ? below(b->p.n_divs + 1) : 0,
                sign = (below(2) ? 1 : -1) * (1 + below(3) / 2 * 2);
        b->guard[j].c = below(80) - 40;
        for (int i = 0; i < b->p.n_dims; i++) /* of a div's remainder, or of anything */
            b->gx[j][i] = d < b->p.n_divs ? sign * b->dx[d][i] : below(5) - 2;
        for (int m = 0; m < b->p.n_divs; m++)
            b->gq[j][m] = d == m ? -sign * b->div[d].den : d < b->p.n_divs ? 0 : below(3) - 1;
    }
}

/* A cut axis that was reshaped: element L = c + a*x.. is in row floor(L/den), in column L - den*row, of which
 * rank floor(column/width), or the column's remainder by so many ranks, has `from`. */
static void draw_cut(struct made *b)
{
    int64_t den = 2 + below(90), width = 2 + below(12);
    bool cyclic = below(2);
    draw_dims(b);
    b->p.n_divs = b->p.n_guards = 2;
    b->div[0].den = den;
    b->div[1].den = width;
    int64_t c = below(1000); /* elements are counted from 0 */
    b->dq[1][0] = -den;
    b->sq[0] = den;
    b->sq[1] = cyclic ? 1 - width * XTI_PAGE : XTI_PAGE - width;
    int64_t of_column = cyclic ? XTI_PAGE : 1;
    for (int i = 0; i < b->p.n_dims; i++) {
        int64_t a = below(41) - 20;
        b->dx[0][i] = b->dx[1][i] = a;
        b->dim[i].s = of_column * a;
        c += a < 0 ? -a * (b->dim[i].n - 1) : 0;
    }
    b->div[0].c = b->div[1].c = c;
    b->sq[0] -= of_column * den;
    b->p.soff = of_column * c;
    int64_t from = below(1 + (cyclic ? width : den / width)), shift = below(3);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < b->p.n_dims; i++)
            b->gx[k][i] = (k ? -1 : 1) * b->dim[i].s;
        for (int j = 0; j < 2; j++)
            b->gq[k][j] = (k ? -1 : 1) * b->sq[j];
    }
    b->guard[0].c = b->p.soff - from * XTI_PAGE;
    b->guard[1].c = (from + 1) * XTI_PAGE - 1 - b->p.soff;
    b->p.soff -= shift * XTI_PAGE; /* where the box begins in its rank, whichever that is */
}

struct seen {
    int n;
    int64_t s[1 << 17], d[1 << 17];
};

static bool note(void *arg, int64_t s, int64_t d)
{
    struct seen *v = arg;
    if (v->n == 1 << 17)
        ck_abort_msg("a box has more points");
    v->s[v->n] = s;
    v->d[v->n++] = d;
    return true;
}

/* The definition in map.h. */
static void define(const struct made *b, const int64_t *x, struct seen *out)
{
    const struct xti_piece *p = &b->p;
    int64_t q[DIVS], s = p->soff, d = p->doff;
    for (int i = 0; i < p->n_dims; i++) {
        s += x[i] * p->dim[i].s;
        d += x[i] * p->dim[i].d;
    }
    for (int j = 0; j < p->n_divs; j++) {
        int64_t v = p->div[j].c;
        for (int i = 0; i < p->n_dims; i++)
            v += x[i] * p->div[j].x[i];
        for (int m = 0; m < j; m++)
            v += q[m] * p->div[j].q[m];
        q[j] = xti_floor_div(v, p->div[j].den);
        s += q[j] * p->sq[j];
    }
    for (int j = 0; j < p->n_guards; j++) {
        int64_t v = p->guard[j].c;
        for (int i = 0; i < p->n_dims; i++)
            v += x[i] * p->guard[j].x[i];
        for (int m = 0; m < p->n_divs; m++)
            v += q[m] * p->guard[j].q[m];
        if (v < 0)
            return;
    }
    note(out, s, d);
}

/* Dims are in rising order of their pos: the last is outermost. */
static void define_all(const struct made *b, struct seen *out)
{
    int64_t x[DIMS] = {0};
    int i;
    do {
        define(b, x, out);
        for (i = 0; i < b->p.n_dims && ++x[i] == b->p.dim[i].n; i++)
            x[i] = 0;
    } while (i < b->p.n_dims);
}

/* post: what is seen, in its order, is what the definition says; with fewer looks, as much of it, and false.
 */
static int check_box(struct made *b, struct seen *want, struct seen *got)
{
    int64_t looks = INT64_C(1) << 40, before = looks;
    bool sent = false;
    point_into(b);
    for (int i = 0; i < b->p.n_dims; i++)
        sent |= b->pos[i] > 0;
    want->n = got->n = 0;
    define_all(b, want);
    ck_assert(xti_box_visible(&b->p, b->pos, &looks, note, got) == sent);
    if (!sent)
        return 0;
    ck_assert_int_eq(got->n, want->n);
    ck_assert(!memcmp(got->s, want->s, (size_t)got->n * sizeof *got->s));
    ck_assert(!memcmp(got->d, want->d, (size_t)got->n * sizeof *got->d));
    int64_t took = before - looks, few = took - 1;
    ck_assert_int_gt(took, 0);
    got->n = 0;
    ck_assert(!xti_box_visible(&b->p, b->pos, &few, note, got) && got->n <= want->n);
    ck_assert(!memcmp(got->s, want->s, (size_t)got->n * sizeof *got->s));
    return want->n;
}

START_TEST(what_no_guard_hides_is_found_in_order)
{
    static struct seen want, got;
    static struct made b;
    long found = 0;
    for (int n = 0; n < 20000; n++) {
        memset(&b, 0, sizeof b);
        if (n % 2)
            draw_any(&b);
        else
            draw_cut(&b);
        found += check_box(&b, &want, &got);
    }
    printf("visible: %ld points in 20000 boxes\n", found);
    ck_assert_int_gt(found, 1000000);
}
END_TEST

/* What takes long is what is seen: a row of 2^30 points, each 10^6-th of them, in as many looks. */
START_TEST(what_is_hidden_takes_no_looks)
{
    static struct seen got;
    static struct made b;
    int64_t looks = 10000;
    b.p.n_dims = b.p.n_divs = b.p.n_guards = 1;
    b.dim[0] = (struct xti_dim){1 << 30, 1, 1};
    b.pos[0] = 1;
    b.div[0].den = 1000000007;
    b.dx[0][0] = 1234567;
    b.gx[0][0] = -1234567;
    b.gq[0][0] = 1000000007;
    b.guard[0].c = 999;
    point_into(&b);
    ck_assert(xti_box_visible(&b.p, b.pos, &looks, note, &got));
    ck_assert_int_gt(got.n, 1000);
    ck_assert_int_lt(got.n, 1150);
    ck_assert_int_lt(10000 - looks, 2 * got.n);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("visible");
    TCase *t = tcase_create("visible");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, numbers_within_an_interval_are_three_distances_apart);
    tcase_add_test(t, what_no_guard_hides_is_found_in_order);
    tcase_add_test(t, what_is_hidden_takes_no_looks);
    suite_add_tcase(s, t);
    return run_suite(s);
}
