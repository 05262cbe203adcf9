/* weave.cu: a thread takes an item, XT_GROUP pixels of a row: words of 16 bytes of the source in, words of
 * the destination out, and constant byte permutes between. Where an item's words lie side by side in memory,
 * a warp moves those of its 32 items together, and they change lanes through shared memory: its accesses are
 * whole lines. Neither side needs an alignment: an item's words are aligned ones of the destination, so that
 * a row's first item may begin before the row; what it needs of the source is fetched in aligned words and
 * shifted.
 *
 * - XT_AT: item i -> *s, *d: pixel 0 of channel 0 of its row; *u: the item in its row. XT_POINTS items
 * - destination: rows of XT_PIXELS pixels, XT_PIXEL units each, side by side. Where XT_PIXEL is 1, all
 * channels have a row, XT_TO_CHANNEL units apart. XT_WHOLE: rows are whole items. XT_ALIGNED: they begin at
 * multiples of 16 bytes; else every XT_PERIOD-th pixel does, and the one to begin with is found by XT_INVERSE
 * - source: pixels lie XT_STEP units apart, downwards where XT_BACK. An item has XT_WINDOWS windows of it,
 *   XT_FROM_CHANNEL units apart, the first XT_LOW units below its first pixel. A window is XT_CHUNKS words,
 * and lies in XT_FETCHED aligned ones, from their begin on unless XT_SHIFTED. XT_INSIDE: none leaves its
 * source
 * - XT_PARTS: windows are of so many sources, one each where there are several: u[k]: where pixel 0 of the
 *   row is in source k. XT_EXTENT<k> units has source k; a word that begins below XT_WORDS<k> lies inside
 * - _permute: the windows' words and, if XT_GROUND, the fill value -> XT_OUTS words */
#define XT_NAME(name) XT_PASTE(XT_BODY, name)
#define XT_G          (16 / XT_UNIT)
#define XT_MIXED_OUT  (XT_PIXEL > 1 && XT_OUTS > 1)
/* Word e of a warp, n of them an item, has place XT_MIX(e, n) in shared memory, so that there are no bank
 * conflicts on either side of the exchange: that of e + 32 lies 32 further, and with e the first word of an
 * item, XT_NEXT(place of e, c, n) is that of e + c. */
#define XT_MIX(e, n)         ((n) & ((n)-1) ? (e) : (e) ^ ((e) >> 3 & 3))
#define XT_NEXT(place, c, n) ((n) & ((n)-1) ? (place) + (c) : (place) ^ (c))
#if XT_PARTS == 1
#define XT_PICK(name, k) name##0
#define XT_SOURCE_OF(k)  src
#elif XT_PARTS == 2
#define XT_PICK(name, k) ((k) ? name##1 : name##0)
#define XT_SOURCE_OF(k)  ((k) ? src.p[1] : src.p[0])
#elif XT_PARTS == 3
#define XT_PICK(name, k) ((k) == 0 ? name##0 : (k) == 1 ? name##1 : name##2)
#define XT_SOURCE_OF(k)  ((k) == 0 ? src.p[0] : (k) == 1 ? src.p[1] : src.p[2])
#else
#define XT_PICK(name, k) ((k) < 2 ? ((k) ? name##1 : name##0) : (k) == 2 ? name##2 : name##3)
#define XT_SOURCE_OF(k)  ((k) < 2 ? ((k) ? src.p[1] : src.p[0]) : (k) == 2 ? src.p[2] : src.p[3])
#endif
/* Windows in the order in which they lie in the source. */
#define XT_SEAT(lane) (XT_BACK ? 31 - (lane) : (lane))

