/* zarr.c: what describes a zarr array: .zarray of format 2, zarr.json of format 3. Layer 6. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "files/json.h"
#include "files/array.h"
#include "graph/value.h"

enum { MOST_BYTES = 16 << 20 };

static const char *const file_of[] = {[XTI_ARRAY_ZARR2] = ".zarray", [XTI_ARRAY_ZARR3] = "zarr.json"};

const char *xti_zarr_file(const struct xti_array *s) { return file_of[s->kind]; }

/* What is read of it: attributes may be long. Format 3 has any other member understood, format 2 none. */
static const char *const wanted2[] = {"zarr_format",         "shape", "chunks",     "dtype",
                                      "fill_value",          "order", "compressor", "filters",
                                      "dimension_separator", NULL};
static const char *const wanted3[] = {"zarr_format", "node_type",        "shape",
                                      "data_type",   "chunk_grid",       "chunk_key_encoding",
                                      "fill_value",  "codecs",           "storage_transformers",
                                      "-attributes", "-dimension_names", NULL};
static const char *const *const wanted[] = {[XTI_ARRAY_ZARR2] = wanted2, [XTI_ARRAY_ZARR3] = wanted3};

/* ---- element types */

/* The first row of a type is how it is written. */
/* clang-format off */
static const struct name {
    const char *v2, *v3; /* NULL: it has none there */
    xt_dtype dtype;
    bool raw;
} names[] = {
    {"|b1", "bool", XT_BOOL, 0},          {"|u1", "uint8", XT_U8, 0},     {"|i1", "int8", XT_I8, 0},
    {"<u2", "uint16", XT_U16, 0},         {"<i2", "int16", XT_I16, 0},    {"<u4", "uint32", XT_U32, 0},
    {"<i4", "int32", XT_I32, 0},          {"<u8", "uint64", XT_U64, 0},   {"<i8", "int64", XT_I64, 0},
    {"<f2", "float16", XT_F16, 0},        {"<f4", "float32", XT_F32, 0},  {"<f8", "float64", XT_F64, 0},
    {"<c8", "complex64", XT_C64, 0},      {"<c16", "complex128", XT_C128, 0},
    {NULL, "bfloat16", XT_BF16, 0},       {NULL, "float8_e4m3fn", XT_F8E4M3, 0},
    {NULL, "float8_e5m2", XT_F8E5M2, 0},  {"|V1", "r8", XT_F8E4M3, 1},    {"|V1", NULL, XT_F8E5M2, 1},
    {"|V2", "r16", XT_BF16, 1},           {"<V2", NULL, XT_BF16, 1},      {"|V4", "r32", XT_U32, 1},
    {"|V8", "r64", XT_U64, 1},            {"|V16", "r128", XT_C128, 1},
};
/* clang-format on */
enum { N_NAMES = sizeof names / sizeof *names };

static const char *name_in(const struct name *n, const struct xti_array *s)
{
    return s->kind == XTI_ARRAY_ZARR2 ? n->v2 : n->v3;
}

static xt_status read_dtype(struct xti_array *s, const struct xti_json *v, struct xti_err *err)
{
    const char *text = v && v->kind == XTI_JSON_STRING ? v->text : NULL;
    for (int i = 0; text && i < N_NAMES; i++)
        if (name_in(&names[i], s) && !strcmp(text, name_in(&names[i], s))) {
            s->dtype = names[i].dtype;
            s->raw = names[i].raw;
            return XT_OK;
        }
    if (text && text[0] == '>')
        return xti_fail(err, XT_EUNSUPPORTED,
                        "%s: its elements are big-endian (%.20s): write a copy of dtype '<%.19s'", s->said,
                        text, text + 1);
    return xti_fail(err, XT_EUNSUPPORTED, "%s: element type '%.40s' is not supported", s->said,
                    text ? text : "(structured)");
}

static const char *written_dtype(const struct xti_array *s)
{
    for (int i = 0; i < N_NAMES; i++)
        if (names[i].dtype == s->dtype && name_in(&names[i], s))
            return name_in(&names[i], s);
    return "";
}

