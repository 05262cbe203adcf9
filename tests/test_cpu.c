/* test_cpu.c: CPU plans against xti_map_eval, byte for byte: random maps on every instruction set, with
 * caches of every size (so that blocking and streaming happen on small shapes), cut into shares as threads
 * do. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu/cpu.h"
#include "cpu/run.h"
#include "plan/choice.h"
#include "tests/support/random_graph.h"
#include "support/map_of.h"
#include "support/suite.h"

/* ------------------------------------------------------------------------------------------- random maps */

static uint64_t rng;

static int64_t below(int64_t n)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((rng >> 33) % (uint64_t)n);
}

enum { RANK = 9, PIECES = 4, DIVS = 3, GUARDS = 3, SRCS = 2 };

/* A map and the arrays that its pieces point to. */
struct sample {
    struct xti_map map;
    struct xti_piece piece[PIECES];
    struct xti_dim dim[PIECES][RANK];
    struct xti_div div[PIECES][DIVS];
    struct xti_guard guard[PIECES][GUARDS];
    int64_t x[PIECES][DIVS + GUARDS][RANK], q[PIECES][DIVS + GUARDS][DIVS], sq[PIECES][DIVS];
    int64_t src_lo[SRCS], src_hi[SRCS];
};

static int64_t extent(int rank)
{
    static const int64_t common[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 64, 65, 100};
    int64_t n = common[below(sizeof common / sizeof *common)];
    return rank > 4 && n > 8 ? 2 + n % 3 : rank > 2 && n > 33 ? n % 33 + 1 : n;
}

static void shuffle(int *order, int n)
{
    for (int i = 0; i < n; i++) {
        int k = (int)below(i + 1);
        order[i] = order[k];
        order[k] = i;
    }
}

/* Strides of a dense array whose dims are nested in a random order, then spoilt a little. */
static void random_source(struct xti_piece *p)
{
    int order[RANK];
    int64_t st = 1;
    bool keep = below(3) == 0;
    shuffle(order, p->n_dims);
    for (int i = 0; i < p->n_dims; i++) {
        struct xti_dim *x = &p->dim[keep ? p->n_dims - 1 - i : order[i]];
        x->s = st;
        st *= x->n;
        int spoil = (int)below(14);
        if (spoil == 0)
            x->s = 0;
        if (spoil == 1)
            st += below(5);
        if (spoil == 2)
            x->s *= 2 + below(3), st *= 5;
        if (spoil == 3)
            x->s = -x->s;
        if (spoil == 4)
            st = (st + 63) / 64 * 64;
    }
}

/* Destinations nest: outermost first in the array. Returns the elements spanned. */
static int64_t random_destination(struct xti_piece *p)
{
    int64_t st = below(8) ? 1 : 1 + below(3);
    for (int i = p->n_dims - 1; i >= 0; i--) {
        p->dim[i].d = st;
        st *= p->dim[i].n;
        if (below(6) == 0)
            st += below(4);
        if (below(6) == 0)
            st = (st + 63) / 64 * 64;
    }
    return st;
}

static void random_rows(struct sample *m, int k)
{
    struct xti_piece *p = &m->piece[k];
    p->n_divs = (int)below(DIVS + 1);
    p->n_guards = (int)below(GUARDS + 1);
    for (int j = 0; j < p->n_divs + p->n_guards; j++) {
        int64_t *x = m->x[k][j], *q = m->q[k][j], lowest = 0, total = 0;
        for (int i = 0; i < p->n_dims; i++) {
            x[i] = below(3) ? below(7) - 3 : 0;
            lowest += x[i] < 0 ? x[i] * (p->dim[i].n - 1) : 0;
            total += llabs(x[i]) * (p->dim[i].n - 1);
        }
        for (int i = 0; i < DIVS; i++)
            q[i] = below(3);
        if (j < p->n_divs) { /* numerators >= 0 */
            m->div[k][j] = (struct xti_div){.den = 2 + below(9), .c = below(6) - lowest, .x = x, .q = q};
            m->sq[k][j] = below(9) - 4;
        } else {
            m->guard[k][j - p->n_divs] =
                (struct xti_guard){.c = below(total + 4) - total / 2 - 1, .x = x, .q = q};
            for (int i = 0; i < DIVS; i++)
                q[i] -= 1;
        }
    }
}

/* The addresses that a piece may touch: bounds by the box, quotients below 2^20 are found by looking. */
struct bounds {
    struct sample *m;
    int64_t lo[PIECES], hi[PIECES];
};

static bool see(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    struct bounds *b = arg;
    int k = (int)(p - b->m->piece);
    if (p->src < 0)
        return true;
    b->lo[k] = s < b->lo[k] ? s : b->lo[k];
    b->hi[k] = s > b->hi[k] ? s : b->hi[k];
    return true;
}

