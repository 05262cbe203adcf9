/* str.c: the string builder. Numbers have a decimal point, whatever the locale of the host. Layer 0. */
#include "base/str.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static bool reserve(struct xti_str *b, size_t extra)
{
    if (b->failed)
        return false;
    if (b->cap - b->n > extra)
        return true;
    size_t cap = b->cap ? b->cap : 64;
    while (cap - b->n <= extra)
        cap *= 2;
    char *s = b->lent ? xti_alloc(cap) : xti_realloc(b->s, cap);
    if (!s) {
        b->failed = true;
        return false;
    }
    if (b->lent)
        memcpy(s, b->s, b->n);
    b->s = s;
    b->cap = cap;
    b->lent = false;
    return true;
}

void xti_str_addn(struct xti_str *b, const void *bytes, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n)
        memcpy(b->s + b->n, bytes, n);
    b->n += n;
    b->s[b->n] = 0;
}

void xti_str_set(struct xti_str *b, const void *bytes, size_t n)
{
    b->s = xti_room(n + 1);
    b->failed = !b->s;
    b->cap = n + 1;
    xti_str_addn(b, bytes, n);
}

void xti_str_add(struct xti_str *b, const char *text) { xti_str_addn(b, text, strlen(text)); }

/* vsnprintf with a decimal point, whatever the host's locale has. That of C takes no memory. */
static int format(char *buf, size_t size, const char *fmt, va_list ap)
{
    locale_t c = *nl_langinfo(RADIXCHAR) == '.' ? (locale_t)0 : newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t was = c ? uselocale(c) : c;
    int n = vsnprintf(buf, size, fmt, ap);
    if (c) {
        uselocale(was);
        freelocale(c);
    }
    return n;
}

void xti_str_addf(struct xti_str *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = format(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        b->failed = true;
    if (n < 0 || !reserve(b, (size_t)n))
        return;
    va_start(ap, fmt);
    format(b->s + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

void xti_str_list(struct xti_str *b, int n, const int64_t *v)
{
    xti_str_add(b, "[");
    for (int i = 0; i < n; i++)
        xti_str_addf(b, "%s%" PRId64, i ? "," : "", v[i]);
    xti_str_add(b, "]");
}

void xti_str_json(struct xti_str *b, const char *text)
{
    xti_str_add(b, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            xti_str_addf(b, "\\%c", *c);
        else if (*c < 32)
            xti_str_addf(b, "\\u%04x", *c);
        else
            xti_str_addn(b, c, 1);
    }
    xti_str_add(b, "\"");
}

void xti_str_u64le_slow(struct xti_str *b, uint64_t v)
{
    unsigned char byte[8];
    for (int i = 0; i < 8; i++)
        byte[i] = (unsigned char)(v >> 8 * i);
    xti_str_addn(b, byte, sizeof byte);
}

void xti_str_row64le(struct xti_str *b, int n, const int64_t *v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    xti_str_addn(b, v, (size_t)n * sizeof *v);
#else
    for (int i = 0; i < n; i++)
        xti_str_u64le(b, (uint64_t)v[i]);
#endif
}

void xti_str_free(struct xti_str *b)
{
    if (!b->lent)
        xti_free(b->s);
    *b = (struct xti_str){0};
}

char *xti_shape_text(char *buf, size_t size, int n, const int64_t *v)
{
    size_t at = (size_t)snprintf(buf, size, "[");
    for (int i = 0; i < n; i++) {
        char one[24];
        int len = snprintf(one, sizeof one, "%s%" PRId64, i ? "," : "", v[i]);
        if (at + (size_t)len + 4 > size) {
            snprintf(buf + at, size - at, "..");
            at = strlen(buf);
            break;
        }
        memcpy(buf + at, one, (size_t)len + 1);
        at += (size_t)len;
    }
    if (at + 1 < size)
        snprintf(buf + at, size - at, "]");
    return buf;
}

xt_status xti_copy_out(const char *text, size_t n, char *buf, size_t size, size_t *need)
{
    if (need)
        *need = n + 1;
    if (buf && size) {
        size_t m = n < size ? n : size - 1;
        if (m)
            memcpy(buf, text, m);
        buf[m] = 0;
    }
    return XT_OK;
}

static void format_into(char *buf, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    format(buf, size, fmt, ap);
    va_end(ap);
}

const char *xti_size_text(int64_t bytes, char *buf, size_t size)
{
    static const char *const unit[] = {"bytes", "KB", "MB", "GB", "TB", "PB"};
    double v = (double)bytes;
    int i = 0;
    for (; v >= 1000 && i < 5; i++)
        v /= 1000;
    format_into(buf, size, "%.*f %s", i && v < 100 ? 1 : 0, v, unit[i]);
    return buf;
}
