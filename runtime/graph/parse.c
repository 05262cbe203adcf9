/* parse.c: statements of a problem line: declarations of inputs, names for expressions, the result and its
 * layout. Safe on any bytes; memory is bounded by the text's length. Layer 1. */
#include "graph/parse.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "graph/dtype.h"
#include "graph/hint.h"
#include "graph/mesh.h"

/* What a declaration said. */
struct declared {
    struct xti_token name;
    xt_dtype dtype; /* 0: left out */
    int rank;       /* -1: left out */
    int64_t shape[XT_MAX_RANK];
    bool layout;
    int64_t strides[XT_MAX_RANK];
    int64_t offset;
    struct xti_spread spread; /* over the mesh, where there is one */
};

static int width(struct xti_token t) { return t.n < 40 ? (int)t.n : 40; }

static bool define(struct xti_parser *p, struct xti_token name, xt_node x)
{
    for (int i = 0; i < p->n_symbols; i++) {
        if (p->symbol[i].n == name.n && !memcmp(p->symbol[i].s, name.s, name.n)) {
            p->symbol[i].node = x;
            return true;
        }
    }
    if (p->n_symbols == XTI_MAX_NAMES)
        return xti_parse_fail(p, XT_EUNSUPPORTED, name.s, "more than %d names", XTI_MAX_NAMES);
    struct xti_symbol *v = xti_parse_room(p, p->symbol, sizeof *v, p->n_symbols, &p->cap_symbols);
    if (!v)
        return false;
    p->symbol = v;
    p->symbol[p->n_symbols++] = (struct xti_symbol){name.s, name.n, x};
    return true;
}

static bool check_name(struct xti_parser *p, struct xti_token name)
{
    if (xti_name_ok(name.s, name.n))
        return true;
    if (name.n > XTI_MAX_NAME)
        return xti_parse_fail(p, XT_ESYNTAX, name.s, "the name is longer than %d letters", XTI_MAX_NAME);
    return xti_parse_fail(p, XT_ESYNTAX, name.s, "'%.*s' has a meaning of its own: choose another name",
                          width(name), name.s);
}

/* ---- inputs */

/* :[1,4]+0 -- the colon is taken. */
static bool parse_layout(struct xti_parser *p, int rank, int64_t *strides, int64_t *offset)
{
    int n;
    const char *at = p->tok.s;
    *offset = 0;
    if (!xti_lex_list(p, &n, strides))
        return false;
    if (n != rank)
        return xti_parse_fail(p, XT_ERANK, at, "%d strides for a shape of %d axes", n, rank);
    if (xti_lex_take(p, "+") || (p->tok.kind == XTI_NUMBER && *p->tok.s == '+'))
        return xti_lex_int(p, offset);
    return true;
}

/* NumPy's <f4: a mark and a name become one name; so does a library's, np.float32. */
static void join_byte_order(struct xti_parser *p)
{
    struct xti_token t = p->tok;
    if (t.kind == XTI_NAME && xti_word_in("np numpy torch jnp", t.s, t.n) && t.s[t.n] == '.') {
        xti_lex_next(p);
        xti_lex_next(p);
    } else if (t.kind == XTI_MARK && t.n == 1 && strchr("<>=|", *t.s)) {
        xti_lex_next(p);
        if (p->tok.kind == XTI_NAME && p->tok.s == t.s + 1)
            p->tok = (struct xti_token){XTI_NAME, t.s, p->tok.n + 1};
        else
            p->tok = t;
    }
}

/* After the name. */
static bool parse_declaration(struct xti_parser *p, struct declared *d)
{
    if (!xti_lex_take(p, ":"))
        return true;
    join_byte_order(p);
    if (p->tok.kind != XTI_NAME && !xti_lex_is(p, "["))
        return xti_lex_expected(p, "an element type");
    if (p->tok.kind == XTI_NAME) {
        d->dtype = xti_dtype_find(p->tok.s, p->tok.n);
        if (!d->dtype)
            return xti_hint_dtype(p, p->tok);
        xti_lex_next(p);
    }
    if (xti_lex_is(p, "("))
        return xti_parse_fail(p, XT_ESYNTAX, p->tok.s, "a shape stands in brackets, as in f32[2,3]");
    if (!xti_lex_is(p, "["))
        return true;
    if (!(p->mesh ? xti_mesh_shape(p, &d->rank, d->shape, &d->spread) : xti_lex_list(p, &d->rank, d->shape)))
        return false;
    d->layout = xti_lex_take(p, ":");
    return !d->layout || parse_layout(p, d->rank, d->strides, &d->offset);
}

