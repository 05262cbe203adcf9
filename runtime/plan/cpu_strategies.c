/* cpu_strategies.c: how a piece can be copied on a CPU, from the most special to the one that serves
 * everything. Layer 3. */
#include "plan/cpu_strategies.h"

#define ROW(name, what, how, ...)                                                                            \
    {                                                                                                        \
#name, what, how, xti_##name##_applies, .make = xti_##name##_make, __VA_ARGS__                       \
    }

/* clang-format off */
const struct xti_strategy xti_cpu_strategies[XTI_N_STRATEGIES] = {
    {"memcpy", "a plain copy", "it is copied whole", xti_memcpy_applies, .make = xti_rows_make},
    ROW(fill, "a fill", NULL),
    ROW(mirror, "pixels in reverse order", "groups of elements are put in reverse in registers"),
    ROW(braid, "runs gathered from several places",
        "lines are put together from several streams of the source", .by_line = true),
    ROW(permuted, "a small permutation", "blocks are permuted in registers and leave as long runs"),
    ROW(buffered, "blocks through a staging buffer",
        "blocks are put together in a buffer and leave as long runs", .by_line = true),
    ROW(turn, "a transpose of pixels", "groups of elements change places in registers"),
    ROW(rows, "a copy of runs", "each run is copied whole"),
    ROW(interleave, "planes to pixels", "the planes' lines are interleaved in registers"),
    ROW(deinterleave, "pixels to planes", "each plane's elements are picked out in registers"),
    ROW(mosaic, "a small permutation",
        "each line is put together from few lines of the source, permuted in registers",
        .rivals = XTI_RIVALS_NONE),
    ROW(reverse, "a reversed copy", "vectors are reversed in registers"),
    ROW(tile, "a copy in tiles", "tiles as wide as lines on either side go through registers",
        .rivals = XTI_RIVALS_SHORT),
    ROW(broadcast, "a broadcast", "each element is repeated along the lines that it fills"),
    ROW(transpose, "a transpose", "small squares are transposed in registers"),
    ROW(gather, "a gather", "each line is collected by a list of places", .rivals = XTI_RIVALS_STREAM),
    ROW(strided, "every n-th element", "these are picked out in registers", .rivals = XTI_RIVALS_STREAM),
    ROW(general, "a copy row by row", "rows follow each other", .rivals = XTI_RIVALS_STREAM),
};
/* clang-format on */
