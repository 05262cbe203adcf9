/* test_memo.c: the memory cache builds a key once however many ask, forgets failures, drops the least
 * recently used, and survives a fork. */
#include "cache/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os.h"
#include "tests/support/child.h"
#include "tests/support/suite.h"

struct thing {
    atomic_int refs;
    int key;
};
static atomic_int live, builds;

static void *ref_thing(void *p)
{
    struct thing *t = p;
    atomic_fetch_add(&t->refs, 1);
    return t;
}

static void unref_thing(void *p)
{
    struct thing *t = p;
    if (atomic_fetch_sub(&t->refs, 1) == 1) {
        xti_free(t);
        atomic_fetch_sub(&live, 1);
    }
}

static const void *key_of_thing(const void *p) { return &((const struct thing *)p)->key; }

static const struct xti_memo_ops ops = {ref_thing, unref_thing, NULL};
static const struct xti_memo_ops keyed_ops = {ref_thing, unref_thing, key_of_thing};

static xt_status build_thing(void *arg, void **object, struct xti_err *err)
{
    struct thing *t = xti_alloc(sizeof *t);
    atomic_fetch_add(&builds, 1);
    if (!t)
        return xti_fail(err, XT_ENOMEM, "no thing");
    atomic_store(&t->refs, 1);
    t->key = *(int *)arg;
    atomic_fetch_add(&live, 1);
    *object = t;
    return XT_OK;
}

static xt_status build_slowly(void *arg, void **object, struct xti_err *err)
{
    usleep(20000);
    return build_thing(arg, object, err);
}

static xt_status build_badly(void *arg, void **object, struct xti_err *err)
{
    usleep(100000);
    return xti_fail(err, XT_ECOMPILE, "no such luck %d, build %d", *(int *)arg, atomic_fetch_add(&builds, 1));
}

static struct xti_memo *new_memo(size_t max)
{
    struct xti_memo *m;
    ck_assert_int_eq(xti_memo_new(&ops, max, &m, NULL), XT_OK);
    return m;
}

/* 1 hit, 0 built; gives the reference back. */
static int ask(struct xti_memo *m, int key)
{
    void *out = NULL;
    bool hit;
    ck_assert_int_eq(xti_memo_get(m, &key, sizeof key, build_thing, &key, &out, &hit, NULL), XT_OK);
    ck_assert_int_eq(((struct thing *)out)->key, key);
    unref_thing(out);
    return hit;
}

static void end_memo(struct xti_memo *m)
{
    xti_memo_free(m);
    ck_assert_int_eq(live, 0);
    ck_assert_int_eq(xti_live_allocations(), 0);
}

START_TEST(a_key_is_built_once_and_keys_are_compared_in_full)
{
    struct xti_memo *m = new_memo(100);
    static unsigned char key[300];
    void *a, *b;
    for (int n = 0; n < 300; n += 7) { /* every length is another key */
        ck_assert_int_eq(xti_memo_get(m, key, (size_t)n, build_thing, &n, &a, NULL, NULL), XT_OK);
        ck_assert_int_eq(((struct thing *)a)->key, n);
        key[n / 2] ^= 1;
        int other = n + 1000;
        ck_assert_int_eq(xti_memo_get(m, key, (size_t)n, build_thing, &other, &b, NULL, NULL), XT_OK);
        ck_assert_int_eq(((struct thing *)b)->key, n ? n + 1000 : 0);
        key[n / 2] ^= 1;
        unref_thing(a);
        unref_thing(b);
    }
    ck_assert_int_eq(builds, 43 * 2 - 1);
    ck_assert_int_eq(live, 43 * 2 - 1);
    end_memo(m);
}
END_TEST

static atomic_bool seen;

static xt_status build_when_seen(void *arg, void **object, struct xti_err *err)
{
    while (!atomic_load(&seen))
        usleep(100);
    return build_thing(arg, object, err);
}

