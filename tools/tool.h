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
bool help_chain_has(const char *word); /* does that text tell of it? */

/* The text of what is given, by the function of its header, with these flags: malloc'ed; NULL after a
 * message. One of the three is not NULL. */
struct explained {
    const struct xt_kernel *kernel;
    const struct xt_shard *shard;
    const struct xt_files *files;
    int flags;
};
char *explanation(const struct explained *e);

/* The median of nine samples of xt_run on buffers of ordinary pages, in the caches as far as they fit. Not
 * for CUDA. 0: out of memory, or xt_last_error. (timing.c) */
double median_seconds(const struct xt_kernel *k);

#endif
