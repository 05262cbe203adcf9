/* parts.c: boxes become parts, parts become messages in the order of a tournament. Layer 5. */
#include "shard/parts.h"

#include <string.h>

#include "shard/read.h"

static xt_status no_memory(const struct xti_parts *b)
{
    return xti_fail(b->err, XT_ENOMEM, "plan over a mesh");
}

/* ---- parts */

static xt_status add_part(struct xti_parts *b, struct xti_traffic *t, struct xti_shard_part part)
{
    struct xti_shard_part *v = xti_grown(t->part, sizeof *v, t->n_parts, &t->cap_parts);
    if (!v)
        return no_memory(b);
    t->part = v;
    t->part[t->n_parts++] = part;
    return XT_OK;
}

xt_status xti_parts_add(struct xti_parts *b, struct xti_traffic *t, struct xti_shard_part part,
                        const struct xti_piece *box, const int64_t *pos, int64_t elements)
{
    part.stencil = xti_stencil_find(b->p, b->group, box, pos, elements);
    if (part.stencil < 0)
        return no_memory(b);
    b->p->stencil[part.stencil].direct = b->direct;
    bool near = t == &b->p->send && xti_near_find(&b->p->near, part.peer) >= 0;
    b->p->stencil[part.stencil].used[near                  ? XTI_PACK_NEAR
                                     : t == &b->p->send    ? XTI_PACK
                                     : t == &b->p->receive ? XTI_UNPACK
                                                           : XTI_WITHIN] = true;
    part.soff = box->soff;
    part.doff = box->doff;
    return add_part(b, t, part);
}

/* A list of one run is a box: it may be sent, or received, in its place. */
static xt_status add_run(struct xti_parts *b, struct xti_traffic *t, struct xti_shard_part part,
                         const struct xti_piece *box, const int64_t *pos, const struct xti_list_run *run)
{
    struct xti_dim dim[XTI_MAX_DIMS + 1] = {{run->n, 1, 1}};
    int64_t at[XTI_MAX_DIMS + 2] = {1};
    struct xti_piece one = {.src = box->src, .soff = box->soff, .doff = box->doff, .n_dims = 1, .dim = dim};
    *(t == &b->p->send ? &one.soff : &one.doff) += run->at;
    for (int i = 0; i < box->n_dims; i++)
        if (!pos[i] && box->dim[i].n > 1)
            dim[one.n_dims++] = box->dim[i];
    return xti_parts_add(b, t, part, &one, at, run->n);
}

/* Adds a list, each message's share as a part of its own. */
static xt_status add_list(struct xti_parts *b, struct xti_traffic *t, struct xti_shard_part part,
                          const struct xti_piece *box, const int64_t *pos, const struct xti_list_run *run,
                          int64_t n_runs)
{
    xt_status s = XT_OK;
    part.soff = box->soff;
    part.doff = box->doff;
    for (int64_t i = 0, end; i < n_runs && !s; i = end) {
        int64_t elements = 0;
        for (end = i; end < n_runs && elements < b->p->most; end++)
            elements += run[end].n;
        if (end == i + 1 && (run[i].step == 1 || run[i].n == 1)) {
            s = add_run(b, t, part, box, pos, &run[i]);
            continue;
        }
        part.stencil = xti_stencil_list(b->p, b->group, box, pos, elements, run + i, end - i);
        if (part.stencil < 0)
            return no_memory(b);
        b->p->stencil[part.stencil].direct = b->direct;
        s = add_part(b, t, part);
    }
    return s;
}

/* What may still be looked at for lists of that pair of ranks: 3 ms, and of all pairs of a rank 1.6 s. */
static int64_t *looks_left(struct xti_parts *b, int64_t peer, bool sending)
{
    enum { OF_ALL = 1 << 28, OF_PAIR = 1 << 20 };
    int64_t each = OF_ALL / b->p->mesh.ranks, **looks = &b->looks[sending];
    if (!*looks) {
        *looks = xti_alloc_array((size_t)b->p->mesh.ranks, sizeof **looks);
        for (int64_t i = 0; *looks && i < b->p->mesh.ranks; i++)
            (*looks)[i] = each < OF_PAIR ? each : OF_PAIR;
    }
    return *looks ? *looks + peer : NULL;
}

