/* limit.c: the machine's limit for a given traffic, by threads of its own. */
#include "limit.h"

#include <pthread.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    AHEAD = 4096, /* bytes; best of 0, 512 .. 8192 on Zen 4: 51 GB/s, 40 without. AVX-512 does no better */
    BLOCK_LINES = 64, /* reads and writes alternate by so many lines */
    MAX_THREADS = 256
};

struct part {
    void (*copy)(char *dst, const char *src, size_t lines);
    void (*fill)(char *dst, size_t lines);
    const char *src;
    char *dst;
    size_t reads, writes; /* lines */
};

static void cached_copy(char *dst, const char *src, size_t lines) { memcpy(dst, src, lines * LINE); }

static void cached_fill(char *dst, size_t lines) { memset(dst, 1, lines * LINE); }

#if defined(__SSE2__)
/* Four streaming stores in a row are one whole line. */
static void stream_copy(char *dst, const char *src, size_t lines)
{
    for (size_t i = 0; i < lines; i++, src += LINE, dst += LINE) {
        const __m128i *s = (const __m128i *)(const void *)src;
        __m128i *d = (__m128i *)(void *)dst;
        _mm_prefetch(src + AHEAD, _MM_HINT_NTA);
        __m128i a = _mm_load_si128(s), b = _mm_load_si128(s + 1), e = _mm_load_si128(s + 2),
                f = _mm_load_si128(s + 3);
        _mm_stream_si128(d, a);
        _mm_stream_si128(d + 1, b);
        _mm_stream_si128(d + 2, e);
        _mm_stream_si128(d + 3, f);
    }
}

static void stream_fill(char *dst, size_t lines)
{
    __m128i *d = (__m128i *)(void *)dst, one = _mm_set1_epi8(1);
    for (size_t i = 0; i < lines * (LINE / sizeof *d); i++)
        _mm_stream_si128(d + i, one);
}

static void stream_end(void) { _mm_sfence(); }
#else
static void stream_copy(char *dst, const char *src, size_t lines) { cached_copy(dst, src, lines); }
static void stream_fill(char *dst, size_t lines) { cached_fill(dst, lines); }
static void stream_end(void) {}
#endif

/* One load a line is what reading it costs. */
static void touch(const char *src, size_t lines)
{
    for (size_t i = 0; i < lines; i++) {
        __builtin_prefetch(src + i * LINE + AHEAD, 0, 0);
        (void)*(const volatile uint64_t *)(const void *)(src + i * LINE);
    }
}

static void mix(const struct part *p)
{
    size_t most = p->reads > p->writes ? p->reads : p->writes, blocks = most / BLOCK_LINES + 1, r = 0, w = 0;
    for (size_t b = 1; b <= blocks; b++) {
        size_t r1 = p->reads * b / blocks, w1 = p->writes * b / blocks;
        size_t both = r1 - r < w1 - w ? r1 - r : w1 - w;
        p->copy(p->dst + w * LINE, p->src + r * LINE, both);
        if (r1 - r > both)
            touch(p->src + (r + both) * LINE, r1 - r - both);
        if (w1 - w > both)
            p->fill(p->dst + (w + both) * LINE, w1 - w - both);
        r = r1, w = w1;
    }
}

struct share {
    const struct limit *l;
    struct part how;
    int t;
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
        struct part p = s->how;
        p.src = l->src[i] + r0 * LINE, p.reads = reads * (t + 1) / threads - r0;
        p.dst = l->dst + d0 * LINE, p.writes = w0 + (w1 - w0) * (t + 1) / threads - d0;
        if (p.reads || p.writes)
            mix(&p);
        before += reads;
    }
    stream_end();
    return NULL;
}

static void run_shares(const struct limit *l, const struct part *how)
{
    struct share share[MAX_THREADS];
    pthread_t id[MAX_THREADS];
    bool started[MAX_THREADS];
    for (int t = l->threads - 1; t >= 0; t--) {
        share[t] = (struct share){l, *how, t};
        started[t] = t && !pthread_create(&id[t], NULL, run_share, &share[t]);
        if (!started[t])
            run_share(&share[t]);
    }
    for (int t = 1; t < l->threads; t++)
        if (started[t])
            pthread_join(id[t], NULL);
}

void limit_stream(const struct limit *l)
{
    run_shares(l, &(struct part){.copy = stream_copy, .fill = stream_fill});
}

void limit_cached(const struct limit *l)
{
    run_shares(l, &(struct part){.copy = cached_copy, .fill = cached_fill});
}
