/* test_pack_file.c: packs as files: what was put comes back, and nothing else, whatever happened to the file;
 * one that cannot be written leaves nothing. What kernels do with packs: test_pack.c. */
#include "cache/pack.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cache/entry.h"
#include "tests/support/scratch.h"
#include "tests/support/suite.h"

enum { N = 3, HEAD = 24, ROW = 48, ROWS_END = HEAD + N * ROW };

static char dir[SCRATCH_PATH], path[SCRATCH_PATH + 16];
static const char *const keys[N] = {"one", "two", "three"}, *const payloads[N] = {"first payload", "second",
                                                                                  "the third payload"};
static unsigned char whole[4096];
static size_t whole_bytes;

static xt_status make_pack(struct xti_err *err)
{
    struct xti_pack_maker m = {0};
    xt_status s = XT_OK;
    for (int round = 0; round < 2; round++) /* again: left out */
        for (int i = 0; i < N && !s; i++)
            s = xti_pack_add(&m, keys[i], strlen(keys[i]), keys[i], payloads[i], strlen(payloads[i]), err);
    if (!s && m.n != N)
        s = XT_EINVAL;
    if (!s)
        s = xti_pack_write(&m, path, err);
    xti_pack_maker_free(&m);
    return s;
}

static void read_whole(void)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    whole_bytes = fread(whole, 1, sizeof whole, f);
    fclose(f);
}

static void write_bytes(const unsigned char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(bytes, 1, n, f) == n);
    fclose(f);
}

static void start(void)
{
    struct xti_err err = {0};
    make_scratch(dir, "packfile");
    snprintf(path, sizeof path, "%s/a.xtpack", dir);
    ck_assert_msg(!make_pack(&err), "%s", err.e.message);
    read_whole();
}

static void finish(void) { remove_scratch(dir); }

/* How many of the keys are there. Never with other bytes. */
static int found(const struct xti_pack *p)
{
    int n = 0;
    for (int i = 0; i < N; i++) {
        struct xti_blob b;
        bool there = xti_pack_get(p, keys[i], strlen(keys[i]), &b);
        ck_assert(there ? b.bytes == strlen(payloads[i]) && !memcmp(b.data, payloads[i], b.bytes)
                        : !b.data && !b.bytes);
        xti_free(b.data);
        n += there;
    }
    return n;
}

static int found_in_file(void)
{
    struct xti_pack *p;
    struct xti_err err = {0};
    xt_status s = xti_pack_open(path, &p, &err);
    ck_assert(s ? s == XT_EIO && !p && strstr(err.e.message, path) : p != NULL);
    int n = s ? -1 : found(p);
    xti_pack_close(p);
    return n;
}

START_TEST(what_was_put_comes_back)
{
    struct xti_pack *p;
    struct xti_blob b;
    ck_assert_int_eq(found_in_file(), N);
    ck_assert(!xti_pack_open(path, &p, NULL));
    ck_assert(xti_pack_has(p, keys[0], 3) && !xti_pack_has(p, "four", 4) && !xti_pack_has(NULL, "one", 3));
    ck_assert(!xti_pack_get(p, "four", 4, &b) && !b.data && !xti_pack_get(NULL, "one", 3, &b));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(found(p), 0);
    xti_pack_close(p);
    xti_pack_close(NULL);
}
END_TEST

START_TEST(an_entry_of_the_largest_size_comes_back)
{
    size_t n = XTI_ENTRY_MAX - XTI_ENTRY_MIN - 3;
    char *big = calloc(1, n);
    struct xti_pack_maker m = {0};
    struct xti_pack *p;
    struct xti_blob b;
    ck_assert_ptr_nonnull(big);
    big[n - 1] = 7;
    ck_assert(!xti_pack_add(&m, "big", 3, "", big, n, NULL) && !xti_pack_write(&m, path, NULL));
    xti_pack_maker_free(&m);
    ck_assert(!xti_pack_open(path, &p, NULL));
    ck_assert(xti_pack_get(p, "big", 3, &b) && b.bytes == n && !memcmp(b.data, big, n));
    xti_free(b.data);
    xti_pack_close(p);
    free(big);
}
END_TEST

START_TEST(an_empty_pack_is_one)
{
    struct xti_pack_maker m = {0};
    ck_assert(!xti_pack_write(&m, path, NULL));
    xti_pack_maker_free(&m);
    ck_assert_int_eq(found_in_file(), 0);
}
END_TEST

