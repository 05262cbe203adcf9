/* result.c: the copy, part by part: through a buffer into a file or a pipe, or straight into a mapped file
 * where the chain has a layout for its result. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job.h"
#include "output.h"
#include "parts.h"
#include "tool.h"

static int64_t memory_bytes(void) { return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE); }

/* Inputs that the memory does not hold are read again for every part that wants some of a page, and CUDA
 * stages whole inputs each time: then parts are few and large. */
static int64_t part_bytes(const struct job *j)
{
    int64_t memory = memory_bytes(), inputs = 0;
    for (int i = 0; i < j->n; i++)
        inputs += xt_src_min_bytes(j->kernel, i);
    return j->info.backend != XT_CPU || inputs > memory / 2 ? memory / 8 : JOB_PART_BYTES;
}

/* The kernel of one part, and dst's for a dense result: its elements one behind the other. */
static int part_kernel(const struct job *j, const struct parts *p, struct xt_kernel **k)
{
    struct xt_graph *g = NULL;
    struct xt_output_info o = {.size = sizeof o};
    struct xt_index at[XT_MAX_RANK];
    int64_t offset = j->result.offset;
    int status = job_graph(j, &g);
    if (status)
        return status;
    for (int i = 0; i < p->rank; i++) {
        at[i] = (struct xt_index){XT_SLICE, p->lo[i], p->lo[i] + p->n[i], 1};
        offset += p->lo[i] * j->result.strides[i];
    }
    if (xt_output_get(g, &o) ||
        xt_output(g, xt_index(g, o.node, p->rank, at), j->dense ? NULL : j->result.strides,
                  j->dense ? 0 : offset) ||
        xt_compile(j->ctx, g, &j->opt, k))
        status = fail_last("run");
    xt_graph_free(g);
    return status;
}

static int run_part(struct job *j, const struct parts *p, bool whole, void *dst)
{
    struct xt_kernel *k = whole ? xt_kernel_ref(j->kernel) : NULL;
    int status = whole ? 0 : part_kernel(j, p, &k);
    double t = bar_seconds(&j->bar);
    if (!status && xt_run_host(k, dst, j->src))
        status = fail_last("run");
    j->copy_seconds += bar_seconds(&j->bar) - t;
    xt_kernel_free(k);
    return status;
}

static void *memory(size_t bytes, const char *path)
{
    void *p =
        mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        fail_file(path, "%zu bytes: out of memory", bytes);
        return NULL;
    }
    madvise(p, bytes + 1, MADV_HUGEPAGE);
    return p;
}

/* out NULL: dst is the whole destination's buffer. */
static int run_parts(struct job *j, void *dst, struct output *out)
{
    struct parts p;
    int64_t width = (int64_t)xt_dtype_bytes(j->result.dtype), done = 0, total = j->info.bytes_written;
    int64_t limit = part_bytes(j);
    int status = 0;
    char text[128];
    parts_begin(&p, j->result.rank, j->result.shape, limit / width);
    while (!status && parts_next(&p)) {
        int64_t bytes = parts_elements(&p) * width;
        status = run_part(j, &p, bytes == total, dst);
        if (!status && out)
            status = output_write(out, dst, (size_t)bytes);
        done += bytes;
        snprintf(text, sizeof text, "%.1f of %.1f GB, %.2f GB/s", (double)done / 1e9, (double)total / 1e9,
                 (double)done / 1e9 / bar_seconds(&j->bar));
        bar_at(&j->bar, done, text);
    }
    bar_clear();
    return status;
}

/* ------------------------------------------------------------------------------------------- a dense result
 */

static int write_header(struct output *out, const struct npy *a)
{
    char header[NPY_HEADER_ROOM];
    return output_write(out, header, npy_make_header(a, header));
}

/* Room for a file that is written in parts, so that a disk that is too small is not filled first. */
static int reserve(const struct output *out, const struct npy *a, int64_t bytes)
{
    char header[NPY_HEADER_ROOM];
    off_t size = (off_t)npy_make_header(a, header) + bytes;
    if (!out->temp || !fallocate(out->fd, FALLOC_FL_KEEP_SIZE, 0, size))
        return 0;
    return errno == ENOSPC || errno == EFBIG || errno == EDQUOT
               ? fail("%s: cannot be written: %s", out->path, strerror(errno))
               : 0;
}

static int write_dense(struct job *j, struct output *out)
{
    struct npy a = {.dtype = j->result.dtype, .rank = j->result.rank};
    int64_t limit = part_bytes(j), total = j->info.bytes_written;
    size_t bytes = (size_t)(total < limit ? total : limit);
    memcpy(a.shape, j->result.shape, sizeof a.shape);
    void *buffer = memory(bytes, j->path);
    int status = buffer ? 0 : EXIT_BAD_INPUT;
    if (!status && total > limit)
        status = reserve(out, &a, total);
    if (!status)
        status = write_header(out, &a);
    if (!status)
        status = run_parts(j, buffer, out);
    if (buffer)
        munmap(buffer, bytes + 1);
    return status;
}

