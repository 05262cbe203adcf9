/* value.c: one element as text and back, by the kind of its type. Layer 1. */
#include "graph/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void store(uint64_t v, size_t bytes, unsigned char *out)
{
    uint8_t v1 = (uint8_t)v;
    uint16_t v2 = (uint16_t)v;
    uint32_t v4 = (uint32_t)v;
    memcpy(out,
           bytes == 1   ? (void *)&v1
           : bytes == 2 ? (void *)&v2
           : bytes == 4 ? (void *)&v4
                        : (void *)&v,
           bytes);
}

static uint64_t load(const unsigned char *p, size_t bytes)
{
    uint8_t v1;
    uint16_t v2;
    uint32_t v4;
    uint64_t v8 = 0;
    memcpy(bytes == 1   ? (void *)&v1
           : bytes == 2 ? (void *)&v2
           : bytes == 4 ? (void *)&v4
                        : (void *)&v8,
           p, bytes);
    return bytes == 1 ? v1 : bytes == 2 ? v2 : bytes == 4 ? v4 : v8;
}

static uint64_t sign_bit(size_t bytes) { return UINT64_C(1) << (8 * bytes - 1); }

/* ---- parsing */

struct text {
    const char *s;
    size_t n;
};

static struct text trim(const char *s, size_t n)
{
    while (n && memchr(" \t\r\n", s[0], 4))
        s++, n--;
    while (n && memchr(" \t\r\n", s[n - 1], 4))
        n--;
    return (struct text){s, n};
}

static bool is_word(struct text t, const char *word)
{
    return t.n == strlen(word) && !memcmp(t.s, word, t.n);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The 0x.. of bits(0x..), for types of up to 8 bytes. */
static const char *parse_bits(size_t bytes, struct text t, unsigned char *out)
{
    uint64_t v = 0;
    t = trim(t.s, t.n);
    if (t.n < 3 || t.s[0] != '0' || (t.s[1] | 32) != 'x')
        return "wants bits(0x..)";
    for (size_t i = 2; i < t.n; i++) {
        int d = hex_digit(t.s[i]);
        if (d < 0)
            return "wants bits(0x..)";
        if (v >> 60)
            return "has too many bits";
        v = v << 4 | (uint64_t)d;
    }
    if (bytes < 8 && v >> 8 * bytes)
        return "has too many bits";
    store(v, bytes, out);
    return NULL;
}

static const char *parse_integer(const struct xti_dtype *d, struct text t, unsigned char *out)
{
    uint64_t v = 0;
    bool minus = t.n && t.s[0] == '-';
    size_t i = t.n && (t.s[0] == '-' || t.s[0] == '+');
    if (i == t.n)
        return "is not an integer";
    for (; i < t.n; i++) {
        if (t.s[i] < '0' || t.s[i] > '9')
            return "is not an integer";
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(t.s[i] - '0'), &v))
            return "is out of range";
    }
    uint64_t top = sign_bit(d->bytes), all = top | (top - 1);
    uint64_t most = d->kind == XTI_KIND_SIGNED ? (minus ? top : top - 1) : minus ? 0 : all;
    if (v > most)
        return "is out of range";
    store(minus ? 0 - v : v, d->bytes, out);
    return NULL;
}

static const char *parse_bool(struct text t, unsigned char *out)
{
    out[0] = is_word(t, "1") || is_word(t, "True") || is_word(t, "true");
    if (out[0] || is_word(t, "0") || is_word(t, "False") || is_word(t, "false"))
        return NULL;
    return "is not 0, 1, True or False";
}

static const char *parse_float(const struct xti_dtype *d, struct text t, unsigned char *out)
{
    uint64_t bits;
    bool minus;
    const char *why = xti_decimal_parse(&d->format, t.s, t.n, &bits, &minus);
    if (!why)
        store(minus ? bits | sign_bit(d->bytes) : bits, d->bytes, out);
    return why;
}

/* Everything but complex. */
static const char *parse_scalar(xt_dtype type, struct text t, unsigned char *out)
{
    const struct xti_dtype *d = xti_dtype(type);
    t = trim(t.s, t.n);
    if (t.n > 6 && !memcmp(t.s, "bits(", 5) && t.s[t.n - 1] == ')')
        return parse_bits(d->bytes, (struct text){t.s + 5, t.n - 6}, out);
    if (d->kind == XTI_KIND_BOOL)
        return parse_bool(t, out);
    return d->kind == XTI_KIND_FLOAT ? parse_float(d, t, out) : parse_integer(d, t, out);
}

/* Where the imaginary part of 1+2j begins: its sign. 0: no real part. */
static size_t find_imaginary(struct text t)
{
    for (size_t i = t.n - 1; i > 0; i--)
        if ((t.s[i] == '+' || t.s[i] == '-') && (t.s[i - 1] | 32) != 'e')
            return i;
    return 0;
}

static const char *parse_complex(const struct xti_dtype *d, struct text t, unsigned char *out)
{
    size_t half = d->bytes / 2;
    memset(out, 0, d->bytes);
    if (t.n && t.s[t.n - 1] == 'j') {
        t.n--;
        size_t at = t.n ? find_imaginary(t) : 0;
        const char *why = at ? parse_scalar(d->part, (struct text){t.s, at}, out) : NULL;
        return why ? why : parse_scalar(d->part, (struct text){t.s + at, t.n - at}, out + half);
    }
    if (t.n < 2 || t.s[0] != '(' || t.s[t.n - 1] != ')')
        return parse_scalar(d->part, t, out);
    const char *comma = memchr(t.s, ',', t.n);
    if (!comma)
        return parse_scalar(d->part, (struct text){t.s + 1, t.n - 2}, out);
    size_t at = (size_t)(comma - t.s);
    const char *why = parse_scalar(d->part, (struct text){t.s + 1, at - 1}, out);
    return why ? why : parse_scalar(d->part, (struct text){comma + 1, t.n - at - 2}, out + half);
}

