/* work.c: storage of working pieces and changes of variables. See work.h. Layer 2. */
#include "map/work.h"

#include <stddef.h>
#include <string.h>

enum { MIN_COLS = 8, MORE_ROWS = 8, SPARES_LOOKED_AT = 5 };

static size_t col_bytes(int w) { return (size_t)w * (sizeof(int64_t) + sizeof(short) + 2); }
static size_t row_bytes(int w) { return (size_t)w * sizeof(int64_t) + sizeof(short); }
static size_t bytes_for(int rows, int w) { return col_bytes(w) + (size_t)rows * row_bytes(w); }

/* Rows and columns of p lie in memory of p->bytes from now on. */
static void lay_out(struct xti_work *p, void *memory, int w)
{
    p->w = w;
    p->rows = (int)((unsigned)(p->bytes - col_bytes(w)) / (unsigned)row_bytes(w));
    p->ext = memory;
    p->num = (short *)(p->ext + w);
    p->kind = (unsigned char *)(p->num + w);
    p->stuck = p->kind + w;
    p->m = (int64_t *)(p->stuck + w);
    p->ref = (short *)(p->m + (size_t)p->rows * (size_t)w);
}

/* Gives p memory for at least so many rows of the width w, and keeps what it holds. */
static bool resize(struct xti_work *p, int rows, int w)
{
    const int64_t *ext = p->ext, *m = p->m;
    const short *num = p->num, *ref = p->ref;
    const unsigned char *kind = p->kind, *stuck = p->stuck;
    int old_w = p->w;
    size_t bytes = bytes_for(rows, w);
    void *memory = xti_room(bytes), *old = p->ext != p->home ? p->ext : NULL;
    xti_pool_bytes(p->pool, bytes);
    if (!memory) {
        xti_pool_fail(p->pool, XT_ENOMEM);
        return false;
    }
    p->bytes = bytes;
    lay_out(p, memory, w);
    if (p->nr) {
        memcpy(p->ext, ext, (size_t)p->nc * sizeof *ext);
        memcpy(p->num, num, (size_t)p->nc * sizeof *num);
        memcpy(p->kind, kind, (size_t)p->nc);
        memcpy(p->stuck, stuck, (size_t)p->nc);
        memcpy(p->ref, ref, (size_t)p->nr * sizeof *ref);
    }
    for (int r = 0; r < p->nr; r++) {
        memcpy(xti_row(p, r), m + (size_t)r * (size_t)old_w, (size_t)old_w * sizeof *m);
        memset(xti_row(p, r) + old_w, 0, (size_t)(w - old_w) * sizeof *m);
    }
    xti_free(old);
    return true;
}

/* A spare piece: one of the first few that has so many bytes, else the first. NULL: there is none. */
static struct xti_work *take_spare(struct xti_pool *pool, size_t bytes)
{
    struct xti_work **at = &pool->spare;
    for (int i = 1; i < SPARES_LOOKED_AT && *at && (*at)->bytes < bytes; i++)
        at = &(*at)->next;
    if (!*at || (*at)->bytes < bytes)
        at = &pool->spare;
    struct xti_work *p = *at;
    if (p)
        *at = p->next;
    return p;
}

static struct xti_work *take(struct xti_pool *pool, int rows, int w)
{
    size_t bytes = bytes_for(rows, w);
    struct xti_work *p = take_spare(pool, bytes);
    if (!p && (p = xti_room(sizeof *p + bytes))) {
        memset(p, 0, sizeof *p);
        xti_pool_bytes(pool, sizeof *p + bytes);
        p->bytes = bytes;
        p->home = p->ext = (int64_t *)(p + 1);
    }
    if (!p) {
        xti_pool_fail(pool, XT_ENOMEM);
        return NULL;
    }
    p->pool = pool;
    p->nr = 0;
    if (p->bytes >= bytes) {
        lay_out(p, p->ext, w);
    } else if (!resize(p, rows, w)) {
        xti_work_free(p);
        return NULL;
    }
    return p;
}

