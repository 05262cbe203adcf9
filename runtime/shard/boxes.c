/* boxes.c: a plan between two lists of boxes. Boxes of the source that are the same stand side by side, as
 * copies, and one of them sends; trees say which boxes meet (tree.c). Layer 5. */
#include "shard/boxes.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "graph/build.h"
#include "plan/cost.h"
#include "shard/parts.h"

/* A list, with what the caller may leave out. */
struct side {
    const struct xt_boxes *b;
    int64_t *hi;     /* [n][rank] */
    int64_t *offset; /* [n] */
    int64_t *item;   /* [n_items] those with elements; of the source by place, then by rank */
    int64_t n_items;
    struct xti_tree
        tree; /* of the source: of the first of each place's copies; of the result: of other ranks' boxes */
    struct xti_tree mine; /* of this rank's */
};

struct hit {
    int64_t to, place; /* boxes; place: the first of the copies */
};

struct boxer {
    const struct xti_boxed *x;
    struct xti_parts parts;
    struct side from, to;
    int64_t *copies; /* [box] of a first one: where its copies end in from.item; of all: where they begin */
    int64_t *begin;
    bool sending;
    struct hit *hit;
    int64_t n_hits, cap_hits;
};

static xt_status no_memory(const struct boxer *b) { return xti_fail(b->parts.err, XT_ENOMEM, "boxes"); }

static int64_t stride(const struct boxer *b, const struct side *s, int64_t i, int k)
{
    int64_t st = 1;
    if (s->b->strides)
        return s->b->strides[i * b->x->rank + k];
    for (int j = b->x->rank - 1; j > k; j--)
        st *= s->b->len[i * b->x->rank + j];
    return st;
}

/* ---- what the caller gave */

static xt_status check_box(const struct boxer *b, struct side *s, int64_t i, const char *what, int64_t *numel)
{
    int rank = b->x->rank;
    for (int k = 0; k < rank; k++) {
        int64_t lo = s->b->lo[i * rank + k], n = s->b->len[i * rank + k];
        if (lo < 0 || n < 0 || n > b->x->shape[k] - lo)
            return xti_fail(b->parts.err, XT_ERANGE,
                            "%s: box %lld, axis %d: %lld elements from %lld on, of %lld", what, (long long)i,
                            k, (long long)n, (long long)lo, (long long)b->x->shape[k]);
        s->hi[i * rank + k] = lo + n;
    }
    if (!xti_product(rank, s->b->len + i * rank, numel))
        return xti_fail(b->parts.err, XT_EOVERFLOW, "%s: box %lld", what, (long long)i);
    if (s->b->rank[i] < 0 || s->b->rank[i] >= b->x->ranks)
        return xti_fail(b->parts.err, XT_ERANGE, "%s: box %lld: rank %lld is not in [0,%lld)", what,
                        (long long)i, (long long)s->b->rank[i], (long long)b->x->ranks);
    return XT_OK;
}

/* Elements [*from, *to) of a rank's array. */
static xt_status check_place(const struct boxer *b, const struct side *s, int64_t i, const char *what,
                             int64_t *from, int64_t *to)
{
    int64_t st[XT_MAX_RANK], lo, hi;
    const int64_t *n = s->b->len + i * b->x->rank;
    bool twice = false;
    for (int k = 0; k < b->x->rank; k++) {
        st[k] = stride(b, s, i, k);
        twice |= s == &b->to && !st[k] && n[k] > 1;
    }
    if (twice || !xti_span(b->x->rank, n, st, s->offset[i], &lo, &hi) || lo < 0 || hi >= XTI_PAGE)
        return xti_fail(b->parts.err, XT_EINVAL, "%s: box %lld does not lie in a rank's array", what,
                        (long long)i);
    if (s->b->rank[i] == b->parts.p->rank) {
        *from = lo < *from ? lo : *from;
        *to = hi >= *to ? hi + 1 : *to;
    }
    return XT_OK;
}

