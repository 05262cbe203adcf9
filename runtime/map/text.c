/* text.c: a map for people (its index formulas) and for programs (JSON). Layer 2. */
#include "map/map.h"

#include <inttypes.h>

#include "base/num.h"

/* ------------------------------------------------------------------------------------------------ people */

/* A sum under construction: "4*i0 - i1 + 3". */
struct sum {
    struct xti_str *b;
    bool any;
};

static void add_sign(struct sum *t, int64_t a)
{
    xti_str_add(t->b, t->any ? (a < 0 ? " - " : " + ") : (a < 0 ? "-" : ""));
    t->any = true;
}

/* a*<name><k>; nothing when a is 0. */
static void add_term(struct sum *t, int64_t a, const char *name, int k)
{
    if (!a)
        return;
    add_sign(t, a);
    if (xti_abs64(a) != 1)
        xti_str_addf(t->b, "%" PRIu64 "*", xti_abs64(a));
    xti_str_addf(t->b, "%s%d", name, k);
}

/* The constant, which ends the sum. */
static void end_sum(struct sum *t, int64_t c)
{
    if (!c && t->any)
        return;
    add_sign(t, c);
    xti_str_addf(t->b, "%" PRIu64, xti_abs64(c));
}

static void row_text(struct xti_str *b, int64_t c, int n_x, const int64_t *x, int n_q, const int64_t *q)
{
    struct sum t = {b, false};
    for (int k = 0; k < n_x; k++)
        add_term(&t, x[k], "i", k);
    for (int j = 0; j < n_q; j++)
        add_term(&t, q[j], "q", j);
    end_sum(&t, c);
}

static void dst_text(struct xti_str *b, const struct xti_piece *p)
{
    struct sum t = {b, false};
    xti_str_add(b, "dst[");
    for (int k = 0; k < p->n_dims; k++)
        add_term(&t, p->dim[k].d, "i", k);
    end_sum(&t, p->doff);
    xti_str_add(b, "]");
}

static void src_text(struct xti_str *b, const struct xti_piece *p, int esize)
{
    if (p->src < 0) {
        xti_str_add(b, "fill 0x"); /* as a number: 0x3f800000 is 1 of f32 */
        for (int i = esize - 1; i >= 0; i--)
            xti_str_addf(b, "%02x", p->value[i]);
        return;
    }
    struct sum t = {b, false};
    xti_str_addf(b, "src%d[", p->src);
    for (int k = 0; k < p->n_dims; k++)
        add_term(&t, p->dim[k].s, "i", k);
    for (int j = 0; j < p->n_divs; j++)
        add_term(&t, p->sq[j], "q", j);
    end_sum(&t, p->soff);
    xti_str_add(b, "]");
}

static void piece_text(struct xti_str *b, int i, const struct xti_piece *p, int esize)
{
    xti_str_addf(b, "piece %d: ", i);
    dst_text(b, p);
    xti_str_add(b, " = ");
    src_text(b, p, esize);
    for (int k = 0; k < p->n_dims; k++)
        xti_str_addf(b, "%si%d<%" PRId64, k ? " " : "   ", k, p->dim[k].n);
    for (int j = 0; j < p->n_divs; j++) {
        xti_str_addf(b, "   q%d = floor((", j);
        row_text(b, p->div[j].c, p->n_dims, p->div[j].x, j, p->div[j].q);
        xti_str_addf(b, ")/%" PRId64 ")", p->div[j].den);
    }
    for (int j = 0; j < p->n_guards; j++) {
        xti_str_add(b, j ? " and " : "   if ");
        row_text(b, p->guard[j].c, p->n_dims, p->guard[j].x, p->n_divs, p->guard[j].q);
        xti_str_add(b, " >= 0");
    }
    xti_str_add(b, "\n");
}

void xti_map_text(const struct xti_map *m, struct xti_str *b)
{
    if (!m->n_pieces)
        xti_str_add(b, "nothing to copy\n");
    for (int i = 0; i < m->n_pieces; i++)
        piece_text(b, i, &m->piece[i], m->esize);
}

/* -------------------------------------------------------------------------------------------------- JSON */

static void json_head(struct xti_str *b, const struct xti_piece *p, int esize)
{
    if (p->src >= 0) {
        xti_str_addf(b, "{\"source\":%d,\"value\":null,\"soff\":%" PRId64, p->src, p->soff);
    } else {
        xti_str_add(b, "{\"source\":null,\"value\":\""); /* bytes in memory order */
        for (int i = 0; i < esize; i++)
            xti_str_addf(b, "%02x", p->value[i]);
        xti_str_add(b, "\",\"soff\":0");
    }
    xti_str_addf(b, ",\"doff\":%" PRId64 ",\"dims\":[", p->doff);
    for (int k = 0; k < p->n_dims; k++) {
        xti_str_add(b, k ? "," : "");
        xti_str_list(b, 3, (int64_t[]){p->dim[k].n, p->src < 0 ? 0 : p->dim[k].s, p->dim[k].d});
    }
}

static void json_row(struct xti_str *b, int64_t c, int n_x, const int64_t *x, int n_q, const int64_t *q)
{
    xti_str_addf(b, "\"c\":%" PRId64 ",\"x\":", c);
    xti_str_list(b, n_x, x);
    xti_str_add(b, ",\"q\":");
    xti_str_list(b, n_q, q);
    xti_str_add(b, "}");
}

static void json_piece(struct xti_str *b, const struct xti_piece *p, int esize)
{
    json_head(b, p, esize);
    xti_str_add(b, "],\"divs\":[");
    for (int j = 0; j < p->n_divs; j++) {
        xti_str_addf(b, "%s{\"den\":%" PRId64 ",", j ? "," : "", p->div[j].den);
        json_row(b, p->div[j].c, p->n_dims, p->div[j].x, j, p->div[j].q);
    }
    xti_str_add(b, "],\"sq\":");
    xti_str_list(b, p->n_divs, p->sq);
    xti_str_add(b, ",\"guards\":[");
    for (int j = 0; j < p->n_guards; j++) {
        xti_str_add(b, j ? ",{" : "{");
        json_row(b, p->guard[j].c, p->n_dims, p->guard[j].x, p->n_divs, p->guard[j].q);
    }
    xti_str_add(b, "]}");
}

void xti_map_json(const struct xti_map *m, struct xti_str *b)
{
    xti_str_add(b, "[");
    for (int i = 0; i < m->n_pieces; i++) {
        xti_str_add(b, i ? "," : "");
        json_piece(b, &m->piece[i], m->esize);
    }
    xti_str_add(b, "]");
}