/* general: with divs and guards. */
static void random_map(struct sample *m, bool general)
{
    static const int widths[] = {1, 2, 4, 8, 16};
    memset(m, 0, sizeof *m);
    m->map = (struct xti_map){.esize = widths[below(5)],
                              .n_pieces = 1 + (int)below(PIECES),
                              .piece = m->piece,
                              .n_srcs = SRCS,
                              .src_lo = m->src_lo,
                              .src_hi = m->src_hi};
    int64_t doff = below(3) ? 0 : below(70);
    m->map.dst_lo = doff;
    for (int k = 0; k < m->map.n_pieces; k++) {
        struct xti_piece *p = &m->piece[k];
        *p = (struct xti_piece){.src = (int)below(SRCS + 1) - (below(3) == 0),
                                .doff = doff,
                                .dim = m->dim[k],
                                .div = m->div[k],
                                .sq = m->sq[k],
                                .guard = m->guard[k]};
        p->src = p->src >= SRCS ? SRCS - 1 : p->src;
        int rank = (int)below(RANK);
        int64_t numel = 1;
        for (int i = 0; i < rank; i++) {
            int64_t n = extent(rank);
            if (n > 1 && numel * n <= (general ? 2000 : 40000))
                m->dim[k][p->n_dims++].n = n, numel *= n;
        }
        doff += random_destination(p) + (below(4) ? 0 : below(9));
        if (p->src >= 0)
            random_source(p);
        else
            for (int i = 0; i < 16; i++)
                p->value[i] = (unsigned char)below(256);
        if (general)
            random_rows(m, k);
        m->map.numel += numel;
        m->map.dst_hi = doff;
    }
    struct bounds b = {.m = m};
    for (int k = 0; k < PIECES; k++)
        b.lo[k] = INT64_MAX, b.hi[k] = INT64_MIN;
    xti_map_visit(&m->map, see, &b);
    for (int i = 0; i < SRCS; i++)
        m->src_lo[i] = 0, m->src_hi[i] = -1;
    for (int k = 0; k < m->map.n_pieces; k++) {
        struct xti_piece *p = &m->piece[k];
        if (p->src < 0 || b.lo[k] > b.hi[k])
            continue;
        int64_t shift = -b.lo[k] + below(9);
        p->soff += shift;
        if (b.hi[k] + shift > m->src_hi[p->src])
            m->src_hi[p->src] = b.hi[k] + shift;
    }
}

/* ------------------------------------------------------------------------------------------------- running
 */

enum { MARGIN = 256, CANARY = 0x5a, MAX_SRCS = 64 };

/* Buffers that fit a map exactly, so that a sanitizer sees every step outside. */
struct buffers {
    size_t bytes;
    char *dst, *want;
    void *src[MAX_SRCS];
};

static struct buffers buffers_of(const struct xti_map *m, int misalign)
{
    struct buffers b = {.bytes = (size_t)((m->dst_hi < 0 ? 0 : m->dst_hi + 1) * m->esize) + 2 * MARGIN};
    b.dst = aligned_alloc(64, (b.bytes + 64 + 63) / 64 * 64);
    b.want = malloc(b.bytes);
    memset(b.want, CANARY, b.bytes);
    ck_assert_int_le(m->n_srcs, MAX_SRCS);
    for (int i = 0; i < m->n_srcs; i++) {
        size_t n = (size_t)((m->src_hi[i] + 1) * m->esize);
        b.src[i] = malloc(n ? n : 1);
        fill_pattern(b.src[i], n, 7 + (uint64_t)i);
    }
    xti_map_eval(m, b.want + MARGIN, (const void *const *)b.src);
    b.dst += misalign;
    return b;
}

static void free_buffers(struct buffers *b, int misalign)
{
    free(b->dst - misalign);
    free(b->want);
    for (int i = 0; i < MAX_SRCS; i++)
        free(b->src[i]);
}

static const char *chain = ""; /* the problem line being tested */

static const char *describe(const struct xti_plan *p)
{
    static char text[4000];
    size_t n = 0;
    text[0] = 0;
    for (int k = 0; k < p->map.n_pieces && n < sizeof text - 400; k++) {
        const struct xti_piece *x = &p->map.piece[k];
        n += (size_t)sprintf(text + n, "\n  %s b%d src %d soff %lld doff %lld divs %d guards %d",
                             p->step[k].strategy->name, p->map.esize, x->src, (long long)x->soff,
                             (long long)x->doff, x->n_divs, x->n_guards);
        for (int i = 0; i < x->n_dims; i++)
            n += (size_t)sprintf(text + n, " (%lld,%lld,%lld)", (long long)x->dim[i].n,
                                 (long long)x->dim[i].s, (long long)x->dim[i].d);
    }
    return text;
}

/* Runs the plan in `parts` shares, one after the other, from the last to the first. */
static void run_shares(const struct xti_plan *p, const struct buffers *b, int parts)
{
    char *dst = b->dst + MARGIN;
    struct xti_copy c = {.plan = xti_plan_at(p, dst), .dst = dst, .src = (const void *const *)b->src};
    memset(b->dst, CANARY, b->bytes);
    for (int over = 0; over <= c.plan->covered; over++)
        for (int i = parts - 1; i >= 0; i--) {
            c.over = over;
            xti_run_share(&c, (struct xti_share){i, parts});
        }
}

static void same_bytes(const struct xti_plan *p, const struct buffers *b, const char *when, long long seed)
{
    if (!memcmp(b->dst, b->want, b->bytes))
        return;
    for (size_t i = 0; i < b->bytes; i++)
        if (b->dst[i] != b->want[i])
            ck_abort_msg("%s, %s, seed %lld: byte %lld is %d, not %d\n  %s%s", when,
                         xti_isa_name[p->target.isa], seed, (long long)i - MARGIN, b->dst[i], b->want[i],
                         chain, describe(p));
}

static bool apart; /* plans join no pieces */