/* The window that begins `shift` bytes on in the fetched words. */
XT_FN void XT_NAME(_shift)(const xt_b16 *word, const int shift, xt_b4 *to)
{
    xt_b4 a[4 * XT_CHUNKS + 2], b[4 * XT_CHUNKS + 1];
    XT_UNROLL
    for (int k = 0; k < 4 * XT_CHUNKS + 2; k++) {
        const xt_b4 near = k < 4 * XT_FETCHED ? word[k / 4].w[k % 4] : 0;
        const xt_b4 far = k + 2 < 4 * XT_FETCHED ? word[(k + 2) / 4].w[(k + 2) % 4] : 0;
        a[k] = shift & 8 ? far : near;
    }
    XT_UNROLL
    for (int k = 0; k < 4 * XT_CHUNKS + 1; k++)
        b[k] = XT_UNIT < 8 && shift & 4 ? a[k + 1] : a[k];
    XT_UNROLL
    for (int k = 0; k < 4 * XT_CHUNKS; k++)
        to[k] = XT_UNIT < 4 ? __funnelshift_r(b[k], b[k + 1], shift % 4 * 8) : b[k];
}

/* The word that begins at unit `unit` of source s; what lies outside it is not read. */
XT_FN xt_b16 XT_NAME(_word)(const unsigned char *src, const int s, const xt_index unit, xt_b16 *slot,
                            const xt_index *t)
{
    const unsigned char *p = src + (long long)(xt_signed)unit * XT_UNIT;
    if (XT_INSIDE || unit < XT_PICK(XT_WORDS, s))
        return *(const xt_b16 *)p;
    *slot = xt_zero();
#pragma unroll 1
    for (int k = 0; k < XT_G; k++)
        if (unit + k < XT_PICK(XT_EXTENT, s))
            ((XT_B(XT_UNIT) *)slot)[k] = ((const XT_B(XT_UNIT) *)p)[k];
    return *slot;
}

