/* resize.c: operations that repeat, shift or cut elements: tile, repeat, roll, diagonal, unfold; and those
 * that bring in a fill value: pad, tril, triu. In: any call. Out: a node whose attrs are resolved, or the
 * graph's first error. Layer 1. */
#include "graph/build.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

static const char *shape_of(const struct xti_build *b, char buf[XTI_SHAPE_TEXT])
{
    return xti_shape_text(buf, XTI_SHAPE_TEXT, b->x->rank, b->x->shape);
}

/* The result's axis gets reps times its extent. */
static bool multiply_axis(struct xti_build *b, int axis, int64_t reps)
{
    char s[XTI_SHAPE_TEXT];
    if (reps < 0) {
        xti_build_fail(b, XT_EINVAL, axis, "%" PRId64 " repetitions of axis %d", reps, axis);
        return false;
    }
    if (xti_mul64(b->shape[axis], reps, &b->shape[axis]))
        return true;
    xti_build_fail(b, XT_EOVERFLOW, axis, "%s: %" PRId64 " repetitions of axis %d do not fit in 63 bits",
                   shape_of(b, s), reps, axis);
    return false;
}

xt_node xt_tile(struct xt_graph *g, xt_node x, int n, const int64_t *reps)
{
    struct xti_build b;
    if (!xti_build_start(&b, g, XT_OP_TILE, "tile", x))
        return -1;
    if (!xti_build_list(&b, n, reps, "reps") || !xti_build_rank(&b, n))
        return -1;
    b.rank = b.n_attrs = n > b.x->rank ? n : b.x->rank;
    for (int i = 0; i < b.rank; i++) {
        int from_end = b.rank - i;
        b.shape[i] = from_end <= b.x->rank ? b.x->shape[b.x->rank - from_end] : 1;
        b.attr[i] = from_end <= n ? reps[n - from_end] : 1;
        if (!multiply_axis(&b, i, b.attr[i]))
            return -1;
    }
    return xti_build_add(&b);
}

xt_node xt_repeat(struct xt_graph *g, xt_node x, int64_t reps, int axis)
{
    struct xti_build b;
    if (!xti_build_start(&b, g, XT_OP_REPEAT, "repeat", x) || !xti_build_axis(&b, &axis, b.x->rank))
        return -1;
    xti_build_same_shape(&b);
    if (!multiply_axis(&b, axis, reps))
        return -1;
    b.attr[b.n_attrs++] = reps;
    b.attr[b.n_attrs++] = axis;
    return xti_build_add(&b);
}

