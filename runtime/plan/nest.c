/* nest.c: a piece of a map as the CPU strategies see it. Layer 3. */
#include "plan/nest.h"

#include "base/num.h"

/* Takes the contiguous innermost dim out of the loops. */
static void take_run(struct xti_nest *t)
{
    const struct xti_loop *last = t->n_dims ? &t->dim[t->n_dims - 1] : NULL;
    bool fill = t->piece->src < 0;
    t->run = t->esize;
    if (last && last->d == t->esize && (fill || last->s == t->esize)) {
        t->run *= last->n;
        t->n_dims--;
    }
    t->unit = fill ? t->esize : t->run <= XTI_LANE && !(t->run & (t->run - 1)) ? (int)t->run : 0;
}

bool xti_nest_copies(const struct xti_piece *x, struct xti_why *why)
{
    if (!xti_piece_affine(x))
        return xti_refuse(why, "%d divs and %d guards", x->n_divs, x->n_guards);
    return x->src >= 0 || xti_refuse(why, "no source");
}

bool xti_nest_copies_units(const struct xti_nest *t, struct xti_why *why)
{
    return xti_nest_copies(t->piece, why) &&
           (t->unit || xti_refuse(why, "inner run of %lld B is no unit", (long long)t->run));
}

int64_t xti_nest_bits(const struct xti_nest *t, int but)
{
    int64_t bits = 0;
    for (int i = 0; i < t->n_dims; i++)
        bits |= i == but ? 0 : t->dim[i].d;
    return bits;
}

void xti_nest_flip(struct xti_nest *t, int dim)
{
    struct xti_loop *l = &t->dim[dim];
    t->s_byte += (l->n - 1) * l->s;
    t->d_byte += (l->n - 1) * l->d;
    l->s = -l->s;
    l->d = -l->d;
}

static void find_contiguous(struct xti_nest *t)
{
    t->cd = t->cs = -1;
    if (t->piece->src < 0)
        return;
    for (int i = 0; i < t->n_dims; i++)
        if (t->dim[i].d == t->run)
            t->cd = i;
        else if (t->dim[i].s == t->run || t->dim[i].s == -t->run)
            t->cs = i;
    if (t->cs >= 0 && t->unit && t->dim[t->cs].s < 0)
        xti_nest_flip(t, t->cs); /* kernels want +unit */
}

/* All dims, no run. What a source that divs lead back to would have without them may not fit. */
static void begin(const struct xti_map *m, int piece, struct xti_nest *out)
{
    const struct xti_piece *p = &m->piece[piece];
    int64_t e = m->esize;
    out->piece = p;
    out->esize = m->esize;
    out->windows = &out->counted;
    out->counted = 0;
    out->n_dims = p->n_dims;
    out->s_byte = p->src < 0 ? 0 : xti_mul_most(p->soff, e);
    out->d_byte = p->doff * e;
    out->bytes = xti_piece_numel(p) * e;
    for (int i = 0; i < p->n_dims; i++) {
        const struct xti_dim *x = &p->dim[i];
        out->dim[i] = (struct xti_loop){
            .n = x->n, .s = p->src < 0 ? 0 : xti_mul_most(x->s, e), .d = x->d * e, .cuts = XTI_CUTS_NONE};
    }
}

void xti_nest_of(const struct xti_map *m, int piece, struct xti_nest *out)
{
    begin(m, piece, out);
    take_run(out);
    find_contiguous(out);
}

int64_t xti_nest_rows(const struct xti_map *m, int piece, int64_t row, struct xti_nest *out)
{
    begin(m, piece, out);
    const struct xti_loop *end = out->dim + out->n_dims;
    int64_t read = out->esize;
    while (out->n_dims && out->dim[out->n_dims - 1].d < row)
        out->n_dims--;
    for (const struct xti_loop *l = out->dim + out->n_dims; l < end; l++)
        if (xti_abs64(l->s) == (uint64_t)read) {
            read *= l->n;
            l = out->dim + out->n_dims - 1;
        }
    out->d_byte -= (out->d_byte - m->dst_lo * m->esize) % row;
    out->run = row;
    out->unit = 0;
    out->cd = out->cs = -1;
    return read;
}
