/* helper.c: starts the compile helper and asks it. Layer 4. */
#include "cuda/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "cuda/message.h"
#include "cuda/nvrtc.h"
#include "cuda/writer.h"

/* What a helper gets to answer, and to end once it has hung up; between looks whether it has. */
enum { ANSWER_MS = 150000, END_MS = 2000, NAP_MS = 10 };

/* One compile in a helper. */
struct call {
    const char *path;
    char beside[PATH_MAX];
    int fd; /* this end of the socket, or -1 */
    pid_t pid;
    int pid_fd; /* names the process even when somebody else has waited for it; -1: there is none */
};

/* A host may wait for all children itself, and another one have the pid then: a helper leads a group, which a
 * stranger with its pid hardly does. */
enum { BY_PID_FD = 3 /* P_PIDFD, which older headers lack */ };

/* Seen from the library: in lib or bin of a prefix, in lib/<triple>, in a build directory. */
static const char *const places[] = {"../libexec/xtview/xt-cc", "../../libexec/xtview/xt-cc", "xt-cc"};

/* One that was found, not named, is run only when nobody but root and this user can have written it. */
static bool trusted(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode) && (st.st_uid == 0 || st.st_uid == geteuid()) &&
           !(st.st_mode & (S_IWGRP | S_IWOTH)) && !access(path, X_OK);
}

static xt_status find(struct call *c, const char *helper, struct xti_err *err)
{
    if ((c->path = helper))
        return XT_OK;
    c->path = c->beside;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (xti_path_beside(places[i], c->beside, sizeof c->beside) && trusted(c->beside))
            return XT_OK;
    return xti_fail(err, XT_ECOMPILE,
                    "no xt-cc, which compiles CUDA code for xt: %s is none, nor is one in ../libexec/xtview; "
                    "install it, set XT_CC to its path, or to nothing to have NVRTC run in this process",
                    c->beside);
}

/* A socket that is none of the descriptors 0 to 2, whatever the host has closed. */
static int lifted(int fd)
{
    int high = fd >= 0 && fd < 3 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : fd;
    if (high != fd)
        close(fd);
    return high;
}

/* The helper reads its request from descriptor 0, has no other but /dev/null, the host's environment but for
 * LD_LIBRARY_PATH, or the host's signal mask and handlers. */
static int spawn(struct call *c, int theirs)
{
    char *argv[] = {(char *)c->path, NULL}, *env[] = {NULL, NULL};
    const char *inherited = secure_getenv("LD_LIBRARY_PATH");
    struct xti_str text = {0};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t set;
    if (inherited)
        xti_str_addf(&text, "LD_LIBRARY_PATH=%s", inherited);
    env[0] = text.s;
    int e = text.failed ? ENOMEM : posix_spawn_file_actions_init(&files);
    if (e) {
        xti_str_free(&text);
        return e;
    }
    e = posix_spawnattr_init(&attr);
    if (!e) {
        sigemptyset(&set);
        posix_spawnattr_setsigmask(&attr, &set);
        sigfillset(&set);
        posix_spawnattr_setsigdefault(&attr, &set);
        posix_spawnattr_setflags(&attr,
                                 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
        if (!(e = posix_spawn_file_actions_adddup2(&files, theirs, 0)) &&
            !(e = posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0)) &&
            !(e = posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0)))
            e = posix_spawn(&c->pid, c->path, &files, &attr, argv, env);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    xti_str_free(&text);
    return e;
}

/* 1: it has ended; 0: it runs; below 0: somebody else has waited for it. */
static int look(const struct call *c)
{
    siginfo_t end = {0};
    int r = waitid(P_PGID, (id_t)c->pid, &end, WEXITED | WNOHANG | WNOWAIT);
    return r ? r : end.si_pid != 0;
}

static xt_status start(struct call *c, struct xti_err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return xti_fail(err, XT_ECOMPILE, "a socket for xt-cc: %s", strerror(errno));
    c->fd = lifted(ends[0]);
    int theirs = lifted(ends[1]);
    int e = c->fd < 0 || theirs < 0 ? errno : spawn(c, theirs);
    if (theirs >= 0)
        close(theirs);
    if (e)
        return xti_fail(err, XT_ECOMPILE, "%s cannot be started: %s", c->path, strerror(e));
    c->pid_fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    if (c->pid_fd >= 0 && look(c) < 0) { /* whose it is is not known */
        close(c->pid_fd);
        c->pid_fd = -1;
    }
    return XT_OK;
}

static bool ends_within(const struct call *c, int ms)
{
    struct pollfd ended = {.fd = c->pid_fd, .events = POLLIN};
    int64_t until = xti_now_ns() + (int64_t)ms * 1000000, left = ms;
    do {
        bool by_fd = c->pid_fd >= 0;
        int n = poll(&ended, by_fd, (int)(by_fd || left < NAP_MS ? left : NAP_MS));
        if (by_fd ? n > 0 : look(c))
            return true;
        left = (until - xti_now_ns()) / 1000000;
    } while (left > 0);
    return false;
}

static int wait_by(int what, int id, siginfo_t *end)
{
    int r;
    do
        r = waitid((idtype_t)what, (id_t)id, end, WEXITED);
    while (r && errno == EINTR);
    return r;
}

