/* estimate.c: the seconds that a CPU plan takes: calls, rows, vectors and the lines of traffic.c, each at its
 * price. In: a finished plan. Layer 3. */
#include "plan/estimate.h"

#include "base/num.h"
#include "plan/cost.h"

/* clang-format off */
/* A line in vectors of 64 bytes: of units up to 2 bytes, of wider ones. rows: the kernel goes row by row.
 * whole: it moves no unit alone. Weaves: for each stream but one; mosaics: for each pair of windows. Emerald
 * Rapids, 4 to 32 KiB. */
static const struct {
    double narrow, wide;
    bool rows, whole;
} op[XTI_CPU_OP_COUNT] = {
    [XTI_CPU_BLOCKS]       = {0.2, 0.2, true, true},
    [XTI_CPU_FILL]         = {0.1, 0.1, true, false},
    [XTI_CPU_BROADCAST]    = {0.2, 0.2, true, false},
    [XTI_CPU_REVERSE]      = {0.3, 0.3, true, true},
    [XTI_CPU_STRIDED]      = {2.5, 1.5, true, false},
    [XTI_CPU_MIRROR]       = {1.2, 0.8, true, false},
    [XTI_CPU_TURN]         = {3,   2,   false, true},
    [XTI_CPU_WALK]         = {0,   0,   true, false},
    [XTI_CPU_TRANSPOSE]    = {1.6, 0.9, false, false},
    [XTI_CPU_TILE]         = {5,   4.5, false, true},
    [XTI_CPU_BRAID]        = {0.4, 0.4, true, true},
    [XTI_CPU_GATHER]       = {30,  4,   false, true},
    [XTI_CPU_MOSAIC]       = {1.5, 1.5, false, true},
    [XTI_CPU_INTERLEAVE]   = {0.9, 0.6, false, false},
    [XTI_CPU_DEINTERLEAVE] = {0.9, 0.6, false, false},
};
static const double walked = 2.25; /* times a unit that is left over by vectors: it has lines to itself */
static const double staged = 5; /* a line that is put together in a buffer, and leaves it */
static const double divided_run = 20, guarded_row = 6; /* of the general strategy */
static const double cursor_call = 16; /* a micro-kernel's, where steps go together (cpu/cursor.c) */
/* clang-format on */

/* A kernel's call. */
struct box {
    int64_t rows, cols;
    double calls;
    bool stream;
};

static struct box box_of(const struct xti_step *step)
{
    /* Shorter runs stream as whole lines or not at all (blocks, reverse.c.j2); staged ones: weave.c.j2. */
    enum { SHORT = 256, STAGED = 16 * XTI_LINE };
    struct box b = {.rows = xti_block_of(step, XTI_CUTS_ROW, step->row.n), .calls = 1};
    b.cols = xti_block_of(step, XTI_CUTS_COL, step->col.n);
    for (int i = 0; i < step->n_loops; i++) {
        const struct xti_loop *l = &step->loop[i];
        b.calls *= (double)(l->cuts == XTI_CUTS_NONE ? xti_block_of(step, i, l->n) : l->n);
    }
    bool lines = (b.cols * step->unit | step->row.d) % XTI_LINE == 0;
    bool runs = step->kernel == XTI_CPU_BLOCKS || step->kernel == XTI_CPU_REVERSE;
    int64_t alone = runs ? SHORT : step->kernel == XTI_CPU_DEINTERLEAVE ? STAGED : 0;
    b.stream = step->store.stream && (lines || b.cols * step->unit >= alone);
    return b;
}

/* Units of a call that fill no vector. */
static double alone(const struct xti_step *step, const struct xti_target *t, const struct box *b)
{
    bool square = step->kernel == XTI_CPU_TRANSPOSE;
    int64_t vector = (square ? 16 : XTI_LINE) / step->unit;
    int64_t width = step->kernel == XTI_CPU_MIRROR ? step->param : 1;
    double units = (double)b->rows * (double)b->cols;
    if (t->isa == XTI_ISA_SCALAR || step->kernel == XTI_CPU_WALK)
        return (step->kernel == XTI_CPU_WALK ? walked : 1) * units;
    if (op[step->kernel].whole || (square && b->rows >= vector && b->cols >= vector))
        return 0;
    return (double)(b->rows * width) * (double)(square ? b->cols : b->cols % vector);
}

