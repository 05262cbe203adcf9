/* cmd_pick.c: workload lines from names, files and chains of the command line. */
#include "cmd_pick.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/tool.h"

enum { RANDOM_CHAINS = 60, MAX_CHAINS = 100000, MAX_GROW = 1024 };

/* s as a number from least to most; 0, or EXIT_BAD_INPUT after a message. NULL: *out stays. */
static int number(const char *what, const char *s, unsigned long long least, unsigned long long most,
                  unsigned long long *out)
{
    char *end;
    if (!s)
        return 0;
    errno = 0;
    unsigned long long v = strtoull(s, &end, 10);
    if (*s < '0' || *s > '9' || *end || errno || v < least || v > most)
        return fail("bench: %s: '%s' is no number from %llu to %llu", what, s, least, most);
    *out = v;
    return 0;
}

static bool replace(struct bench_workload *w, char *chain)
{
    if (!chain)
        return false;
    free(w->chain);
    w->chain = chain;
    return true;
}

static int rewrite_all(const struct pick *p, struct bench_workload *w, int n)
{
    unsigned long long grow = 1;
    xt_dtype unused;
    bool ok = true;
    if (p->dtype && xt_dtype_parse(p->dtype, &unused))
        return fail_last("bench: --as");
    if (number("--grow", p->grow, 1, MAX_GROW, &grow))
        return EXIT_BAD_INPUT;
    for (int i = 0; i < n && ok; i++) {
        if (p->dtype)
            ok = replace(&w[i], bench_chain_as(w[i].chain, p->dtype));
        if (ok && grow > 1)
            ok = replace(&w[i], bench_chain_grown(w[i].chain, (int)grow));
    }
    return ok ? 0 : fail("bench: out of memory");
}

/* They come from a file, and go to a terminal. */
static int clean_names(struct bench_workload *w, int n)
{
    for (int i = 0; i < n; i++) {
        char name[256], *copy = strdup(clean(name, sizeof name, w[i].name));
        if (!copy)
            return fail("bench: out of memory");
        free(w[i].name);
        w[i].name = copy;
    }
    return 0;
}

/* All, so that the last one does not fail after minutes. */
static int parse_all(const struct bench_workload *w, int n)
{
    for (int i = 0; i < n; i++) {
        struct xt_graph *g = NULL;
        if (xt_parse(w[i].chain, 0, NULL, &g))
            return fail_chain(n > 1 ? w[i].name : NULL, w[i].chain);
        xt_graph_free(g);
    }
    return 0;
}

/* The line of a workload that is built in; NULL: there is none of that name. */
static const char *built_in(struct meant *m)
{
    for (const char *line = bench_workloads_text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char word[64];
        if (*line == '#' || sscanf(line, "%63s", word) != 1)
            continue;
        if (!strcmp(word, m->typed))
            return line;
        meant_look(m, word);
    }
    return NULL;
}

int pick_list(FILE *f)
{
    struct bench_workload *w = NULL;
    char why[256];
    int n = bench_workloads_read(bench_workloads_text, &w, why, sizeof why);
    for (int i = 0; i < n; i++)
        fprintf(f, "%-24s %s\n", w[i].name, w[i].where);
    bench_workloads_free(w, n > 0 ? n : 0);
    return n < 0 ? fail("bench: --list: %s", why) : 0;
}

/* Here, where the file and the line are known. */
static int check_list(const char *path, const char *text)
{
    struct bench_workload *w = NULL;
    char why[256];
    int n = bench_workloads_read(text, &w, why, sizeof why), status = 0;
    if (n < 0)
        return fail("bench: %s: %s", path, why);
    for (int i = 0; i < n && !status; i++) {
        struct xt_graph *g = NULL;
        char at[512];
        snprintf(at, sizeof at, "%s:%d: %s", path, w[i].line, w[i].name);
        status = xt_parse(w[i].chain, 0, NULL, &g) ? fail_chain(at, w[i].chain) : 0;
        xt_graph_free(g);
    }
    bench_workloads_free(w, n);
    return status;
}

