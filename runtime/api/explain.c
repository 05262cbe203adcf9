/* explain.c: how a chain was fused and planned, for people and for machines. Layer 6. */
#include "api/api.h"
#include "cuda/describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cuda/segments.h"

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

/* One line of the plan's refusals: "piece 0: rows: inner run of 4 B is a unit". */
struct refusal {
    int piece;
    char strategy[32], reason[160];
};

/* Reads the next line at *at; false at the end. */
static bool next_refusal(const char **at, struct refusal *r)
{
    size_t line = *at ? strcspn(*at, "\n") : 0;
    if (!line)
        return false;
    *r = (struct refusal){0};
    sscanf(*at, "piece %d: %31[^:\n]: %159[^\n]", &r->piece, r->strategy, r->reason);
    *at += line + ((*at)[line] == '\n');
    return true;
}

/* Is a line from `at` up to `end` of the same piece and for the same reason? */
static bool given(const char *at, const char *end, const struct refusal *r)
{
    struct refusal other;
    while (at < end && next_refusal(&at, &other))
        if (other.piece == r->piece && !strcmp(other.reason, r->reason))
            return true;
    return false;
}

/* One line a reason: "piece 0: memcpy, rows, walk: 1 guard". The lines of a piece follow each other. */
static void refusals_text(const char *refused, struct xti_str *b)
{
    const char *piece_at = refused, *line = piece_at, *next = piece_at, *head = "refused";
    struct refusal r, other;
    for (int piece = -1; next_refusal(&next, &r); line = next) {
        if (r.piece != piece)
            piece_at = line;
        piece = r.piece;
        if (given(piece_at, line, &r))
            continue;
        xti_str_addf(b, "  %-9s piece %d: %s", head, r.piece, r.strategy);
        for (const char *at = next; next_refusal(&at, &other) && other.piece == r.piece;)
            if (!strcmp(other.reason, r.reason))
                xti_str_addf(b, ", %s", other.strategy);
        xti_str_addf(b, ": %s\n", r.reason);
        head = "";
    }
}

static void refusals_json(const char *refused, struct xti_str *b)
{
    const char *at = refused;
    struct refusal r;
    for (const char *comma = ""; next_refusal(&at, &r); comma = ", ") {
        xti_str_addf(b, "%s{\"piece\": %d, \"strategy\": \"%s\", \"reason\": ", comma, r.piece, r.strategy);
        xti_str_json(b, r.reason);
        xti_str_add(b, "}");
    }
}

/* What the strategies say today is what they said when the plan was made: it depends on nothing else. */
static void add_refusals(const struct xt_kernel *k, void (*add)(const char *refused, struct xti_str *b),
                         struct xti_str *b)
{
    struct xti_str refused = {0};
    xti_kernel_refusals(k, &refused);
    add(refused.s, b);
    b->failed |= refused.failed;
    xti_str_free(&refused);
}

static void loops_text(const struct xti_step *s, struct xti_str *b)
{
    for (int i = 0; i < s->n_loops; i++)
        xti_str_addf(b, " %" PRId64 "(%+" PRId64 ",%+" PRId64 ")", s->loop[i].n, s->loop[i].s, s->loop[i].d);
}

static void cpu_step_text(const struct xt_kernel *k, int i, struct xti_str *b)
{
    const struct xti_step *s = &k->plan->step[i];
    xti_str_addf(b, "  step %-4d piece %d: %s, %d-byte units%s", i, s->piece, s->strategy->name, s->unit,
                 s->stream ? ", streaming stores" : "");
    xti_str_addf(b,
                 "; kernel %" PRId64 "(%+" PRId64 ",%+" PRId64 ") x %" PRId64 "(%+" PRId64 ",%+" PRId64 ")",
                 s->row.n, s->row.s, s->row.d, s->col.n, s->col.s, s->col.d);
    if (s->n_loops)
        xti_str_add(b, "; loops");
    loops_text(s, b);
    if (s->uneven)
        xti_str_add(b, s->keeps ? "; kept in the first cache" : "; in uneven steps");
    if (s->collect)
        xti_str_addf(b, "; rows put together in a buffer, runs of %" PRId64 " B fetched", s->fetch.bytes);
    if (s->source_run)
        xti_str_addf(b, "; runs of %" PRId64 " B fetched a tile ahead", s->source_run);
    if (s->buffered) {
        const struct xti_block *block = &s->blocks->block[0][0];
        xti_str_addf(b, "; blocks by %s in a buffer, runs of %" PRId64 " B",
                     block->inner->step.strategy->name, s->blocks->part->in.bytes);
        for (int part = 1; part < s->blocks->n_parts; part++)
            xti_str_addf(b, "%s %" PRId64 " B", part + 1 < s->blocks->n_parts ? "," : " and",
                         s->blocks->part[part].in.bytes);
        xti_str_addf(b, " fetched, of %" PRId64 " B written", block->out.bytes);
    }
    xti_str_add(b, s->general ? "; as far as divs and guards let\n" : "\n");
}

