/* module.c: loads compiled code into a context. Everything that a first launch would do is done here, so that
 * a launch may be captured. A module outlives neither its context nor, in the primary context, its own hold
 * on it. Layer 4. */
#include "cuda/module.h"

#include <stdio.h>
#include <string.h>

#include "cuda/cuda.h"

static unsigned long long context_id(const struct xti_cu_api *api, xti_cu_context ctx)
{
    unsigned long long id = 0;
    return api->ctx_id && !api->ctx_id(ctx, &id) ? id : 0;
}

bool xti_module_is_home(const struct xti_module *m, xti_cu_context ctx)
{
    return ctx == m->ctx && (!m->ctx_id || context_id(m->api, ctx) == m->ctx_id);
}

/* A cubin that is not for this device: the PTX may be. */
static xti_cu_result load_image(const struct xti_cu_api *api, const struct xti_code *c, xti_cu_module *out)
{
    xti_cu_result r = c->cubin ? api->module_load(out, c->cubin) : XTI_CU_NO_BINARY_FOR_GPU;
    return r == XTI_CU_NO_BINARY_FOR_GPU ? api->module_load(out, c->ptx) : r;
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
    char elem[160];
    xti_cu_result r = load_image(m->api, c, &m->module);
    if (r)
        return xti_driver_fail(m->api, "cuModuleLoadData", r, err);
    snprintf(elem, sizeof elem, "%s_e", name);
    xt_status s = find_entry(m, 0, name, err);
    if (!s)
        s = find_entry(m, 1, elem, err);
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
    xti_driver_leave(&scope, !s);
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

static void unload(struct xti_module *m)
{
    xti_cu_context current = NULL, unused;
    if (m->api->ctx_current(&current) || !context_lives(m, current))
        return;
    bool push = current != m->ctx;
    if (push && m->api->ctx_push(m->ctx))
        return;
    m->api->module_unload(m->module);
    if (push)
        m->api->ctx_pop(&unused);
    if (m->primary)
        m->api->primary_release(m->device);
}

void xti_module_free(struct xti_module *m)
{
    if (!m)
        return;
    if (!xti_driver_forked())
        unload(m);
    xti_free(m);
}
