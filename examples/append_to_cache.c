/* append_to_cache.c: a KV cache that grows by a position a step: one kernel, whose destination is a slice of
 * the cache. Every step hands it a pointer that is one position further on. */
#include <stdint.h>
#include <stdio.h>
#include <xt/xt.h>

enum { HEADS = 2, ROOM = 6, WIDTH = 4 }; /* the cache: [HEADS, ROOM, WIDTH] */

/* A step's keys [1, HEADS, WIDTH] to a position of every head: heads are ROOM * WIDTH = 24 elements apart. */
static const char chain[] = "new: u16[1,2,4]; new.permute(1,0,2) -> [2,1,4]:[24,4,1]";

int main(void)
{
    struct xt_ctx *ctx = NULL;
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    uint16_t cache[HEADS * ROOM * WIDTH] = {0};
    if (xt_ctx_new(NULL, &ctx) || xt_parse(chain, 0, NULL, &g) || xt_compile(ctx, g, NULL, &k))
        goto failed;
    for (int position = 0; position < 3; position++) {
        uint16_t fresh[HEADS * WIDTH];
        for (int i = 0; i < HEADS * WIDTH; i++)
            fresh[i] = (uint16_t)(10 * (position + 1) + i);
        if (xt_run(k, cache + position * WIDTH, (const void *[]){fresh}, NULL))
            goto failed;
    }
    for (int row = 0; row < HEADS * ROOM; row++)
        printf("%2d %2d %2d %2d%s", cache[WIDTH * row], cache[WIDTH * row + 1], cache[WIDTH * row + 2],
               cache[WIDTH * row + 3], row % ROOM == ROOM - 1 ? "\n" : "   ");

    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    return 0;
failed:
    fprintf(stderr, "%s\n", xt_last_error()->message);
    return 1;
}
