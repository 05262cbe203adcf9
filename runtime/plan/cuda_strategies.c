/* cuda_strategies.c: the CUDA families. Each row says what a piece must be like and how its blocks cover it;
 * the skeleton of the same row does the work. In: a plan whose map is normalised and widened, and base_align.
 * Out: a step. Alignment is proven from offsets and strides in bytes, never assumed. Layer 3. */
#include "plan/cuda_plan.h"

#include <string.h>

enum { SKIP_NONE = -1 };

/* The widest power of two, up to the base's alignment, that divides off and the strides of all dims but
 * `skip`. Wrapping products keep their low bits. */
static int side_align(const struct xti_plan *p, int64_t off, const struct xti_piece *q, bool dst, int skip)
{
    uint64_t bits = (uint64_t)p->base_align, unit = (uint64_t)p->map.esize;
    bits |= (uint64_t)off * unit;
    for (int i = 0; i < q->n_dims; i++)
        if (i != skip)
            bits |= (uint64_t)(dst ? q->dim[i].d : q->dim[i].s) * unit;
    return (int)(bits & (~bits + 1));
}

static const struct xti_piece *piece_of(const struct xti_plan *p, int piece) { return &p->map.piece[piece]; }

static const struct xti_dim *inner_of(const struct xti_piece *q)
{
    static const struct xti_dim one = {1, 1, 1};
    return q->n_dims ? &q->dim[q->n_dims - 1] : &one;
}

/* ------------------------------------------------------------------------------------------------------ rows
 */

static bool is_row(const struct xti_plan *p, int piece, struct xti_why *why)
{
    const struct xti_piece *q = piece_of(p, piece);
    if (!xti_piece_affine(q))
        return xti_refuse(why, "%d divs, %d guards", q->n_divs, q->n_guards);
    if (inner_of(q)->d != 1)
        return xti_refuse(why, "inner destination stride %lld", (long long)inner_of(q)->d);
    return true;
}

static bool contiguous_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    const struct xti_piece *q = piece_of(p, piece);
    if (!is_row(p, piece, why))
        return false;
    if (q->src < 0)
        return xti_refuse(why, "no source");
    if (!xti_piece_contiguous(q))
        return xti_refuse(why, "%d dims", q->n_dims);
    return true;
}

static bool fill_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    if (!is_row(p, piece, why))
        return false;
    return piece_of(p, piece)->src < 0 || xti_refuse(why, "reads a source");
}

static bool row_with_stride(const struct xti_plan *p, int piece, int64_t s, struct xti_why *why)
{
    const struct xti_piece *q = piece_of(p, piece);
    if (!is_row(p, piece, why))
        return false;
    if (q->src < 0)
        return xti_refuse(why, "no source");
    if (inner_of(q)->s != s)
        return xti_refuse(why, "inner source stride %lld", (long long)inner_of(q)->s);
    return true;
}

static bool rows_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    return row_with_stride(p, piece, 1, why);
}

static bool reversed_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    return row_with_stride(p, piece, -1, why);
}

static bool broadcast_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    return row_with_stride(p, piece, 0, why);
}

/* Long rows that an element of 1 or 2 bytes is all the two sides agree on. Half of a 128-byte row's chunks
 * are its ends. */
enum { REALIGN_MAX_BYTES = 2, REALIGN_MIN_ROW_BYTES = 256 };

static bool realigned_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    const struct xti_piece *q = piece_of(p, piece);
    if (!row_with_stride(p, piece, 1, why))
        return false;
    int last = q->n_dims - 1, s = side_align(p, q->soff, q, false, last),
        d = side_align(p, q->doff, q, true, last);
    if (s > REALIGN_MAX_BYTES && d > REALIGN_MAX_BYTES)
        return xti_refuse(why, "source and destination are aligned to %d and %d bytes", s, d);
    if (inner_of(q)->n * p->map.esize < REALIGN_MIN_ROW_BYTES)
        return xti_refuse(why, "rows of %lld bytes", (long long)(inner_of(q)->n * p->map.esize));
    return true;
}

/* A row shorter than a few chunks is cut without a tail, a longer one into the widest chunks. */
static int chunk_bytes(int widest, int64_t row_units, int unit)
{
    int vec = widest;
    while (vec > unit &&
           (row_units < vec / unit || (row_units < 4 * (vec / unit) && row_units % (vec / unit))))
        vec /= 2;
    return vec;
}

static int64_t row_count(const struct xti_piece *q)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < q->n_dims; i++)
        n *= q->dim[i].n;
    return n;
}

/* Enough blocks for every processor come before many chunks a thread. The whole map counts, so that the
 * pieces of a table agree. 2 * 132 blocks serve the largest devices of today. */
