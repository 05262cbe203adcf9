/* bench_machine.c: make machine: measures a row of plan/machine.c on the processor at hand and prints it as
 * source. Prices are those of loops here; hints and habits are what serves the library's own plans: each is
 * turned by itself, over chains drawn at random, and kept when they gain by it. Time is this thread's own, so
 * that other work on the machine disturbs little. What a row should rest on beyond that: bench/notes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#endif

#include "bench/bench.h"
#include "cpu/cpu.h"
#include "cpu/run.h"
#include "support/random_graph.h"

enum { LINE = 64, ROUNDS = 3, MOST_SOURCES = 4, CHAINS = 48, SEED = 2026, HUGE_PAGE = 2 << 20 };
#define MEMORY_BYTES ((int64_t)192 << 20)

static void must(bool ok)
{
    if (ok)
        return;
    fprintf(stderr, "out of memory\n");
    exit(1);
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* What streams and chains work in: filling memory anew for each would take longer than they do. */
static char *area;
static int64_t area_bytes;

/* ---- prices: nanoseconds a line of streams */

static volatile uint64_t sink;

static void load_all(char *p, int64_t n)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i += LINE)
        sum += *(uint64_t *)(p + i);
    sink = sum;
}

static void store_all(char *p, int64_t n)
{
    for (int64_t i = 0; i < n; i += 8)
        *(volatile uint64_t *)(p + i) = (uint64_t)i;
}

static void stream_line_to(char *p)
{
#if defined(__x86_64__)
    for (int i = 0; i < LINE; i += 16)
        _mm_stream_si128((__m128i *)(p + i), _mm_set1_epi8(1));
#else
    memset(p, 1, LINE);
#endif
}

static void stream_all(char *p, int64_t n)
{
    for (int64_t i = 0; i < n; i += LINE)
        stream_line_to(p + i);
}

/* Every fifth line is written in part, through the cache. */
static void stream_with_splits(char *p, int64_t n)
{
    for (int64_t i = 0; i < n; i += LINE)
        if (i / LINE % 5)
            stream_line_to(p + i);
        else
            *(volatile uint64_t *)(p + i) = 1;
}

/* Rows so far apart, `burst` lines of each in turn, as tiles leave. */
static int64_t apart, burst;

static void stream_rows(char *p, int64_t n)
{
    enum { ROWS = 16 };
    for (int64_t b = 0; b + ROWS * apart <= n; b += ROWS * apart)
        for (int64_t c = 0; c + burst * LINE <= apart; c += burst * LINE)
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t k = 0; k < burst * LINE; k += LINE)
                    stream_line_to(p + b + r * apart + c + k);
}

static double ns_a_line(void (*run)(char *p, int64_t n), char *p, int64_t bytes)
{
    double best = 1e300;
    int64_t times = bytes < 1 << 20 ? (8 << 20) / bytes : 1;
    for (int r = 0; r <= ROUNDS; r++) { /* the first warms up */
        double t = now_ns();
        for (int64_t i = 0; i < times; i++)
            run(p, bytes);
        t = (now_ns() - t) / (double)times / ((double)bytes / LINE);
        best = r && t < best ? t : best;
    }
    return best;
}

/* What a line costs on each way, beyond the ways before. */
static void ways_between(void (*run)(char *p, int64_t n), char *p, const struct xti_target *t,
                         double out[XTI_N_CACHES])
{
    const int64_t bytes[] = {t->l1_bytes / 2, t->l2_bytes / 2, t->l3_bytes / 2, MEMORY_BYTES};
    double before = ns_a_line(run, p, bytes[0]);
    for (int i = 0; i < XTI_N_CACHES; i++) {
        double here = ns_a_line(run, p, bytes[i + 1]);
        out[i] = here > before ? here - before : 0;
        before = here > before ? here : before;
    }
}

