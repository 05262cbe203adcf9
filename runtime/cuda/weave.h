/* weave.h: how pixels of a few channels are shared by the threads of weave.cu: what one takes, and which
 * words of 16 bytes of the source, or of the sources of several pieces, it comes from. Layer 4. */
#ifndef XTI_CUDA_WEAVE_H
#define XTI_CUDA_WEAVE_H

#include "cuda/segments.h"

/* Pieces that make pixels: one that may have all dims, or, of rows that are records of several, one of each
 * source, whose channels follow each other in its source from unit begin[k] of the record on. */
struct xti_woven {
    int n;
    struct xti_piece part[XTI_MAX_SEGMENTS];
    struct xti_dim dim[XTI_MAX_SEGMENTS][XTI_MAX_DIMS];
    int64_t begin[XTI_MAX_SEGMENTS];
    int64_t record; /* units of a pixel; 0: one piece has them all */
    bool ground;    /* what no part has is filled */
};

/* Channel c of pixel i comes from unit sw * i + sc * c of the source, but for the other dims of the piece. In
 * the destination pixels lie side by side, each with its channels (packed), or every channel has a row of its
 * own. A thread takes an item: `group` pixels of a row, with all channels. */
struct xti_weave {
    int pixel, channel; /* dims of the piece; channel -1: there is one */
    int64_t pixels, sw, sc;
    int channels;       /* of a pixel of the destination */
    int taken;          /* of a window */
    bool packed, apart; /* apart: each channel has a window of the source, else one serves all */
    int group, period;  /* period: pixels from one that begins at a multiple of 16 bytes to the next */
    int64_t groups;     /* items of a row */
    bool whole;         /* rows are whole items */
    bool aligned;       /* pixel 0 of every row of the destination begins at a multiple of 16 bytes */
    bool shifted;       /* windows begin anywhere, else at multiples of 16 bytes */
    int64_t low;        /* unit that an item's window begins with; 0: its first pixel's */
    int span, ahead;    /* units of a window; those before the first that is wanted */
    int chunks;         /* words of a window */
    int fetched;        /* aligned words that it may lie in */
    int windows, outs;  /* of an item; words that it makes */
    int stage;          /* words of shared memory that a warp wants */
};

/* The parts of a step's piece or rows. */
void xti_weave_parts(const struct xti_cuda_plan *p, int piece, const struct xti_rows *rows,
                     struct xti_woven *parts);

/* False, with the reason: affine pieces with sources are not made so, or threads would idle. */
bool xti_weave_make(const struct xti_cuda_plan *p, const struct xti_woven *parts, struct xti_weave *v,
                    struct xti_why *why);

/* Items in all. */
int64_t xti_weave_items(const struct xti_woven *parts, const struct xti_weave *v);

/* The step of rows that are records. */
void xti_weave_rows_step(const struct xti_cuda_plan *p, const struct xti_rows *r, struct xti_cuda_step *s);

#endif