/* Sends, or receives, what guards let pass of the box. *listed: no list is too long, or too long to make. */
static xt_status try_list(struct xti_parts *b, struct xti_traffic *t, struct xti_shard_part part,
                          const struct xti_piece *box, const int64_t *pos, int64_t elements, bool *listed)
{
    struct xti_list_run *run;
    int64_t n_runs, *looks = looks_left(b, part.peer, t == &b->p->send);
    if (!looks || xti_list_make(box, pos, elements, b->p->most, t == &b->p->send, looks, &run, &n_runs))
        return no_memory(b);
    *listed = n_runs >= 0;
    xt_status s = add_list(b, t, part, box, pos, run, n_runs);
    xti_free(run);
    return s;
}

/* Cuts the box until a part fits a message. As deep as it has dims. */
static xt_status add_cut(struct xti_parts *b, struct xti_traffic *t, struct xti_shard_part part,
                         const struct xti_piece *box, const int64_t *pos, int64_t elements)
{
    int64_t most = b->p->most;
    int k = xti_box_outermost(box, pos);
    if (elements <= most || k < 0)
        return xti_parts_add(b, t, part, box, pos, elements);
    struct xti_box_room room;
    struct xti_piece some = xti_box_copy(&room, box);
    int64_t n = box->dim[k].n, each = most / pos[k] ? most / pos[k] : 1;
    xt_status s = XT_OK;
    for (int64_t x = 0; x < n && !s; x += each) {
        if (x)
            xti_box_move(&some, k, each);
        some.dim[k].n = n - x < each ? n - x : each;
        s = add_cut(b, t, part, &some, pos, pos[k] * some.dim[k].n);
    }
    return s;
}

/* The part of the box from x on. dim: room for its dims. */
static struct xti_piece share_of(const struct xti_piece *box, const int64_t *x, const int64_t *n,
                                 struct xti_dim *dim)
{
    struct xti_piece share = *box;
    share.dim = dim;
    for (int i = 0; i < box->n_dims; i++) {
        dim[i] = box->dim[i];
        dim[i].n = dim[i].n - x[i] < n[i] ? dim[i].n - x[i] : n[i];
        share.soff += x[i] * dim[i].s;
        share.doff += x[i] * dim[i].d;
    }
    return share;
}

static const int64_t *shares(struct xti_parts *b, const struct xti_piece *box)
{
    size_t bytes = (size_t)box->n_dims * sizeof *box->dim;
    if (b->n_dims != box->n_dims || memcmp(b->dim, box->dim, bytes)) {
        b->n_dims = box->n_dims;
        memcpy(b->dim, box->dim, bytes);
        xti_box_share(box, b->p->esize, b->p->most, b->share);
    }
    return b->share;
}

static xt_status add_shares(struct xti_parts *b, struct xti_traffic *t, struct xti_shard_part part,
                            const struct xti_piece *box, enum xti_message_order order)
{
    struct xti_dim dim[XTI_MAX_DIMS];
    int64_t x[XTI_MAX_DIMS] = {0}, pos[XTI_MAX_DIMS + 1];
    const int64_t *n = shares(b, box);
    int k;
    do {
        struct xti_piece share = share_of(box, x, n, dim);
        xt_status s = xti_parts_add(b, t, part, &share, pos, xti_box_positions(&share, order, pos));
        if (s)
            return s;
        for (k = box->n_dims - 1; k >= 0 && (x[k] += n[k]) >= box->dim[k].n; k--)
            x[k] = 0;
    } while (k >= 0);
    return XT_OK;
}

xt_status xti_parts_between(struct xti_parts *b, struct xti_shard_part part, int64_t peer, bool sending,
                            const struct xti_piece *box, enum xti_message_order order)
{
    struct xti_shard_plan *p = b->p;
    struct xti_traffic *t = sending ? &p->send : &p->receive;
    int64_t pos[XTI_MAX_DIMS + 1], elements = xti_box_positions(box, order, pos);
    int near = b->direct ? xti_near_find(&p->near, peer) : -1;
    part.peer = peer;
    if (near >= 0 && sending)
        p->pulled_by[near] = true;
    xt_status s = near < 0 || sending ? XT_OK : xti_parts_add(b, &p->pull, part, box, pos, elements);
    bool listed = false;
    if (!s && box->n_guards && p->lists)
        s = try_list(b, t, part, box, pos, elements, &listed);
    if (s || listed)
        return s;
    return b->plain && elements > p->most ? add_shares(b, t, part, box, order)
                                          : add_cut(b, t, part, box, pos, elements);
}

