/* test_cache.c: the disk cache never gives bytes that were not put under that key, whatever lies in its
 * directory, and never fails its caller. Memory: test_memo.c. */
#include "cache/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/os.h"
#include "cache/entry.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"
#include "tests/support/suite.h"

/* ---------------------------------------------------------------------------------------- helpers */

static char root[SCRATCH_PATH], dir[96], self_exe[512];

static void start(void)
{
    make_scratch(root, "cache");
    snprintf(dir, sizeof dir, "%s/xt", root);
    unsetenv("XT_CACHE_DIR");
}

static void finish(void) { remove_scratch(root); }

static struct xti_disk *open_dir(const char *path)
{
    struct xti_disk *d;
    struct xti_err err = {0};
    ck_assert_int_eq(xti_disk_open(path, &d, &err), XT_OK);
    return d;
}

static void put_text(struct xti_disk *d, const char *key, const char *payload)
{
    xti_disk_put(d, key, strlen(key), key, payload, strlen(payload));
}

/* 1: a hit with exactly this payload, 0: a miss, -1: a hit with something else. */
static int get_text(struct xti_disk *d, const char *key, const char *payload)
{
    struct xti_blob b;
    bool hit = xti_disk_get(d, key, strlen(key), &b);
    int r = !hit ? 0 : b.bytes == strlen(payload) && !memcmp(b.data, payload, b.bytes) ? 1 : -1;
    ck_assert(hit || (!b.data && !b.bytes));
    xti_free(b.data);
    return r;
}

static struct xt_cache_stats stats_of(struct xti_disk *d)
{
    struct xt_cache_stats s = {0};
    xti_disk_stats(d, &s);
    return s;
}

static char *entry_path(const char *key, char *out)
{
    unsigned char h[32];
    char hex[65];
    xti_sha256_of(key, strlen(key), h);
    xti_hex(h, 32, hex);
    sprintf(out, "%s/k1/%s", dir, hex);
    return out;
}

static size_t read_file(const char *path, unsigned char *buf, size_t size)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(buf, 1, size, f);
    fclose(f);
    return n;
}

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, n, f), n);
    fclose(f);
    chmod(path, 0600);
}

static int count_names(const char *prefix)
{
    char cmd[256];
    int n = -1;
    snprintf(cmd, sizeof cmd, "ls -A %s/k1 2>/dev/null | grep -c '^%s'", dir, prefix);
    FILE *p = popen(cmd, "r");
    ck_assert_int_eq(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
}

static void set_age(const char *path, int64_t seconds)
{
    struct timespec t[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW), 0);
}

/* Exit status of body(arg) in a child, as that user (0: as we are). Failures inside are its exit status. */
static int in_child(int (*body)(void *), void *arg, unsigned uid)
{
    pid_t pid = fork_child();
    if (pid == 0) {
        if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
            _exit(99);
        _exit(body(arg));
    }
    int st = end_of(pid);
    return WIFEXITED(st) ? WEXITSTATUS(st) : 1000 + WTERMSIG(st);
}

static bool is_root(const char *what)
{
    if (geteuid() == 0)
        return true;
    printf("skipped: needs root: %s\n", what);
    return false;
}

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

struct listed {
    int n;
    char what[8][64];
};

static void note_entry(void *arg, const char *file, int64_t bytes, const char *what)
{
    struct listed *l = arg;
    ck_assert_uint_eq(strlen(file), 64);
    ck_assert_int_gt(bytes, 72);
    ck_assert_int_lt(l->n, 8);
    snprintf(l->what[l->n++], 64, "%s", what);
}

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

static const char victim[] = "the key", content[] = "forty-two bytes that matter to somebody ok";

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
static void make_fifo(const char *path) { unlink(path), mkfifo(path, 0600); }
static void make_directory(const char *path) { unlink(path), mkdir(path, 0700); }
static void make_0666(const char *path) { chmod(path, 0666); }
static void make_0620(const char *path) { chmod(path, 0620); }
static void make_foreign(const char *path) { ck_assert_int_eq(chown(path, 65534, 65534), 0); }
static void make_huge(const char *path) { ck_assert_int_eq(truncate(path, (off_t)100 << 30), 0); }
static void make_dangling(const char *path)
{
    unlink(path);
    ck_assert_int_eq(symlink("/nowhere", path), 0);
}
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

/* ---------------------------------------------------------------------------------- the directory */

