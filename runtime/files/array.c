/* array.c: arrays in files: opening, making, naming of parts; runs of a box of their axes. Layer 6. */
#include "files/array.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/os.h"

enum { HEADER_BYTES = 12 + 10000, ALIGN = 4096 };

xt_status xti_file_fail(struct xti_err *err, const char *path, const char *what, int e)
{
    if (e == ENOSPC || e == EDQUOT)
        return xti_fail(err, XT_EIO, "%s: %s: no room is left on the disk", path, what);
    if (e == ESPIPE)
        return xti_fail(err, XT_EIO, "%s: %s: a FIFO stands in a file's place", path, what);
    return xti_fail(err, e == ENOMEM ? XT_ENOMEM : XT_EIO, "%s: %s: %s", path, what, strerror(e));
}

int xti_file_write_all(int fd, const void *from, int64_t bytes, int64_t at)
{
    int64_t have = 0;
    while (have < bytes) {
        ssize_t n = pwrite(fd, (const char *)from + have, (size_t)(bytes - have), at + have);
        if (n == 0)
            return ENOSPC;
        if (n < 0 && errno != EINTR)
            return errno;
        have += n > 0 ? n : 0;
    }
    return 0;
}

bool xti_array_is_zarr(const struct xti_array *s)
{
    return s->kind == XTI_ARRAY_ZARR2 || s->kind == XTI_ARRAY_ZARR3;
}

xt_status xti_array_measure(struct xti_array *s, struct xti_err *err)
{
    int64_t chunks = 1, each = 1, bytes;
    s->esize = (int64_t)xt_dtype_bytes(s->dtype);
    for (int i = 0; i < s->rank; i++)
        s->grid[i] = xti_ceil_div(s->shape[i], s->chunk[i] ? s->chunk[i] : 1);
    if (!xti_product(s->rank, s->grid, &chunks) || !xti_product(s->rank, s->chunk, &each) ||
        !xti_mul64(chunks, each, &s->elements) || !xti_mul64(s->elements, s->esize, &bytes))
        return xti_fail(err, XT_EOVERFLOW, "%s: its size does not fit in 63 bits", s->said);
    s->part_elements = xti_array_is_zarr(s) ? each : s->elements;
    return XT_OK;
}

/* ---- opening */

static xt_status open_npy(struct xti_array *s, struct xti_err *err)
{
    unsigned char head[HEADER_BYTES];
    struct xt_npy a = {.size = sizeof a};
    int fd = open(s->path, XTI_FILE_READ);
    if (fd < 0)
        return xti_fail(err, XT_EIO, "%s: %s", s->said, strerror(errno));
    ssize_t n = pread(fd, head, sizeof head, 0);
    int e = errno;
    bool regular = !fstat(fd, &s->stat) && S_ISREG(s->stat.st_mode);
    close(fd);
    if (n < 0 && e == EISDIR)
        return xti_fail(err, XT_EIO, "%s: is a directory without .zarray and zarr.json: no zarr array",
                        s->said);
    if (!regular)
        return xti_fail(err, XT_EIO, "%s: is no file: what is read in tiles has to be one", s->said);
    if (n < 0)
        return xti_fail(err, XT_EIO, "%s: %s", s->said, strerror(e));
    xt_status st = xt_npy_read(head, (size_t)n, &a, NULL);
    if (st)
        return xti_fail(err, st == XT_EBUFFER ? XT_EIO : st, "%s: %s", s->said, xt_last_error()->message);
    if (s->stat.st_size - a.at != a.bytes)
        return xti_fail(err, XT_EIO, "%s: the header announces %lld bytes of elements, the file has %lld",
                        s->said, (long long)a.bytes, (long long)(s->stat.st_size - a.at));
    s->kind = XTI_ARRAY_NPY;
    s->dtype = a.dtype;
    s->raw = a.raw;
    s->rank = a.rank;
    s->at = a.at;
    s->fortran = a.fortran_order && a.rank > 1;
    memcpy(s->shape, a.shape, sizeof s->shape);
    memcpy(s->chunk, a.shape, sizeof s->chunk);
    return XT_OK;
}

xt_status xti_array_open(const char *path, struct xti_array *s, struct xti_err *err)
{
    struct xti_str b = {0};
    bool zarr = xti_zarr_there(path);
    size_t n = strlen(path);
    *s = (struct xti_array){0};
    xti_str_addf(&b, "%s%s", path, zarr && n && path[n - 1] != '/' ? "/" : "");
    s->path = b.s;
    s->said = xti_strdup(path);
    xt_status st = b.failed || !s->said ? xti_fail(err, XT_ENOMEM, "%s: out of memory", path)
                   : zarr               ? xti_zarr_open(s, err)
                                        : open_npy(s, err);
    if (!st)
        st = xti_array_measure(s, err);
    if (st)
        xti_array_free(s);
    return st;
}

void xti_array_free(struct xti_array *s)
{
    xti_free(s->path);
    xti_free(s->said);
    *s = (struct xti_array){0};
}

