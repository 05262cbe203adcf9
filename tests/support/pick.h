/* pick.h: numbers by chance for one test file: Knuth's 64-bit LCG, the same on every machine. */
#ifndef TESTS_SUPPORT_PICK_H
#define TESTS_SUPPORT_PICK_H

#include <stdint.h>

static uint64_t rng_state = 1;

/* In [lo, hi]. */
static inline int64_t pick(int64_t lo, int64_t hi)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((rng_state >> 33) % (uint64_t)(hi - lo + 1));
}

#endif
