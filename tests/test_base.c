/* test_base.c: what everything stands on: checked arithmetic against exact arithmetic, text that is built and
 * cut, hashes, variables, topics of the log. */
#include "base/env.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/os.h"
#include "base/str.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/suite.h"

typedef __int128 wide;

/* Numbers beside which something changes. */
static const int64_t edge[] = {
    INT64_MIN,  INT64_MIN + 1, -(1ll << 32), -3037000500, -3037000499,   -7,       -2, -1, 0, 1, 2, 7,
    3037000499, 3037000500,    1ll << 32,    1ll << 62,   INT64_MAX - 1, INT64_MAX};
enum { N_EDGES = sizeof edge / sizeof *edge };

static int64_t nearest(wide v) { return v < INT64_MIN ? INT64_MIN : v > INT64_MAX ? INT64_MAX : (int64_t)v; }
static bool fits(wide v) { return v == nearest(v); }

START_TEST(arithmetic_is_exact_or_says_so)
{
    for (int i = 0; i < N_EDGES; i++)
        for (int j = 0; j < N_EDGES; j++) {
            int64_t a = edge[i], b = edge[j], out;
            ck_assert(xti_add64(a, b, &out) == fits((wide)a + b) && (!fits((wide)a + b) || out == a + b));
            ck_assert(xti_sub64(a, b, &out) == fits((wide)a - b) && (!fits((wide)a - b) || out == a - b));
            ck_assert(xti_mul64(a, b, &out) == fits((wide)a * b) && (!fits((wide)a * b) || out == a * b));
            ck_assert_int_eq(xti_add_most(a, b), nearest((wide)a + b));
            ck_assert_int_eq(xti_mul_most(a, b), nearest((wide)a * b));
            for (int k = 0; k < N_EDGES; k++) {
                wide v = (wide)a * b + edge[k];
                bool ok = xti_mad64(a, b, edge[k], &out);
                ck_assert(ok == (fits((wide)a * b) && fits(v)) && (!ok || out == (int64_t)v));
            }
            if (b > 0) {
                int64_t q = xti_floor_div(a, b), r = xti_floor_mod(a, b);
                ck_assert(r >= 0 && r < b && (wide)q * b + r == a);
                ck_assert(a < 0 || (wide)xti_ceil_div(a, b) == ((wide)a + b - 1) / b);
            }
            if (a > INT64_MIN && b > INT64_MIN) {
                int64_t g = xti_gcd64(a, b);
                ck_assert(g >= 0 && (g ? a % g == 0 && b % g == 0 : a == 0 && b == 0));
                ck_assert(g == 0 || xti_gcd64(a / g, b / g) == 1);
                for (int64_t of = 1; of <= 1 << 20; of *= 2)
                    ck_assert_int_eq(xti_period(of, a), of / xti_gcd64(of, a));
            }
            int64_t both[] = {a, b};
            if (a >= 0 && b >= 0)
                ck_assert(xti_product(2, both, &out) == fits((wide)a * b) &&
                          (!fits((wide)a * b) || out == a * b));
            ck_assert_uint_eq(xti_abs64(a), (uint64_t)(a < 0 ? -(wide)a : (wide)a));
        }
    int64_t out, empty[] = {INT64_MAX, INT64_MAX, 0, 5};
    ck_assert(xti_product(4, empty, &out) && out == 0);
    ck_assert(!xti_product(2, empty, &out));
    ck_assert(xti_product(0, empty, &out) && out == 1);
}
END_TEST

START_TEST(what_had_no_memory_is_said_as_such)
{
    static const struct {
        xt_status s;
        const char *words, *message;
    } row[] = {{XT_ENOMEM, "2 steps", "out of memory: 2 steps"},
               {XT_ENOMEM, "input: out of memory", "input: out of memory"},
               {XT_ENOMEM, "no memory for a map", "no memory for a map"},
               {XT_EINVAL, "2 steps", "2 steps"}};
    for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
        struct xti_err err = {0};
        ck_assert_int_eq(xti_fail(&err, row[i].s, "%s", row[i].words), row[i].s);
        ck_assert_str_eq(err.e.message, row[i].message);
    }
    struct xti_err err = {0};
    char longest[600];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = 0;
    for (size_t n = 0; n < sizeof longest; n++, err = (struct xti_err){0}) {
        xti_fail(&err, XT_ENOMEM, "%s", longest + n);
        size_t want = strlen("out of memory: ") + strlen(longest + n);
        ck_assert_uint_eq(strlen(err.e.message), want < 511 ? want : 511);
    }
}
END_TEST

