/* run.c: carries a plan out over a transport: receives are posted first, messages are packed and sent while
 * others are under way, what stays on the rank is copied by one kernel, arrivals are unpacked; what near
 * ranks show is copied from place to place. Layer 5. */
#include "shard/whole.h"

#include <sched.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

static xt_status fail(xt_status s, const char *what)
{
    struct xti_err err = {0};
    return xti_publish(xti_fail(&err, s, "%s", what), &err);
}

/* ---- one part */

static void move(const struct xt_shard *p, const struct xti_shard_part *part, enum xti_move how,
                 const void *src, char *message)
{
    const struct xti_stencil *st = &p->plan.stencil[part->stencil];
    const struct xti_move_kernel *k = st->kernel[how];
    int64_t size = p->plan.esize;
    if (st->n_runs) {
        bool arrives = how == XTI_UNPACK;
        xti_list_move(st, how, p->plan.esize, arrives ? p->dst : (char *)src,
                      arrives ? part->doff : part->soff, message + part->at * size);
        return;
    }
    const char *from = how == XTI_UNPACK ? message + part->at * size
                       : k->map.n_srcs   ? xti_place(src, part->soff * size)
                                         : NULL;
    char *to = message && how != XTI_UNPACK ? message + part->at * size : p->dst + part->doff * size;
    xti_cpu_run(&k->plan, to, (const void *[]){from}, NULL);
}

static void move_all(const struct xt_shard *p, const struct xti_traffic *t, const struct xti_message *m,
                     enum xti_move how, char *message)
{
    for (int i = m ? m->first : 0, end = m ? i + m->n : t->n_parts; i < end; i++)
        move(p, &t->part[i], how, p->src[t->part[i].input], message);
}

/* ---- messages */

static xt_status broken(struct xt_shard *p, xt_status s)
{
    p->broken = true;
    p->running = false;
    xti_near_break(p);
    return xt_last_error()->status == s ? s : fail(s, "the transport failed");
}

/* For the next message. */
static int free_slot(const struct xti_lane *l)
{
    bool near = l->traffic->message[l->next].near >= 0;
    for (int i = near ? XTI_EACH_WAY : 0; i < (near ? XTI_LANE_SLOTS : XTI_EACH_WAY); i++)
        if (l->at[i] < 0)
            return i;
    return -1;
}

static xt_status post_far_receive(struct xt_shard *p, const struct xti_message *m, int i)
{
    char *to =
        m->in_place ? p->dst + p->receive.traffic->part[m->first].doff * p->plan.esize : p->receive.buffer[i];
    return p->transport.post_recv(p->transport.self, m->peer, to, (size_t)(m->elements * p->plan.esize), i);
}

static xt_status post_receives(struct xt_shard *p)
{
    struct xti_lane *l = &p->receive;
    for (int i; l->next < l->traffic->n && (i = free_slot(l)) >= 0; l->next++) {
        const struct xti_message *m = &l->traffic->message[l->next];
        enum xti_shows shows = m->direct ? xti_near_shows(p, m->near) : XTI_HIDES;
        if (shows == XTI_NOT_BEGUN)
            return XT_OK;
        if (shows == XTI_SHOWS) {
            l->done++;
            continue;
        }
        if (m->near >= 0)
            l->ticket[i] = xti_near_expect(p, m->near);
        xt_status s = m->near >= 0 ? XT_OK : post_far_receive(p, m, i);
        if (s)
            return broken(p, s);
        l->at[i] = l->next;
    }
    return XT_OK;
}

static xt_status post_far_send(struct xt_shard *p, const struct xti_message *m, int i)
{
    const struct xti_shard_part *first = &p->send.traffic->part[m->first];
    const char *from = p->send.buffer[i];
    if (m->in_place)
        from = (const char *)p->src[first->input] + first->soff * p->plan.esize;
    else
        move_all(p, p->send.traffic, m, XTI_PACK, p->send.buffer[i]);
    return p->transport.post_send(p->transport.self, m->peer, from, (size_t)(m->elements * p->plan.esize),
                                  i + XTI_EACH_WAY);
}

