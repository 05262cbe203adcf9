/* shard.c: the public functions that make a plan and look at it. Layer 5. */
#include "shard/whole.h"

#include <string.h>

#include "base/give.h"
#include "base/num.h"

static xt_status fail(xt_status s, const char *what)
{
    struct xti_err err = {0};
    return xti_publish(xti_fail(&err, s, "%s", what), &err);
}

static int64_t longest(const struct xti_traffic *t)
{
    int64_t n = 0;
    for (int i = 0; i < t->n; i++)
        if (!t->message[i].in_place && t->message[i].near < 0 && t->message[i].elements > n)
            n = t->message[i].elements;
    return n;
}

xt_status xt_shard_new(const char *line, int64_t rank, const struct xt_transport *transport,
                       struct xt_shard **out)
{
    return xti_shard_new(line, rank, transport, XTI_MESSAGE_BYTES, out);
}

/* Ascending, the rank itself among them, each with a board. */
static bool near_make_sense(const struct xt_transport *t, int64_t rank)
{
    bool ok = t->n_near >= 0 && (!t->n_near || (t->near && t->board)), here = !t->n_near;
    for (int i = 0; ok && i < t->n_near; i++) {
        ok = t->board[i] && (!i || t->near[i] > t->near[i - 1]);
        here |= t->near[i] == rank;
    }
    return ok && here;
}

/* An object without a plan. who: "xt_shard_new" */
static xt_status open_shard(const struct xt_transport *transport, int64_t rank, const char *who,
                            struct xt_shard **out, struct xti_err *err)
{
    if (transport && (transport->size < XTI_UP_TO(struct xt_transport, wait_any) || !transport->post_recv ||
                      !transport->post_send || !transport->wait_any))
        return xti_fail(err, XT_EINVAL, "%s: xt_transport.size is not set, or a function is NULL", who);
    struct xt_shard *p = xti_alloc(sizeof *p);
    if (!p)
        return xti_fail(err, XT_ENOMEM, "%s: out of memory", who);
    if (transport)
        memcpy(&p->transport, transport,
               transport->size < sizeof *transport ? transport->size : sizeof *transport);
    if (!near_make_sense(&p->transport, rank)) {
        xti_free(p);
        return xti_fail(err, XT_EINVAL,
                        "%s: xt_transport.near does not ascend, or is without rank %lld, or "
                        "without boards",
                        who, (long long)rank);
    }
    *out = p;
    return XT_OK;
}

/* s: of its plan. On failure p is freed. */
static xt_status finish_shard(struct xt_shard *p, xt_status s, struct xti_err *err, struct xt_shard **out)
{
    if (!s) {
        p->src_kept = xti_alloc_array((size_t)p->plan.mesh.n_inputs + 1, sizeof *p->src_kept);
        s = p->src_kept && !xti_near_open(p) ? XT_OK : xti_fail(err, XT_ENOMEM, "a plan");
    }
    p->receive.traffic = &p->plan.receive;
    p->send.traffic = &p->plan.send;
    p->message_bytes = longest(&p->plan.receive) > longest(&p->plan.send) ? longest(&p->plan.receive)
                                                                          : longest(&p->plan.send);
    p->message_bytes *= p->plan.esize;
    if (!s && p->transport.size) /* the ranks agree on what has failed when plans are made */
        s = xti_shard_ready(p, err);
    if (s) {
        xt_shard_free(p);
        return xti_publish(s, err);
    }
    *out = p;
    return xti_publish(XT_OK, NULL);
}

