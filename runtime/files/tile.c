/* tile.c: what a tile reads, and its map with the buffers' strides. An address of a virtual file is a row of
 * digits of its axes; a piece of the map moves each digit by a form of its dims and divs. Where a digit stays
 * within its axis the box has that range of it; where it may carry, all of it, so that the buffer is as
 * contiguous there as the file. Layer 6. */
#include "files/task.h"

#include <string.h>

#include "base/num.h"

enum { LOOK_BACK = 16, PAGE = 4096 };

/* ---- digits */

/* nearest: of 99 in rows of 100 one row on, one column back; else 99 columns on. */
static void split(const struct xti_axes *a, int64_t s, bool nearest, int64_t *c)
{
    for (int i = 0; i < a->n; i++) {
        int64_t st = a->stride[i];
        c[i] = xti_floor_div(nearest ? s + st / 2 : s, st);
        s -= c[i] * st;
    }
}

struct range {
    int64_t lo[XT_MAX_RANK], hi[XT_MAX_RANK];
};

/* Steps of s, [l, h] of them. A step back is the mirror of a step forth. */
static void move(const struct xti_axes *a, int64_t s, int64_t l, int64_t h, bool nearest, struct range *r)
{
    int64_t c[XT_MAX_RANK];
    split(a, s < 0 ? -s : s, nearest, c);
    for (int i = 0; i < a->n; i++)
        xti_add_range(s < 0 ? -c[i] : c[i], l, h, &r->lo[i], &r->hi[i]);
}

/* Digits that carry are whole. Of the outermost that which is there: the others are not read. */
static int64_t settle(const struct xti_axes *a, struct range *r)
{
    int64_t volume = 1;
    for (int i = a->n - 1; i >= 0; i--) {
        int64_t n = a->extent[i];
        if (i && (r->lo[i] < 0 || r->hi[i] >= n)) {
            r->lo[i - 1] += xti_floor_div(r->lo[i], n);
            r->hi[i - 1] += xti_floor_div(r->hi[i], n);
            r->lo[i] = 0;
            r->hi[i] = n - 1;
        }
        if (!i) {
            r->lo[0] = r->lo[0] < 0 ? 0 : r->lo[0] < n ? r->lo[0] : n - 1;
            r->hi[0] = r->hi[0] >= n ? n - 1 : r->hi[0] > r->lo[0] ? r->hi[0] : r->lo[0];
        }
        volume = xti_mul_most(volume, r->hi[i] - r->lo[i] + 1);
    }
    return volume;
}

static int64_t digits_read(const struct xti_axes *a, const struct xti_piece *p, bool nearest, struct range *r)
{
    int64_t ql[XTI_MAX_DIVS], qh[XTI_MAX_DIVS];
    split(a, p->soff, false, r->lo);
    memcpy(r->hi, r->lo, sizeof r->hi);
    for (int i = 0; i < p->n_dims; i++)
        move(a, p->dim[i].s, 0, p->dim[i].n - 1, nearest, r);
    if (!xti_piece_div_ranges(p, ql, qh)) {
        for (int i = 0; i < a->n; i++) {
            r->lo[i] = 0;
            r->hi[i] = a->extent[i] - 1;
        }
        return INT64_MAX;
    }
    for (int j = 0; j < p->n_divs; j++)
        move(a, p->sq[j], ql[j], qh[j], nearest, r);
    return settle(a, r);
}

/* ---- boxes */

static void measure(struct xti_box *b, int rank)
{
    b->elements = 1;
    for (int i = rank - 1; i >= 0; i--) {
        b->stride[i] = b->elements;
        b->elements = xti_mul_most(b->elements, b->n[i]);
    }
}

static double seconds_of(const struct xti_task *t, const struct xti_box *b)
{
    int axis;
    const struct xti_axes *a = &t->from[b->input];
    int64_t run = xti_box_run(a, b->n, &axis);
    return (double)(b->elements / run) * xti_curve_seconds(t->curve, false, run * t->in[b->input]->esize);
}

