/* graph_same.c: a node of one graph is matched with one node of the other and no other, from the output to
 * the inputs, in one descending pass. */
#include "support/graph_same.h"

#include <stdlib.h>
#include <string.h>

struct matching {
    const struct xt_graph *a, *b;
    xt_node *of_a, *of_b; /* the partner + 1; 0: none yet */
};

static bool match(struct matching *m, xt_node x, xt_node y)
{
    if (!m->of_a[x] && !m->of_b[y]) {
        m->of_a[x] = y + 1;
        m->of_b[y] = x + 1;
    }
    return m->of_a[x] == y + 1 && m->of_b[y] == x + 1;
}

static bool same_numbers(int n, const int64_t *a, const int64_t *b)
{
    return n == 0 || !memcmp(a, b, (size_t)n * sizeof *a);
}

static bool same_node(const struct xti_node *a, const struct xti_node *b)
{
    if (a->op != b->op || a->dtype != b->dtype || a->rank != b->rank || a->n_args != b->n_args ||
        a->n_attrs != b->n_attrs || a->input != b->input || memcmp(a->value, b->value, sizeof a->value))
        return false;
    if (!same_numbers(a->rank, a->shape, b->shape) || !same_numbers(a->n_attrs, a->attr, b->attr))
        return false;
    return a->op != XT_OP_INPUT ||
           (!strcmp(a->name, b->name) && a->dense == b->dense && a->offset == b->offset &&
            a->origin == b->origin && same_numbers(a->rank, a->strides, b->strides));
}

static bool same_output(const struct xt_graph *a, const struct xt_graph *b)
{
    return a->out_dense == b->out_dense && a->out_offset == b->out_offset && a->out_origin == b->out_origin &&
           same_numbers(a->node[a->out].rank, a->out_strides, b->out_strides);
}

static bool match_all(struct matching *m)
{
    for (int i = 0; i < m->a->n_inputs; i++)
        if (!match(m, m->a->input[i], m->b->input[i]))
            return false;
    if (!match(m, m->a->out, m->b->out))
        return false;
    for (xt_node x = m->a->n_nodes - 1; x >= 0; x--) { /* users come before what they use */
        if (!m->of_a[x])
            continue;
        const struct xti_node *p = &m->a->node[x], *q = &m->b->node[m->of_a[x] - 1];
        if (!same_node(p, q))
            return false;
        for (int i = 0; i < p->n_args; i++)
            if (!match(m, p->arg[i], q->arg[i]))
                return false;
    }
    return same_output(m->a, m->b);
}

bool same_graph(const struct xt_graph *a, const struct xt_graph *b)
{
    if (a->out < 0 || b->out < 0 || a->n_inputs != b->n_inputs)
        return false;
    struct matching m = {a, b, calloc((size_t)a->n_nodes, sizeof *m.of_a),
                         calloc((size_t)b->n_nodes, sizeof *m.of_b)};
    bool same = match_all(&m);
    free(m.of_a);
    free(m.of_b);
    return same;
}
