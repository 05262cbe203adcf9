/* cut.c: splits a working piece: into boxes on which an affine form stays on one side of a number, or on
 * which a div is gone. What does not fit in few boxes stays as it was: a guard, or a div. The recursions here
 * are as deep as a piece has dims and divs. Layer 2. */
#include "map/work.h"

#include <string.h>

enum { TABLE_POINTS = 256, RADIX_MAX = 256 };

/* The part of *p with lo <= x < hi: a copy, or, when it is the last one wanted, *p itself, which becomes
 * NULL. NULL: pool->st. */
static struct xti_work *part(struct xti_work **p, bool last, int col, int64_t lo, int64_t hi)
{
    struct xti_work *q = last ? *p : xti_work_copy(*p);
    if (last)
        *p = NULL;
    if (q)
        xti_dim_restrict(q, col, lo, hi);
    return q;
}

/* The dim with the largest coefficient in the row, of several the outermost: boxes cut there keep the inner
 * dims whole. 0: there is none, -1: the row holds a div. */
static int largest_dim(const struct xti_work *p, const int64_t *e)
{
    int best = 0;
    for (int v = 1; v < p->nc; v++) {
        if (e[v] && p->kind[v] == XTI_COL_DIV)
            return -1;
        if (e[v] && (!best || xti_abs64(e[v]) > xti_abs64(e[best])))
            best = v;
    }
    return best;
}

/* The row e is in [lo, hi] and holds no div, e[k] > 0. Rows [0, *first) of dim k are wholly below t, rows
 * [*last, n) wholly at or above it. */
static bool mixed_rows(const struct xti_work *p, const int64_t *e, int k, int64_t t, int64_t lo, int64_t hi,
                       int64_t *first, int64_t *last)
{
    int64_t a = e[k], n = p->ext[k];
    if (!xti_sub64(t, hi - a * (n - 1), &hi) || !xti_sub64(t, lo, &lo))
        return false;
    hi = hi / a + (hi % a > 0); /* ceil: the row of the first point at or above t */
    lo = lo / a + (lo % a > 0);
    *first = hi < 0 ? 0 : hi;
    *last = lo > n ? n : lo;
    return true;
}

/* Of a number; one that nobody wants has its boxes counted, and not made. */
enum side { NONE, BELOW, ABOVE };

static void skip(struct xti_works *l) { l->n++; }

/* Boxes of p on each of which (row r < t) is constant, appended to out. False when more than `room` boxes
 * would be needed, or more than max_mixed mixed rows at one level (1: only nested digits). Takes p, which may
 * be NULL. */
static bool cut(struct xti_work *p, int r, int64_t t, int room, int64_t max_mixed, enum side unwanted,
                struct xti_works *out)
{
    int64_t lo, hi, first, last;
    bool done = false;
    if (!p)
        return false;
    if (!xti_work_range(p, xti_row(p, r), &lo, &hi))
        goto end;
    enum side side = hi < t ? BELOW : lo >= t ? ABOVE : NONE;
    if (side != NONE) {
        xti_work_simplify(p, false);
        xti_works_add(out, p);
        return room >= 1;
    }
    int k = largest_dim(p, xti_row(p, r));
    if (room < 2 || k < 1)
        goto end;
    if (xti_row(p, r)[k] < 0)
        xti_dim_flip(p, k);
    if (!mixed_rows(p, xti_row(p, r), k, t, lo, hi, &first, &last) || last - first > max_mixed)
        goto end;
    if (last > first && p->pool->guard_windows)
        goto end;
    p->pool->cut_windows |= last > first;
    int64_t n = p->ext[k];
    int before = out->n;
    done = true;
    if (first > 0 && unwanted == BELOW)
        skip(out);
    else if (first > 0)
        done =
            cut(part(&p, last == first && unwanted == ABOVE, k, 0, first), r, t, 1, max_mixed, unwanted, out);
    if (last < n && unwanted == ABOVE)
        skip(out);
    else if (done && last < n)
        done = cut(part(&p, last == first, k, last, n), r, t, 1, max_mixed, unwanted, out);
    for (int64_t x = first; done && x < last; x++)
        done = cut(part(&p, x + 1 == last, k, x, x + 1), r, t, room - (out->n - before), max_mixed, unwanted,
                   out);
    done = done && out->n - before <= room;
end:
    xti_work_free(p);
    return done;
}

