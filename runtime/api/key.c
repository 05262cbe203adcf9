/* key.c: the request key and the signature. Layer 6. */
#include "api/api.h"

#include <string.h>

#include "base/hash.h"

/* A number takes one byte when it is small, as most are, else nine: short keys are hashed, compared and kept.
 */
enum { SMALLEST = -20, N_SMALL = 255, LARGE = 255, NUMBER_BYTES = 9 };

/* Each function writes at w and returns what lies behind. */
static unsigned char *put(unsigned char *w, int64_t v)
{
    uint64_t above = (uint64_t)v - (uint64_t)SMALLEST;
    if (above < N_SMALL) {
        *w = (unsigned char)above;
        return w + 1;
    }
    *w = LARGE;
    memcpy(w + 1, &v, sizeof v);
    return w + NUMBER_BYTES;
}

static unsigned char *put_numbers(unsigned char *w, int n, const int64_t *v)
{
    for (int i = 0; i < n; i++)
        w = put(w, v[i]);
    return w;
}

static unsigned char *put_text(unsigned char *w, const char *s)
{
    size_t n = strlen(s);
    w = put(w, (int64_t)n);
    memcpy(w, s, n);
    return w + n;
}

static bool has_value(const struct xti_node *n)
{
    return n->op == XT_OP_PAD || n->op == XT_OP_TRIL || n->op == XT_OP_TRIU;
}

enum { HEAD = 8, NODE_HEAD = 5, INPUT_NUMBERS = 2 };

/* Every count comes before its numbers, so that two different graphs never give the same bytes. Inputs are
 * numbered in the order of their nodes. Their names are in: they change nothing that a kernel does, but
 * explain prints them. */
static unsigned char *put_node(unsigned char *w, const struct xti_node *n)
{
    const int64_t head[NODE_HEAD] = {n->op, n->dtype, n->rank, n->n_args, n->n_attrs};
    w = put_numbers(w, NODE_HEAD, head);
    for (int i = 0; i < n->n_args; i++)
        w = put(w, n->arg[i]);
    w = put_numbers(w, n->n_attrs, n->attr);
    if (has_value(n)) {
        memcpy(w, n->value, sizeof n->value);
        w += sizeof n->value;
    }
    if (n->op != XT_OP_INPUT)
        return w;
    w = put_numbers(w, n->rank, n->shape);
    w = put_numbers(w, n->rank, n->strides);
    w = put(w, n->dense);
    w = put(w, n->offset);
    return put_text(w, n->name);
}

static size_t text_bound(const char *s) { return NUMBER_BYTES + strlen(s); }

size_t xti_request_bound(const struct xt_graph *g, const char *arch)
{
    size_t numbers = HEAD + (size_t)g->node[g->out].rank, bytes = arch ? text_bound(arch) : NUMBER_BYTES;
    for (int i = 0; i < g->n_nodes; i++) {
        const struct xti_node *n = &g->node[i];
        numbers += NODE_HEAD + (size_t)n->n_args + (size_t)n->n_attrs;
        bytes += has_value(n) ? sizeof n->value : 0;
        if (n->op != XT_OP_INPUT)
            continue;
        numbers += 2 * (size_t)n->rank + INPUT_NUMBERS;
        bytes += text_bound(n->name);
    }
    return numbers * NUMBER_BYTES + bytes;
}

size_t xti_request_key(const struct xt_graph *g, xt_backend backend, const char *arch,
                       const struct xti_home *home, unsigned char *key)
{
    const int64_t head[HEAD] = {
        (int64_t)home->context, (int64_t)home->number, (int64_t)backend,    g->n_nodes, g->out,
        g->out_offset,          g->out_dense,          g->node[g->out].rank};
    unsigned char *w = put_numbers(key, HEAD, head);
    w = arch ? put_text(w, arch) : put(w, -1);
    for (int i = 0; i < g->n_nodes; i++)
        w = put_node(w, &g->node[i]);
    w = put_numbers(w, g->node[g->out].rank, g->out_strides);
    return (size_t)(w - key);
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
