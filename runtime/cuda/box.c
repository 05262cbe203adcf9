/* box.c: see box.h.
 *
 * The source's run: dims by |s| from the smallest on, as far as each begins where the one before it ends; the
 * destination's run: the same by d. A box takes from both until runs are RUN_BYTES long, then grows. Layer 4.
 */
#include "cuda/box.h"

#include <math.h>
#include <string.h>

#include "cuda/family.h"
#include "cuda/predict.h"

enum {
    LONG_BYTES = 512,    /* longer runs of the source gain nothing */
    RUN_BYTES = 128,     /* wanted on both sides: whole lines of the second cache */
    BOX_BYTES = 8 << 10, /* of several boxes an SM; more leaves fewer blocks */
    FEW_DIMS = 4,        /* of more dims places take longer to find: more share them */
    MEDIUM_BYTES = 12 << 10,
    MANY_DIMS = 8,
    LARGE_BYTES = 18 << 10,
    MOST_BYTES = 32 << 10,
    MOST_SHARED = 44 << 10, /* of 48 KB, without gaps */
    GRID_BYTES = 40 << 10,  /* of boxes whose runs are to be long */
    LEAST_BYTES = 2 << 10,  /* however small the tensor is */
    SECTOR = 32,
    SMALL = 16,
    MANY_WINDOWS = 8
};

/* A piece as boxes see it: dims that run backwards in the source are turned round, but for those of the
 * destination's run. */
struct sides {
    int n; /* dims */
    int64_t soff, doff;
    int unit;           /* bytes */
    int word;           /* the least of the destination */
    bool narrow;        /* its words are of less than 16 bytes: lanes side by side are to have whole lines */
    bool grid;          /* lanes begin at sectors: each window more costs a sector for every run */
    int processors;     /* of the device: each is to have two boxes */
    int smaller;        /* boxes are to be so many times smaller than they else would */
    uint64_t turned;    /* bit i: dim[i] was turned round */
    int even_a, even_b; /* boxes begin at multiples of so many bytes of the source, of the destination */
    int64_t least_b;    /* units that runs of the destination are to have, too */
    int n_b;            /* dim[0 .. n_b) can make up the destination's run */
    int n_a;            /* dims that can make up the source's run, .. */
    /* of these as many as there are */
    int a[XTI_MAX_DIMS];              /* .. innermost first */
    struct xti_dim dim[XTI_MAX_DIMS]; /* innermost of the destination first */
};

static void list_sides(const struct xti_piece *q, struct sides *x)
{
    int64_t run = 1;
    memset(x, 0, offsetof(struct sides, a));
    x->n = q->n_dims;
    x->soff = q->soff;
    x->doff = q->doff;
    for (int i = 0; i < x->n; i++)
        x->dim[i] = q->dim[q->n_dims - 1 - i];
    while (x->n_b < x->n && x->dim[x->n_b].d == run)
        run *= x->dim[x->n_b++].n;
    for (int i = x->n_b; i < x->n; i++) {
        struct xti_dim *d = &x->dim[i];
        if (d->s >= 0)
            continue;
        x->soff += (d->n - 1) * d->s;
        x->doff += (d->n - 1) * d->d;
        d->s = -d->s;
        d->d = -d->d;
        x->turned |= UINT64_C(1) << i;
    }
    run = 0;
    for (;;) {
        int next = -1;
        for (int i = 0; i < x->n; i++) {
            int64_t s = (int64_t)xti_abs64(x->dim[i].s);
            if (s && (run ? s == run : (next < 0 || s < (int64_t)xti_abs64(x->dim[next].s))))
                next = i;
        }
        if (next < 0)
            return;
        x->a[x->n_a++] = next;
        run = x->dim[next].n * (int64_t)xti_abs64(x->dim[next].s);
    }
}

/* ---- how much of each dim */

/* Three quarters of what is wanted will do: a point more of the next dim may be much more than is wanted. */
static bool enough(int64_t run, int64_t want) { return 4 * run >= 3 * want; }

