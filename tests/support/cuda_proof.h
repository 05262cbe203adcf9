/* cuda_proof.h: proves a map's CUDA kernel without a GPU: plan, emit, NVRTC, then the very PTX in the
 * interpreter of tests/ptx, on random sources, against xti_map_eval. */
#ifndef CUDA_PROOF_H
#define CUDA_PROOF_H

#include "map/map.h"
#include "tests/ptx/ptx.h"

struct proof {
    char error[1024];         /* empty: proven */
    struct ptx_report report; /* summed over the launch */
    char strategy[32];
    double load_ratio, store_ratio; /* sectors requested / sectors that the bytes need at least */
    size_t source_bytes;
};

/* What a plan would not choose by itself at the sizes that are proven. */
struct proof_options {
    bool misaligned; /* buffers begin one element after a 256-byte line: the entry <name>_e runs */
    int64_t grid;    /* launch no more blocks than this; 0: as planned */
    bool wide_index; /* 64-bit indices */
};

/* post: true iff every destination byte was written once with the right value, nothing else was touched, and
 * no access was out of bounds, misaligned or racing. */
bool cuda_prove(const struct xti_map *m, int sm, bool misaligned, struct proof *out);
bool cuda_prove_with(const struct xti_map *m, int sm, const struct proof_options *opt, struct proof *out);

/* NULL, or why nothing can be compiled here. */
const char *cuda_prove_unable(void);

#endif
