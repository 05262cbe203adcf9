/* family.h: the table of CUDA families. A family says what a piece must be like, how its blocks cover it, and
 * which numbers its skeleton in templates/cuda wants. Asked in order; the first that applies is taken.
 * Layer 4. */
#ifndef XTI_CUDA_FAMILY_H
#define XTI_CUDA_FAMILY_H

#include "base/num.h"
#include "cuda/plan.h"
#include "cuda/writer.h"

struct xti_family {
    const char *name;
    /* Refuses with the reason: one condition a line. */
    bool (*applicable)(const struct xti_cuda_plan *p, int piece, struct xti_why *why);
    /* Fills the step of a piece it applies to. NULL: the family takes its pieces before others are asked. */
    void (*make)(const struct xti_cuda_plan *p, int piece, struct xti_cuda_step *s);
    const char *skeleton; /* file name in templates/cuda, without ".cu" */
    /* Says which dims the index function computes, and which digits of the running index it hands on. */
    void (*index)(struct xti_writer *w);
    void (*define)(struct xti_writer *w); /* the macros of the skeleton */
    const char *macros;                   /* their names, to undefine them again */
};
extern const struct xti_family *const xti_cuda_families[XTI_CUDA_FAMILY_COUNT];

/* The rows, a file each. */
extern const struct xti_family xti_cuda_weave, xti_cuda_tile, xti_cuda_segments, xti_cuda_packed,
    xti_cuda_contiguous, xti_cuda_fill, xti_cuda_rows, xti_cuda_broadcast, xti_cuda_reversed,
    xti_cuda_generic;

/* Dims of a body that pieces of a table may share, a power of two: there are few such bodies, and none has
 * more than twice a piece's dims. */
int xti_cuda_table_rank(const struct xti_cuda_plan *p, int piece);

/* The generic step, which serves any piece. repeat: a thread may take a whole short dim. */
void xti_cuda_generic_step(const struct xti_cuda_plan *p, int piece, bool repeat, struct xti_cuda_step *s);

/* ---- what families ask a piece (family.c) */

static inline const struct xti_piece *xti_cuda_piece(const struct xti_cuda_plan *p, int piece)
{
    return &p->map.piece[piece];
}
/* The dim with the smallest destination stride; (1, 1, 1) for a single point. */
const struct xti_dim *xti_cuda_inner(const struct xti_piece *q);
/* Points of all dims but the inner one. */
int64_t xti_cuda_row_count(const struct xti_piece *q);

/* The widest power of two, at most base_align, that divides the address of unit `off` of the piece's side
 * (dst, else its source) and all its strides but that of dim `skip` (-1: none).
 * post: for all points x with x[skip] == 0: (buffer's start + origin + bytes of x) % result == 0, when the
 *       buffer's start is aligned to base_align. */
enum xti_side { XTI_SOURCE, XTI_DESTINATION };
int xti_cuda_align(const struct xti_cuda_plan *p, const struct xti_piece *q, enum xti_side side, int64_t off,
                   int skip);

/* Is the piece affine, and are its rows contiguous in the destination? */
bool xti_cuda_is_row(const struct xti_cuda_plan *p, int piece, struct xti_why *why);

/* Processors of the device; of one that is not known, those of the largest ones of today. */
int xti_cuda_processors(const struct xti_cuda_plan *p);

/* Independent accesses of `bytes` for each thread: two blocks for every processor come first. */
int xti_cuda_per_thread(const struct xti_cuda_plan *p, int bytes);

#endif
