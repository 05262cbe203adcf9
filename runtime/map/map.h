/* map.h: the index map a chain fuses to. A list of pieces; a piece is a box of iteration points, each of
 * which reads one source element (or a fill value) and writes one destination element:
 *
 *     for x in box(n):
 *         q[j] = floor((div[j].c + sum div[j].x*x + sum div[j].q*q) / div[j].den), j ascending
 *         if every guard: c + sum guard.x*x + sum guard.q*q >= 0
 *             dst[doff + sum d*x] = src[soff + sum s*x + sum sq*q]
 *
 * Invariants of a finished map (xti_map_check): n > 1, d > 0, dims by d descending (outermost first),
 * coalesced; numerators of divs are never negative on the box (their coefficients may be: they lie in
 * (-den/2, den/2], which keeps numerators small); the pieces' destinations are disjoint and together are
 * exactly the output. Sources and destination are in elements of the buffer, from its start.
 * Theory, proofs and sources: the canonical form is unique and of minimal rank for nested destinations.
 * Layer 2. */
#ifndef XTI_MAP_MAP_H
#define XTI_MAP_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/overlap.h"
#include "base/str.h"
#include "graph/graph.h"

/* At most 63 dims have an extent > 1, because the output has less than 2^63 elements. */
enum { XTI_MAX_DIMS = 64, XTI_MAX_DIVS = 32, XTI_MAX_GUARDS = 64, XTI_MAX_PIECES = 4096 };
/* Of a map that is cut into pages (xti_fuse_options.page). */
enum { XTI_MAX_PAGE_PIECES = 1 << 16 };

struct xti_dim {
    int64_t n, s, d; /* extent, source stride (0 for fill), destination stride */
};

struct xti_div {
    int64_t den;      /* > 1 */
    int64_t c;        /* constant of the numerator */
    const int64_t *x; /* [n_dims] coefficients */
    const int64_t *q; /* [index of this div] coefficients of the earlier divs */
};

struct xti_guard {
    int64_t c;
    const int64_t *x; /* [n_dims] */
    const int64_t *q; /* [n_divs] */
};

struct xti_piece {
    int src;                 /* number of the map's source, or -1: fill */
    unsigned char value[16]; /* fill: one element */
    int64_t soff, doff;
    int n_dims, n_divs, n_guards;
    struct xti_dim *dim;
    struct xti_div *div;
    const int64_t *sq; /* [n_divs] */
    struct xti_guard *guard;
};

enum xti_class { XTI_EMPTY, XTI_MEMCPY, XTI_FILL, XTI_AFFINE, XTI_GENERAL };

struct xti_map {
    struct xti_arena arena; /* owns all arrays below */
    int esize;              /* bytes of an element: 1, 2, 4, 8 or 16 */
    int n_pieces;
    struct xti_piece *piece;  /* by doff */
    bool cut_windows;         /* guard_windows would make another map */
    int n_srcs;               /* = the graph's inputs; pieces name these numbers */
    int64_t numel;            /* elements written */
    int64_t dst_lo, dst_hi;   /* element addresses touched, inclusive; hi < lo when empty */
    int64_t *src_lo, *src_hi; /* [n_srcs] the same for each source; hi < lo when it is not read */
};

struct xti_work;

/* Policy: boxes that removing one div may cost, and boxes for one pad or concat boundary. Zero-initialised
 * means the defaults: 1, or 8 where that leaves no div in the map, and 16. guard_windows: a boundary that
 * windows cross, so that it lies elsewhere in each row of a dim, becomes guards and not boxes. */
struct xti_fuse_options {
    int div_boxes, guard_boxes;
    bool guard_windows;
    int64_t page; /* > 0: a source is pages of so many elements, and a piece reads one page: its src is
                     input + n_srcs*page number, its soff counts from the page's start. src_lo and src_hi
                     are not set */
    /* [n_srcs] With page: what is wanted of each source is this page. post: the pieces of those pages, as and
     * in the order in which they are without it; no fills. NULL: all (test_fuse). */
    const int64_t *only;
    /* Working memory of earlier calls, which is taken and left for later ones; *spare is NULL at first. NULL:
     * none is kept. */
    struct xti_work **spare;
};
void xti_map_spare_free(struct xti_work *spare); /* accepts NULL */

/* Fuses the graph's output. opt may be NULL. On failure *m is zeroed.
 * post: for every output index i, the map writes address out_offset + sum i*out_stride, once, with the value
 * of the chain's element i (test_map: every golden chain and random chains against xti_graph_eval). */
xt_status xti_map_fuse(const struct xt_graph *g, const struct xti_fuse_options *opt, struct xti_map *m,
                       struct xti_err *err);
void xti_map_free(struct xti_map *m);

/* *out = the map of one piece, of source 0: p as it stands, with dims of any order, stride signs and extents
 * >= 1, in canonical form. Guards: what they hide is not written. On failure *out is zeroed. (make.c) */
xt_status xti_map_of_piece(const struct xti_piece *p, int esize, struct xti_map *out, struct xti_err *err);

