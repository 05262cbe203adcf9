/* mailbox.c: a send is copied to the heap and done at once; a receive is done when its message is there. */
#include "tests/support/mailbox.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/random_graph.h"

enum { SLOTS = 4 };

struct letter {
    struct letter *next;
    int from, to;
    size_t bytes;
    unsigned char data[];
};

struct slot {
    int state; /* 0 free, 1 receiving, 2 sent */
    int peer, order;
    void *to;
    size_t bytes;
};

struct end {
    struct mailbox *m;
    int rank, posted;
    struct slot slot[SLOTS];
    struct xt_transport t;
    int64_t *near;
    void **board;
    int shows;
};

struct mailbox {
    uint64_t seed;
    int ranks;
    const char *wrong;
    struct letter *first, **last;
    struct end end[];
};

static xt_status post_recv(void *self, int64_t peer, void *buf, size_t bytes, int slot)
{
    struct end *e = self;
    e->slot[slot] = (struct slot){1, (int)peer, e->posted++, buf, bytes};
    return XT_OK;
}

static xt_status post_send(void *self, int64_t peer, const void *buf, size_t bytes, int slot)
{
    struct end *e = self;
    struct letter *l = malloc(sizeof *l + bytes);
    if (!l)
        return XT_ENOMEM;
    l->next = NULL;
    l->from = e->rank;
    l->to = (int)peer;
    l->bytes = bytes;
    memcpy(l->data, buf, bytes);
    *e->m->last = l;
    e->m->last = &l->next;
    e->slot[slot].state = 2;
    return XT_OK;
}

/* The first letter of a peer meets the first receive of it. */
static int is_first(const struct end *e, int slot)
{
    for (int i = 0; i < SLOTS; i++)
        if (e->slot[i].state == 1 && e->slot[i].peer == e->slot[slot].peer &&
            e->slot[i].order < e->slot[slot].order)
            return 0;
    return 1;
}

static int deliver(struct end *e, int slot)
{
    struct slot *s = &e->slot[slot];
    for (struct letter **at = &e->m->first; *at; at = &(*at)->next) {
        struct letter *l = *at;
        if (l->to != e->rank || l->from != s->peer)
            continue;
        if (l->bytes != s->bytes)
            e->m->wrong = "a message has other bytes than its receive";
        else
            memcpy(s->to, l->data, l->bytes);
        *at = l->next;
        if (!l->next)
            e->m->last = at;
        free(l);
        return 1;
    }
    return 0;
}

static xt_status wait_any(void *self, int block, int *slot)
{
    struct end *e = self;
    int at = (int)random_below(&e->m->seed, SLOTS);
    *slot = -1;
    for (int k = 0; k < SLOTS && *slot < 0; k++) {
        int i = (at + k) % SLOTS;
        if (e->slot[i].state == 2 || (e->slot[i].state == 1 && is_first(e, i) && deliver(e, i))) {
            e->slot[i].state = 0;
            *slot = i;
        }
    }
    return block && *slot < 0 ? XT_EIO : XT_OK; /* nobody else runs */
}

struct mailbox *mailbox_new(int ranks, uint64_t seed)
{
    struct mailbox *m = calloc(1, sizeof *m + (size_t)ranks * sizeof *m->end);
    if (!m)
        return NULL;
    m->seed = seed;
    m->ranks = ranks;
    m->last = &m->first;
    for (int i = 0; i < ranks; i++) {
        m->end[i].m = m;
        m->end[i].rank = i;
        m->end[i].t = (struct xt_transport){.size = sizeof m->end[i].t,
                                            .self = &m->end[i],
                                            .post_recv = post_recv,
                                            .post_send = post_send,
                                            .wait_any = wait_any};
    }
    return m;
}

static int64_t name(void *self, const void *at)
{
    return ((struct end *)self)->shows ? (int64_t)(intptr_t)at : -1;
}

static const void *see(void *self, int64_t peer, int64_t what)
{
    struct end *e = self;
    if (!e->m->end[peer].shows)
        e->m->wrong = "an array is read that is not seen";
    return (const void *)(intptr_t)what;
}

int mailbox_near(struct mailbox *m, int first, int n, const unsigned char *shows)
{
    int64_t *near = calloc((size_t)n, sizeof *near);
    void **board = calloc((size_t)n, sizeof *board);
    for (int i = 0; i < n; i++) {
        struct end *e = &m->end[first + i];
        near[i] = first + i;
        board[i] =
            mmap(NULL, xt_shard_board_bytes(n), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        e->near = i ? NULL : near;
        e->board = i ? NULL : board;
        e->shows = shows[i];
        e->t.n_near = n;
        e->t.near = near;
        e->t.board = board;
        e->t.name = name;
        e->t.see = see;
    }
    return n;
}

int mailbox_free(struct mailbox *m)
{
    int n = 0;
    for (struct letter *l = m->first, *next; l; l = next, n++) {
        next = l->next;
        free(l);
    }
    for (int i = 0; i < m->ranks; i++) {
        for (int k = 0; m->end[i].board && k < m->end[i].t.n_near; k++)
            munmap(m->end[i].board[k], xt_shard_board_bytes(m->end[i].t.n_near));
        free(m->end[i].board);
        free(m->end[i].near);
    }
    free(m);
    return n;
}

const struct xt_transport *mailbox_end(struct mailbox *m, int rank) { return &m->end[rank].t; }
const char *mailbox_wrong(const struct mailbox *m) { return m->wrong; }
