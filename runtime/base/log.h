/* log.h: what XT_DEBUG asks for goes to stderr, one line each, "xt: cache: ..". Nothing else in the library
 * prints. Layer 0. */
#ifndef XTI_BASE_LOG_H
#define XTI_BASE_LOG_H

#include <stdbool.h>

enum xti_log {
    XTI_LOG_GRAPH,
    XTI_LOG_MAP,
    XTI_LOG_PLAN,
    XTI_LOG_SRC,
    XTI_LOG_PTX,
    XTI_LOG_CACHE,
    XTI_LOG_TIME
};

bool xti_log_any(void);             /* XT_DEBUG is set */
bool xti_log_on(enum xti_log what); /* reads XT_DEBUG at each call: cheap next to what is logged */
bool xti_log_understood(void);      /* every name in XT_DEBUG is a topic, or all */
void xti_logf(enum xti_log what, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

#endif
