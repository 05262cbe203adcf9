/* test_files.c: chains on files, in tiny tiles, against the chain in memory: .npy of both orders and zarr of
 * both formats on either side, one pass and two, whatever is asked of tiles and memory. */
#include <xt/xt_files.h>

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "map/map.h"
#include "support/child.h"
#include "support/golden.h"
#include "support/random_graph.h"
#include "support/scratch.h"
#include "support/suite.h"

enum { MAX_INPUTS = 16, LINE = 8192, PATH = 128 };

static char dir[SCRATCH_PATH];

/* In memory where there is such a file system: thousands of files are made durable. */
static void start(void)
{
    snprintf(dir, sizeof dir, "%s/xt-files-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    setenv("XT_CACHE_DIR", "", 1);
}

static void finish(void) { remove_scratch(dir); }

/* ---- arrays in files, by their definition */

struct form {
    enum { NPY, FORTRAN, ZARR2, ZARR3 } kind;
    xt_dtype dtype;
    int rank;
    int64_t shape[XT_MAX_RANK], chunk[XT_MAX_RANK];
    bool inner_fortran, dotted; /* zarr2: order F; either: the separator */
    bool sparse;                /* chunks of fill values alone are not there */
};

static int64_t numel(const struct form *f)
{
    int64_t n = 1;
    for (int i = 0; i < f->rank; i++)
        n *= f->shape[i];
    return n;
}

static void put_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_msg(f != NULL, "%s", path);
    ck_assert_uint_eq(fwrite(p, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

static size_t get_file(const char *path, void *p, size_t most)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(p, 1, most, f) : 0;
    if (f)
        fclose(f);
    return n;
}

/* Where element i, counted row by row, lies in a column-major array. */
static int64_t column_major(int rank, const int64_t *shape, int64_t i)
{
    int64_t x[XT_MAX_RANK], at = 0;
    for (int k = rank - 1; k >= 0; k--) {
        x[k] = i % shape[k];
        i /= shape[k];
    }
    for (int k = rank - 1; k >= 0; k--)
        at = at * shape[k] + x[k];
    return at;
}

static void put_npy(const char *path, const struct form *f, const unsigned char *data)
{
    struct xt_npy a = {
        .size = sizeof a, .dtype = f->dtype, .rank = f->rank, .fortran_order = f->kind == FORTRAN};
    char head[XT_NPY_ROOM];
    size_t esize = xt_dtype_bytes(f->dtype);
    memcpy(a.shape, f->shape, sizeof a.shape);
    size_t at = xt_npy_write(&a, 64, head), bytes = (size_t)numel(f) * esize;
    unsigned char *all = calloc(at + bytes + 1, 1);
    memcpy(all, head, at);
    for (int64_t i = 0; i < numel(f); i++)
        memcpy(all + at + (size_t)(f->kind == FORTRAN ? column_major(f->rank, f->shape, i) : i) * esize,
               data + (size_t)i * esize, esize);
    put_file(path, all, at + bytes);
    free(all);
}

static void list_text(char *to, int n, const int64_t *v)
{
    strcat(to, "[");
    for (int i = 0; i < n; i++)
        sprintf(to + strlen(to), "%s%lld", i ? "," : "", (long long)v[i]);
    strcat(to, "]");
}

static const char *code(const struct form *f)
{
    static const char *const v2[] = {
        [XT_BOOL] = "|b1",   [XT_U8] = "|u1",    [XT_I8] = "|i1",  [XT_U16] = "<u2",   [XT_I16] = "<i2",
        [XT_U32] = "<u4",    [XT_I32] = "<i4",   [XT_U64] = "<u8", [XT_I64] = "<i8",   [XT_F16] = "<f2",
        [XT_F32] = "<f4",    [XT_F64] = "<f8",   [XT_C64] = "<c8", [XT_C128] = "<c16", [XT_BF16] = "|V2",
        [XT_F8E4M3] = "|V1", [XT_F8E5M2] = "|V1"};
    static const char *const v3[] = {[XT_BOOL] = "bool",         [XT_U8] = "uint8",
                                     [XT_I8] = "int8",           [XT_U16] = "uint16",
                                     [XT_I16] = "int16",         [XT_U32] = "uint32",
                                     [XT_I32] = "int32",         [XT_U64] = "uint64",
                                     [XT_I64] = "int64",         [XT_F16] = "float16",
                                     [XT_F32] = "float32",       [XT_F64] = "float64",
                                     [XT_C64] = "complex64",     [XT_C128] = "complex128",
                                     [XT_BF16] = "bfloat16",     [XT_F8E4M3] = "float8_e4m3fn",
                                     [XT_F8E5M2] = "float8_e5m2"};
    return f->kind == ZARR2 ? v2[f->dtype] : v3[f->dtype];
}

static void describe(const char *path, const struct form *f)
{
    char text[4096] = "", file[PATH + 16];
    snprintf(file, sizeof file, "%s/%s", path, f->kind == ZARR2 ? ".zarray" : "zarr.json");
    sprintf(text, "{\"zarr_format\": %d, \"shape\": ", f->kind == ZARR2 ? 2 : 3);
    list_text(text, f->rank, f->shape);
    strcat(text, f->kind == ZARR2 ? ", \"chunks\": "
                                  : ", \"node_type\": \"array\", \"chunk_grid\": {\"name\": \"regular\", "
                                    "\"configuration\": {\"chunk_shape\": ");
    list_text(text, f->rank, f->chunk);
    sprintf(text + strlen(text), f->kind == ZARR2 ? ", \"dtype\": \"%s\", " : "}}, \"data_type\": \"%s\", ",
            code(f));
    if (f->kind == ZARR2)
        sprintf(text + strlen(text),
                "\"fill_value\": null, \"order\": \"%c\", \"compressor\": null, \"filters\": null%s}",
                f->inner_fortran ? 'F' : 'C', f->dotted ? "" : ", \"dimension_separator\": \"/\"");
    else
        sprintf(
            text + strlen(text),
            "\"fill_value\": %s, \"chunk_key_encoding\": {\"name\": \"default\"%s}, \"codecs\": [{\"name\": "
            "\"bytes\", \"configuration\": {\"endian\": \"little\"}}]}",
            f->dtype == XT_BOOL                         ? "false"
            : f->dtype == XT_C64 || f->dtype == XT_C128 ? "[0, 0]"
                                                        : "0",
            f->dotted ? ", \"configuration\": {\"separator\": \".\"}" : "");
    put_file(file, text, strlen(text));
}

/* Calls each for every chunk: its file, and for each element of it in the file's order its number in the
 * array, -1: padding. */
static void for_chunks(const char *path, const struct form *f,
                       void (*each)(void *arg, const char *file, int64_t n, const int64_t *element),
                       void *arg)
{
    int64_t grid[XT_MAX_RANK], chunks = 1, inner = 1;
    for (int i = 0; i < f->rank; i++) {
        grid[i] = (f->shape[i] + f->chunk[i] - 1) / f->chunk[i];
        chunks *= grid[i];
        inner *= f->chunk[i];
    }
    int64_t *element = calloc((size_t)inner, sizeof *element);
    for (int64_t c = 0; c < chunks; c++) {
        char file[PATH + 512];
        int64_t number[XT_MAX_RANK], left = c;
        for (int i = f->rank - 1; i >= 0; i--) {
            number[i] = left % grid[i];
            left /= grid[i];
        }
        snprintf(file, sizeof file, "%s/%s", path, f->kind == ZARR3 ? "c" : f->rank ? "" : "0");
        for (int i = 0; i < f->rank; i++) {
            if (i || f->kind == ZARR3)
                strcat(file, f->dotted ? "." : (mkdir(file, 0777), "/"));
            sprintf(file + strlen(file), "%lld", (long long)number[i]);
        }
        for (int64_t k = 0; k < inner; k++) {
            int64_t e = 0, rest = k, at = f->inner_fortran ? column_major(f->rank, f->chunk, k) : k;
            int64_t x[XT_MAX_RANK];
            for (int i = f->rank - 1; i >= 0; i--) {
                x[i] = number[i] * f->chunk[i] + rest % f->chunk[i];
                rest /= f->chunk[i];
            }
            for (int i = 0; i < f->rank && e >= 0; i++)
                e = x[i] < f->shape[i] ? e * f->shape[i] + x[i] : -1;
            element[at] = e;
        }
        each(arg, file, inner, element);
    }
    free(element);
}

struct moving {
    const struct form *f;
    unsigned char *data;
    bool bad;
};

static void put_chunk(void *arg, const char *file, int64_t n, const int64_t *element)
{
    struct moving *m = arg;
    size_t esize = xt_dtype_bytes(m->f->dtype);
    unsigned char *b = calloc((size_t)n, esize);
    bool zero = true;
    for (int64_t i = 0; i < n; i++) {
        if (element[i] >= 0)
            memcpy(b + (size_t)i * esize, m->data + (size_t)element[i] * esize, esize);
        else
            memset(b + (size_t)i * esize, 0xaa, esize); /* what padding holds is nobody's business */
        for (size_t k = 0; k < esize && element[i] >= 0; k++)
            zero &= !b[(size_t)i * esize + k];
    }
    if (!zero || !m->f->sparse)
        put_file(file, b, (size_t)n * esize);
    free(b);
}

static void get_chunk(void *arg, const char *file, int64_t n, const int64_t *element)
{
    struct moving *m = arg;
    size_t esize = xt_dtype_bytes(m->f->dtype), bytes = (size_t)n * esize;
    unsigned char *b = calloc(bytes + 1, 1);
    m->bad |= get_file(file, b, bytes + 1) != bytes;
    for (int64_t i = 0; i < n; i++)
        if (element[i] >= 0)
            memcpy(m->data + (size_t)element[i] * esize, b + (size_t)i * esize, esize);
    free(b);
}

static void put_array(const char *path, const struct form *f, unsigned char *data)
{
    if (f->kind == NPY || f->kind == FORTRAN) {
        put_npy(path, f, data);
        return;
    }
    ck_assert_int_eq(mkdir(path, 0777), 0);
    describe(path, f);
    for_chunks(path, f, put_chunk, &(struct moving){f, data, false});
}

/* False: there is not what should be. */
static bool get_array(const char *path, const struct form *f, unsigned char *data)
{
    size_t bytes = (size_t)numel(f) * xt_dtype_bytes(f->dtype);
    if (f->kind != NPY) {
        struct moving m = {f, data, false};
        for_chunks(path, f, get_chunk, &m);
        return !m.bad;
    }
    struct xt_npy a = {.size = sizeof a};
    unsigned char *all = malloc(bytes + XT_NPY_ROOM + 1);
    size_t n = get_file(path, all, bytes + XT_NPY_ROOM + 1);
    bool ok = !xt_npy_read(all, n, &a, NULL) && a.dtype == f->dtype && a.rank == f->rank &&
              !a.fortran_order && !memcmp(a.shape, f->shape, (size_t)f->rank * sizeof *a.shape) &&
              (size_t)a.at + bytes == n;
    if (a.raw)
        ok = !xt_npy_read(all, n, &a, NULL) && xt_dtype_bytes(a.dtype) == xt_dtype_bytes(f->dtype) &&
             (size_t)a.at + bytes == n;
    if (ok)
        memcpy(data, all + a.at, bytes);
    free(all);
    return ok;
}

/* ---- a chain on files beside the chain in memory */

static void draw_form(uint64_t *seed, struct form *f)
{
    f->kind = (int)random_below(seed, 4);
    f->dotted = random_below(seed, 2);
    f->sparse = random_below(seed, 2);
    f->inner_fortran = f->kind == ZARR2 && random_below(seed, 2);
    int axes = 0;
    for (int i = 0; i < f->rank; i++) {
        int64_t n = f->shape[i] ? f->shape[i] : 1;
        f->chunk[i] = random_below(seed, 4) ? 1 + random_below(seed, n + 1) : n;
        axes += 1 + (f->chunk[i] < n);
    }
    if (f->kind == FORTRAN && f->rank < 2)
        f->kind = NPY;
    if (f->kind >= ZARR2 && axes > XT_MAX_RANK)
        f->kind = NPY;
}

static int left_over(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));)
        n += strstr(e->d_name, ".xt-") != NULL;
    closedir(d);
    return n;
}

