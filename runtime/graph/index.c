/* index.c: basic indexing. An ellipsis becomes full slices, a slice becomes (start, length, step) inside its
 * axis. Layer 1. */
#include "graph/build.h"

#include <inttypes.h>

#include "base/num.h"
#include "base/str.h"

static void add_item(struct xti_build *b, enum xt_index_kind kind, int64_t start, int64_t length,
                     int64_t step)
{
    const int64_t item[4] = {kind, start, length, step};
    for (int i = 0; i < 4; i++)
        b->attr[b->n_attrs++] = item[i];
    if (kind != XT_AT && b->rank < XT_MAX_RANK)
        b->shape[b->rank] = length;
    b->rank += kind != XT_AT; /* XT_MAX_RANK is checked when the node is added */
}

/* A bound as Python clamps it, into [lo, hi]. */
static int64_t clamp_bound(int64_t v, int64_t n, int64_t lo, int64_t hi)
{
    v += v < 0 ? n : 0;
    return v < lo ? lo : v > hi ? hi : v;
}

static void add_slice(struct xti_build *b, int64_t n, const struct xt_index *it)
{
    bool up = it->step > 0;
    int64_t lo = up ? 0 : -1, hi = up ? n : n - 1;
    int64_t start = it->start == XT_NONE ? (up ? lo : hi) : clamp_bound(it->start, n, lo, hi);
    int64_t stop = it->stop == XT_NONE ? (up ? hi : lo) : clamp_bound(it->stop, n, lo, hi);
    int64_t gap = up ? stop - start : start - stop;
    int64_t length = gap > 0 ? (int64_t)((uint64_t)(gap - 1) / xti_abs64(it->step)) + 1 : 0;
    add_item(b, XT_SLICE, length ? start : 0, length, length > 1 ? it->step : 1);
}

static bool add_at(struct xti_build *b, int axis, int64_t at)
{
    int64_t n = b->x->shape[axis];
    char s[XTI_SHAPE_TEXT];
    if (at >= -n && at < n) {
        add_item(b, XT_AT, at < 0 ? at + n : at, 1, 1);
        return true;
    }
    xti_shape_text(s, sizeof s, b->x->rank, b->x->shape);
    xti_build_fail(b, XT_ERANGE, axis, "%" PRId64 " is outside axis %d of %s", at, axis, s);
    return false;
}

enum { MOST_ITEMS = 2 * XT_MAX_RANK + 1 }; /* all axes, as many new ones, and '...': no more are read */

static bool check_items(struct xti_build *b, int n, const struct xt_index *items)
{
    int used = 0, ellipses = 0, fresh = 0;
    char s[XTI_SHAPE_TEXT];
    if (!xti_build_list(b, n, items, "items"))
        return false;
    if (n > MOST_ITEMS) {
        xti_build_fail(b, XT_ERANK, -1, "%d items are more than axes can have", n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        if ((int)items[i].kind < XT_AT || items[i].kind > XT_NEWAXIS) {
            xti_build_fail(b, XT_EINVAL, -1, "item %d: %d is not a kind", i, (int)items[i].kind);
            return false;
        }
        if (items[i].kind == XT_SLICE && items[i].step == 0) {
            xti_build_fail(b, XT_EINVAL, -1, "item %d: a slice's step cannot be 0", i);
            return false;
        }
        used += items[i].kind == XT_AT || items[i].kind == XT_SLICE;
        ellipses += items[i].kind == XT_ELLIPSIS;
        fresh += items[i].kind == XT_NEWAXIS;
    }
    if (ellipses > 1) {
        xti_build_fail(b, XT_EINVAL, -1, "more than one '...'");
    } else if (used > b->x->rank) {
        xti_shape_text(s, sizeof s, b->x->rank, b->x->shape);
        xti_build_fail(b, XT_ERANK, -1, "%d %s indexed, %s has %d", used, xti_axes_word(used), s, b->x->rank);
    } else if (fresh > XT_MAX_RANK) {
        xti_build_rank(b, fresh);
    } else {
        return true;
    }
    return false;
}

xt_node xt_index(struct xt_graph *g, xt_node x, int n, const struct xt_index *items)
{
    static const struct xt_index all = {XT_SLICE, XT_NONE, XT_NONE, 1};
    struct xti_build b;
    int axis = 0, left = 0;
    if (!xti_build_start(&b, g, XT_OP_INDEX, "index", x) || !check_items(&b, n, items))
        return -1;
    for (int i = 0; i < n; i++)
        left += items[i].kind == XT_AT || items[i].kind == XT_SLICE;
    for (int i = 0; i < n; i++) {
        if (items[i].kind == XT_NEWAXIS) {
            add_item(&b, XT_NEWAXIS, 0, 1, 1);
        } else if (items[i].kind == XT_ELLIPSIS) {
            for (; b.x->rank - axis > left; axis++)
                add_slice(&b, b.x->shape[axis], &all);
        } else {
            left--;
            if (items[i].kind == XT_SLICE)
                add_slice(&b, b.x->shape[axis], &items[i]);
            else if (!add_at(&b, axis, items[i].start))
                return -1;
            axis++;
        }
    }
    for (; axis < b.x->rank; axis++)
        add_slice(&b, b.x->shape[axis], &all);
    return xti_build_add(&b);
}
