/* tree.c: boxes halved by their middles along the axis that has most of them side by side. Layer 5. */
#include "shard/boxes.h"

#include <string.h>

struct xti_tree_node {
    int64_t first, n;
    int64_t right; /* number of the second half's node; the first's follows this one. 0: a leaf */
};

static int64_t *around(const struct xti_tree *t, int64_t node) { return t->around + 2 * t->rank * node; }

/* Sets the box around the node. Returns the axis along which it is longest, counted in boxes of mean length.
 */
static int surround(const struct xti_tree *t, int64_t node)
{
    const struct xti_tree_node *n = &t->node[node];
    int64_t *lo = around(t, node), *hi = lo + t->rank;
    double most = -1;
    int best = 0;
    for (int k = 0; k < t->rank; k++) {
        int64_t least = INT64_MAX, greatest = INT64_MIN;
        double sum = 0;
        for (int64_t i = n->first; i < n->first + n->n; i++) {
            int64_t a = t->lo[t->item[i] * t->rank + k], b = t->hi[t->item[i] * t->rank + k];
            least = a < least ? a : least;
            greatest = b > greatest ? b : greatest;
            sum += (double)(b - a);
        }
        lo[k] = least;
        hi[k] = greatest;
        double boxes = (double)(greatest - least) / sum;
        if (boxes > most) {
            most = boxes;
            best = k;
        }
    }
    return best;
}

/* A box by its middle along the axis that is halved. */
struct key {
    int64_t middle, item;
};

/* Puts keys below x, or those that are not above it, in front. Returns how many. Without a branch: half of
 * them would be foreseen wrongly. */
static int64_t partition(struct key *v, int64_t n, int64_t x, bool with_equal)
{
    int64_t front = 0;
    for (int64_t i = 0; i < n; i++) {
        struct key k = v[i];
        v[i] = v[front];
        v[front] = k;
        front += (k.middle < x) | (with_equal & (k.middle == x));
    }
    return front;
}

static int64_t median(int64_t a, int64_t b, int64_t c)
{
    int64_t lo = a < b ? a : b, hi = a < b ? b : a;
    return c < lo ? lo : c > hi ? hi : c;
}

/* Items of a node move so that those before `half` have no greater middles along axis k than those from it
 * on. */
static void halve(const struct xti_tree *t, struct key *v, const struct xti_tree_node *x, int64_t half, int k)
{
    int64_t a = 0, b = x->n;
    for (int64_t i = 0; i < b; i++) {
        int64_t item = t->item[x->first + i], lo = t->lo[item * t->rank + k], hi = t->hi[item * t->rank + k];
        v[i] = (struct key){lo + (hi - lo) / 2, item};
    }
    while (b - a > 1) {
        int64_t m = median(v[a].middle, v[a + (b - a) / 2].middle, v[b - 1].middle);
        int64_t below = a + partition(v + a, b - a, m, false);
        if (half < below) {
            b = below;
            continue;
        }
        int64_t up = below + partition(v + below, b - below, m, true); /* m itself is among these */
        if (half < up)
            break;
        a = up;
    }
    for (int64_t i = 0; i < x->n; i++)
        t->item[x->first + i] = v[i].item;
}

static void build(struct xti_tree *t, struct key *key)
{
    int64_t nodes = 1, waits[64], parent[64];
    int n = 0;
    t->node[0] = (struct xti_tree_node){0, t->n, 0};
    for (int64_t at = 0;;) {
        struct xti_tree_node *x = &t->node[at];
        int axis = surround(t, at);
        if (x->n > XTI_TREE_LEAF) {
            int64_t half = x->n / 2;
            halve(t, key, x, half, axis);
            waits[n] = x->first + half;
            parent[n++] = at;
            t->node[nodes] = (struct xti_tree_node){x->first, half, 0};
            at = nodes++;
            continue;
        }
        if (!n)
            return;
        n--;
        struct xti_tree_node *up = &t->node[parent[n]];
        up->right = nodes;
        t->node[nodes] = (struct xti_tree_node){waits[n], up->first + up->n - waits[n], 0};
        at = nodes++;
    }
}

