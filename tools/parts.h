/* parts.h: a result in parts: boxes that lie behind each other in row-major order and have the result's rank.
 */
#ifndef XT_TOOLS_PARTS_H
#define XT_TOOLS_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include <xt/xt.h>

struct parts {
    int rank,
        axis; /* parts are single indices of the axes before this one, ranges of it, and whole behind it */
    int64_t shape[XT_MAX_RANK], lo[XT_MAX_RANK], n[XT_MAX_RANK]; /* the current one: [lo, lo + n) */
    int64_t most;                                                /* elements of one */
    bool begun;
};
/* Of at most so many elements each, at least 1. */
void parts_begin(struct parts *p, int rank, const int64_t *shape, int64_t elements);
/* Goes to the next one, at first to the first; false: there is none. A result without elements has none. */
bool parts_next(struct parts *p);
int64_t parts_elements(const struct parts *p); /* of the current one */

#endif
