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
    SLOTS = 256, /* for 64 words each: all of 4 bytes and more whose address has 16 bits */
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

/* The digits of a number, fastest first: how many values, of which dim, times what. Numbers and values are
 * less than 2^16. */
struct digits {
    int n, dim[XTI_CUDA_BOX_DIMS];
    uint16_t points[XTI_CUDA_BOX_DIMS], times[XTI_CUDA_BOX_DIMS];
};

static void list_digits(const struct xti_box *b, enum xti_box_of f, struct digits *d)
{
    const struct xti_box_dim *order[XTI_CUDA_BOX_DIMS];
    d->n = xti_box_digits(b, f, order);
    for (int k = 0; k < d->n; k++) {
        d->dim[k] = (int)(order[k] - b->dim);
        d->points[k] = (uint16_t)xti_box_points(b, f, order[k], k);
        d->times[k] = f == XTI_BOX_RUN && !k ? (uint16_t)b->group : 1;
    }
}

/* Of each lane's number. A number and a half is no multiple of `by`, and further from one than what a float's
 * quotient is off by. */
static void divide(uint16_t *restrict number, int64_t by, uint16_t *restrict rest)
{
    uint16_t divisor = (uint16_t)by;
    float inverse = 1 / (float)by;
    for (int l = 0; l < XTI_WARP; l++) {
        uint16_t quotient = (uint16_t)(int32_t)(((float)number[l] + 0.5F) * inverse);
        rest[l] = (uint16_t)(number[l] - quotient * divisor);
        number[l] = quotient;
    }
}

static bool is_nothing(const uint16_t *number)
{
    uint16_t any = 0;
    for (int l = 0; l < XTI_WARP; l++)
        any |= number[l];
    return !any;
}

/* Of each lane's number; the last digit has no end. */
static void put_digits(const struct digits *d, uint16_t *number, struct xti_request *r)
{
    for (int k = 0; k < d->n; k++)
        r->used &= ~(UINT32_C(1) << d->dim[k]);
    for (int k = 0; k < d->n && (!k || !is_nothing(number)); k++) {
        uint16_t *point = r->point[d->dim[k]];
        r->used |= UINT32_C(1) << d->dim[k];
        if (k + 1 < d->n)
            divide(number, d->points[k], point);
        else
            memcpy(point, number, XTI_WARP * sizeof *point);
        for (int l = 0; l < XTI_WARP && d->times[k] > 1; l++)
            point[l] = (uint16_t)(point[l] * d->times[k]);
    }
}

static void count_from(int64_t first, uint16_t *number)
{
    for (int l = 0; l < XTI_WARP; l++)
        number[l] = (uint16_t)(first + l);
}

/* Units that lanes' runs begin within a first word of `of` units: by the strides, or as if all that are no
 * multiples of that were odd: then all these share a layout, and a kernel. Of runs that go from row to row
 * not by 1: units of neighbouring runs would meet in no bank, as with most others they do. */
static void list_within(const struct xti_box *b, bool known, const struct xti_request *r, int64_t of,
                        uint32_t within[XTI_WARP])
{
    int64_t odd = b->n_b == 1 && xti_box_is_row(&b->dim[0]) ? 3 : 1;
    memset(within, 0, XTI_WARP * sizeof *within);
    for (int j = 0; j < b->n; j++) {
        uint32_t each = (uint32_t)(known ? b->dim[j].d % of : odd);
        if (b->dim[j].in_b || b->dim[j].d % of == 0 || !(r->used >> j & 1))
            continue;
        for (int l = 0; l < XTI_WARP; l++)
            within[l] += each * r->point[j][l];
    }
    for (int l = 0; l < XTI_WARP; l++)
        within[l] &= (uint32_t)of - 1;
}

static int lanes_below(int64_t most, int64_t first)
{
    return most <= first ? 0 : most - first < XTI_WARP ? (int)(most - first) : XTI_WARP;
}

