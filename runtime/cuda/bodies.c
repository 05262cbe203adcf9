/* bodies.c: which steps of a plan have a function of their own, which share one, and which become generic,
 * so that a kernel compiles in a second or two however many pieces it has. In: a plan's steps. Out: the same,
 * numbered; p->table when functions are shared. Layer 4. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cuda/family.h"
#include "cuda/segments.h"

/* What NVRTC takes for a function of the family, in the least one's time (about 15 ms on Zen 5), and what a
 * kernel may take. */
enum { LONG = 4, SHORT = 1, MOST = 24, GENERIC_PAIR = 2 };

static int cost(const struct xti_cuda_step *s)
{
    bool is_long = s->family == XTI_CUDA_TILE || s->family == XTI_CUDA_SEGMENTS ||
                   s->family == XTI_CUDA_WEAVE || s->family == XTI_CUDA_PACKED;
    return is_long ? LONG : SHORT;
}

static int64_t step_units(const struct xti_cuda_plan *p, const struct xti_cuda_step *s)
{
    int64_t units = xti_piece_numel(&p->map.piece[s->piece]);
    for (int k = 0; s->rows && k < s->rows->n_pieces; k++)
        units += s->rows->piece[k] == s->piece ? 0 : xti_piece_numel(&p->map.piece[s->rows->piece[k]]);
    return units;
}

const char *xti_cuda_plan_family(const struct xti_cuda_plan *p)
{
    const struct xti_cuda_step *best = NULL;
    for (int i = 0; i < p->n_steps; i++)
        if (!best || step_units(p, &p->step[i]) > step_units(p, best))
            best = &p->step[i];
    return best ? xti_cuda_family_name(best->family) : "empty";
}

struct sized {
    int64_t units;
    int step;
};

static int by_size(const void *a, const void *b)
{
    const struct sized *x = a, *y = b;
    return x->units != y->units ? (x->units < y->units ? 1 : -1) : (x->step > y->step) - (x->step < y->step);
}

static void make_generic(const struct xti_cuda_plan *p, int piece, struct xti_cuda_step *s)
{
    *s = (struct xti_cuda_step){.family = XTI_CUDA_GENERIC, .piece = piece, .dim_a = -1};
    xti_cuda_generic_step(p, piece, false, s);
}

/* Everything in which the body of a step differs from others but for its numbers. */
static void describe(const struct xti_cuda_plan *p, const struct xti_cuda_step *s, struct xti_str *out)
{
    struct xti_writing e = {.p = p, .tier = XTI_TIER_EXACT, .prefix = "", .structure = out};
    xti_str_free(out);
    *out = (struct xti_str){0};
    xti_write_body(&e, s);
    xti_facts_end(&e);
    out->failed |= e.numbers.failed;
    xti_str_free(&e.numbers);
}

struct bodies {
    struct xti_cuda_plan *p;
    struct xti_str known[MOST];
    int n, cost;
    bool failed;
};

/* The body of a step, a new one where it may cost so much; -1: none. */
static int find_body(struct bodies *b, const struct xti_cuda_step *s, int most)
{
    struct xti_str text = {0};
    int i = 0;
    describe(b->p, s, &text);
    b->failed |= text.failed;
    while (i < b->n && (b->known[i].n != text.n || memcmp(b->known[i].s, text.s, text.n)))
        i++;
    if (i == b->n && !b->failed && b->n < MOST && b->cost + cost(s) <= most) {
        b->known[b->n++] = text;
        b->cost += cost(s);
        return i;
    }
    xti_str_free(&text);
    return i < b->n ? i : -1;
}

/* The largest steps keep their families; pieces of the others go alone. order: [n_steps], done: [n_pieces],
 * zeros. */
static void share(struct bodies *b, struct sized *order, bool *done)
{
    struct xti_cuda_plan *p = b->p;
    int n = p->n_steps, kept = 0;
    for (int i = 0; i < n; i++)
        order[i] = (struct sized){step_units(p, &p->step[i]), i};
    qsort(order, (size_t)n, sizeof *order, by_size);
    for (int i = 0; i < n; i++) {
        struct xti_cuda_step *s = &p->step[order[i].step];
        if (s->family == XTI_CUDA_GENERIC)
            make_generic(p, s->piece, s);
        s->body = find_body(b, s, s->family == XTI_CUDA_GENERIC ? MOST : MOST - GENERIC_PAIR);
    }
    for (int i = 0; i < n; i++) {
        struct xti_cuda_step s = p->step[i];
        done[s.piece] |= s.body >= 0;
        for (int k = 0; k < (s.rows ? s.rows->n_pieces : 0); k++)
            done[s.rows->piece[k]] |= s.body >= 0;
        if (s.body >= 0)
            p->step[kept++] = s;
    }
    p->n_steps = kept;
    for (int i = 0; i < p->map.n_pieces; i++)
        if (!done[i]) {
            make_generic(p, i, &p->step[p->n_steps]);
            p->step[p->n_steps].body = find_body(b, &p->step[p->n_steps], MOST);
            p->n_steps++;
        }
}

/* Numbers bodies by their first step. */
static void number_bodies(struct xti_cuda_plan *p)
{
    int as[MOST];
    p->n_bodies = 0;
    for (int i = 0; i < MOST; i++)
        as[i] = -1;
    for (int i = 0; i < p->n_steps; i++) {
        int *to = &as[p->step[i].body];
        *to = *to < 0 ? p->n_bodies++ : *to;
        p->step[i].body = *to;
    }
}

xt_status xti_cuda_choose_bodies(struct xti_cuda_plan *p, struct xti_err *err)
{
    struct bodies b = {.p = p};
    int sum = 0;
    for (int i = 0; i < p->n_steps; i++) {
        p->step[i].body = i;
        sum += cost(&p->step[i]);
    }
    p->n_bodies = p->n_steps;
    p->table = sum > MOST;
    if (!p->table)
        return XT_OK;
    struct sized *order = xti_alloc_array((size_t)p->n_steps, sizeof *order);
    bool *done = xti_alloc_array((size_t)p->map.n_pieces, sizeof *done);
    b.failed = !order || !done;
    if (!b.failed)
        share(&b, order, done);
    xti_free(order);
    xti_free(done);
    for (int i = 0; i < b.n; i++)
        xti_str_free(&b.known[i]);
    if (b.failed)
        return xti_fail(err, XT_ENOMEM, "functions of %d pieces", p->map.n_pieces);
    number_bodies(p);
    return XT_OK;
}
