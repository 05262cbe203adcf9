/* cudart_double.c: a CUDA runtime on the driver double, whose primary context it makes current, as CUDA's own
 * does in its first call. */
#include <stdint.h>
#include <cuda_runtime_api.h>

#define RUNTIME __attribute__((visibility("default")))

/* The driver's, of libcuda_double.so. */
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuCtxPushCurrent_v2(void *ctx);
int cuMemAlloc_v2(uint64_t *p, size_t bytes);
int cuMemFree_v2(uint64_t p);
int cuMemcpyHtoD_v2(uint64_t dst, const void *src, size_t bytes);
int cuMemcpyDtoH_v2(void *dst, uint64_t src, size_t bytes);
int cuStreamCreate(cudaStream_t *s, unsigned flags);
int cuStreamDestroy_v2(cudaStream_t s);
int cuStreamSynchronize(cudaStream_t s);

static cudaError_t of(int driver) { return driver ? cudaErrorUnknown : cudaSuccess; }

static int begin(void)
{
    static void *ctx; /* of the one thread that the example has */
    return ctx ? 0 : cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxPushCurrent_v2(ctx);
}

RUNTIME const char *cudaGetErrorString(cudaError_t e) { return e ? "the driver double refused" : "no error"; }

RUNTIME cudaError_t cudaMalloc(void **p, size_t bytes)
{
    uint64_t at = 0;
    int e = begin() || cuMemAlloc_v2(&at, bytes);
    *p = (void *)(uintptr_t)at;
    return of(e);
}

RUNTIME cudaError_t cudaFree(void *p) { return of(cuMemFree_v2((uint64_t)(uintptr_t)p)); }

/* Work on the double's streams is done at once. */
RUNTIME cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                                    cudaStream_t s)
{
    return of(kind == cudaMemcpyHostToDevice ? cuMemcpyHtoD_v2((uint64_t)(uintptr_t)dst, src, bytes)
                                             : cuMemcpyDtoH_v2(dst, (uint64_t)(uintptr_t)src, bytes));
}

RUNTIME cudaError_t cudaStreamCreate(cudaStream_t *s) { return of(begin() || cuStreamCreate(s, 0)); }

RUNTIME cudaError_t cudaStreamDestroy(cudaStream_t s) { return of(cuStreamDestroy_v2(s)); }

RUNTIME cudaError_t cudaStreamSynchronize(cudaStream_t s) { return of(cuStreamSynchronize(s)); }
