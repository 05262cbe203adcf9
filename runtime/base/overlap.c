/* overlap.c: do two strided boxes of addresses meet, does one box meet itself.
 * Both are bounded linear Diophantine problems: is there an integer x, 0 <= x[i] <= u[i], with sum c[i]*x[i]
 * = r? In: extents, strides and offsets in elements, any sign and size. Out: NO and YES are exact; UNKNOWN
 * means that the work cap was hit or a sum does not fit in 128 bits. The search is a loop with its own stack:
 * coefficients by descending size, pruned by range and by the gcd of the later ones, so that two unknowns
 * cost one step and three cost one step a value of the first. The problem is NP-hard in general, hence the
 * cap. Layer 0. */
#include "base/overlap.h"

#include <stdlib.h>

#include "base/num.h"

enum {
    MAX_TERMS = 2 * XTI_BOX_DIMS,
    STEP_CAP = 1 << 16 /* about 2 ms: a step is a few 128-bit divisions */
};

typedef __int128 wide;

struct term {
    wide c, u; /* coefficient >= 1, below 2^64; bound of the unknown >= 1 */
};

struct problem {
    int n;
    struct term t[MAX_TERMS];
    wide r;
    bool too_big; /* a sum left 128 bits */
};

static bool add_wide(wide a, wide b, wide *out) { return !__builtin_add_overflow(a, b, out); }
static bool mul_wide(wide a, wide b, wide *out) { return !__builtin_mul_overflow(a, b, out); }

static wide gcd_wide(wide a, wide b)
{
    while (b) {
        wide t = a % b;
        a = b;
        b = t;
    }
    return a;
}

static wide floor_wide(wide a, wide b) { return a / b - (a % b < 0); }

/* Adds coef*x, 0 <= x <= u. A negative coefficient is turned round by x -> u - x. */
static void add_term(struct problem *p, wide coef, wide u)
{
    wide shift = 0;
    if (u <= 0 || coef == 0)
        return;
    if (coef < 0) {
        if (!mul_wide(-coef, u, &shift) || !add_wide(p->r, shift, &p->r))
            p->too_big = true;
        coef = -coef;
    }
    if (p->n == MAX_TERMS)
        p->too_big = true;
    else
        p->t[p->n++] = (struct term){coef, u};
}

static int by_coefficient(const void *a, const void *b)
{
    wide x = ((const struct term *)a)->c, y = ((const struct term *)b)->c;
    return (x > y) - (x < y);
}

/* Joins terms whose sums together are again every multiple of the smaller coefficient in a range:
 * c*[0,u] + k*c*[0,v] = c*[0, u + k*v] when k <= u + 1. Dense boxes collapse to one term. Leaves t ascending.
 */
static void join_terms(struct problem *p)
{
    qsort(p->t, (size_t)p->n, sizeof *p->t, by_coefficient);
    for (int i = 0; i < p->n; i++) {
        struct term *a = &p->t[i];
        int kept = i + 1;
        for (int j = i + 1; j < p->n; j++) {
            struct term b = p->t[j];
            wide add, u;
            if (b.c % a->c == 0 && b.c / a->c <= a->u + 1 && mul_wide(b.c / a->c, b.u, &add) &&
                add_wide(a->u, add, &u))
                a->u = u;
            else
                p->t[kept++] = b;
        }
        p->n = kept;
    }
}

/* One unknown of the search: its term and what is known about all later ones. */
struct level {
    wide c, u;
    wide gcd, most; /* of the later terms: gcd (0: there is none) and largest sum */
    wide m, inv;    /* x = (r/g)*inv modulo m makes r - c*x a multiple of gcd; g = gcd(c, gcd) */
    wide g;
    wide r, x, x_max; /* while searching: what is left for this and the later terms; next candidate; last */
};

/* a^-1 modulo m, both below 2^64 and coprime; 0 for m = 1. */
static wide inverse(wide a, wide m)
{
    wide r0 = m, r1 = a % m, t0 = 0, t1 = 1;
    while (r1) {
        wide k = r0 / r1, t = r0 - k * r1;
        r0 = r1, r1 = t;
        t = t0 - k * t1;
        t0 = t1, t1 = t;
    }
    return m == 1 ? 0 : t0 < 0 ? t0 + m : t0;
}

/* a*b modulo m for 0 <= a, b < m < 2^64. */
static wide mul_mod(wide a, wide b, wide m)
{
    return (wide)((unsigned __int128)a * (unsigned __int128)b % (unsigned __int128)m);
}

/* Levels from the terms, largest coefficient first. False when a sum does not fit. */
static bool make_levels(const struct problem *p, struct level *l)
{
    wide gcd = 0, most = 0, sum;
    for (int i = 0; i < p->n; i++) {
        struct level *v = &l[p->n - 1 - i];
        *v = (struct level){.c = p->t[i].c, .u = p->t[i].u, .gcd = gcd, .most = most};
        v->g = gcd_wide(v->c, gcd);
        v->m = gcd ? gcd / v->g : 1;
        v->inv = inverse(v->c / v->g, v->m);
        if (!mul_wide(v->c, v->u, &sum) || !add_wide(most, sum, &most))
            return false;
        gcd = v->g;
    }
    return true;
}

/* Sets the candidates of a level for remainder r (0 <= r): those that leave the later terms a remainder in
 * [0, most] that their gcd divides. False when there are none. */
static bool enter(struct level *l, wide r)
{
    wide lo, first;
    l->r = r;
    if (r % l->g)
        return false;
    lo = r > l->most ? -floor_wide(l->most - r, l->c) : 0; /* ceil((r - most)/c) */
    l->x_max = r / l->c < l->u ? r / l->c : l->u;
    if (!l->gcd) { /* the last unknown: r must be used up */
        l->x = r / l->c;
        return r % l->c == 0 && l->x <= l->u;
    }
    first = mul_mod(r / l->g % l->m, l->inv, l->m);
    l->x = lo + (first - lo % l->m + l->m) % l->m;
    return l->x <= l->x_max;
}

