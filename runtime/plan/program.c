/* program.c: prints program.h's tree from the steps of a plan. Layer 3. */
#include "plan/program.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

enum { DEEPER = 2 };

const char *const xti_cpu_op_name[XTI_CPU_OP_COUNT] = {
#define X(id, name) #name,
    XTI_CPU_OPS(X)
#undef X
};

static void line(struct xti_str *b, int indent) { xti_str_addf(b, "%*s", indent, ""); }

/* The loop that cuts loop `of`, or XTI_CUTS_ROW or _COL, into blocks; NULL: none. */
static const struct xti_loop *cutter(const struct xti_step *s, int of)
{
    for (int i = 0; i < s->n_loops; i++)
        if (s->loop[i].cuts == of)
            return &s->loop[i];
    return NULL;
}

/* cut: the loop that cuts it, or NULL. */
static void loop_text(const struct xti_loop *l, const struct xti_loop *cut, struct xti_str *b)
{
    bool blocks = l->cuts != XTI_CUTS_NONE;
    int64_t times = blocks ? l->block : 1;
    xti_str_addf(b, " %" PRId64, cut ? cut->block : blocks ? l->whole : l->n);
    if (blocks)
        xti_str_addf(b, "/%" PRId64, l->block);
    xti_str_addf(b, "(%+" PRId64 ",%+" PRId64 ")", l->s * times, l->d * times);
}

static void loops_text(const struct xti_step *s, int indent, struct xti_str *b)
{
    if (!s->n_loops)
        return;
    line(b, indent);
    xti_str_add(b, "loop");
    for (int i = 0; i < s->n_loops; i++) {
        loop_text(&s->loop[i], cutter(s, i), b);
        xti_str_add(b, s->loop[i].cuts != XTI_CUTS_NONE && s->loop[i].align ? " aligned" : "");
        xti_str_add(b, s->split == i ? " shared" : "");
    }
    xti_str_add(b, "\n");
}

/* The rows or columns of a kernel: one dim, or those that a list stands for, outermost first. */
static void side_text(const struct xti_step *s, bool rows, struct xti_str *b)
{
    const struct xti_loop *dim = &s->loop[s->n_loops + (rows ? 0 : s->list.row_dims)];
    int n = rows ? s->list.row_dims : s->list.col_dims;
    if (!n)
        loop_text(rows ? &s->row : &s->col, cutter(s, rows ? XTI_CUTS_ROW : XTI_CUTS_COL), b);
    for (int i = 0; i < n; i++)
        loop_text(&dim[i], NULL, b);
}

static void box_text(const struct xti_step *s, struct xti_str *b)
{
    side_text(s, true, b);
    xti_str_add(b, " x");
    side_text(s, false, b);
}

/* Where what a tile or a block reads next is fetched to. */
static void fetched_to(const struct xti_plan *p, struct xti_str *b)
{
    bool first = xti_target_hints(&p->target).of[XTI_FETCHES_TILES] == XTI_HINT_T0;
    xti_str_add(b, first ? ", to L1" : ", to L2");
}

/* ---- leaf */

static const struct {
    size_t member; /* a bool */
    const char *word;
} modes[] = {
    {offsetof(struct xti_step, store.stream), "stream"},
    {offsetof(struct xti_step, store.prefetch_writes), "fetch writes"},
    {offsetof(struct xti_step, store.squares), "squares of lines"},
    {offsetof(struct xti_step, store.halves), "vectors of 256 bits"},
    {offsetof(struct xti_step, store.unstaged), "unstaged"},
    {offsetof(struct xti_step, visit.gaps), "with gaps"},
};

static void leaf_text(const struct xti_plan *p, const struct xti_step *s, struct xti_str *b)
{
    bool groups = s->kernel == XTI_CPU_MIRROR || s->kernel == XTI_CPU_TURN;
    const struct xti_piece *x = &p->map.piece[s->piece];
    xti_str_addf(b, "leaf %s.%d", xti_cpu_op_name[s->kernel], s->unit);
    if (groups)
        xti_str_addf(b, "*%d", s->param);
    box_text(s, b);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (*((const bool *)s + modes[i].member))
            xti_str_addf(b, ", %s", modes[i].word);
    if (s->visit.together > 1)
        xti_str_addf(b, ", %d rows share loads", s->visit.together);
    if (s->store.stream && s->kernel == XTI_CPU_TILE)
        fetched_to(p, b);
    if (s->general)
        xti_str_addf(b, ", as far as %d divs and %d guards let", x->n_divs, x->n_guards);
    xti_str_add(b, "\n");
}