/* Reads through gaps where that is faster than going round them. */
static void fill_gaps(const struct xti_task *t, struct xti_box *b)
{
    const struct xti_axes *a = &t->from[b->input];
    struct xti_box wide = *b;
    double least = seconds_of(t, b);
    for (int i = a->n - 1; i > 0; i--) {
        wide.lo[i] = 0;
        wide.n[i] = a->extent[i];
        measure(&wide, a->n);
        double seconds = seconds_of(t, &wide);
        if (seconds < least) {
            least = seconds;
            *b = wide;
        }
    }
}

/* True: b holds what both hold, in no more elements. */
static bool join(struct xti_box *b, const struct xti_box *x, int rank)
{
    struct xti_box both = *b;
    if (b->input != x->input)
        return false;
    for (int i = 0; i < rank; i++) {
        int64_t end = b->lo[i] + b->n[i], other = x->lo[i] + x->n[i];
        both.lo[i] = b->lo[i] < x->lo[i] ? b->lo[i] : x->lo[i];
        both.n[i] = (end > other ? end : other) - both.lo[i];
    }
    measure(&both, rank);
    if (both.elements > xti_add_most(b->elements, x->elements))
        return false;
    *b = both;
    return true;
}

struct reading {
    bool nearest;
    int box;
};

static void find_box(const struct xti_task *t, const struct xti_piece *p, struct xti_file_tile *out,
                     struct reading *r)
{
    const struct xti_axes *a = &t->from[p->src];
    struct range plain, near;
    struct xti_box b = {.input = p->src};
    int64_t volume = digits_read(a, p, false, &plain);
    r->nearest = digits_read(a, p, true, &near) < volume;
    const struct range *best = r->nearest ? &near : &plain;
    for (int i = 0; i < a->n; i++) {
        b.lo[i] = best->lo[i];
        b.n[i] = best->hi[i] - best->lo[i] + 1;
    }
    measure(&b, a->n);
    fill_gaps(t, &b);
    int low = out->n_boxes > LOOK_BACK ? out->n_boxes - LOOK_BACK : 0;
    for (r->box = out->n_boxes - 1; r->box >= low; r->box--)
        if (join(&out->box[r->box], &b, a->n))
            return;
    r->box = out->n_boxes++;
    out->box[r->box] = b;
}

/* ---- the map of the buffers */

static int64_t moved(const struct xti_axes *a, const struct xti_box *b, int64_t s, bool nearest)
{
    int64_t c[XT_MAX_RANK], sum = 0;
    split(a, s < 0 ? -s : s, nearest, c);
    for (int i = 0; i < a->n; i++)
        sum += c[i] * b->stride[i];
    return s < 0 ? -sum : sum;
}

static int64_t moved_offset(const struct xti_axes *a, const struct xti_box *b, int64_t offset)
{
    int64_t c[XT_MAX_RANK], sum = 0;
    split(a, offset, false, c);
    for (int i = 0; i < a->n; i++)
        sum += (c[i] - b->lo[i]) * b->stride[i];
    return sum;
}

/* Dims that follow each other in the buffer as they do in the tile are one. */
static void merge_dims(struct xti_piece *p)
{
    int n = 0;
    for (int i = 0; i < p->n_dims; i++) {
        struct xti_dim *outer = n ? &p->dim[n - 1] : NULL, in = p->dim[i];
        if (outer && outer->s == in.n * in.s && outer->d == in.n * in.d)
            *outer = (struct xti_dim){outer->n * in.n, in.s, in.d};
        else
            p->dim[n++] = in;
    }
    p->n_dims = n;
}

