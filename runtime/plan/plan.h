/* plan.h: chooses how a map is run on a target. A strategy is one row {name, applicable, make}; the planner
 * tries the rows of the target's table in order, takes the first that applies, and remembers why each one
 * before it was refused: explain prints that. A plan knows its target as a struct of numbers and never
 * touches a device. Layer 3. */
#ifndef XTI_PLAN_PLAN_H
#define XTI_PLAN_PLAN_H

#include "base/str.h"
#include "base/why.h"
#include "map/map.h"
#include "plan/machine.h"

/* Each processor's sets from narrow to wide; gen/kernels.py has the same order. Compare for equality: no
 * processor has all of them (xti_cpu_has). */
enum xti_isa { XTI_ISA_SCALAR, XTI_ISA_AVX2, XTI_ISA_AVX512, XTI_ISA_NEON, XTI_ISA_COUNT };
extern const char *const xti_isa_name[XTI_ISA_COUNT]; /* "scalar", "avx2", "avx512", "neon" */

enum {
    XTI_LINE = 64,          /* bytes of a cache line */
    XTI_MALLOC = 16,        /* from a line to where large blocks of malloc's begin */
    XTI_STREAMED_RUN = 256, /* bytes of runs that blocks.c.j2 streams wherever they begin */
    XTI_LANE = 16           /* bytes that the shuffles of vectors stay inside: the least side of a square */
};

/* What plans may do without, and still copy: strategies, by their place in the table, and these. */
#define XTI_TRICKS(X)                                                                                        \
    X(MERGE, "merge")       /* steps that share lines, part by part of the destination (assemble.h) */       \
    X(JOINT, "joint")       /* pieces that make up short rows, in one stage (joint.c) */                     \
    X(OFF_LINE, "off_line") /* a second plan, for destinations that begin inside a line */                   \
    X(PERMUTED, "permuted") /* staged blocks by mosaics (mosaic.h) */                                        \
    X(GROUPS, "groups")     /* .. whose sources are fetched as one (group.c) */                              \
    X(UNSTAGED, "unstaged") /* xti_store.unstaged */                                                         \
    X(SQUARES, "squares")   /* xti_store.squares */                                                          \
    X(FEW, "few")           /* gathers where squares would be filled in part */                              \
    X(COVER, "cover")       /* boxes whole, and what guards hide of them afterwards (cost.h) */
enum { XTI_N_STRATEGIES = 18, XTI_FIRST_TRICK = 32 };
enum xti_trick {
    XTI_TRICK_BEFORE = XTI_FIRST_TRICK - 1,
#define X(id, name) XTI_##id,
    XTI_TRICKS(X)
#undef X
        XTI_TRICK_END
};

/* How CPU plans are forced away from the model's decisions; 0 everywhere: the model decides. Every choice
 * gives the same bytes. (choice.h) */
struct xti_choice {
    int8_t stream;     /* 1: streaming stores, -1: none */
    int8_t order;      /* of the loops: enum xti_order */
    int8_t rows, cols; /* cache blocks are 2^rows and 2^cols times the model's */
    int8_t first;      /* 1: tiles and staged blocks are fetched to the first cache, -1: to the second */
    uint64_t without;  /* bit i: strategy i, or enum xti_trick i; the last strategy stays */
};
enum xti_order { XTI_ORDER_MODEL, XTI_ORDER_SOURCE, XTI_ORDER_DESTINATION, XTI_ORDER_SUM, XTI_ORDER_COUNT };

struct xti_target {
    xt_backend backend;
    enum xti_isa isa;
    int64_t l1_bytes, l2_bytes, l3_bytes; /* of one core; l3: the share it sees */
    const struct xti_machine *machine;
    int threads;
    int d_line; /* from a line to where the destination begins, bytes */
    struct xti_choice choice;
};
static inline bool xti_choice_is_model(struct xti_choice c)
{
    return !c.stream && !c.order && !c.rows && !c.cols && !c.without && !c.first;
}
static inline bool xti_may(const struct xti_target *t, enum xti_trick k)
{
    return !(t->choice.without >> k & 1);
}
static inline struct xti_hints xti_target_hints(const struct xti_target *t)
{
    struct xti_hints h = t->machine->hints;
    if (t->choice.first)
        h.of[XTI_FETCHES_TILES] = t->choice.first > 0 ? XTI_HINT_T0 : XTI_HINT_T1;
    return h;
}

