/* work.c: storage of working pieces and changes of variables. See work.h. Layer 2. */
#include "map/work.h"

#include <stddef.h>
#include <string.h>

/* Gives p a matrix of at least rows x w and keeps what it holds. */
static bool resize(struct xti_work *p, int rows, int w)
{
    size_t cells = (size_t)rows * (size_t)w, bytes = cells * sizeof *p->m + (size_t)rows * sizeof *p->ref;
    int64_t *m = xti_alloc(bytes);
    xti_pool_bytes(p->pool, bytes);
    if (!m) {
        xti_pool_fail(p->pool, XT_ENOMEM);
        return false;
    }
    short *ref = (short *)(m + cells);
    for (int r = 0; r < p->nr; r++)
        memcpy(m + (size_t)r * (size_t)w, xti_row(p, r), (size_t)p->w * sizeof *m);
    if (p->m)
        memcpy(ref, p->ref, (size_t)p->nr * sizeof *ref);
    if (p->m != p->lent)
        xti_free(p->m);
    p->m = m;
    p->ref = ref;
    p->rows = rows;
    p->w = w;
    return true;
}

static struct xti_work *take(struct xti_pool *pool, int rows, int w)
{
    struct xti_work *p = pool->spare;
    if (p)
        pool->spare = p->next;
    else if (!(p = xti_alloc(sizeof *p))) {
        xti_pool_fail(pool, XT_ENOMEM);
        return NULL;
    } else {
        xti_pool_bytes(pool, sizeof *p);
    }
    p->pool = pool;
    p->nr = 0;
    if ((p->rows < rows || p->w < w) && !resize(p, rows, w)) {
        xti_work_free(p);
        return NULL;
    }
    return p;
}

struct xti_work *xti_work_new(struct xti_pool *pool)
{
    struct xti_work *p = take(pool, XTI_FIRST_ROWS, XTI_FIRST_COLS);
    if (!p)
        return NULL;
    p->nc = 1;
    p->n_divs = 0;
    p->off = p->probe = -1;
    p->stuck_key = 0;
    p->n_coords = p->n_guards = p->n_known = p->n_digits = 0;
    p->nr = p->full_rows = 2;
    p->full_cols = 1;
    p->ref[XTI_ROW_DST] = p->ref[XTI_ROW_ZERO] = 1;
    memset(p->m, 0, 2 * (size_t)p->w * sizeof *p->m);
    return p;
}

struct xti_work *xti_work_copy(const struct xti_work *p)
{
    struct xti_work *q = take(p->pool, p->rows, p->w);
    if (!q)
        return NULL;
    xti_pool_steps(p->pool, XTI_COPY_STEPS + p->nr * p->nc / 8);
    q->nc = p->nc;
    q->nr = p->nr;
    q->full_cols = p->full_cols;
    q->full_rows = p->full_rows;
    q->n_divs = p->n_divs;
    q->off = p->off;
    q->probe = p->probe;
    q->n_coords = p->n_coords;
    q->n_guards = p->n_guards;
    q->n_known = p->n_known;
    q->n_digits = p->n_digits;
    memcpy(q->coord, p->coord, (size_t)p->n_coords * sizeof *p->coord);
    memcpy(q->guard, p->guard, (size_t)p->n_guards * sizeof *p->guard);
    memcpy(q->num, p->num, (size_t)p->nc * sizeof *p->num);
    memcpy(q->kind, p->kind, (size_t)p->nc);
    if ((q->stuck_key = p->stuck_key))
        memcpy(q->stuck, p->stuck, (size_t)p->nc);
    memcpy(q->ext, p->ext, (size_t)p->nc * sizeof *p->ext);
    memcpy(q->known, p->known, (size_t)p->n_known * sizeof *p->known);
    memcpy(q->digit, p->digit, (size_t)p->n_digits * sizeof *p->digit);
    memcpy(q->weight, p->weight, (size_t)p->n_digits * sizeof *p->weight);
    memcpy(q->ref, p->ref, (size_t)p->nr * sizeof *p->ref);
    if (q->w == p->w)
        memcpy(q->m, p->m, (size_t)p->nr * (size_t)p->w * sizeof *p->m);
    else
        for (int r = 0; r < p->nr; r++) {
            memcpy(xti_row(q, r), xti_row(p, r), (size_t)p->nc * sizeof *p->m);
            memset(xti_row(q, r) + p->nc, 0, (size_t)(q->w - p->nc) * sizeof *p->m);
        }
    return q;
}

void xti_work_free(struct xti_work *p)
{
    if (!p)
        return;
    p->next = p->pool->spare;
    p->pool->spare = p;
}

