/* clone.h: a deep copy of a map, for the passes that make a new map of an old one (widen.c, sig.c). Layer 2.
 */
#ifndef XTI_MAP_CLONE_H
#define XTI_MAP_CLONE_H

#include "map/map.h"

/* *out = m with arrays of its own. On failure *out is zeroed. */
xt_status xti_map_clone(const struct xti_map *m, struct xti_map *out, struct xti_err *err);

#endif
