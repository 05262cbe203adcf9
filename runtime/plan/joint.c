/* joint.c: pieces that share the lines of short rows, as those of a tensor with a border or of rows one
 * behind the other, become parts of one buffered step, which puts all of a row together in its buffer. What
 * is left between the rows is filled by steps of its own. Layer 3. */
#include "plan/assemble.h"

#include <string.h>

#include "base/num.h"
#include "plan/buffered.h"
#include "plan/cost.h"

enum {
    ROW_BYTES = 4096, /* of a row at most: a block has some of them */
    FAR_BYTES = 1536  /* from one gap to the next, where they are filled by themselves */
};

/* Rows of `row` elements, dims by d descending. */
struct rows {
    int64_t row, first;
    int n_dims;
    struct xti_dim dim[XTI_MAX_DIMS];
};

/* A piece as a part of rows: the dims of the rows, then those inside of one. */
struct split {
    int n_outer, n_dims;
    struct xti_dim dim[XTI_MAX_DIMS];
};

/* Cuts dims that reach over the end of a row in two. */
static bool split_at(const struct xti_piece *x, int64_t at, int64_t row, struct split *out)
{
    int64_t span = at + 1;
    out->n_outer = out->n_dims = 0;
    for (int i = 0; i < x->n_dims; i++) {
        struct xti_dim d = x->dim[i];
        int64_t each = row / d.d;
        if (d.d < row && d.n > each && each > 1) {
            if (row % d.d || d.n % each || out->n_dims > XTI_MAX_DIMS - 2)
                return false;
            out->dim[out->n_dims++] = (struct xti_dim){d.n / each, d.s * each, row};
            out->n_outer++;
            d.n = each;
        }
        out->n_outer += d.d >= row;
        span += d.d < row ? (d.n - 1) * d.d : 0;
        out->dim[out->n_dims++] = d;
    }
    return span <= row;
}

/* Brings the outer dims into the form of the rows, the innermost first. */
static bool fit(const struct rows *r, const struct split *x, struct xti_dim *dim)
{
    int at = x->n_outer - 1;
    struct xti_dim left = at < 0 ? (struct xti_dim){0} : x->dim[at];
    for (int i = r->n_dims - 1; i >= 0; i--) {
        const struct xti_dim *want = &r->dim[i];
        if (at < 0 || left.d != want->d || left.n % want->n)
            return false;
        dim[i] = (struct xti_dim){want->n, left.s, want->d};
        left = (struct xti_dim){left.n / want->n, xti_mul_most(left.s, want->n), left.d * want->n};
        if (left.n == 1 && --at >= 0)
            left = x->dim[at];
    }
    return at < 0;
}

static int64_t place_in_row(const struct xti_map *m, const struct xti_piece *x, int64_t row)
{
    return (x->doff - m->dst_lo) % row;
}

/* Whether a piece is a part of such rows; then x becomes that. */
static bool is_part(const struct xti_map *m, const struct rows *r, const struct xti_piece *piece,
                    struct split *x)
{
    struct xti_dim outer[XTI_MAX_DIMS];
    int64_t at = place_in_row(m, piece, r->row);
    if (piece->doff - at != r->first || !split_at(piece, at, r->row, x) || !fit(r, x, outer))
        return false;
    int inner = x->n_dims - x->n_outer;
    if (r->n_dims + inner > XTI_MAX_DIMS)
        return false;
    memmove(x->dim + r->n_dims, x->dim + x->n_outer, (size_t)inner * sizeof *outer);
    memcpy(x->dim, outer, (size_t)r->n_dims * sizeof *outer);
    x->n_outer = r->n_dims;
    x->n_dims = r->n_dims + inner;
    return true;
}

/* The rows of which a piece is a part; false: there are none, or what fills one would be in the next. */
static bool rows_of(const struct xti_map *m, const struct xti_piece *piece, int64_t row, struct rows *r)
{
    struct split x;
    int64_t at = place_in_row(m, piece, row), end;
    if (!split_at(piece, at, row, &x))
        return false;
    *r = (struct rows){.row = row, .first = piece->doff - at, .n_dims = x.n_outer};
    memcpy(r->dim, x.dim, (size_t)x.n_outer * sizeof *x.dim);
    end = row;
    for (int i = r->n_dims - 1; i >= 0; i--) {
        if (r->dim[i].d < end)
            return false;
        end += (r->dim[i].n - 1) * r->dim[i].d;
    }
    return r->first + end <= m->dst_hi + 1;
}

