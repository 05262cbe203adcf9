/* code.c: CUDA code by exact key: memory, then disk, then NVRTC. A key holds everything that the code depends
 * on: format, templates, compiler build, options, target, full source and what the launch expects. Layer 6.
 */
#include "api/api.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/os.h"
#include "cuda/driver.h"
#include "cuda/skeletons.h"

struct request {
    struct xt_ctx *ctx;
    const struct xti_cuda_plan *plan;
    const char *name, *what;
    const struct xti_home *home;   /* NULL: not loaded */
    const struct xti_nvrtc *nvrtc; /* NULL: there is none, for the reason in no_nvrtc */
    struct xti_err no_nvrtc;
    struct xti_str source, key;
};

/* Payload: two lengths, then PTX and cubin. */
static bool decode(const struct xti_blob *b, struct xti_code *c)
{
    uint64_t n[2];
    if (b->bytes < sizeof n)
        return false;
    memcpy(n, b->data, sizeof n);
    size_t rest = b->bytes - sizeof n;
    const char *p = (const char *)b->data + sizeof n;
    if (n[0] > rest || n[1] != rest - n[0] || n[0] == 0 || p[n[0] - 1] != 0)
        return false;
    c->ptx = xti_memdup(p, n[0]);
    c->ptx_bytes = n[0];
    c->cubin = n[1] ? xti_memdup(p + n[0], n[1]) : NULL;
    c->cubin_bytes = n[1];
    if (c->ptx && (c->cubin || !n[1]))
        return true;
    xti_code_free(c);
    return false;
}

static void store(struct request *r, const struct xti_code *c)
{
    struct xti_str b = {0};
    uint64_t n[2] = {c->ptx_bytes, c->cubin_bytes};
    xti_str_addn(&b, n, sizeof n);
    xti_str_addn(&b, c->ptx, c->ptx_bytes);
    if (c->cubin)
        xti_str_addn(&b, c->cubin, c->cubin_bytes);
    if (!b.failed)
        xti_disk_put(r->ctx->disk, r->key.s, r->key.n, r->what, b.s, b.n);
    xti_str_free(&b);
}

static bool from_disk(struct request *r, struct xti_code *c)
{
    struct xti_blob b = {0};
    if (!xti_disk_get(r->ctx->disk, r->key.s, r->key.n, &b))
        return false;
    bool ok = decode(&b, c);
    if (!ok)
        xti_disk_drop(r->ctx->disk, r->key.s, r->key.n);
    xti_free(b.data);
    return ok;
}

static xt_status from_nvrtc(struct request *r, struct xti_code *c, struct xti_err *err)
{
    int64_t t = xti_now_ns();
    if (!r->nvrtc)
        return xti_fail(err, XT_ECOMPILE, "%s", r->no_nvrtc.e.message);
    xt_status s = xti_nvrtc_compile(r->nvrtc, r->source.s, r->name, r->plan->target.sm, c, err);
    xti_logf(XTI_LOG_TIME, "nvrtc %s sm_%d: %.1f ms", r->name, r->plan->target.sm,
             (double)(xti_now_ns() - t) / 1e6);
    if (!s)
        store(r, c);
    return s;
}

/* One process builds while others of the same key wait for its file; whoever cannot wait builds too. */
static xt_status from_disk_or_nvrtc(struct request *r, struct xti_shared_code *c, struct xti_err *err)
{
    if ((c->from_disk = from_disk(r, &c->code)))
        return XT_OK;
    int token = xti_disk_lock(r->ctx->disk, r->key.s, r->key.n);
    xt_status s = XT_OK;
    if (!(c->from_disk = from_disk(r, &c->code)))
        s = from_nvrtc(r, &c->code, err);
    xti_disk_unlock(r->ctx->disk, token);
    return s;
}

static xt_status load_module(struct request *r, struct xti_shared_code *c, struct xti_err *err)
{
    return xti_module_load(&c->code, r->name, r->ctx->device, &c->module, err);
}

/* An entry that the driver refuses is built once more, past the disk: what lies there may be damaged in a way
 * that its checksum does not show, and may be impossible to remove. Where it cannot be built the driver's
 * words stand. */
