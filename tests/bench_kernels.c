/* bench_kernels.c: every row of the micro-kernel registry at the size of the first cache: `make
 * bench-kernels`.
 *
 *     bench_kernels [TEXT]    rows whose name contains TEXT
 *
 * A line a row: bytes that a call writes, its nanoseconds, GB/s written; then the GB/s of the same job by the
 * op's scalar row, and of a memcpy of as many bytes. All three are timed in turn, medians of 9. The jobs are
 * those of test_kernels.c, rows on lines, without streaming. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/cpu.h"
#include "support/kernel_job.h"

enum { SIDE_BYTES = 8 << 10, AREA = 4 * SIDE_BYTES, LINE = 64, SAMPLES = 9, CONTESTANTS = 3 };
static const double SAMPLE_NS = 2e4;

static _Alignas(4096) char src_area[AREA], dst_area[AREA];

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* About SIDE_BYTES to write: squares where columns are apart on a side, else rows of 1 KiB. */
static void make_job(const struct xtk_row *k, struct kernel_job *j)
{
    int64_t rows = SIDE_BYTES / 1024, cols = 1024 / k->unit, side = LINE;
    if (k->op == XTI_CPU_TRANSPOSE || k->op == XTI_CPU_WALK || k->op == XTI_CPU_TILE ||
        k->op == XTI_CPU_TURN) {
        while (side * side * k->unit > SIDE_BYTES)
            side /= 2;
        rows = cols = side;
    }
    if (k->op == XTI_CPU_DEINTERLEAVE || k->op == XTI_CPU_INTERLEAVE)
        cols *= rows;
    if (k->op == XTI_CPU_BRAID)
        cols = rows;
    if (k->param)
        cols /= k->param;
    kernel_job_make(k, rows, cols, (struct kernel_pitch){.round = LINE}, false, j);
}

static void run(const struct kernel_job *j, const struct xtk_row *k, int64_t n)
{
    char *d = dst_area - j->d_lo;
    const char *s = src_area - j->s_lo;
    size_t bytes = (size_t)kernel_job_bytes(j);
    for (int64_t i = 0; i < n; i++) {
        if (k)
            kernel_job_run(j, d, s);
        else
            memcpy(dst_area, src_area, bytes);
        __asm__ volatile("" ::: "memory");
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds a call of each contestant: a row, or NULL for memcpy. */
static void time_all(const struct kernel_job *j, const struct xtk_row *const *who, double *ns)
{
    double sample[CONTESTANTS][SAMPLES];
    int64_t n[CONTESTANTS];
    for (int c = 0; c < CONTESTANTS; c++) {
        double t = 0;
        for (n[c] = 1; t < SAMPLE_NS; n[c] *= 2) {
            t = now_ns();
            run(j, who[c], n[c]);
            t = now_ns() - t;
        }
    }
    for (int i = 0; i < SAMPLES; i++)
        for (int c = 0; c < CONTESTANTS; c++) {
            double t = now_ns();
            run(j, who[c], n[c]);
            sample[c][i] = (now_ns() - t) / (double)n[c];
        }
    for (int c = 0; c < CONTESTANTS; c++) {
        qsort(sample[c], SAMPLES, sizeof(double), ascending);
        ns[c] = sample[c][SAMPLES / 2];
    }
}

static void bench_row(const struct xtk_row *k)
{
    static struct kernel_job j;
    const struct xtk_row *who[CONTESTANTS] = {k, xtk_find(XTI_ISA_SCALAR, k->op, k->unit, k->param), NULL};
    double ns[CONTESTANTS];
    make_job(k, &j);
    kernel_job_place(&j, dst_area - j.d_lo, src_area - j.s_lo);
    if (j.s_hi - j.s_lo > AREA || j.d_hi - j.d_lo > AREA) {
        fprintf(stderr, "%s: the job is larger than %d bytes\n", k->name, AREA);
        exit(1);
    }
    time_all(&j, who, ns);
    double bytes = (double)kernel_job_bytes(&j);
    printf("%-36s %6.0f B %8.0f ns %7.1f GB/s %7.1f scalar %7.1f memcpy\n", k->name, bytes, ns[0],
           bytes / ns[0], bytes / ns[1], bytes / ns[2]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct xti_target t;
    xti_cpu_target(1, &t);
    for (int i = 0; i < AREA; i++)
        src_area[i] = (char)i;
    for (int i = 0; i < xtk_n_rows; i++)
        if (xti_cpu_has(xtk_rows[i].isa) && (argc < 2 || strstr(xtk_rows[i].name, argv[1])))
            bench_row(&xtk_rows[i]);
    return 0;
}
