/* packed.cu: records of a few units that lie side by side in the destination, whose parts come from several
 * sources or are filled. A block takes XT_RECORDS records of a row. The stretch of each source that these
 * come from lies in shared memory as it does in the source, fetched in aligned chunks of 16 bytes; a thread
 * makes 16 aligned bytes of the destination at a time, unit by unit. Neither side needs an alignment: what is
 * before the first word and behind the last one goes by units, one a thread.
 *
 * - XT_AT: block -> *s, *d: record 0 of its row in part 0's source, in the destination; u[0]: number of the
 *   block in the row; u[k]: record 0 in part k's source
 * - XT_COUNT records in a row, XT_LENGTH units each. XT_ALIGNED: blocks begin at multiples of 16 bytes
 * - XT_PARTS parts; part k: units XT_BEGIN<k> up to XT_END<k> of a record, XT_STRIDE<k> units of its source
 *   after those of the record before; XT_UNITS<k> units has that, words that begin below XT_WORDS<k> lie
 *   inside; XT_LOADS<k> chunks of a thread; its stretch is at byte XT_PLACE<k> of shared memory
 * - XT_GROUND: the other units are fill, which is at XT_GROUND_AT; at XT_TABLE_AT the table of places */
#define XT_G          (16 / XT_UNIT)
#define XT_NAME(name) XT_PASTE(XT_BODY, name)
#define XT_WORDS      ((XT_RECORDS * XT_LENGTH / XT_G + XT_THREADS - 1) / XT_THREADS)
#define XT_LOADS      (XT_LOADS0 + XT_LOADS1 + XT_LOADS2 + XT_LOADS3)
/* Loads of the parts before part k; the part of load i. */
#define XT_BEFORE(k)  ((k > 0) * XT_LOADS0 + (k > 1) * XT_LOADS1 + (k > 2) * XT_LOADS2)
#define XT_PART_OF(i) ((i >= XT_BEFORE(1)) + (i >= XT_BEFORE(2)) + (i >= XT_BEFORE(3)))
#if XT_PARTS == 1
#define XT_SOURCE_OF(k) src
#else
#define XT_SOURCE_OF(k) src.p[k]
#endif

XT_FN int XT_NAME(_pick)(const int k, const int a, const int b, const int c, const int e)
{
    return k < 2 ? (k ? b : a) : k == 2 ? c : e;
}
#define XT_PICK(name, k) XT_NAME(_pick)(k, name##0, name##1, name##2, name##3)

/* Of a unit of a record: where that of record 0 is, an address of shared memory, and how many bytes further
 * that of the next record. */
struct __align__(8) XT_NAME(_place)
{
    xt_b4 at, step;
};

/* Unit i of a record, i < XT_LENGTH, or of those behind it. */
XT_FN struct XT_NAME(_place) XT_NAME(_find)(const xt_b4 shared, const int i, const int *shift)
{
    const int next = i / XT_LENGTH, unit = i - next * XT_LENGTH;
    struct XT_NAME(_place) e = {shared + XT_GROUND_AT, 0};
    XT_UNROLL
    for (int k = 0; k < XT_PARTS; k++)
        if (unit >= XT_PICK(XT_BEGIN, k) && unit < XT_PICK(XT_END, k)) {
            const int in = shift[k] + unit - XT_PICK(XT_BEGIN, k) + next * XT_PICK(XT_STRIDE, k);
            e.at = shared + XT_PICK(XT_PLACE, k) + in * XT_UNIT;
            e.step = XT_PICK(XT_STRIDE, k) * XT_UNIT;
        }
    return e;
}

/* Units XT_G from point `point` of the block on. */
XT_FN xt_b16 XT_NAME(_word)(const struct XT_NAME(_place) *table, const unsigned int point)
{
    const xt_b4 record = XT_SMALL_QUOTIENT(point, XT_LENGTH);
    const struct XT_NAME(_place) *const e = table + (point - record * XT_LENGTH);
    XT_B(XT_UNIT) unit[XT_G];
    XT_UNROLL
    for (int k = 0; k < XT_G; k++)
        unit[k] = XT_OF(shared, XT_UNIT)(e[k].at + record * e[k].step);
    return XT_OF(join, XT_UNIT)(unit);
}