static void ask_for_chunks(const struct xti_box *b, int64_t first, struct xti_request *r)
{
    struct digits row;
    uint16_t number[XTI_WARP];
    int64_t all = b->rows * b->chunks;
    list_digits(b, XTI_BOX_ROW, &row);
    r->chunks = true;
    r->used = 0;
    r->lanes = lanes_below(all < b->row_active ? all : b->row_active, first);
    count_from(first, number);
    divide(number, b->chunks, r->more);
    for (int l = 0; l < XTI_WARP; l++)
        r->more[l] = (uint16_t)(r->more[l] * 16);
    put_digits(&row, number, r);
}

/* Which run each lane's word is of, and which point of it its first unit. known: by the strides. */
static void ask_for_runs(const struct xti_box *b, int unit, bool known, int64_t first, struct xti_request *r)
{
    const struct xti_box_dim *last = &b->dim[b->n_b - 1];
    struct digits run;
    uint16_t turn[XTI_WARP], out[XTI_WARP], lane[XTI_WARP];
    uint32_t within[XTI_WARP];
    int64_t outs = b->outs / b->group, back = last->back * last->d,
            most = outs * (b->grid ? b->lanes : b->vectors); /* runs that go along together */
    list_digits(b, XTI_BOX_RUN, &run);
    memset(r->more, 0, sizeof r->more);
    r->chunks = false;
    r->used = 0;
    r->lanes = lanes_below(most < b->steps.active ? most : b->steps.active, first);
    count_from(first, turn);
    divide(turn, b->lanes, lane);
    divide(turn, outs, out);
    for (int l = 0; l < XTI_WARP; l++)
        r->first[l] = (int32_t)((lane[l] + turn[l] * b->lanes) * (b->word / unit));
    put_digits(&run, out, r);
    if (b->grid) /* not the first sector, of which few lanes have a unit */
        back = b->vectors > b->lanes ? b->lanes : 0;
    else if (b->destination_aligned)
        return;
    list_within(b, known, r, (b->grid ? b->grid : b->share) / unit, within);
    for (int l = 0; l < XTI_WARP; l++)
        r->first[l] += (int32_t)back - (int32_t)within[l];
}

/* The unit of its word that each thread from `first` on gathers k-th. */
static void list_units(int units, const struct xti_box_stagger *g, int first, int k, uint16_t unit[XTI_WARP])
{
    uint16_t each = (uint16_t)(g->quarters ? g->step * (units / g->quarters) : 0),
             most = (uint16_t)(units - 1);
    for (int l = 0; l < XTI_WARP; l++)
        unit[l] = (uint16_t)(k + ((first + l) >> g->lanes) * each) & most;
}

/* The k-th unit of each lane's word. */
static void ask_for_units(const struct digits *points, int units, const struct xti_box_stagger *g, int first,
                          int k, struct xti_request *r)
{
    uint16_t number[XTI_WARP];
    list_units(units, g, first, k, number);
    for (int l = 0; l < XTI_WARP; l++) {
        int32_t point = r->first[l] + number[l];
        number[l] = (uint16_t)(point < 0 ? 0 : point);
    }
    put_digits(points, number, r);
}

/* Of the k-th unit that is looked at in a warp. */
static int unit_of_probe(int w, int k, int units) { return (w * 5 + k) % units; }

