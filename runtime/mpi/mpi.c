/* mpi.c: libxtview-mpi: the transport of xt_shard.h over a communicator of its own, and the agreement of its
 * ranks. Uses public headers alone: it is a library of its own, linked to libxtview. */
#include <xt/xt_mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4, TAG = 0 };

struct xt_mpi_plan {
    struct xt_shard *shard;
    MPI_Comm comm;
    MPI_Request request[SLOTS];
};

/* ---- errors */

static xt_status fail_mpi(const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING], all[sizeof text + 64];
    int n = 0;
    MPI_Error_string(code, text, &n);
    snprintf(all, sizeof all, "%s: %.*s", call, n, text);
    return xt_shard_fail(XT_ECOMM, all);
}

#define TRY(call, args)                                                                                      \
    do {                                                                                                     \
        int code = call args;                                                                                \
        if (code != MPI_SUCCESS)                                                                             \
            return fail_mpi(#call, code);                                                                    \
    } while (0)

/* ---- transport */

static xt_status post_recv(void *self, int64_t peer, void *buf, size_t bytes, int slot)
{
    struct xt_mpi_plan *p = self;
    TRY(MPI_Irecv, (buf, (int)bytes, MPI_BYTE, (int)peer, TAG, p->comm, &p->request[slot]));
    return XT_OK;
}

static xt_status post_send(void *self, int64_t peer, const void *buf, size_t bytes, int slot)
{
    struct xt_mpi_plan *p = self;
    TRY(MPI_Isend, (buf, (int)bytes, MPI_BYTE, (int)peer, TAG, p->comm, &p->request[slot]));
    return XT_OK;
}

static xt_status wait_any(void *self, int block, int *slot)
{
    struct xt_mpi_plan *p = self;
    int index = MPI_UNDEFINED, done = 1;
    if (block)
        TRY(MPI_Waitany, (SLOTS, p->request, &index, MPI_STATUS_IGNORE));
    else
        TRY(MPI_Testany, (SLOTS, p->request, &index, &done, MPI_STATUS_IGNORE));
    *slot = done && index != MPI_UNDEFINED ? index : -1;
    return XT_OK;
}

/* ---- agreement */

/* What ranks [first, ..) say together. */
struct vote {
    uint64_t hash;            /* of rank `first` */
    int first, other, failed; /* the lowest rank whose hash is another, that has failed; -1: none */
    xt_status status;         /* of `failed` */
    char words[512];
};

/* *b = what the lower ranks of a and the higher ones of b say. */
static void join_votes(void *lower, void *higher, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *n; i++) {
        struct vote a = ((struct vote *)lower)[i], *b = (struct vote *)higher + i;
        if (a.other < 0)
            a.other = a.hash != b->hash ? b->first : b->other;
        if (a.failed < 0) {
            a.failed = b->failed;
            a.status = b->status;
            memcpy(a.words, b->words, sizeof a.words);
        }
        *b = a;
    }
}

/* 64-bit FNV-1a. */
static uint64_t hash_text(uint64_t h, const char *s)
{
    do
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    while (*s++);
    return h;
}

static xt_status reduce(struct vote *v, MPI_Comm comm)
{
    MPI_Datatype type;
    MPI_Op op;
    struct vote all;
    TRY(MPI_Type_contiguous, ((int)sizeof *v, MPI_BYTE, &type));
    int code = MPI_Type_commit(&type);
    if (code == MPI_SUCCESS)
        code = MPI_Op_create(join_votes, 0, &op);
    if (code == MPI_SUCCESS) {
        code = MPI_Allreduce(v, &all, 1, type, op, comm);
        MPI_Op_free(&op);
    }
    MPI_Type_free(&type);
    if (code != MPI_SUCCESS)
        return fail_mpi("MPI_Allreduce", code);
    *v = all;
    return XT_OK;
}

