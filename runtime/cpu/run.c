/* run.c: executes the steps of a CPU plan: the loops around the micro-kernels. No allocation, no recursion.
 * Layer 4. */
#include "cpu/run.h"

#include <stddef.h>
#include <string.h>

#include "cpu/cursor.h"

/* Where a loop stands. */
struct level {
    int64_t i, end; /* of the loop's steps */
    int64_t first;  /* i of the first one */
    int64_t pad;    /* points by which the first block is shorter */
    int64_t points; /* as cut by the blocked loops outside */
    char *d;
    const char *s;
};

struct nest {
    const struct xti_step *step;
    xtk_fn kernel;
    struct xtk_job job;
    struct xti_share share;
    struct level level[XTI_MAX_LOOPS + 1];
};

/* Points by which the first block has to be shorter so that the second begins on a destination line. */
static int64_t padding(const struct xti_loop *l, const char *d)
{
    int64_t to_line = (int64_t)(-(uintptr_t)d & 63);
    if (!l->align || l->d <= 0 || to_line % l->d)
        return 0;
    int64_t head = to_line / l->d % l->block;
    return head ? l->block - head : 0;
}

static void enter(struct nest *t, int k)
{
    const struct xti_loop *l = &t->step->loop[k];
    struct level *v = &t->level[k];
    int64_t n = v->points;
    v->i = v->pad = 0;
    if (l->cuts != XTI_CUTS_NONE) {
        v->pad = padding(l, v->d);
        n = (n + v->pad + l->block - 1) / l->block;
    }
    v->end = n;
    if (k == t->step->split) {
        v->i = xti_share_of(n, t->share.part, t->share.parts);
        v->end = xti_share_of(n, t->share.part + 1, t->share.parts);
    }
    v->first = v->i;
}

/* The point of loop k with which its step i begins. */
static int64_t point_of(const struct nest *t, int k, int64_t i)
{
    const struct xti_loop *l = &t->step->loop[k];
    int64_t at = l->cuts == XTI_CUTS_NONE ? i : i * l->block - t->level[k].pad;
    return at > 0 ? at : 0;
}

/* Puts the next level where step i of loop k begins. */
static void place(struct nest *t, int k)
{
    const struct xti_loop *l = &t->step->loop[k];
    struct level *v = &t->level[k];
    int64_t at = point_of(t, k, v->i);
    if (l->cuts != XTI_CUTS_NONE) {
        int64_t next = point_of(t, k, v->i + 1), hi = next < v->points ? next : v->points;
        int64_t *extent = l->cuts == XTI_CUTS_ROW   ? &t->job.rows
                          : l->cuts == XTI_CUTS_COL ? &t->job.cols
                                                    : &t->level[l->cuts].points;
        *extent = (hi - at) * (l->each ? l->each : 1);
        if (l->cuts == XTI_CUTS_COL && !l->each) {
            t->job.before = at;
            t->job.after = v->points - hi;
        }
    }
    v[1].d = v->d + at * l->d;
    v[1].s = v->s + at * l->s;
}

static void run_innermost(struct nest *t, int k)
{
    const struct xti_loop *l = &t->step->loop[k];
    struct level *v = &t->level[k];
    char *d = v->d + v->i * l->d;
    const char *s = v->s + v->i * l->s;
    for (; v->i < v->end; v->i++, d += l->d, s += l->s)
        t->kernel(&t->job, d, s);
}

static void run_loops(struct nest *t)
{
    int k = 0, last = t->step->n_loops - 1;
    enter(t, 0);
    for (;;) {
        if (k == last && t->step->loop[k].cuts == XTI_CUTS_NONE) {
            run_innermost(t, k);
        } else if (t->level[k].i < t->level[k].end) {
            place(t, k);
            if (k < last) {
                enter(t, ++k);
            } else {
                t->kernel(&t->job, t->level[k + 1].d, t->level[k + 1].s);
                t->level[k].i++;
            }
            continue;
        }
        if (--k < 0)
            return;
        t->level[k].i++;
    }
}

static const struct nest *nest_of(const struct xtk_job *j)
{
    return (const struct nest *)((const char *)j - offsetof(struct nest, job));
}

bool xti_nest_begins(const struct xtk_job *j, int level)
{
    const struct nest *t = nest_of(j);
    for (int k = level; k < t->step->n_loops; k++)
        if (t->level[k].i != t->level[k].first)
            return false;
    return true;
}

