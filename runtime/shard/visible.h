/* visible.h: the points of a box that no guard hides. Layer 5. */
#ifndef XTI_SHARD_VISIBLE_H
#define XTI_SHARD_VISIBLE_H

#include "map/map.h"

/* False: no further ones. s, d: addresses that the point reads and writes. */
typedef bool (*xti_point_fn)(void *arg, int64_t s, int64_t d);

/* Calls each for every point that no guard hides, by falling pos of its dims (xti_box_positions); those of
 * which pos is 0 stay at 0. *looks: what may be looked at, in points that are found without looking for
 * them; what it took is taken off. Depends on the box's numbers alone: two ranks that see one box do alike.
 * False: each was false once, looks went out, or numbers are beyond 64 bits. Only where no array of a rank
 * reaches half a page. */
bool xti_box_visible(const struct xti_piece *box, const int64_t *pos, int64_t *looks, xti_point_fn each,
                     void *arg);

/* ---- plain.c */

/* Room for its guards; those of boxes with more are left as they are. */
enum { XTI_PLAIN_DIMS = 16, XTI_PLAIN_DIVS = 8, XTI_PLAIN_GUARDS = 16 };
struct xti_plain {
    int64_t x[XTI_PLAIN_GUARDS][XTI_PLAIN_DIMS], q[XTI_PLAIN_GUARDS][XTI_PLAIN_DIVS];
};
/* Guards that let the same points pass, said plainly: then most ask for the remainder of one div. p's room is
 * its own; no array of a rank reaches half a page. */
void xti_box_plain(struct xti_piece *p, struct xti_plain *room);

/* ---- gaps.c */

/* Numbers i of which r + a*i, modulo m, lies in [lo, lo + w): from the first one on, each is followed by one
 * of three distances, up, down, or both (Slater 1967, the three-gap theorem), whichever keeps it inside.
 * 0 <= a, r < m < 2^31, 0 <= lo, 0 < w, lo + w <= m. */
struct xti_gaps {
    int64_t a, m, w;    /* what they were made for */
    int64_t up, down;   /* least g > 0 of which a*g, -a*g modulo m are below w .. */
    int64_t rise, fall; /* .. and these */
};
struct xti_gaps xti_gaps_of(int64_t a, int64_t m, int64_t w);
/* The least i >= 0; -1: there is none. O(log m). */
int64_t xti_gaps_first(int64_t a, int64_t m, int64_t r, int64_t lo, int64_t w);

#endif
