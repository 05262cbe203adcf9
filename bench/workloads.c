/* workloads.c: reads workload lines. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static char *trimmed(const char *s, size_t n)
{
    while (n && strchr(" \t\r", s[0]))
        s++, n--;
    while (n && strchr(" \t\r", s[n - 1]))
        n--;
    return strndup(s, n);
}

/* Splits "name | where | chain | small chain" of n bytes. False when one of the first three is missing, or
 * there are more. */
static bool split(const char *line, size_t n, struct bench_workload *w)
{
    char **field[] = {&w->name, &w->where, &w->chain, &w->small};
    memset(w, 0, sizeof *w);
    for (int i = 0; i < 4; i++) {
        const char *bar = memchr(line, '|', n);
        size_t m = bar ? (size_t)(bar - line) : n;
        if (i < 2 ? !bar : i == 3 && bar)
            return false;
        *field[i] = trimmed(line, m);
        line += bar ? m + 1 : m;
        n -= bar ? m + 1 : m;
    }
    return w->small && *w->name && *w->chain;
}

int bench_workloads_read(const char *text, struct bench_workload **out, char *err, size_t err_bytes)
{
    int n = 0, cap = 0, line_number = 0;
    *out = NULL;
    while (*text) {
        size_t len = strcspn(text, "\n");
        const char *line = text;
        text += len + (text[len] == '\n');
        line_number++;
        if (line[0] == '#' || len == 0)
            continue;
        if (n == cap) {
            struct bench_workload *more = realloc(*out, (size_t)(cap = cap ? 2 * cap : 64) * sizeof *more);
            if (!more) {
                snprintf(err, err_bytes, "out of memory");
                bench_workloads_free(*out, n);
                return -1;
            }
            *out = more;
        }
        bool complete = split(line, len, &(*out)[n]);
        (*out)[n++].line = line_number;
        if (!complete) {
            snprintf(err, err_bytes, "line %d: want 'name | where it occurs | chain'", line_number);
            bench_workloads_free(*out, n);
            return -1;
        }
    }
    return n;
}

/* A declaration is "name: dtype[": nothing else in a chain has a colon, a space and a dtype. */
static size_t declared_dtype(const char *s)
{
    char name[8] = "";
    xt_dtype t;
    size_t n = strcspn(s, "[");
    if (strncmp(s, ": ", 2) || n - 2 >= sizeof name || s[n] != '[')
        return 0;
    memcpy(name, s + 2, n - 2);
    return xt_dtype_parse(name, &t) ? 0 : n;
}

char *bench_chain_as(const char *chain, const char *dtype)
{
    char *out = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);
    for (; f && *chain; chain++) {
        size_t n = declared_dtype(chain);
        if (n)
            fprintf(f, ": %s", dtype);
        else
            fputc(*chain, f);
        chain += n ? n - 1 : 0;
    }
    if (f)
        fclose(f);
    return out;
}

char *bench_chain_grown(const char *chain, int times)
{
    char *out = NULL, *end;
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);
    while (f && *chain) {
        size_t n = declared_dtype(chain);
        fwrite(chain, 1, n ? n + 1 : 1, f);
        chain += n ? n + 1 : 1;
        long long extent = n ? strtoll(chain, &end, 10) : 0;
        if (extent > 0) {
            fprintf(f, "%lld", extent * times);
            chain = end;
        }
    }
    if (f)
        fclose(f);
    return out;
}

void bench_workloads_free(struct bench_workload *w, int n)
{
    for (int i = 0; i < n; i++) {
        free(w[i].name);
        free(w[i].where);
        free(w[i].chain);
        free(w[i].small);
    }
    free(w);
}
