/* pack.c: code of chains made ahead of time, into one file; and which packs a context reads. Layer 6. */
#include "cache/pack.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"

static xt_status add_code(struct xti_pack_maker *m, const struct xt_kernel *k, struct xti_err *err)
{
    const struct xti_shared_code *c = atomic_load(&k->now);
    struct xti_str key = {0}, payload = {0}, what = {0};
    if (!c)
        return XT_OK; /* nothing to copy */
    xti_code_pack_key(k, c->tier, c->name, c->source, &key);
    xti_code_payload(&c->code, &payload);
    xti_kernel_text(k, &what);
    xt_status s = key.failed || payload.failed || what.failed
                      ? xti_fail(err, XT_ENOMEM, "pack entry")
                      : xti_pack_add(m, key.s, key.n, what.s, payload.s, payload.n, err);
    xti_str_free(&key);
    xti_str_free(&payload);
    xti_str_free(&what);
    return s;
}

static xt_status add_chain(struct xti_pack_maker *m, struct xt_ctx *ctx, const struct xt_graph *g,
                           const char *arch, struct xti_err *err)
{
    static const xt_mode modes[] = {XT_GENERIC, XT_SYNC};
    xt_status s = XT_OK;
    for (int i = 0; i < 2 && !s; i++) {
        struct xt_compile_options o = {.size = sizeof o, .backend = XT_CUDA, .arch = arch, .mode = modes[i]};
        struct xt_kernel *k;
        if ((s = xt_compile(ctx, g, &o, &k)))
            return xti_fail(err, s, "%s", xt_last_error()->message);
        s = add_code(m, k, err);
        xt_kernel_free(k);
    }
    return s;
}

xt_status xt_pack(struct xt_ctx *ctx, int n, const struct xt_graph *const *graphs, int n_archs,
                  const char *const *archs, const char *file)
{
    struct xti_err err;
    struct xti_pack_maker m = {0};
    xt_status s = XT_OK;
    xti_err_clear(&err);
    if (!ctx || !file || n < 0 || n_archs < 1 || (n && !graphs) || !archs)
        return xti_publish(
            xti_fail(&err, XT_EINVAL, "xt_pack: an argument is NULL, or there is no architecture"), &err);
    for (int a = 0; a < n_archs && !s; a++)
        for (int i = 0; i < n && !s; i++)
            s = add_chain(&m, ctx, graphs[i], archs[a], &err);
    if (!s)
        s = xti_pack_write(&m, file, &err);
    xti_pack_maker_free(&m);
    return xti_publish(s, &err);
}

xt_status xti_packs_open(struct xt_ctx *ctx, const char *given, struct xti_err *err)
{
    char base[4096];
    struct xti_err unread = {0};
    const char *path = given ? given : xti_env(XTI_ENV_PACK);
    if (path && *path)
        return xti_pack_open(path, &ctx->pack, err);
    if (!path && xti_path_beside("xtview.xtpack", base, sizeof base) && !access(base, R_OK) &&
        xti_pack_open(base, &ctx->pack, &unread))
        xti_logf(XTI_LOG_CACHE, "%s", unread.e.message);
    return XT_OK;
}
