/* context.c: the context: options, caches, lifetime. Layer 6. */
#include "api/api.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/give.h"
#include "base/log.h"
#include "base/os.h"
#include "plan/choice.h"

/* Kernels are small on the CPU, and a loaded module is a few hundred KB: enough for any one program. */
enum { MAX_KERNELS = 4096, MAX_PLANS = 4096, MAX_CODES = 1024 };

static void *ref_kernel(void *k) { return xt_kernel_ref(k); }

static void unref_kernel(void *k) { xt_kernel_free(k); }

static const void *key_of_kernel(const void *k) { return ((const struct xt_kernel *)k)->packed; }

static xt_status parse_backend(const char *s, xt_backend *out, struct xti_err *err)
{
    static const struct {
        const char *name;
        xt_backend backend;
    } table[] = {{"ref", XT_REF}, {"cpu", XT_CPU}, {"cuda", XT_CUDA}, {"", XT_CPU}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (!strcmp(s, table[i].name)) {
            *out = table[i].backend;
            return XT_OK;
        }
    }
    return xti_fail(err, XT_EINVAL, "XT_BACKEND: '%s' is not ref, cpu or cuda", s);
}

static xt_status parse_mode(const char *s, xt_mode *out, struct xti_err *err)
{
    static const char *const name[] = {[XT_SYNC] = "sync", [XT_ASYNC] = "async", [XT_GENERIC] = "generic"};
    *out = XT_ASYNC;
    for (int i = XT_SYNC; i <= XT_GENERIC && *s; i++)
        if (!strcmp(s, name[i])) {
            *out = (xt_mode)i;
            return XT_OK;
        }
    return *s ? xti_fail(err, XT_EINVAL, "XT_JIT: '%s' is not sync, async or generic", s) : XT_OK;
}

static xt_status unknown_machine(const char *name, struct xti_err *err)
{
    struct xti_str rows = {0};
    for (int i = 0; xti_machine_at(i); i++)
        xti_str_addf(&rows, "%s%s", i ? ", " : "", xti_machine_at(i)->name);
    xt_status s = xti_fail(err, XT_EINVAL, "XT_MACHINE: '%s' is none of %s", name, rows.s ? rows.s : "");
    xti_str_free(&rows);
    return s;
}

/* What is no number gives back either default; more than 63 bits are the largest. */
static xt_status check_numbers(struct xti_err *err)
{
    static const struct {
        enum xti_env id;
        const char *name;
        int64_t most;
    } number[] = {{XTI_ENV_THREADS, "XT_THREADS", XTI_MAX_THREADS},
                  {XTI_ENV_MEASURE, "XT_MEASURE", 1},
                  {XTI_ENV_CHECK, "XT_CHECK", 1},
                  {XTI_ENV_FAIL_ALLOC, "XT_FAIL_ALLOC", INT64_MAX}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        const char *s = xti_env(number[i].id);
        int64_t n = xti_env_int(number[i].id, 0);
        if (s && *s && n != xti_env_int(number[i].id, 1))
            return xti_fail(err, XT_EINVAL, "%s: '%s' is not a number", number[i].name, s);
        if (n < 0 || n > number[i].most)
            return xti_fail(err, XT_EINVAL, "%s: '%s' is not in [0,%" PRId64 "]", number[i].name, s,
                            number[i].most);
    }
    return XT_OK;
}

static xt_status check_directories(struct xti_err *err)
{
    static const struct {
        enum xti_env id;
        const char *name;
        int mode;
    } directory[] = {{XTI_ENV_DUMP, "XT_DUMP", W_OK | X_OK}, {XTI_ENV_OVERRIDE, "XT_OVERRIDE", X_OK}};
    for (size_t i = 0; i < sizeof directory / sizeof *directory; i++) {
        const char *s = xti_env(directory[i].id);
        struct stat st;
        if (s && *s && (stat(s, &st) || !S_ISDIR(st.st_mode)))
            return xti_fail(err, XT_EINVAL, "%s: '%s' is not a directory", directory[i].name, s);
        if (s && *s && access(s, directory[i].mode))
            return xti_fail(err, XT_EINVAL, "%s: '%s': %s", directory[i].name, s, strerror(errno));
    }
    return XT_OK;
}