static xt_status post_sends(struct xt_shard *p)
{
    struct xti_lane *l = &p->send;
    for (int i; l->next < l->traffic->n && (i = free_slot(l)) >= 0; l->next++) {
        const struct xti_message *m = &l->traffic->message[l->next];
        xt_status s = XT_OK;
        if (m->direct && xti_near_shows(p, p->me) == XTI_SHOWS) {
            l->done++;
            continue;
        }
        if (m->near >= 0) {
            move_all(p, l->traffic, m, XTI_PACK_NEAR, xti_near_buffer(p, i));
            l->ticket[i] = xti_near_send(p, m->near, i);
        } else {
            s = post_far_send(p, m, i);
        }
        if (s)
            return broken(p, s);
        l->at[i] = l->next;
    }
    return XT_OK;
}

static void finish_slot(struct xt_shard *p, struct xti_lane *l, int i, char *arrived)
{
    const struct xti_message *m = &l->traffic->message[l->at[i]];
    if (l == &p->receive && !m->in_place)
        move_all(p, l->traffic, m, XTI_UNPACK, arrived);
    l->at[i] = -1;
    l->done++;
}

/* ---- near ranks */

static bool take_near(struct xt_shard *p, int i)
{
    struct xti_lane *l = &p->receive;
    const struct xti_message *m = l->at[i] < 0 ? NULL : &l->traffic->message[l->at[i]];
    const char *at = m ? xti_near_arrived(p, m->near, l->ticket[i]) : NULL;
    if (!at)
        return false;
    finish_slot(p, l, i, (char *)at);
    xti_near_take(p, m->near);
    return true;
}

static bool release_near(struct xt_shard *p, int i)
{
    struct xti_lane *l = &p->send;
    const struct xti_message *m = l->at[i] < 0 ? NULL : &l->traffic->message[l->at[i]];
    if (!m || !xti_near_taken(p, m->near, l->ticket[i]))
        return false;
    finish_slot(p, l, i, NULL);
    return true;
}

static void copy_own(struct xt_shard *p)
{
    move_all(p, &p->plan.own, NULL, XTI_WITHIN, NULL);
    move_all(p, &p->plan.fill, NULL, XTI_WITHIN, NULL);
    p->pulled[p->plan.pull.n] = true;
}

/* All at once, as soon as all have begun; the parts by themselves if one of them hides its arrays. */
static bool go_whole(struct xt_shard *p)
{
    enum xti_shows shows = p->whole.done ? XTI_NOT_BEGUN : xti_whole_shows(p);
    if (shows == XTI_NOT_BEGUN)
        return false;
    p->whole.done = true;
    if (shows == XTI_HIDES) {
        copy_own(p);
        return true;
    }
    xti_whole_run(p);
    for (int i = 0; i < p->plan.pull.n; i++) {
        xti_near_pulled(p, p->plan.pull.message[i].near);
        p->pulled[i] = true;
    }
    p->pulled[p->plan.pull.n] = true;
    return true;
}

/* Of what is pulled the part that `near` has; pull.n: what stays on this rank; -1: none that can be done. */
static int unread(struct xt_shard *p, int near)
{
    const struct xti_traffic *t = &p->plan.pull;
    int i = near == p->me ? t->n : 0;
    while (i < t->n && t->message[i].near != near)
        i++;
    bool there = i < t->n || near == p->me;
    return there && !p->pulled[i] && xti_near_shows(p, near) != XTI_NOT_BEGUN ? i : -1;
}

/* What to read next: what a rank beside this one reads now, as what all of them want of a rank is often side
 * by side, and a page of memory that is open serves all; else what stays here, then by distance. */
