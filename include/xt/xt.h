/* xt.h: compiles a chain of views into one copy.
 *
 *     struct xt_ctx *ctx;  struct xt_graph *g;  struct xt_kernel *k;
 *     xt_ctx_new(NULL, &ctx);
 *     xt_parse("x: f32[2,5,3,4]; x.permute(0,2,1,3)[:, ::-1].reshape(6,20)", 0, NULL, &g);
 *     xt_compile(ctx, g, NULL, &k);
 *     xt_run(k, dst, (const void *[]){src}, NULL);
 *
 * A graph is a small expression over inputs; its one output may have any strides. xt_compile fuses it into
 * one index map and makes, or finds in its caches, the copy kernel for exactly that map. xt_run runs it.
 *
 * Units       Extents, strides and offsets count elements, in int64_t. Names that end in _bytes count bytes.
 * Errors      Every function that returns an xt_status (or a node) sets the calling thread's xt_last_error()
 *             when it fails; out-pointers are then NULL. Nothing prints, exits or aborts.
 * Ownership   Whoever makes an object frees it. Arguments are copied: they may go after the call.
 *             Every free accepts NULL.
 * Structs     Those that a caller hands over and that may grow begin with `size`: set it to their sizeof,
 *             as in `struct xt_kernel_info info = {.size = sizeof info};`. A program and a library of
 *             different versions then use what both know; the rest is 0. xt_shape and xt_index come in
 *             arrays, whose elements cannot grow: they stay as they are, new calls and new kinds of items add
 *             to them.
 * Threads     A context and a kernel may be used by any number of threads at once. A graph belongs to one
 *             thread at a time. No function is async-signal-safe but xt_version.
 *             CPU copies of 512 KiB and more are shared with threads of the context's own: of at most
 *             xt_options.threads, the caller's among them, each writes 256 KiB or more. None is there before
 *             the first such copy; between copies they sleep; xt_ctx_free ends them. Signals are blocked in
 *             them.
 * fork        A child may go on using CPU kernels, and starts threads of its own; CUDA kernels return
 *             XT_EFORKED there.
 * Processes   CUDA code is compiled by child processes (xt-cc), several at once, which end with their answer:
 *             a handler of SIGCHLD sees them. Signals, limits, stderr and forks of the host are left alone.
 *
 * C11 and C++11. No CUDA types: a stream is a void *. */
#ifndef XT_XT_H
#define XT_XT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define XT_API __attribute__((visibility("default")))
#else
#define XT_API
#endif

/* Of this header; xt_version() is the library's. Until 1.0 a change of MINOR may break programs, from then on
 * only one of MAJOR. For #if: XT_VERSION_NUMBER >= XT_VERSION_OF(0, 2, 0). */
#define XT_VERSION_MAJOR 0
#define XT_VERSION_MINOR 1
#define XT_VERSION_PATCH 0
#define XT_VERSION "0.1.0"
#define XT_VERSION_OF(major, minor, patch) ((major) * 1000000 + (minor) * 1000 + (patch))
#define XT_VERSION_NUMBER XT_VERSION_OF(XT_VERSION_MAJOR, XT_VERSION_MINOR, XT_VERSION_PATCH)

enum { XT_MAX_RANK = 32 };

/* ------------------------------------------------------------------------------------------------ errors */

