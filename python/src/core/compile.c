/* compile.c: xtview.compile: a chain becomes a Kernel. */
#include "core.h"

/* A declared layout, in a chain or of an array, is that of an array: its pointer is element (0,..,0). */
static bool from_origins(struct xt_graph *g)
{
    int64_t st[XT_MAX_RANK];
    struct xt_node_info n = {.size = sizeof n};
    struct xt_output_info o = {.size = sizeof o};
    for (int i = 0; i < xt_input_count(g); i++) {
        xt_node_get(g, xt_input_node(g, i), &n);
        if (n.rank)
            memcpy(st, n.strides, (size_t)n.rank * sizeof *st);
        if (!n.dense && xt_input_layout(g, i, st, XT_ORIGIN))
            return raise_last(NULL, 0), false;
    }
    xt_output_get(g, &o);
    xt_node_get(g, o.node, &n);
    if (n.rank)
        memcpy(st, o.strides, (size_t)n.rank * sizeof *st);
    if (!o.dense && xt_output(g, o.node, st, XT_ORIGIN))
        return raise_last(NULL, 0), false;
    return true;
}

static bool read_backend(struct state *s, const char *name, xt_backend *out)
{
    static const char *const names[] = {"auto", "ref", "cpu", "cuda"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i])) {
            *out = i ? (xt_backend)i : s->host;
            return true;
        }
    PyErr_Format(PyExc_ValueError, "backend is 'auto', 'cpu', 'cuda' or 'ref', not '%s'", name);
    return false;
}

static PyObject *make_kernel(struct state *s, PyObject *chain, struct xt_graph *g,
                             const struct xt_compile_options *opt)
{
    struct kernel *k = (struct kernel *)((PyObject * (*)(PyTypeObject *, Py_ssize_t))
                                             PyType_GetSlot(s->kernel_type, Py_tp_alloc))(s->kernel_type, 0);
    if (!k)
        return NULL;
    struct xt_output_info o = {.size = sizeof o};
    k->call = kernel_vectorcall;
    k->entry = PyMem_Calloc(1, sizeof *k->entry);
    if (!k->entry) {
        Py_DECREF(k);
        return PyErr_NoMemory();
    }
    k->entry->refs = 1;
    Py_INCREF(chain);
    k->entry->chain = chain;
    k->n_inputs = xt_input_count(g);
    xt_output_get(g, &o);
    k->entry->dense = o.dense;
    xt_status st;
    Py_BEGIN_ALLOW_THREADS st = xt_compile(s->ctx, g, opt, &k->entry->kernel);
    Py_END_ALLOW_THREADS if (st) raise_last(NULL, 0);
    else if (entry_describe(k->entry)) return (PyObject *)k;
    Py_DECREF(k);
    return NULL;
}

PyObject *core_compile(PyObject *module, PyObject *args, PyObject *kw)
{
    static char *names[] = {"chain", "arrays", "backend", "arch", "measure", NULL};
    struct state *s = PyModule_GetState(module);
    struct xt_compile_options opt = {.size = sizeof opt};
    struct xt_graph *g = NULL;
    PyObject *chain, *arrays = Py_None, *dict_names = NULL, *kernel = NULL;
    const char *backend = "auto";
    if (!PyArg_ParseTupleAndKeywords(args, kw, "U|Oszp", names, &chain, &arrays, &backend, &opt.arch,
                                     &opt.measure) ||
        !read_backend(s, backend, &opt.backend))
        return NULL;
    if (opt.arch && strcmp(backend, "auto") && opt.backend != XT_CUDA)
        return PyErr_Format(PyExc_ValueError, "arch is of CUDA, backend '%s' is not", backend);
    if (opt.arch)
        opt.backend = XT_CUDA;
    const char *text = chain_text(chain);
    struct call c;
    call_start(&c);
    if (text && arrays != Py_None) {
        if (gather(s, &c, arrays, NULL, &dict_names))
            g = make_graph(s, &c, text, dict_names);
        if (g && on_gpu(&c.op[0]) && !strcmp(backend, "auto"))
            opt.backend = XT_CUDA;
    } else if (text && xt_parse(text, 0, NULL, &g)) {
        raise_last(text, 0);
    }
    if (g && from_origins(g))
        kernel = make_kernel(s, chain, g, &opt);
    xt_graph_free(g);
    Py_XDECREF(dict_names);
    call_free(&c);
    return kernel;
}
