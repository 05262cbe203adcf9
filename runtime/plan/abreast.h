/* abreast.h: small units that are permuted within themselves, one behind the other. As many of them as fill
 * 16 bytes with an element of each go through vectors side by side: what all of them have at one place comes
 * together in a buffer, place by place, and parts again in the new order, whatever that is
 * (templates/cpu/abreast.c.j2). Layer 3. */
#ifndef XTI_PLAN_ABREAST_H
#define XTI_PLAN_ABREAST_H

#include "plan/nest.h"

enum { XTI_ABREAST_BYTES = 293 * XTI_LINE }; /* of those that are side by side, at most */

static inline int64_t xti_abreast_units(int element) { return XTI_LANE / element; }

/* Where in the buffer the elements are that lie so many bytes from the units' beginnings. */
static inline int64_t xti_abreast_place(int element, int64_t at)
{
    int64_t in_line = at % XTI_LINE, in_lane = at % XTI_LANE;
    return ((at - in_line) * XTI_LANE + in_lane * XTI_LINE) / element + in_line - in_lane;
}

/* The widest that units of these runs consist of. */
static inline int xti_abreast_element(const struct xti_nest *t)
{
    int element = t->unit ? t->unit : t->esize;
    while (!t->unit && 2 * element < XTI_LANE && t->run % (2 * element) == 0)
        element *= 2;
    return element;
}

/* Bytes of such a unit; 0: the piece has none. */
int64_t xti_abreast_unit(const struct xti_target *target, const struct xti_nest *t);

#endif
