/* stencil.c: the boxes of which messages consist, the order of their elements, their kernels. Layer 5. */
#include "shard/plan.h"

#include <string.h>

#include "base/num.h"
#include "plan/cost.h"
#include "plan/estimate.h"

enum { LOOK_BACK = 16 }; /* stencils of a group that are compared; missing one costs a kernel */

/* ---- the order of a message */

/* A dim that all elements along which are one element of the source is not sent. */
static bool sent(const struct xti_piece *b, int i)
{
    bool any = b->dim[i].s != 0;
    for (int j = 0; j < b->n_divs; j++)
        any |= b->div[j].x[i] != 0;
    for (int j = 0; j < b->n_guards; j++)
        any |= b->guard[j].x[i] != 0;
    return any && b->dim[i].n > 1;
}

static bool before(const struct xti_piece *b, int i, int k, enum xti_message_order order)
{
    const struct xti_dim *x = &b->dim[i], *y = &b->dim[k];
    if (order == XTI_BY_SOURCE && xti_abs64(x->s) != xti_abs64(y->s))
        return xti_abs64(x->s) > xti_abs64(y->s);
    return x->d > y->d;
}

int64_t xti_box_positions(const struct xti_piece *box, enum xti_message_order order, int64_t *pos)
{
    int at[XTI_MAX_DIMS], n = 0;
    int64_t elements = 1;
    for (int i = 0; i < box->n_dims; i++) {
        pos[i] = 0;
        if (!sent(box, i))
            continue;
        int k = n++;
        for (; k > 0 && before(box, i, at[k - 1], order); k--)
            at[k] = at[k - 1];
        at[k] = i;
    }
    while (n--) {
        pos[at[n]] = elements;
        elements *= box->dim[at[n]].n;
    }
    return elements;
}

int xti_box_outermost(const struct xti_piece *box, const int64_t *pos)
{
    int best = -1;
    for (int i = 0; i < box->n_dims; i++)
        if (pos[i] && box->dim[i].n > 1 && (best < 0 || pos[i] > pos[best]))
            best = i;
    return best;
}

/* ---- kernels */

/* The box as a copy of that kind. dim: room for its dims. */
static struct xti_piece moved(const struct xti_piece *box, const int64_t *pos, enum xti_move move,
                              struct xti_dim *dim, const int64_t *no_divs)
{
    struct xti_piece p = *box;
    p.soff = p.doff = 0;
    p.dim = dim;
    for (int i = 0; i < box->n_dims; i++) {
        dim[i] = box->dim[i];
        if (move == XTI_PACK || move == XTI_PACK_NEAR) {
            dim[i].d = pos[i];
            dim[i].n = pos[i] ? dim[i].n : 1;
        } else if (move == XTI_UNPACK) {
            dim[i].s = pos[i];
        }
    }
    if (move == XTI_UNPACK)
        p.sq = no_divs;
    return p;
}

static xt_status make_kernel(const struct xti_piece *box, const int64_t *pos, enum xti_move move, int esize,
                             const struct xti_target *target, struct xti_move_kernel *k, struct xti_err *err)
{
    static const int64_t no_divs[XTI_MAX_DIVS];
    struct xti_dim dim[XTI_MAX_DIMS];
    struct xti_piece p = moved(box, pos, move, dim, no_divs);
    struct xti_target few = *target;
    *k = (struct xti_move_kernel){0};
    xt_status s = xti_map_of_piece(&p, esize, &k->map, err);
    if (s)
        return s;
    few.threads = xti_plan_threads(few.threads, k->map.numel * esize);
    s = xti_plan_make(&k->map, &few, &k->plan, err);
    if (s)
        xti_map_free(&k->map);
    return s;
}

static void free_kernel(struct xti_move_kernel *k)
{
    xti_plan_free(&k->plan);
    xti_map_free(&k->map);
}

xt_status xti_stencil_kernel(struct xti_shard_plan *p, int stencil, enum xti_move move, struct xti_err *err)
{
    struct xti_stencil *s = &p->stencil[stencil];
    if (s->kernel[move])
        return XT_OK;
    struct xti_move_kernel *k = xti_alloc(sizeof *k);
    if (!k)
        return xti_fail(err, XT_ENOMEM, "kernel of a message");
    struct xti_target t = p->target;
    if (move == XTI_PACK)
        t.choice.stream = -1; /* it is read again at once */
    else if (move == XTI_PACK_NEAR)
        t.choice.stream = 1;
    else if (p->streams && !xti_cost_streams(&t, xti_piece_numel(&s->piece) * p->esize))
        t.choice.stream = 1; /* it is a part of more */
    xt_status st = make_kernel(&s->piece, s->pos, move, p->esize, &t, k, err);
    if (st)
        xti_free(k);
    else
        s->kernel[move] = k;
    return st;
}

