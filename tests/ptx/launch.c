/* launch.c: checks a launch against its entry, lays out parameters and memory, runs the blocks.
 * In: module, launch, world. Out: the report. */
#include "impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_BUDGET = 4 << 20, MAX_THREADS = 1024, MAX_SHARED = 227 << 10 };

static void *need(struct machine *mc, size_t n, size_t bytes)
{
    void *p = calloc(n ? n : 1, bytes ? bytes : 1);
    if (!p)
        ptx_stop(mc, PTX_NO_MEMORY, -1, "%zu elements of %zu bytes", n, bytes);
    return p;
}

static void check_shape(struct machine *mc)
{
    const struct ptx_launch *l = mc->l;
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (!l->grid[i] || l->grid[i] > (i ? 65535u : 0x7FFFFFFFu))
            ptx_stop(mc, PTX_BAD_LAUNCH, -1, "grid %u x %u x %u", l->grid[0], l->grid[1], l->grid[2]);
        threads = l->block[i] > MAX_THREADS ? 0 : threads * l->block[i];
    }
    if (!threads || threads > MAX_THREADS || l->block[2] > 64)
        ptx_stop(mc, PTX_BAD_LAUNCH, -1, "block %u x %u x %u", l->block[0], l->block[1], l->block[2]);
    if (mc->e->max_threads && threads > mc->e->max_threads)
        ptx_stop(mc, PTX_BAD_LAUNCH, -1, "%d threads a block, the kernel was built for at most %u",
                 (int)threads, mc->e->max_threads);
    if (mc->e->required_block[0] && memcmp(mc->e->required_block, l->block, sizeof l->block))
        ptx_stop(mc, PTX_BAD_LAUNCH, -1, "block %u x %u x %u is not the one the kernel requires", l->block[0],
                 l->block[1], l->block[2]);
    if (mc->e->shared_bytes + l->shared_bytes > MAX_SHARED)
        ptx_stop(mc, PTX_BAD_LAUNCH, -1, "%zu bytes of shared memory", mc->e->shared_bytes + l->shared_bytes);
    mc->n_threads = (uint32_t)threads;
    mc->n_warps = (mc->n_threads + LANES - 1) / LANES;
}

static void set_parameters(struct machine *mc)
{
    const struct entry *e = mc->e;
    if (mc->l->n_params != e->n_params)
        ptx_stop(mc, PTX_BAD_LAUNCH, -1, "%d parameters, the kernel has %d", mc->l->n_params, e->n_params);
    mc->param = need(mc, e->param_space, 1);
    for (int i = 0; i < e->n_params; i++) {
        const struct ptx_param *p = &mc->l->params[i];
        const struct var *v = &mc->m->vars[e->param[i]];
        uint64_t address = 0;
        if (!p->is_pointer) {
            if (p->n_bytes != v->bytes)
                ptx_stop(mc, PTX_BAD_LAUNCH, -1, "parameter %d of %zu bytes, the kernel declares %zu", i,
                         p->n_bytes, v->bytes);
            memcpy(mc->param + v->address, p->bytes, p->n_bytes);
            continue;
        }
        if (v->bytes != 8 || p->buffer < 0 || p->buffer >= mc->w->n)
            ptx_stop(mc, PTX_BAD_LAUNCH, -1, "parameter %d: pointer into buffer %d, declared with %zu bytes",
                     i, p->buffer, v->bytes);
        address = ptx_address(mc->w, p->buffer, p->byte_offset);
        if (v->pointer_align && address % v->pointer_align)
            ptx_stop(mc, PTX_MISALIGNED, -1, "parameter %d: the kernel promises a multiple of %zu", i,
                     v->pointer_align);
        memcpy(mc->param + v->address, &address, sizeof address);
    }
}

/* The extents of all variables this entry may touch, by space. */
static size_t set_ranges(struct machine *mc)
{
    size_t shared = mc->e->shared_space;
    for (int s = 0; s < SPACES; s++)
        mc->ranges[s] = need(mc, (size_t)mc->m->n_vars, sizeof **mc->ranges);
    for (int i = 0; i < mc->m->n_vars; i++) {
        const struct var *v = &mc->m->vars[i];
        uint64_t end = v->address + (v->is_dynamic ? mc->l->shared_bytes : v->bytes);
        if (v->entry >= 0 && &mc->m->entries[v->entry] != mc->e)
            continue;
        mc->ranges[v->space][mc->n_ranges[v->space]++] = (struct range){v->address, end, v};
        if (v->space == SPACE_SHARED && end > shared)
            shared = end;
    }
    return shared;
}

