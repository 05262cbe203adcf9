/* run.c: carries a run out: journal, passes, and the result in its place. Its shares meet behind each pass.
 * Layer 6. */
#include "files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "base/os.h"

/* Of a result's data without the slash: a link is not followed. */
static bool look_at(const char *path, struct stat *st)
{
    char copy[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof copy)
        return false;
    memcpy(copy, path, n + 1);
    copy[n - 1] = copy[n - 1] == '/' ? 0 : copy[n - 1];
    return !lstat(copy, st);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    return remove(path), 0;
}

/* False: something stays, of another user where all may write. */
static bool remove_data(const struct xt_files *f)
{
    struct stat st;
    nftw(f->out.path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    unlink(f->tiles.path);
    return !look_at(f->out.path, &st) && !look_at(f->tiles.path, &st);
}

/* All shares are here: has one of them failed? */
static xt_status meet(struct xt_files *f, xt_status s, struct xti_err *err)
{
    if (f->opt.shares == 1 || f->parted)
        return s;
    f->parted = f->opt.meet(f->opt.meet_arg, s != XT_OK);
    return f->parted && !s ? xti_fail(err, XT_EPEER, "another share of the run has failed") : s;
}

static bool all_done(const struct xti_journal *j, int pass)
{
    for (int64_t i = 0; i < j->head.tiles[pass]; i++)
        if (!xti_journal_has(j, pass, i))
            return false;
    return true;
}

static bool is_data(const char *path)
{
    struct stat st;
    return look_at(path, &st) && (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && st.st_nlink == 1));
}

/* A run that was ended after its data had been put in place has left its journal: it is begun anew. */
static bool is_kept(const struct xt_files *f, const struct xti_journal *j)
{
    bool tiles = f->passes == 2 && !all_done(j, 1);
    return !j->spoiled && (!j->set || (is_data(f->out.path) && (!tiles || is_data(f->tiles.path))));
}

/* Of a cap that a machine may not have no more is asked for than twice what the tiles take that were looked
 * at: a larger one is halved. */
static int64_t room_of(const struct xt_files *f)
{
    int64_t most = 0, block = 2 * XTI_IO_BLOCK;
    for (int i = 0; i < f->passes; i++) {
        const struct xti_tiling *c = &f->cut[i];
        int64_t bytes = xti_mul_most(xti_add_most(c->src_bytes, xti_io_padded(c->dst_bytes)), 2 * c->depth);
        most = bytes > most ? bytes : most;
    }
    most = xti_add_most(most, block - 1) / block * block;
    return most < f->room ? most : f->room;
}

static int64_t bytes_of(const struct xti_array *a) { return a->elements * a->esize; }

static xt_status run_passes(struct xt_files *f, struct xti_journal *j, struct xti_err *err)
{
    struct xti_io *io;
    struct xti_threads *threads = xti_threads_new(NULL, NULL);
    int64_t done = 0, total = 0, room = room_of(f);
    char *buffer = xti_io_buffer(room);
    xt_status s = xti_io_new(f->requests, f->curve.piece_bytes, &io, err);
    if (!s && !buffer)
        s = xti_fail(err, XT_ENOMEM, "%lld bytes of buffers", (long long)room);
    for (int i = 0; i < f->passes; i++)
        total += bytes_of(f->task[i].out);
    for (int i = 0; i < f->passes && !s; i++) {
        if ((s = xti_journal_pass(j, i, f->opt.share, f->opt.shares, err)))
            break;
        struct xti_pass p = {.task = &f->task[i],
                             .cut = &f->cut[i],
                             .number = i,
                             .journal = j,
                             .io = io,
                             .threads = threads,
                             .buffer = buffer,
                             .room = room,
                             .progress = f->opt.progress,
                             .arg = f->opt.arg,
                             .done = done,
                             .total = total};
        if (all_done(j, i))
            p.done += bytes_of(f->task[i].out);
        else
            s = xti_pass_run(&p, err);
        done = p.done;
        f->kernels += f->task[i].made;
        if (xti_io_saw_change(io))
            xti_journal_spoil(j);
        s = meet(f, s, err);
    }
    xti_io_free(io);
    xti_io_buffer_free(buffer, room);
    xti_threads_close(threads);
    xti_threads_unref(threads);
    return s;
}

static xt_status make_result(struct xt_files *f, struct xti_journal *j, struct xti_err *err)
{
    xt_status s = XT_OK;
    if (f->passes == 2 && !all_done(j, 0))
        s = xti_array_create(&f->tiles, err);
    if (!s)
        s = xti_array_create(&f->out, err);
    if (!s)
        s = run_passes(f, j, err);
    for (int i = 0; i < f->n && !s; i++)
        s = xti_array_same(&f->in[i], err);
    return s;
}

static xt_status sync_folder(const char *path, const char *said, struct xti_err *err)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    if (n >= sizeof folder)
        return XT_OK;
    memcpy(folder, path, n);
    strcpy(folder + n, n ? "" : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool bad = fd >= 0 && fsync(fd) && errno != EINVAL;
    int e = errno;
    if (fd >= 0)
        close(fd);
    return bad ? xti_file_fail(err, said,
                               "is whole and in its place, but its folder cannot be written: a crash "
                               "of the machine may undo that",
                               e)
               : XT_OK;
}

/* The old file's mode and owner stay. A group that cannot be kept must not read what the old one could: then
 * it may what all may. */
static bool keep_mode(const char *data, const struct stat *old)
{
    mode_t mode = old->st_mode & 0777;
    if (lchown(data, old->st_uid, old->st_gid) && lchown(data, (uid_t)-1, old->st_gid))
        mode = (mode & ~(mode_t)070) | (mode & (mode << 3) & 070);
    return !chmod(data, mode);
}

