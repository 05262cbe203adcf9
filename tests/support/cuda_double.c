/* cuda_double.c: a CUDA driver for machines without one, built as libcuda_double.so and loaded through
 * XT_LIBCUDA. Device memory is host memory; a module is PTX (cubins are refused as "not for this device", as
 * a driver does with foreign ones, so that xt hands over the PTX); a launch runs in the PTX interpreter and
 * is done when it returns. Parameter 0 of a kernel is its destination, every other pointer a source: xt's
 * convention. This file: devices, contexts, modules; cuda_double_run.c: memory and kernels;
 * cuda_double_stream.c: streams, captures, graphs.
 *
 * The devices: XT_DOUBLE_SM=75, XT_DOUBLE_DEVICES=2, XT_DOUBLE_DRIVER=12040. Calls that fail:
 * XT_DOUBLE_FAIL, or double_fail in the program: "cuModuleLoadData" each, "cuModuleLoadData:2" the second
 * from now, "*:7" the seventh call of any function. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the driver's header declares them */
#include "support/cuda_double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

pthread_mutex_t double_lock = PTHREAD_MUTEX_INITIALIZER;

static struct CUctx_st contexts[MAX_CONTEXTS]; /* the first: one primary one a device */
static int n_contexts = MAX_DEVICES, retained[MAX_DEVICES];
static unsigned long long last_id;
static bool initialised;
static struct CUmod_st *modules;
static __thread struct CUctx_st *stack[MAX_STACK];
static __thread int depth;
static __thread double reading_us;

/* -------------------------------------------------------------------------------------- what the double does
 */

static struct {
    bool read; /* XT_DOUBLE_FAIL was */
    char call[64], failed[64];
    int left; /* calls until it fails; -1: each does; 0: none does */
    int hazards;
} told;

static void tell(const char *spec)
{
    const char *colon = strchr(spec, ':');
    told.read = true;
    snprintf(told.call, sizeof told.call, "%.*s", colon ? (int)(colon - spec) : 60, spec);
    told.left = colon ? atoi(colon + 1) : *spec ? -1 : 0;
}

/* spec "": nothing fails from here on. */
CU void double_fail(const char *spec)
{
    LOCK();
    tell(spec);
    if (*spec)
        told.failed[0] = 0;
    UNLOCK();
}

/* The call that failed last since something was told to; "": none. */
CU const char *double_failed(void) { return told.failed; }

/* How often a program did what only luck lets pass. */
CU int double_hazards(void) { return told.hazards; }

void double_hazard(const char *what)
{
    fprintf(stderr, "cuda_double: %s\n", what);
    told.hazards++;
}

static bool told_to_fail(const char *call)
{
    if (!told.read)
        tell(getenv("XT_DOUBLE_FAIL") ? getenv("XT_DOUBLE_FAIL") : "");
    if (!told.left || (strcmp(told.call, "*") && strcmp(told.call, call)))
        return false;
    if (told.left > 0 && --told.left)
        return false;
    snprintf(told.failed, sizeof told.failed, "%s", call);
    return true;
}

struct CUctx_st *double_current(void) { return depth ? stack[depth - 1] : NULL; }

int double_enter(const char *call)
{
    struct CUctx_st *c = double_current();
    LOCK();
    int r = told_to_fail(call) ? UNKNOWN
            : !initialised     ? NOT_INITIALIZED
            : c && c->alive    ? c->sticky
                               : SUCCESS;
    UNLOCK();
    return r;
}

static int setting(const char *name, int otherwise)
{
    const char *s = getenv(name);
    return s ? atoi(s) : otherwise;
}

static int n_devices(void)
{
    int n = setting("XT_DOUBLE_DEVICES", 1);
    return n > MAX_DEVICES ? MAX_DEVICES : n;
}

CU int cuInit(unsigned flags)
{
    LOCK();
    initialised = true;
    UNLOCK();
    ENTER();
    return flags ? INVALID_VALUE : SUCCESS;
}

CU int cuDriverGetVersion(int *version)
{
    ENTER();
    *version = setting("XT_DOUBLE_DRIVER", 13090);
    return SUCCESS;
}

