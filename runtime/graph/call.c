/* call.c: from an operation's name and its argument list to builder calls. One row a spelling: what it is
 * called, what its arguments are called, how it is built. Layer 1. */
#include "graph/args.h"

#include <string.h>

#include "graph/dtype.h"

static struct xt_graph *graph(struct xti_args *b)
{
    xti_parse_at(b->p, b->at.s);
    return b->p->g;
}

static int rank(const struct xti_args *b) { return b->p->g->node[b->x].rank; }

static xt_node with_axes(struct xti_args *b, xt_node (*build)(struct xt_graph *, xt_node, int, const int *))
{
    int v[XTI_MAX_NUMBERS], n;
    return xti_args_axes(b, 0, &n, v) ? build(graph(b), b->x, n, v) : -1;
}

/* flip and squeeze: no argument means every axis, an empty list none. */
static xt_node with_some_axes(struct xti_args *b,
                              xt_node (*build)(struct xt_graph *, xt_node, int, const int *))
{
    int v[XTI_MAX_NUMBERS], n;
    if (!xti_args_axes(b, 0, &n, v))
        return -1;
    return xti_args_given(b, 0) && n == 0 ? b->x : build(graph(b), b->x, n, v);
}

static xt_node with_shape(struct xti_args *b,
                          xt_node (*build)(struct xt_graph *, xt_node, int, const int64_t *))
{
    int64_t v[XTI_MAX_NUMBERS];
    int n;
    return xti_args_list(b, 0, &n, v) ? build(graph(b), b->x, n, v) : -1;
}

static xt_node build_permute(struct xti_args *b) { return with_axes(b, xt_permute); }
static xt_node build_reshape(struct xti_args *b) { return with_shape(b, xt_reshape); }
static xt_node build_squeeze(struct xti_args *b) { return with_some_axes(b, xt_squeeze); }
static xt_node build_flip(struct xti_args *b) { return with_some_axes(b, xt_flip); }
static xt_node build_expand(struct xti_args *b) { return with_shape(b, xt_expand); }
static xt_node build_tile(struct xti_args *b) { return with_shape(b, xt_tile); }

static xt_node build_flat(struct xti_args *b) { return xt_reshape(graph(b), b->x, 1, (const int64_t[]){-1}); }

static xt_node reverse_axes(struct xti_args *b)
{
    int v[XT_MAX_RANK], n = rank(b);
    for (int i = 0; i < n; i++)
        v[i] = n - 1 - i;
    return xt_permute(graph(b), b->x, n, v);
}

/* PyTorch's transpose(a, b) and NumPy's transpose(axes), transpose(). */
static xt_node build_transpose(struct xti_args *b)
{
    int v[XTI_MAX_NUMBERS], n;
    if (!xti_args_axes(b, 0, &n, v))
        return -1;
    bool list = xti_args_given(b, 0) && b->p->item[b->slot[0].a].kind == XTI_ITEM_OPEN;
    if (!xti_args_given(b, 0))
        return reverse_axes(b);
    if (n == 2 && !list)
        return xt_transpose(graph(b), b->x, v[0], v[1]);
    return xt_permute(graph(b), b->x, n, v);
}

static xt_node build_swapaxes(struct xti_args *b)
{
    int64_t i, k;
    if (!xti_args_int(b, 0, &i) || !xti_args_int(b, 1, &k))
        return -1;
    return xt_transpose(graph(b), b->x, xti_args_axis(i), xti_args_axis(k));
}

/* -1: out of range or given twice. */
static int resolve(int axis, int n, const bool *taken)
{
    axis += axis < 0 ? n : 0;
    return axis >= 0 && axis < n && !taken[axis] ? axis : -1;
}

