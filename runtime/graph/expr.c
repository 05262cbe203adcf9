/* expr.c: expressions: names, calls, methods, indexing, lists. A loop over a stack of open brackets of
 * bounded depth. Nodes are built as soon as their closing bracket is read. Layer 1. */
#include "graph/parse.h"

#include <string.h>

#include "graph/dtype.h"
#include "graph/hint.h"

struct xti_open {
    const struct xti_call *call; /* NULL: a list, a tuple or plain parentheses */
    xt_node x;                   /* the operand of a method, else -1 */
    int first;                   /* first item inside; of a list: its XTI_ITEM_OPEN */
    struct xti_token at;         /* the operation's name, or the bracket */
    struct xti_token key;        /* of the argument that the whole is */
    bool comma;                  /* the last thing read was a comma */
};

enum state { OPERAND, POSTFIX, AFTER_ITEM, CLOSE, DONE, FAILED };

struct machine {
    struct xti_parser *p;
    int base;                 /* brackets open outside this expression */
    xt_node x;                /* POSTFIX: the value so far */
    struct xti_token key;     /* of the argument being read */
    const char *start;        /* where it stands */
    struct xti_token library; /* the F of F.pad, when that is the name to be read */
};

xt_node xti_parse_find(const struct xti_parser *p, struct xti_token name)
{
    for (int i = 0; i < p->n_symbols; i++)
        if (p->symbol[i].n == name.n && !memcmp(p->symbol[i].s, name.s, name.n))
            return p->symbol[i].node;
    return -1;
}

static bool inside(const struct machine *m) { return m->p->n_open > m->base; }

static bool push_item(struct machine *m, enum xti_item_kind kind, const char *s, size_t n, xt_node node)
{
    struct xti_parser *p = m->p;
    struct xti_item *v = xti_parse_room(p, p->item, sizeof *v, p->n_items, &p->cap_items);
    if (!v)
        return false;
    p->item = v;
    p->item[p->n_items++] = (struct xti_item){kind, m->key, s, n, node};
    m->key.n = 0;
    return true;
}

/* The opening bracket is the next token. */
static enum state push_open(struct machine *m, const struct xti_call *call, xt_node x, struct xti_token at)
{
    struct xti_parser *p = m->p;
    if (p->n_open == XTI_MAX_NEST) {
        xti_parse_fail(p, XT_ESYNTAX, at.s, "nested deeper than %d brackets", XTI_MAX_NEST);
        return FAILED;
    }
    struct xti_open *v = xti_parse_room(p, p->open, sizeof *v, p->n_open, &p->cap_open);
    if (!v)
        return FAILED;
    p->open = v;
    p->open[p->n_open] = (struct xti_open){call, x, p->n_items, at, m->key, false};
    if (!call && !push_item(m, XTI_ITEM_OPEN, at.s, at.n, -1))
        return FAILED;
    p->n_open++;
    m->key.n = 0;
    xti_lex_next(p);
    return xti_lex_is(p, ")") || xti_lex_is(p, "]") ? CLOSE : OPERAND;
}

/* A number, n bytes from the next token on, or a string. */
static enum state take_value(struct machine *m, enum xti_item_kind kind, size_t n)
{
    struct xti_parser *p = m->p;
    if (!inside(m)) {
        xti_lex_expected(p, "an expression");
        return FAILED;
    }
    if (!push_item(m, kind, p->tok.s, n, -1))
        return FAILED;
    p->tok.n = n;
    xti_lex_next(p);
    return AFTER_ITEM;
}

/* A word that is a value: None, True, inf, bits(0x7fc1). */
static enum state take_word(struct machine *m)
{
    struct xti_parser *p = m->p;
    if (xti_lex_is(p, "bits")) {
        const char *end = strpbrk(p->tok.s, ");#");
        if (end && *end == ')')
            return take_value(m, XTI_ITEM_NUMBER, (size_t)(end - p->tok.s) + 1);
    } else if (!xti_lex_is(p, "None")) {
        return take_value(m, XTI_ITEM_NUMBER, p->tok.n);
    } else if (inside(m) && push_item(m, XTI_ITEM_NONE, p->tok.s, p->tok.n, -1)) {
        xti_lex_next(p);
        return AFTER_ITEM;
    }
    if (!p->g->err.e.status)
        xti_lex_expected(p, "an expression");
    return FAILED;
}

static const char libraries[] = "np numpy torch xp jnp nn functional F einops tf";

