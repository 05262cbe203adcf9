/* files.c: .npy files of whole tensors, of which each rank reads and writes its own elements, and files of
 * one rank's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/mpi/job.h"
#include "tools/say.h"

int any_failed(int status)
{
    int all = 1, bad = status != 0;
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return all ? EXIT_BAD_INPUT : 0;
}

int end_describe(const struct mpi_job *j, struct end *e, const char *path)
{
    const char *mark = strstr(path, "%r");
    e->here.size = sizeof e->here;
    e->file.size = sizeof e->file;
    e->parts = mark != NULL;
    int n = mark ? snprintf(e->path, sizeof e->path, "%.*s%d%s", (int)(mark - path), path, j->me, mark + 2)
                 : snprintf(e->path, sizeof e->path, "%s", path);
    if (n >= (int)sizeof e->path)
        return fail("the path is longer than %zu bytes", sizeof e->path);
    if (xt_shard_shape(j->shard, e->input, j->me, &e->here) ||
        xt_shard_shape(j->shard, e->input, -1, &e->file))
        return fail_last("run");
    int64_t st = 1;
    for (int k = e->here.rank - 1; k >= 0 && e->parts; k--) {
        e->file.shape[k] = e->here.shape[k];
        e->file.strides[k] = st;
        st *= e->here.shape[k];
    }
    return 0;
}

/* ---- runs that lie together in the array and in the file */

struct run {
    int64_t here, there, n; /* elements */
};
typedef int (*run_fn)(void *arg, const struct run *r);

static int64_t index_of(const struct mpi_job *j, const struct end *e, int axis, int64_t i)
{
    return e->parts ? i : xt_shard_index(j->shard, e->input, j->me, axis, i);
}

/* Axes behind it are whole and dense in both: their product. */
static int last_cut(const struct end *e, int64_t *tail)
{
    int k = e->here.rank - 1;
    *tail = 1;
    for (; k >= 0 && e->here.strides[k] == *tail && e->here.shape[k] == e->file.shape[k]; k--)
        *tail *= e->here.shape[k];
    if (k >= 0 && e->here.strides[k] != *tail) { /* no runs along it */
        *tail = 1;
        k = e->here.rank;
    }
    return k;
}

/* Along one axis, from where the others stand. */
static int runs_of_axis(const struct mpi_job *j, const struct end *e, int k, int64_t tail, struct run at,
                        run_fn each, void *arg)
{
    int status = 0;
    int64_t n = e->here.shape[k];
    for (int64_t i = 0, end; i < n && !status; i = end) {
        int64_t first = index_of(j, e, k, i);
        for (end = i + 1; end < n && index_of(j, e, k, end) == first + end - i;)
            end++;
        struct run r = {at.here + i * e->here.strides[k], at.there + first * e->file.strides[k],
                        (end - i) * tail};
        status = each(arg, &r);
    }
    return status;
}

static int for_runs(const struct mpi_job *j, const struct end *e, run_fn each, void *arg)
{
    int64_t i[XT_MAX_RANK] = {0}, tail, index;
    int k = last_cut(e, &tail), outer = k < 0 ? 0 : k, at, status = 0;
    if (e->here.to_bytes <= e->here.from_bytes)
        return 0;
    do {
        struct run r = {e->here.offset, 0, tail};
        for (at = 0; at < outer; at++) {
            index = index_of(j, e, at, i[at]);
            r.here += i[at] * e->here.strides[at];
            r.there += index * e->file.strides[at];
        }
        status = k < 0 || k == e->here.rank ? each(arg, &r) : runs_of_axis(j, e, k, tail, r, each, arg);
        for (at = outer - 1; at >= 0 && ++i[at] == e->here.shape[at]; at--)
            i[at] = 0;
    } while (at >= 0 && !status);
    return status;
}

/* ---- reading */

static bool same_shape(const struct npy *a, const struct xt_end_info *e)
{
    return a->rank == e->rank && !memcmp(a->shape, e->shape, (size_t)e->rank * sizeof *a->shape);
}

