/* test_kernels.c: every row of the micro-kernel registry against the definition of its job, byte for byte:
 * every extent around its tile, tails, misaligned addresses, streaming or not. Source and destination end at
 * a page that must not be touched (or begin behind one), and the destination's other bytes are canaries. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu/cpu.h"
#include "cpu/kernels.h"
#include "support/suite.h"

enum { AREA = 1 << 20, PAGE = 4096, CANARY = 0xa5 };

/* AREA bytes between two pages that fault. */
static char *guarded(void)
{
    char *p = mmap(NULL, AREA + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(p != MAP_FAILED);
    ck_assert(!mprotect(p, PAGE, PROT_NONE) && !mprotect(p + PAGE + AREA, PAGE, PROT_NONE));
    return p + PAGE;
}

static char *src_area, *dst_area, *want;

static void setup(void)
{
    src_area = guarded();
    dst_area = guarded();
    want = malloc(AREA);
    uint32_t x = 1;
    for (int i = 0; i < AREA; i++)
        src_area[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
    memset(dst_area, CANARY, AREA);
    memset(want, CANARY, AREA);
}

static void teardown(void)
{
    munmap(src_area - PAGE, AREA + 2 * PAGE);
    munmap(dst_area - PAGE, AREA + 2 * PAGE);
    free(want);
}

/* Lowest and highest byte offset of the box, the highest exclusive. */
static void span(const struct xtk_job *j, int unit, int64_t row, int64_t col, int64_t *lo, int64_t *hi)
{
    int64_t r = (j->rows - 1) * row, c = (j->cols - 1) * col;
    *lo = (r < 0 ? r : 0) + (c < 0 ? c : 0);
    *hi = (r > 0 ? r : 0) + (c > 0 ? c : 0) + unit;
}

struct layout {
    int64_t pad;           /* bytes between rows beyond what they need .. */
    int64_t round;         /* .. up to a multiple of that */
    int at_end;            /* the box ends at the end of the area, else it begins at its start */
    int64_t shift;         /* bytes away from there */
    bool stream, reversed; /* reversed: the rows of the destination from the last to the first */
};

static int64_t pitch(int64_t bytes, const struct layout *l)
{
    return ((bytes > 0 ? bytes : 1) + l->pad + l->round - 1) / l->round * l->round;
}

/* The strides that the op fixes, and dense or padded ones for the others. */
static struct xtk_job job_of(const struct xtk_row *k, int64_t rows, int64_t cols, const struct layout *l)
{
    int64_t u = k->unit, n = k->param;
    struct xtk_job j = {.rows = rows, .cols = cols, .stream = l->stream};
    j.s_col = j.d_col = u;
    j.s_row = j.d_row = pitch(cols * u, l);
    switch (k->op) {
    case XTI_CPU_BROADCAST:
        j.s_col = 0, j.s_row = u + l->pad;
        break;
    case XTI_CPU_REVERSE:
        j.s_col = -u;
        break;
    case XTI_CPU_TRANSPOSE:
        j.s_row = u, j.s_col = pitch(rows * u, l);
        break;
    case XTI_CPU_WALK:
        j.s_col = 3 * u + l->pad, j.d_col = 2 * u, j.s_row = -u, j.d_row = 2 * pitch(cols * u, l);
        break;
    case XTI_CPU_DEINTERLEAVE:
        j.rows = n, j.s_row = u, j.s_col = n * u;
        break;
    case XTI_CPU_INTERLEAVE:
        j.rows = n, j.d_row = u, j.d_col = n * u;
        break;
    case XTI_CPU_STRIDED:
        j.s_col = n * u, j.s_row = pitch(cols * n * u, l);
        break;
    case XTI_CPU_MIRROR:
        j.s_col = -n * u, j.d_col = n * u, j.s_row = j.d_row = pitch(cols * n * u, l);
        break;
    default:
        break;
    }
    if (l->reversed && k->op != XTI_CPU_INTERLEAVE)
        j.d_row = -j.d_row;
    return j;
}

static const unsigned char value[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static unsigned char repeated[16];
static struct xti_offset table[4096];

static void define(const struct xtk_row *k, const struct xtk_job *j, char *d, const char *s)
{
    for (int64_t r = 0; r < j->rows; r++)
        for (int64_t c = 0; c < j->cols; c++) {
            for (int64_t a = 0; k->op == XTI_CPU_TILES && a < j->cols; a++)
                memcpy(d + r * j->d_row + table[a].d + c * k->unit,
                       s + r * j->s_row + table[c].s + a * k->unit, (size_t)k->unit);
            if (k->op == XTI_CPU_TILES)
                continue;
            int64_t dc = k->op == XTI_CPU_TABLE ? table[c].d : c * j->d_col;
            int64_t sc = k->op == XTI_CPU_TABLE ? table[c].s : c * j->s_col;
            int bytes = k->op == XTI_CPU_MIRROR ? k->param * k->unit : k->unit;
            for (int b = 0; b < bytes; b++)
                d[r * j->d_row + dc + b] = k->op == XTI_CPU_FILL ? (char)value[b] : s[r * j->s_row + sc + b];
        }
}

static void run_one(const struct xtk_row *k, int64_t rows, int64_t cols, const struct layout *l)
{
    struct xtk_job j = job_of(k, rows, cols, l);
    int64_t s_lo, s_hi, d_lo, d_hi;
    for (int i = 0; i < 16; i++)
        repeated[i] = value[i % k->unit];
    j.value = repeated;
    if (k->op == XTI_CPU_TABLE) { /* every unit of a row, backwards and from the middle */
        for (int64_t c = 0; c < cols; c++)
            table[c] = (struct xti_offset){(int32_t)((cols - 1 - c) * k->unit), (int32_t)(c * k->unit)};
        j.table = table;
    }
    int bytes = k->op == XTI_CPU_MIRROR ? k->param * k->unit : k->unit;
    if (k->op == XTI_CPU_TILES) { /* rows of the tile in reverse order, on lines */
        int64_t lines = 64 / k->unit, at = pitch(64, l);
        j = (struct xtk_job){.rows = rows, .cols = lines, .stream = l->stream, .table = table};
        for (int64_t c = 0; c < lines; c++)
            table[c] = (struct xti_offset){(int32_t)((lines - 1 - c) * at), (int32_t)(c * 128)};
        j.s_row = lines * at, j.d_row = lines * 128, bytes = 64, j.s_col = at, j.d_col = 128;
    }
    span(&j, bytes, j.s_row, j.s_col, &s_lo, &s_hi);
    span(&j, bytes, j.d_row, j.d_col, &d_lo, &d_hi);
    if (s_hi - s_lo + l->shift > AREA || d_hi - d_lo + l->shift > AREA)
        return;
    int64_t s_at = (l->at_end ? AREA - s_hi - l->shift : l->shift - s_lo);
    int64_t d_at = (l->at_end ? AREA - d_hi - l->shift : l->shift - d_lo);
    define(k, &j, want + d_at, src_area + s_at);
    k->fn(&j, dst_area + d_at, src_area + s_at);
    int64_t from = d_at + d_lo - 256 > 0 ? d_at + d_lo - 256 : 0,
            to = d_at + d_hi + 256 < AREA ? d_at + d_hi + 256 : AREA;
    if (memcmp(dst_area + from, want + from, (size_t)(to - from)))
        ck_abort_msg(
            "%s: %lld rows, %lld cols, pad %lld, at_end %d, shift %lld, round %lld, stream %d, reversed %d",
            k->name, (long long)j.rows, (long long)j.cols, (long long)l->pad, l->at_end, (long long)l->shift,
            (long long)l->round, l->stream, l->reversed);
    memset(dst_area + from, CANARY, (size_t)(to - from));
    memset(want + from, CANARY, (size_t)(to - from));
}

/* Rows on lines, the first one too where shift is 64; 2048: sources that share sets of the cache. */
static const struct layout layouts[] = {
    {0, 1, 1, 0, false, false},    {0, 1, 0, 0, true, false},    {16, 1, 1, 3, false, true},
    {0, 64, 0, 64, true, false},   {48, 64, 1, 16, true, false}, {32, 1, 0, 5, true, true},
    {0, 2048, 0, 64, true, false},
};

/* Around 0, 1, 2 and 3 tiles, and what the vectors' heads and tails need. */
static int extents(int tile, int64_t *out)
{
    int n = 0;
    for (int i = 0; i <= 3; i++)
        for (int d = -1; d <= 1; d++)
            if (i * tile + d >= 0 && (!n || i * tile + d > out[n - 1]))
                out[n++] = i * tile + d;
    return n;
}

static void test_row(const struct xtk_row *k)
{
    int64_t rows[16], cols[64];
    int n_rows = extents(k->tile_rows, rows), n_cols = extents(k->tile_cols, cols);
    if (k->param) /* the op has as many rows as its N */
        rows[0] = k->param, n_rows = k->op == XTI_CPU_STRIDED || k->op == XTI_CPU_MIRROR ? n_rows : 1;
    if (k->op == XTI_CPU_TRANSPOSE)
        rows[n_rows++] = 256 / k->unit + 3;
    if (k->tile_cols == 1)
        cols[n_cols++] = 33;
    cols[n_cols++] = k->tile_cols * 2 + k->tile_cols / 2 + 1;
    cols[n_cols++] = 5 * k->tile_cols + 3;
    cols[n_cols++] = 320 / k->unit + 2 * k->tile_cols;
    for (int r = 0; r < n_rows; r++)
        for (int c = 0; c < n_cols; c++)
            for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
                run_one(k, rows[r], cols[c], &layouts[l]);
}

static enum xti_isa machine(void)
{
    struct xti_target t;
    xti_cpu_target(1, &t);
    return t.isa;
}

START_TEST(every_row_copies_its_box_and_nothing_else)
{
    const struct xtk_row *k = &xtk_rows[_i];
    if (k->isa <= machine())
        test_row(k);
}
END_TEST

START_TEST(every_run_length_is_copied_whole)
{
    for (int isa = 0; isa <= (int)machine(); isa++)
        for (int64_t n = 0; n < 700; n += n < 300 ? 1 : 37)
            for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
                run_one(xtk_find((enum xti_isa)isa, XTI_CPU_BLOCKS, 1, 0), 3, n, &layouts[l]);
}
END_TEST

START_TEST(every_op_has_a_kernel_at_every_width_and_instruction_set)
{
    for (int isa = 0; isa <= (int)machine(); isa++)
        for (int op = 0; op < XTI_CPU_OP_COUNT; op++)
            for (int u = 1; u <= 16; u *= 2)
                for (int n = 2; n <= 8; n++) {
                    int most = op == XTI_CPU_STRIDED ? 8 : op == XTI_CPU_MIRROR ? 3 : 4;
                    int param = op >= XTI_CPU_DEINTERLEAVE ? n : 0;
                    if (param > most || (op == XTI_CPU_MIRROR && n < most))
                        continue;
                    if (op == XTI_CPU_BLOCKS && u > 1)
                        continue;
                    const struct xtk_row *k = xtk_find((enum xti_isa)isa, (enum xti_cpu_op)op, u, param);
                    ck_assert_msg(k >= xtk_rows && k < xtk_rows + xtk_n_rows, "%s b%d", xti_cpu_op_name[op],
                                  u);
                    ck_assert(k->op == (enum xti_cpu_op)op && k->unit == u && k->param == param &&
                              (int)k->isa <= isa);
                }
}
END_TEST

START_TEST(names_of_rows_are_unique)
{
    for (int i = 0; i < xtk_n_rows; i++)
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(xtk_rows[i].name, xtk_rows[k].name);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kernels");
    TCase *t = tcase_create("kernels");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, every_row_copies_its_box_and_nothing_else, 0, xtk_n_rows);
    tcase_add_test(t, every_run_length_is_copied_whole);
    tcase_add_test(t, every_op_has_a_kernel_at_every_width_and_instruction_set);
    tcase_add_test(t, names_of_rows_are_unique);
    suite_add_tcase(s, t);
    return run_suite(s);
}
