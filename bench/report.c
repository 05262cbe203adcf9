/* report.c: the table for people, JSON for machines, a page for browsers, and which machine it was. */
#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/utsname.h>
#include <unistd.h>

static void json_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            fputc('\\', f);
        if ((unsigned char)*s < 32)
            fprintf(f, "\\u%04x", *s);
        else
            fputc(*s, f);
    }
    fputc('"', f);
}

/* The first line of a file or of a command's output that has `key` before a colon, or any line when key is
 * NULL. */
static void first_line(FILE *f, const char *key, char *out, size_t n)
{
    char line[512];
    out[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = key ? strchr(line, ':') : line - 1;
        if (!colon || (key && strncmp(line, key, strlen(key))))
            continue;
        colon++;
        colon += strspn(colon, " \t");
        snprintf(out, n, "%.*s", (int)strcspn(colon, "\n"), colon);
        return;
    }
}

/* "AMD EPYC (family 25, model 17)": the name alone often says no generation. The lines are looked for in
 * the file's order. */
static void cpu_name(char *out, size_t n)
{
    char name[128] = "", family[32] = "", model[32] = "";
    FILE *info = fopen("/proc/cpuinfo", "r");
    first_line(info, "cpu family", family, sizeof family);
    first_line(info, "model\t", model, sizeof model);
    first_line(info, "model name", name, sizeof name);
    if (info)
        fclose(info);
    if (*family && *model)
        snprintf(out, n, "%s (family %s, model %s)", name, family, model);
    else
        snprintf(out, n, "%s", name);
}