static bool same_shape(const struct declared *d, const struct xt_shape *s)
{
    return d->rank == s->rank &&
           (d->rank == 0 || !memcmp(d->shape, s->shape, (size_t)d->rank * sizeof *d->shape));
}

/* Completes a declaration from what the caller gave. */
static bool merge_given(struct xti_parser *p, struct declared *d, const struct xt_shape *s)
{
    struct xti_token t = d->name;
    char a[XTI_SHAPE_TEXT], b[XTI_SHAPE_TEXT];
    if (s->rank < -1 || s->rank > XT_MAX_RANK)
        return xti_parse_fail(p, XT_ERANK, t.s, "input %.*s: the given rank %d is not in [-1,%d]", width(t),
                              t.s, s->rank, XT_MAX_RANK);
    if (s->dtype && !xti_dtype(s->dtype))
        return xti_parse_fail(p, XT_EDTYPE, t.s, "input %.*s: %d is not an element type", width(t), t.s,
                              (int)s->dtype);
    if (s->dtype && d->dtype && s->dtype != d->dtype)
        return xti_parse_fail(p, XT_EDTYPE, t.s, "input %.*s is declared %s, given %s", width(t), t.s,
                              xt_dtype_name(d->dtype), xt_dtype_name(s->dtype));
    if (s->dtype)
        d->dtype = s->dtype;
    if (s->rank < 0 || d->layout)
        return true;
    if (d->rank >= 0 && !same_shape(d, s))
        return xti_parse_fail(p, XT_ESHAPE, t.s, "input %.*s is declared %s, given %s", width(t), t.s,
                              xti_shape_text(a, sizeof a, d->rank, d->shape),
                              xti_shape_text(b, sizeof b, s->rank, s->shape));
    d->rank = s->rank;
    if (s->rank)
        memcpy(d->shape, s->shape, (size_t)s->rank * sizeof *d->shape);
    return true;
}

static void take_layout(struct xti_spread *s, bool *layout, const int64_t *strides, int64_t offset)
{
    s->layout = *layout;
    s->offset = *layout ? offset : 0;
    if (*layout && s->rank)
        memcpy(s->strides, strides, (size_t)s->rank * sizeof *strides);
    *layout = false;
}

static bool declare(struct xti_parser *p, struct xti_token name)
{
    struct declared d = {.name = name, .rank = -1};
    char text[XTI_MAX_NAME + 1];
    int i = p->g->n_inputs;
    if (!check_name(p, name) || !parse_declaration(p, &d))
        return false;
    if (name.n > XTI_MAX_NAME)
        return xti_parse_fail(p, XT_ESYNTAX, name.s, "the name is longer than %d letters", XTI_MAX_NAME);
    if (i < p->n_given && !merge_given(p, &d, &p->given[i]))
        return false;
    if (!d.dtype && d.rank < 0 && p->n_given)
        return xti_parse_fail(
            p, XT_ESYNTAX, name.s,
            "input %.*s has no element type and shape: %d %s given, for the input%s before it", width(name),
            name.s, p->n_given, p->n_given == 1 ? "is" : "are", p->n_given == 1 ? "" : "s");
    if (!d.dtype && d.rank < 0)
        return xti_parse_fail(p, XT_ESYNTAX, name.s,
                              "input %.*s has no element type and shape, as in x: f32[2,3]", width(name),
                              name.s);
    if (!d.dtype || d.rank < 0)
        return xti_parse_fail(p, XT_ESYNTAX, name.s, "input %.*s has no %s, as in x: f32[2,3]", width(name),
                              name.s, d.dtype ? "shape" : "element type");
    memcpy(text, name.s, name.n);
    text[name.n] = 0;
    if (p->mesh) { /* the layout is that of local arrays */
        take_layout(&d.spread, &d.layout, d.strides, d.offset);
        if (!xti_mesh_input(p, &d.spread))
            return false;
    }
    xti_parse_at(p, name.s);
    xt_node x =
        xt_input(p->g, text, d.dtype, d.rank, d.shape, d.layout ? d.strides : NULL, d.layout ? d.offset : 0);
    return x >= 0 && define(p, name, x);
}