static xt_node build_moveaxis(struct xti_args *b)
{
    int from[XTI_MAX_NUMBERS], to[XTI_MAX_NUMBERS], v[XT_MAX_RANK], n_from, n_to, n = rank(b), next = 0;
    bool moved[XT_MAX_RANK] = {false}, filled[XT_MAX_RANK] = {false};
    if (!xti_args_axes(b, 0, &n_from, from) || !xti_args_axes(b, 1, &n_to, to))
        return -1;
    if (n_from != n_to) {
        xti_args_fail(b, XT_ERANK, "source and destination differ in length", "", 0);
        return -1;
    }
    for (int i = 0; i < n_from; i++) {
        int a = resolve(from[i], n, moved), c = resolve(to[i], n, filled);
        if (a < 0 || c < 0) {
            xti_args_fail(b, XT_ERANGE, "an axis is out of range or given twice", "", 0);
            return -1;
        }
        moved[a] = filled[c] = true;
        v[c] = a;
    }
    for (int i = 0; i < n; i++) {
        while (next < n && moved[next])
            next++;
        if (!filled[i])
            v[i] = next++;
    }
    return xt_permute(graph(b), b->x, n, v);
}

static xt_node build_unsqueeze(struct xti_args *b)
{
    int64_t axis;
    return xti_args_int(b, 0, &axis) ? xt_unsqueeze(graph(b), b->x, xti_args_axis(axis)) : -1;
}

/* Without an axis NumPy flattens and PyTorch tiles: it has to be said. */
static xt_node build_repeat(struct xti_args *b)
{
    int64_t reps, axis;
    if (!xti_args_int(b, 0, &reps) || !xti_args_int(b, 1, &axis))
        return -1;
    return xt_repeat(graph(b), b->x, reps, xti_args_axis(axis));
}

/* Without an axis both NumPy and PyTorch roll the flattened array and give it its shape back. */
static xt_node roll_flat(struct xti_args *b, int64_t shift)
{
    int64_t shape[XT_MAX_RANK];
    int n = rank(b);
    if (n)
        memcpy(shape, b->p->g->node[b->x].shape, (size_t)n * sizeof *shape);
    xt_node y = xt_reshape(graph(b), b->x, 1, (const int64_t[]){-1});
    return xt_reshape(b->p->g, xt_roll(b->p->g, y, shift, 0), n, shape);
}

static xt_node build_roll(struct xti_args *b)
{
    int64_t shift[XTI_MAX_NUMBERS];
    int axis[XTI_MAX_NUMBERS], n, n_axes;
    xt_node y = b->x;
    if (!xti_args_given(b, 0)) {
        xti_args_fail_param(b, 0, "is missing");
        return -1;
    }
    if (!xti_args_list(b, 0, &n, shift) || !xti_args_axes(b, 1, &n_axes, axis))
        return -1;
    if (!xti_args_given(b, 1) && n == 1)
        return roll_flat(b, shift[0]);
    if (n != n_axes) {
        xti_args_fail(b, XT_ERANK, "shift and axis differ in length", "", 0);
        return -1;
    }
    for (int i = 0; i < n; i++)
        y = xt_roll(graph(b), y, shift[i], axis[i]);
    return y;
}

static xt_node build_diagonal(struct xti_args *b)
{
    int64_t offset, i, k;
    if (!xti_args_int_or(b, 0, 0, &offset) || !xti_args_int_or(b, 1, 0, &i) || !xti_args_int_or(b, 2, 1, &k))
        return -1;
    return xt_diagonal(graph(b), b->x, offset, xti_args_axis(i), xti_args_axis(k));
}

static xt_node build_unfold(struct xti_args *b)
{
    int64_t axis, size, step;
    if (!xti_args_int(b, 0, &axis) || !xti_args_int(b, 1, &size) || !xti_args_int(b, 2, &step))
        return -1;
    return xt_unfold(graph(b), b->x, xti_args_axis(axis), size, step);
}

