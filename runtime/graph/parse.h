/* parse.h: what the files of the parser share: lexer, names, the stack of open brackets. All state lies in
 * struct xti_parser; errors go to the graph under construction. Layer 1. */
#ifndef XTI_GRAPH_PARSE_H
#define XTI_GRAPH_PARSE_H

#include "graph/build.h"

enum { XTI_MAX_TEXT = 1 << 20, XTI_MAX_NEST = 256, XTI_MAX_NAMES = 2 * XTI_MAX_NODES };

enum xti_token_kind { XTI_END, XTI_NAME, XTI_NUMBER, XTI_STRING, XTI_ARROW, XTI_DOTS, XTI_MARK };

struct xti_token {
    enum xti_token_kind kind;
    const char *s; /* into the text */
    size_t n;
};

/* One piece of an argument list: brackets are items too, so a list of lists is flat. */
enum xti_item_kind {
    XTI_ITEM_NUMBER,
    XTI_ITEM_STRING, /* with its quotes */
    XTI_ITEM_NODE,
    XTI_ITEM_NONE,
    XTI_ITEM_OPEN,
    XTI_ITEM_CLOSE
};

struct xti_item {
    enum xti_item_kind kind;
    struct xti_token key; /* of the argument that begins here: axis=; n 0: positional */
    const char *s;        /* where it stands in the text; n: its length */
    size_t n;
    xt_node node;
};

struct xti_symbol {
    const char *s;
    size_t n;
    xt_node node;
};

struct xti_open; /* expr.c */

struct xti_parser {
    const char *text;
    struct xti_token tok; /* the next one */
    struct xt_graph *g;
    int n_given;
    const struct xt_shape *given;
    int n_symbols, n_items, n_open;
    int64_t cap_symbols, cap_items, cap_open;
    struct xti_symbol *symbol;
    struct xti_item *item;
    struct xti_open *open;
    struct xti_mesh *mesh; /* NULL: ranks are not spoken of */
};

/* ---- lex.c */
void xti_lex_next(struct xti_parser *p);
bool xti_lex_is(const struct xti_parser *p, const char *mark); /* the next token is this mark or word */
bool xti_lex_take(struct xti_parser *p, const char *mark);     /* and goes past it if so */
bool xti_lex_want(struct xti_parser *p, const char *mark);     /* or fails */
bool xti_lex_int(struct xti_parser *p, int64_t *out); /* takes a NUMBER that is an integer, or fails */
/* [2, 3, -1]; fails with more than XT_MAX_RANK. */
bool xti_lex_list(struct xti_parser *p, int *n, int64_t out[XT_MAX_RANK]);
/* Decimal integer text to int64_t; false after failing at `at`. */
bool xti_lex_number(struct xti_parser *p, const char *s, size_t n, int64_t *out);
/* Fails with "column N: expected `what`, found `..`". Returns false. */
bool xti_lex_expected(struct xti_parser *p, const char *what);
/* Fails at a place of the text. Returns false. */
bool xti_parse_fail(struct xti_parser *p, xt_status s, const char *at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void xti_parse_at(struct xti_parser *p, const char *at); /* column of what is built next */
/* As xti_grown; NULL after XT_ENOMEM. */
void *xti_parse_room(struct xti_parser *p, void *v, size_t size, int n, int64_t *cap);

/* ---- parse.c */
/* What was parsed, or not: post: the graph has failed, or has a result. The last guard: whatever returns
 * false has failed with a sentence of its own. */
void xti_parse_end(struct xti_parser *p, bool parsed);

/* ---- mesh.c */
struct xti_mesh;
struct xti_spread;
bool xti_mesh_parse(struct xti_parser *p); /* the statement, from its first word on */
/* A shape whose axes name those of the mesh. */
bool xti_mesh_shape(struct xti_parser *p, int *rank, int64_t shape[XT_MAX_RANK], struct xti_spread *s);
bool xti_mesh_everywhere(struct xti_parser *p, const char *at, int rank, struct xti_spread *s);
bool xti_mesh_input(struct xti_parser *p, const struct xti_spread *s); /* of the next input */

/* ---- expr.c */
xt_node xti_parse_expression(struct xti_parser *p);                        /* -1 after failing */
xt_node xti_parse_find(const struct xti_parser *p, struct xti_token name); /* -1: not defined */

/* ---- call.c: from a name and an argument list to nodes */
struct xti_call;
/* library: the F of F.pad, or n 0. NULL: no such operation. */
const char *xti_call_names(int i); /* of row i, space-separated; NULL: there are not so many */
const struct xti_call *xti_call_find(struct xti_token name, struct xti_token library);
/* x: the operand before the point, or -1: it is the first of the items. Items [first, n_items) are the
 * arguments; they are taken off. at: the operation's name. */
xt_node xti_call_apply(struct xti_parser *p, const struct xti_call *c, xt_node x, int first,
                       struct xti_token at);
/* .T and .mT */
xt_node xti_call_attribute(struct xti_parser *p, xt_node x, struct xti_token name);

#endif
