/* prelude.cu: the types and helpers of the skeletons; inserted once, before all else.
 * xt_b<N> is N bytes that move together and are aligned to N. The b16 helpers take a narrower word's bytes at
 * the low end; everything but loads and stores folds away. */
typedef unsigned char xt_b1;
typedef unsigned short xt_b2;
typedef unsigned int xt_b4;
typedef struct __align__(8) xt_b8 { xt_b4 w[2]; }
xt_b8;
typedef struct __align__(16) xt_b16 { xt_b4 w[4]; }
xt_b16;
typedef unsigned long long xt_size;
/* The sources of a body that reads several. */
typedef struct xt_many { const unsigned char *p[4]; }
xt_many;

#define XT_FN      static __device__ __forceinline__
#define XT_UNROLL  _Pragma("unroll")
#define XT_THREADS 128
/* values of XT_FROM */
#define XT_COPY             0
#define XT_REVERSE          1
#define XT_SPLAT            2
#define XT_FILL             3
#define XT_PASTE_(a, b)     a##b
#define XT_PASTE(a, b)      XT_PASTE_(a, b)
#define XT_B(bytes)         XT_PASTE(xt_b, bytes)
#define XT_OF_(verb, bytes) xt_##verb##_b##bytes
#define XT_OF(verb, bytes)  XT_OF_(verb, bytes)
#define XT_LEAST(a, b)      ((a) < (b) ? (a) : (b))
#define XT_QUOTIENT(i, n)   ((i) / (n))
/* The same for i, n < 2^15, n a constant: a multiplication and a shift (cuda/writer.h has the proof). */
#define XT_SMALL_QUOTIENT(i, n)                                                                              \
    ((n) & ((n)-1) ? (i) * (((1u << 15 << XT_BITS(n)) + (n)-1) / (n)) >> (15 + XT_BITS(n)) : (i) / (n))
#define XT_BITS(n)                                                                                           \
    (((n) > 1) + ((n) > 2) + ((n) > 4) + ((n) > 8) + ((n) > 16) + ((n) > 32) + ((n) > 64) + ((n) > 128) +    \
     ((n) > 256) + ((n) > 512) + ((n) > 1024) + ((n) > 2048) + ((n) > 4096) + ((n) > 8192) + ((n) > 16384))

XT_FN xt_many xt_sources(const unsigned char *a, const unsigned char *b, const unsigned char *c,
                         const unsigned char *d)
{
    xt_many r;
    r.p[0] = a;
    r.p[1] = b;
    r.p[2] = c;
    r.p[3] = d;
    return r;
}

XT_FN xt_b16 xt_zero(void)
{
    xt_b16 r;
    r.w[0] = r.w[1] = r.w[2] = r.w[3] = 0;
    return r;
}

/* The first N bytes. */
XT_FN xt_b1 xt_low_b1(const xt_b16 v) { return (xt_b1)v.w[0]; }
XT_FN xt_b2 xt_low_b2(const xt_b16 v) { return (xt_b2)v.w[0]; }
XT_FN xt_b4 xt_low_b4(const xt_b16 v) { return v.w[0]; }
XT_FN xt_b8 xt_low_b8(const xt_b16 v)
{
    xt_b8 r;
    r.w[0] = v.w[0];
    r.w[1] = v.w[1];
    return r;
}
XT_FN xt_b16 xt_low_b16(const xt_b16 v) { return v; }

/* The k-th unit of N bytes, and setting it; k is a constant once loops are unrolled. */
XT_FN xt_b1 xt_get_b1(const xt_b16 v, const int k) { return (xt_b1)(v.w[k / 4] >> k % 4 * 8); }
XT_FN xt_b2 xt_get_b2(const xt_b16 v, const int k) { return (xt_b2)(v.w[k / 2] >> k % 2 * 16); }
XT_FN xt_b4 xt_get_b4(const xt_b16 v, const int k) { return v.w[k]; }
XT_FN xt_b8 xt_get_b8(const xt_b16 v, const int k)
{
    xt_b8 r;
    r.w[0] = v.w[2 * k];
    r.w[1] = v.w[2 * k + 1];
    return r;
}
XT_FN xt_b16 xt_get_b16(const xt_b16 v, const int k) { return v; }