/* Takes dims from the front of a run until it has about `want` units; *run: what it has then. */
static void take(const struct sides *x, bool source, int64_t want, int64_t *t, int64_t *run)
{
    int n = source ? x->n_a : x->n_b;
    *run = source ? (int64_t)xti_abs64(x->dim[x->a[0]].s) : 1;
    for (int k = 0; k < n && !enough(*run, want); k++) {
        int i = source ? x->a[k] : k;
        int64_t part = (want + *run - 1) / *run;
        part -= part > 1 && part * *run > want && enough((part - 1) * *run, want) && x->dim[i].n > SMALL;
        t[i] = part > t[i] ? part : t[i];
        /* a cut costs edges on both sides */
        int64_t all = *run * x->dim[i].n * x->unit;
        bool whole = 2 * t[i] > x->dim[i].n && all <= (x->dim[i].n <= SMALL ? LONG_BYTES : RUN_BYTES);
        t[i] = t[i] < x->dim[i].n && !whole ? t[i] : x->dim[i].n;
        *run *= t[i];
        if (t[i] < x->dim[i].n)
            return;
    }
}

/* Parts begin at sectors, or at multiples of 16 bytes, on the sides that can have it, and boxes of a dim are
 * alike: few structures of kernels serve all extents. */
static int64_t even_part(const struct sides *x, int i, int unit, int64_t t)
{
    const struct xti_dim *d = &x->dim[i];
    int64_t least = x->even_b && i < x->n_b ? xti_period(x->even_b, d->d * unit) : 1, grain;
    for (int k = 0; k < x->n_a && x->even_a; k++)
        if (x->a[k] == i && xti_period(x->even_a, d->s * unit) > least)
            least = xti_period(x->even_a, d->s * unit);
    t = (t + least - 1) / least * least;
    if (t >= d->n)
        return d->n;
    if (x->narrow && i == 0) /* whole lines rather than boxes that are alike */
        return t;
    int64_t boxes = (d->n + t - 1) / t;
    if (x->grid && boxes > 1 && 2 * ((d->n + boxes - 2) / (boxes - 1)) <= 3 * t)
        boxes--;
    int64_t even = (d->n + boxes - 1) / boxes;
    for (grain = least; grain < t / (boxes > 3 && t >= 32 ? 4 : 8);) /* where little is lost */
        grain *= 2;
    even = (even + grain - 1) / grain * grain;
    return even < d->n ? even : d->n;
}

struct extents {
    int64_t t[XTI_MAX_DIMS], units;
    int64_t run_a, run_b; /* units */
    double filled;        /* part of the points of all boxes that there are */
    int n_cuts;
};

static void measure(const struct sides *x, int unit, int64_t want_a, int64_t want_b, int64_t batch,
                    struct extents *e)
{
    for (int i = 0; i < x->n; i++)
        e->t[i] = 1;
    take(x, true, want_a, e->t, &e->run_a);
    take(x, false, want_b, e->t, &e->run_b);
    for (int i = 0; i < x->n && batch > 1; i++) { /* the first dim that no run takes */
        if (e->t[i] > 1)
            continue;
        e->t[i] = batch < x->dim[i].n ? batch : x->dim[i].n;
        batch = (batch + e->t[i] - 1) / e->t[i];
    }
    e->units = 1;
    e->n_cuts = 0;
    e->filled = 1;
    for (int i = 0; i < x->n; i++) {
        if (e->t[i] > 1 && e->t[i] < x->dim[i].n)
            e->t[i] = even_part(x, i, unit, e->t[i]);
        e->n_cuts += e->t[i] > 1 && e->t[i] < x->dim[i].n;
        e->units *= e->t[i];
        if (e->t[i] > 1 && e->t[i] < x->dim[i].n) /* all of others is filled */
            e->filled *= (double)x->dim[i].n / (double)((x->dim[i].n + e->t[i] - 1) / e->t[i] * e->t[i]);
    }
}

/* Powers of two, or the most: few limits make few structures. */
static int64_t one_of_few(int64_t limit, int64_t most)
{
    int64_t near = LEAST_BYTES;
    while (near < most && limit >= 3 * near / 2)
        near *= 2;
    return near < most ? near : most;
}