/* ---- result */

/* -> [8,4]:[4,1]+0 -- the arrow is taken. */
static bool parse_destination(struct xti_parser *p, xt_node x, const char *at)
{
    const struct xti_node *n = &p->g->node[x];
    int rank;
    int64_t shape[XT_MAX_RANK], strides[XT_MAX_RANK], offset = 0;
    char a[XTI_SHAPE_TEXT], b[XTI_SHAPE_TEXT];
    if (!(p->mesh ? xti_mesh_shape(p, &rank, shape, &p->mesh->output) : xti_lex_list(p, &rank, shape)))
        return false;
    xti_shape_text(a, sizeof a, n->rank, n->shape);
    xti_shape_text(b, sizeof b, rank, shape);
    if (rank != n->rank || (rank && memcmp(shape, n->shape, (size_t)rank * sizeof *shape)))
        return xti_parse_fail(p, rank != n->rank ? XT_ERANK : XT_ESHAPE, at,
                              "the result is %s, the destination %s", a, b);
    bool layout = xti_lex_take(p, ":");
    if (layout && !parse_layout(p, rank, strides, &offset))
        return false;
    if (p->mesh)
        take_layout(&p->mesh->output, &layout, strides, offset);
    xti_parse_at(p, at);
    return xt_output(p->g, x, layout ? strides : NULL, layout ? offset : 0) == XT_OK;
}

static bool parse_result(struct xti_parser *p)
{
    const char *at = p->tok.s;
    xt_node x = xti_parse_expression(p);
    if (x < 0)
        return false;
    const char *arrow = p->tok.s;
    if (p->mesh && !xti_lex_is(p, "->") && !xti_mesh_everywhere(p, at, p->g->node[x].rank, &p->mesh->output))
        return false;
    xti_parse_at(p, at);
    if (xti_lex_take(p, "->") ? !parse_destination(p, x, arrow) : xt_output(p->g, x, NULL, 0) != XT_OK)
        return false;
    xti_lex_take(p, ";");
    return p->tok.kind == XTI_END || xti_lex_expected(p, "'->' or the end");
}

/* Takes `name` and the mark after it, or leaves the token where it is. */
static bool take_name_and(struct xti_parser *p, const char *mark)
{
    struct xti_token t = p->tok;
    if (t.kind != XTI_NAME)
        return false;
    xti_lex_next(p);
    if (xti_lex_is(p, mark))
        return true;
    p->tok = t;
    return false;
}

static bool is_bare_name(struct xti_parser *p)
{
    struct xti_token t = p->tok;
    bool bare = take_name_and(p, ";");
    p->tok = t;
    if (t.kind == XTI_NAME && !bare) {
        xti_lex_next(p);
        bare = p->tok.kind == XTI_END;
        p->tok = t;
    }
    return bare && xti_parse_find(p, t) < 0;
}

/* mesh r[4]: an input of that name is followed by a mark. */
static bool is_mesh(struct xti_parser *p)
{
    struct xti_token t = p->tok;
    if (!xti_lex_is(p, "mesh"))
        return false;
    xti_lex_next(p);
    bool is = p->tok.kind == XTI_NAME;
    p->tok = t;
    return is;
}

/* Behind a name, "x f32[2,3]" or "x = f32[2,3]": a declaration without its colon fails. */
static bool check_colon(struct xti_parser *p, struct xti_token name)
{
    struct xti_token t = p->tok;
    if (t.kind != XTI_NAME || t.s[t.n] != '[' || !xti_dtype_find(t.s, t.n) || xti_parse_find(p, t) >= 0)
        return true;
    return xti_parse_fail(p, XT_ESYNTAX, name.s + name.n, "an input wants a ':' here, as in %.*s: %.*s[2,3]",
                          width(name), name.s, width(t), t.s);
}