/* ---- which order */

/* Seconds of such moves of the box. -1: it cannot be told. */
static double price(const struct xti_piece *box, const int64_t *pos, int esize, enum xti_move move)
{
    struct xti_target t = {.backend = XT_CPU,
                           .machine = xti_machine_careful,
                           .threads = 1,
                           .l1_bytes = 32 << 10,
                           .l2_bytes = 1 << 20,
                           .l3_bytes = 16 << 20};
    struct xti_err err = {0};
    struct xti_estimate e;
    struct xti_move_kernel k;
    if (make_kernel(box, pos, move, esize, &t, &k, &err))
        return -1;
    xti_plan_estimate(&k.plan, &e);
    free_kernel(&k);
    return e.seconds;
}

static double message_price(const struct xti_piece *box, const int64_t *pos, int esize)
{
    struct xti_stencil whole = {.piece = *box, .pos = (int64_t *)pos};
    double seconds[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        if (!xti_stencil_runs(&whole, i ? XTI_UNPACK : XTI_PACK)) /* a run goes from, or to, its place */
            seconds[i] = price(box, pos, esize, i ? XTI_UNPACK : XTI_PACK);
    return seconds[0] < 0 || seconds[1] < 0 ? -1 : seconds[0] + seconds[1];
}

/* The same for an element, of what of a box goes into one message. */
static double share_price(const struct xti_piece *share, enum xti_message_order order, int esize)
{
    int64_t pos[XTI_MAX_DIMS + 1], elements = xti_box_positions(share, order, pos);
    return message_price(share, pos, esize) / (double)elements;
}

enum xti_message_order xti_box_order(const struct xti_piece *box, int esize, int64_t most)
{
    int64_t n[XTI_MAX_DIMS], pos[2][XTI_MAX_DIMS + 1];
    struct xti_dim dim[XTI_MAX_DIMS];
    struct xti_piece share = *box;
    if (box->n_divs || box->n_guards)
        return XTI_BY_DESTINATION;
    xti_box_share(box, esize, most, n);
    share.dim = dim;
    for (int i = 0; i < box->n_dims; i++) {
        dim[i] = box->dim[i];
        dim[i].n = n[i];
    }
    xti_box_positions(&share, XTI_BY_DESTINATION, pos[0]);
    xti_box_positions(&share, XTI_BY_SOURCE, pos[1]);
    if (!memcmp(pos[0], pos[1], (size_t)box->n_dims * sizeof **pos))
        return XTI_BY_DESTINATION;
    double d = share_price(&share, XTI_BY_DESTINATION, esize), s = share_price(&share, XTI_BY_SOURCE, esize);
    return s >= 0 && (d < 0 || s < d) ? XTI_BY_SOURCE : XTI_BY_DESTINATION;
}

bool xti_box_direct(const struct xti_piece *box, int esize, enum xti_message_order order)
{
    int64_t pos[XTI_MAX_DIMS];
    xti_box_positions(box, order, pos);
    return price(box, pos, esize, XTI_WITHIN) <=
           price(box, pos, esize, XTI_PACK) + price(box, pos, esize, XTI_UNPACK);
}

/* ---- the list */

static bool same_numbers(const struct xti_piece *a, const struct xti_piece *b)
{
    if (a->n_divs != b->n_divs || a->n_guards != b->n_guards || a->n_dims != b->n_dims ||
        memcmp(a->dim, b->dim, (size_t)a->n_dims * sizeof *a->dim))
        return false;
    for (int i = 0; i < a->n_divs; i++)
        if (a->div[i].c != b->div[i].c)
            return false;
    for (int i = 0; i < a->n_guards; i++)
        if (a->guard[i].c != b->guard[i].c ||
            memcmp(a->guard[i].x, b->guard[i].x, (size_t)a->n_dims * sizeof *a->guard[i].x))
            return false;
    return true;
}

static const int64_t *keep_row(struct xti_arena *a, int n, const int64_t *v, bool *ok)
{
    const int64_t *copy = xti_arena_dup(a, v, (size_t)n * sizeof *v);
    *ok &= !n || copy;
    return copy;
}

static bool keep_piece(struct xti_arena *a, const struct xti_piece *box, struct xti_piece *out)
{
    bool ok = true;
    *out = *box;
    out->soff = out->doff = 0;
    out->dim = xti_arena_dup(a, box->dim, (size_t)box->n_dims * sizeof *box->dim);
    out->div = box->n_divs ? xti_arena_dup(a, box->div, (size_t)box->n_divs * sizeof *box->div) : NULL;
    out->guard =
        box->n_guards ? xti_arena_dup(a, box->guard, (size_t)box->n_guards * sizeof *box->guard) : NULL;
    out->sq = keep_row(a, box->n_divs, box->sq, &ok);
    if (!out->dim || (box->n_divs && !out->div) || (box->n_guards && !out->guard))
        return false;
    for (int i = 0; i < box->n_divs; i++) {
        out->div[i].x = keep_row(a, box->n_dims, box->div[i].x, &ok);
        out->div[i].q = keep_row(a, i, box->div[i].q, &ok);
    }
    for (int i = 0; i < box->n_guards; i++) {
        out->guard[i].x = keep_row(a, box->n_dims, box->guard[i].x, &ok);
        out->guard[i].q = keep_row(a, box->n_divs, box->guard[i].q, &ok);
    }
    return ok;
}

int xti_stencil_find(struct xti_shard_plan *p, int group, const struct xti_piece *box, const int64_t *pos,
                     int64_t elements)
{
    int low = p->n_stencils > LOOK_BACK ? p->n_stencils - LOOK_BACK : 0;
    for (int i = p->n_stencils - 1; i >= low && p->stencil[i].group == group; i--)
        if (p->stencil[i].elements == elements && !p->stencil[i].n_runs &&
            same_numbers(&p->stencil[i].piece, box) &&
            !memcmp(p->stencil[i].pos, pos, (size_t)box->n_dims * sizeof *pos))
            return i;
    struct xti_stencil *v = xti_grown(p->stencil, sizeof *v, p->n_stencils, &p->cap_stencils);
    if (!v)
        return -1;
    p->stencil = v;
    struct xti_stencil *s = &p->stencil[p->n_stencils];
    *s = (struct xti_stencil){.group = group, .elements = elements};
    s->pos = xti_arena_dup(&p->arena, pos, (size_t)box->n_dims * sizeof *pos);
    if (!s->pos || !keep_piece(&p->arena, box, &s->piece))
        return -1;
    return p->n_stencils++;
}

int xti_stencil_list(struct xti_shard_plan *p, int group, const struct xti_piece *box, const int64_t *pos,
                     int64_t elements, const struct xti_list_run *run, int64_t n_runs)
{
    static const int64_t none[XTI_MAX_DIMS];
    struct xti_dim dim[XTI_MAX_DIMS];
    struct xti_piece left = {.src = box->src, .dim = dim};
    for (int i = 0; i < box->n_dims; i++)
        if (!pos[i] && box->dim[i].n > 1)
            dim[left.n_dims++] = box->dim[i];
    struct xti_stencil *v = xti_grown(p->stencil, sizeof *v, p->n_stencils, &p->cap_stencils);
    if (!v)
        return -1;
    p->stencil = v;
    struct xti_stencil *s = &p->stencil[p->n_stencils];
    *s = (struct xti_stencil){.group = group, .elements = elements, .n_runs = n_runs};
    s->pos = xti_arena_dup(&p->arena, none, (size_t)left.n_dims * sizeof *none);
    s->run = xti_arena_dup(&p->arena, run, (size_t)n_runs * sizeof *run);
    if (!s->pos || !s->run || !keep_piece(&p->arena, &left, &s->piece))
        return -1;
    return p->n_stencils++;
}

bool xti_stencil_runs(const struct xti_stencil *s, enum xti_move move)
{
    const struct xti_piece *p = &s->piece;
    bool runs = !p->n_divs && !p->n_guards && !s->n_runs;
    for (int i = 0; i < p->n_dims; i++) {
        if (move == XTI_PACK)
            runs &= p->dim[i].s == s->pos[i];
        else
            runs &= p->dim[i].d == s->pos[i];
    }
    return runs;
}

void xti_stencils_free(struct xti_shard_plan *p)
{
    for (int i = 0; i < p->n_stencils; i++)
        for (int m = 0; m < XTI_MOVES; m++)
            if (p->stencil[i].kernel[m]) {
                free_kernel(p->stencil[i].kernel[m]);
                xti_free(p->stencil[i].kernel[m]);
            }
    xti_free(p->stencil);
}
