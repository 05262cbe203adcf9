/* memory.c: every load and store with its checks.
 * In: addresses of the active lanes. Out: registers or bytes, counters, or the first fault.
 * Always holds: a byte of a destination is marked in `written` exactly when a store to it went through. */
#include "impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- where an address leads ---- */

static const char *const verb[] = {"load", "store"};

const struct range *ptx_find_range(struct machine *mc, enum space space, uint64_t address, uint64_t bytes)
{
    const struct range *r = mc->ranges[space];
    int last = mc->last_range[space];
    if (last < mc->n_ranges[space] && address >= r[last].lo && address < r[last].hi &&
        r[last].hi - address >= bytes)
        return &r[last];
    for (int i = 0; i < mc->n_ranges[space]; i++)
        if (address >= r[i].lo && address < r[i].hi && r[i].hi - address >= bytes) {
            mc->last_range[space] = i;
            return &r[i];
        }
    return NULL;
}

/* The variable that begins closest below the address, for the message. */
static _Noreturn void stop_outside(struct machine *mc, int lane, enum space space, uint64_t address,
                                   uint64_t bytes, int store)
{
    static const char *const names[] = {"generic", "global", "shared", "local", "param", "const"};
    const struct range *near = NULL;
    for (int i = 0; i < mc->n_ranges[space]; i++)
        if (mc->ranges[space][i].lo <= address && (!near || mc->ranges[space][i].lo > near->lo))
            near = &mc->ranges[space][i];
    if (near)
        ptx_stop(mc, PTX_OUT_OF_BOUNDS, lane, "%s of %d bytes at %s %s+%llu (of %llu bytes)", verb[store],
                 (int)bytes, names[space], near->var->name, (unsigned long long)(address - near->lo),
                 (unsigned long long)(near->hi - near->lo));
    ptx_stop(mc, PTX_OUT_OF_BOUNDS, lane, "%s of %d bytes at %s address 0x%llx, where nothing lies",
             verb[store], (int)bytes, names[space], (unsigned long long)address);
}

static void check_alignment(struct machine *mc, int lane, enum space space, uint64_t address, uint64_t align,
                            int store)
{
    char name[96];
    if ((address & (align - 1)) == 0)
        return;
    if (space == SPACE_GLOBAL) {
        ptx_name_address(mc->w, address, name, sizeof name);
        ptx_stop(mc, PTX_MISALIGNED, lane, "%s at %s needs a multiple of %d", verb[store], name, (int)align);
    }
    ptx_stop(mc, PTX_MISALIGNED, lane, "%s at address 0x%llx needs a multiple of %d", verb[store],
             (unsigned long long)address, (int)align);
}

static unsigned char *host_bytes(struct machine *mc, const struct world_buffer *b, int lane, uint64_t off,
                                 uint64_t bytes, int store)
{
    if (b->base || !bytes)
        return b->base + off;
    for (uint64_t i = 0; !store && i < bytes; i++)
        mc->imagined[lane][i] = ptx_imagined((int)(b - mc->w->b), off + i);
    return mc->imagined[lane];
}

/* Checks a global access of `bytes` bytes that do not cross a multiple of 64, marks a store. Returns its host
 * bytes. */
