/* npy.c: the header of a .npy file as numpy.lib.format describes it: magic, version, header length, a Python
 * dict literal with 'descr', 'fortran_order' and 'shape'. The dict is parsed here, not evaluated: nothing but
 * those three keys and these literals is accepted. Layer 6. */
#include <xt/xt_files.h>

#include <stdio.h>
#include <string.h>

#include "base/give.h"
#include "base/num.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are written as they lie in memory");

enum { MAGIC_BYTES = 8, MAX_HEADER = 10000 /* NumPy's limit */ };

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
    const char *p, *end;
    int version;
    struct xti_err *err;
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

static xt_status parse_shape(struct text *t, struct xt_npy *a)
{
    int comma = 1;
    a->rank = 0;
    if (!accept(t, '('))
        return xti_fail(t->err, XT_EIO, "'shape' is no tuple");
    while (!accept(t, ')')) {
        if (a->rank == XT_MAX_RANK)
            return xti_fail(t->err, XT_EIO, "'shape' has more than %d axes", XT_MAX_RANK);
        if (!comma || !parse_extent(t, &a->shape[a->rank]))
            return xti_fail(t->err, XT_EIO, "'shape': axis %d is no extent that fits in 63 bits", a->rank);
        a->rank++;
        comma = accept(t, ',');
    }
    if (a->rank == 1 && !comma)
        return xti_fail(t->err, XT_EIO, "'shape' is no tuple");
    return XT_OK;
}

static const struct kind *find_code(const char *code)
{
    for (int i = 0; i < N_KINDS; i++)
        if (!strcmp(kinds[i].code, code))
            return &kinds[i];
    return NULL;
}

static xt_status parse_descr(struct text *t, const struct kind **kind)
{
    char descr[64];
    if (!parse_string(t, descr, sizeof descr))
        return xti_fail(t->err, XT_EIO, "'descr' is no plain string: structured types are not supported");
    int ordered = descr[0] && strchr("<>=|", descr[0]) != NULL;
    *kind = find_code(descr + ordered);
    if (!*kind || (ordered && !(*kind)->order))
        return xti_fail(t->err, XT_EIO, "element type '%s' is not supported", descr);
    if (descr[0] == '>' && (*kind)->width > 1)
        return xti_fail(t->err, XT_EIO,
                        "element type '%s' is big-endian; convert it: a.astype(a.dtype.newbyteorder('<'))",
                        descr);
    return 0;
}

static xt_status parse_order(struct text *t, struct xt_npy *a)
{
    a->fortran_order = accept_word(t, "True");
    return a->fortran_order || accept_word(t, "False")
               ? XT_OK
               : xti_fail(t->err, XT_EIO, "'fortran_order' is neither True nor False");
}

static xt_status parse_item(struct text *t, struct xt_npy *a, const struct kind **kind, unsigned *seen)
{
    static const char *const names[] = {"descr", "fortran_order", "shape"};
    char key[32];
    unsigned k = 0;
    if (!parse_string(t, key, sizeof key) || !accept(t, ':'))
        return xti_fail(t->err, XT_EIO, "the header is no dict of strings");
    while (k < 3 && strcmp(key, names[k]))
        k++;
    if (k == 3 || *seen & 1u << k)
        return xti_fail(t->err, XT_EIO, "the header's key '%s' is %s", key,
                        k == 3 ? "unknown" : "there twice");
    *seen |= 1u << k;
    return k == 0 ? parse_descr(t, kind) : k == 1 ? parse_order(t, a) : parse_shape(t, a);
}

static xt_status parse_header(struct text *t, struct xt_npy *a, const struct kind **kind)
{
    unsigned seen = 0;
    int comma = 1;
    if (!accept(t, '{'))
        return xti_fail(t->err, XT_EIO, "the header is no dict");
    while (!accept(t, '}')) {
        if (!comma)
            return xti_fail(t->err, XT_EIO, "the header has no comma between items");
        if (parse_item(t, a, kind, &seen))
            return XT_EIO;
        comma = accept(t, ',');
    }
    skip_space(t);
    if (t->p != t->end)
        return xti_fail(t->err, XT_EIO, "something follows the header's dict");
    return seen == 7 ? XT_OK
                     : xti_fail(t->err, XT_EIO, "the header lacks 'descr', 'fortran_order' or 'shape'");
}

/* ---------------------------------------------------------------------------------------------- reading */

