/* random_graph.c: valid random chains over the public builders. Each step picks an operation and arguments
 * that fit the current node; a step whose result would be too large is skipped. */
#include "tests/support/random_graph.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 6 }; /* of the shapes made here, so that a failing chain stays readable */

struct maker {
    uint64_t state;
    struct random_graph_options opt;
    struct xt_graph *g;
    xt_node x;                /* the current node */
    struct xt_node_info info; /* of x */
};

uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int64_t random_below(uint64_t *state, int64_t n) { return (int64_t)(random_next(state) % (uint64_t)n); }

static int64_t below(struct maker *m, int64_t n) { return random_below(&m->state, n); }
static bool one_in(struct maker *m, int n) { return below(m, n) == 0; }
static int any_axis(struct maker *m, int rank) { return (int)below(m, 2 * rank) - rank; }
static int64_t extent(const struct maker *m, int axis)
{
    return m->info.shape[axis < 0 ? axis + m->info.rank : axis];
}

void random_fill(void *p, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)p)[i] = (unsigned char)(random_next(&seed) >> 32);
}

unsigned char *random_bytes(int64_t n, uint64_t seed)
{
    unsigned char *p = malloc((size_t)n + 1);
    if (p)
        random_fill(p, (size_t)n, seed);
    return p;
}

/* INT64_MAX: more than fit in 63 bits. */
static int64_t product(int64_t a, int64_t b)
{
    int64_t ab;
    return __builtin_mul_overflow(a, b, &ab) ? INT64_MAX : ab;
}

static int64_t sum(int64_t a, int64_t b)
{
    int64_t ab;
    return __builtin_add_overflow(a, b, &ab) ? INT64_MAX : ab;
}

static int64_t count(int rank, const int64_t *shape)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n = shape[i] ? product(n, shape[i]) : 0;
    return n;
}

static int64_t numel(const struct maker *m) { return count(m->info.rank, m->info.shape); }
static bool fits(const struct maker *m, int64_t times)
{
    return product(numel(m), times) <= m->opt.max_numel;
}

static void shuffle(struct maker *m, int n, int *v)
{
    for (int i = 0; i < n; i++)
        v[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int k = below(m, i + 1), t = v[i];
        v[i] = v[k];
        v[k] = t;
    }
}

/* ---- layouts */

/* Strides under which every element has its own address: a permuted dense layout with gaps and flips. */
static int64_t spread_layout(struct maker *m, int rank, const int64_t *shape, int64_t *st)
{
    int order[XT_MAX_RANK];
    int64_t at = 1 + (one_in(m, 4) ? below(m, 3) : 0), offset = one_in(m, 2) ? below(m, 5) : 0;
    shuffle(m, rank, order);
    if (one_in(m, 3))
        for (int i = 0; i < rank; i++)
            order[i] = rank - 1 - i;
    for (int i = 0; i < rank; i++) {
        int64_t n = shape[order[i]] > 0 ? shape[order[i]] : 1;
        bool down = one_in(m, 4);
        st[order[i]] = down ? -at : at;
        offset = sum(offset, down ? product(at, n - 1) : 0);
        at = sum(product(at, n), one_in(m, 4) ? below(m, 3) : 0);
    }
    return offset;
}

/* Any strides at all: zero, overlapping, negative. */
static int64_t wild_layout(struct maker *m, int rank, const int64_t *shape, int64_t *st)
{
    int64_t offset = below(m, 4);
    for (int i = 0; i < rank; i++) {
        st[i] = below(m, 12) - 4;
        if (st[i] < 0 && shape[i] > 1)
            offset = sum(offset, product(-st[i], shape[i] - 1));
    }
    return offset;
}

static xt_node add_input(struct maker *m, xt_dtype t, int rank, const int64_t *shape)
{
    int64_t st[XT_MAX_RANK] = {0};
    int how = m->opt.dense_inputs ? 0 : below(m, 4);
    if (how < 2)
        return xt_input(m->g, NULL, t, rank, shape, NULL, 0);
    int64_t offset = how == 2 ? spread_layout(m, rank, shape, st) : wild_layout(m, rank, shape, st);
    return xt_input(m->g, NULL, t, rank, shape, st, offset);
}

static void random_shape(struct maker *m, int *rank, int64_t *shape)
{
    static const int64_t likely[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33};
    *rank = one_in(m, 12) ? 0 : 1 + below(m, 4);
    for (int i = 0; i < *rank; i++) {
        do
            shape[i] = !m->opt.no_empty && one_in(m, 40) ? 0 : likely[below(m, 10)];
        while (shape[i] > 1 && count(i + 1, shape) > m->opt.max_numel);
    }
    int64_t others = m->opt.huge && *rank ? count(*rank - 1, shape) : 0;
    if (others) {
        int axis = (int)below(m, *rank);
        int64_t most = m->opt.max_numel / others, part = one_in(m, 2) ? 1 : INT64_C(1) << below(m, 24);
        shape[*rank - 1] = shape[axis];
        shape[axis] = most / part > 40 ? most / part - below(m, 20) : shape[axis];
    }
}