static void remove_tree(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

struct asked {
    int64_t mem, tile;
    int passes;
    bool buffered;
};

/* post: the file's bytes are those of the chain by its definition. */
static void compare(uint64_t *seed, const struct xt_graph *g, const char *line, const struct asked *asked)
{
    struct form in[MAX_INPUTS], out = {0};
    unsigned char *src[MAX_INPUTS];
    const char *path[MAX_INPUTS];
    static char name[MAX_INPUTS][PATH];
    char to[PATH];
    struct xti_err err = {0};
    int n = xt_input_count(g);
    struct xt_node_info info = {.size = sizeof info};
    struct xt_output_info o = {.size = sizeof o};
    ck_assert_int_le(n, MAX_INPUTS);
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(xt_node_get(g, xt_input_node(g, i), &info), XT_OK);
        in[i] = (struct form){.dtype = info.dtype, .rank = info.rank};
        memcpy(in[i].shape, info.shape, (size_t)info.rank * sizeof *info.shape);
        draw_form(seed, &in[i]);
        snprintf(name[i], PATH, "%s/in%d%s", dir, i, in[i].kind < ZARR2 ? ".npy" : "");
        path[i] = name[i];
        src[i] = random_bytes(numel(&in[i]) * (int64_t)xt_dtype_bytes(info.dtype), random_next(seed));
        if (in[i].sparse)
            memset(src[i], 0, (size_t)(numel(&in[i]) / 2) * xt_dtype_bytes(info.dtype));
        put_array(path[i], &in[i], src[i]);
    }
    ck_assert_int_eq(xt_output_get(g, &o), XT_OK);
    ck_assert_int_eq(xt_node_get(g, o.node, &info), XT_OK);
    out = (struct form){.dtype = info.dtype, .rank = info.rank};
    memcpy(out.shape, info.shape, (size_t)info.rank * sizeof *info.shape);
    draw_form(seed, &out);
    out.kind = out.kind == FORTRAN ? NPY : out.kind;
    out.inner_fortran = false;
    out.dotted = out.kind == ZARR2;
    snprintf(to, PATH, "%s/out.%s", dir, out.kind == NPY ? "npy" : "zarr");
    size_t bytes = (size_t)numel(&out) * xt_dtype_bytes(out.dtype);
    unsigned char *want = calloc(bytes + 1, 1), *have = calloc(bytes + 1, 1);
    ck_assert_int_eq(xti_graph_eval(g, want, (const void *const *)src, &err), XT_OK);

    struct xt_files_options opt = {.size = sizeof opt,
                                   .mem_bytes = asked->mem,
                                   .tile_bytes = asked->tile,
                                   .passes = asked->passes,
                                   .buffered = asked->buffered};
    struct xt_files *f;
    if (out.kind >= ZARR2) {
        opt.chunk_rank = out.rank;
        opt.chunk = out.chunk;
        opt.zarr_format = out.kind == ZARR2 ? 2 : 3;
    }
    xt_status s = xt_files_new(line, n, path, to, &opt, &f);
    if (!s)
        s = xt_files_run(f);
    ck_assert_msg(s == XT_OK, "%s\n  %s: %s", line, xt_status_name(s), xt_last_error()->message);
    xt_files_free(f);
    ck_assert_msg(get_array(to, &out, have), "%s\n  the result is not there", line);
    ck_assert_msg(!memcmp(want, have, bytes), "%s\n  tile %lld, passes %d, result %d", line,
                  (long long)asked->tile, asked->passes, out.kind);
    ck_assert_int_eq(left_over(dir), 0);
    for (int i = 0; i < n; i++) {
        free(src[i]);
        remove_tree(path[i]);
    }
    remove_tree(to);
    free(want);
    free(have);
}

