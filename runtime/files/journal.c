/* journal.c: a head that says which run it is, with a checksum, then a byte a tile: shares of a run write
 * theirs without each other. Layer 6. */
#include "files/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/num.h"
#include "base/os.h"

static const char magic[8] = "xtpart2";
enum { TRIES = 8 };
enum { DONE = 1, SPOILED = 2 };

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
    int fd = open(path, XTI_FILE_READ | O_NOFOLLOW);
    *there = false;
    if (fd < 0)
        return errno == ENOENT ? XT_OK : xti_fail(err, XT_EIO, "%s: %s", path, strerror(errno));
    xt_status s = read_head(fd, path, head, there, err);
    close(fd);
    return s;
}

static int64_t place_of(const struct xti_journal *j, int pass, int64_t tile)
{
    return (pass ? j->head.tiles[0] : 0) + tile;
}

xt_status xti_journal_look(struct xti_journal *j, struct xti_err *err)
{
    if (pread(j->fd, j->mark, (size_t)j->n, sizeof j->head) != j->n)
        return xti_fail(err, XT_EINVAL, "%s: is cut short: remove it to begin anew", j->path);
    j->set = 0;
    for (int64_t i = 0; i < j->n; i++) {
        j->spoiled |= j->mark[i] == SPOILED;
        j->set += j->mark[i] = j->mark[i] == DONE;
    }
    return XT_OK;
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
    return xti_journal_look(j, err);
}

static xt_status new_journal(struct xti_journal *j, const char *path, const struct xti_journal_head *head,
                             struct xti_err *err)
{
    *j = (struct xti_journal){.head = *head, .fd = -1};
    memcpy(j->head.magic, magic, sizeof magic);
    sum_of(&j->head, j->head.sum);
    j->n = head->tiles[0] + head->tiles[1];
    j->path = xti_strdup(path);
    j->mark = xti_alloc((size_t)j->n);
    return j->path && j->mark ? XT_OK : xti_fail(err, XT_ENOMEM, "%s: out of memory", path);
}

/* A run that ended between open and flock has removed it: then there is another. */
static xt_status open_locked(struct xti_journal *j, struct xti_err *err)
{
    struct stat st = {.st_nlink = 0};
    for (int i = 0; i < TRIES && !st.st_nlink; i++) {
        if (j->fd >= 0)
            close(j->fd);
        if ((j->fd = open(j->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)) < 0)
            return xti_file_fail(err, j->path, "cannot be written", errno);
        if (flock(j->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
            return xti_fail(err, XT_EIO, "%s: another run is making this result", j->path);
        if (fstat(j->fd, &st))
            return xti_file_fail(err, j->path, "cannot be read", errno);
    }
    return st.st_nlink == 1 ? XT_OK : xti_fail(err, XT_EIO, "%s: is no file of its own: remove it", j->path);
}

xt_status xti_journal_open(const char *path, const struct xti_journal_head *head, bool restart,
                           struct xti_journal *j, bool *resumed, struct xti_err *err)
{
    *resumed = false;
    xt_status s = new_journal(j, path, head, err);
    if (!s)
        s = open_locked(j, err);
    if (!s)
        s = take_up(j, restart, resumed, err);
    if (s)
        xti_journal_close(j, false);
    return s;
}

xt_status xti_journal_join(const char *path, const struct xti_journal_head *head, struct xti_journal *j,
                           struct xti_err *err)
{
    bool there = false;
    xt_status s = new_journal(j, path, head, err);
    if (!s && (j->fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC)) < 0)
        s = xti_file_fail(err, path, "cannot be opened", errno);
    if (!s)
        s = take_up(j, false, &there, err);
    if (!s && !there)
        s = xti_fail(err, XT_EINVAL, "%s: share 0 has not begun", path);
    if (s)
        xti_journal_close(j, false);
    return s;
}

static xt_status put(struct xti_journal *j, const void *data, size_t bytes, off_t at, struct xti_err *err)
{
    int e = xti_file_write_all(j->fd, data, (int64_t)bytes, at);
    return e ? xti_file_fail(err, j->path, "cannot be written", e) : XT_OK;
}

xt_status xti_journal_begin(struct xti_journal *j, struct xti_err *err)
{
    memset(j->mark, 0, (size_t)j->n);
    j->set = 0;
    j->spoiled = false;
    sum_of(&j->head, j->head.sum);
    if (xti_file_exceeds(sizeof j->head + (uint64_t)j->n))
        return xti_file_fail(err, j->path, "cannot be written", EFBIG);
    if (ftruncate(j->fd, 0))
        return xti_file_fail(err, j->path, "cannot be written", errno);
    xt_status s = put(j, j->mark, (size_t)j->n, sizeof j->head, err);
    if (!s)
        s = put(j, &j->head, sizeof j->head, 0, err);
    return s || !fdatasync(j->fd) ? s : xti_file_fail(err, j->path, "cannot be written", errno);
}

xt_status xti_journal_pass(struct xti_journal *j, int pass, int share, int shares, struct xti_err *err)
{
    int64_t n = j->head.tiles[pass], each = n / shares, more = n % shares;
    j->from = each * share + (share < more ? share : more);
    j->to = j->from + each + (share < more);
    return shares > 1 ? xti_journal_look(j, err) : XT_OK;
}

bool xti_journal_has(const struct xti_journal *j, int pass, int64_t tile)
{
    return j->mark[place_of(j, pass, tile)];
}

void xti_journal_set(struct xti_journal *j, int pass, int64_t tile)
{
    j->set += !xti_journal_has(j, pass, tile);
    j->mark[place_of(j, pass, tile)] = DONE;
    j->changed = true;
}

xt_status xti_journal_commit(struct xti_journal *j, int pass, struct xti_err *err)
{
    int64_t at = place_of(j, pass, j->from);
    if (!j->changed)
        return XT_OK;
    xt_status s = put(j, j->mark + at, (size_t)(j->to - j->from), (off_t)sizeof j->head + at, err);
    if (!s && fdatasync(j->fd))
        s = xti_file_fail(err, j->path, "cannot be written", errno);
    j->changed = s != XT_OK;
    return s;
}

/* Inputs are read in the first pass: a share that saw one has tiles of it. */
void xti_journal_spoil(struct xti_journal *j)
{
    struct xti_err ignored = {0};
    j->spoiled = true;
    put(j, &(unsigned char){SPOILED}, 1, (off_t)sizeof j->head + j->from, &ignored);
}

/* The lock does not stay with a child that the host has forked meanwhile. */
void xti_journal_close(struct xti_journal *j, bool remove)
{
    if (remove && j->path)
        unlink(j->path);
    if (j->fd >= 0) {
        flock(j->fd, LOCK_UN);
        close(j->fd);
    }
    xti_free(j->path);
    xti_free(j->mark);
    *j = (struct xti_journal){.fd = -1};
}
