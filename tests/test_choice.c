/* test_choice.c: the plans that a map could have differ in speed alone, and what each is expected to take. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "bench/bench.h"
#include "cpu/cpu.h"
#include "cpu/run.h"
#include "plan/choice.h"
#include "plan/estimate.h"
#include "support/map_of.h"
#include "support/pick.h"

static struct bench_workload *work;
static int n_work;

/* Caches so small that small shapes are blocked, and those of two processors. */
static struct xti_machine careful, zen; /* without habits; set by main */
static const struct xti_target tiny = {.backend = XT_CPU,
                                       .l1_bytes = 1 << 10,
                                       .l2_bytes = 4 << 10,
                                       .l3_bytes = 16 << 10,
                                       .machine = &careful,
                                       .threads = 1};
static const struct xti_target server = {.backend = XT_CPU,
                                         .isa = XTI_ISA_AVX512,
                                         .l1_bytes = 48 << 10,
                                         .l2_bytes = 2 << 20,
                                         .l3_bytes = 260 << 20,
                                         .machine = &careful,
                                         .threads = 1};
static const struct xti_target epyc = {.backend = XT_CPU,
                                       .isa = XTI_ISA_AVX512,
                                       .l1_bytes = 32 << 10,
                                       .l2_bytes = 1 << 20,
                                       .l3_bytes = 32 << 20,
                                       .machine = &zen,
                                       .threads = 1};

static int64_t src_bytes(const struct xti_map *m, int i)
{
    return m->src_hi[i] >= m->src_lo[i] ? (m->src_hi[i] + 1) * m->esize : 0;
}

/* ---------------------------------------------------------------------------------------------- same bytes
 */

static void run_in_shares(const struct xti_plan *p, void *dst, const void *const *src)
{
    struct xti_copy c = {.plan = xti_plan_at(p, dst), .dst = dst, .src = src};
    int parts = p->target.threads;
    for (int over = 0; over <= c.plan->covered; over++)
        for (int i = parts - 1; i >= 0; i--) {
            c.over = over;
            xti_run_share(&c, (struct xti_share){i, parts});
        }
}

/* What a map copies, and room to copy it once more, from any place in a line on. */
enum { LINE = 64 };
struct buffers {
    void *src[64];
    unsigned char *want, *room; /* room begins on a line, with one before the copy and one behind it */
    size_t bytes, align;
};

static void buffers_of(const struct xti_map *m, struct buffers *b)
{
    *b = (struct buffers){.bytes = (size_t)((m->dst_hi + 1) * m->esize)};
    b->align = m->esize < 8 ? (size_t)m->esize : 8;
    b->want = malloc(b->bytes + 1), b->room = aligned_alloc(LINE, b->bytes / LINE * LINE + 4 * LINE);
    ck_assert(b->want && b->room && m->n_srcs <= 64);
    for (int i = 0; i < m->n_srcs; i++)
        b->src[i] = random_bytes(src_bytes(m, i), (uint64_t)i);
    memset(b->want, 0xa5, b->bytes);
    xti_map_eval(m, b->want, (const void *const *)b->src);
}

static void buffers_free(const struct xti_map *m, struct buffers *b)
{
    for (int i = 0; i < m->n_srcs; i++)
        free(b->src[i]);
    free(b->want);
    free(b->room);
}

static int second_plans; /* that were run: of destinations inside a line */

static void check_plan(const struct xti_plan *p, struct buffers *b, const char *what)
{
    struct xti_str text = {0};
    int64_t places = LINE / (int64_t)b->align;
    size_t at = LINE + b->align * (size_t)(pick(0, 3) ? pick(0, places - 1) : 0), whole = b->bytes + 3 * LINE;
    second_plans += xti_plan_at(p, b->room + at) != p;
    memset(b->room, 0xa5, whole);
    run_in_shares(p, b->room + at, (const void *const *)b->src);
    bool right = !memcmp(b->room + at, b->want, b->bytes);
    memset(b->room + at, 0xa5, b->bytes);
    for (size_t i = 0; i < whole; i++)
        right &= b->room[i] == 0xa5;
    xti_choice_text(p->target.choice, &text);
    ck_assert_msg(right, "%s: %s, %s, %s, %d threads, from byte %zu of a line on", what, text.s,
                  p->target.machine->name, xti_isa_name[p->target.isa], p->target.threads, at % LINE);
    xti_str_free(&text);
}

