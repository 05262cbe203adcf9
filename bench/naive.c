/* naive.c: plans the steps of a chain as strided copies between whole temporaries, and runs them. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "strided.h"

/* Buffers: inputs first, then temporaries; DESTINATION is the caller's. */
enum { DESTINATION = -1, MAX_AXES = STRIDED_MAX };

struct view { /* of a buffer, in elements */
    int buffer, rank;
    int64_t offset, n[MAX_AXES], st[MAX_AXES];
};

struct step {
    enum { COPY, FILL, TRIANGLE } kind;
    struct strided copy; /* FILL: source strides 0 */
    int src, dst;
    int64_t soff, doff; /* elements */
    unsigned char value[16];
    int64_t k; /* TRIANGLE: copies a dense matrix batch, value outside */
    bool lower;
};

struct naive {
    const struct xt_graph *g;
    int width, n_inputs, n_temps, n_steps, cap_steps, moves;
    char **temp;
    struct step *step;
    bool failed;
};

static void dense(struct view *v)
{
    int64_t st = 1;
    for (int i = v->rank - 1; i >= 0; i--) {
        v->st[i] = st;
        st *= v->n[i] > 1 ? v->n[i] : 1;
    }
    v->offset = 0;
}

static bool is_dense(const struct view *v)
{
    struct view d = *v;
    dense(&d);
    for (int i = 0; i < v->rank; i++)
        if (v->n[i] > 1 && v->st[i] != d.st[i])
            return false;
    return true;
}

static int64_t numel(const struct view *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->n[i];
    return n;
}

static struct step *add_step(struct naive *v)
{
    if (v->n_steps == v->cap_steps) {
        int cap = v->cap_steps ? 2 * v->cap_steps : 16;
        struct step *more = realloc(v->step, (size_t)cap * sizeof *more);
        if (!more) {
            v->failed = true;
            return NULL;
        }
        v->step = more;
        v->cap_steps = cap;
    }
    memset(&v->step[v->n_steps], 0, sizeof *v->step);
    return &v->step[v->n_steps++];
}

/* Copies view a (or fills, a == NULL) onto view b of the same shape. */
static void copy_view(struct naive *v, const struct view *b, const struct view *a, const void *value)
{
    struct step *s = numel(b) ? add_step(v) : NULL;
    if (!s)
        return;
    s->kind = a ? COPY : FILL;
    s->copy.rank = b->rank;
    s->copy.width = v->width;
    for (int i = 0; i < b->rank; i++) {
        s->copy.n[i] = b->n[i];
        s->copy.s[i] = a ? a->st[i] : 0;
        s->copy.d[i] = b->st[i];
    }
    strided_prepare(&s->copy);
    s->src = a ? a->buffer : 0;
    s->soff = a ? a->offset : 0;
    s->dst = b->buffer;
    s->doff = b->offset;
    if (value)
        memcpy(s->value, value, (size_t)v->width);
}

/* A dense temporary. */
static struct view new_temp(struct naive *v, int rank, const int64_t *shape)
{
    struct view r = {.buffer = v->n_inputs + v->n_temps, .rank = rank};
    memcpy(r.n, shape, (size_t)rank * sizeof *r.n);
    dense(&r);
    size_t bytes = (size_t)numel(&r) * (size_t)v->width;
    char **more = realloc(v->temp, (size_t)(v->n_temps + 1) * sizeof *more);
    char *p = more ? bench_buffer(bytes) : NULL;
    v->temp = more ? more : v->temp;
    v->failed |= !p;
    if (p)
        v->temp[v->n_temps++] = memset(p, 1, bytes); /* pages are there before the clock runs */
    return r;
}

static void insert_axis(struct view *a, int at, int64_t n, int64_t st)
{
    memmove(a->n + at + 1, a->n + at, (size_t)(a->rank - at) * sizeof *a->n);
    memmove(a->st + at + 1, a->st + at, (size_t)(a->rank - at) * sizeof *a->st);
    a->n[at] = n, a->st[at] = st;
    a->rank++;
}

