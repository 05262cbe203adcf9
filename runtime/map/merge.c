/* merge.c: the union of two affine pieces of one source as one piece, where that exists: what pad, concat,
 * roll and slices cut often fits together again. Layer 2. */
#include "map/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"

enum {
    ALL_PAIRS = 48,
    WINDOW = 8
}; /* more pieces than ALL_PAIRS: only neighbours in address order are tried */

static int sign(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

static int compare_dims(const struct xti_piece *a, const struct xti_piece *b)
{
    int c = sign(a->n_dims, b->n_dims);
    for (int i = 0; !c && i < a->n_dims; i++) {
        c = sign(a->dim[i].n, b->dim[i].n);
        c = c ? c : sign(a->dim[i].s, b->dim[i].s);
        c = c ? c : sign(a->dim[i].d, b->dim[i].d);
    }
    return c;
}

static int compare_guards(const struct xti_piece *a, const struct xti_piece *b)
{
    int c = sign(a->n_guards, b->n_guards);
    for (int i = 0; !c && i < a->n_guards; i++) {
        c = sign(a->guard[i].c, b->guard[i].c);
        for (int j = 0; !c && j < a->n_dims; j++)
            c = sign(a->guard[i].x[j], b->guard[i].x[j]);
    }
    return c;
}

/* By destination; pieces with one first address differ by their guards. */
static int compare(const void *x, const void *y)
{
    const struct xti_piece *a = x, *b = y;
    int c = sign(a->doff, b->doff);
    c = c ? c : compare_dims(a, b);
    c = c ? c : sign(a->src, b->src);
    c = c ? c : sign(a->soff, b->soff);
    c = c ? c : compare_guards(a, b);
    return c ? c : memcmp(a->value, b->value, sizeof a->value);
}

static bool same_dim(const struct xti_dim *a, const struct xti_dim *b)
{
    return a->n == b->n && a->s == b->s && a->d == b->d;
}

/* a without dim i is b without dim j (i or j -1: none left out). */
static bool same_rest(const struct xti_piece *a, int i, const struct xti_piece *b, int j)
{
    if (a->n_dims - (i >= 0) != b->n_dims - (j >= 0))
        return false;
    for (int k = 0, l = 0; k < a->n_dims; k++) {
        if (k == i)
            continue;
        l += l == j;
        if (!same_dim(&a->dim[k], &b->dim[l++]))
            return false;
    }
    return true;
}

/* Dims of a piece that is being made: the rest of one, and a new one. */
struct candidate {
    int n;
    struct xti_dim dim[XTI_MAX_DIMS + 1];
};

static void insert(struct candidate *c, struct xti_dim x)
{
    int i = c->n++;
    for (; i > 0 && (c->dim[i - 1].d < x.d || (c->dim[i - 1].d == x.d && c->dim[i - 1].n > x.n)); i--)
        c->dim[i] = c->dim[i - 1];
    c->dim[i] = x;
}

static bool nested(const struct candidate *c)
{
    int64_t span = 0, part;
    for (int i = c->n - 1; i >= 0; i--)
        if (c->dim[i].d <= span || !xti_mul64(c->dim[i].n - 1, c->dim[i].d, &part) ||
            !xti_add64(span, part, &span))
            return false;
    return true;
}

static bool times(int64_t n, int64_t v, int64_t want)
{
    int64_t t;
    return xti_mul64(n, v, &t) && t == want;
}

static void coalesce(struct candidate *c)
{
    int n = 0;
    for (int i = 0; i < c->n; i++) {
        struct xti_dim x = c->dim[i];
        if (n && times(x.n, x.s, c->dim[n - 1].s) && times(x.n, x.d, c->dim[n - 1].d))
            x.n *= c->dim[--n].n;
        c->dim[n++] = x;
    }
    c->n = n;
}

/* The rest of p (without dim `skip`) and x, when that stays nested. */
static bool make(const struct xti_piece *p, int skip, struct xti_dim x, struct candidate *c)
{
    if (p->n_dims - (skip >= 0) >= XTI_MAX_DIMS)
        return false;
    c->n = 0;
    for (int i = 0; i < p->n_dims; i++)
        if (i != skip)
            c->dim[c->n++] = p->dim[i];
    insert(c, x);
    if (!nested(c))
        return false;
    coalesce(c);
    return true;
}

/* b goes on where dim i of a ends, at (s, d) from a's start. */
static bool continues(const struct xti_piece *a, const struct xti_piece *b, int i, int64_t s, int64_t d,
                      struct candidate *c)
{
    struct xti_dim x = a->dim[i];
    if (!times(x.n, x.s, s) || !times(x.n, x.d, d))
        return false;
    if (same_rest(a, i, b, -1)) {
        x.n++;
        return make(a, i, x, c);
    }
    if (i >= b->n_dims || b->dim[i].s != x.s || b->dim[i].d != x.d || !same_rest(a, i, b, i))
        return false;
    x.n += b->dim[i].n;
    return make(a, i, x, c);
}

/* b lies between the points of a's dim i: 0 2 4 and 1 3. */
static bool interleaves(const struct xti_piece *a, const struct xti_piece *b, int i, int64_t s, int64_t d,
                        struct candidate *c)
{
    struct xti_dim x = a->dim[i];
    if (i >= b->n_dims || b->dim[i].n != x.n - 1 || b->dim[i].s != x.s || b->dim[i].d != x.d ||
        !times(2, s, x.s) || !times(2, d, x.d) || !same_rest(a, i, b, i))
        return false;
    return make(a, i, (struct xti_dim){2 * x.n - 1, s, d}, c);
}

/* a is one slab in front of dim i of b. */
static bool precedes(const struct xti_piece *a, const struct xti_piece *b, int i, int64_t s, int64_t d,
                     struct candidate *c)
{
    struct xti_dim x = b->dim[i];
    if (x.s != s || x.d != d || !same_rest(a, -1, b, i))
        return false;
    x.n++;
    return make(a, -1, x, c);
}

/* The union of a and b, a->doff < b->doff. */
static bool unite(const struct xti_piece *a, const struct xti_piece *b, struct candidate *c)
{
    int64_t s, d;
    if (a->src != b->src || !xti_piece_affine(a) || !xti_piece_affine(b) || abs(a->n_dims - b->n_dims) > 1)
        return false;
    if (memcmp(a->value, b->value, sizeof a->value))
        return false;
    if (!xti_sub64(b->soff, a->soff, &s) || !xti_sub64(b->doff, a->doff, &d))
        return false;
    if (same_rest(a, -1, b, -1) && make(a, -1, (struct xti_dim){2, s, d}, c))
        return true;
    for (int i = 0; i < a->n_dims; i++)
        if (continues(a, b, i, s, d, c) || interleaves(a, b, i, s, d, c))
            return true;
    for (int i = 0; i < b->n_dims; i++)
        if (precedes(a, b, i, s, d, c))
            return true;
    return false;
}

static xt_status accept(struct xti_map *m, struct xti_piece *a, const struct candidate *c,
                        struct xti_err *err)
{
    if (c->n > a->n_dims) {
        a->dim = xti_arena_alloc(&m->arena, (size_t)c->n * sizeof *a->dim);
        if (!a->dim)
            return xti_fail(err, XT_ENOMEM, "merging pieces");
    }
    memcpy(a->dim, c->dim, (size_t)c->n * sizeof *a->dim);
    a->n_dims = c->n;
    return XT_OK;
}

/* One pass over pieces [first, end): unites each with what it can of those after it; of many only a few are
 * looked at. A piece that is used up keeps its place with n_dims -1 until the end of the pass. */
static xt_status pass(struct xti_map *m, int first, int end, int *united, struct xti_err *err)
{
    struct candidate c;
    int window = end - first <= ALL_PAIRS ? ALL_PAIRS : WINDOW;
    for (int i = first; i < end; i++)
        for (int j = i + 1, seen = 0; m->piece[i].n_dims >= 0 && j < end && seen < window; j++) {
            if (m->piece[j].n_dims < 0)
                continue;
            seen++;
            if (!unite(&m->piece[i], &m->piece[j], &c))
                continue;
            xt_status s = accept(m, &m->piece[i], &c, err);
            if (s)
                return s;
            m->piece[j].n_dims = -1;
            ++*united;
            j = i;
            seen = 0;
        }
    return XT_OK;
}

static int by_source(const void *x, const void *y)
{
    int c = sign(((const struct xti_piece *)x)->src, ((const struct xti_piece *)y)->src);
    return c ? c : compare(x, y);
}

/* The end of the pieces that are merged with the one at first. */
static int end_of_run(const struct xti_map *m, bool apart, int first)
{
    int end = first + 1;
    while (end < m->n_pieces && (!apart || m->piece[end].src == m->piece[first].src))
        end++;
    return end;
}

/* Few by insertion: qsort copies each piece several times. */
static void sort(struct xti_map *m, int (*order)(const void *, const void *))
{
    if (m->n_pieces > ALL_PAIRS) {
        qsort(m->piece, (size_t)m->n_pieces, sizeof *m->piece, order);
        return;
    }
    for (int i = 1; i < m->n_pieces; i++) {
        struct xti_piece p = m->piece[i];
        int k = i;
        while (k > 0 && order(&m->piece[k - 1], &p) > 0)
            k--;
        if (k == i)
            continue;
        memmove(&m->piece[k + 1], &m->piece[k], (size_t)(i - k) * sizeof p);
        m->piece[k] = p;
    }
}

static void close_ranks(struct xti_map *m)
{
    int n = 0;
    for (int i = 0; i < m->n_pieces; i++)
        if (m->piece[i].n_dims >= 0)
            m->piece[n++] = m->piece[i];
    m->n_pieces = n;
}

xt_status xti_map_merge(struct xti_map *m, bool apart, struct xti_err *err)
{
    sort(m, apart ? by_source : compare);
    xt_status s = XT_OK;
    for (int united = m->n_pieces > 1; united && !s;) {
        united = 0;
        for (int first = 0, end; first < m->n_pieces && !s; first = end)
            s = pass(m, first, end = end_of_run(m, apart, first), &united, err);
        close_ranks(m);
    }
    if (apart)
        sort(m, compare);
    return s;
}
