/* mpi.c: libxtview-mpi: the transport of xt_shard.h over a communicator of its own, and the agreement of its
 * ranks. Uses public headers alone: it is a library of its own, linked to libxtview. */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4, TAG = 0, TAG_FAILED = 1, WORDS = 512 };

struct xt_mpi_plan {
    struct xt_shard *shard;
    MPI_Comm comm;
    MPI_Group group;
    int rank, size;
    MPI_Request request[SLOTS + 1]; /* the last one: of a rank whose run has failed */
    char words[WORDS];              /* its message */
    struct memory *boards;
    int n_near, *near;
    int64_t *near64;
    void **board;
    char *told; /* this rank's own message, once its run has failed */
    MPI_Request *telling;
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
        TRY(MPI_Waitany, (SLOTS + 1, p->request, &index, MPI_STATUS_IGNORE));
    else
        TRY(MPI_Testany, (SLOTS + 1, p->request, &index, &done, MPI_STATUS_IGNORE));
    if (done && index == SLOTS)
        return xt_shard_fail(XT_ECOMM, p->words);
    *slot = done && index != MPI_UNDEFINED ? index : -1;
    return XT_OK;
}

static int64_t name(void *self, const void *at)
{
    struct xt_mpi_plan *p = self;
    return memory_name(at, p->group, p->n_near, p->near);
}

static const void *see(void *self, int64_t peer, int64_t what)
{
    return memory_see(what, ((struct xt_mpi_plan *)self)->group, (int)peer);
}

/* The ranks of this machine and their boards; without them messages go by MPI. Collective: the ranks of a
 * machine have boards, or none of them. */
static void open_boards(struct xt_mpi_plan *p)
{
    MPI_Comm node;
    int n;
    if (MPI_Comm_split_type(p->comm, MPI_COMM_TYPE_SHARED, p->rank, MPI_INFO_NULL, &node) != MPI_SUCCESS)
        return;
    MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
    MPI_Comm_size(node, &n);
    if (n == 1) {
        MPI_Comm_free(&node);
        return;
    }
    if (memory_new(node, xt_shard_board_bytes(n), &p->boards) || p->boards->plain)
        return;
    p->near = calloc((size_t)n, sizeof *p->near);
    p->near64 = calloc((size_t)n, sizeof *p->near64);
    p->board = calloc((size_t)n, sizeof *p->board);
    int there = p->near && p->near64 && p->board, min = 0;
    if (MPI_Allreduce(&there, &min, 1, MPI_INT, MPI_MIN, node) != MPI_SUCCESS || !min)
        return;
    for (int i = 0; i < n; i++) {
        MPI_Group_translate_ranks(p->boards->group, 1, &i, p->group, &p->near[i]);
        p->near64[i] = p->near[i];
        p->board[i] = p->boards->part[i].at;
    }
    p->n_near = n;
}

