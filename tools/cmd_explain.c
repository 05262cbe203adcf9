/* cmd_explain.c: xt explain and xt emit: what a chain becomes, without running it. */
#include "files.h"
#include "job.h"
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xt/xt_shard.h>

/* The chain alone, or on n files, of which it takes shapes, types and orders. */
static int parse(const char *chain, int n, char **paths, struct xt_graph **g)
{
    struct job j = {.chain = chain, .n = n};
    int status = 0;
    if (!n)
        return xt_parse(chain, 0, NULL, g) ? fail_chain(NULL, chain) : 0;
    if (!(j.in = calloc((size_t)n, sizeof *j.in)))
        return fail("out of memory");
    for (int i = 0; i < n && !status; i++)
        status = input_open(paths[i], &j.in[i]);
    if (!status)
        status = job_graph(&j, g);
    for (int i = 0; i < n; i++)
        input_close(&j.in[i]);
    free(j.in);
    return status;
}

/* Parses and compiles; *k and *ctx are the caller's to free, also on failure. */
static int compile(const char *chain, int n, char **paths, const struct xt_compile_options *opt,
                   struct xt_ctx **ctx, struct xt_kernel **k)
{
    struct xt_graph *g = NULL;
    int status = parse(chain, n, paths, &g);
    if (!status && (xt_ctx_new(NULL, ctx) || xt_compile(*ctx, g, opt, k)))
        status = xt_last_error()->status == XT_ENODEVICE && !opt->arch
                     ? fail("compile: %s; --arch sm_90 needs none", xt_last_error()->message)
                     : fail_last("compile");
    xt_graph_free(g);
    return status;
}

static int write_svg(const struct xt_kernel *k, const char *path)
{
    char *s = explanation(&(struct explained){.kernel = k, .flags = XT_SVG});
    int status = s ? write_file(path, s, strlen(s)) : EXIT_BAD_INPUT;
    free(s);
    return status;
}

/* The line below "estimate". */
static int print_time(const struct xt_kernel *k)
{
    struct xt_kernel_info info = {.size = sizeof info};
    double estimate = xt_kernel_estimate(k);
    if (xt_kernel_get(k, &info))
        return fail_last("explain");
    if (info.backend == XT_CUDA)
        return fail("explain: --time is for the CPU");
    double seconds = median_seconds(k);
    if (seconds <= 0)
        return fail("explain: --time: out of memory");
    printf("  measured  %.3g us, median of 9", seconds * 1e6);
    if (estimate > 0)
        printf("; estimate %.3g us: %.2f of it", estimate * 1e6, estimate / seconds);
    printf("\n");
    return 0;
}

/* ---- chains over ranks */

static bool has_mesh(const char *chain)
{
    while (*chain == ' ' || (*chain >= '\t' && *chain <= '\r') || *chain == '#')
        chain += *chain == '#' ? strcspn(chain, "\n") : 1;
    return !strncmp(chain, "mesh", 4) && (chain[4] == ' ' || chain[4] == '\t');
}

/* What one rank does: nothing runs, and nobody else is needed. */
static int explain_shard(const char *chain, const char *rank, bool json)
{
    struct xt_shard *p;
    char *end = NULL;
    long long r = rank ? strtoll(rank, &end, 10) : 0;
    if (rank && (end == rank || *end))
        return fail("explain: --rank wants a number, got '%.40s'", rank);
    if (xt_shard_new(chain, r, NULL, &p))
        return xt_last_error()->column ? fail_chain(NULL, chain) : fail_last("explain");
    char *s = explanation(&(struct explained){.shard = p, .flags = json ? XT_JSON : 0});
    int status = s ? 0 : EXIT_BAD_INPUT;
    if (s)
        printf("%s%s", s, json ? "\n" : "");
    free(s);
    xt_shard_free(p);
    return status;
}

/* ---- explain */

struct options {
    const char *backend, *arch, *svg, *rank, *output;
    struct files_options files;
    bool json, time, why;
};

