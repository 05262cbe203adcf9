/* result.c: memory of a result, the run, and the array that it becomes. */
#include "core.h"

static void set_error(void *unused, const char *kind, const char *message)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyErr_SetString(strcmp(kind, "MemoryError") ? PyExc_RuntimeError : PyExc_MemoryError, message);
    PyGILState_Release(gil);
}

/* A result in the making: memory to write to, and what becomes the caller's array. */
struct result {
    PyObject *array;                 /* owned */
    DLManagedTensorVersioned *fresh; /* EXCHANGE: owned until it becomes an array */
    struct operand op;               /* NUMPY, or an array that the library made: holds its buffer */
    void *data;
};

/* NumPy's own large arrays begin 16 bytes behind a line of memory, so that each store of whole lines would
 * write two. */
enum { ALIGNED = 1 << 20, LINE = 64 };

/* numpy.empty, beginning with a line of memory. */
static PyObject *new_on_lines(struct state *s, const struct entry *e, const struct operand *like)
{
    PyObject *array = NULL,
             *block = PyObject_CallFunction(s->np_empty, "n", (Py_ssize_t)(e->bytes + LINE) / 8 + 1);
    Py_buffer b;
    if (block && !PyObject_GetBuffer(block, &b, PyBUF_SIMPLE)) {
        array = PyObject_CallFunction((PyObject *)Py_TYPE(block), "OOOn", e->shape, like->dtype_held, block,
                                      (Py_ssize_t)(-(uintptr_t)b.buf % LINE));
        PyBuffer_Release(&b);
    }
    Py_XDECREF(block);
    return array;
}

/* An array in memory of the package's own. */
static PyObject *new_in_pages(struct state *s, const struct entry *e, const struct operand *like)
{
    PyObject *none = PyObject_CallFunction(s->np_empty, "i", 0), *array = NULL;
    PyObject *memory = none ? memory_new(s, e, like) : NULL;
    if (memory)
        array = PyObject_CallFunction((PyObject *)Py_TYPE(none), "OOO", e->shape, like->dtype_held, memory);
    Py_XDECREF(memory);
    Py_XDECREF(none);
    return array;
}

static bool new_numpy(struct state *s, const struct entry *e, const struct operand *like, struct result *r)
{
    r->array = e->bytes < ALIGNED
                   ? PyObject_CallFunctionObjArgs(s->np_empty, e->shape, like->dtype_held, NULL)
               : e->bytes < LARGE ? new_on_lines(s, e, like)
                                  : new_in_pages(s, e, like);
    if (!r->array || !take_buffer(&r->op, r->array, PyBUF_STRIDES))
        return false;
    r->data = r->op.data;
    return true;
}

static bool new_exchange(const struct entry *e, const struct operand *like, struct result *r)
{
    DLTensor prototype = {.device = like->tensor.device,
                          .ndim = e->result.rank,
                          .dtype = like->tensor.dtype,
                          .shape = (int64_t *)(uintptr_t)e->result.shape,
                          .strides = (int64_t *)(uintptr_t)e->result.strides};
    if (like->type->api->managed_tensor_allocator(&prototype, &r->fresh, NULL, set_error))
        return false;
    r->data = xt_dl_pointer(&r->fresh->dl_tensor);
    return true;
}

/* Of memory of the package's own, which the library takes over when it is written; on a GPU, of the
 * library's. */
static bool new_other(struct state *s, const struct entry *e, const struct operand *like, struct result *r)
{
    if (on_gpu(like)) {
        r->array = PyObject_CallMethod(s->arrays, "empty_like", "OO", like->object, e->shape);
        if (!r->array || !operand_take(s, &r->op, r->array))
            return false;
        r->data = r->op.data;
        return true;
    }
    r->array = memory_new(s, e, like);
    r->data = r->array ? memory_data(r->array) : NULL;
    return r->array != NULL;
}

static bool new_result(struct state *s, const struct entry *e, const struct operand *like, struct result *r)
{
    switch (like->type->kind) {
    case NUMPY:
        return new_numpy(s, e, like, r);
    case EXCHANGE:
        return new_exchange(e, like, r);
    default:
        return new_other(s, e, like, r);
    }
}

/* Written: the memory becomes an array. NULL: it could not. */
static PyObject *hand_over(struct state *s, const struct operand *like, struct result *r)
{
    void *made = NULL;
    if (like->type->kind == EXCHANGE) {
        DLManagedTensorVersioned *fresh = r->fresh;
        r->fresh = NULL; /* stolen */
        return like->type->api->managed_tensor_to_py_object_no_sync(fresh, &made) ? NULL : made;
    }
    if (like->type->kind == BUFFER)
        return PyMemoryView_FromObject(r->array);
    if (like->type->kind == DLPACK && !on_gpu(like))
        return PyObject_CallMethod(s->arrays, "take_over", "OO", r->array, like->object);
    PyObject *array = r->array;
    r->array = NULL;
    return array;
}

static void result_free(struct result *r)
{
    operand_release(&r->op);
    Py_XDECREF(r->array);
    if (r->fresh && r->fresh->deleter)
        r->fresh->deleter(r->fresh);
}

static bool run(const struct entry *e, const struct call *c, void *dst)
{
    const void *room[ROOM], **src = room;
    xt_status st;
    if (c->n > ROOM && !(src = PyMem_Malloc((size_t)c->n * sizeof *src)))
        return PyErr_NoMemory(), false;
    for (int i = 0; i < c->n; i++)
        src[i] = c->op[i].data;
    if (e->bytes < RELEASE) {
        st = xt_run(e->kernel, dst, src, c->stream);
    } else {
        Py_BEGIN_ALLOW_THREADS st = xt_run(e->kernel, dst, src, c->stream);
        Py_END_ALLOW_THREADS
    }
    if (src != room)
        PyMem_Free(src);
    if (st)
        raise_last(NULL, 0);
    return st == XT_OK;
}

/* The call, compiled: a new reference to out or to a new array. */
PyObject *call_finish(struct state *s, const struct entry *e, struct call *c)
{
    const struct operand *like = &c->op[0];
    if (c->has_out) {
        if (e->bytes && !run(e, c, c->op[c->n].data))
            return NULL;
        Py_INCREF(c->op[c->n].object);
        return c->op[c->n].object;
    }
    struct result r;
    r.array = NULL;
    r.fresh = NULL;
    operand_start(&r.op);
    PyObject *array = NULL;
    if (new_result(s, e, like, &r) && (!e->bytes || run(e, c, r.data)))
        array = hand_over(s, like, &r);
    result_free(&r);
    return array;
}

PyObject *copy_with(struct state *s, PyObject *x, PyObject *chain, PyObject *out, PyObject *stream)
{
    struct call c;
    PyObject *names = NULL, *array = NULL;
    call_start(&c);
    if (take_stream(s, &c, stream) && gather(s, &c, x, out, &names)) {
        struct entry *e = find_entry(s, &c, chain, names);
        if (e && (!on_gpu(&c.op[0]) || find_device(s, &c)))
            array = call_finish(s, e, &c);
        entry_unref(e);
    }
    Py_XDECREF(names);
    call_free(&c);
    return array;
}