/* Of a line, or of boxes. */
static xt_status make_shard(const char *line, const struct xti_boxed *x, int64_t rank,
                            const struct xt_transport *transport, int64_t most_bytes, struct xt_shard **out)
{
    struct xti_err err = {0};
    struct xti_target target;
    struct xt_shard *p = NULL;
    xt_status s = open_shard(transport, rank, line ? "xt_shard_new" : "xt_shard_boxes", &p, &err);
    if (s)
        return xti_publish(s, &err);
    xti_cpu_target(1, &target);
    const struct xti_near near = {p->transport.n_near, p->transport.near};
    s = line ? xti_shard_plan_make(line, rank, &target, most_bytes, &near, &p->plan, &err)
             : xti_boxes_plan_make(x, rank, &target, most_bytes, &near, &p->plan, &err);
    return finish_shard(p, s, &err, out);
}

xt_status xti_shard_new(const char *line, int64_t rank, const struct xt_transport *transport,
                        int64_t most_bytes, struct xt_shard **out)
{
    if (out)
        *out = NULL;
    if (!line || !out)
        return fail(XT_EINVAL, "xt_shard_new: an argument is NULL");
    return make_shard(line, NULL, rank, transport, most_bytes, out);
}

static bool has_boxes(const struct xt_boxes *b)
{
    return b && b->size >= XTI_UP_TO(struct xt_boxes, offset) && b->n >= 0 && b->n < INT32_MAX &&
           (!b->n || (b->rank && b->lo && b->len && (!b->strides || b->offset)));
}

xt_status xti_shard_boxes(const struct xti_boxed *x, int64_t rank, const struct xt_transport *transport,
                          int64_t most_bytes, struct xt_shard **out)
{
    if (out)
        *out = NULL;
    if (!out || !x->shape || x->rank < 1 || x->ranks < 1 || x->ranks > XTI_MAX_RANKS || !has_boxes(x->from) ||
        !has_boxes(x->to))
        return fail(XT_EINVAL, "xt_shard_boxes: an argument is NULL or absurd, a size is not set, or strides "
                               "are given without offsets");
    return make_shard(NULL, x, rank, transport, most_bytes, out);
}

xt_status xt_shard_boxes(xt_dtype dtype, int rank, const int64_t *shape, const struct xt_boxes *from,
                         const struct xt_boxes *to, int64_t ranks, int64_t me,
                         const struct xt_transport *transport, struct xt_shard **out)
{
    const struct xti_boxed x = {dtype, rank, shape, from, to, ranks};
    return xti_shard_boxes(&x, me, transport, XTI_MESSAGE_BYTES, out);
}

void xt_shard_free(struct xt_shard *p)
{
    if (!p)
        return;
    for (int i = 0; i < XTI_EACH_WAY; i++) {
        xti_free(p->receive.buffer[i]);
        xti_free(p->send.buffer[i]);
    }
    xti_free(p->src_kept);
    xti_whole_free(p);
    xti_near_close(p);
    xti_shard_plan_free(&p->plan);
    xti_free(p);
}

xt_status xt_shard_fail(xt_status s, const char *message)
{
    return s ? fail(s, message ? message : "") : xti_publish(XT_OK, NULL);
}

xt_status xt_shard_whole(const struct xt_shard *p, char *buf, size_t size, size_t *need)
{
    return p ? xt_print(p->plan.graph, buf, size, need) : fail(XT_EINVAL, "the plan is NULL");
}

int64_t xt_shard_ranks(const struct xt_shard *p) { return p ? p->plan.mesh.ranks : 0; }
int xt_shard_inputs(const struct xt_shard *p) { return p ? p->plan.mesh.n_inputs : 0; }

