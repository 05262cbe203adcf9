/* why.h: why a way to run a piece does not serve: explain prints it. Layer 0. */
#ifndef XTI_BASE_WHY_H
#define XTI_BASE_WHY_H

#include <stdbool.h>
#include <stddef.h>

/* Written by an `applicable`, one condition a line, when somebody wants to know: choosing goes without. */
struct xti_why {
    char text[120];
};
/* Sets why, unless it is NULL, and is false: `return xti_refuse(why, "inner run %d B < 16 B", n);` */
#define xti_refuse(why, ...) (__builtin_expect((why) != NULL, 0) && xti_why_set(why, __VA_ARGS__))
bool xti_why_set(struct xti_why *why, const char *fmt, ...) __attribute__((cold, format(printf, 2, 3)));

#endif
