/* test_helper.c: CUDA code is compiled by xt-cc, and whatever happens there or in its host, the host sees a
 * status: signals, forks, small stacks, missing descriptors, helpers that are missing, die, hang up or talk
 * nonsense, messages that are damaged. */
#include "support/api.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/os.h"
#include "cuda/helper.h"
#include "cuda/message.h"
#include "support/child.h"
#include "support/cuda_made.h"
#include "support/scratch.h"

static void write_script(const char *path, const char *text, int mode)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    chmod(path, (mode_t)mode);
}

/* A helper in a directory of its own, which the caller removes: a script; text NULL: no file. Its path. */
static const char *put_helper(char dir[SCRATCH_PATH], const char *text, int mode)
{
    static char path[SCRATCH_PATH + 8];
    make_scratch(dir, "helper");
    snprintf(path, sizeof path, "%s/xt-cc", dir);
    if (text)
        write_script(path, text, mode);
    return path;
}

static const char source[] = "extern \"C\" __global__ void k(int *p) { *p = 7; }";

static const struct xti_nvrtc *nvrtc(void) { return xti_nvrtc_for(90, 0, NULL); }

static xt_status compile(const char *helper, struct xti_err *err)
{
    struct xti_code c;
    xt_status s = xti_cuda_compile(helper, nvrtc(), source, "k", 90, &c, err);
    if (!s)
        xti_code_free(&c);
    return s;
}

static void compiles(void)
{
    struct xti_err err = {0};
    ck_assert_msg(!compile(NULL, &err), "%s", err.e.message);
}

static int open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

START_TEST(the_helper_makes_the_bytes_that_this_process_makes)
{
    struct xti_code here, there;
    struct xti_err err = {0};
    if (cuda_skipped())
        return;
    ck_assert_msg(!xti_cuda_compile("", nvrtc(), source, "k", 90, &here, &err), "%s", err.e.message);
    ck_assert_msg(!xti_cuda_compile(NULL, nvrtc(), source, "k", 90, &there, &err), "%s", err.e.message);
    ck_assert_uint_eq(here.ptx_bytes, there.ptx_bytes);
    ck_assert_uint_eq(here.cubin_bytes, there.cubin_bytes);
    ck_assert(!memcmp(here.ptx, there.ptx, here.ptx_bytes) &&
              !memcmp(here.cubin, there.cubin, here.cubin_bytes));
    xti_code_free(&here);
    xti_code_free(&there);
}
END_TEST

START_TEST(the_compilers_words_come_through)
{
    struct xti_code c;
    struct xti_err err = {0};
    if (cuda_skipped())
        return;
    ck_assert_int_eq(
        xti_cuda_compile(NULL, nvrtc(), "extern \"C\" __global__ void k() { lost; }", "k", 90, &c, &err),
        XT_ECOMPILE);
    ck_assert_msg(strstr(err.e.message, "lost"), "%s", err.e.message);
}
END_TEST

/* ---- the host */

static atomic_int caught;
static void count_signal(int sig) { atomic_fetch_add(&caught, 1); }

static void *compile_some(void *arg)
{
    for (int i = 0; i < 6; i++) {
        struct xti_err err = {0};
        if (compile(NULL, &err))
            atomic_store((atomic_int *)arg, 1);
    }
    return NULL;
}

/* In the process itself NVRTC ends the host with status 4 in such a moment. */
START_TEST(a_hosts_own_handlers_run_during_compiles)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGXFSZ, SIGCHLD};
    pthread_t thread[3];
    atomic_int failed = 0;
    if (cuda_skipped())
        return;
    struct sigaction a = {.sa_handler = count_signal}, now; /* no SA_RESTART */
    for (int i = 0; i < 4; i++)
        sigaction(signals[i], &a, NULL);
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, compile_some, &failed);
    int before = atomic_load(&caught);
    for (int i = 0; i < 300; i++) {
        kill(getpid(), signals[i % 3]);
        for (int k = 0; k < 4; k++) {
            sigaction(signals[k], NULL, &now);
            ck_assert(now.sa_handler == count_signal);
        }
        nanosleep(&(struct timespec){0, 500000}, NULL);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    ck_assert_int_ge(atomic_load(&caught) - before, 3);
    ck_assert_int_eq(atomic_load(&failed), 0);
}
END_TEST

