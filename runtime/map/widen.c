/* widen.c: the same copy in larger units, so that f16 [.., 64] and f32 [.., 32] are one map and one kernel.
 * In: a finished map. Out: a finished map whose elements are `unit` bytes. The innermost dim x of every piece
 * is split into x = g*y + z, 0 <= z < g, and z disappears into the element. A div or guard that depends on x
 * stays exact when z cannot change its value: with b its coefficient of x, G the gcd of b*g, every other
 * coefficient and the denominator,   floor((G*k + c + b*z) / (G*den)) = floor((k + floor(c/G)) / den)   if 0
 * <= c mod G + b*z < G for every z. Layer 2. */
#include "map/map.h"

#include <string.h>

#include "base/num.h"
#include "map/clone.h"

/* A row of a div or a guard, apart from where it is stored. */
struct row {
    int64_t c;
    int n_x, n_q; /* the last of x is the innermost dim */
    const int64_t *x, *q;
};

static struct row div_row(const struct xti_piece *p, int j)
{
    return (struct row){p->div[j].c, p->n_dims, j, p->div[j].x, p->div[j].q};
}

static struct row guard_row(const struct xti_piece *p, int j)
{
    return (struct row){p->guard[j].c, p->n_dims, p->n_divs, p->guard[j].x, p->guard[j].q};
}

/* The divisor G of a row whose innermost coefficient is not 0, for den (0: a guard); 0 when z matters. */
static int64_t row_divisor(const struct row *r, int64_t den, int g)
{
    int64_t b = r->x[r->n_x - 1], bg, most, G;
    if (!xti_mul64(b, g, &bg) || bg == INT64_MIN)
        return 0;
    G = xti_gcd64(bg, den);
    for (int i = 0; i < r->n_x - 1; i++)
        G = xti_gcd64(G, r->x[i]);
    for (int i = 0; i < r->n_q; i++)
        G = xti_gcd64(G, r->q[i]);
    if (!xti_mad64(b, g - 1, xti_floor_mod(r->c, G), &most))
        return 0;
    return most >= 0 && most < G && G != den ? G : 0;
}

static bool row_widens(const struct row *r, int64_t den, int g)
{
    return r->x[r->n_x - 1] == 0 || row_divisor(r, den, g) > 0;
}

static bool rows_widen(const struct xti_piece *p, int g)
{
    for (int j = 0; j < p->n_divs; j++) {
        struct row r = div_row(p, j);
        if ((p->src >= 0 && p->sq[j] % g) || !row_widens(&r, p->div[j].den, g))
            return false;
    }
    for (int j = 0; j < p->n_guards; j++) {
        struct row r = guard_row(p, j);
        if (!row_widens(&r, 0, g))
            return false;
    }
    return true;
}

static bool piece_widens(const struct xti_piece *p, int g)
{
    if (p->n_dims == 0)
        return false;
    const struct xti_dim *inner = &p->dim[p->n_dims - 1];
    bool fill = p->src < 0;
    if (inner->d != 1 || inner->n % g || p->doff % g || (!fill && (inner->s != 1 || p->soff % g)))
        return false;
    for (int k = 0; k < p->n_dims - 1; k++)
        if (p->dim[k].d % g || (!fill && p->dim[k].s % g))
            return false;
    return rows_widen(p, g);
}

static bool map_widens(const struct xti_map *m, int g)
{
    for (int i = 0; i < m->n_pieces; i++)
        if (!piece_widens(&m->piece[i], g))
            return false;
    return true;
}

int xti_map_unit(const struct xti_map *m)
{
    int g = m->n_pieces ? 16 / m->esize : 1;
    while (g > 1 && !map_widens(m, g))
        g /= 2;
    return m->esize * g;
}

/* ------------------------------------------------------------------------------------------------- widen */

static void divide(int n, const int64_t *from, int64_t G, int64_t *to)
{
    for (int i = 0; i < n; i++)
        to[i] = from[i] / G;
}

