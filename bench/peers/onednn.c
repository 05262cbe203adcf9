/* onednn.c: oneDNN 2's reorder as a peer: any positive strides, up to 12 dims of 1, 2 or 4 bytes an element.
 */
#include <omp.h>
#include <stdlib.h>

#include <dnnl.h>

#include "peer.h"

struct plan {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t reorder;
    dnnl_memory_t src, dst;
};

static dnnl_status_t describe(const struct peer_copy *c, const int64_t *st, dnnl_data_type_t type,
                              dnnl_memory_desc_t *out)
{
    for (int i = 0; i < c->rank; i++)
        if (st[i] <= 0)
            return dnnl_invalid_arguments;
    return dnnl_memory_desc_init_by_strides(out, c->rank, c->n, type, st);
}

void *peer_new(const struct peer_copy *c)
{
    static const dnnl_data_type_t types[] = {[1] = dnnl_u8, [2] = dnnl_bf16, [4] = dnnl_f32};
    dnnl_data_type_t type = c->width <= 4 ? types[c->width] : dnnl_data_type_undef;
    dnnl_memory_desc_t src, dst;
    struct plan *p = calloc(1, sizeof *p);
    omp_set_num_threads(c->threads);
    if (p && type != dnnl_data_type_undef && c->rank <= DNNL_MAX_NDIMS && !describe(c, c->s, type, &src) &&
        !describe(c, c->d, type, &dst) && !dnnl_engine_create(&p->engine, dnnl_cpu, 0) &&
        !dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags) &&
        !dnnl_reorder_primitive_desc_create(&p->desc, &src, p->engine, &dst, p->engine, NULL) &&
        !dnnl_primitive_create(&p->reorder, p->desc) &&
        !dnnl_memory_create(&p->src, &src, p->engine, (void *)c->src) &&
        !dnnl_memory_create(&p->dst, &dst, p->engine, c->dst))
        return p;
    peer_free(p);
    return NULL;
}

void peer_run(void *plan)
{
    struct plan *p = plan;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, p->src}, {DNNL_ARG_TO, p->dst}};
    dnnl_primitive_execute(p->reorder, p->stream, 2, args);
    dnnl_stream_wait(p->stream);
}

void peer_free(void *plan)
{
    struct plan *p = plan;
    if (!p)
        return;
    dnnl_memory_destroy(p->dst);
    dnnl_memory_destroy(p->src);
    dnnl_primitive_destroy(p->reorder);
    dnnl_primitive_desc_destroy(p->desc);
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
    free(p);
}
