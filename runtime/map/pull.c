/* pull.c: pulls coordinates back through a node: from indices of its result to indices of its argument. One
 * function an operation, in the table at the end; a chain is a loop, a choice goes on the stack. Layer 2. */
#include "map/fuse.h"

#include <string.h>

static const struct xti_node *node_of(const struct xti_fuser *f, xt_node x) { return &f->g->node[x]; }

/* a*row + c: a reference that the caller owns, in exchange for the one to r. */
static short affine(struct xti_work *p, int r, int64_t a, int64_t c)
{
    if (a == 1 && c == 0)
        return (short)r;
    r = xti_row_own(p, r);
    for (int v = 0; a != 1 && v < p->nc; v++)
        if (!xti_mul64(xti_row(p, r)[v], a, &xti_row(p, r)[v]))
            xti_pool_fail(p->pool, XT_EOVERFLOW);
    xti_row_add_const(p, r, c);
    return (short)r;
}

static void set_coords(struct xti_work *p, int n, const short *coord)
{
    memcpy(p->coord, coord, (size_t)n * sizeof *coord);
    p->n_coords = (short)n;
}

/* ---- operations that only rewrite coordinates */

typedef void rewrite_fn(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg);

static void pull_permute(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg)
{
    short c[XTI_COORDS];
    for (int i = 0; i < n->rank; i++)
        c[n->attr[i]] = p->coord[i];
    set_coords(p, n->rank, c);
}

static void pull_flip(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg)
{
    for (int i = 0; i < n->n_attrs; i++) {
        int axis = (int)n->attr[i];
        p->coord[axis] = affine(p, p->coord[axis], -1, n->shape[axis] - 1);
    }
}

static void pull_squeeze(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg)
{
    short c[XTI_COORDS];
    int next = 0;
    for (int i = 0, gone = 0; i < arg->rank; i++) {
        bool removed = gone < n->n_attrs && n->attr[gone] == i;
        gone += removed;
        c[i] = removed ? XTI_ROW_ZERO : p->coord[next++];
    }
    set_coords(p, arg->rank, c);
}

static void drop_coords(struct xti_work *p, int at, int n)
{
    for (int i = at; i < at + n; i++)
        xti_row_drop(p, p->coord[i]);
    p->n_coords = (short)(p->n_coords - n);
    memmove(p->coord + at, p->coord + at + n, (size_t)(p->n_coords - at) * sizeof *p->coord);
}

static void pull_unsqueeze(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg)
{
    drop_coords(p, (int)n->attr[0], 1);
}

static void pull_index(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg)
{
    short c[XTI_COORDS];
    int next = 0, axis = 0;
    for (const int64_t *a = n->attr; a < n->attr + n->n_attrs; a += 4) {
        if (a[0] == XT_NEWAXIS)
            xti_row_drop(p, p->coord[next++]);
        else if (a[0] == XT_AT)
            c[axis++] = affine(p, XTI_ROW_ZERO, 1, a[1]);
        else
            c[axis++] = affine(p, p->coord[next++], a[3], a[1]);
    }
    set_coords(p, axis, c);
}

/* Broadcast axes have extent 1 in the argument: their coordinates become 0 when it is visited. */
static void pull_expand(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg)
{
    drop_coords(p, 0, n->rank - arg->rank);
}

static void pull_diagonal(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg)
{
    short c[XTI_COORDS], last = p->coord[n->rank - 1];
    int64_t off = n->attr[0];
    for (int i = 0, next = 0; i < arg->rank; i++) {
        bool a = i == n->attr[1], b = i == n->attr[2];
        if (a || b)
            c[i] = affine(p, xti_row_share(p, last), 1, a ? (off < 0 ? -off : 0) : (off > 0 ? off : 0));
        else
            c[i] = p->coord[next++];
    }
    xti_row_drop(p, last);
    set_coords(p, arg->rank, c);
}

static void pull_unfold(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg)
{
    int axis = (int)n->attr[0], last = p->coord[arg->rank];
    int r = xti_row_new(p);
    xti_row_add(p->pool, p->nc, xti_row(p, r), n->attr[2], xti_row(p, p->coord[axis]));
    xti_row_add(p->pool, p->nc, xti_row(p, r), 1, xti_row(p, last));
    xti_row_drop(p, p->coord[axis]);
    xti_row_drop(p, last);
    p->coord[axis] = (short)r;
    p->n_coords--;
}

