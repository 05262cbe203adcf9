/* exec.c: runs a launch: blocks in turn, warps of a block up to their next barrier, lanes in lockstep.
 * In: module, launch, world. Out: the world's bytes and the report.
 * The active lanes of a warp are the running ones at the lowest program counter, so that branches come
 * together again at the first instruction both sides reach. */
#include "impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_BUDGET = 4 << 20, MAX_THREADS = 1024, MAX_SHARED = 227 << 10 };
#define ALL_LANES (~(uint32_t)0)

/* ---- lanes ---- */

/* Chooses the active lanes anew from all running ones; w->now stays with the lanes that were active. */
static void regroup(struct warp *w)
{
    uint32_t running = w->live & ~w->at_barrier & ~w->at_warp_barrier, lowest = UINT32_MAX;
    for (uint32_t rest = w->active; rest; rest &= rest - 1)
        w->pc[first_lane(rest)] = w->now;
    for (uint32_t rest = running; rest; rest &= rest - 1)
        if (w->pc[first_lane(rest)] < lowest)
            lowest = w->pc[first_lane(rest)];
    w->active = 0;
    w->now = lowest;
    w->next = UINT32_MAX;
    for (uint32_t rest = running; rest; rest &= rest - 1) {
        int l = first_lane(rest);
        if (w->pc[l] == lowest)
            w->active |= (uint32_t)1 << l;
        else if (w->pc[l] < w->next)
            w->next = w->pc[l];
    }
}

/* Sends `taken` of the active lanes to `target`, the others to the next instruction. */
static void branch(struct warp *w, uint32_t taken, uint32_t target)
{
    if (taken == w->active && w->next == UINT32_MAX) {
        w->now = target; /* nobody else is running */
        return;
    }
    uint32_t active = w->active;
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        int l = first_lane(rest);
        w->pc[l] = taken >> l & 1 ? target : w->now + 1;
    }
    w->active = 0;
    regroup(w);
}

/* Takes `lanes` of the active ones out of the running: they exited or wait. Their pc is that of the
 * instruction. */
static void retire(struct warp *w, uint32_t lanes, uint32_t *waiting)
{
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        w->pc[first_lane(rest)] = w->now;
    w->active &= ~lanes;
    w->now++;
    if (waiting)
        *waiting |= lanes;
    else
        w->live &= ~lanes;
    regroup(w);
}

/* ---- control instructions ---- */

static void run_branch_table(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes)
{
    const struct branch_table *t = &mc->e->tables[in->target];
    const uint64_t *index = slot_values(mc, w, in->src[0]);
    uint32_t active = w->active;
    for (uint32_t rest = active; rest; rest &= rest - 1) {
        int l = first_lane(rest);
        if (!(lanes >> l & 1)) {
            w->pc[l] = w->now + 1;
            continue;
        }
        if (index[l] >= (uint64_t)t->n)
            ptx_stop(mc, PTX_TRAPPED, l, "index %llu into a branch table of %d", (unsigned long long)index[l],
                     t->n);
        w->pc[l] = (uint32_t)t->target[index[l]];
        if (in->uniform && index[l] != index[first_lane(lanes)])
            ptx_stop(mc, PTX_DIVERGED, l, "a .uni branch that not all active threads take");
    }
    w->active = 0;
    regroup(w);
}

/* Lets go the lanes that wait for each other once all of them are there. A full warp orders its memory
 * accesses. */
static void release_warp_barrier(struct machine *mc, struct warp *w)
{
    for (uint32_t rest = w->at_warp_barrier; rest; rest &= rest - 1) {
        uint32_t members = w->member[first_lane(rest)] & w->live;
        if (members & ~w->at_warp_barrier)
            continue; /* some are not there yet, or this lane was let go in an earlier round */
        for (uint32_t m = members; m; m &= m - 1) {
            int l = first_lane(m);
            if ((w->member[l] & w->live) != members)
                ptx_stop(mc, PTX_DIVERGED, l,
                         "bar.warp.sync with a mask 0x%x, another of its threads gave 0x%x", w->member[l],
                         w->member[first_lane(rest)]);
            w->pc[l]++;
        }
        w->at_warp_barrier &= ~members;
        if (members == w->live && ++w->syncs >= 1u << 20)
            ptx_stop(mc, PTX_ENDLESS, -1, "more than a million bar.warp.sync");
    }
    regroup(w);
}