/* ---- the value of chunks that are not there */

/* How the language writes it. */
static bool fill_text(const struct xti_json *v, struct xti_str *b)
{
    static const char *const word[][2] = {{"NaN", "nan"}, {"Infinity", "inf"}, {"-Infinity", "-inf"}};
    if (v->kind == XTI_JSON_NUMBER)
        return xti_str_add(b, v->text), true;
    if (v->kind == XTI_JSON_BOOL)
        return xti_str_add(b, v->yes ? "True" : "False"), true;
    for (int i = 0; i < 3; i++)
        if (xti_json_is(v, word[i][0]))
            return xti_str_add(b, word[i][1]), true;
    if (v->kind == XTI_JSON_STRING && !strncmp(v->text, "0x", 2))
        return xti_str_addf(b, "bits(%s)", v->text), true;
    if (v->kind != XTI_JSON_LIST || v->n != 2)
        return false;
    xti_str_add(b, "(");
    bool ok = v->first->kind != XTI_JSON_LIST && fill_text(v->first, b);
    xti_str_add(b, ",");
    ok = ok && v->first->next->kind != XTI_JSON_LIST && fill_text(v->first->next, b);
    xti_str_add(b, ")");
    return ok;
}

/* Raw elements have theirs in base64: zeros alone are taken. */
static bool zero_base64(const struct xti_json *v)
{
    return v->kind == XTI_JSON_STRING && strspn(v->text, "A=") == strlen(v->text);
}

static xt_status read_fill(struct xti_array *s, const struct xti_json *v, struct xti_err *err)
{
    struct xti_str b = {0};
    if (!v || v->kind == XTI_JSON_NULL || (s->raw && zero_base64(v)))
        return XT_OK;
    bool ok = fill_text(v, &b) && b.s && !xti_value_parse(s->dtype, b.s, b.n, s->fill);
    bool no_memory = b.failed;
    xti_str_free(&b);
    if (no_memory)
        return xti_fail(err, XT_ENOMEM, "%s: out of memory", s->said);
    return ok ? XT_OK
              : xti_fail(err, XT_EUNSUPPORTED, "%s: its fill_value is no %s", s->said,
                         xt_dtype_name(s->dtype));
}

/* ---- reading */

static xt_status broken(const struct xti_array *s, const char *what, struct xti_err *err)
{
    return xti_fail(err, XT_EIO, "%s: %s: %s", s->said, xti_zarr_file(s), what);
}

static xt_status compressed(const struct xti_array *s, const char *how, struct xti_err *err)
{
    return xti_fail(err, XT_EUNSUPPORTED,
                    "%s: its chunks are %.60s, and xt reads plain ones: write a copy with %s", s->said, how,
                    s->kind == XTI_ARRAY_ZARR2 ? "compressor=None, filters=None"
                                               : "compressors=None, without shards");
}

static xt_status read_shape(struct xti_array *s, const struct xti_json *shape, const struct xti_json *chunks,
                            struct xti_err *err)
{
    s->rank = xti_json_ints(shape, XT_MAX_RANK, s->shape);
    if (s->rank < 0 || xti_json_ints(chunks, XT_MAX_RANK, s->chunk) != s->rank)
        return broken(s, "its shape, or its chunks' shape, is no list of as many extents, 32 at most", err);
    for (int i = 0; i < s->rank; i++)
        if (s->shape[i] < 0 || s->chunk[i] < 1)
            return broken(s, "an extent is negative, or a chunk's is not positive", err);
    return XT_OK;
}

static const char *id_of(const struct xti_json *v, const char *key)
{
    const struct xti_json *id = xti_json_at(v, key);
    return id && id->kind == XTI_JSON_STRING ? id->text : "encoded";
}

