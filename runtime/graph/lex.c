/* lex.c: the text of a problem line as tokens, and the errors that point into it. Layer 1. */
#include "graph/parse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static const char *skip_blank(const char *s)
{
    while (is_space(*s) || *s == '#')
        s += *s == '#' ? strcspn(s, "\n") : 1;
    return s;
}

static size_t scan_name(const char *s)
{
    size_t n = 0;
    while (is_letter(s[n]) || (n && is_digit(s[n])))
        n++;
    return n;
}

static size_t scan_digits(const char *s)
{
    size_t n = 0;
    while (is_digit(s[n]))
        n++;
    return n;
}

/* [+-]digits[.digits][e[+-]digits], a signed inf or nan, 0x.. Returns its length, 0: none here. */
static size_t scan_decimal(const char *s)
{
    size_t sign = s[0] == '-' || s[0] == '+', n = sign;
    size_t word = sign ? scan_name(s + n) : 0;
    if (word == 3 && (!memcmp(s + n, "inf", 3) || !memcmp(s + n, "nan", 3)))
        return n + 3;
    if (s[n] == '0' && (s[n + 1] == 'x' || s[n + 1] == 'X'))
        return n + 1 + scan_name(s + n + 1);
    size_t whole = scan_digits(s + n);
    n += whole;
    if (s[n] == '.' && (is_digit(s[n + 1]) || (whole && s[n + 1] != '.' && !is_letter(s[n + 1])))) {
        size_t rest = scan_digits(s + n + 1);
        n += 1 + rest;
        whole += rest;
    }
    if (!whole)
        return 0;
    if (s[n] == 'e' || s[n] == 'E') {
        size_t e = 1 + (s[n + 1] == '-' || s[n + 1] == '+'), digits = scan_digits(s + n + e);
        n += digits ? e + digits : 0;
    }
    return n;
}

/* A decimal, or a complex 2j, 1+2j. */
static size_t scan_number(const char *s)
{
    size_t n = scan_decimal(s), more = 0;
    if (n && (s[n] == '+' || s[n] == '-'))
        more = scan_decimal(s + n);
    if (n && s[n + more] == 'j' && scan_name(s + n + more) == 1)
        return n + more + 1;
    return n;
}

/* "text" or 'text', without escapes; 0: it is not closed. */
static size_t scan_string(const char *s)
{
    const char *end = *s == '"' || *s == '\'' ? strchr(s + 1, *s) : NULL;
    return end ? (size_t)(end - s) + 1 : 0;
}

static struct xti_token scan(const char *s)
{
    s = skip_blank(s);
    struct xti_token t = {XTI_MARK, s, 1};
    size_t n;
    if (!*s)
        t = (struct xti_token){XTI_END, s, 0};
    else if ((n = scan_name(s)))
        t = (struct xti_token){XTI_NAME, s, n};
    else if (s[0] == '-' && s[1] == '>')
        t = (struct xti_token){XTI_ARROW, s, 2};
    else if ((n = scan_number(s)))
        t = (struct xti_token){XTI_NUMBER, s, n};
    else if ((n = scan_string(s)))
        t = (struct xti_token){XTI_STRING, s, n};
    else if (!strncmp(s, "...", 3))
        t = (struct xti_token){XTI_DOTS, s, 3};
    return t;
}

void xti_lex_next(struct xti_parser *p) { p->tok = scan(p->tok.s + p->tok.n); }

bool xti_lex_is(const struct xti_parser *p, const char *mark)
{
    return p->tok.n == strlen(mark) && !memcmp(p->tok.s, mark, p->tok.n);
}

bool xti_lex_take(struct xti_parser *p, const char *mark)
{
    bool is = xti_lex_is(p, mark);
    if (is)
        xti_lex_next(p);
    return is;
}

bool xti_lex_want(struct xti_parser *p, const char *mark)
{
    char what[8];
    snprintf(what, sizeof what, "'%s'", mark);
    return xti_lex_take(p, mark) || xti_lex_expected(p, what);
}

void xti_parse_at(struct xti_parser *p, const char *at) { p->g->column = (int)(at - p->text) + 1; }

bool xti_parse_fail(struct xti_parser *p, xt_status s, const char *at, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    xti_parse_at(p, at);
    xti_graph_fail(p->g, s, "%s", text);
    return false;
}

/* What stands at the token, made printable. */
static const char *found(const struct xti_token *t, char *buf, size_t size)
{
    size_t at = 0;
    if (t->kind == XTI_END)
        return "the end";
    for (size_t i = 0; i < t->n && at + 8 < size; i++) {
        unsigned char c = (unsigned char)t->s[i];
        at += (size_t)snprintf(buf + at, size - at, c >= 32 && c < 127 ? "%c" : "\\x%02x", c);
    }
    return buf;
}

bool xti_lex_expected(struct xti_parser *p, const char *what)
{
    char buf[40];
    const char *have = found(&p->tok, buf, sizeof buf), *quote = p->tok.kind == XTI_END ? "" : "'";
    return xti_parse_fail(p, XT_ESYNTAX, p->tok.s, "expected %s, found %s%s%s", what, quote, have, quote);
}

bool xti_lex_number(struct xti_parser *p, const char *s, size_t n, int64_t *out)
{
    size_t i = n && (s[0] == '-' || s[0] == '+');
    if (i == n || scan_digits(s + i) != n - i)
        return xti_parse_fail(p, XT_ESYNTAX, s, "'%.*s' is not an integer", n < 40 ? (int)n : 40, s);
    int64_t v = 0;
    for (; i < n; i++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, s[0] == '-' ? '0' - s[i] : s[i] - '0', &v))
            return xti_parse_fail(p, XT_EOVERFLOW, s, "%.*s does not fit in 64 bits", n < 40 ? (int)n : 40,
                                  s);
    *out = v;
    return true;
}

bool xti_lex_int(struct xti_parser *p, int64_t *out)
{
    if (p->tok.kind != XTI_NUMBER)
        return xti_lex_expected(p, "an integer");
    if (!xti_lex_number(p, p->tok.s, p->tok.n, out))
        return false;
    xti_lex_next(p);
    return true;
}

bool xti_lex_list(struct xti_parser *p, int *n, int64_t out[XT_MAX_RANK])
{
    *n = 0;
    if (!xti_lex_want(p, "["))
        return false;
    while (!xti_lex_is(p, "]")) {
        if (*n == XT_MAX_RANK)
            return xti_parse_fail(p, XT_ERANK, p->tok.s, "more than %d axes", XT_MAX_RANK);
        if (!xti_lex_int(p, &out[(*n)++]))
            return false;
        if (!xti_lex_take(p, ",") && !xti_lex_is(p, "]"))
            return xti_lex_expected(p, "',' or ']'");
    }
    xti_lex_next(p);
    return true;
}

void *xti_parse_room(struct xti_parser *p, void *v, size_t size, int n, int64_t *cap)
{
    v = xti_grown(v, size, n, cap);
    if (!v)
        xti_graph_fail(p->g, XT_ENOMEM, "out of memory");
    return v;
}