/* Every list without a list inside is a pair. */
static bool check_pairs(struct xti_args *b, int *n, int64_t v[XTI_MAX_NUMBERS])
{
    const struct xti_item *it = b->p->item;
    struct xti_slot s = b->slot[0];
    if (s.b == s.a + 1) { /* one number for every side */
        for (int i = 2 * rank(b) - 1; i > 0; i--)
            v[i] = v[0];
        *n = 2 * rank(b);
        return true;
    }
    for (int i = s.a, inside = 0; i < s.b; i++) {
        bool number = it[i].kind == XTI_ITEM_NUMBER;
        inside = number ? inside + 1 : 0;
        if ((it[i].kind == XTI_ITEM_CLOSE && it[i - 1].kind == XTI_ITEM_NUMBER &&
             it[i - 2].kind == XTI_ITEM_OPEN) ||
            inside > 2 || (number && i == s.a))
            return xti_args_fail_param(b, 0, "wants (before,after) for each axis");
    }
    return true;
}

static xt_node build_pad(struct xti_args *b)
{
    int64_t v[XTI_MAX_NUMBERS] = {0};
    unsigned char bytes[16] = {0};
    const void *fill;
    int n;
    if (!xti_args_numbers(b, 0, &n, v) || !check_pairs(b, &n, v) || !xti_args_value(b, 1, bytes, &fill))
        return -1;
    return xt_pad(graph(b), b->x, n / 2, v, fill);
}

static xt_node with_triangle(struct xti_args *b,
                             xt_node (*build)(struct xt_graph *, xt_node, int64_t, const void *))
{
    int64_t k;
    unsigned char bytes[16] = {0};
    const void *fill;
    if (!xti_args_int_or(b, 0, 0, &k) || !xti_args_value(b, 1, bytes, &fill))
        return -1;
    return build(graph(b), b->x, k, fill);
}

static xt_node build_tril(struct xti_args *b) { return with_triangle(b, xt_tril); }
static xt_node build_triu(struct xti_args *b) { return with_triangle(b, xt_triu); }

/* The axis is a number among the arguments or a keyword; the operands are the rest, in a list or not. */
static bool join_arguments(struct xti_args *b, xt_node *xs, int *n, int64_t *axis)
{
    const struct xti_parser *p = b->p;
    bool have_axis = false;
    if (b->x >= 0)
        xs[(*n)++] = b->x;
    for (int i = b->first; i < p->n_items; i++) {
        const struct xti_item *it = &p->item[i];
        bool is_axis = it->key.n && xti_word_in("axis dim", it->key.s, it->key.n);
        if (it->key.n && !is_axis && !xti_word_in("arrays tensors xs", it->key.s, it->key.n))
            return xti_args_fail(b, XT_ESYNTAX, "no argument is called ", it->key.s, it->key.n);
        if (it->kind == XTI_ITEM_NODE && !is_axis) {
            xs[(*n)++] = it->node;
        } else if (it->kind == XTI_ITEM_NUMBER) {
            if (have_axis)
                return xti_args_fail(b, XT_ESYNTAX, "axis is given twice", "", 0);
            if (!xti_lex_number(b->p, it->s, it->n, axis))
                return false;
            have_axis = true;
        } else if (it->kind == XTI_ITEM_NONE || is_axis) {
            return xti_args_fail(b, XT_ESYNTAX, "axis wants one integer", "", 0);
        }
    }
    return true;
}

static xt_node with_operands(struct xti_args *b,
                             xt_node (*build)(struct xt_graph *, int, int, const xt_node *))
{
    int n = 0;
    int64_t axis = 0;
    xt_node *xs = xti_alloc_array((size_t)(b->p->n_items - b->first + 1), sizeof *xs), y = -1;
    if (!xs)
        xti_graph_fail(graph(b), XT_ENOMEM, "out of memory");
    else if (join_arguments(b, xs, &n, &axis))
        y = build(graph(b), xti_args_axis(axis), n, xs);
    xti_free(xs);
    return y;
}

static xt_node build_concat(struct xti_args *b) { return with_operands(b, xt_concat); }
static xt_node build_stack(struct xti_args *b) { return with_operands(b, xt_stack); }