static struct xti_prices measured_prices(const struct xti_target *t)
{
    struct xti_prices price = *t->machine->prices;
    char *p = area;
    ways_between(load_all, p, t, price.fetch);
    ways_between(store_all, p, t, price.store);
    price.stream = ns_a_line(stream_all, p, MEMORY_BYTES);
    double splits = 5 * ns_a_line(stream_with_splits, p, MEMORY_BYTES) - 4 * price.stream;
    price.split = splits > price.stream ? splits : price.stream;
    printf("/* Streamed lines of 16 rows, ns: one behind the other %.1f", price.stream);
    for (apart = 8192; apart <= 8192 + LINE; apart += LINE)
        for (burst = 1; burst <= 4; burst *= 2)
            printf("%s%.1f",
                   burst > 1       ? ", "
                   : apart == 8192 ? "; rows 8192 bytes apart, by one, two, four "
                                   : "; 8256 ",
                   ns_a_line(stream_rows, p, MEMORY_BYTES));
    printf(". */\n");
    return price;
}

/* ---- hints and habits: chains by one row and by another */

struct chain {
    struct xt_graph *g;
    struct xti_map map;
    char *dst, *src[MOST_SOURCES];
};

static char *take(int64_t *at, int64_t elements, int esize)
{
    char *p = area + *at;
    *at += (elements * esize / HUGE_PAGE + 1) * HUGE_PAGE;
    must(*at <= area_bytes);
    return p;
}

static bool open_chain(const char *line, struct chain *c)
{
    struct xti_err err = {0};
    *c = (struct chain){0};
    if (xt_parse(line, 0, NULL, &c->g))
        return false;
    must(!xti_map_fuse(c->g, NULL, &c->map, &err));
    int64_t at = 0;
    c->dst = take(&at, c->map.dst_hi + 1, c->map.esize);
    for (int i = 0; i < c->map.n_srcs; i++)
        c->src[i] = take(&at, c->map.src_hi[i] + 1, c->map.esize);
    return true;
}

static void close_chain(struct chain *c)
{
    xti_map_free(&c->map);
    xt_graph_free(c->g);
}

static void make_plan(const struct chain *c, const struct xti_target *t, const struct xti_machine *m,
                      struct xti_plan *p)
{
    struct xti_target one = *t;
    one.machine = m;
    must(!xti_plan_make(&c->map, &one, p, NULL));
}

static double run_ns(const struct chain *c, const struct xti_plan *p)
{
    int times = p->bytes_written < 8 << 20 ? 8 : 1;
    double t = now_ns();
    for (int i = 0; i < times; i++)
        xti_cpu_run(p, c->dst, (const void *const *)c->src, NULL);
    return (now_ns() - t) / times;
}

enum { MOST_ROWS = 8 };

/* Adds to gain[i] the logarithm of how much faster row i is than row 0: the best of some runs in turn. */
static void compare(const struct chain *c, const struct xti_target *t, const struct xti_machine *rows, int n,
                    double *gain)
{
    struct xti_plan p[MOST_ROWS];
    double best[MOST_ROWS];
    for (int i = 0; i < n; i++)
        make_plan(c, t, &rows[i], &p[i]);
    for (int r = 0; r <= ROUNDS; r++)
        for (int i = 0; i < n; i++) {
            double ns = run_ns(c, &p[i]);
            best[i] = r < 2 || ns < best[i] ? ns : best[i]; /* the first warms up */
        }
    for (int i = 0; i < n; i++) {
        gain[i] += log(best[0] / best[i]);
        xti_plan_free(&p[i]);
    }
}

/* ---- hints */

static const char *const hint_name[] = {"NONE", "NTA", "T0", "T1"};
enum { HINTS = sizeof hint_name / sizeof *hint_name, PER_FAMILY = 3 };

