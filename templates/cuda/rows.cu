/* rows.cu: rows that lie element after element in the destination, cut into chunks of XT_VEC bytes. A thread
 * copies XT_STEPS chunks, far apart, so that their loads are under way together.
 *
 * - XT_FROM: XT_COPY: the source's row too; XT_REVERSE: the same, backwards; XT_SPLAT: one source element a
 *   row; XT_FILL: no source
 * - XT_POINTS chunks in all, XT_CHUNKS a row, XT_TAIL units in a row's last chunk when not whole, or 0
 * - XT_AT: chunk i -> *s, *d: the row's start in units; *u: the chunk in its row */
#define XT_GROUP        (XT_VEC / XT_UNIT)
#define XT_SOURCE(unit) (src + (xt_size)(xt_index)(unit)*XT_UNIT)

#if XT_FROM == XT_COPY
#define XT_MOVE(s, chunk)  ((s) + (chunk)*XT_GROUP)
#define XT_LOAD(s)         (*(const XT_B(XT_VEC) *)XT_SOURCE(s))
#define XT_LOAD_UNIT(s, k) (*(const XT_B(XT_UNIT) *)XT_SOURCE((s) + (k)))
#elif XT_FROM == XT_REVERSE
#define XT_MOVE(s, chunk)  ((s) - (chunk)*XT_GROUP)
#define XT_BEHIND(s)       (*(const XT_B(XT_VEC) *)XT_SOURCE((s) - (XT_GROUP - 1)))
#define XT_LOAD(s)         XT_OF(low, XT_VEC)(XT_OF(reverse, XT_UNIT)(XT_OF(top, XT_VEC)(XT_BEHIND(s))))
#define XT_LOAD_UNIT(s, k) (*(const XT_B(XT_UNIT) *)XT_SOURCE((s) - (k)))
#elif XT_FROM == XT_SPLAT
#define XT_MOVE(s, chunk)  (s)
#define XT_LOAD(s)         XT_OF(low, XT_VEC)(XT_OF(spread, XT_UNIT)(*(const XT_B(XT_UNIT) *)XT_SOURCE(s)))
#define XT_LOAD_UNIT(s, k) (*(const XT_B(XT_UNIT) *)XT_SOURCE(s))
#else
#define XT_MOVE(s, chunk)  (s)
#define XT_LOAD(s)         XT_OF(low, XT_VEC)(fill)
#define XT_LOAD_UNIT(s, k) XT_OF(low, XT_UNIT)(fill)
#endif

XT_FN void XT_BODY(unsigned char *__restrict__ dst, const unsigned char *__restrict__ src, const xt_b16 fill,
                   const xt_index block, const xt_index *t, xt_b16 *tile)
{
    XT_B(XT_VEC) v[XT_STEPS];
    xt_index s[XT_STEPS], d[XT_STEPS];
    int units[XT_STEPS]; /* of this chunk; -1: all, 0: there is no chunk */
    XT_UNROLL
    for (int j = 0; j < XT_STEPS; j++) {
        const xt_index i = (block * XT_STEPS + j) * XT_THREADS + threadIdx.x;
        xt_index c = 0;
        units[j] = 0;
        s[j] = d[j] = 0;
        if (XT_LOOP) /* else nothing reads it */
            v[j] = XT_OF(low, XT_VEC)(xt_zero());
        if (i < XT_POINTS) {
            XT_AT(t, i, 0, &s[j], &d[j], &c, &c);
            s[j] = XT_MOVE(s[j], c);
            d[j] += c * XT_GROUP;
            units[j] = XT_TAIL && c == XT_CHUNKS - 1 ? (int)(XT_TAIL) : -1;
            if (units[j] < 0)
                v[j] = XT_LOAD(s[j]);
        }
    }
    XT_UNROLL
    for (int j = 0; j < XT_STEPS; j++) {
        unsigned char *p = dst + (xt_size)d[j] * XT_UNIT;
        if (units[j] < 0)
            *(XT_B(XT_VEC) *)p = v[j];
        for (int k = 0; k < units[j]; k++)
            ((XT_B(XT_UNIT) *)p)[k] = XT_LOAD_UNIT(s[j], k);
    }
}
#undef XT_GROUP
#undef XT_SOURCE
#undef XT_MOVE
#undef XT_BEHIND
#undef XT_LOAD
#undef XT_LOAD_UNIT