int end_open(struct end *e)
{
    const struct xt_end_info *want = &e->file;
    char got[512], wanted[512];
    if (input_open(e->path, &e->in))
        return EXIT_BAD_INPUT;
    if (e->in.npy.fortran_order && e->in.npy.rank > 1)
        return fail_file(e->path, "is column-major");
    if (!npy_is(&e->in.npy, want->dtype) || !same_shape(&e->in.npy, want))
        return fail_file(e->path, "is %s, the chain's input %s is %s",
                         shape_text(got, sizeof got, e->in.npy.dtype, e->in.npy.rank, e->in.npy.shape),
                         want->name, shape_text(wanted, sizeof wanted, want->dtype, want->rank, want->shape));
    return 0;
}

struct reading {
    char *to;
    const char *from;
    size_t size;
};

static int read_run(void *arg, const struct run *r)
{
    struct reading *x = arg;
    memcpy(x->to + r->here * (int64_t)x->size, x->from + r->there * (int64_t)x->size, (size_t)r->n * x->size);
    return 0;
}

int end_load(const struct mpi_job *j, struct end *e)
{
    struct reading r = {e->data, e->in.data, xt_dtype_bytes(e->here.dtype)};
    int status = for_runs(j, e, read_run, &r);
    input_close(&e->in);
    return status;
}

/* ---- writing */

struct writing {
    const struct end *e;
    int fd;
    int64_t at; /* where the elements begin in the file */
};

static int write_run(void *arg, const struct run *r)
{
    const struct writing *w = arg;
    size_t size = xt_dtype_bytes(w->e->here.dtype), left = (size_t)r->n * size;
    const char *from = (const char *)w->e->data + r->here * (int64_t)size;
    off_t to = (off_t)(w->at + r->there * (int64_t)size);
    while (left) {
        ssize_t n = pwrite(w->fd, from, left, to);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_file(w->e->path, "%s", n ? strerror(errno) : "nothing more is written");
        from += n;
        to += n;
        left -= (size_t)n;
    }
    return 0;
}

/* The header and room for the elements. */
static int begin_file(struct output *o, const struct end *e, int64_t *at)
{
    const struct xt_end_info *what = &e->file;
    struct npy a = {.dtype = what->dtype, .rank = what->rank};
    char header[NPY_HEADER_ROOM];
    int64_t bytes = (int64_t)xt_dtype_bytes(what->dtype);
    memcpy(a.shape, what->shape, sizeof a.shape);
    for (int i = 0; i < what->rank; i++)
        bytes *= what->shape[i];
    *at = (int64_t)npy_make_header(&a, header);
    if (output_open(o, e->path, false))
        return EXIT_BAD_INPUT;
    if (!o->temp)
        return fail_file(e->path, "is not a file");
    if (output_write(o, header, (size_t)*at))
        return EXIT_BAD_INPUT;
    int code = bytes ? posix_fallocate(o->fd, 0, (off_t)(*at + bytes)) : 0;
    if (code && code != EOPNOTSUPP && code != EINVAL)
        return fail_file(e->path, "%s", strerror(code));
    return !code || !ftruncate(o->fd, (off_t)(*at + bytes)) ? 0 : fail_file(e->path, "%s", strerror(errno));
}

static int store_part(const struct mpi_job *j, struct end *e)
{
    struct output o = {0};
    struct writing w = {.e = e};
    int status = begin_file(&o, e, &w.at);
    w.fd = o.fd;
    if (!status)
        status = for_runs(j, e, write_run, &w);
    status = any_failed(status); /* all files, or none */
    if (!status)
        status = output_close(&o);
    output_drop(&o);
    return status;
}

static int store_whole(const struct mpi_job *j, struct end *e)
{
    struct output o = {0};
    struct writing w = {.e = e, .fd = -1};
    char temp[sizeof e->path + 64] = "";
    int status = j->me ? 0 : begin_file(&o, e, &w.at);
    if (!j->me && !status)
        snprintf(temp, sizeof temp, "%s", o.temp);
    MPI_Bcast(temp, sizeof temp, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Bcast(&w.at, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (*temp) {
        w.fd = open(temp, O_WRONLY | O_CLOEXEC);
        status = w.fd < 0 ? fail_file(e->path, "%s", strerror(errno)) : for_runs(j, e, write_run, &w);
        if (w.fd >= 0 && close(w.fd) && !status)
            status = fail_file(e->path, "%s", strerror(errno));
    }
    status = any_failed(status);
    if (!status && !j->me)
        status = output_close(&o);
    output_drop(&o);
    return status;
}

int end_store(const struct mpi_job *j, struct end *e)
{
    return any_failed(e->parts ? store_part(j, e) : store_whole(j, e));
}
