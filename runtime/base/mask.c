/* mask.c: places of a period, by two masks. Layer 0. */
#include "base/mask.h"

#include <string.h>

typedef uint64_t words __attribute__((vector_size(16), aligned(1), may_alias));

void xti_mask_begin(struct xti_mask *m, int64_t period)
{
    m->period = period;
    memset(m->keep, 0xff, sizeof m->keep);
    memset(m->put, 0, sizeof m->put);
}

void xti_mask_trim(struct xti_mask *m)
{
    for (m->first = 0; m->first < m->period && m->keep[m->first]; m->first++)
        ;
    for (m->end = m->period; m->end > m->first && m->keep[m->end - 1]; m->end--)
        ;
}

static void put(const struct xti_mask *m, char *d, int64_t at, int64_t end)
{
    for (; at + (int64_t)sizeof(words) <= end; at += (int64_t)sizeof(words)) {
        words *out = (words *)(d + at);
        *out = (*out & *(const words *)(m->keep + at)) | *(const words *)(m->put + at);
    }
    for (; at < end; at++)
        d[at] = (char)((d[at] & m->keep[at]) | m->put[at]);
}

void xti_mask_put(const struct xti_mask *m, char *d, int64_t lo, int64_t hi)
{
    for (int64_t next; lo < hi; lo = next) {
        int64_t begin = lo - lo % m->period, off = lo - begin;
        next = begin + m->period;
        put(m, d + begin, off > m->first ? off : m->first, hi - begin < m->end ? hi - begin : m->end);
    }
}
