/* loops.c: the loops around a kernel. Layer 3. */
#include "plan/loops.h"

#include <string.h>

#include "base/num.h"
#include "plan/cost.h"

/* Bytes by which one step of a loop moves on either side. */
static uint64_t stride_of(const struct xti_loop *l, bool source)
{
    uint64_t st = xti_abs64(source ? l->s : l->d);
    return l->cuts == XTI_CUTS_NONE ? st : st * (uint64_t)l->block;
}

static struct xti_loop *extent_of(struct xti_step *step, int cuts)
{
    return cuts == XTI_CUTS_ROW ? &step->row : &step->col;
}

static void cut(struct xti_step *step, int cuts, int64_t block, bool align)
{
    const struct xti_loop *whole = extent_of(step, cuts);
    if (whole->n <= block)
        return;
    step->loop[step->n_loops++] = (struct xti_loop){.n = xti_ceil_div(whole->n, block),
                                                    .s = whole->s,
                                                    .d = whole->d,
                                                    .whole = whole->n,
                                                    .block = block,
                                                    .cuts = cuts,
                                                    .align = align};
    *(cuts == XTI_CUTS_ROW ? &step->tile.rows : &step->tile.cols) = block;
}

/* Blocks of one point would not go outside of the loop that they cut. */
void xti_loops_block(struct xti_step *step, int cuts, int64_t block, bool align)
{
    int by = cuts == XTI_CUTS_COL ? step->choice.cols : step->choice.rows;
    int64_t n = by > 0 ? block << by : block >> -by;
    cut(step, cuts, n > 2 ? n : 2, align);
}

/* Streaming copies read in memory order and scatter whole lines: BSHD -> BHSD f16 took 6.7 ms so, 15.2 ms in
 * the order of the destination. Others: the sum of both, as in NumPy, so that neither side jumps in the inner
 * loops. */
static bool goes_outside(const struct xti_step *step, const struct xti_loop *a, const struct xti_loop *b)
{
    uint64_t sa = stride_of(a, true), sb = stride_of(b, true), da = stride_of(a, false),
             db = stride_of(b, false);
    enum xti_order order = step->choice.order   ? (enum xti_order)step->choice.order
                           : step->store.stream ? XTI_ORDER_SOURCE
                                                : XTI_ORDER_SUM;
    if (order == XTI_ORDER_SOURCE)
        return sa != sb ? sa > sb : da > db;
    if (order == XTI_ORDER_DESTINATION)
        return da != db ? da > db : sa > sb;
    return sa + da > sb + db;
}

void xti_loops_order(struct xti_step *step)
{
    for (int i = 0; i < step->n_loops; i++) {
        struct xti_loop l = step->loop[i];
        int k = i;
        for (; k > 0 && goes_outside(step, &l, &step->loop[k - 1]); k--)
            step->loop[k] = step->loop[k - 1];
        step->loop[k] = l;
    }
}

void xti_loops_take_row(struct xti_step *step)
{
    if (step->row.n != 1 || !step->n_loops || step->loop[step->n_loops - 1].cuts != XTI_CUTS_NONE)
        return;
    step->row = step->loop[--step->n_loops];
}

/* A loop serves when its steps write lines of their own (but for those at the seams of misaligned blocks) and
 * there are enough of them. The outermost that serves is taken. */
static int splittable(const struct xti_step *step, int64_t at_least)
{
    for (int i = 0; i < step->n_loops; i++)
        if (step->loop[i].n >= at_least && stride_of(&step->loop[i], false) >= XTI_LINE)
            return i;
    return -1;
}

static bool cut_side(struct xti_step *step, int cuts, int64_t parts)
{
    const struct xti_loop *l = extent_of(step, cuts);
    bool already = false;
    for (int i = 0; i < step->n_loops; i++)
        already |= step->loop[i].cuts == cuts;
    if (already || l->n < parts || step->list.row_at || step->list.col_at || step->list.row_dims ||
        step->list.col_dims)
        return false;
    int64_t lines = l->n / parts * (int64_t)xti_abs64(l->d) / XTI_LINE;
    if (lines < 1)
        return false;
    int64_t per_line = xti_abs64(l->d) >= XTI_LINE ? 1 : XTI_LINE / (int64_t)xti_abs64(l->d);
    cut(step, cuts, l->n / parts / per_line * per_line, false);
    struct xti_loop blocks = step->loop[step->n_loops - 1];
    memmove(step->loop + 1, step->loop, (size_t)(step->n_loops - 1) * sizeof blocks);
    step->loop[0] = blocks;
    return true;
}

/* Weaves are of all rows. Of rows that share lines of the source kernels want many: sooner columns. */
static bool cut_kernel(struct xti_step *step, int64_t parts)
{
    bool weave = step->kernel == XTI_CPU_INTERLEAVE || step->kernel == XTI_CPU_DEINTERLEAVE;
    int64_t s = (int64_t)xti_abs64(step->row.s), n = step->row.n / parts;
    if (!weave && n && (!s || s >= XTI_LINE || n * s >= XTI_LINE))
        return cut_side(step, XTI_CUTS_ROW, parts);
    return cut_side(step, XTI_CUTS_COL, parts) || (!weave && cut_side(step, XTI_CUTS_ROW, parts));
}

void xti_loops_split(const struct xti_target *t, struct xti_step *step)
{
    int64_t threads = t->threads;
    step->split = -1;
    if (threads > 1 && step->general) /* shared by bytes of the destination */
        step->split = xti_order_nests(step) ? 0 : -1;
    else if (threads > 1 && (step->split = splittable(step, 4 * threads)) < 0)
        step->split = cut_kernel(step, 4 * threads) ? 0 : splittable(step, 2);
}
