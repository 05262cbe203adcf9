/* map.c: fuses a graph to its index map: starts with one box over the output, pulls pieces back until every
 * one has reached an input or a fill, merges what merges. Layer 2. */
#include "map/fuse.h"

#include <string.h>

enum { MANY_PIECES = 64, FIRST_PIECES = 4, FIRST_ITEMS = 16, MERGE_STEPS = 256 /* a piece */ };
enum { RESHAPE_COLS = 8 }; /* for its divs */

/* With pages always the same: what becomes of one page must not depend on whether others are wanted. */
int xti_fuser_room(const struct xti_fuser *f)
{
    return f->m->n_pieces + f->n_stack > MANY_PIECES && !f->opt.page ? 2 : f->opt.guard_boxes;
}

static int most_pieces(const struct xti_fuser *f)
{
    return f->opt.page ? XTI_MAX_PAGE_PIECES : XTI_MAX_PIECES;
}

static void fail_pieces(struct xti_fuser *f)
{
    xti_pool_fail(&f->pool, xti_fail_at(f->err, XT_EUNSUPPORTED, f->at, -1,
                                        "this chain falls into more than %d pieces", most_pieces(f)));
}

void xti_fuser_push(struct xti_fuser *f, xt_node node, int arg, int64_t base, struct xti_work *p)
{
    if (f->n_stack == most_pieces(f))
        fail_pieces(f);
    if (f->n_stack == f->cap_stack && !f->pool.st) {
        int cap = 2 * f->cap_stack;
        bool lent = f->stack == f->lent;
        struct xti_item *s = xti_realloc(lent ? NULL : f->stack, (size_t)cap * sizeof *s);
        if (s) {
            if (lent && f->n_stack)
                memcpy(s, f->stack, (size_t)f->n_stack * sizeof *s);
            f->stack = s;
            f->cap_stack = cap;
        } else {
            xti_pool_fail(&f->pool, XT_ENOMEM);
        }
    }
    if (f->pool.st)
        xti_work_free(p);
    else
        f->stack[f->n_stack++] = (struct xti_item){node, arg, base, p};
}

/* Room for one more finished piece. When the list is full, what merges is merged. */
static struct xti_piece *new_piece(struct xti_fuser *f)
{
    struct xti_map *m = f->m;
    if (m->n_pieces == most_pieces(f) && f->opt.page)
        fail_pieces(f);
    else if (m->n_pieces == most_pieces(f)) {
        xt_status s = xti_map_merge(m, false, f->err);
        xti_pool_steps(&f->pool, MERGE_STEPS * XTI_MAX_PIECES);
        if (s)
            xti_pool_fail(&f->pool, s);
        else if (m->n_pieces > XTI_MAX_PIECES - XTI_MAX_PIECES / 4)
            fail_pieces(f);
    }
    if (m->n_pieces == f->cap_pieces && !f->pool.st) {
        int cap = 4 * f->cap_pieces;
        struct xti_piece *v = xti_arena_alloc(&m->arena, (size_t)cap * sizeof *v);
        if (!v) {
            xti_pool_fail(&f->pool, XT_ENOMEM);
            return NULL;
        }
        memcpy(v, m->piece, (size_t)m->n_pieces * sizeof *v);
        m->piece = v;
        f->cap_pieces = cap;
    }
    if (f->pool.st)
        return NULL;
    memset(&m->piece[m->n_pieces], 0, sizeof *m->piece);
    return &m->piece[m->n_pieces];
}

static void emit(struct xti_fuser *f, struct xti_work *p, int src, const unsigned char *value)
{
    struct xti_works boxes = {0};
    xti_work_forget(p);
    if (p->n_divs)
        xti_work_resolve(p, f->opt.div_boxes, &boxes);
    else
        xti_works_add(&boxes, p);
    while (boxes.head) {
        struct xti_work *s = xti_works_pop(&boxes);
        struct xti_piece *out = !f->pool.st && xti_work_guards(s) ? new_piece(f) : NULL;
        if (out) {
            out->src = src;
            if (value)
                memcpy(out->value, value, (size_t)f->m->esize);
            xti_work_finish(s, f->m, out);
            f->m->n_pieces++;
        }
        xti_work_free(s);
    }
}

void xti_fuser_emit_fill(struct xti_fuser *f, struct xti_work *p, const unsigned char *value)
{
    p->off = -1;
    if (f->opt.only)
        xti_work_free(p);
    else
        emit(f, p, -1, value);
}