static int steps_per_thread(const struct xti_plan *p, int vec)
{
    int most = vec >= 4 ? 4 : 8;
    int64_t accesses = p->map.numel / (vec / p->map.esize);
    while (most > 1 && accesses / (most * XTI_CUDA_THREADS) < 264)
        most /= 2;
    return most;
}

static void make_row(const struct xti_plan *p, int piece, enum xti_cuda_from from, struct xti_cuda_step *s)
{
    const struct xti_piece *q = piece_of(p, piece);
    int last = q->n_dims - 1, unit = p->map.esize;
    int64_t first = from == XTI_FROM_REVERSE ? q->soff + 1 : q->soff;
    s->from = from;
    s->dst_bytes = side_align(p, q->doff, q, true, last);
    s->src_bytes =
        from == XTI_FROM_FILL || from == XTI_FROM_SPLAT ? s->dst_bytes : side_align(p, first, q, false, last);
    int widest = s->dst_bytes < s->src_bytes ? s->dst_bytes : s->src_bytes;
    s->vec_bytes = chunk_bytes(widest, inner_of(q)->n, unit);
    s->src_bytes = s->dst_bytes = s->vec_bytes;
    s->per_thread = steps_per_thread(p, s->vec_bytes);
    int64_t group = s->vec_bytes / unit, chunks = (inner_of(q)->n + group - 1) / group * row_count(q);
    int64_t block = (int64_t)s->per_thread * XTI_CUDA_THREADS;
    s->blocks = (chunks + block - 1) / block;
}

static void realigned_make(const struct xti_plan *p, int piece, struct xti_cuda_step *s)
{
    const struct xti_piece *q = piece_of(p, piece);
    s->src_bytes = p->map.esize;
    s->dst_bytes = s->vec_bytes = 16;
    s->per_thread = 2;
    int64_t chunks = (inner_of(q)->n * p->map.esize + 30) / 16 * row_count(q); /* wherever the row begins */
    s->blocks = (chunks + 2 * XTI_CUDA_THREADS - 1) / (2 * XTI_CUDA_THREADS);
}

static void copy_make(const struct xti_plan *p, int piece, struct xti_cuda_step *s)
{
    make_row(p, piece, XTI_FROM_COPY, s);
}

static void reversed_make(const struct xti_plan *p, int piece, struct xti_cuda_step *s)
{
    make_row(p, piece, XTI_FROM_REVERSE, s);
}

static void broadcast_make(const struct xti_plan *p, int piece, struct xti_cuda_step *s)
{
    make_row(p, piece, XTI_FROM_SPLAT, s);
}

static void fill_make(const struct xti_plan *p, int piece, struct xti_cuda_step *s)
{
    make_row(p, piece, XTI_FROM_FILL, s);
}

/* ------------------------------------------------------------------------------------------------- transpose
 */

/* Below this a tile is mostly empty: a run shorter than two sectors is left to the caches, unless it has 8
 * units. */
static bool long_enough(int64_t n, int unit) { return n >= 8 || n * unit >= 64; }

/* The dim along which the source is contiguous, or -1. */
static int source_dim(const struct xti_piece *q)
{
    for (int i = 0; i + 1 < q->n_dims; i++)
        if (q->dim[i].s == 1 || q->dim[i].s == -1)
            return i;
    return -1;
}

static bool transpose_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    const struct xti_piece *q = piece_of(p, piece);
    int a = source_dim(q), unit = p->map.esize;
    if (!is_row(p, piece, why))
        return false;
    if (q->src < 0)
        return xti_refuse(why, "no source");
    if (a < 0)
        return xti_refuse(why, "no dim but the inner one has source stride 1");
    if (!long_enough(inner_of(q)->n, unit))
        return xti_refuse(why, "inner extent %lld < 8", (long long)inner_of(q)->n);
    if (!long_enough(q->dim[a].n, unit))
        return xti_refuse(why, "source's contiguous extent %lld < 8", (long long)q->dim[a].n);
    return true;
}

static int64_t tile_extent(int64_t n, int64_t least, int64_t most)
{
    int64_t t = least;
    while (t < n && t < most)
        t *= 2;
    return t;
}

/* 16 KB a tile for 1, 4 and 16 bytes, 8 KB for 2 and 8: facts of peers, the shape that their measurements
 * chose on GB200 and GH200. A thread holds at most 16 loads. A short dim lets the other one grow. */
