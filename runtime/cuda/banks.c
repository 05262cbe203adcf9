/* banks.c: where the rows of a box lie in shared memory, and which lanes of a warp go together, so that they
 * meet in no bank: see box.h. Some ways to keep rows apart are tried, and their wavefronts counted (waves.h).
 * Layer 4. */
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "cuda/waves.h"

enum {
    LINE = 128,
    SECTOR = 32,
    SHARED_BYTES = 48 << 10,
    LEAST_RUNS = 4,
    FEW_WORDS = 2,
    OFTEN = 3,
    MOST_LANES = 8,
    MOST_LAYOUTS = 96,
    TABLE_BYTES = 8 << 10,
    ROW_BITS = 24, /* strides of the source's run are smaller */
    KNOWN_LAYOUTS = 128
};

/* What twice as many wavefronts as there need to be count where a processor has time for them. */
static const double CONFLICTS = 0.4;
/* Wavefronts of words where threads take turns, over those where they do not: less is worth the eight
 * selections of each word (bench/notes/h200.md: of all that is counted wavefronts come next to sectors). */
static const double WORTH_TURNS = 0.75;

static int64_t spread(const struct xti_box *b, int64_t at)
{
    return b->spread ? at + (at >> b->every) * b->spread : at;
}

/* ---- steps */

/* Does the place of i + j * step lie as far from that of i as the place of j * step from 0, for all i < step?
 * grain: then the digits that change do so by multiples of it; 0: there are none. */
static bool is_additive(const struct xti_box *b, enum xti_box_of f, int64_t step, int64_t *grain)
{
    const struct xti_box_dim *order[XTI_CUDA_BOX_DIMS];
    int n = xti_box_digits(b, f, order);
    *grain = 0;
    for (int k = 0; k < n; k++) {
        int64_t points = xti_box_points(b, f, order[k], k);
        int64_t skew = order[k]->skew && f != XTI_BOX_RUN ? INT64_C(1) << order[k]->skew : 1;
        *grain = k + 1 == n ? step : 1;
        if (k + 1 == n || points % step == 0)
            return step % skew == 0;
        if (step % points)
            return false;
        step /= points;
    }
    return true;
}

/* So many threads are worth it where one's places follow from its first ones. */
static bool enough(int64_t threads) { return 8 * threads >= 5 * XTI_CUDA_THREADS; }

/* Bytes that all runs begin at multiples of, but for where the first one does. */
static int64_t run_align(const struct xti_box *b, int unit)
{
    return b->destination_align >= XTI_BOX_MOST_WORD ? XTI_BOX_MOST_WORD : unit;
}

/* By whole runs. */
static bool step_by_runs(const struct xti_box *b, int unit, struct xti_box_steps *s)
{
    int64_t outs = b->outs / b->group, most = XTI_CUDA_THREADS / b->lanes, grain;
    for (int64_t r = most; enough(r * b->lanes); r--) {
        if ((b->vectors != b->lanes && outs % r) || !is_additive(b, XTI_BOX_RUN, r, &grain))
            continue;
        bool still = grain * run_align(b, unit) % b->share == 0 || b->destination_aligned;
        *s = (struct xti_box_steps){r * b->lanes, r, 0, still};
        return true;
    }
    return false;
}

/* Along the runs, of which lanes that go together meet all. */
static bool step_by_points(const struct xti_box *b, int unit, struct xti_box_steps *s)
{
    int64_t outs = b->outs / b->group, together = outs > 1 ? outs * b->lanes : 1, grain;
    if (!b->destination_aligned && b->dim[0].skew)
        return false; /* points before a window are not as far apart as others */
    for (int64_t a = XTI_CUDA_THREADS / together * together; enough(a); a -= together) {
        int64_t step = a / outs * (b->word / unit);
        if (!is_additive(b, XTI_BOX_POINT, step, &grain) || (!b->destination_aligned && grain == 1))
            continue; /* points before a window would carry */
        *s = (struct xti_box_steps){a, 0, step, true};
        return true;
    }
    return false;
}

