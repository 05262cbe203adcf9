/* args.h: the argument list of a call in the language, bound to the operation's parameters as Python would.
 * Layer 1. */
#ifndef XTI_GRAPH_ARGS_H
#define XTI_GRAPH_ARGS_H

#include "graph/parse.h"

enum { XTI_MAX_PARAMS = 4, XTI_MAX_NUMBERS = 2 * XT_MAX_RANK, XTI_MAX_STRING = 1024 };

enum xti_param_kind {
    XTI_NO_PARAM,
    XTI_INT,    /* one integer */
    XTI_INTS,   /* an integer or a list: one argument */
    XTI_SPREAD, /* a list, or all the integers that follow */
    XTI_PAIRS,  /* (lo,hi), (lo,hi), ..; a list of pairs; one integer */
    XTI_VALUE,
    XTI_TEXT,    /* a string */
    XTI_LENGTHS, /* every name that no other parameter has: an integer each */
    XTI_OPERANDS /* tensors, in a list or not, and the axis, which has the name */
};

struct xti_param {
    enum xti_param_kind kind;
    const char *names; /* space-separated; the first one is shown */
};

struct xti_args {
    struct xti_parser *p;
    const struct xti_call *c;
    struct xti_token at;
    xt_node x;
    struct xti_slot {
        int a, b; /* items [a, b); a == b: not given */
    } slot[XTI_MAX_PARAMS];
    int first; /* of all items */
};

/* One spelling of an operation. Several rows may have one name: the first of that library, and whose first
 * parameter is a text where a text is given, is meant. */
struct xti_call {
    const char *names;
    xt_node (*build)(struct xti_args *b);
    struct xti_param param[XTI_MAX_PARAMS];
    const char *libraries;  /* NULL: any, or none */
    const char *pattern[2]; /* of what is an einops pattern; the second one for data_format="NCHW" */
};

/* The graph, as a builder call wants it: errors point at the operation's name. */
static inline struct xt_graph *xti_args_graph(struct xti_args *b)
{
    xti_parse_at(b->p, b->at.s);
    return b->p->g;
}
static inline const struct xti_node *xti_args_node(const struct xti_args *b) { return &b->p->g->node[b->x]; }

/* Gives every argument its slot; fails on one too many, an unknown keyword, one given twice. */
bool xti_args_bind(struct xti_args *b);
bool xti_args_given(const struct xti_args *b, int slot);

/* A slot's contents. Each returns false after failing. */
bool xti_args_numbers(struct xti_args *b, int slot, int *n,
                      int64_t out[XTI_MAX_NUMBERS]); /* brackets left out */
bool xti_args_list(struct xti_args *b, int slot, int *n,
                   int64_t out[XTI_MAX_NUMBERS]); /* no list in a list */
bool xti_args_axes(struct xti_args *b, int slot, int *n, int out[XTI_MAX_NUMBERS]);
bool xti_args_int(struct xti_args *b, int slot, int64_t *out); /* fails also when it is missing */
bool xti_args_int_or(struct xti_args *b, int slot, int64_t fallback, int64_t *out);
/* The string between its quotes in out, cut at XTI_MAX_STRING; false after failing. */
bool xti_args_text(struct xti_args *b, int slot, char out[XTI_MAX_STRING]);
/* One element of x's dtype; *out is bytes, or NULL when none is given. */
bool xti_args_value(struct xti_args *b, int slot, unsigned char bytes[16], const void **out);

/* Far out of range stays out of range. */
int xti_args_axis(int64_t v);

/* "column N: name: what" and up to 60 bytes of detail; "name: parameter what". Return false. */
bool xti_args_fail(struct xti_args *b, xt_status s, const char *what, const char *detail, size_t n);
bool xti_args_fail_param(struct xti_args *b, int slot, const char *what);
bool xti_args_fail_keyword(struct xti_args *b, struct xti_token key); /* one that is no parameter's */

#endif
