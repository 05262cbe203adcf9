/* run.h: a share of a plan, as threads get it. Internal to cpu. Layer 4. */
#ifndef XTI_CPU_RUN_H
#define XTI_CPU_RUN_H

#include "cpu/cpu.h"
#include "cpu/kernels.h"

/* Part `part` of `parts`: [n*part/parts, n*(part+1)/parts) of the n steps of a split loop. */
struct xti_share {
    int part, parts;
};
static inline int64_t xti_share_of(int64_t n, int part, int parts)
{
    return n / parts * part + n % parts * part / parts;
}

/* Byte at which part `part` of `parts` of the destination's bytes [lo, hi) begins: on a line, but for lo. */
int64_t xti_cut(const char *dst, int64_t lo, int64_t hi, int part, int parts);

struct xti_copy {
    const struct xti_plan *plan;
    char *dst;
    const void *const *src;
    bool over; /* of a covered plan: what comes after the first step, when all shares of that are done */
};

/* Runs the share of every step and makes its stores visible to others. Shares write different bytes. */
void xti_run_share(const struct xti_copy *c, struct xti_share share);

/* What a step calls for each of its boxes, and with what. */
xtk_fn xti_kernel_of(const struct xti_step *step, const struct xti_target *target);
struct xtk_job xti_job_of(const struct xti_step *step, const struct xti_target *target,
                          const unsigned char *value);
/* The loops of a step around a kernel. job: its first; rows, cols, before and after are set on the way. */
void xti_run_nest(const struct xti_step *step, xtk_fn kernel, const struct xtk_job *job, char *d,
                  const char *s, struct xti_share share);

/* For a kernel that a nest calls with this job. Do all loops from `level` on stand at their first steps? */
bool xti_nest_begins(const struct xtk_job *j, int level);
/* The innermost loop outside of `level` that is not at its last step; -1: none. And how far a source is from
 * its first byte when that loop has gone a step further, by its strides; n_loops: now. */
int xti_nest_goes_on(const struct xtk_job *j, int level);
int64_t xti_nest_offset(const struct xtk_job *j, int loop, const int64_t *s);

/* The share of a buffered step. (buffered.c) */
void xti_run_buffered(const struct xti_copy *c, const struct xti_step *step, struct xti_share share);

/* The share of a step of mosaics. (mosaic.c) */
void xti_run_mosaic(const struct xti_step *step, const struct xti_target *target, char *d, const char *s,
                    struct xti_share share);

/* The share of an assembled plan. (assemble.c) */
void xti_run_assembled(const struct xti_copy *c, struct xti_share share);

#endif