static void remove_axis(struct view *a, int at)
{
    memmove(a->n + at, a->n + at + 1, (size_t)(a->rank - at - 1) * sizeof *a->n);
    memmove(a->st + at, a->st + at + 1, (size_t)(a->rank - at - 1) * sizeof *a->st);
    a->rank--;
}

static void index_view(struct view *a, const struct xt_node_info *f)
{
    int axis = 0;
    for (int i = 0; i + 3 < f->n_attrs; i += 4) {
        if (f->attrs[i] == XT_NEWAXIS) {
            insert_axis(a, axis++, 1, 0);
            continue;
        }
        a->offset += f->attrs[i + 1] * a->st[axis];
        if (f->attrs[i] == XT_AT) {
            remove_axis(a, axis);
        } else {
            a->n[axis] = f->attrs[i + 2];
            a->st[axis++] *= f->attrs[i + 3];
        }
    }
}

static void diagonal_view(struct view *a, int64_t offset, int p, int q, int64_t n)
{
    if (n > 0)
        a->offset += offset >= 0 ? offset * a->st[q] : -offset * a->st[p];
    int64_t st = a->st[p] + a->st[q];
    remove_axis(a, p > q ? p : q);
    remove_axis(a, p > q ? q : p);
    insert_axis(a, a->rank, n, st);
}

static void permute_view(struct view *a, const int64_t *axes)
{
    struct view old = *a;
    for (int i = 0; i < a->rank; i++) {
        a->n[i] = old.n[axes[i]];
        a->st[i] = old.st[axes[i]];
    }
}

static void expand_view(struct view *a, const struct xt_node_info *f)
{
    while (a->rank < f->rank)
        insert_axis(a, 0, 1, 0);
    for (int i = 0; i < f->rank; i++)
        if (a->n[i] != f->shape[i]) {
            a->n[i] = f->shape[i];
            a->st[i] = 0;
        }
}

/* The strided view that an operation is, of its one argument. The view of tile and repeat has more axes than
 * the result; row-major order is the same. */
static void apply_view(struct view *a, const struct xt_node_info *f)
{
    const int64_t *at = f->attrs;
    switch (f->op) {
    case XT_OP_PERMUTE:
        permute_view(a, at);
        break;
    case XT_OP_EXPAND:
        expand_view(a, f);
        break;
    case XT_OP_INDEX:
        index_view(a, f);
        break;
    case XT_OP_FLIP:
        for (int i = 0; i < f->n_attrs; i++) {
            a->offset += (a->n[at[i]] - 1) * a->st[at[i]];
            a->st[at[i]] = -a->st[at[i]];
        }
        break;
    case XT_OP_TILE:
        while (a->rank < f->rank)
            insert_axis(a, 0, 1, 0);
        for (int i = f->rank - 1; i >= 0; i--)
            insert_axis(a, i, at[i], 0);
        break;
    case XT_OP_REPEAT:
        insert_axis(a, (int)at[1] + 1, at[0], 0);
        break;
    case XT_OP_DIAGONAL:
        diagonal_view(a, at[0], (int)at[1], (int)at[2], f->shape[f->rank - 1]);
        break;
    case XT_OP_UNFOLD:
        insert_axis(a, a->rank, at[1], a->st[at[0]]);
        a->n[at[0]] = f->shape[at[0]];
        a->st[at[0]] *= at[2];
        break;
    default:
        break;
    }
}

/* Part [lo, lo+n) of an axis. */
static struct view part(const struct view *a, int axis, int64_t lo, int64_t n)
{
    struct view r = *a;
    r.offset += lo * a->st[axis];
    r.n[axis] = n;
    return r;
}

/* r with the axes of `like`, which split r's axes (and add axes of 1): strides of the parts. */
static struct view split_like(const struct view *r, const struct view *like)
{
    struct view out = {.buffer = r->buffer, .offset = r->offset, .rank = like->rank};
    int j = like->rank - 1;
    memcpy(out.n, like->n, sizeof out.n);
    for (int i = r->rank - 1; i >= 0; i--)
        for (int64_t n = 1; j >= 0 && n < r->n[i]; n *= like->n[j--])
            out.st[j] = r->st[i] * n;
    return out;
}

