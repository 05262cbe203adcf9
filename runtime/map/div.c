/* div.c: bounds of affine forms over a box, and floors of them. mod(e, m) is e - m*floor(e/m), so that a
 * later reshape that puts the parts together again cancels the floor by plain addition. Layer 2. */
#include "map/work.h"

#include <string.h>

enum { RANGE_WORK = 64 };        /* nested divs looked at for one range; a sound "unknown" follows */
enum { FEW_DIVS = 8 };           /* with more a row without any is not looked for */
#define LARGE ((int64_t)1 << 40) /* numerators beyond it are reduced at once, lest a long chain overflows */

bool xti_add_range(int64_t a, int64_t l, int64_t h, int64_t *lo, int64_t *hi)
{
    return a > 0 ? xti_mad64(a, l, *lo, lo) && xti_mad64(a, h, *hi, hi)
                 : xti_mad64(a, h, *lo, lo) && xti_mad64(a, l, *hi, hi);
}

bool xti_row_range(const struct xti_piece *p, int64_t c, const int64_t *x, int n_q, const int64_t *q,
                   const int64_t *ql, const int64_t *qh, int64_t *lo, int64_t *hi)
{
    *lo = *hi = c;
    for (int i = 0; i < p->n_dims; i++)
        if (!xti_add_range(x[i], 0, p->dim[i].n - 1, lo, hi))
            return false;
    for (int i = 0; i < n_q; i++)
        if (!xti_add_range(q[i], ql[i], qh[i], lo, hi))
            return false;
    return true;
}

bool xti_piece_div_ranges(const struct xti_piece *p, int64_t *ql, int64_t *qh)
{
    for (int j = 0; j < p->n_divs; j++) {
        const struct xti_div *v = &p->div[j];
        int64_t l, h;
        if (!xti_row_range(p, v->c, v->x, j, v->q, ql, qh, &l, &h))
            return false;
        ql[j] = xti_floor_div(l, v->den);
        qh[j] = xti_floor_div(h, v->den);
    }
    return true;
}

static bool range_of(const struct xti_work *p, const int64_t *e, int *work, int64_t *lo, int64_t *hi);

/* a*q with a = -t*den is t*mod(num, den) - t*num: bounds of e with that put in, which are tighter. */
static bool range_mod(const struct xti_work *p, const int64_t *e, int q, int *work, int64_t *lo, int64_t *hi)
{
    int64_t r[XTI_COLS], den = p->ext[q], t = -(e[q] / den), top;
    const int64_t *num = xti_row(p, p->num[q]);
    for (int v = 0; v < p->nc; v++) {
        int64_t term;
        if (!xti_mul64(t, num[v], &term) || !xti_sub64(v == q ? 0 : e[v], term, &r[v]))
            return false;
    }
    return range_of(p, r, work, lo, hi) && xti_mul64(den - 1, t, &top) &&
           xti_add64(*lo, top < 0 ? top : 0, lo) && xti_add64(*hi, top > 0 ? top : 0, hi);
}

/* Does the form hold no div? Asked without a branch for each column, where it is likely. */
static bool is_plain(const struct xti_work *p, const int64_t *e)
{
    bool any = p->n_divs > FEW_DIVS;
    for (int v = 1; p->n_divs && !any && v < p->nc; v++)
        any = (e[v] != 0) & (p->kind[v] == XTI_COL_DIV);
    return !any;
}

/* Bounds of a form without divs. */
static bool range_of_dims(const struct xti_work *p, const int64_t *e, int64_t *lo, int64_t *hi)
{
    int64_t l = e[0], h = e[0], part;
    bool fits = true;
    for (int v = 1; v < p->nc; v++) {
        fits &= xti_mul64(e[v], e[v] ? p->ext[v] - 1 : 0, &part);
        fits &= xti_add64(l, part < 0 ? part : 0, &l);
        fits &= xti_add64(h, part > 0 ? part : 0, &h);
    }
    *lo = l;
    *hi = h;
    return fits;
}

static bool range_of(const struct xti_work *p, const int64_t *e, int *work, int64_t *lo, int64_t *hi)
{
    xti_pool_steps(p->pool, p->nc);
    if (p->n_divs && --*work < 0)
        return false;
    if (is_plain(p, e))
        return range_of_dims(p, e, lo, hi);
    *lo = *hi = e[0];
    for (int v = 1; v < p->nc; v++)
        if (e[v] && p->kind[v] == XTI_COL_DIV && e[v] % p->ext[v] == 0)
            return range_mod(p, e, v, work, lo, hi);
    for (int v = 1; v < p->nc; v++) {
        int64_t l = 0, h = p->ext[v] - 1;
        if (!e[v])
            continue;
        if (p->kind[v] == XTI_COL_DIV) {
            if (!range_of(p, xti_row(p, p->num[v]), work, &l, &h))
                return false;
            l = xti_floor_div(l, p->ext[v]);
            h = xti_floor_div(h, p->ext[v]);
        }
        if (!xti_add_range(e[v], l, h, lo, hi))
            return false;
    }
    return true;
}

