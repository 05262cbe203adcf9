/* block_sample.c: see block_sample.h. A launch is cut into strata of blocks that are alike: the first and the
 * last block of every piece, what is between, in equal ranges with a random block of each. */
#include "support/block_sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cuda/predict.h"
#include "cuda/cuda.h"
#include "cuda/cubin.h"
#include "support/cuda_params.h"
#include "support/inverse.h"
#include "tests/ptx/ptx.h"

/* ---- the plan: all that is known of it here */

struct made {
    struct xti_cuda_plan plan;
    const struct xti_cuda_plan *run; /* this one, or its elem */
    enum xti_cuda_tier tier;
    char name[64], entry[72];
    struct xti_str source;
    struct xti_code code;
    struct cuda_params params;
};

int block_sample_sms(int sm)
{
    return sm >= 120 ? 170 : sm >= 100 ? 148 : sm >= 90 ? 132 : sm >= 86 ? 84 : sm >= 80 ? 108 : 40;
}

static bool make_code(const struct xti_map *m, const struct block_sample_options *opt, struct made *o,
                      struct xti_err *err)
{
    if (xti_cuda_plan_make(m, &opt->target, &o->plan, err))
        return false;
    o->run = opt->unaligned ? o->plan.elem : &o->plan;
    o->tier = o->plan.structure.n ? opt->tier : XTI_TIER_EXACT;
    snprintf(o->name, sizeof o->name, "xt_%s_00000000", xti_cuda_plan_family(&o->plan));
    snprintf(o->entry, sizeof o->entry, "%s%s", o->name, opt->unaligned ? "_e" : "");
    return !o->plan.n_steps || !xti_cuda_emit(&o->plan, o->tier, o->name, &o->source, err);
}

static bool compile(struct made *o, int sm, struct xti_err *err)
{
    const struct xti_nvrtc *nvrtc = xti_nvrtc_for(sm, 0, err);
    return nvrtc && !xti_nvrtc_compile(nvrtc, o->source.s, o->name, sm, &o->code, err);
}

/* All that decides what the launch does, but the map. */
static void name_kernel(const struct made *o, char out[17])
{
    const struct xti_cuda_plan *p = o->run;
    unsigned char digest[XTI_SHA256_BYTES];
    struct xti_sha256 h;
    xti_sha256_start(&h);
    xti_sha256_add(&h, o->source.s, o->source.n);
    xti_sha256_add(&h, &p->grid, sizeof p->grid);
    xti_sha256_add(&h, &p->threads_per_block, sizeof p->threads_per_block);
    xti_sha256_add(&h, &p->origin.dst_bytes, sizeof p->origin.dst_bytes);
    for (int i = 0; i < p->map.n_srcs; i++)
        xti_sha256_add(&h, &p->origin.src_bytes[i], sizeof p->origin.src_bytes[i]);
    if (o->tier == XTI_TIER_STRUCTURE)
        xti_sha256_add(&h, p->numbers.s, p->numbers.n);
    xti_sha256_end(&h, digest);
    xti_hex(digest, 8, out);
}

static int64_t grid_of(const struct made *o) { return o->run->grid; }
static int threads_of(const struct made *o) { return o->run->threads_per_block; }

/* Blocks lo..hi - 1 of part i of the grid; false: there are no more parts. */
static bool part_of(const struct made *o, int i, int64_t *lo, int64_t *hi)
{
    if (i >= o->run->n_steps)
        return false;
    *lo = o->run->step[i].first_block;
    *hi = *lo + o->run->step[i].blocks;
    return true;
}

static const char *family_of(const struct made *o, int part)
{
    return xti_cuda_family_name(o->run->step[part].family);
}

static void drop(struct made *o)
{
    cuda_params_free(&o->params);
    xti_code_free(&o->code);
    xti_str_free(&o->source);
    xti_cuda_plan_free(&o->plan);
}

/* ---- what a run of blocks does */

enum { MAX_WARPS = 32, READER_SAMPLE = 31, MOST_READERS = 1 << 24 };