static void *build_five(void *arg)
{
    void *out = NULL;
    int key = 5;
    xti_memo_get(arg, &key, sizeof key, build_when_seen, &key, &out, NULL, NULL);
    return out;
}

START_TEST(who_does_not_build_is_told_what_is_there_at_once)
{
    struct xti_memo *m = new_memo(10);
    pthread_t thread;
    void *out, *built;
    bool building = true;
    int key = 5;
    ck_assert_int_eq(xti_memo_get(m, &key, sizeof key, NULL, NULL, &out, &building, NULL), XT_OK);
    ck_assert(!out && !building);
    ck_assert_int_eq(pthread_create(&thread, NULL, build_five, m), 0);
    while (!building && !out)
        ck_assert_int_eq(xti_memo_get(m, &key, sizeof key, NULL, NULL, &out, &building, NULL), XT_OK);
    ck_assert(building && !out);
    atomic_store(&seen, true);
    pthread_join(thread, &built);
    ck_assert_int_eq(xti_memo_get(m, &key, sizeof key, NULL, NULL, &out, &building, NULL), XT_OK);
    ck_assert_ptr_eq(out, built);
    unref_thing(out);
    unref_thing(built);
    end_memo(m);
}
END_TEST

START_TEST(a_key_may_be_kept_by_its_object)
{
    struct xti_memo *m;
    int bad = 50;
    void *out;
    ck_assert_int_eq(xti_memo_new(&keyed_ops, 3, &m, NULL), XT_OK);
    for (int i = 0; i < 9; i++) { /* the key that ask hands over is gone when it returns */
        ck_assert_int_eq(ask(m, i), 0);
        ck_assert_int_eq(ask(m, i ? i - 1 : 0), 1);
        ck_assert_int_eq(ask(m, i), 1);
    }
    ck_assert_int_eq(ask(m, 0), 0);
    ck_assert_int_eq(xti_memo_get(m, &bad, sizeof bad, build_badly, &bad, &out, NULL, NULL), XT_ECOMPILE);
    ck_assert_int_eq(ask(m, bad), 0);
    end_memo(m);
}
END_TEST

START_TEST(the_least_recently_used_object_is_dropped)
{
    struct xti_memo *m = new_memo(3);
    for (int k = 0; k < 3; k++)
        ck_assert_int_eq(ask(m, k), 0);
    ck_assert_int_eq(ask(m, 0), 1);
    ck_assert_int_eq(ask(m, 3), 0); /* 1 goes */
    ck_assert_int_eq(live, 3);
    ck_assert_int_eq(ask(m, 0), 1);
    ck_assert_int_eq(ask(m, 2), 1);
    ck_assert_int_eq(ask(m, 3), 1);
    ck_assert_int_eq(ask(m, 1), 0); /* 0 goes */
    ck_assert_int_eq(ask(m, 0), 0);
    end_memo(m);
    m = new_memo(0); /* reads as 1 */
    ck_assert_int_eq(ask(m, 1), 0);
    ck_assert_int_eq(ask(m, 1), 1);
    ck_assert_int_eq(ask(m, 2), 0);
    ck_assert_int_eq(live, 1);
    end_memo(m);
}
END_TEST

START_TEST(an_object_in_use_outlives_its_entry_and_the_memo)
{
    struct xti_memo *m = new_memo(1);
    int k = 7;
    void *mine;
    ck_assert_int_eq(xti_memo_get(m, &k, sizeof k, build_thing, &k, &mine, NULL, NULL), XT_OK);
    ck_assert_int_eq(ask(m, 8), 0);
    ck_assert_int_eq(live, 2);
    xti_memo_free(m);
    ck_assert_int_eq(live, 1);
    ck_assert_int_eq(((struct thing *)mine)->key, 7);
    unref_thing(mine);
    ck_assert_int_eq(xti_live_allocations(), 0);
}
END_TEST