/* From row to row. */
static void step_by_rows(struct xti_box *b, int unit)
{
    int64_t parts = (b->chunks + XTI_CUDA_THREADS - 1) / XTI_CUDA_THREADS,
            part = (b->chunks + parts - 1) / parts, grain = 0, r = XTI_CUDA_THREADS / part;
    while (r && !is_additive(b, XTI_BOX_ROW, r, &grain))
        r--;
    bool serves = b->rows > 1 && enough(r * part);
    b->row_step = serves ? r : 0;
    b->row_active = serves ? r * part : XTI_CUDA_THREADS;
    b->row_parts = serves ? parts : 1;
    b->row_still = b->shifts < 2 || grain * unit % 16 == 0;
}

static void choose_steps(struct xti_box *b, int unit)
{
    b->stepped = b->lanes;
    step_by_rows(b, unit);
    b->steps = (struct xti_box_steps){XTI_CUDA_THREADS, 0, 0, false};
    if (!b->grid && !step_by_points(b, unit, &b->steps))
        step_by_runs(b, unit, &b->steps);
}

/* ---- layouts */

/* Times `grain` bytes of nothing: behind each row; after as many rows as make a word of the destination;
 * behind dim `after` of the rows. And the spread. Bytes, without padding: layouts are compared at once. */
struct layout {
    uint8_t row, word, after, dim, every, spread, grain;
};

/* A run has one dim, or a word is a box of the first dims of the run: p a multiple of them goes by. */
static bool is_constant(const struct xti_box *b, int unit)
{
    int64_t units = b->word / unit;
    if (!b->destination_aligned)
        return b->even || (b->n_b == 1 && !b->dim[0].skew);
    for (int j = 0; j < b->n_b; j++) {
        int64_t n = b->dim[j].t;
        if (n % units == 0 || j + 1 == b->n_b)
            return b->dim[j].skew == 0 || n % units == 0;
        if (units % n)
            return false;
        units /= n;
    }
    return true;
}

/* Are a word's units as far apart as without the spread, or by whole stretches of 2^every bytes? For some
 * power of two `whole` other digits go by multiples of it or, together with the units', stay below it. */
static bool stays_together(const struct xti_box *b, int unit)
{
    const struct xti_box_dim *order[XTI_CUDA_BOX_DIMS];
    int64_t units = b->word / unit, stretch = INT64_C(1) << b->every,
            low = unit * b->group - 1 + (b->shifts ? 15 : 0), step[XTI_CUDA_BOX_DIMS], all[XTI_CUDA_BOX_DIMS];
    if (!b->constant || !b->destination_aligned || b->shifts == 2)
        return false;
    bool runs = xti_box_digits(b, XTI_BOX_RUN, order) > 0, fits = false;
    for (int j = 0; j < b->n; j++) {
        const struct xti_box_dim *d = &b->dim[j];
        int64_t points = xti_box_read_points(d), goes = runs && d == order[0] ? b->group : 1;
        goes = !d->in_b ? goes : units < points ? units : points;
        if (points % goes || (d->in_a && d->s < 0))
            return false;
        step[j] = d->shared * goes + (d->skew ? d->skew_bytes : 0);
        all[j] = (points / goes - 1) * step[j];
        if (d->in_b) {
            low += d->shared & (stretch - 1) ? (goes - 1) * d->shared : 0;
            units /= goes;
        }
    }
    for (int64_t whole = 1; !fits && whole <= stretch; whole *= 2) {
        int64_t below = low;
        for (int j = 0; j < b->n; j++)
            below += step[j] & (whole - 1) ? all[j] : 0;
        fits = below < whole;
    }
    return fits;
}

/* Do most words of a thread lie as its first one does? */
static bool lie_alike(const struct xti_box *b)
{
    return b->steps.still &&
           (b->steps.point || b->vectors == b->lanes || b->outs / b->group >= OFTEN * b->steps.run);
}

/* Of a word's places: by where its run turns, and by a table. */
static int64_t turn_cost(const struct xti_box *b, int64_t units) { return 3 * units + 10 * b->n_b; }
static int64_t table_cost(int64_t units) { return 5 * units; }

