/* cmd_run.c: xt run: a chain on .npy files. Output appears by rename, whole, or not at all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "job.h"
#include "tool.h"

enum { MAX_FILES = 1024 };

/* Says so when the output is a file and one of the inputs. */
static void note_replaced(int n, char **inputs, const char *output)
{
    struct stat in, out;
    char shown[4 * 300];
    for (int i = 0; i < n && !stat(output, &out) && S_ISREG(out.st_mode); i++)
        if (!stat(inputs[i], &in) && in.st_dev == out.st_dev && in.st_ino == out.st_ino) {
            fprintf(stderr, "%s: note: %s is an input, too, and will be replaced\n", say_name,
                    clean(shown, sizeof shown, output));
            return;
        }
}

static bool is_column_major(const struct npy *a) { return a->fortran_order && a->rank > 1; }

/* Files in column-major order are inputs of such strides. */
static xt_status column_major(struct xt_graph *g, int input, const struct npy *a)
{
    int64_t stride[XT_MAX_RANK], s = 1;
    for (int i = 0; i < a->rank; i++) {
        stride[i] = s;
        s *= a->shape[i] ? a->shape[i] : 1;
    }
    return xt_input_layout(g, input, stride, 0);
}

/* After xt_parse failed: is it for a file that is none of what its input is declared? Then the chain is one
 * without that file. */
static int fail_given(const struct job *j, struct xt_shape *given)
{
    char declared[512], file[512];
    for (int i = 0; i < j->n; i++) {
        struct xt_graph *g = NULL;
        struct xt_node_info info = {.size = sizeof info};
        struct xt_shape own = given[i];
        given[i] = (struct xt_shape){.rank = -1};
        bool parsed = !xt_parse(j->chain, j->n, given, &g) && !xt_node_get(g, xt_input_node(g, i), &info);
        given[i] = own;
        if (parsed) {
            shape_text(declared, sizeof declared, info.dtype, info.rank, info.shape);
            shape_text(file, sizeof file, j->in[i].npy.dtype, own.rank, own.shape);
            fail_file(j->in[i].name, "holds %s, but input %s is declared %s", file, info.name, declared);
        }
        xt_graph_free(g);
        if (parsed)
            return EXIT_BAD_INPUT;
    }
    return xt_parse(j->chain, j->n, given, &(struct xt_graph *){NULL}) ? fail_chain(NULL, j->chain) : 0;
}

/* A raw 1- or 2-byte file (bf16, fp8) takes whatever the chain declares. */
int job_graph(const struct job *j, struct xt_graph **out)
{
    struct xt_shape *given = calloc((size_t)j->n + 1, sizeof *given);
    if (!given)
        return fail("out of memory");
    for (int i = 0; i < j->n; i++) {
        const struct npy *a = &j->in[i].npy;
        given[i].dtype = a->raw ? (xt_dtype)0 : a->dtype;
        given[i].rank = a->rank;
        memcpy(given[i].shape, a->shape, sizeof given[i].shape);
    }
    xt_status s = xt_parse(j->chain, j->n, given, out);
    int status = s == XT_ENOMEM ? fail_chain(NULL, j->chain) : s ? fail_given(j, given) : 0;
    free(given);
    if (status)
        return status;
    if (xt_input_count(*out) != j->n)
        return fail("the chain has %d input%s, and %d file%s given", xt_input_count(*out),
                    xt_input_count(*out) == 1 ? "" : "s", j->n, j->n == 1 ? " is" : "s are");
    for (int i = 0; i < j->n && i < xt_input_count(*out) && !s; i++) {
        struct xt_node_info info = {.size = sizeof info};
        s = xt_node_get(*out, xt_input_node(*out, i), &info);
        if (s || !is_column_major(&j->in[i].npy))
            continue;
        if (!info.dense)
            return fail_file(j->in[i].name, "is column-major, but input %s has strides of its own",
                             info.name);
        s = column_major(*out, i, &j->in[i].npy);
    }
    return s ? fail_last("run") : 0;
}