/* Calls add for each stretch between the rows: gaps of `n` elements at `at`, in the outer `dims` of the rows,
 * of the last of which the last point has none. Returns false when it does. */
static bool each_gap(const struct xti_map *m, const struct rows *r, void *arg,
                     bool (*add)(void *arg, const struct rows *r, int dims, int64_t at, int64_t n))
{
    int64_t at = r->first, end = r->row;
    bool ok = at == m->dst_lo || add(arg, r, 0, m->dst_lo, at - m->dst_lo);
    for (int i = r->n_dims - 1; i >= 0 && ok; i--) {
        const struct xti_dim *d = &r->dim[i];
        ok = d->d == end || add(arg, r, i + 1, at + end, d->d - end);
        end += (d->n - 1) * d->d;
    }
    return ok && (at + end == m->dst_hi + 1 || add(arg, r, 0, at + end, m->dst_hi + 1 - at - end));
}

static bool is_far(void *arg, const struct rows *r, int dims, int64_t at, int64_t n)
{
    const struct xti_map *m = arg;
    (void)at, (void)n;
    return !dims || r->dim[dims - 1].d * m->esize >= FAR_BYTES;
}

struct gaps {
    struct xti_plan *p;
    struct xti_piece like, *piece;
    int n;
};

static bool add_fill(void *arg, const struct rows *r, int dims, int64_t at, int64_t n)
{
    struct gaps *g = arg;
    struct xti_piece *x = &g->piece[g->n++];
    *x = g->like;
    x->doff = at;
    x->n_dims = 0;
    x->dim = xti_arena_alloc(&g->p->arena, (size_t)(dims + 1) * sizeof *x->dim);
    for (int i = 0; i < dims && x->dim; i++) {
        int64_t points = r->dim[i].n - (i + 1 == dims);
        if (points > 1)
            x->dim[x->n_dims++] = (struct xti_dim){points, 0, r->dim[i].d};
    }
    if (n > 1 && x->dim)
        x->dim[x->n_dims++] = (struct xti_dim){n, 0, 1};
    return x->dim;
}

/* Which pieces read, the one that writes most first; false: too many, or fills of several values. */
static bool list_parts(const struct xti_map *m, struct xti_joint *j, const struct xti_piece **fill)
{
    *fill = NULL;
    for (int i = 0; i < m->n_pieces; i++) {
        const struct xti_piece *x = &m->piece[i];
        if (!xti_piece_affine(x) || (x->src >= 0 && j->n == XTI_MAX_PARTS))
            return false;
        if (x->src >= 0) {
            j->piece[j->n++] = i;
            int first = j->piece[0];
            if (xti_piece_numel(x) > xti_piece_numel(&m->piece[first])) {
                j->piece[0] = i;
                j->piece[j->n - 1] = first;
            }
        } else if (!*fill) {
            *fill = x;
        } else if (memcmp(x->value, (*fill)->value, (size_t)m->esize)) {
            return false;
        }
    }
    return j->n;
}

static int64_t numel_of(const struct rows *r)
{
    int64_t n = r->row;
    for (int i = 0; i < r->n_dims; i++)
        n *= r->dim[i].n;
    return n;
}

/* Lines where one part ends and another, or a fill, begins. */
static bool shares_lines(const struct xti_map *m, const struct xti_piece *x, int64_t row)
{
    int64_t bits = row | place_in_row(m, x, row);
    for (int i = 0; i < x->n_dims; i++)
        bits |= x->dim[i].d == 1 ? x->dim[i].n : x->dim[i].d;
    return bits * m->esize % XTI_LINE;
}

