/* npy.c: the .npy format as numpy.lib.format describes it: magic, version, header length, a Python dict
 * literal with 'descr', 'fortran_order' and 'shape', then the elements. The dict is parsed here, not
 * evaluated: nothing but those three keys and these literals is accepted. */
#include "npy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are written as they lie in memory");

enum { MAGIC_BYTES = 8, MAX_HEADER = 10000 /* NumPy's limit */, ALIGN = 64 };

/* descr without its byte order. For writing the first row of a dtype counts. */
/* clang-format off */
static const struct kind {
    const char *code;
    char order; /* as NumPy writes it */
    xt_dtype dtype;
    size_t width;
    int raw;
} kinds[] = {
    {"b1", '|', XT_BOOL, 1, 0},  {"u1", '|', XT_U8, 1, 0},   {"i1", '|', XT_I8, 1, 0},
    {"u2", '<', XT_U16, 2, 0},   {"i2", '<', XT_I16, 2, 0},  {"f2", '<', XT_F16, 2, 0},
    {"u4", '<', XT_U32, 4, 0},   {"i4", '<', XT_I32, 4, 0},  {"f4", '<', XT_F32, 4, 0},
    {"u8", '<', XT_U64, 8, 0},   {"i8", '<', XT_I64, 8, 0},  {"f8", '<', XT_F64, 8, 0},
    {"c8", '<', XT_C64, 8, 0},   {"c16", '<', XT_C128, 16, 0},
    {"V1", '|', XT_F8E4M3, 1, 1}, {"V2", '<', XT_BF16, 2, 1}, {"V4", '|', XT_U32, 4, 1},
    {"V8", '|', XT_U64, 8, 1},   {"V16", '|', XT_C128, 16, 1},
    {"f1", '<', XT_F8E5M2, 1, 0}, /* what ml_dtypes saves; np.load refuses it, so V1 is written */
    {"bfloat16", 0, XT_BF16, 2, 0},
    {"float8_e4m3fn", 0, XT_F8E4M3, 1, 0}, {"float8_e5m2", 0, XT_F8E5M2, 1, 0},
};
/* clang-format on */
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* ------------------------------------------------------------------------------------- the dict literal */

struct text {
    const char *file; /* its name */
    const char *p, *end;
    int version;
};

static void skip_space(struct text *t)
{
    while (t->p < t->end && *t->p && strchr(" \t\r\n\f", *t->p))
        t->p++;
}

static int accept(struct text *t, char c)
{
    skip_space(t);
    if (t->p >= t->end || *t->p != c)
        return 0;
    t->p++;
    return 1;
}

static int accept_word(struct text *t, const char *word)
{
    size_t n = strlen(word);
    skip_space(t);
    if ((size_t)(t->end - t->p) < n || memcmp(t->p, word, n))
        return 0;
    t->p += n;
    return 1;
}

/* A string without escapes, which none of ours needs. */
static int parse_string(struct text *t, char *out, size_t size)
{
    char quote = accept(t, '\'') ? '\'' : accept(t, '"') ? '"' : 0;
    size_t n = 0;
    if (!quote)
        return 0;
    while (t->p < t->end && *t->p != quote) {
        if (*t->p == '\\' || (unsigned char)*t->p < ' ' || n + 1 >= size)
            return 0;
        out[n++] = *t->p++;
    }
    out[n] = 0;
    return t->p < t->end && *t->p++ == quote;
}

/* As Python reads it: no zeros in front, and an L behind it from Python 2 alone. */
static int parse_extent(struct text *t, int64_t *out)
{
    const char *start;
    int64_t v = 0;
    skip_space(t);
    for (start = t->p; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *t->p - '0', &v))
            return 0;
    *out = v;
    return t->p > start && (*start != '0' || v == 0) && ((t->version < 3 && accept(t, 'L')) || 1);
}

