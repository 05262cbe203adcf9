/* driver.c: finds, loads and initialises the CUDA driver; contexts; targets.
 * What always holds: nothing here changes which context the caller's thread has when a function returns.
 * Layer 4. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "cuda/cuda.h"

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    atomic_bool ready, forked;
    int version;
    struct xti_cu_api api;
} the = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void before_fork(void) { pthread_mutex_lock(&the.lock); }
static void after_fork(void) { pthread_mutex_unlock(&the.lock); }
static void in_child(void)
{
    if (atomic_load(&the.ready))
        atomic_store(&the.forked, true);
    pthread_mutex_unlock(&the.lock);
}
static void guard_fork(void) { pthread_atfork(before_fork, after_fork, in_child); }

bool xti_driver_forked(void) { return atomic_load_explicit(&the.forked, memory_order_relaxed); }

static void *open_library(struct xti_err *err)
{
    const char *path = xti_env(XTI_ENV_LIBCUDA);
    bool given = path && *path;
    void *lib = dlopen(given ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib && !given)
        lib = dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
    if (!lib && !given)
        lib = dlopen("/usr/lib/wsl/lib/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        xti_fail(err, XT_ENODEVICE, "no CUDA driver: %s", given ? dlerror() : "libcuda.so.1 was not found");
    return lib;
}

/* Errors that a context keeps, and with which it answers every later call. */
bool xti_driver_is_sticky(xti_cu_result r)
{
    static const unsigned short kept[] = {
        214 /* ECC_UNCORRECTABLE */,
        220 /* NVLINK_UNCORRECTABLE */,
        700 /* ILLEGAL_ADDRESS */,
        702 /* LAUNCH_TIMEOUT */,
        710 /* ASSERT */,
        714 /* HARDWARE_STACK_ERROR */,
        715 /* ILLEGAL_INSTRUCTION */,
        716 /* MISALIGNED_ADDRESS */,
        717 /* INVALID_ADDRESS_SPACE */,
        718 /* INVALID_PC */,
        719 /* LAUNCH_FAILED */,
        721 /* TENSOR_MEMORY_LEAK */,
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (kept[i] == r)
            return true;
    return false;
}

xt_status xti_driver_fail(const struct xti_cu_api *api, const char *call, xti_cu_result r,
                          struct xti_err *err)
{
    const char *name = NULL;
    if (api->error_name(r, &name) || !name)
        name = "unknown error";
    if (xti_driver_is_sticky(r))
        return xti_fail(err, XT_EDEVICE,
                        "%s: an earlier %s (%d), not this call: something that ran before failed, and its "
                        "CUDA context cannot be used any more",
                        call, name, r);
    return xti_fail(err, XT_EDEVICE, "%s: %s (%d)", call, name, r);
}

int xti_driver_version(void)
{
    return atomic_load_explicit(&the.ready, memory_order_acquire) ? the.version : 0;
}

static xt_status load_symbols(void *lib, struct xti_cu_api *api, struct xti_err *err)
{
    const char *missing = NULL;
#define X(field, symbol, required, params)                                                                   \
    *(void **)&api->field = dlsym(lib, #symbol);                                                             \
    if (required && !api->field)                                                                             \
        missing = #symbol;
    XTI_CU_FUNCTIONS(X)
#undef X
    return missing ? xti_fail(err, XT_ENODEVICE, "the CUDA driver library has no %s", missing) : XT_OK;
}

static xt_status start(struct xti_cu_api *api, struct xti_err *err)
{
    int n = 0;
    const char *name = NULL;
    xti_cu_result r = api->init(0);
    if (!r)
        r = api->version(&the.version);
    if (!r)
        r = api->device_count(&n);
    if (r && (api->error_name(r, &name) || !name))
        name = "unknown error";
    if (r)
        return xti_fail(err, XT_ENODEVICE, "the CUDA driver does not start: %s (%d)", name, r);
    return n > 0 ? XT_OK : xti_fail(err, XT_ENODEVICE, "the CUDA driver finds no device");
}

static xt_status load(struct xti_err *err)
{
    void *lib = open_library(err);
    xt_status s;
    if (!lib)
        return XT_ENODEVICE;
    if ((s = load_symbols(lib, &the.api, err)) || (s = start(&the.api, err))) {
        dlclose(lib);
        return s;
    }
    atomic_store_explicit(&the.ready, true, memory_order_release);
    return XT_OK;
}

xt_status xti_driver_get(const struct xti_cu_api **api, struct xti_err *err)
{
    if (xti_driver_forked())
        return xti_fail(err, XT_EFORKED, "CUDA was started before fork: the child cannot use it");
    *api = &the.api;
    if (atomic_load_explicit(&the.ready, memory_order_acquire))
        return XT_OK;
    pthread_once(&the.once, guard_fork);
    pthread_mutex_lock(&the.lock);
    xt_status s = atomic_load(&the.ready) ? XT_OK : load(err);
    pthread_mutex_unlock(&the.lock);
    *api = s ? NULL : &the.api;
    return s;
}

/* A primary context that nobody retains is not made for the question: it takes hundreds of MB. */
xt_status xti_driver_is_primary(const struct xti_cu_api *api, xti_cu_context ctx, xti_cu_device *device,
                                bool *primary, struct xti_err *err)
{
    unsigned int flags;
    int active = 0;
    xti_cu_context it = NULL;
    xti_cu_result r = api->ctx_device(device);
    *primary = false;
    if (r)
        return xti_driver_fail(api, "cuCtxGetDevice", r, err);
    if ((r = api->primary_state(*device, &flags, &active)))
        return xti_driver_fail(api, "cuDevicePrimaryCtxGetState", r, err);
    if (!active)
        return XT_OK;
    if ((r = api->primary_retain(&it, *device)))
        return xti_driver_fail(api, "cuDevicePrimaryCtxRetain", r, err);
    *primary = it == ctx;
    if (!*primary)
        api->primary_release(*device);
    return XT_OK;
}

static xt_status push_primary(int ordinal, struct xti_driver_scope *s, struct xti_err *err)
{
    xti_cu_result r;
    if (s->api->device_get(&s->device, ordinal))
        return xti_fail(err, XT_ENODEVICE, "there is no CUDA device %d", ordinal);
    if ((r = s->api->primary_retain(&s->ctx, s->device)))
        return xti_driver_fail(s->api, "cuDevicePrimaryCtxRetain", r, err);
    if ((r = s->api->ctx_push(s->ctx))) {
        s->api->primary_release(s->device);
        return xti_driver_fail(s->api, "cuCtxPushCurrent", r, err);
    }
    s->primary = s->pushed = true;
    return XT_OK;
}

xt_status xti_driver_enter(int device, struct xti_driver_scope *s, struct xti_err *err)
{
    *s = (struct xti_driver_scope){.capture = XTI_CU_CAPTURE_RELAXED};
    xt_status st = xti_driver_get(&s->api, err);
    xti_cu_result r;
    if (st)
        return st;
    if ((r = s->api->ctx_current(&s->ctx)))
        return xti_driver_fail(s->api, "cuCtxGetCurrent", r, err);
    st = s->ctx ? xti_driver_is_primary(s->api, s->ctx, &s->device, &s->primary, err)
                : push_primary(device, s, err);
    if (!st && s->api->capture_mode)
        s->api->capture_mode(&s->capture); /* exchanges the two */
    return st;
}

void xti_driver_leave(struct xti_driver_scope *s, bool keep)
{
    xti_cu_context unused;
    if (s->api->capture_mode)
        s->api->capture_mode(&s->capture);
    if (s->pushed)
        s->api->ctx_pop(&unused);
    if (s->primary && !keep)
        s->api->primary_release(s->device);
}

/* No context is made: the attributes are the device's. */
static xt_status current_device(const struct xti_cu_api *api, int ordinal, xti_cu_device *device,
                                struct xti_err *err)
{
    xti_cu_context ctx = NULL;
    if (!api->ctx_current(&ctx) && ctx && !api->ctx_device(device))
        return XT_OK;
    return api->device_get(device, ordinal)
               ? xti_fail(err, XT_ENODEVICE, "there is no CUDA device %d", ordinal)
               : XT_OK;
}

/* What a device is does not change while the process lives: n_sms, sm in 32 bits each; 0: not asked yet. */
static atomic_ullong known_target[XTI_MAX_DEVICES];

xt_status xti_cuda_target(int device, struct xti_cuda_target *t, struct xti_err *err)
{
    const struct xti_cu_api *api;
    xti_cu_device dev = 0;
    int major = 0, minor = 0, sms = 0;
    xti_cu_result r;
    xt_status s = xti_driver_get(&api, err);
    if (!s)
        s = current_device(api, device, &dev, err);
    if (s)
        return s;
    unsigned long long known =
        dev < XTI_MAX_DEVICES ? atomic_load_explicit(&known_target[dev], memory_order_relaxed) : 0;
    if (!known) {
        if ((r = api->device_attribute(&major, XTI_CU_ATTR_MAJOR, dev)) ||
            (r = api->device_attribute(&minor, XTI_CU_ATTR_MINOR, dev)) ||
            (r = api->device_attribute(&sms, XTI_CU_ATTR_MULTIPROCESSORS, dev)))
            return xti_driver_fail(api, "cuDeviceGetAttribute", r, err);
        known = (unsigned long long)sms << 32 | (unsigned)(10 * major + minor);
        if (dev < XTI_MAX_DEVICES)
            atomic_store_explicit(&known_target[dev], known, memory_order_relaxed);
    }
    *t = (struct xti_cuda_target){.sm = (int)(known & UINT32_MAX), .n_sms = (int)(known >> 32)};
    return XT_OK;
}

/* Architectures that NVIDIA has made, as CUDA 13 lists them, and the older ones of CUDA 11 and 12. */
static const short known_archs[] = {50, 52, 53, 60, 61,  62,  70,  72,  75,  80, 86,
                                    87, 88, 89, 90, 100, 101, 103, 110, 120, 121};

static bool is_known(long sm)
{
    for (size_t i = 0; i < sizeof known_archs / sizeof *known_archs; i++)
        if (known_archs[i] == sm)
            return true;
    return false;
}

/* "sm_90a" gives sm_90: no kernel of xt needs what only one architecture has. */
xt_status xti_cuda_arch(const char *arch, struct xti_cuda_target *t, struct xti_err *err)
{
    const char *p = !strncmp(arch, "sm_", 3) ? arch + 3 : arch;
    char *end;
    long sm = *p >= '0' && *p <= '9' ? strtol(p, &end, 10) : 0;
    if (!is_known(sm) || (*end && strcmp(end, "a") && strcmp(end, "f")))
        return xti_fail(
            err, XT_EINVAL,
            "there is no architecture '%.32s': sm_75, sm_80, sm_86, sm_89, sm_90, sm_100, sm_103, sm_110, "
            "sm_120, sm_121 or an older one from sm_50 on",
            arch);
    *t = (struct xti_cuda_target){.sm = (int)sm};
    return XT_OK;
}
