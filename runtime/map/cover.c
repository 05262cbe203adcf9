/* cover.c: a map in which guards of one piece are gone: it writes too much, and what the others write stands
 * where they come after it. Layer 2. */
#include "map/map.h"

#include "base/num.h"

/* Whether all of a piece's box lies where the map reads. */
static bool reads_inside(const struct xti_map *m, const struct xti_piece *x)
{
    int64_t lo = x->soff, hi = lo;
    for (int i = 0; i < x->n_dims; i++)
        if (!xti_add_range(x->dim[i].s, 0, x->dim[i].n - 1, &lo, &hi))
            return false;
    return lo >= m->src_lo[x->src] && hi <= m->src_hi[x->src];
}

/* Whether a fill has one guard, which hides of its box what that of another piece, the same box, lets pass.
 * Its dims may be some of that one's, merged. */
static bool complements(const struct xti_piece *f, const struct xti_piece *x)
{
    int i = 0;
    if (f->src >= 0 || f->n_divs || x->n_divs || f->n_guards != 1 || x->n_guards != 1 || f->doff != x->doff ||
        f->guard->c != -1 - x->guard->c)
        return false;
    for (int k = 0; k < f->n_dims; k++)
        for (int64_t left = f->dim[k].n; left > 1; i++) {
            if (i == x->n_dims || left % x->dim[i].n)
                return false;
            left /= x->dim[i].n;
            if (x->dim[i].d != f->dim[k].d * left || x->guard->x[i] != -f->guard->x[k] * left)
                return false;
        }
    return i == x->n_dims;
}

bool xti_map_guarded(const struct xti_map *m, int *read, int *fill)
{
    *read = -1;
    for (int i = 0; i < m->n_pieces; i++) {
        const struct xti_piece *x = &m->piece[i];
        for (int k = 0; k < m->n_pieces && x->src >= 0 && x->n_guards; k++)
            if (complements(&m->piece[k], x) && reads_inside(m, x) &&
                (*read < 0 || xti_piece_numel(x) > xti_piece_numel(&m->piece[*read]))) {
                *read = i;
                *fill = k;
            }
    }
    return *read >= 0;
}

double xti_piece_visible(const struct xti_piece *x)
{
    enum { POINTS = 32, BITS = 16, GOLDEN = 40503 /* of 2^BITS; each dim has its powers: another order */ };
    int n = 0;
    for (uint64_t k = 0; k < POINTS; k++) {
        bool passes = true;
        for (int i = 0; i < x->n_guards; i++) {
            double e = (double)x->guard[i].c;
            uint64_t turn = GOLDEN;
            for (int j = 0; j < x->n_dims; j++, turn *= GOLDEN) {
                double at = (double)((k * turn) % (1 << BITS)) / (1 << BITS);
                e += (double)x->guard[i].x[j] * at * (double)(x->dim[j].n - 1);
            }
            passes &= e >= 0;
        }
        n += passes;
    }
    return (double)n / POINTS;
}

/* Dims that only guards told apart are one. */
static void merge_dims(struct xti_piece *x)
{
    int n = 0;
    for (int i = 0; i < x->n_dims; i++) {
        struct xti_dim *out = &x->dim[n - 1], d = x->dim[i];
        if (n && out->s == xti_mul_most(d.s, d.n) && out->d == d.d * d.n)
            *out = (struct xti_dim){out->n * d.n, d.s, d.d};
        else
            x->dim[n++] = d;
    }
    x->n_dims = n;
}

bool xti_map_cover(const struct xti_map *m, int piece, struct xti_arena *arena, struct xti_piece **out)
{
    const struct xti_piece *from = &m->piece[piece];
    struct xti_piece *p = xti_arena_dup(arena, m->piece, (size_t)m->n_pieces * sizeof *p);
    struct xti_dim *dim = xti_arena_dup(arena, from->dim, (size_t)from->n_dims * sizeof *dim);
    if (!p || !dim)
        return false;
    for (int i = piece; i > 0; i--)
        p[i] = p[i - 1];
    *p = *from;
    p->dim = dim;
    p->n_guards = 0;
    merge_dims(p);
    *out = p;
    return true;
}
