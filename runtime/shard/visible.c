/* visible.c: the points of a box that no guard hides. The box is halved until bounds say that guards hide all
 * of a part, or it has few points. Rows in which the remainder of a floor division decides, as where a cut
 * axis was reshaped, stay whole: their next point follows at one of three distances (gaps.c). Layer 5. */
#include "shard/visible.h"

#include "base/num.h"
#include "shard/read.h"

/* Points, and rows, that are looked at one by one: bounds of a box cost as much. */
enum { FEW = 64, FEW_ROWS = 8 };
/* Of what is looked at, in points that are found by gaps (some ns). */
enum { POINT = 3, ROW = 16, BOX = 48 };

struct walk {
    int n, dim[XTI_MAX_DIMS]; /* by falling pos */
    xti_point_fn each;
    void *arg;
    int64_t left;             /* of looks */
    int div;                  /* whose remainder decides in rows; -1: they are looked at point by point */
    int sign[XTI_MAX_GUARDS]; /* what a guard takes of the remainder */
    struct xti_gaps gaps;
};

/* Numbers of a point. */
struct point {
    int64_t s, d, div[XTI_MAX_DIVS], q[XTI_MAX_DIVS], guard[XTI_MAX_GUARDS];
};

/* The first point of a row of dim k that begins at x. */
static void point_at(const struct xti_piece *p, const int64_t *x, int k, struct point *at)
{
    at->s = p->soff;
    at->d = p->doff;
    for (int j = 0; j < p->n_divs; j++) {
        at->div[j] = p->div[j].c;
        at->q[j] = 0;
    }
    for (int j = 0; j < p->n_guards; j++)
        at->guard[j] = p->guard[j].c;
    for (int i = 0; i < p->n_dims; i++) {
        if (!x[i] || i == k)
            continue;
        at->s += x[i] * p->dim[i].s;
        at->d += x[i] * p->dim[i].d;
        for (int j = 0; j < p->n_divs; j++)
            at->div[j] += x[i] * p->div[j].x[i];
        for (int j = 0; j < p->n_guards; j++)
            at->guard[j] += x[i] * p->guard[j].x[i];
    }
}

/* floor(v / den), which often is what it was. */
static inline int64_t quotient(int64_t v, int64_t den, int64_t was)
{
    uint64_t r = (uint64_t)v - (uint64_t)was * (uint64_t)den;
    return r < (uint64_t)den ? was : xti_floor_div(v, den);
}

/* The divs of the i-th point of the row, from the first-th on. */
static inline void divs_at(const struct xti_piece *p, struct point *at, int k, int64_t i, int first)
{
    for (int j = first; j < p->n_divs; j++) {
        int64_t v = at->div[j] + i * p->div[j].x[k];
        for (int m = 0; m < j; m++)
            v += p->div[j].q[m] * at->q[m];
        at->q[j] = quotient(v, p->div[j].den, at->q[j]);
    }
}

/* What it then reads. */
static inline int64_t read_at(const struct xti_piece *p, const struct point *at, int k, int64_t i)
{
    int64_t from = at->s + i * p->dim[k].s;
    for (int j = 0; j < p->n_divs; j++)
        from += p->sq[j] * at->q[j];
    return from;
}

/* Does no guard hide the i-th point, whose divs are known? */
static inline bool is_seen(const struct xti_piece *p, const struct point *at, int k, int64_t i)
{
    for (int j = 0; j < p->n_guards; j++) {
        int64_t v = at->guard[j] + i * p->guard[j].x[k];
        for (int m = 0; m < p->n_divs; m++)
            v += p->guard[j].q[m] * at->q[m];
        if (v < 0)
            return false;
    }
    return true;
}

static bool look_at_points(struct walk *w, const struct xti_piece *p, struct point *at, int k)
{
    w->left -= POINT * p->dim[k].n;
    for (int64_t i = 0; i < p->dim[k].n; i++) {
        divs_at(p, at, k, i, 0);
        if (is_seen(p, at, k, i) && !w->each(w->arg, read_at(p, at, k, i), at->d + i * p->dim[k].d))
            return false;
    }
    return true;
}

/* A part of a row, [i, end), in which the divs before the one that decides are what they are at its begin. */
struct segment {
    int64_t i, end, v, r; /* numerator and remainder of the div, at i */
    int64_t lo, width;    /* remainders with which no guard hides a point */
};

