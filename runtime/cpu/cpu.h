/* cpu.h: runs CPU plans. Micro-kernels are generated at build time (gen/kernels.py, templates/cpu) into a
 * registry; the instruction set is chosen once a process (cpuid and XT_ISA). Layer 4. */
#ifndef XTI_CPU_CPU_H
#define XTI_CPU_CPU_H

#include "plan/plan.h"

/* This machine: instruction set, caches, threads (0: all). Reads XT_ISA and XT_THREADS. */
void xti_cpu_target(int threads, struct xti_target *t);

struct xti_parallel {
    xt_parallel_for fn; /* NULL: threads of xt's own */
    void *pool;
};

/* Runs the plan on host buffers (starts of buffers; src[i] for input i). No allocation, no lock; any thread.
 * post: dst bytes == xti_map_eval(&p->map, ..) (test_cpu: every kernel row, strategy, width, tail). */
xt_status xti_cpu_run(const struct xti_plan *p, void *dst, const void *const *src,
                      const struct xti_parallel *par, struct xti_err *err);

#endif
