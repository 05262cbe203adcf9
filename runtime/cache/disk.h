/* disk.h: what the files of the disk cache share. Layer 5. */
#ifndef XTI_CACHE_DISK_H
#define XTI_CACHE_DISK_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "cache/cache.h"
#include "cache/entry.h"

struct xti_disk {
    char *dir;           /* NULL: off since open */
    _Atomic(char *) why; /* set at most once; NULL: on */
    int64_t max_bytes, max_entries;
    atomic_llong stored, store_failed, evicted, read[XTI_READS]; /* read: how often it ended so */
    atomic_llong new_bytes,
        new_entries; /* stored by this process since it last looked at the whole directory */
    atomic_bool looked;
};

/* Adds what this process has counted, without a look at the directory. */
void xti_disk_counts(struct xti_disk *d, struct xt_cache_stats *add);

/* The trusted directory, for the caller to close; -1: refused, absent or off. */
int xti_disk_dir(struct xti_disk *d, bool make);

/* ---- lock.c: one byte of the file `lock`, held through a descriptor. XTI_LOCK_TRIM is the evictor's byte.
 */

enum { XTI_LOCK_TRIM = 0, XTI_LOCK_AT_ONCE = 0, XTI_LOCK_BUSY = -1, XTI_LOCK_NONE = -2 };
int xti_lock_take(int dir, int64_t byte, int64_t limit_ns); /* a token, or why not */
void xti_lock_drop(int token);                              /* accepts the negative ones */

/* ---- scan.c: everything in the directory that has an entry's name. */

struct xti_found {
    char name[XTI_NAME_SIZE];
    bool is_file;
    struct stat st;
    struct timespec used; /* long ago when it lies more than an hour ahead of now */
};
struct xti_scan {
    struct xti_found *v; /* least recently used first */
    size_t n;
    int64_t cap, bytes, files;
};
/* XT_EIO or XT_ENOMEM. now: in seconds of the clock that stamps files. temps_older_than_s >= 0: unlinks such
 * temporary files on the way. */
xt_status xti_scan_dir(int dir, int64_t now, int64_t temps_older_than_s, struct xti_scan *out);
void xti_scan_free(struct xti_scan *s);

/* ---- trim.c: keeps the directory within d's limits. Call after a put of `bytes`. */
void xti_disk_trim(struct xti_disk *d, int dir, size_t bytes);

#endif