/* Whether the parts make up rows of so many elements, with nothing short in between. */
static bool rows_serve(struct xti_map *m, const struct xti_joint *j, int64_t row, bool fills, struct rows *r)
{
    struct split x;
    bool shares = false;
    if (!rows_of(m, &m->piece[j->piece[0]], row, r) || (!fills && numel_of(r) != m->numel) ||
        (m->n_pieces > 1 && numel_of(r) == xti_piece_numel(&m->piece[j->piece[0]])))
        return false;
    for (int i = 0; i < j->n; i++) {
        const struct xti_piece *part = &m->piece[j->piece[i]];
        if (!is_part(m, r, part, &x))
            return false;
        shares |= shares_lines(m, part, row);
    }
    return shares && each_gap(m, r, m, is_far);
}

/* The shortest that do. */
static bool find_rows(struct xti_map *m, const struct xti_joint *j, bool fills, struct rows *best)
{
    struct rows r;
    best->row = INT64_MAX;
    for (int i = 0; i < j->n; i++) {
        const struct xti_piece *x = &m->piece[j->piece[i]];
        for (int k = 0; k < x->n_dims; k++) {
            int64_t row = x->dim[k].d;
            if (row > 1 && row < best->row && row * m->esize <= ROW_BYTES && rows_serve(m, j, row, fills, &r))
                *best = r;
        }
    }
    return best->row < INT64_MAX;
}

static xt_status rewrite(struct xti_plan *p, const struct rows *r, struct xti_joint *j,
                         const struct xti_piece *fill, struct xti_err *err)
{
    const struct xti_map old = p->map;
    struct gaps g = {.p = p, .like = fill ? *fill : (struct xti_piece){0}};
    int most = r->n_dims + 2 + j->n;
    struct xti_piece *piece = xti_arena_alloc(&p->arena, (size_t)most * sizeof *piece);
    g.piece = piece + 1;
    if (!piece || !each_gap(&old, r, &g, add_fill))
        return xti_fail(err, XT_ENOMEM, "%d pieces", most);
    for (int i = 0; i < j->n; i++) {
        struct xti_piece *x = i ? &piece[g.n + i] : piece;
        struct split s;
        *x = old.piece[j->piece[i]];
        is_part(&old, r, x, &s);
        x->n_dims = s.n_dims;
        x->dim = xti_arena_dup(&p->arena, s.dim, (size_t)s.n_dims * sizeof *s.dim);
        if (s.n_dims && !x->dim)
            return xti_fail(err, XT_ENOMEM, "%d dims", s.n_dims);
        j->piece[i] = (int)(x - piece);
    }
    j->row = r->row * old.esize;
    for (int i = 0; fill && i < 16; i++)
        j->value[i] = fill->value[i % old.esize];
    j->fills = fill != NULL;
    p->map.piece = piece;
    p->map.n_pieces = g.n + j->n;
    p->joint = *j;
    return XT_OK;
}

/* Short rows gain by a buffer; longer ones where the source is far from the order of the destination, as far
 * as the steps are known without it. */
static bool serves(const struct xti_plan *p)
{
    enum { SHORT = 640, LONG = 1536, LONGER = 2048, LONG_RUN = 512, FAR = 1 << 14 };
    int64_t row = p->joint.row;
    struct xti_nest t;
    if (row <= SHORT || !p->n_steps)
        return row <= SHORT;
    xti_nest_rows(&p->map, 0, row, &t);
    bool permuted = t.n_dims && xti_abs64(t.dim[t.n_dims - 1].s) >= FAR;
    return p->assembled ? permuted && row <= LONGER : row <= LONG && xti_buffered_run(p) >= LONG_RUN;
}

xt_status xti_plan_join(struct xti_plan *p, bool *rows, struct xti_err *err)
{
    const struct xti_piece *fill;
    const struct xti_map old = p->map;
    struct xti_joint j = {0};
    struct rows r;
    *rows = xti_may(&p->target, XTI_JOINT) && xti_assemble_dense(&old) && old.n_pieces > 1 &&
            xti_cost_stream(p) && list_parts(&p->map, &j, &fill) && find_rows(&p->map, &j, fill, &r);
    if (!*rows)
        return XT_OK;
    xt_status s = rewrite(p, &r, &j, fill, err);
    if (!s && !serves(p)) {
        p->map = old;
        p->joint = (struct xti_joint){0};
    }
    return s;
}
