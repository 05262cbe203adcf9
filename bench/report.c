/* report.c: the table for people, JSON for machines, and which machine it was. */
#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
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

static void machine_json(FILE *f)
{
    char cpu[256], commit[64];
    struct utsname u;
    FILE *info = fopen("/proc/cpuinfo", "r");
    first_line(info, "model name", cpu, sizeof cpu);
    if (info)
        fclose(info);
    FILE *git =
        access("bench/workloads.txt", R_OK) ? NULL : popen("git rev-parse --short=12 HEAD 2>/dev/null", "r");
    first_line(git, NULL, commit, sizeof commit);
    if (git)
        pclose(git);
    uname(&u);
    fprintf(f, "{\"cpu\": ");
    json_string(f, cpu);
    fprintf(f, ", \"processors\": %ld, \"memory_bytes\": %" PRId64 ", \"page_bytes\": %ld, \"system\": ",
            sysconf(_SC_NPROCESSORS_ONLN), (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE),
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
    fprintf(f, ", \"isa\": ");
    json_string(f, getenv("XT_ISA") ? getenv("XT_ISA") : "widest");
    fprintf(f, "}");
}

void bench_json(FILE *f, const struct bench_row *rows, int n)
{
    fprintf(f, "{\"machine\": ");
    machine_json(f);
    fprintf(f, ",\n \"rows\": [");
    for (int i = 0; i < n; i++) {
        const struct bench_row *r = &rows[i];
        fprintf(f, "%s\n  {\"name\": ", i ? "," : "");
        json_string(f, r->work->name);
        fprintf(f, ", \"where\": ");
        json_string(f, r->work->where);
        fprintf(f, ", \"chain\": ");
        json_string(f, r->work->chain);
        fprintf(f,
                ", \"class\": \"%s\", \"pieces\": %d, \"strategy\": \"%s\", \"bytes_read\": %" PRId64
                ", \"bytes_written\": %" PRId64 ", \"samples\": %d, \"seconds\": %.9g, \"spread\": %.3f, "
                "\"memcpy_seconds\": %.9g, \"naive_seconds\": %.9g, \"naive_steps\": %d, \"numpy_seconds\": ",
                r->map_class, r->pieces, r->strategy, r->bytes_read, r->bytes_written, r->samples, r->seconds,
                r->spread, r->memcpy_seconds, r->naive_seconds, r->naive_steps);
        fprintf(f, r->numpy_seconds > 0 ? "%.9g}" : "null}", r->numpy_seconds);
    }
    fprintf(f, "\n]}\n");
}

static void ratio(FILE *f, double x)
{
    if (x > 0)
        fprintf(f, " %7.2f", x);
    else
        fprintf(f, " %7s", "-");
}

/* Geometric mean of the ratios that were measured. */
struct mean {
    double log_sum;
    int n;
};

static void add(struct mean *m, double x)
{
    if (x > 0) {
        m->log_sum += log(x);
        m->n++;
    }
}

static double geometric(const struct mean *m) { return m->n ? exp(m->log_sum / m->n) : 0; }

void bench_table(FILE *f, const struct bench_row *rows, int n)
{
    struct mean naive = {0}, memcpy_ = {0}, numpy = {0};
    fprintf(f, "%-20s %-12s %9s %9s %7s %7s %8s %7s %7s %5s\n", "", "", "read MB", "write MB", "ms", "spread",
            "x memcpy", "x naive", "x numpy", "steps");
    for (int i = 0; i < n; i++) {
        const struct bench_row *r = &rows[i];
        fprintf(f, "%-20s %-12s %9.1f %9.1f %7.2f %6.0f%% ", r->work->name, r->strategy,
                (double)r->bytes_read / 1e6, (double)r->bytes_written / 1e6, r->seconds * 1e3,
                r->spread * 100);
        ratio(f, r->memcpy_seconds / r->seconds);
        ratio(f, r->naive_seconds / r->seconds);
        ratio(f, r->numpy_seconds / r->seconds);
        fprintf(f, " %5d\n", r->naive_steps);
        add(&memcpy_, r->memcpy_seconds / r->seconds);
        add(&naive, r->naive_seconds / r->seconds);
        add(&numpy, r->numpy_seconds / r->seconds);
    }
    if (n > 1) {
        fprintf(f, "%-20s %-12s %9s %9s %7s %7s ", "geometric mean", "", "", "", "", "");
        ratio(f, geometric(&memcpy_));
        ratio(f, geometric(&naive));
        ratio(f, geometric(&numpy));
        fprintf(f, "\n");
    }
    fprintf(f, "x memcpy: time of a memcpy of the bytes written / time of xt (more than 1: faster than "
               "memcpy). x naive: each\n"
               "moving step a plain strided copy of its own. x numpy: NumPy on the whole chain. Medians; "
               "spread: quartiles.\n");
}
