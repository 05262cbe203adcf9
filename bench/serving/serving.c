/* serving.c: what xt_compile costs a server whose sequence grows by one each step: 2,000 lengths of the
 * copies of an attention layer, for a CUDA device; and what it costs to meet chains that are like nothing
 * before, of lists. Prints the times of xt_compile, how many structures there were, and how many kernels were
 * compiled for them. Nothing is copied.
 *
 *     serving DOUBLE [--lengths N] [LIST ..]
 *
 * Without a device it runs on the driver double DOUBLE: the times are then those of xt alone, without those
 * in which the double reads the PTX that it is to run, where a driver loads a cubin. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xt/xt.h>

enum { MAX_LENGTHS = 2000, FIRST = 17, CHAINS = 5, MAX_STRUCTURES = 4096, MAX_UNSEEN = 1024 };

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

/* What one call took: on the clock, and of its thread's processor, which other threads do not lengthen. */
struct took {
    double wall_us, own_us;
};

static double us_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double (*reading_us)(void); /* of the double; NULL: there is a device */

static struct took now(void)
{
    double reading = reading_us ? reading_us() : 0;
    return (struct took){us_of(CLOCK_MONOTONIC) - reading, us_of(CLOCK_THREAD_CPUTIME_ID) - reading};
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

/* True: none of its structure was seen before. */
static bool see(const struct xt_kernel *k)
{
    const void *ptx;
    size_t bytes;
    if (xt_kernel_artifact(k, XT_PTX, &ptx, &bytes))
        return false;
    for (int i = seen.n - 1; i >= 0; i--)
        if (seen.code[i] == ptx)
            return false;
    if (seen.n < MAX_STRUCTURES)
        seen.code[seen.n++] = ptx;
    return true;
}

/* *k NULL on failure. */
static void compile_text(struct xt_ctx *ctx, const char *text, xt_mode mode, struct took *us,
                         struct xt_kernel **k)
{
    struct xt_compile_options o = {.size = sizeof o, .mode = mode};
    struct xt_graph *g;
    *k = NULL;
    if (xt_parse(text, 0, NULL, &g))
        return;
    struct took from = now(), to;
    xt_compile(ctx, g, &o, k);
    to = now();
    *us = (struct took){to.wall_us - from.wall_us, to.own_us - from.own_us};
    xt_graph_free(g);
}

static int compile_one(struct xt_ctx *ctx, int which, int n, struct took *us)
{
    char text[160];
    struct xt_kernel *k;
    chain(which, n, text, sizeof text);
    compile_text(ctx, text, XT_MODE_AUTO, us, &k);
    if (!k)
        return fail(text);
    xt_kernel_free(k);
    return 0;
}

/* The structure's kernel, for what is counted. *first: no length before was of its structure. */
static int see_one(struct xt_ctx *ctx, int which, int n, bool *first)
{
    char text[160];
    struct xt_kernel *k;
    struct took unused;
    chain(which, n, text, sizeof text);
    compile_text(ctx, text, XT_GENERIC, &unused, &k);
    if (!k)
        return fail(text);
    *first = see(k);
    xt_kernel_free(k);
    return 0;
}

static int by_wall(const void *a, const void *b)
{
    double x = ((const struct took *)a)->wall_us, y = ((const struct took *)b)->wall_us;
    return (x > y) - (x < y);
}

static int by_own(const void *a, const void *b)
{
    double x = ((const struct took *)a)->own_us, y = ((const struct took *)b)->own_us;
    return (x > y) - (x < y);
}

static void put_times(const char *name, struct took *us, int n)
{
    if (!n) {
        printf("%-12s none", name);
        return;
    }
    qsort(us, (size_t)n, sizeof *us, by_wall);
    printf("%-12s %9.1f %9.1f %10.1f", name, us[n / 2].wall_us, us[n * 99 / 100].wall_us, us[n - 1].wall_us);
    qsort(us, (size_t)n, sizeof *us, by_own);
    printf(" %9.1f %9.1f %10.1f", us[n / 2].own_us, us[n * 99 / 100].own_us, us[n - 1].own_us);
}

/* ---- chains like nothing before */

static struct met {
    int n;
    struct took us[MAX_UNSEEN];
} unseen, packed;

/* Nothing in the pack was of its structure: it runs by the kernel that runs anything. */
static bool is_unseen(const struct xt_kernel *k)
{
    const void *source;
    size_t bytes;
    return !xt_kernel_artifact(k, XT_SOURCE, &source, &bytes) && !strncmp(source, "/* xt_any", 9);
}

/* A line is "name | where | chain", and more columns or none. */
static void meet(struct xt_ctx *ctx, const char *path)
{
    char line[4096];
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        struct xt_kernel *k;
        line[strcspn(line, "#\n")] = 0;
        char *text = strstr(line, " | ");
        text = text ? strstr(text + 3, " | ") : NULL;
        char *end = text ? strstr(text + 3, " | ") : NULL;
        if (end)
            *end = 0;
        struct took took;
        if (!text)
            continue;
        compile_text(ctx, text + 3, XT_MODE_AUTO, &took, &k);
        struct met *met = k && is_unseen(k) ? &unseen : &packed;
        if (k && met->n < MAX_UNSEEN)
            met->us[met->n++] = took;
        xt_kernel_free(k);
    }
    if (f)
        fclose(f);
}