static enum state take_name(struct machine *m)
{
    struct xti_parser *p = m->p;
    struct xti_token name = p->tok, library = m->library;
    m->library.n = 0;
    xt_node x = xti_parse_find(p, name);
    if (x < 0 && xti_word_in("None True False true false inf nan bits", name.s, name.n))
        return take_word(m);
    xti_lex_next(p);
    if (inside(m) && !m->key.n && xti_lex_take(p, "=")) {
        m->key = name;
        return OPERAND;
    }
    if (x >= 0) {
        m->x = x;
        return POSTFIX;
    }
    if (xti_word_in(libraries, name.s, name.n) && xti_lex_take(p, ".")) {
        m->library = name;
        return OPERAND;
    }
    const struct xti_call *call = xti_call_find(name, library);
    if (call && xti_lex_is(p, "("))
        return push_open(m, call, -1, name);
    if (call)
        xti_parse_fail(p, XT_ESYNTAX, name.s, "'%.*s' is an operation: expected '(' after it", (int)name.n,
                       name.s);
    else if (xti_lex_is(p, "("))
        xti_hint_operation(p, name);
    else
        xti_hint_name(p, name);
    return FAILED;
}

static enum state operand(struct machine *m)
{
    struct xti_parser *p = m->p;
    if (!m->key.n)
        m->start = p->tok.s;
    if (p->tok.kind == XTI_NAME)
        return take_name(m);
    if (p->tok.kind == XTI_NUMBER)
        return take_value(m, XTI_ITEM_NUMBER, p->tok.n);
    if (p->tok.kind == XTI_STRING && inside(m))
        return take_value(m, XTI_ITEM_STRING, p->tok.n);
    if (xti_lex_is(p, "(") || xti_lex_is(p, "["))
        return push_open(m, NULL, -1, p->tok);
    if (!xti_hint_no_arithmetic(p))
        return FAILED;
    if (xti_lex_is(p, "\"") || xti_lex_is(p, "'"))
        xti_parse_fail(p, XT_ESYNTAX, p->tok.s, "the string is not closed");
    else if (xti_lex_is(p, "."))
        xti_parse_fail(p, XT_ESYNTAX, p->tok.s, "'.' follows a tensor, as in x.flip(0)");
    else
        xti_lex_expected(p, inside(m) ? "an argument" : "an expression");
    return FAILED;
}

/* ---- indexing */

static bool slice_bound(struct xti_parser *p, int64_t *out)
{
    if (p->tok.kind != XTI_NUMBER)
        return true; /* left out */
    if (!xti_lex_int(p, out))
        return false;
    *out += *out == XT_NONE; /* as far out, and not the word for none */
    return true;
}

static bool index_item(struct xti_parser *p, struct xt_index *it)
{
    *it = (struct xt_index){XT_SLICE, XT_NONE, XT_NONE, 1};
    if (xti_lex_take(p, "None") || xti_lex_take(p, "newaxis")) {
        it->kind = XT_NEWAXIS;
        return true;
    }
    if (xti_lex_take(p, "...")) {
        it->kind = XT_ELLIPSIS;
        return true;
    }
    if (xti_lex_is(p, "[") || xti_lex_is(p, "(") ||
        (p->tok.kind == XTI_NAME && xti_parse_find(p, p->tok) >= 0))
        return xti_parse_fail(p, XT_ESYNTAX, p->tok.s,
                              "an index is an integer or a slice: lists and tensors (fancy indexing) are not "
                              "known when the chain is compiled");
    if (p->tok.kind != XTI_NUMBER && !xti_lex_is(p, ":"))
        return xti_lex_expected(p, "an index or a slice");
    if (!slice_bound(p, &it->start))
        return false;
    if (!xti_lex_take(p, ":")) {
        it->kind = XT_AT;
        return true;
    }
    if (!slice_bound(p, &it->stop))
        return false;
    if (!xti_lex_take(p, ":") || p->tok.kind != XTI_NUMBER)
        return true;
    return xti_lex_int(p, &it->step);
}