static struct asked draw(uint64_t *seed)
{
    static const int64_t tiles[] = {0, 16, 64, 256, 1024, 4096, 16384};
    return (struct asked){.mem = (int64_t)1 << (19 + random_below(seed, 6)),
                          .tile = tiles[random_below(seed, 7)],
                          .passes = random_below(seed, 3) ? (int)random_below(seed, 3) : 1,
                          .buffered = random_below(seed, 2)};
}

enum { PARTS = 8, CASES = 60, CASES_FULL = 4000 };

START_TEST(random_chains_on_files_are_the_chains_in_memory)
{
    uint64_t seed = 1 + (uint64_t)_i;
    int cases = test_full() ? CASES_FULL : CASES;
    start();
    for (int k = 0; k < cases; k++) {
        struct random_graph_options opt = {
            .max_numel = 1 << (4 + random_below(&seed, 9)), .dense_inputs = true, .dense_output = true};
        struct xt_graph *g = random_graph(random_next(&seed), &opt);
        struct asked asked = draw(&seed);
        char line[LINE];
        ck_assert_ptr_nonnull(g);
        if (!xt_print(g, line, sizeof line, NULL) && strlen(line) + 1 < sizeof line &&
            xt_input_count(g) <= MAX_INPUTS)
            compare(&seed, g, line, &asked);
        xt_graph_free(g);
    }
    finish();
}
END_TEST

START_TEST(golden_chains_on_files_are_the_chains_in_memory)
{
    static struct golden_case c;
    FILE *f = golden_open();
    uint64_t seed = 77 + (uint64_t)_i;
    ck_assert_ptr_nonnull(f);
    start();
    for (int k = 0; golden_next(f, &c); k++) {
        char line[LINE];
        bool plain = true;
        struct xt_output_info o = {.size = sizeof o};
        struct xt_node_info info = {.size = sizeof info};
        for (int i = 0; i < xt_input_count(c.g); i++)
            plain &= !xt_node_get(c.g, xt_input_node(c.g, i), &info) && info.dense;
        plain &= !xt_output_get(c.g, &o) && o.dense;
        if (plain && k % PARTS == _i && !xt_print(c.g, line, sizeof line, NULL)) {
            for (int passes = 1; passes <= 2; passes++) {
                struct asked asked = draw(&seed);
                asked.passes = passes;
                compare(&seed, c.g, line, &asked);
            }
        }
        xt_graph_free(c.g);
    }
    fclose(f);
    finish();
}
END_TEST

