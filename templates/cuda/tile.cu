/* tile.cu: a box of units goes through shared memory. It is read in rows, runs of the source of which aligned
 * chunks of 16 bytes are fetched whole, and lies there row by row in the source's order; it leaves in runs of
 * the destination, of which a thread makes an aligned word, unit by unit. Neither side needs an alignment:
 * where a row of the source begins inside its first chunk, the row keeps that shift in shared memory; where
 * the destination's runs begin anywhere, words are narrow or each run's share of the tile begins at its own
 * multiple of a word, and the box reaches XT_BACK0 or XT_BACK1 further back. (The packed method of cuTT,
 * Hynninen and Lyakh 2017.)
 *
 * - XT_AT: box i -> *d of its corner; *s, too, but of rows that run backwards along dims that are not cut the
 *   lowest unit; *u, *v: numbers of its windows along the two dims that are cut
 * - XT_EXCHANGED: what is said of *u is said of *v, and the other way round
 * - XT_CUTS windows; window k, up to XT_LASTk: XT_Tk points of XT_Nk, XT_BACKk more before them; XT_Sk,
 *   XT_Dk strides of that dim in units; XT_REVk: the source's row runs backwards along it, XT_LREVk bytes a
 *   point. XT_CUTS 0: windows are whole, and all that they add to *s and *d is in these
 * - XT_ROWS rows of at most XT_CHUNKS chunks; a row spans XT_SPAN units, and XT_ACUTk units more for each
 *   point of window k but the first; XT_LREV: to the first unit of a row that runs backwards
 * - XT_OUTS runs of the destination, XT_VECTORS words of XT_WORD bytes each, XT_LANES of which come before
 *   the next run's; XT_RUN points of a run for each point of window XT_BCUT (2: none, a run has XT_RUN
 *   points)
 * - XT_NUMBERED: numbers are parameters
 * - XT_ROW_DIMS, XT_RUN_DIMS: dims that rows, or runs, go along
 * - _row: row -> its place in the source and in shared memory; _out: run -> in the destination and in shared
 *   memory; _point: point of a run -> in shared memory. x0, x1: its points of the windows
 * - XT_LEAST_AT_ONCE: chunks that a thread is to have under way
 * - XT_SALIGNED: rows are whole aligned chunks; XT_SHIFTS: 0 no shifts, 1 one for all rows, 2 one a row: then
 *   rows of shared memory are as far apart modulo 16 as those of the source
 * - XT_SHARE: a box's part of a run begins and ends at multiples of so many bytes of the destination
 * - XT_GROUP runs, XT_GROUP_TO units apart, whose units are side by side in shared memory go together
 * - XT_GRID: XT_LANES lanes go along a run of units that lie evenly, or where a table says, from a multiple
 *   of XT_GRID bytes on; 0: from where it begins
 * - XT_EVEN: a window is all words of a box, or all of the run
 * - XT_DALIGNED: parts begin at multiples of XT_SHARE; XT_BOX: the units of a word lie at constants;
 *   XT_CHAINED: they lie parameters apart, and each is found from the one before it
 * - XT_WHOLEk: every window is whole; XT_FILLED: rows are all of one length; XT_UNCUT: runs are whole words;
 *   XT_BRIM: and all of one length
 * - XT_PARTS: a row is loaded in so many parts. XT_ROW_STEP: XT_ROW_ACTIVE threads load, and a thread's next
 *   chunk lies so many rows further, always as far from its first one as from 0; 0: it does not.
 *   XT_ROW_STILL: that chunk's row begins as far within its first chunk. XT_REACH units from a box's first
 *   row to the end of the chunks of its last one.
 *   XT_ACTIVE threads write; their next words lie XT_RUN_STEP runs or XT_POINT_STEP points further, in the
 *   same way; XT_STILL: the units of the next word lie as those of the first one do. Of steps every
 *   XT_ROW_TURN-th, or XT_RUN_TURN-th, goes on to another dim, and every XT_.._TURN2-th to yet another
 * - XT_TABLE: columns of a table that says where the points of a run are: a word's units are looked up; 0:
 *   they are computed, once for all words that lie alike. XT_TURNS: points of a run that go on evenly, at
 *   least XT_K: within a word it turns once at most; 0: it may often
 * - byte a of the rows and gaps that these places are of is at a + (a >> XT_EVERY) * XT_SPREAD, stored
 *   XT_CHUNK_STORE bytes at a time; XT_TOGETHER: the units of a word lie as far from its first one as if
 *   that were at 0
 * - XT_ROOM: there are registers for the addresses of a word's units
 * - XT_QUARTERS: threads gather so many parts of their words in turn, so that those side by side meet in no
 *   bank: thread t begins with part (t >> XT_STAGGER_LANES) * XT_STAGGER_STEP. 0: all begin with the first */
#define XT_PLACE    XT_PASTE(XT_BODY, _place)
#define XT_ROW(i)   XT_PASTE(XT_BODY, _row)(t, i)
#define XT_OUT(i)   XT_PASTE(XT_BODY, _out)(t, i)
#define XT_POINT(i) XT_PASTE(XT_BODY, _point)(t, i)
#define XT_SLOT     XT_PASTE(XT_BODY, _slot)
#define XT_GATHER   XT_PASTE(XT_BODY, _gather)
#define XT_ENDS     XT_PASTE(XT_BODY, _ends)
#define XT_K        (XT_WORD / XT_UNIT)
#define XT_SPOT(a)  (XT_SPREAD ? (a) + ((a) >> XT_EVERY) * XT_SPREAD : (a))
#define XT_LOADS                                                                                             \
    (XT_ROW_STEP ? XT_PARTS * ((XT_ROWS + XT_ROW_STEP - 1) / (XT_ROW_STEP + !XT_ROW_STEP))                   \
                 : (XT_ROWS * XT_CHUNKS + XT_THREADS - 1) / XT_THREADS)
