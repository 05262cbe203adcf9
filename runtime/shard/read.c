/* read.c: peers and messages, read off the strides: a dim whose stride holds pages goes from rank to rank,
 * the others are the message. Layer 5. */
#include "shard/read.h"

#include <math.h>
#include <string.h>

#include "base/num.h"

/* Nearest number of pages. */
static int64_t pages(int64_t stride) { return xti_floor_div(stride + XTI_PAGE / 2, XTI_PAGE); }
static int64_t within(int64_t stride) { return stride - pages(stride) * XTI_PAGE; }

bool xti_piece_reads_off(const struct xti_piece *p)
{
    int64_t ql[XTI_MAX_DIVS], qh[XTI_MAX_DIVS], lo = xti_floor_mod(p->soff, XTI_PAGE), hi = lo;
    if (p->src < 0)
        return true;
    if (!xti_piece_div_ranges(p, ql, qh))
        return false;
    for (int j = 0; j < p->n_divs; j++)
        if (pages(p->sq[j]) || !xti_add_range(p->sq[j], ql[j], qh[j], &lo, &hi))
            return false;
    for (int i = 0; i < p->n_dims; i++)
        if (!xti_add_range(within(p->dim[i].s), 0, p->dim[i].n - 1, &lo, &hi))
            return false;
    return lo >= 0 && hi < XTI_PAGE;
}

/* A rank as an affine form of the digits: what is asked for, and bounds of what the digits from k on add. */
struct row {
    int64_t want; /* -1: any */
    int64_t a[XTI_MAX_DIMS], lo[XTI_MAX_DIMS + 1], hi[XTI_MAX_DIMS + 1];
};

struct reader {
    const struct xti_piece *p;
    int n, digit[XTI_MAX_DIMS]; /* dims that are rank digits */
    int64_t x[XTI_MAX_DIMS];    /* their values */
    struct row from, to;
    xti_between_fn each;
    void *arg;
};

static void bound(const struct reader *r, struct row *w)
{
    w->lo[r->n] = w->hi[r->n] = 0;
    for (int k = r->n - 1; k >= 0; k--) {
        w->lo[k] = w->lo[k + 1];
        w->hi[k] = w->hi[k + 1];
        xti_add_range(w->a[k], 0, r->p->dim[r->digit[k]].n - 1, &w->lo[k], &w->hi[k]);
    }
}

/* Values of digit k with which the row, now at `at`, can still become what is wanted. */
static void narrow(const struct row *w, int k, int64_t at, int64_t *lo, int64_t *hi)
{
    int64_t a = w->a[k], l = w->want - at - w->hi[k + 1], h = w->want - at - w->lo[k + 1];
    if (w->want < 0)
        return;
    if (a < 0) {
        int64_t t = l;
        a = -a;
        l = -h;
        h = -t;
    }
    if (!a) {
        *hi = l <= 0 && h >= 0 ? *hi : -1;
        return;
    }
    l = -xti_floor_div(-l, a);
    h = xti_floor_div(h, a);
    *lo = l > *lo ? l : *lo;
    *hi = h < *hi ? h : *hi;
}

/* Takes out guards that always hold. False: one never does, the box is empty. */
static bool settle_guards(struct xti_piece *p, struct xti_guard *guard)
{
    int64_t ql[XTI_MAX_DIVS], qh[XTI_MAX_DIVS];
    if (p->n_guards && !xti_piece_div_ranges(p, ql, qh))
        return true;
    for (int j = p->n_guards - 1; j >= 0; j--) {
        const struct xti_guard *v = &guard[j];
        int64_t lo, hi;
        bool fits = xti_row_range(p, v->c, v->x, p->n_divs, v->q, ql, qh, &lo, &hi);
        if (fits && hi < 0)
            return false;
        if (fits && lo >= 0)
            guard[j] = guard[--p->n_guards];
    }
    return true;
}

/* Room for what changes of a piece when it becomes a box. */
struct room {
    struct xti_dim dim[XTI_MAX_DIMS];
    struct xti_div div[XTI_MAX_DIVS];
    struct xti_guard guard[XTI_MAX_GUARDS];
};

static struct xti_piece copy_into(struct room *room, const struct xti_piece *p)
{
    struct xti_piece box = *p;
    box.dim = memcpy(room->dim, p->dim, (size_t)p->n_dims * sizeof *p->dim);
    box.div = room->div;
    box.guard = room->guard;
    if (p->n_divs)
        memcpy(room->div, p->div, (size_t)p->n_divs * sizeof *p->div);
    if (p->n_guards)
        memcpy(room->guard, p->guard, (size_t)p->n_guards * sizeof *p->guard);
    return box;
}