/* Of n words, the chain and its files: what does not go together. 0, or EXIT_BAD_INPUT after a message. */
static int check(const struct options *o, int n, char **word)
{
    const struct command *c = &explain_command;
    bool cuda = o->arch && (!o->backend || !strcmp(o->backend, "cuda"));
    bool alone = o->svg && !strcmp(o->svg, "-");
    bool of_kernels = o->backend || o->arch || o->svg || o->time || o->why;
    if (o->json && o->time)
        return fail("explain: --time prints a line, not JSON: xt bench --json has both");
    if (alone && (o->json || o->time || o->why))
        return fail("explain: --svg - is the picture alone, without --json, --time and --why");
    if (!n && o->svg && strchr(o->svg, ';'))
        return fail_usage(c, "--svg took the chain for its FILE");
    if (!n)
        return fail_usage(c, "no chain, such as 'x: f32[4,6]; x.T'");
    if (!access(word[0], F_OK))
        return fail_usage(c, "'%s' is a file, not a chain", word[0]);
    if (o->files.mem)
        return of_kernels || o->rank ? fail_usage(c, "with --mem there is --json alone") : 0;
    if (o->files.tile || o->files.passes || o->files.chunks || o->files.zarr || o->output)
        return fail_usage(c, "--output, --chunks, --zarr, --tile and --passes are with --mem");
    if (n > 1 && fail_cut("explain", word[0], n - 1, word + 1))
        return EXIT_BAD_INPUT;
    if (has_mesh(word[0]) && n > 1)
        return fail_usage(c, "a chain over a mesh has no files");
    if (has_mesh(word[0]))
        return of_kernels ? fail_usage(c, "a chain over a mesh has --rank and --json alone") : 0;
    if (o->rank)
        return fail_usage(c, "--rank is for a chain over a mesh");
    return o->arch && !cuda ? fail_usage(c, "--arch is of CUDA, --backend %s is not", o->backend) : 0;
}

static int explain_kernel(const struct options *o, int n, char **word, struct xt_compile_options *opt)
{
    struct xt_ctx *ctx = NULL;
    struct xt_kernel *k = NULL;
    opt->arch = o->arch;
    if (o->arch)
        opt->backend = XT_CUDA;
    int status = compile(word[0], n - 1, word + 1, opt, &ctx, &k);
    if (!status && o->svg)
        status = write_svg(k, o->svg);
    bool text = !status && !(o->svg && !strcmp(o->svg, "-"));
    int flags = o->json ? XT_JSON : o->why ? XT_WHY : 0;
    char *s = text ? explanation(&(struct explained){.kernel = k, .flags = flags}) : NULL;
    if (s)
        printf("%s%s", s, o->json ? "\n" : "  words     `xt help chain` explains those of the plan\n");
    else if (text)
        status = EXIT_BAD_INPUT;
    if (!status && o->time)
        status = print_time(k);
    free(s);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    return status;
}

static int cmd_explain(int argc, char **argv)
{
    struct options o = {0};
    const struct option_row rows[] = {
        {"backend", 'b', "cpu|cuda|ref", "where it would run; ref is the slow reference", &o.backend, NULL},
        {"arch", 'a', "ARCH", "CUDA for this architecture, as sm_90; needs no GPU", &o.arch, NULL},
        {"why", 'w', NULL, "every piece, and why other ways were refused", NULL, &o.why},
        {"svg", 's', "FILE", "writes the picture, too; - is standard output, the picture alone", &o.svg,
         NULL},
        {"json", 'j', NULL, "as JSON", NULL, &o.json},
        {"time", 't', NULL, "how long it takes, too", NULL, &o.time},
        {"rank", 'r', "N", "of a chain over a mesh: what rank N does, 0 if left out", &o.rank, NULL},
        FILES_ROWS(o.files),
        {"output", 'o', "OUT", "with --mem: where the result would go", &o.output, NULL},
    };
    struct xt_compile_options opt = {.size = sizeof opt};
    int first = take_options(&explain_command, rows, sizeof rows / sizeof *rows, argc, argv);
    if (first < 0 || parse_backend(o.backend, &opt.backend))
        return EXIT_BAD_INPUT;
    int n = argc - first;
    char **word = argv + first;
    if (check(&o, n, word))
        return EXIT_BAD_INPUT;
    if (o.files.mem)
        return files_explain(word[0], n - 1, n > 1 ? word + 1 : NULL, o.output, &o.files, o.json);
    return has_mesh(word[0]) ? explain_shard(word[0], o.rank, o.json) : explain_kernel(&o, n, word, &opt);
}