static xt_status take_side(struct boxer *b, struct side *s, const struct xt_boxes *boxes, const char *what,
                           int64_t *here)
{
    int64_t *used = xti_alloc_array((size_t)b->x->ranks, sizeof *used), numel = 0;
    size_t n = (size_t)boxes->n + 1;
    s->b = boxes;
    s->hi = xti_alloc_array(n * ((size_t)b->x->rank + 1), sizeof *s->hi);
    s->offset = xti_alloc_array(n, sizeof *s->offset);
    s->item = xti_alloc_array(n, sizeof *s->item);
    xt_status st = used && s->hi && s->offset && s->item ? XT_OK : no_memory(b);
    here[0] = INT64_MAX;
    for (int64_t i = 0; i < boxes->n && !st; i++) {
        if ((st = check_box(b, s, i, what, &numel)) || !numel)
            continue;
        int64_t *end = &used[boxes->rank[i]];
        s->offset[i] = boxes->offset ? boxes->offset[i] : *end;
        if (!boxes->offset && !xti_add64(*end, numel, end))
            st = xti_fail(b->parts.err, XT_EOVERFLOW, "%s: a rank's boxes", what);
        s->item[s->n_items++] = i;
        st = st ? st : check_place(b, s, i, what, &here[0], &here[1]);
    }
    here[0] = here[1] ? here[0] : 0;
    xti_free(used);
    return st;
}

/* ---- copies */

/* By numbers: neighbours in the list are neighbours in the tensor, and look at the same nodes of a tree. */
static int compare_places(const struct boxer *b, int64_t i, int64_t j)
{
    int r = b->x->rank;
    const int64_t *lo = b->from.b->lo, *len = b->from.b->len;
    for (int k = 0; k < r; k++)
        if (lo[i * r + k] != lo[j * r + k])
            return lo[i * r + k] < lo[j * r + k] ? -1 : 1;
    for (int k = 0; k < r; k++)
        if (len[i * r + k] != len[j * r + k])
            return len[i * r + k] < len[j * r + k] ? -1 : 1;
    return 0;
}

static int by_place(const void *x, const void *y, void *arg)
{
    const struct boxer *b = arg;
    int64_t i = *(const int64_t *)x, j = *(const int64_t *)y, p = b->from.b->rank[i], q = b->from.b->rank[j];
    int c = compare_places(b, i, j);
    return c ? c : p != q ? (p > q) - (p < q) : (i > j) - (i < j);
}

static xt_status two_boxes(void *arg, int64_t i, int64_t j)
{
    struct boxer *b = arg;
    return xti_fail(b->parts.err, XT_EINVAL,
                    "from: boxes %lld and %lld have elements in common, and are not the same",
                    (long long)(i < j ? i : j), (long long)(i < j ? j : i));
}

/* Source boxes by place: copies side by side, by rank. Different places have nothing in common. */
static xt_status find_copies(struct boxer *b)
{
    struct side *s = &b->from;
    int64_t *first = xti_alloc_array((size_t)s->n_items + 1, sizeof *first), n = 0;
    b->begin = xti_alloc_array((size_t)s->b->n + 1, sizeof *b->begin);
    b->copies = xti_alloc_array((size_t)s->b->n + 1, sizeof *b->copies);
    if (!first || !b->begin || !b->copies) {
        xti_free(first);
        return no_memory(b);
    }
    qsort_r(s->item, (size_t)s->n_items, sizeof *s->item, by_place, b);
    for (int64_t i = 0, at = 0; i < s->n_items; i++) {
        if (!i || compare_places(b, s->item[i - 1], s->item[i])) {
            at = i;
            first[n++] = s->item[i];
        }
        b->begin[s->item[i]] = at;
        b->copies[s->item[at]] = i + 1;
    }
    xt_status st = xti_tree_new(&s->tree, b->x->rank, n, first, s->b->lo, s->hi) ? no_memory(b) : XT_OK;
    xti_free(first);
    return st ? st : xti_tree_join(&s->tree, &s->tree, two_boxes, b);
}

