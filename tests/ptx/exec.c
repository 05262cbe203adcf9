/* exec.c: runs a block: its warps in turn up to their next barrier, the lanes of a warp in lockstep.
 * In: a machine that launch.c set up. Out: the world's bytes and the report.
 * The active lanes of a warp are the running ones at the lowest program counter, so that branches come
 * together again at the first instruction both sides reach. */
#include "impl.h"

#include <stdbool.h>
#include <string.h>

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

static uint32_t defined_lanes(const struct warp *w, int slot)
{
    return slot < 0 ? ALL_LANES : w->defined[slot];
}

/* What a lane gets that was never written is unwritten there, too, and no fault: rows are shifted with words
 * beside them that nobody uses. */
static void run_shuffle(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t *b = slot_values(mc, w, in->src[1]), *c = slot_values(mc, w, in->src[2]);
    const uint64_t *members = slot_values(mc, w, in->src[3]);
    uint64_t a[LANES], d[LANES];
    uint32_t inside = 0, defined = defined_lanes(w, in->src[0]), unwritten = 0;
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
        unwritten |= (~defined >> from & 1) << l;
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
    if (unwritten && in->dst[0] != NO_SLOT) {
        w->defined[in->dst[0]] &= ~unwritten;
        for (int j = 0; j < 4; j++)
            w->part[in->dst[0]][j] &= ~unwritten;
        if (!mc->undefined_line)
            mc->undefined_line = in->line;
    }
}

static void run_ballot(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes)
{
    const uint64_t *vote = slot_values(mc, w, in->src[0]), *members = slot_values(mc, w, in->src[1]);
    uint32_t yes = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int l = first_lane(rest);
        if (((uint32_t)members[l] & w->live) != lanes)
            ptx_stop(mc, PTX_DIVERGED, l, "vote.sync with mask 0x%x while the threads 0x%x are here",
                     (uint32_t)members[l], lanes);
        yes |= (uint32_t)((vote[l] & 1) != in->flip) << l;
    }
    if (in->dst[0] == NO_SLOT)
        return;
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        w->reg[in->dst[0]][first_lane(rest)] = yes;
    w->defined[in->dst[0]] |= lanes;
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

/* Sources of what has an effect (addresses, stored values, branches, but not what is shuffled): none may be
 * undefined. */
static void check_sources(struct machine *mc, const struct warp *w, const struct insn *in, uint32_t lanes)
{
    for (int i = in->op == OP_SHUFFLE; i < in->n_src; i++) {
        uint32_t bad = lanes & ~defined_lanes(w, in->src[i]);
        if (bad)
            ptx_stop(
                mc, PTX_UNINITIALISED, first_lane(bad),
                "source operand %d of the instruction comes from a register that was never written, read in "
                "line %d",
                i + 1, mc->undefined_line ? mc->undefined_line : in->line);
    }
}

static uint32_t defined_byte(const struct warp *w, int slot, int byte)
{
    return slot < 0 ? ALL_LANES : w->defined[slot] | w->part[slot][byte];
}

/* Where byte i of the result of prmt, of a vector's mov or of bfi of whole bytes comes from, in one lane:
 * source and byte; false: not known. */
static bool source_byte(const struct machine *mc, const struct warp *w, const struct insn *in, int l, int i,
                        int *source, int *byte)
{
    if (in->op == OP_PRMT && !in->sub) {
        uint64_t selector = slot_values(mc, w, in->src[2])[l] >> 4 * i;
        *source = (int)(selector >> 2 & 1);
        *byte = (int)(selector & 3);
        return defined_lanes(w, in->src[2]) >> l & 1;
    }
    if (in->op == OP_PACK && in->bits == 32) {
        *source = 8 * i / in->sub;
        *byte = i - *source * in->sub / 8;
        return true;
    }
    if (in->op == OP_BFI && in->bits == 32) {
        uint64_t pos = slot_values(mc, w, in->src[2])[l], len = slot_values(mc, w, in->src[3])[l];
        uint64_t bit = 8 * (uint64_t)i;
        *source = bit >= pos && bit < pos + len ? 0 : 1;
        *byte = *source ? i : i - (int)(pos / 8);
        return pos % 8 == 0 && len % 8 == 0 && pos < 32 && len <= 32 &&
               (defined_lanes(w, in->src[2]) & defined_lanes(w, in->src[3])) >> l & 1;
    }
    return false;
}

