/* json.c: a JSON text as a tree, by recursive descent of bounded depth. Layer 6. */
#include "files/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"

enum { DEPTH = 64, MOST_VALUES = 10000, MOST_KEY = 32 };

struct reader {
    const char *p, *end;
    struct xti_arena *arena;
    const char *const *wanted;
    bool no_memory, skipping;  /* what is skipped is read as strictly, and not kept */
    int values;                /* that were kept */
    char word[MOST_KEY + 8];   /* the last string that was skipped, as far as it fits */
    char member[MOST_KEY + 8]; /* of the outermost object, as far as it fits */
    bool known, optional;      /* it is in wanted; its value has "must_understand": false */
    const char *unknown;       /* the first that is neither */
};

static bool value(struct reader *r, struct xti_json *v, int depth);

static void *room(struct reader *r, size_t bytes)
{
    void *p = xti_arena_alloc(r->arena, bytes);
    r->no_memory |= !p;
    return p;
}

static void blanks(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

static bool take(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n))
        return false;
    r->p += n;
    return true;
}

static bool hex4(struct reader *r, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, r->p++) {
        char c = r->p < r->end ? *r->p : 0;
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0)
            return false;
        *out = *out << 4 | (unsigned)d;
    }
    return true;
}

static char *put_utf8(char *to, unsigned c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800)
        *to++ = (char)(0xc0 | c >> 6);
    else {
        if (c < 0x10000)
            *to++ = (char)(0xe0 | c >> 12);
        else {
            *to++ = (char)(0xf0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 63));
        }
        *to++ = (char)(0x80 | (c >> 6 & 63));
    }
    *to++ = (char)(0x80 | (c & 63));
    return to;
}

/* A NUL would end the text. */
static bool escape(struct reader *r, char **to)
{
    static const char from[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
    unsigned c, low;
    const char *at = r->p < r->end ? strchr(from, *r->p) : NULL;
    if (at && *at) {
        *(*to)++ = is[at - from];
        r->p++;
        return true;
    }
    if (!take(r, "u") || !hex4(r, &c) || !c || c >> 10 == 0xdc00 >> 10)
        return false;
    if (c >> 10 == 0xd800 >> 10) {
        if (!take(r, "\\u") || !hex4(r, &low) || low >> 10 != 0xdc00 >> 10)
            return false;
        c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
    }
    *to = put_utf8(*to, c);
    return true;
}

/* Behind the first quote. Unescaped text is not longer. */
static const char *string(struct reader *r)
{
    const char *end = r->p;
    while (end < r->end && *end != '"')
        end += *end == '\\' ? 2 : 1;
    if (end >= r->end)
        return NULL;
    char *text = r->skipping ? r->word : room(r, (size_t)(end - r->p) + 1), *to = text;
    while (text && r->p < end) {
        if (r->skipping && to > r->word + MOST_KEY)
            to = r->word + MOST_KEY;
        if ((unsigned char)*r->p < ' ')
            return NULL;
        if (*r->p != '\\')
            *to++ = *r->p++;
        else if (r->p++, !escape(r, &to))
            return NULL;
    }
    if (text)
        *to = 0;
    return text && take(r, "\"") ? text : NULL;
}

static int digits(struct reader *r)
{
    int n = 0;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
        n++;
    return n;
}

static bool number(struct reader *r, struct xti_json *v)
{
    const char *start = r->p;
    take(r, "-");
    bool zero = r->p < r->end && *r->p == '0';
    int n = digits(r);
    if (!n || (zero && n > 1) || (take(r, ".") && !digits(r)))
        return false;
    if (take(r, "e") || take(r, "E")) {
        if (!take(r, "+"))
            take(r, "-");
        if (!digits(r))
            return false;
    }
    size_t bytes = (size_t)(r->p - start);
    char *text = r->skipping ? r->word : room(r, bytes + 1);
    if (text && !r->skipping)
        memcpy(text, start, bytes);
    v->text = text;
    return text;
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const struct xti_json *const *)a)->key, (*(const struct xti_json *const *)b)->key);
}

static bool keys_differ(struct reader *r, const struct xti_json *object)
{
    const struct xti_json **all = xti_alloc_array((size_t)object->n, sizeof *all);
    bool differ = all;
    int n = 0;
    r->no_memory |= !all;
    for (const struct xti_json *v = object->first; all && v; v = v->next)
        all[n++] = v;
    if (all)
        qsort(all, (size_t)n, sizeof *all, by_key);
    for (int i = 1; i < n && differ; i++)
        differ = strcmp(all[i - 1]->key, all[i]->key) != 0;
    xti_free(all);
    return differ;
}

/* A value of the tree, or one that is skipped. */
static struct xti_json *next_value(struct reader *r, struct xti_json *skipped)
{
    return r->skipping ? skipped : r->values++ < MOST_VALUES ? room(r, sizeof *skipped) : NULL;
}