/* A tiled axis is a broadcast axis in front of it, reshaped away: out extents (r*n) are split to (r, n). */
static void pull_tile(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg, bool remember)
{
    int64_t split[XTI_COORDS];
    int lead = n->rank - arg->rank;
    for (int i = 0; i < n->rank; i++) {
        split[2 * i] = n->attr[i];
        split[2 * i + 1] = i < lead ? 1 : arg->shape[i - lead];
    }
    xti_work_reshape(p, n->rank, n->shape, 2 * n->rank, split, remember, false);
    for (int i = 0; i < n->rank; i++) {
        xti_row_drop(p, p->coord[2 * i]);
        if (i < lead)
            xti_row_drop(p, p->coord[2 * i + 1]);
        else
            p->coord[i - lead] = p->coord[2 * i + 1];
    }
    p->n_coords = (short)arg->rank;
}

static void pull_repeat(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg,
                        bool remember)
{
    int64_t split[XTI_COORDS];
    int axis = (int)n->attr[1], to = 0;
    for (int i = 0; i < arg->rank; i++) {
        split[to++] = arg->shape[i];
        if (i == axis)
            split[to++] = n->attr[0];
    }
    xti_work_reshape(p, n->rank, n->shape, to, split, remember, false);
    drop_coords(p, axis + 1, 1);
}

/* ---- operations that choose */

static void split(struct xti_fuser *f, struct xti_work *p, int axis, int64_t t, struct xti_works *lt,
                  struct xti_works *ge)
{
    xti_work_side(p, xti_row_share(p, p->coord[axis]), t, xti_fuser_room(f), lt, ge);
}

static void add_to_coord(struct xti_work *p, int axis, int64_t c)
{
    p->coord[axis] = affine(p, p->coord[axis], 1, c);
}

static void split_all(struct xti_works *from, int axis, int64_t t, int room, struct xti_works *lt,
                      struct xti_works *ge)
{
    while (from->head) {
        struct xti_work *p = xti_works_pop(from);
        xti_work_side(p, xti_row_share(p, p->coord[axis]), t, room, lt, ge);
    }
}

static void fill_all(struct xti_fuser *f, struct xti_works *l, const unsigned char *value)
{
    while (l->head)
        xti_fuser_emit_fill(f, xti_works_pop(l), value);
}

static void push_all(struct xti_fuser *f, struct xti_works *l, xt_node node, int arg, int64_t base)
{
    while (l->head)
        xti_fuser_push(f, node, arg, base, xti_works_pop(l));
}

/* Coordinates of plain pieces are where the node is: nothing lies outside of an axis without borders. */
static bool all_plain(const struct xti_works *l)
{
    for (const struct xti_work *p = l->head; p; p = p->next)
        if (p->n_divs || p->n_guards)
            return false;
    return true;
}

static void pull_pad(struct xti_fuser *f, struct xti_item *it, const struct xti_node *n)
{
    struct xti_works in = {0};
    xti_works_add(&in, it->p);
    for (int i = 0; i < n->rank; i++) {
        int64_t lo = n->attr[2 * i], hi = n->attr[2 * i + 1];
        struct xti_works below = {.fills = true}, above = {.fills = true}, kept = {0}, inner = {0};
        int room = xti_fuser_room(f); /* the same on both sides */
        if (!lo && !hi && all_plain(&in))
            continue;
        split_all(&in, i, lo, room, &below, &kept);
        fill_all(f, &below, n->value);
        split_all(&kept, i, n->shape[i] - hi, room, &inner, &above);
        fill_all(f, &above, n->value);
        in = inner;
        for (struct xti_work *p = in.head; p && lo; p = p->next)
            add_to_coord(p, i, -lo);
    }
    push_all(f, &in, n->arg[0], 0, 0);
    it->p = NULL;
}

