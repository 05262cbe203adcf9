/* steps.c: what a chain costs where it is not fused: each moving operation by itself, as the benchmark runs
 * it, and what NumPy and PyTorch copy, which keep as views what strides can say. Layer 6. */
#include "api/explain.h"

#include <string.h>

#include "base/num.h"

static double bytes_of(const struct xti_node *x)
{
    double n = (double)xt_dtype_bytes(x->dtype);
    for (int i = 0; i < x->rank; i++)
        n *= (double)x->shape[i];
    return n;
}

/* Read and written by a copy that makes x: a read for each write, but where it pads. */
static double moved(const struct xt_graph *g, const struct xti_node *x)
{
    return bytes_of(x) + bytes_of(x->op == XT_OP_PAD ? &g->node[x->arg[0]] : x);
}

/* ---- each operation by itself */

static bool is_metadata(enum xt_op op)
{
    return op == XT_OP_RESHAPE || op == XT_OP_SQUEEZE || op == XT_OP_UNSQUEEZE;
}

static bool are_dense(int rank, const int64_t *shape, const int64_t *strides)
{
    int64_t dense[XT_MAX_RANK];
    xti_dense_strides(rank, shape, dense);
    for (int i = 0; i < rank; i++)
        if (shape[i] > 1 && strides[i] != dense[i])
            return false;
    return true;
}

/* An input that is declared with strides may be as dense as one without. */
static bool is_dense(const struct xti_node *x)
{
    return x->op != XT_OP_INPUT || x->dense || are_dense(x->rank, x->shape, x->strides);
}

static double moved_alone(const struct xt_graph *g, const struct xti_node *x)
{
    bool moves = x->op != XT_OP_INPUT && !(is_metadata(x->op) && is_dense(&g->node[x->arg[0]]));
    return moves ? moved(g, x) : 0;
}

/* Is there a step that can write the destination itself? Else it is written by a copy of its own. */
static bool has_writer(const struct xt_graph *g)
{
    const struct xti_node *x = &g->node[g->out];
    if (is_metadata(x->op) && !g->out_dense)
        return false;
    while (is_metadata(x->op) && is_dense(&g->node[x->arg[0]]))
        x = &g->node[x->arg[0]];
    return x->op != XT_OP_INPUT;
}

/* ---- views: what NumPy and PyTorch make of the graph */

/* The strides of a node's array, or the nearest that fit where extents are huge, and whether it lies in an
 * array of its own rather than in an input. */
struct view {
    bool used, own;
    int64_t st[XT_MAX_RANK];
};

/* Axes [i, i1) of the old shape and [j, j1) of the new one hold as many elements: are the old ones one run of
 * equal steps? Then the new ones have strides. */
static bool split_run(const int64_t *n, const int64_t *st, int i1, int i, const int64_t *to_n, int j1, int j,
                      int64_t *to)
{
    for (int a = i; a + 1 < i1; a++)
        if (st[a] != xti_mul_most(n[a + 1], st[a + 1]))
            return false;
    for (int b = j1 - 1; b >= j; b--)
        to[b] = b == j1 - 1 ? st[i1 - 1] : xti_mul_most(to_n[b + 1], to[b + 1]);
    return true;
}

/* Whether strides can say the reshape, as NumPy and PyTorch look for them: run by run. */
static bool view_reshape(const struct xti_node *x, const struct xti_node *from, const int64_t *st,
                         int64_t *to)
{
    int64_t n[XT_MAX_RANK], s[XT_MAX_RANK];
    int rank = 0, i = 0, j = 0;
    bool empty = false; /* then any strides say it */
    for (int a = 0; a < from->rank; a++)
        if (from->shape[a] != 1) {
            n[rank] = from->shape[a];
            s[rank++] = st[a];
        }
    for (int b = 0; b < x->rank; b++) {
        to[b] = 0;
        empty = empty || x->shape[b] == 0;
    }
    while (!empty && i < rank && j < x->rank) {
        int i1 = i + 1, j1 = j + 1;
        int64_t old = n[i], new = x->shape[j];
        while (old != new) {
            if (new < old)
                new = xti_mul_most(new, x->shape[j1++]);
            else
                old = xti_mul_most(old, n[i1++]);
        }
        if (!split_run(n, s, i1, i, x->shape, j1, j, to))
            return false;
        i = i1, j = j1;
    }
    return true;
}

