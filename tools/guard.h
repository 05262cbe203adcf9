/* guard.h: what becomes of files when the process is ended, or a file shrinks while it is mapped. */
#ifndef XT_TOOLS_GUARD_H
#define XT_TOOLS_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* From now on SIGINT, SIGTERM, SIGHUP, SIGXCPU remove guard_file's file and then end the process, as they do.
 * Those that are ignored stay so. SIGXFSZ is: a write then fails. */
void guard_start(void);

/* The temporary file there is, at most one; NULL: none. The path must live until the next call. */
void guard_file(const char *path);

/* A mapped file: when a page of it cannot be had (SIGBUS), `message` goes to stderr and the process ends with
 * EXIT_BAD_INPUT. Lives until guard_unmap. */
struct guarded {
    const char *data;
    size_t bytes;
    char message[400];
    struct guarded *next;
};
void guard_map(struct guarded *g, const void *data, size_t bytes, const char *path, const char *what);
void guard_unmap(struct guarded *g); /* accepts one that is not mapped */

/* A bar stands in the last line: a signal ends it. */
void guard_bar(bool shown);

#endif
