/* segments.cu: rows that lie unit after unit in the destination and consist of segments: each a run of a
 * source, on a ground of one fill value. A row is cut where the destination's address is a multiple of 16,
 * whatever pitch and pointers are: a chunk is 16 aligned bytes, which a thread stores at once. The words it
 * needs of a source are aligned, too: every lane loads one, and takes the next from the lane behind it; then
 * the two are shifted together. Only words that hold a byte of the segment are loaded, and none leaves the
 * source: one that would is put together unit by unit. Loads of a segment are under way together.
 *
 * Positions count units from the row's start; chunks and words begin at multiples of 16 bytes, before the row
 * as well.
 * - XT_LANES: so many lanes, 8, 16 or 32, take XT_LANES * XT_ALONG chunks of a row, and XT_ACROSS such spans;
 *   1: a thread takes XT_ACROSS chunks, of any rows (XT_ALONG is 1). XT_POINTS spans in all
 * - XT_LENGTH units a row. XT_CHUNKS a row at most. XT_ALIGNED: rows begin and end at multiples of 16 bytes;
 *   else XT_SKEW: units that dst begins behind one
 * - XT_SEGMENTS segments; segment k: positions XT_BEGIN<k> up to XT_END<k>; XT_UNITS<k> units has
 *   its source, which begins XT_SKEW<k> units behind a multiple of 16 bytes; words that begin below
 *   XT_WORDS<k> lie inside, and with them all others of a thread when its first begins below XT_INNER<k>.
 *   XT_FRONTS, XT_REARS: bit k: segment k always begins with the row, ends with it. XT_GROUND: they leave a
 *   ground. XT_SHIFTED: the sides differ modulo 16; XT_STEADY: alike in all rows, segment k's by XT_TURN<k>
 *   units
 * - XT_BACKS: bit k: segment k goes backwards in its source: its units are numbered from the source's last
 *   one down, here and in what XT_AT gives; its words are turned round once they are loaded
 * - XT_NUMBERED: numbers are parameters
 * - XT_GUARDS guards of segment 0, a bit pair each in XT_SIGNS: 0, 1, 2: what position is multiplied by,
 *   plus 1; what is added to minus the position is 1 more
 * - XT_AT: item i -> *s, *d: where segment 0's source (at position 0) and the row begin; u[0]: the span or
 *   chunk in its row; then where the other segments' sources begin, then the guards without their position */
#define XT_G          (16 / XT_UNIT)
#define XT_TILES      (XT_ACROSS * XT_ALONG)
#define XT_BACK(k)    (XT_BACKS >> (k)&1)
#define XT_FRONT(k)   (XT_FRONTS >> (k)&1) /* nobody asks what lies before, or behind */
#define XT_REAR(k)    (XT_REARS >> (k)&1)
#define XT_BEHIND     (XT_LANES * (XT_ALONG - 1) + 1) /* words on: the one behind a lane's last */
#define XT_WARP       (XT_LANES == 32)                /* a warp is in one row */
#define XT_ALONE      (XT_WARP && XT_ACROSS == 1)     /* .. and takes none but this */
#define XT_SHARE      (XT_UNIT < 4 ? 4 / XT_UNIT : 1) /* units of 4 bytes */
#define XT_HELPED     (XT_LANES == 1 && !XT_ALIGNED && XT_UNIT < 4) /* ends are stored by several lanes */
#define XT_SKEW_OF(p) ((xt_index)((xt_size)(p) / XT_UNIT) % XT_G)
#define XT_NAME(name) XT_PASTE(XT_BODY, name)
#define XT_ROW        struct XT_NAME(_row)
#define XT_PART       struct XT_NAME(_part_of_row)

