/* job.h: a run of xt-mpi: arrays of one rank, and the files that they come from and go to. */
#ifndef XT_TOOLS_MPI_JOB_H
#define XT_TOOLS_MPI_JOB_H

#include <xt/xt_mpi.h>

#include "tools/input.h"
#include "tools/output.h"

/* An array of this rank, and of all of them. input: of the plan; XT_MPI_RESULT. */
struct end {
    int input;
    struct xt_end_info here, file; /* of the array; of the file, dense */
    bool parts;                    /* a file a rank */
    char path[4096];
    void *data;
    struct input in;
};

struct mpi_job {
    const struct xt_shard *shard;
    int me, ranks;
};

/* path: %r becomes the rank. 0, or EXIT_BAD_INPUT after a message. */
int end_describe(const struct mpi_job *j, struct end *e, const char *path);
/* Opens and compares the file; then, by another call, reads what is this rank's. */
int end_open(struct end *e);
int end_load(const struct mpi_job *j, struct end *e);
/* Writes this rank's elements; collective. A file of all ranks is made by rank 0. */
int end_store(const struct mpi_job *j, struct end *e);

/* The chain on files of whole tensors within `mem` bytes on a rank, whose tiles are dealt among the ranks; no
 * messages. Collective. */
int tiles_run(const struct mpi_job *j, int n, char **paths, const char *output, int64_t mem, bool restart,
              bool verbose);

/* Is it so on a rank? Then on all: EXIT_BAD_INPUT. Collective. */
int any_failed(int status);

#endif
