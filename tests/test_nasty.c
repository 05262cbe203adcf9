/* test_nasty.c: chains drawn to be expensive: parts used again and again, rolls on every axis, primes
 * reshaped, triangles of triangles, thousands of nodes. Compiling one for the CPU, or refusing it, takes at
 * most 250 ms of processor time and 64 MB; explaining it as long. XT_TEST_FULL=1: 10,000 chains in place of
 * 240. The seed of a chain is in every message. */
#include "support/api.h"

#include <stdarg.h>
#include <time.h>

#include "support/random_graph.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__LLVM_INSTR_PROFILE_GENERATE)
enum { SLOWER = 8 }; /* every branch counts, or every access is checked */
#else
enum { SLOWER = 1 };
#endif
enum {
    CHAINS = 240,
    ALL_CHAINS = 10000,
    TRIES = 3,
    COMPILE_MS = 250 * SLOWER,
    EXPLAIN_MS = 250 * SLOWER,
    COMPILE_KB = 64 << 10
};

/* A problem line that grows. */
struct line {
    uint64_t state;
    int n;
    char text[1 << 20];
};

static int below(struct line *l, int n) { return (int)random_below(&l->state, n); }

__attribute__((format(printf, 2, 3))) static void put(struct line *l, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    l->n += vsnprintf(l->text + l->n, sizeof l->text - (size_t)l->n, format, ap);
    va_end(ap);
    ck_assert_int_lt(l->n, (int)sizeof l->text);
}

/* a is joined with a view of itself, again and again. */
static void doubled(struct line *l)
{
    static const char *const other[] = {"a",      "a.flip(0)",          "a.roll(1,0)", "a[1:]",
                                        "a[::2]", "a.pad((1,0),(0,0))", "a.flip(1)",   "a.roll(1,1)",
                                        "a.T",    "a.tril()",           "a[:,1:]",     "a.reshape(-1,2)",
                                        "a[0:0]", "a.repeat(2,axis=1)", "a.tile(1,2)", "a.triu(1).flip(0)"};
    int steps = 2 + below(l, 40), kinds = 1 + below(l, 3), pick[3];
    for (int i = 0; i < kinds; i++)
        pick[i] = below(l, sizeof other / sizeof *other);
    put(l, "x: u8[2,2]; a = x");
    for (int i = 0; i < steps; i++)
        put(l, "; a = concat(%d,a,%s)", below(l, 4) == 0, other[pick[below(l, kinds)]]);
    put(l, "; a");
}

static void stacked(struct line *l)
{
    int steps = 2 + below(l, 30);
    put(l, "x: u8[3,2]; a = x");
    for (int i = 0; i < steps; i++)
        put(l, "; a = stack(%d,a,%s)", below(l, 2), below(l, 2) ? "a" : "a.flip(1)");
    put(l, "; a");
}

static void rolled(struct line *l)
{
    int rank = 2 + below(l, 13), extent = 2 + below(l, 3);
    put(l, "x: u8[");
    for (int i = 0; i < rank; i++)
        put(l, "%s%d", i ? "," : "", extent);
    put(l, "]; x");
    for (int i = 0; i < rank; i++)
        put(l, ".roll(%d,%d)", 1 + below(l, extent), i);
    for (int i = below(l, 4); i > 0; i--)
        put(l, ".reshape(-1).roll(%d,0).flip(0)", 1 + below(l, 50));
}

/* A product of primes, reshaped to its factors in one order after another. */
static void primes(struct line *l)
{
    static const int prime[] = {2, 3, 5, 7, 11, 13};
    int steps = 1 + below(l, 12), order[] = {0, 1, 2, 3, 4, 5};
    put(l, "x: u8[30030]; x");
    for (int i = 0; i < steps; i++) {
        put(l, ".reshape(");
        for (int k = 0; k < 6; k++) {
            int j = k + below(l, 6 - k), t = order[k];
            order[k] = order[j];
            order[j] = t;
            put(l, "%s%d", k ? "," : "", prime[order[k]]);
        }
        put(l, ").permute(");
        for (int k = 0; k < 6; k++)
            put(l, "%s%d", k ? "," : "", (k * 5 + i) % 6);
        put(l, ").reshape(-1)");
        if (!below(l, 3))
            put(l, ".roll(%d,0)", 1 + below(l, 30029));
        if (!below(l, 4))
            put(l, ".pad((%d,%d))[:30030]", 1 + below(l, 9), below(l, 9));
    }
}

static void triangles(struct line *l)
{
    int steps = 2 + below(l, 40), n = 4 + below(l, 200);
    put(l, "x: f32[%d,%d]; x", n, n);
    for (int i = 0; i < steps; i++)
        put(l, ".%s(%d)%s", below(l, 2) ? "tril" : "triu", below(l, n) - n / 2,
            (const char *[]){"", ".T", ".flip(0)", ".roll(1,0)", ".roll(3,1)"}[below(l, 5)]);
}

static void deep(struct line *l)
{
    static const char *const op[] = {".roll(1,0)",
                                     ".flip(0)",
                                     ".T",
                                     ".pad((1,0),(0,1))[1:,:-1]",
                                     ".flip(1)",
                                     ".roll(2,1)",
                                     ".reshape(6,35).reshape(30,7)",
                                     ".reshape(-1).reshape(30,7)",
                                     ".T.T",
                                     ".pad((0,3),(2,0))[:30,:7]"};
    int steps = 100 + below(l, 3600), kinds = 1 + below(l, 5), pick[5];
    bool square = below(l, 2);
    for (int i = 0; i < kinds; i++)
        do
            pick[i] = below(l, sizeof op / sizeof *op);
        while (square == (pick[i] > 5) || (!square && pick[i] == 2));
    put(l, square ? "x: u8[30,30]; x" : "x: u8[30,7]; x");
    for (int i = 0; i < steps; i++)
        put(l, "%s", op[pick[below(l, kinds)]]);
}

