/* test_boxes.c: a tensor from boxes to boxes, all ranks in this process, against its elements. */
#include <xt/xt_shard.h>

#include <string.h>
#include <time.h>

#include "shard/shard.h"
#include "support/mailbox.h"
#include "support/random_graph.h"
#include "support/suite.h"

enum { RANKS = 8, AXES = 3, BOXES = 64, NUMEL = 4096 };

/* ---- drawn boxes */

struct list {
    struct xt_boxes b;
    int64_t rank[BOXES], lo[BOXES * AXES], len[BOXES * AXES], strides[BOXES * AXES], offset[BOXES];
    int64_t used[RANKS]; /* elements of a rank's array */
};

static void add_box(struct list *l, int axes, const int64_t *lo, const int64_t *len)
{
    memcpy(l->lo + l->b.n * axes, lo, (size_t)axes * sizeof *lo);
    memcpy(l->len + l->b.n * axes, len, (size_t)axes * sizeof *len);
    l->b.n++;
}

/* Cuts the tensor, and what that gives, at drawn places; then boxes may lie anywhere, too. */
static void draw_boxes(uint64_t *seed, int axes, const int64_t *shape, bool apart, struct list *l)
{
    int64_t zero[AXES] = {0};
    *l = (struct list){.b = {sizeof l->b, 0, l->rank, l->lo, l->len, l->strides, l->offset}};
    add_box(l, axes, zero, shape);
    for (int cuts = (int)random_below(seed, BOXES / 2); cuts > 0; cuts--) {
        int64_t i = random_below(seed, l->b.n), k = random_below(seed, axes), *n = &l->len[i * axes + k];
        int64_t at = random_below(seed, *n + 1), lo[AXES], len[AXES];
        memcpy(lo, l->lo + i * axes, sizeof lo);
        memcpy(len, l->len + i * axes, sizeof len);
        len[k] -= at;
        lo[k] += at;
        *n = at;
        add_box(l, axes, lo, len);
    }
    for (int more = (int)random_below(seed, 8); more > 0; more--) {
        int64_t i = random_below(seed, l->b.n), lo[AXES], len[AXES];
        for (int k = 0; k < axes; k++) {
            lo[k] = apart ? l->lo[i * axes + k] : random_below(seed, shape[k]);
            len[k] = apart ? l->len[i * axes + k] : random_below(seed, shape[k] - lo[k] + 1);
        }
        add_box(l, axes, lo, len);
    }
    if (random_below(seed, 2))
        l->b.n = 1 + random_below(seed, l->b.n); /* not all of the tensor */
}

/* On which ranks, and how they lie there: axes in any order, some backwards. */
static void place_boxes(uint64_t *seed, int axes, int ranks, struct list *l)
{
    bool dense = random_below(seed, 3) == 0;
    for (int64_t i = 0; i < l->b.n; i++) {
        int64_t r = random_below(seed, ranks), st = 1, *s = l->strides + i * axes;
        int done = 0;
        l->rank[i] = r;
        l->offset[i] = l->used[r];
        for (int j = 0; j < axes; j++) {
            int k = axes - 1;
            while (done >> k & 1 || (!dense && random_below(seed, 2)))
                k = k ? k - 1 : axes - 1;
            done |= 1 << k;
            s[k] = st;
            st *= l->len[i * axes + k];
        }
        for (int k = 0; k < axes && !dense && st; k++)
            if (random_below(seed, 3) == 0) {
                l->offset[i] += s[k] * (l->len[i * axes + k] - 1);
                s[k] = -s[k];
            }
        l->used[r] += st;
    }
    if (dense) {
        l->b.strides = NULL;
        l->b.offset = NULL;
    }
}