/* Pinned for ever: a value keeps its meaning in every version. */
typedef enum xt_status {
    XT_OK = 0,
    XT_EINVAL = -1,       /* an argument is NULL, out of its domain, or from another object */
    XT_ERANK = -2,        /* wrong number of axes, or more than XT_MAX_RANK */
    XT_ESHAPE = -3,       /* shapes do not fit each other */
    XT_ERANGE = -4,       /* axis, index or address out of range */
    XT_EOVERFLOW = -5,    /* a size does not fit in 63 bits */
    XT_EDTYPE = -6,       /* unknown or differing element types */
    XT_EALIGN = -7,       /* a pointer is not aligned to its element (CPU: 8 bytes do) */
    XT_EALIAS = -8,       /* destination overlaps itself or a source */
    XT_EBUFFER = -9,      /* a buffer is too small (reserved: xt_run is not told their sizes) */
    XT_ESYNTAX = -10,     /* a problem line does not parse */
    XT_ENOMEM = -11,
    XT_EDEVICE = -12,     /* the driver reported an error; the message has its name, and says if it is that of
                             something that ran earlier */
    XT_ENODEVICE = -13,   /* no driver, no device, or the kernel was compiled for another target */
    XT_EFORKED = -14,     /* CUDA object used in a forked child */
    XT_EUNSUPPORTED = -15,
    XT_ECOMPILE = -16,    /* NVRTC is missing or refused; the message has the first line of its log */
    XT_EIO = -17,
    XT_EINTERNAL = -18,   /* a bug in xt: please report the message */
    XT_EMISMATCH = -19,   /* of ranks: they were given unlike things (xt_mpi.h) */
    XT_EPEER = -20,       /* another rank failed; the message has its status and words */
    XT_ECOMM = -21,       /* what moves bytes between ranks failed */
    XT_ESTOPPED = -22     /* the caller's progress function asked for it (xt_files.h) */
} xt_status;

struct xt_error {
    xt_status status;
    int op;            /* node index of the failing operation, or -1 */
    int axis;          /* or -1 */
    int column;        /* xt_parse: 1-based byte position in the text, or 0 */
    char message[512]; /* "reshape: op 3: [2,3,4] (24 elements) does not fit [5,5] (25 elements)" */
};

/* The calling thread's last failure; status XT_OK after a call that succeeded. Never NULL. */
XT_API const struct xt_error *xt_last_error(void);
XT_API const char *xt_status_name(xt_status s); /* "XT_ESHAPE"; never NULL */
XT_API const char *xt_version(void);

/* ------------------------------------------------------------------------------------------------- dtypes */

/* A copy depends on the width alone; the name matters to fill values and to people. */
typedef enum xt_dtype {
    XT_BOOL = 1, XT_U8, XT_I8, XT_U16, XT_I16, XT_U32, XT_I32, XT_U64, XT_I64,
    XT_F16, XT_BF16, XT_F32, XT_F64, XT_F8E4M3, XT_F8E5M2, XT_C64, XT_C128
} xt_dtype;

XT_API size_t xt_dtype_bytes(xt_dtype t);                      /* 1, 2, 4, 8 or 16; 0 for an unknown value */
XT_API const char *xt_dtype_name(xt_dtype t);                  /* "f32"; NULL for an unknown value */
XT_API xt_status xt_dtype_parse(const char *name, xt_dtype *out);

/* ------------------------------------------------------------------------------------------------- graphs */

struct xt_graph;

/* A node is an index into its graph. A builder that fails returns a negative node, remembers the first error
 * in the graph, and every later builder on it does nothing: chain freely, test xt_graph_status once. */
typedef int xt_node;

XT_API xt_status xt_graph_new(struct xt_graph **out);
XT_API void xt_graph_free(struct xt_graph *g);
XT_API xt_status xt_graph_status(const struct xt_graph *g);    /* the first error; also in xt_last_error */

/* As an offset: the pointer that xt_run gets is that of index (0,..,0), as in NumPy, PyTorch and DLPack, also
 * where strides are negative and elements lie before it. It says how a pointer is handed over, and nothing of
 * the chain: the lines of xt_print and xt_explain have the offset that it amounts to. */
#define XT_ORIGIN INT64_MIN

/* An input. strides NULL: dense, row-major. Any stride may be negative or 0. The buffer's first element is
 * element 0; offset is where index (0,..,0) lies, or XT_ORIGIN. name: a C identifier of at most 127
 * characters, new in this graph and no operation's name; NULL: x, y, z, x3, x4 ..
 * Inputs are numbered by the order of these calls: that is the order of xt_run's srcs.
 * XT_ERANGE when an index would lie before the buffer's start. */
