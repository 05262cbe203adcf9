/* child.h: children of tests: they are there, and they end. */
#ifndef TESTS_SUPPORT_CHILD_H
#define TESTS_SUPPORT_CHILD_H

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SECONDS = 240 }; /* a busy machine may stop for minutes */

/* fork. A child that hangs is ended by SIGALRM. A test that went on without one would end every process of
 * its user, by kill(-1). */
static inline pid_t fork_child(void)
{
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_msg(pid >= 0, "fork failed: %d", errno);
    if (!pid) {
        signal(SIGALRM, SIG_DFL); /* Check's handler kills the test, and it would not be known why */
        alarm(CHILD_SECONDS);
    }
    return pid;
}

/* The wait status of a child that ends. */
static inline int end_of(pid_t child)
{
    int status = -1;
    pid_t got;
    do
        got = waitpid(child, &status, 0);
    while (got < 0 && errno == EINTR);
    ck_assert_int_eq(got, child);
    return status;
}

static inline void kill_child(pid_t child)
{
    kill(child, SIGKILL);
    end_of(child);
}

#endif
