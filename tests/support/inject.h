/* inject.h: runs code in a child and kills it, or has a system call fail, at the n-th system call. By ptrace:
 * x86-64 alone. Threads and processes that the child starts are left alone. */
#ifndef TESTS_SUPPORT_INJECT_H
#define TESTS_SUPPORT_INJECT_H

#include <stdbool.h>

struct injection {
    int at;    /* 1: the first call; 0: none */
    int error; /* errno, or 0: the child is killed before the call */
};

struct injected {
    int calls;    /* that the child began */
    bool reached; /* the n-th was one that can fail, and did */
    long call;    /* its number */
    int status;   /* of wait */
};

/* NULL, or why nothing can be injected here. */
const char *inject_unable(void);

/* Runs body(arg), whose result is the child's exit status. */
struct injected inject(int (*body)(void *arg), void *arg, struct injection what);

#endif
