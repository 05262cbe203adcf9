/* pack.h: many entries in one file, made ahead of time.
 *
 *     magic "XTPACK\r\n", then u64 little-endian: format version, number of entries n; n rows of an entry's
 * name (the SHA-256 of its key, ascending), u64 offset, u64 bytes; the SHA-256 of all before; then the
 * entries (entry.h), each with its own checksum.
 *
 * Only the rows are kept in memory; an entry is read, and verified, when it is asked for. Layer 5. */
#ifndef XTI_CACHE_PACK_H
#define XTI_CACHE_PACK_H

#include "cache/cache.h"

struct xti_pack;

/* XT_EIO with what is wrong with the file. */
xt_status xti_pack_open(const char *path, struct xti_pack **out, struct xti_err *err);
void xti_pack_close(struct xti_pack *p);

/* True and *out filled when the pack has a verified entry of this key. p may be NULL. Any thread. */
bool xti_pack_get(const struct xti_pack *p, const void *key, size_t key_bytes, struct xti_blob *out);
/* Is there an entry of this key, damaged or not? Reads no file. */
bool xti_pack_has(const struct xti_pack *p, const void *key, size_t key_bytes);

/* What goes into a pack; keys that are there already are left out. Zero-initialise. */
struct xti_pack_entry;
struct xti_pack_maker {
    struct xti_pack_entry *entry;
    size_t n, room;
};
xt_status xti_pack_add(struct xti_pack_maker *m, const void *key, size_t key_bytes, const char *what,
                       const void *payload, size_t payload_bytes, struct xti_err *err);
/* Through a temporary file beside it, and rename. Sorts m. */
xt_status xti_pack_write(struct xti_pack_maker *m, const char *path, struct xti_err *err);
void xti_pack_maker_free(struct xti_pack_maker *m);

#endif
