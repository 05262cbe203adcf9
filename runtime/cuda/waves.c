/* waves.c: see waves.h. A chunk of 16 bytes is stored whole, a word of the destination is gathered unit by
 * unit. Layer 4. */
#include "cuda/waves.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/num.h"

enum {
    BANKS = 32,
    WORD = 4,
    LINE = 128,
    MOST_WAVES = XTI_WARP * XTI_WARP /* of a request: fewer by far */
};

/* ---- digits */

bool xti_box_is_row(const struct xti_box_dim *d) { return !d->in_a && d->s; }

static bool takes_part(enum xti_box_of f, const struct xti_box_dim *d)
{
    return f == XTI_BOX_ROW ? xti_box_is_row(d) : f == XTI_BOX_RUN ? !d->in_b : d->in_b;
}

int xti_box_digits(const struct xti_box *b, enum xti_box_of f, const struct xti_box_dim **digit)
{
    int n = 0;
    for (int j = 0; j < b->n; j++) {
        if (!takes_part(f, &b->dim[j]) || (f == XTI_BOX_POINT && b->even && j))
            continue;
        int k = n++;
        for (; f == XTI_BOX_RUN && k && xti_abs64(digit[k - 1]->s) > xti_abs64(b->dim[j].s); k--)
            digit[k] = digit[k - 1];
        digit[k] = &b->dim[j];
    }
    return n;
}

int64_t xti_box_points(const struct xti_box *b, enum xti_box_of f, const struct xti_box_dim *d, int k)
{
    return f == XTI_BOX_RUN ? d->t / (k ? 1 : b->group) : xti_box_read_points(d);
}

/* ---- what warps ask for */

/* The digits of a number, fastest first: how many values, of which dim, times what. */
struct digits {
    int n, dim[XTI_CUDA_BOX_DIMS], times[XTI_CUDA_BOX_DIMS];
    int64_t points[XTI_CUDA_BOX_DIMS];
};

static void list_digits(const struct xti_box *b, enum xti_box_of f, struct digits *d)
{
    const struct xti_box_dim *order[XTI_CUDA_BOX_DIMS];
    d->n = xti_box_digits(b, f, order);
    for (int k = 0; k < d->n; k++) {
        d->dim[k] = (int)(order[k] - b->dim);
        d->points[k] = k + 1 < d->n ? xti_box_points(b, f, order[k], k) : INT64_MAX;
        d->times[k] = f == XTI_BOX_RUN && !k ? b->group : 1;
    }
}

static void put_digits(const struct digits *d, int64_t i, int lane, struct xti_request *r)
{
    for (int k = 0; k < d->n; k++) {
        r->point[d->dim[k]][lane] = (uint16_t)(i % d->points[k] * d->times[k]);
        i /= d->points[k];
    }
}

/* Of a run within its first word: by the strides, or as if all that are no multiples of that were odd: then
 * all these share a layout, and a kernel. Of runs that go from row to row not by 1: units of neighbouring
 * runs would meet in no bank, as with most others they do. */
static int64_t units_within(const struct xti_box *b, bool known, const struct xti_request *r, int lane,
                            int64_t of)
{
    int64_t at = 0, odd = b->n_b == 1 && xti_box_is_row(&b->dim[0]) ? 3 : 1;
    for (int j = 0; j < b->n; j++)
        if (!b->dim[j].in_b && b->dim[j].d % of)
            at += (known ? b->dim[j].d % of : odd) * r->point[j][lane];
    return (at % of + of) % of;
}

static void ask_for_chunks(const struct xti_box *b, int64_t first, struct xti_request *r)
{
    struct digits row;
    list_digits(b, XTI_BOX_ROW, &row);
    memset(r, 0, sizeof *r);
    r->chunks = true;
    for (; r->lanes < XTI_WARP && first + r->lanes < b->rows * b->chunks && first + r->lanes < b->row_active;
         r->lanes++) {
        int64_t e = first + r->lanes;
        put_digits(&row, e / b->chunks, r->lanes, r);
        r->more[r->lanes] = (uint16_t)(e % b->chunks * 16);
    }
}

