/* err.c: error records, and the thread's last one. Never allocates. Layer 0. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct xt_error last = {XT_OK, -1, -1, 0, ""};
static _Thread_local char last_failure[256]; /* its message, also after calls that succeeded */

/* What XT_ENOMEM's words name is what there was no memory for. */
static void say_memory(struct xt_error *e)
{
    static const char why[] = "out of memory: ";
    enum { WHY = sizeof why - 1 };
    if (e->status != XT_ENOMEM || strstr(e->message, "memory"))
        return;
    memmove(e->message + WHY, e->message, sizeof e->message - WHY);
    memcpy(e->message, why, WHY);
    e->message[sizeof e->message - 1] = 0;
}

static xt_status vfail(struct xti_err *err, xt_status s, int op, int axis, const char *fmt, va_list ap)
{
    if (!err || err->e.status)
        return s;
    err->e.status = s;
    err->e.op = op;
    err->e.axis = axis;
    err->e.column = 0;
    vsnprintf(err->e.message, sizeof err->e.message, fmt, ap);
    say_memory(&err->e);
    return s;
}

xt_status xti_fail(struct xti_err *err, xt_status s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfail(err, s, -1, -1, fmt, ap);
    va_end(ap);
    return s;
}

xt_status xti_fail_at(struct xti_err *err, xt_status s, int op, int axis, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfail(err, s, op, axis, fmt, ap);
    va_end(ap);
    return s;
}

static __attribute__((noinline)) void clear_last(void)
{
    last = (struct xt_error){.status = XT_OK, .op = -1, .axis = -1};
}

xt_status xti_publish_ok(void)
{
    if (last.status)
        clear_last();
    return XT_OK;
}

xt_status xti_publish(xt_status s, const struct xti_err *err)
{
    if (s == XT_OK) {
        xti_publish_ok();
    } else if (err && err->e.status) {
        last = err->e;
    } else {
        last = (struct xt_error){.status = s, .op = -1, .axis = -1};
        snprintf(last.message, sizeof last.message, "%s", xt_status_name(s));
    }
    if (s)
        snprintf(last_failure, sizeof last_failure, "%.255s", last.message);
    return s;
}

xt_status xti_fail_null(const char *function, const char *what)
{
    struct xti_err err = {0};
    xti_fail(&err, XT_EINVAL, "%s: %s is NULL%s%s", function, what,
             *last_failure ? "; this thread's last failure: " : "", last_failure);
    last = err.e;
    if (!*last_failure)
        snprintf(last_failure, sizeof last_failure, "%.255s", last.message);
    return XT_EINVAL;
}

const struct xt_error *xt_last_error(void) { return &last; }

const char *xt_status_name(xt_status s)
{
    static const char *const name[] = {
        "XT_OK",        "XT_EINVAL",    "XT_ERANK",   "XT_ESHAPE",       "XT_ERANGE",   "XT_EOVERFLOW",
        "XT_EDTYPE",    "XT_EALIGN",    "XT_EALIAS",  "XT_EBUFFER",      "XT_ESYNTAX",  "XT_ENOMEM",
        "XT_EDEVICE",   "XT_ENODEVICE", "XT_EFORKED", "XT_EUNSUPPORTED", "XT_ECOMPILE", "XT_EIO",
        "XT_EINTERNAL", "XT_EMISMATCH", "XT_EPEER",   "XT_ECOMM",        "XT_ESTOPPED",
    };
    int n = sizeof name / sizeof *name;
    return s <= 0 && s > -n ? name[-s] : "unknown status";
}

const char *xt_version(void) { return XT_VERSION; }
