/* mem.c: the allocator, its failure switch and the arena. Layer 0. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"

static atomic_llong live;
static atomic_llong countdown = -1; /* -1: not read from the environment yet, 0: off */
static atomic_int sticky;

static int must_fail(void)
{
    long long n = atomic_load_explicit(&countdown, memory_order_relaxed);
    if (n == 0)
        return 0;
    if (n < 0) {
        long long want = xti_env_int(XTI_ENV_FAIL_ALLOC, 0);
        if (!atomic_compare_exchange_strong(&countdown, &n, want > 0 ? want : 0))
            return must_fail();
        if (want <= 0)
            return 0;
    }
    n = atomic_fetch_sub(&countdown, 1);
    if (n == 1 && atomic_load(&sticky))
        atomic_store(&countdown, 1);
    return n == 1;
}

void xti_fail_alloc(int64_t n, int for_ever)
{
    atomic_store(&sticky, for_ever);
    atomic_store(&countdown, n > 0 ? n : 0);
}

int64_t xti_live_allocations(void) { return atomic_load(&live); }

/* glibc's malloc keeps small blocks at hand for each thread, of which its calloc takes none; of large blocks
 * calloc knows which pages are zero already. */
enum { SMALL_BYTES = 1024 };

static void *zeroed(size_t bytes)
{
    if (bytes > SMALL_BYTES)
        return calloc(1, bytes);
    void *p = malloc(bytes ? bytes : 1);
    return p ? memset(p, 0, bytes) : NULL;
}

static inline void *counted(size_t bytes, bool zero)
{
    /* Counted before: a locked instruction waits for the stores before it. */
    atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    void *p = must_fail() ? NULL : zero ? zeroed(bytes) : malloc(bytes ? bytes : 1);
    if (!p)
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    return p;
}

void *xti_alloc(size_t bytes) { return counted(bytes, true); }

void *xti_room(size_t bytes) { return counted(bytes, false); }

void *xti_alloc_array(size_t n, size_t elem_bytes)
{
    size_t bytes;
    return __builtin_mul_overflow(n, elem_bytes, &bytes) ? NULL : xti_alloc(bytes);
}

void *xti_realloc(void *p, size_t bytes)
{
    if (!p)
        return xti_alloc(bytes);
    return must_fail() ? NULL : realloc(p, bytes ? bytes : 1);
}

void *xti_grown(void *v, size_t size, int64_t n, int64_t *cap)
{
    size_t more = *cap ? 2 * (size_t)*cap : 8, bytes;
    if (n < *cap)
        return v;
    void *w = __builtin_mul_overflow(more, size, &bytes) ? NULL : xti_realloc(v, bytes);
    *cap = w ? (int64_t)more : *cap;
    return w;
}

void xti_free(void *p)
{
    if (!p)
        return;
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    free(p);
}

void *xti_memdup(const void *p, size_t bytes)
{
    void *q = xti_alloc(bytes);
    if (q && bytes)
        memcpy(q, p, bytes);
    return q;
}

char *xti_strdup(const char *s) { return xti_memdup(s, strlen(s) + 1); }

struct xti_chunk {
    struct xti_chunk *next;
    size_t used, size;
};

/* Each chunk is twice the one before: a map of one piece takes the first, a graph the first two. What fits in
 * no such chunk gets one of its own, behind the one that is being filled. */
enum { FIRST_BYTES = 512, MOST_BYTES = 4096, HEADER_BYTES = 32 };
_Static_assert(sizeof(struct xti_chunk) <= HEADER_BYTES, "chunk header");

static size_t next_chunk_bytes(const struct xti_chunk *c)
{
    size_t bytes = c ? 2 * (c->size + HEADER_BYTES) : FIRST_BYTES;
    return (bytes < MOST_BYTES ? bytes : MOST_BYTES) - HEADER_BYTES;
}

static struct xti_chunk *add_chunk(struct xti_chunk **at, size_t size)
{
    struct xti_chunk *c = xti_room(HEADER_BYTES + size);
    if (c) {
        *c = (struct xti_chunk){*at, 0, size};
        *at = c;
    }
    return c;
}

void *xti_arena_room(struct xti_arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    struct xti_chunk *c = a->head;
    if (!c || c->size - c->used < bytes) {
        size_t size = next_chunk_bytes(c);
        c = bytes <= size ? add_chunk(&a->head, size) : add_chunk(c ? &c->next : &a->head, bytes);
        if (!c)
            return NULL;
    }
    void *p = (char *)c + HEADER_BYTES + c->used;
    c->used += bytes;
    return p;
}

void *xti_arena_alloc(struct xti_arena *a, size_t bytes)
{
    void *p = xti_arena_room(a, bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

void *xti_arena_dup(struct xti_arena *a, const void *p, size_t bytes)
{
    void *q = xti_arena_room(a, bytes);
    if (q && bytes)
        memcpy(q, p, bytes);
    return q;
}

void xti_arena_take(struct xti_arena *a, struct xti_arena *from)
{
    struct xti_chunk **end = &from->head;
    while (*end)
        end = &(*end)->next;
    *end = a->head;
    a->head = from->head;
    from->head = NULL;
}

void xti_arena_free(struct xti_arena *a)
{
    while (a->head) {
        struct xti_chunk *next = a->head->next;
        xti_free(a->head);
        a->head = next;
    }
}
