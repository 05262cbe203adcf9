/* weave.c: pixels whose channels a copy interleaves, takes apart, turns round, repeats or leaves out, in
 * registers: the bytes of 16-byte words of the destination are picked from those of the source by permutes
 * that are constants. Skeleton weave.cu. Layer 4. */
#include "cuda/weave.h"

#include <inttypes.h>
#include <string.h>

#include "cuda/family.h"
#include "cuda/predict.h"

enum { WARP = 32, WARPS = XTI_CUDA_THREADS / WARP };
/* 16-byte words of a thread: more of them would take too many registers. */
enum { MOST_FETCHED = 8, MOST_OUTS = 4 };
/* Units from pixel to pixel in the source, all of which are read. */
enum { MOST_STEP = 8 };
/* Items of a row with ragged ends. */
enum { LEAST_GROUPS = 8 };

static int64_t magnitude(int64_t v) { return (int64_t)xti_abs64(v); }

/* Bytes, a power of two up to 16, that divide n. */
static int power_in(int64_t n) { return (int)((n | 16) & -(n | 16)); }

void xti_weave_parts(const struct xti_cuda_plan *p, int piece, const struct xti_rows *r,
                     struct xti_woven *parts)
{
    parts->n = 1; /* parts behind the n-th, and dims behind a part's, are never read */
    parts->record = 0;
    parts->ground = false;
    memset(parts->begin, 0, sizeof parts->begin);
    if (!r) {
        parts->part[0] = *xti_cuda_piece(p, piece);
        return;
    }
    parts->n = r->n_segments;
    parts->record = r->length;
    parts->ground = r->ground >= 0;
    for (int k = 0; k < r->n_segments; k++) {
        const struct xti_segment *g = &r->segment[k];
        struct xti_piece *q = &parts->part[k];
        int64_t run = g->end - g->begin;
        *q = p->map.piece[g->piece];
        q->dim = parts->dim[k];
        q->n_dims = r->n_dims + (run > 1);
        q->soff = g->soff + g->begin;
        q->doff = r->doff;
        for (int i = 0; i < r->n_dims; i++)
            q->dim[i] = (struct xti_dim){r->dim[i].n, g->s[i], r->dim[i].d};
        if (run > 1)
            q->dim[r->n_dims] = (struct xti_dim){run, 1, 1};
        parts->begin[k] = g->begin;
    }
}

/* Of the first item of every row. */
static int align_rows(const struct xti_cuda_plan *p, const struct xti_piece *q, const struct xti_weave *v,
                      enum xti_side side)
{
    struct xti_dim dim[XTI_MAX_DIMS];
    struct xti_piece rows = *q;
    bool within = side == XTI_SOURCE ? !v->apart : v->packed;
    rows.n_dims = 0;
    rows.dim = dim;
    for (int i = 0; i < q->n_dims; i++)
        if (i != v->pixel && !(within && i == v->channel))
            dim[rows.n_dims++] = q->dim[i];
    return xti_cuda_align(p, &rows, side, side == XTI_SOURCE ? q->soff + v->low : q->doff, -1);
}

/* Of records: their last dim is their channels, where a part has more than one. */
static void find_record(const struct xti_woven *parts, struct xti_weave *v)
{
    const struct xti_piece *q = &parts->part[0];
    int run = q->dim[q->n_dims - 1].d == 1;
    v->packed = true;
    v->pixel = q->n_dims - 1 - run;
    v->channel = run ? q->n_dims - 1 : -1;
}

