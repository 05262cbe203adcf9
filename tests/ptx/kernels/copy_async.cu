/* copy_async.cu: blocks of 128 x 16 bytes through two stages of shared memory filled by cp.async, bytes past
 * the end replaced by zeros. WAIT is how many groups may be pending when a stage is read: 1 is right, 2 too
 * many. */
#ifndef WAIT
#define WAIT 1
#endif
#define STRING_(x) #x
#define STRING(x)  STRING_(x)

__device__ __forceinline__ void fetch(unsigned to, const unsigned char *from, long long left)
{
    unsigned bytes = left >= 16 ? 16 : left > 0 ? (unsigned)left : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
}

extern "C" __global__ void copy_async(uint4 *__restrict__ dst, const unsigned char *__restrict__ src,
                                      long long n, int steps)
{
    extern __shared__ uint4 stage[];
    unsigned me = (unsigned)__cvta_generic_to_shared(stage + threadIdx.x);
    long long at = ((long long)blockIdx.x * steps * blockDim.x + threadIdx.x) * 16, step = blockDim.x * 16;
    fetch(me, src + at, n - at);
    for (int k = 0; k < steps; k++, at += step) {
        fetch(me + (k + 1) % 2 * step, src + at + step, k + 1 < steps ? n - at - step : 0);
        asm volatile("cp.async.wait_group " STRING(WAIT) ";" ::: "memory");
        __syncthreads();
        dst[at / 16] = stage[k % 2 * blockDim.x + (threadIdx.x ^ 1)];
        __syncthreads();
    }
}
