/* emit.c: plan -> CUDA source: prelude and the two entries. What always holds: the text depends on the maps,
 * the target's numbers and the templates alone; in the structure tier on the structure and the templates.
 * Layer 4. */
#include "cuda/cuda.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "cuda/any.h"
#include "cuda/writer.h"
#include "cuda/skeletons.h"

/* ptx: 4096 bytes of parameters on every device, 32764 from sm_70 with CUDA 12.1. */
enum { MAX_PARAM_BYTES = 32764 };

const char *xti_skeleton_text(const char *name)
{
    for (int i = 0; i < xti_n_skeletons; i++)
        if (!strcmp(xti_skeletons[i].name, name))
            return xti_skeletons[i].text;
    return NULL;
}

void xti_cuda_log_text(enum xti_log what, const char *name, const char *text)
{
    if (!xti_log_on(what))
        return;
    xti_logf(what, "%s:", name);
    while (*text) {
        int n = (int)strcspn(text, "\n");
        xti_logf(what, "%.*s", n, text);
        text += n + (text[n] == '\n');
    }
}

int xti_emit_fill(const struct xti_cuda_plan *p, int piece)
{
    int n = 0;
    for (int i = 0; i < piece; i++)
        n += p->map.piece[i].src < 0;
    return n;
}

/* XT_OVERRIDE: the file <name>.cu there, if there is one, takes the place of the source. */
static xt_status override(const char *name, struct xti_str *source, struct xti_err *err)
{
    char path[4096], part[4096];
    const char *dir = xti_env(XTI_ENV_OVERRIDE);
    if (!dir || !*dir)
        return XT_OK;
    errno = ENAMETOOLONG;
    int n = snprintf(path, sizeof path, "%s/%s.cu", dir, name);
    FILE *f = (size_t)n < sizeof path ? fopen(path, "rb") : NULL;
    if (!f)
        return errno == ENOENT ? XT_OK : xti_fail(err, XT_EIO, "XT_OVERRIDE: %s: %s", path, strerror(errno));
    xti_str_free(source);
    *source = (struct xti_str){0};
    for (size_t got; (got = fread(part, 1, sizeof part, f)) > 0;)
        xti_str_addn(source, part, got);
    xt_status s = XT_OK;
    if (ferror(f))
        s = xti_fail(err, XT_EIO, "XT_OVERRIDE: %s: %s", path, strerror(errno));
    else if (!source->failed && (!source->n || strlen(source->s) != source->n))
        s = xti_fail(err, XT_EIO, "XT_OVERRIDE: %s is empty or has a NUL byte", path);
    fclose(f);
    xti_logf(XTI_LOG_SRC, "%s: replaced by %s", name, path);
    return s;
}

static void put_source(const struct xti_cuda_plan *p, enum xti_cuda_tier tier, const char *name,
                       const char *elem, struct xti_str *b)
{
    if (tier == XTI_TIER_ANY) {
        xti_any_source(p, b);
        return;
    }
    bool exact = tier == XTI_TIER_EXACT;
    struct xti_writing a = {.p = p, .tier = tier, .prefix = "xt_a", .text = b};
    struct xti_writing e = {.p = p->elem, .tier = tier, .prefix = "xt_e", .twin = &a, .text = b};
    xti_str_addf(b, "/* %s: made by xt for sm_%d. dst, sources%s and fill values are the parameters. */\n",
                 name, p->target.sm, exact ? "" : ", numbers");
    xti_str_add(b, xti_skeleton_text("prelude"));
    if (!exact || p->table || p->elem->table)
        xti_str_add(b, xti_skeleton_text("numbers"));
    xti_write_entry(&a, name);
    xti_write_entry(&e, elem);
    xti_str_free(&a.numbers);
    xti_str_free(&e.numbers);
}

xt_status xti_cuda_emit(const struct xti_cuda_plan *p, enum xti_cuda_tier tier, const char *name,
                        struct xti_str *source, struct xti_err *err)
{
    char elem[128];
    struct xti_str key = {0};
    int n_fills = xti_emit_fill(p, p->map.n_pieces);
    xt_status s = tier == XTI_TIER_STRUCTURE ? xti_cuda_structure(p, &key, err) : XT_OK;
    xti_str_free(&key);
    if (s)
        return s;
    if (8 * (1 + p->map.n_srcs) + 16 * (n_fills + 1) > MAX_PARAM_BYTES)
        return xti_fail(err, XT_EUNSUPPORTED,
                        "a CUDA kernel takes %d bytes of parameters: %d inputs and %d fills are more",
                        MAX_PARAM_BYTES, p->map.n_srcs, n_fills);
    snprintf(elem, sizeof elem, "%s_e", name);
    put_source(p, tier, name, elem, source);
    if ((s = override(name, source, err)))
        return s;
    if (source->failed || !source->s)
        return xti_fail(err, XT_ENOMEM, "source of %s", name);
    xti_cuda_log_text(XTI_LOG_SRC, name, source->s);
    return XT_OK;
}
