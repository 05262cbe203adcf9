/* cuda_program.h: what tests of whole CUDA programs on the driver double share: a context, a copy that is
 * compared with the CPU's, the driver's own functions as a program calls them. */
#ifndef TESTS_SUPPORT_CUDA_PROGRAM_H
#define TESTS_SUPPORT_CUDA_PROGRAM_H

#include "support/api.h"
#include "support/cuda_made.h"

static inline struct xt_ctx *cuda_context(const char *cache_dir)
{
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = cache_dir};
    struct xt_ctx *ctx;
    ck_assert_msg(xt_ctx_new(&o, &ctx) == XT_OK, "%s", xt_last_error()->message);
    return ctx;
}

/* A chain with one input, its buffers on the "device", and what the CPU makes of it. */
struct copy {
    unsigned char *src, *dst, *want;
    size_t src_bytes, dst_bytes;
};

static inline struct copy copy_of(const char *line)
{
    struct copy c;
    struct xt_kernel_info info = {.size = sizeof info};
    struct xt_ctx *cpu = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(cpu, line);
    expect(XT_OK, xt_kernel_get(k, &info));
    c.dst_bytes = (size_t)info.dst_min_bytes;
    c.src_bytes = (size_t)xt_src_min_bytes(k, 0);
    c.src = aligned_alloc(256, (c.src_bytes + 255) / 256 * 256);
    c.dst = aligned_alloc(256, (c.dst_bytes + 255) / 256 * 256);
    c.want = aligned_alloc(256, (c.dst_bytes + 255) / 256 * 256);
    fill_pattern(c.src, c.src_bytes, 11);
    memset(c.want, 0, c.dst_bytes);
    memset(c.dst, 0, c.dst_bytes);
    expect(XT_OK, xt_run(k, c.want, (const void *[]){c.src}, NULL));
    xt_kernel_free(k);
    xt_ctx_free(cpu);
    return c;
}

static inline void free_copy(struct copy *c)
{
    free(c->src);
    free(c->dst);
    free(c->want);
}

/* Were the bytes copied? Forgets them. */
static inline bool copied(struct copy *c)
{
    bool same = !memcmp(c->dst, c->want, c->dst_bytes);
    memset(c->dst, 0, c->dst_bytes);
    return same;
}

static inline xt_status run_copy(const struct xt_kernel *k, struct copy *c, void *stream)
{
    return xt_run(k, c->dst, (const void *[]){c->src}, stream);
}

/* The driver's functions, as a program calls them that has CUDA's headers: cu()->cuInit(0). */
#define PROGRAM_CALLS(X)                                                                                     \
    X(cuInit, (unsigned flags))                                                                              \
    X(cuCtxCreate_v2, (void **ctx, unsigned flags, int device))                                              \
    X(cuCtxDestroy_v2, (void *ctx))                                                                          \
    X(cuCtxPushCurrent_v2, (void *ctx))                                                                      \
    X(cuCtxPopCurrent_v2, (void **ctx))                                                                      \
    X(cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active))                                \
    X(cuDevicePrimaryCtxRetain, (void **ctx, int device))                                                    \
    X(cuDevicePrimaryCtxRelease_v2, (int device))                                                            \
    X(cuMemAlloc_v2, (uintptr_t * p, size_t bytes))                                                          \
    X(cuStreamCreate, (void **stream, unsigned flags))                                                       \
    X(cuStreamDestroy_v2, (void *stream))                                                                    \
    X(cuStreamBeginCapture_v2, (void *stream, int mode))                                                     \
    X(cuStreamEndCapture, (void *stream, void **graph))                                                      \
    X(cuGraphGetNodes, (void *graph, void **nodes, size_t *n))                                               \
    X(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags))                     \
    X(cuGraphLaunch, (void *exec, void *stream))                                                             \
    X(cuGraphExecDestroy, (void *exec))                                                                      \
    X(cuGraphDestroy, (void *graph))

struct program_calls {
#define X(name, params) int(*name) params;
    PROGRAM_CALLS(X)
#undef X
};

static inline const struct program_calls *cu(void)
{
    static struct program_calls calls;
#define X(name, params) *(void **)&calls.name = double_symbol(#name);
    if (!calls.cuInit) {
        PROGRAM_CALLS(X)
    }
#undef X
    return &calls;
}

#endif
