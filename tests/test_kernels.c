/* test_kernels.c: every row of the micro-kernel registry against the definition of its job, byte for byte,
 * between guard pages and canaries (support/kernel_box.h).
 *
 * What varies: rows and columns around 0 to 3 tiles and where the kernels change their ways, every tail of a
 * tile among them; the alignment of both sides to a line, byte by byte; how far apart rows are, upwards and
 * downwards; streaming; the near guard page. Either all of it (XT_TEST_FULL=1: half an hour) or a part by
 * rule: see kernel_layouts(), check_extent(), test_alignments(). */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "support/kernel_box.h"
#include "support/suite.h"

enum { LINE = KERNEL_LINE };

static void setup(void) { ck_assert(kernel_box_setup()); }

static void check_box(const struct xtk_row *k, int64_t rows, int64_t cols, const struct kernel_layout *l)
{
    const char *wrong = kernel_box_check(k, rows, cols, l);
    if (wrong)
        ck_abort_msg("%s", wrong);
}

/* ---- extents */

struct numbers {
    int n;
    int64_t at[512];
};

/* Those of from .. to that are not below 0 and above all that is there. */
static void add(struct numbers *x, int64_t from, int64_t to)
{
    int64_t next = x->n ? x->at[x->n - 1] + 1 : 0;
    for (int64_t i = from > next ? from : next; i <= to; i++)
        x->at[x->n++] = i;
}

/* Around 0 to 3 tiles, and where a streaming transpose takes lines and blocks of lines; or what the op fixes.
 */
static void rows_of(const struct xtk_row *k, int64_t fixed, struct numbers *x)
{
    int64_t line = LINE / k->unit;
    x->n = 0;
    if (fixed) {
        add(x, fixed, fixed);
        return;
    }
    for (int i = 0; i <= 3; i++)
        add(x, i * k->tile_rows - 1, i * k->tile_rows + 1);
    if (k->op == XTI_CPU_TRANSPOSE)
        add(x, line - 1, line + 1);
    add(x, 17, 17);
    if (k->op == XTI_CPU_TRANSPOSE) {
        add(x, 4 * line + 3, 4 * line + 3);
        add(x, 67, 67); /* rows of a block */
    }
    if (k->op == XTI_CPU_TILE) /* rows of its stage */
        add(x, 255, 257);
}

/* All up to 3 tiles and 1; then some, as kernels begin to stream at 4 and at 16 lines; or what the op fixes.
 */
static void cols_of(const struct xtk_row *k, int64_t fixed, struct numbers *x)
{
    int64_t line = LINE / k->unit, tile = k->tile_cols > 1 ? k->tile_cols : line / 2;
    x->n = 0;
    if (fixed) {
        add(x, fixed, fixed);
        return;
    }
    add(x, 0, 3 * tile + 1);
    add(x, 4 * line - 1, 4 * line + 1);
    add(x, 5 * line + 3, 5 * line + 3);
    add(x, 16 * line - 1, 16 * line + 1);
    add(x, 17 * line + line / 2 + 1, 17 * line + line / 2 + 1);
}

static bool beside_a_tile(const struct xtk_row *k, int64_t cols)
{
    int64_t t = k->tile_cols;
    return cols > 3 * t || (cols + 1) % t <= 2;
}

/* In every layout, the source right at the guard page; the destination there, on a line, or at an alignment
 * that is another one each time (all of them: XT_TEST_FULL). */
static void check_extent(const struct xtk_row *k, int64_t rows, int64_t cols)
{
    static int turn;
    struct kernel_layout l[KERNEL_LAYOUTS];
    int n = kernel_layouts(test_full(), l);
    for (int i = 0; i < n; i++) {
        l[i].s_align = KERNEL_FLUSH;
        int some[] = {KERNEL_FLUSH, 0, turn / 3 % LINE};
        for (int a = KERNEL_FLUSH; test_full() && a < LINE; a++)
            l[i].d_align = a, check_box(k, rows, cols, &l[i]);
        l[i].d_align = some[turn++ % 3];
        check_box(k, rows, cols, &l[i]);
    }
}

/* Every number of rows with columns around tiles and fewer than a tile's rows; every number of columns with a
 * row and with a tile's and one more. */
static void test_extents(const struct xtk_row *k)
{
    static struct numbers rows, cols;
    static struct kernel_job j;
    kernel_job_make(k, 0, 0, (struct kernel_pitch){.round = 1}, false, &j); /* leaves what the op fixes */
    rows_of(k, j.job.rows, &rows);
    cols_of(k, j.job.cols, &cols);
    for (int r = 0; r < rows.n; r++)
        for (int c = 0; c < cols.n; c++)
            if (rows.n == 1 || rows.at[r] == 1 || rows.at[r] == k->tile_rows + 1 ||
                cols.at[c] < k->tile_rows || beside_a_tile(k, cols.at[c]))
                check_extent(k, rows.at[r], cols.at[c]);
}