static void set_up(struct machine *mc)
{
    size_t n_regs = (size_t)mc->e->n_regs;
    check_shape(mc);
    set_parameters(mc);
    size_t shared = set_ranges(mc);
    mc->budget = mc->l->warp_budget ? mc->l->warp_budget : DEFAULT_BUDGET;
    mc->interval = 1;
    mc->shared = need(mc, shared, 1);
    mc->shared_write = need(mc, shared / (size_t)mc->e->shared_granule + 1, sizeof *mc->shared_write);
    mc->shared_read = need(mc, shared / (size_t)mc->e->shared_granule + 1, sizeof *mc->shared_read);
    mc->local = need(mc, mc->n_threads, mc->e->local_space);
    mc->local_written = need(mc, mc->n_threads, mc->e->local_space);
    mc->warps = need(mc, mc->n_warps, sizeof *mc->warps);
    mc->reg_pool = need(mc, mc->n_warps * n_regs, sizeof *mc->reg_pool);
    mc->defined_pool = need(mc, mc->n_warps * n_regs, sizeof *mc->defined_pool);
    mc->part_pool = need(mc, mc->n_warps * n_regs, sizeof *mc->part_pool);
    for (uint32_t i = 0; i < mc->n_warps; i++) {
        mc->warps[i].reg = mc->reg_pool + i * n_regs;
        mc->warps[i].defined = mc->defined_pool + i * n_regs;
        mc->warps[i].part = mc->part_pool + i * n_regs;
        mc->warps[i].first_thread = i * LANES;
    }
}

static void tear_down(struct machine *mc)
{
    for (uint32_t i = 0; mc->warps && i < mc->n_warps; i++)
        free(mc->warps[i].copies);
    for (int s = 0; s < SPACES; s++)
        free(mc->ranges[s]);
    free(mc->warps);
    free(mc->reg_pool);
    free(mc->defined_pool);
    free(mc->part_pool);
    free(mc->param);
    free(mc->shared);
    free(mc->shared_write);
    free(mc->shared_read);
    free(mc->local);
    free(mc->local_written);
}

static void run_listed(struct machine *mc)
{
    const uint32_t *n = mc->l->grid;
    for (int i = 0; i < mc->sample->n_only; i++) {
        uint64_t b = mc->sample->only[i], row = b / n[0];
        if (row / n[1] >= n[2])
            ptx_stop(mc, PTX_BAD_LAUNCH, -1, "block %llu of a grid %u x %u x %u", (unsigned long long)b, n[0],
                     n[1], n[2]);
        mc->block[0] = (uint32_t)(b % n[0]);
        mc->block[1] = (uint32_t)(row % n[1]);
        mc->block[2] = (uint32_t)(row / n[1]);
        ptx_run_block(mc);
    }
}

static void run_grid(struct machine *mc)
{
    for (int i = 0; i < mc->m->n_entries; i++)
        if (!strcmp(mc->m->entries[i].name, mc->l->entry))
            mc->e = &mc->m->entries[i];
    if (!mc->e)
        ptx_stop(mc, PTX_BAD_LAUNCH, -1, "no entry %s", mc->l->entry);
    set_up(mc);
    if (mc->sample->only) {
        run_listed(mc);
        return;
    }
    for (mc->block[2] = 0; mc->block[2] < mc->l->grid[2]; mc->block[2]++)
        for (mc->block[1] = 0; mc->block[1] < mc->l->grid[1]; mc->block[1]++)
            for (mc->block[0] = 0; mc->block[0] < mc->l->grid[0]; mc->block[0]++)
                ptx_run_block(mc);
}

int ptx_run(struct ptx_world *w, const struct ptx_module *m, const struct ptx_launch *l,
            struct ptx_report *report)
{
    static const struct ptx_sample all;
    return ptx_run_sample(w, m, l, &all, report);
}

int ptx_run_sample(struct ptx_world *w, const struct ptx_module *m, const struct ptx_launch *l,
                   const struct ptx_sample *s, struct ptx_report *report)
{
    struct machine *mc = calloc(1, sizeof *mc);
    memset(report, 0, sizeof *report);
    if (!mc) {
        report->fault = PTX_NO_MEMORY;
        snprintf(report->error, sizeof report->error, "no memory: machine");
        return 1;
    }
    mc->m = m, mc->l = l, mc->sample = s, mc->w = w, mc->r = report;
    if (setjmp(mc->failed) == 0)
        run_grid(mc);
    tear_down(mc);
    free(mc);
    ptx_world_add(w, report);
    return report->fault != PTX_FINE;
}