static xt_status put_in_place(struct xt_files *f, bool *placed, struct xti_err *err)
{
    struct stat st;
    char *data = xti_strdup(f->out.path);
    if (!data)
        return xti_fail(err, XT_ENOMEM, "%s: out of memory", f->out.said);
    size_t n = strlen(data);
    data[n - 1] = data[n - 1] == '/' ? 0 : data[n - 1];
    bool bad = !xti_array_is_zarr(&f->out) && !stat(f->target, &st) && !keep_mode(data, &st);
    *placed = !bad && !rename(data, f->target);
    xt_status s = *placed ? sync_folder(f->target, f->out.said, err)
                          : xti_file_fail(err, f->out.said, "cannot be put in its place", errno);
    xti_free(data);
    return s;
}

/* A run that got nothing done leaves nothing behind, and one of another input's bytes neither. */
static void clear_away(struct xt_files *f, struct xti_journal *j)
{
    struct xti_err ignored = {0};
    if (f->opt.shares > 1)
        xti_journal_look(j, &ignored);
    bool useless = !j->set || j->spoiled;
    for (int i = 0; i < f->n; i++)
        useless |= xti_array_same(&f->in[i], &ignored) != XT_OK;
    if (useless)
        remove_data(f);
    xti_journal_close(j, useless);
}

/* How far the clock that stamps a file, of a file server perhaps, is ahead of this host's. */
static int64_t clock_ahead(int fd, struct stat *st)
{
    enum { TICK_NS = 10000000 }; /* a stamp may be of the last tick */
    int64_t before = xti_files_now();
    bool stamped = !futimens(fd, NULL);
    if (fstat(fd, st) || !stamped)
        return 0;
    int64_t stamp = xti_ns_of(st->st_ctim), after = xti_files_now();
    return stamp > after ? stamp - after : stamp < before - TICK_NS ? stamp - before : 0;
}

/* The journal is there, and this run's. Times in it are of the clock that stamps it, as those of inputs that
 * lie on the same file system are; of others this host's is asked. */
static xt_status begin(struct xt_files *f, struct xti_err *err)
{
    struct xti_journal *j = &f->made;
    struct stat st = {0};
    bool resumed = true;
    xt_status s = f->opt.share ? xti_journal_join(f->journal, &f->head, j, err)
                               : xti_journal_open(f->journal, &f->head, f->opt.restart, j, &resumed, err);
    if (s)
        return s;
    int64_t ahead = clock_ahead(j->fd, &st);
    if (!f->opt.share && (!resumed || !is_kept(f, j))) {
        j->head.since_ns = f->opened_ns + ahead;
        s = remove_data(f)
                ? xti_journal_begin(j, err)
                : xti_fail(err, XT_EIO, "%s: its data of an earlier run cannot be removed", f->out.said);
        if (s)
            return clear_away(f, j), s;
    }
    f->begun = true;
    f->resumed = j->set;
    for (int i = 0; i < f->n; i++)
        f->in[i].since_ns = j->head.since_ns - (f->in[i].stat.st_dev == st.st_dev ? 0 : ahead);
    return XT_OK;
}

static xt_status finish(struct xt_files *f, bool *placed, struct xti_err *err)
{
    xt_status s = xti_array_sync(&f->out, err);
    if (s)
        return s;
    unlink(f->tiles.path); /* killed between these two, a run leaves its journal alone */
    return put_in_place(f, placed, err);
}

static xt_status run(struct xt_files *f, struct xti_err *err)
{
    struct xti_journal *j = &f->made;
    int64_t since = xti_now_ns();
    double seconds = f->passes ? f->cut[0].seconds + (f->passes > 1 ? f->cut[1].seconds : 0) : 0;
    xt_status s = f->begun ? XT_OK : begin(f, err);
    bool opened = f->begun, placed = false;
    if (!s)
        s = make_result(f, j, err);
    s = meet(f, s, err); /* nobody writes any more */
    if (!s && !f->opt.share)
        s = finish(f, &placed, err);
    s = meet(f, s, err);
    if (opened && !f->opt.share && s && !placed)
        clear_away(f, j);
    else
        xti_journal_close(j, opened && !f->opt.share);
    f->begun = false;
    if (!s && !f->resumed && seconds > 0 && f->opt.shares == 1)
        xti_curve_learn(f->target, f->opt.buffered, f->out.elements * f->out.esize, &f->curve,
                        1e-9 * (double)(xti_now_ns() - since) / seconds);
    return s;
}

xt_status xt_files_begin(struct xt_files *f)
{
    struct xti_err err = {0};
    if (!f)
        return xti_fail_null("xt_files_begin", "the run");
    if (f->imagined)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_files_begin: no files were given"), &err);
    return xti_publish(f->begun ? XT_OK : begin(f, &err), &err);
}

xt_status xt_files_run(struct xt_files *f)
{
    struct xti_err err = {0};
    if (!f)
        return xti_fail_null("xt_files_run", "the run");
    if (f->imagined)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_files_run: no files were given"), &err);
    return xti_publish(run(f, &err), &err);
}

void xt_files_free(struct xt_files *f)
{
    if (!f)
        return;
    if (f->begun && !f->opt.share)
        clear_away(f, &f->made);
    xti_journal_close(&f->made, false);
    for (int i = 0; i < 2; i++)
        xti_task_free(&f->task[i]);
    for (int i = 0; f->in && i < f->n; i++)
        xti_array_free(&f->in[i]);
    xti_array_free(&f->out);
    xti_array_free(&f->tiles);
    xt_graph_free(f->chain);
    xti_free(f->in);
    xti_free(f->in_list);
    xti_free(f->line);
    xti_free(f->target);
    xti_free(f->journal);
    xti_free(f);
}