static xt_status read_v2(struct xti_array *s, const struct xti_json *v, struct xti_err *err)
{
    const struct xti_json *compressor = xti_json_at(v, "compressor"), *filters = xti_json_at(v, "filters");
    const struct xti_json *order = xti_json_at(v, "order"),
                          *separator = xti_json_at(v, "dimension_separator");
    if (compressor && compressor->kind != XTI_JSON_NULL)
        return compressed(s, id_of(compressor, "id"), err);
    if (filters && filters->kind != XTI_JSON_NULL && filters->n)
        return compressed(s, id_of(filters->first, "id"), err);
    xt_status st = read_shape(s, xti_json_at(v, "shape"), xti_json_at(v, "chunks"), err);
    if (!st)
        st = read_dtype(s, xti_json_at(v, "dtype"), err);
    if (!st)
        st = read_fill(s, xti_json_at(v, "fill_value"), err);
    s->fortran = xti_json_is(order, "F") && s->rank > 1;
    s->separator = xti_json_is(separator, "/") ? '/' : '.';
    if (!st && !xti_json_is(order, "F") && !xti_json_is(order, "C"))
        st = broken(s, "'order' is neither C nor F", err);
    return st;
}

/* Of one codec that makes bytes: as it lies in memory. */
static xt_status read_codecs(struct xti_array *s, const struct xti_json *v, struct xti_err *err)
{
    const struct xti_json *first = v && v->kind == XTI_JSON_LIST ? v->first : NULL;
    if (!first)
        return broken(s, "'codecs' is no list of them", err);
    for (const struct xti_json *c = first; c; c = c->next)
        if (!xti_json_is(xti_json_at(c, "name"), "bytes"))
            return compressed(s, id_of(c, "name"), err);
    if (xti_json_is(xti_json_at(xti_json_at(first, "configuration"), "endian"), "big") &&
        xt_dtype_bytes(s->dtype) > 1)
        return xti_fail(err, XT_EUNSUPPORTED,
                        "%s: its elements are big-endian: write a copy that is little-endian", s->said);
    return first->next ? broken(s, "'bytes' is there twice", err) : XT_OK;
}

/* How chunks are named: an object, or its name alone. */
static xt_status read_names(struct xti_array *s, const struct xti_json *v, struct xti_err *err)
{
    const struct xti_json *name = v && v->kind == XTI_JSON_STRING ? v : xti_json_at(v, "name"),
                          *separator = xti_json_at(xti_json_at(v, "configuration"), "separator");
    s->prefix = xti_json_is(name, "default");
    s->separator = xti_json_is(separator, ".") || (!separator && !s->prefix) ? '.' : '/';
    bool known = (s->prefix || xti_json_is(name, "v2")) &&
                 (!separator || s->separator == '.' || xti_json_is(separator, "/"));
    return known ? XT_OK
                 : xti_fail(err, XT_EUNSUPPORTED,
                            "%s: its chunk_key_encoding is neither 'default' nor 'v2' with '/' or '.'",
                            s->said);
}

static xt_status read_v3(struct xti_array *s, const struct xti_json *v, struct xti_err *err)
{
    const struct xti_json *grid = xti_json_at(v, "chunk_grid");
    const struct xti_json *more = xti_json_at(v, "storage_transformers");
    if (!xti_json_is(xti_json_at(v, "node_type"), "array"))
        return broken(s, "is a group: name one of its arrays", err);
    if (!xti_json_is(xti_json_at(grid, "name"), "regular"))
        return xti_fail(err, XT_EUNSUPPORTED, "%s: its chunks are no regular grid", s->said);
    if (more && more->n)
        return compressed(s, "transformed", err);
    if (v->text)
        return xti_fail(err, XT_EUNSUPPORTED,
                        "%s: zarr.json has '%s', which must be understood, and xt does not", s->said,
                        v->text);
    xt_status st = read_shape(s, xti_json_at(v, "shape"),
                              xti_json_at(xti_json_at(grid, "configuration"), "chunk_shape"), err);
    if (!st)
        st = read_names(s, xti_json_at(v, "chunk_key_encoding"), err);
    if (!st)
        st = read_dtype(s, xti_json_at(v, "data_type"), err);
    if (!st)
        st = read_codecs(s, xti_json_at(v, "codecs"), err);
    return st ? st : read_fill(s, xti_json_at(v, "fill_value"), err);
}

