/* canon.c: the finished form of a working piece. Numerators are brought into a unique form: coefficients in
 * (-den/2, den/2], the constant the smallest that keeps the numerator from being negative. Layer 2. */
#include "map/work.h"

#include <string.h>

/* Residue of a modulo den in (-den/2, den/2]; *t = (residue - a)/den. */
static int64_t residue(int64_t a, int64_t den, int64_t *t)
{
    int64_t r = xti_floor_mod(a, den), q = xti_floor_div(a, den);
    bool high = r > den / 2;
    *t = -(q + high);
    return high ? r - den : r;
}

/* Makes the coefficients of div q residues, by q := q - sum t*x in all other rows. */
static void settle_coefs(struct xti_work *p, int q)
{
    int64_t e[XTI_COLS], t;
    int64_t *num = xti_row(p, p->num[q]);
    xti_scratch_zero(p, e);
    for (int v = 1; v < p->nc; v++) {
        num[v] = residue(num[v], p->ext[q], &t);
        e[v] = -t;
    }
    e[q] = 1;
    xti_work_subst(p, q, e);
}

/* The smallest constant = c modulo den for which the numerator is never negative, given that it reaches down
 * to lo now. */
static bool lift_constant(int64_t c, int64_t lo, int64_t den, int64_t *out)
{
    int64_t below, r = xti_floor_mod(c, den);
    if (!xti_sub64(c, lo, &below))
        return false;
    int64_t missing = below > r ? below - r : 0;
    return xti_mad64(missing / den + (missing % den > 0), den, r, out);
}

/* Bounds of the divs settled so far, by column. */
struct settled {
    int64_t lo[XTI_COLS], hi[XTI_COLS];
};

/* Plain interval arithmetic over settled divs: looser than xti_work_range, but no nest is too deep for it. */
static bool interval(const struct xti_work *p, const int64_t *e, const struct settled *q, int64_t *lo,
                     int64_t *hi)
{
    bool fits = true;
    *lo = *hi = e[0];
    for (int v = 1; v < p->nc && fits; v++) {
        bool dim = p->kind[v] == XTI_COL_DIM;
        int64_t l = dim ? 0 : q->lo[v], h = dim ? p->ext[v] - 1 : q->hi[v];
        if (e[v])
            fits = xti_mad64(e[v], e[v] > 0 ? l : h, *lo, lo) && xti_mad64(e[v], e[v] > 0 ? h : l, *hi, hi);
    }
    return fits;
}

static bool tightest(const struct xti_work *p, const int64_t *e, const struct settled *q, int64_t *lo,
                     int64_t *hi)
{
    int64_t l, h;
    bool one = xti_work_range(p, e, lo, hi), two = interval(p, e, q, &l, &h);
    if (two && (!one || l > *lo))
        *lo = l;
    if (two && (!one || h < *hi))
        *hi = h;
    return one || two;
}

static void settle_constant(struct xti_work *p, int q, struct settled *done)
{
    int64_t e[XTI_COLS], lo, hi, down, den = p->ext[q];
    int64_t *num = xti_row(p, p->num[q]), c = num[0];
    if (!tightest(p, num, done, &lo, &hi) || !lift_constant(c, lo, den, &num[0]) ||
        !xti_sub64(c, num[0], &down) || !xti_sub64(hi, down, &hi) || !xti_sub64(lo, down, &lo)) {
        xti_pool_fail(p->pool, XT_EOVERFLOW);
        return;
    }
    done->lo[q] = lo / den;
    done->hi[q] = hi / den;
    xti_scratch_zero(p, e);
    e[q] = 1;
    e[0] = down / den;
    xti_work_subst(p, q, e);
}

/* Order of two divs by what they compute, for equal maps to list them equally; names of columns do not count.
 */
static int compare_divs(const struct xti_work *p, int a, int b, int n_dims, const short *order, int n_done,
                        const short *done)
{
    const int64_t *x = xti_row(p, p->num[a]), *y = xti_row(p, p->num[b]);
    if (p->ext[a] != p->ext[b])
        return p->ext[a] < p->ext[b] ? -1 : 1;
    for (int i = 0; i < n_dims; i++)
        if (x[order[i]] != y[order[i]])
            return x[order[i]] < y[order[i]] ? -1 : 1;
    for (int i = 0; i < n_done; i++)
        if (x[done[i]] != y[done[i]])
            return x[done[i]] < y[done[i]] ? -1 : 1;
    return x[0] < y[0] ? -1 : x[0] > y[0];
}

static bool needs_any(const struct xti_work *p, int q, int n, const short *divs)
{
    for (int i = 0; i < n; i++)
        if (xti_row(p, p->num[q])[divs[i]])
            return true;
    return false;
}

/* Divs in an order in which each comes after those that it needs, smallest first. */
static void sort_divs(const struct xti_work *p, int n_dims, const short *order, int n, short *divs)
{
    for (int i = 0; i < n; i++) {
        int best = -1;
        for (int j = i; j < n; j++)
            if (!needs_any(p, divs[j], n - i, divs + i) &&
                (best < 0 || compare_divs(p, divs[j], divs[best], n_dims, order, i, divs) < 0))
                best = j;
        short t = divs[i];
        divs[i] = divs[best];
        divs[best] = t;
    }
}