/* Runs of a few blocks that begin and end within blocks, beside runs that end in the same ones. */
START_TEST(rows_that_share_blocks_are_written_side_by_side)
{
    static const char *const lines[] = {"x: u8[9001,61]; x.T", "x: i16[5003,31]; x.T[::-1]",
                                        "x: u8[9001,61]; x.T.pad((0,0),(3,5))", "x: i64[1500,40]; x.T",
                                        "x: u8[4103,90]; x.T[:, 2:4100]"};
    static const int64_t tiles[] = {5000, 20000, 70000, 300000};
    uint64_t seed = 5 + (uint64_t)_i;
    start();
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
            for (size_t t = 0; t < sizeof tiles / sizeof *tiles; t++) {
                struct asked asked = {.mem = 1 << 23, .tile = tiles[t], .passes = 1 + k};
                struct xt_graph *g = parse_line(lines[i]);
                compare(&seed, g, lines[i], &asked);
                xt_graph_free(g);
            }
    finish();
}
END_TEST

START_TEST(options_of_other_versions_are_taken_and_those_that_make_no_sense_refused)
{
    struct {
        struct xt_files_options o;
        int64_t more;
    } newer = {{.size = sizeof newer, .mem_bytes = 1 << 24}, 1};
    struct xt_files_info info = {.size = sizeof info};
    struct xt_files *f;
    const char *line = "x: f32[64,64]; x.T";
    ck_assert_int_eq(xt_files_new(line, 0, NULL, "o.npy", &newer.o, &f), XT_OK);
    ck_assert(!xt_files_get(f, &info) && info.memory_bytes <= 1 << 24);
    xt_files_free(f);
    newer.o.size = offsetof(struct xt_files_options, share); /* its first version */
    newer.o.share = 7;
    ck_assert_int_eq(xt_files_new(line, 0, NULL, "o.npy", &newer.o, &f), XT_OK);
    xt_files_free(f);
    for (size_t size = 0; size < offsetof(struct xt_files_options, share); size += sizeof(int)) {
        newer.o.size = size;
        ck_assert_int_eq(xt_files_new(line, 0, NULL, "o.npy", &newer.o, &f), XT_EINVAL);
        ck_assert_ptr_null(f);
    }
    for (int i = 0; i < 2; i++) {
        struct xt_files_options o = {.size = sizeof o, .requests = i ? INT_MIN : -1};
        ck_assert_int_eq(xt_files_new(line, 0, NULL, "o.npy", &o, &f), XT_EINVAL);
    }
    struct xt_files_options thin = {.size = sizeof thin, .tile_bytes = 3};
    ck_assert_int_eq(xt_files_new(line, 0, NULL, "o.npy", &thin, &f), XT_EINVAL);
    ck_assert_str_eq(xt_last_error()->message,
                     "3 bytes of a tile are too few: one element of the result needs more");
    ck_assert_int_eq(xt_files_new(line, 0, NULL, "o.npy", NULL, &f), XT_OK);
    ck_assert_int_eq(xt_files_explain(f, XT_WHY, NULL, 0, NULL), XT_EINVAL);
    ck_assert_int_eq(xt_files_explain(f, -1, NULL, 0, NULL), XT_EINVAL);
    xt_files_free(f);
    ck_assert_int_eq(xt_files_new(line, 1, NULL, "o.npy", NULL, &f), XT_EINVAL);
    ck_assert_int_eq(xt_files_new(line, 0, NULL, "", NULL, &f), XT_EINVAL);
    ck_assert_str_eq(xt_last_error()->message, "xt_files_new: output has no name");
    ck_assert_int_eq(xt_files_new(line, 1, (const char *[]){""}, "o.npy", NULL, &f), XT_EINVAL);
    ck_assert_str_eq(xt_last_error()->message, "xt_files_new: input 0 has no name");
}
END_TEST