static struct xti_plan plan_of(const struct xti_map *m, enum xti_isa isa, int64_t cache, int threads)
{
    struct xti_target t;
    struct xti_plan p;
    struct xti_err err = {0};
    xti_cpu_target(threads, &t);
    ck_assert(xti_cpu_has(isa));
    t.isa = isa;
    static struct xti_machine here;
    here = *t.machine;
    here.habits.gathers = 0;
    here.habits.splits_vectors |= cache != 1024;
    t.machine = &here;
    ck_assert(xti_choice_without(cache == 1024 ? apart ? "braid,joint" : "braid" : "", &t.choice.without));
    if (cache)
        t.l1_bytes = cache, t.l2_bytes = 2 * cache, t.l3_bytes = 16 * cache;
    ck_assert_msg(!xti_plan_make(m, &t, &p, &err), "%s", err.e.message);
    return p;
}

static enum xti_isa machine(void)
{
    struct xti_target t;
    xti_cpu_target(1, &t);
    return t.isa;
}

/* Every instruction set; real caches and tiny ones; one share and several; the destination on and off its
 * line. */
static void check_map(const struct xti_map *m, long long seed)
{
    static const int64_t caches[] = {0, 64, 1024};
    int misalign = seed % 3 == 0 ? 16 : seed % 3 == 1 ? 0 : m->esize;
    struct buffers b = buffers_of(m, misalign);
    for (int isa = 0; isa < XTI_ISA_COUNT; isa++)
        for (int c = 0; c < 3 && xti_cpu_has((enum xti_isa)isa); c++) {
            int parts = seed % 2 ? 1 : 2 + (int)(seed % 5);
            struct xti_plan p = plan_of(m, (enum xti_isa)isa, caches[c], parts);
            run_shares(&p, &b, parts);
            same_bytes(&p, &b, c ? "small caches" : "the machine's caches", seed);
            xti_plan_free(&p);
        }
    free_buffers(&b, misalign);
}

enum { ROUNDS = 40, PER_ROUND = 40 };

START_TEST(a_random_affine_map_is_copied)
{
    static struct sample m;
    for (int i = 0; i < PER_ROUND; i++) {
        long long seed = _i * PER_ROUND + i;
        rng = (uint64_t)seed * 977 + 5;
        random_map(&m, false);
        check_map(&m.map, seed);
    }
}
END_TEST

START_TEST(a_random_map_with_divs_and_guards_is_copied)
{
    static struct sample m;
    for (int i = 0; i < PER_ROUND; i++) {
        long long seed = _i * PER_ROUND + i;
        rng = (uint64_t)seed * 1327 + 11;
        random_map(&m, true);
        check_map(&m.map, seed);
    }
}
END_TEST

enum { MOST_AXES = 13 };

/* Runs of 1 to 70 elements, or units, in another order on either side: strides of a random permutation, some
 * backwards, with gaps now and then. */
static void random_runs(struct xti_piece *p, struct xti_dim *dim)
{
    int64_t at = 1 + below(70);
    int n = 2 + (int)below(3), order[4];
    bool lines = below(3) == 0; /* rows of whole ones */
    at = lines ? (at + 7) / 8 * 8 : at;
    int64_t d = at;
    int dims = at > 1 ? 1 : 0;
    if (dims)
        dim[n] = (struct xti_dim){at, 1, 1};
    for (int i = n - 1; i >= 0; i--) {
        int64_t extent = lines && i == n - 1 ? 8 << below(2) : 2 + below(n > 3 ? 5 : 17);
        dim[i] = (struct xti_dim){extent, 0, d};
        d = d * dim[i].n + (below(4) ? 0 : lines ? 64 : below(5));
    }
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = (int)below(i + 1), other = order[k];
        order[k] = order[i];
        order[i] = other;
    }
    for (int i = 0; i < n; i++) {
        struct xti_dim *x = &dim[order[i]];
        x->s = below(6) ? at : -at;
        p->soff += x->s < 0 ? at * (x->n - 1) : 0;
        at = at * x->n + (below(4) ? 0 : below(5));
    }
    p->n_dims = n + dims;
}

/* Many axes of 2, sometimes 3 or 4, in another order, some backwards, a gap now and then, one of `wide`. */
static void random_axes_apart(struct xti_piece *p, struct xti_dim *dim, int64_t wide)
{
    int widest = 4 + (int)below(4);
    int order[MOST_AXES];
    int64_t at = 1, d = 1;
    p->n_dims = 8 + (int)below(MOST_AXES - 7);
    for (int i = p->n_dims - 1; i >= 0; i--, d *= dim[i + 1].n)
        dim[i] = (struct xti_dim){below(12) ? 2 : 3 + below(2), 0, d};
    shuffle(order, p->n_dims);
    for (int i = 0; i < p->n_dims; i++) {
        struct xti_dim *x = &dim[order[i]];
        x->s = below(10) ? at : -at;
        p->soff += x->s < 0 ? at * (x->n - 1) : 0;
        at = at * x->n + (below(20) ? 0 : below(3) * 16) + (i == widest ? wide : 0);
    }
}

static void random_axes(struct xti_piece *p, struct xti_dim *dim) { random_axes_apart(p, dim, 0); }
static void random_blocks(struct xti_piece *p, struct xti_dim *dim) { random_axes_apart(p, dim, 3000); }

static void check_random_piece(void (*make)(struct xti_piece *p, struct xti_dim *dim),
                               void (*check)(const struct xti_map *m, long long seed), long long seed)
{
    struct xti_dim dim[MOST_AXES];
    struct xti_piece piece = {.dim = dim};
    make(&piece, dim);
    int64_t lo[1] = {0}, hi[1] = {piece.soff};
    struct xti_map m = {.esize = 1 << below(5),
                        .n_pieces = 1,
                        .piece = &piece,
                        .n_srcs = 1,
                        .numel = xti_piece_numel(&piece),
                        .src_lo = lo,
                        .src_hi = hi};
    for (int k = 0; k < piece.n_dims; k++) {
        hi[0] += dim[k].s > 0 ? dim[k].s * (dim[k].n - 1) : 0;
        m.dst_hi += dim[k].d * (dim[k].n - 1);
    }
    check(&m, seed);
}