bool xti_work_range(const struct xti_work *p, const int64_t *e, int64_t *lo, int64_t *hi)
{
    int work = RANGE_WORK;
    return range_of(p, e, &work, lo, hi);
}

/* Is floor(e/den) one number on the box? */
static bool one_period(const struct xti_work *p, const int64_t *e, int64_t den, int64_t *floor)
{
    int64_t lo, hi;
    if (!xti_work_range(p, e, &lo, &hi))
        return false;
    *floor = xti_floor_div(lo, den);
    return *floor == xti_floor_div(hi, den);
}

/* floor((T + floor(E/s))/d) = floor((s*T + E)/(s*d)), and -floor(E/s) = floor((s-1-E)/s). Left alone when the
 * numbers grow too large: flat is only simpler. */
static bool flatten(const struct xti_work *p, int64_t *num, int64_t *den, int q)
{
    int64_t r[XTI_COLS], s = p->ext[q], a = num[q], d;
    const int64_t *inner = xti_row(p, p->num[q]);
    if (!xti_mul64(*den, s, &d) || d > LARGE)
        return false;
    for (int v = 0; v < p->nc; v++) {
        int64_t t = v == q ? 0 : num[v];
        if (!xti_mul64(t, s, &t) || !(a > 0 ? xti_add64(t, inner[v], &t) : xti_sub64(t, inner[v], &t)))
            return false;
        r[v] = t;
    }
    if (a < 0 && !xti_add64(r[0], s - 1, &r[0]))
        return false;
    memcpy(num, r, (size_t)p->nc * sizeof *r);
    *den = d;
    return true;
}

static int find_unit_div(const struct xti_work *p, const int64_t *num)
{
    if (p->n_divs)
        for (int v = 1; v < p->nc; v++)
            if ((num[v] == 1 || num[v] == -1) && p->kind[v] == XTI_COL_DIV)
                return v;
    return 0;
}

static void take_constant(struct xti_pool *pool, int64_t *num, int64_t den, int64_t *out)
{
    if (num[0] >= 0 && num[0] < den)
        return;
    int64_t f = xti_floor_div(num[0], den);
    num[0] = xti_floor_mod(num[0], den);
    if (!xti_add64(out[0], f, &out[0]))
        xti_pool_fail(pool, XT_EOVERFLOW);
}

static void divide_by_gcd(const struct xti_work *p, int64_t *num, int64_t *den)
{
    int64_t g = *den;
    for (int v = 1; v < p->nc && g > 1; v++)
        if (num[v] == INT64_MIN)
            return;
        else if (num[v])
            g = xti_gcd64(g, num[v]);
    if (g < 2)
        return;
    *den /= g;
    for (int v = 1; v < p->nc; v++)
        num[v] /= g;
    num[0] = xti_floor_div(num[0], g);
}

/* Coefficients modulo den, with their signs. */
static void reduce_row(const struct xti_work *p, const int64_t *num, int64_t den, int64_t *low)
{
    low[0] = num[0];
    for (int v = 1; v < p->nc; v++)
        low[v] = num[v] < den && -den < num[v] ? num[v] : num[v] % den;
}

/* The same in (-den/2, den/2]. False: they are. */
static bool bring_near(const struct xti_work *p, int64_t den, int64_t *low)
{
    bool moved = false;
    for (int v = 1; v < p->nc; v++) {
        int64_t far = low[v] > den / 2 ? den : low[v] < 0 && -low[v] >= den - den / 2 ? -den : 0;
        moved |= far != 0;
        low[v] -= far;
    }
    return moved;
}

static void add_quotients(const struct xti_work *p, const int64_t *num, const int64_t *low, int64_t den,
                          int64_t *out)
{
    bool fits = true;
    for (int v = 1; v < p->nc; v++)
        if (num[v] != low[v])
            fits &= xti_add64(out[v], num[v] / den + (num[v] % den - low[v]) / den, &out[v]);
    if (!fits)
        xti_pool_fail(p->pool, XT_EOVERFLOW);
}

static bool any_large(const struct xti_work *p, const int64_t *num)
{
    for (int v = 1; v < p->nc; v++)
        if (num[v] > LARGE || num[v] < -LARGE)
            return true;
    return false;
}

