/* cache.h: what was compiled is kept: in memory by exact key with one build however many ask, and on disk,
 * one file an entry, verified before anyone sees a byte. A cache that cannot be read or written is slower,
 * not wrong. Keys and payloads are byte strings: this layer knows nothing of maps or CUDA. Layer 5. */
#ifndef XTI_CACHE_CACHE_H
#define XTI_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* ---- disk.c. One file an entry (entry.h) in DIR/k1/, named by the SHA-256 of its key. Written to a unique
 * temporary file and renamed; read whole, never mapped. Any thread; no lock is held between calls and no file
 * stays open, so fork, closefrom and a deleted directory do no harm. */

struct xti_disk;
struct xti_blob {
    void *data; /* xti_alloc'ed */
    size_t bytes;
};

/* dir NULL: XT_CACHE_DIR, else XDG_CACHE_HOME/xt, else HOME/.cache/xt; "": off. Absolute paths only. A
 * directory that is refused (owner, mode, symlink, cannot be made) gives a disk that never hits; xti_disk_why
 * says why. Nothing is made before the first put or lock: a refusal that shows only then turns the disk off
 * then. Fails with XT_ENOMEM alone. */
xt_status xti_disk_open(const char *dir, struct xti_disk **out, struct xti_err *err);
void xti_disk_close(struct xti_disk *d);
const char *xti_disk_path(const struct xti_disk *d); /* NULL: off */
const char *xti_disk_why(const struct xti_disk *d);  /* "" when on; lives as long as d */

/* 256 MiB and 8192 entries unless set here, before other threads use d. Values below 1 read as 1. */
void xti_disk_limits(struct xti_disk *d, int64_t max_bytes, int64_t max_entries);

/* True and *out filled on a verified hit. */
bool xti_disk_get(struct xti_disk *d, const void *key, size_t key_bytes, struct xti_blob *out);
/* Best effort. `what`: a line for people (the problem line or signature), stored in the entry. */
void xti_disk_put(struct xti_disk *d, const void *key, size_t key_bytes, const char *what,
                  const void *payload, size_t payload_bytes);
/* Removes an entry that its user found bad after all. */
void xti_disk_drop(struct xti_disk *d, const void *key, size_t key_bytes);
/* Holds the key's inter-process lock until unlock, or gives up after 10 s: an optimisation, never needed.
 * Look (xti_disk_get) again once it is held: who held it before may have stored the entry. The token is to be
 * handed to xti_disk_unlock; -1 means that no lock is held, and unlock accepts it. */
int xti_disk_lock(struct xti_disk *d, const void *key, size_t key_bytes);
void xti_disk_unlock(struct xti_disk *d, int token);

/* each(arg, file, bytes, what) for every valid entry, least recently used first; what has no control
 * characters. The others are counted as refused. */
xt_status xti_disk_list(struct xti_disk *d, void (*each)(void *, const char *, int64_t, const char *),
                        void *arg, struct xti_err *err);
xt_status xti_disk_clear(struct xti_disk *d, int64_t *removed, struct xti_err *err);
/* Adds this disk's counts, and entries and bytes as they are now. */
void xti_disk_stats(struct xti_disk *d, struct xt_cache_stats *add);

/* ---- memo.c: key -> object, one builder a key, least recently used objects dropped past a cap. */

struct xti_memo;
struct xti_memo_ops {
    void *(*ref)(void *object); /* called under the memo's lock: cheap, and not into the memo */
    void (*unref)(void *object);
    const void *(*key)(const void *object); /* where an object keeps its key; NULL: the memo keeps a copy */
};
xt_status xti_memo_new(const struct xti_memo_ops *ops, size_t max_entries, struct xti_memo **out,
                       struct xti_err *err);
void xti_memo_free(struct xti_memo *m); /* unrefs everything; no other thread may be inside */

/* *out = a reference to the object of this key: the one present, or the one that build makes. While one
 * thread builds, others that ask for the key wait for its result; a failed build is not remembered, and its
 * error goes to everybody who waited. *hit: not built by this call. build returns a reference that the memo
 * takes over; it runs without a lock held and may ask for other keys. A forked child builds anew what others
 * were building. build NULL: what is not there is not waited for; *out is NULL then, and *hit says whether it
 * is being built. *out NULL on failure; err and hit may be NULL. */
xt_status xti_memo_get(struct xti_memo *m, const void *key, size_t key_bytes,
                       xt_status (*build)(void *arg, void **object, struct xti_err *err), void *arg,
                       void **out, bool *hit, struct xti_err *err);

#endif
