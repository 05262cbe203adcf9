/* mem.h: all memory of the library comes from here, so that tests can make the n-th allocation fail
 * (XT_FAIL_ALLOC=n, or xti_fail_alloc). Layer 0. */
#ifndef XTI_BASE_MEM_H
#define XTI_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *xti_alloc(size_t bytes); /* zeroed; NULL when there is none. bytes 0 gives a pointer */
void *xti_alloc_array(size_t n, size_t elem_bytes); /* the same, NULL on overflow too */
void *xti_room(size_t bytes);                       /* as xti_alloc, not zeroed */
void *xti_realloc(void *p, size_t bytes);           /* new bytes are not zeroed; p stays valid on failure */
void xti_free(void *p);                             /* accepts NULL */
/* v with room for element n, of `size` bytes each: as it is, or of twice as many, which *cap counts. NULL:
 * there is no memory, and v stays valid. */
void *xti_grown(void *v, size_t size, int64_t n, int64_t *cap);
char *xti_strdup(const char *s);
void *xti_memdup(const void *p, size_t bytes);

/* Makes the n-th allocation from now fail (1: the next), and every later one when `for_ever`. 0: none. */
void xti_fail_alloc(int64_t n, int for_ever);
int64_t xti_live_allocations(void);

/* An arena: many small objects that die together. Zero-initialise; pointers stay valid until free. */
struct xti_arena {
    struct xti_chunk *head;
};
void *xti_arena_alloc(struct xti_arena *a,
                      size_t bytes); /* zeroed, 16-byte aligned; NULL when there is none */
void *xti_arena_room(struct xti_arena *a, size_t bytes); /* the same, not zeroed */
void *xti_arena_dup(struct xti_arena *a, const void *p, size_t bytes);
/* a has what `from` has, too, and goes on where that one is full up to; `from` is empty. */
void xti_arena_take(struct xti_arena *a, struct xti_arena *from);
void xti_arena_free(struct xti_arena *a);

#endif