/* Solves *p, spending *steps. */
static enum xti_answer solve(struct problem *p, int64_t *steps)
{
    struct level l[MAX_TERMS];
    join_terms(p);
    if (p->too_big || !make_levels(p, l))
        return XTI_UNKNOWN;
    if (p->r < 0 || p->n == 0)
        return p->r == 0 ? XTI_YES : XTI_NO;
    int k = 0, last = p->n - 1;
    bool live = enter(&l[0], p->r);
    while (k >= 0) {
        if (!live) { /* back to the level before, its next candidate */
            if (--k < 0)
                return XTI_NO;
            l[k].x += l[k].m;
            live = l[k].x <= l[k].x_max;
            continue;
        }
        if (k == last)
            return XTI_YES;
        if (--*steps < 0)
            return XTI_UNKNOWN;
        wide left = l[k].r - l[k].c * l[k].x;
        live = enter(&l[++k], left);
    }
    return XTI_NO;
}

static bool is_empty(int rank, const int64_t *n)
{
    for (int i = 0; i < rank; i++)
        if (n[i] <= 0)
            return true;
    return false;
}

enum xti_answer xti_boxes_meet(int rank_a, const int64_t *n_a, const int64_t *st_a, int64_t off_a, int rank_b,
                               const int64_t *n_b, const int64_t *st_b, int64_t off_b)
{
    struct problem p = {.r = (wide)off_b - off_a};
    int64_t steps = STEP_CAP;
    if (is_empty(rank_a, n_a) || is_empty(rank_b, n_b))
        return XTI_NO;
    for (int i = 0; i < rank_a; i++)
        add_term(&p, st_a[i], (wide)n_a[i] - 1);
    for (int i = 0; i < rank_b; i++)
        add_term(&p, -(wide)st_b[i], (wide)n_b[i] - 1);
    return solve(&p, &steps);
}

/* --------------------------------------------------------------------------------------- one box and itself
 */

/* The dims with an extent > 1 as terms (|stride|, n - 1), ascending; -1 when there are more than
 * XTI_BOX_DIMS. */
static int box_terms(int rank, const int64_t *n, const int64_t *st, struct term *t)
{
    int k = 0;
    for (int i = 0; i < rank; i++) {
        if (n[i] <= 1)
            continue;
        if (k == XTI_BOX_DIMS)
            return -1;
        t[k++] = (struct term){(wide)xti_abs64(st[i]), (wide)n[i] - 1};
    }
    qsort(t, (size_t)k, sizeof *t, by_coefficient);
    return k;
}

/* More than XTI_BOX_DIMS strides cannot each exceed the span below in 64 bits. The span fits: before a term
 * of at most 2^63 * 2^63 is added it is less than that term's stride. */
bool xti_nested(int rank, const int64_t *n, const int64_t *st)
{
    struct term t[XTI_BOX_DIMS];
    int k = box_terms(rank, n, st, t);
    wide span = 0;
    for (int i = 0; i < k; i++) {
        if (t[i].c <= span)
            return false;
        span += t[i].c * t[i].u;
    }
    return k >= 0;
}

/* Two points meet iff sum c[i]*z[i] = 0 for some z != 0, |z[i]| <= u[i]; say its first nonzero is z[i] > 0,
 * with z[j] = 0 for the larger coefficients. With w = z[i] - 1 and y[j] = z[j] + u[j] that is c[i]*w + sum
 * c[j]*y[j] = sum c[j]*u[j] - c[i], 0 <= w < u[i], 0 <= y[j] <= 2*u[j], over the smaller c[j]. */
static enum xti_answer meets_from(int i, const struct term *t, int64_t *steps)
{
    struct problem p = {.r = -t[i].c};
    wide span;
    for (int j = 0; j < i; j++) {
        add_term(&p, t[j].c, 2 * t[j].u);
        if (!mul_wide(t[j].c, t[j].u, &span) || !add_wide(p.r, span, &p.r))
            p.too_big = true;
    }
    add_term(&p, t[i].c, t[i].u - 1);
    return solve(&p, steps);
}

/* Two dims alone meet when a multiple of one stride is a multiple of the other within both extents: the
 * common mistake (a stride too small, or 0), answered without a search and at any size. */
static bool two_dims_meet(const struct term *a, const struct term *b)
{
    wide g = gcd_wide(a->c, b->c);
    return g && b->c / g <= a->u && a->c / g <= b->u;
}

static bool some_dims_meet(int k, const struct term *t)
{
    for (int i = 0; i < k; i++)
        for (int j = 0; j < i; j++)
            if (two_dims_meet(&t[i], &t[j]))
                return true;
    return k > 0 && t[0].c == 0;
}

enum xti_answer xti_box_self_meets(int rank, const int64_t *n, const int64_t *st)
{
    struct term t[XTI_BOX_DIMS];
    int64_t steps = STEP_CAP;
    enum xti_answer worst = XTI_NO;
    if (is_empty(rank, n) || xti_nested(rank, n, st))
        return XTI_NO;
    int k = box_terms(rank, n, st, t);
    if (k < 0)
        return XTI_UNKNOWN; /* more dims than any tensor that fits in memory */
    if (some_dims_meet(k, t))
        return XTI_YES;
    for (int i = 0; i < k; i++) {
        enum xti_answer a = meets_from(i, t, &steps);
        if (a == XTI_YES)
            return XTI_YES;
        if (a == XTI_UNKNOWN)
            worst = XTI_UNKNOWN;
    }
    return worst;
}