/* Ends it when it does not do so itself in that time. How it ended, as far as that can be known. */
static void finish(struct call *c, int end_ms, char *how, size_t size)
{
    siginfo_t end = {0};
    bool by_fd = c->pid_fd >= 0, ended = ends_within(c, end_ms);
    *how = 0;
    if (!ended && by_fd)
        syscall(SYS_pidfd_send_signal, c->pid_fd, SIGKILL, NULL, 0);
    else if (!ended)
        kill(-c->pid, SIGKILL);
    int r = by_fd ? wait_by(BY_PID_FD, c->pid_fd, &end) : -1;
    if (!by_fd || (r && errno == EINVAL)) /* Linux 5.3 */
        r = wait_by(P_PGID, c->pid, &end);
    if (!r && end.si_code != CLD_EXITED)
        snprintf(how, size, ", by signal %d", end.si_status);
    else if (!r && end.si_status)
        snprintf(how, size, ", with status %d", end.si_status);
    if (by_fd)
        close(c->pid_fd);
}

static xt_status ask(const struct call *c, const struct xti_nvrtc *n, const char *source, const char *name,
                     int sm)
{
    struct xti_str b = {0};
    xti_message_field(&b, XT_VERSION, sizeof XT_VERSION);
    xti_message_field(&b, n->path, strlen(n->path) + 1);
    xti_message_field(&b, n->build, strlen(n->build) + 1);
    xti_message_number(&b, getpid());
    xti_message_number(&b, sm);
    xti_message_field(&b, name, strlen(name) + 1);
    xti_message_field(&b, source, strlen(source) + 1);
    xt_status s = xti_message_send(c->fd, c->pid_fd, ANSWER_MS, &b);
    xti_str_free(&b);
    return s;
}

/* The program may be any: PTX ends where its first NUL is, and a compile has few ways to fail. */
static xt_status take_code(struct xti_message *m, struct xti_code *out, struct xti_err *err)
{
    size_t ptx_bytes, cubin_bytes;
    int64_t s = xti_message_take_number(m);
    const char *why = xti_message_text(m), *ptx = xti_message_take(m, &ptx_bytes);
    const void *cubin = xti_message_take(m, &cubin_bytes);
    bool text = ptx_bytes && memchr(ptx, 0, ptx_bytes) == ptx + ptx_bytes - 1;
    if (m->bad || (s ? s != XT_ECOMPILE && s != XT_ENOMEM : !text))
        return xti_fail(err, XT_ECOMPILE, "xt-cc answered nonsense");
    if (s)
        return xti_fail(err, (xt_status)s, "%s", why);
    out->ptx = xti_memdup(ptx, ptx_bytes);
    out->ptx_bytes = ptx_bytes;
    out->cubin = cubin_bytes ? xti_memdup(cubin, cubin_bytes) : NULL;
    out->cubin_bytes = cubin_bytes;
    if (out->ptx && (out->cubin || !cubin_bytes))
        return XT_OK;
    xti_code_free(out);
    return xti_fail(err, XT_ENOMEM, "code of a kernel, %zu bytes", ptx_bytes + cubin_bytes);
}

static xt_status in_helper(const char *helper, const struct xti_nvrtc *n, const char *source,
                           const char *name, int sm, struct xti_code *out, struct xti_err *err)
{
    struct call c = {.fd = -1};
    struct xti_message m = {0};
    char how[48];
    xt_status s = find(&c, helper, err);
    if (!s)
        s = start(&c, err);
    if (s) {
        if (c.fd >= 0)
            close(c.fd);
        return s;
    }
    xt_status heard = ask(&c, n, source, name, sm);
    heard = heard ? heard : xti_message_receive(c.fd, c.pid_fd, ANSWER_MS, &m);
    close(c.fd);
    finish(&c, heard == XT_EDEVICE ? 0 : END_MS, how, sizeof how);
    if (heard == XT_ENOMEM)
        s = xti_fail(err, XT_ENOMEM, "what xt-cc is asked or answers");
    else if (heard)
        s = xti_fail(err, XT_ECOMPILE, "%s ended%s without an answer for %s: %s", c.path, how, name,
                     heard == XT_EDEVICE ? "it took too long" : "out of time or memory, or no xt-cc");
    else
        s = take_code(&m, out, err);
    xti_message_free(&m);
    return s;
}

/* XT_DUMP. A file that cannot be written changes nothing. */
static void dump(const char *name, const char *suffix, const void *data, size_t bytes)
{
    char path[PATH_MAX];
    const char *dir = xti_env(XTI_ENV_DUMP);
    if (!dir || !*dir || !data)
        return;
    int n = snprintf(path, sizeof path, "%s/%s.%s", dir, name, suffix);
    FILE *f = n > 0 && (size_t)n < sizeof path && !xti_file_exceeds(bytes) ? fopen(path, "wb") : NULL;
    bool ok = f && fwrite(data, 1, bytes, f) == bytes;
    if (f && fclose(f))
        ok = false;
    if (!ok)
        xti_logf(XTI_LOG_SRC, "XT_DUMP: %s cannot be written", path);
}

xt_status xti_cuda_compile(const char *helper, const struct xti_nvrtc *n, const char *source,
                           const char *name, int sm, struct xti_code *out, struct xti_err *err)
{
    const char *chosen = helper ? helper : xti_env(XTI_ENV_CC);
    *out = (struct xti_code){0};
    dump(name, "cu", source, strlen(source));
    xt_status s = chosen && !*chosen ? xti_nvrtc_compile(n, source, name, sm, out, err)
                                     : in_helper(chosen, n, source, name, sm, out, err);
    if (s)
        return s;
    dump(name, "ptx", out->ptx, out->ptx_bytes - 1);
    dump(name, "cubin", out->cubin, out->cubin_bytes);
    xti_cuda_log_text(XTI_LOG_PTX, name, out->ptx);
    return XT_OK;
}
