/* rows.c: pieces whose rows are contiguous in the destination, cut into chunks: copied, filled, one unit
 * again and again, backwards. Skeleton rows.cu. Layer 4. */
#include "cuda/family.h"

enum {
    LINE_BYTES = 128, /* of the second cache */
    LONG_BYTES = 512  /* of the source, read side by side: longer is not faster */
};

static bool contiguous_applies(const struct xti_cuda_plan *p, int piece, struct xti_why *why)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    if (!xti_cuda_is_row(p, piece, why))
        return false;
    if (q->src < 0)
        return xti_refuse(why, "no source");
    if (!xti_piece_contiguous(q))
        return xti_refuse(why, "%d dims", q->n_dims);
    return true;
}

static bool fill_applies(const struct xti_cuda_plan *p, int piece, struct xti_why *why)
{
    if (!xti_cuda_is_row(p, piece, why))
        return false;
    return xti_cuda_piece(p, piece)->src < 0 || xti_refuse(why, "reads a source");
}

static bool row_with_stride(const struct xti_cuda_plan *p, int piece, int64_t s, struct xti_why *why)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    if (!xti_cuda_is_row(p, piece, why))
        return false;
    if (q->src < 0)
        return xti_refuse(why, "no source");
    if (xti_cuda_inner(q)->s != s)
        return xti_refuse(why, "inner source stride %lld", (long long)xti_cuda_inner(q)->s);
    return true;
}

static bool rows_applies(const struct xti_cuda_plan *p, int piece, struct xti_why *why)
{
    return row_with_stride(p, piece, 1, why);
}

static bool reversed_applies(const struct xti_cuda_plan *p, int piece, struct xti_why *why)
{
    return row_with_stride(p, piece, -1, why);
}

static bool broadcast_applies(const struct xti_cuda_plan *p, int piece, struct xti_why *why)
{
    return row_with_stride(p, piece, 0, why);
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

static void make_row(const struct xti_cuda_plan *p, int piece, enum xti_cuda_from from,
                     struct xti_cuda_step *s)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    int last = q->n_dims - 1, unit = p->map.esize;
    int64_t first = from == XTI_FROM_REVERSE ? q->soff + 1 : q->soff;
    s->from = from;
    s->dst_bytes = xti_cuda_align(p, q, XTI_DESTINATION, q->doff, last);
    s->src_bytes = from == XTI_FROM_FILL || from == XTI_FROM_SPLAT
                       ? s->dst_bytes
                       : xti_cuda_align(p, q, XTI_SOURCE, first, last);
    int widest = s->dst_bytes < s->src_bytes ? s->dst_bytes : s->src_bytes;
    s->vec_bytes = chunk_bytes(widest, xti_cuda_inner(q)->n, unit);
    s->src_bytes = s->dst_bytes = s->vec_bytes;
    s->per_thread = xti_cuda_per_thread(p, s->vec_bytes);
    int64_t group = s->vec_bytes / unit,
            chunks = (xti_cuda_inner(q)->n + group - 1) / group * xti_cuda_row_count(q);
    int64_t block = (int64_t)s->per_thread * XTI_CUDA_THREADS;
    s->blocks = (chunks + block - 1) / block;
}

static void copy_make(const struct xti_cuda_plan *p, int piece, struct xti_cuda_step *s)
{
    make_row(p, piece, XTI_FROM_COPY, s);
}

static void reversed_make(const struct xti_cuda_plan *p, int piece, struct xti_cuda_step *s)
{
    make_row(p, piece, XTI_FROM_REVERSE, s);
}

static void broadcast_make(const struct xti_cuda_plan *p, int piece, struct xti_cuda_step *s)
{
    make_row(p, piece, XTI_FROM_SPLAT, s);
}

static void fill_make(const struct xti_cuda_plan *p, int piece, struct xti_cuda_step *s)
{
    make_row(p, piece, XTI_FROM_FILL, s);
}

static void define_rows(struct xti_writer *w)
{
    int64_t group = w->s->vec_bytes / w->p->map.esize, n = xti_cuda_inner(w->q)->n,
            chunks = (n + group - 1) / group;
    xti_write_constant(w, "XT_VEC", w->s->vec_bytes);
    xti_write_constant(w, "XT_STEPS", w->s->per_thread);
    xti_write_number(w, "XT_POINTS", xti_cuda_row_count(w->q) * chunks);
    xti_write_number(w, "XT_CHUNKS", chunks);
    xti_write_optional(w, "XT_TAIL", n % group);
}

/* Do rows of the destination begin and end with its lines? Then none of them has a part of another's. */
static bool whole_lines(const struct xti_writer *w)
{
    uint64_t unit = (uint64_t)w->p->map.esize, bits = (uint64_t)xti_cuda_inner(w->q)->n * unit |
                    ((uint64_t)w->p->origin.dst_bytes + (uint64_t)w->doff * unit);
    for (int i = 0; i + 1 < w->size.n_dims; i++)
        bits |= (uint64_t)w->dim[i].d * unit;
    return bits % LINE_BYTES == 0;
}

/* Short rows are copied in the order in which they lie in the source, until they are long there: for what is
 * read, pages of the memory would be opened again and again, while the second cache gathers what is written
 * (simulated: bench/notes/gpu-simulated.md). */
static void order_rows(struct xti_writer *w)
{
    int64_t unit = w->p->map.esize, run = xti_cuda_inner(w->q)->n;
    if ((w->s->from != XTI_FROM_COPY && w->s->from != XTI_FROM_REVERSE) || !whole_lines(w))
        return;
    for (int last = w->size.n_dims - 2; last > w->skip && run * unit < LONG_BYTES; last--) {
        int next = last;
        while (next >= w->skip && (int64_t)xti_abs64(w->dim[next].s) != run)
            next--;
        if (next < w->skip)
            return;
        struct xti_dim d = w->dim[next];
        for (; next < last; next++)
            w->dim[next] = w->dim[next + 1];
        w->dim[last] = d;
        run *= d.n;
    }
}

static void rows_index(struct xti_writer *w)
{
    int64_t group = w->s->vec_bytes / w->p->map.esize;
    order_rows(w);
    xti_write_digit(w, (xti_cuda_inner(w->q)->n + group - 1) / group, "*u");
    if (w->size.n_dims)
        w->role[w->size.n_dims - 1] = XTI_IN_BODY;
}

#define ROWS "rows", rows_index, define_rows, "XT_VEC XT_STEPS XT_POINTS XT_CHUNKS XT_TAIL"
const struct xti_family xti_cuda_contiguous = {"contiguous", contiguous_applies, copy_make, ROWS};
const struct xti_family xti_cuda_fill = {"fill", fill_applies, fill_make, ROWS};
const struct xti_family xti_cuda_rows = {"rows", rows_applies, copy_make, ROWS};
const struct xti_family xti_cuda_broadcast = {"broadcast", broadcast_applies, broadcast_make, ROWS};
const struct xti_family xti_cuda_reversed = {"reversed", reversed_applies, reversed_make, ROWS};
