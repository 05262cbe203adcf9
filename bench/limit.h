/* limit.h: how fast this machine moves a chain's bytes when nothing is in the way: the lines that must be
 * read and the lines that must be written, each a contiguous stream, in one loop and in their proportion. */
#ifndef XT_BENCH_LIMIT_H
#define XT_BENCH_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xt/xt.h>

enum { LINE = 64, LIMIT_SOURCES = 64 };

struct limit {
    int n, threads;
    const char *src[LIMIT_SOURCES]; /* aligned to LINE */
    size_t reads[LIMIT_SOURCES];    /* lines, contiguous from src */
    char *dst;                      /* aligned to LINE */
    size_t writes;                  /* lines */
};
/* The ways to move them: streaming stores (nothing is read for ownership) by one stream or several, with and
 * without prefetch, and memcpy and memset, best within the caches. Which is best depends on the machine, on
 * the size and on the proportion of reads to writes: the limit is the fastest of all. */
enum { LIMIT_WAYS = 11 };
const char *limit_way_name(int way);
void limit_run(const struct limit *l, int way);

/* ---- lines.c */
/* Distinct lines of each source that k reads, into lines[n]. Asks the kernel itself: it is run on sources
 * whose elements hold the number of their line. Overwrites sources and both destinations. False: out of
 * memory. width: bytes of an element. bytes: of each source. dst_bytes: of each of the two destinations. */
bool count_lines(const struct xt_kernel *k, int n, void *const *src, const size_t *bytes, void *const dst[2],
                 size_t dst_bytes, int width, size_t *lines);

#endif
