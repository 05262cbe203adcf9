/* tile.c: pieces whose two sides run along different dims, by a box in shared memory (box.h). Any dims,
 * extents, signs and alignments. Skeleton tile.cu. Layer 4. */
#include <inttypes.h>

#include "cuda/box.h"
#include "cuda/cubin.h"
#include "cuda/family.h"

/* Indices below SMALL_INDEX are divided by one multiplication; points are asked for up to INDEX_SLACK beyond
 * the last one. */
enum { SMALL_INDEX = 1 << 15, INDEX_SLACK = 1 << 12, LINE_BYTES = 128, LONG_BYTES = 512 };
/* What a processor is to have under way, where it has room for FEW_BOXES or one, and the most chunks of a
 * thread: registers. */
enum { FEW_BOXES = 2, FLIGHT_BYTES = 21 << 10, MOST_AT_ONCE = 10 };

bool xti_cuda_first_box(const struct xti_cuda_plan *p, int piece, struct xti_box *b, struct xti_why *why)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    if (!xti_cuda_is_row(p, piece, why))
        return false;
    if (q->src < 0 || !q->n_dims)
        return xti_refuse(why, q->src < 0 ? "no source" : "one unit");
    return xti_box_make(p, q, XTI_BOX_LEAST_WORD, b, why);
}

static bool tile_applies(const struct xti_cuda_plan *p, int piece, struct xti_why *why)
{
    struct xti_box b;
    return xti_cuda_first_box(p, piece, &b, why);
}

static void tile_make(const struct xti_cuda_plan *p, int piece, struct xti_cuda_step *s)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    s->src_bytes = s->dst_bytes = s->vec_bytes = 16;
    s->per_thread = 1;
    s->shared_bytes = s->box->bytes;
    s->blocks = 1;
    for (int i = 0; i < q->n_dims; i++)
        if (!xti_box_find(s->box, i))
            s->blocks *= q->dim[i].n;
    for (int c = 0; c < s->box->n_cuts; c++)
        s->blocks *= xti_box_count(s->box, c, p->map.esize);
}

/* Bytes of the source's run that are a box's. */
static int64_t row_bytes(const struct xti_box *b, int unit)
{
    return b->chunks * 16 - (b->shifts ? 16 - unit : 0);
}

/* Bytes of the whole run of the source that a box has a part of. */
static int64_t run_bytes(const struct xti_box *b, int unit)
{
    int64_t run = 1;
    for (int j = 0; j < b->n; j++)
        if (b->dim[j].in_a)
            run += (b->dim[j].n - 1) * (int64_t)xti_abs64(b->dim[j].s);
    return run * unit;
}

/* Boxes that run at the same time lie side by side in the destination: lines that are written here and there
 * cost more than such as are read so. Runs of the source of which boxes have less than a line, or which are
 * short, are read side by side. */
static bool goes_along(const struct xti_box *b, int unit)
{
    return row_bytes(b, unit) >= LINE_BYTES && run_bytes(b, unit) >= LONG_BYTES;
}

/* So they are where all boxes run at the same time, too: what is written then meets in the second cache.
 * Windows along the source take the place of those along the destination: a number, no other structure. */
static bool is_exchanged(const struct xti_cuda_plan *p, const struct xti_box *b)
{
    int64_t room = xti_cubin_shared_of(p->target.sm) / b->bytes;
    room = room < XTI_CUDA_RESIDENT ? room : XTI_CUDA_RESIDENT;
    return p->blocks <= room * xti_cuda_processors(p) && b->n_cuts == XTI_CUDA_BOX_CUTS &&
           goes_along(b, p->map.esize);
}

/* All words of a box's part of a run are the box's own. */
static bool is_even(const struct xti_box *b, int unit)
{
    const struct xti_box_dim *last = &b->dim[b->n_b - 1];
    return last->cut < 0 || last->d * last->t == b->vectors * (b->word / unit);
}

/* All windows along a dim have as many points, each its own. */
static bool is_whole(const struct xti_box_dim *d) { return d->n % d->t == 0 && !d->back; }

