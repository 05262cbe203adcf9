/* test_cache_shared.c: a disk cache that many use: it stays within its limits, gives whole entries, and one
 * at a time has the lock of a key. */
#include "cache/cache.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os.h"
#include "cache/entry.h"
#include "tests/support/disk.h"
#include "tests/support/suite.h"

/* -----------------------------------------------------------------------------------------------
 * house-keeping */

START_TEST(stale_temporary_files_are_swept_and_fresh_ones_stay)
{
    char path[256];
    struct xti_disk *d = open_dir(dir);
    put_text(d, "k", "v");
    xti_disk_close(d);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/k1/.tmp-%016d", dir, i);
        write_file(path, "half", 4);
        set_age(path, i < 2 ? 3700 : 60);
    }
    ck_assert_int_eq(count_names("\\.tmp"), 4);
    d = open_dir(dir);
    put_text(d, "k2", "v");
    ck_assert_int_eq(count_names("\\.tmp"), 2);
    ck_assert_int_eq(access(path, F_OK), 0);
    xti_disk_clear(d, NULL, NULL);
    ck_assert_int_eq(count_names("\\.tmp"), 0);
    xti_disk_close(d);
}
END_TEST

/* Does a put look at the whole directory? Then it sweeps an old temporary file. */
static bool put_looks(struct xti_disk *d, const char *key)
{
    char path[256];
    snprintf(path, sizeof path, "%s/k1/.tmp-%016d", dir, 7);
    write_file(path, "half", 4);
    set_age(path, 3700);
    put_text(d, key, content);
    return access(path, F_OK) != 0;
}

/* Each 1/128 of a limit; by entries, and by bytes. */
START_TEST(the_directory_is_looked_at_now_and_then)
{
    struct xti_disk *d = open_dir(dir);
    put_text(d, "0", content);
    int64_t size = stats_of(d).bytes;
    for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
        xti_disk_limits(d, by_bytes ? 3 * 128 * size : (int64_t)1 << 40, by_bytes ? 1 << 20 : 3 * 128);
        while (!put_looks(d, "1")) {
        }
        for (int i = 0; i < 7; i++)
            ck_assert_msg(put_looks(d, "2") == (i % 3 == 2), "by %s, put %d", by_bytes ? "bytes" : "entries",
                          i);
    }
    xti_disk_close(d);
}
END_TEST

START_TEST(the_oldest_entries_go_when_there_are_too_many)
{
    struct xti_disk *d = open_dir(dir);
    char key[16], path[256];
    xti_disk_limits(d, 1 << 20, 50);
    for (int i = 0; i < 50; i++) {
        snprintf(key, sizeof key, "key%d", i);
        put_text(d, key, content);
        set_age(entry_path(key, path), 10000 - 10 * i);
    }
    ck_assert_int_eq(stats_of(d).entries, 50);
    ck_assert_int_eq(get_text(d, "key0", content), 1); /* used: now the newest but one */
    put_text(d, "one more", content);
    ck_assert_int_eq(stats_of(d).entries, 40);
    ck_assert_int_eq(get_text(d, "key0", content), 1);
    ck_assert_int_eq(get_text(d, "one more", content), 1);
    for (int i = 1; i < 50; i++) {
        snprintf(key, sizeof key, "key%d", i);
        ck_assert_msg(get_text(d, key, content) == (i > 11), "%s", key);
    }
    xti_disk_close(d);
}
END_TEST

START_TEST(the_bytes_on_disk_stay_bounded)
{
    struct xti_disk *d = open_dir(dir);
    static char big[5000];
    char key[16];
    memset(big, 'b', sizeof big - 1);
    xti_disk_limits(d, 100000, 1000);
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "key%d", i);
        put_text(d, key, big);
        struct xt_cache_stats s = stats_of(d);
        ck_assert_int_le(s.bytes, 100000);
        ck_assert_int_eq(get_text(d, key, big), 1);
    }
    ck_assert_int_ge(stats_of(d).bytes, 70000);
    xti_disk_limits(d, 4000, 1000);
    put_text(d, "larger than all", big);
    ck_assert_int_eq(get_text(d, "larger than all", big), 0);
    ck_assert_int_eq(stats_of(d).store_failed, 1);
    xti_disk_close(d);
}
END_TEST

