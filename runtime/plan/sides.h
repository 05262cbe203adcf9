/* sides.h: virtual tiles. A tile has as many dims as make up lines on either side of a copy:
 *
 *     columns: dims dense in the destination, from its contiguous one outwards
 *     rows:    dims dense in the source, from its contiguous one outwards
 *
 * No dim is on both sides. (XLA's and HPTT's blocks of two dims, taken further.) Internal to plan. Layer 3.
 */
#ifndef XTI_PLAN_SIDES_H
#define XTI_PLAN_SIDES_H

#include "plan/cost.h"

/* dim[0] is the contiguous one. The last one may be taken in part. */
struct xti_side {
    bool source, ends; /* ends: no dim goes on */
    int n_dims;
    int8_t dim[XTI_MAX_DIMS];
    int64_t bytes, take; /* of a run of all dims; points taken of the last one */
    int64_t units;
};

struct xti_sides {
    bool taken[XTI_MAX_DIMS];
    struct xti_side col, row;
    bool even;      /* parts of a dim are of one length, but for the last, and make up whole lines */
    bool lists;     /* a dim alone is a list, too */
    bool rows_pass; /* rows go on behind dims of the columns */
    struct xti_nest t;
};

/* Both sides empty: a unit of so many bytes. */
void xti_sides_begin(const struct xti_nest *t, struct xti_sides *x);
void xti_sides_unit(struct xti_sides *x, int64_t bytes);

/* Makes a run that is no unit one more dim, of as wide units as it consists of, at most `widest` bytes. */
void xti_sides_split_run(struct xti_sides *x, int widest);

/* Takes dims until the side's run has `want` bytes; the last one whole when that is not much more. Goes on
 * with one that was taken in part. */
void xti_side_widen(struct xti_sides *x, struct xti_side *a, int64_t want, int64_t max_units);

/* Loops over the dims that no side took, and over the parts of one that a side took in part; rows, columns
 * and their lists. */
void xti_sides_step(const struct xti_sides *x, struct xti_step *step);

/* The same for a kernel that works in units, streaming where that pays. */
void xti_sides_make(const struct xti_plan *p, const struct xti_sides *x, enum xti_cpu_op op,
                    struct xti_step *step);

/* Whether some tile's rows of the destination begin inside a line. */
bool xti_sides_ragged(const struct xti_sides *x);

/* Entries [n, end) of a list are those before them, s further each time. Writes less than so many more. */
enum { XTI_REPEAT = 4 };
void xti_sides_repeat(int32_t *at, int64_t n, int64_t end, int64_t s);

/* Bytes of the source from the first column to the last one; INT32_MAX or more: too far for a list. */
int64_t xti_sides_reach(const struct xti_sides *x);

/* Whether the columns' offsets fit a list of 32 bits. */
bool xti_sides_list_fits(const struct xti_sides *x);

#endif