static unsigned char *reach_global(struct machine *mc, int lane, uint64_t address, uint64_t bytes, int store)
{
    uint64_t slot = address >> SLOT_SHIFT;
    char name[96];
    if (slot == 0 && ptx_find_range(mc, SPACE_GLOBAL, address, bytes)) {
        if (store)
            ptx_stop(mc, PTX_FORBIDDEN, lane, "store to a module variable");
        return mc->m->global_image + (address - SLOT_BASE(0));
    }
    if (slot == 0 || slot > (uint64_t)mc->w->n)
        stop_outside(mc, lane, SPACE_GLOBAL, address, bytes, store);

    struct world_buffer *b = &mc->w->b[slot - 1];
    uint64_t off = address - SLOT_BASE(slot);
    if (off > b->bytes || b->bytes - off < bytes) {
        ptx_name_address(mc->w, address, name, sizeof name);
        ptx_stop(mc, PTX_OUT_OF_BOUNDS, lane, "%s of %d bytes at %s", verb[store], (int)bytes, name);
    }
    uint64_t bits = (bytes == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bytes) - 1) << off % 64;
    if (!b->writable && !store)
        return host_bytes(mc, b, lane, off, bytes, store);

    const char *wrong = NULL;
    enum ptx_fault fault = PTX_FORBIDDEN;
    if (!b->writable)
        wrong = "store to a source";
    else if (!store && !b->scratch)
        wrong = "load from a destination";
    else if (!store && (b->written[off / 64] & bits) != bits)
        wrong = "load of scratch bytes that were not written", fault = PTX_UNINITIALISED;
    else if (store && b->allowed && (b->allowed[off / 64] & bits) != bits)
        wrong = "store to a byte that must stay untouched";
    else if (store && !b->scratch && (b->written[off / 64] & bits))
        wrong = "second store to a byte", fault = PTX_WRITTEN_TWICE;
    if (wrong) {
        ptx_name_address(mc->w, address, name, sizeof name);
        ptx_stop(mc, fault, lane, "%s: %d bytes at %s", wrong, (int)bytes, name);
    }
    if (store)
        b->written[off / 64] |= bits;
    return host_bytes(mc, b, lane, off, bytes, store);
}

/* ---- loads and stores ---- */

static unsigned char *reach_local(struct machine *mc, struct warp *w, int lane, uint64_t address,
                                  uint64_t bytes, int store)
{
    const struct range *r = ptx_find_range(mc, SPACE_LOCAL, address, bytes);
    if (!r)
        stop_outside(mc, lane, SPACE_LOCAL, address, bytes, store);
    size_t at = (w->first_thread + (size_t)lane) * mc->e->local_space + address;
    for (uint64_t i = 0; i < bytes; i++) {
        if (!store && !mc->local_written[at + i])
            ptx_stop(mc, PTX_UNINITIALISED, lane, "local %s+%llu", r->var->name,
                     (unsigned long long)(address + i - r->lo));
        mc->local_written[at + i] = 1;
    }
    return mc->local + at;
}

static unsigned char *reach(struct machine *mc, struct warp *w, int lane, enum space space, uint64_t address,
                            uint64_t bytes, int store)
{
    check_alignment(mc, lane, space, address, bytes, store);
    if (space == SPACE_GLOBAL)
        return reach_global(mc, lane, address, bytes, store);
    if (space == SPACE_LOCAL)
        return reach_local(mc, w, lane, address, bytes, store);
    if (!ptx_find_range(mc, space, address, bytes))
        stop_outside(mc, lane, space, address, bytes, store);
    if (space == SPACE_SHARED) {
        ptx_note_shared(mc, w, lane, address, bytes, store, 0);
        return mc->shared + address;
    }
    if (store)
        ptx_stop(mc, PTX_FORBIDDEN, lane, "store to parameters or constants");
    return space == SPACE_PARAM ? mc->param + address : mc->m->const_image + address;
}

static uint64_t get(const unsigned char *from, int size)
{
    uint16_t h;
    uint32_t w;
    uint64_t d;
    /* clang-format off */
    switch (size) {
    case 1: return *from;
    case 2: memcpy(&h, from, 2); return h;
    case 4: memcpy(&w, from, 4); return w;
    default: memcpy(&d, from, 8); return d;
    }
    /* clang-format on */
}

static void put(unsigned char *to, uint64_t value, int size)
{
    uint16_t h = (uint16_t)value;
    uint32_t w = (uint32_t)value;
    /* clang-format off */
    switch (size) {
    case 1: *to = (unsigned char)value; break;
    case 2: memcpy(to, &h, 2); break;
    case 4: memcpy(to, &w, 4); break;
    default: memcpy(to, &value, 8); break;
    }
    /* clang-format on */
}

static void count_global(struct machine *mc, const uint64_t *address, uint32_t lanes, uint32_t bytes,
                         uint64_t asked, int store)
{
    uint32_t ideal, sectors = ptx_count_sectors(address, lanes, bytes, &ideal);
    struct ptx_report *r = mc->r;
    *(store ? &r->store_requests : &r->load_requests) += 1;
    *(store ? &r->store_sectors : &r->load_sectors) += sectors;
    *(store ? &r->store_bytes : &r->load_bytes) += asked;
    if (sectors - ideal > mc->worst_sectors) {
        mc->worst_sectors = sectors - ideal;
        r->worst_sector_line = mc->in->line;
    }
}