static int choose(struct xt_shard *p)
{
    const struct xti_traffic *t = &p->plan.pull;
    for (int k = 0, near; p->plan.streams && (near = xti_near_company(p, k)) >= -1; k++) {
        int i = near < 0 ? -1 : unread(p, near);
        if (i >= 0)
            return i;
    }
    if (!p->pulled[t->n])
        return t->n;
    for (int i = 0; i < t->n; i++)
        if (!p->pulled[i] && xti_near_shows(p, t->message[i].near) != XTI_NOT_BEGUN)
            return i;
    return -1;
}

/* The next of the ranks whose arrays are read in their place, if one has begun. */
static bool pull(struct xt_shard *p)
{
    const struct xti_traffic *t = &p->plan.pull;
    int i = choose(p);
    if (i < 0)
        return false;
    const struct xti_message *m = i < t->n ? &t->message[i] : NULL;
    xti_near_reads(p, m ? m->near : p->me);
    if (!m)
        copy_own(p);
    else if (xti_near_shows(p, m->near) == XTI_SHOWS) {
        for (int k = m->first; k < m->first + m->n; k++)
            move(p, &t->part[k], XTI_WITHIN, xti_near_source(p, m->near, t->part[k].input), NULL);
        xti_near_pulled(p, m->near);
    }
    xti_near_reads(p, -1);
    p->pulled[i] = true;
    return true;
}

/* Has this rank read what it reads, and have those who read its own? */
static bool pulls_are_done(struct xt_shard *p)
{
    if (!p->whole.done)
        return false;
    for (int i = 0; i <= p->plan.pull.n && p->plan.near.n; i++)
        if (!p->pulled[i])
            return false;
    for (int i = 0; i < p->plan.near.n; i++)
        if (p->plan.pulled_by[i] && xti_near_shows(p, p->me) == XTI_SHOWS && !xti_near_has_pulled(p, i))
            return false;
    return true;
}

static bool go_near(struct xt_shard *p)
{
    bool any = false;
    for (int i = XTI_EACH_WAY; i < XTI_LANE_SLOTS && p->plan.near.n; i++) {
        any |= take_near(p, i);
        any |= release_near(p, i);
    }
    if (!p->whole.done)
        return any | go_whole(p);
    return any || pull(p);
}

/* ---- all of it */

static bool is_done(struct xt_shard *p)
{
    return p->send.done == p->send.traffic->n && p->receive.done == p->receive.traffic->n &&
           pulls_are_done(p);
}

static bool waits_for_near(struct xt_shard *p)
{
    const struct xti_lane *l[] = {&p->receive, &p->send};
    bool any = !pulls_are_done(p);
    for (int k = 0; k < 2; k++) {
        any |= l[k]->next < l[k]->traffic->n && l[k]->traffic->message[l[k]->next].near >= 0;
        for (int i = XTI_EACH_WAY; i < XTI_LANE_SLOTS; i++)
            any |= l[k]->at[i] >= 0;
    }
    return any;
}

/* Is a message of the transport's under way there? */
static bool is_posted(const struct xt_shard *p, int slot)
{
    const struct xti_lane *l = slot < XTI_EACH_WAY ? &p->receive : &p->send;
    return slot < XTI_SLOTS && l->at[slot % XTI_EACH_WAY] >= 0;
}

static bool any_posted(const struct xt_shard *p)
{
    bool any = false;
    for (int i = 0; i < XTI_SLOTS; i++)
        any |= is_posted(p, i);
    return any;
}

/* Nothing went on so many times. Ranks may be more than processors: one that waits gives its own to others,
 * by sleeping where yielding has not helped, as a scheduler comes back to who yields; a transport, which may
 * go on only when it is asked, is not left alone. */
static void wait_a_little(const struct xt_shard *p, int idle)
{
    enum { SPINS = 64, YIELDS = 128, NAP_NS = 20000 };
    if (idle > YIELDS && !any_posted(p))
        nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    else if (idle > SPINS)
        sched_yield();
}

