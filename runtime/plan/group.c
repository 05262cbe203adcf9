/* group.c: groups of blocks, and the runs that they read and write. Layer 3. */
#include "plan/buffered.h"

#include "base/num.h"
#include "plan/cost.h"

enum {
    GROUPS = 7, /* fit the second cache, of GROUP_BYTES at most */
    GROUP_BYTES = 1 << 20,
    SHORT_BYTES = 512 /* runs below it are fetched as parts of longer ones */
};

static int64_t stride(const struct xti_loop *l, bool source) { return source ? l->s : l->d; }

void xti_runs_sort(struct xti_loop *dim, int n, bool source)
{
    for (int i = 1; i < n; i++) {
        struct xti_loop l = dim[i];
        int k = i;
        for (; k > 0 && xti_abs64(stride(&dim[k - 1], source)) > xti_abs64(stride(&l, source)); k--)
            dim[k] = dim[k - 1];
        dim[k] = l;
    }
}

struct xti_runs xti_runs_of(int64_t run, struct xti_loop *dim, int n, bool source)
{
    struct xti_runs r = {.bytes = run, .n_runs = 1};
    int i = 0;
    xti_runs_sort(dim, n, source);
    for (; i < n && stride(&dim[i], source) == r.bytes; i++)
        r.bytes *= dim[i].n;
    for (; i < n; i++) {
        r.n[r.n_dims] = dim[i].n;
        r.stride[r.n_dims++] = stride(&dim[i], source);
        r.n_runs *= dim[i].n;
    }
    return r;
}

/* What of the source is fetched: from the lowest unit on, and no line twice where runs lie near. */
static struct xti_runs fetched(int64_t run, struct xti_loop *dim, int n)
{
    int64_t low = 0;
    int k = 0;
    for (int i = 0; i < n; i++) {
        low += dim[i].s < 0 ? (dim[i].n - 1) * dim[i].s : 0;
        dim[i].s = (int64_t)xti_abs64(dim[i].s);
    }
    xti_runs_sort(dim, n, true);
    for (; k < n && dim[k].s <= run + XTI_LINE; k++)
        run += (dim[k].n - 1) * dim[k].s;
    struct xti_runs r = xti_runs_of(run, dim + k, n - k, true);
    r.low = low;
    return r;
}

int xti_parts_of(const struct xti_plan *p) { return p->joint.n ? p->joint.n : 1; }

struct xti_loop xti_part_loop(const struct xti_plan *p, int part, const struct xti_loop *l)
{
    struct xti_loop out = *l;
    if (!p->joint.n)
        return out;
    const struct xti_piece *x = &p->map.piece[p->joint.piece[part]];
    for (int i = 0; i < x->n_dims; i++)
        if (x->dim[i].d * p->map.esize == (int64_t)xti_abs64(l->d))
            out.s = (l->d < 0 ? -x->dim[i].s : x->dim[i].s) * p->map.esize;
    return out;
}

struct xti_runs xti_group_source(const struct xti_plan *p, const struct xti_step *step, int part, int group)
{
    struct xti_loop dim[XTI_MAX_LOOPS + XTI_MAX_DIMS];
    int n = step->list.row_dims + step->list.col_dims;
    for (int k = 0; k < n; k++)
        dim[k] = xti_part_loop(p, part, &step->loop[step->n_loops + k]);
    for (int i = group; i < step->n_loops; i++) {
        const struct xti_loop *l = &step->loop[i];
        if (l->cuts == XTI_CUTS_NONE)
            dim[n++] = xti_part_loop(p, part, l);
        else
            dim[l->cuts == XTI_CUTS_ROW ? 0 : step->list.row_dims].n = xti_block_of(step, i, l->whole);
    }
    const struct xti_piece *x = p->joint.n ? &p->map.piece[p->joint.piece[part]] : NULL;
    for (int i = 0; x && i < x->n_dims; i++)
        if (x->dim[i].d * p->map.esize < p->joint.row)
            dim[n++] = (struct xti_loop){.n = x->dim[i].n, .s = x->dim[i].s * p->map.esize};
    int64_t run = x ? p->map.esize : step->unit;
    return fetched(run, dim, n);
}

/* Makes two loops of one: over even parts of at most so many of its steps, points or blocks, and inside it
 * over the steps. */
