/* views.c: operations that only rename axes and extents: permute, squeeze, unsqueeze, flip, expand, reshape.
 * In: any call. Out: a node whose attrs are resolved, or the graph's first error. Layer 1. */
#include "graph/build.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

xt_node xt_permute(struct xt_graph *g, xt_node x, int n, const int *axes)
{
    struct xti_build b;
    if (!xti_build_start(&b, g, XT_OP_PERMUTE, "permute", x))
        return -1;
    if (!xti_build_list(&b, n, axes, "axes"))
        return -1;
    if (n != b.x->rank) {
        char s[XTI_SHAPE_TEXT];
        xti_shape_text(s, sizeof s, b.x->rank, b.x->shape);
        return xti_build_fail(&b, XT_ERANK, -1, "%d %s given, %s has %d", n, xti_axes_word(n), s, b.x->rank);
    }
    if (!xti_build_axes(&b, n, axes))
        return -1;
    b.rank = n;
    for (int i = 0; i < n; i++)
        b.shape[i] = b.x->shape[b.attr[i]];
    return xti_build_add(&b);
}

xt_node xt_transpose(struct xt_graph *g, xt_node x, int axis_a, int axis_b)
{
    struct xti_build b;
    if (!xti_build_start(&b, g, XT_OP_PERMUTE, "transpose", x))
        return -1;
    if (!xti_build_axis(&b, &axis_a, b.x->rank) || !xti_build_axis(&b, &axis_b, b.x->rank))
        return -1;
    xti_build_same_shape(&b);
    b.shape[axis_a] = b.x->shape[axis_b];
    b.shape[axis_b] = b.x->shape[axis_a];
    b.n_attrs = b.rank;
    for (int i = 0; i < b.rank; i++)
        b.attr[i] = i == axis_a ? axis_b : i == axis_b ? axis_a : i;
    return xti_build_add(&b);
}

/* Removes the marked axes; attrs become their sorted list. */
static xt_node drop_axes(struct xti_build *b, uint32_t marked)
{
    b->n_attrs = 0;
    for (int i = 0; i < b->x->rank; i++) {
        if (marked >> i & 1)
            b->attr[b->n_attrs++] = i;
        else
            b->shape[b->rank++] = b->x->shape[i];
    }
    return xti_build_add(b);
}

xt_node xt_squeeze(struct xt_graph *g, xt_node x, int n, const int *axes)
{
    struct xti_build b;
    uint32_t marked = 0;
    if (!xti_build_start(&b, g, XT_OP_SQUEEZE, "squeeze", x) || !xti_build_axes(&b, n, axes))
        return -1;
    for (int i = 0; i < b.x->rank && n == 0; i++)
        marked |= (uint32_t)(b.x->shape[i] == 1) << i;
    for (int i = 0; i < n; i++) {
        int a = (int)b.attr[i];
        char s[XTI_SHAPE_TEXT];
        xti_shape_text(s, sizeof s, b.x->rank, b.x->shape);
        if (b.x->shape[a] != 1)
            return xti_build_fail(&b, XT_ESHAPE, a, "axis %d of %s has %" PRId64 " elements, not 1", a, s,
                                  b.x->shape[a]);
        marked |= UINT32_C(1) << a;
    }
    return drop_axes(&b, marked);
}

xt_node xt_unsqueeze(struct xt_graph *g, xt_node x, int axis)
{
    struct xti_build b;
    if (!xti_build_start(&b, g, XT_OP_UNSQUEEZE, "unsqueeze", x))
        return -1;
    if (!xti_build_axis(&b, &axis, b.x->rank + 1) || !xti_build_rank(&b, b.x->rank + 1))
        return -1;
    b.rank = b.x->rank + 1;
    for (int i = 0; i < b.rank; i++)
        b.shape[i] = i == axis ? 1 : b.x->shape[i - (i > axis)];
    b.attr[b.n_attrs++] = axis;
    return xti_build_add(&b);
}

xt_node xt_flip(struct xt_graph *g, xt_node x, int n, const int *axes)
{
    struct xti_build b;
    uint32_t marked = n == 0 ? UINT32_MAX : 0;
    if (!xti_build_start(&b, g, XT_OP_FLIP, "flip", x) || !xti_build_axes(&b, n, axes))
        return -1;
    for (int i = 0; i < n; i++)
        marked |= UINT32_C(1) << b.attr[i];
    b.n_attrs = 0;
    for (int i = 0; i < b.x->rank; i++)
        if (marked >> i & 1)
            b.attr[b.n_attrs++] = i;
    xti_build_same_shape(&b);
    return xti_build_add(&b);
}

/* A list of extents that may hold -1. */
static bool check_extents(struct xti_build *b, int n, const int64_t *shape)
{
    if (!xti_build_list(b, n, shape, "shape") || !xti_build_rank(b, n))
        return false;
    for (int i = 0; i < n; i++) {
        if (shape[i] < -1) {
            xti_build_fail(b, XT_EINVAL, i, "extent %" PRId64 " of axis %d is negative", shape[i], i);
            return false;
        }
    }
    return true;
}