static double vectors(const struct xti_step *step, const struct xti_target *t)
{
    bool weave = step->kernel == XTI_CPU_INTERLEAVE || step->kernel == XTI_CPU_DEINTERLEAVE;
    int pairs = step->visit.windows / (t->isa == XTI_ISA_AVX512 ? 2 : 1);
    int times = weave ? step->param - 1 : step->kernel == XTI_CPU_MOSAIC ? pairs : 1;
    double line = step->unit <= 2 ? op[step->kernel].narrow : op[step->kernel].wide;
    static const int per_line[XTI_ISA_COUNT] = {[XTI_ISA_AVX2] = 2, [XTI_ISA_AVX512] = 1, [XTI_ISA_NEON] = 4};
    bool picks = step->kernel == XTI_CPU_TILE || step->kernel == XTI_CPU_GATHER;
    line *= picks ? t->machine->prices->picked : t->machine->prices->vector;
    return line * times * per_line[t->isa];
}

/* Rows of the destination that do not all begin with a line. */
static bool ragged(const struct xti_step *step, const struct box *b)
{
    int64_t width = step->stage.serves ? 1 : xti_step_col_bytes(step);
    int64_t all = step->d_byte | b->cols * width | (step->row.n > 1 ? step->row.d : 0);
    for (int i = 0; i < step->n_loops + step->list.row_dims; i++)
        all |= step->loop[i].cuts == XTI_CUTS_NONE ? step->loop[i].d : 0;
    return all % XTI_LINE;
}

static double smaller(double a, double b) { return a < b ? a : b; }
static double larger(double a, double b) { return a > b ? a : b; }

struct work {
    double write;                                                                 /* nanoseconds */
    double fetched[XTI_N_CACHES], stored[XTI_N_CACHES], written, streamed, jumps; /* lines */
    double kept; /* bytes that a cache must have to serve the next run */
};

/* Nanoseconds of a step's kernels. */
static double kernels(const struct xti_plan *p, const struct xti_step *step, const struct xti_prices *price)
{
    struct box b = box_of(step);
    double row = !op[step->kernel].rows ? 0 : b.cols * step->unit < XTI_LINE ? price->short_row : price->row;
    return (step->n_loops > 1 || p->n_steps > 1 ? price->step : 0) +
           b.calls * ((p->assembled ? cursor_call : price->call) + row * (double)b.rows +
                      price->unit * alone(step, &p->target, &b)) +
           vectors(step, &p->target) * (double)step->bytes / XTI_LINE;
}

static void add_step(const struct xti_plan *p, const struct xti_step *step, const struct xti_prices *price,
                     struct work *sum)
{
    enum { TWICE = 2 };
    struct box b = box_of(step);
    struct xti_step_traffic t;
    bool reads = p->map.piece[step->piece].src >= 0, tile = step->kernel == XTI_CPU_TILE;
    /* Tiles of a transpose write such rows' lines in two parts. */
    double parts = step->kernel == XTI_CPU_TRANSPOSE && step->row.d % XTI_LINE ? TWICE : 1;
    xti_step_traffic_of(step, &p->target, b.stream, &t);
    for (int c = 0; c < XTI_N_CACHES; c++) {
        sum->fetched[c] += reads ? t.fetched[c] : 0;
        sum->stored[c] += b.stream ? 0 : parts * t.stored[c];
    }
    *(b.stream ? &sum->streamed : &sum->written) += t.destination;
    /* Of rows that tiles cut, all parts but the first and the last leave as lines. */
    if (b.stream && (op[step->kernel].rows || tile) && ragged(step, &b))
        sum->write += TWICE * b.calls * (double)b.rows * price->split *
                      (tile ? (double)b.cols / (double)step->col.n : 1);
    sum->jumps += t.jumps;
    sum->kept += XTI_LINE * ((reads ? t.source : 0) + (b.stream ? 0 : t.destination));
}

