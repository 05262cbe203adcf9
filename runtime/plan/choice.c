/* choice.c: lists the plans that are worth a trial. Layer 3. */
#include "plan/choice.h"

#include <string.h>

#include "base/env.h"
#include "plan/cost.h"
#include "plan/estimate.h"
#include "plan/program.h"

/* What is tried: each decision turned by itself, then those that often go together. Where a decision does not
 * apply the plan is the model's again, and is left out. */
/* clang-format off */
static const struct xti_choice tried[] = {
    {0}, {.first = 1}, {.first = -1}, {.stream = 1}, {.stream = -1},
    {.order = XTI_ORDER_SOURCE}, {.order = XTI_ORDER_DESTINATION}, {.order = XTI_ORDER_SUM},
    {.rows = 2}, {.rows = -2}, {.cols = 2}, {.cols = -2},
    {.rows = 2, .cols = 2}, {.rows = 2, .cols = -2}, {.rows = -2, .cols = 2}, {.rows = -2, .cols = -2},
    {.stream = 1, .order = XTI_ORDER_DESTINATION}, {.stream = 1, .order = XTI_ORDER_SUM},
    {.stream = -1, .order = XTI_ORDER_SOURCE}, {.stream = -1, .rows = 2}, {.stream = -1, .cols = 2},
};
/* clang-format on */
enum { N_TRIED = sizeof tried / sizeof *tried };

/* Then each strategy that comes next, and each trick that a plan does without. */
enum { N_PASSED = 5, N_TRICKS = XTI_TRICK_END - XTI_FIRST_TRICK };

static const char *const trick[N_TRICKS] = {
#define X(id, name) [XTI_##id - XTI_FIRST_TRICK] = name,
    XTI_TRICKS(X)
#undef X
};

const char *xti_choice_without_name(int bit)
{
    if (bit >= XTI_FIRST_TRICK && bit < XTI_TRICK_END)
        return trick[bit - XTI_FIRST_TRICK];
    return bit < XTI_N_STRATEGIES ? xti_cpu_strategies[bit].name : NULL;
}

static bool is_new(const struct xti_candidate *c, int n)
{
    for (int i = 0; i < n; i++)
        if (xti_program_same(&c[i].plan, &c[n].plan))
            return false;
    return true;
}

/* Brings c[n] to its place behind the model's and the faster ones; drops the last when there are too many. */
static int insert(struct xti_candidate *c, int n)
{
    struct xti_candidate x = c[n];
    int k = n;
    for (; k > 1 && c[k - 1].seconds > x.seconds; k--)
        c[k] = c[k - 1];
    c[k] = x;
    if (n < XTI_MAX_CHOICES)
        return n + 1;
    xti_plan_free(&c[n].plan);
    return n;
}

/* c[n] has room for the plan. Returns how many there are then; -1: out of memory. */
static int add(const struct xti_map *m, const struct xti_target *t, struct xti_choice choice,
               struct xti_candidate *c, int n)
{
    struct xti_target forced = *t;
    struct xti_estimate e;
    forced.choice = choice;
    forced.choice.without |= t->choice.without;
    if (xti_plan_make(m, &forced, &c[n].plan, NULL))
        return -1;
    xti_plan_estimate(&c[n].plan, &e);
    c[n].seconds = e.seconds;
    if (is_new(c, n))
        return insert(c, n);
    xti_plan_free(&c[n].plan);
    return n;
}

/* What comes when one strategy after the other is passed over. */
static int add_passed(const struct xti_map *m, const struct xti_target *t, struct xti_candidate *c, int n)
{
    struct xti_choice pass = {0};
    struct xti_target forced = *t;
    for (int i = 0; i < N_PASSED && n >= 0; i++) {
        struct xti_plan p;
        forced.choice.without = t->choice.without | pass.without;
        if (xti_plan_make(m, &forced, &p, NULL))
            return -1;
        if (p.n_steps)
            pass.without |= UINT64_C(1) << (xti_cost_main(&p)->strategy - p.strategies);
        xti_plan_free(&p);
        n = add(m, t, pass, c, n);
    }
    return n;
}

int xti_choice_plans(const struct xti_map *m, const struct xti_target *t,
                     struct xti_candidate c[XTI_CHOICE_ROOM])
{
    int n = 0, k = 0;
    for (int i = 0; i < N_TRIED && k >= 0; i++)
        n = (k = add(m, t, tried[i], c, n)) < 0 ? n : k;
    for (int i = XTI_FIRST_TRICK; i < XTI_TRICK_END && k >= 0; i++)
        n = (k = add(m, t, (struct xti_choice){.without = UINT64_C(1) << i}, c, n)) < 0 ? n : k;
    if (k >= 0)
        n = (k = add_passed(m, t, c, n)) < 0 ? n : k;
    return n;
}

bool xti_choice_without(const char *names, uint64_t *out)
{
    const char *s;
    size_t n;
    *out = 0;
    while ((s = xti_env_word(&names, &n))) {
        int i = 0;
        while (i < XTI_TRICK_END && !(xti_choice_without_name(i) && strlen(xti_choice_without_name(i)) == n &&
                                      !strncmp(xti_choice_without_name(i), s, n)))
            i++;
        if (i == XTI_TRICK_END)
            return false;
        *out |= (uint64_t)1 << i;
    }
    return true;
}