static void pad_steps(struct naive *v, const struct view *r, const struct view *a,
                      const struct xt_node_info *f)
{
    struct view inner = *r;
    for (int i = 0; i < r->rank; i++) {
        int64_t lo = f->attrs[2 * i], hi = f->attrs[2 * i + 1];
        struct view edge = part(&inner, i, 0, lo);
        if (lo)
            copy_view(v, &edge, NULL, f->value);
        edge = part(&inner, i, inner.n[i] - hi, hi);
        if (hi)
            copy_view(v, &edge, NULL, f->value);
        inner = part(&inner, i, lo, inner.n[i] - lo - hi);
    }
    copy_view(v, &inner, a, NULL);
}

static void roll_steps(struct naive *v, const struct view *r, const struct view *a, int64_t shift, int axis)
{
    struct view from = part(a, axis, a->n[axis] - shift, shift), to = part(r, axis, 0, shift);
    copy_view(v, &to, &from, NULL);
    from = part(a, axis, 0, a->n[axis] - shift);
    to = part(r, axis, shift, a->n[axis] - shift);
    copy_view(v, &to, &from, NULL);
}

/* The whole batch copied, then the dropped triangle filled row by row. */
static void triangle_steps(struct naive *v, const struct view *r, const struct view *a,
                           const struct xt_node_info *f)
{
    copy_view(v, r, a, NULL);
    struct step *s = numel(r) ? add_step(v) : NULL;
    if (!s)
        return;
    s->kind = TRIANGLE;
    s->copy.rank = r->rank;
    s->copy.width = v->width;
    for (int i = 0; i < r->rank; i++) {
        s->copy.n[i] = r->n[i];
        s->copy.d[i] = r->st[i];
    }
    s->dst = r->buffer;
    s->doff = r->offset;
    s->k = f->attrs[0];
    s->lower = f->op == XT_OP_TRIL;
    memcpy(s->value, f->value, (size_t)v->width);
}

static void join_steps(struct naive *v, const struct view *r, const struct xt_node_info *f,
                       const struct view *values)
{
    int axis = (int)f->attrs[0];
    int64_t lo = 0;
    for (int i = 0; i < f->n_args; i++) {
        struct view a = values[f->args[i]];
        if (f->op == XT_OP_STACK)
            insert_axis(&a, axis, 1, 0);
        struct view to = part(r, axis, lo, a.n[axis]);
        copy_view(v, &to, &a, NULL);
        lo += a.n[axis];
    }
}

static bool is_metadata(enum xt_op op)
{
    return op == XT_OP_RESHAPE || op == XT_OP_SQUEEZE || op == XT_OP_UNSQUEEZE;
}

/* Dense data seen in another shape of as many elements. */
static struct view reshaped(const struct view *a, int rank, const int64_t *shape)
{
    struct view r = *a;
    r.rank = rank;
    memcpy(r.n, shape, (size_t)rank * sizeof *r.n);
    dense(&r);
    r.offset = a->offset;
    return r;
}

/* One moving step, its result written to r. */
static void move_steps(struct naive *v, const struct xt_node_info *f, const struct view *values,
                       const struct view *r)
{
    struct view a = values[f->args[0]], to;
    v->moves++;
    switch (f->op) {
    case XT_OP_RESHAPE:
    case XT_OP_SQUEEZE:
    case XT_OP_UNSQUEEZE: /* of an input with a layout: r is dense */
        to = reshaped(r, a.rank, a.n);
        copy_view(v, &to, &a, NULL);
        break;
    case XT_OP_PAD:
        pad_steps(v, r, &a, f);
        break;
    case XT_OP_ROLL:
        roll_steps(v, r, &a, f->attrs[0], (int)f->attrs[1]);
        break;
    case XT_OP_TRIL:
    case XT_OP_TRIU:
        triangle_steps(v, r, &a, f);
        break;
    case XT_OP_CONCAT:
    case XT_OP_STACK:
        join_steps(v, r, f, values);
        break;
    default:
        apply_view(&a, f);
        to = a.rank == r->rank ? *r : split_like(r, &a);
        copy_view(v, &to, &a, NULL);
    }
}