XT_API xt_node xt_input(struct xt_graph *g, const char *name, xt_dtype t, int rank, const int64_t *shape,
                        const int64_t *strides, int64_t offset);

/* Gives an input, by its number, another layout: that of an array at hand, after xt_parse. Strides and offset
 * as in xt_input. Fails as xt_input does, and with XT_EINVAL when there is no such input. */
XT_API xt_status xt_input_layout(struct xt_graph *g, int input, const int64_t *strides, int64_t offset);

/* NumPy's or PyTorch's meaning; axes may be negative (from the end) everywhere. */
XT_API xt_node xt_permute(struct xt_graph *g, xt_node x, int n, const int *axes);
XT_API xt_node xt_transpose(struct xt_graph *g, xt_node x, int axis_a, int axis_b);
XT_API xt_node xt_reshape(struct xt_graph *g, xt_node x, int n, const int64_t *shape);  /* one may be -1 */
XT_API xt_node xt_squeeze(struct xt_graph *g, xt_node x, int n, const int *axes);       /* n 0: every 1 */
XT_API xt_node xt_unsqueeze(struct xt_graph *g, xt_node x, int axis);
XT_API xt_node xt_flip(struct xt_graph *g, xt_node x, int n, const int *axes);          /* n 0: every axis */
XT_API xt_node xt_expand(struct xt_graph *g, xt_node x, int n, const int64_t *shape);   /* -1: as it is */
XT_API xt_node xt_tile(struct xt_graph *g, xt_node x, int n, const int64_t *reps);      /* numpy.tile */
XT_API xt_node xt_repeat(struct xt_graph *g, xt_node x, int64_t reps, int axis);        /* numpy.repeat */
XT_API xt_node xt_roll(struct xt_graph *g, xt_node x, int64_t shift, int axis);
XT_API xt_node xt_diagonal(struct xt_graph *g, xt_node x, int64_t offset, int axis_a, int axis_b);
XT_API xt_node xt_unfold(struct xt_graph *g, xt_node x, int axis, int64_t size, int64_t step);
/* lo, hi: one pair an axis, interleaved (lo0, hi0, lo1, ..), n axes, each >= 0.
 * value: one element of x's dtype, NULL: zero bytes. Same for tril (keeps col - row <= k) and triu (>= k). */
XT_API xt_node xt_pad(struct xt_graph *g, xt_node x, int n, const int64_t *lo_hi, const void *value);
XT_API xt_node xt_tril(struct xt_graph *g, xt_node x, int64_t k, const void *value);
XT_API xt_node xt_triu(struct xt_graph *g, xt_node x, int64_t k, const void *value);
XT_API xt_node xt_concat(struct xt_graph *g, int axis, int n, const xt_node *xs);
XT_API xt_node xt_stack(struct xt_graph *g, int axis, int n, const xt_node *xs);

/* Basic indexing, x[1:5, ::-2, 3, ..., None]. */
enum xt_index_kind { XT_AT, XT_SLICE, XT_ELLIPSIS, XT_NEWAXIS };
#define XT_NONE INT64_MIN /* start or stop left out */
struct xt_index {
    enum xt_index_kind kind;
    int64_t start; /* XT_AT: the index (negative: from the end, out of range: XT_ERANGE) */
    int64_t stop;  /* XT_SLICE: as in Python, clamped */
    int64_t step;  /* XT_SLICE: not 0 */
};
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* g++'s opinion of a function with a struct's name, as stat has */
#endif
XT_API xt_node xt_index(struct xt_graph *g, xt_node x, int n, const struct xt_index *items);
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* einops: "b s (h d) -> b h s d" with a length for h or for d; new axes on the right, "h w -> h w c" with c's
 * length, or "h w -> h w 3"; "...", 1 and (). names[i] has length lengths[i], n of them.
 * post: what einops' rearrange, or repeat, gives; what both refuse fails: XT_ESYNTAX the pattern's form,
 * XT_EINVAL its names and what is given for them, XT_ERANK, XT_ESHAPE x's shape. */
