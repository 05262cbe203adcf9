/* test_overlap.c: strided boxes against brute force: every answer must be exact, or UNKNOWN within the cap.
 */
#include "base/overlap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/os.h"
#include "tests/support/pick.h"
#include "tests/support/suite.h"

enum { ARENA = 64 };

struct box {
    int rank;
    int64_t n[4], st[4], off;
};

/* Bit a of the result: address a - 32 is in the box. *twice: some address is there more than once.
 * False when an address leaves [-32, 32). */
static bool addresses(const struct box *b, uint64_t *set, bool *twice)
{
    int64_t x[4] = {0};
    *set = 0;
    *twice = false;
    for (int i = 0; i < b->rank; i++)
        if (b->n[i] == 0)
            return true;
    for (;;) {
        int64_t a = b->off + ARENA / 2;
        for (int i = 0; i < b->rank; i++)
            a += x[i] * b->st[i];
        if (a < 0 || a >= ARENA)
            return false;
        *twice = *twice || (*set >> a & 1);
        *set |= UINT64_C(1) << a;
        int k = b->rank - 1;
        while (k >= 0 && ++x[k] == b->n[k])
            x[k--] = 0;
        if (k < 0)
            return true;
    }
}

static enum xti_answer meet(const struct box *a, const struct box *b)
{
    return xti_boxes_meet(a->rank, a->n, a->st, a->off, b->rank, b->n, b->st, b->off);
}

static const char *box_text(const struct box *b, char *buf, size_t size)
{
    int at = snprintf(buf, size, "(off %" PRId64, b->off);
    for (int i = 0; i < b->rank; i++)
        at += snprintf(buf + at, size - (size_t)at, ", n %" PRId64 " st %" PRId64, b->n[i], b->st[i]);
    return buf;
}

/* Compares all three functions with the sets. Counts what it saw in seen[answer]. */
static void check_pair(const struct box *a, const struct box *b, uint64_t set_a, uint64_t set_b,
                       int64_t *seen)
{
    enum xti_answer want = set_a & set_b ? XTI_YES : XTI_NO, got = meet(a, b);
    char ta[200], tb[200];
    seen[want]++;
    if (got != want)
        ck_abort_msg("%s and %s: answer %d, want %d", box_text(a, ta, sizeof ta), box_text(b, tb, sizeof tb),
                     got, want);
}

static void check_self(const struct box *b, bool twice, int64_t *seen)
{
    enum xti_answer want = twice ? XTI_YES : XTI_NO, got = xti_box_self_meets(b->rank, b->n, b->st);
    char t[200];
    seen[want]++;
    if (got != want)
        ck_abort_msg("%s and itself: answer %d, want %d", box_text(b, t, sizeof t), got, want);
    if (twice && xti_nested(b->rank, b->n, b->st))
        ck_abort_msg("%s meets itself but counts as nested", box_text(b, t, sizeof t));
}

START_TEST(every_pair_of_one_dimensional_boxes_is_answered_exactly)
{
    static struct box box[4096];
    static uint64_t set[4096];
    int count = 0;
    int64_t pairs[3] = {0}, selfs[3] = {0};
    bool twice;
    for (int64_t n = 0; n <= 5; n++)
        for (int64_t st = -5; st <= 5; st++)
            for (int64_t off = -5; off <= 5; off++) {
                box[count] = (struct box){1, {n}, {st}, off};
                if (!addresses(&box[count], &set[count], &twice))
                    continue;
                check_self(&box[count], twice, selfs);
                count++;
            }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++)
            check_pair(&box[i], &box[j], set[i], set[j], pairs);
    ck_assert_int_gt(pairs[XTI_NO], 50000);
    ck_assert_int_gt(pairs[XTI_YES], 50000);
    ck_assert_int_gt(selfs[XTI_YES], 30);
}
END_TEST

