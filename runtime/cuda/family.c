/* family.c: the table of CUDA families, and what they ask a piece. Alignment is proven from offsets and
 * strides in bytes, never assumed. Layer 4. */
#include "cuda/family.h"

const struct xti_family *const xti_cuda_families[XTI_CUDA_FAMILY_COUNT] = {
    [XTI_CUDA_WEAVE] = &xti_cuda_weave,
    [XTI_CUDA_TILE] = &xti_cuda_tile,
    [XTI_CUDA_SEGMENTS] = &xti_cuda_segments,
    [XTI_CUDA_PACKED] = &xti_cuda_packed,
    [XTI_CUDA_CONTIGUOUS] = &xti_cuda_contiguous,
    [XTI_CUDA_FILL] = &xti_cuda_fill,
    [XTI_CUDA_ROWS] = &xti_cuda_rows,
    [XTI_CUDA_BROADCAST] = &xti_cuda_broadcast,
    [XTI_CUDA_REVERSED] = &xti_cuda_reversed,
    [XTI_CUDA_GENERIC] = &xti_cuda_generic,
};

const char *xti_cuda_family_name(enum xti_cuda_family f) { return xti_cuda_families[f]->name; }

const struct xti_dim *xti_cuda_inner(const struct xti_piece *q)
{
    static const struct xti_dim one = {1, 1, 1};
    return q->n_dims ? &q->dim[q->n_dims - 1] : &one;
}

int64_t xti_cuda_row_count(const struct xti_piece *q)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < q->n_dims; i++)
        n *= q->dim[i].n;
    return n;
}

int xti_cuda_table_rank(const struct xti_cuda_plan *p, int piece)
{
    int rank = 1;
    while (rank < p->map.piece[piece].n_dims)
        rank *= 2;
    return rank;
}

/* Wrapping products keep their low bits. */
int xti_cuda_align(const struct xti_cuda_plan *p, const struct xti_piece *q, enum xti_side side, int64_t off,
                   int skip)
{
    bool dst = side == XTI_DESTINATION;
    uint64_t unit = (uint64_t)p->map.esize, bits = (uint64_t)p->base_align;
    bits |= (uint64_t)(dst ? p->origin.dst_bytes : p->origin.src_bytes[q->src]) + (uint64_t)off * unit;
    for (int i = 0; i < q->n_dims; i++)
        if (i != skip)
            bits |= (uint64_t)(dst ? q->dim[i].d : q->dim[i].s) * unit;
    return (int)(bits & (~bits + 1));
}

bool xti_cuda_is_row(const struct xti_cuda_plan *p, int piece, struct xti_why *why)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    if (!xti_piece_affine(q))
        return xti_refuse(why, "%d divs, %d guards", q->n_divs, q->n_guards);
    if (xti_cuda_inner(q)->d != 1)
        return xti_refuse(why, "inner destination stride %lld", (long long)xti_cuda_inner(q)->d);
    return true;
}

int xti_cuda_processors(const struct xti_cuda_plan *p)
{
    enum { LARGEST = 132 };
    return p->target.n_sms ? p->target.n_sms : LARGEST;
}

/* The whole map counts, so that the pieces of a table agree. All or one: each count between would be one more
 * kernel of every structure, while the 2048 threads of a processor keep 32 KB under way by one access of 16
 * bytes each. */
int xti_cuda_per_thread(const struct xti_cuda_plan *p, int bytes)
{
    int most = bytes >= 4 ? 4 : 8;
    int64_t accesses = p->map.numel / (bytes / p->map.esize);
    return accesses / (most * XTI_CUDA_THREADS) < 2 * xti_cuda_processors(p) ? 1 : most;
}