/* Greedy union of pieces into fewer pieces with the same table; part of fuse. apart: what becomes of the
 * pieces of a source does not depend on those of others. (merge.c) */
xt_status xti_map_merge(struct xti_map *m, bool apart, struct xti_err *err);

enum xti_class xti_map_class(const struct xti_map *m);
const char *xti_class_name(enum xti_class c); /* "memcpy" */
static inline bool xti_piece_affine(const struct xti_piece *p) { return !p->n_divs && !p->n_guards; }
/* The piece is one contiguous run on both sides (rank 0, or one dim (n,1,1)), or a fill with d == 1. */
bool xti_piece_contiguous(const struct xti_piece *p);
/* [*lo, *hi] plus a times [l, h]. False: it does not fit in 64 bits. */
bool xti_add_range(int64_t a, int64_t l, int64_t h, int64_t *lo, int64_t *hi);
/* Bounds of c + x*dims + q*divs over the box, by plain intervals; ql, qh: bounds of the n_q first divs.
 * False: they do not fit. */
bool xti_row_range(const struct xti_piece *p, int64_t c, const int64_t *x, int n_q, const int64_t *q,
                   const int64_t *ql, const int64_t *qh, int64_t *lo, int64_t *hi);
/* Bounds of the divs, by plain intervals. False: they do not fit. */
bool xti_piece_div_ranges(const struct xti_piece *p, int64_t *ql, int64_t *qh);
int64_t xti_piece_numel(const struct xti_piece *p); /* points of the box; guards may hide some */

/* Verifies the invariants that can be verified without enumerating; XT_EINTERNAL names the first broken one.
 */
xt_status xti_map_check(const struct xti_map *m, struct xti_err *err);

/* ---- cover.c: without guards, in an order */

/* *read: a piece with a guard whose whole box could be read; *fill: one that writes what is hidden of it, and
 * no more. The largest; false: there are none. */
bool xti_map_guarded(const struct xti_map *m, int *read, int *fill);
/* About the part of its box, 0 to 1, that guards let pass. */
double xti_piece_visible(const struct xti_piece *x);
/* *out = the map's pieces, this one, of xti_map_guarded, first, and without its guard. False: out of memory.
 * post: the result is the map's when the others run after the first. */
bool xti_map_cover(const struct xti_map *m, int piece, struct xti_arena *arena, struct xti_piece **out);

/* ---- eval.c: the slow truth */

/* Executes the map point by point on host buffers. dst and src[i] are buffer starts. src[i] may be NULL if
 * not read. */
void xti_map_eval(const struct xti_map *m, void *dst, const void *const *src);

/* Calls visit(arg, piece, address written, address read or -1) for every point in no particular order.
 * Stops when visit returns false. */
void xti_map_visit(const struct xti_map *m,
                   bool (*visit)(void *arg, const struct xti_piece *p, int64_t d, int64_t s), void *arg);

/* The chain without any map: each element of the output is followed through the operations to its origin, by
 * the definition of each. Independent of the fuser: what fuse is tested against. dst and src[i] are buffer
 * starts; of the sources only what the output holds is read, and src[i] may be NULL where that is nothing;
 * only the output's addresses are written. Allocates nothing. XT_EINVAL: an input that is read is NULL; what
 * comes before its first element has been written. */
xt_status xti_graph_eval(const struct xt_graph *g, void *dst, const void *const *src, struct xti_err *err);

/* ---- sig.c */

/* The largest unit (bytes, <= 16, a power-of-two multiple of esize) in which the whole map can be expressed:
 * each piece's innermost dim is a unit run (for sources) or d == 1 (for fills), and everything else is
 * divisible. */
int xti_map_unit(const struct xti_map *m);
/* *out = the same copy in units of `unit` bytes. A fill's value is replicated. Address bounds are recomputed.
 */
xt_status xti_map_widen(const struct xti_map *m, int unit, struct xti_map *out, struct xti_err *err);

/* Renumbers sources by first use and subtracts the lowest address from every side. *out is the map that
 * signature and kernels see; base: byte offsets of its origin in each buffer; src_of[i] = the input of source
 * i. */
struct xti_origin {
    int64_t dst_bytes;
    int n_srcs;
    int *src_of; /* owned by out->arena, as src_bytes */
    int64_t *src_bytes;
};
xt_status xti_map_normalize(const struct xti_map *m, struct xti_map *out, struct xti_origin *o,
                            struct xti_err *err);

/* Appends an injective, versioned byte string of the map: esize, pieces, dims, divs, guards; fill values are
 * left out (they are run-time data), whether a piece fills is in. */
void xti_map_key(const struct xti_map *m, struct xti_str *key);

/* True when 32-bit unsigned element indices relative to the lowest address suffice on every side: spans,
 * iteration counts (with `slack` more points) and div numerators are below 2^31. */
bool xti_map_index32(const struct xti_map *m, int64_t slack);

/* ---- text.c */
void xti_map_text(const struct xti_map *m,
                  struct xti_str *b); /* for people: one line a piece, with its formula */
void xti_map_json(const struct xti_map *m, struct xti_str *b); /* the "pieces" array of explain --json */

#endif
