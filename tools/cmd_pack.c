/* cmd_pack.c: xt pack: CUDA code of a list of chains, for machines without NVRTC. A line of the list is a
 * chain, or "name | where | chain", as bench/workloads.txt has them; '#' begins a comment. */
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_ARCHS = 32 };

struct pack {
    struct xt_graph **graph;
    int n, room;
};

static char *trim(char *s)
{
    s += strspn(s, " \t\r\n");
    for (size_t n = strlen(s); n && strchr(" \t\r\n", s[n - 1]); n--)
        s[n - 1] = 0;
    return s;
}

static char *chain_of(char *line)
{
    for (int i = 0; i < 2; i++) {
        char *bar = strstr(line, " | ");
        if (!bar)
            return trim(line);
        line = bar + 3;
    }
    char *end = strstr(line, " | ");
    if (end)
        *end = 0;
    return trim(line);
}

/* at: "list.txt:3" */
static int add(struct pack *p, const char *at, const char *chain)
{
    if (p->n == p->room) {
        int room = p->room ? 2 * p->room : 64;
        struct xt_graph **more = realloc(p->graph, (size_t)room * sizeof *more);
        if (!more)
            return fail("pack: out of memory");
        p->graph = more;
        p->room = room;
    }
    if (xt_parse(chain, 0, NULL, &p->graph[p->n]))
        return fail_chain(at, chain);
    p->n++;
    return 0;
}

/* line: n bytes of the list. */
static int read_line(struct pack *p, const char *at, char *line, size_t n)
{
    if (memchr(line, 0, n))
        return fail("pack: %s: a NUL byte: a list is text", at);
    line[strcspn(line, "#")] = 0;
    char *text = trim(line), *chain = chain_of(text);
    if (!*text)
        return 0;
    return *chain ? add(p, at, chain) : fail("pack: %s: there is no chain in it", at);
}

static int read_list(struct pack *p, const char *path)
{
    char *line = NULL;
    size_t room = 0;
    int status = 0, number = 0;
    char at[512];
    FILE *f = fopen(path, "r");
    if (!f)
        return fail("pack: %s: %s", path, strerror(errno));
    for (ssize_t n; !status && (n = getline(&line, &room, f)) >= 0;) {
        snprintf(at, sizeof at, "%s:%d", path, ++number);
        status = read_line(p, at, line, (size_t)n);
    }
    if (!status && !feof(f))
        status = fail("pack: %s: %s", path, strerror(errno));
    if (!status && !p->n)
        status = fail("pack: %s: no chains in it", path);
    free(line);
    fclose(f);
    return status;
}

/* A name that is empty is one, too, and refused as such. */
static int split(char *list, const char **arch)
{
    int n = 0;
    while (list && n < MAX_ARCHS)
        arch[n++] = strsep(&list, ",");
    return n;
}

static int check_output(const char *list, const char *out)
{
    struct stat a, b;
    if (!strcmp(out, "-"))
        return fail("pack: -o -: a pack is a file");
    if (!stat(list, &a) && !stat(out, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
        return fail("pack: %s: is the list of chains itself", out);
    return 0;
}

static int cmd_pack(int argc, char **argv)
{
    const char *archs = NULL, *out = NULL, *arch[MAX_ARCHS];
    const struct option_row rows[] = {
        {"arch", 'a', "LIST", "architectures, as in sm_80,sm_90", &archs, NULL},
        {"output", 'o', "FILE.xtpack", "what is written; use it by XT_PACK=FILE.xtpack", &out, NULL},
    };
    struct pack p = {0};
    struct xt_ctx *ctx = NULL;
    int first = take_options(&pack_command, rows, 2, argc, argv);
    if (first < 0)
        return EXIT_BAD_INPUT;
    if (argc - first != 1 || !archs || !out)
        return fail_usage(&pack_command,
                          argc - first != 1 ? "one list of chains, got %d files"
                          : !archs          ? "no --arch"
                                            : "no -o",
                          argc - first);
    int wanted = 1;
    for (const char *comma = archs; (comma = strchr(comma, ',')); comma++)
        wanted++;
    if (wanted > MAX_ARCHS)
        return fail("pack: --arch: %d architectures, at most %d are taken", wanted, MAX_ARCHS);
    char *copy = strdup(archs);
    int n_archs = copy ? split(copy, arch) : 0;
    int status = copy ? check_output(argv[first], out) : fail("pack: out of memory");
    if (!status)
        status = read_list(&p, argv[first]);
    if (!status && xt_ctx_new(NULL, &ctx))
        status = fail_last("pack");
    if (!status && isatty(2))
        fprintf(stderr, "xt: compiles %d chains for %s: a second each, or less\n", p.n, archs);
    if (!status && xt_pack(ctx, p.n, (const struct xt_graph *const *)p.graph, n_archs, arch, out))
        status = fail_last("pack");
    if (!status)
        printf("%s: %d chains for %s\n", out, p.n, archs);
    for (int i = 0; i < p.n; i++)
        xt_graph_free(p.graph[i]);
    free(p.graph);
    free(copy);
    xt_ctx_free(ctx);
    return status;
}

const struct command pack_command = {
    "pack", "LIST --arch sm_80,sm_90 -o FILE.xtpack", "CUDA code of a list of chains",
    "LIST: a file of chains, one a line, or of lines \"name | where | chain\", as xt bench reads them.\n"
    "\n"
    "  xt pack chains.txt --arch sm_80,sm_90 -o my.xtpack\n",
    cmd_pack};