xt_node xt_roll(struct xt_graph *g, xt_node x, int64_t shift, int axis)
{
    struct xti_build b;
    if (!xti_build_start(&b, g, XT_OP_ROLL, "roll", x) || !xti_build_axis(&b, &axis, b.x->rank))
        return -1;
    xti_build_same_shape(&b);
    b.attr[b.n_attrs++] = b.shape[axis] ? xti_floor_mod(shift, b.shape[axis]) : 0;
    b.attr[b.n_attrs++] = axis;
    return xti_build_add(&b);
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

xt_node xt_diagonal(struct xt_graph *g, xt_node x, int64_t offset, int axis_a, int axis_b)
{
    struct xti_build b;
    char s[XTI_SHAPE_TEXT];
    if (!xti_build_start(&b, g, XT_OP_DIAGONAL, "diagonal", x))
        return -1;
    if (b.x->rank < 2)
        return xti_build_fail(&b, XT_ERANK, -1, "%s has fewer than 2 axes", shape_of(&b, s));
    if (!xti_build_axis(&b, &axis_a, b.x->rank) || !xti_build_axis(&b, &axis_b, b.x->rank))
        return -1;
    if (axis_a == axis_b)
        return xti_build_fail(&b, XT_EINVAL, axis_a, "axis %d is given twice", axis_a);
    int64_t rows = b.x->shape[axis_a], cols = b.x->shape[axis_b];
    offset = clamp(offset, -rows, cols);
    for (int i = 0; i < b.x->rank; i++)
        if (i != axis_a && i != axis_b)
            b.shape[b.rank++] = b.x->shape[i];
    int64_t down = offset < 0 ? rows + offset : rows, right = offset > 0 ? cols - offset : cols;
    b.shape[b.rank++] = down < right ? down : right;
    b.attr[b.n_attrs++] = offset;
    b.attr[b.n_attrs++] = axis_a;
    b.attr[b.n_attrs++] = axis_b;
    return xti_build_add(&b);
}

xt_node xt_unfold(struct xt_graph *g, xt_node x, int axis, int64_t size, int64_t step)
{
    struct xti_build b;
    char s[XTI_SHAPE_TEXT];
    if (!xti_build_start(&b, g, XT_OP_UNFOLD, "unfold", x) || !xti_build_axis(&b, &axis, b.x->rank))
        return -1;
    int64_t n = b.x->shape[axis];
    if (size < 0 || step <= 0)
        return xti_build_fail(&b, XT_EINVAL, axis,
                              "size %" PRId64 " must be 0 or more, step %" PRId64 " 1 or more", size, step);
    if (size > n)
        return xti_build_fail(&b, XT_ESHAPE, axis, "axis %d of %s is shorter than a window of [%" PRId64 "]",
                              axis, shape_of(&b, s), size);
    if (!xti_build_rank(&b, b.x->rank + 1))
        return -1;
    xti_build_same_shape(&b);
    b.shape[axis] = (n - size) / step + 1;
    b.shape[b.rank++] = size;
    b.attr[b.n_attrs++] = axis;
    b.attr[b.n_attrs++] = size;
    b.attr[b.n_attrs++] = step;
    return xti_build_add(&b);
}

xt_node xt_pad(struct xt_graph *g, xt_node x, int n, const int64_t *lo_hi, const void *value)
{
    struct xti_build b;
    char s[XTI_SHAPE_TEXT];
    if (!xti_build_start(&b, g, XT_OP_PAD, "pad", x) || !xti_build_list(&b, n, lo_hi, "pairs"))
        return -1;
    if (n != b.x->rank)
        return xti_build_fail(&b, XT_ERANK, -1, "%d pair%s given, %s has %d axes", n, n == 1 ? "" : "s",
                              shape_of(&b, s), b.x->rank);
    xti_build_same_shape(&b);
    for (int i = 0; i < n; i++) {
        int64_t lo = lo_hi[2 * i], hi = lo_hi[2 * i + 1];
        if (lo < 0 || hi < 0)
            return xti_build_fail(&b, XT_EINVAL, i, "(%" PRId64 ",%" PRId64 ") on axis %d of %s is negative",
                                  lo, hi, i, shape_of(&b, s));
        if (!xti_add64(b.shape[i], lo, &b.shape[i]) || !xti_add64(b.shape[i], hi, &b.shape[i]))
            return xti_build_fail(&b, XT_EOVERFLOW, i,
                                  "(%" PRId64 ",%" PRId64 ") on axis %d of %s: more than 63 bits", lo, hi, i,
                                  shape_of(&b, s));
        b.attr[b.n_attrs++] = lo;
        b.attr[b.n_attrs++] = hi;
    }
    b.value = value;
    return xti_build_add(&b);
}

static xt_node add_triangle(struct xt_graph *g, enum xt_op op, xt_node x, int64_t k, const void *value)
{
    struct xti_build b;
    char s[XTI_SHAPE_TEXT];
    if (!xti_build_start(&b, g, op, xti_op_info(op)->name, x))
        return -1;
    if (b.x->rank < 2)
        return xti_build_fail(&b, XT_ERANK, -1, "%s has fewer than 2 axes", shape_of(&b, s));
    xti_build_same_shape(&b);
    b.attr[b.n_attrs++] = clamp(k, -b.shape[b.rank - 2], b.shape[b.rank - 1]);
    b.value = value;
    return xti_build_add(&b);
}

xt_node xt_tril(struct xt_graph *g, xt_node x, int64_t k, const void *value)
{
    return add_triangle(g, XT_OP_TRIL, x, k, value);
}

xt_node xt_triu(struct xt_graph *g, xt_node x, int64_t k, const void *value)
{
    return add_triangle(g, XT_OP_TRIU, x, k, value);
}