#if XT_SEGMENTS == 1
#define XT_PICK(name, k) name##0
#define XT_SOURCE_OF(k)  src
#elif XT_SEGMENTS == 2
#define XT_PICK(name, k) ((k) ? name##1 : name##0)
#define XT_SOURCE_OF(k)  ((k) ? src.p[1] : src.p[0])
#elif XT_SEGMENTS == 3
#define XT_PICK(name, k) ((k) == 0 ? name##0 : (k) == 1 ? name##1 : name##2)
#define XT_SOURCE_OF(k)  ((k) == 0 ? src.p[0] : (k) == 1 ? src.p[1] : src.p[2])
#elif XT_SEGMENTS == 4
#define XT_PICK(name, k) ((k) < 2 ? ((k) ? name##1 : name##0) : (k) == 2 ? name##2 : name##3)
#define XT_SOURCE_OF(k)  ((k) < 2 ? ((k) ? src.p[1] : src.p[0]) : (k) == 2 ? src.p[2] : src.p[3])
#endif

#define XT_PLAIN (XT_SEGMENTS == 1 && !XT_GROUND) /* chunks are words of a segment, and nothing else */
#if XT_UNIT < 4
#define XT_LOADED "+r"
#else
#define XT_LOADED "=r"
#endif

/* Where a thread is in a row. */
XT_ROW
{
    xt_index to;                                /* unit of the destination: position 0 */
    xt_signed first;                            /* of the lanes' first chunk; behind the row: there is none */
    xt_signed at;                               /* of the thread's */
    xt_index more[1 + XT_SEGMENTS + XT_GUARDS]; /* where segments begin in their sources; guards */
    bool last;                                  /* the lane behind this one has not the next chunk */
};

/* Source units unit .. unit + XT_G - 1, those below `begin` and from `end` on as zeros. */
XT_FN xt_b16 XT_NAME(_edge)(const unsigned char *from, const xt_index *t, const int s, const xt_signed unit,
                            const xt_signed begin, const xt_signed end)
{
    xt_b16 v = xt_zero();
#pragma unroll 1
    for (int k = 0; k < XT_G; k++) {
        XT_UNROLL
        for (int w = 0; w < 4; w++) { /* the unit at the low end goes */
#if XT_UNIT < 4
            v.w[w] = __funnelshift_r(v.w[w], w < 3 ? v.w[w + 1] : 0, 8 * XT_UNIT);
#else
            v.w[w] = w + XT_UNIT / 4 < 4 ? v.w[w + XT_UNIT / 4] : 0;
#endif
        }
        if (unit + k >= begin && unit + k < end)
            XT_OF(set, XT_UNIT)
        (&v, XT_G - 1,
         ((const XT_B(XT_UNIT) *)from)[XT_BACK(s) ? XT_PICK(XT_UNITS, s) - 1 - unit - k : unit + k]);
    }
    return v;
}

/* Words q .. q + 3 of lo and hi side by side, and `bits` on; q is a constant. */
XT_FN xt_b16 XT_NAME(_join)(const xt_b16 lo, const xt_b16 hi, const int q, const int bits)
{
    xt_b16 r;
    XT_UNROLL
    for (int k = 0; k < 4; k++) {
        const xt_b4 a = k + q < 4 ? lo.w[k + q] : hi.w[k + q - 4];
        r.w[k] = XT_UNIT < 4 ? __funnelshift_r(a, k + q < 3 ? lo.w[k + q + 1] : hi.w[k + q - 3], bits) : a;
    }
    return r;
}

/* Gives the word of the next chunk to every lane and joins the two, for all chunks of a row; q is a constant.
 */
XT_FN void XT_NAME(_turn)(xt_b16 *word, const xt_b16 behind, const bool last, const int q, const int bits)
{
    const xt_index lane = threadIdx.x % 32;
    XT_UNROLL
    for (int c = 0; c < XT_ALONG; c++) {
        xt_b16 hi = xt_zero();
        XT_UNROLL
        for (int k = 0; k < 4 && k < q + (XT_UNIT < 4); k++) {
            if (c + 1 < XT_ALONG) {
                hi.w[k] = __shfl_sync(0xffffffffu, lane ? word[c].w[k] : word[c + 1].w[k], lane + 1);
            } else {
                hi.w[k] = __shfl_down_sync(0xffffffffu, word[c].w[k], 1);
                hi.w[k] = last ? behind.w[k] : hi.w[k];
            }
        }
        word[c] = XT_NAME(_join)(word[c], hi, q, bits);
    }
}

