/* npy.c: .npy files from a descriptor; the header is read and written by the library. */
#include "npy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xt/xt_files.h>

#include "say.h"

/* The least that says how long a header is; the longest that NumPy reads. */
enum { FIRST_BYTES = 12, MOST_BYTES = FIRST_BYTES + 10000, ALIGN = 64 };

/* Bytes read, fewer only at the end of the file; -1: errno. */
static ssize_t read_bytes(int fd, void *p, size_t bytes)
{
    size_t have = 0;
    while (have < bytes) {
        ssize_t n = read(fd, (char *)p + have, bytes - have);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return -1;
        have += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)have;
}

int npy_read_bytes(int fd, const char *file, void *p, size_t bytes)
{
    ssize_t n = read_bytes(fd, p, bytes);
    return n < 0               ? fail_file(file, "%s", strerror(errno))
           : (size_t)n < bytes ? fail_file(file, "is cut short")
                               : 0;
}

/* No header is as short as its first bytes: nothing behind it is read. */
int npy_read_header(int fd, const char *file, struct npy *out)
{
    unsigned char head[MOST_BYTES];
    struct xt_npy a = {.size = sizeof a};
    size_t have = 0, want, need = FIRST_BYTES;
    xt_status s;
    *out = (struct npy){0};
    do {
        want = need;
        ssize_t n = read_bytes(fd, head + have, want - have);
        if (n < 0)
            return fail_file(file, "%s", strerror(errno));
        have += (size_t)n;
        s = xt_npy_read(head, have, &a, &need);
    } while (s == XT_EBUFFER && have == want);
    if (s)
        return fail_file(file, "%s", xt_last_error()->message);
    *out = (struct npy){.dtype = a.dtype,
                        .rank = a.rank,
                        .fortran_order = a.fortran_order,
                        .raw = a.raw,
                        .at = a.at,
                        .bytes = (size_t)a.bytes};
    memcpy(out->shape, a.shape, sizeof out->shape);
    return 0;
}

int npy_is(struct npy *a, xt_dtype dtype)
{
    if (a->raw && xt_dtype_bytes(a->dtype) == xt_dtype_bytes(dtype))
        a->dtype = dtype;
    return a->dtype == dtype;
}

size_t npy_make_header(const struct npy *a, char out[NPY_HEADER_ROOM])
{
    struct xt_npy h = {
        .size = sizeof h, .dtype = a->dtype, .rank = a->rank, .fortran_order = a->fortran_order};
    memcpy(h.shape, a->shape, sizeof h.shape);
    return xt_npy_write(&h, ALIGN, out);
}
