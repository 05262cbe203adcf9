/* shim.c: for LD_PRELOAD: a system call fails, or does less than was asked. XT_SHIM="CALL HOW AT ..": the
 * first AT calls that move elements are left alone; HOW: EIO, ENOSPC, ENOSYS, END (nothing more is there),
 * SHORT (half of it), ONE (a byte of it), SLOW (it takes a millisecond), WAIT (for a file named go), KILL
 * (SIGKILL comes first). XT_SHIM_AHEAD=SECONDS: the clock that stamps files is so far ahead of the host's.
 * Reads of other than whole blocks, and writes into the first block, are of headers, and left alone, but for
 * those of a journal's marks: CALL mark. CALL fsync: of a folder. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { MOST = 4, JOURNAL_HEAD = 928 };
static atomic_int calls[MOST];

/* 0: do it. -1: fail with errno set. Else so many bytes. */
static ssize_t suffer(const char *how, size_t bytes)
{
    if (!strcmp(how, "SLOW"))
        return usleep(1000), 0;
    while (!strcmp(how, "WAIT") && access("go", F_OK))
        usleep(1000);
    if (!strcmp(how, "WAIT"))
        return 0;
    if (!strcmp(how, "KILL"))
        raise(SIGKILL);
    if (!strcmp(how, "SHORT"))
        return bytes >= 8192 ? (ssize_t)(bytes / 2 / 4096 * 4096) : 0;
    if (!strcmp(how, "ONE"))
        return 1;
    if (!strcmp(how, "END"))
        return -2;
    errno = !strcmp(how, "ENOSPC") ? ENOSPC : !strcmp(how, "ENOSYS") ? ENOSYS : EIO;
    return -1;
}

static ssize_t fate(const char *call, size_t bytes)
{
    char name[32], how[32];
    int first, n;
    const char *s = getenv("XT_SHIM");
    for (int i = 0; s && i < MOST && sscanf(s, "%31s %31s %d%n", name, how, &first, &n) == 3; i++, s += n)
        if (!strcmp(name, call) && atomic_fetch_add(&calls[i], 1) >= first)
            return suffer(how, bytes);
    return 0;
}

ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pread");
    ssize_t f = n % 4096 == 0 ? fate("pread", n) : 0;
    return f == -2 ? 0 : f == -1 ? -1 : real(fd, buf, f ? (size_t)f : n, at);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pwrite");
    ssize_t f = at >= 4096 ? fate("pwrite", n) : at >= JOURNAL_HEAD ? fate("mark", n) : 0;
    return f < 0 ? -1 : real(fd, buf, f ? (size_t)f : n, at);
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
    static int (*real)(int, int, off_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fallocate");
    return fate("fallocate", 0) < 0 ? -1 : real(fd, mode, at, n);
}

int fdatasync(int fd)
{
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    return fate("fdatasync", 0) < 0 ? -1 : real(fd);
}

/* Of folders. */
int fsync(int fd)
{
    static int (*real)(int);
    struct stat st;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    return !fstat(fd, &st) && S_ISDIR(st.st_mode) && fate("fsync", 0) < 0 ? -1 : real(fd);
}

int flock(int fd, int how)
{
    static int (*real)(int, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "flock");
    return fate("flock", 0) < 0 ? -1 : real(fd, how);
}

/* Of data and holes. */
off_t lseek(int fd, off_t at, int whence)
{
    static off_t (*real)(int, off_t, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "lseek");
    return (whence == SEEK_DATA || whence == SEEK_HOLE) && fate("lseek", 0) < 0 ? -1 : real(fd, at, whence);
}

static int stamped(int failed, struct stat *st)
{
    const char *ahead = getenv("XT_SHIM_AHEAD");
    if (!failed && ahead)
        st->st_ctim.tv_sec += atol(ahead);
    return failed;
}

int fstat(int fd, struct stat *st)
{
    static int (*real)(int, struct stat *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fstat");
    return stamped(real(fd, st), st);
}

int stat(const char *path, struct stat *st)
{
    static int (*real)(const char *, struct stat *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "stat");
    return stamped(real(path, st), st);
}
