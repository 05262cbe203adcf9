/* estimate.c: what a kernel's run should take, and whether its plan was measured. Layer 6. */
#include "api/api.h"

#include <math.h>

#include "plan/choice.h"
#include "plan/estimate.h"

double xt_kernel_estimate(const struct xt_kernel *k)
{
    struct xti_estimate e = {0};
    if (k && k->backend == XT_CPU && k->map->n_pieces)
        xti_plan_estimate(k->plan, &e);
    return e.seconds;
}

/* Behind a comma, but for the first from byte `from` on. */
static void add_words(struct xti_str *b, size_t from, const char *words, const char *name)
{
    xti_str_addf(b, "%s%s%s", b->n > from ? ", " : "", words, name);
}

static void add_blocks(struct xti_str *b, size_t from, const char *words, int by)
{
    if (!by)
        return;
    add_words(b, from, words, by > 0 ? " x" : " /");
    xti_str_addf(b, " %d", 1 << (by < 0 ? -by : by));
}

void xti_choice_text(struct xti_choice c, struct xti_str *b)
{
    static const char *const order[XTI_ORDER_COUNT] = {"", "source order", "destination order",
                                                       "order by both"};
    size_t from = b->n;
    for (int i = 0; i < XTI_TRICK_END; i++)
        if (c.without >> i & 1 && xti_choice_without_name(i))
            add_words(b, from, "without ", xti_choice_without_name(i));
    if (c.stream)
        add_words(b, from, c.stream > 0 ? "" : "no ", "streaming stores");
    if (c.order)
        add_words(b, from, order[c.order], "");
    if (c.first)
        add_words(b, from, "fetched to the ", c.first > 0 ? "first cache" : "second cache");
    add_blocks(b, from, "rows", c.rows);
    add_blocks(b, from, "columns", c.cols);
    if (b->n == from)
        xti_str_add(b, "by estimate");
}

/* "3.12 ms", three digits. */
static void add_time(double seconds, struct xti_str *b)
{
    static const char *const unit[] = {"s", "ms", "us", "ns"};
    int i = 0;
    for (; seconds < 1 && i < 3; i++)
        seconds *= 1000;
    xti_str_addf(b, "%.*f %s", seconds < 10 ? 2 : seconds < 100 ? 1 : 0, seconds, unit[i]);
}

static void add_choice(const struct xti_measured *m, struct xti_str *b)
{
    xti_choice_text(m->choice, b);
    if (!m->tried)
        return;
    xti_str_addf(b, "; measured: of %d plans %s", m->tried,
                 xti_choice_is_model(m->choice) ? "the best, " : "");
    add_time(1e-9 * (double)m->chosen_ns, b);
    if (!xti_choice_is_model(m->choice)) {
        xti_str_add(b, ", the model's ");
        add_time(1e-9 * (double)m->model_ns, b);
    }
}

void xti_estimate_text(const struct xt_kernel *k, struct xti_str *b)
{
    struct xti_estimate e;
    if (k->backend != XT_CPU || !k->map->n_pieces)
        return;
    xti_plan_estimate(k->plan, &e);
    xti_str_add(b, "  choice    ");
    add_choice(&k->shared->measured, b);
    xti_str_add(b, "\n  estimate  ");
    add_time(e.seconds, b);
    xti_str_addf(b, ", %.0f line%s of 64 B read, %.0f written: %.1f GB/s\n", e.lines_read,
                 round(e.lines_read) == 1 ? "" : "s", e.lines_written,
                 64e-9 * (round(e.lines_read) + round(e.lines_written)) / e.seconds);
}

void xti_estimate_json(const struct xt_kernel *k, struct xti_str *b)
{
    struct xti_estimate e;
    struct xti_str choice = {0};
    const struct xti_measured *m = &k->shared->measured;
    if (k->backend != XT_CPU || !k->map->n_pieces) {
        xti_str_add(b, ", \"choice\": null, \"estimate\": null");
        return;
    }
    xti_plan_estimate(k->plan, &e);
    xti_choice_text(m->choice, &choice);
    xti_str_addf(b, ", \"choice\": {\"text\": \"%s\", \"tried\": %d", choice.s ? choice.s : "", m->tried);
    if (m->tried)
        xti_str_addf(b, ", \"seconds\": %.3e, \"model_seconds\": %.3e", 1e-9 * (double)m->chosen_ns,
                     1e-9 * (double)m->model_ns);
    xti_str_addf(b,
                 "}, \"estimate\": {\"seconds\": %.3e, \"lines_read\": %.0f, \"lines_owned\": %.0f, "
                 "\"lines_written\": %.0f}",
                 e.seconds, e.lines_read, e.lines_owned, e.lines_written);
    b->failed |= choice.failed;
    xti_str_free(&choice);
}
