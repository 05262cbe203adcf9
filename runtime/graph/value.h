/* value.h: one element as text and back. Printing gives the shortest text that parses to the same bytes.
 * Independent of the locale. Layer 1. */
#ifndef XTI_GRAPH_VALUE_H
#define XTI_GRAPH_VALUE_H

#include "base/str.h"
#include "graph/dtype.h"

/* Decimal text [+-]digits[.digits][e[+-]digits] to the nearest value of the format, ties to even, exactly;
 * inf and nan too. *bits: without sign; *negative: the sign. NULL on success, else why not, as the rest of a
 * sentence. */
const char *xti_decimal_parse(const struct xti_format *f, const char *s, size_t n, uint64_t *bits,
                              bool *negative);

/* Text of one element: 7, -0.5, inf, nan, True, (re,im), 1+2j, or its bits: bits(0x7fc1). Returns as above.
 */
const char *xti_value_parse(xt_dtype t, const char *s, size_t n, unsigned char out[16]);

void xti_value_print(xt_dtype t, const unsigned char *value, struct xti_str *b);

#endif