static xt_status load(struct request *r, struct xti_shared_code *c, struct xti_err *err)
{
    struct xti_err refusal = {0};
    struct xti_code fresh = {0};
    xt_status s = load_module(r, c, &refusal);
    if (s == XT_EDEVICE && c->from_disk) {
        xti_disk_drop(r->ctx->disk, r->key.s, r->key.n);
        if (!from_nvrtc(r, &fresh, NULL)) {
            xti_code_free(&c->code);
            c->code = fresh;
            c->from_disk = false;
            return load_module(r, c, err);
        }
    }
    return s ? xti_fail(err, s, "%s", refusal.e.message) : XT_OK;
}

static xt_status build(void *arg, void **out, struct xti_err *err)
{
    struct request *r = arg;
    xt_status s = XT_OK;
    struct xti_shared_code *c = xti_alloc(sizeof *c);
    if (!c)
        return xti_fail(err, XT_ENOMEM, "code record");
    atomic_init(&c->refs, 1);
    if (!(c->source = xti_memdup(r->source.s, r->source.n + 1))) {
        s = xti_fail(err, XT_ENOMEM, "source, %zu bytes", r->source.n);
        goto done;
    }
    if ((s = from_disk_or_nvrtc(r, c, err)))
        goto done;
    if (r->home && (s = load(r, c, err)))
        goto done;
    *out = c;
    c = NULL;
done:
    xti_code_unref(c);
    return s;
}

static void add_field(struct xti_str *key, const void *p, size_t n)
{
    xti_str_u64le(key, n);
    xti_str_addn(key, p, n);
}

static const char *or_empty(const char *s) { return s ? s : ""; }

/* NVRTC itself reads the two variables: they are options too. */
static void make_key(struct request *r)
{
    struct xti_str options = {0};
    xti_nvrtc_options(r->nvrtc, r->plan->target.sm, &options);
    const char *fixed[] = {"xt code 1",
                           xti_templates_hash,
                           xti_nvrtc_build(r->nvrtc),
                           or_empty(options.s),
                           or_empty(getenv("NVRTC_PREPEND_FLAGS")),
                           or_empty(getenv("NVRTC_APPEND_FLAGS")),
                           r->name};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        add_field(&r->key, fixed[i], strlen(fixed[i]));
    xti_str_u64le(&r->key, (uint64_t)r->plan->target.sm);
    add_field(&r->key, r->source.s, r->source.n);
    r->key.failed |= options.failed;
    xti_str_free(&options);
}

xt_status xti_code_get(struct xt_ctx *ctx, const struct xti_cuda_plan *p, const char *name, const char *what,
                       const struct xti_home *home, struct xti_shared_code **out, const char **origin,
                       struct xti_err *err)
{
    struct request r = {.ctx = ctx, .plan = p, .name = name, .what = what, .home = home};
    struct xti_str memory_key = {0};
    void *code = NULL;
    bool hit = false;
    xt_status s = xti_cuda_emit(p, XTI_TIER_EXACT, name, &r.source, err);
    if (s)
        goto done;
    r.nvrtc = xti_nvrtc_for(p->target.sm, home ? xti_driver_version() : 0, &r.no_nvrtc);
    make_key(&r);
    xti_str_u64le(&memory_key, home != NULL);
    xti_str_u64le(&memory_key, home ? home->context : 0);
    xti_str_u64le(&memory_key, home ? home->number : 0);
    xti_str_addn(&memory_key, r.key.s, r.key.n);
    if (r.key.failed || r.source.failed || memory_key.failed) {
        s = xti_fail(err, XT_ENOMEM, "kernel key");
        goto done;
    }
    if ((s = xti_memo_get(ctx->codes, memory_key.s, memory_key.n, build, &r, &code, &hit, err)))
        goto done;
    *out = code;
    *origin = hit ? "memory" : (*out)->from_disk ? "disk" : "built";
    xti_logf(XTI_LOG_CACHE, "%s: %s", name,
             hit                 ? "in memory"
             : (*out)->from_disk ? "hit on disk"
                                 : "compiled");
done:
    xti_str_free(&memory_key);
    xti_str_free(&r.key);
    xti_str_free(&r.source);
    return s;
}

void *xti_code_ref(void *code)
{
    struct xti_shared_code *c = code;
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void xti_code_unref(void *code)
{
    struct xti_shared_code *c = code;
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    xti_module_free(c->module);
    xti_code_free(&c->code);
    xti_free(c->source);
    xti_free(c);
}
