/* split_heads.c: attention's head split, x.reshape(b,s,h,d).permute(0,2,1,3), as one copy, built by calls. */
#include <stdio.h>
#include <stdlib.h>
#include <xt/xt.h>

enum { B = 2, S = 5, H = 3, D = 4 };

int main(void)
{
    struct xt_ctx *ctx = NULL;
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    float in[B * S * H * D], out[B * S * H * D];
    for (int i = 0; i < B * S * H * D; i++)
        in[i] = (float)i;

    xt_ctx_new(NULL, &ctx);
    xt_graph_new(&g);
    xt_node x = xt_input(g, "x", XT_F32, 3, (const int64_t[]){B, S, H * D}, NULL, 0);
    x = xt_reshape(g, x, 4, (const int64_t[]){B, S, H, D});
    x = xt_permute(g, x, 4, (const int[]){0, 2, 1, 3});
    xt_output(g, x, NULL, 0);
    if (xt_compile(ctx, g, NULL, &k) || xt_run(k, out, (const void *[]){in}, NULL)) {
        fprintf(stderr, "%s\n", xt_last_error()->message); /* a failed builder is reported here too */
        return 1;
    }
    printf("head 1 of batch 0 starts with %g %g %g %g\n", out[S * D], out[S * D + 1], out[S * D + 2],
           out[S * D + 3]);

    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    return 0;
}
