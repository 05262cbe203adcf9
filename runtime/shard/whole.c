/* whole.c: what stays on a rank and what it reads of near ranks in their places, as one copy. Where parts of
 * several ranks make up a line of the result, as where the innermost axis was cut, each would fetch and write
 * all of those lines by itself; one copy puts them together and writes them once. Layer 5. */
#include "shard/whole.h"

#include <stdlib.h>

#include "base/num.h"

/* The part as a piece of the map, which reads source i. */
static xt_status add(struct xt_shard *p, const struct xti_shard_part *part, int i, struct xti_err *err)
{
    struct xti_whole *w = &p->whole;
    struct xti_piece x = p->plan.stencil[part->stencil].piece;
    struct xti_map *m = &w->part[i];
    x.soff = part->soff;
    x.doff = part->doff;
    xt_status s = xti_map_of_piece(&x, p->plan.esize, m, err);
    if (s)
        return s;
    w->map.piece[i] = m->piece[0];
    w->map.piece[i].src = x.src < 0 ? -1 : i;
    w->map.src_lo[i] = m->n_srcs ? m->src_lo[0] : 0;
    w->map.src_hi[i] = m->n_srcs ? m->src_hi[0] : -1;
    w->map.numel += m->numel;
    w->map.dst_lo = i && w->map.dst_lo < m->dst_lo ? w->map.dst_lo : m->dst_lo;
    w->map.dst_hi = i && w->map.dst_hi > m->dst_hi ? w->map.dst_hi : m->dst_hi;
    return XT_OK;
}

static int by_destination(const void *a, const void *b)
{
    const struct xti_piece *x = a, *y = b;
    return (x->doff > y->doff) - (x->doff < y->doff);
}

static xt_status make_map(struct xt_shard *p, struct xti_err *err)
{
    const struct xti_traffic *t[] = {&p->plan.own, &p->plan.pull, &p->plan.fill};
    struct xti_whole *w = &p->whole;
    size_t n = (size_t)w->n;
    w->part = xti_alloc_array(n, sizeof *w->part);
    w->src = xti_alloc_array(n, sizeof *w->src);
    w->map = (struct xti_map){.esize = p->plan.esize, .n_pieces = w->n, .n_srcs = w->n};
    w->map.piece = xti_arena_alloc(&w->map.arena, n * sizeof *w->map.piece);
    w->map.src_lo = xti_arena_alloc(&w->map.arena, n * sizeof *w->map.src_lo);
    w->map.src_hi = xti_arena_alloc(&w->map.arena, n * sizeof *w->map.src_hi);
    if (!w->part || !w->src || !w->map.piece || !w->map.src_lo || !w->map.src_hi)
        return xti_fail(err, XT_ENOMEM, "a copy of several ranks");
    xt_status s = XT_OK;
    for (int k = 0, i = 0; k < 3; k++)
        for (int j = 0; j < t[k]->n_parts && !s; j++)
            s = add(p, &t[k]->part[j], i++, err);
    if (!s)
        qsort(w->map.piece, n, sizeof *w->map.piece, by_destination);
    return s;
}

/* Few, without divs and guards. */
static bool may_serve(const struct xti_shard_plan *p)
{
    const struct xti_traffic *t[] = {&p->own, &p->pull, &p->fill};
    bool ok = p->pull.n && p->own.n_parts + p->pull.n_parts <= XTI_MAX_PARTS;
    for (int k = 0; k < 3; k++)
        for (int j = 0; j < t[k]->n_parts && ok; j++)
            ok = xti_piece_affine(&p->stencil[t[k]->part[j].stencil].piece);
    return ok;
}

xt_status xti_whole_make(struct xt_shard *p, struct xti_err *err)
{
    struct xti_whole *w = &p->whole;
    if (w->asked || !may_serve(&p->plan))
        return XT_OK;
    w->n = p->plan.own.n_parts + p->plan.pull.n_parts + p->plan.fill.n_parts;
    xt_status s = make_map(p, err);
    if (!s)
        s = xti_plan_make(&w->map, &p->plan.target, &w->plan, err);
    w->asked = !s;
    w->serves = !s && w->plan.joint.n;
    if (!w->serves)
        xti_whole_free(p);
    return s;
}

void xti_whole_free(struct xt_shard *p)
{
    struct xti_whole *w = &p->whole;
    xti_plan_free(&w->plan);
    for (int i = 0; w->part && i < w->n; i++)
        xti_map_free(&w->part[i]);
    xti_map_free(&w->map);
    xti_free(w->part);
    xti_free(w->src);
    *w = (struct xti_whole){.asked = w->asked};
}

enum xti_shows xti_whole_shows(struct xt_shard *p)
{
    enum xti_shows all = XTI_SHOWS;
    for (int i = 0; i < p->plan.pull.n && all != XTI_NOT_BEGUN; i++) {
        enum xti_shows one = xti_near_shows(p, p->plan.pull.message[i].near);
        all = one == XTI_SHOWS ? all : one;
    }
    return all;
}

void xti_whole_run(struct xt_shard *p)
{
    const struct xti_traffic *own = &p->plan.own, *pull = &p->plan.pull;
    struct xti_whole *w = &p->whole;
    int n = 0;
    while (n < own->n_parts) {
        w->src[n] = p->src[own->part[n].input];
        n++;
    }
    for (int i = 0; i < pull->n; i++)
        for (int k = 0; k < pull->message[i].n; k++)
            w->src[n++] =
                xti_near_source(p, pull->message[i].near, pull->part[pull->message[i].first + k].input);
    xti_cpu_run(&w->plan, p->dst, w->src, NULL);
}
