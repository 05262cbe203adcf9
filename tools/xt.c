/* xt.c: the command. Each sub-command is a row; bad input is one line to stderr and exit status 2. */
#include "tool.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "xt compiles a chain of views into one copy.\n"
    "\n"
    "  xt run 'CHAIN' IN.npy .. -o OUT.npy [--backend ref|cpu|cuda]\n"
    "  xt explain 'CHAIN' [--json | --time] [--backend ref|cpu|cuda] [--arch sm_90]\n"
    "  xt emit 'CHAIN' --arch sm_90 --dir DIR      kernel.cu, kernel.ptx, kernel.cubin, launch.json\n"
    "  xt bench [--quick] [--busy] [--json FILE] [--as DTYPE] [--grow N] [--pages 4k] [--hptt-measure]\n"
    "      [FILE]\n"
    "      FILE: lines \"name | where | chain\"; --as: every element of this dtype; --grow: first extent of\n"
    "      every source times N; 4k: no huge pages\n"
    "  xt bench --random SEED [N]                  the same of N chains drawn at random\n"
    "  xt bench --calls                            nanoseconds of xt_run and xt_compile, memcpy beside them\n"
    "  xt pack LIST --arch sm_80,sm_90 -o FILE.xtpack   CUDA code of a list of chains: XT_PACK=FILE.xtpack\n"
    "  xt env                                      every XT_* variable and what it does\n"
    "  xt cache [list|clear|path]\n"
    "\n"
    "  xt explain 'x: f32[4,6]; x.permute(1,0)[:, ::-1].reshape(8,3)'\n"
    "  xt run 'x; x.permute(0,2,1)' in.npy -o out.npy\n"
    "  xt run 'x: u8[480,640,3]; x[::2, ::2].permute(2,0,1).pad((0,0),(8,8),(8,8))' photo.npy -o planes.npy\n"
    "  xt emit 'x: f16[8,64]; x.unsqueeze(1).expand(8,4,64)' --arch sm_90 --dir out\n";

static int cmd_help(int n, char **argv)
{
    (void)n, (void)argv;
    fputs(help, stdout);
    return 0;
}

static int cmd_version(int n, char **argv)
{
    (void)n, (void)argv;
    printf("xt %s\n", xt_version());
    return 0;
}

static const struct {
    const char *name;
    int (*run)(int n, char **argv);
} commands[] = {
    {"help", cmd_help},         {"--help", cmd_help}, {"-h", cmd_help},         {"version", cmd_version},
    {"--version", cmd_version}, {"run", cmd_run},     {"explain", cmd_explain}, {"emit", cmd_emit},
    {"bench", cmd_bench},       {"env", cmd_env},     {"cache", cmd_cache},     {"pack", cmd_pack},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(name, commands[i].name))
            continue;
        int status = commands[i].run(argc > 2 ? argc - 2 : 0, argv + 2);
        if (fflush(stdout) || ferror(stdout))
            return status ? status : fail("standard output: write failed");
        return status;
    }
    return fail("'%s' is not a command: run, explain, emit, bench, pack, env or cache; `xt` alone shows help",
                name);
}
