/* npy.c: the .npy format as numpy.lib.format describes it: magic, version, header length, a Python dict
 * literal with 'descr', 'fortran_order' and 'shape', then the elements. The dict is parsed here, not
 * evaluated: nothing but those three keys and these literals is accepted. */
#include "npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are written as they lie in memory");

enum { MAGIC_BYTES = 8, MAX_HEADER = 1 << 16, ALIGN = 64 };

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

struct sink {
    const char *path;
    char *err;
    size_t err_size;
};

__attribute__((format(printf, 2, 3))) static int fail(const struct sink *to, const char *fmt, ...)
{
    va_list ap;
    if (!to->err || !to->err_size)
        return -1;
    int n = snprintf(to->err, to->err_size, "%.300s: ", to->path);
    if (n < 0 || (size_t)n >= to->err_size)
        return -1;
    va_start(ap, fmt);
    vsnprintf(to->err + n, to->err_size - (size_t)n, fmt, ap);
    va_end(ap);
    return -1;
}

/* -------------------------------------------------------------------------------------------- the dict
 * literal */

struct text {
    const char *p, *end;
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

/* Python 2 wrote a long with an L behind it. */
static int parse_extent(struct text *t, int64_t *out)
{
    const char *start;
    int64_t v = 0;
    skip_space(t);
    for (start = t->p; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *t->p - '0', &v))
            return 0;
    *out = v;
    return t->p > start && (accept(t, 'L') || 1);
}

static int parse_shape(struct text *t, struct npy *a, const struct sink *to)
{
    int comma = 1;
    a->rank = 0;
    if (!accept(t, '('))
        return fail(to, "'shape' is no tuple");
    while (!accept(t, ')')) {
        if (a->rank == XT_MAX_RANK)
            return fail(to, "more than %d axes", XT_MAX_RANK);
        if (!comma || !parse_extent(t, &a->shape[a->rank]))
            return fail(to, "'shape': axis %d is no extent that fits in 63 bits", a->rank);
        a->rank++;
        comma = accept(t, ',');
    }
    if (a->rank == 1 && !comma)
        return fail(to, "'shape' is no tuple");
    return 0;
}

static const struct kind *find_code(const char *code)
{
    for (int i = 0; i < N_KINDS; i++)
        if (!strcmp(kinds[i].code, code))
            return &kinds[i];
    return NULL;
}

static int parse_descr(struct text *t, const struct kind **kind, const struct sink *to)
{
    char descr[64];
    if (!parse_string(t, descr, sizeof descr))
        return fail(to, "'descr' is no plain string: structured types are not supported");
    int ordered = descr[0] && strchr("<>=|", descr[0]) != NULL;
    *kind = find_code(descr + ordered);
    if (!*kind || (ordered && !(*kind)->order))
        return fail(to, "element type '%s' is not supported", descr);
    if (descr[0] == '>' && (*kind)->width > 1)
        return fail(to, "element type '%s' is big-endian; convert it: a.astype(a.dtype.newbyteorder('<'))",
                    descr);
    return 0;
}

static int parse_order(struct text *t, struct npy *a, const struct sink *to)
{
    a->fortran_order = accept_word(t, "True");
    return a->fortran_order || accept_word(t, "False")
               ? 0
               : fail(to, "'fortran_order' is neither True nor False");
}

static int parse_item(struct text *t, struct npy *a, const struct kind **kind, unsigned *seen,
                      const struct sink *to)
{
    static const char *const names[] = {"descr", "fortran_order", "shape"};
    char key[32];
    unsigned k = 0;
    if (!parse_string(t, key, sizeof key) || !accept(t, ':'))
        return fail(to, "the header is no dict of strings");
    while (k < 3 && strcmp(key, names[k]))
        k++;
    if (k == 3 || *seen & 1u << k)
        return fail(to, "the header's key '%s' is %s", key, k == 3 ? "unknown" : "there twice");
    *seen |= 1u << k;
    return k == 0 ? parse_descr(t, kind, to) : k == 1 ? parse_order(t, a, to) : parse_shape(t, a, to);
}