/* The unit is still zero in v. */
XT_FN void xt_set_b1(xt_b16 *v, const int k, const xt_b1 x) { v->w[k / 4] |= (xt_b4)x << k % 4 * 8; }
XT_FN void xt_set_b2(xt_b16 *v, const int k, const xt_b2 x) { v->w[k / 2] |= (xt_b4)x << k % 2 * 16; }
XT_FN void xt_set_b4(xt_b16 *v, const int k, const xt_b4 x) { v->w[k] = x; }
XT_FN void xt_set_b8(xt_b16 *v, const int k, const xt_b8 x)
{
    v->w[2 * k] = x.w[0];
    v->w[2 * k + 1] = x.w[1];
}
XT_FN void xt_set_b16(xt_b16 *v, const int k, const xt_b16 x) { *v = x; }

/* Sixteen bytes of one repeated unit. */
XT_FN xt_b16 xt_spread_b4(const xt_b4 x)
{
    xt_b16 r;
    r.w[0] = r.w[1] = r.w[2] = r.w[3] = x;
    return r;
}
XT_FN xt_b16 xt_spread_b1(const xt_b1 x) { return xt_spread_b4(x * 0x01010101u); }
XT_FN xt_b16 xt_spread_b2(const xt_b2 x) { return xt_spread_b4(x * 0x00010001u); }
XT_FN xt_b16 xt_spread_b8(const xt_b8 x)
{
    xt_b16 r;
    r.w[0] = r.w[2] = x.w[0];
    r.w[1] = r.w[3] = x.w[1];
    return r;
}
XT_FN xt_b16 xt_spread_b16(const xt_b16 x) { return x; }

/* A word's bytes at the high end of sixteen; the others are zero. */
XT_FN xt_b16 xt_top_b4(const xt_b4 x)
{
    xt_b16 r = xt_zero();
    r.w[3] = x;
    return r;
}
XT_FN xt_b16 xt_top_b1(const xt_b1 x) { return xt_top_b4((xt_b4)x << 24); }
XT_FN xt_b16 xt_top_b2(const xt_b2 x) { return xt_top_b4((xt_b4)x << 16); }
XT_FN xt_b16 xt_top_b8(const xt_b8 x)
{
    xt_b16 r = xt_zero();
    r.w[2] = x.w[0];
    r.w[3] = x.w[1];
    return r;
}
XT_FN xt_b16 xt_top_b16(const xt_b16 x) { return x; }

/* The units of N bytes in opposite order. */
XT_FN xt_b16 xt_reverse_b4(const xt_b16 v)
{
    xt_b16 r;
    r.w[0] = v.w[3];
    r.w[1] = v.w[2];
    r.w[2] = v.w[1];
    r.w[3] = v.w[0];
    return r;
}
XT_FN xt_b16 xt_reverse_bytes(const xt_b16 v, const xt_b4 selector)
{
    xt_b16 r = xt_reverse_b4(v);
    XT_UNROLL
    for (int i = 0; i < 4; i++)
        r.w[i] = __byte_perm(r.w[i], 0, selector);
    return r;
}
XT_FN xt_b16 xt_reverse_b1(const xt_b16 v) { return xt_reverse_bytes(v, 0x0123); }
XT_FN xt_b16 xt_reverse_b2(const xt_b16 v) { return xt_reverse_bytes(v, 0x1032); }
XT_FN xt_b16 xt_reverse_b8(const xt_b16 v)
{
    xt_b16 r;
    r.w[0] = v.w[2];
    r.w[1] = v.w[3];
    r.w[2] = v.w[0];
    r.w[3] = v.w[1];
    return r;
}
XT_FN xt_b16 xt_reverse_b16(const xt_b16 v) { return v; }

