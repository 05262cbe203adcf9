/* pack.c: a graph in some hundred bytes, to look it up by and to keep it. In: a graph with an output and
 * without a failure. Out: bytes in which every list stands behind its length, so that two different graphs
 * never give the same ones; from them the graph, or the layout of one of its ends, is read back. Inputs are
 * numbered in the order of their nodes. Layer 1. */
#include "graph/graph.h"

#include <string.h>

struct graph_head {
    uint16_t n_nodes, n_inputs, out;
    uint8_t out_rank, out_layout;
};

struct node_head {
    uint8_t op, dtype, rank, layout;
    uint16_t n_args, n_attrs;
};

/* Of a layout: no strides stand behind the shape; the pointer is that of index (0,..,0). */
enum { DENSE = 1, ORIGIN = 2 };

/* Heads are written as they are: no byte of them is padding. */
_Static_assert(sizeof(struct graph_head) == 8 && sizeof(struct node_head) == 8, "no padding");

_Static_assert(XTI_MAX_NODES < UINT16_MAX, "numbers of nodes take two bytes");

enum { VALUE_BYTES = sizeof((struct xti_node *)0)->value };

/* ---- numbers: a width, and each in as many bytes; of none nothing */

enum { NARROW = 1, MIDDLE = 4, WIDE = 8 };

static unsigned char *put_bytes(unsigned char *w, const void *p, size_t bytes)
{
    memcpy(w, p, bytes);
    return w + bytes;
}

static unsigned char *put_large(unsigned char *w, int n, const int64_t *v)
{
    bool fits = true;
    for (int i = 0; i < n; i++)
        fits = fits && v[i] == (int32_t)v[i];
    *w++ = fits ? MIDDLE : WIDE;
    if (!fits)
        return put_bytes(w, v, (size_t)n * WIDE);
    for (int i = 0; i < n; i++) {
        int32_t x = (int32_t)v[i];
        w = put_bytes(w, &x, MIDDLE);
    }
    return w;
}

/* Most are small: they are written so at once, and anew if one of them is not. */
static unsigned char *put_numbers(unsigned char *w, int n, const int64_t *v)
{
    uint64_t above = 0;
    if (n == 0)
        return w;
    for (int i = 0; i < n; i++) {
        int64_t x = v[i];
        w[1 + i] = (unsigned char)x;
        above |= (uint64_t)x - (uint64_t)INT8_MIN;
    }
    if (above > UINT8_MAX)
        return put_large(w, n, v);
    *w = NARROW;
    return w + 1 + n;
}

static const unsigned char *get_numbers(const unsigned char *r, int n, int64_t *v)
{
    unsigned char width = n ? *r++ : 0;
    for (int i = 0; i < n; i++, r += width) {
        int32_t x;
        if (width == WIDE) {
            memcpy(&v[i], r, WIDE);
        } else if (width == NARROW) {
            v[i] = (int8_t)*r;
        } else {
            memcpy(&x, r, MIDDLE);
            v[i] = x;
        }
    }
    return r;
}

static const unsigned char *skip_numbers(const unsigned char *r, int n)
{
    return n ? r + 1 + (size_t)n * *r : r;
}

static size_t numbers_bound(int n) { return 1 + (size_t)n * WIDE; }

/* ---- writing */

static bool has_value(int op) { return op == XT_OP_PAD || op == XT_OP_TRIL || op == XT_OP_TRIU; }

static uint8_t layout_bits(bool dense, bool origin)
{
    return (uint8_t)((dense ? DENSE : 0) | (origin ? ORIGIN : 0));
}

static unsigned char *put_node(unsigned char *w, const struct xti_node *n)
{
    uint8_t layout = layout_bits(n->dense, n->origin);
    struct node_head head = {(uint8_t)n->op, (uint8_t)n->dtype,   (uint8_t)n->rank,
                             layout,         (uint16_t)n->n_args, (uint16_t)n->n_attrs};
    w = put_bytes(w, &head, sizeof head);
    w = put_numbers(w, n->rank, n->shape);
    w = put_numbers(w, n->n_attrs, n->attr);
    for (int i = 0; i < n->n_args; i++) {
        uint16_t arg = (uint16_t)n->arg[i];
        w = put_bytes(w, &arg, sizeof arg);
    }
    if (has_value(n->op))
        w = put_bytes(w, n->value, VALUE_BYTES);
    if (n->op != XT_OP_INPUT)
        return w;
    w = put_numbers(w, n->dense ? 0 : n->rank, n->strides);
    w = put_numbers(w, 1, &n->offset);
    return put_bytes(w, n->name, strlen(n->name) + 1);
}

