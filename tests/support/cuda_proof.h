/* cuda_proof.h: proves a map's CUDA kernel without a GPU: plan, emit, NVRTC, then the very PTX in the
 * interpreter of tests/ptx, on random sources, against xti_map_eval. */
#ifndef CUDA_PROOF_H
#define CUDA_PROOF_H

#include "cuda/cuda.h"
#include "map/map.h"
#include "tests/ptx/ptx.h"

struct proof {
    char error[1024];         /* empty: proven */
    struct ptx_report report; /* summed over the launch */
    char strategy[32];
    double load_ratio, store_ratio; /* sectors requested / sectors that the bytes need at least */
    enum xti_cuda_tier tier;
    int64_t compulsory_load, compulsory_store; /* of those sectors */
    size_t source_bytes;
};

/* Which of a map's two kernels is proven. Either: by the map, the target and the alignment, so that a suite
 * has about as many of each, and a line alone the same one as in its suite. XT_TEST_FULL=1: both. */
enum proof_tier { PROOF_EITHER, PROOF_STRUCTURE, PROOF_EXACT };

/* What a plan would not choose by itself at the sizes that are proven. */
struct proof_options {
    bool misaligned;      /* buffers begin one element after a 256-byte line: the entry <name>_e runs */
    int64_t grid;         /* launch no more blocks than this; 0: as planned */
    bool wide_index;      /* 64-bit indices */
    int processors;       /* of the device; 0: not known. Of few, small copies have the boxes of large ones */
    enum proof_tier tier; /* where the structure tier does not serve a plan, the exact one is proven */
};

/* post: true iff every destination byte was written once with the right value, nothing else was touched, and
 * no access was out of bounds, misaligned or racing. */
bool cuda_prove(const struct xti_map *m, int sm, bool misaligned, struct proof *out);
bool cuda_prove_with(const struct xti_map *m, int sm, const struct proof_options *opt, struct proof *out);

/* NULL, or why nothing can be compiled here. */
const char *cuda_prove_unable(void);

#endif