static bool may_turn(const struct xti_box *b, int64_t units)
{
    return !b->constant && !b->dim[0].skew && xti_box_read_points(&b->dim[0]) >= units;
}

/* Where places would be computed again for each word of several runs, they are looked up in a table of two
 * rows for each unit of a word; its columns reach a word beyond the run on both sides. */
static void choose_table(struct xti_box *b, int unit)
{
    const struct xti_box_dim *last = &b->dim[b->n_b - 1];
    int64_t units = b->word / unit, columns = last->d * xti_box_read_points(last) / units + 4,
            bytes = columns * units * 2 * 4;
    bool serves = !b->constant && !lie_alike(b) && b->group == 1 && b->outs >= LEAST_RUNS &&
                  !(may_turn(b, units) && turn_cost(b, units) <= table_cost(units));
    if (b->grid) {
        serves = !b->even;
        columns = last->d * xti_box_read_points(last);
        bytes = columns * 4;
    }
    b->table = serves && bytes <= TABLE_BYTES && b->bytes + bytes <= SHARED_BYTES ? (int)columns : 0;
    b->table_at = (int)b->bytes;
    b->bytes += b->table ? bytes : 0;
    b->turns = !b->table && may_turn(b, units);
    if (b->grid && !b->even && !b->table)
        b->bytes = SHARED_BYTES + 1; /* nothing says where points lie */
}

/* Bytes, less than 16, that rows along a dim begin further within a chunk from point to point. */
static int64_t within_chunk(const struct xti_box_dim *d, int unit)
{
    return (int64_t)((uint64_t)d->s * (uint64_t)unit & 15);
}

/* From point to point of dim j of a run whose points lie evenly. */
static int64_t evenly(const struct xti_box *b, int j)
{
    return b->dim[j - 1].shared * xti_box_read_points(&b->dim[j - 1]);
}

/* A stride that stands for all odd ones. */
static int64_t odd_bytes(int unit) { return 5 * unit & 15; }

/* The rows lie one after another, those of the destination's innermost dims first. A row begins as far within
 * a chunk as in the source: here as if all strides that are no multiples of one were odd. */
static void lay_out(struct xti_box *b, int unit, const struct layout *y)
{
    int64_t units = b->word / unit, at = b->pitch_bytes = 16 * b->chunks + y->grain * y->row;
    int n = 0, skew = b->dim[0].skew;
    bool even = b->line && !(units > 1 && y->word) && !(y->dim && y->after + 1 < b->n_b),
         stepped = b->stepped == b->lanes && b->even == even;
    b->even = even;
    for (int j = 0; j < b->n; j++) {
        struct xti_box_dim *d = &b->dim[j];
        if (!xti_box_is_row(d))
            continue;
        d->ragged = b->shifts == 2 && within_chunk(d, unit);
        bool goes_on = b->even && j && j < b->n_b;
        d->shared = goes_on ? evenly(b, j) : at + (d->ragged ? odd_bytes(unit) : 0);
        d->skew = (int8_t)(j == 0 && units > 1 && y->word ? xti_log2(units) : 0);
        d->skew_bytes = d->skew ? y->grain * y->word : 0;
        at = (at + (d->ragged && !goes_on ? 16 : 0)) * xti_box_read_points(d) +
             (d->skew ? (xti_box_read_points(d) - 1) / units * d->skew_bytes : 0);
        at += n++ == y->after ? y->grain * y->dim : 0;
    }
    b->every = y->every;
    b->spread = y->spread;
    b->store_bytes = y->spread && y->spread < y->grain ? y->spread : y->grain;
    b->bytes = (spread(b, at - 1) + 16) / 16 * 16;
    if (!stepped || b->dim[0].skew != skew) /* steps hang on nothing else */
        choose_steps(b, unit);
    b->constant = is_constant(b, unit);
    b->together = y->spread && stays_together(b, unit);
    b->stagger = (struct xti_box_stagger){0};
    choose_table(b, unit);
}

bool xti_box_fits(const struct xti_box *b, int unit)
{
    struct xti_box close;
    xti_box_copy(&close, b);
    close.lanes = b->vectors;
    lay_out(&close, unit, &(struct layout){.grain = 16});
    return close.bytes <= SHARED_BYTES;
}

