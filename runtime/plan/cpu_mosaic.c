/* cpu_mosaic.c: strategy mosaic, for pieces whose inner dims are small: lines have all their units in few
 * windows of the source (mosaic.h). Virtual tiles (sides.h) whose rows need no run, but make long ones
 * together with the columns. Layer 3. */
#include "base/num.h"
#include "plan/cpu_strategies.h"
#include "plan/mosaic.h"
#include "plan/sides.h"

enum { LANE_WINDOWS = 5 }; /* of 16 bytes, for as many units of one */

/* A gather instruction may cost several times what loading and permuting a few windows takes, which reading
 * hides; units of one and two bytes have none. */
bool xti_mosaic_serves(const struct xti_plan *p, int64_t unit)
{
    int gathers = p->target.machine->habits.gathers;
    return p->target.isa == XTI_ISA_AVX512 && (!gathers || unit < gathers);
}

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
        if (next < 0 || xti_abs64(x->t.dim[next].s) >= (uint64_t)wanted || room < 2)
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

/* Takes a part of the last dim of the columns that it consists of. */
static void take_even(struct xti_sides *x, int64_t most)
{
    struct xti_side *a = &x->col;
    int64_t n = a->n_dims ? x->t.dim[a->dim[a->n_dims - 1]].n : 1, take = a->take;
    if (!a->n_dims)
        return;
    while (n % take) /* the next smaller part is one of more */
        take = n / (n / take + 1);
    int64_t whole = a->bytes / a->take * n;
    if (a->bytes / a->take * take < a->bytes / 2 && whole <= most)
        take = n;
    a->bytes = a->bytes / a->take * take;
    a->units = a->units / a->take * take;
    a->take = take;
}

/* Long runs of the source are worth most. */
static void mosaic_of(const struct xti_plan *p, const struct xti_nest *t, struct xti_sides *x)
{
    enum { CALL_BYTES = 2048 }; /* in a block */
    static const struct {
        int col, row;
    } wanted[] = {{64, 64}, {128, 1024}, {256, 2048}, {512, 4096}, {1024, 4096}};
    xti_sides_begin(t, x);
    if (p->most_windows)
        xti_sides_split_run(x, XTI_LANE);
    if (!x->t.unit)
        return;
    x->lists = true;
    int64_t most = (p->most_windows ? CALL_BYTES : XTI_MOSAIC_TILE_BYTES) / x->t.unit;
    int64_t col = xti_mosaic_col_bytes(p->target.isa);
    bool lanes = xti_mosaic_width(p->target.isa) == XTI_LANE;
    for (size_t i = lanes ? 4 : 0; i < sizeof wanted / sizeof *wanted; i++) {
        xti_side_widen(x, &x->col, wanted[i].col < col / 2 ? wanted[i].col : col / 2, most / x->row.units);
        widen_rows(x, lanes ? XTI_LINE : wanted[i].row, most / x->col.units);
    }
    if (!xti_cost_stream(p)) /* nor are blocks streamed */
        take_even(x, col);
}

/* Between the units of the source a page may lie, which is not to be read. */
static bool has_gaps(const struct xti_nest *t)
{
    enum { PAGE_BYTES = 4096 };
    bool seen[XTI_MAX_DIMS] = {false};
    uint64_t reach = (uint64_t)t->unit; /* of the dims seen, which leave no such gap */
    int n = 0;
    for (int before = -1; before < n;) {
        before = n;
        for (int i = 0; i < t->n_dims; i++) {
            uint64_t st = xti_abs64(t->dim[i].s);
            if (seen[i] || st >= reach + PAGE_BYTES)
                continue;
            seen[i] = true;
            reach += (uint64_t)(t->dim[i].n - 1) * st;
            n++;
        }
    }
    return n < t->n_dims;
}

/* Rows that share windows: those of dims that stay inside of a line, at most one for each of its bytes. (More
 * lie in a line where windows of the source overlap.) */
static struct xti_mosaic_of rows_of(const struct xti_sides *x, enum xti_isa isa)
{
    struct xti_mosaic_of of = {
        .width = xti_mosaic_width(isa), .unit = x->t.unit, .group = 1, .gaps = has_gaps(&x->t)};
    for (int i = 0; i < x->row.n_dims && of.width == XTI_LINE; i++) {
        const struct xti_loop *l = &x->t.dim[x->row.dim[i]];
        int64_t last = of.last + (l->n - 1) * l->s, n = of.group * l->n;
        if (last + of.unit > XTI_LINE || n > XTI_LINE || (i + 1 == x->row.n_dims && x->row.take < l->n))
            break;
        of.group = (int)n;
        of.last = last;
        of.bits |= l->s;
    }
    return of;
}

/* Lists columns, of the first lines: those behind are like these, where a part of a dim makes up whole ones.
 */
static void add_cols(const struct xti_sides *x, struct xti_mosaic_of *of, int32_t *at)
{
    int64_t n = 1, enough = 0;
    at[0] = 0;
    for (int i = 0; i < x->col.n_dims; i++) {
        const struct xti_loop *l = &x->t.dim[x->col.dim[i]];
        bool outer = i + 1 == x->col.n_dims;
        int64_t all = outer ? x->col.take : l->n, part = xti_period(of->width / of->unit, n), before = n;
        xti_mosaic_add(of, all, l->s);
        if (!enough && !of->gaps && part <= all && (outer || all % part == 0))
            enough = n * part;
        n = enough ? enough : n * all;
        xti_sides_repeat(at, before, n, l->s);
    }
    xti_mosaic_add(of, (of->unit + 7) / 8, 8);
    of->cols = n;
    of->col_at = at;
}

