/* places.c: what the index map says of the axes that people know, and of memory. Layer 6. */
#include "api/explain.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "graph/value.h"

const struct xti_piece *xti_main_piece(const struct xti_map *m)
{
    const struct xti_piece *best = NULL;
    for (int i = 0; i < m->n_pieces; i++) {
        const struct xti_piece *p = &m->piece[i];
        bool reads = p->src >= 0, other = best && best->src >= 0;
        if (!best || reads > other || (reads == other && xti_piece_numel(p) > xti_piece_numel(best)))
            best = p;
    }
    return best;
}

const struct xti_piece *xti_piece_from(const struct xti_map *m, int src)
{
    const struct xti_piece *best = NULL;
    for (int i = 0; i < m->n_pieces; i++)
        if (m->piece[i].src == src && (!best || xti_piece_numel(&m->piece[i]) > xti_piece_numel(best)))
            best = &m->piece[i];
    return best;
}

static void percent(double part, const struct xti_map *m, struct xti_str *b)
{
    xti_str_addf(b, "%.1f %% of the result", 100 * part / (double)m->numel);
}

/* ", from [0,9,0]": the index that lies at this address. Nothing where a stride is negative or axes overlap.
 */
static void from_text(const struct xti_layout *l, int64_t address, struct xti_str *b)
{
    int64_t index[XT_MAX_RANK] = {0}, rest = address - l->offset, below = INT64_MAX;
    for (int i = 0; i < l->rank; i++) { /* the longest stride first */
        int64_t longest = 0;
        for (int j = 0; j < l->rank; j++)
            if (l->shape[j] > 1 && l->strides[j] < below && l->strides[j] > longest)
                longest = l->strides[j];
        for (int j = 0; longest && j < l->rank; j++)
            if (l->shape[j] > 1 && l->strides[j] == longest) {
                index[j] = rest / longest;
                rest -= index[j] * longest;
                if (index[j] >= l->shape[j])
                    return;
            }
        below = longest;
    }
    if (rest || address < l->offset)
        return;
    xti_str_add(b, ", from ");
    xti_str_list(b, l->rank, index);
}

void xti_share_text(const struct xti_map *m, const struct xti_layout *result, const struct xti_piece *p,
                    struct xti_str *b)
{
    int n = 0;
    for (int i = 0; i < m->n_pieces; i++)
        n += m->piece[i].src == p->src;
    if (n > 1)
        xti_str_addf(b, "the largest of %d pieces, ", n);
    percent((double)xti_piece_numel(p), m, b);
    from_text(result, p->doff, b);
}

void xti_fills_text(const struct xt_kernel *k, struct xti_str *b)
{
    enum { MOST = 3 };
    const struct xti_map *m = k->map;
    const unsigned char *value[MOST];
    struct xti_layout out;
    int n = 0;
    xti_packed_output(k->packed, &out);
    for (int i = 0; i < m->n_pieces; i++) {
        const struct xti_piece *p = &m->piece[i];
        bool known = p->src >= 0 || n > MOST;
        for (int j = 0; j < n && !known; j++)
            known = !memcmp(value[j], p->value, (size_t)m->esize);
        if (known)
            continue;
        if (n < MOST)
            value[n] = p->value;
        n++;
        xti_str_add(b, n > MOST ? ", .." : n > 1 ? ", " : "");
        if (n <= MOST)
            xti_value_print(out.dtype, p->value, b);
    }
}

void xti_filled_text(const struct xt_kernel *k, struct xti_str *b)
{
    const struct xti_map *m = k->map;
    double filled = 0;
    bool affine = true;
    for (int i = 0; i < m->n_pieces; i++) {
        filled += m->piece[i].src < 0 ? (double)xti_piece_numel(&m->piece[i]) : 0;
        affine &= xti_piece_affine(&m->piece[i]);
    }
    if (filled > 0 && affine) {
        percent(filled, m, b);
        xti_str_add(b, " with ");
        xti_fills_text(k, b);
    }
}

int64_t xti_common_run(const struct xti_piece *p)
{
    const struct xti_dim *inner = p->n_dims ? &p->dim[p->n_dims - 1] : NULL;
    return inner && inner->d == 1 && (inner->s == 1 || p->src < 0) && !p->n_divs ? inner->n : 1;
}

/* The axis with the longest stride that divides st; -1: none. */
static int axis_of(const struct xti_layout *l, int64_t st)
{
    int best = -1;
    for (int i = 0; i < l->rank; i++) {
        uint64_t a = xti_abs64(l->strides[i]), b = best < 0 ? 0 : xti_abs64(l->strides[best]);
        if (l->shape[i] > 1 && a && a <= xti_abs64(st) && xti_abs64(st) % a == 0 && a > b)
            best = i;
    }
    return best;
}

