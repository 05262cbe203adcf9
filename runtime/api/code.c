/* code.c: CUDA code by key: memory, then disk, then NVRTC. On disk a key holds everything that the code
 * depends on: format, compiler build, options, target, full source, templates and all. In memory code of the
 * structure tier is found by the plan's structure, without the source, and code of the exact tier by the key
 * of the disk. Layer 6. */
#include "api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/os.h"
#include "cuda/any.h"
#include "cuda/driver.h"
#include "cuda/helper.h"

enum { LEAST_ARCH = 50 }; /* below it no compiler of today goes */

struct request {
    struct xt_ctx *ctx;
    const struct xt_kernel *k;
    enum xti_cuda_tier tier;
    char name[XTI_CUDA_NAME_CHARS];
    const struct xti_home *home;   /* NULL: not loaded */
    const struct xti_nvrtc *nvrtc; /* NULL: there is none, for the reason in no_nvrtc */
    struct xti_err no_nvrtc;
    struct xti_str source, key;
    struct xti_code *found; /* or NULL: where build is to get it */
    const char *found_in;
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

void xti_code_payload(const struct xti_code *c, struct xti_str *b)
{
    uint64_t n[2] = {c->ptx_bytes, c->cubin_bytes};
    xti_str_addn(b, n, sizeof n);
    xti_str_addn(b, c->ptx, c->ptx_bytes);
    if (c->cubin)
        xti_str_addn(b, c->cubin, c->cubin_bytes);
}

static void store(struct request *r, const struct xti_code *c)
{
    struct xti_str b = {0}, what = {0}; /* the chain that was the first: a line for people */
    xti_kernel_text(r->k, &what);
    xti_code_payload(c, &b);
    if (!b.failed && !what.failed)
        xti_disk_put(r->ctx->disk, r->key.s, r->key.n, what.s, b.s, b.n);
    xti_str_free(&what);
    xti_str_free(&b);
}

static bool copy_code(const struct xti_code *from, struct xti_code *c)
{
    c->ptx = xti_memdup(from->ptx, from->ptx_bytes);
    c->ptx_bytes = from->ptx_bytes;
    c->cubin = from->cubin ? xti_memdup(from->cubin, from->cubin_bytes) : NULL;
    c->cubin_bytes = from->cubin_bytes;
    if (c->ptx && (c->cubin || !from->cubin))
        return true;
    xti_code_free(c);
    return false;
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

/* ---- compilers, and what is kept of their work */

static xt_status from_nvrtc(struct request *r, struct xti_code *c, struct xti_err *err)
{
    int64_t t = xti_now_ns();
    if (!r->nvrtc)
        return xti_fail(err, XT_ECOMPILE, "%s", r->no_nvrtc.e.message);
    xt_status s =
        xti_cuda_compile(r->ctx->helper, r->nvrtc, r->source.s, r->name, r->k->cuda->target.sm, c, err);
    xti_logf(XTI_LOG_TIME, "nvrtc %s sm_%d: %.1f ms", r->name, r->k->cuda->target.sm,
             (double)(xti_now_ns() - t) / 1e6);
    if (s)
        return s;
    atomic_fetch_add_explicit(&r->ctx->compiled, 1, memory_order_relaxed);
    store(r, c);
    return XT_OK;
}

static xt_status get_source(struct request *r, struct xti_err *err)
{
    return r->source.s ? XT_OK : xti_cuda_emit(r->k->cuda, r->tier, r->name, &r->source, err);
}

/* Of any architecture, tier or source: asked first, because a source takes long to write and to digest. */
static bool pack_knows(const struct request *r)
{
    char room[128];
    struct xti_str key = XTI_STR_ON(room);
    xti_code_pack_name(r->name, &key);
    bool knows = !key.failed && xti_pack_has(r->ctx->pack, key.s, key.n);
    xti_str_free(&key);
    return knows;
}

/* Of the pack's architectures the nearest below serves, too: by its cubin within a major number, else by its
 * PTX, which the driver compiles. */
static bool from_pack(struct request *r, struct xti_code *c)
{
    char digest[2 * XTI_SHA256_BYTES + 1], room[512];
    struct xti_blob b = {0};
    int sm = r->k->cuda->target.sm, arch = sm;
    if (!pack_knows(r) || get_source(r, NULL))
        return false;
    xti_code_digest(r->source.s, digest);
    for (bool there = false; arch >= LEAST_ARCH && !there; arch -= !there) {
        struct xti_str key = XTI_STR_ON(room);
        xti_code_pack_key(arch, r->tier, r->name, digest, &key);
        there = !key.failed && xti_pack_get(r->ctx->pack, key.s, key.n, &b) && decode(&b, c);
        xti_free(b.data);
        xti_str_free(&key);
    }
    if (arch < LEAST_ARCH)
        return false;
    if (arch / 10 != sm / 10) {
        xti_free(c->cubin);
        c->cubin = NULL;
        c->cubin_bytes = 0;
    }
    return true;
}

static const char *or_empty(const char *s) { return s ? s : ""; }

static void add_field(struct xti_str *key, const void *p, size_t n)
{
    xti_str_u64le(key, n);
    xti_str_addn(key, p, n);
}

/* NVRTC itself reads the two variables: they are options too. */
static void make_key(struct request *r)
{
    struct xti_str options = {0};
    xti_nvrtc_options(r->nvrtc, r->k->cuda->target.sm, &options);
    const char *fixed[] = {"xt code 2",
                           xti_nvrtc_build(r->nvrtc),
                           or_empty(options.s),
                           or_empty(getenv("NVRTC_PREPEND_FLAGS")),
                           or_empty(getenv("NVRTC_APPEND_FLAGS")),
                           r->name};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        add_field(&r->key, fixed[i], strlen(fixed[i]));
    xti_str_u64le(&r->key, (uint64_t)r->k->cuda->target.sm);
    add_field(&r->key, r->source.s, r->source.n);
    r->key.failed |= options.failed;
    xti_str_free(&options);
}

/* Source and key of the disk, which names the compiler: the first time of a process it is looked for and
 * opened, 5 ms or more. */
static xt_status describe(struct request *r, struct xti_err *err)
{
    xt_status s = get_source(r, err);
    if (s || r->key.s)
        return s;
    r->nvrtc = xti_nvrtc_for(r->k->cuda->target.sm, r->k->loads ? xti_driver_version() : 0, &r->no_nvrtc);
    make_key(r);
    return r->key.failed || r->source.failed ? xti_fail(err, XT_ENOMEM, "kernel key") : XT_OK;
}

/* One process builds while others of the same key wait for its file; whoever cannot wait builds too. */
static xt_status get(struct request *r, struct xti_shared_code *c, struct xti_err *err)
{
    c->origin = "pack";
    if (from_pack(r, &c->code))
        return XT_OK;
    xt_status s = describe(r, err);
    if (s)
        return s;
    c->origin = "disk";
    if (from_disk(r, &c->code))
        return XT_OK;
    int token = xti_disk_lock(r->ctx->disk, r->key.s, r->key.n);
    if (!from_disk(r, &c->code)) {
        c->origin = "built";
        s = from_nvrtc(r, &c->code, err);
    }
    xti_disk_unlock(r->ctx->disk, token);
    return s;
}

/* Elsewhere than in the primary context of a device the current one is meant. */
static xt_status load_module(struct xti_shared_code *c, const struct xti_home *home, struct xti_err *err)
{
    return xti_module_load(&c->code, c->name, home->context ? 0 : (int)home->number, &c->module, err);
}

/* An entry that the driver refuses is built once more, past the disk: what lies there may be damaged in a way
 * that its checksum does not show, and may be impossible to remove. Where it cannot be built the driver's
 * words stand. */
static xt_status load(struct request *r, struct xti_shared_code *c, struct xti_err *err)
{
    struct xti_err refusal = {0};
    struct xti_code fresh = {0};
    xt_status s = load_module(c, r->home, &refusal);
    if (s == XT_EDEVICE && strcmp(c->origin, "built") && !describe(r, NULL)) {
        xti_disk_drop(r->ctx->disk, r->key.s, r->key.n);
        if (!from_nvrtc(r, &fresh, NULL)) {
            xti_code_free(&c->code);
            c->code = fresh;
            c->origin = "built";
            return load_module(c, r->home, err);
        }
    }
    return s ? xti_fail(err, s, "%s", refusal.e.message) : XT_OK;
}

static struct xti_shared_code *new_code(enum xti_cuda_tier tier, const char *name, const char *source,
                                        size_t source_bytes, struct xti_err *err)
{
    struct xti_shared_code *c = xti_alloc(sizeof *c);
    if (c && (c->source = xti_memdup(source, source_bytes))) {
        atomic_init(&c->refs, 1);
        c->tier = tier;
        memcpy(c->name, name, sizeof c->name);
        return c;
    }
    xti_free(c);
    xti_fail(err, XT_ENOMEM, "source, %zu bytes", source_bytes);
    return NULL;
}

void xti_code_digest(const char *source, char digest[2 * XTI_SHA256_BYTES + 1])
{
    unsigned char sum[XTI_SHA256_BYTES];
    source += strcspn(source, "\n"); /* the first line names the architecture */
    xti_sha256_of(source, strlen(source), sum);
    xti_hex(sum, sizeof sum, digest);
}

void xti_code_pack_name(const char *name, struct xti_str *key)
{
    const char *field[] = {"xt pack 3", name};
    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        add_field(key, field[i], strlen(field[i]));
}

void xti_code_pack_key(int arch, enum xti_cuda_tier tier, const char *name, const char *digest,
                       struct xti_str *key)
{
    xti_code_pack_name(name, key);
    add_field(key, digest, strlen(digest));
    xti_str_u64le(key, tier);
    xti_str_u64le(key, (uint64_t)arch);
}

static xt_status build(void *arg, void **out, struct xti_err *err)
{
    struct request *r = arg;
    struct xti_shared_code *c = NULL;
    xt_status s = get_source(r, err);
    if (s)
        return s;
    if (!(c = new_code(r->tier, r->name, r->source.s, r->source.n + 1, err)))
        return XT_ENOMEM;
    if (r->found) {
        c->code = *r->found;
        c->origin = r->found_in;
        *r->found = (struct xti_code){0};
    } else if ((s = get(r, c, err))) {
        goto done;
    }
    if (r->home && (s = load(r, c, err)))
        goto done;
    *out = c;
    c = NULL;
done:
    xti_code_unref(c);
    return s;
}

static xt_status name_entry(struct request *r, struct xti_err *err)
{
    if (r->tier == XTI_TIER_ANY)
        snprintf(r->name, sizeof r->name, "%s", xti_any_name(r->k->cuda));
    if (r->tier == XTI_TIER_STRUCTURE)
        xti_cuda_structure_name(r->k->cuda, r->name);
    if (r->tier != XTI_TIER_EXACT)
        return XT_OK;
    const char *signature = xti_shared_plan_signature(r->k->shared, err);
    if (signature)
        snprintf(r->name, sizeof r->name, "xt_%s_%.8s", xti_cuda_plan_family(r->k->cuda), signature);
    return signature ? XT_OK : XT_ENOMEM;
}

static xt_status make_memory_key(struct request *r, struct xti_str *key, struct xti_err *err)
{
    xt_status s = XT_OK;
    xti_str_u64le(key, r->tier);
    xti_str_u64le(key, r->k->loads);
    xti_str_u64le(key, (uint64_t)r->k->cuda->target.sm);
    xti_str_u64le(key, r->home != NULL);
    xti_str_u64le(key, r->home ? r->home->context : 0);
    xti_str_u64le(key, r->home ? r->home->number : 0);
    if (r->tier == XTI_TIER_STRUCTURE)
        s = xti_cuda_structure(r->k->cuda, key, err);
    else if (r->tier == XTI_TIER_ANY)
        xti_str_add(key, xti_any_name(r->k->cuda));
    else if (!(s = describe(r, err)))
        xti_str_addn(key, r->key.s, r->key.n);
    return s ? s : key->failed ? xti_fail(err, XT_ENOMEM, "kernel key") : XT_OK;
}

static void drop(struct request *r)
{
    xti_str_free(&r->key);
    xti_str_free(&r->source);
}

static xt_status take(struct request *r, const struct xti_str *memory_key, struct xti_shared_code **out,
                      const char **origin, struct xti_err *err)
{
    void *code = NULL;
    bool hit = false;
    xt_status s = xti_memo_get(r->ctx->codes, memory_key->s, memory_key->n, build, r, &code, &hit, err);
    if (s)
        return s;
    *out = code;
    *origin = hit ? "memory" : (*out)->origin;
    xti_logf(XTI_LOG_CACHE, "%s: %s", r->name, *origin);
    return XT_OK;
}

xt_status xti_code_get(struct xt_ctx *ctx, const struct xt_kernel *k, enum xti_cuda_tier tier,
                       const struct xti_home *home, struct xti_shared_code **out, const char **origin,
                       struct xti_err *err)
{
    struct request r = {.ctx = ctx, .k = k, .tier = tier, .home = home};
    char room[1024];
    struct xti_str memory_key = XTI_STR_ON(room);
    xt_status s = name_entry(&r, err);
    if (!s)
        s = make_memory_key(&r, &memory_key, err);
    if (!s)
        s = take(&r, &memory_key, out, origin, err);
    xti_str_free(&memory_key);
    drop(&r);
    return s;
}

/* Code that was made for a context that no thread of xt's may load into. */
static bool from_unloaded(struct request *r, struct xti_code *c)
{
    const struct xti_home *home = r->home;
    char room[1024];
    struct xti_str key = XTI_STR_ON(room);
    void *there = NULL;
    if (!home || !home->context)
        return false;
    r->home = NULL;
    if (!make_memory_key(r, &key, NULL))
        xti_memo_get(r->ctx->codes, key.s, key.n, NULL, NULL, &there, NULL, NULL);
    r->home = home;
    bool ok = there && copy_code(&((struct xti_shared_code *)there)->code, c);
    xti_code_unref(there);
    xti_str_free(&key);
    return ok;
}

xt_status xti_code_find(struct xt_ctx *ctx, const struct xt_kernel *k, enum xti_cuda_tier tier,
                        const struct xti_home *home, bool disk, struct xti_shared_code **out,
                        const char **origin, struct xti_err *err)
{
    struct xti_code found = {0};
    struct request r = {.ctx = ctx, .k = k, .tier = tier, .home = home, .found = &found};
    char room[1024];
    void *there = NULL;
    bool building = false;
    struct xti_str memory_key = XTI_STR_ON(room);
    *out = NULL;
    xt_status s = tier == XTI_TIER_EXACT ? name_entry(&r, err) : XT_OK;
    if (!s)
        s = make_memory_key(&r, &memory_key, err);
    if (!s)
        s = xti_memo_get(ctx->codes, memory_key.s, memory_key.n, NULL, NULL, &there, &building, err);
    if (!s && !there && tier != XTI_TIER_EXACT) /* what is there has its name */
        s = name_entry(&r, err);
    if (there) {
        *out = there;
        *origin = "memory";
    } else if (s || building) { /* the builder has looked into the pack */
    } else if (from_unloaded(&r, &found)) {
        r.found_in = "memory";
        s = take(&r, &memory_key, out, origin, err);
    } else if (from_pack(&r, &found)) {
        r.found_in = "pack";
        s = take(&r, &memory_key, out, origin, err);
    } else if (disk && !(s = describe(&r, err)) && from_disk(&r, &found)) {
        r.found_in = "disk";
        s = take(&r, &memory_key, out, origin, err);
    }
    xti_code_free(&found);
    xti_str_free(&memory_key);
    drop(&r);
    return s;
}

xt_status xti_code_load(const struct xti_shared_code *c, const struct xti_home *home,
                        struct xti_shared_code **out, struct xti_err *err)
{
    xt_status s = XT_OK;
    struct xti_shared_code *d = new_code(c->tier, c->name, c->source, strlen(c->source) + 1, err);
    if (!d)
        return XT_ENOMEM;
    d->origin = c->origin;
    if (!copy_code(&c->code, &d->code))
        s = xti_fail(err, XT_ENOMEM, "code of %s", c->name);
    if (!s)
        s = load_module(d, home, err);
    if (s)
        xti_code_unref(d);
    else
        *out = d;
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
