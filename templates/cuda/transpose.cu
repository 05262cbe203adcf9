/* transpose.cu: a tile of XT_TA x XT_TB units goes through shared memory. Dim a is contiguous in the source,
 * dim b in the destination: rows of the tile run along a, are loaded in words of XT_VS bytes and lie in
 * shared memory as chunks of 16 bytes; a thread then takes one slot (a word of 4 bytes, or one unit when that
 * is wider) of each of XT_VD / XT_UNIT rows, transposes them in registers and stores words of XT_VD bytes
 * along b.
 *
 * Rows of 8 chunks and more are swizzled: chunk ^= key & 7 with key = row / rows of a thread, so that the
 * lanes of a warp that store XT_VD bytes each along b find their slots in different banks; when more than 8
 * lanes lie along b, the slots within a chunk are exchanged as well. Shorter rows are skewed by a chunk every
 * 8.
 *
 * - XT_NA, XT_NB extents; XT_SB, XT_DA source stride of b and destination stride of a, in units
 * - XT_AT: tile i -> *s, *d of its box's corner, *u, *v: the tile's number along a and b */
#define XT_CPR     (XT_TA * XT_UNIT / 16)      /* chunks of a row */
#define XT_SLOT    (XT_UNIT < 4 ? 4 : XT_UNIT) /* bytes */
#define XT_ROWS    (XT_VD / XT_UNIT)           /* of a thread */
#define XT_OUTS    (XT_SLOT / XT_UNIT)         /* words that a thread stores */
#define XT_ALONG_B (XT_TB / XT_ROWS)           /* threads */
#define XT_ALONG_A (XT_TA / XT_OUTS)
#define XT_WANT_B  (XT_VD == 16 ? 8 : XT_VD == 8 ? 16 : 32)
#define XT_LANES_B (XT_ALONG_B < XT_WANT_B ? XT_ALONG_B : XT_WANT_B)
#define XT_WANT_A  (32 / XT_LANES_B)
#define XT_LANES_A (XT_ALONG_A < XT_WANT_A ? XT_ALONG_A : XT_WANT_A)
#define XT_LOADS   ((XT_TB * XT_TA * XT_UNIT / XT_VS + XT_THREADS - 1) / XT_THREADS)
#define XT_STORES  ((XT_ALONG_A * XT_ALONG_B + XT_THREADS - 1) / XT_THREADS)
#if XT_UNIT == 16
#define XT_SLOT_WORD xt_b16
#elif XT_UNIT == 8
#define XT_SLOT_WORD xt_b8
#else
#define XT_SLOT_WORD xt_b4
#endif

/* What the bytes of a row are xored with inside their chunk. */
XT_FN unsigned int XT_PASTE(XT_BODY, _flip)(const unsigned int row)
{
#if XT_CPR >= 8
    return XT_LANES_B > 8 ? (row / XT_ROWS / 8 & (XT_LANES_B / 8 - 1)) * (128 / XT_LANES_B) : 0;
#else
    return 0;
#endif
}

/* Where the word of `width` bytes at `byte` of a row lies in shared memory. */
XT_FN unsigned char *XT_PASTE(XT_BODY, _spot)(xt_b16 *tile, const unsigned int row, const unsigned int byte,
                                              const unsigned int width)
{
#if XT_CPR >= 8
    const unsigned int chunk = row * XT_CPR + (byte / 16 ^ (row / XT_ROWS & 7));
#else
    const unsigned int line = row * XT_CPR + byte / 16, chunk = line + line / 8;
#endif
    return (unsigned char *)(tile + chunk) + (byte % 16 ^ (XT_PASTE(XT_BODY, _flip)(row) & ~(width - 1)));
}

/* out[z] = the z-th unit of every slot. */
XT_FN void XT_PASTE(XT_BODY, _turn)(const XT_SLOT_WORD *slot, xt_b16 *out)
{
#if XT_UNIT == 16
    out[0] = slot[0];
#elif XT_UNIT == 8 || XT_UNIT == 4
    out[0] = xt_zero();
    XT_UNROLL
    for (int m = 0; m < XT_ROWS; m++)
        XT_OF(set, XT_UNIT)(&out[0], m, slot[m]);
#elif XT_UNIT == 2
    XT_UNROLL
    for (int k = 0; k < 4; k++) {
        const xt_b4 a = 2 * k < XT_ROWS ? slot[2 * k] : 0, b = 2 * k + 1 < XT_ROWS ? slot[2 * k + 1] : 0;
        out[0].w[k] = __byte_perm(a, b, 0x5410);
        out[1].w[k] = __byte_perm(a, b, 0x7632);
    }
#else
    XT_UNROLL
    for (int k = 0; k < 4; k++) {
        const xt_b4 a = 4 * k < XT_ROWS ? slot[4 * k] : 0, b = 4 * k + 1 < XT_ROWS ? slot[4 * k + 1] : 0;
        const xt_b4 c = 4 * k + 2 < XT_ROWS ? slot[4 * k + 2] : 0,
                    e = 4 * k + 3 < XT_ROWS ? slot[4 * k + 3] : 0;
        const xt_b4 ab = __byte_perm(a, b, 0x5140), ce = __byte_perm(c, e, 0x5140);
        const xt_b4 ab2 = __byte_perm(a, b, 0x7362), ce2 = __byte_perm(c, e, 0x7362);
        out[0].w[k] = __byte_perm(ab, ce, 0x5410);
        out[1].w[k] = __byte_perm(ab, ce, 0x7632);
        out[2].w[k] = __byte_perm(ab2, ce2, 0x5410);
        out[3].w[k] = __byte_perm(ab2, ce2, 0x7632);
    }
#endif
}

