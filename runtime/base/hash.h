/* hash.h: SHA-256 for what lasts (signatures, disk entries), a 64-bit hash for tables in memory. Layer 0. */
#ifndef XTI_BASE_HASH_H
#define XTI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { XTI_SHA256_BYTES = 32, XTI_SHA256_BLOCK = 64 };

/* FIPS 180-4. */
struct xti_sha256 {
    uint32_t h[8];
    uint64_t n_bytes;
    unsigned char block[XTI_SHA256_BLOCK];
};
void xti_sha256_start(struct xti_sha256 *s);
void xti_sha256_add(struct xti_sha256 *s, const void *p, size_t bytes);
void xti_sha256_end(struct xti_sha256 *s, unsigned char out[XTI_SHA256_BYTES]);
void xti_sha256_of(const void *p, size_t bytes, unsigned char out[XTI_SHA256_BYTES]);

/* n blocks into the eight words: by the processor's instructions, if it has them; by C alone.
 * post: both leave the same h (test_base: sha256_is_the_same_by_instructions_and_in_c). */
void xti_sha256_blocks(uint32_t h[8], const unsigned char *p, size_t n);
void xti_sha256_blocks_c(uint32_t h[8], const unsigned char *p, size_t n);

/* Lower-case hex of n bytes, NUL-terminated: 2n + 1 chars. */
void xti_hex(const unsigned char *p, size_t n, char *out);

/* Not for identity: whoever looks up by it compares the full key. */
uint64_t xti_hash64(const void *p, size_t bytes);

#endif
