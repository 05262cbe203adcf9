/* plain.c: guards that let the same points pass and say it by smaller numbers and fewer divs. Layer 5. */
#include <string.h>

#include "base/num.h"
#include "shard/read.h"
#include "shard/visible.h"

/* 1, -1: the guard is an address, or that negated, and a constant; 0: it is neither. */
static int address(const struct xti_piece *p, const struct xti_guard *v)
{
    for (int sign = 1; sign >= -1; sign -= 2) {
        bool same = true;
        for (int i = 0; i < p->n_dims; i++)
            same &= v->x[i] == sign * p->dim[i].s || p->dim[i].n == 1;
        for (int j = 0; j < p->n_divs; j++)
            same &= v->q[j] == sign * p->sq[j];
        if (same)
            return sign;
    }
    return 0;
}

/* A guard that says from, or up to, which rank the box reads asks for the rank instead, by numbers of pages:
 * the address within the rank's array has no say, since it is never negative, and less than half a page. */
static void ask_for_rank(const struct xti_piece *p, struct xti_guard *v, int64_t *x, int64_t *q)
{
    int sign = address(p, v);
    int64_t k, want = sign > 0 ? 0 : XTI_PAGE - 1;
    if (!sign || !xti_mad64(-sign, p->soff, v->c, &k) || xti_floor_mod(k, XTI_PAGE) != want)
        return;
    v->c = xti_floor_div(k, XTI_PAGE) + sign * xti_pages(p->soff);
    for (int i = 0; i < p->n_dims; i++)
        x[i] = sign * xti_pages(p->dim[i].s);
    for (int j = 0; j < p->n_divs; j++)
        q[j] = sign * xti_pages(p->sq[j]);
}

/* floor(v/den) + r >= 0 where v + den*r >= 0, and r - floor(v/den) >= 0 where den*r + den - 1 - v >= 0: so
 * the guard's last div goes, if that is what it has. False: it has something else, or numbers are too large.
 */
static bool without_last_div(const struct xti_piece *p, struct xti_guard *v, int64_t *x, int64_t *q)
{
    int last = p->n_divs - 1;
    while (last >= 0 && !q[last])
        last--;
    if (last < 0 || (q[last] != 1 && q[last] != -1))
        return false;
    const struct xti_div *d = &p->div[last];
    int64_t sign = q[last], c = v->c, nx[XTI_PLAIN_DIMS], nq[XTI_PLAIN_DIVS];
    bool fits = xti_mad64(d->den, c, sign > 0 ? d->c : d->den - 1 - d->c, &c);
    for (int i = 0; i < p->n_dims; i++)
        fits = fits && xti_mad64(d->den, x[i], sign * d->x[i], &nx[i]);
    for (int j = 0; j < last; j++)
        fits = fits && xti_mad64(d->den, q[j], sign * d->q[j], &nq[j]);
    if (!fits)
        return false;
    v->c = c;
    memcpy(x, nx, (size_t)p->n_dims * sizeof *x);
    memcpy(q, nq, (size_t)last * sizeof *q);
    q[last] = 0;
    return true;
}

/* g*t + c >= 0 where t + floor(c/g) >= 0. */
static void without_factor(const struct xti_piece *p, struct xti_guard *v, int64_t *x, int64_t *q)
{
    int64_t g = 0;
    for (int i = 0; i < p->n_dims; i++)
        g = x[i] == INT64_MIN ? 1 : xti_gcd64(g, x[i]);
    for (int j = 0; j < p->n_divs; j++)
        g = q[j] == INT64_MIN ? 1 : xti_gcd64(g, q[j]);
    if (g < 2)
        return;
    v->c = xti_floor_div(v->c, g);
    for (int i = 0; i < p->n_dims; i++)
        x[i] /= g;
    for (int j = 0; j < p->n_divs; j++)
        q[j] /= g;
}

void xti_box_plain(struct xti_piece *p, struct xti_plain *room)
{
    if (p->n_dims > XTI_PLAIN_DIMS || p->n_divs > XTI_PLAIN_DIVS || p->n_guards > XTI_PLAIN_GUARDS)
        return;
    bool ranks = xti_box_in_half_pages(p);
    for (int j = 0; j < p->n_guards; j++) {
        struct xti_guard *v = &p->guard[j];
        int64_t *x = room->x[j], *q = room->q[j];
        memcpy(x, v->x, (size_t)p->n_dims * sizeof *x);
        memcpy(q, v->q, (size_t)p->n_divs * sizeof *q);
        if (ranks)
            ask_for_rank(p, v, x, q);
        while (without_last_div(p, v, x, q))
            ;
        without_factor(p, v, x, q);
        v->x = x;
        v->q = q;
    }
}
