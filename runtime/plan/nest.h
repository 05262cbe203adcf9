/* nest.h: a piece of a map as the CPU strategies see it. Internal to plan. Layer 3. */
#ifndef XTI_PLAN_NEST_H
#define XTI_PLAN_NEST_H

#include <stddef.h>
#include <string.h>

#include "plan/plan.h"

/* A piece as the strategies see it: byte strides, the contiguous run taken out. */
struct xti_nest {
    const struct xti_piece *piece;
    int esize;
    int64_t run; /* bytes contiguous on both sides; of the destination alone for a fill */
    int unit;    /* run if it is a width of the kernels, else 0 */
    int64_t s_byte, d_byte;
    int cd, cs;            /* dims with d == run and with |s| == run, cs != cd; -1: none, or no source */
    int64_t bytes;         /* written */
    int *windows, counted; /* of a line as a mosaic, also of copies; -1: it is none, 0: nobody asked yet */
    int n_dims;
    struct xti_loop dim[XTI_MAX_DIMS]; /* d descending */
};
/* Without the room for more dims. */
static inline void xti_nest_copy(const struct xti_nest *t, struct xti_nest *out)
{
    memcpy(out, t, offsetof(struct xti_nest, dim) + (size_t)t->n_dims * sizeof *t->dim);
}
void xti_nest_of(const struct xti_map *m, int piece, struct xti_nest *out);
/* The same of a joint plan's piece, in runs of so many bytes of the destination. Returns the bytes of a run
 * of the source inside of one. */
int64_t xti_nest_rows(const struct xti_map *m, int piece, int64_t row, struct xti_nest *out);
/* Whether a piece copies from a source, by strides alone. */
bool xti_nest_copies(const struct xti_piece *x, struct xti_why *why);
/* Whether it does so in units of the kernels. */
bool xti_nest_copies_units(const struct xti_nest *t, struct xti_why *why);
/* The dims along which the source, and the destination, go on; NULL: none. */
static inline const struct xti_loop *xti_nest_cs(const struct xti_nest *t)
{
    return t->cs < 0 ? NULL : &t->dim[t->cs];
}
static inline const struct xti_loop *xti_nest_cd(const struct xti_nest *t)
{
    return t->cd < 0 ? NULL : &t->dim[t->cd];
}
/* Bits that a stride of the destination has, but for that of one dim; -1: any. */
int64_t xti_nest_bits(const struct xti_nest *t, int but);
/* Walks a dim the other way. */
void xti_nest_flip(struct xti_nest *t, int dim);

#endif
