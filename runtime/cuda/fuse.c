/* fuse.c: the map of a chain that suits CUDA. In: a graph. Out: its map, with guards where windows cross the
 * border of a pad, when rows of segments serve them; else with boxes, of which windows make many small ones.
 * Layer 4. */
#include "cuda/segments.h"

static bool guards_in_rows(const struct xti_cuda_plan *p)
{
    for (int i = 0; i < p->n_steps; i++)
        if (!p->step[i].rows && p->map.piece[p->step[i].piece].n_guards)
            return false;
    return true;
}

static bool suits(const struct xti_map *m, const struct xti_cuda_target *t)
{
    struct xti_cuda_plan p;
    if (xti_cuda_plan_make(m, t, &p, NULL))
        return false;
    bool suits = guards_in_rows(&p) && guards_in_rows(p.elem);
    xti_cuda_plan_free(&p);
    return suits;
}

xt_status xti_cuda_fuse(const struct xt_graph *g, const struct xti_cuda_target *t, struct xti_map *m,
                        struct xti_err *err)
{
    static const struct xti_fuse_options guarded = {.guard_windows = true};
    struct xti_map with_guards;
    xt_status s = xti_map_fuse(g, NULL, m, err);
    if (s || !m->cut_windows || xti_map_fuse(g, &guarded, &with_guards, NULL))
        return s;
    if (suits(&with_guards, t)) {
        xti_map_free(m);
        *m = with_guards;
    } else {
        xti_map_free(&with_guards);
    }
    return XT_OK;
}