/* Calls each(arg, element of the tensor, rank, its address there). */
static void for_all(const struct list *l, int axes, const int64_t *shape,
                    void (*each)(void *arg, int64_t element, int64_t rank, int64_t at), void *arg)
{
    for (int64_t i = 0; i < l->b.n; i++) {
        int64_t numel = 1;
        for (int k = 0; k < axes; k++)
            numel *= l->len[i * axes + k];
        for (int64_t j = 0; j < numel; j++) {
            int64_t left = j, element = 0, at = l->offset[i], x[AXES];
            for (int k = axes - 1; k >= 0; left /= l->len[i * axes + k--])
                x[k] = left % l->len[i * axes + k];
            for (int k = 0; k < axes; k++) {
                element = element * shape[k] + l->lo[i * axes + k] + x[k];
                at += x[k] * l->strides[i * axes + k];
            }
            each(arg, element, l->rank[i], at);
        }
    }
}

/* ---- one case */

struct one {
    int esize;
    unsigned char *src[RANKS], *dst[RANKS], there[NUMEL], *whole;
    int64_t checked, wrong;
};

static void fill_in(void *arg, int64_t element, int64_t rank, int64_t at)
{
    struct one *o = arg;
    o->there[element] = 1;
    memcpy(o->src[rank] + at * o->esize, o->whole + element * o->esize, (size_t)o->esize);
}

static void compare(void *arg, int64_t element, int64_t rank, int64_t at)
{
    struct one *o = arg;
    for (int i = 0; i < o->esize; i++)
        o->wrong +=
            o->dst[rank][at * o->esize + i] != (o->there[element] ? o->whole[element * o->esize + i] : 0xa5);
    o->checked++;
}

static void run_all(struct one *o, int ranks, struct xt_shard **p)
{
    for (int r = 0; r < ranks; r++)
        ck_assert_int_eq(xt_shard_start(p[r], o->dst[r], (const void *[]){o->src[r]}), XT_OK);
    for (int round = 0, going = 1; going; round++) {
        ck_assert_int_lt(round, 100000);
        going = 0;
        for (int r = 0; r < ranks; r++) {
            int done;
            ck_assert_int_eq(xt_shard_test(p[r], &done), XT_OK);
            going |= !done;
        }
    }
}

static int64_t try_one(uint64_t seed)
{
    static const xt_dtype dtypes[] = {XT_U8, XT_F16, XT_F32, XT_F64, XT_C128};
    static struct one o;
    uint64_t s = seed * 7919;
    int axes = 1 + (int)random_below(&s, AXES), ranks = 1 + (int)random_below(&s, RANKS);
    int64_t shape[AXES], most[] = {16, 48, 1 << 20}, message = most[random_below(&s, 3)];
    struct list from, to;
    struct xt_shard *p[RANKS];
    for (int k = 0; k < axes; k++)
        shape[k] = 1 + random_below(&s, axes == 1 ? 1000 : axes == 2 ? 60 : 15);
    draw_boxes(&s, axes, shape, true, &from);
    draw_boxes(&s, axes, shape, false, &to);
    place_boxes(&s, axes, ranks, &from);
    place_boxes(&s, axes, ranks, &to);
    struct xti_boxed x = {dtypes[random_below(&s, 5)], axes, shape, &from.b, &to.b, ranks};
    struct mailbox *m = mailbox_new(ranks, seed);
    unsigned char shows[RANKS];
    for (int i = 0; i < RANKS; i++)
        shows[i] = (unsigned char)random_below(&s, 2);
    if (ranks > 1 && random_below(&s, 2))
        mailbox_near(m, 0, 1 + (int)random_below(&s, ranks), shows);
    o = (struct one){.esize = (int)xt_dtype_bytes(x.dtype)};
    o.whole = random_bytes((int64_t)NUMEL * o.esize, seed);
    for (int r = 0; r < ranks; r++) {
        struct xt_end_info e = {.size = sizeof e};
        o.src[r] = calloc((size_t)from.used[r] + 4, 16);
        o.dst[r] = malloc((size_t)to.used[r] * (size_t)o.esize + 64);
        memset(o.dst[r], 0xa5, (size_t)to.used[r] * (size_t)o.esize + 64);
        ck_assert_msg(!xti_shard_boxes(&x, r, mailbox_end(m, r), message, &p[r]), "seed %llu: %s",
                      (unsigned long long)seed, xt_last_error()->message);
        ck_assert_int_eq(xt_shard_shape(p[r], -1, r, &e), XT_OK);
        ck_assert_int_eq(e.to_bytes, to.used[r] * o.esize);
    }
    for_all(&from, axes, shape, fill_in, &o);
    for (int run = 0; run < 2; run++)
        run_all(&o, ranks, p);
    for_all(&to, axes, shape, compare, &o);
    ck_assert_msg(!o.wrong && !mailbox_wrong(m), "seed %llu: %lld wrong: %s", (unsigned long long)seed,
                  (long long)o.wrong, mailbox_wrong(m) ? mailbox_wrong(m) : "");
    ck_assert_msg(!mailbox_free(m), "seed %llu: messages are left", (unsigned long long)seed);
    for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < 64; i++)
            ck_assert_int_eq(o.dst[r][to.used[r] * o.esize + i], 0xa5);
        free(o.src[r]);
        free(o.dst[r]);
        xt_shard_free(p[r]);
    }
    free(o.whole);
    return o.checked;
}