static void count_shared(struct machine *mc, const uint64_t *address, uint32_t lanes, uint32_t bytes,
                         int store)
{
    uint32_t ideal, wavefronts = ptx_count_wavefronts(address, lanes, bytes, &ideal);
    struct ptx_report *r = mc->r;
    *(store ? &r->shared_store_requests : &r->shared_load_requests) += 1;
    *(store ? &r->shared_store_wavefronts : &r->shared_load_wavefronts) += wavefronts;
    *(store ? &r->shared_store_ideal : &r->shared_load_ideal) += ideal;
    if (wavefronts - ideal > mc->worst_shared) {
        mc->worst_shared = wavefronts - ideal;
        r->worst_shared_line = mc->in->line;
    }
}

static void count(struct machine *mc, enum space space, const uint64_t *address, uint32_t lanes,
                  uint32_t bytes, int store)
{
    if (space == SPACE_GLOBAL)
        count_global(mc, address, lanes, bytes, (uint64_t)__builtin_popcount(lanes) * bytes, store);
    else if (space == SPACE_SHARED)
        count_shared(mc, address, lanes, bytes, store);
    else if (space == SPACE_LOCAL)
        mc->r->local_requests++;
}

static void transfer(struct machine *mc, struct warp *w, const struct insn *in, enum space space,
                     uint32_t lanes, const uint64_t *address)
{
    int store = in->op == OP_ST;
    uint32_t bytes = (uint32_t)in->size * in->n;
    unsigned char *host[LANES];
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int l = first_lane(rest);
        host[l] = reach(mc, w, l, space, address[l], bytes, store);
    }
    for (int i = 0; i < in->n; i++) {
        if (!store && in->dst[i] == NO_SLOT)
            continue;
        const uint64_t *from = store ? slot_values(mc, w, in->src[1 + i]) : NULL;
        uint64_t *to = store ? NULL : w->reg[in->dst[i]];
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            int l = first_lane(rest);
            unsigned char *at = host[l] + i * in->size;
            if (store) {
                put(at, from[l], in->size);
                continue;
            }
            uint64_t value = get(at, in->size);
            to[l] = in->is_signed ? (uint64_t)((int64_t)(value << in->sh) >> in->sh) & in->mask : value;
        }
        if (!store && in->unused >> i & 1) {
            w->defined[in->dst[i]] &= ~lanes;
            for (int k = 0; k < 4; k++)
                w->part[in->dst[i]][k] &= ~lanes;
        } else if (!store) {
            w->defined[in->dst[i]] |= lanes;
        }
    }
    count(mc, space, address, lanes, bytes, store);
    if (space == SPACE_GLOBAL)
        ptx_watch(mc, w, store ? PTX_SEEN_STORE : PTX_SEEN_LOAD, lanes, bytes, address, store ? host : NULL);
    else if (space == SPACE_SHARED && store)
        ptx_watch(mc, w, PTX_SEEN_SHARED, lanes, bytes, address, host);
}

void ptx_watch(struct machine *mc, const struct warp *w, enum ptx_seen seen, uint32_t lanes, uint32_t bytes,
               const uint64_t *address, unsigned char *const *data)
{
    const uint32_t *n = mc->l->grid, *b = mc->block;
    struct ptx_access a = {.seen = seen,
                           .block = b[0] + n[0] * (b[1] + (uint64_t)n[1] * b[2]),
                           .warp = w->first_thread / LANES,
                           .lanes = lanes,
                           .bytes = bytes,
                           .address = address,
                           .data = (const unsigned char *const *)data};
    if (mc->sample->watch)
        mc->sample->watch(mc->sample->arg, &a);
}

static void add_offset(uint64_t *address, const uint64_t *base, int64_t offset, uint64_t mask)
{
    for (int l = 0; l < LANES; l++)
        address[l] = (base[l] + (uint64_t)offset) & mask;
}

