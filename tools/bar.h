/* bar.h: how far a long run is, on the last line of a terminal. */
#ifndef XT_TOOLS_BAR_H
#define XT_TOOLS_BAR_H

#include <stdbool.h>
#include <stdint.h>

struct bar {
    int64_t total;
    double start, drawn; /* seconds of a clock */
    bool on;             /* stderr is a terminal */
};
void bar_begin(struct bar *b, int64_t total);
/* Draws after half a second, then ten times a second: percent, what, the time that is left. */
void bar_at(struct bar *b, int64_t done, const char *what);
double bar_seconds(const struct bar *b); /* since bar_begin */
/* Clears the line, if a bar is there: before anything else is printed. */
void bar_clear(void);

#endif
