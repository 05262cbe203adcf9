/* reshape.c: the one operation that is not affine. Coordinates of the new shape are digits of the flat index
 * in one mixed radix, those of the old shape in another. Where both have a cut at the same place nothing
 * happens; between two common cuts an old digit is floor(flat/weight) less what the next larger one holds. A
 * flat index that was met before may come with better digits. Layer 2. */
#include "map/work.h"

#include <string.h>

/* Digits of one flat index: flat = sum row*weight, outermost first. */
struct way {
    int n;
    const short *row;
    const int64_t *weight;
};

enum { MAX_AXES = 64, MAX_WAYS = XTI_KNOWN + 1, MANY_DIVS = 24 };

static int compress(int n, const int64_t *shape, const short *coord, int64_t *ext, short *at)
{
    int m = 0;
    for (int i = 0; i < n; i++)
        if (shape[i] != 1) {
            at[m] = coord ? coord[i] : (short)i;
            ext[m++] = shape[i];
        }
    return m;
}

static void weights_of(int n, const int64_t *ext, int64_t *weight)
{
    int64_t w = 1;
    for (int i = n - 1; i >= 0; i--) {
        weight[i] = w;
        w *= ext[i]; /* at most the number of elements */
    }
}

/* The largest weight of any way that divides w, and its way. */
static int64_t best_cut(int n_ways, const struct way *ways, int64_t w, const struct way **best)
{
    int64_t g = 0;
    for (int k = 0; k < n_ways; k++)
        for (int i = 0; i <= ways[k].n; i++) {
            int64_t v = i < ways[k].n ? ways[k].weight[i] : 1;
            if (v > g && w % v == 0) {
                g = v;
                *best = &ways[k];
            }
        }
    return g;
}

/* q += floor(flat/w) */
static void floor_of_flat(struct xti_work *p, int n_ways, const struct way *ways, int64_t w, int64_t *q)
{
    const struct way *k = NULL;
    int64_t num[XTI_COLS], g = best_cut(n_ways, ways, w, &k);
    bool exact = g == w;
    xti_scratch_zero(p, num);
    for (int i = 0; i < k->n; i++)
        if (k->weight[i] >= g)
            xti_row_add(p->pool, p->nc, exact ? q : num, k->weight[i] / g, xti_row(p, k->row[i]));
    if (!exact)
        xti_work_div(p, num, w / g, q);
}

/* New rows for the digits in the radix ext[0..n) of the flat index below `total`. */
static void split_digits(struct xti_work *p, int n_ways, const struct way *ways, int n, const int64_t *ext,
                         const int64_t *weight, short *out)
{
    int64_t upper[XTI_COLS], q[XTI_COLS];
    xti_scratch_zero(p, upper);
    for (int i = 0; i < n && !p->pool->st; i++) {
        xti_scratch_zero(p, q);
        floor_of_flat(p, n_ways, ways, weight[i], q);
        int r = xti_row_from(p, q);
        xti_row_add(p->pool, p->nc, xti_row(p, r), -ext[i], upper);
        out[i] = (short)r;
        memcpy(upper, q, (size_t)p->nc * sizeof *q);
    }
}

/* The dim that a row is, of all its points; 0: it is none. */
static int dim_of_row(const struct xti_work *p, const int64_t *row, int64_t n)
{
    int found = 0;
    for (int v = 1; v < p->nc; v++)
        if (row[v]) {
            if (found || row[v] != 1 || p->kind[v] != XTI_COL_DIM || p->ext[v] != n)
                return 0;
            found = v;
        }
    return row[0] ? 0 : found;
}

/* Digits of a dim as dims. */
static void split_dim(struct xti_work *p, int v, int n, const int64_t *ext, short *out)
{
    short dim[MAX_AXES];
    for (int i = n - 1; i >= 0; i--) {
        dim[i] = (short)v;
        if (i)
            v = xti_dim_factor(p, v, ext[i]);
    }
    for (int i = 0; i < n; i++) {
        out[i] = (short)xti_row_new(p);
        xti_row(p, out[i])[dim[i]] = 1;
    }
}

