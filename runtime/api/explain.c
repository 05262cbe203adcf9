/* explain.c: how a chain was fused and planned, for people and for machines. Layer 6. */
#include "api/api.h"

#include <inttypes.h>
#include <string.h>

static const char *backend_name(xt_backend b)
{
    static const char *const name[] = {"auto", "ref", "cpu", "cuda"};
    return name[b];
}

static void target_text(const struct xt_kernel *k, struct xti_str *b)
{
    xti_str_add(b, backend_name(k->backend));
    if (k->backend == XT_CUDA)
        xti_str_addf(b, " sm_%d", k->plan.target.sm);
    else if (k->backend == XT_CPU)
        xti_str_addf(b, " %s", xti_isa_name[k->plan.target.isa]);
}

/* Calls with every line of the plan's refusals, split at the first ": ". */
static void each_refusal(const struct xt_kernel *k, void (*call)(struct xti_str *b, int i, const char *name, size_t n,
                                                                 const char *why, size_t m),
                         struct xti_str *b)
{
    const char *s = k->plan.refused.s;
    for (int i = 0; s && *s; i++) {
        size_t line = strcspn(s, "\n");
        const char *colon = memchr(s, ':', line);
        size_t n = colon ? (size_t)(colon - s) : line;
        size_t skip = colon ? n + 1 + (colon[1] == ' ') : line;
        call(b, i, s, n, s + skip, line - skip);
        s += line + (s[line] == '\n');
    }
}

static void refusal_text(struct xti_str *b, int i, const char *name, size_t n, const char *why, size_t m)
{
    xti_str_addf(b, "%s%-12.*s %.*s\n", i ? "            " : "  refused   ", (int)n, name, (int)m, why);
}

static void refusal_json(struct xti_str *b, int i, const char *name, size_t n, const char *why, size_t m)
{
    struct xti_str one = {0};
    xti_str_add(b, i ? ", {\"strategy\": " : "{\"strategy\": ");
    xti_str_addn(&one, name, n);
    xti_str_json(b, one.s ? one.s : "");
    xti_str_free(&one);
    xti_str_addn(&one, why, m);
    xti_str_add(b, ", \"reason\": ");
    xti_str_json(b, one.s ? one.s : "");
    xti_str_add(b, "}");
    b->failed |= one.failed;
    xti_str_free(&one);
}

static void loops_text(const struct xti_step *s, struct xti_str *b)
{
    for (int i = 0; i < s->n_loops; i++)
        xti_str_addf(b, " %" PRId64 "(%+" PRId64 ",%+" PRId64 ")", s->loop[i].n, s->loop[i].s, s->loop[i].d);
}

static void cpu_step_text(const struct xt_kernel *k, int i, struct xti_str *b)
{
    const struct xti_step *s = &k->plan.step[i];
    xti_str_addf(b, "  step %-4d piece %d: %s, %d-byte units%s", i, s->piece, s->strategy->name, s->unit,
                 s->stream ? ", streaming stores" : "");
    xti_str_addf(b, "; kernel %" PRId64 "(%+" PRId64 ",%+" PRId64 ") x %" PRId64 "(%+" PRId64 ",%+" PRId64 ")",
                 s->row.n, s->row.s, s->row.d, s->col.n, s->col.s, s->col.d);
    if (s->n_loops)
        xti_str_add(b, "; loops");
    loops_text(s, b);
    xti_str_add(b, "\n");
}

static void cuda_step_text(const struct xt_kernel *k, int i, struct xti_str *b)
{
    const struct xti_cuda_step *s = &k->plan.cuda_step[i];
    xti_str_addf(b, "  step %-4d piece %d: %s, %d-byte accesses, blocks %" PRId64 "..%" PRId64 "\n", i, s->piece,
                 s->strategy->name, s->vec_bytes, s->first_block, s->first_block + s->blocks - 1);
}

static void plan_text(const struct xt_kernel *k, struct xti_str *b)
{
    for (int i = 0; i < k->plan.n_steps && k->backend != XT_REF; i++) {
        if (k->backend == XT_CUDA)
            cuda_step_text(k, i, b);
        else
            cpu_step_text(k, i, b);
    }
    each_refusal(k, refusal_text, b);
}

static void explain_text(const struct xt_kernel *k, const struct xt_kernel_info *info, struct xti_str *b)
{
    const struct xti_node *o = &k->graph->node[k->graph->out];
    xti_str_addf(b, "  chain     %s\n  result    %s", k->text, xt_dtype_name(o->dtype));
    xti_str_list(b, o->rank, o->shape);
    xti_str_addf(b, "\n  map       %s, %d piece%s\n", info->map_class, info->n_pieces, info->n_pieces == 1 ? "" : "s");
    xti_map_text(&k->map, b);
    xti_str_add(b, "  target    ");
    target_text(k, b);
    xti_str_addf(b, "\n  strategy  %s\n", info->strategy);
    plan_text(k, b);
    xti_str_addf(b, "  bytes     %" PRId64 " read, %" PRId64 " written\n  signature %s (%s)\n", info->bytes_read,
                 info->bytes_written, info->signature, info->origin);
}

static void explain_json(const struct xt_kernel *k, const struct xt_kernel_info *info, struct xti_str *b)
{
    const struct xti_node *o = &k->graph->node[k->graph->out];
    xti_str_add(b, "{\"chain\": ");
    xti_str_json(b, k->text);
    xti_str_addf(b, ", \"dtype\": \"%s\", \"shape\": ", xt_dtype_name(o->dtype));
    xti_str_list(b, o->rank, o->shape);
    xti_str_add(b, ", \"strides\": ");
    xti_str_list(b, o->rank, k->graph->out_strides);
    xti_str_addf(b, ", \"offset\": %" PRId64 ", \"class\": \"%s\", \"pieces\": ", k->graph->out_offset, info->map_class);
    xti_map_json(&k->map, b);
    xti_str_addf(b, ", \"bytes_read\": %" PRId64 ", \"bytes_written\": %" PRId64 ", \"strategy\": \"%s\", \"target\": \"",
                 info->bytes_read, info->bytes_written, info->strategy);
    target_text(k, b);
    xti_str_add(b, "\", \"refused\": [");
    each_refusal(k, refusal_json, b);
    xti_str_addf(b, "], \"signature\": \"%s\", \"origin\": \"%s\"}", info->signature, info->origin);
}

xt_status xt_explain(const struct xt_kernel *k, int flags, char *buf, size_t size, size_t *need)
{
    struct xti_err err = {0};
    struct xti_str b = {0};
    struct xt_kernel_info info;
    if (need)
        *need = 0;
    if (!k || (flags & ~XT_JSON))
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_explain: %s", k ? "unknown flag" : "kernel is NULL"), &err);
    xt_kernel_get(k, &info);
    if (flags & XT_JSON)
        explain_json(k, &info, &b);
    else
        explain_text(k, &info, &b);
    xt_status s = b.failed ? xti_fail(&err, XT_ENOMEM, "explanation") : xti_copy_out(b.s, b.n, buf, size, need);
    xti_str_free(&b);
    return xti_publish(s, &err);
}
