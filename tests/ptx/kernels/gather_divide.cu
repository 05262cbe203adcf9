/* gather_divide.cu: any strided view of shorts, its extents and strides known at run time only: 64-bit
 * divisions, and a struct parameter indexed in a loop. */
struct view {
    long long n[8], stride[8], offset;
    int rank;
};

extern "C" __global__ void gather(unsigned short *__restrict__ dst, const unsigned short *__restrict__ src,
                                  const __grid_constant__ view v, long long total)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x, rest = i, at = v.offset;
    if (i >= total)
        return;
    for (int d = v.rank - 1; d >= 0; d--) {
        at += rest % v.n[d] * v.stride[d];
        rest /= v.n[d];
    }
    dst[i] = src[at];
}

/* The same with a local copy, which a store into the struct forces. */
extern "C" __global__ void gather_local(unsigned short *__restrict__ dst,
                                        const unsigned short *__restrict__ src, view v, long long total)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x, at = v.offset;
    if (i >= total)
        return;
    long long digit[8], rest = i;
    for (int d = v.rank - 1; d >= 0; d--) {
        digit[d] = rest % v.n[d];
        rest /= v.n[d];
    }
    for (int d = 0; d < v.rank; d++)
        at += digit[d] * v.stride[d];
    dst[i] = src[at];
}
