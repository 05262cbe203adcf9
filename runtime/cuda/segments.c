/* segments.c: the family that serves rows made by several pieces (together.c), and single rows whose sides do
 * not share an alignment. Skeleton segments.cu. Layer 4. */
#include "cuda/segments.h"

#include "cuda/family.h"

enum { WARP = 32 };
/* Chunks of a thread; more would take too many registers. */
enum { STEPS = 4 }; /* of three segments and more: half */

int64_t xti_cuda_segment_units(const struct xti_cuda_plan *p, const struct xti_segment *g)
{
    return p->map.src_hi[p->map.piece[g->piece].src] + 1;
}

/* Of the source, that position 0 begins at or, going back, ends at. */
static uint64_t segment_bytes(const struct xti_cuda_plan *p, const struct xti_segment *g)
{
    uint64_t off = (uint64_t)(g->back ? xti_cuda_segment_units(p, g) - g->soff : g->soff);
    return (uint64_t)p->origin.src_bytes[p->map.piece[g->piece].src] + off * (uint64_t)p->map.esize;
}

int xti_cuda_row_align(const struct xti_cuda_plan *p, const struct xti_rows *r, int segment)
{
    const struct xti_segment *g = segment < 0 ? NULL : &r->segment[segment];
    uint64_t unit = (uint64_t)p->map.esize, bits = (uint64_t)p->base_align;
    bits |= g ? segment_bytes(p, g) : (uint64_t)p->origin.dst_bytes + (uint64_t)r->doff * unit;
    for (int i = 0; i < r->n_dims; i++)
        bits |= (uint64_t)(g ? g->s[i] : r->dim[i].d) * unit;
    return (int)(bits & (~bits + 1));
}

static int64_t count_rows(const struct xti_rows *r)
{
    int64_t n = 1;
    for (int i = 0; i < r->n_dims; i++)
        n *= r->dim[i].n;
    return n;
}

/* Position 0 of every row lies equally far behind a multiple of 16 bytes in the destination and in segment
 * k's source; going back, as far before one there. */
static bool sides_agree(const struct xti_cuda_plan *p, const struct xti_rows *r, int k)
{
    const struct xti_segment *g = &r->segment[k];
    uint64_t unit = (uint64_t)p->map.esize, bits = (uint64_t)p->base_align;
    uint64_t to = (uint64_t)p->origin.dst_bytes + (uint64_t)r->doff * unit;
    bits |= g->back ? segment_bytes(p, g) + to : segment_bytes(p, g) - to;
    for (int i = 0; i < r->n_dims; i++)
        bits |= ((uint64_t)g->s[i] - (uint64_t)r->dim[i].d) * unit;
    return bits % 16 == 0;
}

/* Do the sides of every segment differ alike modulo 16 bytes in all rows? */
static bool sides_steady(const struct xti_cuda_plan *p, const struct xti_rows *r)
{
    uint64_t bits = (uint64_t)p->base_align;
    for (int k = 0; k < r->n_segments; k++)
        for (int i = 0; i < r->n_dims; i++)
            bits |= ((uint64_t)r->segment[k].s[i] - (uint64_t)r->dim[i].d) * (uint64_t)p->map.esize;
    return bits % 16 == 0;
}

/* A thread takes all chunks that it may, or, for enough blocks, one: fewer kernels for lengths that differ.
 */
static int steps(const struct xti_cuda_plan *p, const struct xti_rows *r)
{
    int most = STEPS;
    return r->chunks * count_rows(r) / (STEPS * XTI_CUDA_THREADS) < 2 * xti_cuda_processors(p) ? 1 : most;
}

/* Instructions of a lane for what it finds out about a row and a segment of it, and about a guard; for a
 * chunk; what a chunk takes more where the rows of a warp differ, and where every chunk's row does. */
enum { ROW_COST = 50, GUARD_COST = 12, CHUNK_COST = 30, MIXED_COST = 10, ALONE_COST = 20 };
/* What a sector more is worth, of which lanes that share a row ask for half a one an access and for one
 * behind their last. */
enum { SECTOR_COST = 480 };

/* Lanes share a row and take several chunks of it each, so that the index is found once for them, unless so
 * many would idle that it is cheaper to number the chunks of all rows through. */
