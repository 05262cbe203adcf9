/* err.h: how a failure travels inside the library. The first error is kept, with the words a user needs.
 * Layer 0. */
#ifndef XTI_BASE_ERR_H
#define XTI_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <xt/xt.h>

/* Same layout as the public record: an API function hands it over by assignment. */
struct xti_err {
    struct xt_error e;
};

/* No failure yet. The rest of the record is written with the first one: clearing all of it would cost more
 * than a small copy. */
static inline void xti_err_clear(struct xti_err *err) { err->e.status = XT_OK; }

/* Records s and the message unless err already holds a failure (or is NULL). Of XT_ENOMEM the message names
 * what there was no memory for: "out of memory: " is put before it, unless it speaks of memory. Returns s. */
xt_status xti_fail(struct xti_err *err, xt_status s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

/* The same, naming the operation and the axis (-1: none). */
xt_status xti_fail_at(struct xti_err *err, xt_status s, int op, int axis, const char *fmt, ...)
    __attribute__((format(printf, 5, 6), cold));

/* vsnprintf. What does not fit loses its middle, " .. " in its place, because who failed and why stand at the
 * ends; where there is no memory for that its end. post: out, and no character of UTF-8 in it is cut. */
void xti_vsay(char *out, size_t size, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));

/* XT_EINVAL: "FUNCTION: WHAT is NULL", and what failed before in this thread: so the call that follows an
 * xt_ctx_new whose status nobody looked at says why that failed, and so does each behind it. Published. */
xt_status xti_fail_null(const char *function, const char *what);

/* Publishes err as the calling thread's xt_last_error and returns s. Every public function ends here. */
xt_status xti_publish(xt_status s, const struct xti_err *err);
xt_status xti_publish_ok(void); /* of success */

#endif
