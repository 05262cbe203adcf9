/* measure.h: choices of CPU plans that were timed, and the timing. In the manner of FFTW's wisdom: made when
 * asked for, used whenever there, never needed. Layer 6. */
#ifndef XTI_API_MEASURE_H
#define XTI_API_MEASURE_H

#include "cache/cache.h"
#include "cpu/cpu.h"

/* What was found for a map on a target. */
struct xti_measured {
    struct xti_choice choice;
    int tried;                   /* plans that were timed; 0: none, the choice is the model's */
    int64_t model_ns, chosen_ns; /* a run of the model's plan and of the chosen one */
};

/* ---- wisdom.c: the choices known to a context. One disk entry a processor and version holds those of every
 * map, and is read when the context is made: a compile looks them up in memory. Any thread, no lock. */

struct xti_wisdom;

/* False for numbers that no version of plan/choice.c tries: they come from a file. */
bool xti_choice_valid(struct xti_choice c);

/* Of a map on a target: an outline, cheap to make, and a digest, which need not be made where no choice is
 * known for the outline. A digest costs as much as half a plan. */
struct xti_map_id {
    uint64_t outline;
    unsigned char digest[8];
};

/* d outlives it. Fails with XT_ENOMEM alone. */
xt_status xti_wisdom_open(struct xti_disk *d, struct xti_wisdom **out, struct xti_err *err);
void xti_wisdom_close(struct xti_wisdom *w);
/* False: no map of this outline is known. */
bool xti_wisdom_may_know(const struct xti_wisdom *w, uint64_t outline);
bool xti_wisdom_find(const struct xti_wisdom *w, const struct xti_map_id *id, struct xti_measured *out);
/* Keeps it in memory and, at best effort, on disk, in place of an older one. */
void xti_wisdom_add(struct xti_wisdom *w, const struct xti_map_id *id, const struct xti_measured *m);

/* ---- measure.c */

struct xti_tuning {
    struct xti_wisdom *wisdom;
    struct xti_threads *pool;
    bool measure; /* time what is not known yet */
};

/* Sets t->choice for m, and *out to what is known of it (tried 0: nothing). Timing takes up to some seconds,
 * and buffers of the operands' sizes: where they cannot be had, or are more than a quarter of the machine's
 * memory, nothing is timed. Never reads a user's buffer, never fails. */
void xti_choose(const struct xti_tuning *tuning, const struct xti_map *m, struct xti_target *t,
                struct xti_measured *out);

#endif
