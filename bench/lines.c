/* lines.c: how many 64-byte lines of its sources a kernel reads. Needs to know nothing of maps: line numbers
 * go in where the data are, and those that come out are the lines that were read. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "limit.h"

enum { DIGITS = 4 }; /* bytes of a line's number: 2^32 lines are 256 GiB */

/* Every element holds as many bytes of its line's number as it has room for, from byte `digit` on, xored with
 * x. width: 1, 2, 4, 8 or 16. */
static void write_numbers(char *p, size_t bytes, size_t first_line, int width, int digit, unsigned char x)
{
    for (size_t line = 0; line * LINE < bytes; line++) {
        uint64_t number = (first_line + line) >> (8 * digit);
        unsigned char some[16], whole[LINE];
        for (unsigned i = 0; i < sizeof some; i++) {
            unsigned byte = i & (unsigned)(width - 1);
            some[i] = (unsigned char)(byte < 8 ? number >> (8 * byte) : 0) ^ x;
        }
        for (size_t i = 0; i < LINE; i += sizeof some)
            memcpy(whole + i, some, sizeof some);
        memcpy(p + line * LINE, whole, (line + 1) * LINE < bytes ? LINE : bytes - line * LINE);
    }
}

struct probe {
    const struct xt_kernel *k;
    int n, width;
    void *const *src;
    const size_t *bytes;
    size_t first_line[LIMIT_SOURCES];
};

static bool read_back(const struct probe *p, int digit, unsigned char x, char *dst)
{
    for (int i = 0; i < p->n; i++)
        write_numbers(p->src[i], p->bytes[i], p->first_line[i], p->width, digit, x);
    return !xt_run(p->k, dst, (const void *const *)p->src, NULL);
}

/* out[0 .. passes): the number's bytes; out[passes]: the first, complemented. Where the two do not differ in
 * every bit there is a fill or nothing. `width` is a constant where this is called. */
static inline __attribute__((always_inline)) void mark(char *const *out, size_t dst_bytes, size_t width,
                                                       unsigned char *seen)
{
    size_t low = width < DIGITS ? width : DIGITS, passes = DIGITS / low;
    for (size_t i = 0; i + width <= dst_bytes; i += width) {
        uint32_t number = 0, part = 0;
        if ((unsigned char)(out[0][i] ^ out[passes][i]) != 0xff)
            continue;
        for (size_t pass = 0; pass < passes; pass++) {
            memcpy(&part, out[pass] + i, low); /* little-endian, as the numbers were written */
            number |= part << (8 * low * pass % 32);
        }
        seen[number / 8] |= (unsigned char)(1 << number % 8); /* bits fit the cache, bytes would not */
    }
}

static void mark_any(char *const *out, size_t dst_bytes, int width, unsigned char *seen)
{
    if (width == 1)
        mark(out, dst_bytes, 1, seen);
    else if (width == 2)
        mark(out, dst_bytes, 2, seen);
    else if (width == 4)
        mark(out, dst_bytes, 4, seen);
    else
        mark(out, dst_bytes, (size_t)width, seen);
}

bool count_lines(const struct xt_kernel *k, int n, void *const *src, const size_t *bytes, void *const dst[2],
                 size_t dst_bytes, int width, size_t *lines)
{
    struct probe p = {.k = k, .n = n, .width = width, .src = src, .bytes = bytes};
    int passes = width < DIGITS ? DIGITS / width : 1;
    size_t all = 0;
    for (int i = 0; i < n; i++) {
        p.first_line[i] = all;
        all += (bytes[i] + LINE - 1) / LINE;
    }
    char *out[DIGITS + 1] = {NULL};
    unsigned char *seen = calloc(all / 8 + 1, 1);
    bool ok = seen != NULL;
    for (int i = 0; i <= passes && ok; i++) {
        out[i] = i < 2 ? dst[i] : bench_buffer(dst_bytes);
        if (out[i])
            memset(out[i], 0, dst_bytes);
        ok = out[i] && read_back(&p, i % passes * width, i == passes ? 0xff : 0, out[i]);
    }
    if (ok)
        mark_any(out, dst_bytes, width, seen);
    for (int i = 0; i < n && ok; i++) {
        lines[i] = 0;
        for (size_t j = p.first_line[i]; j * LINE < p.first_line[i] * LINE + bytes[i]; j++)
            lines[i] += seen[j / 8] >> j % 8 & 1;
    }
    for (int i = 2; i <= passes; i++)
        free(out[i]);
    free(seen);
    return ok;
}