static int same_bytes(const struct xti_map *m, const struct xti_target *t, const char *what)
{
    struct xti_candidate c[XTI_CHOICE_ROOM];
    struct buffers b;
    buffers_of(m, &b);
    int n = xti_choice_plans(m, t, c);
    ck_assert_int_gt(n, 0);
    for (int i = 0; i < n; i++) {
        check_plan(&c[i].plan, &b, what);
        xti_plan_free(&c[i].plan);
    }
    buffers_free(m, &b);
    return n;
}

static int all_targets(const struct xti_map *m, const char *what)
{
    struct xti_target here;
    int n = 0;
    xti_cpu_target(1, &here);
    for (int isa = 0; isa <= (int)here.isa; isa++)
        for (int threads = 1; threads <= 3; threads += 2) {
            struct xti_target small = tiny, real = here;
            small.isa = real.isa = (enum xti_isa)isa;
            small.threads = real.threads = threads;
            n += same_bytes(m, &small, what) + same_bytes(m, &real, what);
        }
    return n;
}

START_TEST(every_choice_copies_a_workload_alike)
{
    struct xti_map m;
    map_of(work[_i].small, &m);
    all_targets(&m, work[_i].small);
    xti_map_free(&m);
}
END_TEST

START_TEST(every_choice_copies_random_chains_alike)
{
    const struct random_graph_options opt = {.no_empty = true, .max_numel = 20000};
    const char *more = getenv("XT_TEST_SEEDS");
    int64_t plans = 0, chains = more ? atoi(more) : 60;
    for (uint64_t seed = 1; seed <= (uint64_t)chains; seed++) {
        struct xt_graph *g = random_graph(seed, &opt);
        struct xti_map m;
        fuse(g, &m);
        char what[4200];
        snprintf(what, sizeof what, "seed %llu: %s", (unsigned long long)seed, graph_text(g));
        if (m.n_pieces && m.dst_hi < 1 << 20)
            plans += all_targets(&m, what);
        xti_map_free(&m);
        xt_graph_free(g);
    }
    ck_assert_int_gt(plans, 8 * chains); /* there were choices to make */
}
END_TEST

/* All decisions at once, each at random. */
static struct xti_choice any_choice(void)
{
    struct xti_choice c = {.order = (int8_t)pick(0, XTI_ORDER_COUNT - 1),
                           .stream = (int8_t)pick(-1, 1),
                           .rows = (int8_t)pick(-2, 2),
                           .cols = (int8_t)pick(-2, 2),
                           .first = (int8_t)pick(-1, 1)};
    for (int i = 0; i < 64; i++)
        c.without |= (uint64_t)!pick(0, 4) << i;
    ck_assert(xti_choice_valid(c));
    return c;
}

/* On a machine with its caches or with small ones, by any instruction set that this one has. */
static void copy_on(const struct xti_machine *machine, const struct xti_map *m, struct buffers *b,
                    const char *what)
{
    enum { CHOICES = 6 };
    struct xti_target t = pick(0, 1) ? tiny : server;
    t.machine = machine;
    for (int i = 0; i < CHOICES; i++) {
        struct xti_plan p;
        t.choice = any_choice();
        t.threads = (int)pick(1, 3);
        do
            t.isa = (enum xti_isa)pick(0, XTI_ISA_COUNT - 1);
        while (!xti_cpu_has(t.isa));
        ck_assert_msg(!xti_plan_make(m, &t, &p, NULL), "%s", what);
        check_plan(&p, b, what);
        xti_plan_free(&p);
    }
}