/* One q in a warp. */
XT_FN void XT_NAME(_turn_all)(xt_b16 *word, const xt_b16 behind, const bool last, const int q, const int bits)
{
    if (q == 0) {
        XT_NAME(_turn)(word, behind, last, 0, bits);
        if (XT_SEGMENTS == 1 || XT_WARP)
            asm volatile(""); /* an edge of its own: see _add */
    } else if (q == 1)
        XT_NAME(_turn)(word, behind, last, 1, bits);
    else if (q == 2)
        XT_NAME(_turn)(word, behind, last, 2, bits);
    else
        XT_NAME(_turn)(word, behind, last, 3, bits);
}

/* The same where rows, and so shifts, differ within a warp. */
XT_FN void XT_NAME(_turn_any)(xt_b16 *word, const xt_b16 behind, const bool last, const int q, const int bits)
{
    const xt_index lane = threadIdx.x % XT_LANES;
    XT_UNROLL
    for (int c = 0; c < XT_ALONG; c++) {
        xt_b4 w[8];
        XT_UNROLL
        for (int k = 0; k < 4; k++) {
            w[k] = word[c].w[k];
            if (k >= 3 + (XT_UNIT < 4)) {
                w[4 + k] = 0;
            } else if (c + 1 < XT_ALONG) {
                w[4 + k] =
                    __shfl_sync(0xffffffffu, lane ? word[c].w[k] : word[c + 1].w[k], lane + 1, XT_LANES);
            } else {
                w[4 + k] = __shfl_down_sync(0xffffffffu, word[c].w[k], 1);
                w[4 + k] = last ? behind.w[k] : w[4 + k];
            }
        }
        XT_UNROLL
        for (int k = 0; k < 6; k++)
            w[k] = q & 2 ? w[k + 2] : w[k];
        XT_UNROLL
        for (int k = 0; k < 5; k++)
            w[k] = q & 1 ? w[k + 1] : w[k];
        XT_UNROLL
        for (int k = 0; k < 4; k++)
            word[c].w[k] = XT_UNIT < 4 ? __funnelshift_r(w[k], w[k + 1], bits) : w[k];
    }
}

/* Units from .. to - 1 of segment k's x, the others of v; from < XT_G, to > 0. */
XT_FN xt_b16 XT_NAME(_merge)(const xt_b16 v, const xt_b16 x, const xt_signed from, const xt_signed to,
                             const int s)
{
    xt_b16 r;
    XT_UNROLL
    for (int k = 0; k < 4; k++) {
#if XT_UNIT >= 4
        const int unit = k * 4 / XT_UNIT;
        const bool has = XT_FRONT(s)  ? unit < to
                         : XT_REAR(s) ? unit >= from
                                      : (xt_index)(unit - from) < (xt_index)(to - from);
        r.w[k] = has ? x.w[k] : v.w[k];
#else
        const int first = XT_FRONT(s) ? 0 : (int)max(from, (xt_signed)0),
                  last = XT_REAR(s) ? XT_G : (int)min(to, (xt_signed)XT_G),
                  lo = min(max(first * XT_UNIT - 4 * k, 0), 4), hi = min(max(last * XT_UNIT - 4 * k, 0), 4);
        const xt_b4 mask = (xt_b4)(((xt_size)1 << 8 * hi) - ((xt_size)1 << 8 * lo));
        r.w[k] = (x.w[k] & mask) | (v.w[k] & ~mask);
#endif
    }
    return r;
}

/* Stores units from .. to - 1 of the chunk at p. */
XT_FN void XT_NAME(_part)(unsigned char *p, const xt_b16 v, const int from, const int to)
{
#if XT_UNIT == 4
    XT_UNROLL
    for (int k = 0; k < 4; k += 2) {
        const bool a = from <= k && k < to, b = from <= k + 1 && k + 1 < to;
        if (a && b)
            ((xt_b8 *)p)[k / 2] = xt_get_b8(v, k / 2);
        else if (a)
            ((xt_b4 *)p)[k] = v.w[k];
        else if (b)
            ((xt_b4 *)p)[k + 1] = v.w[k + 1];
    }
#else
    xt_store_part(p, v, from * XT_UNIT, to * XT_UNIT);
#endif
}

