/* block_sample.h: what a map's CUDA kernel asks of the memory at full size, counted on a machine without a
 * GPU: plan, emit, NVRTC, then a sample of the launch's blocks in the interpreter of tests/ptx, on buffers
 * that are addresses only. Every byte that a sampled block stores is compared with the one that the map
 * names. */
#ifndef TESTS_SUPPORT_BLOCK_SAMPLE_H
#define TESTS_SUPPORT_BLOCK_SAMPLE_H

#include <stdint.h>

#include "map/map.h"

/* Of the whole launch, extrapolated from the sample; a ratio is 1 where nothing is asked for. bench/README.md
 * defines the columns. */
struct block_sample {
    char error[768]; /* empty: everything below is valid */
    char family[64]; /* strategies of the launch's pieces, each once: "rows+fill" */
    char tier[16];   /* "": the plan has none */
    int64_t blocks, sampled;
    int64_t dst_bytes; /* that the map writes */
    double load_ratio, store_ratio, rereads, wavefront_ratio, instructions_per_16b;
    double in_flight; /* bytes of loads an SM has under way: of a block, times those that are resident */
    int registers, spill_bytes, resident, shared_bytes;
    int store_before_load; /* -1: not known */
    double estimate;
};

/* False: error says why. seed chooses the blocks, n about how many. */
bool block_sample(const struct xti_map *m, int sm, uint64_t seed, int n, struct block_sample *out);

#endif
