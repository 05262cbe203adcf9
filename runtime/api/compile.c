/* compile.c: graph -> map -> plan -> kernel, through the table of kernels by request. Layer 6. */
#include "api/api.h"

#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "base/num.h"

struct request {
    struct xt_ctx *ctx;
    const struct xt_graph *graph;
    xt_backend backend;
    const char *arch;
    bool load; /* on the device: CUDA without an architecture given */
    struct xti_home home;
};

static void destroy(struct xt_kernel *k)
{
    xt_graph_free(k->graph);
    xti_free(k->text);
    xti_free(k->launch);
    xti_map_free(&k->map);
    xti_plan_free(&k->plan);
    xti_code_unref(k->code);
    xti_free(k);
}

struct xt_kernel *xt_kernel_ref(struct xt_kernel *k)
{
    if (k)
        atomic_fetch_add_explicit(&k->refs, 1, memory_order_relaxed);
    return k;
}

void xt_kernel_free(struct xt_kernel *k)
{
    if (k && atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) == 1)
        destroy(k);
}

/* A private copy through the problem line: printing and parsing are inverse. */
static xt_status copy_graph(struct xt_kernel *k, const struct xt_graph *g, struct xti_err *err)
{
    size_t need = 0;
    xt_status s = xt_print(g, NULL, 0, &need);
    if (!s && !(k->text = xti_alloc(need)))
        s = XT_ENOMEM;
    if (!s)
        s = xt_print(g, k->text, need, NULL);
    if (!s)
        s = xt_parse(k->text, 0, NULL, &k->graph);
    return s ? xti_fail(err, s, "%s", xt_last_error()->status ? xt_last_error()->message : "problem line")
             : XT_OK;
}

/* Addresses are multiplied by the element's width from here on: that must fit too. */
static xt_status check_bytes(const struct xti_map *m, struct xti_err *err)
{
    int64_t unused;
    if (m->dst_hi >= m->dst_lo && !xti_mad64(m->dst_hi, m->esize, m->esize, &unused))
        return xti_fail(err, XT_EOVERFLOW,
                        "destination: the end of element %lld of %d bytes does not fit in 63 bits",
                        (long long)m->dst_hi, m->esize);
    for (int i = 0; i < m->n_srcs; i++)
        if (m->src_hi[i] >= m->src_lo[i] && !xti_mad64(m->src_hi[i], m->esize, m->esize, &unused))
            return xti_fail(err, XT_EOVERFLOW,
                            "input %d: the end of element %lld of %d bytes does not fit in 63 bits", i,
                            (long long)m->src_hi[i], m->esize);
    return XT_OK;
}

static xt_status make_target(const struct request *r, struct xti_target *t, struct xti_err *err)
{
    memset(t, 0, sizeof *t);
    if (r->backend != XT_CUDA) {
        xti_cpu_target(r->ctx->threads, t);
        t->backend = XT_CPU;
        return XT_OK;
    }
    return r->arch ? xti_cuda_arch(r->arch, t, err) : xti_cuda_target(r->ctx->device, t, err);
}

static xt_status make_code(const struct request *r, struct xt_kernel *k, struct xti_err *err)
{
    struct xti_str launch = {0};
    snprintf(k->name, sizeof k->name, "xt_%s_%.8s", xti_plan_strategy(&k->plan), k->signature);
    xti_cuda_launch_json(&k->plan, k->name, &launch);
    k->launch = launch.s; /* the builder's buffer changes owner */
    if (launch.failed)
        return xti_fail(err, XT_ENOMEM, "launch record");
    return xti_code_get(r->ctx, &k->plan, k->name, k->text, r->load ? &r->home : NULL, &k->code, &k->origin,
                        err);
}

