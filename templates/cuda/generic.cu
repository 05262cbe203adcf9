/* generic.cu: any piece, one unit at a time, in the destination's order. A thread copies XT_STEPS units.
 *
 * - XT_FROM: XT_COPY or XT_FILL
 * - XT_REPEAT 1: a thread's units differ in one short dim in which the source lies closer together than along
 *   the warp, so that what a warp leaves of a sector is still in the first cache when its next step wants it
 * - XT_POINTS points in all, less that dim
 * - XT_AT: point i, step a of the repeated dim -> *s, *d in units; 0 when a guard hides the point */
XT_FN void XT_BODY(unsigned char *__restrict__ dst, const unsigned char *__restrict__ src, const xt_b16 fill,
                   const xt_index block, const xt_index *t, xt_b16 *tile)
{
    XT_B(XT_UNIT) v[XT_STEPS];
    xt_index d[XT_STEPS];
    int live[XT_STEPS];
    XT_UNROLL
    for (int j = 0; j < XT_STEPS; j++) {
        const xt_index group = XT_REPEAT ? block : block * XT_STEPS + j;
        const xt_index i = group * XT_THREADS + threadIdx.x;
        xt_index s = 0, unused = 0;
        live[j] = 0;
        d[j] = 0;
        if (XT_LOOP) /* else nothing reads it */
            v[j] = XT_OF(low, XT_UNIT)(xt_zero());
        if (i < XT_POINTS)
            live[j] = XT_AT(t, i, (xt_index)j, &s, &d[j], &unused, &unused);
#if XT_FROM == XT_FILL
        v[j] = XT_OF(low, XT_UNIT)(fill);
#else
        if (live[j])
            v[j] = *(const XT_B(XT_UNIT) *)(src + (xt_size)s * XT_UNIT);
#endif
    }
    XT_UNROLL
    for (int j = 0; j < XT_STEPS; j++)
        if (live[j])
            *(XT_B(XT_UNIT) *)(dst + (xt_size)d[j] * XT_UNIT) = v[j];
}
