/* inject.c: see inject.h. */
#include "support/inject.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__

static void child(int (*body)(void *arg), void *arg)
{
    if (ptrace(PTRACE_TRACEME, 0, 0, 0))
        _exit(120);
    kill(getpid(), SIGSTOP);
    _exit(body(arg));
}

/* Not: calls that no kernel has fail, or whose failure the C library takes for its own error; brk, which has
 * no errno. */
static bool can_fail(long call)
{
    static const long never[] = {SYS_exit,         SYS_exit_group,      SYS_futex,
                                 SYS_rt_sigreturn, SYS_restart_syscall, SYS_brk};
    for (unsigned i = 0; i < sizeof never / sizeof *never; i++)
        if (call == never[i])
            return false;
    return true;
}

static long get(pid_t pid, size_t at) { return ptrace(PTRACE_PEEKUSER, pid, at, 0); }
static void set(pid_t pid, size_t at, long v) { ptrace(PTRACE_POKEUSER, pid, at, v); }
#define REGISTER(name) offsetof(struct user, regs.name)

static void begin_call(pid_t pid, struct injection what, struct injected *r)
{
    if (++r->calls != what.at)
        return;
    r->call = get(pid, REGISTER(orig_rax));
    r->reached = !what.error || can_fail(r->call);
    if (!what.error)
        kill(pid, SIGKILL);
    else if (r->reached)
        set(pid, REGISTER(orig_rax), -1);
}

struct injected inject(int (*body)(void *arg), void *arg, struct injection what)
{
    struct injected r = {0};
    bool inside = false;
    int forward = 0;
    pid_t pid = fork();
    if (!pid)
        child(body, arg);
    if (pid < 0 || waitpid(pid, &r.status, 0) != pid || !WIFSTOPPED(r.status))
        return r;
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    while (!ptrace(PTRACE_SYSCALL, pid, 0, forward) || errno == ESRCH) {
        forward = 0;
        if (waitpid(pid, &r.status, 0) != pid || !WIFSTOPPED(r.status))
            break;
        if (WSTOPSIG(r.status) != (SIGTRAP | 0x80)) {
            forward = WSTOPSIG(r.status);
            continue;
        }
        inside = !inside;
        if (inside)
            begin_call(pid, what, &r);
        else if (r.calls == what.at && what.error && r.reached)
            set(pid, REGISTER(rax), -what.error);
    }
    return r;
}

static int nothing(void *arg) { return 7; }

const char *inject_unable(void)
{
    struct injected r = inject(nothing, NULL, (struct injection){0});
    return r.calls == 1 && WIFEXITED(r.status) && WEXITSTATUS(r.status) == 7 ? NULL
                                                                             : "ptrace is not allowed here";
}

#else
const char *inject_unable(void) { return "system calls are injected into on x86-64 alone"; }
struct injected inject(int (*body)(void *arg), void *arg, struct injection what)
{
    return (struct injected){0};
}
#endif