/* Digits between two common cuts. */
static void split_chunk(struct xti_work *p, int n_from, const int64_t *from, const short *row, int n_to,
                        const int64_t *to, bool dims, short *out)
{
    int64_t w_from[MAX_AXES], w_to[MAX_AXES];
    if (n_from == 1 && n_to == 1) {
        out[0] = (short)xti_row_share(p, row[0]);
        return;
    }
    int v = dims && n_from == 1 ? dim_of_row(p, xti_row(p, row[0]), from[0]) : 0;
    if (v) {
        split_dim(p, v, n_to, to, out);
        return;
    }
    weights_of(n_from, from, w_from);
    weights_of(n_to, to, w_to);
    split_digits(p, 1, &(struct way){n_from, row, w_from}, n_to, to, w_to, out);
}

static void split_chunks(struct xti_work *p, int n_from, const int64_t *from, const short *row, int n_to,
                         const int64_t *to, bool dims, short *out)
{
    for (int i = 0, j = 0; j < n_to;) {
        int i_first = i, j_first = j;
        int64_t a = from[i++], b = to[j++];
        while (a != b)
            if (a < b)
                a *= from[i++];
            else
                b *= to[j++];
        split_chunk(p, i - i_first, from + i_first, row + i_first, j - j_first, to + j_first, dims,
                    out + j_first);
    }
}

static int flat_row(struct xti_work *p, int n, const short *row, const int64_t *weight)
{
    int r = xti_row_new(p);
    for (int i = 0; i < n; i++)
        xti_row_add(p->pool, p->nc, xti_row(p, r), weight[i], xti_row(p, row[i]));
    return r;
}

static int find_known(const struct xti_work *p, int flat, struct way *ways)
{
    int n = 0;
    for (int i = 0; i < p->n_known; i++) {
        const struct xti_known *k = &p->digits->known[i];
        if (!memcmp(xti_row(p, k->flat), xti_row(p, flat), (size_t)p->nc * sizeof *p->m))
            ways[n++] = (struct way){k->n, p->digits->digit + k->at, p->digits->weight + k->at};
    }
    return n;
}

static bool same_axes(int n_a, const int64_t *a, int n_b, const int64_t *b)
{
    return n_a == n_b && !memcmp(a, b, (size_t)n_a * sizeof *a);
}

/* out: rows of the digits in the radix `to`. */
static void convert(struct xti_work *p, int n_from, const int64_t *from, const short *row, int n_to,
                    const int64_t *to, bool remember, bool dims, short *out)
{
    int64_t w_from[MAX_AXES], w_to[MAX_AXES];
    struct way ways[MAX_WAYS];
    int flat = -1, n_ways = 0;
    weights_of(n_from, from, w_from);
    weights_of(n_to, to, w_to);
    if (remember || p->n_known)
        flat = flat_row(p, n_from, row, w_from);
    if (p->n_known)
        n_ways = find_known(p, flat, ways + 1);
    if (n_ways) {
        ways[0] = (struct way){n_from, row, w_from};
        split_digits(p, n_ways + 1, ways, n_to, to, w_to, out);
    } else {
        split_chunks(p, n_from, from, row, n_to, to, dims, out);
    }
    if (remember && !p->pool->st) {
        xti_known_add(p, flat, n_from, row, w_from);
        xti_known_add(p, flat, n_to, out, w_to);
    }
    if (flat >= 0)
        xti_row_drop(p, flat);
}

void xti_work_reshape(struct xti_work *p, int n_out, const int64_t *out, int n_in, const int64_t *in,
                      bool remember, bool dims)
{
    int64_t from[MAX_AXES], to[MAX_AXES];
    short row[MAX_AXES], at[MAX_AXES], got[MAX_AXES], coord[XTI_COORDS];
    int n_from = compress(n_out, out, p->coord, from, row), n_to = compress(n_in, in, NULL, to, at);
    for (int i = 0; i < n_in; i++)
        coord[i] = XTI_ROW_ZERO;
    for (int i = 0; i < n_to; i++)
        got[i] = XTI_ROW_ZERO;
    if (same_axes(n_from, from, n_to, to)) {
        for (int i = 0; i < n_to; i++)
            got[i] = (short)xti_row_share(p, row[i]);
    } else {
        if (p->n_divs > MANY_DIVS)
            xti_work_collect(p);
        xti_work_reserve_cols(p, n_to);
        convert(p, n_from, from, row, n_to, to, remember, dims, got);
    }
    for (int i = 0; i < n_to; i++)
        coord[at[i]] = got[i];
    for (int i = 0; i < n_out; i++)
        xti_row_drop(p, p->coord[i]);
    memcpy(p->coord, coord, (size_t)n_in * sizeof *coord);
    p->n_coords = (short)n_in;
}
