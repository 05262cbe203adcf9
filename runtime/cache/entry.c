/* entry.c: encodes and decodes disk entries. decode accepts any bytes. Layer 5. */
#include "cache/entry.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"

static const unsigned char magic[8] = {'X', 'T', 'K', 'C', '\r', '\n', 0x1a, '\n'};

void xti_entry_name(const void *key, size_t key_bytes, char name[XTI_NAME_SIZE])
{
    unsigned char h[XTI_SHA256_BYTES];
    xti_sha256_of(key, key_bytes, h);
    xti_hex(h, sizeof h, name);
}

bool xti_entry_is_name(const char *name)
{
    return strspn(name, "0123456789abcdef") == XTI_NAME_SIZE - 1 && !name[XTI_NAME_SIZE - 1];
}

static void store_u64(unsigned char *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t load_u64(const unsigned char *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static unsigned char *append(unsigned char *p, const void *part, size_t bytes)
{
    if (bytes)
        memcpy(p, part, bytes);
    return p + bytes;
}

void *xti_entry_encode(const struct xti_entry *e, size_t *bytes, const char **why)
{
    size_t room = XTI_ENTRY_MAX - XTI_ENTRY_MIN;
    if (e->key_bytes > room || e->what_bytes > room - e->key_bytes ||
        e->payload_bytes > room - e->key_bytes - e->what_bytes) {
        *why = "larger than an entry may be";
        return NULL;
    }
    size_t body = XTI_ENTRY_HEADER + e->key_bytes + e->what_bytes + e->payload_bytes;
    unsigned char *buf = xti_alloc(body + XTI_SHA256_BYTES), *p = buf;
    if (!buf) {
        *why = "out of memory";
        return NULL;
    }
    p = append(p, magic, sizeof magic);
    const uint64_t field[4] = {XTI_ENTRY_VERSION, e->key_bytes, e->what_bytes, e->payload_bytes};
    for (int i = 0; i < 4; i++, p += 8)
        store_u64(p, field[i]);
    p = append(p, e->key, e->key_bytes);
    p = append(p, e->what, e->what_bytes);
    p = append(p, e->payload, e->payload_bytes);
    xti_sha256_of(buf, body, p);
    *bytes = body + XTI_SHA256_BYTES;
    return buf;
}

const char *xti_entry_decode(void *buf, size_t bytes, struct xti_entry *e)
{
    unsigned char *p = buf, sum[XTI_SHA256_BYTES];
    if (bytes < XTI_ENTRY_MIN)
        return "shorter than an entry";
    if (memcmp(p, magic, sizeof magic))
        return "no entry (magic)";
    if (load_u64(p + 8) != XTI_ENTRY_VERSION)
        return XTI_ENTRY_STALE;
    uint64_t room = bytes - XTI_ENTRY_MIN;
    uint64_t key = load_u64(p + 16), what = load_u64(p + 24), payload = load_u64(p + 32);
    if (key > room || what > room - key || payload != room - key - what)
        return "lengths do not add up to the file's size";
    xti_sha256_of(p, bytes - sizeof sum, sum);
    if (memcmp(sum, p + bytes - sizeof sum, sizeof sum))
        return "checksum differs";
    p += XTI_ENTRY_HEADER;
    *e = (struct xti_entry){.key = p,
                            .what = (char *)p + key,
                            .payload = p + key + what,
                            .key_bytes = key,
                            .what_bytes = what,
                            .payload_bytes = payload};
    return NULL;
}
