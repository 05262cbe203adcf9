/* key.c: the request key and the signature. Layer 6. */
#include "api/api.h"

#include <string.h>

#include "base/hash.h"

/* Each function writes at w and returns what lies behind. */
static uint64_t *put_numbers(uint64_t *w, int n, const int64_t *v)
{
    for (int i = 0; i < n; i++)
        *w++ = (uint64_t)v[i];
    return w;
}

static size_t text_words(const char *s) { return 1 + (strlen(s) + 7) / 8; }

static uint64_t *put_text(uint64_t *w, const char *s)
{
    size_t bytes = strlen(s), n = text_words(s);
    w[n - 1] = 0;
    w[0] = bytes;
    memcpy(w + 1, s, bytes);
    return w + n;
}

static bool has_value(const struct xti_node *n)
{
    return n->op == XT_OP_PAD || n->op == XT_OP_TRIL || n->op == XT_OP_TRIU;
}

enum { HEAD_WORDS = 8, NODE_WORDS = 1, VALUE_WORDS = 2, INPUT_WORDS = 2 };

/* Every count comes before its numbers, so that two different graphs never give the same words. Inputs are
 * numbered in the order of their nodes. Their names are in: they change nothing that a kernel does, but
 * explain prints them. */
static uint64_t *put_node(uint64_t *w, const struct xti_node *n)
{
    *w++ = (uint64_t)n->op | (uint64_t)n->dtype << 8 | (uint64_t)n->rank << 16 | (uint64_t)n->n_attrs << 24 |
           (uint64_t)n->n_args << 40;
    for (int i = 0; i < n->n_args; i++)
        *w++ = (uint64_t)n->arg[i];
    w = put_numbers(w, n->n_attrs, n->attr);
    if (has_value(n)) {
        memcpy(w, n->value, sizeof n->value);
        w += VALUE_WORDS;
    }
    if (n->op != XT_OP_INPUT)
        return w;
    w = put_numbers(w, n->rank, n->shape);
    w = put_numbers(w, n->rank, n->strides);
    *w++ = n->dense;
    *w++ = (uint64_t)n->offset;
    return put_text(w, n->name);
}

size_t xti_request_words(const struct xt_graph *g, const char *arch)
{
    size_t words = HEAD_WORDS + (arch ? text_words(arch) : 1) + (size_t)g->node[g->out].rank;
    for (int i = 0; i < g->n_nodes; i++) {
        const struct xti_node *n = &g->node[i];
        words += NODE_WORDS + (size_t)n->n_args + (size_t)n->n_attrs + (has_value(n) ? VALUE_WORDS : 0);
        if (n->op == XT_OP_INPUT)
            words += 2 * (size_t)n->rank + INPUT_WORDS + text_words(n->name);
    }
    return words;
}

void xti_request_key(const struct xt_graph *g, xt_backend backend, const char *arch,
                     const struct xti_home *home, uint64_t *w)
{
    int64_t head[HEAD_WORDS] = {
        (int64_t)home->context, (int64_t)home->number, (int64_t)backend,    g->n_nodes, g->out,
        g->out_offset,          g->out_dense,          g->node[g->out].rank};
    w = put_numbers(w, HEAD_WORDS, head);
    if (arch)
        w = put_text(w, arch);
    else
        *w++ = UINT64_MAX;
    for (int i = 0; i < g->n_nodes; i++)
        w = put_node(w, &g->node[i]);
    put_numbers(w, g->node[g->out].rank, g->out_strides);
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