static int parse_shape(struct text *t, struct npy *a)
{
    int comma = 1;
    a->rank = 0;
    if (!accept(t, '('))
        return fail_file(t->file, "'shape' is no tuple");
    while (!accept(t, ')')) {
        if (a->rank == XT_MAX_RANK)
            return fail_file(t->file, "more than %d axes", XT_MAX_RANK);
        if (!comma || !parse_extent(t, &a->shape[a->rank]))
            return fail_file(t->file, "'shape': axis %d is no extent that fits in 63 bits", a->rank);
        a->rank++;
        comma = accept(t, ',');
    }
    if (a->rank == 1 && !comma)
        return fail_file(t->file, "'shape' is no tuple");
    return 0;
}

static const struct kind *find_code(const char *code)
{
    for (int i = 0; i < N_KINDS; i++)
        if (!strcmp(kinds[i].code, code))
            return &kinds[i];
    return NULL;
}

static int parse_descr(struct text *t, const struct kind **kind)
{
    char descr[64];
    if (!parse_string(t, descr, sizeof descr))
        return fail_file(t->file, "'descr' is no plain string: structured types are not supported");
    int ordered = descr[0] && strchr("<>=|", descr[0]) != NULL;
    *kind = find_code(descr + ordered);
    if (!*kind || (ordered && !(*kind)->order))
        return fail_file(t->file, "element type '%s' is not supported", descr);
    if (descr[0] == '>' && (*kind)->width > 1)
        return fail_file(t->file,
                         "element type '%s' is big-endian; convert it: a.astype(a.dtype.newbyteorder('<'))",
                         descr);
    return 0;
}

static int parse_order(struct text *t, struct npy *a)
{
    a->fortran_order = accept_word(t, "True");
    return a->fortran_order || accept_word(t, "False")
               ? 0
               : fail_file(t->file, "'fortran_order' is neither True nor False");
}

static int parse_item(struct text *t, struct npy *a, const struct kind **kind, unsigned *seen)
{
    static const char *const names[] = {"descr", "fortran_order", "shape"};
    char key[32];
    unsigned k = 0;
    if (!parse_string(t, key, sizeof key) || !accept(t, ':'))
        return fail_file(t->file, "the header is no dict of strings");
    while (k < 3 && strcmp(key, names[k]))
        k++;
    if (k == 3 || *seen & 1u << k)
        return fail_file(t->file, "the header's key '%s' is %s", key, k == 3 ? "unknown" : "there twice");
    *seen |= 1u << k;
    return k == 0 ? parse_descr(t, kind) : k == 1 ? parse_order(t, a) : parse_shape(t, a);
}

static int parse_header(struct text *t, struct npy *a, const struct kind **kind)
{
    unsigned seen = 0;
    int comma = 1;
    if (!accept(t, '{'))
        return fail_file(t->file, "the header is no dict");
    while (!accept(t, '}')) {
        if (!comma)
            return fail_file(t->file, "the header has no comma between items");
        if (parse_item(t, a, kind, &seen))
            return EXIT_BAD_INPUT;
        comma = accept(t, ',');
    }
    skip_space(t);
    if (t->p != t->end)
        return fail_file(t->file, "something follows the header's dict");
    return seen == 7 ? 0 : fail_file(t->file, "the header lacks 'descr', 'fortran_order' or 'shape'");
}

/* ---------------------------------------------------------------------------------------------- reading */

/* Bytes read, fewer only at the end of the file; -1: errno. */
static ssize_t read_bytes(int fd, void *p, size_t bytes)
{
    size_t have = 0;
    while (have < bytes) {
        ssize_t n = read(fd, (char *)p + have, bytes - have);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return -1;
        have += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)have;
}

int npy_read_bytes(int fd, const char *file, void *p, size_t bytes)
{
    ssize_t n = read_bytes(fd, p, bytes);
    return n < 0               ? fail_file(file, "%s", strerror(errno))
           : (size_t)n < bytes ? fail_file(file, "is cut short")
                               : 0;
}

