/* planning.c: memory, passes and tiles of a run. Layer 6. */
#include "files/files.h"

#include <string.h>

#include "base/num.h"

enum {
    PIECE_MIN = 64 << 10,
    PIECE_MAX = 1 << 20,
    PROGRAM_BYTES = 12 << 20, /* at most, that a process needs without buffers */
    LEAST_ROOM = 64 << 10
};

/* Of the cap a part is for the threads, for what of the page cache they have not emptied yet, for kernels and
 * tables. */
static xt_status share_memory(struct xt_files *f, struct xti_err *err)
{
    int64_t mem = f->opt.mem_bytes, own = mem / 8, piece = PIECE_MIN;
    while (piece < PIECE_MAX && piece < mem / 1024)
        piece *= 2;
    f->curve.piece_bytes = piece;
    f->requests = f->opt.requests ? f->opt.requests : f->curve.requests;
    int64_t most = mem / 4 / (xti_io_memory(1, piece) + piece);
    if (f->requests > most)
        f->requests = most ? (int)most : 1;
    own = own < PROGRAM_BYTES ? own : PROGRAM_BYTES;
    f->room = mem - own - xti_io_memory(f->requests, piece) - f->requests * piece;
    f->room = f->room / (2 * XTI_IO_BLOCK) * (2 * XTI_IO_BLOCK);
    return f->room >= LEAST_ROOM
               ? XT_OK
               : xti_fail(err, XT_ENOMEM, "%lld bytes of memory are too few: 1 MB is little", (long long)mem);
}

/* The temporary file has the result's axes in tiles of n. */
static xt_status make_tiles(struct xt_files *f, const struct xti_axes *to, const int64_t *n,
                            struct xti_err *err)
{
    struct xti_array *t = &f->tiles;
    t->kind = XTI_ARRAY_TILES;
    t->dtype = f->out.dtype;
    t->rank = to->n;
    memcpy(t->shape, to->extent, sizeof t->shape);
    memcpy(t->chunk, n, (size_t)to->n * sizeof *n);
    f->tiles_list[0] = t;
    return xti_array_measure(t, err);
}

static xt_status make_two(struct xt_files *f, const struct xti_axes *to, const int64_t *between,
                          struct xti_task two[2], struct xti_err *err)
{
    xt_status s = make_tiles(f, to, between, err);
    if (!s)
        s = xti_task_make(f->chain, f->n, f->in_list, &f->out, &f->tiles, &f->curve, &two[0], err);
    if (!s)
        s = xti_task_make(NULL, 1, f->tiles_list, &f->out, NULL, &f->curve, &two[1], err);
    return s;
}

static xt_status choose_two(struct xt_files *f, struct xti_task *one, struct xti_task two[2],
                            struct xti_tiling cut[2], struct xti_err *err)
{
    int64_t between[XT_MAX_RANK];
    xt_status s = xti_tiles_between(one, f->room, f->opt.tile_bytes, between, err);
    if (!s)
        s = make_two(f, &one->to, between, two, err);
    for (int i = 0; i < 2 && !s; i++)
        s = xti_tiles_choose(&two[i], f->room, f->opt.tile_bytes, &cut[i], err);
    if (!s)
        cut[1].seconds += f->curve.remove * (double)(f->tiles.elements * f->tiles.esize);
    return s;
}

static void take_passes(struct xt_files *f, int n, struct xti_task *task, const struct xti_tiling *cut)
{
    f->passes = n;
    for (int i = 0; i < n; i++) {
        f->task[i] = task[i];
        f->cut[i] = cut[i];
        task[i] = (struct xti_task){0};
    }
}

/* What two passes take at least: the result is written twice and read once, in the longest requests. */
static double two_at_least(const struct xt_files *f)
{
    int64_t bytes = f->out.elements * f->out.esize;
    return xti_curve_seconds(&f->curve, false, bytes) + 2 * xti_curve_seconds(&f->curve, true, bytes);
}