/* Shapes were compared by xt_parse; strides of the chain's own want a buffer large enough, of any shape. */
static int check_inputs(const struct job *j, const struct xt_graph *g)
{
    for (int i = 0; i < j->n; i++) {
        const struct npy *a = &j->in[i].npy;
        struct xt_node_info info = {.size = sizeof info};
        char text[512];
        if (xt_node_get(g, xt_input_node(g, i), &info))
            return fail_last("run");
        if (a->raw && xt_dtype_bytes(info.dtype) != xt_dtype_bytes(a->dtype))
            return fail_file(j->in[i].name, "input %s is %s, the file has raw elements of %zu bytes",
                             info.name, xt_dtype_name(info.dtype), xt_dtype_bytes(a->dtype));
        int64_t need = xt_src_min_bytes(j->kernel, i);
        if ((int64_t)a->bytes < need)
            return fail_file(j->in[i].name, "input %s needs a buffer of %lld elements, the file has %s",
                             info.name, (long long)(need / (int64_t)xt_dtype_bytes(info.dtype)),
                             shape_text(text, sizeof text, a->dtype, a->rank, a->shape));
    }
    return 0;
}

/* The plan of a result that is written in parts is never run: those of the parts are measured. */
static int measures(const struct job *j, const struct xt_graph *g, const struct xt_output_info *o)
{
    struct xt_node_info n = {.size = sizeof n};
    int64_t elements = 1;
    if (j->opt.backend == XT_CUDA || xt_node_get(g, o->node, &n))
        return 0;
    for (int i = 0; i < n.rank; i++)
        elements *= n.shape[i];
    return elements > JOB_PART_BYTES / (int64_t)xt_dtype_bytes(n.dtype) ? -1 : 0;
}

static int compile(struct job *j)
{
    struct xt_graph *g = NULL;
    struct xt_output_info o = {.size = sizeof o};
    j->info.size = sizeof j->info;
    j->result.size = sizeof j->result;
    int status = xt_ctx_new(NULL, &j->ctx) ? fail_last("run") : job_graph(j, &g);
    if (!status && xt_output_get(g, &o))
        status = fail_last("run");
    struct xt_compile_options opt = j->opt;
    if (!status)
        opt.measure = measures(j, g, &o);
    if (!status && (xt_compile(j->ctx, g, &opt, &j->kernel) || xt_kernel_get(j->kernel, &j->info) ||
                    xt_kernel_shape(j->kernel, -1, &j->result)))
        status = fail_last("compile");
    j->dense = o.dense;
    if (!status)
        status = check_inputs(j, g);
    xt_graph_free(g);
    return status;
}

static int open_inputs(struct job *j, char **paths)
{
    bool standard = false;
    for (int i = 0; i < j->n; i++) {
        if (!strcmp(paths[i], "-") && standard)
            return fail("run: '-' is there twice, and standard input can be read once");
        standard |= !strcmp(paths[i], "-");
        if (input_open(paths[i], &j->in[i]))
            return EXIT_BAD_INPUT;
        j->src[i] = j->in[i].data;
    }
    return 0;
}

/* To stderr: stdout may be the result. */
static void tell(const struct job *j)
{
    char text[512], moved[32];
    double seconds = bar_seconds(&j->bar), bytes = (double)j->info.bytes_read + (double)j->info.bytes_written;
    if (bytes < 1e5)
        snprintf(moved, sizeof moved, "%.0f bytes", bytes);
    else
        snprintf(moved, sizeof moved, "%.1f MB", bytes / 1e6);
    fprintf(stderr, "xt: %s by %s: %s moved in %.3g ms, %.2f GB/s; with the file %.3g ms\n",
            shape_text(text, sizeof text, j->result.dtype, j->result.rank, j->result.shape), j->info.way,
            moved, j->copy_seconds * 1e3, j->copy_seconds > 0 ? bytes / 1e9 / j->copy_seconds : 0.0,
            seconds * 1e3);
}

