/* graph_eval.c: evaluates a graph node by node, by the definition of each operation, without any map.
 * In: a graph and host buffers. Out: the output's elements, written through the destination's layout. Every
 * node becomes a dense row-major temporary, freed after its last use. It shares no code with the fuser,
 * because it is what the fuser is tested against: each operation is one function from an output index to an
 * input index. Layer 2. */
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

/* --------------------------------------------------------------------------------------------- the nodes */

struct eval {
    const struct xt_graph *g;
    const int64_t *lo, *hi; /* [inputs] addresses that may be read, inclusive; NULL: all */
    struct temp {
        char *bytes;  /* dense and row-major; NULL before and after its use */
        int last_use; /* the last node that reads it; -1: not needed */
    } * temp;
    struct xti_err *err;
};

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

/* Row-major number of an index. */
static int64_t number_of(const struct xti_node *x, const int64_t *in)
{
    int64_t flat = 0;
    for (int j = 0; j < x->rank; j++)
        flat = flat * x->shape[j] + in[j];
    return flat;
}

static int64_t node_numel(const struct xti_node *n)
{
    int64_t numel = 0;
    return xti_product(n->rank, n->shape, &numel) ? numel : INT64_MAX;
}

/* Elements that may not be read stay zero: the output does not need them. */
static void eval_input(const struct eval *e, const struct xti_node *n, size_t esize, const char *src,
                       char *out)
{
    int64_t at[XT_MAX_RANK] = {0};
    do {
        int64_t from = address(n->rank, at, n->strides, n->offset);
        if (!e->lo || (from >= e->lo[n->input] && from <= e->hi[n->input]))
            memcpy(out, src + from * (int64_t)esize, esize);
        out += esize;
    } while (next_index(n->rank, n->shape, at));
}

/* Subtracts the lengths of the arguments before the one that holds index at. */
static void from_concat(const struct eval *e, const struct xti_node *n, const int64_t *at, int *arg,
                        int64_t *in)
{
    int64_t axis = n->attr[0];
    memcpy(in, at, sizeof *in * (size_t)n->rank);
    for (*arg = 0; in[axis] >= e->g->node[n->arg[*arg]].shape[axis]; ++*arg)
        in[axis] -= e->g->node[n->arg[*arg]].shape[axis];
}

static void eval_op(const struct eval *e, const struct xti_node *n, size_t esize, char *out)
{
    int64_t at[XT_MAX_RANK] = {0}, in[XT_MAX_RANK];
    do {
        int arg = 0;
        bool inside = true;
        if (n->op == XT_OP_CONCAT)
            from_concat(e, n, at, &arg, in);
        else
            inside = origin[n->op](n, &e->g->node[n->arg[0]], at, &arg, in);
        const void *from = n->value;
        if (inside)
            from = e->temp[n->arg[arg]].bytes + number_of(&e->g->node[n->arg[arg]], in) * (int64_t)esize;
        memcpy(out, from, esize);
        out += esize;
    } while (next_index(n->rank, n->shape, at));
}

static xt_status eval_node(struct eval *e, xt_node i, const void *const *src)
{
    const struct xti_node *n = &e->g->node[i];
    size_t esize = xt_dtype_bytes(n->dtype);
    int64_t numel = node_numel(n);
    char *out = e->temp[i].bytes = xti_alloc_array((size_t)numel, esize);
    if (!out)
        return xti_fail_at(e->err, XT_ENOMEM, i, -1, "no memory for %lld elements of node %d",
                           (long long)numel, i);
    if (numel == 0)
        return XT_OK;
    if (n->op != XT_OP_INPUT)
        eval_op(e, n, esize, out);
    else if (src && src[n->input])
        eval_input(e, n, esize, src[n->input], out);
    else if (!e->lo || e->hi[n->input] >= e->lo[n->input])
        return xti_fail_at(e->err, XT_EINVAL, i, -1, "input %d is NULL", n->input);
    return XT_OK;
}

/* Marks the nodes that the output needs, and with which node each is needed last. */
static void mark_uses(struct eval *e)
{
    for (xt_node i = 0; i < e->g->n_nodes; i++)
        e->temp[i].last_use = -1;
    e->temp[e->g->out].last_use = e->g->out;
    for (xt_node i = e->g->out; i >= 0; i--)
        for (int k = 0; e->temp[i].last_use >= 0 && k < e->g->node[i].n_args; k++)
            if (e->temp[e->g->node[i].arg[k]].last_use < 0)
                e->temp[e->g->node[i].arg[k]].last_use = i;
}

static void free_unneeded(struct eval *e, xt_node i)
{
    const struct xti_node *n = &e->g->node[i];
    for (int k = 0; k < n->n_args; k++) {
        struct temp *t = &e->temp[n->arg[k]];
        if (t->last_use == i) {
            xti_free(t->bytes);
            t->bytes = NULL;
        }
    }
}

static void write_output(const struct xt_graph *g, const char *bytes, char *dst)
{
    const struct xti_node *n = &g->node[g->out];
    size_t esize = xt_dtype_bytes(n->dtype);
    int64_t at[XT_MAX_RANK] = {0}, dense[XT_MAX_RANK];
    xti_dense_strides(n->rank, n->shape, dense);
    if (node_numel(n) == 0)
        return;
    do {
        const int64_t *st = g->out_dense ? dense : g->out_strides;
        int64_t to = address(n->rank, at, st, g->out_dense ? 0 : g->out_offset);
        memcpy(dst + to * (int64_t)esize, bytes, esize);
        bytes += esize;
    } while (next_index(n->rank, n->shape, at));
}

xt_status xti_graph_eval(const struct xt_graph *g, void *dst, const void *const *src, struct xti_err *err)
{
    return xti_graph_eval_within(g, dst, src, NULL, NULL, err);
}

xt_status xti_graph_eval_within(const struct xt_graph *g, void *dst, const void *const *src,
                                const int64_t *lo, const int64_t *hi, struct xti_err *err)
{
    struct eval e = {.g = g, .lo = lo, .hi = hi, .err = err};
    xt_status s = XT_OK;
    if (g->out < 0)
        return xti_fail(err, XT_EINVAL, "the graph has no output");
    if (!(e.temp = xti_alloc_array((size_t)g->n_nodes, sizeof *e.temp)))
        return xti_fail(err, XT_ENOMEM, "no memory for the temporaries of %d nodes", g->n_nodes);
    mark_uses(&e);
    for (xt_node i = 0; s == XT_OK && i <= g->out; i++) {
        if (e.temp[i].last_use < 0)
            continue;
        s = eval_node(&e, i, src);
        free_unneeded(&e, i);
    }
    if (s == XT_OK)
        write_output(g, e.temp[g->out].bytes, dst);
    for (xt_node i = 0; i < g->n_nodes; i++)
        xti_free(e.temp[i].bytes);
    xti_free(e.temp);
    return s;
}
