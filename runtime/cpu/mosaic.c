/* mosaic.c: a step of strategy mosaic: its table, which depends on how the buffers lie in lines, is made for
 * each share of a run, in some microseconds. Layer 4. */
#include "plan/mosaic.h"

#include "cpu/run.h"

void xti_run_mosaic(const struct xti_step *step, const struct xti_target *target, char *d, const char *s,
                    struct xti_share share)
{
    struct xti_mosaic m; /* 30 KB */
    struct xtk_job job = xti_job_of(step, target, NULL);
    struct xti_mosaic_of of = xti_mosaic_of(step, target->isa);
    of.aligned = step->store.stream; /* then rows are whole lines */
    of.d = (uintptr_t)d;
    of.s = (uintptr_t)s;
    if (xti_mosaic_table(&of, &m)) {
        if (step->bytes > target->l2_bytes / 2) /* else it is near */
            xti_mosaic_fetches(&of, &m);
        job.mosaic = &m;
    }
    xti_run_nest(step, xti_kernel_of(step, target), &job, d, s, share);
}
