/* curve.h: what requests take, by their length. Layer 5. */
#ifndef XTI_FILES_CURVE_H
#define XTI_FILES_CURVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { XTI_CURVE_POINTS = 5, XTI_CURVE_FIRST = 4096, XTI_CURVE_STEP = 4 }; /* 4, 16, 64, 256 KiB, 1 MiB */

/* Seconds from one request to the next, many being under way. */
struct xti_curve {
    double seconds[2][XTI_CURVE_POINTS]; /* of reads, of writes */
    int requests;                        /* under way */
};

/* A disk that nobody has measured. */
extern const struct xti_curve xti_curve_careful;

/* Of a run of so many bytes. */
double xti_curve_seconds(const struct xti_curve *c, bool write, int64_t bytes);

/* Of the file system where `output` is going to be; `input`: a file to read, or NULL. Kept in the cache
 * directory. Never fails: what cannot be measured is careful. */
void xti_curve_get(const char *output, const char *input, int64_t input_bytes, struct xti_curve *c);

#endif
