/* near.c: boards of ranks that share memory. Layer 5. */
#include "shard/near.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { INPUTS = 64, LINE = 64, PAGE = 4096, COMPANY = 8 };

/* What this rank tells one of the others. */
struct pair {
    _Alignas(LINE) _Atomic uint64_t sent;
    _Atomic uint64_t taken, pulled; /* messages; the last run whose sources it has read */
    int slot[XTI_NEAR_SLOTS];       /* of message n: slot[n % XTI_NEAR_SLOTS] */
};

struct board {
    _Alignas(LINE) _Atomic uint64_t begun; /* runs */
    _Atomic int broken;
    int shows;
    int64_t name[INPUTS];
    _Alignas(LINE) _Atomic int reads; /* 1 + whose sources it copies now; 0: nobody's */
    _Atomic unsigned node;            /* of memory */
    struct pair pair[]; /* [near ranks] */
};

static size_t head_bytes(int n)
{
    size_t bytes = sizeof(struct board) + (size_t)n * sizeof(struct pair);
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

size_t xt_shard_board_bytes(int n_near)
{
    return head_bytes(n_near) + (size_t)XTI_NEAR_SLOTS * XTI_MESSAGE_BYTES;
}

static struct board *board(const struct xt_shard *p, int near) { return p->transport.board[near]; }
static struct board *own(const struct xt_shard *p) { return board(p, p->me); }

static char *slot_of(const struct xt_shard *p, int near, int slot)
{
    return (char *)board(p, near) + head_bytes(p->plan.near.n) +
           (size_t)(slot - XTI_EACH_WAY) * XTI_MESSAGE_BYTES;
}

xt_status xti_near_open(struct xt_shard *p)
{
    p->me = xti_near_find(&p->plan.near, p->plan.rank);
    p->expected = xti_alloc_array((size_t)p->plan.near.n + 1, sizeof *p->expected);
    p->shows = xti_alloc_array((size_t)p->plan.near.n + 1, sizeof *p->shows);
    p->pulled = xti_alloc_array((size_t)p->plan.pull.n + 1, sizeof *p->pulled);
    return p->expected && p->shows && p->pulled ? XT_OK : XT_ENOMEM;
}

void xti_near_close(struct xt_shard *p)
{
    xti_free(p->expected);
    xti_free(p->shows);
    xti_free(p->pulled);
}

/* All that this rank holds something of. */
static bool name_sources(struct xt_shard *p, struct board *b)
{
    bool shows = p->transport.name && p->transport.see && p->plan.mesh.n_inputs <= INPUTS;
    for (int i = 0; shows && i < p->plan.mesh.n_inputs; i++) {
        struct xt_end_info e = {.size = sizeof e};
        xt_shard_shape(p, i, p->plan.rank, &e);
        bool empty = e.to_bytes <= e.from_bytes;
        b->name[i] = empty ? 0 : p->transport.name(p->transport.self, p->src[i]);
        shows = b->name[i] >= 0;
    }
    return shows;
}

void xti_near_begin(struct xt_shard *p)
{
    if (!p->plan.near.n)
        return;
    struct board *b = own(p);
    p->run++;
    b->shows = name_sources(p, b);
    unsigned node = 0;
    getcpu(NULL, &node);
    atomic_store_explicit(&b->node, node, memory_order_relaxed);
    memset(p->shows, 0, (size_t)p->plan.near.n * sizeof *p->shows);
    memset(p->pulled, 0, ((size_t)p->plan.pull.n + 1) * sizeof *p->pulled);
    atomic_store_explicit(&b->begun, p->run, memory_order_release);
}

void xti_near_break(struct xt_shard *p)
{
    if (p->plan.near.n)
        atomic_store(&own(p)->broken, 1);
}

int64_t xti_near_broken(const struct xt_shard *p)
{
    for (int i = 0; i < p->plan.near.n; i++)
        if (atomic_load_explicit(&board(p, i)->broken, memory_order_relaxed))
            return p->plan.near.rank[i];
    return -1;
}

/* Kept: a peer that this rank has done with may be a run ahead. */
enum xti_shows xti_near_shows(struct xt_shard *p, int near)
{
    const struct board *b = board(p, near);
    if (p->shows[near] == XTI_NOT_BEGUN && atomic_load_explicit(&b->begun, memory_order_acquire) >= p->run)
        p->shows[near] = b->shows ? XTI_SHOWS : XTI_HIDES;
    return (enum xti_shows)p->shows[near];
}

const void *xti_near_source(const struct xt_shard *p, int near, int input)
{
    return p->transport.see(p->transport.self, p->plan.near.rank[near], board(p, near)->name[input]);
}

void xti_near_reads(struct xt_shard *p, int near)
{
    atomic_store_explicit(&own(p)->reads, near + 1, memory_order_relaxed);
}

int xti_near_company(const struct xt_shard *p, int k)
{
    int i = p->me / COMPANY * COMPANY + k;
    if (k >= COMPANY || i >= p->plan.near.n)
        return -2;
    const struct board *b = board(p, i);
    if (i == p->me || atomic_load_explicit(&b->node, memory_order_relaxed) !=
                          atomic_load_explicit(&own(p)->node, memory_order_relaxed))
        return -1;
    return atomic_load_explicit(&b->reads, memory_order_relaxed) - 1;
}

char *xti_near_buffer(const struct xt_shard *p, int slot) { return slot_of(p, p->me, slot); }

uint64_t xti_near_send(struct xt_shard *p, int near, int slot)
{
    struct pair *to = &own(p)->pair[near];
    uint64_t n = atomic_load_explicit(&to->sent, memory_order_relaxed) + 1;
    to->slot[n % XTI_NEAR_SLOTS] = slot;
    atomic_store_explicit(&to->sent, n, memory_order_release);
    return n;
}

bool xti_near_taken(const struct xt_shard *p, int near, uint64_t ticket)
{
    return atomic_load_explicit(&board(p, near)->pair[p->me].taken, memory_order_acquire) >= ticket;
}

uint64_t xti_near_expect(struct xt_shard *p, int near) { return ++p->expected[near]; }

const char *xti_near_arrived(const struct xt_shard *p, int near, uint64_t ticket)
{
    const struct pair *from = &board(p, near)->pair[p->me];
    if (atomic_load_explicit(&own(p)->pair[near].taken, memory_order_relaxed) + 1 != ticket ||
        atomic_load_explicit(&from->sent, memory_order_acquire) < ticket)
        return NULL;
    return slot_of(p, near, from->slot[ticket % XTI_NEAR_SLOTS]);
}

void xti_near_take(struct xt_shard *p, int near)
{
    atomic_fetch_add_explicit(&own(p)->pair[near].taken, 1, memory_order_release);
}

void xti_near_pulled(struct xt_shard *p, int near)
{
    atomic_store_explicit(&own(p)->pair[near].pulled, p->run, memory_order_release);
}

bool xti_near_has_pulled(const struct xt_shard *p, int near)
{
    return atomic_load_explicit(&board(p, near)->pair[p->me].pulled, memory_order_acquire) >= p->run;
}
