/* hash.c: a word-wise multiply-xor hash, and bytes as hex; SHA-256: sha256.c. Layer 0. */
#include "base/hash.h"

#include <string.h>

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