/* Which of the copies rank `to` gets: its own, else one in turn. */
static int64_t sender(const struct boxer *b, int64_t first, int64_t to)
{
    const int64_t *item = b->from.item, *rank = b->from.b->rank;
    int64_t begin = b->begin[first], end = b->copies[first], lo = begin, hi = end;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (rank[item[mid]] < to)
            lo = mid + 1;
        else
            hi = mid;
    }
    return item[lo < end && rank[item[lo]] == to ? lo : begin + to % (end - begin)];
}

/* ---- parts */

/* Of this rank's boxes of a side, or of all others'. */
static xt_status tree_of(struct boxer *b, const struct side *s, bool mine, struct xti_tree *t)
{
    int64_t *item = xti_alloc_array((size_t)s->n_items + 1, sizeof *item), n = 0;
    for (int64_t i = 0; item && i < s->n_items; i++)
        if ((s->b->rank[s->item[i]] == b->parts.p->rank) == mine)
            item[n++] = s->item[i];
    xt_status st = item && !xti_tree_new(t, b->x->rank, n, item, s->b->lo, s->hi) ? XT_OK : no_memory(b);
    xti_free(item);
    return st;
}

/* place: of the source; its first copy, or one that is this rank's, who sends it. */
static xt_status keep_hit(void *arg, int64_t to, int64_t place)
{
    struct boxer *b = arg;
    struct hit h = {to, b->from.item[b->begin[place]]};
    if (b->sending && sender(b, h.place, b->to.b->rank[to]) != place)
        return XT_OK;
    struct hit *v = xti_grown(b->hit, sizeof *v, b->n_hits, &b->cap_hits);
    if (!v)
        return no_memory(b);
    b->hit = v;
    b->hit[b->n_hits++] = h;
    return XT_OK;
}

/* By the numbers of `to`, those of one by `place`: by each in turn, the second first. */
static xt_status sort_hits(struct boxer *b)
{
    int64_t *end[2] = {xti_alloc_array((size_t)b->from.b->n + 1, sizeof **end),
                       xti_alloc_array((size_t)b->to.b->n + 1, sizeof **end)};
    const int64_t n[2] = {b->from.b->n, b->to.b->n};
    struct hit *v = xti_alloc_array((size_t)b->n_hits + 1, sizeof *v);
    bool there = end[0] && end[1] && v;
    for (int k = 0; k < 2 && there; k++) {
        struct hit *was = b->hit;
        for (int64_t i = 0; i < b->n_hits; i++)
            end[k][k ? was[i].to : was[i].place]++;
        for (int64_t i = 1; i < n[k]; i++)
            end[k][i] += end[k][i - 1];
        for (int64_t i = b->n_hits - 1; i >= 0; i--)
            v[--end[k][k ? was[i].to : was[i].place]] = was[i];
        b->hit = v;
        v = was;
    }
    xti_free(end[0]);
    xti_free(end[1]);
    xti_free(v);
    return there ? XT_OK : no_memory(b);
}

/* What boxes `to` and `from` have in common. */
static xt_status add_common(struct boxer *b, int64_t to, int64_t from)
{
    struct xti_dim dim[XTI_MAX_DIMS];
    struct xti_piece box = {.soff = b->from.offset[from], .doff = b->to.offset[to], .dim = dim};
    struct xti_shard_part part = {.peer = b->to.b->rank[to]};
    int64_t pos[XTI_MAX_DIMS + 1], sender = b->from.b->rank[from];
    for (int k = 0, r = b->x->rank; k < r; k++) {
        int64_t a = b->from.b->lo[from * r + k], z = b->from.hi[from * r + k];
        int64_t c = b->to.b->lo[to * r + k], y = b->to.hi[to * r + k];
        int64_t lo = a > c ? a : c, n = (z < y ? z : y) - lo;
        int64_t s = stride(b, &b->from, from, k), d = stride(b, &b->to, to, k);
        box.soff += (lo - a + (d < 0 ? n - 1 : 0)) * s;
        box.doff += (lo - c + (d < 0 ? n - 1 : 0)) * d;
        if (n > 1)
            dim[box.n_dims++] = (struct xti_dim){n, d < 0 ? -s : s, d < 0 ? -d : d};
    }
    if (sender == part.peer)
        return xti_parts_add(&b->parts, &b->parts.p->own, part, &box, pos,
                             xti_box_positions(&box, XTI_BY_DESTINATION, pos));
    return xti_parts_between(&b->parts, part, b->sending ? part.peer : sender, b->sending, &box,
                             XTI_BY_DESTINATION);
}