/* Loops around a kernel. */
static void nest_text(const struct xti_plan *p, const struct xti_step *s, int indent, struct xti_str *b)
{
    loops_text(s, indent, b);
    line(b, indent + (s->n_loops ? DEEPER : 0));
    leaf_text(p, s, b);
}

/* ---- stage */

/* Those that the loops from s->stage.group on go over. */
static int64_t blocks_of_a_group(const struct xti_step *s)
{
    int64_t n = 1;
    for (int i = s->stage.group; i < s->n_loops; i++)
        n *= s->loop[i].n;
    return n;
}

static void fetch_text(const struct xti_plan *p, const struct xti_step *s, int indent, struct xti_str *b)
{
    for (int i = 0; i < s->stage.blocks->n_parts; i++) {
        const struct xti_runs *in = &s->stage.blocks->part[i].in;
        line(b, indent);
        xti_str_addf(b, "fetch %" PRId64 " runs of %" PRId64, in->n_runs, in->bytes);
        fetched_to(p, b);
        xti_str_addf(b, ", for %" PRId64 " blocks, %" PRId64 " lines a call\n", blocks_of_a_group(s),
                     s->stage.blocks->fetch_lines);
    }
}

static void stage_text(const struct xti_plan *p, const struct xti_step *s, int indent, struct xti_str *b)
{
    static const char *const which[] = {"", "last columns: ", "last rows: ", "last rows and columns: "};
    line(b, indent);
    xti_str_addf(b, "stage.%d", s->unit);
    box_text(s, b);
    xti_str_add(b, s->stage.blocks->value ? ", over a fill\n" : "\n");
    fetch_text(p, s, indent + DEEPER, b);
    for (int i = 0; i < 4; i++) {
        const struct xti_block *block = &s->stage.blocks->block[i / 2][i % 2];
        if (!block->inner)
            continue;
        line(b, indent + DEEPER);
        xti_str_addf(b, "%sflush %" PRId64 " runs of %" PRId64 ", %" PRId64 " lines a call\n", which[i],
                     block->out.n_runs, block->out.bytes, block->stream_lines);
        for (int k = 0; k < s->stage.blocks->n_parts; k++)
            nest_text(p, &block->inner[k].step, indent + 2 * DEEPER, b);
    }
}

/* ---- the whole */

void xti_program_step(const struct xti_plan *p, const struct xti_step *step, int indent, struct xti_str *b)
{
    if (!step->stage.serves) {
        nest_text(p, step, indent, b);
        return;
    }
    loops_text(step, indent, b);
    stage_text(p, step, indent + (step->n_loops ? DEEPER : 0), b);
}

void xti_program_head(const struct xti_plan *p, struct xti_str *b)
{
    if (p->assembled)
        xti_str_add(b, "merge");
    else if (p->covered)
        xti_str_add(b, "over the first step");
    else if (p->n_steps > 1)
        xti_str_add(b, "seq");
}

/* Step 0 of a joint plan is that of several. */
static void pieces_text(const struct xti_plan *p, int step, struct xti_str *b)
{
    const struct xti_joint *j = &p->joint;
    xti_str_add(b, "piece");
    if (step || !j->n)
        xti_str_addf(b, " %d", p->step[step].piece);
    for (int i = 0; !step && i < j->n; i++)
        xti_str_addf(b, " %d", j->piece[i]);
    if (!step && j->n)
        xti_str_addf(b, ", rows of %" PRId64 " B", j->row);
    xti_str_add(b, "\n");
}

void xti_program_text(const struct xti_plan *p, struct xti_str *b)
{
    size_t before = b->n;
    xti_program_head(p, b);
    bool head = b->n > before;
    if (head)
        xti_str_add(b, "\n");
    for (int i = 0; i < p->n_steps; i++) {
        line(b, head ? DEEPER : 0);
        pieces_text(p, i, b);
        xti_program_step(p, &p->step[i], head ? 2 * DEEPER : DEEPER, b);
    }
}

bool xti_program_same(const struct xti_plan *a, const struct xti_plan *b)
{
    struct xti_str x = {0}, y = {0};
    xti_program_text(a, &x);
    xti_program_text(b, &y);
    bool same = x.n == y.n && (!x.n || !memcmp(x.s, y.s, x.n)) && !x.failed && !y.failed;
    xti_str_free(&x);
    xti_str_free(&y);
    return same;
}
