/* ptx.h: runs the PTX text that NVRTC emits, on the CPU, and proves copy kernels without a GPU.
 * In: PTX text, buffers, a launch. Out: the bytes the kernel would write, counts of memory traffic, or the
 * first fault with the PTX line, block, thread and address. What is modelled and what is not: README.md.
 * Units: every size and offset here is in bytes. A module is read only after ptx_load, so threads may share
 * it; a world belongs to one thread at a time. Nothing here prints or aborts. */
#ifndef PTX_H
#define PTX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ptx_module; /* parsed text: entries, variables, pre-decoded instructions */
struct ptx_world;  /* buffers in a device address space, and which of their bytes were written so far */

enum ptx_fault {
    PTX_FINE,
    PTX_BAD_LAUNCH,    /* the launch does not fit the entry: parameters, block size, shared bytes */
    PTX_OUT_OF_BOUNDS, /* an access outside every buffer, or outside the variable it points into */
    PTX_MISALIGNED,    /* address not a multiple of the access size, whole vectors included */
    PTX_FORBIDDEN, /* store to a source, load from a destination, write to a byte that must stay untouched */
    PTX_RACE,      /* two threads of a block on one shared byte, at least one writing, no barrier between */
    PTX_UNINITIALISED, /* read of a local or shared byte that was never written; an address, stored value or
                          branch that depends on such a register (computing with it is not yet a fault) */
    PTX_WRITTEN_TWICE, /* a destination byte written again, be it with the same value or by another launch */
    PTX_NOT_WRITTEN,   /* found by ptx_finish */
    PTX_DIVERGED,      /* barrier, shuffle or .uni branch that not all threads reach together */
    PTX_ENDLESS,       /* a warp used up its instruction budget */
    PTX_TRAPPED,       /* trap, division by zero, branch table index out of range */
    PTX_NO_MEMORY
};

/* A name for a fault, as written in front of report.error: "out of bounds". Static storage. */
const char *ptx_fault_name(enum ptx_fault fault);

/* Parses and decodes `text`. What is not understood exactly (instruction, modifier, type, operand, special
 * register, directive) is refused here, so that nothing is ever ignored at run time.
 * post: 0 and *out set (free with ptx_free; `text` may go away), or nonzero, *out NULL and err holding
 * "line N: what: token". err may be NULL when err_bytes is 0. */
int ptx_load(const char *text, struct ptx_module **out, char *err, size_t err_bytes);
void ptx_free(struct ptx_module *m);

/* What the text says about one .entry. Arrays and strings live as long as the module. */
struct ptx_entry_info {
    const char *name;
    int n_params;
    const size_t *param_bytes;  /* [n_params] */
    uint32_t max_threads;       /* .maxntid or .reqntid as a product, 0 when neither is given */
    uint32_t required_block[3]; /* .reqntid, 0 when not given */
    size_t shared_bytes;        /* static shared variables */
    size_t local_bytes;         /* per thread: 0 means that nothing was spilled or indexed dynamically */
    int n_instructions, n_registers;
};
int ptx_entry_count(const struct ptx_module *m);
const char *ptx_entry_name(const struct ptx_module *m, int entry);
/* pre: 0 <= entry < ptx_entry_count(m) */
void ptx_entry_info(const struct ptx_module *m, int entry, struct ptx_entry_info *out);

/* Is a parameter a struct, given by value? Others of eight bytes are pointers, or numbers. */
int ptx_param_is_struct(const struct ptx_module *m, int entry, int param);

/* A block of device memory, backed by `base` on the host (any alignment), or imaginary when base is NULL: a
 * load from it gives ptx_imagined, and what is stored only a sample's `watch` gets to see. Its device address
 * is a multiple of 256, far away from every other buffer. Read only: may be loaded, never stored to.
 * Writable: a destination, whose bytes are each written exactly once and never loaded. Scratch: written any
 * number of times, loaded once written. */
struct ptx_buffer {
    void *base;
    size_t bytes;
    int writable;
    int scratch;                     /* with writable: neither coverage nor single writes are asked for */
    const unsigned char *must_write; /* destinations only. NULL: every byte. Else one byte for each byte:
                                        nonzero = has to be written, 0 = has to stay untouched. Copied. */
};

/* The byte of imaginary buffer `buffer` at `offset`: a hash of both. */
unsigned char ptx_imagined(int buffer, uint64_t offset);

/* One kernel parameter. A pointer is buffer's device address + byte_offset (the offset may be odd, negative
 * or past the end: that is how a merely element-aligned or a reversed view is tested). Anything else is
 * n_bytes of `bytes`, and n_bytes must equal the declared size. A pointer inside a struct parameter: write
 * ptx_address() into the bytes. */
