/* cost.c: the rules of cost.h. What each was seen to do, on which machine: bench/notes. Layer 3. */
#include "plan/cost.h"

#include "base/num.h"
#include "plan/loops.h"

/* ---- what guards hide */

int xti_cost_covered(const struct xti_plan *p)
{
    enum { SHORT = 256 };
    int read, fill, esize = p->map.esize;
    if (!xti_may(&p->target, XTI_COVER) || !xti_map_guarded(&p->map, &read, &fill))
        return -1;
    const struct xti_piece *x = &p->map.piece[read];
    const struct xti_dim *col = &x->dim[x->n_dims - 1];
    if (col->s == 1 && col->d == 1 && col->n * esize >= SHORT)
        return -1;
    /* ns of a unit: all of it copied; a row walked, and a unit that is visible. */
    double left = esize / 3.0 - 50 / (double)col->n;
    return left > 0 && 5 * xti_piece_visible(x) < left ? fill : read;
}

/* ---- what is streamed */

/* Past the second cache streaming wins as soon as the third, which is shared with other cores and may be
 * slower than memory's stream, would have to hold more than its share. */
bool xti_cost_streams(const struct xti_target *t, int64_t bytes)
{
    enum { L3_SHARE = 8 << 20 };
    if (t->choice.stream)
        return t->choice.stream > 0 && t->isa != XTI_ISA_SCALAR;
    int64_t by_l2 = 4 * t->l2_bytes, by_l3 = t->l3_bytes / 4 < L3_SHARE ? t->l3_bytes / 4 : L3_SHARE;
    return t->isa != XTI_ISA_SCALAR && bytes >= (by_l2 > by_l3 ? by_l2 : by_l3);
}

bool xti_cost_stream(const struct xti_plan *p) { return xti_cost_streams(&p->target, p->bytes_written); }

/* Long stretches of several pieces, each by itself, share few lines with others. */
static bool lies_alone(const struct xti_plan *p, const struct xti_nest *t)
{
    enum { LONG = 1024 };
    int64_t run = t->run;
    for (int i = t->n_dims - 1; i >= 0 && t->dim[i].d == run; i--)
        run *= t->dim[i].n;
    return p->map.n_pieces == 1 + p->covered || run >= LONG;
}

bool xti_cost_streams_alone(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why)
{
    return xti_nest_copies(t->piece, why) && (xti_cost_stream(p) || xti_refuse(why, "stays in the cache")) &&
           (lies_alone(p, t) || xti_refuse(why, "%d pieces", p->map.n_pieces));
}

/* Units one by one, and long rows that follow each other on one side alone, which are asked for beyond their
 * ends: straight to the destination they need not wait for a part's other pieces. */
bool xti_cost_part_waits(const struct xti_plan *p, const struct xti_step *step)
{
    enum { LONG = 256 };
    bool alone = p->n_steps == 1, long_rows = xti_step_row_bytes(step) >= LONG;
    bool always = step->kernel == XTI_CPU_BROADCAST || step->kernel == XTI_CPU_STRIDED;
    if (step->kernel == XTI_CPU_BLOCKS)
        return alone && long_rows;
    return step->kernel == XTI_CPU_REVERSE ? alone || long_rows : always;
}

int xti_plan_threads(int threads, int64_t bytes)
{
    enum { EACH = 1 << 18 };
    int64_t most = bytes / EACH;
    return most < 2 || threads < 2 ? 1 : threads < most ? threads : (int)most;
}

/* ---- streamed lines, and what they are made of */

enum { SETS = 64 }; /* of a first cache: as many as a page has lines */

static int ways(const struct xti_target *t) { return (int)(t->l1_bytes / (SETS * XTI_LINE)); }

/* The most columns, of so many `st` bytes apart, whose lines share a set of it. */
static int crowd(int64_t st, int64_t columns)
{
    unsigned char in[SETS] = {0};
    int most = 0;
    for (int64_t c = 0; c < columns; c++) {
        int n = ++in[(uint64_t)st * (uint64_t)c / XTI_LINE % SETS];
        most = n > most ? n : most;
    }
    return most;
}

