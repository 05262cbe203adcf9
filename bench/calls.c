/* calls.c: what a call costs. xt_run of tensors that lie in the first cache, beside memcpy of the same bytes;
 * xt_compile of requests that were seen before, of maps that were seen before, and of what is new. Nothing is
 * the same twice in a row: runs go through a ring of buffers, compiles through a ring of graphs that were
 * built before the clock starts. Sees only the public API. */
#include "bench.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SAMPLES = 61,
    RING_BYTES = 1 << 14, /* of the sources, and of the destinations: both stay in the first cache */
    RUNS = 1 << 14,       /* calls a sample, fewer of the larger ones */
    COMPILES = 64,        /* calls a sample: short, so that most are not interrupted */
    /* A multiple of 4 KiB would make loads wait for stores to the same place of another page. */
    APART = RING_BYTES + 2112,
    MAX_RANK = 8,
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *t)
{
    qsort(t, SAMPLES, sizeof *t, ascending);
    return t[SAMPLES / 2];
}

/* ---- xt_run: axes reversed */

static const struct shape {
    const char *name;
    int n, rank;
} shapes[] = {{"4x4", 4, 2}, {"16x16", 16, 2}, {"64x64", 64, 2}, {"8x8x8x8", 8, 4}};

enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static struct xt_graph *reversed(const struct shape *s)
{
    struct xt_graph *g = NULL;
    int64_t n[MAX_RANK];
    int axes[MAX_RANK];
    for (int i = 0; i < s->rank; i++) {
        n[i] = s->n;
        axes[i] = s->rank - 1 - i;
    }
    if (!xt_graph_new(&g))
        xt_output(g, xt_permute(g, xt_input(g, "x", XT_F32, s->rank, n, NULL, 0), s->rank, axes), NULL, 0);
    return g;
}

/* Is dst[i] src[the digits of i in base n, backwards]? */
static bool is_reversed(const struct shape *s, const float *dst, const float *src, int count)
{
    for (int i = 0; i < count; i++) {
        int from = 0;
        for (int k = 0, rest = i; k < s->rank; k++, rest /= s->n)
            from = from * s->n + rest % s->n;
        if (memcmp(&dst[i], &src[from], sizeof *dst))
            return false;
    }
    return true;
}

struct ring {
    char *src, *dst;
    size_t bytes; /* of one tensor */
    int calls;    /* a sample */
};

static double time_runs(const struct xt_kernel *k, const struct ring *r)
{
    size_t at = 0;
    double t = now_ns();
    for (int i = 0; i < r->calls; i++) {
        xt_run(k, r->dst + at, (const void *[]){r->src + at}, NULL);
        at = (at + r->bytes) % RING_BYTES;
    }
    return (now_ns() - t) / r->calls;
}

static double time_memcpy(const struct ring *r)
{
    static void *(*volatile copy)(void *, const void *, size_t) = memcpy; /* a call, as to xt_run */
    size_t at = 0;
    double t = now_ns();
    for (int i = 0; i < r->calls; i++) {
        copy(r->dst + at, r->src + at, r->bytes);
        at = (at + r->bytes) % RING_BYTES;
    }
    return (now_ns() - t) / r->calls;
}

static bool measure_run(struct xt_ctx *ctx, const struct shape *s, struct ring *r, FILE *f)
{
    struct xt_graph *g = reversed(s);
    struct xt_kernel *k = NULL;
    double xt[SAMPLES], copy[SAMPLES];
    int count = 1;
    for (int i = 0; i < s->rank; i++)
        count *= s->n;
    r->bytes = (size_t)count * sizeof(float);
    r->calls = RUNS * 256 / (256 + (int)r->bytes);
    bool ok = !xt_compile(ctx, g, NULL, &k) && !xt_run(k, r->dst, (const void *[]){r->src}, NULL) &&
              is_reversed(s, (const float *)(void *)r->dst, (const float *)(void *)r->src, count);
    for (int i = -1; ok && i < SAMPLES; i++) { /* the first round warms up */
        xt[i < 0 ? 0 : i] = time_runs(k, r);
        copy[i < 0 ? 0 : i] = time_memcpy(r);
    }
    if (ok) {
        double a = median(xt), b = median(copy);
        fprintf(f, "xt_run f32 %-25s %10.1f %10.1f %10.2f\n", s->name, a, b, a / b);
    }
    xt_kernel_free(k);
    xt_graph_free(g);
    return ok;
}

static bool measure_runs(struct xt_ctx *ctx, FILE *f)
{
    char *block = bench_buffer(APART + RING_BYTES);
    if (!block)
        return false;
    struct ring r = {.src = block, .dst = block + APART};
    bool ok = true;
    for (int i = 0; i < RING_BYTES; i++)
        r.src[i] = (char)(i * 37 >> 3);
    fprintf(f, "%-36s %10s %10s %10s\n", "axes reversed", "ns", "memcpy ns", "ratio");
    for (int i = 0; i < N_SHAPES && ok; i++)
        ok = measure_run(ctx, &shapes[i], &r, f);
    free(block);
    return ok;
}

/* ---- xt_compile: chains of four operations */

/* Extents that no other number has: its digits. */
static void extents_of(int number, int rank, int64_t *n)
{
    for (int i = 0; i < rank; i++, number /= 11)
        n[i] = 2 + number % 11;
}