static bool parse_let(struct xti_parser *p, struct xti_token name)
{
    xti_lex_next(p); /* the = */
    if (!check_name(p, name) || !check_colon(p, name))
        return false;
    xt_node x = xti_parse_expression(p);
    return x >= 0 && define(p, name, x);
}

/* "x f32[2,3]; ..", "x, y; ..": no result, but inputs. */
static bool check_no_input(struct xti_parser *p)
{
    struct xti_token t = p->tok;
    bool ok = true;
    if (t.kind == XTI_NAME && xti_parse_find(p, t) < 0) {
        xti_lex_next(p);
        ok = check_colon(p, t);
        if (ok && xti_lex_is(p, ","))
            ok =
                xti_parse_fail(p, XT_ESYNTAX, p->tok.s, "inputs end with a ';', as in x; y; concat(0, x, y)");
        p->tok = t;
    }
    return ok;
}

static bool parse_statements(struct xti_parser *p)
{
    for (;;) {
        struct xti_token t = p->tok;
        bool ok;
        if (t.kind == XTI_END)
            return xti_lex_expected(p, "the result's expression");
        if (is_mesh(p))
            ok = xti_mesh_parse(p);
        else if (take_name_and(p, "="))
            ok = parse_let(p, t);
        else if (take_name_and(p, ":") || is_bare_name(p)) {
            if (xti_parse_find(p, t) >= 0)
                return xti_parse_fail(p, XT_ESYNTAX, t.s, "'%.*s' is declared twice", width(t), t.s);
            if (!xti_lex_is(p, ":"))
                xti_lex_next(p);
            ok = declare(p, t);
        } else
            return check_no_input(p) && parse_result(p);
        if (!ok)
            return false;
        if (p->tok.kind != XTI_END && !xti_lex_want(p, ";"))
            return false;
    }
}

void xti_parse_end(struct xti_parser *p, bool parsed)
{
    p->g->column = 0;
    if (!parsed || p->g->out < 0)
        xti_graph_fail(p->g, XT_ESYNTAX, "the line makes no result");
}

static void parse_text(struct xti_parser *p)
{
    p->tok = (struct xti_token){XTI_MARK, p->text, 0};
    xti_lex_next(p);
    xti_parse_end(p, parse_statements(p));
    xti_free(p->symbol);
    xti_free(p->item);
    xti_free(p->open);
}

static xt_status parse(struct xti_parser *p, struct xt_graph **out, struct xti_err *err)
{
    if (strnlen(p->text, XTI_MAX_TEXT + 1) > XTI_MAX_TEXT)
        return xti_fail(err, XT_EUNSUPPORTED, "xt_parse: text longer than %d bytes", XTI_MAX_TEXT);
    if (xt_graph_new(&p->g))
        return xti_fail(err, XT_ENOMEM, "xt_parse: out of memory");
    parse_text(p);
    *err = p->g->err;
    if (err->e.status)
        xt_graph_free(p->g);
    else
        *out = p->g;
    return err->e.status;
}

xt_status xt_parse(const char *text, int n, const struct xt_shape *given, struct xt_graph **out)
{
    struct xti_err err = {0};
    struct xti_parser p = {.text = text, .n_given = n, .given = given};
    if (out)
        *out = NULL;
    if (!text || !out || n < 0 || (n && !given))
        return xti_publish(
            xti_fail(&err, XT_EINVAL, "xt_parse: %s", n < 0 ? "n is negative" : "an argument is NULL"), &err);
    return xti_publish(parse(&p, out, &err), &err);
}

xt_status xti_parse_mesh(const char *text, struct xt_graph **g, struct xti_mesh *m, struct xti_err *err)
{
    struct xti_parser p = {.text = text, .mesh = m};
    *m = (struct xti_mesh){0};
    *g = NULL;
    xt_status s = parse(&p, g, err);
    if (!s && !m->n_axes)
        s = xti_fail(err, XT_ESYNTAX, "the chain names no mesh, as in mesh r[4]; x: f32[64 r,8]; ..");
    if (!s)
        return XT_OK;
    xt_graph_free(*g);
    *g = NULL;
    xti_mesh_free(m);
    return s;
}
