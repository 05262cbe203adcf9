/* compile.c: graph -> map -> plan -> kernel, through the table of kernels by request. Layer 6. */
#include "api/api.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cuda/any.h"
#include "graph/parse.h"

enum { ROOM = 4096 }; /* bytes of a request key that need no allocation: chains of twenty operations */

struct request {
    struct xt_ctx *ctx;
    const struct xt_graph *graph;
    xt_backend backend;
    const char *arch;
    bool load;    /* on the device: CUDA without an architecture given */
    xt_mode mode; /* CUDA */
    bool measure; /* CPU */
    struct xti_home home;
    const unsigned char *key;
    size_t key_bytes;
};

static void destroy(struct xt_kernel *k)
{
    xti_free(k->origin);
    for (int tier = 0; tier < XTI_TIERS; tier++) {
        xti_free(atomic_load_explicit(&k->launch[tier], memory_order_relaxed));
        xti_code_unref(k->code[tier]);
    }
    xti_better_free(k);
    xti_threads_unref(k->pool);
    xti_shared_plan_unref(k->shared);
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

/* More than the problem line of g can have. */
static size_t text_bound(const struct xt_graph *g)
{
    size_t n = 0;
    for (int i = 0; i < g->n_nodes; i++)
        n += 512 + 160 * (size_t)g->node[i].n_args + 32 * (size_t)g->node[i].n_attrs +
             48 * (size_t)g->node[i].rank;
    return n;
}

/* A graph that cannot be written down could not be explained either. */
static xt_status check_text(const struct xt_graph *g, struct xti_err *err)
{
    xt_status s = text_bound(g) > XTI_MAX_TEXT ? xt_print(g, NULL, 0, NULL) : XT_OK;
    return s ? xti_fail(err, s, "%s", xt_last_error()->message) : XT_OK;
}

void xti_kernel_text(const struct xt_kernel *k, struct xti_str *b)
{
    size_t need = 0;
    struct xt_graph *g = NULL;
    bool ok = !xti_graph_unpack(k->packed, &g, NULL) && !xt_print(g, NULL, 0, &need);
    char *text = ok ? xti_alloc(need) : NULL;
    if (text && !xt_print(g, text, need, NULL))
        xti_str_add(b, text);
    else
        b->failed = true;
    xti_free(text);
    xt_graph_free(g);
}

static xt_status get_purpose(const struct request *r, struct xti_purpose *f, struct xti_err *err)
{
    *f = (struct xti_purpose){.backend = r->backend, .cpu = &r->ctx->cpu};
    f->tuning = (struct xti_tuning){r->ctx->wisdom, r->ctx->pool, r->measure};
    if (r->backend != XT_CUDA)
        return XT_OK;
    return r->arch ? xti_cuda_arch(r->arch, &f->cuda, err) : xti_cuda_target(r->ctx->device, &f->cuda, err);
}

/* The tier that a compile waits for. Code for an architecture is for elsewhere: the best there is, unless
 * told otherwise. */
static enum xti_cuda_tier first_tier(const struct request *r, const struct xt_kernel *k)
{
    bool exact = r->mode == XT_SYNC || (r->mode == XT_ASYNC && !r->load);
    return exact || !k->cuda->structure.n ? XTI_TIER_EXACT : XTI_TIER_STRUCTURE;
}

/* False: not there. disk: nor on the disk. */
static bool find_code(const struct request *r, struct xt_kernel *k, enum xti_cuda_tier tier, bool disk)
{
    return !xti_code_find(r->ctx, k, tier, &r->home, disk, &k->code[tier], &k->code_origin[tier], NULL) &&
           k->code[tier];
}

/* The second structure that a context would have to compile brings what runs anything: who compiles one chain
 * waits for that alone. */
static bool make_any(const struct request *r, struct xt_kernel *k)
{
    const enum xti_cuda_tier any = XTI_TIER_ANY;
    return atomic_fetch_add_explicit(&r->ctx->unseen, 1, memory_order_relaxed) &&
           !xti_code_get(r->ctx, k, any, &r->home, &k->code[any], &k->code_origin[any], NULL);
}

/* Code that is there, of a tier below the one given where there is somebody to make that. */
static enum xti_cuda_tier find_at_once(const struct request *r, struct xt_kernel *k, enum xti_cuda_tier tier)
{
    if (find_code(r, k, tier, false))
        return tier;
    bool serves = !xti_any_make(&k->shared->cuda, NULL), any = serves && find_code(r, k, XTI_TIER_ANY, false);
    if (!any && find_code(r, k, tier, true))
        return tier;
    any = any || (serves && make_any(r, k));
    return any && xti_better_promise(k, r->ctx->queue, &r->home, tier) ? XTI_TIER_ANY : tier;
}

static xt_status make_code(const struct request *r, struct xt_kernel *k, struct xti_err *err)
{
    enum xti_cuda_tier tier = first_tier(r, k);
    bool waits = r->mode != XT_ASYNC || !r->load;
    xt_status s = XT_OK;
    if (!waits)
        tier = find_at_once(r, k, tier);
    if (!k->code[tier])
        s = xti_code_get(r->ctx, k, tier, r->load ? &r->home : NULL, &k->code[tier], &k->code_origin[tier],
                         err);
    if (s)
        return s;
    atomic_init(&k->now, k->code[tier]);
    if (!waits && tier == XTI_TIER_STRUCTURE)
        xti_better_promise(k, r->ctx->queue, &r->home, XTI_TIER_EXACT);
    else if (tier == XTI_TIER_ANY)
        xti_better_want(k, false);
    return XT_OK;
}

static void log_kernel(const struct xt_kernel *k)
{
    struct xti_str text = {0}, map = {0}, refused = {0};
    const char *signature = xti_shared_plan_signature(k->shared, NULL);
    xti_kernel_text(k, &text);
    xti_map_text(k->map, &map);
    xti_kernel_refusals(k, &refused);
    xti_logf(XTI_LOG_GRAPH, "%s", text.s ? text.s : "");
    xti_logf(XTI_LOG_MAP, "%s %s\n%s", xti_class_name(xti_map_class(k->map)), signature ? signature : "",
             map.s ? map.s : "");
    if (k->backend != XT_REF)
        xti_logf(XTI_LOG_PLAN, "%s; refused:\n%s", xti_kernel_strategy(k), refused.s ? refused.s : "");
    xti_str_free(&text);
    xti_str_free(&map);
    xti_str_free(&refused);
}

static const struct xti_plan no_plan;
static const struct xti_cuda_plan no_cuda;

static void take_shared(struct xt_kernel *k, struct xti_shared_plan *p)
{
    int align = k->backend == XT_CUDA || p->map.esize < 8 ? p->map.esize : 8;
    k->shared = p;
    k->map = &p->map;
    k->plan = k->backend == XT_CUDA ? &no_plan : &p->plan;
    k->cuda = k->backend == XT_CUDA ? &p->cuda : &no_cuda;
    k->misaligned = (uintptr_t)align - 1;
    k->direct = k->backend == XT_CPU && p->call.fn && !k->check ? p : NULL;
}

/* After take_shared: kernels whose pointers are starts of buffers already have all they need. */
static xt_status take_origins(struct xt_kernel *k, const struct xt_graph *g, struct xti_err *err)
{
    uint64_t es = (uint64_t)k->map->esize;
    bool any = g->out_origin;
    for (int i = 0; i < g->n_inputs; i++)
        any |= g->node[g->input[i]].origin;
    if (!any)
        return XT_OK;
    k->direct = NULL;
    k->origin = xti_alloc_array((size_t)g->n_inputs + 1, sizeof *k->origin);
    if (!k->origin)
        return xti_fail(err, XT_ENOMEM, "kernel record");
    k->origin[0] = g->out_origin ? (uint64_t)g->out_offset * es : 0;
    for (int i = 0; i < g->n_inputs; i++) {
        const struct xti_node *n = &g->node[g->input[i]];
        k->origin[1 + i] = n->origin ? (uint64_t)n->offset * es : 0;
    }
    return XT_OK;
}

static xt_status build(void *arg, void **out, struct xti_err *err)
{
    const struct request *r = arg;
    struct xti_purpose purpose;
    struct xti_shared_plan *shared;
    xt_status s = XT_OK;
    struct xt_kernel *k = xti_alloc(sizeof *k + r->key_bytes);
    if (!k)
        return xti_fail(err, XT_ENOMEM, "kernel record");
    memcpy(k->packed, r->key, r->key_bytes); /* the key begins with the packed graph */
    atomic_init(&k->refs, 1);
    k->backend = r->backend;
    k->pool = xti_threads_ref(r->ctx->pool);
    k->loads = r->load;
    k->check = r->ctx->check;
    if ((s = check_text(r->graph, err)))
        goto done;
    if ((s = get_purpose(r, &purpose, err)))
        goto done;
    if ((s = xti_shared_plan_get(r->ctx->plans, r->graph, &purpose, &shared, err)))
        goto done;
    take_shared(k, shared);
    if ((s = take_origins(k, r->graph, err)))
        goto done;
    if (r->ctx->log)
        log_kernel(k);
    if (k->backend == XT_CUDA && k->map->n_pieces && (s = make_code(r, k, err)))
        goto done;
    *out = k;
    k = NULL;
done:
    xt_kernel_free(k);
    return s;
}

static void count_compile(struct xt_ctx *ctx, bool hit, const struct xt_kernel *k)
{
    const char *origin = hit ? "memory" : xti_kernel_origin(k);
    atomic_llong *n = !strcmp(origin, "memory")                            ? &ctx->memory_hits
                      : !strcmp(origin, "disk") || !strcmp(origin, "pack") ? &ctx->disk_hits
                                                                           : &ctx->built;
    atomic_fetch_add_explicit(n, 1, memory_order_relaxed);
}

/* A kernel that was there: this is a use of it, in the context that it is at home in. */
static xt_status improve(const struct request *r, struct xt_kernel *k, struct xti_err *err)
{
    struct xti_better *b = &k->better;
    if (!b->queue)
        return XT_OK;
    if (r->mode == XT_SYNC)
        return xti_better_wait(k, err);
    if (atomic_load_explicit(&b->state, memory_order_relaxed) == XTI_MADE)
        xti_better_load(k);
    xti_better_use(k, b);
    return XT_OK;
}

static xt_status compile(struct request *r, struct xt_kernel **out, struct xti_err *err)
{
    unsigned char room[ROOM], *key = room;
    void *kernel = NULL;
    bool hit = false;
    if (r->load && xti_home_get(r->ctx->device, &r->home, err))
        return err->e.status;
    char generic[64];
    const char *how = r->measure ? "measured" : r->arch; /* never both: only CUDA has architectures */
    if (r->mode == XT_GENERIC) {
        snprintf(generic, sizeof generic, "generic %.40s", how ? how : "");
        how = generic;
    }
    size_t bound = xti_request_bound(r->graph, how);
    if (bound > ROOM && !(key = xti_alloc(bound)))
        return xti_fail(err, XT_ENOMEM, "request key");
    r->key = key;
    r->key_bytes = xti_request_key(r->graph, r->backend, how, &r->home, key);
    xt_status s = xti_memo_get(r->ctx->kernels, key, r->key_bytes, build, r, &kernel, &hit, err);
    if (!s)
        count_compile(r->ctx, hit, kernel);
    if (!s && hit && r->mode)
        s = improve(r, kernel, err);
    if (key != room)
        xti_free(key);
    if (s)
        xt_kernel_free(kernel);
    else
        *out = kernel;
    return s;
}

xt_status xt_compile(struct xt_ctx *ctx, const struct xt_graph *g, const struct xt_compile_options *opt,
                     struct xt_kernel **out)
{
    struct xti_err err;
    struct xt_compile_options o = {0};
    xti_err_clear(&err);
    if (!out)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_compile: out is NULL"), &err);
    *out = NULL;
    if (!ctx || !g)
        return xti_fail_null("xt_compile", ctx ? "graph" : "ctx");
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
    if (o.mode < XT_MODE_AUTO || o.mode > XT_GENERIC)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_compile: mode %d", (int)o.mode), &err);
    if (o.measure < -1 || o.measure > 1)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_compile: measure %d", o.measure), &err);
    if (g->err.e.status)
        return xti_publish(g->err.e.status, &g->err);
    if (g->out < 0)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_compile: the graph has no output: call xt_output"),
                           &err);
    struct request r = {.ctx = ctx, .graph = g, .backend = o.backend ? o.backend : ctx->backend};
    r.arch = r.backend == XT_CUDA ? o.arch : NULL;
    r.measure = r.backend == XT_CPU && (o.measure ? o.measure > 0 : ctx->measure);
    r.load = r.backend == XT_CUDA && !o.arch;
    r.mode = r.backend == XT_CUDA ? o.mode ? o.mode : ctx->mode : XT_MODE_AUTO;
    return xti_publish(compile(&r, out, &err), &err);
}

xt_status xt_kernel_wait(struct xt_kernel *k)
{
    struct xti_err err;
    xti_err_clear(&err);
    if (!k)
        return xti_fail_null("xt_kernel_wait", "kernel");
    return xti_publish(xti_better_wait(k, &err), &err);
}
