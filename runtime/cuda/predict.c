/* predict.c: see predict.h. Sectors follow from runs: a run of L bytes that begins at a multiple of g bytes,
 * and otherwise anywhere, touches (L + 32 - g) / 32 sectors in the mean. Instructions are counted off the
 * skeletons. Layer 4. */
#include "cuda/predict.h"

#include <math.h>

#include "cuda/box.h"
#include "cuda/family.h"
#include "cuda/packed.h"
#include "cuda/segments.h"
#include "cuda/weave.h"

enum { WARP = 32, BLOCKS_OF_SM = 16, SHARED_OF_SM = 200 << 10 };

static double sectors_of(double bytes, double runs, int64_t align)
{
    double g = align < XTI_SECTOR_BYTES ? (double)align : XTI_SECTOR_BYTES;
    return runs * (bytes + XTI_SECTOR_BYTES - g) / XTI_SECTOR_BYTES;
}

/* ---- what the bytes need */

/* The run that the side's units make up, dims by stride from the smallest on; steps within a sector count as
 * a run with gaps. */
static double sectors_needed(const struct xti_cuda_plan *p, const struct xti_piece *q, enum xti_side side)
{
    bool used[XTI_MAX_DIMS] = {false}, dst = side == XTI_DESTINATION;
    int64_t unit = p->map.esize, run = 1, low = -1;
    double runs = 1;
    uint64_t bits = XTI_SECTOR_BYTES | (uint64_t)(dst ? p->origin.dst_bytes : p->origin.src_bytes[q->src]) |
                    (uint64_t)(dst ? q->doff : q->soff) * (uint64_t)unit;
    for (;;) {
        int next = -1;
        for (int i = 0; i < q->n_dims; i++) {
            int64_t s = (int64_t)xti_abs64(dst ? q->dim[i].d : q->dim[i].s);
            if (!used[i] && s && (next < 0 || s < low)) {
                next = i;
                low = s;
            }
        }
        if (next < 0 || low * unit > XTI_SECTOR_BYTES + run * unit)
            break;
        used[next] = true;
        run += (q->dim[next].n - 1) * low;
    }
    for (int i = 0; i < q->n_dims; i++) {
        int64_t s = dst ? q->dim[i].d : q->dim[i].s;
        if (used[i] || !s)
            continue;
        runs *= (double)q->dim[i].n;
        bits |= (uint64_t)s * (uint64_t)unit;
    }
    return sectors_of((double)(run * unit), runs, (int64_t)(bits & (~bits + 1)));
}

/* ---- what a family requests */

static double units_of(const struct xti_piece *q) { return (double)xti_piece_numel(q); }

/* Bytes that all rows begin at multiples of, up to a sector, where buffers do. */
static int64_t row_align(const struct xti_cuda_plan *p, const struct xti_piece *q, enum xti_side side)
{
    bool dst = side == XTI_DESTINATION;
    uint64_t unit = (uint64_t)p->map.esize,
             bits = XTI_SECTOR_BYTES | (uint64_t)(dst ? p->origin.dst_bytes : p->origin.src_bytes[q->src]) |
                    (uint64_t)(dst ? q->doff : q->soff) * unit;
    for (int i = 0; i + 1 < q->n_dims; i++)
        bits |= (uint64_t)(dst ? q->dim[i].d : q->dim[i].s) * unit;
    return (int64_t)(bits & (~bits + 1));
}

/* Rows of one access after another: a warp's requests are so many bytes long. */
static void predict_rows(const struct xti_cuda_plan *p, const struct xti_cuda_step *s,
                         const struct xti_piece *q, struct xti_cuda_prediction *out)
{
    double row = (double)(xti_cuda_inner(q)->n * p->map.esize), rows = (double)xti_cuda_row_count(q);
    double requests = ceil(row / (WARP * s->dst_bytes)), accesses = units_of(q) * p->map.esize / s->vec_bytes;
    out->store.requested += sectors_of(row / requests, rows * requests, row_align(p, q, XTI_DESTINATION));
    if (q->src >= 0 && s->from == XTI_FROM_SPLAT)
        out->load.requested += accesses / WARP;
    else if (q->src >= 0)
        out->load.requested += sectors_of(row / requests, rows * requests, row_align(p, q, XTI_SOURCE));
    out->instructions += accesses * (8 + 4 * q->n_dims + 30.0 / s->per_thread);
    out->in_flight = fmin(out->in_flight, q->src < 0 ? out->in_flight
                                                     : (double)BLOCKS_OF_SM * XTI_CUDA_THREADS *
                                                           s->per_thread * s->vec_bytes);
}

