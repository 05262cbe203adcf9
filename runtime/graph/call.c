/* call.c: from an operation's name and its argument list to builder calls. One row a spelling: what it is
 * called, what its arguments are called, how it is built. Layer 1. */
#include "graph/args.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/alias.h"
#include "graph/dtype.h"

static struct xt_graph *graph(struct xti_args *b) { return xti_args_graph(b); }
static int rank(const struct xti_args *b) { return xti_args_node(b)->rank; }

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
    if (n == 1 && rank(b) > 1) {
        xti_args_fail(b, XT_ERANK, "one axis is no pair: transpose(0,1) swaps two, T reverses all", "", 0);
        return -1;
    }
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
    if (xti_args_given(b, 0) && !xti_args_given(b, 1)) {
        xti_args_fail_param(b, 1, "is missing, as in repeat(2, axis=0); PyTorch's repeat is tile");
        return -1;
    }
    if (!xti_args_int(b, 0, &reps) || !xti_args_int(b, 1, &axis))
        return -1;
    char text[160];
    if (axis < -rank(b) || axis >= rank(b)) {
        snprintf(text, sizeof text,
                 "axis %" PRId64 " is not from %d to %d: repeat is NumPy's, PyTorch's is tile", axis,
                 -rank(b), rank(b) - 1);
        xti_args_fail(b, XT_ERANGE, text, "", 0);
        return -1;
    }
    /* repeat(2,1) of a matrix is a call of both, and not the same; (n,0) is PyTorch's of an empty result. */
    if (rank(b) == 2 && axis == 1 && !b->p->item[b->slot[1].a].key.n &&
        xti_word_in("repeat", b->at.s, b->at.n)) {
        snprintf(text, sizeof text,
                 "write repeat(%" PRId64 ", axis=1), NumPy's, or tile(%" PRId64
                 ",1), which is PyTorch's repeat(%" PRId64 ",1)",
                 reps, reps, reps);
        xti_args_fail(b, XT_EINVAL, text, "", 0);
        return -1;
    }
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
            return xti_args_fail_keyword(b, it->key);
        if (it->kind == XTI_ITEM_NODE && !is_axis) {
            xs[(*n)++] = it->node;
        } else if (it->kind == XTI_ITEM_NUMBER) {
            if (have_axis)
                return xti_args_fail(b, XT_ESYNTAX, "axis is given twice", "", 0);
            if (!xti_lex_number(b->p, it->s, it->n, axis))
                return false;
            have_axis = true;
        } else if (it->kind == XTI_ITEM_NONE || it->kind == XTI_ITEM_STRING || is_axis) {
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
     .param = {{XTI_SPREAD, "axes dims axis dim"}}},
    {"transpose", build_transpose,
     .param = {{XTI_SPREAD, "axes dims"}}},
    {"swapaxes swapdims", build_swapaxes,
     .param = {{XTI_INT, "axis1 dim0 axis0"}, {XTI_INT, "axis2 dim1"}}},
    {"moveaxis movedim", build_moveaxis,
     .param = {{XTI_INTS, "source"}, {XTI_INTS, "destination"}}},
    {"reshape view", build_reshape,
     .param = {{XTI_SPREAD, "shape newshape size"}}},
    {"flatten ravel", build_flat,
     .param = {{XTI_NO_PARAM, ""}}},
    {"squeeze", build_squeeze,
     .param = {{XTI_SPREAD, "axis dim axes"}}},
    {"unsqueeze expand_dims", build_unsqueeze,
     .param = {{XTI_INT, "axis dim"}}},
    {"flip", build_flip,
     .param = {{XTI_SPREAD, "axis dims axes dim"}}},
    {"expand broadcast_to", build_expand,
     .param = {{XTI_SPREAD, "shape size"}}},
    {"tile", build_tile,
     .param = {{XTI_SPREAD, "reps repetitions dims"}}},
    {"rearrange repeat", xti_build_rearrange,
     .param = {{XTI_TEXT, "pattern"}, {XTI_LENGTHS, "length"}}},
    {"repeat repeat_interleave", build_repeat,
     .param = {{XTI_INT, "repeats reps"}, {XTI_INT, "axis dim"}}},
    {"roll", build_roll,
     .param = {{XTI_INTS, "shift shifts"}, {XTI_INTS, "axis dims axes dim"}}},
    {"diagonal", build_diagonal,
     .param = {{XTI_INT, "offset"}, {XTI_INT, "axis1 dim1"}, {XTI_INT, "axis2 dim2"}}},
    {"unfold", build_unfold,
     .param = {{XTI_INT, "axis dimension dim"}, {XTI_INT, "size"}, {XTI_INT, "step"}}},
    {"pad", xti_build_pad_backwards,
     .param = {{XTI_PAIRS, "pad"}, {XTI_TEXT, "mode"}, {XTI_VALUE, "value"}}, .libraries = "F functional"},
    {"pad", xti_build_pad_alike,
     .param = {{XTI_PAIRS, "pad_width"}, {XTI_TEXT, "mode"}, {XTI_VALUE, "constant_values"}},
     .libraries = "np numpy jnp xp"},
    {"pad", xti_build_pad,
     .param = {{XTI_PAIRS, "pad_width pad pairs"}, {XTI_TEXT, "mode"},
               {XTI_VALUE, "value constant_values fill_value"}}},
    {"tril", build_tril,
     .param = {{XTI_INT, "k diagonal"}, {XTI_VALUE, "value fill_value"}}},
    {"triu", build_triu,
     .param = {{XTI_INT, "k diagonal"}, {XTI_VALUE, "value fill_value"}}},
    {"concat concatenate cat", build_concat,
     .param = {{XTI_OPERANDS, "axis dim"}}},
    {"stack", build_stack,
     .param = {{XTI_OPERANDS, "axis dim"}}},
    {"hstack", xti_build_hstack,
     .param = {{XTI_OPERANDS, "axis dim"}}},
    {"vstack row_stack", xti_build_vstack,
     .param = {{XTI_OPERANDS, "axis dim"}}},
    {"dstack", xti_build_dstack,
     .param = {{XTI_OPERANDS, "axis dim"}}},
    {"contiguous clone copy detach ascontiguousarray", xti_build_nothing,
     .param = {{XTI_NO_PARAM, ""}}},
    {"narrow", xti_build_narrow,
     .param = {{XTI_INT, "dim axis"}, {XTI_INT, "start"}, {XTI_INT, "length"}}},
    {"select", xti_build_select,
     .param = {{XTI_INT, "dim axis"}, {XTI_INT, "index"}}},
    {"unflatten", xti_build_unflatten,
     .param = {{XTI_INT, "dim axis"}, {XTI_SPREAD, "sizes shape"}}},
    {"fliplr", xti_build_fliplr,
     .param = {{XTI_NO_PARAM, ""}}},
    {"flipud", xti_build_flipud,
     .param = {{XTI_NO_PARAM, ""}}},
    {"rot90", xti_build_rot90,
     .param = {{XTI_INT, "k"}, {XTI_INTS, "axes dims"}}},
    {"pixel_shuffle", xti_build_blocks,
     .param = {{XTI_INT, "upscale_factor"}},
     .pattern = {"... (c i j) h w -> ... c (h i) (w j)"}},
    {"pixel_unshuffle", xti_build_blocks,
     .param = {{XTI_INT, "downscale_factor"}},
     .pattern = {"... c (h i) (w j) -> ... (c i j) h w"}},
    {"depth_to_space", xti_build_blocks,
     .param = {{XTI_INT, "block_size"}, {XTI_TEXT, "data_format"}},
     .pattern = {"... h w (i j c) -> ... (h i) (w j) c", "... (i j c) h w -> ... c (h i) (w j)"}},
    {"space_to_depth", xti_build_blocks,
     .param = {{XTI_INT, "block_size"}, {XTI_TEXT, "data_format"}},
     .pattern = {"... (h i) (w j) c -> ... h w (i j c)", "... c (h i) (w j) -> ... (i j c) h w"}},
};
/* clang-format on */