/* Tells the others that this rank's run has failed, who would wait for it. */
static xt_status tell(struct xt_mpi_plan *p, xt_status s)
{
    if (s != XT_ECOMM || p->told || p->request[SLOTS] == MPI_REQUEST_NULL)
        return s;
    p->told = malloc(WORDS);
    p->telling = calloc((size_t)p->size, sizeof *p->telling);
    if (!p->told || !p->telling)
        return s;
    snprintf(p->told, WORDS, "rank %d: %.400s", p->rank, xt_last_error()->message);
    for (int i = 0; i < p->size; i++)
        if (i == p->rank || MPI_Isend(p->told, WORDS, MPI_CHAR, i, TAG_FAILED, p->comm, &p->telling[i]))
            p->telling[i] = MPI_REQUEST_NULL;
    return s;
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

/* What a rank plans: a line, or boxes. */
struct asked {
    const char *line; /* NULL: */
    xt_dtype dtype;
    int rank;
    const int64_t *shape;
    const struct xt_boxes *from, *to;
};

/* 64-bit FNV-1a. NULL: of nothing. */
static uint64_t hash(uint64_t h, const void *at, size_t bytes)
{
    for (size_t i = 0; at && i < bytes; i++)
        h = (h ^ ((const unsigned char *)at)[i]) * 0x100000001b3u;
    return h;
}

static uint64_t hash_boxes(uint64_t h, const struct xt_boxes *b, int rank)
{
    size_t n = (size_t)b->n * sizeof *b->rank, rows = n * (size_t)rank;
    const int given[] = {b->strides != NULL, b->offset != NULL};
    h = hash(hash(hash(h, b->rank, n), b->lo, rows), b->len, rows);
    return hash(hash(hash(h, b->strides, rows), b->offset, n), given, sizeof given);
}

/* Of what could be planned. */
static uint64_t hash_asked(const struct asked *a)
{
    uint64_t h = 0xcbf29ce484222325u;
    h = hash(h, xt_version(), strlen(xt_version()) + 1);
    if (a->line)
        return hash(h, a->line, strlen(a->line));
    const int64_t what[] = {(int64_t)a->dtype, a->rank, a->from->n, a->to->n};
    h = hash(hash(h, what, sizeof what), a->shape, (size_t)a->rank * sizeof *a->shape);
    return hash_boxes(hash_boxes(h, a->from, a->rank), a->to, a->rank);
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
static xt_status agree(const struct asked *a, xt_status mine, MPI_Comm comm)
{
    char words[640], own[512];
    struct vote v = {.other = -1, .failed = -1, .status = mine};
    MPI_Comm_rank(comm, &v.first);
    int me = v.first;
    snprintf(own, sizeof own, "%s", xt_last_error()->message);
    if (mine) {
        v.failed = me;
        snprintf(v.words, sizeof v.words, "%s", own);
    } else {
        v.hash = hash_asked(a);
    }
    xt_status s = reduce(&v, comm);
    if (s || mine)
        return s ? s : xt_shard_fail(mine, own);
    if (v.failed >= 0) {
        snprintf(words, sizeof words, "rank %d: %s: %s", v.failed, xt_status_name(v.status), v.words);
        return xt_shard_fail(XT_EPEER, words);
    }
    if (v.other >= 0) {
        snprintf(words, sizeof words, "rank %d has %s, or another version of xt, than rank 0", v.other,
                 a->line ? "another line" : "other boxes");
        return xt_shard_fail(XT_EMISMATCH, words);
    }
    return XT_OK;
}

/* ---- public */

static xt_status plan(const struct asked *a, struct xt_mpi_plan *p)
{
    struct xt_transport t = {sizeof t, p, post_recv, post_send, wait_any, 0, NULL, NULL, name, see};
    char words[128];
    t.n_near = p->n_near;
    t.near = p->near64;
    t.board = p->board;
    xt_status s =
        a->from ? xt_shard_boxes(a->dtype, a->rank, a->shape, a->from, a->to, p->size, p->rank, &t, &p->shard)
                : xt_shard_new(a->line, p->rank, &t, &p->shard);
    /* A rank beyond a mesh that is too small learns its size from rank 0's words. */
    if (!s && xt_shard_ranks(p->shard) != p->size) {
        snprintf(words, sizeof words, "the mesh has %lld ranks, the communicator %d",
                 (long long)xt_shard_ranks(p->shard), p->size);
        s = xt_shard_fail(XT_EINVAL, words);
    }
    if (s)
        return s;
    TRY(MPI_Irecv, (p->words, WORDS, MPI_CHAR, MPI_ANY_SOURCE, TAG_FAILED, p->comm, &p->request[SLOTS]));
    return XT_OK;
}

static struct xt_mpi_plan *new_plan(MPI_Comm own)
{
    struct xt_mpi_plan *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->comm = own;
    for (int i = 0; i <= SLOTS; i++)
        p->request[i] = MPI_REQUEST_NULL;
    MPI_Comm_group(own, &p->group);
    MPI_Comm_rank(own, &p->rank);
    MPI_Comm_size(own, &p->size);
    return p;
}

/* Each rank has its p. Collective. */
static xt_status try_plan(const struct asked *a, struct xt_mpi_plan *p, int wanted)
{
    open_boards(p);
    xt_status s = wanted ? plan(a, p) : xt_shard_fail(XT_EINVAL, "xt_mpi: out is NULL");
    return agree(a, s, p->comm);
}

static xt_status make_plan(const struct asked *a, MPI_Comm comm, struct xt_mpi_plan **out)
{
    MPI_Comm own;
    if (out)
        *out = NULL;
    int code = comm == MPI_COMM_NULL ? MPI_ERR_COMM : MPI_Comm_dup(comm, &own);
    if (code != MPI_SUCCESS)
        return fail_mpi("MPI_Comm_dup", code);
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    struct xt_mpi_plan *p = new_plan(own);
    if (!all_say(own, p != NULL)) {
        if (p)
            MPI_Group_free(&p->group);
        free(p);
        MPI_Comm_free(&own);
        return xt_shard_fail(XT_ENOMEM, "xt_mpi: out of memory");
    }
    xt_status s = try_plan(a, p, out != NULL);
    if (!s) {
        *out = p;
        return XT_OK;
    }
    struct xt_error e = *xt_last_error(); /* freeing is a call that succeeds */
    xt_mpi_free(p);
    return xt_shard_fail(e.status, e.message);
}

xt_status xt_mpi_plan(const char *line, MPI_Comm comm, struct xt_mpi_plan **out)
{
    return make_plan(&(struct asked){.line = line}, comm, out);
}

xt_status xt_mpi_boxes(xt_dtype dtype, int rank, const int64_t *shape, const struct xt_boxes *from,
                       const struct xt_boxes *to, MPI_Comm comm, struct xt_mpi_plan **out)
{
    static const struct xt_boxes none;
    return make_plan(&(struct asked){NULL, dtype, rank, shape, from ? from : &none, to}, comm, out);
}

static xt_status no_plan(void) { return xt_shard_fail(XT_EINVAL, "xt_mpi: the plan is NULL"); }

const struct xt_shard *xt_mpi_shard(const struct xt_mpi_plan *p) { return p ? p->shard : NULL; }

xt_status xt_mpi_shape(const struct xt_mpi_plan *p, int input, struct xt_end_info *out)
{
    return p ? xt_shard_shape(p->shard, input, p->rank, out) : no_plan();
}

xt_status xt_mpi_run(struct xt_mpi_plan *p, void *dst, const void *const *srcs)
{
    return p ? tell(p, xt_shard_run(p->shard, dst, srcs)) : no_plan();
}

xt_status xt_mpi_start(struct xt_mpi_plan *p, void *dst, const void *const *srcs)
{
    return p ? tell(p, xt_shard_start(p->shard, dst, srcs)) : no_plan();
}

xt_status xt_mpi_test(struct xt_mpi_plan *p, int *done)
{
    return p ? tell(p, xt_shard_test(p->shard, done)) : no_plan();
}

xt_status xt_mpi_wait(struct xt_mpi_plan *p) { return p ? tell(p, xt_shard_wait(p->shard)) : no_plan(); }

/* After a failure ranks may be gone: nothing that waits for them is called then, and what MPI still has of
 * this plan is left to it. */
void xt_mpi_free(struct xt_mpi_plan *p)
{
    if (!p)
        return;
    if (p->told || p->words[0])
        return; /* of a run that failed peers may still read buffers: they are left as they are */
    if (p->request[SLOTS] != MPI_REQUEST_NULL) {
        MPI_Cancel(&p->request[SLOTS]);
        MPI_Wait(&p->request[SLOTS], MPI_STATUS_IGNORE);
    }
    xt_shard_free(p->shard);
    memory_free(p->boards);
    MPI_Group_free(&p->group);
    MPI_Comm_free(&p->comm);
    free(p->near);
    free(p->near64);
    free(p->board);
    free(p);
}
