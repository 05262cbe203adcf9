/* graph.c: a chain on the arrays of a call, parsed and laid out as they are. */
#include "core.h"

struct text {
    char *s;     /* owned */
    size_t skip; /* bytes before the caller's chain */
};

/* Does the chain declare its inputs itself: "x: ..", "x; .."? */
static bool declares(const char *s)
{
    while (*s == ' ' || *s == '\n')
        s++;
    const char *name = s;
    while ((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || *s == '_')
        s++;
    bool named = s > name;
    while (*s == ' ')
        s++;
    return named && (*s == ':' || *s == ';');
}

const char *chain_text(PyObject *chain)
{
    Py_ssize_t n = 0;
    const char *text = PyUnicode_AsUTF8AndSize(chain, &n);
    if (!text || strlen(text) == (size_t)n)
        return text;
    PyErr_SetString(PyExc_ValueError, "a chain has no NUL in it");
    return NULL;
}

static void default_name(char *buf, size_t size, int i)
{
    PyOS_snprintf(buf, size, i < 3 ? "%c" : "x%d", i < 3 ? "xyz"[i] : i);
}

/* "x; y; " and the chain. */
static bool make_text(struct text *t, const char *chain, PyObject *names, int n)
{
    size_t bytes = strlen(chain) + 1 + (size_t)n * 24;
    bool whole = declares(chain);
    for (int i = 0; names && i < n; i++) {
        Py_ssize_t len = 0;
        PyObject *name = PyList_GetItem(names, i);
        bool text = PyUnicode_Check(name);
        if (!text || PyUnicode_IsIdentifier(name) != 1)
            return PyErr_Format(text ? PyExc_ValueError : PyExc_TypeError,
                                "%R is no name that a chain has for an array", name),
                   false;
        if (!PyUnicode_AsUTF8AndSize(name, &len))
            return false;
        bytes += (size_t)len;
    }
    t->s = PyMem_Malloc(bytes);
    if (!t->s)
        return PyErr_NoMemory(), false;
    char *w = t->s, name[24];
    for (int i = 0; i < n && !whole; i++) {
        default_name(name, sizeof name, i);
        const char *given = names ? PyUnicode_AsUTF8AndSize(PyList_GetItem(names, i), NULL) : name;
        w += PyOS_snprintf(w, bytes - (size_t)(w - t->s), "%s; ", given);
    }
    t->skip = (size_t)(w - t->s);
    memcpy(w, chain, strlen(chain) + 1);
    return true;
}

static bool give_shapes(struct state *s, struct call *c, struct xt_shape *given)
{
    for (int i = 0; i < c->n + c->has_out; i++) {
        struct operand *a = &c->op[i];
        if (!classify(s, a))
            return false;
        if (i >= c->n)
            break;
        given[i].dtype = a->code;
        given[i].rank = a->rank;
        if (a->rank)
            memcpy(given[i].shape, a->shape, (size_t)a->rank * sizeof *a->shape);
        if ((a->opaque || c->op[0].opaque) && i && !same_type(a, &c->op[0])) {
            PyErr_SetString(PyExc_TypeError, "the arrays have different element types");
            return false;
        }
    }
    return true;
}

/* Values of other than zero bytes are known only for the types that xt knows. */
static bool check_fills(const struct xt_graph *g, const struct operand *a)
{
    static const unsigned char zero[16];
    for (int i = 0; i < xt_node_count(g) && a->opaque; i++) {
        struct xt_node_info n = {.size = sizeof n};
        if (!xt_node_get(g, i, &n) && n.value && memcmp(n.value, zero, (size_t)a->itemsize)) {
            PyErr_SetString(PyExc_TypeError,
                            "xt knows this element type by its width alone, and fills only zero bytes");
            return false;
        }
    }
    return true;
}

static bool lay_out_inputs(struct xt_graph *g, const struct call *c, PyObject *names)
{
    int64_t st[XT_MAX_RANK];
    if (xt_input_count(g) != c->n) {
        PyErr_Format(PyExc_ValueError, "the chain has %d inputs, %d arrays were given", xt_input_count(g),
                     c->n);
        return false;
    }
    for (int i = 0; i < c->n; i++) {
        const struct operand *a = &c->op[i];
        struct xt_node_info n = {.size = sizeof n};
        xt_node_get(g, xt_input_node(g, i), &n);
        if (names && PyUnicode_CompareWithASCIIString(PyList_GetItem(names, i), n.name)) {
            PyErr_Format(PyExc_ValueError, "input %d of the chain is '%s', the array's name is %R", i, n.name,
                         PyList_GetItem(names, i));
            return false;
        }
        if (!n.dense && xt_input_layout(g, i, NULL, 0))
            return raise_last(NULL, 0), false;
        if (is_dense(a))
            continue;
        if (!element_strides(a, st))
            return false;
        if (xt_input_layout(g, i, st, XT_ORIGIN))
            return raise_last(NULL, 0), false;
    }
    return true;
}

PyObject *shape_tuple(int rank, const int64_t *shape)
{
    PyObject *t = PyTuple_New(rank);
    for (int i = 0; t && i < rank; i++) {
        PyObject *n = PyLong_FromLongLong(shape[i]);
        if (!n || PyTuple_SetItem(t, i, n))
            Py_CLEAR(t);
    }
    return t;
}

static bool fail_out(const struct xt_node_info *n, const struct operand *out)
{
    PyObject *want = shape_tuple(n->rank, n->shape), *got = shape_tuple(out->rank, out->shape);
    if (want && got)
        PyErr_Format(PyExc_ValueError, "the result is %R, out is %R", want, got);
    Py_XDECREF(want);
    Py_XDECREF(got);
    return false;
}

/* The destination becomes that of `out`. */
bool lay_out_result(struct xt_graph *g, const struct call *c)
{
    struct xt_output_info o = {.size = sizeof o};
    struct xt_node_info n = {.size = sizeof n};
    int64_t st[XT_MAX_RANK];
    xt_output_get(g, &o);
    xt_node_get(g, o.node, &n);
    if (!c->has_out) {
        if (!o.dense)
            PyErr_SetString(PyExc_ValueError, "the chain's destination has a layout: give out=");
        return o.dense;
    }
    const struct operand *out = &c->op[c->n];
    if (out->rank != n.rank || (n.rank && memcmp(out->shape, n.shape, (size_t)n.rank * sizeof *n.shape)))
        return fail_out(&n, out);
    if (!same_type(out, &c->op[0])) {
        PyErr_Format(PyExc_TypeError, "the result is %s, out %s: xt moves elements, it does not convert them",
                     xt_dtype_name(n.dtype),
                     out->code == n.dtype ? "of another type" : xt_dtype_name(out->code));
        return false;
    }
    bool dense = is_dense(out);
    if (!dense && !element_strides(out, st))
        return false;
    if (xt_output(g, o.node, dense ? NULL : st, dense ? 0 : XT_ORIGIN))
        return raise_last(NULL, 0), false;
    return true;
}

struct xt_graph *make_graph(struct state *s, struct call *c, const char *chain, PyObject *names)
{
    struct text t = {NULL, 0};
    struct xt_graph *g = NULL;
    struct xt_shape *given = PyMem_Calloc((size_t)c->n, sizeof *given);
    bool ok =
        given ? give_shapes(s, c, given) && make_text(&t, chain, names, c->n) : (PyErr_NoMemory(), false);
    if (ok && xt_parse(t.s, c->n, given, &g)) {
        raise_last(chain, t.skip);
        ok = false;
    }
    PyMem_Free(t.s);
    PyMem_Free(given);
    if (ok && lay_out_inputs(g, c, names) && check_fills(g, &c->op[0]))
        return g;
    xt_graph_free(g);
    return NULL;
}