static void widen_reads(struct xti_map *m, int src, int64_t lo, int64_t hi)
{
    int64_t *src_lo = &m->src_lo[src], *src_hi = &m->src_hi[src];
    bool first = *src_hi < *src_lo;
    *src_lo = first || lo < *src_lo ? lo : *src_lo;
    *src_hi = first || hi > *src_hi ? hi : *src_hi;
}

/* Widens the source's bounds by what p reads, which may not become affine: the leaf's span bounds it, and so
 * does the address row. */
static void note_read(struct xti_fuser *f, const struct xti_work *p, const struct xti_node *n)
{
    struct xti_map *m = f->m;
    int64_t lo, hi, l, h;
    if (!xti_span(n->rank, n->shape, n->strides, n->offset, &lo, &hi)) {
        xti_pool_fail(&f->pool, XT_EOVERFLOW);
        return;
    }
    if (xti_work_range(p, xti_row(p, p->off), &l, &h)) {
        lo = l > lo ? l : lo;
        hi = h < hi ? h : hi;
    }
    widen_reads(m, n->input, lo, hi);
}

static bool is_wanted(const struct xti_fuser *f, int input, int64_t lo, int64_t hi)
{
    const int64_t *only = f->opt.only;
    return lo <= hi && (!only || (lo <= only[input] && only[input] <= hi));
}

/* Emits p, which reads pages lo to hi of its input, page by page. As deep as hi - lo has bits. */
static void emit_between(struct xti_fuser *f, struct xti_work *p, int input, int64_t lo, int64_t hi)
{
    struct xti_works lt = {0}, ge = {0};
    int64_t l, h, page = f->opt.page;
    if (!f->pool.st && xti_work_range(p, xti_row(p, p->off), &l, &h)) {
        l = xti_floor_div(l, page);
        h = xti_floor_div(h, page);
        lo = l > lo ? l : lo;
        hi = h < hi ? h : hi;
    }
    if (f->pool.st || !is_wanted(f, input, lo, hi)) {
        xti_work_free(p);
        return;
    }
    if (lo == hi) {
        p->off = (short)xti_row_own(p, p->off);
        xti_row_add_const(p, p->off, -lo * page);
        emit(f, p, input + f->m->n_srcs * (int)lo, NULL);
        return;
    }
    int64_t mid = lo + (hi - lo) / 2 + 1;
    bool low = !f->opt.only || f->opt.only[input] < mid, high = !f->opt.only || f->opt.only[input] >= mid;
    xti_work_side(p, xti_row_share(p, p->off), mid * page, f->opt.guard_boxes, low ? &lt : NULL,
                  high ? &ge : NULL);
    while (lt.head)
        emit_between(f, xti_works_pop(&lt), input, lo, mid - 1);
    while (ge.head)
        emit_between(f, xti_works_pop(&ge), input, mid, hi);
}

static void emit_pages(struct xti_fuser *f, struct xti_work *p, const struct xti_node *n)
{
    int64_t lo, hi;
    xti_work_forget(p);
    if (!xti_span(n->rank, n->shape, n->strides, n->offset, &lo, &hi))
        xti_pool_fail(&f->pool, XT_EOVERFLOW);
    emit_between(f, p, n->input, xti_floor_div(lo, f->opt.page), xti_floor_div(hi, f->opt.page));
}

void xti_fuser_emit_load(struct xti_fuser *f, struct xti_work *p, const struct xti_node *n)
{
    int r = xti_row_new(p);
    xti_row(p, r)[0] = n->offset;
    for (int i = 0; i < n->rank; i++)
        if (n->shape[i] != 1)
            xti_row_add(p->pool, p->nc, xti_row(p, r), n->strides[i], xti_row(p, p->coord[i]));
    p->off = (short)r;
    if (f->opt.page) {
        emit_pages(f, p, n);
        return;
    }
    if (p->n_divs || p->n_guards)
        note_read(f, p, n);
    emit(f, p, n->input, NULL);
}

/* One box over the output, its coordinates its dims. */
static struct xti_work *start(struct xti_fuser *f)
{
    const struct xti_node *n = &f->g->node[f->g->out];
    struct xti_work *p = xti_work_new(&f->pool, n->rank, n->rank + 2 + (f->n_reshapes ? RESHAPE_COLS : 0));
    if (!p)
        return NULL;
    xti_row(p, XTI_ROW_DST)[0] = f->g->out_offset;
    for (int i = 0; i < n->rank && !f->pool.st; i++) {
        if (n->shape[i] == 1) {
            p->coord[i] = XTI_ROW_ZERO;
            continue;
        }
        int v = xti_dim_new(p, n->shape[i]);
        int r = xti_row_new(p);
        p->coord[i] = (short)r;
        xti_row(p, r)[v] = 1;
        xti_row(p, XTI_ROW_DST)[v] = f->g->out_strides[i];
    }
    p->n_coords = (short)n->rank;
    return p;
}

