/* test_calls.c: what `xt bench --calls` calls new is new, what it calls the same is the same, and its check
 * of a result can fail. */
#include "bench/calls.c"
#include "support/api.h"

/* calls.c asks measure.c for its buffer. */
void *bench_buffer(size_t bytes) { return malloc(bytes); }

static struct xt_kernel *compile_chain(struct xt_ctx *ctx, const struct situation *s, int number)
{
    struct xt_graph *g;
    struct xt_kernel *k;
    expect(XT_OK, xt_graph_new(&g));
    expect(XT_OK, xt_output(g, s->chain(g, number), NULL, 0));
    expect(XT_OK, xt_compile(ctx, g, NULL, &k));
    ck_assert_int_eq(xt_node_count(g), 5); /* an input and four operations */
    xt_graph_free(g);
    return k;
}

static int64_t memory_hits(struct xt_ctx *ctx)
{
    struct xt_cache_stats s = {.size = sizeof s};
    expect(XT_OK, xt_cache_get(ctx, &s));
    return s.memory_hits;
}

START_TEST(no_two_chains_of_a_situation_are_the_same_request)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    for (int i = 0; i < 1000; i++)
        xt_kernel_free(compile_chain(ctx, &situations[_i], i));
    ck_assert_int_eq(memory_hits(ctx), 0);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(the_chains_with_the_same_map_have_one_signature)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    char first[64];
    for (int i = 0; i < 14400; i += 37) {
        struct xt_kernel *k = compile_chain(ctx, &situations[1], i);
        struct xt_kernel_info info = {.size = sizeof info};
        expect(XT_OK, xt_kernel_get(k, &info));
        if (!i)
            snprintf(first, sizeof first, "%s", info.signature);
        ck_assert_str_eq(info.signature, first);
        xt_kernel_free(k);
    }
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(a_result_with_one_wrong_element_is_noticed)
{
    float src[512], dst[512];
    const struct shape s = {"8x8x8", 8, 3};
    for (int i = 0; i < 512; i++)
        src[i] = (float)i;
    for (int i = 0; i < 512; i++)
        dst[i] = src[i % 8 * 64 + i / 8 % 8 * 8 + i / 64];
    ck_assert(is_reversed(&s, dst, src, 512));
    for (int i = 0; i < 512; i += 73) {
        dst[i] += 1;
        ck_assert(!is_reversed(&s, dst, src, 512));
        dst[i] -= 1;
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("calls");
    TCase *t = tcase_create("calls");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, no_two_chains_of_a_situation_are_the_same_request, 0, N_SITUATIONS);
    tcase_add_test(t, the_chains_with_the_same_map_have_one_signature);
    tcase_add_test(t, a_result_with_one_wrong_element_is_noticed);
    suite_add_tcase(s, t);
    return run_suite(s);
}
