/* cpu_tile.c: strategies for pieces whose inner dims are small, or whose destination rows begin anywhere in a
 * line. A virtual tile takes as many dims as make up lines on either side:
 *
 *     columns: dims dense in the destination, from its contiguous one outwards
 *     rows:    dims dense in the source, from its contiguous one outwards
 *
 * No dim is on both sides; the columns come first, because only whole lines of the destination can be
 * streamed. tile: the rows have at least 16 bytes in a run, so that squares of registers serve. gather: they
 * have not; every line is picked unit by unit from source lines that stay in the first cache. (Virtual tiles:
 * XLA's and HPTT's blocks of two dims, taken further.) Layer 3. */
#include "plan/cpu_tile.h"

#include "base/num.h"
#include "plan/cost.h"

enum {
    RUN_BYTES = 16,         /* below it rows are gathered */
    COL_BYTES = 4096,       /* of the destination in a run: its two ends go through the cache */
    COL_ENTRIES = 2048,     /* of a list */
    LONG_COL_BYTES = 2048,  /* of a single long dim: 64 more are read */
    ROW_BYTES = 2048,       /* of the source in a run */
    ROW_ENTRIES = 256,      /* rows whose lines are open at a time: TILE_ROWS in stage.c.j2 */
    GATHER_COL_BYTES = 1024 /* with a line's worth of rows it stays in the first cache */
};

/* One side of a tile: dim[0] is the contiguous one. The last one may be taken in part. */
struct side {
    bool source;
    int n_dims, dim[XTI_MAX_DIMS];
    int64_t bytes, take; /* points taken of the last dim */
    int64_t units;
};

struct tile {
    struct xti_nest t;
    bool taken[XTI_MAX_DIMS];
    struct side col, row;
};

/* The dim with which the side's run goes on; -1: none. */
static int next_dim(const struct tile *x, const struct side *a)
{
    for (int i = 0; i < x->t.n_dims; i++) {
        int64_t st = a->source ? (int64_t)xti_abs64(x->t.dim[i].s) : x->t.dim[i].d;
        if (!x->taken[i] && st == a->bytes)
            return i;
    }
    return -1;
}

/* Takes dims until the run has `want` bytes; the last one whole when that is not much more. */
static void grow(struct tile *x, struct side *a, int64_t want, int64_t max_units)
{
    int i;
    while (a->bytes < want && (!a->n_dims || a->take == x->t.dim[a->dim[a->n_dims - 1]].n) &&
           (i = next_dim(x, a)) >= 0) {
        int64_t n = x->t.dim[i].n, room = max_units / a->units, fit = (want + a->bytes - 1) / a->bytes;
        fit = fit < room ? fit : room;
        int64_t take = n <= 2 * fit && n <= room ? n : fit;
        if (take < 2)
            return;
        a->take = take;
        a->dim[a->n_dims++] = i;
        x->taken[i] = true;
        if (a->source)
            xti_nest_turn(&x->t, i); /* rows run upwards */
        a->bytes *= a->take;
        a->units *= a->take;
    }
}

/* Goes on with the last dim, when it was taken in part. */
static void widen(struct tile *x, struct side *a, int64_t want, int64_t max_units)
{
    if (a->n_dims && a->take < x->t.dim[a->dim[a->n_dims - 1]].n && a->bytes < want) {
        int last = a->dim[--a->n_dims];
        x->taken[last] = false;
        a->bytes /= a->take;
        a->units /= a->take;
        a->take = a->n_dims ? x->t.dim[a->dim[a->n_dims - 1]].n : 0;
    }
    grow(x, a, want, max_units);
}

/* A single dim needs no list: rows may be as long as they like, columns are cut where lines are whole. */
static void make_long(struct tile *x, struct side *a, int64_t most)
{
    if (a->n_dims == 1) {
        int64_t n = x->t.dim[a->dim[0]].n;
        a->take = a->units = n <= 2 * most ? n : most;
        a->bytes = x->t.unit * a->take;
    }
}

/* Bytes of a run on either side, in the order in which they are worth having. */
static const struct {
    int col, row;
} want[] = {{64, 64}, {512, 256}, {COL_BYTES, ROW_BYTES}};

static void tile_of(const struct xti_map *m, int piece, struct tile *x)
{
    *x = (struct tile){.row.source = true};
    xti_nest_of(m, piece, &x->t);
    x->col.bytes = x->row.bytes = x->t.unit;
    x->col.units = x->row.units = 1;
    if (!x->t.unit)
        return;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        widen(x, &x->col, want[i].col, COL_ENTRIES);
        widen(x, &x->row, want[i].row, ROW_ENTRIES);
    }
    make_long(x, &x->col, LONG_COL_BYTES / x->t.unit);
    make_long(x, &x->row, INT32_MAX);
}

/* The columns' offsets are a list of 32 bits. */
static bool list_fits(const struct tile *x)
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