XT_API xt_node xt_rearrange(struct xt_graph *g, xt_node x, const char *pattern, int n,
                            const char *const *names, const int64_t *lengths);

/* Makes x the graph's result. strides NULL: dense, offset 0. Otherwise the destination's layout in its
 * buffer, or XT_ORIGIN; every element must have its own address (XT_EALIAS, also when that is too hard to
 * tell), none before the start (XT_ERANGE). Last call wins. */
XT_API xt_status xt_output(struct xt_graph *g, xt_node x, const int64_t *strides, int64_t offset);

/* ------------------------------------------------------------------------------------------ problem lines */

/* A problem line is what its user would type in Python:
 *
 *     x: f32[4,6]; x.permute(1,0)[:, ::-1].reshape(8,3)
 *     x: f32[4,6]:[1,4]+0; x.flip(0)                             input strides and offset, in elements
 *     x: u8[2,3]; y: u8[1,3]; concat(0, x, y).pad((1,1),(0,2), value=7)
 *     x: f16[8,64]; x.unsqueeze(1).expand(8,4,64) -> [8,4,64]:[512,64,1]+128
 *     x: f32[4,6]; a = x.flip(0); concat(0, a, a)                names for parts; '#' starts a comment
 *
 * Text is limited to 1 MiB, nesting to 256.
 *
 * given: for inputs declared without a shape ("x; x.permute(1,0)"), in the order of declaration. A declared
 * dtype must agree with it, and so must a declared shape, unless strides are declared too: then the dtype
 * alone is compared. dtype 0: only a shape is given; rank -1: nothing is. n 0: all inputs must be declared in
 * full.
 * Errors: XT_ESYNTAX and those of the builders; xt_last_error()->column says where. */
struct xt_shape {
    xt_dtype dtype;
    int rank;
    int64_t shape[XT_MAX_RANK];
};
XT_API xt_status xt_parse(const char *text, int n, const struct xt_shape *given, struct xt_graph **out);

/* The graph as a problem line, NUL-terminated, cut at size; *need (may be NULL) gets the full size with NUL.
 * post: xt_parse(xt_print(g)) is g, node for node, but for nodes that the output does not use and for
 *       XT_ORIGIN. */
XT_API xt_status xt_print(const struct xt_graph *g, char *buf, size_t size, size_t *need);

/* ------------------------------------------------------------------------------------- looking at a graph */

/* attrs of a node, axes counted from 0, -1s resolved, offsets and k clamped to where they still matter:
 *   input      -                                  permute    axes[rank]
 *   reshape    shape[rank]                        flip       axes (sorted)
 *   squeeze    axes removed (sorted)              unsqueeze  axis
 *   expand     shape[rank]                        tile       reps[rank] (of the result)
 *   repeat     reps, axis                         roll       shift (0 <= shift < n), axis
 *   diagonal   offset, axis_a, axis_b             unfold     axis, size, step
 *   pad        lo0, hi0, lo1, ..                  tril triu  k
 *   concat stack  axis                            transpose  is stored as permute
 *   index      four numbers an item: kind, start, length, step; one item an axis of x (XT_AT or XT_SLICE, no
 *              XT_ELLIPSIS), XT_NEWAXIS items in their places
 *   rearrange  is stored as reshape, permute, expand, reshape: those that change something, in this order */
