/* cpu_tile.c: strategies for pieces whose inner dims are small, or whose destination rows begin anywhere in a
 * line: virtual tiles (sides.h). The columns come first, because only whole lines of the destination can be
 * streamed. tile: the rows have at least 16 bytes in a run, so that squares of registers serve. gather: they
 * have not; every line is picked unit by unit from source lines that stay in the first cache. Layer 3. */
#include "plan/cpu_tile.h"

#include "base/num.h"
#include "plan/sides.h"

enum {
    RUN_BYTES = 16,         /* below it rows are gathered */
    COL_BYTES = 1024,       /* of the destination in a run: its two ends go through the cache */
    COL_ENTRIES = 2048,     /* of a list */
    LONG_COL_BYTES = 2048,  /* of a single long dim: 64 more are read */
    ROW_BYTES = 1024,       /* of the source in a run */
    ROW_ENTRIES = 1024,     /* of a list; TILE_ROWS in stage.c.j2 are in work at a time */
    WIDE_UNIT = 8,          /* wider and equal ones want tiles: see wide_columns_apart */
    FED_UNIT = 2,           /* narrower and equal ones are streamed as in fed.c.j2 .. */
    FED_RUN = 256,          /* .. which a dim of shorter runs gains by */
    GATHER_ROWS = 256,      /* whose lines are open at a time */
    GATHER_COL_BYTES = 1024 /* with a line's worth of rows it stays in the first cache */
};

/* A single dim needs no list: rows may be as long as they like, columns are cut where lines are whole. */
static void make_long(struct xti_sides *x, struct xti_side *a, int64_t most)
{
    if (a->n_dims == 1) {
        int64_t n = x->t.dim[a->dim[0]].n;
        a->take = a->units = n <= 2 * most ? n : most;
        a->bytes = x->t.unit * a->take;
    }
}

/* Bytes of a run on either side, in the order in which they are worth having. A tile and the next one stay in
 * the second cache: 10 tiles of f32 0.94 of the limit, 0.85 with runs of 4096 x 2048; 15 of f16 0.70 and
 * 0.67, of u8 0.49 and 0.48. (Emerald Rapids, 2026-11) */
static const struct {
    int col, row;
} want[] = {{64, 64}, {512, 512}, {COL_BYTES, ROW_BYTES}};

/* Bytes of a single long dim of rows. Where prefetches reach deep those for the next columns must still be
 * there when they are read: f16 512 x 2 x 58593 reversed does 0.84 of a copy in parts of 1024 bytes, 0.69 in
 * parts of 16384, whole 0.49; u8 56 x 64 x 33482 0.72, 0.36, 0.27; f32 384 x 59 x 2320 0.88, 0.98, 0.97; f64
 * 7264 x 7264 0.93 in parts of 4096, whole 0.77. (Zen 5, 2026-11) */
static int64_t long_row_bytes(const struct xti_plan *p, int unit)
{
    enum { NARROW = 1024, MIDDLE = 16384, WIDE = 4096 };
    if (!p->target.prefetch_deep)
        return INT32_MAX;
    return unit <= FED_UNIT ? NARROW : unit < WIDE_UNIT ? MIDDLE : WIDE;
}

static void tile_of(const struct xti_plan *p, int piece, struct xti_sides *x)
{
    xti_sides_begin(&p->map, piece, x);
    if (!x->t.unit)
        return;
    x->even = true;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        xti_side_widen(x, &x->col, want[i].col, COL_ENTRIES);
        xti_side_widen(x, &x->row, want[i].row, ROW_ENTRIES);
    }
    make_long(x, &x->col, LONG_COL_BYTES / x->t.unit);
    make_long(x, &x->row, long_row_bytes(p, x->t.unit) / x->t.unit);
}

