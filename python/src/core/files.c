/* files.c: run_files: a chain on files (xt_files.h), without the GIL but for the progress callback. */
#include "core.h"

#include <xt/xt_files.h>

struct run {
    PyThreadState *saved;
    PyObject *progress; /* None: none */
    int raised;
};

/* Ctrl-C comes here, too. */
static int tell(void *arg, int64_t done, int64_t total)
{
    struct run *r = arg;
    PyEval_RestoreThread(r->saved);
    r->raised = PyErr_CheckSignals() < 0;
    if (!r->raised && r->progress != Py_None) {
        PyObject *x = PyObject_CallFunction(r->progress, "LL", (long long)done, (long long)total);
        r->raised = !x;
        Py_XDECREF(x);
    }
    r->saved = PyEval_SaveThread();
    return r->raised;
}

/* path's text, kept alive by *bytes. */
static const char *path_of(PyObject *path, PyObject **bytes)
{
    return PyUnicode_FSConverter(path, bytes) ? PyBytes_AsString(*bytes) : NULL;
}

static xt_status carry_out(const char *line, int n, const char *const *in, const char *out,
                           struct xt_files_options *opt, struct run *r)
{
    struct xt_files *f;
    r->saved = PyEval_SaveThread();
    xt_status s = xt_files_new(line, n, in, out, opt, &f);
    if (!s)
        s = xt_files_run(f);
    struct xt_error e = *xt_last_error();
    PyEval_RestoreThread(r->saved);
    if (s && !r->raised)
        raise_last(e.column ? line : NULL, 0);
    xt_files_free(f);
    return s;
}

PyObject *core_run_files(PyObject *m, PyObject *args)
{
    PyObject *paths, *chunks;
    struct run r = {0};
    struct xt_files_options opt = {.size = sizeof opt, .progress = tell, .arg = &r};
    const char *line;
    long long mem;
    int64_t chunk[XT_MAX_RANK];
    if (!PyArg_ParseTuple(args, "sO!LO!iiO", &line, &PyTuple_Type, &paths, &mem, &PyTuple_Type, &chunks,
                          &opt.zarr_format, &opt.restart, &r.progress))
        return NULL;
    opt.mem_bytes = mem;
    opt.chunk = chunk;
    Py_ssize_t n = PyTuple_Size(paths), rank = PyTuple_Size(chunks);
    if (n < 1 || rank > XT_MAX_RANK)
        return PyErr_Format(PyExc_ValueError, "run: paths of the inputs and of the result, in this order");
    for (opt.chunk_rank = 0; opt.chunk_rank < rank; opt.chunk_rank++)
        chunk[opt.chunk_rank] = PyLong_AsLongLong(PyTuple_GetItem(chunks, opt.chunk_rank));
    PyObject **bytes = PyMem_Calloc((size_t)n, sizeof *bytes);
    const char **text = PyMem_Calloc((size_t)n, sizeof *text);
    bool ok = bytes && text && !PyErr_Occurred();
    for (Py_ssize_t i = 0; ok && i < n; i++)
        ok = (text[i] = path_of(PyTuple_GetItem(paths, i), &bytes[i])) != NULL;
    if (ok)
        ok = !carry_out(line, (int)n - 1, text, text[n - 1], &opt, &r);
    for (Py_ssize_t i = 0; bytes && i < n; i++)
        Py_XDECREF(bytes[i]);
    PyMem_Free(bytes);
    PyMem_Free(text);
    if (!ok)
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    Py_RETURN_NONE;
}
