/* io.c: threads that read and write. Each has files open of its own, and a buffer for what does not begin or
 * end where O_DIRECT wants it. Layer 6. */
#include "files/io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/os.h"

enum { BLOCK = XTI_IO_BLOCK, OPEN_FILES = 4, STACK_BYTES = 128 << 10 };

struct handle {
    const struct xti_array *store; /* NULL: none */
    int64_t part;
    bool write, absent; /* absent: the part is not there */
    int fd, direct;     /* direct < 0: none */
};

struct worker {
    struct xti_io *io;
    pthread_t thread;
    char *bounce;
    struct handle open[OPEN_FILES];
    int turn;
    const struct xti_array *edges_of; /* NULL: none. Blocks that it writes a part of: */
    int64_t edge_part, edge[2];
    int64_t cached; /* bytes of the page cache that its writes took since it emptied it */
};

struct xti_io {
    pthread_mutex_t lock;
    pthread_cond_t more, less; /* transfers came; one is done */
    pthread_mutex_t edges;     /* of all workers */
    pthread_cond_t left;       /* somebody has left his */
    struct xti_transfer *first, **last;
    bool end, changed;
    int n;
    int64_t piece_bytes;
    struct worker *worker;
    char *bounces; /* a worker's next to another's: in large pages a request is few segments */
    int64_t bounces_bytes;
};

/* ---- buffers */

