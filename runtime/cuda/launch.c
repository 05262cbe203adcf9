/* launch.c: hands a plan's launch to the driver, or describes it as JSON. No lock; memory for more than
 * FEW_PARAMS parameters alone. Layer 4. */
#include "cuda/cuda.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "cuda/any.h"
#include "cuda/module.h"
#include "cuda/writer.h"

enum { FEW_PARAMS = 32 }; /* for which the stack has room; a kernel may have 4096 */

struct call {
    const struct xti_cuda_plan *plan;
    enum xti_cuda_tier tier;
    const struct xti_module *module;
    xti_cu_function entry;
    uintptr_t dst;
    const void *const *src;
    void *stream;
    struct xti_err *err;
};

static int count_params(const struct xti_cuda_plan *p) { return 2 + p->map.n_srcs + p->n_fills; }

static xt_status launch(const struct call *c, void **param, uintptr_t *address)
{
    const struct xti_cuda_plan *p = c->plan;
    int n = 0;
    address[0] = c->dst;
    param[n++] = &address[0];
    for (int i = 0; i < p->map.n_srcs; i++) {
        address[1 + i] = (uintptr_t)c->src[p->origin.src_of[i]] + (uintptr_t)p->origin.src_bytes[i];
        if (!p->table || i == 0)
            param[n++] = &address[1 + i];
    }
    if (c->tier == XTI_TIER_STRUCTURE)
        param[n++] = p->numbers.s;
    for (int i = 0; i < (p->table && p->n_fills ? 1 : p->n_fills); i++)
        param[n++] = p->fill[i];
    xti_cu_result r = c->module->api->launch(c->entry, (unsigned)p->grid, 1, 1,
                                             (unsigned)p->threads_per_block, 1, 1, 0, c->stream, param, NULL);
    return r ? xti_driver_fail(c->module->api, "cuLaunchKernel", r, c->err) : XT_OK;
}

/* One launch a source, and more where pieces are many. */
static xt_status launch_any(const struct call *c)
{
    const struct xti_cuda_plan *p = c->plan;
    const struct xti_any *any = atomic_load_explicit(&p->any, memory_order_acquire);
    xti_cu_result r = XTI_CU_SUCCESS;
    for (int i = 0; i < any->n && !r; i++) {
        const struct xti_any_launch *l = &any->launch[i];
        uintptr_t dst = c->dst, src = dst; /* read where nothing is */
        if (l->src < p->map.n_srcs)
            src = (uintptr_t)c->src[p->origin.src_of[l->src]] + (uintptr_t)p->origin.src_bytes[l->src];
        unsigned char numbers[XTI_ANY_PARAM_BYTES];
        xti_any_param(any, l, numbers);
        void *param[] = {&dst, &src, numbers};
        r = c->module->api->launch(c->module->entry[any->entry], (unsigned)l->grid, 1, 1, XTI_CUDA_THREADS, 1,
                                   1, 0, c->stream, param, NULL);
    }
    return r ? xti_driver_fail(c->module->api, "cuLaunchKernel", r, c->err) : XT_OK;
}

static xt_status launch_few(const struct call *c)
{
    void *param[FEW_PARAMS];
    uintptr_t address[FEW_PARAMS];
    return launch(c, param, address);
}

static xt_status launch_many(const struct call *c)
{
    size_t n = (size_t)count_params(c->plan);
    void **param = xti_alloc_array(n, sizeof *param + sizeof(uintptr_t));
    if (!param)
        return xti_fail(c->err, XT_ENOMEM, "%zu parameters of a launch", n);
    xt_status s = launch(c, param, (uintptr_t *)(param + n));
    xti_free(param);
    return s;
}

static xt_status launch_here(const struct call *c)
{
    if (c->tier == XTI_TIER_ANY)
        return launch_any(c);
    return count_params(c->plan) <= FEW_PARAMS ? launch_few(c) : launch_many(c);
}

static xt_status launch_in_home(const struct call *c)
{
    const struct xti_module *m = c->module;
    xti_cu_context unused;
    xti_cu_result r = m->api->ctx_push(m->ctx);
    if (r)
        return xti_driver_fail(m->api, "cuCtxPushCurrent", r, c->err);
    xt_status s = launch_here(c);
    m->api->ctx_pop(&unused);
    return s;
}

static xt_status refuse_context(const struct xti_module *m, xti_cu_context current, struct xti_err *err)
{
    if (current == m->ctx)
        return xti_fail(err, XT_ENODEVICE, "the CUDA context that the kernel was compiled in was destroyed");
    if (!current)
        return xti_fail(err, XT_ENODEVICE,
                        "this thread has no current CUDA context, and the kernel was compiled in one that is "
                        "not its device's primary one");
    return xti_fail(err, XT_ENODEVICE,
                    "the kernel was compiled in another CUDA context than the current one");
}

