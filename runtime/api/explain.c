/* explain.c: how a chain was fused and planned, for people and for machines. Layer 6. */
#include "api/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cuda/any.h"
#include "cuda/cubin.h"
#include "cuda/describe.h"

static const char *backend_name(xt_backend b)
{
    static const char *const name[] = {"auto", "ref", "cpu", "cuda"};
    return name[b];
}

static void target_text(const struct xt_kernel *k, struct xti_str *b)
{
    xti_str_add(b, backend_name(k->backend));
    if (k->backend == XT_CUDA)
        xti_str_addf(b, " sm_%d", k->cuda->target.sm);
    else if (k->backend == XT_CPU)
        xti_str_addf(b, " %s, %s", xti_isa_name[k->plan->target.isa], k->plan->target.machine->name);
}

/* Of several pieces a map is no class of its own: what they are. */
static const char *class_text(const struct xt_kernel *k, const struct xt_kernel_info *info)
{
    for (int i = 0; i < k->map->n_pieces; i++)
        if (!xti_piece_affine(&k->map->piece[i]))
            return info->map_class;
    return k->map->n_pieces > 1 && xti_map_class(k->map) == XTI_GENERAL ? xti_class_name(XTI_AFFINE)
                                                                        : info->map_class;
}

static void map_text(const struct xti_map *m, bool all, struct xti_str *b)
{
    struct xti_str text = {0};
    xti_map_text(m, &text);
    const char *at = text.s;
    for (int i = 0; at && *at && (all || i < XTI_EXPLAIN_MOST); i++) {
        size_t line = strcspn(at, "\n");
        xti_str_addf(b, "            %.*s\n", (int)line, at);
        at += line + (at[line] == '\n');
    }
    if (at && *at)
        xti_str_addf(b, "            .. and %d more: --why shows all\n", m->n_pieces - XTI_EXPLAIN_MOST);
    b->failed |= text.failed;
    xti_str_free(&text);
}

/* ---- the CUDA code that runs at this moment */

static const char *const tier_name[XTI_TIERS] = {"any", "structure", "exact"};

/* Its entry for aligned buffers, as the cubin says it; false: there is no cubin. */
static bool read_entry(const struct xt_kernel *k, const struct xti_shared_code *c, struct xti_cubin_entry *e)
{
    char entry[XTI_CUDA_NAME_CHARS + 8];
    const struct xti_any *any = c->tier == XTI_TIER_ANY ? atomic_load(&k->shared->cuda.any) : NULL;
    snprintf(entry, sizeof entry, "%s%s", c->name, any ? xti_any_suffix[any->entry] : "");
    return xti_cubin_read(c->code.cubin, c->code.cubin_bytes, entry, e);
}

static void code_text(const struct xt_kernel *k, struct xti_str *b)
{
    const struct xti_shared_code *c = atomic_load_explicit(&k->now, memory_order_acquire);
    struct xti_cubin_entry e;
    if (!c)
        return;
    xti_str_addf(b, "  code      %s tier, %s", tier_name[c->tier], c->name);
    if (read_entry(k, c, &e)) {
        xti_str_addf(b, ": %d registers, %zu B of code", e.registers, e.code_bytes);
        if (e.local_bytes)
            xti_str_addf(b, ", %d B of stack", e.local_bytes);
        xti_str_addf(b, "; %d blocks reside in an SM",
                     xti_cubin_resident(&e, k->cuda->target.sm, XTI_CUDA_THREADS));
    }
    xti_str_add(b, "\n");
}

static void code_json(const struct xt_kernel *k, struct xti_str *b)
{
    const struct xti_shared_code *c = atomic_load_explicit(&k->now, memory_order_acquire);
    struct xti_cubin_entry e;
    xti_str_add(b, ", \"code\": ");
    if (!c) {
        xti_str_add(b, "null");
        return;
    }
    xti_str_addf(b, "{\"tier\": \"%s\", \"name\": \"%s\", ", tier_name[c->tier], c->name);
    if (read_entry(k, c, &e))
        xti_str_addf(b,
                     "\"registers\": %d, \"stack_bytes\": %d, \"code_bytes\": %zu, \"shared_bytes\": %zu, "
                     "\"resident_blocks\": %d}",
                     e.registers, e.local_bytes, e.code_bytes, e.shared_bytes,
                     xti_cubin_resident(&e, k->cuda->target.sm, XTI_CUDA_THREADS));
    else
        xti_str_add(b, "\"registers\": null}");
}