static int add_file(const char *path, FILE *all)
{
    char part[4096], *text = NULL;
    size_t n, size = 0;
    FILE *f = fopen(path, "r"), *copy = f ? open_memstream(&text, &size) : NULL;
    int status = f ? 0 : fail("bench: %s: %s", path, strerror(errno));
    if (f && !copy)
        status = fail("bench: out of memory");
    while (!status && (n = fread(part, 1, sizeof part, f)))
        fwrite(part, 1, n, copy);
    if (!status && ferror(f))
        status = fail("bench: %s: %s", path, strerror(errno));
    if (copy && fclose(copy) && !status)
        status = fail("bench: out of memory");
    if (!status && memchr(text, 0, size))
        status = fail("bench: %s: a NUL byte: a list is text", path);
    if (!status)
        status = check_list(path, text);
    if (!status)
        fprintf(all, "%s\n", text);
    if (f)
        fclose(f);
    free(text);
    return status;
}

/* Named by itself, as far as a column goes. */
static void add_chain(const char *chain, FILE *text)
{
    enum { NAME = 40 };
    bool cut = strlen(chain) > NAME;
    for (int i = 0; chain[i] && i < (cut ? NAME - 2 : NAME); i++)
        fputc(chain[i] == '\n' || chain[i] == '|' ? ' ' : chain[i], text);
    fprintf(text, "%s | the command line | ", cut ? ".." : "");
    for (; *chain; chain++)
        fputc(*chain == '\n' ? ' ' : *chain, text);
    fputc('\n', text);
}

static int add_word(const char *word, FILE *text)
{
    struct meant m = {.typed = word};
    const char *line = built_in(&m);
    if (line)
        fprintf(text, "%.*s\n", (int)strcspn(line, "\n"), line);
    else if (!access(word, F_OK))
        return add_file(word, text);
    else if (strchr(word, ';'))
        add_chain(word, text);
    else
        return fail("bench: there is no workload and no file '%s'%s", word,
                    *m.word ? meant_text(&m) : ": `xt bench --list` names the workloads");
    return 0;
}

/* The lines; malloc'ed. NULL after a message. */
static char *workload_text(const struct pick *p)
{
    char *text = NULL;
    size_t size;
    unsigned long long seed = 0, chains = RANDOM_CHAINS;
    if (p->seed) {
        if (p->n > 1)
            return fail("bench: --random takes one number of chains, got '%s', too", p->words[1]), NULL;
        if (number("--random", p->seed, 0, UINT64_MAX, &seed) ||
            number("--random: chains", p->n ? p->words[0] : NULL, 1, MAX_CHAINS, &chains))
            return NULL;
        return bench_random_chains(seed, (int)chains);
    }
    FILE *f = open_memstream(&text, &size);
    int status = f ? 0 : fail("bench: out of memory");
    if (f && !p->n)
        fputs(bench_workloads_text, f);
    for (int i = 0; i < p->n && !status; i++)
        status = add_word(p->words[i], f);
    if (f && fclose(f) && !status)
        status = fail("bench: out of memory");
    if (status) {
        free(text);
        return NULL;
    }
    return text;
}

int pick_workloads(const struct pick *p, struct bench_workload **out)
{
    char why[256], *text = workload_text(p);
    if (!text)
        return -1;
    int n = bench_workloads_read(text, out, why, sizeof why);
    free(text);
    if (n < 0)
        return fail("bench: %s%s%s", p->n == 1 ? p->words[0] : "", p->n == 1 ? ": " : "", why), -1;
    if (!n)
        return fail("bench: %s: no chains in it", p->words[0]), -1;
    if (!clean_names(*out, n) && !rewrite_all(p, *out, n) && !parse_all(*out, n))
        return n;
    bench_workloads_free(*out, n);
    *out = NULL;
    return -1;
}