START_TEST(boxes_get_their_elements_wherever_they_are)
{
    int64_t n = 0, cases = test_full() ? 100000 : 2000;
    for (int64_t seed = 1; seed <= cases; seed++)
        n += try_one((uint64_t)seed);
    printf("boxes: %lld cases, %lld elements compared\n", (long long)cases, (long long)n);
    ck_assert_int_gt(n, 100 * cases);
}
END_TEST

/* Of single elements, side by side. */
START_TEST(boxes_lie_anywhere_in_the_longest_tensor)
{
    enum { N = 32 };
    const int64_t shape = INT64_MAX;
    int64_t rank[N] = {0}, lo[N], len[N];
    unsigned char x[N], y[N];
    const struct xt_boxes from = {sizeof from, N, rank, lo, len, NULL, NULL};
    struct xt_shard *p;
    for (int i = 0; i < N; i++) {
        lo[i] = shape - 1 - i * 7 % N;
        len[i] = 1;
        x[i] = (unsigned char)(i + 1);
    }
    ck_assert_int_eq(xt_shard_boxes(XT_U8, 1, &shape, &from, &from, 1, 0, NULL, &p), XT_OK);
    ck_assert_int_eq(xt_shard_run(p, y, (const void *[]){x}), XT_OK);
    ck_assert(!memcmp(x, y, N));
    xt_shard_free(p);
}
END_TEST

/* ---- what is refused */

