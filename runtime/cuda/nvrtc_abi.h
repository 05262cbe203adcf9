/* nvrtc_abi.h: the functions and numbers of NVRTC that xt uses, declared by xt itself, so that building needs
 * no toolkit. tests/test_abi.c compares them with <nvrtc.h> where that exists. Source: NVRTC's manual; they
 * are the same from 11.2 to 13. Layer 4. */
#ifndef XTI_CUDA_NVRTC_ABI_H
#define XTI_CUDA_NVRTC_ABI_H

#include <stddef.h>

typedef int xti_nvrtc_result; /* an enum there */
typedef struct _nvrtcProgram *xti_nvrtc_program;

enum { XTI_NVRTC_SUCCESS = 0, XTI_NVRTC_INVALID_OPTION = 5, XTI_NVRTC_COMPILATION = 6 };

/* field, symbol, required, parameters */
#define XTI_NVRTC_FUNCTIONS(X)                                                                               \
    X(version, nvrtcVersion, 1, (int *, int *))                                                              \
    X(create, nvrtcCreateProgram, 1,                                                                         \
      (xti_nvrtc_program *, const char *, const char *, int, const char *const *, const char *const *))      \
    X(destroy, nvrtcDestroyProgram, 1, (xti_nvrtc_program *))                                                \
    X(compile, nvrtcCompileProgram, 1, (xti_nvrtc_program, int, const char *const *))                        \
    X(ptx_size, nvrtcGetPTXSize, 1, (xti_nvrtc_program, size_t *))                                           \
    X(ptx, nvrtcGetPTX, 1, (xti_nvrtc_program, char *))                                                      \
    X(cubin_size, nvrtcGetCUBINSize, 0, (xti_nvrtc_program, size_t *))                                       \
    X(cubin, nvrtcGetCUBIN, 0, (xti_nvrtc_program, char *))                                                  \
    X(log_size, nvrtcGetProgramLogSize, 1, (xti_nvrtc_program, size_t *))                                    \
    X(log, nvrtcGetProgramLog, 1, (xti_nvrtc_program, char *))                                               \
    X(n_archs, nvrtcGetNumSupportedArchs, 1, (int *))                                                        \
    X(archs, nvrtcGetSupportedArchs, 1, (int *))

struct xti_nvrtc_api {
#define X(field, symbol, required, params) xti_nvrtc_result(*field) params;
    XTI_NVRTC_FUNCTIONS(X)
#undef X
};

#endif