/* A variable that is set to what nobody understands would silently do nothing. */
static xt_status check_environment(struct xti_err *err)
{
    const char *isa = xti_env(XTI_ENV_ISA);
    bool known = !isa || !*isa;
    for (int i = 0; i < XTI_ISA_COUNT && !known; i++)
        known = !strcmp(isa, xti_isa_name[i]);
    if (!known)
        return xti_fail(err, XT_EINVAL, "XT_ISA: '%s' is not scalar, avx2, avx512 or neon", isa);
    const char *machine = xti_env(XTI_ENV_MACHINE);
    if (machine && *machine && !xti_machine_named(machine))
        return unknown_machine(machine, err);
    uint64_t set;
    const char *without = xti_env(XTI_ENV_WITHOUT);
    if (without && !xti_choice_without(without, &set))
        return xti_fail(err, XT_EINVAL, "XT_WITHOUT: '%s' has a name that is no strategy or trick", without);
    if (!xti_log_understood())
        return xti_fail(
            err, XT_EINVAL,
            "XT_DEBUG: '%s' has a name that is not graph, map, plan, src, ptx, cache, time or all",
            xti_env(XTI_ENV_DEBUG));
    xt_status s = check_numbers(err);
    return s ? s : check_directories(err);
}

static xt_status init(struct xt_ctx *ctx, const struct xt_options *o, struct xti_err *err)
{
    static const struct xti_memo_ops kernel_ops = {ref_kernel, unref_kernel, key_of_kernel};
    static const struct xti_memo_ops plan_ops = {xti_shared_plan_ref, xti_shared_plan_unref, NULL};
    static const struct xti_memo_ops code_ops = {xti_code_ref, xti_code_unref, NULL};
    xt_status s = XT_OK;
    if (o->mode < XT_MODE_AUTO || o->mode > XT_GENERIC)
        return xti_fail(err, XT_EINVAL, "xt_ctx_new: mode %d", (int)o->mode);
    if (o->backend < XT_AUTO || o->backend > XT_CUDA)
        return xti_fail(err, XT_EINVAL, "xt_ctx_new: backend %d", (int)o->backend);
    if (o->device < 0)
        return xti_fail(err, XT_EINVAL, "xt_ctx_new: device %d", o->device);
    if ((s = check_environment(err)))
        return s;
    ctx->backend = o->backend;
    if (!ctx->backend &&
        (s = parse_backend(xti_env(XTI_ENV_BACKEND) ? xti_env(XTI_ENV_BACKEND) : "", &ctx->backend, err)))
        return s;
    ctx->mode = o->mode;
    if (!ctx->mode && (s = parse_mode(xti_env(XTI_ENV_JIT) ? xti_env(XTI_ENV_JIT) : "", &ctx->mode, err)))
        return s;
    int64_t threads = o->threads ? o->threads : xti_env_int(XTI_ENV_THREADS, 0);
    if (threads < 0 || threads > XTI_MAX_THREADS)
        return xti_fail(err, XT_EINVAL, "xt_ctx_new: threads: %d is not in [0,%d]", o->threads,
                        XTI_MAX_THREADS);
    ctx->threads = (int)threads;
    ctx->device = o->device;
    if (threads != 1 && !(ctx->pool = xti_threads_new(o->parallel_for, o->pool)))
        return xti_fail(err, XT_ENOMEM, "threads");
    ctx->check = xti_env_int(XTI_ENV_CHECK, 0) > 0;
    ctx->measure = xti_env_int(XTI_ENV_MEASURE, 0) > 0;
    ctx->log = xti_log_any();
    xti_cpu_target(ctx->threads, &ctx->cpu);
    if (o->helper && !(ctx->helper = xti_strdup(o->helper)))
        return xti_fail(err, XT_ENOMEM, "xt_ctx_new: helper");
    if ((s = xti_packs_open(ctx, o->pack, err)))
        return s;
    if ((s = xti_queue_new(ctx, &ctx->queue, err)))
        return s;
    if ((s = xti_disk_open(o->cache_dir, &ctx->disk, err)))
        return s;
    if ((s = xti_wisdom_open(ctx->disk, &ctx->wisdom, err)))
        return s;
    if ((s = xti_memo_new(&kernel_ops, MAX_KERNELS, &ctx->kernels, err)))
        return s;
    if ((s = xti_memo_new(&plan_ops, MAX_PLANS, &ctx->plans, err)))
        return s;
    return xti_memo_new(&code_ops, MAX_CODES, &ctx->codes, err);
}