/* Lines of the source, of a joint plan those that are fetched for its parts. Each run that is fetched begins
 * somewhere else. */
static void add_source(const struct xti_plan *p, const struct xti_step *step,
                       const struct xti_step_traffic *t, struct work *sum)
{
    double lines = t->fetched[2], groups = 1;
    for (int i = 0; i < step->stage.group; i++)
        groups *= (double)step->loop[i].n;
    for (int k = 0; k < step->stage.blocks->n_parts; k++) {
        const struct xti_runs *in = &step->stage.blocks->part[k].in;
        double runs = groups * (double)in->n_runs;
        sum->jumps += runs;
        if (p->joint.n)
            lines = (k ? lines : 0) + runs * ((double)in->bytes / XTI_LINE + 1);
    }
    for (int c = 0; c < XTI_N_CACHES; c++)
        sum->fetched[c] += p->joint.n ? lines : t->fetched[c];
    sum->kept += XTI_LINE * (p->joint.n ? lines : t->source);
}

/* Blocks are put together in the first cache, part by part, and read there when they are streamed. */
static double buffered_kernels(const struct xti_plan *p, const struct xti_step *step,
                               const struct xti_prices *price)
{
    if (!step->stage.blocks)
        return staged * (double)step->bytes / XTI_LINE;
    const struct xti_block *block = &step->stage.blocks->block[0][0];
    double runs = (double)step->bytes / (double)block->out.bytes, inner = 0;
    for (int k = 0; k < step->stage.blocks->n_parts; k++)
        inner += kernels(p, &block->inner[k].step, price);
    return runs / (double)block->out.n_runs * (price->step + inner) + runs * price->call +
           staged * (double)step->bytes / XTI_LINE;
}

static void add_buffered(const struct xti_plan *p, const struct xti_step *step,
                         const struct xti_prices *price, struct work *sum)
{
    int64_t run = step->stage.blocks->block[0][0].out.bytes;
    struct box whole = {.cols = run, .rows = 1};
    struct xti_step_traffic t;
    xti_step_traffic_of(step, &p->target, true, &t);
    add_source(p, step, &t, sum);
    sum->streamed += t.destination;
    if (ragged(step, &whole))
        sum->write += 2 * (double)step->bytes / (double)run * price->split;
}

/* Runs along the innermost dim on which no div changes its quotient. */
static double general_runs(const struct xti_piece *x)
{
    double inner = x->n_dims ? (double)x->dim[x->n_dims - 1].n : 1, length = inner;
    for (int i = 0; i < x->n_divs && x->n_dims; i++) {
        double by = (double)xti_abs64(x->div[i].x[x->n_dims - 1]);
        double keep = by > 0 ? (double)x->div[i].den / by : inner;
        length = keep < length ? keep : length;
    }
    return (double)xti_piece_numel(x) / (length > 1 ? length : 1);
}

/* Guards leave a part of each piece's box, of which nothing is known but that all of them write no more. */
static void add_general(const struct xti_plan *p, const struct xti_step *step, struct work *sum)
{
    const struct xti_piece *x = &p->map.piece[step->piece];
    double box = (double)step->bytes / XTI_LINE;
    double lines = smaller(box, (double)p->bytes_written / XTI_LINE / p->n_steps);
    double stored = step->store.stream ? 0 : lines;
    for (int c = 0; c < XTI_N_CACHES; c++) {
        sum->fetched[c] += x->src < 0 ? 0 : box; /* prefetches run past the guards */
        sum->stored[c] += stored;
    }
    *(step->store.stream ? &sum->streamed : &sum->written) += lines;
    sum->kept += XTI_LINE * ((x->src < 0 ? 0 : lines) + stored);
}

