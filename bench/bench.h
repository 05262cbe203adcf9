/* bench.h: fused against naive. A row is a workload; each is verified before it is timed. Sees only the
 * public API. */
#ifndef XT_BENCH_BENCH_H
#define XT_BENCH_BENCH_H

#include <stdbool.h>
#include <stdio.h>
#include <xt/xt.h>

#include "strided.h"

struct bench_workload {
    char *name, *where, *chain;
    int line;    /* of the text, from 1 */
    char *small; /* the same chain in a size for slow checks; "" when the line has none */
};

/* Reads "name | where | chain | small chain" lines; '#' starts a comment line. *out is malloc'ed, freed by
 * bench_workloads_free. Returns the number of rows, or -1 with one sentence in err. */
int bench_workloads_read(const char *text, struct bench_workload **out, char *err, size_t err_bytes);
void bench_workloads_free(struct bench_workload *w, int n);
/* The chain with every declared dtype replaced; malloc'ed, NULL when out of memory. Fill values stay as
 * written. */
char *bench_chain_as(const char *chain, const char *dtype);
/* The chain with the first extent of every source so many times as long; malloc'ed. It may no longer parse,
 * when it names extents. */
char *bench_chain_grown(const char *chain, int times);

/* chains.c: n workload lines of chains drawn at random, of every kind and width, two of three about 64 MB and
 * the others 2 MB; malloc'ed, NULL when out of memory. The same seed gives the same lines on every machine.
 */
char *bench_random_chains(uint64_t seed, int n);

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

/* The chain as one copy of input 0 into the destination: false when it takes more or fills. Offsets in
 * elements. */
bool naive_as_copy(const struct naive *v, struct strided *copy, int64_t *src_offset, int64_t *dst_offset);

/* ---- peers.c: other libraries on the same chain */
enum { PEER_NUMPY, PEER_TORCH, PEER_JAX, PEER_ONEDNN, PEER_HPTT_ESTIMATE, PEER_HPTT_MEASURE, N_PEERS };
extern const char *const bench_peer_name[N_PEERS];
enum { BENCH_UNWRITTEN = 0xa5 }; /* every byte of a destination before it is written to be compared */

struct peer_task {
    bool is_copy; /* it is what follows: */
    struct strided copy;
    const void *src;
    void *dst;
    void *buffer; /* that dst lies in, `bytes` long; afterwards it must be equal to `want` */
    const void *want;
    size_t bytes;
};
struct peers;
/* Looks for what is installed and starts it; hptt_measure: HPTT's measuring mode too, seconds a chain. NULL:
 * out of memory. */
struct peers *peers_open(bool hptt_measure);
void peers_close(struct peers *p); /* accepts NULL */
/* What is to be prepared next: peers of other processes begin. */
void peers_announce(struct peers *p, const struct bench_workload *w);
/* True when the peer has the chain ready and its bytes are right. */
bool peers_prepare(struct peers *p, int peer, const struct peer_task *t);
bool peers_keep_time(int peer);              /* then peers_ask, else peers_run: */
double peers_ask(struct peers *p, int peer); /* seconds of one run by the peer's clock; 0: it died */
void peers_run(struct peers *p, int peer);
void peers_release(struct peers *p); /* what was prepared in this process */

/* ---- measure.c. Seconds are medians; 0: not measured */
struct bench_row {
    const struct bench_workload *work;
    char strategy[32], way[32], map_class[16];
    int pieces, naive_steps, samples;
    int64_t bytes_read, bytes_written;
    int64_t lines_read,
        naive_bytes;         /* distinct 64-byte lines of the sources; what the naive steps read and write */
    double seconds, spread;  /* spread: (third quartile - first quartile) / median */
    double estimate_seconds; /* xt_kernel_estimate */
    double limit_seconds;    /* the same lines as contiguous streams: the fastest way of limit.h .. */
    const char *limit_way;   /* .. which is this one */
    double memcpy_seconds, naive_seconds, peer_seconds[N_PEERS];
};
/* Compiles, verifies xt against naive byte for byte, then times xt, memcpy, naive, peers (NULL: none) and the
 * limit in turn. 0 or one sentence in err. */
int bench_measure(struct xt_ctx *ctx, struct peers *peers, const struct bench_workload *w, int samples,
                  struct bench_row *out, char *err, size_t err_bytes);
int bench_threads(void); /* that xt and the limit use for large copies; the others use one */

/* Buffers begin with a page, so that none is lucky in its address. Large ones ask for huge pages, as a
 * program that cares for speed does, unless they are refused here: all contestants share them. NULL: out of
 * memory. Freed by free(). */
void *bench_buffer(size_t bytes);
void bench_refuse_huge_pages(void);
/* Destinations begin so many bytes behind one. Large blocks of malloc's begin at 16. */
void bench_begin_at(size_t bytes);

/* ---- calls.c: nanoseconds of a call of xt_run and of xt_compile, as a table. 0, or -1: xt_last_error */
int bench_calls(struct xt_ctx *ctx, FILE *f);

/* ---- regret.c: a table: each chain's plan beside the best of those that it could have, seconds a chain; at
 * the end the geometric mean and the least of best / chosen. 0, or -1: xt_last_error */
int bench_regret(struct xt_ctx *ctx, const struct bench_workload *w, int n, FILE *f);

/* ---- without.c: how much longer chains take by plans without strategies and tricks: sets of their names, 1
 * to BENCH_SETS, "tile joint,merge" are two; cut up. Of rows whose plan changes, each by itself, and of all
 * sets a table. 0, or -1: xt_last_error */
enum { BENCH_SETS = 63 };
int bench_without(char *names, const struct bench_workload *w, int n, FILE *f);

/* ---- report.c */
void bench_table(FILE *f, const struct bench_row *rows, int n);
/* How the rows came to be. */
struct bench_note {
    const char *command; /* as it was typed */
    const char *busy;    /* busy_text's sentences, NULL: quiet */
};
void bench_json(FILE *f, const struct bench_row *rows, int n, const struct bench_note *note);
/* One page that needs nothing from outside: report.html with the JSON in it. False: out of memory. */
bool bench_html(FILE *f, const struct bench_row *rows, int n, const struct bench_note *note);

/* bench/workloads.txt and bench/report.html, embedded at build time */
extern const char bench_workloads_text[], bench_report_html[];

#endif