int xti_nest_goes_on(const struct xtk_job *j, int level)
{
    const struct nest *t = nest_of(j);
    int k = level - 1;
    while (k >= 0 && t->level[k].i + 1 >= t->level[k].end)
        k--;
    return k;
}

int64_t xti_nest_offset(const struct xtk_job *j, int loop, const int64_t *s)
{
    const struct nest *t = nest_of(j);
    int64_t off = 0;
    for (int k = 0; k < t->step->n_loops; k++) {
        const struct level *v = &t->level[k];
        off += s[k] * point_of(t, k, k > loop ? v->first : k == loop ? v->i + 1 : v->i);
    }
    return off;
}

xtk_fn xti_kernel_of(const struct xti_step *step, const struct xti_target *target)
{
    int unit = step->kernel == XTI_CPU_BRAID ? 1 : step->unit;
    enum xti_isa isa = step->store.halves ? XTI_ISA_AVX2 : target->isa;
    return xtk_find(isa, step->kernel, unit, step->param)->fn;
}

struct xtk_job xti_job_of(const struct xti_step *step, const struct xti_target *target,
                          const unsigned char *value)
{
    const struct xti_loop *last = step->n_loops ? &step->loop[step->n_loops - 1] : NULL;
    int64_t points = last && last->cuts != XTI_CUTS_NONE ? last->block : 1;
    return (struct xtk_job){.rows = step->row.n,
                            .cols = step->col.n,
                            .s_row = step->row.s,
                            .s_col = step->col.s,
                            .d_row = step->row.d,
                            .d_col = step->col.d,
                            .run = step->unit,
                            .value = value,
                            .row_at = step->list.row_at,
                            .col_at = step->list.col_at,
                            .group.s = step->list.col_at ? step->col.s : 0,
                            .group.d = step->list.row_at ? step->row.d : 0,
                            .next.s = last ? last->s * points : 0,
                            .next.d = last ? last->d * points : 0,
                            .store = step->store,
                            .machine.hints = xti_target_hints(target),
                            .machine.follows = target->machine->habits.follows,
                            .machine.far = target->machine->habits.far_ahead,
                            .machine.columns = target->machine->habits.fetch_columns};
}

void xti_run_nest(const struct xti_step *step, xtk_fn kernel, const struct xtk_job *job, char *d,
                  const char *s, struct xti_share share)
{
    struct nest t; /* 4 KB */
    t.step = step;
    t.kernel = kernel;
    t.share = share;
    t.job = *job;
    for (int k = 0; k < step->n_loops; k++)
        t.level[k].points = step->loop[k].cuts == XTI_CUTS_NONE ? step->loop[k].n : step->loop[k].whole;
    t.level[0].d = d;
    t.level[0].s = s;
    if (step->n_loops)
        run_loops(&t);
    else
        t.kernel(&t.job, t.level[0].d, t.level[0].s);
}

/* Sixteen bytes of a fill's value, whatever its width. */
static void repeat_value(const unsigned char *value, int esize, unsigned char out[16])
{
    for (int i = 0; i < 16; i += esize)
        memcpy(out + i, value, (size_t)esize);
}

int64_t xti_cut(const char *dst, int64_t lo, int64_t hi, int part, int parts)
{
    int64_t at = lo + xti_share_of(hi - lo, part, parts);
    at += (int64_t)(-(uintptr_t)(dst + at) & 63);
    return part == 0 ? lo : at < hi ? at : hi;
}

/* A step with divs and guards. */
static __attribute__((noinline)) void run_in_order(const struct xti_copy *c, const struct xti_step *step,
                                                   struct xti_share share)
{
    struct xtk_job job = {0};
    int64_t room[XTI_MAX_DIMS + XTI_MAX_DIVS + XTI_MAX_GUARDS];
    struct xti_cursor cursor;
    xti_cursor_begin(&cursor, c, step, room);
    int64_t first = step->d_byte, end = first + xti_cursor_span(&cursor);
    int64_t lo = xti_cut(c->dst, first, end, share.part, share.parts);
    int64_t hi = xti_cut(c->dst, first, end, share.part + 1, share.parts);
    if (end - first == step->bytes && xti_run_pattern(c, step, lo, hi))
        return;
    if (share.part) /* a column that begins in one share is none of the next */
        xti_cursor_seek(&cursor, lo + cursor.width - 1);
    xti_cursor_run(&cursor, &job, c->dst, 0, hi);
}

