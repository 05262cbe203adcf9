/* core.h: the package's C part, on the limited API of Python 3.11: arrays in, one copy, an array out.
 *
 *     operand   what a caller's array is for one call: pointer of element (0,..,0), type, shape, strides,
 *               held by the buffer protocol (NumPy and all that has it) or by DLPack (PyTorch, JAX, CuPy, ..)
 *     call      the operands of a call and its key: every type, shape and stride, one word each
 *     entry     a compiled chain for exactly that key
 *
 * copy() makes the key, finds the entry by chain and key, or parses and compiles, makes the result and runs.
 * Everything that is slow or rare - NumPy's types, results of libraries that have no allocator, streams - is
 * asked of xtview._arrays, which is Python. State lives in the module: one a sub-interpreter. The GIL keeps
 * the tables; it is released while RELEASE bytes or more are written. What returns bool is false, and what
 * returns a pointer NULL, with Python's error set. */
#ifndef XTVIEW_CORE_H
#define XTVIEW_CORE_H

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
    TYPES = 256, /* of arrays that are remembered: more than all libraries have */
    KINDS = 32,  /* and how the others are looked at */
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

/* Whole large pages; block NULL: none. */
struct pages {
    void *block;
    size_t bytes;
};

struct state {
    struct xt_ctx *ctx, **past; /* past: of set_threads, which another thread may be compiling in */
    int n_past;
    xt_backend host;                           /* for arrays in host memory */
    struct type_info type[TYPES], rest[KINDS]; /* rest: without a type */
    int n_types;
    struct entry *table[SETS][WAYS];
    PyObject *arrays;   /* xtview._arrays */
    PyObject *np_empty; /* NULL: NumPy has not been met */
    PyTypeObject *kernel_type, *memory_type;
    struct pages kept; /* of the last large result that was freed */
    PyObject *s_out, *s_stream, *s_dtype, *s_requires_grad, *s_is_conj, *s_is_neg, *s_x;
};

/* Calls by vectorcall came into the limited API with 3.12; 3.11 has the same bit and the same signature. */
typedef PyObject *vector_call(PyObject *self, PyObject *const *args, size_t n, PyObject *kwnames);
#define HAVE_VECTORCALL (1UL << 11)
#define ARGUMENTS       (~((size_t)1 << (8 * sizeof(size_t) - 1))) /* of n: the top bit is a flag */

struct kernel {
    PyObject_HEAD vector_call *call;
    struct entry *entry; /* its words are those of the last call */
    int n_inputs;
};

static inline struct state *state_of_type(PyTypeObject *t) { return PyType_GetModuleState(t); }

/* ---- errors.c */
/* The library's last sentence; with a chain, the chain and a caret under the place. skip: bytes that were put
 * before the chain. */
void raise_last(const char *chain, size_t skip);

/* ---- types.c */
/* How arrays of o's type are looked at; borrowed, as long as the module. */
const struct type_info *type_of(struct state *s, PyObject *o);
/* Sets code and opaque. */
bool classify(struct state *s, struct operand *a);
/* Of equal codes, and of one type where xt knows it by its width alone. */
bool same_type(const struct operand *a, const struct operand *b);

/* ---- operand.c */
/* What operand_take held. */
void operand_release(struct operand *a);
/* o's buffer alone. */
bool take_buffer(struct operand *a, PyObject *o, int flags);
/* a becomes o, which is borrowed; to be released also after a failure. */
bool operand_take(struct state *s, struct operand *a, PyObject *o);
bool on_gpu(const struct operand *a);
bool is_dense(const struct operand *a);
/* Strides in elements, a->rank of them; false: they are not whole. */
bool element_strides(const struct operand *a, int64_t *st);

/* ---- call.c */
/* A call without arrays; call_free after it, whatever fails. */
void call_start(struct call *c);
void operand_start(struct operand *a);
/* For so many operands, out included. */
bool call_room(struct call *c, int operands);
void call_free(struct call *c);
/* The next input, or out, which comes last. */
bool add_operand(struct state *s, struct call *c, PyObject *o, bool out);
/* x: one array, or a dict, list or tuple of them. *names: the dict's keys (a new reference) or NULL. */
bool gather(struct state *s, struct call *c, PyObject *x, PyObject *out, PyObject **names);
/* All on one device; the stream to use there. */
bool find_device(struct state *s, struct call *c);
/* NULL and None: the library's current one. */
bool take_stream(struct state *s, struct call *c, PyObject *stream);
/* Keyword arguments of a vectorcall: out and stream, borrowed. */
bool read_keywords(struct state *s, PyObject *const *value, PyObject *kwnames, PyObject **out,
                   PyObject **stream);

/* ---- graph.c */
/* A chain's text, which lives as long as the chain. */
const char *chain_text(PyObject *chain);
/* A new tuple. */
PyObject *shape_tuple(int rank, const int64_t *shape);
/* The destination becomes that of out. */
bool lay_out_result(struct xt_graph *g, const struct call *c);
/* The chain on the call's inputs, with their layouts; freed by xt_graph_free. */
struct xt_graph *make_graph(struct state *s, struct call *c, const char *chain, PyObject *names);

/* ---- entry.c */
void entry_unref(struct entry *e);
bool same_text(PyObject *a, PyObject *b);
/* Does the entry's key equal the call's? */
bool fits_words(const struct entry *e, const struct call *c);
/* The entry's key becomes the call's. */
bool keep_words(struct entry *e, const struct call *c);
/* What an entry tells of its kernel: shape, bytes. */
bool entry_describe(struct entry *e);
/* Found, or compiled: a new reference. */
struct entry *find_entry(struct state *s, struct call *c, PyObject *chain, PyObject *names);
/* The whole table. */
void entries_forget(struct state *s);

/* ---- memory.c */
/* Dense memory for e's result, of the element type of `like`; for NumPy plain bytes. From LARGE on the pages
 * of the last such memory that was freed, where they are enough and no more than twice as many. */
enum { LARGE = 32 << 20 /* below, malloc keeps what was freed itself */ };
PyObject *memory_new(struct state *s, const struct entry *e, const struct operand *like);
void *memory_data(PyObject *memory);
extern PyType_Spec memory_spec;

/* ---- result.c */
/* Runs the call, compiled: a new reference to out or to a new array. */
PyObject *call_finish(struct state *s, const struct entry *e, struct call *c);
/* xt.copy. out, stream: NULL or None where not given. */
PyObject *copy_with(struct state *s, PyObject *x, PyObject *chain, PyObject *out, PyObject *stream);

/* ---- kernel.c */
PyObject *kernel_vectorcall(PyObject *self, PyObject *const *args, size_t nargs, PyObject *kwnames);
extern PyType_Spec kernel_spec;

/* ---- compile.c */
PyObject *core_compile(PyObject *module, PyObject *args, PyObject *kw);

/* ---- files.c */
PyObject *core_run_files(PyObject *module, PyObject *args);

#endif