/* Grows the source's run first, then the destination's; then boxes of several runs. */
static bool choose_extents(const struct sides *x, int unit, int64_t total, struct extents *best)
{
    int64_t want_a = RUN_BYTES / unit * (x->even_a ? 1 : 2), batch = 1,
            want_b = RUN_BYTES / unit > x->least_b ? RUN_BYTES / unit : x->least_b,
            limit = total * unit / (2 * x->processors);
    int64_t most = x->n <= FEW_DIMS ? BOX_BYTES : x->n >= MANY_DIMS ? LARGE_BYTES : MEDIUM_BYTES;
    limit = one_of_few(limit, most) / x->smaller;
    bool small = limit < most;
    /* of narrow words; shorter runs would cost more than fewer boxes */
    int64_t lines = RUN_BYTES * 2 * SECTOR / unit;
    limit = small && x->narrow && limit < lines ? lines : limit;
    measure(x, unit, want_a, want_b, batch, best);
    int64_t largest = x->grid ? GRID_BYTES : MOST_BYTES;
    while ((best->units * unit > largest || (best->units * unit > limit && small)) &&
           want_b * unit > 2 * SECTOR) {
        want_b /= want_a > (x->narrow ? 2 * SECTOR / unit : want_b) ? 1 : 2;
        want_a /= 2;
        measure(x, unit, want_a, want_b, batch, best);
    }
    while (best->units * unit < limit) {
        struct extents next;
        bool first_a = best->run_a * unit < LONG_BYTES, grown = false;
        /* each way by 2, 4, 8 and 16; first where boxes are as well filled */
        for (int k = 0; k < 2 * 3 * 4 && !grown; k++) {
            int64_t a = want_a, b = want_b, z = batch;
            int way = k / 4 % 3;
            *(way == 2 ? &z : (way == 0) == first_a ? &a : &b) <<= 1 + k % 4;
            measure(x, unit, a, b, z, &next);
            grown = next.units > best->units && next.n_cuts <= XTI_CUDA_BOX_CUTS &&
                    next.units * unit <= 3 * limit / 2 && (k >= 12 || next.filled > 0.9 * best->filled);
            if (grown)
                want_a = a, want_b = b, batch = z;
        }
        if (!grown)
            break;
        *best = next;
    }
    return best->n_cuts <= XTI_CUDA_BOX_CUTS && best->units * unit <= largest;
}

/* ---- the dims of the box */

static struct xti_box_dim *add_dim(const struct xti_piece *q, const struct sides *x, const struct extents *e,
                                   int i, struct xti_box *b)
{
    struct xti_box_dim *d = &b->dim[b->n];
    *d = (struct xti_box_dim){x->dim[i].n, x->dim[i].s, x->dim[i].d, e->t[i], .dim = q->n_dims - 1 - i,
                              .cut = -1};
    if (d->t < d->n) {
        d->cut = (int8_t)b->n_cuts;
        b->window[b->n_cuts++] = b->n;
    }
    b->n++;
    return d;
}

static bool list_dims(const struct xti_piece *q, const struct sides *x, const struct extents *e,
                      struct xti_box *b)
{
    int64_t run = 1;
    memset(b, 0, offsetof(struct xti_box, dim));
    b->soff = x->soff;
    b->doff = x->doff;
    for (int i = 0; i < x->n; i++) {
        if (x->turned >> i & 1)
            b->turned |= UINT64_C(1) << (q->n_dims - 1 - i);
        if (e->t[i] == 1)
            continue;
        if (b->n == XTI_CUDA_BOX_DIMS)
            return false;
        struct xti_box_dim *d = add_dim(q, x, e, i, b);
        d->in_b = i < x->n_b && x->dim[i].d == run;
        if (d->in_b) {
            b->n_b = b->n;
            run = d->t == d->n ? run * d->n : 0; /* nothing goes on behind a part */
        }
    }
    int64_t at = 0;
    for (int k = 0; k < x->n_a; k++)
        for (int j = 0; j < b->n; j++) {
            struct xti_box_dim *d = &b->dim[j];
            int64_t s = (int64_t)xti_abs64(d->s);
            if (d->dim != q->n_dims - 1 - x->a[k] || (at && s != at))
                continue;
            d->in_a = true;
            at = d->t == d->n ? s * d->n : -1;
        }
    return true;
}

/* ---- alignment */