struct xti_work *xti_work_new(struct xti_pool *pool, int n_rows, int n_cols)
{
    int w = MIN_COLS;
    while (w < n_cols && w < XTI_COLS)
        w *= 2;
    struct xti_work *p = take(pool, n_rows + MORE_ROWS, w);
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
    memset(p->m, 0, 2 * (size_t)w * sizeof *p->m);
    return p;
}

/* False: pool->st. */
static bool make_digits(struct xti_work *p)
{
    if (p->digits)
        return true;
    xti_pool_bytes(p->pool, sizeof *p->digits);
    if (!(p->digits = xti_alloc(sizeof *p->digits)))
        xti_pool_fail(p->pool, XT_ENOMEM);
    return p->digits;
}

static void copy_digits(struct xti_work *q, const struct xti_work *p)
{
    if (!make_digits(q)) {
        q->n_known = q->n_digits = 0;
        return;
    }
    memcpy(q->digits->known, p->digits->known, (size_t)p->n_known * sizeof *p->digits->known);
    memcpy(q->digits->digit, p->digits->digit, (size_t)p->n_digits * sizeof *p->digits->digit);
    memcpy(q->digits->weight, p->digits->weight, (size_t)p->n_digits * sizeof *p->digits->weight);
}

/* A piece with p's columns and first nr rows. */
static struct xti_work *copy_rows(const struct xti_work *p, int nr)
{
    struct xti_work *q = take(p->pool, nr + MORE_ROWS, p->w);
    if (!q)
        return NULL;
    xti_pool_steps(p->pool, XTI_COPY_STEPS + nr * p->nc / 8);
    memcpy(q->ext, p->ext, col_bytes(p->w) + (size_t)nr * (size_t)p->w * sizeof *p->m);
    memcpy(q->ref, p->ref, (size_t)nr * sizeof *p->ref);
    return q;
}

struct xti_work *xti_work_copy(const struct xti_work *p)
{
    const size_t from = offsetof(struct xti_work, nc), to = offsetof(struct xti_work, coord);
    struct xti_work *q = copy_rows(p, p->nr);
    if (!q)
        return NULL;
    memcpy((char *)q + from, (const char *)p + from, to + (size_t)p->n_coords * sizeof *p->coord - from);
    if (p->n_guards)
        memcpy(q->guard, p->guard, (size_t)p->n_guards * sizeof *p->guard);
    if (p->n_known)
        copy_digits(q, p);
    return q;
}

