/* immintrin.h: the AVX-512 intrinsics that templates/cpu uses, in C, for processors that lack them: a kernel
 * that is compiled with this folder first runs by AVX2. From Intel's intrinsics guide. Masked loads and
 * stores touch what the mask selects alone, streaming stores want lines: as the instructions do.
 * (tests/avx512.sh) */
#ifndef TESTS_EMULATED_IMMINTRIN_H
#define TESTS_EMULATED_IMMINTRIN_H

#include_next <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __AVX2__

/* Its elements, of 8 to 64 bits, and its lanes. */
typedef union {
    __m512i v;
    uint8_t e8[64];
    uint16_t e16[32];
    uint32_t e32[16];
    uint64_t e64[8];
    __m128i lane[4];
    __m256i half[2];
} emulated;

#define EMULATE(type, name, ...) static inline __attribute__((unused)) type emulated_##name(__VA_ARGS__)

EMULATE(__m512i, loadu_si512, const void *p)
{
    emulated x;
    memcpy(&x, p, 64);
    return x.v;
}
EMULATE(void, storeu_si512, void *p, __m512i x) { memcpy(p, &x, 64); }
EMULATE(void, stream_si512, void *p, __m512i x)
{
    if ((uintptr_t)p % 64)
        abort();
    memcpy(p, &x, 64);
}
EMULATE(__m512i, maskz_loadu_epi8, uint64_t mask, const void *p)
{
    emulated x = {.v = {0}};
    for (int i = 0; i < 64; i++)
        if (mask >> i & 1)
            x.e8[i] = ((const uint8_t *)p)[i];
    return x.v;
}
EMULATE(__m512i, or_si512, __m512i a, __m512i b) { return a | b; }
EMULATE(__m128i, castsi512_si128, __m512i a) { return ((emulated){.v = a}).lane[0]; }
EMULATE(__m256i, castsi512_si256, __m512i a) { return ((emulated){.v = a}).half[0]; }
EMULATE(__m512i, castsi256_si512, __m256i a) { return ((emulated){.half = {a, a}}).v; }
EMULATE(__m512i, broadcast_i32x4, __m128i a) { return ((emulated){.lane = {a, a, a, a}}).v; }
EMULATE(__m128i, extracti32x4_epi32, __m512i a, int i) { return ((emulated){.v = a}).lane[i]; }
EMULATE(__m256i, extracti64x4_epi64, __m512i a, int i) { return ((emulated){.v = a}).half[i]; }
EMULATE(__m512i, inserti32x4, __m512i a, __m128i b, int i)
{
    emulated x = {.v = a};
    x.lane[i] = b;
    return x.v;
}
EMULATE(__m512i, inserti64x4, __m512i a, __m256i b, int i)
{
    emulated x = {.v = a};
    x.half[i] = b;
    return x.v;
}
EMULATE(__m512i, shuffle_i64x2, __m512i a, __m512i b, int how)
{
    emulated x = {.v = a}, y = {.v = b};
    return ((emulated){
                .lane = {x.lane[how & 3], x.lane[how >> 2 & 3], y.lane[how >> 4 & 3], y.lane[how >> 6]}})
        .v;
}
EMULATE(__m512i, shuffle_epi8, __m512i a, __m512i places)
{
    emulated x = {.v = a}, p = {.v = places};
    for (int i = 0; i < 4; i++)
        x.lane[i] = _mm_shuffle_epi8(x.lane[i], p.lane[i]);
    return x.v;
}
/* Bit i of the result: bit abc of `table`, of bit i of each. */
EMULATE(__m512i, ternarylogic_epi32, __m512i a, __m512i b, __m512i c, int table)
{
    __m512i x = {0};
    for (int i = 0; i < 8; i++)
        if (table >> i & 1)
            x |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return x;
}
EMULATE(__m512i, i32gather_epi32, __m512i at, const void *p, int scale)
{
    emulated x, i = {.v = at};
    for (int k = 0; k < 16; k++)
        memcpy(&x.e32[k], (const char *)p + (int64_t)(int32_t)i.e32[k] * scale, 4);
    return x.v;
}
EMULATE(__m512i, i32gather_epi64, __m256i at, const void *p, int scale)
{
    emulated x, i = {.half = {at, at}};
    for (int k = 0; k < 8; k++)
        memcpy(&x.e64[k], (const char *)p + (int64_t)(int32_t)i.e32[k] * scale, 8);
    return x.v;
}

