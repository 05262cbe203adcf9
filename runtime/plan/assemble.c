/* assemble.c: decides whether the steps of a plan share so many lines of the destination that these had
 * better be put together in a buffer (cpu/assemble.c), and rewrites the steps for that. Layer 3. */
#include "plan/assemble.h"

#include "base/num.h"
#include "plan/cost.h"
#include "plan/loops.h"

enum {
    LONG_ROW_BYTES = 1 << 13, /* two lines in parts do not count beside so many whole ones */
    SHORT_RUN_BYTES = 16,     /* rows of less are moved at a fraction of the memory's speed */
    SLOW_SHARE = 8            /* so may the steps be that write an eighth of the bytes */
};

bool xti_assemble_dense(const struct xti_map *m) { return m->numel && m->numel == m->dst_hi - m->dst_lo + 1; }

static bool fits(const struct xti_plan *p)
{
    int room = 0;
    for (int i = 0; i < p->n_steps && i < XTI_ASSEMBLE_STEPS; i++) {
        const struct xti_piece *x = &p->map.piece[p->step[i].piece];
        room += x->n_dims + x->n_divs + x->n_guards;
    }
    return p->n_steps <= XTI_ASSEMBLE_STEPS && room <= XTI_ASSEMBLE_ROOM;
}

/* One short run again and again, which the kernel streams as a pattern (blocks.c.j2: repeat_run). */
static bool repeats(const struct xti_step *step)
{
    int64_t n = step->col.n;
    return step->kernel == XTI_CPU_BLOCKS && !step->row.s && step->row.d == n && n >= 16 && 32 % n == 0 &&
           n * step->row.n % XTI_LINE == 0;
}

/* Other rows have a part in the lines of this step's rows. lo: where the destination begins. */
static bool shares_lines(const struct xti_step *step, int64_t lo)
{
    if (step->general)
        return true;
    if (repeats(step))
        return false;
    int64_t bits = (step->d_byte - lo) | step->row.d | xti_step_row_bytes(step);
    for (int i = 0; i < step->n_loops; i++)
        bits |= step->loop[i].d;
    return bits % XTI_LINE && xti_step_row_bytes(step) < LONG_ROW_BYTES;
}

/* Lines of the source that rows far apart in the destination have in common are still in the cache. */
static bool reads_well(const struct xti_step *step, int64_t cache)
{
    int64_t read =
        xti_mul_most((int64_t)xti_abs64(step->col.s), step->col.n); /* bytes, from a point to the next */
    for (int i = step->n_loops; i >= 0; i--) {
        const struct xti_loop *l = i == step->n_loops ? &step->row : &step->loop[i];
        int64_t s = (int64_t)xti_abs64(l->s);
        if (s && s < XTI_LINE && read > cache)
            return false;
        if (s >= XTI_LINE)
            read = xti_mul_most(read > XTI_LINE ? read : XTI_LINE, l->n);
        else if (read <= cache)
            read += xti_mul_most(s, l->n) < cache ? xti_mul_most(s, l->n) : cache;
    }
    return true;
}

/* A general one would run in this order anyway. */
static bool slow(const struct xti_plan *p, const struct xti_step *step)
{
    return !step->general && (step->kernel == XTI_CPU_WALK || xti_cost_part_waits(p, step) ||
                              (step->kernel == XTI_CPU_BLOCKS && step->col.n < SHORT_RUN_BYTES) ||
                              !reads_well(step, p->target.l2_bytes / 2));
}

/* room: for the loops. */
static struct xti_step reordered(const struct xti_plan *p, const struct xti_step *step, struct xti_loop *room)
{
    struct xti_step out = {.strategy = step->strategy,
                           .choice = step->choice,
                           .piece = step->piece,
                           .kernel = step->kernel,
                           .unit = step->unit,
                           .param = step->param,
                           .loop = room,
                           .split = -1,
                           .bytes = step->bytes};
    struct xti_nest t;
    xti_nest_of(&p->map, step->piece, &t);
    xti_order_step(&t, &out);
    return out;
}

static bool pays(const struct xti_plan *p)
{
    int64_t lo = p->map.dst_lo * p->map.esize;
    double shared = 0, badly = 0, most = (double)p->bytes_written / SLOW_SHARE;
    struct xti_loop room[XTI_MAX_LOOPS];
    if (!xti_may(&p->target, XTI_MERGE) || !xti_cost_stream(p) || !xti_assemble_dense(&p->map) || !fits(p))
        return false;
    for (int i = 0; i < p->n_steps; i++) {
        const struct xti_step *was = &p->step[i];
        struct xti_step step = reordered(p, was, room);
        bool kept = was->kernel == XTI_CPU_BLOCKS && !was->store.stream; /* its lines, by a cache */
        if (kept || was->stage.serves || was->kernel == XTI_CPU_BRAID || !xti_order_nests(&step))
            return false;
        shared += shares_lines(&step, lo) ? (double)step.bytes : 0;
        badly += slow(p, &step) ? (double)step.bytes : 0;
    }
    return shared > most && badly <= most;
}

xt_status xti_plan_assemble(struct xti_plan *p, struct xti_err *err)
{
    struct xti_loop room[XTI_MAX_LOOPS];
    if (!pays(p))
        return XT_OK;
    for (int i = 0; i < p->n_steps; i++) {
        struct xti_step *step = &p->step[i];
        *step = reordered(p, step, room);
        step->loop = xti_arena_dup(&p->arena, room, (size_t)step->n_loops * sizeof *room);
        if (!step->loop)
            return xti_fail(err, XT_ENOMEM, "%d loops", step->n_loops);
    }
    p->assembled = true;
    return XT_OK;
}
