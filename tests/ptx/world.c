/* world.c: the buffers of a world, which of their bytes have to be and were written, sums over launches. */
#include "impl.h"

#include <stdlib.h>

static size_t bit_words(size_t bytes) { return bytes / 64 + 1; }

struct ptx_world *ptx_world_new(const struct ptx_buffer *b, int n)
{
    struct ptx_world *w = n < 0 || n > 4000 ? NULL : calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->n = n;
    if (!(w->b = calloc((size_t)n + 1, sizeof *w->b)))
        goto failed;
    for (int i = 0; i < n; i++) {
        struct world_buffer *to = &w->b[i];
        *to = (struct world_buffer){b[i].base, b[i].bytes, b[i].writable, b[i].scratch, NULL, NULL};
        if (!b[i].writable)
            continue;
        if (!(to->written = calloc(bit_words(to->bytes), sizeof *to->written)))
            goto failed;
        if (!b[i].must_write)
            continue;
        if (!(to->allowed = calloc(bit_words(to->bytes), sizeof *to->allowed)))
            goto failed;
        for (size_t k = 0; k < to->bytes; k++)
            if (b[i].must_write[k])
                to->allowed[k / 64] |= (uint64_t)1 << k % 64;
    }
    return w;
failed:
    ptx_world_free(w);
    return NULL;
}

void ptx_world_free(struct ptx_world *w)
{
    if (!w)
        return;
    for (int i = 0; w->b && i < w->n; i++) {
        free(w->b[i].allowed);
        free(w->b[i].written);
    }
    free(w->b);
    free(w);
}

uint64_t ptx_address(const struct ptx_world *w, int buffer, int64_t byte_offset)
{
    (void)w;
    return SLOT_BASE(buffer + 1) + (uint64_t)byte_offset;
}

int ptx_locate(uint64_t address, int64_t *byte_offset)
{
    uint64_t slot = address >> SLOT_SHIFT;
    *byte_offset = (int64_t)(address - SLOT_BASE(slot));
    return (int)slot - 1;
}

/* splitmix64 of eight bytes' place. */
static uint64_t imagined_word(int buffer, uint64_t word)
{
    uint64_t z = ((uint64_t)buffer << 56 ^ word) + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

unsigned char ptx_imagined(int buffer, uint64_t offset)
{
    return (unsigned char)(imagined_word(buffer, offset / 8) >> offset % 8 * 8);
}

void ptx_world_add(struct ptx_world *w, const struct ptx_report *r)
{
    static const size_t counters[] = {offsetof(struct ptx_report, threads),
                                      offsetof(struct ptx_report, warps),
                                      offsetof(struct ptx_report, blocks),
                                      offsetof(struct ptx_report, instructions),
                                      offsetof(struct ptx_report, warp_instructions),
                                      offsetof(struct ptx_report, load_requests),
                                      offsetof(struct ptx_report, load_sectors),
                                      offsetof(struct ptx_report, load_bytes),
                                      offsetof(struct ptx_report, store_requests),
                                      offsetof(struct ptx_report, store_sectors),
                                      offsetof(struct ptx_report, store_bytes),
                                      offsetof(struct ptx_report, shared_load_requests),
                                      offsetof(struct ptx_report, shared_load_wavefronts),
                                      offsetof(struct ptx_report, shared_load_ideal),
                                      offsetof(struct ptx_report, shared_store_requests),
                                      offsetof(struct ptx_report, shared_store_wavefronts),
                                      offsetof(struct ptx_report, shared_store_ideal),
                                      offsetof(struct ptx_report, local_requests),
                                      offsetof(struct ptx_report, barriers),
                                      offsetof(struct ptx_report, early_exits)};
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        *(uint64_t *)((char *)&w->total + counters[i]) += *(const uint64_t *)((const char *)r + counters[i]);
}

int ptx_finish(struct ptx_world *w, struct ptx_report *report)
{
    struct machine mc = {.w = w, .r = report};
    *report = w->total;
    if (setjmp(mc.failed))
        return 1;
    for (int i = 0; i < w->n; i++) {
        const struct world_buffer *b = &w->b[i];
        size_t first = 0, missing = 0;
        for (size_t k = 0; b->writable && !b->scratch && k < bit_words(b->bytes); k++) {
            size_t left = b->bytes - (k * 64 < b->bytes ? k * 64 : b->bytes);
            uint64_t wanted = left >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << left) - 1;
            uint64_t lost = wanted & (b->allowed ? b->allowed[k] : wanted) & ~b->written[k];
            if (lost && !missing)
                first = k * 64 + (size_t)__builtin_ctzll(lost);
            missing += (size_t)__builtin_popcountll(lost);
        }
        if (missing)
            ptx_stop(&mc, PTX_NOT_WRITTEN, -1,
                     "%zu bytes of buffer %d (of %zu bytes), the first at buffer %d+%zu", missing, i,
                     b->bytes, i, first);
    }
    return 0;
}