XT_FN void XT_NAME(_find)(XT_ROW *row, const unsigned char *dst, const xt_index item, const xt_index *t)
{
    const xt_index lane = threadIdx.x % XT_LANES;
    xt_index s = 0, d = 0;
    XT_UNROLL
    for (int k = 0; k < XT_SEGMENTS + XT_GUARDS; k++)
        row->more[k] = 0;
    row->first = XT_LENGTH + XT_G;
    row->to = 0;
    row->last = XT_LANES > 1 ? lane == XT_LANES - 1 : threadIdx.x % 32 == 31;
    if (XT_ALONE || item < XT_POINTS) {
        XT_AT(t, item, 0, &s, &d, row->more, row->more);
        const xt_index c = row->more[0];
        row->to = d;
        row->first = (xt_signed)(c * (XT_LANES * XT_ALONG * XT_G) - (XT_ALIGNED ? 0 : (d + XT_SKEW) % XT_G));
        row->more[0] = s;
        if (XT_LANES == 1)
            row->last = row->last || c == XT_CHUNKS - 1;
    }
    row->at = row->first + (xt_signed)(lane * XT_G);
}

/* Where the guards leave segment 0 of a row. */
XT_FN void XT_NAME(_guard)(const XT_ROW *row, xt_signed *begin, xt_signed *end)
{
    XT_UNROLL
    for (int g = 0; g < XT_GUARDS; g++) {
        const xt_signed value = (xt_signed)row->more[XT_SEGMENTS + g];
        if ((XT_SIGNS >> 2 * g & 3) == 2)
            *begin = max(*begin, -value);
        else if ((XT_SIGNS >> 2 * g & 3) == 0)
            *end = min(*end, value);
        else if (value < 0)
            *end = *begin;
    }
    *end = max(*end, *begin); /* what no guard leaves begins where it ends */
}

/* *v = the word at p when at < n; else, of units of 4 bytes and more, it may be anything: what is not of a
 * segment is left by whole registers. */
XT_FN void XT_NAME(_load)(xt_b16 *v, const unsigned char *p, const xt_index at, const xt_index n)
{
    asm volatile("{\n\t.reg .pred wanted;\n\t"
                 "setp.lt." XT_ASM_TYPE " wanted, %5, %6;\n\t"
                 "@wanted ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
                 : XT_LOADED(v->w[0]), XT_LOADED(v->w[1]), XT_LOADED(v->w[2]), XT_LOADED(v->w[3])
                 : "l"(p), XT_ASM_INDEX(at), XT_ASM_INDEX(n));
}

/* What a thread loads of a segment for the chunks of one row. */
XT_PART
{
    xt_b16 word[XT_ALONG], behind;
    xt_signed begin, end;
    xt_signed unit; /* of the source, that the first chunk begins with */
    xt_b4 shift;    /* units that it lies behind its word's begin */
    bool meets;     /* chunks of the lanes that share the row, and the segment */
};

