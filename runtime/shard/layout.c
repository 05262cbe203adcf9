/* layout.c: spread tensors in the words of the graph: slices, reshapes, concats. Layer 5. */
#include "shard/layout.h"

#include <string.h>

#include "base/num.h"

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

static int keep(struct xti_class_of *out, int n, struct xti_class_of c)
{
    if (c.n > 0)
        out[n++] = c;
    return n;
}

int xti_cut_classes(const struct xti_cut *c, int64_t n, struct xti_class_of out[XTI_AXIS_CLASSES])
{
    int64_t p = c->ranks, b = c->block;
    int k = 0;
    if (!b) {
        int64_t more = n % p, len = n / p;
        k = keep(out, k, (struct xti_class_of){0, more, len + 1, 0, len + 1, 0});
        return keep(out, k, (struct xti_class_of){more, p - more, len, 0, len, more * (len + 1)});
    }
    int64_t round = 0; /* a block longer than the axis has none */
    int64_t rounds = b <= n && xti_mul64(b, p, &round) ? n / round : 0;
    int64_t left = n - rounds * round, full = left / b, rest = left % b, len = rounds * b;
    k = keep(out, k, (struct xti_class_of){0, full, len + b, rounds, b, 0});
    k = keep(out, k, (struct xti_class_of){full, rest > 0, len + rest, rounds, rest, full * b});
    full += rest > 0;
    return keep(out, k, (struct xti_class_of){full, p - full, len, rounds, 0, 0});
}

bool xti_spread_place(const struct xti_spread *s, int64_t rank, struct xti_place *out)
{
    int64_t left = rank - s->base, size = 1;
    for (int i = 0; i < s->rank; i++)
        out->on[i] = left < 0 || s->cut[i].ranks == 1 ? 0 : left / s->cut[i].stride % s->cut[i].ranks;
    for (int i = 0; i < s->n_copies; i++)
        out->copy[i] = left < 0 ? 0 : left / s->copy[i].stride % s->copy[i].n;
    for (int i = 0; i < s->rank; i++)
        size *= s->cut[i].ranks;
    return left >= 0 && left < size * xti_spread_copies(s);
}

int64_t xti_spread_copies(const struct xti_spread *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->n_copies; i++)
        n *= s->copy[i].n;
    return n;
}

int64_t xti_cut_index(const struct xti_cut *c, int64_t n, int64_t on, int64_t i)
{
    if (c->block)
        return (i / c->block * c->ranks + on) * c->block + i % c->block;
    return n / c->ranks * on + at_most(on, n % c->ranks) + i;
}

static void local_strides(const struct xti_spread *s, const int64_t *local, int64_t *strides)
{
    if (s->layout)
        memcpy(strides, s->strides, (size_t)s->rank * sizeof *strides);
    else
        xti_dense_strides(s->rank, local, strides);
}

void xti_spread_local(const struct xti_spread *s, const int64_t *shape, const struct xti_place *at,
                      int64_t *local, int64_t *strides)
{
    struct xti_class_of c[XTI_AXIS_CLASSES];
    for (int i = 0; i < s->rank; i++) {
        int n = xti_cut_classes(&s->cut[i], shape[i], c), k = 0;
        while (k < n - 1 && at->on[i] >= c[k].first + c[k].n)
            k++;
        local[i] = c[k].len;
    }
    local_strides(s, local, strides);
}

xt_status xti_spread_classes(const struct xti_spread *s, const int64_t *shape,
                             xt_status (*each)(void *arg, const int *which), void *arg)
{
    struct xti_class_of c[XTI_AXIS_CLASSES];
    int which[XT_MAX_RANK] = {0}, n[XT_MAX_RANK], i;
    for (i = 0; i < s->rank; i++)
        n[i] = xti_cut_classes(&s->cut[i], shape[i], c);
    do {
        bool empty = false;
        for (i = 0; i < s->rank; i++) {
            xti_cut_classes(&s->cut[i], shape[i], c);
            empty |= !c[which[i]].len;
        }
        xt_status st = empty ? XT_OK : each(arg, which);
        if (st)
            return st;
        for (i = s->rank - 1; i >= 0 && ++which[i] == n[i]; i--)
            which[i] = 0;
    } while (i >= 0);
    return XT_OK;
}

/* ---- steps of a chain */