/* Boxes are all alike: the number of a window says where its boxes begin, no more. */
static bool is_straight(const struct xti_writer *w, const struct xti_box *b)
{
    bool alike = w->in != XTI_IN_TABLE && is_even(b, w->p->map.esize);
    for (int c = 0; c < b->n_cuts; c++)
        alike = alike && is_whole(&b->dim[b->window[c]]);
    return alike;
}

/* Units from a box's corner down to the lowest ones of its rows; cut: rows end with the window. */
static int64_t back_in_rows(const struct xti_box *b, bool cut)
{
    int64_t back = 0;
    for (int j = 0; j < b->n; j++) {
        const struct xti_box_dim *d = &b->dim[j];
        if (d->in_a && d->s < 0 && (cut || d->cut < 0))
            back += ((d->cut < 0 ? d->n : d->t) - 1) * d->s;
    }
    return back;
}

/* Of one window may be more than there is: then its step is not used. */
static int64_t times(int64_t points, int64_t stride)
{
    return (int64_t)((uint64_t)points * (uint64_t)stride);
}

/* Which box along a window is a digit of the box's number, in the place of the c-th window. */
static void write_window(struct xti_writer *w, const struct xti_box *b, int c)
{
    static const char *const out[] = {"*u", "*v"};
    bool along = goes_along(b, w->p->map.esize);
    int of = is_exchanged(w->p, b) ? 1 - c : c, place = along ? b->dim[b->window[c]].dim : -1;
    int64_t n = xti_box_count(b, of, w->p->map.esize);
    const struct xti_box_dim *d = &b->dim[b->window[of]];
    if (w->straight) {
        xti_write_step(w, place, n, times(d->t, d->s), times(d->t, d->d));
        return;
    }
    xti_write_fact(w->e, (uint64_t)(2 * c + along));
    if (along)
        xti_write_part(w, place, n, out[c]);
    else
        xti_write_digit(w, n, out[c]);
}

static void tile_index(struct xti_writer *w)
{
    const struct xti_box *b = w->s->box;
    w->straight = is_straight(w, b);
    w->soff = b->soff + back_in_rows(b, w->straight);
    w->doff = b->doff;
    /* the last boxes, which may leave the buffer, and end unevenly, take longest: they begin, but where dims
     * outside of boxes make many of these */
    w->down = b->shifts && b->n == w->q->n_dims;
    for (int i = 0; i < w->q->n_dims; i++) {
        if (b->turned >> i & 1) {
            w->dim[i].s = -w->dim[i].s;
            w->dim[i].d = -w->dim[i].d;
        }
        if (xti_box_find(b, i))
            w->role[i] = XTI_IN_BODY;
    }
    for (int in_a = 1; in_a >= 0; in_a--)
        for (int c = 0; c < b->n_cuts; c++)
            if (b->dim[b->window[c]].in_a == in_a)
                write_window(w, b, c);
}

/* ---- what tile.cu wants to know */

/* The index has it already. */
static void write_none(struct xti_writer *w, const char *name, int k, int64_t v)
{
    (void)v;
    xti_write_constant_of(w, name, k, 0);
}

static void define_windows(struct xti_writer *w, const struct xti_box *b)
{
    static const struct xti_box_dim none = {.n = 1, .t = 1, .cut = -1};
    xti_write_constant(w, "XT_CUTS", w->straight ? 0 : b->n_cuts);
    if (!w->straight && b->n_cuts == XTI_CUDA_BOX_CUTS && goes_along(b, w->p->map.esize))
        xti_write_number(w, "XT_EXCHANGED", is_exchanged(w->p, b));
    else
        xti_write_constant(w, "XT_EXCHANGED", 0);
    for (int c = 0; c < XTI_CUDA_BOX_CUTS; c++) {
        const struct xti_box_dim *d = c < b->n_cuts ? &b->dim[b->window[c]] : &none;
        bool reversed = d->in_a && d->s < 0;
        xti_write_constant_of(w, "XT_T", c, d->t);
        xti_write_constant_of(w, "XT_BACK", c, d->back);
        void (*write)(struct xti_writer *, const char *, int, int64_t) =
            w->straight ? write_none : xti_write_number_of;
        write(w, "XT_N", c, d->n);
        write(w, "XT_LAST", c, c < b->n_cuts ? xti_box_count(b, c, w->p->map.esize) - 1 : 0);
        write(w, "XT_S", c, d->s);
        write(w, "XT_D", c, d->d);
        xti_write_constant_of(w, "XT_WHOLE", c, is_whole(d));
        xti_write_constant_of(w, "XT_REV", c, reversed);
        xti_write_constant_of(w, "XT_LREV", c, reversed ? -d->shared : 0);
        xti_write_constant_of(w, "XT_ACUT", c, d->in_a ? (int64_t)xti_abs64(d->s) : 0);
    }
}

