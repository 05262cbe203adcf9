/* tool.h: what the commands of xt share. The command includes only the public header and the C library. */
#ifndef XT_TOOLS_TOOL_H
#define XT_TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <xt/xt.h>

#include "args.h"
#include "output.h"
#include "say.h"

extern const struct command run_command, explain_command, emit_command, bench_command, pack_command,
    env_command, cache_command;

int parse_backend(const char *s, xt_backend *out); /* NULL: XT_AUTO. 0, or EXIT_BAD_INPUT */

int print_help_chain(void); /* the language of chains. 0, or not: standard output fails (help_chain.c) */

/* The whole text that fill(arg, buf, size, &need) gives; malloc'ed; NULL on failure. */
char *whole_text(xt_status (*fill)(const void *arg, char *buf, size_t size, size_t *need), const void *arg);

/* The median of nine samples of xt_run on buffers of ordinary pages, in the caches as far as they fit. Not
 * for CUDA. 0: out of memory, or xt_last_error. (timing.c) */
double median_seconds(const struct xt_kernel *k);

#endif
