/* transpose.c: a matrix whose rows are spread over ranks becomes its transpose, spread alike. As a slab FFT
 * does it between its passes. Build: mpicc transpose.c -lxtview-mpi -lxtview. Run: mpirun -n 4 a.out */
#include <xt/xt_mpi.h>

#include <stdio.h>

enum { ROWS = 600, COLUMNS = 1000 };

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, xt_last_error()->message);
    return 1;
}

static int transpose(int rank, int ranks)
{
    struct xt_mpi_plan *plan;
    struct xt_end_info in = {.size = sizeof in}, out = {.size = sizeof out};
    void *x, *y;
    char line[128];
    snprintf(line, sizeof line, "mesh r[%d]; x: f64[%d r,%d]; x.T -> [%d r,%d]", ranks, ROWS, COLUMNS,
             COLUMNS, ROWS);
    if (xt_mpi_plan(line, MPI_COMM_WORLD, &plan))
        return fail("xt_mpi_plan"); /* on all ranks, whichever it was */
    xt_mpi_shape(plan, 0, &in);
    xt_mpi_shape(plan, XT_MPI_RESULT, &out);

    /* Ranks of one machine read such memory in its place; malloc's works as well. */
    if (xt_mpi_alloc(MPI_COMM_WORLD, (size_t)in.to_bytes, &x) ||
        xt_mpi_alloc(MPI_COMM_WORLD, (size_t)out.to_bytes, &y))
        return fail("xt_mpi_alloc");
    double *from = x, *to = y;
    for (int64_t i = 0; i < in.shape[0]; i++)
        for (int64_t j = 0; j < COLUMNS; j++)
            from[i * COLUMNS + j] =
                (double)(xt_shard_index(xt_mpi_shard(plan), 0, rank, 0, i) * COLUMNS + j);

    if (xt_mpi_run(plan, y, (const void *[]){x})) /* as often as it is wanted */
        return fail("xt_mpi_run");

    int wrong = 0;
    for (int64_t i = 0; i < out.shape[0]; i++)
        for (int64_t j = 0; j < ROWS; j++) {
            int64_t row = xt_shard_index(xt_mpi_shard(plan), XT_MPI_RESULT, rank, 0, i);
            wrong += to[i * ROWS + j] != (double)(j * COLUMNS + row);
        }
    if (rank == 0)
        printf("%d ranks: [%lld,%d] here became [%lld,%d]\n", ranks, (long long)in.shape[0], COLUMNS,
               (long long)out.shape[0], ROWS);
    xt_mpi_free(plan);
    xt_mpi_release(x);
    xt_mpi_release(y);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int failed = transpose(rank, ranks);
    if (failed)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
