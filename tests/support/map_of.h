/* map_of.h: the map of a graph or of a problem line, its invariants checked. */
#ifndef TESTS_SUPPORT_MAP_OF_H
#define TESTS_SUPPORT_MAP_OF_H

#include "map/map.h"
#include "support/random_graph.h"
#include "support/suite.h"

/* With its divs, where boxes could do without: what runs divs is tested by these maps. */
static inline void fuse(const struct xt_graph *g, struct xti_map *m)
{
    struct xti_err err = {0};
    struct xti_fuse_options opt = {.div_boxes = 1};
    ck_assert_msg(!xti_map_fuse(g, &opt, m, &err), "%s: %s", graph_text(g), err.e.message);
    ck_assert_msg(!xti_map_check(m, &err), "%s: %s", graph_text(g), err.e.message);
}

static inline void map_of(const char *line, struct xti_map *m)
{
    struct xt_graph *g = parse_line(line);
    fuse(g, m);
    xt_graph_free(g);
}

#endif
