/* npy.c: bytes where a .npy file is expected. A header that is taken is written again and read to the same.
 */
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tools/npy.h"

static int file_of(const void *data, size_t size)
{
    int fd = memfd_create("npy", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy a, b;
    char head[NPY_HEADER_ROOM];
    int fd = file_of(data, size);
    if (!npy_read_header(fd, "fuzz", &a)) {
        must(a.rank >= 0 && a.rank <= XT_MAX_RANK && a.at <= (int64_t)size);
        int again = file_of(head, npy_make_header(&a, head));
        must(!npy_read_header(again, "again", &b));
        must(a.rank == b.rank && !memcmp(a.shape, b.shape, sizeof *a.shape * (size_t)a.rank));
        must(a.bytes == b.bytes && (a.raw || b.raw || a.dtype == b.dtype)); /* f8 is written as raw bytes */
        must(a.fortran_order == b.fortran_order);
        close(again);
    }
    close(fd);
    return 0;
}
