/* warp.cu: exchanges inside one warp: by shuffle, by ballot, by shared memory ordered with __syncwarp. */
extern "C" __global__ void shuffle(unsigned *__restrict__ dst, const unsigned *__restrict__ src)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = __shfl_xor_sync(~0u, src[i], 5);
    v += __shfl_down_sync(~0u, v, 3);
    dst[i] = v + __shfl_sync(~0u, v, 7, 16);
}

extern "C" __global__ void syncwarp(unsigned *__restrict__ dst, const unsigned *__restrict__ src)
{
    __shared__ unsigned t[8][32];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, w = threadIdx.x / 32, l = threadIdx.x % 32;
    t[w][l] = src[i];
    __syncwarp();
    unsigned v = t[w][31 - l];
    __syncwarp();
    t[w][l] = v * 3;
    __syncwarp();
    dst[i] = t[w][l ^ 1];
}

extern "C" __global__ void ballot(unsigned *__restrict__ dst, const unsigned *__restrict__ src)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, v = src[i];
    dst[i] = __ballot_sync(~0u, v % 3 == 0) + 5 * __ballot_sync(~0u, v > 1u << 30);
}
