/* log.c: XT_DEBUG is a comma-separated list of topics, or "all". Layer 0. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"

static const char *const topic[] = {"graph", "map", "plan", "src", "ptx", "cache", "time"};

bool xti_log_any(void) { return xti_env(XTI_ENV_DEBUG) != NULL; }

static bool names(const char *s, size_t n, const char *name)
{
    return n == strlen(name) && !memcmp(s, name, n);
}

bool xti_log_on(enum xti_log what)
{
    const char *list = xti_env(XTI_ENV_DEBUG), *s;
    size_t n;
    while ((s = xti_env_word(&list, &n)))
        if (names(s, n, "all") || names(s, n, topic[what]))
            return true;
    return false;
}

bool xti_log_understood(void)
{
    const char *list = xti_env(XTI_ENV_DEBUG), *s;
    bool known = true;
    size_t n;
    while (known && (s = xti_env_word(&list, &n))) {
        known = !n || names(s, n, "all");
        for (size_t i = 0; i < sizeof topic / sizeof *topic && !known; i++)
            known = names(s, n, topic[i]);
    }
    return known;
}

void xti_logf(enum xti_log what, const char *fmt, ...)
{
    if (!xti_log_on(what))
        return;
    char line[2048];
    int n = snprintf(line, sizeof line, "xt: %s: ", topic[what]);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s\n", line); /* one write: lines of several threads do not mix */
}
