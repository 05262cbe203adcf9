/* kernel_job.c: see kernel_job.h. */
#include "support/kernel_job.h"

#include <stddef.h>
#include <string.h>

/* The strides and numbers that an op fixes: so many units; the row's param, or minus it; as many as lie at
 * one place; or free. */
enum { FREE = 1000, N = 2000, RUN = 3000 };

enum { LINE = 64, LOST = 0x5a };

/* clang-format off */
static const struct {
    short rows, cols, s_row, s_col, d_row, d_col;
    short units; /* that lie at one place */
} fixed[XTI_CPU_OP_COUNT] = {
                          /* rows  cols  s_row s_col d_row d_col units */
    [XTI_CPU_BLOCKS]       = {FREE, FREE, FREE, 1,    FREE, 1,    1},
    [XTI_CPU_FILL]         = {FREE, FREE, 0,    0,    FREE, 1,    1},
    [XTI_CPU_BROADCAST]    = {FREE, FREE, FREE, 0,    FREE, 1,    1},
    [XTI_CPU_REVERSE]      = {FREE, FREE, FREE, -1,   FREE, 1,    1},
    [XTI_CPU_TRANSPOSE]    = {FREE, FREE, 1,    FREE, FREE, 1,    1},
    [XTI_CPU_WALK]         = {FREE, FREE, -1,   FREE, FREE, 2,    1},
    [XTI_CPU_TILE]         = {FREE, FREE, 1,    FREE, FREE, 1,    1},
    [XTI_CPU_GATHER]       = {FREE, FREE, FREE, 1,    FREE, 1,    1},
    [XTI_CPU_MOSAIC]       = {FREE, FREE, FREE, 1,    FREE, 1,    1},
    [XTI_CPU_BRAID]        = {FREE, FREE, RUN,  FREE, FREE, RUN,  FREE},
    [XTI_CPU_DEINTERLEAVE] = {N,    FREE, 1,    N,    FREE, 1,    1},
    [XTI_CPU_INTERLEAVE]   = {N,    FREE, FREE, 1,    1,    N,    1},
    [XTI_CPU_STRIDED]      = {FREE, FREE, FREE, N,    FREE, 1,    1},
    [XTI_CPU_MIRROR]       = {FREE, FREE, FREE, -N,   FREE, N,    N},
    [XTI_CPU_TURN]         = {FREE, FREE, N,    FREE, FREE, N,    N},
};
/* clang-format on */

/* A number of the table. */
static int64_t number(const struct kernel_job *j, int code)
{
    return code == N ? j->row->param : code == -N ? -j->row->param : code == RUN ? j->units : code;
}

static int64_t apart(int64_t bytes, struct kernel_pitch p, bool down)
{
    int64_t st = ((bytes > 0 ? bytes : 1) + p.pad + p.round - 1) / p.round * p.round;
    return down ? -st : st;
}

/* From the lowest to behind the highest byte of n runs of `bytes` each. */
static int64_t reach(int64_t n, int64_t stride, int64_t bytes)
{
    return n > 0 ? (n - 1) * (stride < 0 ? -stride : stride) + bytes : 0;
}

/* The strides of one side. Free ones leave room for the other dim: boxes never overlap themselves. */
static void side(const struct kernel_job *j, int row, int col, struct kernel_pitch p, bool down,
                 int64_t *row_st, int64_t *col_st)
{
    int64_t u = j->row->unit, bytes = j->units * u;
    *row_st = number(j, row) * u;
    *col_st = number(j, col) * u;
    if (col == FREE)
        *col_st = apart(row == FREE ? bytes : reach(j->job.rows, *row_st, bytes), p, down);
    if (row == FREE)
        *row_st = apart(reach(j->job.cols, *col_st, bytes), p, down);
}

/* Lowest and highest byte of the boxes, from unit (0, 0) of the first. */
static void span(const struct kernel_job *j, int64_t row, int64_t col, int64_t *lo, int64_t *hi)
{
    int64_t r = (j->job.rows - 1) * row, c = (j->job.cols - 1) * col;
    *lo = *hi = 0;
    if (j->job.rows < 1 || j->job.cols < 1)
        return;
    *lo = (r < 0 ? r : 0) + (c < 0 ? c : 0);
    *hi = (r > 0 ? r : 0) + (c > 0 ? c : 0) + j->units * j->row->unit;
}

enum { GROUP_BYTES = 32 }; /* of xtk_groups */

/* Which of the n places of a stride entry i of a list has: groups in reverse order, or else all. */
static int64_t place(const struct kernel_job *j, int64_t i, int64_t n)
{
    int64_t group = GROUP_BYTES / j->row->unit;
    return n % group ? n - 1 - i : n - group - i / group * group + i % group;
}

