/* explain.c: what a chain became, for people. */
#include <stdbool.h>
#include <stdio.h>
#include <xt/xt.h>

int main(int argc, char **argv)
{
    const char *chain = argc > 1 ? argv[1] : "x: f32[4,6]; x.permute(1,0)[:, ::-1].reshape(8,3)";
    struct xt_ctx *ctx = NULL;
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    char text[8192];
    bool ok = !xt_ctx_new(NULL, &ctx) && !xt_parse(chain, 0, NULL, &g) && !xt_compile(ctx, g, NULL, &k) &&
              !xt_explain(k, 0, text, sizeof text, NULL);
    if (ok)
        fputs(text, stdout);
    else
        fprintf(stderr, "%s\n", xt_last_error()->message);
    xt_kernel_free(k); /* every free accepts NULL */
    xt_graph_free(g);
    xt_ctx_free(ctx);
    return ok ? 0 : 1;
}
