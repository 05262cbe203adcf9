/* normal.c: the normal form of a working piece's dims: destination strides positive, sorted, and two dims
 * that are neighbours in destination order merged iff every row has a[outer] == n[inner]*a[inner]. For a
 * destination whose strides are nested this form is unique and of minimal rank. Layer 2. */
#include "map/work.h"

#include <string.h>

int xti_work_rows(const struct xti_work *p, short *rows)
{
    int n = 0;
    if (p->off >= 0)
        rows[n++] = p->off;
    if (p->probe >= 0)
        rows[n++] = p->probe;
    for (int i = 0; i < p->n_guards; i++)
        rows[n++] = p->guard[i];
    for (int i = 0; i < p->n_coords; i++)
        if (p->coord[i] != XTI_ROW_ZERO)
            rows[n++] = p->coord[i];
    return n;
}

/* Drops known digit lists that use a column marked in `bad`. */
static bool uses(const struct xti_work *p, int r, const unsigned char *bad)
{
    const int64_t *row = xti_row(p, r);
    for (int v = 1; v < p->nc; v++)
        if (row[v] && bad[v])
            return true;
    return false;
}

static bool known_uses(const struct xti_work *p, int i, const unsigned char *bad)
{
    const struct xti_known *k = &p->digits->known[i];
    bool found = uses(p, k->flat, bad);
    for (int j = 0; j < k->n; j++)
        found = found || uses(p, p->digits->digit[k->at + j], bad);
    return found;
}

/* live: what is left; its number is returned. */
static int drop_dead(struct xti_work *p, int n_rows, const short *rows, short *live)
{
    unsigned char dead[XTI_COLS] = {0};
    int n = xti_work_live(p, n_rows, rows, live);
    if (n == p->n_divs)
        return n;
    for (int v = 1; v < p->nc; v++)
        dead[v] = p->kind[v] == XTI_COL_DIV;
    for (int i = 0; i < n; i++)
        dead[live[i]] = 0;
    for (int i = p->n_known - 1; i >= 0; i--)
        if (known_uses(p, i, dead))
            xti_known_drop(p, i);
    for (int v = p->nc - 1; v > 0; v--)
        if (dead[v])
            xti_div_free(p, v);
    return n;
}

void xti_work_collect(struct xti_work *p)
{
    short rows[XTI_MAX_ROWS], live[XTI_COLS];
    drop_dead(p, xti_work_rows(p, rows), rows, live);
}

static int sort_dims(const struct xti_work *p, short *order)
{
    const int64_t *d = xti_row(p, XTI_ROW_DST);
    int n = 0;
    for (int v = 1; v < p->nc; v++) {
        if (p->kind[v] != XTI_COL_DIM)
            continue;
        int i = n++;
        for (; i > 0; i--) {
            int u = order[i - 1];
            if (d[u] > d[v] || (d[u] == d[v] && p->ext[u] <= p->ext[v]))
                break;
            order[i] = order[i - 1];
        }
        order[i] = (short)v;
    }
    return n;
}

/* Of the live divs col[0 .. n_live), dependencies first, n have one so far. t[q]: q is renamed to q - t*x_a,
 * which adds t*den*x_a to its numerator. */
struct renames {
    int n, n_live;
    short col[XTI_COLS];
    int64_t t[XTI_COLS];
};

/* row[a] after the renames */
static bool outer_coef(const int64_t *row, int a, const struct renames *rn, int64_t *out)
{
    *out = row[a];
    for (int i = 0; i < rn->n; i++)
        if (row[rn->col[i]] && rn->t[i]) {
            int64_t x;
            if (!xti_mul64(row[rn->col[i]], rn->t[i], &x) || !xti_sub64(*out, x, out))
                return false;
        }
    return true;
}

static bool row_merges(const int64_t *row, int a, int b, int64_t n, const struct renames *rn)
{
    int64_t outer, inner;
    return outer_coef(row, a, rn, &outer) && xti_mul64(n, row[b], &inner) && outer == inner;
}