/* The lanes in which byte i of the result was written, of a result that as a whole was not. Compilers fill
 * the bytes that dp2a does not read with anything. */
static uint32_t written_byte(const struct machine *mc, const struct warp *w, const struct insn *in, int i)
{
    uint32_t lanes = 0;
    int source = 0, byte = 0;
    for (int l = 0; l < LANES; l++)
        if (source_byte(mc, w, in, l, i, &source, &byte))
            lanes |= defined_byte(w, in->src[source], byte) & (uint32_t)1 << l;
    return lanes;
}

/* dp2a reads two bytes of its second operand. */
static uint32_t dot_lanes(const struct warp *w, const struct insn *in)
{
    int first = in->sub & 8 ? 2 : 0;
    return in->sub & 12 ? defined_byte(w, in->src[1], first) & defined_byte(w, in->src[1], first + 1) : 0;
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
        if (in->op == OP_DOT)
            fine = (da & dc & dot_lanes(w, in)) >> l & 1;
        else if (in->op == OP_SELP)
            fine = dc >> l & (c[l] ? da : db) >> l & 1;
        else if (in->op == OP_AND || in->op == OP_OR)
            fine = (da >> l & 1 && a[l] == decides) || (db >> l & 1 && b[l] == decides);
        rescued |= (uint32_t)fine << l;
    }
    return rescued;
}

/* The lanes in which part k of a word that was not written as a whole was. */
static uint32_t written_part(const struct warp *w, const struct insn *in, int k)
{
    uint32_t lanes = in->op == OP_UNPACK && in->bits == 32 ? ALL_LANES : 0;
    for (int i = 0; i < in->sub / 8 && lanes; i++)
        lanes &= defined_byte(w, in->src[0], k * in->sub / 8 + i);
    return lanes;
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
    uint32_t part[4], whole[MAX_VECTOR] = {0}, any = 0;
    for (int i = 0; i < 4; i++)
        any |= part[i] = bad && (in->op == OP_PRMT || in->op == OP_BFI || in->op == OP_PACK)
                             ? written_byte(mc, w, in, i) & bad
                             : 0;
    for (int i = 0; i < in->n_dst && in->op == OP_UNPACK; i++)
        any |= whole[i] = written_part(w, in, i) & bad;
    if ((lanes & ~bad) | any)
        ptx_alu(mc, w, in, (lanes & ~bad) | any);
    for (int i = 0; i < in->n_dst; i++)
        if (in->dst[i] != NO_SLOT) {
            w->defined[in->dst[i]] &= ~bad | whole[i];
            for (int j = 0; j < 4; j++)
                w->part[in->dst[i]][j] = (w->part[in->dst[i]][j] & ~bad) | part[j];
        }
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
            ptx_watch(mc, w, PTX_SEEN_WAIT, lanes, 0, NULL, NULL);
            break;
        case OP_SHUFFLE:
            run_shuffle(mc, w, in, lanes);
            break;
        case OP_BALLOT:
            run_ballot(mc, w, in, lanes);
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
            ptx_watch(mc, w, PTX_SEEN_WAIT, lanes, 0, NULL, NULL);
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
    memset(w->part, 0, (size_t)mc->e->n_regs * sizeof *w->part);
    memset(w->pc, 0, sizeof w->pc);
    memset(w->group, 0, sizeof w->group);
    w->live = threads >= LANES ? ALL_LANES : ((uint32_t)1 << threads) - 1;
    w->active = w->at_barrier = w->at_warp_barrier = w->syncs = 0;
    w->now = 0;
    w->issued = 0;
    w->n_copies = 0;
    set_specials(mc, w);
}

void ptx_run_block(struct machine *mc)
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