static void cut_loop(struct xti_step *step, int i, int64_t steps)
{
    struct xti_loop *l = &step->loop[i];
    bool blocks = l->cuts != XTI_CUTS_NONE;
    for (int k = step->n_loops++ + step->list.row_dims + step->list.col_dims; k > i; k--)
        step->loop[k] = step->loop[k - 1];
    l->whole = blocks ? l->whole : l->n;
    l->block = xti_ceil_div(l->n, xti_ceil_div(l->n, steps)) * (blocks ? l->block : 1);
    l->n = xti_ceil_div(l->whole, l->block);
    l->cuts = i + 1;
    l->each = 0;
    l[1].n = blocks ? l->block / l[1].block : l->block;
}

/* Of the part that reads most; the first one's runs are known. */
static int64_t group_bytes(const struct xti_plan *p, const struct xti_step *step, int group,
                           const struct xti_runs *first)
{
    int64_t most = first->bytes * first->n_runs;
    for (int k = 1; k < xti_parts_of(p); k++) {
        struct xti_runs r = xti_group_source(p, step, k, group);
        int64_t bytes = r.bytes * r.n_runs;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Goes on loop by loop. */
void xti_group_blocks(const struct xti_plan *p, struct xti_step *step)
{
    const struct xti_target *target = &p->target;
    int64_t share = target->l2_bytes / GROUPS;
    int64_t most = (share < GROUP_BYTES ? share : GROUP_BYTES) / xti_parts_of(p);
    struct xti_runs r = xti_group_source(p, step, 0, step->n_loops), more;
    int64_t least = r.bytes < SHORT_BYTES && xti_may(target, XTI_GROUPS) ? XTI_GROUP_RUN_BYTES : 0;
    for (step->stage.group = step->n_loops; step->stage.group && r.bytes < least;
         step->stage.group--, r = more) {
        int i = step->stage.group - 1;
        int64_t points = most / group_bytes(p, step, i + 1, &r);
        more = xti_group_source(p, step, 0, i);
        if (more.bytes == r.bytes)
            return;
        if (group_bytes(p, step, i, &more) > most) {
            if (points > 1)
                cut_loop(step, i, points);
            return;
        }
    }
}

/* The block as a piece: its dims, ascending in the destination, follow each other in the buffer. In elements;
 * d ends with the innermost, of which there are k. Returns how many there are. */
static int piece_of(int64_t run, int esize, const struct xti_loop *dim, int n, struct xti_dim *d, int k)
{
    int64_t bytes = run;
    for (int i = 0; i < n; bytes *= dim[i++].n) {
        struct xti_dim *in = &d[-k], out = {dim[i].n, dim[i].s / esize, bytes / esize};
        if (k && xti_mul_most(in->s, in->n) == out.s && in->d * in->n == out.d)
            in->n *= out.n;
        else if (out.n > 1)
            d[-++k] = out;
    }
    return k;
}

/* Inside of a unit: a run, or what a part has there. Returns how many dims. */
static int unit_dims(const struct xti_plan *p, const struct xti_step *step, int part, struct xti_dim *d)
{
    const struct xti_piece *x = p->joint.n ? &p->map.piece[p->joint.piece[part]] : NULL;
    int k = 0;
    for (int i = x ? x->n_dims - 1 : -1; i >= 0 && x->dim[i].d * p->map.esize < p->joint.row; i--)
        d[-++k] = x->dim[i];
    if (!x && step->unit > p->map.esize)
        d[-++k] = (struct xti_dim){step->unit / p->map.esize, 1, 1};
    return k;
}

/* A block of all dims that a step's rows and columns stand for. */
struct xti_piece xti_block_piece(const struct xti_plan *p, const struct xti_step *step, int part,
                                 const struct xti_loop *dim, struct xti_dim d[2 * XTI_MAX_DIMS])
{
    struct xti_loop own[2 * XTI_MAX_DIMS];
    int n = step->list.row_dims + step->list.col_dims, k = unit_dims(p, step, part, d + 2 * XTI_MAX_DIMS);
    for (int i = 0; i < n; i++)
        own[i] = xti_part_loop(p, part, &dim[i]);
    k = piece_of(step->unit, p->map.esize, own, n, d + 2 * XTI_MAX_DIMS, k);
    return (struct xti_piece){.n_dims = k, .dim = d + 2 * XTI_MAX_DIMS - k};
}

struct xti_plan xti_block_plan(const struct xti_plan *p, const struct xti_piece *piece)
{
    struct xti_plan sub = {.target = p->target,
                           .strategies = p->strategies,
                           .map = {.esize = p->map.esize, .n_pieces = 1, .piece = (struct xti_piece *)piece},
                           .bytes_written = xti_piece_numel(piece) * p->map.esize};
    sub.target.threads = 1;
    sub.target.choice = (struct xti_choice){.stream = -1, .without = p->target.choice.without};
    return sub;
}
