/* alias.c: may this destination be written while these sources are read? Byte ranges first; where they meet,
 * the exact test on the strided boxes, an element being one more dim of unit stride. Layer 6. */
#include "api/api.h"

#include "base/num.h"

enum { MAX_RANK = XTI_MAX_DIMS + 1 };

struct box {
    int rank;
    int64_t n[MAX_RANK], st[MAX_RANK];
};

static void add_dim(struct box *b, int64_t n, int64_t st)
{
    b->n[b->rank] = n;
    b->st[b->rank++] = st;
}

/* The piece copies every element onto itself. */
static bool is_identity(const struct xti_piece *p, int64_t apart, int es)
{
    if (p->src < 0 || !xti_piece_affine(p) || (p->doff - p->soff) * es != apart)
        return false;
    for (int i = 0; i < p->n_dims; i++)
        if (p->dim[i].s != p->dim[i].d)
            return false;
    return true;
}

/* Bytes from the start of the destination to the start of a source. */
static int64_t distance(const void *dst, const void *src)
{
    return (int64_t)((uintptr_t)src - (uintptr_t)dst);
}

static bool is_unchanged(const struct xti_map *m, const void *dst, const void *const *src)
{
    for (int i = 0; i < m->n_pieces; i++) {
        const struct xti_piece *p = &m->piece[i];
        if (p->src < 0 || !is_identity(p, distance(dst, src[p->src]), m->esize))
            return false;
    }
    return true;
}

/* The whole input in bytes; false when an element of it that is not read has too high an address. */
static bool input_box(const struct xt_kernel *k, int input, struct box *b, int64_t *off)
{
    struct xti_layout in;
    int es = k->map->esize;
    xti_packed_input(k->packed, input, &in);
    bool fits = xti_mul64(in.offset, es, off);
    for (int i = 0; i < in.rank && fits; i++) {
        int64_t st = 0;
        fits = in.shape[i] == 1 || xti_mul64(in.strides[i], es, &st);
        add_dim(b, in.shape[i], st);
    }
    return fits;
}

/* What a piece reads: its own box when it is affine, else its whole input, else everything between the lowest
 * and the highest address read. */
static void source_box(const struct xt_kernel *k, const struct xti_piece *p, struct box *b, int64_t *off)
{
    const struct xti_map *m = k->map;
    int es = m->esize;
    if (xti_piece_affine(p)) {
        for (int i = 0; i < p->n_dims; i++)
            add_dim(b, p->dim[i].n, p->dim[i].s * es);
        *off = p->soff * es;
    } else if (!input_box(k, p->src, b, off)) {
        b->rank = 0;
        add_dim(b, m->src_hi[p->src] - m->src_lo[p->src] + 1, es);
        *off = m->src_lo[p->src] * es;
    }
    add_dim(b, es, 1);
}

/* Do the destination and what p reads share a byte? Where that is too hard to tell: yes. */
static bool boxes_meet(const struct xt_kernel *k, const struct xti_piece *p, int64_t apart)
{
    struct box a = {0}, b = {0};
    struct xti_layout out;
    int64_t off = 0;
    int es = k->map->esize;
    xti_packed_output(k->packed, &out);
    for (int j = 0; j < out.rank; j++)
        add_dim(&a, out.shape[j], out.shape[j] > 1 ? out.strides[j] * es : 0);
    add_dim(&a, es, 1);
    source_box(k, p, &b, &off);
    return !xti_add64(off, apart, &off) ||
           xti_boxes_meet(a.rank, a.n, a.st, out.offset * es, b.rank, b.n, b.st, off) != XTI_NO;
}

xt_status xti_alias_check(const struct xt_kernel *k, const void *dst, const void *const *src, bool *unchanged,
                          struct xti_err *err)
{
    const struct xti_map *m = k->map;
    int es = m->esize;
    uintptr_t d = (uintptr_t)dst + (uintptr_t)(m->dst_lo * es);
    *unchanged = false;
    for (int i = 0; i < m->n_pieces; i++) {
        const struct xti_piece *p = &m->piece[i];
        if (p->src < 0)
            continue;
        int64_t lo = m->src_lo[p->src], hi = m->src_hi[p->src];
        if (!xti_ranges_meet(d, (m->dst_hi - m->dst_lo + 1) * es,
                             (uintptr_t)src[p->src] + (uintptr_t)(lo * es), (hi - lo + 1) * es))
            continue;
        if ((*unchanged = is_unchanged(m, dst, src)))
            return XT_OK;
        if (boxes_meet(k, p, distance(dst, src[p->src])))
            return xti_fail(err, XT_EALIAS, "xt_run: the destination overlaps input %d (%s), which is read",
                            p->src, xti_packed_name(k->packed, p->src));
    }
    return XT_OK;
}