static void pull_triangle(struct xti_fuser *f, struct xti_item *it, const struct xti_node *n)
{
    bool lower = n->op == XT_OP_TRIL;
    struct xti_works lt = {.fills = !lower}, ge = {.fills = lower};
    struct xti_work *p = it->p;
    int64_t k = n->attr[0], rows = n->shape[n->rank - 2], cols = n->shape[n->rank - 1];
    k = k < -rows ? -rows : k > cols ? cols : k; /* beyond these nothing changes */
    int r = xti_row_new(p);
    xti_row_add(p->pool, p->nc, xti_row(p, r), 1, xti_row(p, p->coord[n->rank - 1]));
    xti_row_add(p->pool, p->nc, xti_row(p, r), -1, xti_row(p, p->coord[n->rank - 2]));
    xti_work_side(p, r, lower ? k + 1 : k, xti_fuser_room(f), &lt, &ge);
    fill_all(f, lower ? &ge : &lt, n->value);
    push_all(f, lower ? &lt : &ge, n->arg[0], 0, 0);
    it->p = NULL;
}

static void pull_roll(struct xti_fuser *f, struct xti_item *it, const struct xti_node *n)
{
    struct xti_works lt = {0}, ge = {0};
    int axis = (int)n->attr[1];
    int64_t shift = n->attr[0];
    split(f, it->p, axis, shift, &lt, &ge);
    for (struct xti_work *p = lt.head; p; p = p->next)
        add_to_coord(p, axis, n->shape[axis] - shift);
    for (struct xti_work *p = ge.head; p; p = p->next)
        add_to_coord(p, axis, -shift);
    push_all(f, &ge, n->arg[0], 0, 0);
    push_all(f, &lt, n->arg[0], 0, 0);
    it->p = NULL;
}

static void enter_arg(struct xti_work *p, const struct xti_node *n, int64_t base)
{
    int axis = (int)n->attr[0];
    if (n->op == XT_OP_STACK)
        drop_coords(p, axis, 1);
    else
        add_to_coord(p, axis, -base);
}

/* Enters a run of equal operands of a concat at once, where the coordinate splits into operand and place
 * without a floor: a part that is doubled again and again stays one piece. True: *pp has been exchanged. */
static bool enter_run(struct xti_work **pp, const struct xti_node *n, int64_t base, int run, int64_t size)
{
    struct xti_work *p = xti_work_copy(*pp);
    struct xti_works whole = {0};
    int axis = (int)n->attr[0];
    int64_t joined[XTI_COORDS], split[XTI_COORDS];
    if (!p)
        return false;
    for (int i = 0; i < n->rank; i++)
        joined[i] = split[i + (i > axis)] = n->shape[i];
    joined[axis] = run * size;
    split[axis] = run;
    split[axis + 1] = size;
    add_to_coord(p, axis, -base);
    xti_work_reshape(p, n->rank, joined, n->rank + 1, split, false, false);
    drop_coords(p, axis, 1);
    p->probe = (short)xti_row_share(p, p->coord[axis]);
    xti_work_resolve(p, 1, &whole);
    p = xti_works_pop(&whole);
    xti_row_drop(p, p->probe);
    p->probe = -1;
    bool done = !p->pool->st && p->n_divs <= (*pp)->n_divs;
    xti_work_free(done ? *pp : p);
    *pp = done ? p : *pp;
    return done;
}

/* Cuts p at index `end` of the node's axis; what lies behind waits on the stack for operand k. */
static void keep_front(struct xti_fuser *f, const struct xti_item *it, struct xti_work *p, int k, int64_t end,
                       struct xti_works *front)
{
    const struct xti_node *n = node_of(f, it->node);
    struct xti_works ge = {0};
    if (end == n->shape[n->attr[0]])
        xti_works_add(front, p);
    else
        split(f, p, (int)n->attr[0], end, front, &ge);
    push_all(f, &ge, it->node, k, end);
}

