/* from_cuda.h: CUDA source to PTX text through NVRTC, opened at run time, for tests that want to run real
 * kernels. */
#ifndef PTX_FROM_CUDA_H
#define PTX_FROM_CUDA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1 when an NVRTC library could be opened, 0 when not: then skip. Tries PTX_NVRTC, the system's names, then
 * /usr/local/cuda. The library stays open. */
int ptx_nvrtc_present(void);

/* Compiles `source` for e.g. arch "compute_90" with further options, one string each.
 * post: 0 and *ptx set (caller frees with free), or nonzero, *ptx NULL and err holding the compiler's log. */
int ptx_from_cuda(const char *source, const char *arch, const char *const *options, int n_options, char **ptx,
                  char *err, size_t err_bytes);

#ifdef __cplusplus
}
#endif
#endif