static void view_squeeze(const struct xti_node *x, const struct xti_node *from, const int64_t *st,
                         int64_t *to)
{
    for (int j = 0, removed = 0; j < from->rank; j++)
        if (removed < x->n_attrs && x->attr[removed] == j)
            removed++;
        else
            *to++ = st[j];
}

static void view_index(const struct xti_node *x, const int64_t *st, int64_t *to)
{
    for (int k = 0; k < x->n_attrs; k += 4) {
        const int64_t *item = &x->attr[k];
        if (item[0] == XT_NEWAXIS)
            *to++ = 0;
        else if (item[0] == XT_AT)
            st++;
        else
            *to++ = xti_mul_most(item[3], *st++);
    }
}

static void view_diagonal(const struct xti_node *x, const struct xti_node *from, const int64_t *st,
                          int64_t *to)
{
    for (int j = 0; j < from->rank; j++)
        if (j != x->attr[1] && j != x->attr[2])
            *to++ = st[j];
    *to = xti_add_most(st[x->attr[1]], st[x->attr[2]]);
}

static bool goes_backwards(const struct xti_node *x)
{
    for (int k = 0; x->op == XT_OP_INDEX && k < x->n_attrs; k += 4)
        if (x->attr[k] == XT_SLICE && x->attr[k + 3] < 0)
            return true;
    return x->op == XT_OP_FLIP;
}

/* Can strides say x, where its argument's are st? Then these are *to. */
static bool view_of(const struct xt_graph *g, const struct xti_node *x, const int64_t *st, int64_t *to)
{
    const struct xti_node *from = &g->node[x->arg[0]];
    if (x->op == XT_OP_PERMUTE)
        for (int j = 0; j < x->rank; j++)
            to[j] = st[x->attr[j]];
    else if (x->op == XT_OP_RESHAPE)
        return view_reshape(x, from, st, to);
    else if (x->op == XT_OP_SQUEEZE)
        view_squeeze(x, from, st, to);
    else if (x->op == XT_OP_UNSQUEEZE)
        for (int j = 0; j < x->rank; j++)
            to[j] = j == x->attr[0] ? 0 : *st++;
    else if (x->op == XT_OP_INDEX)
        view_index(x, st, to);
    else if (x->op == XT_OP_EXPAND)
        for (int j = x->rank - 1, i = from->rank - 1; j >= 0; j--, i--)
            to[j] = i < 0 || from->shape[i] == 1 ? 0 : st[i];
    else if (x->op == XT_OP_DIAGONAL)
        view_diagonal(x, from, st, to);
    else if (x->op == XT_OP_FLIP || x->op == XT_OP_UNFOLD) {
        for (int j = 0; j < from->rank; j++)
            to[j] = st[j];
        for (int k = 0; k < x->n_attrs && x->op == XT_OP_FLIP; k++)
            to[x->attr[k]] = xti_mul_most(-1, to[x->attr[k]]);
        if (x->op == XT_OP_UNFOLD) {
            to[x->rank - 1] = st[x->attr[0]];
            to[x->attr[0]] = xti_mul_most(st[x->attr[0]], x->attr[2]);
        }
    } else {
        return false;
    }
    return true;
}