/* Before anything is opened or made. */
START_TEST(results_that_cannot_be_are_refused_with_a_sentence)
{
    static const int64_t two[] = {8, 8}, flat[] = {8, 0}, back[] = {-8, 8}, vast[] = {INT64_MAX, 2},
                         ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const struct {
        const char *line, *output;
        int chunk_rank, zarr_format;
        const int64_t *chunk;
        xt_status status;
        const char *said;
    } row[] = {
        {"x: f32[64,64]; x.T", "o.npy", 2, 0, two, XT_EINVAL, "o.npy: only a zarr result has chunks"},
        {"x: f32[64,64]; x.T", "o.npy", 0, 2, NULL, XT_EINVAL, "o.npy: only a zarr result has chunks"},
        {"x: f32[64,64]; x.T", "o.zarr", 0, 4, NULL, XT_EINVAL, "zarr's formats are 2 and 3, not 4"},
        {"x: f32[64,64]; x.T", "o.zarr", 1, 0, two, XT_ERANK, "chunks have 1 axes, the result has 2"},
        {"x: f32[64,64]; x.T", "o/", 2, 0, flat, XT_ERANGE, "chunks: an extent of axis 1 is not positive"},
        {"x: f32[64,64]; x.T", "o/", 2, 2, back, XT_ERANGE, "chunks: an extent of axis 0 is not positive"},
        {"x: f32[64,64]; x.T", "o.zarr", 2, 3, vast, XT_EOVERFLOW,
         "o.zarr: its size does not fit in 63 bits"},
        {"x: f32[64,64]; x.T", "o.zarr", 2, 3, NULL, XT_EINVAL, "xt_files_new: an option is out of range"},
        {"x: f32[64,64]; x.T", "o.zar", 0, 0, NULL, XT_EINVAL,
         "o.zar: its name ends with none of .npy, .zarr and /"},
        {"x: f32[64,64]; x.T", ".npy", 0, 0, NULL, XT_EINVAL,
         ".npy: its name ends with none of .npy, .zarr and /"},
        {"x: f32[64,64]; x.T -> [64,64]:[65,1]", "o.npy", 0, 0, NULL, XT_EUNSUPPORTED, NULL},
        {"x: u8[2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2]; x", "o.zarr", 17, 0, ones, XT_EUNSUPPORTED,
         "o.zarr: more than 32 axes with those of its chunks"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct xt_files_options o = {.size = sizeof o,
                                     .chunk_rank = row[i].chunk_rank,
                                     .chunk = row[i].chunk,
                                     .zarr_format = row[i].zarr_format};
        struct xt_files *f = (void *)1;
        xt_status s = xt_files_new(row[i].line, 0, NULL, row[i].output, &o, &f);
        ck_assert_msg(s == row[i].status, "%zu: %s: %s", i, xt_status_name(s), xt_last_error()->message);
        ck_assert_ptr_null(f);
        ck_assert_msg(!row[i].said || !strcmp(xt_last_error()->message, row[i].said), "%s",
                      xt_last_error()->message);
    }
}
END_TEST

/* Of files that are there. */
START_TEST(inputs_that_the_line_cannot_have_are_refused_by_name)
{
    const struct form rows = {.kind = NPY, .dtype = XT_F32, .rank = 2, .shape = {4, 6}},
                      columns = {.kind = FORTRAN, .dtype = XT_F32, .rank = 2, .shape = {4, 6}},
                      raw = {.kind = NPY, .dtype = XT_BF16, .rank = 1, .shape = {24}};
    static const struct {
        const char *line;
        int n, first; /* files: of rows, columns, raw from this one on */
        xt_status status;
        const char *said;
    } row[] = {
        {"x; x", 2, 0, XT_EINVAL, "the chain has 1 input, and 2 files are given"},
        {"x: f32[4,6]; y: f32[4,6]; x", 1, 0, XT_EINVAL, "the chain has 2 inputs, and 1 file is given"},
        {"x: f32[6,4]:[1,6]+0; x", 1, 1, XT_EUNSUPPORTED,
         "columns.npy: is column-major, but input x has strides of its own"},
        {"x: f32[24]; x", 1, 2, XT_EDTYPE, "raw.npy: input x is f32, the file has raw elements of 2 bytes"},
        {"x: f32[6,4]:[1,7]+0; x", 1, 0, XT_EINVAL,
         "rows.npy: the input needs a buffer of 27 elements, the file has 24"},
        {"x: f32[6,4]:[1,6]+0; x", 1, 0, XT_OK, ""},
        {"x: f16[24]; x", 1, 2, XT_OK, ""},
    };
    static const char *const names[] = {"rows", "columns", "raw"};
    const struct form *const form[] = {&rows, &columns, &raw};
    char path[3][PATH], out[PATH];
    start();
    unsigned char *data = random_bytes(24 * 4, 1);
    snprintf(out, PATH, "%s/out.npy", dir);
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], PATH, "%s/%s.npy", dir, names[i]);
        put_npy(path[i], form[i], data);
    }
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *in[] = {path[row[i].first], path[0]};
        struct xt_files *f = (void *)1;
        xt_status s = xt_files_new(row[i].line, row[i].n, in, out, NULL, &f);
        const char *said = xt_last_error()->message;
        ck_assert_msg(s == row[i].status && strstr(said, row[i].said), "%s: %s", row[i].line, said);
        ck_assert(!s == !!f);
        xt_files_free(f);
    }
    free(data);
    finish();
}
END_TEST

START_TEST(a_run_that_was_begun_and_is_freed_leaves_nothing)
{
    const struct form form = {.kind = NPY, .dtype = XT_F32, .rank = 2, .shape = {64, 64}};
    struct xt_files_options o = {.size = sizeof o, .mem_bytes = 1 << 20};
    char path[PATH], out[PATH];
    const char *in[] = {path};
    struct xt_files *f, *other;
    start();
    snprintf(path, PATH, "%s/in.npy", dir);
    unsigned char *data = random_bytes(numel(&form) * 4, 1);
    put_npy(path, &form, data);
    for (int way = 0; way < 4; way++) {
        snprintf(out, PATH, "%s/out.%s", dir, way % 2 ? "zarr" : "npy");
        o.passes = 1 + way / 2;
        ck_assert_int_eq(xt_files_new("x; x.T", 1, in, out, &o, &f), XT_OK);
        ck_assert_int_eq(xt_files_new("x; x.T", 1, in, out, &o, &other), XT_OK);
        ck_assert(!xt_files_begin(f) && !xt_files_begin(f) && left_over(dir));
        ck_assert_int_eq(xt_files_begin(other), XT_EIO); /* another run is making this result */
        ck_assert_int_eq(xt_files_run(other), XT_EIO);
        xt_files_free(f);
        ck_assert_int_eq(left_over(dir), 0);
        ck_assert_int_eq(xt_files_run(other), XT_OK);
        xt_files_free(other);
        ck_assert(!left_over(dir) && !access(out, F_OK));
        remove_tree(out);
    }
    free(data);
    finish();
}
END_TEST

