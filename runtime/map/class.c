/* class.c: what kind of copy a map is. Layer 2. */
#include "map/map.h"

enum xti_class xti_map_class(const struct xti_map *m)
{
    bool fills = true;
    for (int i = 0; i < m->n_pieces; i++)
        fills = fills && m->piece[i].src < 0;
    if (m->n_pieces == 0)
        return XTI_EMPTY;
    if (fills)
        return XTI_FILL;
    if (m->n_pieces > 1 || !xti_piece_affine(m->piece))
        return XTI_GENERAL;
    return xti_piece_contiguous(m->piece) ? XTI_MEMCPY : XTI_AFFINE;
}

const char *xti_class_name(enum xti_class c)
{
    static const char *const name[] = {
        [XTI_EMPTY] = "empty",   [XTI_MEMCPY] = "memcpy",   [XTI_FILL] = "fill",
        [XTI_AFFINE] = "affine", [XTI_GENERAL] = "general",
    };
    return name[c];
}

bool xti_piece_contiguous(const struct xti_piece *p)
{
    if (!xti_piece_affine(p) || p->n_dims > 1)
        return false;
    return p->n_dims == 0 || (p->dim[0].d == 1 && (p->src < 0 || p->dim[0].s == 1));
}

int64_t xti_piece_numel(const struct xti_piece *p)
{
    int64_t n = 1;
    for (int i = 0; i < p->n_dims; i++)
        n *= p->dim[i].n;
    return n;
}
