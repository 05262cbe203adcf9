/* make.c: a map of one piece that somebody has put together himself, in canonical form. Layer 2. */
#include "map/work.h"

#include <string.h>

/* A row of the piece: its constant, dims and divs at their columns. */
static int row_of(struct xti_work *w, int64_t c, int n_x, const int64_t *x, const short *dim, int n_q,
                  const int64_t *q, const short *div)
{
    int r = xti_row_new(w);
    int64_t *row = xti_row(w, r);
    row[0] = c;
    for (int i = 0; i < n_x; i++)
        if (dim[i])
            row[dim[i]] = x[i];
    for (int i = 0; i < n_q; i++)
        row[div[i]] = q[i];
    return r;
}

static void load(struct xti_work *w, const struct xti_piece *p)
{
    short dim[XTI_MAX_DIMS] = {0}, div[XTI_MAX_DIVS];
    int64_t s[XTI_MAX_DIMS], num[XTI_COLS];
    for (int i = 0; i < p->n_dims; i++)
        if (p->dim[i].n > 1)
            dim[i] = (short)xti_dim_new(w, p->dim[i].n);
    for (int i = 0; i < p->n_divs && !w->pool->st; i++) {
        xti_work_reserve_cols(w, 1);
        int r = row_of(w, p->div[i].c, p->n_dims, p->div[i].x, dim, i, p->div[i].q, div);
        xti_scratch_load(w, num, r);
        xti_row_drop(w, r);
        div[i] = (short)xti_div_new(w, num, p->div[i].den);
    }
    if (w->pool->st)
        return;
    xti_row(w, XTI_ROW_DST)[0] = p->doff;
    for (int i = 0; i < p->n_dims; i++) {
        s[i] = p->dim[i].s;
        if (dim[i])
            xti_row(w, XTI_ROW_DST)[dim[i]] = p->dim[i].d;
    }
    w->off = p->src < 0 ? -1 : (short)row_of(w, p->soff, p->n_dims, s, dim, p->n_divs, p->sq, div);
    for (int i = 0; i < p->n_guards; i++)
        w->guard[w->n_guards++] =
            (short)row_of(w, p->guard[i].c, p->n_dims, p->guard[i].x, dim, p->n_divs, p->guard[i].q, div);
}

static void set_bounds(const struct xti_work *w, struct xti_map *m)
{
    if (!xti_work_range(w, xti_row(w, XTI_ROW_DST), &m->dst_lo, &m->dst_hi) ||
        (w->off >= 0 && !xti_work_range(w, xti_row(w, w->off), m->src_lo, m->src_hi)))
        xti_pool_fail(w->pool, XT_EOVERFLOW);
}

xt_status xti_map_of_piece(const struct xti_piece *p, int esize, struct xti_map *out, struct xti_err *err)
{
    struct xti_pool pool = {0};
    struct xti_work *w = xti_work_new(&pool, p->n_divs + p->n_guards, p->n_dims + p->n_divs + 2);
    *out = (struct xti_map){.esize = esize, .n_pieces = 1, .n_srcs = p->src >= 0, .numel = 1};
    out->piece = xti_arena_alloc(&out->arena, sizeof *out->piece);
    out->src_lo = xti_arena_alloc(&out->arena, 2 * sizeof *out->src_lo);
    if (!w || !out->piece || !out->src_lo) {
        xti_pool_fail(&pool, XT_ENOMEM);
        goto done;
    }
    out->src_hi = out->src_lo + 1;
    *out->piece = (struct xti_piece){.src = p->src < 0 ? -1 : 0};
    memcpy(out->piece->value, p->value, sizeof p->value);
    for (int i = 0; i < p->n_dims; i++)
        if (!xti_mul64(out->numel, p->dim[i].n, &out->numel))
            xti_pool_fail(&pool, XT_EOVERFLOW);
    load(w, p);
    if (!pool.st)
        set_bounds(w, out);
    if (!pool.st)
        xti_work_finish(w, out, out->piece);
done:
    xti_work_free(w);
    xti_pool_free(&pool);
    if (pool.st)
        xti_map_free(out);
    return pool.st ? xti_fail(err, pool.st, "a piece of a map") : XT_OK;
}
