/* plan.c: from a problem line over a mesh to one rank's messages. Layer 5. */
#include "shard/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "graph/build.h"
#include "graph/replay.h"
#include "plan/cost.h"
#include "shard/parts.h"
#include "shard/read.h"

struct planner {
    struct xti_shard_plan *p;
    struct xt_graph *g; /* the chain over pages: inputs are local arrays by class */
    xt_node whole;      /* its result, before it is spread */
    int *tensor;        /* [input of g] which of the line's inputs */
    int64_t *only;      /* [input of g] the page of it that a receiver gets of this rank */
    int n_inputs;
    struct xti_parts parts; /* whose group is that of the box at hand */
    int first_group;        /* of the map that is read */
    struct xti_work *spare; /* of fusing */
    struct xti_err *err;
    bool ordered; /* the group has an order: */
    enum xti_message_order order;
    bool sending; /* of the two roles that a rank has */
    int64_t to;   /* awkward maps: who receives; else -1 */
    bool keeping; /* of them: what the rank itself has of what it receives, and nothing else */
};

static xt_status no_memory(struct planner *b) { return xti_fail(b->err, XT_ENOMEM, "plan over a mesh"); }

/* ---- the chain again, over pages */

static xt_node gather_input(void *arg, struct xt_graph *g, const struct xti_node *n)
{
    struct planner *b = arg;
    int before = b->g->n_inputs;
    xt_node x = xti_spread_gather(g, &b->p->mesh.input[n->input], n->dtype, n->shape);
    int *v = x < 0 ? NULL : xti_realloc(b->tensor, (size_t)(b->g->n_inputs + 1) * sizeof *v);
    if (!v)
        return x < 0 ? x : (xti_graph_fail(b->g, XT_ENOMEM, "out of memory"), -1);
    b->tensor = v;
    for (int i = before; i < b->g->n_inputs; i++)
        v[i] = n->input;
    return x;
}

static xt_status replay(struct planner *b)
{
    if (xt_graph_new(&b->g))
        return no_memory(b);
    b->whole = xti_graph_replay(b->g, b->p->graph, gather_input, b);
    if (b->g->err.e.status && !b->err->e.status)
        *b->err = b->g->err;
    if (!b->g->err.e.status && (int64_t)b->g->n_inputs * b->p->mesh.ranks > INT32_MAX)
        return xti_fail(b->err, XT_EUNSUPPORTED, "%d kinds of local arrays on so many ranks", b->g->n_inputs);
    return b->g->err.e.status;
}

/* ---- boxes */

/* The rank that has the page for `to`: of copies that of its own coordinates, else one in turn. */
static int64_t copy_shift(const struct xti_spread *s, int64_t to)
{
    struct xti_place at;
    int64_t shift = 0, left = to;
    bool own = s->n_copies && xti_spread_place(s, to, &at);
    for (int i = s->n_copies - 1; i >= 0; i--) {
        shift += s->copy[i].stride * (own ? at.copy[i] : left % s->copy[i].n);
        left /= s->copy[i].n;
    }
    return shift;
}

/* Of the rank itself, where it is copy 0 of its place; -1: it is not of the grid. */
static int64_t first_copy(const struct xti_spread *s, int64_t rank)
{
    struct xti_place at;
    if (!xti_spread_place(s, rank, &at))
        return -1;
    for (int i = 0; i < s->n_copies; i++)
        rank -= s->copy[i].stride * at.copy[i];
    return rank;
}

