/* plan_text.c: a plan for people: steps, their loops, and why other ways were refused. Layer 6. */
#include "api/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/describe.h"
#include "cuda/segments.h"
#include "plan/loops.h"

/* ---- refusals: lines "piece 0: rows: inner run of 4 B is a unit" */

struct refusal {
    int piece, strategy_chars, reason_chars;
    const char *strategy, *reason;
};

/* Reads the line at *at; false at the end. */
static bool next_refusal(const char **at, struct refusal *r)
{
    const char *line = *at;
    if (!line || !*line)
        return false;
    *r = (struct refusal){.piece = atoi(line + strlen("piece "))};
    r->strategy = strchr(line, ':') + 2;
    r->strategy_chars = (int)strcspn(r->strategy, ":");
    r->reason = r->strategy + r->strategy_chars + 2;
    r->reason_chars = (int)strcspn(r->reason, "\n");
    *at = r->reason + r->reason_chars;
    *at += **at == '\n';
    return true;
}

static bool same_reason(const struct refusal *a, const struct refusal *b)
{
    return a->piece == b->piece && a->reason_chars == b->reason_chars &&
           !memcmp(a->reason, b->reason, (size_t)a->reason_chars);
}

/* Is a line from `at` up to `end` of the same piece and for the same reason? */
static bool given(const char *at, const char *end, const struct refusal *r)
{
    struct refusal other;
    while (at < end && next_refusal(&at, &other))
        if (same_reason(&other, r))
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
        xti_str_addf(b, "  %-9s piece %d: %.*s", head, r.piece, r.strategy_chars, r.strategy);
        for (const char *at = next; next_refusal(&at, &other) && other.piece == r.piece;)
            if (same_reason(&other, &r))
                xti_str_addf(b, ", %.*s", other.strategy_chars, other.strategy);
        xti_str_addf(b, ": %.*s\n", r.reason_chars, r.reason);
        head = "";
    }
}