static void mark_used(const struct xt_graph *g, xt_node out, bool *used)
{
    used[out] = true;
    for (xt_node i = out; i >= 0; i--) {
        struct xt_node_info f = {.size = sizeof f};
        if (!used[i] || xt_node_get(g, i, &f))
            continue;
        for (int j = 0; j < f.n_args; j++)
            used[f.args[j]] = true;
    }
}

static bool get_destination(const struct xt_graph *g, struct view *r, struct xt_output_info *o)
{
    struct xt_node_info f = {.size = sizeof f};
    if (xt_output_get(g, o) || xt_node_get(g, o->node, &f))
        return false;
    *r = (struct view){.buffer = DESTINATION, .rank = f.rank, .offset = o->offset};
    memcpy(r->n, f.shape, (size_t)f.rank * sizeof *r->n);
    memcpy(r->st, o->strides, (size_t)f.rank * sizeof *r->st);
    return true;
}

/* The node whose step writes the destination itself: the result, or what the result is another shape of when
 * the destination is dense. An input, or a reshape into a layout, is copied once more at the end: it is none
 * (-1). */
static xt_node writer(const struct xt_graph *g, const struct xt_output_info *o)
{
    xt_node x = o->node;
    for (;;) {
        struct xt_node_info f = {.size = sizeof f}, arg = {.size = sizeof arg};
        if (xt_node_get(g, x, &f) || f.op == XT_OP_INPUT || (is_metadata(f.op) && !o->dense))
            return -1;
        if (!is_metadata(f.op) || xt_node_get(g, f.args[0], &arg) || (arg.op == XT_OP_INPUT && !arg.dense))
            return x;
        x = f.args[0];
    }
}

static struct view input_view(const struct xt_node_info *f)
{
    struct view a = {.buffer = f->input, .rank = f->rank, .offset = f->offset};
    memcpy(a.n, f->shape, (size_t)f->rank * sizeof *a.n);
    memcpy(a.st, f->strides, (size_t)f->rank * sizeof *a.st);
    return a;
}

static void plan(struct naive *v, struct view *values, bool *used)
{
    struct xt_output_info o = {.size = sizeof o};
    struct xt_node_info f = {.size = sizeof f};
    struct view r;
    if (!get_destination(v->g, &r, &o)) {
        v->failed = true;
        return;
    }
    mark_used(v->g, o.node, used);
    xt_node last = writer(v->g, &o), end = last < 0 ? o.node : last;
    for (xt_node i = 0; i <= end && !v->failed; i++) {
        if (!used[i] || xt_node_get(v->g, i, &f))
            continue;
        v->width = (int)xt_dtype_bytes(f.dtype);
        if (f.op == XT_OP_INPUT) {
            values[i] = input_view(&f);
        } else if (i != last && is_metadata(f.op) && is_dense(&values[f.args[0]])) {
            values[i] = reshaped(&values[f.args[0]], f.rank, f.shape);
        } else {
            values[i] = i == last ? reshaped(&r, f.rank, f.shape) : new_temp(v, f.rank, f.shape);
            if (i == last && i == o.node)
                values[i] = r; /* in its layout */
            move_steps(v, &f, values, &values[i]);
        }
    }
    if (last < 0 && !v->failed) {
        v->moves++;
        copy_view(v, &r, &values[o.node], NULL);
    }
}

struct naive *naive_new(const struct xt_graph *g)
{
    struct naive *v = calloc(1, sizeof *v);
    size_t n = (size_t)xt_node_count(g);
    struct view *values = calloc(n, sizeof *values);
    bool *used = calloc(n, sizeof *used);
    if (v && values && used) {
        v->g = g;
        v->n_inputs = xt_input_count(g);
        plan(v, values, used);
    }
    free(values);
    free(used);
    if (v && (v->failed || !v->width)) {
        naive_free(v);
        v = NULL;
    }
    return v;
}

