/* realign.cu: long rows whose two sides do not share an alignment worth having. A row is cut where the
 * destination's address is a multiple of 16: a thread stores 16 aligned bytes, which it shifts out of two
 * aligned loads of the source. Where those would leave the row, and at the row's ends, it goes unit by unit.
 *
 * - XT_POINTS chunks in all; XT_LENGTH bytes a row
 * - XT_AT: chunk i -> *s, *d: the row's start in units; *u: the chunk in its row */

/* Sixteen of the 32 bytes of lo and hi, from byte `shift` on. */
XT_FN xt_b16 XT_PASTE(XT_BODY, _join)(const xt_b16 lo, const xt_b16 hi, const int shift)
{
    xt_b4 w[8];
    xt_b16 r;
    XT_UNROLL
    for (int k = 0; k < 4; k++) {
        w[k] = lo.w[k];
        w[k + 4] = hi.w[k];
    }
    XT_UNROLL
    for (int k = 0; k < 7; k++)
        w[k] = shift & 4 ? w[k + 1] : w[k];
    XT_UNROLL
    for (int k = 0; k < 5; k++)
        w[k] = shift & 8 ? w[k + 2] : w[k];
    XT_UNROLL
    for (int k = 0; k < 4; k++)
        r.w[k] = __byte_perm(w[k], w[k + 1], 0x3210 + 0x1111 * (shift & 3));
    return r;
}

XT_FN void XT_BODY(unsigned char *__restrict__ dst, const unsigned char *__restrict__ src, const xt_b16 fill,
                   const xt_index block, const xt_index *t, xt_b16 *tile)
{
    xt_b16 lo[XT_STEPS], hi[XT_STEPS];
    const unsigned char *from[XT_STEPS];
    unsigned char *to[XT_STEPS];
    long long at[XT_STEPS]; /* the chunk's first byte in its row: before it in the first chunk of a row */
    int shift[XT_STEPS];    /* -1: unit by unit */
    XT_UNROLL
    for (int j = 0; j < XT_STEPS; j++) {
        const xt_index i = (block * XT_STEPS + j) * XT_THREADS + threadIdx.x;
        xt_index s = 0, d = 0, c = 0;
        lo[j] = hi[j] = xt_zero();
        if (i < XT_POINTS)
            XT_AT(t, i, 0, &s, &d, &c, &c);
        from[j] = src + (xt_size)s * XT_UNIT;
        to[j] = dst + (xt_size)d * XT_UNIT;
        at[j] = (long long)c * 16 - (long long)((xt_size)to[j] & 15);
        shift[j] = (int)((xt_size)(from[j] + at[j]) & 15);
        const long long begin = at[j] - shift[j], end = at[j] + 16 + (shift[j] ? 16 - shift[j] : 0);
        if (i >= XT_POINTS || at[j] < 0 || begin < 0 || end > (long long)XT_LENGTH) {
            shift[j] = -1;
        } else {
            lo[j] = *(const xt_b16 *)(from[j] + begin);
            if (shift[j])
                hi[j] = *(const xt_b16 *)(from[j] + begin + 16);
        }
    }
    XT_UNROLL
    for (int j = 0; j < XT_STEPS; j++) {
        const xt_index i = (block * XT_STEPS + j) * XT_THREADS + threadIdx.x;
        if (shift[j] >= 0)
            *(xt_b16 *)(to[j] + at[j]) = XT_PASTE(XT_BODY, _join)(lo[j], hi[j], shift[j]);
        else if (i < XT_POINTS)
            for (int k = 0; k < 16; k += XT_UNIT)
                if (at[j] + k >= 0 && at[j] + k < (long long)XT_LENGTH)
                    *(XT_B(XT_UNIT) *)(to[j] + at[j] + k) = *(const XT_B(XT_UNIT) *)(from[j] + at[j] + k);
    }
}
