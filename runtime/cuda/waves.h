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
    bool chunks;             /* of rows, which begin within their first one */
    uint32_t used;           /* bit j: points of dim j; those of others are 0 */
    int32_t first[XTI_WARP]; /* of words: the point of their run that they begin with */
    uint16_t point[XTI_CUDA_BOX_DIMS][XTI_WARP];
    uint16_t more[XTI_WARP];
};

struct xti_probes {
    int n, first; /* which is counted first */
    int chunk_lanes, unit_lanes;
    int bytes[2];   /* that a lane asks for at once: of words, of chunks; */
    double each[2]; /* wavefronts of the box for one that is counted */
    struct xti_request request[2 * XTI_PROBES];
};

/* What those warps ask for. known: the strides' own numbers, not what stands for those that share a kernel.
 */
void xti_waves_ask(const struct xti_box *b, int unit, bool known, struct xti_probes *p);

/* At least one for each group of lanes of each request. Comes before xti_waves_count of the same layout. */
double xti_waves_ideal(const struct xti_box *b, int unit, struct xti_probes *p);
/* Those taken, `ideal` at least; counting ends where there are more than `most`, which the requests that
 * ended it last time show soonest. */
double xti_waves_count(const struct xti_box *b, struct xti_probes *p, double ideal, double most);

/* Units of a warp's words that are gathered at once: unit `unit`, where threads take no turns, and as many
 * others as wavefronts as it, `times` in all. */
struct xti_look {
    int probe, unit, times;
};

/* Where those warps' units lie, by the strides: of each lane those of its word. Of these `each` of a word are
 * looked at, which take `ideal` wavefronts at least and, where threads take no turns, `without`. */
struct xti_places {
    int units, together, lanes[XTI_PROBES], ideal, without, n;
    struct xti_look look[XTI_PROBES * 16];
    uint16_t word[XTI_PROBES][16][XTI_WARP];
};

void xti_waves_place(const struct xti_box *b, int unit, int each, struct xti_places *p);
/* Wavefronts where threads take turns so; or more than `enough`. */
int xti_waves_of_turns(const struct xti_places *p, const struct xti_box_stagger *g, int enough);

static inline int64_t xti_box_read_points(const struct xti_box_dim *d) { return d->t + d->back; }

static inline int xti_log2(int64_t n)
{
    int k = 0;
    while ((INT64_C(1) << k) < n)
        k++;
    return k;
}

#endif
