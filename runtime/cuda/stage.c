/* stage.c: a run on host buffers: up, launch, down. For tools and tests; servers keep their tensors on the
 * device. Layer 4. */
#include "cuda/cuda.h"
#include "cuda/module.h"

struct stage {
    const struct xti_cu_api *api;
    unsigned long long *memory; /* [n + 1]: sources, then the destination; 0: none */
    const void **src;           /* [n] the same as pointers */
    int n;
};

static xt_status upload(struct stage *s, int i, const void *host, size_t bytes, struct xti_err *err)
{
    if (!bytes)
        return XT_OK;
    xti_cu_result r = s->api->mem_alloc(&s->memory[i], bytes);
    if (r)
        return xti_driver_fail(s->api, "cuMemAlloc", r, err);
    r = s->api->mem_to_device(s->memory[i], host, bytes);
    return r ? xti_driver_fail(s->api, "cuMemcpyHtoD", r, err) : XT_OK;
}

static xt_status run(struct stage *s, const struct xti_cuda_plan *p, enum xti_cuda_tier tier,
                     const struct xti_module *m, void *dst, size_t dst_bytes, const void *const *src,
                     const size_t *src_bytes, struct xti_err *err)
{
    xt_status st = XT_OK;
    for (int i = 0; i < s->n && !st; i++) {
        st = upload(s, i, src[i], src_bytes[i], err);
        s->src[i] = (const void *)(uintptr_t)s->memory[i];
    }
    if (!st)
        st = upload(s, s->n, dst, dst_bytes, err);
    if (!st)
        st = xti_cuda_launch(p, tier, m, (void *)(uintptr_t)s->memory[s->n], s->src, NULL, err);
    if (st)
        return st;
    xti_cu_result r = s->api->mem_to_host(dst, s->memory[s->n], dst_bytes); /* waits for the default stream */
    if (xti_driver_is_sticky(r)) /* the uploads would have told of an earlier one */
        return xti_fail(err, XT_EDEVICE, "the kernel of this run failed on the device: error %u", r);
    return r ? xti_driver_fail(s->api, "cuMemcpyDtoH", r, err) : XT_OK;
}

xt_status xti_cuda_run_host(const struct xti_cuda_plan *p, enum xti_cuda_tier tier,
                            const struct xti_module *m, void *dst, size_t dst_bytes, const void *const *src,
                            const size_t *src_bytes, int n_srcs, struct xti_err *err)
{
    struct xti_driver_scope scope;
    xt_status st = xti_driver_enter((int)m->device, &scope, err);
    if (st)
        return st;
    struct stage s = {.api = scope.api, .n = n_srcs};
    s.memory = xti_alloc_array((size_t)n_srcs + 1, sizeof *s.memory);
    s.src = xti_alloc_array((size_t)n_srcs + 1, sizeof *s.src);
    st = s.memory && s.src ? run(&s, p, tier, m, dst, dst_bytes, src, src_bytes, err)
                           : xti_fail(err, XT_ENOMEM, "staging of %d buffers", n_srcs + 1);
    for (int i = 0; i <= n_srcs && s.memory; i++)
        if (s.memory[i])
            scope.api->mem_free(s.memory[i]);
    xti_free(s.memory);
    xti_free(s.src);
    xti_driver_leave(&scope, false);
    return st;
}
