/* gaps.c: which multiples of a number, modulo another, lie in an interval. Layer 5. */
#include "base/num.h"
#include "shard/visible.h"

/* Least i >= 0 of which lo <= a*i mod m <= hi; -1: none. 0 <= a < m, 0 <= lo <= hi < m. As Euclid's
 * algorithm: where no multiple of a lies in [lo, hi], how often m was taken off is asked modulo a. */
static int64_t first_between(int64_t a, int64_t m, int64_t lo, int64_t hi)
{
    if (!lo)
        return 0;
    if (!a)
        return -1;
    if (2 * a > m)
        return first_between(m - a, m, m - hi, m - lo);
    int64_t i = (lo + a - 1) / a;
    if (i * a <= hi)
        return i;
    int64_t off = first_between(m % a, a, a - hi % a, a - lo % a);
    return off < 0 ? -1 : (lo + m * off + a - 1) / a;
}

int64_t xti_gaps_first(int64_t a, int64_t m, int64_t r, int64_t lo, int64_t w)
{
    if (r >= lo && r < lo + w)
        return 0;
    return first_between(a, m, xti_floor_mod(lo - r, m), xti_floor_mod(lo + w - 1 - r, m));
}

struct xti_gaps xti_gaps_of(int64_t a, int64_t m, int64_t w)
{
    int64_t back = a ? m - a : 0;
    struct xti_gaps g = {.a = a, .m = m, .w = w};
    g.up = 1 + xti_gaps_first(a, m, a, 0, w); /* a multiple of m is among them */
    g.down = 1 + xti_gaps_first(back, m, back, 0, w);
    g.rise = a * g.up % m;
    g.fall = back * g.down % m;
    return g;
}