/* Divides a row by its divisor G into memory of its own; false when there is none. */
static bool divide_row(struct xti_arena *a, struct row *r, int64_t G, int g)
{
    int64_t *x = xti_arena_alloc(a, (size_t)(r->n_x + r->n_q) * sizeof *x), *q = x ? x + r->n_x : NULL;
    if (!x)
        return false;
    x[r->n_x - 1] = r->x[r->n_x - 1] * g / G;
    divide(r->n_x - 1, r->x, G, x);
    divide(r->n_q, r->q, G, q);
    *r = (struct row){xti_floor_div(r->c, G), r->n_x, r->n_q, x, q};
    return true;
}

static bool widen_div(struct xti_arena *a, struct xti_piece *p, int j, int g)
{
    struct xti_div *v = &p->div[j];
    struct row r = div_row(p, j);
    if (v->x[p->n_dims - 1] == 0)
        return true;
    int64_t G = row_divisor(&r, v->den, g);
    if (!divide_row(a, &r, G, g))
        return false;
    *v = (struct xti_div){v->den / G, r.c, r.x, r.q};
    return true;
}

static bool widen_guard(struct xti_arena *a, struct xti_piece *p, int j, int g)
{
    struct row r = guard_row(p, j);
    if (r.x[r.n_x - 1] == 0)
        return true;
    if (!divide_row(a, &r, row_divisor(&r, 0, g), g))
        return false;
    p->guard[j] = (struct xti_guard){r.c, r.x, r.q};
    return true;
}

/* Numbers that are not strides of the innermost dim: all are multiples of g. */
static bool widen_offsets(struct xti_arena *a, struct xti_piece *p, int g)
{
    int64_t *sq = xti_arena_alloc(a, (size_t)p->n_divs * sizeof *sq);
    if (!sq)
        return false;
    for (int j = 0; j < p->n_divs; j++)
        sq[j] = p->sq[j] / g;
    p->sq = sq;
    p->soff /= g;
    p->doff /= g;
    for (int k = 0; k < p->n_dims - 1; k++) {
        p->dim[k].s /= g;
        p->dim[k].d /= g;
    }
    return true;
}

static bool widen_piece(struct xti_arena *a, struct xti_piece *p, int esize, int g)
{
    for (int j = 0; j < p->n_divs; j++)
        if (!widen_div(a, p, j, g))
            return false;
    for (int j = 0; j < p->n_guards; j++)
        if (!widen_guard(a, p, j, g))
            return false;
    if (!widen_offsets(a, p, g))
        return false;
    for (int i = 1; i < g; i++)
        memcpy(p->value + i * esize, p->value, (size_t)esize);
    struct xti_dim *inner = &p->dim[p->n_dims - 1];
    inner->n /= g;
    p->n_dims -= inner->n == 1; /* rows keep a coefficient more than is read */
    return true;
}

/* Every access is a whole unit, so that bounds round inwards. */
static void widen_bounds(int64_t *lo, int64_t *hi, int g)
{
    *lo = -xti_floor_div(-*lo, g);
    *hi = xti_floor_div(*hi + 1, g) - 1;
}

xt_status xti_map_widen(const struct xti_map *m, int unit, struct xti_map *out, struct xti_err *err)
{
    int g = unit / m->esize;
    bool ok = true;
    *out = (struct xti_map){0};
    if (unit > 16 || g < 1 || unit % m->esize || (g & (g - 1)) || (g > 1 && !map_widens(m, g)))
        return xti_fail(err, XT_EINVAL, "the map of %d-byte elements does not widen to %d bytes", m->esize,
                        unit);
    xt_status s = xti_map_clone(m, out, err);
    if (s || g == 1)
        return s;
    out->esize = unit;
    out->numel /= g;
    widen_bounds(&out->dst_lo, &out->dst_hi, g);
    for (int i = 0; i < m->n_srcs; i++)
        widen_bounds(&out->src_lo[i], &out->src_hi[i], g);
    for (int i = 0; ok && i < m->n_pieces; i++)
        ok = widen_piece(&out->arena, &out->piece[i], m->esize, g);
    if (ok)
        return XT_OK;
    xti_arena_free(&out->arena);
    *out = (struct xti_map){0};
    return xti_fail(err, XT_ENOMEM, "no memory for a map of %d pieces", m->n_pieces);
}
