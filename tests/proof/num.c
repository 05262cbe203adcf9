/* num.c: what base/num.h promises, for frama-c to prove of every pair of integers: `make proof`. The loops'
 * invariants stand in num.h. */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* What gcc and clang document of their builtins: the exact result where it fits, and whether it does not. */
/*@ requires \valid(out); assigns *out, \result \from a, b;
    ensures (\result == 0 && *out == a + b) || (\result == 1 && !(INT64_MIN <= a + b <= INT64_MAX)); */
bool xti_proof_add(int64_t a, int64_t b, int64_t *out);
/*@ requires \valid(out); assigns *out, \result \from a, b;
    ensures (\result == 0 && *out == a - b) || (\result == 1 && !(INT64_MIN <= a - b <= INT64_MAX)); */
bool xti_proof_sub(int64_t a, int64_t b, int64_t *out);
/*@ requires \valid(out); assigns *out, \result \from a, b;
    ensures (\result == 0 && *out == a * b) || (\result == 1 && !(INT64_MIN <= a * b <= INT64_MAX)); */
bool xti_proof_mul(int64_t a, int64_t b, int64_t *out);
#define __builtin_add_overflow xti_proof_add
#define __builtin_sub_overflow xti_proof_sub
#define __builtin_mul_overflow xti_proof_mul

/*@ requires \valid(out); assigns *out;
    ensures \result <==> INT64_MIN <= a + b <= INT64_MAX;
    ensures \result ==> *out == a + b; */
static inline bool xti_add64(int64_t a, int64_t b, int64_t *out);
/*@ requires \valid(out); assigns *out;
    ensures \result <==> INT64_MIN <= a - b <= INT64_MAX;
    ensures \result ==> *out == a - b; */
static inline bool xti_sub64(int64_t a, int64_t b, int64_t *out);
/*@ requires \valid(out); assigns *out;
    ensures \result <==> INT64_MIN <= a * b <= INT64_MAX;
    ensures \result ==> *out == a * b; */
static inline bool xti_mul64(int64_t a, int64_t b, int64_t *out);
/*@ requires \valid(out); assigns *out;
    ensures \result <==> INT64_MIN <= a * b <= INT64_MAX && INT64_MIN <= a * b + c <= INT64_MAX;
    ensures \result ==> *out == c + a * b; */
static inline bool xti_mad64(int64_t a, int64_t b, int64_t c, int64_t *out);

/*@ assigns \nothing;
    ensures \result == (a + b < INT64_MIN ? INT64_MIN : a + b > INT64_MAX ? INT64_MAX : a + b); */
static inline int64_t xti_add_most(int64_t a, int64_t b);
/*@ assigns \nothing;
    ensures \result == (a * b < INT64_MIN ? INT64_MIN : a * b > INT64_MAX ? INT64_MAX : a * b); */
static inline int64_t xti_mul_most(int64_t a, int64_t b);

/*@ requires a >= 0 && b > 0; assigns \nothing;
    ensures \result * b >= a && (\result - 1) * b < a; */
static inline int64_t xti_ceil_div(int64_t a, int64_t b);
/*@ requires b > 0; assigns \nothing;
    ensures \result * b <= a < (\result + 1) * b; */
static inline int64_t xti_floor_div(int64_t a, int64_t b);
/*@ requires b > 0; assigns \nothing;
    ensures 0 <= \result < b && (a - \result) % b == 0; */
static inline int64_t xti_floor_mod(int64_t a, int64_t b);
/*@ assigns \nothing; ensures \result == \abs(a); */
static inline uint64_t xti_abs64(int64_t a);

/* Euclid's theorem is the definition: the common divisors of a and b are those of b and a mod b. */
/*@ axiomatic Gcd {
      logic integer gcd(integer a, integer b);
      axiom gcd_none: \forall integer a; a >= 0 ==> gcd(a, 0) == a;
      axiom gcd_step: \forall integer a, b; a >= 0 && b > 0 ==> gcd(a, b) == gcd(b, a % b); } */
/*@ requires a > INT64_MIN && b > INT64_MIN; assigns \nothing;
    ensures \result >= 0 && \result == gcd(\abs(a), \abs(b)); */
static inline int64_t xti_gcd64(int64_t a, int64_t b);

/*@ requires of >= 1; assigns \nothing; ensures 1 <= \result <= of; */
static inline int64_t xti_period(int64_t of, int64_t step);

/*@ axiomatic Product {
      logic integer product{L}(int64_t *x, integer n) reads x[0 .. n - 1];
      axiom product_none{L}: \forall int64_t *x; product(x, 0) == 1;
      axiom product_step{L}: \forall int64_t *x, integer n; n > 0 ==>
        product(x, n) == product(x, n - 1) * x[n - 1]; } */
/*@ lemma grows: \forall integer a, b; a >= 1 && b >= 1 ==> a * b >= a && a * b >= 1; */
/*@ lemma stays: \forall integer a, b; a > INT64_MAX && b >= 1 ==> a * b > INT64_MAX; */
/*@ requires \valid(out) && \valid_read(extent + (0 .. n - 1)) && n >= 0;
    requires \separated(out, extent + (0 .. n - 1));
    requires \forall integer i; 0 <= i < n ==> extent[i] >= 0;
    assigns *out;
    behavior empty:
      assumes \exists integer i; 0 <= i < n && extent[i] == 0;
      ensures \result && *out == 0;
    behavior full:
      assumes \forall integer i; 0 <= i < n ==> extent[i] > 0;
      ensures \result <==> product{Pre}(extent, n) <= INT64_MAX;
      ensures \result ==> *out == product{Pre}(extent, n);
    complete behaviors; disjoint behaviors; */
static inline bool xti_product(int n, const int64_t *extent, int64_t *out);

#include "base/num.h"