/* Off, with a reason that contains `word`, and every call harmless. */
static void expect_off(const char *path, const char *word)
{
    struct xti_disk *d = open_dir(path);
    struct xt_cache_stats s = {.size = sizeof s};
    int64_t removed = -1;
    put_text(d, "k", "v");
    ck_assert_msg(xti_disk_path(d) == NULL, "%s is used as %s", path ? path : "NULL", xti_disk_path(d));
    ck_assert_msg(strstr(xti_disk_why(d), word) != NULL, "'%s' does not say '%s'", xti_disk_why(d), word);
    ck_assert_int_eq(get_text(d, "k", "v"), 0);
    ck_assert_int_eq(xti_disk_lock(d, "k", 1), -1);
    xti_disk_unlock(d, -1);
    xti_disk_drop(d, "k", 1);
    ck_assert_int_eq(xti_disk_clear(d, &removed, NULL), XT_OK);
    ck_assert_int_eq(removed, 0);
    s = stats_of(d);
    ck_assert_int_eq(s.entries + s.stored + s.disk_hits, 0);
    xti_disk_close(d);
}

START_TEST(a_directory_that_others_can_write_is_refused)
{
    char k1[128];
    snprintf(k1, sizeof k1, "%s/k1", dir);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_assert_int_eq(mkdir(k1, 0700), 0);
    const char *both[] = {dir, k1};
    for (int i = 0; i < 2; i++) {
        const unsigned modes[] = {0777, 0720, 0702, 01777};
        for (int m = 0; m < 4; m++) {
            ck_assert_int_eq(chmod(both[i], modes[m]), 0);
            expect_off(dir, "others may write");
        }
        chmod(both[i], 0700);
        if (is_root("foreign directory")) {
            ck_assert_int_eq(chown(both[i], 65534, 65534), 0);
            expect_off(dir, "belongs to user 65534");
            ck_assert_int_eq(chown(both[i], 0, 0), 0);
        }
    }
    chmod(dir, 0755); /* readable by others is no danger */
    struct xti_disk *d = open_dir(dir);
    put_text(d, "k", "v");
    ck_assert_int_eq(get_text(d, "k", "v"), 1);
    chmod(dir, 0777); /* checked at every use */
    ck_assert_int_eq(get_text(d, "k", "v"), 0);
    ck_assert_ptr_null(xti_disk_path(d));
    xti_disk_close(d);
}
END_TEST

START_TEST(a_symbolic_link_or_a_file_in_place_of_the_directory_is_refused)
{
    char real[96], slashed[128], k1[128];
    snprintf(real, sizeof real, "%s/real", root);
    snprintf(slashed, sizeof slashed, "%s//", dir);
    snprintf(k1, sizeof k1, "%s/k1", dir);
    mkdir(real, 0700);
    ck_assert_int_eq(symlink(real, dir), 0);
    expect_off(dir, "symbolic link");
    expect_off(slashed, "symbolic link");
    unlink(dir);
    write_file(dir, "x", 1);
    expect_off(dir, "not a directory");
    unlink(dir);
    mkdir(dir, 0700);
    ck_assert_int_eq(symlink(real, k1), 0);
    expect_off(dir, "symbolic link");
    unlink(k1);
    write_file(k1, "x", 1);
    expect_off(dir, "not a directory");
    snprintf(slashed, sizeof slashed, "%s/k1/below-a-file", dir);
    expect_off(slashed, "not a directory");
    expect_off("/proc/xt-cannot-be-made", "cannot be made");
    unlink(k1);
    struct xti_disk *d = open_dir(dir); /* a link takes its place while it is open */
    put_text(d, "k", "v");
    ck_assert_int_eq(get_text(d, "k", "v"), 1);
    remove_scratch(real);
    ck_assert_int_eq(rename(dir, real), 0);
    ck_assert_int_eq(symlink(real, dir), 0);
    ck_assert_int_eq(get_text(d, "k", "v"), 0);
    ck_assert_msg(strstr(xti_disk_why(d), "symbolic link"), "%s", xti_disk_why(d));
    xti_disk_close(d);
    char *huge = xti_alloc(9000);
    memset(huge, 'a', 8999);
    huge[0] = '/';
    expect_off(huge, "too long");
    xti_free(huge);
}
END_TEST

