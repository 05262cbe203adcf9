/* mosaic.h: lines of the destination whose units lie in few windows of the source. A kernel loads the windows
 * and permutes them into each other, by a table that serves all tiles. Plans ask whether there are few, runs
 * make the table. By AVX-512 windows have 64 bytes, and two are permuted at once into the 64 of a line; else
 * both have 16 bytes, one at a time, and a line of the table is two of them. Layer 3. */
#ifndef XTI_PLAN_MOSAIC_H
#define XTI_PLAN_MOSAIC_H

#include "plan/plan.h"

enum {
    XTI_MOSAIC_COL_BYTES = 2048, /* of a row at most */
    XTI_MOSAIC_TILE_BYTES = 1 << 14,
    XTI_MOSAIC_WINDOWS = 32, /* of a line; half as many where rows begin with one */
    XTI_MOSAIC_LINES = XTI_MOSAIC_COL_BYTES / XTI_LINE + 1,
    XTI_MOSAIC_ROWS = XTI_MOSAIC_TILE_BYTES / XTI_LINE,
    XTI_MOSAIC_FETCHES = 1024,
    XTI_MOSAIC_DIMS = 12 /* of columns in so few bytes, of 2 points and more, and of halves */
};

/* Elements: units, or their halves when these have 16 bytes. An element's index: its place in its window, and
 * in the second one of a pair XTI_LINE / element more. */
struct xti_mosaic_line {
    union {
        struct {
            unsigned char index[XTI_LINE] __attribute__((aligned(64)));
            uint64_t pair[XTI_MOSAIC_WINDOWS / 2]; /* bit i: element i is from this pair of windows */
        };
        unsigned char byte[XTI_LANE][2 * XTI_LANE]; /* its place in a window of 16; 128: elsewhere */
    };
    /* Bytes from where the source of a group of rows begins; of 16: by turns for either half. */
    int32_t window[XTI_MOSAIC_WINDOWS];
    int n_pairs;
    int d;            /* bytes from the row's first */
    uint64_t written; /* bit i: element i belongs to the row */
    bool whole;       /* all do */
};

/* s: of its group; its own source is `shift` elements further. */
struct xti_mosaic_row {
    int64_t s, d, shift;
};

struct xti_mosaic {
    struct xti_mosaic_row row[XTI_MOSAIC_ROWS];
    int n_lines;
    bool aligned;        /* the lines are lines of the destination */
    int n_fetches, each; /* for each line that is written */
    struct xti_mosaic_line line[XTI_MOSAIC_LINES];
    int32_t fetch[XTI_MOSAIC_FETCHES]; /* lines of the source of a tile, ascending */
};

/* A tile: at most XTI_MOSAIC_ROWS rows, in groups that share windows. */
struct xti_mosaic_of {
    const struct xti_offset *row_at; /* ascending in a group */
    const int32_t *col_at;
    int64_t rows, cols;
    int width;             /* bytes of a window: xti_mosaic_width */
    int unit, group, most; /* windows of a line: XTI_MOSAIC_WINDOWS at most */
    bool aligned;          /* rows and tiles are whole lines apart */
    bool gaps;             /* a page of the source may hold nothing that is read */
    uintptr_t d, s;        /* addresses, whose places in a line matter */
    int64_t last;          /* bytes from the first row of a group to its last one */
    int64_t lo, hi;        /* .. and from the first column to the lowest element and to the highest one */
    int64_t bits;          /* that offsets of a group's rows and of columns have */
    int n_dims;            /* of columns and halves, by stride: where there are gaps */
    struct {
        uint32_t n, s;
    } dim[XTI_MOSAIC_DIMS];
};

/* Bytes of windows; 0: the instruction set permutes none. Of a row at most. */
static inline int xti_mosaic_width(enum xti_isa i)
{
    return i == XTI_ISA_AVX512 ? XTI_LINE : i ? XTI_LANE : 0;
}
static inline int xti_mosaic_col_bytes(enum xti_isa i)
{
    return XTI_MOSAIC_COL_BYTES >> (i != XTI_ISA_AVX512);
}

/* Of a step's tiles, wherever the buffers lie. */
struct xti_mosaic_of xti_mosaic_of(const struct xti_step *step, enum xti_isa isa);

/* Adds a dim of the columns, which lie less than INT32_MAX bytes apart. */
void xti_mosaic_add(struct xti_mosaic_of *of, int64_t n, int64_t s);

/* How many windows a line has at most, an even number; of 16 bytes, in the mean. 0: more than `most`, a line
 * more than of->most, or what is read near one, with gaps, is no line; the buffers may lie anywhere. Needs no
 * rows. */
int xti_mosaic_windows(const struct xti_mosaic_of *of, int most);

/* The most that a line has, here. Without fetches. */
int xti_mosaic_table(const struct xti_mosaic_of *of, struct xti_mosaic *m);

/* Those of a table's tile. */
void xti_mosaic_fetches(const struct xti_mosaic_of *of, struct xti_mosaic *m);

#endif