void xti_waves_ask(const struct xti_box *b, int unit, bool known, struct xti_probes *p)
{
    int units = b->word / unit;
    struct digits points;
    list_digits(b, XTI_BOX_POINT, &points);
    p->n = p->first = p->chunk_lanes = p->unit_lanes = 0;
    for (int w = 0; w < XTI_PROBES; w++) {
        struct xti_request *r = &p->request[p->n];
        ask_for_runs(b, unit, known, w * XTI_WARP, r);
        ask_for_units(&points, units, &b->stagger, w * XTI_WARP, unit_of_probe(w, 0, units), r);
        p->unit_lanes += r->lanes;
        p->n += r->lanes > 0;
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
                        uint16_t *restrict at)
{
    uint16_t kept = r->chunks && b->shifts == 2 ? 0xfff0 : 0xffff;
    for (int l = 0; l < XTI_WARP; l++)
        at[l] = (uint16_t)base;
    for (int j = 0; j < b->n; j++) {
        uint16_t bytes = (uint16_t)b->dim[j].shared;
        if (!(r->used >> j & 1))
            continue;
        for (int l = 0; l < XTI_WARP; l++)
            at[l] = (uint16_t)(at[l] + r->point[j][l] * bytes);
    }
    if (b->dim[0].skew && r->used & 1)
        for (int l = 0; l < XTI_WARP; l++)
            at[l] = (uint16_t)(at[l] + (r->point[0][l] >> b->dim[0].skew) * b->dim[0].skew_bytes);
    for (int l = 0; l < XTI_WARP; l++)
        at[l] = (uint16_t)((at[l] & kept) + r->more[l]);
    if (b->spread)
        for (int l = 0; l < XTI_WARP; l++)
            at[l] = (uint16_t)(at[l] + (at[l] >> b->every) * b->spread);
}

/* Lanes that go together: 64-bit requests are served a half warp at a time, 128-bit ones a quarter warp. */
static int together_of(int bytes) { return bytes < WORD ? XTI_WARP : LINE / bytes; }

static int groups_of(const struct xti_request *r, int bytes)
{
    return (r->lanes + together_of(bytes) - 1) / together_of(bytes);
}

/* The largest number of different words in one bank. Of a word that was met bit word / SLOTS of slot
 * word % SLOTS is set; slots of no word are never looked at. */
static int most_in_a_bank(const uint16_t *word, int n, int banks)
{
    uint64_t met[SLOTS];
    uint8_t have[BANKS] = {0};
    int most = 0;
    for (int l = 0; l < n; l++)
        met[word[l] % SLOTS] = 0;
    for (int l = 0; l < n; l++) {
        uint64_t *slot = &met[word[l] % SLOTS], was = *slot;
        int bank = word[l] & (banks - 1);
        *slot |= UINT64_C(1) << word[l] / SLOTS;
        have[bank] = (uint8_t)(have[bank] + (*slot != was));
        most = have[bank] > most ? have[bank] : most;
    }
    return most;
}

/* So many lanes at a time. */
static int count_words(const uint16_t *word, int lanes, int together, int enough)
{
    int waves = 0;
    for (int first = 0; first < lanes && waves <= enough; first += together) {
        int n = lanes - first < together ? lanes - first : together;
        waves += most_in_a_bank(word + first, n, together);
    }
    return waves;
}

/* The words that lanes ask for, which begin at multiples of their bytes, and take so many banks. */
static void list_words(const struct xti_box *b, const struct xti_request *r, int64_t base, int bytes,
                       uint16_t word[XTI_WARP])
{
    int shift = xti_log2(LINE / together_of(bytes));
    list_places(b, r, base, word);
    for (int l = 0; l < XTI_WARP; l++)
        word[l] = (uint16_t)(word[l] >> shift);
}

double xti_waves_ideal(const struct xti_box *b, int unit, struct xti_probes *p)
{
    int groups[2] = {0, 0};
    p->bytes[false] = unit * b->group;
    p->each[false] = (double)(b->outs / b->group * b->vectors) / p->unit_lanes * (b->word / unit);
    p->bytes[true] = b->store_bytes;
    p->each[true] = (double)(b->rows * b->chunks) / p->chunk_lanes * (16 / b->store_bytes);
    for (int i = 0; i < p->n; i++) {
        bool chunks = p->request[i].chunks;
        groups[chunks] += groups_of(&p->request[i], p->bytes[chunks]);
    }
    return p->each[0] * groups[0] + p->each[1] * groups[1];
}

double xti_waves_count(const struct xti_box *b, struct xti_probes *p, double ideal, double most)
{
    double taken = ideal;
    int64_t base = base_of(b);
    int more[2] = {0, 0};
    for (int k = 0; k < p->n && taken <= most; k++) {
        int i = (p->first + k) % p->n;
        const struct xti_request *r = &p->request[i];
        double left = (most - taken) / p->each[r->chunks];
        int bytes = p->bytes[r->chunks], groups = groups_of(r, bytes),
            enough = left < MOST_WAVES ? (int)left + groups + 1 : INT_MAX;
        uint16_t word[XTI_WARP];
        list_words(b, r, r->chunks ? 0 : base, bytes, word);
        more[r->chunks] += count_words(word, r->lanes, together_of(bytes), enough) - groups;
        taken = ideal + p->each[0] * more[0] + p->each[1] * more[1]; /* the same in any order */
        if (taken > most)
            p->first = i;
    }
    return taken;
}

struct xti_box_waves xti_box_count_waves(const struct xti_box *b, int unit)
{
    struct xti_probes p;
    xti_waves_ask(b, unit, true, &p);
    double ideal = xti_waves_ideal(b, unit, &p);
    return (struct xti_box_waves){xti_waves_count(b, &p, ideal, INFINITY), ideal};
}

int xti_waves_of_turns(const struct xti_places *p, const struct xti_box_stagger *g, int enough)
{
    int waves = 0;
    for (int i = 0; i < p->n && waves <= enough; i++) {
        int w = p->look[i].probe, n = p->lanes[w], times = p->look[i].times;
        uint16_t word[XTI_WARP], unit[XTI_WARP];
        list_units(p->units, g, w * XTI_WARP, p->look[i].unit, unit);
        for (int l = 0; l < n; l++)
            word[l] = p->word[w][unit[l]][l];
        waves += times * count_words(word, n, p->together, (enough - waves) / times);
    }
    return waves;
}

/* Do the words of unit k, and of those that turns lead to from it, lie all as far from those of unit `from`?
 * Then they meet in as many banks. */
static bool goes_on(const struct xti_places *p, int w, int from, int k, int quarter)
{
    uint16_t apart = (uint16_t)(p->word[w][k][0] - p->word[w][from][0]), differ = 0;
    for (int j = 0; j < p->units && !differ; j += quarter) {
        const uint16_t *a = p->word[w][(from + j) % p->units], *b = p->word[w][(k + j) % p->units];
        for (int l = 0; l < XTI_WARP; l++)
            differ |= (uint16_t)(b[l] - a[l]) ^ apart;
    }
    return !differ;
}

void xti_waves_place(const struct xti_box *b, int unit, int each, struct xti_places *p)
{
    static const struct xti_box_stagger none = {0, 0, 0};
    int bytes = unit * b->group, units = p->units = b->word / unit, quarter = (units + 3) / 4,
        step = each > 1 ? 1 : quarter; /* all units, or those that turns lead to from one */
    struct digits points;
    p->together = together_of(bytes);
    p->n = p->ideal = 0;
    list_digits(b, XTI_BOX_POINT, &points);
    for (int w = 0; w < XTI_PROBES; w++) {
        struct xti_request r;
        ask_for_runs(b, unit, true, w * XTI_WARP, &r);
        p->lanes[w] = r.lanes;
        p->ideal += each * groups_of(&r, bytes);
        for (int i = 0; i < units; i += step) {
            int k = unit_of_probe(w, i, units);
            ask_for_units(&points, units, &none, w * XTI_WARP, k, &r);
            list_words(b, &r, base_of(b), bytes, p->word[w][k]);
        }
        for (int i = 0; i < each; i++) {
            int k = unit_of_probe(w, i, units);
            if (i && goes_on(p, w, p->look[p->n - 1].unit, k, quarter))
                p->look[p->n - 1].times++;
            else
                p->look[p->n++] = (struct xti_look){w, k, 1};
        }
    }
    p->without = xti_waves_of_turns(p, &none, INT_MAX);
}
