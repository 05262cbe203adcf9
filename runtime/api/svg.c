/* svg.c: the picture of a copy as a self-contained SVG: small tensors element by element, axes as ribbons
 * from the source to the result, a line of memory, a tile. Colours follow prefers-color-scheme. Layer 6. */
#include "api/explain.h"

#include <inttypes.h>
#include <string.h>

enum { WIDTH = 648, MARGIN = 20, CHARS = 78 };
enum {
    AXIS = 34,
    LEFT = 244,
    RIGHT = 312
}; /* boxes of axes: how high, where the input's end, where the result's begin */

/* Scoped: several pictures, and other things, may stand in one page. */
static const char style[] =
    "<style>.xt text{font:15px system-ui,sans-serif;fill:#1c2530}.xt .h{font-weight:600;font-size:17px}"
    ".xt .k{font-weight:600}"
    ".xt .m{font-family:ui-monospace,monospace;font-size:13.5px}.xt .s{font-size:14px;fill:#526173}"
    ".xt .bg{fill:#fff}.xt .b{fill:#f1f4f7;stroke:#8a97a6}.xt .e{fill:none;stroke:#8a97a6}.xt "
    ".r{fill:#2b6cb0}.xt .c{fill-opacity:.3}"
    "@media(prefers-color-scheme:dark){.xt text{fill:#e6ebf0}.xt .s{fill:#a3b1c0}.xt .bg{fill:#14181d}"
    ".xt .b{fill:#232a32;stroke:#66727f}.xt .e{stroke:#97a5b3}.xt .r{fill:#63a4e8}.xt "
    ".c{fill-opacity:.5}}</style>\n";

/* The picture grows downwards. */
struct page {
    const struct xt_kernel *k;
    struct xti_str body;
    int y;
};

static void escaped(const char *text, size_t n, struct xti_str *b)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == '<' || text[i] == '&')
            xti_str_add(b, text[i] == '<' ? "&lt;" : "&amp;");
        else
            xti_str_addn(b, &text[i], 1);
}

