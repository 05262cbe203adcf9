/* xt.c: the command. Each sub-command is a row; bad input is one line to stderr and exit status 2. */
#include <stdio.h>
#include <string.h>

#include "guard.h"
#include "tool.h"

static int cmd_help(int argc, char **argv);

static const struct command help_command = {"help", "[COMMAND | chain]",
                                            "what a command does; the language of chains", NULL, cmd_help};
static const struct command self = {NULL, "COMMAND ..", "compiles a chain of views into one copy", NULL,
                                    NULL};
static const struct command *const commands[] = {&run_command,   &explain_command, &bench_command,
                                                 &emit_command,  &pack_command,    &env_command,
                                                 &cache_command, &help_command};
enum { COMMANDS = sizeof commands / sizeof *commands, WHAT_COLUMN = 52 };

static int print_overview(void)
{
    printf("xt compiles a chain of views into one copy.\n\n");
    for (int i = 0; i < COMMANDS; i++) {
        const struct command *c = commands[i];
        int n = printf("  xt %s %s", c->name, c->synopsis);
        printf("%*s  %.*s\n", WHAT_COLUMN - n, "", (int)strcspn(c->what, "\n"), c->what);
    }
    printf("  %-*s  %s\n", WHAT_COLUMN - 2, "xt --version", "which xt this is");
    printf("\n"
           "  xt explain 'x: f32[4,6]; x.permute(1,0)[:, ::-1].reshape(8,3)'\n"
           "  xt run 'x; x.permute(0,2,1)' in.npy -o out.npy\n"
           "\n"
           "A chain names its inputs, then says what you would type in Python: `xt help chain`. `xt COMMAND "
           "--help` says more.\n");
    return 0;
}

static const struct command *find(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(name, commands[i]->name))
            return commands[i];
    return NULL;
}

/* topic: of help, which knows one more word. */
static int fail_unknown(const char *name, const char *topic)
{
    struct meant m = {.typed = name};
    if (strchr(name, ';'))
        return fail("a chain wants a command before it: xt run 'CHAIN' IN.npy .. -o OUT.npy, or xt explain "
                    "'CHAIN'");
    if (topic && help_chain_has(name))
        return fail("'%s' is told by `xt help chain`", name);
    for (int i = 0; i < COMMANDS; i++)
        meant_look(&m, commands[i]->name);
    if (topic)
        meant_look(&m, topic);
    return fail("there is no %s '%s'%s", topic ? "help on" : "command", name,
                *m.word ? meant_text(&m) : ": `xt` alone lists them");
}

static int cmd_help(int argc, char **argv)
{
    int first = take_options(&help_command, NULL, 0, argc, argv);
    if (first < 0)
        return EXIT_BAD_INPUT;
    if (first == argc)
        return print_overview();
    if (argc - first > 1)
        return fail_usage(&help_command, "one word, got '%s', too", argv[first + 1]);
    if (!strcmp(argv[first], "chain"))
        return print_help_chain();
    const struct command *c = find(argv[first]);
    return c ? c->run(2, (char *[]){argv[first], (char[]){"--help"}, NULL})
             : fail_unknown(argv[first], "chain");
}

static int run(int argc, char **argv)
{
    bool help = false, version = false;
    const struct option_row rows[] = {{"help", 'h', NULL, "", NULL, &help},
                                      {"version", 'V', NULL, "", NULL, &version}};
    int first = take_options(&self, rows, 2, argc, argv);
    if (first < 0)
        return EXIT_BAD_INPUT;
    if (version || (first < argc && !strcmp(argv[first], "version")))
        return printf("xt %s\n", xt_version()), 0;
    if (help || first == argc)
        return print_overview();
    const struct command *c = find(argv[first]);
    return c ? c->run(argc - first, argv + first) : fail_unknown(argv[first], NULL);
}

int main(int argc, char **argv)
{
    guard_start();
    int status = run(argc, argv);
    if (fflush(stdout) || ferror(stdout))
        return status ? status : fail("standard output: write failed");
    return status;
}