static void explain_text(const struct xt_kernel *k, const struct xt_kernel_info *info, bool why,
                         struct xti_str *b)
{
    struct xti_layout o;
    xti_packed_output(k->packed, &o);
    xti_explain_saved(k, b);
    xti_str_add(b, "\n");
    xti_explain_way(k, b);
    if (why)
        xti_explain_why(k, b);
    xti_str_add(b, k->map->n_pieces ? "\n\n" : "\n");
    size_t before = b->n;
    xti_explain_picture(k, b);
    xti_str_add(b, b->n > before ? "\n  chain     " : "  chain     ");
    xti_kernel_text(k, b);
    xti_str_addf(b, "\n  result    %s", xt_dtype_name(o.dtype));
    xti_str_list(b, o.rank, o.shape);
    xti_str_addf(b, "\n  map       %s, %d piece%s\n", class_text(k, info), info->n_pieces,
                 info->n_pieces == 1 ? "" : "s");
    map_text(k->map, why, b);
    xti_str_add(b, "  target    ");
    target_text(k, b);
    xti_str_addf(b, "\n  strategy  %s\n", info->strategy);
    xti_explain_plan(k, why, b);
    code_text(k, b);
    xti_estimate_text(k, b);
    xti_str_addf(b, "  bytes     %" PRId64 " read, %" PRId64 " written\n  signature %s (%s)\n",
                 info->bytes_read, info->bytes_written, info->signature, info->origin);
}

static void cuda_json(const struct xt_kernel *k, struct xti_str *b)
{
    xti_str_add(b, ", \"steps\": [");
    for (int i = 0; i < k->cuda->n_steps; i++) {
        xti_str_add(b, i ? ", " : "");
        xti_cuda_step_json(k->cuda, &k->cuda->step[i], b);
    }
    xti_str_add(b, "], \"predicted\": ");
    xti_cuda_prediction_json(k->cuda, b);
    code_json(k, b);
}

static void steps_json(const struct xt_kernel *k, struct xti_str *b)
{
    struct xti_cost_of_steps steps;
    struct xti_str way = {0};
    b->failed |= !xti_explain_steps(k, &steps);
    xti_str_addf(b,
                 ", \"operations\": %d, \"bytes_step_by_step\": %.0f, \"copies_numpy\": %d, "
                 "\"bytes_numpy\": %.0f, \"copies_pytorch\": %d, \"bytes_pytorch\": %.0f, \"way\": ",
                 steps.operations, steps.bytes, steps.numpy.n, steps.numpy.bytes, steps.pytorch.n,
                 steps.pytorch.bytes);
    xti_explain_way(k, &way);
    xti_str_json(b, way.s ? way.s : "");
    b->failed |= way.failed;
    xti_str_free(&way);
}

static void explain_json(const struct xt_kernel *k, const struct xt_kernel_info *info, struct xti_str *b)
{
    struct xti_layout o;
    xti_packed_output(k->packed, &o);
    struct xti_str chain = {0};
    xti_kernel_text(k, &chain);
    b->failed |= chain.failed;
    xti_str_add(b, "{\"chain\": ");
    xti_str_json(b, chain.s ? chain.s : "");
    xti_str_free(&chain);
    xti_str_addf(b, ", \"dtype\": \"%s\", \"shape\": ", xt_dtype_name(o.dtype));
    xti_str_list(b, o.rank, o.shape);
    xti_str_add(b, ", \"strides\": ");
    xti_str_list(b, o.rank, o.strides);
    xti_str_addf(b, ", \"offset\": %" PRId64 ", \"class\": \"%s\", \"pieces\": ", o.offset, info->map_class);
    xti_map_json(k->map, b);
    xti_str_addf(b, ", \"bytes_read\": %" PRId64 ", \"bytes_written\": %" PRId64 ", \"strategy\": \"%s\"",
                 info->bytes_read, info->bytes_written, info->strategy);
    steps_json(k, b);
    xti_str_add(b, ", \"target\": \"");
    target_text(k, b);
    xti_str_add(b, "\", \"refused\": [");
    xti_explain_refusals_json(k, b);
    xti_str_add(b, "]");
    if (k->backend == XT_CUDA)
        cuda_json(k, b);
    xti_estimate_json(k, b);
    xti_str_addf(b, ", \"signature\": \"%s\", \"origin\": \"%s\"}", info->signature, info->origin);
}

xt_status xt_explain(const struct xt_kernel *k, int flags, char *buf, size_t size, size_t *need)
{
    struct xti_err err = {0};
    struct xti_str b = {0};
    struct xt_kernel_info info = {.size = sizeof info};
    if (need)
        *need = 0;
    if (!k || (flags != XT_JSON && flags != XT_SVG && flags & ~XT_WHY))
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_explain: %s",
                                    k ? "flags are not 0, XT_WHY, XT_JSON or XT_SVG" : "kernel is NULL"),
                           &err);
    if (xt_kernel_get(k, &info))
        return xt_last_error()->status;
    if (flags == XT_JSON)
        explain_json(k, &info, &b);
    else if (flags == XT_SVG)
        xti_explain_svg(k, &b);
    else
        explain_text(k, &info, flags & XT_WHY, &b);
    xt_status s =
        b.failed ? xti_fail(&err, XT_ENOMEM, "explanation") : xti_copy_out(b.s, b.n, buf, size, need);
    xti_str_free(&b);
    return xti_publish(s, &err);
}
