/* shared.c: a map and its plan, made once for all requests that fuse to that map, and what xt_run wants to
 * know of them at once. Kernels of the CPU and the reference are found by the exact map: a fused map is
 * unique for what it copies, so two ways to write a chain share a plan. CUDA plans are made anew: there the
 * code is what is shared (code.c). Layer 6. */
#include "api/api.h"

#include <string.h>

#include "base/num.h"

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

/* ---- what every run asks */

static struct xti_span span_of(int64_t lo, int64_t hi, int esize)
{
    return (struct xti_span){lo * esize, hi < lo ? 0 : (hi - lo + 1) * esize};
}

static bool list_reads(struct xti_shared_plan *p)
{
    const struct xti_map *m = &p->map;
    p->read = xti_arena_alloc(&p->map.arena, (size_t)m->n_srcs * sizeof *p->read);
    if (!p->read)
        return false;
    for (int i = 0; i < m->n_srcs; i++)
        if (m->src_hi[i] >= m->src_lo[i])
            p->read[p->n_reads++] = (struct xti_read_span){i, span_of(m->src_lo[i], m->src_hi[i], m->esize)};
    p->dst = span_of(m->dst_lo, m->dst_hi, m->esize);
    return true;
}

/* ---- making one */

struct request {
    struct xti_map *map; /* goes into the plan */
    const struct xti_purpose *purpose;
};

/* More threads would not be used for it, and a loop cut for them is a loop more. */
static struct xti_target target_for(const struct xti_map *m, const struct xti_target *t)
{
    struct xti_target few = *t;
    few.threads = xti_plan_threads(t->threads, m->numel * m->esize);
    return few;
}

static xt_status plan_cpu(struct xti_shared_plan *p, const struct xti_purpose *f, struct xti_err *err)
{
    struct xti_target target = target_for(&p->map, f->cpu);
    xti_choose(&f->tuning, &p->map, &target, &p->measured);
    xt_status s = xti_plan_make(&p->map, &target, &p->plan, err);
    if (!s)
        xti_call_make(&p->plan, &p->call);
    return s;
}

static xt_status make(void *arg, void **out, struct xti_err *err)
{
    const struct request *r = arg;
    xt_status s = XT_OK;
    bool cuda = r->purpose->backend == XT_CUDA;
    struct xti_shared_plan *p =
        xti_alloc(cuda ? offsetof(struct xti_shared_plan, cuda) + sizeof p->cuda : sizeof *p);
    if (!p)
        return xti_fail(err, XT_ENOMEM, "kernel record");
    atomic_init(&p->refs, 1);
    p->backend = r->purpose->backend;
    p->map = *r->map;
    *r->map = (struct xti_map){0};
    if (!list_reads(p)) {
        s = xti_fail(err, XT_ENOMEM, "kernel record");
        goto done;
    }
    if (p->backend == XT_CPU && (s = plan_cpu(p, r->purpose, err)))
        goto done;
    if (cuda && (s = xti_cuda_plan_make(&p->map, &r->purpose->cuda, &p->cuda, err)))
        goto done;
    *out = p;
    p = NULL;
done:
    xti_shared_plan_unref(p);
    return s;
}

/* The map's own key leaves out what fills are filled with. */
static void exact_key(const struct request *r, struct xti_str *key)
{
    xti_str_u64le(key, (uint64_t)r->purpose->backend);
    xti_str_u64le(key, r->purpose->tuning.measure);
    xti_map_key(r->map, key);
    for (int i = 0; i < r->map->n_pieces; i++)
        if (r->map->piece[i].src < 0)
            xti_str_addn(key, r->map->piece[i].value, sizeof r->map->piece[i].value);
}

static xt_status find_or_make(struct xti_memo *plans, struct request *r, void **out, struct xti_err *err)
{
    char room[2048];
    struct xti_str key = XTI_STR_ON(room);
    exact_key(r, &key);
    xt_status s = key.failed ? xti_fail(err, XT_ENOMEM, "key of the index map")
                             : xti_memo_get(plans, key.s, key.n, make, r, out, NULL, err);
    xti_str_free(&key);
    return s;
}

xt_status xti_shared_plan_get(struct xti_memo *plans, const struct xt_graph *g, const struct xti_purpose *f,
                              struct xti_shared_plan **out, struct xti_err *err)
{
    struct xti_map m;
    void *p = NULL;
    struct request r = {&m, f};
    xt_status s =
        f->backend == XT_CUDA ? xti_cuda_fuse(g, &f->cuda, &m, err) : xti_map_fuse(g, NULL, &m, err);
    if (!s)
        s = check_bytes(&m, err);
    if (!s)
        s = f->backend == XT_CUDA ? make(&r, &p, err) : find_or_make(plans, &r, &p, err);
    xti_map_free(&m);
    *out = p;
    return s;
}

void *xti_shared_plan_ref(void *plan)
{
    struct xti_shared_plan *p = plan;
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void xti_shared_plan_unref(void *plan)
{
    struct xti_shared_plan *p = plan;
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    xti_free(atomic_load_explicit(&p->signature, memory_order_relaxed));
    xti_map_free(&p->map);
    if (p->backend == XT_CUDA)
        xti_cuda_plan_free(&p->cuda);
    else
        xti_plan_free(&p->plan);
    xti_free(p);
}

/* ---- the signature: hashing costs more than planning, so it is made when somebody asks */

const char *xti_shared_plan_signature(const struct xti_shared_plan *shared, struct xti_err *err)
{
    struct xti_shared_plan *p = (struct xti_shared_plan *)shared; /* immutable but for this */
    char *known = atomic_load_explicit(&p->signature, memory_order_acquire);
    if (known)
        return known;
    char *made = xti_alloc(XTI_SIGNATURE_CHARS);
    if (!made) {
        xti_fail(err, XT_ENOMEM, "signature");
        return NULL;
    }
    int sm = p->backend == XT_CUDA ? p->cuda.target.sm : 0;
    if (xti_signature(&p->map, p->backend, sm, made, err)) {
        xti_free(made);
        return NULL;
    }
    if (atomic_compare_exchange_strong(&p->signature, &known, made))
        return made;
    xti_free(made); /* another thread was first */
    return known;
}
