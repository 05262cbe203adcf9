/* test_cache.c: entries of the disk cache: bytes come back as they were put, under their key alone, whatever
 * was done to the files. Where the cache lies: test_cache_place.c; who else uses it: test_cache_shared.c; in
 * memory: test_memo.c. */
#include "cache/cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/os.h"
#include "cache/entry.h"
#include "tests/support/disk.h"
#include "tests/support/suite.h"

/* ---------------------------------------------------------------------------------- plain working */

START_TEST(what_was_put_comes_back_in_every_size)
{
    static const size_t sizes[] = {0, 1, 55, 56, 63, 64, 4096, 100000, 3000001};
    struct xti_disk *d = open_dir(dir);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char key[40] = {(unsigned char)i, 0, 0, 7}, *payload = xti_alloc(sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++)
            payload[j] = (unsigned char)(j * 31 + i);
        struct xti_blob b;
        ck_assert(!xti_disk_get(d, key, i * 5, &b));
        xti_disk_put(d, key, i * 5, i % 2 ? "what" : NULL, payload, sizes[i]);
        ck_assert(xti_disk_get(d, key, i * 5, &b));
        ck_assert_uint_eq(b.bytes, sizes[i]);
        ck_assert_int_eq(memcmp(b.data, payload, sizes[i]), 0);
        xti_free(b.data);
        xti_free(payload);
    }
    struct xt_cache_stats s = stats_of(d);
    ck_assert_int_eq(s.disk_hits, 9);
    ck_assert_int_eq(s.missed, 9);
    ck_assert_int_eq(s.stored, 9);
    ck_assert_int_eq(s.entries, 9);
    ck_assert_int_eq(s.refused + s.store_failed, 0);
    xti_disk_close(d);
    d = open_dir(dir); /* another process would see them too */
    struct xti_blob b;
    ck_assert(xti_disk_get(d, "", 0, &b));
    xti_free(b.data);
    xti_disk_close(d);
}
END_TEST

START_TEST(an_entry_has_the_bytes_that_its_header_documents)
{
    struct xti_disk *d = open_dir(dir);
    char path[256];
    unsigned char got[256], want[256] = "XTKC\r\n\x1a\n", *p = want + 8;
    xti_disk_put(d, "key!", 4, "abc", "payload", 7);
    const unsigned char field[4] = {1, 4, 3, 7};
    for (int i = 0; i < 4; i++, p += 8)
        p[0] = field[i];
    memcpy(p, "key!abcpayload", 14);
    xti_sha256_of(want, 54, p + 14);
    ck_assert_uint_eq(read_file(entry_path("key!", path), got, sizeof got), 86);
    ck_assert_int_eq(memcmp(got, want, 86), 0);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0600);
    xti_disk_close(d);
}
END_TEST

START_TEST(parts_are_an_entry_as_long_as_their_sum_is_one)
{
    const size_t room = XTI_ENTRY_MAX - XTI_ENTRY_MIN;
    struct xti_entry e = {.key = (const unsigned char *)"", .what = "", .payload = (const unsigned char *)""};
    size_t *part[3] = {&e.key_bytes, &e.what_bytes, &e.payload_bytes};
    for (int i = 0; i < 3; i++)
        for (int bit = 0; bit < 63; bit++)
            for (size_t other = 0; other < 2; other++) {
                const char *why = NULL;
                size_t n = 0;
                e.key_bytes = e.what_bytes = e.payload_bytes = other;
                *part[i] = room - other + ((size_t)1 << bit);
                ck_assert_ptr_null(xti_entry_encode(&e, &n, &why));
                ck_assert_str_eq(why, "larger than an entry may be");
            }
    char *all = calloc(1, room);
    e = (struct xti_entry){.key = (void *)all, .what = all, .payload = (void *)all};
    e.key_bytes = room - 2, e.what_bytes = e.payload_bytes = 1;
    const char *why = NULL;
    size_t n = 0;
    void *largest = xti_entry_encode(&e, &n, &why);
    ck_assert_uint_eq(n, XTI_ENTRY_MAX);
    ck_assert_ptr_null(xti_entry_decode(largest, n, &e));
    ck_assert_uint_eq(e.key_bytes, room - 2);
    xti_free(largest);
    free(all);
}
END_TEST