static xt_node slice(struct xt_graph *g, xt_node x, int axis, int64_t lo, int64_t hi)
{
    struct xt_index items[XT_MAX_RANK];
    if (x < 0 || (!lo && hi == g->node[x].shape[axis]))
        return x;
    for (int i = 0; i <= axis; i++)
        items[i] = (struct xt_index){XT_SLICE, i == axis ? lo : 0, i == axis ? hi : INT64_MAX, 1};
    return xt_index(g, x, axis + 1, items);
}

/* Axes [axis, axis + n) become those of `to`. */
static xt_node regroup(struct xt_graph *g, xt_node x, int axis, int n, int n_to, const int64_t *to)
{
    int64_t shape[2 * XT_MAX_RANK];
    if (x < 0)
        return x;
    const struct xti_node *v = &g->node[x];
    int after = v->rank - axis - n;
    memcpy(shape, v->shape, (size_t)axis * sizeof *shape);
    memcpy(shape + axis, to, (size_t)n_to * sizeof *shape);
    memcpy(shape + axis + n_to, v->shape + axis + n, (size_t)after * sizeof *shape);
    return xt_reshape(g, x, axis + n_to + after, shape);
}

static xt_node join(struct xt_graph *g, int axis, int n, const xt_node *x)
{
    return n == 1 ? x[0] : xt_concat(g, axis, n, x);
}

static xt_node join_two(struct xt_graph *g, int axis, bool has_a, xt_node a, bool has_b, xt_node b)
{
    return has_a && has_b ? xt_concat(g, axis, 2, (xt_node[]){a, b}) : has_a ? a : b;
}

/* ---- from local arrays to the whole */

/* x[k] of class k have axes (rank, local) at `axis`; gives the whole axis there. */
static xt_node gather_axis(struct xt_graph *g, const struct xti_cut *cut, int axis, int n,
                           const struct xti_class_of *c, const xt_node *x)
{
    xt_node main[XTI_AXIS_CLASSES], tail[XTI_AXIS_CLASSES], a = -1, b = -1;
    int n_main = 0, n_tail = 0;
    for (int k = 0; k < n; k++) {
        int64_t len = c[k].len - c[k].tail, flat = c[k].n * c[k].tail;
        xt_node m = slice(g, x[k], axis + 1, 0, len);
        if (c[k].rounds) {
            m = regroup(g, m, axis, 2, 3, (int64_t[]){c[k].n, c[k].rounds, cut->block});
            main[n_main++] = xt_transpose(g, m, axis, axis + 1);
        }
        if (c[k].tail)
            tail[n_tail++] = regroup(g, slice(g, x[k], axis + 1, len, c[k].len), axis, 2, 1, &flat);
    }
    if (n_main) {
        int64_t all = c[0].rounds * cut->ranks * cut->block;
        a = regroup(g, join(g, axis + 1, n_main, main), axis, 3, 1, &all);
    }
    if (n_tail)
        b = join(g, axis, n_tail, tail);
    return join_two(g, axis, n_main, a, n_tail, b);
}

/* The local arrays of one combination of classes as an input. */
static xt_node local_input(struct xt_graph *g, const struct xti_spread *s, xt_dtype t,
                           const struct xti_class_of *c)
{
    int64_t len[XT_MAX_RANK], local[XT_MAX_RANK], n[2 * XT_MAX_RANK], st[2 * XT_MAX_RANK];
    int64_t offset = s->base * XTI_PAGE + s->offset;
    int k = 0;
    for (int i = 0; i < s->rank; i++)
        len[i] = c[i].len;
    local_strides(s, len, local);
    for (int i = 0; i < s->rank; i++) {
        if (s->cut[i].ranks > 1) {
            n[k] = c[i].n;
            st[k++] = s->cut[i].stride * XTI_PAGE;
            offset += c[i].first * s->cut[i].stride * XTI_PAGE;
        }
        n[k] = len[i];
        st[k++] = local[i];
    }
    return xt_input(g, NULL, t, k, n, st, offset);
}

