/* cubin.h: what a cubin says about an entry, read from the file itself: no CUDA tool is needed.
 * Layouts and opcodes are those of sm_75 to sm_121 as NVRTC 13 writes them, compared with nvdisasm's.
 * Layer 4. */
#ifndef XTI_CUDA_CUBIN_H
#define XTI_CUDA_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xti_cubin_entry {
    int registers;       /* of a thread */
    int local_bytes;     /* of a thread's stack frame: spills, and arrays that are indexed dynamically */
    size_t shared_bytes; /* static; with what the system reserves */
    size_t code_bytes;
    int loads, stores; /* instructions on global memory */
    /* Of the entry's widest accesses, in a straight line (to the next barrier, unconditional branch or exit),
     * a store comes before a load: fewer loads are under way together than the source asks for. */
    bool store_before_load;
};

/* False: not a cubin, or without such an entry. */
bool xti_cubin_read(const void *cubin, size_t bytes, const char *entry, struct xti_cubin_entry *out);

/* Blocks of an SM that are resident together. */
int xti_cubin_resident(const struct xti_cubin_entry *e, int sm, int threads);
/* Bytes of shared memory that they have together, where its generation has least: code for one serves all. */
int64_t xti_cubin_shared_of(int sm);

#endif
