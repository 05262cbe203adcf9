/* task.c: the chain over virtual files, and the axes in which the result and the inputs are cut. Layer 6. */
#include "files/task.h"

#include <string.h>

#include "base/num.h"
#include "graph/build.h"
#include "graph/replay.h"
#include "map/clone.h"

/* ---- chunks as digits */

/* The axes of a virtual file: numbers of chunks, then the chunk's own. Axis i's are at number[i], -1: there
 * is one, and inner[i]. -1: more than there may be. */
struct digits {
    int n, number[XT_MAX_RANK], inner[XT_MAX_RANK];
    int64_t extent[XT_MAX_RANK];
};

static bool digits_of(const struct xti_array *s, struct digits *d)
{
    *d = (struct digits){0};
    for (int i = 0; i < s->rank; i++)
        d->n += 1 + (s->grid[i] != 1);
    if (d->n > XT_MAX_RANK)
        return false;
    d->n = 0;
    for (int i = 0; i < s->rank; i++) {
        d->number[i] = s->grid[i] != 1 ? d->n : -1;
        if (s->grid[i] != 1)
            d->extent[d->n++] = s->grid[i];
    }
    for (int k = 0; k < s->rank; k++) {
        int i = s->fortran ? s->rank - 1 - k : k;
        d->inner[i] = d->n;
        d->extent[d->n++] = s->chunk[i];
    }
    return true;
}

/* Axes in the order number, inner, number, inner .. */
static int paired(const struct xti_array *s, const struct digits *d, int *axes)
{
    int n = 0;
    for (int i = 0; i < s->rank; i++) {
        if (d->number[i] >= 0)
            axes[n++] = d->number[i];
        axes[n++] = d->inner[i];
    }
    return n;
}

/* The array as an input of the graph that is its virtual file. */
static xt_node input_of(struct xt_graph *g, const struct xti_array *s, const char *name, xt_dtype dtype)
{
    struct digits d;
    int axes[XT_MAX_RANK];
    int64_t whole[XT_MAX_RANK];
    struct xt_index part[XT_MAX_RANK];
    if (!digits_of(s, &d))
        return xti_graph_fail(g, XT_EUNSUPPORTED, "%s: more than %d axes with those of its chunks", s->said,
                              XT_MAX_RANK),
               -1;
    xt_node x = xt_input(g, name, dtype, d.n, d.extent, NULL, 0);
    x = xt_permute(g, x, paired(s, &d, axes), axes);
    for (int i = 0; i < s->rank; i++) {
        whole[i] = s->grid[i] * s->chunk[i];
        part[i] = (struct xt_index){XT_SLICE, 0, s->shape[i], 1};
    }
    return xt_index(g, xt_reshape(g, x, s->rank, whole), s->rank, part);
}

/* The result as its virtual file. */
static xt_node output_of(struct xt_graph *g, const struct xti_array *s, xt_node x)
{
    struct digits d;
    int axes[XT_MAX_RANK], back[XT_MAX_RANK];
    int64_t pads[2 * XT_MAX_RANK], split[XT_MAX_RANK];
    if (!digits_of(s, &d))
        return xti_graph_fail(g, XT_EUNSUPPORTED, "%s: more than %d axes with those of its chunks", s->said,
                              XT_MAX_RANK),
               -1;
    for (int i = 0; i < s->rank; i++) {
        pads[2 * i] = 0;
        pads[2 * i + 1] = s->grid[i] * s->chunk[i] - s->shape[i];
    }
    int n = paired(s, &d, axes);
    for (int i = 0; i < n; i++) {
        split[i] = d.extent[axes[i]];
        back[axes[i]] = i;
    }
    x = xt_reshape(g, xt_pad(g, x, s->rank, pads, NULL), n, split);
    return xt_permute(g, x, n, back);
}

/* ---- axes */

/* Puts a stride into the list, which begins with the number of elements and ends with 1, if each then divides
 * the one before it. */
static void take_stride(int *n, int64_t *list, int64_t s)
{
    int i = 1;
    if (s <= 1 || s >= list[0] || *n > XT_MAX_RANK)
        return;
    while (list[i] > s)
        i++;
    if (list[i] == s || list[i - 1] % s || s % list[i])
        return;
    memmove(&list[i + 1], &list[i], (size_t)(*n - i) * sizeof *list);
    list[i] = s;
    ++*n;
}