START_TEST(only_absolute_paths_count_and_the_environment_is_asked_in_order)
{
    char want[128];
    expect_off("", "empty");
    expect_off("relative/dir", "not an absolute path");
    setenv("HOME", root, 1);
    setenv("XDG_CACHE_HOME", root, 1);
    setenv("XT_CACHE_DIR", "", 1);
    expect_off(NULL, "XT_CACHE_DIR is empty");
    setenv("XT_CACHE_DIR", "rel", 1);
    expect_off(NULL, "not an absolute path");
    setenv("XT_CACHE_DIR", dir, 1);
    struct xti_disk *d = open_dir(NULL);
    ck_assert_str_eq(xti_disk_path(d), dir);
    xti_disk_close(d);
    unsetenv("XT_CACHE_DIR");
    d = open_dir(NULL);
    ck_assert_str_eq(xti_disk_path(d), dir); /* root/xt */
    xti_disk_close(d);
    const char *ignored[] = {"rel", "", NULL};
    snprintf(want, sizeof want, "%s/.cache/xt", root);
    for (int i = 0; i < 3; i++) {
        ignored[i] ? setenv("XDG_CACHE_HOME", ignored[i], 1) : unsetenv("XDG_CACHE_HOME");
        d = open_dir(NULL);
        ck_assert_str_eq(xti_disk_path(d), want);
        xti_disk_close(d);
    }
    for (int i = 0; i < 3; i++) {
        ignored[i] ? setenv("HOME", ignored[i], 1) : unsetenv("HOME");
        expect_off(NULL, "HOME");
    }
    static char far[5000];
    memset(far, '/', sizeof far - 1);
    memset(far + 1, 'a', 4095);
    setenv("HOME", far, 1);
    expect_off(NULL, "too long");
}
END_TEST

static int use_read_only(void *arg)
{
    char k1[128];
    int bad = 0;
    snprintf(k1, sizeof k1, "%s/k1", dir);
    struct xti_disk *d = open_dir(dir);
    put_text(d, "old", "1");
    chmod(k1, 0500);
    put_text(d, "new", "2");
    bad |= get_text(d, "old", "1") != 1;
    bad |= (get_text(d, "new", "2") != 0) << 1;
    bad |= (stats_of(d).store_failed != 1) << 2;
    bad |= (xti_disk_path(d) == NULL) << 3;
    bad |= (count_names("\\.tmp") != 0) << 4;
    chmod(k1, 0700);
    xti_disk_close(d);
    return bad;
}

static int use_unmakable(void *arg)
{
    struct xti_disk *d = open_dir(arg);
    if (strcmp(xti_disk_why(d), ""))
        return 1;
    put_text(d, "k", "v");
    return !strstr(xti_disk_why(d), "cannot be made") || xti_disk_path(d) || get_text(d, "k", "v");
}

START_TEST(a_directory_that_cannot_be_written_still_gives_hits)
{
    if (!is_root("read-only directory as another user"))
        return;
    chmod(root, 0777); /* a parent: as the user has it */
    ck_assert_int_eq(in_child(use_read_only, NULL, 65534), 0);
    finish();
    mkdir(root, 0755);
    ck_assert_int_eq(in_child(use_unmakable, dir, 65534), 0);
}
END_TEST

