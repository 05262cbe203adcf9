/* memory.c: memory files that the ranks of one machine map of each other, and the list of those that callers
 * have. They are not windows of MPI: its pages are small ones, by which strides of a megabyte take twice as
 * long. */
#include "memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1; before it pages stay small */
#endif

enum { PAGE = 4096, LARGE = 2 << 20 };

static struct memory *all;                               /* the newest first */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of that list; nobody waits for a rank with it */

int all_say(MPI_Comm comm, int yes)
{
    int min = 0;
    return MPI_Allreduce(&yes, &min, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && min;
}

/* A rank's file as others find it: /proc/PID/fd/FD, which begins with the key. */
struct file {
    int64_t bytes, own; /* own: where its rank has mapped it */
    uint64_t key;
    int pid, fd; /* fd -1: there is none */
};

/* At a large page's border, so that all who map it can have such pages. NULL: it fails. */
static char *map_file(int fd, size_t bytes)
{
    char *room = mmap(NULL, bytes + LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)room % LARGE;
    char *at = mmap(room + before, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (at == MAP_FAILED) {
        munmap(room, bytes + LARGE);
        return NULL;
    }
    if (before)
        munmap(room, before);
    munmap(at + bytes, LARGE - before);
    return at;
}

static struct file make_file(struct memory *m)
{
    struct file f = {.bytes = (int64_t)(m->bytes / PAGE + 1) * PAGE, .pid = (int)getpid(), .fd = -1};
    f.fd = m->part ? memfd_create("xt", MFD_CLOEXEC) : -1;
    if (f.fd < 0)
        return f;
    char *at = getrandom(&f.key, sizeof f.key, 0) == sizeof f.key && !ftruncate(f.fd, (off_t)f.bytes)
                   ? map_file(f.fd, (size_t)f.bytes)
                   : NULL;
    if (!at) {
        close(f.fd);
        f.fd = -1;
        return f;
    }
    memcpy(at, &f.key, sizeof f.key);
    f.own = (int64_t)(intptr_t)at;
    m->part[m->me] = (struct part){at, (size_t)f.bytes, f.own};
    return f;
}

/* Where ranks do not see each other's processes the number is another's, or nobody's. */
static int map_part(const struct file *f, struct part *p)
{
    char path[64];
    struct stat st;
    if (f->fd < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", f->pid, f->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return 0;
    int same = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size == f->bytes;
    char *at = same ? map_file(fd, (size_t)f->bytes) : NULL;
    close(fd);
    if (!at)
        return 0;
    *p = (struct part){at, (size_t)f->bytes, f->own};
    return !memcmp(at, &f->key, sizeof f->key);
}

/* Where the system gives no large pages they stay small. */
static void take_large_pages(struct part p)
{
    size_t whole = p.bytes / LARGE * LARGE;
    madvise(p.at, whole, MADV_HUGEPAGE);
    for (size_t i = 0; i < whole; i += LARGE)
        p.at[i] = 0; /* a page without memory is not made large */
    madvise(p.at, whole, MADV_COLLAPSE);
}

static void unmap_parts(struct memory *m)
{
    for (int i = 0; m->part && i < m->n; i++)
        if (m->part[i].at)
            munmap(m->part[i].at, m->part[i].bytes);
}

/* Collective: all ranks see the parts of all, or none does. */
static int share(struct memory *m)
{
    struct file mine = make_file(m), *file = calloc((size_t)m->n, sizeof *file);
    int ok = all_say(m->node, m->part && file && mine.fd >= 0) &&
             MPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, file, (int)sizeof mine, MPI_BYTE, m->node) ==
                 MPI_SUCCESS;
    for (int i = 0; i < m->n && ok; i++)
        ok = i == m->me || map_part(&file[i], &m->part[i]);
    ok = all_say(m->node, ok);
    if (mine.fd >= 0)
        close(mine.fd);
    free(file);
    return ok;
}

static xt_status fill(struct memory *m)
{
    int there = share(m);
    if (there) {
        take_large_pages(m->part[m->me]);
    } else {
        unmap_parts(m);
        m->n = 1;
        m->me = 0;
        m->plain = malloc(m->bytes + 1);
        if (m->part)
            m->part[0] = (struct part){m->plain, m->bytes, 0};
        there = m->part && m->plain;
    }
    if (there)
        memset(m->part[m->me].at, 0, m->bytes);
    return all_say(m->node, there) ? XT_OK : XT_ENOMEM; /* and all of it is zero */
}

/* Collective: is there as much for all ranks of the machine together? All of it is written to. */
static int affordable(MPI_Comm node, size_t bytes)
{
    struct sysinfo here;
    double mine = (double)bytes, sum = 0;
    return MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, node) == MPI_SUCCESS && !sysinfo(&here) &&
           sum < ((double)here.totalram + (double)here.totalswap) * here.mem_unit;
}

xt_status memory_new(MPI_Comm node, size_t bytes, struct memory **out)
{
    struct memory *m = calloc(1, sizeof *m);
    int fits = affordable(node, bytes);
    *out = NULL;
    if (!all_say(node, m && fits)) {
        free(m);
        MPI_Comm_free(&node);
        return XT_ENOMEM;
    }
    m->node = node;
    m->bytes = bytes;
    MPI_Comm_group(node, &m->group);
    MPI_Comm_size(node, &m->n);
    MPI_Comm_rank(node, &m->me);
    m->part = calloc((size_t)m->n, sizeof *m->part);
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
    if (!m->plain)
        unmap_parts(m);
    MPI_Group_free(&m->group);
    MPI_Comm_free(&m->node);
    free(m->part);
    free(m->plain);
    free(m);
}

int64_t memory_name(const void *at, MPI_Group group, int n, const int *ranks)
{
    int64_t name = -1;
    pthread_mutex_lock(&lock);
    for (const struct memory *m = all; m && name < 0; m = m->next) {
        size_t offset = (uintptr_t)at - (uintptr_t)m->part[m->me].at;
        if (offset < m->bytes && !m->plain) {
            name = (int64_t)(intptr_t)at;
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
    for (const struct memory *m = all; m && !at; m = m->next) {
        MPI_Group_translate_ranks(group, 1, &rank, m->group, &there);
        const struct part *p = there == MPI_UNDEFINED ? NULL : &m->part[there];
        if (p && !m->plain && name >= p->own && (size_t)(name - p->own) < p->bytes)
            at = p->at + (name - p->own);
    }
    pthread_mutex_unlock(&lock);
    return at;
}

/* ---- public */

static void list_memory(struct memory *m)
{
    pthread_mutex_lock(&lock);
    m->next = all;
    all = m;
    pthread_mutex_unlock(&lock);
}

xt_status xt_mpi_alloc(MPI_Comm comm, size_t bytes, void **out)
{
    struct memory *m = NULL;
    MPI_Comm own, node;
    if (out)
        *out = NULL;
    if (comm == MPI_COMM_NULL || MPI_Comm_dup(comm, &own) != MPI_SUCCESS)
        return xt_shard_fail(XT_ECOMM, "xt_mpi_alloc: MPI_Comm_dup failed");
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    xt_status s = XT_ECOMM;
    if (MPI_Comm_split_type(own, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) == MPI_SUCCESS) {
        MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
        s = memory_new(node, bytes, &m);
    }
    s = s || out ? s : XT_EINVAL;
    if (!all_say(own, s == XT_OK) && !s)
        s = XT_EPEER;
    MPI_Comm_free(&own);
    if (s) {
        memory_free(m);
        return xt_shard_fail(s, s == XT_ENOMEM   ? "xt_mpi_alloc: out of memory"
                                : s == XT_EINVAL ? "xt_mpi_alloc: out is NULL"
                                                 : "xt_mpi_alloc: it failed on another rank, or MPI did");
    }
    list_memory(m);
    *out = m->part[m->me].at;
    return xt_shard_fail(XT_OK, NULL);
}

void xt_mpi_release(void *at)
{
    struct memory **m = &all, *found;
    pthread_mutex_lock(&lock);
    while (*m && (*m)->part[(*m)->me].at != at)
        m = &(*m)->next;
    found = *m;
    if (found)
        *m = found->next;
    pthread_mutex_unlock(&lock);
    memory_free(found);
}
