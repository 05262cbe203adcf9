/* cmd_bench.c: xt bench: reads workloads, measures, reports. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "contest.h"
#include "tools/tool.h"

enum { SAMPLES = 9, QUICK_SAMPLES = 3, RANDOM_CHAINS = 60 };

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t n = 0, cap = 0;
    while (f && !feof(f) && !ferror(f)) {
        char *more = cap - n < 4096 ? realloc(text, cap = cap * 2 + 8192) : text;
        if (!more)
            break;
        text = more;
        n += fread(text + n, 1, cap - n - 1, f);
    }
    bool ok = f && !ferror(f) && text;
    if (ok)
        text[n] = 0;
    if (f)
        fclose(f);
    if (!ok)
        free(text);
    return ok ? text : NULL;
}

/* How the chains of a file are changed. */
struct rewrite {
    const char *dtype; /* NULL: theirs */
    int grow;
};

static bool replace(struct bench_workload *w, char *chain)
{
    if (!chain)
        return false;
    free(w->chain);
    w->chain = chain;
    return true;
}

static bool rewrite_all(struct bench_workload *w, int n, const struct rewrite *to)
{
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        if (to->dtype)
            ok = replace(&w[i], bench_chain_as(w[i].chain, to->dtype));
        if (ok && to->grow > 1)
            ok = replace(&w[i], bench_chain_grown(w[i].chain, to->grow));
    }
    return ok;
}

static int measure_all(struct peers *peers, const struct bench_workload *w, int n, int samples,
                       struct bench_row *rows)
{
    struct xt_ctx *ctx = NULL;
    char why[512];
    int status = 0;
    if (xt_ctx_new(NULL, &ctx))
        return fail_last("bench");
    for (int i = 0; i < n && !status; i++) {
        if (isatty(2))
            fprintf(stderr, "\r%3d of %d  %-24s", i + 1, n, w[i].name);
        if (bench_measure(ctx, peers, &w[i], samples, &rows[i], why, sizeof why))
            status = fail("bench: %s: %s", w[i].name, why);
    }
    if (isatty(2))
        fprintf(stderr, "\r%40s\r", "");
    xt_ctx_free(ctx);
    return status;
}

static bool json_page(FILE *f, const struct bench_row *rows, int n)
{
    bench_json(f, rows, n);
    return true;
}

static int write_as(bool (*report)(FILE *f, const struct bench_row *rows, int n), const char *path,
                    const struct bench_row *rows, int n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    bool ok = f && report(f, rows, n);
    ok = f && !fclose(f) && ok;
    int status = ok ? write_file(path, text, size) : fail("%s: out of memory", path);
    free(text);
    return status;
}

static int measure_calls(int n)
{
    struct xt_ctx *ctx = NULL;
    if (n)
        return fail("bench: --calls takes no workload file");
    int status = xt_ctx_new(NULL, &ctx) || bench_calls(ctx, stdout) ? fail_last("bench: --calls") : 0;
    xt_ctx_free(ctx);
    return status;
}

/* Lines of a file, or those built in, or, with a seed, so many drawn at random: then path is their number. */
static char *workload_text(const char *path, const char *seed)
{
    if (seed)
        return bench_random_chains(strtoull(seed, NULL, 10), path ? atoi(path) : RANDOM_CHAINS);
    return path ? read_file(path) : strdup(bench_workloads_text);
}

/* -1 after a message. */
static int read_workloads(const char *path, const char *seed, const struct rewrite *to,
                          struct bench_workload **w)
{
    char why[256], *text = workload_text(path, seed);
    const char *what = seed ? "random chains" : path ? path : "workloads";
    if (!text) {
        fail("bench: %s: %s", what, strerror(errno));
        return -1;
    }
    int count = bench_workloads_read(text, w, why, sizeof why);
    free(text);
    if (count < 0) {
        fail("bench: %s: %s", what, why);
    } else if (!rewrite_all(*w, count, to)) {
        bench_workloads_free(*w, count);
        fail("bench: out of memory");
        return -1;
    }
    return count;
}

static int cmd_bench(int argc, char **argv)
{
    const char *json = NULL, *html = NULL, *grow = NULL, *pages = NULL, *seed = NULL;
    struct rewrite to = {.grow = 1};
    bool quick = false, calls = false, busy = false, hptt_measure = false;
    const struct option_row rows[] = {
        {"quick", 'q', NULL, "three rounds, no other libraries", NULL, &quick},
        {"json", 'j', "FILE", "all that was measured", &json, NULL},
        {"html", 0, "FILE", "a page of it for browsers", &html, NULL},
        {"as", 0, "DTYPE", "every element of this type", &to.dtype, NULL},
        {"grow", 0, "N", "the first extent of every source times N", &grow, NULL},
        {"pages", 0, "4k", "no huge pages", &pages, NULL},
        {"busy", 0, NULL, "this thread's own time, on a machine with other work: XT_THREADS=1", NULL, &busy},
        {"random", 0, "SEED", "N chains drawn at random, of the word behind: xt bench --random 1 60", &seed,
         NULL},
        {"calls", 0, NULL, "nanoseconds of a call of xt_run and of xt_compile, memcpy beside them", NULL,
         &calls},
        {"hptt-measure", 0, NULL, "HPTT by its measuring mode, too: seconds a chain", NULL, &hptt_measure},
    };
    int first = take_options(&bench_command, rows, sizeof rows / sizeof *rows, argc, argv), n = argc - first;
    if (first < 0)
        return EXIT_BAD_INPUT;
    argv += first;
    if (calls)
        return measure_calls(n);
    xt_dtype unused;
    if (to.dtype && xt_dtype_parse(to.dtype, &unused))
        return fail_last("bench: --as");
    if (grow && ((to.grow = atoi(grow)) < 1 || to.grow > 1024))
        return fail("bench: --grow: '%s' is not 1 to 1024", grow);
    if (pages && strcmp(pages, "4k"))
        return fail("bench: --pages: '%s' is not 4k", pages);
    if (pages)
        bench_refuse_huge_pages();
    if (busy && bench_threads() != 1)
        return fail("bench: --busy times one thread: XT_THREADS=1");
    if (busy)
        contest_by_own_time();
    if (n > 1)
        return fail("bench: want at most one workload file, got %d", n);
    struct bench_workload *w = NULL;
    int count = read_workloads(n ? argv[0] : NULL, seed, &to, &w);
    if (count < 0)
        return EXIT_BAD_INPUT;
    struct bench_row *measured = calloc((size_t)count + 1, sizeof *measured);
    struct peers *peers = quick || busy ? NULL : peers_open(hptt_measure);
    int samples = quick ? QUICK_SAMPLES : SAMPLES;
    int status = measured ? measure_all(peers, w, count, samples, measured) : fail("bench: out of memory");
    if (!status)
        bench_table(stdout, measured, count);
    if (!status && json)
        status = write_as(json_page, json, measured, count);
    if (!status && html)
        status = write_as(bench_html, html, measured, count);
    peers_close(peers);
    free(measured);
    bench_workloads_free(w, count);
    return status;
}

const struct command bench_command = {
    "bench", "[OPTIONS] [FILE]", "times chains against memcpy, step by step, others",
    "FILE: lines \"name | where | chain\"; without one the copies of real programs that are built in.\n"
    "\n"
    "  xt bench --quick\n"
    "  xt bench chains.txt --json results.json --html results.html\n",
    cmd_bench};
