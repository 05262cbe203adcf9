/* any.cu: every number of every copy is a parameter, its rank and pieces too: what runs while better code is
 * compiled. Inserted after prelude.cu and numbers.cu, once for each width of a unit. A thread copies
 * XT_ANY_STEPS units, one at a time, in the destination's order.
 *
 * - XT_ANY the entry; XT_ANY_AT(x) names a helper of its own
 * - XT_UNIT bytes; xt_index, xt_signed; XT_WIDE 1: they have 64 bits
 * - XT_ANY_STEPS; XT_ANY_NUMBERS, XT_ANY_DIVS: the most there may be
 *
 * The numbers (runtime/cuda/any.c writes them): blocks in all, then the pieces, one record each:
 *     end      the first block of the next piece
 *     next     where its record begins
 *     points, dims, divs, guards
 *     fill     1: the 16 bytes of `value` are written, and no source is read
 *     soff, doff
 *     value    16 bytes
 *     then     {extent, its divisor's pair, source stride, destination stride} of each dim, outermost first;
 *              {c, coefficients of all dims, of all divs, denominator, its pair} of each div;
 *              {c, coefficients of all dims, of all divs} of each guard;
 *              the divs' coefficients of the source
 */
#define XT_ANY_LOOP  _Pragma("unroll 1") /* small code compiles soon: unrolled it took 9 s */
#define XT_ANY_VALUE 9
#define XT_ANY_DIMS  (9 + 16 / (int)sizeof(xt_index))
#if XT_WIDE
#define XT_ANY_DIVIDE(i, at) ((i) / n.v[at])
#else
#define XT_ANY_DIVIDE(i, at) xt_divide_any(i, n.v[(at) + 1], n.v[(at) + 2])
#endif
typedef struct XT_ANY_AT(numbers) { xt_index v[XT_ANY_NUMBERS]; }
XT_ANY_AT(numbers);

/* c + sum of coefficients * digits of point i + sum of coefficients * the first n_q of q */
XT_FN xt_index XT_ANY_AT(row)(const XT_ANY_AT(numbers) & n, const xt_b4 dim, const xt_b4 n_dims, xt_index i,
                              const xt_b4 row, const xt_index *q, const xt_b4 n_q)
{
    xt_index sum = n.v[row];
    XT_ANY_LOOP
    for (xt_b4 k = n_dims; k-- > 0;) {
        const xt_index quotient = XT_ANY_DIVIDE(i, dim + 5 * k);
        sum += (i - quotient * n.v[dim + 5 * k]) * n.v[row + 1 + k];
        i = quotient;
    }
    XT_ANY_LOOP
    for (xt_b4 k = 0; k < n_q; k++)
        sum += q[k] * n.v[row + 1 + n_dims + k];
    return sum;
}

/* Adds what the divs of the piece at `at` add to s; 0 when a guard hides point i. */
XT_FN int XT_ANY_AT(bend)(const XT_ANY_AT(numbers) & n, const xt_b4 at, const xt_index i, xt_index *s)
{
    const xt_b4 n_dims = n.v[at + 3], n_divs = n.v[at + 4], n_guards = n.v[at + 5], dim = at + XT_ANY_DIMS;
    xt_index q[XT_ANY_DIVS];
    xt_b4 row = dim + 5 * n_dims;
    XT_ANY_LOOP
    for (xt_b4 k = 0; k < n_divs; k++, row += n_dims + n_divs + 4) {
        const xt_index sum = XT_ANY_AT(row)(n, dim, n_dims, i, row, q, k);
        q[k] = XT_ANY_DIVIDE(sum, row + 1 + n_dims + n_divs);
    }
    XT_ANY_LOOP
    for (xt_b4 k = 0; k < n_guards; k++, row += n_dims + n_divs + 1)
        if ((xt_signed)XT_ANY_AT(row)(n, dim, n_dims, i, row, q, n_divs) < 0)
            return 0;
    XT_ANY_LOOP
    for (xt_b4 k = 0; k < n_divs; k++)
        *s += q[k] * n.v[row + k];
    return 1;
}

XT_FN void XT_ANY_AT(piece)(unsigned char *__restrict__ dst, const unsigned char *__restrict__ src,
                            const XT_ANY_AT(numbers) & n, const xt_b4 at, const xt_index block)
{
    const xt_index first = block * (XT_ANY_STEPS * XT_THREADS) + threadIdx.x;
    xt_index i[XT_ANY_STEPS], s[XT_ANY_STEPS], d[XT_ANY_STEPS];
    int live[XT_ANY_STEPS];
    XT_B(XT_UNIT) v[XT_ANY_STEPS];
    xt_b16 value;
    XT_UNROLL
    for (int w = 0; w < 4; w++)
        value.w[w] = XT_WIDE ? (xt_b4)((xt_size)n.v[at + XT_ANY_VALUE + w / 2] >> w % 2 * 32)
                             : (xt_b4)n.v[at + XT_ANY_VALUE + w];
    XT_UNROLL
    for (int j = 0; j < XT_ANY_STEPS; j++) {
        i[j] = first + j * XT_THREADS;
        s[j] = n.v[at + 7];
        d[j] = n.v[at + 8];
        live[j] = i[j] < n.v[at + 2];
    }
    XT_ANY_LOOP
    for (xt_b4 k = n.v[at + 3]; k-- > 0;) {
        const xt_b4 dim = at + XT_ANY_DIMS + 5 * k;
        XT_UNROLL
        for (int j = 0; j < XT_ANY_STEPS; j++) {
            const xt_index quotient = XT_ANY_DIVIDE(i[j], dim), digit = i[j] - quotient * n.v[dim];
            s[j] += digit * n.v[dim + 3];
            d[j] += digit * n.v[dim + 4];
            i[j] = quotient;
        }
    }
    if (n.v[at + 4] + n.v[at + 5])
        XT_ANY_LOOP
        for (int j = 0; j < XT_ANY_STEPS; j++) {
            xt_index more = 0;
            const int seen = XT_ANY_AT(bend)(n, at, first + j * XT_THREADS, &more);
            XT_UNROLL
            for (int l = 0; l < XT_ANY_STEPS; l++)
                if (l == j) {
                    s[l] += more;
                    live[l] = live[l] && seen;
                }
        }
    XT_UNROLL
    for (int j = 0; j < XT_ANY_STEPS; j++) {
        v[j] = XT_OF(low, XT_UNIT)(value);
        if (live[j] && !n.v[at + 6])
            v[j] = *(const XT_B(XT_UNIT) *)(src + (xt_size)s[j] * XT_UNIT);
    }
    XT_UNROLL
    for (int j = 0; j < XT_ANY_STEPS; j++)
        if (live[j])
            *(XT_B(XT_UNIT) *)(dst + (xt_size)d[j] * XT_UNIT) = v[j];
}

extern "C" __global__ void __launch_bounds__(XT_THREADS)
    XT_ANY(unsigned char *__restrict__ dst, const unsigned char *__restrict__ src,
           const __grid_constant__ XT_ANY_AT(numbers) n)
{
    XT_ANY_LOOP
    for (xt_index block = blockIdx.x; block < n.v[0]; block += gridDim.x) {
        xt_index first = 0;
        xt_b4 at = 1;
        XT_ANY_LOOP
        while (block >= n.v[at]) {
            first = n.v[at];
            at = n.v[at + 1];
        }
        XT_ANY_AT(piece)(dst, src, n, at, block - first);
    }
}
#undef XT_ANY_LOOP
#undef XT_ANY_VALUE
#undef XT_ANY_DIMS
#undef XT_ANY_DIVIDE