static void *watch_stack_limit(void *arg)
{
    struct rlimit was, now;
    long changed = 0;
    getrlimit(RLIMIT_STACK, &was);
    while (!atomic_load((atomic_int *)arg))
        changed += getrlimit(RLIMIT_STACK, &now) || now.rlim_cur != was.rlim_cur;
    return (void *)changed;
}

/* NVRTC raises the stack limit of the process that it is in, unless it is told not to. */
START_TEST(the_stack_limit_stays_in_every_thread)
{
    pthread_t thread;
    atomic_int stop = 0;
    struct xti_err err = {0};
    if (cuda_skipped())
        return;
    pthread_create(&thread, NULL, watch_stack_limit, &stop);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(!compile(_i ? "" : NULL, &err), "%s", err.e.message);
    atomic_store(&stop, 1);
    void *changed;
    pthread_join(thread, &changed);
    ck_assert_ptr_null(changed);
}
END_TEST

START_TEST(forks_beside_compiles_harm_neither)
{
    pthread_t thread;
    atomic_int failed = 0;
    if (cuda_skipped())
        return;
    pthread_create(&thread, NULL, compile_some, &failed);
    for (int i = 0; i < 40; i++) {
        pid_t child = fork_child();
        if (!child) {
            struct xti_err err = {0};
            _exit(i % 10 ? 0 : compile(NULL, &err));
        }
        ck_assert_int_eq(end_of(child), 0);
    }
    pthread_join(thread, NULL);
    ck_assert_int_eq(atomic_load(&failed), 0);
}
END_TEST

/* A compile whose helper answers when the test lets it. */
struct waiting {
    char dir[32], helper[64], begun[64], go[64];
    xt_status status;
    atomic_bool done;
};

static void *compile_waiting(void *arg)
{
    struct waiting *w = arg;
    struct xti_err err = {0};
    w->status = compile(w->helper, &err);
    atomic_store(&w->done, true);
    return NULL;
}

START_TEST(neither_a_fork_nor_a_compile_waits_for_another_compile)
{
    struct waiting w = {.dir = "/tmp/xt-helper-XXXXXX"};
    struct xti_err err = {0};
    pthread_t thread;
    if (cuda_skipped())
        return;
    ck_assert_ptr_nonnull(mkdtemp(w.dir));
    snprintf(w.helper, sizeof w.helper, "%s/xt-cc", w.dir);
    snprintf(w.begun, sizeof w.begun, "%s/begun", w.dir);
    snprintf(w.go, sizeof w.go, "%s/go", w.dir);
    FILE *f = fopen(w.helper, "w");
    fprintf(f, "#!/bin/sh\n: >%s\n: <%s\n", w.begun, w.go);
    fclose(f);
    ck_assert(!chmod(w.helper, 0755) && !mkfifo(w.go, 0600));
    pthread_create(&thread, NULL, compile_waiting, &w);
    while (access(w.begun, F_OK) && !atomic_load(&w.done))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    pid_t child = fork_child();
    if (!child)
        _exit(compile(NULL, &err) != XT_OK);
    ck_assert_int_eq(end_of(child), 0);
    compiles();
    ck_assert(!atomic_load(&w.done));
    close(open(w.go, O_WRONLY));
    pthread_join(thread, NULL);
    ck_assert_int_eq(w.status, XT_ECOMPILE); /* it ended without an answer */
    unlink(w.go);
    unlink(w.begun);
    unlink(w.helper);
    rmdir(w.dir);
}
END_TEST

static void *compile_once(void *arg)
{
    struct xti_err err = {0};
    *(xt_status *)arg = compile(NULL, &err);
    return NULL;
}

START_TEST(a_thread_of_64_kib_compiles)
{
    pthread_attr_t attr;
    pthread_t thread;
    xt_status s = XT_EINTERNAL;
    if (cuda_skipped())
        return;
    pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, 64 << 10), 0);
    ck_assert_int_eq(pthread_create(&thread, &attr, compile_once, &s), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    ck_assert_int_eq(s, XT_OK);
}
END_TEST