/* The unit that thread e gathers k-th. */
static int64_t unit_of_thread(const struct xti_box *b, int unit, int64_t e, int64_t k)
{
    const struct xti_box_stagger *g = &b->stagger;
    int64_t units = b->word / unit;
    return g->quarters ? (k + (e >> g->lanes) * g->step * (units / g->quarters)) % units : k;
}

/* The k-th unit of each lane's word. known: by the strides. */
static void ask_for_units(const struct xti_box *b, int unit, bool known, int64_t first, int k,
                          struct xti_request *r)
{
    int64_t units = b->word / unit, outs = b->outs / b->group;
    const struct xti_box_dim *last = &b->dim[b->n_b - 1];
    struct digits run, points;
    list_digits(b, XTI_BOX_RUN, &run);
    list_digits(b, XTI_BOX_POINT, &points);
    memset(r, 0, sizeof *r);
    int64_t most = b->grid ? outs * b->lanes : outs * b->vectors; /* runs that go along together */
    for (; r->lanes < XTI_WARP && first + r->lanes < b->steps.active && first + r->lanes < most; r->lanes++) {
        int64_t e = first + r->lanes, point = (e % b->lanes + e / b->lanes / outs * b->lanes) * units +
                                              unit_of_thread(b, unit, e, k);
        put_digits(&run, e / b->lanes % outs, r->lanes, r);
        if (b->grid) /* not the first sector, of which few lanes have a unit */
            point +=
                (b->vectors > b->lanes ? b->lanes : 0) - units_within(b, known, r, r->lanes, b->grid / unit);
        else if (!b->destination_aligned)
            point += last->back * last->d - units_within(b, known, r, r->lanes, b->share / unit);
        put_digits(&points, point < 0 ? 0 : point, r->lanes, r);
    }
}

void xti_waves_ask(const struct xti_box *b, int unit, bool known, struct xti_probes *p)
{
    int units = b->word / unit;
    p->n = p->first = p->chunk_lanes = p->unit_lanes = 0;
    for (int w = 0; w < XTI_PROBES; w++) {
        ask_for_units(b, unit, known, w * XTI_WARP, w * 5 % units, &p->request[p->n]);
        p->unit_lanes += p->request[p->n].lanes;
        p->n += p->request[p->n].lanes > 0;
    }
    for (int w = 0; w < XTI_PROBES; w++) {
        ask_for_chunks(b, w * XTI_WARP, &p->request[p->n]);
        p->chunk_lanes += p->request[p->n].lanes;
        p->n += p->request[p->n].lanes > 0;
    }
}

/* ---- wavefronts */

/* Rows that run backwards begin at their end. */
static int64_t base_of(const struct xti_box *b)
{
    int64_t base = 0;
    for (int j = 0; j < b->n; j++)
        if (b->dim[j].in_a && b->dim[j].s < 0)
            base -= (xti_box_read_points(&b->dim[j]) - 1) * b->dim[j].shared;
    return base;
}

/* Where each lane's bytes lie, `base` first. */
static void list_places(const struct xti_box *b, const struct xti_request *r, int64_t base,
                        uint16_t at[XTI_WARP])
{
    for (int l = 0; l < XTI_WARP; l++)
        at[l] = (uint16_t)base;
    for (int j = 0; j < b->n; j++) {
        uint16_t bytes = (uint16_t)b->dim[j].shared;
        for (int l = 0; l < XTI_WARP; l++)
            at[l] = (uint16_t)(at[l] + (uint32_t)r->point[j][l] * bytes);
    }
    for (int l = 0; l < XTI_WARP && b->dim[0].skew; l++)
        at[l] = (uint16_t)(at[l] + (r->point[0][l] >> b->dim[0].skew) * b->dim[0].skew_bytes);
    uint16_t kept = r->chunks && b->shifts == 2 ? 0xfff0 : 0xffff;
    for (int l = 0; l < XTI_WARP; l++)
        at[l] = (uint16_t)((at[l] & kept) + r->more[l]);
    for (int l = 0; l < XTI_WARP && b->spread; l++)
        at[l] = (uint16_t)(at[l] + (at[l] >> b->every) * b->spread);
}