START_TEST(a_read_only_file_system_and_a_full_one_fail_no_call)
{
    mkdir(dir, 0700);
    if (!is_root("tmpfs") || mount("xt", dir, "tmpfs", MS_NOSUID, "size=64k,mode=0700")) {
        printf("skipped: tmpfs cannot be mounted here\n");
        return;
    }
    struct xti_disk *d = open_dir(dir);
    static char big[20000];
    memset(big, 'b', sizeof big - 1);
    int stored = 0;
    for (char k[] = "a"; k[0] < 'i'; k[0]++) {
        put_text(d, k, big);
        int got = get_text(d, k, big);
        ck_assert_int_ge(got, 0);
        stored += got;
        ck_assert_int_eq(count_names("\\.tmp"), 0);
    }
    struct xt_cache_stats s = stats_of(d);
    bool fine = stored == s.stored && s.store_failed == 8 - stored && s.store_failed > 0 && stored > 0;
    fine = fine && !mount("xt", dir, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k,mode=0700");
    fine = fine && get_text(d, "a", big) == 1;
    put_text(d, "z", "v");
    fine = fine && get_text(d, "z", "v") == 0 && stats_of(d).store_failed == 9 - stored;
    int token = xti_disk_lock(d, "k", 1); /* `lock` was never made here */
    fine = fine && token == -1;
    xti_disk_close(d);
    umount(dir);
    ck_assert_msg(fine, "stored %d", stored);
}
END_TEST

static int open_descriptors(void)
{
    DIR *fds = opendir("/proc/self/fd");
    int n = 0;
    ck_assert_ptr_nonnull(fds);
    while (readdir(fds))
        n++;
    closedir(fds);
    return n;
}

START_TEST(a_directory_deleted_or_descriptors_closed_meanwhile_do_no_harm)
{
    struct xti_disk *d = open_dir(dir);
    put_text(d, "k", "v");
    remove_scratch(dir);
    ck_assert_int_eq(get_text(d, "k", "v"), 0);
    put_text(d, "k", "v");
    ck_assert_int_eq(get_text(d, "k", "v"), 1);
    int before = open_descriptors();
    for (int i = 0; i < 50; i++) {
        put_text(d, i % 2 ? "k" : "j", "v");
        get_text(d, "k", "v");
        get_text(d, "absent", "v");
        xti_disk_unlock(d, xti_disk_lock(d, "k", 1));
        stats_of(d);
    }
    ck_assert_int_eq(open_descriptors(), before);
    xti_disk_close(d);
}
END_TEST

static int store_above_the_file_limit(void *arg)
{
    struct xti_disk *d = open_dir(dir);
    struct rlimit r = {100, 100};
    setrlimit(RLIMIT_FSIZE, &r);
    put_text(d, "k", content);
    struct xti_blob b; /* no assertions from here: they write to a file */
    return xti_disk_get(d, "k", 1, &b) || stats_of(d).store_failed != 1;
}

/* Each file that is opened gets descriptor 0, and errno is what a caller left there. */
static int work_on_descriptor_0(void *arg)
{
    struct xti_disk *d = open_dir(arg);
    struct listed list = {0};
    int64_t removed = 0;
    close(0);
    errno = EINTR;
    put_text(d, victim, content);
    int bad = get_text(d, victim, content) != 1;
    bad += 2 * (xti_disk_list(d, note_entry, &list, NULL) != XT_OK || list.n != 1);
    xti_disk_drop(d, victim, strlen(victim));
    bad += 4 * (get_text(d, victim, content) != 0 || stats_of(d).store_failed != 0);
    put_text(d, victim, content);
    bad += 8 * (xti_disk_clear(d, &removed, NULL) != XT_OK || removed != 1);
    int token = xti_disk_lock(d, victim, strlen(victim));
    bad += 16 * (token != 0);
    xti_disk_unlock(d, token);
    bad += 32 * (dup(1) != 0); /* nobody kept it */
    xti_disk_close(d);
    return bad;
}

START_TEST(a_host_without_standard_input_has_a_cache)
{
    ck_assert_int_eq(in_child(work_on_descriptor_0, dir, 0), 0);
}
END_TEST

START_TEST(a_file_size_limit_does_not_kill_the_host)
{
    ck_assert_int_eq(in_child(store_above_the_file_limit, NULL, 0), 0);
}
END_TEST

/* A setuid copy of this program, run by another user, prints what it thinks of its cache. */
START_TEST(a_setuid_program_has_no_disk_cache)
{
    char copy[128], cmd[2048], line[256] = "";
    if (!is_root("setuid"))
        return;
    snprintf(copy, sizeof copy, "%s/setuid", root);
    chmod(root, 0755);
    snprintf(cmd, sizeof cmd, "cp %s %s && chmod 4755 %s && XT_CACHE_DIR=%s setpriv --reuid 65534 %s --probe",
             self_exe, copy, copy, dir, copy);
    FILE *p = popen(cmd, "r");
    char *got = fgets(line, sizeof line, p);
    pclose(p);
    if (!got) {
        printf("skipped: setpriv or setuid does not work here\n");
        return;
    }
    ck_assert_msg(strstr(line, "raised privileges") && !strstr(line, "is used"), "%s", line);
}
END_TEST

static int probe(void)
{
    for (int i = 0; i < 2; i++) {
        struct xti_disk *d;
        if (xti_disk_open(i ? "/tmp/xt-given" : NULL, &d, NULL))
            return 1;
        printf("%s%s", xti_disk_path(d) ? xti_disk_path(d) : "",
               xti_disk_path(d) ? "is used" : xti_disk_why(d));
        xti_disk_close(d);
    }
    printf("\n");
    return 0;
}

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

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--probe"))
        return probe();
    if (readlink("/proc/self/exe", self_exe, sizeof self_exe - 1) < 0)
        return 1;
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
    tcase_add_test(c, a_directory_that_others_can_write_is_refused);
    tcase_add_test(c, a_symbolic_link_or_a_file_in_place_of_the_directory_is_refused);
    tcase_add_test(c, only_absolute_paths_count_and_the_environment_is_asked_in_order);
    tcase_add_test(c, a_directory_that_cannot_be_written_still_gives_hits);
    tcase_add_test(c, a_read_only_file_system_and_a_full_one_fail_no_call);
    tcase_add_test(c, a_directory_deleted_or_descriptors_closed_meanwhile_do_no_harm);
    tcase_add_test(c, a_host_without_standard_input_has_a_cache);
    tcase_add_test(c, a_file_size_limit_does_not_kill_the_host);
    tcase_add_test(c, a_setuid_program_has_no_disk_cache);
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
    tcase_add_test(c, a_lock_file_of_another_kind_is_no_lock_but_no_harm);
    tcase_add_test(c, a_cache_that_is_closed_tells_its_counts);
    tcase_add_test(c, each_allocation_may_fail);
    tcase_add_test(c, times_of_a_four_kilobyte_entry);
    suite_add_tcase(s, c);
    return run_suite(s);
}