enum xt_op {
    XT_OP_INPUT, XT_OP_PERMUTE, XT_OP_RESHAPE, XT_OP_SQUEEZE, XT_OP_UNSQUEEZE, XT_OP_INDEX, XT_OP_FLIP,
    XT_OP_EXPAND, XT_OP_TILE, XT_OP_REPEAT, XT_OP_ROLL, XT_OP_DIAGONAL, XT_OP_UNFOLD, XT_OP_PAD, XT_OP_TRIL,
    XT_OP_TRIU, XT_OP_CONCAT, XT_OP_STACK
};
struct xt_node_info {
    size_t size;            /* sizeof(struct xt_node_info) */
    enum xt_op op;
    const char *op_name;    /* "permute" */
    xt_dtype dtype;
    int rank;
    const int64_t *shape;
    int n_args;
    const xt_node *args;
    int n_attrs;
    const int64_t *attrs;
    const void *value;      /* pad, tril, triu: one element; else NULL */
    const char *name;       /* input: its name; else NULL */
    const int64_t *strides; /* input: its layout; else NULL */
    int64_t offset;
    int dense;              /* input: no layout was given */
    int input;              /* input: its number; else -1 */
    int origin;             /* input: given XT_ORIGIN; offset is how many elements may lie before it */
};
XT_API int xt_node_count(const struct xt_graph *g);
XT_API int xt_input_count(const struct xt_graph *g);
XT_API xt_node xt_input_node(const struct xt_graph *g, int input);
/* Pointers in *out live as long as the graph is not changed or freed. */
XT_API xt_status xt_node_get(const struct xt_graph *g, xt_node x, struct xt_node_info *out);

struct xt_output_info {
    size_t size;            /* sizeof(struct xt_output_info) */
    xt_node node;
    int dense;              /* no layout was given */
    const int64_t *strides; /* of the destination, node's rank */
    int64_t offset;
    int origin;             /* given XT_ORIGIN, as for an input */
};
XT_API xt_status xt_output_get(const struct xt_graph *g, struct xt_output_info *out);

/* ------------------------------------------------------------------------------------------------ context */

struct xt_ctx;

typedef enum xt_backend { XT_AUTO = 0, XT_REF, XT_CPU, XT_CUDA } xt_backend;

/* Runs task(arg, i) for every i in [0, n), on any threads, and returns when all are done. */
typedef void (*xt_parallel_for)(void *pool, int n, void (*task)(void *arg, int i), void *arg);

/* What xt_compile waits for on CUDA. Kernels come in three tiers: one runs anything, a unit at a time; of the
 * structure tier one serves every length, stride and offset of a chain (the numbers are parameters); the
 * exact tier is made for one map.
 *   XT_SYNC     the exact kernel, 90 to 170 ms when it is in no cache
 *   XT_ASYNC    the structure's kernel if it is in memory or in the pack, else the one that runs anything.
 *               Where the pack does not have that, the first structure of a context is compiled, and what
 *               runs anything with the second one (or taken from the disk). A thread of the context compiles
 *               the better ones: the structure's at once, the exact one when the kernel has been used 256
 *               times (runs, and compiles that found it) or xt_kernel_wait asks. They take over between two
 *               runs
 *   XT_GENERIC  the structure's kernel, and never another
 * Chains of some dozens of pieces have the exact tier alone. With an architecture named (arch), XT_ASYNC is
 * XT_SYNC. */
typedef enum xt_mode { XT_MODE_AUTO = 0, XT_SYNC, XT_ASYNC, XT_GENERIC } xt_mode;