/* The largest number of different words in one bank, or one that is more than `enough`. */
static int most_in_a_bank(const uint16_t *word, int n, int banks, int enough)
{
    uint16_t known[BANKS][XTI_WARP];
    int have[BANKS] = {0}, most = 0;
    for (int l = 0; l < n && most <= enough; l++) {
        int bank = word[l] & (banks - 1), i = 0;
        while (i < have[bank] && known[bank][i] != word[l])
            i++;
        known[bank][i] = word[l];
        have[bank] += i == have[bank];
        most = have[bank] > most ? have[bank] : most;
    }
    return most;
}

/* Lanes that go together: 64-bit requests are served a half warp at a time, 128-bit ones a quarter warp. */
static int together_of(int bytes) { return bytes < WORD ? XTI_WARP : LINE / bytes; }

static int groups_of(const struct xti_request *r, int bytes)
{
    return (r->lanes + together_of(bytes) - 1) / together_of(bytes);
}

/* Their words begin at multiples of their bytes, and take so many banks side by side. More than `enough`: at
 * least so many. */
static int count_waves(const struct xti_box *b, const struct xti_request *r, int64_t base, int bytes,
                       int enough)
{
    int together = together_of(bytes), shift = xti_log2(LINE / together), waves = 0;
    uint16_t at[XTI_WARP];
    list_places(b, r, base, at);
    for (int l = 0; l < XTI_WARP; l++)
        at[l] = (uint16_t)(at[l] >> shift);
    for (int first = 0; first < r->lanes && waves <= enough; first += together) {
        int n = r->lanes - first < together ? r->lanes - first : together;
        uint32_t met = 0, again = 0;
        for (int l = first; l < first + n; l++) {
            uint32_t bank = UINT32_C(1) << (at[l] & (together - 1));
            again |= met & bank;
            met |= bank;
        }
        waves += again ? most_in_a_bank(at + first, n, together, enough - waves) : 1;
    }
    return waves;
}

struct xti_box_waves xti_waves_count(const struct xti_box *b, int unit, struct xti_probes *p, double most)
{
    struct xti_box_waves w = {0, 0};
    double chunks = (double)(b->rows * b->chunks) / p->chunk_lanes * (16 / b->store_bytes),
           words = (double)(b->outs / b->group * b->vectors) / p->unit_lanes * (b->word / unit);
    int64_t base = base_of(b);
    int bytes[] = {unit * b->group, b->store_bytes};
    for (int i = 0; i < p->n; i++) {
        const struct xti_request *r = &p->request[i];
        w.ideal += (r->chunks ? chunks : words) * groups_of(r, bytes[r->chunks]);
    }
    w.taken = w.ideal;
    for (int k = 0; k < p->n && w.taken <= most; k++) {
        int i = (p->first + k) % p->n;
        const struct xti_request *r = &p->request[i];
        double each = r->chunks ? chunks : words, left = (most - w.taken) / each;
        int groups = groups_of(r, bytes[r->chunks]),
            enough = left < MOST_WAVES ? (int)left + groups + 1 : INT_MAX;
        w.taken += each * (count_waves(b, r, r->chunks ? 0 : base, bytes[r->chunks], enough) - groups);
        if (w.taken > most)
            p->first = i;
    }
    return w;
}

struct xti_box_waves xti_box_count_waves(const struct xti_box *b, int unit)
{
    struct xti_probes p;
    xti_waves_ask(b, unit, true, &p);
    return xti_waves_count(b, unit, &p, INFINITY);
}

int xti_waves_of_words(const struct xti_box *b, int unit, int each, int enough, int *ideal)
{
    int waves = 0, units = b->word / unit, bytes = unit * b->group;
    *ideal = 0;
    for (int i = 0; i < XTI_PROBES * each && waves <= enough; i++) {
        int w = i % XTI_PROBES;
        struct xti_request r;
        ask_for_units(b, unit, true, w * XTI_WARP, (w * 5 + i / XTI_PROBES) % units, &r);
        waves += count_waves(b, &r, base_of(b), bytes, enough - waves);
        *ideal += groups_of(&r, bytes);
    }
    return waves;
}
