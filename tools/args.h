/* args.h: a command, its options, and the help that is made of them. */
#ifndef XT_TOOLS_ARGS_H
#define XT_TOOLS_ARGS_H

#include <stdbool.h>
#include <stdint.h>

struct command {
    const char *name;                  /* "run"; NULL: xt itself */
    const char *synopsis;              /* "'CHAIN' IN.npy .. -o OUT.npy" */
    const char *what;                  /* in the list of commands */
    const char *more;                  /* lines below the options; may be NULL */
    int (*run)(int argc, char **argv); /* argv[0]: the name. The exit status */
};

struct option_row {
    const char *name;  /* "output": --output */
    char letter;       /* 'o': -o; 0: none */
    const char *value; /* what help calls its value; NULL: it has none, it is a flag */
    const char *what;  /* in the help */
    const char **text; /* where the value goes, or .. */
    bool *flag;        /* .. what becomes true */
};

/* Reads the options by getopt_long; then argv[first .. argc) is what is left. Returns first; -1 after a
 * message. --help is there without a row: it prints the help and exits. Of xt itself only options before the
 * first other word are read, and it has no help of its own. */
int take_options(const struct command *c, const struct option_row *rows, int n, int argc, char **argv);

/* fail(), and behind it what the command wants. */
int fail_usage(const struct command *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The value of an option that is a size; NULL: *out stays. "256M": 2^20, as "256MiB"; "256MB": 10^6. 0, or
 * EXIT_BAD_INPUT after a message. */
int take_size(const char *option, const char *s, int64_t *out);

#endif
