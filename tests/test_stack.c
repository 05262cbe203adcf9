/* test_stack.c: how much of its stack a thread needs that compiles and copies: what xt.h promises, measured
 * on a painted stack, for every instruction set, over one chain for every way to run a plan, the golden
 * chains, the workloads, the 57 and chains drawn at random. XT_TEST_FULL=1: all of them and 2,000 random
 * ones, else samples. Sanitizers' frames are larger: then nothing is measured. */
#include "support/api.h"

#include <pthread.h>

#include "bench/bench.h"
#include "cpu/cpu.h"
#include "support/cuda_made.h"
#include "support/golden.h"

/* One for every way to run a plan that keeps something on the stack. */
static const char *const deep[] = {
    "x: u8[3001,3011]; x.permute(1,0)",                 /* tile */
    "x: u8[60,15,16,15,5,48]; x.permute(1,4,0,5,3,2)",  /* bytes in long columns */
    "x: f32[16,16,16,16,16,3]; x.permute(4,3,2,1,0,5)", /* buffered */
    "x: u8[3,301000,33]; x.permute(1,0,2)",             /* buffered */
    "x: f16[400,300,43]; x.permute(1,0,2)",             /* braid */
    "x: f32[40000,64]; x[:, :63]",                      /* assembled */
    "x: u8[3,3,3,3,3,3,3,3,3,3,3,3,3,3,3]; x.permute(14,13,12,11,10,9,8,7,6,5,4,3,2,1,0)", /* gather */
    "x: f32[2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2]; "
    "x.permute(14,20,7,0,16,5,12,3,2,8,9,10,11,18,15,4,1,17,19,13,21,6)", /* mosaic, where gathers are slow */
    "x: u8[100000,20,5]; x.flip(2)",                                      /* buffered, blocks by mosaics */
    "x: u8[9000,8,8,20]; x.permute(0,3,2,1)",                             /* buffered, units side by side */
    "x: f32[1600,1600]; x.permute(1,0)",                                  /* transpose */
    "x: u8[2000,224,2,3,4]; x.permute(0,3,2,4,1)",       /* buffered, blocks by tiles of few rows */
    "x: f64[8,153516]; x.pad((1,0),(2,1)).permute(1,0)", /* buffered, blocks of several pieces */
    "x: u8[345,307,3]; x.permute(2,1,0).flip(0).flip(1).pad((4,1),(0,0),(1,0))", /* of u8, transposed */
    "x: f32[1600,1600]; x.tril(0)",                                              /* general */
    "x: u8[4000,2000,3]; x.permute(1,0,2)",                                      /* turn */
    "x: u8[7,1500001]; x.permute(1,0)",                                          /* interleave */
    "x: u8[1500001,8]; x.permute(1,0)",                                          /* deinterleave */
    "x: f32[1200,62,62]; x.pad((0,0),(1,1),(1,1))",                              /* merge */
    "x: f32[4,16,160,160]; x.pad((0,0),(0,0),(1,1),(1,1)).unfold(2,3,1).unfold(3,3,1)", /* many pieces */
};

/* xt.h says 48 KiB of compiling, 56 of copying, 72 of measuring: less here, that chains of no list stay
 * within it, too. A thread of 64 KiB has 56 to 60 of its own. */
enum { STACK_ROOM = 1 << 18, MOST_COMPILING = 40 << 10, MOST_COPYING = 48 << 10, MOST_MEASURING = 64 << 10 };
enum { PAINT = 0x5c, SOURCES = 64 };

struct deep_call {
    struct xt_ctx *ctx;
    const struct xt_graph *g; /* NULL: do nothing */
    const char *arch;         /* of CUDA, or NULL */
    struct xt_kernel *k;      /* NULL: compile it, else run it */
    int measure;
    void *dst;
    const void *src[SOURCES];
    xt_status status;
};

