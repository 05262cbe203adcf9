/* curve.c: what requests of five lengths take, measured for a third of a second, and kept. Layer 6. */
#include "files/curve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os.h"
#include "cache/cache.h"
#include "files/io.h"

enum { PROBE_BYTES = 64 << 20, MOST_REQUESTS = 32, VERSION = 3, MOST_LEARNED = 4 };
enum { BUFFER_BYTES = MOST_REQUESTS << 20, PROBE_MEMORY = 5 * (BUFFER_BYTES / 2) }; /* as much for requests */
enum { NPY_HEAD = 128 };                   /* what NumPy writes before the first element */
static const int64_t LENGTH_NS = 30000000; /* of one length, one way */

/* A disk that nobody has measured. */
static const struct xti_curve careful = {
    .seconds = {{15e-6, 24e-6, 61e-6, 220e-6, 900e-6}, {16e-6, 22e-6, 36e-6, 110e-6, 400e-6}},
    .touch = 0.5e-9,
    .remove = 0.05e-9,
    .piece_bytes = 1 << 20,
    .requests = 32};

/* Of one request. */
static double seconds_of(const double *t, int64_t bytes)
{
    int64_t x = XTI_CURVE_FIRST;
    int i = 0;
    if (bytes <= x)
        return t[0];
    for (; bytes > x * XTI_CURVE_STEP; i++)
        x *= XTI_CURVE_STEP;
    double part = (double)(bytes - x) / (double)(x * (XTI_CURVE_STEP - 1));
    return t[i] + part * (t[i + 1] - t[i]);
}

double xti_curve_seconds(const struct xti_curve *c, bool write, int64_t bytes)
{
    const double *t = c->seconds[write];
    int64_t whole = bytes / c->piece_bytes, rest = bytes % c->piece_bytes;
    return (whole ? (double)whole * seconds_of(t, c->piece_bytes) : 0) + (rest ? seconds_of(t, rest) : 0);
}

/* ---- measuring */

struct probe {
    struct xti_io *io;
    struct xti_array file;
    char *buffer;
};

/* Seconds a request of so many bytes, all over the file: every other place first, so that neighbours do not
 * follow each other. -1: it failed. */
static double measure(struct probe *p, bool write, int64_t bytes)
{
    int64_t places = PROBE_BYTES / bytes, half = places / 2, each = 4 * MOST_REQUESTS;
    struct xti_axes a = {.n = 3, .extent = {half, 2, bytes}, .stride = {2 * bytes, bytes, 1}};
    int64_t begin = xti_now_ns(), done = 0;
    struct xti_err err = {0};
    each = each < half ? each : half;
    for (int64_t i = 0; !i || xti_now_ns() - begin < LENGTH_NS; i++) { /* once, however late it is */
        struct xti_transfer t;
        int64_t lo[3] = {i * each % (half - each + 1), i % 2, 0}, n[3] = {each, 1, bytes};
        xti_io_start(p->io, &t, &p->file, &a, lo, n, p->buffer, write);
        if (xti_io_wait(p->io, &t, &err))
            return -1;
        done += each;
    }
    return 1e-9 * (double)(xti_now_ns() - begin) / (double)done;
}

/* A line through the points, by the least squares of relative errors: half of a tenth of a second is noise.
 */
static bool smooth(double *t)
{
    double w = 0, x = 0, xx = 0, y = 0, xy = 0, bytes = XTI_CURVE_FIRST;
    for (int i = 0; i < XTI_CURVE_POINTS; i++, bytes *= XTI_CURVE_STEP) {
        double u = 1 / t[i], v = bytes / t[i];
        if (!(t[i] > 0))
            return false;
        w += u * u;
        x += u * v;
        xx += v * v;
        y += u;
        xy += v;
    }
    double slope = fmax((w * xy - x * y) / (w * xx - x * x), 1e-12);
    double first = fmax((y - slope * x) / w, 1e-7);
    bytes = XTI_CURVE_FIRST;
    for (int i = 0; i < XTI_CURVE_POINTS; i++, bytes *= XTI_CURVE_STEP)
        t[i] = first + slope * bytes;
    return true;
}

/* Results begin at a block, what is read seldom does. */
static bool measure_all(struct probe *p, struct xti_curve *c)
{
    bool ok = true;
    for (int write = 1; write >= 0; write--) {
        int64_t bytes = XTI_CURVE_FIRST;
        p->file.at = write ? 0 : NPY_HEAD;
        for (int i = 0; i < XTI_CURVE_POINTS; i++, bytes *= XTI_CURVE_STEP)
            c->seconds[write][i] = measure(p, write, bytes);
        ok = ok && smooth(c->seconds[write]);
    }
    return ok;
}

/* The probe is written whole first: reads of room that was never written reach no disk. */
static bool fill(struct probe *p)
{
    struct xti_axes a = {.n = 1, .extent = {PROBE_BYTES}, .stride = {1}};
    struct xti_transfer t;
    struct xti_err err = {0};
    int64_t bytes = (int64_t)1 << 20;
    bool ok = true;
    for (int64_t at = 0; at < PROBE_BYTES && ok; at += bytes) {
        xti_io_start(p->io, &t, &p->file, &a, &at, &bytes, p->buffer, true);
        ok = !xti_io_wait(p->io, &t, &err);
    }
    return ok && !xti_array_sync(&p->file, &err);
}

