/* replay.h: a chain again, on other inputs. Layer 1. */
#ifndef XTI_GRAPH_REPLAY_H
#define XTI_GRAPH_REPLAY_H

#include "graph/graph.h"

/* Adds the nodes of `from` up to its output to g; each input is what input(arg, g, n) makes, of n's shape and
 * type. Gives the output's node; -1: g, which may be another's then, has failed. */
xt_node xti_graph_replay(struct xt_graph *g, const struct xt_graph *from,
                         xt_node (*input)(void *arg, struct xt_graph *g, const struct xti_node *n),
                         void *arg);

#endif