START_TEST(the_order_of_use_agrees_with_a_model)
{
    struct xti_memo *m = new_memo(20);
    int model[20], n = 0;
    uint64_t r = 42;
    for (int step = 0; step < 20000; step++) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        int key = (int)((r >> 33) % ((r >> 60) % 2 ? 15 : 60)), at = 0;
        while (at < n && model[at] != key)
            at++;
        bool known = at < n;
        ck_assert_msg(ask(m, key) == known, "step %d, key %d", step, key);
        if (!known)
            at = n < 20 ? n++ : 19;
        memmove(model + 1, model, (size_t)at * sizeof *model);
        model[0] = key;
        ck_assert_int_eq(live, n);
    }
    end_memo(m);
}
END_TEST

struct crowd {
    struct xti_memo *m;
    pthread_barrier_t gate;
    int seed, n_keys, rounds;
    atomic_int hits, next_seed;
    bool keeps; /* what was built stays: a key has one object */
    void *object[64];
};

static void *ask_all(void *arg)
{
    struct crowd *c = arg;
    int seed = atomic_fetch_add(&c->next_seed, 1);
    pthread_barrier_wait(&c->gate);
    for (int i = 0; i < c->n_keys * c->rounds; i++) {
        int key = (i * 7 + (c->keeps ? 0 : seed)) % c->n_keys;
        void *out, *none = NULL;
        bool hit;
        ck_assert_int_eq(xti_memo_get(c->m, &key, sizeof key, c->keeps ? build_slowly : build_thing, &key,
                                      &out, &hit, NULL),
                         XT_OK);
        ck_assert_int_eq(((struct thing *)out)->key, key);
        if (c->keeps && !__atomic_compare_exchange_n(&c->object[key], &none, out, false, __ATOMIC_SEQ_CST,
                                                     __ATOMIC_SEQ_CST))
            ck_assert_ptr_eq(none, out);
        atomic_fetch_add(&c->hits, hit);
        unref_thing(out);
    }
    return NULL;
}

static void run_crowd(struct crowd *c)
{
    pthread_t t[8];
    pthread_barrier_init(&c->gate, NULL, 8);
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, ask_all, c);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    pthread_barrier_destroy(&c->gate);
}

START_TEST(eight_threads_build_each_of_twenty_keys_once)
{
    struct crowd c = {.m = new_memo(64), .n_keys = 20, .rounds = 3, .keeps = true};
    run_crowd(&c);
    ck_assert_int_eq(builds, 20);
    ck_assert_int_eq(c.hits, 8 * 60 - 20);
    ck_assert_int_eq(live, 20);
    end_memo(c.m);
}
END_TEST

START_TEST(eight_threads_that_evict_each_other_get_right_objects)
{
    struct crowd c = {.m = new_memo(5), .n_keys = 12, .rounds = 300};
    run_crowd(&c);
    ck_assert_int_eq(builds + c.hits, 8 * 12 * 300);
    ck_assert_int_eq(live, 5);
    end_memo(c.m);
}
END_TEST

struct failure {
    struct xti_memo *m;
    pthread_barrier_t gate;
    struct xti_err err[8];
    atomic_int next;
};

static void *ask_in_vain(void *arg)
{
    struct failure *f = arg;
    int me = atomic_fetch_add(&f->next, 1), key = 5;
    void *out = f;
    pthread_barrier_wait(&f->gate);
    ck_assert_int_eq(xti_memo_get(f->m, &key, sizeof key, build_badly, &key, &out, NULL, &f->err[me]),
                     XT_ECOMPILE);
    ck_assert_ptr_null(out);
    return NULL;
}

