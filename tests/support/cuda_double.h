/* cuda_double.h: what the files of the driver double share. */
#ifndef TESTS_SUPPORT_CUDA_DOUBLE_H
#define TESTS_SUPPORT_CUDA_DOUBLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptx/ptx.h"

#define CU __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX_VERSION = 222,
    NOT_FOUND = 500,
    INVALID_HANDLE = 400,
    ILLEGAL_ADDRESS = 700,
    CONTEXT_IS_DESTROYED = 709,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    UNKNOWN = 999
};
enum { MAX_DEVICES = 4, MAX_CONTEXTS = 64, MAX_STACK = 16, MAX_FUNCTIONS = 8, MAX_MEMORY = 4096 };
enum { GLOBAL, THREAD_LOCAL, RELAXED };

struct CUctx_st {
    unsigned long long id;
    int device;
    bool alive;
    int sticky; /* what every call answers since a kernel failed */
};
struct CUmod_st;
struct CUfunc_st {
    struct CUmod_st *module;
    int entry;
};
struct CUmod_st {
    struct CUmod_st *next; /* of all that are loaded */
    struct ptx_module *ptx;
    struct CUctx_st *ctx;
    bool busy; /* launches that nobody has waited for */
    int n_functions;
    struct CUfunc_st function[MAX_FUNCTIONS];
};

/* A launch, with copies of its parameters. */
struct work {
    struct work *next; /* of a graph */
    struct CUfunc_st *function;
    struct CUmod_st *module; /* the function's: known when it is gone */
    unsigned grid[3], block[3], shared;
    int n_params;
    void **param;
};

/* One lock for everything that threads share; not held while a kernel runs. */
extern pthread_mutex_t double_lock;
#define LOCK()   pthread_mutex_lock(&double_lock)
#define UNLOCK() pthread_mutex_unlock(&double_lock)

/* 0, or what the call has to return: it was told to fail, the driver is not initialised, or a kernel of the
 * current context has failed. */
int double_enter(const char *call);
#define ENTER()                                                                                              \
    do {                                                                                                     \
        int r_ = double_enter(__func__);                                                                     \
        if (r_)                                                                                              \
            return r_;                                                                                       \
    } while (0)

/* Calls that a stream capture forbids: they break it, too. (cuda_double_stream.c) */
int double_unsafe(void);
#define ENTER_UNSAFE()                                                                                       \
    do {                                                                                                     \
        int u_ = double_enter(__func__);                                                                     \
        if (!u_)                                                                                             \
            u_ = double_unsafe();                                                                            \
        if (u_)                                                                                              \
            return u_;                                                                                       \
    } while (0)

struct CUctx_st *double_current(void);
bool double_is_loaded(const struct CUmod_st *m); /* with the lock */
void double_rest(const struct CUctx_st *c);      /* with the lock: its launches are done */
/* Runs it at once. A kernel that fails is told by every later call of its context, as a device does. */
int double_run(const struct work *w);
/* Something that a program must not do, though the driver might let it pass. */
void double_hazard(const char *what);
/* The memory that p lies in: an allocation of ours, else the rest of its mapping. */
bool double_memory(uintptr_t p, char **base, size_t *bytes);

#endif
