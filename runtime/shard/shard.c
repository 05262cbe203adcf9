/* shard.c: the public functions that make a plan and look at it. Layer 5. */
#include "shard/near.h"

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

xt_status xti_shard_new(const char *line, int64_t rank, const struct xt_transport *transport,
                        int64_t most_bytes, struct xt_shard **out)
{
    struct xti_err err = {0};
    struct xti_target target;
    if (out)
        *out = NULL;
    if (!line || !out)
        return fail(XT_EINVAL, "xt_shard_new: an argument is NULL");
    if (transport && (transport->size < XTI_UP_TO(struct xt_transport, wait_any) || !transport->post_recv ||
                      !transport->post_send || !transport->wait_any))
        return fail(XT_EINVAL, "xt_shard_new: xt_transport.size is not set, or a function is NULL");
    struct xt_shard *p = xti_alloc(sizeof *p);
    if (!p)
        return fail(XT_ENOMEM, "xt_shard_new: out of memory");
    xti_cpu_target(1, &target);
    if (transport)
        memcpy(&p->transport, transport,
               transport->size < sizeof *transport ? transport->size : sizeof *transport);
    const struct xti_near near = {p->transport.n_near, p->transport.near};
    xt_status s = xti_shard_plan_make(line, rank, &target, most_bytes, &near, &p->plan, &err);
    if (!s) {
        p->src_kept = xti_alloc_array((size_t)p->plan.mesh.n_inputs + 1, sizeof *p->src_kept);
        s = p->src_kept && !xti_near_open(p) ? XT_OK
                                             : xti_fail(&err, XT_ENOMEM, "xt_shard_new: out of memory");
    }
    p->receive.traffic = &p->plan.receive;
    p->send.traffic = &p->plan.send;
    int64_t a = longest(&p->plan.receive), b = longest(&p->plan.send);
    p->message_bytes = (a > b ? a : b) * p->plan.esize;
    if (!s && transport) /* the ranks agree on what has failed when plans are made */
        s = xti_shard_ready(p, &err);
    if (s) {
        xt_shard_free(p);
        return xti_publish(s, &err);
    }
    *out = p;
    return xti_publish(XT_OK, NULL);
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
    xti_near_close(p);
    xti_shard_plan_free(&p->plan);
    xti_free(p);
}

xt_status xt_shard_fail(xt_status s, const char *message)
{
    return s ? fail(s, message ? message : "") : xti_publish(XT_OK, NULL);
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
    xti_give(out, &e, sizeof e);
    return xti_publish(XT_OK, NULL);
}

int64_t xt_shard_index(const struct xt_shard *p, int input, int64_t rank, int axis, int64_t i)
{
    struct xt_end_info e = {.size = sizeof e}, whole = {.size = sizeof whole};
    struct xti_place at;
    if (rank < 0 || xt_shard_shape(p, input, rank, &e) || xt_shard_shape(p, input, -1, &whole) || axis < 0 ||
        axis >= e.rank || i < 0 || i >= e.shape[axis])
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
    (flags & XT_JSON ? xti_shard_json : xti_shard_text)(p, &b);
    xt_status s = b.failed ? fail(XT_ENOMEM, "xt_shard_explain: out of memory")
                           : xti_publish(xti_copy_out(b.s, b.n, buf, size, need), NULL);
    xti_str_free(&b);
    return s;
}
