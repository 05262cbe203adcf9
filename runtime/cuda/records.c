/* records.c: finds pieces that make records of a few units, side by side in the destination: pixels whose
 * channels come from several sources, or one of which is filled; short rows of a concat or a pad. In: a
 * normalised map. Out: disjoint groups of pieces, as rows (segments.h) of one record. Layer 4. */
#include <stdlib.h>
#include <string.h>

#include "cuda/family.h"
#include "cuda/packed.h"
#include "cuda/weave.h"

/* Pieces beyond this go alone: trying all pairs would take too long. Longer records are no pixels, or rows.
 */
enum { MOST_PIECES = 64, MOST_PARTS = 8, MOST_PIXEL = 4, MOST_RECORD = 64 };

/* Dims from record to record. */
static int outer_dims(const struct xti_piece *q, int64_t record)
{
    int n = q->n_dims;
    while (n && q->dim[n - 1].d < record)
        n--;
    return n;
}

static int64_t units_of(const struct xti_piece *q, int64_t record)
{
    int64_t units = 1;
    for (int i = outer_dims(q, record); i < q->n_dims; i++)
        units *= q->dim[i].n;
    return units;
}

/* Units from its first one in a record to behind its last. */
static int64_t reach_of(const struct xti_piece *q, int64_t record)
{
    int64_t reach = 1;
    for (int i = outer_dims(q, record); i < q->n_dims; i++)
        reach += (q->dim[i].n - 1) * q->dim[i].d;
    return reach;
}

/* Records in a row, from dim *i on outwards, whatever a source makes of them; *i is then the next dim. */
static struct xti_dim row_of_records(const struct xti_piece *q, int *i)
{
    struct xti_dim row = {q->dim[*i].n, 0, q->dim[*i].d};
    for (--*i; *i >= 0 && q->dim[*i].d == row.n * row.d; --*i)
        row.n *= q->dim[*i].n;
    return row;
}

/* Do both have the same records? */
static bool same_frame(const struct xti_piece *a, const struct xti_piece *b, int64_t record)
{
    int i = outer_dims(a, record) - 1, j = outer_dims(b, record) - 1;
    while (i >= 0 && j >= 0) {
        struct xti_dim x = row_of_records(a, &i), y = row_of_records(b, &j);
        if (x.n != y.n || x.d != y.d)
            return false;
    }
    return i < 0 && j < 0;
}

static bool has_run(const struct xti_piece *q) { return q->n_dims && q->dim[q->n_dims - 1].d == 1; }

/* Runs of a record that a piece copies. */
static int64_t runs_of(const struct xti_piece *q, int64_t record)
{
    int64_t runs = 1;
    for (int i = outer_dims(q, record); i + has_run(q) < q->n_dims; i++)
        runs *= q->dim[i].n;
    return runs;
}

/* A piece that fills may lie anywhere in its records; one that copies has a few runs there. */
static bool same_records(const struct xti_piece *a, const struct xti_piece *b, int64_t record)
{
    int n = outer_dims(a, record);
    if (!xti_piece_affine(b) || !same_frame(a, b, record))
        return false;
    for (int i = 0; i < n && b->src >= 0; i++)
        if (n != outer_dims(b, record) || a->dim[i].n != b->dim[i].n || a->dim[i].d != b->dim[i].d)
            return false;
    return b->src < 0 ||
           (runs_of(b, record) <= XTI_MAX_SEGMENTS && (!has_run(b) || b->dim[b->n_dims - 1].s == 1));
}

/* Windows of both are alike. */
static bool same_source(const struct xti_piece *a, const struct xti_piece *b, int64_t record)
{
    int n = outer_dims(a, record);
    return units_of(a, record) == units_of(b, record) && a->dim[n - 1].s == b->dim[n - 1].s;
}

struct group {
    int n, copies, piece[MOST_PARTS]; /* by their place in a record */
    int64_t record;
    bool alike;       /* windows of those that copy are */
    int lead, ground; /* pieces: one that copies; one that fills, or -1 */
};

static void insert(const struct xti_map *m, int i, struct group *g)
{
    int k = g->n++;
    for (; k && m->piece[g->piece[k - 1]].doff > m->piece[i].doff; k--)
        g->piece[k] = g->piece[k - 1];
    g->piece[k] = i;
}

/* The pieces that make records of so many units with piece `lead`, which copies. False: they do not make all
 * of them. */