static bool equal_times(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

xt_status xti_array_same(const struct xti_array *s, struct xti_err *err)
{
    struct xti_str b = {0};
    struct stat now;
    xti_str_addf(&b, "%s%s", s->path, xti_array_is_zarr(s) ? xti_zarr_file(s) : "");
    bool same = !b.failed && !stat(b.s, &now) && now.st_size == s->stat.st_size &&
                now.st_ino == s->stat.st_ino && now.st_dev == s->stat.st_dev &&
                equal_times(&now.st_mtim, &s->stat.st_mtim);
    xti_str_free(&b);
    return same ? XT_OK : xti_fail(err, XT_EIO, "%s: was changed while it was read", s->said);
}

/* ---- making */

static xt_status make_room(int fd, const char *path, int64_t bytes, struct xti_err *err)
{
    if (!bytes || !fallocate(fd, 0, 0, bytes))
        return XT_OK;
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR)
        return xti_file_fail(err, path, "cannot be written", errno);
    return ftruncate(fd, bytes) ? xti_file_fail(err, path, "cannot be written", errno) : XT_OK;
}

static xt_status create_file(struct xti_array *s, struct xti_err *err)
{
    char head[XT_NPY_ROOM];
    struct xt_npy a = {.size = sizeof a, .dtype = s->dtype, .rank = s->rank};
    memcpy(a.shape, s->shape, sizeof a.shape);
    s->at = s->kind == XTI_ARRAY_NPY ? (int64_t)xt_npy_write(&a, s->elements ? ALIGN : 64, head) : 0;
    int64_t bytes = s->at + s->elements * s->esize;
    if (xti_file_exceeds((uint64_t)bytes))
        return xti_file_fail(err, s->said, "cannot be written", EFBIG);
    int fd = open(s->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                  s->stat.st_mode ? s->stat.st_mode & 0666 : 0666);
    if (fd < 0)
        return xti_fail(err, XT_EIO, "%s: cannot be written: %s", s->said, strerror(errno));
    int e = xti_file_write_all(fd, head, s->at, 0);
    xt_status st =
        e ? xti_file_fail(err, s->said, "cannot be written", e) : make_room(fd, s->said, bytes, err);
    close(fd);
    return st;
}

static xt_status create_zarr(struct xti_array *s, struct xti_err *err)
{
    struct xti_str path = {0}, text = {0};
    xt_status st = XT_OK;
    xti_str_addf(&path, "%s%s", s->path, xti_zarr_file(s));
    xti_zarr_describe(s, &text);
    if (path.failed || text.failed) {
        st = xti_fail(err, XT_ENOMEM, "%s: out of memory", s->said);
    } else if (xti_file_exceeds(text.n)) {
        st = xti_file_fail(err, s->said, "cannot be written", EFBIG);
    } else if (mkdir(s->path, 0777) && errno != EEXIST) {
        st = xti_fail(err, XT_EIO, "%s: cannot be made: %s", s->said, strerror(errno));
    } else {
        int fd = open(path.s, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        int e = fd < 0 ? errno : xti_file_write_all(fd, text.s, (int64_t)text.n, 0);
        e = !e && fsync(fd) ? errno : e;
        st = e ? xti_file_fail(err, s->said, "cannot be written", e) : XT_OK;
        if (fd >= 0)
            close(fd);
    }
    xti_str_free(&path);
    xti_str_free(&text);
    return st;
}

xt_status xti_array_create(struct xti_array *s, struct xti_err *err)
{
    return xti_array_is_zarr(s) ? create_zarr(s, err) : create_file(s, err);
}

/* ---- parts */

void xti_array_part(const struct xti_array *s, int64_t part, struct xti_str *b)
{
    int64_t at[XT_MAX_RANK];
    xti_str_add(b, s->path);
    if (!xti_array_is_zarr(s))
        return;
    if (s->prefix)
        xti_str_add(b, "c");
    for (int i = s->rank - 1; i >= 0; i--) {
        at[i] = part % s->grid[i];
        part /= s->grid[i];
    }
    for (int i = 0; i < s->rank; i++)
        xti_str_addf(b, "%.*s%" PRId64, i || s->prefix, &s->separator, at[i]);
    if (!s->rank && !s->prefix)
        xti_str_add(b, "0");
}

xt_status xti_array_sync(const struct xti_array *s, struct xti_err *err)
{
    int fd = open(s->path, (xti_array_is_zarr(s) ? O_RDONLY | O_DIRECTORY : O_RDWR) | O_CLOEXEC);
    bool bad = fd < 0 || (xti_array_is_zarr(s) ? syncfs(fd) : fdatasync(fd));
    int e = errno;
    if (!bad)
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (fd >= 0)
        close(fd);
    return bad ? xti_file_fail(err, s->said, "cannot be written", e) : XT_OK;
}

int64_t xti_box_run(const struct xti_axes *a, const int64_t *n, int *axis)
{
    int64_t run = 1;
    int k = a->n - 1;
    for (; k >= 0; k--) {
        run *= n[k];
        if (n[k] != a->extent[k])
            break;
    }
    *axis = k < 0 ? 0 : k;
    return run;
}