/* Its list, of 8 KB, is on the stack of large copies alone. Those of 16 bytes are as many in the mean as take
 * less time than their units. */
static __attribute__((noinline)) int windows(const struct xti_plan *p, const struct xti_sides *x, int most)
{
    int32_t col_at[XTI_MOSAIC_COL_BYTES + XTI_REPEAT];
    struct xti_mosaic_of of = rows_of(x, p->target.isa);
    of.most = of.width == XTI_LINE ? most : XTI_MOSAIC_WINDOWS;
    add_cols(x, &of, col_at);
    return xti_mosaic_windows(&of, most);
}

/* Whether without windows units are picked one by one. */
static bool picked(const struct xti_plan *p, const struct xti_nest *t)
{
    const struct xti_strategy *s = xti_strategy_next(p, xti_strategy_made_by(p, xti_mosaic_make) + 1, t);
    return s->make == xti_gather_make || s->make == xti_general_make ||
           (s->make == xti_reverse_make && xti_mosaic_width(p->target.isa) == XTI_LANE);
}

int xti_mosaic_most(const struct xti_plan *p, const struct xti_nest *t, int windows)
{
    int most = t->unit ? XTI_LINE / 2 / t->unit : windows;
    return windows > most && xti_tile_row_bytes(p, t, NULL) > XTI_LINE ? most : windows;
}

/* How many windows a line may have and still be faster than what comes next: a tile whose rows are short, or
 * a gather. In the cache loads and permutes are not hidden by reading: a pair of windows costs what some
 * narrow units do that are gathered one by one, and more than a part of a square or of a gather by one
 * instruction. */
static int windows_worth(const struct xti_plan *p, const struct xti_nest *t)
{
    enum { LONG = 4 * XTI_LINE, ONE_BY_ONE = 32, OTHERS = 8, NARROW = 2 };
    if (xti_mosaic_width(p->target.isa) == XTI_LANE)
        return t->unit <= NARROW && picked(p, t) ? (xti_cost_stream(p) ? 2 : 1) * LANE_WINDOWS / t->unit : 0;
    if (!xti_cost_stream(p))
        return xti_mosaic_most(p, t, (t->unit <= NARROW && picked(p, t) ? ONE_BY_ONE : OTHERS) / t->unit);
    int64_t row = xti_tile_row_bytes(p, t, NULL);
    return !row ? 16 : row >= LONG ? 0 : xti_mosaic_most(p, t, 8);
}

/* A block is not streamed: its rows begin anywhere. Whether its lines lie in the most windows that there are,
 * its table tells. */
static bool serves_block(const struct xti_plan *p, const struct xti_nest *t)
{
    struct xti_sides x;
    mosaic_of(p, t, &x);
    if (!x.t.unit || x.col.bytes <= XTI_LINE / 2 || x.col.bytes > xti_mosaic_col_bytes(p->target.isa))
        return false;
    bool lanes = xti_mosaic_width(p->target.isa) == XTI_LANE;
    return xti_sides_list_fits(&x) && (p->most_windows == XTI_MOSAIC_WINDOWS ||
                                       windows(p, &x, lanes ? LANE_WINDOWS / x.t.unit : p->most_windows));
}

bool xti_mosaic_applies(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    enum { TABLE_PAYS = 1 << 17 }; /* it is made for each run */
    struct xti_sides x;
    if (p->most_windows)
        return serves_block(p, t) || xti_refuse(why, "lines lie in many windows");
    if (!xti_mosaic_width(p->target.isa))
        return xti_refuse(why, "not for this processor");
    if (!xti_nest_copies_units(t, why))
        return false;
    if (t->bytes < TABLE_PAYS)
        return xti_refuse(why, "%lld B are too few", (long long)t->bytes);
    const struct xti_loop *cd = xti_nest_cd(t);
    if (cd && cd->n * t->unit >= XTI_LINE) /* squares of registers, or every line from many of the source */
        return xti_refuse(why, "one dim of %lld B makes up a line", (long long)(cd->n * t->unit));
    if (*t->windows && !why)
        return *t->windows > 0;
    *t->windows = -1;
    mosaic_of(p, t, &x);
    if (x.col.bytes < XTI_LINE || x.col.bytes > xti_mosaic_col_bytes(p->target.isa))
        return xti_refuse(why, "destination's dims make up %lld B", (long long)x.col.bytes);
    const struct xti_loop *last = &x.t.dim[x.col.dim[x.col.n_dims - 1]];
    if (!xti_sides_list_fits(&x) || (xti_cost_stream(p) && (xti_sides_ragged(&x) || last->n % x.col.take)))
        return xti_refuse(why, "rows of the destination are no whole lines");
    int most = windows_worth(p, t), n = most ? windows(p, &x, most) : 0;
    if (!most)
        return xti_refuse(why, "squares or tiles of long rows serve");
    if (!n)
        return xti_refuse(why, "lines lie in more than %d windows", most);
    if (p->target.isa == XTI_ISA_AVX512 && xti_cost_stream(p) && !xti_mosaic_serves(p, t->unit) &&
        picked(p, t))
        return xti_refuse(why, "units of %lld B are gathered", (long long)t->unit);
    *t->windows = n;
    return true;
}

void xti_mosaic_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step)
{
    struct xti_sides x;
    mosaic_of(p, t, &x);
    xti_sides_make(p, &x, XTI_CPU_MOSAIC, step);
    struct xti_mosaic_of of = rows_of(&x, p->target.isa);
    step->visit = (struct xti_visit){of.group, *t->windows /* of a block: by its table */, of.gaps};
}
