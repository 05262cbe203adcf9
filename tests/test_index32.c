/* test_index32.c: whether 32 bits hold every index and address of a map. */
#include "support/hand_map.h"

static bool index32_of(int64_t slack, int n, const struct xti_dim *dim)
{
    struct xti_dim d[DIMS];
    struct xti_piece p = {.dim = d, .n_dims = n};
    int64_t lo = 0, hi = 0;
    struct xti_map m = {
        .esize = 1, .n_pieces = 1, .piece = &p, .n_srcs = 1, .numel = 1, .src_lo = &lo, .src_hi = &hi};
    for (int i = 0; i < n; i++) {
        d[i] = dim[i];
        *(d[i].s < 0 ? &lo : &hi) += d[i].s * (d[i].n - 1);
        m.dst_hi += d[i].d * (d[i].n - 1);
    }
    return xti_map_index32(&m, slack);
}

START_TEST(the_index_is_32_bits_wide_only_when_spans_and_counts_fit)
{
    const int64_t G = INT64_C(1) << 31;
    ck_assert(index32_of(0, 1, (struct xti_dim[]){{G - 1, 1, 1}}));
    ck_assert(!index32_of(0, 1, (struct xti_dim[]){{G, 1, 1}}));
    ck_assert(!index32_of(1, 1, (struct xti_dim[]){{G - 1, 1, 1}})); /* the last block overshoots */
    ck_assert(index32_of(1023, 1, (struct xti_dim[]){{G - 1024, 1, 1}}));
    ck_assert(!index32_of(1024, 1, (struct xti_dim[]){{G - 1024, 1, 1}}));
    ck_assert(!index32_of(0, 2, (struct xti_dim[]){{3, G, 2}, {2, 1, 1}}));    /* few rows, stride 2^31 */
    ck_assert(!index32_of(0, 2, (struct xti_dim[]){{2, -G, 2}, {2, 1, 1}}));   /* the same, backwards */
    ck_assert(index32_of(0, 2, (struct xti_dim[]){{2, G - 2, 2}, {2, 1, 1}})); /* highest address 2^31 - 1 */
    ck_assert(!index32_of(0, 2, (struct xti_dim[]){{2, G - 1, 2}, {2, 1, 1}}));
    ck_assert(!index32_of(0, 1, (struct xti_dim[]){{INT64_C(1) << 40, 0, 1}})); /* a scalar, expanded */
    ck_assert(!index32_of(0, 2, (struct xti_dim[]){{1 << 16, 0, 1 << 16}, {1 << 16, 0, 1}}));
    ck_assert(
        !index32_of(0, 2, (struct xti_dim[]){{4, 0, G}, {2, 0, 1}})); /* rows of the destination far apart */
    ck_assert(index32_of(0, 0, NULL));
}
END_TEST

START_TEST(numerators_guards_and_the_sum_of_pieces_decide_the_index_width_too)
{
    struct hand h;
    rich_map(&h);
    ck_assert(xti_map_index32(&h.m, 1024));
    h.part[0].div[0].c = INT32_MAX - 14; /* 3*3 + 1*5 = 14 more */
    ck_assert(xti_map_index32(&h.m, 0));
    h.part[0].div[0].c++;
    ck_assert(!xti_map_index32(&h.m, 0));
    rich_map(&h);
    h.part[0].div[0].den = INT64_C(1) << 31;
    ck_assert(!xti_map_index32(&h.m, 0));
    rich_map(&h);
    h.part[0].guard[0].c = -(INT64_C(1) << 31) - 1;
    ck_assert(!xti_map_index32(&h.m, 0));
    rich_map(&h);
    h.part[0].div_x[0][0] = INT64_MAX;
    h.part[0].dim[0].n = INT64_MAX;
    ck_assert(!xti_map_index32(&h.m, 0));
    struct hand two = new_hand(1);
    add_piece(&two, 0, 0, 0, 1, (struct xti_dim[]){{2, 1, 1}});
    add_piece(&two, 0, 0, 2, 1, (struct xti_dim[]){{2, 1, 1}});
    two.part[0].dim[0].n = two.part[1].dim[0].n = INT64_C(1) << 30;
    ck_assert(!xti_map_index32(&two.m, 0));
    two.part[1].dim[0].n--;
    ck_assert(xti_map_index32(&two.m, 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("index32");
    TCase *tc = tcase_create("index32");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, the_index_is_32_bits_wide_only_when_spans_and_counts_fit);
    tcase_add_test(tc, numerators_guards_and_the_sum_of_pieces_decide_the_index_width_too);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
