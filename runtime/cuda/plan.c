/* plan.c: plans a map for CUDA, twice: for buffers aligned to 16 bytes, in the widest units, and for buffers
 * aligned to the element alone. Pieces lie one after another in a one-dimensional grid. In: a map as fused.
 * Out: p->map normalised and widened, p->elem->map normalised; steps, bodies, grid. Layer 4. */
#include "cuda/plan.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "cuda/box.h"
#include "cuda/family.h"
#include "cuda/packed.h"
#include "cuda/segments.h"
#include "cuda/weave.h"

#define MAX_REACH_BYTES ((int64_t)1 << 56)

/* Points beyond the last one that a kernel may compute an index of: a block's worth, and a tile's. */
enum { INDEX_SLACK = 1 << 16 };
/* Pieces whose refused strategies are kept for explain. */
enum { EXPLAINED = 16 };
/* The device's limit of grid.x, and of a 32-bit block number. */
#define GRID_LIMIT INT64_C(0x7fffffff)

/* What is gained by less than a fiftieth, an estimate does not tell. */
static const double WORTH_IT = 0.98;

/* The estimated time, but for what is in flight (predict.c), of sectors, too, to the power of 2.5. */
static double time_of(const struct xti_piece *q, const struct xti_box *b, int unit)
{
    return b->time + xti_much_of(fmax(1, xti_box_sectors(q, b, unit)));
}

/* *b: the other box, if that is cheaper, sectors and all. One that cannot be gets no layout. */
static void take_cheaper(const struct xti_piece *q, int unit, struct xti_box *other, struct xti_box *b)
{
    double most = xti_much_of(WORTH_IT) * time_of(q, b, unit);
    other->time = xti_box_least_time(other, unit);
    if (time_of(q, other, unit) < most && xti_box_lay_out(other, unit) < INFINITY &&
        time_of(q, other, unit) < most)
        xti_box_copy(b, other);
}

/* The cheapest of a box of words as wide as runs are aligned, `first`; one whose parts of runs are whole
 * sectors, which is the one for buffers that begin anywhere, for all lengths, or else of wide words; one of
 * units whose lanes begin at sectors; and one of rows in parts. */
static xt_status keep_box(struct xti_cuda_plan *p, int piece, const struct xti_box *first,
                          struct xti_cuda_step *s, struct xti_err *err)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    struct xti_box b, split, other;
    int unit = p->map.esize;
    xti_box_copy(&b, first);
    xti_box_copy(&split, first);
    bool whole = xti_box_make(p, q, XTI_BOX_WHOLE_SECTORS, &other, NULL);
    if (whole && p->base_align < XTI_BOX_MOST_WORD && other.share > other.word &&
        xti_box_lay_out(&other, unit) < INFINITY) {
        xti_box_copy(&b, &other);
    } else {
        double cost = xti_box_lay_out(&b, unit);
        if (xti_box_split(p, q, &split) && xti_box_lay_out(&split, unit) < cost)
            xti_box_copy(&b, &split);
        if (whole)
            take_cheaper(q, unit, &other, &b);
        else if (b.word < XTI_BOX_MOST_WORD && xti_box_make(p, q, XTI_BOX_MOST_WORD, &other, NULL) &&
                 xti_box_lay_out(&other, unit) < cost)
            xti_box_copy(&b, &other);
    }
    if (xti_box_make(p, q, XTI_BOX_SECTORS, &other, NULL))
        take_cheaper(q, unit, &other, &b);
    s->box = xti_arena_dup(&p->map.arena, &b, offsetof(struct xti_box, dim) + (size_t)b.n * sizeof *b.dim);
    return s->box ? XT_OK : xti_fail(err, XT_ENOMEM, "CUDA plan: box");
}

static xt_status choose(struct xti_cuda_plan *p, int piece, struct xti_cuda_step *s, struct xti_err *err)
{
    struct xti_box box;
    int f = 0;
    while (f == XTI_CUDA_TILE ? !xti_cuda_first_box(p, piece, &box, NULL)
                              : !xti_cuda_families[f]->applicable(p, piece, NULL))
        f++; /* the last one takes all */
    s->family = (enum xti_cuda_family)f;
    if (f == XTI_CUDA_TILE && keep_box(p, piece, &box, s, err))
        return XT_ENOMEM;
    xti_cuda_families[f]->make(p, piece, s);
    return XT_OK;
}

