/* cuda_plan.c: plans a map for CUDA, twice: for pointers aligned to 16 bytes, in the widest units, and for
 * pointers aligned to the element alone. Pieces lie one after another in a one-dimensional grid. In: p->map
 * as fused. Out: p->map normalised and widened, p->elem->map normalised; steps, bodies, grid. Layer 3. */
#include "plan/cuda_plan.h"

#include <string.h>

/* Points beyond the last one that a kernel may compute an index of: a block's worth, and a tile's. */
enum { INDEX_SLACK = 1 << 16 };
/* Pieces whose refused strategies are kept for explain. */
enum { EXPLAINED = 16 };
/* The device's limit of grid.x, and of a 32-bit block number. */
#define GRID_LIMIT INT64_C(0x7fffffff)

static void choose(struct xti_plan *p, int piece, struct xti_cuda_step *s)
{
    for (int i = 0; i < xti_n_cuda_strategies; i++) {
        const struct xti_strategy *row = &xti_cuda_strategies[i];
        struct xti_why why = {""};
        if (row->applicable(p, piece, &why)) {
            s->strategy = row;
            row->make_cuda(p, piece, s);
            return;
        }
        if (p->elem && piece < EXPLAINED) /* once for both plans: the reasons are the same */
            xti_plan_refused(p, piece, row->name, &why);
    }
}

static bool is_generic(const struct xti_cuda_step *s)
{
    return s->strategy == &xti_cuda_strategies[xti_n_cuda_strategies - 1];
}

/* Do two steps differ in nothing but numbers? The generic body is padded to the largest rank that uses it. */
static bool same_body(const struct xti_plan *p, const struct xti_cuda_step *a, const struct xti_cuda_step *b)
{
    return a->strategy->skeleton == b->strategy->skeleton && a->from == b->from &&
           a->vec_bytes == b->vec_bytes && a->src_bytes == b->src_bytes && a->dst_bytes == b->dst_bytes &&
           a->per_thread == b->per_thread && a->dim_a == b->dim_a && a->dim_b == b->dim_b &&
           a->tile_a == b->tile_a && a->tile_b == b->tile_b &&
           (is_generic(a) || p->map.piece[a->piece].n_dims == p->map.piece[b->piece].n_dims);
}

/* Gives each step the first earlier step's body that fits. True when there are few enough. */
static bool share_bodies(struct xti_plan *p)
{
    int first[XTI_CUDA_MAX_BODIES];
    p->n_bodies = 0;
    for (int i = 0; i < p->n_steps; i++) {
        int b = 0;
        while (b < p->n_bodies && !same_body(p, &p->cuda_step[first[b]], &p->cuda_step[i]))
            b++;
        if (b == XTI_CUDA_MAX_BODIES)
            return false;
        if (b == p->n_bodies)
            first[p->n_bodies++] = i;
        p->cuda_step[i].body = b;
    }
    return true;
}

static void make_generic(struct xti_plan *p, int i)
{
    p->cuda_step[i] = (struct xti_cuda_step){
        .strategy = &xti_cuda_strategies[xti_n_cuda_strategies - 1], .piece = i, .dim_a = -1, .dim_b = -1};
    xti_plan_cuda_generic(p, i, false, &p->cuda_step[i]);
}

static void choose_bodies(struct xti_plan *p)
{
    p->table = p->n_steps > XTI_CUDA_MAX_BODIES;
    p->n_bodies = p->n_steps;
    for (int i = 0; i < p->n_steps; i++) {
        p->cuda_step[i].body = i;
        if (p->table && is_generic(&p->cuda_step[i]))
            make_generic(p, i);
    }
    if (!p->table || share_bodies(p))
        return;
    for (int i = 0; i < p->n_steps; i++)
        make_generic(p, i);
    share_bodies(p);
}

/* An upper bound of |row|, saturated. qmax: of the divs that the row may name. */
static int64_t row_bound(const struct xti_piece *q, int64_t c, const int64_t *x, const int64_t *qc, int n_q,
                         const int64_t *qmax)
{
    int64_t sum = c < 0 ? (c == INT64_MIN ? INT64_MAX : -c) : c, term;
    for (int i = 0; i < q->n_dims; i++) {
        int64_t size = xti_abs64(x[i]) > INT64_MAX ? INT64_MAX : (int64_t)xti_abs64(x[i]);
        if (!xti_mul64(size, q->dim[i].n - 1, &term) || !xti_add64(sum, term, &sum))
            return INT64_MAX;
    }
    for (int i = 0; i < n_q; i++) {
        int64_t size = xti_abs64(qc[i]) > INT64_MAX ? INT64_MAX : (int64_t)xti_abs64(qc[i]);
        if (!xti_mul64(size, qmax[i], &term) || !xti_add64(sum, term, &sum))
            return INT64_MAX;
    }
    return sum;
}

