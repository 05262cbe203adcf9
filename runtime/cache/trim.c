/* trim.c: keeps the cache directory bounded. A process looks at the whole directory at its first put and then
 * each time it has stored 1/128 of a limit, so that many writers together overshoot little. Layer 5. */
#include "cache/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"

enum { LOOK_EACH = 128, TEMP_AGE_S = 3600 };

static bool is_due(struct xti_disk *d, size_t bytes)
{
    int64_t b = atomic_fetch_add(&d->new_bytes, (long long)bytes) + (int64_t)bytes;
    int64_t n = atomic_fetch_add(&d->new_entries, 1) + 1;
    if (atomic_exchange(&d->looked, true) && b * LOOK_EACH < d->max_bytes && n * LOOK_EACH < d->max_entries)
        return false;
    atomic_store(&d->new_bytes, 0);
    atomic_store(&d->new_entries, 0);
    return true;
}

/* An entry that somebody replaced or used since the scan stays. */
static bool remove_unchanged(int dir, const struct xti_found *f)
{
    struct stat now;
    if (fstatat(dir, f->name, &now, AT_SYMLINK_NOFOLLOW))
        return true;
    bool same = now.st_ino == f->st.st_ino && now.st_size == f->st.st_size &&
                now.st_mtim.tv_sec == f->st.st_mtim.tv_sec && now.st_mtim.tv_nsec == f->st.st_mtim.tv_nsec;
    return same && !unlinkat(dir, f->name, 0);
}

static void remove_oldest(struct xti_disk *d, int dir, const struct xti_scan *s)
{
    int64_t bytes = s->bytes, files = s->files, removed = 0;
    if (bytes <= d->max_bytes && files <= d->max_entries)
        return;
    int64_t low_bytes = d->max_bytes / 5 * 4, low_files = d->max_entries / 5 * 4;
    for (size_t i = 0; i + 1 < s->n && (bytes > low_bytes || files > low_files); i++) {
        const struct xti_found *f = &s->v[i];
        if (!f->is_file || !remove_unchanged(dir, f))
            continue;
        bytes -= f->st.st_size;
        files--;
        removed++;
    }
    atomic_fetch_add(&d->evicted, (long long)removed);
    xti_logf(XTI_LOG_CACHE, "evicted %lld entries: %lld of %lld bytes left", (long long)removed,
             (long long)bytes, (long long)s->bytes);
}

/* A file server's clock may be hours away from this host's: it is asked for its time by a stamp on the lock.
 */
static int64_t now_of_files(int token)
{
    struct stat st;
    return token >= 0 && !futimens(token, NULL) && !fstat(token, &st) ? (int64_t)st.st_mtim.tv_sec
                                                                      : (int64_t)time(NULL);
}

void xti_disk_trim(struct xti_disk *d, int dir, size_t bytes)
{
    if (!is_due(d, bytes))
        return;
    int token = xti_lock_take(dir, XTI_LOCK_TRIM, XTI_LOCK_AT_ONCE);
    if (token == XTI_LOCK_BUSY) /* somebody is at it; without locks two may: both remove the same old ones */
        return;
    struct xti_scan s;
    if (!xti_scan_dir(dir, now_of_files(token), TEMP_AGE_S, &s)) {
        remove_oldest(d, dir, &s);
        xti_scan_free(&s);
    }
    xti_lock_drop(token);
}