struct tally {
    double load_sectors, load_need, store_sectors, store_need,
        store_parts;                           /* need: bytes over bytes of the sector that matter */
    double dst_bytes, load_bytes, early_bytes; /* early: loaded by warps that have not stored or waited yet */
    double moved_early; /* destination bytes of each block, times the part of its loads that is early */
    double instructions, wavefronts, ideal_wavefronts, loading_blocks;
    double read_points, read_elements; /* of a few elements: 1, and 1 / readers */
};

/* Bytes, a bit each, of the sectors that a block has stored; numbered from 1 on, by open addressing. */
enum { SLOTS = 1 << 14 };
struct stored {
    uint64_t sector[SLOTS];
    uint32_t bytes[SLOTS];
    int n;
};

/* How many of them it has stored in part: others have the rest, and the memory puts both together. Empties
 * it. */
static int take_parts(struct stored *t)
{
    int parts = 0;
    for (int i = 0; i < SLOTS && t->n; i++)
        parts += t->sector[i] && t->bytes[i] != UINT32_MAX;
    if (t->n)
        memset(t, 0, sizeof *t);
    return parts;
}

static void add_stored(struct stored *t, uint64_t at, unsigned bytes)
{
    uint64_t sector = at / INVERSE_SECTOR + 1, i = sector * 0x9e3779b97f4a7c15u >> 50;
    while (t->sector[i] && t->sector[i] != sector)
        i = (i + 1) % SLOTS;
    t->n += !t->sector[i];
    t->sector[i] = sector;
    t->bytes[i] |= (uint32_t)(((UINT64_C(1) << bytes) - 1) << at % INVERSE_SECTOR);
}

struct watcher {
    const struct xti_map *m;
    struct inverse *inverse;
    struct stored *stored; /* by the block at hand */
    struct tally t;
    uint64_t block;
    bool in_block, waited[MAX_WARPS];
    double block_loads, block_early, block_dst;
    int64_t elements, shift; /* bytes that buffers begin behind a line */
    char error[256];
};

static void close_block(struct watcher *w)
{
    w->t.store_parts += take_parts(w->stored);
    w->t.load_bytes += w->block_loads;
    w->t.early_bytes += w->block_early;
    w->t.dst_bytes += w->block_dst;
    w->t.loading_blocks += w->block_loads > 0;
    w->t.moved_early += w->block_loads > 0 ? w->block_dst * w->block_early / w->block_loads : 0;
    w->block_loads = w->block_early = w->block_dst = 0;
    memset(w->waited, 0, sizeof w->waited);
    w->in_block = false;
}

static int distinct_sectors(const struct ptx_access *a)
{
    uint64_t seen[32];
    int n = 0;
    for (uint32_t rest = a->lanes; rest; rest &= rest - 1) {
        uint64_t sector = a->address[__builtin_ctz(rest)] / INVERSE_SECTOR;
        int i = n;
        while (i > 0 && seen[i - 1] != sector)
            i--;
        if (!i)
            seen[n++] = sector;
    }
    return n;
}

static void need_source(struct watcher *w, const struct xti_piece *p, int64_t s, int bytes)
{
    w->t.load_need +=
        (double)bytes / inverse_sector_bytes(w->inverse, p->src, s * w->m->esize / INVERSE_SECTOR);
    if (w->elements++ % READER_SAMPLE)
        return;
    int64_t readers = inverse_readers(w->inverse, p->src, s, MOST_READERS);
    w->t.read_points++;
    w->t.read_elements += 1.0 / (double)(readers > 1 ? readers : 1);
}

/* `bytes` bytes at `off`, all of one element. */
static void check_element(struct watcher *w, int64_t off, int bytes, const unsigned char *data)
{
    int64_t size = w->m->esize, d = off / size, s = 0;
    const struct xti_piece *p = inverse_piece(w->inverse, d, &s);
    if (!p) {
        snprintf(w->error, sizeof w->error, "block %llu writes element %lld, which the map leaves alone",
                 (unsigned long long)w->block, (long long)d);
        return;
    }
    for (int i = 0; i < bytes; i++) {
        int64_t at = s * size + off % size + i;
        unsigned char want =
            p->src < 0 ? p->value[off % size + i] : ptx_imagined(1 + p->src, (uint64_t)(at + w->shift));
        if (data[i] != want && !*w->error)
            snprintf(w->error, sizeof w->error,
                     "block %llu: element %lld of the destination is not element %lld of %d",
                     (unsigned long long)w->block, (long long)d, (long long)s, p->src);
    }
    w->t.store_need += (double)bytes / inverse_sector_bytes(w->inverse, -1, off / INVERSE_SECTOR);
    if (p->src >= 0)
        need_source(w, p, s, bytes);
}

