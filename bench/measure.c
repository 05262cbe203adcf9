/* measure.c: one workload: buffers, verification, and xt, memcpy, naive and the limit timed in turn. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "contest.h"
#include "limit.h"

enum {
    BEST_WAYS = 3,   /* to the limit: timed like the others */
    MORE_SAMPLES = 3 /* times as many of short runs, which other processes disturb more */
};
#define SHORT_BYTES      ((size_t)32 << 20)
#define HUGE_PAGE        ((size_t)2 << 20)
#define PAGE             ((size_t)4096)
#define ONE_THREAD_BYTES ((size_t)4 << 20) /* below it starting a thread costs more than it gains */

struct setup {
    struct xt_kernel *k;
    struct naive *naive;
    int n;
    void *src[LIMIT_SOURCES], *dst, *dst2;
    void *room[2]; /* of dst and dst2, from a page on */
    size_t src_bytes[LIMIT_SOURCES], dst_bytes, copy_bytes;
    struct limit limit;
};

static bool small_pages;
static size_t begins_at; /* destinations, behind a page */

void bench_begin_at(size_t bytes) { begins_at = bytes; }

void bench_refuse_huge_pages(void)
{
    small_pages = true;
    setenv("NUMPY_MADVISE_HUGEPAGE", "0", 1); /* the peers' memory too */
    setenv("THP_MEM_ALLOC_ENABLE", "0", 1);
}

void *bench_buffer(size_t bytes)
{
    size_t align = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : PAGE, size = (bytes + align) / align * align;
    void *p = aligned_alloc(align, size);
    if (p && align > PAGE)
        madvise(p, size, small_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    return p;
}

int bench_threads(void)
{
    const char *wanted = getenv("XT_THREADS");
    int n = wanted ? atoi(wanted) : 0;
    return n > 0 ? n : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Random bytes 0x30 to 0x3f: as floats of any width neither NaN, which HPTT does not carry, nor denormal,
 * which slow it down. */
static void scramble(unsigned char *p, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i += sizeof seed) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t bytes = ((seed ^ seed >> 29) & 0x0f0f0f0f0f0f0f0fu) | 0x3030303030303030u;
        memcpy(p + i, &bytes, n - i < sizeof bytes ? n - i : sizeof bytes);
    }
}

static bool make_buffers(struct setup *s, const struct xt_kernel_info *info)
{
    s->dst_bytes = (size_t)info->dst_min_bytes;
    s->copy_bytes = (size_t)info->bytes_written;
    for (int i = 0; i < s->n; i++) {
        s->src_bytes[i] = (size_t)xt_src_min_bytes(s->k, i);
        if (!(s->src[i] = bench_buffer(s->src_bytes[i])))
            return false;
    }
    for (int i = 0; i < 2; i++)
        if (!(s->room[i] = bench_buffer(s->dst_bytes + begins_at)))
            return false;
    s->dst = (char *)s->room[0] + begins_at;
    s->dst2 = (char *)s->room[1] + begins_at;
    return true;
}

/* What the chain must move at least. Overwrites the sources. */
static bool make_limit(struct setup *s, int width)
{
    struct limit *l = &s->limit;
    size_t lines = l->writes = (s->copy_bytes + LINE - 1) / LINE;
    l->n = s->n;
    l->dst = s->room[0];
    if (!count_lines(s->k, s->n, s->src, s->src_bytes, (void *[]){s->dst, s->dst2}, s->dst_bytes, width,
                     l->reads))
        return false;
    for (int i = 0; i < s->n; i++) {
        l->src[i] = s->src[i];
        lines += l->reads[i];
    }
    l->threads = lines * LINE >= ONE_THREAD_BYTES ? bench_threads() : 1;
    return true;
}

static void free_setup(struct setup *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->src[i]);
    free(s->room[0]);
    free(s->room[1]);
    naive_free(s->naive);
    xt_kernel_free(s->k);
}

static void run_xt(void *setup, int unused)
{
    const struct setup *s = setup;
    xt_run(s->k, s->dst, (const void *const *)s->src, NULL);
}