/* From one entry to the next, in groups. */
static int64_t group_stride(const struct kernel_job *j, int64_t n, int64_t stride)
{
    return n % (GROUP_BYTES / j->row->unit) ? -stride : stride;
}

static void make_lists(struct kernel_job *j)
{
    const struct xtk_job *job = &j->job;
    for (int64_t c = 0; c < job->cols; c++)
        j->col_at[c] = (int32_t)(place(j, c, job->cols) * job->s_col);
    for (int64_t r = 0; r < job->rows; r++) {
        int64_t at = place(j, r, job->rows);
        j->row_at[r] = (struct xti_offset){at * job->s_row, at * job->d_row};
    }
}

static struct xti_offset row_of(const struct kernel_job *j, int64_t r)
{
    return j->job.row_at ? j->row_at[r] : (struct xti_offset){r * j->job.s_row, r * j->job.d_row};
}

/* Of bytes: below a line, a line, some of them, and what is no part of either. */
static int64_t some_run(int64_t rows, int64_t cols)
{
    static const short run[] = {17, 24, 32, 37, 48, 63, 64, 65, 80, 100, 128, 176, 301};
    return run[(7 * rows + cols) % (int64_t)(sizeof run / sizeof *run)];
}

/* Groups of rows and of columns that share lines of the source, in some windows far apart; columns upwards or
 * down. */
static void make_mosaic(struct kernel_job *j, struct kernel_pitch p)
{
    struct xtk_job *job = &j->job;
    int64_t u = j->row->unit, windows = INT64_C(1) << job->cols % 5;
    j->group = job->rows % 4 == 0 && job->rows ? 4 : job->rows % 3 == 0 && job->rows ? 3 : 1;
    if (xti_mosaic_width(j->row->isa) != LINE) /* each row has its own */
        j->group = 1;
    int64_t apart_cols = apart((job->cols / windows + 1) * j->group * u, p, p.s_down);
    for (int64_t c = 0; c < job->cols; c++)
        j->col_at[c] = (int32_t)(c % windows * apart_cols + c / windows * (p.s_down ? -u : u) * j->group);
    for (int64_t r = 0; r < job->rows; r++) {
        int64_t at = r / j->group * windows * apart_cols + r % j->group * u;
        j->row_at[r] = (struct xti_offset){at, r * job->d_row};
        for (int64_t c = 0; c < job->cols; c++) {
            j->s_lo = at + j->col_at[c] < j->s_lo ? at + j->col_at[c] : j->s_lo;
            j->s_hi = at + j->col_at[c] + u > j->s_hi ? at + j->col_at[c] + u : j->s_hi;
        }
    }
    job->col_at = j->col_at;
    job->row_at = j->row_at;
}

void kernel_job_place(struct kernel_job *j, char *d, const char *s)
{
    j->d = d;
    struct xti_mosaic_of of = {.row_at = j->row_at,
                               .col_at = j->col_at,
                               .rows = j->job.rows,
                               .cols = j->job.cols,
                               .width = xti_mosaic_width(j->row->isa),
                               .unit = j->row->unit,
                               .group = j->group,
                               .most = XTI_MOSAIC_WINDOWS,
                               .aligned = j->job.d_row % LINE == 0,
                               .d = (uintptr_t)d,
                               .s = (uintptr_t)s};
    if (j->row->op != XTI_CPU_MOSAIC)
        return;
    for (int64_t r = 0; r < of.rows && r < of.group; r++)
        of.bits |= of.last = j->row_at[r].s;
    for (int64_t c = 0; c < of.cols; c++) {
        int64_t at = j->col_at[c], end = at + (of.unit > 8 ? 8 : 0);
        of.bits |= at;
        of.lo = at < of.lo ? at : of.lo;
        of.hi = end > of.hi ? end : of.hi;
    }
    if (!of.width)
        return;
    j->job.mosaic = xti_mosaic_table(&of, &j->mosaic) ? &j->mosaic : NULL;
    if (j->job.mosaic)
        xti_mosaic_fetches(&of, &j->mosaic);
}