static void set_row(struct xti_work *p, int r, const int64_t *v)
{
    for (int i = 0; i < p->nc; i++)
        xti_row(p, r)[i] = v[i];
}

/* A div that is being eliminated: its numerator, reduced, and the part that left the floor. */
struct floor {
    int64_t num[XTI_COLS], top[XTI_COLS], den;
};

/* False: no floor is left in div q. */
static bool load_floor(const struct xti_work *p, int q, struct floor *f)
{
    f->den = p->ext[q];
    xti_scratch_load(p, f->num, p->num[q]);
    xti_scratch_zero(p, f->top);
    return xti_floor_reduce(p, f->num, &f->den, f->top, true);
}

/* The dims of a row, by coefficient, largest first. -1: it holds a div. */
static int dims_of(const struct xti_work *p, const int64_t *e, short *dims)
{
    int n = 0;
    for (int v = 1; v < p->nc; v++) {
        if (!e[v])
            continue;
        if (p->kind[v] == XTI_COL_DIV)
            return -1;
        int i = n++;
        for (; i > 0 && xti_abs64(e[dims[i - 1]]) < xti_abs64(e[v]); i--)
            dims[i] = dims[i - 1];
        dims[i] = (short)v;
    }
    return n;
}

/* Steps an odometer over the dims. False: it was at the last point. */
static bool step(const struct xti_work *p, int n, const short *dims, int64_t *x)
{
    for (int i = n - 1; i >= 0; i--) {
        if (++x[i] < p->ext[dims[i]])
            return true;
        x[i] = 0;
    }
    return false;
}

/* Is floor(num/den) affine on a small box by its table? Then out gets that form. The floor is 0 at the first
 * point: load_floor has taken it out. Its tables, as try_radix's, are gone from the stack before others work.
 */
static __attribute__((noinline)) bool affine_by_table(const struct xti_work *p, const struct floor *f,
                                                      int64_t *out)
{
    short dims[XTI_COLS];
    int64_t x[XTI_COLS] = {0}, slope[XTI_COLS], points = 1;
    int n = dims_of(p, f->num, dims);
    if (n < 0)
        return false;
    for (int i = 0; i < n; i++) {
        if (p->ext[dims[i]] > TABLE_POINTS || (points *= p->ext[dims[i]]) > TABLE_POINTS)
            return false;
        slope[i] = xti_floor_div(f->num[0] + f->num[dims[i]], f->den);
    }
    xti_pool_steps(p->pool, (int)points * n);
    do {
        int64_t num = f->num[0], want = 0;
        for (int i = 0; i < n; i++) {
            num += x[i] * f->num[dims[i]];
            want += x[i] * slope[i];
        }
        if (xti_floor_div(num, f->den) != want)
            return false;
    } while (step(p, n, dims, x));
    xti_scratch_zero(p, out);
    for (int i = 0; i < n; i++)
        out[dims[i]] = slope[i];
    return true;
}

/* Replaces div q by f->top + e. */
static void replace_div(struct xti_work *p, int q, struct floor *f, const int64_t *e)
{
    xti_row_add(p->pool, p->nc, f->top, 1, e);
    xti_work_subst(p, q, f->top);
    xti_div_free(p, q);
}

/* Last resort on small boxes: some other radix. NULL: none helps. */
static __attribute__((noinline)) struct xti_work *try_radix(const struct xti_work *p, int q, int n,
                                                            const short *dims)
{
    struct floor f;
    int64_t e[XTI_COLS];
    for (int i = 0; i < n; i++) {
        int64_t ext = p->ext[dims[i]], top = ext < RADIX_MAX ? ext : RADIX_MAX;
        for (int64_t m = 2; m < top; m++) {
            if (ext % m)
                continue;
            struct xti_work *s = xti_work_copy(p);
            if (!s)
                return NULL;
            xti_dim_factor(s, dims[i], m);
            if (!load_floor(s, q, &f) || affine_by_table(s, &f, e))
                return s;
            xti_work_free(s);
        }
    }
    return NULL;
}

