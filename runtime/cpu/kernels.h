/* kernels.h: what a generated micro-kernel is, and the registry of all of them. The functions and the tables
 * come from gen/kernels.py and templates/cpu. Layer 4. */
#ifndef XTI_CPU_KERNELS_H
#define XTI_CPU_KERNELS_H

#include "plan/mosaic.h"

struct xtk_job;

/* A part of the destination that is put together in a buffer of 64 lines. A kernel may stream lines that a
 * row covers whole to where they belong, and then says so. */
struct xtk_part {
    char *buffer;  /* on a line. Jobs write here .. */
    char *dst;     /* .. what belongs there, on a line, too */
    uint64_t done; /* bit i: line i is there */
};

/* Strides inside groups of 32 bytes of columns (s, of the source) and of rows (d, of the destination), where
 * lists replace strides; 0: they differ. */
struct xtk_groups {
    int64_t s, d;
};

/* What is fetched ahead. */
struct xtk_next {
    int64_t s, d;  /* from this job to the next one; 0: unknown */
    int64_t ahead; /* with a part: bytes from what is loaded */
};

/* What a kernel works beside. */
struct xtk_beside {
    struct xti_buffered *buffered; /* of a block's kernel (cpu/buffered.c) */
    struct xtk_part *part;         /* the destination is in its buffer; NULL: is the destination */
};

/* What struct xti_machine says of the processor. */
struct xtk_machine {
    struct xti_hints hints;
    int follows;
    bool far, columns; /* far_ahead, fetch_columns */
};

/* A box of rows x cols units (enum xti_cpu_op says which strides are fixed); strides in bytes. */
struct xtk_job {
    int64_t rows, cols;
    int64_t s_row, s_col, d_row, d_col;
    int64_t run;                     /* braid: bytes of a unit */
    const unsigned char *value;      /* fill: 16 bytes, the unit repeated */
    const struct xti_offset *row_at; /* tile, gather, mosaic, braid: rows entries; NULL: strides */
    const int32_t *col_at; /* gather, mosaic, tile: cols entries, bytes of the source; tile, NULL: strides */
    /* tile, braid: columns of the same rows on either side of the job's own. The job's lines are those that
     * begin in its columns; it reads up to a line's worth of those after. A tile's own fill whole lines. */
    int64_t before, after;
    struct xtk_groups group; /* tile */
    struct xti_store store;
    struct xtk_next next;
    const struct xti_mosaic *mosaic; /* its table; NULL: unit by unit */
    struct xtk_beside beside;
    struct xtk_machine machine;
};

/* d, s: unit (0, 0); no alignment is asked. Reads and writes the box's bytes alone; may write one of them
 * twice. */
typedef void (*xtk_fn)(const struct xtk_job *j, char *d, const char *s);

struct xtk_row {
    const char *name; /* the function's: xtk_<op>_b<unit>_<tile>_<isa> */
    enum xti_cpu_op op;
    int unit, param;
    enum xti_isa isa;
    int tile_rows, tile_cols; /* units that the widest inner code moves at once */
    xtk_fn fn;
};
extern const struct xtk_row xtk_rows[];
extern const int xtk_n_rows;

/* The row for the widest instruction set up to isa that has the kernel; the scalar set has every one. */
const struct xtk_row *xtk_find(enum xti_isa isa, enum xti_cpu_op op, int unit, int param);

#endif
