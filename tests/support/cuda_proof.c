/* cuda_proof.c: see cuda_proof.h. Buffers are exactly as large as the map's addresses need, so that an access
 * past an edge is one out of bounds; what the map does not write must stay untouched. */
#include "support/cuda_proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "support/cuda_params.h"

struct run {
    const struct xti_map *m;
    struct xti_cuda_plan plan;
    enum xti_cuda_tier tier;
    struct xti_str source;
    struct xti_code code;
    struct ptx_module *module;
    struct ptx_world *world;
    struct ptx_buffer *buffer; /* dst, then the graph's inputs */
    unsigned char *must, *want;
    const void **src;
    struct xti_err err;
    int64_t compulsory_load, compulsory_store; /* sectors */
};

const char *cuda_prove_unable(void) { return xti_nvrtc_for(90, 0, NULL) ? NULL : "NVRTC not found"; }

static bool fail(struct proof *out, const char *what, const char *why)
{
    snprintf(out->error, sizeof out->error, "%s: %s", what, why);
    return false;
}

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

static void fill(unsigned char *p, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(next(&seed) >> 32);
}

struct marks {
    struct run *r;
    unsigned char *dst_sector, **src_sector;
};

/* In element addresses, from the buffers' starts, which are aligned to sectors. */
static bool mark(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    struct marks *k = arg;
    int64_t e = k->r->m->esize;
    memset(k->r->must + d * e, 1, (size_t)e);
    k->r->compulsory_store += !k->dst_sector[d * e / 32];
    k->dst_sector[d * e / 32] = 1;
    if (s >= 0) {
        k->r->compulsory_load += !k->src_sector[p->src][s * e / 32];
        k->src_sector[p->src][s * e / 32] = 1;
    }
    return true;
}

static void mark_all(struct run *r)
{
    struct marks k = {.r = r, .dst_sector = calloc(r->buffer[0].bytes / 32 + 1, 1)};
    k.src_sector = calloc((size_t)r->m->n_srcs + 1, sizeof *k.src_sector);
    for (int i = 0; i < r->m->n_srcs; i++)
        k.src_sector[i] = calloc(r->buffer[i + 1].bytes / 32 + 1, 1);
    xti_map_visit(r->m, mark, &k);
    for (int i = 0; i < r->m->n_srcs; i++)
        free(k.src_sector[i]);
    free(k.src_sector);
    free(k.dst_sector);
}

static void make_buffers(struct run *r)
{
    const struct xti_map *m = r->m;
    int n = m->n_srcs + 1;
    r->buffer = calloc((size_t)n, sizeof *r->buffer);
    r->src = calloc((size_t)n, sizeof *r->src);
    for (int i = 0; i < n; i++) {
        int64_t hi = i ? m->src_hi[i - 1] : m->dst_hi, lo = i ? m->src_lo[i - 1] : m->dst_lo;
        size_t bytes = hi < lo ? 0 : (size_t)((hi + 1) * m->esize);
        r->buffer[i] = (struct ptx_buffer){.base = malloc(bytes + 1), .bytes = bytes, .writable = i == 0};
        fill(r->buffer[i].base, bytes, 0x9e3779b97f4a7c15u + (uint64_t)i);
        if (i)
            r->src[i - 1] = bytes ? r->buffer[i].base : NULL;
    }
    r->must = calloc(r->buffer[0].bytes + 1, 1);
    r->want = malloc(r->buffer[0].bytes + 1);
    memcpy(r->want, r->buffer[0].base, r->buffer[0].bytes);
    mark_all(r);
    r->buffer[0].must_write = r->must;
    xti_map_eval(m, r->want, r->src);
}

/* A device address is a multiple of 256 only at its buffer's start: a misaligned buffer begins `shift` bytes
 * later. */
static void shift_buffers(struct run *r, size_t shift)
{
    for (int i = 0; i <= r->m->n_srcs; i++) {
        struct ptx_buffer *b = &r->buffer[i];
        b->base = realloc(b->base, b->bytes + shift + 1);
        memmove((char *)b->base + shift, b->base, b->bytes);
        memset(b->base, 0, shift);
        b->bytes += shift;
    }
    r->must = realloc(r->must, r->buffer[0].bytes + 1);
    memmove(r->must + shift, r->must, r->buffer[0].bytes - shift);
    memset(r->must, 0, shift);
    r->buffer[0].must_write = r->must;
}

static bool launch(struct run *r, const char *name, bool elem, size_t shift, struct proof *out)
{
    const struct xti_cuda_plan *p = elem ? r->plan.elem : &r->plan;
    char entry[160];
    struct cuda_params params;
    if (!cuda_params_make(p, r->tier, r->world, (int64_t)shift, &params))
        return fail(out, "parameters", "no memory");
    snprintf(entry, sizeof entry, "%s%s", name, elem ? "_e" : "");
    struct ptx_launch l = {.entry = entry,
                           .grid = {(uint32_t)p->grid, 1, 1},
                           .block = {(uint32_t)p->threads_per_block, 1, 1},
                           .params = params.param,
                           .n_params = params.n};
    int bad = ptx_run(r->world, r->module, &l, &out->report) || ptx_finish(r->world, &out->report);
    cuda_params_free(&params);
    return bad ? fail(out, entry, out->report.error) : true;
}

