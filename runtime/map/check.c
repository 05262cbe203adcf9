/* check.c: verifies the invariants of a finished map that can be verified without enumerating its points.
 * Layer 2. */
#include "map/map.h"

#include "base/num.h"

#define BROKEN(...) return xti_fail(err, XT_EINTERNAL, __VA_ARGS__)

enum { DISJOINT_PIECES = 24 }; /* more pieces are not compared with each other */

static bool mergeable(const struct xti_dim *outer, const struct xti_dim *inner)
{
    int64_t s, d;
    return xti_mul64(inner->n, inner->s, &s) && xti_mul64(inner->n, inner->d, &d) && s == outer->s &&
           d == outer->d;
}

static xt_status check_dims(const struct xti_piece *p, int at, struct xti_err *err)
{
    if (p->n_dims < 0 || p->n_dims > XTI_MAX_DIMS)
        BROKEN("map: piece %d has %d dims", at, p->n_dims);
    for (int i = 0; i < p->n_dims; i++) {
        const struct xti_dim *x = &p->dim[i];
        if (x->n < 2 || x->d < 1 || (p->src < 0 && x->s))
            BROKEN("map: piece %d, dim %d is (%lld, %lld, %lld)", at, i, (long long)x->n, (long long)x->s,
                   (long long)x->d);
        if (i && x[-1].d < x->d)
            BROKEN("map: piece %d, dims %d and %d are not in destination order", at, i - 1, i);
        if (i && xti_piece_affine(p) && mergeable(x - 1, x))
            BROKEN("map: piece %d, dims %d and %d are not merged", at, i - 1, i);
    }
    return XT_OK;
}

/* 2|a| <= den, and not -den/2 itself */
static bool is_residue(int64_t a, int64_t den) { return a > -(den - den / 2) && a <= den / 2; }

static bool are_residues(const struct xti_piece *p, int i)
{
    const struct xti_div *v = &p->div[i];
    bool all = true;
    for (int k = 0; k < p->n_dims; k++)
        all = all && is_residue(v->x[k], v->den);
    for (int k = 0; k < i; k++)
        all = all && is_residue(v->q[k], v->den);
    return all;
}

/* Divs: dens, and numerators that plain interval arithmetic shows not to be negative. */
static xt_status check_divs(const struct xti_piece *p, int at, struct xti_err *err)
{
    int64_t ql[XTI_MAX_DIVS], qh[XTI_MAX_DIVS], lo, hi;
    if (p->n_divs < 0 || p->n_divs > XTI_MAX_DIVS || p->n_guards < 0 || p->n_guards > XTI_MAX_GUARDS)
        BROKEN("map: piece %d has %d divs and %d guards", at, p->n_divs, p->n_guards);
    for (int i = 0; i < p->n_divs; i++) {
        const struct xti_div *v = &p->div[i];
        if (v->den < 2)
            BROKEN("map: piece %d, div %d has denominator %lld", at, i, (long long)v->den);
        if (!are_residues(p, i))
            BROKEN("map: piece %d, div %d: a coefficient is not reduced modulo %lld", at, i,
                   (long long)v->den);
        if (!xti_row_range(p, v->c, v->x, i, v->q, ql, qh, &lo, &hi))
            BROKEN("map: piece %d, div %d: its numerator does not fit in 64 bits", at, i);
        if (lo < 0 && !i)
            BROKEN("map: piece %d, div %d: its numerator goes down to %lld", at, i, (long long)lo);
        ql[i] = lo < 0 ? 0 : lo / v->den; /* a tighter proof than this one has shown lo >= 0 */
        qh[i] = hi / v->den;
    }
    return XT_OK;
}

static xt_status check_piece(const struct xti_map *m, int at, struct xti_err *err)
{
    const struct xti_piece *p = &m->piece[at];
    int64_t lo = p->doff, hi = p->doff, s_lo = p->soff, s_hi = p->soff;
    xt_status s = check_dims(p, at, err);
    if (!s)
        s = check_divs(p, at, err);
    if (s)
        return s;
    if (p->src < -1 || p->src >= m->n_srcs)
        BROKEN("map: piece %d reads source %d of %d", at, p->src, m->n_srcs);
    for (int i = 0; i < p->n_dims; i++)
        if (!xti_add_range(p->dim[i].d, 0, p->dim[i].n - 1, &lo, &hi) ||
            (xti_piece_affine(p) && !xti_add_range(p->dim[i].s, 0, p->dim[i].n - 1, &s_lo, &s_hi)))
            BROKEN("map: piece %d: its addresses do not fit in 64 bits", at);
    if (lo < m->dst_lo || hi > m->dst_hi)
        BROKEN("map: piece %d writes [%lld, %lld] outside [%lld, %lld]", at, (long long)lo, (long long)hi,
               (long long)m->dst_lo, (long long)m->dst_hi);
    if (p->src >= 0 && xti_piece_affine(p) && (s_lo < m->src_lo[p->src] || s_hi > m->src_hi[p->src]))
        BROKEN("map: piece %d reads [%lld, %lld] outside [%lld, %lld]", at, (long long)s_lo, (long long)s_hi,
               (long long)m->src_lo[p->src], (long long)m->src_hi[p->src]);
    if (at && p[-1].doff > p->doff)
        BROKEN("map: pieces %d and %d are not in destination order", at - 1, at);
    return XT_OK;
}

static bool disjoint(const struct xti_piece *a, const struct xti_piece *b)
{
    int64_t n[2][XTI_MAX_DIMS], d[2][XTI_MAX_DIMS];
    const struct xti_piece *p[2] = {a, b};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < p[k]->n_dims; i++) {
            n[k][i] = p[k]->dim[i].n;
            d[k][i] = p[k]->dim[i].d;
        }
    return xti_boxes_meet(a->n_dims, n[0], d[0], a->doff, b->n_dims, n[1], d[1], b->doff) != XTI_YES;
}

/* Boxes without guards are disjoint and, when there are no others, make up the output. */
static xt_status check_cover(const struct xti_map *m, struct xti_err *err)
{
    int64_t sum = 0;
    bool guarded = false;
    for (int i = 0; i < m->n_pieces; i++) {
        guarded = guarded || m->piece[i].n_guards;
        if (!m->piece[i].n_guards)
            sum += xti_piece_numel(&m->piece[i]);
    }
    if (sum > m->numel || (!guarded && sum < m->numel))
        BROKEN("map: %lld elements written, %lld in the output", (long long)sum, (long long)m->numel);
    for (int i = 0; m->n_pieces <= DISJOINT_PIECES && i < m->n_pieces; i++)
        for (int j = 0; j < i; j++)
            if (!m->piece[i].n_guards && !m->piece[j].n_guards && !disjoint(&m->piece[j], &m->piece[i]))
                BROKEN("map: pieces %d and %d write one element", j, i);
    return XT_OK;
}

xt_status xti_map_check(const struct xti_map *m, struct xti_err *err)
{
    if (m->n_pieces < 0 || m->n_pieces > XTI_MAX_PIECES)
        BROKEN("map: %d pieces", m->n_pieces);
    if (m->esize < 1 || m->esize > 16 || m->esize & (m->esize - 1))
        BROKEN("map: elements of %d bytes", m->esize);
    for (int i = 0; i < m->n_pieces; i++) {
        xt_status s = check_piece(m, i, err);
        if (s)
            return s;
    }
    return check_cover(m, err);
}