static void run_warp_barrier(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t *mask = slot_values(mc, w, in->src[0]);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int l = first_lane(rest);
        w->member[l] = (uint32_t)mask[l];
        if (!(mask[l] >> l & 1))
            ptx_stop(mc, PTX_DIVERGED, l, "bar.warp.sync by a thread that its mask 0x%x leaves out",
                     w->member[l]);
    }
    retire(w, lanes, &w->at_warp_barrier);
    release_warp_barrier(mc, w);
}

static void run_shuffle(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t *b = slot_values(mc, w, in->src[1]), *c = slot_values(mc, w, in->src[2]);
    const uint64_t *members = slot_values(mc, w, in->src[3]);
    uint64_t a[LANES], d[LANES];
    uint32_t inside = 0;
    memcpy(a, slot_values(mc, w, in->src[0]), sizeof a);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int l = first_lane(rest);
        if (((uint32_t)members[l] & w->live) != lanes)
            ptx_stop(mc, PTX_DIVERGED, l, "shfl.sync with mask 0x%x while the threads 0x%x are here",
                     (uint32_t)members[l], lanes);
        int limit = (int)(c[l] & 31), segment = (int)(c[l] >> 8 & 31), by = (int)(b[l] & 31);
        int top = (l & segment) | (limit & ~segment), bottom = l & segment, from;
        int ok;
        /* clang-format off */
        switch (in->sub) {
        case SHUFFLE_UP:   from = l - by; ok = from >= top; break;
        case SHUFFLE_DOWN: from = l + by; ok = from <= top; break;
        case SHUFFLE_BFLY: from = l ^ by; ok = from <= top; break;
        default:           from = bottom | (by & ~segment); ok = from <= top; break;
        }
        /* clang-format on */
        if (!ok)
            from = l;
        if (!(lanes >> from & 1))
            ptx_stop(mc, PTX_DIVERGED, l, "shfl.sync from lane %d, which takes no part", from);
        d[l] = a[from];
        inside |= (uint32_t)ok << l;
    }
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int l = first_lane(rest);
        if (in->dst[0] != NO_SLOT)
            w->reg[in->dst[0]][l] = d[l];
        if (in->n_dst > 1 && in->dst[1] != NO_SLOT)
            w->reg[in->dst[1]][l] = inside >> l & 1;
    }
    for (int i = 0; i < in->n_dst; i++)
        if (in->dst[i] != NO_SLOT)
            w->defined[in->dst[i]] |= lanes;
}

/* ---- one warp ---- */

static uint32_t guard_lanes(struct machine *mc, struct warp *w, const struct insn *in)
{
    uint32_t yes = 0;
    if (w->active & ~w->defined[in->guard])
        ptx_stop(mc, PTX_UNINITIALISED, first_lane(w->active & ~w->defined[in->guard]),
                 "the guard comes from a register that was never written, read in line %d",
                 mc->undefined_line ? mc->undefined_line : in->line);
    for (int l = 0; l < LANES; l++)
        yes |= (uint32_t)(w->reg[in->guard][l] & 1) << l;
    return w->active & (in->guard_not ? ~yes : yes);
}

static uint32_t defined_lanes(const struct warp *w, int slot)
{
    return slot < 0 ? ALL_LANES : w->defined[slot];
}

/* Sources of what has an effect (addresses, stored values, branches): none may be undefined. */
static void check_sources(struct machine *mc, const struct warp *w, const struct insn *in, uint32_t lanes)
{
    for (int i = 0; i < in->n_src; i++) {
        uint32_t bad = lanes & ~defined_lanes(w, in->src[i]);
        if (bad)
            ptx_stop(
                mc, PTX_UNINITIALISED, first_lane(bad),
                "source operand %d of the instruction comes from a register that was never written, read in "
                "line %d",
                i + 1, mc->undefined_line ? mc->undefined_line : in->line);
    }
}

