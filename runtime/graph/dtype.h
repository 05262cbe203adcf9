/* dtype.h: the table of element types, one row each. Layer 1. */
#ifndef XTI_GRAPH_DTYPE_H
#define XTI_GRAPH_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xt/xt.h>

/* A binary floating-point format: sign, exponent, p - 1 bits of fraction. */
struct xti_format {
    int p;        /* bits of the significand with the hidden one */
    int emin;     /* exponent of the smallest normal number */
    uint64_t max; /* bits of the largest finite number */
    bool inf;     /* max + 1 is infinity; else it is NaN */
};

enum xti_kind { XTI_KIND_BOOL, XTI_KIND_UNSIGNED, XTI_KIND_SIGNED, XTI_KIND_FLOAT, XTI_KIND_COMPLEX };

struct xti_dtype {
    const char *name;
    const char *aliases; /* space-separated; int, long and float are C's and PyTorch's */
    const char *code;    /* NumPy's: bytes, where the name has bits; "" without one */
    size_t bytes;
    enum xti_kind kind;
    struct xti_format format; /* XTI_KIND_FLOAT */
    xt_dtype part;            /* XTI_KIND_COMPLEX: of each half */
};

const struct xti_dtype *xti_dtype(xt_dtype t);       /* NULL for an unknown value */
xt_dtype xti_dtype_find(const char *name, size_t n); /* 0 for an unknown name. Codes: all after a '<', '=' or
                                                      * '|'; alone those that no name of 8 bits has */

/* Is the word one of the space-separated list? */
bool xti_word_in(const char *list, const char *word, size_t n);

#endif