START_TEST(a_host_that_ignores_its_children_compiles)
{
    if (cuda_skipped())
        return;
    signal(SIGCHLD, SIG_IGN);
    compiles();
    signal(SIGCHLD, SIG_DFL);
    compiles();
    errno = 0;
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child is left behind */
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

static void *wait_for_all(void *arg)
{
    while (!atomic_load((atomic_int *)arg))
        if (waitpid(-1, NULL, WNOHANG) <= 0)
            nanosleep(&(struct timespec){0, 200000}, NULL);
    return NULL;
}

START_TEST(a_host_that_waits_for_every_child_compiles)
{
    pthread_t thread;
    atomic_int stop = 0;
    if (cuda_skipped())
        return;
    pthread_create(&thread, NULL, wait_for_all, &stop);
    for (int i = 0; i < 5; i++)
        compiles();
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
}
END_TEST

/* A host whose handler waits for every child, and has a child of its own that got the pid of one that was
 * waited for: what an unlucky server sees after some hours. */
static volatile pid_t stranger;

static void reap_and_take_the_pid(int sig)
{
    int e = errno;
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        struct clone_args like = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
        long child = stranger ? 0 : syscall(SYS_clone3, &like, sizeof like);
        while (!stranger && !child)
            if (syscall(SYS_close_range, 3u, ~0u, 0u) <= 0) /* the socket, too */
                pause();
        stranger = stranger ? stranger : child;
    }
    errno = e;
}

static void hide_pid_descriptors(void)
{
    struct sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog all = {sizeof steps / sizeof *steps, steps};
    ck_assert(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all));
}

enum { MET = 0, NOT_ALLOWED = 77, NOT_MET = 78 };

/* post: of a helper that is gone the host is told; who has its pid now lives, and ends for the host.
 * NOT_MET: the library had waited for the helper before the handler ran, which is told after those who poll
 * for the helper's end are: then no pid was free to be taken, and kill(0) would end this test. */
static int compile_beside_a_stranger(const char *helper)
{
    struct sigaction a = {.sa_handler = reap_and_take_the_pid};
    struct xti_err err = {0};
    nvrtc();
    sigaction(SIGCHLD, &a, NULL);
    xt_status s = compile(helper, &err); /* CHILD_SECONDS end one that waits for the stranger */
    signal(SIGCHLD, SIG_DFL);
    pid_t pid = stranger;
    if (s != XT_ECOMPILE)
        return 1;
    if (pid <= 0)
        return pid ? NOT_ALLOWED : NOT_MET;
    int status, alive = !kill(pid, 0) && !waitpid(pid, &status, WNOHANG);
    kill(pid, SIGKILL);
    bool ours = waitpid(pid, &status, 0) == pid;
    return !alive || !ours ? 2 : MET;
}

START_TEST(who_has_the_pid_of_a_helper_that_is_gone_is_left_alone)
{
    char dir[SCRATCH_PATH];
    if (cuda_skipped())
        return;
    const char *path = put_helper(dir, "#!/bin/sh\nexit 9\n", 0755);
    int met = 0, tries = 0;
    for (int how = MET; met < 10 && how != NOT_ALLOWED; met += how == MET) {
        ck_assert_msg(tries++ < 200, "a pid was taken in %d of 200 tries", met);
        pid_t child = fork_child();
        if (!child) {
            if (_i)
                hide_pid_descriptors();
            _exit(compile_beside_a_stranger(path));
        }
        int status = end_of(child);
        ck_assert_msg(WIFEXITED(status), "wait status %d", status);
        how = WEXITSTATUS(status);
        ck_assert_msg(how == MET || how == NOT_ALLOWED || how == NOT_MET, "exit status %d", how);
    }
    if (met < 10)
        printf("not here: a process gets a pid that is asked for (clone3) as root alone\n");
    else if (tries > met)
        printf("helpers were waited for before the host's handler ran: %d of %d\n", tries - met, tries);
    remove_scratch(dir);
}
END_TEST

