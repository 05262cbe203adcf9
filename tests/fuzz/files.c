/* files.c: bytes where a file describes an array, or a run that was not ended. The first says which: .zarray,
 * zarr.json, a .npy file, or the tiles and bits of a journal whose checksum is right. What can be planned is
 * looked at, and where it is small it runs: its chunks are not there. */
#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"

enum { PATH = 64, MAX_BYTES = 1 << 16, MAX_FILES = 64, MEM = 1 << 20 };

static char dir[PATH];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    return strcmp(path, dir) ? remove(path) : 0;
}

static void empty(void) { nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static void leave(void)
{
    empty();
    rmdir(dir);
}

static void begin(void)
{
    if (*dir)
        return;
    snprintf(dir, sizeof dir, "%s/xt-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    must(mkdtemp(dir) && !atexit(leave) && !setenv("XT_CACHE_DIR", "", 1));
}

static void put(const char *path, const void *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size && !close(fd));
}

static const char *at(const char *name)
{
    static char path[4][2 * PATH];
    static int n;
    char *p = path[n++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static struct xt_files *made(const char *line, const char *input, const char *output)
{
    struct xt_files_options o = {.size = sizeof o, .mem_bytes = MEM, .requests = 1};
    struct xt_files *f;
    xt_status s = xt_files_new(line, 1, &input, output, &o, &f);
    must(s == xt_last_error()->status && !s == !!f && !s == !*xt_last_error()->message);
    return f;
}

static bool is_small(const struct xt_files *f)
{
    const struct xti_array *a = &f->in[0];
    return a->elements <= MAX_BYTES / 16 && f->out.elements <= MAX_BYTES / 16 &&
           (!a->part_elements || a->elements / a->part_elements <= MAX_FILES) &&
           (!f->passes || f->cut[0].tiles + f->cut[1].tiles <= MAX_FILES);
}

/* Plans, looks and runs. A run ends with the result in its place, or says why not. */
static void use(const char *line, const char *input, const char *output)
{
    struct xt_files *f = made(line, input, output);
    struct xt_files_info info = {.size = sizeof info};
    size_t need;
    if (!f)
        return;
    must(!xt_files_get(f, &info));
    for (int flags = 0; flags <= XT_JSON; flags++)
        must(!xt_files_explain(f, flags, NULL, 0, &need) && need > 1);
    if (is_small(f)) {
        xt_status s = xt_files_run(f);
        must(s == xt_last_error()->status && !s == !access(output, F_OK));
    }
    xt_files_free(f);
}

/* What a description is taken for, described again, is taken for the same. */
static void describe_again(const char *path)
{
    struct xti_array a, b;
    struct xti_err err = {0};
    if (xti_array_open(path, &a, &err)) {
        must(*err.e.message);
        return;
    }
    struct xti_str text = {0};
    xti_zarr_describe(&a, &text);
    char again[2 * PATH];
    snprintf(again, sizeof again, "%s", at("again"));
    must(!text.failed && !mkdir(again, 0700));
    snprintf(again, sizeof again, "%s/%s", at("again"), xti_zarr_file(&a));
    put(again, text.s, text.n);
    must(!xti_array_open(at("again"), &b, &err));
    must(a.kind == b.kind && a.rank == b.rank && xt_dtype_bytes(a.dtype) == xt_dtype_bytes(b.dtype));
    must(!memcmp(a.shape, b.shape, sizeof a.shape) && !memcmp(a.chunk, b.chunk, sizeof a.chunk));
    xti_str_free(&text);
    xti_array_free(&a);
    xti_array_free(&b);
}

static void as_zarr(const char *file, const uint8_t *data, size_t size)
{
    must(!mkdir(at("in"), 0700));
    put(at(file), data, size);
    describe_again(at("in"));
    use("x; x.flip(0).reshape(-1)", at("in"), at("out.npy"));
}

/* The head is that of the run that is taken up; what it says of tiles, and the bits, are the data. */
static void as_journal(const uint8_t *data, size_t size)
{
    const size_t from = offsetof(struct xti_journal_head, passes);
    const size_t to = offsetof(struct xti_journal_head, sum);
    static const char line[] = "x: u16[12,9]; x.T";
    struct xt_npy a = {.size = sizeof a, .dtype = XT_U16, .rank = 2, .shape = {12, 9}};
    char head[XT_NPY_ROOM + 216] = {0};
    size_t n = xt_npy_write(&a, 64, head), room = to - from;
    unsigned char journal[sizeof(struct xti_journal_head) + 4096];
    put(at("in.npy"), head, n + 216);
    struct xt_files *f = made(line, at("in.npy"), at("out.npy"));
    must(f);
    memcpy(journal, &f->head, sizeof f->head);
    memcpy(journal, "xtpart2", 8);
    memcpy(journal + from, data, size < room ? size : room);
    xti_sha256_of(journal, to, journal + to);
    size_t rest = size > room ? size - room : 0;
    memcpy(journal + sizeof f->head, data + size - rest, rest);
    put(at("out.npy.xt-part"), journal, sizeof f->head + rest);
    put(at("out.npy.xt-data"), head, n); /* as if something were done already */
    xt_files_free(f);
    use(line, at("in.npy"), at("out.npy"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    unsigned kind = take(&b) % 4;
    begin();
    empty();
    if (kind < 2)
        as_zarr(kind ? "in/zarr.json" : "in/.zarray", b.p, b.n);
    else if (kind == 3)
        as_journal(b.p, b.n < 4096 ? b.n : 4096);
    else {
        put(at("in.npy"), b.p, b.n);
        use("x; x.T", at("in.npy"), at("out.npy"));
    }
    return 0;
}
