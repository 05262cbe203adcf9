/* alias.c: what people paste from NumPy, PyTorch, TensorFlow and einops, as compositions of xt's operations.
 * Layer 1. */
#include "graph/alias.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/dtype.h"
#include "graph/rearrange.h"

static struct xt_graph *graph(struct xti_args *b) { return xti_args_graph(b); }
static int rank(const struct xti_args *b) { return xti_args_node(b)->rank; }

/* The result is written densely anyway. */
xt_node xti_build_nothing(struct xti_args *b) { return b->x; }

/* ---- one axis */

/* x[:, .., item] with the item on that axis. */
static xt_node index_axis(struct xti_args *b, int64_t axis, struct xt_index item)
{
    struct xt_index items[XT_MAX_RANK];
    int n = rank(b);
    if (axis < -n || axis >= n) {
        char text[80];
        snprintf(text, sizeof text, "axis %" PRId64 " is not in [%d,%d)", axis, -n, n);
        xti_args_fail(b, XT_ERANGE, text, "", 0);
        return -1;
    }
    axis += axis < 0 ? n : 0;
    for (int i = 0; i < axis; i++)
        items[i] = (struct xt_index){XT_SLICE, XT_NONE, XT_NONE, 1};
    items[axis] = item;
    return xt_index(graph(b), b->x, (int)axis + 1, items);
}

xt_node xti_build_narrow(struct xti_args *b)
{
    int64_t axis, start, length, end;
    if (!xti_args_int(b, 0, &axis) || !xti_args_int(b, 1, &start) || !xti_args_int(b, 2, &length))
        return -1;
    int at = xti_args_axis(axis < 0 ? axis + rank(b) : axis);
    int64_t n = at >= 0 && at < rank(b) ? xti_args_node(b)->shape[at] : 0;
    start += start < 0 ? n : 0;
    if (start < 0 || length < 0 || __builtin_add_overflow(start, length, &end) ||
        (end > n && at >= 0 && at < rank(b))) {
        char text[120];
        snprintf(text, sizeof text, "%" PRId64 " elements from %" PRId64 " on are not in an axis of %" PRId64,
                 length, start, n);
        xti_args_fail(b, XT_ERANGE, text, "", 0);
        return -1;
    }
    return index_axis(b, axis, (struct xt_index){XT_SLICE, start, end, 1});
}

xt_node xti_build_select(struct xti_args *b)
{
    int64_t axis, at;
    if (!xti_args_int(b, 0, &axis) || !xti_args_int(b, 1, &at))
        return -1;
    return index_axis(b, axis, (struct xt_index){XT_AT, at, 0, 1});
}

xt_node xti_build_unflatten(struct xti_args *b)
{
    int64_t axis, sizes[XTI_MAX_NUMBERS], shape[XTI_MAX_NUMBERS + XT_MAX_RANK], known = 1;
    int n, m = 0, rest = -1;
    if (!xti_args_int(b, 0, &axis) || !xti_args_list(b, 1, &n, sizes))
        return -1;
    const struct xti_node *x = xti_args_node(b);
    axis += axis < 0 ? x->rank : 0;
    if (axis < 0 || axis >= x->rank || n == 0) {
        xti_args_fail(b, n ? XT_ERANGE : XT_EINVAL, n ? "no such axis" : "wants sizes", "", 0);
        return -1;
    }
    for (int i = 0; i < n; i++) {
        if (sizes[i] == -1 && rest < 0)
            rest = i;
        else if (sizes[i] < 0 || __builtin_mul_overflow(known, sizes[i], &known))
            known = -1, i = n;
    }
    if (known > 0 && rest >= 0)
        sizes[rest] = x->shape[axis] / known, known *= sizes[rest];
    if (known != x->shape[axis]) {
        char text[80];
        snprintf(text, sizeof text, "the sizes do not make up the %" PRId64 " elements of axis %d",
                 x->shape[axis], (int)axis);
        xti_args_fail(b, XT_ESHAPE, text, "", 0);
        return -1;
    }
    for (int i = 0; i < x->rank; i++) {
        if (i != axis)
            shape[m++] = x->shape[i];
        for (int k = 0; i == axis && k < n; k++)
            shape[m++] = sizes[k];
    }
    return xt_reshape(graph(b), b->x, m, shape);
}

/* ---- mirrors and turns of two axes */

xt_node xti_build_fliplr(struct xti_args *b) { return xt_flip(graph(b), b->x, 1, (const int[]){1}); }
xt_node xti_build_flipud(struct xti_args *b) { return xt_flip(graph(b), b->x, 1, (const int[]){0}); }

/* From the first axis towards the second, k times. */
xt_node xti_build_rot90(struct xti_args *b)
{
    int64_t k;
    int axes[XTI_MAX_NUMBERS] = {0, 1}, n = 2;
    if (!xti_args_int_or(b, 0, 1, &k) || (xti_args_given(b, 1) && !xti_args_axes(b, 1, &n, axes)))
        return -1;
    for (int i = 0; i < n; i++) {
        axes[i] += axes[i] < 0 ? rank(b) : 0;
        if (n != 2 || axes[i] < 0 || axes[i] >= rank(b) || (i && axes[0] == axes[1])) {
            xti_args_fail(b, n != 2 ? XT_ERANK : XT_ERANGE, "wants two axes that it has, and that differ", "",
                          0);
            return -1;
        }
    }
    k = (k % 4 + 4) % 4;
    if (k == 0)
        return b->x;
    if (k == 2)
        return xt_flip(graph(b), b->x, 2, axes);
    return xt_transpose(b->p->g, xt_flip(graph(b), b->x, 1, &axes[k == 1]), axes[0], axes[1]);
}

