/* call.c: the arrays of a call, their key - every type, shape and stride, one word each -, device, stream. */
#include "core.h"

void call_start(struct call *c)
{
    c->n = 0;
    c->has_out = c->stream_given = false;
    c->stream = NULL;
    c->list = NULL;
    c->n_words = 0;
    c->cap = WORDS;
    c->op = c->room;
    c->word = c->word_room;
}

void operand_start(struct operand *a)
{
    a->buffer.obj = NULL;
    a->capsule = a->dtype_held = NULL;
    a->opaque = a->readonly = false;
    a->device_id = 0;
}

bool call_room(struct call *c, int operands)
{
    if (operands > ROOM && !(c->op = PyMem_Calloc((size_t)operands, sizeof *c->op)))
        return PyErr_NoMemory(), false;
    for (int i = 0; i < operands; i++)
        operand_start(&c->op[i]);
    return true;
}

void call_free(struct call *c)
{
    for (int i = 0; i < c->n + c->has_out; i++)
        operand_release(&c->op[i]);
    if (c->op != c->room)
        PyMem_Free(c->op);
    if (c->word != c->word_room)
        PyMem_Free(c->word);
    Py_XDECREF(c->list);
}

static bool more_words(struct call *c, size_t n)
{
    if (c->n_words + n <= c->cap)
        return true;
    size_t cap = 2 * c->cap + n;
    int64_t *w = PyMem_Malloc(cap * sizeof *w);
    if (!w)
        return PyErr_NoMemory(), false;
    memcpy(w, c->word, c->n_words * sizeof *w);
    if (c->word != c->word_room)
        PyMem_Free(c->word);
    c->word = w;
    c->cap = cap;
    return true;
}

enum { WIDEST = 1023 }; /* 16 bytes are the widest elements that are copied */

static bool add_words(struct call *c, const struct operand *a, bool out)
{
    size_t rank = (size_t)a->rank;
    if (!more_words(c, 2 + 2 * rank))
        return false;
    int64_t *w = c->word + c->n_words, width = a->itemsize < WIDEST ? a->itemsize : WIDEST;
    *w++ = a->type->kind | out << 3 | a->rank << 4 | (int64_t)(uint8_t)a->device << 12 |
           (int64_t)(uint32_t)a->device_id << 20 | (int64_t)!a->strides << 52 | width << 53;
    *w++ = (int64_t)a->dtype;
    for (size_t i = 0; i < rank; i++) {
        *w++ = a->shape[i];
        *w++ = a->strides ? a->strides[i] : 0;
    }
    c->n_words += 2 + 2 * rank;
    return true;
}

bool add_operand(struct state *s, struct call *c, PyObject *o, bool out)
{
    struct operand *a = &c->op[c->n];
    bool ok = operand_take(s, a, o) && add_words(c, a, out);
    if (out)
        c->has_out = true;
    else
        c->n++;
    if (ok && out && (a->readonly || a->type->immutable)) {
        PyErr_SetString(PyExc_ValueError, "out is read-only");
        return false;
    }
    return ok;
}

/* One array, or a dict, list or tuple of them. *names: the dict's keys (a new reference) or NULL. */
bool gather(struct state *s, struct call *c, PyObject *x, PyObject *out, PyObject **names)
{
    *names = NULL;
    if (PyDict_Check(x)) {
        *names = PyDict_Keys(x);
        c->list = PyDict_Values(x);
    } else if (PyList_Check(x) || PyTuple_Check(x)) {
        c->list = PySequence_List(x);
    }
    Py_ssize_t n = c->list ? PyList_Size(c->list) : 1;
    if (PyErr_Occurred() || !call_room(c, (int)n + 1))
        return false;
    bool ok = n > 0;
    if (!ok)
        PyErr_SetString(PyExc_ValueError, "no array was given");
    for (Py_ssize_t i = 0; i < n && ok; i++)
        ok = add_operand(s, c, c->list ? PyList_GetItem(c->list, i) : x, false);
    if (ok && out && out != Py_None)
        ok = add_operand(s, c, out, true);
    return ok;
}

/* All on one device; the stream to use there. */
bool find_device(struct state *s, struct call *c)
{
    const struct operand *a = &c->op[0];
    for (int i = 1; i < c->n + c->has_out; i++)
        if (on_gpu(&c->op[i]) != on_gpu(a) || (on_gpu(a) && c->op[i].device_id != a->device_id)) {
            PyErr_SetString(PyExc_ValueError, "the arrays lie on different devices");
            return false;
        }
    if (a->device != kDLCPU && a->device != kDLCUDAHost && !on_gpu(a)) {
        PyErr_Format(PyExc_ValueError, "memory of DLPack's device type %d is not the host's, nor CUDA's",
                     a->device);
        return false;
    }
    if (!on_gpu(a) || c->stream_given)
        return true;
    if (a->type->kind == EXCHANGE)
        return !a->type->api->current_work_stream(kDLCUDA, a->device_id, &c->stream);
    PyObject *p = PyObject_CallMethod(s->arrays, "current_stream", "O", a->object);
    c->stream = p ? PyLong_AsVoidPtr(p) : NULL;
    Py_XDECREF(p);
    return !PyErr_Occurred();
}

bool take_stream(struct state *s, struct call *c, PyObject *stream)
{
    c->stream = NULL;
    c->stream_given = stream && stream != Py_None;
    if (!c->stream_given)
        return true;
    PyObject *p = PyObject_CallMethod(s->arrays, "stream_handle", "O", stream);
    c->stream = p ? PyLong_AsVoidPtr(p) : NULL;
    Py_XDECREF(p);
    return !PyErr_Occurred();
}

/* Keyword arguments of a vectorcall: out and stream. */
bool read_keywords(struct state *s, PyObject *const *value, PyObject *kwnames, PyObject **out,
                   PyObject **stream)
{
    Py_ssize_t n = kwnames ? PyTuple_Size(kwnames) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *k = PyTuple_GetItem(kwnames, i);
        if (same_text(k, s->s_out))
            *out = value[i];
        else if (same_text(k, s->s_stream))
            *stream = value[i];
        else
            return PyErr_Format(PyExc_TypeError, "unexpected keyword argument %R", k), false;
    }
    return true;
}