/* ---- alignments */

/* Every alignment of the source with every one of the destination, in a layout (XT_TEST_FULL: in all) so that
 * each alignment of either meets every one. Boxes with a body and a tail of every loop that streams. */
static void test_alignments(const struct xtk_row *k)
{
    struct kernel_layout l[KERNEL_LAYOUTS];
    int n = kernel_layouts(test_full(), l);
    int64_t line = LINE / k->unit, rows = k->op == XTI_CPU_TILE ? 2 : k->tile_rows + 1;
    bool square = k->op == XTI_CPU_TRANSPOSE || k->op == XTI_CPU_TILE || k->op == XTI_CPU_TURN;
    int64_t squares = square ? line + 1 : rows;
    for (int s = 0; s < LINE; s++)
        for (int d = 0; d < LINE; d++)
            for (int i = 0; i < (test_full() ? n : 1); i++) {
                struct kernel_layout *at = &l[test_full() ? i : (s + d) % n];
                at->s_align = s, at->d_align = d;
                check_box(k, squares, 2 * k->tile_cols + 3, at);
                check_box(k, rows, 17 * line + line / 2 + 1, at);
            }
}

START_TEST(every_row_copies_every_extent_and_nothing_else)
{
    if (xti_cpu_has(xtk_rows[_i].isa))
        test_extents(&xtk_rows[_i]);
}
END_TEST

START_TEST(every_row_copies_from_and_to_every_alignment)
{
    if (xti_cpu_has(xtk_rows[_i].isa))
        test_alignments(&xtk_rows[_i]);
}
END_TEST

/* Transposed rows of whole lines that follow each other, from every byte of a line on: those they share. */
START_TEST(streamed_lines_of_two_rows_are_put_together)
{
    static const int lines[] = {1, 2, 5};
    const struct xtk_row *k = &xtk_rows[_i];
    struct kernel_layout l = {.pitch = {.round = 1}, .stream = true, .s_align = KERNEL_FLUSH};
    int64_t line = LINE / k->unit, rows[] = {line, line + 1, line + 2, 3 * line + 5};
    if (k->op != XTI_CPU_TRANSPOSE || !xti_cpu_has(k->isa))
        return;
    for (l.d_align = 0; l.d_align < LINE; l.d_align++)
        for (int i = 0; i < 12; i++) {
            l.pitch.s_down = i & 1, l.at_end = l.d_align & 2;
            check_box(k, rows[i % 4], lines[i / 4] * line, &l);
        }
}
END_TEST

/* Of whole lines, through the cache: one to four by one to four, and some rows and columns more. */
START_TEST(squares_of_any_number_are_copied)
{
    for (int u = 1; u <= 16; u *= 2) {
        const struct xtk_row *k = xtk_find(XTI_ISA_AVX512, XTI_CPU_TRANSPOSE, u, 0);
        for (int i = 0; xti_cpu_has(XTI_ISA_AVX512) && i < 256; i++)
            check_extent(k, (1 + i % 4) * LINE / u + i / 16 % 4, (1 + i / 4 % 4) * LINE / u + i / 64);
        for (int i = 0; xti_cpu_has(XTI_ISA_AVX512) && i < 64; i++) /* so many that the next is fetched */
            check_extent(k, (5 + i % 2) * LINE / u + i / 2 % 4, (5 + i / 8 % 4) * LINE / u + i / 32);
    }
}
END_TEST

START_TEST(every_run_length_is_copied_whole)
{
    for (int isa = 0; isa < XTI_ISA_COUNT; isa++)
        for (int64_t n = 0; n < 700 && xti_cpu_has((enum xti_isa)isa); n += n < 300 ? 1 : 37)
            check_extent(xtk_find((enum xti_isa)isa, XTI_CPU_BLOCKS, 1, 0), 3, n);
}
END_TEST

/* Where the table says that byte i of a line of row r lies in the source; INT64_MIN: nowhere, or at two
 * places. */
static int64_t place_of(const struct xti_mosaic *m, const struct xti_mosaic_line *l, int r, int i, int width,
                        int element)
{
    int64_t found = INT64_MIN, s = m->row[r].s;
    for (int k = 0; k < l->n_pairs; k++) {
        int place = width == LINE ? l->index[i / element * element] + (int)m->row[r].shift : l->byte[k][i];
        bool second = width == LINE ? place >= LINE / element : i >= XTI_LANE;
        bool here = width == LINE ? l->pair[k] >> i / element & 1 : place < 128;
        int64_t at = width == LINE ? place % (LINE / element) * element + i % element : place;
        if (here && found != INT64_MIN)
            return INT64_MIN;
        found = here ? s + l->window[2 * k + second] + at : found;
    }
    return found;
}

