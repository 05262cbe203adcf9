/* contest.h: what is timed, in turn, so that a machine that slows down slows all of them. */
#ifndef XT_BENCH_CONTEST_H
#define XT_BENCH_CONTEST_H

#include <stdbool.h>

enum {
    MAX_SAMPLES = 101,
    SLOW = 4, /* times the first contestant's seconds: who takes longer is timed less often, .. */
    SLOW_SAMPLES = 3
};

struct contestant {
    void (*run)(void *arg, int which);
    double (*ask)(void *arg, int which); /* instead of run: seconds of a run by a clock of its own; 0: none */
    void *arg;
    int which;
    int repeat;  /* runs a sample; set by contest_sample */
    int samples; /* in t; set by contest_rounds, as is .. */
    bool slow;   /* .. this */
    double t[MAX_SAMPLES];
};
/* From now on time is what this thread has run, not what has passed: on a machine with other work on it,
 * where all that is timed is this thread's. */
void contest_by_own_time(void);

/* Seconds of one run: of so many in a row that they last 2 ms. Runs that are repeated are timed warm, and the
 * best of three such times is taken: in 2 ms another process may come between. */
double contest_sample(struct contestant *c);
/* Fills t of each: a round is a sample of every one in turn. The first round warms up, and tells who is slow:
 * who differs by that much needs no more to say so. */
void contest_rounds(struct contestant *c, int n, int samples);
/* Sorts t. spread: (third quartile - first quartile) / median; NULL: not wanted. */
double contest_median(struct contestant *c, double *spread);

#endif