static xt_status take_box(void *arg, const struct xti_between *between)
{
    struct planner *b = arg;
    struct xti_shard_plan *p = b->p;
    int64_t from = between->from, to = b->to < 0 ? between->to : b->to;
    struct xti_shard_part part = {.peer = to};
    const struct xti_piece *box = &between->box;
    int64_t pos[XTI_MAX_DIMS + 1];
    if (box->src < 0)
        return b->sending || b->keeping ? XT_OK
                                        : xti_parts_add(&b->parts, &p->fill, part, box, pos,
                                                        xti_box_positions(box, XTI_BY_DESTINATION, pos));
    part.input = b->tensor[box->src % b->n_inputs];
    if (box->n_guards && first_copy(&p->mesh.input[part.input], from) != from)
        return XT_OK; /* no such rank: the guards hide all of it */
    from += copy_shift(&p->mesh.input[part.input], to);
    if (b->sending && (from != p->rank || to == p->rank))
        return XT_OK;
    if (xti_box_is_hidden(box))
        return XT_OK;
    if (b->to == p->rank && (from == to) != b->keeping)
        return XT_OK;
    if (from == to)
        return xti_parts_add(&b->parts, &p->own, part, box, pos,
                             xti_box_positions(box, XTI_BY_DESTINATION, pos));
    if (!b->ordered) {
        b->order = xti_box_order(box, p->esize, p->most);
        b->parts.direct = p->near.n && xti_box_direct(box, p->esize, b->order);
        b->ordered = true;
    }
    return xti_parts_between(&b->parts, part, b->sending ? to : from, b->sending, box, b->order);
}

/* ---- maps whose peers are not read off: one map for each receiver */

/* Sets the class's node to one rank: its digits are attrs of an index node. */
struct lens {
    xt_node all, one; /* of all ranks of the class; of one */
    int64_t first[2 * XT_MAX_RANK];
    int digit[XT_MAX_RANK]; /* place of axis i's rank digit among the axes; -1: not cut */
};

static xt_status make_lens(struct planner *b, const struct xti_spread *s, const int *which, xt_node x,
                           struct lens *l)
{
    struct xt_index items[XT_MAX_RANK];
    struct xti_class_of c[XTI_AXIS_CLASSES];
    const struct xti_node *n = &b->g->node[x];
    int64_t st[XT_MAX_RANK];
    int at = 0, kept = 0;
    l->all = x;
    for (int i = 0; i < n->rank; i++)
        items[i] = (struct xt_index){XT_SLICE, 0, INT64_MAX, 1};
    for (; at < s->n_copies; at++)
        items[at].kind = XT_AT;
    for (int i = 0; i < s->rank; i++, at++) {
        xti_cut_classes(&s->cut[i], b->g->node[b->whole].shape[i], c);
        l->digit[i] = s->cut[i].ranks > 1 ? at : -1;
        l->first[i] = c[which[i]].first;
        if (s->cut[i].ranks > 1)
            items[at++].kind = XT_AT;
        st[kept++] = b->g->out_strides[at];
    }
    l->one = xt_index(b->g, x, at, items);
    return l->one < 0 || xt_output(b->g, l->one, st, s->offset) ? xti_graph_fail(b->g, XT_EINTERNAL, "lens")
                                                                : XT_OK;
}

/* The order of a message is the piece's, whatever of it is asked for; with guards, of which a box may have
 * lost some, it is that of the destination. */
static void next_group(struct planner *b, const struct xti_piece *p)
{
    b->parts.group++;
    b->order = XTI_BY_DESTINATION;
    b->ordered = b->parts.direct = p->n_divs || p->n_guards;
    b->parts.plain = !b->ordered;
}

static xt_status read_all(struct planner *b, const struct xti_map *m, int64_t from, int64_t to)
{
    xt_status s = XT_OK;
    b->parts.group = b->first_group;
    for (int i = 0; i < m->n_pieces && !s; i++) {
        const struct xti_piece *p = &m->piece[i];
        int64_t rank = from;
        next_group(b, p);
        if (from >= 0 && p->src < 0)
            continue;
        if (from >= 0 && (rank = first_copy(&b->p->mesh.input[b->tensor[p->src]], from)) < 0)
            continue;
        s = xti_read_piece(p, rank, to, take_box, b);
    }
    return s;
}

/* One receiver's map: each piece reads one page. Of what is sent few boxes have what no guard hides, as
 * lists; what a rank keeps is copied box by box, hidden elements, too, so that it has more and smaller ones.
 */
