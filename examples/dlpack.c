/* dlpack.c: tensors that other libraries hand out, by DLPack. A bitmap lies bottom-up in memory, three bytes
 * a pixel: as a tensor [row, column, colour] its first row is the last one in memory, and the stride of rows
 * is negative. It becomes planes, top-down, in a tensor that somebody else allocated. */
#include <stdint.h>
#include <stdio.h>
#include <xt/dlpack.h>

enum { H = 3, W = 4, PITCH = 16 }; /* rows of a bitmap are padded to multiples of 4 bytes */

int main(void)
{
    uint8_t bitmap[H * PITCH], planes[3 * H * W];
    for (int row = 0; row < H; row++)
        for (int i = 0; i < 3 * W; i++)
            bitmap[(H - 1 - row) * PITCH + i] = (uint8_t)(100 * (i % 3) + 10 * row + i / 3);

    int64_t in_shape[] = {H, W, 3}, in_strides[] = {-PITCH, 3, 1};
    int64_t out_shape[] = {3, H, W}, out_strides[] = {H * W, W, 1};
    DLTensor in = {.data = bitmap,
                   .device = {kDLCPU, 0},
                   .ndim = 3,
                   .dtype = {kDLUInt, 8, 1},
                   .shape = in_shape,
                   .strides = in_strides,
                   .byte_offset = (H - 1) * PITCH};
    DLTensor out = {.data = planes,
                    .device = {kDLCPU, 0},
                    .ndim = 3,
                    .dtype = {kDLUInt, 8, 1},
                    .shape = out_shape,
                    .strides = out_strides};

    struct xt_ctx *ctx = NULL;
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    if (xt_ctx_new(NULL, &ctx) || xt_graph_new(&g))
        return 1;
    xt_node x = xt_permute(g, xt_input_dl(g, "x", &in), 3, (const int[]){2, 0, 1});
    xt_output_dl(g, x, &out);
    if (xt_compile(ctx, g, NULL, &k) ||
        xt_run(k, xt_dl_pointer(&out), (const void *[]){xt_dl_pointer(&in)}, NULL)) {
        fprintf(stderr, "%s\n", xt_last_error()->message); /* a failed builder is reported here too */
        return 1;
    }
    for (int row = 0; row < 3 * H; row++)
        printf("%3d %3d %3d %3d%s", planes[W * row], planes[W * row + 1], planes[W * row + 2],
               planes[W * row + 3], row % H == H - 1 ? "\n" : "   ");

    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    return 0;
}
