/* numbers.cu: what bodies need whose numbers are read; inserted after prelude.cu. Division of i < 2^31 by a
 * number n, of which the host has made the pair that is handed over (xti_divisor_of in runtime/cuda/writer.h,
 * with the proof). The second serves n = 1, too. */
XT_FN xt_b4 xt_divide(const xt_b4 i, const xt_b4 m, const xt_b4 shift) { return __umulhi(i, m) >> shift; }
XT_FN xt_b4 xt_divide_any(const xt_b4 i, const xt_b4 m, const xt_b4 shift)
{
    return __umulhi(2 * i, m) >> shift;
}

/* Declares v, the n numbers at `row`, which begin and end at multiples of 16 bytes, and are read so: of a
 * compiler's loads of parameters one by one each is an instruction more. */
typedef struct __align__(16) xt_n32 { xt_b4 v[4]; }
xt_n32;
typedef struct __align__(16) xt_n64 { xt_size v[2]; }
xt_n64;
#define XT_READ(v, row, n)                                                                                   \
    xt_index v[n];                                                                                           \
    XT_UNROLL                                                                                                \
    for (int at = 0; at < n; at += (int)(16 / sizeof(xt_index))) {                                           \
        const xt_numbers part = *(const xt_numbers *)(row + at);                                             \
        XT_UNROLL                                                                                            \
        for (int k = 0; k < (int)(16 / sizeof(xt_index)); k++)                                               \
            v[at + k] = part.v[k];                                                                           \
    }
