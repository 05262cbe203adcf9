/* xt-mpi.c: xt run and xt explain for chains over the ranks of an MPI job, run by mpirun. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/args.h"
#include "tools/guard.h"
#include "tools/mpi/job.h"
#include "tools/say.h"

enum { MAX_FILES = 64 };

static int me, ranks;
static char name[64]; /* before messages */
static const struct command run_command, explain_command;

static void say_all(void) { say_name = name; }
static void say_first(void) { say_name = me ? NULL : "xt-mpi"; }

/* ---- run */

struct running {
    struct xt_mpi_plan *plan;
    struct mpi_job job;
    int n;
    struct end in[MAX_FILES], out;
    const void *src[MAX_FILES];
    int64_t most; /* bytes on a rank; 0: any */
    bool tiles;   /* arrays would be more on some rank: all go tile by tile */
    double seconds;
};

static int64_t held(const struct end *e) { return e->here.to_bytes; }

static int describe(struct running *r, char **paths, const char *output)
{
    struct xt_shard_info i = {.size = sizeof i};
    int64_t need = 0;
    int status = 0;
    for (int k = 0; k < r->n && !status; k++) {
        r->in[k].input = k;
        status = end_describe(&r->job, &r->in[k], paths[k]);
        need += held(&r->in[k]);
    }
    r->out.input = XT_MPI_RESULT;
    if (!status)
        status = end_describe(&r->job, &r->out, output);
    xt_shard_get(r->job.shard, &i);
    need += held(&r->out) + i.staging_bytes + i.plan_bytes;
    r->tiles = r->most && need > r->most;
    for (int k = 0; k <= r->n && r->tiles && !status; k++)
        if ((k < r->n ? &r->in[k] : &r->out)->parts)
            status = fail("run: %lld bytes are needed on this rank, --mem allows %lld: more ranks need less "
                          "each, and files of whole tensors are taken tile by tile",
                          (long long)need, (long long)r->most);
    return status;
}

/* Rank 0 first: what all would say is said once. */
static int open_files(struct running *r)
{
    int status = 0;
    for (int turn = 0; turn < 2 && !status; turn++) {
        for (int k = 0; k < r->n && !status && (turn == (me != 0)); k++)
            status = end_open(&r->in[k]);
        status = any_failed(status);
    }
    return status;
}

static int load(struct running *r)
{
    int status = 0;
    for (int k = 0; k < r->n; k++) {
        if (xt_mpi_alloc(MPI_COMM_WORLD, (size_t)held(&r->in[k]), &r->in[k].data) && !status)
            status = fail_last("run");
        r->src[k] = r->in[k].data;
        if (!status)
            status = end_load(&r->job, &r->in[k]);
    }
    r->out.data = malloc((size_t)held(&r->out) + 1);
    if (!r->out.data && !status)
        status = fail("run: out of memory");
    return any_failed(status);
}

static int carry_out(struct running *r)
{
    r->seconds = MPI_Wtime();
    int status = xt_mpi_run(r->plan, r->out.data, r->src) ? fail_last("run") : 0;
    r->seconds = MPI_Wtime() - r->seconds;
    return any_failed(status);
}