static bool is_reshape(enum xt_op op)
{
    return op == XT_OP_RESHAPE || op == XT_OP_TILE || op == XT_OP_REPEAT;
}

/* Marks the nodes with a reshape below them: only there is it worth to remember digits. */
static void mark_reshapes(struct xti_fuser *f)
{
    for (int i = 0; i <= f->g->out; i++)
        f->n_reshapes += is_reshape(f->g->node[i].op);
    if (f->n_reshapes < 2)
        return;
    f->remember = xti_alloc((size_t)f->g->n_nodes);
    if (!f->remember) {
        xti_pool_fail(&f->pool, XT_ENOMEM);
        return;
    }
    for (int i = 0; i <= f->g->out; i++)
        for (int k = 0; k < f->g->node[i].n_args; k++) {
            xt_node x = f->g->node[i].arg[k];
            f->remember[i] |= is_reshape(f->g->node[x].op) || f->remember[x];
        }
}

static xt_status check_output(const struct xt_graph *g, struct xti_map *m, struct xti_err *err)
{
    const struct xti_node *n = &g->node[g->out];
    if (!xti_product(n->rank, n->shape, &m->numel))
        return xti_fail_at(err, XT_EOVERFLOW, g->out, -1, "the output has more than 2^63 - 1 elements");
    if (m->numel == 0)
        return XT_OK;
    if (!xti_span(n->rank, n->shape, g->out_strides, g->out_offset, &m->dst_lo, &m->dst_hi))
        return xti_fail_at(err, XT_EOVERFLOW, g->out, -1, "the output's addresses do not fit in 63 bits");
    return XT_OK;
}

static xt_status prepare(const struct xt_graph *g, struct xti_map *m, struct xti_err *err)
{
    if (g->out < 0)
        return xti_fail(err, XT_EINVAL, "the graph has no output: call xt_output");
    m->esize = (int)xt_dtype_bytes(g->node[g->out].dtype);
    m->n_srcs = g->n_inputs;
    m->dst_hi = -1;
    m->src_lo = xti_arena_alloc(&m->arena, 2 * (size_t)g->n_inputs * sizeof *m->src_lo);
    if (!m->src_lo)
        return xti_fail(err, XT_ENOMEM, "index map");
    m->src_hi = m->src_lo + g->n_inputs;
    for (int i = 0; i < g->n_inputs; i++)
        m->src_hi[i] = -1;
    return check_output(g, m, err);
}

static xt_status report(struct xti_fuser *f)
{
    switch (f->pool.st) {
    case XT_OK:
        return XT_OK;
    case XT_EOVERFLOW:
        return xti_fail_at(f->err, XT_EOVERFLOW, f->at, -1,
                           "an index of the fused chain does not fit in 64 bits");
    case XT_EUNSUPPORTED:
        if (f->pool.steps > XTI_MAX_STEPS || f->pool.bytes > XTI_MAX_WORK_BYTES)
            return xti_fail_at(f->err, XT_EUNSUPPORTED, f->at, -1,
                               "fusing this chain takes more than %d million steps or %d MiB: it uses parts "
                               "again that each fall into several pieces",
                               XTI_MAX_STEPS >> 20, XTI_MAX_WORK_BYTES >> 20);
        return xti_fail_at(
            f->err, XT_EUNSUPPORTED, f->at, -1,
            "one piece of this chain needs more than %d floors of unlike reshapes, or %d guards",
            XTI_MAX_DIVS, XTI_MAX_GUARDS);
    default:
        return xti_fail(f->err, f->pool.st, "fusing the chain");
    }
}

/* The bounds of affine pieces are those of their boxes; where a source is read by no others, what note_read
 * knew before the divs were resolved is forgotten. */