const struct xti_box_dim *xti_box_find(const struct xti_box *b, int dim)
{
    for (int j = 0; j < b->n; j++)
        if (b->dim[j].dim == dim)
            return &b->dim[j];
    return NULL;
}

/* Where runs that are cut begin within words, or within sectors, a box's part of each begins up to
 * share / unit - 1 points earlier than its window. */
static void align_destination(const struct xti_cuda_plan *p, const struct xti_piece *q, int word,
                              struct xti_box *b)
{
    uint64_t unit = (uint64_t)p->map.esize,
             bits = (p->base_align < XTI_BOX_MOST_WORD ? (uint64_t)p->base_align : SECTOR) |
                    (uint64_t)p->origin.dst_bytes | (uint64_t)b->doff * unit;
    for (int i = 0; i < q->n_dims; i++) {
        const struct xti_box_dim *in = xti_box_find(b, i);
        if (!in || !in->in_b || in->cut >= 0)
            bits |= (uint64_t)q->dim[i].d * unit * (uint64_t)(in && in->in_b ? in->t : 1);
    }
    b->destination_align = (int)(bits & (~bits + 1));
    /* few widths make few structures */
    bool whole = (bits | (uint64_t)p->base_align) % XTI_BOX_MOST_WORD == 0;
    struct xti_box_dim *last = &b->dim[b->n_b - 1];
    int least = word < XTI_BOX_MOST_WORD ? word : XTI_BOX_MOST_WORD;
    b->word = whole ? XTI_BOX_MOST_WORD : least > (int)unit ? least : (int)unit;
    b->share = word == XTI_BOX_WHOLE_SECTORS && last->cut >= 0 ? SECTOR : b->word;
    b->destination_aligned = b->share == (whole ? b->word : (int)unit);
    int64_t units = b->share / p->map.esize - (whole ? XTI_BOX_MOST_WORD / p->map.esize : 1);
    if (!b->destination_aligned && last->cut >= 0)
        last->back = (units + last->d - 1) / last->d; /* d: points of the run below it */
}

static void align_source(const struct xti_cuda_plan *p, const struct xti_piece *q, struct xti_box *b)
{
    uint64_t unit = (uint64_t)p->map.esize, rows = 0,
             bits = SECTOR | (uint64_t)p->origin.src_bytes[q->src] | (uint64_t)b->soff * unit;
    int64_t least = INT64_MAX;
    for (int i = 0; i < q->n_dims; i++) {
        const struct xti_box_dim *in = xti_box_find(b, i);
        uint64_t step = (uint64_t)q->dim[i].s * unit;
        int64_t s = (int64_t)xti_abs64(q->dim[i].s);
        if (!in || !in->in_a) {
            bits |= step;
            rows |= in ? step : 0;
            continue;
        }
        if (in->cut >= 0)
            bits |= in->s < 0 ? step : step * (uint64_t)(in->t | in->back);
        else if (in->s < 0)
            bits |= step * (uint64_t)(in->n - 1);
        least = s && s < least ? s : least;
    }
    b->source_align = (int)(bits & (~bits + 1));
    b->shifts = (bits | (uint64_t)p->base_align) % 16 == 0 ? 0 : rows % 16 == 0 ? 1 : 2;
    b->source_whole = b->shifts == 0 && least == 1;
    for (int j = 0; j < b->n && b->source_whole; j++) {
        const struct xti_box_dim *d = &b->dim[j];
        bool last = d->in_a && d->s;
        for (int k = 0; k < b->n; k++)
            last = last && !(b->dim[k].in_a && xti_abs64(b->dim[k].s) > xti_abs64(d->s));
        uint64_t step = (uint64_t)d->s * unit;
        if (last && (step * (uint64_t)d->n % 16 || (d->cut >= 0 && step * (uint64_t)(d->t | d->back) % 16)))
            b->source_whole = false;
    }
}

/* ---- shared memory */

static int64_t read_points(const struct xti_box_dim *d) { return d->t + d->back; }

/* A run of the source that the destination's innermost dim is part of is cut before or behind it, at whole
 * sectors: the rows that it is made of can then lie apart. */
