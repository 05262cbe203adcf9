/* key.c: the request key and the signature. Layer 6. */
#include "api/api.h"

#include <string.h>

#include "base/hash.h"

size_t xti_request_bound(const struct xt_graph *g, const char *how)
{
    return xti_graph_pack_bound(g) + 1 + sizeof(struct xti_home) + (how ? strlen(how) : 0);
}

size_t xti_request_key(const struct xt_graph *g, xt_backend backend, const char *how,
                       const struct xti_home *home, unsigned char *key)
{
    unsigned char *w = key + xti_graph_pack(g, key);
    *w++ = (unsigned char)backend;
    if (backend == XT_CUDA) {
        memcpy(w, home, sizeof *home);
        w += sizeof *home;
    }
    if (how) {
        size_t n = strlen(how);
        memcpy(w, how, n);
        w += n;
    }
    return (size_t)(w - key);
}

xt_status xti_signature(const struct xti_map *m, xt_backend backend, int sm, char out[XTI_SIGNATURE_CHARS],
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
    xti_str_u64le(&key, (uint64_t)backend);
    xti_str_u64le(&key, (uint64_t)sm);
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