/* Down to four fifths and no further, and the entry that was just stored stays whatever the limit is. */
START_TEST(no_more_goes_than_must)
{
    struct xti_disk *d = open_dir(dir);
    char key[16], path[256];
    int64_t size = 0;
    xti_disk_limits(d, 1 << 20, 1000);
    for (int i = 0; i < 6; i++) {
        snprintf(key, sizeof key, "key%d", i);
        put_text(d, key, content);
        set_age(entry_path(key, path), 1000 - 10 * i);
        size = size ? size : stats_of(d).bytes;
        xti_disk_limits(d, 5 * size, 1000);
    }
    ck_assert_int_eq(stats_of(d).entries, 4);
    xti_disk_limits(d, size, 1000);
    put_text(d, "last", content + 3);
    ck_assert_int_eq(stats_of(d).entries, 1);
    ck_assert_int_eq(stats_of(d).evicted, 6);
    ck_assert_int_eq(get_text(d, "last", content + 3), 1);
    xti_disk_close(d);
}
END_TEST

START_TEST(a_hit_marks_its_entry_as_used_once_an_hour)
{
    struct xti_disk *d = open_dir(dir);
    char path[256];
    struct stat st;
    put_text(d, "k", "v");
    static const struct {
        int64_t age;
        bool touched;
    } c[] = {{3700, true}, {1800, false}, {-86400, true}};
    for (int i = 0; i < 3; i++) {
        set_age(entry_path("k", path), c[i].age);
        ck_assert_int_eq(get_text(d, "k", "v"), 1);
        stat(path, &st);
        int64_t age = time(NULL) - st.st_mtim.tv_sec;
        ck_assert_msg((age >= 0 && age < 60) == c[i].touched, "age %lld became %lld", (long long)c[i].age,
                      (long long)age);
    }
    xti_disk_close(d);
}
END_TEST

/* Stored while the clock was wrong, or before it was set back. */
START_TEST(times_of_another_clock_do_no_harm)
{
    enum { DECADE = 315360000 };
    static const int64_t age[] = {10LL * DECADE, 5LL * DECADE, DECADE, -DECADE, -7LL * DECADE};
    enum { AGES = sizeof age / sizeof *age };
    struct xti_disk *d = open_dir(dir);
    char key[16], path[256];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < AGES; i++) {
            snprintf(key, sizeof key, "key%d", i);
            put_text(d, key, content);
            set_age(entry_path(key, path), age[i]);
            ck_assert_int_eq(get_text(d, key, content), 1);
            set_age(path, age[i]);
        }
        ck_assert_int_eq(stats_of(d).entries, AGES);
        xti_disk_limits(d, 1 << 20, AGES);
        put_text(d, "one more", content);
        ck_assert_int_eq(stats_of(d).entries, AGES * 4 / 5);
        for (int i = 0; i < AGES; i++) { /* those of the future first: when they were used is not known */
            snprintf(key, sizeof key, "key%d", i);
            ck_assert_int_eq(get_text(d, key, content), age[i] > 0);
        }
        xti_disk_limits(d, 1 << 20, 1);
        put_text(d, "one more", content);
        ck_assert_int_le(stats_of(d).entries, 2);
        xti_disk_limits(d, 1 << 20, 1000);
        ck_assert(!xti_disk_clear(d, NULL, NULL));
    }
    xti_disk_close(d);
    for (int i = 0; i < AGES; i++) {
        snprintf(path, sizeof path, "%s/k1/.tmp-%016d", dir, i);
        write_file(path, "half", 4);
        set_age(path, age[i]);
    }
    d = open_dir(dir);
    put_text(d, "k", "v");
    ck_assert_int_eq(count_names("\\.tmp"), 0); /* nobody has been writing since then, or will be */
    xti_disk_close(d);
}
END_TEST

/* The clock of the host, which is not the one that stamps files where a server does. */
static int64_t host_ahead;
time_t time(time_t *out)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += host_ahead;
    return out ? *out = t.tv_sec : t.tv_sec;
}

START_TEST(what_is_being_written_stays_whatever_the_hosts_clock_says)
{
    static const int64_t ahead[] = {0, 86400, -86400};
    char lives[256], dead[256];
    snprintf(lives, sizeof lives, "%s/k1/.tmp-%016d", dir, 1);
    snprintf(dead, sizeof dead, "%s/k1/.tmp-%016d", dir, 2);
    for (int i = 0; i < 3; i++) {
        host_ahead = ahead[i];
        struct xti_disk *d = open_dir(dir);
        xti_disk_limits(d, 1 << 20, 3);
        put_text(d, "first", content);
        xti_disk_close(d);
        write_file(lives, "half", 4);
        write_file(dead, "half", 4);
        host_ahead = 0; /* set_age takes this clock for that of files */
        set_age(dead, 7200);
        host_ahead = ahead[i];
        d = open_dir(dir);
        put_text(d, "second", content);
        ck_assert_int_eq(access(lives, F_OK), 0);
        ck_assert_int_ne(access(dead, F_OK), 0);
        ck_assert_int_eq(get_text(d, "first", content) + get_text(d, "second", content), 2);
        xti_disk_close(d);
    }
    host_ahead = 0;
}
END_TEST

