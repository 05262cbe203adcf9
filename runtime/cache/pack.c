/* pack.c: reads and writes packs. Reading accepts any bytes. Layer 5. */
#include "cache/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/os.h"
#include "cache/entry.h"

enum { READ = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC }; /* a FIFO of its name keeps nobody waiting */
enum { VERSION = 1, HEAD_BYTES = 24, ROW_BYTES = XTI_SHA256_BYTES + 16, MAX_ENTRIES = 1 << 20 };
static const unsigned char magic[8] = {'X', 'T', 'P', 'A', 'C', 'K', '\r', '\n'};

struct xti_pack {
    char *path;
    size_t n;
    unsigned char *rows; /* [n * ROW_BYTES] */
};

struct xti_pack_entry {
    unsigned char name[XTI_SHA256_BYTES];
    void *data; /* encoded */
    size_t bytes;
};

static uint64_t load_u64(const unsigned char *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

/* ---- reading */

static bool read_at(int fd, void *data, size_t bytes, uint64_t offset)
{
    for (char *p = data; bytes;) {
        ssize_t got = pread(fd, p, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        bytes -= (size_t)got;
        offset += (uint64_t)got;
    }
    return true;
}

/* The head, the rows and their checksum. NULL, or what is wrong. */
static const char *read_rows(int fd, struct xti_pack *p)
{
    unsigned char head[HEAD_BYTES], sum[XTI_SHA256_BYTES];
    if (!read_at(fd, head, sizeof head, 0) || memcmp(head, magic, sizeof magic))
        return "no pack (magic)";
    if (load_u64(head + 8) != VERSION)
        return "another format version";
    uint64_t n = load_u64(head + 16);
    if (n > MAX_ENTRIES)
        return "too many entries";
    size_t bytes = HEAD_BYTES + (size_t)n * ROW_BYTES;
    unsigned char *all = xti_alloc(bytes + sizeof sum);
    if (!all)
        return "out of memory";
    bool whole = read_at(fd, all, bytes + sizeof sum, 0);
    if (whole)
        xti_sha256_of(all, bytes, sum);
    if (!whole || memcmp(sum, all + bytes, sizeof sum)) {
        xti_free(all);
        return whole ? "checksum differs" : "shorter than its list of entries";
    }
    memmove(all, all + HEAD_BYTES, (size_t)n * ROW_BYTES);
    p->rows = all;
    p->n = (size_t)n;
    return NULL;
}

xt_status xti_pack_open(const char *path, struct xti_pack **out, struct xti_err *err)
{
    *out = NULL;
    struct xti_pack *p = xti_alloc(sizeof *p);
    if (!p || !(p->path = xti_strdup(path))) {
        xti_pack_close(p);
        return xti_fail(err, XT_ENOMEM, "pack %s", path);
    }
    int fd = open(path, READ);
    const char *why = fd < 0 ? strerror(errno) : read_rows(fd, p);
    if (fd >= 0)
        close(fd);
    if (why) {
        xti_pack_close(p);
        return xti_fail(err, XT_EIO, "pack %s: %s", path, why);
    }
    *out = p;
    return XT_OK;
}

void xti_pack_close(struct xti_pack *p)
{
    if (!p)
        return;
    xti_free(p->rows);
    xti_free(p->path);
    xti_free(p);
}

static const unsigned char *find_row(const struct xti_pack *p, const void *key, size_t key_bytes)
{
    unsigned char name[XTI_SHA256_BYTES];
    size_t lo = 0, hi = p ? p->n : 0;
    xti_sha256_of(key, key_bytes, name);
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = memcmp(name, p->rows + mid * ROW_BYTES, XTI_SHA256_BYTES);
        if (!c)
            return p->rows + mid * ROW_BYTES;
        *(c < 0 ? &hi : &lo) = c < 0 ? mid : mid + 1;
    }
    return NULL;
}

/* NULL: *out owns the payload. */
static const char *read_entry(int fd, const unsigned char *row, const void *key, size_t key_bytes,
                              struct xti_blob *out)
{
    struct xti_entry e;
    uint64_t offset = load_u64(row + XTI_SHA256_BYTES), bytes = load_u64(row + XTI_SHA256_BYTES + 8);
    if (bytes < XTI_ENTRY_MIN || bytes > XTI_ENTRY_MAX || offset > INT64_MAX)
        return "its row is damaged";
    unsigned char *data = xti_alloc((size_t)bytes);
    if (!data)
        return "out of memory";
    const char *why = read_at(fd, data, (size_t)bytes, offset) ? NULL : "shorter than it says";
    if (!why)
        why = xti_entry_decode(data, (size_t)bytes, &e);
    if (!why && (e.key_bytes != key_bytes || memcmp(e.key, key, key_bytes)))
        why = "another key's entry";
    if (why) {
        xti_free(data);
        return why;
    }
    memmove(data, e.payload, e.payload_bytes);
    *out = (struct xti_blob){data, e.payload_bytes};
    return NULL;
}

bool xti_pack_get(const struct xti_pack *p, const void *key, size_t key_bytes, struct xti_blob *out)
{
    *out = (struct xti_blob){0};
    const unsigned char *row = find_row(p, key, key_bytes);
    if (!row)
        return false;
    int fd = open(p->path, READ);
    const char *why = fd < 0 ? "cannot be opened" : read_entry(fd, row, key, key_bytes, out);
    if (fd >= 0)
        close(fd);
    if (why)
        xti_logf(XTI_LOG_CACHE, "pack %s: refused: %s", p->path, why);
    return !why;
}

bool xti_pack_has(const struct xti_pack *p, const void *key, size_t key_bytes)
{
    return find_row(p, key, key_bytes) != NULL;
}

/* ---- writing */

static bool grow(struct xti_pack_maker *m)
{
    size_t room = m->room ? 2 * m->room : 64;
    if (m->n < m->room)
        return true;
    struct xti_pack_entry *more = xti_alloc_array(room, sizeof *more);
    if (!more)
        return false;
    if (m->n)
        memcpy(more, m->entry, m->n * sizeof *more);
    xti_free(m->entry);
    m->entry = more;
    m->room = room;
    return true;
}

xt_status xti_pack_add(struct xti_pack_maker *m, const void *key, size_t key_bytes, const char *what,
                       const void *payload, size_t payload_bytes, struct xti_err *err)
{
    struct xti_pack_entry e;
    const char *why = "out of memory";
    size_t what_bytes = strnlen(what, XTI_ENTRY_WHAT_MAX);
    struct xti_entry entry = {key, payload, (char *)what, key_bytes, what_bytes, payload_bytes};
    xti_sha256_of(key, key_bytes, e.name);
    for (size_t i = 0; i < m->n; i++)
        if (!memcmp(m->entry[i].name, e.name, sizeof e.name))
            return XT_OK;
    if (!grow(m) || !(e.data = xti_entry_encode(&entry, &e.bytes, &why)))
        return xti_fail(err, XT_ENOMEM, "pack: %s", why);
    m->entry[m->n++] = e;
    return XT_OK;
}

void xti_pack_maker_free(struct xti_pack_maker *m)
{
    for (size_t i = 0; i < m->n; i++)
        xti_free(m->entry[i].data);
    xti_free(m->entry);
    *m = (struct xti_pack_maker){0};
}

static int by_name(const void *a, const void *b)
{
    return memcmp(((const struct xti_pack_entry *)a)->name, ((const struct xti_pack_entry *)b)->name,
                  XTI_SHA256_BYTES);
}

static void put_rows(const struct xti_pack_maker *m, struct xti_str *b)
{
    unsigned char sum[XTI_SHA256_BYTES];
    uint64_t offset = HEAD_BYTES + m->n * ROW_BYTES + sizeof sum;
    xti_str_addn(b, (const char *)magic, sizeof magic);
    xti_str_u64le(b, VERSION);
    xti_str_u64le(b, m->n);
    for (size_t i = 0; i < m->n; i++) {
        xti_str_addn(b, m->entry[i].name, XTI_SHA256_BYTES);
        xti_str_u64le(b, offset);
        xti_str_u64le(b, m->entry[i].bytes);
        offset += m->entry[i].bytes;
    }
    if (b->failed)
        return;
    xti_sha256_of(b->s, b->n, sum);
    xti_str_addn(b, sum, sizeof sum);
}

/* Into a file of its own: what has this name already, a link of somebody else's perhaps, goes. */
static bool write_all(const struct xti_pack_maker *m, const struct xti_str *rows, const char *path)
{
    uint64_t bytes = rows->n;
    for (size_t i = 0; i < m->n; i++)
        bytes += m->entry[i].bytes;
    unlink(path);
    if (xti_file_exceeds(bytes)) {
        errno = EFBIG;
        return false;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    FILE *f = fdopen(fd, "wb");
    if (!f) {
        close(fd);
        return false;
    }
    bool ok = fwrite(rows->s, 1, rows->n, f) == rows->n;
    for (size_t i = 0; i < m->n && ok; i++)
        ok = fwrite(m->entry[i].data, 1, m->entry[i].bytes, f) == m->entry[i].bytes;
    return !fclose(f) && ok;
}

xt_status xti_pack_write(struct xti_pack_maker *m, const char *path, struct xti_err *err)
{
    struct xti_str rows = {0}, temp = {0};
    xt_status s = XT_OK;
    if (m->n)
        qsort(m->entry, m->n, sizeof *m->entry, by_name);
    put_rows(m, &rows);
    xti_str_addf(&temp, "%s.%ld.tmp", path, (long)getpid());
    if (rows.failed || temp.failed) {
        s = xti_fail(err, XT_ENOMEM, "pack %s", path);
    } else if (!write_all(m, &rows, temp.s) || rename(temp.s, path)) {
        s = xti_fail(err, XT_EIO, "pack %s: %s", path, strerror(errno));
        unlink(temp.s);
    }
    xti_str_free(&temp);
    xti_str_free(&rows);
    return s;
}
