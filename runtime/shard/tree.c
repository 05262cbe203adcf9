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

/* The middle, as far as it orders boxes. */
static int64_t middle(const struct xti_tree *t, int64_t i, int k)
{
    int64_t lo = t->lo[t->item[i] * t->rank + k], hi = t->hi[t->item[i] * t->rank + k];
    return lo + (hi - lo) / 2;
}

/* Items of [a, b) move so that those before `half` have no greater middles than those from it on. */
static void halve(const struct xti_tree *t, int64_t a, int64_t b, int64_t half, int k)
{
    while (b - a > 1) {
        int64_t x = middle(t, a + (b - a) / 2, k), i = a, j = b - 1;
        while (i <= j) {
            while (middle(t, i, k) < x)
                i++;
            while (middle(t, j, k) > x)
                j--;
            if (i > j)
                break;
            int64_t swap = t->item[i];
            t->item[i++] = t->item[j];
            t->item[j--] = swap;
        }
        if (half <= j)
            b = j + 1;
        else if (half >= i)
            a = i;
        else
            return;
    }
}

static void build(struct xti_tree *t)
{
    int64_t nodes = 1, waits[64], parent[64];
    int n = 0;
    t->node[0] = (struct xti_tree_node){0, t->n, 0};
    for (int64_t at = 0;;) {
        struct xti_tree_node *x = &t->node[at];
        int axis = surround(t, at);
        if (x->n > XTI_TREE_LEAF) {
            int64_t half = x->n / 2;
            halve(t, x->first, x->first + x->n, x->first + half, axis);
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
    if (!t->item || !t->node || !t->around)
        return XT_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        t->item[i] = item ? item[i] : i;
    if (n)
        build(t);
    return XT_OK;
}

void xti_tree_free(struct xti_tree *t)
{
    xti_free(t->item);
    xti_free(t->node);
    xti_free(t->around);
}

/* Of all axes, without a branch each: which one parts two boxes nobody foresees. */
static bool meets(int rank, const int64_t *alo, const int64_t *ahi, const int64_t *blo, const int64_t *bhi)
{
    int apart = 0;
    for (int k = 0; k < rank; k++)
        apart |= (alo[k] >= bhi[k]) | (blo[k] >= ahi[k]);
    return !apart;
}

xt_status xti_tree_meet(const struct xti_tree *t, const int64_t *lo, const int64_t *hi,
                        xt_status (*each)(void *arg, int64_t i), void *arg)
{
    int64_t waits[64];
    int n = 0, r = t->rank;
    if (t->n && meets(r, lo, hi, around(t, 0), around(t, 0) + r))
        waits[n++] = 0;
    while (n) {
        int64_t at = waits[--n];
        const struct xti_tree_node *x = &t->node[at];
        if (x->right) {
            const int64_t *first = around(t, at + 1), *second = around(t, x->right);
            waits[n] = x->right;
            n += meets(r, lo, hi, second, second + r);
            waits[n] = at + 1;
            n += meets(r, lo, hi, first, first + r);
            continue;
        }
        for (int64_t i = x->first; i < x->first + x->n; i++) {
            int64_t k = t->item[i];
            xt_status s = meets(r, lo, hi, t->lo + k * r, t->hi + k * r) ? each(arg, k) : XT_OK;
            if (s)
                return s;
        }
    }
    return XT_OK;
}