static xt_status rewrite_piece(const struct xti_task *t, struct xti_file_tile *out, struct xti_piece *p,
                               const struct reading *r, struct xti_err *err)
{
    const struct xti_axes *a = &t->from[p->src];
    const struct xti_box *b = &out->box[r->box];
    int64_t *sq = xti_arena_dup(&out->map.arena, p->sq, (size_t)p->n_divs * sizeof *sq);
    if (!sq)
        return xti_fail(err, XT_ENOMEM, "a tile");
    p->src = r->box;
    p->soff = moved_offset(a, b, p->soff);
    for (int i = 0; i < p->n_dims; i++)
        p->dim[i].s = moved(a, b, p->dim[i].s, r->nearest);
    for (int j = 0; j < p->n_divs; j++)
        sq[j] = moved(a, b, p->sq[j], r->nearest);
    p->sq = sq;
    if (xti_piece_affine(p))
        merge_dims(p);
    return XT_OK;
}

static xt_status rewrite_map(const struct xti_task *t, struct xti_file_tile *out, const struct reading *r,
                             struct xti_err *err)
{
    struct xti_map *m = &out->map;
    m->n_srcs = out->n_boxes;
    m->src_lo = xti_arena_alloc(&m->arena, 2 * ((size_t)out->n_boxes + 1) * sizeof *m->src_lo);
    if (!m->src_lo)
        return xti_fail(err, XT_ENOMEM, "a tile");
    m->src_hi = m->src_lo + out->n_boxes;
    for (int i = 0; i < out->n_boxes; i++)
        m->src_hi[i] = out->box[i].elements - 1;
    xt_status s = XT_OK;
    for (int i = 0; i < m->n_pieces && !s; i++)
        if (m->piece[i].src >= 0)
            s = rewrite_piece(t, out, &m->piece[i], &r[i], err);
    return s;
}

/* ---- a tile */

static void focus(struct xti_task *t, const int64_t *lo, const int64_t *n)
{
    struct xt_graph *g = t->graph;
    struct xti_node *lens = &g->node[t->lens];
    for (int i = 0; i < t->to.n; i++) {
        lens->attr[4 * i + 1] = lo[i];
        lens->attr[4 * i + 2] = n[i];
        lens->shape[i] = n[i];
    }
    xti_dense_strides(lens->rank, lens->shape, g->out_strides);
}

static xt_status find_boxes(const struct xti_task *t, struct xti_file_tile *out, struct reading *r,
                            struct xti_err *err)
{
    const struct xti_map *m = &out->map;
    out->box = xti_arena_alloc(&out->map.arena, ((size_t)m->n_pieces + 1) * sizeof *out->box);
    if (!out->box)
        return xti_fail(err, XT_ENOMEM, "a tile");
    for (int i = 0; i < m->n_pieces; i++)
        if (m->piece[i].src >= 0)
            find_box(t, &m->piece[i], out, &r[i]);
    for (int i = 0; i < out->n_boxes; i++) {
        out->box[i].at = out->src_bytes;
        int64_t bytes = xti_mul_most(out->box[i].elements, m->esize);
        out->src_bytes = xti_add_most(out->src_bytes, xti_add_most(bytes, PAGE - 1)) / PAGE * PAGE;
    }
    return XT_OK;
}

xt_status xti_file_tile_make(struct xti_task *t, const int64_t *lo, const int64_t *n, bool rewrite,
                             struct xti_file_tile *out, struct xti_err *err)
{
    *out = (struct xti_file_tile){0};
    memcpy(out->lo, lo, (size_t)t->to.n * sizeof *lo);
    memcpy(out->n, n, (size_t)t->to.n * sizeof *n);
    focus(t, lo, n);
    xt_status s = xti_map_fuse(t->graph, NULL, &out->map, err);
    if (s)
        return s;
    struct reading *r = xti_alloc_array((size_t)out->map.n_pieces + 1, sizeof *r);
    s = r ? find_boxes(t, out, r, err) : xti_fail(err, XT_ENOMEM, "a tile");
    if (!s && rewrite)
        s = rewrite_map(t, out, r, err);
    out->dst_bytes = out->map.numel * out->map.esize;
    xti_free(r);
    if (s)
        xti_file_tile_free(out);
    return s;
}

void xti_file_tile_free(struct xti_file_tile *t)
{
    xti_map_free(&t->map);
    *t = (struct xti_file_tile){0};
}