/* ---- operations: each returns the new node, or -2 when the current node does not allow it. */

enum { SKIP = -2 };

static xt_node do_permute(struct maker *m)
{
    int axes[XT_MAX_RANK];
    int n = m->info.rank;
    if (n && one_in(m, 4))
        return xt_transpose(m->g, m->x, any_axis(m, n), any_axis(m, n));
    shuffle(m, n, axes);
    for (int i = 0; i < n; i++)
        axes[i] -= one_in(m, 8) ? n : 0;
    return xt_permute(m->g, m->x, n, axes);
}

/* Splits the element count into random factors; merges and splits alike. */
static xt_node do_reshape(struct maker *m)
{
    int64_t shape[MAX_RANK], left = numel(m);
    int n = 1 + below(m, 4);
    if (left == 0)
        return xt_reshape(m->g, m->x, m->info.rank, m->info.shape);
    for (int i = 0; i < n; i++) {
        int64_t f = 1 + below(m, left < 40 ? left : 40);
        while (left % f)
            f--;
        shape[i] = i == n - 1 ? left : f;
        left /= shape[i];
    }
    int k = below(m, n), swap = below(m, n);
    int64_t t = shape[k];
    shape[k] = shape[swap];
    shape[swap] = t;
    if (one_in(m, 3))
        shape[below(m, n)] = -1;
    return xt_reshape(m->g, m->x, n, shape);
}

static xt_node do_squeeze(struct maker *m)
{
    for (int i = 0; i < m->info.rank && !one_in(m, 3); i++)
        if (m->info.shape[i] == 1)
            return xt_squeeze(m->g, m->x, 1, &i);
    return xt_squeeze(m->g, m->x, 0, NULL);
}

static xt_node do_unsqueeze(struct maker *m)
{
    return m->info.rank >= MAX_RANK ? SKIP : xt_unsqueeze(m->g, m->x, any_axis(m, m->info.rank + 1));
}

static struct xt_index random_slice(struct maker *m, int64_t n)
{
    int64_t step = one_in(m, 3) ? below(m, 7) - 3 : 1;
    struct xt_index it = {XT_SLICE, XT_NONE, XT_NONE, step ? step : -1};
    if (one_in(m, 2))
        it.start = it.step > 0 ? below(m, n / 2 + 1) : n - 1 - below(m, n / 2 + 1);
    if (one_in(m, 2))
        it.stop = it.step > 0 ? n - below(m, n / 2 + 1) : below(m, n / 2 + 1) - 1;
    if (it.stop == -1)
        it.stop = XT_NONE;
    if (n && it.start == it.stop)
        it.start = it.stop = XT_NONE;
    return it;
}

static xt_node do_index(struct maker *m)
{
    struct xt_index items[2 * XT_MAX_RANK];
    int n = 0, rank = 0;
    for (int i = 0; i < m->info.rank; i++) {
        int64_t len = m->info.shape[i];
        if (rank < MAX_RANK && m->info.rank < MAX_RANK && one_in(m, 12))
            items[n++] = (struct xt_index){.kind = XT_NEWAXIS}, rank++;
        if (len && one_in(m, 5))
            items[n++] = (struct xt_index){XT_AT, below(m, product(2, len)) - len, 0, 0};
        else
            items[n++] = random_slice(m, len), rank++;
    }
    if (n && one_in(m, 4))
        items[n - 1].kind = XT_ELLIPSIS;
    return rank > MAX_RANK ? SKIP : xt_index(m->g, m->x, n, items);
}

static xt_node do_flip(struct maker *m)
{
    int axes[XT_MAX_RANK];
    shuffle(m, m->info.rank, axes);
    return xt_flip(m->g, m->x, (int)below(m, m->info.rank + 1), axes);
}

static xt_node do_expand(struct maker *m)
{
    int64_t shape[MAX_RANK + 1];
    int lead = m->info.rank < MAX_RANK ? below(m, 2) : 0, n = m->info.rank + lead;
    if (m->info.rank > MAX_RANK)
        return SKIP;
    for (int i = 0; i < n; i++) {
        int64_t was = i < lead ? 1 : m->info.shape[i - lead];
        shape[i] = was == 1 && one_in(m, 2) ? 1 + below(m, 5) : i >= lead && one_in(m, 3) ? -1 : was;
    }
    int64_t total = 1;
    for (int i = 0; i < n; i++)
        total = product(total, shape[i] == -1 ? m->info.shape[i - lead] : shape[i]);
    return total > m->opt.max_numel ? SKIP : xt_expand(m->g, m->x, n, shape);
}

