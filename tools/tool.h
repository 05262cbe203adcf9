/* tool.h: what the commands of xt share. Includes only the public header and the C library. */
#ifndef XT_TOOLS_TOOL_H
#define XT_TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <xt/xt.h>

enum { EXIT_BAD_INPUT = 2 };

/* One line to stderr, "xt: ..", and EXIT_BAD_INPUT: `return fail("..")`. */
int fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int fail_last(const char *where); /* "xt: WHERE: <xt_last_error>" */
/* The same of xt_parse(chain), and below it the chain's line with a caret under the place. */
int fail_chain(const char *chain);

/* Options of one command: "--name VALUE", "--name=VALUE" or a flag. `value` is written for each one found. */
struct option_row {
    const char *name;   /* "--arch" or "-o" */
    const char **value; /* NULL: a flag */
    bool *flag;
};
/* Removes options from argv; *n positional arguments remain in front. 0, or EXIT_BAD_INPUT after a message.
 */
int take_options(const char *command, int *n, char **argv, const struct option_row *rows, int n_rows);

int parse_backend(const char *s, xt_backend *out); /* NULL: XT_AUTO. 0, or EXIT_BAD_INPUT */

/* The whole text that fill(arg, buf, size, &need) gives; malloc'ed; NULL on failure. */
char *whole_text(xt_status (*fill)(const void *arg, char *buf, size_t size, size_t *need), const void *arg);

/* Writes bytes to a temporary file beside path and renames it. 0, or EXIT_BAD_INPUT after a message. */
int write_file(const char *path, const void *data, size_t bytes);

/* The median of nine samples of xt_run on buffers of ordinary pages, in the caches as far as they fit. Not
 * for CUDA. 0: out of memory, or xt_last_error. (timing.c) */
double median_seconds(const struct xt_kernel *k);

int cmd_run(int n, char **argv);
int cmd_explain(int n, char **argv);
int cmd_emit(int n, char **argv);
int cmd_bench(int n, char **argv);
int cmd_pack(int n, char **argv);
int cmd_env(int n, char **argv);
int cmd_cache(int n, char **argv);

#endif