START_TEST(no_more_than_8192_entries_are_kept_unless_told_otherwise)
{
    struct xti_disk *d = open_dir(dir);
    char key[16];
    for (int i = 0; i <= 8192; i++) {
        snprintf(key, sizeof key, "key%d", i);
        put_text(d, key, "v");
    }
    struct xt_cache_stats s = stats_of(d);
    ck_assert_msg(s.entries <= 8192 && s.entries >= 6500 && s.evicted == 8193 - s.entries,
                  "%lld entries, %lld evicted", (long long)s.entries, (long long)s.evicted);
    ck_assert_int_eq(get_text(d, key, "v"), 1);
    xti_disk_close(d);
}
END_TEST

/* --------------------------------------------------------------------------------- many at a time */

static void fill_payload(char *out, size_t n, int key)
{
    for (size_t i = 0; i + 1 < n; i++)
        out[i] = (char)('a' + (i * 7 + (size_t)key * 13) % 26);
    out[n - 1] = 0;
}

struct hammer {
    int keys, stores;
    int64_t max_bytes;
};

enum { HAMMERS = 8 };

static int hammer(const struct hammer *h, int me)
{
    struct xti_disk *d = open_dir(dir);
    int bad = 0;
    xti_disk_limits(d, h->max_bytes, 10000);
    for (int i = 0; i < h->stores; i++) {
        char key[16], payload[3000];
        int k = (i * 7 + me * 3) % h->keys;
        snprintf(key, sizeof key, "key%d", k);
        fill_payload(payload, 100 + (size_t)k % 50 * 50, k);
        bad += get_text(d, key, payload) < 0;
        put_text(d, key, payload);
        bad += get_text(d, key, payload) < 0;
    }
    bad += stats_of(d).refused != 0 || stats_of(d).store_failed != 0;
    xti_disk_close(d);
    return bad > 90 ? 90 : bad;
}

static void run_hammers(const struct hammer *h)
{
    pid_t pid[HAMMERS];
    for (int p = 0; p < HAMMERS; p++) {
        pid[p] = fork();
        ck_assert_int_ge(pid[p], 0);
        if (pid[p] == 0)
            _exit(hammer(h, p));
    }
    for (int p = 0; p < HAMMERS; p++) {
        int st;
        waitpid(pid[p], &st, 0);
        ck_assert_msg(st == 0, "process %d: status %x", p, st);
    }
    ck_assert_int_eq(count_names("\\.tmp"), 0);
}

START_TEST(eight_processes_share_fifty_keys)
{
    run_hammers(&(struct hammer){50, 50, 1 << 28});
    struct xti_disk *d = open_dir(dir);
    ck_assert_int_eq(stats_of(d).entries, 50);
    for (int k = 0; k < 50; k++) {
        char key[16], payload[3000];
        snprintf(key, sizeof key, "key%d", k);
        fill_payload(payload, 100 + (size_t)k * 50, k);
        ck_assert_int_eq(get_text(d, key, payload), 1);
    }
    xti_disk_close(d);
}
END_TEST

START_TEST(eight_processes_that_evict_stay_right_and_bounded)
{
    const struct hammer few = {50, 50, 60000}, many = {2000, 2000, 1 << 20}, h = test_full() ? many : few;
    run_hammers(&h);
    struct xti_disk *d = open_dir(dir);
    struct xt_cache_stats s = stats_of(d);
    printf("note: %d processes, %d stores each, at most %lld bytes: %lld\n", HAMMERS, h.stores,
           (long long)h.max_bytes, (long long)s.bytes);
    ck_assert_int_le(s.bytes, test_full() ? h.max_bytes / 10 * 11 : h.max_bytes + HAMMERS * 3000);
    xti_disk_close(d);
}
END_TEST

struct race {
    struct xti_disk *d;
    atomic_int stop, wrong;
};