/* ---------------------------------------------------------------------------------------------- CPU plans */

/* The families of micro-kernels. Each copies a box of rows x cols units,
 *
 *     dst[r*d_row + c*d_col] = src[r*s_row + c*s_col]       (byte strides)
 *
 * and wants some of the strides fixed, in units u of its width, as told here. gen/kernels.py has the rows;
 * `param` is the N of the last five. Order and names: gen/gen.py reads this list. */
/* clang-format off */
#define XTI_CPU_OPS(X)                                                                                       \
    X(BLOCKS, blocks)             /* s_col = d_col = u = 1 byte: rows of runs */                             \
    X(FILL, fill)                 /* no source: `value`; d_col = u */                                        \
    X(BROADCAST, broadcast)       /* s_col = 0, d_col = u */                                                 \
    X(REVERSE, reverse)           /* s_col = -u, d_col = u */                                                \
    X(TRANSPOSE, transpose)       /* s_row = u, d_col = u */                                                 \
    X(WALK, walk)                 /* any strides */                                                          \
    X(TILE, tile)                 /* s_row = d_col = u, lists may replace d_row and s_col (xti_step) */      \
    X(GATHER, gather)             /* d_col = u, a list replaces s_col */                                     \
    X(MOSAIC, mosaic)             /* as gather, the lines by a table of windows (mosaic.h) */                \
    X(BRAID, braid)               /* s_row = d_col = u bytes, any number; a list may replace d_row */        \
    X(DEINTERLEAVE, deinterleave) /* rows = N, s_row = u, s_col = N*u, d_col = u */                          \
    X(INTERLEAVE, interleave)     /* rows = N, d_row = u, d_col = N*u, s_col = u */                          \
    X(STRIDED, strided)           /* s_col = N*u, d_col = u */                                               \
    X(MIRROR, mirror)             /* columns of N units: s_col = -N*u, d_col = N*u */                       \
    X(TURN, turn)                 /* groups of N units: s_row = d_col = N*u */

enum xti_cpu_op {
#define X(id, name) XTI_CPU_##id,
    XTI_CPU_OPS(X)
#undef X
    XTI_CPU_OP_COUNT
};
/* clang-format on */
extern const char *const xti_cpu_op_name[XTI_CPU_OP_COUNT];

/* Which extent a blocked loop cuts: that of another loop (its index), of the kernel's rows or columns, or
 * none. */
enum { XTI_CUTS_NONE = -1, XTI_CUTS_ROW = -2, XTI_CUTS_COL = -3 };

/* One level of a loop nest, byte strides. A blocked loop (cuts != XTI_CUTS_NONE) goes over the blocks of a
 * dim of `whole` points, `block` points each; s and d are those of one point, n is the number of blocks, and
 * loop `cuts` (which comes later) or the kernel goes over the points of the block; where that loop is blocked
 * itself, over whole blocks of its own. align: the run may make the first block shorter by up to block - 1
 * points so that the others begin on a destination line. */
struct xti_loop {
    int64_t n, s, d;
    int64_t whole, block;
    int64_t each; /* cuts the rows or columns of a list: entries a point stands for; else 0 */
    int cuts;
    bool align;
};

struct xti_offset {
    int64_t s, d; /* bytes */
};

enum { XTI_MAX_LOOPS = XTI_MAX_DIMS + 4 };

/* What an assembled plan may have: steps, and numbers of xti_cursor_room in all of them. */
enum { XTI_ASSEMBLE_STEPS = 32, XTI_ASSEMBLE_ROOM = 512 };

/* Rows and columns may stand for several dims: xti_step.loop[n_loops ..], those of the rows, then those of
 * the columns, outermost first. Lists of their offsets, owned by the plan's arena, replace the strides. */
struct xti_lists {
    int row_dims, col_dims;
    struct xti_offset *row_at; /* row.n entries */
    int32_t *col_at;           /* col.n entries, of the source */
};