bool xti_tile_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    struct tile x;
    if (!has_unit(p, piece, why))
        return false;
    tile_of(&p->map, piece, &x);
    const struct xti_loop *cs = x.t.cs < 0 ? NULL : &x.t.dim[x.t.cs],
                          *cd = x.t.cd < 0 ? NULL : &x.t.dim[x.t.cd];
    if (p->target.isa == XTI_ISA_SCALAR)
        return xti_refuse(why, "made for vectors");
    if (x.col.bytes < XTI_LINE)
        return xti_refuse(why, "destination's dims make up %lld B < %d B", (long long)x.col.bytes, XTI_LINE);
    if (x.row.bytes < RUN_BYTES)
        return xti_refuse(why, "source's other dims make up %lld B < %d B", (long long)x.row.bytes,
                          RUN_BYTES);
    if (x.col.n_dims > 1 && !list_fits(&x))
        return xti_refuse(why, "columns lie too far apart for a list");
    bool stream = xti_cost_stream(&p->target, p->bytes_written);
    int64_t run = cd ? cd->n * x.t.unit : 0;
    /* Shorter runs that do not follow each other gain by the dims beside them. */
    bool long_run = run >= LONG_COL_BYTES || (cs && cs->d == run);
    bool long_rows = cs && (cs->n * x.t.unit >= XTI_LINE || x.row.n_dims == 1);
    if (long_rows && run >= XTI_LINE && (!stream || (cs->d % XTI_LINE == 0 && long_run)))
        return xti_refuse(why, stream ? "rows of the destination begin on lines" : "stays in the cache");
    return true;
}

/* Puts the dims of a side behind the loops as what a list replaces; one dim alone needs none. */
static void take_side(const struct tile *x, const struct side *a, struct xti_loop *kernel,
                      struct xti_loop *list, int *n_list)
{
    *n_list = a->n_dims > 1 ? a->n_dims : 0;
    *kernel = (struct xti_loop){.n = a->units, .cuts = XTI_CUTS_NONE};
    if (a->n_dims == 1) {
        kernel->s = x->t.dim[a->dim[0]].s;
        kernel->d = x->t.dim[a->dim[0]].d;
    }
    for (int i = 0; i < *n_list; i++) { /* outermost first */
        list[i] = x->t.dim[a->dim[*n_list - 1 - i]];
        list[i].n = i ? list[i].n : a->take;
    }
}

/* Loops over the dims that no side took, and over the parts of one that a side took in part. */
static void add_loops(const struct tile *x, struct xti_step *step)
{
    for (int i = 0; i < x->t.n_dims; i++)
        if (!x->taken[i])
            step->loop[step->n_loops++] = x->t.dim[i];
    for (int k = 0; k < 2; k++) {
        const struct side *a = k ? &x->row : &x->col;
        const struct xti_loop *last = a->n_dims ? &x->t.dim[a->dim[a->n_dims - 1]] : NULL;
        if (!last || a->take == last->n)
            continue;
        struct xti_loop *l = &step->loop[step->n_loops++];
        *l = *last;
        l->n = (last->n + a->take - 1) / a->take;
        l->whole = last->n;
        l->block = a->take;
        l->each = a->n_dims > 1 ? a->units / a->take : 0;
        l->cuts = k ? XTI_CUTS_ROW : XTI_CUTS_COL;
    }
}

static void make(const struct xti_plan *p, const struct tile *x, enum xti_cpu_op op, struct xti_step *step)
{
    struct xti_loop list[2 * XTI_MAX_DIMS];
    int rows, cols;
    step->kernel = op;
    step->unit = x->t.unit;
    step->s_byte = x->t.s_byte;
    step->d_byte = x->t.d_byte;
    step->stream = xti_cost_stream(&p->target, p->bytes_written);
    add_loops(x, step);
    xti_cost_order(step);
    take_side(x, &x->row, &step->row, list, &rows);
    take_side(x, &x->col, &step->col, list + rows, &cols);
    for (int i = 0; i < step->n_loops; i++) { /* without lists a block cuts what is whole */
        const struct xti_loop *l = &step->loop[i];
        if (l->cuts != XTI_CUTS_NONE && !l->each)
            *(l->cuts == XTI_CUTS_ROW ? &step->row.n : &step->col.n) = l->whole;
    }
    step->tile_rows = x->row.units;
    step->tile_cols = x->col.units;
    step->n_row_dims = rows;
    step->n_col_dims = cols;
    for (int i = 0; i < rows + cols; i++)
        step->loop[step->n_loops + i] = list[i];
}

void xti_tile_make(const struct xti_plan *p, int piece, struct xti_step *step)
{
    struct tile x;
    tile_of(&p->map, piece, &x);
    make(p, &x, XTI_CPU_TILE, step);
}

/* ---- gather */

/* Columns as in a tile but fewer; rows: any dims that complete the lines of the source. */
static void gather_of(const struct xti_map *m, int piece, struct tile *x)
{
    *x = (struct tile){.row.source = true};
    xti_nest_of(m, piece, &x->t);
    x->col.bytes = x->row.bytes = x->t.unit;
    x->col.units = x->row.units = 1;
    if (!x->t.unit)
        return;
    widen(x, &x->col, GATHER_COL_BYTES, COL_ENTRIES);
    for (int i = 0; i < x->t.n_dims; i++) {
        int64_t st = (int64_t)xti_abs64(x->t.dim[i].s), n = x->t.dim[i].n;
        if (x->taken[i] || !st || st >= XTI_LINE || x->row.units * n > ROW_ENTRIES)
            continue;
        x->taken[i] = true;
        x->row.dim[x->row.n_dims++] = i;
        x->row.take = n;
        x->row.units *= n;
    }
}

bool xti_gather_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    struct tile x;
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
    struct tile x;
    gather_of(&p->map, piece, &x);
    make(p, &x, XTI_CPU_GATHER, step);
    if (!step->n_col_dims) { /* gathers know no strides */
        step->loop[step->n_loops + step->n_row_dims] = x.t.dim[x.col.dim[0]];
        step->loop[step->n_loops + step->n_row_dims].n = x.col.take;
        step->n_col_dims = 1;
    }
}