static int compare_guards(const struct xti_guard *a, const struct xti_guard *b, int n_dims, int n_divs)
{
    for (int i = 0; i < n_dims; i++)
        if (a->x[i] != b->x[i])
            return a->x[i] < b->x[i] ? -1 : 1;
    for (int i = 0; i < n_divs; i++)
        if (a->q[i] != b->q[i])
            return a->q[i] < b->q[i] ? -1 : 1;
    return a->c < b->c ? -1 : a->c > b->c;
}

static void sort_guards(struct xti_piece *out)
{
    for (int i = 1; i < out->n_guards; i++)
        for (int j = i; j > 0; j--) {
            struct xti_guard *a = &out->guard[j - 1], *b = &out->guard[j], t = *b;
            if (compare_guards(a, b, out->n_dims, out->n_divs) <= 0)
                break;
            *b = *a;
            *a = t;
        }
}

static int64_t *new_row(struct xti_map *m, struct xti_pool *pool, int n)
{
    int64_t *v = xti_arena_room(&m->arena, (size_t)n * sizeof *v);
    if (!v)
        xti_pool_fail(pool, XT_ENOMEM);
    return v;
}

/* The row's coefficients at the given columns. */
static const int64_t *pick(const struct xti_work *p, struct xti_map *m, int r, int n, const short *cols)
{
    int64_t *v = new_row(m, p->pool, n);
    for (int i = 0; v && i < n; i++)
        v[i] = xti_row(p, r)[cols[i]];
    return v;
}

/* What it takes stays taken when the piece is merged into another. */
static bool alloc_arrays(struct xti_work *p, struct xti_map *m, struct xti_piece *out)
{
    int rows = out->n_divs + out->n_guards, width = out->n_dims + out->n_divs + 4;
    xti_pool_bytes(p->pool,
                   (size_t)out->n_dims * sizeof *out->dim + (size_t)(rows * width) * sizeof(int64_t));
    out->dim = xti_arena_room(&m->arena, (size_t)out->n_dims * sizeof *out->dim);
    out->div = out->n_divs ? xti_arena_alloc(&m->arena, (size_t)out->n_divs * sizeof *out->div) : NULL;
    out->guard =
        out->n_guards ? xti_arena_alloc(&m->arena, (size_t)out->n_guards * sizeof *out->guard) : NULL;
    if (out->dim && !out->div == !out->n_divs && !out->guard == !out->n_guards)
        return true;
    xti_pool_fail(p->pool, XT_ENOMEM);
    return false;
}

static void write_dims(const struct xti_work *p, const short *order, struct xti_piece *out)
{
    for (int i = 0; i < out->n_dims; i++) {
        int v = order[i];
        out->dim[i].n = p->ext[v];
        out->dim[i].s = p->off < 0 ? 0 : xti_row(p, p->off)[v];
        out->dim[i].d = xti_row(p, XTI_ROW_DST)[v];
    }
}

static void write_divs(const struct xti_work *p, struct xti_map *m, const short *order, const short *divs,
                       struct xti_piece *out)
{
    for (int i = 0; i < out->n_divs; i++) {
        int r = p->num[divs[i]];
        out->div[i].den = p->ext[divs[i]];
        out->div[i].c = xti_row(p, r)[0];
        out->div[i].x = pick(p, m, r, out->n_dims, order);
        out->div[i].q = pick(p, m, r, i, divs);
    }
    for (int i = 0; i < out->n_guards; i++) {
        out->guard[i].c = xti_row(p, p->guard[i])[0];
        out->guard[i].x = pick(p, m, p->guard[i], out->n_dims, order);
        out->guard[i].q = pick(p, m, p->guard[i], out->n_divs, divs);
    }
    if (out->n_divs)
        out->sq = pick(p, m, p->off < 0 ? XTI_ROW_ZERO : p->off, out->n_divs, divs);
}

void xti_work_finish(struct xti_work *p, struct xti_map *m, struct xti_piece *out)
{
    short order[XTI_COLS], divs[XTI_COLS], rows[XTI_MAX_ROWS];
    struct settled done;
    xti_pool_steps(p->pool, XTI_PIECE_STEPS);
    if (p->n_divs)
        xti_work_normal(p, false, order);
    out->n_dims = xti_work_normal(p, true, order);
    out->n_divs = xti_work_live(p, xti_work_rows(p, rows), rows, divs);
    out->n_guards = p->n_guards;
    for (int i = 0; i < out->n_divs && !p->pool->st; i++) {
        settle_coefs(p, divs[i]);
        settle_constant(p, divs[i], &done);
    }
    if (out->n_divs > XTI_MAX_DIVS)
        xti_pool_fail(p->pool, XT_EUNSUPPORTED);
    if (!p->pool->st && out->n_divs > 1)
        sort_divs(p, out->n_dims, order, out->n_divs, divs);
    if (p->pool->st || !alloc_arrays(p, m, out))
        return;
    out->doff = xti_row(p, XTI_ROW_DST)[0];
    out->soff = p->off < 0 ? 0 : xti_row(p, p->off)[0];
    write_dims(p, order, out);
    if (out->n_divs || out->n_guards)
        write_divs(p, m, order, divs, out);
    if (!p->pool->st)
        sort_guards(out);
}