START_TEST(boxes_that_are_wrong_are_told_by_number)
{
    static const int64_t shape[] = {8, 8}, huge[] = {8, (int64_t)1 << 58}, rank[] = {0, 1}, beyond[] = {0, 2},
                         lo[] = {0, 0, 4, 0}, low[] = {0, 0, 3, 0}, len[] = {4, 8, 4, 8},
                         high[] = {4, 8, 5, 8}, st[] = {8, 1, 8, 1}, none[] = {0, 1, 8, 1}, off[] = {0, 0},
                         minus[] = {-1, 0};
    const struct xt_boxes good = {sizeof good, 2, rank, lo, len, NULL, NULL};
    const struct {
        struct xt_boxes from, to;
        xt_status status;
        const char *message;
    } rows[] = {
        {{sizeof good, 2, beyond, lo, len, NULL, NULL},
         good,
         XT_ERANGE,
         "from: box 1: rank 2 is not in [0,2)"},
        {good,
         {sizeof good, 2, rank, lo, high, NULL, NULL},
         XT_ERANGE,
         "to: box 1, axis 0: 5 elements from 4 on, of 8"},
        {{sizeof good, 2, rank, low, len, NULL, NULL},
         good,
         XT_EINVAL,
         "from: boxes 0 and 1 have elements in common, and are not the same"},
        {good,
         {sizeof good, 2, rank, lo, len, none, off},
         XT_EINVAL,
         "to: box 0 does not lie in a rank's array"},
        {{sizeof good, 2, rank, lo, len, st, minus},
         good,
         XT_EINVAL,
         "from: box 0 does not lie in a rank's array"},
        {{sizeof good, 2, rank, lo, len, st, NULL}, good, XT_EINVAL, NULL},
        {{sizeof good, 2, rank, NULL, len, NULL, NULL}, good, XT_EINVAL, NULL},
        {{0, 2, rank, lo, len, NULL, NULL}, good, XT_EINVAL, NULL},
    };
    struct xt_shard *p;
    struct xt_end_info e = {.size = sizeof e};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        p = (struct xt_shard *)&p;
        xt_status s = xt_shard_boxes(XT_F32, 2, shape, &rows[i].from, &rows[i].to, 2, 0, NULL, &p);
        ck_assert_msg(s == rows[i].status && !p, "%zu: %s", i, xt_last_error()->message);
        ck_assert_msg(!rows[i].message || !strcmp(xt_last_error()->message, rows[i].message), "%zu: %s", i,
                      xt_last_error()->message);
    }
    ck_assert_int_eq(xt_shard_boxes(XT_F32, 0, shape, &good, &good, 2, 0, NULL, &p), XT_EINVAL);
    ck_assert_int_eq(xt_shard_boxes(XT_F32, 2, huge, &good, &good, 2, 0, NULL, &p), XT_EOVERFLOW);
    ck_assert_int_eq(xt_shard_boxes(XT_F32, 33, shape, &good, &good, 2, 0, NULL, &p), XT_ERANK);
    ck_assert_int_eq(xt_shard_boxes(XT_F32, 2, shape, &good, &good, 2, 2, NULL, &p), XT_ERANGE);
    ck_assert_int_eq(xt_shard_boxes(XT_F32, 2, shape, &good, &good, 2, 1, NULL, &p), XT_OK);
    ck_assert_int_eq(xt_shard_shape(p, 0, 0, &e), XT_EUNSUPPORTED);
    ck_assert_int_eq(xt_shard_shape(p, 0, -1, &e), XT_OK);
    ck_assert_int_eq(xt_shard_index(p, 0, 1, 0, 0), -1);
    xt_shard_free(p);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    static const int64_t shape[] = {9}, rank[] = {0, 1, 0}, lo[] = {0, 4, 4}, len[] = {4, 5, 5};
    const struct xt_boxes from = {sizeof from, 3, rank, lo, len, NULL, NULL},
                          to = {sizeof to, 2, rank + 1, lo, len, NULL, NULL};
    for (int n = 1, ok = 0; !ok; n++) {
        struct xt_shard *p;
        int64_t live = xti_live_allocations();
        xti_fail_alloc(n, 0);
        xt_status s = xt_shard_boxes(XT_F32, 1, shape, &from, &to, 2, 1, NULL, &p);
        xti_fail_alloc(0, 0);
        ck_assert_msg(s == XT_OK || s == XT_ENOMEM, "%d: %s", n, xt_last_error()->message);
        ok = s == XT_OK;
        xt_shard_free(p);
        ck_assert_int_eq(xti_live_allocations(), live);
        ck_assert_int_lt(n, 200);
    }
}
END_TEST

/* ---- many */

enum { SIDE = 128, MANY = SIDE * SIDE, EXTENT = 1 << 16 };

/* Rows of unlike heights, each cut at places of its own: no cut goes through. first, ranks: who has them. */
static void irregular(uint64_t *seed, int axis, int64_t ranks, struct xt_boxes *b)
{
    int64_t *rank = calloc(5 * MANY, sizeof *rank), *lo = rank + MANY, *len = lo + 2 * MANY, y = 0;
    *b = (struct xt_boxes){sizeof *b, MANY, rank, lo, len, NULL, NULL};
    for (int i = 0; i < SIDE; i++) {
        int64_t end = i == SIDE - 1 ? EXTENT : y + 1 + random_below(seed, 2 * EXTENT / SIDE - 1), x = 0;
        end = end > EXTENT - (SIDE - i) ? EXTENT - (SIDE - 1 - i) : end;
        for (int j = 0; j < SIDE; j++) {
            int64_t n = i * SIDE + j, to = x + 1 + random_below(seed, 2 * EXTENT / SIDE - 1);
            to = to > EXTENT - (SIDE - j) ? EXTENT - (SIDE - 1 - j) : to;
            to = j == SIDE - 1 ? EXTENT : to;
            rank[n] = (int64_t)random_below(seed, ranks);
            lo[2 * n + axis] = y;
            len[2 * n + axis] = end - y;
            lo[2 * n + 1 - axis] = x;
            len[2 * n + 1 - axis] = to - x;
            x = to;
        }
        y = end;
    }
}