START_TEST(every_flipped_bit_and_every_length_costs_what_it_hits)
{
    int refused = 0, less = 0;
    for (size_t at = 0; at < whole_bytes; at++)
        for (int bit = 0; bit < 8; bit++) {
            whole[at] ^= (unsigned char)(1 << bit);
            write_bytes(whole, whole_bytes);
            whole[at] ^= (unsigned char)(1 << bit);
            int n = found_in_file();
            ck_assert_msg(at < ROWS_END + 32 ? n == -1 : n == N - 1, "byte %zu, bit %d: %d", at, bit, n);
            refused += n == -1;
            less += n == N - 1;
        }
    for (size_t n = 0; n < whole_bytes; n++) {
        write_bytes(whole, n);
        ck_assert_msg(found_in_file() < N, "%zu bytes", n);
    }
    printf("note: %d bits refuse the pack, %d an entry\n", refused, less);
}
END_TEST

static void put_u64(size_t at, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        whole[at + (size_t)i] = (unsigned char)(v >> 8 * i);
}

/* Changes that have their checksum: of somebody who makes packs badly. */
START_TEST(rows_that_lie_are_refused)
{
    static const uint64_t lies[][2] = {/* offset, bytes */
                                       {0, 100},
                                       {ROWS_END + 32, 0},
                                       {ROWS_END + 32, XTI_ENTRY_MIN - 1},
                                       {ROWS_END + 32, XTI_ENTRY_MAX + 1},
                                       {ROWS_END + 32, UINT64_MAX},
                                       {INT64_MAX, 100},
                                       {UINT64_MAX, 100},
                                       {(uint64_t)1 << 40, 100}};
    uint64_t first[2];
    memcpy(first, whole + HEAD + 32, sizeof first);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        put_u64(HEAD + 32, lies[i][0]);
        put_u64(HEAD + 40, lies[i][1]);
        xti_sha256_of(whole, ROWS_END, whole + ROWS_END);
        write_bytes(whole, whole_bytes);
        ck_assert_msg(found_in_file() == N - 1, "lie %zu", i);
    }
    memcpy(whole + HEAD + 32, whole + HEAD + ROW + 32, 16); /* another key's entry */
    xti_sha256_of(whole, ROWS_END, whole + ROWS_END);
    write_bytes(whole, whole_bytes);
    ck_assert_int_eq(found_in_file(), N - 1);
    put_u64(HEAD + 32, first[0]);
    put_u64(HEAD + 40, first[1]);
    static const uint64_t counts[] = {N + 1, 1 << 20, (1 << 20) + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        put_u64(16, counts[i]);
        xti_sha256_of(whole, ROWS_END, whole + ROWS_END);
        write_bytes(whole, whole_bytes);
        ck_assert_msg(found_in_file() == -1, "count %zu", i);
        struct xti_pack *p;
        struct xti_err err = {0};
        ck_assert_int_eq(xti_pack_open(path, &p, &err), XT_EIO);
        const char *why = i == 0 ? "checksum" : i == 1 ? "shorter" : "too many";
        ck_assert_msg(strstr(err.e.message, why), "%s", err.e.message);
    }
}
END_TEST

