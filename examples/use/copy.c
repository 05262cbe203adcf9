/* copy.c: a program that uses an installed xtview. See Makefile and CMakeLists.txt beside it. */
#include <stdio.h>
#include <xt/xt.h>

int main(void)
{
    struct xt_ctx *ctx = NULL;
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    const int src[6] = {1, 2, 3, 4, 5, 6};
    int dst[6], status = 1;
    const void *srcs[] = {src};
    if (xt_ctx_new(NULL, &ctx) || xt_parse("x: i32[2,3]; x.permute(1,0)", 0, NULL, &g) ||
        xt_compile(ctx, g, NULL, &k) || xt_run(k, dst, srcs, NULL)) {
        fprintf(stderr, "%s\n", xt_last_error()->message);
        goto done;
    }
    printf("xtview %s: %d %d %d %d %d %d\n", xt_version(), dst[0], dst[1], dst[2], dst[3], dst[4], dst[5]);
    status = 0;
done:
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    return status;
}
