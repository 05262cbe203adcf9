/* num.h: checked 64-bit arithmetic and floor division. Every size, stride, offset and extent that comes from
 * outside goes through here. The marked comments are for frama-c: `make proof` proves that all of it holds
 * for every pair of integers, by the contracts in tests/proof/num.c. Layer 0. */
#ifndef XTI_BASE_NUM_H
#define XTI_BASE_NUM_H

#include <stdbool.h>
#include <stdint.h>

/* True and *out set when the exact result fits in int64_t, else false and *out unspecified. */
static inline bool xti_add64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool xti_sub64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_sub_overflow(a, b, out);
}
static inline bool xti_mul64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* *out = c + a*b when that fits. */
static inline bool xti_mad64(int64_t a, int64_t b, int64_t c, int64_t *out)
{
    int64_t t;
    return xti_mul64(a, b, &t) && xti_add64(t, c, out);
}

/* a + b and a*b, or the nearest that fits: sizes that are compared with smaller ones, and nothing else. */
static inline int64_t xti_add_most(int64_t a, int64_t b)
{
    int64_t out;
    return xti_add64(a, b, &out) ? out : a < 0 ? INT64_MIN : INT64_MAX;
}
static inline int64_t xti_mul_most(int64_t a, int64_t b)
{
    int64_t out;
    return xti_mul64(a, b, &out) ? out : (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX;
}

/* ceil(a/b), for a >= 0, b > 0: in how many parts of b. */
static inline int64_t xti_ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/* floor(a/b) and a - b*floor(a/b), for b > 0. */
static inline int64_t xti_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static inline int64_t xti_floor_mod(int64_t a, int64_t b) { return a % b < 0 ? a % b + b : a % b; }

/* |a| as unsigned: right for INT64_MIN too. */
static inline uint64_t xti_abs64(int64_t a) { return a < 0 ? (uint64_t)-(a + 1) + 1 : (uint64_t)a; }

/* Greatest common divisor of |a| and |b|; gcd(0, 0) is 0. Both > INT64_MIN. */
static inline int64_t xti_gcd64(int64_t a, int64_t b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    /*@ loop invariant 0 <= a && 0 <= b && gcd(a, b) == gcd(\abs(\at(a, Pre)), \abs(\at(b, Pre)));
        loop assigns a, b;
        loop variant b; */
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

/* of / gcd(of, step) for a power of two, by shifts: after so many steps a multiple of it is met again. */
static inline int64_t xti_period(int64_t of, int64_t step)
{
    /*@ loop invariant 1 <= of <= \at(of, Pre);
        loop assigns of, step;
        loop variant of; */
    while (of > 1 && step % 2 == 0) {
        of /= 2;
        step /= 2;
    }
    return of;
}

/* Product of n extents >= 0: 0 when one is 0 even if the others overflow; false when it does not fit. */
static inline bool xti_product(int n, const int64_t *extent, int64_t *out)
{
    bool fits = true;
    int64_t p = 1;
    /*@ loop invariant 0 <= i && (n >= 0 ==> i <= n) && (n < 0 ==> i == 0);
        loop invariant 1 <= product(extent, i);
        loop invariant \forall integer j; 0 <= j < i ==> extent[j] > 0;
        loop invariant (fits && p == product(extent, i)) || (!fits && product(extent, i) > INT64_MAX);
        loop assigns i, fits, p;
        loop variant n - i; */
    for (int i = 0; i < n; i++) {
        if (extent[i] == 0) {
            *out = 0;
            return true;
        }
        fits = fits && xti_mul64(p, extent[i], &p);
    }
    *out = p;
    return fits;
}

#endif