/* clang-format off */
static const struct xti_call table[] = {
    {"permute permute_dims", build_permute,
     {{XTI_SPREAD, "axes dims axis dim"}}},
    {"transpose", build_transpose,
     {{XTI_SPREAD, "axes dims"}}},
    {"swapaxes", build_swapaxes,
     {{XTI_INT, "axis1 dim0 axis0"}, {XTI_INT, "axis2 dim1"}}},
    {"moveaxis movedim", build_moveaxis,
     {{XTI_INTS, "source"}, {XTI_INTS, "destination"}}},
    {"reshape view", build_reshape,
     {{XTI_SPREAD, "shape newshape size"}}},
    {"flatten ravel", build_flat,
     {{XTI_NO_PARAM, ""}}},
    {"squeeze", build_squeeze,
     {{XTI_SPREAD, "axis dim axes"}}},
    {"unsqueeze expand_dims", build_unsqueeze,
     {{XTI_INT, "axis dim"}}},
    {"flip", build_flip,
     {{XTI_SPREAD, "axis dims axes dim"}}},
    {"expand broadcast_to", build_expand,
     {{XTI_SPREAD, "shape size"}}},
    {"tile", build_tile,
     {{XTI_SPREAD, "reps repetitions dims"}}},
    {"repeat repeat_interleave", build_repeat,
     {{XTI_INT, "repeats reps"}, {XTI_INT, "axis dim"}}},
    {"roll", build_roll,
     {{XTI_INTS, "shift shifts"}, {XTI_INTS, "axis dims axes dim"}}},
    {"diagonal", build_diagonal,
     {{XTI_INT, "offset"}, {XTI_INT, "axis1 dim1"}, {XTI_INT, "axis2 dim2"}}},
    {"unfold", build_unfold,
     {{XTI_INT, "axis dimension dim"}, {XTI_INT, "size"}, {XTI_INT, "step"}}},
    {"pad", build_pad,
     {{XTI_PAIRS, "pad_width pad pairs"}, {XTI_VALUE, "value constant_values fill_value"}}},
    {"tril", build_tril,
     {{XTI_INT, "k diagonal"}, {XTI_VALUE, "value fill_value"}}},
    {"triu", build_triu,
     {{XTI_INT, "k diagonal"}, {XTI_VALUE, "value fill_value"}}},
    {"concat concatenate cat", build_concat,
     {{XTI_NO_PARAM, ""}}},
    {"stack", build_stack,
     {{XTI_NO_PARAM, ""}}},
};
/* clang-format on */

const struct xti_call *xti_call_find(struct xti_token name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (xti_word_in(table[i].names, name.s, name.n))
            return &table[i];
    return NULL;
}

static bool joins(const struct xti_call *c) { return c->build == build_concat || c->build == build_stack; }

xt_node xti_call_apply(struct xti_parser *p, const struct xti_call *c, xt_node x, int first,
                       struct xti_token at)
{
    struct xti_args b = {.p = p, .c = c, .at = at, .x = x, .first = first};
    xt_node y = -1;
    bool ok = true;
    if (!joins(c)) {
        if (x < 0) {
            ok = first < p->n_items && p->item[first].kind == XTI_ITEM_NODE && !p->item[first].key.n;
            if (ok)
                b.x = p->item[b.first++].node;
            else
                xti_args_fail(&b, XT_ESYNTAX, "the first argument must be a tensor", "", 0);
        }
        ok = ok && xti_args_bind(&b);
    }
    if (ok)
        y = c->build(&b);
    p->n_items = first;
    return y;
}

xt_node xti_call_attribute(struct xti_parser *p, xt_node x, struct xti_token name)
{
    struct xti_args b = {.p = p, .at = name, .x = x};
    if (name.n == 1)
        return reverse_axes(&b);
    return xt_transpose(graph(&b), x, -2, -1);
}
