/* sig.c: what makes two maps the same kernel: the normal form and its key.
 * In: a finished map, widened first (widen.c). Out: the map with sources numbered by first use and every side
 * starting at address 0, so that dtypes of one width, the order of inputs and absolute offsets do not matter;
 * and a byte string that is equal for equal maps only. Layer 2. */
#include "map/map.h"

#include <string.h>

#include "map/clone.h"

/* ------------------------------------------------------------------------------------------- normal form */

/* Numbers the sources in the order in which pieces read them; new_of[i] = -1: not read. */
static int number_sources(const struct xti_map *m, int *new_of, int *src_of)
{
    int n = 0;
    for (int i = 0; i < m->n_srcs; i++)
        new_of[i] = -1;
    for (int i = 0; i < m->n_pieces; i++) {
        int src = m->piece[i].src;
        if (src < 0 || new_of[src] >= 0)
            continue;
        src_of[n] = src;
        new_of[src] = n++;
    }
    return n;
}

static void move_origin(struct xti_map *m, const int *new_of)
{
    int64_t dst_lo = m->dst_lo;
    for (int i = 0; i < m->n_pieces; i++) {
        struct xti_piece *p = &m->piece[i];
        p->doff -= dst_lo;
        if (p->src < 0)
            continue;
        p->soff -= m->src_lo[p->src];
        p->src = new_of[p->src];
    }
    m->dst_lo = 0;
    m->dst_hi -= dst_lo;
}

/* m->src_lo and src_hi in the new numbering, from 0; byte origins into o. */
static void move_bounds(const struct xti_map *m, struct xti_map *out, struct xti_origin *o)
{
    for (int i = 0; i < o->n_srcs; i++) {
        int old = o->src_of[i];
        o->src_bytes[i] = m->src_lo[old] * m->esize;
        out->src_lo[i] = 0;
        out->src_hi[i] = m->src_hi[old] - m->src_lo[old];
    }
    out->n_srcs = o->n_srcs;
}

xt_status xti_map_normalize(const struct xti_map *m, struct xti_map *out, struct xti_origin *o,
                            struct xti_err *err)
{
    *o = (struct xti_origin){0};
    xt_status s = xti_map_clone(m, out, err);
    if (s)
        return s;
    size_t n = (size_t)m->n_srcs;
    int *new_of = xti_arena_alloc(&out->arena, n * sizeof *new_of);
    o->src_of = xti_arena_alloc(&out->arena, n * sizeof *o->src_of);
    o->src_bytes = xti_arena_alloc(&out->arena, n * sizeof *o->src_bytes);
    if (!new_of || !o->src_of || !o->src_bytes) {
        xti_arena_free(&out->arena);
        *out = (struct xti_map){0};
        *o = (struct xti_origin){0};
        return xti_fail(err, XT_ENOMEM, "no memory for the origins of %d sources", m->n_srcs);
    }
    o->n_srcs = number_sources(m, new_of, o->src_of);
    o->dst_bytes = m->dst_lo * m->esize;
    move_origin(out, new_of);
    move_bounds(m, out, o);
    return XT_OK;
}

/* --------------------------------------------------------------------------------------------------- key */

enum { KEY_VERSION = 1 }; /* changes with the layout below */

static void put(struct xti_str *key, int64_t v) { xti_str_u64le(key, (uint64_t)v); }

/* Dims lie in memory as they stand in a key, and a fill's source strides are 0. */
_Static_assert(sizeof(struct xti_dim) == 3 * sizeof(int64_t), "n, s, d");

static void put_piece(struct xti_str *key, const struct xti_piece *p)
{
    int64_t head[] = {
        p->src < 0 ? -1 : p->src, p->src < 0 ? 0 : p->soff, p->doff, p->n_dims, p->n_divs, p->n_guards};
    xti_str_row64le(key, sizeof head / sizeof *head, head);
    xti_str_row64le(key, 3 * p->n_dims, (const int64_t *)p->dim);
    for (int j = 0; j < p->n_divs; j++) {
        put(key, p->div[j].den);
        put(key, p->div[j].c);
        xti_str_row64le(key, p->n_dims, p->div[j].x);
        xti_str_row64le(key, j, p->div[j].q);
        put(key, p->src < 0 ? 0 : p->sq[j]);
    }
    for (int j = 0; j < p->n_guards; j++) {
        put(key, p->guard[j].c);
        xti_str_row64le(key, p->n_dims, p->guard[j].x);
        xti_str_row64le(key, p->n_divs, p->guard[j].q);
    }
}

/* Every list stands behind its length and every number takes eight bytes: no two maps give one string. The
 * bounds follow from the pieces where they are exact; where they are not they decide the index width, so they
 * are in. */
void xti_map_key(const struct xti_map *m, struct xti_str *key)
{
    int64_t head[] = {KEY_VERSION, m->esize, m->numel, m->dst_lo, m->dst_hi, m->n_srcs};
    xti_str_row64le(key, sizeof head / sizeof *head, head);
    xti_str_row64le(key, m->n_srcs, m->src_lo);
    xti_str_row64le(key, m->n_srcs, m->src_hi);
    put(key, m->n_pieces);
    for (int i = 0; i < m->n_pieces; i++)
        put_piece(key, &m->piece[i]);
}