static void cut_source_run(struct xti_box *b, const struct sides *x, const struct xti_piece *q, int unit)
{
    int64_t bytes = unit;
    bool met = false;
    if (!b->dim[0].in_a || !b->dim[0].s)
        return;
    for (int k = 0; k < x->n_a; k++) {
        struct xti_box_dim *d = NULL;
        for (int j = 0; j < b->n; j++)
            d = b->dim[j].dim == q->n_dims - 1 - x->a[k] ? &b->dim[j] : d;
        if (!d || !d->in_a || xti_abs64(x->dim[x->a[0]].s) != 1)
            return;
        met |= d == &b->dim[0];
        if (met && bytes % SECTOR == 0)
            d->in_a = false;
        else
            bytes *= d->t;
    }
}

static void count_rows(struct xti_box *b, int unit)
{
    int64_t span = 0;
    b->rows = b->outs = 1;
    for (int j = 0; j < b->n; j++) {
        struct xti_box_dim *d = &b->dim[j];
        if (!d->in_b)
            b->outs *= d->t;
        if (d->in_a) {
            d->shared = d->s * unit;
            span += (read_points(d) - 1) * (int64_t)xti_abs64(d->s);
        } else if (d->s) {
            b->rows *= read_points(d);
        }
    }
    b->chunks = ((span + 1) * unit + (b->shifts ? 15 : 0) + 15) / 16;
}

/* Units of 1 and 2 bytes leave shared memory by 4 bytes, where the units beside each other belong to runs
 * that are alike. */
static int group_of(const struct xti_box *b, int unit)
{
    const struct xti_box_dim *first = NULL;
    int group = unit < 4 ? 4 / unit : 1;
    for (int j = b->n_b; j < b->n; j++)
        if (!first || xti_abs64(b->dim[j].s) < xti_abs64(first->s))
            first = &b->dim[j];
    bool serves = first && first->in_a && first->s == 1 && b->destination_aligned && !b->shifts && !b->grid &&
                  first->t % group == 0 && first->n % group == 0;
    for (int j = 0; j < b->n; j++)
        serves = serves && !(b->dim[j].in_a && b->dim[j].s % group && &b->dim[j] != first);
    return serves ? group : 1;
}

/* Boxes along a dim, but for one that there may be for its end. */
static int64_t windows_of(const struct xti_box_dim *d) { return (d->n + d->t - 1) / d->t; }

/* Units from where the last of them begins, at the earliest, to the end of the run. */
static int64_t rest_of(const struct xti_box_dim *d, int64_t units)
{
    return d->d * (d->n - (windows_of(d) - 1) * d->t) + (d->back ? units - 1 : 0);
}

/* Has the end a box of its own? It would be a word longer than others otherwise. */
static bool ends_apart(const struct xti_box_dim *d, int64_t units)
{
    int64_t parts = (d->d * d->t + units - 1) / units;
    return d->back && windows_of(d) >= MANY_WINDOWS && rest_of(d, units) > parts * units;
}

int64_t xti_box_count(const struct xti_box *b, int window, int unit)
{
    const struct xti_box_dim *d = &b->dim[b->window[window]];
    return windows_of(d) + ends_apart(d, b->share / unit);
}

/* A chunk more for the shift would leave threads without a row: rows are a little shorter instead. */
static bool trim_rows(struct xti_box *b, int unit)
{
    int64_t chunks = 1;
    while (2 * chunks <= b->chunks)
        chunks *= 2;
    for (int c = 0; c < b->n_cuts; c++) {
        struct xti_box_dim *d = &b->dim[b->window[c]];
        if (!d->in_a || d->in_b || chunks == b->chunks || chunks < 4)
            continue;
        int64_t s = (int64_t)xti_abs64(d->s), fewer = ((b->chunks - chunks) * 16 + s * unit - 1) / (s * unit);
        if (4 * fewer > d->t)
            continue;
        d->t -= fewer;
        return true;
    }
    return false;
}