/* Chunks that a thread is to have under way for that; 0: it does not matter. */
static int64_t least_at_once(const struct xti_cuda_plan *p, const struct xti_box *b)
{
    int64_t boxes = xti_cubin_shared_of(p->target.sm) / b->bytes, each = boxes * b->row_active * 16;
    int64_t chunks = boxes && boxes <= FEW_BOXES ? (FLIGHT_BYTES + each - 1) / each : 0;
    return chunks < MOST_AT_ONCE ? chunks : MOST_AT_ONCE;
}

static void define_rows(struct xti_writer *w, const struct xti_box *b)
{
    int64_t span = 1, back_shared = 0, reach = 0;
    for (int j = 0; j < b->n; j++) {
        const struct xti_box_dim *d = &b->dim[j];
        reach += !d->in_a && d->s > 0 ? (d->t + d->back - 1) * d->s : 0;
        if (!d->in_a || d->cut >= 0)
            continue;
        span += (d->n - 1) * (int64_t)xti_abs64(d->s);
        back_shared += d->s < 0 ? (d->n - 1) * -d->shared : 0;
    }
    xti_write_constant(w, "XT_SPAN", span);
    xti_write_constant(w, "XT_LREV", back_shared);
    xti_write_number(w, "XT_REACH", reach + b->chunks * 16 / w->p->map.esize);
    xti_write_number(w, "XT_EXTENT", w->p->map.src_hi[w->q->src] + 1);
    xti_write_constant(w, "XT_ROWS", b->rows);
    xti_write_constant(w, "XT_CHUNKS", b->chunks);
    xti_write_constant(w, "XT_LEAST_AT_ONCE", least_at_once(w->p, b));
    bool filled = true; /* rows are all of one length */
    for (int c = 0; c < b->n_cuts; c++)
        filled &= !b->dim[b->window[c]].in_a ||
                  (b->dim[b->window[c]].n % b->dim[b->window[c]].t == 0 && !b->dim[b->window[c]].back);
    xti_write_constant(w, "XT_SALIGNED", b->source_whole);
    xti_write_constant(w, "XT_FILLED", filled);
    xti_write_constant(w, "XT_SHIFTS", b->shifts);
}