/* The i-th way to keep rows apart, those that cost least first; false: there are no more. */
static bool next_layout(int i, int unit, struct layout *y)
{
    static const struct layout known[] = {
        {0, 1, 0, 0, 0, 0, 16}, {0, 0, 0, 0, 0, 0, 16}, {1, 0, 0, 0, 0, 0, 16}, {0, 2, 0, 0, 0, 0, 16},
        {0, 4, 0, 0, 0, 0, 16}, {0, 1, 0, 1, 0, 0, 16}, {0, 2, 0, 2, 0, 0, 16}, {0, 2, 0, 4, 0, 0, 16},
        {0, 1, 0, 2, 0, 0, 16}, {0, 1, 0, 4, 0, 0, 16}, {1, 1, 0, 0, 0, 0, 16}, {1, 2, 0, 0, 0, 0, 16},
        {1, 1, 0, 1, 0, 0, 16}};
    enum { KNOWN = sizeof known / sizeof *known, DIMS = 24, WIDE = 36, NARROW = 10, FINE = 6 };
    *y = (struct layout){.grain = 16};
    if (i < KNOWN) {
        *y = known[i];
    } else if ((i -= KNOWN) < DIMS) {
        y->after = (uint8_t)(i / 2 % 4);
        y->dim = (uint8_t)(1 << i / 8);
        y->row = i % 2;
    } else if ((i -= DIMS) < WIDE) {
        y->every = (uint8_t)(7 + i / 2 % 6);
        y->spread = (uint8_t)(16 << i / 12);
        y->row = i % 2;
    } else if ((i -= WIDE) < NARROW) {
        y->every = (uint8_t)(7 + i / 2);
        y->spread = unit < 8 ? 4 : 8;
        y->row = i % 2;
        return unit < 16;
    } else if ((i -= NARROW) < FINE) {
        y->grain = i < 3 && unit <= 4 ? 4 : 8;
        y->row = i % 3 != 1;
        y->word = i % 3 != 0;
    } else {
        return false;
    }
    return true;
}

/* Those that this box tells apart, in that order: numbers that say nothing of it are 0. */
static int list_layouts(const struct xti_box *b, int unit, struct layout list[MOST_LAYOUTS])
{
    int rows = 0, n = 0;
    for (int j = 0; j < b->n; j++)
        rows += xti_box_is_row(&b->dim[j]);
    bool words = xti_box_is_row(&b->dim[0]) && b->word > unit;
    for (int i = 0; next_layout(i, unit, &list[n]); i++) {
        struct layout *y = &list[n];
        int k = 0;
        y->row = rows ? y->row : 0;
        y->word = words ? y->word : 0;
        y->dim = y->after + 1 < rows ? y->dim : 0;
        y->after = y->dim ? y->after : 0;
        while (memcmp(&list[k], y, sizeof *y))
            k++;
        n += k == n && !(b->grid && (y->every || y->dim)) &&
             (y->grain == 16 || (b->shifts < 2 && y->grain >= unit * b->group));
    }
    return n;
}

/* Of a word of the destination: loads from shared memory, and putting their units together. */
static double gather_instructions(const struct xti_box *b, int unit)
{
    double units = (double)b->word / unit, moved = unit < 4 ? (b->group > 1 ? 3
                                                               : unit == 1  ? 8
                                                                            : 4) *
                                                                  b->word / 4.0
                                                            : units;
    return moved + 2 * b->stagger.quarters + (b->constant ? 0 : units) +
           (b->spread ? 6 * (b->together ? 1 : units) : 0);
}

