/* layout.c: the two ends of a graph: inputs and the destination, with their strides and offsets. Layer 1. */
#include "graph/build.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/overlap.h"
#include "base/str.h"
#include "graph/dtype.h"

void xti_dense_strides(int rank, const int64_t *shape, int64_t *strides)
{
    int64_t st = 1;
    /*@ loop invariant -1 <= i < rank && 1 <= dense{Pre}(shape, rank, i);
        loop invariant st == \min(dense{Pre}(shape, rank, i), INT64_MAX);
        loop invariant \forall integer j; i < j < rank ==>
            strides[j] == \min(dense{Pre}(shape, rank, j), INT64_MAX);
        loop assigns i, st, strides[0 .. rank - 1];
        loop variant i + 1; */
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = st;
        if (!xti_mul64(st, shape[i] > 1 ? shape[i] : 1, &st))
            st = INT64_MAX;
    }
}

bool xti_span(int rank, const int64_t *shape, const int64_t *strides, int64_t offset, int64_t *lo,
              int64_t *hi)
{
    *lo = *hi = offset;
    /*@ loop invariant 0 <= i <= rank && \forall integer j; 0 <= j < i ==> shape[j] != 0;
        loop assigns i;
        loop variant rank - i; */
    for (int i = 0; i < rank; i++)
        if (shape[i] == 0)
            return xti_sub64(offset, 1, hi);
    /*@ loop invariant 0 <= i <= rank;
        loop invariant *lo == offset + low{Pre}(shape, strides, i);
        loop invariant *hi == offset + high{Pre}(shape, strides, i);
        loop assigns i, *lo, *hi;
        loop variant rank - i; */
    for (int i = 0; i < rank; i++) {
        int64_t *end = strides[i] < 0 ? lo : hi;
        if (!xti_mad64(strides[i], shape[i] - 1, *end, end))
            return false;
    }
    return true;
}

/* The layout's addresses fit and begin in the buffer. */
static bool check_layout(struct xti_build *b, int rank, const int64_t *shape, const int64_t *strides,
                         int64_t offset)
{
    int64_t lo, hi;
    char n[XTI_SHAPE_TEXT], st[XTI_SHAPE_TEXT];
    bool fits = xti_span(rank, shape, strides, offset, &lo, &hi);
    if (fits && lo >= 0)
        return true;
    xti_shape_text(n, sizeof n, rank, shape);
    xti_shape_text(st, sizeof st, rank, strides);
    if (!fits)
        xti_build_fail(b, XT_EOVERFLOW, -1, "addresses of %s:%s%+" PRId64 " do not fit in 63 bits", n, st,
                       offset);
    else
        xti_build_fail(b, XT_ERANGE, -1,
                       "element %" PRId64 " of %s:%s%+" PRId64 " lies before the buffer's start", lo, n, st,
                       offset);
    return false;
}

/* XT_ORIGIN becomes the offset that it amounts to; *origin: the pointer must be moved by it. */
static bool resolve_origin(struct xti_build *b, int rank, const int64_t *shape, const int64_t *strides,
                           int64_t *offset, bool *origin)
{
    int64_t lo, hi;
    *origin = false;
    if (*offset != XT_ORIGIN)
        return true;
    *offset = 0;
    if (!xti_span(rank, shape, strides, 0, &lo, &hi) || !xti_sub64(0, lo, offset))
        return check_layout(b, rank, shape, strides, 0); /* says so */
    *origin = lo < 0;
    return true;
}

/* ---- inputs */

static bool name_taken(const struct xt_graph *g, const char *name)
{
    for (int i = 0; i < g->n_inputs; i++)
        if (!strcmp(g->node[g->input[i]].name, name))
            return true;
    return false;
}

static void choose_name(const struct xt_graph *g, char *buf, size_t size)
{
    int i = g->n_inputs;
    snprintf(buf, size, i < 3 ? "%c" : "x%d", i < 3 ? "xyz"[i] : i);
    for (; name_taken(g, buf); i++)
        snprintf(buf, size, "x%d", i);
}

static bool check_input(struct xti_build *b, const char *name, xt_dtype t, int rank, const int64_t *shape)
{
    if (!xti_dtype(t)) {
        xti_build_fail(b, XT_EDTYPE, -1, "%d is not an element type", (int)t);
        return false;
    }
    if (!xti_build_rank(b, rank) || !xti_build_list(b, rank, shape, "shape"))
        return false;
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0) {
            xti_build_fail(b, XT_EINVAL, i, "extent %" PRId64 " of axis %d is negative", shape[i], i);
            return false;
        }
    }
    if (name && (strlen(name) > XTI_MAX_NAME || !xti_name_ok(name, strlen(name)))) {
        xti_build_fail(b, XT_EINVAL, -1,
                       "the name is not an identifier of up to %d letters, or it is an operation's",
                       XTI_MAX_NAME);
        return false;
    }
    if (name && name_taken(b->g, name)) {
        xti_build_fail(b, XT_EINVAL, -1, "the name '%.60s' is taken", name);
        return false;
    }
    return true;
}

static bool reserve_input(struct xti_build *b)
{
    struct xt_graph *g = b->g;
    if (g->n_inputs & (g->n_inputs - 1)) /* grows at 0, 1, 2, 4, .. */
        return true;
    xt_node *p = xti_realloc(g->input, (size_t)(g->n_inputs ? 2 * g->n_inputs : 1) * sizeof *p);
    if (!p) {
        xti_build_fail(b, XT_ENOMEM, -1, "out of memory");
        return false;
    }
    g->input = p;
    return true;
}

