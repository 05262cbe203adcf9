/* rearrange.c: einops' rearrange and repeat as nodes that are there already: reshape to the pattern's axes,
 * permute them, expand the new ones, reshape to the result's groups; each only where it changes something.
 * Layer 1. */
#include "graph/rearrange.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "graph/pattern.h"

/* The four steps. */
struct steps {
    int n, n_out;                /* axes while rearranging; of the result */
    int64_t apart[XT_MAX_RANK];  /* the left's axes, and a 1 for each new one */
    int axes[XT_MAX_RANK];       /* of those, in the right's order */
    int64_t grown[XT_MAX_RANK];  /* the right's axes */
    int64_t groups[XT_MAX_RANK]; /* the result */
};

/* New axes stand where they are wanted when the others keep their order, else behind them. */
static void place_axes(const struct xti_pattern *p, struct steps *s)
{
    int fresh = p->left.n_axes, last = -1;
    bool ordered = true;
    for (int i = 0; i < p->right.n_axes; i++) {
        ordered = ordered && (p->from[i] < 0 || p->from[i] > last);
        last = p->from[i] < 0 ? last : p->from[i];
    }
    for (int i = 0; i < p->right.n_axes; i++) {
        int at = p->from[i] >= 0 ? p->from[i] : fresh++;
        s->axes[i] = ordered ? i : at;
        s->apart[s->axes[i]] = p->from[i] >= 0 ? p->right.axis[i].length : 1;
    }
}

static bool plan_steps(struct xti_build *b, const char *pattern, const struct xti_pattern *p, struct steps *s)
{
    int64_t numel;
    s->n = p->right.n_axes;
    s->n_out = p->right.n_groups;
    for (int i = 0; i < s->n; i++)
        s->grown[i] = p->right.axis[i].length;
    place_axes(p, s);
    bool fits = xti_product(s->n, s->grown, &numel);
    for (int i = 0; i < s->n_out; i++)
        fits = xti_product(p->right.at[i + 1] - p->right.at[i], s->grown + p->right.at[i], &s->groups[i]) &&
               fits;
    if (!fits)
        xti_build_fail(b, XT_EOVERFLOW, -1, "'%.120s': the result has 2^63 elements or more", pattern);
    return fits;
}

static bool has_shape(const struct xt_graph *g, xt_node x, int n, const int64_t *shape)
{
    const struct xti_node *node = &g->node[x];
    return node->rank == n && (!n || !memcmp(node->shape, shape, (size_t)n * sizeof *shape));
}

static xt_node reshape(struct xt_graph *g, xt_node x, int n, const int64_t *shape)
{
    return x < 0 || has_shape(g, x, n, shape) ? x : xt_reshape(g, x, n, shape);
}

static xt_node permute(struct xt_graph *g, xt_node x, int n, const int *axes)
{
    bool moves = false;
    for (int i = 0; i < n; i++)
        moves |= axes[i] != i;
    return x < 0 || !moves ? x : xt_permute(g, x, n, axes);
}

static xt_node expand(struct xt_graph *g, xt_node x, int n, const int64_t *shape)
{
    return x < 0 || has_shape(g, x, n, shape) ? x : xt_expand(g, x, n, shape);
}

static bool check_lengths(struct xti_build *b, const char *pattern, const struct xti_lengths *given)
{
    if (given->n > XT_MAX_RANK) {
        xti_build_fail(b, XT_ERANK, -1, "%d lengths are more than axes can have", given->n);
        return false;
    }
    bool ok = pattern && given->n >= 0 && (!given->n || (given->name && given->length));
    for (int i = 0; ok && i < given->n; i++)
        ok = given->name[i] != NULL;
    if (!ok)
        xti_build_fail(b, XT_EINVAL, -1, given->n < 0 ? "n is negative" : "an argument is NULL");
    return ok;
}

xt_node xti_rearrange(struct xt_graph *g, const char *called, xt_node x, const char *pattern,
                      const struct xti_lengths *given)
{
    struct xti_build b;
    struct xti_pattern p;
    struct steps s;
    if (!xti_build_start(&b, g, XT_OP_RESHAPE, called, x) || !check_lengths(&b, pattern, given) ||
        !xti_pattern_solve(&b, pattern, given, &p) || !plan_steps(&b, pattern, &p, &s))
        return -1;
    x = reshape(g, x, s.n, s.apart);
    x = permute(g, x, s.n, s.axes);
    x = expand(g, x, s.n, s.grown);
    x = reshape(g, x, s.n_out, s.groups);
    if (x >= 0)
        xti_publish(XT_OK, NULL);
    return x;
}

xt_node xt_rearrange(struct xt_graph *g, xt_node x, const char *pattern, int n, const char *const *names,
                     const int64_t *lengths)
{
    return xti_rearrange(g, "rearrange", x, pattern, &(struct xti_lengths){n, names, lengths});
}
