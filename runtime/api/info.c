/* info.c: what a kernel says of itself in numbers. Layer 6. */
#include "api/explain.h"

#include <string.h>

#include "base/give.h"
#include "base/num.h"

/* Rows of all guarded boxes of a map that are counted one by one; of more the boxes are the answer. */
enum { MAX_ROWS = 1 << 22 };

/* A piece's dims that guards name, the longest one last; of each other one all points count. */
struct guarded {
    const struct xti_piece *p;
    int n, dim[XTI_MAX_DIMS];
};

static bool is_guarded(const struct xti_piece *p, int dim)
{
    for (int g = 0; g < p->n_guards; g++)
        if (p->guard[g].x[dim])
            return true;
    return false;
}

static struct guarded guarded_dims(const struct xti_piece *p)
{
    struct guarded d = {.p = p};
    for (int i = 0; i < p->n_dims; i++)
        if (is_guarded(p, i)) {
            d.dim[d.n++] = i;
            if (d.n > 1 && p->dim[i].n < p->dim[d.dim[d.n - 2]].n) {
                d.dim[d.n - 1] = d.dim[d.n - 2];
                d.dim[d.n - 2] = i;
            }
        }
    return d;
}

/* Points of the longest dim, all others fixed in x, that pass every guard (which have no div terms). */
static int64_t count_row(const struct guarded *d, const int64_t *x)
{
    const struct xti_piece *p = d->p;
    int inner = d->dim[d->n - 1];
    int64_t lo = 0, hi = p->dim[inner].n - 1;
    for (int g = 0; g < p->n_guards; g++) {
        int64_t c = p->guard[g].c, a = p->guard[g].x[inner];
        for (int i = 0; i + 1 < d->n; i++)
            c += p->guard[g].x[d->dim[i]] * x[i];
        if (a == 0 && c < 0)
            return 0;
        if (a > 0 && -xti_floor_div(c, a) > lo)
            lo = -xti_floor_div(c, a); /* x >= ceil(-c/a) */
        if (a < 0 && xti_floor_div(c, -a) < hi)
            hi = xti_floor_div(c, -a);
    }
    return hi >= lo ? hi - lo + 1 : 0;
}

/* Takes the rows from those that are left. */
static bool countable(const struct guarded *d, int64_t *left)
{
    int64_t rows = 1;
    for (int i = 0; i + 1 < d->n; i++)
        if (!xti_mul64(rows, d->p->dim[d->dim[i]].n, &rows) || rows > *left)
            return false;
    for (int g = 0; g < d->p->n_guards; g++)
        for (int j = 0; j < d->p->n_divs; j++)
            if (d->p->guard[g].q[j])
                return false;
    *left -= rows;
    return d->n > 0;
}

/* Points of the box that pass the guards; an upper bound where counting would take too long. */
static int64_t live_points(const struct xti_piece *p, int64_t *left)
{
    struct guarded d = guarded_dims(p);
    int64_t x[XTI_MAX_DIMS] = {0}, n = 0;
    if (!countable(&d, left))
        return xti_piece_numel(p);
    for (int i = 0; i >= 0;) {
        n += count_row(&d, x);
        for (i = d.n - 2; i >= 0 && ++x[i] == p->dim[d.dim[i]].n; i--)
            x[i] = 0;
    }
    for (int i = 0; i < p->n_dims; i++)
        n *= is_guarded(p, i) ? 1 : p->dim[i].n;
    return n;
}

static int64_t bytes_read(const struct xti_map *m)
{
    int64_t n = 0, left = MAX_ROWS;
    for (int i = 0; i < m->n_pieces; i++)
        if (m->piece[i].src >= 0) {
            int64_t live = live_points(&m->piece[i], &left);
            n = live < m->numel - n ? n + live
                                    : m->numel; /* guarded boxes may add up to more than is written */
        }
    return n * m->esize;
}

const char *xti_kernel_strategy(const struct xt_kernel *k)
{
    if (k->map->n_pieces == 0)
        return "nothing";
    return k->backend == XT_REF    ? "reference"
           : k->backend == XT_CUDA ? xti_cuda_plan_family(k->cuda)
                                   : xti_plan_strategy(k->plan);
}

void xti_kernel_refusals(const struct xt_kernel *k, struct xti_str *b)
{
    if (k->backend == XT_CUDA)
        xti_cuda_refusals(k->cuda, b);
    else
        xti_plan_refusals(k->plan, b);
}

xt_status xt_kernel_get(const struct xt_kernel *k, struct xt_kernel_info *out)
{
    struct xti_err err = {0};
    if (xti_give_check(out, XTI_UP_TO(struct xt_kernel_info, dst_min_bytes), "xt_kernel_get",
                       "xt_kernel_info", &err))
        return xti_publish(XT_EINVAL, &err);
    if (!k)
        return xti_fail_null("xt_kernel_get", "kernel");
    const char *signature = xti_shared_plan_signature(k->shared, &err);
    if (!signature)
        return xti_publish(XT_ENOMEM, &err);
    struct xt_kernel_info info = {
        .backend = k->backend,
        .strategy = xti_kernel_strategy(k),
        .map_class = xti_class_name(xti_map_class(k->map)),
        .signature = signature,
        .origin = xti_kernel_origin(k),
        .n_pieces = k->map->n_pieces,
        .bytes_read = bytes_read(k->map),
        .bytes_written = k->map->numel * k->map->esize,
        .dst_min_bytes = k->map->n_pieces ? (k->map->dst_hi + 1) * k->map->esize : 0,
        .way = xti_kernel_way(k),
    };
    xti_give(out, &info, sizeof info);
    return xti_publish(XT_OK, NULL);
}

