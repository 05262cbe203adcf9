/* bench.h: fused against naive. A row is a workload; each is verified before it is timed. Sees only the
 * public API. */
#ifndef XT_BENCH_BENCH_H
#define XT_BENCH_BENCH_H

#include <stdbool.h>
#include <stdio.h>
#include <xt/xt.h>

struct bench_workload {
    char *name, *where, *chain;
    char *small; /* the same chain in a size for slow checks; "" when the line has none */
};

/* Reads "name | where | chain | small chain" lines; '#' starts a comment line. *out is malloc'ed, freed by
 * bench_workloads_free. Returns the number of rows, or -1 with one sentence in err. */
int bench_workloads_read(const char *text, struct bench_workload **out, char *err, size_t err_bytes);
void bench_workloads_free(struct bench_workload *w, int n);
/* The chain with every declared dtype replaced; malloc'ed, NULL when out of memory. Fill values stay as
 * written. */
char *bench_chain_as(const char *chain, const char *dtype);

/* ---- naive.c: what a user does without xt: every step that moves data is made whole by a plain strided
 * copy. Reshape, squeeze and unsqueeze of dense data are free; the last step writes into the destination's
 * layout. */
struct naive;
/* Plans the steps and allocates every temporary, so that running allocates nothing. NULL when out of memory.
 */
struct naive *naive_new(const struct xt_graph *g);
int naive_steps(const struct naive *v);
int64_t naive_bytes(const struct naive *v); /* that all steps read and write */
void naive_run(const struct naive *v, void *dst, const void *const *srcs);
void naive_free(struct naive *v);

/* ---- peers.c: libraries that evaluate the whole chain, each in a process of its own */
enum { PEER_NUMPY, PEER_TORCH, PEER_JAX, N_PEERS };
extern const char *const bench_peer_name[N_PEERS];

/* ---- measure.c. Seconds are medians; 0: not measured */
struct bench_row {
    const struct bench_workload *work;
    char strategy[32], map_class[16];
    int pieces, naive_steps, samples;
    int64_t bytes_read, bytes_written;
    int64_t lines_read,
        naive_bytes;        /* distinct 64-byte lines of the sources; what the naive steps read and write */
    double seconds, spread; /* spread: (third quartile - first quartile) / median */
    double limit_seconds;   /* the same lines as contiguous streams: the fastest way of limit.h .. */
    const char *limit_way;  /* .. which is this one */
    double memcpy_seconds, naive_seconds, peer_seconds[N_PEERS];
};
/* Compiles, verifies xt against naive byte for byte, then times xt, memcpy, naive and the limit in turn. 0 or
 * one sentence in err. */
int bench_measure(struct xt_ctx *ctx, const struct bench_workload *w, int samples, struct bench_row *out,
                  char *err, size_t err_bytes);
int bench_threads(void); /* that xt and the limit use for large copies; the others use one */

/* Large buffers ask for huge pages, as a program that cares for speed does, unless they are refused here: all
 * contestants share them. NULL: out of memory. Freed by free(). */
void *bench_buffer(size_t bytes);
void bench_refuse_huge_pages(void);

/* Fills peer_seconds of the rows where a library is installed and copes. */
void bench_peers(struct bench_row *rows, int n, int samples);

/* ---- calls.c: nanoseconds of a call of xt_run and of xt_compile, as a table. 0, or -1: xt_last_error */
int bench_calls(struct xt_ctx *ctx, FILE *f);

/* ---- report.c */
void bench_table(FILE *f, const struct bench_row *rows, int n);
void bench_json(FILE *f, const struct bench_row *rows, int n);

extern const char bench_workloads_text[]; /* bench/workloads.txt, embedded at build time */

#endif