START_TEST(any_choice_on_any_machine_copies_random_chains_alike)
{
    const struct random_graph_options opt = {.no_empty = true, .max_numel = 20000};
    const char *more = getenv("XT_TEST_SEEDS");
    uint64_t chains = more ? strtoull(more, NULL, 10) : 200;
    for (uint64_t seed = 1000; seed < 1000 + chains; seed++) {
        struct xt_graph *g = random_graph(seed, &opt);
        struct buffers b;
        struct xti_map m;
        char what[4200];
        fuse(g, &m);
        snprintf(what, sizeof what, "seed %llu: %s", (unsigned long long)seed, graph_text(g));
        if (m.n_pieces && m.dst_hi < 1 << 20) {
            buffers_of(&m, &b);
            for (int i = 0; xti_machine_at(i); i++)
                copy_on(xti_machine_at(i), &m, &b, what);
            buffers_free(&m, &b);
        }
        xti_map_free(&m);
        xt_graph_free(g);
    }
}
END_TEST

/* clang-format off */
/* Streamed copies whose rows begin anywhere in a line; %s the type, %d a run. */
static const char *const streamed[] = {
    "x: %s[4,300,%d]; x.permute(1,0,2)",
    "x: %s[300,4,%d]; x.permute(1,0,2)",
    "x: %s[2,5,60,%d]; x.permute(0,2,1,3)",
    "x: %s[2,30,3,8,4,%d]; x.permute(0,1,3,2,4,5)",
    "x: %s[3,48,%d]; x.permute(1,2,0)",
    "x: %s[700,%d]; x[:, ::-1]",
    "x: %s[700,%d]; x.T",
    "x: %s[20,30,%d]; x.pad((0,0),(1,1),(1,1))",
    "x: %s[300,4,%d]; x.unsqueeze(2).expand(-1,-1,4,-1)",
    "x: %s[700,%d]; x[1:, 1::2]",
    "x: %s[3,80,2,%d]; x.permute(1,3,2,0)",
};
/* clang-format on */

/* post: plans for destinations inside a line copy what the others do, and nothing beside it. */
START_TEST(streamed_copies_from_any_place_in_a_line_on_are_alike)
{
    static const char *const types[] = {"u8", "f16", "f32", "f64", "c128"};
    const struct xti_machine *machines[32];
    int tried = test_full() ? 5000 : 400, n_machines = 0, inside = 0;
    while (n_machines < 32 && (machines[n_machines] = xti_machine_at(n_machines)))
        n_machines++;
    for (int n = 0; n < tried; n++) {
        const char *form = streamed[pick(0, sizeof streamed / sizeof *streamed - 1)];
        struct xti_target t = tiny;
        struct buffers b;
        struct xti_map m;
        char line[128];
        snprintf(line, sizeof line, form, types[pick(0, 4)], (int)pick(1, pick(0, 1) ? 40 : 200));
        map_of(line, &m);
        buffers_of(&m, &b);
        for (int i = 0; i < 4; i++) {
            struct xti_plan p;
            t.machine = machines[pick(0, n_machines - 1)];
            t.threads = (int)pick(1, 3);
            t.d_line = pick(0, 1) ? XTI_MALLOC : 0; /* made for it, whether or not it would be chosen */
            inside += t.d_line != 0;
            t.choice = (struct xti_choice){.stream = (int8_t)pick(0, 1)};
            do
                t.isa = (enum xti_isa)pick(0, XTI_ISA_COUNT - 1);
            while (!xti_cpu_has(t.isa));
            ck_assert_msg(!xti_plan_make(&m, &t, &p, NULL), "%s", line);
            check_plan(&p, &b, line);
            xti_plan_free(&p);
        }
        buffers_free(&m, &b);
        xti_map_free(&m);
    }
    inside += second_plans;
    printf("note: %d chains, %d copies by plans for destinations inside a line: alike\n", tried, inside);
}
END_TEST