XT_FN void XT_BODY(unsigned char *__restrict__ dst,
#if XT_PARTS == 1
                   const unsigned char *__restrict__ src,
#else
                   const xt_many src,
#endif
                   const xt_b16 fill, const xt_index block, const xt_index *t, xt_b16 *tile)
{
    const unsigned int lane = threadIdx.x % 32;
    xt_b16 *const stage = tile + threadIdx.x / 32 * XT_STAGE;
    xt_b16 *const fetched = stage + XT_MIX(lane, XT_FETCHED), *const mixed = stage + XT_MIX(lane, XT_OUTS);
    const xt_index item = block * XT_THREADS + threadIdx.x;
    if (item - lane >= XT_POINTS)
        return;
    xt_index s, d, u[XT_PARTS];
    XT_AT(t, item < XT_POINTS ? item : XT_POINTS - 1, 0, &s, &d, u, u);
    xt_signed at = u[0] * XT_GROUP; /* the item's first pixel */
    u[0] = s;
#if !XT_ALIGNED
    at -= ((unsigned int)(xt_size)(dst + (xt_size)d * XT_UNIT) & 15) / (16 / XT_PERIOD) * XT_INVERSE %
          XT_PERIOD;
#endif
    s = (XT_BACK ? -at : at) * XT_STEP - XT_LOW;
    d += at * XT_PIXEL;
    xt_b16 word[XT_WINDOWS * XT_FETCHED];
    int shift[XT_WINDOWS];
    XT_UNROLL
    for (int k = 0; k < XT_WINDOWS; k++) {
        const int part = XT_PARTS > 1 ? k : 0;
        xt_index begin = u[part] + s + (XT_PARTS > 1 ? 0 : k * XT_FROM_CHANNEL); /* the window's word */
        shift[k] = XT_SHIFTED ? (int)((xt_size)XT_SOURCE_OF(part) + (xt_size)begin * XT_UNIT) & 15 : 0;
        begin -= shift[k] / XT_UNIT;
        const xt_index start = begin - XT_SEAT(lane) * (XT_FETCHED * XT_G);
        XT_UNROLL
        for (int c = 0; c < XT_FETCHED; c++) {
            const unsigned int e = lane + c * 32;
            const int i = k * XT_FETCHED + c;
            const xt_index unit =
                XT_FETCHED > 1 ? __shfl_sync(0xffffffffu, start, XT_SEAT(e / XT_FETCHED)) + e * XT_G : begin;
            word[i] = XT_NAME(_word)(XT_SOURCE_OF(part), part, unit, fetched + i * 32, t);
        }
    }
    xt_b4 in[4 * XT_WINDOWS * XT_CHUNKS + 4 * XT_GROUND], out[4 * XT_OUTS];
#if XT_FETCHED > 1
    XT_UNROLL
    for (int i = 0; i < XT_WINDOWS * XT_FETCHED; i++)
        fetched[i * 32] = word[i];
    __syncwarp();
    XT_UNROLL
    for (int i = 0; i < XT_WINDOWS * XT_FETCHED; i++) {
        const int k = i / XT_FETCHED, c = i % XT_FETCHED,
                  place = XT_MIX(XT_SEAT(lane) * XT_FETCHED, XT_FETCHED);
        word[i] = stage[k * 32 * XT_FETCHED + XT_NEXT(place, c, XT_FETCHED)];
        /* loaded whole: parts that are wanted alone would meet in banks */
        asm("" : "+r"(word[i].w[0]), "+r"(word[i].w[1]), "+r"(word[i].w[2]), "+r"(word[i].w[3]));
    }
    __syncwarp(); /* no lane writes there again before all have read; nor is a read put off */
#elif !XT_INSIDE
    __syncwarp();
#endif
    XT_UNROLL
    for (int k = 0; k < XT_WINDOWS; k++) {
        if (XT_SHIFTED)
            XT_NAME(_shift)(word + k * XT_FETCHED, shift[k], in + 4 * XT_CHUNKS * k);
        XT_UNROLL
        for (int j = 0; j < 4 * XT_CHUNKS && !XT_SHIFTED; j++)
            in[4 * XT_CHUNKS * k + j] = word[k * XT_FETCHED + j / 4].w[j % 4];
    }
    XT_UNROLL
    for (int j = 0; j < 4 * XT_GROUND; j++)
        in[4 * XT_WINDOWS * XT_CHUNKS + j] = fill.w[j];
    XT_NAME(_permute)(in, out);
    xt_b16 made[XT_OUTS];
    XT_UNROLL
    for (int j = 0; j < 4 * XT_OUTS; j++)
        made[j / 4].w[j % 4] = out[j];
#if XT_MIXED_OUT
    XT_UNROLL
    for (int c = 0; c < XT_OUTS; c++)
        stage[XT_NEXT(XT_MIX(lane * XT_OUTS, XT_OUTS), c, XT_OUTS)] = made[c];
    __syncwarp();
#endif
    const xt_index end = d - lane * (XT_OUTS * XT_G);
    const xt_signed first = at * XT_PIXEL - lane * (XT_OUTS * XT_G);
    XT_UNROLL
    for (int c = 0; c < XT_OUTS; c++) {
        const unsigned int e = lane + c * 32, of = XT_MIXED_OUT ? e / XT_OUTS : lane;
        const xt_index to =
            XT_MIXED_OUT ? __shfl_sync(0xffffffffu, end, of) + e * XT_G : d + c * XT_TO_CHANNEL;
        const xt_signed begin = XT_WHOLE       ? 0
                                : XT_MIXED_OUT ? __shfl_sync(0xffffffffu, first, of) + (xt_signed)(e * XT_G)
                                               : at * XT_PIXEL;
        const xt_signed n = XT_PIXELS * XT_PIXEL;
        unsigned char *p = dst + (long long)(xt_signed)to * XT_UNIT;
        if (item - lane + of >= XT_POINTS)
            continue;
        const xt_b16 x = XT_MIXED_OUT ? mixed[c * 32] : made[c];
        if (XT_WHOLE || (begin >= 0 && begin + XT_G <= n))
            *(xt_b16 *)p = x;
        else
            xt_store_part(p, x, begin < 0 ? (int)-begin * XT_UNIT : 0,
                          n - begin < XT_G ? (int)(n - begin) * XT_UNIT : 16);
    }
}
#undef XT_NAME
#undef XT_G
#undef XT_MIXED_OUT
#undef XT_MIX
#undef XT_NEXT
#undef XT_SEAT
#undef XT_PICK
#undef XT_SOURCE_OF
