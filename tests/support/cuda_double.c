/* cuda_double.c: a CUDA driver for machines without one, built as libcuda_double.so and loaded through
 * XT_LIBCUDA. Device memory is host memory; a module is PTX (cubins are refused as "not for this device", as
 * a driver does with foreign ones, so that xt hands over the PTX); a launch runs in the PTX interpreter and
 * is done when it returns. Parameter 0 of a kernel is its destination, every other pointer a source: xt's
 * convention. XT_DOUBLE_SM=75 chooses the device, XT_DOUBLE_FAIL=cuModuleLoadData makes every call of that
 * function fail. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the driver's header declares them */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/ptx.h"

#define CU __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    NOT_FOUND = 500,
    INVALID_HANDLE = 400,
    LAUNCH_FAILED = 719,
    UNKNOWN = 999
};
enum { MAX_CONTEXTS = 64, MAX_STACK = 16, MAX_FUNCTIONS = 4, MAX_MEMORY = 4096 };

struct CUctx_st {
    unsigned long long id;
    bool alive;
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
    int n_functions;
    struct CUfunc_st function[MAX_FUNCTIONS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st contexts[MAX_CONTEXTS]; /* 0: the primary one */
static int n_contexts = 1, retained;
static bool initialised;
static struct CUmod_st *modules;
static struct {
    char *p;
    size_t bytes;
} memory[MAX_MEMORY];
static __thread struct CUctx_st *stack[MAX_STACK];
static __thread int depth;

static int failing(const char *call)
{
    const char *f = getenv("XT_DOUBLE_FAIL");
    return f && !strcmp(f, call) ? UNKNOWN : initialised ? SUCCESS : NOT_INITIALIZED;
}
#define ENTER()                                                                                              \
    do {                                                                                                     \
        int r_ = failing(__func__);                                                                          \
        if (r_)                                                                                              \
            return r_;                                                                                       \
    } while (0)

static struct CUctx_st *current(void) { return depth ? stack[depth - 1] : NULL; }

CU int cuInit(unsigned flags)
{
    initialised = true;
    ENTER();
    return flags ? INVALID_VALUE : SUCCESS;
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
                 {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
                 {NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                 {INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
                 {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
                 {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
                 {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
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
    *n = 1;
    return SUCCESS;
}

CU int cuDeviceGet(int *device, int ordinal)
{
    ENTER();
    *device = 0;
    return ordinal ? NO_DEVICE : SUCCESS;
}

CU int cuDeviceGetAttribute(int *value, unsigned attribute, int device)
{
    ENTER();
    const char *s = getenv("XT_DOUBLE_SM");
    int sm = s ? atoi(s) : 90;
    *value = attribute == 75 ? sm / 10 : attribute == 76 ? sm % 10 : attribute == 16 ? 132 : 0;
    return device ? INVALID_VALUE : SUCCESS;
}

/* -------------------------------------------------------------------------------------------------- contexts
 */

CU int cuCtxCreate_v2(struct CUctx_st **out, unsigned flags, int device)
{
    ENTER();
    pthread_mutex_lock(&lock);
    struct CUctx_st *c = n_contexts < MAX_CONTEXTS && depth < MAX_STACK ? &contexts[n_contexts] : NULL;
    if (c) {
        *c = (struct CUctx_st){.id = (unsigned long long)++n_contexts, .alive = true};
        stack[depth++] = *out = c;
    }
    pthread_mutex_unlock(&lock);
    return !c ? OUT_OF_MEMORY : flags || device ? INVALID_VALUE : SUCCESS;
}

static void drop_module(struct CUmod_st **at)
{
    struct CUmod_st *m = *at;
    *at = m->next;
    ptx_free(m->ptx);
    free(m);
}

CU int cuCtxDestroy_v2(struct CUctx_st *c)
{
    ENTER();
    if (!c || !c->alive)
        return INVALID_CONTEXT;
    c->alive = false;
    if (current() == c)
        depth--;
    for (struct CUmod_st **at = &modules; *at;) /* a context takes its modules along */
        if ((*at)->ctx == c)
            drop_module(at);
        else
            at = &(*at)->next;
    return SUCCESS;
}

CU int cuCtxGetCurrent(struct CUctx_st **out)
{
    ENTER();
    *out = current();
    return SUCCESS;
}

CU int cuCtxGetDevice(int *device)
{
    ENTER();
    *device = 0;
    return current() ? SUCCESS : INVALID_CONTEXT;
}

CU int cuCtxGetId(struct CUctx_st *c, unsigned long long *id)
{
    ENTER();
    c = c ? c : current();
    if (!c || !c->alive)
        return INVALID_CONTEXT;
    *id = c->id;
    return SUCCESS;
}

CU int cuCtxPushCurrent_v2(struct CUctx_st *c)
{
    ENTER();
    if (!c || !c->alive || depth == MAX_STACK)
        return INVALID_CONTEXT;
    stack[depth++] = c;
    return SUCCESS;
}

CU int cuCtxPopCurrent_v2(struct CUctx_st **out)
{
    ENTER();
    if (!depth)
        return INVALID_CONTEXT;
    *out = stack[--depth];
    return SUCCESS;
}

CU int cuDevicePrimaryCtxRetain(struct CUctx_st **out, int device)
{
    ENTER();
    pthread_mutex_lock(&lock);
    retained++;
    contexts[0] = (struct CUctx_st){.id = 1, .alive = true};
    *out = &contexts[0];
    pthread_mutex_unlock(&lock);
    return device ? INVALID_VALUE : SUCCESS;
}

CU int cuDevicePrimaryCtxRelease_v2(int device)
{
    ENTER();
    pthread_mutex_lock(&lock);
    bool held = retained > 0;
    if (held && --retained == 0)
        contexts[0].alive = false;
    pthread_mutex_unlock(&lock);
    return held && !device ? SUCCESS : INVALID_CONTEXT;
}

CU int cuCtxSynchronize(void)
{
    ENTER();
    return current() ? SUCCESS : INVALID_CONTEXT;
}

CU int cuStreamSynchronize(void *stream)
{
    ENTER();
    return stream ? INVALID_HANDLE : SUCCESS;
}

/* --------------------------------------------------------------------------------------------------- memory
 */

CU int cuMemAlloc_v2(uintptr_t *out, size_t bytes)
{
    ENTER();
    void *p = bytes ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < MAX_MEMORY && memory[i].p)
        i++;
    if (p && i < MAX_MEMORY) {
        memory[i].p = p;
        memory[i].bytes = bytes;
    } else {
        free(p);
        p = NULL;
    }
    pthread_mutex_unlock(&lock);
    *out = (uintptr_t)p;
    return p ? SUCCESS : OUT_OF_MEMORY;
}

CU int cuMemFree_v2(uintptr_t p)
{
    ENTER();
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_MEMORY && p && !found; i++)
        if ((uintptr_t)memory[i].p == p) {
            free(memory[i].p);
            memory[i].p = NULL;
            found = true;
        }
    pthread_mutex_unlock(&lock);
    return found ? SUCCESS : INVALID_VALUE;
}

CU int cuMemcpyHtoD_v2(uintptr_t d, const void *s, size_t bytes)
{
    ENTER();
    memcpy((void *)d, s, bytes);
    return SUCCESS;
}

CU int cuMemcpyDtoH_v2(void *d, uintptr_t s, size_t bytes)
{
    ENTER();
    memcpy(d, (const void *)s, bytes);
    return SUCCESS;
}

/* ------------------------------------------------------------------------------------------------- launches
 */

CU int cuModuleLoadData(struct CUmod_st **out, const void *image)
{
    ENTER();
    char error[256];
    if (!current())
        return INVALID_CONTEXT;
    if (!memcmp(image, "\177ELF", 4))
        return NO_BINARY_FOR_GPU;
    struct CUmod_st *m = calloc(1, sizeof *m);
    if (!m)
        return OUT_OF_MEMORY;
    m->ctx = current();
    if (ptx_load(image, &m->ptx, error, sizeof error)) {
        fprintf(stderr, "cuda_double: %s\n", error);
        free(m);
        return INVALID_PTX;
    }
    m->next = modules;
    modules = m;
    *out = m;
    return SUCCESS;
}

CU int cuModuleUnload(struct CUmod_st *m)
{
    ENTER();
    struct CUmod_st **at = &modules;
    while (*at && *at != m)
        at = &(*at)->next;
    if (!*at || m->ctx != current())
        return INVALID_HANDLE;
    drop_module(at);
    return SUCCESS;
}

CU int cuModuleGetFunction(struct CUfunc_st **out, struct CUmod_st *m, const char *name)
{
    ENTER();
    for (int i = 0; i < ptx_entry_count(m->ptx); i++)
        if (!strcmp(ptx_entry_name(m->ptx, i), name) && m->n_functions < MAX_FUNCTIONS) {
            m->function[m->n_functions] = (struct CUfunc_st){m, i};
            *out = &m->function[m->n_functions++];
            return SUCCESS;
        }
    return NOT_FOUND;
}

CU int cuFuncGetAttribute(int *value, unsigned attribute, struct CUfunc_st *f)
{
    ENTER();
    *value = 0;
    return f && attribute < 16 ? SUCCESS : INVALID_VALUE;
}

/* The memory that p lies in: an allocation of ours, else the rest of its mapping. */
static bool find_memory(uintptr_t p, char **base, size_t *bytes)
{
    char line[512];
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_MEMORY && !found; i++)
        if (memory[i].p && p - (uintptr_t)memory[i].p < memory[i].bytes) {
            *base = memory[i].p;
            *bytes = memory[i].bytes;
            found = true;
        }
    pthread_mutex_unlock(&lock);
    FILE *f = found ? NULL : fopen("/proc/self/maps", "r");
    while (f && !found && fgets(line, sizeof line, f)) {
        unsigned long lo, hi;
        if (sscanf(line, "%lx-%lx", &lo, &hi) == 2 && p >= lo && p < hi) {
            *base = (char *)(p / 256 * 256);
            *bytes = hi - (uintptr_t)*base;
            found = true;
        }
    }
    if (f)
        fclose(f);
    return found;
}

static int make_params(void **given, const struct ptx_entry_info *info, struct ptx_param *param,
                       struct ptx_buffer *buffer, int *n_buffers)
{
    for (int i = 0; i < info->n_params; i++) {
        uintptr_t p;
        char *base;
        size_t bytes;
        if (info->param_bytes[i] != sizeof p) {
            param[i] = (struct ptx_param){.bytes = given[i], .n_bytes = info->param_bytes[i]};
            continue;
        }
        memcpy(&p, given[i], sizeof p);
        if (!find_memory(p, &base, &bytes)) {
            fprintf(stderr, "cuda_double: parameter %d: no memory at %#lx\n", i, (unsigned long)p);
            return INVALID_VALUE;
        }
        buffer[*n_buffers] =
            (struct ptx_buffer){.base = base, .bytes = bytes, .writable = i == 0, .scratch = i == 0};
        param[i] = (struct ptx_param){
            .is_pointer = 1, .buffer = (*n_buffers)++, .byte_offset = (int64_t)(p - (uintptr_t)base)};
    }
    return SUCCESS;
}

static int run(struct ptx_module *m, struct ptx_launch *l, const struct ptx_buffer *buffer, int n_buffers)
{
    struct ptx_report report;
    struct ptx_world *w = ptx_world_new(buffer, n_buffers);
    if (!w)
        return OUT_OF_MEMORY;
    int bad = ptx_run(w, m, l, &report);
    ptx_world_free(w);
    if (bad)
        fprintf(stderr, "cuda_double: %s\n", report.error);
    return bad ? LAUNCH_FAILED : SUCCESS;
}

CU int cuLaunchKernel(struct CUfunc_st *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, void *stream, void **given, void **extra)
{
    ENTER();
    struct ptx_entry_info info;
    int n_buffers = 0;
    if (!current() || !current()->alive)
        return INVALID_CONTEXT;
    if (!f || f->module->ctx != current())
        return INVALID_HANDLE;
    if (stream || extra || !given)
        return INVALID_VALUE;
    ptx_entry_info(f->module->ptx, f->entry, &info);
    struct ptx_param *param = calloc((size_t)info.n_params + 1, sizeof *param);
    struct ptx_buffer *buffer = calloc((size_t)info.n_params + 1, sizeof *buffer);
    int r = param && buffer ? make_params(given, &info, param, buffer, &n_buffers) : OUT_OF_MEMORY;
    struct ptx_launch l = {.entry = info.name,
                           .grid = {gx, gy, gz},
                           .block = {bx, by, bz},
                           .shared_bytes = shared,
                           .params = param,
                           .n_params = info.n_params};
    if (!r)
        r = run(f->module->ptx, &l, buffer, n_buffers);
    free(buffer);
    free(param);
    return r;
}
