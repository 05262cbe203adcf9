/* segments.h: rows of the destination that several pieces of the map may make together: what pad, concat and
 * roll cut along the inner dim, and what tril and triu cut by guards. Layer 4. */
#ifndef XTI_CUDA_SEGMENTS_H
#define XTI_CUDA_SEGMENTS_H

#include "cuda/plan.h"

enum { XTI_MAX_SEGMENTS = 4, XTI_MAX_ROW_GUARDS = 4 };

/* Positions begin .. end - 1 of a row come from consecutive units of a source. back: the next position comes
 * from the unit before; units are then counted from the source's last one down. */
struct xti_segment {
    int piece;
    bool back;
    int64_t begin, end;
    int64_t soff;     /* unit that position 0 would come from in the first row; may lie outside the source */
    const int64_t *s; /* [n_dims] source strides */
};

/* Rows of `length` units: row x begins at unit doff + sum dim[i].d * x[i] of the destination. Positions that
 * no segment has, or a guard takes from segment 0, are `ground`'s fill. post: each unit of the rows is
 * written by one of the members, and the members write no other. */
struct xti_rows {
    int n_pieces, *piece; /* members, ascending */
    int n_dims;
    struct xti_dim *dim; /* s: segment 0's */
    int64_t doff, length;
    int n_segments; /* by position; 0: fill alone */
    struct xti_segment segment[XTI_MAX_SEGMENTS];
    int ground; /* -1: none */
    int n_guards;
    const struct xti_guard *guard; /* over dim and, last, the position */
    /* how threads share them (segments.c) */
    int lanes, along, across;
    bool shifted; /* the sides differ modulo 16 bytes, */
    bool steady;  /* alike in all rows */
    bool aligned; /* rows begin and end at multiples of 16 bytes in the destination */
    int64_t chunks, items;
    enum xti_cuda_family
        family; /* that serves them: segments, or, of records of a few units, weave, packed */
};

/* Finds the pieces that segments.cu serves better than a family each: of[i] = the rows that piece i is a
 * member of, or NULL. The rows live in p->map's arena. */
xt_status xti_cuda_find_rows(struct xti_cuda_plan *p, const struct xti_rows **of, struct xti_err *err);

/* Finds the pieces that make records of a few units, side by side: pixels of channels from several sources
 * or with a filled one, which weaves put together, and longer records of parts, which are packed. of: as
 * above; asked first. (records.c) */
xt_status xti_cuda_find_records(struct xti_cuda_plan *p, const struct xti_rows **of, struct xti_err *err);

/* Gives the threads of a step their parts of the rows, and the rows their constants. */
void xti_cuda_share_rows(const struct xti_cuda_plan *p, struct xti_rows *r);
void xti_cuda_rows_step(const struct xti_cuda_plan *p, const struct xti_rows *r, struct xti_cuda_step *s);

/* Units of a segment's source. */
int64_t xti_cuda_segment_units(const struct xti_cuda_plan *p, const struct xti_segment *g);

/* The widest power of two, at most 16, that divides the address of position 0 in every row; segment -1: in
 * the destination, else in that segment's source; there, where it goes back, behind that position. */
int xti_cuda_row_align(const struct xti_cuda_plan *p, const struct xti_rows *r, int segment);

#endif