double xti_box_instructions(const struct xti_box *b, int unit)
{
    double units = (double)b->word / unit, chunks = (double)(b->rows * b->chunks),
           words = (double)(b->outs * b->vectors);
    if (b->grid) { /* of a lane's runs, of their words, once */
        double runs = (double)(b->outs * b->lanes), each = ceil((double)b->vectors / (double)b->lanes);
        return chunks * (b->row_step && b->row_still ? 8 : 14) + runs * (25 + 4 * each) +
               XTI_CUDA_THREADS * 60;
    }
    double begins = b->steps.run || b->steps.point ? fmin(words, XTI_CUDA_THREADS) : words;
    double spreads = (b->spread ? 3 : 0) + 16.0 / b->store_bytes - 1;
    double places = b->constant ? units
                    : b->table  ? (double)table_cost((int64_t)units)
                    : b->turns  ? (double)turn_cost(b, (int64_t)units)
                                : 5 * units * b->n_b;
    double chunk = b->row_step && b->row_still ? 8
                   : b->shifts                 ? 14
                                               : 9,
           word = b->steps.run && b->steps.still && b->vectors == b->lanes ? 3
                  : b->steps.point                                         ? 22
                                                                           : 26;
    return chunks * (chunk + spreads) + words * (word + gather_instructions(b, unit)) + begins * 60 +
           (lie_alike(b) && !b->table ? begins : words) * places + (double)b->table * 2 * units * 30;
}

double xti_much_of(double x) { return x * x * sqrt(x); }

/* So many wavefronts for 16 bytes, and what they count. */
static double waves_price(double waves) { return xti_much_of(9.3 / 16 * waves); }
static double waves_of_price(double price) { return pow(fmax(0, price), 1 / 2.5) * 16 / 9.3; }

/* What the instructions count, of a box or a part of it that makes so many 16 bytes. */
static double work_of(const struct xti_box *b, int unit, double sixteens)
{
    return xti_much_of(xti_box_instructions(b, unit) / sixteens / 132);
}

/* As the estimate of bench/README.md has it: wavefronts and instructions for 16 bytes, either of which may be
 * what a processor has no time for. Where it has time, conflicts count a little. A word that asks for less
 * than a line does so with lines that others ask for. INFINITY: no less than `least`, found without counting
 * all wavefronts. */
static double price(const struct xti_box *b, int unit, struct xti_probes *p, double least, bool *ideal)
{
    double share = b->word / 16.0, sixteens = (double)(b->outs * b->vectors) * share,
           work = work_of(b, unit, sixteens), least_lines = 4 * share,
           lines = b->outs > b->group && b->lanes * b->word < LINE ? 32.0 / (double)b->lanes : least_lines,
           more = (lines - least_lines) / 4 / XTI_WARP / share, most = INFINITY;
    *ideal = false;
    if (work + CONFLICTS >= least)
        return INFINITY;
    double few = xti_waves_ideal(b, unit, p);
    if (least < INFINITY) /* neither they nor their conflicts are less than of the fewest */
        most = 1e-9 * few + fmin(sixteens * (waves_of_price(least - work - CONFLICTS) - more),
                                 few / CONFLICTS * (least - work - waves_price(few / sixteens + more)));
    double taken = xti_waves_count(b, p, few, most);
    if (taken > most)
        return INFINITY;
    *ideal = taken <= few && lines <= least_lines && !b->spread && (b->destination_aligned || b->constant) &&
             (b->steps.run || b->steps.point);
    return waves_price(taken / sixteens + more) + work + CONFLICTS * taken / few;
}

/* Lanes that go along a run before others take the next one: of its words a divisor that asks for whole
 * sectors, and for whole lines where runs begin within a sector. */
static int list_lanes(const struct xti_box *b, int64_t lanes[MOST_LANES])
{
    static const int try[] = {8, 4, 16, 2, 32, 64, 128, 9, 10, 11, 12, 13, 14, 15};
    int n = 0;
    if (b->grid) { /* most threads have a run */
        int64_t l = b->grid / b->word;
        while (l < XTI_CUDA_THREADS && 2 * l * b->outs <= XTI_CUDA_THREADS)
            l *= 2;
        lanes[n++] = l;
        while ((l *= 2) <= XTI_WARP)
            if (b->vectors % l == 0)
                lanes[n++] = l;
        return n;
    }
    int least = (b->destination_aligned && b->destination_align >= SECTOR ? SECTOR : LINE) / b->word;
    for (size_t i = 0; i < sizeof try / sizeof *try && n + 1 < MOST_LANES && b->outs > b->group; i++)
        if (b->vectors % try[i] == 0 && try[i] >= least && try[i] < b->vectors)
            lanes[n++] = try[i];
    lanes[n++] = b->vectors;
    return n;
}