static xt_node do_tile(struct maker *m)
{
    int64_t reps[XT_MAX_RANK + 1];
    int n = below(m, m->info.rank + 2);
    for (int i = 0; i < n; i++)
        reps[i] = 1 + below(m, 3);
    if (n > MAX_RANK || !fits(m, count(n, reps)))
        return SKIP;
    return xt_tile(m->g, m->x, n, reps);
}

static xt_node do_repeat(struct maker *m)
{
    int64_t reps = !m->opt.no_empty && one_in(m, 30) ? 0 : 1 + below(m, 4);
    return !m->info.rank || !fits(m, reps) ? SKIP : xt_repeat(m->g, m->x, reps, any_axis(m, m->info.rank));
}

static xt_node do_roll(struct maker *m)
{
    return m->info.rank ? xt_roll(m->g, m->x, below(m, 40) - 20, any_axis(m, m->info.rank)) : SKIP;
}

static xt_node do_diagonal(struct maker *m)
{
    int axes[XT_MAX_RANK];
    if (m->info.rank < 2)
        return SKIP;
    shuffle(m, m->info.rank, axes);
    int64_t rows = extent(m, axes[0]), cols = extent(m, axes[1]);
    if (m->opt.no_empty && (!rows || !cols))
        return SKIP;
    int64_t n = sum(rows, cols) - 1, offset = n > 0 ? below(m, n) - (rows - 1) : 0;
    return xt_diagonal(m->g, m->x, offset, axes[0], axes[1]);
}

static xt_node do_unfold(struct maker *m)
{
    if (!m->info.rank || m->info.rank >= MAX_RANK)
        return SKIP;
    int axis = any_axis(m, m->info.rank);
    int64_t n = extent(m, axis), size = n ? 1 + below(m, n < 5 ? n : 5) : 0;
    return fits(m, size) ? xt_unfold(m->g, m->x, axis, size, 1 + below(m, 3)) : SKIP;
}

static void random_value(struct maker *m, unsigned char value[16])
{
    for (int i = 0; i < 16; i++)
        value[i] = m->info.dtype == XT_BOOL ? (unsigned char)below(m, 2) : (unsigned char)below(m, 256);
}

static xt_node do_pad(struct maker *m)
{
    int64_t lo_hi[2 * XT_MAX_RANK], total = 1;
    unsigned char value[16];
    random_value(m, value);
    for (int i = 0; i < m->info.rank; i++) {
        lo_hi[2 * i] = one_in(m, 2) ? below(m, 4) : 0;
        lo_hi[2 * i + 1] = one_in(m, 2) ? below(m, 4) : 0;
        total = product(total, sum(m->info.shape[i], lo_hi[2 * i] + lo_hi[2 * i + 1]));
    }
    return total > m->opt.max_numel ? SKIP
                                    : xt_pad(m->g, m->x, m->info.rank, lo_hi, one_in(m, 3) ? NULL : value);
}

static xt_node do_triangle(struct maker *m, int upper)
{
    unsigned char value[16];
    if (m->info.rank < 2)
        return SKIP;
    random_value(m, value);
    int64_t k = below(m, 9) - 4;
    const void *v = one_in(m, 2) ? NULL : value;
    return upper ? xt_triu(m->g, m->x, k, v) : xt_tril(m->g, m->x, k, v);
}

static xt_node do_tril(struct maker *m) { return do_triangle(m, 0); }
static xt_node do_triu(struct maker *m) { return do_triangle(m, 1); }

/* An operand like the current node but for one axis (-1: none): itself, a view of it, or a new input. */
static xt_node other_operand(struct maker *m, int axis)
{
    int64_t shape[XT_MAX_RANK];
    int how = below(m, 4);
    if (how == 0)
        return m->x;
    if (how == 1)
        return xt_flip(m->g, m->x, 0, NULL);
    if (how == 2 && axis >= 0) {
        struct xt_index items[XT_MAX_RANK];
        for (int i = 0; i < m->info.rank; i++)
            items[i] =
                i == axis ? random_slice(m, extent(m, i)) : (struct xt_index){XT_SLICE, XT_NONE, XT_NONE, 1};
        return xt_index(m->g, m->x, m->info.rank, items);
    }
    memcpy(shape, m->info.shape, (size_t)m->info.rank * sizeof *shape);
    if (axis >= 0)
        shape[axis] = 1 + below(m, 4);
    return count(m->info.rank, shape) > m->opt.max_numel ? m->x
                                                         : add_input(m, m->info.dtype, m->info.rank, shape);
}