/* ---- messages */

/* Steps of a tournament: in step k a rank sends to the k-th after it and receives of the k-th before it. */
static int64_t distance(const struct xti_shard_plan *p, const struct xti_traffic *t, int64_t peer)
{
    int64_t steps = t == &p->send ? peer - p->rank : p->rank - peer;
    return steps < 0 ? steps + p->mesh.ranks : steps;
}

int xti_near_find(const struct xti_near *near, int64_t rank)
{
    int lo = 0, hi = near->n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (near->rank[mid] < rank)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < near->n && near->rank[lo] == rank ? lo : -1;
}

/* By distance, those of one peer in their order: digit by digit, the low one first. */
static xt_status sort_parts(struct xti_parts *b, struct xti_traffic *t)
{
    enum { DIGIT = 12, DIGITS = 2, VALUES = 1 << DIGIT };
    _Static_assert((int64_t)1 << DIGIT * DIGITS >= XTI_MAX_RANKS, "a distance is less");
    struct xti_shard_part *v = xti_alloc_array((size_t)t->n_parts + 1, sizeof *v), *was;
    if (!v)
        return no_memory(b);
    int64_t most = b->p->mesh.ranks - 1, values = most < VALUES ? most + 1 : VALUES;
    for (int k = 0; most >> DIGIT * k; k++) {
        int end[VALUES];
        memset(end, 0, (size_t)values * sizeof *end);
        for (int i = 0; i < t->n_parts; i++)
            end[distance(b->p, t, t->part[i].peer) >> DIGIT * k & (VALUES - 1)]++;
        for (int x = 1; x < values; x++)
            end[x] += end[x - 1];
        for (int i = t->n_parts - 1; i >= 0; i--)
            v[--end[distance(b->p, t, t->part[i].peer) >> DIGIT * k & (VALUES - 1)]] = t->part[i];
        was = t->part;
        t->part = v;
        v = was;
    }
    xti_free(v);
    return XT_OK;
}

/* Of what is copied within: a message a peer. */
static xt_status make_messages(struct xti_parts *b, struct xti_traffic *t, enum xti_move move)
{
    xt_status s = sort_parts(b, t);
    t->message = s ? NULL : xti_alloc_array((size_t)t->n_parts + 1, sizeof *t->message);
    if (!t->message)
        return s ? s : no_memory(b);
    for (int i = 0; i < t->n_parts; i++) {
        struct xti_shard_part *part = &t->part[i];
        struct xti_stencil *st = &b->p->stencil[part->stencil];
        struct xti_message *m = t->n ? &t->message[t->n - 1] : NULL;
        bool other = !m || m->peer != part->peer;
        int near = other ? xti_near_find(&b->p->near, part->peer) : m->near;
        bool direct = near >= 0 && st->direct;
        t->peers += other;
        if (other || direct != m->direct || (move != XTI_WITHIN && m->elements + st->elements > b->p->most)) {
            m = &t->message[t->n++];
            *m = (struct xti_message){.peer = part->peer, .first = i, .near = near, .direct = direct};
        }
        part->at = m->elements;
        m->in_place = ++m->n == 1 && m->near < 0 && xti_stencil_runs(st, move);
        m->elements += st->elements;
        t->elements += st->elements;
    }
    return XT_OK;
}

xt_status xti_parts_begin(struct xti_parts *b)
{
    b->p->pulled_by = xti_alloc_array((size_t)b->p->near.n + 1, sizeof *b->p->pulled_by);
    return b->p->pulled_by ? XT_OK : no_memory(b);
}

void xti_parts_free(struct xti_parts *b)
{
    xti_free(b->looks[0]);
    xti_free(b->looks[1]);
}

xt_status xti_parts_finish(struct xti_parts *b)
{
    xt_status s = make_messages(b, &b->p->send, XTI_PACK);
    if (!s)
        s = make_messages(b, &b->p->receive, XTI_UNPACK);
    return s ? s : make_messages(b, &b->p->pull, XTI_WITHIN);
}

xt_status xti_shard_kernels(struct xti_shard_plan *p, struct xti_err *err)
{
    xt_status s = XT_OK;
    for (int i = 0; i < p->n_stencils; i++)
        for (int k = 0; k < XTI_MOVES && !s; k++)
            if (p->stencil[i].used[k])
                s = xti_stencil_kernel(p, i, (enum xti_move)k, err);
    return s;
}