/* --------------------------------------------------------------------------------------------- candidates */

struct candidates {
    struct xti_map map;
    struct xti_candidate c[XTI_CHOICE_ROOM];
    int n;
};

static void candidates_of(const char *line, struct candidates *out)
{
    map_of(line, &out->map);
    out->n = xti_choice_plans(&out->map, &server, out->c);
}

static void candidates_free(struct candidates *x)
{
    for (int i = 0; i < x->n; i++)
        xti_plan_free(&x->c[i].plan);
    xti_map_free(&x->map);
}

START_TEST(the_model_comes_first_and_the_others_by_estimate)
{
    struct candidates x;
    candidates_of("x: f32[300,4,500]; x.permute(2,0,1)", &x);
    ck_assert_int_gt(x.n, 3);
    ck_assert(xti_choice_is_model(x.c[0].plan.target.choice));
    for (int i = 1; i < x.n; i++) {
        ck_assert(!xti_choice_is_model(x.c[i].plan.target.choice));
        ck_assert(xti_choice_valid(x.c[i].plan.target.choice));
        ck_assert(i == 1 || x.c[i - 1].seconds <= x.c[i].seconds);
    }
    candidates_free(&x);
}
END_TEST

START_TEST(a_copy_without_loops_has_no_choice_but_streaming)
{
    struct candidates x;
    candidates_of("x: f32[64]; x", &x);
    ck_assert_int_eq(x.n, 2);
    ck_assert(!x.c[0].plan.step[0].store.stream && x.c[1].plan.step[0].store.stream);
    candidates_free(&x);
}
END_TEST

START_TEST(numbers_that_no_choice_has_are_not_valid)
{
    const struct xti_choice bad[] = {{.stream = 2}, {.stream = -2}, {.order = -1}, {.order = XTI_ORDER_COUNT},
                                     {.rows = 100}, {.rows = -100}, {.cols = 100}, {.cols = -100},
                                     {.first = -2}};
    ck_assert(xti_choice_valid((struct xti_choice){0}));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!xti_choice_valid(bad[i]), "%zu", i);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- estimates
 */

static struct xti_estimate estimate_of(const char *line, const struct xti_target *t)
{
    struct xti_map m;
    map_of(line, &m);
    struct xti_plan p;
    struct xti_err err = {0};
    struct xti_estimate e;
    ck_assert_msg(!xti_plan_make(&m, t, &p, &err), "%s: %s", line, err.e.message);
    xti_plan_estimate(&p, &e);
    xti_plan_free(&p);
    xti_map_free(&m);
    return e;
}

/* clang-format off */
static const struct {
    const char *line;
    double read, written; /* lines */
} counted[] = {
    {"x: f32[1600]; x",                                   100,     100},
    {"x: f32[1600]; x[::-1]",                             100,     100},
    {"x: u8[3,64,64]; x.permute(1,2,0)",                  192,     192},
    {"x: f32[4096,4096]; x.T",                            1 << 20, 1 << 20}, /* blocked: each read once */
    {"x: f32[16]; x.unsqueeze(0).expand(4096,16)",        1,       4096},
    {"x: f32[4096,16]; x[:, 0]",                          4096,    256},     /* a line an element */
    {"x: f32[4096,32]; x[:, :16]",                        4096,    4096},    /* every second line */
    {"x: f32[4096,1]; x.expand(4096,64)",                 256,     16384},
    {"x: f32[64,64]; x.pad((64,0),(0,0))",                256,     512},
};
/* clang-format on */

START_TEST(an_estimate_counts_the_lines_that_must_move)
{
    struct xti_estimate e = estimate_of(counted[_i].line, &server);
    ck_assert_msg(fabs(e.lines_read - counted[_i].read) <= 1 &&
                      fabs(e.lines_written - counted[_i].written) <= 1,
                  "%s: %g read, %g written", counted[_i].line, e.lines_read, e.lines_written);
}
END_TEST