enum { N_ROWS = sizeof table / sizeof *table };

const char *xti_call_names(int i) { return i >= 0 && i < N_ROWS ? table[i].names : NULL; }

const struct xti_call *xti_call_find(struct xti_token name, struct xti_token library)
{
    for (const struct xti_call *c = table; c < table + N_ROWS; c++)
        if (xti_word_in(c->names, name.s, name.n) &&
            (!c->libraries || xti_word_in(c->libraries, library.s, library.n)))
            return c;
    return NULL;
}

/* The row from c on with its name whose first parameter is a text exactly if the first argument is one. */
static const struct xti_call *choose_row(const struct xti_args *b)
{
    bool text = b->first < b->p->n_items && b->p->item[b->first].kind == XTI_ITEM_STRING;
    for (const struct xti_call *c = b->c; c < table + N_ROWS; c++)
        if (xti_word_in(c->names, b->at.s, b->at.n) && (c->param[0].kind == XTI_TEXT) == text)
            return c;
    return b->c;
}

/* The tensors of a list, stacked. */
static bool stack_list(struct xti_args *b)
{
    const struct xti_parser *p = b->p;
    int end = b->first + 1, n;
    while (end < p->n_items && p->item[end].kind == XTI_ITEM_NODE && !p->item[end].key.n)
        end++;
    if (end == p->n_items || p->item[end].kind != XTI_ITEM_CLOSE)
        return xti_args_fail(b, XT_ESYNTAX, "something in the list is no tensor", "", 0);
    n = end - b->first - 1;
    xt_node *xs = xti_alloc_array((size_t)n + 1, sizeof *xs);
    for (int i = 0; xs && i < n; i++)
        xs[i] = p->item[b->first + 1 + i].node;
    if (xs)
        b->x = xt_stack(graph(b), 0, n, xs);
    else
        xti_graph_fail(graph(b), XT_ENOMEM, "out of memory");
    xti_free(xs);
    b->first = end + 1;
    return b->x >= 0;
}

/* The operand of a function: its first argument. einops takes a list too, and stacks it. */
static bool take_operand(struct xti_args *b)
{
    const struct xti_parser *p = b->p;
    const struct xti_item *it = b->first < p->n_items ? p->item + b->first : NULL;
    if (it && it->kind == XTI_ITEM_OPEN && b->c->param[0].kind == XTI_TEXT)
        return stack_list(b);
    if (!it || it->kind != XTI_ITEM_NODE || it->key.n)
        return xti_args_fail(b, XT_ESYNTAX, "the first argument must be a tensor",
                             ", as x in flip(x, 0) or x.flip(0)", 33);
    b->x = it->node;
    b->first++;
    return true;
}

xt_node xti_call_apply(struct xti_parser *p, const struct xti_call *c, xt_node x, int first,
                       struct xti_token at)
{
    struct xti_args b = {.p = p, .c = c, .at = at, .x = x, .first = first};
    xt_node y = -1;
    bool ok = true;
    if (c->param[0].kind != XTI_OPERANDS) {
        ok = x >= 0 || take_operand(&b);
        b.c = choose_row(&b);
        ok = ok && xti_args_bind(&b);
    }
    if (ok)
        y = b.c->build(&b);
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