static const struct {
    const char *id, *line[PER_FAMILY];
} family[XTI_N_FETCHES] = {
    [XTI_FETCHES_ROWS] = {"ROWS",
                          {"x: f32[64,32,128,256]; x.permute(0,2,1,3)", "x: u8[16384,4096]; x[:, ::-1]",
                           "x: f32[384,64,2144]; x.permute(1,0,2)"}},
    [XTI_FETCHES_SHORT_PARTS] = {"SHORT_PARTS",
                                 {"x: u8[200000,300]; x.pad((0,0),(1,2))",
                                  "x: f16[300000,100]; y: f16[300000,100]; concat(1, x, y)",
                                  "x: f32[200000,75]; x.roll(1,1)"}},
    [XTI_FETCHES_PARTS] = {"PARTS",
                           {"x: f32[30000,250]; y: f32[30000,250]; concat(1, x, y)",
                            "x: f32[64,500,500]; x.pad((0,0),(1,1),(1,1))", "x: f32[64,512,512]; x.tril(0)"}},
    [XTI_FETCHES_WEAVES] = {"WEAVES",
                            {"x: u8[64,512,512,3]; x.permute(0,3,1,2)",
                             "x: f32[16,3,512,512]; x.permute(0,2,3,1)",
                             "x: f32[4000000,4]; x.permute(1,0)"}},
    [XTI_FETCHES_STRIDED] = {"STRIDED",
                             {"x: f32[8192,4096]; x[:, ::2]", "x: u8[16384,8192]; x[:, ::3]",
                              "x: f16[8192,8192]; x[:, ::2]"}},
    [XTI_FETCHES_GATHERS] = {"GATHERS",
                             {"x: f32[700,300,300]; x.diagonal(0,1,2)", "x: u8[3000000,7,3]; x[:, :, ::-1]",
                              "x: f32[300,7,11,700]; x.permute(0,2,1,3)[:, :, :, ::5]"}},
    [XTI_FETCHES_TILES] = {"TILES",
                           {"x: f32[28,28,48,28,48]; x.permute(4,3,2,1,0)",
                            "x: f16[48,28,28,28,96]; x.permute(4,3,2,1,0)",
                            "x: u8[32,3367,6,99]; x.permute(2,3,0,1)"}},
};

/* The best of rows 1 to n - 1 by their gains over n_chains, unless row 0 does as well. Row n is row 0 again:
 * what it seems to gain is noise. */
static int best_of(const double *gain, int n, int n_chains)
{
    double noise = 2 * fabs(gain[n]), least = 0.01 * n_chains;
    int best = 0;
    for (int i = 1; i < n; i++)
        best = gain[i] > gain[best] + (best ? 0 : noise > least ? noise : least) ? i : best;
    return best;
}

/* The best hint of each family. */
static void find_hints(const struct xti_target *t, struct xti_machine *m)
{
    for (int f = 0; f < XTI_N_FETCHES; f++) {
        struct xti_machine rows[MOST_ROWS];
        double gain[MOST_ROWS] = {0};
        rows[0] = rows[1 + HINTS] = *m;
        for (int h = 0; h < HINTS; h++) {
            rows[1 + h] = *m;
            rows[1 + h].hints.of[f] = (uint8_t)h;
        }
        for (int k = 0; k < PER_FAMILY; k++) {
            struct chain c;
            if (open_chain(family[f].line[k], &c)) {
                compare(&c, t, rows, HINTS + 2, gain);
                close_chain(&c);
            }
        }
        printf("/* %-11s", family[f].id);
        for (int h = 0; h < HINTS; h++)
            printf(" %s %.2f", hint_name[h], exp(gain[1 + h] / PER_FAMILY));
        printf("; again %.2f */\n", exp(gain[1 + HINTS] / PER_FAMILY));
        m->hints = rows[best_of(gain, 1 + HINTS, PER_FAMILY)].hints;
    }
}

/* ---- habits */

static const struct {
    const char *name;
    size_t at;
    int values[3]; /* bool: 0 and 1 */
    int n;
} habit[] = {
#define HABIT(field)                                                                                         \
    {                                                                                                        \
#field, offsetof(struct xti_habits, field), {0, 1 }, 2                                               \
    }
    HABIT(fetch_columns),
    {"follows", offsetof(struct xti_habits, follows), {0, 4, 16}, 3},
    HABIT(far_ahead),
    HABIT(prefetch_writes),
    HABIT(early_stores),
    HABIT(splits_vectors),
    HABIT(well_priced),
    {"gathers", offsetof(struct xti_habits, gathers), {0, 4}, 2},
};
enum { HABITS = sizeof habit / sizeof *habit };

static bool is_number(int h) { return habit[h].n > 2 || habit[h].values[1] > 1; }

static int get(const struct xti_machine *m, int h)
{
    const char *p = (const char *)&m->habits + habit[h].at;
    return is_number(h) ? *(const int *)p : *(const bool *)p;
}

static void set(struct xti_machine *m, int h, int value)
{
    char *p = (char *)&m->habits + habit[h].at;
    if (is_number(h))
        *(int *)p = value;
    else
        *(bool *)p = value;
}