static xt_status tighten_reads(struct xti_map *m, struct xti_err *err)
{
    bool *loose = xti_arena_alloc(&m->arena, (size_t)m->n_srcs * sizeof *loose);
    if (!loose)
        return xti_fail(err, XT_ENOMEM, "index map");
    for (int i = 0; i < m->n_pieces; i++)
        if (m->piece[i].src >= 0 && !xti_piece_affine(&m->piece[i]))
            loose[m->piece[i].src] = true;
    for (int i = 0; i < m->n_srcs; i++)
        if (!loose[i])
            m->src_lo[i] = 0, m->src_hi[i] = -1;
    for (int i = 0; i < m->n_pieces; i++) {
        const struct xti_piece *p = &m->piece[i];
        int64_t lo = p->soff, hi = p->soff;
        if (p->src < 0 || !xti_piece_affine(p))
            continue;
        for (int k = 0; k < p->n_dims; k++)
            *(p->dim[k].s < 0 ? &lo : &hi) += (p->dim[k].n - 1) * p->dim[k].s;
        widen_reads(m, p->src, lo, hi);
    }
    return XT_OK;
}

/* Few pieces begin in memory that is not the map's. */
static xt_status keep_pieces(struct xti_map *m, struct xti_err *err)
{
    m->piece = xti_arena_dup(&m->arena, m->piece, (size_t)m->n_pieces * sizeof *m->piece);
    return m->piece ? XT_OK : xti_fail(err, XT_ENOMEM, "index map");
}

static xt_status run(struct xti_fuser *f)
{
    struct xti_first_work first;
    struct xti_item items[FIRST_ITEMS];
    struct xti_piece pieces[FIRST_PIECES];
    if (f->opt.spare)
        f->pool.spare = *f->opt.spare;
    xti_pool_lend(&f->pool, &first);
    f->pool.guard_windows = f->opt.guard_windows;
    f->stack = f->lent = items;
    f->cap_stack = FIRST_ITEMS;
    f->m->piece = pieces;
    f->cap_pieces = FIRST_PIECES;
    mark_reshapes(f);
    f->at = f->g->out;
    if (!f->pool.st)
        xti_fuser_push(f, f->g->out, 0, 0, start(f));
    while (f->n_stack) {
        struct xti_item it = f->stack[--f->n_stack];
        xti_fuser_pull(f, it); /* frees it at once after a failure */
    }
    xt_status s = report(f);
    f->m->cut_windows = f->pool.cut_windows;
    if (!s)
        s = xti_map_merge(f->m, f->opt.page, f->err);
    if (!s && f->m->piece == pieces)
        s = keep_pieces(f->m, f->err);
    if (!s && !f->opt.page)
        s = tighten_reads(f->m, f->err);
    if (f->opt.spare)
        *f->opt.spare = xti_pool_leave(&f->pool);
    else
        xti_pool_free(&f->pool);
    if (f->stack != f->lent)
        xti_free(f->stack);
    xti_free(f->remember);
    return s;
}

/* *steps: taken so far, of XTI_MAX_STEPS. */
static xt_status fuse(const struct xt_graph *g, const struct xti_fuse_options *opt, int *steps,
                      struct xti_map *m, struct xti_err *err)
{
    struct xti_fuser f = {.g = g, .m = m, .err = err, .opt = *opt, .pool.steps = *steps};
    if (!f.opt.div_boxes)
        f.opt.div_boxes = 1;
    if (!f.opt.guard_boxes)
        f.opt.guard_boxes = 16;
    memset(m, 0, sizeof *m);
    xt_status s = prepare(g, m, err);
    if (!s && m->numel)
        s = run(&f);
    if (s)
        xti_map_free(m);
    *steps = f.pool.steps;
    return s;
}

static bool has_divs(const struct xti_map *m)
{
    bool divs = false;
    for (int i = 0; i < m->n_pieces; i++)
        divs |= m->piece[i].n_divs > 0;
    return divs;
}

xt_status xti_map_fuse(const struct xt_graph *g, const struct xti_fuse_options *opt, struct xti_map *m,
                       struct xti_err *err)
{
    enum { BOXES = 8 }; /* most chains that have divs need two to four for each */
    struct xti_fuse_options o = opt ? *opt : (struct xti_fuse_options){0};
    struct xti_map boxes;
    int steps = 0; /* of both */
    xt_status s = fuse(g, &o, &steps, m, err);
    if (s || o.div_boxes || !has_divs(m))
        return s;
    o.div_boxes = BOXES;
    if (fuse(g, &o, &steps, &boxes, NULL))
        return XT_OK;
    if (!has_divs(&boxes)) {
        xti_map_free(m);
        *m = boxes;
    } else {
        xti_map_free(&boxes);
    }
    return XT_OK;
}

void xti_map_free(struct xti_map *m)
{
    if (!m)
        return;
    xti_arena_free(&m->arena);
    memset(m, 0, sizeof *m);
}
