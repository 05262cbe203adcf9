/* block_sample.h: what a map's CUDA kernel asks of the memory at full size, counted on a machine without a
 * GPU: plan, emit, NVRTC, then a sample of the launch's blocks in the interpreter of tests/ptx, on buffers
 * that are addresses only. Every byte that a sampled block stores is compared with the one that the map
 * names. */
#ifndef TESTS_SUPPORT_BLOCK_SAMPLE_H
#define TESTS_SUPPORT_BLOCK_SAMPLE_H

#include <stdint.h>

#include "cuda/cuda.h"

/* Of the whole launch, extrapolated from the sample; a ratio is 1 where nothing is asked for. bench/README.md
 * defines the columns. */
struct block_sample {
    char error[768]; /* empty: everything below is valid */
    char family[64]; /* strategies of the launch's pieces, each once: "rows+fill" */
    char kernel[17]; /* hash of source, numbers and geometry: the same again, and so are the figures */
    bool known;      /* kernel is options.known, or hash_only was asked for: no figures */
    enum xti_cuda_tier tier; /* where that of structures does not serve a plan, the exact one */
    int64_t blocks, sampled;
    int64_t dst_bytes; /* that the map writes */
    double load_ratio, store_ratio, store_parts, rereads, wavefront_ratio, instructions_per_16b;
    double in_flight; /* bytes of loads an SM has under way: of a block, times those that are resident */
    int registers, spill_bytes, resident, shared_bytes;
    int store_before_load; /* -1: not known */
    double estimate;
    double planned; /* what the planner estimates (predict.h) without counting; 0: it does not */
};

struct block_sample_options {
    struct xti_cuda_target target;
    enum xti_cuda_tier tier;
    bool unaligned; /* buffers begin one element, and so many bytes, behind a line: what serves these runs */
    int further;
    uint64_t seed;     /* chooses the blocks .. */
    int blocks;        /* .. about so many */
    const char *known; /* a kernel that is not counted again; NULL: none */
    bool hash_only;    /* no kernel is counted */
};

/* Multiprocessors of a device of that architecture: T4, A100, L4 and its like, H200, B200, RTX 5090. */
int block_sample_sms(int sm);

/* False: error says why. */
bool block_sample(const struct xti_map *m, const struct block_sample_options *opt, struct block_sample *out);

#endif
