/* spelling.h: the word that was meant: of those that there are the nearest by edit distance. Layer 1. */
#ifndef XTI_GRAPH_SPELLING_H
#define XTI_GRAPH_SPELLING_H

#include <stddef.h>

#include "graph/parse.h"

/* The nearest so far; n 0: none is near. */
struct xti_spelling {
    struct xti_token word;
    const char *s;
    size_t n;
    int distance; /* what is as far or farther is not taken */
};

/* To begin with. Near is one change in short words, two in longer ones. */
struct xti_spelling xti_spelling_start(struct xti_token word);
void xti_spelling_look(struct xti_spelling *best, const char *s, size_t n);
void xti_spelling_look_at(struct xti_spelling *best, const char *list); /* words with spaces between them */

/* The changes of one letter, and swaps of two neighbours, that make one word of the other; 3: those or more.
 */
int xti_edit_distance(const char *a, size_t n, const char *b, size_t m);

#endif
