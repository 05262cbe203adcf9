/* pattern.h: both sides of an einops pattern, "b s (h d) -> b h s d", against a shape and given lengths.
 * In: text. Out: the elementary axes with their lengths, and how each side groups them. Layer 1. */
#ifndef XTI_GRAPH_PATTERN_H
#define XTI_GRAPH_PATTERN_H

#include "graph/build.h"

/* A name, a number or "..", as it stands in the pattern. nth: of the axes that one ellipsis stands for. */
struct xti_pattern_axis {
    const char *s;
    int n, nth;
    int64_t length; /* -1: not known yet */
};

/* Groups of elementary axes: a parenthesis, or a name alone; 1 and () have none. Group i is axes
 * [at[i], at[i + 1]). */
struct xti_pattern_side {
    int n_groups, n_axes;
    int dots; /* the axis that is the ellipsis, or -1 */
    bool dots_inside;
    int at[XT_MAX_RANK + 1];
    struct xti_pattern_axis axis[XT_MAX_RANK];
};

/* right.axis[i] is left.axis[from[i]], or new: then from[i] is -1. Every left axis is on the right. */
struct xti_pattern {
    struct xti_pattern_side left, right;
    int from[XT_MAX_RANK];
};

/* The lengths that a caller gave by name. */
struct xti_lengths {
    int n;
    const char *const *name;
    const int64_t *length;
};

/* post: every length is known, >= 0, and the left groups' products are b->x's extents. Else false after
 * recording what does not fit, with pattern, shape and lengths. */
bool xti_pattern_solve(struct xti_build *b, const char *text, const struct xti_lengths *given,
                       struct xti_pattern *out);

#endif
