/* test_map_text.c: a map as text for people, and as JSON. */
#include "support/hand_map.h"

START_TEST(the_text_of_a_map_shows_its_formulas)
{
    struct hand h, t = new_hand(4), e = new_hand(4);
    struct xti_str b = {0};
    add_piece(&t, 0, 0, 0, 2, (struct xti_dim[]){{6, 1, 4}, {4, 6, 1}});
    xti_map_text(&t.m, &b);
    ck_assert_str_eq(b.s, "piece 0: dst[4*i0 + i1] = src0[i0 + 6*i1]   i0<6 i1<4\n");
    xti_str_free(&b);
    b = (struct xti_str){0};
    rich_map(&h);
    memcpy(h.piece[1].value, "\x00\x00\x80\x3f", 4);
    xti_map_text(&h.m, &b);
    ck_assert_str_eq(b.s, "piece 0: dst[20*i0 + 3*i1 + 3] = src1[5*i0 + 2*i1 + 7*q0 - 2*q1 + 40]   i0<4 i1<6"
                          "   q0 = floor((3*i0 + i1 + 1)/4)   q1 = floor((i0 + 2*i1 + q0 + 2)/3)"
                          "   if i0 - i1 + q0 - 2*q1 + 5 >= 0\n"
                          "piece 1: dst[2*i0 + 90] = fill 0x3f800000   i0<9\n");
    xti_str_free(&b);
    b = (struct xti_str){0};
    xti_map_text(&e.m, &b);
    add_piece(&e, 2, 5, 0, 0, NULL);
    xti_map_text(&e.m, &b);
    add_piece(&e, 0, INT64_MIN, 1, 0, NULL);
    xti_map_text(&e.m, &b);
    ck_assert_str_eq(b.s, "nothing to copy\npiece 0: dst[0] = src2[5]\npiece 0: dst[0] = src2[5]\n"
                          "piece 1: dst[1] = src0[-9223372036854775808]\n");
    xti_str_free(&b);
}
END_TEST

START_TEST(the_json_of_a_map_has_every_key_of_every_piece)
{
    struct hand h, e = new_hand(1);
    struct xti_str b = {0};
    rich_map(&h);
    memcpy(h.piece[1].value, "\x00\x00\x80\x3f", 4);
    xti_map_json(&h.m, &b);
    ck_assert_str_eq(
        b.s, "[{\"source\":1,\"value\":null,\"soff\":40,\"doff\":3,\"dims\":[[4,5,20],[6,2,3]],"
             "\"divs\":[{\"den\":4,\"c\":1,\"x\":[3,1],\"q\":[]},{\"den\":3,\"c\":2,\"x\":[1,2],\"q\":[1]}],"
             "\"sq\":[7,-2],\"guards\":[{\"c\":5,\"x\":[1,-1],\"q\":[1,-2]}]},"
             "{\"source\":null,\"value\":\"0000803f\",\"soff\":0,\"doff\":90,\"dims\":[[9,0,2]],"
             "\"divs\":[],\"sq\":[],\"guards\":[]}]");
    xti_str_free(&b);
    b = (struct xti_str){0};
    xti_map_json(&e.m, &b);
    ck_assert_str_eq(b.s, "[]");
    xti_str_free(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("map_text");
    TCase *tc = tcase_create("map_text");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, the_text_of_a_map_shows_its_formulas);
    tcase_add_test(tc, the_json_of_a_map_has_every_key_of_every_piece);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
