/* kernel.c: xtview.Kernel, a compiled chain that is called, and what it tells of itself. */
#include "core.h"

static void kernel_dealloc(PyObject *self)
{
    PyTypeObject *t = Py_TYPE(self);
    entry_unref(((struct kernel *)self)->entry);
    ((void (*)(void *))PyType_GetSlot(t, Py_tp_free))(self);
    Py_DECREF(t);
}

static bool fail_end(const char *what, const struct xt_end_info *e, const struct operand *a)
{
    int64_t st[XT_MAX_RANK] = {0};
    uint64_t dense = 1; /* may wrap where an extent is 0 */
    for (int i = a->rank - 1; i >= 0; i--) {
        st[i] = !a->strides ? (int64_t)dense : a->unit ? a->strides[i] / a->itemsize : a->strides[i];
        dense *= (uint64_t)a->shape[i];
    }
    PyObject *shape = shape_tuple(e->rank, e->shape), *strides = shape_tuple(e->rank, e->strides);
    PyObject *shape_a = shape_tuple(a->rank, a->shape), *strides_a = shape_tuple(a->rank, st);
    if (shape && strides && shape_a && strides_a)
        PyErr_Format(PyExc_ValueError,
                     "the kernel is compiled for %s %s%R with strides %R, given %s%R with strides %R (in "
                     "elements); xt.copy takes any layout",
                     what, xt_dtype_name(e->dtype), shape, strides, xt_dtype_name(a->code), shape_a,
                     strides_a);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    Py_XDECREF(shape_a);
    Py_XDECREF(strides_a);
    return false;
}

/* The array is laid out as the kernel's end is. */
static bool check_end(struct state *s, const struct kernel *k, int input, struct operand *a)
{
    struct xt_end_info e = {.size = sizeof e};
    uint64_t dense = 1; /* may wrap where an extent is 0 */
    if (!classify(s, a))
        return false;
    if (xt_kernel_shape(k->entry->kernel, input, &e))
        return raise_last(NULL, 0), false;
    const char *name = input < 0 ? "out" : e.name;
    if (a->code != e.dtype || a->rank != e.rank)
        return fail_end(name, &e, a);
    for (int i = a->rank - 1; i >= 0; i--) {
        uint64_t unit = (uint64_t)(a->unit ? a->itemsize : 1);
        uint64_t st = a->strides ? (uint64_t)a->strides[i] : dense * unit;
        if (a->shape[i] != e.shape[i] || (a->shape[i] > 1 && st != (uint64_t)e.strides[i] * unit))
            return fail_end(name, &e, a);
        dense *= (uint64_t)a->shape[i];
    }
    return true;
}

static bool check_call(struct state *s, struct kernel *k, struct call *c)
{
    if (c->n != k->n_inputs) {
        PyErr_Format(PyExc_TypeError, "the kernel takes %d array%s, %d given", k->n_inputs,
                     k->n_inputs == 1 ? "" : "s", c->n);
        return false;
    }
    if (!find_device(s, c))
        return false;
    for (int i = 0; i < c->n; i++)
        if (!check_end(s, k, i, &c->op[i]))
            return false;
    if (c->has_out ? !check_end(s, k, -1, &c->op[c->n]) : !k->entry->dense) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "the kernel's destination has a layout: give out=");
        return false;
    }
    struct xt_kernel_info info = {.size = sizeof info};
    if (xt_kernel_get(k->entry->kernel, &info))
        return raise_last(NULL, 0), false;
    if ((info.backend == XT_CUDA) != on_gpu(&c->op[0])) {
        PyErr_Format(PyExc_ValueError, "the kernel is compiled for %s, the arrays lie in %s",
                     info.backend == XT_CUDA ? "CUDA" : "the CPU",
                     on_gpu(&c->op[0]) ? "a GPU's memory" : "host memory");
        return false;
    }
    for (int i = 1; i < c->n + c->has_out; i++)
        if (!same_type(&c->op[i], &c->op[0])) {
            PyErr_SetString(PyExc_TypeError, "the arrays have different element types");
            return false;
        }
    return keep_words(k->entry, c);
}