void ptx_load_store(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t address[LANES];
    add_offset(address, slot_values(mc, w, in->src[0]), in->offset, in->address_mask);
    if (in->space != SPACE_GENERIC) {
        transfer(mc, w, in, (enum space)in->space, lanes, address);
        return;
    }
    /* Lanes of one generic access may point into different spaces: one request for each space. */
    for (int space = SPACE_GLOBAL; space < SPACES; space++) {
        uint32_t part = 0;
        for (uint32_t rest = lanes; rest; rest &= rest - 1) {
            int l = first_lane(rest);
            if ((address[l] & WINDOW_MASK) == WINDOW(space)) {
                part |= (uint32_t)1 << l;
                address[l] -= WINDOW(space);
            }
        }
        if (part)
            transfer(mc, w, in, (enum space)space, part, address);
        lanes &= ~part;
    }
    if (lanes)
        ptx_stop(mc, PTX_OUT_OF_BOUNDS, first_lane(lanes), "generic address 0x%llx of no space",
                 (unsigned long long)address[first_lane(lanes)]);
}

/* ---- cp.async ----
 * The source is read and the destination claimed when the copy is issued; the bytes arrive when its thread
 * waits. Between the two nobody may touch the destination. */
static void issue_copy(struct machine *mc, struct warp *w, const struct insn *in, int lane, uint64_t to,
                       uint64_t from, uint64_t wanted)
{
    struct copy c = {.to = (uint32_t)to, .group = w->group[lane], .size = in->size, .lane = (uint8_t)lane};
    if (wanted > in->size)
        ptx_stop(mc, PTX_OUT_OF_BOUNDS, lane, "cp.async of %d bytes with a source size of %llu", in->size,
                 (unsigned long long)wanted);
    check_alignment(mc, lane, SPACE_SHARED, to, in->size, 1);
    if (!ptx_find_range(mc, SPACE_SHARED, to, in->size))
        stop_outside(mc, lane, SPACE_SHARED, to, in->size, 1);
    if (wanted) {
        check_alignment(mc, lane, SPACE_GLOBAL, from, in->size, 0);
        memcpy(c.data, reach_global(mc, lane, from, wanted, 0), wanted);
    }
    ptx_note_shared(mc, w, lane, to, in->size, 1, PTX_PENDING);
    if (w->n_copies == w->cap_copies) {
        int cap = w->cap_copies ? 2 * w->cap_copies : 128;
        struct copy *more = realloc(w->copies, (size_t)cap * sizeof *more);
        if (!more)
            ptx_stop(mc, PTX_NO_MEMORY, lane, "cp.async queue of %d", cap);
        w->copies = more;
        w->cap_copies = cap;
    }
    w->copies[w->n_copies++] = c;
}

void ptx_copy_async(struct machine *mc, struct warp *w, const struct insn *in, uint32_t lanes)
{
    uint64_t to[LANES], from[LANES], asked = 0;
    const uint64_t *wanted = in->n_src > 2 ? slot_values(mc, w, in->src[2]) : NULL;
    uint32_t reading = 0;
    add_offset(to, slot_values(mc, w, in->src[0]), in->offset, in->address_mask);
    add_offset(from, slot_values(mc, w, in->src[1]), in->offset2, ~(uint64_t)0);
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        int l = first_lane(rest);
        uint64_t n = wanted ? wanted[l] : in->size;
        issue_copy(mc, w, in, l, to[l], from[l], n);
        asked += n;
        reading |= (uint32_t)(n != 0) << l;
    }
    count_shared(mc, to, lanes, in->size, 1);
    if (!reading)
        return;
    count_global(mc, from, reading, in->size, asked, 0);
    ptx_watch(mc, w, PTX_SEEN_LOAD, reading, in->size, from, NULL);
}

void ptx_copy_wait(struct machine *mc, struct warp *w, uint32_t lanes, uint32_t pending, int all)
{
    int kept = 0;
    for (int i = 0; i < w->n_copies; i++) {
        struct copy *c = &w->copies[i];
        uint64_t granule = (uint64_t)mc->e->shared_granule;
        if (!(lanes >> c->lane & 1) || (!all && c->group + pending >= w->group[c->lane])) {
            w->copies[kept++] = *c;
            continue;
        }
        memcpy(mc->shared + c->to, c->data, c->size);
        for (uint64_t at = c->to; at < c->to + (uint64_t)c->size; at += granule)
            mc->shared_write[at / granule] = ptx_record_now(mc, w, c->lane);
    }
    w->n_copies = kept;
}
