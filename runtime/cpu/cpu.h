/* cpu.h: runs CPU plans. Micro-kernels are generated at build time (gen/kernels.py, templates/cpu) into a
 * registry; the instruction set is chosen once a process (xti_cpu_has and XT_ISA). Layer 4. */
#ifndef XTI_CPU_CPU_H
#define XTI_CPU_CPU_H

#include "base/threads.h"
#include "cpu/kernels.h"
#include "plan/plan.h"

enum { XTI_MAX_THREADS = 1024 }; /* of a copy */

/* Whether there are kernels of that set, and this processor runs them. */
bool xti_cpu_has(enum xti_isa isa);

/* This machine: instruction set, caches, threads (0: all). Reads XT_ISA and XT_THREADS. */
void xti_cpu_target(int threads, struct xti_target *t);

/* The place so many bytes on: it may lie outside of the array, even of all memory, where divs or guards lead
 * back. */
static inline const char *xti_place(const void *p, int64_t bytes)
{
    return (const char *)((uintptr_t)p + (uintptr_t)bytes);
}

/* The plan for a destination that begins here. */
static inline const struct xti_plan *xti_plan_at(const struct xti_plan *p, const void *dst)
{
    return p->off_line && (uintptr_t)dst % XTI_LINE ? p->off_line : p;
}

/* Runs the plan on host buffers (starts of buffers; src[i] for input i). No allocation but that of threads
 * that are not there yet, no lock; any thread. threads NULL: on this one alone.
 * post: dst bytes == xti_map_eval(&p->map, ..) (test_cpu: every kernel row, strategy, width, tail). */
void xti_cpu_run(const struct xti_plan *p, void *dst, const void *const *src, struct xti_threads *threads);

/* A plan that is one micro-kernel in a row of calls at most, made ready: what small copies take is the way to
 * their kernel. */
struct xti_call {
    xtk_fn fn; /* NULL: the plan is more than that */
    struct xtk_job job;
    int src; /* number of the input, or -1: value */
    bool stream;
    int64_t n, s_step, d_step; /* calls, and bytes from one to the next */
    int64_t s_byte, d_byte;    /* of the first, from the buffers' starts */
    unsigned char value[16];
};

/* out stays where it is: it points into itself and into p, which outlives it. */
void xti_call_make(const struct xti_plan *p, struct xti_call *out);

#endif