/* The columns' offsets are a list of 32 bits. */
static bool list_fits(const struct xti_sides *x)
{
    uint64_t reach = 0;
    for (int i = 0; i < x->col.n_dims; i++) {
        const struct xti_loop *l = &x->t.dim[x->col.dim[i]];
        uint64_t n = (uint64_t)(i + 1 < x->col.n_dims ? l->n : x->col.take);
        reach += xti_abs64(l->s) < INT32_MAX ? (n - 1) * xti_abs64(l->s) : INT32_MAX;
    }
    return reach < INT32_MAX;
}

static bool has_unit(const struct xti_plan *p, int piece, struct xti_why *why)
{
    const struct xti_piece *x = &p->map.piece[piece];
    struct xti_nest t;
    if (!xti_piece_affine(x))
        return xti_refuse(why, "%d divs and %d guards", x->n_divs, x->n_guards);
    if (x->src < 0)
        return xti_refuse(why, "no source");
    xti_nest_of(&p->map, piece, &t);
    if (!t.unit)
        return xti_refuse(why, "inner run of %lld B is no unit", (long long)t.run);
    return true;
}

/* Rows and columns are one block of the source, which a transpose reads from end to end. */
static bool columns_follow(const struct xti_nest *n)
{
    int64_t run = n->dim[n->cs].n * n->unit;
    return xti_abs64(n->dim[n->cd].s) == (uint64_t)run && run <= XTI_DEEP_ROW_BYTES;
}

/* Such blocks are better transposed, but for long columns of bytes and rows that begin anywhere in a line.
 * 100 chains A x 28 x 8 x C x D permuted 2, 0, 4, 1, 3, as tiles and transposed, of a copy: D of 16 bytes 0.3
 * and 0.9, of 32 0.5 and 1.0, of 48 0.6 and 1.0, of 96 0.8 and 0.95; longer ones to rows of whole lines 0.95
 * and 1.03, of bytes 0.95 and 0.8. Rows of a line and a half 0.83 and 0.49. (Zen 5, 2026-11) */
static bool follow_in_lines(const struct xti_nest *n)
{
    enum { SHORT = 96, SOME_LINES = 4 };
    const struct xti_loop *cs = &n->dim[n->cs], *cd = &n->dim[n->cd];
    int64_t run = cd->n * n->unit;
    bool whole = run % XTI_LINE == 0, narrow = cs->n * n->unit <= SHORT;
    return columns_follow(n) && cs->d % XTI_LINE == 0 && run >= (whole ? 1 : SOME_LINES) * XTI_LINE &&
           (narrow || (whole && n->unit > 1));
}

/* Where prefetches reach deep, tiles fetch columns that lie apart one by one. Of f64 18 of 24 streamed
 * transposes do 1.05 to 1.4 times as much as tiles (352 x 28 x 28 x 4 x 48 reversed 0.55 and 0.77 of a copy),
 * of c128 20 of 26 up to 1.45 times, none less than 0.93; f32 as often less as more. (Zen 5, 2026-11) */
static bool wide_columns_apart(const struct xti_nest *n)
{
    return n->unit >= WIDE_UNIT && !columns_follow(n);
}

/* Whether rows and columns as long as these are rather transposed. */
static bool transposed(const struct xti_plan *p, const struct xti_sides *x, struct xti_why *why)
{
    const struct xti_nest *t = &x->t;
    if (t->cs < 0 || t->cd < 0)
        return false;
    const struct xti_loop *cs = &t->dim[t->cs], *cd = &t->dim[t->cd];
    bool stream = xti_cost_stream(&p->target, p->bytes_written), deep = stream && p->target.prefetch_deep;
    if (deep && follow_in_lines(t))
        return !xti_refuse(why, "columns follow each other in the source");
    /* Shorter runs that do not follow each other gain by the dims beside them. */
    int64_t run = cd->n * t->unit;
    bool long_run = run >= LONG_COL_BYTES || cs->d == run;
    /* u8 2432 x 75 x 12 x 96 reversed does 0.58 of the limit, as a transpose 0.43; 9280 x 59 x 384 is alike.
     * (Emerald Rapids, 2026-11) */
    bool fed = stream && p->target.isa == XTI_ISA_AVX512 && t->unit <= FED_UNIT;
    int64_t enough = fed ? FED_RUN : XTI_LINE;
    bool long_rows = cs->n * t->unit >= enough || x->row.n_dims == 1;
    if (!long_rows || run < XTI_LINE || (deep && wide_columns_apart(t)))
        return false;
    if (!stream)
        return !xti_refuse(why, "stays in the cache");
    return cs->d % XTI_LINE == 0 && long_run && !xti_refuse(why, "rows of the destination begin on lines");
}

