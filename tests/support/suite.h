/* suite.h: what test programs share whatever they test: running the suite, a graph from a problem line. */
#ifndef TESTS_SUPPORT_SUITE_H
#define TESTS_SUPPORT_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xt/xt.h>

/* Sanitizers take time, stacks and, for their shadows, terabytes of addresses. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* Of each assertion that holds Check writes the place to a file, so that it can say after which one a test
 * was killed: a system call, which in loops takes more time than what they test. Here a place is written when
 * it is first passed. */
#define _mark_point(file, line)                                                                              \
    __extension__({                                                                                          \
        static char passed;                                                                                  \
        if (!__atomic_load_n(&passed, __ATOMIC_RELAXED)) {                                                   \
            __atomic_store_n(&passed, 1, __ATOMIC_RELAXED);                                                  \
            (_mark_point)(file, line);                                                                       \
        }                                                                                                    \
    })

/* XT_TEST_FULL=1: every combination, not a sample. */
static inline bool test_full(void)
{
    const char *s = getenv("XT_TEST_FULL");
    return s && *s == '1';
}

/* XT_TEST_PART=k/n: of many cases every n-th, from k < n on, so that n processes share them. */
static inline bool test_part(int i)
{
    const char *s = getenv("XT_TEST_PART");
    int k, n;
    return !s || sscanf(s, "%d/%d", &k, &n) != 2 || n < 1 || i % n == k;
}

/* Runs and frees the suite. The exit status: 0 when nothing failed. Ends with Check's counting line, which
 * tests/run.sh reads. */
static inline int run_suite(Suite *s)
{
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

/* Of a program whose tests cannot run here: says why, in Check's counting line none. The exit status. */
static inline int skip_suite(const char *name, const char *why)
{
    printf("skipped: %s: %s\n100%%: Checks: 0, Failures: 0, Errors: 0\n", name, why);
    return 0;
}

/* Bytes at random; the seed for those that follow. */
static inline uint64_t fill_pattern(void *p, size_t bytes, uint64_t seed)
{
    char *to = p;
    for (size_t i = 0; i < bytes; i += sizeof(uint32_t)) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t four = (uint32_t)(seed >> 32);
        if (bytes - i >= sizeof four)
            memcpy(to + i, &four, sizeof four);
        else
            memcpy(to + i, &four, bytes - i);
    }
    return seed;
}

static inline struct xt_graph *parse_line(const char *line)
{
    struct xt_graph *g = NULL;
    xt_status s = xt_parse(line, 0, NULL, &g);
    ck_assert_msg(s == XT_OK, "%s\n  %s", line, xt_last_error()->message);
    ck_assert_ptr_nonnull(g);
    return g;
}

#endif
