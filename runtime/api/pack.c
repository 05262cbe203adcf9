/* pack.c: code of chains made ahead of time, into one file; and which packs a context reads. Layer 6. */
#include "cache/pack.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "base/threads.h"

static xt_status add_code(struct xti_pack_maker *m, const struct xt_kernel *k,
                          const struct xti_shared_code *c, struct xti_err *err)
{
    char digest[2 * XTI_SHA256_BYTES + 1];
    struct xti_str key = {0}, name = {0}, payload = {0}, what = {0};
    xti_code_digest(c->source, digest);
    xti_code_pack_key(k->cuda->target.sm, c->tier, c->name, digest, &key);
    xti_code_pack_name(c->name, &name);
    xti_code_payload(&c->code, &payload);
    if (!payload.failed)
        xti_ptx_lower(payload.s + payload.n - c->code.ptx_bytes - c->code.cubin_bytes);
    if (c->tier == XTI_TIER_ANY)
        xti_str_add(&what, "any chain");
    else
        xti_kernel_text(k, &what);
    xt_status s = key.failed || name.failed || payload.failed || what.failed
                      ? xti_fail(err, XT_ENOMEM, "pack entry")
                      : xti_pack_add(m, key.s, key.n, what.s, payload.s, payload.n, err);
    if (!s)
        s = xti_pack_add(m, name.s, name.n, what.s, "", 0, err);
    xti_str_free(&key);
    xti_str_free(&name);
    xti_str_free(&payload);
    xti_str_free(&what);
    return s;
}

/* What runs every chain; any kernel names the device. */
static xt_status add_any(struct xti_pack_maker *m, struct xt_ctx *ctx, const struct xt_kernel *k,
                         struct xti_err *err)
{
    struct xti_shared_code *c = NULL;
    const char *origin;
    xt_status s = xti_code_get(ctx, k, XTI_TIER_ANY, NULL, &c, &origin, err);
    if (!s)
        s = add_code(m, k, c, err);
    xti_code_unref(c);
    return s;
}

/* The first tier, or both: of a context of XT_GENERIC the structure's alone. */
static int count_tiers(const struct xt_ctx *ctx) { return ctx->mode == XT_GENERIC ? 1 : 2; }

static xt_status compile_tier(struct xt_ctx *ctx, const struct xt_graph *g, const char *arch, int i,
                              struct xt_kernel **k)
{
    static const xt_mode modes[] = {XT_GENERIC, XT_SYNC};
    struct xt_compile_options o = {.size = sizeof o, .backend = XT_CUDA, .arch = arch, .mode = modes[i]};
    return xt_compile(ctx, g, &o, k);
}

static xt_status add_chain(struct xti_pack_maker *m, struct xt_ctx *ctx, const struct xt_graph *g,
                           const char *arch, struct xti_err *err)
{
    xt_status s = XT_OK;
    for (int i = 0; i < count_tiers(ctx) && !s; i++) {
        struct xt_kernel *k;
        if ((s = compile_tier(ctx, g, arch, i, &k)))
            return xti_fail(err, s, "%s", xt_last_error()->message);
        const struct xti_shared_code *c = atomic_load(&k->now);
        if (c) /* else there is nothing to copy */
            s = add_code(m, k, c, err);
        if (!s && c && !i)
            s = add_any(m, ctx, k, err);
        xt_kernel_free(k);
    }
    return s;
}

/* Several threads compile all that is wanted; what fails is found out again, and told, by whoever adds it. */
struct ahead {
    struct xt_ctx *ctx;
    const struct xt_graph *const *graph;
    const char *const *arch;
    int n, n_archs;
    atomic_int next;
};

static void compile_ahead(void *arg, int thread)
{
    struct ahead *a = arg;
    int tiers = count_tiers(a->ctx);
    (void)thread;
    for (int i; (i = atomic_fetch_add(&a->next, 1)) < a->n * a->n_archs * tiers;) {
        struct xt_kernel *k;
        compile_tier(a->ctx, a->graph[i / tiers % a->n], a->arch[i / tiers / a->n], i % tiers, &k);
        xt_kernel_free(k);
    }
}

/* Without memory for threads one compiles after the other. */
static void compile_all(struct ahead *a)
{
    struct xti_threads *threads = xti_threads_new(NULL, NULL);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (!xti_threads_run(threads, n < 1 ? 1 : n > 16 ? 16 : (int)n, compile_ahead, a))
        compile_ahead(a, 0);
    xti_threads_close(threads);
    xti_threads_unref(threads);
}

/* What would only be found out after minutes. rename would replace a device, too. */
static xt_status check_arguments(int n_archs, const char *const *archs, const char *file, struct xti_err *err)
{
    xt_status s = XT_OK;
    struct xti_cuda_target t;
    struct stat st;
    if (!*file)
        return xti_fail(err, XT_EINVAL, "xt_pack: file has no name");
    if (!stat(file, &st) && !S_ISREG(st.st_mode))
        return xti_fail(err, XT_EIO, "pack %s: is there, and is no file", file);
    for (int i = 0; i < n_archs && !s; i++)
        s = archs[i] ? xti_cuda_arch(archs[i], &t, err)
                     : xti_fail(err, XT_EINVAL, "xt_pack: architecture %d is NULL", i);
    return s;
}

xt_status xt_pack(struct xt_ctx *ctx, int n, const struct xt_graph *const *graphs, int n_archs,
                  const char *const *archs, const char *file)
{
    struct xti_err err;
    struct xti_pack_maker m = {0};
    xti_err_clear(&err);
    if (!ctx || !file || n < 0 || n_archs < 1 || (n && !graphs) || !archs)
        return xti_publish(
            xti_fail(&err, XT_EINVAL, "xt_pack: an argument is NULL, or there is no architecture"), &err);
    xt_status s = check_arguments(n_archs, archs, file, &err);
    if (s)
        return xti_publish(s, &err);
    struct ahead ahead = {ctx, graphs, archs, n, n_archs, 0};
    compile_all(&ahead);
    for (int a = 0; a < n_archs && !s; a++)
        for (int i = 0; i < n && !s; i++)
            s = add_chain(&m, ctx, graphs[i], archs[a], &err);
    if (!s)
        s = xti_pack_write(&m, file, &err);
    xti_pack_maker_free(&m);
    return xti_publish(s, &err);
}

/* The pack that was built with the library: beside it, or installed. */
static void open_base(struct xt_ctx *ctx)
{
    static const char *const places[] = {"xtview.xtpack", "../share/xtview/xtview.xtpack",
                                         "../../share/xtview/xtview.xtpack"}; /* lib/x86_64-linux-gnu */
    char path[4096];
    struct xti_err unread = {0};
    for (size_t i = 0; i < sizeof places / sizeof *places && !ctx->pack; i++)
        if (xti_path_beside(places[i], path, sizeof path) && !access(path, R_OK) &&
            xti_pack_open(path, &ctx->pack, &unread))
            xti_logf(XTI_LOG_CACHE, "%s", unread.e.message);
}

xt_status xti_packs_open(struct xt_ctx *ctx, const char *given, struct xti_err *err)
{
    const char *path = given ? given : xti_env(XTI_ENV_PACK);
    if (!path)
        open_base(ctx);
    if (!path || !*path)
        return XT_OK;
    struct xti_err why = {0};
    xt_status s = xti_pack_open(path, &ctx->pack, &why);
    return s ? xti_fail(err, s, "%s%s", given ? "" : "XT_PACK: ", why.e.message) : XT_OK;
}
