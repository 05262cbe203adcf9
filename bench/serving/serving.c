/* serving.c: what xt_compile costs a server whose sequence grows by one each step: 2,000 lengths of the
 * copies of an attention layer, for a CUDA device. Prints the times of xt_compile a chain, and how many
 * structures there were and how many kernels were compiled for them. Without a device: on the driver double,
 * whose path is the argument; the times are then those of xt alone. Nothing is copied. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xt/xt.h>

enum { LENGTHS = 2000, FIRST = 17, CHAINS = 5, MAX_STRUCTURES = 4096 };

static const char *const names[CHAINS] = {"split heads", "K^T", "append", "concat", "pad to 64"};

static void chain(int which, int n, char *text, size_t size)
{
    switch (which) {
    case 0:
        snprintf(text, size, "x: f16[%d,32,128]; x.permute(1,0,2)", n);
        break;
    case 1:
        snprintf(text, size, "k: f16[32,%d,128]; k.permute(0,2,1)", n);
        break;
    case 2:
        snprintf(text, size, "k: f16[32,1,128]; k -> [32,1,128]:[524288,128,1]+%d", n * 128);
        break;
    case 3:
        snprintf(text, size, "k: f16[32,%d,128]; l: f16[32,1,128]; concat(1, k, l)", n);
        break;
    default:
        snprintf(text, size, "x: f16[32,%d,128]; x.pad((0,0),(0,%d),(0,0))", n, 63 - (n + 63) % 64);
    }
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int fail(const char *what)
{
    fprintf(stderr, "serving: %s: %s\n", what, xt_last_error()->message);
    return 1;
}

static struct seen {
    int n;
    const void *code[MAX_STRUCTURES]; /* kernels of one structure have the same PTX */
} seen;

static void see(const struct xt_kernel *k)
{
    const void *ptx;
    size_t bytes;
    if (xt_kernel_artifact(k, XT_PTX, &ptx, &bytes))
        return;
    for (int i = seen.n - 1; i >= 0; i--)
        if (seen.code[i] == ptx)
            return;
    if (seen.n < MAX_STRUCTURES)
        seen.code[seen.n++] = ptx;
}

static int compile_one(struct xt_ctx *ctx, int which, int n, double *us)
{
    char text[160];
    struct xt_graph *g;
    struct xt_kernel *k;
    chain(which, n, text, sizeof text);
    if (xt_parse(text, 0, NULL, &g))
        return fail(text);
    double t = now_us();
    xt_status s = xt_compile(ctx, g, NULL, &k);
    *us = now_us() - t;
    if (s)
        return fail(text);
    see(k);
    xt_kernel_free(k);
    xt_graph_free(g);
    return 0;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double us[CHAINS][LENGTHS];

int main(int argc, char **argv)
{
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = "", .mode = XT_ASYNC};
    struct xt_cache_stats stats = {.size = sizeof stats};
    struct xt_ctx *ctx;
    double unused;
    if (xt_ctx_new(&o, &ctx))
        return fail("context");
    if (compile_one(ctx, 0, FIRST, &unused) && argc > 1) { /* no driver: nothing is remembered of it */
        setenv("XT_LIBCUDA", argv[1], 1);
        printf("on the driver double %s\n", argv[1]);
    }
    xt_ctx_free(ctx);
    seen.n = 0;
    if (xt_ctx_new(&o, &ctx))
        return fail("context");
    for (int i = 0; i < LENGTHS; i++)
        for (int c = 0; c < CHAINS; c++)
            if (compile_one(ctx, c, FIRST + i, &us[c][i]))
                return 1;
    printf("%-12s %10s %10s %12s  us of xt_compile, %d lengths from %d\n", "", "p50", "p99", "max", LENGTHS,
           FIRST);
    for (int c = 0; c < CHAINS; c++) {
        qsort(us[c], LENGTHS, sizeof us[c][0], ascending);
        printf("%-12s %10.1f %10.1f %12.1f\n", names[c], us[c][LENGTHS / 2], us[c][LENGTHS * 99 / 100],
               us[c][LENGTHS - 1]);
    }
    if (xt_cache_get(ctx, &stats))
        return fail("counts");
    printf("%d structures, %lld compiles, %d kernels of %d chains\n", seen.n, (long long)stats.built,
           LENGTHS * CHAINS, CHAINS);
    xt_ctx_free(ctx);
    return 0;
}