/* The strides of a copy that keeps the order in memory of the axes, to[] before. */
static void keep_order(const struct xti_node *x, int64_t *to)
{
    int64_t step = 1;
    bool placed[XT_MAX_RANK] = {false};
    for (int n = 0; n < x->rank; n++) {
        int next = -1; /* the innermost that has no place yet */
        for (int j = x->rank - 1; j >= 0; j--)
            if (!placed[j] && (next < 0 || xti_abs64(to[j]) < xti_abs64(to[next])))
                next = j;
        placed[next] = true;
        to[next] = step;
        step = xti_mul_most(step, x->shape[next] > 1 ? x->shape[next] : 1);
    }
}

/* The strides of a library's copy, and whether it makes one. NumPy's roll and concatenate, PyTorch's flip
 * keep the order of their (first) argument's axes; PyTorch has no negative strides. */
static bool copies(const struct xt_graph *g, const struct xti_node *x, const int64_t *st, bool pytorch,
                   int64_t *to)
{
    bool view = view_of(g, x, st, to);
    if (view && !(pytorch && goes_backwards(x)))
        return false;
    bool rolled = !pytorch && (x->op == XT_OP_ROLL || x->op == XT_OP_CONCAT);
    if (rolled)
        memcpy(to, st, (size_t)x->rank * sizeof *st);
    if (view || rolled)
        keep_order(x, to);
    else
        xti_dense_strides(x->rank, x->shape, to);
    return true;
}

/* All of them, and the one that makes the result an array of its own, of the chain's layout. */
static struct xti_copies copies_of(const struct xt_graph *g, struct view *v, bool pytorch)
{
    struct xti_copies c = {0};
    const struct xti_node *out = &g->node[g->out];
    for (int i = 0; i <= g->out; i++) {
        const struct xti_node *x = &g->node[i];
        if (!v[i].used)
            continue;
        v[i].own = false;
        if (x->op == XT_OP_INPUT && x->dense) {
            xti_dense_strides(x->rank, x->shape, v[i].st);
        } else if (x->op == XT_OP_INPUT) {
            memcpy(v[i].st, x->strides, (size_t)x->rank * sizeof *x->strides);
        } else if (copies(g, x, v[x->arg[0]].st, pytorch, v[i].st)) {
            bool more =
                x->op == XT_OP_ROLL && g->node[x->arg[0]].op == XT_OP_ROLL; /* axes of the same roll */
            v[i].own = true;
            c.n += !more;
            c.bytes += more ? 0 : moved(g, x);
        } else {
            v[i].own = v[x->arg[0]].own;
        }
    }
    if (!v[g->out].own || !g->out_dense || !are_dense(out->rank, out->shape, v[g->out].st)) {
        c.n++;
        c.bytes += 2 * bytes_of(out);
    }
    return c;
}

static void find_used(const struct xt_graph *g, struct view *v)
{
    for (int i = 0; i < g->n_nodes; i++)
        v[i].used = i == g->out;
    for (int i = g->out; i >= 0; i--)
        for (int j = 0; v[i].used && j < g->node[i].n_args; j++)
            v[g->node[i].arg[j]].used = true;
}

bool xti_explain_steps(const struct xt_kernel *k, struct xti_cost_of_steps *out)
{
    struct xti_err err = {0};
    struct xt_graph *g;
    *out = (struct xti_cost_of_steps){0};
    if (xti_graph_unpack(k->packed, &g, &err))
        return false;
    struct view *v = xti_alloc((size_t)g->n_nodes * sizeof *v);
    if (v) {
        find_used(g, v);
        for (int i = 0; i <= g->out; i++) {
            out->operations += v[i].used && g->node[i].op != XT_OP_INPUT;
            out->bytes += v[i].used ? moved_alone(g, &g->node[i]) : 0;
        }
        out->bytes += has_writer(g) ? 0 : 2 * bytes_of(&g->node[g->out]);
        out->numpy = copies_of(g, v, false);
        out->pytorch = copies_of(g, v, true);
    }
    xti_free(v);
    xt_graph_free(g);
    return v;
}
