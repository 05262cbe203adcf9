/* copy_vector.cu: n bytes, 16 a thread, the last n % 16 by single bytes. */
typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(256)
    copy_vector(unsigned char *__restrict__ dst, const unsigned char *__restrict__ src, u64 n)
{
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 16)
        ((uint4 *)dst)[i] = ((const uint4 *)src)[i];
    else if (i - n / 16 < n % 16)
        dst[n / 16 * 15 + i] = src[n / 16 * 15 + i];
}