char *xti_io_buffer(int64_t bytes)
{
    char *p = mmap(NULL, (size_t)bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (bytes >= 4 << 20)
        madvise(p, (size_t)bytes + 1, MADV_HUGEPAGE);
    return p;
}

void xti_io_buffer_free(char *p, int64_t bytes)
{
    if (p)
        munmap(p, (size_t)bytes + 1);
}

int64_t xti_io_padded(int64_t bytes) { return xti_add_most(bytes, BLOCK - 1) / BLOCK * BLOCK; }

static int64_t bounce_bytes(int64_t piece_bytes) { return piece_bytes + 2 * BLOCK; }

int64_t xti_io_memory(int threads, int64_t piece_bytes)
{
    return threads * (bounce_bytes(piece_bytes) + (16 << 10)); /* of a stack */
}

/* ---- files */

static void close_handle(struct handle *h)
{
    if (h->store && h->fd >= 0)
        close(h->fd);
    if (h->store && h->direct >= 0)
        close(h->direct);
    h->store = NULL;
}

/* Directories of a chunk's name, below that of the array. */
static void make_folders(const struct xti_array *s, char *path)
{
    for (char *p = path + strlen(s->path); *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(path, 0777);
            *p = '/';
        }
}

/* A new part is as long as all; others may be at the same. */
static int open_written(const struct xti_array *s, char *path, int64_t bytes)
{
    struct stat st;
    int flags = O_RDWR | O_CREAT | O_CLOEXEC, fd = open(path, flags, 0666);
    if (fd < 0 && errno == ENOENT) {
        make_folders(s, path);
        fd = open(path, flags, 0666);
    }
    if (fd < 0 || !xti_array_is_zarr(s))
        return fd;
    if (fstat(fd, &st) || (st.st_size < bytes && ftruncate(fd, bytes))) {
        int e = errno;
        close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

/* What makes a chunk another one: its time of change, which nobody can set, or that of its directory when it
 * is gone. */
static bool is_later(const struct xti_array *s, const struct stat *st)
{
    return s->since_ns && xti_ns_of(st->st_ctim) > s->since_ns;
}

static bool folder_is_later(const struct xti_array *s, char *path)
{
    struct stat st;
    char *slash;
    while ((slash = strrchr(path, '/'))) {
        *slash = 0;
        if (!stat(path, &st))
            return is_later(s, &st);
    }
    return false;
}

/* A chunk may come with its directory, and keep its time. */
static bool came_later(const struct xti_array *s, char *path)
{
    struct stat st;
    bool later = false;
    for (char *p = path + strlen(s->path); !later && (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        later = !stat(path, &st) && is_later(s, &st);
    }
    return later;
}

/* 0, or errno. */
static int open_handle(struct worker *w, const struct xti_array *s, int64_t part, bool write,
                       struct handle **out)
{
    struct handle *h = w->open;
    for (int i = 0; i < OPEN_FILES; i++)
        if (h[i].store == s && h[i].part == part && h[i].write == write)
            return *out = &h[i], 0;
    h = &h[w->turn++ % OPEN_FILES];
    close_handle(h);
    struct xti_str path = {0};
    xti_array_part(s, part, &path);
    if (path.failed)
        return ENOMEM;
    *h = (struct handle){.part = part, .write = write, .direct = -1};
    h->fd = write ? open_written(s, path.s, s->part_elements * s->esize) : open(path.s, XTI_FILE_READ);
    int e = h->fd < 0 ? errno : 0;
    h->absent = e == ENOENT && !write && xti_array_is_zarr(s);
    if (!e && !write && came_later(s, path.s)) {
        close(h->fd);
        e = ESTALE;
    }
    if (h->absent && folder_is_later(s, path.s))
        e = ESTALE, h->absent = false;
    if (!e && !s->buffered)
        h->direct = open(path.s, (write ? O_RDWR | O_CLOEXEC : XTI_FILE_READ) | O_DIRECT);
    if (!e && h->direct < 0)
        posix_fadvise(h->fd, 0, 0, POSIX_FADV_RANDOM); /* no reading ahead */
    xti_str_free(&path);
    if (e && !h->absent)
        return e;
    h->store = s;
    *out = h;
    return 0;
}

/* ---- one request */

/* Until at least `least` bytes are there. 0, errno, or -1: the file ends before. */
static int read_some(int fd, char *to, int64_t least, int64_t most, int64_t at)
{
    int64_t have = 0;
    while (have < least) {
        ssize_t n = pread(fd, to + have, (size_t)(most - have), at + have);
        if (n == 0)
            return -1;
        if (n < 0 && errno != EINTR)
            return errno;
        have += n > 0 ? n : 0;
    }
    return 0;
}

static bool aligned(const void *p) { return (uintptr_t)p % BLOCK == 0; }

/* Whole blocks around what is asked for. A file whose direct reads are refused is read as others are. */
static int read_direct(struct worker *w, struct handle *h, char *to, int64_t bytes, int64_t at)
{
    int64_t lo = at / BLOCK * BLOCK, hi = xti_ceil_div(at + bytes, BLOCK) * BLOCK;
    bool straight = lo == at && hi == at + bytes && aligned(to);
    char *into = straight ? to : w->bounce;
    int e = read_some(h->direct, into, at + bytes - lo, hi - lo, lo);
    if (!e && !straight)
        memcpy(to, into + (at - lo), (size_t)bytes);
    return e;
}

static int read_request(struct worker *w, struct handle *h, char *to, int64_t bytes, int64_t at)
{
    if (h->absent) {
        for (int64_t i = 0; i < bytes; i += h->store->esize)
            memcpy(to + i, h->store->fill, (size_t)h->store->esize);
        return 0;
    }
    if (h->direct >= 0) {
        int e = read_direct(w, h, to, bytes, at);
        if (e != EINVAL)
            return e;
        close(h->direct);
        h->direct = -1;
    }
    int e = read_some(h->fd, to, bytes, bytes, at);
    posix_fadvise(h->fd, at, bytes, POSIX_FADV_DONTNEED);
    return e;
}

static int read_checked(struct worker *w, struct handle *h, char *to, int64_t bytes, int64_t at)
{
    struct stat st;
    int e = read_request(w, h, to, bytes, at);
    bool look = h->store->since_ns && !h->absent && xti_array_is_zarr(h->store);
    return look && !fstat(h->fd, &st) && is_later(h->store, &st) ? ESTALE : e;
}

/* Pages that were written leave the cache, some at a time. */
static int empty_cache(struct worker *w, struct handle *h, int64_t bytes)
{
    w->cached += (bytes + BLOCK - 1) / BLOCK * BLOCK + BLOCK;
    if (w->cached < w->io->piece_bytes && !xti_array_is_zarr(h->store))
        return 0;
    w->cached = 0;
    if (sync_file_range(h->fd, 0, 0,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) &&
        errno != ESPIPE && errno != EINVAL && errno != ENOSYS)
        return errno;
    posix_fadvise(h->fd, 0, 0, POSIX_FADV_DONTNEED);
    return 0;
}

static int write_cached(struct worker *w, struct handle *h, const char *from, int64_t bytes, int64_t at)
{
    int e = bytes ? xti_file_write_all(h->fd, from, bytes, at) : 0;
    return e || !bytes ? e : empty_cache(w, h, bytes);
}

static bool meets(const struct worker *a, const struct worker *b)
{
    return a->edges_of == b->edges_of && a->edge_part == b->edge_part &&
           (a->edge[0] == b->edge[0] || a->edge[0] == b->edge[1] || a->edge[1] == b->edge[0] ||
            a->edge[1] == b->edge[1]);
}

/* Waits while another worker writes a part of the first or the last block. */
static void take_edges(struct worker *w, const struct handle *h, int64_t bytes, int64_t at)
{
    struct xti_io *io = w->io;
    bool free = false;
    pthread_mutex_lock(&io->edges);
    w->edge_part = h->part;
    w->edge[0] = at / BLOCK;
    w->edge[1] = (at + bytes - 1) / BLOCK;
    while (!free) {
        w->edges_of = h->store;
        free = true;
        for (int i = 0; i < io->n && free; i++)
            free = &io->worker[i] == w || !io->worker[i].edges_of || !meets(w, &io->worker[i]);
        if (!free) {
            w->edges_of = NULL;
            pthread_cond_wait(&io->left, &io->edges);
        }
    }
    pthread_mutex_unlock(&io->edges);
}

static void leave_edges(struct worker *w)
{
    pthread_mutex_lock(&w->io->edges);
    w->edges_of = NULL;
    pthread_cond_broadcast(&w->io->left);
    pthread_mutex_unlock(&w->io->edges);
}

/* Of whole blocks [lo, hi) around the request those bytes that are not in it come from the file. 0, errno, or
 * -1: the file ends before. */
static int fill_edges(struct worker *w, struct handle *h, int64_t bytes, int64_t at, int64_t lo, int64_t hi)
{
    int e = lo < at || hi - lo == BLOCK ? read_some(h->direct, w->bounce, BLOCK, BLOCK, lo) : 0;
    if (!e && at + bytes < hi && hi - lo > BLOCK)
        e = read_some(h->direct, w->bounce + (hi - lo - BLOCK), BLOCK, BLOCK, hi - BLOCK);
    return e;
}

/* Directly as whole blocks; those at the ends are read before, unless other processes write into them or the
 * file ends there: then what stands in them goes through the page cache, which takes longer. */
static int write_direct(struct worker *w, struct handle *h, const char *from, int64_t bytes, int64_t at)
{
    const struct xti_array *s = h->store;
    int64_t stop = at + bytes, hi = xti_ceil_div(stop, BLOCK) * BLOCK;
    bool cut = s->shared || (stop < hi && hi > s->at + s->part_elements * s->esize);
    int64_t lo = s->shared ? xti_ceil_div(at, BLOCK) * BLOCK : at / BLOCK * BLOCK;
    hi = cut ? stop / BLOCK * BLOCK : hi;
    int64_t begin = lo > at ? lo : at, end = hi < stop ? hi : stop; /* of the request, in these blocks */
    bool edges = lo < begin || end < hi;
    const char *middle = from + (begin - at);
    int e = edges ? fill_edges(w, h, end - begin, begin, lo, hi) : 0;
    if (e)
        return e < 0 ? write_cached(w, h, from, bytes, at) : e;
    if (edges || !aligned(middle)) {
        memcpy(w->bounce + (begin - lo), middle, (size_t)(end - begin));
        middle = w->bounce;
    }
    e = xti_file_write_all(h->direct, middle, hi - lo, lo);
    if (!e)
        e = write_cached(w, h, from, begin - at, at);
    return e ? e : write_cached(w, h, from + (end - at), stop - end, end);
}

static int write_request(struct worker *w, struct handle *h, const char *from, int64_t bytes, int64_t at)
{
    bool whole = (at + bytes) / BLOCK > xti_ceil_div(at, BLOCK); /* a block at least */
    bool edges = !h->store->buffered && !h->store->shared && (at % BLOCK || (at + bytes) % BLOCK);
    if (edges)
        take_edges(w, h, bytes, at);
    int e = h->direct >= 0 && whole ? write_direct(w, h, from, bytes, at) : EINVAL;
    if (e == EINVAL && h->direct >= 0 && whole) {
        close(h->direct);
        h->direct = -1;
    }
    if (e == EINVAL)
        e = write_cached(w, h, from, bytes, at);
    if (edges)
        leave_edges(w);
    return e;
}

static int request(struct worker *w, const struct xti_transfer *t, int64_t piece)
{
    const struct xti_array *s = t->store;
    int64_t part_bytes = s->part_elements * s->esize, at = t->first * s->esize;
    int64_t each = xti_ceil_div(t->unit_bytes, t->piece_bytes), unit = piece / each;
    int64_t units = t->run_bytes / t->unit_bytes, run = unit / units;
    int64_t from = unit % units * t->unit_bytes + piece % each * t->piece_bytes, left = run;
    int64_t bytes = t->unit_bytes - piece % each * t->piece_bytes;
    bytes = bytes < t->piece_bytes ? bytes : t->piece_bytes;
    for (int i = t->outer - 1; i >= 0; i--) {
        at += left % t->n[i] * t->stride[i] * s->esize;
        left /= t->n[i];
    }
    at += from;
    struct handle *h;
    int e = open_handle(w, s, at / part_bytes, t->write, &h);
    if (e)
        return e;
    char *mem = t->mem + run * t->run_bytes + from;
    at = at % part_bytes + s->at;
    return t->write ? write_request(w, h, mem, bytes, at) : read_checked(w, h, mem, bytes, at);
}

/* ---- the threads */

static struct xti_transfer *waiting(struct xti_io *io)
{
    struct xti_transfer *t;
    while ((t = io->first) && t->next >= t->pieces)
        if (!(io->first = t->queued))
            io->last = &io->first;
    return t;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct xti_io *io = w->io;
    struct xti_transfer *t;
    pthread_mutex_lock(&io->lock);
    while (!io->end) {
        if (!(t = waiting(io))) {
            pthread_cond_wait(&io->more, &io->lock);
            continue;
        }
        int64_t piece = t->next++;
        pthread_mutex_unlock(&io->lock);
        int e = request(w, t, piece);
        pthread_mutex_lock(&io->lock);
        if (e && !t->error) {
            t->error = e > 0 ? e : EIO;
            io->changed |= e == ESTALE;
            t->cut = e < 0;
            t->pieces = t->next; /* no more of it */
        }
        if (++t->done == t->pieces)
            pthread_cond_broadcast(&io->less);
    }
    pthread_mutex_unlock(&io->lock);
    for (int i = 0; i < OPEN_FILES; i++)
        close_handle(&w->open[i]);
    return NULL;
}

static bool start_worker(struct xti_io *io, struct worker *w)
{
    w->io = io;
    w->bounce = io->bounces + (w - io->worker) * bounce_bytes(io->piece_bytes);
    return !xti_thread_start(&w->thread, STACK_BYTES, false, work, w);
}

xt_status xti_io_new(int threads, int64_t piece_bytes, struct xti_io **out, struct xti_err *err)
{
    struct xti_io *io = xti_alloc(sizeof *io);
    *out = NULL;
    if (!io || !(io->worker = xti_alloc_array((size_t)threads, sizeof *io->worker))) {
        xti_free(io);
        return xti_fail(err, XT_ENOMEM, "threads that read and write");
    }
    io->bounces_bytes = threads * bounce_bytes(piece_bytes);
    io->bounces = xti_io_buffer(io->bounces_bytes);
    pthread_mutex_init(&io->lock, NULL);
    pthread_cond_init(&io->more, NULL);
    pthread_cond_init(&io->less, NULL);
    pthread_mutex_init(&io->edges, NULL);
    pthread_cond_init(&io->left, NULL);
    io->last = &io->first;
    io->piece_bytes = piece_bytes;
    while (io->bounces && io->n < threads && start_worker(io, &io->worker[io->n]))
        io->n++;
    if (!io->n) {
        xti_io_free(io);
        return xti_fail(err, XT_ENOMEM, "threads that read and write");
    }
    *out = io;
    return XT_OK;
}

void xti_io_free(struct xti_io *io)
{
    if (!io)
        return;
    pthread_mutex_lock(&io->lock);
    io->end = true;
    pthread_cond_broadcast(&io->more);
    pthread_mutex_unlock(&io->lock);
    for (int i = 0; i < io->n; i++)
        pthread_join(io->worker[i].thread, NULL);
    xti_io_buffer_free(io->bounces, io->bounces_bytes);
    pthread_cond_destroy(&io->less);
    pthread_mutex_destroy(&io->edges);
    pthread_cond_destroy(&io->left);
    pthread_cond_destroy(&io->more);
    pthread_mutex_destroy(&io->lock);
    xti_free(io->worker);
    xti_free(io);
}

bool xti_io_saw_change(const struct xti_io *io) { return io && io->changed; }

void xti_io_start(struct xti_io *io, struct xti_transfer *t, const struct xti_array *s,
                  const struct xti_axes *a, const int64_t *lo, const int64_t *n, char *mem, bool write)
{
    int64_t run = xti_box_run(a, n, &t->outer), runs = 1, part = s->part_elements;
    *t = (struct xti_transfer){.store = s, .write = write, .mem = mem, .outer = t->outer};
    for (int i = 0; i < a->n; i++) {
        t->first += lo[i] * a->stride[i];
        t->n[i] = n[i];
        t->stride[i] = a->stride[i];
        runs *= i < t->outer ? n[i] : 1;
    }
    t->run_bytes = run * s->esize;
    t->unit_bytes = (run < part ? run : part) * s->esize;
    t->piece_bytes = io->piece_bytes;
    t->pieces = run ? runs * (t->run_bytes / t->unit_bytes) * xti_ceil_div(t->unit_bytes, t->piece_bytes) : 0;
    if (!t->pieces)
        return;
    pthread_mutex_lock(&io->lock);
    *io->last = t;
    io->last = &t->queued;
    pthread_cond_broadcast(&io->more);
    pthread_mutex_unlock(&io->lock);
}

xt_status xti_io_wait(struct xti_io *io, struct xti_transfer *t, struct xti_err *err)
{
    pthread_mutex_lock(&io->lock);
    while (t->done < t->pieces)
        pthread_cond_wait(&io->less, &io->lock);
    waiting(io); /* it leaves the queue */
    pthread_mutex_unlock(&io->lock);
    if (!t->error)
        return XT_OK;
    if (t->error == ESTALE)
        return xti_fail(err, XT_EIO, "%s: was changed while it was read", t->store->said);
    if (t->cut)
        return xti_fail(err, XT_EIO, "%s: is shorter than it was: it was cut while it was read",
                        t->store->said);
    return xti_file_fail(err, t->store->said, t->write ? "cannot be written" : "cannot be read", t->error);
}
