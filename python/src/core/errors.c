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

void raise_last(const char *chain, size_t skip)
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