/* What this rank receives and keeps, or what it sends: pairs in the order of their numbers on both sides. */
static xt_status find_parts(struct boxer *b, bool sending)
{
    b->sending = sending;
    b->n_hits = 0;
    xt_status s = xti_tree_join(sending ? &b->to.tree : &b->to.mine, sending ? &b->from.mine : &b->from.tree,
                                keep_hit, b);
    if (!s && b->n_hits)
        s = sort_hits(b);
    for (int64_t i = 0; i < b->n_hits && !s; i++) {
        struct hit h = b->hit[i];
        s = add_common(b, h.to, sender(b, h.place, b->to.b->rank[h.to]));
    }
    return s;
}

/* ---- the plan */

/* The tensor as a chain of one input, for who asks what it is. */
static xt_status whole_tensor(const struct xti_boxed *x, struct xti_shard_plan *p, struct xti_err *err)
{
    p->mesh.ranks = x->ranks;
    p->mesh.input = xti_alloc_array(1, sizeof *p->mesh.input);
    if (!p->mesh.input || xt_graph_new(&p->graph))
        return xti_fail(err, XT_ENOMEM, "boxes");
    p->mesh.n_inputs = 1;
    xt_node in = xt_input(p->graph, "x", x->dtype, x->rank, x->shape, NULL, 0);
    if (in < 0 || xt_output(p->graph, in, NULL, 0)) {
        *err = p->graph->err;
        return err->e.status;
    }
    return XT_OK;
}

static void free_side(struct side *s)
{
    xti_tree_free(&s->tree);
    xti_tree_free(&s->mine);
    xti_free(s->hi);
    xti_free(s->offset);
    xti_free(s->item);
}

static xt_status plan_boxes(struct boxer *b, struct xti_shard_plan *p)
{
    xt_status s = take_side(b, &b->from, b->x->from, "from", p->here[0]);
    if (!s)
        s = take_side(b, &b->to, b->x->to, "to", p->here[1]);
    if (!s)
        s = find_copies(b);
    if (!s)
        s = tree_of(b, &b->to, true, &b->to.mine);
    if (!s)
        s = find_parts(b, false);
    if (!s)
        s = tree_of(b, &b->to, false, &b->to.tree);
    if (!s && b->to.tree.n)
        s = tree_of(b, &b->from, true, &b->from.mine);
    if (!s)
        s = find_parts(b, true);
    return s ? s : xti_parts_finish(&b->parts);
}

xt_status xti_boxes_plan_make(const struct xti_boxed *x, int64_t rank, const struct xti_target *target,
                              int64_t most_bytes, const struct xti_near *near, struct xti_shard_plan *p,
                              struct xti_err *err)
{
    struct boxer b = {.x = x, .parts = {.p = p, .direct = true, .plain = true, .err = err}};
    int64_t bytes = 0;
    *p = (struct xti_shard_plan){.rank = rank, .target = *target, .near = *near, .boxes = true};
    xt_status s = whole_tensor(x, p, err);
    if (!s && (rank < 0 || rank >= x->ranks))
        s = xti_fail(err, XT_ERANGE, "rank %lld is not in [0,%lld)", (long long)rank, (long long)x->ranks);
    if (!s)
        s = xti_whole_bytes(&p->graph->node[p->graph->out], "boxes", &bytes, err);
    if (!s) {
        p->esize = (int)xt_dtype_bytes(x->dtype);
        p->most = most_bytes / p->esize;
        p->streams = xti_cost_streams(target, bytes / x->ranks);
        s = xti_parts_begin(&b.parts);
    }
    if (!s)
        s = plan_boxes(&b, p);
    free_side(&b.from);
    free_side(&b.to);
    xti_free(b.begin);
    xti_free(b.copies);
    xti_free(b.hit);
    if (s)
        xti_shard_plan_free(p);
    return s;
}