xt_status xt_shard_shape(const struct xt_shard *p, int input, int64_t rank, struct xt_end_info *out)
{
    struct xti_err err = {0};
    struct xti_place at;
    int64_t lo, hi;
    if (xti_give_check(out, XTI_UP_TO(struct xt_end_info, to_bytes), "xt_shard_shape", "xt_end_info", &err))
        return xti_publish(XT_EINVAL, &err);
    if (!p || input < -1 || input >= p->plan.mesh.n_inputs || rank < -1 || rank >= p->plan.mesh.ranks)
        return fail(XT_EINVAL, p ? "xt_shard_shape: no such input, or no such rank" : "the plan is NULL");
    const struct xt_graph *g = p->plan.graph;
    const struct xti_node *n = &g->node[input < 0 ? g->out : g->input[input]];
    const struct xti_spread *s = input < 0 ? &p->plan.mesh.output : &p->plan.mesh.input[input];
    struct xt_end_info e = {.name = input < 0 ? NULL : n->name, .dtype = n->dtype, .rank = n->rank};
    bool there = rank < 0 || xti_spread_place(s, rank, &at);
    if (rank < 0) {
        memcpy(e.shape, n->shape, sizeof e.shape);
        xti_dense_strides(n->rank, n->shape, e.strides);
    } else if (p->plan.boxes) {
        if (rank != p->plan.rank)
            return fail(XT_EUNSUPPORTED, "xt_shard_shape: of boxes a plan knows its own rank's alone");
        e.rank = 1;
        e.shape[0] = p->plan.here[input < 0][1];
        e.strides[0] = 1;
    } else if (there) {
        xti_spread_local(s, n->shape, &at, e.shape, e.strides);
        e.offset = s->offset;
    }
    if (!xti_span(e.rank, e.shape, e.strides, e.offset, &lo, &hi))
        return fail(XT_EOVERFLOW, "xt_shard_shape: addresses do not fit in 63 bits");
    if (hi >= lo && (e.rank || there)) {
        e.from_bytes = lo * (int64_t)xt_dtype_bytes(n->dtype);
        e.to_bytes = (hi + 1) * (int64_t)xt_dtype_bytes(n->dtype);
    }
    if (p->plan.boxes && rank >= 0)
        e.from_bytes = p->plan.here[input < 0][0] * (int64_t)xt_dtype_bytes(n->dtype);
    xti_give(out, &e, sizeof e);
    return xti_publish(XT_OK, NULL);
}

int64_t xt_shard_index(const struct xt_shard *p, int input, int64_t rank, int axis, int64_t i)
{
    struct xt_end_info e = {.size = sizeof e}, whole = {.size = sizeof whole};
    struct xti_place at;
    if (!p || p->plan.boxes || rank < 0 || xt_shard_shape(p, input, rank, &e) ||
        xt_shard_shape(p, input, -1, &whole) || axis < 0 || axis >= e.rank || i < 0 || i >= e.shape[axis])
        return -1;
    const struct xti_spread *s = input < 0 ? &p->plan.mesh.output : &p->plan.mesh.input[input];
    xti_spread_place(s, rank, &at);
    return xti_cut_index(&s->cut[axis], whole.shape[axis], at.on[axis], i);
}

xt_status xt_shard_get(const struct xt_shard *p, struct xt_shard_info *out)
{
    struct xti_err err = {0};
    struct xt_shard_info i = {0};
    if (xti_give_check(out, XTI_UP_TO(struct xt_shard_info, staging_bytes), "xt_shard_get", "xt_shard_info",
                       &err))
        return xti_publish(XT_EINVAL, &err);
    if (!p)
        return fail(XT_EINVAL, "the plan is NULL");
    xti_shard_info(p, &i);
    xti_give(out, &i, sizeof i);
    return xti_publish(XT_OK, NULL);
}

xt_status xt_shard_explain(const struct xt_shard *p, int flags, char *buf, size_t size, size_t *need)
{
    struct xti_str b = {0};
    if (!p || (!buf && size))
        return fail(XT_EINVAL, "xt_shard_explain: an argument is NULL");
    if (flags & ~XT_JSON)
        return fail(XT_EINVAL, "xt_shard_explain: flags are not 0 or XT_JSON");
    (flags & XT_JSON ? xti_shard_json : xti_shard_text)(p, &b);
    xt_status s = b.failed ? fail(XT_ENOMEM, "xt_shard_explain: out of memory")
                           : xti_publish(xti_copy_out(b.s, b.n, buf, size, need), NULL);
    xti_str_free(&b);
    return s;
}