/* So many of a round; rng begins with seed * times + plus. */
static void check_random_pieces(int round, int n, uint64_t times, uint64_t plus,
                                void (*make)(struct xti_piece *p, struct xti_dim *dim),
                                void (*check)(const struct xti_map *m, long long seed))
{
    for (int i = 0; i < n; i++) {
        long long seed = round * PER_ROUND + i;
        rng = (uint64_t)seed * times + plus;
        check_random_piece(make, check, seed);
    }
}

START_TEST(random_short_runs_are_copied_in_another_order)
{
    check_random_pieces(_i, PER_ROUND, 7919, 5, random_runs, check_map);
}
END_TEST

START_TEST(random_orders_of_small_axes_are_copied)
{
    check_random_pieces(_i, PER_ROUND, 6367, 3, random_axes, check_map);
}
END_TEST

enum { PAGE = 4096 };

/* A source of which those pages alone can be read that hold an element. */
struct pages {
    char *s;
    const char *from;
    int64_t bytes; /* of an element */
};

static bool put_element(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    const struct pages *x = arg;
    char *at = x->s + s * x->bytes, *page = at - (uintptr_t)at % PAGE;
    (void)p, (void)d;
    ck_assert(!mprotect(page, PAGE, PROT_READ | PROT_WRITE));
    memcpy(at, x->from + s * x->bytes, (size_t)x->bytes);
    return true;
}

/* With an end of the source, too, at that of a page. */
static void check_pages(const struct xti_map *m, long long seed)
{
    int64_t bytes = (m->src_hi[0] + 1) * m->esize, room = (bytes + PAGE - 1) / PAGE * PAGE;
    size_t all = (size_t)(room + 2 * PAGE);
    struct buffers b = buffers_of(m, 0);
    char *map = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert(map != MAP_FAILED);
    struct pages x = {map + PAGE + (seed % 2 ? 0 : room - bytes), b.src[0], m->esize};
    xti_map_visit(m, put_element, &x);
    struct buffers sparse = b;
    sparse.src[0] = x.s;
    for (int isa = 0; isa < XTI_ISA_COUNT; isa++)
        if (xti_cpu_has((enum xti_isa)isa)) {
            struct xti_plan p = plan_of(m, (enum xti_isa)isa, 64, 1);
            run_shares(&p, &sparse, 1);
            same_bytes(&p, &sparse, "pages apart", seed);
            xti_plan_free(&p);
        }
    munmap(map, all);
    free_buffers(&b, 0);
}

START_TEST(pages_of_a_source_that_hold_nothing_are_not_read)
{
    check_random_pieces(_i, PER_ROUND / 4, 6361, 3, random_blocks, check_pages);
}
END_TEST

START_TEST(a_random_chain_is_copied)
{
    for (int i = 0; i < PER_ROUND; i++) {
        long long seed = _i * PER_ROUND + i;
        struct xti_map m;
        struct xti_err err = {0};
        struct random_graph_options opt = {.max_numel = seed % 4 ? 4096 : 40000};
        struct xt_graph *g = random_graph((uint64_t)seed, &opt);
        ck_assert_ptr_nonnull(g);
        chain = graph_text(g);
        ck_assert_msg(!xti_map_fuse(g, NULL, &m, &err), "%s: %s", chain, err.e.message);
        check_map(&m, seed);
        xti_map_free(&m);
        xt_graph_free(g);
    }
    chain = "";
}
END_TEST

/* Rows with borders or of several sources, in any order: blocks of several pieces. */
static struct xt_graph *random_rows_of_pieces(void)
{
    static const char *const type[] = {"u8", "f16", "f32", "f64", "c128"};
    char x[64] = "", y[64] = "", ops[200] = "", line[400];
    int rank = 2 + (int)below(3), axis = (int)below(rank), order[RANK], n = 0;
    bool both = below(3) == 0;
    shuffle(order, rank);
    for (int i = 0; i < rank; i++) {
        int e = 1 + (int)below(rank > 3 ? 9 : rank > 2 ? 20 : 70), other = i == axis ? 1 + (int)below(9) : e;
        snprintf(x + strlen(x), 9, "%s%d", i ? "," : "", e);
        snprintf(y + strlen(y), 9, "%s%d", i ? "," : "", other);
    }
    for (int turn = 0; turn < 3; turn++) {
        int what = (int)below(4);
        if (what == 0)
            n += snprintf(ops + n, 20, ".flip(%d)", (int)below(rank));
        for (int i = 0; i < rank && what % 2; i++) {
            const char *open = i ? "," : what == 1 ? ".permute(" : ".pad(", *end = i + 1 < rank ? "" : ")";
            int lo = below(2) ? (int)below(4) : 0, hi = below(2) ? (int)below(4) : 0;
            n += what == 1 ? snprintf(ops + n, 20, "%s%d%s", open, order[i], end)
                           : snprintf(ops + n, 20, "%s(%d,%d)%s", open, lo, hi, end);
        }
        if (what == 2)
            n += snprintf(ops + n, 20, ".roll(%d,%d)", (int)below(3), (int)below(rank));
    }
    const char *t = type[below(5)];
    snprintf(line, sizeof line, "x: %s[%s]; y: %s[%s]; %s%d%s%s", t, x, t, both ? y : "1",
             both ? "concat(" : "x.roll(0,", both ? axis : 0, both ? ", x, y)" : ")", ops);
    return parse_line(line);
}