int naive_steps(const struct naive *v) { return v->moves; }

bool naive_as_copy(const struct naive *v, struct strided *copy, int64_t *src_offset, int64_t *dst_offset)
{
    const struct step *s = v->step;
    if (v->n_steps != 1 || s->kind != COPY || s->src != 0 || s->dst != DESTINATION)
        return false;
    *copy = s->copy;
    *src_offset = s->soff;
    *dst_offset = s->doff;
    return true;
}

int64_t naive_bytes(const struct naive *v)
{
    int64_t bytes = 0;
    for (int i = 0; i < v->n_steps; i++) {
        int64_t n = v->step[i].kind == TRIANGLE ? 0 : v->width; /* a triangle is written once already */
        for (int j = 0; j < v->step[i].copy.rank; j++)
            n *= v->step[i].copy.n[j];
        bytes += v->step[i].kind == COPY ? 2 * n : n;
    }
    return bytes;
}

static void fill_row(char *dst, int64_t st, int64_t n, const unsigned char *value, int width)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(dst + i * st, value, (size_t)width);
}

static void fill(const struct step *s, char *dst)
{
    unsigned char first = s->value[0];
    bool same = true;
    for (int i = 1; i < s->copy.width; i++)
        same &= s->value[i] == first;
    int inner = s->copy.rank - 1;
    if (same && s->copy.d[inner] == 1) { /* rows by memset */
        struct strided rows = s->copy;
        int64_t x[STRIDED_MAX] = {0}, off = 0;
        for (;;) {
            memset(dst + off * rows.width, first, (size_t)(rows.n[inner] * rows.width));
            int i = inner - 1;
            for (; i >= 0; i--) {
                off += rows.d[i];
                if (++x[i] < rows.n[i])
                    break;
                off -= rows.d[i] * rows.n[i];
                x[i] = 0;
            }
            if (i < 0)
                return;
        }
    }
    strided_copy(&s->copy, dst, (const char *)s->value);
}

static void triangle(const struct step *s, char *dst)
{
    int r = s->copy.rank, w = s->copy.width;
    int64_t rows = s->copy.n[r - 2], cols = s->copy.n[r - 1], x[STRIDED_MAX] = {0};
    for (;;) {
        for (int64_t i = 0; i < rows; i++) {
            int64_t cut =
                i + s->k + (s->lower ? 1 : 0); /* lower: columns from cut on are dropped; upper: before */
            cut = cut < 0 ? 0 : cut > cols ? cols : cut;
            char *row = dst + i * s->copy.d[r - 2] * w;
            int64_t at = s->lower ? cut : 0, n = s->lower ? cols - cut : cut;
            fill_row(row + at * s->copy.d[r - 1] * w, s->copy.d[r - 1] * w, n, s->value, w);
        }
        int i = r - 3;
        for (; i >= 0; i--) {
            dst += s->copy.d[i] * w;
            if (++x[i] < s->copy.n[i])
                break;
            dst -= s->copy.d[i] * w * s->copy.n[i];
            x[i] = 0;
        }
        if (i < 0)
            return;
    }
}

static char *buffer(const struct naive *v, int i, void *dst, const void *const *srcs)
{
    if (i == DESTINATION)
        return dst;
    return i < v->n_inputs ? (char *)(uintptr_t)srcs[i] : v->temp[i - v->n_inputs];
}

void naive_run(const struct naive *v, void *dst, const void *const *srcs)
{
    for (int i = 0; i < v->n_steps; i++) {
        const struct step *s = &v->step[i];
        char *to = buffer(v, s->dst, dst, srcs) + s->doff * v->width;
        if (s->kind == COPY)
            strided_copy(&s->copy, to, buffer(v, s->src, dst, srcs) + s->soff * v->width);
        else if (s->kind == FILL)
            fill(s, to);
        else
            triangle(s, to);
    }
}

void naive_free(struct naive *v)
{
    if (!v)
        return;
    for (int i = 0; i < v->n_temps; i++)
        free(v->temp[i]);
    free(v->temp);
    free(v->step);
    free(v);
}
