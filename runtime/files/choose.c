/* choose.c: the search for a tile. It begins with one element and doubles the axis that makes an element
 * cheapest, as long as that helps and there is room; then it doubles one and halves another. What a tile
 * takes is not guessed: some are made as they will be run. Layer 6. */
#include "files/choose.h"

#include <string.h>

#include "base/num.h"
#include "plan/estimate.h"

enum { SAMPLES = 3, LONG = 65536, MOST_PIECES = 20000 };
/* What a tile takes beside its requests, of which the last ones are waited for (bench/notes/files.md). */
static const double TILE_SECONDS = 2e-4;
/* Of what a step has to save. */
static const double GAIN = 0.999;

/* What a search looks at: reads and writes count so much. */
struct search {
    struct xti_task *t;
    int64_t room, most;
    int depth;
    double weight[2], tile; /* tile: seconds of one */
    int64_t pieces;         /* of maps that were looked at */
    struct xti_err *err;
    xt_status st;
};

static int64_t pieces_of(const struct xti_array *s, int64_t run_bytes, int64_t runs, double *seconds,
                         const struct xti_curve *c, bool write)
{
    int64_t part = s->part_elements * s->esize, unit = run_bytes < part ? run_bytes : part;
    int64_t units = runs * (run_bytes / unit);
    *seconds += (double)units * xti_curve_seconds(c, write, unit);
    return units * xti_ceil_div(unit, c->piece_bytes);
}

struct sums {
    double seconds[2], elements;
    int64_t requests[2], read_bytes, src_bytes, dst_bytes, pieces;
};

/* Runs that begin or end within blocks, which are read before: of each run two, one or none. */
static int ragged_ends(const struct xti_array *s, const struct xti_axes *a, const int64_t *lo,
                       const int64_t *n, int axis, int64_t run)
{
    int64_t at = s->at;
    for (int i = 0; i < a->n; i++)
        at += lo[i] * a->stride[i] * s->esize % XTI_IO_BLOCK;
    for (int i = 0; i < axis; i++)
        if (n[i] > 1 && a->stride[i] * s->esize % XTI_IO_BLOCK)
            return 2;
    return (at % XTI_IO_BLOCK != 0) + ((at + run * s->esize) % XTI_IO_BLOCK != 0);
}

static void add_tile(const struct xti_task *t, const struct xti_file_tile *tile, struct sums *s)
{
    int axis;
    for (int i = 0; i < tile->n_boxes; i++) {
        const struct xti_box *b = &tile->box[i];
        const struct xti_array *in = t->in[b->input];
        int64_t run = xti_box_run(&t->from[b->input], b->n, &axis);
        s->requests[0] += pieces_of(in, run * in->esize, b->elements / run, &s->seconds[0], t->curve, false);
        s->read_bytes += b->elements * in->esize;
    }
    int64_t run = xti_box_run(&t->to, tile->n, &axis), esize = t->out->esize;
    s->requests[1] += pieces_of(t->out, run * esize, tile->map.numel / run, &s->seconds[1], t->curve, true);
    s->seconds[1] += (double)(tile->map.numel / run) *
                     ragged_ends(t->out, &t->to, tile->lo, tile->n, axis, run) *
                     xti_curve_seconds(t->curve, false, XTI_IO_BLOCK);
    s->elements += (double)tile->map.numel;
    s->pieces += tile->map.n_pieces;
    s->src_bytes = tile->src_bytes > s->src_bytes ? tile->src_bytes : s->src_bytes;
    s->dst_bytes = tile->dst_bytes > s->dst_bytes ? tile->dst_bytes : s->dst_bytes;
}

/* Of the first, the middle and the last whole tile. */
static xt_status sample(struct xti_task *t, const int64_t *n, struct sums *s, struct xti_err *err)
{
    int64_t lo[XT_MAX_RANK], before[XT_MAX_RANK];
    xt_status st = XT_OK;
    *s = (struct sums){0};
    for (int k = 0; k < SAMPLES && !st; k++) {
        struct xti_file_tile tile;
        for (int i = 0; i < t->to.n; i++)
            lo[i] = (t->to.extent[i] / n[i] - 1) * k / (SAMPLES - 1) * n[i];
        if (k && !memcmp(lo, before, (size_t)t->to.n * sizeof *lo))
            continue;
        memcpy(before, lo, sizeof before);
        if ((st = xti_file_tile_make(t, lo, n, false, &tile, err)))
            return st;
        add_tile(t, &tile, s);
        xti_file_tile_free(&tile);
    }
    return st;
}