/* more chunks at a time take more registers than there are */
#define XT_USUAL                                                                                             \
    (XT_GRID && XT_UNIT < 4            ? XT_UNIT + 1                                                         \
     : !XT_ROW_STEP || XT_TURNS        ? XT_SALIGNED || XT_ROWS == 1 ? 5 : 3                                 \
     : XT_NUMBERED && XT_SHIFTS == 2 ? 4                                                                     \
                                     : 6)
/* but of few boxes, which a processor has no more room for */
#define XT_AT_ONCE  (XT_USUAL < XT_LEAST_AT_ONCE ? XT_LEAST_AT_ONCE : XT_USUAL)
/* a few more, where the places of all follow from the first one's */
#define XT_MOST     (XT_ROW_STEP ? 3 * XT_AT_ONCE / 2 : XT_AT_ONCE + 1)
#define XT_BATCHES  (XT_LOADS <= XT_MOST ? 1 : (XT_LOADS + XT_AT_ONCE - 1) / XT_AT_ONCE)
#define XT_BATCH    ((XT_LOADS + XT_BATCHES - 1) / XT_BATCHES)
/* where all is as far from what is at 0 as from what is before it, points are counted from the window on */
#define XT_BACK_IN_BASE (XT_POINT_STEP != 0)
#define XT_ALIKE    (XT_RUN_STEP && XT_STILL && XT_VECTORS == XT_LANES)
/* a thread's place in the destination is kept, and goes on from word to word: evenly, or by parameters that a
 * compiler would add up anew for each */
#define XT_ONWARD                                                                                            \
    ((XT_ALIKE && XT_RUN_DIMS == 1) ||                                                                       \
     (XT_NUMBERED && XT_WORDS > 2 && (XT_ALIKE || XT_POINT_STEP || (XT_RUN_STEP && XT_DALIGNED))))
/* the ends of a thread's runs are told apart from its whole words once for all */
#define XT_ENDED    (!XT_GRID && XT_ALIKE && !XT_UNCUT && !XT_TABLE && XT_K > 1)
/* rows, or runs, go along a window, and end with it; then it says which of them a thread has */
#define XT_ROWS_CUT0 (!XT_WHOLE0 && XT_ACUT0 == 0)
#define XT_ROWS_CUT1 (!XT_WHOLE1 && XT_ACUT1 == 0)
#define XT_RUNS_CUT0 (!XT_WHOLE0 && XT_BCUT != 0)
#define XT_RUNS_CUT1 (!XT_WHOLE1 && XT_BCUT != 1)
#define XT_ROWS_ALIKE (XT_ROW_STEP && XT_ROW_STILL)
#define XT_ROWS_HOP (XT_NUMBERED || (XT_GRID && XT_EACH)) /* distances are kept, too */
#define XT_ROWS_ONWARD                                                                                       \
    (XT_ROW_STEP && ((XT_ROWS_HOP && XT_LOADS > 1) || (XT_ROW_STILL && XT_ROW_DIMS == 1 && XT_SHIFTS)))
#define XT_EACH     (XT_SHIFTS == 2 && !XT_ROW_STILL)
#define XT_ROWS_FOLD (XT_ROWS_ALIKE && (XT_ROWS_CUT0 || XT_ROWS_CUT1))
#define XT_RUNS_FOLD (XT_RUN_STEP && (XT_RUNS_CUT0 || XT_RUNS_CUT1))
/* Where warps vote compilers do not see that the source is only read: there a thread's places in both buffers
 * are addresses, to which a buffer's own need not be added again and again. Of units of 8 bytes that takes a
 * few registers more on sm_75. */
#if XT_ENDED && XT_NUMBERED && XT_UNIT < 8
#define XT_ADDRESS(buffer)    __cvta_generic_to_global(buffer)
#define XT_AT_ADDRESS(buffer, place) ((unsigned char *)__cvta_global_to_generic((xt_size)(place)))
#else
#define XT_ADDRESS(buffer)    0
#define XT_AT_ADDRESS(buffer, place) ((buffer) + (place))
#endif
#define XT_NONE     0
#define XT_SOME     1
#define XT_ALL      2
#define XT_WORDS    ((XT_OUTS * XT_VECTORS + XT_ACTIVE - 1) / XT_ACTIVE)

/* A distance in units, which may be negative: the index wraps. */
#define XT_BYTES_OF(units) ((long long)(xt_signed)(units)*XT_UNIT)
/* The j-th step of a thread: of the distances between places the one that it is. */
#define XT_HOP(j, turn, turn2, hop, hop2, other) ((j) % (turn) ? (hop) : (j) % (turn2) ? (hop2) : (other))

/* The k-th unit that is taken of a word; at[k], or of each part the first: of a word that lies `next` bytes
 * before this one, its byte of shared memory or, where there are registers for it, its address. Where a run
 * turns: from unit at[1] on, at[2] bytes further. */
#define XT_TURNING (XT_TURNS && !XT_ROOM)
#define XT_ATS     (XT_BOX ? XT_K / XT_PART : XT_TURNING ? 3 : XT_K)
/* Units of a part of a word; the k-th unit of a word that is gathered from part `begin` on. */
#define XT_PART    (XT_QUARTERS ? XT_K / (XT_QUARTERS + !XT_QUARTERS) : XT_K)
#define XT_TAKE(k, begin)                                                                                    \
    (XT_QUARTERS ? (((k) / XT_PART + (begin)) & (XT_QUARTERS - 1)) * XT_PART + (k) % XT_PART : (k))