static void define_runs(struct xti_writer *w, const struct xti_box *b)
{
    const struct xti_box_dim *last = &b->dim[b->n_b - 1];
    const struct xti_box_dim *order[XTI_CUDA_BOX_DIMS];
    xti_write_constant(w, "XT_OUTS", b->outs / b->group);
    xti_write_constant(w, "XT_WORD", b->word);
    xti_write_constant(w, "XT_SHARE", b->share);
    xti_write_constant(w, "XT_GROUP", b->group);
    xti_write_constant(w, "XT_GRID", b->grid);
    int dims = xti_box_digits(b, XTI_BOX_RUN, order);
    xti_write_number(w, "XT_GROUP_TO", dims ? order[0]->d : 0);
    xti_write_constant(w, "XT_NUMBERED", w->e->tier == XTI_TIER_STRUCTURE);
    xti_write_constant(w, "XT_RUN_DIMS", dims);
    xti_write_constant(w, "XT_ROW_DIMS", xti_box_digits(b, XTI_BOX_ROW, order));
    xti_write_constant(w, "XT_VECTORS", b->vectors);
    xti_write_constant(w, "XT_LANES", b->lanes);
    xti_write_constant(w, "XT_BCUT", last->cut >= 0 ? last->cut : XTI_CUDA_BOX_CUTS);
    xti_write_constant(w, "XT_RUN", last->cut >= 0 ? last->d : last->d * last->n);
    xti_write_constant(w, "XT_DALIGNED", b->destination_aligned);
    /* where the distance of rows is a parameter, places are rather kept, if they can be */
    bool kept = b->dim[0].ragged && w->e->tier == XTI_TIER_STRUCTURE && b->steps.still;
    xti_write_constant(w, "XT_BOX", b->constant && !kept);
    xti_write_constant(w, "XT_CHAINED", b->constant && w->e->tier == XTI_TIER_STRUCTURE);
    if (last->ragged)
        xti_write_number(w, "XT_BACK_SHARED", last->shared);
    else
        xti_write_constant(w, "XT_BACK_SHARED", last->shared);
    xti_write_constant(w, "XT_EVEN", is_even(b, w->p->map.esize));
    int64_t point = last->d * w->p->map.esize;
    bool whole = last->cut < 0 || last->n % last->t == 0,
         uncut = b->destination_aligned && point * last->n % b->word == 0 &&
                 (last->cut < 0 || point * last->t % b->word == 0);
    xti_write_constant(w, "XT_UNCUT", uncut);
    xti_write_constant(w, "XT_BRIM", uncut && whole);
}

static void put_shared(struct xti_writer *w, const struct xti_box_dim *d, int j)
{
    if (d->skew)
        xti_write_text(w, "    at.shared += (int)(x * (unsigned int)XT_PITCH%d + (x >> %d) * %du);\n", j,
                       d->skew, d->skew_bytes);
    else if (d->shared)
        xti_write_text(w, "    at.shared += (int)x * (int)XT_PITCH%d;\n", j);
}

/* All that decides the text of a dim's digit but the function that it is in. */
static void put_facts(struct xti_writer *w, const struct xti_box *b, const struct xti_box_dim *d)
{
    xti_write_fact(w->e, (uint64_t)(d - b->dim));
    xti_write_fact(w->e, (uint64_t)d->t);
    xti_write_fact(w->e, (uint64_t)d->back);
    xti_write_fact(w->e, (uint64_t)d->shared / (d->ragged ? 16 : 1));
    xti_write_fact(w->e, d->ragged);
    xti_write_fact(w->e, (uint64_t)d->skew);
    xti_write_fact(w->e, (uint64_t)d->skew_bytes);
    xti_write_fact(w->e, (uint64_t)(d->cut + 1));
    xti_write_fact(w->e, xti_box_is_row(d));
}

static void put_digits(struct xti_writer *w, const struct xti_box *b, enum xti_box_of f)
{
    const struct xti_box_dim *order[XTI_CUDA_BOX_DIMS];
    int n = xti_box_digits(b, f, order);
    int64_t all = 1;
    xti_write_fact(w->e, (uint64_t)n);
    for (int k = 0; k < n; k++)
        all *= xti_box_points(b, f, order[k], k);
    const char *divide = all + INDEX_SLACK < SMALL_INDEX ? "XT_SMALL_QUOTIENT" : "XT_QUOTIENT";
    for (int k = 0; k < n; k++) {
        const struct xti_box_dim *d = order[k];
        int j = (int)(d - b->dim);
        int64_t points = xti_box_points(b, f, d, k);
        put_facts(w, b, d);
        if (k + 1 < n)
            xti_write_text(w, "    x = i;\n    i = %s(i, %" PRId64 "u);\n    x -= i * %" PRId64 "u;\n",
                           divide, points, points);
        else
            xti_write_text(w, "    x = i;\n");
        if (f == XTI_BOX_RUN && k == 0 && b->group > 1)
            xti_write_text(w, "    x *= %du;\n", b->group);
        put_shared(w, d, j);
        if (f == XTI_BOX_ROW)
            xti_write_text(w, "    at.units += x * XT_SOURCE%d;\n", j);
        if (f == XTI_BOX_RUN)
            xti_write_text(w, "    at.units += x * XT_TO%d;\n", j);
        if (f != XTI_BOX_POINT && d->cut >= 0)
            xti_write_text(w, "    at.x%d = x;\n", d->cut);
    }
}