enum progress { GONE, CHANGED, STUCK };

static int64_t period(const struct floor *f, int v) { return f->den / xti_gcd64(f->num[v], f->den); }

/* One rewriting of dims towards the end of div q. dims, n: of the numerator, when stuck. */
static enum progress rewrite(struct xti_work **pp, int q, struct floor *f, int *n, short *dims)
{
    struct xti_work *p = *pp;
    int64_t e[XTI_COLS];
    xti_work_simplify(p, false);
    if (p->pool->st || p->kind[q] != XTI_COL_DIV || q >= p->nc)
        return GONE;
    if (!load_floor(p, q, f))
        return CHANGED;
    if ((*n = dims_of(p, f->num, dims)) < 0)
        return STUCK;
    for (int i = 0; i < *n; i++)
        if (f->num[dims[i]] < 0) {
            xti_dim_flip(p, dims[i]);
            return CHANGED;
        }
    for (int i = 0; i < *n; i++) {
        int64_t per = period(f, dims[i]);
        if (p->ext[dims[i]] > per && p->ext[dims[i]] % per == 0) {
            xti_dim_factor(p, dims[i], per);
            return CHANGED;
        }
    }
    if (affine_by_table(p, f, e)) {
        replace_div(p, q, f, e);
        return CHANGED;
    }
    struct xti_work *s = try_radix(p, q, *n, dims);
    if (!s)
        return STUCK;
    xti_work_free(p);
    *pp = s;
    return CHANGED;
}

/* Splits p where the phase of the floor breaks: whole periods and a tail, or at the first period's end. */
static bool split_phase(struct xti_work *p, const struct floor *f, int n, const short *dims, int room,
                        struct xti_works *parts)
{
    int64_t lo, hi;
    for (int i = 0; i < n; i++) {
        int64_t per = period(f, dims[i]), ext = p->ext[dims[i]];
        if (ext <= per)
            continue;
        struct xti_work *a = part(&p, false, dims[i], 0, ext - ext % per);
        struct xti_work *b = part(&p, true, dims[i], ext - ext % per, ext);
        if (a)
            xti_works_add(parts, a);
        if (b)
            xti_works_add(parts, b);
        return a && b;
    }
    if (!xti_work_range(p, f->num, &lo, &hi)) {
        xti_work_free(p);
        return false;
    }
    int r = xti_row_new(p);
    set_row(p, r, f->num);
    bool done = cut(p, r, (xti_floor_div(lo, f->den) + 1) * f->den, room, room, NONE, parts);
    for (struct xti_work *s = parts->head; s; s = s->next)
        xti_row_drop(s, r);
    return done;
}

/* Boxes equal to p in which div q is gone, appended to out. False: it has to stay. Takes p. */
static bool eliminate(struct xti_work *p, int q, int room, struct xti_works *out)
{
    struct floor f;
    short dims[XTI_COLS];
    int n = 0, before = out->n;
    struct xti_works parts = {0};
    enum progress how;
    do
        how = rewrite(&p, q, &f, &n, dims);
    while (how == CHANGED);
    if (how == GONE) {
        xti_works_add(out, p);
        return !p->pool->st;
    }
    if (n < 0 || room < 2) {
        xti_work_free(p);
        return false;
    }
    bool done = split_phase(p, &f, n, dims, room, &parts);
    while (done && parts.head) {
        struct xti_work *s = xti_works_pop(&parts);
        done = eliminate(s, q, room - (out->n - before) - parts.n, out);
    }
    xti_works_free(&parts);
    return done && out->n - before <= room;
}

static int needed_rows(const struct xti_work *p, short *rows)
{
    int n = 0;
    if (p->probe >= 0)
        rows[n++] = p->probe;
    if (p->probe >= 0)
        return n;
    if (p->off >= 0)
        rows[n++] = p->off;
    for (int i = 0; i < p->n_guards; i++)
        rows[n++] = p->guard[i];
    return n;
}

/* What eliminate looks at. Pages are told apart by the same row again and again, and what did not help once
 * would be tried each time. */
