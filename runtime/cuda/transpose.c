/* transpose.c: a dim that is contiguous in the source against one that is in the destination, by tiles in
 * shared memory. Skeleton transpose.cu. Layer 4. */
#include "cuda/family.h"

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

static bool transpose_applies(const struct xti_cuda_plan *p, int piece, struct xti_why *why)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    int a = source_dim(q), unit = p->map.esize;
    if (!xti_cuda_is_row(p, piece, why))
        return false;
    if (q->src < 0)
        return xti_refuse(why, "no source");
    if (a < 0)
        return xti_refuse(why, "no dim but the inner one has source stride 1");
    if (!long_enough(xti_cuda_inner(q)->n, unit))
        return xti_refuse(why, "inner extent %lld < 8", (long long)xti_cuda_inner(q)->n);
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
static void choose_tile(const struct xti_cuda_plan *p, int64_t na, int64_t nb, struct xti_cuda_step *s)
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

static void transpose_make(const struct xti_cuda_plan *p, int piece, struct xti_cuda_step *s)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    int a = source_dim(q), b = q->n_dims - 1;
    int64_t na = q->dim[a].n, nb = q->dim[b].n, tiles = 1;
    int64_t back = q->dim[a].s < 0 ? na - 1 : 0;
    s->dim_a = a;
    s->dim_b = b;
    s->src_bytes = xti_cuda_align(p, q, XTI_SOURCE, q->soff - back, a);
    s->dst_bytes = xti_cuda_align(p, q, XTI_DESTINATION, q->doff + back * q->dim[a].d, b);
    s->vec_bytes = s->src_bytes > s->dst_bytes ? s->src_bytes : s->dst_bytes;
    s->per_thread = 1;
    choose_tile(p, na, nb, s);
    for (int i = 0; i < q->n_dims; i++)
        tiles *= i == a   ? (na + s->tile_a - 1) / s->tile_a
                 : i == b ? (nb + s->tile_b - 1) / s->tile_b
                          : q->dim[i].n;
    s->blocks = tiles;
}

static void define_transpose(struct xti_writer *w)
{
    xti_write_constant(w, "XT_VS", w->s->src_bytes);
    xti_write_constant(w, "XT_VD", w->s->dst_bytes);
    xti_write_constant(w, "XT_TA", w->s->tile_a);
    xti_write_constant(w, "XT_TB", w->s->tile_b);
    xti_write_multiple(w, "XT_NA", w->dim[w->s->dim_a].n, w->s->src_bytes / w->p->map.esize);
    xti_write_multiple(w, "XT_NB", w->dim[w->s->dim_b].n, w->s->dst_bytes / w->p->map.esize);
    xti_write_number(w, "XT_DA", w->dim[w->s->dim_a].d);
    xti_write_number(w, "XT_SB", w->dim[w->s->dim_b].s);
}

/* A reversed dim a is turned round, so that its s is 1. */
static void transpose_index(struct xti_writer *w)
{
    struct xti_dim *a = &w->dim[w->s->dim_a];
    xti_write_digit(w, (a->n + w->s->tile_a - 1) / w->s->tile_a, "*u");
    xti_write_digit(w, (w->dim[w->s->dim_b].n + w->s->tile_b - 1) / w->s->tile_b, "*v");
    w->role[w->s->dim_a] = w->role[w->s->dim_b] = XTI_IN_BODY;
    if (a->s < 0) {
        w->soff -= a->n - 1;
        w->doff += (a->n - 1) * a->d;
        a->s = 1;
        a->d = -a->d;
    }
}

const struct xti_family xti_cuda_transpose = {"transpose",
                                              transpose_applies,
                                              transpose_make,
                                              "transpose",
                                              transpose_index,
                                              define_transpose,
                                              "XT_VS XT_VD XT_TA XT_TB XT_NA XT_NB XT_DA XT_SB"};
