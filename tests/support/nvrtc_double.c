/* nvrtc_double.c: an NVRTC that is slow, counts, and may say that it is of another version: in front of the
 * real one. Built as libnvrtc_double.so and loaded through XT_NVRTC. XT_DOUBLE_NVRTC_MS=30: a compile takes
 * so much longer; XT_DOUBLE_NVRTC_VERSION=12.4: what nvrtcVersion says. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* NVRTC's header declares them */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuda/nvrtc_abi.h"

#define NV __attribute__((visibility("default")))

static struct xti_nvrtc_api real;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int compiles, at_once, most_at_once;

__attribute__((constructor)) static void open_real(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13",
                                        "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.12"};
    void *lib = NULL;
    for (int i = 0; i < 4 && !lib; i++)
        lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
#define X(field, symbol, required, params) *(void **)&real.field = lib ? dlsym(lib, #symbol) : NULL;
    XTI_NVRTC_FUNCTIONS(X)
#undef X
}

/* Compiles so far, and how many ran at the same time at most. */
NV int double_compiles(void)
{
    pthread_mutex_lock(&lock);
    int n = compiles;
    pthread_mutex_unlock(&lock);
    return n;
}

NV int double_most_compiles(void)
{
    pthread_mutex_lock(&lock);
    int n = most_at_once;
    pthread_mutex_unlock(&lock);
    return n;
}

NV int nvrtcVersion(int *major, int *minor)
{
    const char *s = getenv("XT_DOUBLE_NVRTC_VERSION");
    if (!real.version)
        return 1;
    return s && sscanf(s, "%d.%d", major, minor) == 2 ? 0 : real.version(major, minor);
}

NV int nvrtcCompileProgram(xti_nvrtc_program p, int n, const char *const *options)
{
    const char *s = getenv("XT_DOUBLE_NVRTC_MS");
    long ms = s ? atol(s) : 0;
    pthread_mutex_lock(&lock);
    compiles++;
    at_once++;
    most_at_once = at_once > most_at_once ? at_once : most_at_once;
    pthread_mutex_unlock(&lock);
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
    int r = real.compile(p, n, options);
    pthread_mutex_lock(&lock);
    at_once--;
    pthread_mutex_unlock(&lock);
    return r;
}

NV int nvrtcCreateProgram(xti_nvrtc_program *p, const char *source, const char *name, int n,
                          const char *const *headers, const char *const *names)
{
    return real.create(p, source, name, n, headers, names);
}

NV int nvrtcDestroyProgram(xti_nvrtc_program *p) { return real.destroy(p); }
NV int nvrtcGetPTXSize(xti_nvrtc_program p, size_t *n) { return real.ptx_size(p, n); }
NV int nvrtcGetPTX(xti_nvrtc_program p, char *text) { return real.ptx(p, text); }
NV int nvrtcGetCUBINSize(xti_nvrtc_program p, size_t *n) { return real.cubin_size(p, n); }
NV int nvrtcGetCUBIN(xti_nvrtc_program p, char *data) { return real.cubin(p, data); }
NV int nvrtcGetProgramLogSize(xti_nvrtc_program p, size_t *n) { return real.log_size(p, n); }
NV int nvrtcGetProgramLog(xti_nvrtc_program p, char *text) { return real.log(p, text); }
NV int nvrtcGetNumSupportedArchs(int *n) { return real.n_archs(n); }
NV int nvrtcGetSupportedArchs(int *archs) { return real.archs(archs); }