/* What a search finds. */
struct found {
    struct layout y;
    int64_t lanes;
    struct xti_box_stagger stagger;
    double price, time;
};

/* Of n layouts those for b->lanes. True: no other lanes can be better. */
static bool search_layouts(struct xti_box *b, int unit, int n, const struct layout *list, struct found *best)
{
    struct xti_probes p = {0};
    bool ideal = false, even = false;
    for (int i = 0; i < n && !ideal; i++) {
        lay_out(b, unit, &list[i]);
        if (b->bytes > SHARED_BYTES)
            continue;
        if (!p.n || even != b->even)
            xti_waves_ask(b, unit, false, &p);
        even = b->even;
        double cost = price(b, unit, &p, best->price, &ideal);
        if (cost < best->price)
            *best = (struct found){list[i], b->lanes, {0}, cost, INFINITY};
    }
    return ideal;
}

/* Places of a word's units must be known each by itself, and kept from word to word, of which a thread has
 * more than a few: finding the places of turns takes longer than wavefronts do
 * (bench/notes/gpu-simulated.md). */
static bool may_stagger(const struct xti_box *b, int unit)
{
    int64_t units = b->word / unit, words = b->outs / b->group * b->vectors;
    return words > FEW_WORDS * b->steps.active && b->word == 16 && units > 1 && b->steps.still &&
           (!b->turns || units <= 4) && !b->grid && !b->table && !b->spread;
}

/* The i-th way to go through quarters in turn, those that cost least first; false: there are no more. */
static bool next_stagger(int i, int unit, struct xti_box_stagger *g)
{
    static const int step[] = {2, 1, 3};
    enum { LANES = 5 };
    g->quarters = unit < 8 ? 4 : 2;
    g->step = unit < 8 ? step[i / LANES % 3] : 1;
    g->lanes = i % LANES;
    return i < LANES * (unit < 8 ? 3 : 1);
}

/* The best for the strides at hand; the wavefronts of a few words with it. */
static int choose_stagger(const struct xti_places *p, int unit, struct xti_box_stagger *best)
{
    struct xti_box_stagger g;
    int least = p->without;
    *best = (struct xti_box_stagger){unit < 8 ? 4 : 2, 0, 0};
    for (int i = 0; least > p->ideal && next_stagger(i, unit, &g); i++) {
        int waves = xti_waves_of_turns(p, &g, least - 1);
        *best = waves < least ? g : *best;
        least = waves < least ? waves : least;
    }
    return least;
}

static bool strides_are_free(const struct xti_box *b, int unit)
{
    bool free = false;
    for (int j = 0; j < b->n; j++)
        free |= b->dim[j].ragged ||
                (!b->destination_aligned && !b->dim[j].in_b && b->dim[j].d % (b->share / unit));
    return free;
}

/* Strides that stand for any others, of rows and between runs: units, modulo those of a chunk or of a part.
 * False: there are no more. */
static bool next_strides(int i, const struct xti_box *alike, int unit, struct xti_box *b)
{
    static const int8_t strides[][2] = {{1, 1}, {1, 3}, {3, 1}, {3, 3}, {5, 1}, {1, 2}, {3, 2}, {5, 5}};
    int n = strides_are_free(alike, unit) ? (int)(sizeof strides / sizeof *strides) : 1;
    xti_box_copy(b, alike);
    for (int j = 0; j < b->n && i < n; j++) {
        struct xti_box_dim *d = &b->dim[j];
        if (!d->in_b && d->d % (b->share / unit))
            d->d = strides[i][1];
        d->shared += d->ragged ? strides[i][0] * unit % 16 - odd_bytes(unit) : 0;
    }
    for (int j = 1; j < b->n_b && b->even; j++)
        b->dim[j].shared = evenly(b, j);
    return i < n;
}

/* Units of each word that are looked at: all, or one for each of many strides. */
static int units_looked_at(const struct xti_box *b, int unit)
{
    return strides_are_free(b, unit) ? 1 : b->word / unit;
}