static void repeated(struct line *l)
{
    int rank = 1 + below(l, 16), steps = 1 + below(l, 6);
    put(l, "x: u8[");
    for (int i = 0; i < rank; i++)
        put(l, "%s%d", i ? "," : "", 1 + below(l, 3));
    put(l, "]; x");
    for (int i = 0; i < steps; i++) {
        int axis = below(l, rank);
        if (below(l, 2))
            put(l, ".repeat(%d,axis=%d)", 2 + below(l, 2), axis);
        put(l, ".roll(1,%d).tile(", axis);
        for (int k = 0; k < rank; k++)
            put(l, "%s%d", k ? "," : "", 1 + !below(l, 8));
        put(l, ").pad(");
        for (int k = 0; k < rank; k++)
            put(l, "%s(%d,%d)", k ? "," : "", !below(l, 4), !below(l, 4));
        put(l, ")%s", below(l, 3) ? "" : ".reshape(-1).roll(1,0).flip(0)");
        if (l->text[l->n - 1] == ')' && l->text[l->n - 2] == '0' && l->text[l->n - 3] == '(')
            break; /* flat now: the other steps name axes that are gone */
    }
}

static void (*const kind[])(struct line *) = {doubled, stacked, rolled, primes, triangles, deep, repeated};
enum { KINDS = sizeof kind / sizeof *kind };

static double thread_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* The most memory that this process has had since the last call, less what it has now; in KiB. 0: unknown. */
static long peak_kb(bool start)
{
    static long before;
    char row[128];
    long peak = 0;
    FILE *f = fopen(start ? "/proc/self/clear_refs" : "/proc/self/status", start ? "w" : "r");
    if (f && start)
        fputs("5", f);
    while (f && !start && fgets(row, sizeof row, f))
        sscanf(row, "VmHWM: %ld", &peak);
    if (f)
        fclose(f);
    if (start) {
        before = 0;
        before = peak_kb(false);
    }
    return start ? 0 : peak - before;
}

struct cost {
    xt_status s;
    double compile_ms, explain_ms;
    long kb;
};

static struct cost cost_of(struct xt_ctx *ctx, const struct xt_graph *g)
{
    struct xt_kernel *k = NULL;
    struct cost c = {0};
    size_t need;
    peak_kb(true);
    double from = thread_ms();
    c.s = xt_compile(ctx, g, NULL, &k);
    c.compile_ms = thread_ms() - from;
    c.kb = peak_kb(false);
    from = thread_ms();
    if (!c.s)
        ck_assert_int_eq(xt_explain(k, 0, NULL, 0, &need), XT_OK);
    c.explain_ms = thread_ms() - from;
    xt_kernel_free(k);
    return c;
}

/* Who shares a core, or its caches, stretches a thread's own time: what took too long is measured again. */
static struct cost least_cost(struct xt_ctx *ctx, const struct xt_graph *g)
{
    struct cost c = cost_of(ctx, g);
    for (int i = 1; i < TRIES && (c.compile_ms > COMPILE_MS || c.explain_ms > EXPLAIN_MS); i++) {
        struct xt_ctx *fresh = new_ctx(XT_CPU, 1);
        struct cost again = cost_of(fresh, g);
        xt_ctx_free(fresh);
        c.compile_ms = again.compile_ms < c.compile_ms ? again.compile_ms : c.compile_ms;
        c.explain_ms = again.explain_ms < c.explain_ms ? again.explain_ms : c.explain_ms;
    }
    return c;
}

static void compile_one(struct xt_ctx *ctx, struct line *l, int seed, int counts[2])
{
    struct xt_graph *g = NULL;
    if (xt_parse(l->text, 0, NULL, &g)) /* an extent beyond 63 bits, or more nodes than a graph has */
        return;
    struct cost c = least_cost(ctx, g);
    ck_assert_msg(!c.s || c.s == XT_EUNSUPPORTED || c.s == XT_EOVERFLOW, "seed %d: %s: %s", seed,
                  xt_status_name(c.s), l->text);
    ck_assert_msg(c.compile_ms <= COMPILE_MS, "seed %d: %.0f ms: %.2000s", seed, c.compile_ms, l->text);
    ck_assert_msg(c.kb <= COMPILE_KB, "seed %d: %ld KiB: %.2000s", seed, c.kb, l->text);
    ck_assert_msg(c.explain_ms <= EXPLAIN_MS, "seed %d: explained in %.0f ms: %.2000s", seed, c.explain_ms,
                  l->text);
    counts[c.s != XT_OK]++;
    xt_graph_free(g);
}

START_TEST(no_chain_takes_more_than_its_host_can_give)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct line *l = malloc(sizeof *l);
    int counts[2] = {0, 0}, n = (test_full() ? ALL_CHAINS : CHAINS) / KINDS;
    for (int i = 0; i < n; i++) {
        int seed = i * KINDS + _i;
        *l = (struct line){.state = (uint64_t)seed};
        kind[_i](l);
        compile_one(ctx, l, seed, counts);
    }
    ck_assert_int_gt(counts[0], 0);
    if (test_full())
        printf("kind %d: %d chains compiled, %d refused\n", _i, counts[0], counts[1]);
    free(l);
    xt_ctx_free(ctx);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("nasty");
    TCase *c = tcase_create("nasty");
    tcase_set_timeout(c, 1200);
    tcase_add_loop_test(c, no_chain_takes_more_than_its_host_can_give, 0, KINDS);
    suite_add_tcase(s, c);
    return run_suite(s);
}
