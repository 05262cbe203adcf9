/* print.c: a graph as a problem line. Inputs are declared in order; a node that is used more than once, or
 * nested too deep, gets a name of its own (`t5 = ..;`), so the text has the graph's sharing and its length is
 * linear. Layer 1. */
#include "graph/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/value.h"

/* Joins inside joins before a let: well below what the parser accepts. */
enum { NEST = 32 };

struct printer {
    const struct xt_graph *g;
    struct xti_str *b;
    int *uses; /* of each node by used nodes; 0: not used */
    int *let;  /* number of the name that the node is printed as, in the line's order; 0: none */
    char prefix[XTI_MAX_NAME + 2]; /* of let names: "t", and underscores while an input begins so */
    struct todo {
        xt_node x;
        int next; /* the argument to print next */
    } * todo;
};

/* ---- one operation */

static void add_layout(struct xti_str *b, int rank, const int64_t *strides, int64_t offset)
{
    xti_str_add(b, ":");
    xti_str_list(b, rank, strides);
    xti_str_addf(b, "+%" PRId64, offset);
}

static void add_numbers(struct xti_str *b, int n, const int64_t *v)
{
    for (int i = 0; i < n; i++)
        xti_str_addf(b, "%s%" PRId64, i ? "," : "", v[i]);
}

static void add_value(struct xti_str *b, const struct xti_node *n, const char *before)
{
    static const unsigned char zero[16];
    if (!memcmp(n->value, zero, sizeof zero))
        return;
    xti_str_addf(b, "%svalue=", before);
    xti_value_print(n->dtype, n->value, b);
}

static void add_slice(struct xti_str *b, int64_t n, const int64_t item[4])
{
    int64_t start = item[1], length = item[2], step = item[3];
    int64_t last = length ? start + (length - 1) * step : -1; /* inside the axis */
    bool up = step > 0, to_end = length && (up ? last >= n - step : last < -step);
    if (start != (up ? 0 : n - 1))
        xti_str_addf(b, "%" PRId64, start);
    xti_str_add(b, ":");
    if (n && !to_end)
        xti_str_addf(b, "%" PRId64, length ? last + (up ? 1 : -1) : 0);
    if (step != 1)
        xti_str_addf(b, ":%" PRId64, step);
}

static bool is_full(const int64_t item[4], int64_t n)
{
    return item[0] == XT_SLICE && item[1] == 0 && item[2] == n && item[3] == 1;
}

static void add_index(struct xti_str *b, const struct xti_node *x, const struct xti_node *n)
{
    int items = n->n_attrs / 4, axis = x->rank;
    while (items > 1 && axis && is_full(n->attr + 4 * (items - 1), x->shape[axis - 1]))
        items--, axis--; /* full slices at the end go without saying */
    xti_str_add(b, items ? "[" : "[...");
    axis = 0;
    for (int i = 0; i < items; i++) {
        const int64_t *item = n->attr + 4 * i;
        xti_str_add(b, i ? ", " : "");
        if (item[0] == XT_NEWAXIS)
            xti_str_add(b, "None");
        else if (item[0] == XT_AT)
            xti_str_addf(b, "%" PRId64, item[1]);
        else
            add_slice(b, x->shape[axis], item);
        axis += item[0] != XT_NEWAXIS;
    }
    xti_str_add(b, "]");
}

static void add_pad(struct xti_str *b, const struct xti_node *n)
{
    for (int i = 0; i < n->rank; i++)
        xti_str_addf(b, "%s(%" PRId64 ",%" PRId64 ")", i ? "," : "", n->attr[2 * i], n->attr[2 * i + 1]);
    add_value(b, n, n->rank ? ", " : "");
}

/* What follows the operand: .permute(1,0) */
static void add_method(struct xti_str *b, const struct xti_node *x, const struct xti_node *n)
{
    if (n->op == XT_OP_INDEX) {
        add_index(b, x, n);
        return;
    }
    xti_str_addf(b, ".%s(", xti_op_info(n->op)->name);
    if (n->op == XT_OP_PAD) {
        add_pad(b, n);
    } else {
        if (n->op == XT_OP_REPEAT) /* (2,1) would be ambiguous */
            xti_str_addf(b, "%" PRId64 ", axis=%" PRId64, n->attr[0], n->attr[1]);
        else
            add_numbers(b, n->n_attrs, n->attr);
        if (n->op == XT_OP_TRIL || n->op == XT_OP_TRIU)
            add_value(b, n, ", ");
    }
    xti_str_add(b, ")");
}

/* ---- expressions */

static bool is_join(const struct xti_node *n) { return n->op == XT_OP_CONCAT || n->op == XT_OP_STACK; }

static void add_name(struct printer *p, xt_node x)
{
    const struct xti_node *n = &p->g->node[x];
    if (n->op == XT_OP_INPUT)
        xti_str_add(p->b, n->name);
    else
        xti_str_addf(p->b, "%s%d", p->prefix, p->let[x]);
}

/* Prints what stands before, between and after the arguments. Returns the argument to go into, or -1. */
static xt_node step(struct printer *p, const struct xti_node *n, int next)
{
    if (!is_join(n)) {
        if (next == 0)
            return n->arg[0];
        add_method(p->b, &p->g->node[n->arg[0]], n);
        return -1;
    }
    if (next == 0)
        xti_str_addf(p->b, "%s(%" PRId64, xti_op_info(n->op)->name, n->attr[0]);
    xti_str_add(p->b, next < n->n_args ? ", " : ")");
    return next < n->n_args ? n->arg[next] : -1;
}

