/* read.c: peers and messages, read off the strides: a dim whose stride holds pages goes from rank to rank,
 * the others are the message. Layer 5. */
#include "shard/read.h"

#include <math.h>
#include <string.h>

#include "base/num.h"

int64_t xti_pages(int64_t stride) { return xti_floor_div(stride + XTI_PAGE / 2, XTI_PAGE); }
static int64_t within(int64_t stride) { return stride - xti_pages(stride) * XTI_PAGE; }

bool xti_piece_reads_off(const struct xti_piece *p)
{
    int64_t ql[XTI_MAX_DIVS], qh[XTI_MAX_DIVS], lo = xti_floor_mod(p->soff, XTI_PAGE), hi = lo;
    if (p->src < 0)
        return true;
    if (!xti_piece_div_ranges(p, ql, qh))
        return false;
    for (int j = 0; j < p->n_divs; j++)
        if (xti_pages(p->sq[j]) || !xti_add_range(p->sq[j], ql[j], qh[j], &lo, &hi))
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

struct xti_piece xti_box_copy(struct xti_box_room *room, const struct xti_piece *p)
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

void xti_box_move(struct xti_piece *box, int k, int64_t by)
{
    box->soff += box->dim[k].s * by;
    box->doff += box->dim[k].d * by;
    move_numbers(box, k, by);
}

/* What is left of the piece when its digits have values. */
static xt_status emit(struct reader *r, int64_t from, int64_t to)
{
    const struct xti_piece *p = r->p;
    struct xti_box_room room;
    struct xti_between b = {from, to, xti_box_copy(&room, p)};
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
        int64_t a = p->src < 0 ? 0 : xti_pages(p->dim[i].s), b = xti_pages(p->dim[i].d);
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

int xti_box_guards(const struct xti_piece *p, const int64_t *ql, const int64_t *qh)
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
        *hold = xti_box_guards(p, ql, qh);
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
    xti_box_move(p, k, half);
    p->dim[k].n = n - half;
    seek(s, p);
    xti_box_move(p, k, -half);
    p->dim[k].n = n;
}

enum { LOOKS_AT_A_BOX = 12 }; /* where guards hide all of a box few find it */

bool xti_box_is_hidden(const struct xti_piece *box)
{
    struct search s = {.from = -1, .left = LOOKS_AT_A_BOX};
    struct xti_box_room room;
    if (!box->n_guards)
        return false;
    struct xti_piece p = xti_box_copy(&room, box);
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

bool xti_box_in_half_pages(const struct xti_piece *p)
{
    int64_t ql[XTI_MAX_DIVS], qh[XTI_MAX_DIVS], lo = within(p->soff), hi = lo;
    bool fits = xti_piece_div_ranges(p, ql, qh);
    for (int j = 0; j < p->n_divs; j++)
        fits = fits && xti_add_range(within(p->sq[j]), ql[j], qh[j], &lo, &hi);
    for (int i = 0; i < p->n_dims; i++)
        fits = fits && xti_add_range(within(p->dim[i].s), 0, p->dim[i].n - 1, &lo, &hi);
    return fits && lo > -XTI_PAGE / 2 && hi < XTI_PAGE / 2;
}

bool xti_box_numbers_fit(const struct xti_piece *p)
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
