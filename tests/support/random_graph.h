/* random_graph.h: valid random chains for tests. The same seed and options give the same graph on every
 * machine. */
#ifndef TESTS_SUPPORT_RANDOM_GRAPH_H
#define TESTS_SUPPORT_RANDOM_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xt/xt.h>

/* Zero-initialised: every operation, strided inputs and destinations, every dtype. */
struct random_graph_options {
    int64_t max_numel; /* of every node; 0: 4096, huge: as many as have bytes of 63 bits */
    bool huge;         /* one extent of the first input makes it nearly that large */
    int max_ops;       /* 0: 8 */
    xt_dtype dtype;    /* of every input; 0: any */
    uint32_t no_ops;   /* bit per enum xt_op: left out */
    bool dense_inputs; /* no input has a layout */
    bool dense_output; /* the destination has none */
    bool no_empty;     /* no extent is 0 */
};

/* Never NULL but when out of memory, or huge and an address beyond 63 bits; has an output. The caller frees
 * it with xt_graph_free. opt may be NULL. */
struct xt_graph *random_graph(uint64_t seed, const struct random_graph_options *opt);

/* Text of the graph for a failure message: static, overwritten by the next call of this thread. */
const char *graph_text(const struct xt_graph *g);

/* splitmix64: next number of a deterministic sequence; below: in [0, n), n > 0. */
uint64_t random_next(uint64_t *state);
int64_t random_below(uint64_t *state, int64_t n);
void random_fill(void *p, size_t n, uint64_t seed);
unsigned char *random_bytes(int64_t n, uint64_t seed); /* malloc'ed, one more than n */

#endif