static xt_status check_magic(const unsigned char *b, size_t n, struct xti_err *err)
{
    if (n == 0)
        return xti_fail(err, XT_EIO, "an empty file is no .npy file");
    if (n >= 4 && !memcmp(b, "PK\3\4", 4))
        return xti_fail(err, XT_EIO,
                        "this is no .npy file but an archive, perhaps .npz: np.save each of its arrays");
    if (n < MAGIC_BYTES || memcmp(b, "\x93NUMPY", 6))
        return xti_fail(err, XT_EIO, "this is no .npy file: np.save writes one");
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return xti_fail(err, XT_EIO, "version %d.%d of the .npy format is not supported", b[6], b[7]);
    return XT_OK;
}

static xt_status read_header(const unsigned char *b, size_t n, struct xt_npy *a, size_t *need,
                             struct xti_err *err)
{
    xt_status s = check_magic(b, n, err);
    size_t count = s || b[6] > 1 ? 4 : 2, at = MAGIC_BYTES + count, bytes = 0;
    const struct kind *kind = NULL;
    if (s)
        return s;
    *need = at;
    if (n < at)
        return xti_fail(err, XT_EBUFFER, "the header is cut short");
    for (size_t i = 0; i < count; i++)
        bytes |= (size_t)b[MAGIC_BYTES + i] << 8 * i;
    if (bytes > MAX_HEADER)
        return xti_fail(err, XT_EIO, "a header of %zu bytes is not supported: NumPy's limit is %d", bytes,
                        MAX_HEADER);
    *need = at + bytes;
    if (n < *need)
        return xti_fail(err, XT_EBUFFER, "the header is cut short");
    struct text t = {(const char *)b + at, (const char *)b + at + bytes, b[6], err};
    if ((s = parse_header(&t, a, &kind)))
        return s;
    if (!xti_product(a->rank, a->shape, &a->bytes) || !xti_mul64(a->bytes, (int64_t)kind->width, &a->bytes))
        return xti_fail(err, XT_EIO, "the array's size does not fit in 63 bits");
    a->at = (int64_t)*need;
    a->dtype = kind->dtype;
    a->raw = kind->raw;
    return XT_OK;
}

xt_status xt_npy_read(const void *head, size_t n, struct xt_npy *out, size_t *need)
{
    struct xti_err err = {0};
    struct xt_npy a = {0};
    size_t needs = 0;
    if (xti_give_check(out, XTI_UP_TO(struct xt_npy, bytes), "xt_npy_read", "xt_npy", &err))
        return xti_publish(XT_EINVAL, &err);
    if (!head && n)
        return xti_fail_null("xt_npy_read", "head");
    xt_status s = read_header(head, n, &a, &needs, &err);
    if (need)
        *need = needs;
    if (!s)
        xti_give(out, &a, sizeof a);
    return xti_publish(s, &err);
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

static bool can_be_written(const struct xt_npy *a, size_t align)
{
    if (!a || a->size < XTI_UP_TO(struct xt_npy, fortran_order) || a->rank < 0 || a->rank > XT_MAX_RANK)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->shape[i] < 0)
            return false;
    return align >= 64 && align <= XT_NPY_ROOM && find_written(a->dtype);
}

/* Padded with spaces. */
size_t xt_npy_write(const struct xt_npy *a, size_t align, char head[XT_NPY_ROOM])
{
    if (!head || !can_be_written(a, align))
        return 0;
    const struct kind *k = find_written(a->dtype);
    char *text = head + MAGIC_BYTES + 2;
    size_t room = XT_NPY_ROOM - MAGIC_BYTES - 2;
    size_t n = (size_t)snprintf(text, room, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (", k->order,
                                k->code, a->fortran_order ? "True" : "False");
    for (int i = 0; i < a->rank; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%lld", i ? ", " : "", (long long)a->shape[i]);
    n += (size_t)snprintf(text + n, room - n, "%s), }", a->rank == 1 ? "," : "");
    size_t end = (MAGIC_BYTES + 2 + n + 1 + align - 1) / align * align, bytes = end - MAGIC_BYTES - 2;
    memset(text + n, ' ', bytes - n);
    text[bytes - 1] = '\n';
    memcpy(head, "\x93NUMPY\1\0", MAGIC_BYTES);
    head[MAGIC_BYTES] = (char)(bytes & 255);
    head[MAGIC_BYTES + 1] = (char)(bytes >> 8);
    return end;
}
