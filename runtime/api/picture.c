/* picture.c: a copy as a small text picture: of small tensors where each element comes from, of all where
 * each axis does, how memory is walked and what a tile is. Layer 6. */
#include "api/explain.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "cuda/describe.h"

/* ---- elements */

int64_t xti_numel_capped(const struct xti_layout *l)
{
    int64_t n = 1;
    for (int i = 0; i < l->rank; i++)
        n = l->shape[i] && n > INT32_MAX / l->shape[i] ? INT32_MAX : n * l->shape[i];
    return n;
}

int xti_small_cols(const struct xti_layout *l)
{
    return l->rank && xti_numel_capped(l) ? (int)l->shape[l->rank - 1] : 1;
}

/* The address of the i-th element, counted row by row. */
static int64_t address(const struct xti_layout *l, int64_t i)
{
    int64_t at = l->offset;
    for (int k = l->rank - 1; k >= 0; i /= l->shape[k--])
        at += i % l->shape[k] * l->strides[k];
    return at;
}

/* The first element that lies there; -1: none of the first `most`. */
static int number_at(const struct xti_layout *l, int64_t at, int most)
{
    for (int i = 0; i < most; i++)
        if (address(l, i) == at)
            return i;
    return -1;
}

struct cells {
    const struct xt_kernel *k;
    struct xti_layout result;
    int n;
    struct xti_cell *cell;
};

static bool note_cell(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    struct cells *c = arg;
    int i = number_at(&c->result, d, c->n);
    if (i < 0)
        return true;
    c->cell[i] = (struct xti_cell){p->src, 0};
    if (p->src >= 0) {
        struct xti_layout in;
        xti_packed_input(c->k->packed, p->src, &in);
        c->cell[i].number = number_at(&in, s, (int)xti_numel_capped(&in));
    }
    return true;
}

bool xti_small_cells(const struct xt_kernel *k, struct xti_cell *cell)
{
    struct cells c = {.k = k, .cell = cell};
    xti_packed_output(k->packed, &c.result);
    int64_t n = xti_numel_capped(&c.result), all = 0;
    for (int i = 0; i < k->map->n_srcs; i++) {
        struct xti_layout in;
        xti_packed_input(k->packed, i, &in);
        all += xti_numel_capped(&in);
    }
    if (!n || n > XTI_SMALL || all > XTI_SMALL)
        return false;
    c.n = (int)n;
    xti_map_visit(k->map, note_cell, &c);
    return true;
}

/* ---- small tensors as blocks of rows side by side */

enum { COLUMNS = 100 };

static int letters(const struct xt_kernel *k) { return k->map->n_srcs > 1 ? 1 : 0; }

static void cell_text(const struct xt_kernel *k, struct xti_cell c, struct xti_str *b)
{
    if (c.input < 0)
        xti_str_addf(b, "%*s", 3 + letters(k), ".");
    else if (letters(k))
        xti_str_addf(b, " %c%2d", 'a' + c.input % 26, c.number);
    else
        xti_str_addf(b, " %2d", c.number);
}

/* Line `row` of a tensor's elements, or a blank one; of more than two axes a blank line after each matrix. */
static void row_text(const struct xt_kernel *k, const struct xti_layout *l, const struct xti_cell *cell,
                     int row, int width, struct xti_str *b)
{
    int cols = xti_small_cols(l), rows = (int)(xti_numel_capped(l) / cols);
    int matrix = l->rank > 2 && rows ? (int)l->shape[l->rank - 2] : rows, at = row - row / (matrix + 1);
    size_t from = b->n;
    if (row % (matrix + 1) != matrix && at < rows)
        for (int i = 0; i < cols; i++)
            cell_text(k, cell[at * cols + i], b);
    while (b->n - from < (size_t)width && !b->failed)
        xti_str_add(b, " ");
}

static int lines_of(const struct xti_layout *l)
{
    if (!l->rank || !xti_numel_capped(l))
        return 1;
    int rows = (int)(xti_numel_capped(l) / xti_small_cols(l)),
        matrix = l->rank > 2 ? (int)l->shape[l->rank - 2] : rows;
    return rows + rows / matrix - 1;
}

/* "x f32[4,6]" */
static void title_text(const struct xt_kernel *k, int input, struct xti_str *b)
{
    struct xti_layout l;
    if (input < 0)
        xti_packed_output(k->packed, &l);
    else
        xti_packed_input(k->packed, input, &l);
    const char *name = input < 0 ? "" : xti_packed_name(k->packed, input);
    if (input >= 0 && letters(k) && (*name != 'a' + input % 26 || name[1]))
        xti_str_addf(b, "%c: ", 'a' + input % 26);
    xti_str_addf(b, "%s %s", input < 0 ? "result" : xti_packed_name(k->packed, input),
                 xt_dtype_name(l.dtype));
    xti_str_list(b, l.rank, l.shape);
}