static enum state take_index(struct machine *m)
{
    struct xti_parser *p = m->p;
    struct xt_index items[2 * XT_MAX_RANK + 1];
    const char *at = p->tok.s;
    int n = 0;
    xti_lex_next(p);
    while (!xti_lex_is(p, "]")) {
        if (n == 2 * XT_MAX_RANK + 1) {
            xti_parse_fail(p, XT_ERANK, p->tok.s, "more than %d indices", n);
            return FAILED;
        }
        if (!index_item(p, &items[n++]))
            return FAILED;
        if (!xti_lex_take(p, ",") && !xti_lex_is(p, "]")) {
            xti_lex_expected(p, "',', ':' or ']'");
            return FAILED;
        }
    }
    if (!n) {
        xti_lex_expected(p, "an index or a slice");
        return FAILED;
    }
    xti_lex_next(p);
    xti_parse_at(p, at);
    m->x = xt_index(p->g, m->x, n, items);
    return m->x < 0 ? FAILED : POSTFIX;
}

/* ---- after a value */

static enum state take_method(struct machine *m)
{
    struct xti_parser *p = m->p;
    struct xti_token name = p->tok;
    if (name.kind != XTI_NAME) {
        xti_lex_expected(p, "an operation after '.'");
        return FAILED;
    }
    xti_lex_next(p);
    if (!xti_lex_is(p, "(") && xti_word_in("T mT", name.s, name.n)) {
        m->x = xti_call_attribute(p, m->x, name);
        return m->x < 0 ? FAILED : POSTFIX;
    }
    const struct xti_call *call = xti_call_find(name, (struct xti_token){0});
    if (call && xti_lex_is(p, "("))
        return push_open(m, call, m->x, name);
    if (call)
        xti_lex_expected(p, "'('");
    else
        xti_hint_operation(p, name);
    return FAILED;
}

static enum state postfix(struct machine *m)
{
    struct xti_parser *p = m->p;
    if (xti_lex_take(p, "."))
        return take_method(m);
    if (xti_lex_is(p, "["))
        return take_index(m);
    if (!xti_hint_no_arithmetic(p))
        return FAILED;
    if (!inside(m))
        return DONE;
    return push_item(m, XTI_ITEM_NODE, m->start, (size_t)(p->tok.s - m->start), m->x) ? AFTER_ITEM : FAILED;
}

static enum state after_item(struct machine *m)
{
    struct xti_parser *p = m->p;
    bool close = xti_lex_is(p, ")") || xti_lex_is(p, "]");
    p->open[p->n_open - 1].comma = false;
    if (close)
        return CLOSE;
    if (!xti_lex_take(p, ",")) {
        xti_lex_expected(p, "',' or a closing bracket");
        return FAILED;
    }
    p->open[p->n_open - 1].comma = true;
    return xti_lex_is(p, ")") || xti_lex_is(p, "]") ? CLOSE : OPERAND;
}

static enum state close_list(struct machine *m, struct xti_open o, const char *end)
{
    struct xti_parser *p = m->p;
    const struct xti_item *only = &p->item[p->n_items - 1];
    if (p->n_items == o.first + 2 && only->kind == XTI_ITEM_NODE && !only->key.n && *o.at.s == '(' &&
        !o.comma) {
        m->x = only->node;
        m->key = o.key;
        m->start = o.at.s;
        p->n_items = o.first;
        return POSTFIX;
    }
    if (!inside(m)) {
        xti_parse_fail(p, XT_ESYNTAX, o.at.s, "a list is not an expression");
        return FAILED;
    }
    p->item[o.first].n = (size_t)(end - o.at.s);
    m->key.n = 0;
    return push_item(m, XTI_ITEM_CLOSE, end - 1, 1, -1) ? AFTER_ITEM : FAILED;
}

static enum state close_bracket(struct machine *m)
{
    struct xti_parser *p = m->p;
    struct xti_open o = p->open[p->n_open - 1];
    bool square = !o.call && *o.at.s == '[';
    const char *end = p->tok.s + 1;
    if (!xti_lex_want(p, square ? "]" : ")"))
        return FAILED;
    p->n_open--;
    if (!o.call)
        return close_list(m, o, end);
    m->x = xti_call_apply(p, o.call, o.x, o.first, o.at);
    m->key = o.key;
    m->start = o.at.s;
    return m->x < 0 ? FAILED : POSTFIX;
}

xt_node xti_parse_expression(struct xti_parser *p)
{
    static enum state (*const act[])(struct machine *) = {operand, postfix, after_item, close_bracket};
    struct machine m = {.p = p, .base = p->n_open, .x = -1, .start = p->tok.s};
    enum state s = OPERAND;
    while (s != DONE && s != FAILED)
        s = act[s](&m);
    return s == DONE ? m.x : -1;
}
