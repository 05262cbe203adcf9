/* fuzz.h: what the fuzz targets share. A target is one file with LLVMFuzzerTestOneInput; what must hold is
 * asked of it by `must`, which ends the process, so that libFuzzer keeps the input. `make fuzz`. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xt/xt.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define must(holds)                                                                                          \
    do {                                                                                                     \
        if (!(holds)) {                                                                                      \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds);                                      \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* Bytes taken one by one; 0 when there are no more. */
struct bytes {
    const uint8_t *p;
    size_t n;
};
static inline unsigned take(struct bytes *b) { return b->n ? b->n--, *b->p++ : 0u; }

/* g has an output: it compiles or says why; it is explained; where it is small it runs on buffers of exactly
 * its size as the reference does; afterwards the context has what it had. */
void fuzz_graph(const struct xt_graph *g);

#endif
