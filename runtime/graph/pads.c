/* pads.c: the ways in which libraries list how much goes before and after each axis. Layer 1. */
#include <stdio.h>
#include <string.h>

#include "graph/alias.h"

static int rank(const struct xti_args *b) { return xti_args_node(b)->rank; }

/* One flat list, (1,2,3,4), of n numbers. */
static bool is_flat(const struct xti_args *b, int n)
{
    struct xti_slot s = b->slot[0];
    return s.b - s.a == n + 2 && b->p->item[s.a].kind == XTI_ITEM_OPEN;
}

/* Every list without a list inside is a pair. */
static bool check_pairs(struct xti_args *b)
{
    const struct xti_item *it = b->p->item;
    struct xti_slot s = b->slot[0];
    for (int i = s.a, inside = 0; i < s.b; i++) {
        bool number = it[i].kind == XTI_ITEM_NUMBER;
        inside = number ? inside + 1 : 0;
        if ((it[i].kind == XTI_ITEM_CLOSE && it[i - 1].kind == XTI_ITEM_NUMBER &&
             it[i - 2].kind == XTI_ITEM_OPEN) ||
            inside > 2 || (number && i == s.a))
            return xti_args_fail_param(b, 0, "wants (before,after) for each axis");
    }
    return true;
}

/* v, of `of` numbers, again and again for every axis. */
static int spread(const struct xti_args *b, int of, int64_t v[XTI_MAX_NUMBERS])
{
    int n = 2 * rank(b);
    for (int i = of; i < n; i++)
        v[i] = v[i - of];
    return n;
}

/* n numbers, the last axis' first, to pairs of all axes in order. */
static bool turn_round(struct xti_args *b, int *n, int64_t v[XTI_MAX_NUMBERS])
{
    int64_t given[XTI_MAX_NUMBERS];
    int all = 2 * rank(b);
    if (*n % 2 || *n > all)
        return xti_args_fail_param(b, 0, "wants (before,after) for each axis");
    memcpy(given, v, sizeof given);
    memset(v, 0, XTI_MAX_NUMBERS * sizeof *v);
    for (int i = 0; i < *n; i++)
        v[all - 2 - i / 2 * 2 + i % 2] = given[i];
    *n = all;
    return true;
}

static xt_node pad(struct xti_args *b, int n, const int64_t *v)
{
    unsigned char bytes[16] = {0};
    char mode[XTI_MAX_STRING] = "constant";
    const void *fill;
    const struct xti_item *second = xti_args_given(b, 1) ? &b->p->item[b->slot[1].a] : NULL;
    if (second && second->kind == XTI_ITEM_NUMBER && !second->key.n) {
        xti_args_fail_param(b, 0, "wants a pair for each axis, as in (1,1),(0,2); a value has its name");
        return -1;
    }
    if ((second && !xti_args_text(b, 1, mode)) || !xti_args_value(b, 2, bytes, &fill))
        return -1;
    if (strcmp(mode, "constant")) {
        xti_args_fail(b, XT_EUNSUPPORTED, "pads with one value alone, not by mode ", mode, strlen(mode));
        return -1;
    }
    return xt_pad(xti_args_graph(b), b->x, n / 2, v, fill);
}

/* One number for every side; pairs; and four numbers or more in one list, which PyTorch alone has. */
xt_node xti_build_pad(struct xti_args *b)
{
    int64_t v[XTI_MAX_NUMBERS] = {0};
    int n, one = b->slot[0].b == b->slot[0].a + 1;
    if (!xti_args_numbers(b, 0, &n, v))
        return -1;
    if (one) {
        n = spread(b, 1, v);
    } else if (n == 2 && rank(b) > 1) {
        xti_args_fail(
            b, XT_ERANK,
            "one pair for several axes: np.pad repeats it, F.pad pads the last one: give each its pair", "",
            0);
        return -1;
    } else if (n > 2 && is_flat(b, n)) {
        if (!turn_round(b, &n, v))
            return -1;
    } else if (!check_pairs(b)) {
        return -1;
    }
    return pad(b, n, v);
}

xt_node xti_build_pad_alike(struct xti_args *b)
{
    int64_t v[XTI_MAX_NUMBERS] = {0};
    int n;
    if (!xti_args_numbers(b, 0, &n, v) || (n > 1 && !check_pairs(b)))
        return -1;
    return pad(b, n == 1 || n == 2 ? spread(b, n, v) : n, v);
}

xt_node xti_build_pad_backwards(struct xti_args *b)
{
    int64_t v[XTI_MAX_NUMBERS] = {0};
    int n;
    if (!xti_args_numbers(b, 0, &n, v))
        return -1;
    if (!is_flat(b, n)) {
        xti_args_fail_param(b, 0,
                            "wants one list: before and after of the last axis, then of the one before");
        return -1;
    }
    return turn_round(b, &n, v) ? pad(b, n, v) : -1;
}