/* The sign of a guard is read from its low bits: all of it must fit. */
static bool guards_fit32(const struct xti_piece *q)
{
    int64_t qmax[XTI_MAX_DIVS];
    for (int i = 0; q->n_guards && i < q->n_divs; i++)
        qmax[i] = row_bound(q, q->div[i].c, q->div[i].x, q->div[i].q, i, qmax) / q->div[i].den;
    for (int i = 0; i < q->n_guards; i++)
        if (row_bound(q, q->guard[i].c, q->guard[i].x, q->guard[i].q, q->n_divs, qmax) > INT32_MAX)
            return false;
    return true;
}

static xt_status number_blocks(struct xti_plan *p, struct xti_err *err)
{
    p->blocks = 0;
    for (int i = 0; i < p->n_steps; i++) {
        p->cuda_step[i].first_block = p->blocks;
        if (!xti_add64(p->blocks, p->cuda_step[i].blocks, &p->blocks))
            return xti_fail(err, XT_EOVERFLOW, "kernel of more than 2^63 blocks");
    }
    p->grid = p->blocks < GRID_LIMIT ? p->blocks : GRID_LIMIT;
    p->index32 = p->grid == p->blocks && xti_map_index32(&p->map, INDEX_SLACK);
    for (int i = 0; i < p->map.n_pieces; i++)
        p->index32 = p->index32 && guards_fit32(&p->map.piece[i]);
    p->threads_per_block = XTI_CUDA_THREADS;
    return XT_OK;
}

static xt_status plan_one(struct xti_plan *p, struct xti_err *err)
{
    p->n_steps = p->map.n_pieces;
    if (!p->n_steps)
        return XT_OK;
    p->cuda_step = xti_alloc_array((size_t)p->n_steps, sizeof *p->cuda_step);
    if (!p->cuda_step)
        return xti_fail(err, XT_ENOMEM, "CUDA plan of %d pieces", p->n_steps);
    for (int i = 0; i < p->n_steps; i++) {
        p->cuda_step[i].piece = i;
        p->cuda_step[i].dim_a = p->cuda_step[i].dim_b = -1;
        choose(p, i, &p->cuda_step[i]);
    }
    choose_bodies(p);
    return number_blocks(p, err);
}

/* A fill value is a parameter of 16 bytes: as many copies as fit, so that a kernel stores any width of it. */
static void repeat_values(struct xti_map *m)
{
    for (int i = 0; i < m->n_pieces; i++)
        for (int k = m->esize; k < 16; k++)
            m->piece[i].value[k] = m->piece[i].value[k - m->esize];
}

xt_status xti_plan_cuda(struct xti_plan *p, struct xti_err *err)
{
    xt_status s = XT_OK;
    struct xti_map wide;
    if (!(p->elem = xti_alloc(sizeof *p->elem)))
        return xti_fail(err, XT_ENOMEM, "CUDA plan");
    p->elem->target = p->target;
    if ((s = xti_map_normalize(&p->map, &p->elem->map, &p->origin, err)))
        return s;
    if ((s = xti_map_widen(&p->elem->map, xti_map_unit(&p->elem->map), &wide, err)))
        return s;
    xti_map_free(&p->map);
    p->map = wide;
    repeat_values(&p->map);
    repeat_values(&p->elem->map);
    p->base_align = 16;
    p->elem->base_align = p->elem->map.esize;
    p->elem->origin = p->origin; /* its arrays live in elem->map */
    p->elem->bytes_read = p->bytes_read;
    p->elem->bytes_written = p->bytes_written;
    if ((s = plan_one(p->elem, err)))
        return s;
    return plan_one(p, err);
}

void xti_plan_cuda_free(struct xti_plan *p)
{
    if (!p->elem)
        return;
    xti_map_free(&p->elem->map);
    xti_free(p->elem->cuda_step);
    xti_free(p->elem);
    p->elem = NULL;
}