#define XT_ON(k)   (XT_POINT(k).shared - XT_POINT((k)-1).shared) /* from a word's unit k - 1 to k */
#define XT_KEPT    (XT_ROOM && (XT_NUMBERED || XT_QUARTERS)) /* addresses */
#if XT_KEPT
#define XT_SPOTS      xt_size
#define XT_SPOT_AT(a) (__cvta_generic_to_shared(shared) + (a))
#elif XT_ROOM
#define XT_SPOTS      const unsigned char *
#define XT_SPOT_AT(a) (shared + (a))
#else
#define XT_SPOTS      int
#define XT_SPOT_AT(a) (a)
#endif
#if !XT_GRID
XT_FN const unsigned char *XT_SLOT(const xt_index *t, const unsigned char *shared, const int next,
                                   const XT_SPOTS *at, const int k)
{
    const int unit = XT_BOX ? XT_POINT(k % XT_PART).shared : XT_TURNING ? XT_POINT(k).shared : 0;
    const int mine = XT_BOX ? k / XT_PART : k % XT_ATS;
#if XT_TURNING
    const int near = at[0] + next, far = near + at[2];
    if (XT_SPREAD)
        return shared + XT_SPOT((k < at[1] ? near : far) + unit);
    return (k < at[1] ? shared + near : shared + far) + unit;
#elif XT_TOGETHER
    return shared + XT_SPOT(at[0] + next) + XT_SPOT(unit);
#elif XT_SPREAD
    return shared + XT_SPOT(at[mine] + next + unit);
#elif XT_TABLE
    return shared + next + at[mine];
#elif XT_KEPT
    return (const unsigned char *)__cvta_shared_to_generic(at[mine] + (next + unit));
#elif XT_ROOM
    return at[mine] + (next + unit);
#else
    return shared + at[mine] + (next + unit);
#endif
}

/* out[g]: a word of the g-th units of its slots in shared memory, taken from part `begin` on. A slot is a
 * unit, or so many as are side by side in 4 bytes and belong to as many runs. */
XT_FN void XT_GATHER(const xt_index *t, const unsigned char *shared, const int next,
                     const XT_SPOTS *at, const int begin, xt_b16 *out)
{
    const unsigned char *slot[XT_K];
    XT_UNROLL
    for (int k = 0; k < XT_K; k++) {
        const int in = k % XT_PART;
        slot[k] = XT_BOX && XT_CHAINED && !XT_SPREAD && in ? slot[k - 1] + XT_ON(in)
                                                           : XT_SLOT(t, shared, next, at, k);
    }
    XT_UNROLL
    for (int k = 0; k < XT_WORD / 4; k++) {
#if XT_UNIT == 1 && XT_GROUP == 4
        const xt_b4 a = *(const xt_b4 *)slot[4 * k], b = *(const xt_b4 *)slot[4 * k + 1];
        const xt_b4 c = *(const xt_b4 *)slot[4 * k + 2], e = *(const xt_b4 *)slot[4 * k + 3];
        const xt_b4 ab = __byte_perm(a, b, 0x5140), ce = __byte_perm(c, e, 0x5140);
        const xt_b4 ab2 = __byte_perm(a, b, 0x7362), ce2 = __byte_perm(c, e, 0x7362);
        out[0].w[k] = __byte_perm(ab, ce, 0x5410);
        out[1].w[k] = __byte_perm(ab, ce, 0x7632);
        out[2].w[k] = __byte_perm(ab2, ce2, 0x5410);
        out[3].w[k] = __byte_perm(ab2, ce2, 0x7632);
#elif XT_UNIT == 1
        const xt_b4 low = __byte_perm(*slot[4 * k], *slot[4 * k + 1], 0x3340);
        const xt_b4 high = __byte_perm(*slot[4 * k + 2], *slot[4 * k + 3], 0x3340);
        out[0].w[k] = __byte_perm(low, high, 0x5410);
#elif XT_UNIT == 2 && XT_GROUP == 2
        const xt_b4 a = *(const xt_b4 *)slot[2 * k], b = *(const xt_b4 *)slot[2 * k + 1];
        out[0].w[k] = __byte_perm(a, b, 0x5410);
        out[1].w[k] = __byte_perm(a, b, 0x7632);
#elif XT_UNIT == 2
        out[0].w[k] = __byte_perm(*(const xt_b2 *)slot[2 * k], *(const xt_b2 *)slot[2 * k + 1],
                                  0x5410);
#else
        if (k < XT_K)
            XT_OF(set, XT_UNIT)(out, k, *(const XT_B(XT_UNIT) *)slot[k % XT_K]);
#endif
    }
    XT_UNROLL
    for (int g = 0; g < XT_GROUP && XT_QUARTERS; g++)
        out[g] = xt_rotate(out[g], XT_QUARTERS == 2 ? 2 * begin : begin);
}
#endif

#if XT_ENDED
/* The ends of runs: XT_SIDE lanes side by side, all of a warp that has one run, take a unit each of the words
 * that one of them has in part, `mine`, then of another's: all units of a word are one request. They take as
 * many words at a time as they have units. The thread's first run is `a`; its words begin with point `begin`
 * of the window; of the points from -back on `points` are there. */