int64_t xt_src_min_bytes(const struct xt_kernel *k, int input)
{
    if (!k || input < 0 || input >= k->map->n_srcs)
        return -1;
    return k->map->src_hi[input] >= k->map->src_lo[input] ? (k->map->src_hi[input] + 1) * k->map->esize : 0;
}

static void touched(const struct xt_kernel *k, int input, struct xt_end_info *e)
{
    const struct xti_map *m = k->map;
    int64_t lo = input < 0 ? m->dst_lo : m->src_lo[input], hi = input < 0 ? m->dst_hi : m->src_hi[input];
    int64_t start = e->origin ? e->offset : 0;
    if (hi < lo || !m->n_pieces)
        return;
    e->from_bytes = (lo - start) * m->esize;
    e->to_bytes = (hi + 1 - start) * m->esize;
}

xt_status xt_kernel_shape(const struct xt_kernel *k, int input, struct xt_end_info *out)
{
    struct xti_err err = {0};
    struct xti_layout l;
    struct xt_end_info e = {0};
    if (xti_give_check(out, XTI_UP_TO(struct xt_end_info, to_bytes), "xt_kernel_shape", "xt_end_info", &err))
        return xti_publish(XT_EINVAL, &err);
    if (!k)
        return xti_fail_null("xt_kernel_shape", "kernel");
    if (input < -1 || input >= k->map->n_srcs)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_kernel_shape: the kernel has no input %d", input),
                           &err);
    if (input < 0)
        xti_packed_output(k->packed, &l);
    else
        xti_packed_input(k->packed, input, &l);
    e.name = input < 0 ? NULL : xti_packed_name(k->packed, input);
    e.dtype = l.dtype;
    e.rank = l.rank;
    memcpy(e.shape, l.shape, (size_t)l.rank * sizeof *l.shape);
    memcpy(e.strides, l.strides, (size_t)l.rank * sizeof *l.strides);
    e.offset = l.offset;
    e.origin = l.origin;
    touched(k, input, &e);
    xti_give(out, &e, sizeof e);
    return xti_publish(XT_OK, NULL);
}

const char *xti_kernel_origin(const struct xt_kernel *k)
{
    const struct xti_shared_code *c = atomic_load_explicit(&k->now, memory_order_acquire);
    return c ? k->code_origin[c->tier] : "built in";
}

/* Made when somebody asks. NULL: no memory. */
static const char *launch_record(const struct xt_kernel *k, const struct xti_shared_code *c,
                                 struct xti_err *err)
{
    char *_Atomic *place = (char *_Atomic *)&k->launch[c->tier]; /* immutable but for this */
    char *known = atomic_load_explicit(place, memory_order_acquire);
    struct xti_str b = {0};
    if (known)
        return known;
    xti_cuda_launch_json(k->cuda, c->tier, c->name, &b);
    if (b.failed) {
        xti_fail(err, XT_ENOMEM, "launch record");
        xti_str_free(&b);
        return NULL;
    }
    if (atomic_compare_exchange_strong(place, &known, b.s))
        return b.s; /* the builder's buffer changes owner */
    xti_str_free(&b);
    return known;
}

xt_status xt_kernel_artifact(const struct xt_kernel *k, enum xt_artifact what, const void **data,
                             size_t *bytes)
{
    struct xti_err err = {0};
    if (data)
        *data = NULL;
    if (bytes)
        *bytes = 0;
    if (!k || !data || !bytes)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_kernel_artifact: %s is NULL",
                                    !k      ? "kernel"
                                    : !data ? "data"
                                            : "bytes"),
                           &err);
    static const char *const name[] = {"source", "PTX", "cubin", "launch record"};
    const struct xti_shared_code *c = atomic_load_explicit(&k->now, memory_order_acquire);
    const char *launch = c && what == XT_LAUNCH ? launch_record(k, c, &err) : NULL;
    if (err.e.status)
        return xti_publish(XT_ENOMEM, &err);
    const struct {
        const void *p;
        size_t n;
    } table[] = {
        [XT_SOURCE] = {c ? c->source : NULL, c ? strlen(c->source) : 0},
        [XT_PTX] = {c ? c->code.ptx : NULL, c ? c->code.ptx_bytes - 1 : 0},
        [XT_CUBIN] = {c ? c->code.cubin : NULL, c ? c->code.cubin_bytes : 0},
        [XT_LAUNCH] = {launch, launch ? strlen(launch) : 0},
    };
    if ((int)what < 0 || what > XT_LAUNCH)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_kernel_artifact: %d is no artifact", (int)what),
                           &err);
    if (!table[what].p)
        return xti_publish(
            xti_fail(&err, XT_EUNSUPPORTED, "xt_kernel_artifact: this kernel has no %s", name[what]), &err);
    *data = table[what].p;
    *bytes = table[what].n;
    return xti_publish(XT_OK, NULL);
}
