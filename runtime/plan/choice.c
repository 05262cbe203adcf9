/* choice.c: lists the plans that are worth a trial. Layer 3. */
#include "plan/choice.h"

#include "plan/estimate.h"
#include "plan/program.h"

/* What is tried: each decision turned by itself, then those that often go together. Where a decision does not
 * apply the plan is the model's again, and is left out. */
static const struct xti_choice tried[] = {
    {0},
    {.burst = 1},
    {.burst = -1},
    {.first = 1},
    {.first = -1},
    {.stream = 1},
    {.stream = -1},
    {.order = XTI_ORDER_SOURCE},
    {.order = XTI_ORDER_DESTINATION},
    {.order = XTI_ORDER_SUM},
    {.rows = 2},
    {.rows = -2},
    {.cols = 2},
    {.cols = -2},
    {.strategy = 1},
    {.rows = 2, .cols = 2},
    {.rows = 2, .cols = -2},
    {.rows = -2, .cols = 2},
    {.rows = -2, .cols = -2},
    {.stream = 1, .order = XTI_ORDER_DESTINATION},
    {.stream = 1, .order = XTI_ORDER_SUM},
    {.stream = -1, .order = XTI_ORDER_SOURCE},
    {.stream = -1, .rows = 2},
    {.stream = -1, .cols = 2},
};
enum { N_TRIED = sizeof tried / sizeof *tried, MOST_BLOCKS = 2, MOST_PASSED = 1 };

static bool within(int n, int most) { return n >= -most && n <= most; }

bool xti_choice_valid(struct xti_choice c)
{
    return within(c.stream, 1) && c.order >= 0 && c.order < XTI_ORDER_COUNT && within(c.rows, MOST_BLOCKS) &&
           within(c.cols, MOST_BLOCKS) && c.strategy >= 0 && c.strategy <= MOST_PASSED &&
           within(c.burst, 1) && within(c.first, 1);
}

bool xti_choice_is_model(struct xti_choice c)
{
    return !c.stream && !c.order && !c.rows && !c.cols && !c.strategy && !c.burst && !c.first;
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

int xti_choice_plans(const struct xti_map *m, const struct xti_target *t,
                     struct xti_candidate c[XTI_CHOICE_ROOM])
{
    int n = 0;
    for (int i = 0; i < N_TRIED; i++) {
        struct xti_target forced = *t;
        struct xti_estimate e;
        forced.choice = tried[i];
        if (xti_plan_make(m, &forced, &c[n].plan, NULL))
            break;
        xti_plan_estimate(&c[n].plan, &e);
        c[n].seconds = e.seconds;
        if (is_new(c, n))
            n = insert(c, n);
        else
            xti_plan_free(&c[n].plan);
    }
    return n;
}

void xti_choice_text(struct xti_choice c, struct xti_str *b)
{
    static const char *const order[XTI_ORDER_COUNT] = {"", "source order", "destination order",
                                                       "order by both"};
    const char *comma = "";
    if (xti_choice_is_model(c))
        xti_str_add(b, "the model's");
    if (c.strategy)
        xti_str_addf(b, "strategy passed over: %d", c.strategy), comma = ", ";
    if (c.stream)
        xti_str_addf(b, "%s%s", comma, c.stream > 0 ? "streaming stores" : "no streaming stores"),
            comma = ", ";
    if (c.order)
        xti_str_addf(b, "%s%s", comma, order[c.order]), comma = ", ";
    if (c.burst)
        xti_str_addf(b, "%s%s", comma, c.burst > 0 ? "lines in pairs" : "lines alone"), comma = ", ";
    if (c.first)
        xti_str_addf(b, "%s%s", comma,
                     c.first > 0 ? "fetched to the first cache" : "fetched to the second cache"),
            comma = ", ";
    if (c.rows)
        xti_str_addf(b, "%srows %s %d", comma, c.rows > 0 ? "x" : "/", 1 << (c.rows < 0 ? -c.rows : c.rows)),
            comma = ", ";
    if (c.cols)
        xti_str_addf(b, "%scolumns %s %d", comma, c.cols > 0 ? "x" : "/",
                     1 << (c.cols < 0 ? -c.cols : c.cols));
}
