/* plan.c: makes a plan of a map for a target. CPU: one step a piece, by the first strategy that applies.
 * CUDA: hands over to cuda_strategies.c. The plan keeps a copy of the map. Layer 3. */
#include "plan/plan.h"

#include <stdarg.h>
#include <stdio.h>

#include "map/clone.h"
#include "plan/cost.h"

const char *const xti_isa_name[XTI_ISA_COUNT] = {"scalar", "avx2", "avx512", "neon"};

const char *const xti_cpu_op_name[XTI_CPU_OP_COUNT] = {
#define X(id, name) #name,
    XTI_CPU_OPS(X)
#undef X
};

bool xti_refuse(struct xti_why *why, const char *fmt, ...)
{
    va_list ap;
    if (!why)
        return false;
    va_start(ap, fmt);
    vsnprintf(why->text, sizeof why->text, fmt, ap);
    va_end(ap);
    return false;
}

static void add_refusal(struct xti_str *b, int piece, const char *strategy, const struct xti_why *why)
{
    xti_str_addf(b, "piece %d: %s: %s\n", piece, strategy, why->text);
}

void xti_plan_refused(struct xti_plan *p, int piece, const char *strategy, const struct xti_why *why)
{
    add_refusal(&p->refused, piece, strategy, why);
}

void xti_plan_refusals(const struct xti_plan *p, struct xti_str *b)
{
    struct xti_why why;
    if (p->refused.s)
        xti_str_addn(b, p->refused.s, p->refused.n);
    for (int k = 0; k < p->n_steps && p->step; k++)
        for (int i = 0; &xti_cpu_strategies[i] != p->step[k].strategy; i++)
            if (!xti_cpu_strategies[i].applicable(p, p->step[k].piece, &why))
                add_refusal(b, p->step[k].piece, xti_cpu_strategies[i].name, &why);
}

/* ---- CPU */

/* A tile's two lists: those of its dims that lie inside a destination line say where the line comes from, the
 * others where the lines go. */
static void list_tile(struct xti_step *step)
{
    int ns = 1, nd = 1;
    step->table[0] = (struct xti_offset){0, 0};
    for (int k = step->n_table_dims - 1; k >= 0; k--) {
        const struct xti_loop *l = &step->loop[step->n_loops + k];
        bool inside = l->d < XTI_LINE;
        int *n = inside ? &ns : &nd;
        for (int i = *n; i < *n * l->n; i++) {
            if (inside)
                step->table[i].s = step->table[i - *n].s + (int32_t)l->s;
            else
                step->table[i].d = step->table[i - *n].d + (int32_t)l->d;
        }
        *n *= (int)l->n;
    }
}

/* Lists the offsets of the loops that the table replaces, the last one fastest. */
static xt_status list_offsets(struct xti_plan *p, struct xti_step *step, struct xti_err *err)
{
    struct xti_offset *t = xti_arena_alloc(&p->arena, (size_t)step->n_table * sizeof *t);
    if (!t)
        return xti_fail(err, XT_ENOMEM, "table of %d offsets", step->n_table);
    step->table = t;
    if (step->kernel == XTI_CPU_TILES) {
        list_tile(step);
        return XT_OK;
    }
    int n = 1;
    t[0] = (struct xti_offset){0, 0};
    for (int k = step->n_table_dims - 1; k >= 0; k--) {
        const struct xti_loop *l = &step->loop[step->n_loops + k];
        for (int i = n; i < n * l->n; i++)
            t[i] = (struct xti_offset){t[i - n].s + (int32_t)l->s, t[i - n].d + (int32_t)l->d};
        n *= (int)l->n;
    }
    return XT_OK;
}

static const struct xti_strategy *choose(const struct xti_plan *p, int piece)
{
    int i = 0;
    while (i + 1 < xti_n_cpu_strategies && !xti_cpu_strategies[i].applicable(p, piece, NULL))
        i++;
    return &xti_cpu_strategies[i];
}

static xt_status make_step(struct xti_plan *p, int piece, struct xti_err *err)
{
    struct xti_loop room[XTI_MAX_LOOPS];
    struct xti_step *step = &p->step[piece];
    step->piece = piece;
    step->strategy = choose(p, piece);
    step->bytes = xti_piece_numel(&p->map.piece[piece]) * p->map.esize;
    step->loop = room;
    step->strategy->make(p, piece, step);
    xti_cost_split(&p->target, step);
    step->loop = xti_arena_dup(&p->arena, room, (size_t)(step->n_loops + step->n_table_dims) * sizeof *room);
    if (!step->loop)
        return xti_fail(err, XT_ENOMEM, "%d loops", step->n_loops);
    return step->n_table ? list_offsets(p, step, err) : XT_OK;
}

static xt_status plan_cpu(struct xti_plan *p, struct xti_err *err)
{
    xt_status s = XT_OK;
    if (p->map.n_pieces && !(p->step = xti_alloc_array((size_t)p->map.n_pieces, sizeof *p->step)))
        return xti_fail(err, XT_ENOMEM, "%d steps", p->map.n_pieces);
    p->n_steps = p->map.n_pieces;
    for (int i = 0; i < p->n_steps && !s; i++)
        s = make_step(p, i, err);
    p->slabs = xti_cost_slabs(p);
    return s;
}

/* ---- both */

/* Guards hide points of a box from reading: what they cannot hide is bounded by what is written at all. */
static void count_bytes(struct xti_plan *p)
{
    int64_t read = 0;
    for (int i = 0; i < p->map.n_pieces; i++)
        if (p->map.piece[i].src >= 0)
            read += xti_piece_numel(&p->map.piece[i]);
    p->bytes_written = p->map.numel * p->map.esize;
    p->bytes_read = (read < p->map.numel ? read : p->map.numel) * p->map.esize;
}

xt_status xti_plan_make(const struct xti_map *m, const struct xti_target *t, struct xti_plan *p,
                        struct xti_err *err)
{
    *p = (struct xti_plan){.target = *t};
    xt_status s = xti_map_clone(m, &p->map, err);
    if (!s) {
        count_bytes(p);
        s = t->backend == XT_CUDA ? xti_plan_cuda(p, err) : plan_cpu(p, err);
    }
    if (!s && p->refused.failed)
        s = xti_fail(err, XT_ENOMEM, "text of refused strategies");
    if (s)
        xti_plan_free(p);
    return s;
}

void xti_plan_free(struct xti_plan *p)
{
    if (!p)
        return;
    xti_plan_cuda_free(p);
    xti_map_free(&p->map);
    xti_arena_free(&p->arena);
    xti_free(p->step);
    xti_free(p->cuda_step);
    xti_str_free(&p->refused);
    *p = (struct xti_plan){0};
}

const char *xti_plan_strategy(const struct xti_plan *p)
{
    const struct xti_strategy *best = NULL;
    int64_t most = -1;
    for (int i = 0; i < p->n_steps; i++) {
        int piece = p->cuda_step ? p->cuda_step[i].piece : p->step[i].piece;
        int64_t n = xti_piece_numel(&p->map.piece[piece]);
        if (n > most) {
            most = n;
            best = p->cuda_step ? p->cuda_step[i].strategy : p->step[i].strategy;
        }
    }
    return best ? best->name : "empty";
}