/* Of n bytes: an a, as many of the character as there is room for, some y, a z. */
static void fill_characters(char *s, size_t n, const char *character)
{
    size_t width = strlen(character), at = 0;
    for (s[at++] = 'a'; at + width < n; at += width)
        memcpy(s + at, character, width);
    while (at + 1 < n)
        s[at++] = 'y';
    memcpy(s + at, "z", 2);
}

static bool is_utf8(const char *s)
{
    for (int left = 0; *s || left; s++) {
        unsigned char b = (unsigned char)*s;
        if (left ? (b & 0xc0) != 0x80 : (b & 0xc0) == 0x80)
            return false;
        left = left ? left - 1 : b >= 0xf0 ? 3 : b >= 0xe0 ? 2 : b >= 0xc0 ? 1 : 0;
    }
    return true;
}

/* post: of a message of any length that does not fit both ends are there, and characters are whole; where
 * there is no memory its beginning. */
START_TEST(a_message_that_is_too_long_keeps_its_ends)
{
    static const char *const character[] = {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    static char words[2100];
    for (int c = 0; c < 4; c++)
        for (size_t n = 450; n < 600; n++)
            for (int memory = 0; memory < 2; memory++) {
                struct xti_err err = {0};
                const char *m = err.e.message;
                fill_characters(words, n, character[c]);
                xti_fail_alloc(!memory, 0);
                xti_fail(&err, XT_EIO, "%s: no such file", words);
                xti_fail_alloc(0, 0);
                bool fits = n + strlen(": no such file") < sizeof err.e.message;
                const char *end = strstr(m, "z: no such file");
                ck_assert(*m == 'a' && is_utf8(m) && strlen(m) >= 500 * !fits);
                ck_assert(!memory && !fits ? !end : end && end[15] == 0);
                ck_assert(!strstr(m, " .. ") == (fits || !memory));
                xti_publish(XT_EIO, &err);
                xti_fail_null("xt_run", "kernel");
                ck_assert(is_utf8(xt_last_error()->message));
            }
    memset(words, 0x80, sizeof words - 1); /* no characters at all */
    struct xti_err err = {0};
    xti_fail(&err, XT_EIO, "%s", words);
    ck_assert_uint_ge(strlen(err.e.message), 500);
}
END_TEST

/* However many calls go on with what was never made. */
START_TEST(the_first_cause_is_told_with_every_null)
{
    struct xti_err err = {0};
    xti_publish(xti_fail(&err, XT_EIO, "the cause"), &err);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(xti_fail_null("xt_run", "kernel"), XT_EINVAL);
        ck_assert_str_eq(xt_last_error()->message,
                         "xt_run: kernel is NULL; this thread's last failure: the cause");
    }
}
END_TEST

START_TEST(text_is_escaped_for_json)
{
    struct xti_str b = {0};
    xti_str_json(&b, "a\"b\\c\n\x01\x7f \xc3\xa9");
    ck_assert_str_eq(b.s, "\"a\\\"b\\\\c\\u000a\\u0001\x7f \xc3\xa9\"");
    xti_str_free(&b);
}
END_TEST

START_TEST(shapes_are_cut_where_there_is_no_room)
{
    static const int64_t shape[] = {2, -3, INT64_MIN, INT64_MAX};
    static const char all[] = "[2,-3,-9223372036854775808,9223372036854775807]";
    for (size_t size = 8; size < sizeof all + 8; size++) {
        char buf[80];
        memset(buf, '#', sizeof buf);
        ck_assert_ptr_eq(xti_shape_text(buf, size, 4, shape), buf);
        size_t n = strlen(buf);
        ck_assert(n < size && buf[size] == '#' && buf[n - 1] == ']');
        ck_assert(!strcmp(buf, all) || (!strcmp(buf + n - 3, "..]") && !strncmp(buf, all, n - 3)));
    }
    char room[64];
    ck_assert_str_eq(xti_shape_text(room, sizeof room, 4, shape), all);
    ck_assert_str_eq(xti_shape_text(room, sizeof room, 0, NULL), "[]");
}
END_TEST

START_TEST(text_that_could_not_grow_stays_failed)
{
    for (int lent = 0; lent < 2; lent++) {
        char room[8];
        struct xti_str b = {0};
        if (lent)
            b = XTI_STR_ON(room);
        xti_str_add(&b, "abc");
        xti_fail_alloc(1, 1);
        xti_str_addf(&b, "%0200d", 1);
        xti_fail_alloc(0, 0);
        ck_assert(b.failed && b.n == 3);
        xti_str_add(&b, "d");
        xti_str_u64le(&b, 1);
        ck_assert(b.failed && b.n == 3 && !strcmp(b.s, "abc"));
        xti_str_free(&b);
    }
}
END_TEST