/* Lane by lane what AVX2 has for one. */
#define EMULATE_LANES(op, b)                                                                                 \
    EMULATE(__m512i, op##_epi##b, __m512i a, __m512i c)                                                      \
    {                                                                                                        \
        emulated x = {.v = a}, y = {.v = c};                                                                 \
        for (int i = 0; i < 4; i++)                                                                          \
            x.lane[i] = _mm_##op##_epi##b(x.lane[i], y.lane[i]);                                             \
        return x.v;                                                                                          \
    }

/* Those of elements of b bits. */
#define EMULATE_ALL(b, n)                                                                                    \
    EMULATE(__m512i, set1_epi##b, int64_t a)                                                                 \
    {                                                                                                        \
        emulated x;                                                                                          \
        for (int i = 0; i < n; i++)                                                                          \
            x.e##b[i] = (uint##b##_t)a;                                                                      \
        return x.v;                                                                                          \
    }                                                                                                        \
    EMULATE(__m512i, add_epi##b, __m512i a, __m512i c)                                                       \
    {                                                                                                        \
        emulated x = {.v = a}, y = {.v = c};                                                                 \
        for (int i = 0; i < n; i++)                                                                          \
            x.e##b[i] = (uint##b##_t)(x.e##b[i] + y.e##b[i]);                                                \
        return x.v;                                                                                          \
    }                                                                                                        \
    EMULATE(__m512i, permutex2var_epi##b, __m512i a, __m512i index, __m512i c)                               \
    {                                                                                                        \
        emulated x = {.v = a}, k = {.v = index}, y = {.v = c}, out;                                          \
        for (int i = 0; i < n; i++)                                                                          \
            out.e##b[i] = (k.e##b[i] & n ? y : x).e##b[k.e##b[i] % n];                                       \
        return out.v;                                                                                        \
    }                                                                                                        \
    EMULATE(__m512i, permutexvar_epi##b, __m512i index, __m512i a)                                           \
    {                                                                                                        \
        return emulated_permutex2var_epi##b(a, index, a);                                                    \
    }                                                                                                        \
    EMULATE(__m512i, mask_mov_epi##b, __m512i a, uint64_t mask, __m512i c)                                   \
    {                                                                                                        \
        emulated x = {.v = a}, y = {.v = c};                                                                 \
        for (int i = 0; i < n; i++)                                                                          \
            x.e##b[i] = mask >> i & 1 ? y.e##b[i] : x.e##b[i];                                               \
        return x.v;                                                                                          \
    }                                                                                                        \
    EMULATE(void, mask_storeu_epi##b, void *p, uint64_t mask, __m512i a)                                     \
    {                                                                                                        \
        emulated x = {.v = a};                                                                               \
        for (int i = 0; i < n; i++)                                                                          \
            if (mask >> i & 1)                                                                               \
                memcpy((char *)p + i * (b / 8), &x.e##b[i], b / 8);                                          \
    }                                                                                                        \
    EMULATE_LANES(unpacklo, b)                                                                               \
    EMULATE_LANES(unpackhi, b)
EMULATE_ALL(8, 64)
EMULATE_ALL(16, 32)
EMULATE_ALL(32, 16)
EMULATE_ALL(64, 8)

#define _mm512_add_epi16          emulated_add_epi16
#define _mm512_add_epi32          emulated_add_epi32
#define _mm512_add_epi64          emulated_add_epi64
#define _mm512_add_epi8           emulated_add_epi8
#define _mm512_broadcast_i32x4    emulated_broadcast_i32x4
#define _mm512_castsi256_si512    emulated_castsi256_si512
#define _mm512_castsi512_si128    emulated_castsi512_si128
#define _mm512_castsi512_si256    emulated_castsi512_si256
#define _mm512_extracti32x4_epi32 emulated_extracti32x4_epi32
#define _mm512_extracti64x4_epi64 emulated_extracti64x4_epi64
#define _mm512_i32gather_epi32    emulated_i32gather_epi32
#define _mm512_i32gather_epi64    emulated_i32gather_epi64
#define _mm512_inserti32x4        emulated_inserti32x4
#define _mm512_inserti64x4        emulated_inserti64x4
#define _mm512_loadu_si512        emulated_loadu_si512
#define _mm512_mask_mov_epi16     emulated_mask_mov_epi16
#define _mm512_mask_mov_epi32     emulated_mask_mov_epi32
#define _mm512_mask_mov_epi64     emulated_mask_mov_epi64
#define _mm512_mask_mov_epi8      emulated_mask_mov_epi8
#define _mm512_mask_storeu_epi16  emulated_mask_storeu_epi16
#define _mm512_mask_storeu_epi32  emulated_mask_storeu_epi32
#define _mm512_mask_storeu_epi64  emulated_mask_storeu_epi64
#define _mm512_mask_storeu_epi8   emulated_mask_storeu_epi8
#define _mm512_maskz_loadu_epi8   emulated_maskz_loadu_epi8
#define _mm512_or_si512           emulated_or_si512
#define _mm512_permutex2var_epi16 emulated_permutex2var_epi16
#define _mm512_permutex2var_epi32 emulated_permutex2var_epi32
#define _mm512_permutex2var_epi64 emulated_permutex2var_epi64
#define _mm512_permutex2var_epi8  emulated_permutex2var_epi8
#define _mm512_permutexvar_epi16  emulated_permutexvar_epi16
#define _mm512_permutexvar_epi32  emulated_permutexvar_epi32
#define _mm512_permutexvar_epi64  emulated_permutexvar_epi64
#define _mm512_permutexvar_epi8   emulated_permutexvar_epi8
#define _mm512_set1_epi16         emulated_set1_epi16
#define _mm512_set1_epi32         emulated_set1_epi32
#define _mm512_set1_epi64         emulated_set1_epi64
#define _mm512_set1_epi8          emulated_set1_epi8
#define _mm512_shuffle_epi8       emulated_shuffle_epi8
#define _mm512_shuffle_i64x2      emulated_shuffle_i64x2
#define _mm512_storeu_si512       emulated_storeu_si512
#define _mm512_stream_si512       emulated_stream_si512
#define _mm512_ternarylogic_epi32 emulated_ternarylogic_epi32
#define _mm512_unpackhi_epi16     emulated_unpackhi_epi16
#define _mm512_unpackhi_epi32     emulated_unpackhi_epi32
#define _mm512_unpackhi_epi64     emulated_unpackhi_epi64
#define _mm512_unpackhi_epi8      emulated_unpackhi_epi8
#define _mm512_unpacklo_epi16     emulated_unpacklo_epi16
#define _mm512_unpacklo_epi32     emulated_unpacklo_epi32
#define _mm512_unpacklo_epi64     emulated_unpacklo_epi64
#define _mm512_unpacklo_epi8      emulated_unpacklo_epi8

/* Statements that keep a value in a register of 64 bytes have none here. */
#define __asm__(...) ((void)0)

#endif
#endif