static __attribute__((noinline)) void run_straight(const struct xti_copy *c, const struct xti_step *step,
                                                   const char *src, struct xti_share share)
{
    const struct xti_plan *p = c->plan;
    const struct xti_piece *piece = &p->map.piece[step->piece];
    unsigned char value[16] = {0};
    struct xtk_job job = xti_job_of(step, &p->target, value);
    if (piece->src < 0) {
        repeat_value(piece->value, p->map.esize, value);
        src = (const char *)value;
    }
    xti_run_nest(step, xti_kernel_of(step, &p->target), &job, c->dst + step->d_byte, src, share);
}

static void run_step(const struct xti_copy *c, const struct xti_step *step, struct xti_share share)
{
    const struct xti_plan *p = c->plan;
    int from = p->map.piece[step->piece].src;
    const char *src = from < 0 ? NULL : (const char *)c->src[from] + step->s_byte;
    if (step->general)
        run_in_order(c, step, share);
    else if (step->stage.serves)
        xti_run_buffered(c, step, share);
    else if (step->kernel == XTI_CPU_MOSAIC)
        xti_run_mosaic(step, &p->target, c->dst + step->d_byte, src, share);
    else
        run_straight(c, step, src, share);
}

static void run_steps(const struct xti_copy *c, struct xti_share share)
{
    int end = c->plan->covered && !c->over ? 1 : c->plan->n_steps;
    for (int i = c->over; i < end; i++) {
        const struct xti_step *step = &c->plan->step[i];
        if (step->split >= 0)
            run_step(c, step, share);
        else if (i % share.parts == share.part)
            run_step(c, step, (struct xti_share){0, 1});
    }
}

void xti_run_share(const struct xti_copy *c, struct xti_share share)
{
    bool stream = c->plan->assembled;
    (stream ? xti_run_assembled : run_steps)(c, share);
    for (int i = 0; i < c->plan->n_steps; i++)
        stream |= c->plan->step[i].store.stream;
#if defined(__x86_64__)
    if (stream)
        __builtin_ia32_sfence(); /* streaming stores are not ordered by what tells others that we are done */
#endif
}

void xti_call_make(const struct xti_plan *p, struct xti_call *out)
{
    const struct xti_step *step = p->step;
    *out = (struct xti_call){0};
    if (p->n_steps != 1 || p->off_line || p->assembled || step->general || step->n_loops > 1 ||
        step->split >= 0 || step->stage.serves || step->kernel == XTI_CPU_MOSAIC ||
        (step->n_loops && step->loop[0].cuts != XTI_CUTS_NONE))
        return;
    const struct xti_loop one = {.n = 1}, *l = step->n_loops ? &step->loop[0] : &one;
    const struct xti_piece *piece = &p->map.piece[step->piece];
    *out = (struct xti_call){.fn = xti_kernel_of(step, &p->target),
                             .job = xti_job_of(step, &p->target, out->value),
                             .src = piece->src,
                             .stream = step->store.stream,
                             .n = l->n,
                             .s_step = l->s,
                             .d_step = l->d,
                             .s_byte = step->s_byte,
                             .d_byte = step->d_byte};
    if (piece->src < 0)
        repeat_value(piece->value, p->map.esize, out->value);
}

struct shared_copy {
    struct xti_copy copy;
    int parts;
};

static void run_part(void *arg, int i)
{
    const struct shared_copy *t = arg;
    xti_run_share(&t->copy, (struct xti_share){i, t->parts});
}

void xti_cpu_run(const struct xti_plan *p, void *dst, const void *const *src, struct xti_threads *threads)
{
    struct shared_copy t = {.copy = {.plan = xti_plan_at(p, dst), .dst = dst, .src = src},
                            .parts = xti_plan_threads(p->target.threads, p->bytes_written)};
    for (int over = 0; over <= t.copy.plan->covered; over++) {
        t.copy.over = over;
        if (t.parts < 2 || !xti_threads_run(threads, t.parts, run_part, &t))
            xti_run_share(&t.copy, (struct xti_share){0, 1});
    }
}
