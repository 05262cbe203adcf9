/* ways.c: how fast a core copies within its caches by each of the ways that there are, with no library:
 * what xt's rows of problems/cache.txt could at best be. One file, for the machine that compiles it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LINE = 64, PAGE = 4096, HUGE = 2 << 20, ROUNDS = 15, MOST = 16, SAMPLE_NS = 1000000 };

typedef unsigned line __attribute__((vector_size(64), aligned(64), may_alias));
typedef void way_fn(char *d, const char *s, int64_t n);

#define LOAD(p) (*(const line *)(p))
#define STORE(p, x) (*(line *)(p) = (x))

static char through[PAGE] __attribute__((aligned(PAGE)));

static void by_memcpy(char *d, const char *s, int64_t n)
{
    memcpy(d, s, (size_t)n);
}

static void by_movsb(char *d, const char *s, int64_t n)
{
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}

static void in_order(char *d, const char *s, int64_t n)
{
    for (int64_t i = 0; i < n; i += 2 * LINE) {
        line a = LOAD(s + i), b = LOAD(s + i + LINE);
        STORE(d + i, a);
        STORE(d + i + LINE, b);
    }
}

/* Places of eight lines, 0, 1, 3, 6, .. around each 16 KiB. */
static void uneven(char *d, const char *s, int64_t n)
{
    enum { PLACE = 8 * LINE, PLACES = 32 };
    for (int64_t b = 0; b < n; b += PLACES * PLACE)
        for (int64_t i = 0, at = 0; i < PLACES; at = (at + ++i) % PLACES)
#pragma GCC unroll 8
            for (int64_t k = b + at * PLACE; k < b + at * PLACE + PLACE; k += LINE)
                STORE(d + k, LOAD(s + k));
}

/* In order; the line that is written half the copy later is fetched again, so that it is still there. */
static void kept(char *d, const char *s, int64_t n)
{
    for (int64_t half = 0, far = n / 2; half < 2; half++, far = -far)
        for (int64_t i = half * (n / 2); i < (half + 1) * (n / 2); i += 2 * LINE)
            for (int64_t k = i; k < i + 2 * LINE; k += LINE) {
                STORE(d + k, LOAD(s + k));
                __builtin_prefetch(d + k + far, 1, 3);
            }
}

/* Loads and stores into 4 KiB of the first cache, which leave by rep movsb: no line of the destination is
 * read, whatever order they came in. */
static void buffered(char *d, const char *s, int64_t n)
{
    for (int64_t i = 0; i < n; i += PAGE) {
        in_order(through, s + i, PAGE);
        by_movsb(d + i, through, PAGE);
    }
}

/* Four lines a page apart together: they share a set of the first cache, and where four are fetched for one
 * set at once, fewer others leave it. */
static void by_pages(char *d, const char *s, int64_t n)
{
    for (int64_t b = 0; b < n; b += 4 * PAGE)
        for (int64_t i = b; i < b + PAGE; i += LINE) {
            line v[4];
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++)
                v[k] = LOAD(s + i + k * PAGE);
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++)
                STORE(d + i + k * PAGE, v[k]);
        }
}

static const struct way {
    const char *name;
    way_fn *run;
} way[] = {{"memcpy", by_memcpy}, {"rep movsb", by_movsb}, {"loop in order", in_order},
    {"in uneven steps", uneven}, {"destination kept", kept}, {"4 KiB, rep movsb", buffered},
    {"four pages at once", by_pages}};
enum { WAYS = sizeof way / sizeof *way };

static double now_ns(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_MONOTONIC, &t), 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sample(way_fn *run, char *d, const char *s, int64_t n)
{
    int64_t runs = 0;
    double start = now_ns(), ns = 0;
    for (; ns < SAMPLE_NS; runs += MOST, ns = now_ns() - start)
        for (int i = 0; i < MOST; i++)
            run(d, s, n);
    return ns / (double)runs / (double)(n / LINE);
}

static char *buffer(int64_t n, int x)
{
    char *p = aligned_alloc(HUGE, (size_t)n);
    if (!p)
        exit(1);
    madvise(p, (size_t)n, MADV_HUGEPAGE);
    for (int64_t i = 0; i < n; i++)
        p[i] = (char)(i * i * 31 + i / 251 + x);
    return p;
}

static void check(const struct way *w, char *d, const char *s, int64_t n)
{
    memset(d, 0, (size_t)n);
    w->run(d, s, n);
    if (memcmp(d, s, (size_t)n))
        fprintf(stderr, "%s: wrong bytes\n", w->name), exit(1);
}

int main(void)
{
    static const int64_t size[] = {32 << 10, 512 << 10, 8 << 20};
    static double ns[WAYS][ROUNDS];
    char *s = buffer(8 << 20, 1), *d = buffer(8 << 20, 2);
    for (size_t z = 0; z < sizeof size / sizeof *size; z++) {
        for (int w = 0; w < WAYS; w++)
            check(&way[w], d, s, size[z]);
        for (int r = 0; r < ROUNDS; r++)
            for (int w = 0; w < WAYS; w++)
                ns[w][r] = sample(way[w].run, d, s, size[z]);
        printf("%lld KiB: ns a line of 64 bytes, memcpy's time / this\n", (long long)size[z] >> 10);
        for (int w = 0; w < WAYS; w++)
            qsort(ns[w], ROUNDS, sizeof **ns, ascending);
        for (int w = 0; w < WAYS; w++)
            printf("  %-20s %6.2f %6.2f\n", way[w].name, ns[w][ROUNDS / 2],
                ns[0][ROUNDS / 2] / ns[w][ROUNDS / 2]);
    }
    free(s), free(d);
}
