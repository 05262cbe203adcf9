/* explain.h: the parts of an explanation, a file each. All append; b->failed when there is no memory.
 * Layer 6. */
#ifndef XTI_API_EXPLAIN_H
#define XTI_API_EXPLAIN_H

#include "api/api.h"

/* Of more pieces and steps than these the text leaves out the rest, unless it is to say why. */
enum { XTI_EXPLAIN_MOST = 12 };

/* ---- steps.c: the chain without fusing */

struct xti_copies {
    int n;
    double bytes; /* read and written */
};
struct xti_cost_of_steps {
    int operations; /* of the chain, that its result needs */
    double bytes; /* read and written when each that moves anything makes its result whole, as the benchmark's
                     steps do */
    /* What a library has to copy: what strides can say is a view, and the last copy makes the result an array
     * of its own. numpy_check.py counts what NumPy does; tile, and results in other orders, take it more. */
    struct xti_copies numpy, pytorch;
};
/* False: there is no memory. */
bool xti_explain_steps(const struct xt_kernel *k, struct xti_cost_of_steps *out);

/* ---- words.c: the first two lines, without the line's end */

void xti_add_bytes(double bytes, struct xti_str *b); /* "192 bytes", "16.8 MB" */
/* "3 operations in one copy: 96 bytes read, 96 bytes written, 192 bytes in all; NumPy copies once, too;
 * PyTorch 2 times, 384 bytes"; where elements are repeated "4096 bytes read from 64 bytes" */
void xti_explain_saved(const struct xt_kernel *k, struct xti_str *b);
const char *xti_kernel_way(const struct xt_kernel *k); /* "a transpose" */
/* "a transpose: runs of 4 bytes of a 64-byte line, so small squares are transposed in registers; 1 thread" */
void xti_explain_way(const struct xt_kernel *k, struct xti_str *b);

/* A line of its own before the line's end: why this way. Nothing where nothing is copied, or by
 * definition. */
void xti_explain_why(const struct xt_kernel *k, struct xti_str *b);

/* ---- places.c: what the index map says of axes and memory */

/* The piece that copies the most bytes, or, where none reads, that fills them; NULL: there is none. */
const struct xti_piece *xti_main_piece(const struct xti_map *m);
/* The piece that copies the most of an input, or, src -1, that fills the most; NULL: there is none. */
const struct xti_piece *xti_piece_from(const struct xti_map *m, int src);
/* "the largest of 2 pieces, 66.7 % of the result" */
void xti_share_text(const struct xti_map *m, const struct xti_layout *result, const struct xti_piece *p,
                    struct xti_str *b);
/* "7"; "0, 7": the values of fills, three at most, then "..". */
void xti_fills_text(const struct xt_kernel *k, struct xti_str *b);
/* "11.1 % of the result with 7"; nothing where nothing is filled, or conditions say what is. */
void xti_filled_text(const struct xt_kernel *k, struct xti_str *b);
enum { XTI_INPUTS_SHOWN = 4 };
/* Elements that are side by side on both sides. */
int64_t xti_common_run(const struct xti_piece *p);

/* Where a dim of n points, st elements apart, lies in a tensor. */
struct xti_place {
    int first, last; /* axes; last < first: of no axis, or of several at once */
    int64_t step; /* points of axis `last` from one to the next, negative: backwards; 0: stays where it is */
    bool whole;   /* all points of these axes */
};
struct xti_place xti_place_of(const struct xti_layout *l, int64_t n, int64_t st);
/* "axis 0, backwards"; "axes 1-2, every 4th"; "the same again" */
void xti_place_text(const struct xti_layout *l, int64_t n, int64_t st, struct xti_str *b);

/* What one call of a CPU step's kernel, or of what fills its buffer, moves: as runs of memory on either
 * side. */
struct xti_tile {
    int64_t bytes, reads, read_bytes, writes, write_bytes; /* reads 0: of a fill */
};
/* False: the step is none of boxes. */
bool xti_tile_of(const struct xt_kernel *k, const struct xti_step *s, struct xti_tile *out);
/* The step that copies the most bytes, or fills them; NULL: not a CPU plan, or nothing to do. */
const struct xti_step *xti_main_step(const struct xt_kernel *k);

/* ---- picture.c and svg.c: where each axis comes from, how memory is walked, what a tile is */

void xti_explain_picture(const struct xt_kernel *k, struct xti_str *b);
/* The same as a self-contained SVG, for light and dark pages. */
void xti_explain_svg(const struct xt_kernel *k, struct xti_str *b);

/* Why there are no axes of an input whose piece is not affine. */
#define XTI_NO_AXES "no axes: divisions or conditions say where an element comes from, as in tril or a window"
/* "runs of 4 bytes; the next one is 24 bytes back in x, 4 bytes on in the result". p: affine, reads */
void xti_explain_walk(const struct xt_kernel *k, const struct xti_piece *p, struct xti_str *b);
/* "64 times 8000 contiguous bytes are read, ..": nothing where there are no tiles. */
void xti_explain_tile(const struct xt_kernel *k, struct xti_str *b);

/* Tensors that are small enough to show each element: for each of the result's the input (-1: of a fill) and
 * the element's number in it, counted row by row. */
enum { XTI_SMALL = 64 };
struct xti_cell {
    int input;
    int number;
};
int64_t xti_numel_capped(const struct xti_layout *l); /* INT32_MAX: or more */
/* Of a tensor of at most XTI_SMALL elements; one that has none may be as wide as it likes: 1. */
int xti_small_cols(const struct xti_layout *l);
/* cell has room for XTI_SMALL. False: too large. */
bool xti_small_cells(const struct xt_kernel *k, struct xti_cell *cell);

/* ---- plan_text.c */

/* The plan: its steps with their loops; with `why` all of them, and what was refused. */
void xti_explain_plan(const struct xt_kernel *k, bool why, struct xti_str *b);
/* Members of an array: {"piece", "strategy", "reason"}. */
void xti_explain_refusals_json(const struct xt_kernel *k, struct xti_str *b);

#endif
