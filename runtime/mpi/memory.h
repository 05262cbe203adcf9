/* memory.h: memory that the ranks of a machine see of each other. */
#ifndef XT_MPI_MEMORY_H
#define XT_MPI_MEMORY_H

#include <xt/xt_mpi.h>

/* What a rank has of it, as this rank sees it. */
struct part {
    char *at;
    size_t bytes; /* whole pages */
    int64_t own;  /* where that rank has it itself: what its arrays are called by */
};

struct memory {
    struct memory *next; /* of those that callers have */
    MPI_Comm node;
    MPI_Group group; /* of node */
    int n, me;
    struct part *part; /* [n] of the node's ranks */
    size_t bytes;      /* asked for on this rank */
    void *plain;       /* none can be shared: memory of this rank alone, n is 1 */
};

/* Is it so on all ranks of comm? Collective; false, too, when MPI fails. */
int all_say(MPI_Comm comm, int yes);

/* Collective over node, whose errors return; on all of its ranks the same comes out: XT_OK, with memory that
 * is zero, XT_ENOMEM. node: the memory's, or freed. */
xt_status memory_new(MPI_Comm node, size_t bytes, struct memory **out);
void memory_free(struct memory *m); /* collective */

/* Of memory that xt_mpi_alloc gave: what the ranks of a group call it, if all of them see it. -1: they do
 * not. */
int64_t memory_name(const void *at, MPI_Group group, int n, const int *ranks);
const void *memory_see(int64_t name, MPI_Group group, int rank);

#endif
