/* clone.c: copies a map with all its arrays into a new arena. Layer 2. */
#include "map/clone.h"

/* A copy of n elements; sets *ok false when there is no memory, so that a row of copies is tested once. */
static void *dup_array(struct xti_arena *a, const void *p, int n, size_t elem_bytes, bool *ok)
{
    void *q = xti_arena_dup(a, p, (size_t)n * elem_bytes);
    *ok = *ok && q;
    return q;
}

static const int64_t *dup_row(struct xti_arena *a, const int64_t *row, int n, bool *ok)
{
    return dup_array(a, row, n, sizeof *row, ok);
}

/* Replaces every array of *p by a copy. */
static bool clone_piece(struct xti_arena *a, struct xti_piece *p)
{
    bool ok = true;
    p->dim = dup_array(a, p->dim, p->n_dims, sizeof *p->dim, &ok);
    p->div = dup_array(a, p->div, p->n_divs, sizeof *p->div, &ok);
    p->guard = dup_array(a, p->guard, p->n_guards, sizeof *p->guard, &ok);
    p->sq = dup_row(a, p->sq, p->n_divs, &ok);
    for (int j = 0; ok && j < p->n_divs; j++) {
        p->div[j].x = dup_row(a, p->div[j].x, p->n_dims, &ok);
        p->div[j].q = dup_row(a, p->div[j].q, j, &ok);
    }
    for (int j = 0; ok && j < p->n_guards; j++) {
        p->guard[j].x = dup_row(a, p->guard[j].x, p->n_dims, &ok);
        p->guard[j].q = dup_row(a, p->guard[j].q, p->n_divs, &ok);
    }
    return ok;
}

xt_status xti_map_clone(const struct xti_map *m, struct xti_map *out, struct xti_err *err)
{
    bool ok = true;
    *out = *m;
    out->arena = (struct xti_arena){0};
    out->piece = dup_array(&out->arena, m->piece, m->n_pieces, sizeof *m->piece, &ok);
    out->src_lo = dup_array(&out->arena, m->src_lo, m->n_srcs, sizeof *m->src_lo, &ok);
    out->src_hi = dup_array(&out->arena, m->src_hi, m->n_srcs, sizeof *m->src_hi, &ok);
    for (int i = 0; ok && i < m->n_pieces; i++)
        ok = clone_piece(&out->arena, &out->piece[i]);
    if (ok)
        return XT_OK;
    xti_arena_free(&out->arena);
    *out = (struct xti_map){0};
    return xti_fail(err, XT_ENOMEM, "no memory for a map of %d pieces", m->n_pieces);
}