START_TEST(helpers_end_where_there_are_no_descriptors_of_processes)
{
    char dir[SCRATCH_PATH];
    if (cuda_skipped())
        return;
    const char *path = put_helper(dir, "#!/bin/sh\nexec <&-\nexec sleep 100\n", 0755);
    pid_t child = fork_child();
    if (!child) {
        struct xti_err err = {0};
        nvrtc();
        hide_pid_descriptors();
        compiles();
        bool told = compile(path, &err) == XT_ECOMPILE && strstr(err.e.message, "by signal 9");
        _exit(told && waitpid(-1, NULL, WNOHANG) == -1 ? 0 : 1);
    }
    ck_assert_int_eq(end_of(child), 0);
    remove_scratch(dir);
}
END_TEST

/* In a child, for what it does to itself. */
static void in_child(void (*change)(void), xt_status want)
{
    pid_t child = fork_child();
    if (!child) {
        struct xti_err err = {0};
        nvrtc(); /* with what it wants while there is everything */
        change();
        _exit(-compile(NULL, &err));
    }
    int status = end_of(child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == -(int)want,
                  "wait status %d, want exit status %d", status, -(int)want);
}

static void close_standard(void)
{
    for (int fd = 0; fd < 3; fd++)
        close(fd);
}

static void lose_directory(void)
{
    char dir[] = "/tmp/xt-gone-XXXXXX";
    if (mkdtemp(dir) && !chdir(dir))
        rmdir(dir);
}

static void use_up_files(void)
{
    struct rlimit r = {20, 20};
    setrlimit(RLIMIT_NOFILE, &r);
    while (dup(0) >= 0)
        continue;
}

static void allow_no_process(void)
{
    struct rlimit r = {0, 0};
    if (getuid() || !setuid(65534)) /* root may always start one */
        setrlimit(RLIMIT_NPROC, &r);
}

START_TEST(a_host_without_descriptors_or_directory_compiles_or_is_told)
{
    if (cuda_skipped())
        return;
    in_child(close_standard, XT_OK);
    in_child(lose_directory, XT_OK);
    in_child(use_up_files, XT_ECOMPILE);
    in_child(allow_no_process, XT_ECOMPILE);
}
END_TEST

/* ---- the helper */

static bool is_helper(const char *pid)
{
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    FILE *f = fopen(path, "r");
    if (f && fgets(name, sizeof name, f))
        name[strcspn(name, "\n")] = 0;
    if (f)
        fclose(f);
    return !strcmp(name, "xt-cc-mine");
}

static int helpers_alive(void)
{
    int n = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *e; (e = readdir(d));)
        n += is_helper(e->d_name);
    closedir(d);
    return n;
}

/* dir/xt-cc-mine: the helper under a name of its own. */
static void copy_helper(const char *dir, char path[64])
{
    char from[4200], command[4400];
    snprintf(path, 64, "%s/xt-cc-mine", dir);
    ck_assert(find_beside("xt-cc", from));
    snprintf(command, sizeof command, "cp -L '%s' '%s'", from, path);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(a_helper_ends_with_its_host)
{
    char dir[] = "/tmp/xt-helper-XXXXXX", path[64];
    if (cuda_skipped())
        return;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    copy_helper(dir, path);
    for (int i = 0; i < 5; i++) {
        pid_t child = fork_child();
        if (!child) {
            struct xti_err err = {0};
            for (;;)
                compile(path, &err);
        }
        for (int wait = 0; wait < 2000 && !helpers_alive(); wait++)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        nanosleep(&(struct timespec){0, i * 7000000}, NULL);
        kill_child(child);
        int64_t until = xti_now_ns() + 10000000000;
        while (helpers_alive() && xti_now_ns() < until)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        ck_assert_int_eq(helpers_alive(), 0);
    }
    unlink(path);
    rmdir(dir);
}
END_TEST

/* The whole of a file of /proc, NUL bytes as lines' ends. */
static void read_proc(const char *pid, const char *name, char *text, size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, size - 1, f) : 0;
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : '\n';
    text[n] = 0;
    if (f)
        fclose(f);
}