static int parse_header(struct text t, struct npy *a, const struct kind **kind, const struct sink *to)
{
    unsigned seen = 0;
    int comma = 1;
    if (!accept(&t, '{'))
        return fail(to, "the header is no dict");
    while (!accept(&t, '}')) {
        if (!comma)
            return fail(to, "the header has no comma between items");
        if (parse_item(&t, a, kind, &seen, to))
            return -1;
        comma = accept(&t, ',');
    }
    skip_space(&t);
    if (t.p != t.end)
        return fail(to, "something follows the header's dict");
    return seen == 7 ? 0 : fail(to, "the header lacks 'descr', 'fortran_order' or 'shape'");
}

/* ------------------------------------------------------------------------------------------------------
 * reading */

static int read_exactly(FILE *f, void *p, size_t bytes, const struct sink *to)
{
    if (fread(p, 1, bytes, f) == bytes)
        return 0;
    return ferror(f) ? fail(to, "%s", strerror(errno)) : fail(to, "is cut short");
}

/* Leaves f at the elements; *at says where that is. */
static int read_header(FILE *f, struct npy *a, const struct kind **kind, int64_t *at, const struct sink *to)
{
    unsigned char b[MAGIC_BYTES + 4];
    if (read_exactly(f, b, MAGIC_BYTES, to))
        return -1;
    if (memcmp(b, "\x93NUMPY", 6))
        return fail(to, "is no .npy file");
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return fail(to, "format version %d.%d is not supported", b[6], b[7]);
    int length_bytes = b[6] == 1 ? 2 : 4;
    unsigned char *n = b + MAGIC_BYTES;
    if (read_exactly(f, n, (size_t)length_bytes, to))
        return -1;
    uint32_t bytes = n[0] | (uint32_t)n[1] << 8;
    if (length_bytes == 4)
        bytes |= (uint32_t)n[2] << 16 | (uint32_t)n[3] << 24;
    if (bytes > MAX_HEADER)
        return fail(to, "a header of %lu bytes is not supported", (unsigned long)bytes);
    char *header = malloc((size_t)bytes + 1);
    if (!header)
        return fail(to, "out of memory");
    int status = read_exactly(f, header, bytes, to);
    if (!status)
        status = parse_header((struct text){header, header + bytes}, a, kind, to);
    free(header);
    *at = MAGIC_BYTES + length_bytes + (int64_t)bytes;
    return status;
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

static int read_elements(FILE *f, int64_t at, size_t width, struct npy *a, const struct sink *to)
{
    struct stat st;
    int64_t bytes = count_bytes(a, width);
    if (bytes < 0)
        return fail(to, "the array's size does not fit in 63 bits");
    if (fstat(fileno(f), &st))
        return fail(to, "%s", strerror(errno));
    int64_t have = (int64_t)st.st_size - at; /* both >= 0 */
    if (have != bytes)
        return fail(to, "the header announces %lld bytes of elements, the file has %lld", (long long)bytes,
                    (long long)have);
    void *data = malloc((size_t)bytes + 1);
    if (!data)
        return fail(to, "%lld bytes: out of memory", (long long)bytes);
    if (read_exactly(f, data, (size_t)bytes, to)) {
        free(data);
        return -1;
    }
    a->data = data;
    a->bytes = (size_t)bytes;
    return 0;
}

static size_t width_of(xt_dtype dtype)
{
    for (int i = 0; i < N_KINDS; i++)
        if (kinds[i].dtype == dtype)
            return kinds[i].width;
    return 0;
}

static FILE *open_regular(const char *path, const struct sink *to)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO must not block */
    FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
    if (!f || fstat(fd, &st))
        fail(to, "%s", strerror(errno));
    else if (!S_ISREG(st.st_mode))
        fail(to, "is no regular file");
    else
        return f;
    if (f)
        fclose(f);
    else if (fd >= 0)
        close(fd);
    return NULL;
}

