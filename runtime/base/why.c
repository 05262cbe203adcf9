/* why.c: see why.h. Layer 0. */
#include "base/why.h"

#include <stdarg.h>
#include <stdio.h>

bool xti_why_set(struct xti_why *why, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why->text, sizeof why->text, fmt, ap);
    va_end(ap);
    return false;
}
