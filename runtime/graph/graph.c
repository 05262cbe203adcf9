/* graph.c: the graph object: its nodes, its inputs, its output, its first error. Layer 1. */
#include "graph/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/give.h"
#include "base/num.h"
#include "base/str.h"
#include "graph/dtype.h"

xt_status xt_graph_new(struct xt_graph **out)
{
    struct xti_err err = {0};
    if (!out)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_graph_new: out is NULL"), &err);
    *out = xti_alloc(sizeof **out);
    if (!*out)
        return xti_publish(xti_fail(&err, XT_ENOMEM, "graph"), &err);
    (*out)->out = -1;
    return xti_publish(XT_OK, NULL);
}

void xt_graph_free(struct xt_graph *g)
{
    if (!g)
        return;
    xti_arena_free(&g->arena);
    xti_free(g->node);
    xti_free(g->input);
    xti_free(g);
}

static xt_status fail_null(const char *name, const char *what)
{
    struct xti_err err = {0};
    return xti_publish(xti_fail(&err, XT_EINVAL, "%s: %s is NULL", name, what), &err);
}

xt_status xt_graph_status(const struct xt_graph *g)
{
    return g ? xti_publish(g->err.e.status, &g->err) : fail_null("xt_graph_status", "graph");
}

/* ---- errors */

xt_status xti_graph_fail(struct xt_graph *g, xt_status s, const char *fmt, ...)
{
    char text[sizeof g->err.e.message];
    va_list ap;
    va_start(ap, fmt);
    xti_vsay(text, sizeof text, fmt, ap);
    va_end(ap);
    if (g->err.e.status)
        return g->err.e.status;
    if (g->column)
        xti_fail(&g->err, s, "column %d: %s", g->column, text);
    else
        xti_fail(&g->err, s, "%s", text);
    g->err.e.column = g->column;
    return s;
}

xt_node xti_build_fail(struct xti_build *b, xt_status s, int axis, const char *fmt, ...)
{
    struct xt_graph *g = b->g;
    char text[sizeof g->err.e.message];
    va_list ap;
    va_start(ap, fmt);
    xti_vsay(text, sizeof text, fmt, ap);
    va_end(ap);
    int op = g->n_nodes;
    if (g->column) /* says where: no second number */
        xti_fail_at(&g->err, s, op, axis, "column %d: %s: %s", g->column, b->name, text);
    else
        xti_fail_at(&g->err, s, op, axis, "%s: op %d: %s", b->name, op, text);
    g->err.e.column = g->column;
    xti_publish(g->err.e.status, &g->err);
    return -1;
}

/* ---- one builder */

bool xti_build_start(struct xti_build *b, struct xt_graph *g, enum xt_op op, const char *name, xt_node x)
{
    *b = (struct xti_build){.g = g, .op = op, .name = name, .arg = x};
    if (!g) {
        fail_null(name, "graph");
        return false;
    }
    if (g->err.e.status) {
        xti_publish(g->err.e.status, &g->err);
        return false;
    }
    if (op == XT_OP_INPUT)
        return true;
    if (x < 0 || x >= g->n_nodes) {
        xti_build_fail(b, XT_EINVAL, -1, "node %d is not one of this graph's %d", x, g->n_nodes);
        return false;
    }
    b->x = &g->node[x];
    return true;
}

bool xti_build_list(struct xti_build *b, int n, const void *v, const char *what)
{
    if (n < 0)
        xti_build_fail(b, XT_EINVAL, -1, "the number of %s is %d", what, n);
    else if (n && !v)
        xti_build_fail(b, XT_EINVAL, -1, "%s is NULL", what);
    return n == 0 || (n > 0 && v);
}

bool xti_build_rank(struct xti_build *b, int rank)
{
    if (rank >= 0 && rank <= XT_MAX_RANK)
        return true;
    xti_build_fail(b, XT_ERANK, -1, "rank %d is not in [0,%d]", rank, XT_MAX_RANK);
    return false;
}

bool xti_build_axis(struct xti_build *b, int *axis, int rank)
{
    if (*axis >= -rank && *axis < rank) {
        *axis += *axis < 0 ? rank : 0;
        return true;
    }
    char x[XTI_SHAPE_TEXT];
    xti_shape_text(x, sizeof x, b->x->rank, b->x->shape);
    if (rank)
        xti_build_fail(b, XT_ERANGE, *axis, "there is no axis %d: those of %s are %d to %d", *axis, x, -rank,
                       rank - 1);
    else
        xti_build_fail(b, XT_ERANGE, *axis, "there is no axis %d: %s has none", *axis, x);
    return false;
}

bool xti_build_axes(struct xti_build *b, int n, const int *axes)
{
    uint32_t seen = 0;
    if (!xti_build_list(b, n, axes, "axes"))
        return false;
    if (n > b->x->rank) {
        char x[XTI_SHAPE_TEXT];
        xti_shape_text(x, sizeof x, b->x->rank, b->x->shape);
        xti_build_fail(b, XT_ERANK, -1, "%d %s given, %s has %d", n, xti_axes_word(n), x, b->x->rank);
        return false;
    }
    for (int i = 0; i < n; i++) {
        int a = axes[i];
        if (!xti_build_axis(b, &a, b->x->rank))
            return false;
        if (seen & UINT32_C(1) << a) {
            xti_build_fail(b, XT_EINVAL, a, "axis %d is given twice", axes[i]);
            return false;
        }
        seen |= UINT32_C(1) << a;
        b->attr[i] = a;
    }
    b->n_attrs = n;
    return true;
}