xt_status xti_cuda_launch(const struct xti_cuda_plan *p, enum xti_cuda_tier tier, const struct xti_module *m,
                          void *dst, const void *const *src, void *stream, struct xti_err *err)
{
    struct call c = {.plan = p, .tier = tier, .module = m, .src = src, .stream = stream, .err = err};
    xti_cu_context current = NULL;
    if (xti_driver_forked())
        return xti_fail(err, XT_EFORKED, "CUDA kernel of the parent process: the child cannot run it");
    if (!p->n_steps)
        return XT_OK;
    xti_cu_result r = m->api->ctx_current(&current);
    if (r)
        return xti_driver_fail(m->api, "cuCtxGetCurrent", r, err);
    c.dst = (uintptr_t)dst + (uintptr_t)p->origin.dst_bytes;
    uintptr_t bits = (uintptr_t)dst;
    for (int i = 0; i < p->map.n_srcs; i++)
        bits |= (uintptr_t)src[p->origin.src_of[i]];
    bool wide = bits % 16 == 0;
    c.plan = wide ? p : p->elem;
    c.entry = m->entry[!wide];
    if (!current && m->primary)
        return launch_in_home(&c);
    return xti_module_is_home(m, current) ? launch_here(&c) : refuse_context(m, current, err);
}

static void put_pointer(const char *of, int input, int64_t byte_offset, struct xti_str *b)
{
    xti_str_addf(b, "{\"kind\": \"pointer\", \"of\": \"%s", of);
    if (input >= 0)
        xti_str_addf(b, "%d", input);
    xti_str_addf(b, "\", \"byte_offset\": %" PRId64 "}", byte_offset);
}

static void put_bytes(const void *bytes, size_t n, struct xti_str *b)
{
    const unsigned char *p = bytes;
    char hex[3];
    xti_str_add(b, ", {\"kind\": \"bytes\", \"hex\": \"");
    for (size_t i = 0; i < n; i++) {
        xti_hex(p + i, 1, hex);
        xti_str_add(b, hex);
    }
    xti_str_add(b, "\"}");
}

static void put_launch(const char *entry, int64_t grid, int threads, struct xti_str *b)
{
    xti_str_addf(b,
                 "{\"entry\": \"%s\", \"grid\": [%" PRId64
                 ", 1, 1], \"block\": [%d, 1, 1], \"shared\": 0, \"params\": [",
                 entry, grid, threads);
}

static void put_any_launches(const struct xti_cuda_plan *p, const char *name, struct xti_str *b)
{
    char entry[64];
    const struct xti_any *any = atomic_load_explicit(&p->any, memory_order_acquire);
    snprintf(entry, sizeof entry, "%s%s", name, xti_any_suffix[any->entry]);
    for (int i = 0; i < any->n; i++) {
        const struct xti_any_launch *l = &any->launch[i];
        xti_str_add(b, i ? ", " : "[");
        put_launch(entry, l->grid, XTI_CUDA_THREADS, b);
        put_pointer("dst", -1, p->origin.dst_bytes, b);
        xti_str_add(b, ", ");
        if (l->src < p->map.n_srcs)
            put_pointer("src", p->origin.src_of[l->src], p->origin.src_bytes[l->src], b);
        else
            put_pointer("dst", -1, p->origin.dst_bytes, b);
        unsigned char numbers[XTI_ANY_PARAM_BYTES];
        xti_any_param(any, l, numbers);
        put_bytes(numbers, sizeof numbers, b);
        xti_str_add(b, "]}");
    }
    xti_str_add(b, "]");
}

/* Buffers are taken to be aligned to 16 bytes. */
void xti_cuda_launch_json(const struct xti_cuda_plan *p, enum xti_cuda_tier tier, const char *name,
                          struct xti_str *b)
{
    if (!p->n_steps) {
        xti_str_add(b, "[]");
        return;
    }
    if (tier == XTI_TIER_ANY) {
        put_any_launches(p, name, b);
        return;
    }
    xti_str_add(b, "[");
    put_launch(name, p->grid, p->threads_per_block, b);
    put_pointer("dst", -1, p->origin.dst_bytes, b);
    for (int i = 0; i < p->map.n_srcs; i++) {
        xti_str_add(b, p->table && i == 0 ? ", {\"kind\": \"pointers\", \"of\": [" : ", ");
        put_pointer("src", p->origin.src_of[i], p->origin.src_bytes[i], b);
    }
    if (p->table && p->map.n_srcs)
        xti_str_add(b, "]}");
    if (tier == XTI_TIER_STRUCTURE)
        put_bytes(p->numbers.s, p->numbers.n, b);
    for (int i = 0; i < p->n_fills; i += p->table ? p->n_fills : 1)
        put_bytes(p->fill[i], p->table ? 16 * (size_t)p->n_fills : 16, b);
    xti_str_add(b, "]}]");
}
