/* hint.h: what to say about a word that the language does not have: the word that was probably meant, or why
 * there is none. Layer 1. */
#ifndef XTI_GRAPH_HINT_H
#define XTI_GRAPH_HINT_H

#include "graph/parse.h"

/* Each fails at the word and returns false. */
bool xti_hint_operation(struct xti_parser *p, struct xti_token word);
bool xti_hint_name(struct xti_parser *p, struct xti_token word);
bool xti_hint_dtype(struct xti_parser *p, struct xti_token word);

/* Fails where the next token is an operator of arithmetic or a comparison; else true. */
bool xti_hint_no_arithmetic(struct xti_parser *p);

#endif
