/* rearrange.h: einops patterns under other operations' names. Layer 1. */
#ifndef XTI_GRAPH_REARRANGE_H
#define XTI_GRAPH_REARRANGE_H

#include "graph/pattern.h"

/* As xt_rearrange; errors begin with `called`. */
xt_node xti_rearrange(struct xt_graph *g, const char *called, xt_node x, const char *pattern,
                      const struct xti_lengths *given);

#endif