/* Word k becomes word k + by, modulo 4. */
XT_FN xt_b16 xt_rotate(const xt_b16 v, const int by)
{
    xt_b16 a, r;
    XT_UNROLL
    for (int k = 0; k < 4; k++)
        a.w[k] = by & 1 ? v.w[(k + 3) % 4] : v.w[k];
    XT_UNROLL
    for (int k = 0; k < 4; k++)
        r.w[k] = by & 2 ? a.w[k ^ 2] : a.w[k];
    return r;
}

/* Sixteen bytes of units. */
XT_FN xt_b16 xt_join_b1(const xt_b1 *unit)
{
    xt_b16 r;
    XT_UNROLL
    for (int k = 0; k < 16; k += 4) {
        const xt_b4 low = __byte_perm(unit[k], unit[k + 1], 0x3340);
        const xt_b4 high = __byte_perm(unit[k + 2], unit[k + 3], 0x3340);
        r.w[k / 4] = __byte_perm(low, high, 0x5410);
    }
    return r;
}
XT_FN xt_b16 xt_join_b2(const xt_b2 *unit)
{
    xt_b16 r;
    XT_UNROLL
    for (int k = 0; k < 8; k += 2)
        r.w[k / 2] = __byte_perm(unit[k], unit[k + 1], 0x5410);
    return r;
}
XT_FN xt_b16 xt_join_b4(const xt_b4 *unit)
{
    xt_b16 r;
    XT_UNROLL
    for (int k = 0; k < 4; k++)
        r.w[k] = unit[k];
    return r;
}
XT_FN xt_b16 xt_join_b8(const xt_b8 *unit)
{
    xt_b16 r;
    xt_set_b8(&r, 0, unit[0]);
    xt_set_b8(&r, 1, unit[1]);
    return r;
}
XT_FN xt_b16 xt_join_b16(const xt_b16 *unit) { return *unit; }

/* Units of shared memory by their 32-bit addresses: places that are computed need no 64-bit sums. */
XT_FN xt_b4 xt_shared_b4(const xt_b4 at)
{
    xt_b4 r;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(at));
    return r;
}
XT_FN xt_b1 xt_shared_b1(const xt_b4 at)
{
    xt_b4 r;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(r) : "r"(at));
    return (xt_b1)r;
}
XT_FN xt_b2 xt_shared_b2(const xt_b4 at)
{
    xt_b2 r;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(r) : "r"(at));
    return r;
}
XT_FN xt_b8 xt_shared_b8(const xt_b4 at)
{
    xt_b8 r;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(r.w[0]), "=r"(r.w[1]) : "r"(at));
    return r;
}
XT_FN xt_b16 xt_shared_b16(const xt_b4 at)
{
    xt_b16 r;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r.w[0]), "=r"(r.w[1]), "=r"(r.w[2]), "=r"(r.w[3])
                 : "r"(at));
    return r;
}

/* Stores bytes from .. to - 1 of the 16 at p, by the largest pieces that are aligned and fit. */
XT_FN void xt_store_part(unsigned char *p, const xt_b16 v, const int from, const int to)
{
    int at = from;
#pragma unroll 1
    while (at < to) {
        const int room = to - at, even = (at | 8) & -(at | 8);
        const int n = room >= even ? even : room >= 4 ? 4 : room >= 2 ? 2 : 1;
        const xt_b8 half = at & 8 ? xt_get_b8(v, 1) : xt_get_b8(v, 0);
        const xt_size bits = ((xt_size)half.w[1] << 32 | half.w[0]) >> 8 * (at & 7);
        if (n == 8)
            *(xt_b8 *)(p + at) = half;
        else if (n == 4)
            *(xt_b4 *)(p + at) = (xt_b4)bits;
        else if (n == 2)
            *(xt_b2 *)(p + at) = (xt_b2)bits;
        else
            *(xt_b1 *)(p + at) = (xt_b1)bits;
        at += n;
    }
}
