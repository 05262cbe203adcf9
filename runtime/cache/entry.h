/* entry.h: the bytes of one disk entry, and its file.
 *
 *     magic "XTKC\r\n\x1a\n", then u64 little-endian: format version, key bytes, what bytes, payload bytes;
 *     then key, what, payload, and the SHA-256 of all before. Nothing may follow.
 *
 * The checksum is against accidents; against people there are the owner and mode checks. Layer 5. */
#ifndef XTI_CACHE_ENTRY_H
#define XTI_CACHE_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum {
    XTI_ENTRY_VERSION = 1,
    XTI_ENTRY_HEADER = 40,
    XTI_ENTRY_MIN = XTI_ENTRY_HEADER + 32,
    XTI_ENTRY_MAX = 64 << 20,
    XTI_ENTRY_WHAT_MAX = 4096, /* a longer `what` is cut */
    XTI_NAME_SIZE = 65,        /* 64 hex digits and NUL */
};

/* Parts point into the bytes that were decoded. */
struct xti_entry {
    const unsigned char *key, *payload;
    char *what; /* not NUL-terminated */
    size_t key_bytes, what_bytes, payload_bytes;
};

void xti_entry_name(const void *key, size_t key_bytes, char name[XTI_NAME_SIZE]);
bool xti_entry_is_name(const char *name); /* 64 lower-case hex digits */

/* xti_alloc'ed bytes of an entry; NULL and *why when it is too large or memory is out. */
void *xti_entry_encode(const struct xti_entry *e, size_t *bytes, const char **why);

#define XTI_ENTRY_STALE "another format version"
/* NULL when buf is one intact entry, else what is wrong with it: XTI_ENTRY_STALE, or damage. */
const char *xti_entry_decode(void *buf, size_t bytes, struct xti_entry *e);

/* ---- file.c. dir is an open, trusted directory. */

enum xti_read {
    XTI_READ_OK,
    XTI_READ_ABSENT,
    XTI_READ_NOMEM,
    XTI_READ_DAMAGED, /* these are refused: bytes that are no entry's */
    XTI_READ_FOREIGN, /* no regular file, another user's, or others may write it */
    XTI_READ_STALE,   /* another format version, or another key's entry */
    XTI_READS
};
struct xti_file {
    unsigned char *data; /* xti_alloc'ed */
    size_t bytes;
    struct timespec mtime;
};
/* Reads a regular file of this user that nobody else may write. *why is set unless OK. */
enum xti_read xti_file_read(int dir, const char *name, struct xti_file *out, const char **why);

/* Readers see the old file or the new one, whole. NULL, or why it was not written. */
const char *xti_file_write(int dir, const char *name, const void *data, size_t bytes);

/* Marks a file as used now, at most once an hour: atime cannot be trusted (relatime, noatime). */
void xti_file_touch(int dir, const char *name, struct timespec mtime);

#define XTI_TEMP_PREFIX ".tmp-"

#endif