struct xt_options {
    size_t size;                  /* sizeof(struct xt_options): lets the struct grow */
    xt_backend backend;           /* default of xt_compile. XT_AUTO: $XT_BACKEND, else XT_CPU */
    int threads;                  /* CPU threads a run may use. 0: $XT_THREADS, else the machine's */
    xt_parallel_for parallel_for; /* NULL: threads of the context's own. For copies of 512 KiB and more */
    void *pool;                   /* handed to parallel_for */
    const char *cache_dir;        /* NULL: $XT_CACHE_DIR, $XDG_CACHE_HOME/xt or ~/.cache/xt. "": none */
    int device;                   /* CUDA ordinal when no context is current */
    xt_mode mode;                 /* default of xt_compile. XT_MODE_AUTO: $XT_JIT, else XT_ASYNC */
    const char *pack;             /* of xt_pack. NULL: $XT_PACK, else xtview.xtpack beside the library or in
                                   * ../share/xtview. "": none */
    const char *helper;           /* CUDA: path of xt-cc, in which NVRTC runs. NULL: $XT_CC, else beside the
                                   * library or in ../libexec/xtview. "": NVRTC runs in this process, where it
                                   * replaces handlers of SIGINT and SIGTERM, and exits when one comes */
};
XT_API xt_status xt_ctx_new(const struct xt_options *opt, struct xt_ctx **out); /* opt NULL: defaults */
/* Kernels stay valid, and copy on the caller's thread alone from now on; the last of them frees what it
 * needs. Waits for a compile of its own thread, if one is under way; what was wanted beyond it is not made.
 * Joins the threads that share its copies, but it is the caller's error to free it while copies are under
 * way. */
XT_API void xt_ctx_free(struct xt_ctx *ctx);

/* ------------------------------------------------------------------------------------------------ kernels */

struct xt_kernel;

struct xt_compile_options {
    size_t size;        /* sizeof(struct xt_compile_options) */
    xt_backend backend; /* XT_AUTO: the context's */
    const char *arch;   /* CUDA: "sm_90" or "90"; needs no device until xt_run. NULL: the device's */
    int measure;        /* CPU: 1: as XT_MEASURE=1 for this compile; 0: as the environment says; -1: never */
    xt_mode mode;       /* CUDA. XT_MODE_AUTO: the context's */
};

/* Compiles the graph's output. Equal graphs share one kernel (*out is then another reference to it): a lookup
 * that allocates nothing. Chains with the same map share their plan, on CUDA those with the same structure
 * their compiled code. Cost: microseconds on the CPU; on CUDA 1 ms for the first chain of a structure,
 * without a pack 90 to 170 ms for the first two, or 1 ms when the disk has it (xt_mode), else microseconds.
 * XT_EUNSUPPORTED: the problem line is longer than 1 MiB.
 * measure: times the plans that the copy could have, on buffers of xt's own (as large as the operands, a
 * quarter of the memory at most) and with the context's threads or parallel_for, and keeps the fastest in
 * the disk cache for every later compile of the same map on such a processor. Up to 4 s for large copies.
 * Blocks; any thread. */
XT_API xt_status xt_compile(struct xt_ctx *ctx, const struct xt_graph *g,
                            const struct xt_compile_options *opt, struct xt_kernel **out);
XT_API struct xt_kernel *xt_kernel_ref(struct xt_kernel *k);
XT_API void xt_kernel_free(struct xt_kernel *k); /* drops one reference */
/* Waits until the best code for k runs, and asks for it if nobody has: of a kernel that XT_ASYNC gave the
 * exact one. Nothing to wait for: XT_OK. XT_ECOMPILE: it could not be made, and k goes on as it was.
 * XT_EINVAL: the context was freed before. XT_ENODEVICE: k's CUDA context, not a primary one, is not current.
 */
XT_API xt_status xt_kernel_wait(struct xt_kernel *k);

/* Compiles n graphs for each architecture ("sm_90"), structure and exact tier (xt_mode; ctx of XT_GENERIC:
 * the first alone), and the kernel that runs anything, and writes the code into one file. A context that
 * reads it (xt_options.pack, XT_PACK; "": none) runs these chains, and every other of their structures,
 * without NVRTC, on later devices of an architecture's generation, too. The PTX in it serves drivers from
 * CUDA 11.7 on, where the architecture is as old. A pack is for the version of xt that wrote it. XT_EIO: the
 * file cannot be written. */
XT_API xt_status xt_pack(struct xt_ctx *ctx, int n, const struct xt_graph *const *graphs, int n_archs,
                         const char *const *archs, const char *file);

