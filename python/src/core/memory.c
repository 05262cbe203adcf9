/* memory.c: host memory of the package's own, which libraries without an allocator take over. */
#include "core.h"

/* Host memory of the package's own: exports a buffer and a DLPack tensor. */
struct memory {
    PyObject_HEAD void *data, *block;
    int rank;
    Py_ssize_t shape[XT_MAX_RANK], strides[XT_MAX_RANK];
    Py_ssize_t itemsize, bytes;
    DLDataType dtype;
    char format[4];
};

enum { ALIGN = 64 }; /* what JAX wants to take memory over */

static void memory_dealloc(PyObject *self)
{
    PyTypeObject *t = Py_TYPE(self);
    free(((struct memory *)self)->block);
    ((void (*)(void *))PyType_GetSlot(t, Py_tp_free))(self);
    Py_DECREF(t);
}

PyObject *memory_new(struct state *s, const struct entry *e, const struct operand *like)
{
    struct memory *m = (struct memory *)((PyObject * (*)(PyTypeObject *, Py_ssize_t))
                                             PyType_GetSlot(s->memory_type, Py_tp_alloc))(s->memory_type, 0);
    if (!m)
        return NULL;
    m->rank = e->result.rank;
    m->itemsize = (Py_ssize_t)xt_dtype_bytes(e->result.dtype);
    m->bytes = (Py_ssize_t)e->bytes;
    size_t st = (size_t)m->itemsize; /* may wrap where an extent is 0 */
    for (int i = m->rank - 1; i >= 0; i--) {
        m->shape[i] = (Py_ssize_t)e->result.shape[i];
        m->strides[i] = (Py_ssize_t)st;
        st *= (size_t)m->shape[i];
    }
    if (like->type->kind == BUFFER) {
        m->format[0] = (char)like->dtype;
        m->format[1] = (char)(like->dtype >> 8);
    } else {
        memcpy(&m->dtype, &like->dtype, sizeof m->dtype);
    }
    m->block = malloc((size_t)m->bytes + ALIGN);
    m->data = (void *)(((uintptr_t)m->block + ALIGN - 1) / ALIGN * ALIGN);
    if (m->block)
        return (PyObject *)m;
    Py_DECREF(m);
    return PyErr_NoMemory();
}

void *memory_data(PyObject *memory) { return ((struct memory *)memory)->data; }

static int memory_getbuffer(PyObject *self, Py_buffer *b, int flags)
{
    struct memory *m = (struct memory *)self;
    bool shaped = flags & PyBUF_ND;
    *b = (Py_buffer){.buf = m->data,
                     .len = m->bytes,
                     .itemsize = m->itemsize,
                     .ndim = shaped ? m->rank : 1,
                     .format = flags & PyBUF_FORMAT ? m->format : NULL,
                     .shape = shaped ? m->shape : NULL,
                     .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? m->strides : NULL};
    Py_INCREF(self);
    b->obj = self;
    return 0;
}

/* One block: the tensor, of the form that was asked for, its shape and its strides. */
struct exported {
    union {
        DLManagedTensorVersioned now;
        DLManagedTensor old;
    } form;
    int64_t shape[XT_MAX_RANK], strides[XT_MAX_RANK];
};

static void exported_free(void *x, void *memory)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_XDECREF((PyObject *)memory);
    PyGILState_Release(gil);
    free(x);
}

static void now_free(DLManagedTensorVersioned *t) { exported_free(t, t->manager_ctx); }
static void old_free(DLManagedTensor *t) { exported_free(t, t->manager_ctx); }

/* A capsule that nobody has taken: its name is as it was. */
static void capsule_free(PyObject *c)
{
    if (PyCapsule_IsValid(c, "dltensor_versioned"))
        now_free(PyCapsule_GetPointer(c, "dltensor_versioned"));
    else if (PyCapsule_IsValid(c, "dltensor"))
        old_free(PyCapsule_GetPointer(c, "dltensor"));
}

/* Who asks without max_version knows only the old form. */
static bool asks_versioned(PyObject *kw)
{
    PyObject *v = kw ? PyDict_GetItemString(kw, "max_version") : NULL;
    PyObject *major = v && PyTuple_Check(v) ? PyTuple_GetItem(v, 0) : NULL;
    bool asks = major && PyLong_Check(major) && PyLong_AsLong(major) >= 1;
    PyErr_Clear();
    return asks;
}

static PyObject *memory_dlpack(PyObject *self, PyObject *args, PyObject *kw)
{
    struct memory *m = (struct memory *)self;
    struct exported *x = calloc(1, sizeof *x);
    if (!x)
        return PyErr_NoMemory();
    for (int i = 0; i < m->rank; i++) {
        x->shape[i] = m->shape[i];
        x->strides[i] = m->strides[i] / m->itemsize;
    }
    DLTensor t = {m->data, {kDLCPU, 0}, m->rank, m->dtype, x->shape, x->strides, 0};
    bool now = asks_versioned(kw);
    if (now)
        x->form.now = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                                 .manager_ctx = self,
                                                 .deleter = now_free,
                                                 .dl_tensor = t};
    else
        x->form.old = (DLManagedTensor){.dl_tensor = t, .manager_ctx = self, .deleter = old_free};
    Py_INCREF(self);
    PyObject *c = PyCapsule_New(x, now ? "dltensor_versioned" : "dltensor", capsule_free);
    if (!c)
        exported_free(x, self);
    return c;
}

static PyObject *memory_device(PyObject *self, PyObject *unused) { return Py_BuildValue("(ii)", kDLCPU, 0); }

static PyMethodDef memory_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))memory_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", memory_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot memory_slots[] = {
    {Py_tp_dealloc, memory_dealloc},
    {Py_tp_methods, memory_methods},
    {Py_bf_getbuffer, memory_getbuffer},
    {0, NULL},
};
PyType_Spec memory_spec = {"xtview._core.Memory", sizeof(struct memory), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};