/* Every row of the table plans, as XT_MACHINE makes it, what this processor runs. */
static void check_rows(const struct xti_map *m, long long seed)
{
    static const int64_t caches[] = {0, 64, 1024};
    int misalign = seed % 3 == 0 ? 16 : seed % 3 == 1 ? 0 : m->esize, parts = seed % 2 ? 1 : 3;
    struct buffers b = buffers_of(m, misalign);
    for (int i = 0; xti_machine_at(i); i++)
        for (int isa = 0; isa < XTI_ISA_COUNT; isa++) {
            int64_t cache = caches[(seed + i) % 3];
            struct xti_target t;
            struct xti_plan p;
            if (!xti_cpu_has((enum xti_isa)isa))
                continue;
            setenv("XT_MACHINE", xti_machine_at(i)->name, 1);
            xti_cpu_target(parts, &t);
            unsetenv("XT_MACHINE");
            ck_assert_ptr_eq(t.machine, xti_machine_at(i));
            t.isa = (enum xti_isa)isa;
            if (cache)
                t.l1_bytes = cache, t.l2_bytes = 2 * cache, t.l3_bytes = 16 * cache;
            ck_assert(!xti_plan_make(m, &t, &p, NULL));
            run_shares(&p, &b, parts);
            same_bytes(&p, &b, t.machine->name, seed);
            xti_plan_free(&p);
        }
    free_buffers(&b, misalign);
}

START_TEST(plans_of_every_machine_copy_a_random_chain)
{
    struct random_graph_options opt = {.max_numel = 60000, .no_empty = true};
    for (int i = 0; i < PER_ROUND; i++) {
        long long seed = _i * PER_ROUND + i;
        struct xt_graph *g = random_graph((uint64_t)seed + 50000, &opt);
        struct xti_map m;
        chain = graph_text(g);
        fuse(g, &m);
        check_rows(&m, seed);
        xti_map_free(&m);
        xt_graph_free(g);
    }
    check_random_pieces(_i, PER_ROUND, 7907, 7, random_runs, check_rows);
}
END_TEST

START_TEST(rows_of_several_pieces_are_copied)
{
    for (int i = 0; i < PER_ROUND; i++) {
        struct xti_map m;
        rng = (uint64_t)(_i * PER_ROUND + i) * 7919 + 3;
        struct xt_graph *g = random_rows_of_pieces();
        chain = graph_text(g);
        fuse(g, &m);
        check_map(&m, _i * PER_ROUND + i);
        xti_map_free(&m);
        xt_graph_free(g);
    }
    chain = "";
}
END_TEST

/* ------------------------------------------------------------------------------------- shapes past the
 * caches */

struct big {
    const char *what;
    int esize;
    int n_dims;
    struct xti_dim dim[6];
    int64_t soff;
};

