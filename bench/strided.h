/* strided.h: a plain strided copy of good quality, the baseline: dims of extent 1 dropped, neighbours merged,
 * loops in destination order, memcpy for unit runs, 32 x 32 cache blocks where the source runs along another
 * dim. No SIMD by hand, as in NumPy, PyTorch and most engines. */
#ifndef XT_BENCH_STRIDED_H
#define XT_BENCH_STRIDED_H

#include <stddef.h>
#include <stdint.h>

enum { STRIDED_MAX = 72 };
struct strided {
    int rank, width;                                        /* width: bytes of an element */
    int64_t n[STRIDED_MAX], s[STRIDED_MAX], d[STRIDED_MAX]; /* elements */
};
/* Brings c into the form that strided_copy likes. Source stride 0 is a broadcast. */
void strided_prepare(struct strided *c);
void strided_copy(const struct strided *c, char *dst, const char *src);

#endif
