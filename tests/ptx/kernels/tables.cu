/* tables.cu: initialised constant and device arrays, read at computed places. */
__constant__ int from[8] = {3, 1, 7, 5, 0, 2, 6, 4};
__device__ const unsigned short add[5] = {100, 200, 300, 400, 500};

extern "C" __global__ void tables(unsigned *__restrict__ dst, const unsigned *__restrict__ src)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    dst[i] = src[i / 8 * 8 + from[i % 8]] + add[i % 5];
}
