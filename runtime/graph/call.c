/* call.c: from an operation's name and its argument list to builder calls. One row a spelling: what it is called, what its
 * arguments are called, how it is built. Positional and keyword arguments, lists and tuples as in Python. Layer 1. */
#include "graph/parse.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "graph/dtype.h"
#include "graph/value.h"

enum { MAX_PARAMS = 4, MAX_NUMBERS = 2 * XT_MAX_RANK };

enum kind {
    NO_PARAM,
    INT,    /* one integer */
    INTS,   /* an integer or a list: one argument */
    SPREAD, /* a list, or all the integers that follow */
    PAIRS,  /* (lo,hi), (lo,hi), ..; a list of pairs; one integer */
    VALUE
};

struct param {
    enum kind kind;
    const char *names; /* space-separated; the first one is shown */
};

struct binding {
    struct xti_parser *p;
    const struct xti_call *c;
    struct xti_token at;
    xt_node x;
    struct slot {
        int a, b; /* items [a, b); a == b: not given */
    } slot[MAX_PARAMS];
    int first; /* of all items */
};

struct xti_call {
    const char *names;
    xt_node (*build)(struct binding *b);
    struct param param[MAX_PARAMS];
};

/* --------------------------------------------------------------------------------------- arguments to numbers */

static bool fail_call(struct binding *b, xt_status s, const char *what, const char *detail, size_t n)
{
    return xti_parse_fail(b->p, s, b->at.s, "%.*s: %s%.*s", (int)b->at.n, b->at.s, what, n < 60 ? (int)n : 60, detail);
}

static size_t first_word(const char *names) { return strcspn(names, " "); }

static bool fail_param(struct binding *b, int i, const char *what)
{
    const char *names = b->c->param[i].names;
    char text[80];
    snprintf(text, sizeof text, "%.*s %s", (int)first_word(names), names, what);
    return fail_call(b, XT_ESYNTAX, text, "", 0);
}

static bool is_given(const struct binding *b, int i) { return b->slot[i].a < b->slot[i].b; }

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
static bool numbers(struct binding *b, int slot, int *n, int64_t out[MAX_NUMBERS])
{
    *n = 0;
    for (int i = b->slot[slot].a; i < b->slot[slot].b; i++) {
        const struct xti_item *it = &b->p->item[i];
        if (it->kind == XTI_ITEM_OPEN || it->kind == XTI_ITEM_CLOSE)
            continue;
        if (it->kind != XTI_ITEM_NUMBER)
            return fail_param(b, slot, "wants integers");
        if (*n == MAX_NUMBERS)
            return fail_call(b, XT_ERANK, "more numbers than axes", "", 0);
        if (!xti_lex_number(b->p, it->s, it->n, &out[(*n)++]))
            return false;
    }
    return true;
}

/* A list inside a list is for pad alone. */
static bool flat_numbers(struct binding *b, int slot, int *n, int64_t out[MAX_NUMBERS])
{
    for (int i = b->slot[slot].a + 1; i < b->slot[slot].b; i++)
        if (b->p->item[i].kind == XTI_ITEM_OPEN)
            return fail_param(b, slot, "wants one list");
    return numbers(b, slot, n, out);
}

static bool one_number(struct binding *b, int slot, int64_t *out)
{
    struct slot s = b->slot[slot];
    if (s.b != s.a + 1 || b->p->item[s.a].kind != XTI_ITEM_NUMBER)
        return fail_param(b, slot, s.a == s.b ? "is missing" : "wants one integer");
    return xti_lex_number(b->p, b->p->item[s.a].s, b->p->item[s.a].n, out);
}

static bool number_or(struct binding *b, int slot, int64_t fallback, int64_t *out)
{
    *out = fallback;
    return !is_given(b, slot) || one_number(b, slot, out);
}

/* Far out of range stays out of range. */
static int to_axis(int64_t v) { return v < INT_MIN ? INT_MIN : v > INT_MAX ? INT_MAX : (int)v; }

static bool axes(struct binding *b, int slot, int *n, int out[MAX_NUMBERS])
{
    int64_t v[MAX_NUMBERS];
    if (!flat_numbers(b, slot, n, v))
        return false;
    for (int i = 0; i < *n; i++)
        out[i] = to_axis(v[i]);
    return true;
}