static void measure(struct run *r, struct proof *out)
{
    out->compulsory_load = r->compulsory_load;
    out->compulsory_store = r->compulsory_store;
    out->load_ratio = r->compulsory_load ? (double)out->report.load_sectors / (double)r->compulsory_load : 0;
    out->store_ratio =
        r->compulsory_store ? (double)out->report.store_sectors / (double)r->compulsory_store : 0;
}

static bool compare(struct run *r, size_t shift, struct proof *out)
{
    const unsigned char *got = (const unsigned char *)r->buffer[0].base + shift;
    for (size_t i = 0; i + shift < r->buffer[0].bytes; i++)
        if (got[i] != r->want[i]) {
            char text[80];
            snprintf(text, sizeof text, "byte %zu is %02x, not %02x", i, got[i], r->want[i]);
            return fail(out, out->strategy, text);
        }
    return true;
}

static void force_one(struct xti_cuda_plan *p, const struct proof_options *opt)
{
    if (opt->grid && opt->grid < p->grid)
        p->grid = opt->grid;
    p->index32 = p->index32 && !opt->wide_index;
}

static xt_status force(struct xti_cuda_plan *p, const struct proof_options *opt, struct xti_err *err)
{
    force_one(p, opt);
    force_one(p->elem, opt);
    return xti_cuda_structure_make(p, err);
}

static enum xti_cuda_tier choose_tier(const struct run *r, int sm, const struct proof_options *opt)
{
    struct xti_str key = {0};
    xti_map_key(r->m, &key);
    uint64_t coin = xti_hash64(key.s, key.n) + (uint64_t)(2 * sm + opt->misaligned);
    xti_str_free(&key);
    if (opt->tier == PROOF_EXACT || !r->plan.structure.n)
        return XTI_TIER_EXACT;
    return opt->tier == PROOF_STRUCTURE || xti_hash64(&coin, sizeof coin) & 1 ? XTI_TIER_STRUCTURE
                                                                              : XTI_TIER_EXACT;
}

static bool prove(struct run *r, int sm, const struct proof_options *opt, struct proof *out)
{
    struct xti_cuda_target target = {.sm = sm, .n_sms = opt->processors};
    char name[64], error[256];
    if (xti_cuda_plan_make(r->m, &target, &r->plan, &r->err))
        return fail(out, "plan", r->err.e.message);
    if (!r->plan.n_steps)
        return true;
    if (force(&r->plan, opt, &r->err))
        return fail(out, "numbers", r->err.e.message);
    out->tier = r->tier = choose_tier(r, sm, opt);
    snprintf(out->strategy, sizeof out->strategy, "%s", xti_cuda_plan_family(&r->plan));
    snprintf(name, sizeof name, "xt_%s_00000000", out->strategy);
    if (xti_cuda_emit(&r->plan, r->tier, name, &r->source, &r->err))
        return fail(out, "emit", r->err.e.message);
    out->source_bytes = r->source.n;
    const struct xti_nvrtc *nvrtc = xti_nvrtc_for(sm, 0, &r->err);
    if (!nvrtc || xti_nvrtc_compile(nvrtc, r->source.s, name, sm, &r->code, &r->err))
        return fail(out, "compile", r->err.e.message);
    if (ptx_load(r->code.ptx, &r->module, error, sizeof error))
        return fail(out, "load", error);
    bool elem = opt->misaligned;
    size_t shift = opt->misaligned ? (size_t)(r->m->esize < 16 ? r->m->esize : 0) : 0;
    make_buffers(r);
    shift_buffers(r, shift);
    if (!(r->world = ptx_world_new(r->buffer, r->m->n_srcs + 1)))
        return fail(out, "world", "no memory");
    for (int i = 0; i < ptx_entry_count(r->module); i++) {
        struct ptx_entry_info info;
        ptx_entry_info(r->module, i, &info);
        if (info.local_bytes)
            return fail(out, info.name, "local memory is used");
    }
    if (!launch(r, name, elem, shift, out))
        return false;
    measure(r, out);
    return compare(r, shift, out);
}

bool cuda_prove(const struct xti_map *m, int sm, bool misaligned, struct proof *out)
{
    struct proof_options opt = {.misaligned = misaligned};
    return cuda_prove_with(m, sm, &opt, out);
}

static bool prove_one(const struct xti_map *m, int sm, const struct proof_options *opt, struct proof *out)
{
    struct run r = {.m = m};
    memset(out, 0, sizeof *out);
    bool ok = prove(&r, sm, opt, out);
    ptx_world_free(r.world);
    ptx_free(r.module);
    for (int i = 0; r.buffer && i <= m->n_srcs; i++)
        free(r.buffer[i].base);
    free(r.buffer);
    free(r.src);
    free(r.must);
    free(r.want);
    xti_code_free(&r.code);
    xti_str_free(&r.source);
    xti_cuda_plan_free(&r.plan);
    return ok;
}

bool cuda_prove_with(const struct xti_map *m, int sm, const struct proof_options *opt, struct proof *out)
{
    struct proof_options one = *opt;
    const char *full = getenv("XT_TEST_FULL");
    if (opt->tier != PROOF_EITHER || !full || (*full != '1' && strcmp(full, "tiers")))
        return prove_one(m, sm, opt, out);
    one.tier = PROOF_STRUCTURE;
    if (!prove_one(m, sm, &one, out))
        return false;
    one.tier = PROOF_EXACT;
    return prove_one(m, sm, &one, out);
}
