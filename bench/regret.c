/* regret.c: what the model's choices cost: each chain's chosen plan beside the best of all that a measuring
 * compile times (xt_compile_options.measure). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* The number behind the key in the part of the JSON that begins with `from`; 0: there is none. */
static double number_of(const char *json, const char *from, const char *key)
{
    const char *p = strstr(json, from);
    p = p ? strstr(p, key) : NULL;
    return p ? strtod(p + strlen(key), NULL) : 0;
}

static void text_of(const char *json, char *out, size_t n)
{
    static const char key[] = "\"choice\": {\"text\": \"";
    const char *p = strstr(json, key);
    p = p ? p + sizeof key - 1 : "\"";
    snprintf(out, n, "%.*s", (int)strcspn(p, "\""), p);
}

/* One line of the table, and how fast the chosen plan is beside the best; 0: nothing was timed. -1:
 * xt_last_error. */
static double regret_of(struct xt_ctx *ctx, const struct bench_workload *w, FILE *f)
{
    const struct xt_compile_options opt = {.size = sizeof opt, .backend = XT_CPU, .measure = 1};
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    size_t need = 0;
    double ratio = -1;
    char *json = NULL, best[96];
    if (xt_parse(w->chain, 0, NULL, &g) || xt_compile(ctx, g, &opt, &k))
        goto done;
    xt_explain(k, XT_JSON, NULL, 0, &need);
    if (!(json = malloc(need + 1)) || xt_explain(k, XT_JSON, json, need + 1, &need))
        goto done;
    double chosen = number_of(json, "\"choice\": {", "\"model_seconds\": ");
    ratio = chosen > 0 ? number_of(json, "\"choice\": {", "\"seconds\": ") / chosen : 0;
    text_of(json, best, sizeof best);
    fprintf(f, "%-22s %5.0f %11.5f %11.5f %7.2f  %s\n", w->name,
            number_of(json, "\"choice\": {", "\"tried\": "), 1e3 * chosen, 1e3 * ratio * chosen, ratio, best);
done:
    free(json);
    xt_kernel_free(k);
    xt_graph_free(g);
    return ratio;
}

int bench_regret(struct xt_ctx *ctx, const struct bench_workload *w, int n, FILE *f)
{
    double sum = 0, least = 1;
    int timed = 0;
    fprintf(f, "%-22s %5s %11s %11s %7s  %s\n", "copy", "plans", "chosen ms", "best ms", "best/ch", "best");
    for (int i = 0; i < n; i++) {
        double ratio = regret_of(ctx, &w[i], f);
        if (ratio < 0)
            return -1;
        if (!ratio)
            continue;
        least = ratio < least ? ratio : least;
        sum += log(ratio);
        timed++;
    }
    fprintf(f, "geometric mean %.3f, least %.2f\n", timed ? exp(sum / timed) : 1, least);
    return 0;
}