static void put(struct page *p, const char *class, int x, int y, const char *text, size_t n)
{
    xti_str_addf(&p->body, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    escaped(text, n, &p->body);
    xti_str_add(&p->body, "</text>\n");
}

/* A paragraph, broken between words, a chain (class m) before an operation, too; `most` lines of it. */
static void paragraph(struct page *p, const char *class, const char *text, int chars, int most)
{
    size_t n = text ? strlen(text) : 0;
    for (size_t at = 0; at < n && most--;) {
        size_t end = n - at > (size_t)chars ? at + (size_t)chars : n;
        while (end < n && end > at + (size_t)chars / 2 && text[end] != ' ' &&
               !(*class == 'm' && strchr(".[", text[end])))
            end--;
        put(p, class, MARGIN, p->y, text + at, end - at);
        p->y += 21;
        at = end + (end < n && text[end] == ' ');
    }
}

/* ---- elements */

/* Each element keeps its colour on the way. */
static void cell(struct page *p, int x, int y, struct xti_cell c)
{
    xti_str_addf(&p->body, "<rect class=\"e\" x=\"%d\" y=\"%d\" width=\"30\" height=\"24\"/>", x, y);
    if (c.input >= 0) {
        struct xti_layout l;
        xti_packed_input(p->k->packed, c.input, &l);
        int spread = p->k->map->n_srcs > 1 ? 50 : 160;
        int hue = (int)(200 + c.input * 97 + c.number * spread / xti_numel_capped(&l)) % 360;
        char letter[2] = {p->k->map->n_srcs > 1 ? (char)('a' + c.input % 26) : 0, 0};
        xti_str_addf(&p->body,
                     "<rect class=\"c\" x=\"%d\" y=\"%d\" width=\"30\" height=\"24\" "
                     "fill=\"hsl(%d,75%%,50%%)\"/><text class=\"m\" x=\"%d\" y=\"%d\" "
                     "text-anchor=\"middle\">%s%d</text>",
                     x, y, hue, x + 15, y + 17, letter, c.number);
    }
    xti_str_add(&p->body, "\n");
}

static void title(const struct xti_layout *l, const char *name, struct xti_str *b)
{
    xti_str_addf(b, "%s %s", name, xt_dtype_name(l->dtype));
    xti_str_list(b, l->rank, l->shape);
}

/* A tensor's elements; matrices below each other. cells NULL: input `input` itself. Beside what is there, or
 * below it: *x moves on. */
static void grid(struct page *p, const struct xti_layout *l, const char *name, int input,
                 const struct xti_cell *cells, int *x, int *bottom)
{
    int n = (int)xti_numel_capped(l), cols = xti_small_cols(l), y = p->y + 10;
    int rows = n && l->rank > 1 ? (int)l->shape[l->rank - 2] : 1;
    struct xti_str text = {0};
    title(l, name, &text);
    int width = cols * 30 > (int)text.n * 8 ? cols * 30 : (int)text.n * 8;
    if (*x > MARGIN && *x + width > WIDTH - MARGIN) {
        p->y = *bottom + 12;
        *x = MARGIN;
        y = p->y + 10;
    }
    put(p, "s", *x, p->y, text.s ? text.s : "", text.n);
    for (int i = 0; i < n; i++) {
        int row = i / cols, at = y + row * 24 + row / rows * 8;
        cell(p, *x + i % cols * 30, at, cells ? cells[i] : (struct xti_cell){input, i});
        *bottom = at + 48 > *bottom ? at + 48 : *bottom;
    }
    *x += width + 36;
    p->body.failed |= text.failed;
    xti_str_free(&text);
}

static void elements(struct page *p)
{
    struct xti_cell c[XTI_SMALL];
    struct xti_layout l;
    struct xti_str words = {0};
    int x = MARGIN, bottom = p->y;
    if (!xti_small_cells(p->k, c)) {
        paragraph(p, "s", "elements are drawn one by one only where there are 64 or fewer", CHARS, 1);
        p->y += 12;
        return;
    }
    for (int i = 0; i < p->k->map->n_srcs; i++) {
        xti_packed_input(p->k->packed, i, &l);
        grid(p, &l, xti_packed_name(p->k->packed, i), i, NULL, &x, &bottom);
    }
    xti_packed_output(p->k->packed, &l);
    x = x < RIGHT ? RIGHT : x; /* above its axes */
    grid(p, &l, "result", -1, c, &x, &bottom);
    p->y = bottom;
    xti_str_add(&words, p->k->map->n_srcs > 1 ? "letter: the input; number: the element's place in it"
                                              : "number: the element's place in the input");
    if (xti_piece_from(p->k->map, -1))
        xti_str_add(&words, "; blank: filled");
    paragraph(p, "s", words.s, CHARS, 2);
    p->body.failed |= words.failed;
    xti_str_free(&words);
    p->y += 12;
}

/* ---- axes */

static void box(struct page *p, int x, int y, int width, const char *text, size_t n)
{
    xti_str_addf(&p->body, "<rect class=\"b\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"26\" rx=\"5\"/>\n", x,
                 y, width);
    put(p, "m", x + 8, y + 18, text, n);
}

/* From the middle of the source's axes [first, last] to row i of the result. */
static void ribbon(struct page *p, int top, struct xti_place from, int axes, int i)
{
    bool none = from.last < from.first;
    int first = none ? 0 : from.first, last = none ? axes - 1 : from.last;
    int y0 = top + first * AXIS + 3, y1 = top + last * AXIS + 23, y = top + i * AXIS;
    int mid = (LEFT + RIGHT) / 2;
    xti_str_addf(&p->body,
                 "<path d=\"M%d %dC%d %d %d %d %d %dV%dC%d %d %d %d %d %dZ\" class=\"c\" "
                 "fill=\"hsl(%d,75%%,40%%)\"/>\n",
                 LEFT, y0, mid, y0, mid, y + 3, RIGHT, y + 3, y + 23, mid, y + 23, mid, y1, LEFT, y1,
                 40 + 45 * i % 140); /* none of the hues that one input's elements have */
}

/* Is the input's axis read backwards by one of the piece's loops? */
static bool is_backwards(const struct xti_layout *in, const struct xti_piece *q, int axis)
{
    for (int i = 0; i < q->n_dims; i++) {
        struct xti_place from = xti_place_of(in, q->dim[i].n, q->dim[i].s);
        if (from.step < 0 && axis >= from.first && axis <= from.last)
            return true;
    }
    return false;
}

/* "axis 2 (64)"; "axes 0-1, every 4th (6)"; "axis 1, 510 of 512" */
static void result_text(const struct xti_layout *out, const struct xti_dim *d, struct xti_str *b)
{
    struct xti_place to = xti_place_of(out, d->n, d->d);
    xti_place_text(out, d->n, d->d, b);
    if (to.last < to.first || to.whole || to.step > 1 || to.step < -1)
        xti_str_addf(b, " (%" PRId64 ")", d->n);
    xti_str_add(b, d->s ? "" : ", repeated");
}

static void axes(struct page *p, const struct xti_piece *q)
{
    struct xti_layout in, out;
    struct xti_str text = {0};
    xti_packed_input(p->k->packed, q->src, &in);
    xti_packed_output(p->k->packed, &out);
    int top = p->y + 12, rows = in.rank > q->n_dims ? in.rank : q->n_dims;
    title(&in, xti_packed_name(p->k->packed, q->src), &text);
    put(p, "s", MARGIN, p->y, text.s ? text.s : "", text.n);
    text.n = 0;
    title(&out, "result", &text);
    put(p, "s", RIGHT, p->y, text.s ? text.s : "", text.n);
    if (p->k->map->n_pieces > 1) {
        text.n = 0;
        xti_share_text(p->k->map, &out, q, &text);
        put(p, "s", RIGHT, p->y + 20, text.s ? text.s : "", text.n);
        top += 20;
    }
    for (int i = 0; i < q->n_dims; i++)
        if (q->dim[i].s)
            ribbon(p, top, xti_place_of(&in, q->dim[i].n, q->dim[i].s), in.rank, i);
    for (int i = 0; i < in.rank; i++) {
        text.n = 0;
        xti_str_addf(&text, "axis %d (%" PRId64 ")%s", i, in.shape[i],
                     is_backwards(&in, q, i) ? ", backwards" : "");
        box(p, MARGIN, top + i * AXIS, LEFT - MARGIN, text.s ? text.s : "", text.n);
    }
    for (int i = 0; i < q->n_dims; i++) {
        text.n = 0;
        result_text(&out, &q->dim[i], &text);
        box(p, RIGHT, top + i * AXIS, WIDTH - MARGIN - RIGHT, text.s ? text.s : "", text.n);
    }
    p->y = top + (rows ? rows : 1) * AXIS + 22;
    p->body.failed |= text.failed;
    xti_str_free(&text);
}

static void heading(struct page *p, const char *text)
{
    put(p, "k", MARGIN, p->y, text, strlen(text));
    p->y += 24;
}

/* Of each input the piece that copies most of it. */
static void all_axes(struct page *p)
{
    struct xti_str filled = {0};
    const struct xti_map *m = p->k->map;
    int above = p->y;
    for (int i = 0; i < m->n_srcs && i < XTI_INPUTS_SHOWN; i++) {
        const struct xti_piece *q = xti_piece_from(m, i);
        if (q && p->y == above)
            heading(p, "Where each axis goes (in brackets its length)");
        if (q && xti_piece_affine(q))
            axes(p, q);
        else if (q)
            paragraph(p, "s", XTI_NO_AXES, CHARS, 2);
    }
    p->y += p->y > above ? 12 : 0;
    xti_filled_text(p->k, &filled);
    if (filled.s) {
        xti_str_add(&filled, ": filled");
        paragraph(p, "s", filled.s, CHARS, 1);
        p->y += 12;
    }
    p->body.failed |= filled.failed;
    xti_str_free(&filled);
}

/* ---- memory */

/* A line of 64 bytes, and of it what moves together in colour. */
static void line(struct page *p, const struct xti_piece *q)
{
    int64_t run = xti_common_run(q) * p->k->map->esize;
    const char *name = xti_packed_name(p->k->packed, q->src);
    struct xti_str text = {0};
    heading(p, "What moves together");
    if (xti_common_run(q) == 1)
        xti_str_addf(&text, "Each element by itself: its neighbours in %s go elsewhere. It is ", name);
    else
        xti_str_addf(&text, "What is side by side in %s and in the result: ", name);
    xti_add_bytes((double)run, &text);
    xti_str_add(&text, run < XTI_LINE   ? " of the 64 that memory moves at once:"
                       : run > XTI_LINE ? ", more than the 64 that memory moves at once."
                                        : ", all that memory moves at once.");
    paragraph(p, "t", text.s, CHARS, 3);
    for (int i = 0; i < 16 && run < XTI_LINE; i++)
        xti_str_addf(&p->body, "<rect class=\"e\" x=\"%d\" y=\"%d\" width=\"38\" height=\"16\"/>\n",
                     MARGIN + i * 38, p->y - 8);
    if (run < XTI_LINE) {
        xti_str_addf(&p->body, "<rect class=\"r\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"16\"/>\n", MARGIN,
                     p->y - 8, (int)(run * (WIDTH - 2 * MARGIN) / XTI_LINE));
        p->y += 30;
    }
    text.n = 0;
    xti_explain_walk(p->k, q, &text);
    const char *next = text.s ? strstr(text.s, "the next one is ") : NULL;
    if (next) {
        struct xti_str after = {0};
        xti_str_addf(&after, "Then the copy moves on: %s.", next + strlen("the next one is "));
        paragraph(p, "t", after.s, CHARS, 3);
        p->body.failed |= after.failed;
        xti_str_free(&after);
    }
    p->body.failed |= text.failed;
    xti_str_free(&text);
    p->y += 12;
}

/* Stretches of one side as bars, as long as they are; of many the first. */
static void bars(struct page *p, int x, int64_t n, int64_t bytes, int64_t widest)
{
    enum { MOST = 8 };
    int width = (int)(2 + 182 * ((double)bytes / (double)widest));
    for (int i = 0; i < n && i < MOST; i++)
        xti_str_addf(&p->body, "<rect class=\"r\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"7\" rx=\"2\"/>\n",
                     x, p->y + 10 * i, width);
    if (n > MOST) {
        struct xti_str more = {0};
        xti_str_addf(&more, "and %" PRId64 " more", n - MOST);
        put(p, "s", x, p->y + 10 * MOST + 14, more.s ? more.s : "", more.n);
        p->body.failed |= more.failed;
        xti_str_free(&more);
    }
}

static void stretches(struct page *p, const struct xti_tile *t)
{
    int64_t widest = t->read_bytes > t->write_bytes ? t->read_bytes : t->write_bytes;
    int64_t most = t->reads > t->writes ? t->reads : t->writes;
    static const char read[] = "read: lengths to scale", written[] = "written";
    put(p, "s", MARGIN, p->y, read, sizeof read - 1);
    put(p, "s", RIGHT, p->y, written, sizeof written - 1);
    p->y += 10;
    bars(p, MARGIN, t->reads, t->read_bytes, widest);
    bars(p, RIGHT, t->writes, t->write_bytes, widest);
    p->y += 10 * (int)(most < 9 ? most : 9) + (most > 8 ? 32 : 20);
}

static void tile(struct page *p)
{
    struct xti_tile t;
    struct xti_str text = {0};
    const struct xti_step *s = xti_main_step(p->k);
    xti_explain_tile(p->k, &text);
    if (text.s) {
        heading(p, "What one call of the kernel copies: a tile");
        if (s && xti_tile_of(p->k, s, &t) && t.reads + t.writes > 2)
            stretches(p, &t);
        paragraph(p, "t", text.s, CHARS, 3);
    }
    p->body.failed |= text.failed;
    xti_str_free(&text);
}

/* ---- the file */

void xti_explain_svg(const struct xt_kernel *k, struct xti_str *b)
{
    struct page p = {.k = k, .y = 34};
    struct xti_str chain = {0}, saved = {0}, became = {0}, way = {0};
    const struct xti_piece *q = xti_main_piece(k->map);
    xti_kernel_text(k, &chain);
    xti_explain_saved(k, &saved);
    xti_explain_way(k, &way);
    paragraph(&p, "m", chain.s, 64, 6);
    p.y += 8;
    const char *colon = saved.s ? strstr(saved.s, ": ") : NULL; /* behind what the chain became */
    xti_str_addn(&became, saved.s ? saved.s : "", colon ? (size_t)(colon - saved.s) : saved.n);
    paragraph(&p, "h", became.s, 54, 2);
    p.y += 2;
    paragraph(&p, "t", colon ? colon + 2 : NULL, CHARS, 3);
    p.y += 6;
    paragraph(&p, "t", way.s, CHARS, 5);
    p.y += 14;
    elements(&p);
    all_axes(&p);
    if (q && q->src >= 0 && xti_piece_affine(q))
        line(&p, q);
    tile(&p);
    xti_str_addf(b,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"xt\" viewBox=\"0 0 %d %d\" "
                 "width=\"%d\" height=\"%d\" style=\"max-width:100%%;height:auto\" role=\"img\">\n<title>",
                 WIDTH, p.y, WIDTH, p.y);
    escaped(chain.s ? chain.s : "", chain.n, b);
    xti_str_add(b, "</title>\n<desc>");
    escaped(saved.s ? saved.s : "", saved.n, b);
    xti_str_add(b, ". ");
    escaped(way.s ? way.s : "", way.n, b);
    xti_str_addf(b, "</desc>\n%s<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n", style, WIDTH, p.y);
    xti_str_addn(b, p.body.s ? p.body.s : "", p.body.n);
    xti_str_add(b, "</svg>\n");
    b->failed |= p.body.failed | chain.failed | saved.failed | became.failed | way.failed;
    xti_str_free(&p.body);
    xti_str_free(&chain);
    xti_str_free(&saved);
    xti_str_free(&became);
    xti_str_free(&way);
}
