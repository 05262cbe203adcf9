/* cmd_run.c: xt run: a chain on .npy files. Output appears by rename, whole, or not at all. */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npy.h"

enum { MAX_FILES = 1024 };

struct job {
    const char *chain, *out_path;
    int n;
    struct npy *in; /* [n] */
    struct npy out;
    struct xt_ctx *ctx;
    struct xt_graph *graph;
    struct xt_kernel *kernel;
};

/* Files in column-major order become row-major ones by a chain of their own: x.permute(last .. first). */
static int to_row_major(struct job *j, struct npy *a)
{
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    int64_t reversed[XT_MAX_RANK];
    int axes[XT_MAX_RANK];
    const struct xt_compile_options opt = {.size = sizeof opt, .backend = XT_CPU};
    void *data = malloc(a->bytes ? a->bytes : 1);
    for (int i = 0; i < a->rank; i++) {
        axes[i] = a->rank - 1 - i;
        reversed[i] = a->shape[a->rank - 1 - i];
    }
    xt_status s = data ? xt_graph_new(&g) : XT_ENOMEM;
    if (!s)
        s = xt_output(g, xt_permute(g, xt_input(g, "x", a->dtype, a->rank, reversed, NULL, 0), a->rank, axes),
                      NULL, 0);
    if (!s)
        s = xt_compile(j->ctx, g, &opt, &k);
    if (!s)
        s = xt_run(k, data, (const void *[]){a->data}, NULL);
    if (!s) {
        free(a->data);
        a->data = data;
        a->fortran_order = 0;
        data = NULL;
    }
    free(data);
    xt_kernel_free(k);
    xt_graph_free(g);
    return s ? fail_last("column-major input") : 0;
}

static int read_inputs(struct job *j, char **paths)
{
    char why[512];
    for (int i = 0; i < j->n; i++) {
        if (npy_read(paths[i], &j->in[i], why, sizeof why))
            return fail("%s", why);
        if (j->in[i].fortran_order && to_row_major(j, &j->in[i]))
            return EXIT_BAD_INPUT;
    }
    return 0;
}

static const char *shape_text(char *buf, size_t size, int rank, const int64_t *shape)
{
    size_t at = (size_t)snprintf(buf, size, "[");
    for (int i = 0; i < rank && at < size; i++)
        at += (size_t)snprintf(buf + at, size - at, "%s%lld", i ? "," : "", (long long)shape[i]);
    if (at < size)
        snprintf(buf + at, size - at, "]");
    return buf;
}

/* Shapes and dtypes that the files give. A raw 1- or 2-byte file (bf16, fp8) takes whatever the chain
 * declares. */
static int parse(struct job *j)
{
    struct xt_shape *given = calloc((size_t)j->n + 1, sizeof *given);
    if (!given)
        return fail("out of memory");
    for (int i = 0; i < j->n; i++) {
        given[i].dtype = j->in[i].raw ? (xt_dtype)0 : j->in[i].dtype;
        given[i].rank = j->in[i].rank;
        memcpy(given[i].shape, j->in[i].shape, sizeof given[i].shape);
    }
    xt_status s = xt_parse(j->chain, j->n, given, &j->graph);
    free(given);
    if (s)
        return fail_chain(j->chain);
    if (xt_input_count(j->graph) != j->n)
        return fail("run: inputs of the chain: %d, files given: %d", xt_input_count(j->graph), j->n);
    return 0;
}

/* A declared layout wants the flat buffer, large enough; the shapes of the others were compared by xt_parse.
 */
static int check_buffers(struct job *j)
{
    for (int i = 0; i < j->n; i++) {
        struct xt_node_info info = {.size = sizeof info};
        char file[256];
        if (xt_node_get(j->graph, xt_input_node(j->graph, i), &info))
            return fail_last("chain");
        if (j->in[i].raw && xt_dtype_bytes(info.dtype) != xt_dtype_bytes(j->in[i].dtype))
            return fail("run: input %s is %s, its file has raw elements of %zu bytes", info.name,
                        xt_dtype_name(info.dtype), xt_dtype_bytes(j->in[i].dtype));
        if (info.dense)
            continue;
        int64_t need = xt_src_min_bytes(j->kernel, i);
        shape_text(file, sizeof file, j->in[i].rank, j->in[i].shape);
        if (j->in[i].rank != 1)
            return fail(
                "run: input %s has declared strides: its file must be the flat buffer, this one is %s",
                info.name, file);
        if ((int64_t)j->in[i].bytes < need)
            return fail("run: input %s needs a buffer of %lld elements, its file has %s", info.name,
                        (long long)(need / (int64_t)xt_dtype_bytes(info.dtype)), file);
    }
    return 0;
}