/* Where lines are fetched far ahead, squares are made from where they lie, but for columns that share sets:
 * this square's lines and the next one's would not stay in the first cache from one lane to the other. */
bool xti_cost_unstaged(const struct xti_target *t, const struct xti_step *step)
{
    int widest = t->isa == XTI_ISA_AVX512 ? XTI_LANE / 2 : XTI_LANE; /* wider ones: squares in registers */
    int lists = step->list.row_dims + step->list.col_dims;
    const struct xti_loop *col = step->list.col_dims ? &step->loop[step->n_loops + lists - 1] : &step->col;
    return xti_may(t, XTI_UNSTAGED) && step->kernel == XTI_CPU_TILE && step->store.stream &&
           step->unit <= widest && 2 * crowd(col->s, 2 * XTI_LINE / step->unit) <= ways(t);
}

bool xti_cost_streams_rows(const struct xti_plan *p, int unit, int64_t rows, int64_t cols, bool ragged)
{
    enum { SHORT = 4 * XTI_LINE, UNITS = 16 };
    int64_t least = UNITS * unit > XTI_LINE ? UNITS * unit : XTI_LINE;
    return xti_cost_stream(p) && (p->target.choice.stream || p->target.isa != XTI_ISA_AVX2 || !ragged ||
                                  (cols >= SHORT && rows >= least));
}

/* Kernels move less than SHORT at a time, and through a buffer twice; of MIDDLE and more a run has lines of
 * its own. */
bool xti_cost_turns(const struct xti_plan *p, const struct xti_nest *t)
{
    enum { SHORT = 32, MIDDLE = XTI_LINE, LONG = 2 * XTI_LINE };
    const struct xti_target *g = &p->target;
    const struct xti_loop *cd = xti_nest_cd(t), *place = NULL;
    for (int i = 0; i < t->n_dims; i++)
        if (i != t->cd && (!place || xti_abs64(t->dim[i].s) < xti_abs64(place->s)))
            place = &t->dim[i];
    if (g->isa != XTI_ISA_AVX2 || !xti_cost_stream(p) || g->choice.stream || g->choice.order || !cd ||
        !place || !place->s || t->run >= XTI_STREAMED_RUN || xti_cost_turn(g, t, NULL) ||
        xti_abs64(cd->s) - (uint64_t)place->n * xti_abs64(place->s) >= XTI_LINE)
        return false;
    bool many = t->run < SHORT || t->run >= LONG;
    int64_t room = many ? g->l2_bytes / 4 : g->l1_bytes / (t->run < MIDDLE ? 32 : 4);
    int64_t apart = place->d & -place->d; /* a place has a line of so many bytes of the cache */
    return (t->run | xti_nest_bits(t, -1) | g->d_line) % XTI_LINE &&
           place->n <= room / (apart < XTI_LINE ? XTI_LINE : apart);
}

int64_t xti_cost_panel_rows(const struct xti_target *t)
{
    enum { PANELS = 8 };
    return t->l2_bytes / PANELS / (2 * XTI_LINE);
}

/* ---- which kernel */

const struct xti_strategy *xti_strategy_made_by(const struct xti_plan *p, xti_strategy_make *make)
{
    const struct xti_strategy *s = p->strategies;
    while (s->make != make)
        s++;
    return s;
}

const struct xti_strategy *xti_strategy_next(const struct xti_plan *p, const struct xti_strategy *s,
                                             const struct xti_nest *t)
{
    const struct xti_strategy *last = &p->strategies[XTI_N_STRATEGIES - 1];
    while (s != last && (p->target.choice.without >> (s - p->strategies) & 1 || !s->applicable(p, t, NULL)))
        s++;
    return s;
}

const struct xti_step *xti_cost_main(const struct xti_plan *p)
{
    const struct xti_step *best = NULL;
    for (int i = 0; i < p->n_steps; i++)
        best = !best || p->step[i].bytes > best->bytes ? &p->step[i] : best;
    return best;
}

bool xti_cost_squares(int unit, int64_t rows_bytes, int64_t cols_bytes)
{
    int64_t few = rows_bytes < cols_bytes ? rows_bytes : cols_bytes, many = rows_bytes + cols_bytes - few;
    return few >= XTI_LANE || (unit <= 2 && few > XTI_LANE / 2 && many >= XTI_LINE);
}