xt_node xt_input(struct xt_graph *g, const char *name, xt_dtype t, int rank, const int64_t *shape,
                 const int64_t *strides, int64_t offset)
{
    struct xti_build b;
    char chosen[24];
    bool origin;
    int64_t st[XT_MAX_RANK] = {0};
    if (!xti_build_start(&b, g, XT_OP_INPUT, "input", -1) || !check_input(&b, name, t, rank, shape))
        return -1;
    b.rank = rank;
    b.arg = 0;
    if (rank)
        memcpy(b.shape, shape, (size_t)rank * sizeof *shape);
    if (strides && rank)
        memcpy(st, strides, (size_t)rank * sizeof *st);
    else
        xti_dense_strides(rank, shape, st);
    if (!name)
        choose_name(g, chosen, sizeof chosen);
    name = name ? name : chosen;
    int64_t numel;
    if (!resolve_origin(&b, rank, b.shape, st, &offset, &origin))
        return -1;
    if (xti_product(rank, b.shape, &numel) && !check_layout(&b, rank, b.shape, st, offset))
        return -1;
    if (!reserve_input(&b))
        return -1;
    char *name_copy = xti_arena_dup(&g->arena, name, strlen(name) + 1);
    int64_t *st_copy = xti_arena_dup(&g->arena, st, (size_t)rank * sizeof *st);
    if (!name_copy || !st_copy)
        return xti_build_fail(&b, XT_ENOMEM, -1, "out of memory");
    xt_node x = xti_build_join(&b, 0, NULL);
    if (x < 0)
        return -1;
    struct xti_node *n = &g->node[x];
    n->dtype = t;
    n->name = name_copy;
    n->strides = st_copy;
    n->offset = offset;
    n->dense = !strides && !offset;
    n->origin = origin;
    n->input = g->n_inputs;
    g->input[g->n_inputs++] = x;
    return x;
}

xt_status xt_input_layout(struct xt_graph *g, int input, const int64_t *strides, int64_t offset)
{
    struct xti_build b;
    bool origin;
    if (!xti_build_start(&b, g, XT_OP_INPUT, "input_layout", -1))
        return g ? g->err.e.status : XT_EINVAL;
    if (input < 0 || input >= g->n_inputs) {
        xti_build_fail(&b, XT_EINVAL, -1, "no input %d: the graph has %d", input, g->n_inputs);
        return XT_EINVAL;
    }
    struct xti_node *n = &g->node[g->input[input]];
    int64_t st[XT_MAX_RANK] = {0};
    if (strides && n->rank)
        memcpy(st, strides, (size_t)n->rank * sizeof *st);
    else
        xti_dense_strides(n->rank, n->shape, st);
    if (!resolve_origin(&b, n->rank, n->shape, st, &offset, &origin) ||
        !check_layout(&b, n->rank, n->shape, st, offset))
        return g->err.e.status;
    if (n->rank)
        memcpy(n->strides, st, (size_t)n->rank * sizeof *st);
    n->dense = !strides && !offset;
    n->offset = offset;
    n->origin = origin;
    return xti_publish(XT_OK, NULL);
}

/* ---- output */

/* Every element has its own address. */
static bool check_distinct(struct xti_build *b, const int64_t *strides)
{
    int64_t numel = 0;
    char shape[XTI_SHAPE_TEXT], st[XTI_SHAPE_TEXT];
    xti_product(b->x->rank, b->x->shape, &numel);
    for (int i = 0; i < b->x->rank && numel; i++) {
        if (strides[i] == 0 && b->x->shape[i] > 1) {
            xti_build_fail(b, XT_EALIAS, i, "stride 0 on axis %d: %" PRId64 " elements share one address", i,
                           b->x->shape[i]);
            return false;
        }
    }
    enum xti_answer meets = xti_box_self_meets(b->x->rank, b->x->shape, strides);
    if (meets == XTI_NO)
        return true;
    xti_build_fail(b, XT_EALIAS, -1, "the destination %s with strides %s %s",
                   xti_shape_text(shape, sizeof shape, b->x->rank, b->x->shape),
                   xti_shape_text(st, sizeof st, b->x->rank, strides),
                   meets == XTI_YES
                       ? "has two elements at the same address"
                       : "is refused: whether two elements share an address is too hard to tell");
    return false;
}

xt_status xt_output(struct xt_graph *g, xt_node x, const int64_t *strides, int64_t offset)
{
    struct xti_build b;
    bool origin;
    int64_t st[XT_MAX_RANK] = {0};
    if (!xti_build_start(&b, g, XT_OP_RESHAPE, "output", x))
        return g ? g->err.e.status : XT_EINVAL;
    int rank = b.x->rank;
    if (strides && rank)
        memcpy(st, strides, (size_t)rank * sizeof *st);
    else
        xti_dense_strides(rank, b.x->shape, st);
    if (!resolve_origin(&b, rank, b.x->shape, st, &offset, &origin) ||
        !check_layout(&b, rank, b.x->shape, st, offset) || (strides && !check_distinct(&b, st)))
        return g->err.e.status;
    int64_t *copy = xti_arena_dup(&g->arena, st, (size_t)rank * sizeof *st);
    if (!copy) {
        xti_build_fail(&b, XT_ENOMEM, -1, "out of memory");
        return g->err.e.status;
    }
    g->out = x;
    g->out_dense = !strides && !offset;
    g->out_strides = copy;
    g->out_offset = offset;
    g->out_origin = origin;
    return xti_publish(XT_OK, NULL);
}