static void destroy(struct xt_ctx *ctx)
{
    xti_queue_close(ctx->queue); /* its thread uses all that follows */
    xti_memo_free(ctx->kernels);
    xti_memo_free(ctx->plans);
    xti_memo_free(ctx->codes);
    xti_modules_drop();
    xti_wisdom_close(ctx->wisdom);
    xti_disk_close(ctx->disk);
    xti_pack_close(ctx->pack);
    xti_free(ctx->helper);
    xti_threads_close(ctx->pool);
    xti_threads_unref(ctx->pool);
    xti_free(ctx);
}

xt_status xt_ctx_new(const struct xt_options *opt, struct xt_ctx **out)
{
    struct xti_err err = {0};
    struct xt_options o = {0};
    if (!out)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_ctx_new: out is NULL"), &err);
    *out = NULL;
    if (opt && opt->size < offsetof(struct xt_options, device) + sizeof o.device)
        return xti_publish(xti_fail(&err, XT_EINVAL,
                                    "xt_ctx_new: options.size is %zu, want sizeof(struct xt_options)",
                                    opt->size),
                           &err);
    if (opt)
        memcpy(&o, opt, opt->size < sizeof o ? opt->size : sizeof o);
    struct xt_ctx *ctx = xti_alloc(sizeof *ctx);
    if (!ctx)
        return xti_publish(xti_fail(&err, XT_ENOMEM, "context"), &err);
    xti_modules_keep();
    xt_status s = init(ctx, &o, &err);
    if (s)
        destroy(ctx);
    else
        *out = ctx;
    return xti_publish(s, &err);
}

void xt_ctx_free(struct xt_ctx *ctx)
{
    if (ctx)
        destroy(ctx);
}

xt_status xt_cache_get(struct xt_ctx *ctx, struct xt_cache_stats *out)
{
    struct xti_err err = {0};
    struct xt_cache_stats stats = {0};
    if (xti_give_check(out, XTI_UP_TO(struct xt_cache_stats, bytes), "xt_cache_get", "xt_cache_stats", &err))
        return xti_publish(XT_EINVAL, &err);
    if (!ctx)
        return xti_fail_null("xt_cache_get", "ctx");
    xti_disk_stats(ctx->disk, &stats);
    stats.memory_hits = atomic_load(&ctx->memory_hits);
    stats.disk_hits = atomic_load(&ctx->disk_hits); /* compiles, not entries read */
    stats.built = atomic_load(&ctx->built);
    stats.compiled = atomic_load(&ctx->compiled);
    xti_give(out, &stats, sizeof stats);
    return xti_publish(XT_OK, NULL);
}

const char *xt_cache_path(struct xt_ctx *ctx) { return ctx ? xti_disk_path(ctx->disk) : NULL; }

const char *xt_cache_why(struct xt_ctx *ctx) { return ctx ? xti_disk_why(ctx->disk) : "no context"; }

xt_status xt_cache_list(struct xt_ctx *ctx, void (*each)(void *, const char *, int64_t, const char *),
                        void *arg)
{
    struct xti_err err = {0};
    if (!ctx || !each)
        return xti_fail_null("xt_cache_list", ctx ? "each" : "ctx");
    return xti_publish(xti_disk_list(ctx->disk, each, arg, &err), &err);
}

xt_status xt_cache_clear(struct xt_ctx *ctx, int64_t *removed)
{
    struct xti_err err = {0};
    int64_t n = 0;
    if (removed)
        *removed = 0;
    if (!ctx)
        return xti_fail_null("xt_cache_clear", "ctx");
    xt_status s = xti_disk_clear(ctx->disk, &n, &err);
    if (removed)
        *removed = n;
    return xti_publish(s, &err);
}
