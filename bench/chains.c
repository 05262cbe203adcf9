/* chains.c: chains that nothing was tuned to: drawn at random, of every kind, width and size. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RANK = 6, SIZES = 3 };

/* What is done before, or behind, the permutation. */
enum kind { PERMUTE, FLIP, SLICE, STEP, ROLL, CONCAT, PAD, TILE, REPEAT, WINDOW, TRIANGLE, KINDS };
static const char *const kind_name[KINDS] = {"permute", "flip", "slice",  "step",   "roll",    "concat",
                                             "pad",     "tile", "repeat", "window", "triangle"};

struct draw {
    uint64_t state;
    enum kind kind;
    int rank, axis, width; /* axis: the one that the kind is about */
    int order[MOST_RANK];
    int64_t extent[MOST_RANK];
};

/* splitmix64 */
static uint64_t next(struct draw *d)
{
    uint64_t x = d->state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static int64_t below(struct draw *d, int64_t n) { return (int64_t)(next(d) % (uint64_t)n); }

/* Small ones, and those of tensors, as often as any other. */
static int64_t extent(struct draw *d, int64_t most)
{
    static const int usual[] = {2,  3,  4,  5,  6,  7,   8,   9,   10,  12,  15,  16,  20,  24,
                                32, 48, 56, 64, 96, 100, 112, 128, 224, 243, 320, 384, 512, 768};
    enum { N = sizeof usual / sizeof *usual, ANY = 1000 };
    int64_t n = below(d, 4) ? usual[below(d, N)] : 2 + below(d, ANY);
    return n <= most ? n : 2 + below(d, most - 1);
}

/* Extents of about so many elements: one of them, anywhere, is as long as it takes. Each leaves 2 or more for
 * those after it. */
static void draw_extents(struct draw *d, int64_t numel)
{
    int rest = (int)below(d, d->rank), left = d->rank - 1;
    for (int i = 0; i < d->rank; i++) {
        if (i == rest)
            continue;
        d->extent[i] = extent(d, numel >> left--);
        numel /= d->extent[i];
    }
    d->extent[rest] = numel;
}

/* Another order: a permutation that moves nothing is memcpy. */
static void draw_order(struct draw *d)
{
    bool same = true;
    for (int i = 0; i < d->rank; i++)
        d->order[i] = i;
    while (same) {
        for (int i = d->rank - 1; i > 0; i--) {
            int k = (int)below(d, i + 1), other = d->order[k];
            d->order[k] = d->order[i];
            d->order[i] = other;
        }
        for (int i = 0; i < d->rank && same; i++)
            same = d->order[i] == i;
    }
}

static void draw_chain(struct draw *d, int64_t bytes)
{
    d->kind = below(d, 2) ? PERMUTE : (enum kind)(1 + below(d, KINDS - 1));
    d->width = (int)below(d, 5);
    d->rank = 2 + (int)below(d, MOST_RANK - 1);
    d->axis = (int)below(d, d->rank);
    int64_t numel = bytes >> d->width;
    bool thrice = d->kind == TILE || d->kind == REPEAT || d->kind == WINDOW;
    numel = d->kind == STEP ? numel * 2 : d->kind == CONCAT ? numel / 2 : thrice ? numel / 3 : numel;
    draw_extents(d, numel);
    draw_order(d);
}

/* ---- text */

static void print_list(FILE *f, const struct draw *d, const char *at_axis, const char *elsewhere)
{
    for (int i = 0; i < d->rank; i++)
        fprintf(f, "%s%s", i ? "," : "", i == d->axis ? at_axis : elsewhere);
}

static void print_input(FILE *f, const struct draw *d, const char *name, bool small)
{
    static const char *const dtype[] = {"u8", "f16", "f32", "f64", "c128"};
    fprintf(f, "%s: %s[", name, dtype[d->width]);
    for (int i = 0; i < d->rank; i++)
        fprintf(f, "%s%lld", i ? "," : "", small ? (long long)(2 + i % 3) : (long long)d->extent[i]);
    fprintf(f, "]; ");
}

static void print_expand(FILE *f, const struct draw *d, bool small)
{
    fprintf(f, ".unsqueeze(%d).expand(", d->axis);
    for (int i = 0; i < d->rank; i++)
        fprintf(f, "%s%s%lld", i ? "," : "", i == d->axis ? "3," : "",
                small ? (long long)(2 + d->order[i] % 3) : (long long)d->extent[d->order[i]]);
    fprintf(f, ")");
}

static void print_chain(FILE *f, const struct draw *d, bool small)
{
    print_input(f, d, "x", small);
    if (d->kind == CONCAT)
        print_input(f, d, "y", small);
    fprintf(f, d->kind == CONCAT ? "concat(%d, x, y)" : "x", d->axis);
    if (d->kind == FLIP)
        fprintf(f, ".flip(%d)", d->axis);
    if (d->kind == ROLL)
        fprintf(f, ".roll(1,%d)", d->axis);
    if (d->kind == REPEAT)
        fprintf(f, ".repeat(3, axis=%d)", d->axis);
    if (d->kind == SLICE || d->kind == STEP) {
        fprintf(f, "[");
        print_list(f, d, d->kind == STEP ? "::2" : "1:", ":");
        fprintf(f, "]");
    }
    fprintf(f, ".permute(");
    for (int i = 0; i < d->rank; i++)
        fprintf(f, "%s%d", i ? "," : "", d->order[i]);
    fprintf(f, ")");
    if (d->kind == PAD || d->kind == WINDOW) {
        fprintf(f, ".pad(");
        print_list(f, d, d->kind == PAD ? "(1,2)" : "(1,1)", "(0,0)");
        fprintf(f, ")");
    }
    if (d->kind == WINDOW)
        fprintf(f, ".unfold(%d,3,1)", d->axis);
    if (d->kind == TRIANGLE)
        fprintf(f, ".tril(0)");
    if (d->kind == TILE)
        print_expand(f, d, small);
}

char *bench_random_chains(uint64_t seed, int n)
{
    static const int64_t sizes[SIZES] = {64 << 20, 64 << 20, 2 << 20};
    static const char *const where[SIZES] = {"memory", "memory", "caches"};
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&text, &bytes);
    struct draw d = {.state = seed};
    for (int i = 0; f && i < n; i++) {
        draw_chain(&d, sizes[i % SIZES]);
        fprintf(f, "r%03d_%s | random, %s | ", i, kind_name[d.kind], where[i % SIZES]);
        print_chain(f, &d, false);
        fprintf(f, " | ");
        print_chain(f, &d, true);
        fprintf(f, "\n");
    }
    if (!f || fclose(f))
        return NULL;
    return text;
}
