/* inverse.c: see inverse.h. A side of a piece is a box of strides: off + sum st[i]*x[i]. With strides in
 * descending order and what the later ones can still reach known, the points of an address are found by a
 * search that for nested strides has one way to go. */
#include "support/inverse.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"

/* Steps of one search; windows that overlap in many dims could take more, and then count as found. */
enum { SEARCH_STEPS = 1 << 14, CACHE_BITS = 16 };

struct axis {
    int64_t n, st; /* st > 0 */
    int64_t below; /* what the later axes add at most */
    int dim;
    bool turned; /* x is n - 1 - (the dim's) */
};

struct side {
    int64_t lo, hi;
    int64_t repeat; /* points of the dims with stride 0 */
    int n_axes;
    struct axis *axis;
};

struct sides {
    struct side src, dst;
    bool div_address; /* the source's address has divs */
};

struct cached {
    int src, bytes; /* bytes 0: empty */
    int64_t sector;
};

struct inverse {
    const struct xti_map *m;
    struct sides *of; /* [n_pieces] */
    struct axis *axes;
    int last_dst, last_src; /* pieces that answered */
    struct cached cache[1 << CACHE_BITS];
};

static int by_stride(const void *a, const void *b)
{
    const struct axis *x = a, *y = b;
    return x->st != y->st ? (x->st < y->st ? 1 : -1) : 0;
}

static void make_side(const struct xti_piece *p, bool dst, struct axis *axis, struct side *out)
{
    *out = (struct side){.lo = dst ? p->doff : p->soff, .repeat = 1, .axis = axis};
    for (int i = 0; i < p->n_dims; i++) {
        int64_t st = dst ? p->dim[i].d : p->dim[i].s, n = p->dim[i].n;
        if (!st) {
            out->repeat *= n;
            continue;
        }
        out->lo += st < 0 ? st * (n - 1) : 0;
        axis[out->n_axes++] = (struct axis){n, st < 0 ? -st : st, 0, i, st < 0};
    }
    qsort(axis, (size_t)out->n_axes, sizeof *axis, by_stride);
    int64_t span = 0;
    for (int i = out->n_axes - 1; i >= 0; i--) {
        axis[i].below = span;
        span += (axis[i].n - 1) * axis[i].st;
    }
    out->hi = out->lo + span;
}

struct inverse *inverse_new(const struct xti_map *m)
{
    struct inverse *v = calloc(1, sizeof *v);
    size_t n = 0;
    for (int i = 0; i < m->n_pieces; i++)
        n += 2 * (size_t)m->piece[i].n_dims;
    if (!v || !(v->of = calloc((size_t)m->n_pieces + 1, sizeof *v->of)) ||
        !(v->axes = calloc(n + 1, sizeof *v->axes))) {
        inverse_free(v);
        return NULL;
    }
    v->m = m;
    struct axis *next = v->axes;
    for (int i = 0; i < m->n_pieces; i++) {
        const struct xti_piece *p = &m->piece[i];
        make_side(p, true, next, &v->of[i].dst);
        make_side(p, false, next + p->n_dims, &v->of[i].src);
        next += 2 * p->n_dims;
        for (int j = 0; j < p->n_divs; j++)
            v->of[i].div_address = v->of[i].div_address || (p->src >= 0 && p->sq[j]);
    }
    return v;
}

void inverse_free(struct inverse *v)
{
    if (!v)
        return;
    free(v->of);
    free(v->axes);
    free(v);
}

/* floor(a / b), b > 0 */
static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static bool guards_hold(const struct xti_piece *p, const int64_t *x, int64_t *q)
{
    for (int j = 0; j < p->n_divs; j++) {
        int64_t sum = p->div[j].c;
        for (int i = 0; i < p->n_dims; i++)
            sum += p->div[j].x[i] * x[i];
        for (int i = 0; i < j; i++)
            sum += p->div[j].q[i] * q[i];
        q[j] = floor_div(sum, p->div[j].den);
    }
    for (int g = 0; g < p->n_guards; g++) {
        int64_t sum = p->guard[g].c;
        for (int i = 0; i < p->n_dims; i++)
            sum += p->guard[g].x[i] * x[i];
        for (int j = 0; j < p->n_divs; j++)
            sum += p->guard[g].q[j] * q[j];
        if (sum < 0)
            return false;
    }
    return true;
}

