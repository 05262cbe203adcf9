/* graph_same.h: are two graphs the same? */
#ifndef TESTS_SUPPORT_GRAPH_SAME_H
#define TESTS_SUPPORT_GRAPH_SAME_H

#include "graph/graph.h"

/* True when the used part of the two graphs is the same, node for node, names and layouts included: equal
 * sharing too. Inputs count as used. False for a graph without an output. Cost: one pass. */
bool same_graph(const struct xt_graph *a, const struct xt_graph *b);

#endif
