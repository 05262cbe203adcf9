/* tool.c: messages, options and files of the commands. */
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fail(const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    for (char *c = line; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    fflush(stdout);
    fprintf(stderr, "xt: %s\n", line);
    return EXIT_BAD_INPUT;
}

int fail_last(const char *where)
{
    const struct xt_error *e = xt_last_error();
    return fail("%s: %s", where, e->status ? e->message : "failed without a reason");
}

/* Columns that a terminal takes for [s, end): UTF-8's later bytes take none. */
static int width(const char *s, const char *end)
{
    int n = 0;
    for (; s < end; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static void print_line(const char *s, const char *end)
{
    for (; s < end; s++)
        fputc(*s == '\t' || *s == '\r' ? ' ' : *s, stderr);
}

int fail_chain(const char *chain)
{
    enum { BEFORE = 60, COLUMNS = 100 }; /* of a long line */
    int column = xt_last_error()->column, status = fail_last("chain");
    if (column < 1 || (size_t)column > strlen(chain) + 1)
        return status;
    const char *place = chain + column - 1, *start = place, *end = place;
    while (start > chain && start[-1] != '\n')
        start--;
    end += strcspn(place, "\n");
    bool cut = width(start, place) > BEFORE;
    while (cut && width(start, place) > BEFORE)
        start++;
    bool cut_end = width(start, end) > COLUMNS;
    while (width(start, end) > COLUMNS)
        end--;
    fprintf(stderr, "  %s", cut ? ".." : "");
    print_line(start, end);
    fprintf(stderr, "%s\n  %*s^\n", cut_end ? ".." : "", width(start, place) + 2 * cut, "");
    return status;
}

static const struct option_row *find(const char *arg, const struct option_row *rows, int n)
{
    for (int i = 0; i < n; i++) {
        size_t len = strlen(rows[i].name);
        if (!strncmp(arg, rows[i].name, len) && (!arg[len] || (arg[len] == '=' && !strncmp(arg, "--", 2))))
            return &rows[i];
    }
    return NULL;
}

int take_options(const char *command, int *n, char **argv, const struct option_row *rows, int n_rows)
{
    int kept = 0;
    for (int i = 0; i < *n; i++) {
        if (argv[i][0] != '-' || !argv[i][1]) {
            argv[kept++] = argv[i];
            continue;
        }
        const struct option_row *r = find(argv[i], rows, n_rows);
        const char *equals = strchr(argv[i], '=');
        if (!r)
            return fail("%s: unknown option %s", command, argv[i]);
        if (r->flag && equals)
            return fail("%s: %s takes no value", command, r->name);
        if (r->flag)
            *r->flag = true;
        else if (equals)
            *r->value = equals + 1;
        else if (i + 1 < *n)
            *r->value = argv[++i];
        else
            return fail("%s: %s wants a value", command, r->name);
    }
    *n = kept;
    return 0;
}

int parse_backend(const char *s, xt_backend *out)
{
    static const char *const name[] = {"ref", "cpu", "cuda"};
    static const xt_backend value[] = {XT_REF, XT_CPU, XT_CUDA};
    *out = XT_AUTO;
    if (!s)
        return 0;
    for (int i = 0; i < 3; i++)
        if (!strcmp(s, name[i]))
            *out = value[i];
    return *out ? 0 : fail("--backend: '%s' is not ref, cpu or cuda", s);
}

char *whole_text(xt_status (*fill)(const void *, char *, size_t, size_t *), const void *arg)
{
    size_t need = 0;
    if (fill(arg, NULL, 0, &need))
        return NULL;
    char *s = malloc(need);
    if (s && fill(arg, s, need, &need)) {
        free(s);
        return NULL;
    }
    return s;
}

int write_file(const char *path, const void *data, size_t bytes)
{
    size_t n = strlen(path) + 32;
    char *tmp = malloc(n);
    if (!tmp)
        return fail("%s: out of memory", path);
    snprintf(tmp, n, "%s.%ld.tmp", path, (long)getpid());
    FILE *f = fopen(tmp, "wb");
    bool ok = f && fwrite(data, 1, bytes, f) == bytes;
    ok = f && !fclose(f) && ok && !rename(tmp, path);
    if (!ok)
        fail("%s: cannot be written: %s", path, strerror(errno));
    if (!ok && f)
        remove(tmp);
    free(tmp);
    return ok ? 0 : EXIT_BAD_INPUT;
}
