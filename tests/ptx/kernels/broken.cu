/* broken.cu: one mistake a kernel; each test names the fault that has to be found. Blocks of 64, buffers of
 * words. */
typedef unsigned u32;
#define I (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void past_the_end(u32 *dst, const u32 *src, u32 n) { dst[I] = src[I + 1]; }
extern "C" __global__ void before_the_start(u32 *dst, const u32 *src, u32 n) { dst[I] = src[(int)I - 1]; }

extern "C" __global__ void misaligned_vector(u32 *dst, const u32 *src, u32 n)
{
    if (I < n / 4)
        ((uint4 *)dst)[I] = *(const uint4 *)(src + 4 * I + 1 - (I == n / 4 - 1));
}

extern "C" __global__ void missing_barrier(u32 *dst, const u32 *src, u32 n)
{
    __shared__ u32 t[64];
    t[threadIdx.x] = src[I];
    dst[I] = t[63 - threadIdx.x];
}

/* Threads of one warp, in lockstep here, but not on hardware that schedules threads one by one. */
extern "C" __global__ void missing_warp_barrier(u32 *dst, const u32 *src, u32 n)
{
    __shared__ volatile u32 t[64];
    t[threadIdx.x] = src[I];
    dst[I] = t[threadIdx.x ^ 1];
}

/* The second barrier of a loop is missing: the next round overwrites what others may still read. */
extern "C" __global__ void overwrites_before_read(u32 *dst, const u32 *src, u32 n)
{
    __shared__ volatile u32 t[64];
    u32 sum = 0;
    for (u32 k = 0; k < 3; k++) {
        t[threadIdx.x] = src[I] + k;
        __syncthreads();
        sum += t[63 - threadIdx.x];
    }
    dst[I] = sum;
}

extern "C" __global__ void written_twice(u32 *dst, const u32 *src, u32 n) { dst[I == 5 ? 6 : I] = src[I]; }
extern "C" __global__ void one_not_written(u32 *dst, const u32 *src, u32 n)
{
    if (I != 7)
        dst[I] = src[I];
}
extern "C" __global__ void writes_gap(u32 *dst, const u32 *src, u32 n) { dst[I] = src[I]; }
extern "C" __global__ void writes_source(u32 *dst, u32 *src, u32 n)
{
    src[I] = 0;
    dst[I] = 0;
}
extern "C" __global__ void reads_destination(u32 *dst, const u32 *src, u32 n) { dst[I] = dst[I] + src[I]; }

extern "C" __global__ void uninitialised_shared(u32 *dst, const u32 *src, u32 n)
{
    __shared__ u32 t[65];
    t[threadIdx.x] = src[I];
    __syncthreads();
    dst[I] = t[threadIdx.x + 1];
}

extern "C" __global__ void past_shared(u32 *dst, const u32 *src, u32 n)
{
    __shared__ u32 t[64], other[64];
    other[threadIdx.x] = n;
    t[threadIdx.x] = src[I];
    __syncthreads();
    dst[I] = t[threadIdx.x + n / 64 - 1] + other[threadIdx.x];
}

extern "C" __global__ void uninitialised_local(u32 *dst, const u32 *src, u32 n)
{
    u32 t[16];
    for (u32 k = 0; k < n % 15 + 2; k++)
        t[src[k] % 8] = k;
    dst[I] = t[src[I] % 8 + 8];
}

extern "C" __global__ void divergent_barrier(u32 *dst, const u32 *src, u32 n)
{
    __shared__ volatile u32 t[64];
    t[threadIdx.x] = src[I];
    if (threadIdx.x & 1) {
        asm volatile("bar.sync 0;" ::: "memory");
        dst[I] = t[threadIdx.x - 1];
    } else {
        asm volatile("barrier.sync 0;" ::: "memory");
        dst[I] = t[threadIdx.x + 1] + 1;
    }
}

extern "C" __global__ void endless(u32 *dst, const u32 *src, u32 n)
{
    volatile const u32 *p = src;
    while (p[I] != n + 1000000)
        ;
    dst[I] = 0;
}

extern "C" __global__ void traps(u32 *dst, const u32 *src, u32 n)
{
    if (I == 40)
        __trap();
    dst[I] = src[I];
}

extern "C" __global__ void divides_by_zero(u32 *dst, const u32 *src, u32 n)
{
    dst[I] = n / (src[I] - src[0]);
}