static void put_functions(struct xti_writer *w, const struct xti_box *b)
{
    static const char *const name[] = {"_row", "_out", "_point"};
    for (int j = 0; j < b->n; j++) {
        if (b->dim[j].ragged) /* what is modulo 16 is no fact of the structure */
            xti_write_number_of(w, "XT_PITCH", j, b->dim[j].shared);
        else
            xti_write_constant_of(w, "XT_PITCH", j, b->dim[j].shared);
        if (xti_box_is_row(&b->dim[j]))
            xti_write_number_of(w, "XT_SOURCE", j, b->dim[j].s);
        if (!b->dim[j].in_b)
            xti_write_number_of(w, "XT_TO", j, b->dim[j].d);
    }
    xti_write_text(w, "struct XT_PASTE(XT_BODY, _place) {\n    xt_index units;\n    int shared;\n"
                      "    unsigned int x0, x1;\n};\n");
    for (int f = XTI_BOX_ROW; f <= XTI_BOX_POINT; f++) {
        xti_write_text(w,
                       "XT_FN struct XT_PASTE(XT_BODY, _place) XT_PASTE(XT_BODY, %s)(const xt_index *t, "
                       "unsigned int i)\n{\n    struct XT_PASTE(XT_BODY, _place) at = {0, 0, 0, 0};\n"
                       "    unsigned int x = 0;\n",
                       name[f]);
        put_digits(w, b, (enum xti_box_of)f);
        xti_write_text(w, "    return at;\n}\n");
    }
}

/* Steps until the fastest dim that they move is through, and until the next one is, too. */
static void write_turns(struct xti_writer *w, const char *name, enum xti_box_of f, int64_t step)
{
    const struct xti_box *b = w->s->box;
    const struct xti_box_dim *order[XTI_CUDA_BOX_DIMS];
    int n = xti_box_digits(b, f, order), found = 0;
    int64_t turn[2] = {1, 1}, all = 1;
    for (int k = 0; k < n && step && found < 2; k++) {
        int64_t points = xti_box_points(b, f, order[k], k), part = points < step ? points : step;
        step /= part;
        if (points == part)
            continue;
        turn[found++] = all *= points / part;
    }
    xti_write_constant(w, name, turn[0]);
    xti_write_constant_of(w, name, 2, found < 2 ? turn[0] : turn[1]);
}

static void define_places(struct xti_writer *w, const struct xti_box *b)
{
    write_turns(w, "XT_ROW_TURN", XTI_BOX_ROW, b->row_step);
    write_turns(w, "XT_RUN_TURN", XTI_BOX_RUN, b->steps.run);
    xti_write_constant(w, "XT_PARTS", b->row_parts);
    xti_write_constant(w, "XT_ROW_STEP", b->row_step);
    xti_write_constant(w, "XT_ROW_STILL", b->row_still);
    xti_write_constant(w, "XT_ROW_ACTIVE", b->row_active);
    xti_write_constant(w, "XT_ACTIVE", b->steps.active);
    xti_write_constant(w, "XT_RUN_STEP", b->steps.run);
    xti_write_constant(w, "XT_POINT_STEP", b->steps.point);
    xti_write_constant(w, "XT_STILL", b->steps.still);
    xti_write_constant(w, "XT_SPREAD", b->spread);
    xti_write_constant(w, "XT_EVERY", b->every);
    xti_write_constant(w, "XT_TOGETHER", b->together);
    bool few = b->word / w->p->map.esize <= 4 && !b->table && (!b->turns || b->steps.still);
    xti_write_constant(w, "XT_ROOM", (b->constant || few) && !b->spread);
    xti_write_constant(w, "XT_CHUNK_STORE", b->store_bytes);
    xti_write_constant(w, "XT_TABLE", b->table);
    xti_write_constant(w, "XT_TURNS", b->turns ? b->dim[0].t + b->dim[0].back : 0);
    xti_write_constant(w, "XT_TABLE_AT", b->table_at);
    bool staggered = b->stagger.quarters && (b->stagger.step || w->e->tier == XTI_TIER_STRUCTURE);
    xti_write_constant(w, "XT_QUARTERS", staggered ? b->stagger.quarters : 0);
    if (!staggered)
        return;
    xti_write_number(w, "XT_STAGGER_LANES", b->stagger.lanes);
    xti_write_number(w, "XT_STAGGER_STEP", b->stagger.step);
}

