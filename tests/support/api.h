/* api.h: what the tests of the public functions share: a context without a disk cache, a kernel from a line,
 * buffers between pages that may not be touched. */
#ifndef TESTS_SUPPORT_API_H
#define TESTS_SUPPORT_API_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/suite.h"

static inline struct xt_ctx *new_ctx(xt_backend backend, int threads)
{
    struct xt_options o = {.size = sizeof o, .backend = backend, .threads = threads, .cache_dir = ""};
    struct xt_ctx *ctx;
    ck_assert_msg(xt_ctx_new(&o, &ctx) == XT_OK, "%s", xt_last_error()->message);
    return ctx;
}

static inline struct xt_kernel *compile_line(struct xt_ctx *ctx, const char *line)
{
    struct xt_graph *g = parse_line(line);
    struct xt_kernel *k;
    xt_status s = xt_compile(ctx, g, NULL, &k);
    ck_assert_msg(s == XT_OK, "%s: %s", line, xt_last_error()->message);
    xt_graph_free(g);
    return k;
}

/* The call failed with this status and said something; or it succeeded and the last error is gone. */
#define expect(want, call)                                                                                   \
    do {                                                                                                     \
        xt_status s_ = (call);                                                                               \
        ck_assert_msg(s_ == (want), "%s: %s, want %s: %s", #call, xt_status_name(s_), xt_status_name(want),  \
                      xt_last_error()->message);                                                             \
        ck_assert_msg(xt_last_error()->status == s_, "%s: xt_last_error has %s", #call,                      \
                      xt_status_name(xt_last_error()->status));                                              \
        ck_assert_msg(!s_ == !xt_last_error()->message[0], "%s: message '%s'", #call,                        \
                      xt_last_error()->message);                                                             \
    } while (0)

/* The caller frees it. */
static inline char *explanation_of(const struct xt_kernel *k, int flags)
{
    size_t need = 0;
    expect(XT_OK, xt_explain(k, flags, NULL, 0, &need));
    char *text = malloc(need);
    expect(XT_OK, xt_explain(k, flags, text, need, NULL));
    return text;
}

/* Bytes between two pages that fault. at_end: the byte after the last is in the upper one, else the byte
 * before the first is in the lower one. The rest of the last page is filled with SLACK. */
enum { SLACK = 0x5a };
struct guarded {
    unsigned char *map, *p;
    size_t map_bytes, bytes;
};

static inline struct guarded guard(size_t bytes, bool at_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = (bytes + page - 1) / page * page;
    struct guarded g = {.map_bytes = inner + 2 * page, .bytes = bytes};
    g.map = mmap(NULL, g.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(g.map, MAP_FAILED);
    if (inner) {
        ck_assert_int_eq(mprotect(g.map + page, inner, PROT_READ | PROT_WRITE), 0);
        memset(g.map + page, SLACK, inner);
    }
    g.p = g.map + page + (at_end ? inner - bytes : 0);
    return g;
}

/* False: a byte beside the buffer, in the pages that can be written, was. */
static inline bool slack_is_whole(const struct guarded *g)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (const unsigned char *c = g->map + page; c < g->map + g->map_bytes - page; c++)
        if ((c < g->p || c >= g->p + g->bytes) && *c != SLACK)
            return false;
    return true;
}

static inline void unguard(struct guarded *g) { munmap(g->map, g->map_bytes); }

/* What a test is about when it faults: set it, and the handler prints it. */
extern char now_running[2048];

static inline void print_and_die(int sig)
{
    static const char head[] = "fault while running: ";
    if (write(STDERR_FILENO, head, sizeof head - 1) < 0 ||
        write(STDERR_FILENO, now_running, strlen(now_running)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
        _exit(99);
    signal(sig, SIG_DFL);
    raise(sig);
}

static inline void tell_faults(void)
{
    signal(SIGSEGV, print_and_die);
    signal(SIGBUS, print_and_die);
}

#endif