/* The lanes in which the result does not depend on an undefined operand after all. */
static uint32_t rescued_lanes(const struct machine *mc, const struct warp *w, const struct insn *in)
{
    const uint64_t *a = slot_values(mc, w, in->src[0]),
                   *b = in->n_src > 1 ? slot_values(mc, w, in->src[1]) : a;
    const uint64_t *c = in->n_src > 2 ? slot_values(mc, w, in->src[2]) : a;
    uint32_t da = defined_lanes(w, in->src[0]), db = in->n_src > 1 ? defined_lanes(w, in->src[1]) : 0,
             rescued = 0;
    uint32_t dc = in->n_src > 2 ? defined_lanes(w, in->src[2]) : 0;
    uint64_t decides = in->op == OP_AND ? 0 : in->mask;
    for (int l = 0; l < LANES; l++) {
        int fine = 0;
        if (in->op == OP_SELP)
            fine = dc >> l & (c[l] ? da : db) >> l & 1;
        else if (in->op == OP_AND || in->op == OP_OR)
            fine = (da >> l & 1 && a[l] == decides) || (db >> l & 1 && b[l] == decides);
        rescued |= (uint32_t)fine << l;
    }
    return rescued;
}

/* Arithmetic on an undefined value gives an undefined value and is no fault: compilers copy and compute ahead
 * of a guard what they later do not use. */
static void run_alu(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint32_t bad = 0;
    for (int i = 0; i < in->n_src; i++)
        bad |= lanes & ~defined_lanes(w, in->src[i]);
    if (!bad) {
        ptx_alu(mc, w, in, lanes);
        return;
    }
    if (!mc->undefined_line)
        mc->undefined_line = in->line;
    bad &= ~rescued_lanes(mc, w, in);
    if (lanes & ~bad)
        ptx_alu(mc, w, in, lanes & ~bad);
    for (int i = 0; i < in->n_dst; i++)
        if (in->dst[i] != NO_SLOT)
            w->defined[in->dst[i]] &= ~bad;
}

/* Runs until no lane of the warp is running: all exited or wait. */
static void run_warp(struct machine *mc, struct warp *w)
{
    const struct insn *code = mc->e->code;
    uint64_t instructions = 0, issued = w->issued;
    mc->cur = w;
    regroup(w);
    while (w->active) {
        const struct insn *in = mc->in = &code[w->now];
        uint32_t lanes = in->guard == NO_SLOT ? w->active : guard_lanes(mc, w, in);
        instructions += (uint64_t)__builtin_popcount(w->active);
        if (++issued > mc->budget)
            ptx_stop(mc, PTX_ENDLESS, first_lane(w->active), "a warp issued more than %llu instructions",
                     (unsigned long long)mc->budget);
        if (lanes && in->op > OP_LAST_ALU)
            check_sources(mc, w, in, lanes);
        switch (lanes ? in->op : OP_LAST_ALU) {
        default:
            if (lanes)
                run_alu(mc, w, in, lanes);
            break;
        case OP_LD:
        case OP_ST:
            ptx_load_store(mc, w, in, lanes);
            break;
        case OP_CP_ASYNC:
            ptx_copy_async(mc, w, in, lanes);
            break;
        case OP_CP_COMMIT:
            for (uint32_t rest = lanes; rest; rest &= rest - 1)
                w->group[first_lane(rest)]++;
            break;
        case OP_CP_WAIT:
            ptx_copy_wait(mc, w, lanes, (uint32_t)in->target, in->uniform);
            break;
        case OP_SHUFFLE:
            run_shuffle(mc, w, in, lanes);
            break;
        case OP_TRAP:
            ptx_stop(mc, PTX_TRAPPED, first_lane(lanes), "trap");
        case OP_BRA:
            if (in->uniform && lanes != w->active)
                ptx_stop(mc, PTX_DIVERGED, first_lane(w->active & ~lanes),
                         "a .uni branch that not all active threads take");
            branch(w, lanes, (uint32_t)in->target);
            continue;
        case OP_BRX:
            run_branch_table(mc, w, in, lanes);
            continue;
        case OP_EXIT:
            retire(w, lanes, NULL);
            release_warp_barrier(mc, w); /* an exited lane is no longer waited for */
            continue;
        case OP_BARRIER:
            retire(w, lanes, &w->at_barrier);
            continue;
        case OP_WARP_BARRIER:
            run_warp_barrier(mc, w, in, lanes);
            continue;
        }
        if (++w->now >= w->next)
            regroup(w);
    }
    w->issued = issued;
    mc->r->instructions += instructions;
}