static void take_strides(int *n, int64_t *list, int n_axes, const int64_t *extent)
{
    int64_t s = 1;
    for (int i = n_axes - 1; i >= 0; i--) {
        take_stride(n, list, s);
        s *= extent[i];
    }
    take_stride(n, list, s);
}

static void end_axes(struct xti_axes *a, int n, const int64_t *list)
{
    a->n = n - 1;
    for (int i = 0; i < a->n; i++) {
        a->stride[i] = list[i + 1];
        a->extent[i] = list[i] / list[i + 1];
    }
}

/* Pieces from the largest on. */
static const struct xti_piece *next_largest(const struct xti_map *m, int64_t *below, int *at)
{
    const struct xti_piece *best = NULL;
    int64_t most = -1;
    int where = -1;
    for (int i = 0; i < m->n_pieces; i++) {
        int64_t n = xti_piece_numel(&m->piece[i]);
        if ((n < *below || (n == *below && i > *at)) && n > most) {
            most = n;
            best = &m->piece[i];
            where = i;
        }
    }
    *below = most;
    *at = where;
    return best;
}

enum { LARGEST = 8 }; /* pieces whose strides are looked at: more make no axes that the others lack */

/* Of the result, input -1, or of what pieces read of an input. True: they are steps of one axis each, and no
 * divs. */
static bool take_pieces(const struct xti_map *m, int input, int *n, int64_t *list)
{
    int64_t below = INT64_MAX;
    int at = -1;
    const struct xti_piece *p;
    bool plain = true;
    for (int i = 0; i < LARGEST && (p = next_largest(m, &below, &at)); i++)
        for (int k = 0; k < p->n_dims && (input < 0 || p->src == input); k++)
            take_stride(n, list, input < 0 ? p->dim[k].d : (int64_t)xti_abs64(p->dim[k].s));
    for (int i = 0; i < m->n_pieces && plain; i++) {
        p = &m->piece[i];
        plain = (input >= 0 && p->src != input) || xti_piece_affine(p);
        for (int k = 0; k < p->n_dims && input >= 0 && p->src == input && plain; k++) {
            int64_t s = (int64_t)xti_abs64(p->dim[k].s);
            int j = 1;
            while (j < *n && list[j] != s)
                j++;
            plain = !s || p->dim[k].n == 1 || j < *n;
        }
    }
    return plain;
}

static int begin_axes(const struct xti_array *s, int64_t *list)
{
    int n = 1 + (s->elements != 1);
    list[0] = s->elements;
    list[n - 1] = 1;
    take_stride(&n, list, s->part_elements);
    return n;
}

/* An input has the file's own axes only where pieces need them: a tile of x[1:], which is one run, ends
 * somewhere in a row, and by rows would have to read both of those that it lies in. */
static void axes_of(const struct xti_map *m, int input, const struct xti_array *s, struct xti_axes *a)
{
    int64_t list[XT_MAX_RANK + 2];
    struct digits d;
    digits_of(s, &d);
    int n = begin_axes(s, list);
    bool plain = take_pieces(m, input, &n, list);
    if (!plain && input >= 0)
        n = begin_axes(s, list); /* again, the file's before them */
    if (!plain)
        take_strides(&n, list, d.n, d.extent);
    if (!plain && input >= 0)
        take_pieces(m, input, &n, list);
    end_axes(a, n, list);
}

/* ---- a task */

static xt_node take_input(void *arg, struct xt_graph *g, const struct xti_node *n)
{
    const struct xti_array *s = ((const struct xti_task *)arg)->in[n->input];
    return n->dense ? input_of(g, s, n->name, n->dtype)
                    : xt_input(g, n->name, n->dtype, n->rank, n->shape, n->strides, n->offset);
}

/* What a layout of the line's own reaches is not known before the map is. Inputs that are declared behind all
 * that the result needs are not in the graph. */
static xt_status check_reach(const struct xti_task *t, const struct xti_map *m, struct xti_err *err)
{
    for (int i = 0; i < m->n_srcs; i++)
        if (m->src_hi[i] >= m->src_lo[i] && m->src_hi[i] >= t->in[i]->elements)
            return xti_fail(err, XT_EINVAL,
                            "%s: the input needs a buffer of %lld elements, the file has %lld",
                            t->in[i]->said, (long long)m->src_hi[i] + 1, (long long)t->in[i]->elements);
    return XT_OK;
}