static double seconds_a_byte(int64_t begin_ns, int64_t bytes)
{
    return 1e-9 * (double)(xti_now_ns() - begin_ns) / (double)bytes;
}

/* Pages of a buffer are made when something is first put into them. */
static double touch(char *buffer)
{
    int64_t begin = xti_now_ns();
    memset(buffer, 1, BUFFER_BYTES);
    return seconds_a_byte(begin, BUFFER_BYTES);
}

/* One that is there and not locked was left by a run that was killed. */
static int open_probe(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool taken = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (fd < 0 || (!taken && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1))
        return fd;
    close(fd);
    return -1;
}

static void measure_beside(const char *output, bool buffered, struct xti_curve *c)
{
    struct xti_str path = {0};
    struct xti_err err = {0};
    struct probe p = {0};
    struct xti_curve found = {.piece_bytes = 1 << 20, .requests = MOST_REQUESTS};
    xti_str_addf(&path, "%s" XTI_CURVE_PROBE, output);
    int fd = path.failed ? -1 : open_probe(path.s);
    if (fd < 0) {
        xti_str_free(&path);
        return;
    }
    p.file = (struct xti_array){.kind = XTI_ARRAY_TILES,
                                .path = path.s,
                                .said = path.s,
                                .esize = 1,
                                .at = NPY_HEAD,
                                .elements = PROBE_BYTES,
                                .part_elements = PROBE_BYTES,
                                .buffered = buffered};
    p.buffer = xti_io_buffer(BUFFER_BYTES);
    found.touch = p.buffer ? touch(p.buffer) : 0;
    bool ok =
        p.buffer && !xti_io_new(MOST_REQUESTS, 1 << 20, &p.io, &err) && fill(&p) && measure_all(&p, &found);
    xti_io_free(p.io);
    xti_io_buffer_free(p.buffer, BUFFER_BYTES);
    int64_t begin = xti_now_ns();
    unlink(path.s);
    close(fd);
    found.remove = seconds_a_byte(begin, PROBE_BYTES);
    xti_str_free(&path);
    if (ok)
        *c = found;
}

/* ---- keeping */

static bool find_folder(const char *output, struct stat *st)
{
    char folder[4096];
    const char *slash = strrchr(output, '/');
    size_t n = slash ? (size_t)(slash - output) + 1 : 0;
    if (n >= sizeof folder - 1)
        return false;
    memcpy(folder, output, n);
    strcpy(folder + n, n ? "" : ".");
    return !stat(folder, st);
}

/* The entry of the file system; false: none is kept. */
static bool open_kept(const char *output, bool buffered, struct xti_disk **disk, struct xti_str *key)
{
    struct xti_err err = {0};
    struct stat st;
    if (!find_folder(output, &st) || xti_disk_open(NULL, disk, &err))
        return false;
    xti_str_addf(key, "requests %d %d %" PRIu64, VERSION, buffered, (uint64_t)st.st_dev);
    if (!key->failed)
        return true;
    xti_disk_close(*disk);
    return false;
}

static void keep(struct xti_disk *disk, const struct xti_str *key, const struct xti_curve *c)
{
    xti_disk_put(disk, key->s, key->n, "what requests to files take", c, sizeof *c);
}

static bool find_kept(struct xti_disk *disk, const struct xti_str *key, struct xti_curve *c)
{
    struct xti_blob blob;
    bool found = xti_disk_get(disk, key->s, key->n, &blob);
    if (found) {
        if (blob.bytes == sizeof *c)
            memcpy(c, blob.data, sizeof *c);
        xti_free(blob.data);
    }
    return found;
}

void xti_curve_get(const char *output, bool buffered, int64_t bytes, int64_t memory, struct xti_curve *c)
{
    struct xti_str key = {0};
    struct xti_disk *disk;
    *c = careful;
    if (bytes < XTI_CURVE_WORTH || !open_kept(output, buffered, &disk, &key))
        return;
    if (!find_kept(disk, &key, c) && memory >= PROBE_MEMORY) {
        measure_beside(output, buffered, c);
        if (memcmp(c, &careful, sizeof *c))
            keep(disk, &key, c);
    }
    xti_str_free(&key);
    xti_disk_close(disk);
}

void xti_curve_learn(const char *output, bool buffered, int64_t bytes, const struct xti_curve *used,
                     double ratio)
{
    struct xti_str key = {0};
    struct xti_disk *disk;
    struct xti_curve c = *used;
    double by = fmin(fmax(ratio, 1. / MOST_LEARNED), MOST_LEARNED);
    if (bytes < XTI_CURVE_WORTH || !(ratio > 0) || !open_kept(output, buffered, &disk, &key))
        return;
    by = c.runs++ ? sqrt(by) : by; /* one run is not all of them */
    for (int i = 0; i < XTI_CURVE_POINTS; i++) {
        c.seconds[0][i] *= by;
        c.seconds[1][i] *= by;
    }
    c.touch *= by;
    c.remove *= by;
    keep(disk, &key, &c);
    xti_str_free(&key);
    xti_disk_close(disk);
}
