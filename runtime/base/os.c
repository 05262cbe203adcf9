/* os.c: clock, processor count, where the library lies. Layer 0. */
#include "base/os.h"

#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int64_t xti_ns_of(struct timespec t) { return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec; }

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return xti_ns_of(t);
}

int64_t xti_now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
int64_t xti_thread_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

int xti_cpu_count(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    return n > 0 ? n : 1;
}

/* glibc says what it takes itself by a name that others, as Rust, ask by, too. To look through the libraries
 * would wait in the child of a fork: dl_iterate_phdr has a lock that fork leaves as it is (2.36). */
size_t xti_stack_bytes(size_t own)
{
    size_t block = 4096, (*taken)(const pthread_attr_t *);
    *(void **)&taken = dlsym(RTLD_DEFAULT, "__pthread_get_minstack");
    own += taken ? taken(NULL) : 0;
    return (own + block - 1) / block * block;
}

int xti_thread_start(pthread_t *id, size_t own, bool takes_faults, void *(*run)(void *), void *arg)
{
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    sigset_t blocked, before;
    pthread_attr_t attr;
    int e = pthread_attr_init(&attr);
    if (e)
        return e;
    pthread_attr_setstacksize(&attr, xti_stack_bytes(own));
    sigfillset(&blocked);
    for (size_t i = 0; takes_faults && i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    e = pthread_create(id, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return e;
}

bool xti_path_beside(const char *file, char *path, size_t size)
{
    Dl_info here;
    char program[PATH_MAX];
    const char *whole = dladdr((void *)(uintptr_t)&xti_path_beside, &here) ? here.dli_fname : NULL;
    if (!whole || *whole != '/') { /* a program has the name by which it was called */
        ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
        if (n <= 0)
            return false;
        program[n] = 0;
        whole = program;
    }
    const char *slash = strrchr(whole, '/');
    int n = slash ? snprintf(path, size, "%.*s%s", (int)(slash + 1 - whole), whole, file) : -1;
    return n > 0 && (size_t)n < size;
}

bool xti_file_exceeds(uint64_t bytes)
{
    struct rlimit r;
    return !getrlimit(RLIMIT_FSIZE, &r) && r.rlim_cur != RLIM_INFINITY && bytes > r.rlim_cur;
}