void xti_cuda_share_rows(const struct xti_cuda_plan *p, struct xti_rows *r)
{
    r->chunks = (r->length * p->map.esize + (16 - xti_cuda_row_align(p, r, -1)) + 15) / 16;
    int most = steps(p, r);
    r->aligned = xti_cuda_row_align(p, r, -1) == 16 && r->length * p->map.esize % 16 == 0;
    r->shifted = false;
    for (int k = 0; k < r->n_segments; k++)
        r->shifted = r->shifted || !sides_agree(p, r, k);
    int64_t row = (int64_t)ROW_COST * r->n_segments + (int64_t)GUARD_COST * r->n_guards;
    int64_t best = (row + CHUNK_COST + ALONE_COST) * r->chunks + SECTOR_COST * (1 + r->chunks / WARP);
    bool many = r->n_segments > 1; /* of several rows they would take too many registers */
    r->lanes = 1;
    r->along = 1;
    r->across = most < 2 || many ? 1 : 2;
    r->items = r->chunks * count_rows(r);
    for (int lanes = WARP; lanes >= 8; lanes /= 2)
        for (int along = 1; along <= most; along *= 2) {
            int64_t spans = (r->chunks + lanes * along - 1) / (lanes * along),
                    chunk = CHUNK_COST + (lanes < WARP ? MIXED_COST : 0),
                    cost = spans * (lanes * (row + chunk * along) + SECTOR_COST / 2 * (along + 2));
            if (cost > best)
                continue;
            best = cost;
            r->lanes = lanes;
            r->along = along;
            r->across = many ? 1 : most / along;
            r->items = spans * count_rows(r);
        }
    /* where a warp has one row, branches for each shift were counted to be cheaper */
    r->steady = r->shifted && r->lanes < WARP && sides_steady(p, r);
}

/* Ends of rows go through shared memory (XT_HELPED of segments.cu). */
static bool helped(const struct xti_cuda_plan *p, const struct xti_rows *r)
{
    return r->lanes == 1 && !r->aligned && p->map.esize < 4;
}

void xti_cuda_rows_step(const struct xti_cuda_plan *p, const struct xti_rows *r, struct xti_cuda_step *s)
{
    int64_t block = (int64_t)r->across * (XTI_CUDA_THREADS / r->lanes);
    s->family = XTI_CUDA_SEGMENTS;
    s->rows = r;
    s->piece = r->segment[0].piece;
    s->from = XTI_FROM_COPY;
    s->src_bytes = s->dst_bytes = s->vec_bytes = 16;
    s->per_thread = r->along * r->across;
    s->blocks = (r->items + block - 1) / block;
    s->shared_bytes = helped(p, r) ? 2 * 16 * XTI_CUDA_THREADS * r->across : 0;
}

static int64_t signs(const struct xti_rows *r)
{
    int64_t bits = 0;
    for (int i = 0; i < r->n_guards; i++)
        bits |= (r->guard[i].x[r->n_dims] + 1) << 2 * i;
    return bits;
}

static int64_t backs(const struct xti_rows *r)
{
    int64_t bits = 0;
    for (int k = 0; k < r->n_segments; k++)
        bits |= (int64_t)r->segment[k].back << k;
    return bits;
}

/* Segments that begin, or end, with their rows, whatever guards leave of them. */
static int64_t reach(const struct xti_rows *r, bool rear)
{
    int64_t bits = 0;
    for (int k = 0; k < r->n_segments; k++)
        bits |= (int64_t)(rear ? r->segment[k].end == r->length : r->segment[k].begin == 0) << k;
    for (int i = 0; i < r->n_guards; i++)
        bits &= (r->guard[i].x[r->n_dims] > 0) == rear ? ~INT64_C(0) : ~INT64_C(1);
    return bits;
}

/* Pieces that reach the table of families were not found worth it. */
static bool applies(const struct xti_cuda_plan *p, int piece, struct xti_why *why)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    if (q->src < 0 || q->n_divs || xti_cuda_inner(q)->d != 1 || xti_abs64(xti_cuda_inner(q)->s) != 1)
        return xti_refuse(why, "no run of a source");
    if (q->n_guards)
        return xti_refuse(why, "its guards do not cut a row in two, or no fill has the rest");
    return xti_refuse(why, "rows of %lld bytes, aligned to %d and %d bytes",
                      (long long)(xti_cuda_inner(q)->n * p->map.esize),
                      xti_cuda_align(p, q, XTI_SOURCE, q->soff, q->n_dims - 1),
                      xti_cuda_align(p, q, XTI_DESTINATION, q->doff, q->n_dims - 1));
}

static void index_rows(struct xti_writer *w)
{
    static const char *const more[] = {"u[0]", "u[1]", "u[2]", "u[3]", "u[4]", "u[5]", "u[6]", "u[7]"};
    const struct xti_rows *r = w->s->rows;
    int n = 1;
    xti_write_box(w, r->n_dims, r->dim, r->segment[0].soff, r->doff);
    xti_write_digit(w, r->items / count_rows(r), "*u");
    for (int k = 1; k < r->n_segments; k++)
        xti_write_sum(w, more[n++], r->segment[k].soff, r->segment[k].s);
    for (int i = 0; i < r->n_guards; i++)
        xti_write_sum(w, more[n++], r->guard[i].c + (r->guard[i].x[r->n_dims] < 0), r->guard[i].x);
}

