/* cmd_env.c: xt env and xt cache. */
#include "tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Those that are set, and in no row: typing errors look like this. */
static void print_unknown(void)
{
    for (char **at = environ; *at; at++) {
        char name[64], text[128];
        struct meant m = {.typed = name};
        struct xt_env_info e = {.size = sizeof e};
        bool known = strncmp(*at, "XT_", 3) != 0;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        for (int i = 0; i < xt_env_count() && !known && !xt_env_get(i, &e); i++) {
            known = !strcmp(name, e.name);
            meant_look(&m, e.name);
        }
        if (!known)
            printf("%-14s is set, and none of these%s\n", clean(text, sizeof text, name), meant_text(&m));
    }
}

static int cmd_env(int argc, char **argv)
{
    int first = take_options(&env_command, NULL, 0, argc, argv);
    if (first < 0)
        return EXIT_BAD_INPUT;
    if (first < argc)
        return fail("env: takes no arguments, got '%s'", argv[first]);
    for (int i = 0; i < xt_env_count(); i++) {
        struct xt_env_info e = {.size = sizeof e};
        if (xt_env_get(i, &e))
            return fail_last("env");
        printf("%-14s %s\n%14s %s%s\n", e.name, e.what, "", e.value ? "= " : "not set; default: ",
               e.value       ? e.value
               : *e.fallback ? e.fallback
                             : "empty");
    }
    print_unknown();
    return 0;
}

const struct command env_command = {"env", "", "every XT_* variable and what it does", NULL, cmd_env};

static void print_entry(void *total, const char *file, int64_t bytes, const char *what)
{
    *(int64_t *)total += bytes;
    printf("%10" PRId64 "  %.16s  %s\n", bytes, file, what);
}

static int say_off(struct xt_ctx *ctx)
{
    printf("the disk cache is off: %s\n", xt_cache_why(ctx));
    return 0;
}

static int list(struct xt_ctx *ctx)
{
    struct xt_cache_stats s = {.size = sizeof s};
    int64_t total = 0;
    if (!xt_cache_path(ctx))
        return say_off(ctx);
    if (xt_cache_list(ctx, print_entry, &total) || xt_cache_get(ctx, &s))
        return fail_last("cache");
    printf("%10" PRId64 "  bytes in %s\n", total, xt_cache_path(ctx));
    if (s.refused)
        printf("%10" PRId64 "  not used: %" PRId64 " damaged, %" PRId64
               " that others may have written, %" PRId64 " of another version or key\n",
               s.refused, s.refused_damaged, s.refused_foreign, s.refused_stale);
    return 0;
}

static int clear(struct xt_ctx *ctx)
{
    int64_t removed = 0;
    if (!xt_cache_path(ctx))
        return say_off(ctx);
    if (xt_cache_clear(ctx, &removed))
        return fail_last("cache");
    printf("%" PRId64 " removed\n", removed);
    return 0;
}

static int path(struct xt_ctx *ctx)
{
    if (!xt_cache_path(ctx))
        return fail("cache: off: %s", xt_cache_why(ctx));
    printf("%s\n", xt_cache_path(ctx));
    return 0;
}

static int cmd_cache(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(struct xt_ctx *ctx);
    } table[] = {{"list", list}, {"clear", clear}, {"path", path}};
    struct xt_ctx *ctx = NULL;
    int first = take_options(&cache_command, NULL, 0, argc, argv);
    if (first < 0)
        return EXIT_BAD_INPUT;
    const char *what = first < argc ? argv[first] : "list";
    struct meant m = {.typed = what};
    if (argc - first > 1)
        return fail_usage(&cache_command, "one word, got '%s', too", argv[first + 1]);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        meant_look(&m, table[i].name);
        if (strcmp(what, table[i].name))
            continue;
        if (xt_ctx_new(NULL, &ctx))
            return fail_last("cache");
        int status = table[i].run(ctx);
        xt_ctx_free(ctx);
        return status;
    }
    return fail("cache: '%s' is not list, clear or path%s", what, meant_text(&m));
}

const struct command cache_command = {"cache", "[list | clear | path]", "compiled kernels on disk", NULL,
                                      cmd_cache};
