/* driver_abi.h: the functions, types and numbers of the CUDA driver that xt uses, declared by xt itself.
 * tests/test_abi.c compares them with <cuda.h> where that exists. Symbols are real names: the plain names of
 * functions that have a _v2 are an older ABI. Layer 4. */
#ifndef XTI_CUDA_DRIVER_ABI_H
#define XTI_CUDA_DRIVER_ABI_H

#include <stddef.h>

typedef unsigned int xti_cu_result; /* an enum there */
typedef int xti_cu_device;
typedef unsigned int xti_cu_attribute, xti_cu_func_attribute, xti_cu_capture_mode; /* enums there */
typedef struct CUctx_st *xti_cu_context;
typedef struct CUmod_st *xti_cu_module;
typedef struct CUfunc_st *xti_cu_function;
typedef struct CUstream_st *xti_cu_stream;

enum {
    XTI_CU_SUCCESS = 0,
    XTI_CU_INVALID_IMAGE = 200,
    XTI_CU_NO_BINARY_FOR_GPU = 209,
    XTI_CU_UNSUPPORTED_PTX_VERSION = 222,
    XTI_CU_CAPTURE_FIRST = 900, /* cuStreamBeginCapture's family of errors: 900 to 908 */
    XTI_CU_CAPTURE_LAST = 908,
    XTI_CU_CAPTURE_RELAXED = 2,
    XTI_CU_ATTR_MULTIPROCESSORS = 16,
    XTI_CU_ATTR_MAJOR = 75,
    XTI_CU_ATTR_MINOR = 76,
    XTI_CU_FUNC_NUM_REGS = 4
};

/* field, symbol, required, parameters. ctx_id: 12.0; func_load: 12.4; capture_mode: 10.1. */
#define XTI_CU_FUNCTIONS(X)                                                                                  \
    X(init, cuInit, 1, (unsigned int))                                                                       \
    X(version, cuDriverGetVersion, 1, (int *))                                                               \
    X(error_name, cuGetErrorName, 1, (xti_cu_result, const char **))                                         \
    X(device_count, cuDeviceGetCount, 1, (int *))                                                            \
    X(device_get, cuDeviceGet, 1, (xti_cu_device *, int))                                                    \
    X(device_attribute, cuDeviceGetAttribute, 1, (int *, xti_cu_attribute, xti_cu_device))                   \
    X(ctx_current, cuCtxGetCurrent, 1, (xti_cu_context *))                                                   \
    X(ctx_device, cuCtxGetDevice, 1, (xti_cu_device *))                                                      \
    X(ctx_push, cuCtxPushCurrent_v2, 1, (xti_cu_context))                                                    \
    X(ctx_pop, cuCtxPopCurrent_v2, 1, (xti_cu_context *))                                                    \
    X(ctx_id, cuCtxGetId, 0, (xti_cu_context, unsigned long long *))                                         \
    X(ctx_wait, cuCtxSynchronize, 1, (void))                                                                 \
    X(primary_state, cuDevicePrimaryCtxGetState, 1, (xti_cu_device, unsigned int *, int *))                  \
    X(primary_retain, cuDevicePrimaryCtxRetain, 1, (xti_cu_context *, xti_cu_device))                        \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, 1, (xti_cu_device))                                     \
    X(module_load, cuModuleLoadData, 1, (xti_cu_module *, const void *))                                     \
    X(module_unload, cuModuleUnload, 1, (xti_cu_module))                                                     \
    X(module_function, cuModuleGetFunction, 1, (xti_cu_function *, xti_cu_module, const char *))             \
    X(func_attribute, cuFuncGetAttribute, 1, (int *, xti_cu_func_attribute, xti_cu_function))                \
    X(func_load, cuFuncLoad, 0, (xti_cu_function))                                                           \
    X(capture_mode, cuThreadExchangeStreamCaptureMode, 0, (xti_cu_capture_mode *))                           \
    X(mem_alloc, cuMemAlloc_v2, 1, (unsigned long long *, size_t))                                           \
    X(mem_free, cuMemFree_v2, 1, (unsigned long long))                                                       \
    X(mem_to_device, cuMemcpyHtoD_v2, 1, (unsigned long long, const void *, size_t))                         \
    X(mem_to_host, cuMemcpyDtoH_v2, 1, (void *, unsigned long long, size_t))                                 \
    X(launch, cuLaunchKernel, 1,                                                                             \
      (xti_cu_function, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,  \
       unsigned int, xti_cu_stream, void **, void **))

struct xti_cu_api {
#define X(field, symbol, required, params) xti_cu_result(*field) params;
    XTI_CU_FUNCTIONS(X)
#undef X
};

#endif
