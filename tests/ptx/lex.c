/* lex.c: PTX text to tokens and numbers, and the one way out when something is not understood. */
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void ptx_refuse(struct parser *p, const struct token *t, const char *what)
{
    if (t->kind == TOKEN_END)
        snprintf(p->err, p->err_bytes, "line %d: %s: end of text", t->line, what);
    else
        snprintf(p->err, p->err_bytes, "line %d: %s: %.*s", t->line, what, t->len, t->at);
    longjmp(p->failed, 1);
}

void *ptx_grow(struct parser *p, void *array, int n, int *cap, size_t bytes)
{
    if (n < *cap)
        return array;
    int more = *cap ? *cap * 2 : 64;
    void *moved = realloc(array, (size_t)more * bytes);
    if (!moved) {
        snprintf(p->err, p->err_bytes, "out of memory");
        longjmp(p->failed, 1);
    }
    memset((char *)moved + (size_t)*cap * bytes, 0, (size_t)(more - *cap) * bytes);
    *cap = more;
    return moved;
}

static int is_word_char(int c) { return isalnum(c) || c == '_' || c == '$' || c == '%' || c == '.'; }

/* Length of the token at s. A colon belongs to a word only when doubled, as in L1::no_allocate. */
static int token_length(const char *s, enum token_kind *kind)
{
    int n = 0;
    if (isdigit((unsigned char)*s)) {
        *kind = TOKEN_NUMBER;
        while (isalnum((unsigned char)s[n]) || s[n] == '.')
            n++;
    } else if (is_word_char((unsigned char)*s)) {
        *kind = TOKEN_WORD;
        while (is_word_char((unsigned char)s[n]) || (s[n] == ':' && s[n + 1] == ':'))
            n += s[n] == ':' ? 2 : 1;
    } else if (*s == '"') {
        *kind = TOKEN_STRING;
        for (n = 1; s[n] && s[n] != '"' && s[n] != '\n';)
            n++;
        n += s[n] == '"';
    } else {
        *kind = TOKEN_PUNCT;
        n = 1;
    }
    return n;
}

/* .file and .loc describe source lines only, and end with theirs; the whole rest of the line is dropped. */
static int is_line_info(const char *s, int n)
{
    return (n == 4 && !memcmp(s, ".loc", 4)) || (n == 5 && !memcmp(s, ".file", 5));
}

void ptx_split(struct parser *p)
{
    const char *s = p->m->text;
    int line = 1, cap = 0, cap_lines = 0;
    p->m->line = ptx_grow(p, NULL, 0, &cap_lines, sizeof *p->m->line);
    p->m->line[1] = s;
    p->m->n_lines = 1;
    for (;;) {
        struct token t = {TOKEN_END, s, 0, line};
        if (*s == '\n') {
            line++, s++;
            p->m->line = ptx_grow(p, p->m->line, line + 1, &cap_lines, sizeof *p->m->line);
            p->m->line[line] = s;
            p->m->n_lines = line;
            continue;
        }
        if (isspace((unsigned char)*s)) {
            s++;
            continue;
        }
        if (s[0] == '/' && s[1] == '/') {
            while (*s && *s != '\n')
                s++;
            continue;
        }
        if (s[0] == '/' && s[1] == '*') {
            const char *end = strstr(s + 2, "*/");
            if (!end) {
                t.kind = TOKEN_PUNCT, t.len = 2;
                ptx_refuse(p, &t, "comment without an end");
            }
            for (; s < end + 2; s++)
                if (*s == '\n') {
                    line++;
                    p->m->line = ptx_grow(p, p->m->line, line + 1, &cap_lines, sizeof *p->m->line);
                    p->m->line[line] = s + 1;
                    p->m->n_lines = line;
                }
            continue;
        }
        if (*s)
            t.len = token_length(s, &t.kind);
        if (is_line_info(s, t.len)) {
            while (*s && *s != '\n')
                s++;
            continue;
        }
        p->tokens = ptx_grow(p, p->tokens, p->n_tokens, &cap, sizeof *p->tokens);
        p->tokens[p->n_tokens++] = t;
        if (t.kind == TOKEN_END)
            return;
        s += t.len;
    }
}

