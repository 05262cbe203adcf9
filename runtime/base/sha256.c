/* sha256.c: SHA-256 as FIPS 180-4 writes it, by the processor's instructions for it where there are: some
 * seven times as fast, and code read from packs and from the disk is checked by it. Layer 0. */
#include "base/hash.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static const uint32_t round_key[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void compress(uint32_t h[8], const unsigned char *p)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 |
               p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i += 8) {
#define V(n) v[((n) + 8 - j) % 8] /* the eight words turn by one a step: their names do, once unrolled */
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) {
            uint32_t s1 = rotr(V(4), 6) ^ rotr(V(4), 11) ^ rotr(V(4), 25);
            uint32_t t1 = V(7) + s1 + ((V(4) & V(5)) ^ (~V(4) & V(6))) + round_key[i + j] + w[i + j];
            uint32_t s0 = rotr(V(0), 2) ^ rotr(V(0), 13) ^ rotr(V(0), 22);
            uint32_t t2 = s0 + ((V(0) & V(1)) ^ (V(0) & V(2)) ^ (V(1) & V(2)));
            V(3) += t1;
            V(7) = t1 + t2;
        }
#undef V
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

void xti_sha256_blocks_c(uint32_t h[8], const unsigned char *p, size_t n)
{
    for (; n; n--, p += XTI_SHA256_BLOCK)
        compress(h, p);
}

#if defined(__x86_64__)

/* Of cpuid's leaf 7: SHA; of leaf 1: SSSE3 and SSE4.1. */
static bool has_instructions(void)
{
    unsigned a, b, c, d, e;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 29 & 1 && __get_cpuid(1, &a, &b, &e, &d) &&
           e >> 9 & 1 && e >> 19 & 1;
}

/* The eight words are two vectors, highest first: a b e f and c d g h. Four rounds at a time, two of them by
 * an instruction; the words of a block go round in w. */
__attribute__((target("sha,ssse3,sse4.1"))) static void blocks_x86(uint32_t h[8], const unsigned char *p,
                                                                   size_t n)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)h), 0xb1),
            efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(h + 4)), 0x1b),
            abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (; n; n--, p += XTI_SHA256_BLOCK) {
        const __m128i before_abef = abef, before_cdgh = cdgh;
        __m128i w[4];
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __m128i *now = &w[i % 4], last = w[(i + 3) % 4];
            if (i < 4)
                *now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
            else
                *now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) % 4]),
                                                          _mm_alignr_epi8(last, w[(i + 2) % 4], 4)),
                                            last);
            __m128i keyed = _mm_add_epi32(*now, _mm_loadu_si128((const __m128i *)(round_key + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, keyed);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(keyed, 0x0e));
        }
        abef = _mm_add_epi32(abef, before_abef);
        cdgh = _mm_add_epi32(cdgh, before_cdgh);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)h, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#else

static bool has_instructions(void) { return false; }

static void blocks_x86(uint32_t h[8], const unsigned char *p, size_t n) { xti_sha256_blocks_c(h, p, n); }

#endif

/* Threads that ask at once find the same. */
void xti_sha256_blocks(uint32_t h[8], const unsigned char *p, size_t n)
{
    static atomic_int has; /* 0: not known, 1: no, 2: yes */
    int known = atomic_load_explicit(&has, memory_order_relaxed);
    if (!known)
        atomic_store_explicit(&has, known = 1 + has_instructions(), memory_order_relaxed);
    (known > 1 ? blocks_x86 : xti_sha256_blocks_c)(h, p, n);
}

void xti_sha256_start(struct xti_sha256 *s)
{
    static const uint32_t h0[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(s, 0, sizeof *s);
    memcpy(s->h, h0, sizeof h0);
}

void xti_sha256_add(struct xti_sha256 *s, const void *p, size_t bytes)
{
    const unsigned char *q = p;
    size_t have = s->n_bytes % 64;
    s->n_bytes += bytes;
    while (bytes) {
        size_t room = sizeof s->block - have, m = room < bytes ? room : bytes;
        if (have == 0 && bytes >= sizeof s->block) {
            m = bytes / sizeof s->block * sizeof s->block;
            xti_sha256_blocks(s->h, q, m / sizeof s->block);
        } else {
            memcpy(s->block + have, q, m);
            have = (have + m) % sizeof s->block;
            if (have == 0)
                xti_sha256_blocks(s->h, s->block, 1);
        }
        q += m;
        bytes -= m;
    }
}

void xti_sha256_end(struct xti_sha256 *s, unsigned char out[XTI_SHA256_BYTES])
{
    uint64_t bits = s->n_bytes * 8;
    unsigned char tail[72] = {0x80};
    size_t pad = (119 - s->n_bytes % 64) % 64 + 1; /* up to 56 modulo 64 */
    for (int i = 0; i < 8; i++)
        tail[pad + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
    xti_sha256_add(s, tail, pad + 8);
    for (int i = 0; i < 32; i++)
        out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void xti_sha256_of(const void *p, size_t bytes, unsigned char out[XTI_SHA256_BYTES])
{
    struct xti_sha256 s;
    xti_sha256_start(&s);
    xti_sha256_add(&s, p, bytes);
    xti_sha256_end(&s, out);
}