/* Has limited itself: how it is, and no longer how it was begun. */
static bool is_limited(const char *pid)
{
    char text[4096];
    read_proc(pid, "status", text, sizeof text);
    if (!strstr(text, "NoNewPrivs:\t1"))
        return false;
    read_proc(pid, "limits", text, sizeof text);
    if (!strstr(text, "Max core file size        0 "))
        return false;
    const char *cpu = strstr(text, "Max cpu time"), *memory = strstr(text, "Max address space");
    return cpu && atoi(cpu + 26) == 60 && memory && (SANITIZED || atoll(memory + 26) == (long long)4 << 30);
}

/* post: while it compiles it may gain no rights, has a limit of time and of memory, writes no core, and knows
 * of its host's environment nothing but where libraries lie. */
START_TEST(a_helper_has_limits_and_no_environment)
{
    char dir[] = "/tmp/xt-helper-XXXXXX", path[64], env[4096] = "?";
    bool limited = false;
    if (cuda_skipped())
        return;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    copy_helper(dir, path);
    setenv("XT_SECRET", "of the host", 1);
    pid_t child = fork_child();
    if (!child) {
        struct xti_err err = {0};
        for (;;)
            compile(path, &err);
    }
    for (int64_t until = xti_now_ns() + 30000000000; !limited && xti_now_ns() < until;) {
        DIR *d = opendir("/proc");
        for (struct dirent *e; !limited && (e = readdir(d));)
            if (is_helper(e->d_name) && is_limited(e->d_name)) {
                read_proc(e->d_name, "environ", env, sizeof env);
                limited = is_helper(e->d_name); /* it is there still: what was read was its own */
            }
        closedir(d);
    }
    kill_child(child);
    ck_assert(limited);
    ck_assert_msg(!*env || (!strncmp(env, "LD_LIBRARY_PATH=", 16) && !strstr(env, "XT_SECRET")), "%s", env);
    unlink(path);
    rmdir(dir);
}
END_TEST

static const struct bad_helper {
    const char *text; /* a script; NULL: no file */
    int mode;
    const char *says;
} bad_helpers[] = {
    {NULL, 0, "cannot be started: No such file"},
    {"#!/bin/sh\n", 0644, "cannot be started: Permission denied"},
    {"#!/bin/sh\nexit 0\n", 0755, "ended without an answer"},
    {"#!/bin/sh\nexit 9\n", 0755, "ended, with status 9 without an answer"},
    {"#!/bin/sh\nkill -9 $$\n", 0755, "ended, by signal 9 without an answer"},
    {"#!/bin/sh\necho nonsense that is longer than the head of any message could ever be, by far >&0\n", 0755,
     "without an answer"},
    {"#!/bin/sh\nprintf 'xt-cc 1' >&0\n", 0755, "without an answer"},
    {"#!/bin/sh\nhead -c 40 >/dev/null\ncat <&0 >/dev/null &\nexec >&- 2>&-\nkill -9 $!\nexit 1\n", 0755,
     "without an answer"},
    {"#!/bin/sh\nexec <&-\nexec sleep 100\n", 0755, "ended, by signal 9 without an answer"},
    {"#!/bin/sh\nwhile test -e $0; do sleep 1; done <&0 &\nexit 9\n", 0755, "ended, with status 9 without"},
    {"no program at all", 0755, "cannot be started"},
};

