/* without.c: what strategies and tricks of plans are worth: each chain by the model's plan, and by those that
 * it has without one of them (XT_WITHOUT), where they differ. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "contest.h"

enum { MOST_SETS = 1 + BENCH_SETS, MOST_SOURCES = 16, SAMPLES = 5 };

/* A set of tricks, the model's own without any first. */
struct set {
    const char *names;
    struct xt_ctx *ctx;
    int rows; /* chains whose plan it changes */
    double sum, least, most;
};

struct chain {
    void *dst, *src[MOST_SOURCES];
    int n_src;
    struct xt_kernel *k[MOST_SETS]; /* NULL: the plan is as one before it */
    char *plan[MOST_SETS];
};

static int make_set(const char *names, struct set *s)
{
    const struct xt_options fresh = {.size = sizeof fresh, .cache_dir = ""};
    *s = (struct set){.names = names, .least = INFINITY};
    setenv("XT_WITHOUT", names, 1);
    int status = xt_ctx_new(&fresh, &s->ctx);
    unsetenv("XT_WITHOUT");
    return status;
}

/* The part of an explanation that is the plan; NULL: out of memory. */
static char *plan_of(struct xt_kernel *k)
{
    size_t need = 0;
    xt_explain(k, 0, NULL, 0, &need);
    char *text = malloc(need + 1), *from, *to;
    if (!text || xt_explain(k, 0, text, need + 1, &need) || !(from = strstr(text, "\n  program")))
        return text;
    if ((to = strstr(from, "\n  choice")))
        *to = 0;
    memmove(text, from, strlen(from) + 1);
    return text;
}

static bool is_new(const struct chain *c, int i)
{
    for (int k = 0; k < i; k++)
        if (c->k[k] && !strcmp(c->plan[k], c->plan[i]))
            return false;
    return true;
}

static int compile(const struct bench_workload *w, const struct set *set, int n, struct chain *c)
{
    const struct xt_compile_options opt = {.size = sizeof opt, .backend = XT_CPU};
    struct xt_graph *g = NULL;
    int status = xt_parse(w->chain, 0, NULL, &g);
    c->n_src = status ? 0 : xt_input_count(g);
    for (int i = 0; i < n && !status; i++) {
        status = xt_compile(set[i].ctx, g, &opt, &c->k[i]);
        c->plan[i] = status ? NULL : plan_of(c->k[i]);
        if (!status && i && c->plan[i] && !is_new(c, i)) {
            xt_kernel_free(c->k[i]);
            c->k[i] = NULL;
        }
    }
    xt_graph_free(g);
    return status;
}

static bool make_buffers(struct chain *c)
{
    struct xt_kernel_info info = {.size = sizeof info};
    if (c->n_src > MOST_SOURCES || xt_kernel_get(c->k[0], &info) ||
        !(c->dst = bench_buffer((size_t)info.dst_min_bytes)))
        return false;
    for (int i = 0; i < c->n_src; i++) {
        size_t bytes = (size_t)xt_src_min_bytes(c->k[0], i);
        if (!(c->src[i] = bench_buffer(bytes)))
            return false;
        memset(c->src[i], 1, bytes);
    }
    return true;
}

static void run(void *chain, int i)
{
    struct chain *c = chain;
    xt_run(c->k[i], c->dst, (const void *const *)c->src, NULL);
}

static void note(const struct bench_workload *w, struct set *s, double ratio, FILE *f)
{
    s->rows++;
    s->sum += log(ratio);
    s->least = ratio < s->least ? ratio : s->least;
    s->most = ratio > s->most ? ratio : s->most;
    fprintf(f, "%-24s %-24s %6.2f\n", w->name, s->names, ratio);
    fflush(f);
}

/* Those that have the plan of set i. */
static bool has_plan_of(const struct chain *c, int k, int i)
{
    return k == i || (k > i && !c->k[k] && !strcmp(c->plan[k], c->plan[i]));
}

static void time_plans(const struct bench_workload *w, struct set *set, int n, struct chain *c, FILE *f)
{
    static struct contestant of[MOST_SETS];
    int m = 0, which[MOST_SETS];
    for (int i = 0; i < n; i++)
        if (c->k[i])
            which[m] = i, of[m++] = (struct contestant){.run = run, .arg = c, .which = i};
    if (m < 2 || !make_buffers(c))
        return;
    contest_rounds(of, m, SAMPLES);
    double model = contest_median(&of[0], NULL);
    for (int i = 1; i < m; i++) {
        double ratio = contest_median(&of[i], NULL) / model;
        for (int k = 1; k < n; k++)
            if (has_plan_of(c, k, which[i]))
                note(w, &set[k], ratio, f);
    }
}

static void free_chain(struct chain *c)
{
    for (int i = 0; i < MOST_SETS; i++) {
        xt_kernel_free(c->k[i]);
        free(c->plan[i]);
    }
    for (int i = 0; i < c->n_src && i < MOST_SOURCES; i++)
        free(c->src[i]);
    free(c->dst);
}

static void print_sets(const struct set *set, int n, int chains, FILE *f)
{
    fprintf(f, "\n%-24s %5s %8s %6s %6s %8s\n", "without", "rows", "x time", "least", "most", "of all");
    for (int i = 1; i < n; i++) {
        const struct set *s = &set[i];
        if (s->rows)
            fprintf(f, "%-24s %5d %8.3f %6.2f %6.2f %8.4f\n", s->names, s->rows, exp(s->sum / s->rows),
                    s->least, s->most, exp(s->sum / chains));
        else
            fprintf(f, "%-24s %5d\n", s->names, 0);
    }
}

int bench_without(char *names, const struct bench_workload *w, int n, FILE *f)
{
    static struct set set[MOST_SETS];
    int n_sets = 0, status = make_set("", &set[n_sets]);
    for (char *at = strtok(names, " "); at && !status && ++n_sets < MOST_SETS; at = strtok(NULL, " "))
        status = make_set(at, &set[n_sets]);
    n_sets += !status;
    for (int i = 0; i < n && !status; i++) {
        struct chain c = {0};
        status = compile(&w[i], set, n_sets, &c);
        if (!status)
            time_plans(&w[i], set, n_sets, &c, f);
        free_chain(&c);
    }
    if (!status)
        print_sets(set, n_sets, n, f);
    for (int i = 0; i < n_sets; i++)
        xt_ctx_free(set[i].ctx);
    return status;
}
