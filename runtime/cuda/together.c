/* together.c: finds the rows that pieces of a map make together. In: a normalised map. Out: disjoint groups
 * of pieces, each a box of rows whose runs of the pieces follow each other without a gap. A group grows
 * around its largest copy: other pieces join when they have a run, or several, in each of its rows. Layer 4.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/family.h"
#include "cuda/segments.h"

/* Pieces beyond this go alone: trying all pairs would take too long. A run repeats at most so often a row. */
enum { MOST_PIECES = 64, MOST_RUNS = 4 };
/* Shorter rows are mostly ends; a shorter copy would cost every warp that meets it as much as a long one. */
enum { LEAST_ROW_BYTES = 64, LEAST_COPY_BYTES = 32 };

/* Outer dims of rows. */
struct frame {
    int n_dims;
    struct xti_dim dim[XTI_MAX_DIMS];
};

/* How a piece lies in the rows of a frame: runs of `run` units at `at` in each. */
struct fitted {
    struct frame finer; /* the frame, its dims split where the piece's are; s: the piece's */
    int64_t run;
    int n_runs;
    int64_t at[MOST_RUNS], soff[MOST_RUNS]; /* first units, of row 0 */
};

struct interval {
    int piece;
    int64_t begin, end, soff; /* soff: at begin */
};

struct search {
    struct xti_cuda_plan *p;
    const struct xti_rows **of;
    int main;
    struct frame frame;
    int64_t origin;                /* first unit of main's run in row 0 */
    unsigned char in[MOST_PIECES]; /* is a member */
    struct interval list[MOST_PIECES * MOST_RUNS];
    int n;
};

static bool has_run(const struct xti_piece *q) { return q->n_dims && q->dim[q->n_dims - 1].d == 1; }

/* Dims beside the run. */
static int outer_dims(const struct xti_piece *q) { return q->n_dims - has_run(q); }

static int64_t run_of(const struct xti_piece *q) { return has_run(q) ? q->dim[q->n_dims - 1].n : 1; }

static bool goes_back(const struct xti_piece *q) { return has_run(q) && q->dim[q->n_dims - 1].s == -1; }

/* Whole units of 8 bytes on both sides are served by rows.cu in fewer instructions. */
static bool rows_serve(const struct xti_cuda_plan *p, const struct xti_piece *q)
{
    int last = has_run(q) ? q->n_dims - 1 : -1;
    return xti_piece_affine(q) && xti_cuda_align(p, q, XTI_DESTINATION, q->doff, last) >= 8 &&
           xti_cuda_align(p, q, XTI_SOURCE, goes_back(q) ? q->soff + 1 : q->soff, last) >= 8;
}

static bool copies_run(const struct xti_piece *q)
{
    return q->src >= 0 && (!has_run(q) || q->dim[q->n_dims - 1].s == 1 || goes_back(q));
}

static bool repeat_runs(struct fitted *o, const struct xti_dim *x)
{
    if (o->n_runs * x->n > MOST_RUNS)
        return false;
    int n = o->n_runs;
    for (int k = 1; k < x->n; k++)
        for (int i = 0; i < n; i++, o->n_runs++) {
            o->at[o->n_runs] = o->at[i] + k * x->d;
            o->soff[o->n_runs] = o->soff[i] + k * x->s;
        }
    return true;
}

static void reverse_dims(struct frame *f)
{
    for (int i = 0, j = f->n_dims - 1; i < j; i++, j--) {
        struct xti_dim x = f->dim[i];
        f->dim[i] = f->dim[j];
        f->dim[j] = x;
    }
}

/* Takes n points off a dim's fast end. */
static bool take(struct xti_dim *x, int64_t n)
{
    x->n /= n;
    return x->n == 1 || (xti_mul64(x->s, n, &x->s) && xti_mul64(x->d, n, &x->d));
}

/* Dims from the fastest on: those of one stride are matched, where one is longer it is split; what the frame
 * has not repeats the run. */
