/* contest.c: samples in turn, and their medians. */
#include "contest.h"

#include <stdlib.h>
#include <time.h>

#define SAMPLE_SECONDS 2e-3 /* a sample repeats its run until it lasts this long */
enum { BEST_OF = 3 };

static clockid_t clock_id = CLOCK_MONOTONIC;

void contest_by_own_time(void) { clock_id = CLOCK_THREAD_CPUTIME_ID; }

static double now(void)
{
    struct timespec t;
    clock_gettime(clock_id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* All of c->repeat runs. */
static double time_runs(const struct contestant *c)
{
    double t = now();
    for (int i = 0; i < c->repeat; i++)
        c->run(c->arg, c->which);
    return now() - t;
}

double contest_sample(struct contestant *c)
{
    if (c->ask)
        return c->ask(c->arg, c->which);
    c->repeat = c->repeat ? c->repeat : 1;
    double best = time_runs(c);
    for (; best < SAMPLE_SECONDS && c->repeat < 1 << 24; best = time_runs(c))
        c->repeat *= best < SAMPLE_SECONDS / 64 ? 16 : 2;
    for (int i = 1; i < BEST_OF && c->repeat > 1; i++) {
        double t = time_runs(c);
        best = t < best ? t : best;
    }
    return best / c->repeat;
}

void contest_rounds(struct contestant *c, int n, int samples)
{
    int few = samples < SLOW_SAMPLES ? samples : SLOW_SAMPLES;
    for (int j = 0; j < n; j++)
        c[j].t[0] = contest_sample(&c[j]);
    double first = c[0].t[0];
    for (int j = 0; j < n; j++) {
        c[j].slow = c[j].t[0] > SLOW * first;
        c[j].samples = c[j].slow; /* for them this one counts */
    }
    for (int i = 1; i <= samples; i++)
        for (int j = 0; j < n; j++)
            if (!c[j].slow || c[j].samples < 1 + i * (few - 1) / samples)
                c[j].t[c[j].samples++] = contest_sample(&c[j]);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double contest_median(struct contestant *c, double *spread)
{
    double *t = c->t;
    int samples = c->samples;
    qsort(t, (size_t)samples, sizeof *t, ascending);
    double m = samples % 2 ? t[samples / 2] : (t[samples / 2 - 1] + t[samples / 2]) / 2;
    if (spread)
        *spread = m > 0 ? (t[samples * 3 / 4] - t[samples / 4]) / m : 0;
    return m;
}
