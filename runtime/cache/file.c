/* file.c: reads a file that is trusted only after it was looked at, and replaces a file in one step. Never
 * maps a file: a mapping turns a full disk or a file that shrinks into SIGBUS. No fsync: after a power cut
 * entries may be lost or empty, and the checksum refuses those. Layer 5. */
#include "cache/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/os.h"

enum { TOUCH_AFTER_S = 3600 };

static int open_at(int dir, const char *name, int flags)
{
    int fd;
    do
        fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
    while (fd < 0 && errno == EINTR);
    return fd;
}

/* The bytes up to max or the end of the file; -1 on an error. */
static int64_t read_all(int fd, unsigned char *p, size_t max)
{
    size_t n = 0;
    while (n < max) {
        ssize_t got = read(fd, p + n, max - n);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return -1;
        n += got > 0 ? (size_t)got : 0;
    }
    return (int64_t)n;
}

static enum xti_read check_stat(const struct stat *st, const char **why)
{
    *why = !S_ISREG(st->st_mode)                 ? "not a regular file"
           : st->st_uid != geteuid()             ? "another user's file"
           : (st->st_mode & (S_IWGRP | S_IWOTH)) ? "others may write it"
                                                 : NULL;
    if (*why)
        return XTI_READ_FOREIGN;
    if (st->st_size >= XTI_ENTRY_MIN && st->st_size <= XTI_ENTRY_MAX)
        return XTI_READ_OK;
    *why = "size out of bounds";
    return XTI_READ_DAMAGED;
}

static enum xti_read read_open(int fd, struct xti_file *out, const char **why)
{
    struct stat st;
    *why = "fstat failed";
    enum xti_read r = fstat(fd, &st) ? XTI_READ_DAMAGED : check_stat(&st, why);
    if (r)
        return r;
    size_t bytes = (size_t)st.st_size;
    unsigned char *data = xti_alloc(bytes), more; /* a file that grew shows */
    if (!data) {
        *why = "out of memory";
        return XTI_READ_NOMEM;
    }
    if (read_all(fd, data, bytes) != (int64_t)bytes || read_all(fd, &more, sizeof more)) {
        xti_free(data);
        *why = "size changed, or read failed";
        return XTI_READ_DAMAGED;
    }
    *out = (struct xti_file){data, bytes, st.st_mtim};
    return XTI_READ_OK;
}

enum xti_read xti_file_read(int dir, const char *name, struct xti_file *out, const char **why)
{
    int fd = open_at(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        bool odd = errno == ELOOP || errno == ENXIO || errno == ENODEV;
        *why = odd ? "not a regular file" : "no such entry";
        return odd ? XTI_READ_FOREIGN : XTI_READ_ABSENT;
    }
    enum xti_read r = read_open(fd, out, why);
    close(fd);
    return r;
}

void xti_file_touch(int dir, const char *name, struct timespec mtime)
{
    int64_t age = (int64_t)time(NULL) - (int64_t)mtime.tv_sec;
    if (age < 0 || age > TOUCH_AFTER_S) /* below 0: the clock went back */
        utimensat(dir, name, NULL, AT_SYMLINK_NOFOLLOW);
}

static bool write_all(int fd, const unsigned char *p, size_t bytes)
{
    while (bytes) {
        ssize_t put = write(fd, p, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        p += put;
        bytes -= (size_t)put;
    }
    return true;
}

static int make_temp(int dir, char *name, size_t size)
{
    unsigned char r[8];
    char hex[17];
    if (getrandom(r, sizeof r, GRND_NONBLOCK) != (ssize_t)sizeof r)
        return -1;
    xti_hex(r, sizeof r, hex);
    snprintf(name, size, XTI_TEMP_PREFIX "%s", hex);
    return open_at(dir, name, O_WRONLY | O_CREAT | O_EXCL);
}

const char *xti_file_write(int dir, const char *name, const void *data, size_t bytes)
{
    char temp[32];
    if (xti_file_exceeds(bytes))
        return "RLIMIT_FSIZE is smaller";
    int fd = make_temp(dir, temp, sizeof temp);
    if (fd < 0)
        return "no temporary file could be made";
    const char *why = write_all(fd, data, bytes) ? NULL : "write failed";
    if (close(fd) && !why)
        why = "close failed";
    if (!why && renameat(dir, temp, dir, name))
        why = "rename failed";
    if (why)
        unlinkat(dir, temp, 0);
    return why;
}