/* Which dims are the pixels and their channels. */
static bool find_dims(const struct xti_woven *parts, int unit, struct xti_weave *v, struct xti_why *why)
{
    const struct xti_piece *q = &parts->part[0];
    int last = q->n_dims - 1;
    const struct xti_dim *d = q->dim;
    *v = (struct xti_weave){.pixel = last, .channel = -1, .channels = 1};
    if (parts->record) {
        find_record(parts, v);
    } else if (last > 0 && d[last - 1].d == d[last].n && d[last].n <= MOST_OUTS) {
        v->packed = true;
        v->pixel = last - 1;
        v->channel = last;
    } else {
        for (int i = 0; i < last; i++)
            if (d[i].s && magnitude(d[i].s) <= (magnitude(d[last].s) - 1) / (d[i].n - 1) &&
                (v->channel < 0 || magnitude(d[i].s) < magnitude(d[v->channel].s)))
                v->channel = i;
    }
    v->pixels = d[v->pixel].n;
    v->sw = d[v->pixel].s;
    if (v->channel >= 0) {
        v->sc = d[v->channel].s;
        v->channels = d[v->channel].n > MOST_OUTS ? MOST_OUTS + 1 : (int)d[v->channel].n;
    }
    v->taken = v->channels;
    if (parts->record)
        v->channels = parts->record > MOST_OUTS ? MOST_OUTS + 1 : (int)parts->record;
    if (v->channels > MOST_OUTS)
        return xti_refuse(why, "pixels of more than %d channels", MOST_OUTS);
    if (!v->sw || magnitude(v->sw) > MOST_STEP || magnitude(v->sw) * unit > XTI_SECTOR_BYTES)
        return xti_refuse(why, "source stride %lld of pixels", (long long)v->sw);
    if (v->channels == 1 && v->sw == 1)
        return xti_refuse(why, "pixels of one channel in order");
    return true;
}

static int words_of(int64_t units, int unit) { return (int)((units * unit + 15) / 16); }

/* Where one window of all channels takes no more words than one of each, its words lie side by side. */
static bool lie_apart(const struct xti_weave *v, int unit)
{
    int64_t pixels = magnitude(v->sw) * (v->group - 1), across = magnitude(v->sc) * (v->channels - 1);
    return v->channels > 1 && magnitude(v->sc) > (2 * magnitude(v->sw) + MOST_OUTS) / (v->channels - 1) &&
           (across > MOST_FETCHED * 16 / unit ||
            words_of(pixels + across + 1, unit) > v->channels * words_of(pixels + 1, unit));
}

static void size_items(const struct xti_woven *parts, int unit, struct xti_weave *v)
{
    int run = v->packed ? v->channels * unit : unit;
    int of_source = 16 / power_in(magnitude(v->sw) * unit);
    v->period = 16 / power_in(run);
    v->group = v->period > of_source ? v->period : of_source;
    v->apart = !parts->record && lie_apart(v, unit);
    int64_t across = v->apart ? 0 : magnitude(v->sc) * (v->taken - 1),
            span = magnitude(v->sw) * (v->group - 1) + across + 1;
    v->span = (int)span;
    v->windows = v->apart ? v->channels : parts->n;
    v->low = (v->sw < 0 ? v->sw * (v->group - 1) : 0) - (!v->apart && v->sc < 0 ? across : 0);
    v->outs = v->packed ? v->group * run / 16 : v->channels;
}

/* The least of all sources. */
static int align_sources(const struct xti_cuda_plan *p, const struct xti_woven *parts,
                         const struct xti_weave *v)
{
    int least = 16;
    for (int k = 0; k < parts->n; k++) {
        int align = align_rows(p, &parts->part[k], v, XTI_SOURCE);
        least = align < least ? align : least;
    }
    return least;
}

/* Lets all windows begin at multiples of 16 bytes, if need be a few units further down. */
static bool begin_on_words(const struct xti_cuda_plan *p, const struct xti_woven *parts, struct xti_weave *v)
{
    int unit = p->map.esize;
    if (!v->aligned || magnitude(v->sw) * v->group * unit % 16)
        return false;
    for (int k = 0; k < 16 / unit; k++) {
        struct xti_weave lower = *v;
        lower.low -= k;
        lower.span += k;
        lower.ahead = k;
        if (align_sources(p, parts, &lower) % 16 == 0) {
            *v = lower;
            return true;
        }
    }
    return false;
}

/* Where items begin in the destination, and windows in the source. */
static bool align_items(const struct xti_cuda_plan *p, const struct xti_woven *parts, struct xti_weave *v,
                        struct xti_why *why)
{
    const struct xti_piece *q = &parts->part[0];
    int unit = p->map.esize, dst = align_rows(p, q, v, XTI_DESTINATION);
    if (dst < 16 / v->period)
        return xti_refuse(why, "rows of the destination are aligned to %d bytes, pixels to %d", dst,
                          16 / v->period);
    if (!v->packed && v->channel >= 0 && (uint64_t)q->dim[v->channel].d * (uint64_t)unit % 16)
        return xti_refuse(why, "channels of the destination are not multiples of 16 bytes apart");
    v->aligned = dst % 16 == 0;
    v->shifted = !begin_on_words(p, parts, v);
    v->chunks = (v->span * unit + 15) / 16;
    v->fetched = v->shifted ? (v->span * unit + 16 - unit + 15) / 16 : v->chunks;
    v->groups = (v->pixels + (v->aligned ? 0 : v->period - 1) + v->group - 1) / v->group;
    v->whole = v->aligned && v->pixels % v->group == 0;
    return true;
}

