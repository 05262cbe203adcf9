/* arguments.cu: parameters of every size, and floats that are only moved. */
struct pair {
    char c;
    short s;
    int i;
    long long l;
};

extern "C" __global__ void arguments(unsigned char *__restrict__ dst, const float *__restrict__ f,
                                     const double *__restrict__ g, signed char a, unsigned short b, float c,
                                     double d, pair p)
{
    unsigned i = threadIdx.x;
    long long *out = (long long *)(dst + 80 * i);
    out[0] = a, out[1] = b, out[2] = p.c, out[3] = p.s, out[4] = p.i, out[5] = p.l;
    ((double *)out)[6] = d;
    ((float *)out)[14] = c;
    ((float *)out)[15] = f[i];
    ((double *)out)[8] = g[i];
    ((double *)out)[9] = i ? 0.5 : g[0];
}
