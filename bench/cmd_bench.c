/* cmd_bench.c: xt bench: reads workloads, measures, reports. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "busy.h"
#include "cmd_pick.h"
#include "contest.h"
#include "tools/bar.h"
#include "tools/tool.h"

enum { SAMPLES = 9, QUICK_SAMPLES = 3, MOST_AT = 4096 };

static int measure_all(struct peers *peers, const struct bench_workload *w, int n, int samples,
                       struct bench_row *rows)
{
    struct xt_ctx *ctx = NULL;
    char why[512];
    int status = 0;
    if (xt_ctx_new(NULL, &ctx))
        return fail_last("bench");
    struct bar bar;
    bar_begin(&bar, n);
    for (int i = 0; i < n && !status; i++) {
        char text[64];
        snprintf(text, sizeof text, "%d of %d, %s", i + 1, n, w[i].name);
        bar_at(&bar, i, text);
        if (bench_measure(ctx, peers, &w[i], samples, &rows[i], why, sizeof why))
            status = fail("bench: %s: %s", w[i].name, why);
    }
    bar_clear();
    xt_ctx_free(ctx);
    return status;
}

static bool json_page(FILE *f, const struct bench_row *rows, int n, const struct bench_note *note)
{
    bench_json(f, rows, n, note);
    return true;
}

static int write_as(bool (*report)(FILE *f, const struct bench_row *rows, int n,
                                   const struct bench_note *note),
                    const char *path, const struct bench_row *rows, int n, const struct bench_note *note)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    bool ok = f && report(f, rows, n, note);
    ok = f && !fclose(f) && ok;
    int status = ok ? write_file(path, text, size) : fail("%s: out of memory", path);
    free(text);
    return status;
}

/* The command as it was typed, chains in quotes; what does not fit is left out. */
static void command_text(int argc, char **argv, char *out, size_t n)
{
    size_t at = (size_t)snprintf(out, n, "xt");
    for (int i = 0; i < argc && at < n; i++)
        at += (size_t)snprintf(out + at, n - at, strpbrk(argv[i], " ;()[]*") ? " '%s'" : " %s", argv[i]);
}

static int measure_calls(void)
{
    struct xt_ctx *ctx = NULL;
    int status = xt_ctx_new(NULL, &ctx) || bench_calls(ctx, stdout) ? fail_last("bench: --calls") : 0;
    xt_ctx_free(ctx);
    return status;
}

static int measure_regret(const struct pick *pick)
{
    const struct xt_options fresh = {.size = sizeof fresh, .cache_dir = ""}; /* no choice of before */
    struct bench_workload *w = NULL;
    struct xt_ctx *ctx = NULL;
    int n = pick_workloads(pick, &w);
    if (n < 0)
        return EXIT_BAD_INPUT;
    int status =
        xt_ctx_new(&fresh, &ctx) || bench_regret(ctx, w, n, stdout) ? fail_last("bench: --regret") : 0;
    xt_ctx_free(ctx);
    bench_workloads_free(w, n);
    return status;
}

static int count_words(const char *s)
{
    int n = 0;
    for (s += strspn(s, " "); *s; s += strspn(s, " ")) {
        s += strcspn(s, " ");
        n++;
    }
    return n;
}

static int measure_without(const struct pick *pick, const char *names)
{
    struct bench_workload *w = NULL;
    int sets = count_words(names);
    if (sets < 1 || sets > BENCH_SETS)
        return fail("bench: --without: %d sets, 1 to %d are taken", sets, BENCH_SETS);
    int n = pick_workloads(pick, &w);
    if (n < 0)
        return EXIT_BAD_INPUT;
    char *copy = strdup(names);
    int status = !copy                               ? fail("bench: out of memory")
                 : bench_without(copy, w, n, stdout) ? fail_last("bench: --without")
                                                     : 0;
    free(copy);
    bench_workloads_free(w, n);
    return status;
}

struct options {
    const char *json, *html, *pages, *at, *without;
    bool quick, calls, list, regret, busy, hptt_measure;
    struct pick pick;
};

static bool is_standard(const char *path) { return path && !strcmp(path, "-"); }

/* Of argc words, the command's among them: options that would do nothing. 0, or EXIT_BAD_INPUT after a
 * message. */
static int check(const struct options *o, int argc)
{
    const char *other = o->list      ? "list"
                        : o->calls   ? "calls"
                        : o->regret  ? "regret"
                        : o->without ? "without"
                                     : NULL;
    if (other && (o->json || o->html))
        return fail("bench: --json and --html are of the table of chains: without --%s", other);
    if ((o->list || o->calls) && argc > 2)
        return fail("bench: --%s stands alone", other);
    if (o->regret && o->without)
        return fail("bench: --regret and --without are two runs");
    if (other && (o->at || o->hptt_measure))
        return fail("bench: --%s is of the table of chains: without --%s", o->at ? "at" : "hptt-measure",
                    other);
    if (o->hptt_measure && (o->quick || o->busy))
        return fail("bench: --hptt-measure: there is no HPTT with --%s", o->quick ? "quick" : "busy");
    return is_standard(o->json) && is_standard(o->html) ? fail("bench: --json and --html, both to -") : 0;
}

