/* memory.c: windows of MPI that the ranks of one machine share, and the list of those that callers have. */
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, OFFSET_BITS = 44 };

static struct memory *all;
static int64_t last_id;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static char *aligned(void *at) { return (char *)(((uintptr_t)at + LINE - 1) / LINE * LINE); }

int all_say(MPI_Comm comm, int yes)
{
    int min = 0;
    return MPI_Allreduce(&yes, &min, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && min;
}

static int open_window(struct memory *m)
{
    MPI_Info info;
    void *mine;
    if (MPI_Info_create(&info) != MPI_SUCCESS)
        return 0;
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    int code = MPI_Win_allocate_shared((MPI_Aint)(m->bytes + LINE), 1, info, m->node, &mine, &m->win);
    MPI_Info_free(&info);
    if (code != MPI_SUCCESS)
        m->win = MPI_WIN_NULL;
    else
        MPI_Win_set_errhandler(m->win, MPI_ERRORS_RETURN);
    for (int i = 0; code == MPI_SUCCESS && i < m->n; i++) {
        MPI_Aint bytes;
        int unit;
        void *at;
        code = MPI_Win_shared_query(m->win, i, &bytes, &unit, &at);
        m->base[i] = aligned(at);
    }
    return code == MPI_SUCCESS && MPI_Win_lock_all(MPI_MODE_NOCHECK, m->win) == MPI_SUCCESS;
}

static xt_status fill(struct memory *m)
{
    int shared = all_say(m->node, m->base != NULL) && all_say(m->node, open_window(m));
    if (!shared) {
        m->n = 1;
        m->me = 0;
        m->plain = malloc(m->bytes + LINE);
        if (m->base && m->plain)
            m->base[0] = aligned(m->plain);
    }
    int there = shared || (m->base && m->plain);
    if (there)
        memset(m->base[m->me], 0, m->bytes);
    return all_say(m->node, there) ? XT_OK : XT_ENOMEM; /* and all of it is zero */
}

xt_status memory_new(MPI_Comm node, size_t bytes, struct memory **out)
{
    struct memory *m = calloc(1, sizeof *m), none = {.win = MPI_WIN_NULL};
    *out = NULL;
    if (!all_say(node, m != NULL)) {
        free(m);
        return XT_ENOMEM;
    }
    *m = none;
    m->node = node;
    m->bytes = bytes;
    MPI_Comm_group(node, &m->group);
    MPI_Comm_size(node, &m->n);
    MPI_Comm_rank(node, &m->me);
    m->base = calloc((size_t)m->n, sizeof *m->base);
    xt_status s = fill(m);
    if (s)
        memory_free(m);
    else
        *out = m;
    return s;
}

void memory_free(struct memory *m)
{
    if (!m)
        return;
    if (m->win != MPI_WIN_NULL) {
        MPI_Win_unlock_all(m->win);
        MPI_Win_free(&m->win);
    }
    MPI_Group_free(&m->group);
    MPI_Comm_free(&m->node);
    free(m->base);
    free(m->plain);
    free(m);
}

int64_t memory_name(const void *at, MPI_Group group, int n, const int *ranks)
{
    int64_t name = -1;
    pthread_mutex_lock(&lock);
    for (const struct memory *m = all; m && name < 0; m = m->next) {
        size_t offset = (uintptr_t)at - (uintptr_t)m->base[m->me];
        if (offset < m->bytes && !m->plain) {
            name = m->id << OFFSET_BITS | (int64_t)offset;
            for (int i = 0, there; i < n && name >= 0; i++) {
                MPI_Group_translate_ranks(group, 1, &ranks[i], m->group, &there);
                name = there == MPI_UNDEFINED ? -1 : name;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return name;
}

const void *memory_see(int64_t name, MPI_Group group, int rank)
{
    const char *at = NULL;
    int there;
    pthread_mutex_lock(&lock);
    for (const struct memory *m = all; m && !at; m = m->next)
        if (m->id == name >> OFFSET_BITS) {
            MPI_Group_translate_ranks(group, 1, &rank, m->group, &there);
            at = m->base[there] + (name & (((int64_t)1 << OFFSET_BITS) - 1));
        }
    pthread_mutex_unlock(&lock);
    return at;
}

/* ---- public */

static xt_status list_memory(struct memory *m)
{
    pthread_mutex_lock(&lock);
    int64_t id = last_id + 1;
    if (MPI_Allreduce(MPI_IN_PLACE, &id, 1, MPI_INT64_T, MPI_MAX, m->node) == MPI_SUCCESS) {
        last_id = m->id = id;
        m->next = all;
        all = m;
    }
    pthread_mutex_unlock(&lock);
    return m->id ? XT_OK : XT_ECOMM;
}

xt_status xt_mpi_alloc(MPI_Comm comm, size_t bytes, void **out)
{
    struct memory *m = NULL;
    MPI_Comm own, node;
    if (!out)
        return xt_shard_fail(XT_EINVAL, "xt_mpi_alloc: out is NULL");
    *out = NULL;
    if (comm == MPI_COMM_NULL || MPI_Comm_dup(comm, &own) != MPI_SUCCESS)
        return xt_shard_fail(XT_ECOMM, "xt_mpi_alloc: MPI_Comm_dup failed");
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    xt_status s = XT_ECOMM;
    if (MPI_Comm_split_type(own, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) == MPI_SUCCESS) {
        MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
        s = memory_new(node, bytes, &m);
        s = s ? s : list_memory(m);
    }
    if (!all_say(own, s == XT_OK) && !s)
        s = XT_EPEER;
    MPI_Comm_free(&own);
    if (s) {
        if (m)
            xt_mpi_release(m->base[m->me]);
        return xt_shard_fail(s, s == XT_ENOMEM ? "xt_mpi_alloc: out of memory"
                                               : "xt_mpi_alloc: it failed on another rank, or MPI did");
    }
    *out = m->base[m->me];
    return xt_shard_fail(XT_OK, NULL);
}

void xt_mpi_release(void *at)
{
    struct memory **m = &all, *found;
    pthread_mutex_lock(&lock);
    while (*m && (*m)->base[(*m)->me] != at)
        m = &(*m)->next;
    found = *m;
    if (found)
        *m = found->next;
    pthread_mutex_unlock(&lock);
    memory_free(found);
}