/* The bytes of a value argument; *value is NULL when none is given. */
static bool value(struct binding *b, int slot, unsigned char bytes[16], const void **out)
{
    *out = NULL;
    if (!is_given(b, slot))
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

/* ------------------------------------------------------------------------------------------------- builders */

static struct xt_graph *graph(struct binding *b)
{
    xti_parse_at(b->p, b->at.s);
    return b->p->g;
}

static int rank(const struct binding *b) { return b->p->g->node[b->x].rank; }

static xt_node with_axes(struct binding *b, xt_node (*build)(struct xt_graph *, xt_node, int, const int *))
{
    int v[MAX_NUMBERS], n;
    return axes(b, 0, &n, v) ? build(graph(b), b->x, n, v) : -1;
}

/* flip and squeeze: no argument means every axis, an empty list none. */
static xt_node with_some_axes(struct binding *b, xt_node (*build)(struct xt_graph *, xt_node, int, const int *))
{
    int v[MAX_NUMBERS], n;
    if (!axes(b, 0, &n, v))
        return -1;
    return is_given(b, 0) && n == 0 ? b->x : build(graph(b), b->x, n, v);
}

static xt_node with_shape(struct binding *b, xt_node (*build)(struct xt_graph *, xt_node, int, const int64_t *))
{
    int64_t v[MAX_NUMBERS];
    int n;
    return flat_numbers(b, 0, &n, v) ? build(graph(b), b->x, n, v) : -1;
}

static xt_node build_permute(struct binding *b) { return with_axes(b, xt_permute); }
static xt_node build_reshape(struct binding *b) { return with_shape(b, xt_reshape); }
static xt_node build_squeeze(struct binding *b) { return with_some_axes(b, xt_squeeze); }
static xt_node build_flip(struct binding *b) { return with_some_axes(b, xt_flip); }
static xt_node build_expand(struct binding *b) { return with_shape(b, xt_expand); }
static xt_node build_tile(struct binding *b) { return with_shape(b, xt_tile); }

static xt_node build_flat(struct binding *b)
{
    return xt_reshape(graph(b), b->x, 1, (const int64_t[]){-1});
}

static xt_node reverse_axes(struct binding *b)
{
    int v[XT_MAX_RANK], n = rank(b);
    for (int i = 0; i < n; i++)
        v[i] = n - 1 - i;
    return xt_permute(graph(b), b->x, n, v);
}

/* PyTorch's transpose(a, b) and NumPy's transpose(axes), transpose(). */
static xt_node build_transpose(struct binding *b)
{
    int v[MAX_NUMBERS], n;
    if (!axes(b, 0, &n, v))
        return -1;
    bool list = is_given(b, 0) && b->p->item[b->slot[0].a].kind == XTI_ITEM_OPEN;
    if (!is_given(b, 0))
        return reverse_axes(b);
    if (n == 2 && !list)
        return xt_transpose(graph(b), b->x, v[0], v[1]);
    return xt_permute(graph(b), b->x, n, v);
}

static xt_node build_swapaxes(struct binding *b)
{
    int64_t i, k;
    if (!one_number(b, 0, &i) || !one_number(b, 1, &k))
        return -1;
    return xt_transpose(graph(b), b->x, to_axis(i), to_axis(k));
}

/* -1: out of range or given twice; permute then says so. */
static int resolve(int axis, int n, const bool *taken)
{
    axis += axis < 0 ? n : 0;
    return axis >= 0 && axis < n && !taken[axis] ? axis : -1;
}

static xt_node build_moveaxis(struct binding *b)
{
    int from[MAX_NUMBERS], to[MAX_NUMBERS], v[XT_MAX_RANK], n_from, n_to, n = rank(b), next = 0;
    bool moved[XT_MAX_RANK] = {false}, filled[XT_MAX_RANK] = {false};
    if (!axes(b, 0, &n_from, from) || !axes(b, 1, &n_to, to))
        return -1;
    if (n_from != n_to) {
        fail_call(b, XT_ERANK, "source and destination differ in length", "", 0);
        return -1;
    }
    for (int i = 0; i < n_from; i++) {
        int a = resolve(from[i], n, moved), c = resolve(to[i], n, filled);
        if (a < 0 || c < 0) {
            fail_call(b, XT_ERANGE, "an axis is out of range or given twice", "", 0);
            return -1;
        }
        moved[a] = filled[c] = true;
        v[c] = a;
    }
    for (int i = 0; i < n; i++) {
        while (next < n && moved[next])
            next++;
        if (!filled[i])
            v[i] = next++;
    }
    return xt_permute(graph(b), b->x, n, v);
}

static xt_node build_unsqueeze(struct binding *b)
{
    int64_t axis;
    return one_number(b, 0, &axis) ? xt_unsqueeze(graph(b), b->x, to_axis(axis)) : -1;
}

/* Without an axis NumPy flattens and PyTorch tiles: it has to be said. */
static xt_node build_repeat(struct binding *b)
{
    int64_t reps, axis;
    if (!one_number(b, 0, &reps) || !one_number(b, 1, &axis))
        return -1;
    return xt_repeat(graph(b), b->x, reps, to_axis(axis));
}

/* Without an axis both NumPy and PyTorch roll the flattened array and give it its shape back. */
static xt_node roll_flat(struct binding *b, int64_t shift)
{
    int64_t shape[XT_MAX_RANK];
    int n = rank(b);
    if (n)
        memcpy(shape, b->p->g->node[b->x].shape, (size_t)n * sizeof *shape);
    xt_node y = xt_reshape(graph(b), b->x, 1, (const int64_t[]){-1});
    return xt_reshape(b->p->g, xt_roll(b->p->g, y, shift, 0), n, shape);
}

static xt_node build_roll(struct binding *b)
{
    int64_t shift[MAX_NUMBERS];
    int axis[MAX_NUMBERS], n, n_axes;
    xt_node y = b->x;
    if (!is_given(b, 0)) {
        fail_param(b, 0, "is missing");
        return -1;
    }
    if (!flat_numbers(b, 0, &n, shift) || !axes(b, 1, &n_axes, axis))
        return -1;
    if (!is_given(b, 1) && n == 1)
        return roll_flat(b, shift[0]);
    if (n != n_axes) {
        fail_call(b, XT_ERANK, "shift and axis differ in length", "", 0);
        return -1;
    }
    for (int i = 0; i < n; i++)
        y = xt_roll(graph(b), y, shift[i], axis[i]);
    return y;
}

static xt_node build_diagonal(struct binding *b)
{
    int64_t offset, i, k;
    if (!number_or(b, 0, 0, &offset) || !number_or(b, 1, 0, &i) || !number_or(b, 2, 1, &k))
        return -1;
    return xt_diagonal(graph(b), b->x, offset, to_axis(i), to_axis(k));
}

static xt_node build_unfold(struct binding *b)
{
    int64_t axis, size, step;
    if (!one_number(b, 0, &axis) || !one_number(b, 1, &size) || !one_number(b, 2, &step))
        return -1;
    return xt_unfold(graph(b), b->x, to_axis(axis), size, step);
}

/* Every list without a list inside is a pair. */
static bool check_pairs(struct binding *b, int *n, int64_t v[MAX_NUMBERS])
{
    const struct xti_item *it = b->p->item;
    struct slot s = b->slot[0];
    if (s.b == s.a + 1) { /* one number for every side */
        for (int i = 2 * rank(b) - 1; i > 0; i--)
            v[i] = v[0];
        *n = 2 * rank(b);
        return true;
    }
    for (int i = s.a, inside = 0; i < s.b; i++) {
        bool number = it[i].kind == XTI_ITEM_NUMBER;
        inside = number ? inside + 1 : 0;
        if ((it[i].kind == XTI_ITEM_CLOSE && it[i - 1].kind == XTI_ITEM_NUMBER && it[i - 2].kind == XTI_ITEM_OPEN) ||
            inside > 2 || (number && i == s.a))
            return fail_param(b, 0, "wants (before,after) for each axis");
    }
    return true;
}

static xt_node build_pad(struct binding *b)
{
    int64_t v[MAX_NUMBERS] = {0};
    unsigned char bytes[16] = {0};
    const void *fill;
    int n;
    if (!numbers(b, 0, &n, v) || !check_pairs(b, &n, v) || !value(b, 1, bytes, &fill))
        return -1;
    return xt_pad(graph(b), b->x, n / 2, v, fill);
}

static xt_node with_triangle(struct binding *b,
                             xt_node (*build)(struct xt_graph *, xt_node, int64_t, const void *))
{
    int64_t k;
    unsigned char bytes[16] = {0};
    const void *fill;
    if (!number_or(b, 0, 0, &k) || !value(b, 1, bytes, &fill))
        return -1;
    return build(graph(b), b->x, k, fill);
}

static xt_node build_tril(struct binding *b) { return with_triangle(b, xt_tril); }
static xt_node build_triu(struct binding *b) { return with_triangle(b, xt_triu); }

/* The axis is a number among the arguments or a keyword; the operands are the rest, in a list or not. */
static bool join_arguments(struct binding *b, xt_node *xs, int *n, int64_t *axis)
{
    const struct xti_parser *p = b->p;
    bool have_axis = false;
    if (b->x >= 0)
        xs[(*n)++] = b->x;
    for (int i = b->first; i < p->n_items; i++) {
        const struct xti_item *it = &p->item[i];
        bool is_axis = it->key.n && xti_word_in("axis dim", it->key.s, it->key.n);
        if (it->key.n && !is_axis && !xti_word_in("arrays tensors xs", it->key.s, it->key.n))
            return fail_call(b, XT_ESYNTAX, "no argument is called ", it->key.s, it->key.n);
        if (it->kind == XTI_ITEM_NODE && !is_axis) {
            xs[(*n)++] = it->node;
        } else if (it->kind == XTI_ITEM_NUMBER) {
            if (have_axis)
                return fail_call(b, XT_ESYNTAX, "axis is given twice", "", 0);
            if (!xti_lex_number(b->p, it->s, it->n, axis))
                return false;
            have_axis = true;
        } else if (it->kind == XTI_ITEM_NONE || is_axis) {
            return fail_call(b, XT_ESYNTAX, "axis wants one integer", "", 0);
        }
    }
    return true;
}

static xt_node with_operands(struct binding *b, xt_node (*build)(struct xt_graph *, int, int, const xt_node *))
{
    int n = 0;
    int64_t axis = 0;
    xt_node *xs = xti_alloc_array((size_t)(b->p->n_items - b->first + 1), sizeof *xs), y = -1;
    if (!xs)
        xti_graph_fail(graph(b), XT_ENOMEM, "out of memory");
    else if (join_arguments(b, xs, &n, &axis))
        y = build(graph(b), to_axis(axis), n, xs);
    xti_free(xs);
    return y;
}

static xt_node build_concat(struct binding *b) { return with_operands(b, xt_concat); }
static xt_node build_stack(struct binding *b) { return with_operands(b, xt_stack); }

/* ------------------------------------------------------------------------------------------------- the table */

/* clang-format off */
static const struct xti_call table[] = {
    {"permute permute_dims",      build_permute,   {{SPREAD, "axes dims axis dim"}}},
    {"transpose",                 build_transpose, {{SPREAD, "axes dims"}}},
    {"swapaxes",                  build_swapaxes,  {{INT, "axis1 dim0 axis0"}, {INT, "axis2 dim1"}}},
    {"moveaxis movedim",          build_moveaxis,  {{INTS, "source"}, {INTS, "destination"}}},
    {"reshape view",              build_reshape,   {{SPREAD, "shape newshape size"}}},
    {"flatten ravel",             build_flat,      {{NO_PARAM, ""}}},
    {"squeeze",                   build_squeeze,   {{SPREAD, "axis dim axes"}}},
    {"unsqueeze expand_dims",     build_unsqueeze, {{INT, "axis dim"}}},
    {"flip",                      build_flip,      {{SPREAD, "axis dims axes dim"}}},
    {"expand broadcast_to",       build_expand,    {{SPREAD, "shape size"}}},
    {"tile",                      build_tile,      {{SPREAD, "reps repetitions dims"}}},
    {"repeat repeat_interleave",  build_repeat,    {{INT, "repeats reps"}, {INT, "axis dim"}}},
    {"roll",                      build_roll,      {{INTS, "shift shifts"}, {INTS, "axis dims axes dim"}}},
    {"diagonal",                  build_diagonal,  {{INT, "offset"}, {INT, "axis1 dim1"}, {INT, "axis2 dim2"}}},
    {"unfold",                    build_unfold,    {{INT, "axis dimension dim"}, {INT, "size"}, {INT, "step"}}},
    {"pad",                       build_pad,       {{PAIRS, "pad_width pad pairs"},
                                                    {VALUE, "value constant_values fill_value"}}},
    {"tril",                      build_tril,      {{INT, "k diagonal"}, {VALUE, "value fill_value"}}},
    {"triu",                      build_triu,      {{INT, "k diagonal"}, {VALUE, "value fill_value"}}},
    {"concat concatenate cat",    build_concat,    {{NO_PARAM, ""}}},
    {"stack",                     build_stack,     {{NO_PARAM, ""}}},
};
/* clang-format on */

const struct xti_call *xti_call_find(struct xti_token name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (xti_word_in(table[i].names, name.s, name.n))
            return &table[i];
    return NULL;
}

/* ------------------------------------------------------------------------------------------------- binding */

static bool joins(const struct xti_call *c) { return c->build == build_concat || c->build == build_stack; }

static int find_param(const struct binding *b, struct xti_token key)
{
    for (int i = 0; i < MAX_PARAMS && b->c->param[i].kind != NO_PARAM; i++)
        if (xti_word_in(b->c->param[i].names, key.s, key.n))
            return i;
    return -1;
}

/* The next positional argument [a, e) goes to the first parameter that takes it; *at: the current one. */
static bool bind_positional(struct binding *b, int *at, int a, int e)
{
    const struct xti_item *it = b->p->item;
    while (*at < MAX_PARAMS && is_given(b, *at)) {
        const struct slot *s = &b->slot[*at];
        enum kind k = b->c->param[*at].kind;
        bool list = it[s->a].kind == XTI_ITEM_OPEN;
        bool more = (k == SPREAD && !list && it[a].kind != XTI_ITEM_OPEN) ||
                    (k == PAIRS && list && it[a].kind == XTI_ITEM_OPEN);
        if (more && s->b == a && !it[s->a].key.n) {
            b->slot[*at].b = e;
            return true;
        }
        ++*at;
    }
    if (*at == MAX_PARAMS || b->c->param[*at].kind == NO_PARAM)
        return fail_call(b, XT_ESYNTAX, "too many arguments", "", 0);
    if (b->c->param[*at].kind == VALUE)
        return fail_param(b, *at, "must be named: value=..");
    if (it[a].kind == XTI_ITEM_NONE)
        ++*at;
    else
        b->slot[*at] = (struct slot){a, e};
    return true;
}

static bool bind(struct binding *b)
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
            return fail_call(b, XT_ESYNTAX, "no argument is called ", key.s, key.n);
        if (is_given(b, i))
            return fail_param(b, i, "is given twice");
        if (p->item[a].kind != XTI_ITEM_NONE)
            b->slot[i] = (struct slot){a, e};
    }
    return true;
}

xt_node xti_call_apply(struct xti_parser *p, const struct xti_call *c, xt_node x, int first, struct xti_token at)
{
    struct binding b = {.p = p, .c = c, .at = at, .x = x, .first = first};
    xt_node y = -1;
    bool ok = true;
    if (!joins(c)) {
        if (x < 0) {
            ok = first < p->n_items && p->item[first].kind == XTI_ITEM_NODE && !p->item[first].key.n;
            if (ok)
                b.x = p->item[b.first++].node;
            else
                fail_call(&b, XT_ESYNTAX, "the first argument must be a tensor", "", 0);
        }
        ok = ok && bind(&b);
    }
    if (ok)
        y = c->build(&b);
    p->n_items = first;
    return y;
}

xt_node xti_call_attribute(struct xti_parser *p, xt_node x, struct xti_token name)
{
    struct binding b = {.p = p, .at = name, .x = x};
    if (name.n == 1)
        return reverse_axes(&b);
    return xt_transpose(graph(&b), x, -2, -1);
}
