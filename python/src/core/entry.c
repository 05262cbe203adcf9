/* entry.c: the table of compiled chains: an entry is a chain compiled for exactly one key. */
#include "core.h"

/* What goes may run Python: nothing refers to the list any more. */
static void forget_held(PyObject **held, int n)
{
    for (int i = 0; i < n; i++)
        Py_XDECREF(held[i]);
    PyMem_Free(held);
}

void entry_unref(struct entry *e)
{
    if (!e || --e->refs)
        return;
    Py_XDECREF(e->chain);
    Py_XDECREF(e->names);
    Py_XDECREF(e->shape);
    forget_held(e->held, e->n_held);
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

bool same_text(PyObject *a, PyObject *b) { return a == b || (a && b && PyUnicode_Compare(a, b) == 0); }

/* Lists of an entry's names, which are text, and of a call's. Runs no Python, which could drop the entry. */
static bool same_names(PyObject *a, PyObject *b)
{
    if (!a || !b)
        return a == b;
    Py_ssize_t n = PyList_Size(a);
    bool same = n == PyList_Size(b);
    for (Py_ssize_t i = 0; i < n && same; i++)
        same = PyUnicode_Check(PyList_GetItem(b, i)) && same_text(PyList_GetItem(a, i), PyList_GetItem(b, i));
    return same;
}

/* Does the entry's key equal the call's? */
bool fits_words(const struct entry *e, const struct call *c)
{
    return e->n_words == c->n_words && !memcmp(e->words, c->word, c->n_words * sizeof *c->word);
}

bool keep_words(struct entry *e, const struct call *c)
{
    int n = c->n + c->has_out;
    int64_t *words = PyMem_Malloc(c->n_words * sizeof *words + 1);
    PyObject **held = PyMem_Calloc((size_t)n, sizeof *held);
    if (!words || !held) {
        PyMem_Free(words);
        PyMem_Free(held);
        return PyErr_NoMemory(), false;
    }
    memcpy(words, c->word, c->n_words * sizeof *words);
    for (int i = 0; i < n; i++) {
        held[i] = c->op[i].dtype_held;
        Py_XINCREF(held[i]);
    }
    PyMem_Free(e->words);
    e->words = words;
    e->n_words = c->n_words;
    PyObject **old = e->held;
    int n_old = e->n_held;
    e->held = held;
    e->n_held = n;
    forget_held(old, n_old);
    return true;
}

/* What an entry tells of its kernel. */
bool entry_describe(struct entry *e)
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
    const char *text = chain_text(chain);
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
    ok = ok && !st && keep_words(e, c) && entry_describe(e);
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
struct entry *find_entry(struct state *s, struct call *c, PyObject *chain, PyObject *names)
{
    Py_hash_t of_chain = PyObject_Hash(chain);
    if (of_chain == -1 && PyErr_Occurred())
        return NULL;
    uint64_t h = hash_words(c->word, c->n_words, (uint64_t)of_chain);
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

void entries_forget(struct state *s)
{
    for (int i = 0; i < SETS; i++)
        for (int j = 0; j < WAYS; j++) {
            struct entry *e = s->table[i][j];
            s->table[i][j] = NULL;
            entry_unref(e);
        }
}
