/* _core.c: the package's one C file, on the limited API of Python 3.11: arrays in, one copy, an array out.
 *
 *     operand   what a caller's array is for one call: pointer of element (0,..,0), type, shape, strides,
 * held by the buffer protocol (NumPy and all that has it) or by DLPack (PyTorch, JAX, CuPy, ..) call      the
 * operands of a call and its key: every type, shape and stride, one word each entry     a compiled chain for
 * exactly that key
 *
 * copy() makes the key, finds the entry by chain and key, or parses and compiles, makes the result and runs.
 * Everything that is slow or rare - NumPy's types, results of libraries that have no allocator, streams - is
 * asked of xtview._arrays, which is Python. State lives in the module: one a sub-interpreter. The GIL keeps
 * the tables; it is released while RELEASE bytes or more are written. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <structmember.h>

#include <xt/dlpack.h>

enum {
    RELEASE = 1 << 14, /* copies of fewer bytes take less than handing the GIL over and back */
    SETS = 1024,
    WAYS = 2,    /* of the table of entries */
    TYPES = 256, /* of arrays: more than all libraries have */
    ROOM = 8,    /* operands of a call that take no memory */
    WORDS = ROOM * (4 + 2 * 8),
};

/* How an array is looked at, by its Python type. */
enum kind { NUMPY, EXCHANGE, DLPACK, BUFFER };

struct type_info {
    PyTypeObject *type; /* owned */
    enum kind kind;
    const DLPackExchangeAPI *api; /* EXCHANGE */
    bool torch, immutable;
};

struct operand {
    PyObject *object; /* borrowed */
    const struct type_info *type;
    void *data;
    int rank;
    const int64_t *shape, *strides; /* strides: in `unit` bytes */
    int64_t unit;                   /* 1: bytes, else 0: elements */
    int64_t itemsize;
    uint64_t dtype; /* NUMPY: the dtype's address; DLPack: its DLDataType; BUFFER: its format's letter */
    PyObject *dtype_held; /* NUMPY: that dtype, owned */
    int device, device_id;
    bool readonly;
    Py_buffer buffer;  /* NUMPY, BUFFER: buffer.obj is set while it is held */
    PyObject *capsule; /* DLPACK: keeps the tensor, owned */
    DLTensor tensor;   /* EXCHANGE */
    xt_dtype code;     /* after classify() */
    bool opaque;       /* code says no more than the width */
};

struct entry {
    int refs;
    uint64_t hash;
    PyObject *chain, *names; /* owned; names NULL: x, y, z, .. */
    PyObject **held;         /* dtypes in the key, owned */
    int n_held;
    int64_t *words;
    size_t n_words;
    struct xt_kernel *kernel;
    PyObject *shape; /* of the result: a tuple */
    struct xt_end_info result;
    int64_t bytes; /* of the result, with its gaps */
    bool dense;    /* no layout of the destination was declared */
};

struct call {
    struct operand room[ROOM], *op; /* inputs, then out */
    int n;                          /* inputs */
    bool has_out;
    int64_t word_room[WORDS], *word;
    size_t n_words, cap;
    void *stream;
    bool stream_given;
    PyObject *list; /* keeps the arrays of a container, owned */
};

struct state {
    struct xt_ctx *ctx, **past; /* past: of set_threads, which another thread may be compiling in */
    int n_past;
    xt_backend host; /* for arrays in host memory */
    struct type_info type[TYPES];
    int n_types;
    struct entry *table[SETS][WAYS];
    PyObject *arrays;   /* xtview._arrays */
    PyObject *np_empty; /* NULL: NumPy has not been met */
    PyTypeObject *kernel_type, *memory_type;
    PyObject *s_out, *s_stream, *s_dtype, *s_requires_grad, *s_is_conj, *s_is_neg, *s_x;
};

static struct PyModuleDef module_def;

static struct state *state_of_type(PyTypeObject *t) { return PyType_GetModuleState(t); }