static int names_in(const char *of)
{
    char command[SCRATCH_PATH + 64];
    int n = -1;
    snprintf(command, sizeof command, "ls -A %s | wc -l", of);
    FILE *p = popen(command, "r");
    ck_assert_int_eq(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
}

/* Two entries of 100,000 bytes. */
static xt_status make_large_pack(struct xti_err *err)
{
    static const char zeros[100000];
    struct xti_pack_maker m = {0};
    xt_status s = xti_pack_add(&m, "a", 1, "", zeros, sizeof zeros, err);
    s = s ? s : xti_pack_add(&m, "b", 1, "", zeros, sizeof zeros, err);
    s = s ? s : xti_pack_write(&m, path, err);
    xti_pack_maker_free(&m);
    return s;
}

START_TEST(what_cannot_be_written_leaves_nothing_and_the_old_one)
{
    static const rlim_t room[] = {100, 60000, 160000}; /* ends in the rows, in an entry, in the next one */
    struct xti_err err = {0};
    struct rlimit was, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
    for (int i = 0; i < 3; i++) {
        small = (struct rlimit){.rlim_cur = room[i], .rlim_max = was.rlim_max};
        int bad = setrlimit(RLIMIT_FSIZE, &small); /* Check writes to a file of its own */
        xt_status s = i ? make_large_pack(&err) : make_pack(&err);
        bad |= setrlimit(RLIMIT_FSIZE, &was);
        ck_assert_int_eq(bad, 0);
        ck_assert_int_eq(s, XT_EIO);
        ck_assert_int_eq(found_in_file(), N);
        ck_assert_int_eq(names_in(dir), 1);
    }
    snprintf(path, sizeof path, "%s/none/a", dir);
    ck_assert_int_eq(make_pack(&err), XT_EIO);
    snprintf(path, sizeof path, "%s/d", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(make_pack(&err), XT_EIO);
    ck_assert_int_eq(names_in(dir), 2);
}
END_TEST

START_TEST(a_full_disk_leaves_nothing_and_the_old_one)
{
    static const char *const room[] = {"size=8k", "size=64k", "size=160k"}; /* as above */
    struct xti_err err = {0};
    for (int i = 0; i < 3; i++) {
        char options[64];
        snprintf(options, sizeof options, "%s,mode=0700", room[i]);
        if (geteuid() || mount("xt", dir, "tmpfs", MS_NOSUID, options)) {
            printf("skipped: tmpfs cannot be mounted here\n");
            return;
        }
        bool made = !make_pack(&err);
        xt_status s = make_large_pack(&err);
        int there = found_in_file(), names = names_in(dir);
        umount(dir);
        ck_assert(made && s == XT_EIO && there == N && names == 1);
    }
}
END_TEST

/* Where others may write, the temporary file's name could be a link to something of this user's. */
START_TEST(no_link_is_followed)
{
    char temp[SCRATCH_PATH + 64], victim[SCRATCH_PATH + 16];
    snprintf(temp, sizeof temp, "%s.%ld.tmp", path, (long)getpid());
    snprintf(victim, sizeof victim, "%s/victim", dir);
    FILE *f = fopen(victim, "w");
    fputs("mine", f);
    fclose(f);
    ck_assert_int_eq(symlink(victim, temp), 0);
    ck_assert_int_eq(make_pack(NULL), XT_OK);
    ck_assert_int_eq(found_in_file(), N);
    f = fopen(victim, "r");
    char text[8] = "";
    ck_assert(fgets(text, sizeof text, f) && !strcmp(text, "mine"));
    fclose(f);
}
END_TEST

/* A host that has closed its standard input gets 0 for the next file that it opens. */
START_TEST(a_fifo_in_the_place_of_a_pack_is_none_and_not_waited_for)
{
    struct xti_err err = {0};
    struct xti_pack *p;
    struct xti_blob b;
    ck_assert(!xti_pack_open(path, &p, &err));
    ck_assert(!unlink(path) && !mkfifo(path, 0600));
    ck_assert(!xti_pack_get(p, keys[0], strlen(keys[0]), &b)); /* it was one when it was opened */
    xti_pack_close(p);
    ck_assert_int_eq(xti_pack_open(path, &p, &err), XT_EIO);
    ck_assert_ptr_null(p);
}
END_TEST

START_TEST(a_pack_may_be_descriptor_0)
{
    struct xti_pack *p = NULL;
    struct xti_err err = {0};
    int saved = fcntl(0, F_DUPFD_CLOEXEC, 3), probe;
    ck_assert_int_ge(saved, 0);
    close(0);
    xt_status written = make_pack(&err), opened = xti_pack_open(path, &p, &err);
    bool had = fcntl(0, F_GETFD) >= 0;
    int there = p ? found(p) : -1;
    probe = dup(saved); /* 0 again, when nobody kept it */
    dup2(saved, 0);
    close(saved);
    ck_assert_msg(!written && !opened, "%s", err.e.message);
    ck_assert_int_eq(there, N);
    ck_assert_int_eq(probe, 0);
    ck_assert(!had);
    xti_pack_close(p);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    int64_t live = xti_live_allocations();
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (int n = 1, failed = 1; failed; n++) {
            struct xti_err err = {0};
            struct xti_pack *p = NULL;
            xti_fail_alloc(n, for_ever);
            xt_status s = make_pack(&err);
            if (!s)
                s = xti_pack_open(path, &p, &err);
            int got = s ? 0 : found(p);
            xti_fail_alloc(0, 0);
            failed = s || got < N;
            ck_assert(!s || s == XT_ENOMEM || strstr(err.e.message, "out of memory"));
            xti_pack_close(p);
            ck_assert_int_eq(xti_live_allocations(), live);
            ck_assert_int_eq(found_in_file(), N); /* the next call works */
            ck_assert_int_lt(n, 200);
        }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pack_file");
    TCase *t = tcase_create("pack_file");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, start, finish);
    tcase_add_test(t, what_was_put_comes_back);
    tcase_add_test(t, an_entry_of_the_largest_size_comes_back);
    tcase_add_test(t, an_empty_pack_is_one);
    tcase_add_test(t, every_flipped_bit_and_every_length_costs_what_it_hits);
    tcase_add_test(t, rows_that_lie_are_refused);
    tcase_add_test(t, what_cannot_be_written_leaves_nothing_and_the_old_one);
    tcase_add_test(t, a_full_disk_leaves_nothing_and_the_old_one);
    tcase_add_test(t, no_link_is_followed);
    tcase_add_test(t, a_fifo_in_the_place_of_a_pack_is_none_and_not_waited_for);
    tcase_add_test(t, a_pack_may_be_descriptor_0);
    tcase_add_test(t, each_allocation_may_fail);
    suite_add_tcase(s, t);
    return run_suite(s);
}
