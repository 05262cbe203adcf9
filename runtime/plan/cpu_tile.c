/* cpu_tile.c: strategies for pieces whose inner dims are small, or whose destination rows begin anywhere in a
 * line: virtual tiles (sides.h). The columns come first, because only whole lines of the destination can be
 * streamed. tile: the rows have at least 16 bytes in a run, so that squares of registers serve. mosaic: lines
 * have all their units in few windows of the source; rows need no run, but make long ones together with the
 * columns. gather: every line is picked unit by unit from source lines that stay in the first cache. Layer 3.
 */
#include "plan/cpu_tile.h"

#include "base/num.h"
#include "plan/mosaic.h"
#include "plan/sides.h"

enum {
    RUN_BYTES = 16,         /* below it rows are gathered */
    COL_BYTES = 1024,       /* of the destination in a run: its two ends go through the cache */
    COL_ENTRIES = 2048,     /* of a list */
    LONG_COL_BYTES = 2048,  /* of a single long dim: 64 more are read */
    ROW_BYTES = 1024,       /* of the source in a run */
    ROW_ENTRIES = 1024,     /* of a list; TILE_ROWS in stage.c.j2 are in work at a time */
    WIDE_UNIT = 8,          /* wider and equal ones want tiles: see wide_columns_apart */
    COLLECT_BYTES = 1024,   /* of rows that are put together in a buffer, at most */
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
 * 0.67, of u8 0.49 and 0.48. (Emerald Rapids, 2026-11) Rows that are put together in a buffer follow each
 * other in the first cache. */
enum { WANTED = 3 };
static const struct wanted {
    int col, row;
} want[WANTED] = {{64, 64}, {512, 512}, {COL_BYTES, ROW_BYTES}},
  want_collected[WANTED] = {{64, 64}, {256, 128}, {COLLECT_BYTES / 2, 256}};

static void widen(struct xti_sides *x, const struct wanted *w)
{
    x->even = true;
    for (int i = 0; i < WANTED; i++) {
        xti_side_widen(x, &x->col, w[i].col, COL_ENTRIES);
        xti_side_widen(x, &x->row, w[i].row, ROW_ENTRIES);
    }
}

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
    widen(x, want);
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

/* All rows of the destination begin on lines, not only those of one block: f16 1875 x 64 x 500 reversed does
 * 0.63 of a copy, transposed 0.49, f32 1001 x 48 x 600 0.85 and 0.57 (Zen 5, 2026-11). */
static bool rows_on_lines(const struct xti_nest *n)
{
    int64_t bits = n->d_byte;
    for (int i = 0; i < n->n_dims; i++)
        bits |= i == n->cd ? 0 : n->dim[i].d;
    return bits % XTI_LINE == 0;
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

/* Where prefetches reach deep, tiles fetch columns that lie apart one by one. As tiles 18 of 24 streamed
 * transposes of f64 do 1.05 to 1.4 times as much (352 x 28 x 28 x 4 x 48 reversed 0.77 of a copy, transposed
 * 0.55), 20 of 26 of c128 up to 1.45 times, none less than 0.93; those of f32 as often less as more. In the
 * third cache transposes that leave in fours do more: c128 512 x 1024 0.59 of a copy, as a tile 0.49. (Zen 5,
 * 2026-11) */
static bool wide_columns_apart(const struct xti_nest *n)
{
    return n->unit >= WIDE_UNIT && !columns_follow(n);
}

/* Columns of 7 to 31 whole lines that lie near each other but apart do more as tiles whose lines leave
 * together (xti_cost_together): f32 15 x 15 x 15 x 112 x 5 x 32 permuted 2, 0, 4, 1, 5, 3 0.93 to 1.03 of a
 * copy, transposed 0.84 to 0.88, 28 x 28 x 352 x 4 x 48 permuted 1, 3, 0, 4, 2 1.04 times as much, the two
 * exchanged without others 0.97 to 1.05 times. (Zen 5, 2026-11) */
static bool near_columns_apart(const struct xti_nest *n)
{
    enum { UNIT = 4, LEAST = 7 * XTI_LINE, NEAR = 4096 };
    const struct xti_loop *cs = &n->dim[n->cs], *cd = &n->dim[n->cd];
    int64_t run = cd->n * n->unit, row = cs->n * n->unit;
    bool near = xti_abs64(cd->s) < NEAR && !columns_follow(n);
    return n->unit == UNIT && near && (run | row) % XTI_LINE == 0 && run >= LEAST && run < LONG_COL_BYTES;
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
    const struct xti_step step = {.stream = stream, .row = *cs};
    bool fours = xti_cost_runs(&p->target, &step, p->bytes_written), avx512 = p->target.isa == XTI_ISA_AVX512;
    bool apart = wide_columns_apart(t) || (avx512 && near_columns_apart(t));
    if (!long_rows || run < XTI_LINE || (deep && !fours && apart))
        return false;
    if (!stream)
        return !xti_refuse(why, "stays in the cache");
    return rows_on_lines(t) && long_run && !xti_refuse(why, "rows of the destination begin on lines");
}

/* Wide units of one row, some of each line: c128 x[:, ::2] does 3.6 times as much when they are walked as in
 * tiles. (Zen 5, 2026-11) */
static bool strided(const struct xti_plan *p, const struct xti_sides *x)
{
    const struct xti_loop *cd = &x->t.dim[x->col.dim[0]];
    return p->target.prefetch_deep && cd->n * x->t.unit >= XTI_LINE && cd->s > 0 && cd->s <= 8 * x->t.unit;
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
    if (!x.row.n_dims && strided(p, &x))
        return xti_refuse(why, "one dim of stride %lld B makes up a line",
                          (long long)x.t.dim[x.col.dim[0]].s);
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

static bool has_dim(const struct xti_side *a, int dim)
{
    for (int i = 0; i < a->n_dims; i++)
        if (a->dim[i] == dim)
            return true;
    return false;
}

/* Some rows of the destination begin inside a line. */
static bool ragged(const struct xti_sides *x)
{
    int64_t bits = x->col.bytes;
    for (int i = 0; i < x->t.n_dims; i++) {
        bool inside = has_dim(&x->col, i) && x->t.dim[i].n * x->t.dim[i].d <= x->col.bytes;
        bits |= inside ? 0 : x->t.dim[i].d;
    }
    return bits % XTI_LINE;
}

/* Another tile, for bytes whose rows are short and begin anywhere in a line: the six of ttc57 do 1.04 to 1.5
 * times as much, u8 60 x 15 x 32 x 15 x 5 x 112 to 15 x 5 x 60 x 112 x 15 x 32 0.61 of a copy, before 0.43.
 * Rows of 1680 bytes do 0.8, two-byte units 0.75, and those that begin on lines gain nothing. Stages of all
 * rows in work instead: 0.46. (Zen 5, 2026-11) */
static bool collected_of(const struct xti_plan *p, int piece, struct xti_sides *x)
{
    struct xti_sides tile = *x;
    if (!p->target.prefetch_deep || p->target.isa != XTI_ISA_AVX512 || !xti_cost_lies_alone(p, piece) ||
        x->t.unit > 1 || !xti_cost_stream(&p->target, p->bytes_written) || !ragged(x) ||
        x->col.bytes > COLLECT_BYTES)
        return false;
    xti_sides_begin(&p->map, piece, x);
    x->lists = true;
    widen(x, want_collected);
    if (x->col.bytes <= COLLECT_BYTES && list_fits(x))
        return true;
    *x = tile;
    return false;
}

void xti_tile_make(const struct xti_plan *p, int piece, struct xti_step *step)
{
    struct xti_sides x;
    tile_of(p, piece, &x);
    step->collect = collected_of(p, piece, &x);
    make(p, &x, XTI_CPU_TILE, step);
}

/* ---- mosaic */

/* Rows: whatever dims have the shortest steps in the source, the last one in parts when it is long. */
static void widen_rows(struct xti_sides *x, int64_t wanted, int64_t most)
{
    struct xti_side *a = &x->row;
    while (a->bytes < wanted && (!a->n_dims || a->take == x->t.dim[a->dim[a->n_dims - 1]].n)) {
        int next = -1;
        for (int i = 0; i < x->t.n_dims; i++) {
            uint64_t st = xti_abs64(x->t.dim[i].s);
            if (!x->taken[i] && st && (next < 0 || st < xti_abs64(x->t.dim[next].s)))
                next = i;
        }
        int64_t room = most / a->units;
        if (next < 0 || room < 2 || xti_abs64(x->t.dim[next].s) >= (uint64_t)wanted)
            return;
        if (x->t.dim[next].s < 0)
            xti_nest_flip(&x->t, next);
        x->taken[next] = true;
        a->dim[a->n_dims++] = next;
        a->take = x->t.dim[next].n < room ? x->t.dim[next].n : room;
        a->units *= a->take;
        a->bytes = x->t.dim[next].s * a->take;
    }
}

/* Makes a run that is no unit one more dim, of as wide units as it consists of. */
static void split_run(struct xti_sides *x)
{
    struct xti_nest *t = &x->t;
    if (t->unit || t->n_dims == XTI_MAX_DIMS)
        return;
    for (t->unit = t->esize; t->unit < XTI_LANE && t->run % (2 * t->unit) == 0;)
        t->unit *= 2;
    t->dim[t->n_dims++] =
        (struct xti_loop){.n = t->run / t->unit, .s = t->unit, .d = t->unit, .cuts = XTI_CUTS_NONE};
    xti_sides_unit(x, t->unit);
}

/* Takes a part of the last dim of the columns that it consists of. */
static void take_even(struct xti_sides *x)
{
    struct xti_side *a = &x->col;
    int64_t n = a->n_dims ? x->t.dim[a->dim[a->n_dims - 1]].n : 1, take = a->take;
    if (!a->n_dims)
        return;
    while (n % take)
        take--;
    int64_t whole = a->bytes / a->take * n;
    if (a->bytes / a->take * take < a->bytes / 2 && whole <= XTI_MOSAIC_COL_BYTES)
        take = n;
    a->bytes = a->bytes / a->take * take;
    a->units = a->units / a->take * take;
    a->take = take;
}

/* Long runs of the source are worth most: f32 2^26, one order of the axes, does 1.05 of a copy in runs of
 * 4096 bytes, 0.97 of 2048, 0.71 of 512. (Zen 5, 2026-11) */
static void mosaic_of(const struct xti_plan *p, int piece, struct xti_sides *x)
{
    enum { CALL_BYTES = 2048 }; /* in a block */
    static const struct {
        int col, row;
    } wanted[] = {{64, 64}, {128, 1024}, {256, 2048}, {512, 4096}, {1024, 4096}};
    xti_sides_begin(&p->map, piece, x);
    if (p->windows)
        split_run(x);
    if (!x->t.unit)
        return;
    x->lists = true;
    int64_t most = (p->windows ? CALL_BYTES : XTI_MOSAIC_TILE_BYTES) / x->t.unit;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        xti_side_widen(x, &x->col, wanted[i].col, most / x->row.units);
        widen_rows(x, wanted[i].row, most / x->col.units);
    }
    if (p->windows)
        take_even(x);
}

/* Rows that share windows: those of dims that stay inside of a line, at most one for each of its bytes. (More
 * lie in a line where windows of the source overlap.) */
static int together(const struct xti_sides *x)
{
    int64_t span = x->t.unit, n = 1;
    for (int i = 0; i < x->row.n_dims; i++) {
        const struct xti_loop *l = &x->t.dim[x->row.dim[i]];
        span += (l->n - 1) * l->s;
        if (span > XTI_LINE || n * l->n > XTI_LINE || (i + 1 == x->row.n_dims && x->row.take < l->n))
            break;
        n *= l->n;
    }
    return (int)n;
}

/* Rows and tiles of the destination are whole lines, and columns are all alike. */
static bool whole_lines(const struct xti_sides *x)
{
    const struct xti_loop *last = &x->t.dim[x->col.dim[x->col.n_dims - 1]];
    int64_t all = x->col.bytes;
    for (int i = 0; i < x->t.n_dims; i++)
        all |= has_dim(&x->col, i) ? 0 : x->t.dim[i].d;
    return all % XTI_LINE == 0 && last->n % x->col.take == 0;
}

/* Places in the source of so many of a side's units, at least; the contiguous ones follow each other. */
static int64_t list_places(const struct xti_sides *x, const struct xti_side *a, int64_t enough, int32_t *at)
{
    int64_t n = 1;
    at[0] = 0;
    for (int i = 0; i < a->n_dims && n < enough; i++) {
        const struct xti_loop *l = &x->t.dim[a->dim[i]];
        int64_t before = n, end = n * (i + 1 < a->n_dims ? l->n : a->take);
        for (; n < end; n++)
            at[n] = (int32_t)(at[n - before] + l->s);
    }
    return n;
}

/* Between the units of the source a page may lie, which is not to be read. */
static bool has_gaps(const struct xti_nest *t)
{
    enum { PAGE_BYTES = 4096 };
    bool seen[XTI_MAX_DIMS] = {false};
    uint64_t reach = (uint64_t)t->unit; /* of the dims seen, which leave no such gap */
    int n = 0;
    for (int i = 0; i < t->n_dims;) {
        uint64_t st = xti_abs64(t->dim[i].s);
        if (seen[i] || st >= reach + PAGE_BYTES) {
            i++;
            continue;
        }
        seen[i] = true;
        reach += (uint64_t)(t->dim[i].n - 1) * st;
        n++;
        i = 0;
    }
    return n < t->n_dims;
}

/* Its table, of 40 KB, is on the stack of large copies alone. */
static __attribute__((noinline)) bool few_windows(const struct xti_sides *x, int most)
{
    struct xti_mosaic m;
    int32_t col_at[XTI_MOSAIC_COL_BYTES], at[XTI_MOSAIC_ROWS];
    struct xti_offset row_at[XTI_LINE];
    struct xti_mosaic_of of = {
        .row_at = row_at, .col_at = col_at, .unit = x->t.unit, .rows = together(x), .group = together(x)};
    of.gaps = has_gaps(&x->t);
    of.cols = list_places(x, &x->col, x->col.units, col_at);
    list_places(x, &x->row, of.rows, at);
    for (int64_t r = 0; r < of.rows; r++)
        row_at[r] = (struct xti_offset){at[r], 0};
    return xti_mosaic_table(&of, most, &m);
}

/* How many windows a line may have and still be faster than what comes next: than a tile whose rows are short
 * (c128 of 24 axes, 4 windows, rows of 128 bytes: 2.5 times as fast; f64 of 25, 8 windows: 0.9, rows of
 * 64: 1.2), or than a gather (u8 of 28, 16 windows: 2 to 2.6 times). (Zen 5, 2026-11) */
static int windows_worth(const struct xti_plan *p, int piece)
{
    enum { SHORT = 2 * XTI_LINE, LONG = 4 * XTI_LINE };
    struct xti_sides t;
    if (!xti_tile_applies(p, piece, NULL))
        return 16;
    tile_of(p, piece, &t);
    return t.row.bytes < SHORT ? 8 : t.row.bytes < LONG ? 4 : 0;
}

/* A block is not streamed: its rows begin anywhere. */
static bool serves_block(const struct xti_plan *p, int piece)
{
    struct xti_sides x;
    mosaic_of(p, piece, &x);
    return x.t.unit && x.col.bytes > XTI_LINE / 2 && x.col.bytes <= XTI_MOSAIC_COL_BYTES && list_fits(&x) &&
           few_windows(&x, p->windows);
}

bool xti_mosaic_applies(const struct xti_plan *p, int piece, struct xti_why *why)
{
    struct xti_sides x;
    if (p->windows)
        return serves_block(p, piece) || xti_refuse(why, "lines lie in many windows");
    if (!xti_cost_windows(&p->target, p->bytes_written))
        return xti_refuse(why, "stays in the cache, or gathers serve");
    if (!has_unit(p, piece, why))
        return false;
    mosaic_of(p, piece, &x);
    if (x.col.bytes < XTI_LINE || x.col.bytes > XTI_MOSAIC_COL_BYTES)
        return xti_refuse(why, "destination's dims make up %lld B", (long long)x.col.bytes);
    const struct xti_loop *cd = &x.t.dim[x.col.dim[0]];
    if (cd->n * x.t.unit >= XTI_LINE) /* squares of registers, or every line from many of the source */
        return xti_refuse(why, "one dim of %lld B makes up a line", (long long)(cd->n * x.t.unit));
    if (!list_fits(&x) || !whole_lines(&x))
        return xti_refuse(why, "rows of the destination are no whole lines");
    int most = windows_worth(p, piece);
    if (!most)
        return xti_refuse(why, "tiles of long rows serve");
    if (!few_windows(&x, most))
        return xti_refuse(why, "lines lie in more than %d windows", most);
    return true;
}

void xti_mosaic_make(const struct xti_plan *p, int piece, struct xti_step *step)
{
    struct xti_sides x;
    mosaic_of(p, piece, &x);
    make(p, &x, XTI_CPU_MOSAIC, step);
    step->together = together(&x);
    step->gaps = has_gaps(&x.t);
}

/* ---- gather */

/* The kernel asks for the next step's lines: of 4 bytes 128 columns, not 256, before it reads them.
 * (Diagonals of 64 x 64 f32 3.9 -> 4.4 of a copy, of 128 x 128 7.7 -> 9.1; of f64 128 are best too, of
 * narrower units as many as there are. Zen 5, 2026-11) */
static int64_t gather_bytes(const struct xti_plan *p, int unit)
{
    return p->target.prefetch_deep && unit == 4 ? GATHER_COL_BYTES / 2 : GATHER_COL_BYTES;
}

/* Columns as in a tile but fewer; rows: any dims that complete the lines of the source. */
static void gather_of(const struct xti_plan *p, int piece, struct xti_sides *x)
{
    xti_sides_begin(&p->map, piece, x);
    if (!x->t.unit)
        return;
    xti_side_widen(x, &x->col, gather_bytes(p, x->t.unit), COL_ENTRIES);
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
    gather_of(p, piece, &x);
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
    gather_of(p, piece, &x);
    make(p, &x, XTI_CPU_GATHER, step);
    if (!step->n_col_dims) { /* gathers know no strides */
        step->loop[step->n_loops + step->n_row_dims] = x.t.dim[x.col.dim[0]];
        step->loop[step->n_loops + step->n_row_dims].n = x.col.take;
        step->n_col_dims = 1;
    }
}
