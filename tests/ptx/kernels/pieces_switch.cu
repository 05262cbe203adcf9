/* pieces_switch.cu: one output made of nine pieces of equal length, each read in another way: a switch that
 * the compiler turns into a branch table or a tree of branches. */
extern "C" __global__ void pieces(unsigned *__restrict__ dst, const unsigned *__restrict__ src, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, k = i % n, v = 0;
    if (i >= 9 * n)
        return;
    switch (i / n) {
    case 0:
        v = src[k];
        break;
    case 1:
        v = src[n - 1 - k];
        break;
    case 2:
        v = src[k] + src[n - 1 - k];
        break;
    case 3:
        v = ~src[k];
        break;
    case 4:
        v = __brev(src[k]);
        break;
    case 5:
        v = __byte_perm(src[k], src[n - 1 - k], 0x5140);
        break;
    case 6:
        v = __funnelshift_l(src[k], src[n - 1 - k], k);
        break;
    case 7:
        v = src[k / 3 * 3] >> (k & 31);
        break;
    case 8:
        v = __clz(src[k]) * 100 + __popc(src[k]);
        break;
    default:
        __builtin_unreachable();
    }
    dst[i] = v;
}