/* post: every byte of every row is in one line, in one window of it, where its list says; loads stay inside.
 */
static int check_table(const struct kernel_job *j, int width)
{
    const struct xti_mosaic *m = j->job.mosaic;
    int u = j->row->unit, e = u < 8 ? u : 8, bytes = 0, reach = 2 * width < LINE ? 2 * width : LINE;
    for (int r = 0; r < j->job.rows; r++)
        for (const struct xti_mosaic_line *l = m->line; l < m->line + m->n_lines; l++) {
            for (int k = 0; k < 2 * l->n_pairs; k++) {
                int64_t at = m->row[r].s + l->window[k];
                ck_assert(at >= j->s_lo && at + width <= j->s_hi);
            }
            for (int i = 0; i < reach; i++) {
                int64_t in_row = l->d + i;
                if (!(l->written >> i / e & 1))
                    continue;
                ck_assert_int_eq(place_of(m, l, r, i, width, e),
                                 j->row_at[r].s + j->col_at[in_row / u] + in_row % u);
                bytes++;
            }
        }
    return bytes;
}

/* Of every instruction set, as no kernel runs: that of a machine that is not at hand, too. */
START_TEST(tables_of_windows_say_where_each_byte_lies)
{
    static struct kernel_job j;
    const struct xtk_row *k = &xtk_rows[_i];
    int width = xti_mosaic_width(k->isa), tables = 0;
    for (int i = 0; k->op == XTI_CPU_MOSAIC && width && i < 4000; i++) {
        struct kernel_pitch pitch = {
            .pad = i % 7 * k->unit, .round = i & 1 ? LINE : k->unit, .s_down = i & 2};
        int64_t rows = 1 + i % 9, cols = 1 + i % 101;
        kernel_job_make(k, rows, cols, pitch, i & 4, &j);
        kernel_job_place(&j, (char *)0 + 4096 + i % LINE, (const char *)0 + (1 << 20) + i / 3 % LINE);
        if (!j.job.mosaic)
            continue;
        ck_assert_int_eq(check_table(&j, width), rows * cols * k->unit);
        tables++;
    }
    ck_assert(k->op != XTI_CPU_MOSAIC || !width || tables > 1000);
}
END_TEST

START_TEST(every_op_has_a_kernel_at_every_width_and_instruction_set)
{
    for (int isa = 0; isa < XTI_ISA_COUNT; isa++)
        for (int op = 0; op < XTI_CPU_OP_COUNT; op++)
            for (int u = 1; u <= 16; u *= 2)
                for (int n = 2; n <= 8; n++) {
                    bool threes = op == XTI_CPU_MIRROR || op == XTI_CPU_TURN;
                    int most = threes ? 3 : 8;
                    int param = op >= XTI_CPU_DEINTERLEAVE ? n : 0;
                    if (param > most || (threes && n < most))
                        continue;
                    if ((op == XTI_CPU_BLOCKS || op == XTI_CPU_BRAID) && u > 1)
                        continue;
                    const struct xtk_row *k = xtk_find((enum xti_isa)isa, (enum xti_cpu_op)op, u, param);
                    ck_assert_msg(k >= xtk_rows && k < xtk_rows + xtk_n_rows, "%s b%d", xti_cpu_op_name[op],
                                  u);
                    ck_assert(k->op == (enum xti_cpu_op)op && k->unit == u && k->param == param);
                    ck_assert(!xti_cpu_has((enum xti_isa)isa) || xti_cpu_has(k->isa));
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
    int beyond = 0;
    for (int i = 0; i < xtk_n_rows; i++)
        beyond += !xti_cpu_has(xtk_rows[i].isa);
    if (beyond)
        printf("skipped: %d rows of instruction sets that this machine lacks\n", beyond);
    Suite *s = suite_create("kernels");
    TCase *t = tcase_create("kernels");
    tcase_set_timeout(t, test_full() ? 3600 : 300);
    tcase_add_unchecked_fixture(t, setup, kernel_box_teardown);
    tcase_add_loop_test(t, every_row_copies_every_extent_and_nothing_else, 0, xtk_n_rows);
    tcase_add_loop_test(t, streamed_lines_of_two_rows_are_put_together, 0, xtk_n_rows);
    tcase_add_loop_test(t, every_row_copies_from_and_to_every_alignment, 0, xtk_n_rows);
    tcase_add_test(t, squares_of_any_number_are_copied);
    tcase_add_test(t, every_run_length_is_copied_whole);
    tcase_add_test(t, every_op_has_a_kernel_at_every_width_and_instruction_set);
    tcase_add_test(t, names_of_rows_are_unique);
    tcase_add_loop_test(t, tables_of_windows_say_where_each_byte_lies, 0, xtk_n_rows);
    suite_add_tcase(s, t);
    return run_suite(s);
}