static void watch_store(struct watcher *w, const struct ptx_access *a)
{
    int size = w->m->esize;
    for (uint32_t rest = a->lanes; rest; rest &= rest - 1) {
        int lane = __builtin_ctz(rest);
        int64_t off;
        ptx_locate(a->address[lane], &off);
        off -= w->shift;
        for (int i = 0; i < (int)a->bytes && !*w->error;) {
            int n = size - (int)((off + i) % size);
            n = n < (int)a->bytes - i ? n : (int)a->bytes - i;
            check_element(w, off + i, n, a->data[lane] + i);
            i += n;
        }
    }
    for (uint32_t rest = a->lanes; rest; rest &= rest - 1)
        add_stored(w->stored, a->address[__builtin_ctz(rest)], a->bytes);
    if (w->stored->n > SLOTS / 2)
        w->t.store_parts += take_parts(w->stored);
    w->block_dst += (double)a->bytes * __builtin_popcount(a->lanes);
}

static void watch(void *arg, const struct ptx_access *a)
{
    struct watcher *w = arg;
    int64_t off;
    bool global = a->seen == PTX_SEEN_LOAD || a->seen == PTX_SEEN_STORE;
    if (global && ptx_locate(a->address[__builtin_ctz(a->lanes)], &off) < 0)
        return; /* a table of the module's: its few lines are in every cache */
    if (w->in_block && w->block != a->block)
        close_block(w);
    w->block = a->block;
    w->in_block = true;
    if (a->seen != PTX_SEEN_LOAD)
        w->waited[a->warp] = true;
    if (a->seen == PTX_SEEN_STORE) {
        w->t.store_sectors += distinct_sectors(a);
        watch_store(w, a);
    } else if (a->seen == PTX_SEEN_LOAD) {
        double bytes = (double)a->bytes * __builtin_popcount(a->lanes);
        w->t.load_sectors += distinct_sectors(a);
        w->block_loads += bytes;
        w->block_early += w->waited[a->warp] ? 0 : bytes;
    }
}

/* ---- the sample */

struct sampler {
    const struct xti_map *m;
    const struct block_sample_options *opt;
    uint64_t seed;
    struct made made;
    struct ptx_module *module;
    struct ptx_world *world;
    struct inverse *inverse;
    struct stored *stored;
    int64_t shift;
    uint64_t *only; /* of one stratum */
    struct tally sum;
    struct block_sample *out;
};

static bool fail(struct block_sample *out, const char *what, const char *why)
{
    snprintf(out->error, sizeof out->error, "%s: %s", what, why);
    return false;
}

