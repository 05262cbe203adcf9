/* mosaic.c: a step of strategy mosaic: its table, which depends on how the buffers lie in lines, is made for
 * each share of a run, in some microseconds. Layer 4. */
#include "plan/mosaic.h"

#include "cpu/run.h"

void xti_run_mosaic(const struct xti_step *step, const struct xti_target *target, char *d, const char *s,
                    struct xti_share share)
{
    static const struct xti_offset single = {0, 0};
    struct xti_mosaic m; /* 30 KB */
    struct xtk_job job = xti_job_of(step, target, NULL);
    struct xti_mosaic_of of = {.row_at = step->row_at ? step->row_at : &single,
                               .col_at = step->col_at,
                               .rows = step->tile_rows,
                               .cols = step->tile_cols,
                               .unit = step->unit,
                               .group = step->together,
                               .aligned = true,
                               .gaps = step->gaps,
                               .d = (uintptr_t)d,
                               .s = (uintptr_t)s};
    if (xti_mosaic_table(&of, XTI_MOSAIC_WINDOWS, &m))
        job.mosaic = &m;
    xti_run_nest(step, xti_kernel_of(step, target), &job, d, s, share);
}