START_TEST(nothing_is_made_before_the_first_put_and_then_it_is_private)
{
    char deep[160], sub[200];
    struct stat st;
    snprintf(deep, sizeof deep, "%s/a/b/xt///", root);
    struct xti_disk *d = open_dir(deep);
    ck_assert_int_eq(get_text(d, "k", "v"), 0);
    ck_assert_int_eq(stats_of(d).entries, 0);
    snprintf(sub, sizeof sub, "%s/a", root);
    ck_assert_int_eq(stat(sub, &st), -1);
    mode_t old = umask(0);
    put_text(d, "k", "v");
    umask(old);
    ck_assert_int_eq(get_text(d, "k", "v"), 1);
    const char *made[] = {"a", "a/b", "a/b/xt", "a/b/xt/k1"};
    for (int i = 0; i < 4; i++) {
        snprintf(sub, sizeof sub, "%s/%s", root, made[i]);
        ck_assert_int_eq(stat(sub, &st), 0);
        ck_assert_int_eq(st.st_mode & 07777, 0700);
    }
    snprintf(sub, sizeof sub, "%s/a/b/xt", root);
    ck_assert_str_eq(xti_disk_path(d), sub);
    ck_assert_str_eq(xti_disk_why(d), "");
    xti_disk_close(d);
}
END_TEST

START_TEST(a_dropped_entry_is_gone_and_others_stay)
{
    struct xti_disk *d = open_dir(dir);
    put_text(d, "a", "1");
    put_text(d, "b", "2");
    xti_disk_drop(d, "a", 1);
    xti_disk_drop(d, "never there", 11);
    ck_assert_int_eq(get_text(d, "a", "1"), 0);
    ck_assert_int_eq(get_text(d, "b", "2"), 1);
    xti_disk_close(d);
}
END_TEST

START_TEST(a_list_shows_valid_entries_alone_oldest_first_and_clear_removes_all)
{
    struct xti_disk *d = open_dir(dir);
    char path[256];
    unsigned char b[512];
    struct listed l = {0};
    struct xti_err err = {0};
    int64_t removed = -1;
    ck_assert_int_eq(xti_disk_list(d, note_entry, &l, &err), XT_OK);
    ck_assert_int_eq(xti_disk_clear(d, &removed, &err), XT_OK);
    ck_assert_int_eq(removed, 0);
    const char *key[] = {"third\x1b[2J", "second", "first", "damaged"};
    for (int i = 0; i < 4; i++) {
        put_text(d, key[i], "payload");
        set_age(entry_path(key[i], path), 10 * (i + 1));
    }
    size_t n = read_file(path, b, sizeof b);
    b[n / 2] ^= 1;
    write_file(path, b, n);
    snprintf(path, sizeof path, "%s/k1/README", dir);
    write_file(path, "mine", 4);
    snprintf(path, sizeof path, "%s/k1/%064d", dir, 0); /* a valid entry under a name that is not its key's */
    char from[256];
    n = read_file(entry_path("first", from), b, sizeof b);
    write_file(path, b, n);
    ck_assert_int_eq(xti_disk_list(d, note_entry, &l, &err), XT_OK);
    ck_assert_int_eq(l.n, 3);
    ck_assert_str_eq(l.what[0], "first");
    ck_assert_str_eq(l.what[1], "second");
    ck_assert_str_eq(l.what[2], "third?[2J");
    ck_assert_int_eq(stats_of(d).refused_damaged, 1);
    ck_assert_int_eq(stats_of(d).refused_stale, 1);
    ck_assert_int_eq(stats_of(d).refused, 2);
    ck_assert_int_eq(xti_disk_clear(d, &removed, &err), XT_OK);
    ck_assert_int_eq(removed, 5);
    ck_assert_int_eq(count_names("[0-9a-f]"), 0);
    ck_assert_int_eq(count_names("README"), 1);
    ck_assert_int_eq(stats_of(d).bytes, 0);
    ck_assert_int_eq(get_text(d, "first", "payload"), 0);
    xti_disk_close(d);
}
END_TEST

START_TEST(clear_reports_what_it_cannot_remove)
{
    struct xti_disk *d = open_dir(dir);
    struct xti_err err = {0};
    char path[256];
    int64_t removed;
    put_text(d, "a", "1");
    ck_assert_int_eq(mkdir(entry_path("b", path), 0700), 0);
    ck_assert_int_eq(xti_disk_clear(d, &removed, &err), XT_EIO);
    ck_assert_int_eq(removed, 1);
    ck_assert_ptr_nonnull(strstr(err.e.message, "cannot remove"));
    xti_disk_close(d);
}
END_TEST

/* ----------------------------------------------------------------------------------------- damage */