/* How lines get to the destination. */
struct xti_store {
    bool stream;          /* whole ones may bypass the cache; who calls kernels fences */
    bool unstaged;        /* tile, of 1 to 8 bytes: made lane by lane from where the source lies */
    bool squares;         /* transpose, through the cache: of whole lines, each read and written once */
    bool halves;          /* transpose, in the first cache: by the kernel of AVX2 */
    bool prefetch_writes; /* fetched ahead of ordinary stores */
};

/* The order in which a kernel goes over its box. */
struct xti_visit {
    int together; /* mosaic: rows that share windows, .. */
    int windows;  /* .. how many those of a line are at most, .. */
    bool gaps;    /* .. and whether a page of the source may hold nothing that is read */
};

struct xti_tiles {
    int64_t rows, cols; /* cache block of rows and columns, in units; 0: whole. For explain */
};

/* Rows and columns are a block that is put together in a buffer; the step's unit is a run, of any length. */
struct xti_stage {
    bool serves;
    bool mosaics;                    /* blocks are mosaics */
    int group;                       /* of blocks: those that the loops from this one on go over. Their source
                                      * is fetched as one */
    const struct xti_blocks *blocks; /* owned by the plan's arena */
};

/* How one piece runs: outer loops (outermost first, any order that is good for the memory), then a
 * micro-kernel that covers the last one or two dims, or more by a table. The loops, the row and the column of
 * a general step are its piece's dims; the executor reads divs and guards from there. program.h prints it. */
struct xti_step {
    const struct xti_strategy *strategy;
    struct xti_choice choice; /* the target's */
    int piece;                /* index into plan->map */
    bool general;             /* the piece has divs or guards */
    enum xti_cpu_op kernel;
    int unit;  /* bytes the micro-kernel moves at a time */
    int param; /* N of the kernels that have one, else 0 */
    int n_loops;
    int split;             /* the loop that threads share, or -1: one thread */
    struct xti_loop *loop; /* owned by the plan's arena; while it is made: room for more */
    struct xti_loop row,
        col; /* what the micro-kernel covers: row.n rows of col.n units; row.n == 1: one row */
    struct xti_lists list;
    struct xti_store store;
    struct xti_visit visit;
    struct xti_tiles tile;
    struct xti_stage stage;
    int64_t s_byte, d_byte; /* of the first unit, from the buffers' starts */
    int64_t bytes;          /* written */
};

/* Blocks of one piece and of several: larger ones do more, but two buffers may not take more of the stack.
 * Dims: a group has <= 2^20 bytes; one more is tried. */
enum { XTI_BLOCK_BYTES = 10 << 10, XTI_JOINT_BYTES = 12 << 10, XTI_BLOCK_DIMS = 21 };

/* One side of a block or of a group of blocks: runs of adjacent bytes, dims ascending by stride. */
struct xti_runs {
    int64_t low; /* from the first unit to the lowest one */
    int64_t bytes, n_runs;
    int n_dims;
    int64_t n[XTI_BLOCK_DIMS], stride[XTI_BLOCK_DIMS];
};

/* What is put together in a block: a piece, or those of a joint plan. */
enum { XTI_MAX_PARTS = 4 };
struct xti_part {
    int src;
    int64_t s_byte;     /* of the first unit, from the source's start */
    const int64_t *s;   /* [n_loops] strides of its source for the step's loops */
    int64_t at;         /* bytes from a block's beginning to its first */
    struct xti_runs in; /* of a group's source */
};

/* How a part gets to a block. */
struct xti_inner {
    struct xti_step step;            /* from the source to the buffer */
    const struct xti_mosaic *mosaic; /* its table; owned by the plan's arena; NULL: none */
};

/* A block of a buffered step. In the buffer it is dense, in the order of the destination. */
struct xti_block {
    struct xti_inner *inner; /* [n_parts] owned by the plan's arena; NULL: there is no such block */
    struct xti_runs out;     /* of the destination */
    int64_t stream_lines;    /* of them for each call of the steps' kernels */
};

struct xti_blocks {
    int64_t rows, cols;           /* of a whole block */
    struct xti_block block[2][2]; /* [fewer rows][fewer columns] */
    int n_parts;
    struct xti_part *part;      /* owned by the plan's arena */
    const unsigned char *value; /* 16 bytes, for what no part writes; NULL: they write all */
    int64_t fetch_lines;        /* of their groups for each call of the blocks' kernels */
};