static bool worth_it(const struct xti_piece *q, const struct sides *x, int unit, struct xti_why *why)
{
    const struct xti_dim *inner = &x->dim[0];
    if (!x->n_a)
        return xti_refuse(why, "one unit again and again");
    /* rows of less than a line are read in longer runs, if the source goes on behind them otherwise than the
     * destination, or within a sector */
    bool goes_on =
        x->n_a > 1 && x->a[0] == 0 && xti_abs64(inner->s) == 1 && (x->a[1] != 1 || inner->n * unit % SECTOR);
    if (xti_abs64(inner->s) <= 1 && inner->n * unit >= (goes_on ? RUN_BYTES : SECTOR))
        return xti_refuse(why, "rows of %lld bytes", (long long)(inner->n * unit));
    int64_t step = (int64_t)xti_abs64(x->dim[x->a[0]].s);
    if (step > SECTOR / unit)
        return xti_refuse(why, "the source's units are %lld apart", (long long)step);
    return true;
}

/* Words of a run. One that is not cut begins and ends within a word where runs begin anywhere. */
static int64_t count_words(const struct xti_box *b, int unit)
{
    const struct xti_box_dim *last = &b->dim[b->n_b - 1];
    int64_t word = b->word / unit, part = b->share / unit, run = last->d * last->t,
            rest = ends_apart(last, part) ? run : rest_of(last, part);
    if (last->cut < 0 && !b->destination_aligned)
        run += word - 1;
    if (!b->grid) {
        run = last->cut < 0 ? run : (run + part - 1) / part * part;
        run = run > rest ? run : rest;
        return (run + word - 1) / word;
    }
    int64_t words = b->grid / b->word; /* of a sector: it may begin with the last one */
    run = run > rest ? run : rest;
    return (run + 2 * word * words - word - 1) / (word * words) * words;
}

/* A box for sides that can be aligned as x says; *b tells whether they are. */
static bool try_box(const struct xti_cuda_plan *p, const struct xti_piece *q, const struct sides *x,
                    struct xti_box *b, struct xti_why *why)
{
    struct extents e;
    int unit = p->map.esize;
    if (!choose_extents(x, unit, xti_piece_numel(q), &e) || !list_dims(q, x, &e, b))
        return xti_refuse(why, "no box of few dims has runs on both sides");
    if (e.run_b * unit < 16)
        return xti_refuse(why, "runs of %lld bytes of the destination", (long long)(e.run_b * unit));
    cut_source_run(b, x, q, unit);
    align_destination(p, q, x->word, b);
    align_source(p, q, b);
    count_rows(b, unit);
    return true;
}

/* Runs that are cut after a few points more can all begin at sectors, or at multiples of 16 bytes: a box for
 * these, if so. */
static void lengthen_runs(const struct xti_cuda_plan *p, const struct xti_piece *q, const struct sides *x,
                          struct xti_box *b)
{
    const struct xti_box_dim *last = &b->dim[b->n_b - 1];
    struct xti_box longer;
    int64_t unit = p->map.esize, run = last->cut < 0 ? last->d * last->n : last->d;
    if (run == 1 || (last->cut < 0 && b->n_b == x->n_b))
        return;
    for (int align = SECTOR; align >= XTI_BOX_MOST_WORD && b->destination_align < align; align /= 2) {
        struct sides y = *x;
        y.even_b = align;
        y.least_b = run * xti_period(align, run * unit);
        if (y.least_b * unit <= 2 * RUN_BYTES && try_box(p, q, &y, &longer, NULL) &&
            longer.destination_align >= align)
            xti_box_copy(b, &longer);
    }
}

/* A box whose parts of runs begin at lines where runs do, if there is one. */
static void begin_at_lines(const struct xti_cuda_plan *p, const struct xti_piece *q, const struct sides *x,
                           struct xti_box *b)
{
    struct xti_box other;
    struct sides y = *x;
    y.even_b = RUN_BYTES;
    if (try_box(p, q, &y, &other, NULL))
        xti_box_copy(b, &other);
}

/* Do the points of a run follow each other evenly in shared memory, where the rows that they are in lie
 * without gaps, as far apart modulo 16 as in the source? */
static bool lie_in_line(const struct xti_box *b, int unit)
{
    uint64_t apart = (uint64_t)b->dim[0].s * (uint64_t)unit;
    for (int j = 0; j < b->n_b; j++) {
        const struct xti_box_dim *d = &b->dim[j];
        if (b->n_b > 1 && !xti_box_is_row(d))
            return false;
        if (((uint64_t)d->s * (uint64_t)unit - apart) % 16)
            return false;
        apart *= (uint64_t)read_points(d);
    }
    return true;
}