/* The entry's bytes; d has it stored. */
static size_t store_victim(struct xti_disk *d, char *path, unsigned char *bytes)
{
    put_text(d, victim, content);
    return read_file(entry_path(victim, path), bytes, 512);
}

START_TEST(every_truncation_is_refused_and_the_next_put_heals)
{
    struct xti_disk *d = open_dir(dir);
    char path[256];
    unsigned char b[1024];
    size_t n = store_victim(d, path, b);
    for (size_t cut = 0; cut < n; cut++) {
        write_file(path, b, cut);
        ck_assert_msg(get_text(d, victim, content) == 0, "%zu of %zu bytes were accepted", cut, n);
    }
    ck_assert_int_eq(stats_of(d).refused, (int64_t)n);
    put_text(d, victim, content);
    ck_assert_int_eq(get_text(d, victim, content), 1);
    for (size_t cut = 0; cut < n; cut++) { /* what a power cut leaves: the right size, a tail of zeros */
        unsigned char z[1024] = {0};
        memcpy(z, b, cut);
        write_file(path, z, n);
        ck_assert_msg(get_text(d, victim, content) == 0, "zeros from %zu were accepted", cut);
    }
    xti_disk_close(d);
}
END_TEST

START_TEST(every_flipped_bit_is_refused)
{
    struct xti_disk *d = open_dir(dir);
    char path[256];
    unsigned char b[1024];
    size_t n = store_victim(d, path, b);
    for (size_t i = 0; i < 8 * n; i++) {
        b[i / 8] ^= (unsigned char)(1 << i % 8);
        write_file(path, b, n);
        ck_assert_msg(get_text(d, victim, content) == 0, "bit %zu flipped was accepted", i);
        b[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    ck_assert_int_eq(stats_of(d).refused, (int64_t)(8 * n));
    write_file(path, b, n);
    ck_assert_int_eq(get_text(d, victim, content), 1);
    xti_disk_close(d);
}
END_TEST

START_TEST(bytes_behind_an_entry_and_hostile_lengths_are_refused)
{
    struct xti_disk *d = open_dir(dir);
    char path[256];
    unsigned char b[1024];
    size_t n = store_victim(d, path, b);
    for (size_t more = 1; more <= 64; more++) {
        memset(b + n, (int)more, more);
        write_file(path, b, n + more);
        ck_assert_int_eq(get_text(d, victim, content), 0);
    }
    static const uint64_t hostile[] = {UINT64_MAX, UINT64_MAX - 71, 1ull << 63, 1ull << 32, 64 << 20, 1000,
                                       0};
    for (int field = 0; field < 4; field++)
        for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
            unsigned char c[1024];
            memcpy(c, b, n);
            memcpy(c + 8 + 8 * field, &hostile[i], 8);
            xti_sha256_of(c, n - 32, c + n - 32); /* a right checksum does not help */
            write_file(path, c, n);
            ck_assert_int_eq(get_text(d, victim, content), 0);
        }
    uint64_t what = n - 72 - strlen(victim) + 8, payload = (uint64_t)-8; /* together they wrap to what fits */
    memcpy(b + 24, &what, 8);
    memcpy(b + 32, &payload, 8);
    xti_sha256_of(b, n - 32, b + n - 32);
    write_file(path, b, n);
    ck_assert_int_eq(get_text(d, victim, content), 0);
    xti_disk_close(d);
}
END_TEST

START_TEST(another_keys_entry_and_another_version_are_refused)
{
    struct xti_disk *d = open_dir(dir);
    char path[256], other[256];
    unsigned char b[1024];
    put_text(d, "the kez", content); /* same lengths, one byte differs */
    size_t n = read_file(entry_path("the kez", other), b, sizeof b);
    write_file(entry_path(victim, path), b, n);
    ck_assert_int_eq(get_text(d, victim, content), 0);
    ck_assert_int_eq(get_text(d, "the kez", content), 1);
    n = store_victim(d, path, b);
    for (int version = 0; version < 4; version += 2) {
        b[8] = (unsigned char)version;
        xti_sha256_of(b, n - 32, b + n - 32);
        write_file(path, b, n);
        ck_assert_int_eq(get_text(d, victim, content), 0);
    }
    ck_assert_int_eq(stats_of(d).refused, 3);
    ck_assert_int_eq(stats_of(d).refused_stale, 3);
    b[8] = 1, b[n - 1] ^= 1; /* this version, another checksum */
    write_file(path, b, n);
    ck_assert_int_eq(get_text(d, victim, content), 0);
    ck_assert_int_eq(stats_of(d).refused_damaged, 1);
    xti_disk_close(d);
}
END_TEST

START_TEST(random_bytes_are_refused)
{
    struct xti_disk *d = open_dir(dir);
    char path[256];
    unsigned char b[1024], c[1024];
    size_t n = store_victim(d, path, b);
    uint64_t r = 12345;
    for (int i = 0; i < 2000; i++) {
        memcpy(c, b, n);
        for (int k = 0; k < 1 + i % 5; k++) {
            r = r * 6364136223846793005u + 1442695040888963407u;
            c[(r >> 33) % n] ^= (unsigned char)(1 + (r >> 56) % 255);
        }
        if (!memcmp(b, c, n))
            continue;
        write_file(path, c, n);
        ck_assert_msg(get_text(d, victim, content) == 0, "damage %d was accepted", i);
    }
    xti_disk_close(d);
}
END_TEST

static void make_symlink(const char *path)
{
    char copy[300];
    snprintf(copy, sizeof copy, "%s/copy", root);
    rename(path, copy);
    ck_assert_int_eq(symlink(copy, path), 0);
}
static void make_0666(const char *path) { chmod(path, 0666); }
static void make_0620(const char *path) { chmod(path, 0620); }
static void make_huge(const char *path) { ck_assert_int_eq(truncate(path, (off_t)100 << 30), 0); }
static void make_device(const char *path)
{
    unlink(path);
    ck_assert_int_eq(mknod(path, S_IFCHR | 0600, 0x105), 0);
}

static void make_socket(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s/s", root);
    ck_assert_int_eq(bind(s, (struct sockaddr *)&a, sizeof a), 0);
    close(s);
    ck_assert_int_eq(rename(a.sun_path, path), 0);
}

static const struct {
    const char *name;
    void (*make)(const char *path);
    bool root, stays; /* stays: nothing can be renamed over it */
} odd_entry[] = {
    {"symlink", make_symlink, 0, 0}, {"FIFO", make_fifo, 0, 0},         {"directory", make_directory, 0, 1},
    {"0666", make_0666, 0, 0},       {"0620", make_0620, 0, 0},         {"foreign", make_foreign, 1, 0},
    {"100 GiB", make_huge, 0, 0},    {"dangling", make_dangling, 0, 0}, {"/dev/zero", make_device, 1, 0},
    {"socket", make_socket, 0, 0},
};

START_TEST(an_entry_that_others_could_have_made_is_refused_and_replaced)
{
    struct xti_disk *d = open_dir(dir);
    for (size_t i = 0; i < sizeof odd_entry / sizeof *odd_entry; i++) {
        char path[256];
        unsigned char b[1024];
        if (odd_entry[i].root && !is_root(odd_entry[i].name))
            continue;
        xti_disk_clear(d, NULL, NULL);
        store_victim(d, path, b);
        struct xt_cache_stats was = stats_of(d);
        odd_entry[i].make(path);
        ck_assert_msg(get_text(d, victim, content) == 0, "%s was read", odd_entry[i].name);
        bool foreign = odd_entry[i].make != make_huge;
        ck_assert_msg(stats_of(d).refused == was.refused + 1, "%s: not counted", odd_entry[i].name);
        ck_assert_msg(stats_of(d).refused_foreign == was.refused_foreign + foreign, "%s", odd_entry[i].name);
        struct listed l = {0};
        ck_assert_int_eq(xti_disk_list(d, note_entry, &l, NULL), XT_OK);
        ck_assert_int_eq(l.n, 0);
        put_text(d, victim, content);
        ck_assert_msg(get_text(d, victim, content) == !odd_entry[i].stays, "%s: healed?", odd_entry[i].name);
        if (odd_entry[i].stays)
            rmdir(path);
    }
    ck_assert_int_eq(count_names("\\.tmp"), 0);
    xti_disk_close(d);
}
END_TEST

/* -------------------------------------------------------------------------------------- no memory */

static void ignore_entry(void *arg, const char *file, int64_t bytes, const char *what) { ++*(int *)arg; }

START_TEST(each_allocation_may_fail)
{
    struct xti_disk *d = open_dir(dir);
    put_text(d, "old", "payload");
    int64_t base = xti_live_allocations();
    int opens = 0, hits = 0, lists = 0, clears = 0;
    for (int n = 1; n <= 12; n++) {
        struct xti_disk *e = NULL;
        struct xti_err err = {0};
        int seen = 0;
        int64_t removed;
        xti_fail_alloc(n, n % 2);
        xt_status s = xti_disk_open(dir, &e, &err);
        xti_fail_alloc(0, 0);
        ck_assert(s == XT_OK ? e != NULL : s == XT_ENOMEM && !e && err.e.status == XT_ENOMEM);
        opens += s == XT_OK;
        xti_disk_close(e);
        xti_fail_alloc(n, n % 2);
        int got = get_text(d, "old", "payload");
        xti_fail_alloc(0, 0);
        ck_assert_int_ge(got, 0);
        hits += got;
        xti_fail_alloc(n, n % 2);
        put_text(d, "new", "payload");
        xti_fail_alloc(0, 0);
        xti_fail_alloc(n, n % 2);
        s = xti_disk_list(d, ignore_entry, &seen, &err);
        xti_fail_alloc(0, 0);
        ck_assert(s == XT_ENOMEM || (s == XT_OK && seen >= 1));
        lists += s == XT_OK;
        xti_fail_alloc(n, n % 2);
        stats_of(d);
        xti_fail_alloc(0, 0);
        xti_fail_alloc(n, n % 2);
        s = xti_disk_clear(d, &removed, &err);
        xti_fail_alloc(0, 0);
        clears += s == XT_OK;
        put_text(d, "old", "payload");
        ck_assert_int_eq(get_text(d, "old", "payload"), 1); /* the next call works */
        ck_assert_int_eq(xti_live_allocations(), base);
    }
    ck_assert(opens > 6 && opens < 12 && hits > 6 && hits < 12 && lists > 6 && lists < 12 && clears > 6);
    xti_disk_close(d);
    chmod(dir, 0777);
    for (int n = 1; n <= 5; n++) { /* an allocation for the reason of a refusal */
        struct xti_disk *e = NULL;
        xti_fail_alloc(n, 0);
        xt_status s = xti_disk_open(dir, &e, NULL);
        xti_fail_alloc(0, 0);
        ck_assert(s == XT_ENOMEM || xti_disk_path(e) == NULL);
        xti_disk_close(e);
    }
    ck_assert_int_eq(xti_live_allocations(), base - 2);
}
END_TEST

static double micros(struct xti_disk *d, int what)
{
    static char payload[4000], key[2000];
    struct xti_blob b;
    int64_t t = xti_now_ns();
    for (int i = 0; i < 500; i++) {
        key[0] = (char)(what == 2);
        if (what == 0)
            xti_disk_put(d, key, sizeof key, "x", payload, sizeof payload);
        else if (xti_disk_get(d, key, sizeof key, &b))
            xti_free(b.data);
    }
    return (double)(xti_now_ns() - t) / 500e3;
}

START_TEST(times_of_a_four_kilobyte_entry)
{
    struct xti_disk *d = open_dir(dir);
    double put = micros(d, 0), hit = micros(d, 1), miss = micros(d, 2);
    printf("disk: put %.1f us, hit %.1f us, miss %.1f us\n", put, hit, miss);
    ck_assert_int_eq(stats_of(d).disk_hits, 500);
    xti_disk_close(d);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cache");
    TCase *c = tcase_create("disk");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, start, finish);
    tcase_add_test(c, what_was_put_comes_back_in_every_size);
    tcase_add_test(c, an_entry_has_the_bytes_that_its_header_documents);
    tcase_add_test(c, parts_are_an_entry_as_long_as_their_sum_is_one);
    tcase_add_test(c, nothing_is_made_before_the_first_put_and_then_it_is_private);
    tcase_add_test(c, a_dropped_entry_is_gone_and_others_stay);
    tcase_add_test(c, a_list_shows_valid_entries_alone_oldest_first_and_clear_removes_all);
    tcase_add_test(c, clear_reports_what_it_cannot_remove);
    tcase_add_test(c, every_truncation_is_refused_and_the_next_put_heals);
    tcase_add_test(c, every_flipped_bit_is_refused);
    tcase_add_test(c, bytes_behind_an_entry_and_hostile_lengths_are_refused);
    tcase_add_test(c, another_keys_entry_and_another_version_are_refused);
    tcase_add_test(c, random_bytes_are_refused);
    tcase_add_test(c, an_entry_that_others_could_have_made_is_refused_and_replaced);
    tcase_add_test(c, each_allocation_may_fail);
    tcase_add_test(c, times_of_a_four_kilobyte_entry);
    suite_add_tcase(s, c);
    return run_suite(s);
}
