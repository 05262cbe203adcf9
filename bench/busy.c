/* busy.c: what other programs ran meanwhile, and how far runs of the same row differ. */
#include "busy.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define WIDE_SPREAD 0.15 /* the median of a list: in quiet hours 0.03 to 0.1 (bench/results) */
#define SOME        0.3  /* of a processor */

/* Seconds that all processors worked; a host's other guests count, too. 0: not known. */
static double worked(void)
{
    unsigned long long user, nice, system, idle, wait, irq, soft, steal;
    FILE *f = fopen("/proc/stat", "r");
    int n = f ? fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait,
                       &irq, &soft, &steal)
              : 0;
    if (f)
        fclose(f);
    return n == 8 ? (double)(user + nice + system + irq + soft + steal) / (double)sysconf(_SC_CLK_TCK) : 0;
}

static double own_of(int who)
{
    struct rusage u;
    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

void busy_begin(struct busy *b)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    b->wall = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    b->own = own_of(RUSAGE_SELF) + own_of(RUSAGE_CHILDREN);
    b->all = worked();
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_spread(const struct bench_row *rows, int n)
{
    double *s = n ? malloc((size_t)n * sizeof *s) : NULL, median = 0;
    for (int i = 0; s && i < n; i++)
        s[i] = rows[i].spread;
    if (s) {
        qsort(s, (size_t)n, sizeof *s, by_size);
        median = s[n / 2];
    }
    free(s);
    return median;
}

/* others: processors that other programs took. They are in the way when there are not enough for all. */
static bool is_busy(double others, double processors, int threads, double spread)
{
    return spread > WIDE_SPREAD || (others > SOME && others + threads > processors + SOME);
}

const char *busy_text(const struct busy *b, const struct bench_row *rows, int n, char *buf, size_t size)
{
    struct busy now;
    busy_begin(&now);
    double wall = now.wall - b->wall, processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
    double others = wall > 0 ? ((now.all - b->all) - (now.own - b->own)) / wall : 0;
    double spread = median_spread(rows, n);
    if (!is_busy(others, processors, bench_threads(), spread))
        return NULL;
    int said = snprintf(buf, size, "This machine is busy: ");
    if (others > SOME)
        said += snprintf(buf + said, size - (size_t)said, "other programs took %.1f of its %.0f processors%s",
                         others, processors, spread > WIDE_SPREAD ? ", and " : "");
    if (spread > WIDE_SPREAD)
        said +=
            snprintf(buf + said, size - (size_t)said, "runs of the same row differ by %.0f %%", spread * 100);
    snprintf(buf + said, size - (size_t)said,
             ".\nThe figures mean little: measure again when it is quiet, or XT_THREADS=1 xt bench --busy, "
             "which counts xt's own time.\n");
    return buf;
}