static xt_status build(struct xti_task *t, const struct xt_graph *chain, const struct xti_array *out,
                       const struct xti_array *tiles, struct xti_err *err)
{
    struct xt_index all[XT_MAX_RANK];
    struct xti_map m;
    xt_node x;
    if (xt_graph_new(&t->graph))
        return xti_fail(err, XT_ENOMEM, "the chain over files");
    struct xt_graph *g = t->graph;
    if (chain)
        x = output_of(g, out, xti_graph_replay(g, chain, take_input, t));
    else
        x = input_of(g, t->in[0], NULL, t->in[0]->dtype);
    if (tiles)
        x = output_of(g, tiles, xt_reshape(g, x, tiles->rank, tiles->shape));
    if (xt_output(g, x, NULL, 0)) {
        *err = g->err;
        return err->e.status;
    }
    xt_status s = xti_map_fuse(g, NULL, &m, err);
    if (s)
        return s;
    axes_of(&m, -1, t->out, &t->to);
    for (int i = 0; i < m.n_srcs; i++)
        axes_of(&m, i, t->in[i], &t->from[i]);
    s = check_reach(t, &m, err);
    xti_map_free(&m);
    if (s)
        return s;
    for (int i = 0; i < t->to.n; i++)
        all[i] = (struct xt_index){XT_SLICE, 0, t->to.extent[i], 1};
    t->lens = xt_index(g, xt_reshape(g, x, t->to.n, t->to.extent), t->to.n, all);
    if (!xt_output(g, t->lens, NULL, 0))
        return XT_OK;
    *err = g->err;
    return err->e.status;
}

xt_status xti_task_make(const struct xt_graph *chain, int n, const struct xti_array *const *in,
                        const struct xti_array *out, const struct xti_array *tiles,
                        const struct xti_curve *curve, struct xti_task *t, struct xti_err *err)
{
    *t = (struct xti_task){.n_inputs = n, .in = in, .out = tiles ? tiles : out, .curve = curve, .lens = -1};
    t->from = xti_alloc_array((size_t)n + 1, sizeof *t->from);
    xti_cpu_target(0, &t->target);
    xt_status s = t->from ? XT_OK : xti_fail(err, XT_ENOMEM, "the chain over files");
    if (!s && out->elements)
        s = build(t, chain, out, tiles, err);
    if (s)
        xti_task_free(t);
    return s;
}

static void free_made(struct xti_made *m)
{
    xti_plan_free(&m->plan);
    xti_map_free(&m->map);
    xti_str_free(&m->key);
    xti_free(m);
}

void xti_task_free(struct xti_task *t)
{
    for (int i = 0; i < t->n_made; i++)
        free_made(t->kept[i]);
    xt_graph_free(t->graph);
    xti_free(t->from);
    *t = (struct xti_task){0};
}

/* ---- kernels */

/* What the key of a map leaves out: values of fills. */
static void add_key(struct xti_str *key, const struct xti_map *m)
{
    xti_map_key(m, key);
    for (int i = 0; i < m->n_pieces; i++)
        if (m->piece[i].src < 0)
            xti_str_addn(key, m->piece[i].value, sizeof m->piece[i].value);
}

static xt_status make_kernel(struct xti_task *t, const struct xti_map *m, struct xti_made *made,
                             struct xti_err *err)
{
    struct xti_target target = t->target;
    target.threads = xti_plan_threads(target.threads, m->numel * m->esize);
    xt_status s = xti_map_clone(m, &made->map, err);
    return s ? s : xti_plan_make(&made->map, &target, &made->plan, err);
}

xt_status xti_file_tile_kernel(struct xti_task *t, const struct xti_file_tile *tile,
                               const struct xti_plan **out, struct xti_err *err)
{
    struct xti_str key = {0};
    add_key(&key, &tile->map);
    for (int i = t->n_made - 1; i >= 0 && !key.failed; i--)
        if (t->kept[i]->key.n == key.n && !memcmp(t->kept[i]->key.s, key.s, key.n)) {
            *out = &t->kept[i]->plan;
            xti_str_free(&key);
            return XT_OK;
        }
    while (t->n_made == XTI_KEPT)
        for (int i = 0; i < XTI_KEPT; i++)
            free_made(t->kept[--t->n_made]);
    struct xti_made *made = key.failed ? NULL : xti_alloc(sizeof *made);
    if (!made) {
        xti_str_free(&key);
        return xti_fail(err, XT_ENOMEM, "kernel of a tile");
    }
    made->key = key;
    xt_status s = make_kernel(t, &tile->map, made, err);
    if (s) {
        free_made(made);
        return s;
    }
    t->kept[t->n_made++] = made;
    t->made++;
    *out = &made->plan;
    return XT_OK;
}
