/* cuda_stream.c: pointers of cudaMalloc, in a stream of the program's own: xt_run launches behind what is in
 * the stream already and returns; what comes after in the stream sees the copy.
 *
 *     cc cuda_stream.c $(pkg-config --cflags --libs xtview) -I/usr/local/cuda/include -L/usr/local/cuda/lib64
 * -lcudart
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <xt/xt.h>

enum { ROWS = 64, COLUMNS = 48, BYTES = ROWS * COLUMNS * (int)sizeof(float) };

static int failed(cudaError_t e)
{
    if (e)
        fprintf(stderr, "%s\n", cudaGetErrorString(e));
    return e != cudaSuccess;
}

int main(void)
{
    static float host[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        host[i] = (float)i;
    void *in = NULL, *out = NULL;
    cudaStream_t stream = NULL;
    if (failed(cudaMalloc(&in, BYTES)) || failed(cudaMalloc(&out, BYTES)) ||
        failed(cudaStreamCreate(&stream)) ||
        failed(cudaMemcpyAsync(in, host, BYTES, cudaMemcpyHostToDevice, stream)))
        return 1;

    /* Compiled for the device whose context is current: the one that cudaMalloc chose. */
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA};
    struct xt_ctx *ctx = NULL;
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    if (xt_ctx_new(&o, &ctx) || xt_parse("x: f32[64,48]; x.T", 0, NULL, &g) || xt_compile(ctx, g, NULL, &k) ||
        xt_run(k, out, (const void *[]){in}, stream)) {
        fprintf(stderr, "%s\n", xt_last_error()->message);
        return 1;
    }
    if (failed(cudaMemcpyAsync(host, out, BYTES, cudaMemcpyDeviceToHost, stream)) ||
        failed(cudaStreamSynchronize(stream)))
        return 1;
    printf("the result starts with %g %g %g\n", host[0], host[1], host[2]);

    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    cudaStreamDestroy(stream);
    cudaFree(in);
    cudaFree(out);
    return 0;
}
