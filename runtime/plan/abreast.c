/* abreast.c: which copies permute small units within themselves (abreast.h). Layer 3. */
#include "plan/abreast.h"

#include "base/num.h"

/* Matrices of narrow elements with so many bytes on either side are transposed in large squares. */
static bool large_squares(const struct xti_nest *t)
{
    enum { SIDE = 32, NARROW = 2 };
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    return cs && cd && t->unit <= NARROW && cs->d == cd->n * t->unit && cd->s == cs->n * t->unit &&
           cs->d >= SIDE && cd->s >= SIDE;
}

/* Ratio to a plain copy, before and after, means of 150 chains in units of 100 to 4000 bytes (Zen 5,
 * 2026-11): permuted 0, 3, 2, 1 u8 0.21 and 0.50 (8 x 6 x 20 0.17 and 0.82), f16 0.32 and 0.76, f32 0.45 and
 * 0.76; 0, 2, 1, 3 u8 0.35 and 0.59, f16 0.50 and 0.69, f32 0.51 and 0.73, f64 0.53 and 0.81; transposed u8
 * 0.50 and 0.65, f32 0.69 and 0.75, f16 and f64 the same. What is woven, or streams lines of one unit, loses
 * by it: 0.5 to 0.9. */
int64_t xti_abreast_unit(const struct xti_target *target, const struct xti_nest *t)
{
    enum { MANY = 64 }; /* times those that go side by side: what is left over is gathered */
    int64_t bytes = t->run, reach = t->run, units = xti_abreast_units(xti_abreast_element(t));
    if (!target->abreast || target->isa != XTI_ISA_AVX512 || units < 2 || large_squares(t))
        return 0;
    for (int i = t->n_dims - 1; i > 0 && t->dim[i].d == bytes; i--) {
        const struct xti_loop *next = &t->dim[i - 1];
        bytes *= t->dim[i].n;
        reach += (t->dim[i].n - 1) * (int64_t)xti_abs64(t->dim[i].s);
        if (units * bytes > XTI_ABREAST_BYTES)
            return 0;
        if (reach == bytes && bytes >= XTI_LINE)
            return next->d == bytes && next->n >= MANY * units ? bytes : 0;
    }
    return 0;
}
