/* list.c: what people ask of the disk cache: which entries, how many, and away with them. Layer 5. */
#include "cache/disk.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* *dir -1 with XT_OK: nothing there, or the cache is off. */
static xt_status scan_all(struct xti_disk *d, int64_t temps_older_than_s, int *dir, struct xti_scan *s,
                          struct xti_err *err)
{
    *s = (struct xti_scan){0};
    *dir = xti_disk_dir(d, false);
    if (*dir < 0)
        return XT_OK;
    xt_status r = xti_scan_dir(*dir, time(NULL), temps_older_than_s, s);
    if (!r)
        return XT_OK;
    close(*dir);
    *dir = -1;
    return xti_fail(err, r, "disk cache %s: %s", d->dir,
                    r == XT_ENOMEM ? "out of memory" : "cannot be listed");
}

/* A terminal may be on the other side. The byte after `what` is the payload's or the checksum's: done with.
 */
static const char *clean_text(struct xti_entry *e)
{
    for (size_t i = 0; i < e->what_bytes; i++)
        if ((unsigned char)e->what[i] < ' ' || e->what[i] == 0x7f)
            e->what[i] = '?';
    e->what[e->what_bytes] = 0;
    return e->what;
}

/* XTI_READ_OK: bytes are the entry of the key that its name says, and e its parts. */
static enum xti_read judge(const struct xti_file *f, const char *file, struct xti_entry *e)
{
    char name[XTI_NAME_SIZE];
    const char *why = xti_entry_decode(f->data, f->bytes, e);
    if (why)
        return strcmp(why, XTI_ENTRY_STALE) ? XTI_READ_DAMAGED : XTI_READ_STALE;
    xti_entry_name(e->key, e->key_bytes, name);
    return strcmp(name, file) ? XTI_READ_STALE : XTI_READ_OK;
}

static xt_status list_one(struct xti_disk *d, int dir, const struct xti_found *found,
                          void (*each)(void *, const char *, int64_t, const char *), void *arg)
{
    struct xti_file f = {0};
    struct xti_entry e;
    const char *why;
    enum xti_read r = xti_file_read(dir, found->name, &f, &why);
    if (!r && !(r = judge(&f, found->name, &e)))
        each(arg, found->name, (int64_t)f.bytes, clean_text(&e));
    if (r >= XTI_READ_DAMAGED)
        atomic_fetch_add(&d->read[r], 1);
    xti_free(f.data);
    return r == XTI_READ_NOMEM ? XT_ENOMEM : XT_OK;
}

xt_status xti_disk_list(struct xti_disk *d, void (*each)(void *, const char *, int64_t, const char *),
                        void *arg, struct xti_err *err)
{
    int dir;
    struct xti_scan s;
    xt_status r = scan_all(d, -1, &dir, &s, err);
    if (dir < 0)
        return r;
    for (size_t i = 0; !r && i < s.n; i++)
        r = list_one(d, dir, &s.v[i], each, arg);
    xti_scan_free(&s);
    close(dir);
    return r ? xti_fail(err, r, "disk cache %s: out of memory", d->dir) : XT_OK;
}

xt_status xti_disk_clear(struct xti_disk *d, int64_t *removed, struct xti_err *err)
{
    int dir;
    struct xti_scan s;
    int64_t count = 0;
    xt_status r = scan_all(d, 0, &dir, &s, err); /* temporary files too: whose writer lives fails to store */
    for (size_t i = 0; dir >= 0 && i < s.n; i++) {
        if (!unlinkat(dir, s.v[i].name, 0))
            count++;
        else if (errno != ENOENT && !r)
            r = xti_fail(err, XT_EIO, "disk cache %s: cannot remove %s: %s", d->dir, s.v[i].name,
                         strerror(errno));
    }
    xti_scan_free(&s);
    if (dir >= 0)
        close(dir);
    if (removed)
        *removed = count;
    return r;
}

void xti_disk_counts(struct xti_disk *d, struct xt_cache_stats *add)
{
    int64_t n[XTI_READS];
    for (int i = 0; i < XTI_READS; i++)
        n[i] = atomic_load(&d->read[i]);
    add->disk_hits += n[XTI_READ_OK];
    add->missed += n[XTI_READ_ABSENT];
    add->refused_damaged += n[XTI_READ_DAMAGED];
    add->refused_foreign += n[XTI_READ_FOREIGN];
    add->refused_stale += n[XTI_READ_STALE];
    add->refused += n[XTI_READ_DAMAGED] + n[XTI_READ_FOREIGN] + n[XTI_READ_STALE];
    add->evicted += atomic_load(&d->evicted);
    add->stored += atomic_load(&d->stored);
    add->store_failed += atomic_load(&d->store_failed);
}

void xti_disk_stats(struct xti_disk *d, struct xt_cache_stats *add)
{
    int dir;
    struct xti_scan s;
    xti_disk_counts(d, add);
    if (scan_all(d, -1, &dir, &s, NULL) || dir < 0)
        return;
    add->entries += s.files;
    add->bytes += s.bytes;
    xti_scan_free(&s);
    close(dir);
}