/* ---- one block ---- */

/* All warps stopped running. Opens the barrier they wait at; 0 when all threads exited. Exited threads are
 * not waited for, as on sm_70 and later; all that wait have to wait at the same instruction. */
static int open_barrier(struct machine *mc)
{
    struct warp *first = NULL;
    uint32_t pc = 0, exited = 0;
    if (mc->deferred[0])
        ptx_stop_deferred(mc);
    for (uint32_t i = 0; i < mc->n_warps; i++) {
        struct warp *w = &mc->warps[i];
        mc->cur = w;
        if (w->at_warp_barrier) {
            int l = first_lane(w->at_warp_barrier);
            mc->in = &mc->e->code[w->pc[l]];
            ptx_stop(mc, PTX_DIVERGED, l, "waits at bar.warp.sync for threads that never come (mask 0x%x)",
                     w->member[l]);
        }
        for (uint32_t rest = w->at_barrier; rest; rest &= rest - 1) {
            int l = first_lane(rest);
            if (!first) {
                first = w;
                pc = w->pc[l];
            }
            if (w->pc[l] != pc) {
                mc->in = &mc->e->code[w->pc[l]];
                ptx_stop(mc, PTX_DIVERGED, l,
                         "waits here while another thread waits at the barrier of line %d",
                         mc->e->code[pc].line);
            }
        }
    }
    if (!first)
        return 0;
    for (uint32_t i = 0; i < mc->n_warps; i++) {
        struct warp *w = &mc->warps[i];
        uint32_t there =
            w->first_thread + LANES <= mc->n_threads ? ALL_LANES : ((uint32_t)1 << mc->n_threads % LANES) - 1;
        exited |= there & ~w->live;
        for (uint32_t rest = w->at_barrier; rest; rest &= rest - 1)
            w->pc[first_lane(rest)]++;
        w->at_barrier = 0;
    }
    mc->r->barriers++;
    mc->r->early_exits += exited != 0;
    if (++mc->interval >= (uint64_t)1 << 28)
        ptx_stop(mc, PTX_ENDLESS, -1, "more barriers and blocks than can be told apart in one launch");
    return 1;
}

static void set_special(struct machine *mc, struct warp *w, enum special which, const uint64_t *values)
{
    int slot = mc->e->special[which];
    if (slot == NO_SLOT)
        return;
    memcpy(w->reg[slot], values, LANES * sizeof *values);
    w->defined[slot] = ALL_LANES;
}

static void set_special_all(struct machine *mc, struct warp *w, enum special which, uint64_t value)
{
    uint64_t values[LANES];
    for (int l = 0; l < LANES; l++)
        values[l] = value;
    set_special(mc, w, which, values);
}

static void set_specials(struct machine *mc, struct warp *w)
{
    uint64_t v[9][LANES];
    const uint32_t *n = mc->l->block;
    for (uint32_t l = 0; l < LANES; l++) {
        uint32_t thread = w->first_thread + l, eq = (uint32_t)1 << l;
        uint64_t all[9] = {thread % n[0], thread / n[0] % n[1], thread / n[0] / n[1], l,        eq,
                           eq - 1,        eq | (eq - 1),        ~(eq | (eq - 1)),     ~(eq - 1)};
        for (int i = 0; i < 9; i++)
            v[i][l] = all[i];
    }
    for (int i = 0; i < 3; i++) {
        set_special(mc, w, SPECIAL_TID_X + i, v[i]);
        set_special_all(mc, w, SPECIAL_NTID_X + i, mc->l->block[i]);
        set_special_all(mc, w, SPECIAL_CTAID_X + i, mc->block[i]);
        set_special_all(mc, w, SPECIAL_NCTAID_X + i, mc->l->grid[i]);
    }
    for (int i = 0; i < 6; i++)
        set_special(mc, w, SPECIAL_LANEID + i, v[3 + i]);
    set_special_all(mc, w, SPECIAL_DYNAMIC_SMEM, mc->l->shared_bytes);
}