static void note_numbers(struct xti_work *p)
{
    uint64_t h = (uint64_t)p->nc;
    for (int v = 1; v < p->nc; v++) {
        h = (h ^ p->kind[v]) * 0x100000001b3u;
        h = (h ^ (p->kind[v] == XTI_COL_FREE ? 0 : (uint64_t)p->ext[v])) * 0x9e3779b97f4a7c15u;
        for (int k = 0; p->kind[v] == XTI_COL_DIV && k < p->nc; k++)
            h = ((h ^ h >> 29) + (uint64_t)xti_row(p, p->num[v])[k]) * 0x9e3779b97f4a7c15u;
    }
    h |= 1;
    if (h != p->stuck_key)
        memset(p->stuck, 0, (size_t)p->w);
    p->stuck_key = h;
}

void xti_work_resolve(struct xti_work *p, int room, struct xti_works *out)
{
    short order[XTI_COLS], rows[XTI_MAX_ROWS], live[XTI_COLS];
    xti_work_normal(p, false, order);
    int n = p->pool->st ? 0 : xti_work_live(p, needed_rows(p, rows), rows, live);
    if (n)
        note_numbers(p);
    for (int i = 0; i < n; i++) {
        struct xti_works got = {0};
        struct xti_work *c = p->stuck[live[i]] == room ? NULL : xti_work_copy(p);
        if (!c || !eliminate(c, live[i], room, &got)) {
            xti_works_free(&got);
            p->stuck[live[i]] = (unsigned char)(room <= UINT8_MAX ? room : 0);
            continue;
        }
        xti_work_free(p);
        for (int share = room / got.n; got.head;)
            xti_work_resolve(xti_works_pop(&got), share, out);
        return;
    }
    xti_works_add(out, p);
}

/* Is v the linear part of row r times sign? */
static bool same_linear(const struct xti_work *p, int r, const int64_t *v, int64_t sign)
{
    const int64_t *row = xti_row(p, r);
    for (int i = 1; i < p->nc; i++)
        if (row[i] != (int64_t)((uint64_t)sign * (uint64_t)v[i]))
            return false;
    return true;
}

/* Bounds of row r over the points that p's guards let pass. */
static bool guarded_range(const struct xti_work *p, int r, int64_t *lo, int64_t *hi)
{
    const int64_t *e = xti_row(p, r);
    if (!xti_work_range(p, e, lo, hi))
        return false;
    for (int i = 0; i < p->n_guards; i++) {
        int64_t bound, c = xti_row(p, p->guard[i])[0];
        if (same_linear(p, p->guard[i], e, 1) && xti_sub64(e[0], c, &bound) && bound > *lo)
            *lo = bound;
        if (same_linear(p, p->guard[i], e, -1) && xti_add64(e[0], c, &bound) && bound < *hi)
            *hi = bound;
    }
    return true;
}

static void drop_guard(struct xti_work *p, int i)
{
    xti_row_drop(p, p->guard[i]);
    p->guard[i] = p->guard[--p->n_guards];
}

/* Adds the guard sign*(row r - t) >= 0 and drops those that it implies. */
static void add_guard(struct xti_work *p, int r, int64_t t, int64_t sign)
{
    int g = xti_row_new(p);
    xti_row_add(p->pool, p->nc, xti_row(p, g), sign, xti_row(p, r));
    xti_row_add_const(p, g, sign < 0 ? t : -t);
    for (int i = p->n_guards - 1; i >= 0; i--)
        if (same_linear(p, p->guard[i], xti_row(p, g), 1))
            drop_guard(p, i);
    if (p->n_guards == XTI_MAX_GUARDS)
        xti_pool_fail(p->pool, XT_EUNSUPPORTED);
    else
        p->guard[p->n_guards++] = (short)g;
}

static void guard_probe(struct xti_work *p, int64_t t, int64_t sign)
{
    add_guard(p, p->probe, t, sign);
    xti_row_drop(p, p->probe);
    p->probe = -1;
}

bool xti_work_guards(struct xti_work *p)
{
    for (int i = p->n_guards - 1; i >= 0; i--) {
        int64_t lo, hi;
        if (!xti_work_range(p, xti_row(p, p->guard[i]), &lo, &hi))
            continue;
        if (hi < 0)
            return false;
        if (lo >= 0)
            drop_guard(p, i);
    }
    return true;
}

