/* machine.c: the rows of machine.h, and whose they are. A row is added by what `make machine` prints. What
 * the figures of a row rest on: bench/notes. Layer 3. */
#include "plan/machine.h"

#include <stddef.h>
#include <string.h>

/* ---- prices */

/* clang-format off */
/* Emerald Rapids, 2 vCPU, huge pages, 2026-11-21: bench/workloads.txt, bench/problems/ttc57.txt, and n x n
 * transposes, copies and fills of 1 KiB to 64 MiB. Its memory is shared with strangers: fetch[2] is 3.5 in
 * busy minutes. */
static const struct xti_prices emerald_prices = {
    .run = 8, .step = 25, .call = 5, .row = 1.5, .short_row = 1, .unit = 0.2,
    .fetch = {0.4, 1.6, 2.0}, .store = {1.3, 1.9, 3.9}, .stream = 2.7, .split = 12, .jump = 1.5,
    .together = 0.6, .beside = 0.5, .vector = 1, .picked = 1, .share = 0.15, .thread = 25000, .full = 1.7,
};
/* EPYC (Zen 5), 2 vCPU, huge pages, 2026-11: fitted to the 314 rows of one thread on huge pages in
 * bench/results/cpu-epyc-zen5-*.json, of which half came within 9 % and nine of ten within 26 %. */
static const struct xti_prices zen5_prices = {
    .run = 8, .step = 25, .call = 3.1, .row = 0.45, .short_row = 0.7, .unit = 0.2,
    .fetch = {0.68, 0.22, 1.3}, .store = {0.75, 0.55, 0.67}, .stream = 2, .split = 4, .jump = 0.33,
    .together = 0.3, .beside = 0.04, .vector = 0.45, .picked = 0.7, .share = 1, .thread = 25000, .full = 1.7,
};
/* clang-format on */

/* ---- rows */

enum { KB = 1 << 10, MB = 1 << 20 };

/* Lines that are left to the processor's own prefetching, too, come to the first cache, or, where they are
 * needed late or the first cache has other work, to the second. */
/* clang-format off */
#define TO_THE_CACHES(tiles)                                                                                 \
    {{[XTI_FETCHES_ROWS] = XTI_HINT_T0, [XTI_FETCHES_SHORT_PARTS] = XTI_HINT_T0,                             \
      [XTI_FETCHES_PARTS] = XTI_HINT_T1, [XTI_FETCHES_WEAVES] = XTI_HINT_T0,                                 \
      [XTI_FETCHES_STRIDED] = XTI_HINT_T1, [XTI_FETCHES_GATHERS] = XTI_HINT_T1, [XTI_FETCHES_TILES] = tiles}}
#define PAST_THE_CACHES(tiles)                                                                      \
    {{[XTI_FETCHES_ROWS] = XTI_HINT_NTA, [XTI_FETCHES_SHORT_PARTS] = XTI_HINT_NTA,                           \
      [XTI_FETCHES_PARTS] = XTI_HINT_NTA, [XTI_FETCHES_WEAVES] = XTI_HINT_NTA,                               \
      [XTI_FETCHES_STRIDED] = XTI_HINT_NTA, [XTI_FETCHES_GATHERS] = XTI_HINT_NTA,                            \
      [XTI_FETCHES_TILES] = tiles}}
/* clang-format on */

/* clang-format off */
#define ZEN .early_stores = true /* what Zen 3 to Zen 5 share */

static const struct xti_machine rows[] = {
    { /* what served on every machine where it was tried, or harmed none */
        "generic", 0, 0, 0, &emerald_prices, TO_THE_CACHES(XTI_HINT_T1),
        {.prefetch_writes = true, .gathers = 4}
    },
    { /* guessed: nothing was measured on any */
        "neon", 0, 0, 0, &emerald_prices, TO_THE_CACHES(XTI_HINT_T1),
        {.follows = 16}
    },
    {
        "emerald", 48 * KB, 2 * MB, 260 * MB, &emerald_prices, TO_THE_CACHES(XTI_HINT_T1),
        {.follows = 16, .prefetch_writes = true, .gathers = 4, .well_priced = true}
    },
    {
        "zen3", 32 * KB, 512 * KB, 32 * MB, &zen5_prices, TO_THE_CACHES(XTI_HINT_T0),
        {ZEN, .follows = 4}
    },
    {
        "zen4", 32 * KB, 1 * MB, 32 * MB, &zen5_prices, PAST_THE_CACHES(XTI_HINT_T1),
        {ZEN, .fetch_columns = true, .far_ahead = true, .splits_vectors = true}
    },
    {
        "zen5", 48 * KB, 1 * MB, 32 * MB, &zen5_prices, PAST_THE_CACHES(XTI_HINT_T0),
        {ZEN, .fetch_columns = true, .far_ahead = true}
    },
};
/* clang-format on */
enum { N_ROWS = sizeof rows / sizeof *rows };
const struct xti_machine *const xti_machine_careful = &rows[0];

/* ---- whose they are */

#define AMD   "AuthenticAMD"
#define INTEL "GenuineIntel"

/* Models by the lists of gcc and Linux: families 25 and 26 have two generations each. */
static const struct {
    const char *vendor;
    unsigned family, low, high; /* models */
    const char *name;
} of_processor[] = {
    {AMD, 25, 0x00, 0x0f, "zen3"},     {AMD, 25, 0x20, 0x5f, "zen3"},
    {AMD, 25, 0x10, 0x1f, "zen4"},     {AMD, 25, 0x60, 0x7f, "zen4"},
    {AMD, 25, 0xa0, 0xaf, "zen4"},     {AMD, 26, 0x00, 0x4f, "zen5"},
    {AMD, 26, 0x60, 0x7f, "zen5"},     {INTEL, 6, 0xcf, 0xcf, "emerald"},
    {INTEL, 6, 0x8f, 0x8f, "emerald"}, /* Sapphire Rapids: the same core, not measured */
    {"ARM", 0, 0, ~0u, "neon"},
};

const struct xti_machine *xti_machine_find(const char *vendor, unsigned family, unsigned model)
{
    for (size_t i = 0; i < sizeof of_processor / sizeof *of_processor; i++)
        if (!strcmp(of_processor[i].vendor, vendor) && of_processor[i].family == family &&
            of_processor[i].low <= model && model <= of_processor[i].high)
            return xti_machine_named(of_processor[i].name);
    return xti_machine_careful;
}

const struct xti_machine *xti_machine_named(const char *name)
{
    for (int i = 0; i < N_ROWS; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

const struct xti_machine *xti_machine_at(int i) { return i >= 0 && i < N_ROWS ? &rows[i] : NULL; }