struct xti_work *xti_work_copy_box(const struct xti_work *p)
{
    struct xti_work *q = copy_rows(p, 2);
    if (!q)
        return NULL;
    q->nc = p->nc;
    q->nr = q->full_rows = 2;
    q->full_cols = p->full_cols;
    q->n_divs = 0;
    q->off = q->probe = -1;
    q->stuck_key = 0;
    q->n_coords = q->n_guards = q->n_known = q->n_digits = 0;
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

/* What p has that is not lent. */
static void free_memory(struct xti_work *p)
{
    if (p->ext != p->home)
        xti_free(p->ext);
    if (!p->lent_digits)
        xti_free(p->digits);
}

struct xti_work *xti_pool_leave(struct xti_pool *pool)
{
    struct xti_work *kept = NULL;
    while (pool->spare) {
        struct xti_work *p = pool->spare;
        pool->spare = p->next;
        if (p->lent) {
            free_memory(p);
            continue;
        }
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
        free_memory(p);
        if (!p->lent)
            xti_free(p);
    }
}

void xti_pool_lend(struct xti_pool *pool, struct xti_first_work *first)
{
    for (int i = XTI_LENT - 1; i >= 0; i--) {
        struct xti_work *p = &first->work[i];
        p->pool = pool;
        bool large = i < XTI_LENT_LARGE;
        p->bytes = large ? XTI_LARGE_BYTES : XTI_SMALL_BYTES;
        p->home = p->ext = large ? first->large[i] : first->small[i - XTI_LENT_LARGE];
        p->digits = i ? NULL : &first->digits;
        p->lent = true;
        p->lent_digits = i == 0;
        xti_work_free(p);
    }
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
    xti_scratch_zero(p, xti_row(p, r));
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
    int64_t part;
    bool fits = true;
    xti_pool_steps(pool, n);
    for (int i = 0; i < n; i++) {
        fits &= xti_mul64(a, v[i], &part);
        fits &= xti_add64(row[i], part, &row[i]);
    }
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
        resize(p, p->nr + MORE_ROWS, w);
}

/* Widths are multiples of MIN_COLS: so many at once take no call. */
void xti_scratch_zero(const struct xti_work *p, int64_t *v)
{
    for (int i = 0; i < p->w; i += MIN_COLS)
        memset(v + i, 0, MIN_COLS * sizeof *v);
}

void xti_scratch_load(const struct xti_work *p, int64_t *v, int r)
{
    for (int i = 0; i < p->w; i += MIN_COLS)
        memcpy(v + i, xti_row(p, r) + i, MIN_COLS * sizeof *v);
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

int xti_dim_factor(struct xti_work *p, int col, int64_t m)
{
    bool fits = true;
    int y = xti_dim_new(p, p->ext[col] / m);
    p->ext[col] = m;
    for (int r = 0; r < p->nr; r++)
        if (p->ref[r])
            fits &= xti_mul64(xti_row(p, r)[col], m, &xti_row(p, r)[y]);
    if (!fits)
        xti_pool_fail(p->pool, XT_EOVERFLOW);
    return y;
}

void xti_dim_restrict(struct xti_work *p, int col, int64_t lo, int64_t hi)
{
    bool fits = true;
    for (int r = 0; lo && r < p->nr; r++) {
        int64_t *row = xti_row(p, r), part;
        bool product = xti_mul64(row[col], lo, &part), sum = xti_add64(row[0], part, &row[0]);
        fits &= (product & sum) | !p->ref[r];
    }
    p->ext[col] = hi - lo;
    if (hi - lo == 1)
        xti_col_free(p, col);
    if (!fits)
        xti_pool_fail(p->pool, XT_EOVERFLOW);
}

void xti_known_drop(struct xti_work *p, int i)
{
    struct xti_digits *d = p->digits;
    struct xti_known k = d->known[i];
    xti_row_drop(p, k.flat);
    for (int j = 0; j < k.n; j++)
        xti_row_drop(p, d->digit[k.at + j]);
    p->n_digits = (short)(p->n_digits - k.n);
    memmove(d->digit + k.at, d->digit + k.at + k.n, (size_t)(p->n_digits - k.at) * sizeof *d->digit);
    memmove(d->weight + k.at, d->weight + k.at + k.n, (size_t)(p->n_digits - k.at) * sizeof *d->weight);
    p->n_known--;
    for (int j = i; j < p->n_known; j++) {
        d->known[j] = d->known[j + 1];
        d->known[j].at = (short)(d->known[j].at - k.n);
    }
}

void xti_known_add(struct xti_work *p, int flat, int n, const short *digit, const int64_t *weight)
{
    struct xti_digits *d;
    if (!make_digits(p))
        return;
    d = p->digits;
    while (p->n_known == XTI_KNOWN || p->n_digits + n > XTI_DIGITS)
        xti_known_drop(p, 0);
    d->known[p->n_known++] = (struct xti_known){(short)xti_row_share(p, flat), (short)n, p->n_digits};
    for (int i = 0; i < n; i++) {
        d->digit[p->n_digits] = (short)xti_row_share(p, digit[i]);
        d->weight[p->n_digits++] = weight[i];
    }
}

void xti_known_forget(struct xti_work *p)
{
    while (p->n_known)
        xti_known_drop(p, p->n_known - 1);
}

void xti_work_forget(struct xti_work *p)
{
    xti_known_forget(p);
    for (int i = 0; i < p->n_coords; i++)
        xti_row_drop(p, p->coord[i]);
    p->n_coords = 0;
}