static void tile_define(struct xti_writer *w)
{
    define_windows(w, w->s->box);
    define_rows(w, w->s->box);
    define_runs(w, w->s->box);
    define_places(w, w->s->box);
    put_functions(w, w->s->box);
}

#define SOURCES                                                                                              \
    "XT_SOURCE0 XT_SOURCE1 XT_SOURCE2 XT_SOURCE3 XT_SOURCE4 XT_SOURCE5 XT_SOURCE6 XT_SOURCE7 XT_SOURCE8 "    \
    "XT_SOURCE9 XT_SOURCE10 XT_SOURCE11 XT_SOURCE12 XT_SOURCE13 XT_SOURCE14 XT_SOURCE15 "
#define PITCHES                                                                                              \
    "XT_PITCH0 XT_PITCH1 XT_PITCH2 XT_PITCH3 XT_PITCH4 XT_PITCH5 XT_PITCH6 XT_PITCH7 XT_PITCH8 XT_PITCH9 "   \
    "XT_PITCH10 XT_PITCH11 XT_PITCH12 XT_PITCH13 XT_PITCH14 XT_PITCH15 "
#define TOS                                                                                                  \
    "XT_TO0 XT_TO1 XT_TO2 XT_TO3 XT_TO4 XT_TO5 XT_TO6 XT_TO7 XT_TO8 XT_TO9 XT_TO10 XT_TO11 XT_TO12 XT_TO13 " \
    "XT_TO14 XT_TO15 "
#define WINDOWS                                                                                              \
    "XT_T0 XT_BACK0 XT_N0 XT_LAST0 XT_S0 XT_D0 XT_WHOLE0 XT_REV0 XT_LREV0 XT_ACUT0 XT_T1 XT_BACK1 XT_N1 "    \
    "XT_LAST1 XT_S1 XT_D1 "                                                                                  \
    "XT_WHOLE1 XT_REV1 XT_LREV1 XT_ACUT1 XT_CUTS XT_EXCHANGED "

const struct xti_family xti_cuda_tile = {
    "tile",
    tile_applies,
    tile_make,
    "tile",
    tile_index,
    tile_define,
    SOURCES PITCHES TOS WINDOWS
    "XT_SPAN XT_LREV XT_REACH XT_EXTENT XT_ROWS XT_CHUNKS XT_LEAST_AT_ONCE XT_SALIGNED XT_SHIFTS "
    "XT_OUTS "
    "XT_WORD XT_SHARE XT_VECTORS XT_LANES XT_BCUT XT_RUN XT_DALIGNED XT_BOX XT_CHAINED XT_BACK_SHARED "
    "XT_EVEN "
    "XT_ROW_STEP "
    "XT_ROW_TURN XT_ROW_TURN2 XT_RUN_TURN XT_RUN_TURN2 XT_ROW_STILL XT_ROW_ACTIVE XT_RUN_STEP XT_POINT_STEP "
    "XT_ACTIVE XT_STILL XT_SPREAD XT_EVERY "
    "XT_TOGETHER XT_ROOM XT_CHUNK_STORE XT_TABLE XT_TURNS XT_TABLE_AT XT_FILLED XT_UNCUT XT_BRIM XT_GROUP "
    "XT_GRID "
    "XT_GROUP_TO XT_PARTS XT_NUMBERED XT_RUN_DIMS XT_ROW_DIMS XT_QUARTERS XT_STAGGER_LANES XT_STAGGER_STEP"};
