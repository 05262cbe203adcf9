/* limit.c: the machine's limit for a given traffic, by threads of its own, and the ways to try for it. */
#include "limit.h"

#include <pthread.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { PAGE_LINES = 64, MAX_THREADS = 256 };

struct part {
    const char *src;
    char *dst;
    size_t reads, writes; /* lines */
};

/* Streaming stores of a whole line. SSE2 is enough: wider registers gained nothing on Zen 4 and on Emerald
 * Rapids. */
#if defined(__SSE2__)
static void copy_line(char *dst, const char *src)
{
    const __m128i *s = (const __m128i *)(const void *)src;
    __m128i *d = (__m128i *)(void *)dst;
    __m128i a = _mm_load_si128(s), b = _mm_load_si128(s + 1), e = _mm_load_si128(s + 2),
            f = _mm_load_si128(s + 3);
    _mm_stream_si128(d, a);
    _mm_stream_si128(d + 1, b);
    _mm_stream_si128(d + 2, e);
    _mm_stream_si128(d + 3, f);
}

static void fill_line(char *dst)
{
    __m128i *d = (__m128i *)(void *)dst, one = _mm_set1_epi8(1);
    for (int i = 0; i < LINE / (int)sizeof *d; i++)
        _mm_stream_si128(d + i, one);
}

static void stream_end(void) { _mm_sfence(); }
#else
static void copy_line(char *dst, const char *src) { memcpy(dst, src, LINE); }
static void fill_line(char *dst) { memset(dst, 1, LINE); }
static void stream_end(void) {}
#endif

/* One load a line is what reading it costs. */
static void touch_line(const char *src) { (void)*(const volatile uint64_t *)(const void *)src; }

enum hint { NONE, T0, NTA };

/* Takes `pages` pages at a time of the side that has more, a line of each in turn, and of the other side its
 * proportion: more streams keep more of the memory's banks busy. Prefetches as far ahead. The last two
 * arguments are constants where this is called. */
static inline __attribute__((always_inline)) void stream(const struct part *p, size_t pages, enum hint hint)
{
    size_t most = p->reads > p->writes ? p->reads : p->writes, group = pages * PAGE_LINES;
    size_t groups = (most + group - 1) / group, r = 0, w = 0;
    for (size_t b = 1; b <= groups; b++) {
        const char *src = p->src + r * LINE;
        char *dst = p->dst + w * LINE;
        size_t r1 = p->reads * b / groups, w1 = p->writes * b / groups, reads = r1 - r, writes = w1 - w;
        for (size_t j = 0; j < PAGE_LINES; j++)
#pragma GCC unroll 4
            for (size_t i = j; i < group; i += PAGE_LINES) {
                if (i < reads && hint == T0)
                    __builtin_prefetch(src + (i + group) * LINE, 0, 3);
                if (i < reads && hint == NTA)
                    __builtin_prefetch(src + (i + group) * LINE, 0, 0);
                if (i < reads && i < writes)
                    copy_line(dst + i * LINE, src + i * LINE);
                else if (i < reads)
                    touch_line(src + i * LINE);
                else if (i < writes)
                    fill_line(dst + i * LINE);
            }
        r = r1, w = w1;
    }
    stream_end();
}

/* memcpy and memset, reads and writes taken in their proportion from so many blocks. */
static void cached(const struct part *p, size_t blocks)
{
    size_t r = 0, w = 0;
    for (size_t b = 1; b <= blocks; b++) {
        size_t r1 = p->reads * b / blocks, w1 = p->writes * b / blocks;
        size_t both = r1 - r < w1 - w ? r1 - r : w1 - w;
        memcpy(p->dst + w * LINE, p->src + r * LINE, both * LINE);
#pragma GCC unroll 4
        for (size_t i = r + both; i < r1; i++)
            touch_line(p->src + i * LINE);
        if (w1 - w > both) /* glibc's takes 260 ns for no bytes where the page after is untouched (Zen 5) */
            memset(p->dst + (w + both) * LINE, 1, (w1 - w - both) * LINE);
        r = r1, w = w1;
    }
}

static void cached_whole(const struct part *p) { cached(p, 1); }

static void cached_pages(const struct part *p)
{
    cached(p, (p->reads > p->writes ? p->reads : p->writes) / PAGE_LINES + 1);
}

/* NTA is the best on Zen 4 (51 GB/s, 40 without a hint) and halves the rate on Emerald Rapids (13 of 20 to
 * 24), where T0 or no hint, and four pages at a time, are. */
#define STREAM_WAYS(way)                                                                                     \
    way(1, NONE) way(1, T0) way(1, NTA) way(2, NONE) way(2, T0) way(2, NTA) way(4, NONE) way(4, T0)          \
        way(4, NTA)
#define STREAM_FUNCTION(pages, hint)                                                                         \
    static void stream_##pages##_##hint(const struct part *p) { stream(p, pages, hint); }
STREAM_WAYS(STREAM_FUNCTION)

#define STREAM_ROW(pages, hint) {"stream x" #pages " " #hint, stream_##pages##_##hint},
static const struct {
    const char *name;
    void (*run)(const struct part *p);
} way_row[] = {{"cached whole", cached_whole}, {"cached pages", cached_pages}, STREAM_WAYS(STREAM_ROW)};
_Static_assert(sizeof way_row / sizeof *way_row == LIMIT_WAYS, "LIMIT_WAYS rows");

const char *limit_way_name(int i) { return way_row[i].name; }

struct share {
    const struct limit *l;
    int way, t;
};

/* Part t of l->threads of every source, each with its proportion of the writes. */
static void *run_share(void *arg)
{
    const struct share *s = arg;
    const struct limit *l = s->l;
    size_t all = 0, before = 0, t = (size_t)s->t, threads = (size_t)l->threads;
    for (int i = 0; i < l->n; i++)
        all += l->reads[i];
    for (int i = 0; i < l->n || (!all && i == 0); i++) {
        size_t reads = all ? l->reads[i] : 0;
        size_t w0 = all ? l->writes * before / all : 0,
               w1 = all ? l->writes * (before + reads) / all : l->writes;
        size_t r0 = reads * t / threads, d0 = w0 + (w1 - w0) * t / threads;
        struct part p = {.src = l->src[i] + r0 * LINE, .reads = reads * (t + 1) / threads - r0};
        p.dst = l->dst + d0 * LINE, p.writes = w0 + (w1 - w0) * (t + 1) / threads - d0;
        if (p.reads || p.writes)
            way_row[s->way].run(&p);
        before += reads;
    }
    return NULL;
}

void limit_run(const struct limit *l, int i)
{
    struct share share[MAX_THREADS];
    pthread_t id[MAX_THREADS];
    bool started[MAX_THREADS];
    for (int t = l->threads - 1; t >= 0; t--) {
        share[t] = (struct share){l, i, t};
        started[t] = t && !pthread_create(&id[t], NULL, run_share, &share[t]);
        if (!started[t])
            run_share(&share[t]);
    }
    for (int t = 1; t < l->threads; t++)
        if (started[t])
            pthread_join(id[t], NULL);
}
