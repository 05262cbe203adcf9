/* args.c: positional and keyword arguments, lists and tuples, to the slots of an operation's parameters, and
 * the slots' numbers. Layer 1. */
#include "graph/args.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "graph/dtype.h"
#include "graph/spelling.h"
#include "graph/value.h"

bool xti_args_fail(struct xti_args *b, xt_status s, const char *what, const char *detail, size_t n)
{
    return xti_parse_fail(b->p, s, b->at.s, "%.*s: %s%.*s", (int)b->at.n, b->at.s, what, n < 60 ? (int)n : 60,
                          detail);
}

static size_t first_word(const char *names) { return strcspn(names, " "); }

bool xti_args_fail_param(struct xti_args *b, int i, const char *what)
{
    const char *names = b->c->param[i].names;
    char text[80];
    snprintf(text, sizeof text, "%.*s %s", (int)first_word(names), names, what);
    return xti_args_fail(b, XT_ESYNTAX, text, "", 0);
}

bool xti_args_given(const struct xti_args *b, int i) { return b->slot[i].a < b->slot[i].b; }

/* One past the argument that begins at item i. */
static int skip_argument(const struct xti_parser *p, int i)
{
    int depth = 0;
    do {
        depth += p->item[i].kind == XTI_ITEM_OPEN;
        depth -= p->item[i].kind == XTI_ITEM_CLOSE;
        i++;
    } while (depth);
    return i;
}

/* All integers of a slot, brackets left out. */
bool xti_args_numbers(struct xti_args *b, int slot, int *n, int64_t out[XTI_MAX_NUMBERS])
{
    *n = 0;
    for (int i = b->slot[slot].a; i < b->slot[slot].b; i++) {
        const struct xti_item *it = &b->p->item[i];
        if (it->kind == XTI_ITEM_OPEN || it->kind == XTI_ITEM_CLOSE)
            continue;
        if (it->kind != XTI_ITEM_NUMBER)
            return xti_args_fail_param(b, slot, "wants integers");
        if (*n == XTI_MAX_NUMBERS)
            return xti_args_fail(b, XT_ERANK, "more numbers than axes", "", 0);
        if (!xti_lex_number(b->p, it->s, it->n, &out[(*n)++]))
            return false;
    }
    return true;
}

/* A list inside a list is for pad alone. */
bool xti_args_list(struct xti_args *b, int slot, int *n, int64_t out[XTI_MAX_NUMBERS])
{
    for (int i = b->slot[slot].a + 1; i < b->slot[slot].b; i++)
        if (b->p->item[i].kind == XTI_ITEM_OPEN)
            return xti_args_fail_param(b, slot, "wants one list");
    return xti_args_numbers(b, slot, n, out);
}

bool xti_args_int(struct xti_args *b, int slot, int64_t *out)
{
    struct xti_slot s = b->slot[slot];
    if (s.b != s.a + 1 || b->p->item[s.a].kind != XTI_ITEM_NUMBER)
        return xti_args_fail_param(b, slot, s.a == s.b ? "is missing" : "wants one integer");
    return xti_lex_number(b->p, b->p->item[s.a].s, b->p->item[s.a].n, out);
}

bool xti_args_int_or(struct xti_args *b, int slot, int64_t fallback, int64_t *out)
{
    *out = fallback;
    return !xti_args_given(b, slot) || xti_args_int(b, slot, out);
}

/* Far out of range stays out of range. */
int xti_args_axis(int64_t v) { return v < INT_MIN ? INT_MIN : v > INT_MAX ? INT_MAX : (int)v; }

bool xti_args_axes(struct xti_args *b, int slot, int *n, int out[XTI_MAX_NUMBERS])
{
    int64_t v[XTI_MAX_NUMBERS];
    if (!xti_args_list(b, slot, n, v))
        return false;
    for (int i = 0; i < *n; i++)
        out[i] = xti_args_axis(v[i]);
    return true;
}

/* The bytes of a value argument; *value is NULL when none is given. */
bool xti_args_value(struct xti_args *b, int slot, unsigned char bytes[16], const void **out)
{
    *out = NULL;
    if (!xti_args_given(b, slot))
        return true;
    const struct xti_item *it = &b->p->item[b->slot[slot].a];
    xt_dtype t = b->p->g->node[b->x].dtype;
    const char *why = xti_value_parse(t, it->s, it->n, bytes);
    if (why)
        return xti_parse_fail(b->p, XT_EDTYPE, it->s, "%.*s: value '%.*s' for %s %s", (int)b->at.n, b->at.s,
                              it->n < 40 ? (int)it->n : 40, it->s, xt_dtype_name(t), why);
    *out = bytes;
    return true;
}