/* Are turns worth it for the strides that share a kernel, taken together? */
static bool worth_turns(const struct xti_box *b, int unit)
{
    struct xti_box other;
    struct xti_box_stagger best;
    struct xti_places p;
    int each = units_looked_at(b, unit), with = 0, without = 0, n = 0;
    for (; next_strides(n, b, unit, &other); n++) {
        xti_waves_place(&other, unit, each, &p);
        with += p.ideal;
        without += p.without;
    }
    for (int i = n - 1; i >= 0 && with <= WORTH_TURNS * without; i--) { /* the last ones are placed */
        if (i + 1 < n && next_strides(i, b, unit, &other))
            xti_waves_place(&other, unit, each, &p);
        with += choose_stagger(&p, unit, &best) - p.ideal;
    }
    return with <= WORTH_TURNS * without;
}

static void search_stagger(struct xti_box *b, int unit, struct found *best)
{
    struct xti_box_stagger g;
    struct xti_probes p;
    bool ideal;
    b->lanes = best->lanes;
    lay_out(b, unit, &best->y);
    if (!may_stagger(b, unit) || !worth_turns(b, unit))
        return;
    best->price = INFINITY;
    for (int i = 0; next_stagger(i, unit, &g); i++) {
        b->stagger = g;
        xti_waves_ask(b, unit, false, &p);
        double cost = price(b, unit, &p, best->price, &ideal);
        if (cost < best->price) {
            best->price = cost;
            best->stagger = g;
        }
    }
}

static struct found search(struct xti_box *b, int unit)
{
    struct found best = {.lanes = b->vectors, .price = INFINITY, .time = INFINITY};
    struct layout list[MOST_LAYOUTS];
    int64_t lanes[MOST_LANES];
    bool ideal = false;
    int n = list_lanes(b, lanes), n_layouts = list_layouts(b, unit, list);
    for (int k = 0; k < n && !ideal; k++) {
        b->lanes = lanes[k];
        ideal = search_layouts(b, unit, n_layouts, list, &best);
    }
    if (best.price < INFINITY)
        search_stagger(b, unit, &best);
    return best;
}

/* ---- what was found */

/* Of the strides of rows, and of those between runs, a search sees the order, and whether they are multiples
 * of 16 bytes: boxes that are alike but for them are made one. All numbers are then small. */
static void make_alike(struct xti_box *b, int unit)
{
    int64_t order[XTI_CUDA_BOX_DIMS], units = 16 / unit, part = (b->share > 16 ? b->share : 16) / unit;
    for (int j = 0; j < b->n; j++) {
        order[j] = 0;
        for (int k = 0; k < b->n; k++)
            order[j] += xti_abs64(b->dim[k].s) < xti_abs64(b->dim[j].s);
    }
    for (int j = 0; j < b->n; j++) {
        struct xti_box_dim *d = &b->dim[j];
        if (xti_box_is_row(d))
            d->s = ((order[j] + 1) << ROW_BITS) + (d->s % units != 0);
        if (!d->in_b)
            d->d = d->d % part ? 1 : part;
    }
}

/* All of a box that a search goes by. */
struct facts {
    int n;
    int32_t fact[9 + 7 * XTI_CUDA_BOX_DIMS];
};

static size_t bytes_of(const struct facts *f) { return (size_t)f->n * sizeof *f->fact; }

static void list_facts(const struct xti_box *b, int unit, struct facts *f)
{
    const int64_t whole[] = {unit,
                             b->n,
                             b->n_b + 32 * (b->word + 32 * b->share),
                             b->rows,
                             b->chunks,
                             b->outs,
                             b->vectors,
                             b->group,
                             b->shifts + 4 * b->destination_aligned + 8 * (b->destination_align >= SECTOR) +
                                 16 * b->line + b->grid + 64 * (b->destination_align >= XTI_BOX_MOST_WORD)};
    int n = 0;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        f->fact[n++] = (int32_t)whole[i];
    for (int j = 0; j < b->n; j++) {
        const struct xti_box_dim *d = &b->dim[j];
        const int64_t own[] = {d->s, d->d, d->t, d->back, d->in_a, d->in_b, d->shared};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            f->fact[n++] = (int32_t)own[i];
    }
    f->n = n;
}

