/* journal.c: a head that says which run it is, with a checksum, then a bit a tile. Layer 6. */
#include "files/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/num.h"

static const char magic[8] = "xtpart1";

static void sum_of(const struct xti_journal_head *h, unsigned char out[XTI_SHA256_BYTES])
{
    xti_sha256_of(h, offsetof(struct xti_journal_head, sum), out);
}

/* A file that is shorter than a head was begun and not used. */
static xt_status read_head(int fd, const char *path, struct xti_journal_head *h, bool *there,
                           struct xti_err *err)
{
    unsigned char sum[XTI_SHA256_BYTES];
    ssize_t n = pread(fd, h, sizeof *h, 0);
    *there = n == (ssize_t)sizeof *h;
    if (n < 0)
        return xti_file_fail(err, path, "cannot be read", errno);
    sum_of(h, sum);
    if (*there && (memcmp(h->magic, magic, sizeof magic) || memcmp(sum, h->sum, sizeof sum)))
        return xti_fail(err, XT_EINVAL, "%s: is damaged, or not of xt: remove it to begin anew", path);
    return XT_OK;
}

xt_status xti_journal_peek(const char *path, struct xti_journal_head *head, bool *there, struct xti_err *err)
{
    int fd = open(path, XTI_FILE_READ);
    *there = false;
    if (fd < 0)
        return errno == ENOENT ? XT_OK : xti_fail(err, XT_EIO, "%s: %s", path, strerror(errno));
    xt_status s = read_head(fd, path, head, there, err);
    close(fd);
    return s;
}

static int64_t bit_of(const struct xti_journal *j, int pass, int64_t tile)
{
    return (pass ? j->head.tiles[0] : 0) + tile;
}

static int64_t count_bits(const struct xti_journal *j)
{
    int64_t n = 0;
    for (int64_t i = 0; i < j->bytes; i++)
        n += __builtin_popcount(j->bits[i]);
    return n;
}

static xt_status differs(const char *path, const struct xti_journal_head *old,
                         const struct xti_journal_head *now, struct xti_err *err)
{
    if (memcmp(old->line, now->line, sizeof old->line))
        return xti_fail(
            err, XT_EINVAL,
            "%s: is of another run, which was not ended: finish that one, or begin anew (--restart)", path);
    return xti_fail(err, XT_EINVAL,
                    "%s: an input was changed since that run was begun: begin anew (--restart)", path);
}

static xt_status take_up(struct xti_journal *j, bool restart, bool *resumed, struct xti_err *err)
{
    struct xti_journal_head old;
    struct xti_err ignored = {0};
    xt_status s = read_head(j->fd, j->path, &old, resumed, restart ? &ignored : err);
    if (s || restart)
        return *resumed = false, restart ? XT_OK : s;
    if (!*resumed)
        return XT_OK;
    if (memcmp(&old, &j->head, sizeof old))
        return differs(j->path, &old, &j->head, err);
    ssize_t n = pread(j->fd, j->bits, (size_t)j->bytes, sizeof old);
    if (n != j->bytes)
        return xti_fail(err, XT_EINVAL, "%s: is cut short: remove it to begin anew", j->path);
    j->set = count_bits(j);
    return XT_OK;
}

xt_status xti_journal_open(const char *path, const struct xti_journal_head *head, bool restart,
                           struct xti_journal *j, bool *resumed, struct xti_err *err)
{
    *j = (struct xti_journal){.head = *head, .fd = -1};
    *resumed = false;
    memcpy(j->head.magic, magic, sizeof magic);
    sum_of(&j->head, j->head.sum);
    j->bytes = (head->tiles[0] + head->tiles[1] + 7) / 8;
    j->path = xti_strdup(path);
    j->bits = xti_alloc((size_t)j->bytes);
    xt_status s = j->path && j->bits ? XT_OK : xti_fail(err, XT_ENOMEM, "%s: out of memory", path);
    if (!s && (j->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666)) < 0)
        s = xti_file_fail(err, path, "cannot be written", errno);
    if (!s && flock(j->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        s = xti_fail(err, XT_EIO, "%s: another run is making this result", path);
    if (!s)
        s = take_up(j, restart, resumed, err);
    if (s)
        xti_journal_close(j, false);
    return s;
}

static xt_status put(struct xti_journal *j, const void *data, size_t bytes, off_t at, struct xti_err *err)
{
    return pwrite(j->fd, data, bytes, at) == (ssize_t)bytes
               ? XT_OK
               : xti_file_fail(err, j->path, "cannot be written", errno);
}

xt_status xti_journal_begin(struct xti_journal *j, struct xti_err *err)
{
    memset(j->bits, 0, (size_t)j->bytes);
    j->set = 0;
    sum_of(&j->head, j->head.sum);
    if (ftruncate(j->fd, 0))
        return xti_file_fail(err, j->path, "cannot be written", errno);
    xt_status s = put(j, j->bits, (size_t)j->bytes, sizeof j->head, err);
    if (!s)
        s = put(j, &j->head, sizeof j->head, 0, err);
    j->changed = true;
    return s ? s : xti_journal_commit(j, err);
}

bool xti_journal_has(const struct xti_journal *j, int pass, int64_t tile)
{
    int64_t i = bit_of(j, pass, tile);
    return j->bits[i / 8] >> i % 8 & 1;
}

void xti_journal_set(struct xti_journal *j, int pass, int64_t tile)
{
    int64_t i = bit_of(j, pass, tile);
    j->set += !xti_journal_has(j, pass, tile);
    j->bits[i / 8] |= (unsigned char)(1 << i % 8);
    j->changed = true;
}

xt_status xti_journal_commit(struct xti_journal *j, struct xti_err *err)
{
    if (!j->changed)
        return XT_OK;
    xt_status s = put(j, j->bits, (size_t)j->bytes, sizeof j->head, err);
    if (!s && fdatasync(j->fd))
        s = xti_file_fail(err, j->path, "cannot be written", errno);
    j->changed = s != XT_OK;
    return s;
}

void xti_journal_close(struct xti_journal *j, bool remove)
{
    if (remove && j->path)
        unlink(j->path);
    if (j->path && j->fd >= 0)
        close(j->fd);
    xti_free(j->path);
    xti_free(j->bits);
    *j = (struct xti_journal){.fd = -1};
}
