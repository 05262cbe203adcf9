/* cpu_tile.c: strategy tile, for pieces whose inner dims are small, or whose destination rows begin anywhere
 * in a line: virtual tiles (sides.h). The columns come first, because only whole lines of the destination can
 * be streamed; the rows have at least 16 bytes in a run, so that squares of registers serve. Layer 3. */
#include "base/num.h"
#include "plan/cpu_strategies.h"
#include "plan/sides.h"

enum {
    RUN_BYTES = 16,        /* below it rows are gathered */
    COL_ENTRIES = 2048,    /* of a list */
    LONG_COL_BYTES = 2048, /* of a single long dim: 64 more are read */
    ROW_ENTRIES = 1024,    /* of a list; TILE_ROWS in stage.c.j2 are in work at a time */
    WIDE_UNIT = 8,         /* wider and equal ones want tiles, whose columns are fetched one by one */
    NARROW_UNIT = 2,       /* narrower and equal ones .. */
    NARROW_RUN = 256,      /* .. gain by dims beside shorter runs */
    FOLLOW_BYTES = 8192    /* of columns that follow each other: a transpose reads them from end to end */
};

/* A single dim needs no list: rows are cut where the second cache is full, columns where lines are whole. */
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
static void tile_of(const struct xti_plan *p, const struct xti_nest *t, struct xti_sides *x)
{
    static const int want[] = {64, 512, 1024};
    xti_sides_begin(t, x);
    x->even = true;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        xti_side_widen(x, &x->col, want[i], COL_ENTRIES);
        xti_side_widen(x, &x->row, want[i], ROW_ENTRIES);
    }
    make_long(x, &x->col, LONG_COL_BYTES / t->unit);
    make_long(x, &x->row, xti_cost_panel_rows(&p->target));
}

static bool streams(const struct xti_plan *p, const struct xti_sides *x)
{
    return xti_cost_streams_rows(p, x->t.unit, x->row.bytes, x->col.bytes, xti_sides_ragged(x));
}

/* Whether rows and columns as long as these are rather transposed. */
static bool transposed(const struct xti_plan *p, const struct xti_sides *x, struct xti_why *why)
{
    const struct xti_nest *t = &x->t;
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    if (!cs || !cd)
        return false;
    bool stream = streams(p, x);
    bool narrow = stream && p->target.isa == XTI_ISA_AVX512 && t->unit <= NARROW_UNIT;
    int64_t run = cd->n * t->unit, from = cs->n * t->unit;
    bool long_rows = from >= (narrow ? NARROW_RUN : XTI_LINE) || x->row.n_dims == 1;
    bool follow = xti_abs64(cd->s) == (uint64_t)from && from <= FOLLOW_BYTES;
    if (!long_rows || run < XTI_LINE || (stream && t->unit >= WIDE_UNIT && !follow))
        return false;
    /* Shorter runs that do not follow each other gain by the dims beside them. */
    bool long_run = run >= LONG_COL_BYTES || cs->d == run;
    bool lines = (t->d_byte | xti_nest_bits(t, t->cd)) % XTI_LINE == 0;
    return (!stream || (lines && long_run)) &&
           !xti_refuse(why, stream ? "rows of the destination begin on lines" : "goes through the cache");
}

int64_t xti_tile_row_bytes(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    struct xti_sides x;
    if (!xti_nest_copies_units(t, why))
        return 0;
    if (p->target.isa == XTI_ISA_SCALAR)
        return xti_refuse(why, "made for vectors");
    tile_of(p, t, &x);
    if (x.col.bytes < XTI_LINE)
        return xti_refuse(why, "destination's dims make up %lld B < %d B", (long long)x.col.bytes, XTI_LINE);
    if (x.row.bytes < RUN_BYTES)
        return xti_refuse(why, "source's dims make up %lld B < %d B", (long long)x.row.bytes, RUN_BYTES);
    if (xti_gather_few(p, t, x.row.bytes))
        return xti_refuse(why, "source's runs of %lld B are gathered", (long long)x.row.bytes);
    if (x.col.n_dims > 1 && !xti_sides_list_fits(&x))
        return xti_refuse(why, "columns lie too far apart for a list");
    return transposed(p, &x, why) ? 0 : x.row.bytes;
}

bool xti_tile_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    return xti_tile_row_bytes(p, t, why) > 0;
}

void xti_tile_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    struct xti_sides x;
    tile_of(p, t, &x);
    xti_sides_make(p, &x, XTI_CPU_TILE, step);
    step->store.stream = streams(p, &x);
}
