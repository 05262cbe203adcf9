/* waves.h: the wavefronts that a box takes in shared memory: which lanes of the first warps ask for what, and
 * how often words of one bank meet. Private to the search of layouts (banks.c). Layer 4. */
#ifndef XTI_CUDA_WAVES_H
#define XTI_CUDA_WAVES_H

#include "cuda/box.h"

enum { XTI_WARP = 32, XTI_PROBES = 4 /* warps that are looked at */ };

/* Lanes that ask together: of each its point in each dim, and bytes more. All that says where they lie has 16
 * bits, as shared memory is smaller: a vector of the processor holds many lanes. */
struct xti_request {
    int lanes;
    bool chunks; /* of rows, which begin within their first one */
    uint16_t point[XTI_CUDA_BOX_DIMS][XTI_WARP];
    uint16_t more[XTI_WARP];
};

struct xti_probes {
    int n, first; /* which is counted first */
    int chunk_lanes, unit_lanes;
    struct xti_request request[2 * XTI_PROBES];
};

/* What those warps ask for. known: the strides' own numbers, not what stands for those that share a kernel.
 */
void xti_waves_ask(const struct xti_box *b, int unit, bool known, struct xti_probes *p);

/* Of each of its requests at least one for each group of lanes; counting ends where more than `most` are
 * taken, which the requests that ended it last time show soonest. */
struct xti_box_waves xti_waves_count(const struct xti_box *b, int unit, struct xti_probes *p, double most);

/* Wavefronts of words of the destination, by the strides, `each` units of a word; or more than `enough`. */
int xti_waves_of_words(const struct xti_box *b, int unit, int each, int enough, int *ideal);

static inline int64_t xti_box_read_points(const struct xti_box_dim *d) { return d->t + d->back; }

static inline int xti_log2(int64_t n)
{
    int k = 0;
    while ((INT64_C(1) << k) < n)
        k++;
    return k;
}

#endif
