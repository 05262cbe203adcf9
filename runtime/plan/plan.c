/* plan.c: makes a plan of a map for a CPU: one step a piece, by the first strategy that applies.
 * Layer 3. */
#include "plan/plan.h"

#include "base/num.h"
#include "plan/assemble.h"
#include "plan/buffered.h"
#include "plan/cost.h"
#include "plan/cpu_strategies.h"
#include "plan/estimate.h"
#include "plan/loops.h"
#include "plan/program.h"
#include "plan/sides.h"

#define TOO_DEAR ((xt_status)1) /* no error, but no plan */

const char *const xti_isa_name[XTI_ISA_COUNT] = {"scalar", "avx2", "avx512", "neon"};

void xti_plan_refusals(const struct xti_plan *p, struct xti_str *b)
{
    struct xti_why why;
    struct xti_nest t;
    for (int k = 0; k < p->n_steps; k++) {
        xti_nest_of(&p->map, p->step[k].piece, &t);
        for (const struct xti_strategy *s = xti_cpu_strategies; s != p->step[k].strategy; s++)
            if (!s->applicable(p, &t, &why))
                xti_str_addf(b, "piece %d: %s: %s\n", p->step[k].piece, s->name, why.text);
    }
}

/* Offsets of n dims, the last one fastest, on both sides. */
static void list_rows(const struct xti_loop *dim, int n, struct xti_offset *at)
{
    at[0] = (struct xti_offset){0, 0};
    for (int64_t k = n - 1, count = 1; k >= 0; count *= dim[k--].n)
        for (int64_t i = count; i < count * dim[k].n; i++)
            at[i] = (struct xti_offset){at[i - count].s + dim[k].s, at[i - count].d + dim[k].d};
}

/* The same in the source alone. */
static void list_cols(const struct xti_loop *dim, int n, int32_t *at)
{
    at[0] = 0;
    for (int64_t k = n - 1, count = 1; k >= 0; count *= dim[k--].n)
        xti_sides_repeat(at, count, count * dim[k].n, dim[k].s);
}

static xt_status make_lists(struct xti_plan *p, struct xti_step *step, struct xti_err *err)
{
    const struct xti_loop *dim = &step->loop[step->n_loops];
    struct xti_lists *l = &step->list;
    size_t rows = (size_t)step->row.n * sizeof *l->row_at, cols = (size_t)step->col.n * sizeof *l->col_at;
    if ((l->row_dims && !(l->row_at = xti_arena_room(&p->arena, rows))) ||
        (l->col_dims && !(l->col_at = xti_arena_room(&p->arena, cols + XTI_REPEAT * sizeof *l->col_at))))
        return xti_fail(err, XT_ENOMEM, "lists of a step");
    if (l->row_dims)
        list_rows(dim, l->row_dims, l->row_at);
    if (l->col_dims)
        list_cols(dim + l->row_dims, l->col_dims, l->col_at);
    return XT_OK;
}

static const struct xti_strategy *choose(const struct xti_plan *p, int piece, const struct xti_nest *t)
{
    if (p->joint.n && !piece)
        return xti_strategy_made_by(p, xti_buffered_make);
    if (p->most_windows && xti_mosaic_applies(p, t, NULL))
        return xti_strategy_made_by(p, xti_mosaic_make);
    return xti_strategy_next(p, p->strategies, t);
}

/* Whether a streamed piece is copied by another strategy than this one where lines begin elsewhere. */
static bool goes_elsewhere(const struct xti_plan *p, const struct xti_nest *t, const struct xti_strategy *s)
{
    struct xti_plan there = *p;
    there.target.d_line = XTI_MALLOC;
    for (const struct xti_strategy *k = p->strategies; k <= s; k++)
        if (k->by_line && !(p->target.choice.without >> (k - p->strategies) & 1) &&
            k->applicable(&there, t, NULL) != (k == s))
            return true;
    return false;
}

/* Its nest, of 2 KB, is gone from the stack before blocks are planned. */
static __attribute__((noinline)) void make_piece(struct xti_plan *p, int piece, struct xti_step *step)
{
    bool asks = !p->by_line && !p->target.d_line && !p->joint.n && xti_may(&p->target, XTI_OFF_LINE);
    struct xti_nest t;
    xti_nest_of(&p->map, piece, &t);
    step->bytes = t.bytes;
    step->strategy = choose(p, piece, &t);
    step->strategy->make(p, &t, step);
    p->by_line = p->by_line || (asks && xti_cost_stream(p) && goes_elsewhere(p, &t, step->strategy));
}