static uint64_t next(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void add_tally(struct tally *sum, const struct tally *t, double weight)
{
    double *to = (double *)sum;
    const double *from = (const double *)t;
    for (size_t i = 0; i < sizeof *t / sizeof *to; i++)
        to[i] += weight * from[i];
}

/* Runs s->only[0..n), each of which stands for `weight` blocks. */
static bool run_blocks(struct sampler *s, int n, double weight)
{
    struct watcher *w =
        &(struct watcher){.m = s->m, .inverse = s->inverse, .stored = s->stored, .shift = s->shift};
    struct ptx_launch l = {.entry = s->made.entry,
                           .grid = {(uint32_t)grid_of(&s->made), 1, 1},
                           .block = {(uint32_t)threads_of(&s->made), 1, 1},
                           .params = s->made.params.param,
                           .n_params = s->made.params.n};
    struct ptx_sample sample = {.only = s->only, .n_only = n, .watch = watch, .arg = w};
    struct ptx_report r;
    if (!n)
        return true;
    if (ptx_run_sample(s->world, s->module, &l, &sample, &r))
        return fail(s->out, "run", r.error);
    if (*w->error)
        return fail(s->out, s->made.name, w->error);
    close_block(w);
    w->t.instructions = (double)r.instructions;
    w->t.wavefronts = (double)(r.shared_load_wavefronts + r.shared_store_wavefronts);
    w->t.ideal_wavefronts = (double)(r.shared_load_ideal + r.shared_store_ideal);
    add_tally(&s->sum, &w->t, weight);
    s->out->sampled += n;
    return true;
}

/* n random blocks of lo..hi - 1, one of each of n equal ranges; all when there are no more. */
static bool run_range(struct sampler *s, int64_t lo, int64_t hi, int n)
{
    int64_t blocks = hi - lo;
    n = blocks < n ? (int)blocks : n;
    for (int i = 0; i < n; i++) {
        int64_t from = lo + (int64_t)((__int128)blocks * i / n),
                to = lo + (int64_t)((__int128)blocks * (i + 1) / n);
        s->only[i] = (uint64_t)from + next(&s->seed) % (uint64_t)(to - from);
    }
    return run_blocks(s, n, n ? (double)blocks / n : 0);
}

static bool run_part(struct sampler *s, int64_t lo, int64_t hi, int n)
{
    if (hi - lo <= n || n < 3)
        return run_range(s, lo, hi, n);
    s->only[0] = (uint64_t)lo;
    s->only[1] = (uint64_t)hi - 1;
    return run_blocks(s, 2, 1) && run_range(s, lo + 1, hi - 1, n - 2);
}

/* Many pieces are sampled as one: then pieces with few blocks may have none in the sample. */
enum { MOST_PARTS = 16, LEAST_OF_A_PART = 4 };

static bool run_parts(struct sampler *s, int n)
{
    int64_t lo = 0, hi = 0, all = grid_of(&s->made);
    int parts = 0;
    while (part_of(&s->made, parts, &lo, &hi))
        parts++;
    if (parts > MOST_PARTS)
        return run_part(s, 0, all, n);
    for (int i = 0; i < parts; i++) {
        part_of(&s->made, i, &lo, &hi);
        int share = (int)((double)n * (double)(hi - lo) / (double)all);
        if (!run_part(s, lo, hi, share > LEAST_OF_A_PART ? share : LEAST_OF_A_PART))
            return false;
    }
    return true;
}

static bool make_world(struct sampler *s)
{
    const struct xti_map *m = s->m;
    struct ptx_buffer *b = calloc((size_t)m->n_srcs + 1, sizeof *b);
    for (int i = 0; b && i <= m->n_srcs; i++) {
        int64_t hi = i ? m->src_hi[i - 1] : m->dst_hi, lo = i ? m->src_lo[i - 1] : m->dst_lo;
        b[i] = (struct ptx_buffer){.bytes = hi < lo ? 0 : (size_t)((hi + 1) * m->esize + s->shift),
                                   .writable = i == 0};
    }
    s->world = b ? ptx_world_new(b, m->n_srcs + 1) : NULL;
    free(b);
    return s->world != NULL;
}

/* ---- figures */

static void name_families(const struct made *o, struct block_sample *out)
{
    int64_t lo, hi;
    for (int i = 0; part_of(o, i, &lo, &hi); i++) {
        const char *name = family_of(o, i), *at = strstr(out->family, name);
        size_t n = strlen(out->family);
        if (!at && n + strlen(name) + 2 < sizeof out->family)
            snprintf(out->family + n, sizeof out->family - n, "%s%s", n ? "+" : "", name);
    }
}

static double ratio(double a, double b) { return b > 0 ? a / b : 1; }

/* Where guards hide points, blocks of equal work write anything from nothing to all: then what the map writes
 * says more than the sample. */
static double written(const struct sampler *s)
{
    for (int i = 0; i < s->m->n_pieces; i++)
        if (s->m->piece[i].n_guards)
            return (double)s->out->dst_bytes;
    return s->sum.dst_bytes;
}

/* See bench/README.md. */
static double estimate(const struct sampler *s)
{
    const struct tally *t = &s->sum;
    const struct block_sample *o = s->out;
    double compulsory = t->load_need / o->rereads + t->store_need;
    double again = fmax(t->load_sectors + t->store_sectors - compulsory, 0);
    double sectors = 1 + (again / 3 + xti_cuda_parts_cost(t->store_parts)) / compulsory;
    double per_sm = (double)o->blocks / block_sample_sms(s->opt->target.sm);
    double moved = t->loading_blocks > 0 ? t->moved_early / t->loading_blocks * fmin(o->resident, per_sm) : 0;
    double copied = fmin(65536, t->dst_bytes / block_sample_sms(s->opt->target.sm)), latency = 6700;
    double time = pow(sectors, 2.5) + pow(o->instructions_per_16b / 132, 2.5) +
                  (moved > 0 ? pow(latency / moved, 2.5) : 0) + pow(9.3 * t->wavefronts / written(s), 2.5);
    double copy = 1 + pow(latency / copied, 2.5) + pow(19.0 / 132, 2.5);
    return fmin(1, pow(copy / time, 0.4));
}

static void conclude(struct sampler *s)
{
    const struct tally *t = &s->sum;
    struct block_sample *o = s->out;
    o->load_ratio = ratio(t->load_sectors, t->load_need);
    o->store_ratio = ratio(t->store_sectors, t->store_need);
    o->store_parts = t->store_need > 0 ? t->store_parts / t->store_need : 0;
    o->rereads = ratio(t->read_points, t->read_elements);
    o->wavefront_ratio = ratio(t->wavefronts, t->ideal_wavefronts);
    o->instructions_per_16b = ratio(t->instructions * 16, written(s));
    double there =
        fmin(o->resident,
             (double)o->blocks / block_sample_sms(s->opt->target.sm)); /* a small launch fills no SM */
    o->in_flight = t->loading_blocks > 0 ? t->early_bytes / t->loading_blocks * there : 0;
    o->estimate = estimate(s);
}

static bool read_cubin(struct sampler *s)
{
    struct xti_cubin_entry e;
    struct block_sample *o = s->out;
    if (!xti_cubin_read(s->made.code.cubin, s->made.code.cubin_bytes, s->made.entry, &e))
        return fail(o, "cubin", "not understood");
    o->registers = e.registers;
    o->spill_bytes = e.local_bytes;
    o->shared_bytes = (int)e.shared_bytes;
    o->store_before_load = e.store_before_load;
    o->resident = xti_cubin_resident(&e, s->opt->target.sm, threads_of(&s->made));
    return true;
}

static bool sample(struct sampler *s, int n)
{
    struct xti_err err = {0};
    char why[256];
    if (!make_code(s->m, s->opt, &s->made, &err))
        return fail(s->out, "plan, emit", err.e.message);
    s->out->tier = s->made.tier;
    s->out->blocks = grid_of(&s->made);
    s->out->dst_bytes = s->m->numel * s->m->esize;
    if (!s->out->blocks)
        return fail(s->out, "plan", "nothing to launch");
    name_families(&s->made, s->out);
    struct xti_cuda_prediction planned;
    s->out->planned = xti_cuda_predict(s->made.run, &planned) ? planned.fraction : 0;
    name_kernel(&s->made, s->out->kernel);
    s->out->known = s->opt->hash_only || (s->opt->known && !strcmp(s->opt->known, s->out->kernel));
    if (s->out->known)
        return true;
    if (!compile(&s->made, s->opt->target.sm, &err))
        return fail(s->out, "compile", err.e.message);
    if (ptx_load(s->made.code.ptx, &s->module, why, sizeof why))
        return fail(s->out, "load", why);
    s->inverse = inverse_new(s->m);
    s->only = calloc((size_t)n + LEAST_OF_A_PART, sizeof *s->only);
    s->stored = calloc(1, sizeof *s->stored);
    if (!s->inverse || !s->only || !s->stored || !make_world(s) ||
        !cuda_params_make(s->made.run, s->made.tier, s->world, s->shift, &s->made.params))
        return fail(s->out, "sample", "no memory");
    if (!read_cubin(s) || !run_parts(s, n))
        return false;
    conclude(s);
    return true;
}

bool block_sample(const struct xti_map *m, const struct block_sample_options *opt, struct block_sample *out)
{
    struct sampler s = {.m = m,
                        .opt = opt,
                        .seed = opt->seed,
                        .out = out,
                        .shift = opt->unaligned ? m->esize + opt->further : 0};
    memset(out, 0, sizeof *out);
    out->store_before_load = -1;
    bool ok = sample(&s, opt->blocks);
    ptx_world_free(s.world);
    ptx_free(s.module);
    inverse_free(s.inverse);
    free(s.stored);
    free(s.only);
    drop(&s.made);
    return ok;
}