static xt_status read_receiver(struct planner *b, const struct lens *l, int64_t to)
{
    const struct xti_spread *s = &b->p->mesh.output;
    struct xti_fuse_options opt = {
        .div_boxes = 8, .guard_boxes = b->keeping ? 64 : 8, .page = XTI_PAGE, .spare = &b->spare};
    struct xti_place at;
    struct xti_map m;
    xti_spread_place(s, to, &at);
    bool from_here = b->sending || b->keeping;
    for (int i = 0; i < b->n_inputs && from_here; i++)
        b->only[i] = b->p->rank - copy_shift(&b->p->mesh.input[b->tensor[i]], to);
    opt.only = from_here ? b->only : NULL;
    for (int i = 0; i < s->rank; i++)
        if (l->digit[i] >= 0)
            b->g->node[l->one].attr[4 * l->digit[i] + 1] = at.on[i] - l->first[i];
    xt_status st = xti_map_fuse(b->g, &opt, &m, b->err);
    if (st)
        return st;
    b->to = to;
    for (int i = 0; i < m.n_pieces && !st; i++) {
        struct xti_between one = {m.piece[i].src < 0 ? -1 : m.piece[i].src / b->n_inputs, to, m.piece[i]};
        next_group(b, &m.piece[i]);
        st = take_box(b, &one);
    }
    b->to = -1;
    xti_map_free(&m);
    return st;
}

/* Could the rank send something to that receiver? */
static bool may_send(struct planner *b, const struct xti_map *m, int64_t to)
{
    enum { LOOKS = 300 }; /* fusing the map of a receiver takes as long as some hundred */
    bool may = false;
    int looks = LOOKS;
    for (int i = 0; i < m->n_pieces && !may; i++) {
        const struct xti_piece *p = &m->piece[i];
        may = p->src >= 0 &&
              xti_piece_may_read(p, b->p->rank - copy_shift(&b->p->mesh.input[b->tensor[p->src]], to), to,
                                 &looks);
    }
    return may;
}

static bool in_class(const struct xti_spread *s, const struct xti_place *at, const int64_t *shape,
                     const int *which)
{
    struct xti_class_of c[XTI_AXIS_CLASSES];
    for (int i = 0; i < s->rank; i++) {
        xti_cut_classes(&s->cut[i], shape[i], c);
        if (at->on[i] < c[which[i]].first || at->on[i] >= c[which[i]].first + c[which[i]].n)
            return false;
    }
    return true;
}

static xt_status read_awkward(struct planner *b, const struct xti_map *m, const int *which)
{
    const struct xti_spread *s = &b->p->mesh.output;
    const int64_t *shape = b->p->graph->node[b->p->graph->out].shape;
    struct lens l;
    struct xti_place at;
    int64_t me = b->p->rank;
    xt_status st = make_lens(b, s, which, b->g->out, &l);
    bool receives = !st && xti_spread_place(s, me, &at) && in_class(s, &at, shape, which);
    for (int k = 0; k < 2 && receives && !st; k++) {
        b->keeping = k;
        st = read_receiver(b, &l, me);
    }
    b->keeping = false;
    b->sending = true;
    for (int64_t to = 0; to < b->p->mesh.ranks && !st; to++)
        if (to != me && xti_spread_place(s, to, &at) && in_class(s, &at, shape, which) && may_send(b, m, to))
            st = read_receiver(b, &l, to);
    b->sending = false;
    return st;
}

static xt_status plan_class(void *arg, const int *which)
{
    struct planner *b = arg;
    struct xti_fuse_options opt = {.div_boxes = 8};
    const struct xti_spread *s = &b->p->mesh.output;
    struct xti_map m;
    bool awkward = false;
    if (xti_spread_scatter(b->g, s, b->whole, which) < 0) {
        *b->err = b->g->err;
        return b->err->e.status;
    }
    b->first_group = b->parts.group;
    xt_status st = xti_map_fuse(b->g, &opt, &m, b->err);
    if (st)
        return st;
    for (int i = 0; i < m.n_pieces; i++)
        awkward |= !xti_piece_reads_off(&m.piece[i]);
    if (awkward)
        st = read_awkward(b, &m, which);
    else if (!(st = read_all(b, &m, -1, b->p->rank))) {
        b->sending = true;
        st = read_all(b, &m, b->p->rank, -1);
        b->sending = false;
    }
    b->parts.group += XTI_MAX_PAGE_PIECES;
    xti_map_free(&m);
    return st;
}

/* ---- all of it */

