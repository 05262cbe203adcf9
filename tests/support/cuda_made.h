/* cuda_made.h: what the tests of the CUDA back end share: a line's map, plan and source for sm_90; whether
 * NVRTC and the driver double are there. */
#ifndef TESTS_SUPPORT_CUDA_MADE_H
#define TESTS_SUPPORT_CUDA_MADE_H

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/cuda.h"
#include "support/cuda_proof.h"
#include "support/map_of.h"

static inline bool cuda_skipped(void)
{
    const char *why = cuda_prove_unable();
    if (why)
        printf("skipped: %s\n", why);
    return why != NULL;
}

struct made {
    struct xti_map map;
    struct xti_cuda_plan plan;
    struct xti_str source; /* empty: there is nothing to launch */
};

static inline void make(const char *line, struct made *o)
{
    struct xti_cuda_target t = {.sm = 90};
    struct xti_err err = {0};
    memset(o, 0, sizeof *o);
    map_of(line, &o->map);
    ck_assert_msg(xti_cuda_plan_make(&o->map, &t, &o->plan, &err) == XT_OK, "%s: %s", line, err.e.message);
    if (o->plan.n_steps)
        ck_assert_msg(xti_cuda_emit(&o->plan, XTI_TIER_EXACT, "xt_test_00000000", &o->source, &err) == XT_OK,
                      "%s", err.e.message);
}

static inline void drop(struct made *o)
{
    xti_str_free(&o->source);
    xti_cuda_plan_free(&o->plan);
    xti_map_free(&o->map);
}

/* The path of a file that lies beside this program (name may begin with ..). False: it is not there. */
static inline bool find_beside(const char *name, char path[4200])
{
    ssize_t n = readlink("/proc/self/exe", path, 4096);
    path[n > 0 ? n : 0] = 0;
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    snprintf(slash + 1, (size_t)(path + 4200 - slash - 1), "%s", name);
    return !access(path, R_OK);
}

/* Has xt load the driver double. False: it is not built. */
static inline bool use_double(void)
{
    char path[4200];
    bool there = find_beside("libcuda_double.so", path);
    if (there)
        setenv("XT_LIBCUDA", path, 1);
    return there;
}

/* Has xt load the NVRTC that is slow and counts. False: it is not built. */
static inline bool use_nvrtc_double(void)
{
    char path[4200];
    bool there = find_beside("libnvrtc_double.so", path);
    if (there) {
        setenv("XT_NVRTC", path, 1);
        setenv("XT_CC", "", 1); /* it counts in the process that it is in */
    }
    return there;
}

static inline void *symbol_of(const char *library, const char *name)
{
    void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    ck_assert_ptr_nonnull(lib);
    void *f = dlsym(lib, name);
    ck_assert_msg(f != NULL, "%s", name);
    return f;
}

static inline void *double_symbol(const char *name) { return symbol_of(getenv("XT_LIBCUDA"), name); }

/* The call of the driver double that is to fail (cuda_double.c says how it is named); "": none. */
static inline void fail_driver(const char *spec)
{
    void (*tell)(const char *);
    *(void **)&tell = double_symbol("double_fail");
    tell(spec);
}

/* Which call failed since then; "": none. */
static inline const char *failed_call(void)
{
    const char *(*failed)(void);
    *(void **)&failed = double_symbol("double_failed");
    return failed();
}

/* A count that a double keeps: of the driver's double_modules, double_memories, double_hazards; of NVRTC's
 * double_compiles, double_most_compiles. */
static inline int double_count(const char *name)
{
    int (*count)(void);
    *(void **)&count = symbol_of(getenv(strstr(name, "compiles") ? "XT_NVRTC" : "XT_LIBCUDA"), name);
    return count();
}

#endif
