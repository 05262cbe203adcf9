/* packed.c: see packed.h. Skeleton packed.cu. Layer 4. */
#include "cuda/packed.h"

#include "cuda/family.h"
#include "cuda/predict.h"

/* Of a record: longer ones are rows; of units of 4 bytes and more, which are put together one by one as well
 * but are fewer. Of a block, as a box takes; of a row, which has blocks of its own. What may lie between a
 * source's records. */
enum { MOST_BYTES = 64, MOST_WIDE_BYTES = 256, BLOCK_BYTES = 12 << 10, LEAST_BLOCK = 2 << 10 };
enum { LEAST_ROW = 1 << 10, GAP_BYTES = 32 };
/* Chunks that a thread fetches before it stores one; bytes of shared memory. */
enum { MOST_LOADS = 10, MOST_SHARED = 24 << 10, PLACE_BYTES = 8 };

static int64_t rows_of(const struct xti_rows *r)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < r->n_dims; i++)
        n *= r->dim[i].n;
    return n;
}

/* Every part is whole sectors of the destination: rows copy it as well. */
static bool whole_sectors(const struct xti_cuda_plan *p, const struct xti_rows *r)
{
    uint64_t bits = (uint64_t)p->origin.dst_bytes;
    uint64_t units = (uint64_t)r->doff | (uint64_t)r->length;
    for (int k = 0; k < r->n_segments; k++)
        units |= (uint64_t)r->segment[k].begin | (uint64_t)r->segment[k].end;
    for (int i = 0; i < r->n_dims; i++)
        units |= (uint64_t)r->dim[i].d;
    return (bits | units * (uint64_t)p->map.esize) % XTI_SECTOR_BYTES == 0;
}

/* The stretches of v->records records, one after another, then the fill and the table. False: too much. */
static bool place_parts(const struct xti_rows *r, int unit, struct xti_packed *v)
{
    int64_t group = 16 / unit;
    v->loads = v->bytes = 0;
    for (int k = 0; k < r->n_segments; k++) {
        const struct xti_segment *g = &r->segment[k];
        int64_t stride = g->s[r->n_dims - 1], run = g->end - g->begin,
                chunks = ((v->records - 1) * stride + run + 2 * (group - 1)) / group;
        v->part[k].stride = stride;
        v->part[k].loads = (chunks + XTI_CUDA_THREADS - 1) / XTI_CUDA_THREADS;
        v->part[k].at = v->bytes;
        v->loads += v->part[k].loads;
        v->bytes += chunks * 16;
    }
    v->ground_at = v->bytes;
    v->table_at = v->bytes + 16;
    v->bytes = v->table_at + (PLACE_BYTES * (r->length + group - 1) + 15) / 16 * 16;
    return v->loads <= MOST_LOADS && v->bytes <= MOST_SHARED;
}

bool xti_packed_make(const struct xti_cuda_plan *p, const struct xti_rows *r, struct xti_packed *v)
{
    int unit = p->map.esize;
    int64_t record = r->length * unit;
    *v = (struct xti_packed){.count = r->dim[r->n_dims - 1].n};
    if (record > (unit < 4 ? MOST_BYTES : MOST_WIDE_BYTES) || v->count * record < LEAST_ROW ||
        whole_sectors(p, r))
        return false;
    for (int k = 0; k < r->n_segments; k++) {
        const struct xti_segment *g = &r->segment[k];
        int64_t stride = g->s[r->n_dims - 1], gap = stride - (g->end - g->begin);
        if (stride < 0 || g->back || gap * unit > GAP_BYTES)
            return false;
    }
    int64_t share = rows_of(r) * v->count * record / (2 * xti_cuda_processors(p));
    for (v->records = 16; 2 * v->records * record <= BLOCK_BYTES;)
        v->records *= 2;
    while (v->records > 16 && (v->records / 2 >= v->count || !place_parts(r, unit, v) ||
                               (v->records * record > share && v->records * record > LEAST_BLOCK)))
        v->records /= 2;
    v->row_blocks = (v->count + v->records - 1) / v->records;
    v->aligned = true;
    uint64_t bits =
        (uint64_t)p->base_align | ((uint64_t)p->origin.dst_bytes + (uint64_t)r->doff * (uint64_t)unit);
    for (int i = 0; i + 1 < r->n_dims; i++)
        bits |= (uint64_t)r->dim[i].d * (uint64_t)unit;
    v->aligned = bits % 16 == 0;
    return place_parts(r, unit, v);
}

