/* replay.c: a chain again, node by node, on other inputs. Layer 1. */
#include "graph/replay.h"

#include <string.h>

#include "graph/build.h"

static xt_node replay_node(struct xt_graph *g, const struct xti_node *n, const xt_node *is)
{
    struct xti_build b;
    xt_node args[XTI_MAX_NODES];
    for (int i = 0; i < n->n_args; i++)
        args[i] = is[n->arg[i]];
    if (!xti_build_start(&b, g, n->op, xti_op_info(n->op)->name, args[0]))
        return -1;
    b.rank = n->rank;
    memcpy(b.shape, n->shape, (size_t)n->rank * sizeof *b.shape);
    b.n_attrs = n->n_attrs;
    memcpy(b.attr, n->attr, (size_t)n->n_attrs * sizeof *b.attr);
    b.value = n->value;
    return xti_build_join(&b, n->n_args, args);
}

xt_node xti_graph_replay(struct xt_graph *g, const struct xt_graph *from,
                         xt_node (*input)(void *arg, struct xt_graph *g, const struct xti_node *n), void *arg)
{
    xt_node *is = xti_alloc_array((size_t)from->n_nodes, sizeof *is), out;
    if (!is)
        return xti_graph_fail(g, XT_ENOMEM, "out of memory"), -1;
    for (int i = 0; i <= from->out; i++) {
        const struct xti_node *n = &from->node[i];
        is[i] = n->op == XT_OP_INPUT ? input(arg, g, n) : replay_node(g, n, is);
    }
    out = is[from->out];
    xti_free(is);
    return out;
}