/* A result that came out too large is dropped: the graph keeps it as an unused node. */
static xt_node join(struct maker *m, int axis, xt_node (*build)(struct xt_graph *, int, int, const xt_node *))
{
    xt_node xs[3];
    int n = 1 + below(m, 3), mine = below(m, n);
    struct xt_node_info info = {.size = sizeof info};
    for (int i = 0; i < n; i++)
        xs[i] = i == mine ? m->x : other_operand(m, build == xt_concat ? axis : -1);
    for (int i = 0; i < n; i++)
        if (xs[i] < 0)
            return -1;
    xt_node y = build(m->g, axis, n, xs);
    if (y >= 0 && !xt_node_get(m->g, y, &info) && count(info.rank, info.shape) > m->opt.max_numel)
        return SKIP;
    return y;
}

static xt_node do_concat(struct maker *m)
{
    return m->info.rank ? join(m, below(m, m->info.rank), xt_concat) : SKIP;
}

static xt_node do_stack(struct maker *m)
{
    return m->info.rank < MAX_RANK ? join(m, below(m, m->info.rank + 1), xt_stack) : SKIP;
}

static xt_node (*const step[])(struct maker *) = {
    [XT_OP_PERMUTE] = do_permute,   [XT_OP_RESHAPE] = do_reshape,
    [XT_OP_SQUEEZE] = do_squeeze,   [XT_OP_UNSQUEEZE] = do_unsqueeze,
    [XT_OP_INDEX] = do_index,       [XT_OP_FLIP] = do_flip,
    [XT_OP_EXPAND] = do_expand,     [XT_OP_TILE] = do_tile,
    [XT_OP_REPEAT] = do_repeat,     [XT_OP_ROLL] = do_roll,
    [XT_OP_DIAGONAL] = do_diagonal, [XT_OP_UNFOLD] = do_unfold,
    [XT_OP_PAD] = do_pad,           [XT_OP_TRIL] = do_tril,
    [XT_OP_TRIU] = do_triu,         [XT_OP_CONCAT] = do_concat,
    [XT_OP_STACK] = do_stack,
};

static bool must_stay(const struct maker *m, xt_node y)
{
    struct xt_node_info info = {.size = sizeof info};
    if (y == SKIP || xt_node_get(m->g, y, &info))
        return true;
    return m->opt.no_empty && count(info.rank, info.shape) == 0;
}

static void finish(struct maker *m)
{
    int64_t st[XT_MAX_RANK] = {0};
    if (m->opt.dense_output || one_in(m, 2)) {
        xt_output(m->g, m->x, NULL, 0);
        return;
    }
    int64_t offset = spread_layout(m, m->info.rank, m->info.shape, st);
    xt_output(m->g, m->x, st, offset);
}

struct xt_graph *random_graph(uint64_t seed, const struct random_graph_options *opt)
{
    struct maker m = {.state = seed * 0x2545f4914f6cdd1du + 1};
    int64_t shape[XT_MAX_RANK];
    int rank;
    m.info.size = sizeof m.info;
    m.opt = opt ? *opt : m.opt;
    m.opt.max_ops = m.opt.max_ops ? m.opt.max_ops : 8;
    if (xt_graph_new(&m.g))
        return NULL;
    xt_dtype t = m.opt.dtype ? m.opt.dtype : (xt_dtype)(XT_BOOL + below(&m, XT_C128));
    int64_t most = m.opt.huge ? INT64_MAX / (int64_t)xt_dtype_bytes(t) : 4096;
    m.opt.max_numel = m.opt.max_numel ? m.opt.max_numel : most;
    random_shape(&m, &rank, shape);
    m.x = add_input(&m, t, rank, shape);
    int n_ops = (int)below(&m, m.opt.max_ops + 1);
    xt_node_get(m.g, m.x, &m.info);
    for (int i = 0; i < n_ops && xt_graph_status(m.g) == XT_OK; i++) {
        enum xt_op op = (enum xt_op)(1 + below(&m, XT_OP_STACK));
        if (m.opt.no_ops >> op & 1)
            continue;
        xt_node y = step[op](&m);
        m.x = must_stay(&m, y) ? m.x : y;
        xt_node_get(m.g, m.x, &m.info); /* the operation may have moved its shape */
    }
    finish(&m);
    if (xt_graph_status(m.g) == XT_OK)
        return m.g;
    xt_graph_free(m.g);
    return NULL;
}

const char *graph_text(const struct xt_graph *g)
{
    static _Thread_local char text[8192];
    if (xt_print(g, text, sizeof text, NULL))
        strcpy(text, "(cannot be printed)");
    return text;
}
