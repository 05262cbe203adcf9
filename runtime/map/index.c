/* index.c: may a kernel count in 32 bits? Both the span of every side and the number of points decide: an
 * expanded scalar has a small span and any number of points, a few rows far apart have few points and a large
 * span. Sums of products are taken modulo 2^32 by kernels, which is exact when the result fits; only
 * numerators and guards need a true range, bounded here in 128 bits. Layer 2. */
#include "map/map.h"

#include "base/num.h"

typedef __int128 wide;

static const wide LIMIT = (wide)1 << 31;

struct range {
    wide lo, hi;
};

/* *r += a*[lo, hi]; false when that leaves 128 bits. */
static bool add_scaled(struct range *r, int64_t a, wide lo, wide hi)
{
    wide p, q;
    if (__builtin_mul_overflow((wide)a, lo, &p) || __builtin_mul_overflow((wide)a, hi, &q))
        return false;
    return !__builtin_add_overflow(r->lo, a < 0 ? q : p, &r->lo) &&
           !__builtin_add_overflow(r->hi, a < 0 ? p : q, &r->hi);
}

/* Interval bounds of a row over the box: sound; exact without divs. */
static bool row_range(const struct xti_piece *p, int64_t c, const int64_t *x, int n_q, const int64_t *q,
                      const struct range *div, struct range *r)
{
    *r = (struct range){c, c};
    for (int k = 0; k < p->n_dims; k++)
        if (!add_scaled(r, x[k], 0, (wide)p->dim[k].n - 1))
            return false;
    for (int j = 0; j < n_q; j++)
        if (!add_scaled(r, q[j], div[j].lo, div[j].hi))
            return false;
    return true;
}

static bool rows_fit(const struct xti_piece *p)
{
    struct range div[XTI_MAX_DIVS], r;
    for (int j = 0; j < p->n_divs; j++) {
        const struct xti_div *v = &p->div[j];
        if (!row_range(p, v->c, v->x, j, v->q, div, &r) || r.hi >= LIMIT || v->den >= LIMIT)
            return false;
        div[j] =
            (struct range){r.lo < 0 ? 0 : r.lo / v->den, r.hi / v->den}; /* numerators are never negative */
    }
    for (int j = 0; j < p->n_guards; j++) {
        const struct xti_guard *g = &p->guard[j];
        if (!row_range(p, g->c, g->x, p->n_divs, g->q, div, &r) || r.lo < -LIMIT || r.hi >= LIMIT)
            return false;
    }
    return true;
}

/* Points of the box, at most limit. */
static wide box_points(const struct xti_piece *p, wide limit)
{
    wide n = 1;
    for (int k = 0; k < p->n_dims && n < limit; k++)
        n *= p->dim[k].n;
    return n < limit ? n : limit;
}

bool xti_map_index32(const struct xti_map *m, int64_t slack)
{
    wide points = slack;
    if ((wide)m->dst_hi - m->dst_lo >= LIMIT)
        return false;
    for (int i = 0; i < m->n_srcs; i++)
        if ((wide)m->src_hi[i] - m->src_lo[i] >= LIMIT)
            return false;
    for (int i = 0; i < m->n_pieces; i++) {
        points += box_points(&m->piece[i], LIMIT);
        if (points >= LIMIT || !rows_fit(&m->piece[i]))
            return false;
    }
    return true;
}
