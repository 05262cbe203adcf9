/* run.c: checks the pointers, then hands the plan to its backend. Layer 6. */
#include "api/api.h"

#include <string.h>

static bool is_read(const struct xt_kernel *k, int input)
{
    return k->map->src_hi[input] >= k->map->src_lo[input];
}

static bool misaligned(const struct xt_kernel *k, const void *p) { return (uintptr_t)p & k->misaligned; }

/* Do all pointers pass check_pointers, and are the bytes written apart from all bytes read? Nearly every run
 * is so, and nothing else has to be asked of it. */
static inline bool is_plain(const struct xt_kernel *k, const struct xti_shared_plan *p, const void *dst,
                            const void *const *src)
{
    uintptr_t bits = (uintptr_t)dst, lo = bits + (uintptr_t)p->dst.lo;
    if (!dst || (p->n_reads && !src))
        return false;
    for (int i = 0; i < p->n_reads; i++) {
        const struct xti_read_span *r = &p->read[i];
        uintptr_t s = (uintptr_t)src[r->input];
        if (!s || xti_ranges_meet(lo, p->dst.bytes, s + (uintptr_t)r->span.lo, r->span.bytes))
            return false;
        bits |= s;
    }
    return !(bits & k->misaligned);
}

static xt_status check_pointers(const struct xt_kernel *k, const void *dst, const void *const *src,
                                struct xti_err *err)
{
    if (!dst)
        return xti_fail(err, XT_EINVAL, "xt_run: dst is NULL");
    if (misaligned(k, dst))
        return xti_fail(err, XT_EALIGN, "xt_run: dst %p is not aligned to its %d-byte elements", dst,
                        k->map->esize);
    for (int i = 0; i < k->map->n_srcs; i++) {
        if (!is_read(k, i))
            continue;
        if (!src || !src[i])
            return xti_fail(err, XT_EINVAL, "xt_run: the pointer of input %d (%s) is NULL", i,
                            xti_packed_name(k->packed, i));
        if (misaligned(k, src[i]))
            return xti_fail(err, XT_EALIGN,
                            "xt_run: input %d (%s) at %p is not aligned to its %d-byte elements", i,
                            xti_packed_name(k->packed, i), src[i], k->map->esize);
    }
    return XT_OK;
}

/* The exact answers, and the words for what is wrong. */
static xt_status check(const struct xt_kernel *k, const void *dst, const void *const *src, bool *unchanged,
                       struct xti_err *err)
{
    xt_status s = check_pointers(k, dst, src, err);
    return s ? s : xti_alias_check(k, dst, src, unchanged, err);
}

struct checked {
    const struct xt_kernel *k;
    const unsigned char *dst;
    const void *const *src;
    int64_t bad; /* first address that differs, -1: none */
};

static bool same_element(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    struct checked *c = arg;
    size_t es = (size_t)c->k->map->esize;
    const unsigned char *want =
        p->src < 0 ? p->value : (const unsigned char *)c->src[p->src] + s * (int64_t)es;
    if (!memcmp(c->dst + d * (int64_t)es, want, es))
        return true;
    c->bad = d;
    return false;
}

/* XT_CHECK=1. */
static xt_status check_result(const struct xt_kernel *k, const void *dst, const void *const *src,
                              struct xti_err *err)
{
    struct checked c = {k, dst, src, -1};
    struct xti_str text = {0};
    xti_map_visit(k->map, same_element, &c);
    if (c.bad < 0)
        return XT_OK;
    xti_kernel_text(k, &text);
    xti_fail(err, XT_EINTERNAL, "XT_CHECK: destination element %lld is wrong (%s): %s", (long long)c.bad,
             xti_kernel_strategy(k), text.s ? text.s : "");
    xti_str_free(&text);
    return XT_EINTERNAL;
}

static xt_status run_reference(const struct xt_kernel *k, void *dst, const void *const *src,
                               struct xti_err *err)
{
    struct xt_graph *g;
    xt_status s = xti_graph_unpack(k->packed, &g, err);
    if (!s)
        s = xti_graph_eval(g, dst, src, err);
    xt_graph_free(g);
    return s;
}

/* Whichever code is there at this moment. */
static xt_status run_cuda(const struct xt_kernel *k, void *dst, const void *const *src, void *stream,
                          struct xti_err *err)
{
    const struct xti_shared_code *c = atomic_load_explicit(&k->now, memory_order_acquire);
    struct xt_kernel *mine = (struct xt_kernel *)k; /* immutable but for this */
    if (!c->module)
        return xti_fail(err, XT_ENODEVICE,
                        "xt_run: the kernel was compiled for sm_%d, not for a device of this machine",
                        k->cuda->target.sm);
    xti_better_use(mine, &mine->better);
    return xti_cuda_launch(k->cuda, c->tier, c->module, dst, src, stream, err);
}

