/* plan.h: chooses how a map is run on a target. A strategy is one row {name, applicable, make}; the planner tries
 * the rows of the target's table in order, takes the first that applies (or, where several do, the cheapest by
 * cost.c), and remembers why each other one was refused: explain prints that. A plan knows its target as a struct
 * of numbers and never touches a device. Layer 3. */
#ifndef XTI_PLAN_PLAN_H
#define XTI_PLAN_PLAN_H

#include "base/str.h"
#include "map/map.h"

enum xti_isa { XTI_ISA_SCALAR, XTI_ISA_AVX2, XTI_ISA_AVX512, XTI_ISA_COUNT };
extern const char *const xti_isa_name[XTI_ISA_COUNT]; /* "scalar", "avx2", "avx512" */

struct xti_target {
    xt_backend backend;
    /* CPU */
    enum xti_isa isa;
    int64_t l1_bytes, l2_bytes, l3_bytes; /* of one core; l3: the share it sees */
    int threads;
    /* CUDA */
    int sm;      /* 90 for sm_90 */
    int n_sms;   /* 0: unknown */
};

/* Why a strategy does not serve a piece: written by its `applicable`, one condition a line. */
struct xti_why {
    char text[120];
};
/* Sets why and is false: `return xti_refuse(why, "inner run %d B < 16 B", n);` */
bool xti_refuse(struct xti_why *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ------------------------------------------------------------------------------------------------- CPU plans */

/* One level of a loop nest, byte strides. */
struct xti_loop {
    int64_t n, s, d;
};

/* How one piece runs: outer loops (outermost first, any order that is good for the memory), then a micro-kernel
 * that covers the last one or two dims. Divs and guards are evaluated by the generic strategy alone. */
struct xti_step {
    const struct xti_strategy *strategy;
    int piece;               /* index into plan->map */
    int unit;                /* bytes the micro-kernel moves at a time */
    int kernel;              /* enum xtk_op of cpu/kernels.h: which micro-kernel family */
    int n_loops;
    struct xti_loop loop[XTI_MAX_DIMS];
    struct xti_loop row, col; /* what the micro-kernel covers: row.n rows of col.n units; row.n == 1: one row */
    int64_t s_byte, d_byte;   /* of the first unit, from the buffers' starts */
    int64_t tile_rows, tile_cols; /* cache block of a 2-D micro-kernel, in units; 0: whole */
    bool stream;              /* non-temporal stores */
    int64_t bytes;            /* written */
};

/* ------------------------------------------------------------------------------------------------ CUDA plans */

/* One piece of a launch: `blocks` consecutive blocks starting at first_block run `strategy`'s skeleton. */
struct xti_cuda_step {
    const struct xti_strategy *strategy;
    int piece;
    int vec_bytes;           /* bytes of a thread's access; the map's unit is <= this */
    int64_t first_block, blocks;
    int64_t shared_bytes;
    int64_t arg[16];         /* the skeleton's own numbers, named in its file */
};

struct xti_plan {
    struct xti_target target;
    struct xti_map map;      /* CUDA: normalised and widened; CPU: as fused. Owned */
    struct xti_origin origin; /* CUDA only */
    int n_steps;
    struct xti_step *step;            /* CPU; owned */
    struct xti_cuda_step *cuda_step;  /* CUDA; owned */
    int threads_per_block;
    int64_t blocks;
    bool index32;
    int64_t bytes_read, bytes_written;
    struct xti_str refused;  /* "transpose: inner extent 3 < 16\n" .. */
};

struct xti_strategy {
    const char *name;
    bool (*applicable)(const struct xti_plan *p, int piece, struct xti_why *why);
    /* Fills the step of this piece; cannot fail once applicable said yes. CPU rows set `make`, CUDA rows `make_cuda`. */
    void (*make)(const struct xti_plan *p, int piece, struct xti_step *step);
    void (*make_cuda)(const struct xti_plan *p, int piece, struct xti_cuda_step *step);
    const char *skeleton;    /* CUDA: file name in templates/cuda, without ".cu" */
};

/* Tables, last row of each serves everything. (cpu_strategies.c, cuda_strategies.c) */
extern const struct xti_strategy xti_cpu_strategies[];
extern const int xti_n_cpu_strategies;
extern const struct xti_strategy xti_cuda_strategies[];
extern const int xti_n_cuda_strategies;

/* Plans m for t. On failure *p is zeroed. m is not kept.
 * post: every piece of p->map is covered by exactly one step. */
xt_status xti_plan_make(const struct xti_map *m, const struct xti_target *t, struct xti_plan *p, struct xti_err *err);
void xti_plan_free(struct xti_plan *p);
/* Name of the strategy that writes the most bytes. */
const char *xti_plan_strategy(const struct xti_plan *p);

#endif
