/* scan.c: lists the cache directory, least recently used first. Layer 5. */
#include "cache/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static int compare_age(const void *a, const void *b)
{
    const struct xti_found *x = a, *y = b;
    const struct timespec *s = &x->used, *t = &y->used;
    if (s->tv_sec != t->tv_sec)
        return s->tv_sec < t->tv_sec ? -1 : 1;
    if (s->tv_nsec != t->tv_nsec)
        return s->tv_nsec < t->tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* When an entry was used that is marked by a clock that went ahead is not known: it would stay for ever. */
static struct timespec used_of(const struct stat *st, int64_t now)
{
    enum { AHEAD_S = 3600 };
    return (int64_t)st->st_mtim.tv_sec - now > AHEAD_S ? (struct timespec){.tv_sec = INT64_MIN} : st->st_mtim;
}

static xt_status add_found(struct xti_scan *s, const char *name, const struct stat *st, int64_t now)
{
    struct xti_found *v = xti_grown(s->v, sizeof *v, (int64_t)s->n, &s->cap);
    if (!v)
        return XT_ENOMEM;
    s->v = v;
    struct xti_found *f = &s->v[s->n++];
    memcpy(f->name, name, XTI_NAME_SIZE);
    f->is_file = S_ISREG(st->st_mode);
    f->st = *st;
    f->used = used_of(st, now);
    s->bytes += f->is_file ? st->st_size : 0;
    s->files += f->is_file;
    return XT_OK;
}

static bool is_temp(const char *name) { return !strncmp(name, XTI_TEMP_PREFIX, strlen(XTI_TEMP_PREFIX)); }

static xt_status look_at(int dir, const char *name, int64_t now, int64_t temps_older_than_s,
                         struct xti_scan *s)
{
    struct stat st;
    bool temp = is_temp(name) && temps_older_than_s >= 0;
    if ((!temp && !xti_entry_is_name(name)) || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
        return XT_OK;
    if (!temp)
        return add_found(s, name, &st, now);
    int64_t age = now - (int64_t)st.st_mtim.tv_sec;
    if (age >= temps_older_than_s || age < -temps_older_than_s) /* the clock was set back since */
        unlinkat(dir, name, 0);
    return XT_OK;
}

xt_status xti_scan_dir(int dir, int64_t now, int64_t temps_older_than_s, struct xti_scan *out)
{
    *out = (struct xti_scan){0};
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* a place of its own in the directory */
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        if (fd >= 0)
            close(fd);
        return XT_EIO;
    }
    xt_status s = XT_OK;
    for (struct dirent *e; !s && (e = readdir(list));)
        s = look_at(dir, e->d_name, now, temps_older_than_s, out);
    closedir(list);
    if (s)
        xti_scan_free(out);
    else if (out->n)
        qsort(out->v, out->n, sizeof *out->v, compare_age);
    return s;
}

void xti_scan_free(struct xti_scan *s)
{
    xti_free(s->v);
    *s = (struct xti_scan){0};
}