static bool is_staged_in(const struct xti_weave *v) { return v->fetched > 1; }
static bool is_staged_out(const struct xti_weave *v) { return v->packed && v->outs > 1; }

/* No chunk of a window leaves the source. */
static bool is_inside(const struct xti_weave *v, int unit)
{
    return v->whole && !v->shifted && !v->ahead && v->span * unit % 16 == 0;
}

bool xti_weave_make(const struct xti_cuda_plan *p, const struct xti_woven *parts, struct xti_weave *v,
                    struct xti_why *why)
{
    int unit = p->map.esize;
    if (unit > 8)
        return xti_refuse(why, "units of %d bytes", unit);
    if (!find_dims(parts, unit, v, why))
        return false;
    size_items(parts, unit, v);
    if (!align_items(p, parts, v, why))
        return false;
    if (v->channels == 1 && v->sw == -1 && !v->shifted)
        return xti_refuse(why, "pixels of one channel, aligned on both sides");
    if (v->windows * v->fetched > MOST_FETCHED || v->outs > MOST_OUTS)
        return xti_refuse(why, "%d pixels are %d and %d words of 16 bytes", v->group, v->windows * v->fetched,
                          v->outs);
    if (4 * v->pixels < 3 * v->groups * v->group || (!v->whole && v->groups < LEAST_GROUPS))
        return xti_refuse(why, "rows of %lld pixels would leave threads idle", (long long)v->pixels);
    int in = is_staged_in(v) || !is_inside(v, unit) ? v->windows * v->fetched : 0;
    int out = is_staged_out(v) ? v->outs : 0;
    v->stage = WARP * (in > out ? in : out);
    return true;
}

static bool weave_applies(const struct xti_cuda_plan *p, int piece, struct xti_why *why)
{
    const struct xti_piece *q = xti_cuda_piece(p, piece);
    struct xti_woven parts;
    struct xti_weave v;
    if (!xti_cuda_is_row(p, piece, why))
        return false;
    if (q->src < 0 || !q->n_dims)
        return xti_refuse(why, q->src < 0 ? "no source" : "one unit");
    xti_weave_parts(p, piece, NULL, &parts);
    return xti_weave_make(p, &parts, &v, why);
}

int64_t xti_weave_items(const struct xti_woven *parts, const struct xti_weave *v)
{
    const struct xti_piece *q = &parts->part[0];
    int64_t n = v->groups;
    for (int i = 0; i < q->n_dims; i++)
        n *= i == v->pixel || i == v->channel ? 1 : q->dim[i].n;
    return n;
}

static void make_step(const struct xti_cuda_plan *p, struct xti_cuda_step *s)
{
    struct xti_woven parts;
    struct xti_weave v;
    xti_weave_parts(p, s->piece, s->rows, &parts);
    xti_weave_make(p, &parts, &v, NULL);
    s->src_bytes = s->dst_bytes = s->vec_bytes = 16;
    s->per_thread = v.outs;
    s->shared_bytes = (int64_t)v.stage * WARPS * 16;
    s->blocks = (xti_weave_items(&parts, &v) + XTI_CUDA_THREADS - 1) / XTI_CUDA_THREADS;
}

static void weave_make(const struct xti_cuda_plan *p, int piece, struct xti_cuda_step *s) { make_step(p, s); }

void xti_weave_rows_step(const struct xti_cuda_plan *p, const struct xti_rows *r, struct xti_cuda_step *s)
{
    s->family = XTI_CUDA_WEAVE;
    s->rows = r;
    s->piece = r->segment[0].piece;
    s->from = XTI_FROM_COPY;
    make_step(p, s);
}