static int check_magic(int fd, const char *file, unsigned char *version)
{
    unsigned char b[MAGIC_BYTES];
    ssize_t n = read_bytes(fd, b, sizeof b);
    if (n < 0)
        return fail_file(file, "%s", strerror(errno));
    if (n == 0)
        return fail_file(file, "is empty, and so is no .npy file");
    if (n >= 4 && !memcmp(b, "PK\3\4", 4))
        return fail_file(file, "is no .npy file but an archive, perhaps .npz: np.save each of its arrays");
    if (n < MAGIC_BYTES || memcmp(b, "\x93NUMPY", 6))
        return fail_file(file, "is no .npy file: np.save writes one");
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return fail_file(file, "format version %d.%d is not supported", b[6], b[7]);
    *version = b[6];
    return 0;
}

/* 0 when an extent is 0 though others overflow; -1: does not fit. */
static int64_t count_bytes(const struct npy *a, size_t width)
{
    int64_t bytes = (int64_t)width;
    int fits = 1;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] == 0)
            return 0;
    for (int i = 0; i < a->rank; i++)
        fits = fits && !__builtin_mul_overflow(bytes, a->shape[i], &bytes);
    return fits ? bytes : -1;
}

int npy_read_header(int fd, const char *file, struct npy *out)
{
    unsigned char version = 0, n[4] = {0};
    char header[MAX_HEADER];
    const struct kind *kind = NULL;
    struct npy a = {0};
    *out = a;
    if (check_magic(fd, file, &version) || npy_read_bytes(fd, file, n, version == 1 ? 2 : 4))
        return EXIT_BAD_INPUT;
    size_t bytes = n[0] | (size_t)n[1] << 8 | (size_t)n[2] << 16 | (size_t)n[3] << 24;
    if (bytes > sizeof header)
        return fail_file(file, "a header of %zu bytes is not supported: NumPy's limit is %d", bytes,
                         MAX_HEADER);
    struct text t = {file, header, header + bytes, version};
    if (npy_read_bytes(fd, file, header, bytes) || parse_header(&t, &a, &kind))
        return EXIT_BAD_INPUT;
    int64_t size = count_bytes(&a, kind->width);
    if (size < 0)
        return fail_file(file, "the array's size does not fit in 63 bits");
    a.at = MAGIC_BYTES + (version == 1 ? 2 : 4) + (int64_t)bytes;
    a.bytes = (size_t)size;
    a.dtype = kind->dtype;
    a.raw = kind->raw;
    *out = a;
    return 0;
}

int npy_is(struct npy *a, xt_dtype dtype)
{
    if (a->raw && xt_dtype_bytes(a->dtype) == xt_dtype_bytes(dtype))
        a->dtype = dtype;
    return a->dtype == dtype;
}

/* ---------------------------------------------------------------------------------------------- writing */

static const struct kind *find_written(xt_dtype dtype)
{
    if (dtype == XT_F8E5M2)
        return find_code("V1");
    for (int i = 0; i < N_KINDS; i++)
        if (kinds[i].dtype == dtype)
            return &kinds[i];
    return NULL;
}

/* Version 1.0, padded with spaces so that the elements start at a multiple of 64 bytes. */
size_t npy_make_header(const struct npy *a, char out[NPY_HEADER_ROOM])
{
    const struct kind *k = find_written(a->dtype);
    char *text = out + MAGIC_BYTES + 2;
    size_t room = NPY_HEADER_ROOM - MAGIC_BYTES - 2 - ALIGN;
    size_t n = (size_t)snprintf(text, room, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (", k->order,
                                k->code, a->fortran_order ? "True" : "False");
    for (int i = 0; i < a->rank; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%lld", i ? ", " : "", (long long)a->shape[i]);
    n += (size_t)snprintf(text + n, room - n, "%s), }", a->rank == 1 ? "," : "");
    size_t end = (MAGIC_BYTES + 2 + n + 1 + ALIGN - 1) / ALIGN * ALIGN, bytes = end - MAGIC_BYTES - 2;
    memset(text + n, ' ', bytes - n);
    text[bytes - 1] = '\n';
    memcpy(out, "\x93NUMPY\1\0", MAGIC_BYTES);
    out[MAGIC_BYTES] = (char)(bytes & 255);
    out[MAGIC_BYTES + 1] = (char)(bytes >> 8);
    return end;
}