/* clang-format off */
static const struct big big[] = {
    {"transpose f32", 4, 2, {{1537, 1, 1600}, {1600, 1537, 1}}, 0},
    {"transpose f32, rows not on lines", 4, 2, {{1537, 1, 1601}, {1601, 1537, 1}}, 0},
    {"transpose f32, five columns behind the last block", 4, 2, {{1543, 1, 1541}, {1541, 1543, 1}}, 0},
    {"transpose u8, rows not on lines", 1, 2, {{2101, 1, 4103}, {4103, 2101, 1}}, 0},
    {"transpose f16, rows not on lines", 2, 2, {{2101, 1, 2111}, {2111, 2101, 1}}, 0},
    {"transpose f64, rows not on lines, backwards", 8, 2, {{1101, -1, 1105}, {1105, 1101, 1}}, 1100},
    {"transpose c128, rows not on lines", 16, 2, {{801, 1, 805}, {805, 801, 1}}, 0},
    {"columns of two dims f32, the outer one in blocks", 4, 3,
     {{37, 1, 70049}, {10007, 37, 7}, {7, 370259, 1}}, 0},
    {"rank 6 f32, extents of 13", 4, 6,
     {{13, 2197, 371293}, {13, 13, 28561}, {13, 371293, 2197}, {13, 1, 169}, {13, 28561, 13}, {13, 169, 1}},
     0},
    {"transpose f16", 2, 2, {{2100, 1, 2112}, {2112, 2100, 1}}, 0},
    {"transpose u8", 1, 2, {{3001, 1, 3008}, {3008, 3001, 1}}, 0},
    {"transpose f64, backwards", 8, 2, {{1100, -1, 1104}, {1104, 1100, 1}}, 1099},
    {"transpose c128", 16, 2, {{800, 1, 804}, {804, 800, 1}}, 0},
    {"head merge f16", 2, 3, {{700, 128, 16 * 128}, {16, 700 * 128, 128}, {128, 1, 1}}, 0},
    {"memcpy", 1, 1, {{9000001, 1, 1}}, 0},
    {"reverse u8", 1, 1, {{9000001, -1, 1}}, 9000000},
    {"even elements f32", 4, 1, {{2300001, 2, 1}}, 0},
    {"every sixth u8", 1, 1, {{9000001, 6, 1}}, 0},
    {"reverse RGB u8", 1, 2, {{3000001, -3, 3}, {3, 1, 1}}, 9000000},
    {"reverse RGB f32, rows", 4, 3, {{900, 3000, 3000}, {1000, -3, 3}, {3, 1, 1}}, 2997},
    {"rank 6 f32, reversed", 4, 6,
     {{8, 1, 262144}, {8, 8, 32768}, {8, 64, 4096}, {8, 512, 512}, {8, 4096, 64}, {64, 32768, 1}}, 0},
    {"planar to RGB u8", 1, 2, {{3000001, 1, 3}, {3, 3000001, 1}}, 0},
    {"RGB to planar u8", 1, 2, {{3, 1, 3000001}, {3000001, 3, 1}}, 0},
    {"broadcast of a row f32", 4, 2, {{4, 0, 600001}, {600001, 1, 1}}, 0},
    {"broadcast of a column f32", 4, 2, {{1500, 1, 1601}, {1601, 0, 1}}, 0},
    {"rows of 3 f32, transposed", 4, 3, {{900, 3, 2700}, {900, 2700, 3}, {3, 1, 1}}, 0},
    {"rows of 63 out of 64 f32", 4, 2, {{40000, 64, 63}, {63, 1, 1}}, 0},
    {"rows of 2501 u8, every second one, backwards", 1, 2, {{4001, -5002, 2501}, {2501, 1, 1}}, 4000 * 5002},
    {"rows of 17 f64, reversed", 8, 2, {{70000, 17, 17}, {17, -1, 1}}, 16},
    {"runs of 80 u8, both sides with a rest", 1, 4,
     {{16, 80, 786000}, {75, 1280, 10480}, {131, 96000, 80}, {80, 1, 1}}, 0},
    {"runs of 50 u8, one side backwards", 1, 3, {{1000, -50, 11000}, {220, 50000, 50}, {50, 1, 1}}, 999 * 50},
    {"runs of 367 f32, with gaps", 4, 3, {{64, 367, 75000}, {200, 23488, 370}, {367, 1, 1}}, 0},
    {"transposed runs of 48 f16, one behind the other", 2, 5,
     {{28, 67584, 202752}, {4, 352, 50688}, {3, 1892352, 16896}, {352, 1, 48}, {48, 1408, 1}}, 0},
    {"transposed runs of 50 u8, backwards, one behind the other", 1, 3,
     {{12, 1000000, 1000000}, {20000, -1, 50}, {50, 20000, 1}}, 19999},
    {"RGB u8, turned", 1, 3, {{2000, 3, 4500}, {1500, 6000, 3}, {3, 1, 1}}, 0},
    {"RGB u8, 20 columns, turned", 1, 3, {{20, 3, 600003}, {200001, 60, 3}, {3, 1, 1}}, 0},
    {"pixels of 8 f32 to planes", 4, 2, {{8, 1, 300001}, {300001, 8, 1}}, 0},
    {"planes to pixels of 7 f16", 2, 2, {{700001, 1, 7}, {7, 700001, 1}}, 0},
    {"pixels of 12 u8 to planes", 1, 2, {{12, 1, 800001}, {800001, 12, 1}}, 0},
    {"planes to pixels of 12 u8", 1, 2, {{800001, 1, 12}, {12, 800001, 1}}, 0},
    {"20 columns f32, transposed", 4, 2, {{20, 1, 120001}, {120001, 20, 1}}, 0},
    {"batch of 12 x 7 f16, transposed", 2, 3, {{60001, 84, 84}, {7, 1, 12}, {12, 7, 1}}, 0},
    {"rows of 5 u8, backwards", 1, 2, {{2000060, 5, 5}, {5, -1, 1}}, 4},
    {"runs of 3 u8, backwards, in another order", 1, 4,
     {{100001, 105, 105}, {7, 3, 15}, {5, -21, 3}, {3, 1, 1}}, 84},
    {"blocks of 7 x 15 u8, backwards, in another order", 1, 4,
     {{90001, 105, 7}, {7, -15, 9450105}, {7, 1, 1350015}, {7, 15, 1}}, 90},
    {"batch of small transposes f16", 2, 3, {{1100, 4096, 4096}, {64, 1, 64}, {64, 64, 1}}, 0},
};
/* clang-format on */

static void run_pool(void *pool, int n, void (*task)(void *, int), void *arg)
{
    ++*(int *)pool;
    for (int i = n - 1; i >= 0; i--)
        task(arg, i);
}

START_TEST(a_copy_larger_than_the_cache_is_the_same_on_any_number_of_threads)
{
    const struct big *x = &big[_i];
    struct xti_dim dim[6];
    memcpy(dim, x->dim, sizeof dim);
    struct xti_piece piece = {.soff = x->soff, .n_dims = x->n_dims, .dim = dim};
    int64_t lo[1] = {0}, hi[1] = {x->soff}, d_hi = 0, numel = 1;
    for (int i = 0; i < x->n_dims; i++) {
        hi[0] += dim[i].s > 0 ? dim[i].s * (dim[i].n - 1) : 0;
        d_hi += dim[i].d * (dim[i].n - 1);
        numel *= dim[i].n;
    }
    struct xti_map m = {.esize = x->esize,
                        .n_pieces = 1,
                        .piece = &piece,
                        .n_srcs = 1,
                        .numel = numel,
                        .dst_hi = d_hi,
                        .src_lo = lo,
                        .src_hi = hi};
    struct buffers b = buffers_of(&m, 16);
    int calls;
    struct xti_threads *pool[] = {xti_threads_new(NULL, NULL), xti_threads_new(run_pool, &calls)};
    for (int isa = 0; isa < XTI_ISA_COUNT; isa++)
        for (int threads = 1; threads <= 5 && xti_cpu_has((enum xti_isa)isa); threads += threads == 1 ? 1 : 3)
            for (int pooled = 0; pooled < 2; pooled++) {
                calls = 0;
                struct xti_plan p = plan_of(&m, (enum xti_isa)isa, 0, threads);
                memset(b.dst, CANARY, b.bytes);
                xti_cpu_run(&p, b.dst + MARGIN, (const void *const *)b.src, pool[pooled]);
                same_bytes(&p, &b, x->what, threads);
                ck_assert_int_eq(calls, pooled && threads > 1);
                ck_assert(threads == 1 || p.assembled || p.step[0].split >= 0);
                struct xti_call call;
                xti_call_make(&p, &call);
                ck_assert(!p.assembled || !call.fn);
                xti_plan_free(&p);
            }
    for (int i = 0; i < 2; i++) {
        xti_threads_close(pool[i]);
        xti_threads_unref(pool[i]);
    }
    free_buffers(&b, 16);
}
END_TEST

