/* hash.c: SHA-256 as FIPS 180-4 writes it, and a word-wise multiply-xor hash. Layer 0. */
#include "base/hash.h"

#include <string.h>

static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void compress(uint32_t h[8], const unsigned char *p)
{
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
    };
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
            uint32_t t1 = V(7) + s1 + ((V(4) & V(5)) ^ (~V(4) & V(6))) + k[i + j] + w[i + j];
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
        size_t m = 64 - have < bytes ? 64 - have : bytes;
        if (have == 0 && bytes >= 64) {
            compress(s->h, q);
            m = 64;
        } else {
            memcpy(s->block + have, q, m);
            have = (have + m) % 64;
            if (have == 0)
                compress(s->h, s->block);
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

void xti_hex(const unsigned char *p, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = "0123456789abcdef"[p[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[p[i] & 15];
    }
    out[2 * n] = 0;
}

static uint64_t load64(const unsigned char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static uint64_t stir(uint64_t h, uint64_t w)
{
    h = (h ^ w) * 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

/* Four chains of multiplications side by side: one alone waits 6 cycles for each word. */
uint64_t xti_hash64(const void *p, size_t bytes)
{
    const unsigned char *q = p;
    uint64_t h = 0x9e3779b97f4a7c15u ^ bytes, tail = 0;
    uint64_t a = 0xbf58476d1ce4e5b9u, b = 0x94d049bb133111ebu, c = 0xd6e8feb86659fd93u;
    for (; bytes >= 32; q += 32, bytes -= 32) {
        h = stir(h, load64(q));
        a = stir(a, load64(q + 8));
        b = stir(b, load64(q + 16));
        c = stir(c, load64(q + 24));
    }
    h = stir(stir(h, a), stir(b, c));
    for (; bytes >= 8; q += 8, bytes -= 8)
        h = stir(h, load64(q));
    memcpy(&tail, q, bytes);
    h = (h ^ tail) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 29;
}