START_TEST(text_is_handed_over_as_xt_print_does)
{
    for (size_t size = 0; size < 6; size++) {
        char buf[8];
        size_t need = 0;
        memset(buf, '#', sizeof buf);
        ck_assert_int_eq(xti_copy_out("abc", 3, buf, size, &need), XT_OK);
        ck_assert_uint_eq(need, 4);
        ck_assert(buf[size] == '#' && (!size || !strncmp(buf, "abc", size - 1)));
        ck_assert(!size || strlen(buf) == (size > 3 ? 3 : size - 1));
    }
    ck_assert_int_eq(xti_copy_out("abc", 3, NULL, 0, NULL), XT_OK);
}
END_TEST

START_TEST(memory_that_nobody_has_is_not_given)
{
    int64_t live = xti_live_allocations();
    ck_assert_ptr_null(xti_alloc_array(SIZE_MAX / 2, 3));
    struct xti_arena a = {0};
    ck_assert_ptr_null(xti_arena_alloc(&a, SIZE_MAX));
    ck_assert_ptr_null(xti_arena_alloc(&a, SIZE_MAX / 2 + 1));
    for (size_t n = 0; n < 3000; n += 7) {
        unsigned char *p = xti_arena_alloc(&a, n);
        ck_assert(p && (uintptr_t)p % 16 == 0);
        static const unsigned char zero[3000];
        ck_assert_mem_eq(p, zero, n);
        memset(p, 0xff, n);
    }
    ck_assert_mem_eq(xti_arena_dup(&a, "text", 5), "text", 5);
    ck_assert_ptr_nonnull(xti_arena_dup(&a, NULL, 0));
    xti_arena_free(&a);
    void *p = xti_memdup("x", 0), *q = xti_realloc(NULL, 0);
    ck_assert(p && q);
    xti_free(p);
    xti_free(q);
    ck_assert_int_eq(xti_live_allocations(), live);
}
END_TEST

START_TEST(vectors_double_or_stay_as_they_were)
{
    int64_t cap = 0, grown = 0, *v = NULL;
    for (int64_t n = 0; n < 1000; n++) {
        int64_t was = cap, *w = NULL;
        if (n == cap) { /* there is no memory this once */
            xti_fail_alloc(1, 0);
            ck_assert_ptr_null(xti_grown(v, sizeof *v, n, &cap));
            ck_assert_int_eq(cap, was);
        }
        w = xti_grown(v, sizeof *v, n, &cap);
        ck_assert(w && n < cap && (n < was ? w == v && cap == was : !was || cap == 2 * was));
        grown += cap != was;
        (v = w)[n] = n;
    }
    for (int64_t n = 0; n < 1000; n++)
        ck_assert_int_eq(v[n], n);
    ck_assert_int_lt(grown, 9);
    int64_t many = INT64_MAX / 2 + 1;
    ck_assert_ptr_null(xti_grown(v, sizeof *v, many, &many));
    xti_free(v);
}
END_TEST

START_TEST(every_one_of_the_allocations_can_fail)
{
    xti_fail_alloc(2, 0);
    for (int i = 1; i <= 4; i++) {
        void *p = xti_alloc(1);
        ck_assert((p != NULL) == (i != 2));
        xti_free(p);
    }
    xti_fail_alloc(2, 1);
    for (int i = 1; i <= 4; i++) {
        void *p = xti_alloc(1);
        ck_assert((p != NULL) == (i < 2));
        xti_free(p);
    }
    xti_fail_alloc(0, 0);
}
END_TEST

START_TEST(digests_are_the_standards)
{
    static const struct {
        const char *text, *hex;
    } rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char sum[XTI_SHA256_BYTES];
        char hex[2 * XTI_SHA256_BYTES + 1];
        xti_sha256_of(rows[i].text, strlen(rows[i].text), sum);
        xti_hex(sum, sizeof sum, hex);
        ck_assert_str_eq(hex, rows[i].hex);
    }
}
END_TEST

START_TEST(sha256_is_the_same_by_instructions_and_in_c)
{
    unsigned char block[5 * XTI_SHA256_BLOCK + 3];
    fill_pattern(block, sizeof block, 1);
    for (size_t n = 0; n <= 5; n++)
        for (size_t at = 0; at <= 3; at++) {
            uint32_t a[8], b[8];
            for (uint32_t i = 0; i < 8; i++)
                a[i] = b[i] = 0x9e3779b9u * (i + 1);
            xti_sha256_blocks(a, block + at, n);
            xti_sha256_blocks_c(b, block + at, n);
            ck_assert_mem_eq(a, b, sizeof a);
        }
}
END_TEST