START_TEST(an_estimate_counts_the_lines_of_all_parts_of_a_joint_plan)
{
    struct xti_estimate e =
        estimate_of("x: f64[9,1000000]; y: f64[4,1000000]; concat(0, x, y).permute(1,0)", &epyc);
    ck_assert_double_eq_tol(e.lines_read, 13e6 / 8, 3); /* one that is not whole for each source */
    ck_assert_double_eq_tol(e.lines_written, 13e6 / 8, 1);
}
END_TEST

START_TEST(streaming_stores_read_no_line_of_the_destination)
{
    ck_assert_double_eq(estimate_of("x: f32[64,1048576]; x", &server).lines_owned, 0);
    ck_assert_double_eq(estimate_of("x: f32[1600]; x", &server).lines_owned, 100);
}
END_TEST

START_TEST(more_of_the_same_takes_longer)
{
    static const char *const form[] = {"x: f32[%d]; x", "x: u8[%d,3,64]; x.permute(0,2,1)",
                                       "x: f32[%d,64]; x.T", "x: f32[%d,40]; x.tril(0)"};
    const struct xti_target *t[] = {&server, &epyc, &tiny};
    for (int k = 0; k < 12; k++) {
        double last = 0;
        for (int n = 100; n <= 1000000; n *= 100) {
            char line[128];
            snprintf(line, sizeof line, form[k % 4], n);
            double now = estimate_of(line, t[k / 4]).seconds;
            ck_assert_msg(now > last, "%s: %g after %g", line, now, last);
            last = now;
        }
    }
}
END_TEST

START_TEST(every_workload_has_an_estimate_that_a_machine_could_have)
{
    const struct xti_target *t[] = {&server, &epyc};
    for (int k = 0; k < 2; k++) {
        struct xti_estimate e = estimate_of(work[_i].chain, t[k]);
        double bytes = 64 * (e.lines_read + e.lines_written);
        ck_assert_msg(e.seconds > bytes / 200e9 && e.seconds < bytes / 1e9, "%s: %g s for %g bytes",
                      work[_i].name, e.seconds, bytes);
    }
}
END_TEST

int main(void)
{
    const struct xti_machine *zen5 = xti_machine_named("zen5");
    careful = (struct xti_machine){"careful", .prices = xti_machine_careful->prices};
    zen = (struct xti_machine){"zen", .prices = zen5->prices, .hints = zen5->hints};
    char why[256];
    n_work = bench_workloads_read(bench_workloads_text, &work, why, sizeof why);
    Suite *s = suite_create("choice");
    TCase *c = tcase_create("choice");
    tcase_set_timeout(c, 600);
    tcase_add_loop_test(c, every_choice_copies_a_workload_alike, 0, n_work);
    tcase_add_test(c, every_choice_copies_random_chains_alike);
    tcase_add_test(c, any_choice_on_any_machine_copies_random_chains_alike);
    tcase_add_test(c, streamed_copies_from_any_place_in_a_line_on_are_alike);
    tcase_add_test(c, the_model_comes_first_and_the_others_by_estimate);
    tcase_add_test(c, a_copy_without_loops_has_no_choice_but_streaming);
    tcase_add_test(c, numbers_that_no_choice_has_are_not_valid);
    tcase_add_loop_test(c, an_estimate_counts_the_lines_that_must_move, 0, sizeof counted / sizeof *counted);
    tcase_add_test(c, an_estimate_counts_the_lines_of_all_parts_of_a_joint_plan);
    tcase_add_test(c, streaming_stores_read_no_line_of_the_destination);
    tcase_add_test(c, more_of_the_same_takes_longer);
    tcase_add_loop_test(c, every_workload_has_an_estimate_that_a_machine_could_have, 0, n_work);
    suite_add_tcase(s, c);
    int status = run_suite(s);
    bench_workloads_free(work, n_work);
    return status;
}
