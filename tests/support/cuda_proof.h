/* cuda_proof.h: proves a map's CUDA kernel without a GPU: plan, emit, NVRTC, then the very PTX in the interpreter of
 * tests/ptx, on random sources, against xti_map_eval. */
#ifndef CUDA_PROOF_H
#define CUDA_PROOF_H

#include "map/map.h"
#include "ptx/ptx.h"

struct proof {
    char error[1024];          /* empty: proven */
    struct ptx_report report;  /* summed over the launch */
    char strategy[32];
    double load_ratio, store_ratio; /* sectors requested / sectors that the bytes need at least */
    int registers, spill_bytes;     /* of the PTX: local bytes a thread */
    size_t source_bytes;
};

/* misaligned: the buffers begin an odd number of elements after a 256-byte line, and the entry <name>_e runs.
 * post: true iff every destination byte was written once with the right value, nothing else was touched, and no
 * access was out of bounds, misaligned or racing. */
bool cuda_prove(const struct xti_map *m, int sm, bool misaligned, struct proof *out);

/* NULL, or why nothing can be compiled here. */
const char *cuda_prove_unable(void);

#endif