void xti_build_same_shape(struct xti_build *b)
{
    b->rank = b->x->rank;
    if (b->rank)
        memcpy(b->shape, b->x->shape, (size_t)b->rank * sizeof *b->shape);
}

static bool reserve_node(struct xti_build *b)
{
    struct xt_graph *g = b->g;
    if (g->n_nodes >= XTI_MAX_NODES) {
        xti_build_fail(b, XT_EUNSUPPORTED, -1, "a graph has at most %d nodes", XTI_MAX_NODES);
        return false;
    }
    struct xti_node *node = xti_grown(g->node, sizeof *node, g->n_nodes, &g->cap);
    if (!node) {
        xti_build_fail(b, XT_ENOMEM, -1, "out of memory");
        return false;
    }
    g->node = node;
    b->x = node + b->arg;
    return true;
}

static bool check_size(struct xti_build *b)
{
    int64_t numel;
    if (!xti_build_rank(b, b->rank))
        return false;
    if (xti_product(b->rank, b->shape, &numel))
        return true;
    char s[XTI_SHAPE_TEXT];
    xti_shape_text(s, sizeof s, b->rank, b->shape);
    xti_build_fail(b, XT_EOVERFLOW, -1, "%s has 2^63 elements or more", s);
    return false;
}

xt_node xti_build_join(struct xti_build *b, int n_args, const xt_node *args)
{
    struct xt_graph *g = b->g;
    if (!check_size(b) || !reserve_node(b))
        return -1;
    struct xti_node *n = &g->node[g->n_nodes];
    *n =
        (struct xti_node){.op = b->op, .rank = b->rank, .n_args = n_args, .n_attrs = b->n_attrs, .input = -1};
    n->shape = xti_arena_dup(&g->arena, b->shape, (size_t)b->rank * sizeof *b->shape);
    n->arg = xti_arena_dup(&g->arena, args, (size_t)n_args * sizeof *args);
    n->attr = xti_arena_dup(&g->arena, b->attr, (size_t)b->n_attrs * sizeof *b->attr);
    if (!n->shape || !n->arg || !n->attr)
        return xti_build_fail(b, XT_ENOMEM, -1, "out of memory");
    if (n_args)
        n->dtype = g->node[args[0]].dtype;
    if (b->value)
        memcpy(n->value, b->value, xt_dtype_bytes(n->dtype));
    xti_publish(XT_OK, NULL);
    return g->n_nodes++;
}

xt_node xti_build_add(struct xti_build *b) { return xti_build_join(b, 1, &b->arg); }

/* ---- looking */

int xt_node_count(const struct xt_graph *g) { return g ? g->n_nodes : 0; }

int xt_input_count(const struct xt_graph *g) { return g ? g->n_inputs : 0; }

xt_node xt_input_node(const struct xt_graph *g, int input)
{
    struct xti_err err = {0};
    if (g && input >= 0 && input < g->n_inputs) {
        xti_publish(XT_OK, NULL);
        return g->input[input];
    }
    xti_publish(xti_fail(&err, XT_EINVAL, "xt_input_node: no input %d", input), &err);
    return -1;
}

xt_status xt_node_get(const struct xt_graph *g, xt_node x, struct xt_node_info *out)
{
    struct xti_err err = {0};
    if (xti_give_check(out, XTI_UP_TO(struct xt_node_info, origin), "xt_node_get", "xt_node_info", &err))
        return xti_publish(XT_EINVAL, &err);
    out->input = -1;
    if (!g || x < 0 || x >= g->n_nodes)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_node_get: no node %d", x), &err);
    const struct xti_node *n = &g->node[x];
    bool fills = n->op == XT_OP_PAD || n->op == XT_OP_TRIL || n->op == XT_OP_TRIU;
    struct xt_node_info info = {.op = n->op,
                                .op_name = xti_op_info(n->op)->name,
                                .dtype = n->dtype,
                                .rank = n->rank,
                                .shape = n->shape,
                                .n_args = n->n_args,
                                .args = n->arg,
                                .n_attrs = n->n_attrs,
                                .attrs = n->attr,
                                .value = fills ? n->value : NULL,
                                .name = n->name,
                                .strides = n->strides,
                                .offset = n->offset,
                                .dense = n->dense,
                                .input = n->input,
                                .origin = n->origin};
    xti_give(out, &info, sizeof info);
    return xti_publish(XT_OK, NULL);
}

xt_status xt_output_get(const struct xt_graph *g, struct xt_output_info *out)
{
    struct xti_err err = {0};
    if (xti_give_check(out, XTI_UP_TO(struct xt_output_info, origin), "xt_output_get", "xt_output_info",
                       &err))
        return xti_publish(XT_EINVAL, &err);
    out->node = -1;
    if (!g || g->out < 0)
        return xti_publish(
            xti_fail(&err, XT_EINVAL, "xt_output_get: %s", g ? "no output yet" : "graph is NULL"), &err);
    struct xt_output_info info = {.node = g->out,
                                  .dense = g->out_dense,
                                  .strides = g->out_strides,
                                  .offset = g->out_offset,
                                  .origin = g->out_origin};
    xti_give(out, &info, sizeof info);
    return xti_publish(XT_OK, NULL);
}
