/* plan_text.c: a plan for people: steps, their loops, and why other ways were refused. Layer 6. */
#include "api/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/describe.h"
#include "cuda/segments.h"
#include "plan/program.h"

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

enum { STEP_INDENT = 12 };

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

/* Its part of the program (plan/program.h) below it. */
static void cpu_step_text(const struct xt_kernel *k, int i, struct xti_str *b)
{
    const struct xti_step *s = &k->plan->step[i];
    xti_str_addf(b, "  step %-4d ", i);
    pieces_text(k, i, b);
    xti_str_addf(b, "%s\n", s->strategy->name);
    xti_program_step(k->plan, s, STEP_INDENT, b);
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
    struct xti_str head = {0};
    xti_program_head(p, &head);
    if (p->n_steps)
        xti_str_add(b,
                    "  program   n(source,destination): n times, this many bytes further each time; n/b: in "
                    "blocks of b\n");
    if (head.n)
        xti_str_addf(b, "            %s\n", head.s);
    b->failed |= head.failed;
    xti_str_free(&head);
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