static void run_naive(void *setup, int unused)
{
    const struct setup *s = setup;
    naive_run(s->naive, s->dst2, (const void *const *)s->src);
}

/* The same bytes as the chain writes, from one buffer to another. */
static void run_memcpy(void *setup, int unused)
{
    const struct setup *s = setup;
    memcpy(s->dst, s->dst2, s->copy_bytes);
}

static void run_limit(void *setup, int way) { limit_run(&((const struct setup *)setup)->limit, way); }

static void run_peer(void *peers, int peer) { peers_run(peers, peer); }

static double ask_peer(void *peers, int peer) { return peers_ask(peers, peer); }

static int by_first_sample(const void *a, const void *b)
{
    double x = ((const struct contestant *)a)->t[0], y = ((const struct contestant *)b)->t[0];
    return (x > y) - (x < y);
}

/* The ways to the limit, the best first: all are tried once, the better half once more. */
static void rank_ways(struct setup *s, struct contestant ways[LIMIT_WAYS])
{
    for (int i = 0; i < LIMIT_WAYS; i++)
        ways[i] = (struct contestant){.run = run_limit, .arg = s, .which = i};
    for (int left = LIMIT_WAYS; left >= BEST_WAYS; left /= 2) {
        for (int i = 0; i < left; i++) {
            double t = contest_sample(&ways[i]);
            ways[i].t[0] = left < LIMIT_WAYS && ways[i].t[0] < t ? ways[i].t[0] : t;
        }
        qsort(ways, (size_t)left, sizeof *ways, by_first_sample);
    }
}

/* Peers that can do the chain, into c[]; returns how many. dst holds the right bytes. */
static int add_peers(struct setup *s, struct peers *peers, const struct bench_workload *w,
                     struct contestant *c)
{
    struct peer_task t = {.buffer = s->dst2, .want = s->dst, .bytes = s->dst_bytes};
    int64_t src_offset = 0, dst_offset = 0;
    int n = 0;
    t.is_copy = s->n == 1 && naive_as_copy(s->naive, &t.copy, &src_offset, &dst_offset);
    t.src = (const char *)s->src[0] + src_offset * t.copy.width;
    t.dst = (char *)s->dst2 + dst_offset * t.copy.width;
    if (peers)
        peers_announce(peers, w);
    for (int i = 0; peers && i < N_PEERS; i++)
        if (peers_prepare(peers, i, &t))
            c[n++] = peers_keep_time(i) ? (struct contestant){.ask = ask_peer, .arg = peers, .which = i}
                                        : (struct contestant){.run = run_peer, .arg = peers, .which = i};
    return n;
}

enum { XT, MEMCPY, NAIVE, PEERS, CONTESTANTS = PEERS + N_PEERS + LIMIT_WAYS };

static void time_all(struct setup *s, struct peers *peers, int samples, struct bench_row *row)
{
    static struct contestant c[CONTESTANTS]; /* one row at a time */
    memset(c, 0, sizeof c);
    c[XT] = (struct contestant){.run = run_xt, .arg = s};
    c[MEMCPY] = (struct contestant){.run = run_memcpy, .arg = s};
    c[NAIVE] = (struct contestant){.run = run_naive, .arg = s};
    int ways = PEERS + add_peers(s, peers, row->work, &c[PEERS]), all = ways + BEST_WAYS;
    rank_ways(s, &c[ways]);
    contest_rounds(c, all, samples);
    row->seconds = contest_median(&c[XT], &row->spread);
    row->memcpy_seconds = contest_median(&c[MEMCPY], NULL);
    row->naive_seconds = contest_median(&c[NAIVE], NULL);
    for (int i = PEERS; i < ways; i++)
        row->peer_seconds[c[i].which] = contest_median(&c[i], NULL);
    for (int i = ways; i < all; i++) {
        double t = contest_median(&c[i], NULL);
        if (row->limit_seconds > 0 && t >= row->limit_seconds)
            continue;
        row->limit_seconds = t;
        row->limit_way = limit_way_name(c[i].which);
    }
    if (peers)
        peers_release(peers);
}

