/* explain.c: a plan in words and as JSON: what a rank holds, whom it talks to, how. Layer 5. */
#include "shard/shard.h"

#include <inttypes.h>

static int64_t in_place(const struct xti_traffic *t)
{
    int64_t n = 0;
    for (int i = 0; i < t->n; i++)
        n += t->message[i].in_place;
    return n;
}

/* Elements that the parts write. */
static int64_t written(const struct xti_shard_plan *p, const struct xti_traffic *t)
{
    int64_t sum = 0;
    for (int i = 0; i < t->n_parts; i++)
        sum += xti_piece_numel(&p->stencil[t->part[i].stencil].piece);
    return sum;
}

static int64_t kernels(const struct xti_shard_plan *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->n_stencils; i++)
        for (int k = 0; k < XTI_MOVES; k++)
            n += p->stencil[i].used[k];
    return n;
}

static int64_t list_bytes(const struct xti_shard_plan *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->n_stencils; i++)
        n += p->stencil[i].n_runs;
    return n * (int64_t)sizeof(struct xti_list_run);
}

static int64_t traffic_bytes(const struct xti_traffic *t)
{
    return (int64_t)sizeof *t->part * t->n_parts + (int64_t)sizeof *t->message * (t->n_parts + 1);
}

void xti_shard_info(const struct xt_shard *s, struct xt_shard_info *i)
{
    const struct xti_shard_plan *p = &s->plan;
    *i = (struct xt_shard_info){
        .ranks = p->mesh.ranks,
        .rank = p->rank,
        .send_peers = p->send.peers,
        .send_messages = p->send.n,
        .send_bytes = p->send.elements * p->esize,
        .send_in_place = in_place(&p->send),
        .receive_peers = p->receive.peers,
        .receive_messages = p->receive.n,
        .receive_bytes = p->receive.elements * p->esize,
        .receive_in_place = in_place(&p->receive),
        .own_bytes = written(p, &p->own) * p->esize,
        .fill_bytes = written(p, &p->fill) * p->esize,
        .kernels = kernels(p),
        .plan_bytes = traffic_bytes(&p->own) + traffic_bytes(&p->fill) + traffic_bytes(&p->send) +
                      traffic_bytes(&p->receive) + traffic_bytes(&p->pull) + list_bytes(p) +
                      (int64_t)sizeof *p->stencil * p->cap_stencils,
    };
    int64_t a = i->send_messages - i->send_in_place, b = i->receive_messages - i->receive_in_place;
    i->staging_bytes =
        s->message_bytes * ((a < XTI_EACH_WAY ? a : XTI_EACH_WAY) + (b < XTI_EACH_WAY ? b : XTI_EACH_WAY));
    for (int k = 0; k < p->receive.n; k++) {
        const struct xti_message *m = &p->receive.message[k];
        i->near_bytes += m->near < 0 ? 0 : m->elements * p->esize;
        i->direct_bytes += m->direct ? m->elements * p->esize : 0;
    }
}

/* ---- text */

static void end_text(const struct xt_shard *s, int input, struct xti_str *b)
{
    struct xt_end_info e = {.size = sizeof e};
    if (xt_shard_shape(s, input, s->plan.rank, &e))
        return;
    const struct xti_node *n =
        &s->plan.graph->node[input < 0 ? s->plan.graph->out : s->plan.graph->input[input]];
    const struct xti_spread *spread = input < 0 ? &s->plan.mesh.output : &s->plan.mesh.input[input];
    xti_str_addf(b, "  %-9.40s %s", input < 0 ? "result" : e.name, xt_dtype_name(e.dtype));
    xti_str_list(b, n->rank, n->shape);
    if (e.to_bytes > e.from_bytes) {
        xti_str_add(b, ", here ");
        xti_str_list(b, e.rank, e.shape);
    } else {
        xti_str_add(b, ", nothing here");
    }
    if (xti_spread_copies(spread) > 1)
        xti_str_addf(b, ", %" PRId64 " copies", xti_spread_copies(spread));
    xti_str_add(b, "\n");
}

static void traffic_text(const char *what, const char *in_place_text, int64_t peers, int64_t messages,
                         int64_t bytes, int64_t whole, const struct xti_traffic *t, struct xti_str *b)
{
    char all[32], most[32];
    int64_t longest = 0;
    for (int i = 0; i < t->n; i++)
        longest = t->message[i].elements > longest ? t->message[i].elements : longest;
    xti_str_addf(b, "  %-9s ", what);
    if (!messages) {
        xti_str_add(b, "nothing\n");
        return;
    }
    xti_str_addf(b, "%" PRId64 " peer%s, %" PRId64 " message%s, %s", peers, peers == 1 ? "" : "s", messages,
                 messages == 1 ? "" : "s", xti_size_text(bytes, all, sizeof all));
    if (messages > 1)
        xti_str_addf(b, ", the longest %s",
                     xti_size_text(longest * (bytes / t->elements), most, sizeof most));
    xti_str_addf(b, "; %s %" PRId64 "\n", in_place_text, whole);
}