CU int cuGetErrorName(int r, const char **name)
{
    static const struct {
        int r;
        const char *name;
    } names[] = {{SUCCESS, "CUDA_SUCCESS"},
                 {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
                 {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
                 {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
                 {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
                 {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
                 {NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                 {INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
                 {UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
                 {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
                 {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
                 {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                 {CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
                 {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
                 {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
                 {UNKNOWN, "CUDA_ERROR_UNKNOWN"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].r == r) {
            *name = names[i].name;
            return SUCCESS;
        }
    return INVALID_VALUE;
}

CU int cuDeviceGetCount(int *n)
{
    ENTER();
    *n = n_devices();
    return SUCCESS;
}

CU int cuDeviceGet(int *device, int ordinal)
{
    ENTER();
    *device = ordinal;
    return ordinal >= 0 && ordinal < n_devices() ? SUCCESS : INVALID_DEVICE;
}

CU int cuDeviceGetAttribute(int *value, unsigned attribute, int device)
{
    ENTER();
    int sm = setting("XT_DOUBLE_SM", 90);
    *value = attribute == 75 ? sm / 10 : attribute == 76 ? sm % 10 : attribute == 16 ? 132 : 0;
    return device < n_devices() ? SUCCESS : INVALID_DEVICE;
}

/* -------------------------------------------------------------------------------------------------- contexts
 */

static bool holds(struct CUctx_st *c) { return c && c->alive; }

CU int cuCtxCreate_v2(struct CUctx_st **out, unsigned flags, int device)
{
    ENTER();
    LOCK();
    struct CUctx_st *c = n_contexts < MAX_CONTEXTS && depth < MAX_STACK ? &contexts[n_contexts] : NULL;
    if (c) {
        n_contexts++;
        *c = (struct CUctx_st){.id = ++last_id, .device = device, .alive = true};
        stack[depth++] = *out = c;
    }
    UNLOCK();
    return !c ? OUT_OF_MEMORY : flags || device >= n_devices() ? INVALID_VALUE : SUCCESS;
}

static void drop_module(struct CUmod_st **at)
{
    struct CUmod_st *m = *at;
    *at = m->next;
    ptx_free(m->ptx);
    free(m);
}

/* A context takes its modules along. With the lock. */
static void destroy(struct CUctx_st *c)
{
    c->alive = false;
    for (struct CUmod_st **at = &modules; *at;)
        if ((*at)->ctx == c)
            drop_module(at);
        else
            at = &(*at)->next;
}

CU int cuCtxDestroy_v2(struct CUctx_st *c)
{
    ENTER();
    LOCK();
    bool held = holds(c);
    if (held)
        destroy(c);
    UNLOCK();
    if (held && double_current() == c)
        depth--;
    return held ? SUCCESS : INVALID_CONTEXT;
}

CU int cuCtxGetCurrent(struct CUctx_st **out)
{
    ENTER();
    *out = double_current();
    return SUCCESS;
}

CU int cuCtxGetDevice(int *device)
{
    ENTER();
    struct CUctx_st *c = double_current();
    *device = c ? c->device : 0;
    return c ? SUCCESS : INVALID_CONTEXT;
}

CU int cuCtxGetId(struct CUctx_st *c, unsigned long long *id)
{
    ENTER();
    c = c ? c : double_current();
    LOCK();
    bool held = holds(c);
    *id = held ? c->id : 0;
    UNLOCK();
    return held ? SUCCESS : INVALID_CONTEXT;
}

CU int cuCtxPushCurrent_v2(struct CUctx_st *c)
{
    ENTER();
    LOCK();
    bool held = holds(c) && depth < MAX_STACK;
    UNLOCK();
    if (held)
        stack[depth++] = c;
    return held ? SUCCESS : INVALID_CONTEXT;
}

CU int cuCtxPopCurrent_v2(struct CUctx_st **out)
{
    ENTER();
    if (!depth)
        return INVALID_CONTEXT;
    *out = stack[--depth];
    return SUCCESS;
}

CU int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    ENTER();
    *flags = 0;
    LOCK();
    *active = contexts[device].alive;
    UNLOCK();
    return SUCCESS;
}

CU int cuDevicePrimaryCtxRetain(struct CUctx_st **out, int device)
{
    ENTER();
    LOCK();
    if (!retained[device]++)
        contexts[device] = (struct CUctx_st){.id = ++last_id, .device = device, .alive = true};
    *out = &contexts[device];
    UNLOCK();
    return SUCCESS;
}

CU int cuDevicePrimaryCtxRelease_v2(int device)
{
    ENTER();
    LOCK();
    bool held = retained[device] > 0;
    if (held && --retained[device] == 0)
        destroy(&contexts[device]);
    UNLOCK();
    return held ? SUCCESS : INVALID_CONTEXT;
}

/* --------------------------------------------------------------------------------------------------- modules
 */

/* PTX 9.0 came with CUDA 13.0, 8.x with 12.x, 7.x with 11.x. */
static bool takes_version(const char *ptx)
{
    int version = setting("XT_DOUBLE_DRIVER", 13090), major = 0, minor = 0;
    const char *at = strstr(ptx, ".version ");
    if (!at || sscanf(at, ".version %d.%d", &major, &minor) != 2)
        return false;
    return major < version / 1000 - 4 || (major == version / 1000 - 4 && minor <= version % 1000 / 10);
}

/* What the calling thread's processor has spent on reading PTX, which a driver that is given a cubin does not
 * read. */
CU double double_reading_us(void) { return reading_us; }

static double own_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static bool read_ptx(struct CUmod_st *m, const char *text)
{
    char error[256];
    double from = own_us();
    bool failed = ptx_load(text, &m->ptx, error, sizeof error);
    reading_us += own_us() - from;
    if (failed)
        fprintf(stderr, "cuda_double: %s\n", error);
    return !failed;
}

CU int cuModuleLoadData(struct CUmod_st **out, const void *image)
{
    ENTER_UNSAFE();
    if (!double_current())
        return INVALID_CONTEXT;
    if (!memcmp(image, "\177ELF", 4))
        return NO_BINARY_FOR_GPU;
    if (!takes_version(image))
        return UNSUPPORTED_PTX_VERSION;
    struct CUmod_st *m = calloc(1, sizeof *m);
    if (!m)
        return OUT_OF_MEMORY;
    m->ctx = double_current();
    if (!read_ptx(m, image)) {
        free(m);
        return INVALID_PTX;
    }
    LOCK();
    m->next = modules;
    modules = m;
    UNLOCK();
    *out = m;
    return SUCCESS;
}

CU int cuModuleUnload(struct CUmod_st *m)
{
    ENTER_UNSAFE();
    LOCK();
    struct CUmod_st **at = &modules;
    while (*at && *at != m)
        at = &(*at)->next;
    bool mine = *at && m->ctx == double_current();
    if (mine && m->busy)
        double_hazard("a module is unloaded that a launch may be running");
    if (mine)
        drop_module(at);
    UNLOCK();
    return mine ? SUCCESS : INVALID_HANDLE;
}

bool double_is_loaded(const struct CUmod_st *m)
{
    struct CUmod_st *at = modules;
    while (at && at != m)
        at = at->next;
    return at != NULL;
}

void double_rest(const struct CUctx_st *c)
{
    for (struct CUmod_st *m = modules; m; m = m->next)
        if (m->ctx == c)
            m->busy = false;
}

/* How many modules are loaded, in all contexts. */
CU int double_modules(void)
{
    int n = 0;
    LOCK();
    for (struct CUmod_st *m = modules; m; m = m->next)
        n++;
    UNLOCK();
    return n;
}

CU int cuModuleGetFunction(struct CUfunc_st **out, struct CUmod_st *m, const char *name)
{
    ENTER();
    int r = NOT_FOUND;
    LOCK();
    for (int i = 0; i < ptx_entry_count(m->ptx) && r; i++)
        if (!strcmp(ptx_entry_name(m->ptx, i), name) && m->n_functions < MAX_FUNCTIONS) {
            m->function[m->n_functions] = (struct CUfunc_st){m, i};
            *out = &m->function[m->n_functions++];
            r = SUCCESS;
        }
    UNLOCK();
    return r;
}

CU int cuFuncGetAttribute(int *value, unsigned attribute, struct CUfunc_st *f)
{
    ENTER();
    *value = 0;
    return f && attribute < 16 ? SUCCESS : INVALID_VALUE;
}