const struct command explain_command = {
    "explain", "'CHAIN' [IN.npy ..] [OPTIONS]", "what a chain becomes",
    "  xt explain 'x: f32[4,6]; x.permute(1,0)[:, ::-1].reshape(8,3)'\n"
    "  xt explain 'x: f16[8,64]; x.unsqueeze(1).expand(8,4,64)' --arch sm_90\n"
    "  xt explain 'x; x.T' in.npy\n"
    "  xt explain 'x: f32[16384,32768]; x.T' --mem 256M\n"
    "  xt explain 'mesh r[4]; x: f64[4096 r,8192]; x.T -> [8192 r,4096]' --rank 1\n",
    cmd_explain};

static int emit(const struct xt_kernel *k, const char *dir)
{
    static const struct {
        enum xt_artifact what;
        const char *file;
    } files[] = {{XT_SOURCE, "kernel.cu"},
                 {XT_PTX, "kernel.ptx"},
                 {XT_CUBIN, "kernel.cubin"},
                 {XT_LAUNCH, "launch.json"}};
    const char *cubin = "kernel.cubin";
    struct xt_kernel_info info = {.size = sizeof info};
    xt_kernel_get(k, &info);
    for (int i = 0; i < 4; i++) {
        char path[4096];
        const void *data;
        size_t bytes;
        if (snprintf(path, sizeof path, "%s/%s", dir, files[i].file) >= (int)sizeof path)
            return fail("emit: the path is longer than %zu bytes", sizeof path);
        if (info.n_pieces == 0)
            data = files[i].what == XT_LAUNCH ? "[]\n" : "", bytes = files[i].what == XT_LAUNCH ? 3 : 0;
        else if (xt_kernel_artifact(k, files[i].what, &data, &bytes)) {
            if (files[i].what != XT_CUBIN)
                return fail_last(files[i].file);
            remove(path); /* one of another kernel would mislead */
            cubin =
                "(no kernel.cubin: this NVRTC does not know the architecture, the driver compiles the PTX)";
            continue;
        }
        if (write_file(path, data, bytes))
            return EXIT_BAD_INPUT;
    }
    printf("%s (%s): %s/kernel.cu kernel.ptx launch.json %s\n", info.strategy, info.origin, dir, cubin);
    return 0;
}

static int cmd_emit(int argc, char **argv)
{
    const char *arch = NULL, *dir = NULL;
    const struct option_row rows[] = {
        {"arch", 'a', "ARCH", "as sm_90", &arch, NULL},
        {"dir", 'd', "DIR", "where the files go; made if need be", &dir, NULL},
    };
    struct xt_compile_options opt = {.size = sizeof opt, .backend = XT_CUDA};
    struct xt_ctx *ctx = NULL;
    struct xt_kernel *k = NULL;
    int first = take_options(&emit_command, rows, 2, argc, argv);
    if (first < 0)
        return EXIT_BAD_INPUT;
    if (argc - first != 1 || !arch || !dir)
        return fail_usage(&emit_command,
                          first == argc       ? "no chain"
                          : argc - first != 1 ? "one chain, got %d arguments: put it in single quotes"
                          : !arch             ? "no --arch"
                                              : "no --dir",
                          argc - first);
    opt.arch = arch;
    int status = compile(argv[first], 0, NULL, &opt, &ctx, &k);
    if (!status && mkdir(dir, 0777) && errno != EEXIST)
        status = fail("emit: %s: %s", dir, strerror(errno));
    if (!status)
        status = emit(k, dir);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    return status;
}

const struct command emit_command = {
    "emit", "'CHAIN' --arch sm_90 --dir DIR", "CUDA source, PTX, cubin, launch.json",
    "Writes kernel.cu, kernel.ptx, kernel.cubin and launch.json. Needs NVRTC, and no GPU.\n"
    "\n"
    "  xt emit 'x: f16[8,64]; x.unsqueeze(1).expand(8,4,64)' --arch sm_90 --dir out\n",
    cmd_emit};