static void predict_generic(const struct xti_cuda_plan *p, const struct xti_cuda_step *s,
                            const struct xti_piece *q, struct xti_cuda_prediction *out)
{
    int64_t unit = p->map.esize, step = (int64_t)xti_abs64(xti_cuda_inner(q)->s);
    double warps = units_of(q) / WARP, d = (double)xti_cuda_inner(q)->d;
    out->store.requested += warps * fmin(WARP, WARP * d * (double)unit / XTI_SECTOR_BYTES + 1 - 1 / d);
    if (q->src >= 0)
        out->load.requested +=
            warps * fmin(WARP, (double)(WARP * step * unit) / XTI_SECTOR_BYTES + (step != 1));
    out->instructions += units_of(q) * (12 + 6 * q->n_dims);
    out->in_flight =
        fmin(out->in_flight, (double)BLOCKS_OF_SM * XTI_CUDA_THREADS * s->per_thread * (double)unit);
}

static void predict_tile(const struct xti_cuda_plan *p, const struct xti_cuda_step *s,
                         struct xti_cuda_prediction *out)
{
    const struct xti_box *b = s->box;
    int unit = p->map.esize;
    double row = unit, run = unit, boxes = (double)s->blocks;
    for (int j = 0; j < b->n; j++) {
        const struct xti_box_dim *d = &b->dim[j];
        double part = d->cut < 0 ? (double)d->n : (double)d->n / (double)xti_box_count(b, d->cut, unit);
        if (d->in_a && d->s)
            row += (part + (double)d->back - 1) * (double)xti_abs64(d->s) * unit;
        if (d->in_b)
            run *= part;
    }
    out->load.requested += sectors_of(row, boxes * (double)b->rows, b->source_align);
    out->store.requested +=
        sectors_of(run, boxes * (double)b->outs, b->destination_aligned ? b->destination_align : b->share);
    out->parts += xti_box_parts(&p->map.piece[s->piece], b, unit);
    out->instructions += boxes * xti_box_instructions(b, unit);
    double chunks = (double)(b->rows * b->chunks);
    out->in_flight = fmin(out->in_flight, chunks * 16 * fmin(BLOCKS_OF_SM, SHARED_OF_SM / (double)b->bytes));
}

/* A warp's items lie one after another on both sides, and it asks for their words in that order. */
static void predict_weave(const struct xti_cuda_plan *p, const struct xti_cuda_step *s,
                          const struct xti_piece *q, struct xti_cuda_prediction *out)
{
    struct xti_woven parts;
    struct xti_weave v;
    xti_weave_parts(p, s->piece, s->rows, &parts);
    xti_weave_make(p, &parts, &v, NULL);
    double unit = p->map.esize, items = (double)xti_weave_items(&parts, &v), rows = items / (double)v.groups;
    double window = (double)((v.pixels - 1) * (int64_t)xti_abs64(v.sw) + v.span) * unit,
           run = (double)(v.pixels * (v.packed ? v.channels : 1)) * unit,
           runs = rows * (v.packed ? 1 : v.channels);
    double loads = ceil((double)(v.groups * v.fetched) / WARP), stores = ceil(run / (WARP * 16));
    out->load.requested +=
        sectors_of(window / loads, rows * v.windows * loads, v.shifted ? 16 : XTI_SECTOR_BYTES);
    out->store.requested += sectors_of(run / stores, runs * stores, v.aligned ? XTI_SECTOR_BYTES : 16);
    out->instructions += items * (30 + 4.0 * q->n_dims + v.windows * v.fetched * (v.fetched > 1 ? 11 : 5) +
                                  v.windows * v.chunks * (v.shifted ? 16 : 0) +
                                  v.outs * ((unit < 2   ? 8
                                             : unit < 4 ? 4
                                                        : 0) +
                                            (v.packed && v.outs > 1 ? 12 : 5)));
    out->in_flight =
        fmin(out->in_flight, fmin(BLOCKS_OF_SM, (double)SHARED_OF_SM / fmax(1, (double)s->shared_bytes)) *
                                 XTI_CUDA_THREADS * 16 * v.windows * v.fetched);
}

/* A warp's requests are 512 bytes long and begin at multiples of 16; its last lane asks for a word more. A
 * row that ends within 16 bytes does so in two stores at each end. */