static void begin_segment(const struct walk *w, const struct xti_piece *p, struct point *at, int k, int64_t i,
                          struct segment *g)
{
    *g = (struct segment){.i = i, .end = p->dim[k].n};
    for (int j = 0; j < p->n_divs; j++) {
        const struct xti_div *d = &p->div[j];
        int64_t v = at->div[j] + i * d->x[k];
        for (int m = 0; m < j; m++)
            v += d->q[m] * at->q[m];
        at->q[j] = quotient(v, d->den, at->q[j]);
        int64_t r = v - at->q[j] * d->den;
        int64_t left = !d->x[k] ? g->end : d->x[k] > 0 ? (d->den - 1 - r) / d->x[k] : r / -d->x[k];
        if (j < w->div && left < g->end - i)
            g->end = i + left + 1 < g->end ? i + left + 1 : g->end;
        if (j == w->div) {
            g->v = v;
            g->r = r;
        }
    }
}

/* Guards that the remainder has no say in cut the segment, the others say which remainders they let pass. */
static void ask_guards(const struct walk *w, const struct xti_piece *p, const struct point *at, int k,
                       struct segment *g)
{
    int64_t den = p->div[w->div].den, lo = 0, hi = den - 1, begin = g->i, end = g->end;
    for (int j = 0; j < p->n_guards; j++) {
        int64_t x = p->guard[j].x[k], v = at->guard[j] + g->i * x;
        for (int m = 0; m < p->n_divs; m++)
            v += p->guard[j].q[m] * at->q[m];
        int64_t near = v < -den ? -den : v > den ? den : v;
        if (w->sign[j] > 0)
            lo = g->r - near > lo ? g->r - near : lo;
        else if (w->sign[j] < 0)
            hi = g->r + near < hi ? g->r + near : hi;
        else if (v < 0) /* hidden here; shown later on, if it grows */
            begin = x > 0 && g->i - xti_floor_div(v, x) > begin ? g->i - xti_floor_div(v, x)
                    : x > 0                                     ? begin
                                                                : end;
        else if (x < 0 && v / -x < end - g->i - 1)
            end = g->i + v / -x + 1;
    }
    if (begin > g->i && begin < end) {
        g->v += (begin - g->i) * p->div[w->div].x[k];
        g->r = xti_floor_mod(g->v, den);
    }
    g->i = begin;
    g->end = end;
    g->lo = lo;
    g->width = hi - lo + 1;
}

/* Calls each for points whose remainders lie in the interval. */
static bool step_by_gaps(struct walk *w, const struct xti_piece *p, struct point *at, int k,
                         const struct segment *t)
{
    const struct xti_div *div = &p->div[w->div];
    const struct xti_dim *dim = &p->dim[k];
    struct xti_gaps *g = &w->gaps;
    int64_t x = div->x[k], a = xti_floor_mod(x, div->den), *q = &at->q[w->div];
    int64_t i = xti_gaps_first(a, div->den, t->r, t->lo, t->width);
    if (i < 0 || (i += t->i) >= t->end)
        return true;
    if (g->a != a || g->m != div->den || g->w != t->width)
        *g = xti_gaps_of(a, div->den, t->width);
    int64_t v = t->v + x * (i - t->i);
    *q = xti_floor_div(v, div->den);
    int64_t above = v - *q * div->den - t->lo;
    int64_t up = g->up < dim->n ? (x * g->up - g->rise) / div->den : 0;
    int64_t down = g->down < dim->n ? (x * g->down + g->fall) / div->den : 0;
    while (i < t->end) {
        divs_at(p, at, k, i, w->div + 1);
        if (--w->left < 0 || !w->each(w->arg, read_at(p, at, k, i), at->d + i * dim->d))
            return false;
        bool rises = above + g->rise < t->width, falls = above >= g->fall;
        bool to_up = rises ? !falls || g->up <= g->down : !falls, to_down = falls ? !to_up : !rises;
        i += (to_up ? g->up : 0) + (to_down ? g->down : 0);
        *q += (to_up ? up : 0) + (to_down ? down : 0);
        above += (to_up ? g->rise : 0) - (to_down ? g->fall : 0);
    }
    return true;
}

static bool look_by_gaps(struct walk *w, const struct xti_piece *p, struct point *at, int k)
{
    struct segment g;
    for (int64_t i = 0, end; i < p->dim[k].n; i = end) {
        begin_segment(w, p, at, k, i, &g);
        end = g.end;
        ask_guards(w, p, at, k, &g);
        w->left -= ROW;
        if (w->left < 0 || (g.i < g.end && g.width > 0 && !step_by_gaps(w, p, at, k, &g)))
            return false;
    }
    return true;
}