/* Tensors side by side: input i's elements are numbered, or, i == -1, the result's are told. */
struct column {
    struct xti_layout l;
    int width;
    struct xti_cell cell[XTI_SMALL];
    struct xti_str title;
};

static void column_of(const struct xt_kernel *k, int input, const struct xti_cell *result, struct column *c)
{
    *c = (struct column){.width = 0};
    if (input < 0)
        xti_packed_output(k->packed, &c->l);
    else
        xti_packed_input(k->packed, input, &c->l);
    int n = (int)xti_numel_capped(&c->l);
    for (int i = 0; i < n; i++)
        c->cell[i] = input < 0 ? result[i] : (struct xti_cell){input, i};
    title_text(k, input, &c->title);
    if (input < 0)
        xti_str_add(&c->title, ": where each element comes from");
    if (input < 0 && xti_piece_from(k->map, -1)) {
        xti_str_add(&c->title, "; . is ");
        xti_fills_text(k, &c->title);
    }
    int cells = xti_small_cols(&c->l) * (3 + letters(k));
    c->width =
        cells > (int)c->title.n + 1 || input < 0 ? cells : (int)c->title.n + 1; /* the result's is last */
}

static void small_text(const struct xt_kernel *k, const struct xti_cell *cell, struct xti_str *b)
{
    enum { MOST = 4 };
    struct column c[MOST + 1];
    int n = k->map->n_srcs < MOST ? k->map->n_srcs : MOST, lines = 0, width = 0;
    for (int i = 0; i <= n; i++) {
        column_of(k, i < n ? i : -1, cell, &c[i]);
        lines = lines_of(&c[i].l) > lines ? lines_of(&c[i].l) : lines;
        width += c[i].width + 2;
    }
    for (int i = 0; i <= n && width <= COLUMNS; i++)
        xti_str_addf(b, "  %-*s%s", i < n ? c[i].width : 0, c[i].title.s ? c[i].title.s : "",
                     i < n ? "" : "\n");
    for (int row = 0; row < lines && width <= COLUMNS; row++) {
        for (int i = 0; i <= n; i++) {
            xti_str_add(b, "  ");
            row_text(k, &c[i].l, c[i].cell, row, c[i].width, b);
        }
        while (b->n && b->s[b->n - 1] == ' ')
            b->s[--b->n] = 0;
        xti_str_add(b, "\n");
    }
    for (int i = 0; i <= n; i++) {
        b->failed |= c[i].title.failed;
        xti_str_free(&c[i].title);
    }
}

/* ---- axes and memory */

static void axes_text(const struct xt_kernel *k, const struct xti_piece *p, struct xti_str *b)
{
    struct xti_layout in, out;
    xti_packed_output(k->packed, &out);
    xti_packed_input(k->packed, p->src, &in);
    xti_str_addf(b, "  axes     length  in %-27s in the result", xti_packed_name(k->packed, p->src));
    if (k->map->n_pieces > 1 && xti_piece_affine(p)) {
        xti_str_add(b, "   (");
        xti_share_text(k->map, &out, p, b);
        xti_str_add(b, ")");
    }
    xti_str_add(b, "\n");
    if (!xti_piece_affine(p)) {
        xti_str_add(b, "           " XTI_NO_AXES "\n");
        return;
    }
    for (int i = 0; i < p->n_dims; i++) {
        struct xti_str place = {0};
        xti_place_text(&in, p->dim[i].n, p->dim[i].s, &place);
        xti_str_addf(b, "  %15" PRId64 "  %-30s ", p->dim[i].n, place.s ? place.s : "");
        xti_place_text(&out, p->dim[i].n, p->dim[i].d, b);
        xti_str_add(b, "\n");
        b->failed |= place.failed;
        xti_str_free(&place);
    }
}

/* "24 bytes back in x" */
static void step_text(int64_t bytes, const char *where, struct xti_str *b)
{
    if (!bytes) {
        xti_str_addf(b, "the same in %s", where);
        return;
    }
    xti_add_bytes(bytes < 0 ? -(double)bytes : (double)bytes, b);
    xti_str_addf(b, bytes < 0 ? " back in %s" : " on in %s", where);
}

void xti_explain_walk(const struct xt_kernel *k, const struct xti_piece *p, struct xti_str *b)
{
    int e = k->map->esize, next = p->n_dims - 1;
    int64_t run = xti_common_run(p);
    if (next >= 0 && run == p->dim[next].n && p->dim[next].d == 1 && p->dim[next].s == 1)
        next--;
    xti_str_add(b, "runs of ");
    xti_add_bytes((double)run * e, b);
    if (next < 0)
        return;
    xti_str_add(b, "; the next one is ");
    step_text(p->dim[next].s * e, xti_packed_name(k->packed, p->src), b);
    xti_str_add(b, ", ");
    step_text(p->dim[next].d * e, "the result", b);
}