START_TEST(a_helper_that_is_none_is_told_from_one)
{
    const struct bad_helper *bad = &bad_helpers[_i];
    char dir[SCRATCH_PATH];
    if (cuda_skipped())
        return;
    const char *path = put_helper(dir, bad->text, bad->mode);
    int before = open_files();
    for (int i = 0; i < 3; i++) {
        struct xti_err err = {0};
        ck_assert_int_eq(compile(path, &err), XT_ECOMPILE);
        ck_assert_msg(strstr(err.e.message, bad->says), "%s", err.e.message);
    }
    ck_assert_int_eq(open_files(), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    remove_scratch(dir);
    compiles();
}
END_TEST

/* Answers that arrive whole: what they say is no more than another program's word. */
static const struct answer {
    int64_t status;
    const char *ptx;
    size_t ptx_bytes;
} answers[] = {
    {XT_OK, "", 0},
    {XT_OK, ".version 7.8", 12},
    {XT_OK, ".version\0 7.8", 14},
    {INT64_C(1) << 32, "", 1},
    {7, "", 0},
    {-1000, "", 0},
};

START_TEST(an_answer_is_believed_only_as_far_as_it_makes_sense)
{
    const struct answer *a = &answers[_i];
    char dir[SCRATCH_PATH], reply[SCRATCH_PATH + 8], bytes[512];
    struct xti_str b = {0};
    int ends[2];
    if (cuda_skipped())
        return;
    const char *path = put_helper(dir, "#!/bin/sh\ncat ${0%xt-cc}reply >&0\nexec cat >/dev/null\n", 0755);
    snprintf(reply, sizeof reply, "%s/reply", dir);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    xti_message_number(&b, a->status);
    xti_message_field(&b, "words", 6);
    xti_message_field(&b, a->ptx, a->ptx_bytes);
    xti_message_field(&b, "", 0);
    ck_assert(!xti_message_send(ends[0], -1, 1000, &b));
    xti_str_free(&b);
    ssize_t n = recv(ends[1], bytes, sizeof bytes, 0);
    FILE *f = fopen(reply, "w");
    ck_assert(f && n > 0 && fwrite(bytes, 1, (size_t)n, f) == (size_t)n);
    fclose(f);
    struct xti_err err = {0};
    ck_assert_int_eq(compile(path, &err), XT_ECOMPILE);
    ck_assert_msg(strstr(err.e.message, "nonsense"), "%s", err.e.message);
    close(ends[0]);
    close(ends[1]);
    remove_scratch(dir);
}
END_TEST

START_TEST(every_allocation_that_fails_is_a_status_and_leaks_nothing)
{
    if (cuda_skipped())
        return;
    compiles();
    int64_t live = xti_live_allocations();
    int files = open_files();
    xt_status s = XT_ENOMEM;
    for (int n = 1; s; n++) {
        struct xti_err err = {0};
        xti_fail_alloc(n, 0);
        s = compile(NULL, &err);
        xti_fail_alloc(0, 0);
        ck_assert_msg(s != XT_EINTERNAL && n < 100, "%d: %s", n, err.e.message);
        ck_assert_int_eq(xti_live_allocations(), live);
        ck_assert_int_eq(open_files(), files);
    }
}
END_TEST

START_TEST(the_helper_says_what_it_is)
{
    char from[4200], command[4400];
    ck_assert(find_beside("xt-cc", from));
    snprintf(command, sizeof command, "'%s' </dev/null 2>&1 | grep -q 'compiles CUDA kernels'", from);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* ---- messages */

static void make_message(unsigned char *bytes, size_t *n)
{
    int ends[2];
    struct xti_str b = {0};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    xti_message_field(&b, "words", 6);
    xti_message_number(&b, -5);
    xti_message_field(&b, "", 0);
    ck_assert(!xti_message_send(ends[0], -1, 1000, &b));
    ssize_t got = recv(ends[1], bytes, *n, 0);
    ck_assert_int_gt(got, 0);
    *n = (size_t)got;
    xti_str_free(&b);
    close(ends[0]);
    close(ends[1]);
}

static xt_status receive(const unsigned char *bytes, size_t n, struct xti_message *m)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(send(ends[0], bytes, n, 0), (ssize_t)n);
    close(ends[0]);
    xt_status s = xti_message_receive(ends[1], -1, 1000, m);
    close(ends[1]);
    return s;
}

START_TEST(a_message_arrives_whole_or_not_at_all)
{
    unsigned char bytes[512], bad[512];
    size_t n = sizeof bytes, empty;
    struct xti_message m;
    make_message(bytes, &n);
    ck_assert_int_eq(receive(bytes, n, &m), XT_OK);
    ck_assert_str_eq(xti_message_text(&m), "words");
    ck_assert_int_eq(xti_message_take_number(&m), -5);
    xti_message_take(&m, &empty);
    ck_assert(!m.bad && empty == 0);
    xti_message_take(&m, &empty); /* there is no more */
    ck_assert(m.bad);
    xti_message_free(&m);
    for (size_t cut = 0; cut < n; cut++)
        ck_assert_int_eq(receive(bytes, cut, &m), XT_EIO);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        memcpy(bad, bytes, n);
        bad[bit / 8] ^= (unsigned char)(1u << bit % 8);
        ck_assert_msg(receive(bad, n, &m) != XT_OK, "bit %zu", bit);
    }
}
END_TEST