static void weave_index(struct xti_writer *w)
{
    static const char *const source[XTI_MAX_SEGMENTS] = {"", "u[1]", "u[2]", "u[3]"};
    const struct xti_rows *r = w->s->rows;
    struct xti_woven parts;
    struct xti_weave v;
    xti_weave_parts(w->p, w->s->piece, r, &parts);
    xti_weave_make(w->p, &parts, &v, NULL);
    if (r)
        xti_write_box(w, r->n_dims, r->dim, parts.part[0].soff, r->doff);
    for (int k = 1; k < parts.n; k++)
        xti_write_sum(w, source[k], parts.part[k].soff, r->segment[k].s);
    w->role[v.pixel] = XTI_IN_BODY;
    if (v.channel >= 0 && !r)
        w->role[v.channel] = XTI_IN_BODY;
    xti_write_digit(w, v.groups, "*u");
}

/* ---- which bytes of the windows make a word */

/* Byte `at` of the item's destination, channel after channel where they have a run each -> of its windows
 * and, behind them, of the fill value. */
static int source_byte(const struct xti_woven *parts, const struct xti_weave *v, int unit, int at)
{
    int x = at / unit, run = v->packed ? v->channels : v->group;
    int i = v->packed ? x / run : x % run, c = v->packed ? x % run : x / run;
    if (parts->record) {
        int k = 0;
        while (k < parts->n && (c < parts->begin[k] || c >= parts->begin[k] + v->taken))
            k++;
        int64_t in = k < parts->n ? i * v->sw + (c - parts->begin[k]) * v->sc - v->low : 0;
        return 16 * v->chunks * k + (int)in * unit + at % unit;
    }
    int64_t of = i * v->sw + (v->apart ? 0 : c * v->sc) - v->low;
    return (v->apart ? 16 * v->chunks * c : 0) + (int)of * unit + at % unit;
}

/* Two bytes, i of a and j of b, with what else such a permute can bring for another word; where they are. */
static unsigned pair(int i, int j, int *at_i, int *at_j)
{
    bool near = i / 2 == j / 2;
    *at_i = near ? i % 2 * 2 : 0;
    *at_j = near ? j % 2 * 2 + 1 : 1;
    return near ? (i < 2 ? 0x5140u : 0x7362u) : (unsigned)(i | (4 + j) << 4);
}

static void put_word(struct xti_writer *w, int out, const int *byte)
{
    int word[4], n = 0, of[4];
    for (int k = 0; k < 4; k++) {
        for (of[k] = 0; of[k] < n && word[of[k]] != byte[k] / 4;)
            of[k]++;
        if (of[k] == n)
            word[n++] = byte[k] / 4;
    }
    unsigned near = 0, far = 0; /* selectors of the first two words, and of what they became and the third */
    for (int k = 0; k < 4; k++) {
        near |= (unsigned)((of[k] == 1 ? 4 : 0) + byte[k] % 4) << 4 * k;
        far |= (unsigned)(of[k] == 2 ? 4 + byte[k] % 4 : k) << 4 * k;
    }
    if (n == 1 && near == 0x3210) {
        xti_write_text(w, "    out[%d] = in[%d];\n", out, word[0]);
    } else if (n < 3) {
        xti_write_text(w, "    out[%d] = __byte_perm(in[%d], in[%d], 0x%x);\n", out, word[0], word[n - 1],
                       near);
    } else if (n == 3) {
        xti_write_text(w, "    out[%d] = __byte_perm(__byte_perm(in[%d], in[%d], 0x%x), in[%d], 0x%x);\n",
                       out, word[0], word[1], near & 0x7777, word[2], far);
    } else {
        int a, b, c, d;
        unsigned low = pair(byte[0] % 4, byte[1] % 4, &a, &b), high = pair(byte[2] % 4, byte[3] % 4, &c, &d);
        xti_write_text(
            w,
            "    out[%d] = __byte_perm(__byte_perm(in[%d], in[%d], 0x%x), __byte_perm(in[%d], in[%d], 0x%x), "
            "0x%x);\n",
            out, word[0], word[1], low, word[2], word[3], high,
            (unsigned)(a | b << 4 | (4 + c) << 8 | (4 + d) << 12));
    }
}