xt_status xti_whole_bytes(const struct xti_node *n, const char *what, int64_t *bytes, struct xti_err *err)
{
    int64_t elements;
    return xti_product(n->rank, n->shape, &elements) &&
                   xti_mul64(elements, (int64_t)xt_dtype_bytes(n->dtype), bytes)
               ? XT_OK
               : xti_fail(err, XT_EOVERFLOW, "%s: its bytes do not fit in 63 bits", what);
}

/* Rank 0 of a grid has the most elements. */
static xt_status check_page(const struct xti_spread *s, const struct xti_node *n, const char *what,
                            bool *in_half, struct xti_err *err)
{
    struct xti_place at = {0};
    int64_t shape[XT_MAX_RANK], strides[XT_MAX_RANK], lo, hi, bytes;
    xt_status st = xti_whole_bytes(n, what, &bytes, err);
    if (st)
        return st;
    xti_spread_local(s, n->shape, &at, shape, strides);
    if (!xti_span(n->rank, shape, strides, s->offset, &lo, &hi) || hi >= XTI_PAGE)
        return xti_fail(err, XT_EUNSUPPORTED, "%s: a rank's array reaches beyond 2^40 elements", what);
    *in_half &= hi < XTI_PAGE / 2;
    return lo >= 0 || hi < lo
               ? XT_OK
               : xti_fail(err, XT_ERANGE, "%s: element %lld lies before a rank's array", what, (long long)lo);
}

static xt_status check_pages(struct xti_shard_plan *p, struct xti_err *err)
{
    const struct xt_graph *g = p->graph;
    p->lists = true;
    xt_status s = check_page(&p->mesh.output, &g->node[g->out], "the result", &p->lists, err);
    for (int i = 0; i < p->mesh.n_inputs && !s; i++)
        s = check_page(&p->mesh.input[i], &g->node[g->input[i]], g->node[g->input[i]].name, &p->lists, err);
    return s;
}

xt_status xti_shard_plan_make(const char *line, int64_t rank, const struct xti_target *target,
                              int64_t most_bytes, const struct xti_near *near, struct xti_shard_plan *p,
                              struct xti_err *err)
{
    struct planner b = {.p = p, .parts = {.p = p, .err = err}, .err = err, .to = -1};
    *p = (struct xti_shard_plan){.rank = rank, .target = *target, .near = *near};
    xt_status s = xti_parse_mesh(line, &p->graph, &p->mesh, err);
    if (s)
        return s;
    const struct xti_node *n = &p->graph->node[p->graph->out];
    int64_t bytes = 0;
    p->esize = (int)xt_dtype_bytes(n->dtype);
    p->most = most_bytes / p->esize;
    if (rank < 0 || rank >= p->mesh.ranks)
        s = xti_fail(err, XT_ERANGE, "rank %lld is not in [0,%lld)", (long long)rank,
                     (long long)p->mesh.ranks);
    if (!s)
        s = xti_whole_bytes(n, "the result", &bytes, err);
    p->streams = xti_cost_streams(target, bytes / p->mesh.ranks);
    if (!s)
        s = xti_parts_begin(&b.parts);
    s = s ? s : check_pages(p, err);
    if (!s && bytes && !(s = replay(&b))) {
        b.n_inputs = b.g->n_inputs;
        b.only = xti_alloc_array((size_t)b.n_inputs + 1, sizeof *b.only);
        s = b.only ? xti_spread_classes(&p->mesh.output, n->shape, plan_class, &b) : no_memory(&b);
    }
    if (!s)
        s = xti_parts_finish(&b.parts);
    xti_parts_free(&b.parts);
    xt_graph_free(b.g);
    xti_free(b.tensor);
    xti_free(b.only);
    xti_map_spare_free(b.spare);
    if (s)
        xti_shard_plan_free(p);
    return s;
}

static void free_traffic(struct xti_traffic *t)
{
    xti_free(t->part);
    xti_free(t->message);
}

void xti_shard_plan_free(struct xti_shard_plan *p)
{
    xti_stencils_free(p);
    free_traffic(&p->own);
    free_traffic(&p->fill);
    free_traffic(&p->send);
    free_traffic(&p->receive);
    free_traffic(&p->pull);
    xti_free(p->pulled_by);
    xt_graph_free(p->graph);
    xti_mesh_free(&p->mesh);
    xti_arena_free(&p->arena);
    *p = (struct xti_shard_plan){0};
}