static size_t node_bound(const struct xti_node *n)
{
    size_t bytes = sizeof(struct node_head) + numbers_bound(n->rank) + numbers_bound(n->n_attrs) +
                   (size_t)n->n_args * sizeof(uint16_t) + VALUE_BYTES;
    if (n->op == XT_OP_INPUT)
        bytes += numbers_bound(n->rank) + numbers_bound(1) + strlen(n->name) + 1;
    return bytes;
}

size_t xti_graph_pack_bound(const struct xt_graph *g)
{
    size_t bytes = sizeof(struct graph_head) + numbers_bound(g->node[g->out].rank) + numbers_bound(1);
    for (int i = 0; i < g->n_nodes; i++)
        bytes += node_bound(&g->node[i]);
    return bytes;
}

size_t xti_graph_pack(const struct xt_graph *g, unsigned char *to)
{
    int rank = g->node[g->out].rank;
    struct graph_head head = {(uint16_t)g->n_nodes, (uint16_t)g->n_inputs, (uint16_t)g->out, (uint8_t)rank,
                              layout_bits(g->out_dense, g->out_origin)};
    unsigned char *w = put_bytes(to, &head, sizeof head);
    w = put_numbers(w, g->out_dense ? 0 : rank, g->out_strides);
    w = put_numbers(w, 1, &g->out_offset);
    for (int i = 0; i < g->n_nodes; i++)
        w = put_node(w, &g->node[i]);
    return (size_t)(w - to);
}

/* ---- reading */

struct packed_graph {
    struct graph_head head;
    const unsigned char *strides, *node;
    int64_t offset;
};

struct packed_node {
    struct node_head head;
    const unsigned char *shape, *attr, *arg, *value, *strides;
    int64_t offset;
    const char *name;
};

static void get_graph(const unsigned char *packed, struct packed_graph *g)
{
    memcpy(&g->head, packed, sizeof g->head);
    g->strides = packed + sizeof g->head;
    g->node = get_numbers(skip_numbers(g->strides, g->head.out_layout & DENSE ? 0 : g->head.out_rank), 1,
                          &g->offset);
}

static const unsigned char *get_node(const unsigned char *r, struct packed_node *n)
{
    memcpy(&n->head, r, sizeof n->head);
    n->shape = r + sizeof n->head;
    n->attr = skip_numbers(n->shape, n->head.rank);
    n->arg = skip_numbers(n->attr, n->head.n_attrs);
    n->value = n->arg + n->head.n_args * sizeof(uint16_t);
    r = n->value + (has_value(n->head.op) ? VALUE_BYTES : 0);
    if (n->head.op != XT_OP_INPUT)
        return r;
    n->strides = r;
    n->name =
        (const char *)get_numbers(skip_numbers(r, n->head.layout & DENSE ? 0 : n->head.rank), 1, &n->offset);
    return (const unsigned char *)n->name + strlen(n->name) + 1;
}

static void get_strides(const unsigned char *r, bool dense, int rank, const int64_t *shape, int64_t *strides)
{
    if (dense)
        xti_dense_strides(rank, shape, strides);
    else
        get_numbers(r, rank, strides);
}

static void get_layout(const struct packed_node *n, const unsigned char *strides, uint8_t layout,
                       int64_t offset, struct xti_layout *out)
{
    out->dtype = n->head.dtype;
    out->rank = n->head.rank;
    out->offset = offset;
    get_numbers(n->shape, out->rank, out->shape);
    out->origin = layout & ORIGIN;
    get_strides(strides, layout & DENSE, out->rank, out->shape, out->strides);
}

void xti_packed_output(const unsigned char *packed, struct xti_layout *out)
{
    struct packed_graph g;
    struct packed_node n;
    get_graph(packed, &g);
    for (int i = 0; i <= g.head.out; i++)
        g.node = get_node(g.node, &n);
    get_layout(&n, g.strides, g.head.out_layout, g.offset, out);
}