/* Seconds that the pages of the buffers take. */
static double touch(const struct xti_task *t, int depth, const struct sums *s)
{
    return t->curve->touch * depth * ((double)s->src_bytes + (double)s->dst_bytes);
}

static double count_tiles(const struct xti_task *t, const int64_t *n)
{
    double tiles = 1;
    for (int i = 0; i < t->to.n; i++)
        tiles *= (double)xti_ceil_div(t->to.extent[i], n[i]);
    return tiles;
}

/* Seconds an element; -1: it does not fit, or the search has failed. */
static double price(struct search *s, const int64_t *n)
{
    struct sums sums = {0};
    if (!s->st)
        s->st = sample(s->t, n, &sums, s->err);
    s->pieces += sums.pieces;
    if (s->st || xti_add_most(sums.src_bytes, xti_io_padded(sums.dst_bytes)) > s->room)
        return -1;
    if (s->most && (sums.src_bytes > s->most + 4096 || sums.dst_bytes > s->most))
        return -1;
    return (s->weight[0] * sums.seconds[0] + s->weight[1] * sums.seconds[1]) / sums.elements +
           (touch(s->t, s->depth, &sums) + s->tile * count_tiles(s->t, n)) / (double)s->t->out->elements;
}

static int64_t twice(const struct xti_axes *a, int i, int64_t n)
{
    return n > a->extent[i] / 2 ? a->extent[i] : 2 * n;
}

/* Where twice as much is no better, four times as much may be: two rows of x.roll(1,0) are far apart in x. */
static double grow(struct search *s, int64_t *n, double now)
{
    const struct xti_axes *a = &s->t->to;
    for (;;) {
        double least = now * GAIN;
        int64_t best_n = 0;
        int best = -1;
        for (int i = 0; i < a->n; i++) {
            int64_t was = n[i];
            bool better = false;
            for (int k = 0; k < 2 && n[i] < a->extent[i] && !better; k++) {
                n[i] = twice(a, i, n[i]);
                double p = price(s, n);
                better = p >= 0 && p < least;
                if (better) {
                    least = p;
                    best = i;
                    best_n = n[i];
                }
            }
            n[i] = was;
        }
        if (best < 0)
            return now;
        n[best] = best_n;
        now = least;
    }
}

/* One axis more, another less. */
static double trade(struct search *s, int64_t *n, double now)
{
    const struct xti_axes *a = &s->t->to;
    bool better = true;
    while (better) {
        better = false;
        for (int i = 0; i < a->n; i++)
            for (int k = 0; k < a->n; k++) {
                int64_t i_was = n[i], k_was = n[k];
                if (i == k || i_was == a->extent[i] || k_was == 1)
                    continue;
                n[i] = twice(a, i, i_was);
                n[k] = (k_was + 1) / 2;
                double p = price(s, n);
                if (p >= 0 && p < now * GAIN) {
                    now = p;
                    better = true;
                } else {
                    n[i] = i_was;
                    n[k] = k_was;
                }
            }
    }
    return now;
}

/* By requests first, since tiles of a few elements would be joined by whatever makes them fewer. */
static double search_from(struct search *s, int64_t *n)
{
    double now = 0;
    for (int k = 0; k < 2; k++) {
        s->tile = k ? TILE_SECONDS : 0;
        if ((now = price(s, n)) < 0)
            return now;
        now = grow(s, n, now);
        now = trade(s, n, now);
        now = grow(s, n, now);
    }
    return now;
}

/* From one element, and from a long row along each axis: where a row is longer than a quarter of what it
 * crosses, a step from the element makes everything dearer. Maps of many pieces are searched once. */
static double search(struct search *s, int64_t *n)
{
    const struct xti_axes *a = &s->t->to;
    double least = search_from(s, n);
    for (int i = 0; i < a->n && a->n > 1 && least >= 0 && s->pieces < MOST_PIECES; i++) {
        int64_t row[XT_MAX_RANK];
        for (int k = 0; k < a->n; k++)
            row[k] = 1;
        row[i] = a->extent[i] < LONG ? a->extent[i] : LONG;
        s->tile = 0;
        while (price(s, row) < 0 && row[i] > 1)
            row[i] /= 2;
        double p = search_from(s, row);
        if (p >= 0 && p < least * GAIN) {
            least = p;
            memcpy(n, row, (size_t)a->n * sizeof *n);
        }
    }
    return least;
}