PyObject *kernel_vectorcall(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
{
    struct kernel *k = (struct kernel *)self;
    struct state *s = state_of_type(Py_TYPE(self));
    struct call c;
    PyObject *out = NULL, *stream = NULL, *array = NULL;
    Py_ssize_t n = (Py_ssize_t)(nargs & ARGUMENTS);
    if (!read_keywords(s, args + n, kwnames, &out, &stream))
        return NULL;
    call_start(&c);
    bool ok = take_stream(s, &c, stream) && call_room(&c, (int)n + 1);
    for (Py_ssize_t i = 0; i < n && ok; i++)
        ok = add_operand(s, &c, args[i], false);
    if (ok && out && out != Py_None)
        ok = add_operand(s, &c, out, true);
    if (ok && n &&
        (fits_words(k->entry, &c) ? !on_gpu(&c.op[0]) || find_device(s, &c) : check_call(s, k, &c))) {
        struct entry *e = k->entry;
        e->refs++;
        array = call_finish(s, e, &c);
        entry_unref(e);
    } else if (ok && !n) {
        PyErr_Format(PyExc_TypeError, "the kernel takes %d array%s, none given", k->n_inputs,
                     k->n_inputs == 1 ? "" : "s");
    }
    call_free(&c);
    return array;
}

/* f(*args, **kw) where no vectorcall is made. */
static PyObject *kernel_call(PyObject *self, PyObject *args, PyObject *kw)
{
    PyObject *call = PyObject_GetAttrString(self, "__call_list__");
    PyObject *made = call ? PyObject_Call(call, args, kw) : NULL;
    Py_XDECREF(call);
    return made;
}

static PyObject *kernel_call_list(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    return kernel_vectorcall(self, args, (size_t)n, kwnames);
}

static PyObject *explain(const struct kernel *k, int flags)
{
    size_t size = 0, need = 0;
    char *text = NULL;
    do { /* again where better code came meanwhile and there is more to tell */
        PyMem_Free(text);
        size = need;
        if (!(text = PyMem_Malloc(size)))
            return PyErr_NoMemory();
        if (xt_explain(k->entry->kernel, flags, text, size, &need)) {
            PyMem_Free(text);
            return raise_last(NULL, 0), NULL;
        }
    } while (need > size);
    PyObject *t = PyUnicode_FromString(text);
    PyMem_Free(text);
    return t;
}

static PyObject *kernel_explain(PyObject *self, PyObject *args, PyObject *kw)
{
    static char *names[] = {"json", "why", NULL};
    int json = 0, why = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "|pp", names, &json, &why))
        return NULL;
    return explain((struct kernel *)self, json ? XT_JSON : why ? XT_WHY : 0);
}

/* What notebooks show. */
static PyObject *kernel_repr_svg(PyObject *self, PyObject *unused)
{
    return explain((struct kernel *)self, XT_SVG);
}

/* The first paragraph: what the chain became and how it is copied. */
static PyObject *kernel_str(PyObject *self)
{
    PyObject *text = explain((struct kernel *)self, 0), *first = NULL, *end = NULL;
    PyObject *parts = text ? PyObject_CallMethod(text, "partition", "s", "\n\n") : NULL;
    if (parts)
        PyArg_ParseTuple(parts, "OOO", &first, &end, &end);
    Py_XINCREF(first);
    Py_XDECREF(parts);
    Py_XDECREF(text);
    return first;
}

static PyObject *kernel_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<xtview.Kernel %R>", ((struct kernel *)self)->entry->chain);
}

static PyObject *kernel_shape(PyObject *self, void *unused)
{
    PyObject *t = ((struct kernel *)self)->entry->shape;
    Py_INCREF(t);
    return t;
}

static PyObject *kernel_dtype(PyObject *self, void *unused)
{
    return PyUnicode_FromString(xt_dtype_name(((struct kernel *)self)->entry->result.dtype));
}

static PyObject *kernel_chain(PyObject *self, void *unused)
{
    PyObject *t = ((struct kernel *)self)->entry->chain;
    Py_INCREF(t);
    return t;
}

static PyObject *kernel_info(PyObject *self, void *unused)
{
    struct xt_kernel_info i = {.size = sizeof i};
    const struct kernel *k = (struct kernel *)self;
    if (xt_kernel_get(k->entry->kernel, &i))
        return raise_last(NULL, 0), NULL;
    static const char *const backend[] = {"auto", "ref", "cpu", "cuda"};
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:i,s:L,s:L,s:d}", "backend", backend[i.backend], "strategy",
                         i.strategy, "map", i.map_class, "signature", i.signature, "pieces", i.n_pieces,
                         "bytes_read", (long long)i.bytes_read, "bytes_written", (long long)i.bytes_written,
                         "estimate", xt_kernel_estimate(k->entry->kernel));
}

static PyMethodDef kernel_methods[] = {
    {"__call_list__", (PyCFunction)(void (*)(void))kernel_call_list, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"explain", (PyCFunction)(void (*)(void))kernel_explain, METH_VARARGS | METH_KEYWORDS,
     "explain(json=False, why=False): what the chain became, a picture, the plan; what was refused."},
    {"_repr_svg_", kernel_repr_svg, METH_NOARGS, "The picture of the copy, as SVG."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef kernel_getset[] = {
    {"chain", kernel_chain, NULL, "The chain as it was given.", NULL},
    {"shape", kernel_shape, NULL, "Of the result.", NULL},
    {"dtype", kernel_dtype, NULL, "Of the result, as xt calls it: 'f16'.", NULL},
    {"info", kernel_info, NULL, "backend, strategy, bytes read and written, estimate in seconds, ..", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef kernel_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct kernel, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot kernel_slots[] = {
    {Py_tp_members, kernel_members},
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_call, kernel_call},
    {Py_tp_methods, kernel_methods},
    {Py_tp_getset, kernel_getset},
    {Py_tp_repr, kernel_repr},
    {Py_tp_str, kernel_str},
    {Py_tp_doc, "A compiled chain: k(x, out=None, stream=None) runs it."},
    {0, NULL},
};
PyType_Spec kernel_spec = {"xtview.Kernel", sizeof(struct kernel), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | HAVE_VECTORCALL,
                           kernel_slots};