/* ------------------------------------------------------------------------------------------------ errors */

static PyObject *exception_of(xt_status s)
{
    switch (s) {
    case XT_ENOMEM:
        return PyExc_MemoryError;
    case XT_EDTYPE:
        return PyExc_TypeError;
    case XT_EDEVICE:
    case XT_ENODEVICE:
    case XT_EFORKED:
    case XT_ECOMPILE:
    case XT_EIO:
    case XT_EINTERNAL:
        return PyExc_RuntimeError;
    default:
        return PyExc_ValueError;
    }
}

/* The library's sentence; with a chain, the chain and a caret under the place. skip: bytes that were put
 * before the chain. */
static void raise_last(const char *chain, size_t skip)
{
    struct xt_error e = *xt_last_error();
    const char *text = e.message;
    if (e.column > 0 && !strncmp(text, "column ", 7) && strstr(text, ": "))
        text = strstr(text, ": ") + 2;
    size_t at = e.column > 0 ? (size_t)e.column - 1 : 0;
    if (!chain || e.column <= 0 || at < skip || at - skip > 200 || strchr(chain, '\n')) {
        PyErr_SetString(exception_of(e.status), text);
        return;
    }
    char blanks[208];
    memset(blanks, ' ', sizeof blanks);
    blanks[at - skip] = 0;
    PyErr_Format(exception_of(e.status), "%s\n    %s\n    %s^", text, chain, blanks);
}

/* ---------------------------------------------------------------------------------------------- operands */

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