/* The key of a member. Skips from there on what the outermost object has and nobody wants. */
static const char *key_of(struct reader *r, int depth)
{
    if (!take(r, "\""))
        return NULL;
    const char *start = r->p;
    if (depth == 1) {
        const char *const *w = r->wanted;
        r->skipping = true;
        const char *word = string(r);
        while (word && *w && strcmp(*w + (**w == '-'), word))
            w++;
        r->known = word && *w;
        r->skipping = !r->known || **w == '-';
        r->optional = false;
        r->p = start;
        if (word)
            memcpy(r->member, r->word, sizeof r->word);
    }
    return string(r);
}

/* Of a member that was read. (A string that was skipped may lie where the key lay.) */
static bool note_member(struct reader *r, const char *key, const struct xti_json *v, int depth)
{
    if (depth == 2 && v->kind == XTI_JSON_BOOL && !strcmp(key, "must_understand"))
        r->optional = !v->yes;
    if (depth > 1 || r->known || r->optional || r->unknown)
        return true;
    char *copy = room(r, sizeof r->member);
    if (copy)
        memcpy(copy, r->member, sizeof r->member);
    r->unknown = copy;
    return copy;
}

/* Items up to the closing bracket; of an object with their keys. */
static bool items(struct reader *r, struct xti_json *v, const char *close, int depth)
{
    struct xti_json **at = &v->first;
    bool object = v->kind == XTI_JSON_OBJECT;
    blanks(r);
    if (take(r, close))
        return true;
    bool skipping = r->skipping;
    do {
        struct xti_json none = {0}, *item;
        const char *key = NULL;
        blanks(r);
        if ((object && !(key = key_of(r, depth))) || !(item = next_value(r, &none)))
            return false;
        blanks(r);
        if ((object && !take(r, ":")) || !value(r, item, depth) ||
            (object && !note_member(r, key, item, depth)))
            return false;
        if (item != &none) {
            item->key = key;
            *at = item;
            at = &item->next;
            v->n++;
        }
        r->skipping = skipping;
        blanks(r);
    } while (take(r, ","));
    return take(r, close) && (!object || skipping || keys_differ(r, v));
}

static bool value(struct reader *r, struct xti_json *v, int depth)
{
    blanks(r);
    if (depth == DEPTH)
        return false;
    if (take(r, "{"))
        return v->kind = XTI_JSON_OBJECT, items(r, v, "}", depth + 1);
    if (take(r, "["))
        return v->kind = XTI_JSON_LIST, items(r, v, "]", depth + 1);
    if (take(r, "\""))
        return v->kind = XTI_JSON_STRING, (v->text = string(r)) != NULL;
    if (take(r, "null"))
        return v->kind = XTI_JSON_NULL, true;
    v->yes = take(r, "true");
    if (v->yes || take(r, "false"))
        return v->kind = XTI_JSON_BOOL, true;
    return v->kind = XTI_JSON_NUMBER, number(r, v);
}

const struct xti_json *xti_json_read(const char *text, size_t n, const char *const *wanted,
                                     struct xti_arena *arena, bool *no_memory)
{
    struct reader r = {.p = text, .end = text + n, .arena = arena, .wanted = wanted};
    struct xti_json *v = room(&r, sizeof *v);
    bool ok = v && !memchr(text, 0, n) && value(&r, v, 0);
    *no_memory = r.no_memory;
    if (ok && v->kind == XTI_JSON_OBJECT)
        v->text = r.unknown;
    blanks(&r);
    return ok && r.p == r.end ? v : NULL;
}

const struct xti_json *xti_json_at(const struct xti_json *object, const char *key)
{
    const struct xti_json *v = object && object->kind == XTI_JSON_OBJECT ? object->first : NULL;
    while (v && strcmp(v->key, key))
        v = v->next;
    return v;
}

bool xti_json_is(const struct xti_json *v, const char *string)
{
    return v && v->kind == XTI_JSON_STRING && !strcmp(v->text, string);
}

bool xti_json_int(const struct xti_json *v, int64_t *out)
{
    const char *p = v && v->kind == XTI_JSON_NUMBER ? v->text : "x";
    bool minus = *p == '-';
    int64_t x = 0;
    for (p += minus; *p >= '0' && *p <= '9'; p++)
        if (!xti_mul64(x, 10, &x) || !xti_sub64(x, *p - '0', &x))
            return false;
    if (*p || (!minus && x == INT64_MIN))
        return false;
    *out = minus ? x : -x;
    return true;
}

int xti_json_ints(const struct xti_json *v, int most, int64_t *out)
{
    int n = 0;
    if (!v || v->kind != XTI_JSON_LIST || v->n > most)
        return -1;
    for (const struct xti_json *i = v->first; i; i = i->next)
        if (!xti_json_int(i, &out[n++]))
            return -1;
    return n;
}