/* Where one pass is as fast as two could be they are not looked at. */
static xt_status choose(struct xt_files *f, struct xti_task *one, struct xti_task two[2], struct xti_err *err)
{
    struct xti_tiling cut, cuts[2];
    struct xti_err ignored = {0};
    int asked = f->opt.passes;
    double least = two_at_least(f);
    xt_status s = xti_tiles_choose(one, f->room, f->opt.tile_bytes, &cut, err);
    if (s)
        return s;
    bool look = asked == 2 || cut.seconds > least;
    s = look ? choose_two(f, one, two, cuts, asked == 2 ? err : &ignored) : XT_OK;
    if (s && asked == 2)
        return s;
    double seconds = !look ? least : s ? 0 : cuts[0].seconds + cuts[1].seconds;
    if (asked == 2 || (!asked && seconds && seconds < cut.seconds)) {
        take_passes(f, 2, two, cuts);
        f->other_seconds = cut.seconds;
        f->other_requests = cut.reads + cut.writes;
    } else {
        take_passes(f, 1, one, &cut);
        f->other_seconds = seconds;
        for (int i = 0; i < 2 && look && !s; i++)
            f->other_requests += cuts[i].reads + cuts[i].writes;
    }
    return XT_OK;
}

/* ---- the plan in the journal */

static void write_plan(struct xt_files *f)
{
    struct xti_journal_head *h = &f->head;
    h->passes = f->passes;
    h->rank = f->passes ? f->task[f->passes - 1].to.n : 0;
    if (f->passes == 2)
        memcpy(h->between, f->tiles.chunk, sizeof h->between);
    for (int i = 0; i < f->passes; i++) {
        h->depth[i] = f->cut[i].depth;
        h->tiles[i] = f->cut[i].tiles;
        memcpy(h->n[i], f->cut[i].n, sizeof h->n[i]);
    }
}

static bool fits(const struct xti_axes *a, const int64_t *n)
{
    for (int i = 0; i < a->n; i++)
        if (n[i] < 1 || n[i] > a->extent[i])
            return false;
    return true;
}

/* The tiles that an earlier run has begun with. */
static xt_status read_plan(struct xt_files *f, const struct xti_journal_head *old, struct xti_task *one,
                           struct xti_task two[2], struct xti_err *err)
{
    struct xti_tiling cut[2] = {0};
    bool good = old->passes == 1 || old->passes == 2;
    xt_status s = XT_OK;
    if (old->passes == 2)
        s = (good = fits(&one->to, old->between)) ? make_two(f, &one->to, old->between, two, err) : XT_OK;
    struct xti_task *task = old->passes == 2 ? two : one;
    for (int i = 0; i < (int)old->passes && good && !s; i++) {
        memcpy(cut[i].n, old->n[i], sizeof cut[i].n);
        cut[i].depth = old->depth[i] == 2 ? 2 : 1;
        good = fits(&task[i].to, cut[i].n);
        s = good ? xti_tiles_price(&task[i], &cut[i], err) : XT_OK;
        good = good && cut[i].tiles == old->tiles[i];
    }
    if (!good && !s)
        s = xti_fail(err, XT_EINVAL, "%s: is of another version of xt: begin anew (--restart)", f->journal);
    if (!s)
        take_passes(f, (int)old->passes, task, cut);
    return s;
}

static bool same_run(const struct xti_journal_head *a, const struct xti_journal_head *b)
{
    return !memcmp(a->line, b->line, sizeof a->line) && !memcmp(a->inputs, b->inputs, sizeof a->inputs);
}

xt_status xti_files_plan(struct xt_files *f, struct xti_err *err)
{
    struct xti_task one = {0}, two[2] = {{0}, {0}};
    struct xti_journal_head old;
    bool there = false;
    xt_status s = share_memory(f, err);
    if (s || !f->out.elements)
        return s;
    if (!f->opt.restart || f->opt.share)
        s = xti_journal_peek(f->journal, &old, &there, err);
    if (!s)
        s = xti_task_make(f->chain, f->n, f->in_list, &f->out, NULL, &f->curve, &one, err);
    bool resumes = there && same_run(&old, &f->head);
    if (resumes)
        f->head.since_ns = old.since_ns;
    if (!s)
        s = resumes ? read_plan(f, &old, &one, two, err) : choose(f, &one, two, err);
    xti_task_free(&one);
    xti_task_free(&two[0]);
    xti_task_free(&two[1]);
    if (!s)
        write_plan(f);
    return s;
}
