/* tiles.c: what does not fit in memory: files of whole tensors, tile by tile (xt_files.h). Where they lie in
 * memory is nobody's concern then: each rank reads, copies and writes its share of the tiles. */
#include <stdio.h>
#include <stdlib.h>

#include <xt/xt_files.h>

#include "tools/mpi/job.h"
#include "tools/say.h"

static int meet(void *arg, int failed)
{
    (void)arg;
    return any_failed(failed);
}

static int say_unless_peer(xt_status s)
{
    return s && s != XT_EPEER ? fail("run: %s", xt_last_error()->message) : !!s;
}

/* Rank 0 begins, and then the others find what it has begun. */
static int open_share(const struct mpi_job *j, const char *line, int n, char **paths, const char *output,
                      const struct xt_files_options *opt, struct xt_files **f)
{
    int status = 0;
    for (int turn = 0; turn < 2 && !status; turn++) {
        if (turn == (j->me != 0))
            status = say_unless_peer(xt_files_new(line, n, (const char *const *)paths, output, opt, f));
        if (turn == (j->me != 0) && !status)
            status = say_unless_peer(xt_files_begin(*f));
        status = any_failed(status);
    }
    return status;
}

int tiles_run(const struct mpi_job *j, int n, char **paths, const char *output, int64_t mem, bool restart,
              bool verbose)
{
    struct xt_files_options opt = {.size = sizeof opt,
                                   .mem_bytes = mem,
                                   .share = j->me,
                                   .shares = j->ranks,
                                   .meet = meet,
                                   .restart = restart && !j->me};
    struct xt_files *f = NULL;
    struct xt_files_info i = {.size = sizeof i};
    size_t need = 0;
    double since = MPI_Wtime();
    xt_shard_whole(j->shard, NULL, 0, &need);
    char *line = malloc(need + 1);
    int status = line && !xt_shard_whole(j->shard, line, need + 1, &need) ? 0 : fail("run: out of memory");
    status = any_failed(status);
    if (!status)
        status = open_share(j, line, n, paths, output, &opt, &f);
    if (!status)
        status = any_failed(say_unless_peer(xt_files_run(f)));
    if (!status && verbose && !j->me) {
        xt_files_get(f, &i);
        fprintf(stderr, "xt-mpi: %lld tiles, %lld of them done before, %d pass%s, %d ranks: %.3g s\n",
                (long long)i.tiles, (long long)i.resumed, i.passes, i.passes == 1 ? "" : "es", j->ranks,
                MPI_Wtime() - since);
    }
    xt_files_free(f);
    free(line);
    return status;
}