static void log_kernel(const struct xt_kernel *k)
{
    if (xti_log_on(XTI_LOG_GRAPH))
        xti_logf(XTI_LOG_GRAPH, "%s", k->text);
    if (xti_log_on(XTI_LOG_MAP)) {
        struct xti_str b = {0};
        xti_map_text(&k->map, &b);
        xti_logf(XTI_LOG_MAP, "%s %s\n%s", xti_class_name(xti_map_class(&k->map)), k->signature,
                 b.s ? b.s : "");
        xti_str_free(&b);
    }
    if (k->backend != XT_REF)
        xti_logf(XTI_LOG_PLAN, "%s; refused:\n%s", xti_plan_strategy(&k->plan),
                 k->plan.refused.s ? k->plan.refused.s : "");
}

static xt_status build(void *arg, void **out, struct xti_err *err)
{
    const struct request *r = arg;
    struct xti_target target;
    xt_status s = XT_OK;
    struct xt_kernel *k = xti_alloc(sizeof *k);
    if (!k)
        return xti_fail(err, XT_ENOMEM, "kernel record");
    atomic_init(&k->refs, 1);
    k->backend = r->backend;
    k->parallel = r->ctx->parallel;
    k->origin = "built in";
    k->check = xti_env_int(XTI_ENV_CHECK, 0) > 0;
    if ((s = copy_graph(k, r->graph, err)))
        goto done;
    if ((s = xti_map_fuse(k->graph, NULL, &k->map, err)))
        goto done;
    if ((s = check_bytes(&k->map, err)))
        goto done;
    if ((s = make_target(r, &target, err)))
        goto done;
    if ((s = xti_signature(&k->map, &target, k->signature, err)))
        goto done;
    if (k->backend != XT_REF && (s = xti_plan_make(&k->map, &target, &k->plan, err)))
        goto done;
    log_kernel(k);
    if (k->backend == XT_CUDA && k->map.n_pieces && (s = make_code(r, k, err)))
        goto done;
    *out = k;
    k = NULL;
done:
    xt_kernel_free(k);
    return s;
}

static void count_compile(struct xt_ctx *ctx, const char *origin)
{
    atomic_llong *n = !strcmp(origin, "memory") ? &ctx->memory_hits
                      : !strcmp(origin, "disk") ? &ctx->disk_hits
                                                : &ctx->built;
    atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

static xt_status compile(struct request *r, struct xt_kernel **out, struct xti_err *err)
{
    struct xti_str key = {0};
    void *kernel = NULL;
    bool hit = false;
    if (r->load && xti_home_get(&r->home, err))
        return err->e.status;
    xti_request_key(r->graph, r->backend, r->arch, &r->home, &key);
    xt_status s = key.failed ? xti_fail(err, XT_ENOMEM, "request key")
                             : xti_memo_get(r->ctx->kernels, key.s, key.n, build, r, &kernel, &hit, err);
    if (!s)
        count_compile(r->ctx, hit ? "memory" : ((struct xt_kernel *)kernel)->origin);
    xti_str_free(&key);
    *out = kernel;
    return s;
}

xt_status xt_compile(struct xt_ctx *ctx, const struct xt_graph *g, const struct xt_compile_options *opt,
                     struct xt_kernel **out)
{
    struct xti_err err = {0};
    struct xt_compile_options o = {0};
    if (!out)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_compile: out is NULL"), &err);
    *out = NULL;
    if (!ctx || !g)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_compile: %s is NULL", ctx ? "graph" : "ctx"), &err);
    if (opt && opt->size < offsetof(struct xt_compile_options, arch) + sizeof o.arch)
        return xti_publish(xti_fail(&err, XT_EINVAL,
                                    "xt_compile: options.size is %zu, want "
                                    "sizeof(struct xt_compile_options)",
                                    opt->size),
                           &err);
    if (opt)
        memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
    if (o.backend < XT_AUTO || o.backend > XT_CUDA)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_compile: backend %d", (int)o.backend), &err);
    if (g->err.e.status)
        return xti_publish(g->err.e.status, &g->err);
    if (g->out < 0)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_compile: the graph has no output: call xt_output"),
                           &err);
    struct request r = {.ctx = ctx, .graph = g, .backend = o.backend ? o.backend : ctx->backend};
    r.arch = r.backend == XT_CUDA ? o.arch : NULL;
    r.load = r.backend == XT_CUDA && !o.arch;
    return xti_publish(compile(&r, out, &err), &err);
}