void xti_cuda_refusals(const struct xti_cuda_plan *p, struct xti_str *b)
{
    for (int i = 0; i < p->n_steps; i++) {
        const struct xti_cuda_step *s = &p->step[i];
        for (int f = 0; f < (int)s->family && !s->rows && s->piece < EXPLAINED; f++) {
            struct xti_why why = {""};
            if (!xti_cuda_families[f]->applicable(p, s->piece, &why))
                xti_str_addf(b, "piece %d: %s: %s\n", s->piece, xti_cuda_families[f]->name, why.text);
        }
    }
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

static xt_status number_blocks(struct xti_cuda_plan *p, struct xti_err *err)
{
    p->blocks = 0;
    for (int i = 0; i < p->n_steps; i++) {
        p->step[i].first_block = p->blocks;
        if (!xti_add64(p->blocks, p->step[i].blocks, &p->blocks))
            return xti_fail(err, XT_EOVERFLOW, "kernel of more than 2^63 blocks");
    }
    p->grid = p->blocks < GRID_LIMIT ? p->blocks : GRID_LIMIT;
    p->index32 = p->grid == p->blocks && xti_map_index32(&p->map, INDEX_SLACK);
    for (int i = 0; i < p->map.n_pieces; i++)
        p->index32 = p->index32 && guards_fit32(&p->map.piece[i]);
    p->threads_per_block = XTI_CUDA_THREADS;
    return XT_OK;
}

static xt_status make_step(struct xti_cuda_plan *p, int piece, const struct xti_rows *rows,
                           struct xti_cuda_step *s, struct xti_err *err)
{
    s->piece = piece;
    s->dim_a = -1;
    if (!rows)
        return choose(p, piece, s, err);
    if (rows->family == XTI_CUDA_WEAVE)
        xti_weave_rows_step(p, rows, s);
    else if (rows->family == XTI_CUDA_PACKED)
        xti_packed_step(p, rows, s);
    else
        xti_cuda_rows_step(p, rows, s);
    return XT_OK;
}

static xt_status list_fills(struct xti_cuda_plan *p, struct xti_err *err)
{
    const struct xti_map *m = &p->map;
    if (!(p->fill = xti_arena_alloc(&p->map.arena, (size_t)m->n_pieces * sizeof *p->fill)))
        return xti_fail(err, XT_ENOMEM, "fill values of %d pieces", m->n_pieces);
    for (int i = 0; i < m->n_pieces; i++)
        if (m->piece[i].src < 0)
            memcpy(p->fill[p->n_fills++], m->piece[i].value, sizeof *p->fill);
    return XT_OK;
}

/* Pieces that make rows together come first; each of the others is offered to the families in turn. */
static xt_status plan_one(struct xti_cuda_plan *p, struct xti_err *err)
{
    int n = p->map.n_pieces;
    if (!n)
        return XT_OK;
    const struct xti_rows **rows = xti_arena_alloc(&p->map.arena, (size_t)n * sizeof *rows);
    p->step = xti_alloc_array((size_t)n, sizeof *p->step);
    if (!rows || !p->step)
        return xti_fail(err, XT_ENOMEM, "CUDA plan of %d pieces", n);
    xt_status s = xti_cuda_find_records(p, rows, err);
    if (s || (s = xti_cuda_find_rows(p, rows, err)) || (s = list_fills(p, err)))
        return s;
    for (int i = 0; i < n && !s; i++)
        if (!rows[i] || rows[i]->piece[0] == i)
            s = make_step(p, i, rows[i], &p->step[p->n_steps++], err);
    if (s || (s = xti_cuda_choose_bodies(p, err)))
        return s;
    return number_blocks(p, err);
}

/* A fill value is a parameter of 16 bytes: as many copies as fit, so that a kernel stores any width of it. */
static void repeat_values(struct xti_map *m)
{
    for (int i = 0; i < m->n_pieces; i++)
        for (int k = m->esize; k < 16; k++)
            m->piece[i].value[k] = m->piece[i].value[k - m->esize];
}

/* Offsets bound the unit, too: a unit of 16 bytes cannot begin at byte 4. */
static int widest_unit(const struct xti_cuda_plan *p)
{
    uint64_t bits = (uint64_t)xti_map_unit(&p->elem->map) | (uint64_t)p->origin.dst_bytes;
    for (int i = 0; i < p->origin.n_srcs; i++)
        bits |= (uint64_t)p->origin.src_bytes[i];
    return (int)(bits & (~bits + 1));
}

static xt_status plan_both(const struct xti_map *m, struct xti_cuda_plan *p, struct xti_err *err)
{
    xt_status s;
    if (!(p->elem = xti_alloc(sizeof *p->elem)))
        return xti_fail(err, XT_ENOMEM, "CUDA plan");
    if ((s = xti_map_normalize(m, &p->elem->map, &p->origin, err)))
        return s;
    if ((s = xti_map_widen(&p->elem->map, widest_unit(p), &p->map, err)))
        return s;
    repeat_values(&p->map);
    repeat_values(&p->elem->map);
    p->base_align = 16;
    p->elem->base_align = p->elem->map.esize;
    p->elem->target = p->target;
    p->elem->origin = p->origin;
    s = plan_one(p->elem, err);
    xti_arena_take(&p->map.arena, &p->elem->map.arena); /* there is room for the other's steps */
    return s ? s : plan_one(p, err);
}

/* So that sizes and addresses in bytes, and sums of a few of them, need no check from here on. */
static xt_status check_reach(const struct xti_map *m, struct xti_err *err)
{
    int64_t most = MAX_REACH_BYTES / m->esize;
    bool fits = m->numel <= most && m->dst_lo >= -most && m->dst_hi <= most;
    for (int i = 0; i < m->n_srcs; i++)
        fits = fits && m->src_lo[i] >= -most && m->src_hi[i] <= most;
    return fits ? XT_OK
                : xti_fail(err, XT_EUNSUPPORTED, "a tensor of more than 2^56 bytes, which no GPU addresses");
}

xt_status xti_cuda_plan_make(const struct xti_map *m, const struct xti_cuda_target *t,
                             struct xti_cuda_plan *p, struct xti_err *err)
{
    *p = (struct xti_cuda_plan){.target = *t};
    xt_status s = check_reach(m, err);
    if (!s)
        s = plan_both(m, p, err);
    if (!s)
        s = xti_cuda_structure_make(p, err);
    if (s)
        xti_cuda_plan_free(p);
    return s;
}

static void release(struct xti_cuda_plan *p)
{
    xti_map_free(&p->map);
    xti_free(p->step);
    xti_str_free(&p->numbers);
    xti_str_free(&p->structure);
    xti_free(atomic_load_explicit(&p->any, memory_order_relaxed));
}

void xti_cuda_plan_free(struct xti_cuda_plan *p)
{
    if (p->elem)
        release(p->elem);
    xti_free(p->elem);
    release(p);
    *p = (struct xti_cuda_plan){0};
}