/* False: a warp meets none of it, and nothing was loaded. */
XT_FN bool XT_NAME(_fetch)(XT_PART *o, const XT_ROW *row, const unsigned char *from, const xt_index *t,
                           const int k)
{
    o->begin = XT_FRONT(k) ? 0 : XT_PICK(XT_BEGIN, k);
    o->end = XT_REAR(k) ? XT_LENGTH : XT_PICK(XT_END, k);
    if (XT_GUARDS)
        XT_NAME(_guard)(row, &o->begin, &o->end);
    xt_signed start = row->more[0];
    XT_UNROLL
    for (int j = 1; j < XT_SEGMENTS; j++)
        start = k == j ? (xt_signed)row->more[j] : start;
    o->unit = start + row->at;
#if XT_NUMBERED
    asm("" : "+" XT_ASM_INDEX(o->unit)); /* kept: compilers would find them anew later */
#endif
    const int step = XT_BACK(k) ? -16 : 16; /* from a word to the next */
    const xt_signed low_unit = XT_BACK(k) ? (xt_signed)XT_PICK(XT_UNITS, k) - XT_G - o->unit : o->unit,
                    skewed = low_unit + (xt_signed)XT_PICK(XT_SKEW, k);
#if XT_STEADY
    o->shift = XT_PICK(XT_TURN, k);
#else
    o->shift = XT_SHIFTED ? (xt_b4)(XT_BACK(k) ? -skewed : skewed) & (XT_G - 1) : 0;
#endif
#if !XT_NUMBERED && !XT_ALIGNED
    asm("" : "+" XT_ASM_INDEX(o->unit)); /* kept: compilers would find them anew later */
#endif
#if XT_NUMBERED && XT_SHIFTED && !XT_STEADY
    asm("" : "+r"(o->shift));
#endif
    const xt_signed shift = (xt_signed)o->shift;
    const unsigned char *p = from + (long long)(low_unit + (XT_BACK(k) ? shift : -shift)) * XT_UNIT;
    const xt_signed first = XT_LANES > 1 ? row->first : row->at - shift;
    o->meets = ((XT_ALONE && XT_REAR(k)) || first < o->end) &&
               (XT_FRONT(k) || first + (XT_LANES > 1 ? XT_LANES * XT_ALONG : 2) * XT_G > o->begin);
    if (XT_WARP && !o->meets)
        return false;
#if XT_UNIT < 4
    o->behind = xt_zero();
    XT_UNROLL
    for (int c = 0; c < XT_ALONG; c++)
        o->word[c] = xt_zero();
#endif
    /* the segment's words that lie in the source */
    const xt_signed low = max(start + o->begin - (XT_G - 1), (xt_signed)0),
                    high = min(start + o->end, (xt_signed)XT_PICK(XT_WORDS, k));
    const xt_index n = (xt_index)max(high - low, (xt_signed)0), at = o->unit - shift - low;
    XT_UNROLL
    for (int c = 0; c < XT_ALONG; c++)
        XT_NAME(_load)(&o->word[c], p + c * XT_LANES * step, at + c * XT_LANES * XT_G, n);
    if (XT_SHIFTED)
        XT_NAME(_load)
    (&o->behind, p + XT_BEHIND * step, at + XT_BEHIND * XT_G, row->last && o->shift ? n : 0);
    return true;
}

XT_FN void XT_NAME(_reverse)(XT_PART *o)
{
    XT_UNROLL
    for (int c = 0; c < XT_ALONG; c++)
        o->word[c] = XT_OF(reverse, XT_UNIT)(o->word[c]);
    o->behind = XT_OF(reverse, XT_UNIT)(o->behind);
}

/* The chunks one of whose words leaves the source. */
XT_FN void XT_NAME(_mend)(XT_PART *o, const XT_ROW *row, const unsigned char *from, const xt_index *t,
                          const int k)
{
    const xt_signed word = o->unit - (xt_signed)o->shift;
    if ((xt_index)word < XT_PICK(XT_INNER, k))
        return;
#pragma unroll 1
    for (int c = 0; c < XT_ALONG; c++) {
        const xt_index at = word + c * XT_LANES * XT_G;
        if (at < XT_PICK(XT_WORDS, k) && (at + XT_G < XT_PICK(XT_WORDS, k) || !o->shift))
            continue;
        const xt_signed start = o->unit - row->at;
        const xt_b16 x =
            XT_NAME(_edge)(from, t, k, o->unit + c * XT_LANES * XT_G, start + o->begin, start + o->end);
        XT_UNROLL
        for (int j = 0; j < XT_ALONG; j++)
            if (j == c)
                o->word[j] = x;
    }
}

/* Segment k's part of the chunks of a row. Between both ends a chunk is asked for by one comparison each:
 * whole, in part. */
XT_FN void XT_NAME(_place)(const XT_PART *o, const XT_ROW *row, const int k, xt_b16 *v)
{
    const xt_index wholes = (xt_index)max(o->end - o->begin - (XT_G - 1), (xt_signed)0),
                   parts = (xt_index)(o->end - o->begin + (XT_G - 1));
    xt_signed room = o->end - row->at; /* from the first chunk on */
#if XT_NUMBERED
    asm("" : "+" XT_ASM_INDEX(room)); /* kept: a comparison with a constant for each chunk */
#endif
    XT_UNROLL
    for (int c = 0; c < XT_ALONG; c++) {
        const xt_signed on = c * XT_LANES * XT_G, at = row->at + on, left = XT_NUMBERED ? room : o->end - at,
                        behind = XT_NUMBERED ? on : 0;
        const xt_index in = (xt_index)(at - o->begin);
        if (XT_PLAIN || (XT_FRONT(k)  ? XT_REAR(k) || left >= behind + XT_G
                         : XT_REAR(k) ? at >= o->begin
                                      : in < wholes))
            v[c] = o->word[c];
        else if (XT_FRONT(k)  ? XT_REAR(k) || left > behind
                 : XT_REAR(k) ? at + XT_G > o->begin
                              : in + (XT_G - 1) < parts)
            v[c] = XT_NAME(_merge)(v[c], o->word[c], o->begin - at, left - behind, k);
    }
}

