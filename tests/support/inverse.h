/* inverse.h: an index map asked backwards: what does a destination address get, who reads a source address,
 * how many bytes of a sector matter. Of full-size maps, without their tensors. Sectors are 32 aligned bytes
 * of a buffer, whose start is aligned. */
#ifndef TESTS_SUPPORT_INVERSE_H
#define TESTS_SUPPORT_INVERSE_H

#include "map/map.h"

enum { INVERSE_SECTOR = 32 };

struct inverse;
/* m outlives it. NULL: no memory. */
struct inverse *inverse_new(const struct xti_map *m);
void inverse_free(struct inverse *v);

/* The piece that writes element d of the destination, NULL: none does. *s: the element of its source that is
 * copied there, when it has one. */
const struct xti_piece *inverse_piece(struct inverse *v, int64_t d, int64_t *s);

/* post: for all d the map writes: inverse_piece gives the address that xti_map_visit gives (test_inverse)
 * Readers of element s of source src, at most `most`. Exact, but where a piece has divs in the source's
 * address (then 1 for all between the source's lowest and highest), and where guards hide some of several
 * points of one piece (then too many). */
int64_t inverse_readers(struct inverse *v, int src, int64_t s, int64_t most);

/* How many bytes of a sector the map writes (src -1) or reads. Never 0 for a sector it needs. */
int inverse_sector_bytes(struct inverse *v, int src, int64_t sector);

#endif