static int cmd_run(int argc, char **argv)
{
    struct job j = {.opt = {.size = sizeof j.opt}};
    const char *backend = NULL;
    struct files_options files = {0};
    bool verbose = false;
    const struct option_row rows[] = {
        {"output", 'o', "OUT.npy", "where the result goes; - is standard output", &j.path, NULL},
        {"force", 'f', NULL, "also to a terminal", NULL, &j.force},
        {"verbose", 'v', NULL, "says shape, way and GB/s", NULL, &verbose},
        {"backend", 'b', "cpu|cuda|ref", "where it runs; ref is the slow reference", &backend, NULL},
        FILES_ROWS(files),
        {"restart", 0, NULL, "throws away what an ended run left", NULL, &files.restart},
    };
    int first = take_options(&run_command, rows, sizeof rows / sizeof *rows, argc, argv);
    if (first < 0 || parse_backend(backend, &j.opt.backend))
        return EXIT_BAD_INPUT;
    if (first == argc)
        return fail_usage(&run_command, "no chain");
    if (!access(argv[first], F_OK))
        return fail_usage(&run_command, "the chain comes first, and '%s' is a file", argv[first]);
    j.chain = argv[first];
    j.n = argc - first - 1;
    if (fail_cut("run", j.chain, j.n, argv + first + 1))
        return EXIT_BAD_INPUT;
    if (!j.n)
        return fail_usage(&run_command, "no input file (- is standard input)");
    if (!j.path)
        return fail_usage(&run_command, "no -o (-o - is standard output)");
    if (j.n > MAX_FILES)
        return fail_usage(&run_command, "more than %d files", MAX_FILES);
    note_replaced(j.n, argv + first + 1, j.path);
    if (files_wanted(&files, j.n, argv + first + 1, j.path))
        return backend ? fail_usage(&run_command, "tiles of files are copied by the CPU: no --backend")
                       : files_run(j.chain, j.n, argv + first + 1, j.path, &files, verbose);
    j.in = calloc((size_t)j.n + 1, sizeof *j.in);
    j.src = calloc((size_t)j.n + 1, sizeof *j.src);
    int status = j.in && j.src ? open_inputs(&j, argv + first + 1) : fail("out of memory");
    if (!status)
        status = compile(&j);
    if (!status)
        status = job_write(&j);
    if (!status && verbose)
        tell(&j);
    for (int i = 0; j.in && i < j.n; i++)
        input_close(&j.in[i]);
    free(j.in);
    free(j.src);
    xt_kernel_free(j.kernel);
    xt_ctx_free(j.ctx);
    return status;
}

const struct command run_command = {
    "run", "'CHAIN' IN.npy .. -o OUT.npy", "runs a chain on .npy files and zarr arrays",
    "Shapes and types that the chain leaves out come from the files, in their order; - is standard input, "
    "once.\n"
    "With \"-> layout\" the result goes into OUT.npy as it is there, of any shape; the rest of it stays.\n"
    "With --mem, or with a directory of plain zarr chunks (OUT.zarr, OUT/), files may be larger than memory: "
    "the result is made tile by tile, in OUT.xt-data, and a run that was ended goes on when it is typed "
    "again.\n"
    "\n"
    "  xt run 'x; x.permute(0,2,1)' in.npy -o out.npy\n"
    "  xt run 'x: u8[480,640,3]; x[::2, ::2].permute(2,0,1).pad((0,0),(8,8),(8,8))' photo.npy -o planes.npy\n"
    "  xt run 'q; k; concat(1, q, k)' q.npy k.npy -o qk.npy\n"
    "  xt run 'x; x.T' huge.npy -o huge_t.zarr --mem 2G --chunks 1024,1024\n"
    "  zcat in.npy.gz | xt run 'x; x.T' - -o - | gzip > out.npy.gz\n",
    cmd_run};
