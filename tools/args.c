/* args.c: getopt_long by rows. */
#include "args.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

enum { MAX_OPTIONS = 24, LONG = 256 /* + row: what getopt_long calls an option */, HELP_COLUMN = 28 };

static const struct option_row help_row = {"help", 'h', NULL, "this text", NULL, NULL};

static void print_row(const struct option_row *r)
{
    char letter[4] = "    ";
    if (r->letter)
        snprintf(letter, sizeof letter, "-%c,", r->letter);
    int n = printf("  %-3s --%s%s%s", r->letter ? letter : "", r->name, r->value ? " " : "",
                   r->value ? r->value : "");
    printf("%*s  %s\n", n < HELP_COLUMN ? HELP_COLUMN - n : 0, "", r->what);
}

static void print_help(const struct command *c, const struct option_row *rows, int n)
{
    printf("%s %s%s%s\n\n%s\n\n", say_program, c->name, *c->synopsis ? " " : "", c->synopsis, c->what);
    for (int i = 0; i < n; i++)
        print_row(&rows[i]);
    print_row(&help_row);
    if (c->more)
        printf("\n%s", c->more);
    exit(fflush(stdout) || ferror(stdout) ? fail("standard output: write failed") : 0);
}

/* fail() of an option, and where options are told. */
__attribute__((format(printf, 2, 3))) static int fail_option(const struct command *c, const char *fmt, ...)
{
    char why[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    if (strchr(why, '?'))
        return fail("%s%s%s", c->name ? c->name : "", c->name ? ": " : "", why);
    return c->name ? fail("%s: %s; see %s %s --help", c->name, why, say_program, c->name)
                   : fail("%s; see xt --help", why);
}

/* word: as typed, "--frob=3". */
static int fail_unknown(const struct command *c, const struct option_row *rows, int n, const char *word)
{
    char name[64], could_be[256] = "";
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    struct meant m = {.typed = name};
    int starts = 0;
    for (int i = 0; i <= n; i++) {
        char row[64];
        snprintf(row, sizeof row, "--%s", i < n ? rows[i].name : help_row.name);
        meant_look(&m, row);
        if (strncmp(row, name, strlen(name)))
            continue;
        size_t at = strlen(could_be);
        snprintf(could_be + at, sizeof could_be - at, "%s%s", starts++ ? " or " : "", row);
    }
    return starts > 1 ? fail_option(c, "%s: is it %s?", name, could_be)
                      : fail_option(c, "there is no option %s%s", name, meant_text(&m));
}

static int refuse(const struct command *c, const struct option_row *rows, int n, int found, const char *word)
{
    const struct option_row *r = optopt >= LONG && optopt < LONG + n ? &rows[optopt - LONG] : &help_row;
    if (found == ':' && optopt < LONG)
        return fail_option(c, "-%c wants a value", optopt);
    if (found == ':')
        return fail_option(c, "--%s wants a value, as in --%s %s", r->name, r->name, r->value);
    if (optopt >= LONG)
        return fail_option(c, "--%s takes no value", r->name);
    if (optopt)
        return fail_option(c, "there is no option -%c", optopt);
    return fail_unknown(c, rows, n, word);
}

/* -output, or -out, instead of --output: getopt takes the first for -o utput. */
static const char *single_dash(const struct option_row *rows, int n, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        for (int k = 0; k < n && argv[i][0] == '-'; k++)
            if (strlen(argv[i]) > 3 && !strncmp(argv[i] + 1, rows[k].name, strlen(argv[i] + 1)))
                return rows[k].name;
    return NULL;
}

/* The row that getopt_long found; n: help. */
static int row_of(const struct option_row *rows, int n, int found)
{
    for (int i = 0; i < n; i++)
        if (found == LONG + i || (found == rows[i].letter && found))
            return i;
    return n;
}

int take_options(const struct command *c, const struct option_row *rows, int n, int argc, char **argv)
{
    struct option longs[MAX_OPTIONS + 2] = {{0}};
    char letters[2 * MAX_OPTIONS + 8] = "+:";
    char *at = letters + 2;
    const char *dash = single_dash(rows, n, argc, argv);
    if (dash)
        return fail_option(c, "did you mean '--%s'?", dash), -1;
    for (int i = 0; i < n; i++) {
        longs[i].name = rows[i].name;
        longs[i].has_arg = rows[i].value ? required_argument : no_argument;
        longs[i].val = LONG + i;
        if (rows[i].letter)
            at += sprintf(at, "%c%s", rows[i].letter, rows[i].value ? ":" : "");
    }
    if (c->name) {
        longs[n] = (struct option){"help", no_argument, NULL, LONG + n};
        strcpy(at, "h");
    }
    opterr = 0;
    optind = 0; /* glibc: from the start */
    for (int found; (found = getopt_long(argc, argv, letters + (c->name != NULL), longs, NULL)) != -1;) {
        if (found == '?' || found == ':')
            return refuse(c, rows, n, found, argv[optind - 1]), -1;
        int i = row_of(rows, n, found);
        if (i == n)
            print_help(c, rows, n);
        else if (rows[i].flag)
            *rows[i].flag = true;
        else if (!*optarg)
            return fail_option(c, "--%s is given nothing: as in --%s %s", rows[i].name, rows[i].name,
                               rows[i].value),
                   -1;
        else
            *rows[i].text = optarg;
    }
    return optind;
}

int fail_usage(const struct command *c, const char *fmt, ...)
{
    char why[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return fail("%s: %s; want: %s %s %s", c->name, why, say_program, c->name, c->synopsis);
}

int take_size(const char *option, const char *s, int64_t *out)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    double v = s ? strtod(s, &end) : 0, unit = 1;
    if (!s)
        return 0;
    const char *u = end > s && *end ? strchr(units, *end >= 'a' ? *end - 32 : *end) : NULL;
    if (u) {
        bool ten = (end[1] == 'B' || end[1] == 'b') && !end[2], two = !end[1] || !strcmp(end + 1, "iB");
        for (const char *p = units; p <= u; p++)
            unit *= ten ? 1000 : 1024;
        end += ten || two ? strlen(end) : 0;
    }
    if (end == s || *end || !(v * unit >= 1) || v * unit > 9e18)
        return fail("%s: '%.40s' is no size, as 256M or 2GB", option, s);
    *out = (int64_t)(v * unit);
    return 0;
}
