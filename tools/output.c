/* output.c: temporary files, their sweeping, modes and owners. A temporary file is locked by its writer as
 * long as that one lives: one that can be locked was left by a run that was killed. */
#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guard.h"
#include "say.h"

#define TEMP "%.*s.xt-%016llx.tmp"
enum { TEMP_NAME = 24 /* bytes: .xt-0123456789abcdef.tmp */, MANY_FILES = 100000 /* not all looked at */ };
enum { MOST_LINKS = 40 /* as Linux follows */ };

/* Bytes of path up to and with its last slash. */
static int directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

/* Of a run that is gone: it holds no lock. */
static void sweep_one(int dir, const char *name)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 &&
        !flock(fd, LOCK_EX | LOCK_NB))
        unlinkat(dir, name, 0);
    close(fd);
}

static bool is_temp(const char *name)
{
    return strlen(name) == TEMP_NAME && !strncmp(name, ".xt-", 4) && !strcmp(name + 20, ".tmp") &&
           strspn(name + 4, "0123456789abcdef") == 16;
}

static void sweep(const char *target)
{
    int n = directory(target);
    char *path = n ? strndup(target, (size_t)n) : strdup(".");
    DIR *d = path ? opendir(path) : NULL;
    free(path);
    if (!d)
        return;
    const struct dirent *e;
    for (int i = 0; i < MANY_FILES && (e = readdir(d)); i++)
        if (is_temp(e->d_name))
            sweep_one(dirfd(d), e->d_name);
    closedir(d);
}

static const char *name_of(const struct output *o)
{
    return strcmp(o->path, "-") ? o->path : "standard output";
}

/* Another run's sweep may come between open and flock: then the name is gone, and another is taken. */
static int make_temp(struct output *o)
{
    enum { TRIES = 8 };
    size_t size = (size_t)directory(o->target) + TEMP_NAME + 1;
    if (!(o->temp = malloc(size)))
        return fail("%s: out of memory", o->path);
    for (int i = 0; i < TRIES; i++) {
        struct stat st;
        uint64_t r;
        if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
            break;
        snprintf(o->temp, size, TEMP, directory(o->target), o->target, (unsigned long long)r);
        guard_file(o->temp);
        o->fd = open(o->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (o->fd < 0 && errno == EEXIST)
            continue;
        if (o->fd < 0)
            break;
        bool locked =
            !flock(o->fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK; /* no locks here: none, then */
        if (locked && !fstat(o->fd, &st) && st.st_nlink)
            return 0;
        close(o->fd);
    }
    guard_file(NULL);
    int status = errno == ENOENT ? fail("%s: there is no such directory", o->path)
                                 : fail("%s: a temporary file beside it: %s", o->path, strerror(errno));
    free(o->temp);
    o->temp = NULL;
    return status;
}

/* What a link at path names, whether or not it is there. */
static char *link_of(const char *path)
{
    char to[PATH_MAX], *s;
    ssize_t n = readlink(path, to, sizeof to);
    int dir = n > 0 && *to != '/' ? directory(path) : 0;
    if (n <= 0 || n == sizeof to || !(s = malloc((size_t)dir + (size_t)n + 1)))
        return NULL;
    memcpy(s, path, (size_t)dir);
    memcpy(s + dir, to, (size_t)n);
    s[(size_t)dir + (size_t)n] = 0;
    return s;
}

static char *target_of(const char *path)
{
    char *at = strdup(path), *next;
    for (int i = 0; at && (next = link_of(at)); i++) {
        free(at);
        at = next;
        if (i == MOST_LINKS) {
            free(at);
            errno = ELOOP;
            return NULL;
        }
    }
    return at;
}

/* What there is already and is written to as it is. */
static int open_stream(struct output *o, bool force)
{
    o->fd = strcmp(o->path, "-") ? open(o->path, O_WRONLY | O_CLOEXEC) : fcntl(1, F_DUPFD_CLOEXEC, 3);
    if (o->fd < 0)
        return fail("%s: %s", name_of(o), strerror(errno));
    if (force || !isatty(o->fd))
        return 0;
    close(o->fd);
    return fail("%s is a terminal, and this is no text: -o FILE, a pipe, or -f all the same", name_of(o));
}

int output_open(struct output *o, const char *path, bool force)
{
    struct stat st;
    *o = (struct output){.path = path, .fd = -1};
    bool there = !strcmp(path, "-") || !stat(path, &st);
    if (there && strcmp(path, "-") && S_ISDIR(st.st_mode))
        return fail("%s: is a directory", path);
    if (there && (!strcmp(path, "-") || !S_ISREG(st.st_mode)))
        return open_stream(o, force);
    if (!(o->target = target_of(path)))
        return fail("%s: %s", path, strerror(errno));
    sweep(o->target);
    int status = make_temp(o);
    if (status)
        output_drop(o);
    return status;
}

int output_write(struct output *o, const void *data, size_t bytes)
{
    for (const char *p = data; bytes;) {
        ssize_t n = write(o->fd, p, bytes);
        if (n < 0 && errno != EINTR)
            return fail("%s: cannot be written: %s", name_of(o), strerror(errno));
        p += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* A group that cannot be kept must not read what the old one could: then it may what all may. */
static int keep_mode(const struct output *o)
{
    struct stat st;
    if (stat(o->target, &st)) {
        mode_t mask = umask(077);
        umask(mask);
        return fchmod(o->fd, 0666 & ~mask);
    }
    mode_t mode = st.st_mode & 0777;
    if (fchown(o->fd, st.st_uid, st.st_gid) && fchown(o->fd, (uid_t)-1, st.st_gid))
        mode = (mode & ~(mode_t)070) | (mode & (mode << 3) & 070);
    return fchmod(o->fd, mode);
}

/* Errors of a file system that writes later; the lock stays. */
static int flush(const struct output *o)
{
    int fd = dup(o->fd);
    return fd < 0 || close(fd);
}

int output_close(struct output *o)
{
    bool bad = flush(o) || (o->temp && (keep_mode(o) || rename(o->temp, o->target)));
    if (bad)
        fail("%s: cannot be written: %s", name_of(o), strerror(errno));
    else if (o->temp)
        *o->temp = 0; /* it has its place */
    output_drop(o);
    return bad ? EXIT_BAD_INPUT : 0;
}

void output_drop(struct output *o)
{
    if (o->temp && *o->temp)
        unlink(o->temp);
    guard_file(NULL);
    if (o->path && o->fd >= 0)
        close(o->fd);
    free(o->temp);
    free(o->target);
    *o = (struct output){.fd = -1};
}

int write_file(const char *path, const void *data, size_t bytes)
{
    struct output o;
    int status = output_open(&o, path, true);
    if (!status)
        status = output_write(&o, data, bytes);
    if (!status)
        return output_close(&o);
    output_drop(&o);
    return status;
}
