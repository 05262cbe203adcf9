/* timing.c: how long a kernel takes: for xt explain --time. */
#include "tool.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 9, ALIGN = 64 };
#define SAMPLE_SECONDS 1e-3 /* a sample repeats the run until it lasts this long */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double sample(const struct xt_kernel *k, void *dst, const void *const *src, int *repeat)
{
    for (;;) {
        double t = now();
        for (int i = 0; i < *repeat; i++)
            if (xt_run(k, dst, src, NULL))
                return 0;
        t = now() - t;
        if (t >= SAMPLE_SECONDS || *repeat >= 1 << 24)
            return t / *repeat;
        *repeat *= t < SAMPLE_SECONDS / 16 ? 8 : 2;
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Pages that were written to: others are all one page of zeros. */
static void *buffer(int64_t bytes)
{
    size_t size = ((size_t)bytes + ALIGN) / ALIGN * ALIGN;
    void *p = aligned_alloc(ALIGN, size);
    if (p)
        memset(p, 1, size);
    return p;
}

double median_seconds(const struct xt_kernel *k)
{
    struct xt_kernel_info info = {.size = sizeof info};
    int n_inputs = 0;
    while (xt_src_min_bytes(k, n_inputs) >= 0)
        n_inputs++;
    double t[SAMPLES], median = 0;
    void **src = calloc((size_t)n_inputs + 1, sizeof *src);
    bool ok = src && !xt_kernel_get(k, &info) && (src[n_inputs] = buffer(info.dst_min_bytes));
    for (int i = 0; i < n_inputs && ok; i++)
        ok = (src[i] = buffer(xt_src_min_bytes(k, i)));
    int repeat = 1;
    if (ok)
        sample(k, src[n_inputs], (const void *const *)src, &repeat); /* warms up */
    for (int i = 0; i < SAMPLES && ok; i++)
        t[i] = sample(k, src[n_inputs], (const void *const *)src, &repeat);
    if (ok) {
        qsort(t, SAMPLES, sizeof *t, ascending);
        median = t[SAMPLES / 2];
    }
    for (int i = 0; src && i <= n_inputs; i++)
        free(src[i]);
    free(src);
    return median;
}