static void add_expression(struct printer *p, xt_node top)
{
    int n = 0;
    if (p->g->node[top].op == XT_OP_INPUT) {
        add_name(p, top);
        return;
    }
    p->todo[n++] = (struct todo){top, 0};
    while (n && !p->b->failed && p->b->n <= XTI_MAX_TEXT) {
        struct todo *t = &p->todo[n - 1];
        xt_node x = step(p, &p->g->node[t->x], t->next++);
        if (x < 0)
            n--;
        else if (p->g->node[x].op == XT_OP_INPUT || p->let[x])
            add_name(p, x);
        else
            p->todo[n++] = (struct todo){x, 0};
    }
}

/* ---- the line */

/* Marks what is used, and what gets a name. depth: joins inside each other below a node. */
static void choose_lets(struct printer *p, unsigned char *depth)
{
    const struct xt_graph *g = p->g;
    int lets = 0;
    p->uses[g->out] = 1;
    for (xt_node x = g->n_nodes - 1; x >= 0; x--)
        for (int i = 0; i < g->node[x].n_args && p->uses[x]; i++)
            p->uses[g->node[x].arg[i]] += p->uses[g->node[x].arg[i]] < 2;
    for (xt_node x = 0; x < g->n_nodes; x++) {
        const struct xti_node *n = &g->node[x];
        for (int i = 0; i < n->n_args; i++)
            if (!p->let[n->arg[i]] && depth[n->arg[i]] > depth[x])
                depth[x] = depth[n->arg[i]];
        depth[x] += is_join(n);
        bool nested = x != g->out && p->uses[x] && depth[x] >= NEST;
        p->let[x] = n->op != XT_OP_INPUT && (p->uses[x] > 1 || nested) ? ++lets : 0;
    }
}

/* Underscores until no input's name begins with the prefix. */
static void choose_prefix(struct printer *p)
{
    size_t n = 1;
    strcpy(p->prefix, "t");
    for (int i = 0; i < p->g->n_inputs; i++) {
        const char *name = p->g->node[p->g->input[i]].name;
        if (strncmp(name, p->prefix, n))
            continue;
        p->prefix[n++] = '_'; /* ends: names have XTI_MAX_NAME bytes at most */
        p->prefix[n] = 0;
        i = -1;
    }
}

static void add_inputs(struct printer *p)
{
    for (int i = 0; i < p->g->n_inputs; i++) {
        const struct xti_node *n = &p->g->node[p->g->input[i]];
        xti_str_addf(p->b, "%s: %s", n->name, xt_dtype_name(n->dtype));
        xti_str_list(p->b, n->rank, n->shape);
        if (!n->dense)
            add_layout(p->b, n->rank, n->strides, n->offset);
        xti_str_add(p->b, "; ");
    }
}

static void add_line(struct printer *p)
{
    const struct xt_graph *g = p->g;
    add_inputs(p);
    for (xt_node x = 0; x < g->n_nodes && p->b->n <= XTI_MAX_TEXT; x++) {
        if (!p->let[x])
            continue;
        add_name(p, x);
        xti_str_add(p->b, " = ");
        add_expression(p, x);
        xti_str_add(p->b, "; ");
    }
    if (p->let[g->out])
        add_name(p, g->out);
    else
        add_expression(p, g->out);
    if (!g->out_dense) {
        xti_str_add(p->b, " -> ");
        xti_str_list(p->b, g->node[g->out].rank, g->node[g->out].shape);
        add_layout(p->b, g->node[g->out].rank, g->out_strides, g->out_offset);
    }
}

static xt_status print_graph(const struct xt_graph *g, struct xti_str *b, struct xti_err *err)
{
    xt_status s = XT_OK;
    size_t n = (size_t)g->n_nodes;
    unsigned char *depth = xti_alloc(n);
    struct printer *p = xti_alloc(sizeof *p);
    if (p) {
        p->g = g;
        p->b = b;
        p->uses = xti_alloc_array(n, sizeof *p->uses);
        p->let = xti_alloc_array(n, sizeof *p->let);
        p->todo = xti_alloc_array(n, sizeof *p->todo);
    }
    if (p && depth && p->uses && p->let && p->todo) {
        choose_lets(p, depth);
        choose_prefix(p);
        add_line(p);
    }
    if (!p || !depth || !p->uses || !p->let || !p->todo || b->failed)
        s = xti_fail(err, XT_ENOMEM, "xt_print: out of memory");
    else if (b->n > XTI_MAX_TEXT)
        s = xti_fail(err, XT_EUNSUPPORTED, "xt_print: the text is longer than %d bytes", XTI_MAX_TEXT);
    if (p) {
        xti_free(p->uses);
        xti_free(p->let);
        xti_free(p->todo);
    }
    xti_free(p);
    xti_free(depth);
    return s;
}

xt_status xt_print(const struct xt_graph *g, char *buf, size_t size, size_t *need)
{
    struct xti_err err = {0};
    struct xti_str b = {0};
    xt_status s;
    if (need)
        *need = 0;
    if (buf && size)
        buf[0] = 0;
    if (!g)
        s = xti_fail(&err, XT_EINVAL, "xt_print: graph is NULL");
    else if (g->err.e.status)
        return xti_publish(g->err.e.status, &g->err);
    else if (g->out < 0)
        s = xti_fail(&err, XT_EINVAL, "xt_print: the graph has no output");
    else
        s = print_graph(g, &b, &err);
    if (!s)
        xti_copy_out(b.s, b.n, buf, size, need);
    xti_str_free(&b);
    return xti_publish(s, &err);
}
