/* cuda_params.c: see cuda_params.h. The same order as in runtime/cuda/launch.c. */
#include "support/cuda_params.h"

#include <stdlib.h>

static void add_pointer(struct cuda_params *out, int buffer, int64_t byte_offset)
{
    out->param[out->n++] = (struct ptx_param){.is_pointer = 1, .buffer = buffer, .byte_offset = byte_offset};
}

static void add_bytes(struct cuda_params *out, const void *bytes, size_t n)
{
    out->param[out->n++] = (struct ptx_param){.bytes = bytes, .n_bytes = n};
}

bool cuda_params_make(const struct xti_cuda_plan *p, enum xti_cuda_tier tier, const struct ptx_world *w,
                      int64_t shift, struct cuda_params *out)
{
    int n = p->map.n_srcs;
    *out = (struct cuda_params){.param = calloc((size_t)(2 + n + p->n_fills), sizeof *out->param),
                                .source = calloc((size_t)n + 1, sizeof *out->source)};
    if (!out->param || !out->source)
        return false;
    add_pointer(out, 0, p->origin.dst_bytes + shift);
    for (int i = 0; i < n; i++) {
        int64_t at = p->origin.src_bytes[i] + shift;
        out->source[i] = ptx_address(w, 1 + p->origin.src_of[i], at);
        if (!p->table)
            add_pointer(out, 1 + p->origin.src_of[i], at);
    }
    if (p->table && n)
        add_bytes(out, out->source, (size_t)n * sizeof *out->source);
    if (tier == XTI_TIER_STRUCTURE)
        add_bytes(out, p->numbers.s, p->numbers.n);
    for (int i = 0; i < p->n_fills; i += p->table ? p->n_fills : 1)
        add_bytes(out, p->fill[i], p->table ? 16 * (size_t)p->n_fills : 16);
    return true;
}

void cuda_params_free(struct cuda_params *p)
{
    free(p->param);
    free(p->source);
    *p = (struct cuda_params){0};
}