void kernel_job_make(const struct xtk_row *k, int64_t rows, int64_t cols, struct kernel_pitch pitch,
                     bool stream, struct kernel_job *j)
{
    int op = k->op;
    j->row = k;
    j->units = fixed[op].units == FREE ? some_run(rows, cols) : number(j, fixed[op].units);
    j->job = (struct xtk_job){.store.stream = stream, .value = j->value};
    j->job.rows = fixed[op].rows == FREE ? rows : number(j, fixed[op].rows);
    j->job.cols = fixed[op].cols == FREE ? cols : number(j, fixed[op].cols);
    side(j, fixed[op].s_row, fixed[op].s_col, pitch, pitch.s_down, &j->job.s_row, &j->job.s_col);
    if (op == XTI_CPU_STRIDED && pitch.s_down)
        j->job.s_row = -k->unit; /* rows that share their lines, as of pixels */
    side(j, fixed[op].d_row, fixed[op].d_col, pitch, pitch.d_down, &j->job.d_row, &j->job.d_col);
    j->job.store.prefetch_writes = (rows / 2 + cols) % 2;
    for (int i = 0; i < XTI_N_FETCHES; i++)
        j->job.machine.hints.of[i] = (uint8_t)((rows / 2 + cols / 2 + i) % 4);
    j->job.machine.follows = (int)(cols % 3) * 16;
    j->job.machine.far = (rows / 2 + cols / 2) % 2;
    j->job.store.squares = (rows + cols / 2) % 2;
    j->job.store.unstaged = (rows / 8 + cols / 2) % 2;
    int64_t wild = (rows + cols) % 3 ? INT64_C(1) << 40 : -(INT64_C(1) << 40); /* only for prefetching */
    j->job.next.s = stream ? wild : 0;
    j->job.next.d = stream ? 0 : wild;
    j->s_lo = j->s_hi = 0;
    if (op != XTI_CPU_FILL)
        span(j, j->job.s_row, j->job.s_col, &j->s_lo, &j->s_hi);
    span(j, j->job.d_row, j->job.d_col, &j->d_lo, &j->d_hi);
    for (int i = 0; i < 16; i++)
        j->value[i] = (unsigned char)(i % k->unit + 1);
    if (op == XTI_CPU_GATHER || (op == XTI_CPU_TILE && pitch.s_down))
        j->job.col_at = j->col_at;
    j->job.run = j->units;
    if ((op == XTI_CPU_GATHER || op == XTI_CPU_TILE || op == XTI_CPU_BRAID) && pitch.d_down)
        j->job.row_at = j->row_at;
    if (op == XTI_CPU_TILE && pitch.round == 1) { /* the lists' own, told or not */
        j->job.group.s = group_stride(j, cols, j->job.s_col);
        j->job.group.d = group_stride(j, rows, j->job.d_row);
    }
    make_lists(j);
    if (op == XTI_CPU_MOSAIC) {
        j->s_lo = j->s_hi = 0;
        make_mosaic(j, pitch);
    }
}

/* A row's columns. */
static inline __attribute__((always_inline)) void define_row(const struct kernel_job *j, char *to,
                                                             const char *from, size_t bytes)
{
    if (j->job.col_at)
        for (int64_t c = 0; c < j->job.cols; c++)
            memcpy(to + c * j->job.d_col, from + j->col_at[c], bytes);
    else
        for (int64_t c = 0; c < j->job.cols; c++)
            memcpy(to + c * j->job.d_col, from + c * j->job.s_col, bytes);
}

void kernel_job_define(const struct kernel_job *j, char *d, const char *s)
{
    s = j->row->op == XTI_CPU_FILL ? (const char *)j->value : s;
    size_t bytes = (size_t)(j->units * j->row->unit);
    for (int64_t r = 0; r < j->job.rows; r++) {
        char *to = d + row_of(j, r).d;
        const char *from = s + (fixed[j->row->op].s_row == FREE ? row_of(j, r).s : r * j->job.s_row);
        switch (bytes) { /* the compiler knows these, which most of the time of test_kernels hangs on */
#define WIDTH(n)                                                                                             \
    case n:                                                                                                  \
        define_row(j, to, from, n);                                                                          \
        break
            WIDTH(1);
            WIDTH(2);
            WIDTH(4);
            WIDTH(8);
            WIDTH(16);
#undef WIDTH
        default:
            define_row(j, to, from, bytes);
        }
    }
}

/* A braid in two, with columns on either side. */
void kernel_job_run(const struct kernel_job *j, char *d, const char *s)
{
    struct xtk_job part = j->job;
    if (j->row->op == XTI_CPU_BRAID) {
        part.cols = j->job.cols / 3;
        part.after = j->job.cols - part.cols;
        j->row->fn(&part, d, s);
        d += part.cols * part.d_col;
        s += part.cols * part.s_col;
        part.before = part.cols;
        part.cols = part.after;
        part.after = 0;
    }
    j->row->fn(&part, d, s);
}

int64_t kernel_job_bytes(const struct kernel_job *j)
{
    return j->job.rows * j->job.cols * j->units * j->row->unit;
}
