/* alias.c: may this destination be written while these sources are read? Byte ranges first; where they meet, the
 * exact test on the strided boxes, an element being one more dim of unit stride. Layer 6. */
#include "api/api.h"

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

static bool ranges_meet(const char *a, int64_t a_bytes, const char *b, int64_t b_bytes)
{
    return (uintptr_t)a < (uintptr_t)b + (uint64_t)b_bytes && (uintptr_t)b < (uintptr_t)a + (uint64_t)a_bytes;
}

/* One piece maps every element onto itself. */
static bool is_identity(const struct xt_kernel *k, const char *dst, const void *const *src)
{
    const struct xti_map *m = &k->map;
    if (m->n_pieces != 1 || m->piece[0].src < 0 || !xti_piece_affine(&m->piece[0]))
        return false;
    const struct xti_piece *p = &m->piece[0];
    for (int i = 0; i < p->n_dims; i++)
        if (p->dim[i].s != p->dim[i].d)
            return false;
    return (const char *)src[p->src] + p->soff * m->esize == dst + p->doff * m->esize;
}

/* What a piece reads: its own box when it is affine, else everything that its input can reach. */
static void source_box(const struct xt_kernel *k, const struct xti_piece *p, struct box *b, int64_t *off)
{
    const struct xti_node *in = &k->graph->node[k->graph->input[p->src]];
    int es = k->map.esize;
    if (xti_piece_affine(p)) {
        for (int i = 0; i < p->n_dims; i++)
            add_dim(b, p->dim[i].n, p->dim[i].s * es);
        *off = p->soff * es;
    } else {
        for (int i = 0; i < in->rank; i++)
            add_dim(b, in->shape[i], in->shape[i] > 1 ? in->strides[i] * es : 0);
        *off = in->offset * es;
    }
    add_dim(b, es, 1);
}

xt_status xti_alias_check(const struct xt_kernel *k, const void *dst, const void *const *src, bool *unchanged,
                          struct xti_err *err)
{
    const struct xti_map *m = &k->map;
    const struct xti_node *o = &k->graph->node[k->graph->out];
    const char *d = dst;
    int es = m->esize;
    *unchanged = false;
    for (int i = 0; i < m->n_pieces; i++) {
        const struct xti_piece *p = &m->piece[i];
        if (p->src < 0)
            continue;
        const char *s = src[p->src];
        int64_t lo = m->src_lo[p->src] * es;
        if (!ranges_meet(d + m->dst_lo * es, (m->dst_hi - m->dst_lo + 1) * es, s + lo,
                         (m->src_hi[p->src] - m->src_lo[p->src] + 1) * es))
            continue;
        if (is_identity(k, d, src)) {
            *unchanged = true;
            return XT_OK;
        }
        struct box a = {0}, b = {0};
        int64_t s_off = 0;
        for (int j = 0; j < o->rank; j++)
            add_dim(&a, o->shape[j], o->shape[j] > 1 ? k->graph->out_strides[j] * es : 0);
        add_dim(&a, es, 1);
        source_box(k, p, &b, &s_off);
        int64_t apart = (int64_t)((uintptr_t)s - (uintptr_t)d);
        if (xti_boxes_meet(a.rank, a.n, a.st, k->graph->out_offset * es, b.rank, b.n, b.st, s_off + apart) != XTI_NO)
            return xti_fail(err, XT_EALIAS, "xt_run: the destination overlaps input %d (%s), which is read", p->src,
                            k->graph->node[k->graph->input[p->src]].name);
    }
    return XT_OK;
}
