/* test_parts.c: the parts of a result are the whole, in order, each behind the one before it. */
#include <string.h>

#include "tests/support/suite.h"
#include "tools/parts.h"

/* Row-major number of the element at `lo` of a part. */
static int64_t place(const struct parts *p)
{
    int64_t at = 0;
    for (int i = 0; i < p->rank; i++)
        at = at * p->shape[i] + p->lo[i];
    return at;
}

START_TEST(parts_lie_behind_each_other)
{
    static const int64_t shapes[][4] = {
        {1, 1, 1, 1}, {7, 1, 5, 3}, {2, 3, 1, 100}, {1, 1, 1, 1000}, {13, 4, 4, 1}};
    for (int s = 0; s < 5; s++)
        for (int rank = 0; rank <= 4; rank++)
            for (int64_t most = 1; most < 1200; most += 1 + most / 8) {
                struct parts p;
                int64_t total = 1, done = 0;
                for (int i = 0; i < rank; i++)
                    total *= shapes[s][i];
                parts_begin(&p, rank, shapes[s], most);
                while (parts_next(&p)) {
                    int64_t n = parts_elements(&p);
                    ck_assert_int_eq(place(&p), done);
                    ck_assert(n > 0 && n <= most);
                    done += n;
                }
                ck_assert_int_eq(done, total);
            }
}
END_TEST

START_TEST(a_result_without_elements_has_no_parts)
{
    struct parts p;
    parts_begin(&p, 3, (int64_t[]){0, INT64_MAX, 9}, 16);
    ck_assert(!parts_next(&p));
    parts_begin(&p, 3, (int64_t[]){INT64_MAX, 9, 0}, 16);
    ck_assert(!parts_next(&p));
}
END_TEST

START_TEST(what_fits_is_one_part)
{
    struct parts p;
    parts_begin(&p, 3, (int64_t[]){4, 5, 6}, 120);
    ck_assert(parts_next(&p));
    ck_assert_int_eq(parts_elements(&p), 120);
    ck_assert(!parts_next(&p));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("parts");
    TCase *c = tcase_create("parts");
    tcase_add_test(c, parts_lie_behind_each_other);
    tcase_add_test(c, a_result_without_elements_has_no_parts);
    tcase_add_test(c, what_fits_is_one_part);
    suite_add_tcase(s, c);
    return run_suite(s);
}
