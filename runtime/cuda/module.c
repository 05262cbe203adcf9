/* module.c: loads compiled code into a context, and unloads it. Everything that a first launch would do is
 * done at the load, so that a launch may be captured. What nobody uses any more may still be running: it
 * stays loaded, idle, until the device has done all its work. Layer 4. */
#include "cuda/module.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cuda/cuda.h"

/* Idle modules that are kept while users live: some 30 KB of device memory each. */
enum { MAX_IDLE = 1024 };

static struct {
    pthread_mutex_t lock;
    int users, n;
    struct xti_module *oldest, **newest;
} idle = {.lock = PTHREAD_MUTEX_INITIALIZER, .newest = &idle.oldest};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void before_fork(void) { pthread_mutex_lock(&idle.lock); }
static void after_fork(void) { pthread_mutex_unlock(&idle.lock); }
static void guard_fork(void) { pthread_atfork(before_fork, after_fork, after_fork); }

static unsigned long long context_id(const struct xti_cu_api *api, xti_cu_context ctx)
{
    unsigned long long id = 0;
    return api->ctx_id && !api->ctx_id(ctx, &id) ? id : 0;
}

bool xti_module_is_home(const struct xti_module *m, xti_cu_context ctx)
{
    return ctx == m->ctx && (!m->ctx_id || context_id(m->api, ctx) == m->ctx_id);
}

/* A cubin that is not for this device, or of a newer CUDA than the driver: the PTX may be for both. */
static xti_cu_result load_image(const struct xti_cu_api *api, const struct xti_code *c, xti_cu_module *out)
{
    xti_cu_result r = c->cubin ? api->module_load(out, c->cubin) : XTI_CU_NO_BINARY_FOR_GPU;
    bool refused =
        r == XTI_CU_NO_BINARY_FOR_GPU || r == XTI_CU_INVALID_IMAGE || r == XTI_CU_UNSUPPORTED_PTX_VERSION;
    return refused ? api->module_load(out, c->ptx) : r;
}

/* With lazy loading the code of a function reaches the device when something is asked of it. */
static xt_status find_entry(struct xti_module *m, int i, const char *name, struct xti_err *err)
{
    int registers;
    xti_cu_result r = m->api->module_function(&m->entry[i], m->module, name);
    if (r)
        return xti_driver_fail(m->api, "cuModuleGetFunction", r, err);
    if (m->api->func_load && (r = m->api->func_load(m->entry[i])))
        return xti_driver_fail(m->api, "cuFuncLoad", r, err);
    r = m->api->func_attribute(&registers, XTI_CU_FUNC_NUM_REGS, m->entry[i]);
    return r ? xti_driver_fail(m->api, "cuFuncGetAttribute", r, err) : XT_OK;
}

static xt_status load(struct xti_module *m, const struct xti_code *c, const char *name, struct xti_err *err)
{
    static const char *const two[] = {"", "_e"};
    bool any = xti_any_is_name(name);
    char entry[160];
    xt_status s = XT_OK;
    xti_cu_result r = load_image(m->api, c, &m->module);
    if (r)
        return xti_driver_fail(m->api, "cuModuleLoadData", r, err);
    for (int i = 0; i < (any ? XTI_ANY_ENTRIES : 2) && !s; i++) {
        snprintf(entry, sizeof entry, "%s%s", name, any ? xti_any_suffix[i] : two[i]);
        s = find_entry(m, i, entry, err);
    }
    if (s)
        m->api->module_unload(m->module);
    return s;
}

xt_status xti_module_load(const struct xti_code *c, const char *name, int device, struct xti_module **out,
                          struct xti_err *err)
{
    struct xti_driver_scope scope;
    struct xti_module *m = xti_alloc(sizeof *m);
    if (!m)
        return xti_fail(err, XT_ENOMEM, "module record");
    xt_status s = xti_driver_enter(device, &scope, err);
    if (s) {
        xti_free(m);
        return s;
    }
    m->api = scope.api;
    m->ctx = scope.ctx;
    m->ctx_id = context_id(scope.api, scope.ctx);
    m->device = scope.device;
    m->primary = scope.primary;
    s = load(m, c, name, err);
    xti_driver_leave(&scope, s == XT_OK);
    if (s) {
        xti_free(m);
        return s;
    }
    *out = m;
    return XT_OK;
}