/* ---- rows that share lines with others, of one piece and of several */

static const char *const merges[] = {
    "x: u8[70000,40]; x[:, 1:38]",
    "x: u8[70000,40]; x[:, 38:1:-1]", /* single bytes */
    "x: f32[30000,45]; x[:, ::-1][:, 1:40]",
    "x: f64[40000,40]; x[:, 3:36]",
    "x: f32[1200,14,14]; x.pad((0,0),(1,1),(1,1))", /* rows that are alike */
    "x: f32[1200,14,14]; x.pad((0,0),(1,1),(1,1), value=3)",
    "x: u16[1200,13,31]; x.pad((0,0),(2,1),(2,2), value=513)[:, :, 1:33]",
    "x: u16[800,16,32]; x.pad((0,0),(1,1),(1,1)).unfold(1,3,1).unfold(2,3,1).permute(0,3,4,1,2)",
    "x: f32[900,8,8]; x.pad((0,0),(1,1),(1,1)).unfold(1,3,1).unfold(2,3,1).permute(0,3,4,1,2)",
    "x: u8[1103,15,26]; x[:, ::-1].permute(0,2,1)", /* small matrices turned, with some left over */
    "x: u8[1040,8,6,20]; x.permute(0,3,2,1)",
    "x: u16[600,7,3,11]; x.permute(0,2,1,3)",
    "x: f32[300,9,17]; x.permute(0,2,1)",
    "x: f64[150,5,9]; x.permute(0,2,1)",
    "x: u8[1103,9,4]:[180,22,1]; x.unsqueeze(1).expand(1103,5,9,4)", /* as long as what they read, yet none */
    "x: u8[1103,5,5,4]:[100,6,18,1]; x",
    "x: f32[40000,20]; y: f32[40000,17]; concat(1, x[:, 2:], y, x[:, :3])",
    "x: c128[9000,20]; y: c128[9000,17]; concat(1, x[:, 2:], y)",
    "x: f32[2,9000,40]; x[:, 5:8005, 3:40]",  /* two ranges */
    "x: u8[3,20000,70]; x[:, 7:18888, 4:67]", /* ranges that end anywhere */
};

/* The destination on lines, on its elements alone and in between; one share and several. */
static void alike_from_any_place(const char *line, const char *when, bool covered)
{
    struct xt_graph *g = parse_line(line);
    struct xti_map m;
    fuse(g, &m);
    chain = line;
    for (int misalign = 0; misalign < 64; misalign += misalign ? 2 * misalign : m.esize) {
        struct buffers b = buffers_of(&m, misalign);
        for (int isa = 0; isa < XTI_ISA_COUNT; isa++)
            for (int i = 0; i < 4 && xti_cpu_has((enum xti_isa)isa); i++) {
                int parts = 1 + i / 2 * 2;
                apart = i % 2;
                struct xti_plan p = plan_of(&m, (enum xti_isa)isa, 1024, parts);
                ck_assert_int_eq(p.covered, covered);
                run_shares(&p, &b, parts);
                same_bytes(&p, &b, when, p.assembled);
                xti_plan_free(&p);
            }
        free_buffers(&b, misalign);
    }
    apart = false;
    chain = "";
    xti_map_free(&m);
    xt_graph_free(g);
}

START_TEST(rows_that_share_lines_are_put_together_part_by_part)
{
    alike_from_any_place(merges[_i], "merges", false);
}
END_TEST

/* ---- boxes whole, and what guards hide of them afterwards */

static const char *const triangles[] = {
    "x: u8[4,20000,4]; x.permute(1,2,0).tril(0)", /* the same bytes in each small matrix */
    "x: f32[5,3000,2,7]; x.permute(1,2,3,0).tril(-1)",
    "x: u16[9,1000,300]; x.permute(1,2,0).triu(1)", /* other rows than a mask has */
    "x: f64[160,170]; x.T.tril(0)",
    "x: u16[700,30,5]; x.tril(0)",                /* short runs */
    "x: c128[40,90,3]; x.permute(1,2,0).tril(0)", /* the fill is whole */
    "x: u8[7,900,9]; x.permute(1,2,0).tril(0).flip(0)",
    "x: u8[7,900,9]; x.permute(1,2,0).tril(0) -> [900,9,7]:[70,7,1]+3", /* gaps stay as they are */
    "x: u8[7,900,9]; x.permute(1,2,0).tril(0).pad((0,0),(1,2),(0,0), value=7)",
    "x: u8[7,900,9]; y: u8[7,900,9]; concat(2, x.permute(1,2,0).tril(0), y.permute(1,2,0).triu(0))",
};

