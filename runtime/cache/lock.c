/* lock.c: locks among processes and threads, as byte ranges of one file. OFD locks end with their process and
 * belong to the descriptor, so that two threads exclude each other too. Polled, never waited for: a holder
 * may be stopped, and on network file systems a blocking lock may hang. Layer 5. */
#include "cache/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/os.h"

/* Much longer than a compile on a busy machine: who gives up compiles, too, and makes it busier: 24 processes
 * that wanted 20 kernels on two busy cores compiled 137 times with 2 s. Only a holder that is stopped costs
 * it. */
static const int64_t wait_ns = 10000000000, nap_min_ns = 1000000, nap_max_ns = 32000000;

static int open_lock_file(int dir)
{
    struct stat st;
    int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
        return fd;
    close(fd);
    return -1;
}

/* len 0: to the end of the file. */
static int set_lock(int fd, short type, int64_t byte, int64_t len)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = len};
    return fcntl(fd, F_OFD_SETLK, &l) ? errno : 0;
}

int xti_lock_take(int dir, int64_t byte, int64_t limit_ns)
{
    int fd = open_lock_file(dir);
    if (fd < 0)
        return XTI_LOCK_NONE;
    int64_t end = xti_now_ns() + limit_ns, nap = nap_min_ns;
    int e;
    while ((e = set_lock(fd, F_WRLCK, byte, 1)) == EAGAIN || e == EACCES || e == EINTR) {
        if (xti_now_ns() >= end)
            break;
        nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
        nap = nap * 2 < nap_max_ns ? nap * 2 : nap_max_ns;
    }
    if (e == 0)
        return fd;
    close(fd);
    return e == EAGAIN || e == EACCES || e == EINTR ? XTI_LOCK_BUSY : XTI_LOCK_NONE;
}

/* Unlocks every byte: a descriptor holds one. */
void xti_lock_drop(int token)
{
    if (token < 0)
        return;
    set_lock(token, F_UNLCK, 0, 0); /* close alone would leave it with a child forked meanwhile */
    close(token);
}

static int64_t lock_byte(const void *key, size_t key_bytes)
{
    unsigned char h[XTI_SHA256_BYTES];
    int64_t b = 0;
    xti_sha256_of(key, key_bytes, h);
    for (int i = 0; i < 7; i++)
        b = b << 8 | h[i];
    return b + 1; /* 0 is XTI_LOCK_TRIM */
}

int xti_disk_lock(struct xti_disk *d, const void *key, size_t key_bytes)
{
    int dir = xti_disk_dir(d, true);
    if (dir < 0)
        return -1;
    int token = xti_lock_take(dir, lock_byte(key, key_bytes), wait_ns);
    close(dir);
    if (token < 0)
        xti_logf(XTI_LOG_CACHE, "no lock: %s",
                 token == XTI_LOCK_BUSY ? "busy for 10 s" : "not available here");
    return token < 0 ? -1 : token;
}

void xti_disk_unlock(struct xti_disk *d, int token) { xti_lock_drop(token); }