static int open_flat_output(struct job *j, xt_dtype dtype, int64_t need)
{
    char why[512];
    int64_t width = (int64_t)xt_dtype_bytes(dtype);
    if (access(j->out_path, F_OK)) {
        j->out = (struct npy){.dtype = dtype, .rank = 1, .shape = {need / width}, .bytes = (size_t)need};
        j->out.data = calloc(1, (size_t)need + 1);
        return j->out.data ? 0 : fail("%s: %lld bytes: out of memory", j->out_path, (long long)need);
    }
    if (npy_read_as(j->out_path, dtype, &j->out, why, sizeof why))
        return fail("%s", why);
    if (j->out.rank != 1 || j->out.dtype != dtype || (int64_t)j->out.bytes < need)
        return fail(
            "%s: holds rank %d %s, %zu bytes; the destination is a flat %s buffer of at least %lld elements",
            j->out_path, j->out.rank, xt_dtype_name(j->out.dtype), j->out.bytes, xt_dtype_name(dtype),
            (long long)(need / width));
    return 0;
}

static int open_output(struct job *j)
{
    struct xt_output_info o = {.size = sizeof o};
    struct xt_node_info node = {.size = sizeof node};
    struct xt_kernel_info k = {.size = sizeof k};
    if (xt_output_get(j->graph, &o) || xt_node_get(j->graph, o.node, &node) || xt_kernel_get(j->kernel, &k))
        return fail_last("output");
    if (!o.dense)
        return open_flat_output(j, node.dtype, k.dst_min_bytes);
    j->out = (struct npy){.dtype = node.dtype, .rank = node.rank, .bytes = (size_t)k.bytes_written};
    memcpy(j->out.shape, node.shape, (size_t)node.rank * sizeof *node.shape);
    j->out.data = calloc(1, (size_t)k.bytes_written + 1);
    return j->out.data ? 0 : fail("%s: %lld bytes: out of memory", j->out_path, (long long)k.bytes_written);
}

static int run(struct job *j, char **paths, const struct xt_compile_options *opt)
{
    const void **srcs = calloc((size_t)j->n + 1, sizeof *srcs);
    char why[512];
    int status = srcs ? 0 : fail("out of memory");
    if (!status && xt_ctx_new(NULL, &j->ctx))
        status = fail_last("run");
    if (!status)
        status = read_inputs(j, paths);
    if (!status)
        status = parse(j);
    if (!status && xt_compile(j->ctx, j->graph, opt, &j->kernel))
        status = fail_last("compile");
    if (!status)
        status = check_buffers(j);
    if (!status)
        status = open_output(j);
    for (int i = 0; i < j->n && !status; i++)
        srcs[i] = j->in[i].data;
    if (!status && xt_run_host(j->kernel, j->out.data, srcs))
        status = fail_last("run");
    if (!status && npy_write(j->out_path, &j->out, why, sizeof why))
        status = fail("%s", why);
    free(srcs);
    return status;
}

static int cmd_run(int argc, char **argv)
{
    const char *backend = NULL, *out = NULL;
    const struct option_row rows[] = {
        {"output", 'o', "OUT.npy", "where the result goes", &out, NULL},
        {"backend", 'b', "NAME", "cpu, cuda or ref, the slow reference", &backend, NULL},
    };
    struct xt_compile_options opt = {.size = sizeof opt};
    int first = take_options(&run_command, rows, 2, argc, argv), n = argc - first;
    if (first < 0 || parse_backend(backend, &opt.backend))
        return EXIT_BAD_INPUT;
    argv += first;
    if (n < 1)
        return fail_usage(&run_command, "no chain");
    if (!out)
        return fail_usage(&run_command, "no -o");
    if (n > MAX_FILES)
        return fail_usage(&run_command, "more than %d files", MAX_FILES - 1);
    struct job j = {.chain = argv[0], .out_path = out, .n = n - 1};
    j.in = calloc((size_t)n, sizeof *j.in);
    int status = j.in ? run(&j, argv + 1, &opt) : fail("out of memory");
    for (int i = 0; i < j.n && j.in; i++)
        free(j.in[i].data);
    free(j.in);
    free(j.out.data);
    xt_kernel_free(j.kernel);
    xt_graph_free(j.graph);
    xt_ctx_free(j.ctx);
    return status;
}

const struct command run_command = {
    "run", "'CHAIN' IN.npy .. -o OUT.npy", "runs a chain on .npy files",
    "Shapes and types that the chain leaves out come from the files, in their order.\n"
    "\n"
    "  xt run 'x; x.permute(0,2,1)' in.npy -o out.npy\n"
    "  xt run 'x: u8[480,640,3]; x[::2, ::2].permute(2,0,1).pad((0,0),(8,8),(8,8))' photo.npy -o planes.npy\n"
    "  xt run 'q; k; concat(1, q, k)' q.npy k.npy -o qk.npy\n",
    cmd_run};