static void add_side(struct xti_works *side, struct xti_work *p)
{
    if (side)
        xti_works_add(side, p);
    else
        xti_work_free(p);
}

/* Puts p on the side of t on which its probe is, if it is on one. An empty piece goes nowhere. False: whether
 * it is known to be on both. */
static bool place(struct xti_work *p, int64_t t, struct xti_works *lt, struct xti_works *ge, bool *both)
{
    int64_t lo, hi;
    *both = guarded_range(p, p->probe, &lo, &hi);
    if (!*both || (lo <= hi && lo < t && hi >= t))
        return false;
    xti_row_drop(p, p->probe);
    p->probe = -1;
    if (lo > hi)
        xti_work_free(p);
    else
        add_side(hi < t ? lt : ge, p);
    return true;
}

static void side_of_box(struct xti_work *p, int64_t t, int room, struct xti_works *lt, struct xti_works *ge)
{
    struct xti_works parts = {0};
    bool both;
    if (place(p, t, lt, ge, &both))
        return;
    if (cut(xti_work_copy(p), p->probe, t, room, 1, lt ? ge ? NONE : ABOVE : BELOW, &parts)) {
        xti_work_free(p);
        while (parts.head) {
            struct xti_work *s = xti_works_pop(&parts);
            if (!place(s, t, lt, ge, &both))
                xti_work_free(s); /* only when something failed */
        }
        return;
    }
    xti_works_free(&parts);
    struct xti_work *q = ge ? xti_work_copy(p) : NULL;
    if (lt) {
        guard_probe(p, t - 1, -1);
        xti_works_add(lt, p);
    } else {
        xti_work_free(p);
    }
    if (q) {
        guard_probe(q, t, 1);
        xti_works_add(ge, q);
    }
}

/* The dim that alone makes up the row; 0: there are others, or divs. */
static int only_dim(const struct xti_work *p, const int64_t *e)
{
    int k = 0;
    for (int v = 1; v < p->nc; v++) {
        if (e[v] && k)
            return 0;
        k = e[v] ? v : k;
    }
    return k;
}

/* Puts p with lo <= x < hi on a side. Either may be NULL. */
static void add_part(struct xti_works *side, struct xti_work *p, int col, int64_t lo, int64_t hi)
{
    if (!p)
        return;
    xti_dim_restrict(p, col, lo, hi);
    add_side(side, p);
}

/* The most frequent case at once: p has no divs and no guards, and its probe, which is on both sides of t, is
 * one dim: that is cut in two. False: it is not so. Nothing here overflows: t lies between the probe's
 * bounds, which fit. */
static bool halve(struct xti_work *p, int64_t t, struct xti_works *lt, struct xti_works *ge)
{
    const int64_t *e = xti_row(p, p->probe);
    int k = p->n_divs || p->n_guards ? 0 : only_dim(p, e);
    int64_t a = e[k], n = p->ext[k];
    if (!k)
        return false;
    int64_t at = a > 0 ? xti_ceil_div(t - e[0], a) : (e[0] - t) / -a + 1;
    xti_row_drop(p, p->probe);
    p->probe = -1;
    struct xti_works *front = a > 0 ? lt : ge, *back = a > 0 ? ge : lt;
    bool is_front = front && !front->fills; /* p; the other side has a copy */
    struct xti_works *other = is_front ? back : front;
    struct xti_work *q = !other ? NULL : other->fills ? xti_work_copy_box(p) : xti_work_copy(p);
    add_part(front, is_front ? p : q, k, 0, at);
    add_part(back, is_front ? q : p, k, at, n);
    return true;
}

void xti_work_side(struct xti_work *p, int r, int64_t t, int room, struct xti_works *lt, struct xti_works *ge)
{
    struct xti_works boxes = {0};
    bool both;
    p->probe = (short)r;
    if (place(p, t, lt, ge, &both))
        return;
    if (both && room >= 2 && halve(p, t, lt, ge))
        return;
    xti_work_resolve(p, room, &boxes);
    while (boxes.head) {
        struct xti_work *s = xti_works_pop(&boxes);
        if (s->pool->st)
            xti_work_free(s);
        else
            side_of_box(s, t, room, lt, ge);
    }
}
