/* disk.c: the disk cache's calls. Every call opens the directory anew and checks it again: a few microseconds
 * beside a compile of 30 ms, and nothing to go stale when the host forks, closes descriptors or somebody
 * deletes or replaces the directory. Layer 5. */
#include "cache/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "cache/place.h"

static void turn_off(struct xti_disk *d, const char *text)
{
    char *mine = xti_strdup(text), *none = NULL;
    if (mine && !atomic_compare_exchange_strong(&d->why, &none, mine))
        xti_free(mine);
}

static xt_status choose_dir(struct xti_disk *d, const char *dir)
{
    struct xti_refusal why;
    d->dir = xti_place_choose(dir, &why);
    if (!d->dir && !why.text[0])
        return XT_ENOMEM;
    if (d->dir) {
        int fd = xti_place_open(d->dir, false, &why);
        if (fd >= 0)
            close(fd);
        if (fd >= 0 || !why.lasting)
            return XT_OK;
    }
    xti_logf(XTI_LOG_CACHE, "no disk cache: %s", why.text);
    turn_off(d, why.text);
    return d->why ? XT_OK : XT_ENOMEM;
}

xt_status xti_disk_open(const char *dir, struct xti_disk **out, struct xti_err *err)
{
    *out = NULL;
    struct xti_disk *d = xti_alloc(sizeof *d);
    if (!d || choose_dir(d, dir)) {
        xti_disk_close(d);
        return xti_fail(err, XT_ENOMEM, "disk cache: out of memory");
    }
    xti_disk_limits(d, (int64_t)256 << 20, 8192);
    *out = d;
    return XT_OK;
}

static void log_counts(struct xti_disk *d)
{
    struct xt_cache_stats s = {0};
    if (!xti_log_on(XTI_LOG_CACHE))
        return;
    xti_disk_counts(d, &s);
    xti_logf(XTI_LOG_CACHE,
             "%lld hits, %lld missed, refused %lld damaged, %lld foreign, %lld stale, %lld stored, %lld not, "
             "%lld evicted",
             (long long)s.disk_hits, (long long)s.missed, (long long)s.refused_damaged,
             (long long)s.refused_foreign, (long long)s.refused_stale, (long long)s.stored,
             (long long)s.store_failed, (long long)s.evicted);
}

void xti_disk_close(struct xti_disk *d)
{
    if (!d)
        return;
    log_counts(d);
    xti_free(d->why);
    xti_free(d->dir);
    xti_free(d);
}

const char *xti_disk_path(const struct xti_disk *d) { return atomic_load(&d->why) ? NULL : d->dir; }

const char *xti_disk_why(const struct xti_disk *d)
{
    const char *why = atomic_load(&d->why);
    return why ? why : "";
}

void xti_disk_limits(struct xti_disk *d, int64_t max_bytes, int64_t max_entries)
{
    d->max_bytes = max_bytes < 1 ? 1 : max_bytes;
    d->max_entries = max_entries < 1 ? 1 : max_entries;
}

int xti_disk_dir(struct xti_disk *d, bool make)
{
    struct xti_refusal why;
    if (atomic_load(&d->why))
        return -1;
    int fd = xti_place_open(d->dir, make, &why);
    if (fd < 0 && why.lasting) {
        xti_logf(XTI_LOG_CACHE, "refused: %s", why.text);
        turn_off(d, why.text);
    }
    return fd;
}

static bool same_bytes(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return a_bytes == b_bytes && (!a_bytes || !memcmp(a, b, a_bytes));
}

/* XTI_READ_OK: f is the entry of this key, and *out owns its payload (f's memory, moved to the front). */
static enum xti_read take_payload(struct xti_file *f, const void *key, size_t key_bytes, struct xti_blob *out,
                                  const char **why)
{
    struct xti_entry e;
    *why = xti_entry_decode(f->data, f->bytes, &e);
    bool stale = *why ? !strcmp(*why, XTI_ENTRY_STALE) : !same_bytes(e.key, e.key_bytes, key, key_bytes);
    if (stale && !*why)
        *why = "another key's entry";
    if (*why) {
        xti_free(f->data);
        return stale ? XTI_READ_STALE : XTI_READ_DAMAGED;
    }
    memmove(f->data, e.payload, e.payload_bytes);
    *out = (struct xti_blob){f->data, e.payload_bytes};
    return XTI_READ_OK;
}

static enum xti_read get_at(int dir, const char *name, const void *key, size_t key_bytes,
                            struct xti_blob *out, const char **why)
{
    struct xti_file f;
    enum xti_read r = xti_file_read(dir, name, &f, why);
    if (!r && !(r = take_payload(&f, key, key_bytes, out, why)))
        xti_file_touch(dir, name, f.mtime);
    return r;
}

bool xti_disk_get(struct xti_disk *d, const void *key, size_t key_bytes, struct xti_blob *out)
{
    *out = (struct xti_blob){0};
    char name[XTI_NAME_SIZE];
    const char *why = "no directory";
    int dir = xti_disk_dir(d, false);
    enum xti_read r = XTI_READ_ABSENT;
    xti_entry_name(key, key_bytes, name);
    if (dir >= 0) {
        r = get_at(dir, name, key, key_bytes, out, &why);
        close(dir);
    }
    atomic_fetch_add(&d->read[r], 1);
    if (r == XTI_READ_OK)
        xti_logf(XTI_LOG_CACHE, "hit on disk %s", name);
    else
        xti_logf(XTI_LOG_CACHE, "%s %s: %s", r >= XTI_READ_DAMAGED ? "refused" : "miss", name, why);
    return r == XTI_READ_OK;
}

static size_t cut_what(const char *what) { return what ? strnlen(what, XTI_ENTRY_WHAT_MAX) : 0; }

static const char *put_at(struct xti_disk *d, int dir, const char *name, const struct xti_entry *e)
{
    size_t bytes = 0;
    const char *why = NULL;
    void *data = xti_entry_encode(e, &bytes, &why);
    if (data && (uint64_t)bytes > (uint64_t)d->max_bytes)
        why = "larger than the whole cache may be";
    if (!why)
        why = xti_file_write(dir, name, data, bytes);
    xti_free(data);
    if (!why)
        xti_disk_trim(d, dir, bytes);
    return why;
}

void xti_disk_put(struct xti_disk *d, const void *key, size_t key_bytes, const char *what,
                  const void *payload, size_t payload_bytes)
{
    struct xti_entry e = {.key = key,
                          .payload = payload,
                          .what = (char *)what,
                          .key_bytes = key_bytes,
                          .what_bytes = cut_what(what),
                          .payload_bytes = payload_bytes};
    char name[XTI_NAME_SIZE];
    if (!xti_disk_path(d))
        return;
    int dir = xti_disk_dir(d, true);
    const char *why = "the directory cannot be used";
    xti_entry_name(key, key_bytes, name);
    if (dir >= 0) {
        why = put_at(d, dir, name, &e);
        close(dir);
    }
    atomic_fetch_add(why ? &d->store_failed : &d->stored, 1);
    xti_logf(XTI_LOG_CACHE, "%s %s%s%s", why ? "not stored" : "stored", name, why ? ": " : "",
             why ? why : "");
}

void xti_disk_drop(struct xti_disk *d, const void *key, size_t key_bytes)
{
    char name[XTI_NAME_SIZE];
    int dir = xti_disk_dir(d, false);
    if (dir < 0)
        return;
    xti_entry_name(key, key_bytes, name);
    if (!unlinkat(dir, name, 0))
        xti_logf(XTI_LOG_CACHE, "dropped %s", name);
    close(dir);
}