static void find_input(const unsigned char *packed, int input, struct packed_node *n)
{
    struct packed_graph g;
    get_graph(packed, &g);
    for (int left = input; left >= 0; left -= n->head.op == XT_OP_INPUT)
        g.node = get_node(g.node, n);
}

void xti_packed_input(const unsigned char *packed, int input, struct xti_layout *out)
{
    struct packed_node n;
    find_input(packed, input, &n);
    get_layout(&n, n.strides, n.head.layout, n.offset, out);
}

const char *xti_packed_name(const unsigned char *packed, int input)
{
    struct packed_node n;
    find_input(packed, input, &n);
    return n.name;
}

/* ---- the graph again */

/* n numbers in memory of the graph's; false: there is none. */
static bool take_numbers(struct xt_graph *g, const unsigned char *r, int n, int64_t **out)
{
    *out = xti_arena_alloc(&g->arena, (size_t)n * sizeof **out);
    if (*out)
        get_numbers(r, n, *out);
    return *out;
}

static bool take_args(struct xt_graph *g, const struct packed_node *p, struct xti_node *n)
{
    n->n_args = p->head.n_args;
    n->arg = xti_arena_alloc(&g->arena, (size_t)n->n_args * sizeof *n->arg);
    for (int i = 0; n->arg && i < n->n_args; i++) {
        uint16_t arg;
        memcpy(&arg, p->arg + (size_t)i * sizeof arg, sizeof arg);
        n->arg[i] = arg;
    }
    return n->arg;
}

static bool take_input(struct xt_graph *g, const struct packed_node *p, struct xti_node *n)
{
    n->strides = xti_arena_alloc(&g->arena, (size_t)n->rank * sizeof *n->strides);
    n->name = xti_arena_dup(&g->arena, p->name, strlen(p->name) + 1);
    if (!n->strides || !n->name)
        return false;
    n->dense = p->head.layout & DENSE;
    n->origin = p->head.layout & ORIGIN;
    get_strides(p->strides, n->dense, n->rank, n->shape, n->strides);
    n->offset = p->offset;
    n->input = g->n_inputs;
    g->input[g->n_inputs++] = g->n_nodes;
    return true;
}

static bool take_node(struct xt_graph *g, const struct packed_node *p)
{
    struct xti_node *n = &g->node[g->n_nodes];
    n->op = p->head.op;
    n->dtype = p->head.dtype;
    n->rank = p->head.rank;
    n->n_attrs = p->head.n_attrs;
    n->input = -1;
    if (!take_numbers(g, p->shape, n->rank, &n->shape) || !take_numbers(g, p->attr, n->n_attrs, &n->attr) ||
        !take_args(g, p, n) || (n->op == XT_OP_INPUT && !take_input(g, p, n)))
        return false;
    if (has_value(n->op))
        memcpy(n->value, p->value, VALUE_BYTES);
    g->n_nodes++;
    return true;
}

static bool take_output(struct xt_graph *g, const struct packed_graph *p)
{
    const struct xti_node *n = &g->node[p->head.out];
    g->out_strides = xti_arena_alloc(&g->arena, (size_t)n->rank * sizeof *g->out_strides);
    if (!g->out_strides)
        return false;
    g->out = p->head.out;
    g->out_dense = p->head.out_layout & DENSE;
    g->out_origin = p->head.out_layout & ORIGIN;
    get_strides(p->strides, g->out_dense, n->rank, n->shape, g->out_strides);
    g->out_offset = p->offset;
    return true;
}

xt_status xti_graph_unpack(const unsigned char *packed, struct xt_graph **out, struct xti_err *err)
{
    struct packed_graph p;
    struct packed_node n;
    get_graph(packed, &p);
    struct xt_graph *g = xti_alloc(sizeof *g);
    bool ok = g && (g->node = xti_alloc_array(p.head.n_nodes, sizeof *g->node)) &&
              (g->input = xti_alloc_array(p.head.n_inputs, sizeof *g->input));
    while (ok && g->n_nodes < p.head.n_nodes) {
        p.node = get_node(p.node, &n);
        ok = take_node(g, &n);
    }
    if (ok && take_output(g, &p)) {
        g->cap = g->n_nodes;
        *out = g;
        return XT_OK;
    }
    xt_graph_free(g);
    *out = NULL;
    return xti_fail(err, XT_ENOMEM, "graph");
}
