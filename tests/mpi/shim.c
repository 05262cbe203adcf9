/* shim.c: stands between a program and MPI (LD_PRELOAD). MPI_SHIM says what it does, words with blanks
 * between: apart: no ranks share memory; late: each message is posted up to 2 ms late; send=N, recv=N: rank
 * 1's N-th post fails; kill=N: rank 1 dies at it. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int number(const char *word)
{
    const char *s = getenv("MPI_SHIM"), *at = s ? strstr(s, word) : NULL;
    return at ? atoi(at + strlen(word)) : -1;
}

static int fails(const char *word, int *count)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    ++*count;
    if (getenv("MPI_SHIM") && strstr(getenv("MPI_SHIM"), "late"))
        usleep((unsigned)(*count * 7919 + rank * 104729) % 2000);
    if (rank == 1 && *count == number("kill="))
        raise(SIGKILL);
    return rank == 1 && *count == number(word);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out)
{
    int rank;
    if (!getenv("MPI_SHIM") || !strstr(getenv("MPI_SHIM"), "apart"))
        return PMPI_Comm_split_type(comm, type, key, info, out);
    PMPI_Comm_rank(comm, &rank);
    return PMPI_Comm_split(comm, rank, 0, out);
}

int MPI_Isend(const void *buf, int n, MPI_Datatype t, int to, int tag, MPI_Comm comm, MPI_Request *r)
{
    static int count;
    return fails("send=", &count) ? MPI_ERR_OTHER : PMPI_Isend(buf, n, t, to, tag, comm, r);
}

int MPI_Irecv(void *buf, int n, MPI_Datatype t, int from, int tag, MPI_Comm comm, MPI_Request *r)
{
    static int count;
    return fails("recv=", &count) ? MPI_ERR_OTHER : PMPI_Irecv(buf, n, t, from, tag, comm, r);
}
