/* operand.c: a caller's array for the time of a call: NumPy's, a tensor of DLPack, a buffer. */
#include "core.h"

void operand_release(struct operand *a)
{
    if (a->buffer.obj)
        PyBuffer_Release(&a->buffer);
    Py_CLEAR(a->capsule);
    Py_CLEAR(a->dtype_held);
}

bool take_buffer(struct operand *a, PyObject *o, int flags)
{
    if (PyObject_GetBuffer(o, &a->buffer, flags))
        return false;
    const Py_buffer *b = &a->buffer;
    a->data = b->buf;
    a->rank = b->ndim;
    a->shape = (const int64_t *)b->shape;
    a->strides = (const int64_t *)b->strides;
    a->unit = 1;
    a->itemsize = b->itemsize;
    a->device = kDLCPU;
    a->readonly = b->readonly;
    return true;
}

static bool take_numpy(struct state *s, struct operand *a, PyObject *o)
{
    if (!take_buffer(a, o, PyBUF_STRIDES))
        return false;
    a->dtype_held = PyObject_GetAttr(o, s->s_dtype);
    a->dtype = (uint64_t)(uintptr_t)a->dtype_held;
    return a->dtype_held != NULL;
}

/* Results have formats without a mark: "l" is a long, "<l" has 4 bytes. */
static char native_letter(char c, int64_t bytes)
{
    return bytes != 4 ? c : c == 'l' ? 'i' : c == 'L' ? 'I' : c;
}

/* The format is one letter, or Z and one. */
static bool take_plain_buffer(struct operand *a, PyObject *o)
{
    if (!take_buffer(a, o, PyBUF_FULL_RO))
        return false;
    const char *f = a->buffer.format ? a->buffer.format : "B";
    f += *f == '@' || *f == '=' || *f == '<';
    if (a->buffer.suboffsets || !*f || strlen(f) > 2 || (f[1] && f[0] != 'Z')) {
        PyErr_Format(PyExc_TypeError, "buffers of format '%s' are not understood", f);
        return false;
    }
    a->dtype = (uint64_t)(native_letter(f[0], a->itemsize) | f[1] << 8);
    return true;
}

static void take_tensor(struct operand *a, const DLTensor *t)
{
    a->data = xt_dl_pointer(t);
    a->rank = t->ndim;
    a->shape = t->shape;
    a->strides = t->strides;
    a->unit = 0;
    a->itemsize = t->dtype.bits * t->dtype.lanes / 8;
    a->device = (int)t->device.device_type;
    a->device_id = t->device.device_id;
    a->dtype = 0;
    memcpy(&a->dtype, &t->dtype, sizeof t->dtype);
}

/* PyTorch's tensors say some things that a pointer and strides do not. */
static bool check_torch(struct state *s, const struct operand *a, PyObject *o)
{
    PyObject *grad = PyObject_GetAttr(o, s->s_requires_grad);
    bool wants = grad == Py_True;
    Py_XDECREF(grad);
    if (!grad)
        return false;
    if (wants) {
        PyErr_SetString(PyExc_ValueError,
                        "the tensor requires grad, and copies have no gradient: give x.detach()");
        return false;
    }
    int code = a->tensor.dtype.code;
    if (code != kDLFloat && code != kDLComplex)
        return true;
    PyObject *neg = PyObject_CallMethodObjArgs(o, s->s_is_neg, NULL);
    PyObject *conj = neg && code == kDLComplex ? PyObject_CallMethodObjArgs(o, s->s_is_conj, NULL) : NULL;
    bool lazy = neg == Py_True || conj == Py_True;
    Py_XDECREF(neg);
    Py_XDECREF(conj);
    if (lazy)
        PyErr_SetString(PyExc_ValueError,
                        "the tensor is lazily conjugated or negated: give x.resolve_conj().resolve_neg()");
    return !PyErr_Occurred();
}

static bool take_exchange(struct state *s, struct operand *a, PyObject *o)
{
    if (a->type->api->dltensor_from_py_object_no_sync(o, &a->tensor))
        return false;
    take_tensor(a, &a->tensor);
    return !a->type->torch || check_torch(s, a, o);
}

/* The capsule is not consumed: when it goes, so does the tensor. */
static bool take_dlpack(struct state *s, struct operand *a, PyObject *o)
{
    a->capsule = PyObject_CallMethod(s->arrays, "capsule_of", "O", o);
    if (!a->capsule)
        return false;
    if (PyCapsule_IsValid(a->capsule, "dltensor_versioned")) {
        const DLManagedTensorVersioned *m = PyCapsule_GetPointer(a->capsule, "dltensor_versioned");
        if (m->version.major != DLPACK_MAJOR_VERSION) {
            PyErr_Format(PyExc_ValueError, "DLPack %u.%u is not understood", m->version.major,
                         m->version.minor);
            return false;
        }
        a->readonly = m->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
        take_tensor(a, &m->dl_tensor);
        return true;
    }
    const DLManagedTensor *m = PyCapsule_GetPointer(a->capsule, "dltensor");
    if (m)
        take_tensor(a, &m->dl_tensor);
    return m != NULL;
}

bool operand_take(struct state *s, struct operand *a, PyObject *o)
{
    a->object = o;
    a->type = type_of(s, o);
    if (!a->type)
        return false;
    bool ok;
    switch (a->type->kind) {
    case NUMPY:
        ok = take_numpy(s, a, o);
        break;
    case EXCHANGE:
        ok = take_exchange(s, a, o);
        break;
    case DLPACK:
        ok = take_dlpack(s, a, o);
        break;
    default:
        ok = take_plain_buffer(a, o);
        break;
    }
    if (ok && (a->rank < 0 || a->rank > XT_MAX_RANK)) {
        PyErr_Format(PyExc_ValueError, "rank %d is not in [0,%d]", a->rank, XT_MAX_RANK);
        return false;
    }
    return ok;
}

bool on_gpu(const struct operand *a) { return a->device == kDLCUDA || a->device == kDLCUDAManaged; }

bool is_dense(const struct operand *a)
{
    uint64_t st = (uint64_t)(a->unit ? a->itemsize : 1); /* may wrap where an extent is 0 */
    if (!a->strides)
        return true;
    for (int i = a->rank - 1; i >= 0; i--) {
        if (a->shape[i] == 0)
            return true;
        if (a->shape[i] != 1 && (uint64_t)a->strides[i] != st)
            return false;
        st *= (uint64_t)a->shape[i];
    }
    return true;
}

/* Strides in elements; false: they are not. */
bool element_strides(const struct operand *a, int64_t *st)
{
    for (int i = 0; i < a->rank; i++) {
        st[i] = a->unit ? a->strides[i] / a->itemsize : a->strides[i];
        if (a->unit && a->shape[i] > 1 && a->strides[i] % a->itemsize) {
            PyErr_Format(PyExc_ValueError, "stride %lld of axis %d is no multiple of the %lld-byte elements",
                         (long long)a->strides[i], i, (long long)a->itemsize);
            return false;
        }
    }
    return true;
}
