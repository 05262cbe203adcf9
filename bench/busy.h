/* busy.h: was the machine quiet enough for what was measured to mean something? */
#ifndef XT_BENCH_BUSY_H
#define XT_BENCH_BUSY_H

#include "bench.h"

struct busy {
    double wall, own, all; /* seconds: of a clock, of this process and its children, of all processors */
};
void busy_begin(struct busy *b);
/* What to say of a run that began then: NULL when it was quiet. Peers' processes have ended. buf's content.
 */
const char *busy_text(const struct busy *b, const struct bench_row *rows, int n, char *buf, size_t size);

#endif