static void *call_deep(void *arg)
{
    struct deep_call *c = arg;
    struct xt_compile_options o = {.size = sizeof o, .measure = c->measure, .arch = c->arch};
    if (c->k)
        c->status = xt_run(c->k, c->dst, c->src, NULL);
    else if (c->g)
        c->status = xt_compile(c->ctx, c->g, &o, &c->k);
    return NULL;
}

/* Bytes of its stack that a thread has written to when the call is over. */
static size_t stack_touched(struct deep_call *c)
{
    static unsigned char stack[STACK_ROOM] __attribute__((aligned(1 << 12)));
    pthread_attr_t attr;
    pthread_t thread;
    size_t untouched = 0;
    memset(stack, PAINT, STACK_ROOM);
    ck_assert(!pthread_attr_init(&attr) && !pthread_attr_setstack(&attr, stack, STACK_ROOM));
    ck_assert(!pthread_create(&thread, &attr, call_deep, c) && !pthread_join(thread, NULL));
    pthread_attr_destroy(&attr);
    while (untouched < STACK_ROOM && stack[untouched] == PAINT)
        untouched++;
    expect(XT_OK, c->status);
    return STACK_ROOM - untouched;
}

/* Without those of a thread that does nothing: this program's thread-local variables alone take 8 KiB. */
static size_t stack_used(struct deep_call *c)
{
    struct deep_call nothing = {0};
    return stack_touched(c) - stack_touched(&nothing);
}

/* Memory for the ends of copies; pages that nobody writes are all the one of zeros. */
static void *room_for(size_t bytes)
{
    void *p =
        mmap(NULL, bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    return p;
}

/* The most so far, and of which chain. */
struct most {
    size_t bytes;
    char line[2048];
};
static struct most most_compiling, most_copying;
static int n_measured;

static void note(struct most *most, size_t bytes, const char *line)
{
    if (bytes > most->bytes) {
        most->bytes = bytes;
        snprintf(most->line, sizeof most->line, "%s", line);
    }
}

static void measure(struct xt_ctx *ctx, const struct xt_graph *g, const char *line)
{
    struct deep_call c = {.ctx = ctx, .g = g};
    struct xt_kernel_info info = {.size = sizeof info};
    size_t compiling = stack_used(&c), bytes[SOURCES + 1] = {0};
    int n = xt_input_count(g);
    ck_assert_msg(compiling <= MOST_COMPILING, "compiling takes %zu bytes: %s", compiling, line);
    expect(XT_OK, xt_kernel_get(c.k, &info));
    for (int i = 0; i < n && n <= SOURCES; i++) {
        bytes[i] = (size_t)xt_src_min_bytes(c.k, i);
        c.src[i] = room_for(bytes[i]);
    }
    c.dst = room_for((size_t)info.dst_min_bytes);
    size_t copying = n <= SOURCES ? stack_used(&c) : 0;
    ck_assert_msg(copying <= MOST_COPYING, "copying takes %zu bytes: %s", copying, line);
    for (int i = 0; i < n && n <= SOURCES; i++)
        munmap((void *)(uintptr_t)c.src[i], bytes[i] + 1);
    munmap(c.dst, (size_t)info.dst_min_bytes + 1);
    xt_kernel_free(c.k);
    n_measured++;
    note(&most_compiling, compiling, line);
    note(&most_copying, copying, line);
}

static void measure_line(struct xt_ctx *ctx, const char *line)
{
    struct xt_graph *g = parse_line(line);
    measure(ctx, g, line);
    xt_graph_free(g);
}

/* Every so many-th chain of "name | where | chain" lines. */
static void measure_workloads(struct xt_ctx *ctx, const char *text, int every, const char *as)
{
    struct bench_workload *w;
    char why[256];
    int n = bench_workloads_read(text, &w, why, sizeof why);
    ck_assert_msg(n > 0, "%s", why);
    for (int i = 0; i < n; i += every) {
        char *line = as ? bench_chain_as(w[i].chain, as) : NULL;
        measure_line(ctx, line ? line : w[i].chain);
        free(line);
    }
    bench_workloads_free(w, n);
}

static char *text_of(const char *path)
{
    size_t size = 1 << 20, n;
    char *text = malloc(size);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s: run from the repository's root", path);
    n = fread(text, 1, size - 1, f);
    fclose(f);
    text[n] = 0;
    return text;
}

static void measure_golden(struct xt_ctx *ctx)
{
    static struct golden_case c;
    FILE *f = golden_open();
    ck_assert_ptr_nonnull(f);
    while (golden_next(f, &c)) {
        measure(ctx, c.g, c.text);
        xt_graph_free(c.g);
    }
    fclose(f);
}

START_TEST(copying_and_compiling_need_no_more_stack_than_promised)
{
    static const char *const types[] = {NULL, "u8", "f16", "f64"};
    int every = test_full() ? 1 : 23, n_random = test_full() ? 2000 : 50;
    if (SANITIZED || !xti_cpu_has((enum xti_isa)_i))
        return;
    setenv("XT_ISA", xti_isa_name[_i], 1);
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    char *random = bench_random_chains(1, n_random), *ttc57 = text_of("bench/problems/ttc57.txt");
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++)
        measure_line(ctx, deep[i]);
    measure_golden(ctx);
    measure_workloads(ctx, bench_workloads_text, every, NULL);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        measure_workloads(ctx, ttc57, every, types[i]);
    measure_workloads(ctx, random, 1, NULL);
    printf("note: %s: stack of %d chains: compiling %zu bytes: %s\n", xti_isa_name[_i], n_measured,
           most_compiling.bytes, most_compiling.line);
    printf("note: %s: copying %zu bytes: %s\n", xti_isa_name[_i], most_copying.bytes, most_copying.line);
    free(random);
    free(ttc57);
    xt_ctx_free(ctx);
}
END_TEST

