/* kernel_job.c: see kernel_job.h. */
#include "support/kernel_job.h"

enum { LINE = 64 };

/* The strides and numbers that an op fixes: so many units; the row's param, or minus it; or free. */
enum { FREE = 1000, N = 2000 };

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
    [XTI_CPU_TABLE]        = {FREE, FREE, FREE, 1,    FREE, 1,    1},
    [XTI_CPU_TILES]        = {FREE, LINE, FREE, FREE, FREE, FREE, LINE},
    [XTI_CPU_DEINTERLEAVE] = {N,    FREE, 1,    N,    FREE, 1,    1},
    [XTI_CPU_INTERLEAVE]   = {N,    FREE, FREE, 1,    1,    N,    1},
    [XTI_CPU_STRIDED]      = {FREE, FREE, FREE, N,    FREE, 1,    1},
    [XTI_CPU_MIRROR]       = {FREE, FREE, FREE, -N,   FREE, N,    N},
};
/* clang-format on */

/* A number of the table; LINE counts bytes. */
static int64_t number(const struct xtk_row *k, int code)
{
    return code == N ? k->param : code == -N ? -k->param : code == LINE ? LINE / k->unit : code;
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
    *row_st = number(j->row, row) * u;
    *col_st = number(j->row, col) * u;
    if (col == FREE)
        *col_st = apart(row == FREE ? bytes : reach(j->job.rows, *row_st, bytes), p, down);
    if (row == FREE)
        *row_st = apart(reach(j->job.cols, *col_st, bytes), p, down);
}

/* Lowest and highest byte of the box, from unit (0, 0). */
static void span(const struct kernel_job *j, int64_t row, int64_t col, int64_t *lo, int64_t *hi)
{
    int64_t r = (j->job.rows - 1) * row, c = (j->job.cols - 1) * col;
    *lo = *hi = 0;
    if (j->job.rows < 1 || j->job.cols < 1)
        return;
    *lo = (r < 0 ? r : 0) + (c < 0 ? c : 0);
    *hi = (r > 0 ? r : 0) + (c > 0 ? c : 0) + j->units * j->row->unit;
}

void kernel_job_make(const struct xtk_row *k, int64_t rows, int64_t cols, struct kernel_pitch pitch,
                     bool stream, struct kernel_job *j)
{
    int op = k->op;
    struct kernel_pitch lines = pitch;
    if (op == XTI_CPU_TILES && stream &&
        pitch.round < LINE) /* plan.h: its table's entries are on lines then */
        lines.round = LINE;
    j->row = k;
    j->units = number(k, fixed[op].units);
    j->job = (struct xtk_job){.stream = stream, .value = j->value, .table = j->table};
    j->job.rows = fixed[op].rows == FREE ? rows : number(k, fixed[op].rows);
    j->job.cols = fixed[op].cols == FREE ? cols : number(k, fixed[op].cols);
    side(j, fixed[op].s_row, fixed[op].s_col, pitch, pitch.s_down, &j->job.s_row, &j->job.s_col);
    side(j, fixed[op].d_row, fixed[op].d_col, lines, pitch.d_down, &j->job.d_row, &j->job.d_col);
    j->job.s_next = stream ? j->job.s_row * j->job.rows : 0;
    j->s_lo = j->s_hi = 0;
    if (op != XTI_CPU_FILL)
        span(j, j->job.s_row, j->job.s_col, &j->s_lo, &j->s_hi);
    span(j, j->job.d_row, j->job.d_col, &j->d_lo, &j->d_hi);
    for (int i = 0; i < 16; i++)
        j->value[i] = (unsigned char)(i % k->unit + 1);
    for (int64_t c = 0; c < j->job.cols; c++) /* the source's places in reverse order */
        j->table[c] =
            (struct xti_offset){(int32_t)((j->job.cols - 1 - c) * j->job.s_col), (int32_t)(c * j->job.d_col)};
}

/* Where column c lies in its row. */
static int64_t column(const struct kernel_job *j, int64_t c, bool source)
{
    bool listed = j->row->op == XTI_CPU_TABLE || j->row->op == XTI_CPU_TILES;
    if (listed)
        return source ? j->table[c].s : j->table[c].d;
    return c * (source ? j->job.s_col : j->job.d_col);
}

void kernel_job_define(const struct kernel_job *j, char *d, const char *s)
{
    bool square = j->row->op == XTI_CPU_TILES; /* columns and their units change places */
    int u = j->row->unit;
    s = j->row->op == XTI_CPU_FILL ? (const char *)j->value : s;
    for (int64_t r = 0; r < j->job.rows; r++)
        for (int64_t c = 0; c < j->job.cols; c++)
            for (int64_t i = 0; i < j->units; i++) {
                char *to = d + r * j->job.d_row + column(j, c, false) + i * u;
                const char *from =
                    s + r * j->job.s_row + (square ? column(j, i, true) + c * u : column(j, c, true) + i * u);
                for (int b = 0; b < u; b++)
                    to[b] = from[b];
            }
}

int64_t kernel_job_bytes(const struct kernel_job *j)
{
    return j->job.rows * j->job.cols * j->units * j->row->unit;
}