START_TEST(a_failed_build_fails_everybody_who_waited_and_is_tried_again)
{
    struct failure f = {.m = new_memo(4)};
    pthread_t t[8];
    pthread_barrier_init(&f.gate, NULL, 8);
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, ask_in_vain, &f);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    pthread_barrier_destroy(&f.gate);
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(f.err[i].e.status, XT_ECOMPILE);
        ck_assert_ptr_nonnull(strstr(f.err[i].e.message, "no such luck 5, build "));
    }
    ck_assert_int_le(builds, 2); /* 1 unless a thread slept through the first one's 100 ms */
    ck_assert_int_eq(ask(f.m, 5), 0);
    ck_assert_int_eq(ask(f.m, 5), 1);
    end_memo(f.m);
}
END_TEST

static xt_status build_nothing(void *arg, void **object, struct xti_err *err) { return XT_OK; }

static xt_status build_from_another(void *arg, void **object, struct xti_err *err)
{
    int other = 1;
    void *out;
    xt_status s = xti_memo_get(arg, &other, sizeof other, build_thing, &other, &out, NULL, err);
    *object = out;
    return s;
}

static xt_status build_from_itself(void *arg, void **object, struct xti_err *err)
{
    int self = 9;
    return xti_memo_get(arg, &self, sizeof self, build_thing, &self, object, NULL, err);
}

START_TEST(a_build_may_ask_for_another_key_but_not_for_its_own)
{
    struct xti_memo *m = new_memo(4);
    struct xti_err err = {0};
    int key = 2;
    void *out;
    ck_assert_int_eq(xti_memo_get(m, &key, sizeof key, build_from_another, m, &out, NULL, &err), XT_OK);
    ck_assert_int_eq(((struct thing *)out)->key, 1);
    unref_thing(out);
    key = 9;
    ck_assert_int_eq(xti_memo_get(m, &key, sizeof key, build_from_itself, m, &out, NULL, &err), XT_EINTERNAL);
    ck_assert_ptr_nonnull(strstr(err.e.message, "its own key"));
    xti_err_clear(&err);
    ck_assert_int_eq(xti_memo_get(m, &key, sizeof key, build_nothing, NULL, &out, NULL, &err), XT_EINTERNAL);
    ck_assert_int_eq(ask(m, 9), 0);
    end_memo(m);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    int failed = 0;
    for (int n = 1; n <= 8; n++) {
        struct xti_memo *m = NULL;
        struct xti_err err = {0};
        int key = 3;
        void *out = NULL;
        bool hit;
        xti_fail_alloc(n, 0);
        xt_status s = xti_memo_new(&ops, 4, &m, &err);
        if (!s)
            s = xti_memo_get(m, &key, sizeof key, build_thing, &key, &out, &hit, &err);
        xti_fail_alloc(0, 0);
        failed += s != XT_OK;
        ck_assert(s == XT_OK || (s == XT_ENOMEM && err.e.status == XT_ENOMEM && !out));
        if (out)
            unref_thing(out);
        if (m) {
            ask(m, 3);
            ck_assert_int_eq(ask(m, 3), 1);
        }
        xti_memo_free(m);
        ck_assert_int_eq(live, 0);
        ck_assert_int_eq(xti_live_allocations(), 0);
    }
    ck_assert_int_eq(failed, 5); /* memo, table, entry, flight, thing */
}
END_TEST

static atomic_int stop;

static void *ask_for_ever(void *arg)
{
    int slow = 0;
    for (int i = 0; !atomic_load(&stop); i++) {
        int key = i % 40;
        void *out;
        bool is_slow = i % 200 == 0;
        key += is_slow ? 1000 + slow++ % 3 : 0;
        if (!xti_memo_get(arg, &key, sizeof key, is_slow ? build_slowly : build_thing, &key, &out, NULL,
                          NULL))
            unref_thing(out);
    }
    return NULL;
}