/* CUDA: contexts, graphs, and how long code stays loaded.
 * A kernel belongs to the CUDA context that was current in xt_compile, or, where none was, to the primary
 * context of xt_options.device (the one that the CUDA runtime uses). xt_run wants that context current; a
 * kernel of a primary context also runs in threads that have none. Elsewhere, and when the context was
 * destroyed, it is XT_ENODEVICE. Kernels of several contexts and devices live side by side.
 * xt_run may be captured into a CUDA graph, in any mode; xt_compile beside a capture does not disturb it.
 * xt_kernel_free does not unload: launches may be under way. Code that no kernel uses is unloaded by
 * xt_ctx_free (after the last xt_ctx_free: by the last xt_kernel_free), and by xt_compile or xt_kernel_free
 * once 1024 such codes have gathered. Each time xt first waits for the device's work in that CUDA context.
 * What is yours to do: hold the kernel as long as a graph with its launches lives, and call xt_ctx_free while
 * no stream of that CUDA context is being captured. */

/* Copies. srcs: one pointer an input of the graph, in order, to the start of its buffer (offsets are added by
 * the kernel), or to its index (0,..,0) where XT_ORIGIN was given; dst likewise. An input that the map does
 * not read may be NULL. CPU: host pointers; stream is ignored; returns when the copy is done. CUDA: device
 * pointers, stream a CUstream (NULL: the default stream); returns after the launch.
 * post: for every index i of the output: dst[off + sum i*stride] == the chain's element i, bit for bit; no
 *       other byte of dst is written; of an input nothing is read before its first element, behind its last
 *       one, or in a page that holds none.
 * Fails before anything is written: XT_EINVAL (NULL), XT_EALIGN (pointer % element), XT_EALIAS (dst overlaps
 * a source that is read, unless the copy would change nothing), XT_ENODEVICE, XT_EDEVICE, XT_EFORKED.
 * Any thread. Takes no lock and allocates nothing, but: XT_REF unpacks the chain (XT_ENOMEM), and
 * the first large CPU copies start the context's threads, and more than 64 inputs of which one has XT_ORIGIN,
 * or more than 29 inputs and fills on CUDA, take memory (XT_ENOMEM). Of large copies of one context at once
 * one has its threads, the others run alone on their callers': none waits for another. Stack: xt_compile
 * needs up to 48 KiB, xt_run on the CPU 56, xt_compile that measures 72. With XT_CHECK=1 also XT_EINTERNAL,
 * after writing. */
XT_API xt_status xt_run(const struct xt_kernel *k, void *dst, const void *const *srcs, void *stream);

/* As xt_run, but on host pointers whatever the backend: a CUDA kernel's buffers are staged through device
 * memory. For tools and tests: allocates and waits. Buffers hold dst_min_bytes and xt_src_min_bytes. */
XT_API xt_status xt_run_host(const struct xt_kernel *k, void *dst, const void *const *srcs);

struct xt_kernel_info {
    size_t size;                /* sizeof(struct xt_kernel_info) */
    xt_backend backend;
    const char *strategy;       /* "memcpy", "rows", "transpose", ..: of the piece with the most bytes */
    const char *map_class;      /* "empty", "memcpy", "fill", "affine" or "general" */
    const char *signature;      /* 32 hex digits: equal signature and arch, same map */
    const char *origin;         /* CUDA code: "built", "memory", "disk" or "pack"; CPU: "built in" */
    int n_pieces;
    int64_t bytes_read;         /* of the result's elements that come from inputs: one that is repeated counts
                                 * each time; of huge masks at most this */
    int64_t bytes_written;
    int64_t dst_min_bytes;      /* a destination buffer needs at least this many bytes */
    const char *way;            /* the strategy in plain words: "a plain copy", "a transpose" */
};
/* The first call makes the signature: XT_ENOMEM. */
XT_API xt_status xt_kernel_get(const struct xt_kernel *k, struct xt_kernel_info *out);
XT_API int64_t xt_src_min_bytes(const struct xt_kernel *k, int input); /* 0: not read. -1: no such input */

