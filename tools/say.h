/* say.h: what the command tells its user when something is wrong. */
#ifndef XT_TOOLS_SAY_H
#define XT_TOOLS_SAY_H

#include <stdbool.h>
#include <stddef.h>

enum { EXIT_BAD_INPUT = 2 };

/* Of help, and before each message; NULL: nothing is said. "xt" at first. */
extern const char *say_program, *say_name;

/* One line to stderr, "xt: ..", and EXIT_BAD_INPUT: `return fail("..")`. */
int fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int fail_file(const char *path, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* "xt: PATH: .." */
int fail_last(const char *where);          /* "xt: WHERE: <xt_last_error>" */
/* The same of xt_parse(chain), and below it the chain's line with a caret under the place; of a chain without
 * a ';' that the shell may have cut it. name: of one chain of several; NULL: "chain". */
int fail_chain(const char *name, const char *chain);
/* Says so of the argument of a command that is what the shell leaves of a chain without quotes, or with
 * quotes inside the same quotes, when one of the n files behind it is none. 0: it is none such. */
int fail_cut(const char *command, const char *chain, int n, char **files);

/* Text that others wrote, for a terminal: control characters (C0, DEL, C1) and bytes that are no UTF-8 become
 * \x1b. Returns dst: NUL-terminated, cut at size, at least 1. */
char *clean(char *dst, size_t size, const char *s);

/* The word that was meant: let it look at every word there is, then `word` is the nearest, or "". */
struct meant {
    const char *typed;
    char word[40];
    int distance;
};
void meant_look(struct meant *m, const char *word);
/* ": did you mean 'run'?", or "". Lives until the next call. */
const char *meant_text(const struct meant *m);

#endif