/* Pieces of which one buffered step makes rows of `row` bytes of the destination, the first of them the
 * step's own. */
struct xti_joint {
    int n, piece[XTI_MAX_PARTS]; /* n == 0: there is no such step */
    int64_t row;
    bool fills; /* with value, where no piece writes */
    unsigned char value[16];
};

/* Of a step in the order of the destination (cost.h: xti_order_step): bytes from the first to behind the last
 * one of a column, and of all columns of a row. */
int64_t xti_step_col_bytes(const struct xti_step *step);
int64_t xti_step_row_bytes(const struct xti_step *step);

struct xti_plan {
    struct xti_target target;
    const struct xti_strategy *strategies; /* in the order in which they are asked; the last serves all */
    struct xti_map map;                    /* as fused, with the caller's arrays */
    int n_steps;
    struct xti_step *step; /* owned */
    int most_windows; /* of a block inside of a buffered step, which is to be a mosaic where its lines have at
                         most so many; 0: none */
    struct xti_joint joint; /* of step 0; the map's other pieces are the others' */
    bool covered;           /* step 0 is done before the others begin, which write over it */
    bool by_line;           /* of destinations that begin inside a line pieces go another way */
    bool assembled;         /* the steps are in the order of the destination, and run part by part of it */
    double most;            /* while it is made: seconds that kernels have left; 0: all that they want */
    int64_t bytes_read, bytes_written;
    struct xti_arena arena;    /* tables of steps */
    struct xti_plan *off_line; /* owned; for destinations that begin inside a line; NULL: as for others */
};

/* How many of so many threads a copy of so many bytes is planned for, and shared by: each writes 256 KiB or
 * more. (bench/notes/threads.md) */
int xti_plan_threads(int threads, int64_t bytes);

struct xti_nest;
typedef void xti_strategy_make(const struct xti_plan *p, const struct xti_nest *t, struct xti_step *step);
/* How many rivals a plan that is priced high has, the first ones of these: of thousands no others won. */
enum xti_rivals {
    XTI_RIVALS_NONE,
    XTI_RIVALS_STREAM, /* with streaming stores, or without */
    XTI_RIVALS_NEXT,   /* without the strategy */
    XTI_RIVALS_GATHER  /* by a gather */
};
struct xti_strategy {
    const char *name;
    /* For people: "a transpose", "small squares are transposed in registers"; how NULL: what says it all. */
    const char *what, *how;
    bool (*applicable)(const struct xti_plan *p, const struct xti_nest *t, struct xti_why *why);
    /* Fills the step of this piece; cannot fail once applicable said yes. */
    xti_strategy_make *make;
    enum xti_rivals rivals;
    bool by_line; /* whether it applies depends on target.d_line */
};

/* The last row serves everything. (cpu_strategies.c) */
extern const struct xti_strategy xti_cpu_strategies[];
/* The plan's row with this function, which is in its table. */
const struct xti_strategy *xti_strategy_made_by(const struct xti_plan *p, xti_strategy_make *make);
/* The first from s on that a plan may take and that applies. */
const struct xti_strategy *xti_strategy_next(const struct xti_plan *p, const struct xti_strategy *s,
                                             const struct xti_nest *t);

/* Appends a line for every strategy that was asked before the chosen one and said no. */
void xti_plan_refusals(const struct xti_plan *p, struct xti_str *b);

/* Plans m for t. On failure *p is zeroed. m outlives the plan.
 * post: every piece of p->map is covered by exactly one step. */
xt_status xti_plan_make(const struct xti_map *m, const struct xti_target *t, struct xti_plan *p,
                        struct xti_err *err);
void xti_plan_free(struct xti_plan *p);

/* Makes p->step[piece] by the first strategy that applies. reshape: NULL, or what changes the step before its
 * loops are kept; there is room for more. Needs of p what strategies read: target, map, bytes_written. */
typedef xt_status xti_step_planner(struct xti_plan *p, int piece, void (*reshape)(struct xti_step *step),
                                   struct xti_err *err);
xti_step_planner xti_plan_step;
/* Name of the strategy that writes the most bytes. */
const char *xti_plan_strategy(const struct xti_plan *p);

#endif
