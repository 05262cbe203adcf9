/* race.c: races in shared memory, and reads of what nobody wrote.
 * A shadow word a granule for the last write, another for the reads: interval << 36 | syncs << 16 | who.
 * Intervals are numbered through the launch, one more at each block-wide barrier and at each new block, so
 * that nothing has to be cleared; syncs counts the full-warp bar.warp.sync of the warp. Two accesses of
 * different threads to one granule in one interval, one of them a write, are a race, unless both are of one
 * warp and a full bar.warp.sync lies between. */
#include "impl.h"

#include <stdio.h>

enum { WHO_BITS = 16, SYNC_BITS = 20, INTERVAL_SHIFT = WHO_BITS + SYNC_BITS };
enum { WHO_THREAD = 0x3FFF, WHO_PENDING = PTX_PENDING, WHO_WARP = 0x8000, WHO_MANY = 0xFFFF };

static uint32_t who(uint64_t record) { return (uint32_t)(record & 0xFFFF); }
static uint64_t syncs(uint64_t record) { return record >> WHO_BITS & ((1u << SYNC_BITS) - 1); }

/* Threads are stored plus one, so that an empty record names nobody. */
static uint32_t warp_of(uint32_t whoever)
{
    return whoever & WHO_WARP ? whoever & WHO_THREAD : ((whoever & WHO_THREAD) - 1) / LANES;
}

uint64_t ptx_record_now(const struct machine *mc, const struct warp *w, int lane)
{
    return mc->interval << INTERVAL_SHIFT | (uint64_t)w->syncs << WHO_BITS |
           (w->first_thread + (uint32_t)lane + 1);
}

/* Both of the current interval, by different threads. */
static int is_ordered(uint64_t before, uint64_t now)
{
    return who(before) != WHO_MANY && warp_of(who(before)) == warp_of(who(now)) && syncs(before) < syncs(now);
}

static int is_conflict(const struct machine *mc, uint64_t before, uint64_t now)
{
    return before >> INTERVAL_SHIFT == mc->interval && who(before) != who(now) && !is_ordered(before, now);
}

static _Noreturn void stop_race(struct machine *mc, int lane, uint64_t address, uint64_t before,
                                const char *what)
{
    char other[64], name[48];
    const struct range *r = ptx_find_range(mc, SPACE_SHARED, address, 1);
    if (who(before) & WHO_WARP)
        snprintf(other, sizeof other, "several threads");
    else
        snprintf(other, sizeof other, "thread %s",
                 ptx_name_thread(mc, (who(before) & WHO_THREAD) - 1, name, sizeof name));
    ptx_stop(mc, PTX_RACE, lane, "%s %s, without a barrier between, at shared %s+%llu", what, other,
             r ? r->var->name : "?", (unsigned long long)(r ? address - r->lo : address));
}

void ptx_note_shared(struct machine *mc, struct warp *w, int lane, uint64_t address, uint64_t bytes,
                     int store, uint32_t pending)
{
    uint64_t granule = (uint64_t)mc->e->shared_granule, now = ptx_record_now(mc, w, lane);
    for (uint64_t at = address; at < address + bytes; at += granule) {
        uint64_t *write = &mc->shared_write[at / granule], *read = &mc->shared_read[at / granule];
        int written = *write >= mc->block_start << INTERVAL_SHIFT;
        if (written && *write & WHO_PENDING)
            stop_race(mc, lane, at, *write,
                      store ? "overwrites a cp.async not waited for of"
                            : "reads a cp.async not waited for of");
        if (is_conflict(mc, *write, now))
            stop_race(mc, lane, at, *write, store ? "overwrites a value of" : "reads a value of");
        if (store) {
            if (is_conflict(mc, *read, now))
                stop_race(mc, lane, at, *read, "overwrites what was read by");
            *write = now | pending;
            continue;
        }
        if (!written) {
            const struct range *r = ptx_find_range(mc, SPACE_SHARED, at, 1);
            ptx_defer(mc, lane, "shared %s+%llu was not written by this block", r->var->name,
                      (unsigned long long)(at - r->lo));
        }
        if (*read >> INTERVAL_SHIFT != mc->interval || who(*read) == who(now) || is_ordered(*read, now))
            *read = now;
        else if (who(*read) != WHO_MANY && warp_of(who(*read)) == warp_of(who(now)))
            *read = (now & ~(uint64_t)0xFFFF) | WHO_WARP | warp_of(who(now));
        else
            *read |= WHO_MANY;
    }
}
