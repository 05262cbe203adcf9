/* xt_mpi.h: chains over ranks (xt_shard.h), moved by MPI. In libxtview-mpi; libxtview knows no MPI.
 *
 *     struct xt_mpi_plan *p;
 *     struct xt_end_info e = {.size = sizeof e};
 *     xt_mpi_plan("mesh r[4]; x: f64[4096 r,8192]; x.T -> [8192 r,4096]", MPI_COMM_WORLD, &p);
 *     xt_mpi_shape(p, XT_MPI_RESULT, &e);
 *     xt_mpi_run(p, dst, (const void *[]){src});
 *     xt_mpi_free(p);
 *
 * Rules of xt.h hold: units, errors (xt_last_error), ownership. MPI is the caller's to start and to end;
 * where threads use it at once, by MPI_THREAD_MULTIPLE. A plan belongs to one thread at a time. */
#ifndef XT_XT_MPI_H
#define XT_XT_MPI_H

#include <mpi.h>
#include <xt/xt_shard.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { XT_MPI_RESULT = -1 }; /* as an input's number */

struct xt_mpi_plan;

/* Plans the line for the calling rank. Collective: the mesh has as many ranks as comm, which is duplicated
 * and not used any more. One reduction compares what the ranks have: on each of them the call fails when it
 * fails on one. Fails as xt_shard_new does; XT_EPEER: it does so on another rank, which the message names,
 * with its words; XT_EMISMATCH: a rank has another line than rank 0, or another version of xt; XT_ECOMM:
 * MPI's own failure; XT_EINVAL: the mesh is not as large as comm. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* as of xt_index */
#endif
XT_API xt_status xt_mpi_plan(const char *line, MPI_Comm comm, struct xt_mpi_plan **out);
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* The same of a tensor that goes from boxes to boxes, as xt_shard_boxes: all ranks give all boxes. */
XT_API xt_status xt_mpi_boxes(xt_dtype dtype, int rank, const int64_t *shape, const struct xt_boxes *from,
                              const struct xt_boxes *to, MPI_Comm comm, struct xt_mpi_plan **out);

/* The calling rank's array of an input or of XT_MPI_RESULT, as xt_shard_shape. */
XT_API xt_status xt_mpi_shape(const struct xt_mpi_plan *p, int input, struct xt_end_info *out);
XT_API const struct xt_shard *xt_mpi_shard(const struct xt_mpi_plan *p); /* for xt_shard_get, _explain */

/* Memory for an array that the ranks of a machine see of each other: where a plan's sources lie in such
 * memory they are read in their place, instead of packed, moved, unpacked. Collective over comm, each rank
 * its own size; zero at first, in large pages where Linux has them. The ranks of a machine that are in a plan
 * have to be in comm. Where no memory can be shared it is a rank's own. XT_ENOMEM, also when the machine's
 * ranks ask for more than it has, XT_ECOMM, XT_EPEER: on every rank. */
XT_API xt_status xt_mpi_alloc(MPI_Comm comm, size_t bytes, void **out);
XT_API void xt_mpi_release(void *at); /* collective, before MPI_Finalize. NULL: nothing */

/* Collective, each once on every rank, as xt_shard_run, _start, _test, _wait. Messages have 1 MiB at most,
 * whatever the size of an array; 12 MiB of staging buffers. A fault of the caller's own arguments (XT_EINVAL,
 * XT_EALIAS) is told to him alone, before anything is sent: the others wait for his next call.
 * XT_ECOMM: MPI's text, or which rank's run failed, as that rank has told the others; the result is undefined
 * then, and the plan can only be freed. */
XT_API xt_status xt_mpi_run(struct xt_mpi_plan *p, void *dst, const void *const *srcs);
XT_API xt_status xt_mpi_start(struct xt_mpi_plan *p, void *dst, const void *const *srcs);
XT_API xt_status xt_mpi_test(struct xt_mpi_plan *p, int *done);
XT_API xt_status xt_mpi_wait(struct xt_mpi_plan *p);

/* Collective, before MPI_Finalize, and not while a run is under way. NULL: nothing. */
XT_API void xt_mpi_free(struct xt_mpi_plan *p);

#ifdef __cplusplus
}
#endif
#endif