XT_FN void XT_BODY(unsigned char *__restrict__ dst, const unsigned char *__restrict__ src, const xt_b16 fill,
                   const xt_index block, const xt_index *t, xt_b16 *tile)
{
    xt_index s = 0, d = 0, ta = 0, tb = 0;
    XT_B(XT_VS) v[XT_LOADS];
    XT_AT(t, block, 0, &s, &d, &ta, &tb);
    XT_UNROLL
    for (int j = 0; j < XT_LOADS; j++) {
        const unsigned int e = threadIdx.x + j * XT_THREADS;
        const unsigned int row = e / (XT_TA * XT_UNIT / XT_VS),
                           at = e % (XT_TA * XT_UNIT / XT_VS) * (XT_VS / XT_UNIT);
        const xt_index x = ta * XT_TA + at, y = tb * XT_TB + row;
        const unsigned char *from = src + (xt_size)(xt_index)(s + y * XT_SB + x) * XT_UNIT;
        xt_b16 some = xt_zero(); /* what is past an edge is zero and never stored */
        v[j] = XT_OF(low, XT_VS)(some);
        if (row < XT_TB && y < XT_NB && x + XT_VS / XT_UNIT <= XT_NA) {
            v[j] = *(const XT_B(XT_VS) *)from;
        } else if (XT_NA % (XT_VS / XT_UNIT) != 0 && row < XT_TB && y < XT_NB) {
            XT_UNROLL
            for (int k = 0; k < XT_VS / XT_UNIT; k++)
                if (x + k < XT_NA)
                    XT_OF(set, XT_UNIT)(&some, k, ((const XT_B(XT_UNIT) *)from)[k]);
            v[j] = XT_OF(low, XT_VS)(some);
        }
    }
    XT_UNROLL
    for (int j = 0; j < XT_LOADS; j++) {
        const unsigned int e = threadIdx.x + j * XT_THREADS;
        const unsigned int row = e / (XT_TA * XT_UNIT / XT_VS), byte = e % (XT_TA * XT_UNIT / XT_VS) * XT_VS;
        if (row < XT_TB)
            *(XT_B(XT_VS) *)XT_PASTE(XT_BODY, _spot)(tile, row, byte, XT_VS) =
                XT_OF(permute, XT_VS)(v[j], XT_PASTE(XT_BODY, _flip)(row));
    }
    __syncthreads();
    XT_UNROLL
    for (int j = 0; j < XT_STORES; j++) {
        const unsigned int e = threadIdx.x + j * XT_THREADS, patch = e / (XT_LANES_A * XT_LANES_B);
        const unsigned int q = e % XT_LANES_B + XT_LANES_B * (patch % (XT_ALONG_B / XT_LANES_B));
        const unsigned int w = e / XT_LANES_B % XT_LANES_A + XT_LANES_A * (patch / (XT_ALONG_B / XT_LANES_B));
        const xt_index x = ta * XT_TA + w * XT_OUTS, y = tb * XT_TB + q * XT_ROWS;
        XT_SLOT_WORD slot[XT_ROWS];
        xt_b16 out[XT_OUTS];
        if (w < XT_ALONG_A && x < XT_NA && y < XT_NB) {
            XT_UNROLL
            for (int m = 0; m < XT_ROWS; m++)
                slot[m] = *(const XT_SLOT_WORD *)XT_PASTE(XT_BODY, _spot)(tile, q * XT_ROWS + m, w * XT_SLOT,
                                                                          XT_SLOT);
            XT_PASTE(XT_BODY, _turn)(slot, out);
            XT_UNROLL
            for (int z = 0; z < XT_OUTS; z++) {
                unsigned char *to = dst + (xt_size)(xt_index)(d + (x + z) * XT_DA + y) * XT_UNIT;
                if (x + z < XT_NA && y + XT_ROWS <= XT_NB)
                    *(XT_B(XT_VD) *)to = XT_OF(low, XT_VD)(out[z]);
                else if (XT_NB % XT_ROWS != 0 && x + z < XT_NA) {
                    XT_UNROLL
                    for (int m = 0; m < XT_ROWS; m++)
                        if (y + m < XT_NB)
                            ((XT_B(XT_UNIT) *)to)[m] = XT_OF(get, XT_UNIT)(out[z], m);
                }
            }
        }
    }
}
#undef XT_CPR
#undef XT_SLOT
#undef XT_ROWS
#undef XT_OUTS
#undef XT_ALONG_B
#undef XT_ALONG_A
#undef XT_WANT_B
#undef XT_LANES_B
#undef XT_WANT_A
#undef XT_LANES_A
#undef XT_LOADS
#undef XT_STORES
#undef XT_SLOT_WORD