/* The same on all ranks, whatever mine is. */
static xt_status agree(const char *line, xt_status mine, MPI_Comm comm)
{
    char words[640], own[512];
    struct vote v = {.other = -1, .failed = -1, .status = mine};
    MPI_Comm_rank(comm, &v.first);
    int me = v.first;
    v.hash = hash_text(hash_text(0xcbf29ce484222325u, xt_version()), line ? line : "");
    snprintf(own, sizeof own, "%s", xt_last_error()->message);
    if (mine) {
        v.failed = me;
        snprintf(v.words, sizeof v.words, "%s", own);
    }
    xt_status s = reduce(&v, comm);
    if (s || mine)
        return s ? s : xt_shard_fail(mine, own);
    if (v.failed >= 0) {
        snprintf(words, sizeof words, "rank %d: %s: %s", v.failed, xt_status_name(v.status), v.words);
        return xt_shard_fail(XT_EPEER, words);
    }
    if (v.other >= 0) {
        snprintf(words, sizeof words, "rank %d has another line, or another version of xt, than rank 0",
                 v.other);
        return xt_shard_fail(XT_EMISMATCH, words);
    }
    return XT_OK;
}

/* ---- public */

static xt_status plan(const char *line, struct xt_mpi_plan *p)
{
    struct xt_transport t = {sizeof t, p, post_recv, post_send, wait_any};
    char words[128];
    int rank, size;
    if (!p)
        return xt_shard_fail(XT_ENOMEM, "xt_mpi_plan: out of memory");
    MPI_Comm_rank(p->comm, &rank);
    MPI_Comm_size(p->comm, &size);
    xt_status s = xt_shard_new(line, rank, &t, &p->shard);
    /* A rank beyond a mesh that is too small learns its size from rank 0's words. */
    if (s || xt_shard_ranks(p->shard) == size)
        return s;
    snprintf(words, sizeof words, "the mesh has %lld ranks, the communicator %d",
             (long long)xt_shard_ranks(p->shard), size);
    return xt_shard_fail(XT_EINVAL, words);
}

xt_status xt_mpi_plan(const char *line, MPI_Comm comm, struct xt_mpi_plan **out)
{
    MPI_Comm own;
    if (!out)
        return xt_shard_fail(XT_EINVAL, "xt_mpi_plan: out is NULL");
    *out = NULL;
    int code = comm == MPI_COMM_NULL ? MPI_ERR_COMM : MPI_Comm_dup(comm, &own);
    if (code != MPI_SUCCESS)
        return fail_mpi("MPI_Comm_dup", code);
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    struct xt_mpi_plan *p = calloc(1, sizeof *p);
    if (p) {
        p->comm = own;
        for (int i = 0; i < SLOTS; i++)
            p->request[i] = MPI_REQUEST_NULL;
    }
    xt_status s = agree(line, plan(line, p), own);
    if (!s) {
        *out = p;
        return XT_OK;
    }
    struct xt_error e = *xt_last_error(); /* freeing is a call that succeeds */
    if (p)
        xt_shard_free(p->shard);
    free(p);
    MPI_Comm_free(&own);
    return xt_shard_fail(e.status, e.message);
}

static xt_status no_plan(void) { return xt_shard_fail(XT_EINVAL, "xt_mpi: the plan is NULL"); }

const struct xt_shard *xt_mpi_shard(const struct xt_mpi_plan *p) { return p ? p->shard : NULL; }

xt_status xt_mpi_shape(const struct xt_mpi_plan *p, int input, struct xt_end_info *out)
{
    int rank;
    if (!p)
        return no_plan();
    MPI_Comm_rank(p->comm, &rank);
    return xt_shard_shape(p->shard, input, rank, out);
}

xt_status xt_mpi_run(struct xt_mpi_plan *p, void *dst, const void *const *srcs)
{
    return p ? xt_shard_run(p->shard, dst, srcs) : no_plan();
}

xt_status xt_mpi_start(struct xt_mpi_plan *p, void *dst, const void *const *srcs)
{
    return p ? xt_shard_start(p->shard, dst, srcs) : no_plan();
}

xt_status xt_mpi_test(struct xt_mpi_plan *p, int *done)
{
    return p ? xt_shard_test(p->shard, done) : no_plan();
}

xt_status xt_mpi_wait(struct xt_mpi_plan *p) { return p ? xt_shard_wait(p->shard) : no_plan(); }

void xt_mpi_free(struct xt_mpi_plan *p)
{
    if (!p)
        return;
    for (int i = 0; i < SLOTS; i++) /* of a run that failed */
        if (p->request[i] != MPI_REQUEST_NULL) {
            MPI_Cancel(&p->request[i]);
            MPI_Request_free(&p->request[i]);
        }
    xt_shard_free(p->shard);
    MPI_Comm_free(&p->comm);
    free(p);
}