/* An end of a kernel: its result, or an input. */
struct xt_end_info {
    size_t size;             /* sizeof(struct xt_end_info) */
    const char *name;        /* input: lives as long as the kernel; result: NULL */
    xt_dtype dtype;
    int rank;
    int64_t shape[XT_MAX_RANK], strides[XT_MAX_RANK], offset;
    int origin;              /* given XT_ORIGIN; offset is how many elements may lie before it */
    int64_t from_bytes, to_bytes; /* of the pointer p given to xt_run only [p + from, p + to) is touched */
};
/* input -1: the result. */
XT_API xt_status xt_kernel_shape(const struct xt_kernel *k, int input, struct xt_end_info *out);

/* Seconds that a run should take by the cost model, when runs follow each other on this machine. 0: none
 * (XT_REF, XT_CUDA, nothing to copy, k NULL). Takes some microseconds. */
XT_API double xt_kernel_estimate(const struct xt_kernel *k);

/* How the chain was fused and planned. flags: 0 text for people: what it became and what that saves, then the
 * picture, then the plan, a blank line between. XT_WHY: the same with every piece, and why other ways were
 * refused. XT_JSON: one JSON object. XT_SVG: the picture as a self-contained SVG file. As xt_print. */
enum { XT_JSON = 1, XT_SVG = 2, XT_WHY = 4 };
XT_API xt_status xt_explain(const struct xt_kernel *k, int flags, char *buf, size_t size, size_t *need);

/* What was compiled for CUDA, of the code that runs at this moment (xt_mode): XT_SOURCE, XT_PTX
 * (NUL-terminated text), XT_CUBIN, XT_LAUNCH (JSON: entries, grid, block, shared bytes, parameters). Pointers
 * live as long as the kernel. XT_EUNSUPPORTED: has none. */
enum xt_artifact { XT_SOURCE, XT_PTX, XT_CUBIN, XT_LAUNCH };
XT_API xt_status xt_kernel_artifact(const struct xt_kernel *k, enum xt_artifact what, const void **data,
                                    size_t *bytes);

/* ------------------------------------------------------------------------------------ cache, environment */

struct xt_cache_stats {
    size_t size;                           /* sizeof(struct xt_cache_stats) */
    int64_t memory_hits, disk_hits, built; /* of compiles */
    int64_t refused;                       /* disk entries, used or listed, that failed a check */
    int64_t stored, store_failed;
    int64_t entries, bytes;                /* on disk now */
    int64_t compiled;                      /* kernels that NVRTC compiled, in the background, too */
    int64_t missed, evicted;               /* disk: not there; removed so that limits are kept */
    int64_t refused_damaged;               /* of `refused`: bytes that are no entry's */
    int64_t refused_foreign;               /* another user's, writable by others, no regular file */
    int64_t refused_stale;                 /* another format version, or another key's entry */
};
XT_API xt_status xt_cache_get(struct xt_ctx *ctx, struct xt_cache_stats *out);
XT_API const char *xt_cache_path(struct xt_ctx *ctx); /* NULL: the disk cache is off; xt_cache_why says why */
XT_API const char *xt_cache_why(struct xt_ctx *ctx);
/* Calls each(arg, file, bytes, description) for every valid entry. */
XT_API xt_status xt_cache_list(struct xt_ctx *ctx,
                               void (*each)(void *arg, const char *file, int64_t bytes, const char *what),
                               void *arg);
XT_API xt_status xt_cache_clear(struct xt_ctx *ctx, int64_t *removed);

struct xt_env_info {
    size_t size; /* sizeof(struct xt_env_info) */
    const char *name, *value, *fallback, *what; /* value NULL: not set */
};
XT_API int xt_env_count(void);
XT_API xt_status xt_env_get(int i, struct xt_env_info *out);

#ifdef __cplusplus
}
#endif
#endif
