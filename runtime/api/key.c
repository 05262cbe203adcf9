/* key.c: the request key and the signature. Layer 6. */
#include "api/api.h"

#include <string.h>

#include "base/hash.h"

static void add_numbers(struct xti_str *key, int n, const int64_t *v)
{
    for (int i = 0; i < n; i++)
        xti_str_u64le(key, (uint64_t)v[i]);
}

/* Every count comes before its numbers, so that two different graphs never give the same bytes. Names of
 * inputs are in: they change nothing that a kernel does, but explain prints them. */
static void add_node(struct xti_str *key, const struct xti_node *n)
{
    int64_t head[] = {(int64_t)n->op, (int64_t)n->dtype, n->rank, n->n_args, n->n_attrs, n->input};
    add_numbers(key, 6, head);
    for (int i = 0; i < n->n_args; i++)
        xti_str_u64le(key, (uint64_t)n->arg[i]);
    add_numbers(key, n->n_attrs, n->attr);
    xti_str_addn(key, n->value, sizeof n->value);
    if (n->op != XT_OP_INPUT)
        return;
    add_numbers(key, n->rank, n->shape);
    add_numbers(key, n->rank, n->strides);
    xti_str_u64le(key, n->dense);
    xti_str_u64le(key, (uint64_t)n->offset);
    xti_str_u64le(key, strlen(n->name));
    xti_str_add(key, n->name);
}

void xti_request_key(const struct xt_graph *g, xt_backend backend, const char *arch,
                     const struct xti_home *home, struct xti_str *key)
{
    int64_t head[] = {(int64_t)backend,    arch ? (int64_t)strlen(arch) : -1,
                      g->n_nodes,          g->out,
                      g->out_offset,       g->out_dense,
                      g->node[g->out].rank};
    xti_str_u64le(key, home->context);
    xti_str_u64le(key, home->number);
    add_numbers(key, 7, head);
    if (arch)
        xti_str_add(key, arch);
    for (int i = 0; i < g->n_nodes; i++)
        add_node(key, &g->node[i]);
    add_numbers(key, g->node[g->out].rank, g->out_strides);
}

xt_status xti_signature(const struct xti_map *m, const struct xti_target *t, char out[XTI_SIGNATURE_CHARS],
                        struct xti_err *err)
{
    xt_status s = XT_OK;
    struct xti_map wide = {0}, normal = {0};
    struct xti_origin origin = {0};
    struct xti_str key = {0};
    unsigned char digest[XTI_SHA256_BYTES];
    if ((s = xti_map_widen(m, xti_map_unit(m), &wide, err)))
        goto done;
    if ((s = xti_map_normalize(&wide, &normal, &origin, err)))
        goto done;
    xti_str_u64le(&key, (uint64_t)t->backend);
    xti_str_u64le(&key, (uint64_t)t->sm);
    xti_map_key(&normal, &key);
    if (key.failed) {
        s = xti_fail(err, XT_ENOMEM, "signature");
        goto done;
    }
    xti_sha256_of(key.s, key.n, digest);
    xti_hex(digest, XTI_SIGNATURE_CHARS / 2, out);
done:
    xti_str_free(&key);
    xti_map_free(&normal);
    xti_map_free(&wide);
    return s;
}