static void *write_both(void *arg)
{
    struct race *r = arg;
    for (int i = 0; !atomic_load(&r->stop); i++)
        put_text(r->d, "k", i % 2 ? "short" : content);
    return NULL;
}

START_TEST(a_reader_sees_one_writers_bytes_whole)
{
    struct race r = {.d = open_dir(dir)};
    pthread_t t[2];
    put_text(r.d, "k", "short");
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, write_both, &r);
    int hits = 0;
    for (int i = 0; i < 3000; i++) {
        struct xti_blob b;
        if (xti_disk_get(r.d, "k", 1, &b)) {
            bool is_short = b.bytes == 5 && !memcmp(b.data, "short", 5);
            bool is_long = b.bytes == strlen(content) && !memcmp(b.data, content, b.bytes);
            ck_assert(is_short || is_long);
            hits++;
        }
        xti_free(b.data);
    }
    atomic_store(&r.stop, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    ck_assert_int_eq(hits, 3000);
    xti_disk_close(r.d);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------
 * locks */

struct holder {
    struct xti_disk *d;
    int inside, worst;
    atomic_int total;
};

static void *count_inside(void *arg)
{
    struct holder *h = arg;
    for (int i = 0; i < 10; i++) {
        int token = xti_disk_lock(h->d, "k", 1);
        if (token < 0)
            continue;
        __atomic_add_fetch(&h->inside, 1, __ATOMIC_SEQ_CST);
        usleep(200);
        if (__atomic_load_n(&h->inside, __ATOMIC_SEQ_CST) > 1)
            __atomic_store_n(&h->worst, 1, __ATOMIC_SEQ_CST);
        __atomic_sub_fetch(&h->inside, 1, __ATOMIC_SEQ_CST);
        xti_disk_unlock(h->d, token);
        atomic_fetch_add(&h->total, 1);
    }
    return NULL;
}

START_TEST(one_thread_at_a_time_holds_a_keys_lock)
{
    struct holder h = {.d = open_dir(dir)};
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, count_inside, &h);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    ck_assert_int_eq(h.worst, 0);
    ck_assert_int_ge(h.total, 30);
    int a = xti_disk_lock(h.d, "a", 1), b = xti_disk_lock(h.d, "b", 1);
    ck_assert_int_ge(a, 0); /* different keys do not exclude each other */
    ck_assert_int_ge(b, 0);
    xti_disk_unlock(h.d, a);
    xti_disk_unlock(h.d, b);
    xti_disk_close(h.d);
}
END_TEST

