/* processor.h: what the processor and the system tell of it. Layer 0. */
#ifndef XTI_BASE_PROCESSOR_H
#define XTI_BASE_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

/* Vendor, family and model as cpuid counts them ("AuthenticAMD", 25, 1); elsewhere the architecture ("ARM"),
 * or nothing. Caches of one core, the third's share that it sees; 0 or less: not known. */
struct xti_processor {
    char vendor[13];
    unsigned family, model;
    bool avx2, avx512, neon; /* each with all that ISA_FLAGS_* in the Makefile lets the compiler use */
    int64_t l1_bytes, l2_bytes, l3_bytes;
};

/* Does not change while a process lives. */
const struct xti_processor *xti_processor(void);

#endif
