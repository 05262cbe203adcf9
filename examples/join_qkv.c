/* join_qkv.c: three projections [batch, length, heads * width] become one tensor [3, batch, heads, length,
 * width]: joined and split into heads in one copy of three inputs. */
#include <stdint.h>
#include <stdio.h>
#include <xt/xt.h>

enum { B = 2, S = 3, H = 2, D = 2, N = B * S * H * D };

static const char chain[] = "q; k; v; stack(0, q, k, v).rearrange(\"n b s (h d) -> n b h s d\", h=2)";

int main(void)
{
    struct xt_ctx *ctx = NULL;
    struct xt_graph *g = NULL;
    struct xt_kernel *copy = NULL;
    uint16_t q[N], k[N], v[N], joined[3 * N];
    for (int i = 0; i < N; i++)
        q[i] = (uint16_t)(100 + i), k[i] = (uint16_t)(200 + i), v[i] = (uint16_t)(300 + i);

    /* Types and shapes that the chain leaves open are given, one an input. */
    const struct xt_shape one = {XT_U16, 3, {B, S, H * D}}, given[] = {one, one, one};
    if (xt_ctx_new(NULL, &ctx) || xt_parse(chain, 3, given, &g) || xt_compile(ctx, g, NULL, &copy) ||
        xt_run(copy, joined, (const void *[]){q, k, v}, NULL)) {
        fprintf(stderr, "%s\n", xt_last_error()->message);
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        const uint16_t *head = joined + ((i * B + 0) * H + 1) * S * D;
        printf("%c of batch 0, head 1: %d %d  %d %d  %d %d\n", "qkv"[i], head[0], head[1], head[2], head[3],
               head[4], head[5]);
    }
    xt_kernel_free(copy);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    return 0;
}