static void start_warp(struct machine *mc, struct warp *w)
{
    uint32_t threads = mc->n_threads - w->first_thread;
    memset(w->defined, 0, (size_t)mc->e->n_regs * sizeof *w->defined);
    memset(w->pc, 0, sizeof w->pc);
    memset(w->group, 0, sizeof w->group);
    w->live = threads >= LANES ? ALL_LANES : ((uint32_t)1 << threads) - 1;
    w->active = w->at_barrier = w->at_warp_barrier = w->syncs = 0;
    w->now = 0;
    w->issued = 0;
    w->n_copies = 0;
    set_specials(mc, w);
}

static void run_block(struct machine *mc)
{
    mc->block_start = mc->interval;
    if (mc->e->local_space)
        memset(mc->local_written, 0, mc->e->local_space * mc->n_threads);
    for (uint32_t i = 0; i < mc->n_warps; i++)
        start_warp(mc, &mc->warps[i]);
    do
        for (uint32_t i = 0; i < mc->n_warps; i++)
            run_warp(mc, &mc->warps[i]);
    while (open_barrier(mc));
    for (uint32_t i = 0; i < mc->n_warps; i++)
        mc->r->warp_instructions += mc->warps[i].issued;
    mc->in = NULL;
    mc->r->blocks++;
    mc->r->warps += mc->n_warps;
    mc->r->threads += mc->n_threads;
    if (++mc->interval >= (uint64_t)1 << 28)
        ptx_stop(mc, PTX_ENDLESS, -1, "more barriers and blocks than can be told apart in one launch");
}

/* ---- the launch ---- */

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
    for (uint32_t i = 0; i < mc->n_warps; i++) {
        mc->warps[i].reg = mc->reg_pool + i * n_regs;
        mc->warps[i].defined = mc->defined_pool + i * n_regs;
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
    free(mc->param);
    free(mc->shared);
    free(mc->shared_write);
    free(mc->shared_read);
    free(mc->local);
    free(mc->local_written);
}

static void run_grid(struct machine *mc)
{
    for (int i = 0; i < mc->m->n_entries; i++)
        if (!strcmp(mc->m->entries[i].name, mc->l->entry))
            mc->e = &mc->m->entries[i];
    if (!mc->e)
        ptx_stop(mc, PTX_BAD_LAUNCH, -1, "no entry %s", mc->l->entry);
    set_up(mc);
    for (mc->block[2] = 0; mc->block[2] < mc->l->grid[2]; mc->block[2]++)
        for (mc->block[1] = 0; mc->block[1] < mc->l->grid[1]; mc->block[1]++)
            for (mc->block[0] = 0; mc->block[0] < mc->l->grid[0]; mc->block[0]++)
                run_block(mc);
}

int ptx_run(struct ptx_world *w, const struct ptx_module *m, const struct ptx_launch *l,
            struct ptx_report *report)
{
    struct machine *mc = calloc(1, sizeof *mc);
    memset(report, 0, sizeof *report);
    if (!mc) {
        report->fault = PTX_NO_MEMORY;
        snprintf(report->error, sizeof report->error, "no memory: machine");
        return 1;
    }
    mc->m = m, mc->l = l, mc->w = w, mc->r = report;
    if (setjmp(mc->failed) == 0)
        run_grid(mc);
    tear_down(mc);
    free(mc);
    ptx_world_add(w, report);
    return report->fault != PTX_FINE;
}