/* reshape: of a block's step, whose table wants its lists; others wait until the plan is chosen. */
xt_status xti_plan_step(struct xti_plan *p, int piece, void (*reshape)(struct xti_step *step),
                        struct xti_err *err)
{
    enum { MORE = XTI_MAX_LOOPS - XTI_MAX_DIMS + 1 }; /* a run that is a dim, and blocks */
    struct xti_step *step = &p->step[piece];
    size_t n = (size_t)p->map.piece[piece].n_dims + MORE;
    if (!(step->loop = xti_arena_room(&p->arena, n * sizeof *step->loop)))
        return xti_fail(err, XT_ENOMEM, "room for %zu loops", n);
    step->piece = piece;
    step->choice = p->target.choice;
    make_piece(p, piece, step);
    step->store.unstaged = xti_cost_unstaged(&p->target, step);
    step->store.prefetch_writes =
        !step->store.stream && step->kernel != XTI_CPU_WALK && xti_cost_prefetch_writes(p);
    xti_loops_split(&p->target, step);
    if (reshape)
        reshape(step);
    if (p->most && (p->most -= xti_plan_kernels(p, piece, piece + 1)) <= 0)
        return TOO_DEAR;
    if (step->stage.serves)
        return xti_blocks_plan(p, step, xti_plan_step, err);
    return reshape ? make_lists(p, step, err) : XT_OK;
}

static xt_status plan_steps(struct xti_plan *p, int n, struct xti_err *err)
{
    const double most = p->most;
    xt_status s = XT_OK;
    xti_free(p->step);
    if (!(p->step = xti_alloc_array((size_t)n, sizeof *p->step)))
        return xti_fail(err, XT_ENOMEM, "%d steps", n);
    p->n_steps = n;
    for (int i = 0; i < n; i++)
        p->step[i].bytes = xti_piece_numel(&p->map.piece[i]);
    int main = n ? (int)(xti_cost_main(p) - p->step) : 0; /* of rivals most are too dear by that alone */
    for (int i = 0; i < n && !s; i++)
        s = xti_plan_step(p, !i ? main : i <= main ? i - 1 : i, NULL, err);
    p->most = most;
    return s;
}

/* The steps of the map that joining makes, where it does. */
static xt_status plan_joint(struct xti_plan *p, bool *rows, struct xti_err *err)
{
    xt_status s = xti_plan_join(p, rows, err);
    if (s || !p->joint.n)
        return s;
    p->assembled = false;
    return plan_steps(p, p->map.n_pieces - p->joint.n + 1, err);
}

static xt_status plan_cpu(struct xti_plan *p, struct xti_err *err)
{
    int first = xti_cost_covered(p);
    p->covered = first >= 0;
    if (p->covered && !xti_map_cover(&p->map, first, &p->arena, &p->map.piece))
        return xti_fail(err, XT_ENOMEM, "%d pieces", p->map.n_pieces);
    if (p->covered)
        return plan_steps(p, p->map.n_pieces, err);
    bool rows;
    xt_status s = plan_joint(p, &rows, err);
    if (s || p->joint.n)
        return s;
    s = plan_steps(p, p->map.n_pieces, err);
    s = s ? s : xti_plan_assemble(p, err);
    return s || !rows ? s : plan_joint(p, &rows, err);
}

/* Guards hide points of a box from reading: what they cannot hide is bounded by what is written at all. */
static void count_bytes(struct xti_plan *p)
{
    int64_t read = 0;
    for (int i = 0; i < p->map.n_pieces; i++)
        if (p->map.piece[i].src >= 0)
            read = xti_add_most(read, xti_piece_numel(&p->map.piece[i]));
    p->bytes_written = p->map.numel * p->map.esize;
    p->bytes_read = (read < p->map.numel ? read : p->map.numel) * p->map.esize;
}

/* most: 0, or seconds of which a plan that takes as many is not finished: TOO_DEAR, and no error. */
static xt_status make_plan(const struct xti_map *m, const struct xti_target *t, double most,
                           struct xti_plan *p, struct xti_err *err)
{
    *p = (struct xti_plan){.target = *t, .strategies = xti_cpu_strategies, .most = most};
    p->map = *m;
    p->map.arena = (struct xti_arena){0}; /* the caller's */
    count_bytes(p);
    xt_status s = plan_cpu(p, err);
    if (s)
        xti_plan_free(p);
    return s;
}

/* *p becomes the plan by this choice where that is priced so far below *seconds that prices can tell. */
static xt_status take_cheaper(struct xti_plan *p, const struct xti_map *m, struct xti_choice choice,
                              double *seconds, struct xti_err *err)
{
    struct xti_target t = p->target;
    struct xti_estimate e;
    struct xti_plan other;
    t.choice = choice;
    xt_status s = make_plan(m, &t, *seconds, &other, err);
    if (s)
        return s == TOO_DEAR ? XT_OK : s;
    xti_plan_estimate(&other, &e);
    if (e.seconds < *seconds) {
        struct xti_plan old = *p;
        *seconds = e.seconds;
        *p = other;
        p->target = old.target;
        p->by_line = old.by_line;
        other = old;
    }
    xti_plan_free(&other);
    return XT_OK;
}