static bool fit(const struct frame *f, const struct xti_piece *q, struct fitted *o)
{
    int i = f->n_dims - 1, j = outer_dims(q) - 1;
    struct xti_dim a = {1, 0, 0}, b = {1, 0, 0};
    o->finer.n_dims = 0; /* what is behind its dims, and behind the runs, is never read */
    o->run = run_of(q);
    o->n_runs = 1;
    o->at[0] = q->doff;
    o->soff[0] = q->soff;
    for (;;) {
        if (a.n == 1 && i >= 0)
            a = f->dim[i--];
        if (b.n == 1 && j >= 0)
            b = q->dim[j--];
        if (a.n == 1 && b.n == 1)
            break;
        if (a.n > 1 && b.n > 1 && a.d == b.d) {
            int64_t n = a.n < b.n ? a.n : b.n;
            if (a.n % n || b.n % n || o->finer.n_dims == XTI_MAX_DIMS)
                return false;
            o->finer.dim[o->finer.n_dims++] = (struct xti_dim){n, b.s, a.d};
            if (!take(&a, n) || !take(&b, n))
                return false;
        } else if (b.n > 1 && (a.n == 1 || b.d < a.d)) {
            if (!repeat_runs(o, &b))
                return false;
            b.n = 1;
        } else {
            return false;
        }
    }
    reverse_dims(&o->finer);
    return true;
}

static void outer_frame(const struct xti_piece *q, struct frame *f)
{
    f->n_dims = outer_dims(q);
    memcpy(f->dim, q->dim, (size_t)f->n_dims * sizeof *f->dim);
}

/* ---- guards: one copy and the fills that take what its guards leave */

static bool same_box(const struct xti_piece *a, const struct xti_piece *b)
{
    if (a->n_dims != b->n_dims || a->doff != b->doff || b->n_divs)
        return false;
    for (int i = 0; i < a->n_dims; i++)
        if (a->dim[i].n != b->dim[i].n || a->dim[i].d != b->dim[i].d)
            return false;
    return true;
}

/* b holds exactly where a (turn 1), or not a (turn -1), does: not (g >= 0) is -g - 1 >= 0. */
static bool guards_agree(const struct xti_guard *a, const struct xti_guard *b, int n_dims, int turn)
{
    if (b->c != (turn > 0 ? a->c : -a->c - 1))
        return false;
    for (int i = 0; i < n_dims; i++)
        if (b->x[i] != turn * a->x[i])
            return false;
    return true;
}

/* The guard of `copy` that q is left by: q has its opposite and, beside it, only guards in `before`. -1: q is
 * no such piece. */
static int left_by(const struct xti_piece *copy, const struct xti_piece *q, unsigned before)
{
    int found = -1;
    for (int i = 0; i < q->n_guards; i++) {
        int opposite = -1, same = -1;
        for (int g = 0; g < copy->n_guards; g++) {
            opposite = guards_agree(&copy->guard[g], &q->guard[i], q->n_dims, -1) ? g : opposite;
            same = guards_agree(&copy->guard[g], &q->guard[i], q->n_dims, 1) ? g : same;
        }
        if (opposite >= 0 && found < 0)
            found = opposite;
        else if (same < 0 || !(before >> same & 1))
            return -1;
    }
    return found;
}

/* Makes the fills that complete a guarded copy members. A point that the copy misses lies in the fill of the
 * first guard, in the order of `done`, that it fails. */
static bool complete_guards(struct search *s)
{
    const struct xti_map *m = &s->p->map;
    const struct xti_piece *copy = &m->piece[s->main];
    unsigned done = 0;
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < m->n_pieces; i++) {
            const struct xti_piece *q = &m->piece[i];
            if (s->of[i] || s->in[i] || q->src >= 0 || !q->n_guards || !same_box(copy, q))
                continue;
            int g = left_by(copy, q, done);
            if (g < 0 || (done >> g & 1))
                continue;
            done |= 1u << g;
            s->in[i] = again = true;
        }
    }
    return done == (1u << copy->n_guards) - 1;
}

static bool guards_serve(const struct xti_piece *q)
{
    if (q->n_divs || q->n_guards > XTI_MAX_ROW_GUARDS)
        return false;
    for (int i = 0; i < q->n_guards; i++)
        if (xti_abs64(q->guard[i].x[q->n_dims - 1]) > 1)
            return false;
    return true;
}