/* Copies run inside of a compile. */
START_TEST(measuring_needs_no_more_stack_than_promised)
{
    static const char *const line[] = {"x: f16[106868,12,7]; x.permute(0,2,1)",
                                       "x: u8[94647,7,13,13]; x.permute(0,1,3,2)",
                                       "x: f32[40000,64]; x[:, :63]"};
    for (size_t i = 0; i < sizeof line / sizeof *line && !SANITIZED; i++) {
        struct xt_graph *g = parse_line(line[i]);
        struct deep_call c = {.ctx = new_ctx(XT_CPU, 1), .g = g, .measure = 1};
        size_t used = stack_used(&c);
        printf("note: measuring takes %zu bytes\n", used);
        ck_assert_msg(used <= MOST_MEASURING, "%s: %zu bytes", line[i], used);
        xt_kernel_free(c.k);
        xt_graph_free(g);
        xt_ctx_free(c.ctx);
    }
}
END_TEST

/* The compiler is in a process of its own, xt-cc; planning, emitting and asking are here. */
START_TEST(compiling_for_cuda_needs_no_more_stack_than_promised)
{
    struct most most = {0};
    if (SANITIZED || cuda_skipped())
        return;
    struct xt_ctx *ctx = new_ctx(XT_CUDA, 1);
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i += test_full() ? 1 : 3) {
        struct xt_graph *g = parse_line(deep[i]);
        struct deep_call c = {.ctx = ctx, .g = g, .arch = "sm_90"};
        note(&most, stack_used(&c), deep[i]);
        xt_kernel_free(c.k);
        xt_graph_free(g);
    }
    printf("note: CUDA: compiling %zu bytes: %s\n", most.bytes, most.line);
    ck_assert_msg(most.bytes <= MOST_COMPILING, "%s: %zu bytes", most.line, most.bytes);
    xt_ctx_free(ctx);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("stack");
    TCase *c = tcase_create("stack");
    tcase_set_timeout(c, 1800);
    tcase_add_loop_test(c, copying_and_compiling_need_no_more_stack_than_promised, 0, XTI_ISA_COUNT);
    tcase_add_test(c, compiling_for_cuda_needs_no_more_stack_than_promised);
    tcase_add_test(c, measuring_needs_no_more_stack_than_promised);
    suite_add_tcase(s, c);
    return run_suite(s);
}
