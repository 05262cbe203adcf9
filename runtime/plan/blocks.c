/* blocks.c: the plans of a buffered step's blocks, each a copy into the buffer, and what is fetched for them.
 * Layer 3. */
#include "plan/buffered.h"

#include "base/num.h"
#include "plan/loops.h"
#include "plan/mosaic.h"

enum {
    CALL_BYTES = 2048 /* of the kernel inside a block, see cpu/buffered.c */
};

/* Calls of about so many bytes: of runs the longest loop is the kernel's rows; rows are cut, those of a
 * transpose where lines of the source end. */
static void shape_calls(struct xti_step *step)
{
    bool runs = step->kernel == XTI_CPU_BLOCKS;
    bool units = step->kernel == XTI_CPU_TRANSPOSE || step->kernel == XTI_CPU_TURN;
    int64_t line = units ? XTI_LINE / step->unit : 1;
    int64_t rows = CALL_BYTES / (step->col.n * step->unit * (step->param ? step->param : 1));
    rows = (rows + line) / line * line;
    for (int i = 0; i < step->n_loops; i++)
        if (step->loop[i].cuts != XTI_CUTS_NONE)
            return;
    for (int i = 0; i < step->n_loops && runs; i++) {
        struct xti_loop row = step->row, *l = &step->loop[i];
        step->row = l->n > row.n ? *l : row;
        *l = l->n > row.n ? row : *l;
    }
    if (runs || units)
        xti_loops_block(step, XTI_CUTS_ROW, rows, false);
}

static int64_t steps_of(const struct xti_step *step, int from)
{
    int64_t n = 1;
    for (int i = from; i < step->n_loops; i++)
        n *= step->loop[i].n;
    return n;
}

/* Where the buffers lie in lines is not known yet, and matters little. */
static xt_status make_table(struct xti_plan *p, struct xti_inner *out, struct xti_err *err)
{
    enum { ALIGN = _Alignof(struct xti_mosaic) }; /* more than the arena's */
    struct xti_mosaic_of of = xti_mosaic_of(&out->step, p->target.isa);
    int64_t line = of.width == XTI_LINE ? XTI_LINE : 2 * XTI_LANE;
    size_t lines = (size_t)xti_ceil_div(of.cols * of.unit, line) * sizeof(struct xti_mosaic_line);
    char *room = xti_arena_room(&p->arena, offsetof(struct xti_mosaic, line) + lines + ALIGN - 1);
    if (!room)
        return xti_fail(err, XT_ENOMEM, "table of a mosaic");
    struct xti_mosaic *m = (struct xti_mosaic *)(room + (-(uintptr_t)room & (ALIGN - 1)));
    out->step.visit.windows = xti_mosaic_table(&of, m);
    out->mosaic = out->step.visit.windows ? m : NULL;
    return XT_OK;
}

/* A mosaic where its lines have at most so many windows, else what comes next. */
static xt_status plan_block(struct xti_plan *p, const struct xti_piece *piece, xti_step_planner *plan,
                            int windows, struct xti_inner *out, struct xti_err *err)
{
    struct xti_plan sub = xti_block_plan(p, piece);
    sub.most_windows = windows;
    sub.n_steps = 1;
    sub.step = &out->step;
    sub.arena = p->arena;
    xt_status s = plan(&sub, 0, shape_calls, err);
    if (!s && out->step.kernel == XTI_CPU_MOSAIC)
        s = make_table(&sub, out, err);
    if (!s && out->step.kernel == XTI_CPU_MOSAIC && !out->mosaic) {
        out->step = (struct xti_step){0};
        sub.most_windows = 0;
        s = plan(&sub, 0, shape_calls, err);
    }
    p->arena = sub.arena;
    return s;
}

/* Of the kernels of a block. */
static int64_t calls_of(const struct xti_block *block, int parts)
{
    int64_t n = 0;
    for (int k = 0; k < parts; k++)
        n += steps_of(&block->inner[k].step, 0);
    return n;
}

/* Of a part of a block that is to be a mosaic. */
static __attribute__((noinline)) int most_windows(const struct xti_plan *p, const struct xti_step *step,
                                                  int part)
{
    struct xti_nest t;
    if (!p->joint.n)
        return step->stage.mosaics ? XTI_MOSAIC_WINDOWS : 0;
    xti_nest_of(&p->map, p->joint.piece[part], &t);
    return xti_buffered_windows(p, &t);
}