/* What divs and guards count from moves `by` points along dim k. */
static void move_numbers(struct xti_piece *box, int k, int64_t by)
{
    for (int j = 0; j < box->n_divs; j++)
        box->div[j].c += box->div[j].x[k] * by;
    for (int j = 0; j < box->n_guards; j++)
        box->guard[j].c += box->guard[j].x[k] * by;
}

/* What is left of the piece when its digits have values. */
static xt_status emit(struct reader *r, int64_t from, int64_t to)
{
    const struct xti_piece *p = r->p;
    struct room room;
    struct xti_between b = {from, to, copy_into(&room, p)};
    b.box.soff = xti_floor_mod(p->soff, XTI_PAGE);
    b.box.doff = xti_floor_mod(p->doff, XTI_PAGE);
    for (int k = 0; k < r->n; k++) {
        int i = r->digit[k];
        b.box.soff += within(p->dim[i].s) * r->x[k];
        b.box.doff += within(p->dim[i].d) * r->x[k];
        b.box.dim[i] = (struct xti_dim){1, 0, 0};
        move_numbers(&b.box, i, r->x[k]);
    }
    return settle_guards(&b.box, room.guard) ? r->each(r->arg, &b) : XT_OK;
}

static xt_status walk(struct reader *r, int k, int64_t from, int64_t to)
{
    if (k == r->n)
        return (r->from.want >= 0 && from != r->from.want) || (r->to.want >= 0 && to != r->to.want)
                   ? XT_OK
                   : emit(r, r->p->src < 0 ? -1 : from, to);
    int64_t lo = 0, hi = r->p->dim[r->digit[k]].n - 1;
    xt_status s = XT_OK;
    narrow(&r->from, k, from, &lo, &hi);
    narrow(&r->to, k, to, &lo, &hi);
    for (int64_t x = lo; x <= hi && !s; x++) {
        r->x[k] = x;
        s = walk(r, k + 1, from + r->from.a[k] * x, to + r->to.a[k] * x);
    }
    return s;
}

/* apart: dims that go from sender to sender alone are digits, too. */
static xt_status read_piece(const struct xti_piece *p, int64_t from, int64_t to, bool apart,
                            xti_between_fn each, void *arg)
{
    struct reader r = {.p = p, .each = each, .arg = arg};
    r.from.want = p->src < 0 ? -1 : from;
    r.to.want = to;
    for (int i = 0; i < p->n_dims; i++) {
        int64_t a = p->src < 0 ? 0 : pages(p->dim[i].s), b = pages(p->dim[i].d);
        if (!b && (!a || !apart))
            continue;
        r.from.a[r.n] = a;
        r.to.a[r.n] = b;
        r.digit[r.n++] = i;
    }
    bound(&r, &r.from);
    bound(&r, &r.to);
    return walk(&r, 0, xti_floor_div(p->soff, XTI_PAGE), xti_floor_div(p->doff, XTI_PAGE));
}

xt_status xti_read_piece(const struct xti_piece *p, int64_t from, int64_t to, xti_between_fn each, void *arg)
{
    return read_piece(p, from, to, true, each, arg);
}

/* What is left to look at when points that read of a rank, -1: of any, and that no guard hides are sought. */
struct search {
    int64_t from;
    int left;
    bool found;
};

/* 1: every guard holds in all of the box, 0: in some of it perhaps, -1: one holds nowhere. */
static int guards_hold(const struct xti_piece *p, const int64_t *ql, const int64_t *qh)
{
    int all = 1;
    for (int j = 0; j < p->n_guards; j++) {
        const struct xti_guard *v = &p->guard[j];
        int64_t lo, hi;
        bool fits = xti_row_range(p, v->c, v->x, p->n_divs, v->q, ql, qh, &lo, &hi);
        if (fits && hi < 0)
            return -1;
        all = fits && lo >= 0 ? all : 0;
    }
    return all;
}

/* Does the box's first point read of that rank, -1: of any, and no guard hides it? False, too, where numbers
 * are beyond 64 bits. */
static bool first_is_found(const struct xti_piece *p, int64_t from)
{
    int64_t q[XTI_MAX_DIVS], v;
    for (int j = 0; j < p->n_divs; j++) {
        v = p->div[j].c;
        for (int i = 0; i < j; i++)
            if (!xti_mad64(p->div[j].q[i], q[i], v, &v))
                return false;
        q[j] = xti_floor_div(v, p->div[j].den);
    }
    for (int j = 0; j < p->n_guards; j++) {
        v = p->guard[j].c;
        for (int i = 0; i < p->n_divs; i++)
            if (!xti_mad64(p->guard[j].q[i], q[i], v, &v))
                return false;
        if (v < 0)
            return false;
    }
    v = p->soff;
    for (int j = 0; j < p->n_divs; j++)
        if (!xti_mad64(p->sq[j], q[j], v, &v))
            return false;
    return from < 0 || xti_floor_div(v, XTI_PAGE) == from;
}

