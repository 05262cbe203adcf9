/* general.c: runs a piece with divs and guards. The outer dims are an odometer; along the innermost one the
 * copy goes by runs on which no div changes its quotient, so that all is affine there, and guards cut the run
 * to an interval. In: a checked piece: numerators are never negative. Layer 4. */
#include "cpu/run.h"

#include "base/num.h"

enum { MAX_NUMBERS = XTI_MAX_DIVS + XTI_MAX_GUARDS };

struct general {
    const struct xti_piece *p;
    int esize, inner; /* inner: the last dim, or -1 */
    xtk_fn kernel;    /* copies one run: one row of the job .. */
    int64_t per_unit; /* .. of so many columns a point */
    struct xtk_job job;
    unsigned char value[16];
    int64_t x[XTI_MAX_DIMS];
    int64_t row[MAX_NUMBERS]; /* the x part of every div's and guard's row at x[inner] = 0 */
    char *d;                  /* of x with x[inner] = 0 */
    const char *s;            /* the same, without the quotients' part */
};

static const int64_t *coefficients(const struct xti_piece *p, int number)
{
    return number < p->n_divs ? p->div[number].x : p->guard[number - p->n_divs].x;
}

/* Moves dim i by `by` points. */
static void shift(struct general *g, int i, int64_t by)
{
    const struct xti_piece *p = g->p;
    g->x[i] += by;
    g->d += by * p->dim[i].d * g->esize;
    if (p->src >= 0)
        g->s += by * p->dim[i].s * g->esize;
    for (int k = 0; k < p->n_divs + p->n_guards; k++)
        g->row[k] += by * coefficients(p, k)[i];
}

static int64_t dot(const int64_t *coef, const int64_t *q, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += coef[i] * q[i];
    return sum;
}

static int64_t inner_coefficient(const struct general *g, int number)
{
    return g->inner < 0 ? 0 : coefficients(g->p, number)[g->inner];
}

/* The quotients at x[inner] = at, and how many points from there on keep all of them. */
static int64_t quotients(const struct general *g, int64_t at, int64_t left, int64_t *q)
{
    for (int j = 0; j < g->p->n_divs; j++) {
        const struct xti_div *v = &g->p->div[j];
        int64_t w = inner_coefficient(g, j), e = g->row[j] + at * w + dot(v->q, q, j);
        q[j] = xti_floor_div(e, v->den);
        int64_t r = e - q[j] * v->den, keep = w > 0 ? (v->den - r + w - 1) / w : w < 0 ? r / -w + 1 : left;
        left = keep < left ? keep : left;
    }
    return left;
}

/* Cuts [*lo, *hi), counted from x[inner] = at, to where every guard holds. */
static void cut_by_guards(const struct general *g, int64_t at, const int64_t *q, int64_t *lo, int64_t *hi)
{
    const struct xti_piece *p = g->p;
    for (int k = 0; k < p->n_guards; k++) {
        int64_t w = inner_coefficient(g, p->n_divs + k);
        int64_t e = g->row[p->n_divs + k] + at * w + dot(p->guard[k].q, q, p->n_divs);
        if (w == 0 && e < 0)
            *hi = *lo;
        if (w > 0 && e < 0 && -xti_floor_div(e, w) > *lo)
            *lo = -xti_floor_div(e, w); /* first i with e + i*w >= 0 */
        if (w < 0 && xti_floor_div(e, -w) + 1 < *hi)
            *hi = xti_floor_div(e, -w) + 1;
    }
}

/* Points [lo, hi) of the innermost dim of the current row. */
static void run_row(struct general *g, int64_t lo, int64_t hi)
{
    const struct xti_piece *p = g->p;
    int64_t q[XTI_MAX_DIVS];
    for (int64_t at = lo, n; at < hi; at += n) {
        n = quotients(g, at, hi - at, q);
        int64_t from = 0, to = n;
        cut_by_guards(g, at, q, &from, &to);
        if (from >= to)
            continue;
        g->job.cols = (to - from) * g->per_unit;
        char *d = g->d + (at + from) * g->job.d_col;
        if (p->src < 0)
            g->kernel(&g->job, d, (const char *)g->value);
        else
            g->kernel(&g->job, d, g->s + dot(p->sq, q, p->n_divs) * g->esize + (at + from) * g->job.s_col);
    }
}

/* The next row; false after the last. Dim 0 ends at `end`. */
static bool next_row(struct general *g, int64_t end)
{
    for (int i = g->inner - 1; i >= 0; i--) {
        if (g->x[i] + 1 < (i ? g->p->dim[i].n : end)) {
            shift(g, i, 1);
            return true;
        }
        if (i)
            shift(g, i, -g->x[i]);
    }
    return false;
}

/* Runs are contiguous on both sides, fills of contiguous bytes, or anything. */
static void choose_kernel(struct general *g, const struct xti_target *target)
{
    const struct xti_piece *p = g->p;
    const struct xti_dim *x = g->inner < 0 ? NULL : &p->dim[g->inner];
    enum xti_cpu_op op = XTI_CPU_WALK;
    g->per_unit = 1;
    g->job = (struct xtk_job){.rows = 1, .value = g->value, .nta = target->prefetch_nta};
    if (x) {
        g->job.d_col = x->d * g->esize;
        g->job.s_col = p->src < 0 ? 0 : x->s * g->esize;
    }
    if (x && x->d == 1 && p->src < 0)
        op = XTI_CPU_FILL;
    if (x && x->d == 1 && p->src >= 0 && x->s == 1) {
        op = XTI_CPU_BLOCKS;
        g->per_unit = g->esize;
    }
    g->kernel = xtk_find(target->isa, op, op == XTI_CPU_BLOCKS ? 1 : g->esize, 0)->fn;
    for (int i = 0; i < 16; i++)
        g->value[i] = p->value[i % g->esize];
}

void xti_run_general(const struct xti_piece *p, int esize, const struct xti_target *target, bool stream,
                     char *dst, const char *src, struct xti_share share)
{
    struct general g;
    g.p = p;
    g.esize = esize;
    g.inner = p->n_dims - 1;
    choose_kernel(&g, target);
    g.job.stream = stream;
    g.d = dst + p->doff * esize;
    g.s = p->src < 0 ? NULL : src + p->soff * esize;
    for (int i = 0; i < p->n_dims; i++)
        g.x[i] = 0;
    for (int k = 0; k < p->n_divs; k++)
        g.row[k] = p->div[k].c;
    for (int k = 0; k < p->n_guards; k++)
        g.row[p->n_divs + k] = p->guard[k].c;
    int64_t n = p->n_dims ? p->dim[0].n : 1;
    int64_t lo = xti_share_of(n, share.part, share.parts), hi = xti_share_of(n, share.part + 1, share.parts);
    if (lo >= hi)
        return;
    if (g.inner <= 0) {
        run_row(&g, lo, hi);
        return;
    }
    shift(&g, 0, lo);
    do
        run_row(&g, 0, p->dim[g.inner].n);
    while (next_row(&g, hi));
}