struct xti_place xti_place_of(const struct xti_layout *l, int64_t n, int64_t st)
{
    struct xti_place p = {.first = 0, .last = -1};
    int j = st ? axis_of(l, st) : -1;
    if (j < 0)
        return p;
    int64_t step = st / l->strides[j], reach = (int64_t)xti_abs64(step), points = l->shape[j];
    int i = j;
    /* Outwards, while axes follow each other. */
    while ((n - 1) > (points - 1) / reach) {
        int next = i - 1;
        while (next >= 0 && l->shape[next] == 1)
            next--;
        if (next < 0 || l->strides[next] != l->strides[i] * l->shape[i])
            return p;
        points *= l->shape[next];
        i = next;
    }
    return (struct xti_place){.first = i, .last = j, .step = step, .whole = reach == 1 && n == points};
}

/* "nd" of 2 and 22, "th" of 12. */
static const char *ordinal(uint64_t n)
{
    static const char *const ends[] = {"th", "st", "nd", "rd"};
    return n % 100 / 10 == 1 || n % 10 > 3 ? ends[0] : ends[n % 10];
}

void xti_place_text(const struct xti_layout *l, int64_t n, int64_t st, struct xti_str *b)
{
    struct xti_place p = xti_place_of(l, n, st);
    bool none = p.last < p.first;
    uint64_t step = xti_abs64(none ? st : p.step);
    if (!st) {
        xti_str_add(b, "the same again");
        return;
    }
    if (none)
        xti_str_add(b, "several axes at once");
    else if (p.first < p.last)
        xti_str_addf(b, "axes %d-%d", p.first, p.last);
    else
        xti_str_addf(b, "axis %d", p.last);
    if (step > 1)
        xti_str_addf(b, ", every %" PRIu64 "%s", step, ordinal(step));
    else if (!p.whole && !none && p.first < p.last)
        xti_str_addf(b, ", %" PRId64 " in a row", n);
    else if (!p.whole && !none)
        xti_str_addf(b, ", %" PRId64 " of %" PRId64, n, l->shape[p.last]);
    xti_str_add(b, (none ? st : p.step) < 0 ? ", backwards" : "");
}

const struct xti_step *xti_main_step(const struct xt_kernel *k)
{
    const struct xti_step *best = NULL;
    for (int i = 0; k->backend == XT_CPU && i < k->plan->n_steps; i++) {
        const struct xti_step *s = &k->plan->step[i];
        bool reads = k->plan->map.piece[s->piece].src >= 0;
        bool other = best && k->plan->map.piece[best->piece].src >= 0;
        if (!best || reads > other || (reads == other && s->bytes > best->bytes))
            best = s;
    }
    return best;
}

enum { MOST_DIMS = 2 * XTI_MAX_DIMS + 4 };

struct box {
    int n, unit;
    int64_t extent[MOST_DIMS], s[MOST_DIMS], d[MOST_DIMS];
};

static void add_dim(struct box *x, const struct xti_loop *l, int64_t most)
{
    x->extent[x->n] = l->n < most ? l->n : most;
    x->s[x->n] = l->s;
    x->d[x->n++] = l->d;
}

/* Runs of memory that a box has on one side: *bytes each. */
static int64_t runs_of(const struct box *x, const int64_t *stride, int64_t *bytes)
{
    bool taken[MOST_DIMS] = {false}, grew = true;
    int64_t runs = 1;
    for (*bytes = x->unit; grew;) {
        grew = false;
        for (int i = 0; i < x->n; i++)
            if (!taken[i] && (int64_t)xti_abs64(stride[i]) == *bytes) {
                *bytes *= x->extent[i];
                taken[i] = grew = true;
            }
    }
    for (int i = 0; i < x->n; i++)
        runs *= taken[i] || !stride[i] ? 1 : x->extent[i];
    return runs;
}

static int64_t block_of(const struct xti_step *s, int cuts)
{
    for (int i = 0; i < s->n_loops; i++)
        if (s->loop[i].cuts == cuts && !s->loop[i].each)
            return s->loop[i].block;
    return INT64_MAX;
}

bool xti_tile_of(const struct xt_kernel *k, const struct xti_step *s, struct xti_tile *out)
{
    bool groups = s->kernel == XTI_CPU_MIRROR || s->kernel == XTI_CPU_TURN;
    struct box x = {.unit = groups ? s->unit * s->param : s->unit};
    if (s->general || (s->stage.serves && k->plan->joint.n) || k->plan->assembled)
        return false;
    if (!s->list.row_dims)
        add_dim(&x, &s->row, block_of(s, XTI_CUTS_ROW));
    if (!s->list.col_dims)
        add_dim(&x, &s->col, block_of(s, XTI_CUTS_COL));
    for (int i = 0; i < s->list.row_dims + s->list.col_dims; i++)
        add_dim(&x, &s->loop[s->n_loops + i], INT64_MAX);
    *out = (struct xti_tile){.bytes = x.unit};
    for (int i = 0; i < x.n; i++)
        out->bytes *= x.extent[i];
    out->writes = runs_of(&x, x.d, &out->write_bytes);
    if (k->plan->map.piece[s->piece].src >= 0)
        out->reads = runs_of(&x, x.s, &out->read_bytes);
    return true;
}