static int count_threads(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static int most_threads(void *arg, int64_t done, int64_t total)
{
    int n = count_threads(), *most = arg;
    (void)done, (void)total;
    *most = n > *most ? n : *most;
    return 0;
}

START_TEST(threads_of_a_run_end_with_it)
{
    enum { REQUESTS = 1, THREADS = 3 };
    const struct form form = {.kind = NPY, .dtype = XT_F32, .rank = 2, .shape = {1024, 2048}};
    int before = count_threads(), most = 0;
    struct xt_files_options o = {.size = sizeof o,
                                 .mem_bytes = 64 << 20,
                                 .requests = REQUESTS,
                                 .progress = most_threads,
                                 .arg = &most};
    char path[PATH], out[PATH];
    struct xt_files *f;
    start();
    setenv("XT_THREADS", "3", 1);
    snprintf(path, PATH, "%s/in.npy", dir);
    snprintf(out, PATH, "%s/out.npy", dir);
    unsigned char *data = random_bytes(numel(&form) * 4, 1);
    put_npy(path, &form, data);
    ck_assert_int_eq(xt_files_new("x; x.T", 1, (const char *[]){path}, out, &o, &f), XT_OK);
    ck_assert_int_eq(xt_files_run(f), XT_OK);
    ck_assert_int_eq(most, before + REQUESTS + THREADS - 1);
    ck_assert_int_eq(count_threads(), before);
    xt_files_free(f);
    free(data);
    finish();
}
END_TEST

START_TEST(each_allocation_of_a_run_may_fail)
{
    const struct form form[] = {
        {.kind = NPY, .dtype = XT_F32, .rank = 2, .shape = {64, 64}},
        {.kind = ZARR3, .dtype = XT_F32, .rank = 2, .shape = {64, 64}, .chunk = {16, 16}}};
    char path[PATH], out[PATH];
    const char *in[] = {path};
    int64_t live = xti_live_allocations();
    start();
    snprintf(path, PATH, "%s/in%s", dir, _i & 2 ? "" : ".npy");
    snprintf(out, PATH, "%s/out.%s", dir, _i & 1 ? "zarr" : "npy");
    unsigned char *data = random_bytes(numel(&form[0]) * 4, 1);
    put_array(path, &form[_i >> 1 & 1], data);
    xt_status s = XT_ENOMEM;
    for (int n = 1; s; n += n < 100 || test_full() ? 1 : 13) {
        struct xt_files_options o = {.size = sizeof o,
                                     .mem_bytes = 1 << 20,
                                     .tile_bytes = 2048,
                                     .requests = 4,
                                     .passes = 1 + (_i >> 2)};
        struct xt_files *f;
        xti_fail_alloc(n, n % 2);
        s = xt_files_new("x; x.T", 1, in, out, &o, &f);
        if (f)
            s = xt_files_run(f);
        ck_assert_msg(!s || s == XT_ENOMEM, "allocation %d: %s", n, xt_last_error()->message);
        xt_files_free(f);
        xti_fail_alloc(0, 0);
        ck_assert_int_eq(xti_live_allocations(), live);
        ck_assert_int_eq(!s, !access(out, F_OK));
    }
    free(data);
    finish();
}
END_TEST

START_TEST(headers_of_no_array_are_not_written)
{
    static char head[XT_NPY_ROOM];
    const struct xt_npy good = {.size = sizeof good, .dtype = XT_F32, .rank = 2, .shape = {3, 4}};
    const size_t aligns[] = {0, 1, 63, 4097, SIZE_MAX};
    const int wrong[] = {INT_MIN, -1, XT_MAX_RANK + 1, INT_MAX};
    ck_assert_uint_eq(xt_npy_write(&good, 64, head), 128);
    ck_assert_uint_eq(xt_npy_write(NULL, 64, head), 0);
    ck_assert_uint_eq(xt_npy_write(&good, 64, NULL), 0);
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(xt_npy_write(&good, aligns[i], head), 0);
    for (int i = 0; i < 4; i++) {
        struct xt_npy rank = good, dtype = good, extent = good, size = good;
        rank.rank = wrong[i];
        dtype.dtype = i ? (xt_dtype)wrong[i] : (xt_dtype)0;
        extent.shape[i % 2] = i < 2 ? -1 : INT64_MIN;
        size.size = (size_t)i;
        ck_assert_uint_eq(xt_npy_write(&rank, 64, head), 0);
        ck_assert_uint_eq(xt_npy_write(&dtype, 64, head), 0);
        ck_assert_uint_eq(xt_npy_write(&extent, 64, head), 0);
        ck_assert_uint_eq(xt_npy_write(&size, 64, head), 0);
    }
    struct xt_npy most = {.size = sizeof most, .dtype = XT_BF16, .rank = XT_MAX_RANK, .fortran_order = 1};
    for (int i = 0; i < XT_MAX_RANK; i++)
        most.shape[i] = INT64_MAX;
    ck_assert_uint_eq(xt_npy_write(&most, XT_NPY_ROOM, head), XT_NPY_ROOM);
}
END_TEST

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

START_TEST(as_many_requests_as_there_are_numbers_take_no_time_to_plan)
{
    struct xt_files_options o = {.size = sizeof o, .requests = INT_MAX, .mem_bytes = (int64_t)1 << 30};
    struct xt_files_info info = {.size = sizeof info};
    struct xt_files *f;
    double since = processor_seconds();
    ck_assert_int_eq(xt_files_new("x: f32[64,64]; x.T", 0, NULL, "o.npy", &o, &f), XT_OK);
    ck_assert(!xt_files_get(f, &info) && info.memory_bytes <= o.mem_bytes);
    xt_files_free(f);
    ck_assert_double_lt(processor_seconds() - since, 1);
}
END_TEST

START_TEST(tiles_of_runs_that_end_within_rows_are_long)
{
    static const char *const lines[] = {"x",
                                        "x[1:]",
                                        "x[::-1]",
                                        "x[:, 1:]",
                                        "x.roll(1,0)",
                                        "x.roll(1,1)",
                                        "x.pad((1,1),(1,1))",
                                        "x.reshape(4013,3391)",
                                        "concat(1, x, x[:, :3])"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct xt_files_options o = {.size = sizeof o, .mem_bytes = 16 << 20};
        struct xt_files_info info = {.size = sizeof info};
        struct xt_files *f;
        char line[LINE];
        snprintf(line, sizeof line, "x: f32[3391,4013]; %s", lines[i]);
        ck_assert_int_eq(xt_files_new(line, 0, NULL, "o.npy", &o, &f), XT_OK);
        ck_assert_int_eq(xt_files_get(f, &info), XT_OK);
        ck_assert_msg(info.passes == 1 && info.tiles < 200, "%s: %lld tiles", line, (long long)info.tiles);
        ck_assert_msg(info.reads < 2000 && info.writes < 2000 && info.read_bytes < 60 << 20,
                      "%s: %lld reads of %lld bytes, %lld writes", line, (long long)info.reads,
                      (long long)info.read_bytes, (long long)info.writes);
        xt_files_free(f);
    }
}
END_TEST

/* Exit status: that of a run whose files may have so many bytes. */
static int run_limited(const char *in, const char *out, int passes, rlim_t bytes)
{
    struct xt_files_options o = {.size = sizeof o, .mem_bytes = 1 << 22, .passes = passes};
    struct rlimit r = {bytes, bytes};
    struct xt_files *f;
    if (setrlimit(RLIMIT_FSIZE, &r) || xt_files_new("x; x.T", 1, &in, out, &o, &f))
        return 1;
    xt_status s = xt_files_run(f);
    bool told = !strcmp(strrchr(xt_last_error()->message, ':'), ": File too large");
    xt_files_free(f);
    return s != XT_EIO || !told;
}

START_TEST(a_limit_of_files_ends_a_run_and_no_host)
{
    const struct form form = {.kind = NPY, .dtype = XT_F32, .rank = 2, .shape = {64, 64}};
    const rlim_t limits[] = {0, 100, 1000, 5000, 16384 + 4095};
    char in[PATH], out[PATH];
    start();
    snprintf(in, PATH, "%s/in.npy", dir);
    unsigned char *data = random_bytes(numel(&form) * 4, 1);
    put_npy(in, &form, data);
    for (int way = 0; way < 4; way++)
        for (int i = 0; i < 5 - way % 2; i++) { /* a chunk has no header */
            snprintf(out, PATH, "%s/out.%s", dir, way % 2 ? "zarr" : "npy");
            pid_t child = fork_child();
            if (!child)
                _exit(run_limited(in, out, 1 + way / 2, limits[i]));
            ck_assert_msg(!end_of(child), "%s, %d passes, %d bytes", out, 1 + way / 2, (int)limits[i]);
            ck_assert_int_eq(left_over(dir), 0);
        }
    free(data);
    finish();
}
END_TEST

/* ---- runs that end before their time */

/* What a progress callback was told, and when it ends the run. */
struct told {
    int calls, stop; /* stop: at this call; 0: never */
    int64_t done, total;
    pid_t child; /* -1: one is started, which has what the run has open, and waits to be killed */
};

static int hear(void *arg, int64_t done, int64_t total)
{
    struct told *t = arg;
    t->done = done;
    t->total = total;
    if (t->child == -1 && !(t->child = fork()))
        for (;;)
            pause();
    return ++t->calls == t->stop;
}

/* in.npy of f32, whose name it gives. */
static const char *put_input(int64_t rows, int64_t columns)
{
    static char path[PATH];
    const struct form form = {.kind = NPY, .dtype = XT_F32, .rank = 2, .shape = {rows, columns}};
    snprintf(path, PATH, "%s/in.npy", dir);
    unsigned char *data = random_bytes(rows * columns * 4, 1);
    put_npy(path, &form, data);
    free(data);
    return path;
}

/* A directory with such an input, and, in out, the name of a result. */
static const char *start_with(int64_t rows, int64_t columns, char out[PATH])
{
    start();
    snprintf(out, PATH, "%s/out.npy", dir);
    return put_input(rows, columns);
}

static xt_status run_once(const char *line, const char *in, const char *out, struct xt_files_options *o,
                          int64_t *resumed)
{
    struct xt_files_info info = {.size = sizeof info};
    struct xt_files *f;
    xt_status s = xt_files_new(line, 1, &in, out, o, &f);
    ck_assert_msg(!s, "%s", xt_last_error()->message);
    s = xt_files_run(f);
    ck_assert(!xt_files_get(f, &info));
    *resumed = info.resumed;
    xt_files_free(f);
    return s;
}

START_TEST(each_tile_that_is_told_of_is_kept_and_counted_once)
{
    struct told t = {.stop = 1};
    struct xt_files_options o = {.size = sizeof o,
                                 .mem_bytes = 1 << 20,
                                 .tile_bytes = 1000,
                                 .passes = 1 + _i % 2,
                                 .progress = hear,
                                 .arg = &t};
    char out[PATH];
    int64_t before = 0, resumed;
    start();
    const char *in = put_input(67, 33);
    snprintf(out, PATH, "%s/out.%s", dir, _i / 2 ? "zarr" : "npy");
    for (int64_t n = 0; before < t.total || !n; n++, t.calls = 0) {
        xt_status s = run_once("x; x.T", in, out, &o, &resumed);
        ck_assert_int_eq(s, XT_ESTOPPED);
        ck_assert_int_eq(resumed, n);
        ck_assert_msg(t.done > before && t.done <= t.total, "tile %d: %d of %d, before %d", (int)n,
                      (int)t.done, (int)t.total, (int)before);
        before = t.done;
    }
    ck_assert_int_eq(run_once("x; x.T", in, out, &o, &resumed), XT_OK);
    finish();
}
END_TEST

START_TEST(a_child_of_the_host_keeps_no_later_run_away)
{
    struct told t = {.stop = 1, .child = -1};
    struct xt_files_options o = {
        .size = sizeof o, .mem_bytes = 1 << 20, .tile_bytes = 1000, .progress = hear, .arg = &t};
    char out[PATH];
    int64_t resumed;
    const char *in = start_with(64, 64, out);
    ck_assert_int_eq(run_once("x; x.T", in, out, &o, &resumed), XT_ESTOPPED);
    o.progress = NULL;
    xt_status s = run_once("x; x.T", in, out, &o, &resumed);
    ck_assert_int_gt(t.child, 0);
    kill(t.child, SIGKILL);
    ck_assert_int_eq(s, XT_OK);
    waitpid(t.child, NULL, 0);
    finish();
}
END_TEST

static int limit_files(rlim_t bytes)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_FSIZE, &r))
        return -1;
    r.rlim_cur = bytes;
    return setrlimit(RLIMIT_FSIZE, &r);
}

