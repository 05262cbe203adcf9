/* packed.h: records of several parts, side by side in the destination, that go through shared memory
 * (packed.cu): how many a block takes, and where their sources' stretches lie there. Layer 4. */
#ifndef XTI_CUDA_PACKED_H
#define XTI_CUDA_PACKED_H

#include "cuda/segments.h"

struct xti_packed {
    int64_t count;        /* records of a row */
    int64_t records;      /* of a block: blocks begin at multiples of 16 bytes where rows do */
    int64_t row_blocks;   /* blocks of a row */
    bool aligned;         /* all rows begin at multiples of 16 bytes of the destination */
    int64_t loads, bytes; /* chunks that a thread fetches; shared memory */
    int64_t ground_at, table_at;
    struct {
        int64_t stride; /* units of the source from record to record */
        int64_t loads;  /* of a thread: chunks of 16 bytes */
        int64_t at;     /* byte of shared memory */
    } part[XTI_MAX_SEGMENTS];
};

/* How rows that are one record each, the last of their dims going from record to record, are shared by
 * blocks. False: other families serve them better. */
bool xti_packed_make(const struct xti_cuda_plan *p, const struct xti_rows *r, struct xti_packed *v);

/* The step of such rows. */
void xti_packed_step(const struct xti_cuda_plan *p, const struct xti_rows *r, struct xti_cuda_step *s);

#endif
