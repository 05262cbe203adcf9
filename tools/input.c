/* input.c: files are mapped, pipes are read. */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"

static int map_file(int fd, const struct stat *st, off_t at, struct input *in)
{
    in->map_bytes = (size_t)st->st_size;
    in->map = mmap(NULL, in->map_bytes, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (in->map == MAP_FAILED) {
        in->map = NULL;
        return fail_file(in->name, "cannot be mapped: %s", strerror(errno));
    }
    in->data = (char *)in->map + at;
    guard_map(&in->guard, in->map, in->map_bytes, in->name,
              "was cut short, or could not be read, during the copy");
    return 0;
}

/* Elements that come one after the other, or do not lie as xt_run wants them. */
static int read_elements(int fd, struct input *in)
{
    in->map_bytes = in->npy.bytes + 1;
    in->map =
        mmap(NULL, in->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (in->map == MAP_FAILED) {
        in->map = NULL;
        return fail_file(in->name, "%zu bytes: out of memory", in->npy.bytes);
    }
    madvise(in->map, in->map_bytes, MADV_HUGEPAGE);
    in->data = in->map;
    if (npy_read_bytes(fd, in->name, in->map, in->npy.bytes))
        return EXIT_BAD_INPUT;
    char more;
    return read(fd, &more, 1) > 0
               ? fail_file(in->name, "the header announces %zu bytes of elements, and more follow",
                           in->npy.bytes)
               : 0;
}

static int open_fd(int fd, struct input *in)
{
    struct stat st;
    if (fstat(fd, &st))
        return fail_file(in->name, "%s", strerror(errno));
    if (S_ISDIR(st.st_mode))
        return fail_file(in->name, "is a directory");
    if (isatty(fd))
        return fail_file(in->name, "is a terminal: pipe a .npy file into it, or name one");
    if (npy_read_header(fd, in->name, &in->npy))
        return EXIT_BAD_INPUT;
    off_t at = lseek(fd, 0, SEEK_CUR);
    size_t width = xt_dtype_bytes(in->npy.dtype);
    bool aligned = at % (off_t)(width < 8 ? width : 8) == 0;
    if (S_ISREG(st.st_mode) && st.st_size - at != (off_t)in->npy.bytes)
        return fail_file(in->name, "the header announces %zu bytes of elements, the file has %lld",
                         in->npy.bytes, (long long)(st.st_size - at));
    return S_ISREG(st.st_mode) && aligned ? map_file(fd, &st, at, in) : read_elements(fd, in);
}

int input_open(const char *path, struct input *in)
{
    bool standard = !strcmp(path, "-");
    *in = (struct input){.name = standard ? "standard input" : path};
    int fd = standard ? 0 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        int e = errno;
        *in = (struct input){0};
        return fail_file(path, "%s", strerror(e));
    }
    int status = open_fd(fd, in);
    if (!standard)
        close(fd);
    if (status)
        input_close(in);
    return status;
}

void input_close(struct input *in)
{
    if (in->map) {
        guard_unmap(&in->guard);
        munmap(in->map, in->map_bytes);
    }
    *in = (struct input){0};
}

const char *shape_text(char *buf, size_t size, xt_dtype dtype, int rank, const int64_t *shape)
{
    size_t at = (size_t)snprintf(buf, size, "%s[", xt_dtype_name(dtype));
    for (int i = 0; i < rank && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%lld", i ? "," : "", (long long)shape[i]);
    if (at < size)
        snprintf(buf + at, size - at, "]");
    return buf;
}