static xt_status read_text(struct xti_array *s, int fd, struct xti_err *err)
{
    struct xti_arena arena = {0};
    int64_t format = 0;
    if (fstat(fd, &s->stat) || s->stat.st_size > MOST_BYTES)
        return broken(s, "cannot be read", err);
    char *text = xti_alloc((size_t)s->stat.st_size + 1);
    bool no_memory = !text;
    ssize_t n = text ? pread(fd, text, (size_t)s->stat.st_size, 0) : -1;
    const struct xti_json *v =
        n == s->stat.st_size ? xti_json_read(text, (size_t)n, wanted[s->kind], &arena, &no_memory) : NULL;
    xt_status st;
    if (no_memory)
        st = xti_fail(err, XT_ENOMEM, "%s: out of memory", s->said);
    else if (!v || !xti_json_int(xti_json_at(v, "zarr_format"), &format) ||
             format != (s->kind == XTI_ARRAY_ZARR2 ? 2 : 3))
        st = broken(s, "is no JSON object with the 'zarr_format' of its name, or not one of an array", err);
    else
        st = s->kind == XTI_ARRAY_ZARR2 ? read_v2(s, v, err) : read_v3(s, v, err);
    xti_arena_free(&arena);
    xti_free(text);
    return st;
}

static int open_kind(const char *path, enum xti_array_kind *kind)
{
    int fd = -1, dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    for (int k = XTI_ARRAY_ZARR3; k >= XTI_ARRAY_ZARR2 && fd < 0; k--) {
        fd = openat(dir, file_of[k], XTI_FILE_READ);
        *kind = (enum xti_array_kind)k;
    }
    int e = errno;
    close(dir);
    errno = e;
    return fd;
}

bool xti_zarr_there(const char *path)
{
    enum xti_array_kind kind;
    int fd = open_kind(path, &kind);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

xt_status xti_zarr_open(struct xti_array *s, struct xti_err *err)
{
    int fd = open_kind(s->path, &s->kind);
    if (fd < 0)
        return xti_fail(err, XT_EIO, "%s: %s", s->said, strerror(errno));
    xt_status st = read_text(s, fd, err);
    close(fd);
    return st;
}

/* ---- writing */

static void fill_json(const struct xti_array *s, struct xti_str *b)
{
    const struct xti_dtype *d = xti_dtype(s->dtype);
    bool text = s->kind == XTI_ARRAY_ZARR2 && written_dtype(s)[1] == 'V';
    xti_str_add(b, text                          ? "null"
                   : d->kind == XTI_KIND_BOOL    ? "false"
                   : d->kind == XTI_KIND_COMPLEX ? "[0.0, 0.0]"
                   : d->kind == XTI_KIND_FLOAT   ? "0.0"
                                                 : "0");
}

void xti_zarr_describe(const struct xti_array *s, struct xti_str *b)
{
    bool v2 = s->kind == XTI_ARRAY_ZARR2;
    xti_str_addf(b, "{\"zarr_format\": %d, \"shape\": ", v2 ? 2 : 3);
    xti_str_list(b, s->rank, s->shape);
    xti_str_add(b, v2 ? ", \"chunks\": "
                      : ", \"node_type\": \"array\", \"chunk_grid\": {\"name\": \"regular\", "
                        "\"configuration\": {\"chunk_shape\": ");
    xti_str_list(b, s->rank, s->chunk);
    xti_str_addf(b,
                 v2 ? ", \"dtype\": \"%s\", \"fill_value\": " : "}}, \"data_type\": \"%s\", \"fill_value\": ",
                 written_dtype(s));
    fill_json(s, b);
    xti_str_add(b,
                v2 ? ", \"order\": \"C\", \"compressor\": null, \"filters\": null, "
                     "\"dimension_separator\": \".\"}\n"
                   : ", \"chunk_key_encoding\": {\"name\": \"default\", \"configuration\": {\"separator\": "
                     "\"/\"}}, \"codecs\": [{\"name\": \"bytes\", \"configuration\": {\"endian\": "
                     "\"little\"}}], \"attributes\": {}}\n");
}