void xti_works_free(struct xti_works *l)
{
    while (l->head)
        xti_work_free(xti_works_pop(l));
}

struct xti_work *xti_pool_leave(struct xti_pool *pool)
{
    struct xti_work *kept = NULL;
    while (pool->spare) {
        struct xti_work *p = pool->spare;
        pool->spare = p->next;
        if (p->lent && p->m != p->lent)
            xti_free(p->m);
        if (p->lent)
            continue;
        p->next = kept;
        kept = p;
    }
    return kept;
}

void xti_map_spare_free(struct xti_work *spare)
{
    struct xti_pool pool = {.spare = spare};
    xti_pool_free(&pool);
}

void xti_pool_free(struct xti_pool *pool)
{
    while (pool->spare) {
        struct xti_work *p = pool->spare;
        pool->spare = p->next;
        if (p->m != p->lent)
            xti_free(p->m);
        if (!p->lent)
            xti_free(p);
    }
}

void xti_pool_lend(struct xti_pool *pool, struct xti_first_work *first)
{
    struct xti_work *p = &first->work;
    p->pool = pool;
    p->m = p->lent = first->m;
    p->ref = first->ref;
    p->rows = XTI_FIRST_ROWS;
    p->w = XTI_FIRST_COLS;
    xti_work_free(p);
}

int xti_row_new(struct xti_work *p)
{
    int r = p->full_rows;
    while (r < p->nr && p->ref[r])
        r++;
    if (r == p->rows && !resize(p, 2 * p->rows, p->w))
        return XTI_ROW_DST; /* rubbish from here on: pool->st is set */
    if (r == p->nr)
        p->nr++;
    p->full_rows = r + 1;
    p->ref[r] = 1;
    memset(xti_row(p, r), 0, (size_t)p->w * sizeof *p->m);
    return r;
}

int xti_row_from(struct xti_work *p, const int64_t *v)
{
    int r = xti_row_new(p);
    memcpy(xti_row(p, r), v, (size_t)p->nc * sizeof *v);
    return r;
}

int xti_row_own(struct xti_work *p, int r)
{
    if (p->ref[r] == 1 && r != XTI_ROW_ZERO)
        return r;
    int c = xti_row_new(p);
    memcpy(xti_row(p, c), xti_row(p, r), (size_t)p->nc * sizeof *p->m);
    xti_row_drop(p, r);
    return c;
}

void xti_row_drop(struct xti_work *p, int r)
{
    if (r > XTI_ROW_ZERO && p->ref[r] > 0 && --p->ref[r] == 0 && r < p->full_rows)
        p->full_rows = r;
}

void xti_row_add(struct xti_pool *pool, int n, int64_t *row, int64_t a, const int64_t *v)
{
    bool fits = true;
    xti_pool_steps(pool, n);
    for (int i = 0; i < n; i++)
        if (v[i])
            fits &= xti_mad64(a, v[i], row[i], &row[i]);
    if (!fits)
        xti_pool_fail(pool, XT_EOVERFLOW);
}

void xti_row_add_const(struct xti_work *p, int r, int64_t c)
{
    if (!xti_add64(xti_row(p, r)[0], c, xti_row(p, r)))
        xti_pool_fail(p->pool, XT_EOVERFLOW);
}

void xti_work_reserve_cols(struct xti_work *p, int n)
{
    int w = p->w;
    while (w < p->nc + n && w < XTI_COLS)
        w = 2 * w < XTI_COLS ? 2 * w : XTI_COLS;
    if (w > p->w)
        resize(p, p->rows, w);
}

void xti_scratch_zero(const struct xti_work *p, int64_t *v) { memset(v, 0, (size_t)p->w * sizeof *v); }

void xti_scratch_load(const struct xti_work *p, int64_t *v, int r)
{
    memcpy(v, xti_row(p, r), (size_t)p->nc * sizeof *v);
    memset(v + p->nc, 0, (size_t)(p->w - p->nc) * sizeof *v);
}

static int col_new(struct xti_work *p, enum xti_col kind, int64_t ext)
{
    int v = p->full_cols;
    while (v < p->nc && p->kind[v] != XTI_COL_FREE)
        v++;
    if (v + 1 == p->w)
        xti_work_reserve_cols(p, 2);
    if (v + 1 == p->w) {
        xti_pool_fail(p->pool, XT_EUNSUPPORTED);
        return 1;
    }
    if (v == p->nc)
        p->nc++;
    p->full_cols = v + 1;
    p->kind[v] = (unsigned char)kind;
    p->ext[v] = ext;
    return v;
}

int xti_dim_new(struct xti_work *p, int64_t n) { return col_new(p, XTI_COL_DIM, n); }