/* Turns a habit to each of its values, and keeps the best. */
static void try_habit(const struct bench_workload *w, int n, const struct xti_target *t,
                      struct xti_machine *m, int h)
{
    struct xti_machine rows[MOST_ROWS] = {*m};
    double gain[MOST_ROWS] = {0};
    int n_rows = 1;
    for (int v = 0; v < habit[h].n; v++)
        if (habit[h].values[v] != get(m, h)) {
            rows[n_rows] = *m;
            set(&rows[n_rows++], h, habit[h].values[v]);
        }
    rows[n_rows] = *m;
    for (int i = 0; i < n; i++) {
        struct chain c;
        if (open_chain(w[i].chain, &c)) {
            compare(&c, t, rows, n_rows + 1, gain);
            close_chain(&c);
        }
    }
    printf("/* %-15s %3d 1.000", habit[h].name, get(m, h));
    for (int i = 1; i < n_rows; i++)
        printf(", %d %.3f", get(&rows[i], h), exp(gain[i] / n));
    printf("; again %.3f */\n", exp(gain[n_rows] / n));
    fflush(stdout);
    *m = rows[best_of(gain, n_rows, n)];
}

/* ---- as source */

static void print_three(const char *name, const double x[XTI_N_CACHES])
{
    printf(".%s = {%.2f, %.2f, %.2f}, ", name, x[0], x[1], x[2]);
}

static void print_row(const struct xti_target *t, const struct xti_machine *m, const struct xti_prices *price)
{
    printf("static const struct xti_prices NAME_prices = { /* the others as of %s */\n    ", m->name);
    print_three("fetch", price->fetch);
    print_three("store", price->store);
    printf(".stream = %.1f, .split = %.1f,\n};\n", price->stream, price->split);
    printf("    {\n        \"NAME\", %lld * KB, %lld * KB, %lld * KB, &NAME_prices,\n        {{",
           (long long)t->l1_bytes >> 10, (long long)t->l2_bytes >> 10, (long long)t->l3_bytes >> 10);
    for (int f = 0; f < XTI_N_FETCHES; f++)
        printf("%s[XTI_FETCHES_%s] = XTI_HINT_%s", f ? ", " : "", family[f].id, hint_name[m->hints.of[f]]);
    const char *comma = "";
    printf("}},\n        {");
    for (int h = 0; h < HABITS; h++)
        if (get(m, h)) {
            printf("%s.%s = ", comma, habit[h].name);
            printf(is_number(h) ? "%d" : "true", get(m, h));
            comma = ", ";
        }
    printf("}\n    },\n");
}

static void print_processor(const struct xti_target *t)
{
#if defined(__x86_64__)
    unsigned a = 0, vendor[4] = {0}, b, c, d;
    __get_cpuid(0, &a, &vendor[0], &vendor[2], &vendor[1]);
    __get_cpuid(1, &a, &b, &c, &d);
    printf("/* %s, family %u, model 0x%02x, %s; begun from row \"%s\" */\n", (const char *)vendor,
           (a >> 8 & 15) + (a >> 20 & 255), (a >> 4 & 15) | (a >> 12 & 0xf0), xti_isa_name[t->isa],
           t->machine->name);
#else
    printf("/* %s; begun from row \"%s\" */\n", xti_isa_name[t->isa], t->machine->name);
#endif
}

static void make_area(void)
{
    area_bytes = 4 * MEMORY_BYTES;
    area = aligned_alloc(HUGE_PAGE, (size_t)area_bytes);
    must(area);
    madvise(area, (size_t)area_bytes, MADV_HUGEPAGE);
    random_fill(area, (size_t)area_bytes, SEED);
}

int main(void)
{
    struct xti_target t;
    struct bench_workload *w;
    char why[200], *text = bench_random_chains(SEED, CHAINS);
    int n = text ? bench_workloads_read(text, &w, why, sizeof why) : -1;
    if (n < 0)
        return 1;
    xti_cpu_target(1, &t);
    make_area();
    struct xti_machine m = *t.machine;
    print_processor(&t);
    struct xti_prices price = measured_prices(&t);
    printf("/* How much faster chains of a family run by each hint. */\n");
    find_hints(&t, &m);
    printf("/* How much faster %d random chains run when a habit is turned. */\n", n);
    for (int h = 0; h < HABITS; h++)
        try_habit(w, n, &t, &m, h);
    print_row(&t, &m, &price);
    bench_workloads_free(w, n);
    free(text);
    free(area);
    return 0;
}