int npy_read_as(const char *path, xt_dtype dtype, struct npy *out, char *err, size_t err_size)
{
    const struct sink to = {path, err, err_size};
    const struct kind *kind = NULL;
    struct npy a = {0};
    int64_t at = 0;
    *out = a;
    FILE *f = open_regular(path, &to);
    if (!f)
        return -1;
    int status = read_header(f, &a, &kind, &at, &to);
    if (!status)
        status = read_elements(f, at, kind->width, &a, &to);
    fclose(f);
    if (status)
        return -1;
    a.dtype = kind->raw && width_of(dtype) == kind->width ? dtype : kind->dtype;
    a.raw = kind->raw;
    *out = a;
    return 0;
}

int npy_read(const char *path, struct npy *out, char *err, size_t err_size)
{
    return npy_read_as(path, (xt_dtype)0, out, err, err_size);
}

/* ------------------------------------------------------------------------------------------------------
 * writing */

static const struct kind *find_written(xt_dtype dtype)
{
    if (dtype == XT_F8E5M2)
        return find_code("V1");
    for (int i = 0; i < N_KINDS; i++)
        if (kinds[i].dtype == dtype)
            return &kinds[i];
    return NULL;
}

enum { HEADER_ROOM = 1024 }; /* 32 extents of 19 digits and 2 separators, and 100 bytes around them */

/* Version 1.0, padded with spaces so that the elements start at a multiple of 64 bytes. */
static size_t make_header(const struct npy *a, const struct kind *k, char *out)
{
    char *text = out + MAGIC_BYTES + 2;
    size_t room = HEADER_ROOM - MAGIC_BYTES - 2 - ALIGN;
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

static int write_all(int fd, const char *p, size_t bytes)
{
    while (bytes) {
        ssize_t n = write(fd, p, bytes);
        if (n < 0 && errno != EINTR)
            return -1;
        p += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* A new file in target's directory, with the mode that the umask gives; *temp is its malloc'ed name. */
static int make_temp(const char *target, char **temp, const struct sink *to)
{
    const char *slash = strrchr(target, '/');
    size_t dir = slash ? (size_t)(slash - target) + 1 : 0, size = dir + 32;
    uint64_t r;
    *temp = malloc(size);
    if (!*temp)
        return fail(to, "out of memory");
    if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
        return fail(to, "no random bytes: %s", strerror(errno));
    memcpy(*temp, target, dir);
    snprintf(*temp + dir, size - dir, ".xt-%016llx.tmp", (unsigned long long)r);
    int fd = open(*temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return fd >= 0 ? fd : fail(to, "a temporary file beside it: %s", strerror(errno));
}

static int write_target(const char *target, const char *header, size_t header_bytes, const struct npy *a,
                        const struct sink *to)
{
    char *temp = NULL;
    int fd = make_temp(target, &temp, to);
    if (fd < 0) {
        free(temp);
        return -1;
    }
    int bad = write_all(fd, header, header_bytes) || write_all(fd, a->data, a->bytes);
    int e = errno;
    if (close(fd) && !bad) {
        bad = 1;
        e = errno;
    }
    if (!bad && rename(temp, target)) {
        bad = 1;
        e = errno;
    }
    if (bad)
        unlink(temp);
    free(temp);
    return bad ? fail(to, "%s", strerror(e)) : 0;
}

static int check_array(const struct npy *a, const struct kind *k, const struct sink *to)
{
    if (!k)
        return fail(to, "unknown element type %d", (int)a->dtype);
    if (a->rank < 0 || a->rank > XT_MAX_RANK)
        return fail(to, "rank %d", a->rank);
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] < 0)
            return fail(to, "extent %lld of axis %d", (long long)a->shape[i], i);
    int64_t bytes = count_bytes(a, k->width);
    if (bytes < 0 || (uint64_t)bytes != a->bytes)
        return fail(to, "%zu bytes are not what the shape needs (%lld)", a->bytes, (long long)bytes);
    return 0;
}

int npy_write(const char *path, const struct npy *a, char *err, size_t err_size)
{
    const struct sink to = {path, err, err_size};
    const struct kind *k = find_written(a->dtype);
    char header[HEADER_ROOM];
    struct stat st;
    if (check_array(a, k, &to))
        return -1;
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return fail(&to, "is there and is no regular file");
    char *real = realpath(path, NULL); /* NULL: nothing there yet */
    int status = write_target(real ? real : path, header, make_header(a, k, header), a, &to);
    free(real);
    return status;
}
