/* guard.c: signal handlers. What they read is written by this process's one thread before the copy begins. */
#include "guard.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

static const char *volatile file;
static struct guarded *volatile maps;
static volatile sig_atomic_t bar;

static void tidy(void)
{
    if (file)
        unlink(file);
    if (bar && write(2, "\n", 1) < 0)
        bar = 0;
}

static void end(int sig)
{
    tidy();
    raise(sig); /* SA_RESETHAND: as if there were no handler */
}

/* Any thread that copies; the first one speaks. */
static void bus(int sig, siginfo_t *info, void *context)
{
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    const char *at = info->si_addr;
    (void)context;
    while (atomic_flag_test_and_set(&taken))
        pause();
    for (const struct guarded *g = maps; g; g = g->next)
        if (at >= g->data && at < g->data + g->bytes) {
            tidy();
            if (write(2, g->message, strlen(g->message)) < 0)
                _exit(EXIT_BAD_INPUT);
            _exit(EXIT_BAD_INPUT);
        }
    tidy();
    signal(sig, SIG_DFL); /* not ours: the next attempt ends the process */
}

void guard_start(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};
    struct sigaction a = {.sa_flags = SA_RESETHAND | SA_NODEFER}, old;
    a.sa_handler = end;
    for (int i = 0; i < (int)(sizeof ends / sizeof *ends); i++)
        if (!sigaction(ends[i], NULL, &old) && old.sa_handler != SIG_IGN)
            sigaction(ends[i], &a, NULL);
    a.sa_flags = SA_SIGINFO;
    a.sa_sigaction = bus;
    sigaction(SIGBUS, &a, NULL);
    signal(SIGXFSZ, SIG_IGN);
}

void guard_file(const char *path) { file = path; }

void guard_bar(bool shown) { bar = shown; }

void guard_map(struct guarded *g, const void *data, size_t bytes, const char *path, const char *what)
{
    char name[256];
    *g = (struct guarded){.data = data, .bytes = bytes, .next = maps};
    snprintf(g->message, sizeof g->message, "xt: %s: %s\n", clean(name, sizeof name, path), what);
    maps = g;
}

void guard_unmap(struct guarded *g)
{
    struct guarded *before = NULL;
    for (struct guarded *m = maps; m; before = m, m = m->next) {
        if (m != g)
            continue;
        if (before)
            before->next = g->next;
        else
            maps = g->next;
        return;
    }
}