/* Of a merged plan its steps. Of tiles those of short rows that share lines have some; others are written
 * whole. Runs are no units to gather. A joint plan is made anew, whatever its pieces could do. */
static int count_rivals(const struct xti_plan *p, const struct xti_step *main)
{
    enum { SHORT = 4 * XTI_LINE };
    int n = main->strategy->rivals, gathers = p->target.machine->habits.gathers;
    int64_t row = main->col.n * main->unit;
    if (p->assembled)
        return XTI_RIVALS_STREAM;
    if (main->strategy->make == xti_tile_make && (row >= SHORT || row % XTI_LINE == 0))
        return XTI_RIVALS_NONE;
    if (n == XTI_RIVALS_GATHER && (!gathers || main->unit < gathers || main->unit > XTI_LANE))
        n = XTI_RIVALS_NEXT;
    return n && p->joint.n ? XTI_RIVALS_STREAM : n;
}

/* A plan past the second cache that is priced at several times what its lines cost asks its rivals: with
 * streaming stores or without, or step by step; by what comes next; by a gather. */
static xt_status replace_dear(struct xti_plan *p, const struct xti_map *m, struct xti_err *err)
{
    enum { ALONE = 2 /* memcpy and fills, whose pieces have no other strategy */ };
    const struct xti_step *main = xti_cost_main(p);
    int n = main ? count_rivals(p, main) : 0;
    if (!n || !xti_choice_is_model(p->target.choice) || p->bytes_written <= p->target.l2_bytes ||
        p->target.isa == XTI_ISA_SCALAR)
        return XT_OK;
    bool stream = xti_cost_stream(p);
    uint64_t gather = UINT64_C(1) << (xti_strategy_made_by(p, xti_gather_make) - p->strategies);
    const struct xti_choice step_by_step = {.without = UINT64_C(1) << XTI_MERGE};
    const struct xti_choice rival[] = {p->assembled ? step_by_step
                                                    : (struct xti_choice){.stream = stream ? -1 : 1},
                                       {.without = UINT64_C(1) << (main->strategy - p->strategies)},
                                       {.without = gather - (1 << ALONE)}};
    struct xti_estimate e;
    xti_plan_estimate(p, &e);
    double dear = p->target.machine->habits.well_priced ? 1.75 : 3, same_kernels = 1.3;
    double seconds = e.seconds / (p->assembled ? same_kernels : dear);
    double least[] = {xti_plan_least(p, false), xti_plan_least(p, true)};
    xt_status s = XT_OK;
    for (int i = 0; i < n && !s; i++)
        if (seconds > least[true] && (i || p->assembled || seconds > least[!stream]))
            s = take_cheaper(p, m, rival[i], &seconds, err);
    return s;
}

static xt_status make_cheap(const struct xti_map *m, const struct xti_target *t, struct xti_plan *p,
                            struct xti_err *err)
{
    xt_status s = make_plan(m, t, 0, p, err);
    s = s ? s : replace_dear(p, m, err);
    for (int i = 0; i < p->n_steps && !s; i++)
        s = p->step[i].stage.serves ? XT_OK : make_lists(p, &p->step[i], err);
    return s;
}

/* Streamed copies may go another way about lines that no row begins with. */
static xt_status make_off_line(struct xti_plan *p, const struct xti_map *m, struct xti_err *err)
{
    struct xti_target t = p->target;
    t.d_line = XTI_MALLOC;
    if (!p->by_line)
        return XT_OK;
    if (!(p->off_line = xti_alloc(sizeof *p->off_line)))
        return xti_fail(err, XT_ENOMEM, "a plan of %zu bytes", sizeof *p->off_line);
    return make_cheap(m, &t, p->off_line, err);
}

xt_status xti_plan_make(const struct xti_map *m, const struct xti_target *t, struct xti_plan *p,
                        struct xti_err *err)
{
    xt_status s = make_cheap(m, t, p, err);
    s = s ? s : make_off_line(p, m, err);
    if (s)
        xti_plan_free(p);
    return s;
}

void xti_plan_free(struct xti_plan *p)
{
    if (!p)
        return;
    xti_plan_free(p->off_line);
    xti_free(p->off_line);
    xti_arena_free(&p->arena);
    xti_free(p->step);
    *p = (struct xti_plan){0};
}

const char *xti_plan_strategy(const struct xti_plan *p)
{
    return p->n_steps ? xti_cost_main(p)->strategy->name : "empty";
}
