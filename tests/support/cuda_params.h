/* cuda_params.h: the parameters of a plan's launch, for the interpreter of tests/ptx. */
#ifndef TESTS_SUPPORT_CUDA_PARAMS_H
#define TESTS_SUPPORT_CUDA_PARAMS_H

#include "cuda/cuda.h"
#include "tests/ptx/ptx.h"

struct cuda_params {
    struct ptx_param *param;
    uint64_t *source; /* addresses, where one parameter holds all */
    int n;
};

/* w: its buffer 0 is the destination, 1 + i the chain's input i; each begins `shift` bytes after a line.
 * False: no memory. */
bool cuda_params_make(const struct xti_cuda_plan *p, enum xti_cuda_tier tier, const struct ptx_world *w,
                      int64_t shift, struct cuda_params *out);
void cuda_params_free(struct cuda_params *p);

#endif