bool xti_args_text(struct xti_args *b, int slot, char out[XTI_MAX_STRING])
{
    if (!xti_args_given(b, slot))
        return xti_args_fail_param(b, slot, "is missing");
    const struct xti_item *it = &b->p->item[b->slot[slot].a];
    if (it->kind != XTI_ITEM_STRING)
        return xti_args_fail_param(b, slot, "wants a string");
    if (it->n - 2 >= XTI_MAX_STRING)
        return xti_args_fail_param(b, slot, "is too long");
    memcpy(out, it->s + 1, it->n - 2);
    out[it->n - 2] = 0;
    return true;
}

static int find_param(const struct xti_args *b, struct xti_token key)
{
    for (int i = 0; i < XTI_MAX_PARAMS && b->c->param[i].kind != XTI_NO_PARAM; i++)
        if (xti_word_in(b->c->param[i].names, key.s, key.n) || b->c->param[i].kind == XTI_LENGTHS)
            return i;
    return -1;
}

/* The next positional argument [a, e) goes to the first parameter that takes it; *at: the current one. */
static bool bind_positional(struct xti_args *b, int *at, int a, int e)
{
    const struct xti_item *it = b->p->item;
    while (*at < XTI_MAX_PARAMS && xti_args_given(b, *at)) {
        const struct xti_slot *s = &b->slot[*at];
        enum xti_param_kind k = b->c->param[*at].kind;
        bool list = it[s->a].kind == XTI_ITEM_OPEN;
        bool more = (k == XTI_SPREAD && !list && it[a].kind != XTI_ITEM_OPEN) ||
                    (k == XTI_PAIRS && list && it[a].kind == XTI_ITEM_OPEN);
        if (more && s->b == a && !it[s->a].key.n) {
            b->slot[*at].b = e;
            return true;
        }
        ++*at;
    }
    if (*at == XTI_MAX_PARAMS || b->c->param[*at].kind == XTI_NO_PARAM)
        return xti_args_fail(b, XT_ESYNTAX, "too many arguments", "", 0);
    if (b->c->param[*at].kind == XTI_LENGTHS)
        return xti_args_fail_param(b, *at, "must be named: h=8");
    bool after_text = *at > 0 && b->c->param[*at - 1].kind == XTI_TEXT && xti_args_given(b, *at - 1);
    if (b->c->param[*at].kind == XTI_VALUE && !after_text)
        return xti_args_fail_param(b, *at, "must be named: value=..");
    if (it[a].kind == XTI_ITEM_NONE)
        ++*at;
    else
        b->slot[*at] = (struct xti_slot){a, e};
    return true;
}

/* "pad: no argument is called valu: did you mean 'value'?", at the keyword; where none is near, which there
 * are. */
bool xti_args_fail_keyword(struct xti_args *b, struct xti_token key)
{
    struct xti_spelling best = xti_spelling_start(key);
    char text[160] = "it takes none";
    size_t at = 0;
    bool several = b->c->param[1].kind != XTI_NO_PARAM;
    for (int i = 0; i < XTI_MAX_PARAMS && b->c->param[i].kind != XTI_NO_PARAM; i++) {
        const char *names = b->c->param[i].names;
        xti_spelling_look_at(&best, names);
        if (at < sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s",
                                   i         ? ", "
                                   : several ? "there are "
                                             : "there is ",
                                   (int)first_word(names), names);
    }
    if (best.n)
        snprintf(text, sizeof text, "did you mean '%.*s'?", (int)best.n, best.s);
    return xti_parse_fail(b->p, XT_ESYNTAX, key.s, "%.*s: no argument is called %.*s: %s", (int)b->at.n,
                          b->at.s, key.n < 60 ? (int)key.n : 60, key.s, text);
}

bool xti_args_bind(struct xti_args *b)
{
    const struct xti_parser *p = b->p;
    int at = 0;
    for (int a = b->first, e; a < p->n_items; a = e) {
        struct xti_token key = p->item[a].key;
        e = skip_argument(p, a);
        if (!key.n) {
            if (!bind_positional(b, &at, a, e))
                return false;
            continue;
        }
        int i = find_param(b, key);
        if (i < 0)
            return xti_args_fail_keyword(b, key);
        if (b->c->param[i].kind == XTI_LENGTHS)
            continue;
        if (xti_args_given(b, i))
            return xti_args_fail_param(b, i, "is given twice");
        if (p->item[a].kind != XTI_ITEM_NONE)
            b->slot[i] = (struct xti_slot){a, e};
    }
    return true;
}