static bool look_at_row(struct walk *w, const struct xti_piece *p, const int64_t *x, int k)
{
    struct point at;
    w->left -= ROW;
    point_at(p, x, k, &at);
    return (w->div < 0 ? look_at_points : look_by_gaps)(w, p, &at, k) && w->left >= 0;
}

static bool look_at_rows(struct walk *w, const struct xti_piece *p)
{
    int64_t x[XTI_MAX_DIMS] = {0};
    int i;
    do {
        if (!look_at_row(w, p, x, w->dim[w->n - 1]))
            return false;
        for (i = w->n - 2; i >= 0 && ++x[w->dim[i]] == p->dim[w->dim[i]].n; i--)
            x[w->dim[i]] = 0;
    } while (i >= 0);
    return true;
}

/* The outermost dim that is left to halve; n: what there is is looked at, by few points or few rows. */
static int outermost(const struct walk *w, const struct xti_piece *p)
{
    int64_t points = 1, rows = 1;
    int at = w->n;
    for (int i = w->n - 1; i >= 0; i--)
        if (p->dim[w->dim[i]].n > 1) {
            points = points > FEW ? points : points * p->dim[w->dim[i]].n;
            rows = rows > FEW || i == w->n - 1 ? rows : rows * p->dim[w->dim[i]].n;
            at = i;
        }
    return points <= FEW || (w->div >= 0 && rows <= FEW_ROWS) ? w->n : at;
}

/* Does the remainder of one div, the last that guards ask and that changes along dim k, tell what they hide
 * where the divs before it stay the same? Each guard then adds x*i - den*floor(..), once or taken off, or not
 * that floor. */
static void find_remainder(struct walk *w, const struct xti_piece *p, int k)
{
    bool changes[XTI_MAX_DIVS];
    int last = -1;
    w->div = -1;
    for (int j = 0; j < p->n_divs; j++) {
        bool asked = false;
        changes[j] = p->div[j].x[k];
        for (int m = 0; m < j; m++)
            changes[j] |= changes[m] && p->div[j].q[m];
        for (int m = 0; m < p->n_guards; m++)
            asked |= p->guard[m].q[j] != 0;
        last = changes[j] && asked ? j : last;
    }
    if (last < 0 || p->div[last].den > INT32_MAX || p->dim[k].n <= FEW / 2)
        return;
    int64_t x = p->div[last].x[k], den = p->div[last].den;
    for (int j = 0; j < p->n_guards; j++) {
        int64_t gx = p->guard[j].x[k], gq = p->guard[j].q[last];
        w->sign[j] = !gq ? 0 : gx == x && gq == -den ? 1 : -1;
        if (w->sign[j] < 0 && (gx != -x || gq != den))
            return;
    }
    w->div = last;
}

/* Halves the outermost dim, so that points come in their order. p's room is its own. As deep as halving goes,
 * 63 times a dim at most. */
static bool look(struct walk *w, struct xti_piece *p)
{
    int64_t ql[XTI_MAX_DIVS], qh[XTI_MAX_DIVS];
    int at = outermost(w, p);
    w->left -= BOX;
    if (w->left < 0 || !xti_piece_div_ranges(p, ql, qh))
        return false;
    if (xti_box_guards(p, ql, qh) < 0)
        return true;
    if (at == w->n)
        return look_at_rows(w, p);
    int k = w->dim[at];
    int64_t n = p->dim[k].n, half = n / 2;
    p->dim[k].n = half;
    bool goes_on = look(w, p);
    xti_box_move(p, k, half);
    p->dim[k].n = n - half;
    goes_on = goes_on && look(w, p);
    xti_box_move(p, k, -half);
    p->dim[k].n = n;
    return goes_on;
}

bool xti_box_visible(const struct xti_piece *box, const int64_t *pos, int64_t *looks, xti_point_fn each,
                     void *arg)
{
    struct walk w = {.each = each, .arg = arg, .left = *looks};
    struct xti_box_room room;
    struct xti_plain plain;
    struct xti_piece p = xti_box_copy(&room, box);
    if (!xti_box_numbers_fit(box))
        return false;
    for (int i = 0; i < p.n_dims; i++) {
        int k = w.n;
        if (!pos[i]) {
            room.dim[i].n = 1;
            continue;
        }
        for (w.n++; k > 0 && pos[w.dim[k - 1]] < pos[i]; k--)
            w.dim[k] = w.dim[k - 1];
        w.dim[k] = i;
    }
    xti_box_plain(&p, &plain);
    if (!w.n || !xti_box_numbers_fit(&p))
        return false;
    find_remainder(&w, &p, w.dim[w.n - 1]);
    bool all = look(&w, &p);
    *looks = w.left;
    return all;
}