/* Numerators count modulo their den: finds the renames under which they merge. */
static bool find_renames(const struct xti_work *p, int a, int b, int64_t n, struct renames *rn)
{
    while (rn->n < rn->n_live) {
        int q = rn->col[rn->n];
        const int64_t *num = xti_row(p, p->num[q]);
        int64_t outer, inner;
        if (!outer_coef(num, a, rn, &outer) || !xti_mul64(n, num[b], &inner) ||
            !xti_sub64(inner, outer, &inner) || inner % p->ext[q])
            return false;
        rn->t[rn->n++] = inner / p->ext[q];
    }
    return true;
}

static bool known_merges(const struct xti_work *p, int i, int a, int b, int64_t n, const struct renames *rn)
{
    const struct xti_known *k = &p->digits->known[i];
    bool all = row_merges(xti_row(p, k->flat), a, b, n, rn);
    for (int j = 0; j < k->n; j++)
        all = all && row_merges(xti_row(p, p->digits->digit[k->at + j]), a, b, n, rn);
    return all;
}

static bool merges(const int64_t *row, int a, int b, int64_t n)
{
    int64_t inner;
    bool fits = xti_mul64(n, row[b], &inner);
    return fits & (row[a] == inner);
}

/* Of the destination and, where it does, of the rows, without a branch for each. */
static bool all_merge(const struct xti_work *p, int n_rows, const short *rows, int a, int b, int64_t n)
{
    bool all = merges(xti_row(p, XTI_ROW_DST), a, b, n);
    for (int i = all ? 0 : n_rows; i < n_rows; i++)
        all &= merges(xti_row(p, rows[i]), a, b, n);
    return all;
}

/* Outer a and inner b become one dim, in column b, if they can. */
static bool merge_dims(struct xti_work *p, int n_rows, const short *rows, int a, int b, struct renames *rn)
{
    int64_t n = p->ext[b];
    rn->n = 0;
    xti_pool_steps(p->pool, n_rows);
    if (!all_merge(p, p->n_divs ? 0 : n_rows, rows, a, b, n))
        return false;
    if (p->n_divs && !find_renames(p, a, b, n, rn))
        return false;
    for (int i = 0; p->n_divs && i < n_rows; i++)
        if (!row_merges(xti_row(p, rows[i]), a, b, n, rn))
            return false;
    for (int i = p->n_known - 1; i >= 0; i--)
        if (!known_merges(p, i, a, b, n, rn))
            xti_known_drop(p, i);
    p->ext[b] = n * p->ext[a];
    xti_col_free(p, a); /* every row's a is n*b: x_b counts through both */
    return true;
}

static void make_positive(struct xti_work *p)
{
    for (int v = 1; v < p->nc; v++) {
        if (p->kind[v] != XTI_COL_DIM)
            continue;
        int64_t d = xti_row(p, XTI_ROW_DST)[v];
        if (d == 0)
            xti_pool_fail(p->pool, XT_EINTERNAL);
        if (d < 0)
            xti_dim_flip(p, v);
    }
}

static int merge_all(struct xti_work *p, int n_rows, const short *rows, short *order, struct renames *rn)
{
    int n = sort_dims(p, order), kept = 0;
    for (int i = 0; i < n; i++) {
        if (kept && merge_dims(p, n_rows, rows, order[kept - 1], order[i], rn))
            kept--;
        order[kept++] = order[i];
    }
    return kept;
}

int xti_work_normal(struct xti_work *p, bool reduce, short *order)
{
    struct renames rn; /* 1 KB: not cleared */
    short rows[XTI_MAX_ROWS];
    int n_rows = xti_work_rows(p, rows), n = 0;
    make_positive(p);
    for (bool again = true; again && !p->pool->st;) {
        int dims = -1, divs = p->n_divs;
        if (divs) {
            xti_work_simplify(p, reduce);
            rn.n_live = drop_dead(p, n_rows, rows, rn.col);
            dims = sort_dims(p, order);
        }
        n = merge_all(p, n_rows, rows, order, &rn);
        again = p->n_divs && (n != dims || p->n_divs != divs);
    }
    return n;
}