START_TEST(a_run_that_could_not_begin_begins_again)
{
    struct told t = {.stop = 1};
    struct xt_files_options o = {
        .size = sizeof o, .mem_bytes = 1 << 20, .tile_bytes = 1000, .progress = hear, .arg = &t};
    char out[PATH];
    int64_t resumed;
    struct xt_files *f;
    const char *in = start_with(64, 64, out);
    ck_assert_int_eq(xt_files_new("x; x.T", 1, &in, out, &o, &f), XT_OK);
    bool limited = !limit_files(0); /* check writes, too */
    xt_status first = xt_files_begin(f), second = xt_files_begin(f);
    limited &= !limit_files(RLIM_INFINITY);
    ck_assert(limited && first == XT_EIO && second == XT_EIO && !left_over(dir));
    ck_assert_int_eq(xt_files_run(f), XT_ESTOPPED);
    xt_files_free(f);
    ck_assert_int_eq(run_once("x; x.T", in, out, &o, &resumed), XT_OK);
    ck_assert_int_eq(resumed, 1);
    finish();
}
END_TEST

START_TEST(a_run_that_repeats_much_goes_on_with_less_memory)
{
    struct told t = {.stop = 1};
    struct xt_files_options o = {
        .size = sizeof o, .mem_bytes = 1 << 30, .passes = 1, .progress = hear, .arg = &t};
    char out[PATH];
    int64_t resumed;
    const char *in = start_with(1, 100, out);
    ck_assert_int_eq(run_once("x; x.expand(20000,100)", in, out, &o, &resumed), XT_ESTOPPED);
    o.mem_bytes = 1 << 20;
    ck_assert_int_eq(run_once("x; x.expand(20000,100)", in, out, &o, &resumed), XT_OK);
    ck_assert_int_eq(resumed, 1);
    finish();
}
END_TEST

