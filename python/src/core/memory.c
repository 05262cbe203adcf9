/* memory.c: host memory of the package's own, which libraries without an allocator take over. */
#define _DEFAULT_SOURCE /* madvise */
#include "core.h"

#include <sys/mman.h>

/* Host memory of the package's own: exports a buffer and a DLPack tensor. */
struct memory {
    PyObject_HEAD void *data, *block;
    size_t large; /* bytes of block, where it is of large pages; else 0 */
    int rank;
    Py_ssize_t shape[XT_MAX_RANK], strides[XT_MAX_RANK];
    Py_ssize_t itemsize, bytes;
    DLDataType dtype;
    char format[4];
};

enum { ALIGN = 64 }; /* what JAX wants to take memory over */

/* ---- large pages: the system clears each before it gives it away, which takes longer than a copy to it. So
 * the last that were freed are kept for the next result, but for the system, which may take them back as long
 * as nothing is written to them. */

enum { PAGE = 2 << 20, KEPT_MOST = 1 << 30 };

static struct pages new_pages(struct state *s, size_t bytes)
{
    struct pages p = s->kept;
    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    s->kept.block = NULL;
    if (p.block && p.bytes >= bytes && p.bytes / 2 <= bytes)
        return p;
    free(p.block);
    p = (struct pages){aligned_alloc(PAGE, bytes), bytes};
    if (p.block)
        madvise(p.block, bytes, MADV_HUGEPAGE);
    return p;
}

static void keep_pages(struct state *s, struct pages p)
{
    if (s && p.block && p.bytes <= KEPT_MOST && !madvise(p.block, p.bytes, MADV_FREE)) {
        void *before = s->kept.block;
        s->kept = p;
        p.block = before;
    }
    free(p.block);
}

static void memory_dealloc(PyObject *self)
{
    PyTypeObject *t = Py_TYPE(self);
    struct memory *m = (struct memory *)self;
    if (m->large)
        keep_pages(state_of_type(t), (struct pages){m->block, m->large});
    else
        free(m->block);
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
    if (like->type->kind == NUMPY) {
        m->rank = 1;
        m->itemsize = m->strides[0] = 1;
        m->shape[0] = m->bytes;
        m->format[0] = 'B';
    } else if (like->type->kind == BUFFER) {
        m->format[0] = (char)like->dtype;
        m->format[1] = (char)(like->dtype >> 8);
    } else {
        memcpy(&m->dtype, &like->dtype, sizeof m->dtype);
    }
    if (m->bytes >= LARGE) {
        struct pages p = new_pages(s, (size_t)m->bytes);
        m->block = p.block;
        m->large = p.bytes;
    } else {
        m->block = malloc((size_t)m->bytes + ALIGN);
    }
    m->data = (void *)(((uintptr_t)m->block + ALIGN - 1) / ALIGN * ALIGN);
    if (m->block)
        return (PyObject *)m;
    PyErr_Format(PyExc_MemoryError, "no memory for a result of %zd bytes", m->bytes);
    Py_DECREF(m);
    return NULL;
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