XT_FN void XT_BODY(unsigned char *__restrict__ dst,
#if XT_PARTS == 1
                   const unsigned char *__restrict__ src,
#else
                   const xt_many src,
#endif
                   const xt_b16 fill, const xt_index block, const xt_index *t, xt_b16 *tile)
{
    unsigned char *const shared = (unsigned char *)tile;
    xt_index s = 0, d = 0, u[XT_PARTS];
    XT_AT(t, block, 0, &s, &d, u, u);
    const xt_index first = u[0] * XT_RECORDS;
    const int records = (int)XT_LEAST((xt_index)XT_RECORDS, XT_COUNT - first);
    u[0] = s;
    const xt_index inside[] = {XT_WORDS0, XT_WORDS1, XT_WORDS2, XT_WORDS3};
    const xt_index units[] = {XT_UNITS0, XT_UNITS1, XT_UNITS2, XT_UNITS3};
    int shift[XT_PARTS], want[XT_PARTS]; /* units: of the stretch within its first chunk; to its end */
    XT_UNROLL
    for (int k = 0; k < XT_PARTS; k++) {
        const int stride = XT_PICK(XT_STRIDE, k);
        u[k] += first * stride;
        shift[k] = (int)((xt_size)XT_SOURCE_OF(k) + (xt_size)u[k] * XT_UNIT & 15) / XT_UNIT;
        want[k] = shift[k] + (records - 1) * stride + XT_PICK(XT_END, k) - XT_PICK(XT_BEGIN, k);
        u[k] -= shift[k];
    }
    xt_b16 chunk[XT_LOADS];
    XT_UNROLL
    for (int i = 0; i < XT_LOADS; i++) {
        const int k = XT_PART_OF(i), at = (threadIdx.x + (i - XT_BEFORE(k)) * XT_THREADS) * XT_G;
        if (at < want[k] && u[k] + at < inside[k])
            chunk[i] = *(const xt_b16 *)(XT_SOURCE_OF(k) + (xt_size)(xt_index)(u[k] + at) * XT_UNIT);
    }
    XT_UNROLL
    for (int i = 0; i < XT_LOADS; i++) {
        const int k = XT_PART_OF(i), at = (threadIdx.x + (i - XT_BEFORE(k)) * XT_THREADS) * XT_G;
        unsigned char *const to = shared + XT_PICK(XT_PLACE, k) + at * XT_UNIT;
        if (at < want[k] && u[k] + at < inside[k]) {
            *(xt_b16 *)to = chunk[i];
        } else if (at < want[k]) { /* its word leaves the source */
#pragma unroll 1
            for (int x = 0; x < XT_G; x++) {
                const xt_index unit = u[k] + at + x;
                if (unit < units[k])
                    ((XT_B(XT_UNIT) *)to)[x] = ((const XT_B(XT_UNIT) *)XT_SOURCE_OF(k))[unit];
            }
        }
    }
    const xt_b4 places = (xt_b4)__cvta_generic_to_shared(shared);
    struct XT_NAME(_place) *const table = (struct XT_NAME(_place) *)(shared + XT_TABLE_AT);
    for (int i = (int)threadIdx.x; i < XT_LENGTH + XT_G - 1; i += XT_THREADS)
        table[i] = XT_NAME(_find)(places, i, shift);
    if (XT_GROUND && threadIdx.x == 0)
        *(xt_b16 *)(shared + XT_GROUND_AT) = fill;
    __syncthreads();
    unsigned char *const out = dst + (xt_size)(d + first * XT_LENGTH) * XT_UNIT;
    const int points = records * XT_LENGTH;
    const int before = XT_ALIGNED ? 0 : XT_LEAST((int)(-(xt_size)out & 15) / XT_UNIT, points);
    const int behind = points - (points - before) % XT_G;
    XT_UNROLL
    for (int j = 0; j < XT_WORDS; j++) {
        const int point = before + (threadIdx.x + j * XT_THREADS) * XT_G;
        if (point < behind)
            *(xt_b16 *)(out + point * XT_UNIT) = XT_NAME(_word)(table, point);
    }
    const int end = threadIdx.x < XT_G ? (int)threadIdx.x : behind + (int)threadIdx.x - XT_G;
    if (threadIdx.x < XT_G ? end < before : end < points) {
        const int record = (int)XT_SMALL_QUOTIENT((unsigned int)end, XT_LENGTH);
        const struct XT_NAME(_place) e = XT_NAME(_find)(places, end - record * XT_LENGTH, shift);
        ((XT_B(XT_UNIT) *)out)[end] = XT_OF(shared, XT_UNIT)(e.at + record * e.step);
    }
}
#undef XT_G
#undef XT_NAME
#undef XT_WORDS
#undef XT_LOADS
#undef XT_BEFORE
#undef XT_PART_OF
#undef XT_SOURCE_OF
#undef XT_PICK