static void predict_segments(const struct xti_cuda_plan *p, const struct xti_cuda_step *s,
                             struct xti_cuda_prediction *out)
{
    const struct xti_rows *r = s->rows;
    double rows = 1, unit = p->map.esize, length = (double)r->length * unit, lanes = (double)r->items;
    int align = xti_cuda_row_align(p, r, -1);
    for (int i = 0; i < r->n_dims; i++)
        rows *= (double)r->dim[i].n;
    for (int k = 0; k < r->n_segments; k++) {
        const struct xti_segment *g = &r->segment[k];
        double run = (double)(g->end - g->begin) * unit, requests = ceil(run / (WARP * 16));
        out->load.requested += sectors_of(run / requests, rows * requests, 16) +
                               (r->shifted ? rows * ceil(run / (r->lanes * 16.0 * r->along)) : 0);
        out->load.needed += sectors_of(run, rows, xti_cuda_row_align(p, r, k));
    }
    double requests = ceil(length / (WARP * 16));
    out->store.requested += sectors_of(length / requests, rows * requests, 16) + (align < 16 ? 2 * rows : 0);
    out->store.needed += sectors_of(length, rows, align);
    out->instructions += lanes * r->lanes * (60 + 20.0 * r->along);
    out->in_flight = fmin(out->in_flight, 5.0 * XTI_CUDA_THREADS * 16 * s->per_thread);
}

/* Each part's stretch of a block is one run of its source. */
static void predict_packed(const struct xti_cuda_plan *p, const struct xti_cuda_step *s,
                           struct xti_cuda_prediction *out)
{
    const struct xti_rows *r = s->rows;
    struct xti_packed v;
    xti_packed_make(p, r, &v);
    double unit = p->map.esize, blocks = (double)s->blocks, records = (double)v.count / (double)v.row_blocks,
           words = records * (double)r->length * unit / 16;
    for (int k = 0; k < r->n_segments; k++) {
        double run = (double)(r->segment[k].end - r->segment[k].begin),
               stretch = ((records - 1) * (double)v.part[k].stride + run) * unit;
        out->load.requested += sectors_of(stretch, blocks, 16);
        out->load.needed += sectors_of(stretch, blocks, XTI_SECTOR_BYTES);
    }
    out->store.requested += sectors_of(words * 16, blocks, v.aligned ? XTI_SECTOR_BYTES : 16);
    out->store.needed += sectors_of(words * 16, blocks, XTI_SECTOR_BYTES);
    out->instructions +=
        blocks * (words * (10 + 80 / unit) + XTI_CUDA_THREADS * (60 + 10.0 * (double)v.loads));
    out->in_flight = fmin(out->in_flight, words * 16 * fmin(BLOCKS_OF_SM, SHARED_OF_SM / (double)v.bytes));
}

/* Of sectors (1: no more than needed), instructions and bytes in flight; a copy's own are 1, 19 and 64 KB.
 * The constants are fitted to a cycle-level simulation (bench/README.md). */
static double cost(double sectors, double instructions, double in_flight)
{
    return pow(fmax(1, sectors), 2.5) + pow(instructions / 132, 2.5) +
           (isinf(in_flight) ? 0 : pow(6.7 * 1024 / in_flight, 2.5));
}

bool xti_cuda_predict(const struct xti_cuda_plan *p, struct xti_cuda_prediction *out)
{
    *out = (struct xti_cuda_prediction){.in_flight = INFINITY, .fraction = 1};
    if (!p->n_steps)
        return false;
    for (int i = 0; i < p->n_steps; i++) {
        const struct xti_cuda_step *s = &p->step[i];
        const struct xti_piece *q = &p->map.piece[s->piece];
        if (!xti_piece_affine(q))
            return false;
        if (s->family == XTI_CUDA_SEGMENTS) {
            predict_segments(p, s, out);
            continue;
        }
        if (s->family == XTI_CUDA_PACKED) {
            predict_packed(p, s, out);
            continue;
        }
        if (s->family == XTI_CUDA_TILE)
            predict_tile(p, s, out);
        else if (s->family == XTI_CUDA_WEAVE)
            predict_weave(p, s, q, out);
        else if (s->family == XTI_CUDA_GENERIC)
            predict_generic(p, s, q, out);
        else
            predict_rows(p, s, q, out);
        out->store.needed += sectors_needed(p, q, XTI_DESTINATION);
        if (q->src >= 0)
            out->load.needed += sectors_needed(p, q, XTI_SOURCE) * (s->rows ? s->rows->n_segments : 1);
    }
    out->instructions /= fmax(1, (double)(p->map.numel * p->map.esize) / 16);
    double sectors = (out->load.requested + out->store.requested + xti_cuda_parts_cost(out->parts)) /
                     (out->load.needed + out->store.needed);
    out->fraction =
        fmin(1, pow(cost(1, 19, 64 << 10) / cost(sectors, out->instructions, out->in_flight), 0.4));
    return true;
}