/* Units that a side's first one lies behind a multiple of 16 bytes: known where buffers are aligned so. */
static int64_t skew_of(const struct xti_cuda_plan *p, int64_t bytes) { return bytes % 16 / p->map.esize; }

static bool skew_is_known(const struct xti_cuda_plan *p) { return p->base_align == 16; }

/* Units that a chunk's first one lies behind its word's begin in segment k's source. */
static int64_t turn_of(const struct xti_cuda_plan *p, const struct xti_rows *r, int k)
{
    const struct xti_segment *g = &r->segment[k];
    int64_t group = 16 / p->map.esize, to = p->origin.dst_bytes / p->map.esize + r->doff,
            from = p->origin.src_bytes[p->map.piece[g->piece].src] / p->map.esize;
    from = g->soff + (g->back ? -xti_cuda_segment_units(p, g) - from : from);
    return ((from - to) % group + group) % group;
}

static void define_segment(struct xti_writer *w, int k)
{
    const struct xti_rows *r = w->s->rows;
    const struct xti_segment *g = &r->segment[k];
    int64_t units = xti_cuda_segment_units(w->p, g), group = 16 / w->p->map.esize, words = units - group + 1,
            behind = (r->lanes * (r->along - 1) + 1) * group;
    xti_write_number_of(w, "XT_BEGIN", k, g->begin);
    xti_write_number_of(w, "XT_END", k, g->end);
    xti_write_number_of(w, "XT_WORDS", k, words > 0 ? words : 0);
    xti_write_number_of(w, "XT_INNER", k, words > behind ? words - behind : 0);
    xti_write_number_of(w, "XT_UNITS", k, units);
    if (r->steady)
        xti_write_number_of(w, "XT_TURN", k, turn_of(w->p, r, k));
    if (skew_is_known(w->p))
        xti_write_number_of(w, "XT_SKEW", k,
                            skew_of(w->p, w->p->origin.src_bytes[w->p->map.piece[g->piece].src]));
    else
        xti_write_text(w, "#define XT_SKEW%d XT_SKEW_OF(from)\n", k);
}

static void define(struct xti_writer *w)
{
    const struct xti_rows *r = w->s->rows;
    xti_write_constant(w, "XT_NUMBERED", w->e->tier == XTI_TIER_STRUCTURE);
    xti_write_constant(w, "XT_LANES", r->lanes);
    xti_write_constant(w, "XT_ALONG", r->along);
    xti_write_constant(w, "XT_ACROSS", r->across);
    xti_write_constant(w, "XT_SEGMENTS", r->n_segments);
    xti_write_constant(w, "XT_BACKS", backs(r));
    xti_write_constant(w, "XT_FRONTS", reach(r, false));
    xti_write_constant(w, "XT_REARS", reach(r, true));
    xti_write_constant(w, "XT_GROUND", r->ground >= 0);
    xti_write_constant(w, "XT_SHIFTED", r->shifted);
    xti_write_constant(w, "XT_STEADY", r->steady);
    xti_write_constant(w, "XT_ALIGNED", r->aligned);
    xti_write_constant(w, "XT_GUARDS", r->n_guards);
    xti_write_constant(w, "XT_SIGNS", signs(r));
    xti_write_number(w, "XT_POINTS", r->items);
    xti_write_number(w, "XT_CHUNKS", r->chunks);
    xti_write_number(w, "XT_LENGTH", r->length);
    if (skew_is_known(w->p))
        xti_write_number(w, "XT_SKEW", skew_of(w->p, w->p->origin.dst_bytes));
    else
        xti_write_text(w, "#define XT_SKEW XT_SKEW_OF(dst)\n");
    for (int k = 0; k < r->n_segments; k++)
        define_segment(w, k);
}

const struct xti_family xti_cuda_segments = {
    "segments",
    applies,
    NULL,
    "segments",
    index_rows,
    define,
    "XT_NUMBERED XT_LANES XT_ALONG XT_ACROSS XT_SEGMENTS XT_BACKS XT_FRONTS XT_REARS XT_GROUND XT_SHIFTED "
    "XT_STEADY XT_ALIGNED "
    "XT_GUARDS XT_SIGNS "
    "XT_POINTS XT_CHUNKS XT_LENGTH XT_SKEW XT_BEGIN0 XT_END0 XT_WORDS0 XT_INNER0 XT_UNITS0 XT_SKEW0 XT_TURN0 "
    "XT_BEGIN1 XT_END1 XT_WORDS1 XT_INNER1 XT_UNITS1 XT_SKEW1 XT_TURN1 "
    "XT_BEGIN2 XT_END2 XT_WORDS2 XT_INNER2 XT_UNITS2 XT_SKEW2 XT_TURN2 "
    "XT_BEGIN3 XT_END3 XT_WORDS3 XT_INNER3 XT_UNITS3 XT_SKEW3 XT_TURN3"};