/* Adds segment k to the chunks of all rows of the thread. */
XT_FN void XT_NAME(_add)(const XT_ROW *row, const unsigned char *from, const xt_index *t, const int k,
                         xt_b16 *v)
{
    XT_PART o[XT_ACROSS];
    XT_UNROLL
    for (int r = 0; r < XT_ACROSS; r++)
        if (!XT_NAME(_fetch)(&o[r], &row[r], from, t, k) && XT_ACROSS == 1) {
            if (XT_SEGMENTS == 1) /* an edge of its own: else its moves are made before the branch, always; */
                asm volatile(""); /* those of several segments keep more registers than there are */
            return;
        }
    XT_UNROLL
    for (int r = 0; r < XT_ACROSS; r++) {
        if (XT_SHIFTED)
            __syncwarp();
        if (XT_BACK(k) && (!XT_WARP || o[r].meets))
            XT_NAME(_reverse)(&o[r]);
        const int q = (int)(XT_UNIT < 4 ? o[r].shift / XT_SHARE : o[r].shift * (XT_UNIT / 4)),
                  bits = (int)(o[r].shift % XT_SHARE * XT_UNIT * 8);
        if (XT_SHIFTED && !XT_WARP && XT_STEADY && XT_ALONG == 1)
            XT_NAME(_turn_all)(o[r].word, o[r].behind, row[r].last, q, bits);
        else if (XT_SHIFTED && !XT_WARP)
            XT_NAME(_turn_any)(o[r].word, o[r].behind, row[r].last, q, bits);
        if (!o[r].meets && !XT_PLAIN) {
            if (XT_SEGMENTS == 1)
                asm volatile(""); /* the same */
            continue;
        }
        if (XT_SHIFTED && XT_WARP)
            XT_NAME(_turn_all)(o[r].word, o[r].behind, row[r].last, q, bits);
        XT_NAME(_mend)(&o[r], &row[r], from, t, k);
        XT_NAME(_place)(&o[r], &row[r], k, v + r * XT_ALONG);
    }
}

/* Stores the chunks of a row. */
XT_FN void XT_NAME(_store)(unsigned char *dst, const XT_ROW *row, const xt_index *t, const xt_b16 *v)
{
    long long to = (long long)((xt_signed)row->to + row->at) * XT_UNIT;
#if XT_NUMBERED
    asm("" : "+l"(to)); /* kept: the chunks' are sums with a constant */
#endif
    if (XT_NUMBERED && XT_ALIGNED && XT_WARP && XT_ALONG > 1 &&
        row->first + XT_LANES * XT_ALONG * XT_G <= (xt_signed)XT_LENGTH) { /* one question for all */
        XT_UNROLL
        for (int c = 0; c < XT_ALONG; c++)
            *(xt_b16 *)(dst + to + c * XT_LANES * 16) = v[c];
        return;
    }
    XT_UNROLL
    for (int c = 0; c < XT_ALONG; c++) {
        const xt_signed at = row->at + c * XT_LANES * XT_G;
        unsigned char *p = dst + to + c * XT_LANES * 16;
        if (XT_ALIGNED ? (xt_index)at < XT_LENGTH : at >= 0 && at + XT_G <= (xt_signed)XT_LENGTH)
            *(xt_b16 *)p = v[c];
        else if (!XT_ALIGNED && !XT_HELPED && at + XT_G > 0 && at < (xt_signed)XT_LENGTH)
            XT_NAME(_part)
        (p, v[c], (int)max(-at, (xt_signed)0), (int)min((xt_signed)XT_LENGTH - at, (xt_signed)XT_G));
    }
}