bool xti_tile_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    struct xti_sides x;
    if (!has_unit(p, piece, why))
        return false;
    tile_of(p, piece, &x);
    if (p->target.isa == XTI_ISA_SCALAR)
        return xti_refuse(why, "made for vectors");
    if (x.col.bytes < XTI_LINE)
        return xti_refuse(why, "destination's dims make up %lld B < %d B", (long long)x.col.bytes, XTI_LINE);
    if (x.row.bytes < RUN_BYTES)
        return xti_refuse(why, "source's other dims make up %lld B < %d B", (long long)x.row.bytes,
                          RUN_BYTES);
    if (x.col.n_dims > 1 && !list_fits(&x))
        return xti_refuse(why, "columns lie too far apart for a list");
    return !transposed(p, &x, why);
}

static void make(const struct xti_plan *p, const struct xti_sides *x, enum xti_cpu_op op,
                 struct xti_step *step)
{
    step->kernel = op;
    step->unit = x->t.unit;
    step->stream = xti_cost_stream(&p->target, p->bytes_written);
    xti_sides_step(x, step);
}

void xti_tile_make(const struct xti_plan *p, int piece, struct xti_step *step)
{
    struct xti_sides x;
    tile_of(p, piece, &x);
    make(p, &x, XTI_CPU_TILE, step);
}

/* ---- gather */

/* Columns as in a tile but fewer; rows: any dims that complete the lines of the source. */
static void gather_of(const struct xti_map *m, int piece, struct xti_sides *x)
{
    xti_sides_begin(m, piece, x);
    if (!x->t.unit)
        return;
    xti_side_widen(x, &x->col, GATHER_COL_BYTES, COL_ENTRIES);
    for (int i = 0; i < x->t.n_dims; i++) {
        int64_t st = (int64_t)xti_abs64(x->t.dim[i].s), n = x->t.dim[i].n;
        if (x->taken[i] || !st || st >= XTI_LINE || x->row.units * n > GATHER_ROWS)
            continue;
        x->taken[i] = true;
        x->row.dim[x->row.n_dims++] = i;
        x->row.take = n;
        x->row.units *= n;
    }
}

bool xti_gather_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    struct xti_sides x;
    if (!has_unit(p, piece, why))
        return false;
    gather_of(&p->map, piece, &x);
    if (x.col.bytes < XTI_LINE)
        return xti_refuse(why, "destination's dims make up %lld B < %d B", (long long)x.col.bytes, XTI_LINE);
    if (!list_fits(&x))
        return xti_refuse(why, "columns lie too far apart for a list");
    const struct xti_loop *cd = &x.t.dim[x.col.dim[0]];
    if (cd->n * x.t.unit >= XTI_LINE && cd->s > 0 && cd->s <= 8 * x.t.unit)
        return xti_refuse(why, "one dim of stride %lld B makes up a line", (long long)cd->s);
    return true;
}

void xti_gather_make(const struct xti_plan *p, int piece, struct xti_step *step)
{
    struct xti_sides x;
    gather_of(&p->map, piece, &x);
    make(p, &x, XTI_CPU_GATHER, step);
    if (!step->n_col_dims) { /* gathers know no strides */
        step->loop[step->n_loops + step->n_row_dims] = x.t.dim[x.col.dim[0]];
        step->loop[step->n_loops + step->n_row_dims].n = x.col.take;
        step->n_col_dims = 1;
    }
}