/* 0, or EXIT_BAD_INPUT after a message. */
static int set_conditions(const struct options *o)
{
    if (o->pages && strcmp(o->pages, "4k"))
        return fail("bench: --pages: '%s' is not 4k", o->pages);
    if (o->at && (strspn(o->at, "0123456789") != strlen(o->at) || strlen(o->at) > 9 || atoi(o->at) > MOST_AT))
        return fail("bench: --at: '%s' is not 0 to %d", o->at, MOST_AT);
    if (o->busy && bench_threads() != 1)
        return fail("bench: --busy times one thread: XT_THREADS=1");
    if (o->pages)
        bench_refuse_huge_pages();
    if (o->at)
        bench_begin_at((size_t)atoi(o->at));
    if (o->busy)
        contest_by_own_time();
    return 0;
}

/* The table, and the files of it that are wanted. command: as it was typed. */
static int measure_table(const struct options *o, const char *command)
{
    struct bench_workload *w = NULL;
    struct busy busy;
    char text[512];
    int count = pick_workloads(&o->pick, &w);
    if (count < 0)
        return EXIT_BAD_INPUT;
    busy_begin(&busy);
    struct bench_row *measured = calloc((size_t)count + 1, sizeof *measured);
    struct peers *peers = o->quick || o->busy ? NULL : peers_open(o->hptt_measure);
    int samples = o->quick ? QUICK_SAMPLES : SAMPLES;
    int status = measured ? measure_all(peers, w, count, samples, measured) : fail("bench: out of memory");
    peers_close(peers);
    bool table = !is_standard(o->json) && !is_standard(o->html);
    if (!status && table)
        bench_table(stdout, measured, count);
    const char *told = status || o->busy ? NULL : busy_text(&busy, measured, count, text, sizeof text);
    if (told && table)
        printf("\n%s", told);
    const struct bench_note note = {command, told};
    if (!status && o->json)
        status = write_as(json_page, o->json, measured, count, &note);
    if (!status && o->html)
        status = write_as(bench_html, o->html, measured, count, &note);
    free(measured);
    bench_workloads_free(w, count);
    return status;
}

static int cmd_bench(int argc, char **argv)
{
    struct options o = {0};
    const struct option_row rows[] = {
        {"quick", 'q', NULL, "three rounds, no other libraries", NULL, &o.quick},
        {"json", 'j', "FILE", "all that was measured; - is standard output, without the table", &o.json,
         NULL},
        {"html", 0, "FILE", "a page of it for browsers", &o.html, NULL},
        {"as", 0, "DTYPE", "every element of this type", &o.pick.dtype, NULL},
        {"grow", 0, "N", "the first extent of every source times N", &o.pick.grow, NULL},
        {"pages", 0, "4k", "no huge pages", &o.pages, NULL},
        {"at", 0, "N", "destinations begin N bytes behind a page: 16 as large blocks of malloc's", &o.at,
         NULL},
        {"busy", 0, NULL, "this thread's own time, on a machine with other work: XT_THREADS=1", NULL,
         &o.busy},
        {"random", 0, "SEED", "so many chains drawn at random: xt bench --random 1 60", &o.pick.seed, NULL},
        {"calls", 0, NULL, "nanoseconds of a call of xt_run and of xt_compile, memcpy beside them", NULL,
         &o.calls},
        {"list", 0, NULL, "names the workloads", NULL, &o.list},
        {"regret", 0, NULL, "each chain's plan beside the best of those that it could have", NULL, &o.regret},
        {"without", 0, "SETS",
         "plans beside those without strategies or tricks: 'tile joint,merge' are two sets", &o.without,
         NULL},
        {"hptt-measure", 0, NULL, "HPTT by its measuring mode, too: seconds a chain", NULL, &o.hptt_measure},
    };
    char command[4096];
    command_text(argc, argv, command, sizeof command); /* take_options sorts the words */
    int first = take_options(&bench_command, rows, sizeof rows / sizeof *rows, argc, argv);
    if (first < 0)
        return EXIT_BAD_INPUT;
    o.pick.n = argc - first;
    o.pick.words = argv + first;
    if (check(&o, argc))
        return EXIT_BAD_INPUT;
    if (o.list)
        return pick_list(stdout);
    if (o.calls)
        return measure_calls();
    if (set_conditions(&o))
        return EXIT_BAD_INPUT;
    return o.regret    ? measure_regret(&o.pick)
           : o.without ? measure_without(&o.pick, o.without)
                       : measure_table(&o, command);
}

const struct command bench_command = {"bench", "[OPTIONS] [NAME | FILE | 'CHAIN'] ..",
                                      "times chains against memcpy, step by step, others",
                                      "NAME: of a copy of a real program; all of them when nothing is named. "
                                      "FILE: lines \"name | where | chain\".\n"
                                      "\n"
                                      "  xt bench --quick\n"
                                      "  xt bench kv_append\n"
                                      "  xt bench 'x: f32[4096,4096]; x.T'\n"
                                      "  xt bench chains.txt --json results.json --html results.html\n",
                                      cmd_bench};
