/* nvrtc.h: the loaded NVRTC, for compile.c. Layer 4. */
#ifndef XTI_CUDA_NVRTC_H
#define XTI_CUDA_NVRTC_H

#include <stdbool.h>

#include "base/err.h"
#include "cuda/nvrtc_abi.h"

enum { XTI_NVRTC_MAX_ARCHS = 64 };

struct xti_nvrtc {
    struct xti_nvrtc_api api;
    char build[96]; /* "13.0 65be0db3.." */
    int major, minor;
    int n_archs, arch[XTI_NVRTC_MAX_ARCHS]; /* 75, 80, .. ascending */
};

/* The process's NVRTC, found and loaded by the first call that succeeds; never unloaded.
 * NULL: XT_ECOMPILE with where it was looked for. Any thread. */
const struct xti_nvrtc *xti_nvrtc_get(struct xti_err *err);

/* The architecture a compile for sm is made for: sm itself and *cubin, or the highest known below it, whose
 * PTX the driver compiles. 0: there is none. */
int xti_nvrtc_arch(const struct xti_nvrtc *n, int sm, bool *cubin);

#endif
