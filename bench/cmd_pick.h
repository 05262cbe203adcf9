/* cmd_pick.h: which chains xt bench times. */
#ifndef XT_BENCH_CMD_PICK_H
#define XT_BENCH_CMD_PICK_H

#include <stdio.h>

#include "bench.h"

struct pick {
    int n;
    char **words; /* names of workloads that are built in, files of workloads, chains. n 0: all built in */
    const char *seed;  /* not NULL: so many chains drawn at random as the one word says */
    const char *dtype; /* of every element; NULL: theirs */
    const char *grow;  /* the first extent of every source times so much; NULL: 1 */
};
/* How many; -1 after a message. *out is bench_workloads_free's. Every chain is one that parses. */
int pick_workloads(const struct pick *p, struct bench_workload **out);

/* A line for each workload that is built in: its name, where it occurs. 0, or EXIT_BAD_INPUT after a
 * message. */
int pick_list(FILE *f);

#endif