START_TEST(sixteen_thousand_boxes_each_side_are_planned_at_once)
{
    static const int64_t shape[] = {EXTENT, EXTENT}, ranks[] = {1, 8, 64, 1024};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        struct xt_boxes from, to;
        struct xt_shard_info n = {.size = sizeof n};
        uint64_t seed = 5;
        double best = 1e9;
        irregular(&seed, 0, ranks[i], &from);
        irregular(&seed, 1, ranks[i], &to);
        for (int k = 0; k < 5; k++) {
            struct timespec a, b;
            struct xt_shard *p;
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
            ck_assert_int_eq(xt_shard_boxes(XT_F32, 2, shape, &from, &to, ranks[i], 0, NULL, &p), XT_OK);
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
            double t = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
            best = t < best ? t : best;
            ck_assert_int_eq(xt_shard_get(p, &n), XT_OK);
            xt_shard_free(p);
        }
        printf("boxes: %.1f ms: %d x %d boxes on %lld ranks, %lld messages received, %lld kernels\n",
               best * 1e3, MANY, MANY, (long long)ranks[i], (long long)n.receive_messages,
               (long long)n.kernels);
        int64_t here = 0;
        for (int64_t k = 0; k < to.n; k++)
            here += to.rank[k] ? 0 : to.len[2 * k] * to.len[2 * k + 1];
        ck_assert_int_eq(n.own_bytes + n.receive_bytes, 4 * here);
        ck_assert_msg(best < 0.5, "%.0f ms of a processor",
                      best * 1e3); /* a list against a list takes longer */
        free((void *)from.rank);
        free((void *)to.rank);
    }
}
END_TEST

/* One is made longer by an element: it meets the next of its row, and no other. */
START_TEST(two_boxes_of_sixteen_thousand_that_meet_are_found)
{
    static const int64_t shape[] = {EXTENT, EXTENT};
    uint64_t seed = 11;
    struct xt_boxes from;
    irregular(&seed, 0, 4, &from);
    int64_t *len = (int64_t *)from.len;
    for (int k = 0; k < 100; k++) {
        int64_t n = random_below(&seed, MANY);
        struct xt_shard *p;
        char want[96];
        if (n % SIDE == SIDE - 1)
            continue;
        snprintf(want, sizeof want, "from: boxes %lld and %lld have elements in common, and are not the same",
                 (long long)n, (long long)n + 1);
        len[2 * n + 1]++;
        ck_assert_int_eq(xt_shard_boxes(XT_F32, 2, shape, &from, &from, 4, 1, NULL, &p), XT_EINVAL);
        ck_assert_str_eq(xt_last_error()->message, want);
        len[2 * n + 1]--;
    }
    free((void *)from.rank);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("boxes");
    TCase *t = tcase_create("boxes");
    tcase_set_timeout(t, 0);
    tcase_add_test(t, boxes_get_their_elements_wherever_they_are);
    tcase_add_test(t, boxes_lie_anywhere_in_the_longest_tensor);
    tcase_add_test(t, boxes_that_are_wrong_are_told_by_number);
    tcase_add_test(t, every_allocation_may_fail);
    tcase_add_test(t, sixteen_thousand_boxes_each_side_are_planned_at_once);
    tcase_add_test(t, two_boxes_of_sixteen_thousand_that_meet_are_found);
    suite_add_tcase(s, t);
    return run_suite(s);
}
