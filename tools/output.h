/* output.h: a file that appears whole or not at all. */
#ifndef XT_TOOLS_OUTPUT_H
#define XT_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* A regular file is written to a temporary one beside it, which takes its place in output_close, with the
 * mode and the owner of what was there, else with the umask's mode; until then only its owner can read it. A
 * symbolic link stays, its target is replaced. "-", pipes and devices are written to as they are. */
struct output {
    const char *path;
    char *target, *temp; /* NULL: not a regular file */
    int fd;
};

/* force: also to a terminal. Sweeps temporary files of runs that were killed. 0, or EXIT_BAD_INPUT after a
 * message; then there is nothing to drop. */
int output_open(struct output *o, const char *path, bool force);
/* The next bytes. 0, or EXIT_BAD_INPUT after a message. */
int output_write(struct output *o, const void *data, size_t bytes);
/* Puts the file in its place. 0, or EXIT_BAD_INPUT after a message. */
int output_close(struct output *o);
/* What is not closed leaves nothing behind. Accepts one that was closed, or never opened and {0}. */
void output_drop(struct output *o);

/* A whole file at once. */
int write_file(const char *path, const void *data, size_t bytes);

#endif
