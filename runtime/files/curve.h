/* curve.h: what requests take, by their length. Layer 6. */
#ifndef XTI_FILES_CURVE_H
#define XTI_FILES_CURVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define XTI_CURVE_PROBE ".xt-probe" /* behind OUT: a file for a third of a second */

enum { XTI_CURVE_POINTS = 5, XTI_CURVE_FIRST = 4096, XTI_CURVE_STEP = 4 }; /* 4, 16, 64, 256 KiB, 1 MiB */

/* Seconds from one request to the next, many being under way. */
struct xti_curve {
    double seconds[2][XTI_CURVE_POINTS]; /* of reads, of writes */
    double touch;                        /* seconds a byte of buffers takes that nothing was in before */
    double remove;                       /* seconds a byte of a file takes to be removed */
    int64_t piece_bytes;                 /* no request is longer */
    int requests;                        /* under way */
    int runs;                            /* that have corrected it */
};

/* Of a run of so many bytes, in as many requests as it needs. */
double xti_curve_seconds(const struct xti_curve *c, bool write, int64_t bytes);

/* Fewer bytes take less time than measuring. */
enum { XTI_CURVE_WORTH = 256 << 20 };

/* Of the file system where `output` is going to be, for that many bytes. Measured beside it, in a third of a
 * second, where `memory` suffices, and kept in the cache directory. Never fails: what is not measured is
 * careful. */
void xti_curve_get(const char *output, bool buffered, int64_t bytes, int64_t memory, struct xti_curve *c);

/* A run took `ratio` times what the curve says, which knows nothing of others that use disk and processors.
 * Kept for the next one: of a probe alone all of the ratio, later its root. */
void xti_curve_learn(const char *output, bool buffered, int64_t bytes, const struct xti_curve *used,
                     double ratio);

#endif
