/* order.c: steps in the order of the destination: outer loops as the piece has them, the last dim as the
 * kernel's columns, the one before it as its rows. Pieces with divs and guards always run so. Layer 3. */
#include "plan/loops.h"

int64_t xti_step_col_bytes(const struct xti_step *step)
{
    /* Elements of a run move as so many bytes. */
    bool groups = step->kernel == XTI_CPU_MIRROR || step->kernel == XTI_CPU_TURN;
    return step->kernel == XTI_CPU_BLOCKS ? step->col.d : groups ? step->unit * step->param : step->unit;
}

int64_t xti_step_row_bytes(const struct xti_step *step)
{
    return (step->col.n - 1) * step->col.d + xti_step_col_bytes(step);
}

/* A contiguous run. Divs and guards tell its elements apart, nothing else does. */
static void columns_of_run(const struct xti_nest *t, struct xti_step *step)
{
    bool fill = t->piece->src < 0;
    int64_t u = fill || step->general ? t->esize : 1;
    step->kernel = fill ? XTI_CPU_FILL : XTI_CPU_BLOCKS;
    step->unit = fill ? t->esize : 1;
    step->col = (struct xti_loop){.n = t->run / u, .s = fill ? 0 : u, .d = u, .cuts = XTI_CUTS_NONE};
}

static enum xti_cpu_op kernel_of_units(const struct xti_nest *t, const struct xti_step *step)
{
    const struct xti_loop *col = &step->col;
    if (t->piece->src < 0 || col->d != step->unit)
        return XTI_CPU_WALK;
    if (step->kernel == XTI_CPU_STRIDED && col->s == step->param * step->unit)
        return XTI_CPU_STRIDED;
    return col->s == 0 ? XTI_CPU_BROADCAST : col->s == -step->unit ? XTI_CPU_REVERSE : XTI_CPU_WALK;
}

/* Units, or groups of them that follow each other backwards, along the last dim. */
static void columns_of_units(struct xti_nest *t, struct xti_step *step)
{
    if (step->kernel != XTI_CPU_MIRROR)
        step->unit = step->general ? t->esize : t->unit;
    step->col = (struct xti_loop){.n = 1, .s = step->unit, .d = step->unit, .cuts = XTI_CUTS_NONE};
    if (t->n_dims)
        step->col = t->dim[--t->n_dims];
    if (step->kernel != XTI_CPU_MIRROR)
        step->kernel = kernel_of_units(t, step);
}

void xti_order_step(const struct xti_nest *nest, struct xti_step *step)
{
    struct xti_nest t;
    xti_nest_copy(nest, &t);
    for (int i = 0; i < t.n_dims; i++) /* the destination's strides are positive again */
        if (t.dim[i].d < 0)
            xti_nest_flip(&t, i);
    step->general = !xti_piece_affine(t.piece);
    step->s_byte = t.s_byte;
    step->d_byte = t.d_byte;
    bool units = t.run == (step->general ? t.esize : t.unit) || step->kernel == XTI_CPU_MIRROR;
    if (units)
        columns_of_units(&t, step);
    else
        columns_of_run(&t, step);
    if (step->kernel != XTI_CPU_STRIDED && step->kernel != XTI_CPU_MIRROR)
        step->param = 0;
    step->row = (struct xti_loop){.n = 1, .cuts = XTI_CUTS_NONE};
    if (t.n_dims && !t.piece->n_divs)
        step->row = t.dim[--t.n_dims];
    step->n_loops = t.n_dims;
    for (int i = 0; i < t.n_dims; i++)
        step->loop[i] = t.dim[i];
}

bool xti_order_nests(const struct xti_step *step)
{
    int64_t span = xti_step_row_bytes(step);
    bool nests = step->col.n == 1 || step->col.d >= xti_step_col_bytes(step);
    for (int i = step->n_loops; i >= 0; i--) {
        const struct xti_loop *l = i == step->n_loops ? &step->row : &step->loop[i];
        nests = nests && (l->n == 1 || l->d >= span);
        span += (l->n - 1) * l->d;
    }
    return nests;
}
