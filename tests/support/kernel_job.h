/* kernel_job.h: jobs for the rows of the micro-kernel registry, and what each has to do: the definition that
 * test_kernels.c compares bytes with, and the work that bench_kernels.c times. A new op is a row of the table
 * in kernel_job.c; a new kernel of an op that is there needs nothing. */
#ifndef TESTS_SUPPORT_KERNEL_JOB_H
#define TESTS_SUPPORT_KERNEL_JOB_H

#include "cpu/kernels.h"

/* How far apart the rows (of a transpose's source: the columns) are, which no op fixes. */
struct kernel_pitch {
    int64_t pad, round;  /* bytes more than they need, then up to a multiple of that many bytes */
    bool s_down, d_down; /* each begins below the one before */
};

enum { KERNEL_MAX_COLS = 16384 };

struct kernel_job {
    const struct xtk_row *row;
    struct xtk_job job;
    int64_t units;                             /* that lie at one place (row, column), one behind the other */
    int64_t s_lo, s_hi, d_lo, d_hi;            /* the box's bytes, from its unit (0, 0); hi exclusive */
    unsigned char value[16];                   /* fill's */
    struct xti_offset row_at[KERNEL_MAX_COLS]; /* lists, where the op may have them */
    int32_t col_at[KERNEL_MAX_COLS];
    char *d;   /* where the job lies */
    int group; /* mosaic: rows that share windows */
    struct xti_mosaic mosaic;
};

/* A job of so many rows and columns, where the op does not fix their number; both <= KERNEL_MAX_COLS. Where
 * the op takes lists for strides it gets them when the side is `down`. It points into *j: do not copy it. */
void kernel_job_make(const struct xtk_row *k, int64_t rows, int64_t cols, struct kernel_pitch pitch,
                     bool stream, struct kernel_job *j);

/* Makes what depends on where the job lies; before it runs. */
void kernel_job_place(struct kernel_job *j, char *d, const char *s);

/* What the kernel has to do, byte by byte. */
void kernel_job_define(const struct kernel_job *j, char *d, const char *s);

/* Does it; in two calls where the op takes columns on either side, or puts rows together in a buffer. */
void kernel_job_run(const struct kernel_job *j, char *d, const char *s);

/* Bytes that the job writes. */
int64_t kernel_job_bytes(const struct kernel_job *j);

#endif