START_TEST(a_child_forked_at_any_moment_can_ask_for_every_key)
{
    struct xti_memo *m = new_memo(20);
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, ask_for_ever, m);
    for (int i = 0; i < 60; i++) {
        usleep(700);
        pid_t pid = fork_child();
        if (pid == 0) {
            for (int key = 0; key < 1003; key += key == 39 ? 961 : 1) {
                void *out = NULL;
                if (xti_memo_get(m, &key, sizeof key, build_thing, &key, &out, NULL, NULL) ||
                    ((struct thing *)out)->key != key)
                    _exit(1);
                unref_thing(out);
            }
            xti_memo_free(m);
            _exit(0);
        }
        int st = end_of(pid);
        ck_assert_msg(st == 0, "fork %d: status %x", i, st);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    end_memo(m);
}
END_TEST

/* The builder itself forks: the parent and the child both go on with their build. */
static xt_status build_and_fork(void *arg, void **object, struct xti_err *err)
{
    int *pid_then_key = arg;
    pid_then_key[0] = fork_child();
    return build_thing(&pid_then_key[1], object, err);
}

START_TEST(a_build_that_forks_ends_in_both_processes)
{
    struct xti_memo *m = new_memo(4);
    int arg[2] = {0, 6};
    void *out;
    xt_status s = xti_memo_get(m, &arg[1], sizeof arg[1], build_and_fork, arg, &out, NULL, NULL);
    if (arg[0] == 0) {
        bool hit = false;
        void *again = NULL;
        xt_status s2 = xti_memo_get(m, &arg[1], sizeof arg[1], build_badly, &arg[1], &again, &hit, NULL);
        bool right = !s && !s2 && hit && again == out;
        if (right) {
            unref_thing(out);
            unref_thing(again);
        }
        xti_memo_free(m);
        _exit(!right || xti_live_allocations() != 0);
    }
    ck_assert_int_eq(end_of(arg[0]), 0);
    ck_assert_int_eq(s, XT_OK);
    ck_assert_int_eq(ask(m, 6), 1);
    unref_thing(out);
    end_memo(m);
}
END_TEST

START_TEST(time_of_a_hit)
{
    struct xti_memo *m = new_memo(1000);
    static const size_t sizes[] = {16, 64, 256, 1024};
    for (int i = 0; i < 4; i++) {
        unsigned char key[1024] = {(unsigned char)i};
        void *out;
        int64_t t = xti_now_ns();
        for (int r = 0; r < 200000; r++) /* no assertion here: one takes a microsecond */
            if (xti_memo_get(m, key, sizes[i], build_thing, &i, &out, NULL, NULL) == XT_OK)
                atomic_fetch_sub(&((struct thing *)out)->refs, 1);
        printf("memo: key of %zu bytes: hit %.0f ns\n", sizes[i], (double)(xti_now_ns() - t) / 200000);
    }
    ck_assert_int_eq(builds, 4);
    end_memo(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memo");
    TCase *c = tcase_create("memo");
    tcase_set_timeout(c, 600);
    tcase_add_test(c, a_key_is_built_once_and_keys_are_compared_in_full);
    tcase_add_test(c, a_key_may_be_kept_by_its_object);
    tcase_add_test(c, the_least_recently_used_object_is_dropped);
    tcase_add_test(c, an_object_in_use_outlives_its_entry_and_the_memo);
    tcase_add_test(c, the_order_of_use_agrees_with_a_model);
    tcase_add_test(c, who_does_not_build_is_told_what_is_there_at_once);
    tcase_add_test(c, eight_threads_build_each_of_twenty_keys_once);
    tcase_add_test(c, eight_threads_that_evict_each_other_get_right_objects);
    tcase_add_test(c, a_failed_build_fails_everybody_who_waited_and_is_tried_again);
    tcase_add_test(c, a_build_may_ask_for_another_key_but_not_for_its_own);
    tcase_add_test(c, each_allocation_may_fail);
    tcase_add_test(c, a_child_forked_at_any_moment_can_ask_for_every_key);
    tcase_add_test(c, a_build_that_forks_ends_in_both_processes);
    tcase_add_test(c, time_of_a_hit);
    suite_add_tcase(s, c);
    return run_suite(s);
}
