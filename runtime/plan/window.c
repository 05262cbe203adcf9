/* window.c: finds how an assembled plan repeats itself along the destination. Layer 3. */
#include "base/num.h"
#include "plan/assemble.h"
#include "plan/cost.h"

enum {
    MIN_WINDOWS = 256,    /* of a thread: less time goes into listing a window than into running it */
    MAX_WINDOW = 1 << 20, /* its lists would not fit (cpu/splice.c) */
    MAX_DIMS = XTI_MAX_DIMS + 2
};

/* All dims of a step, a run's bytes among them; d descending. */
static int dims_of(const struct xti_step *step, struct xti_loop out[MAX_DIMS])
{
    int n = 0;
    for (int i = 0; i < step->n_loops; i++)
        out[n++] = step->loop[i];
    out[n++] = step->row;
    out[n++] = step->col;
    return n;
}

/* The step's box as seen from windows of c bytes. */
struct view {
    int64_t windows; /* in a range */
    int64_t ranges;
    int64_t inner; /* bytes of it in each window */
};

/* False when it does not do the same in each. at: from the destination's first byte to the step's. */
static bool view_of(const struct xti_step *step, int64_t at, int64_t c, struct view *v)
{
    struct xti_loop dim[MAX_DIMS];
    int n = dims_of(step, dim), k = 0;
    int64_t range, span = xti_step_col_bytes(step);
    while (k < n && (dim[k].n == 1 || dim[k].d > c)) /* dims of ranges */
        k++;
    if (k == n || c % dim[k].d)
        return false;
    int64_t each = c / dim[k].d; /* points of the dim in a window */
    if (dim[k].n % each || !xti_mul64(dim[k].n / each, c, &range))
        return false;
    *v = (struct view){.windows = dim[k].n / each, .ranges = 1};
    for (int i = 0; i < k; i++) {
        if (dim[i].n > 1 && dim[i].d % range)
            return false;
        v->ranges *= dim[i].n;
    }
    for (int i = k; i < n; i++)
        span += ((i == k ? each : dim[i].n) - 1) * dim[i].d;
    v->inner = step->bytes / v->windows / v->ranges;
    return at + span <= c;
}

/* Whether all steps do the same in every c bytes: together they write all of them. */
static bool repeats(const struct xti_plan *p, int64_t c, struct view *all)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->n_steps; i++) {
        struct view v = {0};
        if (!view_of(&p->step[i], p->step[i].d_byte - p->map.dst_lo * p->map.esize, c, &v))
            return false;
        if (i && (v.windows != all->windows || v.ranges != all->ranges))
            return false;
        *all = v;
        bytes += v.inner;
    }
    return bytes == c;
}

static int64_t lines_of(int64_t bytes) { return xti_mul_most(bytes, XTI_LINE / xti_gcd64(bytes, XTI_LINE)); }

static void try_window(const struct xti_plan *p, int64_t c, struct xti_window *best)
{
    struct view v = {0};
    int64_t bytes = lines_of(c);
    if (c > MAX_WINDOW || bytes > MAX_WINDOW || (best->bytes && bytes >= best->bytes) || !repeats(p, c, &v))
        return;
    int64_t range = v.windows * c;
    /* A window is listed again for each range. */
    if (range >= p->target.l2_bytes / 2 && range / bytes >= MIN_WINDOWS * (int64_t)p->target.threads)
        *best = (struct xti_window){.bytes = bytes, .row = bytes, .range = range};
}

/* A destination's stride of a line or more is where rows may begin to be alike. */
static void try_row(int64_t d, struct xti_window *w)
{
    int64_t row = lines_of(d);
    if (d >= XTI_LINE && row < w->row && w->bytes % row == 0)
        w->row = row;
}

void xti_plan_window(struct xti_plan *p)
{
    struct xti_loop dim[MAX_DIMS];
    struct xti_window w = {0};
    int room = 0;
    for (int i = 0; i < p->n_steps; i++) {
        room += p->step[i].n_loops;
        if (p->step[i].general || room > XTI_WINDOW_ROOM)
            return;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < p->n_steps; i++)
            for (int k = dims_of(&p->step[i], dim) - 1; k >= 0; k--) {
                if (pass == 0 && dim[k].n > 1)
                    try_window(p, dim[k].d, &w);
                if (pass == 1 && w.bytes && dim[k].n > 1)
                    try_row(dim[k].d, &w);
            }
    p->window = w;
}