START_TEST(every_small_two_dimensional_box_is_answered_exactly)
{
    static struct box box[8192];
    static uint64_t set[8192];
    int count = 0;
    int64_t pairs[3] = {0}, selfs[3] = {0};
    bool twice;
    for (int64_t n0 = 1; n0 <= 5; n0++)
        for (int64_t n1 = 2; n1 <= 5; n1++)
            for (int64_t st0 = -7; st0 <= 7; st0++)
                for (int64_t st1 = -7; st1 <= 7; st1++) {
                    struct box b = {2, {n0, n1}, {st0, st1}, 0};
                    if (!addresses(&b, &set[count], &twice))
                        continue;
                    check_self(&b, twice, selfs);
                    box[count++] = b;
                }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 100; k++) {
            int j = (int)pick(0, count - 1);
            int64_t off = pick(-20, 20);
            struct box b = box[j];
            b.off = off;
            uint64_t sb;
            if (addresses(&b, &sb, &twice))
                check_pair(&box[i], &b, set[i], sb, pairs);
        }
    ck_assert_int_gt(count, 3000);
    ck_assert_int_gt(pairs[XTI_NO], 20000);
    ck_assert_int_gt(pairs[XTI_YES], 20000);
    ck_assert_int_gt(selfs[XTI_YES], 500);
    ck_assert_int_gt(selfs[XTI_NO], 500);
}
END_TEST

enum { SMALL = 12, SMALL_BOXES = 16384 };

/* Every place of a box with these extents and strides in an arena of SMALL bytes. */
static int add_places(int rank, int64_t n0, int64_t st0, int64_t n1, int64_t st1, struct box *box, int count)
{
    int64_t low = (n0 - 1) * (st0 < 0 ? st0 : 0) + (n1 - 1) * (st1 < 0 ? st1 : 0);
    int64_t high = (n0 - 1) * (st0 > 0 ? st0 : 0) + (n1 - 1) * (st1 > 0 ? st1 : 0);
    for (int64_t off = -low; off + high < SMALL; off++)
        box[count++] = (struct box){rank, {n0, n1}, {st0, st1}, off};
    return count;
}

/* All of one and of two dims, each beside each; XT_TEST_FULL=1, else each 97th beside each. */
START_TEST(every_pair_of_boxes_in_twelve_bytes_is_answered_exactly)
{
    static struct box box[SMALL_BOXES];
    static uint64_t set[SMALL_BOXES];
    int count = 0, step = test_full() ? 1 : 97;
    int64_t pairs[3] = {0}, selfs[3] = {0};
    for (int64_t st0 = 1 - SMALL; st0 < SMALL; st0++)
        for (int64_t n0 = 1; n0 <= SMALL; n0++) {
            count = add_places(1, n0, st0, 1, 0, box, count);
            for (int64_t st1 = 1 - SMALL; n0 > 1 && st1 < SMALL; st1++)
                for (int64_t n1 = 2; n1 <= SMALL; n1++)
                    count = add_places(2, n0, st0, n1, st1, box, count);
        }
    for (int i = 0; i < count; i++) {
        bool twice;
        ck_assert(addresses(&box[i], &set[i], &twice));
        check_self(&box[i], twice, selfs);
    }
    for (int i = 0; i < count; i += step)
        for (int j = 0; j < count; j++)
            check_pair(&box[i], &box[j], set[i], set[j], pairs);
    printf("note: %d boxes, %lld pairs: %lld meet, 0 wrong\n", count, (long long)(pairs[0] + pairs[1]),
           (long long)pairs[XTI_YES]);
    ck_assert_int_eq(count, 12748);
}
END_TEST

START_TEST(random_boxes_of_up_to_four_dims_are_answered_exactly)
{
    int64_t pairs[3] = {0}, selfs[3] = {0};
    for (int i = 0; i < 100000; i++) {
        struct box b[2];
        uint64_t set[2];
        bool twice[2], fits = true;
        for (int k = 0; k < 2; k++) {
            b[k] = (struct box){.rank = (int)pick(0, 4), .off = pick(-16, 16)};
            for (int j = 0; j < b[k].rank; j++) {
                b[k].n[j] = pick(pick(0, 20) ? 1 : 0, 4);
                b[k].st[j] = pick(-17, 17);
            }
            fits = addresses(&b[k], &set[k], &twice[k]) && fits;
            if (fits)
                check_self(&b[k], twice[k], selfs);
        }
        if (fits)
            check_pair(&b[0], &b[1], set[0], set[1], pairs);
    }
    ck_assert_int_gt(pairs[XTI_NO], 3000);
    ck_assert_int_gt(pairs[XTI_YES], 1000);
    ck_assert_int_gt(selfs[XTI_NO], 3000);
    ck_assert_int_gt(selfs[XTI_YES], 3000);
}
END_TEST

