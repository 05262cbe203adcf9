/* graph.c: graphs by calls of the builders, with arguments that mostly fit and now and then do not. */
#include "fuzz.h"

#include <limits.h>

/* Mostly small; sometimes an end of the range. */
static int64_t number(struct bytes *b)
{
    static const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, INT32_MIN, -2,
                                   INT32_MAX, INT64_MAX - 1, INT64_MAX};
    unsigned v = take(b);
    return v < 240 ? (int64_t)v % 16 - 3 : ends[v % 7];
}

static int count(struct bytes *b)
{
    unsigned v = take(b);
    return v < 250 ? (int)(v % 6) : v % 2 ? INT_MAX : INT_MIN;
}

struct arguments {
    int64_t n[2 * XT_MAX_RANK];
    int axis[XT_MAX_RANK];
    xt_node node[8];
    struct xt_index index[8];
    unsigned char value[16];
};

static void draw(struct bytes *b, int nodes, struct arguments *a)
{
    memset(a, 0, sizeof *a);
    for (int i = 0; i < 12; i++)
        a->n[i] = number(b);
    for (int i = 0; i < 6; i++)
        a->axis[i] = (int)number(b);
    for (int i = 0; i < 8; i++) {
        unsigned v = take(b);
        a->node[i] = v < 250 ? (int)(v % (unsigned)(nodes + 1)) : v % 2 ? INT_MAX : INT_MIN;
        a->index[i] =
            (struct xt_index){.kind = (int)(v % 5), .start = number(b), .stop = number(b), .step = number(b)};
    }
    a->value[0] = (unsigned char)take(b);
}

static xt_node call(struct xt_graph *g, struct bytes *b, const struct arguments *a)
{
    int n = count(b), few = n < 0 ? 0 : n > 6 ? 6 : n; /* as many as the list has */
    xt_node x = a->node[0];
    static const char *const pattern[] = {"a b c -> c a b", "(a b) c d -> b (a c) d", "a ... -> ... a k",
                                          "1 ... -> ...", "a (b c) ... -> (c a) ... b"};
    static const char *const names[] = {"b", "k"};
    switch (take(b) % 22) {
    case 0:
        return xt_permute(g, x, few, a->axis);
    case 1:
        return xt_reshape(g, x, few, a->n);
    case 2:
        return xt_squeeze(g, x, few, a->axis);
    case 3:
        return xt_unsqueeze(g, x, a->axis[0]);
    case 4:
        return xt_index(g, x, few, a->index);
    case 5:
        return xt_flip(g, x, few, a->axis);
    case 6:
        return xt_expand(g, x, few, a->n);
    case 7:
        return xt_tile(g, x, few, a->n);
    case 8:
        return xt_repeat(g, x, a->n[0], a->axis[0]);
    case 9:
        return xt_roll(g, x, a->n[0], a->axis[0]);
    case 10:
        return xt_diagonal(g, x, a->n[0], a->axis[0], a->axis[1]);
    case 11:
        return xt_unfold(g, x, a->axis[0], a->n[0], a->n[1]);
    case 12:
        return xt_pad(g, x, few, a->n, a->value);
    case 13:
        return xt_tril(g, x, a->n[0], a->value);
    case 14:
        return xt_triu(g, x, a->n[0], NULL);
    case 15:
        return xt_concat(g, a->axis[0], n, n > 6 ? NULL : a->node);
    case 16:
        return xt_stack(g, a->axis[0], n, n > 6 ? NULL : a->node);
    case 17:
        return xt_flip(g, x, n, NULL);
    case 18:
        return xt_rearrange(g, x, pattern[take(b) % 5], few % 3, names, a->n);
    case 19:
        return xt_input_layout(g, (int)a->n[0], a->n + 1, take(b) % 4 ? a->n[11] : XT_ORIGIN) ? -1 : 0;
    default:
        return xt_input(g, NULL, (xt_dtype)(take(b) % (XT_C128 + 2)), few, a->n,
                        take(b) % 2 ? a->n + 6 : NULL, a->n[11]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    struct arguments a;
    struct xt_graph *g;
    must(!xt_graph_new(&g));
    xt_input(g, "x", (xt_dtype)(1 + take(&b) % XT_C128), 3,
             (int64_t[]){1 + take(&b) % 5, 1 + take(&b) % 9, 1 + take(&b) % 6}, NULL, 0);
    while (b.n && !xt_graph_status(g)) {
        int nodes = xt_node_count(g);
        draw(&b, nodes, &a);
        xt_node x = call(g, &b, &a);
        must(x == -1 || (x >= 0 && x < xt_node_count(g)));
        must((x == -1) == (xt_last_error()->status != XT_OK));
        must((x == -1) == (xt_graph_status(g) != XT_OK));
    }
    draw(&b, xt_node_count(g), &a);
    if (!xt_graph_status(g) && !xt_output(g, xt_node_count(g) - 1, take(&b) % 4 ? NULL : a.n, a.n[6]))
        fuzz_graph(g);
    xt_graph_free(g);
    return 0;
}
