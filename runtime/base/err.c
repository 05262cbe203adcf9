/* err.c: error records, and the thread's last one. Never allocates, but for a message that is cut. Layer 0.
 */
#include "base/err.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static _Thread_local struct xt_error last = {XT_OK, -1, -1, 0, ""};
static _Thread_local char last_failure[256]; /* its message, also after calls that succeeded */
/* Threads whose last call failed, also those that ended so. Asking a thread's own variable takes as long as a
 * copy of 64 bytes. */
static atomic_int failed;

enum { UTF8_BYTES = 4 };

/* A byte of UTF-8 that is not its character's first. */
static bool goes_on(char c) { return (c & 0xc0) == 0x80; }

/* The length of s's first n bytes without a character of several bytes, whole or cut, at their end. */
static size_t without_last(const char *s, size_t n)
{
    for (int i = 1; i < UTF8_BYTES && n && goes_on(s[n - 1]); i++)
        n--;
    return n && (s[n - 1] & 0xc0) == 0xc0 ? n - 1 : n;
}

static void keep_ends(char *out, size_t size, const char *whole, size_t n)
{
    static const char gap[] = " .. ";
    size_t half = (size - sizeof gap) / 2, head = without_last(whole, half);
    const char *tail = whole + n - (size - sizeof gap - half);
    for (int i = 1; i < UTF8_BYTES && goes_on(*tail); i++)
        tail++;
    memcpy(out, whole, head);
    memcpy(out + head, gap, sizeof gap - 1);
    memcpy(out + head + sizeof gap - 1, tail, (size_t)(whole + n - tail) + 1);
}

void xti_vsay(char *out, size_t size, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(out, size, fmt, ap);
    if (n >= (int)size) {
        char *whole = xti_alloc((size_t)n + 1);
        if (whole && vsnprintf(whole, (size_t)n + 1, fmt, again) == n)
            keep_ends(out, size, whole, (size_t)n);
        else
            out[without_last(out, size - 1)] = 0;
        xti_free(whole);
    }
    va_end(again);
}

__attribute__((format(printf, 3, 4))) static void say(char *out, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    xti_vsay(out, size, fmt, ap);
    va_end(ap);
}

/* What XT_ENOMEM's words name is what there was no memory for. */
static void say_memory(struct xt_error *e)
{
    char words[sizeof e->message];
    if (e->status != XT_ENOMEM || strstr(e->message, "memory"))
        return;
    memcpy(words, e->message, sizeof words);
    say(e->message, sizeof e->message, "out of memory: %s", words);
}

static xt_status vfail(struct xti_err *err, xt_status s, int op, int axis, const char *fmt, va_list ap)
{
    if (!err || err->e.status)
        return s;
    err->e.status = s;
    err->e.op = op;
    err->e.axis = axis;
    err->e.column = 0;
    xti_vsay(err->e.message, sizeof err->e.message, fmt, ap);
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

static void set_last(const struct xt_error *e)
{
    atomic_fetch_add_explicit(&failed, !last.status - !e->status, memory_order_relaxed);
    last = *e;
}

static __attribute__((noinline)) void clear_last(void)
{
    if (last.status)
        set_last(&(struct xt_error){.status = XT_OK, .op = -1, .axis = -1});
}

xt_status xti_publish_ok(void)
{
    if (atomic_load_explicit(&failed, memory_order_relaxed))
        clear_last();
    return XT_OK;
}

xt_status xti_publish(xt_status s, const struct xti_err *err)
{
    if (s == XT_OK) {
        xti_publish_ok();
    } else if (err && err->e.status) {
        set_last(&err->e);
    } else {
        struct xt_error e = {.status = s, .op = -1, .axis = -1};
        snprintf(e.message, sizeof e.message, "%s", xt_status_name(s));
        set_last(&e);
    }
    if (s)
        say(last_failure, sizeof last_failure, "%s", last.message);
    return s;
}

xt_status xti_fail_null(const char *function, const char *what)
{
    struct xti_err err = {0};
    xti_fail(&err, XT_EINVAL, "%s: %s is NULL%s%s", function, what,
             *last_failure ? "; this thread's last failure: " : "", last_failure);
    set_last(&err.e);
    if (!*last_failure)
        say(last_failure, sizeof last_failure, "%s", last.message);
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