static void refusals_json(const char *refused, struct xti_str *b)
{
    const char *at = refused;
    struct refusal r;
    for (const char *comma = ""; next_refusal(&at, &r); comma = ", ") {
        char reason[256];
        int n = r.reason_chars < (int)sizeof reason - 1 ? r.reason_chars : (int)sizeof reason - 1;
        memcpy(reason, r.reason, (size_t)n);
        reason[n] = 0;
        xti_str_addf(b, "%s{\"piece\": %d, \"strategy\": \"%.*s\", \"reason\": ", comma, r.piece,
                     r.strategy_chars, r.strategy);
        xti_str_json(b, reason);
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

void xti_explain_refusals_json(const struct xt_kernel *k, struct xti_str *b)
{
    add_refusals(k, refusals_json, b);
}

/* ---- steps */

/* The loop that cuts loop `of`, or XTI_CUTS_ROW or _COL, into blocks; NULL: none. */
static const struct xti_loop *cutter(const struct xti_step *s, int of)
{
    for (int i = 0; i < s->n_loops; i++)
        if (s->loop[i].cuts == of)
            return &s->loop[i];
    return NULL;
}

/* "32(+64,-8)"; of one that goes from block to block "2000/64(+4096,-512)". cut: the loop that cuts it, or
 * NULL. */
static void loop_text(const struct xti_loop *l, const struct xti_loop *cut, struct xti_str *b)
{
    bool blocks = l->cuts != XTI_CUTS_NONE;
    int64_t times = blocks ? l->block : 1;
    if (blocks)
        xti_str_addf(b, "%" PRId64 "/%" PRId64, l->whole, l->block);
    else
        xti_str_addf(b, "%" PRId64, cut ? cut->block : l->n);
    xti_str_addf(b, "(%+" PRId64 ",%+" PRId64 ")", l->s * times, l->d * times);
}

/* The rows or columns of a kernel: one dim, or those that a list stands for, outermost first. */
static void side_text(const struct xti_step *s, bool rows, struct xti_str *b)
{
    const struct xti_loop *dim = &s->loop[s->n_loops + (rows ? 0 : s->n_row_dims)];
    int n = rows ? s->n_row_dims : s->n_col_dims;
    if (!n)
        loop_text(rows ? &s->row : &s->col, cutter(s, rows ? XTI_CUTS_ROW : XTI_CUTS_COL), b);
    for (int i = 0; i < n; i++) {
        xti_str_add(b, i ? " " : "");
        loop_text(&dim[i], NULL, b);
    }
}

static void buffered_text(const struct xti_step *s, struct xti_str *b)
{
    const struct xti_block *block = &s->blocks->block[0][0];
    xti_str_addf(b, "; blocks by %s in a buffer, runs of %" PRId64 " B", block->inner->step.strategy->name,
                 s->blocks->part->in.bytes);
    for (int part = 1; part < s->blocks->n_parts; part++)
        xti_str_addf(b, "%s %" PRId64 " B", part + 1 < s->blocks->n_parts ? "," : " and",
                     s->blocks->part[part].in.bytes);
    xti_str_addf(b, " fetched, of %" PRId64 " B written", block->out.bytes);
}

/* Where a piece of the plan is among those of the kernel's map, or -1: rows that are put together from
 * several pieces leave fills between them that the map has not. */
static int map_piece(const struct xt_kernel *k, int piece)
{
    const struct xti_piece *x = &k->plan->map.piece[piece];
    if (!k->plan->joint.n)
        return piece;
    for (int i = 0; i < k->map->n_pieces; i++)
        if (x->src >= 0 && k->map->piece[i].src == x->src && k->map->piece[i].doff == x->doff)
            return i;
    return -1;
}

static void pieces_text(const struct xt_kernel *k, int step, struct xti_str *b)
{
    const struct xti_joint *j = &k->plan->joint;
    int piece = map_piece(k, k->plan->step[step].piece);
    if (step == 0 && j->n > 1) {
        xti_str_add(b, "pieces ");
        for (int i = 0; i < j->n; i++)
            xti_str_addf(b, "%d%s", map_piece(k, j->piece[i]), i + 1 < j->n ? ", " : ": ");
    } else if (piece >= 0) {
        xti_str_addf(b, "piece %d: ", piece);
    } else {
        xti_str_add(b, "between: ");
    }
}

static void cpu_step_text(const struct xt_kernel *k, int i, struct xti_str *b)
{
    const struct xti_step *s = &k->plan->step[i];
    bool groups = s->kernel == XTI_CPU_MIRROR || s->kernel == XTI_CPU_TURN;
    xti_str_addf(b, "  step %-4d ", i);
    pieces_text(k, i, b);
    xti_str_addf(b, "%s, ", s->strategy->name);
    if (groups)
        xti_str_addf(b, "groups of %d ", s->param);
    xti_str_addf(b, "%d-byte units%s; kernel ", s->unit, s->stream ? ", streaming stores" : "");
    side_text(s, true, b);
    xti_str_add(b, " x ");
    side_text(s, false, b);
    xti_str_add(b, s->n_loops ? "; loops" : "");
    for (int j = 0; j < s->n_loops; j++) {
        xti_str_add(b, " ");
        loop_text(&s->loop[j], cutter(s, j), b);
    }
    if (s->uneven)
        xti_str_add(b, s->keeps ? "; kept in the first cache" : "; in uneven steps");
    if (s->collect)
        xti_str_addf(b, "; rows put together in a buffer, runs of %" PRId64 " B fetched", s->fetch.bytes);
    if (s->source_run)
        xti_str_addf(b, "; runs of %" PRId64 " B fetched a tile ahead", s->source_run);
    if (s->buffered)
        buffered_text(s, b);
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

/* What the steps of a CPU plan have in common. */
static void together_text(const struct xti_plan *p, struct xti_str *b)
{
    if (p->n_steps)
        xti_str_add(b, "  steps     n(source,destination): n times, this many bytes further each time; "
                       "n/b: in blocks of b\n");
    if (p->assembled)
        xti_str_add(b, "            put together in a buffer, part by part of the destination\n");
    if (p->window.bytes)
        xti_str_addf(b, "            in registers, line by line, where %lld B repeat themselves in %lld\n",
                     (long long)p->window.bytes, (long long)p->window.range);
    if (p->joint.n)
        xti_str_addf(b,
                     "            rows of %" PRId64 " B, from %d piece%s, are step 0; others fill between\n",
                     p->joint.row, p->joint.n, p->joint.n == 1 ? "" : "s");
}

void xti_explain_plan(const struct xt_kernel *k, bool why, struct xti_str *b)
{
    bool cpu = k->backend == XT_CPU;
    int n = cpu ? k->plan->n_steps : k->cuda->n_steps;
    int shown = why || n <= XTI_EXPLAIN_MOST ? n : XTI_EXPLAIN_MOST;
    if (cpu)
        together_text(k->plan, b);
    for (int i = 0; i < shown; i++)
        (cpu ? cpu_step_text : cuda_step_text)(k, i, b);
    if (shown < n)
        xti_str_addf(b, "            .. and %d more: --why shows all\n", n - shown);
    xti_cuda_prediction_text(k->cuda, b);
    if (why)
        add_refusals(k, refusals_text, b);
}
