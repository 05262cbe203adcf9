/* generic.c: any piece, one unit at a time. Skeleton generic.cu. Layer 4. */
#include "cuda/family.h"

static bool always(const struct xti_cuda_plan *p, int piece, struct xti_why *why) { return true; }

/* A short dim that is closer in the source than the inner one: channels-last to channels-first has one. */
static int repeat_dim(const struct xti_piece *q)
{
    int best = -1;
    if (!xti_piece_affine(q) || q->n_dims < 2 || xti_cuda_inner(q)->d != 1 || q->src < 0)
        return -1;
    uint64_t least = xti_abs64(xti_cuda_inner(q)->s);
    for (int i = 0; i + 1 < q->n_dims; i++)
        if (q->dim[i].n <= 8 && q->dim[i].s && xti_abs64(q->dim[i].s) < least) {
            best = i;
            least = xti_abs64(q->dim[i].s);
        }
    return best;
}

void xti_cuda_generic_step(const struct xti_cuda_plan *p, int piece, bool repeat, struct xti_cuda_step *s)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    s->from = q->src < 0 ? XTI_FROM_FILL : XTI_FROM_COPY;
    s->src_bytes = s->dst_bytes = s->vec_bytes = p->map.esize;
    s->dim_a = repeat ? repeat_dim(q) : -1;
    s->per_thread = s->dim_a >= 0 ? (int)q->dim[s->dim_a].n : xti_cuda_per_thread(p, p->map.esize);
    int64_t block = (int64_t)s->per_thread * XTI_CUDA_THREADS;
    s->blocks = (xti_piece_numel(q) + block - 1) / block;
    if (s->dim_a >= 0)
        s->blocks = (xti_piece_numel(q) / s->per_thread + XTI_CUDA_THREADS - 1) / XTI_CUDA_THREADS;
}

static void generic_make(const struct xti_cuda_plan *p, int piece, struct xti_cuda_step *s)
{
    xti_cuda_generic_step(p, piece, true, s);
}

static void define_generic(struct xti_writer *w)
{
    int repeat = w->s->dim_a >= 0;
    xti_write_constant(w, "XT_STEPS", w->s->per_thread);
    xti_write_constant(w, "XT_REPEAT", repeat);
    xti_write_number(w, "XT_POINTS", xti_piece_numel(w->q) / (repeat ? w->s->per_thread : 1));
}

static void generic_index(struct xti_writer *w)
{
    if (w->s->dim_a >= 0)
        w->role[w->s->dim_a] = XTI_FROM_STEP;
}

const struct xti_family xti_cuda_generic = {"generic",
                                            always,
                                            generic_make,
                                            "generic",
                                            generic_index,
                                            define_generic,
                                            "XT_STEPS XT_REPEAT XT_POINTS"};
