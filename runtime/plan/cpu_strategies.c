/* cpu_strategies.c: how a piece can be copied on a CPU, from the most special to the one that serves
 * everything. Layer 3. */
#include "plan/cpu_strategies.h"

/* clang-format off */
#define ROW(name, by, what, ...)                                                                             \
    {#name, what, .applicable = xti_##name##_applies, xti_##name##_make, XTI_RIVALS_##by, .how = __VA_ARGS__}

const struct xti_strategy xti_cpu_strategies[XTI_N_STRATEGIES] = {
    {"memcpy", "a plain copy", "it is copied whole", xti_memcpy_applies, .make = xti_rows_make},
    ROW(fill, NONE, "a fill", NULL),
    ROW(mirror, NONE, "pixels in reverse order", "groups of elements are put in reverse in registers"),
    ROW(braid, NONE, "runs gathered from several places",
        "lines are put together from several streams of the source", .by_line = true),
    ROW(permuted, NEXT, "a small permutation", "blocks are permuted in registers and leave as long runs"),
    ROW(buffered, GATHER, "blocks through a staging buffer",
        "blocks are put together in a buffer and leave as long runs", .by_line = true),
    ROW(turn, NONE, "a transpose of pixels", "groups of elements change places in registers"),
    ROW(rows, NEXT, "a copy of runs", "each run is copied whole"),
    ROW(interleave, NONE, "planes to pixels", "the planes' lines are interleaved in registers"),
    ROW(deinterleave, STREAM, "pixels to planes", "each plane's elements are picked out in registers"),
    ROW(mosaic, NONE, "a small permutation",
        "each line is put together from few lines of the source, permuted in registers"),
    ROW(reverse, NEXT, "a reversed copy", "vectors are reversed in registers"),
    ROW(tile, GATHER, "a copy in tiles", "tiles as wide as lines on either side go through registers"),
    ROW(broadcast, NEXT, "a broadcast", "each element is repeated along the lines that it fills"),
    ROW(transpose, NEXT, "a transpose", "small squares are transposed in registers"),
    ROW(gather, STREAM, "a gather", "each line is collected by a list of places"),
    ROW(strided, STREAM, "every n-th element", "these are picked out in registers"),
    ROW(general, STREAM, "a copy row by row", "rows follow each other"),
};
/* clang-format on */