/* Bounds of the page that the box reads, by plain intervals. False: it does not fit in 64 bits. */
static bool pages_read(const struct xti_piece *p, int64_t *lo, int64_t *hi, int *hold)
{
    int64_t ql[XTI_MAX_DIVS], qh[XTI_MAX_DIVS];
    *lo = *hi = p->soff;
    *hold = 0;
    bool fits = xti_piece_div_ranges(p, ql, qh);
    if (fits)
        *hold = guards_hold(p, ql, qh);
    for (int j = 0; j < p->n_divs; j++)
        fits = fits && xti_add_range(p->sq[j], ql[j], qh[j], lo, hi);
    for (int i = 0; i < p->n_dims; i++)
        fits = fits && xti_add_range(p->dim[i].s, 0, p->dim[i].n - 1, lo, hi);
    *lo = xti_floor_div(*lo, XTI_PAGE);
    *hi = xti_floor_div(*hi, XTI_PAGE);
    return fits;
}

/* The dim along which bounds are widest. -1: there is one element. */
static int widest(const struct xti_piece *p)
{
    double most = 0;
    int best = -1;
    for (int i = 0; i < p->n_dims; i++) {
        double w = fabs((double)p->dim[i].s);
        for (int j = 0; j < p->n_divs; j++)
            w += fabs((double)p->sq[j] * (double)p->div[j].x[i]) / (double)p->div[j].den;
        for (int j = 0; j < p->n_guards; j++)
            w += fabs((double)p->guard[j].x[i]);
        w = (w + 1) * (double)(p->dim[i].n - 1);
        if (w > most) {
            most = w;
            best = i;
        }
    }
    return best;
}

/* Halves the box until bounds say that it does not read of that rank, or that it may. p's dims and divs are
 * its own; a dim is halved 63 times at most. */
static void seek(struct search *s, struct xti_piece *p)
{
    int64_t lo, hi;
    int hold;
    if (s->found || first_is_found(p, s->from)) {
        s->found = true;
        return;
    }
    bool fits = pages_read(p, &lo, &hi, &hold), any = s->from < 0;
    if (hold < 0 || (fits && !any && (s->from < lo || s->from > hi)))
        return;
    bool sure = hold > 0 && (any || lo == hi);
    int k = fits && !sure && --s->left > 0 ? widest(p) : -1;
    if (k < 0) {
        s->found = true;
        return;
    }
    int64_t n = p->dim[k].n, half = n / 2;
    p->dim[k].n = half;
    seek(s, p);
    p->soff += half * p->dim[k].s;
    move_numbers(p, k, half);
    p->dim[k].n = n - half;
    seek(s, p);
    p->soff -= half * p->dim[k].s;
    move_numbers(p, k, -half);
    p->dim[k].n = n;
}

enum { LOOKS_AT_A_BOX = 12 }; /* where guards hide all of a box few find it */

bool xti_box_is_hidden(const struct xti_piece *box)
{
    struct search s = {.from = -1, .left = LOOKS_AT_A_BOX};
    struct room room;
    if (!box->n_guards)
        return false;
    struct xti_piece p = copy_into(&room, box);
    seek(&s, &p);
    return !s.found;
}

static xt_status seek_between(void *arg, const struct xti_between *b)
{
    struct search *s = arg;
    struct xti_piece p = b->box;
    if (!xti_add64(b->from * XTI_PAGE, p.soff, &p.soff))
        s->found = true;
    else
        seek(s, &p);
    return XT_OK;
}

bool xti_piece_may_read(const struct xti_piece *p, int64_t from, int64_t to, int *looks)
{
    struct search s = {.from = from, .left = *looks};
    read_piece(p, -1, to, false, seek_between, &s);
    *looks = s.left;
    return s.found;
}

/* ---- what no guard hides, point by point */

enum { FEW = 64 }; /* points that are looked at one by one: bounds of a box cost as much */

struct looker {
    int n, dim[XTI_MAX_DIMS]; /* by falling pos */
    xti_point_fn each;
    void *arg;
};

