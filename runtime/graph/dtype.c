/* dtype.c: names and widths of element types. Layer 1. */
#include "graph/dtype.h"

#include <string.h>

#include "base/err.h"

/* clang-format off */
static const struct xti_dtype table[] = {
    [XT_BOOL]   = {"bool",   "bool_",                       "b1",  1, XTI_KIND_BOOL, {0}, 0},
    [XT_U8]     = {"u8",     "uint8",                       "u1",  1, XTI_KIND_UNSIGNED, {0}, 0},
    [XT_I8]     = {"i8",     "int8",                        "i1",  1, XTI_KIND_SIGNED, {0}, 0},
    [XT_U16]    = {"u16",    "uint16 ushort",               "u2",  2, XTI_KIND_UNSIGNED, {0}, 0},
    [XT_I16]    = {"i16",    "int16 short",                 "i2",  2, XTI_KIND_SIGNED, {0}, 0},
    [XT_U32]    = {"u32",    "uint32",                      "u4",  4, XTI_KIND_UNSIGNED, {0}, 0},
    [XT_I32]    = {"i32",    "int32 int intc",              "i4",  4, XTI_KIND_SIGNED, {0}, 0},
    [XT_U64]    = {"u64",    "uint64 ulong",                "u8",  8, XTI_KIND_UNSIGNED, {0}, 0},
    [XT_I64]    = {"i64",    "int64 long",                  "i8",  8, XTI_KIND_SIGNED, {0}, 0},
    [XT_F16]    = {"f16",    "float16 half",                "f2",  2,
                    XTI_KIND_FLOAT, {11, -14, 0x7bff, true}, 0},
    [XT_BF16]   = {"bf16",   "bfloat16",                    "",    2,
                    XTI_KIND_FLOAT, {8, -126, 0x7f7f, true}, 0},
    [XT_F32]    = {"f32",    "float32 float single",        "f4",  4,
                    XTI_KIND_FLOAT, {24, -126, 0x7f7fffff, true}, 0},
    [XT_F64]    = {"f64",    "float64 double",              "f8",  8,
                    XTI_KIND_FLOAT, {53, -1022, 0x7fefffffffffffff, true}, 0},
    [XT_F8E4M3] = {"f8e4m3", "float8_e4m3fn",               "",    1,
                    XTI_KIND_FLOAT, {4, -6, 0x7e, false}, 0},
    [XT_F8E5M2] = {"f8e5m2", "float8_e5m2",                 "",    1,
                    XTI_KIND_FLOAT, {3, -14, 0x7b, true}, 0},
    [XT_C64]    = {"c64",    "complex64 cfloat",            "c8",  8, XTI_KIND_COMPLEX, {0}, XT_F32},
    [XT_C128]   = {"c128",   "complex128 complex cdouble",  "c16", 16, XTI_KIND_COMPLEX, {0}, XT_F64},
};
/* clang-format on */

enum { N_ROWS = sizeof table / sizeof *table };

const struct xti_dtype *xti_dtype(xt_dtype t) { return (int)t > 0 && (int)t < N_ROWS ? &table[t] : NULL; }

bool xti_word_in(const char *list, const char *word, size_t n)
{
    while (n && *list) {
        size_t len = strcspn(list, " ");
        if (len == n && !memcmp(list, word, n))
            return true;
        list += len + (list[len] == ' ');
    }
    return false;
}

xt_dtype xti_dtype_find(const char *name, size_t n)
{
    bool marked = n && strchr("<=|", *name);
    for (int t = 1; t < N_ROWS; t++)
        if (!marked && (xti_word_in(table[t].name, name, n) || xti_word_in(table[t].aliases, name, n)))
            return (xt_dtype)t;
    for (int t = 1; t < N_ROWS; t++)
        if (xti_word_in(table[t].code, name + marked, n - marked) && (marked || t != XT_F64))
            return (xt_dtype)t;
    return (xt_dtype)0;
}

size_t xt_dtype_bytes(xt_dtype t)
{
    const struct xti_dtype *d = xti_dtype(t);
    return d ? d->bytes : 0;
}

const char *xt_dtype_name(xt_dtype t)
{
    const struct xti_dtype *d = xti_dtype(t);
    return d ? d->name : NULL;
}

xt_status xt_dtype_parse(const char *name, xt_dtype *out)
{
    struct xti_err err = {0};
    if (out)
        *out = (xt_dtype)0;
    if (!name || !out)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_dtype_parse: an argument is NULL"), &err);
    *out = xti_dtype_find(name, strlen(name));
    if (!*out)
        return xti_publish(xti_fail(&err, XT_EDTYPE, "'%.40s' is not an element type", name), &err);
    return xti_publish(XT_OK, NULL);
}