START_TEST(an_empty_box_meets_nothing_and_one_point_meets_itself)
{
    int64_t none[] = {3, 0}, st[] = {0, 1}, one[] = {1, 1}, garbage[] = {INT64_MIN, INT64_MAX};
    ck_assert_int_eq(xti_boxes_meet(2, none, st, 0, 0, NULL, NULL, 0), XTI_NO);
    ck_assert_int_eq(xti_box_self_meets(2, none, st), XTI_NO);
    ck_assert_int_eq(xti_boxes_meet(2, one, garbage, 7, 0, NULL, NULL, 7), XTI_YES);
    ck_assert_int_eq(xti_boxes_meet(0, NULL, NULL, 7, 0, NULL, NULL, 8), XTI_NO);
    ck_assert_int_eq(xti_box_self_meets(2, one, garbage), XTI_NO);
    ck_assert(xti_nested(2, one, garbage));
}
END_TEST

START_TEST(numbers_near_two_to_the_63_do_not_wrap)
{
    int64_t n2[] = {2, 2}, big = INT64_MAX;
    /* in 64 bits 2*2^62 + 2*2^62 wraps to 0 */
    int64_t n3[] = {3}, s62[] = {INT64_C(1) << 62};
    ck_assert_int_eq(xti_boxes_meet(1, n3, s62, 0, 1, n3, s62, 1), XTI_NO);
    ck_assert_int_eq(xti_boxes_meet(1, n3, s62, 0, 1, n3, s62, 0), XTI_YES);
    int64_t far[] = {5, 5}, same[] = {INT64_C(1) << 62, INT64_C(1) << 62};
    ck_assert_int_eq(xti_boxes_meet(2, far, same, 0, 0, NULL, NULL, INT64_MIN), XTI_NO);
    int64_t apart[] = {big, big - 1};
    ck_assert_int_eq(xti_box_self_meets(2, n2, apart), XTI_NO);
    ck_assert_int_eq(xti_boxes_meet(2, n2, apart, INT64_MIN, 0, NULL, NULL, big - 1), XTI_NO);
    ck_assert_int_eq(xti_boxes_meet(2, n2, apart, INT64_MIN, 0, NULL, NULL, big - 3), XTI_NO);
    /* INT64_MIN + 2^63 - 1 + 2^63 - 2 = 2^63 - 3 */
    ck_assert_int_eq(xti_boxes_meet(2, n2, apart, INT64_MIN, 0, NULL, NULL, big - 2), XTI_YES);
    int64_t min[] = {INT64_MIN};
    ck_assert_int_eq(xti_boxes_meet(1, n2, min, 0, 0, NULL, NULL, INT64_MIN), XTI_YES);
    ck_assert_int_eq(xti_boxes_meet(1, n2, min, -1, 0, NULL, NULL, big), XTI_NO);
    int64_t huge[] = {big, big}, step[] = {big, big};
    enum xti_answer a = xti_boxes_meet(2, huge, step, 1, 2, huge, step, 0);
    ck_assert(a == XTI_NO || a == XTI_UNKNOWN);
    ck_assert_int_eq(xti_box_self_meets(2, huge, step), XTI_YES);
    ck_assert(!xti_nested(2, huge, step));
}
END_TEST