static struct took us[CHAINS][MAX_LENGTHS], known[MAX_LENGTHS], first[MAX_STRUCTURES],
    all[CHAINS * MAX_LENGTHS];

/* A chain's lengths whose structure an earlier one had, which may still be compiled, by themselves, and among
 * all[]; the others go to first[]. */
static int put_chain(struct xt_ctx *ctx, int c, int lengths, int *n_first, int *n_all)
{
    int n = 0;
    for (int i = 0; i < lengths; i++) {
        bool is_first;
        if (see_one(ctx, c, FIRST + i, &is_first))
            return 1;
        if (is_first && *n_first < MAX_STRUCTURES)
            first[(*n_first)++] = us[c][i];
        else
            known[n++] = us[c][i];
    }
    memcpy(all + *n_all, known, (size_t)n * sizeof *known);
    *n_all += n;
    put_times(names[c], known, n);
    printf("\n");
    return 0;
}

int main(int argc, char **argv)
{
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = "", .mode = XT_ASYNC};
    struct xt_cache_stats stats = {.size = sizeof stats};
    struct xt_ctx *ctx;
    struct took unused;
    int lengths = MAX_LENGTHS, lists = 2, n_first = 0, n_all = 0;
    if (argc > 3 && !strcmp(argv[2], "--lengths")) {
        lengths = atoi(argv[3]) < MAX_LENGTHS ? atoi(argv[3]) : MAX_LENGTHS;
        lists = 4;
    }
    if (xt_ctx_new(&o, &ctx))
        return fail("context");
    if (compile_one(ctx, 0, FIRST, &unused) && argc > 1) { /* no driver: nothing is remembered of it */
        void *driver = dlopen(argv[1], RTLD_NOW);
        setenv("XT_LIBCUDA", argv[1], 1);
        *(void **)&reading_us = driver ? dlsym(driver, "double_reading_us") : NULL;
        printf("on the driver double %s\n", argv[1]);
    }
    xt_ctx_free(ctx);
    if (xt_ctx_new(&o, &ctx))
        return fail("context");
    for (int i = 0; i < lengths; i++)
        for (int c = 0; c < CHAINS; c++)
            if (compile_one(ctx, c, FIRST + i, &us[c][i]))
                return 1;
    printf("us of xt_compile, %d lengths from %d, of structures that were met before; own: of the calling "
           "thread's processor\n%-12s %9s %9s %10s "
           "%9s "
           "%9s %10s\n",
           lengths, FIRST, "", "p50", "p99", "max", "own p50", "p99", "max");
    for (int c = 0; c < CHAINS; c++)
        if (put_chain(ctx, c, lengths, &n_first, &n_all))
            return 1;
    put_times("all five", all, n_all);
    printf("\n");
    put_times("first", first, n_first);
    printf("  of the %d lengths that were the first of their structure\n", n_first);
    if (xt_cache_get(ctx, &stats))
        return fail("counts");
    xt_ctx_free(ctx);
    if (argc > lists && xt_ctx_new(&o, &ctx))
        return fail("context");
    for (int i = lists; i < argc; i++)
        meet(ctx, argv[i]);
    if (packed.n) {
        put_times("in the pack", packed.us, packed.n);
        printf("  the first xt_compile of %d chains whose code was there or in the pack\n", packed.n);
    }
    if (unseen.n) {
        put_times("unseen", unseen.us, unseen.n);
        printf("  the first xt_compile of %d chains of structures never seen\n", unseen.n);
    }
    if (argc > lists)
        xt_ctx_free(ctx);
    printf("%d structures, %lld compiles, %d kernels of %d chains\n", seen.n, (long long)stats.compiled,
           lengths * CHAINS, CHAINS);
    return 0;
}