void xti_packed_step(const struct xti_cuda_plan *p, const struct xti_rows *r, struct xti_cuda_step *s)
{
    struct xti_packed v;
    xti_packed_make(p, r, &v);
    s->family = XTI_CUDA_PACKED;
    s->rows = r;
    s->piece = r->segment[0].piece;
    s->from = XTI_FROM_COPY;
    s->src_bytes = s->dst_bytes = s->vec_bytes = 16;
    s->per_thread = (int)v.loads;
    s->shared_bytes = v.bytes;
    s->blocks = rows_of(r) * v.row_blocks;
}

/* Pieces that reach the table of families make no records with others. */
static bool applies(const struct xti_cuda_plan *p, int piece, struct xti_why *why)
{
    return xti_refuse(why, "no short records with other pieces");
}

static void index_records(struct xti_writer *w)
{
    static const char *const source[XTI_MAX_SEGMENTS] = {"", "u[1]", "u[2]", "u[3]"};
    const struct xti_rows *r = w->s->rows;
    struct xti_packed v;
    xti_packed_make(w->p, r, &v);
    xti_write_box(w, r->n_dims, r->dim, r->segment[0].soff + r->segment[0].begin, r->doff);
    for (int k = 1; k < r->n_segments; k++)
        xti_write_sum(w, source[k], r->segment[k].soff + r->segment[k].begin, r->segment[k].s);
    w->role[r->n_dims - 1] = XTI_IN_BODY;
    xti_write_digit(w, v.row_blocks, "*u");
}

static void define_part(struct xti_writer *w, const struct xti_packed *v, int k)
{
    const struct xti_rows *r = w->s->rows;
    bool there = k < r->n_segments;
    static const struct xti_segment none;
    const struct xti_segment *g = there ? &r->segment[k] : &none;
    int64_t units = there ? xti_cuda_segment_units(w->p, g) : 0, words = units - 16 / w->p->map.esize + 1;
    xti_write_constant_of(w, "XT_BEGIN", k, g->begin);
    xti_write_constant_of(w, "XT_END", k, g->end);
    xti_write_constant_of(w, "XT_STRIDE", k, v->part[k].stride);
    xti_write_constant_of(w, "XT_LOADS", k, v->part[k].loads);
    xti_write_constant_of(w, "XT_PLACE", k, v->part[k].at);
    if (!there) {
        xti_write_constant_of(w, "XT_UNITS", k, 0);
        xti_write_constant_of(w, "XT_WORDS", k, 0);
        return;
    }
    xti_write_number_of(w, "XT_UNITS", k, units);
    xti_write_number_of(w, "XT_WORDS", k, words > 0 ? words : 0);
}

static void define(struct xti_writer *w)
{
    const struct xti_rows *r = w->s->rows;
    struct xti_packed v;
    xti_packed_make(w->p, r, &v);
    xti_write_constant(w, "XT_RECORDS", v.records);
    xti_write_constant(w, "XT_LENGTH", r->length);
    xti_write_constant(w, "XT_ALIGNED", v.aligned);
    xti_write_constant(w, "XT_PARTS", r->n_segments);
    xti_write_constant(w, "XT_GROUND", r->ground >= 0);
    xti_write_constant(w, "XT_GROUND_AT", v.ground_at);
    xti_write_constant(w, "XT_TABLE_AT", v.table_at);
    xti_write_number(w, "XT_COUNT", v.count);
    for (int k = 0; k < XTI_MAX_SEGMENTS; k++)
        define_part(w, &v, k);
}

const struct xti_family xti_cuda_packed = {
    "packed",
    applies,
    NULL,
    "packed",
    index_records,
    define,
    "XT_RECORDS XT_LENGTH XT_ALIGNED XT_PARTS XT_GROUND XT_GROUND_AT XT_TABLE_AT XT_COUNT XT_BEGIN0 XT_END0 "
    "XT_STRIDE0 XT_LOADS0 XT_PLACE0 XT_UNITS0 XT_WORDS0 XT_BEGIN1 XT_END1 XT_STRIDE1 XT_LOADS1 XT_PLACE1 "
    "XT_UNITS1 XT_WORDS1 XT_BEGIN2 XT_END2 XT_STRIDE2 XT_LOADS2 XT_PLACE2 XT_UNITS2 XT_WORDS2 XT_BEGIN3 "
    "XT_END3 XT_STRIDE3 XT_LOADS3 XT_PLACE3 XT_UNITS3 XT_WORDS3"};