START_TEST(triangles_are_copied_whole_and_filled_again)
{
    alike_from_any_place(triangles[_i], "triangles", true);
}
END_TEST

START_TEST(an_empty_map_copies_nothing)
{
    struct xti_map m = {.esize = 4, .dst_hi = -1};
    struct xti_plan p = plan_of(&m, machine(), 0, 4);
    ck_assert_int_eq(p.n_steps, 0);
    xti_cpu_run(&p, NULL, NULL, NULL);
    xti_plan_free(&p);
}
END_TEST

START_TEST(a_plan_that_runs_out_of_memory_leaks_nothing)
{
    static struct sample m;
    struct xti_target t;
    xti_cpu_target(2, &t);
    for (int seed = 0; seed < 40; seed++) {
        rng = (uint64_t)seed;
        random_map(&m, seed % 2);
        int64_t before = xti_live_allocations();
        for (int n = 1;; n++) {
            struct xti_plan p;
            struct xti_err err = {0};
            xti_fail_alloc(n, 0);
            xt_status s = xti_plan_make(&m.map, &t, &p, &err);
            xti_fail_alloc(0, 0);
            ck_assert(s == XT_OK || s == XT_ENOMEM);
            if (!s)
                xti_plan_free(&p);
            ck_assert_int_eq(xti_live_allocations(), before);
            if (!s)
                break;
        }
    }
}
END_TEST

/* -------------------------------------------------------------------------------------------------- nests */

enum { LEVELS = 4, MOST_CALLS = 512 };

static struct {
    const char *s, *after[LEVELS + 1];
    bool begins[LEVELS + 1];
} call[MOST_CALLS];
static int n_calls;
static const char *nest_src;
static const int64_t nest_steps[LEVELS] = {1000, -70, 1000, 1}; /* of the loops' sources */

static void note_call(const struct xtk_job *j, char *d, const char *s)
{
    (void)d;
    ck_assert_int_lt(n_calls, MOST_CALLS);
    call[n_calls].s = s;
    for (int k = 0; k <= LEVELS; k++) {
        int loop = xti_nest_goes_on(j, k);
        call[n_calls].after[k] = loop < 0 ? NULL : nest_src + xti_nest_offset(j, loop, nest_steps);
        call[n_calls].begins[k] = xti_nest_begins(j, k);
    }
    n_calls++;
}

/* Where the loops from `level` on begin again after call i. */
static const char *next_begin(int i, int level)
{
    for (int k = i + 1; k < n_calls; k++)
        if (call[k].begins[level])
            return call[k].s;
    return NULL;
}

START_TEST(a_nest_tells_where_its_source_goes_on_after_each_loop)
{
    static const char src[1 << 15];
    nest_src = src + 400;
    struct xti_loop loop[LEVELS] = {{.n = 4, .s = nest_steps[0], .whole = 10, .block = 3, .cuts = 2},
                                    {.n = 5, .s = -70, .cuts = XTI_CUTS_NONE},
                                    {.n = 3, .s = 1000, .cuts = XTI_CUTS_NONE},
                                    {.n = 3, .s = 1, .whole = 10, .block = 4, .cuts = XTI_CUTS_ROW}};
    struct xti_step step = {.n_loops = LEVELS, .loop = loop, .row.n = 10, .split = _i - 1};
    const struct xtk_job job = {.rows = 10};
    n_calls = 0;
    xti_run_nest(&step, note_call, &job, NULL, nest_src, (struct xti_share){1, 3});
    ck_assert_int_ge(n_calls, 30);
    for (int i = 0; i < n_calls; i++)
        for (int k = 0; k <= LEVELS; k++)
            ck_assert_ptr_eq(call[i].after[k], next_begin(i, k));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu");
    TCase *t = tcase_create("cpu");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, a_random_affine_map_is_copied, 0, ROUNDS);
    tcase_add_loop_test(t, a_random_map_with_divs_and_guards_is_copied, 0, ROUNDS);
    tcase_add_loop_test(t, random_short_runs_are_copied_in_another_order, 0, ROUNDS);
    tcase_add_loop_test(t, pages_of_a_source_that_hold_nothing_are_not_read, 0, ROUNDS);
    tcase_add_loop_test(t, random_orders_of_small_axes_are_copied, 0, ROUNDS);
    tcase_add_loop_test(t, a_random_chain_is_copied, 0, ROUNDS);
    tcase_add_loop_test(t, plans_of_every_machine_copy_a_random_chain, 0, ROUNDS / 2);
    tcase_add_loop_test(t, rows_of_several_pieces_are_copied, 0, ROUNDS);
    tcase_add_loop_test(t, a_copy_larger_than_the_cache_is_the_same_on_any_number_of_threads, 0,
                        sizeof big / sizeof *big);
    tcase_add_loop_test(t, rows_that_share_lines_are_put_together_part_by_part, 0,
                        sizeof merges / sizeof *merges);
    tcase_add_loop_test(t, triangles_are_copied_whole_and_filled_again, 0,
                        sizeof triangles / sizeof *triangles);
    tcase_add_loop_test(t, a_nest_tells_where_its_source_goes_on_after_each_loop, 0, 3);
    tcase_add_test(t, an_empty_map_copies_nothing);
    tcase_add_test(t, a_plan_that_runs_out_of_memory_leaks_nothing);
    suite_add_tcase(s, t);
    return run_suite(s);
}