static bool gather(const struct xti_map *m, const struct xti_rows **of, int lead, int64_t record,
                   struct group *g)
{
    const struct xti_piece *first = &m->piece[lead];
    int64_t units = 0;
    *g = (struct group){.lead = lead, .record = record, .alike = true, .ground = -1};
    for (int i = 0; i < m->n_pieces; i++) {
        const struct xti_piece *q = &m->piece[i];
        int64_t away = q->doff - first->doff;
        if (of[i] || away <= -record || away >= record || !same_records(first, q, record))
            continue;
        if (g->n == MOST_PARTS)
            return false;
        int64_t runs = q->src < 0 ? 0 : runs_of(q, record);
        g->copies += (int)runs;
        g->alike = g->alike && (q->src < 0 || (runs == 1 && same_source(first, q, record)));
        if (q->src < 0 && g->ground >= 0 && memcmp(q->value, m->piece[g->ground].value, sizeof q->value))
            return false;
        g->ground = q->src < 0 && g->ground < 0 ? i : g->ground;
        insert(m, i, g);
        units += units_of(q, record);
    }
    int64_t end = 0;
    for (int k = 0; k < g->n; k++) {
        const struct xti_piece *q = &m->piece[g->piece[k]];
        int64_t reach = q->doff - m->piece[g->piece[0]].doff + reach_of(q, record);
        end = reach > end ? reach : end;
    }
    return g->n > 1 && g->copies <= XTI_MAX_SEGMENTS && units == record && end == record;
}

/* A segment for each run of the piece in a record. */
static bool add_segments(struct xti_cuda_plan *p, int piece, struct xti_rows *r)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    int64_t *s = xti_arena_alloc(&p->map.arena, (size_t)r->n_dims * sizeof *s), runs = runs_of(q, r->length),
            run = has_run(q) ? q->dim[q->n_dims - 1].n : 1;
    for (int i = 0; i < r->n_dims && s; i++)
        s[i] = q->dim[i].s;
    for (int64_t k = 0; k < runs; k++) {
        int64_t begin = q->doff - r->doff, soff = q->soff, rest = k;
        for (int i = q->n_dims - 1 - has_run(q); i >= r->n_dims; i--) {
            begin += rest % q->dim[i].n * q->dim[i].d;
            soff += rest % q->dim[i].n * q->dim[i].s;
            rest /= q->dim[i].n;
        }
        r->segment[r->n_segments++] = (struct xti_segment){
            .piece = piece, .begin = begin, .end = begin + run, .soff = soff - begin, .s = s};
    }
    return s != NULL;
}

/* NULL: no memory. */
static struct xti_rows *make_rows(struct xti_cuda_plan *p, const struct group *g)
{
    struct xti_arena *arena = &p->map.arena;
    const struct xti_map *m = &p->map;
    const struct xti_piece *first = &m->piece[g->lead];
    struct xti_rows *r = xti_arena_alloc(arena, sizeof *r);
    int n = outer_dims(first, g->record), *piece = xti_arena_alloc(arena, (size_t)g->n * sizeof *piece);
    struct xti_dim *dim = xti_arena_alloc(arena, (size_t)n * sizeof *dim);
    if (!r || !piece || !dim)
        return NULL;
    *r = (struct xti_rows){
        .n_pieces = g->n, .piece = piece, .n_dims = n, .dim = dim, .doff = m->piece[g->piece[0]].doff};
    r->length = g->record;
    r->ground = g->ground;
    for (int i = 0; i < m->n_pieces; i++)
        for (int k = 0; k < g->n; k++)
            if (g->piece[k] == i)
                *piece++ = i;
    for (int k = 0; k < g->n; k++)
        if (m->piece[g->piece[k]].src >= 0 && !add_segments(p, g->piece[k], r))
            return NULL;
    for (int i = 0; i < n; i++)
        dim[i] = (struct xti_dim){first->dim[i].n, r->segment[0].s[i], first->dim[i].d};
    return r;
}

/* The family that serves them. False: none. */
static bool serve(const struct xti_cuda_plan *p, const struct group *g, struct xti_rows *r)
{
    struct xti_woven parts;
    struct xti_weave v;
    struct xti_packed packed;
    r->family = XTI_CUDA_WEAVE;
    if (g->alike && g->record <= MOST_PIXEL) {
        xti_weave_parts(p, g->lead, r, &parts);
        if (xti_weave_make(p, &parts, &v, NULL))
            return true;
    }
    r->family = XTI_CUDA_PACKED;
    return xti_packed_make(p, r, &packed);
}

/* Sets of[] for the records that piece i makes with others. */
static xt_status try_piece(struct xti_cuda_plan *p, const struct xti_rows **of, int i, struct xti_err *err)
{
    const struct xti_piece *q = &p->map.piece[i];
    struct group g;
    for (int d = q->n_dims - 1; d >= 0 && !of[i] && q->dim[d].d <= MOST_RECORD; d--) {
        if (q->dim[d].d < 2 || !gather(&p->map, of, i, q->dim[d].d, &g))
            continue;
        struct xti_rows *r = make_rows(p, &g);
        if (!r)
            return xti_fail(err, XT_ENOMEM, "records of %d pieces", g.n);
        for (int k = 0; k < g.n && serve(p, &g, r); k++)
            of[g.piece[k]] = r;
    }
    return XT_OK;
}

xt_status xti_cuda_find_records(struct xti_cuda_plan *p, const struct xti_rows **of, struct xti_err *err)
{
    const struct xti_map *m = &p->map;
    xt_status s = XT_OK;
    for (int i = 0; i < m->n_pieces && m->n_pieces <= MOST_PIECES && m->n_pieces > 1 && !s; i++)
        if (!of[i] && m->piece[i].src >= 0 && xti_piece_affine(&m->piece[i]))
            s = try_piece(p, of, i, err);
    return s;
}