const struct token *ptx_peek(struct parser *p) { return &p->tokens[p->at]; }

const struct token *ptx_next(struct parser *p)
{
    const struct token *t = &p->tokens[p->at];
    if (t->kind != TOKEN_END)
        p->at++;
    return t;
}

int ptx_is_punct(const struct token *t, char c) { return t->kind == TOKEN_PUNCT && *t->at == c; }

int ptx_accept(struct parser *p, char c)
{
    if (!ptx_is_punct(ptx_peek(p), c))
        return 0;
    p->at++;
    return 1;
}

void ptx_expect(struct parser *p, char c)
{
    char what[] = "expected ' '";
    what[10] = c;
    if (!ptx_accept(p, c))
        ptx_refuse(p, ptx_peek(p), what);
}

int ptx_is_word(const struct token *t, const char *word)
{
    return t->kind == TOKEN_WORD && (size_t)t->len == strlen(word) && !memcmp(t->at, word, (size_t)t->len);
}

int ptx_accept_word(struct parser *p, const char *word)
{
    if (!ptx_is_word(ptx_peek(p), word))
        return 0;
    p->at++;
    return 1;
}

const struct token *ptx_expect_name(struct parser *p)
{
    const struct token *t = ptx_next(p);
    if (t->kind != TOKEN_WORD || *t->at == '.')
        ptx_refuse(p, t, "expected a name");
    return t;
}

char *ptx_copy_name(struct parser *p, const struct token *t)
{
    char *name = strndup(t->at, (size_t)t->len);
    if (!name)
        ptx_refuse(p, t, "out of memory");
    return name;
}

int ptx_find_type(const char *name, int len, struct type *type)
{
    /* clang-format off */
    static const struct { const char *name; struct type type; } types[] = {
        {"b8", {'b', 8}}, {"b16", {'b', 16}}, {"b32", {'b', 32}}, {"b64", {'b', 64}},
        {"u8", {'u', 8}}, {"u16", {'u', 16}}, {"u32", {'u', 32}}, {"u64", {'u', 64}},
        {"s8", {'s', 8}}, {"s16", {'s', 16}}, {"s32", {'s', 32}}, {"s64", {'s', 64}},
        {"f32", {'f', 32}}, {"f64", {'f', 64}}, {"pred", {'p', 1}}};
    /* clang-format on */
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == (size_t)len && !memcmp(types[i].name, name, (size_t)len)) {
            *type = types[i].type;
            return 1;
        }
    return 0;
}

uint64_t ptx_number(struct parser *p, int bits)
{
    int negative = ptx_accept(p, '-');
    const struct token *t = ptx_next(p);
    char text[40], *end;
    if (t->kind != TOKEN_NUMBER || t->len >= (int)sizeof text)
        ptx_refuse(p, t, "expected a number");
    memcpy(text, t->at, (size_t)t->len);
    text[t->len] = 0;
    if (text[0] == '0' && strchr("fFdD", text[1]) && text[1]) {
        int digits = tolower((unsigned char)text[1]) == 'f' ? 8 : 16;
        uint64_t image = strtoull(text + 2, &end, 16);
        if (negative || t->len != digits + 2 || *end || bits != digits * 4)
            ptx_refuse(p, t, "floating-point image of another width");
        return image;
    }
    int base = text[0] != '0' ? 10 : tolower((unsigned char)text[1]) == 'b' ? 2 : 0;
    errno = 0;
    uint64_t value = strtoull(base == 2 ? text + 2 : text, &end, base);
    if (*end == 'U')
        end++;
    if (end == text || *end || errno)
        ptx_refuse(p, t, "number not understood");
    uint64_t mask = bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
    if (value > mask || (negative && value > (uint64_t)1 << (bits - 1)))
        ptx_refuse(p, t, "number does not fit its type");
    return (negative ? 0 - value : value) & mask;
}

size_t ptx_count(struct parser *p, size_t max)
{
    const struct token *t = ptx_peek(p);
    uint64_t value = ptx_number(p, 63);
    if (value > max)
        ptx_refuse(p, t, "number too large here");
    return value;
}
