/* nvrtc.h: the NVRTCs that were found, for compile.c. Layer 4. */
#ifndef XTI_CUDA_NVRTC_H
#define XTI_CUDA_NVRTC_H

#include <stdbool.h>

#include "base/err.h"
#include "cuda/nvrtc_abi.h"

enum { XTI_NVRTC_MAX_ARCHS = 64 };

struct xti_nvrtc {
    struct xti_nvrtc_api api;
    void *library;
    char path[1024]; /* of the file */
    char build[96];  /* "13.0 65be0db3.." */
    int major, minor;
    int n_archs, arch[XTI_NVRTC_MAX_ARCHS]; /* 75, 80, .. ascending */
};

/* The architecture a compile for sm is made for: sm itself and *cubin, or the highest known below it, whose
 * PTX the driver compiles. 0: there is none. */
int xti_nvrtc_arch(const struct xti_nvrtc *n, int sm, bool *cubin);

/* Does what n makes for sm run under a driver of CUDA version `driver` (12040: 12.4; 0: no driver is asked)?
 * A driver takes cubins of every NVRTC of its own major version and older (NVIDIA's minor version
 * compatibility), but PTX only of its own version and older. */
enum xti_nvrtc_fit { XTI_NVRTC_FITS, XTI_NVRTC_OTHER_ARCH, XTI_NVRTC_NEWER_MAJOR, XTI_NVRTC_NEWER_PTX };
enum xti_nvrtc_fit xti_nvrtc_fit(const struct xti_nvrtc *n, int sm, int driver);

/* ---- nvrtc_find.c */

/* Offers the NVRTCs of this machine, opened, to take(arg, library), which may be given one twice, and each
 * time closes it or keeps it. One whose file says that its version is not above what *have says by then is
 * not opened: they are 100 MB each. have: 1000 * major + minor, 0: nothing yet. */
void xti_nvrtc_find(const int *have, void (*take)(void *arg, void *library), void *arg);

/* The ELF build id of the library that `inside` lies in, as hex; "no build id". nvrtcVersion does not tell
 * 13.0.48 from 13.0.88: this does. */
enum { XTI_BUILD_ID_CHARS = 65 };
void xti_build_id(const void *inside, char hex[XTI_BUILD_ID_CHARS]);

#endif