START_TEST(a_field_never_reaches_beyond_its_message)
{
    for (uint64_t says = 0; says < 40; says++)
        for (size_t has = 0; has < 24; has++) {
            unsigned char data[40] = {0};
            struct xti_message m = {.data = data, .n = has};
            size_t n;
            memcpy(data, &says, sizeof says);
            xti_message_take(&m, &n);
            ck_assert_int_eq(m.bad, has < 8 || says > has - 8);
            ck_assert(n <= has);
        }
    unsigned char huge[16];
    struct xti_message m = {.data = huge, .n = sizeof huge};
    size_t n;
    memset(huge, 0xff, sizeof huge);
    xti_message_take(&m, &n);
    ck_assert(m.bad && n == 0);
}
END_TEST

START_TEST(silence_and_deafness_are_not_waited_for_longer_than_asked)
{
    int ends[2];
    struct xti_message m;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(xti_message_receive(ends[0], -1, 30, &m), XT_EDEVICE);
    struct xti_str b = {0}; /* more than a socket takes whose other end does not read */
    for (int i = 0; i < 100000; i++)
        xti_message_number(&b, i);
    ck_assert_int_eq(xti_message_send(ends[0], -1, 30, &b), XT_EDEVICE);
    close(ends[1]); /* what is sent is summed up first, which a sanitizer takes its time for */
    ck_assert_int_eq(xti_message_send(ends[0], -1, 30000, &b), XT_EIO);
    b.failed = true;
    ck_assert_int_eq(xti_message_send(ends[0], -1, 30, &b), XT_ENOMEM);
    xti_str_free(&b);
    close(ends[0]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("helper");
    TCase *c = tcase_create("helper");
    tcase_set_timeout(c, 600);
    tcase_add_test(c, the_helper_makes_the_bytes_that_this_process_makes);
    tcase_add_test(c, the_compilers_words_come_through);
    tcase_add_test(c, a_hosts_own_handlers_run_during_compiles);
    tcase_add_loop_test(c, the_stack_limit_stays_in_every_thread, 0, 2);
    tcase_add_test(c, forks_beside_compiles_harm_neither);
    tcase_add_test(c, neither_a_fork_nor_a_compile_waits_for_another_compile);
    tcase_add_test(c, a_thread_of_64_kib_compiles);
    tcase_add_test(c, a_host_that_ignores_its_children_compiles);
    tcase_add_test(c, a_host_that_waits_for_every_child_compiles);
    tcase_add_loop_test(c, who_has_the_pid_of_a_helper_that_is_gone_is_left_alone, 0, 2);
    tcase_add_test(c, helpers_end_where_there_are_no_descriptors_of_processes);
    tcase_add_test(c, a_host_without_descriptors_or_directory_compiles_or_is_told);
    tcase_add_test(c, a_helper_has_limits_and_no_environment);
    tcase_add_test(c, a_helper_ends_with_its_host);
    tcase_add_loop_test(c, a_helper_that_is_none_is_told_from_one, 0,
                        (int)(sizeof bad_helpers / sizeof *bad_helpers));
    tcase_add_loop_test(c, an_answer_is_believed_only_as_far_as_it_makes_sense, 0,
                        sizeof answers / sizeof *answers);
    tcase_add_test(c, every_allocation_that_fails_is_a_status_and_leaks_nothing);
    tcase_add_test(c, the_helper_says_what_it_is);
    tcase_add_test(c, a_message_arrives_whole_or_not_at_all);
    tcase_add_test(c, a_field_never_reaches_beyond_its_message);
    tcase_add_test(c, silence_and_deafness_are_not_waited_for_longer_than_asked);
    suite_add_tcase(s, c);
    return run_suite(s);
}