static void put_permutes(struct xti_writer *w, const struct xti_woven *parts, const struct xti_weave *v)
{
    xti_write_text(w, "XT_FN void XT_PASTE(XT_BODY, _permute)(const xt_b4 *in, xt_b4 *out)\n{\n");
    for (int o = 0; o < 4 * v->outs; o++) {
        int byte[4];
        for (int k = 0; k < 4; k++)
            byte[k] = source_byte(parts, v, w->p->map.esize, 4 * o + k);
        put_word(w, o, byte);
    }
    xti_write_text(w, "}\n");
}

/* x * odd == 1 modulo 16: odd^4 is. */
static int inverse_of(int odd) { return odd * odd * odd % 16; }

static void define_extent(struct xti_writer *w, int k, int64_t units)
{
    int64_t words = units - (16 / w->p->map.esize - 1);
    xti_write_number_of(w, "XT_EXTENT", k, units);
    xti_write_number_of(w, "XT_WORDS", k, words > 0 ? words : 0);
}

static void weave_define(struct xti_writer *w)
{
    int unit = w->p->map.esize;
    struct xti_woven parts;
    struct xti_weave v;
    xti_weave_parts(w->p, w->s->piece, w->s->rows, &parts);
    xti_weave_make(w->p, &parts, &v, NULL);
    int pixel = v.packed ? v.channels : 1;
    xti_write_constant(w, "XT_PIXEL", pixel);
    xti_write_constant(w, "XT_GROUP", v.group);
    xti_write_constant(w, "XT_STEP", magnitude(v.sw));
    xti_write_constant(w, "XT_BACK", v.sw < 0);
    xti_write_constant(w, "XT_LOW", -v.low);
    xti_write_constant(w, "XT_SPAN", v.span);
    xti_write_constant(w, "XT_ALIGNED", v.aligned);
    xti_write_constant(w, "XT_PERIOD", v.period);
    xti_write_constant(w, "XT_INVERSE", inverse_of(pixel * unit * v.period / 16 % 16));
    xti_write_constant(w, "XT_SHIFTED", v.shifted);
    xti_write_constant(w, "XT_WHOLE", v.whole);
    xti_write_constant(w, "XT_INSIDE", is_inside(&v, unit));
    xti_write_constant(w, "XT_WINDOWS", v.windows);
    xti_write_constant(w, "XT_CHUNKS", v.chunks);
    xti_write_constant(w, "XT_FETCHED", v.fetched);
    xti_write_constant(w, "XT_OUTS", v.outs);
    xti_write_constant(w, "XT_STAGE", v.stage);
    xti_write_fact(w->e, v.apart ? 0 : (uint64_t)magnitude(v.sc));
    xti_write_fact(w->e, !v.apart && v.sc < 0);
    xti_write_number(w, "XT_FROM_CHANNEL", v.apart ? v.sc : 0);
    for (int k = 0; k < parts.n && parts.record; k++)
        xti_write_fact(w->e, (uint64_t)parts.begin[k]);
    xti_write_fact(w->e, (uint64_t)v.taken);
    xti_write_constant(w, "XT_PARTS", parts.n);
    xti_write_constant(w, "XT_GROUND", parts.ground);
    xti_write_number(w, "XT_TO_CHANNEL", v.packed || v.channel < 0 ? 0 : w->q->dim[v.channel].d);
    xti_write_number(w, "XT_PIXELS", v.pixels);
    xti_write_number(w, "XT_POINTS", xti_weave_items(&parts, &v));
    for (int k = 0; k < parts.n; k++)
        define_extent(w, k, w->p->map.src_hi[parts.part[k].src] + 1);
    put_permutes(w, &parts, &v);
}

const struct xti_family xti_cuda_weave = {
    "weave",
    weave_applies,
    weave_make,
    "weave",
    weave_index,
    weave_define,
    "XT_PIXEL XT_GROUP XT_STEP XT_BACK XT_LOW XT_SPAN XT_ALIGNED XT_PERIOD XT_INVERSE XT_SHIFTED "
    "XT_WHOLE XT_INSIDE XT_WINDOWS XT_CHUNKS XT_FETCHED XT_OUTS XT_STAGE XT_FROM_CHANNEL XT_TO_CHANNEL "
    "XT_PIXELS XT_POINTS XT_PARTS XT_GROUND XT_EXTENT0 XT_EXTENT1 XT_EXTENT2 XT_EXTENT3 XT_WORDS0 XT_WORDS1 "
    "XT_WORDS2 XT_WORDS3"};