static void machine_json(FILE *f)
{
    char cpu[256], commit[64], date[32] = "";
    struct utsname u;
    time_t now = time(NULL);
    struct tm utc;
    cpu_name(cpu, sizeof cpu);
    if (gmtime_r(&now, &utc))
        strftime(date, sizeof date, "%Y-%m-%d", &utc);
    FILE *git =
        access("bench/workloads.txt", R_OK) ? NULL : popen("git rev-parse --short=12 HEAD 2>/dev/null", "r");
    first_line(git, NULL, commit, sizeof commit);
    if (git)
        pclose(git);
    uname(&u);
    fprintf(f, "{\"cpu\": ");
    json_string(f, cpu);
    fprintf(f,
            ", \"date\": \"%s\", \"processors\": %ld, \"memory_bytes\": %" PRId64
            ", \"page_bytes\": %ld, \"system\": ",
            date, sysconf(_SC_NPROCESSORS_ONLN), (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
            sysconf(_SC_PAGESIZE));
    json_string(f, u.release);
    fprintf(f, ", \"architecture\": ");
    json_string(f, u.machine);
    fprintf(f, ", \"xt\": \"%s\", \"commit\": ", xt_version());
    json_string(f, commit);
    fprintf(f, ", \"compiler\": ");
    json_string(f, __VERSION__);
    fprintf(f, ", \"threads\": ");
    json_string(f, getenv("XT_THREADS") ? getenv("XT_THREADS") : "all");
    fprintf(f, ", \"run_threads\": %d", bench_threads());
    fprintf(f, ", \"isa\": ");
    json_string(f, getenv("XT_ISA") ? getenv("XT_ISA") : "widest");
    fprintf(f, "}");
}

/* The peer that was fastest; -1: none was measured. */
static int best_peer(const struct bench_row *r)
{
    int best = -1;
    for (int i = 0; i < N_PEERS; i++)
        if (r->peer_seconds[i] > 0 && (best < 0 || r->peer_seconds[i] < r->peer_seconds[best]))
            best = i;
    return best;
}

static double best_peer_seconds(const struct bench_row *r)
{
    int best = best_peer(r);
    return best < 0 ? 0 : r->peer_seconds[best];
}

static double to_limit(const struct bench_row *r) { return r->limit_seconds / r->seconds; }
/* Implausibly far above the limit, where noise does not reach: no measurement of it, and in no mean of it. */
static bool is_doubted(const struct bench_row *r) { return to_limit(r) > 1.25; }
static double to_memcpy(const struct bench_row *r) { return r->memcpy_seconds / r->seconds; }
static double to_naive(const struct bench_row *r) { return r->naive_seconds / r->seconds; }
static double to_best_peer(const struct bench_row *r) { return best_peer_seconds(r) / r->seconds; }

/* What the naive steps move for each byte that xt moves: what fusing them saves. */
static double bytes_saved(const struct bench_row *r)
{
    return (double)r->naive_bytes / ((double)r->bytes_read + (double)r->bytes_written);
}

/* 1: all that fusing saves in bytes, it saves in time. */
static double naive_by_bytes(const struct bench_row *r) { return to_naive(r) / bytes_saved(r); }

/* More is better in each, and 0 and NaN are "not measured". */
static const struct column {
    const char *title, *key;
    double (*of)(const struct bench_row *r);
} columns[] = {
    {"x limit", "ratio_to_limit", to_limit},
    {"x memcpy", "ratio_to_memcpy", to_memcpy},
    {"x steps", "ratio_to_naive", to_naive},
    {"bytes", "ratio_of_bytes", bytes_saved},
    {"x/bytes", "ratio_to_naive_by_bytes", naive_by_bytes},
    {"x peer", "ratio_to_best_peer", to_best_peer},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* null: not measured. */
static void json_number(FILE *f, const char *key, double x)
{
    fprintf(f, ", \"%s\": ", key);
    fprintf(f, x > 0 && isfinite(x) ? "%.9g" : "null", x);
}

static void row_json(FILE *f, const struct bench_row *r)
{
    int best = best_peer(r);
    char key[32];
    fprintf(
        f,
        ", \"class\": \"%s\", \"pieces\": %d, \"strategy\": \"%s\", \"way\": \"%s\", \"bytes_read\": %" PRId64
        ", \"bytes_written\": %" PRId64
        ", \"samples\": %d, \"seconds\": %.9g, \"spread\": %.3f, \"doubted\": %s",
        r->map_class, r->pieces, r->strategy, r->way, r->bytes_read, r->bytes_written, r->samples, r->seconds,
        r->spread, is_doubted(r) ? "true" : "false");
    fprintf(f, ", \"lines_read\": %" PRId64 ", \"naive_steps\": %d, \"naive_bytes\": %" PRId64, r->lines_read,
            r->naive_steps, r->naive_bytes);
    json_number(f, "estimate_seconds", r->estimate_seconds);
    json_number(f, "limit_seconds", r->limit_seconds);
    fprintf(f, r->limit_way ? ", \"limit_way\": \"%s\"" : ", \"limit_way\": null", r->limit_way);
    json_number(f, "memcpy_seconds", r->memcpy_seconds);
    json_number(f, "naive_seconds", r->naive_seconds);
    for (int i = 0; i < N_PEERS; i++) {
        snprintf(key, sizeof key, "%s_seconds", bench_peer_name[i]);
        json_number(f, key, r->peer_seconds[i]);
    }
    for (int i = 0; i < COLUMNS; i++)
        json_number(f, columns[i].key, columns[i].of(r));
    fprintf(f, best < 0 ? ", \"best_peer\": null}" : ", \"best_peer\": \"%s\"}",
            best < 0 ? "" : bench_peer_name[best]);
}

void bench_json(FILE *f, const struct bench_row *rows, int n, const struct bench_note *note)
{
    fprintf(f, "{\"machine\": ");
    machine_json(f);
    fprintf(f, ",\n \"command\": ");
    json_string(f, note->command);
    fprintf(f, ",\n \"busy\": ");
    if (note->busy)
        json_string(f, note->busy);
    else
        fprintf(f, "null");
    fprintf(f, ",\n \"rows\": [");
    for (int i = 0; i < n; i++) {
        const struct bench_row *r = &rows[i];
        fprintf(f, "%s\n  {\"name\": ", i ? "," : "");
        json_string(f, r->work->name);
        fprintf(f, ", \"where\": ");
        json_string(f, r->work->where);
        fprintf(f, ", \"chain\": ");
        json_string(f, r->work->chain);
        row_json(f, r);
    }
    fprintf(f, "\n]}\n");
}

/* A script's end would end the page's data. */
static void without_tags(FILE *f, const char *json)
{
    for (; *json; json++)
        if (*json == '<')
            fputs("\\u003c", f);
        else
            fputc(*json, f);
}

bool bench_html(FILE *f, const struct bench_row *rows, int n, const struct bench_note *note)
{
    static const char hole[] = "@ROWS@";
    const char *at = strstr(bench_report_html, ">@ROWS@<");
    char *text = NULL;
    size_t size = 0;
    FILE *json = at ? open_memstream(&text, &size) : NULL;
    if (!json)
        return false;
    bench_json(json, rows, n, note);
    bool ok = !fclose(json);
    if (ok) {
        fprintf(f, "%.*s", (int)(at + 1 - bench_report_html), bench_report_html);
        without_tags(f, text);
        fputs(at + sizeof hole, f);
    }
    free(text);
    return ok;
}

static void ratio(FILE *f, double x, bool doubted)
{
    if (x > 0 && isfinite(x))
        fprintf(f, doubted ? " %7.2f?" : " %8.2f", x);
    else
        fprintf(f, " %8s", "-");
}

/* Was a column measured in any row? The others are left out. */
static bool is_measured(const struct column *c, const struct bench_row *rows, int n)
{
    for (int i = 0; i < n; i++)
        if (c->of(&rows[i]) > 0 && isfinite(c->of(&rows[i])))
            return true;
    return false;
}

/* Geometric mean of what was measured, and the row that is worst. */
struct summary {
    double log_sum, worst;
    int n;
    const char *worst_name;
};

static void add(struct summary *m, double x, const char *name)
{
    if (!(x > 0) || !isfinite(x))
        return;
    m->log_sum += log(x);
    if (!m->n++ || x < m->worst) {
        m->worst = x;
        m->worst_name = name;
    }
}

/* Widths of the first columns, and the column that only peers fill. */
enum { NAME = 22, WAY = 27, PEER = COLUMNS - 1 };

static void row_table(FILE *f, const struct bench_row *r, const bool *shown, struct summary *all)
{
    int best = best_peer(r);
    fprintf(f, "%-*s %-*s %7.1f %7.1f %9.5f %5.0f%%", NAME, r->work->name, WAY, r->way,
            (double)r->bytes_read / 1e6, (double)r->bytes_written / 1e6, r->seconds * 1e3, r->spread * 100);
    for (int i = 0; i < COLUMNS; i++) {
        bool doubted = columns[i].of == to_limit && is_doubted(r);
        if (shown[i])
            ratio(f, columns[i].of(r), doubted);
        if (!doubted)
            add(&all[i], columns[i].of(r), r->work->name);
    }
    if (shown[PEER])
        fprintf(f, " %-13s", best < 0 ? "" : bench_peer_name[best]);
    fprintf(f, " %5d\n", r->naive_steps);
}

static void summary_table(FILE *f, const bool *shown, const struct summary *all)
{
    fprintf(f, "%-*s", NAME + WAY + 34, "geometric mean");
    for (int i = 0; i < COLUMNS; i++)
        if (shown[i])
            ratio(f, exp(all[i].log_sum / all[i].n), false);
    fprintf(f, "\nworst:");
    const char *comma = "";
    for (int i = 0; i < COLUMNS; i++)
        if (shown[i] && all[i].n) {
            fprintf(f, "%s %s %.2f %s", comma, columns[i].title, all[i].worst, all[i].worst_name);
            comma = ",";
        }
    fprintf(f, "\n");
}

void bench_table(FILE *f, const struct bench_row *rows, int n)
{
    struct summary all[COLUMNS] = {{0}};
    bool shown[COLUMNS];
    fprintf(f, "%-*s %-*s %7s %7s %9s %6s", NAME, "copy", WAY, "way", "read MB", "wr. MB", "ms", "spread");
    for (int i = 0; i < COLUMNS; i++) {
        shown[i] = is_measured(&columns[i], rows, n);
        if (shown[i])
            fprintf(f, " %8s", columns[i].title);
    }
    if (shown[PEER])
        fprintf(f, " %-13s", "which");
    fprintf(f, " %5s\n", "steps");
    for (int i = 0; i < n; i++)
        row_table(f, &rows[i], shown, all);
    if (n > 1)
        summary_table(f, shown, all);
    fputs("\nRatios: their time / xt's time, so more is better.\n"
          "  x limit   the same lines of memory read and written as contiguous streams, by as many threads, "
          "the "
          "fastest way\n            there is: about 1 is the best there can be\n"
          "  x memcpy  of the bytes written, one thread\n"
          "  x steps   step by step: each moving step (steps) a plain strided copy, one thread\n"
          "  bytes     what these steps move / what xt moves; x/bytes: x steps / that\n",
          f);
    if (shown[PEER])
        fputs("  x peer    the fastest library found here, and which\n", f);
    for (int i = 0; i < n; i++)
        if (is_doubted(&rows[i])) {
            fputs("  ?         far above the limit: that was disturbed, or the data stay in the caches; in "
                  "no mean\n",
                  f);
            break;
        }
    fputs("Medians of interleaved runs, warm where they repeat; spread: between the quartiles.\n", f);
}
