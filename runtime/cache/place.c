/* place.c: finds the cache directory, makes it and checks who may write to it. Looks at nothing but the
 * environment and the file system: no getpwuid, which would load name services into the host. Layer 5. */
#include "cache/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/mem.h"

/* Changes with the entry format, so that two versions of xt can share a directory. */
#define GENERATION "k1"

__attribute__((format(printf, 3, 4))) static int refuse(struct xti_refusal *why, bool lasting,
                                                        const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why->text, sizeof why->text, fmt, ap);
    va_end(ap);
    why->lasting = lasting;
    return -1;
}

static char *join(const char *base, const char *tail)
{
    size_t n = strlen(base);
    while (n > 1 && base[n - 1] == '/') /* with a trailing slash a symbolic link would be followed */
        n--;
    char *s = xti_alloc(n + strlen(tail) + 1);
    if (s) {
        memcpy(s, base, n);
        strcpy(s + n, tail);
    }
    return s;
}

static bool is_absolute(const char *s) { return s && s[0] == '/'; }

char *xti_place_choose(const char *dir, struct xti_refusal *why)
{
    *why = (struct xti_refusal){0};
    const char *name = dir ? "the directory given" : "XT_CACHE_DIR";
    if (getauxval(AT_SECURE)) {
        refuse(why, true, "the process runs with raised privileges");
        return NULL;
    }
    if (!dir)
        dir = xti_env(XTI_ENV_CACHE_DIR);
    if (dir && !*dir) {
        refuse(why, true, "%s is empty", name);
        return NULL;
    }
    if (dir && !is_absolute(dir)) {
        refuse(why, true, "%s is not an absolute path: %.256s", name, dir);
        return NULL;
    }
    if (dir)
        return join(dir, "");
    const char *xdg = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    if (is_absolute(xdg)) /* the XDG specification: ignore a relative one */
        return join(xdg, "/xt");
    if (is_absolute(home))
        return join(home, "/.cache/xt");
    refuse(why, true, "none of XT_CACHE_DIR, XDG_CACHE_HOME and HOME is an absolute path");
    return NULL;
}

/* Errors that say something about the directory, not about this moment. */
static bool is_lasting(int e)
{
    return e == EACCES || e == EPERM || e == EROFS || e == ENOTDIR || e == ELOOP || e == ENAMETOOLONG;
}

static int fail_errno(struct xti_refusal *why, const char *dir, const char *doing)
{
    int e = errno;
    char text[64];
    const char *s =
        e == ENOTDIR || e == ELOOP ? "a symbolic link, or not a directory" : strerror_r(e, text, sizeof text);
    refuse(why, is_lasting(e), "%.256s: %s%s", dir, doing, s);
    why->error = e;
    return -1;
}

static int open_trusted(int at, const char *name, const char *dir, struct xti_refusal *why)
{
    struct stat st;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *why = (struct xti_refusal){0};
    if (fd < 0)
        return fail_errno(why, dir, "");
    if (fstat(fd, &st))
        fail_errno(why, dir, "");
    else if (st.st_uid != geteuid())
        refuse(why, true, "%.256s: belongs to user %ld, not to %ld", dir, (long)st.st_uid, (long)geteuid());
    else if (st.st_mode & (S_IWGRP | S_IWOTH))
        refuse(why, true, "%.256s: others may write to it (mode %04o)", dir, (unsigned)st.st_mode & 07777);
    else
        return fd;
    close(fd);
    return -1;
}

/* Like mkdir -p. A parent that cannot be made shows in the last mkdir. */
static bool make_path(int at, const char *name)
{
    char *s = join(name, "");
    if (!s) {
        errno = ENOMEM;
        return false;
    }
    for (char *p = strchr(s + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        mkdirat(at, s, 0700);
        *p = '/';
    }
    bool ok = !mkdirat(at, s, 0700) || errno == EEXIST;
    int e = errno;
    xti_free(s);
    errno = e;
    return ok;
}

static int open_or_make(int at, const char *name, const char *dir, bool make, struct xti_refusal *why)
{
    int fd = open_trusted(at, name, dir, why);
    if (fd >= 0 || why->error != ENOENT || !make)
        return fd;
    if (make_path(at, name))
        return open_trusted(at, name, dir, why);
    fail_errno(why, dir, "cannot be made: ");
    why->lasting |= why->error == ENOENT; /* a parent that no mkdir could make */
    return -1;
}

int xti_place_open(const char *dir, bool make, struct xti_refusal *why)
{
    int top = open_or_make(AT_FDCWD, dir, dir, make, why);
    if (top < 0)
        return -1;
    int fd = open_or_make(top, GENERATION, dir, make, why);
    close(top);
    return fd;
}
