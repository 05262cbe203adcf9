/* joint_cost.c: the measured rules of joint plans. Layer 3. */
#include "base/num.h"
#include "plan/cost.h"
#include "plan/joint.h"

/* The source's contiguous dim, backwards, follows the columns: its rows share lines. Rows of 410 to 520 bytes
 * do 0.50 to 0.63 times as much so (5 chains of u8, f16 and f32; Zen 5, 2026-11). */
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

/* Ratio to a plain copy, before and after (Zen 5, 2026-11). Rows in an order that goes backwards, 8 at a
 * time, of 306 bytes 0.43 and 0.89, of 480 to 600 0.56 and 0.9, of 1000 0.74 and 0.88, of 1600 0.73 and
 * 0.69; turned as well of 150 to 300 bytes 0.35 and 0.75, of 500 to 600 0.46 and 0.55, of 1000 0.74 and
 * 0.55; of 258 and 624 bytes, 269 and 2209 at a time, 0.9 and 0.75. Transposed and backwards, of 7 to 400
 * bytes, 1.0 to 2.9 times as much: f16 30 x 300 0.24 and 0.67, u8 100 x 300 0.23 and 0.56, f64 13 x 961538
 * 0.31 and 0.68. Rows of two dims, transposed, the source's run of 5 to 300 units: f32 and f64 of 100 to
 * 500 bytes 1.2 to 2.7 times as much, of 600 0.4 to 1.9, of 32 to 48 0.6 to 1.6; c128 of 100 to 360 1.0 to
 * 1.8 times, of 480 0.7 to 1.4 (in other orders, of 112 to 500 bytes, 1.05 to 2.2 times); f16 of 100 to
 * 330 1.1 to 1.7 times, of 500 0.5 to 0.8; u8 of 45 to 620 0.4 to 1.2. One unit again and again, in rows of
 * 80, 136, 200 and 300 bytes: u8 0.65 to 0.96 and 1.5 to 1.9, f16 0.38 to 0.71 and 1.4 to 1.7, f32 0.38 to
 * 0.82 and 1.2 to 1.7, f64 0.36 to 0.86 and 1.4 to 1.8. */
bool xti_joint_short_rows(const struct xti_plan *p)
{
    enum { LONG = 700 };
    const struct xti_step *step = p->step;
    struct xti_nest t;
    if (p->map.n_pieces != 1 || p->assembled || step->buffered || step->general)
        return false;
    xti_nest_of(&p->map, 0, &t);
    if (units_again(&t))
        return true;
    if (step->kernel == XTI_CPU_TRANSPOSE || step->kernel == XTI_CPU_TILE || step->kernel == XTI_CPU_STRIDED)
        return turned_rows_follow(&t) || rows_follow(&t) || wide_rows_follow(&t);
    bool rows = step->kernel == XTI_CPU_BLOCKS || step->kernel == XTI_CPU_REVERSE;
    return rows && in_order_backwards(&t, LONG);
}

/* Ratio to a plain copy, before and after (Zen 5, 2026-11). Transposed, with a border of 1 to 5 elements: f64
 * 8 x 1630327 0.28 and 0.93, f32 15 x 1948513 0.37 and 0.9, f16 36 x 1652361 0.2 and 0.75, u8 112 x 883185
 * 0.25 and 0.66; rows of 500 bytes and more alike or worse, down to half: f32 300 x 87066 0.73 and 0.45. Rows
 * with borders that are no windows: u8 1873159 x 56 0.26 and 0.92, u8 51040 x 9 x 16 x 15 0.32 and 0.73,
 * permuted f32 7 x 48852 x 80 0.44 and 0.82; in the source's order, too, of 384 to 640 bytes 1.4 times as
 * much (14 chains, 0.8 to 3.3), longer ones often less: f32 102 x 226 of 100 x 224 0.8. */
bool xti_joint_serves(const struct xti_plan *p, int64_t run)
{
    enum { SHORT = 640, LONG = 1536, LONGER = 2048, LONG_RUN = 512, FAR = 1 << 14 };
    int64_t row = p->joint.row;
    struct xti_nest t;
    if (run < XTI_LANE)
        return false;
    xti_nest_rows(&p->map, 0, row, &t);
    bool permuted = t.n_dims && xti_abs64(t.dim[t.n_dims - 1].s) >= FAR;
    return row <= SHORT || (p->assembled ? permuted && row <= LONGER : run >= LONG_RUN && row <= LONG);
}
