/* shim.c: for LD_PRELOAD: a system call fails, or does less than was asked. XT_SHIM="CALL HOW AT": the first
 * AT calls that move elements are left alone; HOW: EIO, ENOSPC, END (nothing more is there), SHORT (half of
 * it), SLOW (it takes a millisecond), KILL (SIGKILL comes first). Reads of other than whole blocks, and
 * writes into the first block, are of headers, and left alone. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_int calls;

/* 0: do it. -1: fail with errno set. Else so many bytes. */
static ssize_t fate(const char *call, size_t bytes, off_t at)
{
    char name[32], how[32];
    int first;
    const char *s = getenv("XT_SHIM");
    if (!s || sscanf(s, "%31s %31s %d", name, how, &first) != 3 || strcmp(name, call) ||
        atomic_fetch_add(&calls, 1) < first)
        return 0;
    if (!strcmp(how, "SLOW"))
        return usleep(1000), 0;
    if (!strcmp(how, "KILL"))
        raise(SIGKILL);
    if (!strcmp(how, "SHORT"))
        return bytes >= 8192 ? (ssize_t)(bytes / 2 / 4096 * 4096) : 0;
    if (!strcmp(how, "END"))
        return -2;
    errno = strcmp(how, "ENOSPC") ? EIO : ENOSPC;
    return -1;
}

ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pread");
    ssize_t f = n % 4096 == 0 ? fate("pread", n, at) : 0;
    return f == -2 ? 0 : f == -1 ? -1 : real(fd, buf, f ? (size_t)f : n, at);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pwrite");
    ssize_t f = at >= 4096 ? fate("pwrite", n, at) : 0;
    return f < 0 ? -1 : real(fd, buf, f ? (size_t)f : n, at);
}

int fallocate(int fd, int mode, off_t at, off_t n)
{
    static int (*real)(int, int, off_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fallocate");
    return fate("fallocate", 0, at) < 0 ? -1 : real(fd, mode, at, n);
}

int fdatasync(int fd)
{
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    return fate("fdatasync", 0, 0) < 0 ? -1 : real(fd);
}