xt_status xti_tree_new(struct xti_tree *t, int rank, int64_t n, const int64_t *item, const int64_t *lo,
                       const int64_t *hi)
{
    size_t nodes = (size_t)n + 1; /* a leaf has two items at least: fewer than n nodes, or one */
    *t = (struct xti_tree){.rank = rank, .n = n, .lo = lo, .hi = hi};
    t->item = xti_alloc_array(nodes, sizeof *t->item);
    t->node = xti_alloc_array(nodes, sizeof *t->node);
    t->around = xti_alloc_array(nodes, 2 * ((size_t)rank + 1) * sizeof *t->around);
    t->box = xti_alloc_array(nodes, 2 * ((size_t)rank + 1) * sizeof *t->box);
    struct key *key = xti_alloc_array(nodes, sizeof *key);
    if (!t->item || !t->node || !t->around || !t->box || !key) {
        xti_free(key);
        return XT_ENOMEM;
    }
    for (int64_t i = 0; i < n; i++)
        t->item[i] = item ? item[i] : i;
    if (n)
        build(t, key);
    xti_free(key);
    for (int64_t i = 0; i < n; i++) {
        memcpy(t->box + 2 * rank * i, lo + rank * t->item[i], (size_t)rank * sizeof *lo);
        memcpy(t->box + 2 * rank * i + rank, hi + rank * t->item[i], (size_t)rank * sizeof *hi);
    }
    return XT_OK;
}

void xti_tree_free(struct xti_tree *t)
{
    xti_free(t->item);
    xti_free(t->node);
    xti_free(t->around);
    xti_free(t->box);
}

/* Of all axes, without a branch each: which one parts two boxes nobody foresees. */
static bool meets(int rank, const int64_t *alo, const int64_t *ahi, const int64_t *blo, const int64_t *bhi)
{
    int apart = 0;
    for (int k = 0; k < rank; k++)
        apart |= (alo[k] >= bhi[k]) | (blo[k] >= ahi[k]);
    return !apart;
}

/* Two nodes whose boxes meet. */
struct both {
    int64_t x, y;
};

struct join {
    const struct xti_tree *a, *b;
    struct both waits[130]; /* a pair leaves three at most, and nodes are halved 62 times at most */
    int n;
};

static void push(struct join *j, int64_t x, int64_t y)
{
    const int64_t *p = around(j->a, x), *q = around(j->b, y);
    int r = j->a->rank;
    j->waits[j->n] = (struct both){x, y};
    j->n += meets(r, p, p + r, q, q + r);
}

/* Boxes of two leaves. */
static xt_status meet_boxes(const struct join *j, struct both w, xti_tree_fn each, void *arg)
{
    const struct xti_tree *a = j->a, *b = j->b;
    const struct xti_tree_node *x = &a->node[w.x], *y = &b->node[w.y];
    const int64_t *near = around(b, w.y);
    int r = a->rank;
    for (int64_t i = x->first; i < x->first + x->n; i++) {
        const int64_t *p = a->box + 2 * r * i;
        int64_t k = a == b && w.x == w.y ? i + 1 : y->first;
        if (!meets(r, p, p + r, near, near + r))
            continue;
        for (const int64_t *q = b->box + 2 * r * k; k < y->first + y->n; k++, q += 2 * r) {
            xt_status s = meets(r, p, p + r, q, q + r) ? each(arg, a->item[i], b->item[k]) : XT_OK;
            if (s)
                return s;
        }
    }
    return XT_OK;
}

xt_status xti_tree_join(const struct xti_tree *a, const struct xti_tree *b, xti_tree_fn each, void *arg)
{
    struct join j = {.a = a, .b = b};
    xt_status s = XT_OK;
    if (a->n && b->n)
        push(&j, 0, 0);
    while (j.n && !s) {
        struct both w = j.waits[--j.n];
        const struct xti_tree_node *x = &a->node[w.x], *y = &b->node[w.y];
        if (!x->right && !y->right) {
            s = meet_boxes(&j, w, each, arg);
        } else if (a == b && w.x == w.y) {
            push(&j, w.x + 1, w.x + 1);
            push(&j, x->right, x->right);
            push(&j, w.x + 1, x->right);
        } else if (x->right && (!y->right || x->n >= y->n)) {
            push(&j, w.x + 1, w.y);
            push(&j, x->right, w.y);
        } else {
            push(&j, w.x, w.y + 1);
            push(&j, w.x, y->right);
        }
    }
    return s;
}
