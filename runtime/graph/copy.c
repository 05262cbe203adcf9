/* copy.c: a graph as it is now, in one piece of memory: what a kernel keeps of the graph that it was compiled
 * from. In: a graph with an output and without a failure. Layer 1. */
#include "graph/graph.h"

#include <stddef.h>
#include <string.h>

/* Of the record of a failure a copy has the status alone, which is XT_OK: half a KB less for each kernel. */
enum { HEAD_BYTES = offsetof(struct xt_graph, err.e.message) };

static size_t room(size_t bytes) { return (bytes + 7) & ~(size_t)7; }

static size_t node_bytes(const struct xti_node *n)
{
    size_t numbers = (size_t)n->rank + (size_t)n->n_attrs, bytes = room((size_t)n->n_args * sizeof *n->arg);
    if (n->op == XT_OP_INPUT) {
        numbers += (size_t)n->rank;
        bytes += room(strlen(n->name) + 1);
    }
    return bytes + numbers * sizeof *n->shape;
}

size_t xti_graph_bytes(const struct xt_graph *g)
{
    size_t bytes = room(HEAD_BYTES) + (size_t)g->n_nodes * sizeof *g->node +
                   room((size_t)g->n_inputs * sizeof *g->input) +
                   (size_t)g->node[g->out].rank * sizeof *g->out_strides;
    for (int i = 0; i < g->n_nodes; i++)
        bytes += node_bytes(&g->node[i]);
    return bytes;
}

/* Copies an array to *at and moves that behind it. */
static void *put(char **at, const void *p, size_t bytes)
{
    void *to = *at;
    if (bytes)
        memcpy(to, p, bytes);
    *at += room(bytes);
    return to;
}

static int64_t *put_numbers(char **at, const int64_t *p, int n)
{
    int64_t *to = (int64_t *)(void *)*at;
    for (int i = 0; i < n; i++)
        to[i] = p[i];
    *at += (size_t)n * sizeof *p;
    return to;
}

static void put_arrays(char **at, struct xti_node *n)
{
    n->shape = put_numbers(at, n->shape, n->rank);
    n->attr = put_numbers(at, n->attr, n->n_attrs);
    n->arg = put(at, n->arg, (size_t)n->n_args * sizeof *n->arg);
    if (n->op != XT_OP_INPUT)
        return;
    n->strides = put_numbers(at, n->strides, n->rank);
    n->name = put(at, n->name, strlen(n->name) + 1);
}

struct xt_graph *xti_graph_copy(const struct xt_graph *g, void *to)
{
    char *at = to;
    struct xt_graph *c = put(&at, g, HEAD_BYTES);
    c->arena = (struct xti_arena){0};
    c->node = put(&at, g->node, (size_t)g->n_nodes * sizeof *g->node);
    c->input = put(&at, g->input, (size_t)g->n_inputs * sizeof *g->input);
    c->out_strides = put_numbers(&at, g->out_strides, g->node[g->out].rank);
    for (int i = 0; i < g->n_nodes; i++)
        put_arrays(&at, &c->node[i]);
    return c;
}
