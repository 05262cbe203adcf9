/* predict.h: what a plan's kernel will ask of the memory and of the processor, before it is compiled.
 * Layer 4. */
#ifndef XTI_CUDA_PREDICT_H
#define XTI_CUDA_PREDICT_H

#include "cuda/plan.h"

enum { XTI_SECTOR_BYTES = 32 };
/* Bytes that are copied in the time that a sector takes which a block stores in part: another block has the
 * rest, and the memory puts them together. Measured on an H200 (bench/notes/h200.md). */
enum { XTI_PART_BYTES = 46 };

/* Sectors of one side: those that loads or stores request, and those that hold what is moved. */
struct xti_sectors {
    double requested, needed;
};

struct xti_cuda_prediction {
    struct xti_sectors load, store;
    double parts;        /* sectors that a block stores in part */
    double instructions; /* PTX instructions of a thread for each 16 bytes of the destination */
    double in_flight;    /* bytes of loads that an SM has under way */
    double fraction;     /* of the time of a device copy of the same bytes: an estimate */
};

/* Of the entry for aligned buffers. False: a piece has divs or guards, whose reach is not known without
 * walking it. Pieces are added up; the least of in_flight counts. */
bool xti_cuda_predict(const struct xti_cuda_plan *p, struct xti_cuda_prediction *out);

/* Sectors of both sides that take as long to move as `parts` take. */
static inline double xti_cuda_parts_cost(double parts)
{
    return parts * 2 * XTI_PART_BYTES / XTI_SECTOR_BYTES;
}

#endif