static xt_node add_with_shape(struct xti_build *b, int rank)
{
    b->rank = b->n_attrs = rank;
    if (rank)
        memcpy(b->attr, b->shape, (size_t)rank * sizeof *b->attr);
    return xti_build_add(b);
}

/* Both shapes for the words of a failure. */
struct shapes {
    char have[XTI_SHAPE_TEXT], want[XTI_SHAPE_TEXT];
};

static struct shapes shapes_of(const struct xti_build *b, int n, const int64_t *want)
{
    struct shapes t;
    xti_shape_text(t.have, sizeof t.have, b->x->rank, b->x->shape);
    xti_shape_text(t.want, sizeof t.want, n, want);
    return t;
}

static xt_node fail_expand(struct xti_build *b, int axis, int n, const int64_t *shape)
{
    struct shapes t = shapes_of(b, n, shape);
    if (axis < 0)
        return xti_build_fail(b, XT_ERANK, -1, "%s has more axes than %s", t.have, t.want);
    if (axis < n - b->x->rank)
        return xti_build_fail(b, XT_ESHAPE, axis, "%s to %s: axis %d is new, -1 cannot keep it", t.have,
                              t.want, axis);
    return xti_build_fail(b, XT_ESHAPE, axis, "%s does not broadcast to %s: axis %d has %" PRId64 ", not 1",
                          t.have, t.want, axis, b->x->shape[axis - (n - b->x->rank)]);
}

xt_node xt_expand(struct xt_graph *g, xt_node x, int n, const int64_t *shape)
{
    struct xti_build b;
    if (!xti_build_start(&b, g, XT_OP_EXPAND, "expand", x) || !check_extents(&b, n, shape))
        return -1;
    int lead = n - b.x->rank;
    if (lead < 0)
        return fail_expand(&b, -1, n, shape);
    for (int i = 0; i < n; i++) {
        bool is_new = i < lead;
        int64_t was = is_new ? 1 : b.x->shape[i - lead];
        b.shape[i] = shape[i] == -1 ? was : shape[i];
        if ((is_new && shape[i] == -1) || (was != 1 && was != b.shape[i]))
            return fail_expand(&b, i, n, shape);
    }
    return add_with_shape(&b, n);
}

/* "24 elements", or that they are too many. */
static const char *count_text(char *buf, size_t size, int n, const int64_t *shape)
{
    int64_t numel;
    if (xti_product(n, shape, &numel))
        snprintf(buf, size, "%" PRId64 " element%s", numel, numel == 1 ? "" : "s");
    else
        snprintf(buf, size, "2^63 elements or more");
    return buf;
}

/* Replaces the one -1 of b->shape; `shape`: as the caller gave it. */
static bool infer_extent(struct xti_build *b, int n, int at, const int64_t *shape)
{
    int64_t numel, rest;
    b->shape[at] = 1;
    xti_product(b->x->rank, b->x->shape, &numel);
    bool fits = xti_product(n, b->shape, &rest);
    if (fits && rest && numel % rest == 0) {
        b->shape[at] = numel / rest;
        return true;
    }
    struct shapes t = shapes_of(b, n, shape);
    if (!fits)
        xti_build_fail(b, XT_EOVERFLOW, at, "%s to %s: 2^63 elements or more", t.have, t.want);
    else if (rest == 0)
        xti_build_fail(b, XT_ESHAPE, at, "%s to %s: -1 is ambiguous beside an extent of 0", t.have, t.want);
    else
        xti_build_fail(b, XT_ESHAPE, at,
                       "%s (%" PRId64 " elements) does not fit %s: not a multiple of %" PRId64, t.have, numel,
                       t.want, rest);
    return false;
}

static xt_node fail_reshape(struct xti_build *b, bool fits, int n, const int64_t *shape)
{
    char have[40], want[40];
    struct shapes t = shapes_of(b, n, shape);
    return xti_build_fail(b, fits ? XT_ESHAPE : XT_EOVERFLOW, -1, "%s (%s) does not fit %s (%s)", t.have,
                          count_text(have, sizeof have, b->x->rank, b->x->shape), t.want,
                          count_text(want, sizeof want, n, b->shape));
}

xt_node xt_reshape(struct xt_graph *g, xt_node x, int n, const int64_t *shape)
{
    struct xti_build b;
    int hole = -1;
    int64_t a, c;
    if (!xti_build_start(&b, g, XT_OP_RESHAPE, "reshape", x) || !check_extents(&b, n, shape))
        return -1;
    for (int i = 0; i < n; i++) {
        b.shape[i] = shape[i];
        if (shape[i] == -1 && hole >= 0) {
            struct shapes t = shapes_of(&b, n, shape);
            return xti_build_fail(&b, XT_ESHAPE, i, "%s to %s: only one extent may be -1", t.have, t.want);
        }
        hole = shape[i] == -1 ? i : hole;
    }
    if (hole >= 0 && !infer_extent(&b, n, hole, shape))
        return -1;
    xti_product(b.x->rank, b.x->shape, &a);
    bool fits = xti_product(n, b.shape, &c);
    if (!fits || a != c)
        return fail_reshape(&b, fits, n, shape);
    return add_with_shape(&b, n);
}
