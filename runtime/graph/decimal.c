/* decimal.c: decimal text to a binary floating-point format, exactly rounded, in integer arithmetic: no
 * locale, no rounding mode, no double rounding on the way to narrow formats. Layer 1. */
#include "graph/value.h"

#include <string.h>

/* A literal is digits x 10^e with digits < 10^100 and 10^-400 <= literal < 10^400, so numerator and
 * denominator stay below 10^501, and shifted against each other below 2^3400. */
enum { MAX_DIGITS = 100, MAX_POWER = 400, LIMBS = 112 };

struct big {
    uint32_t w[LIMBS]; /* little-endian */
    int n;             /* limbs in use; the highest is not 0 */
};

static void mul_add(struct big *a, uint32_t by, uint32_t plus)
{
    uint64_t carry = plus;
    for (int i = 0; i < a->n; i++) {
        carry += (uint64_t)a->w[i] * by;
        a->w[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        a->w[a->n++] = (uint32_t)carry;
}

static int bit_length(const struct big *a) { return a->n ? 32 * a->n - __builtin_clz(a->w[a->n - 1]) : 0; }

static void shift_left(struct big *a, int by)
{
    int words = by / 32;
    memmove(a->w + words, a->w, (size_t)a->n * sizeof *a->w);
    memset(a->w, 0, (size_t)words * sizeof *a->w);
    a->n += words;
    mul_add(a, UINT32_C(1) << by % 32, 0);
}

static int compare(const struct big *a, const struct big *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->w[i] != b->w[i])
            return a->w[i] < b->w[i] ? -1 : 1;
    return 0;
}

/* a -= b, for a >= b. */
static void subtract(struct big *a, const struct big *b)
{
    int64_t borrow = 0;
    for (int i = 0; i < a->n; i++) {
        borrow += (int64_t)a->w[i] - (i < b->n ? b->w[i] : 0);
        a->w[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    while (a->n && !a->w[a->n - 1])
        a->n--;
}

/* num/den > 0 to the format's bits; the exponent's field may run past its width: the caller compares with
 * max. */
static uint64_t divide(const struct xti_format *f, struct big *num, struct big *den)
{
    int k = bit_length(num) - bit_length(den);
    if (k > 0)
        shift_left(den, k);
    else
        shift_left(num, -k);
    if (compare(num, den) < 0) {
        mul_add(num, 2, 0);
        k--;
    }
    int bits = k >= f->emin ? f->p : f->p - (f->emin - k); /* num/den is in [1,2), times 2^k */
    if (bits < 0)
        return 0;
    uint64_t m = 0;
    for (int i = 0; i < bits; i++) {
        bool one = compare(num, den) >= 0;
        if (one)
            subtract(num, den);
        m = 2 * m + one;
        mul_add(num, 2, 0);
    }
    int rest = compare(num, den); /* against half a unit in the last place */
    if (rest > 0 || (rest == 0 && (m & 1)))
        m++;
    if (k < f->emin)
        return m;
    return ((uint64_t)(k - f->emin) << (f->p - 1)) + m; /* m's hidden bit makes the exponent field 1 more */
}

struct digits {
    char d[MAX_DIGITS];
    int n;
    int64_t power; /* value = d x 10^power */
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Reads [e[+-]digits] at s[i..n) to *e, saturating. False when it is not all of the rest. */
static bool read_exponent(const char *s, size_t n, size_t i, int64_t *e)
{
    if (i == n)
        return true;
    if (s[i] != 'e' && s[i] != 'E')
        return false;
    bool minus = ++i < n && s[i] == '-';
    i += i < n && (s[i] == '-' || s[i] == '+');
    if (i == n)
        return false;
    for (; i < n && is_digit(s[i]); i++)
        *e = *e < 1000000 ? 10 * *e + (s[i] - '0') : *e;
    *e = minus ? -*e : *e;
    return i == n;
}

static const char *read_digits(const char *s, size_t n, struct digits *out)
{
    bool point = false, any = false;
    size_t i = 0;
    int64_t zeros = 0; /* seen, but not stored: dropped when nothing follows */
    int64_t e = 0;
    for (; i < n && (is_digit(s[i]) || (s[i] == '.' && !point)); i++) {
        if (s[i] == '.') {
            point = true;
            continue;
        }
        any = true;
        out->power -= point;
        zeros++;
        if (s[i] == '0')
            continue;
        for (zeros = out->n ? zeros : 1; zeros > 1; zeros--) {
            if (out->n == MAX_DIGITS)
                return "has more than 100 digits";
            out->d[out->n++] = '0';
        }
        if (out->n == MAX_DIGITS)
            return "has more than 100 digits";
        out->d[out->n++] = s[i];
        zeros = 0;
    }
    out->power += out->n ? zeros : 0;
    if (!any || !read_exponent(s, n, i, &e))
        return "is not a number";
    out->power += e;
    return NULL;
}

static void scale_by_power(struct big *a, int64_t power)
{
    for (; power > 0; power--)
        mul_add(a, 10, 0);
}

static const char *parse_finite(const struct xti_format *f, const char *s, size_t n, uint64_t *bits)
{
    struct digits d = {.n = 0};
    struct big num = {.n = 0}, den = {.w = {1}, .n = 1};
    const char *why = read_digits(s, n, &d);
    *bits = 0;
    if (why || !d.n || d.n + d.power < -MAX_POWER)
        return why;
    *bits = f->max + 1;
    if (d.n + d.power <= MAX_POWER) {
        for (int i = 0; i < d.n; i++)
            mul_add(&num, 10, (uint32_t)(d.d[i] - '0'));
        scale_by_power(&num, d.power);
        scale_by_power(&den, -d.power);
        *bits = divide(f, &num, &den);
    }
    if (*bits > f->max) {
        *bits = f->max + 1;
        return f->inf ? NULL : "is too large, and the type has no infinity";
    }
    return NULL;
}

const char *xti_decimal_parse(const struct xti_format *f, const char *s, size_t n, uint64_t *bits,
                              bool *negative)
{
    *negative = n && s[0] == '-';
    if (n && (s[0] == '-' || s[0] == '+'))
        s++, n--;
    if (n == 3 && !memcmp(s, "nan", 3)) {
        *bits = f->inf ? (f->max + 1) | UINT64_C(1) << (f->p - 2) : f->max + 1;
        return NULL;
    }
    if (n == 3 && !memcmp(s, "inf", 3)) {
        *bits = f->max + 1;
        return f->inf ? NULL : "does not exist: the type has no infinity";
    }
    return parse_finite(f, s, n, bits);
}