/* ---- shares */

/* The other share of a run, which runs while this one waits for it, and what came of it. */
struct other {
    struct xt_files *f;
    rlim_t descriptors; /* that it may have open; 0: as many as now */
    bool ran;
    xt_status got;
};

static rlim_t limit_descriptors(rlim_t n)
{
    struct rlimit r;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
    rlim_t was = r.rlim_cur;
    r.rlim_cur = n;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
    return was;
}

/* One of the two fails before they meet. */
static int let_other_run(void *arg, int failed)
{
    struct other *o = arg;
    (void)failed;
    if (o && !o->ran) {
        o->ran = true;
        if (o->descriptors)
            limit_descriptors(o->descriptors);
        o->got = xt_files_run(o->f);
    }
    return 1;
}

/* Share 0, which has begun, and the other, with the same options. */
static struct xt_files *open_shares(const char *in, const char *out, struct other *other)
{
    struct xt_files_options o = {.size = sizeof o,
                                 .mem_bytes = 1 << 20,
                                 .tile_bytes = 1000,
                                 .passes = 1,
                                 .restart = 1,
                                 .shares = 2,
                                 .meet = let_other_run,
                                 .meet_arg = other};
    struct xt_files *f;
    ck_assert_int_eq(xt_files_new("x; x[::-1]", 1, &in, out, &o, &f), XT_OK);
    ck_assert_int_eq(xt_files_begin(f), XT_OK);
    o.share = 1, o.meet_arg = NULL;
    ck_assert_int_eq(xt_files_new("x; x[::-1]", 1, &in, out, &o, &other->f), XT_OK);
    ck_assert_int_eq(xt_files_begin(other->f), XT_OK);
    return f;
}

START_TEST(what_one_share_has_done_is_kept_when_another_fails_at_once)
{
    struct other other = {0};
    struct xt_files_options o = {.size = sizeof o, .mem_bytes = 1 << 20};
    struct xt_files_info info = {.size = sizeof info};
    char out[PATH];
    int64_t resumed;
    const char *in = start_with(64, 64, out);
    struct xt_files *f = open_shares(in, out, &other);
    other.descriptors = limit_descriptors(0);
    ck_assert_int_eq(xt_files_run(f), XT_EIO);
    ck_assert_int_eq(other.got, XT_EPEER);
    ck_assert(!xt_files_get(f, &info));
    xt_files_free(f);
    xt_files_free(other.f);
    ck_assert_int_eq(run_once("x; x[::-1]", in, out, &o, &resumed), XT_OK);
    ck_assert_int_eq(resumed, info.tiles / 2);
    finish();
}
END_TEST

START_TEST(what_one_share_sees_changed_ends_the_run_of_all_for_good)
{
    enum { TICK_US = 20000 }; /* of the clock of files, at most */
    const struct form form = {
        .kind = ZARR3, .dtype = XT_F32, .rank = 2, .shape = {64, 64}, .chunk = {1, 64}, .dotted = true};
    struct other other = {0};
    struct xt_files_options o = {.size = sizeof o, .mem_bytes = 1 << 20};
    char in[PATH], out[PATH], chunk[PATH + 8];
    int64_t resumed;
    start();
    snprintf(in, PATH, "%s/in", dir);
    snprintf(out, PATH, "%s/out.npy", dir);
    snprintf(chunk, sizeof chunk, "%s/c.0.0", in); /* of the last tile */
    unsigned char *data = random_bytes(numel(&form) * 4, 1);
    put_array(in, &form, data);
    usleep(TICK_US);
    struct xt_files *f = open_shares(in, out, &other);
    usleep(TICK_US);
    put_file(chunk, data, 64 * 4);
    ck_assert_int_eq(xt_files_run(f), XT_EPEER);
    ck_assert_int_eq(other.got, XT_EIO);
    xt_files_free(f);
    xt_files_free(other.f);
    ck_assert_int_eq(left_over(dir), 0);
    ck_assert_int_eq(run_once("x; x[::-1]", in, out, &o, &resumed), XT_OK);
    free(data);
    finish();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("files");
    TCase *c = tcase_create("files");
    tcase_set_timeout(c, test_full() ? 3600 : 120);
    tcase_add_loop_test(c, random_chains_on_files_are_the_chains_in_memory, 0, PARTS);
    tcase_add_loop_test(c, golden_chains_on_files_are_the_chains_in_memory, 0, PARTS);
    tcase_add_test(c, options_of_other_versions_are_taken_and_those_that_make_no_sense_refused);
    tcase_add_test(c, results_that_cannot_be_are_refused_with_a_sentence);
    tcase_add_test(c, inputs_that_the_line_cannot_have_are_refused_by_name);
    tcase_add_test(c, a_run_that_was_begun_and_is_freed_leaves_nothing);
    tcase_add_test(c, threads_of_a_run_end_with_it);
    tcase_add_loop_test(c, each_allocation_of_a_run_may_fail, 0, 8);
    tcase_add_test(c, headers_of_no_array_are_not_written);
    tcase_add_test(c, as_many_requests_as_there_are_numbers_take_no_time_to_plan);
    tcase_add_loop_test(c, rows_that_share_blocks_are_written_side_by_side, 0, PARTS);
    tcase_add_test(c, tiles_of_runs_that_end_within_rows_are_long);
    tcase_add_test(c, a_limit_of_files_ends_a_run_and_no_host);
    tcase_add_loop_test(c, each_tile_that_is_told_of_is_kept_and_counted_once, 0, 4);
    tcase_add_test(c, a_child_of_the_host_keeps_no_later_run_away);
    tcase_add_test(c, a_run_that_could_not_begin_begins_again);
    tcase_add_test(c, a_run_that_repeats_much_goes_on_with_less_memory);
    tcase_add_test(c, what_one_share_has_done_is_kept_when_another_fails_at_once);
    tcase_add_test(c, what_one_share_sees_changed_ends_the_run_of_all_for_good);
    suite_add_tcase(s, c);
    return run_suite(s);
}
