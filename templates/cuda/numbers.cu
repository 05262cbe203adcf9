/* numbers.cu: what bodies need whose numbers are read; inserted after prelude.cu. Division of i < 2^31 by a
 * number n, of which the host has made the pair that is handed over (xti_divisor_of in runtime/cuda/writer.h,
 * with the proof). The second serves n = 1, too. */
XT_FN xt_b4 xt_divide(const xt_b4 i, const xt_b4 m, const xt_b4 shift) { return __umulhi(i, m) >> shift; }
XT_FN xt_b4 xt_divide_any(const xt_b4 i, const xt_b4 m, const xt_b4 shift)
{
    return __umulhi(2 * i, m) >> shift;
}