static xt_status go_far(struct xt_shard *p, bool block, bool *any)
{
    int slot = -1;
    xt_status s = p->transport.wait_any(p->transport.self, block, &slot);
    if (s)
        return broken(p, s);
    if (slot >= 0 && !is_posted(p, slot))
        return broken(p, fail(XT_EINVAL, "the transport tells of a slot in which nothing is under way"));
    int64_t rank = slot < 0 ? xti_near_broken(p) : -1;
    if (rank >= 0) {
        char text[64];
        snprintf(text, sizeof text, "the run of rank %lld failed", (long long)rank);
        return broken(p, fail(XT_ECOMM, text));
    }
    if (slot >= 0) {
        struct xti_lane *l = slot < XTI_EACH_WAY ? &p->receive : &p->send;
        finish_slot(p, l, slot % XTI_EACH_WAY, l->buffer[slot % XTI_EACH_WAY]);
    }
    *any |= slot >= 0;
    return XT_OK;
}

/* block: until all is done; else as far as it goes without waiting. */
static xt_status advance(struct xt_shard *p, bool block)
{
    for (int idle = 0; !is_done(p);) {
        xt_status s = post_receives(p);
        if (!s)
            s = post_sends(p);
        if (s)
            return s;
        bool any = go_near(p), near = waits_for_near(p); /* before it may become done meanwhile */
        if (is_done(p))
            break;
        s = go_far(p, block && !any && !near, &any);
        if (s || (!any && !block))
            return s;
        idle = any ? 0 : idle + 1;
        wait_a_little(p, idle);
    }
    p->running = false;
    return XT_OK;
}

/* ---- public */

static xt_status take_buffers(struct xt_shard *p, struct xti_lane *l, struct xti_err *err)
{
    for (int i = 0; i < XTI_EACH_WAY && i < l->traffic->n && p->message_bytes; i++) {
        l->buffer[i] = l->buffer[i] ? l->buffer[i] : xti_alloc((size_t)p->message_bytes);
        if (!l->buffer[i])
            return xti_fail(err, XT_ENOMEM, "staging buffers of a plan over a mesh");
    }
    return XT_OK;
}

xt_status xti_shard_ready(struct xt_shard *p, struct xti_err *err)
{
    xt_status s = xti_shard_kernels(&p->plan, err);
    if (!s)
        s = xti_whole_make(p, err);
    if (!s)
        s = take_buffers(p, &p->receive, err);
    return s ? s : take_buffers(p, &p->send, err);
}

static void reset(struct xti_lane *l)
{
    l->next = l->done = 0;
    for (int i = 0; i < XTI_LANE_SLOTS; i++)
        l->at[i] = -1;
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
        bool both = !s && d.to_bytes > d.from_bytes && e.to_bytes > e.from_bytes;
        if (both && from + e.from_bytes < to + d.to_bytes && to + d.from_bytes < from + e.to_bytes)
            s = fail(XT_EALIAS, "xt_shard_start: dst overlaps a source");
    }
    return s;
}

/* Is what stays on this rank among what it reads of others, in an order that they have a say in? */
static bool stays_for_later(struct xt_shard *p)
{
    return p->plan.pull.n && xti_near_shows(p, p->me) == XTI_SHOWS;
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
    if (s || (s = xti_shard_ready(p, &err)))
        return err.e.status ? xti_publish(s, &err) : s;
    reset(&p->receive);
    reset(&p->send);
    p->dst = dst;
    for (int i = 0; i < p->plan.mesh.n_inputs; i++)
        p->src_kept[i] = srcs[i];
    p->src = p->src_kept;
    p->running = true;
    p->whole.done = !p->whole.serves;
    xti_near_begin(p);
    if ((s = post_receives(p)) || (s = post_sends(p)))
        return s;
    if (p->whole.done && !stays_for_later(p))
        copy_own(p);
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
