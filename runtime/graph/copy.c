/* copy.c: a graph as it is now, in one block of memory: what a kernel keeps of the graph that it was compiled
 * from. In: a graph with an output and without a failure. Layer 1. */
#include "graph/graph.h"

#include <string.h>

/* Where the next array goes; NULL while the bytes are counted. */
struct block {
    char *at;
    size_t bytes;
};

static void *put(struct block *b, const void *p, size_t bytes)
{
    void *to = b->at;
    size_t whole = (bytes + 15) & ~(size_t)15;
    b->bytes += whole;
    if (!to)
        return NULL;
    if (bytes)
        memcpy(to, p, bytes);
    b->at += whole;
    return to;
}

static void put_node(struct block *b, struct xti_node *n)
{
    size_t rank_bytes = (size_t)n->rank * sizeof *n->shape;
    n->shape = put(b, n->shape, rank_bytes);
    n->arg = put(b, n->arg, (size_t)n->n_args * sizeof *n->arg);
    n->attr = put(b, n->attr, (size_t)n->n_attrs * sizeof *n->attr);
    if (n->op != XT_OP_INPUT)
        return;
    n->strides = put(b, n->strides, rank_bytes);
    n->name = put(b, n->name, strlen(n->name) + 1);
}

static struct xt_graph *put_graph(struct block *b, const struct xt_graph *g)
{
    struct xt_graph *out = put(b, g, sizeof *g);
    struct xti_node *node = put(b, g->node, (size_t)g->n_nodes * sizeof *node);
    xt_node *input = put(b, g->input, (size_t)g->n_inputs * sizeof *input);
    for (int i = 0; i < g->n_nodes; i++) {
        struct xti_node n = g->node[i];
        put_node(b, node ? &node[i] : &n);
    }
    int64_t *strides = put(b, g->out_strides, (size_t)g->node[g->out].rank * sizeof *strides);
    if (out) {
        out->arena = (struct xti_arena){0};
        out->node = node;
        out->input = input;
        out->out_strides = strides;
    }
    return out;
}

struct xt_graph *xti_graph_copy(const struct xt_graph *g)
{
    struct block b = {0};
    put_graph(&b, g);
    b.at = xti_alloc(b.bytes);
    return b.at ? put_graph(&b, g) : NULL;
}
