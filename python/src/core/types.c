/* types.c: what Python types of arrays there are, and how each is looked at; element types. */
#include "core.h"

/* type(x).__dlpack_c_exchange_api__, of our major version; NULL: there is none. */
static const DLPackExchangeAPI *exchange_api(PyTypeObject *t)
{
    PyObject *c = PyObject_GetAttrString((PyObject *)t, "__dlpack_c_exchange_api__");
    const DLPackExchangeAPIHeader *h = NULL;
    if (c)
        h = PyCapsule_GetPointer(c, "dlpack_exchange_api");
    while (h && h->version.major != DLPACK_MAJOR_VERSION)
        h = h->prev_api;
    PyErr_Clear();
    Py_XDECREF(c); /* the table lives as long as the process */
    const DLPackExchangeAPI *api = (const DLPackExchangeAPI *)h;
    return api && api->dltensor_from_py_object_no_sync ? api : NULL;
}

static bool find_kind(struct state *s, PyObject *o, struct type_info *info)
{
    PyTypeObject *t = Py_TYPE(o);
    PyObject *kind = PyObject_CallMethod(s->arrays, "kind_of", "Oi", t, PyObject_CheckBuffer(o));
    if (!kind)
        return false;
    long n = PyLong_AsLong(kind);
    Py_DECREF(kind);
    *info = (struct type_info){.type = t, .kind = (enum kind)(n & 7), .torch = n & 8, .immutable = n & 16};
    if (info->kind == NUMPY && !s->np_empty)
        return (s->np_empty = PyObject_CallMethod(s->arrays, "numpy_empty", NULL)) != NULL;
    info->api = info->kind == DLPACK ? exchange_api(t) : NULL;
    if (info->api)
        info->kind = EXCHANGE;
    return true;
}

/* Of a type that is not remembered: what all of its kind have. */
static const struct type_info *as_others(struct state *s, const struct type_info *info)
{
    enum kind kind = info->kind == EXCHANGE ? DLPACK : info->kind;
    struct type_info *rest = &s->rest[kind | info->torch << 3 | info->immutable << 4];
    *rest = (struct type_info){.kind = kind, .torch = info->torch, .immutable = info->immutable};
    return rest;
}

const struct type_info *type_of(struct state *s, PyObject *o)
{
    PyTypeObject *t = Py_TYPE(o);
    for (int i = 0; i < s->n_types; i++)
        if (s->type[i].type == t)
            return &s->type[i];
    struct type_info info;
    if (!find_kind(s, o, &info))
        return NULL;
    if (s->n_types == TYPES)
        return as_others(s, &info);
    Py_INCREF((PyObject *)t);
    s->type[s->n_types] = info;
    return &s->type[s->n_types++];
}

/* ---- element types */

static xt_dtype of_width(int64_t bytes)
{
    return bytes == 1    ? XT_U8
           : bytes == 2  ? XT_U16
           : bytes == 4  ? XT_U32
           : bytes == 8  ? XT_U64
           : bytes == 16 ? XT_C128
                         : (xt_dtype)0;
}

static xt_dtype of_format(uint64_t f, int64_t bytes)
{
    static const char letters[] = "?bBhHiIlLqQnNefd";
    static const xt_dtype plain[][2] = {{XT_U8, XT_I8}, {XT_U16, XT_I16}, {XT_U32, XT_I32}, {XT_U64, XT_I64}};
    int width = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : -1;
    char c = (char)f;
    if (c == 'Z')
        return f >> 8 == 'f' && bytes == 8 ? XT_C64 : f >> 8 == 'd' && bytes == 16 ? XT_C128 : (xt_dtype)0;
    if (c == 'c')
        return XT_U8;
    if (!c || !strchr(letters, c) || width < 0)
        return (xt_dtype)0;
    if (c == '?')
        return XT_BOOL;
    if (c == 'e' || c == 'f' || c == 'd')
        return c == 'e' ? XT_F16 : c == 'f' ? XT_F32 : XT_F64;
    return plain[width][c >= 'a'];
}

/* Sets code and opaque. */
bool classify(struct state *s, struct operand *a)
{
    if (a->type->kind == NUMPY) {
        PyObject *code = PyObject_CallMethod(s->arrays, "numpy_code", "O", a->dtype_held);
        long n = code ? PyLong_AsLong(code) : -1;
        Py_XDECREF(code);
        if (n < 0)
            return false;
        a->opaque = n == 0;
        a->code = n ? (xt_dtype)n : of_width(a->itemsize);
    } else if (a->type->kind == BUFFER) {
        a->code = of_format(a->dtype, a->itemsize);
    } else {
        DLDataType t;
        memcpy(&t, &a->dtype, sizeof t);
        a->opaque = xt_dl_dtype(t, &a->code) != XT_OK;
        if (a->opaque && t.code != kDLOpaqueHandle && t.bits * t.lanes % 8 == 0)
            a->code = of_width(a->itemsize);
    }
    if (a->code && xt_dtype_bytes(a->code) == (size_t)a->itemsize)
        return true;
    PyErr_Format(PyExc_TypeError, "%R: elements have 1, 2, 4, 8 or 16 bytes and are plain values",
                 a->dtype_held ? a->dtype_held : (PyObject *)Py_TYPE(a->object));
    return false;
}

/* Of equal codes, but not of the same type: two of NumPy's that xt knows by their width alone. */
bool same_type(const struct operand *a, const struct operand *b)
{
    if (a->code != b->code)
        return false;
    if (!a->opaque && !b->opaque)
        return true;
    if (a->type->kind == NUMPY && b->type->kind == NUMPY)
        return PyObject_RichCompareBool(a->dtype_held, b->dtype_held, Py_EQ) == 1;
    return a->type->kind != NUMPY && b->type->kind != NUMPY && a->dtype == b->dtype;
}