/* From starts of buffers. */
typedef xt_status run_fn(const struct xt_kernel *k, void *dst, const void *const *src, void *stream,
                         struct xti_err *err);

static xt_status run(const struct xt_kernel *k, void *dst, const void *const *src, void *stream,
                     struct xti_err *err)
{
    bool unchanged = false;
    xt_status s = XT_OK;
    if (k->map->n_pieces == 0)
        return XT_OK;
    if (!is_plain(k, k->shared, dst, src))
        s = check(k, dst, src, &unchanged, err);
    if (s || unchanged)
        return s;
    if (k->backend == XT_REF)
        return run_reference(k, dst, src, err);
    if (k->backend == XT_CPU) {
        xti_cpu_run(k->plan, dst, src, k->pool);
        return k->check ? check_result(k, dst, src, err) : XT_OK;
    }
    return run_cuda(k, dst, src, stream, err);
}

enum { INPUTS = 64 }; /* whose pointers are moved without taking memory */

static void *moved(const void *p, uint64_t bytes) { return p ? (void *)((uintptr_t)p - bytes) : NULL; }

/* As fn, for pointers of which some are those of index (0,..,0). NULL stays NULL. */
static xt_status run_from_origins(const struct xt_kernel *k, run_fn *fn, void *dst, const void *const *src,
                                  void *stream, struct xti_err *err)
{
    const void *room[INPUTS], **start = room;
    int n = k->map->n_srcs;
    if (n > INPUTS && !(start = xti_alloc_array((size_t)n, sizeof *start)))
        return xti_fail(err, XT_ENOMEM, "pointers of %d inputs", n);
    for (int i = 0; i < n && src; i++)
        start[i] = moved(src[i], k->origin[1 + i]);
    xt_status s = fn(k, moved(dst, k->origin[0]), src ? start : NULL, stream, err);
    if (start != room)
        xti_free(start);
    return s;
}

/* Apart from xt_run, so that a direct run pays for no stack frame. */
static __attribute__((noinline)) xt_status run_any(const struct xt_kernel *k, void *dst,
                                                   const void *const *srcs, void *stream)
{
    struct xti_err err;
    xti_err_clear(&err);
    if (!k)
        return xti_fail_null("xt_run", "kernel");
    xt_status s =
        k->origin ? run_from_origins(k, run, dst, srcs, stream, &err) : run(k, dst, srcs, stream, &err);
    return xti_publish(s, &err);
}

/* Apart from xt_run, so that a single call pays for no registers. */
__attribute__((noinline)) void xti_call_repeat(const struct xti_call *c, char *d, const char *s)
{
    for (int64_t i = 0; i < c->n; i++, d += c->d_step, s += c->s_step)
        c->fn(&c->job, d, s);
#if defined(__x86_64__)
    if (c->stream)
        __builtin_ia32_sfence(); /* streaming stores are not ordered by what tells others that we are done */
#endif
}

xt_status xt_run(const struct xt_kernel *k, void *dst, const void *const *srcs, void *stream)
{
    if (!k || !k->direct || !is_plain(k, k->direct, dst, srcs))
        return run_any(k, dst, srcs, stream);
    xti_call_run(&k->direct->call, dst, srcs);
    return xti_publish_ok();
}

static xt_status run_staged(const struct xt_kernel *k, void *dst, const void *const *src, void *stream,
                            struct xti_err *err)
{
    bool unchanged = false;
    const struct xti_shared_code *c = atomic_load_explicit(&k->now, memory_order_acquire);
    struct xt_kernel *mine = (struct xt_kernel *)k; /* immutable but for this */
    xt_status s = check(k, dst, src, &unchanged, err);
    if (s || unchanged)
        return s;
    xti_better_use(mine, &mine->better);
    size_t *bytes = xti_alloc_array((size_t)k->map->n_srcs + 1, sizeof *bytes);
    if (!bytes)
        return xti_fail(err, XT_ENOMEM, "sizes of %d inputs", k->map->n_srcs);
    for (int i = 0; i < k->map->n_srcs; i++)
        bytes[i] = (size_t)xt_src_min_bytes(k, i);
    s = xti_cuda_run_host(k->cuda, c->tier, c->module, dst, (size_t)((k->map->dst_hi + 1) * k->map->esize),
                          src, bytes, k->map->n_srcs, err);
    xti_free(bytes);
    return s;
}

xt_status xt_run_host(const struct xt_kernel *k, void *dst, const void *const *srcs)
{
    struct xti_err err;
    xti_err_clear(&err);
    if (!k || k->backend != XT_CUDA || !k->map->n_pieces || !atomic_load(&k->now)->module)
        return xt_run(k, dst, srcs, NULL);
    xt_status s = k->origin ? run_from_origins(k, run_staged, dst, srcs, NULL, &err)
                            : run_staged(k, dst, srcs, NULL, &err);
    return xti_publish(s, &err);
}