/* Where buffers begin at no multiple of 16 bytes nor do rows, and nor do words of several units: nothing is
 * even, whatever the box. */
static bool begins_anywhere(const struct xti_cuda_plan *p, int word)
{
    return p->base_align < XTI_BOX_MOST_WORD && (word == XTI_BOX_SECTORS || word > p->map.esize);
}

/* *b: a box that tells what can be even, in *x. */
static bool find_even(const struct xti_cuda_plan *p, const struct xti_piece *q, struct sides *x,
                      struct xti_box *b, struct xti_why *why)
{
    x->even_a = x->even_b = SECTOR;
    if (!try_box(p, q, x, b, NULL)) { /* small odd dims: only whole ones would make sectors */
        x->even_a = x->even_b = 0;
        if (!try_box(p, q, x, b, why))
            return false;
    }
    x->narrow = b->word < XTI_BOX_MOST_WORD && !x->grid;
    x->even_a = b->shifts ? 0 : b->source_align < 16 ? 16 : b->source_align;
    x->even_b = x->grid || !b->destination_aligned ? 0
                : b->destination_align < 16        ? 16
                                                   : b->destination_align;
    return true;
}

static bool make_box(const struct xti_cuda_plan *p, const struct xti_piece *q, int word, int smaller,
                     struct xti_box *b, struct xti_why *why)
{
    struct sides x;
    int unit = p->map.esize;
    list_sides(q, &x);
    x.unit = unit;
    x.word = word;
    x.processors = xti_cuda_processors(p);
    x.smaller = smaller;
    x.grid = word == XTI_BOX_SECTORS;
    if (!worth_it(q, &x, unit, why))
        return false;
    if (begins_anywhere(p, word))
        x.narrow = word < XTI_BOX_MOST_WORD && !x.grid;
    else if (!find_even(p, q, &x, b, why))
        return false;
    if (word == XTI_BOX_WHOLE_SECTORS && unit < 4) /* measured, not understood (bench/notes/h200.md) */
        x.least_b = 2 * RUN_BYTES / unit;
    if ((x.even_a < SECTOR || x.even_b < SECTOR) && !try_box(p, q, &x, b, why))
        return false;
    if (x.even_b == SECTOR && b->dim[0].cut >= 0)
        begin_at_lines(p, q, &x, b);
    if (!x.grid)
        lengthen_runs(p, q, &x, b);
    if (b->shifts && trim_rows(b, unit))
        count_rows(b, unit);
    b->line = lie_in_line(b, unit);
    b->grid = x.grid ? SECTOR : 0;
    if (x.grid && (b->word > unit || b->destination_align >= SECTOR))
        return xti_refuse(why, "runs begin at sectors");
    if (x.grid && b->n_b == 1) /* what it has is alike for most lengths, and loses little */
        return xti_refuse(why, "runs of one dim");
    if (word == XTI_BOX_WHOLE_SECTORS && (b->share < SECTOR || b->destination_align >= SECTOR))
        return xti_refuse(why, "runs are whole, or begin at sectors");
    b->vectors = count_words(b, unit);
    b->group = group_of(b, unit);
    return true;
}

/* Rows that begin anywhere have gaps between them, which may not fit: then a smaller box. */
bool xti_box_make(const struct xti_cuda_plan *p, const struct xti_piece *q, int word, struct xti_box *b,
                  struct xti_why *why)
{
    int64_t bytes = 0;
    for (int smaller = 1; smaller <= 8 && bytes <= MOST_SHARED; smaller *= 2) {
        if (!make_box(p, q, word, smaller, b, why))
            return false;
        bytes = b->rows * b->chunks * 16;
        if (bytes <= MOST_SHARED && (b->shifts < 2 || xti_box_fits(b, p->map.esize)))
            return true;
    }
    return xti_refuse(why, "a box of %lld bytes", (long long)bytes);
}

