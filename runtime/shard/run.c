/* run.c: carries a plan out over a transport: receives are posted first, messages are packed and sent while
 * others are under way, what stays on the rank is copied by one kernel, arrivals are unpacked. Layer 5. */
#include "shard/shard.h"

#include <string.h>

static xt_status fail(xt_status s, const char *what)
{
    struct xti_err err = {0};
    return xti_publish(xti_fail(&err, s, "%s", what), &err);
}

/* ---- one part */

static void move(const struct xt_shard *p, const struct xti_shard_part *part, enum xti_move how,
                 char *message)
{
    const struct xti_move_kernel *k = p->plan.stencil[part->stencil].kernel[how];
    int64_t size = p->plan.esize;
    const char *from = how == XTI_UNPACK ? message + part->at * size
                       : k->map.n_srcs   ? (const char *)p->src[part->input] + part->soff * size
                                         : NULL;
    char *to = how == XTI_PACK ? message + part->at * size : p->dst + part->doff * size;
    xti_cpu_run(&k->plan, to, (const void *[]){from}, NULL);
}

static void move_all(const struct xt_shard *p, const struct xti_traffic *t, const struct xti_message *m,
                     enum xti_move how, char *message)
{
    for (int i = m ? m->first : 0, end = m ? i + m->n : t->n_parts; i < end; i++)
        move(p, &t->part[i], how, message);
}

/* ---- messages */

static xt_status broken(struct xt_shard *p, xt_status s)
{
    p->broken = true;
    p->running = false;
    return xt_last_error()->status == s ? s : fail(s, "the transport failed");
}

static int free_slot(const struct xti_lane *l)
{
    for (int i = 0; i < XTI_EACH_WAY; i++)
        if (l->at[i] < 0)
            return i;
    return -1;
}

static xt_status post_receives(struct xt_shard *p)
{
    struct xti_lane *l = &p->receive;
    for (int i; l->next < l->traffic->n && (i = free_slot(l)) >= 0; l->next++) {
        const struct xti_message *m = &l->traffic->message[l->next];
        char *to = m->in_place ? p->dst + l->traffic->part[m->first].doff * p->plan.esize : l->buffer[i];
        xt_status s =
            p->transport.post_recv(p->transport.self, m->peer, to, (size_t)(m->elements * p->plan.esize), i);
        if (s)
            return broken(p, s);
        l->at[i] = l->next;
    }
    return XT_OK;
}

static xt_status post_sends(struct xt_shard *p)
{
    struct xti_lane *l = &p->send;
    for (int i; l->next < l->traffic->n && (i = free_slot(l)) >= 0; l->next++) {
        const struct xti_message *m = &l->traffic->message[l->next];
        const struct xti_shard_part *first = &l->traffic->part[m->first];
        const char *from = l->buffer[i];
        if (m->in_place)
            from = (const char *)p->src[first->input] + first->soff * p->plan.esize;
        else
            move_all(p, l->traffic, m, XTI_PACK, l->buffer[i]);
        xt_status s = p->transport.post_send(p->transport.self, m->peer, from,
                                             (size_t)(m->elements * p->plan.esize), i + XTI_EACH_WAY);
        if (s)
            return broken(p, s);
        l->at[i] = l->next;
    }
    return XT_OK;
}

static void finish_slot(struct xt_shard *p, int slot)
{
    struct xti_lane *l = slot < XTI_EACH_WAY ? &p->receive : &p->send;
    int i = slot % XTI_EACH_WAY;
    const struct xti_message *m = &l->traffic->message[l->at[i]];
    if (l == &p->receive && !m->in_place)
        move_all(p, l->traffic, m, XTI_UNPACK, l->buffer[i]);
    l->at[i] = -1;
    l->done++;
}

static bool is_done(const struct xt_shard *p)
{
    return p->send.done == p->send.traffic->n && p->receive.done == p->receive.traffic->n;
}

