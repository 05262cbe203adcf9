/* abreast.c: which copies permute small units within themselves (abreast.h). Layer 3. */
#include "plan/abreast.h"

#include "base/num.h"

/* Matrices of two bytes with 16 on either side make squares, which do as much without a buffer or more. */
static bool squares_serve(const struct xti_nest *t)
{
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    return cs && cd && t->unit == 2 && cs->d == cd->n * t->unit && cd->s == cs->n * t->unit &&
           cs->d >= XTI_LANE && cd->s >= XTI_LANE;
}

/* The dims from this one on read so many bytes, each once: none of them overlap, nor are there gaps. */
static bool permutes(const struct xti_nest *t, int from, int64_t bytes)
{
    int64_t run = t->run;
    for (int i = from; run < bytes && i < t->n_dims;)
        if (t->dim[i].n > 1 && (int64_t)xti_abs64(t->dim[i].s) == run)
            run *= t->dim[i].n, i = from;
        else
            i++;
    return run == bytes;
}

/* Units of little more than a line, runs of more, and what is woven or streams lines of one unit do better by
 * themselves. */
int64_t xti_abreast_unit(const struct xti_target *target, const struct xti_nest *t)
{
    enum { LEAST = 96, MANY = 64 /* times those that go side by side: what is left over is gathered */ };
    int64_t bytes = t->run, units = xti_abreast_units(xti_abreast_element(t));
    if (!xti_may(target, XTI_ABREAST) || !target->machine->habits.abreast || target->isa != XTI_ISA_AVX512 ||
        units < 2 || t->run >= XTI_LINE || squares_serve(t))
        return 0;
    for (int i = t->n_dims - 1; i > 0 && t->dim[i].d == bytes; i--) {
        const struct xti_loop *next = &t->dim[i - 1];
        bytes *= t->dim[i].n;
        if (bytes > XTI_ABREAST_BYTES / units)
            return 0;
        if (bytes >= LEAST && permutes(t, i, bytes))
            return next->d == bytes && next->n >= MANY * units ? bytes : 0;
    }
    return 0;
}