struct ptx_param {
    int is_pointer;
    int buffer;
    int64_t byte_offset;
    const void *bytes;
    size_t n_bytes;
};

struct ptx_launch {
    const char *entry;
    uint32_t grid[3], block[3];
    size_t shared_bytes; /* dynamic shared memory, for `extern .shared` arrays */
    const struct ptx_param *params;
    int n_params;
    uint64_t warp_budget; /* warp instructions of one warp before it counts as endless; 0 = 4 million */
};

/* Filled afresh by each ptx_run; ptx_finish fills it with the sums over all launches of the world.
 * A request is one memory instruction of one warp with at least one active thread; a sector is 32 aligned
 * bytes; _bytes sums what the threads asked for (a word read by two threads counts twice). Global memory
 * only: module variables and buffers. cp.async counts as a global load and a shared store. */
struct ptx_report {
    enum ptx_fault fault;
    char error[512]; /* empty when fault is PTX_FINE */
    uint64_t threads, warps, blocks;
    uint64_t instructions;      /* thread instructions: sum over warp instructions of active threads */
    uint64_t warp_instructions; /* instructions / (32 * warp_instructions) is the share of active lanes */
    uint64_t load_requests, load_sectors, load_bytes;
    uint64_t store_requests, store_sectors, store_bytes;
    uint64_t shared_load_requests, shared_load_wavefronts, shared_load_ideal;
    uint64_t shared_store_requests, shared_store_wavefronts, shared_store_ideal;
    uint64_t local_requests; /* loads and stores of .local: spills and dynamically indexed arrays */
    uint64_t barriers;       /* block-wide barriers completed */
    uint64_t early_exits;    /* of these, how many completed although some threads of the block had exited */
    /* PTX lines of the requests with the most wavefronts, the most sectors above ideal; 0: none, and in sums.
     */
    int worst_shared_line, worst_sector_line;
};

/* Copies the description; the host memory of each buffer stays the caller's and must outlive the world.
 * NULL when memory runs out, or n is not in 0..4000. */
struct ptx_world *ptx_world_new(const struct ptx_buffer *b, int n);
void ptx_world_free(struct ptx_world *w);

/* The device address of buffer + byte_offset. pre: 0 <= buffer < n */
uint64_t ptx_address(const struct ptx_world *w, int buffer, int64_t byte_offset);
/* The buffer that an address lies in or near, and how far from its start; -1: none (a module variable). */
int ptx_locate(uint64_t address, int64_t *byte_offset);

/* Runs one launch to its end: blocks one after another in x, y, z order, warps of a block in turn up to their
 * next barrier, threads of a warp in lockstep, lowest program counter first. Returns 0, or nonzero at the
 * first fault (report says which; buffers then hold what had been written). */
int ptx_run(struct ptx_world *w, const struct ptx_module *m, const struct ptx_launch *l,
            struct ptx_report *report);

/* What `watch` of a sample is told, once a request was served: a memory instruction of one warp. */
enum ptx_seen {
    PTX_SEEN_LOAD,   /* from a buffer or module variable; cp.async too, which stores into shared memory unseen
                      */
    PTX_SEEN_STORE,  /* to a buffer */
    PTX_SEEN_SHARED, /* a store into shared memory */
    PTX_SEEN_WAIT    /* for cp.async, or at a barrier; lanes and addresses are not set */
};
struct ptx_access {
    enum ptx_seen seen;
    uint64_t block; /* x + grid.x * (y + grid.y * z) */
    uint32_t warp, lanes;
    uint32_t bytes;                   /* of each lane, at .. */
    const uint64_t *address;          /* [32]; those of `lanes` are set; device addresses, see ptx_locate */
    const unsigned char *const *data; /* [32]; stores: the bytes, else NULL */
};

/* Some blocks of a launch, in this order, numbered as in ptx_access; only NULL: all. */
struct ptx_sample {
    const uint64_t *only;
    int n_only;
    void (*watch)(void *arg, const struct ptx_access *a); /* may be NULL */
    void *arg;
};
/* ptx_run of the sample alone. */
int ptx_run_sample(struct ptx_world *w, const struct ptx_module *m, const struct ptx_launch *l,
                   const struct ptx_sample *s, struct ptx_report *report);

/* After the last launch: every byte that had to be written was. (Second writes and writes to forbidden bytes
 * fail in ptx_run already.) Returns 0, or nonzero with PTX_NOT_WRITTEN. May be called again after more
 * launches. */
int ptx_finish(struct ptx_world *w, struct ptx_report *report);

#ifdef __cplusplus
}
#endif
#endif