static xt_status plan_inner(struct xti_plan *p, const struct xti_step *step, const struct xti_loop *dim,
                            xti_step_planner *plan, struct xti_block *out, struct xti_err *err)
{
    int parts = xti_parts_of(p);
    int64_t bytes = out->out.bytes * out->out.n_runs;
    xt_status s = XT_OK;
    if (!(out->inner = xti_arena_alloc(&p->arena, (size_t)parts * sizeof *out->inner)))
        return xti_fail(err, XT_ENOMEM, "%d parts", parts);
    for (int k = 0; k < parts && !s; k++) {
        struct xti_dim d[2 * XTI_MAX_DIMS];
        struct xti_piece piece = xti_block_piece(p, step, k, dim, d);
        s = plan_block(p, &piece, plan, most_windows(p, step, k), &out->inner[k], err);
    }
    if (s)
        return s;
    int64_t calls = calls_of(out, parts);
    out->stream_lines = (bytes / XTI_LINE + calls) / calls;
    return XT_OK;
}

/* Points of the last block that a loop cuts off, when it is a smaller one; else 0. */
static int64_t tail_of(const struct xti_step *step, int cuts)
{
    for (int i = 0; i < step->n_loops; i++)
        if (step->loop[i].cuts == cuts)
            return step->loop[i].whole % step->loop[i].block;
    return 0;
}

/* Of a piece of a joint plan: where it is in a row, and where its source begins, with dims that go the other
 * way. */
static void place_part(const struct xti_plan *p, const struct xti_step *step, const struct xti_piece *x,
                       struct xti_part *part)
{
    int e = p->map.esize;
    part->at = (x->doff - p->map.dst_lo) * e % p->joint.row;
    part->s_byte = x->soff * e;
    for (int i = 0; i < x->n_dims; i++)
        for (int k = 0; k < step->n_loops + step->list.row_dims + step->list.col_dims; k++)
            if (step->loop[k].d == -x->dim[i].d * e) {
                part->s_byte += (x->dim[i].n - 1) * x->dim[i].s * e;
                break;
            }
}

static xt_status plan_parts(struct xti_plan *p, const struct xti_step *step, struct xti_blocks *b,
                            struct xti_err *err)
{
    int64_t lines = 0;
    for (int k = 0; k < b->n_parts; k++) {
        struct xti_part *part = &b->part[k];
        const struct xti_piece *x = &p->map.piece[p->joint.n ? p->joint.piece[k] : step->piece];
        int64_t *s = xti_arena_room(&p->arena, (size_t)(step->n_loops + 1) * sizeof *s);
        if (!s)
            return xti_fail(err, XT_ENOMEM, "%d strides", step->n_loops);
        *part = (struct xti_part){.src = x->src, .s = s, .s_byte = step->s_byte};
        for (int i = 0; i < step->n_loops; i++)
            s[i] = xti_part_loop(p, k, &step->loop[i]).s;
        if (p->joint.n)
            place_part(p, step, x, part);
        part->in = xti_group_source(p, step, k, step->stage.group);
        lines += part->in.n_runs * ((part->in.bytes + (p->joint.n ? 2 * XTI_LINE - 2 : XTI_LINE)) / XTI_LINE);
    }
    int64_t calls = steps_of(step, step->stage.group) * calls_of(&b->block[0][0], b->n_parts);
    b->fetch_lines = (lines + calls) / calls;
    return XT_OK;
}

xt_status xti_blocks_plan(struct xti_plan *p, struct xti_step *step, xti_step_planner *plan,
                          struct xti_err *err)
{
    int64_t row_tail = tail_of(step, XTI_CUTS_ROW), col_tail = tail_of(step, XTI_CUTS_COL);
    int n = step->list.row_dims + step->list.col_dims;
    struct xti_blocks *b = xti_arena_room(&p->arena, sizeof *b);
    struct xti_part *part = xti_arena_room(&p->arena, (size_t)xti_parts_of(p) * sizeof *part);
    struct xti_loop *dim = xti_arena_room(&p->arena, (size_t)n * sizeof *dim);
    if (!b || !part || !dim)
        return xti_fail(err, XT_ENOMEM, "blocks");
    *b = (struct xti_blocks){
        .rows = step->row.n, .cols = step->col.n, .n_parts = xti_parts_of(p), .part = part};
    if (p->joint.fills && !(b->value = xti_arena_dup(&p->arena, p->joint.value, sizeof p->joint.value)))
        return xti_fail(err, XT_ENOMEM, "value of a fill");
    for (int i = 0; i < 4; i++) {
        bool row = i / 2, col = i % 2;
        struct xti_block *out = &b->block[row][col];
        if ((row && !row_tail) || (col && !col_tail))
            continue;
        for (int k = 0; k < n; k++)
            dim[k] = step->loop[step->n_loops + k];
        if (row)
            dim[0].n = row_tail;
        if (col)
            dim[step->list.row_dims].n = col_tail;
        out->out = xti_runs_of(step->unit, dim, n, false);
        xt_status s = plan_inner(p, step, dim, plan, out, err);
        if (s)
            return s;
    }
    step->kernel = b->block[0][0].inner->step.kernel;
    step->stage.blocks = b;
    return plan_parts(p, step, b, err);
}