int xti_div_new(struct xti_work *p, const int64_t *num, int64_t den)
{
    int v = col_new(p, XTI_COL_DIV, den);
    p->num[v] = (short)xti_row_from(p, num);
    p->n_divs++;
    return v;
}

void xti_div_free(struct xti_work *p, int col)
{
    xti_row_drop(p, p->num[col]);
    p->n_divs--;
    xti_col_free(p, col);
}

void xti_col_free(struct xti_work *p, int col)
{
    for (int r = 0; r < p->nr; r++)
        xti_row(p, r)[col] = 0;
    p->kind[col] = XTI_COL_FREE;
    if (col < p->full_cols)
        p->full_cols = col;
    while (p->nc > 1 && p->kind[p->nc - 1] == XTI_COL_FREE)
        p->nc--;
}

void xti_work_subst(struct xti_work *p, int col, const int64_t *e)
{
    short at[XTI_COLS];
    int n = 0;
    bool fits = true;
    xti_pool_steps(p->pool, p->nc + p->nr);
    for (int v = 0; v < p->nc; v++)
        if (e[v])
            at[n++] = (short)v;
    for (int r = 0; r < p->nr; r++) {
        int64_t *row = xti_row(p, r), a = p->ref[r] ? row[col] : 0;
        row[col] = 0;
        for (int i = 0; i < (a ? n : 0); i++)
            fits &= xti_mad64(a, e[at[i]], row[at[i]], &row[at[i]]);
    }
    if (!fits)
        xti_pool_fail(p->pool, XT_EOVERFLOW);
}

void xti_dim_flip(struct xti_work *p, int col)
{
    bool fits = true;
    for (int r = 0; r < p->nr; r++) {
        int64_t *row = xti_row(p, r);
        if (row[col] && p->ref[r])
            fits &=
                xti_mad64(row[col], p->ext[col] - 1, row[0], &row[0]) && xti_sub64(0, row[col], &row[col]);
    }
    if (!fits)
        xti_pool_fail(p->pool, XT_EOVERFLOW);
}

void xti_dim_factor(struct xti_work *p, int col, int64_t m)
{
    bool fits = true;
    int y = xti_dim_new(p, p->ext[col] / m);
    p->ext[col] = m;
    for (int r = 0; r < p->nr; r++)
        if (p->ref[r])
            fits &= xti_mul64(xti_row(p, r)[col], m, &xti_row(p, r)[y]);
    if (!fits)
        xti_pool_fail(p->pool, XT_EOVERFLOW);
}

void xti_dim_restrict(struct xti_work *p, int col, int64_t lo, int64_t hi)
{
    bool fits = true;
    for (int r = 0; lo && r < p->nr; r++)
        if (p->ref[r])
            fits &= xti_mad64(xti_row(p, r)[col], lo, xti_row(p, r)[0], &xti_row(p, r)[0]);
    p->ext[col] = hi - lo;
    if (hi - lo == 1)
        xti_col_free(p, col);
    if (!fits)
        xti_pool_fail(p->pool, XT_EOVERFLOW);
}

void xti_known_drop(struct xti_work *p, int i)
{
    struct xti_known k = p->known[i];
    xti_row_drop(p, k.flat);
    for (int j = 0; j < k.n; j++)
        xti_row_drop(p, p->digit[k.at + j]);
    p->n_digits = (short)(p->n_digits - k.n);
    memmove(p->digit + k.at, p->digit + k.at + k.n, (size_t)(p->n_digits - k.at) * sizeof *p->digit);
    memmove(p->weight + k.at, p->weight + k.at + k.n, (size_t)(p->n_digits - k.at) * sizeof *p->weight);
    p->n_known--;
    for (int j = i; j < p->n_known; j++) {
        p->known[j] = p->known[j + 1];
        p->known[j].at = (short)(p->known[j].at - k.n);
    }
}

void xti_known_add(struct xti_work *p, int flat, int n, const short *digit, const int64_t *weight)
{
    while (p->n_known == XTI_KNOWN || p->n_digits + n > XTI_DIGITS)
        xti_known_drop(p, 0);
    p->known[p->n_known++] = (struct xti_known){(short)xti_row_share(p, flat), (short)n, p->n_digits};
    for (int i = 0; i < n; i++) {
        p->digit[p->n_digits] = (short)xti_row_share(p, digit[i]);
        p->weight[p->n_digits++] = weight[i];
    }
}

void xti_work_forget(struct xti_work *p)
{
    while (p->n_known)
        xti_known_drop(p, p->n_known - 1);
    for (int i = 0; i < p->n_coords; i++)
        xti_row_drop(p, p->coord[i]);
    p->n_coords = 0;
}