static void cuda_step_text(const struct xt_kernel *k, int i, struct xti_str *b)
{
    const struct xti_cuda_step *s = &k->cuda->step[i];
    int n = s->rows ? s->rows->n_pieces : 1;
    xti_str_addf(b, "  step %-4d piece%s ", i, n > 1 ? "s" : "");
    for (int j = 0; j < n; j++)
        xti_str_addf(b, "%d%s", s->rows ? s->rows->piece[j] : s->piece, j + 1 < n ? ", " : ": ");
    xti_cuda_step_text(k->cuda, s, b);
    xti_str_add(b, "\n");
}

static void map_text(const struct xti_map *m, struct xti_str *b)
{
    struct xti_str text = {0};
    xti_map_text(m, &text);
    for (const char *at = text.s; at && *at;) {
        size_t line = strcspn(at, "\n");
        xti_str_addf(b, "            %.*s\n", (int)line, at);
        at += line + (at[line] == '\n');
    }
    b->failed |= text.failed;
    xti_str_free(&text);
}

static void plan_text(const struct xt_kernel *k, struct xti_str *b)
{
    if (k->backend == XT_CPU && k->plan->n_steps)
        xti_str_add(b, "  steps     n(source,destination): n times, this many bytes further each time\n");
    if (k->backend == XT_CPU && k->plan->assembled)
        xti_str_add(b, "            put together in a buffer, part by part of the destination\n");
    if (k->backend == XT_CPU && k->plan->window.bytes)
        xti_str_addf(b, "            in registers, line by line, where %lld B repeat themselves in %lld\n",
                     (long long)k->plan->window.bytes, (long long)k->plan->window.range);
    if (k->backend == XT_CPU && k->plan->joint.n)
        xti_str_addf(b,
                     "            rows of %" PRId64 " B, from %d piece%s, are step 0; others fill between\n",
                     k->plan->joint.row, k->plan->joint.n, k->plan->joint.n == 1 ? "" : "s");
    for (int i = 0; i < k->plan->n_steps; i++)
        cpu_step_text(k, i, b);
    for (int i = 0; i < k->cuda->n_steps; i++)
        cuda_step_text(k, i, b);
    xti_cuda_prediction_text(k->cuda, b);
    add_refusals(k, refusals_text, b);
}

static void explain_text(const struct xt_kernel *k, const struct xt_kernel_info *info, struct xti_str *b)
{
    struct xti_layout o;
    xti_packed_output(k->packed, &o);
    xti_str_add(b, "  chain     ");
    xti_kernel_text(k, b);
    xti_str_addf(b, "\n  result    %s", xt_dtype_name(o.dtype));
    xti_str_list(b, o.rank, o.shape);
    xti_str_addf(b, "\n  map       %s, %d piece%s\n", info->map_class, info->n_pieces,
                 info->n_pieces == 1 ? "" : "s");
    map_text(k->map, b);
    xti_str_add(b, "  target    ");
    target_text(k, b);
    xti_str_addf(b, "\n  strategy  %s\n", info->strategy);
    plan_text(k, b);
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
    xti_str_addf(b,
                 ", \"bytes_read\": %" PRId64 ", \"bytes_written\": %" PRId64
                 ", \"strategy\": \"%s\", \"target\": \"",
                 info->bytes_read, info->bytes_written, info->strategy);
    target_text(k, b);
    xti_str_add(b, "\", \"refused\": [");
    add_refusals(k, refusals_json, b);
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
    if (!k || (flags & ~XT_JSON))
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_explain: %s",
                                    k ? "flags has a bit other than XT_JSON" : "kernel is NULL"),
                           &err);
    if (xt_kernel_get(k, &info))
        return xt_last_error()->status;
    if (flags & XT_JSON)
        explain_json(k, &info, &b);
    else
        explain_text(k, &info, &b);
    xt_status s =
        b.failed ? xti_fail(&err, XT_ENOMEM, "explanation") : xti_copy_out(b.s, b.n, buf, size, need);
    xti_str_free(&b);
    return xti_publish(s, &err);
}
