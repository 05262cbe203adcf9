/* bar.c: drawn with '\r' and blanks, so that any terminal shows it. */
#include "bar.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"
#include "say.h"

enum { COLUMNS = 79, MARKS = 20 };
#define FIRST_SECONDS 0.5
#define NEXT_SECONDS  0.1

static bool shown;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bar_begin(struct bar *b, int64_t total)
{
    *b = (struct bar){.total = total, .start = now(), .on = isatty(2)};
    b->drawn = b->start + FIRST_SECONDS - NEXT_SECONDS;
}

double bar_seconds(const struct bar *b) { return now() - b->start; }

void bar_at(struct bar *b, int64_t done, const char *what)
{
    char text[128], line[256];
    double t = now();
    if (!b->on || done <= 0 || done >= b->total || t - b->drawn < NEXT_SECONDS)
        return;
    double part = (double)done / (double)b->total;
    int64_t left = (int64_t)((t - b->start) * (1 - part) / part + 0.5);
    int marks = (int)(part * MARKS);
    snprintf(line, sizeof line, "[%.*s%.*s] %3d %%  %s  %lld:%02d left", marks, "####################",
             MARKS - marks, "....................", (int)(part * 100), clean(text, sizeof text, what),
             (long long)(left / 60), (int)(left % 60));
    fprintf(stderr, "\r%-*.*s", COLUMNS, COLUMNS, line);
    b->drawn = t;
    guard_bar(shown = true);
}

void bar_clear(void)
{
    if (shown)
        fprintf(stderr, "\r%*s\r", COLUMNS, "");
    guard_bar(shown = false);
}
