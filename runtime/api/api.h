/* api.h: the objects behind the public handles. The files of this layer are the only ones that see
 * everything: graph, map, plan, both backends and the cache. Layer 6. */
#ifndef XTI_API_API_H
#define XTI_API_API_H

#include <stdatomic.h>

#include "api/measure.h"
#include "api/queue.h"
#include "base/hash.h"
#include "cache/cache.h"
#include "cache/pack.h"
#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "graph/graph.h"
#include "map/map.h"
#include "plan/plan.h"

enum { XTI_SIGNATURE_CHARS = 33 }; /* 32 hex digits and the NUL */

/* Immutable but for the caches, which have their own locks. */
struct xt_ctx {
    xt_backend backend;
    int threads, device;
    struct xti_threads *pool; /* for large copies; NULL: none */
    struct xti_disk *disk;
    struct xti_target cpu;                      /* this machine: asking takes 100 us, in a VM */
    bool check, measure, log;                   /* XT_CHECK, XT_MEASURE, XT_DEBUG */
    struct xti_wisdom *wisdom;                  /* choices of CPU plans */
    struct xti_memo *kernels;                   /* request key -> struct xt_kernel */
    struct xti_memo *plans;                     /* exact map -> struct xti_shared_plan */
    struct xti_memo *codes;                     /* exact key -> struct xti_shared_code */
    atomic_llong memory_hits, disk_hits, built; /* compiles that succeeded: each counts once */
    atomic_llong compiled;                      /* by NVRTC */
    xt_mode mode;                               /* of CUDA compiles that name none */
    struct xti_pack *pack;                      /* NULL: none */
    char *helper;                               /* xt_options.helper; NULL: not given */
    atomic_llong unseen;                        /* kernels for which nothing was there */
    struct xti_queue *queue;                    /* of compiles in the background */
};

/* Compiled CUDA code: of XTI_TIER_ANY by all kernels; of the structure tier shared by every kernel of the
 * same structure, of the exact tier by every kernel with the same map; and target. */
struct xti_shared_code {
    atomic_int refs;
    enum xti_cuda_tier tier;
    char name[XTI_CUDA_NAME_CHARS]; /* of the entry */
    struct xti_code code;
    struct xti_module *module; /* NULL: not loaded */
    char *source;
    const char *origin; /* "built", "disk" or "pack" */
};
/* Finds or builds k's code of a tier. home: also load it there, NULL: do not load it. *origin: "memory",
 * "pack", "disk" or "built". A find in memory takes no source: the structure's key is its own. */
xt_status xti_code_get(struct xt_ctx *ctx, const struct xt_kernel *k, enum xti_cuda_tier tier,
                       const struct xti_home *home, struct xti_shared_code **out, const char **origin,
                       struct xti_err *err);
/* The same, without a compile or a wait: *out NULL when it is neither in memory nor in the pack, nor, where
 * that is asked, too, on the disk. */
xt_status xti_code_find(struct xt_ctx *ctx, const struct xt_kernel *k, enum xti_cuda_tier tier,
                        const struct xti_home *home, bool disk, struct xti_shared_code **out,
                        const char **origin, struct xti_err *err);
/* The same code, loaded there; c stays as it is. */
xt_status xti_code_load(const struct xti_shared_code *c, const struct xti_home *home,
                        struct xti_shared_code **out, struct xti_err *err);
/* What a pack keeps: a key that holds no compiler, for a pack serves where none is; the bytes of code.
 * digest: of the source but for its first line, which names the architecture. */
void xti_code_digest(const char *source, char digest[2 * XTI_SHA256_BYTES + 1]);
void xti_code_pack_key(int arch, enum xti_cuda_tier tier, const char *name, const char *digest,
                       struct xti_str *key);
/* Of an entry without bytes, which says that the pack has code of this name. */
void xti_code_pack_name(const char *name, struct xti_str *key);
void xti_code_payload(const struct xti_code *c, struct xti_str *b);
/* The pack that a context reads: given, else XT_PACK, else the one beside the library, if it is there.
 * XT_EIO: of one that was named. */
xt_status xti_packs_open(struct xt_ctx *ctx, const char *given, struct xti_err *err);
void *xti_code_ref(void *code);
void xti_code_unref(void *code);

/* Bytes that a map touches in a buffer, from the buffer's start; bytes 0: none. */
struct xti_span {
    int64_t lo, bytes;
};
struct xti_read_span {
    int input;
    struct xti_span span;
};

/* A map and its plan, shared by every kernel with the same map. Immutable but for refs and signature. */
struct xti_shared_plan {
    atomic_int refs;
    struct xti_map map; /* as fused: elements, absolute offsets */
    xt_backend backend;
    struct xti_span dst;
    int n_reads; /* inputs that are read */
    struct xti_read_span *read;
    char *_Atomic signature; /* NULL: nobody has asked */
    union {
        struct { /* CPU; of the reference: empty */
            struct xti_call call;
            struct xti_plan plan;
            struct xti_measured measured;
        };
        struct xti_cuda_plan cuda; /* CUDA: there is no room for more */
    };
};
/* What a plan is made for: of the CPU a target and how its plans are tuned, of CUDA a target. */
struct xti_purpose {
    xt_backend backend;
    const struct xti_target *cpu;
    struct xti_tuning tuning;
    struct xti_cuda_target cuda;
};
/* Fuses g, and finds in `plans` or makes what its kernels share. */
xt_status xti_shared_plan_get(struct xti_memo *plans, const struct xt_graph *g, const struct xti_purpose *f,
                              struct xti_shared_plan **out, struct xti_err *err);