static xt_status too_small(struct search *s)
{
    bool tile = s->most && s->most < s->t->out->esize;
    return s->st ? s->st
                 : xti_fail(s->err, tile ? XT_EINVAL : XT_ENOMEM,
                            "%lld bytes of %s are too few: one element of the result needs more",
                            (long long)(tile ? s->most : s->room), tile ? "a tile" : "memory");
}

/* Seconds of the kernels, of all tiles. */
static xt_status kernel_seconds(struct xti_task *t, const struct xti_tiling *c, double *out,
                                struct xti_err *err)
{
    struct xti_file_tile tile;
    const struct xti_plan *plan;
    struct xti_estimate e;
    xt_status s = xti_file_tile_make(t, (int64_t[XT_MAX_RANK]){0}, c->n, true, &tile, err);
    if (s)
        return s;
    if (!(s = xti_file_tile_kernel(t, &tile, &plan, err))) {
        xti_plan_estimate(plan, &e);
        *out = e.seconds / (double)tile.map.numel * (double)t->out->elements;
    }
    xti_file_tile_free(&tile);
    return s;
}

xt_status xti_tiles_price(struct xti_task *t, struct xti_tiling *c, struct xti_err *err)
{
    struct sums s;
    double kernels = 0;
    xt_status st = sample(t, c->n, &s, err);
    if (!st)
        st = kernel_seconds(t, c, &kernels, err);
    if (st)
        return st;
    double times = (double)t->out->elements / s.elements, io = times * (s.seconds[0] + s.seconds[1]);
    double tiles = count_tiles(t, c->n);
    c->tiles = (int64_t)tiles;
    c->reads = (int64_t)(times * (double)s.requests[0] + 0.5);
    c->writes = (int64_t)(times * (double)s.requests[1] + 0.5);
    c->read_bytes = (int64_t)(times * (double)s.read_bytes + 0.5);
    c->src_bytes = s.src_bytes;
    c->dst_bytes = s.dst_bytes;
    c->seconds = touch(t, c->depth, &s) + TILE_SECONDS * tiles +
                 (c->depth > 1 ? (io > kernels ? io : kernels) : io + kernels);
    return XT_OK;
}

xt_status xti_tiles_choose(struct xti_task *t, int64_t room, int64_t most, struct xti_tiling *out,
                           struct xti_err *err)
{
    *out = (struct xti_tiling){0};
    for (int depth = 2; depth >= 1; depth--) {
        struct search s = {
            .t = t, .room = room / depth, .most = most, .depth = depth, .weight = {1, 1}, .err = err};
        struct xti_tiling c = {.depth = depth};
        for (int i = 0; i < t->to.n; i++)
            c.n[i] = 1;
        double p = search(&s, c.n);
        if (p < 0 && (s.st || depth == 1))
            return out->depth && !s.st ? XT_OK : too_small(&s);
        if (p < 0)
            continue;
        xt_status st = xti_tiles_price(t, &c, err);
        if (st)
            return st;
        if (!out->depth || c.seconds < out->seconds)
            *out = c;
    }
    return XT_OK;
}

xt_status xti_tiles_between(struct xti_task *t, int64_t room, int64_t most, int64_t *n, struct xti_err *err)
{
    int64_t tile[2][XT_MAX_RANK];
    for (int side = 0; side < 2; side++) {
        struct search s = {.t = t, .room = room, .most = most, .depth = 1, .err = err};
        for (int i = 0; i < t->to.n; i++)
            tile[side][i] = 1;
        s.weight[side] = 1;
        double p = price(&s, tile[side]);
        if (p >= 0) {
            grow(&s, tile[side], p);
            s.weight[!side] = 1;
            grow(&s, tile[side], price(&s, tile[side]));
        }
        if (p < 0)
            return too_small(&s);
    }
    for (int i = 0; i < t->to.n; i++)
        n[i] = tile[0][i] < tile[1][i] ? tile[0][i] : tile[1][i];
    return XT_OK;
}
