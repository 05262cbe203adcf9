/* near.h: of the words that there are the one that is nearest to one that there is not. Layer 1. */
#ifndef XTI_GRAPH_NEAR_H
#define XTI_GRAPH_NEAR_H

#include <stddef.h>

#include "graph/parse.h"

/* The nearest so far; n 0: none is near. */
struct xti_near {
    struct xti_token word;
    const char *s;
    size_t n;
    int distance; /* what is as far or farther is not taken */
};

/* To begin with. Near is one change in short words, two in longer ones. */
struct xti_near xti_near_none(struct xti_token word);
void xti_near_look(struct xti_near *best, const char *s, size_t n);
void xti_near_look_at(struct xti_near *best, const char *list); /* words with spaces between them */

/* The changes of one letter, and swaps of two neighbours, that make one word of the other; 3: those or more.
 */
int xti_near_distance(const char *a, size_t n, const char *b, size_t m);

#endif