int xti_cost_weave(const struct xti_target *t, int unit, int64_t row_bytes)
{
    enum { MOST = 8, FEW = 4 }; /* gen/kernels.py has both ops for 2 .. 8, of NEON for 2 .. 4 */
    int most = t->isa == XTI_ISA_NEON || unit > 8 ? FEW : MOST, narrow = (XTI_LANE - 1) / unit;
    return row_bytes >= XTI_LINE ? most : narrow < FEW ? narrow : FEW;
}

bool xti_cost_turn(const struct xti_target *t, const struct xti_nest *n, struct xti_why *why)
{
    enum { WIDEST = 4, LEAST = 16 }; /* gen/kernels.py */
    if (n->run != XTI_GROUP * n->esize || n->esize > WIDEST)
        return xti_refuse(why, "inner run of %lld B is not %d elements", (long long)n->run, XTI_GROUP);
    if (t->isa != XTI_ISA_AVX2 && t->isa != XTI_ISA_AVX512)
        return xti_refuse(why, "made for AVX");
    const struct xti_loop *cs = xti_nest_cs(n), *cd = xti_nest_cd(n);
    if (!cs || !cd)
        return xti_refuse(why, "no two dims along which the runs follow each other");
    return (cs->n >= LEAST && cd->n >= LEAST) ||
           xti_refuse(why, "%lld x %lld runs are few", (long long)cs->n, (long long)cd->n);
}

/* ---- through the caches */

/* Stores commit in order: one that waits for its line holds up all behind it. In the first cache none
 * waits. */
bool xti_cost_prefetch_writes(const struct xti_plan *p)
{
    return p->target.machine->habits.prefetch_writes && p->bytes_written > p->target.l1_bytes / 2;
}

/* Squares of whole lines, the last of which are moved back over their neighbours, cover at most so many
 * eighths more than the rows and columns. */
static bool squares_fit(const struct xti_step *step, int eighths)
{
    int64_t n = XTI_LINE / step->unit, rows = step->row.n, cols = step->col.n;
    int64_t squares = xti_ceil_div(rows, n) * xti_ceil_div(cols, n);
    return 8 * squares * n * n <= (8 + eighths) * rows * cols;
}

/* Stores that wait for others, some hundred, fetch their lines meanwhile: of those that share a set of the
 * first cache more than its ways evict each other. So they wait for few others, in squares whose lines are
 * read and written once, and which follow each other in no regular steps (transpose.c.j2). */
bool xti_cost_whole_lines(const struct xti_plan *p, const struct xti_step *step)
{
    enum { SHARED = 512, WELL = 1, FAIRLY = 3 };
    const struct xti_target *t = &p->target;
    int64_t bytes = p->bytes_written;
    if (!xti_may(t, XTI_SQUARES) || !t->machine->habits.early_stores || t->isa != XTI_ISA_AVX512 ||
        step->store.stream)
        return false;
    int64_t held = step->col.n < XTI_LINE / step->unit ? step->col.n : XTI_LINE / step->unit;
    return (step->col.s % XTI_LINE == 0 && crowd(step->col.s, held) > ways(t)) ||
           (bytes <= t->l2_bytes && squares_fit(step, bytes > t->l1_bytes ? FAIRLY : WELL)) ||
           (bytes > 4 * t->l1_bytes && (step->row.d % SHARED == 0 || step->col.s % SHARED == 0));
}

bool xti_cost_halves(const struct xti_plan *p, const struct xti_step *step)
{
    const struct xti_target *t = &p->target;
    return t->machine->habits.splits_vectors && t->isa == XTI_ISA_AVX512 && !step->store.stream &&
           p->bytes_written <= t->l1_bytes / 2;
}

/* Squares of wide units, too, are put into an order by the kernel, where rows of both sides begin on lines;
 * elsewhere squares share lines with their neighbours. */
bool xti_cost_one_call(const struct xti_step *step)
{
    enum { NARROW = 2 };
    return step->store.squares && step->unit > NARROW && (step->row.d | step->col.s) % XTI_LINE == 0;
}