void *xti_shared_plan_ref(void *plan);
void xti_shared_plan_unref(void *plan);
/* 32 hex digits that live as long as p; NULL: no memory. */
const char *xti_shared_plan_signature(const struct xti_shared_plan *p, struct xti_err *err);

/* Immutable once made, but for refs and what better code brings. Needs nothing of its context: it may outlive
 * it. */
struct xt_kernel {
    atomic_int refs;
    xt_backend backend;
    bool check;                           /* XT_CHECK */
    uintptr_t misaligned;                 /* bits that no pointer may have */
    const struct xti_shared_plan *direct; /* shared, when a run is shared->call and nothing else; or NULL */
    struct xti_shared_plan *shared;
    const struct xti_map *map;        /* shared's */
    const struct xti_plan *plan;      /* shared's; of CUDA an empty one */
    const struct xti_cuda_plan *cuda; /* shared's; of others an empty one */
    struct xti_threads *pool;         /* a reference */
    uint64_t *origin; /* XT_ORIGIN: bytes that lie before the destination's pointer, then before each input's;
                       * NULL: all pointers are starts of buffers */
    bool loads;       /* CUDA: for a device, not for an architecture */
    struct xti_shared_code *code[XTI_TIERS];     /* by tier; NULL: not there, or not yet */
    const char *code_origin[XTI_TIERS];          /* written before `now`, as code is */
    _Atomic(const struct xti_shared_code *) now; /* the code that runs; NULL: CPU, or nothing to copy */
    char *_Atomic launch[XTI_TIERS];             /* launch.json; NULL: nobody has asked */
    struct xti_better better;
    unsigned char packed[]; /* the request's key, which begins with the packed graph: layouts, names */
};

/* Appends the kernel's problem line; b->failed when there is no memory. */
void xti_kernel_text(const struct xt_kernel *k, struct xti_str *b);

/* Writes what identifies a request: the packed graph, the backend, and what else decides the code: the CUDA
 * home and `how` (an architecture, "measured", or NULL). key has room for xti_request_bound(g, how) bytes;
 * gives how many it took. */
size_t xti_request_bound(const struct xt_graph *g, const char *how);
size_t xti_request_key(const struct xt_graph *g, xt_backend backend, const char *how,
                       const struct xti_home *home, unsigned char *key);

/* "built in", or where the code that runs came from. */
const char *xti_kernel_origin(const struct xt_kernel *k);

/* Lines and members of an explanation: the plan's choice and estimate. (estimate.c) */
void xti_estimate_text(const struct xt_kernel *k, struct xti_str *b);
void xti_estimate_json(const struct xt_kernel *k, struct xti_str *b);
/* "streaming stores, source order, rows x 4"; "by estimate". */
void xti_choice_text(struct xti_choice c, struct xti_str *b);

/* The signature of a map for a backend, as hex. sm: of CUDA, else 0. */
xt_status xti_signature(const struct xti_map *m, xt_backend backend, int sm, char out[XTI_SIGNATURE_CHARS],
                        struct xti_err *err);

/* The name of what writes the most bytes: a strategy or a family. */
const char *xti_kernel_strategy(const struct xt_kernel *k);
/* Appends a line for each way that was asked before the one taken, with why it said no. */
void xti_kernel_refusals(const struct xt_kernel *k, struct xti_str *b);

/* Do the bytes [a, a + a_bytes) and [b, b + b_bytes) meet? */
static inline bool xti_ranges_meet(uintptr_t a, int64_t a_bytes, uintptr_t b, int64_t b_bytes)
{
    return a < b + (uint64_t)b_bytes && b < a + (uint64_t)a_bytes;
}

/* XT_EALIAS when a byte of dst may be a byte of a source that the map reads: exact where all pieces that read
 * it are affine, and else by the whole input. *unchanged: every element is copied onto itself, there is
 * nothing to do. */
xt_status xti_alias_check(const struct xt_kernel *k, const void *dst, const void *const *src, bool *unchanged,
                          struct xti_err *err);

/* As below, for several calls of a kernel, and for one that streams. (run.c) */
void xti_call_repeat(const struct xti_call *c, char *d, const char *s);

/* post: as xti_cpu_run. */
static inline void xti_call_run(const struct xti_call *c, void *dst, const void *const *src)
{
    char *d = (char *)dst + c->d_byte;
    const char *s = c->src < 0 ? (const char *)c->value : (const char *)src[c->src] + c->s_byte;
    if (c->n == 1 && !c->stream)
        c->fn(&c->job, d, s);
    else
        xti_call_repeat(c, d, s);
}

#endif
