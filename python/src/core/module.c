/* module.c: the module's functions, its state and its start. */
#include "core.h"

static PyObject *core_copy(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    struct state *s = PyModule_GetState(module);
    PyObject *out = NULL, *stream = NULL;
    if (n < 1 || n > 4) {
        PyErr_Format(PyExc_TypeError,
                     "copy(x, chain, out=None, stream=None) takes 1 to 4 arguments, %zd given", n);
        return NULL;
    }
    PyObject *chain = n > 1 ? args[1] : s->s_x;
    out = n > 2 ? args[2] : NULL;
    stream = n > 3 ? args[3] : NULL;
    if (!read_keywords(s, args + n, kwnames, &out, &stream))
        return NULL;
    if (!PyUnicode_Check(chain)) {
        PyErr_Format(PyExc_TypeError, "the chain, behind the array, is a string, not %R", Py_TYPE(chain));
        return NULL;
    }
    return copy_with(s, args[0], chain, out, stream);
}

static PyObject *core_ascontiguousarray(PyObject *module, PyObject *x)
{
    struct state *s = PyModule_GetState(module);
    struct operand a;
    memset(&a, 0, sizeof a);
    bool ok = operand_take(s, &a, x), dense = ok && is_dense(&a);
    operand_release(&a);
    if (!ok)
        return NULL;
    if (dense) {
        Py_INCREF(x);
        return x;
    }
    return copy_with(s, x, s->s_x, NULL, NULL);
}

/* Of a chain on arrays: (shape, name of the element type). Nothing is compiled. */
static PyObject *core_describe(PyObject *module, PyObject *args)
{
    struct state *s = PyModule_GetState(module);
    PyObject *x, *chain, *names = NULL, *made = NULL;
    struct call c;
    if (!PyArg_ParseTuple(args, "OU", &x, &chain))
        return NULL;
    call_start(&c);
    const char *text = chain_text(chain);
    if (text && gather(s, &c, x, NULL, &names)) {
        struct xt_graph *g = make_graph(s, &c, text, names);
        struct xt_output_info o = {.size = sizeof o};
        struct xt_node_info n = {.size = sizeof n};
        if (g && !xt_output_get(g, &o) && !xt_node_get(g, o.node, &n))
            made = Py_BuildValue("Ns", shape_tuple(n.rank, n.shape), xt_dtype_name(n.dtype));
        xt_graph_free(g);
    }
    Py_XDECREF(names);
    call_free(&c);
    return made;
}

static PyObject *core_set_threads(PyObject *module, PyObject *arg)
{
    struct state *s = PyModule_GetState(module);
    struct xt_options o = {.size = sizeof o};
    struct xt_ctx *ctx;
    if (!PyArg_Parse(arg, "i", &o.threads))
        return NULL;
    if (xt_ctx_new(&o, &ctx))
        return raise_last(NULL, 0), NULL;
    struct xt_ctx **past = PyMem_Realloc(s->past, (size_t)(s->n_past + 1) * sizeof *past);
    if (!past) {
        xt_ctx_free(ctx);
        return PyErr_NoMemory();
    }
    past[s->n_past++] = s->ctx;
    s->past = past;
    s->ctx = ctx;
    entries_forget(s);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"copy", (PyCFunction)(void (*)(void))core_copy, METH_FASTCALL | METH_KEYWORDS,
     "copy(x, chain='x', out=None, stream=None)\n--\n\n"
     "The result of the chain, in one copy. x: an array, or a dict, list or tuple of arrays."},
    {"ascontiguousarray", core_ascontiguousarray, METH_O,
     "ascontiguousarray(x)\n--\n\nx itself when it is contiguous, else a contiguous copy."},
    {"describe", core_describe, METH_VARARGS, NULL},
    {"compile", (PyCFunction)(void (*)(void))core_compile, METH_VARARGS | METH_KEYWORDS, NULL},
    {"run_files", core_run_files, METH_VARARGS, NULL},
    {"set_threads", core_set_threads, METH_O,
     "set_threads(n)\n--\n\nThreads a copy may use; 0: $XT_THREADS, else the machine's. Forgets compiled "
     "chains."},
    {NULL, NULL, 0, NULL},
};

static bool intern(PyObject **to, const char *text)
{
    return (*to = PyUnicode_InternFromString(text)) != NULL;
}

static int module_exec(PyObject *m)
{
    struct state *s = PyModule_GetState(m);
    const char *backend = getenv("XT_BACKEND");
    if (xt_ctx_new(NULL, &s->ctx))
        return raise_last(NULL, 0), -1;
    s->host = backend && !strcmp(backend, "ref") ? XT_REF : XT_CPU;
    if (!intern(&s->s_out, "out") || !intern(&s->s_stream, "stream") || !intern(&s->s_dtype, "dtype") ||
        !intern(&s->s_requires_grad, "requires_grad") || !intern(&s->s_is_conj, "is_conj") ||
        !intern(&s->s_is_neg, "is_neg") || !intern(&s->s_x, "x"))
        return -1;
    s->arrays = PyImport_ImportModule("xtview._arrays");
    s->kernel_type = (PyTypeObject *)PyType_FromModuleAndSpec(m, &kernel_spec, NULL);
    s->memory_type = (PyTypeObject *)PyType_FromModuleAndSpec(m, &memory_spec, NULL);
    if (!s->arrays || !s->kernel_type || !s->memory_type || PyModule_AddType(m, s->kernel_type))
        return -1;
    return PyModule_AddStringConstant(m, "version", xt_version());
}

static int module_traverse(PyObject *m, visitproc visit, void *arg)
{
    struct state *s = PyModule_GetState(m);
    Py_VISIT(s->arrays);
    Py_VISIT(s->np_empty);
    Py_VISIT(s->kernel_type);
    Py_VISIT(s->memory_type);
    return 0;
}

static int module_clear(PyObject *m)
{
    struct state *s = PyModule_GetState(m);
    entries_forget(s);
    for (int i = 0; i < s->n_types; i++)
        Py_DECREF(s->type[i].type);
    s->n_types = 0;
    Py_CLEAR(s->arrays);
    Py_CLEAR(s->np_empty);
    Py_CLEAR(s->kernel_type);
    Py_CLEAR(s->memory_type);
    Py_CLEAR(s->s_out);
    Py_CLEAR(s->s_stream);
    Py_CLEAR(s->s_dtype);
    Py_CLEAR(s->s_requires_grad);
    Py_CLEAR(s->s_is_conj);
    Py_CLEAR(s->s_is_neg);
    Py_CLEAR(s->s_x);
    for (int i = 0; i < s->n_past; i++)
        xt_ctx_free(s->past[i]);
    PyMem_Free(s->past);
    s->past = NULL;
    s->n_past = 0;
    xt_ctx_free(s->ctx);
    s->ctx = NULL;
    free(s->kept.block);
    s->kept.block = NULL;
    return 0;
}

static void module_free(void *m) { module_clear(m); }

/* Slots that came with 3.12: a Python 3.11 must not see them, so they are filled in when it starts. */
enum { SLOT_INTERPRETERS = 3 };
static PyModuleDef_Slot slots[] = {{Py_mod_exec, module_exec}, {0, NULL}, {0, NULL}};

static struct PyModuleDef module_def = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "xtview._core",
    .m_size = sizeof(struct state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void)
{
    if (Py_Version >= 0x030c0000) /* Py_MOD_PER_INTERPRETER_GIL_SUPPORTED */
        slots[1] = (PyModuleDef_Slot){SLOT_INTERPRETERS, (void *)2};
    return PyModuleDef_Init(&module_def);
}