/* block: until all is done; else as far as it goes without waiting. */
static xt_status advance(struct xt_shard *p, bool block)
{
    while (!is_done(p)) {
        xt_status s = post_receives(p);
        int slot = -1;
        if (!s)
            s = post_sends(p);
        if (s)
            return s;
        s = p->transport.wait_any(p->transport.self, block, &slot);
        if (s || slot >= XTI_SLOTS)
            return broken(p, s ? s : XT_EINVAL);
        if (slot < 0 && !block)
            return XT_OK;
        if (slot >= 0)
            finish_slot(p, slot);
    }
    p->running = false;
    return XT_OK;
}

/* ---- public */

static xt_status take_buffers(struct xt_shard *p, struct xti_lane *l)
{
    l->next = l->done = 0;
    for (int i = 0; i < XTI_EACH_WAY; i++) {
        l->at[i] = -1;
        if (l->buffer[i] || i >= l->traffic->n)
            continue;
        l->buffer[i] = xti_alloc((size_t)p->message_bytes);
        if (!l->buffer[i])
            return fail(XT_ENOMEM, "xt_shard_start: staging buffers");
    }
    return XT_OK;
}

/* Bytes of a local array, from the pointer on. */
static xt_status check_buffer(const struct xt_shard *p, int input, const void *at, struct xt_end_info *e)
{
    e->size = sizeof *e;
    xt_status s = xt_shard_shape(p, input, p->plan.rank, e);
    return !s && !at && e->to_bytes > e->from_bytes ? fail(XT_EINVAL, "xt_shard_start: a pointer is NULL")
                                                    : s;
}

static xt_status check_buffers(const struct xt_shard *p, const void *dst, const void *const *srcs)
{
    struct xt_end_info d, e;
    xt_status s = check_buffer(p, -1, dst, &d);
    for (int i = 0; i < p->plan.mesh.n_inputs && !s; i++) {
        const char *to = dst, *from = srcs[i];
        s = check_buffer(p, i, from, &e);
        if (!s && from && to && from + e.from_bytes < to + d.to_bytes &&
            to + d.from_bytes < from + e.to_bytes)
            s = fail(XT_EALIAS, "xt_shard_start: dst overlaps a source");
    }
    return s;
}

xt_status xt_shard_start(struct xt_shard *p, void *dst, const void *const *srcs)
{
    struct xti_err err = {0};
    if (!p || !srcs)
        return fail(XT_EINVAL, "xt_shard_start: an argument is NULL");
    if (p->running || p->broken)
        return fail(XT_EINVAL, p->broken ? "xt_shard_start: the transport failed before"
                                         : "xt_shard_start: a run is under way");
    if (!p->transport.post_recv && p->plan.send.n + p->plan.receive.n)
        return fail(XT_EINVAL, "xt_shard_start: there are messages, and no transport was given");
    xt_status s = check_buffers(p, dst, srcs);
    if (s || (s = xti_shard_kernels(&p->plan, &err)))
        return err.e.status ? xti_publish(s, &err) : s;
    if ((s = take_buffers(p, &p->receive)) || (s = take_buffers(p, &p->send)))
        return s;
    p->dst = dst;
    for (int i = 0; i < p->plan.mesh.n_inputs; i++)
        p->src_kept[i] = srcs[i];
    p->src = p->src_kept;
    p->running = true;
    if ((s = post_receives(p)) || (s = post_sends(p)))
        return s;
    move_all(p, &p->plan.own, NULL, XTI_WITHIN, NULL);
    move_all(p, &p->plan.fill, NULL, XTI_WITHIN, NULL);
    return advance(p, false) ? xt_last_error()->status : xti_publish(XT_OK, NULL);
}

static xt_status go_on(struct xt_shard *p, bool block)
{
    if (!p || p->broken)
        return fail(XT_EINVAL, p ? "the transport failed before" : "the plan is NULL");
    return p->running && advance(p, block) ? xt_last_error()->status : xti_publish(XT_OK, NULL);
}

xt_status xt_shard_test(struct xt_shard *p, int *done)
{
    xt_status s = go_on(p, false);
    if (done)
        *done = p && !p->running;
    return s;
}

xt_status xt_shard_wait(struct xt_shard *p) { return go_on(p, true); }

xt_status xt_shard_run(struct xt_shard *p, void *dst, const void *const *srcs)
{
    xt_status s = xt_shard_start(p, dst, srcs);
    return s ? s : xt_shard_wait(p);
}