/* A context that its owner destroyed took the module along: it must not be touched. Only a context that is
 * current, ours, or answers with its number is known to live. */
static bool context_lives(const struct xti_module *m, xti_cu_context current)
{
    if (m->primary || xti_module_is_home(m, current))
        return true;
    return m->ctx_id && context_id(m->api, m->ctx) == m->ctx_id;
}

/* Calls of xt_run that were launched are done when this returns true. */
static bool wait_for_work(const struct xti_cu_api *api)
{
    xti_cu_result r = api->ctx_wait();
    return r < XTI_CU_CAPTURE_FIRST || r > XTI_CU_CAPTURE_LAST;
}

/* Unloads the first of *list and those of the same context, after one wait. False: a stream of the context is
 * being captured, and nothing was done. */
static bool unload_first(struct xti_module **list)
{
    const struct xti_module m = **list;
    xti_cu_context current = NULL, unused;
    bool lives = !m.api->ctx_current(&current) && context_lives(&m, current),
         push = lives && current != m.ctx;
    if (push && m.api->ctx_push(m.ctx))
        lives = push = false;
    bool done = !lives || wait_for_work(m.api);
    while (done && *list) {
        struct xti_module *o = *list;
        if (o->ctx != m.ctx || o->ctx_id != m.ctx_id) {
            list = &o->next_idle;
            continue;
        }
        *list = o->next_idle;
        if (lives)
            m.api->module_unload(o->module);
        if (o->primary)
            m.api->primary_release(o->device);
        xti_free(o);
    }
    if (push)
        m.api->ctx_pop(&unused);
    return done;
}

static struct xti_module *take_idle(int most)
{
    struct xti_module *list = idle.oldest, **end = &list;
    while (*end && most-- > 0) {
        end = &(*end)->next_idle;
        idle.n--;
    }
    idle.oldest = *end;
    *end = NULL;
    if (!idle.oldest)
        idle.newest = &idle.oldest;
    return list;
}

static void put_idle(struct xti_module *m)
{
    m->next_idle = NULL;
    *idle.newest = m;
    idle.newest = &m->next_idle;
    idle.n++;
}

/* Unloads the n that have been idle longest, or as many as can be. */
static void unload_idle(int n)
{
    struct xti_module *kept = NULL;
    pthread_mutex_lock(&idle.lock);
    struct xti_module *list = take_idle(n);
    pthread_mutex_unlock(&idle.lock);
    while (list) {
        if (unload_first(&list))
            continue;
        struct xti_module *first = list;
        list = first->next_idle;
        first->next_idle = kept;
        kept = first;
    }
    pthread_mutex_lock(&idle.lock);
    while (kept) {
        struct xti_module *m = kept;
        kept = m->next_idle;
        put_idle(m);
    }
    pthread_mutex_unlock(&idle.lock);
}

void xti_module_free(struct xti_module *m)
{
    if (!m)
        return;
    if (xti_driver_forked()) {
        xti_free(m);
        return;
    }
    pthread_mutex_lock(&idle.lock);
    put_idle(m);
    int excess = !idle.users ? idle.n : idle.n > MAX_IDLE ? MAX_IDLE / 2 : 0;
    pthread_mutex_unlock(&idle.lock);
    if (excess)
        unload_idle(excess);
}

void xti_modules_keep(void)
{
    pthread_once(&once, guard_fork);
    pthread_mutex_lock(&idle.lock);
    idle.users++;
    pthread_mutex_unlock(&idle.lock);
}

void xti_modules_drop(void)
{
    if (xti_driver_forked())
        return;
    pthread_mutex_lock(&idle.lock);
    idle.users--;
    int n = idle.n;
    pthread_mutex_unlock(&idle.lock);
    unload_idle(n);
}
