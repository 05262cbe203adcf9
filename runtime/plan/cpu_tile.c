/* cpu_tile.c: strategy tile, for pieces whose inner dims are small, or whose destination rows begin anywhere
 * in a line: virtual tiles (sides.h). The columns come first, because only whole lines of the destination can
 * be streamed; the rows have at least 16 bytes in a run, so that squares of registers serve. Layer 3. */
#include "plan/cpu_tile.h"

#include "base/num.h"
#include "plan/sides.h"

enum {
    RUN_BYTES = 16,        /* below it rows are gathered */
    COL_BYTES = 1024,      /* of the destination in a run: its two ends go through the cache */
    COL_ENTRIES = 2048,    /* of a list */
    LONG_COL_BYTES = 2048, /* of a single long dim: 64 more are read */
    ROW_BYTES = 1024,      /* of the source in a run */
    ROW_ENTRIES = 1024,    /* of a list; TILE_ROWS in stage.c.j2 are in work at a time */
    WIDE_UNIT = 8,         /* wider and equal ones want tiles: see wide_columns_apart */
    FED_UNIT = 2,          /* narrower and equal ones are streamed as in fed.c.j2 .. */
    FED_RUN = 256          /* .. which a dim of shorter runs gains by */
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
 * the second cache. */
enum { WANTED = 3 };
static const struct wanted {
    int col, row;
} want[WANTED] = {{64, 64}, {512, 512}, {COL_BYTES, ROW_BYTES}};

static void widen(struct xti_sides *x)
{
    x->even = true;
    for (int i = 0; i < WANTED; i++) {
        xti_side_widen(x, &x->col, want[i].col, COL_ENTRIES);
        xti_side_widen(x, &x->row, want[i].row, ROW_ENTRIES);
    }
}

/* Bytes of a single long dim of rows. Where prefetches reach deep those for the next columns must still be
 * there when they are read. */
static int64_t long_row_bytes(const struct xti_plan *p, int unit)
{
    enum { NARROW = 1024, WIDE = 4096 };
    if (!p->target.machine->habits.prefetch_deep)
        return INT32_MAX;
    return unit <= FED_UNIT ? NARROW : WIDE;
}

static void tile_of(const struct xti_plan *p, const struct xti_nest *t, struct xti_sides *x)
{
    xti_sides_begin(t, x);
    if (!x->t.unit)
        return;
    widen(x);
    make_long(x, &x->col, LONG_COL_BYTES / x->t.unit);
    make_long(x, &x->row, long_row_bytes(p, x->t.unit) / x->t.unit);
}

/* Rows and columns are one block of the source, which a transpose reads from end to end. */
static bool columns_follow(const struct xti_nest *n)
{
    int64_t run = n->dim[n->cs].n * n->unit;
    return xti_abs64(n->dim[n->cd].s) == (uint64_t)run && run <= XTI_DEEP_ROW_BYTES;
}

/* All rows of the destination begin on lines, not only those of one block. */
static bool rows_on_lines(const struct xti_nest *n)
{
    return (n->d_byte | xti_nest_bits(n, n->cd)) % XTI_LINE == 0;
}

/* Such blocks are better transposed, but for long columns of bytes and rows that begin anywhere in a line. */
static bool follow_in_lines(const struct xti_nest *n)
{
    enum { SHORT = 96, SOME_LINES = 4 };
    const struct xti_loop *cs = xti_nest_cs(n), *cd = xti_nest_cd(n);
    int64_t run = cd->n * n->unit;
    bool whole = run % XTI_LINE == 0, narrow = cs->n * n->unit <= SHORT;
    return columns_follow(n) && cs->d % XTI_LINE == 0 && run >= (whole ? 1 : SOME_LINES) * XTI_LINE &&
           (narrow || (whole && n->unit > 1));
}

/* Where prefetches reach deep, tiles fetch columns that lie apart one by one. */
static bool wide_columns_apart(const struct xti_nest *n)
{
    return n->unit >= WIDE_UNIT && !columns_follow(n);
}

/* Whether rows and columns as long as these are rather transposed. */
static bool transposed(const struct xti_plan *p, const struct xti_sides *x, struct xti_why *why)
{
    const struct xti_nest *t = &x->t;
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    if (!cs || !cd)
        return false;
    bool stream = xti_cost_stream(p), deep = stream && p->target.machine->habits.prefetch_deep;
    if (deep && follow_in_lines(t))
        return !xti_refuse(why, "columns follow each other in the source");
    /* Shorter runs that do not follow each other gain by the dims beside them. */
    int64_t run = cd->n * t->unit;
    bool long_run = run >= LONG_COL_BYTES || cs->d == run;
    bool fed = stream && p->target.isa == XTI_ISA_AVX512 && t->unit <= FED_UNIT;
    int64_t enough = fed ? FED_RUN : XTI_LINE;
    bool long_rows = cs->n * t->unit >= enough || x->row.n_dims == 1;
    if (!long_rows || run < XTI_LINE || (deep && wide_columns_apart(t)))
        return false;
    if (!stream)
        return !xti_refuse(why, "stays in the cache");
    return rows_on_lines(t) && long_run && !xti_refuse(why, "rows of the destination begin on lines");
}

/* Wide units of one row, some of each line, are walked: a tile would read each line for one of them. */
static bool strided(const struct xti_plan *p, const struct xti_sides *x)
{
    const struct xti_loop *cd = &x->t.dim[x->col.dim[0]];
    return p->target.machine->habits.prefetch_deep && cd->n * x->t.unit >= XTI_LINE && cd->s > 0 &&
           cd->s <= 8 * x->t.unit;
}

bool xti_tile_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    struct xti_sides x;
    if (!xti_nest_copies_units(t, why))
        return false;
    tile_of(p, t, &x);
    if (p->target.isa == XTI_ISA_SCALAR)
        return xti_refuse(why, "made for vectors");
    if (x.col.bytes < XTI_LINE)
        return xti_refuse(why, "destination's dims make up %lld B < %d B", (long long)x.col.bytes, XTI_LINE);
    if (x.row.bytes < RUN_BYTES)
        return xti_refuse(why, "source's other dims make up %lld B < %d B", (long long)x.row.bytes,
                          RUN_BYTES);
    if (xti_gather_few(p, t, x.row.bytes))
        return xti_refuse(why, "source's runs of %lld B are gathered", (long long)x.row.bytes);
    if (x.col.n_dims > 1 && !xti_sides_list_fits(&x))
        return xti_refuse(why, "columns lie too far apart for a list");
    if (!x.row.n_dims && strided(p, &x))
        return xti_refuse(why, "one dim of stride %lld B makes up a line",
                          (long long)x.t.dim[x.col.dim[0]].s);
    return !transposed(p, &x, why);
}

void xti_tile_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    struct xti_sides x;
    tile_of(p, t, &x);
    xti_sides_make(p, &x, XTI_CPU_TILE, step);
}

int64_t xti_tile_row_bytes(const struct xti_plan *p, const struct xti_nest *t)
{
    struct xti_sides x;
    if (!xti_tile_applies(p, t, NULL))
        return 0;
    tile_of(p, t, &x);
    return x.row.bytes;
}