/* "16 times 64 contiguous bytes"; "96 contiguous bytes" */
static void times_text(int64_t n, int64_t bytes, struct xti_str *b)
{
    if (n > 1)
        xti_str_addf(b, "%" PRId64 " times ", n);
    xti_str_addf(b, "%" PRId64 " contiguous byte%s", bytes, bytes == 1 ? "" : "s");
}

void xti_explain_tile(const struct xt_kernel *k, struct xti_str *b)
{
    struct xti_tile t;
    const struct xti_step *s = xti_main_step(k);
    const struct xti_cuda_step *c = k->backend == XT_CUDA && k->cuda->n_steps ? k->cuda->step : NULL;
    if (s && xti_tile_of(k, s, &t)) {
        double tiles = (double)s->bytes / (double)t.bytes;
        if (t.reads) {
            times_text(t.reads, t.read_bytes, b);
            xti_str_add(b, t.reads == 1 && t.read_bytes == 1 ? " is read, " : " are read, ");
        }
        times_text(t.writes, t.write_bytes, b);
        if (tiles > 1)
            xti_str_addf(b, " written; %.*f such tiles", tiles < 99 && tiles > floor(tiles), tiles);
        else
            xti_str_add(b, k->plan->n_steps == 1 ? " written: the whole copy"
                                                 : " written: all of the largest part that is copied");
    } else if (c && c->family == XTI_CUDA_TILE) {
        xti_str_add(b, "a box of ");
        xti_cuda_box_text(k->cuda, c, b);
        xti_str_addf(b, " units of %d bytes for each block of threads", k->cuda->map.esize);
    }
}

/* Bytes from one run to the next of a dim that stays within a line of the source; XTI_LINE: it does not. */
static int64_t step_in_line(const struct xti_piece *p, int esize)
{
    const struct xti_dim *inner = p->n_dims ? &p->dim[p->n_dims - 1] : NULL;
    bool near = inner && xti_common_run(p) == 1 && inner->n > 1 && inner->s &&
                xti_abs64(inner->s) < (uint64_t)(XTI_LINE / esize);
    return near ? (int64_t)xti_abs64(inner->s) * esize : XTI_LINE;
}

/* "  memory    |+...............| of a line of 64 bytes, # is 4 bytes, + fewer: runs of 2 bytes"; of every
 * third f32 "|#..#..#..#..#..#|". */
static void memory_text(const struct xt_kernel *k, const struct xti_piece *p, struct xti_str *b)
{
    int64_t run = xti_common_run(p) * k->map->esize, step = step_in_line(p, k->map->esize);
    int64_t n = step < XTI_LINE ? p->dim[p->n_dims - 1].n : 1;
    bool fewer = false;
    xti_str_add(b, "  memory   |");
    for (int cell = 0; cell < XTI_LINE; cell += 4) {
        int used = 0;
        for (int i = cell; i < cell + 4; i++)
            used += i % step < run && i / step < n;
        fewer |= used % 4 != 0;
        xti_str_add(b, used == 4 ? "#" : used ? "+" : ".");
    }
    xti_str_addf(b, "| of a line of %d bytes, # is 4 bytes%s: ", XTI_LINE, fewer ? ", + fewer" : "");
    xti_explain_walk(k, p, b);
    xti_str_add(b, "\n");
}

void xti_explain_picture(const struct xt_kernel *k, struct xti_str *b)
{
    struct xti_cell cell[XTI_SMALL];
    struct xti_str tile = {0}, filled = {0};
    const struct xti_piece *p = xti_main_piece(k->map);
    bool small = p && xti_small_cells(k, cell);
    if (!p)
        return;
    size_t before = b->n;
    if (small)
        small_text(k, cell, b);
    for (int i = 0; i < k->map->n_srcs && i < XTI_INPUTS_SHOWN; i++) {
        const struct xti_piece *from = xti_piece_from(k->map, i);
        if (from) {
            xti_str_add(b, b->n > before ? "\n" : "");
            axes_text(k, from, b);
        }
    }
    if (k->map->n_srcs > XTI_INPUTS_SHOWN)
        xti_str_addf(b, "  .. and of %d more inputs\n", k->map->n_srcs - XTI_INPUTS_SHOWN);
    xti_filled_text(k, &filled);
    if (filled.s)
        xti_str_addf(b, "  filled   %s\n", filled.s);
    if (p->src >= 0 && xti_piece_affine(p))
        memory_text(k, p, b);
    xti_explain_tile(k, &tile);
    if (tile.s)
        xti_str_addf(b, "  a tile   %s\n", tile.s);
    b->failed |= tile.failed | filled.failed;
    xti_str_free(&tile);
    xti_str_free(&filled);
}