#define XT_SIDE (XT_LANES % 32 ? XT_K : 32)
XT_FN void XT_ENDS(const xt_index *t, unsigned char *dst, const unsigned char *shared, const int base,
                   const xt_index e0, const xt_index e1, const bool mine, const struct XT_PLACE a,
                   const int begin, const int back, const int points)
{
    const int lane = threadIdx.x % 32, group = lane / XT_SIDE * XT_SIDE;
    __syncwarp();
    xt_b4 any = __ballot_sync(0xffffffffu, mine), ends = any >> group & (0xffffffffu >> (32 - XT_SIDE));
#pragma unroll 1
    while (any) {
        const int lender = group + 31 - __clz(ends);
        const int point = __shfl_sync(0xffffffffu, begin, lender) + lane % XT_K;
        struct XT_PLACE of;
        of.units = __shfl_sync(0xffffffffu, a.units, lender);
        of.shared = __shfl_sync(0xffffffffu, a.shared, lender);
        of.x0 = !XT_RUNS_CUT0 ? 0 : __shfl_sync(0xffffffffu, a.x0, lender);
        of.x1 = !XT_RUNS_CUT1 ? 0 : __shfl_sync(0xffffffffu, a.x1, lender);
        const int from = base + of.shared + XT_POINT(point + back).shared;
        unsigned char *const to = dst + XT_BYTES_OF(of.units) + (long long)point * XT_UNIT;
#pragma unroll 1
        for (int j = lane % XT_SIDE / XT_K;
             j < XT_WORDS && ends && point + back >= 0 && point + back < points; j += XT_SIDE / XT_K) {
            const struct XT_PLACE b = XT_OUT(j * XT_RUN_STEP);
            if ((threadIdx.x - lane + lender + j * XT_ACTIVE < XT_OUTS * XT_VECTORS) &&
                (!XT_RUNS_CUT0 || of.x0 + b.x0 < e0) && (!XT_RUNS_CUT1 || of.x1 + b.x1 < e1))
                for (int g = 0; g < XT_GROUP; g++)
                    *(XT_B(XT_UNIT) *)(to + XT_BYTES_OF(b.units) + g * XT_BYTES_OF(XT_GROUP_TO)) =
                        *(const XT_B(XT_UNIT) *)(shared + XT_SPOT(from + b.shared) + g * XT_UNIT);
        }
        ends &= (1u << (lender - group & 31)) - 1;
        __syncwarp();
        any = __ballot_sync(0xffffffffu, ends != 0);
    }
}
#endif