xt_node xti_spread_gather(struct xt_graph *g, const struct xti_spread *s, xt_dtype t, const int64_t *shape)
{
    struct xti_class_of c[XT_MAX_RANK][XTI_AXIS_CLASSES], one[XT_MAX_RANK];
    int n[XT_MAX_RANK], axis = 0, total = 1;
    xt_node *x;
    for (int i = 0; i < s->rank; i++)
        if (!shape[i])
            return xt_input(g, NULL, t, s->rank, shape, NULL, 0);
    for (int i = 0; i < s->rank; i++) {
        n[i] = xti_cut_classes(&s->cut[i], shape[i], c[i]);
        n[i] -= !c[i][n[i] - 1].len; /* ranks without elements */
        axis += s->cut[i].ranks > 1;
        total = total * n[i] > XTI_MAX_CLASSES ? XTI_MAX_CLASSES + 1 : total * n[i];
    }
    if (total > XTI_MAX_CLASSES || s->rank + axis + (axis > 0) > XT_MAX_RANK) /* gathering takes one more */
        return xti_graph_fail(g, XT_EUNSUPPORTED, "too many axes of one tensor are cut"), -1;
    x = xti_alloc_array((size_t)total, sizeof *x);
    if (!x)
        return xti_graph_fail(g, XT_ENOMEM, "out of memory"), -1;
    for (int i = 0; i < total; i++) {
        for (int k = s->rank - 1, left = i; k >= 0; left /= n[k--])
            one[k] = c[k][left % n[k]];
        x[i] = local_input(g, s, t, one);
    }
    for (int k = s->rank - 1, at = s->rank + axis; k >= 0; k--) {
        at -= s->cut[k].ranks > 1 ? 2 : 1;
        total /= n[k];
        for (int i = 0; s->cut[k].ranks > 1 && i < total; i++)
            x[i] = gather_axis(g, &s->cut[k], at, n[k], c[k], x + (ptrdiff_t)i * n[k]);
    }
    xt_node whole = x[0];
    xti_free(x);
    return whole;
}

/* ---- from the whole to local arrays */

/* The axis becomes (rank, local) of class c. */
static xt_node scatter_axis(struct xt_graph *g, const struct xti_cut *cut, int axis,
                            const struct xti_class_of *c, xt_node x)
{
    int64_t len = c->rounds * cut->block, all = len * cut->ranks;
    xt_node m = -1, t = -1;
    if (c->rounds) {
        m = regroup(g, slice(g, x, axis, 0, all), axis, 1, 3, (int64_t[]){c->rounds, cut->ranks, cut->block});
        m = xt_transpose(g, slice(g, m, axis + 1, c->first, c->first + c->n), axis, axis + 1);
        m = regroup(g, m, axis + 1, 2, 1, &len);
    }
    if (c->tail) {
        int64_t from = all + c->tail_at;
        t = slice(g, x, axis, from, from + c->n * c->tail);
        t = regroup(g, t, axis, 1, 2, (int64_t[]){c->n, c->tail});
    }
    return join_two(g, axis + 1, c->rounds, m, c->tail, t);
}

xt_node xti_spread_scatter(struct xt_graph *g, const struct xti_spread *s, xt_node x, const int *which)
{
    struct xti_class_of c[XTI_AXIS_CLASSES];
    int64_t len[XT_MAX_RANK], local[XT_MAX_RANK], st[2 * XT_MAX_RANK], n[2 * XT_MAX_RANK];
    int64_t offset = s->base * XTI_PAGE + s->offset;
    int k = s->n_copies, axis = 0;
    for (int i = 0; i < s->rank; i++, axis++) {
        xti_cut_classes(&s->cut[i], x < 0 ? 0 : g->node[x].shape[axis], c);
        len[i] = c[which[i]].len;
        if (s->cut[i].ranks == 1)
            continue;
        st[k + axis] = s->cut[i].stride * XTI_PAGE;
        offset += c[which[i]].first * st[k + axis];
        x = scatter_axis(g, &s->cut[i], axis++, &c[which[i]], x);
    }
    local_strides(s, len, local);
    for (int i = 0, at = k; i < s->rank; i++) {
        at += s->cut[i].ranks > 1;
        st[at++] = local[i];
    }
    for (int i = k - 1; i >= 0; i--) {
        x = xt_unsqueeze(g, x, 0);
        st[i] = s->copy[i].stride * XTI_PAGE;
    }
    if (x < 0)
        return -1;
    for (int i = 0; i < g->node[x].rank; i++)
        n[i] = i < k ? s->copy[i].n : g->node[x].shape[i];
    x = k ? xt_expand(g, x, k + axis, n) : x;
    return x < 0 || xt_output(g, x, st, offset) ? -1 : x;
}
