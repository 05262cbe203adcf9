/* append_to_cache.c: new keys go into their slice of a larger KV cache: a destination with its own strides.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <xt/xt.h>

/* cache: [heads 2, length 6, width 4]; the new rows are number 4 and 5 of every head. */
static const char chain[] = "new: u16[2,2,4]; new.permute(1,0,2) -> [2,2,4]:[24,4,1]+16";

int main(void)
{
    struct xt_ctx *ctx = NULL;
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    uint16_t fresh[16], cache[48];
    for (int i = 0; i < 16; i++)
        fresh[i] = (uint16_t)(i + 1);
    memset(cache, 0, sizeof cache);

    if (xt_ctx_new(NULL, &ctx) || xt_parse(chain, 0, NULL, &g) || xt_compile(ctx, g, NULL, &k) ||
        xt_run(k, cache, (const void *[]){fresh}, NULL)) {
        fprintf(stderr, "%s\n", xt_last_error()->message);
        return 1;
    }
    for (int row = 0; row < 12; row++)
        printf("%s%2d %2d %2d %2d%s", row % 6 ? "  " : "", cache[4 * row], cache[4 * row + 1],
               cache[4 * row + 2], cache[4 * row + 3], row % 6 == 5 ? "\n" : " ");

    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    return 0;
}