#if XT_HELPED
/* Stores the chunks that rows have in part: a warp's go to shared memory, then XT_G lanes side by side store
 * a unit each of one of them, so that each end of a row is one request. */
XT_FN void XT_NAME(_ends)(unsigned char *dst, xt_b16 *tile, const XT_ROW *row, const xt_index *t,
                          const xt_b16 *v)
{
    const xt_b4 lane = threadIdx.x % 32, unit = lane % XT_G;
    xt_b16 *const slot = tile + threadIdx.x / 32 * (2 * 32 * XT_ACROSS);
    xt_b4 n = 0;
    __syncwarp();
    XT_UNROLL
    for (int r = 0; r < XT_ACROSS; r++) {
        const xt_signed at = row[r].at;
        const bool mine = (xt_index)(at + (XT_G - 1)) < XT_LENGTH + (XT_G - 1) &&
                          !(at >= 0 && at + XT_G <= (xt_signed)XT_LENGTH);
        const xt_b4 all = __ballot_sync(0xffffffffu, mine);
        if (mine) {
            xt_b16 *const own = slot + 2 * (n + __popc(all & ((1u << lane) - 1)));
            const xt_size to = (xt_size)(xt_signed)(row[r].to + at);
            own[0] = v[r];
            own[1].w[0] = (xt_b4)to;
            own[1].w[1] = (xt_b4)(to >> 32);
            own[1].w[2] = at < 0 ? (xt_b4)-at : 0;
            own[1].w[3] = (xt_b4)min((xt_signed)XT_LENGTH - at, (xt_signed)XT_G) - own[1].w[2];
        }
        n += __popc(all);
    }
    __syncwarp();
#pragma unroll 1
    for (xt_b4 i = lane / XT_G; i < n; i += 32 / XT_G) {
        const xt_b16 place = slot[2 * i + 1];
        const xt_index to = (xt_index)((xt_size)place.w[1] << 32 | place.w[0]);
        if (unit - place.w[2] < place.w[3])
            *(XT_B(XT_UNIT) *)(dst + (long long)(xt_signed)(to + unit) * XT_UNIT) =
                ((const XT_B(XT_UNIT) *)(slot + 2 * i))[unit];
    }
}
#endif

XT_FN void XT_BODY(unsigned char *__restrict__ dst,
#if XT_SEGMENTS == 1
                   const unsigned char *__restrict__ src,
#else
                   const xt_many src,
#endif
                   const xt_b16 fill, const xt_index block, const xt_index *t, xt_b16 *tile)
{
    XT_ROW row[XT_ACROSS];
    xt_b16 v[XT_TILES];
    XT_UNROLL
    for (int r = 0; r < XT_ACROSS; r++) {
        const xt_index group = block * XT_ACROSS + r,
                       item = group * (XT_THREADS / XT_LANES) + threadIdx.x / XT_LANES;
        if (XT_ALONE && item >= XT_POINTS)
            return;
        XT_NAME(_find)(&row[r], dst, item, t);
    }
    XT_UNROLL
    for (int i = 0; i < XT_TILES; i++)
        v[i] = XT_GROUND ? fill : xt_zero();
    XT_UNROLL
    for (int k = 0; k < XT_SEGMENTS; k++)
        XT_NAME(_add)(row, XT_SOURCE_OF(k), t, k, v);
    XT_UNROLL
    for (int r = 0; r < XT_ACROSS; r++)
        XT_NAME(_store)(dst, &row[r], t, v + r * XT_ALONG);
#if XT_HELPED
    XT_NAME(_ends)(dst, tile, row, t, v);
#endif
}
#undef XT_G
#undef XT_TILES
#undef XT_BEHIND
#undef XT_WARP
#undef XT_LOADED
#undef XT_ALONE
#undef XT_SHARE
#undef XT_HELPED
#undef XT_PLAIN
#undef XT_SKEW_OF
#undef XT_BACK
#undef XT_FRONT
#undef XT_REAR
#undef XT_NAME
#undef XT_ROW
#undef XT_PART
#undef XT_PICK
#undef XT_SOURCE_OF