/* Heads merged, in another order: [a,b,c,d] to [b,a*c,d]. */
static xt_node heads_merged(struct xt_graph *g, const int64_t n[4])
{
    static const struct xt_index backwards[] = {{XT_SLICE, XT_NONE, XT_NONE, 1},
                                                {XT_SLICE, XT_NONE, XT_NONE, -1}};
    xt_node x = xt_input(g, "x", XT_F32, 4, n, NULL, 0);
    x = xt_permute(g, x, 4, (int[]){0, 2, 1, 3});
    x = xt_index(g, x, 2, backwards);
    x = xt_reshape(g, x, 3, (int64_t[]){n[0] * n[2], n[1], n[3]});
    return xt_permute(g, x, 3, (int[]){1, 0, 2});
}

static xt_node chain_rank4(struct xt_graph *g, int number)
{
    int64_t n[4];
    extents_of(number, 4, n);
    return heads_merged(g, n);
}

/* Past the caches, where plans are weighed against others. */
static xt_node chain_large(struct xt_graph *g, int number)
{
    return heads_merged(g, (int64_t[]){32 + number, 64, 96, 80});
}

static xt_node chain_rank8(struct xt_graph *g, int number)
{
    static const struct xt_index inner[] = {{XT_SLICE, 1, XT_NONE, 1}, {XT_SLICE, XT_NONE, XT_NONE, -1}};
    int64_t n[8];
    extents_of(number, 8, n);
    xt_node x = xt_input(g, "x", XT_F32, 8, n, NULL, 0);
    x = xt_permute(g, x, 8, (int[]){7, 3, 5, 1, 6, 0, 2, 4});
    x = xt_flip(g, x, 2, (int[]){2, 5});
    x = xt_index(g, x, 2, inner);
    return xt_permute(g, x, 8, (int[]){1, 0, 3, 2, 6, 5, 4, 7});
}

/* Permutation `number` of 0..n-1. */
static void permutation(int number, int n, int *p)
{
    for (int i = 0; i < n; i++) {
        int at = number % (i + 1);
        number /= i + 1;
        p[i] = i;
        p[i] = p[at];
        p[at] = i;
    }
}

/* 14,400 ways to write one map: any two permutations of five axes, the one that leads from there to where all
 * end, and a slice. */
static xt_node chain_same_map(struct xt_graph *g, int number)
{
    static const int64_t n[5] = {3, 4, 5, 6, 7};
    static const int end[5] = {2, 0, 4, 1, 3};
    static const struct xt_index backwards[] = {{XT_SLICE, XT_NONE, XT_NONE, -1}};
    int a[5], b[5], c[5];
    permutation(number % 120, 5, a);
    permutation(number / 120, 5, b);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++)
            if (a[b[k]] == end[i])
                c[i] = k;
    xt_node x = xt_input(g, "x", XT_F32, 5, n, NULL, 0);
    x = xt_permute(g, xt_permute(g, xt_permute(g, x, 5, a), 5, b), 5, c);
    return xt_index(g, x, 1, backwards);
}

static const struct situation {
    const char *name;
    xt_node (*chain)(struct xt_graph *g, int number);
    bool again; /* every sample compiles the same chains */
} situations[] = {
    {"the same chain again", chain_rank4, true},
    {"another chain with the same map", chain_same_map, false},
    {"a new shape, rank 4", chain_rank4, false},
    {"a new shape, rank 8", chain_rank8, false},
    {"a new shape of 63 MB and more", chain_large, false},
};

enum { N_SITUATIONS = sizeof situations / sizeof *situations };

static void free_graphs(struct xt_graph **g)
{
    for (int i = 0; i < COMPILES; i++)
        xt_graph_free(g[i]);
    memset(g, 0, COMPILES * sizeof *g);
}

static bool make_graphs(const struct situation *s, int first, struct xt_graph **g)
{
    bool ok = true;
    for (int i = 0; i < COMPILES && ok; i++)
        ok = !xt_graph_new(&g[i]) && !xt_output(g[i], s->chain(g[i], first + i), NULL, 0);
    return ok;
}

/* Every xt_compile with the xt_kernel_free of the reference that it gives. */
static bool time_compiles(struct xt_ctx *ctx, struct xt_graph *const *g, double *ns)
{
    bool ok = true;
    double t = now_ns();
    for (int i = 0; i < COMPILES; i++) {
        struct xt_kernel *k = NULL;
        ok &= !xt_compile(ctx, g[i], NULL, &k);
        xt_kernel_free(k);
    }
    *ns = (now_ns() - t) / COMPILES;
    return ok;
}

static bool measure_compile(struct xt_ctx *ctx, const struct situation *s, FILE *f)
{
    static struct xt_graph *g[COMPILES];
    double t[SAMPLES];
    bool ok = true;
    for (int i = -1; i < SAMPLES && ok; i++) { /* the first round makes what is then seen again */
        ok = make_graphs(s, s->again ? 0 : (i + 1) * COMPILES, g) && time_compiles(ctx, g, &t[i < 0 ? 0 : i]);
        free_graphs(g);
    }
    if (ok)
        fprintf(f, "xt_compile %-25s %10.1f\n", s->name, median(t));
    return ok;
}

int bench_calls(struct xt_ctx *ctx, FILE *f)
{
    bool ok = measure_runs(ctx, f);
    for (int i = 0; i < N_SITUATIONS && ok; i++)
        ok = measure_compile(ctx, &situations[i], f);
    return ok ? 0 : -1;
}