START_TEST(a_stopped_holder_costs_a_bounded_time_and_a_dead_one_none)
{
    struct xti_disk *d = open_dir(dir);
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    pid_t pid = fork_child();
    if (pid == 0) {
        int token = xti_disk_lock(d, "k", 1);
        if (write(ready[1], token < 0 ? "n" : "y", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char c;
    ck_assert_int_eq(read(ready[0], &c, 1), 1);
    ck_assert_int_eq(c, 'y');
    kill(pid, SIGSTOP);
    int64_t t = INT64_MAX;
    for (int i = 0; i < 5 && t > 14000000000; i++) { /* a machine may stand still meanwhile */
        t = xti_now_ns();
        ck_assert_int_eq(xti_disk_lock(d, "k", 1), -1);
        t = xti_now_ns() - t;
    }
    ck_assert_msg(t > 9900000000 && t < 14000000000, "gave up after %lld ns", (long long)t);
    kill_child(pid);
    t = xti_now_ns();
    int token = xti_disk_lock(d, "k", 1);
    ck_assert_int_ge(token, 0);
    ck_assert_int_lt(xti_now_ns() - t, 1000000000);
    pid = fork_child(); /* a child that keeps the descriptor does not keep the lock */
    if (pid == 0)
        for (;;)
            pause();
    xti_disk_unlock(d, token);
    token = xti_disk_lock(d, "k", 1);
    ck_assert_int_ge(token, 0);
    xti_disk_unlock(d, token);
    kill_child(pid);
    xti_disk_close(d);
    close(ready[0]);
    close(ready[1]);
}
END_TEST

static int lock_without_permission(void *arg)
{
    char path[256];
    struct xti_disk *d = open_dir(dir);
    int token = xti_disk_lock(d, "k", 1), bad = token < 0;
    xti_disk_unlock(d, token);
    snprintf(path, sizeof path, "%s/k1/lock", dir);
    bad |= chmod(path, 0) != 0;
    bad |= (xti_disk_lock(d, "k", 1) != -1) << 1;
    put_text(d, "k", "v");
    bad |= (get_text(d, "k", "v") != 1) << 2;
    xti_disk_close(d);
    return bad;
}

START_TEST(a_lock_file_that_cannot_be_opened_is_no_lock_but_no_harm)
{
    if (!is_root("another user"))
        return;
    chmod(root, 0777);
    ck_assert_int_eq(in_child(lock_without_permission, NULL, 65534), 0);
}
END_TEST

static int lock_k(struct xti_disk *d) { return xti_disk_lock(d, "k", 1); }

static int close_it(struct xti_disk *d)
{
    xti_disk_close(d);
    return -1;
}

/* Is the answer -1, and does what XT_DEBUG=cache says meanwhile have these words? */
static bool says(int call(struct xti_disk *d), struct xti_disk *d, const char *words)
{
    char text[512] = "";
    FILE *said = tmpfile();
    int real = dup(2);
    ck_assert(said && dup2(fileno(said), 2) == 2);
    setenv("XT_DEBUG", "cache", 1);
    int answer = call(d);
    unsetenv("XT_DEBUG");
    dup2(real, 2);
    close(real);
    rewind(said);
    text[fread(text, 1, sizeof text - 1, said)] = 0;
    fclose(said);
    return answer == -1 && strstr(text, words);
}

START_TEST(a_cache_that_is_closed_tells_its_counts)
{
    struct xti_disk *d = open_dir(dir);
    put_text(d, "k", "v");
    ck_assert_int_eq(get_text(d, "k", "v"), 1);
    ck_assert_int_eq(get_text(d, "j", "v"), 0);
    ck_assert(says(close_it, d,
                   "1 hits, 1 missed, refused 0 damaged, 0 foreign, 0 stale, 1 stored, 0 not, 0 evicted"));
}
END_TEST

START_TEST(a_lock_file_of_another_kind_is_no_lock_but_no_harm)
{
    struct xti_disk *d = open_dir(dir);
    char path[256];
    put_text(d, "k", "v");
    snprintf(path, sizeof path, "%s/k1/lock", dir);
    void (*const kind[])(const char *) = {make_fifo, make_directory, make_dangling, make_foreign};
    for (int i = 0; i < 3 + (geteuid() == 0); i++) {
        kind[i](path);
        ck_assert(says(lock_k, d, "no lock: not available here"));
        xti_disk_limits(d, 1 << 20, 1); /* the evictor wants its lock too */
        put_text(d, "j", "v");
        put_text(d, "k", "v");
        ck_assert_int_eq(get_text(d, "k", "v"), 1);
        ck_assert_int_eq(stats_of(d).entries, 1);
        remove(path);
        if (i == 2)
            write_file(path, "", 0);
    }
    xti_disk_close(d);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cache_shared");
    TCase *c = tcase_create("disk");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, start, finish);
    tcase_add_test(c, stale_temporary_files_are_swept_and_fresh_ones_stay);
    tcase_add_test(c, the_directory_is_looked_at_now_and_then);
    tcase_add_test(c, the_oldest_entries_go_when_there_are_too_many);
    tcase_add_test(c, the_bytes_on_disk_stay_bounded);
    tcase_add_test(c, no_more_goes_than_must);
    tcase_add_test(c, a_hit_marks_its_entry_as_used_once_an_hour);
    tcase_add_test(c, times_of_another_clock_do_no_harm);
    tcase_add_test(c, what_is_being_written_stays_whatever_the_hosts_clock_says);
    tcase_add_test(c, no_more_than_8192_entries_are_kept_unless_told_otherwise);
    tcase_add_test(c, eight_processes_share_fifty_keys);
    tcase_add_test(c, eight_processes_that_evict_stay_right_and_bounded);
    tcase_add_test(c, a_reader_sees_one_writers_bytes_whole);
    tcase_add_test(c, one_thread_at_a_time_holds_a_keys_lock);
    tcase_add_test(c, a_stopped_holder_costs_a_bounded_time_and_a_dead_one_none);
    tcase_add_test(c, a_lock_file_that_cannot_be_opened_is_no_lock_but_no_harm);
    tcase_add_test(c, a_cache_that_is_closed_tells_its_counts);
    tcase_add_test(c, a_lock_file_of_another_kind_is_no_lock_but_no_harm);
    suite_add_tcase(s, c);
    return run_suite(s);
}