/* Takes what the next operand gives, or a run of equal ones. */
static void pull_join(struct xti_fuser *f, struct xti_item *it, const struct xti_node *n)
{
    struct xti_works some = {0}, one = {0};
    bool stack = n->op == XT_OP_STACK;
    int axis = (int)n->attr[0], k = it->arg, run = 1;
    while (!stack && node_of(f, n->arg[k])->shape[axis] == 0)
        k++;
    int64_t size = stack ? 1 : node_of(f, n->arg[k])->shape[axis];
    while (k + run < n->n_args && n->arg[k + run] == n->arg[k])
        run++;
    keep_front(f, it, it->p, k + run, it->base + run * size, &some);
    while (some.head) {
        struct xti_work *p = xti_works_pop(&some);
        if (!stack && run > 1 && enter_run(&p, n, it->base, run, size))
            xti_fuser_push(f, n->arg[k], 0, 0, p);
        else if (!stack && run > 1)
            keep_front(f, it, p, k + 1, it->base + size, &one);
        else
            xti_works_add(&one, p);
    }
    for (struct xti_work *p = one.head; p; p = p->next)
        enter_arg(p, n, it->base);
    push_all(f, &one, n->arg[k], 0, 0);
    it->p = NULL;
}

static void pull_input(struct xti_fuser *f, struct xti_item *it, const struct xti_node *n)
{
    xti_fuser_emit_load(f, it->p, n);
    it->p = NULL;
}

/* ---- the table */

typedef void choose_fn(struct xti_fuser *f, struct xti_item *it, const struct xti_node *n);
typedef void digits_fn(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg,
                       bool remember);

static void pull_reshape(struct xti_work *p, const struct xti_node *n, const struct xti_node *arg,
                         bool remember)
{
    xti_work_reshape(p, n->rank, n->shape, arg->rank, arg->shape, remember, true);
}

static const struct pull {
    rewrite_fn *rewrite;
    digits_fn *digits;
    choose_fn *choose;
} pull[] = {
    [XT_OP_INPUT] = {.choose = pull_input},
    [XT_OP_PERMUTE] = {.rewrite = pull_permute},
    [XT_OP_RESHAPE] = {.digits = pull_reshape},
    [XT_OP_SQUEEZE] = {.rewrite = pull_squeeze},
    [XT_OP_UNSQUEEZE] = {.rewrite = pull_unsqueeze},
    [XT_OP_INDEX] = {.rewrite = pull_index},
    [XT_OP_FLIP] = {.rewrite = pull_flip},
    [XT_OP_EXPAND] = {.rewrite = pull_expand},
    [XT_OP_TILE] = {.digits = pull_tile},
    [XT_OP_REPEAT] = {.digits = pull_repeat},
    [XT_OP_ROLL] = {.choose = pull_roll},
    [XT_OP_DIAGONAL] = {.rewrite = pull_diagonal},
    [XT_OP_UNFOLD] = {.rewrite = pull_unfold},
    [XT_OP_PAD] = {.choose = pull_pad},
    [XT_OP_TRIL] = {.choose = pull_triangle},
    [XT_OP_TRIU] = {.choose = pull_triangle},
    [XT_OP_CONCAT] = {.choose = pull_join},
    [XT_OP_STACK] = {.choose = pull_join},
};

/* False: the node has no elements, so that no point of the piece can be real (its guards exclude each other).
 */
static bool visit(struct xti_work *p, const struct xti_node *n)
{
    for (int i = 0; i < n->rank; i++) {
        if (n->shape[i] == 0)
            return false;
        if (n->shape[i] == 1) {
            xti_row_drop(p, p->coord[i]);
            p->coord[i] = XTI_ROW_ZERO;
        }
    }
    return true;
}

/* Digits are remembered for the reshapes below. */
static void pull_digits(struct xti_fuser *f, struct xti_work *p, const struct pull *how,
                        const struct xti_node *n, xt_node node)
{
    bool remember = f->remember && f->remember[node];
    how->digits(p, n, node_of(f, n->arg[0]), remember);
    if (!remember)
        xti_known_forget(p);
}

void xti_fuser_pull(struct xti_fuser *f, struct xti_item it)
{
    while (it.p && !f->pool.st) {
        const struct xti_node *n = node_of(f, it.node);
        const struct pull *how = &pull[n->op];
        f->at = it.node;
        xti_pool_steps(&f->pool, XTI_NODE_STEPS);
        if (!visit(it.p, n))
            break;
        if (how->choose) {
            how->choose(f, &it, n);
            continue;
        }
        if (how->rewrite)
            how->rewrite(it.p, n, node_of(f, n->arg[0]));
        else
            pull_digits(f, it.p, how, n, it.node);
        it.node = n->arg[0];
        it.arg = 0;
        it.base = 0;
    }
    xti_work_free(it.p);
}
