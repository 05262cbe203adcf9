/* eval.c: executes a map point by point: the slow truth that every kernel is compared with.
 * In: a finished map and host buffers. Out: the destination's bytes, or one visit a point. An affine piece is
 * walked in runs along its innermost dim; a piece with divs or guards point by point. Nothing is allocated.
 * Sums are taken modulo 2^64: a partial sum may leave int64 although every address fits. Layer 2. */
#include "map/map.h"

#include <string.h>

#include "base/num.h"

/* n points whose addresses advance by dstep and sstep elements. s is -1 and sstep 0 for a fill. */
struct run {
    int64_t d, s, n, dstep, sstep;
};
typedef bool (*run_fn)(void *arg, const struct xti_piece *p, const struct run *r);

static uint64_t dot(int n, const int64_t *a, const int64_t *b)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += (uint64_t)a[i] * (uint64_t)b[i];
    return sum;
}

/* The value of c + sum x*at + sum q*div. */
static int64_t row_value(int64_t c, int n_x, const int64_t *x, const int64_t *at, int n_q, const int64_t *q,
                         const int64_t *div)
{
    return (int64_t)((uint64_t)c + dot(n_x, x, at) + dot(n_q, q, div));
}

/* Evaluates divs and guards at point `at`: false when a guard hides it, else *extra is what the divs add to
 * the source address. */
static bool point_value(const struct xti_piece *p, const int64_t *at, uint64_t *extra)
{
    int64_t q[XTI_MAX_DIVS];
    for (int j = 0; j < p->n_divs; j++) {
        const struct xti_div *v = &p->div[j];
        q[j] = xti_floor_div(row_value(v->c, p->n_dims, v->x, at, j, v->q, q), v->den);
    }
    for (int j = 0; j < p->n_guards; j++) {
        const struct xti_guard *g = &p->guard[j];
        if (row_value(g->c, p->n_dims, g->x, at, p->n_divs, g->q, q) < 0)
            return false;
    }
    *extra = p->src < 0 ? 0 : dot(p->n_divs, p->sq, q);
    return true;
}

/* An odometer over the first n dims of a piece, with the affine part of both addresses. */
struct odometer {
    int n;
    int64_t at[XTI_MAX_DIMS];
    uint64_t d, s;
};

static bool advance(struct odometer *o, const struct xti_dim *dim)
{
    for (int k = o->n - 1; k >= 0; k--) {
        if (++o->at[k] < dim[k].n) {
            o->d += (uint64_t)dim[k].d;
            o->s += (uint64_t)dim[k].s;
            return true;
        }
        o->d -= (uint64_t)(dim[k].n - 1) * (uint64_t)dim[k].d;
        o->s -= (uint64_t)(dim[k].n - 1) * (uint64_t)dim[k].s;
        o->at[k] = 0;
    }
    return false;
}

static bool walk_piece(const struct xti_piece *p, run_fn each, void *arg)
{
    bool runs = xti_piece_affine(p) && p->n_dims > 0, fill = p->src < 0;
    struct odometer o = {.n = p->n_dims - runs, .d = (uint64_t)p->doff, .s = (uint64_t)p->soff};
    struct run r = {.n = 1};
    if (runs) {
        const struct xti_dim *inner = &p->dim[p->n_dims - 1];
        r = (struct run){.n = inner->n, .dstep = inner->d, .sstep = fill ? 0 : inner->s};
    }
    do {
        uint64_t extra = 0;
        if (!point_value(p, o.at, &extra))
            continue;
        r.d = (int64_t)o.d;
        r.s = fill ? -1 : (int64_t)(o.s + extra);
        if (!each(arg, p, &r))
            return false;
    } while (advance(&o, p->dim));
    return true;
}

/* ------------------------------------------------------------------------------------------------- visit */

struct visitor {
    bool (*visit)(void *arg, const struct xti_piece *p, int64_t d, int64_t s);
    void *arg;
};

static bool visit_run(void *arg, const struct xti_piece *p, const struct run *r)
{
    const struct visitor *v = arg;
    for (int64_t i = 0; i < r->n; i++)
        if (!v->visit(v->arg, p, r->d + i * r->dstep, r->s + i * r->sstep))
            return false;
    return true;
}

void xti_map_visit(const struct xti_map *m,
                   bool (*visit)(void *arg, const struct xti_piece *p, int64_t d, int64_t s), void *arg)
{
    struct visitor v = {visit, arg};
    for (int i = 0; i < m->n_pieces; i++)
        if (!walk_piece(&m->piece[i], visit_run, &v))
            return;
}

/* -------------------------------------------------------------------------------------------------- eval */

struct copier {
    int esize;
    char *dst;
    const void *const *src;
};

/* n elements of a constant size: the compiler turns each into plain loads and stores. */
#define STEPS(size)                                                                                          \
    for (int64_t i = 0; i < n; i++)                                                                          \
    memcpy(d + i * dstep, s + i * sstep, size)

/* Steps in bytes. Source and destination do not overlap: xt_run has seen to it. */
static void copy_steps(int esize, char *d, int64_t dstep, const char *s, int64_t sstep, int64_t n)
{
    if (dstep == esize && sstep == esize)
        memcpy(d, s, (size_t)(n * esize));
    else if (esize == 1)
        STEPS(1);
    else if (esize == 2)
        STEPS(2);
    else if (esize == 4)
        STEPS(4);
    else if (esize == 8)
        STEPS(8);
    else
        STEPS(16);
}
#undef STEPS

static bool copy_run(void *arg, const struct xti_piece *p, const struct run *r)
{
    const struct copier *c = arg;
    bool fill = p->src < 0;
    const char *from = fill ? (const char *)p->value : (const char *)c->src[p->src] + r->s * c->esize;
    copy_steps(c->esize, c->dst + r->d * c->esize, r->dstep * c->esize, from, r->sstep * c->esize, r->n);
    return true;
}

void xti_map_eval(const struct xti_map *m, void *dst, const void *const *src)
{
    struct copier c = {m->esize, dst, src};
    for (int i = 0; i < m->n_pieces; i++)
        walk_piece(&m->piece[i], copy_run, &c);
}