void xti_shard_text(const struct xt_shard *s, struct xti_str *b)
{
    struct xt_shard_info i;
    char a[32], c[32];
    xti_shard_info(s, &i);
    xti_str_addf(b, "rank %" PRId64 " of %" PRId64 "\n", i.rank, i.ranks);
    for (int k = 0; k < s->plan.mesh.n_inputs; k++)
        end_text(s, k, b);
    end_text(s, -1, b);
    traffic_text("sends", "without a buffer", i.send_peers, i.send_messages, i.send_bytes, i.send_in_place,
                 &s->plan.send, b);
    traffic_text("receives", "without a buffer", i.receive_peers, i.receive_messages, i.receive_bytes,
                 i.receive_in_place, &s->plan.receive, b);
    if (i.near_bytes)
        xti_str_addf(b, "  near      %s through shared memory; read in its place where it is seen: %s\n",
                     xti_size_text(i.near_bytes, a, sizeof a), xti_size_text(i.direct_bytes, c, sizeof c));
    if (s->whole.serves)
        xti_str_add(b,
                    "  together  what it reads in its place and what it keeps, where all of it is seen: they "
                    "share lines of the result\n");
    xti_str_addf(b, "  keeps     %s by %d fused cop%s", xti_size_text(i.own_bytes, a, sizeof a),
                 s->plan.own.n_parts, s->plan.own.n_parts == 1 ? "y" : "ies");
    if (i.fill_bytes)
        xti_str_addf(b, ", fills %s", xti_size_text(i.fill_bytes, a, sizeof a));
    xti_str_addf(b, "\n  kernels   %" PRId64 "\n  memory    %s plan, %s staging buffers\n", i.kernels,
                 xti_size_text(i.plan_bytes, a, sizeof a), xti_size_text(i.staging_bytes, c, sizeof c));
}

/* ---- JSON */

static void end_json(const struct xt_shard *s, int input, struct xti_str *b)
{
    struct xt_end_info e = {.size = sizeof e};
    if (xt_shard_shape(s, input, s->plan.rank, &e))
        return;
    xti_str_add(b, "{\"name\": ");
    xti_str_json(b, input < 0 ? "result" : e.name);
    xti_str_addf(b, ", \"dtype\": \"%s\", \"shape\": ", xt_dtype_name(e.dtype));
    xti_str_list(b, e.rank, e.shape);
    xti_str_add(b, ", \"strides\": ");
    xti_str_list(b, e.rank, e.strides);
    xti_str_addf(b, ", \"offset\": %" PRId64 "}", e.offset);
}

static void messages_json(const struct xt_shard *s, const struct xti_traffic *t, struct xti_str *b)
{
    xti_str_add(b, "[");
    for (int i = 0; i < t->n; i++)
        xti_str_addf(b, "%s{\"peer\": %" PRId64 ", \"bytes\": %" PRId64 ", \"parts\": %d, \"in_place\": %s}",
                     i ? ", " : "", t->message[i].peer, t->message[i].elements * s->plan.esize,
                     t->message[i].n, t->message[i].in_place ? "true" : "false");
    xti_str_add(b, "]");
}

void xti_shard_json(const struct xt_shard *s, struct xti_str *b)
{
    struct xt_shard_info i;
    xti_shard_info(s, &i);
    xti_str_addf(b, "{\"ranks\": %" PRId64 ", \"rank\": %" PRId64 ", \"inputs\": [", i.ranks, i.rank);
    for (int k = 0; k < s->plan.mesh.n_inputs; k++) {
        xti_str_add(b, k ? ", " : "");
        end_json(s, k, b);
    }
    xti_str_add(b, "], \"result\": ");
    end_json(s, -1, b);
    xti_str_add(b, ", \"sends\": ");
    messages_json(s, &s->plan.send, b);
    xti_str_add(b, ", \"receives\": ");
    messages_json(s, &s->plan.receive, b);
    xti_str_addf(b,
                 ", \"own_bytes\": %" PRId64 ", \"fill_bytes\": %" PRId64 ", \"kernels\": %" PRId64
                 ", \"plan_bytes\": %" PRId64 ", \"staging_bytes\": %" PRId64 ", \"near_bytes\": %" PRId64
                 ", \"direct_bytes\": %" PRId64 "}",
                 i.own_bytes, i.fill_bytes, i.kernels, i.plan_bytes, i.staging_bytes, i.near_bytes,
                 i.direct_bytes);
}