bool xti_floor_reduce(const struct xti_work *p, int64_t *num, int64_t *den, int64_t *out, bool reduce)
{
    int64_t low[XTI_COLS], floor;
    xti_pool_steps(p->pool, 4 * p->nc);
    take_constant(p->pool, num, *den, out);
    for (int q; (q = find_unit_div(p, num)) && flatten(p, num, den, q);)
        take_constant(p->pool, num, *den, out);
    divide_by_gcd(p, num, den);
    reduce_row(p, num, *den, low);
    if (one_period(p, low, *den, &floor) || (bring_near(p, *den, low) && one_period(p, low, *den, &floor))) {
        add_quotients(p, num, low, *den, out);
        if (!xti_add64(out[0], floor, &out[0]))
            xti_pool_fail(p->pool, XT_EOVERFLOW);
        return false;
    }
    if (reduce || any_large(p, num)) {
        add_quotients(p, num, low, *den, out);
        memcpy(num, low, (size_t)p->nc * sizeof *num);
    }
    return true;
}

static int find_div(const struct xti_work *p, const int64_t *num, int64_t den, int skip)
{
    for (int v = 1; v < p->nc; v++)
        if (v != skip && p->kind[v] == XTI_COL_DIV && p->ext[v] == den &&
            !memcmp(xti_row(p, p->num[v]), num, (size_t)p->nc * sizeof *num))
            return v;
    return 0;
}

void xti_work_div(struct xti_work *p, int64_t *num, int64_t den, int64_t *out)
{
    if (!xti_floor_reduce(p, num, &den, out, false) || p->pool->st)
        return;
    int q = p->n_divs ? find_div(p, num, den, 0) : 0;
    out[q ? q : xti_div_new(p, num, den)] += 1;
}

static bool is_zero(const struct xti_work *p, const int64_t *v)
{
    int64_t any = 0;
    for (int i = 0; i < p->nc; i++)
        any |= v[i];
    return !any;
}

/* Renews one div. True when other rows have changed. */
static bool renew(struct xti_work *p, int q, bool reduce)
{
    int64_t num[XTI_COLS], out[XTI_COLS], den = p->ext[q];
    xti_scratch_load(p, num, p->num[q]);
    xti_scratch_zero(p, out);
    bool left = xti_floor_reduce(p, num, &den, out, reduce);
    if (p->pool->st)
        return false;
    int twin = left ? find_div(p, num, den, q) : 0;
    if (left && !twin) {
        int r = xti_row_own(p, p->num[q]);
        memcpy(xti_row(p, r), num, (size_t)p->nc * sizeof *num);
        p->num[q] = (short)r;
        p->ext[q] = den;
        if (is_zero(p, out))
            return false;
        out[q] = 1;
        xti_work_subst(p, q, out);
        return true;
    }
    if (twin)
        out[twin] += 1;
    xti_work_subst(p, q, out);
    xti_div_free(p, q);
    return true;
}

void xti_work_simplify(struct xti_work *p, bool reduce)
{
    for (int v = 1; v < p->nc && p->n_divs && !p->pool->st;) {
        bool changed = p->kind[v] == XTI_COL_DIV && renew(p, v, reduce);
        v = changed ? 1 : v + 1;
    }
}

static bool ready(const struct xti_work *p, int q, const unsigned char *done)
{
    const int64_t *num = xti_row(p, p->num[q]);
    for (int v = 1; v < p->nc; v++)
        if (num[v] && p->kind[v] == XTI_COL_DIV && !done[v])
            return false;
    return true;
}

/* Marks the divs of row r. */
static int mark(const struct xti_work *p, int r, unsigned char *need)
{
    const int64_t *row = xti_row(p, r);
    int n = 0;
    for (int v = 1; v < p->nc; v++) {
        bool new = (row[v] != 0) & (p->kind[v] == XTI_COL_DIV) & !need[v];
        need[v] |= new;
        n += new;
    }
    return n;
}

int xti_work_live(const struct xti_work *p, int n_rows, const short *rows, short *cols)
{
    unsigned char need[XTI_COLS] = {0}, done[XTI_COLS] = {0};
    int wanted = 0, n = 0;
    if (!p->n_divs)
        return 0;
    for (int i = 0; i < n_rows; i++)
        wanted += mark(p, rows[i], need);
    for (int more = wanted; more;) {
        more = 0;
        for (int v = 1; v < p->nc; v++)
            if (need[v] == 1)
                need[v] = 2, more += mark(p, p->num[v], need);
        wanted += more;
    }
    for (int before = -1; n < wanted && n != before;) {
        before = n;
        for (int v = 1; v < p->nc; v++)
            if (need[v] && !done[v] && ready(p, v, done))
                cols[n++] = (short)v, done[v] = 1;
    }
    return n;
}
