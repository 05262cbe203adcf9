/* join.c: operations with several operands: concat and stack. Layer 1. */
#include "graph/build.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

enum { OPERAND_TEXT = XTI_SHAPE_TEXT + 140 };

/* "y", the name of an input, or "operand 1" */
static void operand_name(const struct xti_node *y, int i, char out[OPERAND_TEXT])
{
    if (y->op == XT_OP_INPUT)
        snprintf(out, OPERAND_TEXT, "%s", y->name);
    else
        snprintf(out, OPERAND_TEXT, "operand %d", i);
}

/* "y [2,4]" */
static void operand_text(const struct xti_node *y, int i, char out[OPERAND_TEXT])
{
    char s[XTI_SHAPE_TEXT];
    operand_name(y, i, out);
    xti_shape_text(s, sizeof s, y->rank, y->shape);
    snprintf(out + strlen(out), OPERAND_TEXT - strlen(out), " %s", s);
}

/* Starts with the first operand, checks that all are nodes of one dtype and rank. */
static bool start_join(struct xti_build *b, struct xt_graph *g, enum xt_op op, int n, const xt_node *xs)
{
    const char *name = xti_op_info(op)->name;
    if (!g || g->err.e.status)
        return xti_build_start(b, g, op, name, -1); /* fails, and says why */
    *b = (struct xti_build){.g = g, .op = op, .name = name};
    if (n < 1 || !xs || n > XTI_MAX_NODES) {
        xti_build_fail(b, n > XTI_MAX_NODES ? XT_EUNSUPPORTED : XT_EINVAL, -1, "%d operands%s", n,
                       n >= 1 && !xs ? ", and the list is NULL" : "");
        return false;
    }
    for (int i = n - 1; i >= 0; i--)
        if (!xti_build_start(b, g, op, name, xs[i]))
            return false;
    for (int i = 1; i < n; i++) {
        const struct xti_node *y = &g->node[xs[i]];
        if (y->dtype != b->x->dtype) {
            char s[OPERAND_TEXT], t[OPERAND_TEXT];
            operand_name(y, i, s);
            operand_name(b->x, 0, t);
            xti_build_fail(b, XT_EDTYPE, -1, "%s is %s and %s is %s: xt does not convert", s,
                           xt_dtype_name(y->dtype), t, xt_dtype_name(b->x->dtype));
            return false;
        }
    }
    return true;
}

/* The operands agree in rank and in every extent but that of axis `but`. */
static bool check_shapes(struct xti_build *b, int but, int n, const xt_node *xs)
{
    for (int i = 1; i < n; i++) {
        const struct xti_node *y = &b->g->node[xs[i]];
        char s[OPERAND_TEXT], t[OPERAND_TEXT];
        operand_text(y, i, s);
        operand_text(b->x, 0, t);
        if (y->rank != b->x->rank) {
            xti_build_fail(b, XT_ERANK, -1, "%s and %s differ in rank", s, t);
            return false;
        }
        for (int a = 0; a < y->rank; a++) {
            if (a != but && y->shape[a] != b->x->shape[a]) {
                xti_build_fail(b, XT_ESHAPE, a,
                               but < 0 ? "%s and %s differ on axis %d"
                                       : "%s and %s differ on axis %d: only axis %d may",
                               s, t, a, but);
                return false;
            }
        }
    }
    return true;
}

xt_node xt_concat(struct xt_graph *g, int axis, int n, const xt_node *xs)
{
    struct xti_build b;
    if (!start_join(&b, g, XT_OP_CONCAT, n, xs) || !xti_build_axis(&b, &axis, b.x->rank) ||
        !check_shapes(&b, axis, n, xs))
        return -1;
    xti_build_same_shape(&b);
    for (int i = 1; i < n; i++) {
        const struct xti_node *y = &g->node[xs[i]];
        char s[XTI_SHAPE_TEXT];
        xti_shape_text(s, sizeof s, y->rank, y->shape);
        if (!xti_add64(b.shape[axis], y->shape[axis], &b.shape[axis]))
            return xti_build_fail(&b, XT_EOVERFLOW, axis,
                                  "with operand %d %s axis %d needs more than 63 bits", i, s, axis);
    }
    b.attr[b.n_attrs++] = axis;
    return xti_build_join(&b, n, xs);
}

xt_node xt_stack(struct xt_graph *g, int axis, int n, const xt_node *xs)
{
    struct xti_build b;
    if (!start_join(&b, g, XT_OP_STACK, n, xs) || !xti_build_axis(&b, &axis, b.x->rank + 1) ||
        !xti_build_rank(&b, b.x->rank + 1) || !check_shapes(&b, -1, n, xs))
        return -1;
    b.rank = b.x->rank + 1;
    for (int i = 0; i < b.rank; i++)
        b.shape[i] = i == axis ? n : b.x->shape[i - (i > axis)];
    b.attr[b.n_attrs++] = axis;
    return xti_build_join(&b, n, xs);
}
