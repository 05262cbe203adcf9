/* joint_cost.c: the measured rules of joint plans. Layer 3. */
#include "base/num.h"
#include "plan/cost.h"
#include "plan/joint.h"

/* The source's contiguous dim, backwards, follows the columns: its rows share lines. */
static bool turned_rows_follow(const struct xti_nest *t)
{
    enum { MOST = 384 };
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    return cs && cd && cs->d == -cd->n * t->unit && cd->n * t->unit <= MOST;
}

/* It follows some columns. */
static bool rows_follow(const struct xti_nest *t)
{
    enum { LEAST = 64, MOST = 512, LESS = 360 };
    const struct xti_loop *cs = xti_nest_cs(t);
    int64_t run = t->run;
    int cols = 0;
    for (int i = t->n_dims - 1; i >= 0 && t->dim[i].d == run && i != t->cs; i--, cols++)
        run *= t->dim[i].n;
    return cs && cols && cs->d == run && run % XTI_LINE && run >= LEAST && t->unit > 1 &&
           run <= (t->unit > 2 && t->unit < XTI_LANE ? MOST : LESS);
}

enum { ROWS_MOST = 1536 }; /* bytes of those that begin anywhere in a line */

static bool begins_anywhere(int64_t row) { return row > XTI_LINE && row <= ROWS_MOST && row % XTI_LINE; }

/* Rows of 16-byte units, of matrices with few units in a row of the source. */
static bool wide_rows_follow(const struct xti_nest *t)
{
    enum { FEW = 160 };
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    int64_t source = cs ? cs->n * t->unit : 0;
    return cs && cd && t->unit == XTI_LANE && cd->s == source && source <= FEW &&
           begins_anywhere(cd->n * t->unit);
}

/* Rows of one unit again and again, which follow each other on both sides. */
static bool units_again(const struct xti_nest *t)
{
    const struct xti_loop *cs = xti_nest_cs(t), *cd = xti_nest_cd(t);
    return cs && cd && !cd->s && cs->d == cd->n * t->unit && begins_anywhere(cs->d);
}

/* Few rows of at most so many bytes lie in the order of the destination, as those around them, or
 * backwards. */
static bool in_order_backwards(const struct xti_nest *t, int64_t most)
{
    enum { FEW = 64 };
    int last = t->n_dims - 1;
    bool units = last >= 0 && t->unit && t->dim[last].d == t->unit, backwards = false;
    int rows = last - units;
    for (int i = 0; i < last; i++)
        if (xti_abs64(t->dim[i].s) < xti_abs64(t->dim[i + 1].s))
            return false;
    for (int i = 0; i <= rows; i++)
        backwards |= t->dim[i].s < 0;
    return backwards && t->dim[rows].n <= FEW && (units ? t->dim[last].n * t->unit : t->run) <= most;
}

/* Rows that share lines with their neighbours and lie in no order of the source that prefetching follows. */
bool xti_joint_short_rows(const struct xti_plan *p)
{
    enum { LONG = 700 };
    const struct xti_step *step = p->step;
    struct xti_nest t;
    if (p->map.n_pieces != 1 || p->assembled || step->stage.serves || step->general)
        return false;
    xti_nest_of(&p->map, 0, &t);
    if (units_again(&t))
        return true;
    if (step->kernel == XTI_CPU_TRANSPOSE || step->kernel == XTI_CPU_TILE || step->kernel == XTI_CPU_STRIDED)
        return turned_rows_follow(&t) || rows_follow(&t) || wide_rows_follow(&t);
    bool rows = step->kernel == XTI_CPU_BLOCKS || step->kernel == XTI_CPU_REVERSE;
    return rows && in_order_backwards(&t, LONG);
}

/* Short rows gain by a buffer; longer ones where the source is far from the order of the destination. */
bool xti_joint_serves(const struct xti_plan *p, int64_t run)
{
    enum { SHORT = 640, LONG = 1536, LONGER = 2048, LONG_RUN = 512, FAR = 1 << 14 };
    int64_t row = p->joint.row;
    struct xti_nest t;
    xti_nest_rows(&p->map, 0, row, &t);
    bool permuted = t.n_dims && xti_abs64(t.dim[t.n_dims - 1].s) >= FAR;
    return row <= SHORT || (p->assembled ? permuted && row <= LONGER : run >= LONG_RUN && row <= LONG);
}