const char *xti_value_parse(xt_dtype type, const char *s, size_t n, unsigned char out[16])
{
    const struct xti_dtype *d = xti_dtype(type);
    struct text t = trim(s, n);
    return d->kind == XTI_KIND_COMPLEX ? parse_complex(d, t, out) : parse_scalar(type, t, out);
}

/* ---- printing */

/* The magnitude as a double: exact, since no format is wider. */
static double to_double(const struct xti_format *f, uint64_t bits)
{
    uint64_t hidden = UINT64_C(1) << (f->p - 1);
    int field = (int)(bits >> (f->p - 1));
    uint64_t m = field ? (bits & (hidden - 1)) | hidden : bits;
    return ldexp((double)m, (field ? field - 1 : 0) + f->emin - (f->p - 1));
}

/* Digits d (no point, first one not 0) times 10^(power - (number of digits - 1)). */
static void add_decimal(struct xti_str *b, const char *d, int n, int power)
{
    if (power >= 0 && power < 17) {
        for (int i = 0; i < n || i <= power; i++) {
            if (i == power + 1)
                xti_str_add(b, ".");
            xti_str_addn(b, i < n ? d + i : "0", 1);
        }
    } else if (power < 0 && power >= -5) {
        xti_str_add(b, "0.");
        xti_str_addn(b, "0000", (size_t)(-power - 1));
        xti_str_addn(b, d, (size_t)n);
    } else {
        xti_str_addn(b, d, 1);
        xti_str_add(b, n > 1 ? "." : "");
        xti_str_addn(b, d + 1, (size_t)n - 1);
        xti_str_addf(b, "e%d", power);
    }
}

/* x to n digits in the form d[ddd]e+XX: without the point, which depends on the locale. Returns the exponent.
 */
static int round_to(double x, int n, char *digits, size_t size)
{
    char buf[64];
    int power = 0, k = 0;
    snprintf(buf, sizeof buf, "%.*e", n - 1, x);
    const char *e = strrchr(buf, 'e');
    for (const char *c = buf; c < e && (size_t)k + 1 < size; c++)
        if (*c >= '0' && *c <= '9')
            digits[k++] = *c;
    digits[k] = 0;
    for (const char *c = e + 2; *c; c++)
        power = 10 * power + (*c - '0');
    return e[1] == '-' ? -power : power;
}

static void print_finite(const struct xti_format *f, uint64_t bits, struct xti_str *b)
{
    double x = to_double(f, bits);
    for (int n = 1; n <= 17; n++) {
        char digits[32], text[64];
        uint64_t back;
        bool minus;
        int power = round_to(x, n, digits, sizeof digits);
        int len = snprintf(text, sizeof text, "%se%d", digits, power - (n - 1));
        if (n < 17 && (xti_decimal_parse(f, text, (size_t)len, &back, &minus) || back != bits))
            continue;
        add_decimal(b, digits, n, power);
        return;
    }
}

static void print_float(const struct xti_dtype *d, const unsigned char *value, struct xti_str *b)
{
    const struct xti_format *f = &d->format;
    uint64_t bits = load(value, d->bytes), sign = sign_bit(d->bytes), mag = bits & (sign - 1), nan;
    bool minus;
    xti_decimal_parse(f, "nan", 3, &nan, &minus);
    if (mag > f->max && mag != f->max + f->inf && bits != nan) {
        xti_str_addf(b, "bits(0x%" PRIx64 ")", bits);
        return;
    }
    if (bits & sign && !(mag == nan))
        xti_str_add(b, "-");
    if (bits == nan)
        xti_str_add(b, "nan");
    else if (mag == 0)
        xti_str_add(b, "0");
    else if (mag > f->max)
        xti_str_add(b, "inf");
    else
        print_finite(f, mag, b);
}

static void print_scalar(xt_dtype t, const unsigned char *value, struct xti_str *b)
{
    const struct xti_dtype *d = xti_dtype(t);
    uint64_t v = d->kind == XTI_KIND_FLOAT ? 0 : load(value, d->bytes);
    if (d->kind == XTI_KIND_FLOAT)
        print_float(d, value, b);
    else if (d->kind == XTI_KIND_BOOL && v > 1)
        xti_str_addf(b, "bits(0x%" PRIx64 ")", v);
    else if (d->kind == XTI_KIND_SIGNED && v & sign_bit(d->bytes))
        xti_str_addf(b, "-%" PRIu64, (0 - v) & (sign_bit(d->bytes) | (sign_bit(d->bytes) - 1)));
    else
        xti_str_addf(b, "%" PRIu64, v);
}

void xti_value_print(xt_dtype t, const unsigned char *value, struct xti_str *b)
{
    const struct xti_dtype *d = xti_dtype(t);
    if (d->kind != XTI_KIND_COMPLEX) {
        print_scalar(t, value, b);
        return;
    }
    xti_str_add(b, "(");
    print_scalar(d->part, value, b);
    xti_str_add(b, ",");
    print_scalar(d->part, value + d->bytes / 2, b);
    xti_str_add(b, ")");
}
