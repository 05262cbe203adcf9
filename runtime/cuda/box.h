/* box.h: the box of a piece that one block of tile.cu copies: which dims, how much of each (box.c), how it
 * lies in shared memory and which thread takes what of it (banks.c). Layer 4. */
#ifndef XTI_CUDA_BOX_H
#define XTI_CUDA_BOX_H

#include <stddef.h>
#include <string.h>

#include "cuda/plan.h"

enum { XTI_CUDA_BOX_DIMS = 16, XTI_CUDA_BOX_CUTS = 2 };

/* One dim of a box. Strides in units. */
struct xti_box_dim {
    int64_t n, s, d; /* of the whole dim; s may be negative in runs of the destination only */
    int64_t t;       /* points of it that a box writes */
    int64_t back;    /* points before those that it reads, too: its runs of the destination begin earlier */
    int64_t
        shared; /* bytes from point to point in shared memory: of rows, as many modulo 16 as in the source */
    int dim;    /* of the piece */
    int skew_bytes;  /* so many more every 2^skew points */
    int8_t cut;      /* t < n: number of its window, else -1 */
    int8_t skew;     /* 0: none */
    bool in_a, in_b; /* of the source's run, of the destination's */
    bool ragged;     /* rows along it begin anywhere within 16 bytes */
};

/* How threads go on from word to word of the destination: `active` of them write, their next words lie `run`
 * runs or `point` points further, always as far from the first ones as from 0; 0 and 0: they do not. still:
 * the units of the next word lie as those of the first one do. */
struct xti_box_steps {
    int64_t active, run, point;
    bool still;
};

/* Threads gather the quarters of their words of the destination in turn, so that those side by side meet in
 * no bank: thread t begins with quarter (t >> lanes) * step, modulo `quarters`; of units of 8 bytes there are
 * two. quarters 0: all begin with the first. */
struct xti_box_stagger {
    int quarters, lanes, step;
};

struct xti_box {
    int n; /* dims: those of the destination's run, then others, innermost first */
    int n_b, n_cuts, window[XTI_CUDA_BOX_CUTS]; /* window: index of the dim */
    int64_t soff, doff;                         /* with dims turned round, */
    uint64_t turned;                            /* bit i: dim i of the piece is */
    int64_t rows, chunks, pitch_bytes; /* of the source: rows, 16-byte chunks of the longest, bytes apart */
    int word;                          /* bytes that a thread stores at a time */
    int share;             /* a box's part of a run begins and ends at multiples of so many bytes */
    int64_t outs, vectors; /* of the destination: runs, words of each */
    int64_t lanes;         /* words of a run that come before the next run's */
    /* Of the threads, row_active load, and the next chunk of each lies row_step rows further; 0: all do, and
     * it lies anywhere. */
    int64_t row_step, row_active;
    int64_t row_parts;          /* of rows of more chunks than there are threads: loaded one after another */
    bool row_still;             /* that one begins as far within its first chunk */
    struct xti_box_steps steps; /* from word to word */
    int64_t stepped;            /* lanes that these were chosen for; 0: not yet */
    struct xti_box_stagger stagger;
    int shifts; /* rows begin within their first chunk: 0 never, 1 all alike, 2 each */
    int source_align, destination_align; /* of rows and runs in bytes, <= 32; buffers that begin at words are
                                            taken to begin at sectors */
    bool source_whole;                   /* rows are whole aligned chunks, also at edges */
    bool destination_aligned;            /* parts begin at multiples of `share` without more ado */
    bool constant;                       /* the units of a word of the destination lie at constants */
    int group; /* runs that a thread makes together, of units side by side in 4 bytes */
    int grid;  /* lanes that go along a run begin at multiples of so many bytes of it; 0: where it begins */
    bool line; /* points of a run can lie evenly in shared memory, .. */
    bool even; /* .. and do */
    /* What lies at byte a of the rows and gaps above is at a + (a >> every) * spread of shared memory, stored
     * `store_bytes` at a time. spread 0: at a. */
    int every, spread, store_bytes;
    bool together;       /* a word's units lie as far apart as without the spread */
    bool turns;          /* within a word a run leaves the first dim's row at most once */
    int table, table_at; /* columns of a table of the places of a run's points, and its byte; 0: none */
    int64_t bytes;       /* of shared memory */
    double time;         /* estimated: of wavefronts and instructions for 16 bytes, to the power of 2.5 */
    struct xti_box_dim dim[XTI_CUDA_BOX_DIMS]; /* a step's box has room for the first n alone */
};