START_TEST(interleaved_boxes_of_a_large_tensor_do_not_meet)
{
    /* columns 0..2 and 3..5 of a [2^20, 2^20, 6] tensor; even and odd elements; and one column too many */
    int64_t n[] = {1 << 20, 1 << 20, 3}, st[] = {6 << 20, 6, 1}, wide[] = {1 << 20, 1 << 20, 4};
    ck_assert_int_eq(xti_boxes_meet(3, n, st, 0, 3, n, st, 3), XTI_NO);
    ck_assert_int_eq(xti_boxes_meet(3, wide, st, 0, 3, n, st, 3), XTI_YES);
    int64_t many[] = {INT64_C(1) << 40}, two[] = {2}, back[] = {-2};
    ck_assert_int_eq(xti_boxes_meet(1, many, two, 0, 1, many, two, 1), XTI_NO);
    ck_assert_int_eq(xti_boxes_meet(1, many, two, 0, 1, many, back, INT64_C(1) << 40), XTI_YES);
    ck_assert_int_eq(xti_box_self_meets(3, n, st), XTI_NO);
    int64_t odd[] = {2, 3}, three[] = {3, 2}; /* {0,2,4} + {0,3}: injective but not nested */
    ck_assert_int_eq(xti_box_self_meets(2, three, odd), XTI_NO);
    ck_assert(!xti_nested(2, three, odd));
    int64_t four[] = {4, 3}; /* 3*2 == 2*3 */
    ck_assert_int_eq(xti_box_self_meets(2, four, odd), XTI_YES);
}
END_TEST

/* Subset-sum with large pseudo-random weights: no pruning helps, so the cap has to end it. */
START_TEST(a_hard_pair_ends_within_the_cap)
{
    int64_t n[30], st[30];
    int unknown = 0;
    for (int i = 0; i < 30; i++) {
        n[i] = 2;
        st[i] = pick(INT64_C(1) << 29, INT64_C(1) << 30) << 24 | pick(0, (1 << 24) - 1);
    }
    int64_t start = xti_now_ns(), worst = 0;
    for (int i = 0; i < 10; i++) {
        int64_t t = xti_now_ns();
        unknown += xti_boxes_meet(30, n, st, 0, 30, n, st, pick(1, INT64_C(1) << 40)) == XTI_UNKNOWN;
        unknown += xti_box_self_meets(30, n, st) == XTI_UNKNOWN;
        t = xti_now_ns() - t;
        worst = t > worst ? t : worst;
    }
    printf("hard pairs: %d of 20 unknown, at most %.1f ms for two\n", unknown, (double)worst / 1e6);
    ck_assert_int_gt(unknown, 0);
    ck_assert_int_lt(xti_now_ns() - start, INT64_C(20000000000));
}
END_TEST

START_TEST(boxes_with_the_most_dims_are_answered)
{
    int64_t n[XTI_BOX_DIMS + 1], st[XTI_BOX_DIMS + 1];
    for (int i = 0; i <= XTI_BOX_DIMS; i++) {
        n[i] = 2;
        st[i] = INT64_C(1) << (i < 62 ? i : 62);
    }
    ck_assert(xti_nested(62, n, st));
    ck_assert_int_eq(xti_box_self_meets(62, n, st), XTI_NO);
    ck_assert_int_eq(xti_box_self_meets(64, n, st), XTI_YES);
    ck_assert(!xti_nested(65, n, st));
    ck_assert_int_eq(xti_box_self_meets(65, n, st), XTI_UNKNOWN);
    ck_assert_int_eq(xti_boxes_meet(64, n, st, 0, 64, n, st, 5), XTI_YES);
    ck_assert_int_eq(xti_boxes_meet(64, n, st, 0, 64, n, st, INT64_MAX), XTI_YES);
    ck_assert_int_eq(xti_boxes_meet(65, n, st, 0, 65, n, st, 5), XTI_UNKNOWN);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("overlap");
    TCase *tc = tcase_create("overlap");
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, every_pair_of_one_dimensional_boxes_is_answered_exactly);
    tcase_add_test(tc, every_small_two_dimensional_box_is_answered_exactly);
    tcase_add_test(tc, every_pair_of_boxes_in_twelve_bytes_is_answered_exactly);
    tcase_add_test(tc, random_boxes_of_up_to_four_dims_are_answered_exactly);
    tcase_add_test(tc, an_empty_box_meets_nothing_and_one_point_meets_itself);
    tcase_add_test(tc, numbers_near_two_to_the_63_do_not_wrap);
    tcase_add_test(tc, interleaved_boxes_of_a_large_tensor_do_not_meet);
    tcase_add_test(tc, a_hard_pair_ends_within_the_cap);
    tcase_add_test(tc, boxes_with_the_most_dims_are_answered);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