/* ----------------------------------------------------------------------------------- a result with a layout
 */

/* A flat array of just the bytes that the layout reaches. */
static struct npy flat(const struct job *j)
{
    int64_t need = j->info.dst_min_bytes, width = (int64_t)xt_dtype_bytes(j->result.dtype);
    return (struct npy){.dtype = j->result.dtype, .rank = 1, .shape = {need / width}, .bytes = (size_t)need};
}

static int write_flat_stream(struct job *j, struct output *out)
{
    struct npy a = flat(j);
    void *buffer = memory(a.bytes, j->path);
    int status = buffer ? run_parts(j, buffer, NULL) : EXIT_BAD_INPUT;
    if (!status)
        status = write_header(out, &a);
    if (!status)
        status = output_write(out, buffer, a.bytes);
    if (buffer)
        munmap(buffer, a.bytes + 1);
    return status;
}

/* Any array in row-major order is a buffer. */
static int check_old(const struct job *j, struct npy *old)
{
    char text[512];
    int64_t need = j->info.dst_min_bytes / (int64_t)xt_dtype_bytes(j->result.dtype);
    bool same = npy_is(old, j->result.dtype);
    shape_text(text, sizeof text, old->dtype, old->rank, old->shape);
    if (!same)
        return fail_file(j->path, "is there and holds %s, the result is %s", text,
                         xt_dtype_name(j->result.dtype));
    if (old->fortran_order && old->rank > 1)
        return fail_file(j->path, "is there and is column-major: a layout wants row-major elements");
    if ((int64_t)old->bytes < j->info.dst_min_bytes)
        return fail_file(j->path, "is there and holds %s, the layout reaches %lld elements", text,
                         (long long)need);
    return 0;
}

/* Data, and holes as holes. */
static int copy_file(const struct job *j, int from, int to)
{
    struct stat st;
    bool bad = fstat(from, &st) || ftruncate(to, st.st_size);
    for (off_t at = 0, end; !bad && (at = lseek(from, at, SEEK_DATA)) >= 0; at = end) {
        off_t out = at;
        bad = (end = lseek(from, at, SEEK_HOLE)) < 0;
        while (!bad && at < end) {
            ssize_t n = copy_file_range(from, &at, to, &out, (size_t)(end - at), 0);
            if (n < 0 && lseek(to, out, SEEK_SET) == out) { /* not between these files */
                n = sendfile(to, from, &at, (size_t)(end - at));
                out = at;
            }
            bad = n <= 0;
        }
    }
    bad |= errno != ENXIO; /* that there is no more */
    return bad ? fail_file(j->path, "cannot be copied: %s", strerror(errno)) : 0;
}

/* out becomes what is there already, and *a says what that is; a new file: zeros. */
static int begin_file(const struct job *j, struct output *out, struct npy *a)
{
    int status, fd = open(out->target, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return fail_file(j->path, "%s", strerror(errno));
    if (fd < 0) {
        char header[NPY_HEADER_ROOM];
        *a = flat(j);
        a->at = (int64_t)npy_make_header(a, header);
        status = output_write(out, header, (size_t)a->at);
        off_t size = a->at + (off_t)a->bytes;
        bool bad =
            !status && fallocate(out->fd, 0, 0, size) && (errno != EOPNOTSUPP || ftruncate(out->fd, size));
        return bad ? fail_file(j->path, "cannot be written: %s", strerror(errno)) : status;
    }
    status = npy_read_header(fd, j->path, a);
    if (!status)
        status = check_old(j, a);
    if (!status)
        status = copy_file(j, fd, out->fd);
    close(fd);
    return status;
}

static int write_into_file(struct job *j, struct output *out)
{
    struct npy a;
    struct stat st;
    struct guarded guard;
    int status = begin_file(j, out, &a);
    if (status)
        return status;
    if (fstat(out->fd, &st) || st.st_size < a.at + (off_t)a.bytes)
        return fail_file(j->path, "is shorter than its header announces");
    size_t bytes = (size_t)st.st_size;
    char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, out->fd, 0);
    if (map == MAP_FAILED)
        return fail_file(j->path, "cannot be mapped: %s", strerror(errno));
    guard_map(&guard, map, bytes, j->path, "cannot be written: no room for it");
    status = run_parts(j, map + a.at, NULL);
    guard_unmap(&guard);
    munmap(map, bytes);
    return status;
}

int job_write(struct job *j)
{
    struct output out;
    bar_begin(&j->bar, j->info.bytes_written);
    int status = output_open(&out, j->path, j->force);
    if (status)
        return status;
    status = j->dense     ? write_dense(j, &out)
             : out.target ? write_into_file(j, &out)
                          : write_flat_stream(j, &out);
    if (!status)
        return output_close(&out);
    output_drop(&out);
    return status;
}