/* ---- joins */

typedef xt_node at_least(struct xt_graph *g, xt_node x);

static xt_node one_axis(struct xt_graph *g, xt_node x)
{
    return x >= 0 && g->node[x].rank == 0 ? xt_unsqueeze(g, x, 0) : x;
}

/* Rows. */
static xt_node two_axes(struct xt_graph *g, xt_node x)
{
    x = one_axis(g, x);
    return x >= 0 && g->node[x].rank == 1 ? xt_unsqueeze(g, x, 0) : x;
}

/* A row of points, or points of a plane. */
static xt_node three_axes(struct xt_graph *g, xt_node x)
{
    x = two_axes(g, x);
    return x >= 0 && g->node[x].rank == 2 ? xt_unsqueeze(g, x, 2) : x;
}

/* The operands with at least so many axes, joined along `axis`; of axis 1 along 0 when they have but one. */
static xt_node join(struct xti_args *b, at_least *widen, int axis)
{
    const struct xti_parser *p = b->p;
    xt_node *xs = xti_alloc_array((size_t)(p->n_items - b->first + 1), sizeof *xs), y = -1;
    int n = 0;
    bool ok = xs != NULL;
    if (!xs)
        xti_graph_fail(graph(b), XT_ENOMEM, "out of memory");
    if (ok && b->x >= 0)
        xs[n++] = b->x;
    for (int i = b->first; ok && i < p->n_items; i++) {
        if (p->item[i].kind == XTI_ITEM_NODE && !p->item[i].key.n)
            xs[n++] = p->item[i].node;
        else if (p->item[i].kind != XTI_ITEM_OPEN && p->item[i].kind != XTI_ITEM_CLOSE)
            ok = xti_args_fail(b, XT_ESYNTAX, "takes tensors alone", "", 0);
    }
    for (int i = 0; ok && i < n; i++)
        xs[i] = widen(graph(b), xs[i]);
    if (ok) {
        bool lines = n && xs[0] >= 0 && p->g->node[xs[0]].rank == 1;
        y = xt_concat(graph(b), axis == 1 && lines ? 0 : axis, n, xs);
    }
    xti_free(xs);
    return y;
}

xt_node xti_build_hstack(struct xti_args *b) { return join(b, one_axis, 1); }
xt_node xti_build_vstack(struct xti_args *b) { return join(b, two_axes, 0); }
xt_node xti_build_dstack(struct xti_args *b) { return join(b, three_axes, 2); }

/* ---- einops patterns */

static void called(const struct xti_args *b, char name[32])
{
    snprintf(name, 32, "%.*s", b->at.n < 31 ? (int)b->at.n : 31, b->at.s);
}

/* Keywords as lengths of axes; their names go to `text`. */
static bool take_lengths(struct xti_args *b, const char **names, int64_t *lengths, int *n,
                         char text[XTI_MAX_STRING])
{
    size_t used = 0;
    *n = 0;
    for (int i = b->first; i < b->p->n_items; i++) {
        const struct xti_item *it = &b->p->item[i];
        if (!it->key.n || xti_word_in("pattern", it->key.s, it->key.n))
            continue;
        if (it->kind != XTI_ITEM_NUMBER)
            return xti_args_fail(b, XT_ESYNTAX, "an integer is the length of ", it->key.s, it->key.n);
        if (*n == XTI_MAX_NUMBERS || used + it->key.n + 1 > XTI_MAX_STRING)
            return xti_args_fail(b, XT_EINVAL, "more lengths than axes", "", 0);
        memcpy(text + used, it->key.s, it->key.n);
        names[*n] = text + used;
        used += it->key.n;
        text[used++] = 0;
        if (!xti_lex_number(b->p, it->s, it->n, &lengths[(*n)++]))
            return false;
    }
    return true;
}

xt_node xti_build_rearrange(struct xti_args *b)
{
    char pattern[XTI_MAX_STRING], text[XTI_MAX_STRING], name[32];
    const char *names[XTI_MAX_NUMBERS];
    int64_t lengths[XTI_MAX_NUMBERS];
    int n;
    if (!xti_args_text(b, 0, pattern) || !take_lengths(b, names, lengths, &n, text))
        return -1;
    called(b, name);
    return xti_rearrange(graph(b), name, b->x, pattern, &(struct xti_lengths){n, names, lengths});
}

xt_node xti_build_blocks(struct xti_args *b)
{
    static const char *const sides[] = {"i", "j"};
    char format[XTI_MAX_STRING] = "NHWC", name[32];
    int64_t side;
    if (!xti_args_int(b, 0, &side) || (xti_args_given(b, 1) && !xti_args_text(b, 1, format)))
        return -1;
    bool planes = !strcmp(format, "NCHW");
    if (!planes && strcmp(format, "NHWC")) {
        xti_args_fail(b, XT_EINVAL, "data_format is NHWC or NCHW", "", 0);
        return -1;
    }
    called(b, name);
    return xti_rearrange(graph(b), name, b->x, b->c->pattern[planes],
                         &(struct xti_lengths){2, sides, (const int64_t[]){side, side}});
}