/* Of the dims those that there are. */
static inline void xti_box_copy(struct xti_box *to, const struct xti_box *from)
{
    memcpy(to, from, offsetof(struct xti_box, dim) + (size_t)from->n * sizeof *from->dim);
}

/* What words are to be: so many bytes; of as many as there can be, where boxes begin at sectors of each run;
 * units, whose lanes begin at sectors. */
enum { XTI_BOX_SECTORS = 0, XTI_BOX_LEAST_WORD = 4, XTI_BOX_MOST_WORD = 16, XTI_BOX_WHOLE_SECTORS = 32 };

/* The best box of an affine piece with a source whose inner destination stride is 1, but for its places in
 * shared memory. Words are of 16 bytes where all runs begin at multiples of these, else of `word` bytes, or
 * a unit; XTI_BOX_SECTORS: only where they do not; XTI_BOX_WHOLE_SECTORS: only where runs that are cut do not
 * begin at sectors. False, with the reason: there is none worth it. */
bool xti_box_make(const struct xti_cuda_plan *p, const struct xti_piece *q, int word, struct xti_box *b,
                  struct xti_why *why);

/* Is the family of boxes one for the piece? *b: its box of words as wide as runs are aligned. (tile.c) */
bool xti_cuda_first_box(const struct xti_cuda_plan *p, int piece, struct xti_box *b, struct xti_why *why);

/* Sectors that all boxes ask for, over those of as many bytes side by side, both ways; estimated. Before its
 * layout (lanes 0): no layout needs fewer. */
double xti_box_sectors(const struct xti_piece *q, const struct xti_box *b, int unit);
/* Sectors that boxes store in part, each time. */
double xti_box_parts(const struct xti_piece *q, const struct xti_box *b, int unit);

/* Cuts the rows of a box, before its layout, where the destination's innermost dim goes on in them, so that
 * the parts can lie apart. False: they are not whole chunks of at least a sector. */
bool xti_box_split(const struct xti_cuda_plan *p, const struct xti_piece *q, struct xti_box *b);

/* The dim of the box that is dim `dim` of the piece; NULL: it has none of it. */
const struct xti_box_dim *xti_box_find(const struct xti_box *b, int dim);

/* Boxes along a window's dim. */
int64_t xti_box_count(const struct xti_box *b, int window, int unit);

/* ---- places in shared memory (banks.c, waves.c) */

/* Is there room for the rows, as close as they can lie? */
bool xti_box_fits(const struct xti_box *b, int unit);

/* Chooses them: gaps, spread, lanes and steps. Returns what a box so laid out costs, to compare by: less than
 * INFINITY where it fits. */
double xti_box_lay_out(struct xti_box *b, int unit);
/* x to the power of 2.5: of two things that take time together the larger one counts. */
double xti_much_of(double x);
/* No layout's `time` is less. */
double xti_box_least_time(const struct xti_box *b, int unit);

/* Wavefronts of shared memory that all of the box takes, and the least that so many requests could, counted
 * exactly for its first warps, by its strides. */
struct xti_box_waves {
    double taken, ideal;
};
struct xti_box_waves xti_box_count_waves(const struct xti_box *b, int unit);

/* Instructions of threads that all of the box takes, estimated off the skeleton: what a thread does once, for
 * each chunk that it loads, for each word that it stores. */
double xti_box_instructions(const struct xti_box *b, int unit);

/* What a number is the place of: a row of the source, a run of the destination, a point of a run. */
enum xti_box_of { XTI_BOX_ROW, XTI_BOX_RUN, XTI_BOX_POINT };

/* Its digits are of these dims, fastest first: rows as they lie, runs so that neighbours lie side by side in
 * the source, points as they are. */
int xti_box_digits(const struct xti_box *b, enum xti_box_of f, const struct xti_box_dim **digit);

/* Values of the k-th of these digits. */
int64_t xti_box_points(const struct xti_box *b, enum xti_box_of f, const struct xti_box_dim *d, int k);

/* Does the source go from row to row along this dim? */
bool xti_box_is_row(const struct xti_box_dim *d);

#endif