static bool find_kind(struct state *s, PyTypeObject *t, struct type_info *info)
{
    PyObject *kind = PyObject_CallMethod(s->arrays, "kind_of", "O", t);
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

static const struct type_info *type_of(struct state *s, PyObject *o)
{
    PyTypeObject *t = Py_TYPE(o);
    for (int i = 0; i < s->n_types; i++)
        if (s->type[i].type == t)
            return &s->type[i];
    struct type_info info;
    if (!find_kind(s, t, &info))
        return NULL;
    if (s->n_types == TYPES) {
        PyErr_Format(PyExc_TypeError, "arrays of more than %d types", TYPES);
        return NULL;
    }
    Py_INCREF(t);
    s->type[s->n_types] = info;
    return &s->type[s->n_types++];
}

static void release(struct operand *a)
{
    if (a->buffer.obj)
        PyBuffer_Release(&a->buffer);
    Py_CLEAR(a->capsule);
    Py_CLEAR(a->dtype_held);
}

static bool take_buffer(struct operand *a, PyObject *o, int flags)
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

/* The format is one letter, or Z and one. */
static bool take_plain_buffer(struct operand *a, PyObject *o)
{
    if (!take_buffer(a, o, PyBUF_FULL_RO))
        return false;
    const char *f = a->buffer.format ? a->buffer.format : "B";
    f += *f == '@' || *f == '=' || *f == '<';
    if (a->buffer.suboffsets || !*f || strlen(f) > 2 || (f[1] && f[0] != 'Z')) {
        PyErr_Format(PyExc_TypeError, "buffers of format '%s' are not understood", a->buffer.format);
        return false;
    }
    a->dtype = (uint64_t)(f[0] | f[1] << 8);
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

static bool take(struct state *s, struct operand *a, PyObject *o)
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

static bool on_gpu(const struct operand *a) { return a->device == kDLCUDA || a->device == kDLCUDAManaged; }

static bool is_dense(const struct operand *a)
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
static bool element_strides(const struct operand *a, int64_t *st)
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
static bool classify(struct state *s, struct operand *a)
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
    if (a->code)
        return true;
    PyErr_Format(PyExc_TypeError, "%R: elements have 1, 2, 4, 8 or 16 bytes and are plain values",
                 a->dtype_held ? a->dtype_held : (PyObject *)Py_TYPE(a->object));
    return false;
}

/* Of equal codes, but not of the same type: two of NumPy's that xt knows by their width alone. */
static bool same_type(const struct operand *a, const struct operand *b)
{
    if (a->code != b->code)
        return false;
    if (!a->opaque && !b->opaque)
        return true;
    if (a->type->kind == NUMPY && b->type->kind == NUMPY)
        return PyObject_RichCompareBool(a->dtype_held, b->dtype_held, Py_EQ) == 1;
    return a->type->kind != NUMPY && b->type->kind != NUMPY && a->dtype == b->dtype;
}

/* ------------------------------------------------------------------------------------------------- calls */

static void call_start(struct call *c)
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

static void operand_start(struct operand *a)
{
    a->buffer.obj = NULL;
    a->capsule = a->dtype_held = NULL;
    a->opaque = a->readonly = false;
    a->device_id = 0;
}

static bool call_room(struct call *c, int operands)
{
    if (operands > ROOM && !(c->op = PyMem_Calloc((size_t)operands, sizeof *c->op)))
        return PyErr_NoMemory(), false;
    for (int i = 0; i < operands; i++)
        operand_start(&c->op[i]);
    return true;
}

static void call_free(struct call *c)
{
    for (int i = 0; i < c->n + c->has_out; i++)
        release(&c->op[i]);
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

static bool add_words(struct call *c, const struct operand *a, bool out)
{
    size_t rank = (size_t)a->rank;
    if (!more_words(c, 2 + 2 * rank))
        return false;
    int64_t *w = c->word + c->n_words;
    *w++ = a->type->kind | out << 3 | a->rank << 4 | (int64_t)a->device << 12 | (int64_t)a->device_id << 20 |
           (int64_t)!a->strides << 52;
    *w++ = (int64_t)a->dtype;
    for (size_t i = 0; i < rank; i++) {
        *w++ = a->shape[i];
        *w++ = a->strides ? a->strides[i] : 0;
    }
    c->n_words += 2 + 2 * rank;
    return true;
}

static bool add_operand(struct state *s, struct call *c, PyObject *o, bool out)
{
    struct operand *a = &c->op[c->n];
    bool ok = take(s, a, o) && add_words(c, a, out);
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
static bool gather(struct state *s, struct call *c, PyObject *x, PyObject *out, PyObject **names)
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
static bool find_device(struct state *s, struct call *c)
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

/* ----------------------------------------------------------------------------------------------- entries */

static void entry_unref(struct entry *e)
{
    if (!e || --e->refs)
        return;
    Py_XDECREF(e->chain);
    Py_XDECREF(e->names);
    Py_XDECREF(e->shape);
    for (int i = 0; i < e->n_held; i++)
        Py_XDECREF(e->held[i]);
    PyMem_Free(e->held);
    PyMem_Free(e->words);
    xt_kernel_free(e->kernel);
    PyMem_Free(e);
}

static uint64_t hash_words(const int64_t *w, size_t n, uint64_t h)
{
    for (size_t i = 0; i < n; i++) {
        h = (h ^ (uint64_t)w[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

static bool same_text(PyObject *a, PyObject *b) { return a == b || (a && b && PyUnicode_Compare(a, b) == 0); }

static bool same_names(PyObject *a, PyObject *b)
{
    if (!a || !b)
        return a == b;
    return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

/* Does the entry's key equal the call's? */
static bool fits_words(const struct entry *e, const struct call *c)
{
    return e->n_words == c->n_words && !memcmp(e->words, c->word, c->n_words * sizeof *c->word);
}

static bool keep_words(struct entry *e, const struct call *c)
{
    int n = c->n + c->has_out;
    int64_t *words = PyMem_Malloc(c->n_words * sizeof *words + 1);
    PyObject **held = PyMem_Calloc((size_t)n, sizeof *held);
    if (!words || !held) {
        PyMem_Free(words);
        PyMem_Free(held);
        return PyErr_NoMemory(), false;
    }
    for (int i = 0; i < e->n_held; i++)
        Py_XDECREF(e->held[i]);
    PyMem_Free(e->held);
    PyMem_Free(e->words);
    memcpy(words, c->word, c->n_words * sizeof *words);
    for (int i = 0; i < n; i++) {
        held[i] = c->op[i].dtype_held;
        Py_XINCREF(held[i]);
    }
    e->words = words;
    e->n_words = c->n_words;
    e->held = held;
    e->n_held = n;
    return true;
}

/* ---- a miss: parse, lay out, compile */

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
        if (!PyUnicode_AsUTF8AndSize(PyList_GetItem(names, i), &len))
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

static PyObject *shape_tuple(int rank, const int64_t *shape)
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
static bool lay_out_result(struct xt_graph *g, const struct call *c)
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
        PyErr_Format(PyExc_TypeError, "the result is %s, out %s", xt_dtype_name(n.dtype),
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

static struct xt_graph *make_graph(struct state *s, struct call *c, const char *chain, PyObject *names)
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

/* What an entry tells of its kernel. */
static bool describe(struct entry *e)
{
    e->result.size = sizeof e->result;
    if (xt_kernel_shape(e->kernel, -1, &e->result))
        return raise_last(NULL, 0), false;
    e->bytes = e->result.to_bytes - e->result.from_bytes;
    e->shape = shape_tuple(e->result.rank, e->result.shape);
    return e->shape != NULL;
}

static struct entry *make_entry(struct state *s, struct call *c, PyObject *chain, PyObject *names)
{
    const char *text = PyUnicode_AsUTF8AndSize(chain, NULL);
    struct xt_graph *g = text ? make_graph(s, c, text, names) : NULL;
    struct entry *e = g ? PyMem_Calloc(1, sizeof *e) : NULL;
    struct xt_compile_options opt = {.size = sizeof opt, .backend = on_gpu(&c->op[0]) ? XT_CUDA : s->host};
    if (!e) {
        xt_graph_free(g);
        return PyErr_Occurred() ? NULL : (PyErr_NoMemory(), NULL);
    }
    e->refs = 1;
    e->dense = true;
    xt_status st = XT_OK;
    bool ok = lay_out_result(g, c);
    if (ok) {
        Py_BEGIN_ALLOW_THREADS st = xt_compile(s->ctx, g, &opt, &e->kernel);
        Py_END_ALLOW_THREADS if (st) raise_last(NULL, 0);
    }
    ok = ok && !st && keep_words(e, c) && describe(e);
    xt_graph_free(g);
    if (ok) {
        Py_INCREF(chain);
        e->chain = chain;
        Py_XINCREF(names);
        e->names = names;
        return e;
    }
    entry_unref(e);
    return NULL;
}

/* A new reference. */
static struct entry *find_entry(struct state *s, struct call *c, PyObject *chain, PyObject *names)
{
    uint64_t h = hash_words(c->word, c->n_words, (uint64_t)PyObject_Hash(chain));
    struct entry **set = s->table[h % SETS];
    for (int i = 0; i < WAYS; i++) {
        struct entry *e = set[i];
        if (e && e->hash == h && fits_words(e, c) && same_text(e->chain, chain) &&
            same_names(e->names, names)) {
            e->refs++;
            return e;
        }
    }
    struct entry *e = find_device(s, c) ? make_entry(s, c, chain, names) : NULL;
    if (!e)
        return NULL;
    e->hash = h;
    e->refs++;
    struct entry *old = set[WAYS - 1];
    memmove(set + 1, set, (WAYS - 1) * sizeof *set);
    set[0] = e;
    entry_unref(old);
    return e;
}

/* ----------------------------------------------------------------------- memory that libraries take over */

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

static struct memory *memory_new(struct state *s, const struct entry *e, const struct operand *like)
{
    struct memory *m = (struct memory *)((PyObject * (*)(PyTypeObject *, Py_ssize_t))
                                             PyType_GetSlot(s->memory_type, Py_tp_alloc))(s->memory_type, 0);
    if (!m)
        return NULL;
    m->rank = e->result.rank;
    m->itemsize = (Py_ssize_t)xt_dtype_bytes(e->result.dtype);
    m->bytes = (Py_ssize_t)e->bytes;
    Py_ssize_t st = m->itemsize;
    for (int i = m->rank - 1; i >= 0; i--) {
        m->shape[i] = (Py_ssize_t)e->result.shape[i];
        m->strides[i] = st;
        st *= m->shape[i];
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
        return m;
    Py_DECREF(m);
    return (struct memory *)PyErr_NoMemory();
}

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
    return major && PyLong_Check(major) && PyLong_AsLong(major) >= 1;
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
static PyType_Spec memory_spec = {"xtview._core.Memory", sizeof(struct memory), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};

/* ------------------------------------------------------------------------------------------------ running */

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

static bool new_numpy(struct state *s, const struct entry *e, const struct operand *like, struct result *r)
{
    r->array = PyObject_CallFunctionObjArgs(s->np_empty, e->shape, like->dtype_held, NULL);
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
        if (!r->array || !take(s, &r->op, r->array))
            return false;
        r->data = r->op.data;
        return true;
    }
    r->array = (PyObject *)memory_new(s, e, like);
    r->data = r->array ? ((struct memory *)r->array)->data : NULL;
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
    release(&r->op);
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
static PyObject *finish(struct state *s, const struct entry *e, struct call *c)
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

static bool take_stream(struct state *s, struct call *c, PyObject *stream)
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

static PyObject *copy_with(struct state *s, PyObject *x, PyObject *chain, PyObject *out, PyObject *stream)
{
    struct call c;
    PyObject *names = NULL, *array = NULL;
    call_start(&c);
    if (take_stream(s, &c, stream) && gather(s, &c, x, out, &names)) {
        struct entry *e = find_entry(s, &c, chain, names);
        if (e && (!on_gpu(&c.op[0]) || find_device(s, &c)))
            array = finish(s, e, &c);
        entry_unref(e);
    }
    Py_XDECREF(names);
    call_free(&c);
    return array;
}

/* ------------------------------------------------------------------------------------- module's functions */

/* Keyword arguments of a vectorcall: out and stream. */
static bool read_keywords(struct state *s, PyObject *const *value, PyObject *kwnames, PyObject **out,
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
        PyErr_Format(PyExc_TypeError, "the chain is a string, not %R", Py_TYPE(chain));
        return NULL;
    }
    return copy_with(s, args[0], chain, out, stream);
}

static PyObject *core_ascontiguousarray(PyObject *module, PyObject *x)
{
    struct state *s = PyModule_GetState(module);
    struct operand a;
    memset(&a, 0, sizeof a);
    bool ok = take(s, &a, x), dense = ok && is_dense(&a);
    release(&a);
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
    const char *text = PyUnicode_AsUTF8AndSize(chain, NULL);
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

static void forget(struct state *s)
{
    for (int i = 0; i < SETS; i++)
        for (int j = 0; j < WAYS; j++) {
            struct entry *e = s->table[i][j];
            s->table[i][j] = NULL;
            entry_unref(e);
        }
}

static PyObject *core_set_threads(PyObject *module, PyObject *arg)
{
    struct state *s = PyModule_GetState(module);
    struct xt_options o = {.size = sizeof o, .threads = (int)PyLong_AsLong(arg)};
    struct xt_ctx *ctx;
    if (PyErr_Occurred())
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
    forget(s);
    Py_RETURN_NONE;
}

/* ----------------------------------------------------------------------------------------------- kernels */

/* Calls by vectorcall came into the limited API with 3.12; 3.11 has the same bit and the same signature. */
typedef PyObject *vector_call(PyObject *self, PyObject *const *args, size_t n, PyObject *kwnames);
#define HAVE_VECTORCALL (1UL << 11)
#define ARGUMENTS       (~((size_t)1 << (8 * sizeof(size_t) - 1))) /* of n: the top bit is a flag */

struct kernel {
    PyObject_HEAD vector_call *call;
    struct entry *entry; /* its words are those of the last call */
    int n_inputs;
};

static void kernel_dealloc(PyObject *self)
{
    PyTypeObject *t = Py_TYPE(self);
    entry_unref(((struct kernel *)self)->entry);
    ((void (*)(void *))PyType_GetSlot(t, Py_tp_free))(self);
    Py_DECREF(t);
}

static bool fail_end(const char *what, const struct xt_end_info *e, const struct operand *a)
{
    int64_t st[XT_MAX_RANK] = {0}, dense = 1;
    for (int i = a->rank - 1; i >= 0; i--) {
        st[i] = !a->strides ? dense : a->unit ? a->strides[i] / a->itemsize : a->strides[i];
        dense *= a->shape[i];
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
    int64_t dense = 1;
    if (!classify(s, a))
        return false;
    if (xt_kernel_shape(k->entry->kernel, input, &e))
        return raise_last(NULL, 0), false;
    const char *name = input < 0 ? "out" : e.name;
    if (a->code != e.dtype || a->rank != e.rank)
        return fail_end(name, &e, a);
    for (int i = a->rank - 1; i >= 0; i--) {
        int64_t st = a->strides ? a->strides[i] : dense * (a->unit ? a->itemsize : 1);
        if (a->shape[i] != e.shape[i] ||
            (a->shape[i] > 1 && st != e.strides[i] * (a->unit ? a->itemsize : 1)))
            return fail_end(name, &e, a);
        dense *= a->shape[i];
    }
    return true;
}

static bool check_call(struct state *s, struct kernel *k, struct call *c)
{
    if (c->n != k->n_inputs) {
        PyErr_Format(PyExc_TypeError, "the kernel takes %d arrays, %d given", k->n_inputs, c->n);
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

static PyObject *kernel_vectorcall(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames)
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
        array = finish(s, e, &c);
        entry_unref(e);
    } else if (ok && !n) {
        PyErr_Format(PyExc_TypeError, "the kernel takes %d arrays, none given", k->n_inputs);
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
    size_t need = 0;
    if (xt_explain(k->entry->kernel, flags, NULL, 0, &need))
        return raise_last(NULL, 0), NULL;
    char *text = PyMem_Malloc(need);
    if (!text)
        return PyErr_NoMemory();
    xt_explain(k->entry->kernel, flags, text, need, NULL);
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
static PyType_Spec kernel_spec = {"xtview.Kernel", sizeof(struct kernel), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | HAVE_VECTORCALL,
                                  kernel_slots};

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
    else if (describe(k->entry)) return (PyObject *)k;
    Py_DECREF(k);
    return NULL;
}

static PyObject *core_compile(PyObject *module, PyObject *args, PyObject *kw)
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
    const char *text = PyUnicode_AsUTF8AndSize(chain, NULL);
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

/* ------------------------------------------------------------------------------------------------- module */

static PyMethodDef methods[] = {
    {"copy", (PyCFunction)(void (*)(void))core_copy, METH_FASTCALL | METH_KEYWORDS,
     "copy(x, chain='x', out=None, stream=None)\n--\n\n"
     "The result of the chain, in one copy. x: an array, or a dict, list or tuple of arrays."},
    {"ascontiguousarray", core_ascontiguousarray, METH_O,
     "ascontiguousarray(x)\n--\n\nx itself when it is contiguous, else a contiguous copy."},
    {"describe", core_describe, METH_VARARGS, NULL},
    {"compile", (PyCFunction)(void (*)(void))core_compile, METH_VARARGS | METH_KEYWORDS, NULL},
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
    forget(s);
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