/* ---- the chain of runs around main's */

static void add_runs(struct search *s, int piece)
{
    const struct xti_piece *q = &s->p->map.piece[piece];
    struct fitted o;
    if (!fit(&s->frame, q, &o))
        return;
    s->in[piece] = true;
    for (int k = 0; k < o.n_runs; k++)
        s->list[s->n++] =
            (struct interval){piece, o.at[k] - s->origin, o.at[k] - s->origin + o.run, o.soff[k]};
}

static int by_begin(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static bool may_join(const struct search *s, int i)
{
    const struct xti_piece *m = &s->p->map.piece[s->main], *q = &s->p->map.piece[i];
    return !s->of[i] && !s->in[i] && xti_piece_affine(q) &&
           (q->src < 0 || (!m->n_guards && copies_run(q) && !rows_serve(s->p, q) &&
                           run_of(q) * s->p->map.esize >= LEAST_COPY_BYTES));
}

static void drop(struct search *s, int piece)
{
    int n = 0;
    s->in[piece] = false;
    for (int i = 0; i < s->n; i++)
        if (s->list[i].piece != piece)
            s->list[n++] = s->list[i];
    s->n = n;
}

/* The list's intervals first .. last - 1 follow each other, and main's is among them. */
static void find_chain(const struct search *s, int *first, int *last)
{
    int at = 0;
    while (s->list[at].piece != s->main)
        at++;
    *first = at;
    *last = at + 1;
    while (*first > 0 && s->list[*first - 1].end == s->list[*first].begin)
        --*first;
    while (*last < s->n && s->list[*last].begin == s->list[*last - 1].end)
        ++*last;
}

/* The members' first fill, or -1. */
static int ground_of(const struct search *s)
{
    for (int i = 0; i < s->p->map.n_pieces; i++)
        if (s->in[i] && s->p->map.piece[i].src < 0)
            return i;
    return -1;
}

/* A piece that cannot stay: it has a run outside the chain, or another fill value than the first fill, or
 * makes more than the segments there may be. -1: all can. */
static int misfit(const struct search *s)
{
    const struct xti_map *m = &s->p->map;
    int first, last, copies = 0, ground = ground_of(s);
    find_chain(s, &first, &last);
    for (int i = 0; i < s->n; i++) {
        const struct xti_piece *q = &m->piece[s->list[i].piece];
        if (i < first || i >= last)
            return s->list[i].piece;
        if (q->src < 0 && memcmp(q->value, m->piece[ground].value, sizeof q->value))
            return s->list[i].piece;
        copies += q->src >= 0;
    }
    if (copies > XTI_MAX_SEGMENTS)
        return s->list[s->list[0].piece == s->main ? s->n - 1 : 0].piece;
    return -1;
}

static void find_members(struct search *s)
{
    add_runs(s, s->main);
    for (int i = 0; i < s->p->map.n_pieces; i++)
        if (may_join(s, i))
            add_runs(s, i);
    qsort(s->list, (size_t)s->n, sizeof *s->list, by_begin);
    for (int i; (i = misfit(s)) >= 0;)
        drop(s, i);
}

/* ---- rows */

/* The frame in which every member's dims can be told. */
static bool refine(struct search *s)
{
    struct fitted o;
    for (int i = 0; i < s->n; i++) {
        if (!fit(&s->frame, &s->p->map.piece[s->list[i].piece], &o))
            return false;
        s->frame = o.finer;
    }
    return true;
}

static bool set_segment(struct search *s, const struct interval *v, int64_t begin, struct xti_rows *r)
{
    struct fitted o;
    struct xti_segment *g = &r->segment[r->n_segments++];
    int64_t *strides = xti_arena_alloc(&s->p->map.arena, (size_t)(r->n_dims + 1) * sizeof *strides);
    if (!strides || !fit(&s->frame, &s->p->map.piece[v->piece], &o))
        return false;
    *g = (struct xti_segment){
        .piece = v->piece, .begin = v->begin - begin, .end = v->end - begin, .s = strides};
    g->back = goes_back(&s->p->map.piece[v->piece]);
    g->soff = (g->back ? xti_cuda_segment_units(s->p, g) - 1 - v->soff : v->soff) - g->begin;
    for (int i = 0; i < r->n_dims; i++)
        strides[i] = g->back ? -o.finer.dim[i].s : o.finer.dim[i].s;
    return true;
}

static struct xti_rows *make_rows(struct search *s)
{
    struct xti_arena *arena = &s->p->map.arena;
    const struct xti_map *m = &s->p->map;
    struct xti_rows *r = xti_arena_alloc(arena, sizeof *r);
    int *piece = xti_arena_alloc(arena, (size_t)m->n_pieces * sizeof *piece);
    struct xti_dim *dim = xti_arena_alloc(arena, sizeof *dim * (size_t)(s->frame.n_dims + 1));
    if (!r || !piece || !dim)
        return NULL;
    int64_t begin = s->list[0].begin;
    *r = (struct xti_rows){.piece = piece,
                           .dim = dim,
                           .n_dims = s->frame.n_dims,
                           .ground = ground_of(s),
                           .family = XTI_CUDA_SEGMENTS};
    r->doff = s->origin + begin;
    r->length = s->list[s->n - 1].end - begin;
    for (int i = 0; i < m->n_pieces; i++)
        if (s->in[i])
            piece[r->n_pieces++] = i;
    for (int i = 0; i < s->n; i++)
        if (m->piece[s->list[i].piece].src >= 0 && !set_segment(s, &s->list[i], begin, r))
            return NULL;
    for (int i = 0; i < r->n_dims; i++)
        dim[i] =
            (struct xti_dim){s->frame.dim[i].n, r->n_segments ? r->segment[0].s[i] : 0, s->frame.dim[i].d};
    return r;
}

/* ---- which pieces */

static bool may_lead(const struct xti_cuda_plan *p, int i)
{
    const struct xti_piece *q = &p->map.piece[i];
    return copies_run(q) && has_run(q) && guards_serve(q) && !rows_serve(p, q) && p->map.esize < 16 &&
           run_of(q) * p->map.esize >= LEAST_ROW_BYTES / 2;
}

/* Sets of[] for the rows around piece i, when they are worth it. False: no memory. */
static bool try_rows(struct search *s, int i)
{
    const struct xti_piece *q = &s->p->map.piece[i];
    s->main = i;
    s->n = 0;
    memset(s->in, 0, sizeof s->in);
    s->origin = q->doff;
    outer_frame(q, &s->frame);
    if (q->n_guards && !complete_guards(s))
        return true;
    find_members(s);
    if ((q->n_guards && s->n > 1) || !refine(s)) {
        /* a guard's coefficients are of the piece's own dims and positions: it stays alone with its fills */
        memset(s->in, 0, sizeof s->in);
        s->n = 0;
        outer_frame(q, &s->frame);
        if (q->n_guards)
            complete_guards(s);
        add_runs(s, i);
    }
    struct xti_rows *r = make_rows(s);
    if (!r)
        return false;
    r->n_guards = q->n_guards;
    r->guard = q->guard;
    if (r->length * s->p->map.esize < LEAST_ROW_BYTES)
        return true;
    xti_cuda_share_rows(s->p, r);
    for (int k = 0; k < r->n_pieces; k++)
        s->of[r->piece[k]] = r;
    return true;
}

static int64_t units_of(const struct xti_cuda_plan *p, int i) { return xti_piece_numel(&p->map.piece[i]); }

xt_status xti_cuda_find_rows(struct xti_cuda_plan *p, const struct xti_rows **of, struct xti_err *err)
{
    struct search s; /* long; try_rows sets the rest */
    bool tried[MOST_PIECES] = {0};
    s.p = p;
    s.of = of;
    if (p->map.n_pieces > MOST_PIECES)
        return XT_OK;
    for (;;) {
        int best = -1;
        for (int i = 0; i < p->map.n_pieces; i++)
            if (!of[i] && !tried[i] && may_lead(p, i) && (best < 0 || units_of(p, i) > units_of(p, best)))
                best = i;
        if (best < 0)
            return XT_OK;
        tried[best] = true;
        if (!try_rows(&s, best))
            return xti_fail(err, XT_ENOMEM, "rows of %d pieces", p->map.n_pieces);
    }
}