/* What all sources together can have. */
static double source_lines(const struct xti_map *m)
{
    double n = 0;
    for (int i = 0; i < m->n_srcs; i++)
        if (m->src_hi[i] >= m->src_lo[i])
            n += (double)(m->src_hi[i] - m->src_lo[i] + 1) * m->esize / XTI_LINE + 1;
    return n;
}

/* The part of so many bytes that a cache no longer has when the next run asks for it. */
static double missed(const struct xti_target *t, int cache, double bytes)
{
    const double size[XTI_N_CACHES] = {(double)t->l1_bytes, (double)t->l2_bytes,
                                       (double)t->l3_bytes * t->machine->prices->share};
    return larger(0, smaller(1, (bytes / size[cache] - 0.6) / 0.8));
}

/* Seconds that the lines take; some threads use up the memory's bandwidth. */
static double memory(const struct xti_plan *p, const struct work *w)
{
    const struct xti_prices *price = p->target.machine->prices;
    double threads = smaller(xti_plan_threads(p->target.threads, p->bytes_written), price->full);
    double read = 0, write = w->write + w->streamed * price->stream;
    for (int c = 0; c < XTI_N_CACHES; c++) {
        double now = missed(&p->target, c, w->kept);
        read += now * (w->fetched[c] * price->fetch[c] + (c == 1 ? w->jumps * price->jump : 0));
        write += now * w->stored[c] * price->store[c];
    }
    return 1e-9 / threads * (larger(read, write) + price->together * smaller(read, write));
}

double xti_plan_least(const struct xti_plan *p, bool stream)
{
    double read = (double)p->bytes_read / XTI_LINE, written = (double)p->bytes_written / XTI_LINE;
    double stored = stream ? 0 : written;
    return memory(p, &(struct work){.fetched = {read, read, read},
                                    .stored = {stored, stored, stored},
                                    .streamed = written - stored,
                                    .kept = XTI_LINE * (read + written)});
}

double xti_plan_kernels(const struct xti_plan *p, int first, int end)
{
    const struct xti_prices *price = p->target.machine->prices;
    double ns = 0;
    for (const struct xti_step *step = p->step + first; step < p->step + end; step++) {
        const struct xti_piece *x = &p->map.piece[step->piece];
        double each = x->n_divs ? divided_run : guarded_row;
        ns += step->general        ? each * general_runs(x)
              : step->stage.serves ? buffered_kernels(p, step, price)
                                   : kernels(p, step, price);
    }
    return 1e-9 * ns / xti_plan_threads(p->target.threads, p->bytes_written);
}

void xti_plan_estimate(const struct xti_plan *p, struct xti_estimate *e)
{
    const struct xti_prices *price = p->target.machine->prices;
    struct work w = {0};
    for (int i = 0; i < p->n_steps; i++) {
        if (p->step[i].general)
            add_general(p, &p->step[i], &w);
        else if (p->step[i].stage.serves)
            add_buffered(p, &p->step[i], price, &w);
        else
            add_step(p, &p->step[i], price, &w);
    }
    if (p->assembled) { /* whatever the steps store goes through a buffer */
        w.streamed = (double)p->bytes_written / XTI_LINE;
        w.written = 0;
        for (int c = 0; c < XTI_N_CACHES; c++)
            w.stored[c] = 0;
    }
    w.fetched[2] =
        smaller(w.fetched[2], source_lines(&p->map)); /* pieces that share lines run slab by slab */
    double core = xti_plan_kernels(p, 0, p->n_steps), lines = memory(p, &w);
    bool shared = xti_plan_threads(p->target.threads, p->bytes_written) > 1;
    *e = (struct xti_estimate){
        .lines_read = w.fetched[2],
        .lines_owned = w.written,
        .lines_written = w.written + w.streamed,
        .seconds = 1e-9 * (price->run + (shared ? price->thread : 0)) + larger(core, lines) +
                   price->beside * smaller(core, lines),
    };
}