/* Points of the side's box at `address` that no guard hides, at most `most`; x[dim], q[]: the last of them.
 */
static int64_t search(const struct side *s, const struct xti_piece *p, int64_t address, int64_t most,
                      int64_t *x, int64_t *q)
{
    int64_t at[XTI_MAX_DIMS], low[XTI_MAX_DIMS], rest[XTI_MAX_DIMS + 1], found = 0;
    int depth = 0, steps = 0;
    bool down = true; /* axis `depth` is entered for the first time */
    if (address < s->lo || address > s->hi)
        return 0;
    rest[0] = address - s->lo;
    while (depth >= 0) {
        if (depth == s->n_axes) {
            found += rest[depth] == 0 && (s->repeat > 1 || guards_hold(p, x, q));
            if (found >= most || ++steps > SEARCH_STEPS)
                return found;
            depth--, down = false;
            continue;
        }
        const struct axis *a = &s->axis[depth];
        if (down) {
            at[depth] = rest[depth] / a->st < a->n ? rest[depth] / a->st : a->n - 1;
            int64_t over = rest[depth] - a->below;
            low[depth] = over > 0 ? (over + a->st - 1) / a->st : 0;
        } else {
            at[depth]--;
        }
        down = at[depth] >= low[depth];
        if (!down) {
            depth--;
            continue;
        }
        x[a->dim] = a->turned ? a->n - 1 - at[depth] : at[depth];
        rest[depth + 1] = rest[depth] - at[depth] * a->st;
        depth++;
    }
    return found;
}

static bool writes(const struct inverse *v, int piece, int64_t d, int64_t *s)
{
    const struct xti_piece *p = &v->m->piece[piece];
    int64_t x[XTI_MAX_DIMS] = {0}, q[XTI_MAX_DIVS];
    if (!search(&v->of[piece].dst, p, d, 1, x, q))
        return false;
    *s = p->soff;
    for (int i = 0; p->src >= 0 && i < p->n_dims; i++)
        *s += p->dim[i].s * x[i];
    for (int j = 0; p->src >= 0 && j < p->n_divs; j++)
        *s += p->sq[j] * q[j];
    return true;
}

const struct xti_piece *inverse_piece(struct inverse *v, int64_t d, int64_t *s)
{
    int n = v->m->n_pieces;
    for (int k = 0; k < n; k++) {
        int i = (v->last_dst + k) % n;
        if (writes(v, i, d, s)) {
            v->last_dst = i;
            return &v->m->piece[i];
        }
    }
    return NULL;
}

int64_t inverse_readers(struct inverse *v, int src, int64_t s, int64_t most)
{
    int n = v->m->n_pieces, first = v->last_src;
    int64_t found = 0, x[XTI_MAX_DIMS] = {0}, q[XTI_MAX_DIVS];
    for (int k = 0; k < n && found < most; k++) {
        int i = (first + k) % n;
        const struct side *side = &v->of[i].src;
        if (v->m->piece[i].src != src)
            continue;
        int64_t points = v->of[i].div_address ? s >= v->m->src_lo[src] && s <= v->m->src_hi[src]
                                              : side->repeat * search(side, &v->m->piece[i], s, most, x, q);
        found += points;
        v->last_src = points ? i : v->last_src;
    }
    return found < most ? found : most;
}

static int count_bytes(struct inverse *v, int src, int64_t sector)
{
    int size = v->m->esize, bytes = 0;
    int64_t first = sector * INVERSE_SECTOR / size, s;
    for (int64_t e = first; e < first + INVERSE_SECTOR / size; e++)
        if (src < 0 ? inverse_piece(v, e, &s) != NULL : inverse_readers(v, src, e, 1) > 0)
            bytes += size;
    return bytes ? bytes : size;
}

int inverse_sector_bytes(struct inverse *v, int src, int64_t sector)
{
    uint64_t hash = ((uint64_t)sector ^ (uint64_t)(src + 1) << 48) * 0x9e3779b97f4a7c15u;
    struct cached *c = &v->cache[hash >> (64 - CACHE_BITS)];
    if (!c->bytes || c->src != src || c->sector != sector)
        *c = (struct cached){src, count_bytes(v, src, sector), sector};
    return c->bytes;
}
