/* count.c: what one memory request of a warp costs in 32-byte sectors (global) or wavefronts (shared).
 * In: addresses of the lanes of a mask, bytes each lane asks for. Out: the count, and the least it could have
 * been for the same number of different bytes. Pure functions. */
#include "impl.h"

enum { SECTOR = 32, BANKS = 32, BANK_BYTES = 4 };

static int insert_sorted(uint64_t *sorted, int n, uint64_t v)
{
    int i = n;
    while (i > 0 && sorted[i - 1] > v)
        i--;
    if (i > 0 && sorted[i - 1] == v)
        return n;
    for (int j = n; j > i; j--)
        sorted[j] = sorted[j - 1];
    sorted[i] = v;
    return n + 1;
}

uint32_t ptx_count_sectors(const uint64_t *address, uint32_t lanes, uint32_t bytes, uint32_t *ideal)
{
    uint64_t start[LANES], sectors = 0, last = ~(uint64_t)0;
    int n = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        n = insert_sorted(start, n, address[first_lane(rest)]);
    /* Accesses are aligned to their size, at most a sector, so none touches two. */
    for (int i = 0; i < n; i++)
        if (start[i] / SECTOR != last) {
            last = start[i] / SECTOR;
            sectors++;
        }
    *ideal = ((uint32_t)n * bytes + SECTOR - 1) / SECTOR;
    return (uint32_t)sectors;
}

/* Wavefronts of up to 32 lanes that go together: the largest number of different words in one bank. */
static uint32_t count_group(const uint64_t *address, uint32_t lanes, uint32_t words)
{
    uint64_t word[BANKS][LANES];
    uint32_t n[BANKS] = {0}, most = 0;
    for (uint32_t rest = lanes; rest; rest &= rest - 1)
        for (uint32_t k = 0; k < words; k++) {
            uint64_t v = address[first_lane(rest)] / BANK_BYTES + k;
            uint32_t bank = v % BANKS, i = 0;
            while (i < n[bank] && word[bank][i] != v)
                i++;
            if (i < n[bank])
                continue; /* another lane reads the same word: broadcast */
            word[bank][n[bank]++] = v;
            if (n[bank] > most)
                most = n[bank];
        }
    return most;
}

/* 64-bit requests are served a half warp at a time, 128-bit ones a quarter warp. */
uint32_t ptx_count_wavefronts(const uint64_t *address, uint32_t lanes, uint32_t bytes, uint32_t *ideal)
{
    uint32_t groups = bytes <= 4 ? 1 : bytes / 4, per_group = LANES / groups, total = 0;
    *ideal = 0;
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t part = per_group == LANES ? lanes : lanes & ((1u << per_group) - 1) << g * per_group;
        if (!part)
            continue;
        total += count_group(address, part, bytes <= 4 ? 1 : bytes / 4);
        ++*ideal;
    }
    return total;
}