START_TEST(numbers_in_the_environment)
{
    static const struct {
        const char *text;
        int64_t want;
    } rows[] = {{"", 9}, {"5", 5}, {"-3", -3}, {"5x", 9}, {"x", 9}, {" 7", 7}, {"7 ", 9}};
    unsetenv("XT_THREADS");
    ck_assert_int_eq(xti_env_int(XTI_ENV_THREADS, 9), 9);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("XT_THREADS", rows[i].text, 1);
        ck_assert_msg(xti_env_int(XTI_ENV_THREADS, 9) == rows[i].want, "'%s'", rows[i].text);
    }
}
END_TEST

START_TEST(topics_of_the_log_are_a_list)
{
    static const struct {
        const char *debug;
        bool map, cache, understood;
    } rows[] = {{"", false, false, true},
                {"all", true, true, true},
                {"map", true, false, true},
                {"cache", false, true, true},
                {"map,cache", true, true, true},
                {"graph,,cache", false, true, true},
                {"maps,cach", false, false, false},
                {"al", false, false, false},
                {"alls,map", true, false, false},
                {"map,alls", true, false, false},
                {"Map", false, false, false},
                {",map,", true, false, true},
                {"graph,map,plan,src,ptx,cache,time", true, true, true}};
    unsetenv("XT_DEBUG");
    ck_assert(!xti_log_any() && !xti_log_on(XTI_LOG_MAP) && xti_log_understood());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("XT_DEBUG", rows[i].debug, 1);
        ck_assert_msg(xti_log_any() && xti_log_on(XTI_LOG_MAP) == rows[i].map &&
                          xti_log_on(XTI_LOG_CACHE) == rows[i].cache &&
                          xti_log_understood() == rows[i].understood,
                      "'%s'", rows[i].debug);
    }
}
END_TEST

START_TEST(a_line_of_the_log_is_one_line_of_stderr)
{
    int ends[2];
    char text[4096], was[2200];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(dup2(ends[1], 2), 0);
    setenv("XT_DEBUG", "map", 1);
    xti_logf(XTI_LOG_CACHE, "not asked for");
    xti_logf(XTI_LOG_MAP, "%d pieces", 3);
    memset(was, 'y', sizeof was - 1);
    was[sizeof was - 1] = 0;
    xti_logf(XTI_LOG_MAP, "%s", was); /* cut */
    ssize_t n = read(ends[0], text, sizeof text - 1);
    ck_assert_int_gt(n, 2000);
    text[n] = 0;
    const char *second = "xt: map: 3 pieces\nxt: map: yyy";
    ck_assert(!strncmp(text, second, strlen(second)) && text[n - 1] == '\n');
}
END_TEST

/* A thread of the parent that looks through libraries, as one that throws an exception does. */
static atomic_bool looks, done;

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
    for (atomic_store(&looks, true); !atomic_load(&done);)
        usleep(1000);
    return 1;
}

static void *look_through(void *arg)
{
    dl_iterate_phdr(look, NULL);
    return NULL;
}

START_TEST(the_child_of_a_fork_waits_for_no_list_of_libraries)
{
    pthread_t t;
    int status;
    ck_assert(!pthread_create(&t, NULL, look_through, NULL));
    while (!atomic_load(&looks))
        usleep(1000);
    pid_t child = fork();
    if (!child) {
        alarm(3);
        _exit(xti_stack_bytes(65536) < 65536);
    }
    ck_assert(waitpid(child, &status, 0) == child);
    atomic_store(&done, true);
    pthread_join(t, NULL);
    ck_assert_int_eq(status, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base");
    TCase *t = tcase_create("base");
    tcase_add_test(t, arithmetic_is_exact_or_says_so);
    tcase_add_test(t, what_had_no_memory_is_said_as_such);
    tcase_add_test(t, a_message_that_is_too_long_keeps_its_ends);
    tcase_add_test(t, the_first_cause_is_told_with_every_null);
    tcase_add_test(t, text_is_escaped_for_json);
    tcase_add_test(t, shapes_are_cut_where_there_is_no_room);
    tcase_add_test(t, text_that_could_not_grow_stays_failed);
    tcase_add_test(t, text_is_handed_over_as_xt_print_does);
    tcase_add_test(t, memory_that_nobody_has_is_not_given);
    tcase_add_test(t, vectors_double_or_stay_as_they_were);
    tcase_add_test(t, every_one_of_the_allocations_can_fail);
    tcase_add_test(t, digests_are_the_standards);
    tcase_add_test(t, sha256_is_the_same_by_instructions_and_in_c);
    tcase_add_test(t, numbers_in_the_environment);
    tcase_add_test(t, topics_of_the_log_are_a_list);
    tcase_add_test(t, a_line_of_the_log_is_one_line_of_stderr);
    tcase_add_test(t, the_child_of_a_fork_waits_for_no_list_of_libraries);
    suite_add_tcase(s, t);
    return run_suite(s);
}
