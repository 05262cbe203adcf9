/* graph_eval.c: evaluates a graph element by element, by the definition of each operation, without any map.
 * In: a graph and host buffers. Out: the output's elements, written through the destination's layout. An
 * element is followed from operation to operation to where it comes from; there are no temporaries. It shares
 * no code with the fuser, because it is what the fuser is tested against: each operation is one function from
 * an output index to an input index. Layer 2. */
#include "map/map.h"

#include <string.h>

#include "base/num.h"

/* at: an index of node n. Sets *arg (its number among n's arguments) and in[] to the element that stands
 * there; false: the fill value does. x: n's first argument. */
typedef bool (*origin_fn)(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                          int64_t *in);

static bool from_permute(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                         int64_t *in)
{
    for (int j = 0; j < n->rank; j++)
        in[n->attr[j]] = at[j];
    return true;
}

/* The element with the same row-major number. */
static bool from_reshape(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                         int64_t *in)
{
    int64_t flat = 0;
    for (int j = 0; j < n->rank; j++)
        flat = flat * n->shape[j] + at[j];
    for (int j = x->rank - 1; j >= 0; j--) {
        in[j] = flat % x->shape[j];
        flat /= x->shape[j];
    }
    return true;
}

static bool from_squeeze(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                         int64_t *in)
{
    int removed = 0;
    for (int j = 0; j < x->rank; j++) {
        bool gone = removed < n->n_attrs && n->attr[removed] == j;
        in[j] = gone ? 0 : at[j - removed];
        removed += gone;
    }
    return true;
}

/* in = at without item `axis`. */
static void drop_axis(int rank, int64_t axis, const int64_t *at, int64_t *in)
{
    for (int j = 0; j < rank; j++)
        if (j != axis)
            *in++ = at[j];
}

static bool from_unsqueeze(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                           int64_t *in)
{
    drop_axis(n->rank, n->attr[0], at, in);
    return true;
}

/* Items: kind, start, length, step. */
static bool from_index(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                       int64_t *in)
{
    for (int k = 0; k < n->n_attrs; k += 4) {
        const int64_t *item = &n->attr[k];
        if (item[0] == XT_NEWAXIS)
            at++;
        else if (item[0] == XT_AT)
            *in++ = item[1];
        else
            *in++ = item[1] + item[3] * *at++;
    }
    return true;
}

static bool from_flip(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                      int64_t *in)
{
    memcpy(in, at, sizeof *in * (size_t)n->rank);
    for (int k = 0; k < n->n_attrs; k++)
        in[n->attr[k]] = n->shape[n->attr[k]] - 1 - at[n->attr[k]];
    return true;
}

/* Shapes are aligned at the last axis. */
static bool from_expand(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                        int64_t *in)
{
    int lead = n->rank - x->rank;
    for (int j = 0; j < x->rank; j++)
        in[j] = x->shape[j] == 1 ? 0 : at[lead + j];
    return true;
}

static bool from_tile(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                      int64_t *in)
{
    int lead = n->rank - x->rank;
    for (int j = 0; j < x->rank; j++)
        in[j] = at[lead + j] % x->shape[j];
    return true;
}

static bool from_repeat(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                        int64_t *in)
{
    memcpy(in, at, sizeof *in * (size_t)n->rank);
    in[n->attr[1]] /= n->attr[0];
    return true;
}

/* Element i moves to i + shift. */
static bool from_roll(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                      int64_t *in)
{
    memcpy(in, at, sizeof *in * (size_t)n->rank);
    int64_t *i = &in[n->attr[1]];
    *i = *i < n->attr[0] ? *i + n->shape[n->attr[1]] - n->attr[0] : *i - n->attr[0];
    return true;
}

/* The two axes go; the diagonal is the last axis. */
static bool from_diagonal(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                          int64_t *in)
{
    int64_t offset = n->attr[0], k = at[n->rank - 1];
    for (int j = 0; j < x->rank; j++) {
        if (j == n->attr[1])
            in[j] = offset < 0 ? k - offset : k;
        else if (j == n->attr[2])
            in[j] = offset > 0 ? k + offset : k;
        else
            in[j] = *at++;
    }
    return true;
}

/* The window is the last axis. */
static bool from_unfold(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                        int64_t *in)
{
    memcpy(in, at, sizeof *in * (size_t)x->rank);
    in[n->attr[0]] = at[n->attr[0]] * n->attr[2] + at[n->rank - 1];
    return true;
}

static bool from_pad(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                     int64_t *in)
{
    for (int j = 0; j < n->rank; j++) {
        in[j] = at[j] - n->attr[2 * j];
        if (in[j] < 0 || in[j] >= x->shape[j])
            return false;
    }
    return true;
}

