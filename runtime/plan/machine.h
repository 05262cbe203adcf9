/* machine.h: what CPU plans and kernels know of a processor: one row a microarchitecture, found by vendor,
 * family and model. A row's habits are what was measured on it; whoever has none gets the careful row. The
 * row is the identity of plans, prices and measured choices. Layer 3. */
#ifndef XTI_PLAN_MACHINE_H
#define XTI_PLAN_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* The instruction by which lines that are read once are asked for ahead. */
enum xti_hint {
    XTI_HINT_NONE, /* left to the processor's own prefetching */
    XTI_HINT_NTA,  /* PREFETCHNTA: to the first cache, past the others */
    XTI_HINT_T0,   /* to all caches */
    XTI_HINT_T1    /* to the second */
};

/* Kernels that have a hint of their own. */
enum xti_fetches {
    XTI_FETCHES_ROWS,        /* long runs, forwards and backwards, around the cache */
    XTI_FETCHES_SHORT_PARTS, /* runs of less than PART_RUN bytes to a part's buffer (blocks.c.j2) */
    XTI_FETCHES_PARTS,       /* longer ones */
    XTI_FETCHES_WEAVES,      /* planes to pixels, pixels to planes, mirrored pixels */
    XTI_FETCHES_STRIDED,     /* every n-th unit */
    XTI_FETCHES_GATHERS,     /* unit by unit, from a list */
    XTI_FETCHES_TILES,       /* tiles and staged blocks, a tile or a block ahead: T0 or T1 */
    XTI_N_FETCHES
};

struct xti_hints {
    uint8_t of[XTI_N_FETCHES]; /* enum xti_hint */
};

enum { XTI_N_CACHES = 3 };

/* Nanoseconds, of a line of 64 bytes where nothing else is said. An array's prices are for the way between
 * the first and second cache, the second and third, the third and memory: a line of memory pays all of them.
 */
struct xti_prices {
    double run, step, call;      /* of xt_run, of a step with loops, of a micro-kernel's call .. */
    double row, short_row, unit; /* .. of a row in it, of one below a line, of a unit that is moved alone */
    double fetch[XTI_N_CACHES], store[XTI_N_CACHES]; /* read; fetched, changed and written back */
    double stream, split;                            /* a streaming store of a line, of a part of one */
    double jump;             /* where, past the second cache, the next line is not the neighbour */
    double together, beside; /* the part of it that the cheaper of two adds to the dearer: of reading and
                                writing, of vectors and memory */
    double vector, picked;   /* times what estimate.c has: vectors, what tiles and gathers pick */
    double share;            /* of the third cache that a core can count on */
    double thread, full;     /* starting one; how many use up the memory's bandwidth */
};

/* What was measured to serve on the processor. The rules that ask say what for (cost.h). */
struct xti_habits {
    int follows;          /* columns of a tile, in long runs, that the processor fetches ahead by itself: of
                           * more, all are fetched by hint (stage.c.j2) */
    bool far_ahead;       /* it fetches little else by itself: hints run three times as far ahead, and for all
                           * that is read */
    bool fetch_columns;   /* tiles of units of 2 bytes and more are fetched column by column, as bytes are;
                           * else square by square (pump.c.j2) */
    bool prefetch_writes; /* lines want to be fetched ahead of ordinary stores */
    bool early_stores;    /* stores fetch their lines while they wait (xti_cost_whole_lines) */
    bool splits_vectors;  /* those of 512 bits take two places of those of 256 (xti_cost_halves) */
    int gathers;          /* units of so many bytes and more come cheaper by gathers than by permuted windows
                           * of the source (xti_mosaic_serves); 0: none do */
    bool well_priced;     /* prices tell plans apart that differ by less than three times (replace_dear) */
};

struct xti_machine {
    const char *name;                     /* "zen5" */
    int64_t l1_bytes, l2_bytes, l3_bytes; /* of one core, where the processor does not tell; 0: unknown */
    const struct xti_prices *prices;
    struct xti_hints hints;
    struct xti_habits habits;
};

/* The row of a processor, by the vendor's name, its family and model as cpuid counts them ("AuthenticAMD",
 * 26, 2). Whoever has no row gets the careful one. */
const struct xti_machine *xti_machine_find(const char *vendor, unsigned family, unsigned model);

/* NULL: there is none of that name. */
const struct xti_machine *xti_machine_named(const char *name);

/* The i-th row, NULL after the last. */
const struct xti_machine *xti_machine_at(int i);

extern const struct xti_machine *const xti_machine_careful; /* "generic" */

#endif