static void tell(const struct running *r)
{
    struct xt_shard_info i = {.size = sizeof i};
    double bytes[2], all[2], seconds = 0;
    xt_shard_get(r->job.shard, &i);
    bytes[0] = (double)held(&r->out);
    bytes[1] = (double)(i.receive_bytes - i.near_bytes);
    MPI_Reduce(bytes, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&r->seconds, &seconds, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (!me)
        fprintf(stderr,
                "xt-mpi: %.1f MB on %d ranks in %.3g ms, %.2f GB/s; %.1f MB from machine to machine\n",
                all[0] / 1e6, ranks, seconds * 1e3, all[0] / 1e9 / seconds, all[1] / 1e6);
}

static int in_memory(struct running *r)
{
    int status = open_files(r);
    if (!status && !(status = load(r)) && !(status = carry_out(r)))
        status = end_store(&r->job, &r->out);
    return status;
}

static int cmd_run(int argc, char **argv)
{
    static struct running r;
    const char *output = NULL, *mem = NULL;
    bool verbose = false, restart = false;
    const struct option_row rows[] = {
        {"output", 'o', "OUT.npy", "where the result goes; with %r in it a file a rank", &output, NULL},
        {"mem", 'm', "SIZE", "at most so much memory on a rank, as 2G: else tile by tile", &mem, NULL},
        {"restart", 0, NULL, "tile by tile: what an ended run has left is thrown away", NULL, &restart},
        {"verbose", 'v', NULL, "says how long it took, and GB/s", NULL, &verbose},
    };
    int first = take_options(&run_command, rows, sizeof rows / sizeof *rows, argc, argv);
    if (first < 0 || take_size("--mem", mem, &r.most))
        return EXIT_BAD_INPUT;
    if (first == argc || !output)
        return fail_usage(&run_command, first == argc ? "no chain" : "no -o");
    char **paths = argv + first + 1;
    r.n = argc - first - 1;
    if (r.n > MAX_FILES)
        return fail_usage(&run_command, "more than %d files", MAX_FILES);
    if (xt_mpi_plan(argv[first], MPI_COMM_WORLD, &r.plan))
        return fail_last("run");
    r.job = (struct mpi_job){xt_mpi_shard(r.plan), me, ranks};
    int status = 0, inputs = xt_shard_inputs(r.job.shard);
    if (r.n != inputs)
        status = fail("run: the chain has %d input%s, and %d file%s given", inputs, inputs == 1 ? "" : "s",
                      r.n, r.n == 1 ? " is" : "s are");
    say_all();
    if (!status)
        status = any_failed(describe(&r, paths, output));
    if (!status && any_failed(r.tiles))
        status = tiles_run(&r.job, r.n, paths, output, r.most, restart, verbose);
    else if (!status && !(status = in_memory(&r)) && verbose)
        tell(&r);
    for (int k = 0; k < r.n; k++) {
        input_close(&r.in[k].in);
        xt_mpi_release(r.in[k].data);
    }
    free(r.out.data);
    xt_mpi_free(r.plan);
    return status;
}

static const struct command run_command = {
    "run", "'CHAIN' IN.npy .. -o OUT.npy", "runs a chain over the ranks of an MPI job on .npy files",
    "Files are whole tensors, of which each rank reads and writes its own elements; with %r in its name a "
    "file\n"
    "is one rank's array, of the extents that it holds. Where arrays do not fit in --mem, the tiles of whole "
    "files\n"
    "are dealt among the ranks, and a run that was ended is taken up, by as many ranks as there are then.\n"
    "\n"
    "  mpirun -n 4 xt-mpi run 'mesh r[4]; x: f64[4096 r,8192]; x.T -> [8192 r,4096]' in.npy -o out.npy\n"
    "  mpirun -n 4 xt-mpi run 'mesh r[4]; x: f64[4096 r,8192]; x.T -> [8192 r,4096]' in-%r.npy -o "
    "out-%r.npy\n",
    cmd_run};

/* ---- explain */

/* As on this job: which ranks share memory is known. */
static int cmd_explain(int argc, char **argv)
{
    struct xt_mpi_plan *p;
    const char *rank = NULL;
    bool json = false;
    const struct option_row rows[] = {
        {"rank", 'r', "N", "what rank N does, 0 if left out", &rank, NULL},
        {"json", 'j', NULL, "as JSON", NULL, &json},
    };
    int first = take_options(&explain_command, rows, sizeof rows / sizeof *rows, argc, argv);
    if (first < 0)
        return EXIT_BAD_INPUT;
    if (argc - first != 1)
        return fail_usage(&explain_command, "one chain, got %d arguments: put it in single quotes",
                          argc - first);
    char *end = NULL;
    long who = rank ? strtol(rank, &end, 10) : 0;
    if (rank && (end == rank || *end || who < 0 || who >= ranks))
        return fail("explain: --rank wants a rank of the job, got '%.40s'", rank);
    if (xt_mpi_plan(argv[first], MPI_COMM_WORLD, &p))
        return fail_last("explain");
    size_t need = 0;
    int status = 0;
    const struct xt_shard *s = xt_mpi_shard(p);
    xt_shard_explain(s, json ? XT_JSON : 0, NULL, 0, &need);
    char *text = malloc(need);
    say_all();
    if (!text || xt_shard_explain(s, json ? XT_JSON : 0, text, need, &need))
        status = fail("explain: out of memory");
    else if (me == who)
        printf("%s%s", text, json ? "\n" : "");
    free(text);
    xt_mpi_free(p);
    return any_failed(status);
}

static const struct command explain_command = {
    "explain", "'CHAIN' [OPTIONS]", "what a rank of this job does",
    "  mpirun -n 4 xt-mpi explain 'mesh r[4]; x: f64[4096 r,8192]; x.T -> [8192 r,4096]' --rank 1\n",
    cmd_explain};

/* ---- */

static const struct command *const commands[] = {&run_command, &explain_command};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int print_overview(void)
{
    if (me)
        return 0;
    printf("xt-mpi runs chains over the ranks of an MPI job.\n\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("  mpirun -n N xt-mpi %s %s\n", commands[i]->name, commands[i]->synopsis);
    printf("\n`xt-mpi COMMAND --help` says more, `xt help chain` what a chain is, without MPI.\n");
    return 0;
}

static int run(int argc, char **argv)
{
    if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
        return print_overview();
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i]->name))
            return commands[i]->run(argc - 1, argv + 1);
    struct meant m = {.typed = argv[1]};
    for (int i = 0; i < COMMANDS; i++)
        meant_look(&m, commands[i]->name);
    return fail("there is no command '%s'%s", argv[1], *m.word ? meant_text(&m) : ": run, explain");
}

/* Help is for everybody, also without mpirun. */
static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    say_program = say_name = "xt-mpi";
    guard_start();
    if (wants_help(argc, argv))
        return run(argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(name, sizeof name, ranks > 1 ? "xt-mpi: rank %d" : "xt-mpi", me);
    say_first();
    int status = run(argc, argv);
    MPI_Finalize();
    return status;
}
