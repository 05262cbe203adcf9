/* errors.c: the library's sentences as Python's exceptions. */
#include "core.h"

static PyObject *exception_of(xt_status s)
{
    switch (s) {
    case XT_ENOMEM:
        return PyExc_MemoryError;
    case XT_EDTYPE:
        return PyExc_TypeError;
    case XT_EIO:
        return PyExc_OSError;
    case XT_EDEVICE:
    case XT_ENODEVICE:
    case XT_EFORKED:
    case XT_ECOMPILE:
    case XT_EINTERNAL:
    case XT_EMISMATCH:
    case XT_EPEER:
    case XT_ECOMM:
    case XT_ESTOPPED:
        return PyExc_RuntimeError;
    default:
        return PyExc_ValueError;
    }
}

enum { MOST_BEFORE = 200 }; /* bytes of a chain in front of the place that is shown */

/* Of UTF-8 in that many bytes. */
static size_t characters(const char *s, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes && s[i]; i++)
        n += (s[i] & 0xc0) != 0x80;
    return n;
}

void raise_last(const char *chain, size_t skip)
{
    struct xt_error e = *xt_last_error();
    const char *text = e.message;
    if (e.column > 0 && !strncmp(text, "column ", 7) && strstr(text, ": "))
        text = strstr(text, ": ") + 2;
    size_t at = e.column > 0 ? (size_t)e.column - 1 : 0;
    bool shown = chain && e.column > 0 && at >= skip && at - skip <= MOST_BEFORE && !strchr(chain, '\n');
    /* A file's name may be of any bytes. */
    PyObject *words = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
    if (!words)
        return;
    if (shown) {
        char blanks[MOST_BEFORE + 1];
        memset(blanks, ' ', sizeof blanks);
        blanks[characters(chain, at - skip)] = 0;
        PyErr_Format(exception_of(e.status), "%U\n    %s\n    %s^", words, chain, blanks);
    } else {
        PyErr_SetObject(exception_of(e.status), words);
    }
    Py_DECREF(words);
}