bool xti_box_split(const struct xti_cuda_plan *p, const struct xti_piece *q, struct xti_box *b)
{
    const struct xti_box_dim *inner = &b->dim[0];
    int64_t s = (int64_t)xti_abs64(inner->s), bytes = p->map.esize;
    if (!inner->in_a || b->shifts)
        return false;
    for (int j = 0; j < b->n; j++)
        bytes *= b->dim[j].in_a && (int64_t)xti_abs64(b->dim[j].s) < s ? b->dim[j].t : 1;
    if (bytes % 16 || bytes < SECTOR || bytes != s * p->map.esize)
        return false;
    for (int j = 0; j < b->n; j++)
        b->dim[j].in_a = b->dim[j].in_a && (int64_t)xti_abs64(b->dim[j].s) < s;
    align_source(p, q, b);
    count_rows(b, p->map.esize);
    b->line = lie_in_line(b, p->map.esize);
    b->group = group_of(b, p->map.esize);
    return b->shifts == 0;
}

/* Bytes that a box's part of a run begins at multiples of. */
static double begin_of(const struct xti_box *b)
{
    return b->destination_aligned ? b->destination_align : b->share;
}

/* Of a run's two ends in a box those that are the run's own, in the mean. */
static double ends_of(const struct xti_box *b, int unit)
{
    const struct xti_box_dim *last = &b->dim[b->n_b - 1];
    return last->cut < 0 ? 2 : 2 / (double)xti_box_count(b, last->cut, unit);
}

/* Of all boxes: how many, and of each the runs of the destination; bytes of a run, and how many of its two
 * ends lie within a sector of which another box has the rest. */
struct stored {
    double boxes, runs, run, parts;
};

static struct stored count_stored(const struct xti_piece *q, const struct xti_box *b, int unit)
{
    struct stored o = {1, (double)b->outs, unit, 0};
    for (int i = 0; i < q->n_dims; i++)
        o.boxes *= xti_box_find(b, i) ? 1 : (double)q->dim[i].n;
    for (int j = 0; j < b->n; j++) {
        const struct xti_box_dim *d = &b->dim[j];
        double windows = d->cut < 0 ? 1 : (double)xti_box_count(b, d->cut, unit),
               part = (double)d->n / windows;
        o.boxes *= windows;
        o.runs *= d->in_b ? 1 : part / (double)d->t;
        o.run *= d->in_b ? part : 1;
    }
    double begin = begin_of(b), whole = fmin(begin, b->destination_align); /* of the ends that no box cut */
    o.parts = 2 * (1 - (begin + (whole - begin) * ends_of(b, unit) / 2) / SECTOR);
    return o;
}

double xti_box_parts(const struct xti_piece *q, const struct xti_box *b, int unit)
{
    struct stored o = count_stored(q, b, unit);
    return o.boxes * o.runs * o.parts;
}

/* A run that begins anywhere touches a sector more; so does each request of a warp that goes on within a run,
 * and each end that goes unit by unit. */
double xti_box_sectors(const struct xti_piece *q, const struct xti_box *b, int unit)
{
    struct stored o = count_stored(q, b, unit);
    double row = unit, sectors, ends = ends_of(b, unit), begin = begin_of(b),
           request = (double)(b->lanes < 32 ? b->lanes : 32) * b->word;
    for (int j = 0; j < b->n; j++) {
        const struct xti_box_dim *d = &b->dim[j];
        double part = (double)d->n / (d->cut < 0 ? 1 : (double)xti_box_count(b, d->cut, unit));
        row += d->in_a && d->s ? (part + (double)d->back - 1) * (double)xti_abs64(d->s) * unit : 0;
    }
    sectors = (double)b->rows * (row + SECTOR - b->source_align);
    sectors += o.runs * (o.run + XTI_PART_BYTES * o.parts);
    if (!b->grid && b->lanes * b->word >= SECTOR && o.run > request)
        sectors += o.runs * (o.run / request - 1) * (SECTOR - begin);
    double units = (double)b->word / unit, by_table = log2(units) / 2,
           stores = !b->lanes                                                  ? fmin(1, by_table)
                    : b->table                                                 ? by_table
                    : b->steps.run && b->steps.still && b->vectors == b->lanes ? 1
                                                                               : units / 2;
    if (!b->destination_aligned)
        sectors += o.runs * ends * SECTOR * stores * (1 - 1 / units);
    return o.boxes * sectors / (2.0 * (double)xti_piece_numel(q) * unit);
}