XT_FN void XT_BODY(unsigned char *__restrict__ dst, const unsigned char *__restrict__ src, const xt_b16 fill,
                   const xt_index block, const xt_index *t, xt_b16 *tile)
{
    unsigned char *const shared = (unsigned char *)tile;
    xt_index s = 0, d = 0, u = 0, v = 0;
    XT_AT(t, block, 0, &s, &d, &u, &v);
#if XT_CUTS > 1
    const xt_index first = u;
    u = XT_EXCHANGED ? v : u;
    v = XT_EXCHANGED ? first : v;
    /* two numbers: who knows them for the digits of one unrolls all that is below by either's cases */
    asm("" : "+" XT_ASM_INDEX(u), "+" XT_ASM_INDEX(v));
#endif
    /* windows: first point, points before those that are this box's to write, points */
    const xt_index c0 = XT_BACK0 && u ? u * XT_T0 - XT_BACK0 : u * XT_T0, back0 = u * XT_T0 - c0;
    const xt_index c1 = XT_BACK1 && v ? v * XT_T1 - XT_BACK1 : v * XT_T1, back1 = v * XT_T1 - c1;
    const xt_index e0 = XT_WHOLE0 ? XT_T0 : XT_LEAST(XT_T0 + back0, XT_N0 - c0);
    const xt_index e1 = XT_WHOLE1 ? XT_T1 : XT_LEAST(XT_T1 + back1, XT_N1 - c1);
    s += c0 * XT_S0 + c1 * XT_S1;
    d += u * XT_T0 * XT_D0 + v * XT_T1 * XT_D1;
    int base = XT_LREV;
#if XT_REV0
    s += (e0 - 1) * XT_S0;
    base += (int)(e0 - 1) * XT_LREV0;
#endif
#if XT_REV1
    s += (e1 - 1) * XT_S1;
    base += (int)(e1 - 1) * XT_LREV1;
#endif
    const unsigned int length =
        (XT_SPAN + (unsigned int)(e0 - 1) * XT_ACUT0 + (unsigned int)(e1 - 1) * XT_ACUT1) * XT_UNIT;
    const unsigned char *const from = src + (xt_size)s * XT_UNIT;
    const unsigned char *const stop = src + (xt_size)XT_EXTENT * XT_UNIT;
    xt_index reach = XT_REACH; /* less in a window that ends before its box's */
    reach -= XT_ROWS_CUT0 && (xt_signed)XT_S0 > 0 ? (XT_T0 + XT_BACK0 - e0) * XT_S0 : 0;
    reach -= XT_ROWS_CUT1 && (xt_signed)XT_S1 > 0 ? (XT_T1 + XT_BACK1 - e1) * XT_S1 : 0;
    const bool inside = from + (xt_size)reach * XT_UNIT <= stop;
    const int low = XT_SHIFTS ? (int)(xt_size)from & 15 : 0;
#if XT_ROWS_ONWARD
    long long source = 0, hop = 0, hop2 = 0; /* bytes to a thread's chunk, and from it to the next one */
    int target = 0, hop_shared = 0, hop_shared2 = 0;
#endif
    int rest0 = 0, rest1 = 0; /* rows to the windows' ends */
#if !XT_SALIGNED
    if (!inside) { /* what leaves the buffer goes unit by unit, zeros for the rest: a compiler may fetch a
                      word whole of which it wants every second unit */
#pragma unroll 1
        for (unsigned int e = threadIdx.x; e < XT_ROWS * XT_CHUNKS; e += XT_THREADS) {
            const unsigned int i = XT_ROWS == 1 ? 0 : XT_SMALL_QUOTIENT(e, XT_CHUNKS);
            const unsigned int c = (e - i * XT_CHUNKS) * 16;
            const struct XT_PLACE a = XT_ROW(i);
            const int row = a.shared + low, shift = XT_SHIFTS == 2 ? row & 15 : low;
            const unsigned char *const p = from + XT_BYTES_OF(a.units) - shift + c;
            unsigned char *const to = shared + XT_SPOT(row - shift + c);
            if (!(XT_WHOLE0 || a.x0 < e0) || !(XT_WHOLE1 || a.x1 < e1) || c >= shift + length)
                continue;
            if (p + 16 <= stop) {
                const xt_b16 chunk = *(const xt_b16 *)p;
                XT_UNROLL
                for (int k = 0; k < 16 / XT_CHUNK_STORE; k++)
                    *(XT_B(XT_CHUNK_STORE) *)(to + k * XT_CHUNK_STORE) = XT_OF(get, XT_CHUNK_STORE)(chunk, k);
                continue;
            }
#pragma unroll 1
            for (int k = 0; k < 16; k += XT_UNIT)
                *(XT_B(XT_UNIT) *)(to + k) = c + k >= shift && c + k < shift + length
                                                 ? *(const XT_B(XT_UNIT) *)(p + k)
                                                 : XT_OF(get, XT_UNIT)(xt_zero(), 0);
        }
    } else
#endif
#if !XT_ROW_STEP && XT_BATCHES > 2 /* places of so many chunks would be found ahead, and take registers */
#pragma unroll 1
#else
        XT_UNROLL
#endif
    for (int i = 0; i < XT_LOADS; i += XT_BATCH) {
#if XT_GRID && XT_ROWS_ONWARD
        asm volatile("" : "+l"(source), "+r"(target)); /* else those of later batches are found, and kept */
#endif
        xt_b16 chunk[XT_BATCH];
        unsigned char *to[XT_BATCH];
        bool have[XT_BATCH];
        XT_UNROLL
        for (int j = 0; j < XT_BATCH; j++) {
            const unsigned int e = threadIdx.x + (i + j) * XT_THREADS;
            const unsigned int mine = XT_ROW_STEP ? threadIdx.x : e;
            const int step = (i + j) / XT_PARTS, on = (i + j) % XT_PARTS * XT_ROW_ACTIVE * 16;
            const unsigned int first = XT_ROWS == 1 || XT_PARTS > 1 ? 0 : XT_SMALL_QUOTIENT(mine, XT_CHUNKS);
            const unsigned int c = (mine - first * XT_CHUNKS) * 16;
            const struct XT_PLACE a = XT_ROW(first);
            const struct XT_PLACE b = XT_ROW(step * XT_ROW_STEP);
            const int row = a.shared + low;
            int shift = XT_SHIFTS < 2 ? low : (XT_ROW_STILL ? row : row + (b.shared & 15)) & 15;
            const int place = row - shift + (int)c;
            to[j] = XT_SPREAD ? shared + XT_SPOT(place + b.shared + on) : shared + place + b.shared + on;
#if XT_ROWS_ONWARD
            /* of a chunk whose row begins elsewhere in it than the one before: as if it began at 0 */
            if (i + j == 0) {
                source = (long long)((xt_size)s * XT_UNIT) + XT_BYTES_OF(a.units) + c - (XT_EACH ? 0 : shift);
                source += XT_ADDRESS(src);
                target = row + (int)c - (XT_EACH ? 0 : shift);
                /* kept: compilers would find them anew for each chunk */
                asm("" : "+l"(source), "+r"(target));
#if XT_ROWS_HOP
                const struct XT_PLACE last = XT_ROW((XT_ROW_TURN - 1) * XT_ROW_STEP);
                const struct XT_PLACE next = XT_ROW(XT_ROW_TURN * XT_ROW_STEP);
                hop = XT_BYTES_OF(XT_ROW(XT_ROW_STEP).units), hop_shared = XT_ROW(XT_ROW_STEP).shared;
                hop2 = XT_BYTES_OF(next.units - last.units), hop_shared2 = next.shared - last.shared;
                asm("" : "+l"(hop));
                asm("" : "+l"(hop2));
                asm("" : "+r"(hop_shared));
                asm("" : "+r"(hop_shared2));
            } else if (on == 0) {
                const struct XT_PLACE before = XT_ROW((step - 1) * XT_ROW_STEP);
                source += XT_HOP(step, XT_ROW_TURN, XT_ROW_TURN2, hop, hop2,
                                 XT_BYTES_OF(b.units - before.units));
                target += XT_SHIFTS < 2 ? 0
                                        : XT_HOP(step, XT_ROW_TURN, XT_ROW_TURN2, hop_shared, hop_shared2,
                                                 b.shared - before.shared);
#endif
            }
            shift = XT_EACH ? target & 15 : shift;
            to[j] = shared + XT_SPOT(target + (XT_ROWS_HOP && XT_SHIFTS == 2 ? 0 : b.shared) -
                                     (XT_EACH ? shift : 0) + on);
#endif
            const bool filled = XT_SALIGNED && XT_FILLED ? XT_PARTS == 1 || c + on < XT_CHUNKS * 16
                                                         : c + on < shift + length;
            const bool active =
                XT_ROW_STEP == 0 || XT_ROW_ACTIVE == XT_THREADS || threadIdx.x < XT_ROW_ACTIVE;
            if (!XT_ROWS_ALIKE || XT_PARTS > 1 || i + j == 0) {
                rest0 = XT_ROWS_FOLD && !(filled && active) ? 0 : (int)(e0 - a.x0);
                rest1 = XT_ROWS_FOLD && !(filled && active) ? 0 : (int)(e1 - a.x1);
            }
#if XT_ROWS_ONWARD
            if (i + j == 0)
                asm("" : "+r"(rest0), "+r"(rest1));
#endif
            have[j] = XT_ROW_STEP ? XT_ROWS >= (step + 1) * XT_ROW_STEP ||
                                        first + step * XT_ROW_STEP < XT_ROWS
                                  : XT_ROWS * XT_CHUNKS >= (i + j + 1) * XT_THREADS ||
                                        e < XT_ROWS * XT_CHUNKS;
            have[j] = have[j] && (!XT_ROWS_CUT0 || rest0 > (int)b.x0) &&
                      (!XT_ROWS_CUT1 || rest1 > (int)b.x1) && (XT_ROWS_FOLD || (filled && active));
#if XT_ROWS_ONWARD
            if (have[j])
                chunk[j] =
                    *(const xt_b16 *)(XT_AT_ADDRESS(src, source) +
                                      (XT_ROWS_HOP ? 0 : XT_BYTES_OF(b.units)) + on - (XT_EACH ? shift : 0));
#else
            if (have[j])
                chunk[j] =
                    *(const xt_b16 *)(from + XT_BYTES_OF(a.units) + XT_BYTES_OF(b.units) - shift + c + on);
#endif
        }
        XT_UNROLL
        for (int j = 0; j < XT_BATCH; j++)
            XT_UNROLL
            for (int k = 0; k < 16 / XT_CHUNK_STORE; k++)
                if (have[j])
                    *(XT_B(XT_CHUNK_STORE) *)(to[j] + k * XT_CHUNK_STORE) =
                        XT_OF(get, XT_CHUNK_STORE)(chunk[j], k);
    }
    base += low;
    /* points of a run from the window's begin on that are this box's to write: the last window's all */
    int window = XT_VECTORS * XT_K + XT_K;
#if XT_BCUT == 0
    window = XT_EVEN || u == XT_LAST0 ? window : XT_T0 * XT_RUN;
    const int back = (int)back0 * XT_RUN, points = (int)e0 * XT_RUN;
    base += XT_BACK_IN_BASE ? (int)back0 * XT_BACK_SHARED : 0;
#elif XT_BCUT == 1
    window = XT_EVEN || v == XT_LAST1 ? window : XT_T1 * XT_RUN;
    const int back = (int)back1 * XT_RUN, points = (int)e1 * XT_RUN;
    base += XT_BACK_IN_BASE ? (int)back1 * XT_BACK_SHARED : 0;
#else
    const int back = 0, points = XT_RUN;
#endif
#if XT_TABLE && XT_GRID
    xt_b4 *const table = (xt_b4 *)(shared + XT_TABLE_AT);
    const int start = (int)(xt_b4)__cvta_generic_to_shared(shared) + base;
    XT_UNROLL
    for (int i = 0; i < XT_TABLE; i += XT_THREADS)
        if (i + (int)threadIdx.x < points)
            table[i + threadIdx.x] = (xt_b4)(start + XT_POINT(i + threadIdx.x).shared);
#elif XT_TABLE
    /* Column q of row r is for point (q - 1) * XT_K + r, r < 2 * XT_K: units of a word lie whole rows apart,
     * words of lanes side by side in different banks. Points beyond the run are those of its ends. */
    int *const table = (int *)(shared + XT_TABLE_AT);
    XT_UNROLL
    for (int i = 0; i < XT_K * (XT_TABLE + 1); i += XT_THREADS) {
        const int e = i + (int)threadIdx.x, point = e - XT_K, q = e / XT_K, r = e % XT_K;
        const int place = base + XT_POINT(point < 0 ? 0 : XT_LEAST(point, points - 1)).shared;
        if (q < XT_TABLE)
            table[r * XT_TABLE + q] = place;
        if (q > 0 && q <= XT_TABLE)
            table[(r + XT_K) * XT_TABLE + q - 1] = place;
    }
#endif
    __syncthreads();
#if XT_GRID
    /* no request ends within a sector that another goes on with */
#pragma unroll 1
    for (unsigned int i = threadIdx.x / XT_LANES; i < XT_OUTS; i += XT_THREADS / XT_LANES) {
        const struct XT_PLACE a = XT_OUT(i);
        if ((XT_RUNS_CUT0 && a.x0 >= e0) || (XT_RUNS_CUT1 && a.x1 >= e1))
            continue;
        unsigned char *const run = dst + (xt_size)d * XT_UNIT + XT_BYTES_OF(a.units);
        const int before = (int)((unsigned int)(xt_size)run & (XT_GRID - 1)) / XT_UNIT;
        const int begin = (int)(threadIdx.x % XT_LANES) - before, left = points - begin;
        unsigned char *const out = run + (long long)begin * XT_UNIT;
#if XT_TABLE
        const xt_b4 *const place = table + begin;
#else
        const unsigned char *const in = shared + base + a.shared + XT_POINT(begin).shared;
#endif
        XT_UNROLL
        for (int j = 0; j < XT_VECTORS; j += XT_LANES) {
            XT_B(XT_UNIT) *const to = (XT_B(XT_UNIT) *)(out + j * XT_UNIT);
            if ((j < XT_GRID / XT_UNIT && begin < -j) ||
                ((XT_BCUT < 2 || j + XT_LANES > XT_RUN) && j >= left))
                continue;
#if XT_TABLE
            *to = XT_OF(shared, XT_UNIT)(place[j] + a.shared);
#else
            *to = *(const XT_B(XT_UNIT) *)(in + XT_POINT(j).shared);
#endif
        }
    }
#else
    if (!XT_LOOP && !XT_ENDED && XT_ACTIVE < XT_THREADS && threadIdx.x >= XT_ACTIVE)
        return;
    XT_SPOTS at[XT_ATS];
#if XT_QUARTERS
    const int quarter = (int)(threadIdx.x >> XT_STAGGER_LANES) * XT_STAGGER_STEP & (XT_QUARTERS - 1);
#else
    const int quarter = 0;
#endif
    int p = 0, skip = 0, part = XT_NONE; /* of the word, that the box has */
    int left0 = 0, left1 = 0; /* points of windows from a thread's first run on */
    long long ahead = 0, far = 0, far2 = 0; /* bytes to it, on to the next one */
#if XT_TABLE && XT_WORDS > 26
#pragma unroll 1
#else
    XT_UNROLL
#endif
    for (int j = 0; j < XT_WORDS; j++) {
        const unsigned int e = threadIdx.x + j * XT_ACTIVE;
        const unsigned int mine = XT_RUN_STEP || XT_POINT_STEP ? threadIdx.x : e;
        const unsigned int turn = XT_SMALL_QUOTIENT(mine, XT_LANES);
        const unsigned int span = XT_SMALL_QUOTIENT(XT_RUN_STEP ? j * XT_RUN_STEP : turn, XT_OUTS);
        const unsigned int first = XT_RUN_STEP ? turn : turn - span * XT_OUTS;
        const unsigned int further = j * XT_RUN_STEP % XT_OUTS;
        const struct XT_PLACE a = XT_OUT(first);
        const struct XT_PLACE b = XT_OUT(further);
        unsigned char *out = dst + (xt_size)d * XT_UNIT + XT_BYTES_OF(a.units) + XT_BYTES_OF(b.units);
        if (!XT_STILL || further == 0)
            p = (int)(mine - turn * XT_LANES + span * XT_LANES) * XT_K + j * XT_POINT_STEP;
        if (!XT_STILL || (XT_POINT_STEP ? j == 0 : further == 0)) {
            skip = XT_DALIGNED ? 0 : (int)((unsigned int)(xt_size)out & (XT_SHARE - 1)) / XT_UNIT;
            /* from 0 on: a step is taken back below */
            const unsigned int point = p - skip + XT_POINT_STEP + (XT_BACK_IN_BASE ? 0 : back);
            const int place = base + a.shared - XT_POINT(XT_POINT_STEP).shared;
#if XT_TURNS
            const int turn = (int)(XT_TURNS - (point - XT_QUOTIENT(point, XT_TURNS) * XT_TURNS));
            const int jump =
                XT_POINT(point + turn).shared - XT_POINT(point).shared - XT_POINT(1).shared * turn;
            const XT_SPOTS near = XT_SPOT_AT(place + XT_POINT(point).shared);
            at[0] = near;
#if XT_TURNING
            at[1] = turn;
            at[2] = jump;
#endif
            XT_UNROLL
            for (int k = XT_QUARTERS == 0; k < XT_ATS && !XT_TURNING; k++)
                at[k] = near + XT_POINT(XT_TAKE(k, quarter)).shared + (XT_TAKE(k, quarter) < turn ? 0 : jump);
#else
            XT_UNROLL
            for (int k = 0; k < XT_ATS && !XT_TABLE; k++)
                at[k] = XT_BOX ? XT_SPOT_AT(place + XT_POINT(point).shared) +
                                     XT_POINT(XT_TAKE(k * XT_PART, quarter)).shared
                        : XT_CHAINED && k % XT_PART
                            ? at[k - 1] + XT_ON(k % XT_PART)
                            : XT_SPOT_AT(place + XT_POINT(point + XT_TAKE(k, quarter)).shared);
#endif
            /* kept: compilers would find them anew for each word */
            XT_UNROLL
            for (int k = 0; k < XT_ATS && XT_STILL && (!XT_BOX || XT_SPREAD || XT_KEPT); k++)
#if XT_KEPT
                asm("" : "+l"(at[k]));
#elif !XT_ROOM
                asm("" : "+r"(at[k]));
#else
                ;
#endif
        }
        const int begin = p + back - skip;
        if (XT_ALIKE && j == 0) {
            const unsigned int end = (unsigned int)(xt_size)out + (unsigned int)(window * XT_UNIT);
            const int behind = XT_EVEN ? 0 : (int)(end & (XT_SHARE - 1)) / XT_UNIT;
            const bool whole = XT_UNCUT || (begin >= 0 && begin + XT_K <= points);
            part = !XT_BRIM && (begin <= -XT_K || begin >= points) ? XT_NONE : whole ? XT_ALL : XT_SOME;
            if (!XT_EVEN && p - skip >= window - behind)
                part = XT_NONE; /* the next box's */
        }
        if (XT_ONWARD ? j == 0 : !XT_ENDED || j == 0)
            ahead = (long long)(p - skip) * XT_UNIT +
                    (XT_ONWARD ? (long long)((xt_size)d * XT_UNIT) + XT_BYTES_OF(a.units) + XT_ADDRESS(dst)
                               : 0);
#if XT_ENDED || XT_ONWARD
        if (j == 0)
            asm("" : "+l"(ahead)); /* kept, as at[] is */
#endif
#if XT_ONWARD && XT_NUMBERED && XT_RUN_STEP
        if (j == 0) {
            far = XT_BYTES_OF(XT_OUT(XT_RUN_STEP).units);
            far2 = XT_BYTES_OF(XT_OUT(XT_RUN_TURN * XT_RUN_STEP).units -
                               XT_OUT((XT_RUN_TURN - 1) * XT_RUN_STEP).units);
            asm("" : "+l"(far));
            asm("" : "+l"(far2));
        } else {
            ahead += XT_HOP(j, XT_RUN_TURN, XT_RUN_TURN2, far, far2,
                            XT_BYTES_OF(b.units - XT_OUT((j - 1) * XT_RUN_STEP % XT_OUTS).units));
        }
#endif
        const bool active = XT_ACTIVE == XT_THREADS || threadIdx.x < XT_ACTIVE;
        const bool none = !active || (XT_ALIKE && part != XT_ALL);
        if (j == 0 || !XT_RUN_STEP) {
            left0 = XT_RUNS_FOLD && none ? 0 : (int)(e0 - a.x0);
            left1 = XT_RUNS_FOLD && none ? 0 : (int)(e1 - a.x1);
        }
        if ((XT_RUNS_CUT0 && left0 <= (int)b.x0) || (XT_RUNS_CUT1 && left1 <= (int)b.x1) ||
            (!XT_RUNS_FOLD && none) ||
            (XT_OUTS * XT_VECTORS < (j + 1) * XT_ACTIVE && e >= XT_OUTS * XT_VECTORS))
            continue;
        if (!XT_ALIKE) {
            if (!XT_BRIM && (begin <= -XT_K || begin >= points))
                continue;
            const unsigned int end = (unsigned int)(xt_size)out + (unsigned int)(window * XT_UNIT);
            const int behind = XT_EVEN ? 0 : (int)(end & (XT_SHARE - 1)) / XT_UNIT;
            if (!XT_EVEN && p - skip >= window - behind)
                continue; /* the next box's */
        }
        if (XT_ONWARD) /* points further than with the first word are a constant */
            out = XT_AT_ADDRESS(dst, ahead) + (XT_NUMBERED ? 0 : XT_BYTES_OF(b.units)) +
                  (long long)((XT_RUN_STEP ? (int)span * XT_LANES * XT_K : 0) + j * XT_POINT_STEP) * XT_UNIT;
        else
            out += ahead;
#if XT_TABLE
        const unsigned int point = begin + XT_K;
        const int *const entry = table + (point % XT_K * XT_TABLE + point / XT_K);
        XT_UNROLL
        for (int k = 0; k < XT_K; k++)
            at[k] = entry[k * XT_TABLE];
#endif
        /* of at[]: places of the first word, or of a run that begins at 0 */
        const int next = b.shared + (XT_TABLE ? a.shared : XT_POINT(j * XT_POINT_STEP).shared);
        if (XT_ALIKE || XT_UNCUT || (begin >= 0 && begin + XT_K <= points)) {
            xt_b16 word[XT_GROUP];
            XT_GATHER(t, shared, next, at, quarter, word);
            XT_UNROLL
            for (int g = 0; g < XT_GROUP; g++)
                *(XT_B(XT_WORD) *)(out + g * XT_BYTES_OF(XT_GROUP_TO)) = XT_OF(low, XT_WORD)(word[g]);
            continue;
        }
#if XT_TABLE
        xt_b16 word;
        XT_GATHER(t, shared, next, at, quarter, &word);
        xt_store_part(out, word, (begin < 0 ? -begin : 0) * XT_UNIT,
                      XT_LEAST(XT_K, points - begin) * XT_UNIT);
        continue;
#endif
        for (int g = 0; g < XT_GROUP; g++) { /* the ends of runs */
#pragma unroll 1
            for (int k = 0; k < XT_K; k++) {
                const unsigned int point = begin + k - (XT_BACK_IN_BASE ? back : 0) + XT_POINT_STEP;
                if (begin + k < 0 || begin + k >= points)
                    continue;
                int unit = a.shared + b.shared + base + XT_POINT(point).shared -
                           XT_POINT(XT_POINT_STEP).shared;
                *(XT_B(XT_UNIT) *)(out + g * XT_BYTES_OF(XT_GROUP_TO) + k * XT_UNIT) =
                    *(const XT_B(XT_UNIT) *)(shared + XT_SPOT(unit) + g * XT_UNIT);
            }
        }
    }
#if XT_ENDED
    XT_ENDS(t, dst + (xt_size)d * XT_UNIT, shared, base, e0, e1,
            part == XT_SOME && (XT_ACTIVE == XT_THREADS || threadIdx.x < XT_ACTIVE),
            XT_OUT(XT_SMALL_QUOTIENT(threadIdx.x, XT_LANES)), p - skip, back, points);
#endif
#endif
}
#undef XT_K
#undef XT_SPOT
#undef XT_LOADS
#undef XT_USUAL
#undef XT_AT_ONCE
#undef XT_MOST
#undef XT_BATCHES
#undef XT_BATCH
#undef XT_WORDS
#undef XT_BYTES_OF
#undef XT_HOP
#undef XT_PLACE
#undef XT_ROW
#undef XT_OUT
#undef XT_POINT
#undef XT_GATHER
#undef XT_ENDS
#undef XT_SIDE
#undef XT_ENDED
#undef XT_BACK_IN_BASE
#undef XT_ALIKE
#undef XT_ONWARD
#undef XT_ROWS_CUT0
#undef XT_ROWS_CUT1
#undef XT_RUNS_CUT0
#undef XT_RUNS_CUT1
#undef XT_ROWS_ALIKE
#undef XT_ROWS_ONWARD
#undef XT_ROWS_HOP
#undef XT_ADDRESS
#undef XT_AT_ADDRESS
#undef XT_EACH
#undef XT_ROWS_FOLD
#undef XT_RUNS_FOLD
#undef XT_NONE
#undef XT_SOME
#undef XT_ALL
#undef XT_SLOT
#undef XT_TURNING
#undef XT_ATS
#undef XT_PART
#undef XT_TAKE
#undef XT_ON
#undef XT_KEPT
#undef XT_SPOTS
#undef XT_SPOT_AT