static bool from_tril(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                      int64_t *in)
{
    memcpy(in, at, sizeof *in * (size_t)n->rank);
    return at[n->rank - 1] - at[n->rank - 2] <= n->attr[0];
}

static bool from_triu(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                      int64_t *in)
{
    memcpy(in, at, sizeof *in * (size_t)n->rank);
    return at[n->rank - 1] - at[n->rank - 2] >= n->attr[0];
}

static bool from_stack(const struct xti_node *n, const struct xti_node *x, const int64_t *at, int *arg,
                       int64_t *in)
{
    *arg = (int)at[n->attr[0]];
    drop_axis(n->rank, n->attr[0], at, in);
    return true;
}

/* clang-format off */
static const origin_fn origin[] = {
    [XT_OP_PERMUTE] = from_permute,     [XT_OP_RESHAPE] = from_reshape, [XT_OP_SQUEEZE] = from_squeeze,
    [XT_OP_UNSQUEEZE] = from_unsqueeze, [XT_OP_INDEX] = from_index,     [XT_OP_FLIP] = from_flip,
    [XT_OP_EXPAND] = from_expand,       [XT_OP_TILE] = from_tile,       [XT_OP_REPEAT] = from_repeat,
    [XT_OP_ROLL] = from_roll,           [XT_OP_DIAGONAL] = from_diagonal, [XT_OP_UNFOLD] = from_unfold,
    [XT_OP_PAD] = from_pad,             [XT_OP_TRIL] = from_tril,       [XT_OP_TRIU] = from_triu,
    [XT_OP_STACK] = from_stack,
};
/* clang-format on */

/* -------------------------------------------------------------------------------------------- an element */

/* The next index of a shape in row-major order; false after the last. */
static bool next_index(int rank, const int64_t *shape, int64_t *at)
{
    for (int j = rank - 1; j >= 0; j--) {
        if (++at[j] < shape[j])
            return true;
        at[j] = 0;
    }
    return false;
}

static int64_t address(int rank, const int64_t *at, const int64_t *strides, int64_t offset)
{
    for (int j = 0; j < rank; j++)
        offset += at[j] * strides[j];
    return offset;
}

/* Subtracts the lengths of the arguments before the one that holds index at. */
static void from_concat(const struct xt_graph *g, const struct xti_node *n, const int64_t *at, int *arg,
                        int64_t *in)
{
    int64_t axis = n->attr[0];
    memcpy(in, at, sizeof *in * (size_t)n->rank);
    for (*arg = 0; in[axis] >= g->node[n->arg[*arg]].shape[axis]; ++*arg)
        in[axis] -= g->node[n->arg[*arg]].shape[axis];
}

/* The fill value or the input that element `at` of the output comes from; at becomes an index there. */
static const struct xti_node *origin_of(const struct xt_graph *g, int64_t *at, bool *fill)
{
    const struct xti_node *n = &g->node[g->out];
    int64_t in[XT_MAX_RANK];
    for (*fill = false; n->op != XT_OP_INPUT;) {
        int arg = 0;
        if (n->op == XT_OP_CONCAT)
            from_concat(g, n, at, &arg, in);
        else if (!origin[n->op](n, &g->node[n->arg[0]], at, &arg, in)) {
            *fill = true;
            break;
        }
        n = &g->node[n->arg[arg]];
        memcpy(at, in, sizeof *at * (size_t)n->rank);
    }
    return n;
}

xt_status xti_graph_eval(const struct xt_graph *g, void *dst, const void *const *src, struct xti_err *err)
{
    int64_t at[XT_MAX_RANK] = {0}, in[XT_MAX_RANK], dense[XT_MAX_RANK], numel;
    if (g->out < 0)
        return xti_fail(err, XT_EINVAL, "the graph has no output");
    const struct xti_node *out = &g->node[g->out];
    int64_t bytes = (int64_t)xt_dtype_bytes(out->dtype);
    const int64_t *strides = g->out_dense ? dense : g->out_strides;
    xti_dense_strides(out->rank, out->shape, dense);
    if (xti_product(out->rank, out->shape, &numel) && numel == 0)
        return XT_OK;
    do {
        bool fill;
        memcpy(in, at, sizeof in);
        const struct xti_node *n = origin_of(g, in, &fill);
        if (!fill && (!src || !src[n->input]))
            return xti_fail(err, XT_EINVAL, "input %d is NULL", n->input);
        const void *from = n->value;
        if (!fill)
            from = (const char *)src[n->input] + bytes * address(n->rank, in, n->strides, n->offset);
        memcpy((char *)dst + bytes * address(out->rank, at, strides, g->out_dense ? 0 : g->out_offset), from,
               (size_t)bytes);
    } while (next_index(out->rank, out->shape, at));
    return XT_OK;
}