static int verify(struct setup *s, char *err, size_t err_bytes)
{
    memset(s->dst, BENCH_UNWRITTEN, s->dst_bytes);
    memset(s->dst2, BENCH_UNWRITTEN, s->dst_bytes);
    if (xt_run(s->k, s->dst, (const void *const *)s->src, NULL)) {
        snprintf(err, err_bytes, "%s", xt_last_error()->message);
        return -1;
    }
    run_naive(s, 0);
    if (!memcmp(s->dst, s->dst2, s->dst_bytes))
        return 0;
    size_t i = 0;
    while (((char *)s->dst)[i] == ((char *)s->dst2)[i])
        i++;
    snprintf(err, err_bytes, "fused and step-by-step results differ at byte %zu", i);
    return -1;
}

static bool make_setup(struct xt_ctx *ctx, const char *chain, struct setup *s, struct xt_graph **g,
                       struct xt_kernel_info *info, char *err, size_t err_bytes)
{
    const struct xt_compile_options opt = {.size = sizeof opt, .backend = XT_CPU};
    struct xt_output_info o = {.size = sizeof o};
    struct xt_node_info node = {.size = sizeof node};
    if (xt_parse(chain, 0, NULL, g) || xt_compile(ctx, *g, &opt, &s->k) || xt_kernel_get(s->k, info) ||
        xt_output_get(*g, &o) || xt_node_get(*g, o.node, &node)) {
        snprintf(err, err_bytes, "%s", xt_last_error()->message);
        return false;
    }
    if (begins_at % (xt_dtype_bytes(node.dtype) < 8 ? xt_dtype_bytes(node.dtype) : 8)) {
        snprintf(err, err_bytes, "--at: elements of %s cannot begin %zu bytes behind a page",
                 xt_dtype_name(node.dtype), begins_at);
        return false;
    }
    s->n = xt_input_count(*g);
    bool fits = s->n <= LIMIT_SOURCES;
    if (!fits || !make_buffers(s, info) || !make_limit(s, (int)xt_dtype_bytes(node.dtype)) ||
        !(s->naive = naive_new(*g))) {
        snprintf(err, err_bytes, fits ? "out of memory" : "more than %d inputs", LIMIT_SOURCES);
        return false;
    }
    for (int i = 0; i < s->n; i++)
        scramble(s->src[i], s->src_bytes[i], (uint64_t)i + 1);
    return true;
}

int bench_measure(struct xt_ctx *ctx, struct peers *peers, const struct bench_workload *w, int samples,
                  struct bench_row *out, char *err, size_t err_bytes)
{
    struct setup s = {0};
    struct xt_graph *g = NULL;
    struct xt_kernel_info info = {.size = sizeof info};
    int status = -1;
    *out = (struct bench_row){.work = w};
    if (!make_setup(ctx, w->chain, &s, &g, &info, err, err_bytes) || verify(&s, err, err_bytes))
        goto done;
    samples *= s.copy_bytes < SHORT_BYTES ? MORE_SAMPLES : 1;
    out->samples = samples < MAX_SAMPLES ? samples : MAX_SAMPLES;
    out->estimate_seconds = xt_kernel_estimate(s.k);
    snprintf(out->strategy, sizeof out->strategy, "%s", info.strategy);
    snprintf(out->way, sizeof out->way, "%s", info.way);
    snprintf(out->map_class, sizeof out->map_class, "%s", info.map_class);
    out->pieces = info.n_pieces;
    out->bytes_read = info.bytes_read;
    out->bytes_written = info.bytes_written;
    out->naive_steps = naive_steps(s.naive);
    out->naive_bytes = naive_bytes(s.naive);
    for (int i = 0; i < s.n; i++)
        out->lines_read += (int64_t)s.limit.reads[i];
    time_all(&s, peers, out->samples, out);
    status = 0;
done:
    free_setup(&s);
    xt_graph_free(g);
    return status;
}