/* Points of a row of dim k that begins at x. */
static bool look_at_row(const struct looker *l, const struct xti_piece *p, const int64_t *x, int k)
{
    int64_t div[XTI_MAX_DIVS], guard[XTI_MAX_GUARDS], q[XTI_MAX_DIVS], s = p->soff, d = p->doff;
    for (int j = 0; j < p->n_divs; j++)
        div[j] = p->div[j].c;
    for (int j = 0; j < p->n_guards; j++)
        guard[j] = p->guard[j].c;
    for (int i = 0; i < p->n_dims; i++) {
        s += x[i] * p->dim[i].s;
        d += x[i] * p->dim[i].d;
        for (int j = 0; j < p->n_divs && x[i]; j++)
            div[j] += x[i] * p->div[j].x[i];
        for (int j = 0; j < p->n_guards && x[i]; j++)
            guard[j] += x[i] * p->guard[j].x[i];
    }
    for (int64_t i = 0; i < p->dim[k].n; i++) {
        int64_t from = s + i * p->dim[k].s;
        bool seen = true;
        for (int j = 0; j < p->n_divs; j++) {
            int64_t v = div[j] + i * p->div[j].x[k];
            for (int m = 0; m < j; m++)
                v += p->div[j].q[m] * q[m];
            q[j] = xti_floor_div(v, p->div[j].den);
            from += p->sq[j] * q[j];
        }
        for (int j = 0; j < p->n_guards && seen; j++) {
            int64_t v = guard[j] + i * p->guard[j].x[k];
            for (int m = 0; m < p->n_divs; m++)
                v += p->guard[j].q[m] * q[m];
            seen = v >= 0;
        }
        if (seen && !l->each(l->arg, from, d + i * p->dim[k].d))
            return false;
    }
    return true;
}

static bool look_at_all(const struct looker *l, const struct xti_piece *p)
{
    int64_t x[XTI_MAX_DIMS] = {0};
    int i;
    do {
        if (!look_at_row(l, p, x, l->dim[l->n - 1]))
            return false;
        for (i = l->n - 2; i >= 0 && ++x[l->dim[i]] == p->dim[l->dim[i]].n; i--)
            x[l->dim[i]] = 0;
    } while (i >= 0);
    return true;
}

/* Halves the outermost dim, so that points come in their order, until guards hide all of the box or it has
 * few. p's numbers are its own. As deep as halving goes, 63 times a dim at most. */
static bool look(const struct looker *l, struct xti_piece *p)
{
    int64_t ql[XTI_MAX_DIVS], qh[XTI_MAX_DIVS], points = 1;
    int at = l->n;
    for (int i = l->n - 1; i >= 0; i--)
        if (p->dim[l->dim[i]].n > 1) {
            points = points > FEW ? points : points * p->dim[l->dim[i]].n;
            at = i;
        }
    if (!xti_piece_div_ranges(p, ql, qh))
        return false;
    if (guards_hold(p, ql, qh) < 0)
        return true;
    if (points <= FEW)
        return look_at_all(l, p);
    int k = l->dim[at];
    int64_t n = p->dim[k].n, half = n / 2;
    p->dim[k].n = half;
    bool goes_on = look(l, p);
    p->soff += half * p->dim[k].s;
    p->doff += half * p->dim[k].d;
    move_numbers(p, k, half);
    p->dim[k].n = n - half;
    goes_on = goes_on && look(l, p);
    p->soff -= half * p->dim[k].s;
    p->doff -= half * p->dim[k].d;
    move_numbers(p, k, -half);
    p->dim[k].n = n;
    return goes_on;
}

/* Do all numbers of the piece, and what adds up to them, fit in 64 bits? */
static bool numbers_fit(const struct xti_piece *p)
{
    int64_t ql[XTI_MAX_DIVS], qh[XTI_MAX_DIVS], lo, hi, to = p->doff, end = p->doff;
    if (!xti_piece_div_ranges(p, ql, qh) || !pages_read(p, &lo, &hi, &(int){0}))
        return false;
    for (int i = 0; i < p->n_dims; i++)
        if (!xti_add_range(p->dim[i].d, 0, p->dim[i].n - 1, &to, &end))
            return false;
    for (int j = 0; j < p->n_guards; j++)
        if (!xti_row_range(p, p->guard[j].c, p->guard[j].x, p->n_divs, p->guard[j].q, ql, qh, &lo, &hi))
            return false;
    return true;
}

bool xti_box_visible(const struct xti_piece *box, const int64_t *pos, xti_point_fn each, void *arg)
{
    struct looker l = {.each = each, .arg = arg};
    struct room room;
    struct xti_piece p = copy_into(&room, box);
    if (!numbers_fit(box))
        return false;
    for (int i = 0; i < p.n_dims; i++) {
        int k = l.n;
        if (!pos[i])
            room.dim[i].n = 1;
        else
            l.n++;
        for (; pos[i] && k > 0 && pos[l.dim[k - 1]] < pos[i]; k--)
            l.dim[k] = l.dim[k - 1];
        if (pos[i])
            l.dim[k] = i;
    }
    return l.n && look(&l, &p);
}