/* Lengths of a sequence share a few boxes: of the last ones the layouts are kept. Who cannot have the lock
 * searches: nobody waits, and a forked child is never stuck. */
static struct {
    pthread_mutex_t lock;
    unsigned next;
    uint64_t hash[KNOWN_LAYOUTS]; /* 0: none */
    struct known {
        struct facts facts;
        struct found found;
    } known[KNOWN_LAYOUTS];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool recall(const struct facts *f, uint64_t hash, struct found *found)
{
    bool there = false;
    if (pthread_mutex_trylock(&kept.lock))
        return false;
    for (int i = 0; i < KNOWN_LAYOUTS && !there; i++) {
        const struct known *k = &kept.known[i];
        there = kept.hash[i] == hash && k->facts.n == f->n && !memcmp(k->facts.fact, f->fact, bytes_of(f));
        if (there)
            *found = k->found;
    }
    pthread_mutex_unlock(&kept.lock);
    return there;
}

static void keep(const struct facts *f, uint64_t hash, const struct found *found)
{
    if (pthread_mutex_trylock(&kept.lock))
        return;
    unsigned i = kept.next++ % KNOWN_LAYOUTS;
    struct known *k = &kept.known[i];
    kept.hash[i] = hash;
    k->facts.n = f->n;
    memcpy(k->facts.fact, f->fact, bytes_of(f));
    k->found = *found;
    pthread_mutex_unlock(&kept.lock);
}

static double sixteens_of(const struct xti_box *b, int unit)
{
    double sixteens = unit / 16.0;
    for (int j = 0; j < b->n; j++)
        sixteens *= (double)b->dim[j].t;
    return sixteens;
}

static double time_of(const struct xti_box *b, int unit)
{
    struct xti_probes p;
    xti_waves_ask(b, unit, false, &p);
    double waves = xti_waves_count(b, &p, xti_waves_ideal(b, unit, &p), INFINITY),
           sixteens = sixteens_of(b, unit);
    return waves_price(waves / sixteens) + work_of(b, unit, sixteens);
}

/* The instructions of one that has all that a layout may have. */
double xti_box_least_time(const struct xti_box *b, int unit)
{
    struct xti_box best;
    memcpy(&best, b, offsetof(struct xti_box, dim));
    best.lanes = b->grid ? 1 : b->vectors;
    best.row_step = best.steps.run = 1;
    best.row_still = best.steps.still = best.constant = true;
    best.spread = best.table = 0;
    best.store_bytes = 16;
    best.stagger = (struct xti_box_stagger){0};
    return work_of(&best, unit, sixteens_of(b, unit));
}

double xti_box_lay_out(struct xti_box *b, int unit)
{
    struct xti_box alike;
    struct facts f;
    struct found found;
    xti_box_copy(&alike, b);
    make_alike(&alike, unit);
    list_facts(&alike, unit, &f);
    uint64_t hash = xti_hash64(f.fact, bytes_of(&f)) | 1;
    if (!recall(&f, hash, &found)) {
        found = search(&alike, unit);
        if (found.price < INFINITY) {
            alike.lanes = found.lanes;
            lay_out(&alike, unit, &found.y);
            alike.stagger = found.stagger;
            found.time = time_of(&alike, unit);
        }
        keep(&f, hash, &found);
    }
    b->lanes = found.lanes;
    b->time = found.time;
    lay_out(b, unit, &found.y);
    b->stagger = found.stagger;
    for (int j = 0; j < b->n; j++)
        if (b->even && j && j < b->n_b)
            b->dim[j].shared = evenly(b, j);
        else
            b->dim[j].shared += b->dim[j].ragged ? within_chunk(&b->dim[j], unit) - odd_bytes(unit) : 0;
    if (b->stagger.quarters) { /* numbers, no facts of the structure */
        struct xti_places places;
        xti_waves_place(b, unit, units_looked_at(b, unit), &places);
        choose_stagger(&places, unit, &b->stagger);
    }
    return found.price;
}
