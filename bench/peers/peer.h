/* peer.h: what a compiled peer exports: another library's strided copy. `xt bench` compiles the files beside
 * this one when it runs, where the library is installed, and opens them; nothing of xt is linked against
 * them. */
#ifndef XT_BENCH_PEERS_PEER_H
#define XT_BENCH_PEERS_PEER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct peer_copy {
    int rank, width; /* width: bytes of an element */
    int threads;
    int measure; /* the library may time plans before it chooses */
    const int64_t *n, *s,
        *d; /* extents; strides of source and destination, in elements, in any order of dims */
    const void *src;
    void *dst;
};

/* A plan for this copy; NULL where the library cannot do it. */
__attribute__((visibility("default"))) void *peer_new(const struct peer_copy *c);
__attribute__((visibility("default"))) void peer_run(void *plan);
__attribute__((visibility("default"))) void peer_free(void *plan);

#ifdef __cplusplus
}
#endif
#endif