static void choose_tile(const struct xti_plan *p, int64_t na, int64_t nb, struct xti_cuda_step *s)
{
    int unit = p->map.esize;
    int64_t a = unit == 1 ? 128 : unit <= 4 ? 64 : 32, b = a, least = 16 / unit;
    while (a * b * unit > (int64_t)16 * XTI_CUDA_THREADS * s->src_bytes)
        b /= 2;
    s->tile_a = tile_extent(na, least, a);
    s->tile_b = tile_extent(nb, least, b);
    while (s->tile_a * s->tile_b < a * b && s->tile_b < nb && s->tile_b < 8 * b)
        s->tile_b *= 2;
    while (s->tile_a * s->tile_b < a * b && s->tile_a < na && s->tile_a < 8 * a)
        s->tile_a *= 2;
    int64_t row_chunks = s->tile_a * unit / 16, lines = s->tile_b * row_chunks;
    s->shared_bytes = 16 * (row_chunks >= 8 ? lines : lines + (lines - 1) / 8);
}

static void transpose_make(const struct xti_plan *p, int piece, struct xti_cuda_step *s)
{
    const struct xti_piece *q = piece_of(p, piece);
    int a = source_dim(q), b = q->n_dims - 1;
    int64_t na = q->dim[a].n, nb = q->dim[b].n, tiles = 1;
    int64_t back = q->dim[a].s < 0 ? na - 1 : 0;
    s->dim_a = a;
    s->dim_b = b;
    s->src_bytes = side_align(p, q->soff - back, q, false, a);
    s->dst_bytes = side_align(p, q->doff + back * q->dim[a].d, q, true, b);
    s->vec_bytes = s->src_bytes > s->dst_bytes ? s->src_bytes : s->dst_bytes;
    s->per_thread = 1;
    choose_tile(p, na, nb, s);
    for (int i = 0; i < q->n_dims; i++)
        tiles *= i == a   ? (na + s->tile_a - 1) / s->tile_a
                 : i == b ? (nb + s->tile_b - 1) / s->tile_b
                          : q->dim[i].n;
    s->blocks = tiles;
}

/* --------------------------------------------------------------------------------------------------- generic
 */

static bool always(const struct xti_plan *p, int piece, struct xti_why *why) { return true; }

/* A short dim that is closer in the source than the inner one: channels-last to channels-first has one. */
static int repeat_dim(const struct xti_piece *q)
{
    int best = -1;
    if (!xti_piece_affine(q) || q->n_dims < 2 || inner_of(q)->d != 1 || q->src < 0)
        return -1;
    uint64_t least = xti_abs64(inner_of(q)->s);
    for (int i = 0; i + 1 < q->n_dims; i++)
        if (q->dim[i].n <= 8 && q->dim[i].s && xti_abs64(q->dim[i].s) < least) {
            best = i;
            least = xti_abs64(q->dim[i].s);
        }
    return best;
}

void xti_plan_cuda_generic(const struct xti_plan *p, int piece, bool repeat, struct xti_cuda_step *s)
{
    const struct xti_piece *q = piece_of(p, piece);
    s->from = q->src < 0 ? XTI_FROM_FILL : XTI_FROM_COPY;
    s->src_bytes = s->dst_bytes = s->vec_bytes = p->map.esize;
    s->dim_a = repeat ? repeat_dim(q) : -1;
    s->per_thread = s->dim_a >= 0 ? (int)q->dim[s->dim_a].n : steps_per_thread(p, p->map.esize);
    int64_t block = (int64_t)s->per_thread * XTI_CUDA_THREADS;
    s->blocks = (xti_piece_numel(q) + block - 1) / block;
    if (s->dim_a >= 0)
        s->blocks = (xti_piece_numel(q) / s->per_thread + XTI_CUDA_THREADS - 1) / XTI_CUDA_THREADS;
}

static void generic_make(const struct xti_plan *p, int piece, struct xti_cuda_step *s)
{
    xti_plan_cuda_generic(p, piece, true, s);
}

/* clang-format off */
const struct xti_strategy xti_cuda_strategies[] = {
    /* name, applicable, make (CPU), make_cuda, skeleton */
    {"realigned",   realigned_applies,   NULL, realigned_make,  "realign"},
    {"contiguous",  contiguous_applies,  NULL, copy_make,       "rows"},
    {"fill",        fill_applies,        NULL, fill_make,       "rows"},
    {"rows",        rows_applies,        NULL, copy_make,       "rows"},
    {"broadcast",   broadcast_applies,   NULL, broadcast_make,  "rows"},
    {"reversed",    reversed_applies,    NULL, reversed_make,   "rows"},
    {"transpose",   transpose_applies,   NULL, transpose_make,  "transpose"},
    {"generic",     always,              NULL, generic_make,    "generic"},
};
/* clang-format on */
const int xti_n_cuda_strategies = sizeof xti_cuda_strategies / sizeof *xti_cuda_strategies;
