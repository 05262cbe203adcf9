/* test_fault.c: a rank's run fails (shim.c): every rank is told, none waits, and who is told XT_OK has the
 * right bytes. Prints what each run came to; exit status 1: wrong. */
#include <xt/xt_mpi.h>

#include <stdio.h>
#include <stdlib.h>

enum { N = 1024 };

int main(int argc, char **argv)
{
    struct xt_mpi_plan *p;
    char line[128];
    int rank, size, wrong = 0, failed = 0, all[2], mine[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    snprintf(line, sizeof line, "mesh r[%d]; x: i64[%d r,%d]; x.T -> [%d r,%d]", size, N, N, N, N);
    int rows = N / size;
    int64_t *x = malloc(sizeof *x * N * (size_t)rows), *y = malloc(sizeof *y * N * (size_t)rows);
    for (int i = 0; i < rows * N; i++)
        x[i] = rank * rows * N + i;
    for (int round = 0; round < 3; round++) {
        xt_status s = xt_mpi_plan(line, MPI_COMM_WORLD, &p);
        if (!s)
            s = xt_mpi_run(p, y, (const void *[]){x});
        failed += s != XT_OK;
        for (int i = 0; !s && i < rows * N; i++)
            wrong += y[i] != (int64_t)(i % N) * N + rank * rows + i / N;
        if (s)
            fprintf(stderr, "rank %d: %s: %s\n", rank, xt_status_name(s), xt_last_error()->message);
        xt_mpi_free(p);
    }
    mine[0] = wrong;
    mine[1] = failed;
    MPI_Reduce(mine, all, 2, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!rank)
        printf("%d ranks: %d runs failed, %d wrong elements\n", size, all[1], all[0]);
    free(x);
    free(y);
    MPI_Finalize();
    return wrong != 0;
}
